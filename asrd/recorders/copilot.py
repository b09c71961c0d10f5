"""GitHub Copilot CLI (npm `@github/copilot`): a folder a session, one log of events in it.

Where: `~/.copilot/session-state/<session id>/events.jsonl` (appended to) and beside it
`rewind-file-snapshots/index.json` (rewritten in place), moved by COPILOT_HOME (before: XDG_STATE_HOME below `.copilot`).
Seen: 1.0.92, 1.0.102, runs of 1.0.59; logs before 1.0.102 (1.0.59, 1.0.60, 1.0.91, 1.0.92) have no `session.usage_record`.
`session-store.db` is about all sessions: of it the figures of requests, titles and references are read. Its turns, files
and checkpoints repeat the log (a checkpoint is a compaction's summary), and so does `search_index`; they are not read.

    {"type":"session.start","data":{"sessionId":"2342…","version":1,"producer":"copilot-agent","copilotVersion":"1.0.102",
      "startTime":"…","selectedModel":"mock-1","context":{"cwd":"…","gitRoot":"…","branch":"main","headCommit":"33a8…"}},"id":"a1…","timestamp":"2026-11-30T04:58:59.715Z","parentId":null}
    {"type":"user.message","data":{"content":"…","transformedContent":"<current_datetime>…","messageId":"a2…","interactionId":"a0…"},…}
    {"type":"assistant.turn_start","data":{"turnId":"0","interactionId":"a0…"},…}
    {"type":"session.usage_record","data":{"usage":{"model":"mock-1","inputTokens":11001,"outputTokens":115,"cacheReadTokens":5503,
      "cacheWriteTokens":0,"reasoningTokens":11,"duration":46,"apiCallId":"resp-1","accounting":{"usageId":"resp-1"},"finishReason":"tool_calls"}},…}
    {"type":"assistant.message","data":{"messageId":"27…","model":"mock-1","content":"…","reasoningText":"…","apiCallId":"resp-1",
      "toolRequests":[{"toolCallId":"call_1","name":"bash","arguments":{"command":"…"}}],"interactionId":"a0…","turnId":"0"},…}
    {"type":"tool.execution_start","data":{"toolCallId":"call_1","toolName":"bash","arguments":{…}},…}
    {"type":"tool.execution_complete","data":{"toolCallId":"call_1","success":true,"shellExecution":{"exitCode":101},
      "result":{"content":"…","detailedContent":"diff --git …"},"fileEdits":[{"path":"…","kind":"edit"}]},…}
    {"type":"subagent.started","data":{"toolCallId":"call_2","agentName":"general-purpose"},"agentId":"3e5c…",…}
    {"type":"session.shutdown","data":{"shutdownType":"routine","modelMetrics":{"mock-1":{"requests":{"count":7},"usage":{…}}},
      "agentMetrics":{"main":{…}}},…}

    session-store.db: assistant_usage_events(id, session_id, turn_index, agent_id, model, input_tokens 1001, output_tokens
      101, cache_read_tokens 100, cache_write_tokens, reasoning_tokens, duration_ms, initiator user | agent | sub-agent |
      compaction, finish_reason tool_calls | stop, created_at), sessions(id, summary: its name, else the first prompt, after
      a resume the first one since),
      session_refs(session_id, ref_type, ref_value)

What is particular
    - Sub-agents are in the same log: `agentId` on an event says whose it is, none is the main agent's.
    - A turn is an `interactionId`; `turnId` counts the model's calls in it. A turn ends where a call of the model asked
      for no tool, or at an abort.
    - `inputTokens` includes cached tokens, `outputTokens` includes reasoning. A shutdown's totals are cumulative over
      resumes, and over sub-agents.
    - Before 1.0.102 a response's figures stand in `session-store.db` alone (schema 8), in the order of the responses of an
      agent, and without their ids; before that (schema 4, 1.0.59) only `outputTokens` stands, on a message.
    - A compaction's request has no `session.usage_record`: its figures stand on its event, and those of `/compact` on
      `model.model_call_success` too, with the response's id (1.0.102).
    - `/compact` writes how its request went (1.0.92): `model.messages_snapshot` is the whole conversation with what Copilot
      asks for behind it, `model.message` and `model.response` are the summary, before `session.compaction_complete` says it.
      The total at the shutdown has only the requests since then.
    - A fork begins with the other session's events, ids and times with them; behind them an event names that session.
    - `/undo` takes events out of the log; the figures of their requests stay in the store of all sessions.
    - When a background agent has finished, Copilot itself makes a call: a message without model and response id.
    - `rewind-file-snapshots` has the digests of files before and after each prompt; contents in between come from views,
      whole diffs and edits.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast

import msgspec
from msgspec import Raw, Struct

from asrd.recorders._observed import Contents, absolute, commits, content_of, patched, replaced
from asrd.recorders.base import CopyOf, Recorder, StreamKey, StreamOut, Writer, sha256, within
from asrd.records import (
    Approval,
    Block,
    Capture,
    Compaction,
    Config,
    Content,
    End,
    Error,
    Evidence,
    Exec,
    File,
    FileChange,
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
    UsageTotal,
    Vcs,
    VcsAction,
    Workspace,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Oversize, Place, Root, Row, RowQuery, Source, Unread

# ---------------------------------------------------------------- native records


class Event(Struct):
    """What every event has; `data` as its type has it."""

    type: str
    data: Raw = Raw(b"{}")
    id: str | None = None
    timestamp: str | None = None
    parentId: str | None = None
    agentId: str | None = None


class Info(Struct):
    """`session.info`: words for the person, of a kind."""

    infoType: str | None = None
    message: str | None = None


class Held(Struct):
    """A line whose origin is not known yet: where it stands, and its bytes."""

    start: int
    end: int
    data: bytes


class Context(Struct):
    cwd: str | None = None
    gitRoot: str | None = None
    branch: str | None = None
    headCommit: str | None = None
    repository: str | None = None


class Start(Struct):
    sessionId: str | None = None
    version: int | None = None
    producer: str | None = None
    copilotVersion: str | None = None
    startTime: str | None = None
    selectedModel: str | None = None
    reasoningEffort: str | None = None
    context: Context | None = None


class UserMessage(Struct):
    content: str
    transformedContent: str | None = None
    attachments: list[dict[str, Any]] | None = None
    source: str | None = None
    messageId: str | None = None
    interactionId: str | None = None
    delivery: str | None = None


class SystemMessage(Struct):
    content: str
    role: str | None = None
    interactionId: str | None = None


class ModelTurn(Struct):
    turnId: str | None = None
    interactionId: str | None = None


class ToolRequest(Struct):
    toolCallId: str
    name: str
    arguments: Any = None
    toolTitle: str | None = None
    intentionSummary: str | None = None


class AssistantMessage(Struct):
    content: str | None = None
    messageId: str | None = None
    model: str | None = None
    toolRequests: list[ToolRequest] | None = None
    interactionId: str | None = None
    reasoningText: str | None = None
    reasoningOpaque: str | None = None
    encryptedContent: str | None = None
    apiCallId: str | None = None
    requestId: str | None = None
    outputTokens: int | None = None


class Accounting(Struct):
    usageId: str | None = None
    sourceSessionId: str | None = None


class NativeUsage(Struct):
    """Figures of one request. `inputTokens` includes cached tokens; `duration` in milliseconds."""

    model: str | None = None
    inputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadTokens: int | None = None
    cacheWriteTokens: int | None = None
    reasoningTokens: int | None = None
    duration: int | float | None = None
    apiCallId: str | None = None
    accounting: Accounting | None = None
    finishReason: str | None = None
    modelProvider: str | None = None
    interactionType: str | None = None
    reasoningEffort: str | None = None


class UsageRecord(Struct):
    usage: NativeUsage


class ModelCall(Struct):
    model: str | None = None
    api_id: str | None = None


class Details(Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class ResponseUsage(Struct):
    """Figures of a response as Chat Completions has them. `prompt_tokens` includes cached tokens."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None


