"""Mistral Vibe: journals read live and generations read afterwards tell the same, and damage stops neither."""

import json
import shutil
from pathlib import Path
from typing import Any, TypeVar

import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, convert_path, take
from asrd.places import Found
from asrd.reading import read_rows
from asrd.recorders.base import StreamKey
from asrd.recorders.vibe import RECORDER, replaced
from asrd.records import (
    Approval,
    Config,
    FileChange,
    Inference,
    Loss,
    Message,
    Native,
    Plan,
    Record,
    Session,
    ToolCall,
    ToolResult,
    Turn,
    UsageTotal,
    VcsAction,
    encode,
)
from asrd.store.disk import RealDisk
from asrd.store.stream import recorded
from tests.figures import figures
from tests.golden import CAPTURES
from tests.recorders.arrivals import remembered
from tests.recorders.arriving import (
    accounted,
    arriving,
    goes_on_from_any_prefix,
    groups_of,
    same_however_it_comes,
)
from tests.recorders.script_truth import differences, expected_of, problems, truth_of, usage, words

T = TypeVar("T", bound=Record)
CASES = ["vibe/S1", "vibe/S5", "vibe/S7-acp"]
STORE = ".vibe/logs/session/unified"


def of(kind: type[T], records: list[Any]) -> list[T]:
    return [r for r in records if isinstance(r, kind)]


def home_of(case: str, tmp_path: Path) -> Path:
    """A home of a capture that may be changed; gives its session's folder."""
    shutil.copytree(CAPTURES / case / "home", tmp_path, dirs_exist_ok=True)
    (folder,) = [p for p in (tmp_path / STORE).iterdir() if p.is_dir()]
    return folder


def alone(home: Path) -> list[Any]:
    """The records of the one stream of a home."""
    streams = convert_home(home)
    (records,) = streams.values()
    assert problems(streams) == []
    return records


def feed(capture: Capture, streams: Streams, group: list[Found]) -> None:
    """Everything a group holds now, as the daemon reads it."""
    for one in group:
        if one.source.kind == "lines":
            data = Path(one.path).read_bytes()
            capture.receive_bytes(one.source, data[capture.read_to(one.source) :])
        else:
            capture.receive_rows(one.source, read_rows(one))
        take(streams, capture)


def journal(folder: Path, *records: tuple[str, dict[str, Any]], first: int = 200) -> None:
    """One more journal with these records."""
    rows = [
        {"payload": payload, "recovery_journal_record_version": 1, "sequence": first + n, "type": kind}
        for n, (kind, payload) in enumerate(records)
    ]
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    (folder / "journal" / f"{first:016}.jsonl").write_text(text)


