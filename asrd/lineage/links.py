"""Relations between sessions, from what streams state: resolved when both sides are recorded, judged by their evidence.

Invariants
    - The edges depend on the set of sessions and statements, never on the order in which they came.
    - A statement whose other side is not recorded is kept as `unresolved`, and becomes an edge when that side appears.
    - What does not prove a relation is `possible`: it is shown with its reason and places nothing in a tree.
    - No relation is made from time or from similar text. Times only take doubtful statements away.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from asrd.moments import in_order

SPAWN = frozenset({"spawned", "spawned_by"})
ORIGIN = frozenset({"forked_from", "resumed_from", "copies"})
"""Relations by which records of one session are those of another."""
PLACE = SPAWN | {"forked_from", "resumed_from", "continued_from", "observes"}
"""Relations that put a session below another in a tree."""

State = Literal["edge", "possible", "unresolved", "refused"]


class Node(Struct, frozen=True):
    """A recorded session: its number in the index, what names it, when it started, and its digest as handoff tokens say it.

    `alias`: another name that its harness gives it.
    """

    number: int
    agent: str
    session_id: str
    namespace: str = ""
    started_at: str | None = None
    secondary: bool = False
    digest: str = ""
    alias: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What orders sessions the same in every store."""
        return (self.agent, self.session_id, self.namespace)


class Call(Struct, frozen=True):
    """A tool call of a session: when it was made and when its result came; None = not known, or not yet."""

    session: int
    call_id: str
    at: str | None = None
    result_at: str | None = None
    kind: str | None = None


class Statement(Struct, frozen=True):
    """One relation as a stream states it. `by`: the number of the stating session, `seq` its record there.

    `of_session` names the session the relation is of where that is not the stating one (what asrd itself observed);
    `started_at` and `chained` are then the start of the observed process (RFC 3339), and whether the harness that the
    evidence names was an ancestor process. `digest`: of the target, for a handoff token, which names it by nothing else.
    """

    by: int
    seq: int
    relation: str
    agent: str
    session_id: str
    namespace: str = ""
    call_id: str | None = None
    kind: str | None = None
    field: str | None = None
    value: str | None = None
    of_agent: str | None = None
    of_session: str | None = None
    of_namespace: str = ""
    started_at: str | None = None
    chained: bool = False
    digest: str = ""


class Edge(Struct, frozen=True):
    """One relation between two sessions. `child`/`parent` are numbers, None when that side is not recorded."""

    child: int | None
    parent: int | None
    relation: str
    evidence: str | None
    field: str | None
    value: str | None
    call_id: str | None
    stated_by: int
    seq: int
    target_agent: str
    target_session: str
    target_namespace: str
    state: State = "edge"
    why: str | None = None


