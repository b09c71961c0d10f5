"""Makes the captures of T3 Code from its public migrations and contracts: `python -m tests.captures.t3code.make`.

S1: a thread of the first event table that runs Codex, and one that runs Claude Code. S1-v2: the story in the second table,
with a sub-agent's thread, beside an import of the first.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.captures import story

HERE = Path(__file__).parent
CODEX = "01a0a2db-0000-7000-8000-000000000001"
CLAUDE = "550e8400-e29b-41d4-a716-446655440000"

SCHEMA = """
CREATE TABLE effect_sql_migrations (migration_id integer PRIMARY KEY NOT NULL,
    created_at datetime NOT NULL DEFAULT '2026-11-30 05:00:00', name VARCHAR(255) NOT NULL);
CREATE TABLE orchestration_events (sequence INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL UNIQUE,
    aggregate_kind TEXT NOT NULL, stream_id TEXT NOT NULL, stream_version INTEGER NOT NULL, event_type TEXT NOT NULL,
    occurred_at TEXT NOT NULL, command_id TEXT, causation_event_id TEXT, correlation_id TEXT, actor_kind TEXT NOT NULL,
    payload_json TEXT NOT NULL, metadata_json TEXT NOT NULL);
CREATE TABLE provider_session_runtime (thread_id TEXT PRIMARY KEY, provider_name TEXT NOT NULL, adapter_key TEXT NOT NULL,
    runtime_mode TEXT NOT NULL DEFAULT 'full-access', status TEXT NOT NULL, last_seen_at TEXT NOT NULL,
    resume_cursor_json TEXT, runtime_payload_json TEXT, provider_instance_id TEXT);
CREATE TABLE projection_projects (project_id TEXT PRIMARY KEY, title TEXT NOT NULL, workspace_root TEXT NOT NULL,
    scripts_json TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deleted_at TEXT);
"""
SECOND = """
CREATE TABLE orchestration_v2_events (sequence INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL UNIQUE,
    command_id TEXT, thread_id TEXT NOT NULL, run_id TEXT, node_id TEXT, provider TEXT, raw_event_id TEXT,
    event_type TEXT NOT NULL, occurred_at TEXT NOT NULL, payload_json TEXT NOT NULL, driver TEXT, provider_instance_id TEXT);
