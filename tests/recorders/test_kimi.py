"""Kimi Code: what its captures hold, however they come, and whatever is wrong in them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from asrd.recorders.base import StreamKey, sha256
from asrd.recorders.kimi import RECORDER
from asrd.records import (
    Approval,
    Capture,
    Compaction,
    Config,
    FileChange,
    Inference,
    Link,
    Message,
    Native,
    Plan,
    Session,
    Text,
    ToolResult,
    Turn,
)
from asrd.sources import Row, Source
from tests.figures import figures
from tests.golden import CAPTURES
from tests.recorders.arrivals import groups_of, of, record, standing, streams_of
from tests.recorders.scripted import ScriptedCaptures, findings, goes_on_after_a_kill

HARNESS = "kimi"
HOMES = CAPTURES / HARNESS


# ---------------------------------------------------------------- lines made here


def source(agent: str = "main", session: str = "session_1") -> Source:
    path = f"sessions/wd_app_0/{session}/agents/{agent}/wire.jsonl"
    located = RECORDER.locate(path)
    assert located is not None
    return Source(HARNESS, located.group, located.name, path, "lines", located.order)


def given(*lines: dict[str, Any], agent: str = "main") -> list[Any]:
    """The records these lines give, after the header and what is said behind it."""
    data = b"".join(json.dumps({"time": 1796014487000 + i, **line}).encode() + b"\n" for i, line in enumerate(lines))
    (records,) = record(RECORDER, [(source(agent), data)])[0].values()
    assert findings({StreamKey(HARNESS, "session_1"): records}) == []
    return [r for r in records[1:] if not isinstance(r, Capture)]


def prompt(text: str = "go", turn: int = 0, **more: Any) -> dict[str, Any]:
    words = [{"type": "text", "text": text}]
    return {"type": "turn.prompt", "input": words, "origin": {"kind": "user"}, "turnId": turn, **more}


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": {"type": kind, "turnId": "0", "step": 1, **more}}


def call(name: str, ident: str = "c1", **args: Any) -> dict[str, Any]:
    return event("tool.call", uuid="u" + ident, stepUuid="s1", toolCallId=ident, name=name, args=args)


def result(output: Any, ident: str = "c1", **more: Any) -> dict[str, Any]:
    return event("tool.result", parentUuid="u" + ident, toolCallId=ident, result={"output": output, **more})


BEGIN = event("step.begin", uuid="s1")
REQUEST = {"type": "llm.request", "kind": "loop", "model": "kimi-k2", "modelAlias": "m/kimi-k2", "turnStep": "0.1"}
FIGURES = {"inputOther": 10, "output": 3, "inputCacheRead": 5, "inputCacheCreation": 2}
USED = {"type": "usage.record", "model": "m/kimi-k2", "usage": FIGURES, "usageScope": "turn"}


class TestCaptures(ScriptedCaptures):
    recorder = RECORDER
    killed = frozenset({"call_s5_1_0"})


def test_a_session_that_goes_on_after_a_kill_is_its_beginning_and_more() -> None:
    goes_on_after_a_kill(RECORDER, HOMES / "S5")


def test_a_fork_is_a_copy_up_to_its_mark_and_its_own_from_there_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(HOMES / "S1" / "home", home)
    (folder,) = (home / ".kimi-code/sessions").glob("wd_*/session_*")
    wire = (folder / "agents/main/wire.jsonl").read_bytes()
    new = folder.with_name("session_fork")
    shutil.copytree(folder, new)
    state = json.loads((new / "state.json").read_text()) | {"id": "session_fork", "forkedFrom": folder.name}
    (new / "state.json").write_text(json.dumps(state))
    own = [
        BEGIN,
        REQUEST,
        USED,
        event("step.end", uuid="s1", finishReason="end_turn", usage=FIGURES, messageId="resp-9"),
    ]
    with open(new / "agents/main/wire.jsonl", "ab") as file:
        for line in [{"type": "forked"}, prompt("and?", 2), *own]:
            file.write(json.dumps(line | {"time": 1796014600000}).encode() + b"\n")
    alone = figures(streams_of(RECORDER, HOMES / "S1" / "home"))

    streams = streams_of(RECORDER, home)

    records = streams[StreamKey(HARNESS, "session_fork")]
    header = records[0]
    assert isinstance(header, Session) and header.lineage.parent is not None
    assert (header.lineage.relation, header.lineage.parent.session_id) == ("forked_from", folder.name)
    mark = next(n for n, r in enumerate(records) if isinstance(r, Link) and r.relation == "forked_from")
    copied = [r for r in records[:mark] if not isinstance(r, Session | Capture)]
    assert copied and all(r.copy_of and r.copy_of.session_id == folder.name for r in copied)
    assert not any(r.copy_of for r in records[mark:])
    assert [m.content for m in standing(streams, Message) if m.origin == "prompt"][-1] == [Text(text="and?")]
    assert figures(streams)["requests"] == alone["requests"] + 1
    assert figures(streams)["input_total"] == alone["input_total"] + 17
    assert wire in (new / "agents/main/wire.jsonl").read_bytes()


def test_a_request_that_no_answer_came_to_is_known_without_figures() -> None:
    records = given(prompt(), BEGIN, REQUEST)

    (inference,) = of(Inference, records)

    assert (inference.inference_id, inference.model, inference.usage) == ("s1", "kimi-k2", None)


def test_each_later_statement_of_a_response_takes_the_place_of_the_one_before() -> None:
    end = event("step.end", uuid="s1", finishReason="end_turn", usage=FIGURES, messageId="resp-1")
    records = given(prompt(), BEGIN, REQUEST, USED, end)

    first, second, third = of(Inference, records)

    assert [second.supersedes, third.supersedes] == [first.id, second.id]
    assert third.usage == second.usage and third.usage is not None
    assert (third.usage.input, third.usage.cache_read, third.usage.cache_write, third.usage.output) == (10, 5, 2, 3)
    assert (third.stop_reason, third.native_id) == ("end_turn", "resp-1")


def test_figures_that_are_all_zero_are_no_figures() -> None:
    zero = {"inputOther": 0, "output": 0, "inputCacheRead": 0, "inputCacheCreation": 0}
    end = event("step.end", uuid="s1", finishReason="end_turn", usage=zero, messageId="resp-1")

    last = of(Inference, given(prompt(), BEGIN, REQUEST, USED | {"usage": zero}, end))[-1]

    assert (last.native_id, last.stop_reason, last.usage) == ("resp-1", "end_turn", None)


def test_figures_that_come_after_the_step_are_counted_once() -> None:
    end = event("step.end", uuid="s1", finishReason="end_turn", usage=FIGURES, messageId="resp-1")
    records = given(prompt(), BEGIN, REQUEST, end, USED)

    figured = [r for r in records if isinstance(r, Inference) and r.usage]

    assert len(figured) == 1


def test_a_retry_is_a_request_of_its_own() -> None:
    records = given(prompt(), BEGIN, REQUEST, {"type": "turn.step.retrying"}, REQUEST, USED)

    ids = [r.inference_id for r in records if isinstance(r, Inference)]

    assert ids == ["s1", "s1#2", "s1#2"]


def test_a_compaction_counts_its_request_and_says_its_tokens() -> None:
    records = next(iter(streams_of(RECORDER, HOMES / "S4" / "home").values()))

    (compaction,) = of(Compaction, records)
    derived = [r for r in records if isinstance(r, Inference) and r.id_source == "derived" and r.usage]

    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == ("auto", 20754, 20749)
    assert compaction.summary is not None and "MOCK SUMMARY" in compaction.summary
    assert [r.usage and r.usage.output for r in derived] == [29]


def test_permissions_are_asked_for_and_decided_once_each() -> None:
    records = next(iter(streams_of(RECORDER, HOMES / "S7-acp" / "home").values()))

    asked = [(r.phase, r.decision, r.call_id) for r in records if isinstance(r, Approval)]

    calls = ["call_acp1_2_0", "call_acp1_4_0", "call_acp1_5_0"]
    assert asked == [x for c in calls for x in (("requested", None, c), ("decided", "allow", c))]


def test_a_call_a_person_refused_is_denied_and_has_no_exit_code() -> None:
    records = given(
        prompt(),
        {"type": "interaction.request", "id": "a1", "kind": "approval", "toolCallId": "c1"},
        {"type": "interaction.resolved", "id": "a1", "response": {"decision": "rejected"}},
        {"type": "permission.record_approval_result", "toolCallId": "c1", "result": {"decision": "rejected"}},
        call("Bash", command="rm -r /"),
        result("not run", isError=True),
    )

    decided = [r.decision for r in records if isinstance(r, Approval) and r.phase == "decided"]
    (got,) = of(ToolResult, records)

    assert decided == ["deny"]
    assert (got.status, got.exec and got.exec.exit_code) == ("denied", None)


@pytest.mark.parametrize(
    ("args", "output", "failed", "code", "late"),
    [
        ({"command": "x"}, "fine", False, 0, None),
        ({"command": "x"}, "no\nCommand failed with exit code: 2.", True, 2, None),
        ({"command": "x"}, "Command failed with exit code: -9", True, -9, None),
        (
            {"command": "x"},
            "Tool output exceeded 50000 characters\n1\nCommand failed with exit code: 42.\n\n"
            "task_id: bash-oy1r11od\noutput_size_bytes: 348894\nnext_step: Use TaskOutput.",
            True,
            42,
            None,
        ),
        ({"command": "x"}, "it said: Command failed with exit code: 3.\nand went on", False, 0, None),
        ({"command": "x", "run_in_background": True}, "started", False, None, None),
        ({"command": "x"}, "Command killed by timeout (60s)", True, None, True),
        ({"command": "x"}, "no such shell", True, None, None),
    ],
)
def test_an_exit_code_is_an_integer_where_it_is_known(
    args: dict[str, Any], output: str, failed: bool, code: int | None, late: bool | None
) -> None:
    records = given(prompt(), call("Bash", **args), result(output, isError=failed))

    (got,) = of(ToolResult, records)

    assert got.exec is not None
    assert (got.exec.exit_code, got.exec.timed_out) == (code, late)


READ = result(
    "1\tone\n2\ttwo",
    note="<system>2 lines read from file starting from line 1. Total lines in file: 2. End of file reached.</system>",
)


RUNNING = "task_id: bash-d14ye423\npid: 36\ndescription: x\nstatus: running\nautomatic_notification: true"


def terminated(call: str, code: int | None, status: str = "failed") -> dict[str, Any]:
    info = {"taskId": "bash-d14ye423", "status": status, "startedAt": 1000, "endedAt": 3003, "kind": "process"}
    return {"type": "task.terminated", "info": {**info, "exitCode": code, "parentToolCallId": call}, "time": 3005}


@pytest.mark.parametrize("args", [{"run_in_background": True}, {"timeout": 1}])
def test_a_command_that_went_on_in_the_background_gets_the_exit_code_of_its_end(args: dict[str, Any]) -> None:
    asked = call("Bash", command="sleep 2; exit 4", **args)

    records = given(prompt(), asked, result(RUNNING), terminated("c1", 4))

    first, last = of(ToolResult, records)
    assert (first.status, first.exec.exit_code) == ("completed", None)
    assert (last.status, last.exec.exit_code, last.exec.duration_ms) == ("failed", 4, 2003)
    assert (last.supersedes, last.exec.command) == (first.id, "sleep 2; exit 4")


def test_a_command_in_the_background_that_was_stopped_without_a_code_keeps_its_result() -> None:
    records = given(prompt(), call("Bash", command="x"), result(RUNNING), terminated("c1", None, "killed"))

    (only,) = of(ToolResult, records)
    assert only.exec.exit_code is None
    assert [r.data["info"]["status"] for r in of(Native, records) if r.native_type == "task.terminated"] == ["killed"]


def tracked(text: str | None) -> dict[str, Any]:
    entry = {"contentHash": sha256(text), "size": len(text)} if text is not None else None
    return {"type": "file_history.tracked", "turnId": 0, "path": "/w/a.txt", "entry": entry}


def checkpoint(text: str) -> dict[str, Any]:
    entries = {"/w/a.txt": {"contentHash": sha256(text), "size": len(text)}}
    return {"type": "file_history.checkpoint", "turnId": 0, "phase": "end", "entries": entries}


EDIT = [call("Edit", "c2", path="/w/a.txt", old_string="two", new_string="three"), result("Replaced", "c2")]


def changes(*lines: dict[str, Any]) -> list[Any]:
    return of(FileChange, given(prompt(), *lines))


@pytest.mark.parametrize("end", ["", "\n"])
def test_an_edit_of_a_file_that_was_read_has_both_digests(end: str) -> None:
    (change,) = changes(call("Read", path="/w/a.txt"), READ, tracked("one\ntwo" + end), *EDIT)

    assert change.before.sha256 == sha256("one\ntwo" + end)
    assert change.after.sha256 == sha256("one\nthree" + end)


def test_an_edit_of_another_content_than_was_read_gets_its_digest_at_the_end_of_the_turn() -> None:
    first, second = changes(
        call("Read", path="/w/a.txt"), READ, tracked("two, else\n"), *EDIT, checkpoint("three, else\n")
    )

    assert (first.before.sha256, first.after) == (sha256("two, else\n"), None)
    assert second.supersedes == first.id
    assert (second.before.sha256, second.after.sha256) == (sha256("two, else\n"), sha256("three, else\n"))


def test_a_digest_that_says_otherwise_corrects_what_was_derived() -> None:
    first, second = changes(
        call("Read", path="/w/a.txt"), READ, tracked("one\ntwo\n"), *EDIT, checkpoint("one\nfour\n")
    )

    assert second.supersedes == first.id
    assert (second.after.sha256, second.evidence) == (sha256("one\nfour\n"), "observed")


def test_a_file_that_was_not_there_is_created() -> None:
    (change,) = changes(
        tracked(None), call("Write", path="/w/a.txt", content="new\n"), result("Wrote"), checkpoint("new\n")
    )

    assert (change.change, change.before, change.after.sha256) == ("create", None, sha256("new\n"))


def test_an_edit_that_failed_changes_nothing() -> None:
    assert changes(EDIT[0], result("old_string not found", "c2", isError=True)) == []


def test_todos_are_the_plan_as_a_whole() -> None:
    todos = [{"title": "a", "status": "done"}, {"title": "b", "status": "in_progress"}]
    records = given(prompt(), call("TodoList", todos=todos))

    (plan,) = of(Plan, records)

    assert [(i.text, i.status) for i in plan.items] == [("a", "completed"), ("b", "in_progress")]


@pytest.mark.parametrize(("origin", "counted"), [("salvaged", {}), ("llm", {"unexpected:agent.message.appended": 1})])
def test_what_was_saved_of_a_broken_off_response_is_no_surprise(origin: str, counted: dict[str, int]) -> None:
    body: Any = {"message": {"role": "assistant", "content": []}, "meta": {"source": origin}}
    event_: Any = {"type": "agent.message.appended", "kind": "event", "message": body}
    data = b"".join(json.dumps({"time": 1796014487000, **one}).encode() + b"\n" for one in (prompt(), event_))

    streams, capture = record(RECORDER, [(source(), data)])

    natives = [r for r in standing(streams, Native) if r.native_type == "agent.message.appended"]
    assert [n.data["message"] for n in natives] == [body]
    assert capture.accounts()[1] == counted


def test_a_call_that_the_end_of_the_program_broke_off_is_cancelled() -> None:
    records = given(prompt(), call("Bash", command="sleep 40"), result("Session closed", isError=True))

    (got,) = of(ToolResult, records)

    assert (got.status, got.exec and got.exec.exit_code) == ("cancelled", None)


def test_a_restated_message_that_was_never_said_is_kept_whole() -> None:
    body: Any = {"message": {"role": "assistant", "content": []}, "meta": {"messageId": "resp-unseen"}}
    records = given(prompt(), {"type": "agent.message.appended", "kind": "event", "message": body})

    assert [r.native_type for r in records if isinstance(r, Native)] == ["agent.message.appended"]


def test_a_note_of_a_task_that_is_restated_is_said_once() -> None:
    content = [{"type": "text", "text": "<notification>x failed.</notification>"}]
    origin = {"kind": "task", "taskId": "t"}
    appended = {"type": "context.append_message", "message": {"role": "user", "content": content, "origin": origin}}
    restated: dict[str, Any] = {"message": {"role": "user", "content": content}, "meta": {"source": "notify"}}
    event_: dict[str, Any] = {"kind": "event", "type": "agent.message.appended", "message": restated, "time": 1}

    records = given(
        {"type": "turn.prompt", "input": content, "origin": origin, "turnId": 1, "time": 1}, appended, event_
    )

    assert [m.origin for m in of(Message, records)] == ["injected"]
    assert [m.origin for m in of(Message, given(prompt(), event_))] == ["prompt", "injected"]
    empty: dict[str, Any] = {**event_, "message": {**restated, "message": {"role": "user", "content": []}}}
    assert not [r for r in of(Native, given(prompt(), empty)) if r.native_type == "agent.message.appended"]
    assert "agent.message.appended" not in {r.native_type for r in of(Native, records)}


def test_a_turn_that_was_cancelled_ends_once() -> None:
    records = given(
        prompt(), {"type": "turn.cancel", "turnId": 0}, {"type": "turn.ended", "turnId": 0, "reason": "cancelled"}
    )

    assert [r.status for r in records if isinstance(r, Turn) and r.phase == "end"] == ["interrupted"]


@pytest.mark.parametrize(
    ("origin", "author", "said", "trigger"),
    [
        ({"kind": "user"}, "human", "prompt", "prompt"),
        ({"kind": "skill_activation"}, "human", "command", "command"),
        ({"kind": "system_trigger", "name": "subagent"}, "agent", "agent", "agent"),
        ({"kind": "cron_job"}, "harness", "injected", "schedule"),
        ({"kind": "task"}, "harness", "injected", "agent"),
    ],
)
def test_a_turn_has_what_started_it(origin: dict[str, str], author: str, said: str, trigger: str) -> None:
    turn, message = given(prompt("go", origin=origin))

    assert (turn.trigger, message.author, message.origin) == (trigger, author, said)


def test_a_sub_agent_seen_before_its_parent_says_so_of_its_path_alone() -> None:
    data = json.dumps(prompt(origin={"kind": "system_trigger", "name": "subagent"}) | {"time": 1}).encode() + b"\n"

    (records,) = record(RECORDER, [(source("agent-3"), data)])[0].values()

    header = records[0]
    assert isinstance(header, Session) and header.lineage.parent is not None and header.lineage.evidence is not None
    assert (header.session_id, header.namespace) == ("agent-3", "session_1")
    assert (header.lineage.parent.session_id, header.lineage.evidence.kind) == ("session_1", "native-path")


def test_a_title_that_comes_later_is_a_record() -> None:
    wire = json.dumps({"type": "metadata", "protocol_version": "1.5", "created_at": 1796014487627}).encode() + b"\n"
    state = Source(
        HARNESS, source().group, "session_1/state", "sessions/wd_app_0/session_1/state.json", "document", "", True
    )
    row = Row("state.json", "state.json", "r1", {}, b'{"id":"session_1","cwd":"/w","title":"Adding","agents":{}}')

    (records,) = record(RECORDER, [(source(), wire), (state, [row])])[0].values()

    assert [r.title for r in records if isinstance(r, Config) and r.title] == ["Adding"]


def test_a_file_elsewhere_is_known_by_its_first_lines() -> None:
    (contents,) = groups_of(RECORDER, HOMES / "S1" / "home")

    heads = [content[:4096] for _, content in contents if isinstance(content, bytes)]

    assert [RECORDER.claims(head) for head in heads] == [True]
    assert not RECORDER.claims(b'{"type":"session","version":3}\n')
