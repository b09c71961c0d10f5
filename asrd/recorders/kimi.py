"""Kimi Code (npm `@moonshot-ai/kimi-code`): a folder a session, a journal an agent.

Where: `~/.kimi-code/sessions/wd_<folder>_<hash>/session_<uuid>/`, moved by KIMI_CODE_HOME: `state.json` (rewritten in place)
and `agents/<agent>/wire.jsonl` (appended to), where `<agent>` is `main` or `agent-<n>`. Seen: 2.1.0, 2.1.1 (protocol 1.5).
The program's own version is in no file. Times are milliseconds.

    {"type":"metadata","protocol_version":"1.5","created_at":1796014487627}
    {"type":"profile.bind","agentId":"main","modelAlias":"mock-1","systemPrompt":"…","environmentDisclosure":{"cwd":"/home/dev/app"},…}
    {"type":"turn.prompt","agentId":"main","input":[{"type":"text","text":"…"}],"origin":{"kind":"user"},"promptId":"msg_1","turnId":0,"time":…}
    {"type":"context.append_message","message":{"role":"user","content":[…],"origin":{"kind":"injection","variant":"date_change"}},…}
    {"type":"llm.request","kind":"loop","provider":"openai","model":"mock-1","modelAlias":"mock-1","thinkingEffort":"on","turnStep":"0.1",…}
    {"type":"usage.record","model":"mock-1","usage":{"inputOther":5498,"output":115,"inputCacheRead":5503,"inputCacheCreation":0},"usageScope":"turn",…}
    {"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"2a02…","turnId":"0","step":1},…}
    {"type":"context.append_loop_event","event":{"type":"content.part","uuid":"c8e2…","stepUuid":"2a02…","part":{"type":"think","think":"…"}},…}
    {"type":"context.append_loop_event","event":{"type":"tool.call","stepUuid":"2a02…","toolCallId":"call_1","name":"Bash","args":{"command":"…"},…},…}
    {"type":"context.append_loop_event","event":{"type":"tool.result","toolCallId":"call_1","result":{"isError":true,
      "output":"… Command failed with exit code: 101.","durationMs":69}},…}
    {"type":"context.append_loop_event","event":{"type":"step.end","uuid":"2a02…","finishReason":"tool_use","usage":{…},"messageId":"resp-1"},…}
    {"type":"file_history.tracked","turnId":0,"path":"calc.py","entry":{"key":"…@v1","version":1,"contentHash":"e1a8…","size":32},…}
    {"type":"file_history.checkpoint","turnId":0,"phase":"end","entries":{"calc.py":{"version":2,"contentHash":"ba1a…","size":32}},…}
    {"type":"subagent.spawned","subagentId":"agent-0","parentToolCallId":"call_2","parentAgentId":"main",…}
    {"type":"forked","time":…}
    {"kind":"event","type":"agent.message.appended","message":{"message":{"role":"assistant",…},"meta":{…,"messageId":"resp-1"}},"time":…}

What is particular
    - A request is known from `llm.request` on, its figures from `usage.record`, its end from `step.end`: one response, and
      each later statement supersedes the one before. Its id is the step's; the provider's own is the record's nativeId.
      `usageScope` "session" is a compaction's call, no total. `inputOther` excludes cached tokens.
    - Lines with `kind: "event"` restate the turn, all at its end and with one time; prompts are restated at once.
    - Exit codes are text, and only failures have one: a `Bash` that did not fail, and is not in the background, ended with 0.
      One that went on in the background, as after its timeout, is a task: `task.terminated` has its code and its call.
    - `file_history` gives digests before a turn's first edit and after its end; what stands between is made from whole
      reads and the edits, and corrected at the end of the turn where the digest says otherwise.
    - A fork is a copy byte for byte up to the line `forked`; the other session's id is only in `state.json`.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast

import msgspec
from msgspec import Struct

from asrd.recorders._observed import Contents, absolute, commits, content_of, replaced
from asrd.recorders.base import Recorder, StreamKey, StreamOut, from_ms, sha256, within
from asrd.records import (
    Approval,
    Block,
    Capture,
    Compaction,
    Config,
    Content,
    CopyOf,
    Error,
    Evidence,
    Exec,
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
    VcsAction,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, Source

# ---------------------------------------------------------------- native records


class Head(Struct):
    """What every line has. `kind` "event" marks the second stream, which restates the first."""

    type: str
    time: int | float | None = None
    kind: str | None = None


class Origin(Struct):
    kind: str | None = None
    name: str | None = None
    variant: str | None = None


class Disclosure(Struct):
    cwd: str | None = None


class Metadata(Struct):
    protocol_version: str
    created_at: int | float | None = None


class Profile(Struct):
    modelAlias: str | None = None
    profileName: str | None = None
    thinkingEffort: str | None = None
    systemPrompt: str | None = None
    environmentDisclosure: Disclosure | None = None
    activeToolNames: list[str] | None = None


class ConfigUpdate(Struct):
    modelAlias: str | None = None
    thinkingEffort: str | None = None


class Mode(Struct):
    mode: str


class Prompt(Struct):
    input: list[dict[str, Any]]
    origin: Origin | None = None
    promptId: str | None = None
    turnId: int | str | None = None


class Said(Struct):
    role: str
    content: list[dict[str, Any]] | str
    id: str | None = None
    origin: Origin | None = None
    toolCallId: str | None = None


class Appended(Struct):
    message: Said


class EventMeta(Struct):
    messageId: str | None = None
    promptId: str | None = None
    userMessageId: str | None = None
    source: str | None = None


class EventSaid(Struct):
    role: str | None = None
    toolCallId: str | None = None
    content: str | list[dict[str, Any]] | None = None


class EventBody(Struct):
    message: EventSaid
    meta: EventMeta


class EventMessage(Struct):
    message: EventBody


class Request(Struct):
    kind: str | None = None
    provider: str | None = None
    model: str | None = None
    modelAlias: str | None = None
    thinkingEffort: str | None = None
    turnStep: str | None = None


class NativeUsage(Struct, frozen=True):
    """Tokens of one response; `inputOther` excludes cached ones."""

    inputOther: int | None = None
    output: int | None = None
    inputCacheRead: int | None = None
    inputCacheCreation: int | None = None


NOTHING_SPENT = NativeUsage(0, 0, 0, 0)
"""So a response is written whose end, and with it the usage, never came (2.1.0): its figures are unknown."""


class UsageRecord(Struct):
    usage: NativeUsage
    model: str | None = None
    usageScope: str | None = None


class Result(Struct):
    output: str | list[dict[str, Any]] | None = None
    isError: bool | None = None
    note: str | None = None
    durationMs: int | float | None = None


class LoopEvent(Struct):
    type: str
    uuid: str | None = None
    stepUuid: str | None = None
    turnId: str | int | None = None
    part: dict[str, Any] | None = None
    toolCallId: str | None = None
    name: str | None = None
    args: Any = None
    display: dict[str, Any] | None = None
    result: Result | None = None
    finishReason: str | None = None
    usage: NativeUsage | None = None
    messageId: str | None = None
    llmFirstTokenLatencyMs: int | float | None = None
    llmStreamDurationMs: int | float | None = None


class Loop(Struct):
    event: LoopEvent


class Tool(Struct):
    name: str


class Tools(Struct):
    tools: list[Tool]
    hash: str | None = None


class TurnEnded(Struct):
    turnId: int | str | None = None
    reason: str | None = None
    error: dict[str, Any] | None = None


class Entry(Struct):
    contentHash: str | None = None
    size: int | None = None


class Tracked(Struct):
    path: str
    entry: Entry | None = None


class Checkpoint(Struct):
    entries: dict[str, Entry | None]
    phase: str | None = None


class AskedFor(Struct):
    id: str
    kind: str | None = None
    toolCallId: str | None = None


class Answer(Struct):
    decision: str | None = None
    selectedLabel: str | None = None


class Answered(Struct):
    id: str
    response: Any = None


class Decided(Struct):
    toolCallId: str | None = None
    sessionApprovalRule: Any = None
    result: Answer | None = None


class Spawned(Struct):
    subagentId: str
    parentToolCallId: str | None = None
    parentAgentId: str | None = None


class CompactionBegun(Struct):
    source: str | None = None


class Compacted(Struct):
    summary: str | None = None
    tokensBefore: int | None = None
    tokensAfter: int | None = None
    compactedCount: int | None = None


class AgentEntry(Struct):
    type: str | None = None
    parentAgentId: str | None = None


class Sidecar(Struct):
    """`state.json`. `workDir` is the older name of `cwd`."""

    id: str | None = None
    cwd: str | None = None
    workDir: str | None = None
    title: str | None = None
    forkedFrom: str | None = None
    agents: dict[str, AgentEntry] = {}


class Todo(Struct):
    """One step of the TodoList tool's `todos`."""

    title: str | None = None
    content: str | None = None
    status: str | None = None


