"""Gemini CLI: what its captures hold, however they come, and whatever is wrong in them."""

import json
from typing import Any

import pytest

from asrd.recorders.base import StreamKey, sha256
from asrd.recorders.gemini import RECORDER
from asrd.records import (
    Capture,
    Compaction,
    Config,
    FileChange,
    Inference,
    Message,
    Native,
    Plan,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    encode,
)
from asrd.sources import Row, Source
from tests.figures import figures
from tests.golden import CAPTURES
from tests.recorders.arrivals import groups_of, lineage_of, of, record, streams_of
from tests.recorders.scripted import ScriptedCaptures, goes_on_after_a_kill, words

HARNESS = "gemini"
HOMES = CAPTURES / HARNESS


# ---------------------------------------------------------------- lines made here


def source(path: str = "tmp/app/chats/session-2026-11-30T05-01-0123abcd.jsonl") -> Source:
    located = RECORDER.locate(path)
    assert located is not None
    return Source(
        HARNESS, located.group, located.name, path, "document" if path.endswith("json") else "lines", located.order
    )


HEADER = {"sessionId": "0123abcd-1", "projectHash": "f0", "startTime": "2026-11-30T05:01:08.900Z", "kind": "main"}
AT = "2026-11-30T05:01:09.000Z"


def data(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def given(*lines: dict[str, Any]) -> list[Any]:
    (records,) = record(RECORDER, [(source(), data(HEADER, *lines))])[0].values()
    return [r for r in records[1:] if not isinstance(r, Capture)]


def user(text: str, ident: str = "u1", **more: Any) -> dict[str, Any]:
    return {"id": ident, "timestamp": AT, "type": "user", "content": [{"text": text}], **more}


def model(text: str, ident: str = "g1", **more: Any) -> dict[str, Any]:
    return {"id": ident, "timestamp": AT, "type": "gemini", "content": text, "model": "gemini-2.5-pro", **more}


def call(
    name: str, output: str | None = None, ident: str = "c1", status: str = "success", **more: Any
) -> dict[str, Any]:
    response = {"functionResponse": {"id": ident, "name": name, "response": {"output": output}}}
    done = {"result": [response]} if output is not None else {}
    return {"id": ident, "name": name, "args": {"command": "x"}, "status": status, "timestamp": AT, **done, **more}


TOKENS = {"input": 100, "output": 7, "cached": 60, "thoughts": 4, "tool": 0, "total": 111}


class TestCaptures(ScriptedCaptures):
    recorder = RECORDER
    lost = {"S1": ("models",), "S5": ("calls",)}
    """The model of a summary's request, the call that was killed with the program."""

    def seen(self, text: str) -> str:
        """The response part's output."""
        return json.loads(text)["output"]

    def plain(self, ident: str) -> str:
        """Gemini CLI puts the tool's name before it."""
        return ident.split("__", 1)[-1]


def test_the_call_that_the_kill_cut_off_stands_in_no_file() -> None:
    said = TestCaptures().tables("S5")[0]["calls"]

    assert [ident for ident, _, _ in said] == ["call_s5_0_0"]


def test_a_session_that_goes_on_after_a_kill_is_its_beginning_and_more() -> None:
    goes_on_after_a_kill(RECORDER, HOMES / "S5")


def test_a_session_in_two_files_is_one_stream() -> None:
    streams = streams_of(RECORDER, HOMES / "S3-resume-later" / "home")

    (records,) = streams.values()

    assert [r.native_type for r in records if isinstance(r, Native)] == ["header"]
    assert len([r for r in records if isinstance(r, Config) and r.meta and "dev.asrd.source" in r.meta]) == 1


def test_thoughts_are_put_into_the_output_and_cached_tokens_taken_out_of_the_input() -> None:
    (inference,) = of(Inference, given(user("go"), model("hi", tokens=TOKENS)))

    usage = inference.usage
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning) == (40, 60, None, 11, 4)
    assert inference.meta["dev.asrd.usage"] == TOKENS


