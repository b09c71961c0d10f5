"""What an ACP connection becomes: messages, calls, turns, sessions; both protocols."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any, TypeVar

import pytest

from asrd.convert import convert_home
from asrd.recorders.acp import AGENTS, ALWAYS_LOST, Figures, usage_of
from asrd.recorders.base import StreamKey
from asrd.records import (
    AnyRecord,
    Approval,
    Capture,
    Compaction,
    Config,
    End,
    Error,
    FileChange,
    Gap,
    Inference,
    Link,
    Loss,
    Message,
    MessageSent,
    Native,
    Plan,
    PlanItem,
    Session,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
    encode_lines,
)
from asrd.validate import check
from tests.acp.losses import CASES, PAGE, header, lost, page
from tests.acp.play import Play, skipped, stream, streams
from tests.acp.truth import CAPTURES, Truth, told
from tests.recorders.arrivals import remembered

R = TypeVar("R")


def only(records: list[AnyRecord], kind: type[R]) -> list[R]:
    return [r for r in records if isinstance(r, kind)]


def said(records: list[AnyRecord]) -> list[tuple[str, str]]:
    """Who said what: the role, or `thinks`."""
    found: list[tuple[str, str]] = []
    for message in only(records, Message):
        for block in message.content:
            if isinstance(block, Thinking):
                found.append(("thinks", block.text or ""))
            elif isinstance(block, Text):
                found.append((message.role, block.text))
    return found


def turn(number: int) -> str:
    """The id of a turn: its connection's, and a number."""
    return f"20261130T000000.000000-1-aaaaaa/{number}"


# ---------------------------------------------------------------- messages


def test_pieces_of_a_message_become_one_record_at_its_end() -> None:
    play = Play().new()
    asked = play.prompt("hi")
    play.says("Hel")
    play.says("lo")
    play.answers(asked, stopReason="end_turn")

    records = stream(play)

    assert said(records) == [("user", "hi"), ("assistant", "Hello")]
    message = only(records, Message)[1]
    assert (message.at, message.at_source, message.turn_id) == ("2026-11-30T00:00:06Z", "recorder", turn(1))


def test_another_id_or_another_kind_begins_another_message() -> None:
    play = Play().new()
    play.prompt("hi")
    play.says("hm", "m1", "agent_thought_chunk")
    play.says("a", "m1")
    play.says("b", "m1")
    play.says("c", "m2")
    play.calls("c1", kind="read", rawInput={"path": "x"})
    play.says("d", "m2")
    play.meta("closed", by="client")

    messages = only(stream(play), Message)

    assert said(stream(play))[1:] == [("thinks", "hm"), ("assistant", "ab"), ("assistant", "c"), ("assistant", "d")]
    assert [m.message_id for m in messages[1:]] == ["m1", "m1", "m2", "m2"]


def test_what_tells_of_the_session_does_not_end_a_message() -> None:
    play = Play().new()
    asked = play.prompt("hi")
    play.says("one ")
    play.update("usage_update", used=10, size=100)
    play.update("available_commands_update", availableCommands=[])
    play.says("message")
    play.answers(asked, stopReason="end_turn")

    records = stream(play)

    assert said(records)[1:] == [("assistant", "one message")]
    assert skipped(play)["context-fill"] == 1
    assert only(records, Turn)[-1].meta["dev.asrd.acp"]["context"] == {"used": 10, "size": 100}  # pyright: ignore[reportOptionalSubscript]


def test_a_prompt_that_is_sent_back_appears_once() -> None:
    play = Play().new()
    asked = play.prompt("fix it")
    play.says("fix it", "u1", "user_message_chunk")
    play.answers(asked, stopReason="end_turn")

    assert said(stream(play)) == [("user", "fix it")]
    assert skipped(play)["prompt-echo"] == 1


def test_content_that_is_no_text_keeps_its_place() -> None:
    play = Play().new()
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "see"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///w/a.py", "name": "a.py"},
        {"type": "resource", "resource": {"uri": "mem:1", "text": "words"}},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    ]
    play.asks("session/prompt", sessionId="s1", prompt=blocks)

    (prompt,) = only(stream(play), Message)

    assert [type(b).__name__ for b in prompt.content] == ["Text", "Image", "File", "Resource", "Other"]


# ---------------------------------------------------------------- calls


def test_a_call_is_written_when_its_input_is_whole_and_its_result_points_to_it() -> None:
    play = Play().new()
    play.prompt("hi")
    play.calls("c1", kind="execute", status="pending", rawInput={})
    play.changes("c1", rawInput={"command": "make"}, status="in_progress")
    play.changes("c1", status="completed", rawOutput={"exit_code": 0, "stdout": "ok\n"})

    records = stream(play)

    (call,), (result,) = only(records, ToolCall), only(records, ToolResult)
    assert call.input == {"command": "make"}
    assert (result.call_id, result.linkage, result.status) == ("c1", "exact", "completed")
    assert result.exec is not None
    assert (result.exec.command, result.exec.exit_code, result.exec.stdout) == ("make", 0, "ok\n")


