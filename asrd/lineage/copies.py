"""Which session another's records come from: by fork, resume, copy or a start with the parent's history. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

OWNERS = frozenset({"forked_from", "resumed_from", "copies", "spawned_by"})
"""Relations by which the first of two sessions with equal records owns them (C4, C6, P3)."""


def derives(a: int, b: int, stated: Callable[[int], Iterable[int]]) -> bool:
    """Whether session a says, at any remove, that it comes from session b. A cycle is walked once.

    `stated(n)`: the recorded sessions that session n says it comes from.
    """
    seen: set[int] = {a}
    front = [a]
    while front:
        for other in stated(front.pop()):
            if other == b:
                return True
            if other not in seen:
                seen.add(other)
                front.append(other)
    return False


def origins(a: int, stated: Callable[[int], Iterable[int]]) -> frozenset[int]:
    """Every session that session a comes from, at any remove, but itself."""
    seen: set[int] = {a}
    front = [a]
    while front:
        for other in stated(front.pop()):
            if other not in seen:
                seen.add(other)
                front.append(other)
    return frozenset(seen - {a})
