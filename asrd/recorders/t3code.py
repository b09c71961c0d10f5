r"""T3 Code (`t3`): an orchestrator that runs Codex, Claude Code and others, and keeps what they do as events in SQLite.

Where: `~/.t3/userdata/state.sqlite` (WAL), `dev/` for a development build, moved by T3CODE_HOME.

From documents: the migrations and contracts of its public repository (pingdotgg/t3code: `apps/server/src/persistence`,
`packages/contracts/src/orchestration.ts` and `orchestrationV2.ts`). No file of it was ever seen.

    orchestration_events     {"sequence":7,"event_id":"…","aggregate_kind":"thread","stream_id":"<thread>","event_type":
                             "thread.message-sent","occurred_at":"2026-…Z","actor_kind":"provider","payload_json":"{…}"}
    provider_session_runtime {"thread_id":"<thread>","provider_name":"codex","resume_cursor_json":"{\"threadId\":\"01a0…\"}"}
    orchestration_v2_events  {"sequence":9,"thread_id":"<thread>","event_type":"turn-item.updated","payload_json":"{…}"}

What is particular
    - Its streams are `secondary`: the same work stands in the files of the harness that did it. The native session is named
      in `resume_cursor_json` (`threadId` for Codex, `resume` for Claude Code) or, from V2 on, in `nativeThreadRef`: a link
      `observes` and a link `spawned`, with that evidence. Nothing here counts.
    - V1: words of the model come as deltas (`streaming`), the last event closes them. A tool has no id but what its `data`
      holds; only `tool.completed` tells of it whole. A turn runs while `session.activeTurnId` names it.
    - V2: every event holds its object whole, as it stands: said again only where it says something new.
    - Both tables may stand in one database; what V2 imported of V1 has the same message ids and is recorded once.
    - Of `provider_session_runtime` only the native id is read: the rest is how a process was started.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Struct

from asrd.recorders._observed import commits
from asrd.recorders.base import Recorder, StreamKey, StreamOut, fields_of, sha256, within
from asrd.records import (
    Approval,
    Block,
    Capture,
    Compaction,
    Config,
    Error,
    Evidence,
    Exec,
    FileChange,
    Image,
    Lineage,
    LineageParent,
    Link,
    LinkTarget,
    Message,
    Native,
    Other,
    Plan,
    PlanItem,
    Record,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    Vcs,
    VcsAction,
    Workspace,
    WorkspaceRoot,
)
from asrd.sources import Line, Place, Root, Row, RowQuery, Source

# ---------------------------------------------------------------- native structs


class EventRow(Struct):
    """A row of `orchestration_events`."""

    sequence: int
    stream_id: str
    event_type: str
    payload_json: str
    event_id: str | None = None
    aggregate_kind: str | None = None
    occurred_at: str | None = None


class EventV2Row(Struct):
    """A row of `orchestration_v2_events`."""

    sequence: int
    thread_id: str
    event_type: str
    payload_json: str
    event_id: str | None = None
    occurred_at: str | None = None
    run_id: str | None = None


class RuntimeRow(Struct):
    """What is read of a row of `provider_session_runtime`."""

    thread_id: str
    provider_name: str
    resume_cursor_json: str | None = None


class Sent(Struct):
    """`thread.message-sent`, and `message.updated` of V2."""

    role: str
    text: str = ""
    messageId: str | None = None
    id: str | None = None
    turnId: str | None = None
    runId: str | None = None
    streaming: bool = False
    attachments: list[Any] | None = None
    createdBy: str | None = None


class Activity(Struct):
    """What `thread.activity-appended` appends."""

    id: str
    kind: str
    payload: Any = None
    turnId: str | None = None
    createdAt: str | None = None
    summary: str | None = None


class SessionState(Struct):
    """`session` of `thread.session-set`."""

    status: str
    providerName: str | None = None
    activeTurnId: str | None = None
    lastError: str | None = None


class Run(Struct):
    """A run of V2: what a turn is there."""

    id: str
    status: str
    startedAt: Any = None
    delegatedCompletion: Any = None


class Item(Struct):
    """A turn item of V2."""

    id: str
    type: str
    status: str | None = None
    runId: str | None = None
    nativeItemRef: Any = None
    messageId: str | None = None
    text: str | None = None
    streaming: bool = False
    title: str | None = None
    input: Any = None
    output: Any = None
    exitCode: int | None = None
    fileName: str | None = None
    diffStr: str | None = None
    toolName: str | None = None
    steps: list[Any] | None = None
    summary: str | None = None
    beforeTokenCount: int | None = None
    afterTokenCount: int | None = None
    requestId: str | None = None
    childThreadId: str | None = None


# ---------------------------------------------------------------- state


class Thread(Struct):
    """A thread: what is a session here."""

    cwd: str | None = None
    root: str | None = None
    """The folder that the header names."""
    turn: str | None = None
    model: str | None = None
    mode: str | None = None
    title: str | None = None
    partial: dict[str, str] = {}
    """Words of messages that are not closed."""
    messages: dict[str, str] = {}
    """Digest of each message that was recorded."""
    records: dict[str, str] = {}
    decided: list[str] = []
    linked: list[str] = []
    items: dict[str, str] = {}
    """Digest of each item of V2 as it was last recorded."""
    called: list[str] = []
    answered: list[str] = []
    ended: list[str] = []
    changed: list[str] = []
    """Paths whose change a tool of this turn told."""


class State(Struct):
    """All that is kept between items."""

    projects: dict[str, str] = {}
    """Folder of each project."""
    threads: dict[str, Thread] = {}


# ---------------------------------------------------------------- where it lies

QUERIES = (
    RowQuery(
        "projection_projects",
        "SELECT project_id, workspace_root FROM projection_projects ORDER BY rowid",
        ("project_id",),
    ),
    RowQuery(
        "orchestration_events",
        "SELECT sequence AS rowid, * FROM orchestration_events ORDER BY sequence",
        ("event_id",),
        mark="SELECT max(sequence) FROM orchestration_events",
        changed="SELECT sequence AS rowid, * FROM orchestration_events WHERE sequence > :since ORDER BY sequence",
        columns=("stream_id", "event_type", "payload_json"),
    ),
    RowQuery(
        "orchestration_v2_events",
        "SELECT sequence AS rowid, * FROM orchestration_v2_events ORDER BY sequence",
        ("event_id",),
        mark="SELECT max(sequence) FROM orchestration_v2_events",
        changed="SELECT sequence AS rowid, * FROM orchestration_v2_events WHERE sequence > :since ORDER BY sequence",
    ),
    RowQuery(
        "provider_session_runtime",
        "SELECT thread_id, provider_name, resume_cursor_json FROM provider_session_runtime ORDER BY rowid",
        ("thread_id",),
    ),
)

CURSORS = {
    "codex": ("codex", "threadId"),
    "claudeAgent": ("claude-code", "resume"),
    "claudeCode": ("claude-code", "resume"),
}
"""Where a provider's resume cursor names its session, and whose session that is."""
DRIVERS = {"codex": "codex", "claudeAgent": "claude-code", "claudeCode": "claude-code"}