def test_what_changes_of_a_call_or_a_result_supersedes_it() -> None:
    play = Play().new()
    play.prompt("hi")
    play.calls("c1", kind="execute")
    play.says("meanwhile")
    play.changes("c1", rawInput={"command": "make"})
    play.changes("c1", status="failed", content=[])
    play.changes("c1", rawOutput="it broke")

    records = stream(play)

    first, second = only(records, ToolCall)
    assert (first.input, second.input, second.supersedes) == ({}, {"command": "make"}, first.id)
    early, late = only(records, ToolResult)
    assert (early.content, late.content, late.supersedes) == (None, [Text(text="it broke")], early.id)


def test_a_result_that_is_said_twice_is_one_record() -> None:
    play = Play().new()
    play.prompt("hi")
    play.calls("c1", kind="read", status="completed", rawOutput="text")
    play.changes("c1", status="completed", rawOutput="text")

    assert len(only(stream(play), ToolResult)) == 1
    assert skipped(play)["result-unchanged"] == 1


def test_a_diff_of_a_new_file_is_its_whole_content_and_a_piece_has_no_digest() -> None:
    play = Play().new()
    play.prompt("hi")
    new = {"type": "diff", "path": "/w/new.py", "oldText": None, "newText": "x = 1\n"}
    piece = {"type": "diff", "path": "/w/old.py", "oldText": "a", "newText": "b"}
    play.calls("c1", kind="edit", status="completed", content=[new, piece])

    created, modified = only(stream(play), FileChange)

    assert (created.change, created.path.path, created.path.root) == ("create", "new.py", "r1")
    assert created.after is not None and created.after.sha256 == hashlib.sha256(b"x = 1\n").hexdigest()
    assert created.diff == "--- /w/new.py\n+++ /w/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
    assert created.before is None
    assert (modified.change, modified.before, modified.after, modified.diff) == ("modify", None, None, None)
    assert modified.meta is not None and modified.meta["dev.asrd.acp"] == {"oldText": "a", "newText": "b"}


def test_an_edit_that_failed_changed_no_file() -> None:
    play = Play().new()
    play.prompt("hi")
    diff = {"type": "diff", "path": "/w/a", "oldText": "a", "newText": "b"}
    play.calls("c1", kind="edit", status="failed", content=[diff])

    assert only(stream(play), FileChange) == []


def test_a_wrong_exit_code_is_not_believed_and_the_conflict_is_said() -> None:
    result = next(r for r in told("pi").results.values() if r.status == "failed")

    assert result.exec is not None and result.exec.exit_code == 101
    assert result.meta is not None
    assert result.meta["dev.asrd.conflict"] == {"exitCode": {"reported": 1, "text": 101}}


def test_calls_whose_result_never_came_are_a_gap_at_the_turns_end() -> None:
    play = Play().new()
    asked = play.prompt("hi")
    play.calls("c1", kind="read")
    play.answers(asked, stopReason="end_turn")

    (gap,) = only(stream(play), Gap)

    assert gap.reason == "dropped"
    assert gap.meta is not None and gap.meta["dev.asrd.acp"]["callIds"] == ["c1"]


def test_a_result_that_comes_after_its_turn_is_the_calls() -> None:
    play = Play().new()
    play.prompt("hi")
    play.calls("c1", kind="execute", rawInput={"command": "sleep 9 &"})
    play.answers(("a2c", 3), stopReason="end_turn")
    asked = play.prompt("more")
    play.changes("c1", status="completed", rawOutput="done")
    play.answers(asked, stopReason="end_turn")

    records = stream(play)

    assert len(only(records, ToolCall)) == 1 and len(only(records, Gap)) == 1
    assert [(r.call_id, r.linkage) for r in only(records, ToolResult)] == [("c1", "exact")]


# ---------------------------------------------------------------- what the agent asks of the client


@pytest.mark.parametrize(
    ("option", "decision", "status"),
    [("yes", "allow", "failed"), ("always", "allow_always", "failed"), ("no", "deny", "denied")],
)
def test_a_permission_is_asked_and_decided_and_nobody_is_made_up_who_did(
    option: str, decision: str, status: str
) -> None:
    play = Play().new()
    play.prompt("hi")
    play.calls("c1", kind="execute", rawInput={"command": "rm x"})
    kinds = {"yes": "allow_once", "always": "allow_always", "no": "reject_once"}
    options = [{"optionId": k, "name": k, "kind": v} for k, v in kinds.items()]
    asked = play.asks(
        "session/request_permission", "a2c", sessionId="s1", toolCall={"toolCallId": "c1"}, options=options
    )
    play.answers(asked, outcome={"outcome": "selected", "optionId": option})
    play.changes("c1", status="failed")

    records = stream(play)

    requested, decided = only(records, Approval)
    assert (requested.phase, requested.call_id) == ("requested", "c1")
    assert (decided.phase, decided.call_id, decided.decision, decided.by) == ("decided", "c1", decision, None)
    assert only(records, ToolResult)[0].status == status
    ids = [type(r).__name__ for r in records if isinstance(r, ToolCall | Approval | ToolResult)]
    assert ids == ["ToolCall", "Approval", "Approval", "ToolResult"]