class ModelSuccess(Struct):
    """`model.model_call_success`: a request that was no turn's, as that of `/compact`."""

    modelCall: ModelCall
    responseUsage: ResponseUsage | None = None
    responseChunk: Any = None
    modelCallDurationMs: int | float | None = None


class ModelWords(Struct):
    """A message as the model has it; `content` may be parts."""

    role: str | None = None
    content: Any = None
    tool_calls: list[Any] | None = None


class ModelMessage(Struct):
    """`model.message`: what the request for a compaction was answered."""

    message: ModelWords
    modelCall: ModelCall | None = None


class ModelResponse(Struct):
    """`model.response`: the same again."""

    response: ModelWords


class Messages(Struct):
    """`model.messages_snapshot`: all that the model was sent, and what it answered."""

    messages: list[ModelWords] = []


class ToolStart(Struct):
    toolCallId: str
    toolName: str
    arguments: Any = None


class ShellExecution(Struct):
    exitCode: int | None = None


class NativeResult(Struct):
    content: str | None = None
    detailedContent: str | None = None


class Telemetry(Struct):
    metrics: dict[str, Any] = {}
    properties: dict[str, Any] = {}


class Failure(Struct):
    message: str | None = None
    code: str | None = None


class FileEdit(Struct):
    path: str
    kind: str | None = None


class ToolComplete(Struct):
    toolCallId: str
    success: bool | None = None
    model: str | None = None
    result: NativeResult | None = None
    error: Failure | None = None
    shellExecution: ShellExecution | None = None
    fileEdits: list[FileEdit] | None = None
    toolTelemetry: Telemetry | None = None


class SubagentStarted(Struct):
    toolCallId: str | None = None
    agentName: str | None = None
    agentDisplayName: str | None = None
    model: str | None = None


class SubagentEnded(Struct):
    toolCallId: str | None = None
    error: Any = None


class ModelChange(Struct):
    newModel: str | None = None
    reasoningEffort: str | None = None


class ModeChange(Struct):
    newMode: str | None = None


class TitleChange(Struct):
    title: str | None = None


class CompactionUsage(Struct):
    """`input`, `output` and `cachedInput` are the older names."""

    model: str | None = None
    duration: int | float | None = None
    inputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadTokens: int | None = None
    cacheWriteTokens: int | None = None
    input: int | None = None
    output: int | None = None
    cachedInput: int | None = None


class CompactionComplete(Struct):
    success: bool | None = None
    trigger: str | None = None
    preCompactionTokens: int | None = None
    postCompactionTokens: int | None = None
    summaryContent: str | None = None
    requestId: str | None = None
    compactionTokensUsed: CompactionUsage | None = None
    error: Any = None


class Metrics(Struct):
    usage: NativeUsage | None = None
    requests: dict[str, Any] = {}


class AgentMetrics(Struct):
    modelMetrics: dict[str, Metrics] = {}


class Shutdown(Struct):
    shutdownType: str | None = None
    errorReason: str | None = None
    modelMetrics: dict[str, Metrics] | None = None
    agentMetrics: dict[str, AgentMetrics] | None = None


class SessionError(Struct):
    errorType: str | None = None
    message: str | None = None
    statusCode: int | None = None


class PermissionRequest(Struct):
    kind: str | None = None
    toolCallId: str | None = None


class PermissionRequested(Struct):
    requestId: str
    permissionRequest: PermissionRequest | None = None


class PermissionResult(Struct):
    kind: str | None = None


class PermissionCompleted(Struct):
    requestId: str
    result: PermissionResult | None = None
    toolCallId: str | None = None


class Image(Struct):
    """What a file was before or after a prompt: `kind` "content", or that there is none."""

    kind: str | None = None
    contentHash: str | None = None
    size: int | None = None


class Snapshotted(Struct):
    path: str
    preimage: Image | None = None
    postimage: Image | None = None


class Snapshot(Struct):
    eventId: str
    files: dict[str, Snapshotted] = {}


class Index(Struct):
    """`rewind-file-snapshots/index.json`: one entry a prompt that changed files."""

    snapshots: list[Snapshot] = []


class UsageRow(Struct):
    """A row of `assistant_usage_events`: one request of an agent (None = the main one)."""

    id: int
    agent_id: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    duration_ms: int | float | None = None
    initiator: str | None = None
    reasoning_effort: str | None = None
    finish_reason: str | None = None
    created_at: str | None = None


_decoders = {
    name: msgspec.json.Decoder(kind)
    for name, kind in {
        "session.start": Start,
        "session.resume": Start,
        "user.message": UserMessage,
        "system.message": SystemMessage,
        "assistant.turn_start": ModelTurn,
        "assistant.turn_end": ModelTurn,
        "assistant.message": AssistantMessage,
        "session.usage_record": UsageRecord,
        "model.model_call_success": ModelSuccess,
        "model.message": ModelMessage,
        "model.response": ModelResponse,
        "model.messages_snapshot": Messages,
        "tool.execution_start": ToolStart,
        "tool.user_requested": ToolStart,
        "tool.execution_complete": ToolComplete,
        "subagent.started": SubagentStarted,
        "subagent.completed": SubagentEnded,
        "subagent.failed": SubagentEnded,
        "session.model_change": ModelChange,
        "session.mode_changed": ModeChange,
        "session.title_changed": TitleChange,
        "session.compaction_complete": CompactionComplete,
        "session.shutdown": Shutdown,
        "session.error": SessionError,
        "permission.requested": PermissionRequested,
        "permission.completed": PermissionCompleted,
    }.items()
}
_event = msgspec.json.Decoder(Event)
_index = msgspec.json.Decoder(Index)
_info = msgspec.json.Decoder(Info)
_any = msgspec.json.Decoder()

KINDS = {
    "view": "read", "create": "edit", "edit": "edit", "str_replace_editor": "edit", "apply_patch": "edit",
    "bash": "execute", "powershell": "execute", "local_shell": "execute", "grep": "search", "glob": "search",
    "rg": "search", "web_search": "search", "web_fetch": "fetch", "fetch": "fetch", "task": "delegate",
    "update_todo": "plan", "think": "think",
}  # fmt: skip
SHELLS = ("bash", "powershell", "local_shell", "read_bash", "write_bash", "read_powershell", "write_powershell")

_EXIT = re.compile(r"<(?:shellId: \S+ completed|exited) with exit code (-?\d+)>\s*$")
_DENIED = re.compile(r"(?i)denied|reject")
_TODO = re.compile(r"^\s*[-*] \[( |x|X|-|~)\] (.+)$")
FATAL = ("query", "authentication", "authorization", "quota", "rate_limit", "context_limit", "model_call")


# ---------------------------------------------------------------- state


