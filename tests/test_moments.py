"""Times compare as moments, whatever digits and zone they were written with (T19, U19)."""

import sqlite3
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrd.moments import before, in_order, sql_before, sql_from, utc, within

START = datetime(2026, 11, 30, 9, 59, 58, tzinfo=UTC)


class Time:
    """A moment in nanoseconds after START, as one of the texts that say it."""

    def __init__(self, nanos: int, digits: int, minutes: int, zulu: bool) -> None:
        self.nanos = nanos
        whole, rest = divmod(nanos, 10**9)
        moment = START + timedelta(seconds=whole)
        shown = f"{rest:09d}".rstrip("0")
        fraction = "." + shown.ljust(digits, "0") if shown or digits else ""
        local = moment.astimezone(timezone(timedelta(minutes=minutes)))
        offset = "Z" if zulu and not minutes else f"{local:%z}"[:3] + ":" + f"{local:%z}"[3:]
        self.text = f"{local:%Y-%m-%dT%H:%M:%S}{fraction}{offset}"


instants = (
    st.integers(0, 4).map(lambda s: s * 10**9)
    | st.integers(0, 4 * 10**3).map(lambda ms: ms * 10**6)
    | st.integers(0, 4 * 10**9)
)
written = st.builds(Time, instants, st.integers(0, 9), st.sampled_from([0, 0, 120, -330, 45]), st.booleans())


@given(written, written)
def test_texts_sort_as_the_moments_they_say(a: Time, b: Time) -> None:
    one, other = in_order(a.text), in_order(b.text)

    assert one is not None and other is not None
    assert (one < other, one == other) == (a.nanos < b.nanos, a.nanos == b.nanos)
    assert before(utc(a.text) or "", utc(b.text) or "") == (a.nanos < b.nanos)


@given(st.lists(written, max_size=8), written)
def test_sql_parts_times_at_a_bound_as_their_moments_do(times: list[Time], cut: Time) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (nanos, at)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(t.nanos, utc(t.text)) for t in times])
    bound = in_order(cut.text)
    assert bound is not None

    (later, first), (earlier, second) = sql_from("at", bound), sql_before("at", bound)

    def asked(sql: str, values: list[str]) -> list[int]:
        return sorted(r[0] for r in db.execute(f"SELECT nanos FROM t WHERE {sql}", values))

    assert asked(later, first) == sorted(t.nanos for t in times if t.nanos >= cut.nanos)
    assert asked(earlier, second) == sorted(t.nanos for t in times if t.nanos < cut.nanos)


@given(written, written, written)
def test_an_interval_is_half_open(time: Time, since: Time, until: Time) -> None:
    assert within(time.text, since.text, until.text) == (since.nanos <= time.nanos < until.nanos)


@given(written)
def test_the_index_keeps_the_moment(time: Time) -> None:
    kept = utc(time.text)

    assert kept is not None and kept.endswith("Z")
    assert in_order(kept) == in_order(time.text)
    if time.text.endswith("Z"):
        assert kept == time.text  # as it was written


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("2026-11-30", "2026-11-30T00:00:00"),
        ("2026-11-30T10:00Z", "2026-11-30T10:00:00"),
        ("2026-11-30 10:00:00.1234567", "2026-11-30T10:00:00.1234567"),
        ("2026-11-30T10:00:00,5+0200", "2026-11-30T08:00:00.5"),
        ("2026-11-30T10:00:00.000Z", "2026-11-30T10:00:00"),
        ("soon", None),
        ("2026-11-31T10:00:00+02:00", None),
        ("", None),
    ],
)
def test_other_forms_of_a_time_and_what_is_none(text: str, key: str | None) -> None:
    assert in_order(text) == key


def test_what_has_no_time_lies_in_no_bounded_interval() -> None:
    assert within(None, None, None)
    assert not within(None, "2026-11-30", None)
    assert not within("soon", None, "2026-12-01")
    assert utc(None) is None and utc("soon") is None
