"""Of all statements of a response one counts, whole; who owns it is a question of lineage. Order: `properties/test_folds`."""

from typing import Any

import pytest

from asrd.ledger import Choice, Response, Statement, Told, choose, relayed, summarised, unmarked


def said(session: int, **more: Any) -> Statement:
    given: dict[str, Any] = {
        "session": session,
        "session_id": f"s{session}",
        "seq": 1,
        "output": 5,
        "measured": True,
        "secondary": False,
        "copy_of": None,
        "model": "m",
        "at": "2026-01-01T00:00:00Z",
        "started_at": f"2026-01-01T00:00:0{session}Z",
    }
    return Statement(**(given | more))


def chosen(*statements: Statement, derives: set[tuple[int, int]] | None = None) -> Choice:
    return choose(statements, lambda a, b: (a, b) in (derives or set()))


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({}, {"copy_of": "s1"}),
        ({}, {"secondary": True}),
        ({}, {"measured": False, "output": None}),
        ({"output": 7}, {"output": 5}),
        ({"output": 1}, {"output": None}),
        ({"output": 5, "measured": True}, {"output": 9, "secondary": True}),
        ({"output": 5}, {"output": 9, "copy_of": "s1"}),
    ],
)
def test_one_statement_is_taken_whole(better: dict[str, Any], worse: dict[str, Any]) -> None:
    assert chosen(said(1, **better), said(2, **worse)).counts == 1
    assert chosen(said(1, **worse), said(2, **better)).counts == 2


def test_the_owner_is_the_session_that_the_others_come_from() -> None:
    choice = chosen(said(1, output=9), said(2), derives={(1, 2)})

    assert (choice.counts, choice.owner, choice.ambiguous) == (1, 2, 0)


def test_without_lineage_the_first_to_start_owns_it() -> None:
    assert chosen(said(2), said(1, output=9)).owner == 1
    assert chosen(said(1, started_at=None), said(2)).owner == 2


def test_only_copies_count_once_for_the_session_they_name() -> None:
    alone = chosen(said(1, copy_of="gone"), said(2, copy_of="gone"))

    assert (alone.counts, alone.owner, alone.owner_id) == (1, None, "gone")
    assert chosen(said(1, copy_of="s2"), said(2, copy_of="s9")).owner == 2


def test_only_secondary_statements_count_too() -> None:
    choice = chosen(said(1, secondary=True))

    assert (choice.counts, choice.owner) == (1, 1)


@pytest.mark.parametrize(
    ("other", "ambiguous"),
    [
        ({}, 0),
        ({"model": "n"}, 1),
        ({"at": "2026-01-01T00:05:00Z"}, 0),
        ({"at": "2026-01-01T01:00:00Z"}, 1),
        ({"at": "no time"}, 1),
        ({"at": None}, 1),
    ],
)
def test_statements_that_may_be_other_requests_are_said(other: dict[str, Any], ambiguous: int) -> None:
    assert chosen(said(1), said(2, **other)).ambiguous == ambiguous
    assert chosen(said(1), said(2, **other), derives={(2, 1)}).ambiguous == 0


def test_sessions_that_derive_from_each_other_have_an_owner_all_the_same() -> None:
    assert chosen(said(1), said(2), derives={(1, 2), (2, 1)}).owner == 1


def test_a_copy_without_figures_of_a_session_that_is_recorded_is_no_request() -> None:
    copy = said(2, copy_of="s1", measured=False, output=None)

    assert chosen(copy).counts == 2
    assert chosen(said(2, copy_of="s1", measured=False, output=None, at_hand=True)).counts is None
    assert chosen(said(2, copy_of="s1", at_hand=True)).counts == 2  # its figures are known from it alone


KEY = "codex\x1fs1\x1f"


def test_a_response_of_a_turn_that_both_have_is_matched_once_and_only_with_equal_figures() -> None:
    mine = [
        (f"{KEY}m1", ("m", 5)),
        (f"{KEY}m2", ("m", 5)),
        (f"{KEY}m3", ("m", 5)),
        ("codex\x1fresp-1", ("m", 7)),
        (f"{KEY}m4", ("m", 9)),
    ]
    theirs = [("t1", ("m", 5)), ("t2", ("m", 5)), ("t3", ("m", 7)), ("t4", ("n", 9))]

    assert unmarked(mine, theirs, set()) == [(f"{KEY}m1", "t1"), (f"{KEY}m2", "t2")]
    assert unmarked(mine, theirs, {"t1"}) == [(f"{KEY}m1", "t2")]


def test_a_summary_is_the_last_response_of_a_fork_between_two_compactions() -> None:
    asked = [Told(f"b{n}", 1, f"2026-11-30T10:00:{n}0Z") for n in (1, 2, 3)] + [Told("untimed", 1, None)]
    made = [
        Told("f1", 2, "2026-11-30T10:00:05Z"),
        Told("f2", 2, "2026-11-30T10:00:10.000Z"),
        Told("f3", 3, "2026-11-30T10:00:30.001Z"),
        Told("f4", 4, None),
    ]

    for forks in (made, made[::-1]):
        assert [(one.key, other.key) for one, other in summarised(asked[::-1], forks)] == [("b1", "f2")]


def test_a_copy_is_that_of_the_first_owner_by_its_mark_or_by_its_turn_and_figures() -> None:
    def one(key: str, mark: str | None, turn: str | None, out: int) -> Response:
        return Response(key, mark, turn, ("m", out))

    lost = [
        one("a", "x", None, 5),
        one("b", None, "t", 5),
        one("c", None, "t", 5),
        one("d", "two", None, 5),
        one("e", None, "t", 6),
    ]
    stated = [
        one("A", "x", None, 5),
        one("B", None, "t", 5),
        one("D1", "two", None, 5),
        one("D2", "two", None, 5),
        one("E", None, "u", 6),
    ]

    assert [(m.key, t.key) for m, t in relayed(lost, stated, set())] == [("a", "A"), ("b", "B")]
    assert relayed(lost, stated, {"A", "B"}) == []


def test_of_statements_that_cannot_be_of_one_response_the_one_that_is_taken_owns_itself() -> None:
    weak, strong = said(1, model="m1", output=7), said(2, model="m2", output=8)

    assert chosen(weak, strong) == Choice(2, 2, "s2", 1)
    assert chosen(weak, strong, derives={(2, 1)}) == Choice(2, 1, "s1", 0)
