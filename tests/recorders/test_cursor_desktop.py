"""Cursor Desktop: the story from rows of bubbles; what is rewritten is told once; one session in two stores counts once."""

from __future__ import annotations

import importlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from asrd import query, tables
from asrd.capture import Capture
from asrd.convert import Streams, convert_home, convert_path, take
from asrd.places import Found
from asrd.reading import read_rows
from asrd.recorders.base import StreamKey
from asrd.recorders.cursor_desktop import GLOBAL, RECORDER
from asrd.records import Capture as CaptureState
from asrd.records import (
    Compaction,
    Config,
    FileChange,
    Inference,
    Link,
    Loss,
    Message,
    Native,
    Plan,
    Record,
    Session,
    ToolCall,
    ToolResult,
    Turn,
    encode,
)
from tests.captures import story
from tests.figures import figures
from tests.homes import recorded as recorded_home
from tests.recorders.arrivals import lineage_of, of, remembered
from tests.recorders.storied import home_of, streams_of, told, truth_of, words
from tests.recorders.told import goes_on, items, lines, pieces, record, sources

made = importlib.import_module("tests.captures.cursor-desktop.make")
CASES = ["cursor-desktop/S1", "cursor-desktop/S2"]
COUNTED = ("requests", "input_total", "output")
PARENT, CHILD, OLD = (StreamKey("cursor-desktop", ident) for ident in (made.PARENT, made.CHILD, made.OLD))


def test_the_bubbles_tell_the_story_once() -> None:
    (records,) = streams_of("cursor-desktop/S1", "cursor-desktop").values()
    truth = truth_of("cursor-desktop/S1")

    given = told(records)

    assert given.pop("answered") == truth["calls"]
    assert {k: v for k, v in given.items() if k not in COUNTED} == {k: truth[k] for k in given if k not in COUNTED}
    assert {k: given[k] for k in COUNTED} == truth["expected_usage"]
    assert {i.model for i in of(Inference, records)} == {truth["model"]}
    assert [(t.phase, t.status) for t in of(Turn, records)] == [("start", None), ("start", None), ("end", "completed")]


def test_the_header_says_where_a_conversation_works_and_what_it_is_called() -> None:
    (records,) = streams_of("cursor-desktop/S1", "cursor-desktop").values()
    header = records[0]
    assert isinstance(header, Session)

    assert header.workspace is not None and header.workspace.roots[0].path == story.CWD
    assert (header.started_at, header.title, header.scope) == ("2026-11-30T05:09:18.000Z", "Fix add", "primary")
    assert [(c.mode, c.model) for c in of(Config, records)] == [("agent", None), (None, made.MODEL)]


def test_no_figures_are_not_figures_of_zero() -> None:
    streams = streams_of("cursor-desktop/S2", "cursor-desktop")

    usages = [i.usage for records in streams.values() for i in of(Inference, records)]

    assert [u for u in usages if u is not None and 0 in (u.input, u.output)] == []
    assert sum(u is None for u in usages) == 2  # of the two turns whose last bubble has figures, until that is read
    assert figures(streams) == truth_of("cursor-desktop/S2")["expected_usage"]
    facets = {c.facet for c in of(CaptureState, streams[PARENT])}
    assert {"usage", "usage.cacheRead", "inference", "tool_result.at"} <= facets


def test_what_a_call_came_to_is_told_by_all_that_says_so() -> None:
    streams, truth = streams_of("cursor-desktop/S2", "cursor-desktop"), truth_of("cursor-desktop/S2")
    records = streams[PARENT]

    results = {r.call_id: r for r in of(ToolResult, records)}

    assert {i: results[i].status for i in truth["results"]} == truth["results"]
    assert set(truth["running"]) == {c.call_id for c in of(ToolCall, records)} - set(results)
    assert words(results["tool_gone"]) == "No such file: x.py"
    assert results["tool_rm"].exec is None
    assert told(records)["edits"] == truth["edits"]
    assert [c.change for c in of(FileChange, records)] == ["create"]