def test_prompt_tokens_of_tools_are_input_where_the_total_has_them_beside_it() -> None:
    beside = TOKENS | {"tool": 9, "total": 120}
    (inference,) = of(Inference, given(user("go"), model("hi", tokens=beside)))

    assert inference.usage.input == 49


def test_a_message_that_is_stated_again_gives_only_what_is_new() -> None:
    first = model("look", tokens=TOKENS)
    records = given(user("go"), first, first | {"toolCalls": [call("read_file", "text")]}, first)

    kinds = [type(r).__name__ for r in records]

    assert kinds == ["Turn", "Message", "Inference", "Message", "ToolCall", "ToolResult"]


def test_figures_that_come_later_take_the_place_of_none() -> None:
    first, second = of(Inference, given(user("go"), model("hi"), model("hi", tokens=TOKENS)))

    assert (first.usage, second.supersedes) == (None, first.id)


def test_a_list_of_messages_without_figures_takes_nothing_back() -> None:
    parts: list[Any] = [
        {"text": "thought", "thought": True},
        {"text": "hi"},
        {"functionCall": {"id": "c1", "name": "read_file", "args": {}}},
    ]
    bare: dict[str, Any] = {"id": "g1", "timestamp": AT, "type": "gemini", "content": parts}
    whole = model("hi", tokens=TOKENS, toolCalls=[call("read_file", "text")])

    before = given(user("go"), whole)
    after = given(user("go"), whole, {"$set": {"messages": [user("go"), bare], "lastUpdated": AT}})

    assert [encode(r) for r in after] == [encode(r) for r in before]


def test_a_list_of_messages_tells_of_calls_and_results_that_no_message_had() -> None:
    called = {"functionCall": {"id": "c1", "name": "run_shell_command", "args": {"command": "x"}}}
    answered = {
        "functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"error": "gone\nExit Code: 9"}}
    }
    said = [
        {"id": "g1", "timestamp": AT, "type": "gemini", "content": [called]},
        {"id": "g1_response", "timestamp": AT, "type": "user", "content": [answered]},
    ]
    records = given({"$set": {"messages": said}})

    (tool,) = of(ToolCall, records)
    (got,) = of(ToolResult, records)

    assert (tool.call_id, tool.input) == ("c1", {"command": "x"})
    assert (got.status, got.linkage, got.exec.exit_code) == ("failed", "exact", 9)


def test_an_answer_the_harness_put_into_a_list_is_no_request() -> None:
    records = given(user("go"), model("hi", tokens=TOKENS), {"$set": {"messages": [model("Got it.", "g9")]}})

    said = [(words(m), m.inference_id) for m in of(Message, records) if m.role == "assistant"]

    assert [r.inference_id for r in of(Inference, records)] == ["g1"]
    assert said == [("hi", "g1"), ("Got it.", None)]


def test_a_list_with_a_state_snapshot_is_a_compaction() -> None:
    records = given(user("go"), {"$set": {"messages": [user("<state_snapshot>short</state_snapshot>", "s1")]}})

    assert [r.summary for r in records if isinstance(r, Compaction)] == ["<state_snapshot>short</state_snapshot>"]
    assert [r.turn_id for r in records if isinstance(r, Turn)] == ["u1"]


@pytest.mark.parametrize(
    ("output", "status", "code", "signal", "args"),
    [
        (
            "<untrusted_context>\nOutput: no\nExit Code: 101\nProcess Group PGID: 1\n</untrusted_context>",
            "success",
            101,
            None,
            {},
        ),
        ("<untrusted_context>\nOutput: fine\nProcess Group PGID: 1\n</untrusted_context>", "success", 0, None, {}),
        ("Output: no\nError: (none)\nExit Code: 0\nSignal: (none)", "success", 0, None, {}),
        ("Output: cut\nSignal: 15", "success", None, "15", {}),
        ("Output: started", "success", None, None, {"is_background": True}),
        ("Command was cancelled", "cancelled", None, None, {}),
        ("no output at all", "success", None, None, {}),
    ],
)
def test_an_exit_code_is_an_integer_where_it_is_known(
    output: str, status: str, code: int | None, signal: str | None, args: dict[str, Any]
) -> None:
    shell = call("run_shell_command", output, status=status, args={"command": "x", **args})
    (got,) = of(ToolResult, given(user("go"), model("", toolCalls=[shell])))

    assert (got.exec.command, got.exec.exit_code, got.exec.signal) == ("x", code, signal)