def test_a_file_that_the_client_wrote_is_an_observed_change() -> None:
    play = Play().new()
    play.prompt("hi")
    read = play.asks("fs/read_text_file", "a2c", sessionId="s1", path="/w/a.py")
    play.answers(read, content="old\n")
    wrote = play.asks("fs/write_text_file", "a2c", sessionId="s1", path="/w/a.py", content="new\n")
    play.answers(wrote)

    (change,) = only(stream(play), FileChange)

    assert (change.change, change.evidence, change.applied) == ("modify", "observed", True)
    assert change.before is not None and change.before.sha256 == hashlib.sha256(b"old\n").hexdigest()
    assert change.after is not None and change.after.sha256 == hashlib.sha256(b"new\n").hexdigest()


def test_a_command_in_the_clients_terminal_has_its_exit_code() -> None:
    play = Play().new()
    play.prompt("hi")
    made = play.asks("terminal/create", "a2c", sessionId="s1", command="cargo", args=["test"], cwd="/w/sub")
    play.answers(made, terminalId="t1")
    play.calls("c1", kind="execute", content=[{"type": "terminal", "terminalId": "t1"}])
    waited = play.asks("terminal/wait_for_exit", "a2c", sessionId="s1", terminalId="t1")
    play.answers(waited, exitCode=101, signal=None)
    shown = play.asks("terminal/output", "a2c", sessionId="s1", terminalId="t1")
    play.answers(shown, output="1 failed\n", truncated=False, exitStatus={"exitCode": 101, "signal": None})
    play.changes("c1", status="completed")

    (result,) = only(stream(play), ToolResult)

    assert result.exec is not None and result.exec.cwd is not None
    assert (result.exec.command, result.exec.exit_code, result.exec.stdout) == ("cargo test", 101, "1 failed\n")
    assert (result.exec.cwd.root, result.exec.cwd.path) == ("r1", "sub")


# ---------------------------------------------------------------- turns


@pytest.mark.parametrize(
    ("reason", "status"),
    [("end_turn", "completed"), ("max_tokens", "completed"), ("refusal", "refused"), ("cancelled", "interrupted")],
)
def test_a_turn_ends_as_its_stop_reason_says(reason: str, status: str) -> None:
    play = Play().new()
    asked = play.prompt("hi")
    play.tells("session/cancel", "c2a", sessionId="s1")
    play.answers(asked, stopReason=reason)

    records = stream(play)

    end = only(records, Turn)[-1]
    assert (end.turn_id, end.phase, end.status) == (turn(1), "end", status)
    assert end.meta is not None and end.meta["dev.asrd.acp"]["stopReason"] == reason
    assert [n.native_type for n in only(records, Native)] == ["session/cancel"]


def test_an_error_ends_a_turn_as_failed_with_its_code() -> None:
    play = Play().new()
    play.fails(play.prompt("hi"), -32603, "no model")

    end = only(stream(play), Turn)[-1]

    assert (end.status, end.error) == ("failed", Error(code="-32603", message="no model"))


def test_a_prompt_given_while_another_is_answered_is_queued_and_what_comes_belongs_to_no_one_for_certain() -> None:
    play = Play().new()
    first = play.prompt("one")
    second = play.prompt("two")
    play.says("which?")
    play.answers(first, stopReason="end_turn")
    play.says("two's")
    play.answers(second, stopReason="end_turn")

    records = stream(play)

    assert [(t.turn_id, t.phase, t.trigger) for t in only(records, Turn)] == [
        (turn(1), "start", "prompt"),
        (turn(2), "start", "queued"),
        (turn(1), "end", None),
        (turn(2), "end", None),
    ]
    assert [(m.turn_id, m.role) for m in only(records, Message)][2:] == [(None, "assistant"), (turn(2), "assistant")]


def test_an_agent_that_dies_within_a_call_interrupts_the_turn_and_crashed() -> None:
    play = Play().new()
    play.prompt("hi")
    play.says("I will")
    play.calls("c1", kind="execute", rawInput={"command": "x"})
    play.meta("eof", side="agent")
    play.meta("closed", by="agent", signal="SIGKILL")

    records = stream(play)

    assert said(records)[-1] == ("assistant", "I will")
    assert [g.reason for g in only(records, Gap)] == ["dropped"]
    end = only(records, Turn)[-1]
    assert (end.status, end.error) == ("interrupted", Error(code="SIGKILL", message="the agent was ended by SIGKILL"))
    assert [(e.status, e.reason) for e in only(records, End)] == [("crashed", "the agent was ended by SIGKILL")]
    assert list(check(encode_lines(list(records)).splitlines(keepends=True))) == []


