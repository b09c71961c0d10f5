r"""OpenCode (`opencode`): sessions in an SQLite database (1.18), before that in a tree of JSON documents (1.1).

Where: `~/.local/share/opencode/opencode.db` (WAL) and `~/.local/share/opencode/storage/`, moved by XDG_DATA_HOME. Seen:
1.18.33 and 1.1.65. A 1.18 started on a home of 1.1 leaves the tree in place and does not take it over, so both may stand
side by side; a message that stands in both (an import) is recorded once, by its id.

    session   {"id":"ses_dd54…","project_id":"5128…","parent_id":null,"directory":"/home/dev/app","title":"…",
               "version":"1.18.33","tokens_input":46374,"tokens_output":967,"tokens_reasoning":110,…,"time_created":…}
    message   {"role":"user","time":{"created":1796013470458},"agent":"build","model":{"providerID":"mock","modelID":"mock-1"}}
              {"role":"assistant","parentID":"msg_22ab…","mode":"build","path":{"cwd":"/home/dev/app","root":"…"},"cost":0.0071,
               "tokens":{"total":11116,"input":5498,"output":104,"reasoning":11,"cache":{"write":0,"read":5503}},
               "modelID":"mock-1","providerID":"mock","time":{"created":…,"completed":…},"finish":"tool-calls"}
    part      {"type":"text","text":"I will read the file first.","time":{"start":…,"end":…}}
              {"type":"tool","tool":"bash","callID":"call_1","state":{"status":"completed","input":{"command":"…"},"output":"…",
               "metadata":{"exit":101},"time":{…}}}
              {"type":"step-finish","reason":"tool-calls","snapshot":"6596…","tokens":{…},"cost":0.0071}
              {"type":"compaction","auto":true,"overflow":false}

What is particular
    - Rows are rewritten while they grow. A message is recorded when its text has an end (or its message is complete);
      a tool call when it runs; its result when it is done; a later statement supersedes the earlier one.
    - Usage stands on the assistant message, again on its `step-finish` parts and, added up, on the session: the message
      counts. `reasoning` is beside `output` in 1.18 and inside it in 1.1; `total` says which.
    - `event` repeats every state of every row: only what has no row is read from it, and what was changed since a mark.
    - An undo deletes its messages once the session goes on; `event` still has their last state, and a request that was
      undone was made: they are recorded in their place.
    - A command that the user ran is an assistant's message without a request, below a user's message in fixed words.
    - A fork has new ids and no mark but its time: its messages are older than the session they stand in. Such a message is
      a copy where another session has one of the same time.
    - A sub-agent is a session with `parent_id`; the parent's `task` part names it in `state.metadata.sessionId`.
    - Calls for titles stand nowhere. `account`, `control_account`, `credential`, `session_share` hold secrets: never read.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from asrd.recorders._observed import Contents, absolute, commits, content_of, patched, replaced
from asrd.recorders.base import IMPORTED, IMPORTED_KEY, Recorder, StreamKey, StreamOut, fields_of, from_ms, within
from asrd.records import (
    Approval,
    Block,
    Capture,
    Compaction,
    Config,
    Content,
    CopyOf,
    Cost,
    Error,
    Evidence,
    Exec,
    FileChange,
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
from asrd.records import File as FileBlock
from asrd.sources import Line, Located, Place, Root, Row, RowQuery, Source

# ---------------------------------------------------------------- native structs


class Time(Struct, frozen=True):
    """Milliseconds since 1970."""

    created: int | float | None = None
    updated: int | float | None = None
    completed: int | float | None = None
    start: int | float | None = None
    end: int | float | None = None
    compacted: int | float | None = None


class Cache(Struct, frozen=True):
    read: int = 0
    write: int = 0


class Tokens(Struct):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: Cache = Cache()
    total: int | None = None


class Model(Struct):
    providerID: str | None = None
    modelID: str | None = None
    id: str | None = None
    variant: str | None = None


class Where(Struct):
    cwd: str | None = None
    root: str | None = None


class Wrong(Struct):
    """`error` of a message: a name and its data."""

    name: str | None = None
    data: dict[str, Any] | None = None


class Info(Struct):
    """`message.data`: of a user or an assistant."""

    role: str
    time: Time = Time()
    parentID: str | None = None
    agent: str | None = None
    mode: str | None = None
    model: Model | None = None
    modelID: str | None = None
    providerID: str | None = None
    variant: str | None = None
    path: Where | None = None
    cost: Decimal | None = None
    tokens: Tokens | None = None
    finish: str | None = None
    error: Wrong | None = None
    summary: Any = None


class Running(Struct):
    """`state` of a tool part."""

    status: str
    input: Raw = Raw(b"{}")
    output: str | None = None
    error: str | None = None
    title: str | None = None
    metadata: dict[str, Any] | None = None
    time: Time = Time()
    attachments: list[dict[str, Any]] | None = None


class Part(Struct):
    """`part.data`, of any type."""

    type: str
    text: str | None = None
    synthetic: bool | None = None
    ignored: bool | None = None
    time: Time | None = None
    tool: str | None = None
    callID: str | None = None
    state: Running | None = None
    reason: str | None = None
    tokens: Tokens | None = None
    cost: Decimal | None = None
    auto: bool | None = None
    tail_start_id: str | None = None
    mime: str | None = None
    filename: str | None = None
    url: str | None = None
    source: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    prompt: str | None = None
    error: Any = None
    attempt: int | None = None


class SessionTime(Struct, frozen=True):
    created: int | float | None = None
    updated: int | float | None = None
    archived: int | float | None = None


class Doc(Struct):
    """What the documents of the tree share: their ids."""

    id: str
    sessionID: str | None = None
    messageID: str | None = None


class SessionDoc(Struct):
    """`storage/session/<project>/<id>.json`."""

    id: str
    directory: str | None = None
    parentID: str | None = None
    projectID: str | None = None
    title: str | None = None
    version: str | None = None
    time: SessionTime = SessionTime()
    revert: Any = None
    permission: Any = None
    share: Any = None


class ProjectDoc(Struct):
    """`storage/project/<id>.json`, and a row of `project`."""

    id: str
    worktree: str | None = None
    vcs: str | None = None


class SessionRow(Struct):
    """A row of `session`."""

    id: str
    directory: str | None = None
    parent_id: str | None = None
    project_id: str | None = None
    title: str | None = None
    version: str | None = None
    time_created: int | None = None
    time_archived: int | None = None
    revert: str | None = None
    permission: str | None = None
    metadata: str | None = None
    share_url: str | None = None
    cost: float | None = None
    tokens_input: int | None = None
    tokens_output: int | None = None
    tokens_reasoning: int | None = None
    tokens_cache_read: int | None = None
    tokens_cache_write: int | None = None


class ItemRow(Struct):
    """A row of `message` or `part`."""

    kind: str
    id: str
    message_id: str
    session_id: str
    data: str
    time_created: int | float | None = None
    role: str | None = None


class EventRow(Struct):
    """A row of `event` whose type has no table of its own."""

    id: str
    aggregate_id: str
    type: str
    data: str


class TodoRow(Struct):
    """The list of one session."""

    session_id: str
    items: str


class Todo(Struct):
    content: str
    status: str = "pending"
    priority: str | None = None


_info = msgspec.json.Decoder(Info, strict=False)
_part = msgspec.json.Decoder(Part, strict=False)
_session_doc = msgspec.json.Decoder(SessionDoc)
_project_doc = msgspec.json.Decoder(ProjectDoc)
_doc = msgspec.json.Decoder(Doc)
_any = msgspec.json.Decoder()
_todos = msgspec.json.Decoder(list[Todo])


# ---------------------------------------------------------------- state


class Said(Struct):
    """A message that may still change."""

    session: str
    role: str
    at: str | None = None
    completed: bool = False
    inference: str = ""
    """The record that states its response now."""
    figures: str = ""
    """What that record states, to tell whether there is more to say."""
    steps: int = 0
    """`step-finish` parts seen whose figures are the message's own."""
    copy: tuple[str, str] | None = None
    summary: bool = False
    typed: bool = False
    """Whether it stands for a command that the user ran."""
    compaction: str | None = None
    blocks: list[Block] = []
    prompt: str = ""
    """The record of the prompt, when it has several parts."""
    diffs: Any = None
    """Differences of a user's message, said when its prompt was."""
    held: dict[str, bytes] = {}
    """Text parts without an end."""
    waiting: dict[str, str] = {}
    """Tool parts without a result: what was said of each (`call`)."""
    done: list[str] = []
    model: str | None = None
    provider: str | None = None
    effort: str | None = None

    def response(self, ident: str) -> str:
        """The id of its response: of a copy it is the owner's."""
        return self.copy[1] if self.copy else ident