@pytest.mark.parametrize(
    ("status", "output", "said"),
    [
        ("success", "fine", "completed"),
        ("error", "no such file", "failed"),
        ("cancelled", "[Operation Cancelled] Reason: User did not allow tool call", "denied"),
        ("cancelled", "[Operation Cancelled] Reason: stopped", "cancelled"),
        ("error", "Tool execution denied by policy.", "denied"),
    ],
)
def test_a_call_that_was_refused_is_told_from_one_that_failed(status: str, output: str, said: str) -> None:
    (got,) = of(ToolResult, given(user("go"), model("", toolCalls=[call("glob", output, status=status)])))

    assert got.status == said


def test_a_call_under_way_has_its_result_when_it_is_over() -> None:
    records = given(
        user("go"),
        model("", toolCalls=[call("glob", status="executing")]),
        model("", toolCalls=[call("glob", "a.txt")]),
    )

    assert [type(r).__name__ for r in records][2:] == ["ToolCall", "ToolResult"]


def test_an_edit_has_both_contents_by_digest() -> None:
    shown = {"fileDiff": "@@", "filePath": "/w/a", "originalContent": None, "newContent": "new\n", "isNewFile": True}
    (change,) = of(FileChange, given(user("go"), model("", toolCalls=[call("write_file", "ok", resultDisplay=shown)])))

    assert (change.change, change.before, change.after.sha256, change.diff) == ("create", None, sha256("new\n"), "@@")


def test_a_sub_agent_names_the_call_that_started_it() -> None:
    header = HEADER | {"sessionId": "child-1", "kind": "subagent"}
    below = source("tmp/app/chats/0123abcd-1/child-1.jsonl")
    parent = data(HEADER, user("go"), model("", toolCalls=[call("invoke_agent", "done", agentId="child-1")]))
    child = data(header, user("count"))

    streams = record(RECORDER, [(source(), parent), (below, child)])[0]
    alone = record(RECORDER, [(below, child)])[0]

    assert below.group == source().group
    (known,) = [lineage_of(r) for k, r in streams.items() if k.session_id == "child-1"]
    (guess,) = [lineage_of(r) for r in alone.values()]
    assert (known.parent.session_id, known.parent.call_id, known.evidence.kind) == ("0123abcd-1", "c1", "native-field")
    assert (guess.parent.session_id, guess.parent.call_id, guess.evidence.kind) == ("0123abcd-1", None, "native-path")
    assert [r.author for r in streams[StreamKey(HARNESS, "child-1")] if isinstance(r, Message)] == ["agent"]


def test_the_older_document_and_the_file_of_lines_beside_it_count_once() -> None:
    document = source("tmp/f00/chats/session-2026-11-30T05-01-0123abcd.json")
    first = HEADER | {"messages": [user("go"), model("hi", tokens=TOKENS)]}
    second = first | {"messages": [*first["messages"], user("more", "u2"), model("ho", "g2", tokens=TOKENS)]}
    rows = [Row("s.json", "s.json", f"r{i}", {}, json.dumps(d).encode()) for i, d in enumerate((first, second))]
    lines = data(HEADER, user("go"), model("hi", tokens=TOKENS))

    streams = record(RECORDER, [(document, rows), (source(), lines)])[0]

    assert document.group == source().group
    assert figures(streams)["requests"] == 2
    (records,) = streams.values()
    assert [r.turn_id for r in records if isinstance(r, Turn)] == ["u1", "u2"]


def test_what_is_said_to_the_person_alone_says_so() -> None:
    records = given({"id": "i1", "timestamp": AT, "type": "error", "content": "quota"})

    (notice,) = of(Message, records)

    assert (notice.role, notice.author, notice.audience) == ("system", "harness", "user")