def test_a_recorder_between_that_died_is_a_gap_and_no_end() -> None:
    play = Play().new()
    play.prompt("hi")
    play.says("I will")
    play.meta("lost")

    records = stream(play)

    assert said(records)[-1] == ("assistant", "I will")
    assert [g.reason for g in only(records, Gap)] == ["dropped"]
    assert only(records, End) == [] and [t.phase for t in only(records, Turn)] == ["start"]


def test_messages_that_could_not_be_kept_are_a_gap() -> None:
    play = Play().new()
    play.meta("dropped", frames=3, bytes=700, reason="No space left on device")
    play.line("a2c", lost={"reason": "malformed", "bytes": 9, "sha256": "00"})

    records = stream(play)

    assert [(g.reason, g.bytes) for g in only(records, Gap)] == [("dropped", 700)]
    assert [(loss.reason, loss.sha256) for loss in only(records, Loss)] == [("malformed", "00")]


# ---------------------------------------------------------------- sessions


def test_replayed_history_is_no_new_activity() -> None:
    first = Play(name="20261130T000000.000000-1-aaaaaa").new()
    first.answers(first.prompt("hi"), stopReason="end_turn")
    first.meta("closed", by="agent", code=0)
    again = Play(name="20261130T010000.000000-2-bbbbbb")
    asked = again.asks("session/load", sessionId="s1", cwd="/w", mcpServers=[])
    again.says("hi", "u1", "user_message_chunk")
    again.calls("c0", status="completed")
    again.answers(asked)
    again.answers(again.prompt("more"), stopReason="end_turn")

    records = stream(first, again)

    assert said(records) == [("user", "hi"), ("user", "more")]
    assert only(records, ToolCall) == [] and only(records, Gap) == []
    assert [t.turn_id for t in only(records, Turn) if t.phase == "start"] == [
        "20261130T000000.000000-1-aaaaaa/1",
        "20261130T010000.000000-2-bbbbbb/1",
    ]
    assert skipped(first, again)["replayed-history"] == 2


def test_a_session_that_is_first_seen_when_it_is_loaded_says_that_its_history_is_not_recorded() -> None:
    play = Play()
    asked = play.asks("session/load", sessionId="s1", cwd="/w", mcpServers=[])
    play.says("old words", "u1", "user_message_chunk")
    play.answers(asked)

    records = stream(play)

    head = only(records, Session)[0]
    assert (head.lineage.root, head.started_at) == (None, None)
    assert ("core", "history", "off") in [(c.profile, c.facet, c.state) for c in only(records, Capture)]
    assert said(records) == []


def test_a_resume_is_a_gap_for_what_happened_since_is_not_sent() -> None:
    first = Play(name="20261130T000000.000000-1-aaaaaa").new()
    first.answers(first.prompt("hi"), stopReason="end_turn")
    first.meta("closed", by="client")
    again = Play(name="20261130T010000.000000-2-bbbbbb")
    again.answers(again.asks("session/resume", sessionId="s1", cwd="/w"))

    (gap,) = only(stream(first, again), Gap)

    assert (gap.reason, gap.from_) == ("dropped", "2026-11-30T00:00:06Z")


def test_a_fork_names_the_session_it_came_from() -> None:
    play = Play().new()
    play.answers(play.asks("session/fork", sessionId="s1", cwd="/w"), sessionId="s2")

    found = streams(play)

    head = only(found[StreamKey("some-agent", "s2", "acp")], Session)[0]
    assert head.lineage.parent is not None and head.lineage.evidence is not None
    assert (head.lineage.root, head.lineage.relation, head.lineage.parent.session_id) == (False, "forked_from", "s1")
    assert (head.lineage.evidence.kind, head.lineage.evidence.value) == ("acp", "s1")


def test_a_recorder_that_lost_its_state_goes_on_with_a_stream_that_is_there() -> None:
    first = Play(name="20261130T000000.000000-1-aaaaaa").new()
    first.answers(first.prompt("hi"), stopReason="end_turn")
    first.meta("closed", by="client")
    again = Play(name="20261130T010000.000000-2-bbbbbb")
    again.answers(again.asks("session/load", sessionId="s1", cwd="/w", mcpServers=[]))
    again.answers(again.prompt("more"), stopReason="end_turn")
    before = stream(first)
    there = {StreamKey("some-agent", "s1", "acp"): remembered(before)}

    (after,) = streams(again, recorded=there).values()

    assert after[0].seq == len(before)
    assert only(after, Session) == [] and only(after, Capture) == []
    assert said(after) == [("user", "more")]
    assert list(check(encode_lines([*before, *after]).splitlines(keepends=True))) == []


def test_a_closed_session_ended() -> None:
    play = Play().new()
    play.answers(play.asks("session/close", sessionId="s1"))

    (end,) = only(stream(play), End)

    assert (end.status, end.reason) == ("completed", "session/close")


