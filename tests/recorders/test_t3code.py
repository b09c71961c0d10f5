"""T3 Code: what an orchestrator saw of the sessions it ran, tied to them by their native ids, and counted nowhere."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, take
from asrd.reading import read_rows
from asrd.recorders.base import StreamKey
from asrd.recorders.t3code import RECORDER
from asrd.records import (
    Approval,
    Config,
    FileChange,
    Inference,
    Link,
    Message,
    Native,
    Session,
    Thinking,
    ToolResult,
    Turn,
)
from tests.captures.t3code.make import Events
from tests.recorders.arrivals import (
    goes_on_from_any_prefix,
    groups_of,
    lineage_of,
    mistakes,
    of,
    record,
    same_however_it_comes,
    unaccounted,
)
from tests.recorders.storied import home_of, streams_of, told, truth_of
from tests.recorders.told import sources

CASES = ["t3code/S1", "t3code/S1-v2"]


def key(thread: str) -> StreamKey:
    return StreamKey("t3code", thread)


@pytest.mark.parametrize(("case", "thread"), [("t3code/S1", "thread-codex"), ("t3code/S1-v2", "thread-v2")])
def test_a_thread_tells_the_story_that_codex_lived(case: str, thread: str) -> None:
    records = streams_of(case, "t3code")[key(thread)]
    truth = truth_of(case)

    given = told(records)

    assert {k: given[k] for k in ("prompts", "texts", "calls", "exits", "commits")} == {
        k: truth[k] for k in ("prompts", "texts", "calls", "exits", "commits")
    }
    assert given["answered"] == truth["calls"]
    assert given["edits"] == [["calc.py", None, None]]


@pytest.mark.parametrize("case", CASES)
def test_its_streams_are_secondary_and_count_nothing(case: str) -> None:
    streams = streams_of(case, "t3code")

    headers = [r for records in streams.values() for r in records if isinstance(r, Session)]

    assert {h.scope for h in headers} == {"secondary"}
    assert [r for records in streams.values() for r in of(Inference, records)] == []


def test_each_thread_is_tied_to_the_session_it_ran() -> None:
    streams = streams_of("t3code/S1", "t3code")
    truth = truth_of("t3code/S1")

    ties = {
        k.session_id: [(r.relation, r.target.agent, r.target.session_id) for r in of(Link, records)]
        for k, records in streams.items()
    }

    assert ties == {
        "thread-codex": [("observes", "codex", truth["codex"]), ("spawned", "codex", truth["codex"])],
        "thread-claude": [("observes", "claude-code", truth["claude"]), ("spawned", "claude-code", truth["claude"])],
    }


def test_a_native_thread_is_named_by_the_second_table_itself_and_a_sub_agent_by_its_parent() -> None:
    streams = streams_of("t3code/S1-v2", "t3code")
    truth = truth_of("t3code/S1-v2")

    ties = [(r.relation, r.target.agent, r.target.session_id) for r in of(Link, streams[key("thread-v2")])]

    assert ties == [
        ("observes", "codex", truth["codex"]),
        ("spawned", "codex", truth["codex"]),
        ("spawned", "t3code", "thread-child"),
    ]
    lineage = lineage_of(streams[key("thread-child")])
    assert (lineage.relation, lineage.parent.session_id) == ("spawned_by", "thread-v2")


def test_turns_approvals_and_settings_are_told_once() -> None:
    records = streams_of("t3code/S1", "t3code")[key("thread-codex")]

    turns = [(t.turn_id, t.phase, t.status) for t in of(Turn, records)]

    assert turns == [
        ("turn-thread-codex-0", "start", None),
        ("turn-thread-codex-0", "end", "completed"),
        ("turn-thread-codex-1", "start", None),
        ("turn-thread-codex-1", "end", "completed"),
    ]
    assert [(a.phase, a.decision, a.by) for a in of(Approval, records)] == [
        ("requested", None, None),
        ("decided", "allow_always", "human"),
    ]
    assert [(c.model, c.mode, c.title) for c in of(Config, records)] == [
        ("gpt-5.6-sol", "full-access", None),
        (None, None, "Fix add"),
    ]


def test_a_change_that_no_tool_told_of_is_known_by_the_comparison_of_the_turn() -> None:
    records = streams_of("t3code/S1", "t3code")[key("thread-claude")]

    (change,) = of(FileChange, records)

    assert (change.path.path, change.change, change.evidence) == ("calc.py", "modify", "derived")


def test_words_that_were_never_closed_are_told_as_far_as_they_came(tmp_path: Path) -> None:
    def broken(events: Events) -> None:
        said = {"threadId": "t", "messageId": "m", "role": "assistant", "turnId": "turn", "streaming": True}
        running = {"status": "running", "providerName": "codex", "activeTurnId": "turn", "lastError": None}
        events.add("t", "thread.session-set", {"session": running})
        events.add("t", "thread.message-sent", said | {"text": "I was "})
        events.add("t", "thread.message-sent", said | {"text": "about to"})
        events.add(
            "t",
            "thread.session-set",
            {"session": running | {"status": "error", "activeTurnId": None, "lastError": "gone"}},
        )

    records = told_by(tmp_path, broken)

    assert told(records)["texts"] == ["I was about to"]
    (end,) = [t for t in of(Turn, records) if t.phase == "end"]
    assert (end.status, end.error.message) == ("failed", "gone")


def test_reasoning_that_comes_in_pieces_is_told_when_it_is_settled(tmp_path: Path) -> None:
    def thinking(events: Events) -> None:
        for payload in ({"delta": "Hm"}, {"delta": "m."}, {"detail": "Hmm."}):
            activity = {
                "id": "a1",
                "tone": "info",
                "kind": "reasoning",
                "summary": "Thinking",
                "payload": payload,
                "turnId": None,
            }
            events.add("t", "thread.activity-appended", {"threadId": "t", "activity": activity})

    records = told_by(tmp_path, thinking)

    (message,) = of(Message, records)
    assert message.content == [Thinking(text="Hmm.")]


def test_an_event_or_a_provider_nobody_knows_is_kept_and_said(tmp_path: Path) -> None:
    def unknown(events: Events) -> None:
        events.add("t", "thread.moved-to-the-moon", {"threadId": "t", "crater": 7})
        columns = "thread_id, provider_name, adapter_key, status, last_seen_at, resume_cursor_json"
        runtime = f"INSERT INTO provider_session_runtime ({columns})"
        events.db.execute(
            runtime + " VALUES ('t', 'newAgent', 'x', 'ready', '', ?)", (json.dumps({"token": "secret"}),)
        )

    records = told_by(tmp_path, unknown)

    assert [(n.native_type, n.data) for n in of(Native, records)] == [
        ("thread.moved-to-the-moon", {"threadId": "t", "crater": 7}),
        ("provider_session_runtime", {"provider": "newAgent", "cursor": ["token"]}),
    ]


def test_a_database_that_grows_tells_only_what_is_new(tmp_path: Path) -> None:
    shutil.copytree(home_of("t3code/S1"), tmp_path / "home")
    ((found,),) = sources(tmp_path / "home", "t3code")
    capture = Capture(RECORDER, found.source.group)
    streams: Streams = {}
    since: dict[str, Any] = {}
    capture.receive_rows(found.source, read_rows(found, None, since))
    take(streams, capture)
    db = sqlite3.connect(found.path)
    events = Events(db)
    events.count, events.versions["thread-codex"] = 900, 900
    more = {
        "threadId": "thread-codex",
        "messageId": "user-3",
        "role": "user",
        "text": "More.",
        "turnId": None,
        "streaming": False,
    }
    events.add("thread-codex", "thread.message-sent", more, "client")
    db.commit()
    db.close()

    rows = list(read_rows(found, capture.revisions(found.source), since))
    capture.receive_rows(found.source, rows)
    take(streams, capture)

    assert [r.table for r in rows] == ["orchestration_events"]
    assert told(streams[key("thread-codex")])["prompts"][-1] == "More."


@pytest.mark.parametrize("case", CASES)
def test_the_same_however_it_comes(case: str) -> None:
    same_however_it_comes(RECORDER, home_of(case), case)
    goes_on_from_any_prefix(RECORDER, home_of(case), case)


@pytest.mark.parametrize("case", CASES)
def test_each_row_is_accounted_for(case: str) -> None:
    for contents in groups_of(RECORDER, home_of(case)):
        streams, capture = record(RECORDER, contents)

        assert unaccounted(contents, streams, capture) == 0
        assert mistakes(capture) == []
        assert [c for c in capture.accounts()[1] if c.startswith("unexpected")] == []
        assert all(r.linkage == "exact" for rs in streams.values() for r in of(ToolResult, rs))


def told_by(home: Path, tell: Any) -> list[Any]:
    """The records of thread `t` when these events are all there is."""
    (source,) = home_of("t3code/S1").rglob("state.sqlite")
    (home / ".t3/userdata").mkdir(parents=True)
    path = home / ".t3/userdata/state.sqlite"
    shutil.copyfile(source, path)
    db = sqlite3.connect(path)
    db.executescript("DELETE FROM orchestration_events; DELETE FROM provider_session_runtime")
    tell(Events(db))
    db.commit()
    db.close()
    return convert_home(home, only="t3code")[key("t")]
