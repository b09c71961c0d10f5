r"""Hermes agent (`hermes`): all sessions in one SQLite database, whose usage counters are overwritten in place.

Where: `~/.hermes/state.db` (WAL), moved by HERMES_HOME; profiles have their own below `profiles/<name>/`. Beside it, of
earlier versions, `sessions/session_<id>.json`, one document a session. Seen: 0.19.0 (schema 22), 0.13.0 (writes both), and the
exported rows of a session of schema 31.

    sessions  {"id":"20261130_050905_6c8714","source":"cli","model":"mock-1","model_config":"{…}","system_prompt":"You are …",
               "parent_session_id":null,"started_at":1796015358.3254097,"input_tokens":138720,"output_tokens":3012,
               "cache_read_tokens":135926,"reasoning_tokens":307,"api_call_count":10,"cwd":"/home/dev/app",…}
    messages  {"id":1,"session_id":"2026…","role":"user","content":"…","timestamp":1796015358.330456}
              {"id":2,"role":"assistant","content":"I will read the file first.","finish_reason":"tool_calls","reasoning":"…",
               "tool_calls":"[{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"read_file\",\"arguments\":\"{…}\"}}]"}
              {"id":7,"role":"tool","tool_call_id":"call_3","tool_name":"terminal",
               "content":"{\"output\":\"…\",\"exit_code\":101,\"error\":null}"}
    session_model_usage  {"session_id":"2026…","model":"mock-1","task":"","api_call_count":10,"input_tokens":138720,…}

    session_<id>.json  {"session_id":"2026…","model":"mock-1","base_url":"…","platform":"cli",
               "session_start":"2026-11-30T10:47:38.115064","system_prompt":"…","tools":[…],"message_count":12,"messages":[{"role":"user","content":"…"},
               {"role":"assistant","content":"…","tool_calls":[{"id":"call_1","function":{…}}],"finish_reason":"tool_calls"},
               {"role":"tool","tool_call_id":"call_1","content":"{…}"}]}

What is particular
    - A document holds what the rows hold, without times of messages and without figures; its own times name no zone. Where
      the database has the session, the document says nothing more. A session is told by whichever told it first.
    - No request has figures of its own: `sessions` and `session_model_usage` hold sums that grow. What they grew by between
      two readings is one `inference` with `idSource: derived`; read after every turn they tell the turns apart. A reading
      that saw exactly one response grow states the figures of that response.
    - `output_tokens` includes reasoning, `input_tokens` excludes cached tokens. `task` other than "" (titles, compression)
      is not in the session's sums: kept as `usage_total` of its task, never counted.
    - Hermes puts words to the model between responses that stand in no row (`finish_reason: verification_required`).
    - No message names its model, and a session keeps the model it began with: of responses in a session with several no model
      is said; `session_model_usage` has the sums of each.
    - A command in the background is answered with `exit_code` 0 at once, which is not its own: that comes in a note
      (`[IMPORTANT: Background process …`) or with an answer of `process`.
    - `files_modified` of a patch (`mode: patch`) names every file it touched, those created and deleted too.
    - `content` of a tool is JSON; `exit_code` stands in it. A list as content is stored behind `\0json:`.
    - A sub-agent is a session with `parent_session_id`; no field names the call that started it.
    - Rows are only flagged when history is taken back or compressed (`active`, `compacted`): told by a `native` record.
      A compression writes what it keeps again, under new ids, at once and right behind what it took out: recorded once.
    - A branch begins with its parent's messages under new ids; the parent's mark (`_branched_from`) and equal messages in
      the same order tell copies.
      Flags of messages more than 4000 behind the last one are seen when the database is next read whole.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, cast
from zlib import crc32

import msgspec
from msgspec import Struct

from asrd.recorders._observed import Contents, absolute, commits, content_of, patched, replaced
from asrd.recorders.base import Recorder, StreamKey, StreamOut, fields_of, sha256, within
from asrd.records import (
    Approval,
    Block,
    Capture,
    Compaction,
    Config,
    Content,
    CopyOf,
    End,
    Evidence,
    Exec,
    FileChange,
    Gap,
    Image,
    Inference,
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
    Truncated,
    Turn,
    Usage,
    UsageTotal,
    Vcs,
    VcsAction,
    Workspace,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, RowQuery, Source, Unread

# ---------------------------------------------------------------- native structs


class SessionRow(Struct):
    """A row of `sessions`: what does not change with every request, and the counters."""

    id: str
    source: str | None = None
    model: str | None = None
    model_config: str | None = None
    system_prompt: str | None = None
    parent_session_id: str | None = None
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    git_repo_root: str | None = None
    billing_provider: str | None = None
    title: str | None = None
    profile_name: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    api_call_count: int | None = None
    actual_cost_usd: float | None = None
    estimated_cost_usd: float | None = None


class Document(Struct):
    """A session as a document, rewritten in place with each message."""

    session_id: str
    model: str | None = None
    base_url: str | None = None
    platform: str | None = None
    session_start: str | None = None
    system_prompt: str | None = None
    tools: list[dict[str, Any]] | None = None
    messages: list[msgspec.Raw] = []


class Told(Struct):
    """A message of a document."""

    role: str
    content: Any = None
    tool_call_id: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_name: str | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: Any = None
    codex_reasoning_items: Any = None


class MessageRow(Struct):
    """A row of `messages`, or what a document has in its place."""

    id: int
    session_id: str
    role: str
    content: str | None = None
    tool_call_id: str | None = None
    tool_calls: str | None = None
    tool_name: str | None = None
    timestamp: float | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: str | None = None
    codex_reasoning_items: str | None = None
    codex_message_items: str | None = None
    observed: int | None = 0
    active: int | None = 1
    compacted: int | None = 0
    display_kind: str | None = None
    summary: int | None = msgspec.field(name="_compressed_summary", default=0)
    place: str = msgspec.field(name="_place", default="")
    """Session and number of a document's message: it has no id."""

    @property
    def name(self) -> str:
        return self.place or str(self.id)


class UsageRow(Struct):
    """A row of `session_model_usage`."""

    session_id: str
    model: str
    billing_provider: str = ""
    task: str = ""
    api_call_count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


class Function(Struct):
    name: str
    arguments: str | dict[str, Any] = "{}"


class Call(Struct):
    """One of `tool_calls`."""

    function: Function
    id: str | None = None
    call_id: str | None = None


class Todo(Struct):
    content: str
    status: str = "pending"