class Call(Struct):
    """A tool call without its result yet."""

    name: str
    args: dict[str, Any]


class Edited(Struct):
    """The last change of a file in the prompt at hand, to complete it by the snapshot's digests."""

    record: str
    call: str
    change: str
    first: bool
    before: Content | None = None
    after: Content | None = None
    diff: str | None = None


class Unpriced(Struct):
    """A response without figures: its id, model, and whether it asked for tools."""

    name: str
    model: str | None
    called: bool
    turn: str | None = None


class Priced(Struct):
    """A request whose response is not told yet: its record, and what is known of it."""

    record: str
    row: UsageRow


class AgentState(Struct):
    """What is kept of one agent between its events; "" is the main one."""

    turn: str | None = None
    turn_open: bool = False
    called: bool = False
    """Whether the model's last message asked for tools."""
    inferences: dict[str, str] = {}
    """Record of each response, by its id."""
    counted: list[str] = []
    """Responses whose figures were recorded in full."""
    unpriced: list[Unpriced] = []
    """Responses whose figures the store may tell yet, in the log's order."""
    priced: list[Priced] = []
    """Figures of the store whose responses the log did not tell yet."""
    compacted: list[tuple[int | None, int | None]] = []
    """Input and output of requests for a compaction that the log told, and the store did not yet."""
    figures: list[tuple[int | None, int | None]] = []
    """Input and output of the responses since the last compaction began."""
    compacting: bool = False
    """Whether a compaction began and is not over."""
    summary: tuple[str, str] | None = None
    """Id and digest of the message that answered the request for a compaction."""
    inference: str | None = None
    calls: dict[str, Call] = {}
    edits: dict[str, Edited] = {}
    prompt: str | None = None
    """Event of the prompt at hand, by which snapshots go."""


class State(Struct):
    """What is kept of a session."""

    session: str = ""
    began: str | None = None
    """When it began: what is older was copied from another session."""
    held: list[Held] = []
    """Older lines, until the one that names that session."""
    forked_from: str | None = None
    rewound: str | None = None
    """When it was last taken back: what was undone is no longer in the log."""
    told: list[tuple[int | None, int | None]] = []
    """Input and output of the requests that the log tells of, at most `TOLD`."""
    cwd: str | None = None
    version: str | None = None
    root: bool = False
    """Whether headers name the working folder."""
    recorded: bool = False
    """Whether the log has usage records; then they are all there is to count."""
    agents: dict[str, AgentState] = {}
    spawned: dict[str, tuple[str | None, str]] = {}
    """Call and caller of each sub-agent."""
    owners: dict[str, str] = {}
    """Agent of each open call."""
    approvals: dict[str, str | None] = {}
    denied: list[str] = []
    asked: str | None = None
    """How the first prompt begins: the title that Copilot gives by itself."""
    asked_since: str | None = None
    """How the first prompt since the last resume begins: the title that it gives then."""
    responses: int = 0
    """Responses that the log tells of by their ids, those of sub-agents and compactions with them, copies not."""
    short: bool = False
    """Whether a total was found to leave some of them out."""
    title: str | None = None
    snapshots: dict[str, Snapshot] = {}
    settled: list[str] = []
    """Prompts that are over; the index goes on to list them."""
    files: Contents = msgspec.field(default_factory=Contents)


TITLE = 2000
"""Characters of the first prompt that are kept, to know it where it is the title."""
TOLD = 4096
"""Requests of a session that are known again in the store of all sessions."""
FORK = re.compile(r'Forked from ".*" \(([0-9a-f-]{36})\) as ".*" \(([0-9a-f-]{36})\)', re.S)
"""How a fork says where it came from (`session.info`, 1.0.102)."""
RECENT = 256
"""Responses and calls of an agent that are kept to know later statements by."""


# ---------------------------------------------------------------- the recorder

STORE = "session-store.db"
QUERIES = (
    RowQuery(
        "sessions",
        "SELECT 'session-state/' || id AS owner, id, summary FROM sessions WHERE summary <> '' ORDER BY rowid",
        key=("id",),
    ),
    RowQuery(
        "assistant_usage_events",
        "SELECT 'session-state/' || session_id AS owner, id, agent_id, model, input_tokens, output_tokens, cache_read_tokens, "
        "cache_write_tokens, reasoning_tokens, duration_ms, initiator, reasoning_effort, finish_reason, created_at "
        "FROM assistant_usage_events ORDER BY id",
        key=("id",),
        since="id",
    ),
    RowQuery(
        "session_refs",
        "SELECT 'session-state/' || session_id AS owner, id, ref_type, ref_value, turn_index, created_at FROM session_refs "
        "ORDER BY id",
        key=("id",),
        since="id",
    ),
)


