"""Agent time, union, overlap, envelope, wall: rules T1 to T19."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrd.timing import MODEL, Took, Turn, clipped, common, measure, merged, micros, shared_out, spent, without

SECOND = 1_000_000


def at(second: float) -> str:
    return f"2026-11-30T{10 + int(second) // 3600:02d}:{int(second) % 3600 // 60:02d}:{second % 60:09.6f}Z"


def turn(session: int, start: float, end: float | None, last: float | None = None) -> Turn:
    return Turn(session, at(start), None if end is None else at(end), None if last is None else at(last))


def took(session: int, kind: str, start: float, end: float) -> Took:
    return Took(session, kind, at(start), at(end))


def test_windows_of_one_session_that_overlap_are_its_time_once() -> None:  # T1
    assert spent([turn(1, 0, 100), turn(1, 50, 120)], []).agent == 120 * SECOND


def test_agents_side_by_side_add_and_the_union_does_not() -> None:  # T2, T3, T4
    found = spent([turn(1, 0, 100), turn(2, 20, 80)], [])

    assert (found.agent, found.union, found.overlap) == (160 * SECOND, 100 * SECOND, 60 * SECOND)


def test_the_envelope_has_the_pauses_in_it() -> None:  # T5
    found = spent([turn(1, 0, 10), turn(1, 90, 100)], [])

    assert (found.envelope, found.union) == (100 * SECOND, 20 * SECOND)


def test_the_wall_is_the_interval_whatever_was_done_in_it() -> None:  # T6
    found = spent([turn(1, 0, 20)], [], at(0), at(500))

    assert (found.wall, found.union) == (500 * SECOND, 20 * SECOND)


def test_a_turn_is_clipped_where_a_later_record_shows_that_it_went_on() -> None:  # T9
    went_on = spent([turn(1, 10, 130)], [], at(0), at(100))
    not_seen_again = spent([turn(1, 10, None, 40)], [], at(0), at(100))

    assert (went_on.agent, not_seen_again.agent) == (90 * SECOND, 30 * SECOND)
    assert (went_on.open_turns, not_seen_again.open_turns) == (0, 1)


def test_intervals_that_meet_share_no_instant() -> None:  # U19
    turns = [turn(1, 0, 100), turn(2, 30, 70)]

    parts = [spent(turns, [], at(a), at(b)).agent for a, b in ((0, 40), (40, 70), (70, 100))]

    assert sum(parts) == spent(turns, []).agent


def test_each_instant_in_tools_belongs_to_one_kind_by_priority() -> None:  # T13
    found = spent([turn(1, 0, 100)], [took(1, "execute", 0, 10), took(1, "delegate", 5, 15)])

    assert found.tools == {"delegate": 10 * SECOND, "execute": 5 * SECOND}


def test_model_time_has_bounds_only() -> None:  # T14
    found = spent([turn(1, 0, 100)], [took(1, "execute", 0, 60), took(1, MODEL, 60, 75)])

    assert (found.model_least, found.model_most) == (15 * SECOND, 40 * SECOND)
    assert spent([turn(1, 0, 100)], []).model_least is None
    assert spent([turn(1, 0, 100)], []).model_most is None


def test_a_silent_window_has_its_instrumented_share_beside_it() -> None:  # T16
    found = spent([turn(1, 0, 36_000)], [took(1, "execute", 0, 1200)])

    assert found.agent == 36_000 * SECOND
    assert found.share == pytest.approx(1 / 30)


def test_what_ends_before_it_starts_is_unavailable() -> None:  # T17
    found = spent([turn(1, 10, 5), Turn(1, "no time", at(9)), turn(1, 20, 30)], [took(1, "execute", 25, 24)])

    assert (found.agent, found.unavailable, found.instrumented) == (10 * SECOND, 3, 0)


def test_any_fraction_of_a_second_is_read() -> None:  # T19
    start = micros("2026-11-30T10:00:00Z")

    assert start is not None
    assert micros("2026-11-30T10:00:00.1234567Z") == start + 123_456
    assert micros("2026-11-30T11:00:00.5+01:00") == start + 500_000
    assert micros("no time") is None


INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8)


def instants(intervals: list[tuple[int, int]]) -> set[int]:
    return {i for start, end in intervals for i in range(start, end)}


@given(one=INTERVALS, other=INTERVALS, cut=st.integers(0, 60))
def test_the_arithmetic_of_intervals_is_that_of_their_instants(
    one: list[tuple[int, int]], other: list[tuple[int, int]], cut: int
) -> None:
    a, b = instants(one), instants(other)

    assert measure(one) == len(a)
    assert instants(merged(one)) == a
    assert instants(common(one, other)) == a & b
    assert instants(without(one, other)) == a - b
    assert instants(clipped(one, None, cut)) | instants(clipped(one, cut, None)) == a
    assert sum(shared_out({"read": one, "execute": other}).values()) == len(a | b)


@given(
    turns=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 90), st.integers(0, 60)), max_size=10),
    since=st.integers(0, 100),
    length=st.integers(0, 100),
)
def test_union_is_never_more_than_agent_time_envelope_or_wall(
    turns: list[tuple[int, int, int]], since: int, length: int
) -> None:  # T7
    given_turns = [turn(s, start, start + long) for s, start, long in turns]

    found = spent(given_turns, [], at(since), at(since + length))

    assert found.wall is not None
    assert found.union <= min(found.agent, found.envelope, found.wall)
    assert found.overlap == 0 or found.sessions > 1
