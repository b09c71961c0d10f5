"""Cursor CLI: the story from the graph of blobs, from its JSON messages, and from the transcript alone; each told once."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, convert_path, take
from asrd.places import Found
from asrd.reading import read_lines, read_rows
from asrd.recorders.cursor import RECORDER
from asrd.records import Capture as CaptureState
from asrd.records import Config, Inference, Message, Native, Session, ToolCall, ToolResult, Turn, encode, span_of
from asrd.sources import Source
from tests.captures import story
from tests.captures.cursor.make import Store, wrapped
from tests.captures.wire import message
from tests.recorders.arrivals import (
    goes_on_from_any_prefix,
    goes_on_past_a_line_that_is_too_long,
    goes_on_whatever_is_wrong,
    groups_of,
    lineage_of,
    of,
    record,
    same_however_it_comes,
)
from tests.recorders.storied import home_of, streams_of, told, truth_of
from tests.recorders.told import sources

CASES = ["cursor/S1", "cursor/S1-messages", "cursor/S1-transcript"]
COUNTED = ("requests", "input_total", "output")


def test_the_turns_of_the_root_tell_the_story_once() -> None:
    (records,) = streams_of("cursor/S1", "cursor").values()
    truth = truth_of("cursor/S1")

    given = told(records)

    assert {k: v for k, v in given.items() if k not in (*COUNTED, "answered")} == {
        k: v for k, v in truth.items() if k not in (*COUNTED, "model")
    }
    assert given["answered"] == truth["calls"]
    assert [i.model for i in of(Inference, records)] == [truth["model"]] * truth["requests"]
    assert all(i.usage is None for i in of(Inference, records))


def test_the_transcript_of_a_stored_session_says_only_how_its_turns_ended() -> None:
    contents = groups_of(RECORDER, home_of("cursor/S1"))[0]

    streams, capture = record(RECORDER, contents)

    lines = sum(c.count(b"\n") for _, c in contents if isinstance(c, bytes))
    assert capture.accounts()[0]["transcript-of-a-recorded-session"] == lines - 2
    (records,) = streams.values()
    assert [(t.turn_id, t.phase, t.status) for t in of(Turn, records)] == TURNS


TURNS = [
    ("request-0", "start", None),
    ("request-1", "start", None),
    ("request-0", "end", "completed"),
    ("request-1", "end", "completed"),
]


@pytest.mark.parametrize("lines", range(12))
def test_a_turn_ends_once_in_whatever_order_store_and_transcript_come(lines: int) -> None:
    by_kind = {source.kind: (source, c) for source, c in groups_of(RECORDER, home_of("cursor/S1"))[0]}
    (transcript, text), (store, rows) = by_kind["lines"], by_kind["table"]
    assert isinstance(text, bytes) and isinstance(rows, list)
    written = text.splitlines(keepends=True)
    capture, streams = Capture(RECORDER, store.group), Streams()

    capture.receive_bytes(transcript, b"".join(written[:lines]))
    take(streams, capture)
    capture = Capture(RECORDER, store.group, saved=capture.save())
    capture.receive_rows(store, rows)
    capture.receive_bytes(transcript, b"".join(written[lines:]))
    take(streams, capture)

    (records,) = streams.values()
    gone = {r.supersedes for r in records if r.supersedes}
    turns = [(t.turn_id, t.phase, t.status) for t in of(Turn, records) if t.id not in gone]
    assert sorted(turns) == sorted(TURNS)
    assert capture.accounts()[0].get("held-until-its-turn-is-told", 0) == 0


def test_the_end_of_a_turn_waits_for_a_store_that_lags_behind(tmp_path: Path) -> None:
    db, _ = a_store(tmp_path)
    store = Store()
    capture, streams, (found, *_) = followed(tmp_path)
    first = a_turn(store, "One.", "req-1", "Done one.")
    save(db, store, store.put(message((8, first))))
    capture.receive_rows(found.source, read_rows(found, capture.revisions(found.source)))
    lines = [
        {"role": "user", "message": {"content": [{"type": "text", "text": wrapped(prompt)}]}}
        for prompt in ("One.", "Two.")
    ]
    ended = [{"type": "turn_ended", "status": "success"}, {"type": "turn_ended", "status": "aborted"}]
    name = "projects/p/agent-transcripts/session-1/session-1.jsonl"
    source = Source("cursor", "session-1", name, name, "lines", "2")
    for line in (lines[0], ended[0], lines[1], ended[1]):
        capture.receive_bytes(source, json.dumps(line).encode() + b"\n")
    take(streams, capture)
    before = len(of(Turn, next(iter(streams.values()))))
    last = a_turn(store, "Two.", "req-2", "Done two.")
    save(db, store, store.put(message((8, first), (8, last))))
    capture = Capture(RECORDER, found.source.group, saved=capture.save())
    capture.receive_rows(found.source, read_rows(found, capture.revisions(found.source)))
    take(streams, capture)

    (records,) = streams.values()

    assert before == 2
    assert [(t.turn_id, t.phase, t.status) for t in of(Turn, records)] == [
        ("req-1", "start", None),
        ("req-1", "end", "completed"),
        ("req-2", "start", None),
        ("req-2", "end", "interrupted"),
    ]
    assert (span := span_of(records[-1])) is not None and span.start == sum(
        len(json.dumps(x)) + 1 for x in (lines[0], ended[0], lines[1])
    )


def test_a_root_without_turns_is_told_by_its_messages() -> None:
    (records,) = streams_of("cursor/S1-messages", "cursor").values()
    truth = truth_of("cursor/S1-messages")

    given = told(records)

    assert {k: given[k] for k in ("prompts", "texts", "calls")} == {k: truth[k] for k in ("prompts", "texts", "calls")}
    assert {i.model for i in of(Inference, records)} == {truth["model"]}
    assert {r.status for r in of(ToolResult, records)} == {"unknown"}


def test_a_transcript_alone_tells_prompts_words_and_calls_and_what_it_cannot() -> None:
    (records,) = streams_of("cursor/S1-transcript", "cursor").values()
    truth = truth_of("cursor/S1-transcript")

    given = told(records)

    assert {k: given[k] for k in ("prompts", "texts")} == {k: truth[k] for k in ("prompts", "texts")}
    assert len(given["calls"]) == len(truth["calls"])
    assert given["answered"] == []
    states = {(r.profile, r.facet) for r in records if isinstance(r, CaptureState)}
    assert {("coding", "tool_result"), ("core", "at"), ("usage", "usage")} <= states
    assert [t.status for t in of(Turn, records) if t.phase == "end"] == ["completed", "completed"]


def test_what_a_transcript_told_before_there_was_a_store_is_superseded() -> None:
    group = sources(home_of("cursor/S1"), "cursor")[0]
    by_kind = {f.source.kind: f for f in group}
    capture = Capture(RECORDER, group[0].source.group)
    streams: Streams = {}
    for data in read_lines(by_kind["lines"], 0):
        capture.receive_bytes(by_kind["lines"].source, data)
    capture.receive_rows(by_kind["table"].source, read_rows(by_kind["table"]))
    take(streams, capture)

    (records,) = streams.values()

    given, truth = told(records), truth_of("cursor/S1")
    assert {k: given[k] for k in ("prompts", "calls", "exits", "edits", "commits")} == {
        k: truth[k] for k in ("prompts", "calls", "exits", "edits", "commits")
    }
    assert sorted(given["texts"]) == sorted(truth["texts"])
    gone = {r.supersedes for r in records if r.supersedes}
    assert len([i for i in of(Inference, records) if i.id not in gone]) == truth["requests"]


def test_a_call_is_told_when_it_is_asked_and_its_result_when_it_is_there(tmp_path: Path) -> None:
    db, path = a_store(tmp_path)
    store = Store()
    user = store.put(message((1, "Go."), (2, "msg"), (25, story.START)))
    asked = [(1, [(1, message((1, "ls")))]), (57, "call_x"), (59, story.START)]
    answered = [(1, [(1, message((1, "ls"))), (2, message((1, [(5, "a\n")])))]), (57, "call_x"), (59, story.START)]
    capture, streams, (found, *_) = followed(tmp_path)
    for step in (asked, answered):
        call = store.put(message((2, step)))
        turn = store.put(message((1, [(1, user), (2, call), (3, "req")])))
        save(db, store, store.put(message((8, turn))))
        capture = Capture(RECORDER, found.source.group, saved=capture.save())
        capture.receive_rows(found.source, read_rows(found, capture.revisions(found.source)))
        take(streams, capture)

    (records,) = streams.values()

    assert [c.call_id for c in of(ToolCall, records)] == ["call_x"]
    assert [(r.call_id, r.exec.exit_code, r.exec.stdout) for r in of(ToolResult, records)] == [("call_x", 0, "a\n")]
    assert [t.turn_id for t in of(Turn, records)] == ["req"]
    assert path.exists()


def test_a_conversation_that_was_taken_back_goes_on_beside_what_was_told(tmp_path: Path) -> None:
    db, _ = a_store(tmp_path)
    store = Store()
    capture, streams, (found, *_) = followed(tmp_path)
    first = a_turn(store, "One.", "req-1", "Done one.")
    second = a_turn(store, "Two.", "req-2", "Done two.")
    for prompt in ("", "Another two."):
        # What comes later is written later: a root knows only blobs that stand before it.
        last = a_turn(store, prompt, "req-3", "Done another.") if prompt else second
        save(db, store, store.put(message((8, first), (8, last))))
        capture.receive_rows(found.source, read_rows(found, capture.revisions(found.source)))
        take(streams, capture)

    (records,) = streams.values()

    assert told(records)["prompts"] == ["One.", "Two.", "Another two."]
    assert [(n.native_type, n.data) for n in of(Native, records)] == [("turns-taken-back", {"turns": ["req-2"]})]
    assert [m.turn_id for m in of(Message, records) if m.role == "assistant"] == ["req-1", "req-2", "req-3"]


SAID = {"role": "user", "message": {"content": [{"type": "text", "text": wrapped("Look.")}]}}


def transcript(home: Path, below: str, *lines: object) -> None:
    path = home / ".cursor/projects/p/agent-transcripts" / below
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in (SAID, *lines)))


def test_a_transcript_below_another_is_of_a_sub_agent_of_that_session(tmp_path: Path) -> None:
    transcript(tmp_path, "s-1/s-1.jsonl")
    transcript(tmp_path, "s-1/subagents/s-2.jsonl")

    streams = {key.session_id: records for key, records in convert_home(tmp_path, only="cursor").items()}

    assert sorted(streams) == ["s-1", "s-2"]
    lineage = lineage_of(streams["s-2"])
    assert (lineage.relation, lineage.parent.session_id, lineage.evidence.kind) == ("spawned_by", "s-1", "native-path")
    assert lineage_of(streams["s-1"]).parent is None


def test_a_store_names_the_session_and_the_call_that_started_it(tmp_path: Path) -> None:
    db, _ = a_store(tmp_path, "acp-sessions/session-2")
    store = Store()
    root = store.put(message((8, a_turn(store, "Look.", "req-1", "Seen."))))
    info = {"parentAgentId": "session-1", "rootParentAgentId": "session-1", "toolCallId": "call_9"}
    save(db, store, root, subagentInfo=info)

    (records,) = convert_home(tmp_path, only="cursor").values()

    parent = lineage_of(records).parent
    assert (parent.session_id, parent.call_id) == ("session-1", "call_9")
    assert told(records)["prompts"] == ["Look."]


def test_of_two_transcripts_of_a_session_one_is_told(tmp_path: Path) -> None:
    transcript(tmp_path, "s-1/s-1.jsonl")
    transcript(tmp_path, "s-1.jsonl")

    (records,) = convert_home(tmp_path, only="cursor").values()

    assert told(records)["prompts"] == ["Look."]


def test_an_error_of_the_provider_is_kept(tmp_path: Path) -> None:
    transcript(tmp_path, "s-1.jsonl", {"type": "error", "error": "overloaded"})

    (records,) = convert_home(tmp_path, only="cursor").values()

    assert [(n.native_type, n.data) for n in of(Native, records)] == [("error", {"error": "overloaded"})]


def test_the_key_of_a_store_is_in_no_record(tmp_path: Path) -> None:
    db, _ = a_store(tmp_path)
    secret = b'{"blobEncryptionKey":"c2VjcmV0"'
    db.execute("INSERT INTO meta VALUES ('1', ?)", (secret.hex(),))
    db.execute("INSERT INTO meta VALUES ('0', ?)", (secret.hex(),))
    db.commit()

    (records,) = convert_home(tmp_path, only="cursor").values()

    written = b"".join(encode(r) for r in records)
    assert len(of(Native, records)) == 2
    assert secret.hex().encode() not in written and b"c2VjcmV0" not in written


def test_the_header_says_what_the_sidecar_says() -> None:
    (records,) = streams_of("cursor/S1", "cursor").values()
    header = records[0]
    assert isinstance(header, Session)

    assert header.workspace is not None and header.workspace.roots[0].path == story.CWD
    assert header.started_at == "2026-11-30T05:09:18.000Z"
    assert [c.mode for c in of(Config, records) if c.mode] == ["default"]


def test_files_that_lie_elsewhere_are_known_by_their_content(tmp_path: Path) -> None:
    (transcript,) = home_of("cursor/S1-transcript").rglob("*.jsonl")
    (store,) = home_of("cursor/S1").rglob("store.db")
    shutil.copyfile(transcript, tmp_path / "a.jsonl")
    shutil.copyfile(store, tmp_path / "a.db")

    agents = [k.agent for name in ("a.jsonl", "a.db") for k in convert_path(tmp_path / name)]

    assert agents == ["cursor", "cursor"]


def test_words_that_wrap_a_prompt_are_taken_off_and_kept_beside() -> None:
    line = json.dumps({"role": "user", "message": {"content": [{"type": "text", "text": wrapped("Do it.\n\nNow.")}]}})
    ((source, _),) = groups_of(RECORDER, home_of("cursor/S1-transcript"))[0]

    streams, _ = record(RECORDER, [(source, line.encode() + b"\n")])

    (records,) = streams.values()
    (prompt,) = of(Message, records)
    assert told(records)["prompts"] == ["Do it.\n\nNow."]
    assert prompt.meta["dev.asrd.timestamp"].startswith("Monday")


@pytest.mark.parametrize("case", CASES)
def test_the_same_however_it_comes(case: str) -> None:
    same_however_it_comes(RECORDER, home_of(case), case)
    goes_on_from_any_prefix(RECORDER, home_of(case), case)


def test_it_goes_on_whatever_is_wrong() -> None:
    goes_on_whatever_is_wrong(RECORDER, home_of("cursor/S1-transcript"), "cursor", 40)
    goes_on_past_a_line_that_is_too_long(RECORDER, home_of("cursor/S1-transcript"))


# ---------------------------------------------------------------- stores made by hand


def a_store(home: Path, below: str = "chats/f/session-1") -> tuple[sqlite3.Connection, Path]:
    folder = home / ".cursor" / below
    folder.mkdir(parents=True)
    db = sqlite3.connect(folder / "store.db")
    db.executescript(
        "CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB); CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)"
    )
    return db, folder / "store.db"


def followed(home: Path) -> tuple[Capture, Streams, list[Found]]:
    group = sources(home, "cursor")[0]
    streams: Streams = {}
    return Capture(RECORDER, group[0].source.group), streams, group


def save(db: sqlite3.Connection, store: Store, root: bytes, **more: object) -> None:
    """Writes what is new, and names the root."""
    db.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?)", store.blobs.items())
    told_of = json.dumps({"agentId": "session-1", "latestRootBlobId": root.hex(), **more})
    db.execute("INSERT OR REPLACE INTO meta VALUES ('0', ?)", (told_of.encode().hex(),))
    db.commit()


def a_turn(store: Store, prompt: str, request: str, answer: str) -> bytes:
    user = store.put(message((1, prompt), (2, f"msg-{request}"), (25, story.START)))
    step = store.put(message((1, [(1, answer)])))
    return store.put(message((1, [(1, user), (2, step), (3, request)])))
