"""OpenClaw (Clawdbot and Moltbot before): Pi's entries, since 2026 in the rows of one SQLite database an agent.

Where: `~/.openclaw` (OPENCLAW_STATE_DIR; `~/.moltbot`, `~/.clawdbot` before):
`agents/<agent>/agent/openclaw-agent.sqlite` (WAL), and of the JSONL era `agents/<agent>/sessions/<session id>.jsonl`
with `.jsonl.reset.<time>` and `.jsonl.deleted.<time>` beside it and `sessions.json`, the list of them. All sources of one
agent feed one recorder: a session that was moved into the database is the same session. Seen: 2026.9.6 (schema 23), and
published files of the JSONL era (entry version 3).

    schema_meta        role primary, schema_version 23, app_version 2026.9.6
    session_nodes      session_key "agent:main:explicit:s1-session", current_session_id, created_via operator|spawn|cron|…,
                       parent_session_key, spawned_by, fork_source_session_id, label
    session_windows    session_id, session_key, previous_session_id, reason initial|reset|rollover|fork|…, parent_session_key
    transcript_events  session_id, seq, event_json | event_zstd:
      {"type":"session","version":4,"id":"s1-session","timestamp":"2026-11-30T04:51:53.466Z","cwd":"/home/dev/app"}
      {"type":"message","id":"143dc157-…","parentId":"f914283f-…","timestamp":"…","message":{"role":"user","content":"…",
        "idempotencyKey":"6be6b68f-…:user","__openclaw":{"senderIsOwner":true}}}
      {"type":"message",…,"message":{"role":"toolResult","toolCallId":"call_1","toolName":"exec","content":[…],
        "details":{"status":"completed","exitCode":101,"durationMs":1512,"cwd":"/home/dev/app"},"isError":false}}
      {"type":"custom","customType":"openclaw.cache-ttl","data":{…},…}
    trajectory_runtime_events  session_id, seq, run_id, event_json: session.started, trace.metadata, context.compiled,
                       prompt.submitted, tool.call, tool.result, model.completed, trace.artifacts, session.ended

What is particular
    - A run is a turn: messages name it in `__openclaw.runId`, a prompt in `idempotencyKey`. A prompt given with `--local`
      has an id of its own there; the run that answers it next is the same turn, under the prompt's id.
    - The trace repeats the transcript. Of it are taken: the version, the total of a run, how it ended, and exit codes that
      the transcript has not (runs that Codex carries out).
    - A sub-agent's session names its parent by key; the parent's result names the child by key (`details.childSessionKey`).
      What a sub-agent came to arrives later, as a message with `provenance.kind` inter_session, or in an answer whose run
      is `announce:…`: neither is a person's prompt.
    - The ACP bridge writes "[Working directory: …]" before a prompt; the ACP session id is part of the session's key.
    - Messages mirrored from Codex have usage only on the last of a run (`runTerminal`), for the whole run; the zeros on the
      others are no figures. A call that stands in two forms is taken in the one that was carried out.
    - `parentId` may name an entry that is nowhere: the order is `seq`. Rows may be compressed later: same content, no news.
    - A tool may be called through another one (Tool Search, on by default since 2026.9): `tool_call` with `id` and `args`,
      its result in `details.result`. It is one call, under the name the model gave, with the kind, the exit code, the
      change and the link of the tool it carried out. Each is said once more by a message `openclaw.nested-tool.v1`, which
      for a script (`tool_search_code`, Code Mode) is the only word of the calls it made: there it is a call and its result.
    - What is sent (`message`, `sessions_send`) and remembered (`MEMORY.md`, `memory/`) is told from calls that did not fail.
    - Not read: state/openclaw.sqlite (what it says of sub-agents and ACP stands in the agent's database too), auth tables.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, cast

import msgspec
import zstandard
from msgspec import Struct

from asrd.recorders.base import StreamKey, StreamOut, Writer, fields_of, from_ms, sha256, within
from asrd.recorders.pi import (
    MOST_CALLS,
    AssistantMessage,
    Call,
    CallBlock,
    CustomEntry,
    CustomMessage,
    Entry,
    EntryRecorder,
    MessageEntry,
    NativeMessage,
    ResultMessage,
    SessionEntry,
    SessionState,
    UserMessage,
    owned,
    read_entry,
    there,
)
from asrd.records import (
    Approval,
    Block,
    Capture,
    Config,
    Error,
    Evidence,
    Exec,
    FileChange,
    Inference,
    Lineage,
    LineageParent,
    Link,
    LinkTarget,
    MemoryWrite,
    Message,
    MessageSent,
    Native,
    Text,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, RowQuery, Source

QUERIES = (
    RowQuery("schema_meta", "SELECT meta_key, schema_version, app_version FROM schema_meta", ("meta_key",)),
    RowQuery(
        "session_nodes",
        "SELECT session_key, current_session_id, created_via, parent_session_key, spawned_by,"
        " fork_source_session_id, fork_source_entry_id, label FROM session_nodes ORDER BY session_key",
        ("session_key",),
    ),
    RowQuery(
        "session_windows",
        "SELECT session_id, session_key, previous_session_id, reason, parent_session_key, spawned_by, acp_owned,"
        " agent_harness_id, created_at FROM session_windows ORDER BY created_at, session_id",
        ("session_id",),
    ),
    RowQuery(
        "transcript_events",
        "SELECT rowid AS rowid, session_id, seq, event_json, event_zstd FROM transcript_events ORDER BY rowid",
        ("session_id", "seq"),
        since="rowid",
    ),
    RowQuery(
        "trajectory_runtime_events",
        "SELECT rowid AS rowid, session_id, seq, run_id, created_at,"
        " CASE WHEN json_valid(event_json) THEN json_extract(event_json, '$.type') END AS type,"
        " CASE WHEN json_valid(event_json) THEN json_extract(event_json, '$.ts') END AS ts,"
        " CASE WHEN NOT json_valid(event_json) THEN event_json"
        "  WHEN json_extract(event_json, '$.type') = 'trace.metadata' THEN json_extract(event_json, '$.data.harness')"
        "  WHEN json_extract(event_json, '$.type') = 'model.completed' THEN json_extract(event_json, '$.data.usage')"
        "  WHEN json_extract(event_json, '$.type') IN ('session.started', 'session.ended', 'tool.result')"
        "  THEN json_extract(event_json, '$.data') END AS data"
        " FROM trajectory_runtime_events ORDER BY rowid",
        ("session_id", "seq"),
        since="rowid",
    ),
)

MOST_EVENT = 64 * 1024 * 1024
NESTED = "openclaw.nested-tool.v1"
"""The message that says a call which another call made."""
"""Bytes an event may have once decompressed (the schema allows 4 MiB)."""


# ---------------------------------------------------------------- native rows


class MetaRow(Struct):
    meta_key: str
    app_version: str | None = None


class NodeRow(Struct):
    session_key: str
    current_session_id: str
    created_via: str | None = None
    parent_session_key: str | None = None
    spawned_by: str | None = None
    fork_source_session_id: str | None = None
    fork_source_entry_id: str | None = None
    label: str | None = None


class WindowRow(Struct):
    session_id: str
    session_key: str
    previous_session_id: str | None = None
    reason: str | None = None
    parent_session_key: str | None = None
    spawned_by: str | None = None
    acp_owned: int | None = None
    agent_harness_id: str | None = None
    created_at: int | None = None


class EventRow(Struct):
    session_id: str
    seq: int
    event_json: str | None = None
    event_zstd: bytes | None = None


class TraceRow(Struct):
    session_id: str
    seq: int
    run_id: str | None = None
    created_at: int | None = None
    type: str | None = None
    ts: str | None = None
    data: str | None = None


class ListedSession(Struct):
    """One entry of `sessions.json`."""

    sessionId: str | None = None
    spawnedBy: str | None = None
    parentSessionKey: str | None = None
    label: str | None = None


class TraceUsage(Struct):
    input: int | None = None
    output: int | None = None
    cacheRead: int | None = None
    cacheWrite: int | None = None
    reasoningTokens: int | None = None
    total: int | None = None


# ---------------------------------------------------------------- state


class Window(Struct):
    """What the tables say of a session: its key, and where it came from."""

    key: str
    parent_key: str | None = None
    field: str = ""
    previous: str | None = None
    reason: str | None = None
    harness: str | None = None


class Awaited(Struct):
    """A child that a result named before the tables did."""

    session: str
    call: str | None


class State(Struct):
    """All sessions of one agent."""

    version: str | None = None
    sessions: dict[str, SessionState] = {}
    windows: dict[str, Window] = {}
    current: dict[str, str] = {}
    """The session a key stands for, by key."""
    via: dict[str, str] = {}
    forks: dict[str, str] = {}
    """The session a key's session was forked from, by key."""
    labels: dict[str, str] = {}
    elsewhere: str | None = None
    """The session of a file that does not lie where session files lie: what its header says."""
    awaited: dict[str, list[Awaited]] = {}
    """By the child's key."""


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_FILE = re.compile(r"agents/[^/]+/sessions/([^/.]+)[^/]*")
_OWN = re.compile(
    rb'"agentHarnessId":|session_windows|transcript_events|agent:[\w.-]+:(?:explicit|subagent|acp-bridge):'
)
"""What the first pages of an agent's database hold: its schema, or rows of its sessions."""
_MEMORY = re.compile(r"(?:^|/)(?:MEMORY\.md|memory/[^/]+\.md)$")
_DIRECTORY = re.compile(r"\[Working directory: [^\n]*\]\n\n")
_HARNESS_MODELS = {"delivery-mirror", "gateway-injected"}