def test_a_sub_agent_has_a_conversation_of_its_own_that_its_parent_names() -> None:
    streams = streams_of("cursor-desktop/S2", "cursor-desktop")
    (link,) = [x for x in of(Link, streams[PARENT]) if x.relation == "spawned"]

    parent = lineage_of(streams[CHILD]).parent

    assert (parent.session_id, parent.call_id) == (made.PARENT, "tool_task")
    assert (link.target.session_id, link.call_id) == (made.CHILD, "tool_task")
    assert [(m.author, m.origin) for m in of(Message, streams[CHILD])][0] == ("agent", "agent")


def test_a_compaction_a_plan_and_an_old_conversation_are_told() -> None:
    streams = streams_of("cursor-desktop/S2", "cursor-desktop")

    assert len(of(Compaction, streams[PARENT])) == 1
    assert [(i.text, i.status) for i in of(Plan, streams[PARENT])[0].items] == [
        ("Look", "completed"),
        ("Tidy", "in_progress"),
    ]
    assert told(streams[OLD])["texts"] == ["A function."]
    assert sorted(streams) == [PARENT, CHILD, OLD]  # no draft, and no row without a value


def test_what_is_not_read_is_counted_by_its_kind() -> None:
    group = sources(home_of("cursor-desktop/S2"), "cursor-desktop")[0]
    capture = Capture(RECORDER, group[0].source.group)

    for one in group:
        capture.receive_rows(one.source, read_rows(one))

    skips = capture.accounts()[0]
    assert {k: n for k, n in skips.items() if k.startswith("unread:")} == {
        "unread:aiService.prompts": 1,
        "unread:agentKv": 1,
        "unread:checkpointId": 2,
    }
    assert (skips["draft"], skips["empty-value"]) == (1, 2)


def test_keys_and_tokens_are_never_read() -> None:
    for case in CASES:
        group = sources(home_of(case), "cursor-desktop")[0]
        for one in group:
            for row in read_rows(one):
                assert made.SECRET not in repr(row), row.key
        streams = convert_home(home_of(case), only="cursor-desktop")
        assert made.SECRET.encode() not in b"".join(encode(r) for records in streams.values() for r in records)


@pytest.mark.parametrize("case", CASES)
def test_the_same_in_any_pieces_with_restarts_between_and_again_from_the_start(case: str) -> None:
    for group in sources(home_of(case), "cursor-desktop"):
        name, all_items = group[0].source.group, items(group)
        whole = record("cursor-desktop", name, [all_items])
        for seed in range(6):
            cut = record("cursor-desktop", name, pieces(all_items, seed), restart=True)
            assert lines(cut) == lines(whole)
            again = goes_on("cursor-desktop", name, all_items, whole, seed)
            assert lines(again) == lines(whole)


def test_a_database_that_lies_elsewhere_is_known_by_its_content(tmp_path: Path) -> None:
    (database,) = home_of("cursor-desktop/S1").rglob("globalStorage/state.vscdb")
    shutil.copyfile(database, tmp_path / "copy.db")

    (key,) = convert_path(tmp_path / "copy.db")

    assert key == StreamKey("cursor-desktop", made.IDENT)


# ---------------------------------------------------------------- while it is written


