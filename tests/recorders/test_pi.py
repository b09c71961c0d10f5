"""Pi: what its captures tell, however they come, and what damage does not stop."""

import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, convert_path, take
from asrd.recorders.pi import RECORDER, applied, session_of, whole_by_numbers, whole_by_patch
from asrd.records import (
    Capture as CaptureState,
)
from asrd.records import (
    Compaction,
    Config,
    FileChange,
    Gap,
    Inference,
    Loss,
    Message,
    Native,
    Record,
    Session,
    ToolResult,
    Turn,
    VcsAction,
    encode,
)
from asrd.sources import Source
from tests.golden import CAPTURES
from tests.recorders.arriving import (
    accounted,
    goes_on_from_any_prefix,
    groups_of,
    same_however_it_comes,
)
from tests.recorders.script_truth import differences, expected_of, own, problems, truth_of, usage, words

T = TypeVar("T", bound=Record)
CASES = sorted(
    f"{p.parent.parent.name}/{p.parent.name}" for h in ("pi", "pi-0.74") for p in CAPTURES.glob(f"{h}/*/home")
)
NAME = "2026-11-30T04-49-57-715Z_01a22ac9-cbd0-7602-9e97-475fe2d9dc9f.jsonl"
SOURCE = Source("pi", NAME, f"sessions/--home-dev-app--/{NAME}", f"sessions/--home-dev-app--/{NAME}", "lines")
SESSION = CAPTURES / "pi/S1/home/.pi/agent/sessions/--home-dev-app--" / NAME

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-11-30T04:00:00.000Z", "cwd": "/w"}


def entries(*rows: dict[str, Any], **header: Any) -> bytes:
    """A file of a header and entries, each below the one before it."""
    made = [{**HEADER, **header}]
    last = None
    for number, row in enumerate(rows):
        entry = {"id": f"e{number}", "parentId": last, "timestamp": f"2026-11-30T04:00:{number + 1:02}.000Z", **row}
        made.append(entry)
        last = entry["id"]
    return b"".join(json.dumps(one).encode() + b"\n" for one in made)


def message(**said: Any) -> dict[str, Any]:
    return {"type": "message", "message": said}


def prompt(text: str) -> dict[str, Any]:
    return message(role="user", content=[{"type": "text", "text": text}], timestamp=1)


def answer(*content: Any, **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"provider": "p", "model": "m", "stopReason": "stop", "responseId": "r1", "timestamp": 2}
    return message(role="assistant", content=list(content), **{**fields, **more})