class Pattern(Struct):
    """What of a tool's answer is looked at, when it is a JSON object."""

    exit_code: int | None = None
    output: str | None = None
    error: str | None = None
    status: str | None = None
    success: bool | None = None
    diff: str | None = None
    files_modified: list[str] | None = None
    files_created: list[str] | None = None
    files_deleted: list[str] | None = None
    session_id: str | None = None
    resolved_path: str | None = None
    content: str | None = None
    total_lines: int | None = None
    file_size: int | None = None
    truncated: bool | None = None
    bytes_written: int | None = None


_document = msgspec.json.Decoder(Document)
_message = msgspec.json.Decoder(Told)
_calls = msgspec.json.Decoder(list[Call])
_answer = msgspec.json.Decoder(Pattern)
_any = msgspec.json.Decoder()

# ---------------------------------------------------------------- state

COUNTERS = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "api_call_count"
)  # fmt: skip


class Called(Struct):
    """A call that has no answer yet."""

    name: str
    input: dict[str, Any]


class Behind(Struct):
    """A command that went on in the background: its call, and the record of its result so far."""

    call: str
    record: str
    content: str
    command: str | None = None


class Response(Struct):
    """A response whose figures are not known."""

    inference: str
    record: str
    stop: str | None
    at: str | None


class Sess(Struct):
    """A session."""

    told: list[tuple[int, int]] = []
    """Its messages by id, and what each is known again by; at most `TOLD`."""
    copying: int | None = 0
    """How far into its parent's messages it has been a copy of them; None = it goes on by itself."""
    packed: dict[int, int] = {}
    """Messages that compression took out of the history, by what they are known again by."""
    last: int = 0
    """Its last message."""
    packed_last: bool = False
    """Whether compression took that out too: what follows was written when it put the history together again."""
    again_at: float | None = None
    """When the last message of a history that was put together again was written, in seconds."""

    opened: bool = False
    row: SessionRow | None = None
    turn: str | None = None
    turn_ended: bool = False
    counted: list[int] = msgspec.field(default_factory=lambda: [0] * len(COUNTERS))
    """The counters as they were when usage was last stated."""
    readings: int = 0
    waiting: list[Response] = []
    calls: dict[str, Called] = {}
    behind: dict[str, Behind] = {}
    """Commands in the background by process, at most `RUNNING`."""
    models: list[str] = []
    """Models that usage is kept of."""
    spent: dict[str, list[int]] = {}
    """Counters of each row of a model's usage as they were read last."""
    names: dict[str, tuple[str, str | None]] = {}
    """Model and provider of each of these rows."""
    stated: dict[str, list[int]] = {}
    """... and as they were when usage was last stated."""
    totals: str = ""
    total_record: str = ""
    tasks: dict[str, str] = {}
    """Record of the total of each model and task."""
    prompt: str = ""
    """Digest of the system prompt that was said."""
    plan: str = ""
    ended: str = ""
    documented: list[int] = []
    """Digests of the messages that a document told."""
    files: Contents = msgspec.field(default_factory=Contents)


class State(Struct):
    """All that is kept between items."""

    sessions: dict[str, Sess] = {}
    last: int = 0
    """The largest message id seen."""
    said: dict[str, str] = {}
    """Digest of the words of the last messages, by id: whether a row that comes again says something else."""
    records: dict[str, str] = {}
    """Record of each of those messages."""
    linked: list[str] = []


RUNNING = 64
"""Commands in the background whose end is waited for, in one session."""
NOTE = re.compile(
    r"\[(?:IMPORTANT: )?Background process (\S+) (?:[^\n(]*\(exit code|finished with exit code) (-?\d+)\b"
)
"""How Hermes tells that a command in the background ended (`process_registry.py`, `gateway/run.py`, 0.19.0)."""
LATE = re.compile(r"\[Command timed out after \S+\]\s*$")
NO_TOOL = re.compile(r"Tool '[^'\n]*' does not exist\.")
MOVED = re.compile(r"(?m)^\*\*\* Move File:\s*(.+?)\s*->\s*(.+?)\s*$")

TOLD = 4096
"""Messages of one session that are known again when a branch or a compression writes them again."""
AT_ONCE = 0.001
"""Seconds: messages that are written together are numbered by microseconds (0.19.0)."""
KEEP = 512
"""Messages whose digests are kept."""

# ---------------------------------------------------------------- where it lies

QUERIES = (
    RowQuery("schema_version", "SELECT version FROM schema_version", ("version",)),
    RowQuery("sessions", "SELECT * FROM sessions ORDER BY rowid", ("id",)),
    RowQuery(
        "system_prompts",
        """SELECT s.id AS session_id, p.hash AS hash, p.prompt AS prompt
        FROM sessions s JOIN system_prompts p ON p.hash = s.system_prompt_hash ORDER BY s.rowid""",
        ("session_id", "hash"),
        needs=("sessions", "system_prompts"),
    ),
    RowQuery(
        "session_models",
        """SELECT session_id, json_group_array(DISTINCT model) AS models FROM session_model_usage
        WHERE task = '' GROUP BY session_id ORDER BY session_id""",
        ("session_id",),
        needs=("session_model_usage",),
    ),
    RowQuery(
        "messages",
        "SELECT id AS rowid, * FROM messages ORDER BY id",
        ("id",),
        mark="SELECT max(id) FROM messages",
        changed="""SELECT id AS rowid, * FROM messages
        WHERE id > :since - 64 OR (id > :since - 4000 AND (active = 0 OR compacted = 1)) ORDER BY id""",
        columns=("session_id", "role", "content"),
    ),
    RowQuery("async_delegations", "SELECT * FROM async_delegations ORDER BY rowid", ("delegation_id",)),
    RowQuery(
        "session_model_usage",
        "SELECT * FROM session_model_usage ORDER BY rowid",
        ("session_id", "model", "billing_provider", "billing_base_url", "billing_mode", "task"),
    ),
    RowQuery("session_total", "SELECT * FROM sessions ORDER BY rowid", ("id",), needs=("sessions",)),
)

KINDS = {
    "read_file": "read", "search_files": "search", "list_files": "search", "write_file": "edit", "patch": "edit",
    "terminal": "execute", "process": "execute", "execute_code": "execute", "web_search": "fetch", "web_extract": "fetch",
    "delegate_task": "delegate", "todo": "plan",
}  # fmt: skip

ENDS = {"cli_close": "completed", "user_exit": "completed", "completed": "completed", "interrupted": "interrupted"}
"""`end_reason` as a status; others stay `unknown`, with their own word as the reason."""

MARKERS = {"_delegate_from": "spawned_by", "_branched_from": "forked_from", "_reset_from": None}
"""Keys of `model_config` that name the parent and say what it is. A session that goes on after compression inherits the
configuration word for word, so a key counts only where it names this session's own parent."""