class TaskInfo(Struct):
    """A command or a sub-agent in the background. Times in milliseconds."""

    status: str | None = None
    kind: str | None = None
    startedAt: int | float | None = None
    endedAt: int | float | None = None
    exitCode: int | None = None
    parentToolCallId: str | None = None


class Terminated(Struct):
    """`task.terminated`."""

    info: TaskInfo


_decoders = {
    name: msgspec.json.Decoder(kind)
    for name, kind in {
        "metadata": Metadata, "profile.bind": Profile, "config.update": ConfigUpdate, "permission.set_mode": Mode,
        "turn.prompt": Prompt, "turn.steer": Prompt, "context.append_message": Appended,
        "agent.message.appended": EventMessage, "llm.request": Request, "usage.record": UsageRecord,
        "context.append_loop_event": Loop, "llm.tools_snapshot": Tools, "turn.ended": TurnEnded, "turn.cancel": TurnEnded,
        "file_history.tracked": Tracked, "file_history.checkpoint": Checkpoint, "interaction.request": AskedFor,
        "interaction.resolved": Answered, "permission.record_approval_result": Decided, "subagent.spawned": Spawned,
        "full_compaction.begin": CompactionBegun, "context.apply_compaction": Compacted,
        "task.terminated": Terminated,
    }.items()
}  # fmt: skip
_head = msgspec.json.Decoder(Head)
_sidecar = msgspec.json.Decoder(Sidecar)
_object = msgspec.json.Decoder(dict[str, Any])

SKIPPED = {
    "agent.turn.started": "turn-restated",
    "agent.turn.ended": "turn-restated",
    "prompt.completed": "turn-restated",
    "prompt.accepted": "turn-restated",
    "subagent.started": "spawn-restated",
    "full_compaction.complete": "compaction-restated",
    "token_counting.measured": "context-size",
    "token_counting.rebased": "context-size",
    "token_counting.truncated": "context-size",
    "token_counting.turn_recorded": "context-size",
    "context_size.measured": "context-size",
    "context.update_token_count": "context-size",
}

KINDS = {
    "Read": "read", "ReadMediaFile": "read", "Write": "edit", "Edit": "edit", "Grep": "search", "Glob": "search",
    "Bash": "execute", "WebSearch": "search", "FetchURL": "fetch", "Agent": "delegate", "AgentSwarm": "delegate",
    "TodoList": "plan", "EnterPlanMode": "plan", "ExitPlanMode": "plan",
}  # fmt: skip

