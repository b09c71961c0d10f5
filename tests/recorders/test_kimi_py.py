"""kimi-cli: what its captures hold, however they come, and whatever is wrong in them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from asrd.capture import Capture as Life
from asrd.convert import Streams, take
from asrd.recorders.base import sha256
from asrd.recorders.kimi import RECORDER as KIMI
from asrd.recorders.kimi_py import RECORDER, folders_of
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
    ToolCall,
    ToolResult,
    Turn,
)
from asrd.sources import Row, Source
from tests.golden import CAPTURES
from tests.homes import recorded
from tests.recorders.arrivals import cases_of, groups_of, of, record, streams_of
from tests.recorders.scripted import ScriptedCaptures, findings, goes_on_after_a_kill

HARNESS = "kimi-py"
HOMES = CAPTURES / HARNESS


# ---------------------------------------------------------------- lines made here


def source(below: str = "wire.jsonl") -> Source:
    path = f"sessions/0cc175b9/one/{below}"
    located = RECORDER.locate(path)
    assert located is not None
    return Source(HARNESS, located.group, located.name, path, "lines", located.order)


def streams_given(*messages: tuple[str, dict[str, Any]], below: str = "wire.jsonl") -> Streams:
    """The streams these messages of a wire give."""
    lines = [{"type": "metadata", "protocol_version": "1.10"}]
    lines += [
        {"timestamp": 1796015242.5 + i, "message": {"type": t, "payload": p}} for i, (t, p) in enumerate(messages)
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    streams = record(RECORDER, [(source(below), data)])[0]
    assert findings(streams) == []
    return streams


def given(*messages: tuple[str, dict[str, Any]]) -> list[Any]:
    (records,) = streams_given(*messages).values()
    return [r for r in records[1:] if not isinstance(r, Capture)]


TURN = ("TurnBegin", {"user_input": "go"})
STEP = ("StepBegin", {"n": 1})


def call(name: str, ident: str = "c1", **args: Any) -> tuple[str, dict[str, Any]]:
    return "ToolCall", {"type": "function", "id": ident, "function": {"name": name, "arguments": json.dumps(args)}}


def result(ident: str = "c1", **value: Any) -> tuple[str, dict[str, Any]]:
    return "ToolResult", {"tool_call_id": ident, "return_value": {"is_error": False, "output": "", **value}}


class TestCaptures(ScriptedCaptures):
    recorder = RECORDER
    killed = frozenset({"call_s5_1_0"})
    lost = dict.fromkeys(cases_of(HARNESS), ("models",))
    """No message of the wire says which model answered."""


def test_what_the_wire_does_not_say_is_said_once_behind_the_header() -> None:
    records = next(iter(streams_of(RECORDER, HOMES / "S1" / "home").values()))

    states = [r.facet for r in records if isinstance(r, Capture)]

    assert states[:2] == ["inference.model", "usage.reasoning"]
    assert all(isinstance(r, Capture) for r in records[1 : len(states) + 1])


@pytest.mark.parametrize(
    ("version", "below", "said"),
    [("1.1", "wire.jsonl", True), ("1.10", "wire.jsonl", False), ("1.1", "subagents/ab01/wire.jsonl", False)],
)
def test_a_wire_whose_protocol_has_no_end_of_a_turn_says_so(version: str, below: str, said: bool) -> None:
    lines = [{"type": "metadata", "protocol_version": version}]
    lines += [{"timestamp": 1796015242.5, "message": {"type": t, "payload": p}} for t, p in (TURN, STEP)]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    streams = record(RECORDER, [(source(below), data)])[0]

    facets = [r.facet for records in streams.values() for r in records if isinstance(r, Capture)]
    assert ("turn.end" in facets) is said
    assert [r for records in streams.values() for r in records if isinstance(r, Turn) and r.phase == "end"] == []


def test_a_session_that_goes_on_after_a_kill_is_its_beginning_and_more() -> None:
    goes_on_after_a_kill(RECORDER, HOMES / "S5")


def test_a_response_has_the_id_the_wire_gives_at_its_end() -> None:
    usage = {"input_other": 10, "output": 3, "input_cache_read": 5, "input_cache_creation": 2}
    records = given(TURN, STEP, ("StatusUpdate", {"token_usage": usage, "message_id": "resp-1"}))

    first, second = of(Inference, records)

    assert (second.supersedes, second.native_id, second.id_source) == (first.id, "resp-1", "derived")
    assert second.usage is not None
    assert (second.usage.input, second.usage.cache_read, second.usage.cache_write, second.usage.output) == (10, 5, 2, 3)


def test_a_call_whose_arguments_come_in_pieces_is_whole_in_the_end() -> None:
    opened = ("ToolCall", {"id": "c1", "function": {"name": "Shell", "arguments": '{"comm'}})
    records = given(
        TURN,
        STEP,
        opened,
        ("ToolCallPart", {"arguments_part": 'and": "l'}),
        ("ToolCallPart", {"arguments_part": 's"}'}),
        result(output="a.txt", message="Command executed successfully."),
    )

    calls = of(ToolCall, records)
    (got,) = of(ToolResult, records)

    assert [c.input for c in calls] == [{"raw": '{"comm'}, {"command": "ls"}]
    assert calls[1].supersedes == calls[0].id
    assert got.exec is not None and (got.exec.command, got.exec.exit_code) == ("ls", 0)


@pytest.mark.parametrize(
    ("message", "failed", "status", "code", "late"),
    [
        ("Command executed successfully.", False, "completed", 0, None),
        ("Command failed with exit code: 101.", True, "failed", 101, None),
        ("Command killed by timeout (60s)", True, "failed", None, True),
        ("The tool call is rejected by the user. Stop what you are doing.", True, "denied", None, None),
        ("Background task started.", False, "completed", None, None),
    ],
)
def test_an_exit_code_is_an_integer_where_it_is_known(
    message: str, failed: bool, status: str, code: int | None, late: bool | None
) -> None:
    records = given(TURN, call("Shell", command="x"), result(is_error=failed, message=message))

    (got,) = of(ToolResult, records)

    assert got.exec is not None
    assert (got.status, got.exec.exit_code, got.exec.timed_out) == (status, code, late)


@pytest.mark.parametrize(
    ("response", "decision", "status"),
    [
        ("approve", "allow", "completed"),
        ("approve_for_session", "allow_always", "completed"),
        ("reject", "deny", "denied"),
    ],
)
def test_a_person_decides_on_a_call(response: str, decision: str, status: str) -> None:
    records = given(
        TURN,
        call("Shell", command="x"),
        (
            "ApprovalRequest",
            {"id": "a1", "tool_call_id": "c1", "sender": "Shell", "action": "run command", "description": "x"},
        ),
        ("ApprovalResponse", {"request_id": "a1", "response": response}),
        result(is_error=response == "reject", message="no"),
    )

    asked, decided = of(Approval, records)
    (got,) = of(ToolResult, records)

    assert (asked.phase, asked.call_id, decided.call_id, decided.decision) == ("requested", "c1", "c1", decision)
    assert got.status == status


WHOLE = "2 lines read from file starting from line 1. Total lines in file: 2. End of file reached."
READ = [
    call("ReadFile", path="/w/a.txt"),
    result(
        output="     1\tone\n     2\ttwo\n",
        message=WHOLE,
    ),
]
EDIT = call("StrReplaceFile", "c2", path="/w/a.txt", edit={"old": "two", "new": "three"})
RUN = [call("Shell", "c3", command="x"), result("c3", message="Command executed successfully.")]


def shown(old: str, new: str) -> tuple[str, dict[str, Any]]:
    diff = {"type": "diff", "path": "/w/a.txt", "old_text": old, "new_text": new, "old_start": 1, "new_start": 1}
    return result("c2", message="File successfully edited.", display=[diff])


def change_of(*messages: tuple[str, dict[str, Any]]) -> Any:
    (change,) = of(FileChange, given(TURN, *messages))
    return change


def test_an_edit_of_a_file_that_was_read_whole_has_both_digests() -> None:
    change = change_of(*READ, EDIT, shown("two", "three"))

    assert (change.before.sha256, change.after.sha256) == (sha256("one\ntwo\n"), sha256("one\nthree\n"))


def test_after_a_command_only_a_diff_of_the_whole_file_proves_what_it_held() -> None:
    sure = change_of(*READ, *RUN, EDIT, shown("one\ntwo", "one\nthree"))
    unsure = change_of(*READ, *RUN, EDIT, shown("two", "three"))

    assert (sure.before.sha256, sure.after.sha256) == (sha256("one\ntwo\n"), sha256("one\nthree\n"))
    assert (unsure.before, unsure.after) == (None, None)


def test_a_file_that_is_written_whole_has_its_digest_afterwards() -> None:
    write = call("WriteFile", "c2", path="/w/a.txt", content="new\n")
    change = change_of(write, shown("", "new"))

    assert (change.change, change.before, change.after.sha256) == ("create", None, sha256("new\n"))


def test_a_sub_agent_of_an_old_wire_is_known_from_its_parents_lines() -> None:
    inside = [("TurnBegin", {"user_input": "count"}), STEP, ("ContentPart", {"type": "text", "text": "two"})]
    events = [("SubagentEvent", {"task_tool_call_id": "c1", "event": {"type": t, "payload": p}}) for t, p in inside]
    streams = streams_given(TURN, STEP, call("Task"), *events)

    main, child = streams.values()
    header = child[0]

    assert isinstance(header, Session) and header.lineage.parent is not None
    assert (header.session_id, header.namespace, header.lineage.parent.call_id) == ("c1", "one", "c1")
    assert [r.call_id for r in main if isinstance(r, Link)] == ["c1"]
    assert [r.content for r in child if isinstance(r, Message)] == [[Text(text="count")], [Text(text="two")]]


def test_a_sub_agent_with_a_file_of_its_own_is_recorded_from_that() -> None:
    event = {"type": "ContentPart", "payload": {"type": "text", "text": "two"}}
    streams = streams_given(
        TURN, call("Agent"), ("SubagentEvent", {"parent_tool_call_id": "c1", "agent_id": "ab", "event": event})
    )

    (main,) = streams.values()

    assert [r.target.session_id for r in main if isinstance(r, Link)] == ["ab"]
    assert len(of(Message, main)) == 1


def test_a_turn_that_was_interrupted_says_so() -> None:
    records = given(TURN, STEP, ("StepInterrupted", {}), ("TurnEnd", {}))

    assert [r.status for r in records if isinstance(r, Turn) and r.phase == "end"] == ["interrupted"]
    assert [r.native_type for r in records if isinstance(r, Native)] == ["metadata", "StepInterrupted"]


def test_a_compaction_is_known_without_its_figures() -> None:
    records = given(TURN, STEP, ("CompactionBegin", {}), ("CompactionEnd", {}))

    assert len(of(Compaction, records)) == 1


def test_todos_are_the_plan_as_a_whole() -> None:
    records = given(
        TURN, call("SetTodoList", todos=[{"title": "a", "status": "done"}, {"title": "b", "status": "pending"}])
    )

    (plan,) = of(Plan, records)

    assert [(i.text, i.status) for i in plan.items] == [("a", "completed"), ("b", "pending")]


def test_plan_mode_is_said_when_it_changes() -> None:
    records = given(*[("StatusUpdate", {"plan_mode": mode}) for mode in (False, True, True, False)])

    assert [r.mode for r in records if isinstance(r, Config)] == ["plan", "default"]


def test_a_file_elsewhere_is_known_by_its_first_lines() -> None:
    (contents,) = groups_of(RECORDER, HOMES / "S1" / "home")

    assert [RECORDER.claims(content[:4096]) for _, content in contents if isinstance(content, bytes)] == [True]
    assert not any(KIMI.claims(content[:4096]) for _, content in contents if isinstance(content, bytes))


BASH = "task_id: bash-odapykfd\nkind: bash\nstatus: starting\ndescription: b\nautomatic_notification: true\n"
AGENT = (
    "task_id: agent-4fm660ak\nkind: agent\nstatus: starting\ndescription: bgd\nagent_id: ae5c50662\n"
    "actual_subagent_type: coder\nautomatic_notification: true\n"
)


def noted(code: int | None, **more: Any) -> tuple[str, dict[str, Any]]:
    told = {"task_id": "bash-odapykfd", "task_kind": "bash", "exit_code": code, "timed_out": False, "duration_s": 2.01}
    return "Notification", {"id": "n1", "category": "task", "payload": {**told, **more}}


def test_a_command_in_the_background_gets_the_exit_code_of_its_end() -> None:
    asked = call("Shell", command="sleep 2; exit 4", run_in_background=True)

    records = given(TURN, STEP, asked, result(output=BASH, message="Background task started."), noted(4))

    first, last = [r for r in records if isinstance(r, ToolResult)]
    assert (first.status, first.exec and first.exec.exit_code) == ("completed", None)
    assert (last.status, last.supersedes) == ("failed", first.id)
    assert last.exec and (last.exec.exit_code, last.exec.duration_ms) == (4, 2010)


def test_a_note_without_an_exit_code_is_kept_whole() -> None:
    asked = call("Shell", command="x", run_in_background=True)

    records = given(TURN, STEP, asked, result(output=BASH), noted(None))

    assert len([r for r in records if isinstance(r, ToolResult)]) == 1
    assert [r.native_type for r in records if isinstance(r, Native)][-1] == "Notification"


def test_a_sub_agent_in_the_background_is_linked_by_the_result_of_its_call() -> None:
    records = given(TURN, STEP, call("Agent", prompt="go", run_in_background=True), result(output=AGENT))

    (link,) = [r for r in records if isinstance(r, Link)]
    assert (link.relation, link.target.session_id, link.call_id) == ("spawned", "ae5c50662", "c1")
    assert (link.evidence.kind, link.evidence.value) == ("native-id-in-output", "ae5c50662")


def test_a_reminder_that_starts_a_turn_is_no_prompt() -> None:
    words = "<system-reminder>Background tasks have completed. Process their results.</system-reminder>"

    *_, start, said = given(("TurnBegin", {"user_input": words}))

    assert (start.trigger, said.author, said.origin) == ("agent", "harness", "injected")


def test_what_is_appended_to_a_file_creates_none() -> None:
    diff = {"type": "diff", "path": "/w/n.txt", "old_text": "", "new_text": "more", "old_start": 1, "is_summary": False}
    write, append = call("WriteFile", path="/w/n.txt", content="n\n"), {"path": "/w/n.txt", "content": "more\n"}

    records = given(
        TURN, STEP, write, result(display=[{**diff, "new_text": "n"}]),
        call("WriteFile", "c2", mode="append", **append), result("c2", display=[diff]),
    )  # fmt: skip

    changes = [(r.change, r.after and r.after.bytes) for r in records if isinstance(r, FileChange)]
    assert changes == [("create", 2), ("modify", 7)]


# ---------------------------------------------------------------- beside the wire

GROUP = "sessions/5f4dcc3b5aa765d61d8327deb882cf99/one"
WIRE = Source(HARNESS, GROUP, "one/", f"{GROUP}/wire.jsonl", "lines", "0")
BESIDE = Source(HARNESS, GROUP, "one/state", f"{GROUP}/state.json", "document", "2")
PROMPTED = b'{"timestamp":1.5,"message":{"type":"TurnBegin","payload":{"user_input":"Fix the adder, please."}}}\n'


def beside(*told: dict[str, Any], wire: bytes = PROMPTED) -> tuple[list[Any], dict[str, int]]:
    """What a session says when its `state.json` says these, one after the other."""
    capture = Life(RECORDER, GROUP)
    capture.receive_bytes(WIRE, wire)
    for number, one in enumerate(told):
        capture.receive_rows(BESIDE, [Row("state.json", "state.json", str(number), {}, json.dumps(one).encode())])
    streams: Streams = {}
    take(streams, capture)
    said: list[Any] = [r for records in streams.values() for r in of(Config, records)]
    told_of = [(r.title, r.meta.get("dev.asrd.kimi")) for r in said]
    return [one for one in told_of if one != (None, None)], capture.accounts()[0]


def test_the_working_folder_is_the_one_whose_digest_names_the_sessions() -> None:
    streams = streams_of(RECORDER, HOMES / "S1-v1.0" / "home")

    (records,) = streams.values()

    assert [r.cwd for r in of(Config, records) if r.cwd] == ["/home/dev/app"]


def test_a_session_whose_folder_no_one_names_has_none(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(HOMES / "S1-v1.0" / "home", home)
    (home / ".kimi/kimi.json").write_text('{"work_dirs":[{"path":"/elsewhere"}]}')

    (records,) = streams_of(RECORDER, home).values()

    assert [r.cwd for r in of(Config, records) if r.cwd] == []


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"work_dirs":[{"path":1}]}', b"\xff"])
def test_a_list_of_folders_that_is_damaged_names_none(data: bytes) -> None:
    assert folders_of(data) == []


def test_the_folder_is_that_of_the_session_where_the_header_knows_none(tmp_path: Path) -> None:
    with recorded(HOMES / "S1-v1.0" / "home", tmp_path / "store") as one:
        assert [s.row.cwd for s in one.rows.sessions()] == ["/home/dev/app"]


@pytest.mark.parametrize(
    ("told", "titles"),
    [
        ({"custom_title": "Fix the adder,…"}, []),
        ({"custom_title": "Fix the adder, please."}, []),
        ({"custom_title": "Fix the adder…", "title_generated": True}, ["Fix the adder…"]),
        ({"custom_title": "An adder"}, ["An adder"]),
        ({"custom_title": None}, []),
    ],
)
def test_a_title_is_told_but_for_a_prompt(told: dict[str, Any], titles: list[str]) -> None:
    said, skips = beside(told)

    assert [title for title, _ in said] == titles
    assert skips.get("state-says-nothing-new", 0) == (0 if titles else 1)


def test_what_needs_no_approval_is_told_when_it_is_another_than_at_first() -> None:
    default: dict[str, Any] = {
        "approval": {"yolo": False, "afk": False, "auto_approve_actions": []},
        "additional_dirs": [],
    }
    yolo = default | {"approval": {"yolo": True, "afk": False, "auto_approve_actions": ["run command"]}}

    said, skips = beside(default, yolo, yolo, default)

    assert [(meta["approval"]["yolo"], meta["approval"]["auto_approve_actions"]) for _, meta in said] == [
        (True, ["run command"]),
        (False, []),
    ]
    assert skips["state-says-nothing-new"] == 2


def test_the_state_of_a_session_without_a_wire_makes_none() -> None:
    said, skips = beside({"custom_title": "An adder"}, wire=b"")

    assert (said, skips) == ([], {"state-of-no-session": 1})
