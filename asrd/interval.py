"""A receipt of a tree of sessions between two cutoffs: what was known of it at each, and the difference. Pure.

    before, after   the whole tree up to a cutoff: only records made before it are read
    delta           after - before

Invariants
    - A receipt is made of records whose time is before its cutoffs, and of links stated before them. Records that come later,
      in time, never change it; not even the one that ends a turn which was open at the cutoff.
    - Receipts of intervals that meet chain: `after` of the first is `before` of the second, and their deltas add up.
    - A turn that is open at a cutoff ends at its last record before it. That makes a lower bound, with the number of sessions
      it is so for (T12). Time before `since` that only later records show is in the delta, and told as `earlierSeconds`.

A record without a time has that of the record before it in its stream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
from msgspec import Struct

from asrd.ledger import Response, Told, choose, relayed, summarised, unmarked
from asrd.ledger import Statement as Stated
from asrd.lineage import OWNERS, Call, Edge, Links, Node, Statement, Tree, derives
from asrd.query import FIGURES, NAMES
from asrd.records import Record, Session
from asrd.rollup import COMPACTION, CONFLICT, RANDOM, CallRow, Fold, InferenceRow, LinkRow, SessionRow, TurnRow
from asrd.timing import MODEL, Took, Turn, clipped, measure, micros, seconds, spent, windows_of

STATES = frozenset({"openTurns", "unmeasuredRequests"})
"""Figures of how things stand: they fall when a turn ends, or when a request's figures come."""


class Recorded(Struct):
    """A session as it stands in the store now: its node, and its records in order."""

    node: Node
    records: Sequence[Record]


class _Known(Struct):
    """What is known of one session at a cutoff."""

    node: Node
    row: SessionRow
    inferences: dict[str, InferenceRow]
    calls: dict[str, CallRow]
    turns: dict[str, TurnRow]
    links: list[LinkRow]


class Snapshot(Struct):
    """A tree at a cutoff: its figures (names as in JSON; nested by one level), and what they were made from."""

    members: list[Node]
    figures: dict[str, Any]
    models: dict[tuple[str | None, str | None], dict[str, int]]
    turns: list[Turn]
    live: int


def made_before(record: Record, at: int | None, cutoff: int) -> tuple[bool, int | None]:
    """Whether a record was made before a cutoff, and its time for the record behind it."""
    text = record.started_at if isinstance(record, Session) else record.at
    now = micros(text)
    if now is None:
        now = at
    return now is None or now < cutoff, now


def known_at(one: Recorded, cutoff: int) -> _Known | None:
    """What is known of a session at a cutoff; None where it had not begun."""
    node = one.node
    row = SessionRow(node.agent, node.session_id, node.namespace)
    known = _Known(node, row, {}, {}, {}, [])
    fold = Fold(row)
    at: int | None = micros(node.started_at)
    if at is not None and at >= cutoff:
        return None
    for record in one.records:
        inside, at = made_before(record, at, cutoff)
        if not inside:
            continue
        fold.add(record)
    fold.close()
    _take(known, fold)
    return known if row.records else None


def _take(known: _Known, fold: Fold) -> None:
    """What the fold has found, put where the index would put it."""
    for key, row in fold.inferences.items():
        old = known.inferences.get(key)
        if old is None or row.measured >= old.measured:
            known.inferences[key] = row
    for row in fold.calls.values():
        old = known.calls.get(row.call_id)
        if old is None:
            known.calls[row.call_id] = row
        else:
            old.name, old.kind = row.name, row.kind
    for row in fold.results.values():
        call = known.calls.get(row.call_id)
        if call is not None:
            call.result_at, call.status, call.result_seq = row.result_at, row.status, row.result_seq
    for row in fold.turns.values():
        old = known.turns.get(row.turn_id)
        if old is None:
            known.turns[row.turn_id] = row
        else:
            old.started_at = old.started_at or row.started_at
            old.ended_at, old.status = row.ended_at or old.ended_at, row.status or old.status
            old.last_at = row.last_at or old.last_at
    known.links += fold.links
    fold.drain()