ORIGINS = {
    "user": ("human", "prompt", "prompt"),
    "skill_activation": ("human", "command", "command"),
    "plugin_command": ("human", "command", "command"),
    "shell_command": ("human", "command", "command"),
    "system_trigger": ("harness", "injected", None),
    "injection": ("harness", "injected", None),
    "compaction_summary": ("harness", "summary", None),
    "task": ("harness", "injected", "agent"),
    "cron_job": ("harness", "injected", "schedule"),
    "cron_missed": ("harness", "injected", "schedule"),
    "hook_result": ("harness", "hook", "hook"),
    "retry": ("harness", "injected", "resume"),
}
"""Author, origin and what it triggers, by a native origin's kind."""

_EXIT = re.compile(
    r"(?:^|\n)Command failed with exit code: (-?\d+)\.?(?:\s*|\n\ntask_id: [\w-]+\noutput_size_bytes: \d+\n.*)$"
)
"""The last words of a command that failed; behind them only where an output is that was too large to keep (2.1.0)."""
_TIMEOUT = re.compile(r"(?:^|\n)Command (?:was )?(?:killed by timeout|timed out)\b")
_RUNNING = re.compile(r"task_id: \S+\n(?:[^\n]*\n)*?status: running(?:\n|$)")
"""How the result of a command begins that goes on in the background (2.1.0)."""
KEPT = 64
"""Commands in the background whose end is waited for, in one agent."""
_REJECTED = re.compile(r"(?i)\b(?:rejected|denied) by (?:the )?(?:user|permission|policy|rule)")
CLOSED = "Session closed"
"""The result of a call that the end of the program broke off (Ctrl-C, 2.1.0)."""
_NUMBERED = re.compile(r"^\s*\d+\t(.*)$", re.S)


# ---------------------------------------------------------------- state


class Call(Struct):
    """A tool call without its result yet."""

    name: str
    args: dict[str, Any]
    cwd: str | None = None


class Behind(Struct):
    """A command that went on in the background: the record of its result so far, and what that says."""

    record: str
    text: str
    command: str | None = None
    cwd: str | None = None


class Asked(Struct):
    """The request at hand: its inference's id, its last record, and what is known of it."""

    id: str
    derived: bool
    record: str
    step: str | None = None
    kind: str | None = None
    model: str | None = None
    provider: str | None = None
    effort: str | None = None
    usage: NativeUsage | None = None
    ended: bool = False


class Edited(Struct):
    """The last change of a file in the turn at hand."""

    record: str
    call: str
    count: int
    change: str
    before: Content | None = None
    after: Content | None = None


class AgentState(Struct):
    """What is kept of one agent between its lines."""

    id: str
    turn: str | None = None
    turn_open: bool = False
    step: str | None = None
    attempts: int = 0
    request: Asked | None = None
    said: list[str] = []
    """Prompts not yet restated as context: ids or digests."""
    told: list[str] = []
    """Prompt ids, response ids and result ids of the turn at hand, to know restatements by."""
    calls: dict[str, Call] = {}
    behind: dict[str, Behind] = {}
    """Commands in the background by call, at most `KEPT`."""
    asked: dict[str, str | None] = {}
    """Call by open approval request."""
    decided: dict[str, str] = {}
    """Decision by call, until its result."""
    files: Contents = msgspec.field(default_factory=Contents)
    edits: dict[str, Edited] = {}
    trigger: str | None = None
    copying: bool = False


class State(Struct):
    """What is kept of a session: its agents, and what `state.json` said."""

    session: str = ""
    cwd: str | None = None
    root: str | None = None
    """The workspace folder that headers name."""
    title: str | None = None
    forked_from: str | None = None
    stated: bool = False
    """Whether `state.json` was seen, which says of a fork."""
    parents: dict[str, str] = {}
    spawned: dict[str, tuple[str | None, str]] = {}
    """Call and parent of a sub-agent, as its parent's journal says."""
    agents: dict[str, AgentState] = {}
    copied: list[str] = []
    """Sub-agents that were spawned in the other session."""


# ---------------------------------------------------------------- the recorder