class OpenClawRecorder(EntryRecorder):
    """One group an agent: its database, its session files, and their list."""

    harness = "openclaw"
    vendor = "dev.openclaw"
    roots = (
        Root(".openclaw", env=("OPENCLAW_STATE_DIR",)),
        Root(".moltbot", env=("MOLTBOT_STATE_DIR",)),
        Root(".clawdbot", env=("CLAWDBOT_STATE_DIR",)),
    )
    places = (
        Place("agents/*/sessions/sessions.json", "document", sidecar=True),
        Place("agents/*/sessions/*.jsonl"),
        Place("agents/*/sessions/*.jsonl.reset.*"),
        Place("agents/*/sessions/*.jsonl.deleted.*"),
        Place("agents/*/agent/openclaw-agent.sqlite", "table", queries=QUERIES),
    )
    versions = ("2026.9.6",)
    State = State

    def __init__(self, out: Writer, group: str) -> None:
        super().__init__(out, group)
        self._session: str | None = None
        """The session of the item at hand: where its losses go."""

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """Everything of one agent is one group."""
        if path.endswith(".trajectory.jsonl"):
            return None  # the trace, which repeats the transcript
        parts = path.split("/")
        if len(parts) != 4:
            return Located(group=path, name=path)
        order = "2" if path.endswith(".sqlite") else "1/" + path
        return Located(group="/".join(parts[:2]), name=path, order=order)

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether it is an agent's database, or a session file of the JSONL era (Pi's entries, with OpenClaw's own)."""
        if head.startswith(b"SQLite format 3"):
            return _OWN.search(head) is not None
        return owned(head)

    def receive(self, source: Source, item: Line | Row) -> None:
        self._session = None
        if isinstance(item, Line):
            found = _FILE.fullmatch(source.path)
            self._event(source, found.group(1) if found else None, item.data)
        elif item.data:
            self._listed(item)
        elif item.table == "schema_meta":
            self._meta(msgspec.convert(item.values, MetaRow))
        elif item.table == "session_nodes":
            self._node(msgspec.convert(item.values, NodeRow))
        elif item.table == "session_windows":
            self._window(msgspec.convert(item.values, WindowRow))
        elif item.table == "transcript_events":
            row = msgspec.convert(item.values, EventRow)
            self._session = row.session_id
            self._event(source, row.session_id, _content_of(row))
        else:
            row = msgspec.convert(item.values, TraceRow)
            self._session = row.session_id
            self._trace(row)

    # sessions

    def key_of(self, session: str) -> StreamKey:
        """Session ids that a person chose are unique in one agent only."""
        agent = self.group.removeprefix("agents/") if self.group.startswith("agents/") else ""
        return StreamKey(self.harness, session, "" if _UUID.fullmatch(session) else agent)

    def main(self) -> StreamOut:
        return self._stream(self._session or "store")

    def _stream(self, session: str) -> StreamOut:
        key = self.key_of(session)
        found = self.out.stream(key)
        if found is not None:
            return found
        stream = self.open(key, version=self.state.version, lineage=self._lineage(session), meta=self._about(session))
        self.facts(stream)
        return stream

    def _of(self, session: str) -> SessionState:
        state: State = self.state
        found = state.sessions.get(session)
        if found is None:
            found = state.sessions[session] = SessionState(version=3)
        return found

    def facts(self, stream: StreamOut) -> None:
        """What OpenClaw's stores lack of what the profiles promise."""
        window = self.state.windows.get(stream.key.session_id)
        facets = [
            ("coding", "file_change.before", "partial", "known where a read, a write or a patch shows the whole file"),
            (
                "usage",
                "inference.auxiliary",
                "partial",
                "requests of a compaction, and to remember before one, are in no file",
            ),
            (
                "coding",
                "approval",
                "partial",
                "decided outside the session's store; that one was asked for may stand here",
            ),
        ]
        if window is not None and window.harness not in (None, "openclaw"):
            facets.append(
                ("usage", "inference", "partial", "one figure for all requests of a run another harness does")
            )
        for profile, facet, state, reason in facets:
            stream.add(Capture(profile=profile, facet=facet, state=state, reason=reason))

    def _about(self, session: str) -> dict[str, Any] | None:
        window = self.state.windows.get(session)
        if window is None:
            return None
        meta: dict[str, Any] = {"dev.openclaw.sessionKey": window.key}
        if via := self.state.via.get(window.key):
            meta["dev.openclaw.createdVia"] = via
        if label := self.state.labels.get(window.key):
            meta["dev.openclaw.label"] = label
        return meta

    def _lineage(self, session: str) -> Lineage:
        """Where a session came from, as its rows say; `{}` while no row of it was read."""
        state: State = self.state
        window = state.windows.get(session)
        if window is None:
            return Lineage()
        fork = state.forks.get(window.key)
        if fork is not None and fork != session:
            return self._from(fork, "forked_from", "session_nodes.fork_source_session_id", fork)
        if window.previous is not None and window.previous != session:
            relation = "forked_from" if window.reason == "fork" else "resumed_from"
            return self._from(window.previous, relation, "session_windows.previous_session_id", window.previous)
        if window.parent_key is not None:
            parent = state.current.get(window.parent_key)
            if parent is None:
                return Lineage()
            return self._from(parent, "spawned_by", window.field, window.parent_key)
        return Lineage(root=True)

    def _from(self, session: str, relation: str, field: str, value: str) -> Lineage:
        key = self.key_of(session)
        return Lineage(
            root=False,
            parent=LineageParent(agent=self.harness, session_id=session, namespace=key.namespace or None),
            relation=relation,
            evidence=Evidence(kind="native-field", field=field, value=value),
        )

    # rows about sessions

    def _meta(self, row: MetaRow) -> None:
        if row.meta_key == "primary" or self.state.version is None:
            self.state.version = row.app_version or self.state.version
        self.out.skip("fact-kept-for-headers")

    def _node(self, row: NodeRow) -> None:
        state: State = self.state
        state.current[row.session_key] = row.current_session_id
        for kept, value in ((state.via, row.created_via), (state.labels, row.label)):
            if value:
                kept[row.session_key] = value
        if row.fork_source_session_id:
            state.forks[row.session_key] = row.fork_source_session_id
        self._known(row.session_key, row.current_session_id)
        self._accounted()

    def _window(self, row: WindowRow) -> None:
        field = "session_windows.parent_session_key" if row.parent_session_key else "session_windows.spawned_by"
        self._learn(
            row.session_id,
            Window(
                key=row.session_key,
                parent_key=row.parent_session_key or row.spawned_by,
                field=field,
                previous=row.previous_session_id,
                reason=row.reason,
                harness=row.agent_harness_id,
            ),
        )
        self._accounted()

    def _listed(self, item: Row) -> None:
        listed = msgspec.json.decode(item.data, type=dict[str, ListedSession])
        for key, one in listed.items():
            if one.sessionId is None:
                continue
            self.state.current.setdefault(key, one.sessionId)
            if one.label:
                self.state.labels[key] = one.label
            field = "sessions.json.parentSessionKey" if one.parentSessionKey else "sessions.json.spawnedBy"
            self._learn(one.sessionId, Window(key, one.parentSessionKey or one.spawnedBy, field))
        self._accounted()

    def _accounted(self) -> None:
        """A row about sessions is kept for headers and links, whether it made a record now or not."""
        if not self.out.noted():
            self.out.skip("fact-kept-for-headers")

    def _learn(self, session: str, window: Window) -> None:
        state: State = self.state
        known = state.windows.get(session)
        state.windows[session] = window
        state.current.setdefault(window.key, session)
        stream = self.out.stream(self.key_of(session))
        if known is None and stream is not None:
            self._late(stream, session)
        self._known(window.key, session)

    def _late(self, stream: StreamOut, session: str) -> None:
        """The rows of a session come after its header was written: what they say of its origin is a link."""
        lineage = self._lineage(session)
        if lineage.parent is None or lineage.evidence is None:
            return
        parent = lineage.parent
        target = LinkTarget(agent=parent.agent, session_id=parent.session_id, namespace=parent.namespace)
        stream.add(Link(relation=lineage.relation or "spawned_by", target=target, evidence=lineage.evidence))

    def _known(self, key: str, session: str) -> None:
        """A session's key is known now: links that waited for it are written."""
        for one in self.state.awaited.pop(key, ()):
            self._link(one.session, key, session, one.call)

    def _link(self, parent: str, key: str, child: str, call: str | None) -> None:
        target = self.key_of(child)
        self._stream(parent).add(
            Link(
                relation="spawned",
                target=LinkTarget(agent=self.harness, session_id=child, namespace=target.namespace or None),
                call_id=call,
                evidence=Evidence(kind="native-field", field="toolResult.details.childSessionKey", value=key),
            )
        )

    # events of a transcript

    def _event(self, source: Source, session: str | None, data: bytes) -> None:
        self._session = session
        try:
            entry = read_entry(data)
        except msgspec.ValidationError as error:
            if source.kind == "lines":
                raise
            self._unexpected(data, str(error))
            return
        if isinstance(entry, SessionEntry):
            if session is None:
                self.state.elsewhere = entry.id
            session = self._session = session or entry.id or "store"
            self._header(session, entry)
            return
        session = self._session = session or str(self.state.elsewhere or "store")
        state = self._of(session)
        if entry.id is not None:
            digest = _same(data)
            seen: dict[str, str] = state.extra.setdefault("digests", {})
            known = seen.get(entry.id)
            seen[entry.id] = digest
            if known == digest:
                self.out.skip("entry-seen-before")
                return
            if known is not None:
                self._rewritten(session, entry, data)
                return
        self.convert_entry(self._stream(session), state, entry)

    def _rewritten(self, session: str, entry: Entry, data: bytes) -> None:
        """An entry that stands there with another content: the first one was recorded and stays."""
        kept = Native(native_type="entry-rewritten", data=msgspec.json.decode(data), native_id=entry.id, at=entry.at)
        self._stream(session).add(kept)

    def _unexpected(self, data: bytes, why: str) -> None:
        value = msgspec.json.decode(data)
        kind = fields_of(value).get("type")
        if kind == "reset":  # `/new` or `/reset`: the context begins anew, the session goes on
            self.main().add(Native(native_type=kind, data=value, at=_text(fields_of(value).get("timestamp"))))
            return
        self.out.count(f"unexpected:{kind}")
        meta = {"dev.asrd.unexpected": why}
        self.main().add(Native(native_type=kind if isinstance(kind, str) else "unknown", data=value, meta=meta))

    def _header(self, session: str, entry: SessionEntry) -> None:
        state = self._of(session)
        key = self.key_of(session)
        if self.out.stream(key) is not None:
            if state.cwd is None and entry.cwd:
                state.cwd, state.started = entry.cwd, entry.at
                self._stream(session).add(Config(cwd=entry.cwd, at=entry.at))
                return
            self.out.skip("header-of-the-same-session")
            return
        state.key, state.cwd, state.started = key, entry.cwd, entry.at
        lineage = self._lineage(session)
        if lineage.root is None and lineage.parent is None and entry.parentSession:
            origin = entry.parentSession.rsplit("/", 1)[-1].split(".jsonl")[0]
            lineage = self._from(origin, "forked_from", "parentSession", entry.parentSession)
        if lineage.relation == "forked_from" and lineage.parent is not None:
            state.parent = lineage.parent.session_id
        stream = self.open(
            key,
            version=self.state.version,
            started_at=entry.at,
            lineage=lineage,
            cwd=entry.cwd,
            lossy=("thinking.signature", "text.signature"),
            meta={"dev.openclaw.formatVersion": entry.version, **(self._about(session) or {})},
        )
        self.facts(stream)

    def custom(self, stream: StreamOut, state: SessionState, entry: CustomEntry) -> None:
        """What OpenClaw keeps in its transcript beside the conversation."""
        if entry.customType == "openclaw.cache-ttl":
            self.out.skip("cache-bookkeeping")
            return
        data = fields_of(msgspec.json.decode(entry.data)) if there(entry.data) else {}
        if entry.customType == "model-snapshot" and data.get("modelId") == state.model:
            self.out.skip("model-snapshot-of-the-same-model")
            return
        if entry.customType == "model-snapshot" and isinstance(data.get("modelId"), str):
            state.model = data["modelId"]
            self.add(stream, state, entry, Config(model=state.model, meta={"dev.openclaw.snapshot": data}))
            return
        if entry.customType == "openclaw:prompt-error" and state.turn is not None:
            words = data.get("error")
            error = Error(message=words if isinstance(words, str) else None)
            run = data.get("runId")
            turn = (_turn_of(state, run) if isinstance(run, str) else None) or state.turn
            end = Turn(turn_id=turn, phase="end", status="failed", error=error, meta={"dev.openclaw.promptError": data})
            self.add(stream, state, entry, end)
            return
        super().custom(stream, state, entry)

    # runs

    def message(self, stream: StreamOut, state: SessionState, entry: MessageEntry, said: NativeMessage) -> None:
        """A message; one of a run that no prompt began starts that run's turn."""
        if isinstance(said, CustomMessage) and said.customType == NESTED and self._nested(stream, state, entry, said):
            return
        if isinstance(said, AssistantMessage | ResultMessage):
            run = fields_of(said.openclaw).get("runId")
            waiting = state.extra.pop("waiting", None)
            if isinstance(run, str) and waiting is not None and waiting == state.turn != run:
                if not run.startswith("announce:"):
                    answered: dict[str, str] = state.extra.setdefault("answered", {})
                    answered[run] = waiting
            run = _turn_of(state, run) if isinstance(run, str) else None
            if run is not None and run != state.turn:
                self._begin(stream, state, entry, run, "agent" if run.startswith("announce:") else None)
        super().message(stream, state, entry, said)

    def _nested(self, stream: StreamOut, state: SessionState, entry: MessageEntry, said: CustomMessage) -> bool:
        """A call that another call made; whether this is one."""
        details = fields_of(msgspec.json.decode(said.details)) if there(said.details) else {}
        through: list[str] = state.extra.get("through", [])
        if details.get("parentToolCallId") in through:
            self.out.skip("nested-call-repeats-its-result")
            return True
        came = fields_of(details.get("result"))
        told = {
            "role": "toolResult",
            "toolCallId": details.get("toolCallId"),
            "toolName": details.get("toolName"),
            "content": came.get("content"),
            "details": came.get("details"),
            "isError": details.get("isError"),
        }
        try:
            result = msgspec.json.decode(msgspec.json.encode(told), type=ResultMessage)
        except msgspec.ValidationError:
            return False
        given = msgspec.Raw(msgspec.json.encode(details.get("input", {})))
        block = CallBlock(id=result.toolCallId, name=result.toolName or "unknown", arguments=given)
        self.called(stream, state, entry, block, details.get("input", {}), None)
        self.result(stream, state, entry, result)
        return True

    def asked(self, name: str, arguments: Any) -> tuple[str, Any]:
        """As Pi's; through `tool_call` the tool named there, as "openclaw:core:exec", "exec" or "mcp:<server>:<tool>"."""
        given = fields_of(arguments)
        ident = given.get("id")
        if name != "tool_call" or not isinstance(ident, str):
            return name, arguments
        return ident.rsplit(":", 1)[-1] if ident.startswith("openclaw:") else ident, given.get("args")

    def of_mcp(self, tool: str) -> bool:
        """As Pi's; OpenClaw names them `<server>__<tool>` (its docs/gateway/config-tools/tool-policy.md), in a catalog "mcp:…"."""
        return super().of_mcp(tool) or tool.startswith("mcp:") or "__" in tool.strip("_")

    def came_to(
        self, call: Call | None, said: ResultMessage, details: dict[str, Any], text: str
    ) -> tuple[str, dict[str, Any], str]:
        """As Pi's; through `tool_call` what the tool that it carried out came to."""
        if said.toolName != "tool_call" or call is None:
            return super().came_to(call, said, details, text)
        came = fields_of(details.get("result"))
        parts: Any = came.get("content")
        if not isinstance(parts, list):
            return call.name, details, text
        found = [fields_of(one).get("text") for one in cast("list[Any]", parts)]
        return call.name, fields_of(came.get("details")), "\n".join(one for one in found if isinstance(one, str))

    def _begin(
        self, stream: StreamOut, state: SessionState, entry: MessageEntry, run: str | None, trigger: str | None
    ) -> None:
        state.turns += 1
        begun: dict[str, int] = state.extra.setdefault("runs", {})
        state.turn = run or entry.id or f"turn-{state.turns}"
        state.ended = None
        if state.turn in begun:
            return
        begun[state.turn] = state.turns
        self.add(stream, state, entry, Turn(turn_id=state.turn, phase="start", trigger=trigger))

    def prompt(self, stream: StreamOut, state: SessionState, entry: MessageEntry, said: UserMessage) -> None:
        """A prompt: of a person, of the session that spawned this one, of a schedule, or news of a sub-agent."""
        content = self.blocks(said.content)
        session = self._session or ""
        window = self.state.windows.get(session)
        via = self.state.via.get(window.key) if window else None
        provenance = fields_of(said.provenance)
        own = fields_of(said.openclaw)
        author, origin, trigger = "human", "prompt", "prompt"
        if provenance.get("kind") == "inter_session":
            author, origin, trigger = "agent", "agent", "agent"
        elif own.get("senderIsOwner") is True:
            pass
        elif via == "spawn" or (window is not None and window.parent_key is not None):
            author, origin, trigger = "agent", "agent", "agent"
        elif via == "cron" or provenance.get("kind") in ("cron", "heartbeat"):
            author, origin, trigger = "harness", "injected", "schedule"
        elif said.display is False:
            author, origin, trigger = "harness", "injected", "agent"
        run = said.idempotencyKey.removesuffix(":user") if said.idempotencyKey else None
        self._begin(stream, state, entry, run, trigger)
        state.extra["waiting"] = state.turn
        first = content[0] if content else None
        prefix = _DIRECTORY.match(first.text) if isinstance(first, Text) and _bridged(own) else None
        if prefix and isinstance(first, Text):
            told = Text(text=prefix.group(0).rstrip("\n"))
            self.add(
                stream,
                state,
                entry,
                Message(role="user", author="harness", origin="injected", audience="model", content=[told]),
            )
            content = [Text(text=first.text[prefix.end() :]), *content[1:]]
        meta: dict[str, Any] = {}
        if provenance:
            meta["dev.openclaw.provenance"] = provenance
        if own:
            meta["dev.openclaw.message"] = own
        message = Message(
            role="user", author=author, origin=origin, content=content, message_id=entry.id, meta=meta or None
        )
        self.add(stream, state, entry, message)

    def inference(self, said: AssistantMessage, error: Error | None) -> Inference | None:
        """As Pi's; of a run that Codex carried out, the last message has the figures of all its requests."""
        own = fields_of(said.openclaw)
        if said.model in _HARNESS_MODELS or (said.provider == "openclaw" and said.responseId is None):
            return None
        found = super().inference(said, error)
        if found is None or not own.get("mirrorOrigin"):
            return found
        run = own.get("runId")
        if found.id_source == "derived" and isinstance(run, str):
            found.inference_id = f"run:{run}"
        found.meta = {**(found.meta or {}), "dev.openclaw.carrier": "run"}
        return found

    def called(
        self,
        stream: StreamOut,
        state: SessionState,
        entry: Any,
        block: CallBlock,
        arguments: Any,
        ident: str | None,
    ) -> None:
        """A call; the script that a run of Codex made its calls with is the same call once more."""
        said = entry.message if isinstance(entry, MessageEntry) else None
        mirrored = isinstance(said, AssistantMessage) and bool(fields_of(said.openclaw).get("mirrorOrigin"))
        if mirrored and block.name == "exec" and set(fields_of(arguments)) == {"input"}:
            self.out.skip("script-form-of-a-call")
            return
        super().called(stream, state, entry, block, arguments, ident)
        planned = state.calls.get(block.id)
        if block.name == "tool_call":
            through: list[str] = state.extra.setdefault("through", [])
            through.append(block.id)
            del through[:-MOST_CALLS]
        name, asked = self.asked(block.name, arguments)
        given = fields_of(asked)
        if planned is None or name not in ("message", "sessions_send"):
            return
        if name == "message" and given.get("action", "send") != "send":
            return
        planned.message = _text(given.get("message"))
        planned.target = _text(given.get("target")) or _text(given.get("to")) or _text(given.get("sessionKey"))
        planned.channel = _text(given.get("channel")) or ("session" if name == "sessions_send" else None)

    def end_turn(self, stream: StreamOut, state: SessionState, entry: Any, status: str, error: Error | None) -> None:
        super().end_turn(stream, state, entry, status, error)
        if state.turn is not None and state.ended is not None:
            ends: dict[str, str] = state.extra.setdefault("ends", {})
            ends[state.turn] = state.ended
            if error is not None:
                state.extra.setdefault("wrong", {})[state.turn] = [error.code, error.message]

    def result(self, stream: StreamOut, state: SessionState, entry: MessageEntry, said: ResultMessage) -> str:
        """A result; of two forms the executed one."""
        output = fields_of(fields_of(said.openclaw).get("toolOutput"))
        if output.get("source") == "provider-response":
            self.out.skip("script-form-of-a-call")
            return ""
        call = state.calls.get(said.toolCallId)
        ident = super().result(stream, state, entry, said)
        details = fields_of(msgspec.json.decode(said.details)) if there(said.details) else {}
        _, details, _ = self.came_to(call, said, details, "")
        if call is not None and not said.isError and details.get("status") not in ("failed", "error", "forbidden"):
            self._went_out(stream, state, entry, said.toolCallId, call)
        if call is not None and call.name == "apply_patch" and not said.isError:
            self._patched(stream, state, entry, said.toolCallId, fields_of(details.get("summary")))
        if details.get("status") == "approval-pending":
            self.add(stream, state, entry, Approval(call_id=said.toolCallId, phase="requested"))
        bare = fields_of(state.extra.get("bare"))
        if said.toolCallId in bare:
            bare[said.toolCallId]["record"] = ident
        return ident

    def _patched(
        self, stream: StreamOut, state: SessionState, entry: MessageEntry, ident: str, summary: dict[str, Any]
    ) -> None:
        """The files that an `apply_patch` says it changed; what was known of their contents is no longer so."""
        roots = [WorkspaceRoot(id="r1", path=state.cwd)] if state.cwd else None
        for name, change in (("added", "create"), ("modified", "modify"), ("deleted", "delete")):
            paths: Any = summary.get(name)
            for path in cast("list[Any]", paths) if isinstance(paths, list) else []:
                if not isinstance(path, str):
                    continue
                state.files.pop(posixpath.normpath(posixpath.join(state.cwd or "/", path)), None)
                told = FileChange(
                    path=within(path, roots), change=change, call_id=ident, applied=True, evidence="reported"
                )
                self.add(stream, state, entry, told)

    def _went_out(self, stream: StreamOut, state: SessionState, entry: MessageEntry, ident: str, call: Call) -> None:
        """What a call sent to someone, or wrote to memory (`MEMORY.md` and `memory/` in the workspace)."""
        if call.message is not None:
            content: list[Block] = [Text(text=call.message)]
            sent = MessageSent(channel=call.channel, target=call.target, content=content, call_id=ident)
            self.add(stream, state, entry, sent)
        if call.name in ("write", "edit") and call.path is not None and _MEMORY.search(call.path):
            words = [call.content] if call.content is not None else [new for _, new in call.edits]
            kept: list[Block] = [Text(text=text) for text in words]
            self.add(stream, state, entry, MemoryWrite(target=call.path, content=kept, call_id=ident))

    def ran(
        self, state: SessionState, name: str, call: Call | None, said: ResultMessage, details: dict[str, Any], text: str
    ) -> Exec | None:
        """As Pi's, with the exit code of the trace where that came first and the transcript has none."""
        found = super().ran(state, name, call, said, details, text)
        if found is None or found.exit_code is not None:
            return found
        codes: dict[str, int] = state.extra.setdefault("codes", {})
        found.exit_code = codes.pop(said.toolCallId, None)
        if found.exit_code is None and details.get("status") != "running":
            bare: dict[str, Any] = state.extra.setdefault("bare", {})
            bare[said.toolCallId] = {"command": found.command, "text": text, "failed": bool(said.isError)}
        return found

    def linked(
        self,
        stream: StreamOut,
        state: SessionState,
        entry: Any,
        said: ResultMessage,
        details: dict[str, Any],
    ) -> None:
        """The child that a `sessions_spawn` made, by its key."""
        key = details.get("childSessionKey")
        if not isinstance(key, str) or self._session is None:
            return
        child = self.state.current.get(key)
        if child is None:
            self.state.awaited.setdefault(key, []).append(Awaited(self._session, said.toolCallId))
            return
        self._link(self._session, key, child, said.toolCallId)

    # the trace

    def _trace(self, row: TraceRow) -> None:
        if row.type is None:
            raise msgspec.DecodeError("the event of a trace is no JSON")
        if self.out.stream(self.key_of(row.session_id)) is None:
            self.out.skip("trace-without-transcript")
            return
        if row.data is None:
            self.out.skip("trace-repeats-transcript")
            return
        state = self._of(row.session_id)
        at = row.ts or from_ms(row.created_at)
        stream = self._stream(row.session_id)
        if row.type == "trace.metadata":
            self._version(stream, state, fields_of(msgspec.json.decode(row.data)).get("version"), at)
        elif row.type == "model.completed":
            self._total(stream, state, row, at)
        elif row.type == "tool.result":
            self._code(stream, state, row, at)
        elif row.type == "session.ended":
            self._run_ended(stream, state, row, at)
        if not self.out.noted():
            self.out.skip("trace-repeats-transcript")

    def _version(self, stream: StreamOut, state: SessionState, version: Any, at: str | None) -> None:
        known = state.extra.get("version", self.state.version)
        state.extra["version"] = version
        if isinstance(version, str) and version != known:
            stream.add(Config(version=version, at=at))

    def _total(self, stream: StreamOut, state: SessionState, row: TraceRow, at: str | None) -> None:
        given = msgspec.json.decode(row.data or "{}", type=TraceUsage)
        if not any((given.input, given.output, given.cacheRead, given.total)):
            return
        usage = Usage(
            input=given.input,
            output=given.output,
            cache_read=given.cacheRead,
            cache_write=given.cacheWrite,
            reasoning=given.reasoningTokens,
            total=given.total,
        )
        stream.add(UsageTotal(scope="turn", usage=usage, cumulative=False, turn_id=_turn_of(state, row.run_id), at=at))

    def _code(self, stream: StreamOut, state: SessionState, row: TraceRow, at: str | None) -> None:
        data = fields_of(msgspec.json.decode(row.data or "{}"))
        ident, told = data.get("toolCallId"), fields_of(data.get("result"))
        code = told.get("exitCode", fields_of(told.get("details")).get("exitCode"))
        if not isinstance(ident, str) or not isinstance(code, int) or isinstance(code, bool):
            return
        bare: dict[str, Any] = state.extra.setdefault("bare", {})
        held = fields_of(bare.pop(ident, None))
        if not held:
            if ident in state.calls:
                codes: dict[str, int] = state.extra.setdefault("codes", {})
                codes[ident] = code
            return
        took = told.get("durationMs")
        stream.add(
            ToolResult(
                call_id=ident,
                linkage="exact",
                status="failed" if held["failed"] else "completed",
                content=[Text(text=held["text"])],
                exec=Exec(command=held["command"], exit_code=code, duration_ms=took if isinstance(took, int) else None),
                supersedes=held.get("record"),
                turn_id=_turn_of(state, row.run_id),
                at=at,
            )
        )

    def _run_ended(self, stream: StreamOut, state: SessionState, row: TraceRow, at: str | None) -> None:
        """How a run ended, where that is more than the transcript's last answer says."""
        data = fields_of(msgspec.json.decode(row.data or "{}"))
        late = any(data.get(k) is True for k in ("timedOut", "idleTimedOut", "timedOutByRunBudget"))
        status = "completed"
        if data.get("aborted") is True or data.get("externalAbort") is True or late:
            status = "interrupted"
        elif data.get("status") not in ("success", "ok", "completed", None):
            status = "failed"
        ends: dict[str, str] = state.extra.setdefault("ends", {})
        run = _turn_of(state, row.run_id)
        if run is None or run not in state.extra.get("runs", {}) or (status == "completed" and run in ends):
            return
        code, message = state.extra.get("wrong", {}).get(run, (None, None)) if status == "failed" else (None, None)
        ends[run] = stream.add(
            Turn(
                turn_id=run,
                phase="end",
                status=status,
                error=Error(code=code, message=message) if code or message else None,
                supersedes=ends.get(run),
                at=at,
                meta={"dev.openclaw.ended": data},
            )
        )