class Followed:
    """A database that is written while it is followed, with a restart behind each look."""

    def __init__(self, home: Path) -> None:
        self.home = home
        path = home / ".config/Cursor/User/globalStorage/state.vscdb"
        path.parent.mkdir(parents=True)
        self.path = path
        self.db = sqlite3.connect(path)
        self.db.executescript(
            """PRAGMA journal_mode = WAL;
            CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
            CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);"""
        )
        self.marks: dict[str, Any] = {}
        self.streams: Streams = {}
        self.read: list[str] = []
        self.found: Found | None = None
        self.capture: Capture | None = None

    def put(self, key: str, value: Any) -> None:
        self.db.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, json.dumps(value)))
        self.db.commit()

    def bubble(self, ident: str, kind: int, text: str = "", **more: Any) -> None:
        told_of = {"type": kind, "bubbleId": ident, "text": text, "createdAt": "2026-11-30T05:09:00.000Z", **more}
        self.put(f"bubbleId:c-1:{ident}", told_of)

    def composer(self, *bubbles: str, **more: Any) -> None:
        headers = [{"bubbleId": b, "type": 2} for b in bubbles]
        self.put("composerData:c-1", {"composerId": "c-1", "fullConversationHeadersOnly": headers, **more})

    def look(self) -> list[Record]:
        """What the stream holds after another look."""
        if self.found is None:
            ((self.found, *_),) = sources(self.home, "cursor-desktop")
            self.capture = Capture(RECORDER, self.found.source.group)
        assert self.capture is not None
        self.capture = Capture(RECORDER, self.found.source.group, saved=self.capture.save())
        rows = list(read_rows(self.found, self.capture.revisions(self.found.source), self.marks))
        self.read = [f"{row.table}/{row.key}" for row in rows]
        self.capture.receive_rows(self.found.source, rows)
        take(self.streams, self.capture)
        return self.streams[StreamKey("cursor-desktop", "c-1")]

    def standing(self, kind: type[Any]) -> list[Any]:
        (records,) = self.streams.values()
        gone = {r.supersedes for r in records if r.supersedes}
        return [r for r in of(kind, records) if r.id not in gone]


def shell(status: str, result: Any = None) -> dict[str, Any]:
    return {
        "capabilityType": 15,
        "toolFormerData": {
            "name": "run_terminal_command_v2",
            "toolCallId": "tool_1",
            "status": status,
            "rawArgs": '{"command":"make"}',
            "result": json.dumps(result) if result else None,
        },
    }


def grown(home: Path) -> Followed:
    """A conversation that was looked at at every step of its way."""
    one = Followed(home)
    one.bubble("u", 1, "Build it.")
    one.composer("u", status="generating", generatingBubbleIds=["a"])
    one.look()
    for words_so_far in ("I", "I build", "I build it."):
        one.bubble("a", 2, words_so_far)
        one.look()
    one.bubble("t", 2, **shell("loading"))
    one.look()
    one.bubble("t", 2, **shell("completed", {"output": "ok\n", "rejected": False, "notInterrupted": True}))
    one.bubble("z", 2, "Built.", tokenCount={"inputTokens": 900, "outputTokens": 40})
    one.composer("u", "a", "t", "z", status="completed", generatingBubbleIds=[])
    one.look()
    one.bubble(
        "t", 2, **shell("completed", {"output": "ok\n", "rejected": False, "notInterrupted": True}), checkpointId="x"
    )
    one.look()
    return one


def test_bubbles_that_grow_are_told_once_and_superseded(tmp_path: Path) -> None:
    one = grown(tmp_path)
    records = one.look()

    assert [words(m) for m in one.standing(Message)] == ["Build it.", "I build it.", "Built."]
    assert len(of(ToolCall, records)) == 1
    assert [(r.status, r.exec.exit_code, r.exec.stdout) for r in of(ToolResult, records)] == [("completed", 0, "ok\n")]
    assert [(i.usage.input, i.usage.output) for i in one.standing(Inference)] == [(900, 40)]
    assert [(t.phase, t.status) for t in one.standing(Turn)] == [("start", None), ("end", "completed")]


def test_a_state_that_is_lost_after_rows_were_written_again_doubles_nothing(tmp_path: Path) -> None:
    one = grown(tmp_path)
    assert one.found is not None
    streams = {key: list(records) for key, records in one.streams.items()}

    capture = Capture(RECORDER, one.found.source.group, recorded={k: remembered(r) for k, r in streams.items()})
    capture.receive_rows(one.found.source, read_rows(one.found))

    assert [record for command in capture.commands() for record in command.records] == []