INJECTED_KINDS = ("hidden", "async_delegation_complete", "internal_notification")
"""`display_kind` of rows that Hermes wrote itself."""
INJECTED = (
    "[System:", "[System note:", "[IMPORTANT:", "[ASYNC DELEGATION", "[Your active task list was preserved",
    "[STILL IN PROGRESS",
)  # fmt: skip
"""How words begin that Hermes puts into the user's row itself."""

SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY")
"""How Hermes begins the message that replaces compressed history."""


# ---------------------------------------------------------------- the recorder


class HermesRecorder(Recorder):
    """Rows of Hermes as records. One group a database: all sessions of a profile."""

    harness = "hermes"
    roots = (Root(".hermes", env=("HERMES_HOME",)),)
    places = (
        Place("state.db", "table", QUERIES),
        Place("profiles/*/state.db", "table", QUERIES),
        Place("sessions/session_*.json", "document"),
        Place("profiles/*/sessions/session_*.json", "document"),
    )
    unread = (
        Unread("sessions/*.jsonl", "the gateway's transcripts: no capture of one yet"),
        Unread("sessions/sessions.json", "the gateway's list of its sessions"),
    )
    versions = ("0.13.0", "0.19.0")
    State = State
    state: State

    def __init__(self, out: Any, group: str) -> None:
        super().__init__(out, group)
        self._session = self._place = ""
        self._copy: CopyOf | None = None

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """Documents are read behind the database that may hold their sessions too."""
        folder, _, name = path.rpartition("/")
        if name.endswith(".json"):
            return Located(group=folder.removesuffix("sessions") + "state.db", name=path, order="1")
        return Located(group=path, name=path)

    @classmethod
    def claims(cls, head: bytes) -> bool:
        if head.startswith(b"SQLite format 3\0"):
            return b"session_model_usage" in head
        return head.lstrip()[:1] == b"{" and all(
            key in head for key in (b'"session_id"', b'"session_start"', b'"platform"', b'"base_url"')
        )

    def receive(self, source: Source, item: Line | Row) -> None:
        self._session = self._place = ""
        self._copy = None
        if not isinstance(item, Row):
            return
        if source.kind == "document":
            self._place = item.key
            self._documented(source.name, _document.decode(item.data))
            return
        values = item.values
        match item.table:
            case "schema_version":
                self.out.skip(f"schema-{values.get('version')}")
            case "sessions":
                self._known(msgspec.convert(values, SessionRow))
            case "system_prompts":
                self._session = str(values.get("session_id"))
                prompt = values.get("prompt")
                if isinstance(prompt, str):
                    self._system(self._session, self._sess(self._session), prompt)
            case "session_models":
                self._session = str(values.get("session_id"))
                names = _json(values.get("models"))
                models = [str(m) for m in cast("list[Any]", names)] if isinstance(names, list) else []
                self._sess(self._session).models = models
                self.out.skip("models-of-a-session")
            case "messages":
                row = msgspec.convert(values, MessageRow)
                self._session = row.session_id
                self._message(row, values)
            case "async_delegations":
                self._session = str(values.get("parent_session_id") or values.get("origin_session") or "")
                self._put(self.main(), Native(native_type=item.table, native_id=item.key, data=_told(values)))
            case "session_model_usage":
                self._usage_of_model(msgspec.convert(values, UsageRow), item.key)
            case "session_total":
                self._total(msgspec.convert(values, SessionRow))
            case _:
                self._put(self.main(), Native(native_type=item.table, native_id=item.key, data=_told(values)))

    def main(self) -> StreamOut:
        """The stream of the session at hand, else of the first session, else one of the group's own."""
        if self._session not in self.state.sessions:
            self._session = next((s for s, one in self.state.sessions.items() if one.opened), "")
        session = self.state.sessions.get(self._session)
        if session is not None:
            return self._open(self._session, session)
        return self.open(StreamKey(self.harness, self.group, self._namespace()))

    # documents

    def _documented(self, name: str, told: Document) -> None:
        """A session as a document: what it holds beyond what was recorded of it."""
        decoded = [_message.decode(raw) for raw in told.messages]
        self._session = told.session_id
        session = self._sess(told.session_id)
        row = SessionRow(id=told.session_id, model=told.model, source=told.platform)
        before, session.row = session.row, session.row or row
        stream = self._open(told.session_id, session, of_document=True)
        if stream.sources.get(name) != "s1":
            self.out.skip("session-stands-in-the-database")
            return
        self._system(told.session_id, session, told.system_prompt)
        if before is None:
            meta = {"session_start": told.session_start, "base_url": told.base_url}
            config = Config(
                model=told.model,
                mode=told.platform,
                tools=_tool_names(told.tools),
                meta={"dev.asrd.hermes": {k: v for k, v in meta.items() if v}},
            )
            self._put(stream, config)
        elif told.model and before.model != told.model:
            session.row.model = told.model
            self._put(stream, Config(model=told.model))
        digests = [crc32(bytes(raw)) for raw in told.messages]
        known = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(session.documented, digests, strict=False))
        )
        if known < len(session.documented):
            data = {"kept": known, "replaced": len(session.documented) - known}
            self._put(stream, Native(native_type="document.rewritten", data=data))
        session.documented = digests
        for number in range(known, len(digests)):
            one = _of_document(f"{told.session_id}/{number + 1}", told.session_id, decoded[number])
            self._handle(session, stream, one, msgspec.to_builtins(decoded[number]))
        if not self.out.noted():
            self.out.skip("document-without-news")

    def _is_documented(self, stream: StreamOut) -> bool:
        """Whether a document told this session first."""
        name = f"{self.group.removesuffix('state.db')}sessions/session_{stream.key.session_id}.json"
        return stream.sources.get(name) == "s1"

    # sessions

    def _namespace(self) -> str:
        """Profiles have databases of their own, whose ids could be equal."""
        parts = self.group.split("/")
        return parts[1] if parts[0] == "profiles" and len(parts) > 2 else ""

    def _sess(self, ident: str) -> Sess:
        session = self.state.sessions.get(ident)
        if session is None:
            session = self.state.sessions[ident] = Sess()
        return session

    def _known(self, row: SessionRow) -> None:
        """A session's row: the header of its stream, and what is new since it was written."""
        self._session = row.id
        session = self._sess(row.id)
        before, session.row = session.row, row
        if (before is None or not session.opened) and self._is_documented(self._open(row.id, session)):
            model = title = mode = None  # the document said what the session began with
        elif before is None or not session.opened:
            self._open(row.id, session)
            self._system(row.id, session, row.system_prompt)
            model, title = row.model, None
            mode = row.source
        else:
            model = row.model if row.model != before.model else None
            title = row.title if row.title != before.title else None
            mode = None
            self._system(row.id, session, row.system_prompt)
        config = row.model_config if before is None or row.model_config != before.model_config else None
        if model or title or mode or config:
            meta: dict[str, Any] = {"dev.asrd.hermes": {"model_config": _json(config)}} if config else {}
            effort = _effort(config)
            self._put(
                self._open(row.id, session),
                Config(model=model, title=title, mode=mode, effort=effort, meta=meta or None),
            )
        elif not self.out.noted():
            self.out.skip("session-says-nothing-new")

    def _open(self, ident: str, session: Sess, of_document: bool = False) -> StreamOut:
        key = StreamKey(self.harness, ident, self._namespace())
        found = self.out.stream(key)
        if found is not None:
            session.opened = True
            return found
        row = session.row
        stream = self.open(
            key,
            started_at=_at(row.started_at) if row else None,
            lineage=None if of_document else self._lineage(row),
            workspace=_workspace(row),
            title=row.title if row else None,
        )
        session.opened = True
        if self._is_documented(stream) != of_document:
            return stream  # begun by the other source, before the state was lost
        self._put(
            stream,
            Capture(
                profile="usage",
                facet="inference.usage",
                state="unavailable" if of_document else "partial",
                reason="Hermes' documents of sessions have no figures"
                if of_document
                else "Hermes keeps sums of a session and overwrites them: figures are differences between two readings",
            ),
            ident,
        )
        self._put(
            stream,
            Capture(
                profile="lineage",
                facet="link.callId",
                state="unavailable",
                reason="Hermes stores no tie between a delegation and the session it started",
            ),
            ident,
        )
        if row and row.parent_session_id:
            self._spawned(row)
        return stream

    def _lineage(self, row: SessionRow | None) -> Lineage:
        if row is None:
            return Lineage()
        if not row.parent_session_id:
            return Lineage(root=True)
        relation = self._relation(row)
        parent = LineageParent(
            agent=self.harness, session_id=row.parent_session_id, namespace=self._namespace() or None
        )
        evidence = Evidence(kind="native-field", field="sessions.parent_session_id", value=row.parent_session_id)
        return Lineage(root=False, parent=parent, relation=relation, evidence=evidence)

    def _relation(self, row: SessionRow) -> str | None:
        """What a parent is: of a sub-agent, of a session that goes on after compression, of a branch."""
        value = _json(row.model_config)
        config = fields_of(value)
        for marker, relation in MARKERS.items():
            if config.get(marker) == row.parent_session_id:
                return relation
        parent = self.state.sessions.get(row.parent_session_id or "")
        reason = parent.row.end_reason if parent and parent.row else None
        if row.source in ("subagent", "delegate") and reason != "compression":
            return "spawned_by"
        return {"compression": "resumed_from", "branched": "forked_from"}.get(reason or "")

    def _spawned(self, row: SessionRow) -> None:
        parent = self.state.sessions.get(row.parent_session_id or "")
        if parent is None or row.id in self.state.linked or self._relation(row) != "spawned_by":
            return
        self.state.linked.append(row.id)
        target = LinkTarget(agent=self.harness, session_id=row.id, namespace=self._namespace() or None)
        evidence = Evidence(kind="native-field", field="sessions.parent_session_id", value=row.parent_session_id)
        link = Link(relation="spawned", target=target, evidence=evidence, at=_at(row.started_at))
        self._put(self._open(row.parent_session_id or "", parent), link, row.id)

    def _system(self, ident: str, session: Sess, prompt: str | None) -> None:
        """The system prompt, each time it is another."""
        if not prompt or sha256(prompt) == session.prompt:
            if prompt and not self.out.noted():
                self.out.skip("session-says-nothing-new")
            return
        session.prompt = sha256(prompt)
        message = Message(
            role="system", content=[Text(text=prompt)], author="harness", origin="injected", audience="model"
        )
        self._put(self._open(ident, session), message, ident)

    # messages

    def _message(self, row: MessageRow, values: dict[str, Any]) -> None:
        session = self._sess(row.session_id)
        stream = self._open(row.session_id, session)
        name = row.name
        words = sha256(repr((row.role, row.content, row.tool_calls, row.reasoning, row.reasoning_content)))
        if self._is_documented(stream):
            self.state.last = max(self.state.last, row.id)
            self.out.skip("message-stands-in-the-document")
            return
        if row.id <= self.state.last:
            self._again(stream, row, name, words)
            return
        self.state.last = row.id
        self.state.said[name] = words
        while len(self.state.said) > KEEP:
            oldest = next(iter(self.state.said))
            del self.state.said[oldest]
            self.state.records.pop(oldest, None)
        known = _known_by(row)
        if not self._put_together_again(session, row, known):
            self._copy = self._copied(session, row, known)
            self._handle(session, stream, row, values)
            self._copy = None
        session.last = row.id
        if len(session.told) < TOLD:
            session.told.append((row.id, known))
        if row.active == 0 or row.compacted:
            self._flags(stream, row)

    def _handle(self, session: Sess, stream: StreamOut, row: MessageRow, values: dict[str, Any]) -> None:
        """A message that was not recorded yet."""
        match row.role:
            case "user":
                self._said_by_user(session, stream, row)
            case "assistant":
                self._response(session, stream, row, values)
            case "tool":
                self._answered(session, stream, row)
            case "system" | "developer":
                message = Message(
                    role=row.role, content=_blocks(row.content), author="harness", origin="injected", audience="model"
                )
                self._add(session, stream, row, message)
            case _:
                self._add(session, stream, row, Native(native_type=row.role, data=_told(values)))

    def _again(self, stream: StreamOut, row: MessageRow, name: str, words: str) -> None:
        """A row that was recorded is other than it was: its words supersede the earlier ones, its flags are told."""
        before = self.state.said.get(name)
        if before is not None and before != words:
            self.state.said[name] = words
            message = Message(
                role=row.role if row.role != "tool" else "user",
                content=_blocks(row.content),
                native_id=name,
                author="tool" if row.role == "tool" else None,
                at=_at(row.timestamp),
                supersedes=self.state.records.get(name),
            )
            self._put(stream, message)
        else:
            self._flags(stream, row)

    def _put_together_again(self, session: Sess, row: MessageRow, known: int) -> bool:
        """Whether a message was recorded that a compression wrote again, with the summary, under a new id.

        It writes them at once, right behind the messages that it took out of the history.
        """
        at = row.timestamp
        near = session.again_at is not None and at is not None and 0 <= at - session.again_at < AT_ONCE
        if not (session.packed_last or near):
            session.again_at = None
            return False
        again = known in session.packed
        session.packed_last = False
        session.again_at = at
        if again:
            self.out.skip("message-written-again-by-compression")
        return again

    def _copied(self, session: Sess, row: MessageRow, known: int) -> CopyOf | None:
        """The message of the parent that a branch, or a session that goes on after compression, begins with."""
        begun = session.row
        parent = self.state.sessions.get(begun.parent_session_id or "") if begun else None
        if session.copying is None or begun is None or parent is None:
            return None
        if self._relation(begun) in ("forked_from", "resumed_from"):
            for number, (ident, other) in enumerate(parent.told[session.copying :], session.copying):
                if other == known:
                    session.copying = number + 1
                    return CopyOf(session_id=begun.parent_session_id or "", native_id=str(ident))
            if (row.content or "").startswith(SUMMARY):
                return None
        session.copying = None
        return None

    def _flags(self, stream: StreamOut, row: MessageRow) -> None:
        """Whether a message is still in the history that the model sees."""
        if row.compacted:
            session = self._sess(row.session_id)
            session.packed[_known_by(row)] = row.id
            while len(session.packed) > TOLD:
                del session.packed[next(iter(session.packed))]
            session.packed_last = session.packed_last or row.id == session.last
        data = {"id": row.id, "active": row.active, "compacted": row.compacted, "observed": row.observed}
        self._put(stream, Native(native_type="messages.state", native_id=row.name, data=data))

    def _said_by_user(self, session: Sess, stream: StreamOut, row: MessageRow) -> None:
        content = _blocks(row.content)
        if row.summary or (row.content or "").startswith(SUMMARY):
            self._summary(session, stream, row, "user")
            return
        agent = bool(session.row and session.row.parent_session_id and self._relation(session.row) == "spawned_by")
        words = row.content or ""
        if row.observed or row.display_kind in INJECTED_KINDS or words.startswith(INJECTED):
            if (ended := NOTE.match(words)) is not None:
                self._exited(session, stream, row, ended[1], int(ended[2]))
            if not row.observed and (session.turn is None or session.turn_ended):
                trigger = "agent" if words.startswith("[ASYNC DELEGATION") else "hook"
                session.turn, session.turn_ended = row.name, False
                self._add(session, stream, row, Turn(turn_id=session.turn, phase="start", trigger=trigger))
            author = "human" if row.observed else "harness"
            message = Message(role="user", content=content, message_id=row.name, author=author, origin="injected")
            self.state.records[row.name] = self._add(session, stream, row, message)
            return
        session.turn, session.turn_ended = row.name, False
        self._add(
            session, stream, row, Turn(turn_id=session.turn, phase="start", trigger="agent" if agent else "prompt")
        )
        message = Message(
            role="user",
            content=content,
            message_id=row.name,
            author="agent" if agent else "human",
            origin="agent" if agent else "prompt",
            audience="model",
        )
        self.state.records[row.name] = self._add(session, stream, row, message)

    def _summary(self, session: Sess, stream: StreamOut, row: MessageRow, role: str) -> None:
        """What a compression put in the place of what it took out: Hermes's words, in either role."""
        self._add(session, stream, row, Compaction(message_id=row.name))
        message = Message(
            role=role,
            content=_blocks(row.content),
            message_id=row.name,
            author="harness",
            origin="summary",
            audience="model",
        )
        self.state.records[row.name] = self._add(session, stream, row, message)

    def _response(self, session: Sess, stream: StreamOut, row: MessageRow, values: dict[str, Any]) -> None:
        """One response: an inference without figures (they come with the counters), its words, its calls."""
        name = row.name
        calls = _calls.decode(row.tool_calls) if row.tool_calls else []
        at = _at(row.timestamp)
        if not calls and (row.content or "").startswith(SUMMARY):
            self._summary(session, stream, row, "assistant")
            return
        response = self._copy.native_id or name if self._copy else name
        model = session.row.model if session.row and set(session.models) <= {session.row.model} else None
        provider = session.row.billing_provider if session.row else None
        derived = "derived" if row.place else None
        inference = Inference(
            inference_id=response, id_source=derived, model=model, provider=provider, stop_reason=row.finish_reason
        )
        record = self._add(session, stream, row, inference)
        if self._copy is None:
            session.waiting.append(Response(name, record, row.finish_reason, at))
        content: list[Block] = []
        if thought := row.reasoning or row.reasoning_content:
            content.append(Thinking(text=thought))
        elif row.codex_reasoning_items or row.reasoning_details:
            content.append(Thinking(redacted=True))
        content += _blocks(row.content)
        if content:
            kept = {
                n: _json(values.get(n)) for n in ("codex_reasoning_items", "codex_message_items", "reasoning_details")
            }
            kept = {n: v for n, v in kept.items() if v}
            message = Message(
                role="assistant",
                content=content,
                message_id=name,
                author="agent",
                audience="user" if row.content else None,
                inference_id=response,
                meta={"dev.asrd.hermes": kept} if kept else None,
            )
            self.state.records[name] = self._add(session, stream, row, message)
        for number, call in enumerate(calls):
            ident = call.id or call.call_id or f"{name}.{number}"
            given = _arguments(call.function.arguments)
            session.calls[ident] = Called(call.function.name, given)
            self._add(
                session,
                stream,
                row,
                ToolCall(
                    call_id=ident,
                    call_id_source=None if call.id or call.call_id else "derived",
                    name=call.function.name,
                    kind=KINDS.get(call.function.name, "mcp" if call.function.name.startswith("mcp_") else "other"),
                    input=given,
                    inference_id=response,
                ),
            )
        if (
            not calls
            and row.finish_reason not in (None, "tool_calls", "verification_required")
            and session.turn
            and not session.turn_ended
        ):
            status = {"stop": "completed", "content_filter": "refused", "error": "failed"}.get(str(row.finish_reason))
            session.turn_ended = True
            self._add(session, stream, row, Turn(turn_id=session.turn, phase="end", status=status or "completed"))

    def _answered(self, session: Sess, stream: StreamOut, row: MessageRow) -> None:
        """What a call came to: Hermes tells it as JSON."""
        ident = row.tool_call_id or ""
        called = session.calls.pop(ident, None)
        answer = _decode_answer(row.content)
        tool = called.name if called else row.tool_name or ""
        status = "completed"
        if answer is not None:
            blocked = answer.status in ("blocked", "approval_required", "denied") or (answer.error or "").startswith(
                "BLOCKED:"
            )
            if blocked:
                status = "denied"
                if answer.status != "approval_required":
                    decision = Approval(call_id=ident, phase="decided", decision="deny")
                    self._add(session, stream, row, decision)
            elif answer.error or answer.success is False:
                status = "failed"
        elif NO_TOOL.match(row.content or ""):
            status = "failed"
        ran = self._ran(session, tool, called, answer, status)
        result = ToolResult(
            call_id=ident or row.name,
            linkage="exact" if called else "none",
            status=status,
            content=_blocks(row.content) or None,
            exec=ran,
            truncated=Truncated() if answer and answer.truncated else None,
        )
        self.state.records[row.name] = record = self._add(session, stream, row, result)
        if called is None or answer is None or status != "completed":
            return
        if ran is not None and answer.session_id and tool == "terminal":
            session.behind[answer.session_id] = Behind(ident, record, row.content or "", ran.command)
            while len(session.behind) > RUNNING:
                del session.behind[next(iter(session.behind))]
        elif tool == "process" and answer.status == "exited" and answer.exit_code is not None:
            process = _text(called.input.get("session_id")) or answer.session_id or ""
            self._exited(session, stream, row, process, answer.exit_code)
        if tool == "terminal":
            session.files.doubt()
            for commit in commits(_text(called.input.get("command")), answer.output or ""):
                root = "r1" if _roots(session.row) else None
                action = VcsAction(action="commit", root=root, commit=commit, evidence="observed", call_id=ident)
                self._add(session, stream, row, action)
        elif tool == "read_file":
            self._read(session, called, answer)
        elif tool == "todo":
            self._planned(session, stream, row, ident, _json(row.content))
        elif tool in ("patch", "write_file"):
            for change in self._changes(session, tool, called, answer):
                change.call_id = ident
                self._add(session, stream, row, change)

    def _ran(self, session: Sess, tool: str, called: Called | None, answer: Pattern | None, status: str) -> Exec | None:
        if tool not in ("terminal", "process", "execute_code") or answer is None:
            return None
        given = called.input if called else {}
        workdir = _text(given.get("workdir"))
        late = (answer.error or "").startswith("Command timed out") or LATE.search(answer.output or "") is not None
        return Exec(
            command=_text(given.get("command")) or _text(given.get("code")),
            cwd=within(workdir, _roots(session.row)) if workdir else None,
            exit_code=None if status == "denied" or (tool == "terminal" and answer.session_id) else answer.exit_code,
            stdout=answer.output,
            timed_out=True if late else None,
        )

    def _exited(self, session: Sess, stream: StreamOut, row: MessageRow, process: str, code: int) -> None:
        """A command that went on in the background ended: its call's result is completed."""
        if (one := session.behind.pop(process, None)) is None:
            return
        result = ToolResult(
            call_id=one.call,
            linkage="exact",
            status="completed",
            content=_blocks(one.content) or None,
            exec=Exec(command=one.command, exit_code=code),
            supersedes=one.record,
        )
        self._add(session, stream, row, result)

    # files

    def _read(self, session: Sess, called: Called, answer: Pattern) -> None:
        """A file that was read whole: its lines are numbered, and its size says whether a newline ends it."""
        path = _text(called.input.get("path"))
        if not path or answer.content is None or answer.truncated or (called.input.get("offset") or 1) != 1:
            return
        lines: list[str] = []
        for number, line in enumerate(answer.content.split("\n"), 1):
            head, bar, rest = line.partition("|")
            if not bar or head.strip() != str(number):
                return
            lines.append(rest)
        if lines and not lines[-1] and len(lines) == (answer.total_lines or 0) + 1:
            lines.pop()
        text = "\n".join(lines)
        for form in (text, text + "\n"):
            if len(form.encode("utf-8", "surrogatepass")) == answer.file_size:
                session.files.is_(self._key(session, path), form)
                return

    def _changes(self, session: Sess, tool: str, called: Called, answer: Pattern) -> list[FileChange]:
        given = called.input
        path = _text(given.get("path"))
        if tool == "write_file":
            content = given.get("content")
            if not path or not isinstance(content, str):
                return []
            key = self._key(session, path)
            known = session.files.get(key)
            before = Content(sha256=known.sha256, bytes=known.bytes) if known and not known.doubtful else None
            session.files.is_(key, content)
            exact = answer.bytes_written in (None, len(content.encode("utf-8", "surrogatepass")))
            return [
                FileChange(
                    path=within(path, _roots(session.row)),
                    change="modify" if known else "create" if answer.files_created else "modify",
                    before=before,
                    after=content_of(content) if exact else None,
                    diff=answer.diff,
                    applied=True,
                    evidence="reported",
                )
            ]
        changes: list[FileChange] = []
        touched = [(p, "create") for p in answer.files_created or ()] + [
            (p, "delete") for p in answer.files_deleted or ()
        ]
        moved = {self._key(session, new): old for old, new in MOVED.findall(_text(given.get("patch")) or "")}
        known = {self._key(session, p) for p, _ in touched} | {self._key(session, old) for old in moved.values()}
        for one in answer.files_modified or ():
            if (key := self._key(session, one)) not in known:
                touched.append((one, "rename" if key in moved else "modify"))
                known.add(key)
        if not touched and path:
            touched = [(path, "modify")]
        for one, kind in touched:
            key = self._key(session, one)
            old, new = self._worked_out(session, key, given, answer.diff) if len(touched) == 1 else (None, None)
            if new is not None and kind == "modify":
                session.files.is_(key, new)
            else:
                session.files.forget(key)
            changes.append(
                FileChange(
                    path=within(one, _roots(session.row)),
                    change=kind,
                    before=content_of(old) if old is not None else None,
                    after=content_of(new) if new is not None else None,
                    diff=answer.diff if len(touched) == 1 else None,
                    applied=True,
                    evidence="derived" if new is not None else "reported",
                    from_path=within(moved[key], _roots(session.row)) if kind == "rename" else None,
                )
            )
        return changes

    def _worked_out(
        self, session: Sess, key: str, given: dict[str, Any], diff: str | None
    ) -> tuple[str | None, str | None]:
        """Contents before and after, where what was read before and the difference leave no doubt."""
        known = session.files.get(key)
        if known is None or known.text is None or not diff:
            return None, None
        old = known.text
        if known.doubtful and whole_file(diff) != old:
            return None, None
        new = patched(old, diff)
        text, by = given.get("old_string"), given.get("new_string")
        if (
            isinstance(text, str)
            and isinstance(by, str)
            and new != replaced(old, [(text, by, bool(given.get("replace_all")))])
        ):
            return None, None
        return (old, new) if new is not None else (None, None)

    def _key(self, session: Sess, path: str) -> str:
        roots = _roots(session.row)
        return absolute(roots[0].path if roots else None, path)

    def _planned(self, session: Sess, stream: StreamOut, row: MessageRow, call: str, answer: Any) -> None:
        todos: Any = cast("dict[str, Any]", answer).get("todos") if isinstance(answer, dict) else None
        try:
            items = [PlanItem(text=t.content, status=t.status) for t in msgspec.convert(todos, list[Todo])]
        except msgspec.ValidationError:
            return
        if repr(items) != session.plan:
            session.plan = repr(items)
            self._add(session, stream, row, Plan(items=items, call_id=call))

    # usage

    def _usage_of_model(self, row: UsageRow, key: str) -> None:
        """The sums of one model and task: the session's own are in its row too; other tasks stand only here."""
        self._session = row.session_id
        session = self._sess(row.session_id)
        usage = _usage_of([getattr(row, name) for name in COUNTERS])
        meta = {"dev.asrd.hermes": {"model": row.model, "provider": row.billing_provider, "task": row.task,
                                    "api_call_count": row.api_call_count}}  # fmt: skip
        total = UsageTotal(
            scope="dev.asrd.task" if row.task else "dev.asrd.model",
            usage=usage,
            cumulative=True,
            supersedes=session.tasks.get(key),
            meta=meta,
        )
        session.tasks[key] = self._put(self._open(row.session_id, session), total)
        if not row.task:
            session.spent[key] = [getattr(row, name) for name in COUNTERS]
            session.names[key] = (row.model, row.billing_provider or None)

    def _total(self, row: SessionRow) -> None:
        """The session's counters: what they grew by is stated as usage; its end, when it has one."""
        self._session = row.id
        session = self._sess(row.id)
        session.row = session.row or row
        stream = self._open(row.id, session)
        now = [getattr(row, name) or 0 for name in COUNTERS]
        recorded = False
        if repr(now) != session.totals and any(now):
            session.totals = repr(now)
            meta: dict[str, Any] = {"dev.asrd.hermes": {"api_call_count": row.api_call_count}}
            if row.actual_cost_usd:
                meta["dev.asrd.cost"] = {"amount": repr(row.actual_cost_usd), "currency": "USD"}
            total = UsageTotal(
                scope="session",
                usage=_usage_of(now),
                cumulative=True,
                supersedes=session.total_record or None,
                meta=meta,
            )
            ahead = stream.next_seq
            session.total_record = self._put(stream, total)
            recorded = stream.next_seq == ahead
        self._grown(session, stream, row, now, recorded)
        ended = f"{row.ended_at} {row.end_reason}"
        if row.ended_at is not None and row.end_reason and ended != session.ended:
            session.ended = ended
            status = ENDS.get(row.end_reason, "unknown")
            self._put(stream, End(status=status, reason=row.end_reason, at=_at(row.ended_at)))
        if not self.out.noted():
            self.out.skip("totals-say-nothing-new")

    def _grown(self, session: Sess, stream: StreamOut, row: SessionRow, now: list[int], recorded: bool) -> None:
        """What the counters grew by since usage was last stated: one inference; of one response where it was one.

        Counters that went back (a session that was reset) are taken as they are from then on. When the state was lost,
        what was stated before is in the stream and not known here: counters that are `recorded` there as they are now
        were stated; of others nobody knows how much was, and a gap says so.
        """
        counters = f"{row.id}/counters"
        if not session.readings and any(now) and stream.knows(counters):
            session.readings, session.counted, session.waiting = 1, now, []
            session.stated = dict(session.spent)
            if not recorded:
                meta = {"dev.asrd.hermes": dict(zip(COUNTERS, now, strict=True))}
                self._put(stream, Gap(reason="dropped", meta=meta), counters)
            return
        before = session.counted
        grown = [a - b for a, b in zip(now, before, strict=True)]
        if min(grown) < 0:
            session.counted, session.stated = now, dict(session.spent)
            native = Native(native_type="sessions.counters", data=dict(zip(COUNTERS, now, strict=True)))
            self._put(stream, native, counters)
            return
        if not any(grown[:4]):
            return
        session.counted = now
        session.readings += 1
        waiting, session.waiting = session.waiting, []
        config = _json(row.model_config)
        anchor = cast("dict[str, Any]", config).get("_usage_anchor") if isinstance(config, dict) else None
        told: dict[str, Any] = {
            "from": dict(zip(COUNTERS, before, strict=True)),
            "to": dict(zip(COUNTERS, now, strict=True)),
            "requests": grown[5],
            "responses": [w.inference for w in waiting],
        }
        if anchor is not None:
            told["usage_anchor"] = anchor
        one = waiting[0] if len(waiting) == 1 and grown[5] == 1 else None
        last = waiting[-1] if waiting else None
        for model, provider, figures in self._of_models(session, row, grown):
            apart = "" if figures == grown else f"-{model}"
            self._put(
                stream,
                Inference(
                    inference_id=one.inference if one else f"counters-{now[5]}-{sum(now[:4])}{apart}",
                    id_source="derived",
                    model=model,
                    provider=provider,
                    stop_reason=one.stop if one else None,
                    usage=_usage_of(figures),
                    at=last.at if last else None,
                    turn_id=session.turn,
                    supersedes=one.record if one else None,
                    meta={"dev.asrd.usage": told},
                ),
                f"{counters}{apart}",
            )

    def _of_models(
        self, session: Sess, row: SessionRow, grown: list[int]
    ) -> list[tuple[str | None, str | None, list[int]]]:
        """What the counters grew by, by model and provider: as the sums of each model say where they grew by as much."""
        zero = [0] * len(COUNTERS)
        apart: dict[tuple[str, str | None], list[int]] = {}
        for key, now in session.spent.items():
            before = session.stated.get(key, zero)
            name = session.names[key]
            apart[name] = [a + n - b for a, n, b in zip(apart.get(name, zero), now, before, strict=True)]
        session.stated = dict(session.spent)
        used: list[tuple[str | None, str | None, list[int]]] = [
            (model, provider, figures) for (model, provider), figures in apart.items() if any(figures[:4])
        ]
        if used and [sum(c) for c in zip(*(f for _, _, f in used), strict=True)] == grown:
            return used
        single = set(session.models) <= {row.model}
        return [(row.model if single else None, row.billing_provider, grown)]

    def _add(self, session: Sess, stream: StreamOut, row: MessageRow, record: Record) -> str:
        record.at = record.at or _at(row.timestamp)
        record.native_id = None if row.place else row.name
        record.copy_of = self._copy
        if record.turn_id is None:
            record.turn_id = session.turn
        return self._put(stream, record)

    def _put(self, stream: StreamOut, record: Record, key: str | None = None) -> str:
        """Adds a record that is known again by what it says: rows are rewritten. `key`: what it is of."""
        self.out.states(record, key or self._place or None)
        return stream.add(record)