DECISIONS = {"accept": "allow", "acceptForSession": "allow_always", "decline": "deny", "cancel": "cancelled"}
STEPS = {
    "pending": "pending", "inProgress": "in_progress", "in_progress": "in_progress", "running": "in_progress",
    "completed": "completed",
}  # fmt: skip
RUNS = {"completed": "completed", "interrupted": "interrupted", "failed": "failed", "cancelled": "interrupted"}
RESULTS = {"completed": "completed", "failed": "failed", "cancelled": "cancelled", "interrupted": "cancelled"}
CHANGES = {
    "added": "create", "add": "create", "create": "create", "modified": "modify", "update": "modify", "deleted": "delete",
    "delete": "delete", "renamed": "rename",
}  # fmt: skip
KINDS = {
    "command_execution": "execute", "file_change": "edit", "mcp_tool_call": "mcp", "web_search": "fetch",
    "file_search": "search", "dynamic_tool_call": "other", "dynamic_tool": "other", "collab_agent_tool_call": "delegate",
}  # fmt: skip

SHELF = frozenset(
    f"thread.{word}"
    for word in (
        "archived", "unarchived", "settled", "unsettled", "snoozed", "unsnoozed", "pinned", "unpinned", "pin-reordered",
        "visited", "marked-unread",
    )
)  # fmt: skip
"""Where a thread lies in the window of T3 Code: nothing that happened in the session."""
WHOLE = ("tool.started", "tool.updated", "tool.progress")
"""Activities that `tool.completed` says whole."""

_any = msgspec.json.Decoder()


# ---------------------------------------------------------------- the recorder