def test_sessions_on_one_connection_are_streams_of_their_own() -> None:
    play = Play().new("s1").new("s2", "/v")
    one, two = play.prompt("a", "s1"), play.prompt("b", "s2")
    play.says("A", session="s1")
    play.says("B", session="s2")
    play.says("a", session="s1")
    play.answers(two, stopReason="end_turn")
    play.answers(one, stopReason="end_turn")

    found = streams(play)

    assert said(found[StreamKey("some-agent", "s1", "acp")]) == [("user", "a"), ("assistant", "Aa")]
    assert said(found[StreamKey("some-agent", "s2", "acp")]) == [("user", "b"), ("assistant", "B")]


def test_an_update_before_the_answer_that_names_the_session_is_not_lost() -> None:
    play = Play()
    asked = play.asks("session/new", cwd="/w", mcpServers=[])
    play.update("session_info_update", title="early")
    play.answers(asked, sessionId="s1")

    records = stream(play)

    head = only(records, Session)[0]
    assert head.workspace is not None and head.workspace.roots[0].path == "/w"
    assert [c.title for c in only(records, Config) if c.title] == ["early"]


def test_a_session_that_was_going_on_before_is_a_gap() -> None:
    play = Play(agent=None)
    play.says("in the middle")
    play.meta("closed", by="client")

    records = stream(play)

    assert [g.reason for g in only(records, Gap)] == ["dropped"]
    assert said(records) == [("assistant", "in the middle")]


@pytest.mark.parametrize("dialect", ["now", "before"])
def test_a_sub_agent_is_a_child_session_in_both_dialects(dialect: str) -> None:
    play = Play(agent="@agentclientprotocol/codex-acp").new()
    play.prompt("go")
    play.calls("c1", kind="think")
    if dialect == "now":
        play.update("subagent_update", **{"sessionId": "kid", "title": "Look", "state": {"state": "running"}})
    else:
        play.update("subagent_update", subagentSessionId="kid", name="Look", toolCallId="c1", state="running")
    play.says("child words", session="kid")
    play.update("subagent_update", **{"sessionId" if dialect == "now" else "subagentSessionId": "kid", "state": "idle"})

    found = streams(play)

    child = found[StreamKey("codex", "kid", "acp")]
    head = only(child, Session)[0]
    assert head.lineage.parent is not None
    assert (head.lineage.relation, head.lineage.parent.session_id, head.title) == ("spawned_by", "s1", "Look")
    assert head.lineage.parent.call_id == (None if dialect == "now" else "c1")
    assert said(child) == [("assistant", "child words")]
    assert [(t.phase, t.trigger, t.status) for t in only(child, Turn)] == [
        ("start", "agent", None),
        ("end", None, "completed"),
    ]
    links = [x for x in only(found[StreamKey("codex", "s1", "acp")], Link) if x.relation == "spawned"]
    assert [(x.target.session_id, x.target.namespace) for x in links] == [("kid", "acp")]


def test_what_one_session_says_to_another_is_sent_once_and_received_once() -> None:
    play = Play().new("s1").new("s2")
    between = {
        "messageId": "m",
        "senderSessionId": "s1",
        "recipientSessionId": "s2",
        "senderMessageId": "a",
        "recipientMessageId": "b",
        "content": [{"type": "text", "text": "look here"}],
    }
    for session in ("s1", "s2", "s1"):
        play.update("session_message", session, **between)

    found = streams(play)

    (sent,) = only(found[StreamKey("some-agent", "s1", "acp")], MessageSent)
    assert (sent.channel, sent.target, sent.content) == ("session", "s2", [Text(text="look here")])
    (received,) = only(found[StreamKey("some-agent", "s2", "acp")], Message)
    assert (received.origin, received.author, received.message_id) == ("agent", "agent", "b")


# ---------------------------------------------------------------- protocol 2


def test_in_protocol_2_a_turn_ends_when_the_session_is_idle_and_the_prompt_has_its_id() -> None:
    play = Play(protocol=2).new()
    asked = play.prompt("fix")
    play.update("state_update", state="running")
    play.answers(asked, messageId="u1")
    play.says("fix", "u1", "user_message_chunk")
    play.says("Done", "m1")
    play.update("state_update", state="idle", stopReason="end_turn")

    records = stream(play)

    assert [(t.phase, t.status) for t in only(records, Turn)] == [("start", None), ("end", "completed")]
    assert [(m.role, m.message_id) for m in only(records, Message)] == [("user", "u1"), ("assistant", "m1")]


def test_in_protocol_2_an_agent_can_work_without_a_prompt() -> None:
    play = Play(protocol=2).new()
    play.update("state_update", state="running")
    play.says("on my own", "m1")
    play.update("state_update", state="idle", stopReason="cancelled")

    records = stream(play)

    assert [(t.phase, t.trigger, t.status) for t in only(records, Turn)] == [
        ("start", "agent", None),
        ("end", None, "interrupted"),
    ]


