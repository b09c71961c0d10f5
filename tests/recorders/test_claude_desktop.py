"""Claude Desktop: a document beside Claude Code's file, tied to it; and how both desktops are told from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, take
from asrd.reading import read_rows
from asrd.recorders.base import StreamKey
from asrd.recorders.claude_desktop import RECORDER
from asrd.records import Config, Link, Session, encode
from tests.figures import figures
from tests.recorders.arrivals import goes_on_from_any_prefix, of, same_however_it_comes
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