class KimiRecorder(Recorder):
    harness: ClassVar[str] = "kimi"
    roots: ClassVar[tuple[Root, ...]] = (Root(".kimi-code", env=("KIMI_CODE_HOME",)),)
    places: ClassVar[tuple[Place, ...]] = (
        Place("sessions/*/*/agents/*/wire.jsonl"),
        Place("sessions/*/*/state.json", "document", sidecar=True),
    )
    versions: ClassVar[tuple[str, ...]] = ("2.1.0", "2.1.1")
    State: ClassVar[type[Struct]] = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        parts = path.split("/")
        if len(parts) == 6 and parts[3] == "agents" and parts[5] == "wire.jsonl":
            agent = parts[4]
            name = f"{parts[2]}/{agent}"
            return Located(
                "/".join(parts[:3]),
                name,
                "0" if agent == "main" else f"1{agent}",
                beside="/".join([*parts[:3], "state.json"]),
            )
        if len(parts) == 4 and parts[3] == "state.json":
            return Located("/".join(parts[:3]), f"{parts[2]}/state")
        return None

    @classmethod
    def claims(cls, head: bytes) -> bool:
        first = head.split(b"\n", 1)[0]
        return first.startswith(b'{"type":"metadata","protocol_version"') and (
            b'"created_at"' in first or b'"agentId":' in head
        )

    def receive(self, source: Source, item: Line | Row) -> None:
        if isinstance(item, Row):
            self._sidecar(_sidecar.decode(item.data))
            return
        head = _head.decode(item.data)
        agent = self._agent(self._agent_of(source.name))
        if head.type in SKIPPED:
            self.out.skip(SKIPPED[head.type])
            return
        decoder = _decoders.get(head.type)
        said: Any = decoder.decode(item.data) if decoder is not None else None
        at = from_ms(head.time)
        match said:
            case Metadata():
                self._metadata(agent, said)
            case Profile():
                self._profile(agent, said, at)
            case ConfigUpdate():
                self.add(agent, Config(model=said.modelAlias, effort=said.thinkingEffort), at)
            case Mode():
                self.add(agent, Config(mode=said.mode), at)
            case Prompt():
                self._prompt(agent, said, at, steer=head.type == "turn.steer")
            case Appended():
                self._appended(agent, said.message, at)
            case EventMessage():
                self._restated(agent, said.message, item, at)
            case Request():
                self._request(agent, said, at, head.time)
            case UsageRecord():
                self._usage(agent, said, at, head.time)
            case Loop():
                self._loop(agent, said.event, at, item)
            case Tools():
                self.add(agent, Config(tools=[t.name for t in said.tools], meta={"dev.asrd.toolsHash": said.hash}), at)
            case TurnEnded():
                self._turn_ended(agent, said, at, cancelled=head.type == "turn.cancel")
            case Tracked():
                self._tracked(agent, said)
            case Checkpoint():
                self._checkpoint(agent, said, at)
            case AskedFor() if said.kind == "approval":
                agent.asked[said.id] = said.toolCallId
                self.add(agent, Approval(phase="requested", call_id=said.toolCallId), at, said.id)
            case Answered() if said.id in agent.asked:
                self._decided(agent, agent.asked.pop(said.id), _answer(said.response), None, at, said.id)
            case Decided():
                self._decided(agent, said.toolCallId, said.result, said.sessionApprovalRule, at, None)
            case Spawned():
                self._spawned(agent, said, at)
            case CompactionBegun():
                agent.trigger = said.source
                self.native(agent, item, at)
            case Compacted():
                self._compacted(agent, said, at)
            case Terminated() if said.info.kind == "process" and said.info.parentToolCallId in agent.behind:
                self._exited(agent, said.info, item, at)
            case _:
                if head.type == "forked":
                    self._forked(agent, at)
                else:
                    self.native(agent, item, at)

    def main(self) -> StreamOut:
        """The stream of the agent whose source is at hand; the session's main one where there is none."""
        name = self.out.source_name
        return self._stream(self._agent("main" if not name or name.endswith("/state") else self._agent_of(name)))

    # streams

    def _agent_of(self, name: str) -> str:
        return name.rsplit("/", 1)[1] if "/" in name else "main"

    def _agent(self, ident: str) -> AgentState:
        found = self.state.agents.get(ident)
        if found is None:
            copying = bool(self.state.forked_from) and (ident == "main" or ident in self.state.copied)
            found = self.state.agents[ident] = AgentState(ident, copying=copying)
        return found

    def _session(self) -> str:
        state = self.state
        if not state.session:
            state.session = self.group.rsplit("/", 1)[-1].removesuffix(".jsonl")
        return state.session

    def _key(self, agent: str) -> StreamKey:
        session = self._session()
        return StreamKey("kimi", session) if agent == "main" else StreamKey("kimi", agent, session)

    def _stream(self, agent: AgentState, created: int | float | None = None) -> StreamOut:
        key = self._key(agent.id)
        found = self.out.stream(key)
        if found is not None:
            return found
        state = self.state
        if state.root is None:
            state.root = state.cwd
        stream = self.open(
            key,
            started_at=from_ms(created),
            lineage=self._lineage(agent.id),
            cwd=state.root,
            title=state.title if agent.id == "main" else None,
        )
        for profile, facet, how, reason in (
            ("usage", "usage.reasoning", "unavailable", "Kimi Code gives no reasoning tokens"),
            ("usage", "usage_total", "unavailable", "Kimi Code declares no total of its own"),
            ("coding", "exec.exitCode", "partial", "text of failed commands; 0 where a command did not fail"),
            ("core", "session.version", "unavailable", "the program's version is in no file"),
        ):
            stream.add(Capture(profile=profile, facet=facet, state=how, reason=reason))
        return stream

    def _lineage(self, agent: str) -> Lineage:
        state = self.state
        if agent == "main":
            if state.forked_from is None:
                return Lineage(root=True) if state.stated else Lineage()
            return Lineage(
                root=False,
                parent=LineageParent(agent="kimi", session_id=state.forked_from),
                relation="forked_from",
                evidence=Evidence(kind="native-field", field="state.json forkedFrom", value=state.forked_from),
            )
        call, parent = state.spawned.get(agent, (None, state.parents.get(agent, "main")))
        key = self._key(parent)
        if agent in state.spawned:
            evidence = Evidence(kind="native-field", field="subagent.spawned.subagentId", value=agent)
        elif agent in state.parents:
            evidence = Evidence(kind="native-field", field="state.json agents[].parentAgentId", value=parent)
        else:
            evidence = Evidence(kind="native-path", field="agents/<agent>/wire.jsonl", value=agent)
        return Lineage(
            root=False,
            parent=LineageParent(
                agent="kimi", session_id=key.session_id, namespace=key.namespace or None, call_id=call
            ),
            relation="spawned_by",
            evidence=evidence,
        )

    def add(self, agent: AgentState, record: Record, at: str | None, native_id: str | None = None) -> str:
        """Adds a record to the agent's stream, with its turn, and as a copy where it stands before `forked`."""
        stream = self._stream(agent)
        record.at = at
        if record.turn_id is None:
            record.turn_id = agent.turn
        record.native_id = record.native_id or native_id
        if agent.copying and self.state.forked_from is not None:
            record.copy_of = CopyOf(session_id=self.state.forked_from, native_id=record.native_id)
        return stream.add(record)

    def native(self, agent: AgentState, item: Line | Row, at: str | None) -> None:
        data = _object.decode(item.data)
        self.add(agent, Native(native_type=str(data.get("type")), data=data), at)

    def _roots(self) -> list[WorkspaceRoot] | None:
        return [WorkspaceRoot(id="r1", path=self.state.root)] if self.state.root else None

    # what a session is

    def _sidecar(self, said: Sidecar) -> None:
        state = self.state
        state.session = said.id or self._session()
        state.stated = True
        state.cwd = said.cwd or said.workDir or state.cwd
        for ident, agent in said.agents.items():
            if agent.parentAgentId:
                state.parents[ident] = agent.parentAgentId
        title, state.title = state.title, said.title or state.title
        fork, state.forked_from = state.forked_from, said.forkedFrom or state.forked_from
        main = self.out.stream(self._key("main"))
        if main is None:
            self.out.skip("state-for-the-header")
            return
        if state.title and state.title != title:
            main.add(Config(title=state.title))
        elif state.forked_from and fork is None:
            main.add(self._fork_link())
        else:
            self.out.skip("state-restated")

    def _metadata(self, agent: AgentState, said: Metadata) -> None:
        self._stream(agent, said.created_at)
        data = {"type": "metadata", **msgspec.to_builtins(said)}
        self.add(agent, Native(native_type="metadata", data=data), from_ms(said.created_at))

    def _profile(self, agent: AgentState, said: Profile, at: str | None) -> None:
        state = self.state
        if said.environmentDisclosure and said.environmentDisclosure.cwd:
            state.cwd = said.environmentDisclosure.cwd
        meta = {"dev.asrd.profile": said.profileName} if said.profileName else None
        self.add(
            agent,
            Config(
                model=said.modelAlias,
                effort=said.thinkingEffort,
                cwd=state.cwd if state.cwd != state.root else None,
                tools=said.activeToolNames,
                meta=meta,
            ),
            at,
        )
        if said.systemPrompt:
            self.add(
                agent,
                Message(
                    role="system",
                    author="harness",
                    origin="injected",
                    audience="model",
                    content=[Text(text=said.systemPrompt)],
                ),
                at,
            )

    def _fork_link(self) -> Link:
        source = self.state.forked_from or ""
        return Link(
            relation="forked_from",
            target=LinkTarget(agent="kimi", session_id=source),
            evidence=Evidence(kind="native-field", field="state.json forkedFrom", value=source),
        )

    def _forked(self, agent: AgentState, at: str | None) -> None:
        agent.copying = False
        if agent.id == "main" and self.state.forked_from:
            self.add(agent, self._fork_link(), at)
        else:
            self.add(agent, Native(native_type="forked", data={"type": "forked"}), at)
        agent.turn, agent.turn_open = None, False

    def _spawned(self, agent: AgentState, said: Spawned, at: str | None) -> None:
        parent = said.parentAgentId or agent.id
        self.state.spawned[said.subagentId] = (said.parentToolCallId, parent)
        if agent.copying:
            self.state.copied.append(said.subagentId)
        key = self._key(said.subagentId)
        self.add(
            agent,
            Link(
                relation="spawned",
                target=LinkTarget(agent="kimi", session_id=key.session_id, namespace=key.namespace),
                call_id=said.parentToolCallId,
                evidence=Evidence(kind="native-field", field="subagent.spawned.subagentId", value=said.subagentId),
            ),
            at,
        )

    # turns and prompts

    def _prompt(self, agent: AgentState, said: Prompt, at: str | None, steer: bool) -> None:
        author, origin, trigger = _who(said.origin)
        content = _blocks(said.input)
        if not steer:
            agent.turn = str(said.turnId) if said.turnId is not None else said.promptId or f"prompt@{at}"
            agent.turn_open, agent.step, agent.request = True, None, None
            agent.told, agent.edits, agent.said = [], {}, []
            self.add(agent, Turn(turn_id=agent.turn, phase="start", trigger=trigger), at)
        if said.promptId:
            agent.told.append(said.promptId)
        agent.said.append(said.promptId or _digest(content))
        self.add(
            agent,
            Message(role="user", author=author, origin=origin, message_id=said.promptId, content=content),
            at,
            said.promptId,
        )

    def _appended(self, agent: AgentState, said: Said, at: str | None) -> None:
        content = _blocks(said.content)
        if said.origin is not None and said.origin.kind == "task":
            agent.told.append(_digest(content))
        for name in (said.id, _digest(content)):
            if name is not None and name in agent.said:
                agent.said.remove(name)
                self.out.skip("prompt-restated")
                return
        author, origin, _ = _who(said.origin)
        if said.role == "assistant":
            author, origin = "agent", None
        elif said.origin is None:
            author, origin = None, None
        meta = {"dev.asrd.variant": said.origin.variant} if said.origin and said.origin.variant else None
        self.add(
            agent,
            Message(
                role=said.role if said.role != "tool" else "user",
                author="tool" if said.role == "tool" else author,
                origin=origin,
                audience="model" if origin == "injected" else None,
                content=content,
                meta=meta,
            ),
            at,
            said.id,
        )

    def _restated(self, agent: AgentState, said: EventBody, item: Line | Row, at: str | None) -> None:
        meta = said.meta
        if meta.source == "salvaged":  # what was there of a response that was broken off; its parts follow
            self.native(agent, item, at)
            return
        ids = (meta.promptId, meta.userMessageId, meta.messageId, said.message.toolCallId)
        note = _blocks(said.message.content or "") if meta.source == "notify" else []
        if any(i in agent.told for i in (*ids, _digest(note) if note else None) if i):
            self.out.skip("message-restated")
        elif meta.source == "notify" and not note:
            self.out.skip("empty-note")
        elif note:  # of a task whose end was waited for: it stands nowhere else
            self.add(agent, Message(role="user", author="harness", origin="injected", content=note), at)

    def _turn_ended(self, agent: AgentState, said: TurnEnded, at: str | None, cancelled: bool) -> None:
        turn = str(said.turnId) if said.turnId is not None else agent.turn
        if turn is None or (turn == agent.turn and not agent.turn_open):
            self.out.skip("turn-restated")
            return
        if turn == agent.turn:
            agent.turn_open = False
        reason = "cancelled" if cancelled else said.reason or ""
        known = {"completed": "completed", "done": "completed", "failed": "failed", "error": "failed"}
        stopped = {"cancelled": "interrupted", "aborted": "interrupted", "interrupted": "interrupted"}
        error = None
        if said.error:
            error = Error(code=_text(said.error.get("code")), message=_text(said.error.get("message")))
        self.add(
            agent,
            Turn(turn_id=turn, phase="end", status={**known, **stopped}.get(reason, reason or None), error=error),
            at,
        )

    # requests and responses

    def _open(self, agent: AgentState, asked: Asked, at: str | None) -> Asked:
        asked.record = self.add(agent, _inference(asked), at)
        agent.request = asked
        return asked

    def _request(self, agent: AgentState, said: Request, at: str | None, time: int | float | None) -> None:
        step = agent.step if said.kind in (None, "loop") else None
        if step is None:
            name, derived = f"{said.kind or 'request'}@{time:.0f}" if time else f"{said.kind}@{at}", True
        else:
            agent.attempts += 1
            derived = agent.attempts > 1
            name = f"{step}#{agent.attempts}" if derived else step
        self._open(
            agent,
            Asked(
                name,
                derived,
                "",
                step,
                said.kind,
                said.model or said.modelAlias,
                said.provider,
                said.thinkingEffort,
            ),
            at,
        )

    def _of_step(self, agent: AgentState, step: str | None, at: str | None) -> Asked:
        """The request of a step; opened where the source has none."""
        asked = agent.request
        if asked is not None and (step is None or asked.step == step):
            return asked
        step = step or agent.step or f"step@{at}"
        return self._open(agent, Asked(step, False, "", step), at)

    def _usage(self, agent: AgentState, said: UsageRecord, at: str | None, time: int | float | None) -> None:
        asked = agent.request
        if asked is not None and asked.ended and asked.usage == said.usage:
            asked.ended = False
            self.out.skip("usage-restated")
            return
        scope = said.usageScope or "turn"
        other = asked is None or asked.usage is not None or (scope == "session") != (asked.step is None)
        if other and scope == "turn" and agent.step is not None and (asked is None or asked.step != agent.step):
            asked = self._of_step(agent, agent.step, at)
        elif other:
            name = f"usage@{time:.0f}" if time else f"usage@{at}"
            asked = Asked(name, True, "", None, scope)
        assert asked is not None
        asked.model = asked.model or said.model
        asked.usage = said.usage
        inference = _inference(asked)
        inference.supersedes = asked.record or None
        asked.record = self.add(agent, inference, at)
        if asked.step is not None:
            agent.request = asked
        elif agent.request is asked:
            agent.request = None

    def _step_end(self, agent: AgentState, said: LoopEvent, at: str | None) -> None:
        asked = self._of_step(agent, said.uuid, at)
        restated = asked.usage is None and said.usage is not None
        asked.usage = asked.usage or said.usage
        asked.ended = restated
        inference = _inference(asked)
        inference.supersedes = asked.record
        inference.stop_reason = said.finishReason
        inference.native_id = said.messageId
        latency = {"firstTokenMs": said.llmFirstTokenLatencyMs, "streamMs": said.llmStreamDurationMs}
        if any(v is not None for v in latency.values()):
            inference.meta = {"dev.asrd.latency": {k: v for k, v in latency.items() if v is not None}}
        if said.finishReason == "error":
            inference.error = Error(code="error")
        asked.record = self.add(agent, inference, at)
        if said.messageId:
            agent.told.append(said.messageId)
        agent.step = None

    def _loop(self, agent: AgentState, said: LoopEvent, at: str | None, item: Line | Row) -> None:
        match said.type:
            case "step.begin":
                agent.step, agent.attempts = said.uuid, 0
                self.out.skip("step-begin")
            case "content.part" if said.part is not None:
                asked = self._of_step(agent, said.stepUuid, at)
                message = Message(role="assistant", author="agent", content=_blocks([said.part]), inference_id=asked.id)
                self.add(agent, message, at, said.uuid)
            case "tool.call" if said.toolCallId and said.name is not None:
                self._call(agent, said, at)
            case "tool.result" if said.toolCallId and said.result is not None:
                self._result(agent, said.toolCallId, said.result, at)
            case "step.end" if said.uuid:
                self._step_end(agent, said, at)
            case _:
                self.native(agent, item, at)

    # tools

    def _call(self, agent: AgentState, said: LoopEvent, at: str | None) -> None:
        assert said.toolCallId and said.name is not None
        asked = self._of_step(agent, said.stepUuid, at)
        args = _arguments(said.args)
        display = said.display or {}
        agent.calls[said.toolCallId] = Call(said.name, args, _text(display.get("cwd")) or _text(args.get("cwd")))
        kind = KINDS.get(said.name, "mcp" if said.name.startswith("mcp__") else "other")
        self.add(
            agent,
            ToolCall(call_id=said.toolCallId, name=said.name, kind=kind, input=args, inference_id=asked.id),
            at,
            said.uuid,
        )
        if said.name == "TodoList" and (items := _plan(args)):
            self.add(agent, Plan(items=items, call_id=said.toolCallId), at)

    def _result(self, agent: AgentState, ident: str, result: Result, at: str | None) -> None:
        call = agent.calls.pop(ident, None)
        decision = agent.decided.pop(ident, None)
        content = _blocks(result.output) if result.output is not None else []
        text = "\n".join(b.text for b in content if isinstance(b, Text))
        failed = bool(result.isError)
        status = "failed" if failed else "completed"
        if failed and (decision == "deny" or _REJECTED.search(text[:400])):
            status = "denied"
        elif failed and (decision == "cancelled" or text == CLOSED):
            status = "cancelled"
        ran = self._exec(call, text, failed, status, result.durationMs) if call else None
        meta: dict[str, Any] = {}
        if result.note:
            meta["dev.asrd.note"] = result.note
        if result.durationMs is not None and ran is None:
            meta["dev.asrd.durationMs"] = result.durationMs
        agent.told.append(ident)
        record = self.add(
            agent,
            ToolResult(
                call_id=ident,
                linkage="exact" if call else "none",
                status=status,
                content=content or None,
                exec=ran,
                meta=meta or None,
            ),
            at,
        )
        if call is None:
            return
        if ran is not None and _RUNNING.match(text):
            agent.behind[ident] = Behind(record, text, ran.command, call.cwd)
            while len(agent.behind) > KEPT:
                del agent.behind[next(iter(agent.behind))]
        if ran is not None:
            agent.files.doubt()
            for commit in commits(ran.command, text):
                self.add(agent, VcsAction(action="commit", commit=commit, evidence="observed", call_id=ident), at)
        elif not failed:
            self._touched(agent, ident, call, result.note or "", text, at)

    def _exited(self, agent: AgentState, info: TaskInfo, item: Line | Row, at: str | None) -> None:
        """A command that went on in the background ended: its call's result is completed."""
        one = agent.behind.pop(info.parentToolCallId or "")
        if info.exitCode is None:
            self.native(agent, item, at)
            return
        both = info.startedAt is not None and info.endedAt is not None
        ran = Exec(
            command=one.command,
            exit_code=info.exitCode,
            duration_ms=(info.endedAt or 0) - (info.startedAt or 0) if both else None,
            timed_out=True if info.status == "timed_out" else None,
        )
        if one.cwd:
            ran.cwd = within(one.cwd, self._roots())
        self.add(
            agent,
            ToolResult(
                call_id=info.parentToolCallId or "",
                linkage="exact",
                status="failed" if info.exitCode else "completed",
                content=[Text(text=one.text)],
                exec=ran,
                supersedes=one.record,
            ),
            at,
        )

    def _exec(self, call: Call, text: str, failed: bool, status: str, duration: int | float | None) -> Exec | None:
        if call.name != "Bash":
            return None
        ran = Exec(command=_text(call.args.get("command")), duration_ms=duration)
        if call.cwd:
            ran.cwd = within(call.cwd, self._roots())
        if status in ("denied", "cancelled"):
            return ran
        if found := _EXIT.search(text):
            ran.exit_code = int(found[1])
        elif failed:
            ran.timed_out = True if _TIMEOUT.search(text) else None
        elif not call.args.get("run_in_background") and not _RUNNING.match(text):
            ran.exit_code = 0
        return ran

    # files

    def _touched(self, agent: AgentState, ident: str, call: Call, note: str, text: str, at: str | None) -> None:
        path = _text(call.args.get("path"))
        if path is None:
            return
        key = absolute(self.state.cwd, path)
        if call.name == "Read":
            if (whole := _whole(note, text)) is not None:
                agent.files.shows(key, whole + "\n", whole)
            return
        if call.name not in ("Edit", "Write"):
            return
        known = agent.files.get(key)
        before = Content(sha256=known.sha256, bytes=known.bytes) if known and known.sha256 else None
        after = None
        meta = None
        change = "create" if known and known.sha256 is None else "modify"
        if call.name == "Edit":
            old, new = _text(call.args.get("old_string")), _text(call.args.get("new_string"))
            if known and known.text is not None and old is not None and new is not None:
                every = bool(call.args.get("replace_all"))
                after = replaced(known.text, [(old, new, every)])
            if after is None or (known and known.doubtful):
                meta = {"dev.asrd.certain": False} if after is not None else None
        elif call.args.get("mode") == "append":
            after = known.text + str(call.args.get("content")) if known and known.text is not None else None
        else:
            after = _text(call.args.get("content"))
        record = self.add(
            agent,
            FileChange(
                path=within(path, self._roots()),
                change=change,
                call_id=ident,
                before=before,
                after=content_of(after) if after is not None else None,
                applied=True,
                evidence="derived" if call.name == "Edit" else "reported",
                meta=meta,
            ),
            at,
        )
        last = agent.edits.get(key)
        agent.edits[key] = Edited(
            record,
            ident,
            last.count + 1 if last else 1,
            change,
            before,
            content_of(after) if after is not None else None,
        )
        if after is None:
            agent.files.forget(key)
        else:
            agent.files.is_(key, after)

    def _tracked(self, agent: AgentState, said: Tracked) -> None:
        """The digest of a file just before it is edited (no digest: there is no such file)."""
        key = absolute(self.state.cwd, said.path)
        if said.entry is not None and said.entry.contentHash:
            agent.files.hashes(key, said.entry.contentHash, said.entry.size)
        else:
            agent.files.hashes(key, "", None)
            known = agent.files.get(key)
            if known is not None:
                known.sha256 = None
        self.out.skip("digest-for-the-edit")

    def _checkpoint(self, agent: AgentState, said: Checkpoint, at: str | None) -> None:
        """Digests at the end of a turn: they say what the last edits came to, and correct what was derived."""
        stated = False
        for path, entry in said.entries.items():
            key = absolute(self.state.cwd, path)
            if entry is None or not entry.contentHash:
                agent.files.forget(key)
                continue
            after = Content(sha256=entry.contentHash, bytes=entry.size)
            last = agent.edits.get(key)
            agent.files.hashes(key, entry.contentHash, entry.size)
            if said.phase != "end" or last is None or (last.after and last.after.sha256 == after.sha256):
                continue
            stated = True
            alone = last.count == 1 or last.after is None
            self.add(
                agent,
                FileChange(
                    path=within(path, self._roots()),
                    change=last.change,
                    call_id=last.call,
                    before=last.before if alone else None,
                    after=after,
                    applied=True,
                    evidence="observed",
                    supersedes=last.record,
                ),
                at,
            )
        if not stated:
            self.out.skip("digest-confirmed")

    # approvals and compaction

    def _decided(
        self, agent: AgentState, call: str | None, said: Answer | None, rule: Any, at: str | None, native_id: str | None
    ) -> None:
        words = {"approved": "allow", "rejected": "deny", "cancelled": "cancelled"}
        decision = words.get(said.decision or "", said.decision) if said else None
        label = (said.selectedLabel or "").lower() if said else ""
        if decision == "allow" and (rule or "session" in label or "always" in label):
            decision = "allow_always"
        if call is not None and agent.decided.get(call) == decision:
            self.out.skip("approval-restated")
            return
        if call is not None and decision is not None:
            agent.decided[call] = decision
        self.add(agent, Approval(phase="decided", call_id=call, decision=decision), at, native_id)

    def _compacted(self, agent: AgentState, said: Compacted, at: str | None) -> None:
        trigger, agent.trigger = agent.trigger, None
        meta = {"dev.asrd.compacted": said.compactedCount} if said.compactedCount is not None else None
        self.add(
            agent,
            Compaction(
                trigger=trigger,
                tokens_before=said.tokensBefore,
                tokens_after=said.tokensAfter,
                summary=said.summary,
                meta=meta,
            ),
            at,
        )


