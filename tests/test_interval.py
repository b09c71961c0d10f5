"""Receipts between cutoffs: later records never change them, and those of intervals that meet add up."""

import random
from pathlib import Path
from typing import Any

import pytest

from asrd import interval, query
from asrd.convert import Streams, convert_home
from asrd.interval import Recorded, made_before
from asrd.lineage import Node
from asrd.records import Record, Session
from asrd.timing import micros
from tests.golden import CAPTURES
from tests.homes import recorded
from tests.truth import CROSS, lay_out

TREES = ("claude-code/S2", "codex/S2-v2", "kimi/S2", CROSS)


def streams_of(case: str, work: Path) -> Streams:
    return convert_home(lay_out(case, work) if case == CROSS else CAPTURES / case / "home")


def sessions(streams: Streams) -> list[Recorded]:
    found: list[Recorded] = []
    for number, (key, records) in enumerate(sorted(streams.items()), 1):
        head = records[0]
        assert isinstance(head, Session)
        started = head.started_at or next((r.at for r in records if r.at), None)
        found.append(Recorded(Node(number, key.agent, key.session_id, key.namespace, started), records))
    return found


def until_then(given: list[Recorded], moment: int) -> list[Recorded]:
    """The sessions as a store had them at a moment: without what was made later."""
    found: list[Recorded] = []
    for one in given:
        kept: list[Record] = []
        at = micros(one.node.started_at)
        if at is not None and at >= moment:
            continue
        for record in one.records:
            inside, at = made_before(record, at, moment)
            if inside:
                kept.append(record)
        found.append(Recorded(one.node, kept))
    return found


def root_of(given: list[Recorded], work: Path, case: str) -> Recorded:
    """The session that nobody started."""
    links = [r for r in given if isinstance(r.records[0], Session) and r.records[0].lineage.parent is None]
    return next(r for r in links if case != CROSS or r.node.agent == "claude-code")


def moments(given: list[Recorded]) -> list[str]:
    return sorted({r.at for one in given for r in one.records if r.at})


def made(root: Recorded, given: list[Recorded], since: str | None, until: str) -> dict[str, Any]:
    same = next(r for r in given if r.node == root.node)
    return interval.receipt(same, given, [], since, until)


@pytest.mark.parametrize("case", TREES)
def test_a_receipt_is_the_same_whenever_it_is_made(case: str, tmp_path: Path) -> None:
    given = sessions(streams_of(case, tmp_path))
    root, times = root_of(given, tmp_path, case), moments(given)
    chance = random.Random(case)

    for _ in range(12):
        since, until, later = sorted(chance.sample(times[1:], 3))
        now = micros(later)
        assert now is not None

        receipt = made(root, given, since, until)

        assert made(root, until_then(given, now), since, until) == receipt
        assert made(root, list(reversed(given)), since, until) == receipt


@pytest.mark.parametrize("case", TREES)
def test_receipts_that_meet_chain_and_their_deltas_add_up(case: str, tmp_path: Path) -> None:
    given = sessions(streams_of(case, tmp_path))
    root, times = root_of(given, tmp_path, case), moments(given)
    cuts = [None, times[len(times) // 4], times[len(times) // 2], times[3 * len(times) // 4], "2026-12-31T00:00:00Z"]

    chain = [made(root, given, since, until) for since, until in zip(cuts, cuts[1:], strict=False) if until]

    for one, other in zip(chain, chain[1:], strict=False):
        assert one["after"] == other["before"]
    whole = made(root, given, None, "2026-12-31T00:00:00Z")["delta"]
    for name in ("requests", "input", "output", "calls", "turns", "agentSeconds", "unionSeconds"):
        assert sum(c["delta"][name] or 0 for c in chain) == pytest.approx(whole[name] or 0), name
    assert all(c["decreased"] == [] for c in chain)


@pytest.mark.parametrize("case", TREES)
def test_the_receipt_of_everything_is_what_usage_and_time_tell_of_the_tree(case: str, tmp_path: Path) -> None:
    home = lay_out(case, tmp_path) if case == CROSS else CAPTURES / case / "home"
    given = sessions(streams_of(case, tmp_path / "again"))
    root = root_of(given, tmp_path, case)
    ref = f"{root.node.agent}:{root.node.session_id}"

    with recorded(home, tmp_path / "store") as one:
        usage = query.usage(one.rows, ref=ref, tree_of=True)["total"]
        time = query.time(one.rows, ref=ref, tree_of=True)["total"]
    after = made(root, given, None, "2026-12-31T00:00:00Z")["after"]

    for name in ("requests", "input", "cacheRead", "cacheWrite", "output", "reasoning"):
        assert after[name] == usage[name], name
    for name in ("agentSeconds", "unionSeconds", "overlapSeconds", "envelopeSeconds", "turns", "openTurns"):
        assert after[name] == time[name], name


def test_a_turn_that_is_open_at_the_end_makes_a_lower_bound(tmp_path: Path) -> None:
    given = sessions(streams_of("claude-code/S2", tmp_path))
    root, times = root_of(given, tmp_path, ""), moments(given)

    within, behind = made(root, given, None, times[len(times) // 2]), made(root, given, None, "2026-12-31T00:00:00Z")

    assert within["liveSessions"] > 0
    assert within["lowerBound"]
    assert behind["liveSessions"] == 0


def test_time_that_only_later_records_show_is_told_apart() -> None:
    from asrd.records import Turn
    from tests.test_witness import OUTER, session

    begin = Turn(turn_id="t", phase="start", at="2026-11-30T10:00:10Z")
    end = Turn(turn_id="t", phase="end", at="2026-11-30T10:02:30Z", status="completed")
    key, records = session(OUTER, begin, end)
    assert isinstance(records[0], Session)
    records[0].started_at = "2026-11-30T10:00:00Z"
    one = Recorded(Node(1, key.agent, key.session_id, "", "2026-11-30T10:00:00Z"), records)

    first = interval.receipt(one, [one], [], None, "2026-11-30T10:01:40Z")
    second = interval.receipt(one, [one], [], "2026-11-30T10:01:40Z", "2026-11-30T10:03:20Z")

    assert (first["delta"]["agentSeconds"], first["liveSessions"]) == (0.0, 1)
    assert (second["delta"]["agentSeconds"], second["delta"]["earlierSeconds"]) == (140.0, 90.0)
    assert second["wallSeconds"] == 100.0
