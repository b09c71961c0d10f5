r"""Cursor Desktop: conversations of all workspaces as rows of key and JSON, in VS Code's own SQLite database.

Where, below `~/.config/Cursor/User`, `~/Library/Application Support/Cursor/User` or `AppData/Roaming/Cursor/User`:

    globalStorage/state.vscdb                     every conversation ("composer") and what was said in it ("bubbles")
    workspaceStorage/<id>/{workspace.json,state.vscdb}   the workspace's folder, and which conversations are its own

From documents: public descriptions of 0.50 to 3.16 (`_v` 3 to 18 of a composer, 2 and 3 of a bubble) and the readers of
others. No database of ours was ever seen; values that public exports show decide over descriptions.

    cursorDiskKV
      composerData:<composer>       {"_v":16,"composerId":"7246…","name":"…","createdAt":1780325474978,"status":"completed",
        "unifiedMode":"agent","modelConfig":{"modelName":"…"},"subagentInfo":{"parentComposerId":"…","toolCallId":"…"},
        "fullConversationHeadersOnly":[{"bubbleId":"47e4…","type":1},…],"workspaceIdentifier":{"id":"93c1…","uri":{…}}}
      bubbleId:<composer>:<bubble>  {"_v":3,"type":2,"bubbleId":"…","createdAt":"2026-06-01T…Z","text":"…","thinking":{…},
        "capabilityType":15,"tokenCount":{"inputTokens":36163,"outputTokens":26493},"toolFormerData":{"name":"edit_file_v2",
        "toolCallId":"tool_…","status":"completed","params":"{…}","rawArgs":"{…}",
        "result":"{\"beforeContentId\":\"composer.content.e3b0…\",\"afterContentId\":\"composer.content.1931…\"}"}}
      composer.content.<hash>       a file's content before or after an edit
    ItemTable, and since 3.14 a table `composerHeaders`
      composer.composerHeaders      {"allComposers":[{"composerId":"…","name":"…","workspaceIdentifier":{…}},…]}

What is particular
    - `type` 1 is a person's bubble, 2 the agent's; `capabilityType` 15 a call, 30 thinking, 22 where the context was compacted.
      The order is that of `fullConversationHeadersOnly`. A call and its result are one bubble, rewritten as it goes on.
    - `tokenCount` is 0/0 on most bubbles and means that nothing is known; other figures mostly stand on a turn's last bubble.
      Which bubbles came of one request is not told: one `inference` a turn stands for its requests, and more where more
      bubbles have figures.
    - No single field says how a call ended: `status` is `completed` for rejected and failed commands too. `exitCode` is left out
      when it is 0.
    - Every row that changes is written anew with a larger row id (the tables say ON CONFLICT REPLACE): what is new since a row
      id is all that is read. A row that were updated in place would be seen when all is read, as after a start.
    - The keys of encrypted blobs stand in a composer, tokens in `ItemTable`: neither is ever read, fields are chosen in SQL.
    - An agent's conversation has a transcript under the same id (`cursor`), without results, times and figures: this stream
      says of that one that it `observes` this one, so that nothing of it counts.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote, urlparse

import msgspec
from msgspec import Struct

from asrd.recorders._observed import commits, content_of
from asrd.recorders.base import Recorder, StreamKey, StreamOut, Writer, fields_of, from_ms, items_of, sha256, within
from asrd.records import (
    Block,
    Capture,
    Compaction,
    Config,
    Content,
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
    Turn,
    Usage,
    VcsAction,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, RowQuery, Source, Unread

# ---------------------------------------------------------------- native structs


class Uri(Struct):
    """A URI as VS Code writes it."""

    fsPath: str | None = None
    path: str | None = None
    external: str | None = None


class Workspace(Struct):
    id: str | None = None
    uri: Uri | None = None


class Subagent(Struct):
    """Which conversation started this one, and by which call."""

    parentComposerId: str | None = None
    toolCallId: str | None = None
    subagentTypeName: str | None = None


class ModelConfig(Struct):
    modelName: str | None = None


class ComposerRow(Struct):
    """What is read of a composer, or of its head."""

    name: str | None = None
    createdAt: Any = None
    unifiedMode: Any = None
    modelConfig: ModelConfig | None = None
    workspaceIdentifier: Workspace | None = None
    subagentInfo: Subagent | None = None
    subagentComposerIds: list[Any] | None = None
    subComposerIds: list[Any] | None = None
    newlyCreatedFiles: list[Any] | None = None
    conversation: list[Any] | None = None
    isDraft: Any = None


class StatusRow(Struct):
    """What of a composer is said behind its bubbles."""

    status: str | None = None
    generating: int | None = None
    last: str | None = None
    todos: list[Any] | None = None
    usageData: dict[str, Any] | None = None


class Tokens(Struct):
    inputTokens: int | None = None
    outputTokens: int | None = None


class Timing(Struct):
    clientRpcSendTime: float | None = None


class Tool(Struct):
    """A call. `rawArgs`, `params` and `result` are JSON in text, or (older) the values themselves."""

    name: str | None = None
    toolCallId: str | None = None
    status: str | None = None
    rawArgs: Any = None
    params: Any = None
    result: Any = None
    error: Any = None
    additionalData: Any = None

    @property
    def beside(self) -> str | None:
        """What is said of the call beside its status."""
        status = fields_of(self.additionalData).get("status")
        return status if isinstance(status, str) else None


class Bubble(Struct):
    """What is read of a bubble."""

    type: int | None = None
    bubbleId: str | None = None
    text: str | None = None
    createdAt: Any = None
    requestId: str | None = None
    tokenCount: Tokens | None = None
    modelInfo: ModelConfig | None = None
    capabilityType: int | None = None
    thinking: Any = None
    allThinkingBlocks: list[Any] | None = None
    toolFormerData: Tool | None = None
    timingInfo: Timing | None = None
    errorDetails: Any = None
    images: list[Any] | None = None


_composer = msgspec.json.Decoder(ComposerRow)
_status = msgspec.json.Decoder(StatusRow)
_bubble = msgspec.json.Decoder(Bubble)
_any = msgspec.json.Decoder()

# ---------------------------------------------------------------- state


class Known(Struct, array_like=True):
    """What was recorded of a bubble: the ids of its records, and digests of what they say."""

    turn: str | None = None
    message: str | None = None
    said: str = ""
    call: str | None = None
    asked: str = ""
    result: str | None = None
    answered: str = ""
    inference: str | None = None
    response: str = ""
    """Name of the response that has its figures, which are `measured`."""
    measured: tuple[int | None, int | None] | None = None
    error: bool = False


class TurnState(Struct):
    """A turn that is told now: the inference that stands for it, and what its end said."""

    id: str
    """That of the prompt's bubble; "" before the first prompt."""
    inference: str | None = None
    measured: bool = False
    """Whether the inference has figures."""
    model: str | None = None
    end: str | None = None
    status: str | None = None