# ---------------------------------------------------------------- how it says things


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _arguments(value: Any) -> dict[str, Any]:
    """A call's input as an object; anything else is wrapped."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"raw": value}


def _answer(value: Any) -> Answer | None:
    try:
        return msgspec.convert(value, Answer)
    except msgspec.ValidationError:
        return None


def _who(origin: Origin | None) -> tuple[str | None, str | None, str | None]:
    if origin is None or origin.kind is None:
        return None, None, None
    if origin.kind == "system_trigger" and origin.name == "subagent":
        return "agent", "agent", "agent"
    return ORIGINS.get(origin.kind, ("harness", origin.kind, None))


def _blocks(parts: str | list[dict[str, Any]]) -> list[Block]:
    if isinstance(parts, str):
        return [Text(text=parts)] if parts else list[Block]()
    found: list[Block] = []
    for part in parts:
        text, think = part.get("text"), part.get("think")
        if part.get("type") == "text" and isinstance(text, str):
            found.append(Text(text=text))
        elif part.get("type") == "think" and isinstance(think, str):
            found.append(Thinking(text=think) if think else Thinking(redacted=True))
        else:
            found.append(Other(meta={"dev.asrd.block": part}))
    return found


def _digest(content: list[Block]) -> str:
    return sha256(msgspec.json.encode(content))


def _inference(asked: Asked) -> Inference:
    usage = None
    if asked.usage is not None and asked.usage != NOTHING_SPENT:
        usage = Usage(
            input=asked.usage.inputOther,
            output=asked.usage.output,
            cache_read=asked.usage.inputCacheRead,
            cache_write=asked.usage.inputCacheCreation,
        )
    return Inference(
        inference_id=asked.id,
        id_source="derived" if asked.derived else None,
        model=asked.model,
        provider=asked.provider,
        effort=asked.effort,
        usage=usage,
        meta={"dev.asrd.kind": asked.kind} if asked.kind not in (None, "loop", "turn") else None,
    )


def _whole(note: str, text: str) -> str | None:
    """The lines of a read that showed a whole file, without its last newline (the source does not say whether it has one)."""
    if "starting from line 1." not in note or "End of file reached" not in note or "truncated" in note.lower():
        return None
    lines = [_NUMBERED.match(line) for line in text.split("\n")]
    found = [m[1] for m in lines if m]
    return "\n".join(found) if len(found) == len(lines) else None


def _plan(args: dict[str, Any]) -> list[PlanItem]:
    words = {"done": "completed", "completed": "completed", "in_progress": "in_progress", "pending": "pending"}
    try:
        todos = msgspec.convert(args.get("todos"), list[Todo])
    except msgspec.ValidationError:
        return []
    items: list[PlanItem] = []
    for todo in todos:
        title, status = todo.title or todo.content, words.get(todo.status or "")
        if title is None or status is None:
            return []
        items.append(PlanItem(text=title, status=status))
    return items


RECORDER = KimiRecorder