def test_a_look_reads_only_what_was_written_since_the_last(tmp_path: Path) -> None:
    one = Followed(tmp_path)
    for number in range(400):
        one.bubble(f"b{number}", 2 if number % 2 else 1, f"{number} " + "words " * 200)
    one.composer(*(f"b{n}" for n in range(400)))
    one.look()
    cost = tables.counts.bytes
    one.bubble("new", 1, "One more.")

    one.look()

    assert one.read == ["bubble/bubbleId:c-1:new"]
    # The log, which holds all that was written, and a few pages; the 600 kB of bubbles are not read again.
    assert tables.counts.bytes - cost < (one.path.with_name("state.vscdb-wal")).stat().st_size + 120_000
    assert len(of(Turn, one.streams[StreamKey("cursor-desktop", "c-1")])) == 201


def test_a_row_that_takes_the_row_id_of_the_last_one_is_seen(tmp_path: Path) -> None:
    one = Followed(tmp_path)
    one.composer("u")
    one.bubble("u", 1, "First words.")
    before = one.db.execute("SELECT max(rowid) FROM cursorDiskKV").fetchone()
    one.look()
    one.db.execute("DELETE FROM cursorDiskKV WHERE key = 'bubbleId:c-1:u'")
    one.bubble("u", 1, "Other words.")

    one.look()

    assert one.db.execute("SELECT max(rowid) FROM cursorDiskKV").fetchone() == before
    assert [words(m) for m in one.standing(Message)] == ["Other words."]
    assert len(one.standing(Turn)) == 1


def test_the_order_is_that_of_the_conversation_not_of_the_writing(tmp_path: Path) -> None:
    one = Followed(tmp_path)
    for ident, kind in (("a2", 2), ("u2", 1), ("a1", 2), ("u1", 1), ("orphan", 2)):
        one.bubble(ident, kind, ident)
    one.composer("u1", "a1", "u2", "a2")

    records = one.look()

    assert [words(m) for m in of(Message, records)] == ["u1", "a1", "u2", "a2", "orphan"]
    assert [m.turn_id for m in of(Message, records)] == ["u1", "u1", "u2", "u2", "u2"]


def test_more_bubbles_of_a_turn_with_figures_are_more_responses(tmp_path: Path) -> None:
    one = Followed(tmp_path)
    one.bubble("u", 1, "Go.")
    one.bubble("a", 2, "One.", tokenCount={"inputTokens": 100, "outputTokens": 10})
    one.bubble("b", 2, "Two.", tokenCount={"inputTokens": 200, "outputTokens": 20})
    one.composer("u", "a", "b")
    one.look()
    one.bubble("b", 2, "Two.", tokenCount={"inputTokens": 200, "outputTokens": 25})
    one.bubble("a", 2, "One.", tokenCount={"inputTokens": 110, "outputTokens": 10})

    one.look()

    assert sorted((i.usage.input, i.usage.output) for i in one.standing(Inference)) == [(110, 10), (200, 25)]
    assert len({i.inference_id for i in one.standing(Inference)}) == 2


def test_a_row_that_is_no_json_is_a_loss_and_the_others_are_told(tmp_path: Path) -> None:
    one = Followed(tmp_path)
    one.bubble("u", 1, "Go.")
    one.composer("u", "x")
    one.db.execute("INSERT INTO cursorDiskKV VALUES ('bubbleId:c-1:x', 'no json')")
    one.db.execute("INSERT INTO cursorDiskKV VALUES ('bubbleId:c-1:y', ?)", (b'{"type":7,"text":"odd"}',))
    one.db.commit()

    records = one.look()

    assert [loss.reason for loss in of(Loss, records)] == ["malformed"]
    assert [(n.native_type, n.data) for n in of(Native, records)] == [("bubble", {"type": 7, "text": "odd"})]
    assert told(records)["prompts"] == ["Go."]


