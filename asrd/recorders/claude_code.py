r"""Claude Code (`claude`): one JSONL file a session, one for each of its sub-agents.

Where, below `~/.claude` (or CLAUDE_CONFIG_DIR):

    projects/<cwd, - for every other sign>/<session id>.jsonl          the session; appended to, also by a resume
    projects/<cwd>/<session id>/subagents/**/agent-<id>.jsonl          its sub-agents (>= 2.1), nested ones and workflows too
    projects/<cwd>/<session id>/subagents/**/agent-<id>.meta.json      what started it: type, description, toolUseId
    projects/<cwd>/agent-<7 hex>.jsonl                                 sub-agents of 2.0; before, they stand inside the session
    projects/<cwd>/<session id>/custom-title.json                      after /rename

and the same below the configuration folder of each task of Claude Desktop (Cowork), in the application's own folder:
`local-agent-mode-sessions/<organization>/<account>/[agent/]local_<uuid>/.claude/` (from documents).

Seen: 1.0.98, 2.0.65, 2.1.104, 2.1.197, 2.1.272, 2.1.318, 2.1.332, and the record kinds of published files from 1.0.89 on.

    {"type":"queue-operation","operation":"enqueue","timestamp":"…","sessionId":"69cfb8a0-…","content":"Fix calc.add …"}
    {"parentUuid":null,"isSidechain":false,"promptId":"31afd44e-…","type":"user","message":{"role":"user","content":"Fix …"},
      "uuid":"143fb411-…","timestamp":"…","permissionMode":"default","promptSource":"sdk","cwd":"/home/dev/app",
      "sessionId":"69cfb8a0-…","version":"2.1.332","gitBranch":"main"}
    {"parentUuid":"143fb411-…",…,"attachment":{"type":"environment",…},"type":"attachment","rendered":[{"content":"…"}]}
    {"type":"api-request","id":"b6fb30b8-…","querySource":"sdk","params":{"model":"…","output_config":{"effort":"high"}},…}
    {"parentUuid":"4c74cd11-…",…,"message":{"id":"msg_01Sd…","role":"assistant","model":"…","content":[ONE block],
      "stop_reason":"tool_use","usage":{"input_tokens":1506,"cache_creation_input_tokens":19,"cache_read_input_tokens":703,
      "output_tokens":59,"cache_creation":{…},"iterations":[]}},"requestId":"req_…","requestRef":"b6fb30b8-…",…}
    {…,"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_01XE…","type":"tool_result","content":"…",
      "is_error":false}]},"toolUseResult":{"stdout":"…","stderr":"","interrupted":false},"permissionDecision":{…}}
    {…,"type":"system","subtype":"compact_boundary","logicalParentUuid":"…","compactMetadata":{"trigger":"manual",…}}
    {"type":"cost-state","totalCostUSD":0.0367,"modelUsage":{"claude-sonnet-4-6":{"inputTokens":9128,…}},…}

What is particular
    - One response is several lines, one a content block, each with the response's id and usage. While it streams, earlier
      lines may have less output: the largest output holds, of equals the last. `input_tokens` excludes cached tokens.
    - Usage in `toolUseResult` repeats a sub-agent's last response, in `progress` any of its responses: neither counts.
    - A fork copies lines with their `uuid` and message id; its copied responses say whose they are in `requestSessionId`
      (`forkedFrom` on every line, where it is written). A resume before 2.0 copied a session with nothing to tell whose.
    - An `api-request` says that a request was made; the response names it in `requestRef`. One that no response names was
      paid for and lost. Requests for titles, permission checks and summaries stand in no file, only in `cost-state`.
    - What a compaction kept is copied into a fork with its usage set to zero: unknown there.
    - A command that ended with 0 says nothing of it; another is an error whose text starts `Exit code N` (from 2.0 on).
    - Esc in a running tool is written as if the person had refused it. At the terminal `interruptedMessageId` on the line that
      follows tells (it also names a response that Esc broke off), and from 2.1.332 on `toolDenialBeforeRun` on a refusal; where
      a program asks for the person, a refusal has its `permissionDecision`.
    - A sub-agent of type fork begins with `fork-context-ref` and its parent's last response, under a new uuid.
    - A search asks a model too, in a request that stands in no file, as does a compaction.
    - `api-request-blob` and `-shape`, `last-prompt`, `tools-used` say again what stands elsewhere: named skips.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Any, ClassVar, cast

import msgspec
import xxhash
from msgspec import UNSET, Raw, Struct, UnsetType

from asrd.recorders._observed import commits, content_of, patched
from asrd.recorders.base import Recorder, StreamKey, StreamOut, fields_of, from_ms, within
from asrd.records import (
    BLOCK,
    Approval,
    Block,
    Capture,
    Compaction,
    Config,
    CopyOf,
    Error,
    Evidence,
    Exec,
    File,
    FileChange,
    Image,
    Inference,
    Limit,
    Lineage,
    LineageParent,
    Link,
    LinkTarget,
    MemoryWrite,
    Message,
    Native,
    Other,
    Plan,
    PlanItem,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
    Vcs,
    VcsAction,
    Workspace,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, Source, first_line_digest

# ---------------------------------------------------------------- native records


ABSENT = Raw()


def given(raw: Raw) -> bytes:
    """What stands there; nothing for null and for a field that is not there."""
    if raw is ABSENT:
        return b""
    data = bytes(raw)
    return b"" if data == b"null" else data


class Written(Struct, gc=False):
    """Base of the native structs: only the fields used, in the order in which they are written."""


class NativeBlock(Written):
    """One block of a message's content."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    tool_use_id: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = ABSENT
    content: Raw = ABSENT
    is_error: bool | None = None
    source: Raw = ABSENT
    data: Raw = ABSENT


class Said(Written):
    """`message` of an assistant or user line."""

    id: str | None = None
    role: str | None = None
    model: str | None = None
    content: str | list[NativeBlock] | None = None
    stop_reason: str | None = None
    usage: Raw = ABSENT


class Forked(Written):
    sessionId: str
    messageUuid: str | None = None


class Kind(Written):
    """An object of which only its kind or type is asked for."""

    kind: str | None = None
    type: str | None = None


class Rendered(Written):
    content: Any = None


class Entry(Written):
    """Any line. What a type alone has is read by its method from the line's own `Raw` fields."""

    parentUuid: str | UnsetType | None = UNSET
    logicalParentUuid: str | None = None
    isSidechain: bool | None = None
    promptId: str | None = None
    agentId: str | None = None
    type: str = ""
    message: Said | None = None
    uuid: str | None = None
    timestamp: str | None = None
    toolUseResult: Raw = ABSENT
    permissionMode: str | None = None
    origin: Raw = ABSENT
    promptSource: str | None = None
    turnOrigin: str | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    isVisibleInTranscriptOnly: bool | None = None
    thinkingDurationMs: Any = None
    toolInputStreamMs: Any = None
    toolDenialKind: str | None = None
    toolDenialBeforeRun: bool | None = None
    interruptedMessageId: str | None = None
    permissionDecision: Raw = ABSENT
    sourceToolAssistantUUID: str | None = None
    requestId: str | None = None
    requestRef: str | None = None
    requestSessionId: str | None = None
    effort: Any = None
    isApiErrorMessage: bool | None = None
    apiErrorStatus: Any = None
    apiErrorType: Any = None
    error: Any = None
    isAbortedMidStream: bool | None = None
    forkedFrom: Forked | None = None
    cwd: str | None = None
    sessionId: str | None = None
    version: str | None = None
    gitBranch: str | None = None
    attachment: Raw = ABSENT
    rendered: list[Rendered] | None = None
    renderedRole: str | None = None
    subtype: str | None = None
    content: Raw = ABSENT
    entrypoint: str | None = None


class Iteration(Written):
    type: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class CacheCreation(Written):
    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class OutputDetails(Written):
    thinking_tokens: int | None = None


class NativeUsage(Written):
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None
    server_tool_use: dict[str, Any] | None = None
    service_tier: str | None = None
    cache_creation: CacheCreation | None = None
    iterations: list[Iteration] | None = None
    speed: str | None = None


class Patch(Written):
    oldStart: int
    oldLines: int
    newStart: int
    newLines: int
    lines: list[str]


class Replacement(Written):
    old_string: str = ""
    new_string: str = ""
    replace_all: bool | None = None


class Edited(Written):
    """`toolUseResult` of Edit, MultiEdit, Write and NotebookEdit."""

    type: str | None = None
    filePath: str | None = None
    oldString: str | None = None
    newString: str | None = None
    originalFile: str | UnsetType | None = UNSET
    originalFileContents: str | None = None
    structuredPatch: list[Patch] | None = None
    userModified: bool | None = None
    replaceAll: bool | None = None
    content: str | None = None
    edits: list[Replacement] | None = None
    notebook_path: str | None = None
    original_file: str | None = None
    updated_file: str | None = None
    cell_id: str | None = None
    edit_mode: str | None = None


class Asked(Written):
    """`input` of the edit tools, where only that is left of an edit (sub-agents from 2.1 on)."""

    file_path: str | None = None
    notebook_path: str | None = None
    content: str | None = None


class Decided(Written):
    """`permissionDecision` of a tool result."""

    decision: str | None = None
    source: str | None = None
    reasonType: str | None = None
    reasonCode: str | None = None
    grantScope: str | None = None


class Todo(Written):
    content: str = ""
    status: str = "pending"


class Todos(Written):
    todos: list[Todo] | None = None
    newTodos: list[Todo] | None = None


class TaskChange(Written):
    """`input` of TaskCreate and TaskUpdate."""

    subject: str | None = None
    taskId: str | int | None = None
    status: str | None = None


class Sidecar(Written):
    """`agent-<id>.meta.json`, and `custom-title.json`."""

    agentType: str | None = None
    description: str | None = None
    toolUseId: str | None = None
    parentAgentId: str | None = None
    customTitle: str | None = None


_entry = msgspec.json.Decoder(Entry).decode
_block = msgspec.json.Decoder(NativeBlock).decode
_usage = msgspec.json.Decoder(NativeUsage).decode
_edited = msgspec.json.Decoder(Edited).decode
_asked = msgspec.json.Decoder(Asked).decode
_decided = msgspec.json.Decoder(Decided).decode
_any = msgspec.json.Decoder().decode
_object = msgspec.json.Decoder(dict[str, Any]).decode
_words_of = msgspec.json.Decoder(str).decode
_several = msgspec.json.Decoder(list[NativeBlock]).decode
_raws = msgspec.json.Decoder(dict[str, Raw]).decode
_kind = msgspec.json.Decoder(Kind).decode

# ---------------------------------------------------------------- state


class Call(Struct, gc=False):
    """A tool call that waits for its result. `command` only of commands that name git; `soft`: a command whose exit
    code 1 is no failure to the harness (grep, diff, test…).
    """

    name: str
    cwd: str | None = None
    command: str | None = None
    soft: bool = False
    background: bool = False
    input: bytes | None = None
    copied: str | None = None
    """The session that made the call, where the line is a copy."""


class Refused(Struct, gc=False):
    """A call whose result says that the person refused it, with the records that say so: it may have been Esc."""

    call: str
    result: int
    approval: int
    text: str


class Queued(Struct, gc=False):
    """A prompt that waits in the queue: its digest, its record, and whether a turn was under way."""

    digest: int
    record: int
    busy: bool


class Behind(Struct, gc=False):
    """A command that went on in the background: its result so far, which a later note completes."""

    result: int
    task: str
    text: str
    place: str | None = None
    copied: str | None = None