def _turn_of(state: SessionState, run: str | None) -> str | None:
    """The turn that a run's records belong to: its own, or that of the prompt it was the next to answer.

    A gateway names a prompt after its run; `openclaw agent --local` gives the two different ids.
    """
    answered: dict[str, str] = state.extra.get("answered", {})
    return answered.get(run, run) if run is not None else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _same(data: bytes) -> str:
    """A digest of what an event says, however it is written."""
    try:
        return sha256(msgspec.json.encode(msgspec.json.decode(data), order="deterministic"))[:16]
    except (OverflowError, msgspec.MsgspecError):
        return sha256(data)[:16]


def _bridged(own: dict[str, Any]) -> bool:
    clients = fields_of(own.get("transport")).get("clients")
    found = cast(list[Any], clients) if isinstance(clients, list) else []
    return any(fields_of(one).get("displayName") == "ACP" for one in found)


def _content_of(row: EventRow) -> bytes:
    if row.event_json is not None:
        return row.event_json.encode("utf-8", "surrogatepass")
    if row.event_zstd is None:
        raise msgspec.DecodeError("a transcript event without content")
    try:
        reader = zstandard.ZstdDecompressor().stream_reader(row.event_zstd, read_across_frames=True)
        data = reader.read(MOST_EVENT + 1)
    except zstandard.ZstdError as error:
        raise msgspec.DecodeError(f"zstd: {error}") from error
    if len(data) > MOST_EVENT:
        raise msgspec.DecodeError("a transcript event too large")
    return data


RECORDER = OpenClawRecorder