def test_in_protocol_2_a_message_that_is_replaced_or_cleared_supersedes_what_was_written() -> None:
    play = Play(protocol=2).new()
    play.answers(play.prompt("hi"), messageId="u1")
    play.says("draft", "m1")
    play.says("other", "m2")
    play.update("agent_message", messageId="m1", content=[{"type": "text", "text": "final"}])
    play.update("agent_message", messageId="m1", content=None)

    draft, _, final, cleared = [m for m in only(stream(play), Message) if m.role == "assistant"]

    assert (final.supersedes, final.content) == (draft.id, [Text(text="final")])
    assert (cleared.supersedes, cleared.content) == (final.id, [])


def test_in_protocol_2_a_call_grows_in_pieces_and_null_clears() -> None:
    play = Play(protocol=2).new()
    play.answers(play.prompt("hi"), messageId="u1")
    play.changes("c1", title="grep", kind="search", rawInput={"q": 1})
    for piece in ("a", "b"):
        play.update(
            "tool_call_content_chunk",
            toolCallId="c1",
            content={"type": "content", "content": {"type": "text", "text": piece}},
        )
    play.changes("c1", status="completed")
    play.changes("c1", content=None)

    early, late = only(stream(play), ToolResult)

    assert (early.content, late.content, late.supersedes) == ([Text(text="ab")], None, early.id)


def test_in_protocol_2_terminal_bytes_that_split_a_character_are_whole_again() -> None:
    play = Play(protocol=2).new()
    play.answers(play.prompt("hi"), messageId="u1")
    play.changes("c1", title="sh", kind="execute", content=[{"type": "terminal", "terminalId": "t"}])
    play.update("terminal_update", terminalId="t", command="echo", cwd="/w", output={"data": ""})
    data = "größer €\n".encode()
    for at in range(len(data)):
        piece = base64.b64encode(data[at : at + 1]).decode()
        play.update("terminal_output_chunk", terminalId="t", data=piece)
    play.update("terminal_update", terminalId="t", exitStatus={"exitCode": 3})
    play.changes("c1", status="completed")

    (result,) = only(stream(play), ToolResult)

    assert result.exec is not None
    assert (result.exec.stdout, result.exec.exit_code, result.exec.command) == ("größer €\n", 3, "echo")


def test_in_protocol_2_a_diff_names_each_file_and_what_was_done_to_it() -> None:
    play = Play(protocol=2).new()
    play.answers(play.prompt("hi"), messageId="u1")
    changes = [
        {"operation": "add", "path": "/w/a"},
        {"operation": "delete", "path": "/w/b"},
        {"operation": "move", "path": "/w/d", "oldPath": "/w/c"},
    ]
    diff = {"type": "diff", "changes": changes, "patch": {"format": "git_patch", "text": "diff --git …"}}
    play.changes("c1", title="edit", kind="edit", status="completed", content=[diff])

    found = only(stream(play), FileChange)

    assert [(c.change, c.path.path) for c in found] == [("create", "a"), ("delete", "b"), ("rename", "d")]
    assert found[2].from_path is not None and found[2].from_path.path == "c"


def test_in_protocol_2_a_permission_can_be_asked_for_a_command() -> None:
    play = Play(protocol=2).new()
    play.answers(play.prompt("hi"), messageId="u1")
    asked = play.asks(
        "session/request_permission",
        "a2c",
        sessionId="s1",
        title="Run it?",
        subject={"type": "command", "command": "rm x", "cwd": "/w"},
        options=[{"optionId": "n", "name": "No", "kind": "reject_always"}],
    )
    play.answers(asked, outcome={"outcome": "cancelled"})

    requested, decided = only(stream(play), Approval)

    assert requested.meta is not None and requested.meta["dev.asrd.acp"]["command"] == "rm x"
    assert decided.decision == "cancelled"


# ---------------------------------------------------------------- plans, modes, the rest


def test_a_plan_is_written_whole_each_time() -> None:
    play = Play().new()
    play.update("plan", entries=[{"content": "look", "priority": "high", "status": "in_progress"}])
    play.update("plan", entries=[])

    first, second = only(stream(play), Plan)

    assert (first.items, second.items) == ([PlanItem(text="look", status="in_progress")], [])


def test_only_what_changes_of_modes_and_options_is_written() -> None:
    play = Play()
    options = [
        {"id": "m", "name": "Model", "category": "model", "type": "select", "currentValue": "big"},
        {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False},
    ]
    play.answers(play.asks("session/new", cwd="/w", mcpServers=[]), sessionId="s1", configOptions=options)
    play.update("current_mode_update", currentModeId="plan")
    play.update("current_mode_update", currentModeId="plan")
    asked = play.asks("session/set_config_option", sessionId="s1", configId="m", value="small")
    play.answers(asked, configOptions=[{**options[0], "currentValue": "small"}, options[1]])

    configs = only(stream(play), Config)

    assert [(c.model, c.mode) for c in configs] == [("big", None), (None, "plan"), ("small", None)]
    assert configs[0].meta is not None and configs[0].meta["dev.asrd.acp"]["options"] == {"fast": "false"}


