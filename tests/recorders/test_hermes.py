"""Hermes: what its captures give is what really happened; counters that are overwritten are told apart by reading them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, convert_path, take
from asrd.reading import read_rows, revision_of, revision_of_values
from asrd.recorders.base import StreamKey
from asrd.recorders.hermes import RECORDER, whole_file
from asrd.records import (
    Approval,
    Compaction,
    End,
    FileChange,
    Gap,
    Inference,
    Link,
    Loss,
    Message,
    Native,
    Session,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
)
from asrd.records import Capture as CaptureState
from asrd.sources import Row, Source
from tests.figures import figures
from tests.golden import CAPTURES
from tests.recorders.arrivals import remembered
from tests.recorders.told import (
    captures,
    goes_on_where_it_was_cut,
    items,
    lines,
    record,
    same_however_cut,
    sources,
    told,
    true,
    truth_of,
    words,
)

CASES = captures("hermes")

FIGURES = {
    "hermes/S1": (274646, 3012),
    "hermes/S1-v0.13.0": (21021, 621),
    "hermes/S5": (154104, 1562),
    "hermes/S7-acp": (754646, 7812),
}


def streams_of(case: str) -> Streams:
    return convert_home(CAPTURES / case / "home", only="hermes")


# ---------------------------------------------------------------- what happened


def test_a_database_that_lies_elsewhere_is_known_by_its_content(tmp_path: Path) -> None:
    shutil.copyfile(CAPTURES / "hermes/S1/home/.hermes/state.db", tmp_path / "copy")

    given = convert_path(tmp_path / "copy")

    assert list(given) == list(streams_of("hermes/S1"))


@pytest.mark.parametrize("case", CASES)
def test_a_capture_counts_the_session_once(case: str) -> None:
    given = figures(streams_of(case))

    assert (given["input_total"], given["output"]) == FIGURES[case]


@pytest.mark.parametrize("case", CASES)
def test_a_capture_tells_what_really_happened(case: str) -> None:
    wanted = true(truth_of(case))

    given = told(streams_of(case))

    assert [p for p in given["prompts"] if p in wanted["prompts"]] == wanted["prompts"]
    assert given["calls"] == wanted["calls"]
    assert {i: given["results"].get(i) for i in wanted["results"]} == wanted["results"]
    assert {i: given["exits"].get(i) for i in wanted["exits"]} == wanted["exits"]
    assert given["edits"] == wanted["edits"]
    assert given["commits"] == wanted["commits"]
    assert given["models"] == wanted["models"]


def test_each_response_is_an_inference_and_the_figures_say_which_they_cover() -> None:
    (records,) = streams_of("hermes/S1").values()

    inferences = [r for r in records if isinstance(r, Inference)]

    (counted,) = [r for r in inferences if r.usage]
    assert counted.meta is not None
    covered = counted.meta["dev.asrd.usage"]
    assert counted.id_source == "derived"
    assert covered["requests"] == 10
    assert covered["responses"] == [r.inference_id for r in inferences if not r.usage]


def test_usage_of_titles_is_kept_and_not_counted() -> None:
    (records,) = streams_of("hermes/S7-acp").values()

    totals = {r.scope: r.usage.output for r in records if isinstance(r, UsageTotal)}

    assert totals == {"session": 7812, "dev.asrd.model": 7812, "dev.asrd.task": 44}


def test_a_kill_leaves_a_call_without_a_result() -> None:
    (records,) = streams_of("hermes/S5-killed").values()

    answered = [r.call_id for r in records if isinstance(r, ToolResult)]

    assert [r.call_id for r in records if isinstance(r, ToolCall)] == ["call_s5_0_0", "call_s5_1_0"]
    assert answered == ["call_s5_0_0"]
    assert figures(streams_of("hermes/S5-killed"))["input_total"] == 102103


# ---------------------------------------------------------------- followed while it is written


def test_what_a_crashed_session_grew_by_after_its_resume_is_told_apart(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / "hermes/S5-killed/home", home)
    ((found,),) = sources(home, "hermes")
    capture = Capture(RECORDER, found.source.group)
    streams: Streams = {}
    since: dict[str, Any] = {}
    capture.receive_rows(found.source, read_rows(found, None, since))
    take(streams, capture)
    shutil.copyfile(CAPTURES / "hermes/S5/home/.hermes/state.db", home / ".hermes/state.db")

    capture = Capture(RECORDER, found.source.group, saved=capture.save())
    rows = read_rows(found, capture.revisions(found.source), since)
    capture.receive_rows(found.source, rows)
    take(streams, capture)

    (records,) = streams.values()
    counted = [r for r in records if isinstance(r, Inference) and r.usage]
    assert [r.usage.output for r in counted if r.usage] == [1037, 525]
    assert counted[1].inference_id == "6"
    assert counted[1].stop_reason == "stop"
    assert counted[1].supersedes in {r.id for r in records}
    assert figures(streams) == {"requests": 2, "input_total": 154104, "output": 1562}
    assert [words(r) for r in records if isinstance(r, Message) and r.origin == "prompt"] == [
        "[[S5]] Run the long command.",
        "[[S5R]] Continue after crash.",
    ]
    totals = [r for r in records if isinstance(r, UsageTotal) and r.scope == "session"]
    assert totals[1].supersedes == totals[0].id


def test_usage_is_not_counted_again_when_the_state_is_lost(tmp_path: Path) -> None:
    before = items(sources(CAPTURES / "hermes/S5-killed/home", "hermes")[0])
    after = items(sources(CAPTURES / "hermes/S5/home", "hermes")[0])
    streams = record("hermes", "state.db", [before, after])
    whole = lines(streams)

    capture = Capture(RECORDER, "state.db", recorded={key: remembered(rs) for key, rs in streams.items()})
    for source, row in after:
        capture.receive_rows(source, [row])

    assert capture.commands() == []
    assert lines(streams) == whole


def test_usage_of_which_nobody_knows_whether_it_was_stated_is_a_gap() -> None:
    before = items(sources(CAPTURES / "hermes/S5-killed/home", "hermes")[0])
    after = items(sources(CAPTURES / "hermes/S5/home", "hermes")[0])
    streams = record("hermes", "state.db", [before])

    capture = Capture(RECORDER, "state.db", recorded={key: remembered(rs) for key, rs in streams.items()})
    for source, row in after:
        capture.receive_rows(source, [row])
    take(streams, capture)

    (records,) = streams.values()
    assert [r.reason for r in records if isinstance(r, Gap)] == ["dropped"]
    assert figures(streams)["output"] == 1037
    assert [r.usage.output for r in records if isinstance(r, UsageTotal) and r.scope == "session"] == [1037, 1562]
    assert len([r for r in records if isinstance(r, Message) and r.origin == "prompt"]) == 2


@pytest.mark.parametrize("case", CASES)
def test_rows_give_the_same_records_however_they_are_cut(case: str) -> None:
    same_however_cut(CAPTURES / case / "home", "hermes", "state.db")


@pytest.mark.parametrize("case", CASES)
def test_a_stream_goes_on_where_it_was_cut_when_the_state_is_lost(case: str) -> None:
    goes_on_where_it_was_cut(CAPTURES / case / "home", "hermes", "state.db")


# ---------------------------------------------------------------- single rows


def session(ident: str = "s1", **more: Any) -> Row:
    values = {"id": ident, "source": "cli", "model": "m", "started_at": 1796015358.5, "cwd": "/w", **more}
    return Row("sessions", ident, repr(values), values)


def total(**more: Any) -> Row:
    values = {"id": "s1", "source": "cli", "model": "m", **more}
    return Row("session_total", "s1", repr(values), values)


def message(ident: int, role: str, content: str | None = None, **more: Any) -> Row:
    values = {"rowid": ident, "id": ident, "session_id": "s1", "role": role, "content": content, "active": 1, **more}
    return Row("messages", str(ident), repr(values), values, start=ident)


def call(ident: int, tool: str, **given: Any) -> Row:
    calls = [{"id": f"c{ident}", "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}]
    return message(ident, "assistant", None, tool_calls=json.dumps(calls), finish_reason="tool_calls")


def answer(ident: int, to: int, **told_: Any) -> Row:
    return message(ident, "tool", json.dumps(told_), tool_call_id=f"c{to}")


def live(*rows: Row) -> tuple[list[Any], Capture, Streams]:
    """The records of session s1 when these rows are seen one after the other, the capture, all streams."""
    source = Source("hermes", "state.db", "state.db", "state.db", "table")
    capture = Capture(RECORDER, "state.db")
    for one in rows:
        capture.receive_rows(source, [one])
    streams: Streams = {}
    take(streams, capture)
    return list(streams.get(StreamKey("hermes", "s1"), [])), capture, streams


def test_a_response_that_grew_alone_has_its_own_figures() -> None:
    rows = [
        session(),
        message(1, "user", "Go."),
        message(2, "assistant", "Done.", finish_reason="stop"),
        total(input_tokens=7, output_tokens=3, cache_read_tokens=2, reasoning_tokens=1, api_call_count=1),
        message(3, "user", "More."),
        message(4, "assistant", "Again.", finish_reason="stop"),
        total(input_tokens=17, output_tokens=8, cache_read_tokens=12, reasoning_tokens=1, api_call_count=2),
    ]

    records, _, _ = live(*rows)

    counted = {r.inference_id: r.usage for r in records if isinstance(r, Inference) and r.usage}
    assert counted == {
        "2": Usage(input=7, output=3, cache_read=2, cache_write=0, reasoning=1),
        "4": Usage(input=10, output=5, cache_read=10, cache_write=0, reasoning=0),
    }


def spent(model: str, **more: Any) -> Row:
    """A row of `session_model_usage`."""
    values = {"session_id": "s1", "model": model, "billing_provider": "custom", "task": "", **more}
    return Row("session_model_usage", f"s1/{model}", str(more), values)


def models(*names: str) -> Row:
    return Row("session_models", "s1", str(names), {"session_id": "s1", "models": json.dumps(names)})


def test_what_two_models_used_is_counted_for_each() -> None:
    rows = [
        session(model="m1"),
        models("m1", "m2"),
        message(1, "user", "Go."),
        message(2, "assistant", "Done.", finish_reason="stop"),
        message(3, "assistant", "Again.", finish_reason="stop"),
        spent("m1", input_tokens=7, output_tokens=3, api_call_count=1),
        spent("m2", input_tokens=10, output_tokens=5, api_call_count=1),
        total(model="m1", input_tokens=17, output_tokens=8, api_call_count=2),
    ]

    records, _, _ = live(*rows)

    counted = {r.model: (r.usage.input, r.usage.output) for r in records if isinstance(r, Inference) and r.usage}
    assert counted == {"m1": (7, 3), "m2": (10, 5)}
    assert [r.model for r in records if isinstance(r, Inference) and not r.usage] == [None, None]


def test_a_response_of_another_model_than_the_sessions_has_its_own() -> None:
    first = {"input_tokens": 7, "output_tokens": 3, "api_call_count": 1}
    rows = [
        session(model="m1"),
        message(2, "assistant", "Done.", finish_reason="stop"),
        spent("m1", **first),
        total(model="m1", **first),
        message(4, "assistant", "Again.", finish_reason="stop"),
        spent("m2", input_tokens=10, output_tokens=5, api_call_count=1),
        total(model="m1", input_tokens=17, output_tokens=8, api_call_count=2),
    ]

    records, _, _ = live(*rows)

    counted = [(r.inference_id, r.model, r.usage.output) for r in records if isinstance(r, Inference) and r.usage]
    assert counted == [("2", "m1", 3), ("4", "m2", 5)]


STARTED = {"output": "Background process started", "session_id": "proc_1", "pid": 1, "exit_code": 0, "error": None}


@pytest.mark.parametrize(
    "end",
    [
        [
            message(
                5,
                "user",
                "[IMPORTANT: Background process proc_1 exited (exit code 4).\nCommand: sleep 2; exit 4\nOutput:\n]",
            )
        ],
        [
            call(5, "process", action="poll", session_id="proc_1"),
            answer(6, 5, status="exited", exit_code=4, session_id="proc_1"),
        ],
    ],
)
def test_a_command_in_the_background_has_the_exit_code_of_its_end(end: list[Row]) -> None:
    asked = call(2, "terminal", command="sleep 2; exit 4", background=True)

    records, _, _ = live(session(), message(1, "user", "Go."), asked, answer(3, 2, **STARTED), *end)

    first, last = [r for r in records if isinstance(r, ToolResult) and r.call_id == "c2"]
    assert (first.exec and first.exec.exit_code, last.exec and last.exec.exit_code) == (None, 4)
    assert last.supersedes == first.id


def test_a_command_that_took_too_long_says_so() -> None:
    told_ = {"output": "half\n[Command timed out after 1s]", "exit_code": 124, "error": None}

    records, _, _ = live(session(), call(2, "terminal", command="x", timeout=1), answer(3, 2, **told_))

    (ran,) = [r.exec for r in records if isinstance(r, ToolResult)]
    assert ran and (ran.exit_code, ran.timed_out) == (124, True)


def test_a_tool_that_does_not_exist_failed() -> None:
    words = "Tool 'nosuch' does not exist. Available tools: a, b"

    records, _, _ = live(session(), call(2, "nosuch"), message(3, "tool", words, tool_call_id="c2"))

    assert [r.status for r in records if isinstance(r, ToolResult)] == ["failed"]


def test_a_patch_of_several_files_changes_each_once() -> None:
    words = "*** Begin Patch\n*** Move File: a.txt -> b.txt\n*** End Patch"
    told_ = {
        "success": True,
        "files_modified": ["/w/c.py", "/w/n.txt", "/w/o.txt", "/w/a.txt", "/w/b.txt"],
        "files_created": ["n.txt"],
        "files_deleted": ["o.txt"],
    }

    records, _, _ = live(session(cwd="/w"), call(2, "patch", mode="patch", patch=words), answer(3, 2, **told_))

    changes = [(r.path.path, r.change, r.from_path and r.from_path.path) for r in records if isinstance(r, FileChange)]
    assert changes == [
        ("n.txt", "create", None),
        ("o.txt", "delete", None),
        ("c.py", "modify", None),
        ("b.txt", "rename", "a.txt"),
    ]


def history(first: int, at: float, step: float, session_id: str = "s1", **more: Any) -> list[Row]:
    """A prompt, a call with its result and an answer, written one `step` (seconds) after the other."""
    calls = json.dumps([{"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}])
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "continue"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": '{"exit_code": 3}', "tool_call_id": "c1"},
        {"role": "assistant", "content": "Done."},
    ]
    return [
        message(
            first + n,
            one.pop("role"),
            one.pop("content"),
            **one,
            session_id=session_id,
            timestamp=at + n * step,
            **more,
        )
        for n, one in enumerate(said)
    ]


def written(rows: list[Row]) -> list[tuple[str, str]]:
    """The prompts, calls and summaries of session s1, in order."""
    records, _, _ = live(session(), *rows)
    prompts = [("said", str(r.origin)) for r in records if isinstance(r, Message) and r.role == "user"]
    return [*prompts, *(("call", r.call_id) for r in records if isinstance(r, (ToolCall, ToolResult)))]


@pytest.mark.parametrize("followed", [False, True])
def test_what_a_compression_keeps_is_recorded_once(followed: bool) -> None:
    before = history(1, 1000.0, 1.0) if followed else []
    packed = history(1, 1000.0, 1.0, active=0, compacted=1)
    summary = message(20, "assistant", "[CONTEXT COMPACTION — REFERENCE ONLY] …", timestamp=1010.0)
    kept = history(21, 1010.000001, 0.000001)
    more = message(30, "user", "continue", timestamp=1020.0)

    told_ = written([*before, *packed, summary, *kept, more])

    assert told_ == [("said", "prompt"), ("said", "prompt"), ("call", "c1"), ("call", "c1")]


def test_a_summary_in_the_models_role_is_no_response() -> None:
    records, _, _ = live(session(), message(1, "assistant", "[CONTEXT COMPACTION — REFERENCE ONLY] …"))

    assert [r.origin for r in records if isinstance(r, Message)] == ["summary"]
    assert len([r for r in records if isinstance(r, Compaction)]) == 1
    assert not [r for r in records if isinstance(r, Inference)]


@pytest.mark.parametrize(("marker", "copies"), [("_branched_from", 4), ("_delegate_from", 0)])
def test_a_branch_begins_with_copies_and_a_delegation_does_not(marker: str, copies: int) -> None:
    child = session("s2", parent_session_id="s1", model_config=json.dumps({marker: "s1"}))
    own = message(20, "user", "something else", session_id="s2", timestamp=2009.0)

    rows = [session(), *history(1, 1000.0, 1.0), child, *history(11, 2000.0, 0.001, "s2"), own]
    _, _, streams = live(*rows)

    records = streams[StreamKey("hermes", "s2")]
    copied = {r.native_id: r.copy_of.native_id for r in records if r.copy_of}
    assert copied == {str(11 + n): str(1 + n) for n in range(copies)}
    assert {r.copy_of.session_id for r in records if r.copy_of} <= {"s1"}
    (prompt,) = [r for r in records if isinstance(r, Message) and r.native_id == "20"]
    assert prompt.copy_of is None


def test_counters_that_go_back_are_not_counted_twice() -> None:
    records, _, _ = live(
        session(),
        total(input_tokens=7, api_call_count=1),
        total(input_tokens=2, api_call_count=1),
        total(input_tokens=5, api_call_count=2),
    )

    assert [r.usage.input for r in records if isinstance(r, Inference) and r.usage] == [7, 3]
    assert [r.native_type for r in records if isinstance(r, Native)] == ["sessions.counters"]


def test_a_sub_agent_is_linked_both_ways() -> None:
    child = session("s2", parent_session_id="s1", source="subagent")

    records, _, streams = live(session(), child)

    header = streams[StreamKey("hermes", "s2")][0]
    assert isinstance(header, Session)
    assert (header.lineage.relation, header.lineage.parent and header.lineage.parent.session_id) == ("spawned_by", "s1")
    assert [(r.relation, r.target.session_id) for r in records if isinstance(r, Link)] == [("spawned", "s2")]


@pytest.mark.parametrize(
    ("reason", "relation"), [("compression", "resumed_from"), ("branched", "forked_from"), ("x", None)]
)
def test_a_session_that_follows_another_says_how_only_where_the_source_does(reason: str, relation: str | None) -> None:
    _, _, streams = live(session(end_reason=reason), session("s2", parent_session_id="s1"))

    header = streams[StreamKey("hermes", "s2")][0]
    assert isinstance(header, Session)
    assert header.lineage.relation == relation


def test_a_marker_of_another_session_is_no_relation_to_the_parent() -> None:
    sub = session("s2", parent_session_id="s1", source="subagent", model_config='{"_delegate_from": "s1"}')
    ended = session(
        "s2", end_reason="compression", **{k: sub.values[k] for k in ("parent_session_id", "source", "model_config")}
    )
    later = session("s3", parent_session_id="s2", source="subagent", model_config='{"_delegate_from": "s1"}')

    _, _, streams = live(session(), sub, ended, later)

    headers = [streams[StreamKey("hermes", ident)][0] for ident in ("s2", "s3")]
    assert [h.lineage.relation for h in headers if isinstance(h, Session)] == ["spawned_by", "resumed_from"]


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("[ASYNC DELEGATION COMPLETE — deleg_1]\nfinished", {}),
        ("[System: The active model for this chat has changed to x.]", {}),
        ("runbook scaffolding", {"display_kind": "hidden"}),
    ],
)
def test_words_that_hermes_put_in_are_no_prompt(words: str, more: dict[str, Any]) -> None:
    rows = [session(), message(1, "user", "Go."), message(2, "assistant", "Done.", finish_reason="stop")]
    rows += [message(3, "user", words, **more), message(4, "assistant", "Noted.", finish_reason="stop")]

    records, _, _ = live(*rows)

    assert [r.origin for r in records if isinstance(r, Message) and r.role == "user"] == ["prompt", "injected"]
    assert [(r.turn_id, r.phase) for r in records if isinstance(r, Turn)] == [
        ("1", "start"), ("1", "end"), ("3", "start"), ("3", "end"),
    ]  # fmt: skip


def test_words_to_someone_else_in_the_room_start_no_turn() -> None:
    records, _, _ = live(session(), message(1, "user", "Lunch?", observed=1), message(2, "user", "Go."))

    assert [r.origin for r in records if isinstance(r, Message)] == ["injected", "prompt"]
    assert [r.turn_id for r in records if isinstance(r, Turn)] == ["2"]


def test_a_blocked_command_was_denied_and_has_no_exit_code() -> None:
    blocked = {"output": "", "exit_code": -1, "error": "BLOCKED: User denied this command", "status": "blocked"}

    records, _, _ = live(
        session(), message(1, "user", "x"), call(2, "terminal", command="rm x"), answer(3, 2, **blocked)
    )

    (result,) = [r for r in records if isinstance(r, ToolResult)]
    assert (result.status, result.exec and result.exec.exit_code) == ("denied", None)
    assert [(r.call_id, r.decision) for r in records if isinstance(r, Approval)] == [("c2", "deny")]


@pytest.mark.parametrize(
    ("size", "between", "certain"),
    [
        (4, None, True),
        (3, None, True),
        (99, None, False),
        (4, "sed -i s/a/z/ a.py", False),
    ],
)
def test_contents_are_told_only_where_the_size_confirms_them(size: int, between: str | None, certain: bool) -> None:
    rows = [session(), message(1, "user", "x"), call(2, "read_file", path="/w/a.py")]
    rows.append(answer(3, 2, content="1|a\n2|b", total_lines=2, file_size=size, truncated=False))
    if between:
        rows += [call(4, "terminal", command=between), answer(5, 4, output="", exit_code=0, error=None)]
    end = "\n" if size == 4 else ""
    diff = f"--- a//w/a.py\n+++ b//w/a.py\n@@ -1,2 +1,2 @@\n {'z' if between else 'a'}\n-b\n+c{end}"
    if size == 3:
        diff = "--- a//w/a.py\n+++ b//w/a.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c"
    rows.append(call(6, "patch", mode="replace", path="/w/a.py", old_string="b", new_string="c"))
    rows.append(answer(7, 6, success=True, diff=diff, files_modified=["/w/a.py"]))

    records, _, _ = live(*rows)

    (change,) = [r for r in records if isinstance(r, FileChange)]
    assert (change.before is not None, change.after is not None) == (certain, certain)
    assert change.path.path == "a.py"


def test_contents_are_in_doubt_after_a_command_until_a_difference_shows_the_whole_file() -> None:
    text = "".join(f"{n}\n" for n in range(12)) + "b\n"
    numbered = "\n".join(f"{n}|{line}" for n, line in enumerate(text.split("\n")[:-1], 1))
    diff = "--- a//w/a.py\n+++ b//w/a.py\n@@ -10,4 +10,4 @@\n 9\n 10\n 11\n-b\n+c\n"
    reading = [call(2, "read_file", path="/w/a.py")]
    reading.append(answer(3, 2, content=numbered, total_lines=13, file_size=len(text), truncated=False))
    running = [call(4, "terminal", command="make"), answer(5, 4, output="", exit_code=0, error=None)]
    editing = [call(6, "patch", mode="replace", path="/w/a.py", old_string="b", new_string="c")]
    editing.append(answer(7, 6, success=True, diff=diff, files_modified=["/w/a.py"]))

    sure, _, _ = live(session(), *reading, *editing)
    unsure, _, _ = live(session(), *reading, *running, *editing)

    assert [r.after is not None for r in sure if isinstance(r, FileChange)] == [True]
    assert [r.after is not None for r in unsure if isinstance(r, FileChange)] == [False]


def test_a_difference_of_a_whole_file_gives_its_old_content() -> None:
    assert whole_file("--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n") == "a\nb\n"
    assert whole_file("--- a\n+++ b\n@@ -1,4 +1,4 @@\n-b\n+c\n 1\n 2\n 3\n") is None


def test_a_summary_is_no_prompt() -> None:
    text = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted."

    records, _, _ = live(session(), message(1, "user", text), message(2, "user", "Go on."))

    assert [r.origin for r in records if isinstance(r, Message)] == ["summary", "prompt"]
    assert [r.message_id for r in records if isinstance(r, Compaction)] == ["1"]
    assert len([r for r in records if isinstance(r, Turn)]) == 1


def test_a_row_that_is_rewritten_supersedes_what_it_said() -> None:
    records, _, _ = live(
        session(),
        message(1, "user", "Go."),
        message(2, "assistant", "Hal", finish_reason="stop"),
        message(2, "assistant", "Half and whole.", finish_reason="stop"),
        message(1, "user", "Go.", compacted=1),
    )

    said = [r for r in records if isinstance(r, Message) and r.role == "assistant"]
    assert [words(r) for r in said] == ["Hal", "Half and whole."]
    assert said[1].supersedes == said[0].id
    assert [r.data for r in records if isinstance(r, Native)] == [{"id": 1, "active": 1, "compacted": 1, "observed": 0}]
    assert len([r for r in records if isinstance(r, Turn) and r.phase == "start"]) == 1


def test_the_end_of_a_session_is_said_with_its_reason() -> None:
    records, _, _ = live(session(), total(ended_at=1796015399.0, end_reason="cli_close"))

    assert [(r.status, r.reason) for r in records if isinstance(r, End)] == [("completed", "cli_close")]


# ---------------------------------------------------------------- whatever is wrong


@pytest.mark.parametrize(
    "row",
    [
        message(2, "robot", "a role never seen"),
        message(2, "assistant", "x", tool_calls="[{"),
        message(2, "assistant", "x", tool_calls='{"a": 1}'),
        Row("messages", "2", "9", {"id": "two", "session_id": "s1", "role": "user"}),
        Row("messages", "2", "9", {"rowid": 2, "id": 2, "session_id": "s1", "role": 7}),
        message(2, "tool", "no JSON \ufffd", tool_call_id="c0"),
        message(2, "tool", '{"exit_code": "many"}', tool_call_id="c0"),
        message(2, "user", "\0json:[{]"),
        message(2, "user", "x" * 5_000_000),
        Row("new_table", "1", "9", {"id": 1, "blob": b"\xff"}),
    ],
    ids=range(10),
)
def test_a_damaged_row_is_accounted_for_and_the_next_is_recorded(row: Row) -> None:
    before, _, _ = live(session(), message(1, "user", "Go."))

    records, capture, _ = live(session(), message(1, "user", "Go."), row, message(3, "user", "Next."))

    new = records[len(before) :]
    assert isinstance(new[0], (Native, Loss, Message, Inference, ToolResult, Turn))
    assert words(new[-1]) == "Next."
    assert not [k for k in capture.accounts()[1] if k.startswith("mistake")]


def test_text_that_is_no_utf8_is_read_with_its_bytes_replaced(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / "hermes/S5/home", home)
    db = sqlite3.connect(home / ".hermes/state.db")
    db.execute("UPDATE messages SET content = CAST(x'ff41' AS TEXT) WHERE id = 2")
    db.commit()
    db.close()

    streams = convert_home(home, only="hermes")

    (records,) = streams.values()
    said = [words(r) for r in records if isinstance(r, Message)]
    assert "\ufffdA" in said
    assert said[-1] == "Resumed after the crash: nothing was lost that I know of."
    assert figures(streams)["output"] == 1562


# ---------------------------------------------------------------- documents

BOTH, ALONE = "hermes/S1-v0.13.0", "hermes/S1-v0.13.0-document"
ROOT = "sessions/session_one.json"
DATABASE = Source("hermes", "state.db", "state.db", "state.db", "table")
DOCUMENT = Source("hermes", "state.db", ROOT, ROOT, "document", "1")


def document(*messages: dict[str, Any], session: str = "one") -> Row:
    data = json.dumps({"session_id": session, "model": "m", "platform": "cli", "messages": messages}).encode()
    return Row("session_one.json", "session_one.json", revision_of(data), {}, data)


def rows(*messages: str) -> list[Row]:
    """The rows of session `one`, with these words of its user."""
    told: list[tuple[str, str, dict[str, Any]]] = [("sessions", "one", {"id": "one", "model": "m", "source": "cli"})]
    told += [
        (
            "messages",
            str(n + 1),
            {"id": n + 1, "session_id": "one", "role": "user", "content": text, "timestamp": 1e9 + n},
        )
        for n, text in enumerate(messages)
    ]
    return [Row(table, key, revision_of_values(values), values) for table, key, values in told]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def prompts(streams: Streams) -> list[str]:
    return [
        words(r) for records in streams.values() for r in records if isinstance(r, Message) and r.origin == "prompt"
    ]


def given(*steps: tuple[Source, list[Row]], recorded: Any = None) -> tuple[Streams, Capture]:
    capture = Capture(RECORDER, "state.db", recorded=recorded)
    streams: Streams = {}
    for source, some in steps:
        capture.receive_rows(source, some)
        take(streams, capture)
    return streams, capture


def test_a_document_alone_tells_what_really_happened() -> None:
    wanted = true(truth_of(BOTH))

    said = told(streams_of(ALONE))

    assert {k: said[k] for k in ("prompts", "calls", "edits", "commits")} == {
        k: wanted[k] for k in ("prompts", "calls", "edits", "commits")
    }
    assert {i: said["results"].get(i) for i in wanted["results"]} == wanted["results"]
    assert {i: said["exits"].get(i) for i in wanted["exits"]} == wanted["exits"]


def test_a_document_has_no_figures_and_no_times_and_says_so() -> None:
    (records,) = streams_of(ALONE).values()

    assert figures(streams_of(ALONE)) == {"requests": 0, "input_total": 0, "output": 0}
    assert {r.at for r in records} == {None}
    assert [r.state for r in records if isinstance(r, CaptureState) and r.profile == "usage"] == ["unavailable"]
    assert all(r.id_source == "derived" and r.native_id is None for r in records if isinstance(r, Inference))


def test_a_session_in_the_database_and_in_a_document_counts_once(tmp_path: Path) -> None:
    shutil.copytree(CAPTURES / BOTH / "home", tmp_path / "home")
    shutil.rmtree(tmp_path / "home/.hermes/sessions")

    assert lines(convert_home(tmp_path / "home")) == lines(streams_of(BOTH))


def test_a_document_is_told_as_it_grows() -> None:
    whole, _ = given((DOCUMENT, [document(user("a"), user("b"), user("c"))]))

    parts, capture = given(
        (DOCUMENT, [document(user("a"))]),
        (DOCUMENT, [document(user("a"), user("b"))]),
        (DOCUMENT, [document(user("a"), user("b"), user("c"))]),
    )

    assert prompts(parts) == prompts(whole) == ["a", "b", "c"]
    assert capture.accounts()[1] == {}


def test_a_document_whose_history_was_rewritten_says_so_and_tells_the_new_one() -> None:
    streams, _ = given((DOCUMENT, [document(user("a"), user("b"))]), (DOCUMENT, [document(user("a"), user("x"))]))

    (records,) = streams.values()
    assert prompts(streams) == ["a", "b", "x"]
    assert [r.data for r in records if isinstance(r, Native)] == [{"kept": 1, "replaced": 1}]


@pytest.mark.parametrize("first", ["database", "document"])
def test_whichever_told_a_session_first_goes_on_with_it(first: str) -> None:
    begun = [(DATABASE, rows("a")), (DOCUMENT, [document(user("a"))])]
    steps = begun if first == "database" else begun[::-1]

    streams, capture = given(*steps, (DATABASE, rows("a", "b")), (DOCUMENT, [document(user("a"), user("b"))]))

    assert prompts(streams) == ["a", "b"]
    rule = "session-stands-in-the-database" if first == "database" else "message-stands-in-the-document"
    assert capture.accounts()[0][rule] == 2


@pytest.mark.parametrize("first", ["database", "document"])
def test_who_told_a_session_first_is_known_when_the_state_is_lost(first: str) -> None:
    begun = [(DATABASE, rows("a")), (DOCUMENT, [document(user("a"))])]
    grown = [(DATABASE, rows("a", "b")), (DOCUMENT, [document(user("a"), user("b"))])]
    streams, _ = given(*(begun if first == "database" else begun[::-1]), *grown)

    more, _ = given(*grown, recorded={key: remembered(rs) for key, rs in streams.items()})

    assert lines(more) == {}