class Sess(Struct):
    """A session."""

    store: str
    created: int | None = None
    directory: str | None = None
    parent: str | None = None
    project: str | None = None
    title: str | None = None
    version: str | None = None
    opened: bool = False
    model: str | None = None
    mode: str | None = None
    turn: str | None = None
    ended: bool = False
    """Whether that turn's end was said."""
    ending: Turn | None = None
    """The end of a turn whose last message is complete; said when something else follows."""
    last: str = ""
    """The largest message id seen: messages up to it that are not open were closed."""
    open: dict[str, Said] = {}
    totals: str = ""
    total_record: str = ""
    plan: str = ""
    planned: str = ""
    """The record of that plan, where it names no call."""
    ran: str = ""
    """The user's message that says a command of the user's was run."""
    gone: list[ItemRow] = []
    """Messages that were removed, with their parts: they wait for their place."""
    rest: dict[str, Any] = {}
    """What its row says besides: what was reverted, its permissions, whether it is archived or shared."""
    forked: str = ""
    """The session that this one is a fork of."""
    compaction: str | None = None
    """How the compaction that is under way was started."""
    kept_from: str | None = None
    ids: list[str] = []
    """Messages recorded from the tree, to know them again in a database."""
    files: Contents = msgspec.field(default_factory=Contents)


class State(Struct):
    """All that is kept between items."""

    sessions: dict[str, Sess] = {}
    projects: dict[str, ProjectDoc] = {}
    made: dict[str, dict[str, tuple[str, str]]] = {}
    """Session and id of the messages of a time and role, by session: to know copies of them."""
    spawned: dict[str, tuple[str, str, str]] = {}
    """Parent session, call and link record of a sub-agent's session."""
    resumed: list[str] = []
    """Later calls that went on with a sub-agent's session, as `session/call`."""


# ---------------------------------------------------------------- where it lies

_ROLE = "CASE WHEN json_valid(m.data) THEN json_extract(m.data, '$.role') END"


def _items(messages: str, parts: str) -> str:
    """Messages with their parts behind them, in the order they were made."""
    return f"""
SELECT 'message' AS kind, m.id AS id, m.id AS message_id, m.session_id AS session_id, m.time_created AS time_created,
       m.data AS data, NULL AS role, m.rowid AS _order, '' AS _part
  FROM message m {messages}
UNION ALL
SELECT 'part', p.id, p.message_id, p.session_id, p.time_created, p.data, {_ROLE}, m.rowid, p.id
  FROM message m CROSS JOIN part p ON p.message_id = m.id {parts}
 ORDER BY _order, _part"""


_MARK = "SELECT max(rowid) FROM event"
_OVERLAP = 16
"""Events that are looked at again, in case one was written before its row."""
_EVENT_MESSAGES = f"""
SELECT CASE WHEN json_valid(e.data) THEN coalesce(json_extract(e.data, '$.part.messageID'), json_extract(e.data, '$.info.id')) END
  FROM event e WHERE e.rowid > :since - {_OVERLAP}"""
_EVENT_PARTS = f"""
SELECT CASE WHEN json_valid(e.data) THEN json_extract(e.data, '$.part.id') END FROM event e WHERE e.rowid > :since - {_OVERLAP}"""
_OTHER_EVENTS = """
 type NOT LIKE 'message.updated.%' AND type NOT LIKE 'message.part.updated.%'
   AND type NOT LIKE 'session.created.%' AND type NOT LIKE 'session.updated.%'"""


def _removed(events: str) -> str:
    """Messages that were removed, as `event` last had them, with their parts; `events`: which removals."""
    return f"""
WITH gone AS MATERIALIZED (
  SELECT DISTINCT r.aggregate_id AS session, json_extract(r.data, '$.messageID') AS id
    FROM event r {events} r.type LIKE 'message.removed.%' AND json_valid(r.data)
), last AS MATERIALIZED (
  SELECT g.session AS session, g.id AS id, (
    SELECT max(e.rowid) FROM event e WHERE e.aggregate_id = g.session AND e.type >= 'message.updated.'
       AND e.type < 'message.updated/' AND json_extract(e.data, '$.info.id') = g.id) AS _row
    FROM gone g WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.id = g.id)
)
SELECT 'message' AS kind, l.id AS id, l.id AS message_id, l.session AS session_id,
       json_extract(e.data, '$.info.time.created') AS time_created, json_extract(e.data, '$.info') AS data, NULL AS role,
       '' AS _part
  FROM last l JOIN event e ON e.rowid = l._row
UNION ALL
SELECT 'part', p.id, p.message_id, p.session_id, NULL, json_extract(e.data, '$.part'), p.role, p.id
  FROM (
    SELECT json_extract(u.data, '$.part.id') AS id, l.id AS message_id, l.session AS session_id,
           json_extract(o.data, '$.info.role') AS role, max(u.rowid) AS _row
      FROM last l JOIN event o ON o.rowid = l._row
      JOIN event u ON u.aggregate_id = l.session AND u.type >= 'message.part.updated.' AND u.type < 'message.part.updated/'
       AND json_extract(u.data, '$.part.messageID') = l.id
     GROUP BY 1, 2, 3, 4
  ) p JOIN event e ON e.rowid = p._row
 ORDER BY session_id, message_id, _part"""


QUERIES = (
    RowQuery("project", "SELECT id, worktree, vcs FROM project ORDER BY rowid", ("id",)),
    RowQuery("session", "SELECT * FROM session ORDER BY rowid", ("id",)),
    RowQuery(
        "removed",
        _removed("WHERE"),
        ("id",),
        needs=("message", "event"),
        mark=_MARK,
        changed=_removed("NOT INDEXED WHERE r.rowid > :since AND"),  # by row, which is what is new
    ),
    RowQuery(
        "message",
        _items("", ""),
        ("id",),
        needs=("message", "part"),
        mark=_MARK,
        changed=_items(
            f"WHERE m.id IN ({_EVENT_MESSAGES})", f"WHERE m.id IN ({_EVENT_MESSAGES}) AND p.id IN ({_EVENT_PARTS})"
        ),
        columns=("id", "data"),
    ),
    RowQuery(
        "part",
        """SELECT 'part' AS kind, p.id AS id, p.message_id AS message_id, p.session_id AS session_id,
        p.time_created AS time_created, p.data AS data, NULL AS role FROM part p
        WHERE p.rowid IN (SELECT o.rowid FROM part o WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.id = o.message_id))
        ORDER BY p.id""",
        ("id",),
        needs=("message", "part"),
        mark=_MARK,
        changed=f"""SELECT 'part' AS kind, p.id AS id, p.message_id AS message_id, p.session_id AS session_id,
        p.time_created AS time_created, p.data AS data, NULL AS role FROM part p WHERE p.id IN ({_EVENT_PARTS})
        AND NOT EXISTS (SELECT 1 FROM message m WHERE m.id = p.message_id) ORDER BY p.id""",
    ),
    RowQuery(
        "todo",
        """SELECT session_id, json_group_array(json_object('content', content, 'status', status, 'priority', priority))
        AS items FROM (SELECT * FROM todo ORDER BY session_id, position) GROUP BY session_id""",
        ("session_id",),
    ),
    RowQuery(
        "event",
        f"""SELECT id, aggregate_id, type, data FROM event
        WHERE rowid IN (SELECT rowid FROM event WHERE {_OTHER_EVENTS}) ORDER BY rowid""",
        ("id",),
        mark=_MARK,
        changed=f"""SELECT id, aggregate_id, type, data FROM event WHERE rowid > :since AND {_OTHER_EVENTS}
        ORDER BY rowid""",
    ),
    RowQuery("session_message", "SELECT * FROM session_message ORDER BY rowid", ("id",)),
    RowQuery("session_input", "SELECT * FROM session_input ORDER BY rowid", ("id",)),
    RowQuery(
        "session_total", "SELECT * FROM session ORDER BY rowid", ("id",), needs=("session",), since="time_updated"
    ),
)


