"""Windows of time partition what was used (U19), wherever they are cut."""

import random
from pathlib import Path

from asrd import query
from asrd.client import open_reader
from asrd.interval import Recorded, receipt
from asrd.lineage import Node
from asrd.moments import in_order
from asrd.paths import Folders
from asrd.recorders.base import StreamKey
from asrd.records import Agent, Inference, Lineage, LineageParent, Link, LinkTarget, Producer, Record, Session, Usage
from asrd.records import Evidence as Proof
from asrd.store.rows import IndexRows
from tests.counting.stores import answers, filled

MOMENTS = (
    "2026-11-29T23:59:59.999Z", "2026-11-30T00:00:00.000Z", "2026-11-30T00:00:00.001Z", "2026-11-30T00:14:59.999Z",
    "2026-11-30T00:15:00.000Z", "2026-11-30T00:20:00.5Z", "2026-11-30T00:30:00Z", "2026-11-30T12:07:31.123456Z",
    "2026-12-01T00:00:00Z",
)  # fmt: skip


def stream(
    name: str, *records: Record, parent: str | None = None, relation: str = "forked_from"
) -> tuple[StreamKey, list[Record]]:
    lineage = Lineage(root=True)
    if parent is not None:
        evidence = Proof(kind="native-field", field="x")
        lineage = Lineage(
            root=False, parent=LineageParent(agent="a", session_id=parent), relation=relation, evidence=evidence
        )
    head = Session(
        format_version="0.1", agent=Agent(name="a"), session_id=name, scope="primary", profiles=["usage"], lineage=lineage,
        producer=Producer(name="asrd", version="0", method="converter"), content_level="full", started_at="2026-11-29T00:00:00Z",
    )  # fmt: skip
    given: list[Record] = [head, *records]
    for seq, record in enumerate(given):
        record.seq, record.id = seq, f"r{seq}" if seq else "h"
    return StreamKey("a", name), given


def response(ident: str, at: str | None, output: int) -> Inference:
    return Inference(inference_id=ident, model="m", at=at, usage=Usage(input=1, output=output))


def rows_of(where: Folders) -> IndexRows:
    return IndexRows(open_reader(where), where.streams)


def test_windows_that_meet_hold_each_response_once(tmp_path: Path) -> None:
    responses = [response(f"resp-{n}", at, 2**n) for n, at in enumerate(MOMENTS)]
    rows = rows_of(filled(tmp_path, [stream("s", *responses)]))
    whole = query.usage(rows)["total"]["output"]
    chance = random.Random(5)
    edges = [m.removesuffix("Z").removesuffix(".000") for m in MOMENTS]

    for _ in range(60):
        cuts = sorted(chance.sample(edges, 3))
        windows = [(None, cuts[0]), *zip(cuts, cuts[1:], strict=False), (cuts[-1], None)]
        parts = [query.usage(rows, since=a, until=b)["total"]["output"] or 0 for a, b in windows]
        expected = [
            sum(2**n for n, at in enumerate(MOMENTS) if (not a or at[:-1] >= a) and (not b or at[:-1] < b))
            for a, b in windows
        ]

        assert parts == expected, windows
        assert sum(parts) == whole


ODD = ("10:00:00Z", "10:00:00.000Z", "10:00:00.25Z", "12:00:00.5+02:00", "10:00:00.500000001Z", "10:00:00.75+00:00", "10:00:01Z",
       "04:30:01.000001-05:30", "10:14:59.9999Z", "10:15:00.00Z", "10:15:00.1Z")  # fmt: skip
"""Moments in their order, as sources may write them: other digits, other zones."""
CUTS = ("10:00:00", "10:00:00.5", "10:00:00.50", "12:00:00.2500+02:00", "10:00:00.500000001Z", "10:00:00.6Z", "10:00:01Z",
        "10:15:00.05Z", "10:15:00.1")  # fmt: skip


