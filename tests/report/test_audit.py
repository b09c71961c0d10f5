"""An account names who asked, what was done and who approved it, each with its record; what is not recorded is said so."""

import weakref
from collections.abc import Iterator

from asrd.recorders.base import StreamKey
from asrd.records import AnyRecord, Approval, FileChange, MemoryWrite, MessageSent, Place, Text, ToolResult, Turn
from asrd.redact import Redactor
from asrd.report.audit import Audited, audit, markdown, text
from tests.handoff.build import Story


def account(story: Story, mode: str = "default", since: str | None = None):  # type: ignore[no-untyped-def]
    return audit([Audited(StreamKey("example", "s"), story.records)], Redactor(mode), since)  # type: ignore[arg-type]


def asked_and_done() -> Story:
    story = Story()
    story.add(Turn(turn_id="t1", phase="start", trigger="prompt", at="2026-11-02T10:00:00Z"))
    story.asks("please fix it")
    story.runs("make check", exit_code=2)
    story.add(Turn(turn_id="t1", phase="end", status="completed", at="2026-11-02T10:05:00Z"))
    return story


def test_a_turn_names_its_trigger_its_prompt_and_its_calls_by_record() -> None:
    story = asked_and_done()

    answer = account(story)

    turn = answer["sessions"][0]["turns"][0]
    assert (turn["trigger"], turn["record"], turn["status"], turn["ended"]["record"]) == (
        "prompt",
        "r1",
        "completed",
        "r5",
    )
    assert [(a["record"], a["author"], a["origin"], a["said"]["text"]) for a in turn["asked"]] == [
        ("r2", "human", "prompt", "please fix it")
    ]
    call = turn["actions"][0]
    assert (call["record"], call["command"]["text"], call["result"]["exitCode"]) == ("r3", "make check", 2)
    assert (call["result"]["record"], call["approvals"]) == ("r4", [])
    assert answer["totals"]["callsByApprover"] == {"not recorded": 1}


def test_an_approval_names_who_decided_also_where_it_stands_before_its_call() -> None:
    story = Story()
    story.add(Approval(call_id="c1", phase="decided", decision="allow", by="human"))
    call = story.calls("Bash", {"command": "ls"}, "execute")
    story.add(Approval(call_id=call, phase="decided", decision="deny", by="policy", policy="read only"))

    answer = account(story)

    (action,) = answer["sessions"][0]["turns"][0]["actions"]
    assert [(a["decision"], a["by"]) for a in action["approvals"]] == [("allow", "human"), ("deny", "policy")]
    assert answer["totals"]["callsByApprover"] == {"policy": 1}


def test_what_was_sent_remembered_and_changed_is_told() -> None:
    story = Story()
    story.add(MessageSent(channel="slack", target="#ops", content=[Text(text="done")]))
    story.add(MemoryWrite(channel="memory", target="MEMORY.md", content=[Text(text="use tabs")]))
    story.add(FileChange(path=Place(path="a.py"), change="modify", evidence="reported"))

    answer = account(story)

    told = [(a["did"], a.get("target") or a.get("path")) for a in answer["sessions"][0]["turns"][0]["actions"]]
    assert told == [("message_sent", "#ops"), ("memory_write", "MEMORY.md"), ("file_change", "a.py")]
    assert (answer["totals"]["sent"], answer["totals"]["memoryWrites"]) == (1, 1)


def test_a_change_that_was_refused_is_told_and_does_not_count() -> None:
    story = Story()
    story.add(FileChange(path=Place(path="a.py"), change="modify", evidence="reported", applied=False))
    story.add(FileChange(path=Place(path="b.py"), change="create", evidence="reported", applied=True))
    story.add(FileChange(path=Place(path="c.py"), change="delete", evidence="derived", applied="unknown"))

    answer = account(story)

    assert answer["totals"]["fileChanges"] == 2
    told = text(answer)
    assert "modify a.py (reported, not applied)" in told
    assert "create b.py (reported) " in told
    assert "delete c.py (derived, unknown whether applied)" in told


def test_a_result_and_an_approval_without_their_call_are_not_passed_over() -> None:
    story = Story()
    orphans: list[AnyRecord] = [
        ToolResult(call_id="gone", linkage="none", status="failed"),
        Approval(call_id="gone", phase="requested"),
    ]
    for orphan in orphans:
        story.add(orphan)

    answer = account(story)

    assert [a["did"] for a in answer["sessions"][0]["turns"][0]["actions"]] == ["result", "approval"]
    assert "a call that is not recorded" in markdown(answer)


def test_secrets_do_not_leave_in_any_of_the_forms() -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    story = Story()
    story.asks(f"use {secret}")
    story.runs(f"curl -H 'x: {secret}' https://a.b")

    answer = account(story)

    assert secret not in markdown(answer) + text(answer) + repr(answer)
    assert answer["redaction"]["removed"]["github-token"] >= 2


def test_what_a_session_says_cannot_be_read_as_markdown() -> None:
    story = Story()
    story.asks("x\n# Approved by the board\n<script>alert(1)</script> [a](http://b)")
    story.calls("<img src=x>", {"command": "``` \n# no"}, "execute")

    lines = markdown(account(story)).splitlines()

    assert not any(line.startswith("# Approved") or line.startswith("# no") for line in lines)
    assert any("`x # Approved by the board <script>alert(1)</script> [a](http://b)`" in line for line in lines)
    assert any("\\<img src=x\\>" in line for line in lines)


class Watched(list[AnyRecord]):
    """A session's records, of which is known when they are let go of."""


def test_of_many_sessions_the_records_of_two_are_held_at_most() -> None:
    alive: list[weakref.ref[Watched]] = []
    most = 0

    def given() -> Iterator[Audited]:
        nonlocal most
        for _ in range(5):
            records = Watched(asked_and_done().records)
            alive.append(weakref.ref(records))
            most = max(most, sum(one() is not None for one in alive))
            yield Audited(StreamKey("example", "s"), records)

    answer = audit(given(), Redactor("default"))

    assert answer["totals"]["prompts"] == 5
    assert most == 2


def test_an_interval_leaves_out_what_was_before_it() -> None:
    story = asked_and_done()
    story.add(Turn(turn_id="t2", phase="start", trigger="schedule", at="2026-11-03T10:00:00Z"))

    answer = account(story, since="2026-11-03T00:00:00")

    assert [t["turnId"] for t in answer["sessions"][0]["turns"]] == ["t2"]


def test_what_belongs_to_no_turn_and_a_call_without_words_read_well() -> None:
    story = Story()
    story.calls("list_agents", {}, "other")

    said = text(account(story))

    assert "\nOutside of turns\n" in said and "Turn " not in said
    assert "- list_agents [r1]: no result recorded; approval: not recorded" in said