def arrange(path: str) -> tuple[str, ...] | None:
    """Projects and sessions first, then each message with its parts, by id (ids rise with time); secrets never."""
    parts = path.removesuffix(".json").split("/")
    match parts[0]:
        case "session_share" | "auth":
            return None
        case "project":
            return ("0", *parts)
        case "session":
            return ("1", parts[-1])
        case "message":
            return ("2", parts[-1])
        case "part":
            return ("2", *parts[-2:])
        case _:
            return ("3", *parts)


# ---------------------------------------------------------------- the recorder

KINDS = {
    "read": "read", "list": "search", "glob": "search", "grep": "search", "codesearch": "search", "edit": "edit",
    "write": "edit", "multiedit": "edit", "patch": "edit", "apply_patch": "edit", "bash": "execute",
    "webfetch": "fetch", "websearch": "fetch", "task": "delegate", "todowrite": "plan", "todoread": "plan",
}  # fmt: skip

REJECTED = "The user rejected permission to use this specific tool call"
"""How OpenCode words the error of a call that was denied when asked (`permission/next.ts`); `opencode run` denies by
itself in the same words, so they do not say who did."""
FORBIDDEN = "The user has specified a rule which prevents you from using this specific tool call"
"""... and of one that a rule denied."""
ABORTED = ("Tool execution aborted", "Tool execution was interrupted")
STOPPED = "<shell_metadata>\nUser aborted the command\n</shell_metadata>"
"""How the output of a command ends that was stopped with its turn; the call is "completed" then (1.18.33)."""
RAN = "The following tool was executed by the user"
"""The words of the user's message above a command that the user ran (`SessionPrompt.shell`, 1.18.33)."""

_SESSION_ID = re.compile(rb"ses_[0-9a-f]{12}[0-9A-Za-z]{14}")
"""How OpenCode makes ids: a kind, a time in hex, chance in base 62."""

PLAN = {"pending": "pending", "in_progress": "in_progress", "completed": "completed", "cancelled": "cancelled"}