class Composer(Struct):
    """One conversation."""

    name: str | None = None
    mode: str | None = None
    model: str | None = None
    created: str | None = None
    cwd: str | None = None
    parent: str | None = None
    call: str | None = None
    draft: bool = False
    made: list[str] = []
    """Paths of the files that were newly created in it."""
    turn: TurnState | None = None
    bubbles: dict[str, Known] = {}
    told: dict[str, str] = {}
    """Digests of what was said last of its plan and of what is kept as it is."""


class State(Struct):
    """All that is kept between items."""

    composers: dict[str, Composer] = {}
    folders: dict[str, str] = {}
    """Folder of each workspace."""
    homes: dict[str, str] = {}
    """Workspace of each conversation."""
    links: dict[str, tuple[str, str | None]] = {}
    """The link to each sub-agent's conversation in its parent's stream, with the call it names."""
    children: dict[str, list[str]] = {}


# ---------------------------------------------------------------- where it lies


def _fields(*names: str) -> str:
    return ", ".join(f"'{n}', t -> '$.{n}'" for n in names)


_RANGE = "key >= '{0}:' AND key < '{0};'"
_CHANGED = "rowid >= :since AND +key >= '{0}:' AND +key < '{0};'"
_MARK = "SELECT max(rowid) FROM cursorDiskKV"
_COMPOSER = "json_object({})".format(
    _fields(
        "name", "createdAt", "unifiedMode", "modelConfig", "workspaceIdentifier", "subagentInfo", "subagentComposerIds",
        "subComposerIds", "newlyCreatedFiles", "conversation", "isDraft",
    )
)  # fmt: skip
_STATUS = (
    "json_object('generating', json_array_length(t, '$.generatingBubbleIds'), 'last', "
    "t -> '$.fullConversationHeadersOnly[#-1].bubbleId', " + _fields("status", "todos", "usageData") + ")"
)


def _content(field: str) -> str:
    """The content that a result names, for those who tell its digest; few bubbles name one."""
    result = "v.t ->> '$.toolFormerData.result'"
    name = f"CASE WHEN json_valid(v.t) AND json_valid({result}) THEN ({result}) ->> '$.{field}' END"
    return f"CASE WHEN instr(v.t, '{field}') THEN (SELECT c.value FROM cursorDiskKV c WHERE c.key = {name}) END"


def _documents(what: str, prefix: str, where: str, more: str = "") -> str:
    """Rows whose key begins like this, with the fields that are read; what is no JSON has a size and no document."""
    return f"""
SELECT key, CASE WHEN json_valid(t) THEN {what} END AS doc, length(t) AS size{more} FROM (
  SELECT key, CAST(value AS TEXT) AS t FROM cursorDiskKV WHERE {where.format(prefix)} ORDER BY rowid)"""