class CopilotRecorder(Recorder):
    harness: ClassVar[str] = "copilot"
    roots: ClassVar[tuple[Root, ...]] = (Root(".copilot", env=("COPILOT_HOME",)),)
    places: ClassVar[tuple[Place, ...]] = (
        Place("session-state/*/events.jsonl"),
        Place("session-state/*/rewind-file-snapshots/index.json", "document", sidecar=True),
        Place("session-state/*.jsonl"),
        Place(STORE, "shared", queries=QUERIES, owner="owner"),
    )
    unread: ClassVar[tuple[Unread, ...]] = (
        Unread("session-state/*/checkpoints/*.md", "the summary of a compaction, which the log has"),
        Unread("session-state/*/workspace.yaml", "the folder is in the log, the name in the store"),
    )
    versions: ClassVar[tuple[str, ...]] = ("1.0.92", "1.0.102")
    State: ClassVar[type[Struct]] = State
    state: State

    def __init__(self, out: Writer, group: str) -> None:
        super().__init__(out, group)
        self._first = ""
        self._copy: CopyOf | None = None

    @classmethod
    def locate(cls, path: str) -> Located | None:
        if path == STORE:
            return Located("", STORE, order="~")
        parts = path.split("/")
        if parts[-1] == "events.jsonl" and len(parts) == 3:
            return Located(f"session-state/{parts[1]}", parts[1])
        if parts[-1] == "index.json" and len(parts) == 4:
            return Located(f"session-state/{parts[1]}", f"{parts[1]}/snapshots")
        if len(parts) == 2 and parts[1].endswith(".jsonl"):
            name = parts[1].removesuffix(".jsonl")
            return Located(f"session-state/{name}", name)
        return None

    @classmethod
    def claims(cls, head: bytes) -> bool:
        first = head.split(b"\n", 1)[0]
        return b'"type":"session.start"' in first and b'"copilotVersion"' in first

    def receive(self, source: Source, item: Line | Row) -> None:
        if isinstance(item, Row):
            if source.kind == "shared":
                self._stored(item)
            else:
                self._snapshots(_index.decode(item.data))
            return
        event = _event.decode(item.data)
        if not self._held_back(source, item, event):
            self._event(event)

    def convert(self, source: Source, item: Line | Row | Oversize, first: str) -> None:
        """As every recorder's; keeps the digest of the first line, for lines that waited."""
        self._first = first
        super().convert(source, item, first)

    def _held_back(self, source: Source, item: Line, event: Event) -> bool:
        """Whether an event waits: a fork begins with the other session's, which are older than it, and says only behind
        them which session that was. They are recorded then, as copies, each with its own place.
        """
        state = self.state
        if state.began and event.timestamp and event.timestamp < state.began and state.forked_from is None:
            state.held.append(Held(item.start, item.end, item.data))
            self.out.skip("held-until-its-origin-is-told")
            return True
        if state.held:
            told = _info.decode(event.data) if event.type == "session.info" else Info()
            found = FORK.search(told.message or "") if told.infoType == "fork" else None
            state.forked_from = found[1] if found and found[2] == self._session() else ""
            waited, state.held = state.held, []
            for one in waited:
                self.out.begin(source, Line(one.start, one.end, one.data), self._first)
                again = _event.decode(one.data)
                if state.forked_from:
                    self._copy = CopyOf(session_id=state.forked_from, native_id=again.id)
                self._event(again)
                self._copy = None
            self.out.begin(source, item, self._first)
            if state.forked_from:
                evidence = Evidence(kind="native-field", field="session.info.message", value=state.forked_from)
                target = LinkTarget(agent="copilot", session_id=state.forked_from)
                self.add(event, Link(relation="forked_from", target=target, evidence=evidence))
        return False

    def _event(self, event: Event) -> None:
        decoder = _decoders.get(event.type)
        said: Any = decoder.decode(event.data) if decoder is not None else None
        agent = self._agent(event.agentId or "")
        match said:
            case Start():
                self._start(agent, event, said)
            case UserMessage():
                self._prompt(agent, event, said)
            case SystemMessage():
                self._system(event, said)
            case ModelTurn():
                self._model_turn(agent, event)
            case AssistantMessage():
                self._said(agent, event, said)
            case UsageRecord():
                self._usage(agent, event, said.usage)
            case ModelSuccess():
                self._succeeded(agent, event, said)
            case ModelMessage():
                self._answered(agent, event, said)
            case ModelResponse():
                self._answered_again(agent, event, said.response)
            case Messages():
                self._sent(agent, event, said)
            case ToolStart():
                self._tool_start(agent, event, said)
            case ToolComplete():
                self._tool_complete(agent, event, said)
            case SubagentStarted():
                self._subagent(event, said)
            case SubagentEnded():
                done = event.type == "subagent.completed"
                meta = {"dev.asrd.ended": _any.decode(event.data)}
                self.add(event, End(status="completed" if done else "interrupted", reason=event.type, meta=meta))
            case ModelChange():
                self.add(event, Config(model=said.newModel, effort=said.reasoningEffort))
            case ModeChange():
                self.add(event, Config(mode=said.newMode))
            case TitleChange():
                self.state.title = said.title
                self.add(event, Config(title=said.title))
            case CompactionComplete():
                self._compacted(agent, event, said)
            case Shutdown():
                self._shutdown(agent, event, said)
            case SessionError():
                self._error(agent, event, said)
            case PermissionRequested():
                call = said.permissionRequest.toolCallId if said.permissionRequest else None
                self.state.approvals[said.requestId] = call
                meta = {"dev.asrd.kind": said.permissionRequest.kind} if said.permissionRequest else None
                self.add(event, Approval(phase="requested", call_id=call, meta=meta), said.requestId)
            case PermissionCompleted():
                self._decided(event, said)
            case _:
                if event.type == "abort":
                    self._end_turn(agent, event, "interrupted")
                elif event.type == "session.info" and self._copy is None:
                    if _info.decode(event.data).infoType == "rewind":
                        self.state.rewound = event.timestamp
                elif event.type == "session.compaction_start":
                    agent.figures, agent.compacting, agent.summary = [], True, None
                self.native(event)

    def main(self) -> StreamOut:
        """The main agent's stream; opened when nothing did yet."""
        return self._stream("")

    # streams

    def _agent(self, ident: str) -> AgentState:
        return self.state.agents.setdefault(ident, AgentState())

    def _session(self) -> str:
        state = self.state
        if not state.session:
            state.session = self.group.rsplit("/", 1)[-1].removesuffix(".jsonl")
        return state.session

    def _key(self, agent: str) -> StreamKey:
        session = self._session()
        return StreamKey("copilot", agent, session) if agent else StreamKey("copilot", session)

    def _stream(self, agent: str, start: Start | None = None, at: str | None = None) -> StreamOut:
        key = self._key(agent)
        found = self.out.stream(key)
        if found is not None:
            return found
        state = self.state
        workspace = None
        if start is not None and start.context and start.context.cwd:
            workspace = Workspace(roots=[WorkspaceRoot(id="r1", path=start.context.cwd, vcs=_vcs(start.context))])
        elif agent and state.root and state.cwd:
            workspace = Workspace(roots=[WorkspaceRoot(id="r1", path=state.cwd)])
        stream = self.open(
            key,
            version=state.version,
            started_at=start.startTime if start else at,
            lineage=self._lineage(agent),
            workspace=workspace,
            meta={"dev.asrd.format": {"version": start.version, "producer": start.producer}} if start else None,
        )
        for profile, facet, how, reason in (
            ("coding", "file_change.before", "partial", "from views, diffs and rewind snapshots where they are there"),
            ("core", "turn.end", "partial", "an answer without tool requests, or an abort, ends a turn"),
        ):
            stream.add(Capture(profile=profile, facet=facet, state=how, reason=reason))
        return stream

    def _lineage(self, agent: str) -> Lineage:
        if not agent:
            return Lineage(root=True)
        call, caller = self.state.spawned.get(agent, (None, ""))
        parent = self._key(caller)
        return Lineage(
            root=False,
            parent=LineageParent(
                agent="copilot", session_id=parent.session_id, namespace=parent.namespace or None, call_id=call
            ),
            relation="spawned_by",
            evidence=Evidence(
                kind="native-field",
                field="subagent.started.data.toolCallId" if call else "agentId",
                value=call or agent,
            ),
        )

    def add(self, event: Event, record: Record, native_id: str | None = None, agent: str | None = None) -> str:
        ident = (event.agentId or "") if agent is None else agent
        record.at = event.timestamp
        own = self._agent(ident)
        record.turn_id = record.turn_id or (own.turn if own.turn_open else None)
        record.native_id = native_id or event.id
        record.copy_of = self._copy
        return self._stream(ident, at=event.timestamp).add(record)

    def native(self, event: Event) -> None:
        self.add(event, Native(native_type=event.type, data=_any.decode(event.data)))

    def _roots(self) -> list[WorkspaceRoot] | None:
        return [WorkspaceRoot(id="r1", path=self.state.cwd)] if self.state.root and self.state.cwd else None

    # the session

    def _start(self, agent: AgentState, event: Event, said: Start) -> None:
        state = self.state
        cwd = said.context.cwd if said.context else None
        if self.out.stream(self._key("")) is None and event.type == "session.start":
            state.session = said.sessionId or self._session()
            state.began = said.startTime
            state.version = said.copilotVersion
            state.cwd, state.root = cwd, cwd is not None
            self._stream("", said)
            self.add(event, Config(model=said.selectedModel, effort=said.reasoningEffort, version=said.copilotVersion))
            return
        self._end_turn(agent, event, "interrupted")
        self.native(event)
        state.asked_since = None
        if cwd and cwd != state.cwd:
            state.cwd = cwd
            self.add(event, Config(cwd=cwd))
        context = said.context
        if context and context.headCommit:
            self.add(
                event, VcsAction(action="state", commit=context.headCommit, branch=context.branch, evidence="reported")
            )

    def _subagent(self, event: Event, said: SubagentStarted) -> None:
        child = event.agentId
        if child is None:
            self.native(event)
            return
        caller = self.state.owners.get(said.toolCallId or "", "")
        self.state.spawned[child] = (said.toolCallId, caller)
        key = self._key(child)
        self.add(
            event,
            Link(
                relation="spawned",
                target=LinkTarget(agent="copilot", session_id=key.session_id, namespace=key.namespace),
                call_id=said.toolCallId,
                evidence=Evidence(kind="native-field", field="subagent.started.agentId", value=child),
            ),
            agent=caller,
        )
        self.add(
            event,
            Config(
                model=said.model,
                title=said.agentDisplayName,
                meta={"dev.asrd.profile": said.agentName} if said.agentName else None,
            ),
        )

    def _shutdown(self, agent: AgentState, event: Event, said: Shutdown) -> None:
        self._settle(event, agent)
        if said.modelMetrics:
            self.add(event, UsageTotal(scope="tree", cumulative=True, usage=_sum(said.modelMetrics)))
            self._short(said.modelMetrics)
        own = (said.agentMetrics or {}).get("main")
        if own is not None and own.modelMetrics:
            self.add(event, UsageTotal(scope="session", cumulative=True, usage=_sum(own.modelMetrics)))
        status = {"routine": "completed", "error": "crashed"}.get(said.shutdownType or "", "unknown")
        self.add(event, End(status=status, reason=said.errorReason or said.shutdownType))

    def _short(self, metrics: dict[str, Metrics]) -> None:
        """Says once that a total leaves out requests which the log tells of."""
        counts = [one.requests.get("count") for one in metrics.values()]
        if self.state.short or not all(isinstance(n, int) for n in counts):
            return
        counted = sum(cast("list[int]", counts))
        if counted < self.state.responses:
            self.state.short = True
            # Without a time: it bounds what the harness declares, not what was recorded.
            told = Capture(profile="usage", facet="usage_total", state="partial")
            told.reason = "a total at the end leaves out requests that the log has"
            told.meta = {"dev.asrd.requests": {"total": counted, "log": self.state.responses}}
            self._stream("").add(told)

    def _error(self, agent: AgentState, event: Event, said: SessionError) -> None:
        self.native(event)
        if said.errorType in FATAL:
            code = str(said.statusCode) if said.statusCode is not None else said.errorType
            self._end_turn(agent, event, "failed", Error(code=code, message=said.message))

    # turns and messages

    def _prompt(self, agent: AgentState, event: Event, said: UserMessage) -> None:
        self._settle(event, agent)
        author, origin, trigger = _who(said, bool(event.agentId))
        turn = said.interactionId or said.messageId or event.id or "0"
        if turn != agent.turn or not agent.turn_open:
            agent.turn, agent.turn_open, agent.called, agent.inference = turn, True, False, None
            agent.prompt, agent.edits = event.id, {}
            self.add(event, Turn(turn_id=turn, phase="start", trigger=trigger))
            self._known_before(event.id)
        content: list[Block] = [Text(text=said.content)] if said.content else []
        content += [_attached(a) for a in said.attachments or []]
        if self.state.asked_since is None and origin == "prompt":
            self.state.asked_since = said.content[:TITLE]
            self.state.asked = self.state.asked or self.state.asked_since
        self.add(
            event,
            Message(role="user", author=author, origin=origin, message_id=said.messageId, content=content),
            said.messageId,
        )
        sent = said.transformedContent
        if sent and sent != said.content:
            added = sent.removesuffix(said.content) if said.content and sent.endswith(said.content) else sent
            self.add(
                event,
                Message(
                    role="user",
                    author="harness",
                    origin="injected",
                    audience="model",
                    content=[Text(text=added.strip("\n"))],
                    meta=None if added != sent else {"dev.asrd.replaces": said.messageId},
                ),
            )

    def _system(self, event: Event, said: SystemMessage) -> None:
        self.add(
            event,
            Message(
                role=said.role or "system",
                author="harness",
                origin="injected",
                audience="model",
                content=[Text(text=said.content)],
            ),
        )

    def _model_turn(self, agent: AgentState, event: Event) -> None:
        if event.type == "assistant.turn_end" and agent.inference is not None and not agent.called:
            self._end_turn(agent, event, "completed")
        if not self.out.noted():
            self.out.skip("model-turn")

    def _end_turn(self, agent: AgentState, event: Event, status: str, error: Error | None = None) -> None:
        """Ends the turn at hand, if one is open; a resume finds one open only where it was cut off."""
        if not agent.turn_open or agent.turn is None:
            return
        agent.turn_open = False
        agent.inference = None
        self.add(event, Turn(turn_id=agent.turn, phase="end", status=status, error=error))

    def _said(self, agent: AgentState, event: Event, said: AssistantMessage) -> None:
        name = said.apiCallId or said.requestId or said.messageId or event.id or "0"
        made = (said.apiCallId, said.requestId, said.model, said.outputTokens) == (None, None, None, None)
        if made and self.state.recorded:
            name = None  # Copilot's own call, made when a background agent had finished: no request was sent for it
        elif name not in agent.inferences:
            self._responded(agent, event, said, name)
        agent.inference = name
        content: list[Block] = []
        if said.reasoningText:
            content.append(Thinking(text=said.reasoningText))
        elif said.reasoningOpaque or said.encryptedContent:
            content.append(Thinking(redacted=True))
        if said.content:
            content.append(Text(text=said.content))
        if content:
            message = Message(role="assistant", author="agent", message_id=said.messageId, content=content)
            message.inference_id = name
            self.add(event, message, said.messageId)
        agent.called = bool(said.toolRequests)
        for request in said.toolRequests or []:
            self._call(agent, event, request.toolCallId, request.name, request.arguments, request.toolTitle)

    # requests

    def _responded(self, agent: AgentState, event: Event, said: AssistantMessage, name: str) -> None:
        """A response that no usage record told of: with the figures that the store told first, else to get them later."""
        called = bool(said.toolRequests)
        at = next((n for n, one in enumerate(agent.priced) if _fits(one.row, said.model, called)), None)
        if at is not None:
            record = _of_row(agent.priced[at].row, name)
            record.supersedes = agent.priced[at].record
            del agent.priced[: at + 1]
        else:
            usage = Usage(output=said.outputTokens) if said.outputTokens is not None else None
            record = Inference(inference_id=name, model=said.model, usage=usage)
            if usage is None and not self.state.recorded:
                turn = agent.turn if agent.turn_open else None
                agent.unpriced = [*agent.unpriced[-RECENT:], Unpriced(name, said.model, called, turn)]
        record.id_source = None if said.apiCallId or said.requestId else "derived"
        self._logged(agent, event, record)

    # the store

    def _stored(self, row: Row) -> None:
        """A row about this session in the store of all of them."""
        values = row.values
        if row.table == "assistant_usage_events":
            self._priced(msgspec.convert(values, UsageRow))
        elif row.table == "sessions":
            self._titled(str(values["summary"]))
        else:
            event = Event(row.table, timestamp=cast("str | None", values.get("created_at")))
            self.add(event, Native(native_type=row.table, data=values), str(values["id"]))

    def _titled(self, summary: str) -> None:
        """The session's name; the first prompt is none, nor is the first one since a resume."""
        asked = [(one or "").strip() for one in (self.state.asked, self.state.asked_since)]
        begun = summary.strip().removesuffix("…").removesuffix("...")
        if summary == self.state.title:
            self.out.skip("title-told-before")
        elif any(one.startswith(begun) for one in asked):
            self.out.skip("title-that-is-the-prompt")
        else:
            self.state.title = summary
            self.add(Event("sessions"), Config(title=summary))

    def _priced(self, row: UsageRow) -> None:
        """Figures of a request: the next one of this agent that the log tells without, else one of its own."""
        undone = self._undone(row)
        if self.state.recorded and not undone:
            self.out.skip("figures-stand-in-the-log")
            return
        known = row.agent_id is None or self.out.stream(self._key(row.agent_id)) is not None
        event = Event("assistant_usage_events", timestamp=row.created_at, agentId=row.agent_id if known else None)
        agent = self._agent(event.agentId or "")
        figures = _figures(row)
        if row.initiator == "compaction" and figures in agent.compacted:
            agent.compacted.remove(figures)
            self.out.skip("figures-stand-in-the-log")
            return
        fits = [] if undone else [n for n, one in enumerate(agent.unpriced) if _fits(row, one.model, one.called)]
        response = agent.unpriced[fits[0]] if fits else None
        record = _of_row(row, response.name if response else None)
        record.turn_id = response.turn if response else None
        self._inference(agent, event, record, str(row.id))
        if response is None:
            agent.priced = [*agent.priced[-RECENT:], Priced(agent.inferences[record.inference_id], row)]
        else:
            del agent.unpriced[: fits[0] + 1]

    def _undone(self, row: UsageRow) -> bool:
        """Whether a request was undone: `/undo` takes it out of the log, and the store keeps its figures."""
        state = self.state
        if not (state.rewound and row.created_at and row.created_at < state.rewound):
            return False
        stream = self.out.stream(self._key(""))
        return _figures(row) not in state.told and (stream is None or not any(stream.tokens()))

    def _compaction(self, agent: AgentState, event: Event, record: Inference, told: NativeUsage) -> None:
        """A request for a compaction that the log tells of; the store may have told of it already."""
        figures = (told.inputTokens, told.outputTokens)
        before = [one for one in agent.priced if _figures(one.row) == figures and one.row.initiator == "compaction"]
        if before:
            agent.priced.remove(before[0])
            record.supersedes = before[0].record
        else:
            agent.compacted = [*agent.compacted[-RECENT:], figures]
        self._logged(agent, event, record)

    def _logged(self, agent: AgentState, event: Event, record: Inference) -> None:
        """A response that the log tells of, counted when it is told first by an id of its own."""
        if record.inference_id not in agent.inferences and record.id_source is None and self._copy is None:
            self.state.responses += 1
        self._inference(agent, event, record)

    def _inference(self, agent: AgentState, event: Event, record: Inference, native_id: str | None = None) -> None:
        record.supersedes = agent.inferences.pop(record.inference_id, None) or record.supersedes
        agent.inferences[record.inference_id] = self.add(event, record, native_id)
        while len(agent.inferences) > RECENT:
            agent.inferences.pop(next(iter(agent.inferences)))

    def _usage(self, agent: AgentState, event: Event, said: NativeUsage) -> None:
        self.state.recorded = True
        name = (said.accounting.usageId if said.accounting else None) or said.apiCallId or event.id or "0"
        if name in agent.counted:
            self.out.skip("usage-restated")
            return
        agent.counted = [*agent.counted[-RECENT:], name]
        agent.figures = [*agent.figures[-RECENT:], (said.inputTokens, said.outputTokens)]
        if self._copy is None and len(self.state.told) < TOLD:
            self.state.told.append((said.inputTokens, said.outputTokens))
        agent.inference = agent.inference or name
        meta: dict[str, Any] = {"dev.asrd.usage": _raw(said)}
        if said.interactionType and not said.interactionType.startswith("conversation-"):
            meta["dev.asrd.kind"] = said.interactionType
        self._logged(
            agent,
            event,
            Inference(
                inference_id=name,
                id_source=None if said.apiCallId or said.accounting else "derived",
                model=said.model,
                provider=said.modelProvider,
                effort=said.reasoningEffort,
                stop_reason=said.finishReason,
                usage=_tokens(said),
                duration_ms=said.duration,
                meta=meta,
            ),
        )

    def _succeeded(self, agent: AgentState, event: Event, said: ModelSuccess) -> None:
        """A request that has no `session.usage_record`, at least not yet."""
        data, left = _any.decode(event.data), list[str]()
        if agent.compacting:  # the conversation, and the summary, which `model.message` says
            left += ["requestMessages"] if data.pop("requestMessages", None) else []
            chunk = cast("dict[str, Any]", data["responseChunk"] if isinstance(said.responseChunk, dict) else {})
            left += ["responseChunk.choices"] if chunk.pop("choices", None) else []
        meta = {"dev.asrd.restated": left} if left else None
        self._requested(agent, event, said)
        self.add(event, Native(native_type=event.type, data=data, meta=meta))

    def _requested(self, agent: AgentState, event: Event, said: ModelSuccess) -> None:
        name, told = said.modelCall.api_id, said.responseUsage
        if name is None or told is None or told.prompt_tokens is None or name in agent.counted:
            return
        prompt, output = told.prompt_tokens_details or Details(), told.completion_tokens_details or Details()
        native = NativeUsage(
            inputTokens=told.prompt_tokens,
            outputTokens=told.completion_tokens,
            cacheReadTokens=prompt.cached_tokens,
            reasoningTokens=output.reasoning_tokens,
        )
        agent.figures = [*agent.figures[-RECENT:], (native.inputTokens, native.outputTokens)]
        self._compaction(
            agent,
            event,
            Inference(
                inference_id=name,
                model=said.modelCall.model,
                stop_reason=_finished(said.responseChunk),
                usage=_tokens(native),
                duration_ms=said.modelCallDurationMs,
                meta={"dev.asrd.usage": _raw(native)},
            ),
            native,
        )

    def _answered(self, agent: AgentState, event: Event, said: ModelMessage) -> None:
        """What a request for a compaction was answered is its summary."""
        told, name = said.message, said.modelCall.api_id if said.modelCall else None
        if not agent.compacting or told.role != "assistant" or told.tool_calls or not isinstance(told.content, str):
            self.native(event)
            return
        message = Message(role="assistant", author="agent", origin="summary", content=[Text(text=told.content)])
        message.message_id = event.id
        message.inference_id = name if name in agent.inferences else None
        self.add(event, message)
        if event.id:
            agent.summary = (event.id, sha256(told.content))

    def _answered_again(self, agent: AgentState, event: Event, said: ModelWords) -> None:
        if agent.summary and isinstance(said.content, str) and sha256(said.content) == agent.summary[1]:
            self.out.skip("message-restated")
        else:
            self.native(event)

    def _sent(self, agent: AgentState, event: Event, said: Messages) -> None:
        """All that the model was sent for a compaction stands in the log before, but what Copilot asked for behind it."""
        last = next((one.content for one in reversed(said.messages) if one.role == "user"), None)
        if not agent.compacting or not isinstance(last, str):
            self.native(event)
            return
        message = Message(role="user", author="harness", origin="injected", audience="model", content=[Text(text=last)])
        message.meta = {"dev.asrd.restated": ["messages"]}
        self.add(event, message)

    def _compacted(self, agent: AgentState, event: Event, said: CompactionComplete) -> None:
        used = said.compactionTokensUsed
        agent.compacting = False
        if used is not None:
            native = NativeUsage(
                model=used.model,
                inputTokens=used.inputTokens if used.inputTokens is not None else used.input,
                outputTokens=used.outputTokens if used.outputTokens is not None else used.output,
                cacheReadTokens=used.cacheReadTokens if used.cacheReadTokens is not None else used.cachedInput,
                cacheWriteTokens=used.cacheWriteTokens,
            )
        else:
            native = None
        if used is not None and native is not None and (native.inputTokens, native.outputTokens) not in agent.figures:
            self._compaction(
                agent,
                event,
                Inference(
                    inference_id=said.requestId or f"compaction@{event.id}",
                    id_source=None if said.requestId else "derived",
                    model=used.model,
                    usage=_tokens(native),
                    duration_ms=used.duration,
                    meta={"dev.asrd.usage": _raw(native), "dev.asrd.kind": "compaction"},
                ),
                native,
            )
        if said.success is False:
            self.native(event)
            return
        held = agent.summary[0] if agent.summary and sha256(said.summaryContent or "") == agent.summary[1] else None
        self.add(
            event,
            Compaction(
                trigger="manual" if said.trigger == "manual" else "auto" if said.trigger else None,
                tokens_before=said.preCompactionTokens,
                tokens_after=said.postCompactionTokens,
                summary=None if held else said.summaryContent,
                message_id=held,
                meta={"dev.asrd.trigger": said.trigger} if said.trigger else None,
            ),
        )

    # tools

    def _call(self, agent: AgentState, event: Event, ident: str, name: str, given: Any, title: str | None) -> None:
        args = cast("dict[str, Any]", given) if isinstance(given, dict) else {"raw": given}
        agent.calls[ident] = Call(name, args)
        self.state.owners[ident] = event.agentId or ""
        while len(self.state.owners) > RECENT:
            self.state.owners.pop(next(iter(self.state.owners)))
        self.add(
            event,
            ToolCall(
                call_id=ident,
                name=name,
                kind=KINDS.get(name, "other"),
                title=title,
                input=args,
                inference_id=agent.inference,
            ),
            ident,
        )
        if name == "update_todo" and (items := _plan(args)):
            self.add(event, Plan(items=items, call_id=ident))

    def _tool_start(self, agent: AgentState, event: Event, said: ToolStart) -> None:
        if said.toolCallId in agent.calls:
            self.out.skip("call-restated")
            return
        self._call(agent, event, said.toolCallId, said.toolName, said.arguments, None)

    def _tool_complete(self, agent: AgentState, event: Event, said: ToolComplete) -> None:
        ident = said.toolCallId
        call = agent.calls.pop(ident, None)
        result = said.result or NativeResult()
        text = result.content or (said.error.message if said.error else None) or ""
        status = self._status(said)
        ran = _exec(call, said, text)
        meta: dict[str, Any] = {}
        if said.error is not None:
            meta["dev.asrd.error"] = msgspec.to_builtins(said.error)
        if said.model == "resumed":
            meta["dev.asrd.synthetic"] = "resumed"
        self.add(
            event,
            ToolResult(
                call_id=ident,
                linkage="exact" if call else "none",
                status=status,
                content=[Text(text=text)] if text else None,
                exec=ran,
                meta=meta or None,
            ),
            ident,
        )
        if ran is not None:
            self.state.files.doubt()
            for commit in commits(ran.command, text):
                root = "r1" if self.state.root else None
                action = VcsAction(action="commit", root=root, commit=commit, evidence="observed", call_id=ident)
                self.add(event, action)
        elif call is not None and call.name == "view" and said.success:
            self._viewed(call, result)
        if said.fileEdits and said.success is not False:
            for edit in said.fileEdits:
                self._edited(agent, event, ident, call, edit, result, alone=len(said.fileEdits) == 1)

    def _status(self, said: ToolComplete) -> str:
        if said.success is None:
            return "unknown"
        if said.success:
            return "completed"
        code = said.error.code if said.error else None
        if said.toolCallId in self.state.denied or (code and _DENIED.search(code)):
            return "denied"
        return "unknown" if said.model == "resumed" else "failed"

    def _decided(self, event: Event, said: PermissionCompleted) -> None:
        call = self.state.approvals.pop(said.requestId, None) or said.toolCallId
        kind = (said.result.kind if said.result else None) or ""
        decision = by = None
        if kind.startswith("approved"):
            decision = "allow_always" if kind != "approved" else "allow"
        elif kind.startswith("denied"):
            decision = "deny"
            by = "human" if "user" in kind else "policy" if "rule" in kind or "policy" in kind else None
        elif kind.startswith("cancel"):
            decision = "cancelled"
        if decision == "deny" and call:
            self.state.denied = [*self.state.denied[-RECENT:], call]
        meta = {"dev.asrd.kind": kind} if kind else None
        self.add(event, Approval(phase="decided", call_id=call, decision=decision, by=by, meta=meta), said.requestId)

    # files

    def _viewed(self, call: Call, result: NativeResult) -> None:
        """A view without a range whose diff has just the lines it shows: the whole file as it stands."""
        path, shown = call.args.get("path"), result.content
        if not isinstance(path, str) or shown is None or "view_range" in call.args or not result.detailedContent:
            return
        if patched(shown, result.detailedContent) == shown and _whole(result.detailedContent, shown):
            self.state.files.is_(absolute(self.state.cwd, path), shown)

    def _edited(
        self,
        agent: AgentState,
        event: Event,
        ident: str,
        call: Call | None,
        edit: FileEdit,
        result: NativeResult,
        alone: bool,
    ) -> None:
        key = absolute(self.state.cwd, edit.path)
        files = self.state.files
        known = files.get(key)
        diff = result.detailedContent if alone and result.detailedContent else None
        before_text = known.text if known else None
        created = edit.kind in ("create", "add") or (known is not None and known.sha256 == "")
        after = None
        if call is not None and call.name == "create" and isinstance(call.args.get("file_text"), str):
            after = cast("str", call.args["file_text"])
        elif before_text is not None:
            if diff is not None:
                after = patched(before_text, diff)
            elif call is not None and isinstance(call.args.get("old_str"), str):
                after = replaced(before_text, [(call.args["old_str"], str(call.args.get("new_str") or ""), False)])
            if known and known.doubtful and not (diff and _whole(diff, before_text)):
                before_text, after = None, None
        before = None
        if (
            known is not None
            and known.sha256
            and (before_text is not None or (known.text is None and not known.doubtful))
        ):
            before = Content(sha256=known.sha256, bytes=known.bytes)
        deleted = edit.kind in ("delete", "remove")
        record = FileChange(
            path=within(edit.path, self._roots()),
            change="delete" if deleted else "create" if created and before is None else "modify",
            call_id=ident,
            before=before,
            after=content_of(after) if after is not None else None,
            diff=diff.lstrip("\n") if diff else None,
            applied=True,
            evidence="reported",
        )
        first = key not in agent.edits
        agent.edits[key] = Edited(
            self.add(event, record), ident, record.change, first, before, record.after, record.diff
        )
        if after is None:
            files.forget(key)
        else:
            files.is_(key, after)

    def _snapshots(self, said: Index) -> None:
        """Digests of files before and after each prompt. What lacks one in the prompt at hand gets it when that is over."""
        for snapshot in said.snapshots:
            if snapshot.eventId not in self.state.settled:
                self.state.snapshots[snapshot.eventId] = snapshot
        self.out.skip("digests-of-the-files")

    def _known_before(self, prompt: str | None) -> None:
        snapshot = self.state.snapshots.get(prompt or "")
        for file in snapshot.files.values() if snapshot else ():
            image, key = file.preimage, absolute(self.state.cwd, file.path)
            if image is not None and image.contentHash:
                self.state.files.hashes(key, image.contentHash, image.size)

    def _settle(self, event: Event, agent: AgentState) -> None:
        """Completes the last change of each file of the prompt that is over by the digests of its snapshot."""
        snapshot = self.state.snapshots.pop(agent.prompt or "", None)
        if snapshot is not None:
            self.state.settled.append(snapshot.eventId)
        for file in snapshot.files.values() if snapshot else ():
            key = absolute(self.state.cwd, file.path)
            last = agent.edits.pop(key, None)
            post, pre = file.postimage, file.preimage
            if post is not None and post.contentHash:
                self.state.files.hashes(key, post.contentHash, post.size)
            if last is None or post is None or not post.contentHash:
                continue
            if last.after is not None and last.after.sha256 == post.contentHash:
                continue
            before = last.before
            if last.first and pre is not None and pre.contentHash:
                before = Content(sha256=pre.contentHash, bytes=pre.size)
            self.add(
                event,
                FileChange(
                    path=within(file.path, self._roots()),
                    change=last.change,
                    call_id=last.call,
                    before=before,
                    after=Content(sha256=post.contentHash, bytes=post.size),
                    diff=last.diff,
                    applied=True,
                    evidence="observed",
                    supersedes=last.record,
                ),
            )