class OpenCodeRecorder(Recorder):
    """Rows and documents of OpenCode as records. One group: all sessions of a home, from either store."""

    harness = "opencode"
    roots = (Root(".local/share/opencode", env=("XDG_DATA_HOME",), below="opencode"),)
    places = (
        Place("opencode*.db", "table", QUERIES),
        Place("storage", "tree", arrange=arrange),
    )
    versions = ("1.18.33", "1.1.65")
    State = State
    state: State

    def __init__(self, out: Any, group: str) -> None:
        super().__init__(out, group)
        self._session = ""

    @classmethod
    def locate(cls, path: str) -> Located | None:
        if path == "storage":
            return Located("opencode", "storage", "2")
        return Located("opencode", path, "1")

    @classmethod
    def claims(cls, head: bytes) -> bool:
        return head.startswith(b"SQLite format 3\0") and _SESSION_ID.search(head) is not None

    def receive(self, source: Source, item: Line | Row) -> None:
        self._session = ""
        if not isinstance(item, Row):
            return
        if source.kind == "tree":
            self._document(item)
        else:
            self._row(source.name, item)

    def main(self) -> StreamOut:
        """The stream of the session at hand, else of the first session, else one of the group's own."""
        session = self.state.sessions.get(self._session)
        if session is None:
            opened = (s for s, one in self.state.sessions.items() if one.opened)
            self._session = next(opened, "")
            session = self.state.sessions.get(self._session)
        if session is not None:
            return self._open(self._session, session)
        return self.open(StreamKey(self.harness, self._session or self.group))

    # the two stores

    def _row(self, store: str, item: Row) -> None:
        values = item.values
        match item.table:
            case "project":
                self._project(msgspec.convert(values, ProjectDoc))
            case "session":
                row = msgspec.convert(values, SessionRow)
                self._session_known(store, row.id, _facts(store, row))
            case "session_total":
                self._total(msgspec.convert(values, SessionRow))
            case "removed":
                row = msgspec.convert(values, ItemRow)
                self._session = row.session_id
                session = self._known(store, row.session_id)
                if row.message_id <= session.last:
                    self.out.skip("removed-message-was-recorded")
                else:
                    session.gone.append(row)
                    self.out.skip("removed-message-has-its-place")
            case "message" | "part":
                row = msgspec.convert(values, ItemRow)
                self._session = row.session_id
                if row.session_id in self.state.sessions:
                    self._removed(store, row.session_id, row.message_id)
                self._item(store, row)
            case "todo":
                row = msgspec.convert(values, TodoRow)
                self._session = row.session_id
                self._todo(store, row.session_id, _todos.decode(row.items.encode()))
            case "event":
                row = msgspec.convert(values, EventRow)
                self._session = row.aggregate_id
                self._put(
                    self.main(), Native(native_type=row.type, native_id=row.id, data=_any.decode(row.data.encode()))
                )
            case _:
                self._session = str(values.get("session_id") or "")
                self._put(
                    self.main(), Native(native_type=item.table, native_id=str(values.get("id")), data=_decoded(values))
                )

    def _item(self, store: str, row: ItemRow) -> None:
        """A message or a part of one."""
        data = row.data.encode()
        if row.kind == "message":
            self._message(store, row.session_id, row.id, _info.decode(data), data)
        else:
            part = _part.decode(data)
            self._part(store, row.session_id, row.message_id, row.id, row.role, part, data, _int(row.time_created))

    def _removed(self, store: str, sid: str, before: str | None) -> None:
        """Records the removed messages of a session that stood before a message (None: all that are left)."""
        session = self.state.sessions[sid]
        while session.gone and (before is None or session.gone[0].message_id < before):
            self._item(store, session.gone.pop(0))

    def _document(self, item: Row) -> None:
        match item.table:
            case "project":
                self._project(_project_doc.decode(item.data))
            case "session":
                doc = _session_doc.decode(item.data)
                facts = Sess(
                    "storage",
                    _int(doc.time.created),
                    doc.directory,
                    doc.parentID,
                    doc.projectID,
                    doc.title,
                    doc.version,
                )
                self._session_known("storage", doc.id, facts)
            case "message":
                doc = _doc.decode(item.data)
                self._session = doc.sessionID or ""
                self._message("storage", self._session, doc.id, _info.decode(item.data), item.data)
            case "part":
                doc = _doc.decode(item.data)
                self._session = doc.sessionID or ""
                part = _part.decode(item.data)
                self._part("storage", self._session, doc.messageID or "", doc.id, None, part, item.data, None)
            case "session_diff":
                self._session = item.key.rsplit("/", 1)[-1].removesuffix(".json")
                self._end_turn(self._session)
                diffs = _any.decode(item.data)
                if diffs:
                    self._put(self.main(), Native(native_type="session_diff", data=diffs))
                else:
                    self.out.skip("no-difference-over-the-session")
            case "todo":
                self._session = item.key.rsplit("/", 1)[-1].removesuffix(".json")
                self._todo("storage", self._session, _todos.decode(item.data))
            case _:
                self._put(
                    self.main(), Native(native_type=item.table.removesuffix(".json"), data=_any.decode(item.data))
                )

    # sessions

    def _project(self, project: ProjectDoc) -> None:
        self.state.projects[project.id] = project
        self.out.skip("project-is-in-the-headers")

    def _session_known(self, store: str, ident: str, facts: Sess) -> None:
        """What a session's row says: kept for its header; what is new after it is said."""
        self._session = ident
        session = self.state.sessions.get(ident)
        if session is None:
            self.state.sessions[ident] = facts
            self.out.skip("session-is-in-its-header")
            return
        if session.store != store:
            self.out.skip("session-of-the-other-store")
            return
        title = facts.title if facts.title != session.title else None
        version = facts.version if facts.version != session.version else None
        if session.opened and (title or version):
            self._put(self._open(ident, session), Config(title=title, version=version))
        if session.opened and facts.rest != session.rest:
            self._put(
                self._open(ident, session), Native(native_type="session", native_id=ident, data=facts.rest), ident
            )
        if not self.out.noted():
            self.out.skip("session-says-nothing-new")
        session.rest = facts.rest
        session.title, session.version = facts.title, facts.version
        session.parent = session.parent or facts.parent

    def _total(self, row: SessionRow) -> None:
        """The session's own totals (copies of a fork with them), and a turn that came to its end."""
        self._session = row.id
        session = self.state.sessions.get(row.id)
        if session is None or session.store == "storage":
            self.out.skip("session-of-the-other-store")
            return
        self._removed(session.store, row.id, None)
        for mid, said in session.open.items():
            if said.completed and said.held:
                self._flush(row.id, session, mid, said)
        self._end_turn(row.id)
        figures = (
            row.tokens_input, row.tokens_output, row.tokens_reasoning, row.tokens_cache_read, row.tokens_cache_write
        )  # fmt: skip
        digest = repr(figures)
        if not any(figures) or digest == session.totals:
            if not self.out.noted():
                self.out.skip("totals-say-nothing-new")
            return
        added = (row.tokens_output or 0) + (row.tokens_reasoning or 0)
        usage = Usage(
            input=row.tokens_input,
            output=added,
            cache_read=row.tokens_cache_read,
            cache_write=row.tokens_cache_write,
            reasoning=row.tokens_reasoning,
        )
        raw = {"input": row.tokens_input, "output": row.tokens_output, "reasoning": row.tokens_reasoning}
        meta: dict[str, Any] = {"dev.asrd.usage": raw}
        if row.cost:
            meta["dev.asrd.cost"] = {"amount": repr(row.cost), "currency": "USD"}
        total = UsageTotal(
            scope="session", usage=usage, cumulative=True, supersedes=session.total_record or None, meta=meta
        )
        session.totals = digest
        session.total_record = self._put(self._open(row.id, session), total)

    def _known(self, store: str, ident: str) -> Sess:
        session = self.state.sessions.get(ident)
        if session is None:
            session = self.state.sessions[ident] = Sess(store)
        return session

    def _open(self, ident: str, session: Sess, fork: tuple[str, str, int | None] | None = None) -> StreamOut:
        """The session's stream; its header says what its row and first message say."""
        key = StreamKey(self.harness, ident)
        found = self.out.stream(key)
        if found is not None:
            session.opened = True
            return found
        stream = self.open(
            key,
            version=session.version,
            started_at=from_ms(session.created),
            lineage=self._lineage(ident, session, fork),
            workspace=self._workspace(session),
            title=session.title,
        )
        session.opened = True
        self._put(
            stream,
            Capture(
                profile="usage",
                facet="requests.auxiliary",
                state="unavailable",
                reason="OpenCode stores no usage of requests for titles, nor of a step that did not finish",
            ),
            ident,
        )
        self._put(
            stream,
            Capture(
                profile="coding",
                facet="approval",
                state="partial",
                reason="OpenCode stores no permission that was asked for or granted; a denied one is the error of its call",
            ),
            ident,
        )
        if session.store == "storage":
            none = "the tree of documents has no total of a session"
            self._put(stream, Capture(profile="usage", facet="usage_total", state="unavailable", reason=none), ident)
        if session.rest:
            self._put(stream, Native(native_type="session", native_id=ident, data=session.rest), ident)
        if session.parent and ident not in self.state.spawned:
            self._spawned(session.parent, ident, "", "session.parent_id", ident)
        return stream

    def _lineage(self, ident: str, session: Sess, fork: tuple[str, str, int | None] | None) -> Lineage:
        if session.parent:
            _, call, _ = self.state.spawned.get(ident, ("", "", ""))
            parent = LineageParent(agent=self.harness, session_id=session.parent, call_id=call or None)
            evidence = Evidence(kind="native-field", field="session.parent_id", value=session.parent)
            return Lineage(root=False, parent=parent, relation="spawned_by", evidence=evidence)
        if fork is not None:
            owner, _, created = fork
            evidence = _copied_from(owner, created)
            parent = LineageParent(agent=self.harness, session_id=owner)
            return Lineage(root=False, parent=parent, relation="forked_from", evidence=evidence)
        if session.created is None or " (fork #" in (session.title or ""):
            return Lineage()
        return Lineage(root=True)

    def _workspace(self, session: Sess) -> Workspace | None:
        if not session.directory:
            return None
        project = self.state.projects.get(session.project or "")
        vcs = Vcs(type=project.vcs) if project and project.vcs else None
        return Workspace(roots=[WorkspaceRoot(id="r1", path=session.directory, vcs=vcs)])

    def _spawned(self, parent: str, child: str, call: str, field: str, value: str) -> None:
        """The parent's link to a sub-agent's session, once; again when the call becomes known."""
        _, known, record = self.state.spawned.get(child, ("", "", ""))
        again = f"{child}/{call}"
        if record and (known == call or not call or again in self.state.resumed):
            return
        home = self.state.sessions.get(parent)
        if home is None:
            return
        link = Link(
            relation="spawned",
            target=LinkTarget(agent=self.harness, session_id=child),
            evidence=Evidence(kind="native-field", field=field, value=value),
            call_id=call or None,
            supersedes=record if record and not known else None,
        )
        made = self._put(self._open(parent, home), link, child)
        if record and known:
            self.state.resumed.append(again)
        else:
            self.state.spawned[child] = (parent, call, made)

    # messages

    def _message(self, store: str, sid: str, mid: str, info: Info, data: bytes) -> None:
        session = self._known(store, sid)
        if session.store != store and mid in session.ids:
            self.out.skip("message-of-the-other-store")
            return
        said = session.open.get(mid)
        if said is None:
            if mid <= session.last:
                self._late_message(sid, session, mid, info, data)
                return
            said = self._first_seen(store, sid, session, mid, info)
        said.completed = said.completed or info.time.completed is not None
        if info.role == "user":
            self._summary(sid, session, mid, said, info)
        elif session.ran and info.parentID == session.ran and info.tokens is not None and not info.finish:
            said.typed = True
            self.out.skip("command-of-the-user-is-no-response")
        else:
            self._response(sid, session, mid, said, info)

    def _first_seen(self, store: str, sid: str, session: Sess, mid: str, info: Info) -> Said:
        """A message that was not seen before: what it closes, whether it is a copy, what it configures."""
        self._close_others(sid, session)
        session.last = mid
        if store == "storage":
            session.ids.append(mid)
        said = Said(session=sid, role=info.role, at=from_ms(info.time.created))
        made = self.state.made.setdefault(f"{info.time.created}:{info.role}", {})
        older = _older(info.time.created, session.created)
        if older and (origin := _imported(session)):
            said.copy = (origin, mid)
        elif older and (owner := made.get(session.forked) or _first(made, sid)):
            said.copy = owner
        else:
            made[sid] = (sid, mid)
        session.open[mid] = said
        if said.copy and not session.forked:
            session.forked = said.copy[0]
            fork = (said.copy[0], said.copy[1], _int(info.time.created))
            stream = self._open(sid, session, fork)
            evidence = _copied_from(fork[0], fork[2])
            target = LinkTarget(agent=self.harness, session_id=session.forked)
            self._put(stream, Link(relation="forked_from", target=target, evidence=evidence), sid)
        if info.role == "assistant":
            said.model, said.provider = info.modelID, info.providerID
            said.effort = _effort(info.variant)
        elif info.model:
            said.model, said.provider = info.model.modelID, info.model.providerID
            said.effort = _effort(info.model.variant)
        mode = info.agent or info.mode
        if info.summary is not True and (
            (said.model and said.model != session.model) or (mode and mode != session.mode)
        ):
            model = said.model if said.model != session.model else None
            self._add(sid, session, said, mid, Config(model=model, mode=mode if mode != session.mode else None))
            session.model, session.mode = said.model or session.model, mode or session.mode
        return said

    def _close_others(self, sid: str, session: Sess) -> None:
        """Another message begins: texts that never got an end are said as they are, and what is final is let go."""
        for other, said in list(session.open.items()):
            if said.held and (said.completed or said.role == "user" or not said.waiting):
                self._flush(sid, session, other, said)
            if said.role == "user" or (said.completed and not said.held and not said.waiting):
                del session.open[other]
        self._end_turn(sid)

    def _late_message(self, sid: str, session: Sess, mid: str, info: Info, data: bytes) -> None:
        """A message that was closed is other than it was: a user's message gets its differences when its turn ends."""
        if info.role == "user":
            self._summary(sid, session, mid, Said(sid, "user", from_ms(info.time.created)), info)
        else:
            stream = self._open(sid, session)
            self._put(stream, Native(native_type="message", native_id=mid, data=_any.decode(data)))

    def _summary(self, sid: str, session: Sess, mid: str, said: Said, info: Info) -> None:
        """A user's message: the differences that its turn made over all, as OpenCode's own snapshots tell them."""
        summary: Any = info.summary
        diffs: Any = cast("dict[str, Any]", summary).get("diffs") if isinstance(summary, dict) else None
        if not diffs or said.figures == repr(diffs):
            self.out.skip("user-message-is-in-its-parts")
            return
        said.figures = repr(diffs)
        if session.open.get(mid) is said and not said.prompt:
            said.diffs = diffs
            self.out.skip("differences-are-said-behind-the-prompt")
            return
        self._differ(sid, session, mid, said, diffs)

    def _differ(self, sid: str, session: Sess, mid: str, said: Said, diffs: Any) -> None:
        native = Native(native_type="message.summary", native_id=mid, data={"diffs": diffs}, turn_id=mid)
        self._add(sid, session, said, mid, native)

    def _response(self, sid: str, session: Sess, mid: str, said: Said, info: Info) -> None:
        """An assistant's message: one inference, stated again when more of it is known."""
        said.summary = info.summary is True
        stop = info.finish
        error = _error(info.error)
        usage = _usage(info.tokens, session.store)
        self._infer(sid, session, mid, said, usage, info.tokens, info.cost, stop, error)
        if said.completed and not said.summary and (error or (stop and stop not in ("tool-calls", "unknown"))):
            status = "completed" if not error else "failed"
            if error and error.code == "MessageAbortedError":
                status = "interrupted"
            elif stop == "content-filter":
                status = "refused"
            session.ending = Turn(
                turn_id=session.turn or mid, phase="end", status=status, error=error, at=from_ms(info.time.completed)
            )
            if said.copy:
                session.ending.copy_of = CopyOf(session_id=said.copy[0], native_id=said.copy[1])

    def _infer(
        self, sid: str, session: Sess, mid: str, said: Said, usage: Usage | None, tokens: Tokens | None,
        cost: Decimal | None, stop: str | None, error: Error | None,
    ) -> None:  # fmt: skip
        if said.copy and said.copy[0].startswith(IMPORTED):
            self.out.skip("imported-message-is-no-response")
            return
        figures = repr((usage, stop, error))
        new = usage or error or (stop and not said.figures.startswith("(Usage("))
        if said.inference and (figures == said.figures or not new):
            self.out.skip("message-says-nothing-new")
            return
        said.figures = figures
        meta: dict[str, Any] | None = None
        if usage is not None and tokens is not None:
            meta = {"dev.asrd.usage": msgspec.to_builtins(tokens)}
        said.inference = self._add(
            sid,
            session,
            said,
            mid,
            Inference(
                inference_id=said.response(mid),
                model=said.model,
                provider=said.provider,
                effort=said.effort,
                stop_reason=stop,
                usage=usage,
                cost=Cost(amount=str(cost), currency="USD") if cost and usage is not None else None,
                error=error,
                supersedes=said.inference or None,
                meta=meta,
            ),
        )

    # parts

    def _part(
        self, store: str, sid: str, mid: str, pid: str, role: str | None, part: Part, data: bytes, created: int | None
    ) -> None:
        session = self._known(store, sid)
        if session.store != store and mid in session.ids:
            self.out.skip("message-of-the-other-store")
            return
        said = session.open.get(mid)
        if said is None:
            if mid > session.last and role is not None:
                said = session.open[mid] = Said(session=sid, role=role)
                session.last = mid
            else:
                self._late_part(sid, session, pid, part, data)
                return
        if pid in said.done and part.type not in ("text", "step-finish"):
            self.out.skip("part-says-nothing-new")
            return
        at = _part_time(part, created) or said.at
        match part.type:
            case "text" if said.role == "user":
                self._said_by_user(sid, session, mid, pid, said, part, at)
            case "text" | "reasoning":
                self._words(sid, session, mid, pid, said, part, data, at)
            case "tool":
                self._tool(sid, session, mid, pid, said, part, at)
            case "file" | "agent" | "subtask":
                self._attached(sid, session, mid, pid, said, part, data, at)
            case "step-start" | "snapshot":
                self.out.skip("snapshot-of-the-shadow-repository")
            case "step-finish":
                self._step(sid, session, mid, pid, said, part, at)
            case "compaction":
                session.compaction = "auto" if part.auto else "manual" if part.auto is False else None
                session.kept_from = part.tail_start_id
                self.out.skip("compaction-is-said-with-its-summary")
            case "retry":
                error = _error_of(part.error)
                derived = Inference(
                    inference_id=pid, id_source="derived", model=said.model, provider=said.provider, error=error
                )
                self._add(sid, session, said, pid, derived, at)
            case _:
                self._add(sid, session, said, pid, Native(native_type=part.type, data=_any.decode(data)), at)
        if part.type in ("file", "agent", "subtask", "step-finish", "retry", "patch"):
            said.done.append(pid)

    def _late_part(self, sid: str, session: Sess, pid: str, part: Part, data: bytes) -> None:
        """A part of a message that was closed, or whose message is not there, is other than it was."""
        if part.state is not None and part.state.time.compacted is not None:
            self.out.skip("output-left-out-of-the-context")
            return
        stream = self._open(sid, session)
        self._put(stream, Native(native_type=f"part.{part.type}", native_id=pid, data=_any.decode(data)))

    def _said_by_user(
        self, sid: str, session: Sess, mid: str, pid: str, said: Said, part: Part, at: str | None
    ) -> None:
        """Words of a user's message: the prompt, once with all its parts; what OpenCode put in is `injected`."""
        text = part.text or ""
        if part.synthetic or part.ignored:
            if pid in said.done:
                self.out.skip("part-says-nothing-new")
                return
            said.done.append(pid)
            if text == RAN:
                self._end_turn(sid)
                session.ran, session.turn = mid, None
            message = Message(
                role="user",
                content=[Text(text=text)],
                message_id=mid,
                author="harness",
                origin="injected",
                audience="user" if part.ignored else "model",
            )
            self._add(sid, session, said, pid, message, at)
            return
        self._prompt(sid, session, mid, pid, said, Text(text=text), at)

    def _prompt(self, sid: str, session: Sess, mid: str, pid: str, said: Said, block: Block, at: str | None) -> None:
        agent = bool(session.parent)
        if not said.prompt:
            self._end_turn(sid)
            session.turn, session.ended = mid, False
            start = Turn(turn_id=mid, phase="start", trigger="agent" if agent else "prompt")
            self._add(sid, session, said, mid, start, said.at or at)
        if said.blocks and block in said.blocks:
            self.out.skip("part-says-nothing-new")
            return
        said.blocks = [*said.blocks, block]
        message = Message(
            role="user",
            content=list(said.blocks),
            message_id=mid,
            author="agent" if agent else "human",
            origin="agent" if agent else "prompt",
            audience="model",
            supersedes=said.prompt or None,
        )
        said.prompt = self._add(sid, session, said, pid, message, said.at or at)
        if said.diffs:
            self._differ(sid, session, mid, said, said.diffs)
            said.diffs = None

    def _attached(
        self, sid: str, session: Sess, mid: str, pid: str, said: Said, part: Part, data: bytes, at: str | None
    ) -> None:
        """A file, a named sub-agent or a command that came with a message."""
        block = _file(part) if part.type == "file" else Other(meta={"dev.asrd.opencode": _any.decode(data)})
        if part.type == "subtask" and part.prompt:
            block = Text(text=part.prompt)
        if said.role == "user":
            self._prompt(sid, session, mid, pid, said, block, at)
            return
        message = Message(
            role="assistant", content=[block], message_id=mid, author="agent", inference_id=said.response(mid)
        )
        self._add(sid, session, said, pid, message, at)

    def _words(
        self, sid: str, session: Sess, mid: str, pid: str, said: Said, part: Part, data: bytes, at: str | None
    ) -> None:
        """What the model said or thought, when it is whole."""
        if pid in said.done:
            self.out.skip("part-says-nothing-new")
            return
        if not (part.time and part.time.end) and not said.completed:
            said.held[pid] = data
            self.out.skip("text-still-being-written")
            return
        said.held.pop(pid, None)
        said.done.append(pid)
        text = part.text or ""
        if not text:
            self.out.skip("empty-text")
            return
        self._say(sid, session, mid, pid, said, part.type, text, at)

    def _say(
        self, sid: str, session: Sess, mid: str, pid: str, said: Said, kind: str, text: str, at: str | None
    ) -> None:
        if said.summary and kind == "text":
            compaction = Compaction(trigger=session.compaction, message_id=mid, kept_from=session.kept_from)
            self._add(sid, session, said, mid, compaction, said.at or at)
            session.compaction = session.kept_from = None
        block: Block = Thinking(text=text) if kind == "reasoning" else Text(text=text)
        message = Message(
            role="assistant",
            content=[block],
            message_id=mid,
            author="agent",
            origin="summary" if said.summary else None,
            audience="model" if said.summary else "user" if kind == "text" else None,
            inference_id=said.response(mid) if said.inference else None,
        )
        self._add(sid, session, said, pid, message, at)

    def _flush(self, sid: str, session: Sess, mid: str, said: Said) -> None:
        """Texts without an end whose message has one: said as far as they came."""
        for pid, data in said.held.items():
            part = _part.decode(data)
            said.done.append(pid)
            if part.text:
                self._say(sid, session, mid, pid, said, part.type, part.text, _part_time(part, None) or said.at)
        said.held = {}

    def _step(self, sid: str, session: Sess, mid: str, pid: str, said: Said, part: Part, at: str | None) -> None:
        """The end of a request. Its figures are the message's; where they are others, it was a request of its own."""
        usage = _usage(part.tokens, session.store)
        stated = said.figures.startswith("(Usage(")
        if pid in said.done:
            self.out.skip("part-says-nothing-new")
        elif not stated and usage is not None:
            said.steps = 1
            self._infer(sid, session, mid, said, usage, part.tokens, part.cost, part.reason, None)
        elif usage is None or (said.figures.startswith(f"({usage!r},") and not said.steps):
            said.steps = 1
            self.out.skip("step-is-in-its-message")
        else:
            cost = Cost(amount=str(part.cost), currency="USD") if part.cost else None
            another = Inference(
                inference_id=pid,
                model=said.model,
                provider=said.provider,
                effort=said.effort,
                stop_reason=part.reason,
                usage=usage,
                cost=cost,
                meta={"dev.asrd.usage": msgspec.to_builtins(part.tokens)},
            )
            self._add(sid, session, said, pid, another, at)

    # tools

    def _tool(self, sid: str, session: Sess, mid: str, pid: str, said: Said, part: Part, at: str | None) -> None:
        state = part.state
        if state is None:
            raise msgspec.ValidationError("a tool part without state")
        tool, call = part.tool or "", part.callID or pid
        given = _object(state.input)
        if state.status == "pending" and not said.completed:
            said.waiting.setdefault(pid, "")
            self.out.skip("tool-call-still-being-written")
            return
        if said.typed:
            self._typed(sid, session, pid, said, call, given, state, at)
            return
        if said.waiting.get(pid) != "call":
            said.waiting[pid] = "call"
            started = from_ms(state.time.start) or at
            self._add(
                sid,
                session,
                said,
                pid,
                ToolCall(
                    call_id=call,
                    call_id_source=None if part.callID else "derived",
                    name=tool,
                    kind=KINDS.get(tool, "other"),
                    input=given,
                    inference_id=said.response(mid) if said.inference else None,
                ),
                started,
            )
            if tool == "todowrite":
                self._planned(sid, session, said, given.get("todos"), call, started)
        metadata = state.metadata or {}
        child = metadata.get("sessionId") or metadata.get("sessionID")
        if tool == "task" and isinstance(child, str):
            self._spawned(sid, child, call, "part.state.metadata.sessionId", child)
        if state.status in ("completed", "error"):
            del said.waiting[pid]
            said.done.append(pid)
            self._result(sid, session, pid, said, tool, call, given, state)
        elif not self.out.noted():
            self.out.skip("tool-call-still-running")

    def _typed(
        self, sid: str, session: Sess, pid: str, said: Said, call: str, given: dict[str, Any], state: Running,
        at: str | None,
    ) -> None:  # fmt: skip
        """A command that the user ran: it asks nothing of the model and starts no turn. Its exit code is not kept."""
        if state.status not in ("completed", "error"):
            self.out.skip("tool-call-still-running")
            return
        said.waiting.pop(pid, None)
        said.done.append(pid)
        command = _text(given.get("command"))
        words: list[Block] = [Text(text=f"!{command}")]
        typed = Message(role="user", author="human", origin="command", audience="both", content=words)
        self._add(sid, session, said, pid, typed, from_ms(state.time.start) or at)
        output = state.output if state.output is not None else state.error
        both = state.time.start is not None and state.time.end is not None
        result = ToolResult(
            call_id=f"command:{call}",
            linkage="none",
            status="completed" if state.status == "completed" else "failed",
            content=[Text(text=output)] if output else None,
            exec=Exec(
                command=command,
                exit_code=_exit(state.metadata or {}),
                duration_ms=(state.time.end or 0) - (state.time.start or 0) if both else None,
            ),
        )
        self._add(sid, session, said, pid, result, from_ms(state.time.end))
        session.files.doubt()

    def _result(
        self, sid: str, session: Sess, pid: str, said: Said, tool: str, call: str, given: dict[str, Any], state: Running
    ) -> None:
        metadata = state.metadata or {}
        at = from_ms(state.time.end)
        output = state.output if state.output is not None else state.error
        status = "completed" if state.status == "completed" else "failed"
        if state.status == "error" and state.error:
            if state.error.startswith((REJECTED, FORBIDDEN)):
                status = "denied"
                by = "policy" if state.error.startswith(FORBIDDEN) else None
                self._add(sid, session, said, pid, Approval(call_id=call, phase="decided", decision="deny", by=by), at)
            elif state.error.startswith(ABORTED):
                status = "cancelled"
        elif (state.output or "").rstrip().endswith(STOPPED):
            status = "cancelled"
        content: list[Block] = [Text(text=output)] if output is not None else []
        content += [_file(msgspec.convert({"type": "file", **a}, Part, strict=False)) for a in state.attachments or ()]
        ran: Exec | None = None
        if tool == "bash":
            duration = None
            if state.time.start is not None and state.time.end is not None:
                duration = state.time.end - state.time.start
            workdir = given.get("workdir")
            cwd = within(workdir, self._roots(session)) if isinstance(workdir, str) and workdir else None
            ran = Exec(
                command=_text(given.get("command")),
                cwd=cwd,
                exit_code=_exit(metadata),
                duration_ms=duration,
                timed_out=True if "terminated command after exceeding timeout" in (output or "")[-600:] else None,
            )
        kept = {
            name: value for name, value in (("title", state.title), ("outputPath", metadata.get("outputPath"))) if value
        }
        result = ToolResult(
            call_id=call,
            linkage="exact",
            status=status,
            content=content or None,
            exec=ran,
            truncated=Truncated() if metadata.get("truncated") is True else None,
            meta={"dev.asrd.opencode": kept} if kept else None,
        )
        self._add(sid, session, said, pid, result, at)
        if state.status == "completed":
            self._effects(sid, session, pid, said, tool, call, given, metadata, output or "", at)

    def _effects(
        self, sid: str, session: Sess, pid: str, said: Said, tool: str, call: str, given: dict[str, Any],
        metadata: dict[str, Any], output: str, at: str | None,
    ) -> None:  # fmt: skip
        """What a call that was done did: to files, to version control."""
        if tool == "read":
            self._read(session, given, metadata)
        elif tool == "bash":
            session.files.doubt()
            root = "r1" if session.directory else None
            for commit in commits(_text(given.get("command")), output):
                action = VcsAction(action="commit", root=root, commit=commit, evidence="observed", call_id=call)
                self._add(sid, session, said, pid, action, at)
        else:
            for change in self._changes(session, tool, given, metadata):
                change.call_id = call
                self._add(sid, session, said, pid, change, at)

    def _read(self, session: Sess, given: dict[str, Any], metadata: dict[str, Any]) -> None:
        """A file that was read whole: its text, but for the newline at its end, which 1.18 does not show."""
        path = _text(given.get("filePath"))
        if not path or given.get("offset") or given.get("limit") or metadata.get("truncated") is not False:
            return
        key = absolute(session.directory, path)
        display: Any = metadata.get("display")
        if isinstance(display, dict):
            shown = cast("dict[str, Any]", display)
            text = shown.get("text")
            whole = shown.get("lineStart") == 1 and shown.get("lineEnd") == shown.get("totalLines")
            if isinstance(text, str) and whole:
                session.files.shows(key, text + "\n", text)

    def _changes(self, session: Sess, tool: str, given: dict[str, Any], metadata: dict[str, Any]) -> list[FileChange]:
        """The files an editing tool changed."""
        if tool == "multiedit":
            results: Any = metadata.get("results")
            edits: Any = given.get("edits")
            if isinstance(results, list) and isinstance(edits, list):
                pairs = zip(cast("list[Any]", edits), cast("list[Any]", results), strict=False)
                path = given.get("filePath")
                return [
                    c
                    for e, r in pairs
                    if isinstance(e, dict) and isinstance(r, dict)
                    for c in self._changes(
                        session, "edit", {"filePath": path, **cast("dict[str, Any]", e)}, cast("dict[str, Any]", r)
                    )
                ]
        if tool == "write":
            return self._written(session, given, metadata)
        if tool == "edit":
            return self._edited(session, given, metadata)
        if tool in ("apply_patch", "patch"):
            files: Any = metadata.get("files")
            if isinstance(files, list):
                listed = [cast("dict[str, Any]", f) for f in cast("list[Any]", files) if isinstance(f, dict)]
                return [c for f in listed if (c := self._patched(session, f)) is not None]
        return []

    def _written(self, session: Sess, given: dict[str, Any], metadata: dict[str, Any]) -> list[FileChange]:
        path, content = _text(given.get("filePath")), given.get("content")
        if not path or not isinstance(content, str):
            return []
        key = absolute(session.directory, path)
        known = session.files.get(key)
        exists = metadata.get("exists")
        before = known_content(known) if exists is not False and known and not known.doubtful else None
        session.files.is_(key, content)
        return [
            FileChange(
                path=within(path, self._roots(session)),
                change="create" if exists is False else "modify",
                before=before,
                after=content_of(content),
                diff=_text(metadata.get("diff")),
                applied=True,
                evidence="reported",
            )
        ]

    def _edited(self, session: Sess, given: dict[str, Any], metadata: dict[str, Any]) -> list[FileChange]:
        path = _text(given.get("filePath"))
        if not path:
            return []
        key = absolute(session.directory, path)
        stated: Any = metadata.get("filediff")
        told = fields_of(stated)
        diff = _text(metadata.get("diff")) or _text(told.get("patch"))
        old, new = told.get("before"), told.get("after")
        evidence = "reported"
        if not (isinstance(old, str) and isinstance(new, str)):
            evidence = "derived"
            edit = (
                _text(given.get("oldString")) or "",
                _text(given.get("newString")) or "",
                bool(given.get("replaceAll")),
            )
            old, new = self._worked_out(session, key, edit, diff)
        if new is not None:
            session.files.is_(key, new)
        else:
            session.files.forget(key)
        created = given.get("oldString") == "" and not old
        return [
            FileChange(
                path=within(path, self._roots(session)),
                change="create" if created else "modify",
                before=content_of(old) if old is not None and not created else None,
                after=content_of(new) if new is not None else None,
                diff=diff,
                applied=True,
                evidence=evidence if new is not None else "reported",
            )
        ]

    def _worked_out(
        self, session: Sess, key: str, edit: tuple[str, str, bool], diff: str | None
    ) -> tuple[str | None, str | None]:
        """Contents before and after an edit, where what was read before and the edit's own difference leave no doubt."""
        if not edit[0]:
            return None, edit[1]
        known = session.files.get(key)
        if known is None or known.text is None or not diff:
            return None, None
        if not known.doubtful:
            new = replaced(known.text, [edit])
            return (known.text, new) if new is not None and patched(known.text, diff) == new else (None, None)
        shown = whole_file(diff)
        if shown is None or shown[0].rstrip("\n") != known.text.rstrip("\n") or replaced(shown[0], [edit]) != shown[1]:
            return None, None
        return shown

    def _patched(self, session: Sess, one: dict[str, Any]) -> FileChange | None:
        """One file of an `apply_patch`: `{filePath, relativePath, type: add|update|delete|move, diff, before, after, movePath}`."""
        path = _text(one.get("filePath")) or _text(one.get("relativePath"))
        if not path:
            return None
        moved = _text(one.get("movePath"))
        kind = {"add": "create", "delete": "delete", "move": "rename"}.get(str(one.get("type")), "modify")
        diff = _text(one.get("diff")) or _text(one.get("patch"))
        old, new = one.get("before"), one.get("after")
        evidence = "reported"
        if diff and not (isinstance(old, str) or isinstance(new, str)):
            old, new = self._worked_out_of_patch(session, absolute(session.directory, path), kind, diff)
            evidence = "reported" if old is None and new is None else "derived"
        before = content_of(old) if isinstance(old, str) and kind != "create" else None
        after = content_of(new) if isinstance(new, str) and kind != "delete" else None
        key = absolute(session.directory, moved or path)
        if isinstance(new, str) and kind != "delete":
            session.files.is_(key, new)
        else:
            session.files.forget(key)
        roots = self._roots(session)
        return FileChange(
            path=within(moved or path, roots),
            change=kind,
            before=before,
            after=after,
            diff=diff,
            applied=True,
            evidence=evidence,
            from_path=within(path, roots) if moved else None,
        )

    def _worked_out_of_patch(self, session: Sess, key: str, kind: str, diff: str) -> tuple[str | None, str | None]:
        """Contents before and after one file of a patch: the difference itself holds a file that was added or deleted."""
        if kind in ("create", "delete"):
            return whole_file(diff) or (None, None)
        known = session.files.get(key)
        if known is not None and known.text is not None and not known.doubtful:
            new = patched(known.text, diff)
            return (known.text, new) if new is not None else (None, None)
        return None, None

    # plans

    def _todo(self, store: str, sid: str, todos: list[Todo]) -> None:
        session = self._known(store, sid)
        items = [PlanItem(text=t.content, status=PLAN.get(t.status, t.status)) for t in todos]
        if repr(items) == session.plan:
            self.out.skip("plan-is-in-its-call")
            return
        session.plan = repr(items)
        session.planned = self._put(self._open(sid, session), Plan(items=items))

    def _planned(self, sid: str, session: Sess, said: Said, todos: Any, call: str, at: str | None) -> None:
        try:
            items = [
                PlanItem(text=t.content, status=PLAN.get(t.status, t.status))
                for t in msgspec.convert(todos, list[Todo])
            ]
        except msgspec.ValidationError:
            return
        before = session.planned if repr(items) == session.plan else ""
        session.plan, session.planned = repr(items), ""
        self._add(sid, session, said, call, Plan(items=items, call_id=call, supersedes=before or None), at)

    # turns and streams

    def _end_turn(self, sid: str) -> None:
        """Says the end of the turn whose last message is complete, once nothing more of it can follow."""
        session = self.state.sessions.get(sid)
        if session is None or session.ending is None:
            return
        end, session.ending = session.ending, None
        if session.turn is not None and not session.ended:
            session.ended = True
            end.turn_id = session.turn
            self._put(self._open(sid, session), end, end.turn_id)

    def _add(self, sid: str, session: Sess, said: Said, native: str, record: Record, at: str | None = None) -> str:
        """Adds a record made from a message or a part, with what all of these have."""
        record.at = record.at or at or said.at
        record.native_id = native
        if record.turn_id is None:
            record.turn_id = session.turn
        if said.copy is not None:
            record.copy_of = CopyOf(session_id=said.copy[0], native_id=said.copy[1])
        return self._put(self._open(sid, session), record, native)

    def _put(self, stream: StreamOut, record: Record, key: str | None = None) -> str:
        """Adds a record that is known again by what it says: rows are rewritten while they grow. `key`: what it is of."""
        self.out.states(record, key)
        return stream.add(record)

    def _roots(self, session: Sess) -> list[WorkspaceRoot] | None:
        return [WorkspaceRoot(id="r1", path=session.directory)] if session.directory else None


