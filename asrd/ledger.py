"""Which statement of a model response counts, of all that were recorded. Pure; independent of the order they came in.

Every response is one logical request (rule U1). Its statements share a key: the native response id in the scope in
which it is unique. One whole statement is taken, never a maximum by field (U2); copies never add (U3). Who owns the
request (whose session it is shown under) is a question of lineage, apart from which figures are taken (U15).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from datetime import datetime

from msgspec import Struct

from asrd.moments import in_order


class Statement(Struct, frozen=True):
    """One recorded statement of a response. `session`: the index's number of the session it stands in."""

    session: int
    session_id: str
    seq: int
    output: int | None
    measured: bool
    secondary: bool
    copy_of: str | None
    model: str | None
    at: str | None
    started_at: str | None
    at_hand: bool = False
    """Of a copy: whether the session that it names is recorded."""
    namespace: str = ""
    """Of its session: what tells sessions of one id apart, the same in every store."""


class Told(Struct, frozen=True):
    """A response or request as one session tells it: its key, its session, and when."""

    key: str
    session: int
    at: str | None


Figures = tuple[object, ...]
"""A response's model and token figures."""


class Choice(Struct, frozen=True):
    """What the ledger says of one key.

    `counts`: the session whose statement is taken, None when none is. `owner`: the session the request belongs to, None when
    the owner is not recorded here (`owner_id` is its id then). `ambiguous`: statements that may be other requests under an
    equal id.
    """

    counts: int | None
    owner: int | None
    owner_id: str
    ambiguous: int = 0


def choose(
    statements: Iterable[Statement],
    derives: Callable[[int, int], bool],
    origins: Callable[[int], AbstractSet[int]] | None = None,
) -> Choice:
    """The choice for one key. `derives(a, b)`: session a says that it was forked, resumed or copied from b.

    `origins(a)`, where it is at hand: all b for which `derives(a, b)`; it is asked instead, once for each session, so that
    an id that thousands of sessions state takes no time by its square.

    Statements that cannot be of one response with the one that is taken, and are not related to it, own nothing (U14).
    Own statements beat copies, primary streams beat secondary ones, then the largest output (C2), then the last of the
    file. The owner is the session that a copy names, else the one from which the others derive, else the one that
    started first; equal starts fall back to the session id, so that the answer never depends on the order of arrival.

    A copy without figures of a session that is recorded, and does not state the request itself, counts as none: nothing is
    known of it but that it is not another request of that session.
    """
    ranked = sorted(statements, key=_rank)
    best = ranked[0]
    own = [s for s in ranked if s.copy_of is None and not s.secondary] or [s for s in ranked if s.copy_of is None]
    if not own:
        named = best.copy_of or ""
        at_hand = [s for s in ranked if s.session_id == named]
        counts = None if best.at_hand and not best.measured else best.session
        return Choice(counts, at_hand[0].session if at_hand else None, named)

    def comes_from(session: int, other: int) -> bool:
        return derives(session, other) if origins is None else other in origins(session)

    def one_with_best(s: Statement) -> bool:
        related = (
            s.session == best.session or comes_from(s.session, best.session) or comes_from(best.session, s.session)
        )
        return related or not _unlike(s, best)

    own, given = [s for s in own if one_with_best(s)], own
    numbers = {s.session for s in own}
    if origins is None:
        owners = [s for s in own if not any(derives(s.session, n) for n in numbers if n != s.session)] or own
    else:
        owners = [s for s in own if origins(s.session).isdisjoint(numbers)] or own
    owner = min(owners, key=lambda s: (in_order(s.started_at or "") or "~", s.session_id, s.namespace, s.session))
    related = {s.session for s in own if comes_from(s.session, owner.session)}
    others = [s for s in given if s.session != owner.session and s.session not in related and _unlike(s, owner)]
    return Choice(best.session, owner.session, owner.session_id, len(others))


