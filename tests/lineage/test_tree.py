"""Each session has one place: the nearest ancestor, no cycle, the same for any order."""

import random

from hypothesis import given
from hypothesis import strategies as st

from asrd.lineage import Tree
from tests.lineage.graphs import Item, graph, node, number, places, says
from tests.lineage.test_links import graphs


def test_the_nearest_ancestor_wins() -> None:
    items: list[Item] = [node(n) for n in "abc"]
    items += [says("a", "spawned", "b"), says("b", "spawned", "c"), says("c", "spawned_by", "a", "process")]
    links = graph([*items[:-1], says("a", "spawned", "c")])

    tree = Tree(links.edges(), links.nodes)

    assert {links.nodes[c].session_id: e.parent for c, e in tree.above.items()} == {"b": number("a"), "c": number("b")}
    assert [e.why for e in tree.refused] == ["a nearer session stands between"]


def test_a_cycle_is_refused_and_told() -> None:
    items: list[Item] = [node(n) for n in "abc"]
    items += [says("a", "forked_from", "b"), says("b", "forked_from", "c"), says("c", "forked_from", "a")]
    links = graph(items)

    tree = Tree(links.edges(), links.nodes)

    assert len(tree.above) == 2
    assert [e.why for e in tree.refused] == ["a session would come from itself"]


def test_descendants_follow_spawns_and_no_forks() -> None:
    items: list[Item] = [node(n) for n in "rcfg"]
    items += [says("r", "spawned", "c"), says("c", "spawned", "g"), says("f", "forked_from", "r")]
    links = graph(items)

    tree = Tree(links.edges(), links.nodes)

    assert tree.descendants(number("r")) == {number("c"), number("g")}
    assert tree.shown_below([number("r")]) == {number(n) for n in "rcfg"}


def test_a_stronger_evidence_gives_the_place() -> None:
    items: list[Item] = [node(n) for n in "xyc"]

    found = places([*items, says("x", "spawned", "c", "native-id-in-output"), says("c", "spawned_by", "y")])

    assert found == {"c": "y"}


def test_what_is_only_possible_places_nothing() -> None:
    assert places([node("a"), node("b"), says("b", "spawned_by", "a", "process")]) == {}


@given(items=graphs(), seed=st.integers())
def test_places_are_the_same_for_any_order_and_never_a_cycle(items: list[Item], seed: int) -> None:
    found = places(items)

    again = places(items, random.Random(seed))

    assert again == found
    for start in found:
        at, steps = start, 0
        while at in found:
            at, steps = found[at], steps + 1
            assert steps <= len(found), f"{start} is above itself"