def _bubbles(where: str) -> str:
    """Bubbles, conversation by conversation, in the order of its headers; those it does not name come last."""
    return f"""
WITH kept AS MATERIALIZED (
  SELECT rowid AS id, substr(key, 10, instr(substr(key, 10), ':') - 1) AS composer,
         substr(key, 10 + instr(substr(key, 10), ':')) AS bubble
  FROM cursorDiskKV WHERE {where.format("bubbleId")}),
named AS MATERIALIZED (
  SELECT q.composer AS composer, CASE WHEN h.type = 'object' THEN h.value ->> '$.bubbleId' END AS bubble, min(h.key) AS place
  FROM (SELECT DISTINCT composer FROM kept) q JOIN cursorDiskKV c ON c.key = 'composerData:' || q.composer,
  json_each(CASE WHEN json_valid(CAST(c.value AS TEXT)) THEN CAST(c.value AS TEXT) ELSE '{{}}' END,
            '$.fullConversationHeadersOnly') h GROUP BY 1, 2),
placed AS MATERIALIZED (
  SELECT k.id AS id FROM kept k LEFT JOIN named n ON n.composer = k.composer AND n.bubble = k.bubble
  ORDER BY k.composer, n.place IS NULL, n.place, k.id)
SELECT v.key AS key, v.t AS doc, length(v.t) AS size, {_content("beforeContentId")} AS before, {_content("afterContentId")} AS after
FROM (SELECT r.key AS key, CAST(r.value AS TEXT) AS t FROM placed p CROSS JOIN cursorDiskKV r ON r.rowid = p.id) v"""


def _others(where: str) -> str:
    """How many rows there are of each kind that is not read, by the first word of their key."""
    return f"""
SELECT kind, count(*) AS rows, max(id) AS upto FROM (
  SELECT rowid AS id, CASE WHEN key LIKE 'composer.content.%' THEN 'composer.content'
    WHEN instr(key, ':') THEN substr(key, 1, instr(key, ':') - 1) ELSE key END AS kind FROM cursorDiskKV WHERE {where})
WHERE kind NOT IN ('composerData', 'bubbleId', 'composer.content') GROUP BY kind ORDER BY kind"""


def _heads(where: str) -> str:
    """What the list of all conversations says of each."""
    return f"""
SELECT key, {_COMPOSER} AS doc, length(t) AS size FROM (
  SELECT h.value ->> '$.composerId' AS key, h.value AS t FROM ItemTable i, json_each(
    CASE WHEN json_valid(CAST(i.value AS TEXT)) THEN CAST(i.value AS TEXT) ELSE '{{}}' END, '$.allComposers') h
  WHERE i.key = '{HEADERS}' AND h.type = 'object' AND {where})"""


HEADERS = "composer.composerHeaders"
GLOBAL = (
    RowQuery(
        "head",
        _heads("1"),
        ("key",),
        needs=("ItemTable",),
        mark=f"SELECT rowid FROM ItemTable WHERE key = '{HEADERS}'",
        changed=_heads("i.rowid > :since"),
    ),
    RowQuery(
        "headers",
        f"""SELECT key, CASE WHEN json_valid(t) THEN {_COMPOSER} END AS doc, length(t) AS size, lastUpdatedAt FROM (
  SELECT composerId AS key, CAST(value AS TEXT) AS t, lastUpdatedAt FROM composerHeaders ORDER BY composerId)""",
        ("key",),
        needs=("composerHeaders",),
        since="lastUpdatedAt",
    ),
    RowQuery(
        "composer",
        _documents(_COMPOSER, "composerData", _RANGE),
        ("key",),
        needs=("cursorDiskKV",),
        mark=_MARK,
        changed=_documents(_COMPOSER, "composerData", _CHANGED),
        columns=("key", "doc"),
    ),
    RowQuery(
        "bubble",
        _bubbles(_RANGE),
        ("key",),
        needs=("cursorDiskKV",),
        mark=_MARK,
        changed=_bubbles(_CHANGED),
        columns=("key", "doc"),
    ),
    RowQuery(
        "status",
        _documents(_STATUS, "composerData", _RANGE),
        ("key",),
        needs=("cursorDiskKV",),
        mark=_MARK,
        changed=_documents(_STATUS, "composerData", _CHANGED),
    ),
    RowQuery(
        "other",
        _others("1"),
        ("kind", "upto"),
        needs=("cursorDiskKV",),
        mark=_MARK,
        changed=_others("rowid > :since"),
    ),
)
WORKSPACE = (
    RowQuery(
        "workspace",
        """SELECT 'composer.composerData' AS key, json_object('ids', json((SELECT json_group_array(id) FROM (
  SELECT CASE WHEN c.type = 'object' THEN c.value ->> '$.composerId' END AS id FROM json_each(t, '$.allComposers') c
  UNION SELECT c.value FROM json_each(t, '$.selectedComposerIds') c WHERE c.type = 'text' ORDER BY id)))) AS doc
FROM (SELECT CAST(value AS TEXT) AS t FROM ItemTable WHERE key = 'composer.composerData') WHERE json_valid(t)""",
        ("key",),
        needs=("ItemTable",),
    ),
    RowQuery(
        "item",
        """SELECT key, octet_length(value) AS size FROM ItemTable WHERE key IN ('aiService.prompts', 'aiService.generations',
  'workbench.panel.aichat.view.aichat.chatdata', 'interactive.sessions') ORDER BY key""",
        ("key",),
        needs=("ItemTable",),
    ),
)

