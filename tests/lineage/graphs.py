"""Small graphs of sessions: `node("a")`, `says("b", "forked_from", "a")`, and what comes of them."""

import random
from collections.abc import Iterable

from asrd.lineage import Call, Edge, Links, Node, Statement, Tree

AT = "2026-11-30T10:{:02d}:00Z"


def number(name: str) -> int:
    """A number by name; not in the order of names, as in an index."""
    return sum(ord(c) * 131**i for i, c in enumerate(name)) % 9973


def node(name: str, started: int | None = None, **more: object) -> Node:
    at = None if started is None else AT.format(started)
    return Node(number(name), "pi", name, started_at=at, **more)  # type: ignore[arg-type]


def says(
    by: str, relation: str, target: str, kind: str = "native-field", seq: int | None = None, **more: object
) -> Statement:
    seq = number(f"{relation}{target}{kind}") if seq is None else seq
    return Statement(number(by), seq, relation, "pi", target, kind=kind, **more)  # type: ignore[arg-type]


def call(by: str, ident: str, at: int, result: int | None, kind: str = "execute") -> Call:
    return Call(number(by), ident, AT.format(at), None if result is None else AT.format(result), kind)


Item = Node | Statement | Call


def graph(items: Iterable[Item], chance: random.Random | None = None) -> Links:
    links = Links()
    order = list(items)
    if chance is not None:
        chance.shuffle(order)
    for item in order:
        if isinstance(item, Node):
            links.add_session(item)
        elif isinstance(item, Statement):
            links.add(item)
        else:
            links.add_call(item)
    return links


def named(links: Links, edge: Edge) -> tuple[str | None, str, str | None, str]:
    """An edge as (child, relation, parent, state)."""
    name = {n: links.nodes[n].session_id for n in links.nodes}
    return (name.get(edge.child or -1), edge.relation, name.get(edge.parent or -1), edge.state)


def edges(items: Iterable[Item]) -> list[tuple[str | None, str, str | None, str]]:
    links = graph(items)
    return [named(links, e) for e in links.edges()]


def places(items: Iterable[Item], chance: random.Random | None = None) -> dict[str, str]:
    """The parent of each session that has one, by name."""
    links = graph(items, chance)
    given = links.edges()
    if chance is not None:
        chance.shuffle(given)
    tree = Tree(given, links.nodes)
    return {links.nodes[c].session_id: links.nodes[e.parent or -1].session_id for c, e in tree.above.items()}