def test_a_rewind_is_kept_and_undoes_no_request() -> None:
    records = given(user("go"), model("hi", tokens=TOKENS), {"$rewindTo": "u1"})

    assert [r.native_type for r in records if isinstance(r, Native)] == ["$rewindTo"]
    assert len(of(Inference, records)) == 1


def test_what_a_person_typed_is_the_prompt_and_what_was_put_in_is_injected() -> None:
    records = given(user("look at @a\n<a>text</a>", displayContent=[{"text": "look at @a"}]))

    said = [(m.origin, m.content) for m in records if isinstance(m, Message)]

    assert said == [("prompt", [Text(text="look at @a")]), ("injected", [Text(text="look at @a\n<a>text</a>")])]


@pytest.mark.parametrize("more", [{}, {"displayContent": [{"text": "go"}]}])
def test_words_about_a_loop_are_no_prompt(more: dict[str, Any]) -> None:
    loop = "System: Potential loop detected. Details: Repeated tool call: run_shell_command. Please take a step back."

    records = given(user("go"), model("hm"), user(loop, "u2", **more))

    assert [r.turn_id for r in records if isinstance(r, Turn)] == ["u1"]
    assert [m.origin for m in records if isinstance(m, Message) and m.role == "user"] == ["prompt", "injected"]


@pytest.mark.parametrize(
    ("output", "status", "code", "signal"),
    [
        ("Command exited with code 31.\nshell", "failed", 31, None),
        ("Command terminated by signal: SIGKILL.\n", "failed", None, "SIGKILL"),
        ("Command was cancelled.\n", "cancelled", None, None),
        ("shell", "completed", None, None),
    ],
)
def test_a_command_that_a_person_ran_is_no_prompt(
    output: str, status: str, code: int | None, signal: str | None
) -> None:
    words = f"I ran the following shell command:\n```sh\nmake\n```\n\nThis produced the following result:\n```\n{output}\n```"

    records = given(user("go"), user(words, "u2"))

    (_, typed), (ran,) = of(Message, records), of(ToolResult, records)
    assert [r.turn_id for r in of(Turn, records)] == ["u1"]
    assert (typed.author, typed.origin, typed.content) == ("human", "command", [Text(text="!make")])
    assert (ran.status, ran.linkage, ran.content) == (status, "none", [Text(text=output)])
    assert (ran.exec.command, ran.exec.exit_code, ran.exec.signal) == ("make", code, signal)


def test_what_a_list_says_again_under_another_id_is_said_once() -> None:
    merged = user("go", "u9", content=[{"text": "go"}, {"text": "on"}])
    again = {"$set": {"messages": [user("go", "u8"), merged, model("hi", "g9", tokens=None)]}}

    records = given(user("go"), user("on", "u2"), model("hi", tokens=TOKENS), again)

    assert [m.message_id for m in of(Message, records)] == ["u1", "u2", "g1"]
    assert [t.turn_id for t in of(Turn, records)] == ["u1", "u2"]
    assert len(of(Inference, records)) == 1


def test_an_answer_out_of_a_checkpoint_is_no_request() -> None:
    said = model("one", tokens=None)
    del said["model"]

    assert not of(Inference, given(user("go"), said))


def test_todos_are_the_plan_as_a_whole() -> None:
    todos = [{"description": "a", "status": "completed"}, {"description": "b", "status": "pending"}]
    records = given(user("go"), model("", toolCalls=[call("write_todos", "ok", args={"todos": todos})]))

    (plan,) = of(Plan, records)

    assert [(i.text, i.status) for i in plan.items] == [("a", "completed"), ("b", "pending")]


def test_a_file_whose_header_was_lost_goes_by_its_name() -> None:
    (key,) = record(RECORDER, [(source(), data(user("go")))])[0]

    assert key.session_id == "0123abcd"


def test_a_file_elsewhere_is_known_by_its_first_line() -> None:
    (contents,) = groups_of(RECORDER, HOMES / "S1" / "home")

    assert [RECORDER.claims(content[:4096]) for _, content in contents if isinstance(content, bytes)] == [True]
    assert not RECORDER.claims(b'{"sessionId":"x","type":"user"}\n')