def unmarked(
    mine: Iterable[tuple[str, Figures]], theirs: Iterable[tuple[str, Figures]], known: AbstractSet[str]
) -> list[tuple[str, str]]:
    """Responses of a turn that two sessions have, which are one's: pairs of their keys, `mine` first (X23).

    Both in the order of their streams, with model and figures. `known`: the keys that stand in that turn of the session
    they are looked for in: those are told apart already. A response with an id of its own is never matched, and each is
    matched with one. The evidence is the turn's native id, which the caller has seen in both.
    """
    left: dict[Figures, list[str]] = {}
    for key, told in theirs:
        if key not in known:
            left.setdefault(told, []).append(key)
    found: list[tuple[str, str]] = []
    for key, told in mine:
        if key.count("\x1f") >= 2 and (candidates := left.get(told)):
            found.append((key, candidates.pop(0)))
    return found


class Response(Struct, frozen=True):
    """A response as one session states it, with what tells it from others where its id is of its session alone.

    `mark`: made from what cannot change of it, wherever it stands; None where the harness's recorder makes none.
    """

    key: str
    mark: str | None
    turn: str | None
    told: Figures


def relayed(
    lost: Iterable[Response], stated: Iterable[Response], known: AbstractSet[str]
) -> list[tuple[Response, Response]]:
    """Copies that the session they name does not state itself, with the responses that they are copies of.

    A fork of a fork begins with lines that its origin copied too, and can only say whose it copied last. `lost`: such copies
    of one session, in order. `stated`: own statements of others, in order: any with an equal mark, and those of sessions it
    comes from or that have one of its turns, whose id is one anywhere. `known`: the keys it states already. A mark must be
    one's alone; else the native turn, model and figures are equal, and each is taken once.
    """
    marked: dict[str, list[Response]] = {}
    turns: dict[tuple[str | None, Figures], list[Response]] = {}
    for one in {one.key: one for one in stated}.values():  # a copy of it, too, has its key
        if one.key in known:
            continue
        if one.mark is not None:
            marked.setdefault(one.mark, []).append(one)
        elif one.turn is not None:
            turns.setdefault((one.turn, one.told), []).append(one)
    found: list[tuple[Response, Response]] = []
    for one in lost:
        if one.mark is not None:
            same = marked.get(one.mark, [])
            if len({s.key for s in same}) == 1:
                found.append((one, same[0]))
        elif candidates := turns.get((one.turn, one.told)):
            found.append((one, candidates.pop(0)))
    return found


def summarised(requests: Iterable[Told], forks: Iterable[Told]) -> list[tuple[Told, Told]]:
    """Requests for the summary of a compaction that stand in no line, with the response of a fork that each of them is.

    `requests`: of one session. `forks`: the own, measured responses of those that the harness started from it to write
    summaries, as their names say. That a fork belongs to the session is the evidence; its time only tells for which of the
    compactions it was made: the last one between the compaction before and this one.
    """
    made = sorted((t for t in forks if t.at is not None), key=lambda t: (in_order(t.at or "") or "", t.key))
    found: list[tuple[Told, Told]] = []
    last = ""
    for one in sorted(requests, key=lambda t: (in_order(t.at or "") or "", t.key)):
        until = in_order(one.at) if one.at is not None else None
        if until is None:
            continue
        inside = [t for t in made if last < (in_order(t.at or "") or "") <= until]
        if inside:
            found.append((one, inside[-1]))
        last = until
    return found


FAR = 600.0
"""Seconds between the times of two statements from which on they cannot be of one response: its lines are written as they
come, and the time of the last may be given."""


def _unlike(a: Statement, b: Statement) -> bool:
    """Whether two statements differ in what cannot change between statements of one response (U14, C7)."""
    if a.model != b.model:
        return True
    if a.at is None or b.at is None:
        return a.at is not b.at
    try:
        apart = datetime.fromisoformat(a.at.replace("Z", "+00:00")) - datetime.fromisoformat(
            b.at.replace("Z", "+00:00")
        )
    except (ValueError, TypeError):
        return a.at != b.at
    return abs(apart.total_seconds()) > FAR


def _rank(s: Statement) -> tuple[bool, bool, bool, int, str, str, int, int]:
    kind = (s.copy_of is not None, s.secondary, not s.measured)
    return (*kind, -(s.output or 0), s.session_id, s.namespace, -s.seq, s.session)