# ---------------------------------------------------------------- how it says things


def _vcs(context: Context) -> Vcs | None:
    if not context.gitRoot:
        return None
    return Vcs(type="git", head=context.headCommit, branch=context.branch, remote=context.repository)


def _who(said: UserMessage, sub: bool) -> tuple[str, str, str | None]:
    source = said.source or ""
    if sub or source.startswith("agent-"):
        return "agent", "agent", "agent"
    if source in ("", "user"):
        if said.content.startswith("<system_notification>"):
            return "harness", "injected", "agent"
        return "human", "prompt", "queued" if said.delivery == "queued" else "prompt"
    if source.startswith(("skill", "command")):
        return "human", "command", "command"
    return "harness", "injected", "schedule" if "schedule" in source else None


def _attached(given: dict[str, Any]) -> Block:
    path = given.get("path")
    if given.get("type") in ("file", "directory") and isinstance(path, str):
        return File(path=path)
    return Other(meta={"dev.asrd.block": given})


def _tokens(said: NativeUsage) -> Usage:
    cached = (said.cacheReadTokens or 0) + (said.cacheWriteTokens or 0)
    return Usage(
        input=max(said.inputTokens - cached, 0) if said.inputTokens is not None else None,
        output=said.outputTokens,
        cache_read=said.cacheReadTokens,
        cache_write=said.cacheWriteTokens,
        reasoning=said.reasoningTokens,
    )


