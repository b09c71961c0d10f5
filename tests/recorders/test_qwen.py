"""Qwen Code: what its captures hold, however they come, and whatever is wrong in them."""

import json
from typing import Any

import pytest

from asrd.recorders.base import StreamKey, sha256
from asrd.recorders.qwen import RECORDER
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
from tests.recorders.scripted import ScriptedCaptures, findings, goes_on_after_a_kill, words

HARNESS = "qwen"
HOMES = CAPTURES / HARNESS


# ---------------------------------------------------------------- lines made here


def source(path: str = "projects/-w/chats/s1.jsonl", kind: Any = "lines") -> Source:
    located = RECORDER.locate(path)
    assert located is not None
    return Source(HARNESS, located.group, located.name, path, kind, located.order, kind == "document")


COUNT = iter(range(1, 100_000))


def line(kind: str, **more: Any) -> dict[str, Any]:
    base = {"uuid": f"l{next(COUNT)}", "parentUuid": None, "sessionId": "s1", "timestamp": "2026-11-30T05:01:24.918Z"}
    return {**base, "type": kind, "cwd": "/w", "version": "0.24.4", "gitBranch": "main", **more}


def data(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in lines)


def given(*lines: dict[str, Any]) -> list[Any]:
    (records,) = record(RECORDER, [(source(), data(*lines))])[0].values()
    return [r for r in records[1:] if not isinstance(r, Capture)]


def user(text: str = "go", **more: Any) -> dict[str, Any]:
    return line("user", **{"provenance": "real_user", "message": {"role": "user", "parts": [{"text": text}]}, **more})


def answer(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return line("assistant", model="m", message={"role": "model", "parts": list(parts)}, **more)


def call(name: str, ident: str = "c1", **args: Any) -> dict[str, Any]:
    return answer({"functionCall": {"id": ident, "name": name, "args": args}})


def result(output: str, ident: str = "c1", failed: bool = False, **more: Any) -> dict[str, Any]:
    response = {"functionResponse": {"id": ident, "name": "x", "response": {"error" if failed else "output": output}}}
    status = "error" if failed else "success"
    told = {"callId": ident, "status": status, **more}
    return line("tool_result", message={"role": "user", "parts": [response]}, toolCallResult=told)


def system(subtype: str, **payload: Any) -> dict[str, Any]:
    return line("system", subtype=subtype, systemPayload=payload)


def telemetry(name: str, **more: Any) -> dict[str, Any]:
    return system("ui_telemetry", uiEvent={"event.name": f"qwen-code.{name}", "prompt_id": "s1########0", **more})


FIGURES = {
    "input_token_count": 100,
    "output_token_count": 9,
    "cached_content_token_count": 60,
    "thoughts_token_count": 4,
}
USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 9, "cachedContentTokenCount": 60, "thoughtsTokenCount": 4}
RESPONSE = telemetry("api_response", response_id="resp-1", model="m", duration_ms=5, **FIGURES)
SAID = answer({"text": "hi"}, usageMetadata=USAGE)


class TestCaptures(ScriptedCaptures):
    recorder = RECORDER
    killed = frozenset({"call_s5_1_0"})


def test_a_session_that_goes_on_after_a_kill_is_its_beginning_and_more() -> None:
    goes_on_after_a_kill(RECORDER, HOMES / "S5")


@pytest.mark.parametrize("lines", [[RESPONSE, SAID], [SAID, RESPONSE], [RESPONSE], [SAID]])
def test_a_response_stated_by_telemetry_and_by_its_message_counts_once(lines: list[dict[str, Any]]) -> None:
    streams = record(RECORDER, [(source(), data(user(), *lines))])[0]

    (inference,) = standing(streams, Inference)

    usage = inference.usage
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning) == (40, 60, None, 9, 4)
    assert inference.inference_id == ("resp-1" if RESPONSE in lines else SAID["uuid"])


def test_figures_that_are_all_zero_are_no_figures() -> None:
    broken_off = telemetry(
        "api_response", response_id="resp-1", model="m", input_token_count=0, output_token_count=0, total_token_count=0
    )

    (inference,) = of(Inference, given(user(), broken_off))

    assert (inference.inference_id, inference.usage) == ("resp-1", None)