class Links:
    """The fold over sessions, statements and calls; `edges()` is its value. Any order of `add` gives the same."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self._statements: dict[tuple[int, int], Statement] = {}
        self._calls: dict[tuple[int, str], Call] = {}

    def add_session(self, node: Node) -> None:
        """A session is recorded."""
        self.nodes[node.number] = node

    def add(self, statement: Statement) -> None:
        """A stream states a relation; the same record again changes nothing."""
        self._statements[statement.by, statement.seq] = statement

    def add_call(self, call: Call) -> None:
        """A call that may have started another session."""
        self._calls[call.session, call.call_id] = call

    def statements(self) -> list[Statement]:
        """What was stated."""
        return list(self._statements.values())

    def edges(self) -> list[Edge]:
        """Every relation with its state, in an order that is the same for the same streams."""
        named: dict[tuple[str, str], list[Node]] = {}
        aliased: dict[tuple[str, str], list[Node]] = {}
        tokens: dict[str, Node] = {}
        for node in self.nodes.values():
            named.setdefault((node.agent, node.session_id), []).append(node)
            if node.digest:
                tokens[node.digest] = node
        for node in self.nodes.values():
            if node.alias and (node.agent, node.alias) not in named:
                aliased.setdefault((node.agent, node.alias), []).append(node)
        named |= aliased
        plain = [self._edge(s, named, tokens) for s in self._statements.values()]
        watched = {
            e.child: e.parent
            for e in sorted(plain, key=self._order)
            if e.relation == "observes" and e.child is not None and e.parent is not None
        }

        def seen(number: int | None) -> int | None:
            """The session itself, where a secondary stream of it says something."""
            return number if number is None else watched.get(number, number)

        shown = [
            e if e.relation == "observes" else replace(e, child=seen(e.child), parent=seen(e.parent)) for e in plain
        ]
        return sorted((self._judged(e) for e in shown), key=self._order)

    def _edge(self, said: Statement, named: dict[tuple[str, str], list[Node]], tokens: dict[str, Node]) -> Edge:
        if said.digest:
            target = tokens.get(said.digest)
        else:
            target = one_of(named.get((said.agent, said.session_id), []), said.namespace)
        stater = self.nodes.get(said.by)
        if said.of_session is not None:
            stater = one_of(named.get((said.of_agent or "", said.of_session), []), said.of_namespace)
        mine, theirs = (stater.number if stater else None), (target.number if target else None)
        child, parent = (theirs, mine) if said.relation == "spawned" else (mine, theirs)
        return Edge(
            child=child,
            parent=parent,
            relation=said.relation,
            evidence=said.kind,
            field=said.field,
            value=said.value,
            call_id=said.call_id,
            stated_by=said.by,
            seq=said.seq,
            target_agent=target.agent if target else said.agent,
            target_session=target.session_id if target else said.session_id,
            target_namespace=target.namespace if target else said.namespace,
        )

    def _judged(self, edge: Edge) -> Edge:
        """The edge with its state: rules V2, V3 and V9."""
        if edge.child is None or edge.parent is None:
            return replace(edge, state="unresolved", why="the other session is not recorded")
        if edge.child == edge.parent:
            return replace(edge, state="refused", why="a session does not come from itself")
        said = self._statements[edge.stated_by, edge.seq]
        if edge.evidence == "native-id-in-output":
            call = self._calls.get((edge.parent, edge.call_id or ""))
            started = self.nodes[edge.child].started_at
            if call is not None and before(started, call.at):
                return replace(edge, state="possible", why="it had started before the call that printed its id")
        elif edge.evidence == "process":
            return self._observed(edge, said)
        return edge

    def _observed(self, edge: Edge, said: Statement) -> Edge:
        """An inherited variable is an edge where a call of the outer session was open at the process's start (V2, V3)."""
        assert edge.parent is not None
        start = said.started_at
        if start is None:
            return replace(edge, state="possible", why="when the process started is not known")
        around = [
            c
            for c in self._calls.values()
            if c.session == edge.parent
            and c.at is not None
            and not before(start, c.at)
            and (before(start, c.result_at) if c.result_at is not None else said.chained)
            and (edge.call_id is None or c.call_id == edge.call_id)
        ]
        commands = [c for c in around if c.kind == "execute"] or around
        if not commands:
            return replace(edge, state="possible", why="no call of the outer session was open when the process started")
        inner = self.nodes[edge.child].started_at if edge.child is not None else None
        if all(before(inner, c.at) for c in commands):
            return replace(edge, state="possible", why="it had started before the call in which its process started")
        if edge.call_id is None and len(commands) == 1:
            return replace(edge, call_id=commands[0].call_id)
        return edge

    def _order(self, edge: Edge) -> tuple[object, ...]:
        def key(number: int | None) -> tuple[str, str, str]:
            return self.nodes[number].key if number is not None and number in self.nodes else ("", "", "")

        return (key(edge.child), key(edge.parent), edge.relation, edge.evidence or "", key(edge.stated_by), edge.seq)


def one_of(nodes: Iterable[Node], namespace: str) -> Node | None:
    """The session that is named: in that namespace, else the only primary one of that id, else the only one."""
    at_hand = list(nodes)
    for wanted in (
        [n for n in at_hand if n.namespace == namespace],
        [n for n in at_hand if not n.secondary],
        at_hand,
    ):
        if len(wanted) == 1:
            return wanted[0]
    return None


def before(one: str | None, other: str | None) -> bool:
    """Whether one moment (RFC 3339) is before the other; False when either is unknown or no time."""
    first, second = (in_order(t) if t is not None else None for t in (one, other))
    return first is not None and second is not None and first < second


def moment(text: str) -> datetime:
    """A time of any fractional precision (T19). Raises ValueError for what is none."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