class Thread(Struct):
    """One stream: the session of the file, a sub-agent's, or a side chain inside a session's file."""

    session: str
    namespace: str = ""
    agent: bool = False
    internal: str | None = None
    """What the harness uses the agent for, when it started it by itself: compact, aside_question…"""
    cwd: str | None = None
    root: str | None = None
    version: str | None = None
    branch: str | None = None
    mode: str | None = None
    model: str | None = None
    effort: str | None = None
    title: str | None = None
    uimode: str | None = None
    turn: str | None = None
    open: bool = False
    """Whether the turn has not ended yet."""
    end: int = -1
    """The record that ended `turn`."""
    ending: str | None = None
    """The response that said so, when a further block of it may follow."""
    last: str | None = None
    """The chain's last line."""
    lines: dict[int, int] = {}
    """Record made from a line, by digest of its uuid: what a later line may name as its parent."""
    firsts: dict[int, int] = {}
    """Where, when and with what each response began, by digest of its id."""
    again: set[str] | None = None
    """Calls of the lines that are being written again, while they are."""
    responses: dict[int, int] = {}
    """Record that states a response, by digest of its id."""
    outputs: dict[int, int] = {}
    response: str | None = None
    """The last response, with its usage as it was written."""
    usage: bytes = b""
    stopped: bool = False
    requests: dict[str, int] = {}
    """Requests that no response has named yet, with their records."""
    calls: dict[str, Call] = {}
    behind: dict[str, Behind] = {}
    """Commands in the background by call, at most `QUEUE`."""
    refused: list[Refused] = []
    queue: list[Queued] = []
    tasks: dict[str, tuple[str, str]] = {}
    seen: set[int] = set()
    """Digests of long contexts and pictures that stand in the stream already."""
    agents: set[str] = set()
    """Sub-agents that were linked."""
    copied: list[str] = []
    """Sessions that copied lines came from, in order; "" ends it: own lines have begun."""
    resumed: str | None = None
    """The line by which a resume asked to go on, until a turn starts."""
    inherits: str | None = None
    """The session whose last response a fork that it started begins with, until the fork's own words."""
    cut: bool = False
    decides: bool = False
    foreign: set[str] = set()
    sidecar: str | None = None
    """The call that started it, as the sidecar says."""


class State(Struct):
    threads: dict[str, Thread] = {}
    """By root uuid of the side chain; "" is the session's own."""
    chains: dict[int, int] = {}
    """Side chain (place in `roots`) of each of its lines, by digest of the uuid."""
    roots: list[str] = []
    held: list[tuple[int, int, bytes]] = []
    """Lines before the first that names a folder: they wait for the header."""
    first: str = ""
    sidecar: bytes | None = None
    title: str | None = None


_BLOCKED = (
    "Permission to use ",
    "Claude requested permissions to ",
    "This command requires approval",
    "This Bash command contains multiple operations. The following part",
    "Hook PreToolUse:",
)
"""How results begin that were refused without asking a person (of versions that write no `permissionDecision`)."""
HALTED = "Operation stopped by hook"
"""How the line begins that says a hook let a prompt go no further (`continue: false`)."""
REFUSED = "The user doesn't want to proceed with this tool use"
LOST = "\0"
"""Stands for the response that ended a turn, where the session ended under it."""
QUEUE = 64
"""Prompts that are remembered until they are sent; a command is sent in other words and never found."""
MOST = 1 << 62
"""The largest output that is compared: what is kept between runs holds no larger number."""
REPLAYED = (b'{"type":"api-request-shape"', b'{"type":"api-request-blob"')
HELD = 32
HELD_BYTES = 1 << 16
LONG = 200
"""Characters from which on a context that comes again is left out."""

_EARLY = frozenset(
    ("queue-operation", "mode", "permission-mode", "atis-latch", "tools-used", "last-prompt", "summary", "agent-name",
     "custom-title", "ai-title", "file-history-snapshot", "worktree-state", "relocated", "fork-context-ref",
     "session-owner", "isolation-latch", "agent-setting", "agent-color", "tag", "content-replacement")
)  # fmt: skip
"""Lines without a folder that may stand before the first that names it (2.1.332 repeats its latest ones when it resumes)."""

KINDS = {
    "Bash": "execute", "BashOutput": "execute", "KillShell": "execute", "KillBash": "execute", "PowerShell": "execute",
    "Monitor": "execute", "Read": "read", "NotebookRead": "read", "ReadMcpResource": "mcp", "ListMcpResources": "mcp",
    "Edit": "edit", "MultiEdit": "edit", "Write": "edit", "NotebookEdit": "edit", "Grep": "search", "Glob": "search",
    "LS": "search", "ToolSearch": "search", "LSP": "search", "WebSearch": "search", "web_search": "search",
    "WebFetch": "fetch", "web_fetch": "fetch", "Task": "delegate", "Agent": "delegate", "Workflow": "delegate",
    "SendMessage": "delegate", "TodoWrite": "plan", "TaskCreate": "plan", "TaskUpdate": "plan", "TaskList": "plan",
    "TaskGet": "plan", "EnterPlanMode": "plan", "ExitPlanMode": "plan",
}  # fmt: skip
SHELLS = ("Bash", "PowerShell")
EDITS = ("Edit", "MultiEdit", "Write", "NotebookEdit")
AGENTS = ("coordinator", "peer")
"""`origin.kind` of what another agent sent: the one that started this one, or one beside it."""
_SOFT = re.compile(rb"\b(?:grep|rg|ag|find|diff|cmp|test)\b|\[ ")
_LABELLED = re.compile(r"a([a-z_]+?)-[0-9a-f]+\Z")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_BRANCHED = re.compile(r"Switched to (?:a new )?branch '([^'\n]+)'")
_SHORT = re.compile(r"^\[(\S+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] ", re.MULTILINE)
_TOOL_USE_ID = re.compile(r"<tool-use-id>([^<]{1,200})</tool-use-id>")
_ENDED = re.compile(r"(?:\(exit code |failed with exit code )(-?\d{1,10})\)?</summary>")
"""How a note of a background command says what it ended with."""
_HANDED_BACK = re.compile(r"^agentId: ([0-9a-z_-]{7,}) \(use SendMessage ", re.MULTILINE)
"""What stands under a sub-agent's report; every line of the report itself is indented."""
EXPLAINED = frozenset({"No matches found", "Files differ", "Some directories were inaccessible", "Condition is false"})
"""What `returnCodeInterpretation` says of a command that ended with 1, and of no other (2.1.332: grep, rg, egrep, fgrep,
find, diff, test, [, git grep and git diff)."""
_AGENT_ID = re.compile(r"\bagentId: ([0-9a-z_-]{7,})")
_LIMIT = re.compile(r"usage limit reached\|(\d{9,11})")