EXECUTE = {"run_terminal_command_v2", "run_terminal_cmd", "run_terminal_command", "run_terminal_commands"}
EDIT = {"edit_file_v2", "edit_file", "search_replace", "write", "apply_patch", "new_file", "save_file", "reapply"}
KINDS = {
    **dict.fromkeys(EXECUTE, "execute"), "write_shell_stdin": "execute", **dict.fromkeys(EDIT, "edit"), "delete_file": "edit",
    **dict.fromkeys(("read_file_v2", "read_file", "list_dir", "list_dir_v2", "read_lints", "read_project"), "read"),
    **dict.fromkeys(
        ("glob_file_search", "file_search", "ripgrep_raw_search", "ripgrep_search", "grep_search", "grep", "codebase_search",
         "semantic_search_full", "deep_search", "search_symbols", "go_to_definition"), "search",
    ),
    "web_search": "fetch", "web_fetch": "fetch", "fetch_pull_request": "fetch", "task_v2": "delegate", "task": "delegate",
    "todo_write": "plan", "todo_read": "plan", "create_plan": "plan", "mcp": "mcp", "call_mcp_tool": "mcp",
}  # fmt: skip
"""Tools by their names in public listings of the program."""
FINAL = {"completed", "error", "cancelled", "rejected", "skipped"}
"""What `status` says of a call that is over."""
ENDS = {"completed": "completed", "aborted": "interrupted", "error": "failed"}
TODOS = ("pending", "in_progress", "completed", "cancelled")
EMPTY = "composer.content." + sha256("")
"""The content before an edit that made a file; also that of a file which held nothing."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)\Z")

# ---------------------------------------------------------------- the recorder


class CursorDesktopRecorder(Recorder):
    """Rows of Cursor Desktop as records. One group: the database of all conversations, and what the workspaces say."""

    harness = "cursor-desktop"
    roots = (
        Root(".config/Cursor/User"),
        Root("Library/Application Support/Cursor/User"),
        Root("AppData/Roaming/Cursor/User"),
    )
    places = (
        Place("workspaceStorage/*/workspace.json", "document", sidecar=True),
        Place("workspaceStorage/*/state.vscdb", "table", WORKSPACE, sidecar=True),
        Place("globalStorage/state.vscdb", "table", GLOBAL),
    )
    unread = (
        Unread("globalStorage/state.vscdb.backup", "an earlier copy of the database"),
        Unread("globalStorage/conversation-search.db", "an index of the words, behind by a turn"),
        Unread(
            "globalStorage/anysphere.cursor-commits/checkpoints/*/metadata.json",
            "which files a request changed, for undoing it; the database has their contents",
        ),
    )
    versions = ()
    evidence = "documents"
    State = State
    state: State

    def __init__(self, out: Writer, group: str) -> None:
        super().__init__(out, group)
        self._at_hand = ""
        """The conversation that the row at hand is of."""

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """All is one group; what the workspaces say is read first."""
        return Located(group="state.vscdb", name=path, order="1" if path.startswith("workspaceStorage/") else "2")

    @classmethod
    def claims(cls, head: bytes) -> bool:
        return head.startswith(b"SQLite format 3\0") and b"TABLE cursorDiskKV" in head

    def receive(self, source: Source, item: Line | Row) -> None:
        assert isinstance(item, Row)
        self._at_hand = ""
        match item.table:
            case "workspace.json":
                self._folder(source, item)
            case "workspace":
                self._home(source, item)
            case "item":
                self.out.skip(f"unread:{item.values['key']}")
            case "other":
                self._unread(item)
            case _:
                self._document(item)

    def main(self) -> StreamOut:
        """The stream of the conversation at hand; of the database itself where a row is of none."""
        if self._at_hand:
            return self._stream(self._at_hand, self.state.composers.setdefault(self._at_hand, Composer()))
        return self.open(StreamKey(self.harness, self.group), profiles=("core",))

    # what the workspaces say

    def _folder(self, source: Source, item: Row) -> None:
        told = _any.decode(item.data)
        uri = fields_of(told).get("folder")
        if isinstance(uri, str) and uri.startswith("file://"):
            self.state.folders[source.path.split("/")[1]] = _path_of(uri)
        self.out.skip("workspace")

    def _home(self, source: Source, item: Row) -> None:
        for ident in items_of(fields_of(_any.decode(str(item.values["doc"]))).get("ids")):
            if isinstance(ident, str):
                self.state.homes.setdefault(ident, source.path.split("/")[1])
        self.out.skip("workspace")

    def _unread(self, item: Row) -> None:
        """Rows of a kind that is not read: each is a skip."""
        rule, rows = f"unread:{item.values['kind']}", item.values["rows"]
        self.out.skip(rule)
        self.out.skips[rule] += int(rows) - 1

    # rows

    def _document(self, item: Row) -> None:
        doc, key = item.values.get("doc"), str(item.values.get("key"))
        ident = self._at_hand = key.split(":")[1] if ":" in key else key
        if not isinstance(doc, str) or doc == "null":
            if doc is None and item.values.get("size"):
                raise msgspec.DecodeError("no JSON")
            self.out.skip("empty-value")
        elif item.table == "bubble":
            self._said(ident, key.split(":", 2)[-1], _bubble.decode(doc), item.values)
        elif item.table == "status":
            self._behind(ident, _status.decode(doc))
        else:
            self._known(ident, _composer.decode(doc), head=item.table != "composer")
        if not self.out.noted():
            self.out.skip(f"nothing-new:{item.table}")

    def _known(self, ident: str, told: ComposerRow, *, head: bool) -> None:
        """What a conversation is called, where it works, what it runs with, and what it comes from."""
        state = self.state
        one = state.composers.setdefault(ident, Composer())
        stream = self.out.stream(StreamKey(self.harness, ident))
        where = told.workspaceIdentifier
        if where is not None and where.id:
            state.homes[ident] = where.id
        cwd = _local(where.uri) if where is not None else None
        one.cwd = one.cwd or cwd or state.folders.get(state.homes.get(ident, ""))
        one.created = one.created or _time(told.createdAt)
        one.draft = bool(told.isDraft) if not head else one.draft
        one.made = [p for f in told.newlyCreatedFiles or () if (p := _file_of(f))] or one.made
        before = (one.name, one.mode, one.model)
        one.name = told.name or one.name
        one.mode = told.unifiedMode if isinstance(told.unifiedMode, str) and told.unifiedMode else one.mode
        one.model = (told.modelConfig.modelName if told.modelConfig else None) or one.model
        if stream is not None:
            self._configured(ident, one, before)
        info = told.subagentInfo
        if info is not None and info.parentComposerId:
            self._comes_from(ident, info.parentComposerId, info.toolCallId)
        for child in [*(told.subagentComposerIds or ()), *(told.subComposerIds or ())]:
            if isinstance(child, str) and child != ident:
                self._comes_from(child, ident, None)
        for number, bubble in enumerate(told.conversation or ()):
            found = msgspec.convert(bubble, Bubble)
            self._said(ident, found.bubbleId or f"{number}", found, {})

    def _configured(self, ident: str, one: Composer, before: tuple[str | None, str | None, str | None]) -> None:
        for config, old, new in (
            (Config(title=one.name), before[0], one.name),
            (Config(mode=one.mode), before[1], one.mode),
            (Config(model=one.model), before[2], one.model),
        ):
            if new and new != old:
                self._put(ident, config)

    def _comes_from(self, child: str, parent: str, call: str | None) -> None:
        """A sub-agent's conversation: its parent's stream names it, once it has one."""
        state = self.state
        one = state.composers.setdefault(child, Composer())
        one.parent, one.call = parent, call or one.call
        among = state.children.setdefault(parent, [])
        if child not in among:
            among.append(child)
        if self.out.stream(StreamKey(self.harness, parent)) is None:
            return
        known = state.links.get(child)
        if known is not None and known[1] == one.call:
            return
        link = Link(
            relation="spawned",
            target=LinkTarget(agent=self.harness, session_id=child),
            call_id=one.call,
            evidence=Evidence(kind="native-field", field="subagentInfo.parentComposerId", value=parent),
            supersedes=known[0] if known else None,
        )
        state.links[child] = (self._put(parent, link), one.call)

    # a conversation's stream

    def _stream(self, ident: str, one: Composer) -> StreamOut:
        key = StreamKey(self.harness, ident)
        found = self.out.stream(key)
        if found is not None:
            return found
        lineage = Lineage()
        if one.parent:
            lineage = Lineage(
                root=False,
                parent=LineageParent(agent=self.harness, session_id=one.parent, call_id=one.call),
                relation="spawned_by",
                evidence=Evidence(kind="native-field", field="subagentInfo.parentComposerId", value=one.parent),
            )
        stream = self.open(key, started_at=one.created, cwd=one.cwd, title=one.name, lineage=lineage)
        for profile, facet, how, reason in (
            ("usage", "usage", "partial", "figures stand on few bubbles; 0/0 is written where nothing is known"),
            ("usage", "usage.cacheRead", "unavailable", "cached tokens are not told apart"),
            ("usage", "usage.cacheWrite", "unavailable", "no cache writes"),
            ("usage", "usage_total", "unavailable", "no total"),
            ("usage", "inference", "partial", "which bubbles came of one request is not told: one stands for a turn's"),
            ("coding", "tool_result.at", "unavailable", "a bubble has one time, that of its call"),
        ):
            self._put(ident, Capture(profile=profile, facet=facet, state=how, reason=reason))
        seen = {"of": {"agent": "cursor", "sessionId": ident}}
        self._put(
            ident,
            Link(
                relation="observes",
                target=LinkTarget(agent=self.harness, session_id=ident),
                evidence=Evidence(kind="native-field", field="composerId", value=ident),
                meta={"dev.asrd.observed": seen},
            ),
        )
        self._configured(ident, one, (one.name, None, None))
        for child in self.state.children.get(ident, ()):
            self._comes_from(child, ident, None)
        return stream

    def _put(self, ident: str, record: Record, at: str | None = None, native_id: str | None = None) -> str:
        """Adds a record that is known again by what it says: rows are rewritten as a conversation goes on."""
        one = self.state.composers.setdefault(ident, Composer())
        stream = self._stream(ident, one)
        record.at, record.native_id = record.at or at, native_id
        self.out.states(record, native_id or ident)
        return stream.add(record)

    # bubbles

    def _said(self, ident: str, bubble: str, said: Bubble, values: dict[str, Any]) -> None:
        one = self.state.composers.setdefault(ident, Composer())
        at, blocks, tool = _at(said), _blocks(said), said.toolFormerData
        known = one.bubbles.get(bubble)
        if said.type not in (1, 2):
            self._put(ident, Native(native_type="bubble", data={"type": said.type, "text": said.text}), at, bubble)
            return
        if said.type == 1:
            if known is None and blocks:
                known = one.bubbles[bubble] = Known(turn=bubble)
                self._begins(ident, one, bubble, said, at)
            if known is not None and blocks:
                self._asked(ident, one, known, bubble, said, blocks, at)
            return
        if known is None:
            one.turn = one.turn or TurnState("")
            known = one.bubbles[bubble] = Known(turn=one.turn.id or None)
        if said.capabilityType == 22:
            known.message = known.message or self._put(ident, Compaction(turn_id=known.turn), at, bubble)
            return
        called = tool is not None and tool.name is not None
        if not blocks and not called and not _counted(said) and not said.errorDetails:
            self.out.skip("empty-bubble")
            return
        response = self._responds(ident, one, known, bubble, said, at)
        if blocks:
            message = Message(role="assistant", author="agent", content=blocks, inference_id=response)
            self._words(ident, known, bubble, at, message)
        if tool is not None and tool.name is not None:
            self._called(ident, one, known, bubble, tool, tool.name, response, at, values)
        if said.errorDetails and not known.error:
            known.error = True
            self._put(ident, Native(native_type="errorDetails", data=said.errorDetails, turn_id=known.turn), at, bubble)

    def _begins(self, ident: str, one: Composer, bubble: str, said: Bubble, at: str | None) -> None:
        """A prompt begins a turn."""
        one.turn = TurnState(bubble, model=said.modelInfo.modelName if said.modelInfo else None)
        self._put(ident, Turn(turn_id=bubble, phase="start", trigger="agent" if one.parent else "prompt"), at, bubble)

    def _asked(
        self, ident: str, one: Composer, known: Known, bubble: str, said: Bubble, blocks: list[Block], at: str | None
    ) -> None:
        usage = _counted(said)
        message = Message(
            role="user",
            author="agent" if one.parent else "human",
            origin="agent" if one.parent else "prompt",
            content=blocks,
            meta={"dev.asrd.usage": msgspec.to_builtins(said.tokenCount)} if usage else None,
        )
        self._words(ident, known, bubble, at, message)

    def _words(self, ident: str, known: Known, bubble: str, at: str | None, message: Message) -> None:
        """A bubble's words: said once, and again when they are others."""
        digest = sha256(msgspec.json.encode(message.content))[:16]
        if known.said == digest:
            return
        known.said = digest
        message.turn_id, message.message_id, message.supersedes = known.turn, bubble, known.message
        known.message = self._put(ident, message, at, bubble)

    def _responds(self, ident: str, one: Composer, known: Known, bubble: str, said: Bubble, at: str | None) -> str:
        """The response a bubble belongs to: the one that stands for its turn, or its own where more bubbles have figures."""
        turn = one.turn if one.turn is not None and (one.turn.id or None) == known.turn else None
        name = f"response-{known.turn or ident}"
        usage, model = _counted(said), said.modelInfo.modelName if said.modelInfo else None
        figures = (usage.input, usage.output) if usage else None
        fresh = turn is not None and turn.inference is None
        if not fresh and (figures is None or figures == known.measured):
            return known.response or name
        replaced = known.inference
        if turn is not None and (fresh or (replaced is None and not turn.measured)):
            known.response, replaced = name, turn.inference
        elif not known.response:
            known.response = f"response-{bubble}"
        record = Inference(
            inference_id=known.response,
            id_source="derived",
            model=model or (turn.model if turn is not None else None),
            usage=usage,
            turn_id=known.turn,
            supersedes=replaced,
        )
        added = self._put(ident, record, at, known.response)
        if turn is not None and known.response == name:
            turn.inference, turn.measured = added, usage is not None
        if usage is not None:
            known.inference, known.measured = added, figures
        else:
            known.response = ""
        return known.response or name

    # calls

    def _called(
        self,
        ident: str,
        one: Composer,
        known: Known,
        bubble: str,
        tool: Tool,
        name: str,
        response: str,
        at: str | None,
        values: dict[str, Any],
    ) -> None:
        call = tool.toolCallId or f"bubble-{bubble}"
        given = _arguments(tool, over=tool.status in FINAL)
        if given is None:
            self.out.skip("call-whose-arguments-are-still-written")
            return
        digest = sha256(msgspec.json.encode(given))[:16]
        if known.asked != digest:
            known.asked = digest
            asked = ToolCall(
                call_id=call,
                call_id_source=None if tool.toolCallId else "derived",
                name=name,
                kind="mcp" if name.startswith("mcp") else KINDS.get(name, "other"),
                input=given,
                inference_id=response,
                turn_id=known.turn,
                supersedes=known.call,
            )
            known.call = self._put(ident, asked, at, call)
        if tool.status not in FINAL and not (tool.result and tool.status is None):
            return
        result = _decoded(tool.result)
        fields = fields_of(result)
        status = _outcome(tool, fields)
        ran = self._ran(one, name, given, fields_of(_decoded(tool.params)), fields, status)
        answer = ToolResult(
            call_id=call,
            linkage="exact",
            status=status,
            content=_answer(tool, result, fields) or None,
            exec=ran,
            turn_id=known.turn,
        )
        digest = sha256(msgspec.json.encode(answer))[:16]
        if known.answered == digest:
            return
        first, known.answered = known.result is None, digest
        answer.supersedes = known.result
        known.result = self._put(ident, answer, None, call)
        if not first:
            return
        if ran is not None:
            for commit in commits(ran.command, ran.stdout or ""):
                self._put(
                    ident,
                    VcsAction(action="commit", commit=commit, evidence="observed", call_id=call, turn_id=known.turn),
                    None,
                    commit,
                )
        if name in EDIT or name == "delete_file":
            self._changed(ident, one, known, call, name, given, tool, fields, status, values, at)

    def _ran(
        self,
        one: Composer,
        name: str,
        given: dict[str, Any],
        params: dict[str, Any],
        fields: dict[str, Any],
        status: str,
    ) -> Exec | None:
        """A command: its code is written when it is not 0, and not known of one that was stopped or goes on."""
        if name not in EXECUTE or status in ("denied", "cancelled"):
            return None
        command, folder = given.get("command") or params.get("command"), params.get("cwd")
        code, output = fields.get("exitCode"), fields.get("output")
        ended = fields.get("notInterrupted") is True and not any("ackground" in k for k in fields)
        return Exec(
            command=command if isinstance(command, str) else None,
            cwd=within(folder, _roots(one)) if isinstance(folder, str) and folder else None,
            exit_code=code
            if isinstance(code, int)
            else 0
            if ended and code is None and status == "completed"
            else None,
            stdout=output if isinstance(output, str) else None,
        )

    def _changed(
        self,
        ident: str,
        one: Composer,
        known: Known,
        call: str,
        name: str,
        given: dict[str, Any],
        tool: Tool,
        fields: dict[str, Any],
        status: str,
        values: dict[str, Any],
        at: str | None,
    ) -> None:
        """The file that an edit changed, with the contents that its result names."""
        params = fields_of(_decoded(tool.params))
        path = next(
            (
                p
                for source in (params, given)
                for field in ("relativeWorkspacePath", "targetFile", "target_file", "file_path", "path")
                if isinstance(p := source.get(field), str) and p
            ),
            None,
        )
        if path is None or status != "completed" or fields.get("isApplied") is False:
            return
        made = fields.get("beforeContentId") == EMPTY and path in one.made
        before = content_of("") if fields.get("beforeContentId") == EMPTY else _digest(values.get("before"))
        after = _digest(values.get("after"))
        self._put(
            ident,
            FileChange(
                path=within(path, _roots(one)),
                change="delete" if name == "delete_file" else "create" if made else "modify",
                call_id=call,
                before=None if made else before,
                after=after,
                applied=True,
                evidence="reported",
                turn_id=known.turn,
            ),
            at,
            call,
        )

    # behind the bubbles

    def _behind(self, ident: str, told: StatusRow) -> None:
        """How the last turn ended, the plan, and figures with no standard place: said when its bubbles were read."""
        one = self.state.composers.setdefault(ident, Composer())
        if self.out.stream(StreamKey(self.harness, ident)) is None:
            self.out.skip("draft" if one.draft else "conversation-without-a-bubble")
            return
        if told.usageData and self._other(one, "usageData", told.usageData):
            self._put(ident, Native(native_type="usageData", data=told.usageData))
        items = [fields_of(t) for t in told.todos or ()]
        plan = [
            PlanItem(text=text, status=status if status in TODOS else "pending")
            for t in items
            if isinstance(text := t.get("content"), str) and isinstance(status := t.get("status"), str)
        ]
        if plan and self._other(one, "todos", msgspec.to_builtins(plan)):
            self._put(ident, Plan(items=plan, turn_id=one.turn.id if one.turn else None))
        turn = one.turn
        if turn is None or told.generating or told.status not in ENDS or told.last not in one.bubbles:
            return
        if one.bubbles[told.last].turn != turn.id or turn.status == told.status:
            return
        end = Turn(turn_id=turn.id, phase="end", status=ENDS[told.status], supersedes=turn.end)
        turn.end, turn.status = self._put(ident, end, None, turn.id), told.status

    def _other(self, one: Composer, what: str, value: Any) -> bool:
        """Whether this is another than was said last."""
        digest = sha256(msgspec.json.encode(value))[:16]
        if one.told.get(what) == digest:
            return False
        one.told[what] = digest
        return True