# ---------------------------------------------------------------- small things


def _facts(store: str, row: SessionRow) -> Sess:
    facts = Sess(store, row.time_created, row.directory, row.parent_id, row.project_id, row.title, row.version)
    columns = {"revert": row.revert, "permission": row.permission, "metadata": row.metadata}
    told = {name: _value(text) for name, text in columns.items()}
    facts.rest = _there({**told, "share": row.share_url, "archived": from_ms(row.time_archived)})
    return facts


def _imported(session: Sess) -> str:
    """The session of another program that its history was imported from by asrd; "" = none."""
    metadata: Any = session.rest.get("metadata")
    name: Any = cast("dict[str, Any]", metadata).get(IMPORTED_KEY) if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and name.startswith(IMPORTED) else ""


def _copied_from(owner: str, created: int | None) -> Evidence:
    """What tells that a session's first messages are copies: its own mark where asrd imported them, else their time."""
    if owner.startswith(IMPORTED):
        return Evidence(kind="native-field", field="session.metadata", value=owner)
    return Evidence(kind="native-field", field="message.time.created", value=str(created))


def _there(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}


def _value(text: str | None) -> Any:
    """The value of JSON text; the text itself where it is none."""
    if text is None:
        return None
    try:
        return _any.decode(text)
    except msgspec.DecodeError:
        return text