class T3Recorder(Recorder):
    """Events of T3 Code as records. One group a database; a stream each thread."""

    harness = "t3code"
    secondary = True
    roots = (Root(".t3", env=("T3CODE_HOME",)),)
    places = (
        Place("userdata/state.sqlite", "table", QUERIES),
        Place("dev/state.sqlite", "table", QUERIES),
        Place("state.sqlite", "table", QUERIES),
    )
    versions = ()
    evidence = "documents"
    State = State
    state: State

    def __init__(self, out: Any, group: str) -> None:
        super().__init__(out, group)
        self._thread = ""

    @classmethod
    def claims(cls, head: bytes) -> bool:
        return head.startswith(b"SQLite format 3\0") and b"orchestration_events" in head

    def receive(self, source: Source, item: Line | Row) -> None:
        self._thread = ""
        if not isinstance(item, Row):
            return
        values = item.values
        match item.table:
            case "projection_projects":
                self._project(values.get("project_id"), values.get("workspace_root"))
            case "orchestration_events":
                row = msgspec.convert(values, EventRow)
                self._event(row, _whole(row.payload_json))
            case "orchestration_v2_events":
                row = msgspec.convert(values, EventV2Row)
                self._event_v2(row, _inner(_whole(row.payload_json)))
            case "provider_session_runtime":
                self._runtime(msgspec.convert(values, RuntimeRow))
            case _:
                self.main().add(Native(native_type=item.table, native_id=item.key, data=values))

    def main(self) -> StreamOut:
        """The thread at hand, else the first one, else a stream of the database."""
        name = self._thread or next(iter(self.state.threads), "")
        if name:
            return self._stream(name)
        return self.open(StreamKey(self.harness, self.group, "database"))

    # threads

    def _of(self, name: str) -> Thread:
        self._thread = name
        thread = self.state.threads.get(name)
        if thread is None:
            thread = self.state.threads[name] = Thread()
        return thread

    def _stream(self, name: str, said: dict[str, Any] | None = None) -> StreamOut:
        key = StreamKey(self.harness, name)
        found = self.out.stream(key)
        if found is not None:
            return found
        thread, said = self._of(name), said or {}
        folder = said.get("worktreePath") or self.state.projects.get(str(said.get("projectId")))
        branch = said.get("branch")
        thread.cwd = thread.root = folder if isinstance(folder, str) else None
        vcs = Vcs(type="git", branch=branch) if isinstance(branch, str) else None
        title, at = said.get("title"), said.get("createdAt")
        thread.title = title if isinstance(title, str) else None
        stream = self.open(
            key,
            started_at=at if isinstance(at, str) else None,
            workspace=Workspace(roots=[WorkspaceRoot(id="r1", path=thread.cwd, vcs=vcs)]) if thread.cwd else None,
            title=thread.title,
            lineage=_lineage(said),
        )
        for profile, facet, reason in (
            ("usage", "usage", "counted by the harness that ran the session, not here"),
            ("coding", "file_change.before", "no contents of files are kept"),
        ):
            stream.add(Capture(profile=profile, facet=facet, state="unavailable", reason=reason))
        return stream

    def _add(self, record: Record, at: str | None, turn: str | None = None, native_id: str | None = None) -> str:
        thread = self._of(self._thread)
        record.at = at
        record.native_id = native_id
        if not isinstance(record, Turn):
            record.turn_id = turn or thread.turn
        return self._stream(self._thread).add(record)

    def _project(self, ident: Any, folder: Any) -> None:
        if isinstance(ident, str) and isinstance(folder, str):
            self.state.projects[ident] = folder
        self.out.skip("project")

    def _settings(self, said: dict[str, Any], at: str | None, rule: str) -> None:
        """Model, mode and title where they are other than before."""
        thread = self._of(self._thread)
        model, title = fields_of(said.get("modelSelection")).get("model"), said.get("title")
        mode = said.get("interactionMode") if said.get("interactionMode") == "plan" else said.get("runtimeMode")
        changed = Config(
            model=model if isinstance(model, str) and model != thread.model else None,
            mode=mode if isinstance(mode, str) and mode != thread.mode else None,
            title=title if isinstance(title, str) and title != thread.title else None,
        )
        thread.model, thread.mode = changed.model or thread.model, changed.mode or thread.mode
        thread.title = changed.title or thread.title
        if changed.model or changed.mode or changed.title:
            self._add(changed, at)
        elif not self.out.noted():
            self.out.skip(rule)

    def _linked(self, agent: str, session: str, field: str, at: str | None) -> None:
        """The native session of a thread: this stream sees it, and T3 Code started it."""
        thread = self._of(self._thread)
        if f"{agent}/{session}" in thread.linked:
            return
        thread.linked.append(f"{agent}/{session}")
        for relation in ("observes", "spawned"):
            self._add(
                Link(
                    relation=relation,
                    target=LinkTarget(agent=agent, session_id=session),
                    evidence=Evidence(kind="native-field", field=field, value=session),
                ),
                at,
            )

    # the first table

    def _event(self, row: EventRow, said: dict[str, Any]) -> None:
        at, kind = row.occurred_at, row.event_type
        if row.aggregate_kind == "project" or kind.startswith("project."):
            self._project(said.get("projectId"), said.get("workspaceRoot"))
            return
        thread = self._of(row.stream_id)
        match kind:
            case "thread.created":
                self._stream(row.stream_id, said)
                self._settings(said, at, "thread-created")
            case "thread.message-sent":
                self._sent(thread, msgspec.convert(said, Sent), at)
            case "thread.turn-start-requested" | "thread.meta-updated":
                self._settings(said, at, kind)
            case "thread.runtime-mode-set" | "thread.interaction-mode-set":
                self._settings(said, at, kind)
            case "thread.session-set":
                self._session_set(thread, msgspec.convert(fields_of(said.get("session")), SessionState), at)
            case "thread.activity-appended":
                self._activity(thread, msgspec.convert(said.get("activity"), Activity), at)
            case "thread.approval-response-requested":
                self._decided(thread, said.get("requestId"), said.get("decision"), at)
            case "thread.turn-diff-completed":
                self._diff(thread, said, at)
            case _ if kind in SHELF:
                self.out.skip("shelf")
            case _:
                if kind not in KNOWN:
                    self.out.count(f"unexpected:{kind}")
                self._add(Native(native_type=kind, data=said), at, native_id=row.event_id)

    def _sent(self, thread: Thread, sent: Sent, at: str | None) -> None:
        ident, turn = sent.messageId or sent.id or "", sent.turnId or sent.runId
        if sent.streaming:
            known = thread.partial.get(ident, "")
            # V1 says what is new, V2 the words as they stand.
            thread.partial[ident] = sent.text if sent.id else known + sent.text
            self.out.skip("message-delta")
            return
        text = sent.text or thread.partial.get(ident, "")
        thread.partial.pop(ident, None)
        self._said(thread, ident, sent.role, text, turn, at, sent)

    def _said(
        self,
        thread: Thread,
        ident: str,
        role: str,
        text: str,
        turn: str | None,
        at: str | None,
        sent: Sent | None = None,
    ) -> None:
        digest = sha256(text)
        if thread.messages.get(ident) == digest:
            self.out.skip("message-restated")
            return
        content: list[Block] = [Text(text=text)] if text else []
        for one in (sent.attachments if sent else None) or []:
            kind = fields_of(one).get("mimeType")
            if isinstance(kind, str) and kind.startswith("image/"):
                content.append(Image(media_type=kind))
            else:
                content.append(Other(meta={"dev.asrd.block": one}))
        human = role == "user" and (sent is None or sent.createdBy in (None, "user"))
        author = {"assistant": "agent", "system": "harness"}.get(role, "human" if human else "agent")
        thread.messages[ident] = digest
        thread.records[ident] = self._add(
            Message(
                role=role,
                author=author,
                origin="prompt" if human else "agent" if role == "user" else "injected" if role == "system" else None,
                message_id=ident or None,
                content=content,
                supersedes=thread.records.get(ident),
            ),
            at,
            turn,
            ident or None,
        )

    def _session_set(self, thread: Thread, session: SessionState, at: str | None) -> None:
        """A turn runs while the session names it; what was not closed when it ended is said as far as it came."""
        active = session.activeTurnId
        if active is not None and active != thread.turn:
            thread.turn, thread.changed = active, []
            self._add(Turn(turn_id=active, phase="start", trigger="prompt"), at)
        elif active is None and thread.turn is not None and session.status not in ("running", "starting"):
            turn = thread.turn
            for ident, text in list(thread.partial.items()):
                self._said(thread, ident, "assistant", text, turn, at)
            thread.partial.clear()
            status = {"interrupted": "interrupted", "stopped": "interrupted", "error": "failed"}.get(session.status)
            error = Error(message=session.lastError) if session.lastError else None
            self._add(Turn(turn_id=turn, phase="end", status=status or "completed", error=error), at)
            thread.turn = None
        if not self.out.noted():
            self.out.skip("session-set")

    def _activity(self, thread: Thread, told: Activity, at: str | None) -> None:
        payload, turn = fields_of(told.payload), told.turnId
        at = told.createdAt or at
        match told.kind:
            case "tool.completed":
                self._tool(thread, told, payload, at)
            case _ if told.kind in WHOLE:
                self.out.skip("tool-under-way")
            case "approval.requested":
                request = payload.get("requestId")
                meta = {"dev.asrd.request": request, "dev.asrd.kind": payload.get("requestType")}
                self._add(Approval(phase="requested", meta=meta), at, turn, told.id)
            case "approval.resolved":
                self._decided(thread, payload.get("requestId"), payload.get("decision"), at)
            case "turn.plan.updated":
                self._plan(payload.get("plan"), "step", told.payload, told.kind, at, turn)
            case "context-compaction":
                self._add(Compaction(meta={"dev.asrd.detail": payload.get("detail")}), at, turn, told.id)
            case "reasoning":
                self._reasoning(thread, told, payload, at)
            case _:
                data = {"summary": told.summary, "payload": told.payload}
                self._add(Native(native_type=f"activity/{told.kind}", data=data), at, turn, told.id)

    def _reasoning(self, thread: Thread, told: Activity, payload: dict[str, Any], at: str | None) -> None:
        detail, delta = payload.get("detail"), payload.get("delta")
        name = f"reasoning:{told.id}"
        if not isinstance(detail, str):
            thread.partial[name] = thread.partial.get(name, "") + (delta if isinstance(delta, str) else "")
            self.out.skip("message-delta")
            return
        thread.partial.pop(name, None)
        message = Message(role="assistant", author="agent", content=[Thinking(text=detail)])
        message.supersedes = thread.records.get(name)
        thread.records[name] = self._add(message, at, told.turnId, told.id)

    def _tool(self, thread: Thread, told: Activity, payload: dict[str, Any], at: str | None) -> None:
        """A tool that is done: what it was asked and what it came to, as the provider's own item says."""
        data = fields_of(payload.get("data"))
        item = fields_of(data.get("item")) or data
        kind = payload.get("itemType")
        ident = next(
            (v for v in (item.get("id"), data.get("toolUseId"), payload.get("toolCallId")) if isinstance(v, str)), None
        )
        name = next(
            (v for v in (data.get("toolName"), item.get("tool"), item.get("type"), kind) if isinstance(v, str)), "tool"
        )
        given = data.get("input", item.get("arguments"))
        if given is None:
            given = {k: item[k] for k in ("command", "cwd", "changes", "query") if k in item}
        call = ident or told.id
        self._add(
            ToolCall(
                call_id=call,
                call_id_source=None if ident else "derived",
                name=name,
                kind=KINDS.get(kind, "other") if isinstance(kind, str) else "other",
                title=told.summary,
                input=_arguments(given),
            ),
            at,
            told.turnId,
            ident,
        )
        code, output, result = (
            item.get("exitCode"),
            item.get("aggregatedOutput"),
            data.get("result", item.get("result")),
        )
        command, status = item.get("command"), item.get("status")
        content: list[Block] = [Text(text=output)] if isinstance(output, str) and output else []
        if result is not None:
            content.append(Text(text=result) if isinstance(result, str) else Other(meta={"dev.asrd.block": result}))
        ran: Exec | None = None
        if kind == "command_execution":
            ran = Exec(command=command if isinstance(command, str) else None)
            ran.exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
            folder, took = item.get("cwd"), item.get("durationMs")
            ran.cwd = within(folder, self._roots(thread)) if isinstance(folder, str) else None
            ran.duration_ms = took if isinstance(took, int | float) else None
        words = {"completed": "completed", "failed": "failed", "declined": "denied"}
        done = words.get(status, "unknown") if isinstance(status, str) else "unknown"
        self._add(
            ToolResult(call_id=call, linkage="exact", status=done, content=content or None, exec=ran),
            at,
            told.turnId,
            ident,
        )
        self._commits(ran, output, call, at, told.turnId)
        for change in _objects(item.get("changes")):
            path, what, diff = change.get("path"), change.get("kind"), change.get("diff")
            word = fields_of(what).get("type") if isinstance(what, dict) else what
            if not isinstance(path, str) or not isinstance(word, str) or word not in CHANGES:
                continue
            place = within(path, self._roots(thread))
            thread.changed.append(place.path)
            self._add(
                FileChange(
                    path=place,
                    change=CHANGES[word],
                    call_id=call,
                    diff=diff if isinstance(diff, str) else None,
                    applied=done == "completed",
                    evidence="reported",
                ),
                at,
                told.turnId,
            )

    def _commits(self, ran: Exec | None, output: Any, call: str, at: str | None, turn: str | None) -> None:
        for commit in commits(ran.command if ran else None, output if isinstance(output, str) else ""):
            self._add(VcsAction(action="commit", commit=commit, evidence="observed", call_id=call), at, turn)

    def _roots(self, thread: Thread) -> list[WorkspaceRoot] | None:
        return [WorkspaceRoot(id="r1", path=thread.root)] if thread.root else None

    def _decided(self, thread: Thread, request: Any, decision: Any, at: str | None) -> None:
        if not isinstance(request, str) or request in thread.decided:
            self.out.skip("approval-restated")
            return
        thread.decided.append(request)
        word = DECISIONS.get(decision) if isinstance(decision, str) else None
        meta: dict[str, Any] = {"dev.asrd.request": request}
        if word is None:
            meta["dev.asrd.decision"] = decision
        self._add(Approval(phase="decided", decision=word, by="human" if word else None, meta=meta), at)

    def _plan(self, steps: Any, name: str, whole: Any, kind: str, at: str | None, turn: str | None) -> None:
        items: list[PlanItem] = []
        for step in _objects(steps):
            text, status = step.get(name), step.get("status")
            if isinstance(text, str) and isinstance(status, str) and status in STEPS:
                items.append(PlanItem(text=text, status=STEPS[status]))
        if items and len(items) == len(_objects(steps)):
            self._add(Plan(items=items), at, turn)
        else:
            self._add(Native(native_type=kind, data=whole), at, turn)

    def _diff(self, thread: Thread, said: dict[str, Any], at: str | None) -> None:
        """What a turn changed in the working tree, as a comparison of checkpoints says; a change that no tool told of."""
        turn = said.get("turnId")
        files = _objects(said.get("files"))
        for one in files:
            path, kind = one.get("path"), one.get("kind")
            if isinstance(path, str) and isinstance(kind, str) and kind in CHANGES and path not in thread.changed:
                meta = {"dev.asrd.lines": {"added": one.get("additions"), "deleted": one.get("deletions")}}
                self._add(
                    FileChange(
                        path=within(path, self._roots(thread)),
                        change=CHANGES[kind],
                        applied=True,
                        evidence="derived",
                        meta=meta,
                    ),
                    at,
                    turn if isinstance(turn, str) else None,
                )
        self._add(
            Native(native_type="thread.turn-diff-completed", data=said), at, turn if isinstance(turn, str) else None
        )

    def _runtime(self, row: RuntimeRow) -> None:
        """The native session a thread goes on with."""
        self._of(row.thread_id)
        agent, field = CURSORS.get(row.provider_name, ("", ""))
        cursor = fields_of(_any.decode(row.resume_cursor_json)) if row.resume_cursor_json else {}
        session = cursor.get(field)
        if isinstance(session, str) and session:
            self._linked(agent, session, f"provider_session_runtime.resume_cursor_json.{field}", None)
        elif cursor:
            told = {"provider": row.provider_name, "cursor": sorted(cursor)}
            self._add(Native(native_type="provider_session_runtime", data=told), None)
        if not self.out.noted():
            self.out.skip("provider-session")

    # the second table

    def _event_v2(self, row: EventV2Row, said: dict[str, Any]) -> None:
        at, kind = row.occurred_at, row.event_type
        thread = self._of(row.thread_id)
        match kind:
            case "thread.created":
                self._stream(row.thread_id, said)
                self._settings(said, at, "thread-created")
            case _ if kind in SHELF:
                self.out.skip("shelf")
            case _ if kind.startswith("thread.") and kind != "thread.deleted":
                self._settings(said, at, "thread-restated")
            case "run.created" | "run.updated":
                self._run(thread, msgspec.convert(said, Run), at)
            case "message.updated":
                self._sent(thread, msgspec.convert(said, Sent), at)
            case "turn-item.updated":
                self._item(thread, msgspec.convert(said, Item), said, at)
            case "provider-thread.updated":
                self._native(said, at)
            case "provider-session.attached" | "provider-session.updated":
                folder = said.get("cwd")
                if isinstance(folder, str) and folder != thread.cwd:
                    thread.cwd = folder
                    self._add(Config(cwd=folder), at)
                else:
                    self.out.skip("provider-session")
            case "subagent.updated":
                self._subagent(thread, said, at)
            case "runtime-request.updated" if said.get("decision") is not None:
                self._decided(thread, said.get("id"), said.get("decision"), at)
            case "plan.updated" if said.get("kind") == "todo_list":
                self._once(thread, f"plan:{said.get('id')}", said, lambda: self._todo(said, at))
            case "node.updated" | "run-attempt.created" | "run-attempt.updated" | "runtime-request.updated":
                self.out.skip(kind)
            case _:
                if kind not in KNOWN:
                    self.out.count(f"unexpected:{kind}")
                self._add(Native(native_type=kind, data=said), at, row.run_id, row.event_id)

    def _once(self, thread: Thread, name: str, said: Any, tell: Any) -> None:
        """Tells what an object says where it says something new."""
        digest = sha256(msgspec.json.encode(said))
        if thread.items.get(name) == digest:
            self.out.skip("restated")
            return
        thread.items[name] = digest
        tell()

    def _todo(self, said: dict[str, Any], at: str | None) -> None:
        run = said.get("runId")
        self._plan(said.get("steps"), "text", said, "plan.updated", at, run if isinstance(run, str) else None)

    def _run(self, thread: Thread, run: Run, at: str | None) -> None:
        if run.id != thread.turn and run.id not in thread.ended and run.status not in ("preparing", "queued"):
            thread.turn = run.id
            trigger = "agent" if run.delegatedCompletion else "prompt"
            self._add(Turn(turn_id=run.id, phase="start", trigger=trigger), at)
        if run.status in RUNS and run.id not in thread.ended:
            thread.ended.append(run.id)
            self._add(Turn(turn_id=run.id, phase="end", status=RUNS[run.status]), at)
            thread.turn = None if thread.turn == run.id else thread.turn
        if not self.out.noted():
            self.out.skip("run-restated")

    def _native(self, said: dict[str, Any], at: str | None) -> None:
        reference = fields_of(said.get("nativeThreadRef"))
        driver, session = reference.get("driver"), reference.get("nativeId")
        if isinstance(driver, str) and isinstance(session, str) and reference.get("strength") != "none":
            self._linked(DRIVERS.get(driver, driver), session, "provider-thread.updated.nativeThreadRef.nativeId", at)
        if not self.out.noted():
            self.out.skip("provider-thread")

    def _subagent(self, thread: Thread, said: dict[str, Any], at: str | None) -> None:
        child = said.get("childThreadId")
        if isinstance(child, str) and f"t3code/{child}" not in thread.linked:
            thread.linked.append(f"t3code/{child}")
            self._add(
                Link(
                    relation="spawned",
                    target=LinkTarget(agent=self.harness, session_id=child),
                    evidence=Evidence(kind="native-field", field="subagent.updated.childThreadId", value=child),
                ),
                at,
            )
        name = f"subagent:{said.get('id')}"
        self._once(thread, name, said, lambda: self._add(Native(native_type="subagent.updated", data=said), at))

    def _item(self, thread: Thread, item: Item, said: dict[str, Any], at: str | None) -> None:
        turn = item.runId
        match item.type:
            case "user_message" | "assistant_message" if item.messageId:
                if item.streaming:
                    self.out.skip("message-delta")
                else:
                    role = "user" if item.type == "user_message" else "assistant"
                    sent = Sent(role, item.text or "", id=item.messageId, createdBy=_word(said.get("createdBy")))
                    self._said(thread, item.messageId, role, item.text or "", turn, at, sent)
            case "reasoning":
                if item.streaming or not item.text:
                    self.out.skip("message-delta")
                    return
                message = Message(role="assistant", author="agent", content=[Thinking(text=item.text)])
                self._once(thread, item.id, item.text, lambda: self._add(message, at, turn, item.id))
            case "command_execution" | "file_change" | "file_search" | "web_search" | "dynamic_tool":
                self._item_tool(thread, item, said, at)
            case "compaction":
                told = Compaction(
                    summary=item.summary, tokens_before=item.beforeTokenCount, tokens_after=item.afterTokenCount
                )
                self._once(thread, item.id, said.get("summary"), lambda: self._add(told, at, turn, item.id))
            case "todo_list":
                self._once(
                    thread, item.id, item.steps, lambda: self._plan(item.steps, "text", said, item.type, at, turn)
                )
            case "approval_request":
                asked = Approval(phase="requested", meta={"dev.asrd.request": item.requestId})
                self._once(thread, item.id, item.requestId, lambda: self._add(asked, at, turn, item.id))
            case _:
                native = Native(native_type=f"turn-item/{item.type}", data=said)
                self._once(thread, item.id, said, lambda: self._add(native, at, turn, item.id))

    def _item_tool(self, thread: Thread, item: Item, said: dict[str, Any], at: str | None) -> None:
        """A tool: its call when it is first seen, its result when it is done."""
        ident = fields_of(item.nativeItemRef).get("nativeId")
        call = ident if isinstance(ident, str) else item.id
        if item.id not in thread.called:
            thread.called.append(item.id)
            given = item.input if item.input is not None else {
                k: said[k] for k in ("fileName", "pattern", "patterns", "oldStr", "newStr") if said.get(k) is not None
            }  # fmt: skip
            self._add(
                ToolCall(
                    call_id=call,
                    name=item.toolName or item.type,
                    kind=KINDS.get(item.type, "other"),
                    title=item.title,
                    input={"command": given}
                    if item.type == "command_execution" and isinstance(given, str)
                    else _arguments(given),
                ),
                at,
                item.runId,
                item.id,
            )
        status = RESULTS.get(item.status or "")
        if status is not None and item.id not in thread.answered:
            thread.answered.append(item.id)
            ran: Exec | None = None
            if item.type == "command_execution":
                ran = Exec(command=item.input if isinstance(item.input, str) else None, exit_code=item.exitCode)
            output = item.output if item.output is not None else said.get("results")
            content: list[Block] = []
            if output is not None:
                content.append(Text(text=output) if isinstance(output, str) else Other(meta={"dev.asrd.block": output}))
            result = ToolResult(call_id=call, linkage="exact", status=status, content=content or None, exec=ran)
            self._add(result, at, item.runId, item.id)
            self._commits(ran, output, call, at, item.runId)
            if item.type == "file_change" and item.fileName:
                self._add(
                    FileChange(
                        path=within(item.fileName, self._roots(thread)),
                        change="modify",
                        call_id=call,
                        diff=item.diffStr,
                        applied=status == "completed",
                        evidence="reported",
                    ),
                    at,
                    item.runId,
                )
        if not self.out.noted():
            self.out.skip("item-restated")