def call(ident: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": ident, "name": name, "arguments": arguments}


def result(ident: str, name: str, text: str, error: bool = False, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return message(role="toolResult", toolCallId=ident, toolName=name, content=content, isError=error, **more)


def told_by(data: bytes, source: Source = SOURCE) -> list[Any]:
    """The records of the one stream that these bytes give."""
    capture = Capture(RECORDER, source.group, limit=1 << 20)
    streams: Streams = {}
    capture.receive_bytes(source, data)
    take(streams, capture)
    (records,) = streams.values()
    assert not problems(streams)
    return records


def of(kind: type[T], records: list[Any]) -> list[T]:
    return [r for r in records if isinstance(r, kind)]


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


def test_the_state_a_kill_left_is_a_prefix_of_what_is_told_after_the_resume() -> None:
    folder = CAPTURES / "pi/S5"

    (killed,) = convert_home(folder / "home-after-kill").values()
    (resumed,) = convert_home(folder / "home").values()

    assert [encode(r) for r in killed] == [encode(r) for r in resumed[: len(killed)]]
    assert [r.call_id for r in of(ToolResult, killed)] == ["call_s5_0_0"]


@pytest.mark.parametrize("case", ["pi/S3", "pi-0.74/S3"])
def test_a_fork_copies_what_is_older_than_itself(case: str) -> None:
    parent, fork = convert_home(CAPTURES / case / "home").values()
    if len(of(Session, parent)) and parent[0].lineage.root is not True:  # type: ignore[attr-defined]
        parent, fork = fork, parent

    header = of(Session, fork)[0]
    copied = [r for r in fork if r.copy_of]

    assert header.lineage.parent is not None and header.lineage.relation == "forked_from"
    assert header.lineage.parent.session_id == of(Session, parent)[0].session_id
    assert {r.copy_of.native_id for r in copied if r.copy_of} <= {r.native_id for r in parent}
    assert [words(m) for m in of(Message, fork) if m.role == "user" and not m.copy_of][0].startswith("[[FORK]]")


def test_a_compaction_counts_its_own_request_and_says_what_was_kept() -> None:
    (records,) = convert_home(CAPTURES / "pi/S4/home").values()

    (compaction,) = of(Compaction, records)
    (carried,) = [r for r in of(Inference, records) if r.inference_id.startswith("compaction:")]

    assert compaction.tokens_before == 41524 and (compaction.summary or "").startswith("No prior history.")
    kept = next(r for r in records if r.id == compaction.kept_from)
    assert isinstance(kept, Inference) and kept.native_id == "52762b9d"
    assert len([m for m in of(Message, records) if m.role == "system"]) == 1
    assert carried.usage is not None and (carried.usage.input, carried.usage.cache_read) == (938, 864)


def test_turns_end_where_a_response_calls_no_tool() -> None:
    (records,) = convert_home(CAPTURES / "pi/S1/home").values()

    turns = [(t.phase, t.status, t.turn_id) for t in of(Turn, records)]

    assert turns == [
        ("start", None, "dff7b20e"),
        ("end", "completed", "dff7b20e"),
        ("start", None, "c342c303"),
        ("end", "completed", "c342c303"),
    ]


# ---------------------------------------------------------------- however it comes


@pytest.mark.parametrize("case", CASES)
def test_the_records_do_not_depend_on_how_the_bytes_came(case: str) -> None:
    same_however_it_comes(CAPTURES / case / "home", "pi", case)


@pytest.mark.parametrize("case", CASES)
def test_a_stream_whose_cursor_was_lost_goes_on_where_it_was(case: str) -> None:
    goes_on_from_any_prefix(CAPTURES / case / "home", "pi", case)


@pytest.mark.parametrize("case", CASES)
def test_every_line_is_accounted_for(case: str) -> None:
    for group in groups_of(CAPTURES / case / "home", "pi"):
        assert accounted(group) == []


def test_a_file_elsewhere_is_told_by_its_first_line(tmp_path: Path) -> None:
    copy = tmp_path / "exported.jsonl"
    copy.write_bytes(SESSION.read_bytes())

    (key,) = convert_path(copy)

    assert (key.agent, key.session_id) == ("pi", "01a22ac9-cbd0-7602-9e97-475fe2d9dc9f")


# ---------------------------------------------------------------- trouble


@pytest.mark.parametrize("kind", [b'"type":"model_change"', b'"role":"toolResult"', b'"role":"assistant"'])
def test_a_renamed_kind_is_kept_whole_and_the_rest_is_recorded(kind: bytes) -> None:
    data = SESSION.read_bytes()

    records = told_by(data.replace(kind, kind[:-1] + b'_new"', 1))

    (kept,) = of(Native, records)
    assert "dev.asrd.unexpected" in (kept.meta or {})
    assert len(of(Turn, records)) == 4
    assert len(of(Inference, records)) == (7 if b"assistant" in kind else 8)


@pytest.mark.parametrize(
    "old, new",
    [
        (b'"input":5498', b'"input":"5498"'),
        (b'"isError":true', b'"isError":"yes"'),
        (b'"timestamp":1796014198256', b'"timestamp":[1]'),
        (b'"arguments":{"path":"calc.py"}', b'"arguments":"calc.py"'),
        (b'"details":{"diff"', b'"details":["diff",{}],"was":{"diff"'),
        (b'"parentId":"2737c45d"', b'"parentId":12'),
    ],
)
def test_a_field_of_another_type_stops_nothing(old: bytes, new: bytes) -> None:
    data = SESSION.read_bytes()
    assert old in data

    records = told_by(data.replace(old, new, 1))

    assert not of(Loss, records)
    assert len(of(Inference, records)) == 8
    assert [t.phase for t in of(Turn, records)][-2:] == ["start", "end"]


def test_usage_in_another_shape_is_kept_beside_the_request() -> None:
    data = SESSION.read_bytes().replace(b'"input":5498', b'"input":"5498"', 1)

    first = of(Inference, told_by(data))[0]

    assert first.usage is None and first.meta is not None
    assert first.meta["dev.pi.usage"]["input"] == "5498"


def test_a_line_that_was_cut_is_a_loss_and_the_rest_is_recorded() -> None:
    parts = SESSION.read_bytes().splitlines(keepends=True)
    parts[8] = parts[8][:300] + b"\n"

    records = told_by(b"".join(parts))

    (loss,) = of(Loss, records)
    assert loss.reason == "malformed"
    assert len(of(Turn, records)) == 4


def test_a_cut_header_leaves_the_session_its_name() -> None:
    parts = SESSION.read_bytes().splitlines(keepends=True)
    parts[0] = parts[0][:40] + b"\n"

    records = told_by(b"".join(parts))

    assert records[0].session_id == "01a22ac9-cbd0-7602-9e97-475fe2d9dc9f"
    assert len(of(Inference, records)) == 8


@pytest.mark.parametrize("place", [b"Please fix", b'"path":"calc.py"'])
def test_bytes_that_are_no_text_are_said_and_nothing_else_is_lost(place: bytes) -> None:
    data = SESSION.read_bytes().replace(place, place[:8] + b"\xff\xfe" + place[8:], 1)

    records = told_by(data)

    assert [r.reason for r in of(Loss, records)] == ["not-utf-8"]
    assert len(of(Inference, records)) == 8 and len(of(Turn, records)) == 4
    for record in records:
        encode(record).decode()


def test_a_lone_surrogate_in_a_call_does_not_reach_the_stream() -> None:
    data = SESSION.read_bytes().replace(b'"path":"calc.py"', rb'"path":"calc\ud800.py"', 1)

    records = told_by(data)

    assert [r.reason for r in of(Loss, records)] == ["lone-surrogate"]
    assert b"\\ud800" not in b"".join(encode(r) for r in records)


@pytest.mark.parametrize(
    "inside, reason", [(b"\xff", "not-utf-8"), (rb"\ud800", "lone-surrogate"), (rb"\uD800", "lone-surrogate")]
)
def test_what_is_passed_on_as_it_stands_is_text_all_the_same(inside: bytes, reason: str) -> None:
    data = entries({"type": "custom", "customType": "x", "data": {"v": "MARK"}}).replace(b"MARK", inside)

    records = told_by(data)

    assert [r.reason for r in of(Loss, records)] == [reason]
    (kept,) = of(Native, records)
    assert json.loads(encode(kept))["data"] == {"v": "\ufffd"}


def test_a_line_longer_than_may_be_read_is_said_and_passed_over() -> None:
    parts = SESSION.read_bytes().splitlines(keepends=True)
    long = entries(prompt("x" * (1 << 21))).splitlines(keepends=True)[1]

    records = told_by(b"".join([*parts[:3], long, *parts[3:]]))

    assert [r.reason for r in of(Loss, records)] == ["oversize"]
    assert len(of(Inference, records)) == 8


def test_two_objects_on_one_line_are_both_recorded() -> None:
    data = SESSION.read_bytes().replace(
        b'}\n{"type":"message","id":"c342c303"', b'}{"type":"message","id":"c342c303"', 1
    )

    records = told_by(data)

    assert len(of(Turn, records)) == 4 and len(of(Inference, records)) == 8


def test_an_empty_file_starts_no_session() -> None:
    capture = Capture(RECORDER, SOURCE.group)

    capture.receive_bytes(SOURCE, b"")

    assert capture.commands() == []


# ---------------------------------------------------------------- counting


def test_a_response_without_an_id_is_named_by_what_cannot_change_of_it() -> None:
    one = answer({"type": "text", "text": "a"}, responseId=None, usage={"input": 1, "output": 2}, timestamp=5)
    other = answer({"type": "text", "text": "a"}, responseId=None, usage={"input": 1, "output": 2}, timestamp=6)

    first, second = of(Inference, told_by(entries(one, other)))

    assert first.id_source == second.id_source == "derived"
    assert first.inference_id != second.inference_id


def test_a_failed_request_that_was_tried_again_counts_and_its_turn_ends_once() -> None:
    failed = answer(stopReason="error", errorMessage="overloaded", responseId="r1", usage={"input": 100, "output": 5})
    good = answer({"type": "text", "text": "ok"}, responseId="r2", usage={"input": 100, "output": 50})

    records = told_by(entries(prompt("go"), failed, good))

    assert [r.usage.output for r in of(Inference, records) if r.usage] == [5, 50]
    ends = [t for t in of(Turn, records) if t.phase == "end"]
    assert [(t.status, t.supersedes) for t in ends] == [("failed", None), ("completed", ends[0].id)]
    assert ends[0].error is not None and ends[0].error.message == "overloaded"


def test_an_edit_of_the_context_is_an_entry_like_others() -> None:
    edit = {"type": "context_edit", "targetId": "e0", "replacement": None}
    past = {"timestamp": "2026-11-30T03:00:00.000Z"}
    parent = "/s/2026-11-30T03-00-00-000Z_01a22ac9-0000-7602-9e97-475fe2d9dc9f.jsonl"

    records = told_by(entries({**prompt("go"), **past}, {**edit, **past}, edit, prompt("on"), parentSession=parent))

    copied, own = of(Native, records)
    assert [own.native_type, own.native_id, own.data] == ["context_edit", "e2", {"targetId": "e0", "replacement": None}]
    assert copied.copy_of is not None and copied.copy_of.native_id == "e1"
    assert own.copy_of is None
    assert [m.parent for m in of(Message, records)] == [None, None]


def test_an_aborted_answer_interrupts_its_turn() -> None:
    records = told_by(entries(prompt("go"), answer({"type": "text", "text": "half"}, stopReason="aborted")))

    assert [t.status for t in of(Turn, records)] == [None, "interrupted"]


def test_figures_that_are_all_zero_are_no_figures() -> None:
    zero = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}
    seeded = answer({"type": "text", "text": "before"}, responseId=None, usage=zero)
    real = answer({"type": "text", "text": "now"}, stopReason="aborted", usage=zero)

    records = told_by(entries(seeded, real))

    assert [(i.inference_id, i.usage) for i in of(Inference, records)] == [("r1", None)]
    assert [m.author for m in of(Message, records)] == ["harness", "agent"]


def test_usage_nested_in_a_result_does_not_count_and_is_said() -> None:
    nested = {"results": [{"messages": [{"usage": {"input": 9, "output": 9}}]}]}
    asked = answer(call("c", "subagent", task="x"), stopReason="toolUse", usage={"input": 1, "output": 1})

    records = told_by(entries(prompt("go"), asked, result("c", "subagent", "done", details=nested)))

    assert sum(r.usage.output or 0 for r in of(Inference, records) if r.usage) == 1
    assert [c.facet for c in of(CaptureState, records) if c.profile == "usage"] == ["usage_total", "inference.nested"]


@pytest.mark.parametrize("kind", ["branch_summary", "compaction", "result"])
def test_usage_on_an_entry_that_is_no_response_counts(kind: str) -> None:
    figures = {"input": 3, "output": 4, "cacheRead": 5, "cacheWrite": 0, "totalTokens": 12}
    rows = {
        "branch_summary": {"type": "branch_summary", "fromId": "e0", "summary": "s", "usage": figures},
        "compaction": {
            "type": "compaction",
            "summary": "s",
            "firstKeptEntryId": "e0",
            "tokensBefore": 9,
            "usage": figures,
        },
        "result": result("c", "x", "done", usage=figures),
    }

    (carried,) = of(Inference, told_by(entries(prompt("go"), rows[kind])))

    assert carried.usage is not None and carried.usage.output == 4
    assert carried.model is None and carried.id_source == "derived"


def test_a_compaction_without_figures_is_a_request_without_figures() -> None:
    row = {"type": "compaction", "summary": "s", "firstKeptEntryId": "e0", "tokensBefore": 9}

    (carried,) = of(Inference, told_by(entries(prompt("go"), row)))

    assert carried.usage is None


def test_a_price_of_nothing_is_no_price() -> None:
    free = answer(usage={"input": 6951, "output": 1, "cost": {"total": 0}})

    (inference,) = of(Inference, told_by(entries(free)))

    assert inference.cost is None


def test_an_old_file_that_a_later_version_rewrote_is_recorded_once() -> None:
    old = [
        {
            "type": "session",
            "id": "s",
            "timestamp": "2025-11-01T00:00:00.000Z",
            "cwd": "/w",
            "provider": "p",
            "modelId": "m",
        },
        {"type": "message", "timestamp": "2025-11-01T00:00:01.000Z", **prompt("go")},
        {"type": "message", "timestamp": "2025-11-01T00:00:02.000Z", **answer(usage={"input": 1, "output": 7})},
    ]
    new = [{**old[0], "version": 3}, *({"id": f"x{i}", "parentId": None, **row} for i, row in enumerate(old[1:]))]
    capture = Capture(RECORDER, SOURCE.group)
    streams: Streams = {}

    capture.receive_bytes(SOURCE, b"".join(json.dumps(r).encode() + b"\n" for r in old))
    capture.receive_replaced(SOURCE)
    capture.receive_bytes(SOURCE, b"".join(json.dumps(r).encode() + b"\n" for r in new))
    later = {"type": "message", "id": "x9", "parentId": "x1", "timestamp": "2026-01-01T00:00:00.000Z", **prompt("more")}
    capture.receive_bytes(SOURCE, json.dumps(later).encode() + b"\n")
    take(streams, capture)
    (records,) = streams.values()

    assert [words(m) for m in of(Message, records) if m.role == "user"] == ["go", "more"]
    assert len(of(Inference, records)) == 1 and len(of(Gap, records)) == 1
    assert of(Config, records)[0].model == "m"


def test_a_session_that_was_exported_and_imported_is_one_session(tmp_path: Path) -> None:
    folder = tmp_path / ".pi/agent/sessions"
    for project, data in (
        ("--a--", entries(prompt("one"), answer(usage={"input": 1, "output": 1}))),
        ("--b--", entries(prompt("one"), answer(usage={"input": 1, "output": 1}), prompt("two"))),
    ):
        (folder / project).mkdir(parents=True)
        (folder / project / "2026_s.jsonl").write_bytes(data)

    (records,) = convert_home(tmp_path).values()

    assert [words(m) for m in of(Message, records) if m.role == "user"] == ["one", "two"]
    assert len(of(Inference, records)) == 1


def test_an_id_that_a_person_chose_is_unique_in_its_project_only() -> None:
    records = told_by(entries(prompt("x"), id="mine", cwd="/w"))

    assert (records[0].session_id, records[0].namespace) == ("mine", "/w")


# ---------------------------------------------------------------- calls, files, commands


@pytest.mark.parametrize(
    "text, error, code, status",
    [
        ("ok\n", False, 0, "completed"),
        ("x\n\n\nCommand exited with code 101", True, 101, "failed"),
        ("x\n\nCommand aborted", True, None, "cancelled"),
        ("x\n\nCommand timed out after 5 seconds", True, None, "failed"),
        ("Tool execution was blocked by an extension", True, None, "denied"),
        ("Command exited with code 7 was the text\nand more", True, None, "failed"),
    ],
)
def test_an_exit_code_is_an_integer_where_the_text_says_one(
    text: str, error: bool, code: int | None, status: str
) -> None:
    asked = answer(call("c", "bash", command="make"), stopReason="toolUse")

    (told,) = of(ToolResult, told_by(entries(prompt("go"), asked, result("c", "bash", text, error))))

    assert told.exec is not None and told.exec.command == "make"
    assert (told.exec.exit_code, told.status) == (code, status)
    assert told.exec.timed_out is (True if "timed out" in text else None)


def test_an_edit_after_a_command_is_worked_out_only_where_the_patch_shows_all() -> None:
    long = "".join(f"line {n}\n" for n in range(40))
    part = "--- a\n+++ a\n@@ -1,5 +1,5 @@\n-line 0\n+LINE 0\n line 1\n line 2\n line 3\n line 4\n"
    rows = [
        prompt("go"),
        answer(call("r", "read", path="a"), stopReason="toolUse"),
        result("r", "read", long),
        answer(call("b", "bash", command="touch a"), stopReason="toolUse"),
        result("b", "bash", ""),
        answer(call("e", "edit", path="a", edits=[{"oldText": "line 0", "newText": "LINE 0"}]), stopReason="toolUse"),
        result("e", "edit", "done", details={"patch": part}),
    ]

    after_command = of(FileChange, told_by(entries(*rows)))[0]
    without = of(FileChange, told_by(entries(*rows[:3], *rows[5:])))[0]

    assert (after_command.before, after_command.after) == (None, None) and after_command.diff == part
    assert without.before is not None and without.before.bytes == len(long)


def test_a_read_without_limits_shows_the_whole_file() -> None:
    rows = [
        prompt("go"),
        answer(call("r", "read", path="a", offset=None, limit=None), stopReason="toolUse"),
        result("r", "read", "x\ny\n"),
        answer(call("e", "edit", path="a", edits=[{"oldText": "x", "newText": "z"}]), stopReason="toolUse"),
        result("e", "edit", "done"),
    ]
    part = [*rows[:1], answer(call("r", "read", path="a", limit=1), stopReason="toolUse"), *rows[2:]]

    (whole,) = of(FileChange, told_by(entries(*rows)))
    (unknown,) = of(FileChange, told_by(entries(*part)))

    assert whole.before is not None and whole.before.bytes == 4
    assert unknown.before is None


def test_a_write_says_what_the_file_holds_then() -> None:
    rows = [
        prompt("go"),
        answer(call("w", "write", path="new.txt", content="é\n"), stopReason="toolUse"),
        result("w", "write", "Successfully wrote 3 bytes"),
        answer(call("e", "edit", path="/w/new.txt", edits=[{"oldText": "é", "newText": "e"}]), stopReason="toolUse"),
        result("e", "edit", "done", details={"diff": "-1 é\n+1 e"}),
    ]

    write, edit = of(FileChange, told_by(entries(*rows)))

    assert write.before is None and write.after is not None and write.after.bytes == 3
    assert edit.before == write.after and edit.after is not None and edit.after.bytes == 2
    assert (write.path.path, edit.path.path, edit.path.root) == ("new.txt", "new.txt", "r1")


def test_a_failed_edit_changes_no_file() -> None:
    rows = [
        prompt("go"),
        answer(call("e", "edit", path="a", edits=[{"oldText": "x", "newText": "y"}]), stopReason="toolUse"),
        result("e", "edit", "Could not find the exact text", True),
    ]

    assert of(FileChange, told_by(entries(*rows))) == []


def test_a_commit_is_seen_only_where_a_command_made_one() -> None:
    ident = "ee9d0efadd320aa4fe8a190f6d8c962a8b4eb34c"
    rows = [prompt("go")]
    for number, command in enumerate(("git log --format=%H", "git commit -qm x && git rev-parse HEAD")):
        rows.append(answer(call(f"c{number}", "bash", command=command), stopReason="toolUse"))
        rows.append(result(f"c{number}", "bash", ident + "\n"))

    assert [(v.commit, v.call_id) for v in of(VcsAction, told_by(entries(*rows)))] == [(ident, "c1")]


def test_a_command_the_person_typed_is_no_call_of_the_model() -> None:
    typed = message(role="bashExecution", command="ls", output="a\n", exitCode=2, cancelled=False, truncated=False)

    records = told_by(entries(typed))

    (said,) = of(Message, records)
    (ran,) = of(ToolResult, records)
    assert (words(said), said.author, said.origin) == ("!ls", "human", "command")
    assert ran.linkage == "none" and ran.exec is not None and ran.exec.exit_code == 2


def test_an_entry_on_another_branch_says_what_it_hangs_below() -> None:
    again = {**prompt("again"), "parentId": "e0"}

    records = told_by(entries(prompt("one"), answer(), again))

    second = [t for t in of(Turn, records) if t.phase == "start"][1]
    assert second.parent == of(Message, records)[0].id


def test_a_thought_that_is_only_a_signature_is_redacted() -> None:
    thought = {"type": "thinking", "thinking": "", "thinkingSignature": "{}"}

    (said,) = of(Message, told_by(entries(answer(thought))))

    assert msgspec.to_builtins(said.content) == [{"type": "thinking", "redacted": True}]


def test_what_extensions_keep_is_native_and_what_they_say_is_injected() -> None:
    rows = [
        {"type": "custom", "customType": "todo", "data": {"n": 1}},
        {"type": "custom_message", "customType": "note", "content": "remember", "display": True},
        {"type": "label", "targetId": "e0", "label": "here"},
        {"type": "session_info", "name": "A name"},
    ]

    records = told_by(entries(*rows))

    assert [(n.native_type, msgspec.json.decode(msgspec.json.encode(n.data))) for n in of(Native, records)] == [
        ("custom/todo", {"n": 1}),
        ("label", {"targetId": "e0", "label": "here"}),
    ]
    assert [(m.origin, m.author, m.audience) for m in of(Message, records)] == [("injected", "harness", "both")]
    assert [c.title for c in of(Config, records)] == ["A name"]


# ---------------------------------------------------------------- small parts


@pytest.mark.parametrize(
    "patch, whole",
    [
        ("@@ -1,2 +1,2 @@\n a\n-b\n+c\n", ("a\nb\n", "a\nc\n")),
        ("@@ -1 +1 @@\n-b\n\\ No newline at end of file\n+c\n", ("b", "c\n")),
        ("@@ -1 +1 @@\n-b\n+c\n\\ No newline at end of file\n", ("b\n", "c")),
        ("@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n", ("a\nb", "c\nb")),
        ("@@ -1,4 +1,4 @@\n-a\n+c\n b\n b\n b\n", None),
        ("@@ -5,2 +5,2 @@\n a\n-b\n+c\n", None),
        ("@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-a\n+b\n", None),
        ("@@ -1,3 +1,2 @@\n a\n-b\n+c\n", None),
    ],
)
def test_a_patch_is_a_whole_file_only_where_that_is_certain(patch: str, whole: tuple[str, str] | None) -> None:
    assert whole_by_patch(patch) == whole


def test_edits_apply_where_each_stands_once() -> None:
    assert applied("a b c", [("a", "x"), ("c", "z")]) == "x b z"
    assert applied("a a", [("a", "x")]) is None
    assert applied("abc", [("ab", "x"), ("bc", "y")]) is None
    assert applied("a\r\n", [("a", "x")]) is None


def test_a_numbered_diff_is_read_to_the_letter() -> None:
    assert whole_by_numbers(" 1 def f():\n-2     old\n+2     new") == (["def f():", "    old"], ["def f():", "    new"])
    assert whole_by_numbers("   ...\n 8 x\n-9 a\n+9 b") is None


def test_a_session_is_named_in_its_file_name() -> None:
    assert session_of("/x/2026-11-30T04-50-07-487Z_01a2.jsonl") == "01a2"
    assert session_of("C:\\x\\2026_a_b.jsonl") == "a_b"
    assert session_of("plain.jsonl") == "plain"


def test_records_of_all_sessions_are_ordered_by_time() -> None:
    found = own(convert_home(CAPTURES / "pi/S3/home"))

    assert [r.at for r in found if r.at] == sorted(r.at for r in found if r.at)
