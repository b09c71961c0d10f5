"""Antigravity: the story from protobuf rows, and from the transcript alone; what both say is recorded once."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, take
from asrd.reading import read_lines, read_rows
from asrd.recorders.antigravity import RECORDER
from asrd.records import Inference, Message, Native, ToolCall, ToolResult, Turn
from tests.captures.wire import message
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