# ---------------------------------------------------------------- how it says things


def _decoded(value: Any) -> Any:
    """JSON in text as its value; other text as it stands."""
    if not isinstance(value, str) or not value:
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value


def _arguments(tool: Tool, *, over: bool) -> dict[str, Any] | None:
    """What the model gave; where that is not kept, what the program made of it. None while it is not whole."""
    values = [_decoded(given) for given in (tool.rawArgs, tool.params)]
    objects = [fields_of(value) for value in values if fields_of(value)]
    if objects or not over:
        return objects[0] if objects else None
    text = next((v for v in values if isinstance(v, str) and v), None)
    return {"raw": text} if text else {}


def _outcome(tool: Tool, fields: dict[str, Any]) -> str:
    """No single field says it: `status` is `completed` of commands that were rejected or failed, too."""
    if fields.get("rejected") is True or tool.beside == "rejected" or tool.status in ("rejected", "skipped"):
        return "denied"
    if tool.status == "cancelled":
        return "cancelled"
    code = fields.get("exitCode")
    if tool.status == "error" or tool.beside == "error" or (isinstance(code, int) and code != 0):
        return "failed"
    return "completed" if tool.status == "completed" else "unknown"


def _answer(tool: Tool, result: Any, fields: dict[str, Any]) -> list[Block]:
    """What a call gave: a command's output, a file's contents, else the result as it was written; and its error."""
    found: list[Block] = []
    shown = fields.get("output") if "output" in fields else fields.get("contents")
    if isinstance(shown, str):
        if shown:
            found.append(Text(text=shown))
    elif isinstance(tool.result, str) and tool.result:
        found.append(Text(text=tool.result))
    elif result:
        found.append(Other(meta={"dev.asrd.block": result}))
    error = _decoded(tool.error)
    words = (
        fields_of(error).get("modelVisibleErrorMessage") or fields_of(error).get("clientVisibleErrorMessage") or error
    )
    if isinstance(words, str) and words:
        found.append(Text(text=words))
    elif words:
        found.append(Other(meta={"dev.asrd.block": words}))
    return found