def entry(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "projection_delta", {
        "delta": [{"op": "append_entry", "entry": {"turnId": "t9", "createdAt": 1796015500000, **fields}}]
    }


def asked(text: str) -> tuple[str, dict[str, Any]]:
    return entry(
        id="user-t9", type="message", role="user", source="turn_start", content=[{"type": "text", "text": text}]
    )


def answered(action: str, *parts: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 2, "cached_input_tokens": 4, "total_tokens": 12}
    result = {"finish_reason": "stop", "parts": list(parts), "usage": usage}
    command = {"type": "completion_succeeded", "action_id": action, "result": result, **more}
    return "core_input", {"input": {"command": command, "determinism": {"time_unix_ms": 1796015500100}}}


def called(ident: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": ident, "name": name, "arguments_json": json.dumps(arguments)}


def ran(ident: str, value: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    result: dict[str, Any] = {"type": "success", "content": [], "structured_content": value, **more}
    command: dict[str, Any] = {"type": "tool_succeeded", "action_id": f"a-{ident}", "call_id": ident, "result": result}
    return "core_input", {"input": {"command": command, "determinism": {"time_unix_ms": 1796015500200}}}


# ---------------------------------------------------------------- the captures


@pytest.mark.parametrize("case", CASES)
def test_a_capture_counts_what_was_used(case: str) -> None:
    folder = CAPTURES / case

    streams = convert_home(folder / "home")

    assert usage(streams) == expected_of(folder)


@pytest.mark.parametrize("case", CASES)
def test_a_capture_tells_what_happened(case: str) -> None:
    folder = CAPTURES / case

    streams = convert_home(folder / "home")

    assert differences(truth_of(folder), streams) == {}
    assert problems(streams) == []


def test_a_session_that_was_followed_live_has_the_figures_of_each_request_it_saw() -> None:
    (killed,) = groups_of(CAPTURES / "vibe/S5/home-after-kill", "vibe")
    (resumed,) = groups_of(CAPTURES / "vibe/S5/home", "vibe")
    capture = Capture(RECORDER, killed[0].source.group)
    streams: Streams = {}

    feed(capture, streams, killed)
    live = figures(streams)
    feed(capture, streams, resumed)

    assert live == {"requests": 2, "input_total": 102103, "output": 1037}
    assert usage(streams) == expected_of(CAPTURES / "vibe/S5")
    (records,) = streams.values()
    prompts = [words(m) for m in of(Message, records) if m.origin == "prompt"]
    assert prompts == ["[[S5]] Run the long command.", "[[S5R]] Continue after crash."]
    assert [c.call_id for c in of(ToolCall, records)] == ["call_s5_0_0", "call_s5_1_0"]
    assert [(r.call_id, r.status) for r in of(ToolResult, records)] == [
        ("call_s5_0_0", "completed"),
        ("call_s5_1_0", "cancelled"),
    ]
    assert problems(streams) == []


def test_read_live_and_read_afterwards_name_the_same_calls_answers_and_turns() -> None:
    def shape(records: list[Any]) -> list[tuple[str, str]]:
        calls = [("call", c.call_id) for c in of(ToolCall, records)]
        turns = [(t.phase, t.turn_id) for t in of(Turn, records)]
        return calls + turns + [("said", words(m)) for m in of(Message, records) if m.role == "assistant" and words(m)]

    (killed,) = groups_of(CAPTURES / "vibe/S5/home-after-kill", "vibe")
    (resumed,) = groups_of(CAPTURES / "vibe/S5/home", "vibe")
    capture = Capture(RECORDER, killed[0].source.group)
    live: Streams = {}
    feed(capture, live, killed)
    feed(capture, live, resumed)

    assert shape(next(iter(live.values()))) == shape(alone(CAPTURES / "vibe/S5/home"))


@pytest.mark.parametrize("case", CASES)
def test_the_declared_total_is_the_sum_of_what_counts(case: str) -> None:
    records = alone(CAPTURES / case / "home")

    total = of(UsageTotal, records)[-1].usage
    parts = [i.usage for i in of(Inference, records) if i.usage]

    for bucket in ("input", "output", "cache_read", "total"):
        assert sum(getattr(p, bucket) for p in parts) == getattr(total, bucket)


def test_requests_known_by_a_total_only_say_so() -> None:
    records = alone(CAPTURES / "vibe/S1/home")

    (past,) = [i for i in of(Inference, records) if i.id_source == "derived"]
    bare = [i for i in of(Inference, records) if i.usage is None]

    assert past.meta is not None and past.meta["dev.asrd.requests"] == "unknown"
    assert len(bare) == 7 and past.turn_id == bare[0].turn_id
    assert {c.inference_id for c in of(ToolCall, records)} <= {i.inference_id for i in bare}


def test_who_allowed_a_call_is_said_once() -> None:
    records = alone(CAPTURES / "vibe/S7-acp/home")

    rows = {a.call_id: (a.decision, a.by, a.policy) for a in of(Approval, records)}

    assert len(of(Approval, records)) == len(rows) == 6
    assert rows["call_acp1_2_0"] == ("allow", "human", None)
    assert rows["call_acp1_0_0"] == ("allow", "policy", "config")


def test_a_title_made_by_the_harness_is_the_sessions() -> None:
    records = alone(CAPTURES / "vibe/S7-acp/home")

    assert of(Session, records)[0].title == "Mock title: fix add"
    assert not [c for c in of(Config, records) if c.title]


# ---------------------------------------------------------------- however it comes


@pytest.mark.parametrize("case", CASES)
def test_the_records_do_not_depend_on_how_the_bytes_came(case: str) -> None:
    same_however_it_comes(CAPTURES / case / "home", "vibe", case)


@pytest.mark.parametrize("case", CASES)
def test_a_stream_whose_cursor_was_lost_goes_on_where_it_was(case: str) -> None:
    goes_on_from_any_prefix(CAPTURES / case / "home", "vibe", case)


@pytest.mark.parametrize("home", ["vibe/S1/home", "vibe/S5/home", "vibe/S5/home-after-kill", "vibe/S7-acp/home"])
def test_every_line_and_document_is_accounted_for(home: str) -> None:
    (group,) = groups_of(CAPTURES / home, "vibe")

    assert accounted(group) == []


def test_a_session_that_was_followed_live_is_not_recorded_again_when_its_cursor_is_lost() -> None:
    (killed,) = groups_of(CAPTURES / "vibe/S5/home-after-kill", "vibe")
    (resumed,) = groups_of(CAPTURES / "vibe/S5/home", "vibe")
    capture = Capture(RECORDER, killed[0].source.group)
    streams: Streams = {}
    feed(capture, streams, killed)
    feed(capture, streams, resumed)
    ((key, records),) = streams.items()

    added = arriving(resumed, recorded={key: remembered(records)})

    state = (Config, UsageTotal)  # what is in force and the total, said again from another source
    more = [r for r in added.get(key, []) if not isinstance(r, state)]
    assert [r for r in more if not (isinstance(r, Message) and r.role == "system")] == []
    assert usage({key: [*records, *added.get(key, [])]}) == expected_of(CAPTURES / "vibe/S5")


def test_the_store_remembers_what_the_streams_of_a_session_counted(tmp_path: Path) -> None:
    (records,) = convert_home(CAPTURES / "vibe/S5/home").values()
    path = tmp_path / "x.asr.jsonl"
    path.write_bytes(b"".join(encode(r) + b"\n" for r in records))

    found = recorded(RealDisk(), path)

    told = [sum(one) for one in zip(*found.tokens.values(), strict=True)]
    counted = figures({StreamKey("vibe", "s"): records})
    assert (len(found.tokens), told[0], told[2]) == (counted["requests"], counted["input_total"], counted["output"])
    named = {r.native_id: r.id for r in of(ToolCall, records)}
    assert {found.natives[f"tool_call/{name}/"] for name in named if name} == {i for n, i in named.items() if n}


def test_a_generation_waits_for_a_chunk_that_comes_later(tmp_path: Path) -> None:
    (group,) = groups_of(CAPTURES / "vibe/S1/home", "vibe")
    late = [f for f in group if "/chunks/" in f.source.name]
    capture = Capture(RECORDER, group[0].source.group)
    streams: Streams = {}

    feed(capture, streams, [f for f in group if f not in late and "journal" not in f.source.name])
    held = sum(len(of(Message, r)) for r in streams.values())
    capture = Capture(RECORDER, group[0].source.group, saved=capture.save())
    feed(capture, streams, late)

    assert held == 0
    assert usage(streams) == expected_of(CAPTURES / "vibe/S1")
    (records,) = streams.values()
    assert [words(m)[:8] for m in of(Message, records) if m.origin == "prompt"] == ["[[S1T1]]", "[[S1T2]]"]


def test_a_journal_elsewhere_is_told_by_its_first_line(tmp_path: Path) -> None:
    (one,) = (CAPTURES / "vibe/S1/home").rglob("0000000000000091.jsonl")
    shutil.copy(one, tmp_path / "x.jsonl")

    (key,) = convert_path(tmp_path / "x.jsonl")

    assert key.agent == "vibe"


# ---------------------------------------------------------------- trouble


def test_a_renamed_kind_is_kept_whole_and_the_rest_is_recorded(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    journal(folder, asked("go"), ("receipt_lost", {"why": "?"}), answered("a1", {"type": "text", "text": "ok"}))

    records = alone(tmp_path)

    assert [n.native_type for n in of(Native, records)] == ["receipt_lost"]
    assert words(of(Message, records)[-1]) == "ok"


@pytest.mark.parametrize(
    "damage", [b'{"payload":{"action_id":"x', b'{"payload":7,"type":"core_input"}', b"[]", b"\xff\xfe"]
)
def test_a_damaged_line_stops_nothing(tmp_path: Path, damage: bytes) -> None:
    folder = home_of("vibe/S1", tmp_path)
    journal(folder, asked("go"), answered("a1", {"type": "text", "text": "ok"}))
    path = folder / "journal/0000000000000200.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damage + b"\n" + second)

    records = alone(tmp_path)

    assert len(of(Loss, records)) + len(of(Native, records)) == 1
    assert words(of(Message, records)[-1]) == "ok"


def test_bytes_that_are_no_text_are_said(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    journal(folder, asked("hello there"), answered("a1", {"type": "text", "text": "ok"}))
    path = folder / "journal/0000000000000200.jsonl"
    path.write_bytes(path.read_bytes().replace(b"hello", b"he\xffllo"))

    records = alone(tmp_path)

    assert [r.reason for r in of(Loss, records)] == ["not-utf-8"]
    assert [words(m) for m in of(Message, records)][-2:] == ["he\ufffdllo there", "ok"]
    for record in records:
        encode(record).decode()


@pytest.mark.parametrize("name", ["meta.json", "runtime-state.json", "checkpoint.json"])
def test_a_damaged_document_leaves_the_figures_whole(tmp_path: Path, name: str) -> None:
    folder = home_of("vibe/S1", tmp_path)
    for path in folder.rglob(name):
        path.write_bytes(path.read_bytes()[:50])

    streams = convert_home(tmp_path)

    assert usage(streams) == expected_of(CAPTURES / "vibe/S1")
    assert sum(len(of(Loss, r)) for r in streams.values()) >= 1


def test_an_entry_with_a_field_of_another_type_is_kept_whole(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    journal(folder, entry(id="u", type="message", role="user", createdAt="yesterday"), answered("a1"))

    records = alone(tmp_path)

    (kept,) = of(Native, records)
    assert kept.native_type == "projection_delta" and kept.meta is not None
    assert of(Inference, records)[-1].inference_id == "a1"


def test_a_part_that_is_not_known_is_other_content(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    journal(folder, asked("go"), answered("a1", {"type": "hologram", "data": 1}))

    said = of(Message, alone(tmp_path))[-1]

    assert json.loads(encode(said))["content"] == [
        {"type": "other", "_meta": {"dev.mistral.vibe.part": {"type": "hologram", "data": 1}}}
    ]


# ---------------------------------------------------------------- the journal


def test_a_request_is_counted_with_its_cached_tokens_apart(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    journal(folder, asked("go"), answered("a1", {"type": "text", "text": "ok"}))

    last = of(Inference, alone(tmp_path))[-1]

    assert last.usage is not None and (last.usage.input, last.usage.cache_read, last.usage.output) == (6, 4, 2)
    assert (last.at, last.model, last.turn_id) == ("2026-11-30T05:11:40.100Z", "mock-1", "t9")


def test_a_request_that_failed_is_an_error_without_figures(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    command = {"type": "completion_failed", "action_id": "a1", "error": {"code": "rate_limited", "message": "429"}}
    journal(folder, asked("go"), ("core_input", {"input": {"command": command, "determinism": {}}}))

    last = of(Inference, alone(tmp_path))[-1]

    assert last.usage is None and last.error is not None
    assert (last.error.code, last.error.message) == ("rate_limited", "429")


def test_a_call_that_was_refused_is_denied_by_the_person(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    refused = {
        "_meta": {"approval": {"approvalSource": "user", "approvalType": "ask", "decision": "skip"}},
        "type": "error",
    }
    journal(folder, asked("go"), answered("a1", called("c9", "bash", command="rm x")), ran("c9", None, **refused))

    records = alone(tmp_path)

    (result,) = [r for r in of(ToolResult, records) if r.call_id == "c9"]
    (approval,) = [a for a in of(Approval, records) if a.call_id == "c9"]
    assert result.status == "denied" and result.exec is None
    assert (approval.decision, approval.by) == ("deny", "human")


@pytest.mark.parametrize("code", [0, 3, -9])
def test_a_return_code_is_the_exit_code(tmp_path: Path, code: int) -> None:
    folder = home_of("vibe/S1", tmp_path)
    value = {"command": "x", "returncode": code, "stdout": "out", "stderr": "err", "timed_out": False}
    journal(folder, asked("go"), answered("a1", called("c9", "bash", command="x")), ran("c9", value))

    (result,) = [r for r in of(ToolResult, alone(tmp_path)) if r.call_id == "c9"]

    assert result.exec is not None
    assert (result.exec.exit_code, result.exec.stdout, result.exec.stderr) == (code, "out", "err")


def test_a_result_too_large_to_keep_still_says_its_return_code(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    kept = (
        "<system>The tool output is large. It was saved.\nOutput size: 409033 characters</system>\n<truncated-output>\n"
    )
    text = (
        kept
        + '{\n  "command": "echo \\"returncode\\"; exit 42",\n  "returncode": 42,\n  "stderr": "",\n  "stdout": "1…'
    )
    excerpt = {"content": [{"type": "text", "text": text}]}
    journal(folder, asked("go"), answered("a1", called("c9", "bash", command="x")), ran("c9", None, **excerpt))

    (result,) = [r for r in of(ToolResult, alone(tmp_path)) if r.call_id == "c9"]

    assert result.exec is not None
    assert (result.exec.command, result.exec.exit_code, result.exec.stdout) == ("x", 42, None)


def test_a_new_file_is_a_creation_and_a_commit_is_seen(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    ident = "ee9d0efadd320aa4fe8a190f6d8c962a8b4eb34c"
    write = {"path": "/home/dev/app/new.py", "bytes_written": 2, "file_existed": False}
    commit = {
        "command": "git commit -qm x && git rev-parse HEAD",
        "returncode": 0,
        "stdout": ident + "\n",
        "stderr": "",
    }
    todos = {"todos": [{"id": "1", "content": "do", "status": "in_progress"}]}
    journal(
        folder,
        asked("go"),
        answered(
            "a1",
            called("c1", "write_file", path="new.py", content="x\n"),
            called("c2", "bash", command="git commit"),
            called("c3", "todo", action="write"),
        ),
        ran("c1", write),
        ran("c2", commit),
        ran("c3", todos),
    )

    records = alone(tmp_path)

    change = of(FileChange, records)[-1]
    assert (change.change, change.path.path, change.before, change.after and change.after.bytes) == (
        "create",
        "new.py",
        None,
        2,
    )
    assert of(VcsAction, records)[-1].commit == ident
    assert [(i.text, i.status) for i in of(Plan, records)[-1].items] == [("do", "in_progress")]


def test_what_a_resume_plays_again_is_recorded_once(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    once = (answered("a1", called("c9", "bash", command="x")), ran("c9", {"command": "x", "returncode": 0}))
    journal(folder, asked("go"), *once, *once)

    records = alone(tmp_path)

    assert [i.inference_id for i in of(Inference, records)].count("a1") == 1
    assert [c.call_id for c in of(ToolCall, records)].count("c9") == 1
    assert [r.call_id for r in of(ToolResult, records)].count("c9") == 1


def test_an_effect_that_a_crash_cut_off_is_the_result_of_the_call_it_carried_out(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    error = {"code": "effect_recovery_failed", "message": "cannot be reconnected"}
    failed: dict[str, Any] = {
        "status": "completed",
        "error": error,
        "output": {"type": "failure", "content": [], "error": error},
    }
    effect = {"id": "effect-e9", "type": "effect", "generationStatus": "completed", "detail": {"kind": "tool"}}
    journal(
        folder,
        asked("go"),
        answered("a1", called("c9", "bash", command="sleep 300")),
        ("action_intent", {"request": {"action_id": "e9", "call_id": "c9", "type": "runtime_builtin_tool_call"}}),
        entry(**effect, state=failed),
        entry(**effect, state=failed),
    )

    records = alone(tmp_path)

    (result,) = [r for r in of(ToolResult, records) if r.call_id == "c9"]
    assert (result.status, words(result), result.exec) == ("cancelled", "cannot be reconnected", None)
    assert [c.name for c in of(ToolCall, records)].count("bash") == 4


def test_a_command_that_a_person_ran_is_no_call_of_the_model(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    told_: dict[str, Any] = {
        "status": "failed", "outputText": "shell\n", "durationMs": 4.2,
        "error": {"code": None, "message": "Command exited with status 31"},
    }  # fmt: skip
    detail = {"kind": "shell", "toolName": "shell", "input": {"command": "echo shell; exit 31"}}
    journal(
        folder,
        asked("go"),
        answered("a1"),
        entry(id="rs-1", type="effect", generationStatus="completed", detail=detail, state=told_),
    )

    records = alone(tmp_path)

    (typed,) = [m for m in of(Message, records) if m.origin == "command"]
    (ran_,) = [r for r in of(ToolResult, records) if r.call_id == "command:rs-1"]
    assert (typed.author, words(typed)) == ("human", "!echo shell; exit 31")
    assert (ran_.status, ran_.linkage, words(ran_)) == ("failed", "none", "shell\n")
    assert ran_.exec and (ran_.exec.command, ran_.exec.exit_code) == ("echo shell; exit 31", 31)


def test_a_permission_that_is_shown_after_the_result_is_said_once(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    allowed = {"approvalSource": "user", "approvalType": "ask", "decision": "execute"}
    effect = {"id": "effect-a-c9", "type": "effect", "generationStatus": "completed", "detail": {"kind": "tool"}}
    journal(
        folder,
        asked("go"),
        answered("a1", called("c9", "bash", command="x")),
        ("action_intent", {"request": {"action_id": "a-c9", "call_id": "c9"}}),
        ran("c9", {"command": "x", "returncode": 0}, _meta={"approval": allowed}),
        entry(**effect, state=allowed),
    )

    assert [a.by for a in of(Approval, alone(tmp_path)) if a.call_id == "c9"] == ["human"]


def test_a_turn_ends_once_however_often_it_is_said(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    turn = {"id": "t9", "status": "cancelled", "completedAt": 1796015500300, "stopReason": "user"}
    over = ("projection_delta", {"delta": [{"op": "set_envelope", "state": {"latestTurn": turn}}]})
    journal(folder, asked("go"), answered("a1", {"type": "text", "text": "ok"}), over, over)

    ends = [t for t in of(Turn, alone(tmp_path)) if t.turn_id == "t9" and t.phase == "end"]

    assert [(t.status, t.meta and t.meta["dev.mistral.vibe.status"]) for t in ends] == [("interrupted", "cancelled")]


def test_what_a_total_adds_before_a_turn_is_no_part_of_that_turn(tmp_path: Path) -> None:
    (group,) = groups_of(CAPTURES / "vibe/S1/home", "vibe")
    capture = Capture(RECORDER, group[0].source.group)
    streams: Streams = {}

    feed(capture, streams, [f for f in group if f.source.kind == "lines"])

    (records,) = streams.values()
    first, second = [i for i in of(Inference, records) if i.usage]
    assert (first.id_source, first.turn_id) == ("derived", None)
    assert second.turn_id == of(Turn, records)[0].turn_id
    assert usage(streams) == expected_of(CAPTURES / "vibe/S1")


def test_the_model_is_the_setting_of_the_generation_a_journal_follows(tmp_path: Path) -> None:
    shutil.copytree(CAPTURES / "vibe/S5/home-after-kill", tmp_path, dirs_exist_ok=True)
    next((tmp_path / STORE).glob("*/meta.json")).unlink()

    records = alone(tmp_path)

    assert {i.model for i in of(Inference, records)} == {"mock-1"}


def test_a_system_prompt_is_recorded_when_it_changes(tmp_path: Path) -> None:
    folder = home_of("vibe/S1", tmp_path)
    start: dict[str, Any] = {"type": "user_message", "content": []}
    before = len([m for m in of(Message, alone(tmp_path)) if m.role == "system"])
    journal(
        folder,
        ("core_input", {"input": {"command": start}, "checkpoint_system_instructions": "You are new."}),
        ("core_input", {"input": {"command": start}, "checkpoint_system_instructions": "You are new."}),
    )

    said = [words(m) for m in of(Message, alone(tmp_path)) if m.role == "system"]

    assert len(said) == before + 1 and said[-1] == "You are new."


def block(old: str, new: str, start: int) -> dict[str, Any]:
    return {"old_lines": old.split("\n"), "new_lines": new.split("\n"), "old_start_line": start}


@pytest.mark.parametrize(
    "before, blocks, after",
    [
        ("a\nb\n", [block("b", "c", 2)], "a\nc\n"),
        ("  return a - b\n", [block("return a - b", "x", 1)], "  x\n"),
        ("a\nb\nc\n", [block("a", "x\ny", 1), block("c", "d", 3)], "x\ny\nb\nd\n"),
        ("a\n", [block("z", "c", 1)], None),
        ("a a\n", [block("a", "c", 1)], None),
        ("a\n", [block("a", "c", 9)], None),
        ("a\n", [], None),
    ],
)  # fmt: skip
def test_an_edit_is_worked_out_where_its_blocks_stand_as_they_say(before: str, blocks: Any, after: str | None) -> None:
    assert replaced(before, blocks) == after