def _digest(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


PLACES = (
    Place("projects/*/*.jsonl"),
    Place("projects/*/*/subagents/**/*.jsonl"),
    Place("projects/*/*/workflows/**/*.jsonl"),
    Place("projects/*/*/subagents/**/agent-*.meta.json", "document", sidecar=True),
    Place("projects/*/*/workflows/**/agent-*.meta.json", "document", sidecar=True),
    Place("projects/*/*/custom-title.json", "document", sidecar=True),
)
DESKTOP = (Root("Library/Application Support/Claude"), Root(".config/Claude"), Root("AppData/Roaming/Claude"))
TASKS = ("local-agent-mode-sessions/*/*/local_*", "local-agent-mode-sessions/*/*/agent/local_*")
"""Folders of Claude Desktop's tasks (Cowork): each has a configuration folder of its own, with Claude Code's files in it."""


class ClaudeCodeRecorder(Recorder):
    """The recorder of Claude Code."""

    harness: ClassVar[str] = "claude-code"
    roots = (Root(".claude", env=("CLAUDE_CONFIG_DIR",)), *DESKTOP)
    places = (
        *PLACES,
        *(Place(f"{task}/.claude/{p.pattern}", p.kind, sidecar=p.sidecar) for task in TASKS for p in PLACES),
    )
    versions = ("1.0.98", "2.0.65", "2.1.104", "2.1.197", "2.1.272", "2.1.318", "2.1.332")
    State = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """A file of lines is a group of its own, with its sidecar."""
        if path.endswith(".meta.json"):
            return Located(group=path[: -len(".meta.json")] + ".jsonl", name=path, order="0")
        if path.endswith("/custom-title.json"):
            return Located(group=path[: -len("/custom-title.json")] + ".jsonl", name=path, order="0")
        beside = path[: -len(".jsonl")] + ".meta.json" if "/subagents/" in path and path.endswith(".jsonl") else ""
        return Located(group=path, name=path, order="1", beside=beside)

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Lines with `isSidechain`, or of the kinds that only this harness puts before them."""
        return any(
            word in head for word in (b'"isSidechain"', b'"queue-operation"', b'"file-history-snapshot"', b'"leafUuid"')
        )

    # ------------------------------------------------------------ which stream

    def _path(self) -> str:
        """Where the file lies in its configuration folder, also in that of a task."""
        return self.group.rpartition("/.claude/")[2]

    def _own(self, said: str | None, agent: str | None) -> Thread:
        """The thread of the file itself, named by its place; elsewhere by what its first line says."""
        found = self.state.threads.get("")
        if found is not None:
            return found
        parts = self._path().split("/")
        stem = parts[-1].removesuffix(".zst").removesuffix(".jsonl")
        if len(parts) > 3 and parts[0] == "projects":
            name = stem.removeprefix("agent-") if stem.startswith("agent-") else "/".join([*parts[3:-1], stem])
            thread = Thread(name, parts[2], agent=True)
        elif stem.startswith("agent-"):
            thread = Thread(stem.removeprefix("agent-"), said or "", agent=True)
        elif parts[0] == "projects" or _UUID.match(stem) or not said:
            thread = Thread(stem)
        elif agent:
            thread = Thread(agent, said, agent=True)
        else:
            thread = Thread(said)
        if thread.agent and (label := _LABELLED.match(thread.session)):
            thread.internal = label[1]
        self.state.threads[""] = thread
        return thread

    def _opened(self, thread: Thread) -> StreamOut | None:
        return self.out.stream(StreamKey(self.harness, thread.session, thread.namespace))

    def main(self) -> StreamOut:
        """The file's own stream."""
        thread = self._own(None, None)
        return self._opened(thread) or self._open(thread, None)

    def _open(self, t: Thread, e: Entry | None, started: str | None = None) -> StreamOut:
        """Writes the header. `started`: a time that stands before the line at hand (a fork's first lines are copies)."""
        key = StreamKey(self.harness, t.session, t.namespace)
        side = t is not self.state.threads.get("")
        sidecar: dict[str, Any] = {}
        meta: dict[str, Any] = {}
        title = None if side else self.state.title
        lineage: Lineage | None = None
        if t.agent:
            parent, call, field, value = t.namespace, None, "path", self._path()
            kind = "native-path" if value.count("/") > 2 else "native-field"
            if kind == "native-field":
                field, value = ("isSidechain", None) if side else ("sessionId", t.namespace)
            if self.state.sidecar and not side:
                sidecar = _object(self.state.sidecar)
                told = msgspec.convert(sidecar, Sidecar)
                title = told.description
                t.sidecar = call = told.toolUseId
                if call:
                    kind, field, value = "native-field", "toolUseId", call
                if told.parentAgentId:
                    parent = told.parentAgentId
                meta["dev.asrd.agent"] = sidecar
            if t.internal:
                meta["dev.asrd.internal"] = t.internal
            if parent:
                nested = parent != t.namespace
                lineage = Lineage(
                    root=False,
                    parent=LineageParent(
                        agent=self.harness,
                        session_id=parent,
                        namespace=t.namespace if nested else None,
                        call_id=call,
                    ),
                    relation="spawned_by",
                    evidence=Evidence(kind=kind, field=field, value=value),
                )
        elif e is not None and e.forkedFrom is not None and e.forkedFrom.sessionId != t.session:
            other = e.forkedFrom.sessionId
            t.copied.append(other)
            lineage = Lineage(
                root=False,
                parent=LineageParent(agent=self.harness, session_id=other),
                relation="forked_from",
                evidence=Evidence(kind="native-field", field="forkedFrom.sessionId", value=other),
            )
        workspace = None
        if e is not None and e.cwd:
            t.cwd = t.root = e.cwd
            t.branch = e.gitBranch or None
            vcs = Vcs(type="git", branch=t.branch) if t.branch else None
            workspace = Workspace(roots=[WorkspaceRoot(id="r1", path=e.cwd, vcs=vcs)])
        if e is not None:
            t.version = e.version
            if e.entrypoint:
                meta["dev.asrd.entrypoint"] = e.entrypoint
        t.title = title
        stream = self.open(
            key,
            version=t.version,
            started_at=started or (e.timestamp if e is not None and e.forkedFrom is None else None),
            lineage=lineage,
            workspace=workspace,
            title=title,
            lossy=("thinking.signature", "api-request"),
            meta=meta or None,
        )
        for profile, facet, state, reason in self._states(t, side):
            stream.add(Capture(profile=profile, facet=facet, state=state, reason=reason))
        return stream

    def _states(self, t: Thread, side: bool) -> list[tuple[str, str, str, str]]:
        found = [
            (
                "usage",
                "requests",
                "partial",
                "requests for titles, permission checks and summaries are written to no session file",
            ),
            ("usage", "durationMs", "unavailable", "no line says how long a response took"),
            (
                "coding",
                "exec.exitCode",
                "partial",
                "a command that ended with 0 is told from others by not being an error",
            ),
        ]
        if t.agent and not side:
            found.append(
                (
                    "coding",
                    "file_change.before",
                    "partial",
                    "from 2.1 on a sub-agent's file holds no content before an edit",
                )
            )
        if not t.agent and t.version is not None and _numbers(t.version) <= _NO_TOTAL:
            found.append(("usage", "usage_total", "unavailable", "this version writes no total"))
        if t.agent and not t.sidecar:
            found.append(
                (
                    "lineage",
                    "parent",
                    "partial",
                    "the session is named, but not the call, nor the agent of a nested one",
                )
            )
        return found

    def _thread(self, e: Entry) -> Thread:
        """The stream a line belongs to: a side chain inside a session's file is a sub-agent."""
        own = self._own(e.sessionId, e.agentId)
        if not e.isSidechain or own.agent or e.uuid is None:
            return own
        state = self.state
        parent = e.parentUuid
        chain = state.chains.get(_digest(parent)) if isinstance(parent, str) else None
        if chain is None:
            chain = len(state.roots)
            state.roots.append(e.uuid)
            state.threads[e.uuid] = Thread(e.uuid, own.session, agent=True)
        state.chains[_digest(e.uuid)] = chain
        return state.threads[state.roots[chain]]

    # ------------------------------------------------------------ one item

    def receive(self, source: Source, item: Line | Row) -> None:
        if isinstance(item, Row):
            self._sidecar(source, item)
            return
        data = item.data
        if data.startswith(REPLAYED) and data.endswith(b"}"):
            # They hold prompts, tools and messages again; nothing waits for them.
            if not self.state.held:
                msgspec.json.decode(data, type=Raw)
                self.out.skip("request-replay")
                return
        e = _entry(data)
        state = self.state
        if not state.first:
            state.first = first_line_digest(data)
        t = self._thread(e)
        stream = self._opened(t)
        if stream is None:
            if e.cwd is None and e.type in _EARLY and len(state.held) < HELD and len(data) < HELD_BYTES:
                state.held.append((item.start, item.end, data))
                self.out.skip("held-for-the-header")
                return
            own = state.threads[""]
            held, state.held = (state.held, []) if t is own else ([], state.held)
            first = [(Line(start, end, early), _entry(early)) for start, end, early in held]
            started = next((x.timestamp for _, x in first if x.timestamp), None)
            stream = self._open(t, e, started)
            for line, early in first:
                self.out.begin(source, line, state.first)
                self._line(early, t, stream, line.data)
            if held:
                self.out.begin(source, item, state.first)
            if t is not own:
                self._began(own, t, e)
        self._line(e, t, stream, data)

    def _began(self, own: Thread, t: Thread, e: Entry) -> None:
        """A side chain began inside the session's file: nothing names the call that started it."""
        session = self._opened(own) or self._open(own, e)
        session.add(
            Link(
                relation="spawned",
                target=LinkTarget(agent=self.harness, session_id=t.session, namespace=t.namespace),
                evidence=Evidence(kind="native-field", field="isSidechain", value="true"),
                at=e.timestamp,
            )
        )

    def _line(self, e: Entry, t: Thread, s: StreamOut, data: bytes) -> None:
        match e.type:
            case "assistant":
                self._assistant(e, t, s)
            case "user":
                self._user(e, t, s)
            case "attachment":
                self._attachment(e, t, s)
            case "system":
                self._system(e, t, s, data)
            case "progress":
                self._progress(e, t, s, data)
            case "queue-operation":
                self._queue(e, t, s, data)
            case "api-request":
                self._request(e, t, s, data)
            case "fork-context-ref":
                self._inherited(e, t, s, data)
            case "cost-state":
                self._settle(t, s)
                self._cost(s, data)
            case "last-prompt" | "tools-used" | "api-request-blob" | "api-request-shape":
                self._settle(t, s)
                self.out.skip(f"said-elsewhere:{e.type}")
            case "summary" | "custom-title" | "ai-title":
                self._title(e, t, s, data)
            case "mode" | "permission-mode":
                self._mode(e, t, s, data)
            case "atis-latch":
                if _object(data).get("atis"):
                    self._native(e, t, s, e.type, data)
                else:
                    self.out.skip("empty:atis-latch")
            case "file-history-snapshot":
                if b'"trackedFileBackups":{}' in data:
                    self.out.skip("empty:file-history-snapshot")
                else:
                    self._native(e, t, s, e.type, data)
            case _:
                # agent-name, pr-link, teleported-from, file-history-delta, started and result of workflows, what comes
                self._native(e, t, s, e.type or "unknown", data)

    # ------------------------------------------------------------ what every line has

    def _about(self, e: Entry, t: Thread, s: StreamOut) -> dict[str, Any]:
        """Common fields of the records of a chain line; says what changed with it (version, folder, branch)."""
        fields: dict[str, Any] = {"at": e.timestamp, "native_id": e.uuid}
        copy = None
        if e.forkedFrom is not None:
            if e.forkedFrom.sessionId != t.session:
                copy = CopyOf(session_id=e.forkedFrom.sessionId, native_id=e.forkedFrom.messageUuid or e.uuid)
                self._copied(t, s, e.forkedFrom.sessionId, "forkedFrom.sessionId")
        elif e.requestSessionId and e.requestSessionId != (t.namespace if t.agent else t.session):
            copy = CopyOf(session_id=e.requestSessionId, native_id=e.uuid)
            self._copied(t, s, e.requestSessionId, "requestSessionId")
        elif t.inherits and e.type == "assistant":
            copy = CopyOf(session_id=t.inherits)  # under a new uuid
        if copy is not None:
            fields["copy_of"] = copy
        parent = e.parentUuid
        if isinstance(parent, str):
            if parent != t.last:
                found = t.lines.get(_digest(parent))
                if found is None:
                    fields["meta"] = {"dev.asrd.parentUuid": parent}
                elif found >= 0:
                    fields["parent"] = f"r{found}" if found else "h"
        elif parent is None and t.last is not None and e.logicalParentUuid is None:
            fields["meta"] = {"dev.asrd.root": True}
        if e.cwd != t.cwd and e.cwd is not None:
            t.cwd = e.cwd
            s.add(Config(cwd=e.cwd, **_plain(fields)))
        if e.version != t.version and e.version is not None:
            t.version = e.version
            s.add(Config(version=e.version, **_plain(fields)))
        branch = e.gitBranch
        if branch and branch != t.branch:
            t.branch = branch
            s.add(VcsAction(action="state", branch=branch, evidence="reported", **_plain(fields)))
        if t.agent and e.sessionId and e.sessionId != t.namespace and t.namespace and e.sessionId not in t.foreign:
            t.foreign.add(e.sessionId)
            s.add(
                Link(
                    relation="spawned_by",
                    target=LinkTarget(agent=self.harness, session_id=e.sessionId),
                    evidence=Evidence(kind="native-field", field="sessionId", value=e.sessionId),
                    **_plain(fields),
                )
            )
        return fields

    def _chain(self, e: Entry, t: Thread, record: str | None) -> None:
        """The line is the chain's last; `record` is what a later line would name as its parent."""
        if e.uuid is None:
            return
        if record is None:
            parent = e.parentUuid
            number = t.lines.get(_digest(parent), -1) if isinstance(parent, str) else -1
        else:
            number = _number(record)
        t.lines[_digest(e.uuid)] = number
        t.last = e.uuid

    def _copied(self, t: Thread, s: StreamOut, session: str, field: str) -> None:
        if session not in t.copied:
            t.copied.append(session)
            s.add(
                Link(
                    relation="copies",
                    target=LinkTarget(agent=self.harness, session_id=session),
                    evidence=Evidence(kind="native-field", field=field, value=session),
                )
            )

    def _own_begins(self, t: Thread, s: StreamOut) -> None:
        """A response of this session after copied ones: it was forked from the session of the last of them."""
        if t.copied and t.copied[-1]:
            last = t.copied[-1]
            t.copied.append("")
            s.add(
                Link(
                    relation="forked_from",
                    target=LinkTarget(agent=self.harness, session_id=last),
                    evidence=Evidence(kind="native-field", field="requestSessionId", value=last),
                )
            )

    def _inherited(self, e: Entry, t: Thread, s: StreamOut, data: bytes) -> None:
        """A sub-agent that is a fork has its parent's history, of which only the response that called it is repeated."""
        self._native(e, t, s, e.type, data)
        parent = _object(data).get("parentSessionId")
        if t.agent and isinstance(parent, str):
            t.inherits = parent
            s.add(
                Link(
                    relation="copies",
                    target=LinkTarget(agent=self.harness, session_id=parent),
                    evidence=Evidence(kind="native-field", field="parentSessionId", value=parent),
                )
            )

    def _native(self, e: Entry, t: Thread, s: StreamOut, name: str, data: bytes) -> None:
        """A line with no standard place, kept whole."""
        fields: dict[str, Any] = self._about(e, t, s) if e.uuid else {"at": e.timestamp}
        record = s.add(Native(native_type=name, data=_any(data), turn_id=t.turn, **fields))
        self._chain(e, t, record)

    # ------------------------------------------------------------ turns

    def _start(self, e: Entry, t: Thread, s: StreamOut, trigger: str, fields: dict[str, Any]) -> None:
        self._settle(t, s)
        turn = e.uuid or f"line-{s.next_seq}"
        t.turn, t.open, t.end, t.resumed = turn, True, -1, None
        t.refused.clear()
        meta = {"dev.asrd.promptId": e.promptId} if e.promptId else None
        s.add(Turn(turn_id=turn, phase="start", trigger=trigger, meta=meta, **_plain(fields)))

    def _finish(
        self,
        t: Thread,
        s: StreamOut,
        status: str,
        at: str | None,
        error: Error | None = None,
        copy: CopyOf | None = None,
        line: str | None = None,
    ) -> None:
        """The turn ended, or ended otherwise than was said before. `line` says so, else the chain's last."""
        if t.turn is None:
            return
        again = f"r{t.end}" if t.end >= 0 else None
        record = s.add(
            Turn(
                turn_id=t.turn,
                phase="end",
                status=status,
                error=error,
                at=at,
                native_id=line or t.last,
                supersedes=again,
                copy_of=copy,
            )
        )
        t.end, t.open, t.ending = _number(record), False, None

    def _settle(self, t: Thread, s: StreamOut) -> None:
        """Ends the turn whose last response is over, now that something else follows."""
        if t.ending is not None and t.open:
            self._finish(t, s, "interrupted" if t.ending == LOST else "completed", None)
        t.ending = None

    # ------------------------------------------------------------ responses

    def _assistant(self, e: Entry, t: Thread, s: StreamOut) -> None:
        m = e.message or Said()
        blocks = _blocks(m.content)
        name = m.id or e.requestId or e.uuid or ""
        made = m.model != "<synthetic>"
        if made and m.id and blocks and self._written_again(e, m.id, blocks, t):
            self.out.skip("line-written-again")
            self._chain(e, t, None)
            return
        raw = given(m.usage)
        known = made and name == t.response and raw == t.usage and (t.stopped or m.stop_reason is None)
        counted = _usage(raw) if made and not known and raw else None
        if counted is not None and not (
            counted.input_tokens
            or counted.output_tokens
            or counted.cache_read_input_tokens
            or counted.cache_creation_input_tokens
        ):
            counted = None  # set to zero by the harness on what a compaction kept: unknown here
        if t.ending is not None and t.ending != name:
            self._settle(t, s)
        f = self._about(e, t, s)
        copy = f.get("copy_of")
        if made and t.resumed is not None:
            self._start(e, t, s, "resume", f)
        f["turn_id"] = t.turn
        if made:
            if copy is None and t.copied and not known:
                self._own_begins(t, s)
            effort = e.effort if isinstance(e.effort, str) else None
            if copy is None and (m.model != t.model or effort != t.effort):
                self._config(t, s, m.model, effort, e.timestamp)
            if not known:
                self._response(e, m, t, s, name, counted, f, effort)
                t.response, t.usage, t.stopped = name, raw, m.stop_reason is not None
        record = self._say(e, m, blocks, t, s, f, name if made else None)
        self._chain(e, t, record)
        if not made:
            self._synthetic(e, blocks, t, s)
        elif m.stop_reason in ("end_turn", "stop_sequence", "refusal"):
            status = "refused" if m.stop_reason == "refusal" else "completed"
            if m.stop_reason == "refusal" or (blocks and blocks[-1].type == "text"):
                again = t.ending == name
                if t.open or again or t.end >= 0:
                    self._finish(t, s, status, e.timestamp, copy=copy)
                t.ending = None
            else:
                t.ending = name
        elif t.turn is not None and not t.open and t.end >= 0:
            t.open = True  # the work goes on behind what looked like its end (a hook sent it back)

    def _written_again(self, e: Entry, ident: str, blocks: list[NativeBlock], t: Thread) -> bool:
        """Whether a resume wrote this line again (2.0.65): where a response with several blocks stands on one line, it
        writes all that follows once more, each block on a line of its own, under new uuids and with the times it had.
        """
        b = blocks[0]
        began = _digest(f"{e.parentUuid}/{e.timestamp}/{b.type}/{b.id or b.text or b.thinking}")
        response = _digest(ident)
        before = t.firsts.get(response)
        if before is None:
            t.firsts[response], t.again = began, None
            return False
        if t.again is None and before != began:
            return False
        t.again = (t.again or set()) | {b.id for b in blocks if b.id}
        return True

    def _config(self, t: Thread, s: StreamOut, model: str | None, effort: str | None, at: str | None) -> None:
        changed_model = model if model != t.model else None
        changed_effort = effort if effort != t.effort else None
        t.model, t.effort = model or t.model, effort or t.effort
        if changed_model or changed_effort:
            s.add(Config(model=changed_model, effort=changed_effort, at=at, turn_id=t.turn))

    def _response(
        self,
        e: Entry,
        m: Said,
        t: Thread,
        s: StreamOut,
        name: str,
        counted: NativeUsage | None,
        f: dict[str, Any],
        effort: str | None,
    ) -> None:
        """One `inference` for a response, and a further one where a later line states it better."""
        digest = _digest(name)
        output = min(counted.output_tokens, MOST) if counted and counted.output_tokens is not None else -1
        before = t.responses.get(digest)
        supersedes = None
        if before is not None:
            self.out.count("response-restated")
            if output < t.outputs[digest] or (output == t.outputs[digest] and "copy_of" in f):
                return
            supersedes = f"r{before}"
        elif e.requestRef and (asked := t.requests.pop(e.requestRef, None)) is not None:
            supersedes = f"r{asked}"
        meta: dict[str, Any] = {}
        if e.requestId:
            meta["dev.asrd.requestId"] = e.requestId
        if e.isAbortedMidStream:
            meta["dev.asrd.aborted"] = True
        if counted is not None:
            if counted.service_tier not in (None, "standard"):
                meta["dev.asrd.serviceTier"] = counted.service_tier
            if counted.speed not in (None, "standard"):
                meta["dev.asrd.speed"] = counted.speed
            if counted.server_tool_use and any(counted.server_tool_use.values()):
                meta["dev.asrd.serverToolUse"] = counted.server_tool_use
        fields = dict(f)
        if "meta" in fields:
            meta = {**fields.pop("meta"), **meta}
        record = s.add(
            Inference(
                inference_id=name,
                id_source=None if name else "derived",
                model=m.model,
                effort=effort,
                stop_reason=m.stop_reason,
                usage=_counts(counted) if counted else None,
                supersedes=supersedes,
                meta=meta or None,
                **fields,
            )
        )
        t.responses[digest] = _number(record)
        t.outputs[digest] = output
        if counted is not None and counted.iterations and before is None:
            self._outside(counted.iterations, m, s, name, fields)
        if e.isAbortedMidStream and not t.cut:
            t.cut = True
            reason = "a response was cut: its output is what the server had said when it began"
            s.add(Capture(profile="usage", facet="output", state="partial", reason=reason))

    def _outside(self, iterations: list[Iteration], m: Said, s: StreamOut, name: str, fields: dict[str, Any]) -> None:
        """Passes of a response that its top-level usage leaves out: an advisor's, a compaction on the server."""
        for number, one in enumerate(iterations):
            if one.type in ("advisor_message", "compaction"):
                s.add(
                    Inference(
                        inference_id=f"{name}/{number}",
                        id_source="derived",
                        model=one.model or m.model,
                        usage=Usage(
                            input=one.input_tokens,
                            output=one.output_tokens,
                            cache_read=one.cache_read_input_tokens,
                            cache_write=one.cache_creation_input_tokens,
                        ),
                        meta={"dev.asrd.partOf": name, "dev.asrd.iteration": one.type},
                        **fields,
                    )
                )

    def _say(
        self, e: Entry, m: Said, blocks: list[NativeBlock], t: Thread, s: StreamOut, f: dict[str, Any], name: str | None
    ) -> str | None:
        """Messages and calls of a response's blocks; gives the record that stands for the line."""
        said: list[Block] = []
        record: str | None = None
        meta: dict[str, Any] | None = None
        # What a response had said when Esc broke it off is written as if the harness had made it up.
        spoken = name is not None or (e.isApiErrorMessage is False and not _made_up(blocks))
        if e.thinkingDurationMs is not None:
            meta = {"dev.asrd.thinkingMs": e.thinkingDurationMs}

        def flush() -> None:
            nonlocal said, record
            if said:
                fields = dict(f)
                if meta is not None:
                    fields["meta"] = {**fields.get("meta", {}), **meta}
                record = s.add(
                    Message(
                        role="assistant",
                        author="agent" if spoken else "harness",
                        origin=None if spoken else "injected",
                        message_id=m.id,
                        inference_id=name,
                        content=said,
                        **fields,
                    )
                )
                said = []

        for b in blocks:
            if b.type in ("tool_use", "server_tool_use", "mcp_tool_use"):
                flush()
                record = self._call(b, t, s, f, name)
            elif b.type.endswith("tool_result") and b.tool_use_id:
                flush()
                record = self._server_result(b, t, s, f)
            else:
                said.append(self._content(b, t))
        flush()
        return record

    def _call(self, b: NativeBlock, t: Thread, s: StreamOut, f: dict[str, Any], name: str | None) -> str:
        tool = b.name or ""
        raw = given(b.input) or b"{}"
        call = Call(tool)
        if tool in SHELLS:
            call.cwd = t.cwd
            if b"git" in raw and raw[:1] == b"{":
                command = _object(raw).get("command")
                call.command = command if isinstance(command, str) else None
            call.soft = _SOFT.search(raw) is not None
            call.background = b'"run_in_background":true' in raw
        elif (tool in EDITS and t.agent) or tool in ("TodoWrite", "TaskCreate", "TaskUpdate"):
            call.input = raw
        if (copy := f.get("copy_of")) is not None:
            call.copied = copy.session_id
        ident = b.id or f"{name}/{tool}"
        t.calls[ident] = call
        passed: Any = Raw(raw) if raw[:1] == b"{" else {"raw": Raw(raw)}
        return s.add(
            ToolCall(
                call_id=ident,
                call_id_source=None if b.id else "derived",
                inference_id=name,
                name=tool,
                kind=KINDS.get(tool) or ("mcp" if tool.startswith("mcp__") or b.type == "mcp_tool_use" else "other"),
                input=passed,
                **f,
            )
        )

    def _server_result(self, b: NativeBlock, t: Thread, s: StreamOut, f: dict[str, Any]) -> str:
        """A result of a tool that ran at the provider: it stands in the response itself."""
        ident = b.tool_use_id or ""
        t.calls.pop(ident, None)
        raw = given(b.content)
        failed = b.is_error or b"_error" in raw[:200]
        kept: list[Block] = [Other(meta={BLOCK: {"type": b.type, "content": _any(raw) if raw else None}})]
        return s.add(
            ToolResult(call_id=ident, linkage="exact", status="failed" if failed else "completed", content=kept, **f)
        )

    def _synthetic(self, e: Entry, blocks: list[NativeBlock], t: Thread, s: StreamOut) -> None:
        """A line that the harness wrote in the model's place: no request; an error ends the turn."""
        text = blocks[0].text or "" if blocks else ""
        if found := _LIMIT.search(text):
            s.add(Limit(resets_at=from_ms(int(found[1]) * 1000), at=e.timestamp, turn_id=t.turn))
        if e.isApiErrorMessage:
            code = e.apiErrorType if isinstance(e.apiErrorType, str) else None
            if code is None and e.apiErrorStatus is not None:
                code = str(e.apiErrorStatus)
            if code is None and isinstance(e.error, str) and e.error != "unknown":
                code = e.error
            self._finish(t, s, "failed", e.timestamp, Error(code=code, message=text or None))

    def _request(self, e: Entry, t: Thread, s: StreamOut, data: bytes) -> None:
        """A request was made: known before its response is, and all there is when none comes."""
        self._settle(t, s)
        fields = _object(data)
        ident = fields.get("id")
        params = fields_of(fields.get("params"))
        if not isinstance(ident, str):
            self._native(e, t, s, e.type, data)
            return
        effort = fields_of(params.get("output_config")).get("effort")
        about = {k: v for k in ("max_tokens", "thinking") if (v := params.get(k)) is not None}
        source = fields.get("querySource")
        if source:
            about["querySource"] = source
        model = params.get("model")
        again = t.requests.get(ident)
        t.requests[ident] = _number(
            s.add(
                Inference(
                    inference_id=ident,
                    model=_string(model),
                    effort=_string(effort),
                    at=e.timestamp,
                    turn_id=t.turn,
                    native_id=ident,
                    supersedes=f"r{again}" if again is not None else None,
                    meta={"dev.asrd.request": about},
                )
            )
        )

    # ------------------------------------------------------------ user lines

    def _user(self, e: Entry, t: Thread, s: StreamOut) -> None:
        m = e.message or Said()
        blocks = _blocks(m.content)
        results = [b for b in blocks if b.type == "tool_result"]
        if t.again is not None:
            if results and all(b.tool_use_id in t.again and b.tool_use_id not in t.calls for b in blocks):
                self.out.skip("line-written-again")
                self._chain(e, t, None)
                return
            t.again = None
        tur = given(e.toolUseResult)
        edited = self._edited(results[0], t, tur) if len(results) == 1 else None
        decided = _decided(given(e.permissionDecision)) if given(e.permissionDecision)[:1] == b"{" else None
        origin = _kind(given(e.origin)) if given(e.origin)[:1] == b"{" else None
        if t.ending != LOST or not results:
            self._settle(t, s)
        f = self._about(e, t, s)
        record: str | None = None
        if len(results) == 1 and "copy_of" not in f and t.ending != LOST and not t.inherits:
            made = t.calls.get(results[0].tool_use_id or "")
            if (
                made is not None and made.copied and e.toolDenialKind != "interrupted"
            ):  # which a resume writes by itself
                f["copy_of"] = CopyOf(session_id=made.copied, native_id=e.uuid)
        for b in results:
            record = self._result(b, e, t, s, f, tur if len(results) == 1 else b"", edited, decided)
        others = [b for b in blocks if b.type != "tool_result"]
        if others or not results:
            f.pop("turn_id", None)
            record = self._spoken(e, others, t, s, f, origin, bool(results) and not t.inherits) or record
        t.inherits = None
        self._chain(e, t, record)
        if e.permissionMode and e.permissionMode != t.mode:
            t.mode = e.permissionMode
            s.add(Config(mode=e.permissionMode, at=e.timestamp, turn_id=t.turn))

    def _spoken(
        self,
        e: Entry,
        blocks: list[NativeBlock],
        t: Thread,
        s: StreamOut,
        f: dict[str, Any],
        origin: Kind | None,
        beside: bool,
    ) -> str | None:
        """Words on the user's side: a person's prompt, or one of the many things a harness puts there."""
        text = next((b.text for b in blocks if b.text is not None), "")
        author, said, trigger = _whose(e, text, t, origin, beside)
        ended = not t.open
        supersedes = None
        if said in ("prompt", "agent", "command") and t.queue:
            digest = _digest(text)
            for place, one in enumerate(t.queue):
                if one.digest == digest:
                    supersedes = f"r{one.record}"
                    if one.busy and ended and trigger == "prompt":  # a turn that never ended was killed: nobody waited
                        trigger = "queued"
                    del t.queue[place]
                    break
        if e.isMeta and text.startswith("Continue from where you left off"):
            # A resume found the last turn unfinished. What comes is most often a new prompt, else it goes on by itself.
            self._finish(t, s, "interrupted", None, copy=f.get("copy_of"), line=e.uuid) if t.open else None
            t.resumed = e.uuid
            for one in t.queue:
                one.busy = False
        elif trigger is not None:
            self._start(e, t, s, trigger, f)
        f["turn_id"] = t.turn if t.open or trigger is not None else None
        if text.startswith("<user-memory-input>"):
            kept = text.removeprefix("<user-memory-input>").removesuffix("</user-memory-input>")
            return s.add(MemoryWrite(content=[Text(text=kept)], **f))
        reminders: list[NativeBlock] = []
        if said == "prompt" and len(blocks) > 1:
            reminders = [b for b in blocks if b.text is not None and b.text.startswith("<system-reminder>")]
            blocks = [b for b in blocks if b not in reminders]
        for b in reminders:
            s.add(
                Message(
                    role="user",
                    author="harness",
                    origin="injected",
                    audience="model",
                    content=[self._content(b, t)],
                    **f,
                )
            )
        record = s.add(
            Message(
                role="user",
                author=author,
                origin=said,
                audience="model" if e.isMeta else None,
                message_id=e.uuid,
                content=[self._content(b, t) for b in blocks],
                supersedes=supersedes,
                **f,
            )
        )
        if text.startswith("<task-notification>"):
            self._ended(text, e, t, s, f)
        elif text.startswith("[Request interrupted by user"):
            self._interrupted(e, t, s, f)
            self._finish(t, s, "interrupted", e.timestamp, copy=f.get("copy_of"), line=e.uuid)
        elif e.isMeta and t.open and text.startswith(HALTED):
            self._finish(t, s, "interrupted", e.timestamp, copy=f.get("copy_of"), line=e.uuid)
        elif text.startswith("<local-command-std") and t.open and said == "command":
            self._finish(t, s, "completed", e.timestamp, copy=f.get("copy_of"), line=e.uuid)
        return record

    def _interrupted(self, e: Entry, t: Thread, s: StreamOut, f: dict[str, Any]) -> None:
        """Esc: the line names the response it broke off. Its calls were not refused, they ran; of a response that was
        not written down only its id is known.
        """
        broken = e.interruptedMessageId
        if broken is None:
            t.refused.clear()
            return
        if not t.refused and _digest(broken) not in t.responses:
            record = s.add(Inference(inference_id=broken, error=Error(code="interrupted"), **_plain(f)))
            t.responses[_digest(broken)], t.outputs[_digest(broken)] = _number(record), -1
        for one in t.refused:
            fields = _plain(f)
            s.add(
                Approval(
                    call_id=one.call,
                    phase="decided",
                    decision="cancelled",
                    by="human",
                    supersedes=f"r{one.approval}",
                    **_plain(fields, at=None),
                )
            )
            s.add(
                ToolResult(
                    call_id=one.call,
                    linkage="exact",
                    status="cancelled",
                    content=[Text(text=one.text)],
                    supersedes=f"r{one.result}",
                    **fields,
                )
            )
        t.refused.clear()

    # ------------------------------------------------------------ tool results

    def _edited(self, b: NativeBlock, t: Thread, tur: bytes) -> Edited | None:
        call = t.calls.get(b.tool_use_id or "")
        if tur[:1] != b"{" or b.is_error:
            return None
        if call is not None:
            return _edited(tur) if call.name in EDITS else None
        return None

    def _result(
        self,
        b: NativeBlock,
        e: Entry,
        t: Thread,
        s: StreamOut,
        f: dict[str, Any],
        tur: bytes,
        edited: Edited | None,
        decided: Decided | None,
    ) -> str:
        ident = b.tool_use_id or ""
        call = t.calls.pop(ident, None)
        name = call.name if call else ""
        content = self._result_content(b, t)
        text = next((c.text for c in content if isinstance(c, Text)), "")
        f["turn_id"] = t.turn
        told: dict[str, Any] | None = None
        if tur[:1] == b"{" and edited is None:
            told = _object(tur)
        status = self._status(b, e, t, text, told, decided)
        refused: Refused | None = None
        if decided is not None:
            t.decides = True
            self._approval(decided, e, ident, s, f)
        elif status == "denied":
            person = e.toolDenialKind == "user-rejected" or text.startswith(REFUSED)
            by = "human" if person else "policy"
            approval = s.add(Approval(call_id=ident, phase="decided", decision="deny", by=by, **_plain(f, at=None)))
            if person:
                refused = Refused(ident, -1, _number(approval), text)
        execution = None
        if name in SHELLS or text.startswith("Exit code "):
            execution = self._exec(call, b, t, text, told, status)
        if name == "WebSearch" and status == "completed":
            # A model searched: that request, and its figures, stand in no line. It is the call's, whatever file repeats that.
            about = {"dev.asrd.request": "search"}
            s.add(Inference(inference_id=f"{ident}/search", meta=about, **_plain(f)))
        meta = dict(f.get("meta") or {})
        if told and (rest := _rest(name, told, text)):
            meta["dev.asrd.result"] = rest
        if e.toolDenialKind:
            meta["dev.asrd.denial"] = e.toolDenialKind
        fields = {k: v for k, v in f.items() if k != "meta"}
        record = s.add(
            ToolResult(
                call_id=ident,
                linkage="exact" if call or not ident else "none",
                status=status,
                content=content,
                exec=execution,
                meta=meta or None,
                **fields,
            )
        )
        if refused is not None:
            refused.result = _number(record)
            t.refused.append(refused)
        if name in SHELLS and status == "completed" and told is not None and told.get("backgroundTaskId"):
            copy = f.get("copy_of")
            task = str(told["backgroundTaskId"])
            t.behind[ident] = Behind(_number(record), task, text, call.cwd if call else None, copy and copy.session_id)
            while len(t.behind) > QUEUE:
                del t.behind[next(iter(t.behind))]
        elif t.behind and told is not None and isinstance(told.get("task"), dict):  # TaskOutput
            task, code = told["task"].get("task_id"), told["task"].get("exitCode")
            ran = next((c for c, one in t.behind.items() if one.task == task), None)
            if ran is not None and type(code) is int:
                self._exited(ran, code, e, t, s, f)
        if status == "completed":
            if edited is not None:
                self._change(edited, ident, t, s, f)
            elif call is not None and call.input is not None:
                try:
                    self._from_input(call, ident, text, told, t, s, f)
                except msgspec.ValidationError:
                    self.out.count("call-input-unexpected")
        if status in ("completed", "failed") and call is not None and call.command is not None:
            self._vcs(call.command, ident, text, s, f, failed=status == "failed")
        if name in ("Task", "Agent", "Workflow", "Skill", "") and status in ("completed", "failed"):
            agent = told.get("agentId") if told is not None else None
            kind, field = "native-field", "toolUseResult.agentId"
            if not agent and name not in ("", "Skill"):
                search = _AGENT_ID if text.startswith("Async agent launched") else _HANDED_BACK
                if found := search.search(text):
                    agent, kind, field = found[1], "native-id-in-output", "tool_result.content"
            if isinstance(agent, str):
                self._spawned(agent, ident, kind, field, t, s, f)
        return record

    def _ended(self, text: str, e: Entry, t: Thread, s: StreamOut, f: dict[str, Any]) -> None:
        """A note that a background command ended completes the result of its call."""
        call, code = _TOOL_USE_ID.search(text), _ENDED.search(text)
        if call is not None and code is not None:
            self._exited(call[1], int(code[1]), e, t, s, f)

    def _exited(self, call: str, code: int, e: Entry, t: Thread, s: StreamOut, f: dict[str, Any]) -> None:
        """The command of that call, which went on in the background, ended with that code."""
        if (one := t.behind.pop(call, None)) is None:
            return
        fields = {k: v for k, v in f.items() if k in ("at", "native_id", "turn_id", "copy_of")}
        if one.copied is not None:
            fields.setdefault("copy_of", CopyOf(session_id=one.copied, native_id=e.uuid))
        place = self._place(one.place, t) if one.place is not None else None
        s.add(
            ToolResult(
                call_id=call,
                linkage="exact",
                status="failed" if code else "completed",
                content=[Text(text=one.text)],
                exec=Exec(exit_code=code, cwd=place),
                supersedes=f"r{one.result}",
                **fields,
            )
        )

    def _result_content(self, b: NativeBlock, t: Thread) -> list[Block]:
        raw = given(b.content)
        if raw[:1] == b'"':
            return [Text(text=_words_of(raw))]
        if raw[:1] == b"[":
            try:
                return [self._content(one, t) for one in _several(raw)]
            except msgspec.ValidationError:
                pass  # kept as it stands, below
        return [Other(meta={BLOCK: {"type": "tool_result", "content": _any(raw)}})] if raw else []

    def _status(
        self, b: NativeBlock, e: Entry, t: Thread, text: str, told: dict[str, Any] | None, decided: Decided | None
    ) -> str:
        if not b.is_error:
            if told is not None and told.get("interrupted") is True:
                return "cancelled"
            return "completed"
        if decided is not None and decided.decision == "reject":
            return "denied"
        kind = e.toolDenialKind
        if kind == "interrupted" or text.startswith("[Tool call interrupted: the session ended"):
            if t.open:
                t.ending = LOST
                for one in t.queue:
                    one.busy = False
            return "unknown"
        if kind == "user-rejected" or text.startswith(REFUSED):
            # At the terminal neither has a decision, and the line that follows tells (`_interrupted`).
            if e.toolDenialBeforeRun or e.entrypoint == "cli":
                return "denied"
            return "cancelled" if kind and (t.decides or _since(t.version, (2, 1, 300))) else "denied"
        if text.startswith(("[Request interrupted by user", "<tool_use_error>Sibling tool call errored",
                            "<tool_use_error>Cancelled")):  # fmt: skip
            return "cancelled"
        if kind or text.startswith(_BLOCKED):
            return "denied"
        if " was blocked. For security, Claude Code may only " in text[:4096]:
            return "denied"
        return "failed"

    def _approval(self, d: Decided, e: Entry, ident: str, s: StreamOut, f: dict[str, Any]) -> None:
        source = d.source or ""
        always = source == "user_permanent" or d.grantScope in ("session", "always", "permanent", "project")
        decision = None
        if d.decision == "accept":
            decision = "allow_always" if always else "allow"
        elif d.decision == "reject":
            decision = "deny"
        elif d.decision:
            decision = d.decision
        by = "human" if source.startswith("user") else "policy" if source else None
        policy = d.reasonCode if d.reasonCode and d.reasonCode != "unknown" else d.reasonType
        fields = _plain(f, at=None)
        meta = {"dev.asrd.decision": _any(given(e.permissionDecision))}
        s.add(Approval(call_id=ident, phase="decided", decision=decision, by=by, policy=policy, meta=meta, **fields))

    def _exec(
        self, call: Call | None, b: NativeBlock, t: Thread, text: str, told: dict[str, Any] | None, status: str
    ) -> Exec | None:
        """How a command ended, as far as its text and `toolUseResult` say."""
        found = Exec()
        if status == "failed" and text.startswith("Exit code "):
            digits = text[10 : text.find("\n")] if "\n" in text else text[10:]
            if digits.strip().lstrip("-").isdigit():
                found.exit_code = int(digits)
        if b.is_error and "ommand timed out after" in text[:400]:
            found.timed_out = True
        if told is not None:
            stdout, stderr = _string(told.get("stdout")), _string(told.get("stderr"))
            if stdout and stdout != text and stdout.strip("\n") not in text:
                found.stdout = stdout
            if stderr and stderr != text:
                found.stderr = stderr
        quiet = told is None or (
            not told.get("returnCodeInterpretation") and not told.get("backgroundTaskId") and "stdout" in told
        )
        if (
            status == "completed"
            and quiet
            and call is not None
            and not call.background
            and not text.startswith(("Command running in background", "Command was manually backgrounded"))
            and not (told is None and call.soft)
            and _since(t.version, (2, 0, 0))
        ):
            found.exit_code = 0
        elif status == "completed" and told is not None and told.get("returnCodeInterpretation") in EXPLAINED:
            found.exit_code = 1
        if call is not None and call.cwd is not None and status in ("completed", "failed"):
            found.cwd = self._place(call.cwd, t)
        return found if found != Exec() else None

    def _change(self, r: Edited, ident: str, t: Thread, s: StreamOut, f: dict[str, Any]) -> None:
        """What an edit made of a file: both contents where the line holds the one before."""
        path = r.filePath or r.notebook_path
        if not path:
            return
        before: str | None = None
        told = True
        if isinstance(r.originalFile, str):
            before = r.originalFile
        elif r.originalFileContents is not None:
            before = r.originalFileContents
        elif r.original_file is not None:
            before = r.original_file
        else:
            told = r.originalFile is None
        after = _after(r, before)
        created = (
            r.type == "create"
            or (before is None and told and r.oldString == "")
            or (r.oldString == "" and before == "" and not r.structuredPatch)
        )
        diff = _diff(r, before, after, path)
        meta = {"dev.asrd.userModified": True} if r.userModified else None
        s.add(
            FileChange(
                call_id=ident,
                path=self._place(path, t),
                change="create" if created else "modify",
                before=content_of(before) if before is not None and not created else None,
                after=content_of(after) if after is not None else None,
                diff=diff,
                applied=True,
                evidence="reported",
                meta=meta,
                **_plain(f),
            )
        )

    def _from_input(
        self, call: Call, ident: str, text: str, told: dict[str, Any] | None, t: Thread, s: StreamOut, f: dict[str, Any]
    ) -> None:
        """What follows from a call's own input once it succeeded: a plan, or a file's new content."""
        raw = call.input or b"{}"
        if call.name in EDITS:
            asked = _asked(raw)
            path = asked.file_path or asked.notebook_path
            if path:
                written = asked.content if call.name == "Write" else None
                created = call.name == "Write" and text.startswith("File created successfully")
                s.add(
                    FileChange(
                        call_id=ident,
                        path=self._place(path, t),
                        change="create" if created else "modify",
                        after=content_of(written) if written is not None else None,
                        applied=True,
                        evidence="derived",
                        **_plain(f),
                    )
                )
            return
        items: list[PlanItem] | None = None
        if call.name == "TodoWrite":
            todos = msgspec.json.decode(raw, type=Todos).todos
            if told is not None and isinstance(told.get("newTodos"), list):
                todos = msgspec.convert(told["newTodos"], list[Todo])
            items = [PlanItem(text=one.content, status=one.status) for one in todos or []]
        else:
            change = msgspec.json.decode(raw, type=TaskChange)
            if call.name == "TaskCreate":
                number = fields_of((told or {}).get("task")).get("id")
                if number is None and (found := re.search(r"Task #(\w+) created", text)):
                    number = found[1]
                if number is not None:
                    t.tasks[str(number)] = (change.subject or "", "pending")
            elif (ident_ := str(change.taskId)) in t.tasks:
                old = t.tasks[ident_]
                if change.status == "deleted":
                    del t.tasks[ident_]
                else:
                    t.tasks[ident_] = (change.subject or old[0], change.status or old[1])
            else:
                return
            items = [PlanItem(text=a, status=b) for a, b in t.tasks.values()]
        s.add(Plan(items=items, call_id=ident, **_plain(f)))

    def _vcs(self, command: str, ident: str, text: str, s: StreamOut, f: dict[str, Any], *, failed: bool) -> None:
        """Commits and branches that a command's output names; of one that failed, those that git itself says it made."""
        fields = _plain(f)
        named = _SHORT.findall(text) if "commit" in command else []
        full = commits(command, text)
        if failed:
            full = [one for one in full if any(one.startswith(short) for _, short in named)]
        for commit in full:
            s.add(VcsAction(action="commit", commit=commit, evidence="observed", root="r1", call_id=ident, **fields))
        for branch, short in named:
            if not any(one.startswith(short) for one in full):
                meta = {"dev.asrd.abbreviated": short}
                s.add(
                    VcsAction(action="commit", branch=branch, evidence="observed", call_id=ident, meta=meta, **fields)
                )
        for found in _BRANCHED.finditer(text):
            action = "branch" if "a new" in found[0] else "checkout"
            s.add(VcsAction(action=action, branch=found[1], evidence="observed", call_id=ident, **fields))

    def _spawned(
        self, agent: str, ident: str | None, kind: str, field: str, t: Thread, s: StreamOut, f: dict[str, Any]
    ) -> None:
        if agent in t.agents:
            return
        t.agents.add(agent)
        s.add(
            Link(
                relation="spawned",
                target=LinkTarget(agent=self.harness, session_id=agent, namespace=t.namespace or t.session),
                call_id=ident,
                evidence=Evidence(kind=kind, field=field, value=agent),
                **_plain(f),
            )
        )

    def _place(self, path: str, t: Thread) -> Any:
        return within(path, [WorkspaceRoot(id="r1", path=t.root)] if t.root else None)

    # ------------------------------------------------------------ content

    def _content(self, b: NativeBlock, t: Thread) -> Block:
        match b.type:
            case "text":
                return Text(text=b.text or "")
            case "thinking":
                return Thinking(text=b.thinking) if b.thinking else Thinking(redacted=True)
            case "redacted_thinking":
                return Thinking(redacted=True)
            case "image" if given(b.source)[:1] == b"{":
                return self._image(_object(given(b.source)), t)
            case _:
                fields = (
                    {k: v for k, v in msgspec.to_builtins(b, str_keys=True).items() if v is not None} if False else {}
                )
                fields["type"] = b.type
                for field in ("text", "id", "name", "tool_use_id"):
                    if (value := getattr(b, field)) is not None:
                        fields[field] = value
                for field in ("source", "data", "content"):
                    if raw := given(getattr(b, field)):
                        fields[field] = _any(raw)
                return Other(meta={BLOCK: fields})

    def _image(self, source: dict[str, Any], t: Thread) -> Block:
        """A picture with its data, the first time it stands in the session; then by digest and size."""
        media, data = source.get("media_type"), source.get("data")
        media = media if isinstance(media, str) else None
        if not isinstance(data, str):
            return Other(meta={BLOCK: {"type": "image", "source": source}})
        try:
            decoded = base64.b64decode(data)
        except (binascii.Error, ValueError):
            return Image(media_type=media, data=data)
        digest = _digest(data)
        again = digest in t.seen
        t.seen.add(digest)
        return Image(
            media_type=media,
            data=None if again else data,
            sha256=hashlib.sha256(decoded).hexdigest(),
            bytes=len(decoded),
        )

    # ------------------------------------------------------------ context

    def _attachment(self, e: Entry, t: Thread, s: StreamOut) -> None:
        raw = given(e.attachment) or b"{}"
        a = _object(raw)
        kind = a.get("type") if isinstance(a.get("type"), str) else "unknown"
        self._settle(t, s)
        f = self._about(e, t, s)
        f["turn_id"] = t.turn
        if kind == "queued_command":
            self._chain(e, t, self._queued_command(e, a, t, s, f))
            return
        if kind == "prompt_snapshot":
            self._chain(e, t, self._snapshot(raw, t, s, f))
            return
        if kind == "hook_stopped_continuation" and t.open:
            t.ending = LOST  # `continue: false` after a tool: results of the calls beside it may still come
        text = "\n".join(_words(r.content) for r in e.rendered) if e.rendered else _attached_words(a)
        hook = isinstance(kind, str) and kind.startswith("hook")
        if not text:
            fields = f
            record = s.add(Native(native_type=f"attachment/{kind}", data=a, **fields))
            self._chain(e, t, record)
            if kind == "max_turns_reached" and t.open:  # `--max-turns`
                error = Error(code="max_turns_reached")
                self._finish(t, s, "failed", e.timestamp, error, copy=f.get("copy_of"), line=e.uuid)
            return
        if len(text) > LONG:
            digest = _digest(text)
            if digest in t.seen:
                self.out.skip(f"context-repeated:{kind}")
                self._chain(e, t, None)
                return
            t.seen.add(digest)
        meta = {**f.pop("meta", {}), "dev.asrd.attachment": {"type": kind, **_pruned(a, text)}}
        content: list[Block] = [Text(text=text)]
        if kind == "file" and isinstance(a.get("filename"), str):
            content.insert(0, File(path=a["filename"]))
        record = s.add(
            Message(
                role=e.renderedRole if e.renderedRole in ("user", "system") else "user",
                author="harness",
                origin="hook" if hook else "injected",
                audience="model",
                content=content,
                meta=meta,
                **f,
            )
        )
        self._chain(e, t, record)

    def _queued_command(self, e: Entry, a: dict[str, Any], t: Thread, s: StreamOut, f: dict[str, Any]) -> str:
        """A prompt that was typed while the agent worked, or a note of a task that ended: it joins the turn."""
        prompt = a.get("prompt")
        blocks: list[NativeBlock] = []
        if isinstance(prompt, str):
            blocks = [NativeBlock(type="text", text=prompt)]
        elif isinstance(prompt, list):
            blocks = [_block(msgspec.json.encode(one)) for one in cast("list[Any]", prompt)]
        text = next((b.text for b in blocks if b.text is not None), "")
        note = text.startswith("<task-notification>")
        other = fields_of(a.get("origin")).get("kind") in AGENTS
        typed = a.get("commandMode") in ("prompt", None) and not note and not other
        supersedes = None
        for place, one in enumerate(t.queue):
            if one.digest == _digest(text):
                supersedes = f"r{one.record}"
                del t.queue[place]
                break
        record = s.add(
            Message(
                role="user",
                author="human" if typed else "agent" if other else "harness",
                origin="prompt" if typed else "agent" if note or other else "command",
                message_id=e.uuid,
                content=[self._content(b, t) for b in blocks],
                supersedes=supersedes,
                **f,
            )
        )
        if note:
            self._ended(text, e, t, s, f)
        return record

    def _snapshot(self, raw: bytes, t: Thread, s: StreamOut, f: dict[str, Any]) -> str | None:
        """The system prompt and the tools a request had: each once, as long as it stays the same."""
        parts = _raws(raw)
        record: str | None = None
        prompt = given(parts.get("systemPrompt", ABSENT))
        if prompt not in (b"", b"[]") and (digest := xxhash.xxh3_64_intdigest(prompt)) not in t.seen:
            t.seen.add(digest)
            said = _any(prompt)
            texts = [said] if isinstance(said, str) else [_words([x]) for x in _each(said)]
            record = s.add(
                Message(
                    role="system",
                    author="harness",
                    origin="injected",
                    audience="model",
                    content=[Text(text=x) for x in texts],
                    **f,
                )
            )
        tools = given(parts.get("tools", ABSENT))
        if tools not in (b"", b"[]") and (digest := xxhash.xxh3_64_intdigest(tools)) not in t.seen:
            t.seen.add(digest)
            names = [name for one in _each(_any(tools)) if (name := _string(fields_of(one).get("name"))) is not None]
            fields = _plain(f)
            config = s.add(Config(tools=names, meta={"dev.asrd.tools": Raw(tools)}, **fields))
            record = record or config
        if record is None:
            self.out.skip("context-repeated:prompt_snapshot")
        return record

    # ------------------------------------------------------------ system, progress, queue

    def _system(self, e: Entry, t: Thread, s: StreamOut, data: bytes) -> None:
        kind = e.subtype or "unknown"
        if kind in ("compact_boundary", "microcompact_boundary"):
            self._compacted(e, kind, t, s, data)
            return
        if kind in ("local_command", "informational") and given(e.content)[:1] == b'"':
            text = _words_of(given(e.content))
            self._settle(t, s)
            f = self._about(e, t, s)
            command = kind == "local_command"
            record = s.add(
                Message(
                    role="system" if not text.startswith("<command-name>") else "user",
                    author="human" if text.startswith("<command-name>") else "harness",
                    origin="command" if command else "injected",
                    audience="user",
                    message_id=e.uuid,
                    content=[Text(text=text)],
                    turn_id=t.turn if t.open else None,
                    **f,
                )
            )
            self._chain(e, t, record)
            if t.open and text.startswith("<local-command-std") and e.parentUuid == t.turn:
                # What a command printed follows the command itself: it asked no model, and that was all of the turn.
                self._finish(t, s, "completed", e.timestamp, copy=f.get("copy_of"), line=e.uuid)
            return
        self._settle(t, s)
        self._native(e, t, s, f"system/{kind}", data)

    def _compacted(self, e: Entry, kind: str, t: Thread, s: StreamOut, data: bytes) -> None:
        fields = _object(data)
        micro = kind == "microcompact_boundary"
        about = fields_of(fields.get("microcompactMetadata" if micro else "compactMetadata"))
        self._settle(t, s)
        f = self._about(e, t, s)
        before, after = _whole(about.get("preTokens")), _whole(about.get("postTokens"))
        saved = _whole(about.get("tokensSaved"))
        if after is None and before is not None and saved is not None:
            after = before - saved
        kept = fields_of(about.get("preservedSegment"))
        head, anchor = _string(kept.get("headUuid")), _string(kept.get("anchorUuid"))
        number = t.lines.get(_digest(head), -1) if head is not None else -1
        meta = {
            **f.pop("meta", {}),
            "dev.asrd.compaction": {"kind": "results cleared" if micro else "summary", **about},
        }
        trigger = about.get("trigger")
        # A fork begins with its last compaction and leaves out what stood before it: another session asked for the summary.
        elsewhere = e.logicalParentUuid is not None and _digest(e.logicalParentUuid) not in t.lines
        if not micro and not elsewhere:  # a model wrote the summary; that request, and its figures, stand in no line
            s.add(
                Inference(
                    inference_id=f"{e.uuid}/compaction",
                    id_source="derived",
                    turn_id=t.turn,
                    meta={**f.get("meta", {}), "dev.asrd.request": "compaction"},
                    **_plain(f),
                )
            )
        record = s.add(
            Compaction(
                trigger=_string(trigger),
                tokens_before=before,
                tokens_after=after,
                message_id=anchor,
                kept_from=f"r{number}" if number > 0 else None,
                turn_id=t.turn,
                meta=meta,
                **f,
            )
        )
        self._chain(e, t, record)

    def _progress(self, e: Entry, t: Thread, s: StreamOut, data: bytes) -> None:
        """News of a running call. A sub-agent's message in it is a copy of what its own file holds."""
        fields = _object(data)
        news = fields_of(fields.get("data"))
        kind = news.get("type")
        if kind in ("bash_progress", "mcp_progress"):
            self.out.skip(f"said-elsewhere:{kind}")
            self._chain(e, t, None)
            return
        agent = news.get("agentId")
        nested = fields_of(news.get("message"))
        if kind != "agent_progress" or not isinstance(agent, str) or not nested:
            self._native(e, t, s, f"progress/{kind}", data)
            return
        f = self._about(e, t, s)
        f["turn_id"] = t.turn
        call = fields.get("parentToolUseID")
        self._spawned(agent, call if isinstance(call, str) else None, "native-field", "data.agentId", t, s, f)
        f["copy_of"] = CopyOf(session_id=agent, native_id=_string(nested.get("uuid")))
        inner = fields_of(nested.get("message"))
        name = _string(inner.get("id"))
        used: NativeUsage | None = None
        if isinstance(inner.get("usage"), dict):
            try:
                used = msgspec.convert(inner["usage"], NativeUsage)
            except msgspec.ValidationError:
                self.out.count("progress-usage-unexpected")
        if name is not None and used is not None:
            digest = _digest(name)
            output = min(used.output_tokens, MOST) if used.output_tokens is not None else -1
            before = t.responses.get(digest)
            if before is None or output > t.outputs[digest]:
                t.responses[digest] = _number(
                    s.add(
                        Inference(
                            inference_id=name,
                            model=_string(inner.get("model")),
                            usage=_counts(used),
                            supersedes=f"r{before}" if before is not None else None,
                            **_plain(f),
                        )
                    )
                )
                t.outputs[digest] = output
        record = s.add(Native(native_type="progress/agent_progress", data=fields, **f))
        self._chain(e, t, record)

    def _queue(self, e: Entry, t: Thread, s: StreamOut, data: bytes) -> None:
        """A prompt enters or leaves the queue. Its words become a message when it is sent, which supersedes this."""
        fields = _object(data)
        operation, content = fields.get("operation"), fields.get("content")
        self._settle(t, s)
        if content in (None, ""):
            if operation == "popAll":
                t.queue.clear()
                s.add(
                    Native(
                        native_type="queue-operation", data=fields, at=e.timestamp, turn_id=t.turn if t.open else None
                    )
                )
                return
            self.out.skip("queue-without-words")
            return
        record = s.add(
            Native(native_type="queue-operation", data=fields, at=e.timestamp, turn_id=t.turn if t.open else None)
        )
        if operation == "enqueue":
            words = content if isinstance(content, str) else _words(content)
            t.queue.append(Queued(_digest(words), _number(record), t.open))
            del t.queue[:-QUEUE]

    def _mode(self, e: Entry, t: Thread, s: StreamOut, data: bytes) -> None:
        fields = _object(data)
        self._settle(t, s)
        if e.type == "permission-mode":
            mode = e.permissionMode
            if mode and mode != t.mode:
                t.mode = mode
                s.add(Config(mode=mode, at=e.timestamp, turn_id=t.turn if t.open else None))
                return
        elif (mode := fields.get("mode")) and mode != t.uimode:
            t.uimode = str(mode)
            s.add(Native(native_type="mode", data=fields, at=e.timestamp))
            return
        self.out.skip(f"unchanged:{e.type}")

    def _title(self, e: Entry, t: Thread, s: StreamOut, data: bytes) -> None:
        """A title; a `summary` is one only of a conversation that is in this file."""
        fields = _object(data)
        self._settle(t, s)
        title = fields.get("customTitle") or fields.get("aiTitle") or fields.get("summary")
        leaf = fields.get("leafUuid")
        if not isinstance(title, str) or (
            e.type == "summary" and (not isinstance(leaf, str) or _digest(leaf) not in t.lines)
        ):
            s.add(Native(native_type=e.type, data=fields, at=e.timestamp))
            return
        if title == t.title:
            self.out.skip(f"unchanged:{e.type}")
            return
        t.title = title
        s.add(Config(title=title, at=e.timestamp, meta={"dev.asrd.title": e.type}))

    def _cost(self, s: StreamOut, data: bytes) -> None:
        """What the harness says the session and its sub-agents used, since it was started or forked."""
        fields = _object(data)
        models = fields.get("modelUsage")
        each = [fields_of(m) for m in fields_of(models).values()]

        def total(field: str) -> int | None:
            found = [n for m in each if (n := _whole(m.get(field))) is not None]
            return sum(found) if found else None

        raw = _raws(data)
        meta: dict[str, Any] = {"dev.asrd.byModel": models}
        if "totalCostUSD" in raw:
            meta["dev.asrd.cost"] = {"amount": bytes(raw["totalCostUSD"]).decode(), "currency": "USD"}
        rest = {k: v for k, v in fields.items() if k not in ("type", "sessionId", "modelUsage", "totalCostUSD")}
        meta["dev.asrd.state"] = rest
        s.add(
            UsageTotal(
                scope="tree",
                cumulative=True,
                usage=Usage(
                    input=total("inputTokens"),
                    output=total("outputTokens"),
                    cache_read=total("cacheReadInputTokens"),
                    cache_write=total("cacheCreationInputTokens"),
                    cache_write_5m=total("cacheCreationEphemeral5mInputTokens"),
                    cache_write_1h=total("cacheCreationEphemeral1hInputTokens"),
                    reasoning=total("thinkingTokens"),
                ),
                meta=meta,
            )
        )

    # ------------------------------------------------------------ sidecars

    def _sidecar(self, source: Source, item: Row) -> None:
        """What stands beside a file: said in the header when it comes first, else in records of its own."""
        told = msgspec.json.decode(item.data, type=Sidecar)
        fields = _object(item.data)
        state = self.state
        title = told.customTitle if source.path.endswith("custom-title.json") else None
        thread = state.threads.get("")
        stream = self._opened(thread) if thread is not None else None
        if thread is None or stream is None:
            if title:
                state.title = title
            else:
                state.sidecar = item.data
            self.out.skip("said-in-the-header")
            return
        if source.path.endswith("custom-title.json"):
            if title and title != thread.title:
                thread.title = title
                stream.add(Config(title=title, meta={"dev.asrd.title": "custom-title.json"}))
            else:
                self.out.skip("unchanged:custom-title")
            return
        if state.sidecar == item.data:
            self.out.skip("said-in-the-header")
            return
        state.sidecar = item.data
        stream.add(Native(native_type="agent-meta", data=fields))
        if told.toolUseId and told.toolUseId != thread.sidecar:
            thread.sidecar = told.toolUseId
            parent = told.parentAgentId or thread.namespace
            stream.add(
                Link(
                    relation="spawned_by",
                    target=LinkTarget(
                        agent=self.harness,
                        session_id=parent,
                        namespace=thread.namespace if told.parentAgentId else None,
                    ),
                    call_id=told.toolUseId,
                    evidence=Evidence(kind="native-field", field="toolUseId", value=told.toolUseId),
                )
            )


# ---------------------------------------------------------------- reading native values


def _each(value: Any) -> list[Any]:
    """The value where it is a list; else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


_NO_TOTAL = (2, 1, 272)
"""The newest version seen that writes no total of a session (the oldest seen that does is 2.1.318)."""


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version like 2.1.104, as many as stand at its start."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(n) for n in found.group().split(".")) if found else ()


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _made_up(blocks: list[NativeBlock]) -> bool:
    """Whether blocks are what the harness itself puts in the model's place."""
    return all(b.text in ("No response requested.", "(no content)", "") for b in blocks)


def _number(record: str) -> int:
    return int(record[1:]) if record != "h" else 0


def _plain(fields: dict[str, Any], **over: Any) -> dict[str, Any]:
    """The common fields without what belongs to the line's first record only."""
    return {k: v for k, v in {**fields, **over}.items() if k not in ("meta", "parent")}


def _blocks(content: str | list[NativeBlock] | None) -> list[NativeBlock]:
    if isinstance(content, str):
        return [NativeBlock(type="text", text=content)]
    return content or []


def _words(content: Any) -> str:
    """The words of a text, or of a list of blocks."""
    if isinstance(content, str):
        return content
    found: list[str] = []
    for one in _each(content):
        value = _string(one) or _string(fields_of(one).get("text"))
        if value is not None:
            found.append(value)
    return "\n".join(found)


def _attached_words(a: dict[str, Any]) -> str:
    """The words of an attachment that does not say how it was rendered (before 2.1.3xx)."""
    for field in ("text", "content", "stdout", "addedLines", "addedBlocks", "snippet"):
        value = a.get(field)
        if isinstance(value, str) and value:
            return value
        inner = fields_of(value)
        words = _string(fields_of(inner.get("file")).get("content")) or _string(inner.get("content"))
        if words is not None:
            return words
        if (lines := _each(value)) and all(isinstance(x, str) for x in lines):
            return "\n".join(lines)
    return ""


def _pruned(value: dict[str, Any], text: str) -> dict[str, Any]:
    """The facts of an object that the text beside it does not say already."""
    kept: dict[str, Any] = {}
    for name, one in value.items():
        if name == "type" or one is None or one == "" or one == [] or one == {}:
            continue
        if isinstance(one, str) and one in text:
            continue
        if isinstance(one, list) and all(isinstance(x, str) and x in text for x in cast("list[Any]", one)):
            continue
        if isinstance(one, dict):
            one = _pruned(cast("dict[str, Any]", one), text)
            if not one:
                continue
        kept[name] = one
    return kept


_RESTATED = {
    "Task": ("content", "prompt", "usage"),
    "Agent": ("content", "prompt", "usage"),
    "TodoWrite": ("oldTodos", "newTodos"),
}
_SHELL_FACTS = ("stdout", "stderr", "interrupted", "isImage", "noOutputExpected", "sandbox")


def _rest(name: str, told: dict[str, Any], text: str) -> dict[str, Any]:
    """What `toolUseResult` says beyond the result's text, its exec and its file change."""
    if name in SHELLS:
        return {k: v for k, v in told.items() if k not in _SHELL_FACTS and v is not None}
    if name == "Read" and isinstance(told.get("file"), dict):
        file = cast("dict[str, Any]", told["file"])
        return {"type": told.get("type"), "file": {k: v for k, v in file.items() if k not in ("content", "base64")}}
    left = _RESTATED.get(name, ())
    return _pruned({k: v for k, v in told.items() if k not in left}, text)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _counts(u: NativeUsage) -> Usage:
    """Tokens as this project counts them: the harness's own split is the same."""
    c = u.cache_creation
    return Usage(
        input=u.input_tokens,
        output=u.output_tokens,
        cache_read=u.cache_read_input_tokens,
        cache_write=u.cache_creation_input_tokens,
        cache_write_5m=c.ephemeral_5m_input_tokens if c else None,
        cache_write_1h=c.ephemeral_1h_input_tokens if c else None,
        reasoning=u.output_tokens_details.thinking_tokens if u.output_tokens_details else None,
    )


def _since(version: str | None, wanted: tuple[int, ...]) -> bool:
    """Whether a version is at least that one; an unknown one is not."""
    if not version:
        return False
    parts = tuple(int(p) for p in version.split("-")[0].split(".") if p.isdigit())
    return parts >= wanted


def _whose(e: Entry, text: str, t: Thread, origin: Kind | None, beside: bool) -> tuple[str, str, str | None]:
    """Author and origin of words on the user's side, and the trigger of the turn they start (None = they start none)."""
    if e.isCompactSummary:
        return "harness", "summary", None
    if text.startswith("[Request interrupted by user"):
        return "harness", "injected", None
    if text.startswith("<task-notification>"):
        return "harness", "agent", "agent"
    kind = (origin.kind or "") if origin is not None else ""
    if e.isMeta:
        if text.startswith("Stop hook feedback"):
            return "harness", "hook", "hook"
        if kind in AGENTS:
            return "agent", "agent", None if t.open else "agent"
        if t.agent and t.turn is None and e.parentUuid is None and not t.internal and not text.startswith("<"):
            return "harness", "agent", "agent"  # a skill that runs as a sub-agent: its text is what it was asked
        return "harness", "injected", None
    if text.startswith(("<command-name>", "<command-message>", "<bash-input>")):
        return "human", "command", "command"
    if text.startswith(("<local-command-std", "<bash-stdout>", "<bash-stderr>")):
        return "harness", "command", None
    if text.startswith(("<local-command-caveat>", "Caveat: The messages below were generated by the user while")):
        return "harness", "injected", None
    if e.isVisibleInTranscriptOnly or beside:
        return "harness", "injected", None
    if t.agent:
        return "agent", "agent", "agent"
    if text.startswith("<teammate-message"):
        return "agent", "agent", "agent"
    turn = e.turnOrigin or ""
    if "cron" in turn or "schedul" in turn or "cron" in kind or "schedul" in kind:
        return "harness", "injected", "schedule"
    if e.promptSource == "system" or kind not in ("", "human"):
        if "hook" in kind:
            return "harness", "hook", "hook"
        return "agent" if kind in AGENTS else "harness", "agent", "agent"
    if text.startswith("<system-reminder>") and text.rstrip().endswith("</system-reminder>"):
        return "harness", "injected", None
    return "human", "prompt", "queued" if e.promptSource == "queued" else "prompt"


def _lines(text: str) -> int:
    return text.count("\n") + (0 if text.endswith("\n") or not text else 1)


def _after(r: Edited, before: str | None) -> str | None:
    """The content after an edit, where it is certain: written whole, or replaced in a known one as the patch says."""
    if r.updated_file is not None:
        return r.updated_file
    if r.content is not None and r.oldString is None and r.edits is None and r.notebook_path is None:
        return r.content
    if r.userModified:
        return patched(before, _unified(r.structuredPatch)) if before is not None and r.structuredPatch else None
    edits = r.edits
    if edits is None and r.oldString is not None and r.newString is not None:
        edits = [Replacement(r.oldString, r.newString, r.replaceAll)]
    if not edits:
        return None
    if before is None:
        return edits[0].new_string if len(edits) == 1 and edits[0].old_string == "" else None
    after = before
    for one in edits:
        old = one.old_string
        if old == "":
            if after:
                return None
            after = one.new_string
            continue
        if one.new_string == "" and not old.endswith("\n") and old + "\n" in after:
            old += "\n"  # the harness takes the line's end away with its last words
        if old not in after:
            return None
        after = after.replace(old, one.new_string) if one.replace_all else after.replace(old, one.new_string, 1)
    if r.structuredPatch and sum(p.newLines - p.oldLines for p in r.structuredPatch) != _lines(after) - _lines(before):
        return None
    return after


def _unified(patch: list[Patch]) -> str:
    out: list[str] = []
    for p in patch:
        out.append(f"@@ -{p.oldStart},{p.oldLines} +{p.newStart},{p.newLines} @@")
        out += p.lines
    return "\n".join(out) + "\n"


def _diff(r: Edited, before: str | None, after: str | None, path: str) -> str | None:
    """The harness's patch as a unified diff; made anew where it was made for show (tabs) and does not fit the contents."""
    if not r.structuredPatch:
        return None
    hunks = _unified(r.structuredPatch)
    if before is not None and after is not None and patched(before, hunks.removesuffix("\n")) != after:
        hunks = _hunk(before, after)
    return f"--- {path}\n+++ {path}\n{hunks}"


def _with_ends(text: str) -> list[str]:
    """Lines with the newline that ends each; the last may have none."""
    *lines, rest = text.split("\n")
    return [x + "\n" for x in lines] + ([rest] if rest else [])


def _hunk(before: str, after: str) -> str:
    """One hunk from the first to the last line that differs, with three lines around it."""
    old, new = _with_ends(before), _with_ends(after)
    top = 0
    while top < min(len(old), len(new)) and old[top] == new[top]:
        top += 1
    end = 0
    while end < min(len(old), len(new)) - top and old[-1 - end] == new[-1 - end]:
        end += 1
    start, tail = max(top - 3, 0), min(end, 3)
    gone, come = old[top : len(old) - end], new[top : len(new) - end]
    close = old[len(old) - end : len(old) - end + tail]
    lines = [(" ", x) for x in old[start:top]]
    lines += [("-", x) for x in gone] + [("+", x) for x in come] + [(" ", x) for x in close]
    text = "".join(mark + (x if x.endswith("\n") else x + "\n\\ No newline at end of file\n") for mark, x in lines)
    kept = top - start + tail
    return f"@@ -{start + 1},{len(gone) + kept} +{start + 1},{len(come) + kept} @@\n{text}"


RECORDER = ClaudeCodeRecorder