# ---------------------------------------------------------------- small things


def whole_file(diff: str) -> str | None:
    """The old content from a difference that shows the whole file; None where it may not.

    It does when its only hunk begins at line 1 and fewer than three unchanged lines follow the last change (difflib
    gives three where the file has them). Lines keep their newline, so the last one says whether the file ends with it.
    """
    old: list[str] = []
    hunks, context, last = 0, 0, ""
    body = diff.split("\n")
    for line in body:
        if line.startswith("@@ "):
            hunks += 1
            if not line.startswith(("@@ -1,", "@@ -1 ")):
                return None
        elif hunks and line[:1] in (" ", "-", "+"):
            last = line[0]
            context = context + 1 if last == " " else 0
            if last != "+":
                old.append(line[1:])
    if hunks != 1 or context >= 3 or not old:
        return None
    return "\n".join(old) + ("\n" if body[-1] == "" else "")


def _tool_names(tools: list[dict[str, Any]] | None) -> list[str] | None:
    """The names of tools as Chat Completions is given them."""
    functions = [tool.get("function") for tool in tools or ()]
    names = [cast("dict[str, Any]", f).get("name") for f in functions if isinstance(f, dict)]
    return [name for name in names if isinstance(name, str)] or None


def _of_document(place: str, session: str, told: Told) -> MessageRow:
    """A document's message as the row that the database would have of it."""

    def text(value: Any) -> str | None:
        return None if value is None else msgspec.json.encode(value).decode()

    content = told.content if isinstance(told.content, str | None) else JSON_CONTENT + (text(told.content) or "")
    return MessageRow(
        id=0,
        place=place,
        session_id=session,
        role=told.role,
        content=content,
        tool_call_id=told.tool_call_id,
        tool_calls=text(told.tool_calls),
        tool_name=told.tool_name,
        finish_reason=told.finish_reason,
        reasoning=told.reasoning,
        reasoning_content=told.reasoning_content,
        reasoning_details=text(told.reasoning_details),
        codex_reasoning_items=text(told.codex_reasoning_items),
    )