def test_two_responses_with_equal_figures_are_two() -> None:
    again = telemetry("api_response", response_id="resp-2", model="m", **FIGURES)
    records = given(user(), RESPONSE, SAID, again, answer({"text": "ho"}, usageMetadata=USAGE))

    said = [(m.inference_id, words(m)) for m in of(Message, records) if m.role == "assistant"]

    assert [r.inference_id for r in records if isinstance(r, Inference)] == ["resp-1", "resp-2"]
    assert said == [("resp-1", "hi"), ("resp-2", "ho")]


def test_a_request_that_failed_has_its_error_and_no_figures() -> None:
    (inference,) = of(
        Inference, given(user(), telemetry("api_error", model="m", status_code=429, error_message="slow down"))
    )

    assert (inference.usage, inference.error.code, inference.error.message) == (None, "429", "slow down")


def test_the_memory_extractor_counts_where_it_is_told_of() -> None:
    records = next(iter(streams_of(RECORDER, HOMES / "S1" / "home").values()))

    aside = [r for r in records if isinstance(r, Inference) and "dev.asrd.subagent" in (r.meta or {})]

    (one,) = aside
    assert one.meta is not None and one.meta["dev.asrd.subagent"]["name"] == "managed-auto-memory-extractor"
    assert one.usage is not None and one.usage.output == 922


@pytest.mark.parametrize("order", [0, 1])
def test_a_sub_agents_responses_count_in_its_stream_whatever_comes_first(order: int) -> None:
    meta = {"agentId": "a1", "toolUseId": "c1", "parentSessionId": "s1", "createdAt": "2026-11-30T05:01:30.000Z"}
    row = Row("m", "m", "r1", {}, json.dumps(meta).encode())
    side = (source("projects/-w/subagents/s1/agent-a1.meta.json", "document"), [row])
    below = (source("projects/-w/subagents/s1/agent-a1.jsonl"), data(user("count", agentId="a1"), SAID))
    main = (
        source(),
        data(user(), call("agent"), telemetry("api_response", response_id="resp-1", subagent_id="a1", **FIGURES)),
    )

    streams = record(RECORDER, [side, main, below] if order else [side, below, main])[0]

    child = streams[StreamKey(HARNESS, "a1", "s1")]
    assert [r.inference_id for r in standing({StreamKey(HARNESS, "a1", "s1"): child}, Inference) if r.usage] == [
        "resp-1"
    ]
    assert figures(streams)["requests"] == 1
    assert [(r.call_id, r.target.session_id) for r in standing(streams, Link)] == [("c1", "a1")]
    assert findings(streams) == []


def test_a_sidecar_that_comes_after_the_call_is_a_link() -> None:
    row = Row("m", "m", "r1", {}, b'{"agentId":"a1","toolUseId":"c1","parentSessionId":"s1"}')
    side = (source("projects/-w/subagents/s1/agent-a1.meta.json", "document"), [row])

    (records,) = record(RECORDER, [(source(), data(user(), call("agent"))), side])[0].values()

    assert [(r.relation, r.call_id, r.target.session_id) for r in records if isinstance(r, Link)] == [
        ("spawned", "c1", "a1")
    ]


def test_a_fork_repeats_lines_that_never_count() -> None:
    (contents,) = groups_of(RECORDER, HOMES / "S1" / "home")
    ((origin, content),) = contents
    assert isinstance(content, bytes)
    copied: list[bytes] = []
    for one in map(json.loads, content.splitlines()):
        mark = {"sessionId": one["sessionId"], "messageUuid": one["uuid"]}
        copied.append(json.dumps(one | {"sessionId": "fork", "forkedFrom": mark}).encode())
    own = json.dumps(user("and?", sessionId="fork")).encode()
    fork = source("projects/-w/chats/fork.jsonl")

    (records,) = record(RECORDER, [(fork, b"\n".join([*copied, own, b""]))])[0].values()

    header = records[0]
    assert isinstance(header, Session) and header.lineage.parent is not None
    assert (header.session_id, header.lineage.relation) == ("fork", "forked_from")
    assert header.lineage.parent.session_id == origin.name.removesuffix("/")
    assert [m.content for m in records if isinstance(m, Message) and not m.copy_of] == [[Text(text="and?")]]
    assert figures({StreamKey(HARNESS, "fork"): records})["requests"] == 0
    assert {r.copy_of.session_id for r in records if r.copy_of} == {header.lineage.parent.session_id}


def test_a_compaction_says_its_tokens_and_its_summary() -> None:
    records = next(iter(streams_of(RECORDER, HOMES / "S4" / "home").values()))

    (compaction,) = of(Compaction, records)

    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == ("manual", 41910, 41137)
    assert compaction.summary is not None and compaction.summary.startswith("<state_snapshot>")


