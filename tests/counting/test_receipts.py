"""A receipt of a session's whole life says what `asrd usage` and `asrd time` say of it and of all that it started."""

from pathlib import Path
from typing import Any

import pytest

from asrd import query
from asrd.records import Inference, Turn, Usage
from asrd.spanning import receipt
from asrd.store.rows import IndexRows
from tests.counting.stores import filled, streams_of
from tests.counting.test_orders import GROUPS
from tests.counting.test_windows import rows_of, stream
from tests.homes import recorded
from tests.pitfalls import CASES

FIGURES = ("requests", "input", "cacheRead", "cacheWrite", "output", "reasoning", "unmeasuredRequests")


def told(rows: IndexRows, ref: str) -> dict[str, Any]:
    """Of a tree's whole life: the figures of its receipt, and those of the other commands."""
    delta = receipt(rows, ref, None, "2100-01-01", None, None)["delta"]
    usage = query.usage(rows, ref=ref, tree_of=True)["total"]
    time = query.time(rows, ref=ref, tree_of=True)["total"]
    same = {name: (delta[name], usage[name]) for name in FIGURES}
    same |= {name: (delta[name], time[name]) for name in ("agentSeconds", "unionSeconds", "openTurns")}
    return {name: pair for name, pair in same.items() if (pair[0] or 0) != (pair[1] or 0)}


def refs(rows: IndexRows) -> list[str]:
    found = [s.row for s in rows.sessions() if s.row.scope == "primary"]
    return sorted({r.session_id for r in found if sum(o.session_id == r.session_id for o in found) == 1})


@pytest.mark.parametrize("ident", [i for i, c in CASES.items() if c.write is not None])
def test_of_a_home_with_a_pitfall(ident: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    write = CASES[ident].write
    assert write is not None
    write(tmp_path / "home")

    with recorded(tmp_path / "home", tmp_path / "store") as one:
        assert {ref: other for ref in refs(one.rows) if (other := told(one.rows, ref))} == {}


@pytest.mark.parametrize("group", GROUPS)
def test_of_captures_that_are_related(group: str, tmp_path: Path) -> None:
    rows = rows_of(filled(tmp_path, list(streams_of(*GROUPS[group]).items())))

    names = refs(rows)
    assert len(rows.sessions()) > 1
    assert {ref: other for ref in names if (other := told(rows, ref))} == {}


def turned(*numbers: str, turn: str = "turn-of-both-sessions") -> list[Turn | Inference]:
    """A turn with a response for each of these numbers: 10 in, 1 out each."""
    at = iter(f"2026-11-30T01:00:{n:02d}Z" for n in range(60))
    said = [
        Inference(inference_id=n, turn_id=turn, model="m", usage=Usage(input=10, output=1), at=next(at))
        for n in numbers
    ]
    return [Turn(turn_id=turn, phase="start", at=next(at)), *said, Turn(turn_id=turn, phase="end", at=next(at))]


def test_responses_that_only_their_turn_shows_to_be_copies_are_none_of_the_forks(tmp_path: Path) -> None:
    """A fork begins with a turn of two responses that have no ids, and has one more of its own."""
    first = stream("first", *turned("1", "2"))
    fork = stream("fork", *turned("7", "8"), *turned("9", turn="a-turn-of-the-fork-alone"), parent="first")

    for number, order in enumerate(([first, fork], [fork, first])):
        rows = rows_of(filled(tmp_path / str(number), order))

        owners = {s["sessionId"]: s["requests"] for s in query.usage(rows)["bySession"]}
        assert owners == {"first": 2, "fork": 1}
        assert {
            ref: receipt(rows, ref, None, "2100-01-01", None, None)["delta"]["requests"] for ref in owners
        } == owners
