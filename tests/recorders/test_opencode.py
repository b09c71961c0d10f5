"""OpenCode: what its captures give is what really happened, however the rows come and whatever is wrong with one."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, convert_path, take
from asrd.reading import read_rows
from asrd.recorders._observed import content_of
from asrd.recorders.base import StreamKey
from asrd.recorders.opencode import QUERIES, RECORDER, arrange, whole_file
from asrd.records import (
    Compaction,
    FileChange,
    Inference,
    Link,
    Loss,
    Message,
    Native,
    Plan,
    Session,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
    VcsAction,
)
from asrd.sources import Row, Source
from tests.figures import figures
from tests.golden import CAPTURES
from tests.recorders.arrivals import remembered
from tests.recorders.told import (
    captures,
    current,
    goes_on_where_it_was_cut,
    items,
    same_however_cut,
    sources,
    told,
    true,
    truth_of,
    words,
)

CASES = [*captures("opencode"), *captures("opencode-1.1")]

FIGURES = {
    "opencode/S1": (8, 91129, 1077),
    "opencode/S2": (7, 148512, 1550),
    "opencode/S3": (11, 184733, 2034),
    "opencode/S4": (4, 46805, 494),
    "opencode/S5": (2, 103002, 1040),
    "opencode/S7-acp": (8, 571129, 5877),
    "opencode-1.1/S1": (8, 91129, 1077),
    "opencode-1.1/S2": (7, 148512, 1550),
}


def streams_of(case: str) -> Streams:
    return convert_home(CAPTURES / case / "home", only="opencode")


# ---------------------------------------------------------------- what happened


def test_a_database_that_lies_elsewhere_is_known_by_its_content(tmp_path: Path) -> None:
    shutil.copyfile(CAPTURES / "opencode/S1/home/.local/share/opencode/opencode.db", tmp_path / "copy")

    given = convert_path(tmp_path / "copy")

    assert list(given) == list(streams_of("opencode/S1"))


@pytest.mark.parametrize("case", CASES)
def test_a_capture_counts_every_response_once(case: str) -> None:
    given = figures(streams_of(case))

    assert (given["requests"], given["input_total"], given["output"]) == FIGURES[case]


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
    assert [call for call, _ in given["sub-agents"]] == wanted["spawns"]
    assert given["children"] == given["sub-agents"]


def test_a_crash_leaves_a_call_without_a_result_and_a_response_without_figures() -> None:
    streams = streams_of("opencode/S5")

    (records,) = streams.values()
    unanswered = {r.call_id for r in records if isinstance(r, ToolCall)} - {
        r.call_id for r in records if isinstance(r, ToolResult)
    }

    assert unanswered == {"call_s5_1_0"}
    assert [r.usage is None for r in records if isinstance(r, Inference)] == [False, True, False]
    assert [r.phase for r in records if isinstance(r, Turn)] == ["start", "start", "end"]


def test_a_compaction_names_the_message_that_holds_its_summary() -> None:
    (records,) = streams_of("opencode/S4").values()

    (compaction,) = [r for r in records if isinstance(r, Compaction)]
    summary = [r for r in records if isinstance(r, Message) and r.message_id == compaction.message_id]

    assert compaction.trigger == "auto"
    assert [(m.origin, "MOCK SUMMARY" in words(m)) for m in summary] == [("summary", True)]
    assert [m.origin for m in records if isinstance(m, Message) and m.role == "user"] == [
        "prompt",
        "injected",
        "prompt",
    ]


def test_a_fork_is_a_copy_of_the_session_it_came_from() -> None:
    streams = streams_of("opencode/S3")
    first, fork = sorted(streams, key=lambda k: len(streams[k]) and k.session_id, reverse=True)

    header = streams[fork][0]
    copied = [r for r in streams[fork] if r.copy_of]

    assert isinstance(header, Session)
    assert header.lineage.relation == "forked_from"
    assert header.lineage.parent is not None
    assert header.lineage.parent.session_id == first.session_id
    assert {r.copy_of.session_id for r in copied if r.copy_of} == {first.session_id}
    assert [r.phase for r in streams[fork] if isinstance(r, Turn) and not r.copy_of] == ["start", "end"]
    assert len([r for r in copied if isinstance(r, Inference)]) == 7
    assert [r.target.session_id for r in streams[fork] if isinstance(r, Link)] == [first.session_id]
    theirs = {r.inference_id for r in streams[first] if isinstance(r, Inference)}
    assert {r.inference_id for r in copied if isinstance(r, Inference)} <= theirs


def test_the_session_declares_the_sum_of_its_responses() -> None:
    (records,) = streams_of("opencode/S1").values()

    (total,) = [r for r in records if isinstance(r, UsageTotal)]
    each = [r.usage for r in records if isinstance(r, Inference) and r.usage]

    assert total.usage == Usage(
        input=sum(u.input or 0 for u in each),
        output=sum(u.output or 0 for u in each),
        cache_read=sum(u.cache_read or 0 for u in each),
        cache_write=sum(u.cache_write or 0 for u in each),
        reasoning=sum(u.reasoning or 0 for u in each),
    )


def test_secrets_are_never_read() -> None:
    asked = " ".join(q.sql + (q.changed or "") for q in QUERIES).lower()

    assert not any(table in asked for table in ("account", "credential", "session_share"))
    assert arrange("session_share/ses_1.json") is None


# ---------------------------------------------------------------- both stores


def side_by_side(tmp_path: Path) -> Path:
    """A home with the database of 1.18 and the tree of 1.1."""
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / "opencode-1.1/S1/home", home)
    database = ".local/share/opencode/opencode.db"
    shutil.copyfile(CAPTURES / "opencode/S4/home" / database, home / database)
    return home


def migrate(home: Path) -> None:
    """Puts the sessions of the tree into the database too, as an import would: the same ids, the same content."""
    data = home / ".local/share/opencode"
    db = sqlite3.connect(data / "opencode.db")
    for path in sorted((data / "storage/session").rglob("*.json")):
        s = json.loads(path.read_text())
        time = s["time"]
        db.execute(
            "INSERT INTO session(id, project_id, slug, directory, title, version, time_created, time_updated)"
            " VALUES (?, (SELECT id FROM project LIMIT 1), ?, ?, ?, ?, ?, ?)",
            (s["id"], s["slug"], s["directory"], s["title"], s["version"], time["created"], time["updated"]),
        )
    for table in ("message", "part"):
        for path in sorted((data / "storage" / table).rglob("*.json")):
            one = json.loads(path.read_text())
            ident, session, message = one.pop("id"), one.pop("sessionID"), one.pop("messageID", None)
            names = ["id", "session_id", "time_created", "time_updated", "data", *(["message_id"] if message else [])]
            values = [ident, session, 1796015731621, 1796015731621, json.dumps(one), *([message] if message else [])]
            db.execute(f"INSERT INTO {table}({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", values)
    db.commit()
    db.close()


def test_both_stores_are_recorded_from_one_home(tmp_path: Path) -> None:
    home = side_by_side(tmp_path)

    given = figures(convert_home(home, only="opencode"))

    assert (given["requests"], given["input_total"], given["output"]) == (8 + 4, 91129 + 46805, 1077 + 494)


def test_a_session_that_stands_in_both_stores_counts_once(tmp_path: Path) -> None:
    home = side_by_side(tmp_path)
    migrate(home)

    streams = convert_home(home, only="opencode")

    given = figures(streams)
    assert (given["requests"], given["input_total"]) == (8 + 4, 91129 + 46805)
    prompts = [r for _, r in current(streams) if isinstance(r, Message) and r.origin == "prompt"]
    assert len(prompts) == 4


def test_a_session_that_is_taken_over_while_it_is_followed_counts_once(tmp_path: Path) -> None:
    home = side_by_side(tmp_path)
    (group,) = sources(home, "opencode")
    capture = Capture(RECORDER, "opencode")
    streams: Streams = {}
    for source, row in items(group):
        capture.receive_rows(source, [row])
    take(streams, capture)
    migrate(home)
    taken_over = sum(row.table in ("message", "part") for source, row in items(group) if source.kind == "tree")

    for source, row in items(group):
        capture.receive_rows(source, [row])
    take(streams, capture)

    assert figures(streams)["input_total"] == 91129 + 46805
    assert capture.accounts()[0]["message-of-the-other-store"] == taken_over


# ---------------------------------------------------------------- however it arrives


@pytest.mark.parametrize("case", CASES)
def test_rows_give_the_same_records_however_they_are_cut(case: str) -> None:
    same_however_cut(CAPTURES / case / "home", "opencode", "opencode")


@pytest.mark.parametrize("case", CASES)
def test_a_stream_goes_on_where_it_was_cut_when_the_state_is_lost(case: str) -> None:
    goes_on_where_it_was_cut(CAPTURES / case / "home", "opencode", "opencode")


# ---------------------------------------------------------------- followed while it is written


class Replay:
    """A database that is written again, state by state, as its own log of events says it was."""

    def __init__(self, case: str, home: Path) -> None:
        shutil.copytree(CAPTURES / case / "home", home)
        self.db = sqlite3.connect(home / ".local/share/opencode/opencode.db")
        self.db.execute("PRAGMA journal_mode=wal")
        self.db.execute("PRAGMA foreign_keys=off")
        self.events = self.db.execute("SELECT id, aggregate_id, seq, type, data FROM event ORDER BY rowid").fetchall()
        names = ("session", "message", "part")
        self.columns = {t: [c[1] for c in self.db.execute(f"PRAGMA table_info({t})")] for t in names}
        for table in ("part", "message", "session", "event"):
            self.db.execute(f"DELETE FROM {table}")
        self.db.commit()

    def write(self, event: tuple[Any, ...]) -> None:
        kind, data = event[3], json.loads(event[4])
        info: Any = data.get("info")
        if kind.startswith("session"):
            tokens: Any = info.get("tokens") or ZERO
            values: dict[str, Any] = {
                "id": info["id"], "project_id": info["projectID"], "parent_id": info.get("parentID"),
                "slug": info["slug"], "directory": info["directory"], "title": info["title"], "version": info["version"],
                "cost": info.get("cost", 0), "tokens_input": tokens["input"], "tokens_output": tokens["output"],
                "tokens_reasoning": tokens["reasoning"], "tokens_cache_read": tokens["cache"]["read"],
                "tokens_cache_write": tokens["cache"]["write"], "time_created": info["time"]["created"],
                "time_updated": info["time"]["updated"],
            }  # fmt: skip
            self.put("session", values)
        elif kind.startswith("message.part"):
            part = data["part"]
            session, message = part.pop("sessionID"), part.pop("messageID")
            self.put("part", {"id": part.pop("id"), "session_id": session, "message_id": message, **self.body(part)})
        else:
            session = info.pop("sessionID")
            self.put("message", {"id": info.pop("id"), "session_id": session, **self.body(info)})
        self.db.execute("INSERT INTO event(id, aggregate_id, seq, type, data) VALUES (?, ?, ?, ?, ?)", event)
        self.db.commit()

    def body(self, data: dict[str, Any]) -> dict[str, Any]:
        return {"data": json.dumps(data), "time_created": 1796013470458, "time_updated": 1796013470458}

    def put(self, table: str, values: dict[str, Any]) -> None:
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        new = ", ".join(f"{n} = excluded.{n}" for n in values if n not in ("id", "time_created"))
        self.db.execute(
            f"INSERT INTO {table}({names}) VALUES ({marks}) ON CONFLICT(id) DO UPDATE SET {new}", list(values.values())
        )


@pytest.mark.parametrize("case", captures("opencode"))
@pytest.mark.parametrize("every", [1, 7])
def test_a_session_followed_state_by_state_tells_the_same_as_one_read_at_its_end(
    case: str, every: int, tmp_path: Path
) -> None:
    replay = Replay(case, tmp_path / "home")
    ((found,),) = sources(tmp_path / "home", "opencode")
    capture = Capture(RECORDER, "opencode")
    streams: Streams = {}
    since: dict[str, Any] = {}

    for number, event in enumerate(replay.events):
        replay.write(event)
        if number % every == 0 or event is replay.events[-1]:
            capture.receive_rows(found.source, read_rows(found, capture.revisions(found.source), since))
            take(streams, capture)
            capture = Capture(RECORDER, "opencode", saved=capture.save())
    replay.db.close()

    tells_the_same(streams, streams_of(case))


@pytest.mark.parametrize("case", captures("opencode"))
@pytest.mark.parametrize("seed", range(4))
def test_a_state_that_is_lost_while_a_session_is_followed_repeats_nothing(case: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    replay = Replay(case, tmp_path / "home")
    ((found,),) = sources(tmp_path / "home", "opencode")
    capture = Capture(RECORDER, "opencode")
    streams: Streams = {}
    since: dict[str, Any] = {}
    lost = set(chance.sample(range(len(replay.events)), 3))

    for number, event in enumerate(replay.events):
        replay.write(event)
        if number in lost:
            capture = Capture(RECORDER, "opencode", recorded={key: remembered(rs) for key, rs in streams.items()})
            since = {}
        if number % 2 or event is replay.events[-1]:
            capture.receive_rows(found.source, read_rows(found, capture.revisions(found.source), since))
            take(streams, capture)
    replay.db.close()

    tells_the_same(streams, streams_of(case))


def tells_the_same(streams: Streams, end: Streams) -> None:
    """Streams that were followed tell what those do that were read at the end: nothing twice, nothing else."""
    assert told(streams) == told(end)
    assert figures(streams) == figures(end)
    for key, records in streams.items():
        assert [r.seq for r in records] == list(range(len(records)))
        for kind in (ToolCall, ToolResult):
            names = [r.call_id for r in records if isinstance(r, kind)]
            assert sorted(names) == sorted(r.call_id for r in end[key] if isinstance(r, kind))
        assert said(records) == said(end[key])
        assert turns(records) == turns(end[key])


def said(records: list[Any]) -> list[tuple[str, str | None, str]]:
    """What was said, in order, each once."""
    gone = {r.supersedes for r in records if r.supersedes}
    return [(r.role, r.origin, words(r)) for r in records if isinstance(r, Message) and r.id not in gone]


def turns(records: list[Any]) -> list[tuple[str, str, str | None]]:
    return [(r.turn_id, r.phase, r.status) for r in records if isinstance(r, Turn)]


def row(kind: str, ident: str, message: str, data: Any, role: str | None = None, at: int = 1000) -> Row:
    """A row of `message` or `part`."""
    values = {
        "kind": kind, "id": ident, "message_id": message, "session_id": "ses_1", "time_created": at,
        "data": data if isinstance(data, str) else json.dumps(data), "role": role,
    }  # fmt: skip
    return Row("message", ident, str(hash(values["data"])), values)


SESSION = Row(
    "session", "ses_1", "1", {"id": "ses_1", "directory": "/w", "title": "t", "version": "1.18.33", "time_created": 900}
)
USER = row("message", "msg_1", "msg_1", {"role": "user", "time": {"created": 1000}, "agent": "build"})
PROMPT = row("part", "prt_1", "msg_1", {"type": "text", "text": "Go."}, "user")
ZERO = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
SOME = {"total": 18, "input": 5, "output": 6, "reasoning": 3, "cache": {"read": 4, "write": 0}}


def answer(**more: Any) -> Row:
    data = {"role": "assistant", "time": {"created": 1001}, "parentID": "msg_1", "modelID": "m", "tokens": ZERO}
    return row("message", "msg_2", "msg_2", {**data, **more})


def tool(**state: Any) -> Row:
    part = {"type": "tool", "tool": "bash", "callID": "call_1", "state": state}
    return row("part", "prt_2", "msg_2", part, "assistant")


def live(*rows: Row) -> tuple[list[Any], Capture]:
    """The records of session ses_1 when these rows are seen one after the other, and the capture."""
    source = Source("opencode", "opencode", "opencode.db", "opencode.db", "table", "1")
    capture = Capture(RECORDER, "opencode")
    for one in rows:
        capture.receive_rows(source, [one])
    streams: Streams = {}
    take(streams, capture)
    return list(streams.get(StreamKey("opencode", "ses_1"), [])), capture


def test_a_message_is_said_once_when_its_text_has_an_end() -> None:
    growing = [
        row("part", "prt_3", "msg_2", {"type": "text", "text": text, "time": {"start": 1}}, "assistant")
        for text in ("", "Wo", "Work")
    ]
    done = row(
        "part", "prt_3", "msg_2", {"type": "text", "text": "Working.", "time": {"start": 1, "end": 2}}, "assistant"
    )

    records, capture = live(SESSION, USER, PROMPT, answer(), *growing, done)

    assert [words(r) for r in records if isinstance(r, Message) and r.role == "assistant"] == ["Working."]
    assert capture.accounts()[0]["text-still-being-written"] == 3


RAN_ROWS = (
    row("message", "msg_3", "msg_3", {"role": "user", "time": {"created": 2000}}),
    row(
        "part",
        "prt_5",
        "msg_3",
        {"type": "text", "text": "The following tool was executed by the user", "synthetic": True},
        "user",
    ),
    row(
        "message",
        "msg_4",
        "msg_4",
        {"role": "assistant", "time": {"created": 2001, "completed": 2002}, "parentID": "msg_3", "tokens": ZERO},
    ),
    row(
        "part",
        "prt_6",
        "msg_4",
        {
            "type": "tool",
            "tool": "bash",
            "callID": "call_9",
            "state": {"status": "completed", "input": {"command": "exit 31"}, "output": "", "metadata": {}},
        },
        "assistant",
    ),
)


def test_a_command_that_the_user_ran_is_no_request_and_of_no_turn() -> None:
    records, _ = live(SESSION, USER, PROMPT, answer(tokens=SOME, finish="stop"), *RAN_ROWS)

    assert [r.inference_id for r in records if isinstance(r, Inference)] == ["msg_2"]
    assert not [r for r in records if isinstance(r, ToolCall)]
    (result,) = [r for r in records if isinstance(r, ToolResult)]
    assert (result.call_id, result.linkage, result.turn_id) == ("command:call_9", "none", None)
    assert result.exec and result.exec.command == "exit 31"
    said_ = [(r.author, r.origin) for r in records if isinstance(r, Message)]
    assert said_[-2:] == [("harness", "injected"), ("human", "command")]


def test_a_command_that_was_stopped_with_its_turn_is_cancelled() -> None:
    output = "(no output)\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>"

    records, _ = live(
        SESSION,
        USER,
        PROMPT,
        answer(),
        tool(status="completed", input={"command": "sleep 30"}, output=output, metadata={"exit": None}),
    )

    (result,) = [r for r in records if isinstance(r, ToolResult)]
    assert (result.status, result.exec and result.exec.exit_code) == ("cancelled", None)


def test_a_response_whose_stream_broke_says_how_it_stopped_whenever_it_is_seen() -> None:
    records, _ = live(SESSION, USER, PROMPT, answer(), answer(finish="unknown"))

    first, last = [r for r in records if isinstance(r, Inference)]
    assert (first.stop_reason, last.stop_reason, last.supersedes) == (None, "unknown", first.id)


def test_a_list_that_is_seen_before_its_call_is_the_plan_once() -> None:
    todos = [{"content": "a", "status": "pending", "priority": "high"}]
    listed = Row("todo", "ses_1", "1", {"session_id": "ses_1", "items": json.dumps(todos)})
    state = {"status": "running", "input": {"todos": todos}}
    part = {"type": "tool", "tool": "todowrite", "callID": "call_1", "state": state}

    records, _ = live(SESSION, USER, PROMPT, answer(), listed, row("part", "prt_2", "msg_2", part, "assistant"))

    first, last = [r for r in records if isinstance(r, Plan)]
    assert (first.call_id, last.call_id, last.supersedes) == (None, "call_1", first.id)


def test_a_patch_that_adds_and_deletes_has_the_contents_that_it_shows() -> None:
    files = [
        {"filePath": "/w/n.txt", "type": "add", "patch": "--- a\n+++ b\n@@ -0,0 +1,2 @@\n+one\n+two\n"},
        {"filePath": "/w/o.txt", "type": "delete", "patch": "--- a\n+++ b\n@@ -1,1 +0,0 @@\n-gone\n"},
    ]
    state = {"status": "completed", "input": {}, "output": "", "metadata": {"files": files}}
    part = {"type": "tool", "tool": "apply_patch", "callID": "call_1", "state": state}

    records, _ = live(SESSION, USER, PROMPT, answer(), row("part", "prt_2", "msg_2", part, "assistant"))

    added, deleted = [r for r in records if isinstance(r, FileChange)]
    assert (added.change, added.before, added.after) == ("create", None, content_of("one\ntwo\n"))
    assert (deleted.change, deleted.before, deleted.after) == ("delete", content_of("gone\n"), None)


def undo(home: Path, keep: int) -> int:
    """Removes all messages but the last ones, as OpenCode does when a session goes on after an undo; how many."""
    db = sqlite3.connect(home / ".local/share/opencode/opencode.db")
    messages = db.execute("SELECT id, session_id FROM message ORDER BY id").fetchall()
    messages = messages[: len(messages) - keep]
    for n, (ident, session) in enumerate(messages):
        db.execute("DELETE FROM part WHERE message_id = ?", (ident,))
        db.execute("DELETE FROM message WHERE id = ?", (ident,))
        data = json.dumps({"sessionID": session, "messageID": ident})
        event = (f"evt_undone{n}", session, 100_000 + n, "message.removed.1", data)
        db.execute("INSERT INTO event(id, aggregate_id, seq, type, data) VALUES (?, ?, ?, ?, ?)", event)
    db.execute("UPDATE session SET time_updated = time_updated + 1")
    db.commit()
    db.close()
    return len(messages)


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_what_was_undone_happened(keep: int, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / "opencode/S1/home", home)
    undone = undo(home, keep)

    (before,) = streams_of("opencode/S1").values()
    (after,) = convert_home(home, only="opencode").values()

    kinds = (Message, Inference, ToolCall, ToolResult, FileChange, VcsAction)
    assert [type(r) for r in after if isinstance(r, kinds)] == [type(r) for r in before if isinstance(r, kinds)]
    assert told({StreamKey("opencode", "s"): after}) == told({StreamKey("opencode", "s"): before})
    removed = [r for r in after if isinstance(r, Native) and r.native_type == "message.removed.1"]
    assert len(removed) == undone


def test_what_is_undone_while_it_is_followed_is_recorded_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / "opencode/S1/home", home)
    (group,) = sources(home, "opencode")
    capture = Capture(RECORDER, "opencode")
    streams: Streams = {}
    for source, row in items(group):
        capture.receive_rows(source, [row])
    take(streams, capture)
    undo(home, 2)

    for source, row in items(group):
        capture.receive_rows(source, [row])
    take(streams, capture)

    assert figures(streams) == figures(streams_of("opencode/S1"))
    (records,) = streams.values()
    natives = {r.native_type for r in records if isinstance(r, Native)}
    assert natives - {"session", "patch", "message.summary"} == {"message.removed.1"}


def test_a_text_whose_message_broke_off_is_said_as_far_as_it_came() -> None:
    part = row("part", "prt_3", "msg_2", {"type": "text", "text": "Work", "time": {"start": 1}}, "assistant")
    broken = answer(
        time={"created": 1001, "completed": 1002}, error={"name": "MessageAbortedError", "data": {"message": "aborted"}}
    )

    records, _ = live(SESSION, USER, PROMPT, answer(), part, broken, row("message", "msg_3", "msg_3", {"role": "user"}))

    assert [words(r) for r in records if isinstance(r, Message) and r.role == "assistant"] == ["Work"]
    (end,) = [r for r in records if isinstance(r, Turn) and r.phase == "end"]
    assert end.status == "interrupted"
    assert end.error is not None
    assert end.error.message == "aborted"


def test_a_running_call_is_said_once_and_its_result_when_it_is_done() -> None:
    given = {"command": "make"}
    records, _ = live(
        SESSION,
        USER,
        PROMPT,
        answer(),
        tool(status="pending", input={}),
        tool(status="running", input=given, time={"start": 5}),
        tool(status="running", input=given, metadata={"output": "half"}, time={"start": 5}),
        tool(status="completed", input=given, output="whole", metadata={"exit": 2}, time={"start": 5, "end": 9}),
        tool(
            status="completed",
            input=given,
            output="whole",
            metadata={"exit": 2},
            time={"start": 5, "end": 9, "compacted": 99},
        ),
    )

    assert [r.input for r in records if isinstance(r, ToolCall)] == [given]
    (result,) = [r for r in records if isinstance(r, ToolResult)]
    assert result.exec is not None
    assert (words(result), result.exec.exit_code, result.exec.duration_ms) == ("whole", 2, 4)


def test_figures_that_come_later_supersede_the_response_without_them() -> None:
    done = answer(time={"created": 1001, "completed": 1002}, tokens=SOME, finish="stop")

    records, _ = live(SESSION, USER, PROMPT, answer(), done)

    first, second = [r for r in records if isinstance(r, Inference)]
    assert (first.usage, second.supersedes) == (None, first.id)
    assert second.usage == Usage(input=5, output=9, cache_read=4, cache_write=0, reasoning=3, total=18)


def test_reasoning_is_added_only_where_it_stands_beside_the_output() -> None:
    inside = {**SOME, "total": 15}

    records, _ = live(SESSION, USER, PROMPT, answer(time={"created": 1, "completed": 2}, tokens=inside))

    (inference,) = [r for r in records if isinstance(r, Inference)]
    assert inference.usage is not None
    assert inference.usage.output == 6


def test_figures_of_a_finished_step_are_kept_when_its_message_never_ends() -> None:
    step = row("part", "prt_9", "msg_2", {"type": "step-finish", "reason": "stop", "tokens": SOME}, "assistant")

    records, _ = live(SESSION, USER, PROMPT, answer(), step)

    assert [r.usage.input if r.usage else None for r in records if isinstance(r, Inference)] == [None, 5]


def test_a_second_step_of_a_message_is_a_request_of_its_own() -> None:
    other = {**SOME, "input": 50, "total": 63}
    steps = [
        row("part", f"prt_{n}", "msg_2", {"type": "step-finish", "reason": "tool-calls", "tokens": tokens}, "assistant")
        for n, tokens in ((8, other), (9, SOME))
    ]

    records, _ = live(SESSION, USER, PROMPT, answer(time={"created": 1, "completed": 2}, tokens=SOME), *steps)

    given = figures({StreamKey("opencode", "ses_1"): records})
    assert (given["requests"], given["input_total"]) == (2, 5 + 4 + 50 + 4)


@pytest.mark.parametrize(
    ("error", "status", "by"),
    [
        ("The user rejected permission to use this specific tool call.", "denied", None),
        ("The user has specified a rule which prevents you from using this specific tool call. …", "denied", "policy"),
        ("Tool execution aborted", "cancelled", None),
        ("ENOENT: no such file", "failed", None),
    ],
)
def test_an_error_says_whether_the_call_was_denied(error: str, status: str, by: str | None) -> None:
    records, _ = live(SESSION, USER, PROMPT, answer(), tool(status="error", input={"command": "x"}, error=error))

    (result,) = [r for r in records if isinstance(r, ToolResult)]
    assert (result.status, words(result)) == (status, error)
    assert [r.by for r in records if r.__struct_config__.tag == "approval"] == ([by] if status == "denied" else [])


def test_a_prompt_with_a_file_is_one_prompt() -> None:
    file = {"type": "file", "mime": "text/plain", "filename": "a.txt", "url": "file:///w/a.txt"}
    note = {"type": "text", "text": "Called the Read tool", "synthetic": True}

    records, _ = live(
        SESSION,
        USER,
        PROMPT,
        row("part", "prt_1a", "msg_1", note, "user"),
        row("part", "prt_1b", "msg_1", file, "user"),
    )

    prompts = [r for r in records if isinstance(r, Message) and r.origin == "prompt"]
    assert [len(m.content) for m in prompts] == [1, 2]
    assert prompts[1].supersedes == prompts[0].id
    assert len([r for r in records if isinstance(r, Turn)]) == 1
    assert [r.origin for r in records if isinstance(r, Message)] == ["prompt", "injected", "prompt"]


def test_what_is_taken_back_is_told() -> None:
    values = {**SESSION.values, "revert": '{"messageID":"msg_1"}', "title": "t2"}
    removed = {"id": "evt_1", "aggregate_id": "ses_1", "type": "message.removed.1", "data": '{"messageID":"msg_1"}'}

    records, _ = live(SESSION, USER, PROMPT, Row("session", "ses_1", "2", values), Row("event", "evt_1", "1", removed))

    assert [(r.native_type, r.data) for r in records if isinstance(r, Native)] == [
        ("session", {"revert": {"messageID": "msg_1"}}),
        ("message.removed.1", {"messageID": "msg_1"}),
    ]
    assert [r.title for r in records if r.__struct_config__.tag == "config" and r.title] == ["t2"]


def test_each_call_that_uses_a_sub_agent_is_linked_to_it_once() -> None:
    child = Row("session", "ses_2", "1", {**SESSION.values, "id": "ses_2", "parent_id": "ses_1"})
    calls = [
        row(
            "part",
            f"prt_{n}",
            "msg_2",
            {
                "type": "tool",
                "tool": "task",
                "callID": f"c{n}",
                "state": {"status": status, "input": {"prompt": "x"}, "metadata": {"sessionId": "ses_2"}, "time": {}},
            },
            "assistant",
        )
        for n in (4, 5)
        for status in ("running", "completed")
    ]

    records, _ = live(SESSION, child, USER, PROMPT, answer(), *calls)

    assert [(r.call_id, r.supersedes) for r in records if isinstance(r, Link)] == [("c4", None), ("c5", None)]


def test_a_plan_is_told_once_for_its_call_and_its_table() -> None:
    todos = [{"content": "one", "status": "completed", "priority": "high"}, {"content": "two", "status": "pending"}]
    call = {"status": "completed", "input": {"todos": todos}, "output": "", "time": {}}
    part = {"type": "tool", "tool": "todowrite", "callID": "c", "state": call}
    table = Row("todo", "ses_1", "1", {"session_id": "ses_1", "items": json.dumps(todos)})
    later = Row("todo", "ses_1", "2", {"session_id": "ses_1", "items": json.dumps(todos[:1])})

    records, _ = live(SESSION, USER, PROMPT, answer(), row("part", "prt_5", "msg_2", part, "assistant"), table, later)

    plans = [r for r in records if isinstance(r, Plan)]
    assert [[(i.text, i.status) for i in p.items] for p in plans] == [
        [("one", "completed"), ("two", "pending")],
        [("one", "completed")],
    ]
    assert [p.call_id for p in plans] == ["c", None]


# ---------------------------------------------------------------- contents of files


def read(text: str) -> Row:
    count = text.count("\n") + 1
    display = {"text": text, "lineStart": 1, "lineEnd": count, "totalLines": count}
    state = {
        "status": "completed", "input": {"filePath": "/w/a.py"}, "output": "", "time": {},
        "metadata": {"truncated": False, "display": display},
    }  # fmt: skip
    return row("part", "prt_3", "msg_2", {"type": "tool", "tool": "read", "callID": "c3", "state": state}, "assistant")


def edit(old: str, new: str, diff: str) -> Row:
    state = {
        "status": "completed", "output": "", "time": {}, "metadata": {"diff": diff},
        "input": {"filePath": "/w/a.py", "oldString": old, "newString": new},
    }  # fmt: skip
    return row("part", "prt_4", "msg_2", {"type": "tool", "tool": "edit", "callID": "c4", "state": state}, "assistant")


LONG = "\n".join(f"line {n}" for n in range(40))


@pytest.mark.parametrize(
    ("text", "diff", "certain"),
    [
        ("a\nb", "--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n", True),
        (
            "a\nb",
            "--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n",
            True,
        ),
        ("a\nb", "--- a\n+++ b\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n d\n", False),
        (LONG + "\nb", "--- a\n+++ b\n@@ -37,5 +37,5 @@\n line 36\n line 37\n line 38\n line 39\n-b\n+c\n", False),
    ],
)
def test_contents_are_told_only_where_a_difference_leaves_no_doubt(text: str, diff: str, certain: bool) -> None:
    records, _ = live(SESSION, USER, PROMPT, answer(), read(text), edit("b", "c", diff))

    (change,) = [r for r in records if r.__struct_config__.tag == "file_change"]
    assert (change.before is not None, change.after is not None) == (certain, certain)
    assert change.diff == diff


def test_a_difference_of_a_whole_file_gives_both_contents() -> None:
    assert whole_file("@@ -1,2 +1,2 @@\n a\n-b\n+c\n") == ("a\nb\n", "a\nc\n")
    assert whole_file("@@ -1,2 +1,2 @@\n-b\n+c\n 1\n 2\n 3\n") is None
    assert whole_file("@@ -5,2 +5,2 @@\n a\n-b\n+c\n") is None


# ---------------------------------------------------------------- whatever is wrong


def damaged(how: str) -> Row:
    match how:
        case "type renamed":
            return row("part", "prt_20", "msg_2", {"type": "toool", "tool": "bash"}, "assistant")
        case "field of another type":
            return row("part", "prt_20", "msg_2", {"type": "tool", "tool": "bash", "state": "done"}, "assistant")
        case "cut":
            return row("part", "prt_20", "msg_2", '{"type":"tool","tool":"ba', "assistant")
        case "no text":
            return Row(
                "message", "prt_20", "9", {"kind": "part", "id": "prt_20", "message_id": "msg_2", "session_id": "ses_1"}
            )
        case "not UTF-8, mended":
            return row("part", "prt_20", "msg_2", '{"type":"text","text":"\ufffd","time":{"end":2}}', "assistant")
        case _:
            data = {"type": "text", "text": "x" * 5_000_000, "time": {"end": 2}}
            return row("part", "prt_20", "msg_2", data, "assistant")


@pytest.mark.parametrize(
    "how", ["type renamed", "field of another type", "cut", "no text", "not UTF-8, mended", "huge"]
)
def test_a_damaged_row_is_accounted_for_and_the_next_is_recorded(how: str) -> None:
    before, _ = live(SESSION, USER, PROMPT, answer())

    records, _ = live(SESSION, USER, PROMPT, answer(), damaged(how), tool(status="running", input={"command": "ls"}))

    new = records[len(before) :]
    assert isinstance(new[0], (Native, Loss, Message))
    assert [r.name for r in new if isinstance(r, ToolCall)] == ["bash"]


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_capture_is_recorded_to_the_end(seed: int) -> None:
    chance = random.Random(seed)
    (group,) = sources(CAPTURES / "opencode-1.1/S1/home", "opencode")
    rows = items(group)
    capture = Capture(RECORDER, "opencode")
    for source, one in rows:
        data = one.data
        match chance.randrange(6):
            case 0:
                data = data[: chance.randrange(len(data))]
            case 1:
                data = data.replace(b'"type"', b'"tipe"')
            case 2:
                data = data.replace(b'"id"', b'"id": 7, "x"', 1)
            case 3:
                data = data[:20] + b"\xff\xfe" + data[20:]
            case _:
                pass
        skips = sum(capture.accounts()[0].values())
        capture.receive_rows(source, [Row(one.table, one.key, one.rev, {}, data)])
        said = [r for c in capture.commands() for r in c.records]
        assert said or sum(capture.accounts()[0].values()) > skips

    assert sum(n for k, n in capture.accounts()[1].items() if k.startswith("mistake")) == 0