def test_what_a_session_was_asked_for_and_what_vendors_add_is_kept() -> None:
    play = Play()
    asked = play.asks("session/new", cwd="/w", additionalDirectories=["/v"], mcpServers=[], _meta={"vendor": 1})
    play.answers(asked, sessionId="s1", _meta={"vendor": 2})
    play.update("available_commands_update", availableCommands=[], _meta={"vendor": 3})
    play.prompt("hi")
    diff = {"type": "diff", "path": "/v/a", "oldText": None, "newText": "x"}
    play.calls("c1", kind="edit", status="completed", content=[diff])

    records = stream(play)

    head = only(records, Session)[0]
    assert head.workspace is not None and head.meta is not None
    assert [(r.id, r.path) for r in head.workspace.roots] == [("r1", "/w"), ("r2", "/v")]
    assert head.meta["dev.asrd.acp"]["request"]["_meta"] == {"vendor": 1}
    assert [(n.native_type, n.data) for n in only(records, Native)] == [
        ("session/new result _meta", {"vendor": 2}),
        ("session/update available_commands_update _meta", {"vendor": 3}),
    ]
    assert [(c.path.root, c.path.path) for c in only(records, FileChange)] == [("r2", "a")]


def test_words_of_a_command_that_did_not_fail_are_no_exit_code() -> None:
    play = Play(agent="@agentclientprotocol/claude-agent-acp").new()
    play.prompt("hi")
    play.calls("c1", kind="execute", status="completed", rawInput={"command": "cat log"}, rawOutput="Exit code 3\n…")

    (result,) = only(stream(play), ToolResult)

    assert result.exec is not None and result.exec.exit_code is None


def test_notices_compactions_and_what_has_no_place_are_kept() -> None:
    play = Play().new()
    play.update("notice", severity="warning", title="Slow", description="The model is slow.")
    play.update("compaction_update", compactionId="k", status="completed", summary="short")
    play.update("_vendor_thing", x=1)
    play.tells("_vendor/method", sessionId="s1", y=2)
    asked = play.asks("elicitation/create", "a2c", sessionId="s1", message="Which?", mode="form")
    play.answers(asked, action="decline")

    records = stream(play)

    (notice,) = only(records, Message)
    assert (notice.role, notice.author, notice.audience) == ("system", "harness", "user")
    assert [c.summary for c in only(records, Compaction)] == ["short"]
    assert [n.native_type for n in only(records, Native)] == [
        "session/update _vendor_thing",
        "_vendor/method",
        "elicitation/create",
        "elicitation/create result",
    ]
    assert only(records, Native)[0].data == {"sessionUpdate": "_vendor_thing", "x": 1}


def test_a_batch_is_its_messages() -> None:
    play = Play().new()
    params = {"sessionId": "s1", "update": {"sessionUpdate": "current_mode_update", "currentModeId": "x"}}
    one = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    play.line("a2c", frame=[one, 7])

    records = stream(play)

    assert [c.mode for c in only(records, Config)] == ["x"]
    assert [n.native_type for n in only(records, Native)] == ["not JSON-RPC"]


def test_a_message_not_of_the_expected_shape_is_kept_whole() -> None:
    play = Play().new()
    play.update("tool_call", toolCallId=7)

    (native,) = only(stream(play), Native)

    assert native.data["frame"]["params"]["update"] == {"sessionUpdate": "tool_call", "toolCallId": 7}


# ---------------------------------------------------------------- usage and scope


@pytest.mark.parametrize(
    ("figures", "usage"),
    [
        # Claude Code's adapter: cached tokens beside input.
        ((52374, 51128, 1001, None, 119, 126), (51128, 1001, 119, 126)),
        # Copilot's: cached tokens within input.
        ((504280, 499128, 5152, 518, 248752, 0), (250376, 5152, 248752, 0)),
        # OpenCode's: cached tokens beside input, thoughts beside output.
        ((72364, 36038, 680, 77, 35569, None), (36038, 757, 35569, None)),
        # A sum that none, or more than one, way of counting gives: only the total is known.
        ((99, 10, 5, None, 3, None), (None, None, None, None)),
        ((18, 10, 5, 3, 3, None), (None, None, None, None)),
    ],
)
def test_the_total_tells_how_an_agent_counts(figures: tuple[Any, ...], usage: tuple[Any, ...]) -> None:
    found = usage_of(Figures(*figures))

    assert (found.input, found.output, found.cache_read, found.cache_write) == usage
    assert found.total == figures[0]


def test_the_result_of_a_prompt_means_what_its_agent_means() -> None:
    claude, copilot, opencode, qwen = (told(c) for c in ("claude", "copilot", "opencode", "qwen"))

    assert [(t.scope, t.cumulative) for t in claude.totals] == [("turn", False)] * 2
    assert [(t.scope, t.cumulative) for t in copilot.totals] == [("session", True)] * 2
    assert opencode.totals == [] and [i.usage and i.usage.total for i in opencode.inferences] == [72364, 72726]
    assert qwen.totals == [] and len(qwen.inferences) == 8
    assert qwen.inferences[0].usage == Usage(input=35498, output=715, cache_read=35503, reasoning=71, total=71716)


