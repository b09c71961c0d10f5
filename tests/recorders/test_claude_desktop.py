"""Claude Desktop: a document beside Claude Code's file, tied to it; and how both desktops are told from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, take
from asrd.reading import read_rows
from asrd.recorders.base import StreamKey
from asrd.recorders.claude_desktop import RECORDER
from asrd.records import Capture as CaptureState
from asrd.records import Config, Inference, Link, Message, Native, Session, ToolResult, Turn, encode
from asrd.sources import Source
from tests.figures import figures
from tests.homes import recorded
from tests.recorders.arrivals import goes_on_from_any_prefix, goes_on_whatever_is_wrong, of, same_however_it_comes
from tests.recorders.scripted import findings
from tests.recorders.storied import home_of, truth_of
from tests.recorders.told import sources

CASE = "claude-desktop/S1"


def header_of(streams: Streams, agent: str) -> Session:
    (header,) = [rs[0] for k, rs in streams.items() if k.agent == agent]
    assert isinstance(header, Session)
    return header


def test_the_document_is_tied_to_the_session_of_claude_code() -> None:
    streams = convert_home(home_of(CASE))
    truth = truth_of(CASE)

    records = streams[StreamKey("claude-desktop", truth["session"])]

    (link,) = of(Link, records)
    assert (link.relation, link.target.agent, link.target.session_id) == ("observes", "claude-code", truth["cli"])
    assert StreamKey("claude-code", truth["cli"]) in streams
    assert header_of(streams, "claude-desktop").scope == "secondary"
    assert [(c.model, c.effort, c.mode) for c in of(Config, records)] == [("claude-opus-5", "medium", "auto")]


def test_origins_tell_the_desktops_from_the_command_line() -> None:
    claude = header_of(convert_home(home_of(CASE)), "claude-code")
    codex = header_of(convert_home(home_of("codex-desktop/S1")), "codex")

    assert claude.meta is not None and claude.meta["dev.asrd.entrypoint"] == "claude-desktop"
    assert codex.meta is not None and codex.meta["dev.asrd.originator"] == "Codex Desktop"
    assert codex.meta["dev.asrd.surface"] == "vscode"
    assert codex.lineage.root is True


def test_the_desktops_count_what_the_command_line_counts() -> None:
    desktop = figures(convert_home(home_of("codex-desktop/S1"))), figures(convert_home(home_of(CASE)))

    line = figures(convert_home(home_of("codex/S1"))), figures(convert_home(home_of("claude-code/S1")))

    assert desktop == line


def test_how_a_server_is_reached_is_in_no_record() -> None:
    streams = convert_home(home_of(CASE), only="claude-desktop")

    written = b"".join(encode(r) for rs in streams.values() for r in rs)

    assert b"a-secret-path" not in written
    assert b'"servers":1' in written


def test_only_what_changed_is_told_when_the_document_is_written_again(tmp_path: Path) -> None:
    folder = tmp_path / ".config/Claude/claude-code-sessions/a/o"
    folder.mkdir(parents=True)
    path = folder / "local_1.json"
    told: dict[str, Any] = {
        "sessionId": "local_1",
        "cliSessionId": "c1",
        "cwd": "/w",
        "title": "One",
        "lastFocusedAt": 1,
    }
    path.write_text(json.dumps(told))
    ((found,),) = sources(tmp_path, "claude-desktop")
    capture = Capture(RECORDER, found.source.group)
    streams: Streams = {}
    for change in ({}, {"lastFocusedAt": 2}, {"title": "Two"}, {"cliSessionId": "c2"}):
        path.write_text(json.dumps(told := told | change))
        capture = Capture(RECORDER, found.source.group, saved=capture.save())
        capture.receive_rows(found.source, read_rows(found, capture.revisions(found.source)))
        take(streams, capture)

    (records,) = streams.values()

    assert [c.title for c in of(Config, records)] == ["Two"]
    assert [r.target.session_id for r in of(Link, records)] == ["c1", "c2"]
    assert capture.accounts()[0] == {"nothing-new": 1}


def test_the_same_however_it_comes() -> None:
    same_however_it_comes(RECORDER, home_of(CASE), CASE)
    goes_on_from_any_prefix(RECORDER, home_of(CASE), CASE)


# ---------------------------------------------------------------- tasks

TASK = "claude-desktop/S2-cowork"
AUDIT = Source(
    "claude-desktop", "local_1.json", "local-agent-mode-sessions/local_1/audit.jsonl", "audit.jsonl", "lines", "1"
)


def totals(home: Path, store: Path) -> tuple[int, int, int]:
    with recorded(home, store) as one:
        told = one.usage()
        return told["requests"], told["inputTotal"], told["output"]


def audited(*lines: dict[str, Any]) -> tuple[list[Any], dict[str, int]]:
    capture = Capture(RECORDER, AUDIT.group)
    streams: Streams = {}
    for number, line in enumerate(lines):
        line = {"session_id": "c1", "uuid": f"u{number}", "_audit_timestamp": f"2026-11-30T11:19:{number:02}Z", **line}
        capture.receive_bytes(AUDIT, json.dumps(line).encode() + b"\n")
    take(streams, capture)
    assert findings(streams) == []
    (records,) = streams.values()
    return [r for r in records[1:] if not isinstance(r, CaptureState)], capture.accounts()[0]


def asked(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def answered(*parts: dict[str, Any], output: int = 10, **more: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 100,
        "output_tokens": output,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 1,
    }
    return {
        "type": "assistant",
        "message": {"id": "msg_1", "model": "m", "content": list(parts), "usage": usage},
        **more,
    }


def test_a_task_is_the_session_of_claude_code_in_its_own_folder() -> None:
    streams, truth = convert_home(home_of(TASK)), truth_of(TASK)

    assert set(streams) == {StreamKey("claude-code", truth["cli"]), StreamKey("claude-desktop", truth["session"])}
    task = streams[StreamKey("claude-desktop", truth["session"])]
    assert [(r.relation, r.target.session_id) for r in of(Link, task)] == [("observes", truth["cli"])]
    assert header_of(streams, "claude-desktop").scope == "secondary"
    assert header_of(streams, "claude-desktop").title == "A first hello"
    said = [[b.text for b in r.content] for r in of(Message, task)]
    assert said == [[truth["prompt"]], [truth["answer"]]]


def test_what_the_audit_repeats_counts_once_and_alone_where_claude_codes_file_is_gone(tmp_path: Path) -> None:
    truth = truth_of(TASK)
    home = tmp_path / "home"
    shutil.copytree(home_of(TASK), home)

    both = totals(home, tmp_path / "both")
    for path in home.rglob(f"{truth['cli']}.jsonl"):
        path.unlink()

    assert both == (truth["requests"], truth["input"], truth["output"])
    assert totals(home, tmp_path / "alone") == both


def test_parts_of_a_response_count_once_with_the_figures_told_last() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "a", "is_error": True}

    records, _ = audited(
        asked("go"), answered({"type": "thinking", "thinking": "hm"}), answered(call),
        answered({"type": "text", "text": "x"}, output=20),
        asked([result]), {"type": "result", "subtype": "success"},
    )  # fmt: skip

    gone = {r.supersedes for r in records}
    (counted,) = [r for r in of(Inference, records) if r.id not in gone]
    assert (counted.inference_id, counted.usage.input, counted.usage.output) == ("msg_1", 100, 20)
    assert (counted.usage.cache_read, counted.usage.cache_write) == (5, 1)
    assert [(r.linkage, r.status) for r in of(ToolResult, records)] == [("exact", "failed")]
    assert [(r.phase, r.status) for r in of(Turn, records)] == [("start", None), ("end", "completed")]
    assert [r.native_type for r in of(Native, records)] == ["result"]


def test_a_prompt_that_is_replayed_is_said_once_and_a_sub_agents_is_no_persons() -> None:
    records, skips = audited(
        asked("go", uuid="p1"),
        asked("go", uuid="p1", isReplay=True),
        asked("look", parent_tool_use_id="c1"),
        asked("note", isSynthetic=True),
    )

    assert [(r.author, r.origin) for r in of(Message, records)] == [
        ("human", "prompt"),
        ("agent", "agent"),
        ("harness", "injected"),
    ]
    assert skips == {"prompt-replayed": 1}


def test_a_run_that_failed_ends_its_turn_so() -> None:
    records, _ = audited(asked("go"), {"type": "result", "subtype": "error_during_execution", "is_error": True})

    assert [r.status for r in of(Turn, records) if r.phase == "end"] == ["failed"]


def test_a_task_is_the_same_however_it_comes() -> None:
    same_however_it_comes(RECORDER, home_of(TASK), TASK)
    goes_on_from_any_prefix(RECORDER, home_of(TASK), TASK)
    goes_on_whatever_is_wrong(RECORDER, home_of(TASK), TASK)


@pytest.mark.parametrize("folder", ["", "agent/"])
@pytest.mark.parametrize("case", ["claude-code/S2", "claude-code/S2-v2.0.65"])
def test_claude_codes_sessions_and_sub_agents_are_the_same_in_a_tasks_folder(
    case: str, folder: str, tmp_path: Path
) -> None:
    task = tmp_path / f"Library/Application Support/Claude/local-agent-mode-sessions/o/a/{folder}local_1/.claude"
    shutil.copytree(home_of(case) / ".claude", task)

    here, there = convert_home(tmp_path, only="claude-code"), convert_home(home_of(case), only="claude-code")

    assert {k: [(r.id, type(r), r.native_id, r.at) for r in rs] for k, rs in here.items()} == {
        k: [(r.id, type(r), r.native_id, r.at) for r in rs] for k, rs in there.items()
    }
    assert {k: rs[0].lineage for k, rs in here.items() if isinstance(rs[0], Session)} == {
        k: rs[0].lineage for k, rs in there.items() if isinstance(rs[0], Session)
    }


def test_an_audit_without_its_document_names_the_session_it_is_of() -> None:
    records, _ = audited(asked("go"))

    assert [(r.relation, r.target.session_id, r.evidence.field) for r in of(Link, records)] == [
        ("observes", "c1", "session_id")
    ]