def snapshot(root: int, sessions: Iterable[Recorded], observed: Iterable[Recorded], cutoff: str) -> Snapshot:
    """The tree below a session at a cutoff. `observed`: asrd's own streams of what it saw of processes."""
    limit = micros(cutoff)
    assert limit is not None
    known = {k.node.number: k for one in sessions if (k := known_at(one, limit)) is not None}
    own = [k for one in observed if (k := known_at(one, limit)) is not None]
    links = Links()
    for one in known.values():
        links.add_session(one.node)
    for one in (*known.values(), *own):
        for said in stated(one):
            links.add(said)
        for call in one.calls.values():
            links.add_call(Call(one.node.number, call.call_id, call.at, call.result_at, call.kind))
    edges = links.edges()
    tree = Tree(edges, links.nodes)
    members = sorted(({root} | tree.descendants(root)) & set(known), key=lambda n: known[n].node.key)
    stating = {n: one for n, one in known.items() if n == root or not _seen(n, known, edges)}
    return _figures(stating, {n for n in members if n in stating}, _origins(known, edges), cutoff)


def _seen(number: int, known: dict[int, _Known], edges: list[Edge]) -> bool:
    """Whether a session is a secondary stream of another that is recorded."""
    return any(e.relation == "observes" and e.child == number and e.parent in known for e in edges)