def _blocks(said: Bubble) -> list[Block]:
    """A bubble's thinking, words and pictures."""
    thoughts = [said.thinking, *(said.allThinkingBlocks or ())]
    texts: list[str] = []
    hidden = False
    for thought in thoughts:
        fields = fields_of(thought)
        text = thought if isinstance(thought, str) else fields.get("text") or fields.get("thinking")
        if isinstance(text, str) and text and text not in texts:
            texts.append(text)
        hidden = hidden or bool(fields.get("signature") or fields.get("redactedThinking"))
    found: list[Block] = [Thinking(text=text) for text in texts]
    if not texts and hidden:
        found.append(Thinking(redacted=True))
    if said.text:
        found.append(Text(text=said.text))
    for image in said.images or ():
        fields = fields_of(image)
        path = fields.get("path")
        found.append(Image(path=path) if isinstance(path, str) else Other(meta={"dev.asrd.block": _plain(fields)}))
    return found


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """A picture without its bytes."""
    return {k: v for k, v in fields.items() if isinstance(v, str | int | float | bool) and len(str(v)) < 400}


def _counted(said: Bubble) -> Usage | None:
    """A bubble's figures; 0 and 0 is what is written where none are known."""
    tokens = said.tokenCount
    if tokens is None or not (tokens.inputTokens or tokens.outputTokens):
        return None
    return Usage(input=tokens.inputTokens or None, output=tokens.outputTokens or None)