def test_how_full_the_context_is_is_never_usage() -> None:
    kimi = told("kimi")

    assert kimi.totals == [] and kimi.inferences == []


def test_an_agent_with_a_native_session_makes_a_secondary_stream_that_observes_it() -> None:
    known = stream(Play(agent="gemini-cli").new())
    unknown = stream(Play().new())

    assert only(known, Session)[0].scope == "secondary"
    (link,) = only(known, Link)
    assert (link.relation, link.target.agent, link.target.session_id) == ("observes", "gemini", "s1")
    assert (link.evidence.kind, link.target.namespace) == ("acp", None)
    assert only(unknown, Session)[0].scope == "primary" and only(unknown, Link) == []


def test_openclaws_session_is_named_by_its_key() -> None:
    (link,) = [r for r in told("openclaw").records if isinstance(r, Link)]

    assert link.target.session_id == "agent:main:acp-bridge:17f95922-915f-4f74-9f58-e098d5aad835"


# ---------------------------------------------------------------- the captures


@pytest.mark.parametrize("case", CASES)
def test_a_capture_says_what_really_happened(case: str) -> None:
    truth = Truth(case)

    stream = told(case)

    assert stream.prompts == truth.prompts
    assert [(t.phase, t.status) for t in stream.turns] == [("start", None), ("end", "completed")] * 2
    assert [w.strip() for w in stream.texts if w.strip() not in " ".join(truth.texts)] == [] or case in MERGED
    for call in truth.calls:
        result = stream.results.get(call.id)
        if result is not None and result.exec is not None and result.exec.exit_code is not None:
            assert result.exec.exit_code == call.exit_code
    if stream.commits:
        assert stream.commits == [truth.commit]
    assert not [r for r in stream.records if isinstance(r, Loss)]


MERGED = {"hermes", "openclaw"}
"""Their messages come with the line breaks and neighbours of what they show, so that they are not word for word."""


@pytest.mark.parametrize("case", CASES)
def test_a_capture_has_no_finding(case: str) -> None:
    for records in convert_home(CAPTURES / case / "home").values():
        assert [f"{f.rule} {f.message}" for f in check(encode_lines(records).splitlines(keepends=True))] == []


@pytest.mark.parametrize("case", CASES)
def test_a_restart_at_any_line_changes_nothing(case: str) -> None:
    plays: list[Play] = []
    for path in sorted((CAPTURES / case / "home/.local/share/asrd/spool").glob("*.acp.jsonl")):
        play = Play(name=path.name.removesuffix(".acp.jsonl"))
        play.lines = path.read_bytes().splitlines()
        plays.append(play)

    assert streams(*plays, restart=True) == streams(*plays)


@pytest.mark.parametrize("case", CASES)
def test_native_and_acp_together_count_once(case: str) -> None:
    harness, folder = NATIVE[case]
    home = CAPTURES.parent / harness / folder / "home"
    if not home.is_dir():
        pytest.skip(f"no native capture {harness}/{folder}")
    native, acp = convert_home(home, only=harness), convert_home(CAPTURES / case / "home", only="acp")

    counted = [r for s in [*native.values(), *acp.values()] if first(s).scope == "primary" for r in s]

    observed = [r.target for s in acp.values() for r in s if isinstance(r, Link) and r.relation == "observes"]
    assert all(first(s).scope == "secondary" for s in acp.values())
    assert [t.agent for t in observed] == [harness]
    if case != "openclaw":  # its key is not its id
        assert StreamKey(harness, observed[0].session_id) in native
    assert [r for r in counted if isinstance(r, Inference | UsageTotal)] == [
        r for s in native.values() for r in s if isinstance(r, Inference | UsageTotal)
    ]


NATIVE = {
    "claude": ("claude-code", "S7-acp"),
    "claude-manual": ("claude-code", "S7-acp-manual"),
    "codex": ("codex", "S7-acp"),
    "codex-zed": ("codex", "S7-acp-zed"),
} | {case: (case, "S7-acp") for case in CASES if not case.startswith(("claude", "codex"))}


def first(records: list[Any]) -> Session:
    assert isinstance(records[0], Session)
    return records[0]


def test_what_acp_loses_is_measured_and_the_page_says_it() -> None:
    assert Path(PAGE).read_text() == page(), "make it anew: python -m tests.acp.losses"


def test_headers_declare_what_is_lost_and_nothing_else() -> None:
    measured: dict[str, set[str]] = {}
    declared: dict[str, set[str]] = {}
    for case in CASES:
        name = (header(case).meta or {})["dev.asrd.acp"]["agentInfo"]["name"]
        measured.setdefault(name, set()).update(lost(case))
        declared[name] = set(header(case).producer.lossy) - set(ALWAYS_LOST)

    assert declared == measured
    assert set(measured) <= set(AGENTS)