KNOWN = frozenset(
    (
        "thread.deleted", "thread.turn-interrupt-requested", "thread.user-input-response-requested",
        "thread.checkpoint-revert-requested", "thread.reverted", "thread.session-stop-requested",
        "thread.proposed-plan-upserted", "provider-session.detached", "provider-turn.updated", "plan.updated",
        "checkpoint-scope.created", "checkpoint.captured", "checkpoint.rollback-requested", "context-handoff.updated",
        "context-transfer.created", "context-transfer.updated",
    )
)  # fmt: skip
"""Events with no standard place; any other is one that this version does not know."""


# ---------------------------------------------------------------- how it says things


def _lineage(said: dict[str, Any]) -> Lineage:
    """V2 names the thread a thread came from; a thread of V1 has none."""
    told = fields_of(said.get("lineage"))
    parent, relation = told.get("parentThreadId"), told.get("relationshipToParent")
    if isinstance(parent, str):
        return Lineage(
            root=False,
            parent=LineageParent(agent="t3code", session_id=parent),
            relation="spawned_by" if relation == "subagent" else "forked_from",
            evidence=Evidence(kind="native-field", field="lineage.parentThreadId", value=parent),
        )
    return Lineage(root=True) if said else Lineage()


def _whole(payload: str) -> dict[str, Any]:
    """An event's payload. Raises msgspec.DecodeError and, when it is no object, msgspec.ValidationError."""
    value = _any.decode(payload)
    if not isinstance(value, dict):
        raise msgspec.ValidationError("an event's payload is no object")
    return cast("dict[str, Any]", value)


def _inner(value: Any) -> dict[str, Any]:
    """The object an event of V2 holds: the payload, also where the whole event is stored."""
    fields = fields_of(value)
    inner = fields.get("payload")
    return fields_of(inner) if isinstance(inner, dict) and "type" in fields and "occurredAt" in fields else fields


def _objects(value: Any) -> list[dict[str, Any]]:
    return [fields_of(v) for v in cast("list[Any]", value)] if isinstance(value, list) else []


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _arguments(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {"raw": given}


RECORDER = T3Recorder
