"""OpenClaw: its database and the files before it; what its captures tell, and what damage does not stop."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
import zstandard

from asrd.capture import Capture
from asrd.convert import Streams, convert_home, convert_path, take
from asrd.reading import read_rows
from asrd.recorders.openclaw import RECORDER
from asrd.records import (
    Approval,
    Config,
    FileChange,
    Inference,
    Link,
    Loss,
    MemoryWrite,
    Message,
    MessageSent,
    Native,
    Record,
    Session,
    ToolCall,
    ToolResult,
    Turn,
    UsageTotal,
    encode,
)
from tests.golden import CAPTURES
from tests.recorders.arriving import (
    accounted,
    goes_on_from_any_prefix,
    groups_of,
    same_however_it_comes,
)
from tests.recorders.script_truth import children, differences, expected_of, problems, truth_of, usage, words

T = TypeVar("T", bound=Record)
CASES = ["openclaw/S1", "openclaw/S2-gateway", "openclaw/S7-acp"]
DATABASE = ".openclaw/agents/main/agent/openclaw-agent.sqlite"
CHILD = "11111111-2222-3333-4444-555555555555"


def of(kind: type[T], records: list[Any]) -> list[T]:
    return [r for r in records if isinstance(r, kind)]


def copied(case: str, home: Path) -> sqlite3.Connection:
    """The database of a capture, in a home where it may be changed."""
    shutil.copytree(CAPTURES / case / "home", home, dirs_exist_ok=True)
    return sqlite3.connect(home / DATABASE)


def made(home: Path, *events: dict[str, Any], session: str = "s", key: str = "agent:main:s") -> sqlite3.Connection:
    """A database with one session and these events."""
    (home / DATABASE).parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(home / DATABASE)
    source = sqlite3.connect(CAPTURES / "openclaw/S1/home" / DATABASE)
    for (sql,) in source.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"):
        name = sql.split("(")[0]
        plain = {
            "transcript_events": f"{name}(session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER,"
            " event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT, PRIMARY KEY (session_id, seq))",
        }
        db.execute(plain.get(name.split()[-1].strip('"')) or str(sql))
    db.execute("INSERT INTO schema_meta VALUES ('primary', 'agent', 23, 'main', '2026.9.6', 1, 1)")
    window(db, session, key)
    head = {"type": "session", "version": 4, "id": session, "timestamp": "2026-11-30T04:00:00.000Z", "cwd": "/w"}
    for number, event in enumerate((head, *events)):
        add(db, session, number, event)
    db.commit()
    return db


def window(db: sqlite3.Connection, session: str, key: str, **columns: Any) -> None:
    names = ["session_id", "session_key", "created_at", "updated_at", *columns]
    marks = ", ".join("?" * len(names))
    db.execute(
        f"INSERT INTO session_windows ({', '.join(names)}) VALUES ({marks})", (session, key, 1, 1, *columns.values())
    )


def add(db: sqlite3.Connection, session: str, seq: int, event: Any) -> None:
    text = event if isinstance(event, str) else ""
    if isinstance(event, dict):
        fields = cast(dict[str, Any], event)
        if fields["type"] != "session":
            stamp = {"id": f"e{seq}", "parentId": f"e{seq - 1}", "timestamp": f"2026-11-30T04:00:{seq:02}.000Z"}
            fields = {**stamp, **fields}
        text = json.dumps(fields)
    db.execute(
        "INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?, ?, ?, 1)",
        (session, seq, text),
    )


def trace(db: sqlite3.Connection, session: str, seq: int, kind: str, data: Any, run: str = "run") -> None:
    event = json.dumps({"type": kind, "ts": "2026-11-30T04:01:00.000Z", "data": data})
    db.execute("INSERT INTO trajectory_runtime_events VALUES (?, ?, ?, ?, 1)", (session, seq, run, event))
    db.commit()


def prompt(text: str, run: str = "run", **more: Any) -> dict[str, Any]:
    said = {"role": "user", "content": text, "idempotencyKey": f"{run}:user", **more}
    return {"type": "message", "message": said}


def answer(*content: Any, run: str = "run", own: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"provider": "p", "model": "m", "stopReason": "stop", "responseId": "r1"}
    said = {"role": "assistant", "content": list(content), "__openclaw": {"runId": run, **(own or {})}}
    return {"type": "message", "message": {**said, **fields, **more}}


def result(ident: str, name: str, text: str, own: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    said = {"role": "toolResult", "toolCallId": ident, "toolName": name, "content": [{"type": "text", "text": text}]}
    return {
        "type": "message",
        "message": {**said, "isError": False, "__openclaw": {"runId": "run", **(own or {})}, **more},
    }


def call(ident: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": ident, "name": name, "arguments": arguments}


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


def test_sub_agents_are_linked_from_both_sides_by_the_call_that_made_them() -> None:
    folder = CAPTURES / "openclaw/S2-gateway"
    tree = truth_of(folder)["subagent_tree"]["children"]

    rows = children(convert_home(folder / "home"))

    assert [
        (call, f"[[{one['script']}]]" in first, both) for (call, first, both), one in zip(rows, tree, strict=True)
    ] == [(one["spawn_call_id"], True, True) for one in tree]


def test_news_of_a_sub_agent_is_no_prompt_of_a_person() -> None:
    streams = convert_home(CAPTURES / "openclaw/S2-gateway/home")
    (records,) = [records for key, records in streams.items() if key.session_id == "s2gw-session"]

    said = [(m.author, m.origin) for m in of(Message, records) if m.role == "user"]
    begun = [(t.trigger, t.turn_id.split(":")[0]) for t in of(Turn, records) if t.phase == "start"]

    assert said == [("human", "prompt"), ("agent", "agent")]
    assert [trigger for trigger, _ in begun] == ["prompt", "agent", "agent", "agent"]
    assert [run for _, run in begun[1:]] == ["announce"] * 3


def test_the_bridges_words_before_a_prompt_are_not_the_persons() -> None:
    (records,) = convert_home(CAPTURES / "openclaw/S7-acp/home").values()

    said = [(m.origin, words(m)) for m in of(Message, records) if m.role == "user"]

    assert said[2:] == [("injected", "[Working directory: /home/dev/app]"), ("prompt", "[[ACP2]] Why?")]
    assert of(Session, records)[0].meta is not None
    assert "acp-bridge:17f95922" in str(of(Session, records)[0].meta)


def test_a_prompt_and_the_run_that_answers_it_are_one_turn_though_their_ids_differ() -> None:
    home = CAPTURES / "openclaw/S1/home"

    records = [r for records in convert_home(home).values() for r in records]

    asked = [r.turn_id for r in of(Message, records) if r.origin == "prompt"]
    assert [(r.turn_id, r.phase) for r in of(Turn, records)] == [(t, p) for t in asked for p in ("start", "end")]
    for kind in (Inference, ToolCall, ToolResult, UsageTotal):
        assert {r.turn_id for r in of(kind, records)} <= set(asked)


@pytest.mark.parametrize("case", CASES)
def test_the_totals_of_runs_are_the_sums_of_their_requests(case: str) -> None:
    for records in convert_home(CAPTURES / case / "home").values():
        totals = of(UsageTotal, records)
        assert totals
        for total in totals:
            parts = [i.usage for i in of(Inference, records) if i.turn_id == total.turn_id and i.usage]
            for bucket in ("input", "output", "cache_read", "cache_write", "reasoning"):
                assert sum(getattr(p, bucket) for p in parts) == getattr(total.usage, bucket)


# ---------------------------------------------------------------- however it comes


@pytest.mark.parametrize("case", CASES)
def test_the_records_do_not_depend_on_how_the_rows_came(case: str) -> None:
    same_however_it_comes(CAPTURES / case / "home", "openclaw", case)


@pytest.mark.parametrize("case", CASES)
def test_a_stream_whose_cursor_was_lost_goes_on_where_it_was(case: str) -> None:
    goes_on_from_any_prefix(CAPTURES / case / "home", "openclaw", case)


@pytest.mark.parametrize("case", CASES)
def test_every_row_is_accounted_for(case: str) -> None:
    (group,) = groups_of(CAPTURES / case / "home", "openclaw")

    assert accounted(group) == []


def test_a_database_elsewhere_is_told_by_its_head(tmp_path: Path) -> None:
    copied("openclaw/S7-acp", tmp_path / "home").close()
    shutil.copy(tmp_path / "home" / DATABASE, tmp_path / "some.sqlite")

    (key,) = convert_path(tmp_path / "some.sqlite")

    assert (key.agent, key.session_id) == ("openclaw", "fc671527-74c4-4f62-9187-44dbba03fdd0")


def test_events_that_are_compressed_read_the_same(tmp_path: Path) -> None:
    db = copied("openclaw/S1", tmp_path)
    plain = convert_home(CAPTURES / "openclaw/S1/home")
    for rowid, text in db.execute("SELECT rowid, event_json FROM transcript_events").fetchall():
        packed = zstandard.ZstdCompressor().compress(text.encode())
        db.execute("PRAGMA ignore_check_constraints = 1")
        db.execute("UPDATE transcript_events SET event_json = NULL, event_zstd = ? WHERE rowid = ?", (packed, rowid))
    db.commit()
    db.close()

    packed_streams = convert_home(tmp_path)

    assert [[type(r) for r in records] for records in packed_streams.values()] == [
        [type(r) for r in records] for records in plain.values()
    ]
    assert usage(packed_streams) == usage(plain)


def test_a_row_that_is_compressed_later_is_not_recorded_again(tmp_path: Path) -> None:
    db = made(tmp_path, prompt("go"), answer({"type": "text", "text": "ok"}, usage={"input": 1, "output": 2}))
    (group,) = groups_of(tmp_path, "openclaw")
    capture = Capture(RECORDER, group[0].source.group)
    streams: Streams = {}
    capture.receive_rows(group[0].source, read_rows(group[0]))
    take(streams, capture)
    before = sum(map(len, streams.values()))

    for seq, text in db.execute("SELECT seq, event_json FROM transcript_events").fetchall():
        packed = zstandard.ZstdCompressor().compress(text.encode())
        db.execute("UPDATE transcript_events SET event_json = NULL, event_zstd = ? WHERE seq = ?", (packed, seq))
    db.commit()
    capture.receive_rows(group[0].source, read_rows(group[0]))
    take(streams, capture)

    assert sum(map(len, streams.values())) == before
    assert capture.accounts()[0]["entry-seen-before"] == 2


def test_a_row_that_says_something_else_later_is_kept_beside_what_was_recorded(tmp_path: Path) -> None:
    db = made(tmp_path, prompt("go"), answer({"type": "text", "text": "ok"}, usage={"input": 1, "output": 2}))
    (group,) = groups_of(tmp_path, "openclaw")
    capture = Capture(RECORDER, group[0].source.group)
    streams: Streams = {}
    capture.receive_rows(group[0].source, read_rows(group[0]))

    db.execute("UPDATE transcript_events SET event_json = replace(event_json, 'ok', 'redacted') WHERE seq = 2")
    db.commit()
    capture.receive_rows(group[0].source, read_rows(group[0]))
    take(streams, capture)
    (records,) = streams.values()

    assert [n.native_type for n in of(Native, records)] == ["entry-rewritten"]
    assert len(of(Inference, records)) == 1


# ---------------------------------------------------------------- trouble


def test_an_event_of_an_unknown_type_is_kept_in_its_own_session(tmp_path: Path) -> None:
    made(tmp_path, prompt("go"), {"type": "leaf", "target": "e1"}, answer(usage={"input": 1, "output": 2})).close()

    (records,) = convert_home(tmp_path).values()

    (kept,) = of(Native, records)
    assert (kept.native_type, kept.data["target"]) == ("leaf", "e1")
    assert len(of(Inference, records)) == 1


@pytest.mark.parametrize(
    "damage", ['{"type":"message","id":', "null", "[]", "\x00\x01", '{"type":"message","message":7}']
)
def test_a_damaged_event_stops_nothing(tmp_path: Path, damage: str) -> None:
    db = made(tmp_path, prompt("go"))
    add(db, "s", 2, damage)
    add(db, "s", 3, answer({"type": "text", "text": "ok"}, usage={"input": 1, "output": 2}))
    db.commit()
    db.close()

    (records,) = convert_home(tmp_path).values()

    assert len(of(Loss, records)) + len(of(Native, records)) == 1
    assert [t.phase for t in of(Turn, records)] == ["start", "end"]


def test_content_that_does_not_decompress_is_a_loss(tmp_path: Path) -> None:
    db = made(tmp_path, prompt("go"))
    db.execute(
        "INSERT INTO transcript_events (session_id, seq, event_zstd, created_at) VALUES ('s', 2, x'00112233', 1)"
    )
    db.commit()
    db.close()

    (records,) = convert_home(tmp_path).values()

    assert [r.reason for r in of(Loss, records)] == ["malformed"]
    for record in records:
        encode(record).decode()


def test_a_table_with_a_column_of_another_type_stops_nothing(tmp_path: Path) -> None:
    db = made(tmp_path, prompt("go"))
    db.execute("INSERT INTO trajectory_runtime_events VALUES ('s', 1, NULL, 'no json', 1)")
    db.commit()
    db.close()

    (records,) = convert_home(tmp_path).values()

    assert len(of(Loss, records)) == 1 and len(of(Message, records)) == 1


# ---------------------------------------------------------------- runs, children, Codex


def test_a_run_that_was_stopped_ends_interrupted(tmp_path: Path) -> None:
    db = made(tmp_path, prompt("go"), answer(call("c", "exec", command="x"), stopReason="toolUse"))
    trace(db, "s", 1, "session.ended", {"status": "error", "aborted": True})
    db.close()

    (records,) = convert_home(tmp_path).values()

    assert [(t.phase, t.status) for t in of(Turn, records)] == [("start", None), ("end", "interrupted")]


def test_a_failed_prompt_fails_its_turn(tmp_path: Path) -> None:
    data = {"runId": "run", "error": "401 no key"}
    made(tmp_path, prompt("go"), {"type": "custom", "customType": "openclaw:prompt-error", "data": data}).close()

    (records,) = convert_home(tmp_path).values()

    end = of(Turn, records)[-1]
    assert (end.status, end.error and end.error.message) == ("failed", "401 no key")


def test_a_run_that_failed_keeps_what_its_last_answer_says_of_it(tmp_path: Path) -> None:
    db = made(tmp_path, prompt("go"), answer(stopReason="error", errorMessage="400 bad request"))
    trace(db, "s", 1, "session.ended", {"status": "error", "stopReason": "error"})
    db.close()

    (records,) = convert_home(tmp_path).values()

    end = of(Turn, records)[-1]
    assert (end.status, end.error and end.error.message) == ("failed", "400 bad request")


def test_a_context_that_begins_anew_is_kept_and_no_surprise(tmp_path: Path) -> None:
    reset = {"type": "reset", "id": "e1", "timestamp": "2026-11-30T10:53:24.565Z", "reason": "new"}
    made(tmp_path, prompt("go"), answer(), reset, prompt("fresh", run="run2")).close()

    (records,) = convert_home(tmp_path).values()

    (kept,) = [n for n in of(Native, records) if n.native_type == "reset"]
    assert (kept.data["reason"], kept.at) == ("new", "2026-11-30T10:53:24.565Z")
    assert "dev.asrd.unexpected" not in (kept.meta or {})
    assert len([m for m in of(Message, records) if m.origin == "prompt"]) == 2


def test_a_patch_changes_the_files_it_names_and_what_was_known_of_them(tmp_path: Path) -> None:
    summary = {"added": ["sub/n.txt"], "modified": ["calc.py"], "deleted": ["old.txt"]}
    asked = [
        call("w", "write", path="calc.py", content="a - b\n"),
        call("p", "apply_patch", input="*** Begin Patch …"),
        call("e", "edit", path="calc.py", edits=[{"oldText": "b", "newText": "c"}]),
    ]
    made(
        tmp_path,
        prompt("go"),
        answer(*asked, stopReason="toolUse"),
        result("w", "write", "Successfully wrote"),
        result("p", "apply_patch", "Success.", details={"summary": summary}),
        result("e", "edit", "Successfully replaced 1 block(s)"),
    ).close()

    (records,) = convert_home(tmp_path).values()

    changes = [(c.call_id, c.path.path, c.change) for c in of(FileChange, records)]
    assert changes == [
        ("w", "calc.py", "modify"),
        ("p", "sub/n.txt", "create"),
        ("p", "calc.py", "modify"),
        ("p", "old.txt", "delete"),
        ("e", "calc.py", "modify"),
    ]
    assert of(FileChange, records)[-1].after is None


def test_another_version_that_wrote_a_run_is_said(tmp_path: Path) -> None:
    db = made(tmp_path, prompt("go"))
    trace(db, "s", 1, "trace.metadata", {"harness": {"version": "2026.9.6"}})
    trace(db, "s", 2, "trace.metadata", {"harness": {"version": "2026.10.1"}})
    db.close()

    (records,) = convert_home(tmp_path).values()

    assert of(Session, records)[0].agent.version == "2026.9.6"
    assert [c.version for c in of(Config, records) if c.version] == ["2026.10.1"]


def test_a_child_that_is_named_before_its_row_is_linked_when_the_row_comes(tmp_path: Path) -> None:
    key = f"agent:main:subagent:{CHILD}"
    spawned = result("c", "sessions_spawn", "{}", details={"status": "accepted", "childSessionKey": key})
    db = made(tmp_path, prompt("go"), answer(call("c", "sessions_spawn", task="t"), stopReason="toolUse"), spawned)
    (group,) = groups_of(tmp_path, "openclaw")
    capture = Capture(RECORDER, group[0].source.group)
    streams: Streams = {}
    capture.receive_rows(group[0].source, read_rows(group[0]))
    take(streams, capture)
    assert not of(Link, next(iter(streams.values())))

    window(db, CHILD, key, parent_session_key="agent:main:s")
    add(db, CHILD, 0, {"type": "session", "version": 4, "id": CHILD, "timestamp": "2026-11-30T04:00:09.000Z"})
    db.commit()
    capture.receive_rows(group[0].source, read_rows(group[0]))
    take(streams, capture)

    parent, child = streams.values()
    (link,) = of(Link, parent)
    assert (link.relation, link.target.session_id, link.call_id) == ("spawned", CHILD, "c")
    lineage = of(Session, child)[0].lineage
    assert lineage.relation == "spawned_by" and lineage.parent is not None
    assert (lineage.parent.session_id, lineage.parent.namespace) == ("s", "main")


def test_an_origin_that_is_told_after_the_header_is_a_link(tmp_path: Path) -> None:
    key = f"agent:main:subagent:{CHILD}"
    db = made(tmp_path, prompt("go"))
    add(db, CHILD, 0, {"type": "session", "version": 4, "id": CHILD, "timestamp": "2026-11-30T04:00:09.000Z"})
    db.commit()
    (group,) = groups_of(tmp_path, "openclaw")
    capture = Capture(RECORDER, group[0].source.group)
    streams: Streams = {}
    capture.receive_rows(group[0].source, read_rows(group[0]))

    window(db, CHILD, key, spawned_by="agent:main:s")
    db.commit()
    capture.receive_rows(group[0].source, read_rows(group[0]))
    take(streams, capture)

    (child,) = [records for name, records in streams.items() if name.session_id == CHILD]
    assert of(Session, child)[0].lineage.parent is None
    (link,) = of(Link, child)
    assert (link.relation, link.target.session_id) == ("spawned_by", "s")
    assert (link.evidence.field, link.evidence.value) == ("session_windows.spawned_by", "agent:main:s")


@pytest.mark.parametrize(
    "reason, relation", [("fork", "forked_from"), ("reset", "resumed_from"), ("compaction", "resumed_from")]
)
def test_a_session_that_follows_another_under_its_key_says_so(tmp_path: Path, reason: str, relation: str) -> None:
    db = made(tmp_path, prompt("go"))
    window(db, CHILD, "agent:main:s", previous_session_id="s", reason=reason)
    head = {"type": "session", "version": 4, "id": CHILD, "timestamp": "2026-11-30T05:00:00.000Z"}
    add(db, CHILD, 0, head)
    add(db, CHILD, 1, {**prompt("old"), "timestamp": "2026-11-30T04:00:01.000Z"})
    db.commit()
    db.close()

    streams = convert_home(tmp_path)
    (records,) = [records for key, records in streams.items() if key.session_id == CHILD]

    assert of(Session, records)[0].lineage.relation == relation
    assert [m.copy_of is not None for m in of(Message, records)] == [reason == "fork"]


def test_a_run_of_codex_counts_once_and_its_calls_stand_in_one_form(tmp_path: Path) -> None:
    mirrored = {"mirrorOrigin": "codex-app-server"}
    zero = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0}
    db = made(
        tmp_path,
        prompt("go"),
        answer(
            call("exec-1", "bash", command="make", cwd="/w"),
            own=mirrored,
            responseId=None,
            usage=zero,
            stopReason="toolUse",
        ),
        result("exec-1", "bash", "out", {"toolOutput": {"source": "execution"}}),
        answer(
            call("call_1", "exec", input="tools.exec_command()"),
            own=mirrored,
            responseId=None,
            usage=zero,
            stopReason="toolUse",
        ),
        result("call_1", "exec", "out", {"toolOutput": {"source": "provider-response"}}),
        answer(
            {"type": "text", "text": "done"},
            own={**mirrored, "runTerminal": True},
            responseId=None,
            usage={"input": 5, "output": 6, "cacheRead": 7, "cacheWrite": 0, "totalTokens": 18},
        ),
    )
    trace(db, "s", 1, "tool.result", {"toolCallId": "exec-1", "result": {"status": "completed", "exitCode": 3}})
    db.close()

    streams = convert_home(tmp_path)
    (records,) = streams.values()

    assert usage(streams) == {"input_total": 12, "output": 6}
    assert [i.inference_id for i in of(Inference, records)] == ["run:run"]
    assert [c.call_id for c in of(ToolCall, records)] == ["exec-1"]
    first, better = of(ToolResult, records)
    assert first.exec is not None and first.exec.exit_code is None
    assert better.supersedes == first.id and better.exec is not None and better.exec.exit_code == 3
    assert words(better) == "out"
    assert problems(streams) == []


def test_what_a_schedule_asks_is_no_prompt_of_a_person(tmp_path: Path) -> None:
    db = made(tmp_path, prompt("check the mail"))
    db.execute(
        "INSERT INTO session_nodes (session_key, current_session_id, entry_json, updated_at, created_via)"
        " VALUES ('agent:main:s', 's', '{}', 1, 'cron')"
    )
    db.commit()
    db.close()

    (records,) = convert_home(tmp_path).values()

    assert [(t.trigger) for t in of(Turn, records)] == ["schedule"]
    assert of(Message, records)[0].origin == "injected"


def test_what_was_sent_and_remembered_is_told_from_calls_that_did_not_fail(tmp_path: Path) -> None:
    calls = [
        call("m1", "message", action="send", channel="telegram", target="@ann", message="hello"),
        call("m2", "message", action="send", channel="telegram", target="@bob", message="lost"),
        call("m3", "message", action="edit", target="@ann", message="changed"),
        call("m4", "message", action="send", target="@eve", message="refused"),
        call("s1", "sessions_send", sessionKey="agent:main:other", message="news"),
        call("w1", "write", path="memory/2026-11-30.md", content="likes tea"),
        call("w2", "write", path="notes.md", content="x"),
    ]
    made(
        tmp_path,
        prompt("go"),
        answer(*calls, stopReason="toolUse"),
        result("m1", "message", "{}", details={"ok": True}),
        result("m2", "message", "no", isError=True),
        result("m4", "message", "{}", details={"status": "forbidden"}),
        *(result(ident, "x", "{}") for ident in ("m3", "s1", "w1", "w2")),
    ).close()

    (records,) = convert_home(tmp_path).values()

    assert [(m.channel, m.target, m.call_id) for m in of(MessageSent, records)] == [
        ("telegram", "@ann", "m1"),
        ("session", "agent:main:other", "s1"),
    ]
    assert [(m.target, m.call_id) for m in of(MemoryWrite, records)] == [("memory/2026-11-30.md", "w1")]


@pytest.mark.parametrize(
    ("said", "change"), [({"created": True}, "create"), ({"created": False}, "modify"), ({}, "modify")]
)
def test_a_write_created_a_file_where_its_result_says_so(tmp_path: Path, said: dict[str, bool], change: str) -> None:
    patch = "--- n.txt\n+++ n.txt\n@@ -0,0 +1,1 @@\n+n\n"
    made(
        tmp_path,
        prompt("go"),
        answer(call("c1", "write", path="n.txt", content="n\n"), stopReason="toolUse"),
        result("c1", "write", "wrote", details={"changed": True, "patch": patch, **said}),
    ).close()

    (records,) = convert_home(tmp_path).values()

    (found,) = of(FileChange, records)
    assert (found.change, found.diff) == (change, patch)
    assert ("dev.asrd.change" in (found.meta or {})) is not bool(said), (
        "which it was is unknown only without a word of it"
    )


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (call("c", "outlook__send_mail"), "mcp"),
        (call("c", "tool_call", id="outlook__send_mail", args={}), "mcp"),
        (call("c", "tool_call", id="mcp:outlook:outlook__send_mail", args={}), "mcp"),
        (call("c", "sessions_list"), "other"),
    ],
)
def test_a_tool_of_an_mcp_server_is_told_by_its_name(tmp_path: Path, asked: dict[str, Any], kind: str) -> None:
    made(tmp_path, prompt("go"), answer(asked, stopReason="toolUse")).close()

    (records,) = convert_home(tmp_path).values()

    assert [c.kind for c in of(ToolCall, records)] == [kind]


def nested(parent: str, name: str, given: dict[str, Any], text: str, **details: Any) -> dict[str, Any]:
    """A call that another call made, as OpenClaw says it."""
    came = {"content": [{"type": "text", "text": text}], "details": details}
    told = {"parentToolCallId": parent, "toolCallId": f"tool_search_code:{parent}:{name}:1", "toolName": name}
    said = {"role": "custom", "customType": "openclaw.nested-tool.v1", "display": True, "content": ""}
    return {
        "type": "message",
        "message": {**said, "details": {**told, "input": given, "result": came, "isError": False}},
    }


def carried(ident: str, name: str, text: str, **details: Any) -> dict[str, Any]:
    """What `tool_call` came to that carried a tool out."""
    came = {"content": [{"type": "text", "text": text}], "details": details}
    told = {"tool": {"id": f"openclaw:core:{name}", "name": name}, "result": came}
    return result(ident, "tool_call", json.dumps(told), details=told)


def test_a_tool_that_is_called_through_another_is_one_call_with_all_that_it_did(tmp_path: Path) -> None:
    child = "agent:main:subagent:c"
    ran, wrote = {"command": "exit 30"}, {"path": "/w/n.txt", "content": "n\n"}
    db = made(
        tmp_path,
        prompt("go"),
        answer(
            call("c1", "tool_call", id="exec", args=ran),
            call("c2", "tool_call", id="openclaw:core:write", args=wrote),
            call("c3", "tool_call", id="sessions_spawn", args={"task": "t"}),
            call("c4", "tool_call", id="nosuch", args={}),
            call("c5", "tool_call", id="sessions_send", args={"sessionKey": "agent:main:other", "message": "news"}),
            call("c6", "tool_call", id="mcp:calendar:create_event", args={}),
            stopReason="toolUse",
        ),
        nested("c2", "write", wrote, "wrote", changed=True),
        nested("c1", "exec", ran, "(no output)", exitCode=30),
        carried("c1", "exec", "(no output)", status="completed", exitCode=30, durationMs=46),
        carried("c2", "write", "wrote", changed=True),
        carried("c3", "sessions_spawn", "{}", childSessionKey=child),
        result("c4", "tool_call", "Unknown tool id", isError=True, details={"status": "error", "tool": "tool_call"}),
        carried("c5", "sessions_send", "{}"),
        carried("c6", "create_event", "{}"),
    )
    window(db, CHILD, child, parent_session_key="agent:main:s")
    db.commit()
    db.close()

    streams = convert_home(tmp_path)
    records = next(found for key, found in streams.items() if key.session_id == "s")

    assert [(c.name, c.call_id, c.kind) for c in of(ToolCall, records)] == [
        ("tool_call", "c1", "execute"),
        ("tool_call", "c2", "edit"),
        ("tool_call", "c3", "delegate"),
        ("tool_call", "c4", "other"),
        ("tool_call", "c5", "other"),
        ("tool_call", "c6", "mcp"),
    ]
    results = {r.call_id: r for r in of(ToolResult, records)}
    assert len(results) == len(of(ToolResult, records)) == 6
    assert results["c1"].exec is not None
    assert (results["c1"].exec.command, results["c1"].exec.exit_code) == ("exit 30", 30)
    assert results["c4"].status == "failed"
    assert [(c.path.path, c.call_id) for c in of(FileChange, records)] == [("n.txt", "c2")]
    assert [(ln.relation, ln.call_id, ln.target.session_id) for ln in of(Link, records)] == [("spawned", "c3", CHILD)]
    assert [(m.target, m.call_id) for m in of(MessageSent, records)] == [("agent:main:other", "c5")]
    assert [m.origin for m in of(Message, records)] == ["prompt"], "what repeats a result is no message"


def test_a_call_that_a_script_made_is_a_call_with_a_result(tmp_path: Path) -> None:
    made(
        tmp_path,
        prompt("go"),
        answer(call("c1", "tool_search_code", code="return 1"), stopReason="toolUse"),
        nested("c1", "exec", {"command": "exit 3"}, "(no output)", exitCode=3),
        nested("c1", "write", {"path": "/w/n.txt", "content": "n\n"}, "wrote", changed=True),
        result("c1", "tool_search_code", "1"),
    ).close()

    (records,) = convert_home(tmp_path).values()

    ran, wrote = "tool_search_code:c1:exec:1", "tool_search_code:c1:write:1"
    assert [(c.call_id, c.name) for c in of(ToolCall, records)] == [
        ("c1", "tool_search_code"),
        (ran, "exec"),
        (wrote, "write"),
    ]
    codes = {r.call_id: r.exec.exit_code if r.exec else None for r in of(ToolResult, records)}
    assert codes == {ran: 3, wrote: None, "c1": None}
    assert [c.call_id for c in of(FileChange, records)] == [wrote]


def test_a_command_in_the_background_ends_where_it_was_asked_after(tmp_path: Path) -> None:
    made(
        tmp_path,
        prompt("go"),
        answer(call("e", "exec", command="make"), call("p", "process", action="poll"), stopReason="toolUse"),
        result("e", "exec", "started", details={"status": "running", "sessionId": "x"}),
        result("p", "process", "out", details={"status": "completed", "exitCode": 2}),
    ).close()

    started, asked = of(ToolResult, next(iter(convert_home(tmp_path).values())))

    assert started.exec is not None and started.exec.exit_code is None
    assert asked.exec is not None and asked.exec.exit_code == 2


def test_a_command_that_waits_for_a_permission_has_no_end_yet(tmp_path: Path) -> None:
    made(
        tmp_path,
        prompt("go"),
        answer(call("e", "exec", command="rm x"), stopReason="toolUse"),
        result("e", "exec", "Approval required", details={"status": "approval-pending"}),
    ).close()

    (records,) = convert_home(tmp_path).values()

    assert [(a.phase, a.call_id) for a in of(Approval, records)] == [("requested", "e")]
    assert [r.status for r in of(ToolResult, records)] == ["unknown"]


# ---------------------------------------------------------------- the JSONL era


def old_file(*rows: dict[str, Any], session: str = CHILD) -> bytes:
    head: dict[str, Any] = {
        "type": "session",
        "version": 3,
        "id": session,
        "timestamp": "2026-02-01T00:00:00.000Z",
        "cwd": "/w",
    }
    made = [head]
    for number, row in enumerate(rows):
        made.append(
            {"id": f"o{number}", "parentId": None, "timestamp": f"2026-02-01T00:00:{number + 1:02}.000Z", **row}
        )
    return b"".join(json.dumps(one).encode() + b"\n" for one in made)


SNAPSHOT = {"type": "custom", "customType": "model-snapshot", "data": {"modelId": "m", "provider": "p"}}


def test_a_session_file_and_its_siblings_are_one_session(tmp_path: Path) -> None:
    folder = tmp_path / ".openclaw/agents/main/sessions"
    folder.mkdir(parents=True)
    one = prompt("one")
    two = prompt("two", "run2")
    (folder / f"{CHILD}.jsonl.reset.2026-02-02T00-00-00.000Z").write_bytes(old_file(SNAPSHOT, one))
    (folder / f"{CHILD}.jsonl").write_bytes(old_file(SNAPSHOT, one, two))
    gone = "99999999-2222-3333-4444-555555555555"
    (folder / f"{gone}.jsonl.deleted.2026-02-02T00-00-00.000Z").write_bytes(old_file(prompt("gone"), session=gone))

    streams = convert_home(tmp_path)

    assert {key.session_id: [words(m) for m in of(Message, r) if m.role == "user"] for key, r in streams.items()} == {
        CHILD: ["one", "two"],
        gone: ["gone"],
    }


def test_the_list_of_sessions_says_who_spawned_one(tmp_path: Path) -> None:
    folder = tmp_path / ".openclaw/agents/main/sessions"
    folder.mkdir(parents=True)
    parent = "99999999-2222-3333-4444-555555555555"
    listed = {
        "agent:main:main": {"sessionId": parent, "updatedAt": 1},
        "agent:main:subagent:x": {"sessionId": CHILD, "spawnedBy": "agent:main:main"},
    }
    (folder / "sessions.json").write_text(json.dumps(listed))
    (folder / f"{CHILD}.jsonl").write_bytes(old_file(prompt("do it")))

    (records,) = convert_home(tmp_path).values()

    lineage = of(Session, records)[0].lineage
    assert lineage.parent is not None and lineage.parent.session_id == parent
    assert of(Message, records)[0].author == "agent"


def test_a_session_that_was_moved_into_the_database_is_recorded_once(tmp_path: Path) -> None:
    rows = (prompt("one"), answer({"type": "text", "text": "ok"}, usage={"input": 1, "output": 2}))
    folder = tmp_path / ".openclaw/agents/main/sessions"
    folder.mkdir(parents=True)
    (folder / f"{CHILD}.jsonl").write_bytes(old_file(*rows))
    db = made(tmp_path, session=CHILD)
    for number, row in enumerate(rows):
        stamp = {"id": f"o{number}", "parentId": None, "timestamp": f"2026-02-01T00:00:{number + 1:02}.000Z"}
        add(db, CHILD, number + 1, {**stamp, **row})
    db.commit()
    db.close()

    (records,) = convert_home(tmp_path).values()

    assert len(of(Message, records)) == 2 and len(of(Inference, records)) == 1


def test_a_file_of_the_old_kind_is_told_from_one_of_pi(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(old_file(SNAPSHOT, prompt("one")))

    (key,) = convert_path(tmp_path / "x.jsonl")

    assert key.agent == "openclaw"


def test_messages_the_harness_delivered_itself_are_no_requests(tmp_path: Path) -> None:
    mirror = answer({"type": "text", "text": "hi"}, provider="openclaw", model="delivery-mirror", responseId=None)
    made(tmp_path, prompt("go"), mirror).close()

    (records,) = convert_home(tmp_path).values()

    assert of(Inference, records) == []
    assert of(Message, records)[-1].author == "harness"