def _fits(row: UsageRow, model: str | None, called: bool) -> bool:
    """Whether a request of the store may be that of a response: its model, and whether it ended with calls."""
    return (
        row.initiator != "compaction"
        and model in (None, row.model)
        and (row.finish_reason is None or (row.finish_reason == "tool_calls") == called)
    )


def _finished(chunk: Any) -> str | None:
    """`finish_reason` of the first choice of a response as Chat Completions has it."""
    choices: Any = cast("dict[str, Any]", chunk).get("choices") if isinstance(chunk, dict) else None
    first: Any = cast("list[Any]", choices)[0] if isinstance(choices, list) and choices else None
    reason = cast("dict[str, Any]", first).get("finish_reason") if isinstance(first, dict) else None
    return reason if isinstance(reason, str) else None


def _figures(row: UsageRow) -> tuple[int | None, int | None]:
    return row.input_tokens, row.output_tokens


def _of_row(row: UsageRow, response: str | None) -> Inference:
    """The request that a row of the store tells of; named by the row where the response is not known."""
    native = NativeUsage(
        inputTokens=row.input_tokens,
        outputTokens=row.output_tokens,
        cacheReadTokens=row.cache_read_tokens,
        cacheWriteTokens=row.cache_write_tokens,
        reasoningTokens=row.reasoning_tokens,
    )
    meta: dict[str, Any] = {"dev.asrd.usage": _raw(native)}
    if row.initiator == "compaction":
        meta["dev.asrd.kind"] = row.initiator
    return Inference(
        inference_id=response or f"usage@{row.id}",
        id_source=None if response else "derived",
        model=row.model,
        effort=row.reasoning_effort,
        stop_reason=row.finish_reason,
        usage=_tokens(native),
        duration_ms=row.duration_ms,
        meta=meta,
    )