@pytest.mark.parametrize(
    ("display", "text", "code", "signal"),
    [
        ({"type": "shell_result", "exitCode": 101, "signal": None}, "no", 101, None),
        ({"type": "shell_result", "exitCode": None, "signal": "SIGKILL"}, "no", None, "SIGKILL"),
        (None, "Output: fine\nExit Code: 0\nSignal: (none)", 0, None),
        ("", "no words of it", None, None),
    ],
)
def test_an_exit_code_is_an_integer_where_it_is_known(
    display: Any, text: str, code: int | None, signal: str | None
) -> None:
    records = given(user(), call("run_shell_command", command="x"), result(text, resultDisplay=display))

    (got,) = of(ToolResult, records)

    assert (got.exec.command, got.exec.exit_code, got.exec.signal) == ("x", code, signal)


@pytest.mark.parametrize(("decision", "status", "said"), [("reject", "denied", "deny"), ("accept", "failed", "allow")])
def test_a_person_decides_on_a_call(decision: str, status: str, said: str) -> None:
    records = given(
        user(),
        call("edit", file_path="/w/a"),
        telemetry("tool_call", call_id="c1", decision=decision, duration_ms=3),
        result("no", failed=True),
    )

    (decided,) = of(Approval, records)
    (got,) = of(ToolResult, records)

    assert (decided.decision, decided.by, got.status) == (said, "human", status)


def test_what_the_policy_lets_pass_is_left_out_by_name() -> None:
    streams, capture = record(
        RECORDER, [(source(), data(user(), telemetry("tool_call", call_id="c1", decision="auto_accept")))]
    )

    assert standing(streams, Approval) == []
    assert capture.accounts()[0] == {"call-restated": 1}


SHOWN = {"fileDiff": "@@", "filePath": "/w/a", "originalContent": "one\n", "newContent": "two\n"}


@pytest.mark.parametrize(
    ("more", "change", "before", "after"),
    [
        ({}, "modify", "one\n", "two\n"),
        ({"originalContent": None}, "create", None, "two\n"),
        (
            {"truncatedForSession": True, "originalContentTruncated": True, "newContentTruncated": False},
            "modify",
            None,
            "two\n",
        ),
        ({"truncatedForSession": True}, "modify", None, None),
    ],
)
def test_an_edit_has_its_contents_by_digest_unless_they_were_cut(
    more: dict[str, Any], change: str, before: str | None, after: str | None
) -> None:
    records = given(user(), call("edit", file_path="/w/a"), result("ok", resultDisplay=SHOWN | more))

    (got,) = of(FileChange, records)

    assert (got.path.path, got.path.root, got.change) == ("a", "r1", change)
    assert (got.before and got.before.sha256, got.after and got.after.sha256) == (
        sha256(before) if before else None,
        sha256(after) if after else None,
    )


@pytest.mark.parametrize(
    ("output", "change", "before"),
    [
        ("Successfully created and wrote to new file: /w/a.", "create", None),
        ("Successfully overwrote file: /w/a.", "modify", sha256("")),
    ],
)
def test_a_file_that_was_not_there_is_told_from_an_empty_one(output: str, change: str, before: str | None) -> None:
    shown = SHOWN | {"originalContent": ""}
    records = given(user(), call("write_file", file_path="/w/a"), result(output, resultDisplay=shown))

    (got,) = of(FileChange, records)

    assert (got.change, got.before and got.before.sha256) == (change, before)


def test_todos_are_the_plan_as_a_whole() -> None:
    shown = {"type": "todo_list", "todos": [{"id": "1", "content": "a", "status": "completed"}]}
    records = given(user(), call("todo_write"), result("ok", resultDisplay=shown))

    assert [(i.text, i.status) for r in records if isinstance(r, Plan) for i in r.items] == [("a", "completed")]


@pytest.mark.parametrize(
    ("more", "author", "origin", "trigger"),
    [
        ({}, "human", "prompt", "prompt"),
        ({"subtype": "notification", "provenance": "system"}, "harness", "injected", "agent"),
        ({"subtype": "cron", "provenance": "system"}, "harness", "injected", "schedule"),
        ({"provenance": "goal_runtime"}, "harness", "injected", None),
    ],
)
def test_a_turn_has_what_started_it(more: dict[str, Any], author: str, origin: str, trigger: str | None) -> None:
    turn, message = given(user(**more))

    assert (turn.trigger, message.author, message.origin) == (trigger, author, origin)


