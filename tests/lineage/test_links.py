"""Relations resolve in any order, and what does not prove them is possible, not more."""

import random

from hypothesis import given
from hypothesis import strategies as st

from asrd.lineage import Links, Node, Statement, before, one_of
from tests.lineage.graphs import AT, Item, call, edges, graph, node, says

NAMES = "abcdef"
RELATIONS = ("spawned", "spawned_by", "forked_from", "resumed_from", "continued_from", "observes", "copies")
KINDS = ("native-field", "native-path", "native-id-in-output", "process")


def test_a_session_is_found_by_the_other_name_its_harness_gives_it() -> None:
    links = Links()
    links.add_session(Node(1, "openclaw", "id-1", alias="agent:main:x"))
    links.add_session(Node(2, "openclaw", "seen", "acp", secondary=True))
    links.add(Statement(2, 5, "observes", "openclaw", "agent:main:x", kind="acp"))

    (edge,) = links.edges()
    assert (edge.child, edge.parent, edge.state) == (2, 1, "edge")

    links.add_session(Node(3, "openclaw", "id-2", alias="agent:main:x"))  # a reset keeps the key: two sessions have it
    (edge,) = links.edges()
    assert (edge.parent, edge.state) == (None, "unresolved")


def test_a_relation_is_unresolved_until_the_other_side_is_recorded() -> None:
    said = says("b", "forked_from", "a")

    alone = edges([node("b"), said])
    later = edges([node("b"), said, node("a")])

    assert alone == [("b", "forked_from", None, "unresolved")]
    assert later == [("b", "forked_from", "a", "edge")]


def test_spawned_is_said_by_the_parent_and_spawned_by_by_the_child() -> None:
    found = edges([node("a"), node("b"), says("a", "spawned", "b"), says("b", "spawned_by", "a")])

    assert found == [("b", "spawned", "a", "edge"), ("b", "spawned_by", "a", "edge")]


def test_a_session_does_not_come_from_itself() -> None:
    assert edges([node("a"), says("a", "forked_from", "a")]) == [("a", "forked_from", "a", "refused")]


def test_an_id_is_one_session_in_its_namespace_or_the_only_primary_one() -> None:
    native, seen, other = Node(1, "kimi", "s"), Node(2, "kimi", "s", "acp", secondary=True), Node(3, "kimi", "s", "p")

    assert one_of([native, seen], "") == native
    assert one_of([seen, other], "") == other
    assert one_of([seen, other], "acp") == seen
    assert one_of([Node(4, "kimi", "s", "q"), other], "") is None


def test_an_id_in_the_output_of_a_call_that_came_after_the_start_proves_nothing() -> None:
    said = says("out", "spawned", "in", "native-id-in-output", call_id="c1")

    started_in_it = edges([node("out"), node("in", started=5), call("out", "c1", 4, 6), said])
    began_before = edges([node("out"), node("in", started=3), call("out", "c1", 4, 6), said])

    assert started_in_it == [("in", "spawned", "out", "edge")]
    assert began_before == [("in", "spawned", "out", "possible")]


def observed(chained: bool = True, started: int | None = 5, call_id: str | None = None) -> Statement:
    at = None if started is None else AT.format(started)
    return says(
        "watch",
        "spawned_by",
        "out",
        "process",
        of_agent="pi",
        of_session="in",
        started_at=at,
        chained=chained,
        call_id=call_id,
    )


def test_an_inherited_variable_is_an_edge_where_a_call_of_the_outer_session_contains_the_start() -> None:
    links = graph([node("out"), node("in"), call("out", "c1", 4, 6), observed()])

    (edge,) = links.edges()

    assert (edge.state, edge.call_id) == ("edge", "c1")


def test_an_inherited_variable_without_an_open_call_is_possible() -> None:
    ended_before = edges([node("out"), node("in"), call("out", "c1", 1, 2), observed()])
    begun_after = edges([node("out"), node("in"), call("out", "c1", 7, 9), observed()])
    no_start = edges([node("out"), node("in"), call("out", "c1", 4, 6), observed(started=None)])

    assert {found[0][3] for found in (ended_before, begun_after, no_start)} == {"possible"}


def test_a_call_that_never_ended_contains_a_start_only_while_its_process_is_there() -> None:
    open_call = call("out", "c1", 1, None)

    there = edges([node("out"), node("in"), open_call, observed(chained=True)])
    gone = edges([node("out"), node("in"), open_call, observed(chained=False)])

    assert (there[0][3], gone[0][3]) == ("edge", "possible")


def test_a_call_id_in_the_environment_is_the_call() -> None:
    items: list[Item] = [node("out"), node("in"), call("out", "c1", 4, 6), call("out", "c2", 4, 6)]

    assert graph([*items, observed()]).edges()[0].call_id is None
    assert graph([*items, observed(call_id="c2")]).edges()[0].call_id == "c2"


def test_what_a_secondary_stream_states_is_its_sessions() -> None:
    primary, secondary = node("a"), Node(77, "pi", "a", "acp", secondary=True)
    sees = Statement(77, 2, "observes", "pi", "a", kind="acp")
    spawns = Statement(77, 9, "spawned", "pi", "b", kind="acp")

    links = graph([primary, secondary, node("b"), sees, spawns])

    assert {(e.relation, e.parent) for e in links.edges()} == {
        ("observes", primary.number),
        ("spawned", primary.number),
    }


def test_a_handoff_token_names_a_session_by_its_digest() -> None:
    token = Statement(1, -1, "continued_from", "", "", kind="handoff-token", digest="0123456789abcdef")
    links = Links()
    links.add_session(Node(1, "codex", "new"))
    links.add(token)
    assert links.edges()[0].state == "unresolved"

    links.add_session(Node(2, "claude-code", "old", digest="0123456789abcdef"))

    (edge,) = links.edges()
    assert (edge.child, edge.parent, edge.state, edge.target_session) == (1, 2, "edge", "old")


@st.composite
def graphs(draw: st.DrawFn) -> list[Item]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    items: list[Item] = [node(n, draw(st.none() | st.integers(0, 59))) for n in names]
    for by in names:
        for seq in range(draw(st.integers(0, 3))):
            relation, target = draw(st.sampled_from(RELATIONS)), draw(st.sampled_from(NAMES))
            items.append(says(by, relation, target, draw(st.sampled_from(KINDS)), seq, call_id="c1"))
    items += [call(n, "c1", draw(st.integers(0, 59)), draw(st.none() | st.integers(0, 59))) for n in names[:2]]
    return items


@given(items=graphs(), seed=st.integers())
def test_any_order_of_arrival_gives_the_same_edges(items: list[Item], seed: int) -> None:
    chance = random.Random(seed)

    wanted = graph(items).edges()
    given = graph([*items, *items], chance).edges()

    assert given == wanted


def test_times_of_any_precision_are_compared() -> None:
    assert before("2026-11-30T10:00:00.1234567Z", "2026-11-30T10:00:00.2Z")
    assert not before("no time", "2026-11-30T10:00:00Z")
    assert not before(None, "2026-11-30T10:00:00Z")