def _usage_of(figures: list[int]) -> Usage:
    return Usage(
        input=figures[0], output=figures[1], cache_read=figures[2], cache_write=figures[3], reasoning=figures[4]
    )


def _at(seconds: float | None) -> str | None:
    """RFC 3339 UTC from seconds since 1970, with the microseconds the source has."""
    if seconds is None or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def _workspace(row: SessionRow | None) -> Workspace | None:
    """Where a session works: its row says so, or (over ACP) its configuration."""
    if row is None:
        return None
    config = _json(row.model_config)
    told: Any = cast("dict[str, Any]", config).get("cwd") if isinstance(config, dict) else None
    path = row.cwd or _text(told) or row.git_repo_root
    if not path:
        return None
    vcs = Vcs(type="git", branch=row.git_branch) if row.git_branch or row.git_repo_root else None
    return Workspace(roots=[WorkspaceRoot(id="r1", path=path, vcs=vcs)])


def _roots(row: SessionRow | None) -> list[WorkspaceRoot] | None:
    workspace = _workspace(row)
    return workspace.roots if workspace else None


JSON_CONTENT = "\0json:"
"""What stands before a content that is a list of parts (`hermes_state.py`)."""


def _known_by(row: MessageRow) -> int:
    """What a message is known again by under another id: its call's id, those of its calls, else its words."""
    if row.role == "tool" and row.tool_call_id:
        return crc32(f"tool {row.tool_call_id}".encode())
    calls = _json(row.tool_calls)
    if isinstance(calls, list):
        idents = [cast("dict[str, Any]", c).get("id") for c in cast("list[Any]", calls) if isinstance(c, dict)]
        if idents:
            return crc32(repr((row.role, idents)).encode("utf-8", "surrogatepass"))
    return crc32(repr((row.role, row.content)).encode("utf-8", "surrogatepass"))