def test_a_message_in_the_middle_of_a_turn_starts_none() -> None:
    records = given(user(), user("and", subtype="mid_turn_user_message"))

    assert len(of(Turn, records)) == 1
    assert len([r for r in records if isinstance(r, Message) and r.origin == "prompt"]) == 2


def test_a_line_that_goes_back_in_history_names_its_parent() -> None:
    first = user("one")
    second = user("two", parentUuid=first["uuid"])
    third = user("three", parentUuid=first["uuid"])
    records = given(first, second, third)

    named = [r.parent for r in records if isinstance(r, Message)]
    (origin, *_) = [r.id for r in records if isinstance(r, Message)]

    assert named == [None, None, origin]


def test_changes_of_folder_version_title_model_and_mode_are_said() -> None:
    records = given(
        user(),
        user("more", cwd="/x", version="0.25.0"),
        *(
            one | {"cwd": "/x", "version": "0.25.0"}
            for one in (
                system("custom_title", customTitle="Adding"),
                system("session_model", modelId="m2", authType="openai"),
                system("session_approval_mode", mode="plan"),
            )
        ),
    )

    said = [(c.cwd, c.version, c.title, c.model, c.mode) for c in records if isinstance(c, Config)]

    assert said == [
        ("/x", "0.25.0", None, None, None),
        (None, None, "Adding", None, None),
        (None, None, None, "m2", None),
        (None, None, None, None, "plan"),
    ]


def test_a_command_typed_is_no_prompt() -> None:
    records = given(
        system("slash_command", phase="invocation", rawCommand="/compress"),
        system("slash_command", phase="result", rawCommand="/compress", outputHistoryItems=[{"type": "info"}]),
    )

    assert [(m.origin, m.content) for m in records if isinstance(m, Message)] == [("command", [Text(text="/compress")])]
    assert [r.native_type for r in records if isinstance(r, Native)] == ["system/slash_command"]


def test_a_session_another_one_started_says_which() -> None:
    records = given(user(), system("parent_session", parentSessionId="s0"))

    assert [(r.relation, r.target.session_id) for r in records if isinstance(r, Link)] == [("spawned_by", "s0")]


@pytest.mark.parametrize(
    "subtype", ["at_command", "rewind", "file_history_snapshot", "branch_checkpoint", "turn_result"]
)
def test_a_kind_without_a_place_is_kept_whole(subtype: str) -> None:
    records = given(user(), system(subtype, n=1))

    assert [(r.native_type, r.data["systemPayload"]) for r in records if isinstance(r, Native)] == [
        (f"system/{subtype}", {"n": 1})
    ]


def test_a_file_elsewhere_is_known_by_its_first_line() -> None:
    (contents,) = groups_of(RECORDER, HOMES / "S1" / "home")

    assert [RECORDER.claims(content[:4096]) for _, content in contents if isinstance(content, bytes)] == [True]
    assert not RECORDER.claims(
        b'{"parentUuid":null,"sessionId":"x","type":"user","message":{"role":"user","content":"hi"}}\n'
    )


@pytest.mark.parametrize(
    ("name", "args", "words", "change", "size"),
    [
        ("write_file", {"content": "sa\n"}, "Successfully created and wrote to new file: /w/a.", "create", 3),
        ("write_file", {"content": "sa\n"}, "Successfully overwrote file: /w/a.", "modify", None),
        ("edit", {"old_string": "", "new_string": "é"}, "Created new file: /w/a with provided content.", "create", 2),
        ("edit", {"old_string": "a", "new_string": "b"}, "The file: /w/a has been updated.", "modify", None),
    ],
)
def test_a_file_that_a_sub_agent_changed_is_a_change_without_a_display(
    name: str, args: dict[str, Any], words: str, change: str, size: int | None
) -> None:
    asked = call(name, file_path="/w/a", **args)
    said = result(words)
    said["toolCallResult"] = {"callId": "c1", "durationMs": 350}

    (got,) = of(FileChange, given(user(), asked, said))

    assert (got.change, got.after and got.after.bytes, got.evidence, got.call_id) == (change, size, "derived", "c1")


def test_a_sub_agents_edit_that_failed_changes_nothing() -> None:
    said = result("not found", failed=True)
    said["toolCallResult"] = {"callId": "c1", "durationMs": 1}

    assert not of(FileChange, given(user(), call("edit", file_path="/w/a", old_string="x", new_string="y"), said))
