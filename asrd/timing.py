"""Time that agents worked, from turns and from what took time in them. Pure; whole microseconds.

    window      a turn, [start, end); a turn whose end is not recorded ends at its last record, and makes a lower bound (T12)
    agent       the sum over sessions of the measure of each one's windows: agents at work side by side add (T1, T2)
    union       the measure of all windows together (T3, T18)
    overlap     agent - union (T4)
    envelope    from the first start to the last end, what lies between included (T5)
    wall        the length of the interval that was asked for, whatever was done in it (T6)
    instrumented  the part of the agents' time in which a call or a response that took time is recorded (T16)

Invariants
    - union <= agent, union <= envelope, and union <= wall for an interval, as everything is clipped to it (T7).
    - Two intervals that meet share no instant: both are half open (U19). Nothing is guessed: what is no time, or ends
      before it starts, is counted as unavailable (T17) and measured nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from msgspec import Struct

Interval = tuple[int, int]
"""[start, end) in microseconds since 1970."""

PRIORITY = ("delegate", "execute", "mcp", "fetch", "edit", "search", "read", "plan", "think", "other")
"""Where calls overlap, each instant belongs to the first of these kinds (T13). Version 1 of this order."""
MODEL = "model"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


class Turn(Struct, frozen=True):
    """A turn of a session, as recorded: RFC 3339 times. `end` None: `last` is the time of its last record."""

    session: int
    start: str | None
    end: str | None = None
    last: str | None = None


class Took(Struct, frozen=True):
    """Something in a session that took time: a call of that kind of tool, or a response (`MODEL`)."""

    session: int
    kind: str
    start: str | None
    end: str | None


class Spent(Struct):
    """Time of a selection, in microseconds; None = unknown."""

    agent: int = 0
    union: int = 0
    overlap: int = 0
    envelope: int = 0
    wall: int | None = None
    instrumented: int = 0
    tools: dict[str, int] = {}
    model_least: int | None = None
    """Recorded durations of responses; None where none is recorded (T14)."""
    model_most: int | None = None
    """What is left of the agents' time without tools: no model worked longer. None without any call's time."""
    sessions: int = 0
    turns: int = 0
    open_turns: int = 0
    unavailable: int = 0

    @property
    def share(self) -> float | None:
        """The instrumented share of the agents' time; None without any."""
        return self.instrumented / self.agent if self.agent else None


def micros(text: str | None) -> int | None:
    """Microseconds since 1970 of a time (RFC 3339, any number of fractional digits: T19); None for what is none."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).__sub__(_EPOCH) // _TICK


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The same instants, as intervals that neither meet nor overlap, in order."""
    found: list[Interval] = []
    for start, end in sorted(i for i in intervals if i[0] < i[1]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def measure(intervals: Iterable[Interval]) -> int:
    """How long these take together, each instant once."""
    return sum(end - start for start, end in merged(intervals))


def clipped(intervals: Iterable[Interval], since: int | None, until: int | None) -> list[Interval]:
    """What of them lies in [since, until)."""
    found: list[Interval] = []
    for start, end in intervals:
        start = start if since is None else max(start, since)
        end = end if until is None else min(end, until)
        if start < end:
            found.append((start, end))
    return found


def common(one: Iterable[Interval], other: Iterable[Interval]) -> list[Interval]:
    """The instants that lie in both."""
    a, b = merged(one), merged(other)
    found: list[Interval] = []
    i = j = 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < end:
            found.append((start, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return found


def without(one: Iterable[Interval], other: Iterable[Interval]) -> list[Interval]:
    """The instants of the first that lie not in the second."""
    taken = merged(other)
    found: list[Interval] = []
    for start, end in merged(one):
        at = start
        for a, b in taken:
            if b <= at or a >= end:
                continue
            if a > at:
                found.append((at, a))
            at = max(at, b)
        if at < end:
            found.append((at, end))
    return found


def shared_out(by_kind: dict[str, list[Interval]]) -> dict[str, int]:
    """How long each kind takes when each instant belongs to one kind, by `PRIORITY` (T13)."""
    taken: list[Interval] = []
    found: dict[str, int] = {}
    for kind in sorted(by_kind, key=lambda k: (PRIORITY.index(k) if k in PRIORITY else len(PRIORITY), k)):
        own = without(by_kind[kind], taken)
        if own:
            found[kind] = measure(own)
        taken = merged([*taken, *own])
    return found


def windows_of(turns: Iterable[Turn]) -> tuple[dict[int, list[Interval]], int, int]:
    """The windows of each session, how many turns are open, and how many have no usable time."""
    found: dict[int, list[Interval]] = {}
    still_open = unavailable = 0
    for turn in turns:
        start, end = micros(turn.start), micros(turn.end)
        if turn.end is None:
            still_open += 1
            end = micros(turn.last) if turn.last is not None else start
        if start is None or end is None or end < start:
            unavailable += 1
            continue
        found.setdefault(turn.session, []).append((start, end))
    return found, still_open, unavailable


def spent(turns: Iterable[Turn], took: Iterable[Took], since: str | None = None, until: str | None = None) -> Spent:
    """The time of these turns in [since, until), with what took time in them."""
    low, high = micros(since), micros(until)
    given = list(turns)
    windows, still_open, unavailable = windows_of(given)
    by_session = {s: inside for s, w in windows.items() if (inside := merged(clipped(w, low, high)))}
    everything = merged(w for one in by_session.values() for w in one)
    found = Spent(
        agent=sum(measure(w) for w in by_session.values()),
        union=measure(everything),
        envelope=everything[-1][1] - everything[0][0] if everything else 0,
        wall=max(0, high - low) if low is not None and high is not None else None,
        sessions=len(by_session),
        turns=len(given),
        open_turns=still_open,
        unavailable=unavailable,
    )
    found.overlap = found.agent - found.union
    tools: dict[int, dict[str, list[Interval]]] = {}
    models: dict[int, list[Interval]] = {}
    timed_tools = timed_model = False
    for one in took:
        start, end = micros(one.start), micros(one.end)
        if one.start is None or one.end is None:
            continue  # a call still open, or of an unknown time: not instrumented
        if start is None or end is None or end < start:
            found.unavailable += 1
            continue
        if one.kind == MODEL:
            timed_model = True
            models.setdefault(one.session, []).append((start, end))
        else:
            timed_tools = True
            tools.setdefault(one.session, {}).setdefault(one.kind, []).append((start, end))
    model = spent_on_tools = 0
    for session, window in by_session.items():
        inside = {kind: common(i, window) for kind, i in tools.get(session, {}).items()}
        for kind, amount in shared_out(inside).items():
            found.tools[kind] = found.tools.get(kind, 0) + amount
        used = [i for intervals in inside.values() for i in intervals]
        spent_on_tools += measure(used)
        thought = common(models.get(session, ()), window)
        model += measure(thought)
        found.instrumented += measure([*used, *thought])
    if timed_model:
        found.model_least = model
    if timed_tools:
        found.model_most = max(found.agent - spent_on_tools, model)
    return found


def seconds(amount: int | None) -> float | None:
    """Microseconds as seconds; None for None."""
    return None if amount is None else amount / 1_000_000
