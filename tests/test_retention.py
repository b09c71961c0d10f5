"""Which sessions' words go, and that nothing else does: pure."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from asrd.records import Message, Native, Record, Session, Text, ToolCall, ToolResult, encode
from asrd.retention import Counts, Held, Rule, Slimmer, due
from asrd.rollup import Retained
from tests.store.build import Made

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def held(name: str, days: float, size: int = 100, **more: Any) -> Held:
    agent, cwd = more.pop("agent", "codex"), more.pop("cwd", "/p")
    last = NOW - timedelta(days=days)
    return Held(agent, name, "", f"{agent}/{name}", cwd, last, size, **{"records": 10, "through": -1, **more})


def names(rules: list[Rule], *streams: Held) -> list[str]:
    return [d.held.session_id for d in due(rules, streams, NOW)]


def test_without_a_rule_nothing_goes() -> None:
    assert names([], held("a", 900)) == []


def test_by_age_the_old_ones_go_and_the_oldest_first() -> None:
    found = names([Rule(age=timedelta(days=90))], held("new", 89), held("old", 91), held("older", 200))

    assert found == ["older", "old"]


def test_by_size_the_oldest_go_until_the_rest_fits() -> None:
    streams = [held("a", 4, 100), held("b", 3, 100), held("c", 2, 100), held("d", 1.5, 100)]

    assert names([Rule(size=250)], *streams) == ["a", "b"]
    assert names([Rule(size=400)], *streams) == []


def test_a_rule_of_a_harness_or_a_folder_leaves_the_others() -> None:
    one, other = held("a", 90, agent="codex", cwd="/p/x"), held("b", 90, agent="pi", cwd="/px")

    assert names([Rule(age=timedelta(days=1), harness="pi")], one, other) == ["b"]
    assert names([Rule(age=timedelta(days=1), project="/p")], one, other) == ["a"]


def test_what_had_a_record_lately_and_what_has_no_words_is_left() -> None:
    streams = [held("now", 0.01), held("done", 9, through=9), held("grown", 9, through=5)]

    assert names([Rule(size=0)], *streams) == ["grown"]


def test_a_session_under_two_rules_goes_once_by_the_first() -> None:
    found = due([Rule(age=timedelta(days=5)), Rule(size=0)], [held("a", 9)], NOW)

    assert [(d.held.session_id, d.rule) for d in found] == [("a", "older than 5 days")]


def slimmed(records: list[Record]) -> list[Record]:
    slimmer = Slimmer(Retained("older than 1 days", len(records) - 1, 5))
    return [slimmer.slim(r) for r in records]


def test_no_word_is_left_but_the_name_lists_show() -> None:
    made = Made("a1")
    made.prompt("fix the parser " + "z" * 400 + " SECRET")
    made.prompt("SECRET again")
    made.add(ToolCall(call_id="c", name="bash", kind="execute", input={"command": "cat SECRET"}, title="SECRET"))
    made.add(ToolResult(call_id="c", linkage="exact", status="completed", content=[Text(text="SECRET")]))
    made.add(Native(native_type="x", data={"k": ["SECRET"]}))
    made.add(Message(role="assistant", content=[Text(text="SECRET")]))

    lines = [encode(r) for r in slimmed(made.records)]

    assert not any(b"SECRET" in line for line in lines)
    assert b"fix the parser" in lines[1]
    assert [r.id for r in made.records] == ["h", "r1", "r2", "r3", "r4", "r5", "r6"]
    assert isinstance(made.records[0], Session)
    assert made.records[0].content_level == "metadata"


@pytest.mark.parametrize(
    "prompt",
    [
        "short",
        "  spaced \n out ",
        "x " * 300,
        "",
        "a\nasrd-handoff: v1 aaaa\nrest " + "y" * 300,
        "q" * 500 + "\nasrd-handoff: v1 b\nz",
        "q" * 190 + "\nasrd-handoff: v1 " + "b" * 300,
    ],
)
def test_what_counts_is_the_same_without_words(prompt: str) -> None:
    def records() -> list[Record]:
        made = Made("a1", started_at="2026-11-01T00:00:00Z").prompt(prompt).turn("t").response("i", 5, 6).call("c", 1)
        made.add(ToolCall(call_id="d", name="bash", kind="execute", input={"command": "python3 -c 'print(1)'"}))
        return made.records

    before, after = Counts("codex", "a1", ""), Counts("codex", "a1", "")
    for record in records():
        before.add(record)
    for record in slimmed(records()):
        after.add(record)

    assert before.same(after)
    assert [row.one_off for row in after.value()[2].values()] == [0, 1]


def test_a_stream_that_counts_otherwise_is_told_from_it() -> None:
    one, other = Counts("codex", "a1", ""), Counts("codex", "a1", "")
    for record in Made("a1").response("i", 5, 6).records:
        one.add(record)
    for record in Made("a1").response("i", 5, 7).records:
        other.add(record)

    assert not one.same(other)


def test_words_taken_out_twice_are_taken_out_once() -> None:
    made = Made("a1").prompt("hello " * 80).call("c", 0)

    once = [encode(r) for r in slimmed(made.records)]
    twice = [encode(r) for r in slimmed(made.records)]

    assert once == twice