def _blocks(content: str | None) -> list[Block]:
    """Content as blocks: words, or the parts of a list."""
    if not content:
        return []
    if not content.startswith(JSON_CONTENT):
        return [Text(text=content)]
    parts = _json(content.removeprefix(JSON_CONTENT))
    if not isinstance(parts, list):
        return [Text(text=content)]
    blocks: list[Block] = []
    for one in cast("list[Any]", parts):
        part = fields_of(one)
        text, image = part.get("text"), part.get("image_url")
        url = cast("dict[str, Any]", image).get("url") if isinstance(image, dict) else image
        if part.get("type") == "text" and isinstance(text, str):
            blocks.append(Text(text=text))
        elif isinstance(url, str) and url.startswith("data:") and ";base64," in url:
            kind, data = url.removeprefix("data:").split(";base64,", 1)
            blocks.append(Image(media_type=kind, data=data))
        else:
            blocks.append(Other(meta={"dev.asrd.hermes": one}))
    return blocks


def _arguments(arguments: str | dict[str, Any]) -> dict[str, Any]:
    value = _json(arguments) if isinstance(arguments, str) else arguments
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"raw": value}


def _decode_answer(content: str | None) -> Pattern | None:
    """What a tool said, when it is a JSON object; notes that Hermes adds behind it are passed over."""
    if not content or not content.startswith("{"):
        return None
    try:
        return _answer.decode(content)
    except msgspec.ValidationError:
        return None
    except msgspec.DecodeError:
        pass
    try:
        value, _ = json.JSONDecoder().raw_decode(content)
        return msgspec.convert(value, Pattern)
    except (ValueError, msgspec.ValidationError, RecursionError):
        return None


def _json(text: Any) -> Any:
    """The value of JSON text; the text itself where it is none."""
    if not isinstance(text, str):
        return text
    try:
        return _any.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _told(values: dict[str, Any]) -> dict[str, Any]:
    """A row without its empty columns, JSON columns as values."""
    told: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or name == "rowid":
            continue
        if isinstance(value, bytes):
            told[name] = {"bytes": len(value), "sha256": sha256(value)}
        else:
            told[name] = _json(value) if isinstance(value, str) and value[:1] in "{[" else value
    return told


def _effort(config: str | None) -> str | None:
    value = _json(config)
    reasoning: Any = cast("dict[str, Any]", value).get("reasoning_config") if isinstance(value, dict) else None
    effort: Any = cast("dict[str, Any]", reasoning).get("effort") if isinstance(reasoning, dict) else None
    return effort if isinstance(effort, str) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


RECORDER = HermesRecorder