def _raw(said: NativeUsage) -> dict[str, int]:
    """The figures as given: `inputTokens` with cached tokens in it."""
    figures = {
        "inputTokens": said.inputTokens,
        "outputTokens": said.outputTokens,
        "cacheReadTokens": said.cacheReadTokens,
        "cacheWriteTokens": said.cacheWriteTokens,
        "reasoningTokens": said.reasoningTokens,
    }
    return {k: v for k, v in figures.items() if v is not None}


def _sum(metrics: dict[str, Metrics]) -> Usage:
    def total(name: str) -> int | None:
        values = [getattr(m.usage, name) for m in metrics.values() if m.usage is not None]
        return sum(values) if values and all(isinstance(v, int) for v in values) else None

    return _tokens(
        NativeUsage(
            inputTokens=total("inputTokens"),
            outputTokens=total("outputTokens"),
            cacheReadTokens=total("cacheReadTokens"),
            cacheWriteTokens=total("cacheWriteTokens"),
            reasoningTokens=total("reasoningTokens"),
        )
    )


def _exec(call: Call | None, said: ToolComplete, text: str) -> Exec | None:
    shell = call is not None and call.name in SHELLS
    if not shell and said.shellExecution is None:
        return None
    command = call.args.get("command") if call else None
    ran = Exec(command=command if isinstance(command, str) else None)
    metric = said.toolTelemetry.metrics.get("exit_code") if said.toolTelemetry else None
    if said.shellExecution is not None and said.shellExecution.exitCode is not None:
        ran.exit_code = said.shellExecution.exitCode
    elif found := _EXIT.search(text):
        ran.exit_code = int(found[1])
    elif isinstance(metric, int | float):
        ran.exit_code = int(metric)
    return ran


def _whole(diff: str, text: str) -> bool:
    """Whether a diff has every line of a text as what was there before."""
    old = [line[1:] for line in diff.split("\n") if line[:1] in (" ", "-") and not line.startswith("--- ")]
    return old == text.split("\n")


def _plan(args: dict[str, Any]) -> list[PlanItem]:
    """The checklist in Markdown that `update_todo` is given."""
    todos = args.get("todos")
    words = {" ": "pending", "x": "completed", "X": "completed", "-": "in_progress", "~": "in_progress"}
    found = [_TODO.match(line) for line in todos.split("\n")] if isinstance(todos, str) else []
    return [PlanItem(text=m[2], status=words[m[1]]) for m in found if m]


RECORDER = CopilotRecorder
