"""Qwen Code (npm `@qwen-code/qwen-code`): a file a session, and one a sub-agent.

Where: `~/.qwen/projects/<folder with - for />/chats/<session id>.jsonl`, sub-agents in `subagents/<session id>/agent-<id>.jsonl`
with `….meta.json` beside it; moved by QWEN_HOME. Seen: 0.24.4; published files of 0.14.

    {"uuid":"294e…","parentUuid":null,"sessionId":"beb4…","timestamp":"2026-11-30T05:01:24.918Z","type":"user","provenance":"real_user",
      "cwd":"/home/dev/app","version":"0.24.4","gitBranch":"main","message":{"role":"user","parts":[{"text":"…"}]}}
    {…,"type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_response","response_id":"resp-1",
      "model":"mock-1","duration_ms":634,"input_token_count":11001,"output_token_count":115,"cached_content_token_count":5503,
      "thoughts_token_count":11,"prompt_id":"…","subagent_id":"…"}}}
    {…,"type":"assistant","model":"mock-1","message":{"role":"model","parts":[{"text":"…","thought":true},{"text":"…"},
      {"functionCall":{"id":"call_1","name":"run_shell_command","args":{…}}}]},"usageMetadata":{"promptTokenCount":11001,…}}
    {…,"type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"call_1","response":{"output":"…"}}}]},
      "toolCallResult":{"callId":"call_1","status":"error","resultDisplay":{"type":"shell_result","exitCode":101,…}}}
    {…,"type":"system","subtype":"chat_compression","systemPayload":{"info":{"originalTokenCount":41910,"newTokenCount":41137,
      "triggerReason":"manual"},"compressedHistory":[…]}}
    {…,"type":"user","subtype":"notification","provenance":"system","message":{…"<task-notification>…"}}
    {…,"forkedFrom":{"sessionId":"…","messageUuid":"…"}}
    {…,"type":"assistant","agentId":"general-purpose-call_2","isSidechain":true,…}      (a sub-agent's file)

What is particular
    - One response is stated by telemetry (`api_response`, with its id) and again by `usageMetadata` on its message, without
      one: they are told to be the same by their figures. Telemetry of sub-agents stands in the main file; a sub-agent
      without a file of its own (the memory extractor) is counted there.
    - `promptTokenCount` includes cached tokens, `candidatesTokenCount` includes thoughts. No cache writes are given.
    - A fork repeats each line under its uuid with `forkedFrom`: those are copies.
    - A sub-agent's lines have the parent's session id; `meta.json` names its call.
    - No ends of turns.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast

import msgspec
from msgspec import Struct

from asrd.recorders._observed import commits, content_of
from asrd.recorders.base import Recorder, StreamKey, StreamOut, fields_of, within
from asrd.records import (
    Approval,
    Block,
    Capture,
    Compaction,
    Config,
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
    Vcs,
    VcsAction,
    Workspace,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, Source

# ---------------------------------------------------------------- native records


class Parts(Struct):
    parts: list[dict[str, Any]] = []
    role: str | None = None


class UsageMetadata(Struct, frozen=True):
    promptTokenCount: int | None = None
    candidatesTokenCount: int | None = None
    thoughtsTokenCount: int | None = None
    cachedContentTokenCount: int | None = None
    totalTokenCount: int | None = None


class CallResult(Struct):
    callId: str | None = None
    status: str | None = None
    resultDisplay: Any = None
    errorType: str | None = None
    durationMs: int | float | None = None


class ForkedFrom(Struct):
    sessionId: str
    messageUuid: str | None = None


class ChatRecord(Struct):
    """A line. `systemPayload` as its subtype has it."""

    type: str
    uuid: str | None = None
    parentUuid: str | None = None
    sessionId: str | None = None
    timestamp: str | None = None
    subtype: str | None = None
    provenance: str | None = None
    cwd: str | None = None
    version: str | None = None
    gitBranch: str | None = None
    message: Parts | None = None
    model: str | None = None
    usageMetadata: UsageMetadata | None = None
    toolCallResult: CallResult | None = None
    systemPayload: dict[str, Any] | None = None
    forkedFrom: ForkedFrom | None = None
    agentId: str | None = None
    agentName: str | None = None


class UiEvent(Struct):
    """Telemetry: of a response, of a failed request, or of a call."""

    name: str = msgspec.field(name="event.name")
    at: str | None = msgspec.field(name="event.timestamp", default=None)
    response_id: str | None = None
    model: str | None = None
    duration_ms: int | float | None = None
    input_token_count: int | None = None
    output_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    total_token_count: int | None = None
    prompt_id: str | None = None
    subagent_id: str | None = None
    subagent_name: str | None = None
    response_text: str | None = None
    status_code: int | str | None = None
    error: str | None = None
    error_message: str | None = None
    error_type: str | None = None
    call_id: str | None = None
    decision: str | None = None


class CompressionInfo(Struct):
    originalTokenCount: int | None = None
    newTokenCount: int | None = None
    triggerReason: str | None = None


class Meta(Struct):
    """`agent-<id>.meta.json`."""

    agentId: str | None = None
    agentType: str | None = None
    description: str | None = None
    parentSessionId: str | None = None
    parentAgentId: str | None = None
    toolUseId: str | None = None
    createdAt: str | None = None
    status: str | None = None
    model: str | None = None


class ShellResult(Struct, tag_field="type", tag="shell_result"):
    directory: str | None = None
    exitCode: int | None = None
    signal: int | str | None = None
    outcome: str | None = None
    truncated: bool | None = None


class FileDiff(Struct):
    """What an edit shows: whole contents before (null: there was no file) and after, unless cut for the session."""

    fileDiff: str
    filePath: str | None = None
    fileName: str | None = None
    originalContent: str | None = None
    newContent: str | None = None
    truncatedForSession: bool | None = None
    originalContentTruncated: bool | None = None
    newContentTruncated: bool | None = None


class Todo(Struct):
    content: str
    status: str


class TodoList(Struct, tag_field="type", tag="todo_list"):
    todos: list[Todo]


_record = msgspec.json.Decoder(ChatRecord)
_meta = msgspec.json.Decoder(Meta)
_object = msgspec.json.Decoder(dict[str, Any])

KINDS = {
    "read_file": "read", "read_many_files": "read", "list_directory": "read", "glob": "search", "grep_search": "search",
    "edit": "edit", "write_file": "edit", "run_shell_command": "execute", "web_fetch": "fetch", "web_search": "search",
    "agent": "delegate", "task": "delegate", "todo_write": "plan", "exit_plan_mode": "plan",
}  # fmt: skip
STATUS = {"success": "completed", "error": "failed", "cancelled": "cancelled"}

_CHAT = re.compile(r"projects/([^/]+)/chats/([^/]+)\.jsonl$")
_AGENT = re.compile(r"projects/([^/]+)/subagents/([^/]+)/agent-(.+?)\.(jsonl|meta\.json)$")
_EXIT = re.compile(r"(?m)^Exit Code: (-?\d+)\s*$")
_SIGNAL = re.compile(r"(?m)^Signal: (?!\(none\))(\S+)\s*$")
_DENIED = re.compile(r"(?i)denied|user did not allow|not_allowed|\bdeclined by\b")
RECENT = 512


# ---------------------------------------------------------------- state


class Response(Struct):
    """A response whose second statement may come: its id, record and figures."""

    id: str
    record: str
    figures: tuple[int | None, int | None, int | None]
    derived: bool = False


class AgentState(Struct):
    """What is kept of one agent between its lines; "" is the main one."""

    turn: str | None = None
    responses: list[Response] = []
    """Stated once so far."""
    response: str | None = None
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    last: str | None = None
    """The uuid of the line before."""
    records: dict[str, str] = {}
    """Record of each line, by uuid, to say branches."""
    cwd: str | None = None
    version: str | None = None
    made: str | None = None
    """The last record made from the line at hand."""


class State(Struct):
    """What is kept of a session, with its sub-agents."""

    session: str = ""
    cwd: str | None = None
    root: str | None = None
    version: str | None = None
    branch: str | None = None
    agents: dict[str, AgentState] = {}
    metas: dict[str, Meta] = {}
    files: list[str] = []
    """Sub-agents that have a file of their own."""
    durations: dict[str, int | float] = {}
    decisions: dict[str, str] = {}
    delegated: dict[str, str] = {}
    """Calls that start a sub-agent, and whose `meta.json` was not seen yet, with the agent that made them."""
    forked_from: str | None = None
    copying: ForkedFrom | None = None


# ---------------------------------------------------------------- the recorder


class QwenRecorder(Recorder):
    harness: ClassVar[str] = "qwen"
    roots: ClassVar[tuple[Root, ...]] = (Root(".qwen", env=("QWEN_HOME",)),)
    places: ClassVar[tuple[Place, ...]] = (
        Place("projects/*/chats/*.jsonl"),
        Place("projects/*/subagents/*/agent-*.jsonl"),
        Place("projects/*/subagents/*/agent-*.meta.json", "document", sidecar=True),
    )
    versions: ClassVar[tuple[str, ...]] = ("0.24.4",)
    State: ClassVar[type[Struct]] = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        if m := _CHAT.match(path):
            return Located(f"{m[1]}/{m[2]}", f"{m[2]}/", "0")
        if m := _AGENT.match(path):
            if m[4] == "jsonl":
                beside = path.removesuffix(".jsonl") + ".meta.json"
                return Located(f"{m[1]}/{m[2]}", f"{m[2]}/{m[3]}", f"1{m[3]}", beside=beside)
            return Located(f"{m[1]}/{m[2]}", f"{m[2]}/{m[3]}/meta")
        return None

    @classmethod
    def claims(cls, head: bytes) -> bool:
        first = head.split(b"\n", 1)[0]
        return (
            b'"parentUuid"' in first
            and b'"sessionId"' in first
            and (b'"parts":' in first or b'"systemPayload"' in first)
        )

    def receive(self, source: Source, item: Line | Row) -> None:
        if isinstance(item, Row):
            said = _meta.decode(item.data)
            self._sidecar(said.agentId or source.name.split("/")[1], said)
            return
        said = _record.decode(item.data)
        ident = self._agent_of(source.name) or ""
        if ident and ident not in self.state.files:
            self.state.files.append(ident)
        self._learn(said, ident)
        agent = self._agent(ident)
        self.state.copying = said.forkedFrom
        agent.made = None
        match said.type:
            case "user":
                self._user(ident, agent, said)
            case "assistant":
                self._assistant(ident, agent, said)
            case "tool_result":
                self._tool_result(ident, agent, said, item)
            case "system":
                self._system(ident, said, item)
            case _:
                self.native(ident, said, item)
        self._seen(agent, said)

    def main(self) -> StreamOut:
        """The stream of the agent whose source is at hand."""
        name = self.out.source_name
        return self._stream("" if name.endswith("/meta") else self._agent_of(name) or "")

    # streams

    def _agent_of(self, name: str) -> str | None:
        return name.split("/")[1] if "/" in name else None

    def _agent(self, ident: str) -> AgentState:
        return self.state.agents.setdefault(ident, AgentState())

    def _session(self) -> str:
        state = self.state
        if not state.session:
            state.session = self.group.rsplit("/", 1)[-1].removesuffix(".jsonl")
        return state.session

    def _key(self, ident: str) -> StreamKey:
        session = self._session()
        return StreamKey("qwen", ident, session) if ident else StreamKey("qwen", session)

    def _learn(self, said: ChatRecord, ident: str) -> None:
        """What every line says of its session; the first of it goes to the header."""
        state = self.state
        if said.sessionId and not state.session:
            state.session = said.sessionId
        known = self.out.stream(self._key(ident)) is not None
        agent = self._agent(ident)
        changed = Config()
        if said.version and said.version != agent.version:
            agent.version = state.version = changed.version = said.version
        if said.cwd and said.cwd != agent.cwd:
            agent.cwd = state.cwd = changed.cwd = said.cwd
        state.branch = said.gitBranch or state.branch
        if said.forkedFrom is not None and state.forked_from is None and not known:
            state.forked_from = said.forkedFrom.sessionId
        if known and (changed.version or changed.cwd):
            self.add(ident, changed, said)
        self._stream(ident, said)

    def _stream(self, ident: str, said: ChatRecord | None = None) -> StreamOut:
        key = self._key(ident)
        found = self.out.stream(key)
        if found is not None:
            return found
        state = self.state
        workspace = None
        cwd = (said.cwd if said else None) or state.cwd
        if cwd:
            state.root = state.root or cwd
            vcs = Vcs(type="git", branch=state.branch) if state.branch else None
            workspace = Workspace(roots=[WorkspaceRoot(id="r1", path=cwd, vcs=vcs)])
        meta = state.metas.get(ident)
        stream = self.open(
            key,
            version=state.version,
            started_at=(meta.createdAt if meta else None) or (said.timestamp if said else None),
            lineage=self._lineage(ident, meta),
            workspace=workspace,
            title=meta.description if meta else None,
        )
        for profile, facet, how, reason in (
            ("usage", "usage.cacheWrite", "unavailable", "Qwen Code gives no cache writes"),
            ("usage", "usage_total", "unavailable", "totals are in another file, cumulative over sessions' exits"),
            (
                "usage",
                "inference.auxiliary",
                "partial",
                "suggestions of the next prompt and the classifier of auto mode are in no file",
            ),
            ("core", "turn.end", "unavailable", "session files do not say when a turn ended"),
        ):
            stream.add(Capture(profile=profile, facet=facet, state=how, reason=reason))
        return stream

    def _lineage(self, ident: str, meta: Meta | None) -> Lineage:
        state = self.state
        if not ident:
            if state.forked_from is None:
                return Lineage(root=True)
            return Lineage(
                root=False,
                parent=LineageParent(agent="qwen", session_id=state.forked_from),
                relation="forked_from",
                evidence=Evidence(kind="native-field", field="forkedFrom.sessionId", value=state.forked_from),
            )
        parent = self._key((meta.parentAgentId if meta else None) or "")
        if meta is not None and meta.toolUseId:
            evidence = Evidence(kind="native-field", field="meta.json toolUseId", value=meta.toolUseId)
        else:
            evidence = Evidence(kind="native-path", field="subagents/<session>/agent-<id>.jsonl", value=ident)
        return Lineage(
            root=False,
            parent=LineageParent(
                agent="qwen",
                session_id=parent.session_id,
                namespace=parent.namespace or None,
                call_id=meta.toolUseId if meta else None,
            ),
            relation="spawned_by",
            evidence=evidence,
        )

    def add(self, ident: str, record: Record, said: ChatRecord, native_id: str | None = None) -> str:
        agent = self._agent(ident)
        record.at = said.timestamp
        record.turn_id = record.turn_id or agent.turn
        record.native_id = native_id or said.uuid
        if (fork := self.state.copying) is not None:
            record.copy_of = CopyOf(session_id=fork.sessionId, native_id=fork.messageUuid)
        if said.parentUuid and agent.last and said.parentUuid != agent.last and record.parent is None:
            record.parent = agent.records.get(said.parentUuid)
        agent.made = self._stream(ident, said).add(record)
        return agent.made

    def native(self, ident: str, said: ChatRecord, item: Line | Row) -> None:
        name = f"{said.type}/{said.subtype}" if said.subtype else said.type
        self.add(ident, Native(native_type=name, data=_object.decode(item.data)), said)

    def _leave(self, rule: str) -> None:
        """Leaves the line out by that rule, unless what every line says of its session made a record of it."""
        if not self.out.noted():
            self.out.skip(rule)

    def _seen(self, agent: AgentState, said: ChatRecord) -> None:
        """Keeps which record a line became, so that a later line can name it as its parent."""
        if said.uuid is None:
            return
        agent.last = said.uuid
        if agent.made is not None:
            agent.records[said.uuid] = agent.made
        elif said.parentUuid in agent.records:
            agent.records[said.uuid] = agent.records[said.parentUuid or ""]
        while len(agent.records) > RECENT:
            agent.records.pop(next(iter(agent.records)))

    def _roots(self) -> list[WorkspaceRoot] | None:
        return [WorkspaceRoot(id="r1", path=self.state.root)] if self.state.root else None

    # prompts and answers

    def _user(self, ident: str, agent: AgentState, said: ChatRecord) -> None:
        author, origin, trigger = _who(said, bool(ident))
        if said.subtype != "mid_turn_user_message":
            agent.turn = said.uuid or said.timestamp or "0"
            self.add(ident, Turn(turn_id=agent.turn, phase="start", trigger=trigger), said)
        content = _blocks(said.message.parts if said.message else [])
        shown = (said.systemPayload or {}).get("displayText")
        meta = {"dev.asrd.shown": shown} if isinstance(shown, str) and [Text(text=shown)] != content else None
        self.add(
            ident,
            Message(role="user", author=author, origin=origin, message_id=said.uuid, content=content, meta=meta),
            said,
        )

    def _assistant(self, ident: str, agent: AgentState, said: ChatRecord) -> None:
        parts = said.message.parts if said.message else []
        if said.usageMetadata is not None:
            self._stated_by_message(ident, agent, said, said.usageMetadata)
        elif said.model and agent.response is None:
            agent.response = said.uuid or "0"
            self.add(ident, Inference(inference_id=agent.response, id_source="derived", model=said.model), said)
        content = [b for b in _blocks(parts) if not (isinstance(b, Text) and not b.text)]
        if content:
            message = Message(role="assistant", author="agent", message_id=said.uuid, content=content)
            message.inference_id = agent.response
            self.add(ident, message, said)
        for part in parts:
            called = fields_of(part.get("functionCall"))
            if called:
                self._call(ident, agent, said, called)
        self._leave("empty-answer")

    def _stated_by_message(self, ident: str, agent: AgentState, said: ChatRecord, usage: UsageMetadata) -> None:
        figures = (usage.promptTokenCount, usage.candidatesTokenCount, usage.cachedContentTokenCount)
        for response in agent.responses:
            if response.figures == figures and not response.derived:
                agent.responses.remove(response)
                agent.response = response.id
                return
        name = said.uuid or said.timestamp or "0"
        record = self.add(
            ident,
            Inference(
                inference_id=name,
                id_source="derived",
                model=said.model,
                usage=_usage(*figures, usage.thoughtsTokenCount, usage.totalTokenCount),
                meta={"dev.asrd.usage": msgspec.to_builtins(usage)},
            ),
            said,
        )
        agent.response = name
        agent.responses = [*agent.responses[-RECENT:], Response(name, record, figures, derived=True)]

    # telemetry

    def _telemetry(self, ident: str, said: ChatRecord, event: UiEvent, item: Line | Row) -> None:
        match event.name:
            case "qwen-code.api_response":
                self._stated_by_telemetry(ident, said, event)
            case "qwen-code.api_error":
                code = event.status_code if event.status_code is not None else event.error_type
                message = event.error_message or event.error
                self.add(
                    ident,
                    Inference(
                        inference_id=event.response_id or said.uuid or "0",
                        id_source=None if event.response_id else "derived",
                        model=event.model,
                        duration_ms=event.duration_ms,
                        error=Error(code=str(code) if code is not None else None, message=message),
                        meta=_of(event),
                    ),
                    said,
                )
            case "qwen-code.tool_call" if event.call_id:
                self._call_told(ident, said, event)
            case _:
                self.native(ident, said, item)

    def _stated_by_telemetry(self, ident: str, said: ChatRecord, event: UiEvent) -> None:
        owner = ident
        child = event.subagent_id
        if child and not ident and (child in self.state.files or child in self.state.metas):
            owner = child
        agent = self._agent(owner)
        figures = (event.input_token_count, event.output_token_count, event.cached_content_token_count)
        own = owner == (child or ident)
        stated = next((r for r in agent.responses if own and r.derived and r.figures == figures), None)
        name = event.response_id or said.uuid or "0"
        raw = {
            "input_token_count": event.input_token_count,
            "output_token_count": event.output_token_count,
            "cached_content_token_count": event.cached_content_token_count,
            "thoughts_token_count": event.thoughts_token_count,
            "total_token_count": event.total_token_count,
        }
        record = self.add(
            owner,
            Inference(
                inference_id=name,
                id_source=None if event.response_id else "derived",
                model=event.model,
                duration_ms=event.duration_ms,
                usage=_usage(*figures, event.thoughts_token_count, event.total_token_count),
                supersedes=stated.record if stated else None,
                meta={
                    "dev.asrd.usage": {k: v for k, v in raw.items() if v is not None},
                    **((_of(event) or {}) if owner != child else {}),
                },
            ),
            said,
        )
        if stated is not None:
            agent.responses.remove(stated)
        elif own:
            agent.responses = [*agent.responses[-RECENT:], Response(name, record, figures)]

    def _call_told(self, ident: str, said: ChatRecord, event: UiEvent) -> None:
        """A call's end as telemetry has it; only a person's decision is news."""
        state = self.state
        call = event.call_id or ""
        if event.duration_ms is not None:
            state.durations[call] = event.duration_ms
            while len(state.durations) > RECENT:
                state.durations.pop(next(iter(state.durations)))
        decisions = {"accept": "allow", "modify": "allow", "reject": "deny", "cancel": "cancelled"}
        decision = decisions.get(event.decision or "")
        if decision is None:
            self._leave("call-restated")
            return
        state.decisions[call] = decision
        self.add(ident, Approval(phase="decided", call_id=call, decision=decision, by="human"), said)

    # tools

    def _call(self, ident: str, agent: AgentState, said: ChatRecord, called: dict[str, Any]) -> None:
        name = called.get("name")
        call = called.get("id")
        derived = not isinstance(call, str)
        call = f"{said.uuid}#{len(agent.calls)}" if derived else str(call)
        given = called.get("args")
        args = cast("dict[str, Any]", given) if isinstance(given, dict) else {"raw": given}
        agent.calls[call] = (str(name), args)
        while len(agent.calls) > RECENT:
            agent.calls.pop(next(iter(agent.calls)))
        kind = KINDS.get(str(name), "mcp" if str(name).startswith("mcp__") else "other")
        self.add(
            ident,
            ToolCall(
                call_id=call,
                call_id_source="derived" if derived else None,
                name=str(name),
                kind=kind,
                input=args,
                inference_id=agent.response,
            ),
            said,
        )
        if kind == "delegate":
            self._spawned(ident, said, call)

    def _spawned(self, ident: str, said: ChatRecord, call: str) -> None:
        """The sub-agent whose `meta.json` names this call; where there is none yet, it is waited for."""
        for child, meta in self.state.metas.items():
            if meta.toolUseId == call:
                self.add(ident, self._link(child, call), said)
                return
        self.state.delegated[call] = ident

    def _sidecar(self, child: str, said: Meta) -> None:
        known = child in self.state.metas
        self.state.metas[child] = said
        ident = self.state.delegated.pop(said.toolUseId or "", None)
        if ident is None or known:
            self.out.skip("sub-agent-for-the-header")
            return
        self.state.copying = None
        self.add(ident, self._link(child, said.toolUseId or ""), ChatRecord(type="meta", timestamp=said.createdAt))

    def _link(self, child: str, call: str) -> Link:
        key = self._key(child)
        return Link(
            relation="spawned",
            target=LinkTarget(agent="qwen", session_id=key.session_id, namespace=key.namespace),
            call_id=call,
            evidence=Evidence(kind="native-field", field="meta.json toolUseId", value=call),
        )

    def _tool_result(self, ident: str, agent: AgentState, said: ChatRecord, item: Line | Row) -> None:
        told = said.toolCallResult or CallResult()
        answered = next(
            (f for p in (said.message.parts if said.message else []) if (f := fields_of(p.get("functionResponse")))),
            dict[str, Any](),
        )
        call = told.callId or answered.get("id")
        if not isinstance(call, str):
            self.native(ident, said, item)
            return
        linked = call in agent.calls
        name, args = agent.calls.pop(call, (str(answered.get("name")), dict[str, Any]()))
        response = fields_of(answered.get("response"))
        content, text = _said(response)
        status = STATUS.get(told.status or "", told.status)
        if status is None:
            status = "failed" if "error" in response else "completed"
        decision = self.state.decisions.pop(call, None)
        if status != "completed" and (decision == "deny" or _DENIED.search(told.errorType or text[:400])):
            status = "denied"
        duration = self.state.durations.pop(call, told.durationMs)
        ran = self._exec(name, args, told, text, duration)
        meta: dict[str, Any] = {"dev.asrd.durationMs": duration} if duration is not None and ran is None else {}
        if told.errorType:
            meta["dev.asrd.errorType"] = told.errorType
        self.add(
            ident,
            ToolResult(
                call_id=call,
                linkage="exact" if linked else "none",
                status=status,
                content=content or None,
                exec=ran,
                meta=meta or None,
            ),
            said,
        )
        if ran is not None:
            for commit in commits(ran.command, text):
                action = VcsAction(action="commit", root="r1", commit=commit, evidence="observed", call_id=call)
                self.add(ident, action, said)
        elif status == "completed" and told.resultDisplay is None and name in ("write_file", "edit"):
            self._changed(ident, said, call, args, text)
        elif status == "completed":
            self._shown(ident, said, call, args, told.resultDisplay, made=text.startswith(MADE))

    def _exec(
        self, name: str, args: dict[str, Any], told: CallResult, text: str, duration: int | float | None
    ) -> Exec | None:
        if name != "run_shell_command":
            return None
        command = args.get("command")
        ran = Exec(command=command if isinstance(command, str) else None, duration_ms=duration)
        try:
            shown = msgspec.convert(told.resultDisplay, ShellResult)
        except msgspec.ValidationError:
            shown = ShellResult()
        if shown.directory:
            ran.cwd = within(shown.directory, self._roots())
        if shown.exitCode is not None:
            ran.exit_code = shown.exitCode
        elif exits := _EXIT.findall(text):
            ran.exit_code = int(exits[-1])
        if shown.signal is not None:
            ran.signal = str(shown.signal)
        elif signals := _SIGNAL.findall(text):
            ran.signal = signals[-1]
        if shown.outcome in ("timeout", "timed_out"):
            ran.timed_out = True
        return ran

    def _changed(self, ident: str, said: ChatRecord, call: str, args: dict[str, Any], text: str) -> None:
        """A write or an edit of a sub-agent, whose results have no display: what its call and its words prove."""
        path = args.get("file_path")
        made = text.startswith((MADE, CREATED))
        content = args.get("content") if "content" in args else args.get("new_string")
        if not isinstance(path, str):
            return
        self.add(
            ident,
            FileChange(
                path=within(path, self._roots()),
                change="create" if made else "modify",
                call_id=call,
                after=content_of(content) if made and isinstance(content, str) else None,
                applied=True,
                evidence="derived",
            ),
            said,
        )

    def _shown(
        self, ident: str, said: ChatRecord, call: str, args: dict[str, Any], display: Any, *, made: bool
    ) -> None:
        if not isinstance(display, dict):
            return
        if "todos" in display:
            try:
                todos = msgspec.convert(display, TodoList).todos
            except msgspec.ValidationError:
                return
            self.add(ident, Plan(items=[PlanItem(text=t.content, status=t.status) for t in todos], call_id=call), said)
            return
        try:
            diff = msgspec.convert(display, FileDiff)
        except msgspec.ValidationError:
            return
        path = diff.filePath or args.get("file_path") or diff.fileName
        if not isinstance(path, str):
            return
        cut = diff.truncatedForSession is True
        before = after = None
        if diff.originalContent is not None and not made and not (cut and diff.originalContentTruncated is not False):
            before = content_of(diff.originalContent)
        if diff.newContent is not None and not (cut and diff.newContentTruncated is not False):
            after = content_of(diff.newContent)
        self.add(
            ident,
            FileChange(
                path=within(path, self._roots()),
                change="create" if made or (diff.originalContent is None and not cut) else "modify",
                call_id=call,
                before=before,
                after=after,
                diff=diff.fileDiff if not cut else None,
                applied=True,
                evidence="reported",
            ),
            said,
        )

    # the harness's own

    def _system(self, ident: str, said: ChatRecord, item: Line | Row) -> None:
        payload = said.systemPayload or {}
        match said.subtype:
            case "ui_telemetry":
                self._telemetry(ident, said, msgspec.convert(payload.get("uiEvent"), UiEvent), item)
            case "attribution_snapshot":
                self._leave("attribution-snapshot")
            case "chat_compression":
                info = msgspec.convert(payload.get("info"), CompressionInfo)
                history = payload.get("compressedHistory")
                reason = info.triggerReason
                self.add(
                    ident,
                    Compaction(
                        trigger=reason if reason in (None, "manual") else "auto",
                        tokens_before=info.originalTokenCount,
                        tokens_after=info.newTokenCount,
                        summary=_summary(history),
                        meta={"dev.asrd.info": payload.get("info")},
                    ),
                    said,
                )
            case "slash_command" if payload.get("phase") == "invocation" and isinstance(payload.get("rawCommand"), str):
                content: list[Block] = [Text(text=str(payload["rawCommand"]))]
                self.add(ident, Message(role="user", author="human", origin="command", content=content), said)
            case "custom_title" if isinstance(payload.get("customTitle"), str):
                self.add(ident, Config(title=payload["customTitle"]), said)
            case "session_model" if isinstance(payload.get("modelId"), str):
                self.add(ident, Config(model=payload["modelId"]), said)
            case "session_approval_mode" if isinstance(payload.get("mode"), str):
                self.add(ident, Config(mode=payload["mode"]), said)
            case "parent_session" if isinstance(payload.get("parentSessionId"), str):
                parent = str(payload["parentSessionId"])
                self.add(
                    ident,
                    Link(
                        relation="spawned_by",
                        target=LinkTarget(agent="qwen", session_id=parent),
                        evidence=Evidence(kind="native-field", field="parent_session.parentSessionId", value=parent),
                    ),
                    said,
                )
            case _:
                self.native(ident, said, item)


# ---------------------------------------------------------------- how it says things


def _who(said: ChatRecord, sub: bool) -> tuple[str, str, str | None]:
    if said.subtype in ("notification", "background_task_completed"):
        return "harness", "injected", "agent"
    if said.subtype == "cron":
        return "harness", "injected", "schedule"
    if said.provenance in ("goal_control", "goal_runtime", "system"):
        return "harness", "injected", None
    if sub:
        return "agent", "agent", "agent"
    return "human", "prompt", "prompt"


def _of(event: UiEvent) -> dict[str, Any] | None:
    """Whose request it was, where that is no agent with a stream; its answer stands nowhere else."""
    if event.subagent_id is None:
        return None if event.prompt_id is None else {"dev.asrd.promptId": event.prompt_id}
    told = {"id": event.subagent_id, "name": event.subagent_name, "text": event.response_text}
    return {"dev.asrd.subagent": {k: v for k, v in told.items() if v is not None}}


def _blocks(parts: list[dict[str, Any]]) -> list[Block]:
    """What was said; calls and results stand for themselves."""
    found: list[Block] = []
    for part in parts:
        text = part.get("text")
        if isinstance(text, str):
            found.append(Thinking(text=text) if part.get("thought") is True else Text(text=text))
        elif "functionCall" not in part and "functionResponse" not in part:
            found.append(Other(meta={"dev.asrd.block": part}))
    return found


def _said(response: dict[str, Any]) -> tuple[list[Block], str]:
    said = response.get("output", response.get("error"))
    if isinstance(said, str):
        return ([Text(text=said)] if said else list[Block]()), said
    return ([Other(meta={"dev.asrd.block": response})] if response else list[Block]()), ""


MADE = "Successfully created and wrote to new file: "
"""How the result of a write to a file begins that was not there; its `originalContent` is "" as that of an empty one."""
CREATED = "Created new file: "
"""... and of an edit that made one (`edit.ts`, 0.24.4)."""


def _usage(
    prompt: int | None, output: int | None, cached: int | None, thoughts: int | None, total: int | None
) -> Usage | None:
    """Nothing where all figures are 0: so a response is written whose end, and with it the usage, never came (0.24.4)."""
    if prompt == 0 and not (output or cached or thoughts or total):
        return None
    return Usage(
        input=max(prompt - (cached or 0), 0) if prompt is not None else None,
        output=output,
        cache_read=cached,
        reasoning=thoughts,
        total=total,
    )


def _summary(history: Any) -> str | None:
    """The summary at the head of a compressed history."""
    turns = cast("list[Any]", history) if isinstance(history, list) else []
    for turn in turns[:1]:
        parts = fields_of(turn).get("parts")
        texts = [fields_of(p).get("text") for p in cast("list[Any]", parts)] if isinstance(parts, list) else []
        return "\n".join(t for t in texts if isinstance(t, str)) or None
    return None


RECORDER = QwenRecorder