def _usage(tokens: Tokens | None, store: str) -> Usage | None:
    """Figures of a response; None where they are the zeros OpenCode begins with.

    `reasoning` stands beside `output` (1.18) or inside it (1.1): `total` is the sum of the parts that stand beside each
    other. Without `total`: beside it in a database, inside in the tree.
    """
    if tokens is None or not (tokens.input or tokens.output or tokens.cache.read or tokens.cache.write):
        return None
    inside = tokens.input + tokens.output + tokens.cache.read + tokens.cache.write
    beside = store != "storage" if tokens.total is None else tokens.total == inside + tokens.reasoning
    return Usage(
        input=tokens.input,
        output=tokens.output + (tokens.reasoning if beside else 0),
        cache_read=tokens.cache.read,
        cache_write=tokens.cache.write,
        reasoning=tokens.reasoning,
        total=tokens.total,
    )


def whole_file(diff: str) -> tuple[str, str] | None:
    """Old and new content from a difference that shows the whole file; None where it may not.

    It does when its only hunk begins at line 1 and fewer than three unchanged lines follow the last change: with three
    lines of context or more (jsdiff gives four, difflib three), fewer mean that the file ends there.
    """
    old: list[str] = []
    new: list[str] = []
    hunks, context = 0, 0
    old_end = new_end = "\n"
    last = ""
    for line in diff.split("\n"):
        if line.startswith("@@ "):
            hunks += 1
            if not line.startswith(("@@ -1,", "@@ -1 ", "@@ -0,0")):
                return None
        elif not hunks:
            continue
        elif line.startswith("\\"):
            old_end = "" if last in ("-", " ") else old_end
            new_end = "" if last in ("+", " ") else new_end
        elif line[:1] in (" ", "-", "+"):
            last = line[0]
            context = context + 1 if last == " " else 0
            if last != "+":
                old.append(line[1:])
            if last != "-":
                new.append(line[1:])
    if hunks != 1 or context >= 3:
        return None
    return "\n".join(old) + (old_end if old else ""), "\n".join(new) + (new_end if new else "")


