"""Antigravity: the story from protobuf rows, and from the transcript alone; what both say is recorded once."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, take
from asrd.reading import read_lines, read_rows
from asrd.recorders.antigravity import RECORDER
from asrd.records import Config, Inference, Link, Message, Native, ToolCall, ToolResult, Turn, decode
from tests.captures.antigravity.make import IDENT
from tests.captures.wire import message
from tests.homes import recorded
from tests.recorders.arrivals import (
    goes_on_from_any_prefix,
    goes_on_past_a_line_that_is_too_long,
    goes_on_whatever_is_wrong,
    groups_of,
    mistakes,
    of,
    record,
    same_however_it_comes,
    unaccounted,
)
from tests.recorders.storied import home_of, streams_of, told, truth_of
from tests.recorders.told import sources

CASES = ["antigravity/S1", "antigravity/S1-transcript"]


@pytest.mark.parametrize("case", CASES)
def test_the_story_is_told_once_with_every_figure(case: str) -> None:
    (records,) = streams_of(case, "antigravity").values()
    truth = truth_of(case)

    given = told(records)

    if case.endswith("transcript"):  # which has no ids: calls are told in their order
        derived = [c.call_id for c in of(ToolCall, records)]
        assert all(c.call_id_source == "derived" for c in of(ToolCall, records))
        names = dict(zip(derived, truth["calls"], strict=True))
        given["calls"] = [names[c] for c in given["calls"]]
        given["answered"] = [names[c] for c in given["answered"]]
        given["exits"] = {names[c]: v for c, v in given["exits"].items()}
    assert given.pop("answered") == truth["calls"]
    assert given == truth


def test_a_response_names_its_model_and_a_result_its_call() -> None:
    (records,) = streams_of("antigravity/S1", "antigravity").values()

    assert {r.model for r in of(Inference, records)} == {"claude-x"}
    assert {r.linkage for r in of(ToolResult, records)} == {"exact"}


def test_a_notice_and_what_wraps_a_prompt_are_no_prompts() -> None:
    (records,) = streams_of("antigravity/S1-transcript", "antigravity").values()

    injected = [m for m in of(Message, records) if m.origin == "injected"]

    assert [m.role for m in injected] == ["user", "user", "system"]


@pytest.mark.parametrize("case", CASES)
def test_an_answer_without_calls_ends_its_turn(case: str) -> None:
    (records,) = streams_of(case, "antigravity").values()

    asked = [m.turn_id for m in of(Message, records) if m.origin == "prompt"]
    ends = [(t.turn_id, t.status) for t in of(Turn, records) if t.phase == "end"]

    assert ends == [(turn, "completed") for turn in asked]


def test_what_the_transcript_told_first_is_superseded_by_the_database() -> None:
    ((database, transcript),) = sources(home_of("antigravity/S1"), "antigravity")
    capture = Capture(RECORDER, database.source.group)
    streams: Streams = {}
    for data in read_lines(transcript, 0):
        capture.receive_bytes(transcript.source, data)
    capture.receive_rows(database.source, read_rows(database))
    take(streams, capture)

    (records,) = streams.values()

    given, truth = told(records), truth_of("antigravity/S1")
    assert given.pop("answered") == truth["calls"]
    # The edit's digests were told by the transcript already: its effects are told once.
    assert given == truth


def test_a_model_that_is_known_later_is_said_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(home_of("antigravity/S1"), home)
    (path,) = home.rglob("*.db")
    db = sqlite3.connect(path)
    generations = db.execute("SELECT idx, data FROM gen_metadata").fetchall()
    db.execute("DELETE FROM gen_metadata")
    db.commit()
    ((found, _),) = sources(home, "antigravity")
    capture = Capture(RECORDER, found.source.group)
    streams: Streams = {}
    capture.receive_rows(found.source, read_rows(found))
    db.executemany("INSERT INTO gen_metadata VALUES (?, ?)", generations)
    db.commit()
    db.close()

    capture.receive_rows(found.source, read_rows(found, capture.revisions(found.source)))
    take(streams, capture)

    (records,) = streams.values()
    gone = {r.supersedes for r in records if r.supersedes}
    assert {r.model for r in of(Inference, records) if r.id not in gone} == {"claude-x"}
    truth = truth_of("antigravity/S1")
    assert {k: told(records)[k] for k in ("requests", "input_total", "output")} == {
        k: truth[k] for k in ("requests", "input_total", "output")
    }


def test_a_step_of_a_kind_nobody_knows_is_kept_by_field_number(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(home_of("antigravity/S1"), home)
    (path,) = home.rglob("*.db")
    db = sqlite3.connect(path)
    payload = message((77, [(3, "a plan of some kind")]))
    db.execute("INSERT INTO steps VALUES (99, 40, 3, 0, ?, ?)", (message((1, [(1, 1796015400)])), payload))
    db.commit()
    db.close()

    (records,) = convert_home(home, only="antigravity").values()

    (native,) = [n for n in of(Native, records) if n.native_type == "step/40"]
    assert native.data["step_payload"] == {"77": [{"3": ["a plan of some kind"]}]}


def test_the_store_of_all_conversations_gives_a_title_a_folder_and_a_parent(tmp_path: Path) -> None:
    home = home_with_summaries(tmp_path, "antigravity/S1-transcript")

    (records,) = convert_home(home, only="antigravity").values()

    assert [(c.title, c.cwd) for c in of(Config, records) if c.title or c.cwd] == [
        ("Fix add", None),
        (None, "/home/dev/app"),
    ]
    (link,) = of(Link, records)
    assert (link.relation, link.target.session_id) == ("spawned_by", "another-conversation")


def test_a_summary_that_changes_says_only_what_is_new(tmp_path: Path) -> None:
    home = home_with_summaries(tmp_path, "antigravity/S1-transcript")
    with recorded(home, tmp_path / "store") as one:
        before = one.streams()
    db = sqlite3.connect(home / ".gemini/antigravity-cli/conversation_summaries.db")
    db.execute("UPDATE conversation_summaries SET step_count = 99, title = 'Fix add, and commit'")
    db.commit()
    db.close()

    with recorded(home, tmp_path / "store") as one:
        after = one.streams()

    ((name, data),) = before.items()
    more = after[name].removeprefix(data)
    assert len(after[name]) == len(data) + len(more)
    assert [decode(line).title for line in more.splitlines()] == ["Fix add, and commit"]  # type: ignore[union-attr]


def home_with_summaries(folder: Path, case: str) -> Path:
    home = folder / "home"
    shutil.copytree(home_of(case), home)
    db = sqlite3.connect(home / ".gemini/antigravity-cli/conversation_summaries.db")
    db.execute(
        "CREATE TABLE conversation_summaries (conversation_id TEXT PRIMARY KEY, title TEXT, step_count INTEGER, "
        "workspace_uris TEXT, parent_conversation_id TEXT, nesting_depth INTEGER)"
    )
    rows = [
        (IDENT, "Fix add", 12, '["file:///home/dev/app"]', "another-conversation", 1),
        ("nobody's", "Elsewhere", 1, "", "", 0),
    ]
    db.executemany("INSERT INTO conversation_summaries VALUES (?, ?, ?, ?, ?, ?)", rows)
    db.commit()
    db.close()
    return home


def test_tables_that_nobody_described_are_counted(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(home_of("antigravity/S1"), home)
    (path,) = home.rglob("*.db")
    db = sqlite3.connect(path)
    db.executemany("INSERT INTO executor_metadata VALUES (?, ?)", [(0, b"a"), (1, b"b"), (2, b"c")])
    db.commit()
    ((found, _),) = sources(home, "antigravity")
    capture = Capture(RECORDER, found.source.group)
    marks: dict[str, Any] = {}
    capture.receive_rows(found.source, read_rows(found, capture.revisions(found.source), marks))
    db.execute("INSERT INTO executor_metadata VALUES (3, x'00')")
    db.commit()
    db.close()

    capture.receive_rows(found.source, read_rows(found, capture.revisions(found.source), marks))

    assert capture.accounts()[0]["unread:executor_metadata"] == 4
    assert "unread:battle_mode_infos" not in capture.accounts()[0]


@pytest.mark.parametrize("full", [True, False])
def test_the_short_transcript_is_told_where_there_is_nothing_else(full: bool, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(home_of("antigravity/S1-transcript"), home)
    (path,) = home.rglob("transcript_full.jsonl")
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.with_name("transcript.jsonl").write_text(
        "".join(line.replace("It subtracts.", "It…") for line in lines), "utf-8"
    )
    if not full:
        path.unlink()

    (records,) = convert_home(home, only="antigravity").values()

    texts = truth_of("antigravity/S1-transcript")["texts"]
    assert told(records)["texts"] == (texts if full else ["It…" if t == "It subtracts." else t for t in texts])
    assert told(records)["requests"] == truth_of("antigravity/S1-transcript")["requests"]


def test_the_applications_keep_conversations_in_the_same_form(tmp_path: Path) -> None:
    shutil.copytree(home_of("antigravity/S1") / ".gemini/antigravity-cli", tmp_path / ".gemini/antigravity")

    (records,) = convert_home(tmp_path, only="antigravity").values()

    assert told(records)["prompts"] == truth_of("antigravity/S1")["prompts"]


@pytest.mark.parametrize("case", CASES)
def test_the_same_however_it_comes(case: str) -> None:
    same_however_it_comes(RECORDER, home_of(case), case)
    goes_on_from_any_prefix(RECORDER, home_of(case), case)


@pytest.mark.parametrize("case", CASES)
def test_each_row_and_line_is_accounted_for(case: str) -> None:
    for contents in groups_of(RECORDER, home_of(case)):
        streams, capture = record(RECORDER, contents)

        assert unaccounted(contents, streams, capture) == 0
        assert mistakes(capture) == []


def test_it_goes_on_whatever_is_wrong() -> None:
    goes_on_whatever_is_wrong(RECORDER, home_of("antigravity/S1-transcript"), "antigravity", 40)
    goes_on_past_a_line_that_is_too_long(RECORDER, home_of("antigravity/S1-transcript"))
