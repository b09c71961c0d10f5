"""One place for every session: the relations that hold, without cycles, and without the far one of two ancestors.

Invariants
    - Every session has at most one place; no session is above itself.
    - Where A, B and C are A→B→C, a stated A→C places nothing (V4): the nearest ancestor wins.
    - What is refused is told, with the reason. The result does not depend on the order of the edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from asrd.lineage.links import PLACE, SPAWN, Edge, Node

SURE = ("native-field", "native-path", "acp", "native-id-in-output", "handoff-token", "process")
"""Kinds of evidence, the strongest first."""
NEAR = ("spawned_by", "spawned", "forked_from", "resumed_from", "continued_from", "observes")
"""Relations, in the order in which they give a session its place."""


class Tree:
    """Where each session stands. `above`: its edge by child; `spawned_above`: by spawn relations only."""

    def __init__(self, edges: Iterable[Edge], nodes: Mapping[int, Node]) -> None:
        self.nodes = nodes
        self.refused: list[Edge] = []
        given = [e for e in edges if e.state == "edge" and e.relation in PLACE]
        self.spawned_above = self._placed([e for e in given if e.relation in SPAWN])
        started = set(self.spawned_above)
        self.above = self._placed(
            [*self.spawned_above.values(), *(e for e in given if e.child not in started)],
        )
        self.below: dict[int, list[int]] = {}
        self.spawned_below: dict[int, list[int]] = {}
        for below, above in ((self.below, self.above), (self.spawned_below, self.spawned_above)):
            for child, edge in above.items():
                assert edge.parent is not None
                below.setdefault(edge.parent, []).append(child)

    def descendants(self, root: int) -> set[int]:
        """All that a session started, at any remove: by spawn relations only (U17)."""
        return reach(self.spawned_below, [root]) - {root}

    def shown_below(self, roots: Iterable[int]) -> set[int]:
        """The sessions of the trees below these, the roots too."""
        return reach(self.below, roots)

    def _placed(self, edges: list[Edge]) -> dict[int, Edge]:
        offered: dict[int, list[Edge]] = {}
        for edge in edges:
            assert edge.child is not None
            offered.setdefault(edge.child, []).append(edge)
        parents = {c: {e.parent for e in es if e.parent is not None} for c, es in offered.items()}
        placed: dict[int, Edge] = {}
        ranked = sorted((e for es in offered.values() for e in es), key=self._rank)
        waiting: dict[int, list[Edge]] = {}
        for edge in ranked:
            assert edge.child is not None
            waiting.setdefault(edge.child, []).append(edge)
        order = sorted(waiting, key=lambda c: self._rank(waiting[c][0]))
        for child in order:
            chosen = waiting[child]
            far = self._far(child, parents)
            near = [e for e in chosen if e.parent not in far] or chosen
            self._refuse(e for e in chosen if e.parent in far and e not in near)
            for edge in near:
                assert edge.parent is not None
                if child in placed:
                    if edge.parent != placed[child].parent:
                        self._refuse([edge], "another session is known to be above it")
                    elif placed[child].call_id is None and edge.call_id is not None:
                        placed[child] = replace(placed[child], call_id=edge.call_id)
                elif leads_to(placed, edge.parent, child):
                    self._refuse([edge], "a session would come from itself")
                else:
                    placed[child] = edge
        return placed

    def _far(self, child: int, parents: Mapping[int, set[int]]) -> set[int]:
        """Of a session's stated parents, those from which another of them comes."""
        mine = parents[child]
        if len(mine) < 2:
            return set()
        far: set[int] = set()
        for near in mine:
            seen: set[int] = {child}
            front = [near]
            while front:
                for above in parents.get(front.pop(), ()):
                    if above not in seen:
                        seen.add(above)
                        front.append(above)
            far |= mine & (seen - {near})
        return far if far != mine else set()

    def _refuse(self, edges: Iterable[Edge], why: str = "a nearer session stands between") -> None:
        known = {(e.stated_by, e.seq) for e in self.refused}
        self.refused += [replace(e, state="refused", why=why) for e in edges if (e.stated_by, e.seq) not in known]

    def _rank(self, edge: Edge) -> tuple[object, ...]:
        assert edge.child is not None and edge.parent is not None
        return (
            NEAR.index(edge.relation),
            SURE.index(edge.evidence) if edge.evidence in SURE else len(SURE),
            self.nodes[edge.child].key,
            self.nodes[edge.parent].key,
            edge.call_id is None,
            self.nodes[edge.stated_by].key if edge.stated_by in self.nodes else ("", "", ""),
            edge.seq,
        )


def leads_to(placed: Mapping[int, Edge], start: int, goal: int) -> bool:
    """Whether going up from a session comes to another."""
    at: int | None = start
    while at is not None:
        if at == goal:
            return True
        at = placed[at].parent if at in placed else None
    return False


def reach(below: Mapping[int, Iterable[int]], roots: Iterable[int]) -> set[int]:
    """The roots and all below them."""
    found = set(roots)
    front = list(found)
    while front:
        for child in below.get(front.pop(), ()):
            if child not in found:
                found.add(child)
                front.append(child)
    return found