def test_the_list_of_conversations_is_read_again_only_when_it_changed(tmp_path: Path) -> None:
    one = Followed(tmp_path)
    heads = {"allComposers": [{"composerId": "c-1", "name": "A name"}, {"composerId": "c-2", "name": "No words yet"}]}
    one.db.execute("INSERT INTO ItemTable VALUES ('composer.composerHeaders', ?)", (json.dumps(heads),))
    one.bubble("u", 1, "Go.")
    one.composer("u")
    one.look()
    first = one.read
    one.bubble("v", 1, "On.")
    one.look()
    second = one.read
    heads["allComposers"][0]["name"] = "Another name"
    one.db.execute("INSERT INTO ItemTable VALUES ('composer.composerHeaders', ?)", (json.dumps(heads),))
    one.db.commit()

    records = one.look()

    assert [r for r in first if r.startswith("head/")] == ["head/c-1", "head/c-2"]
    assert (second, one.read) == (["bubble/bubbleId:c-1:v"], ["head/c-1"])
    assert [c.title for c in of(Config, records)] == ["Another name"]


def test_the_table_of_conversations_says_what_the_list_said(tmp_path: Path) -> None:
    one = Followed(tmp_path)
    one.db.execute(
        "CREATE TABLE composerHeaders (composerId TEXT PRIMARY KEY, workspaceId TEXT, createdAt INTEGER, "
        "lastUpdatedAt INTEGER, value TEXT) WITHOUT ROWID"
    )
    head = {"composerId": "c-1", "name": "A name", "subagentInfo": {"parentComposerId": "c-0", "toolCallId": "tool_1"}}
    one.db.execute("INSERT INTO composerHeaders VALUES ('c-1', 'w', 1, 2, ?)", (json.dumps(head),))
    one.bubble("u", 1, "Go.")
    one.composer("u")

    records = one.look()

    header = records[0]
    assert isinstance(header, Session) and header.title == "A name"
    assert (lineage_of(records).parent.session_id, lineage_of(records).parent.call_id) == ("c-0", "tool_1")


def test_reading_leaves_no_trace_in_the_folder(tmp_path: Path) -> None:
    one = Followed(tmp_path)
    one.bubble("u", 1, "Go.")
    one.composer("u")
    one.db.close()
    before = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in one.path.parent.iterdir()}

    one.look()

    assert {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in one.path.parent.iterdir()} == before


def test_a_conversation_without_a_folder_of_its_own_works_in_that_of_its_workspace(tmp_path: Path) -> None:
    shutil.copytree(home_of("cursor-desktop/S1"), tmp_path, dirs_exist_ok=True)
    (database,) = tmp_path.rglob("globalStorage/state.vscdb")
    db = sqlite3.connect(database)
    db.execute("DELETE FROM ItemTable WHERE key = 'composer.composerHeaders'")
    db.commit()
    db.close()

    (records,) = convert_home(tmp_path, only="cursor-desktop").values()

    header = records[0]
    assert isinstance(header, Session) and header.workspace is not None
    assert header.workspace.roots[0].path == story.CWD


def test_every_query_of_the_database_names_only_what_is_read() -> None:
    for one in GLOBAL:
        for sql in (one.sql, one.changed or ""):
            assert "ncryptionKey" not in sql and "SELECT *" not in sql
            assert "ItemTable" not in sql or "key = 'composer.composerHeaders'" in sql


# ---------------------------------------------------------------- one session in two stores


@pytest.mark.parametrize("other", ["cursor/S1", "cursor/S1-transcript"])
def test_a_session_that_two_stores_tell_counts_once_with_its_figures(other: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for case in ("cursor-desktop/S1", other):
        shutil.copytree(home_of(case), home, dirs_exist_ok=True)
    stated = truth_of("cursor-desktop/S1")["expected_usage"]

    with recorded_home(home, tmp_path / "store") as one:
        total = one.usage()
        sessions = sorted(key.agent for key in one.sessions())

        chosen = [query.resolve(one.rows, ref).row.agent for ref in (made.IDENT, f"cursor:{made.IDENT}")]

    assert sessions == ["cursor", "cursor-desktop"]
    assert chosen == ["cursor-desktop", "cursor"]
    assert {k: total[k] for k in ("requests", "inputTotal", "output")} == {
        "requests": stated["requests"],
        "inputTotal": stated["input_total"],
        "output": stated["output"],
    }
    assert total["unmeasuredRequests"] == 0