def _time(told: Any) -> str | None:
    """A time as it is written: text, or milliseconds since 1970."""
    if isinstance(told, str):
        return told.replace("+00:00", "Z") if _TIME.match(told) else None
    return from_ms(told) if isinstance(told, int | float) else None


def _at(said: Bubble) -> str | None:
    return _time(said.createdAt) or (from_ms(said.timingInfo.clientRpcSendTime) if said.timingInfo else None)


def _digest(value: Any) -> Content | None:
    if isinstance(value, bytes):
        return Content(sha256=sha256(value), bytes=len(value))
    return content_of(value) if isinstance(value, str) else None


def _roots(one: Composer) -> list[WorkspaceRoot] | None:
    return [WorkspaceRoot(id="r1", path=one.cwd)] if one.cwd else None


def _local(uri: Uri | None) -> str | None:
    if uri is None:
        return None
    return uri.fsPath or uri.path or (_path_of(uri.external) if uri.external else None)


def _path_of(uri: str) -> str:
    return unquote(urlparse(uri).path)


def _file_of(told: Any) -> str | None:
    """The path of a newly created file: its URI in parts, or a path."""
    if isinstance(told, str):
        return told
    uri = fields_of(fields_of(told).get("uri"))
    path = uri.get("fsPath") or uri.get("path")
    return path if isinstance(path, str) else None


RECORDER = CursorDesktopRecorder