"""


class Events:
    """What is appended, each a little later."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db, self.count, self.versions = db, 0, dict[str, int]()

    def at(self) -> str:
        moment = datetime.fromtimestamp((story.START + self.count * 250) / 1000, UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"

    def add(
        self, stream: str, kind: str, payload: dict[str, Any], actor: str = "server", aggregate: str = "thread"
    ) -> None:
        self.count += 1
        version = self.versions[stream] = self.versions.get(stream, -1) + 1
        row = (f"event-{self.count}", aggregate, stream, version, kind, self.at(), actor, json.dumps(payload), "{}")
        self.db.execute(
            "INSERT INTO orchestration_events (event_id, aggregate_kind, stream_id, stream_version, event_type, occurred_at,"
            " actor_kind, payload_json, metadata_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )

    def add_v2(self, thread: str, kind: str, payload: dict[str, Any], run: str | None = None) -> None:
        self.count += 1
        self.db.execute(
            "INSERT INTO orchestration_v2_events (event_id, thread_id, run_id, event_type, occurred_at, payload_json)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (f"v2-{self.count}", thread, run, kind, self.at(), json.dumps(payload)),
        )


def thread(events: Events, ident: str, model: str, provider: str) -> None:
    """The story in a thread of the first table."""
    selection = {"instanceId": provider, "model": model}
    created = {"threadId": ident, "projectId": "p1", "title": "New thread", "modelSelection": selection}
    created |= {"runtimeMode": "full-access", "interactionMode": "default", "branch": "main", "worktreePath": None}
    events.add(ident, "thread.created", created | {"createdAt": events.at(), "updatedAt": events.at()}, "client")
    for number, told in enumerate(story.TURNS):
        turn, user = f"turn-{ident}-{number}", f"user-{ident}-{number}"
        message = {"threadId": ident, "messageId": user, "role": "user", "text": told.prompt, "turnId": None}
        events.add(ident, "thread.message-sent", message | {"streaming": False}, "client")
        events.add(
            ident, "thread.turn-start-requested", {"threadId": ident, "messageId": user, "modelSelection": selection}
        )
        if number == 0:
            events.add(ident, "thread.meta-updated", {"threadId": ident, "title": "Fix add"})
        session = {
            "threadId": ident,
            "status": "running",
            "providerName": provider,
            "activeTurnId": turn,
            "lastError": None,
        }
        events.add(ident, "thread.session-set", {"threadId": ident, "session": session})
        for response in told.responses:
            if response.text:
                said = {
                    "threadId": ident,
                    "messageId": f"assistant:{ident}-{response.id}",
                    "role": "assistant",
                    "turnId": turn,
                }
                half = len(response.text) // 2
                for piece in (response.text[:half], response.text[half:]):
                    events.add(ident, "thread.message-sent", said | {"text": piece, "streaming": True}, "provider")
                events.add(ident, "thread.message-sent", said | {"text": "", "streaming": False}, "provider")
            if response.call:
                for kind in ("tool.started", "tool.completed"):
                    events.add(
                        ident,
                        "thread.activity-appended",
                        activity(ident, turn, provider, response.call, kind),
                        "provider",
                    )
        if number == 0:
            ask = {"requestId": "req-1", "requestType": "command_execution_approval", "requestKind": "command"}
            told_of = {
                "id": f"ask-{ident}",
                "tone": "approval",
                "kind": "approval.requested",
                "summary": "Command approval",
            }
            events.add(
                ident,
                "thread.activity-appended",
                {"threadId": ident, "activity": told_of | {"payload": ask, "turnId": turn}},
            )
            decided = {"threadId": ident, "requestId": "req-1", "decision": "acceptForSession"}
            events.add(ident, "thread.approval-response-requested", decided, "client")
            files = [{"path": "calc.py", "kind": "modified", "additions": 1, "deletions": 1}]
            diff = {
                "threadId": ident,
                "turnId": turn,
                "checkpointTurnCount": 1,
                "checkpointRef": "refs/t3/1",
                "status": "ready",
            }
            events.add(ident, "thread.turn-diff-completed", diff | {"files": files, "assistantMessageId": None})
        events.add(
            ident,
            "thread.session-set",
            {"threadId": ident, "session": session | {"status": "ready", "activeTurnId": None}},
        )
    events.add(ident, "thread.pinned", {"threadId": ident, "pinnedAt": events.at()}, "client")


def activity(ident: str, turn: str, provider: str, call: story.Call, kind: str) -> dict[str, Any]:
    item_type = {"run": "command_execution", "read": "dynamic_tool_call", "edit": "file_change"}[call.kind]
    payload: dict[str, Any] = {"itemType": item_type, "detail": call.command or "calc.py"}
    if kind == "tool.completed" and provider == "codex":
        payload["data"] = {"item": codex_item(call)}
    elif kind == "tool.completed":
        name = {"run": "Bash", "read": "Read", "edit": "Edit"}[call.kind]
        given = {"command": call.command} if call.kind == "run" else {"file_path": f"{story.CWD}/calc.py"}
        payload["data"] = {"toolName": name, "input": given, "toolUseId": f"toolu_{call.id}", "result": call.result}
    told = {
        "id": f"{kind}-{ident}-{call.id}",
        "tone": "tool",
        "kind": kind,
        "summary": "Ran command",
        "payload": payload,
    }
    return {"threadId": ident, "activity": told | {"turnId": turn}}


def codex_item(call: story.Call) -> dict[str, Any]:
    if call.kind == "run":
        told = {"type": "commandExecution", "id": call.id, "command": call.command, "cwd": story.CWD, "durationMs": 40}
        status = "failed" if call.exit else "completed"
        return told | {"exitCode": call.exit, "aggregatedOutput": call.result, "status": status}
    if call.kind == "edit":
        diff = "@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"
        change = {"path": f"{story.CWD}/calc.py", "kind": {"type": "update", "move_path": None}, "diff": diff}
        return {"type": "fileChange", "id": call.id, "changes": [change], "status": "completed"}
    return {
        "type": "dynamicToolCall",
        "id": call.id,
        "tool": "read",
        "arguments": {"path": "calc.py"},
        "status": "completed",
    }


def second(events: Events) -> None:
    """The story in the second table, and a sub-agent's thread."""
    ident = "thread-v2"
    lineage = {"parentThreadId": None, "relationshipToParent": None, "rootThreadId": ident}
    told: dict[str, Any] = {"id": ident, "projectId": "p1", "title": "Fix add", "modelSelection": {"model": "gpt-5.6"}}
    told |= {"runtimeMode": "full-access", "interactionMode": "default", "branch": None, "worktreePath": None}
    events.add_v2(ident, "thread.created", told | {"lineage": lineage, "createdAt": events.at(), "createdBy": "user"})
    native = {"driver": "codex", "nativeId": CODEX, "strength": "strong"}
    bound = {"id": "pt-1", "driver": "codex", "nativeThreadRef": native, "status": "active", "appThreadId": ident}
    for number, turn in enumerate(story.TURNS):
        run = f"run-{number}"
        message = {"id": f"m-{number}", "threadId": ident, "role": "user", "text": turn.prompt, "streaming": False}
        events.add_v2(ident, "message.updated", message | {"createdBy": "user", "runId": run, "attachments": []})
        events.add_v2(ident, "run.created", {"id": run, "threadId": ident, "status": "queued"}, run)
        events.add_v2(ident, "run.updated", {"id": run, "threadId": ident, "status": "running"}, run)
        events.add_v2(ident, "provider-thread.updated", bound)
        for response in turn.responses:
            if response.text:
                item = {
                    "id": f"item-{response.id}",
                    "type": "assistant_message",
                    "messageId": response.id,
                    "runId": run,
                }
                events.add_v2(ident, "turn-item.updated", item | {"text": response.text[:3], "streaming": True}, run)
                events.add_v2(ident, "turn-item.updated", item | {"text": response.text, "streaming": False}, run)
                again = {
                    "id": response.id,
                    "threadId": ident,
                    "role": "assistant",
                    "text": response.text,
                    "streaming": False,
                }
                events.add_v2(ident, "message.updated", again | {"createdBy": "agent", "runId": run}, run)
            if response.call:
                for status in ("running", "completed"):
                    events.add_v2(ident, "turn-item.updated", item_v2(response.call, run, status), run)
        events.add_v2(ident, "run.updated", {"id": run, "threadId": ident, "status": "completed"}, run)
    child = "thread-child"
    agent = {"id": "node-1", "threadId": ident, "childThreadId": child, "origin": "app_owned", "status": "completed"}
    events.add_v2(ident, "subagent.updated", agent | {"prompt": "Look at calc.py.", "result": "It subtracts."})
    lineage = {"parentThreadId": ident, "relationshipToParent": "subagent", "rootThreadId": ident}
    events.add_v2(child, "thread.created", told | {"id": child, "lineage": lineage, "title": "Look"})


def item_v2(call: story.Call, run: str, status: str) -> dict[str, Any]:
    reference = {"driver": "codex", "nativeId": call.id, "strength": "strong"}
    told: dict[str, Any] = {"id": f"item-{call.id}", "runId": run, "nativeItemRef": reference, "title": None}
    done = status == "completed"
    told["status"] = "failed" if done and call.exit else status
    match call.kind:
        case "run":
            more = {"output": call.result, "exitCode": call.exit} if done else {}
            return told | {"type": "command_execution", "input": call.command} | more
        case "read":
            more = {"output": call.result} if done else {}
            return told | {"type": "dynamic_tool", "toolName": "read", "input": {"path": "calc.py"}} | more
        case _:
            return told | {
                "type": "file_change",
                "fileName": f"{story.CWD}/calc.py",
                "oldStr": "a - b",
                "newStr": "a + b",
            }


def main() -> None:
    for case in ("S1", "S1-v2"):
        home = HERE / case / "home"
        shutil.rmtree(home, ignore_errors=True)
        (home / ".t3/userdata").mkdir(parents=True)
        db = sqlite3.connect(home / ".t3/userdata/state.sqlite")
        db.executescript(SCHEMA + (SECOND if case == "S1-v2" else ""))
        db.execute("INSERT INTO effect_sql_migrations (migration_id, name) VALUES (1, 'OrchestrationEvents')")
        events = Events(db)
        project = {
            "projectId": "p1",
            "title": "app",
            "workspaceRoot": story.CWD,
            "scripts": [],
            "defaultModelSelection": None,
        }
        events.add("p1", "project.created", project, "client", "project")
        db.execute("INSERT INTO projection_projects VALUES ('p1', 'app', ?, '[]', '', '', NULL)", (story.CWD,))
        thread(events, "thread-codex", "gpt-5.6-sol", "codex")
        runtime = "INSERT INTO provider_session_runtime VALUES (?, ?, ?, 'full-access', 'stopped', '', ?, ?, NULL)"
        db.execute(
            runtime, ("thread-codex", "codex", "codex", json.dumps({"threadId": CODEX}), '{"cwd":"/home/dev/app"}')
        )
        if case == "S1":
            thread(events, "thread-claude", "claude-sonnet-5", "claudeAgent")
            cursor = {"threadId": "thread-claude", "resume": CLAUDE, "resumeSessionAt": "x", "turnCount": 2}
            db.execute(runtime, ("thread-claude", "claudeAgent", "claudeAgent", json.dumps(cursor), None))
        else:
            second(events)
        db.commit()
        db.close()
        story.write(HERE / case, story.truth() | {"codex": CODEX, "claude": CLAUDE})


if __name__ == "__main__":
    main()