def known_content(known: Any) -> Content | None:
    """Digest and size of a file whose content is known."""
    return Content(sha256=known.sha256, bytes=known.bytes) if known.sha256 else None


def _exit(metadata: dict[str, Any]) -> int | None:
    for name in ("exit", "exitCode", "exit_code"):
        value = metadata.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _error(wrong: Wrong | None) -> Error | None:
    if wrong is None:
        return None
    message = (wrong.data or {}).get("message")
    return Error(code=wrong.name, message=message if isinstance(message, str) else None)


def _error_of(error: Any) -> Error | None:
    try:
        return _error(msgspec.convert(error, Wrong))
    except msgspec.ValidationError:
        return Error(message=str(error)) if error else None


def _file(part: Part) -> Block:
    """A file part: an image with its data, or a file by path."""
    url = part.url or ""
    source = part.source or {}
    path = source.get("path") if isinstance(source.get("path"), str) else None
    if url.startswith("data:") and ";base64," in url:
        data = url.split(";base64,", 1)[1]
        if (part.mime or "").startswith("image/"):
            return Image(media_type=part.mime, data=data, path=path or part.filename)
        return Other(meta={"dev.asrd.opencode": {"mime": part.mime, "filename": part.filename, "url": url}})
    return FileBlock(path=path or url.removeprefix("file://") or part.filename or "", media_type=part.mime)


def _object(raw: Raw) -> dict[str, Any]:
    value = msgspec.json.decode(raw)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"raw": value}


def _decoded(values: dict[str, Any]) -> dict[str, Any]:
    """A row whose `data` or `prompt` is JSON, as one object."""
    out = dict(values)
    for name in ("data", "prompt"):
        if isinstance(out.get(name), str):
            try:
                out[name] = msgspec.json.decode(out[name])
            except msgspec.DecodeError:
                continue
    return out


def _part_time(part: Part, created: int | None) -> str | None:
    time = part.time
    if time is not None and (time.end or time.start):
        return from_ms(time.end or time.start)
    return from_ms(created)


def _first(made: dict[str, tuple[str, str]], sid: str) -> tuple[str, str] | None:
    return next((owner for other, owner in made.items() if other != sid), None)


def _effort(variant: str | None) -> str | None:
    return variant if variant and variant != "default" else None


def _older(created: float | None, session: int | None) -> bool:
    return created is not None and session is not None and created < session


def _int(value: float | None) -> int | None:
    return int(value) if value is not None else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


RECORDER = OpenCodeRecorder