def _origins(known: dict[int, _Known], edges: list[Edge]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for edge in edges:
        if edge.child in known and edge.parent in known:
            if edge.relation in OWNERS or edge.relation == "spawned":
                found.setdefault(edge.child, set()).add(edge.parent)
    return found


def stated(one: _Known) -> list[Statement]:
    """The relations that a session states: in its header, and in its links."""
    row, number = one.row, one.node.number
    found: list[Statement] = []
    if row.parent_session is not None:
        agent, relation = row.parent_agent or "", row.parent_relation or "spawned_by"
        found.append(
            Statement(
                number,
                0,
                relation,
                agent,
                row.parent_session,
                row.parent_namespace or "",
                row.parent_call,
                row.parent_evidence,
            )
        )
    found += [
            Statement(
                number, link.seq, link.relation, link.agent, link.session_id, link.namespace, link.call_id, link.kind,
                link.field, link.value, link.of_agent, link.of_session, link.of_namespace, link.started_at,
                bool(link.chained),
            )
        for link in one.links
    ]  # fmt: skip
    return found


def _figures(stating: dict[int, _Known], tree: set[int], origins: dict[int, set[int]], cutoff: str) -> Snapshot:
    """The figures of a tree, each response, call and turn once. `stating`: it, and all that is related to it."""

    def comes_from(a: int, b: int) -> bool:
        return derives(a, b, lambda n: origins.get(n, ()))

    recorded = {(one.node.agent, one.node.session_id) for one in stating.values()}

    def owned(kind: str) -> Iterator[tuple[int, Any, list[tuple[int, Any]]]]:
        """Of each key the session that owns it, the statement that counts, and all of them with their sessions."""
        groups: dict[str, list[tuple[int, Any]]] = {}
        for number, one in stating.items():
            for row in getattr(one, kind).values():
                groups.setdefault(row.key, []).append((number, row))
        for members in groups.values():
            if len(members) == 1 and members[0][1].copy_of is None:
                yield (*members[0], members)
                continue
            choice = choose((_said(stating[n], r, recorded) for n, r in members), comes_from)
            if choice.owner is not None and choice.counts is not None:  # else it is not recorded: not the tree's
                yield choice.owner, next(r for n, r in members if n == choice.counts), members

    def once(kind: str) -> list[tuple[int, Any]]:
        """Of each key that a session of the tree owns: that session, and the statement that counts."""
        return [(n, r) for n, r, _ in owned(kind) if n in tree]

    for owner, turn, members in owned("turns"):
        for number, row in members:
            if number != owner and row.copy_of is None and comes_from(number, owner):
                _unmark(stating[number], stating[owner], turn.turn_id)
    _relay(stating, comes_from)
    inside = {n: stating[n] for n in sorted(tree, key=lambda n: stating[n].node.key)}
    asked = _summaries(stating, list(owned("inferences")))
    turns = [
        Turn(n, r.started_at, r.ended_at or (r.last_at if r.status is not None else None), r.last_at)
        for n, r in once("turns")
    ]
    calls = once("calls")
    responses = [(n, r) for n, r in once("inferences") if (n, r.key) not in asked]
    took = [Took(n, r.kind or "other", r.at, r.result_at) for n, r in calls]
    took += [
        Took(n, MODEL, _back(r.at, r.duration_ms), r.at) for n, r in responses if r.duration_ms and r.duration_ms > 0
    ]
    time = spent(turns, took, None, cutoff)
    models: dict[tuple[str | None, str | None], dict[str, int]] = {}
    for _, r in responses:
        told = models.setdefault((r.model, r.effort), {"requests": 0, "unmeasuredRequests": 0})
        told["requests" if r.measured else "unmeasuredRequests"] += 1
        for name in FIGURES:
            if (amount := getattr(r, name)) is not None:
                told[NAMES.get(name, name)] = told.get(NAMES.get(name, name), 0) + amount
    live = {n for n, one in inside.items() if one.row.open_turn is not None}
    figures: dict[str, Any] = {
        "sessions": len(inside),
        "turns": len(turns),
        "completedTurns": sum(r.status == "completed" for _, r in once("turns")),
        "interruptedTurns": sum(r.status == "interrupted" for _, r in once("turns")),
        "openTurns": time.open_turns,
        "calls": len(calls),
        "failedCalls": sum(r.status == "failed" for _, r in calls),
        "compactions": sum(one.row.compactions for one in inside.values()),
        "agentSeconds": seconds(time.agent),
        "unionSeconds": seconds(time.union),
        "overlapSeconds": seconds(time.overlap),
        "envelopeSeconds": seconds(time.envelope),
        "instrumentedSeconds": seconds(time.instrumented),
        "toolSeconds": {k: seconds(v) for k, v in sorted(time.tools.items())},
        "requests": sum(m["requests"] for m in models.values()),
        "unmeasuredRequests": sum(m["unmeasuredRequests"] for m in models.values()),
    }
    for name in FIGURES:
        told = [m[NAMES.get(name, name)] for m in models.values() if NAMES.get(name, name) in m]
        figures[NAMES.get(name, name)] = sum(told) if told else None
    return Snapshot([one.node for one in inside.values()], figures, models, turns, len(live))


def _unmark(one: _Known, other: _Known, turn: str) -> None:
    """Responses in a turn of another session that it comes from are that one's, also where nothing marks them (X23)."""
    if one.node.agent != other.node.agent or one is other:
        return

    def told(rows: Iterable[InferenceRow]) -> list[tuple[str, tuple[Any, ...]]]:
        found = [r for r in rows if r.turn == turn and r.measured]
        return [(r.key, (r.model, *(getattr(r, f) for f in FIGURES))) for r in sorted(found, key=lambda r: r.seq)]

    mine = [r for r in one.inferences.values() if r.copy_of is None]
    known = {r.key for r in one.inferences.values() if r.turn == turn}
    for key, theirs in unmarked(told(mine), told(other.inferences.values()), known):
        row = one.inferences.pop(key)
        row.key, row.copy_of = theirs, other.node.session_id
        one.inferences[theirs] = row


def _relay(stating: dict[int, _Known], comes_from: Callable[[int, int], bool]) -> None:
    """Copies of what the session they name did not state itself are the first owner's (`ledger.relayed`)."""
    agents = {n: one.node.agent for n, one in stating.items()}
    owned = {(agents[n], r.key) for n, one in stating.items() for r in one.inferences.values() if r.copy_of is None}
    names = {(one.node.agent, one.node.session_id, r.key) for one in stating.values() for r in one.inferences.values()}
    for number, one in sorted(stating.items(), key=lambda item: item[1].node.key):
        agent = agents[number]
        lost = [r for r in one.inferences.values() if r.copy_of is not None and r.measured]
        lost = [r for r in lost if (agent, r.key) not in owned and (agent, r.copy_of, r.key) not in names]
        if not lost:
            continue
        marks, known = {r.mark for r in lost if r.mark is not None}, set(one.inferences)
        turns = {r.turn for r in lost if r.turn is not None and len(r.turn) >= RANDOM}
        rows: dict[str, str] = {}
        stated: list[Response] = []
        for other, its in sorted(stating.items(), key=lambda item: item[1].node.key):
            if agents[other] != agent or other == number:
                continue
            near = comes_from(number, other)
            for r in sorted(its.inferences.values(), key=lambda r: r.seq):
                if (
                    r.copy_of is None
                    and r.measured
                    and (r.mark in marks if r.mark is not None else near or r.turn in turns)
                ):
                    stated.append(_response(r))
                    rows[r.key] = its.node.session_id
        for mine, theirs in relayed(map(_response, sorted(lost, key=lambda r: r.seq)), stated, known):
            row = one.inferences.pop(mine.key)
            row.key, row.copy_of = theirs.key, rows[theirs.key]
            one.inferences[row.key] = row


def _plain(node: Node) -> tuple[str, str, str]:
    """The session as others name it, also where it went on otherwise elsewhere."""
    return (node.agent, node.session_id, node.namespace.partition(CONFLICT)[0])


def _response(r: InferenceRow) -> Response:
    return Response(r.key, r.mark, r.turn, (r.model, *(getattr(r, f) for f in FIGURES)))


def _summaries(stating: dict[int, _Known], responses: list[tuple[int, InferenceRow, Any]]) -> set[tuple[int, str]]:
    """Requests for summaries that a fork of the session made, and has lines of: by session and key."""
    asked: dict[int, list[Told]] = {}
    made: dict[tuple[str, str, str], list[Told]] = {}
    for owner, row, _ in responses:
        one = stating[owner]
        if row.request == COMPACTION and not row.measured:
            asked.setdefault(owner, []).append(Told(row.key, owner, row.at))
        elif row.measured and one.row.internal == "compact":
            of = (one.node.agent, one.row.parent_session or "", one.row.parent_namespace or "")
            made.setdefault(of, []).append(Told(row.key, owner, row.at))
    return {
        (owner, one.key)
        for owner, requests in asked.items()
        for one, _ in summarised(requests, made.get(_plain(stating[owner].node), ()))
    }


def _said(one: _Known, row: Any, recorded: AbstractSet[tuple[str, str]]) -> Stated:
    node = one.node
    output = row.output if isinstance(row, InferenceRow) else 0
    model = row.model if isinstance(row, InferenceRow) else getattr(row, "name", None)
    at = row.started_at if isinstance(row, TurnRow) else row.at
    measured = bool(row.measured) if isinstance(row, InferenceRow) else True
    return Stated(
        node.number, node.session_id, row.seq, output, measured, node.secondary, row.copy_of, model, at, node.started_at,
        row.copy_of is not None and (node.agent, row.copy_of) in recorded, node.namespace,
    )  # fmt: skip


def _back(at: str | None, ms: float) -> str | None:
    end = micros(at)
    if end is None:
        return None
    from_ = end - round(ms * 1000)
    return text_of(from_)


def text_of(moment: int) -> str:
    """Microseconds since 1970 as RFC 3339 UTC."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)).isoformat().replace("+00:00", "Z")


def receipt(
    root: Recorded, sessions: list[Recorded], observed: list[Recorded], since: str | None, until: str
) -> dict[str, Any]:
    """The receipt of a tree for [since, until). `since` None: from its beginning."""
    number = root.node.number
    after = snapshot(number, sessions, observed, until)
    before = snapshot(number, sessions, observed, since) if since is not None else Snapshot([], {}, {}, [], 0)
    figures = {name: _less(value, before.figures.get(name)) for name, value in after.figures.items()}
    earlier = 0
    if since is not None:
        low = micros(since)
        assert low is not None
        now, then = (windows_of(s.turns)[0] for s in (after, before))
        earlier = measure(clipped((w for one in now.values() for w in one), None, low)) - measure(
            clipped((w for one in then.values() for w in one), None, low)
        )
    figures["earlierSeconds"] = seconds(max(0, earlier))
    names = sorted(set(after.models) | set(before.models), key=lambda m: (m[0] or "", m[1] or ""))
    answer: dict[str, Any] = {
        "schema": "asrd.interval/1",
        "root": {"agent": root.node.agent, "sessionId": root.node.session_id, "namespace": root.node.namespace or None},
        "since": since,
        "until": until,
        "wallSeconds": None if since is None else seconds((micros(until) or 0) - (micros(since) or 0)),
        "lowerBound": after.live > 0 or after.figures["unmeasuredRequests"] > 0,
        "liveSessions": after.live,
        "before": _told(before, names),
        "after": _told(after, names),
        "delta": {
            **figures,
            "models": [
                {"model": m, "effort": e, **_less(after.models.get((m, e), {}), before.models.get((m, e), {}))}
                for m, e in names
            ],
        },
        "decreased": sorted(n for n, v in figures.items() if isinstance(v, int | float) and v < 0 and n not in STATES),
        "sessions": [
            {"agent": n.agent, "sessionId": n.session_id, "namespace": n.namespace or None, "startedAt": n.started_at}
            for n in after.members
        ],
    }
    answer["digest"] = hashlib.sha256(msgspec.json.encode(answer, order="sorted")).hexdigest()
    return answer


def _told(one: Snapshot, names: list[tuple[str | None, str | None]]) -> dict[str, Any]:
    return {
        **one.figures,
        "models": [{"model": m, "effort": e, **one.models[m, e]} for m, e in names if (m, e) in one.models],
    }


def _less(after: Any, before: Any) -> Any:
    """The difference, name by name; what was not there before was nothing."""
    if isinstance(after, dict):
        mine = cast("dict[str, Any]", after)
        other: dict[str, Any] = before or {}
        return {k: _less(mine.get(k), other.get(k)) for k in dict.fromkeys([*mine, *other])}
    if after is None:
        return None if before is None else -before
    return round(after - (before or 0), 6)