def test_windows_cut_between_the_digits_hold_each_response_and_turn_once(tmp_path: Path) -> None:
    times = [f"{MOMENTS[2][:11]}{t}" for t in ODD]
    responses = [response(f"resp-{n}", at, 2**n) for n, at in enumerate(times)]
    rows = rows_of(filled(tmp_path, [stream("s", *responses)]))
    bounds = {text: in_order(f"{MOMENTS[2][:11]}{text}") or "" for text in CUTS}

    for low in CUTS:
        for high in CUTS:
            since, until = (f"{MOMENTS[2][:11]}{t}" for t in (low, high))
            told = query.usage(rows, since=since, until=until)["total"]["output"] or 0
            opened = query.explain(rows, query.Selection(query.bound(since), query.bound(until)), None)

            wanted = [n for n, t in enumerate(times) if bounds[low] <= (in_order(t) or "") < bounds[high]]
            assert told == sum(2**n for n in wanted), (low, high)
            assert sorted(r["counted"]["output"] for r in opened["responses"]) == [2**n for n in wanted], (low, high)


def test_sessions_since_a_moment_are_those_with_a_record_then_or_later(tmp_path: Path) -> None:
    given = [stream(f"s{n}", response(f"r-{n}", f"{MOMENTS[2][:11]}{t}", 1)) for n, t in enumerate(ODD)]
    rows = rows_of(filled(tmp_path, given))

    told = query.list_sessions(rows, limit=None, harness=None, project=None, since=f"{MOMENTS[2][:11]}10:00:00.6Z")

    assert sorted(s["sessionId"] for s in told["sessions"]) == sorted(f"s{n}" for n in range(5, len(ODD)))


def test_what_is_made_at_a_cutoff_belongs_to_the_next_interval() -> None:
    key, records = stream("s", response("one", "2026-11-30T00:00:00Z", 1), response("two", "2026-11-30T00:00:01Z", 2))
    one = Recorded(Node(1, key.agent, key.session_id, "", "2026-11-29T00:00:00Z"), records)

    before = receipt(one, [one], [], None, "2026-11-30T00:00:00Z")
    between = receipt(one, [one], [], "2026-11-30T00:00:00Z", "2026-11-30T00:00:01Z")

    assert (before["delta"]["requests"], between["delta"]["output"]) == (0, 1)


def test_who_owns_equal_responses_is_decided_anew_when_the_link_between_is_recorded(tmp_path: Path) -> None:
    """z first, as a fork of y; then a, its origin's origin; then y, which says so."""
    shared = "response-0123456789"
    z = stream("z", response(shared, MOMENTS[0], 5), parent="y")
    y = stream("y", parent="a")
    a = stream("a", response(shared, "2026-12-01T09:00:00Z", 5))
    a[1][0].started_at = "2026-11-30T00:00:00Z"  # type: ignore[attr-defined]

    told = [
        answers(filled(tmp_path / str(n), order))
        for n, order in enumerate(([z, a, y], [y, a, z], [a, z, y], [a, y, z]))
    ]

    owners = {s["sessionId"]: s["requests"] for s in told[0]["usage"]["bySession"]}
    assert owners == {"a": 1}
    assert "ambiguousRequests" not in told[0]["usage"]["total"]
    assert all(one == told[0] for one in told)


def test_a_link_that_comes_after_the_responses_decides_too(tmp_path: Path) -> None:
    shared = "response-0123456789"
    link = Link(
        relation="forked_from", target=LinkTarget(agent="a", session_id="late"), evidence=Proof(kind="native-field")
    )
    early = stream("early", response(shared, MOMENTS[0], 5), link)
    late = stream("late", response(shared, MOMENTS[1], 5))
    late[1][0].started_at = "2026-11-30T00:00:00Z"  # type: ignore[attr-defined]

    pieces = [(early[0], early[1][:2]), late, (early[0], early[1][2:])]
    told = [answers(filled(tmp_path / str(n), order)) for n, order in enumerate((pieces, [early, late]))]

    assert {s["sessionId"] for s in told[0]["usage"]["bySession"]} == {"late"}
    assert told[0] == told[1]
