"""kimi-cli (PyPI `kimi-cli`, Python; no longer maintained): a folder a session, a wire log an agent.

Where: `~/.kimi/sessions/<md5 of the working folder>/<uuid>/wire.jsonl`, and `subagents/<id>/wire.jsonl` (+ `meta.json`) below
it; moved by KIMI_SHARE_DIR. Seen: 1.51.0 (protocol 1.10; sub-agents write 1.1), 1.0, a run of 0.69, published files of
protocol 1.3. Times are seconds. `state.json` beside it has a title and what is approved, `kimi.json` the working folders.
`context.jsonl` repeats the wire without times or usage, but for the system prompt, and is rewritten by a compaction: not read.

    {"type":"metadata","protocol_version":"1.10"}
    {"timestamp":1796015242.25,"message":{"type":"TurnBegin","payload":{"user_input":"…"}}}
    {"timestamp":…,"message":{"type":"StepBegin","payload":{"n":1}}}
    {"timestamp":…,"message":{"type":"ContentPart","payload":{"type":"think","think":"…","encrypted":null}}}
    {"timestamp":…,"message":{"type":"ToolCall","payload":{"id":"call_1","function":{"name":"Shell","arguments":"{…}"}}}}
    {"timestamp":…,"message":{"type":"StatusUpdate","payload":{"context_tokens":11001,"message_id":"resp-1",
      "token_usage":{"input_other":5498,"output":115,"input_cache_read":5503,"input_cache_creation":0}}}}
    {"timestamp":…,"message":{"type":"ToolResult","payload":{"tool_call_id":"call_1","return_value":{"is_error":true,
      "output":"…","message":"Command failed with exit code: 101.","display":[…]}}}}
    {"timestamp":…,"message":{"type":"SubagentEvent","payload":{"parent_tool_call_id":"call_2","agent_id":"ab01","event":{…}}}}
    {"timestamp":…,"message":{"type":"ApprovalRequest","payload":{"id":"…","tool_call_id":"call_1","action":"run command",…}}}
    {"timestamp":…,"message":{"type":"ApprovalResponse","payload":{"request_id":"…","response":"approve"}}}
    {"timestamp":…,"message":{"type":"TurnEnd","payload":{}}}

What is particular
    - A response's id and figures come at its end (`StatusUpdate`), behind its parts: its inference goes by turn and step
      ("1.2", derived), its own id is the record's nativeId. `input_other` excludes cached tokens.
    - A parent's `SubagentEvent` repeats the whole of a sub-agent's wire: taken only for the link, except in old files
      that name no `agent_id` and have no other record of it; there it is the sub-agent's stream.
    - Turns and steps have no ids; the model is in no file. The working folder is told by `kimi.json`: its MD5 is the folder's name.
    - A title in `state.json` that is a prompt, cut, is none: Kimi takes the first one, or one that came later, a sub-agent's
      too (`title_generated` says whether a model made it).
    - A call's arguments may come in pieces (`ToolCallPart`); the whole call then supersedes the first.
    - Exit codes are text in `message`: "Command executed successfully." is 0. One in the background is a task, which the
      result names; a `Notification` has its code. A sub-agent in the background has no `SubagentEvent`: its call's result
      names it. The turn that such an end starts begins with a reminder, no prompt.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, ClassVar, cast

import msgspec
from msgspec import Struct

from asrd.recorders._observed import Contents, absolute, commits, content_of, replaced
from asrd.recorders.base import Recorder, StreamKey, StreamOut, from_ms, within
from asrd.records import (
    Approval,
    Block,
    Capture,
    Compaction,
    Config,
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
)
from asrd.sources import Line, Located, Place, Root, Row, Source, Unread

# ---------------------------------------------------------------- native records


class Wire(Struct):
    """A message of the wire: its type, and its payload as that type has it."""

    type: str
    payload: dict[str, Any] = {}


class Logged(Struct):
    """A line: `message` since the wire is logged with times; the first line is the header."""

    timestamp: int | float | None = None
    message: Wire | None = None
    type: str | None = None
    protocol_version: str | None = None


class TurnBegin(Struct):
    user_input: str | list[dict[str, Any]]


class StepBegin(Struct):
    n: int


class Function(Struct):
    name: str
    arguments: str | None = None


class NativeCall(Struct):
    id: str
    function: Function


class CallPart(Struct):
    arguments_part: str | None = None


class NativeUsage(Struct, frozen=True):
    """Tokens of one response; `input_other` excludes cached ones."""

    input_other: int | None = None
    output: int | None = None
    input_cache_read: int | None = None
    input_cache_creation: int | None = None


class Status(Struct):
    token_usage: NativeUsage | None = None
    message_id: str | None = None
    plan_mode: bool | None = None


class Returned(Struct):
    is_error: bool = False
    output: str | list[dict[str, Any]] | None = None
    message: str | None = None
    display: list[dict[str, Any]] = []


class ResultOf(Struct):
    tool_call_id: str
    return_value: Returned


class SubagentEvent(Struct):
    event: Wire
    parent_tool_call_id: str | None = None
    task_tool_call_id: str | None = None
    agent_id: str | None = None


class AskedFor(Struct):
    id: str
    tool_call_id: str | None = None
    action: str | None = None


class Answered(Struct):
    request_id: str
    response: str | None = None
    feedback: str | None = None


class Meta(Struct):
    """`subagents/<id>/meta.json`."""

    agent_id: str | None = None
    description: str | None = None


class Todo(Struct):
    title: str
    status: str


class Replace(Struct):
    old: str
    new: str
    replace_all: bool = False


_logged = msgspec.json.Decoder(Logged)
_object = msgspec.json.Decoder(dict[str, Any])

PAYLOADS: dict[str, type[Struct]] = {
    "TurnBegin": TurnBegin,
    "SteerInput": TurnBegin,
    "StepBegin": StepBegin,
    "ToolCall": NativeCall,
    "ToolCallPart": CallPart,
    "StatusUpdate": Status,
    "ToolResult": ResultOf,
    "SubagentEvent": SubagentEvent,
    "ApprovalRequest": AskedFor,
    "ApprovalResponse": Answered,
    "ApprovalRequestResolved": Answered,
}

KINDS = {
    "ReadFile": "read", "ReadMediaFile": "read", "WriteFile": "edit", "StrReplaceFile": "edit", "Glob": "search",
    "Grep": "search", "Shell": "execute", "Bash": "execute", "SearchWeb": "search", "FetchURL": "fetch",
    "Agent": "delegate", "Task": "delegate", "SetTodoList": "plan", "Think": "think",
}  # fmt: skip

_EXIT = re.compile(r"^(?:Command )?[Ff]ailed with exit code: (-?\d+)")
_TIMEOUT = re.compile(r"^Command (?:killed by timeout|timed out)")
_TASK = re.compile(r"task_id: (\S+)\nkind: \w+\nstatus: \w+\n")
"""How the result of a call begins that goes on in the background; a sub-agent's names it."""
_AGENT = re.compile(r"(?m)^agent_id: (\w+)$")
_REMINDER = re.compile(r"<system-reminder>[^<]*</system-reminder>")
"""What a turn begins with that the end of background tasks started."""
ENDLESS = ("1.0", "1.1")
"""Protocols without `TurnEnd`, of a main agent's wire: kimi-cli 1.0 writes none; kimi-agent-sdk go-v0.2.0 names 1.2 for it. The
wires of sub-agents say 1.1 in 1.51.0 too, and have it."""
KEPT = 64
"""Commands in the background whose end is waited for, in one agent."""
_REJECTED = re.compile(r"(?i)\brejected by (?:the )?user\b|\bdenied by\b")
_NUMBERED = re.compile(r"^\s*\d+\t(.*)$", re.S)


# ---------------------------------------------------------------- state


class Call(Struct):
    """A tool call without its result yet. `text`: its arguments so far; `record`: where it stands in the stream."""

    name: str
    text: str
    record: str
    inference: str | None = None
    pieces: bool = False


class Behind(Struct):
    """A command that went on in the background: its call, the record of its result so far, and what that says."""

    call: str
    record: str
    text: str
    command: str | None = None


class AgentState(Struct):
    """What is kept of one agent between its messages."""

    turns: int = 0
    turn: str | None = None
    asked: str | None = None
    """Record of the request at hand, while its figures are to come."""
    inference: str | None = None
    interrupted: bool = False
    calls: dict[str, Call] = {}
    behind: dict[str, Behind] = {}
    """Commands in the background by task, at most `KEPT`."""
    last_call: str | None = None
    approvals: dict[str, str | None] = {}
    decided: dict[str, str] = {}
    files: Contents = msgspec.field(default_factory=Contents)
    linked: list[str] = []
    """Sub-agents whose link was said."""
    mode: bool | None = None


class Approvals(Struct):
    """What needs no approval: everything (`yolo`), everything while nobody is there (`afk`), or these actions."""

    yolo: bool = False
    afk: bool = False
    auto_approve_actions: list[str] = []


class Beside(Struct):
    """`state.json`."""

    custom_title: str | None = None
    title_generated: bool = False
    approval: Approvals = msgspec.field(default_factory=Approvals)
    additional_dirs: list[str] = []
    archived: bool = False


class WorkDir(Struct):
    path: str


class Known(Struct):
    """`kimi.json`: the folders that were worked in."""

    work_dirs: list[WorkDir] = []


def folders_of(data: bytes) -> list[tuple[str, bytes]]:
    """The working folder of all sessions below each folder of sessions, whose name is its MD5."""
    try:
        known = msgspec.json.decode(data, type=Known)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    named = [(hashlib.md5(d.path.encode(), usedforsecurity=False).hexdigest(), d) for d in known.work_dirs]
    return [(f"sessions/{name}", msgspec.json.encode(d)) for name, d in named]


class State(Struct):
    """What is kept of a session: its agents ("" is the main one), and who called the sub-agents."""

    agents: dict[str, AgentState] = {}
    spawned: dict[str, str | None] = {}
    named: list[str] = []
    """Those of them that the result of their call named, without an event."""
    asked: list[str] = []
    """How the last prompts begin, those of sub-agents too."""
    title: str | None = None
    cwd: str | None = None
    settings: str = ""


NOTHING = {"approval": msgspec.to_builtins(Approvals()), "additional_dirs": list[str](), "archived": False}
"""What a new session's `state.json` says."""
ASKED = 200
"""Characters of a prompt that are kept, to know it where it is the title: Kimi takes 50."""

# ---------------------------------------------------------------- the recorder


class KimiPyRecorder(Recorder):
    harness: ClassVar[str] = "kimi-py"
    roots: ClassVar[tuple[Root, ...]] = (Root(".kimi", env=("KIMI_SHARE_DIR",)),)
    places: ClassVar[tuple[Place, ...]] = (
        Place("sessions/*/*/wire.jsonl"),
        Place("sessions/*/*/subagents/*/wire.jsonl"),
        Place("sessions/*/*/subagents/*/meta.json", "document", sidecar=True),
        Place("sessions/*/*/state.json", "document"),
        Place("kimi.json", "shared", parts=folders_of),
    )
    unread: ClassVar[tuple[Unread, ...]] = (
        Unread("sessions/*/*/context*.jsonl", "repeats the wire but for the system prompt, without times and figures"),
        Unread("sessions/*/*/subagents/*/context*.jsonl", "repeats the wire but for the system prompt"),
    )
    versions: ClassVar[tuple[str, ...]] = ("1.0", "1.51.0")
    State: ClassVar[type[Struct]] = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        if path == "kimi.json":
            return Located("", path, "~")
        parts = path.split("/")
        if len(parts) < 4 or parts[0] != "sessions":
            return None
        group = "/".join(parts[:3])
        if parts[3:] == ["wire.jsonl"]:
            return Located(group, f"{parts[2]}/", "0")
        if parts[3:] == ["state.json"]:
            return Located(group, f"{parts[2]}/state", "2")
        if len(parts) == 6 and parts[3] == "subagents":
            if parts[5] == "wire.jsonl":
                return Located(group, f"{parts[2]}/{parts[4]}", f"1{parts[4]}")
            return Located(group, f"{parts[2]}/{parts[4]}/meta")
        return None

    @classmethod
    def claims(cls, head: bytes) -> bool:
        return head.startswith(b'{"type":"metadata","protocol_version"') and b'"TurnBegin"' in head

    def receive(self, source: Source, item: Line | Row) -> None:
        if isinstance(item, Row) and source.kind == "shared":
            self._worked_in(msgspec.json.decode(item.data, type=WorkDir).path)
            return
        if isinstance(item, Row) and source.name.endswith("/state"):
            self._beside(msgspec.json.decode(item.data, type=Beside))
            return
        if isinstance(item, Row):
            msgspec.json.decode(item.data, type=Meta)
            self.out.skip("sub-agent-restated")
            return
        line = _logged.decode(item.data)
        ident = self._agent_of(source.name)
        at = from_ms(line.timestamp * 1000) if line.timestamp else None
        if line.message is None:
            data = _object.decode(item.data)
            if not ident and line.type == "metadata" and data.get("protocol_version") in ENDLESS:
                reason = "no end of a turn before protocol 1.2, in which this wire began"
                self._stream("").add(Capture(profile="core", facet="turn.end", state="partial", reason=reason))
            self.add(ident, Native(native_type=line.type or "unknown", data=data), at)
            return
        self._message(ident, line.message, at)

    def main(self) -> StreamOut:
        """The stream of the agent whose source is at hand."""
        name = self.out.source_name
        return self._stream("" if name.endswith(("/meta", "/state", "kimi.json")) else self._agent_of(name))

    # beside the wire

    def _worked_in(self, path: str) -> None:
        """The working folder, of the main agent's session."""
        if path == self.state.cwd:
            self.out.skip("folder-told-before")
            return
        self.state.cwd = path
        self._stream("").add(Config(cwd=path))

    def _beside(self, told: Beside) -> None:
        """A title, and what needs no approval, each when it is another."""
        if self.out.stream(self._key("")) is None:
            self.out.skip("state-of-no-session")
            return
        state = self.state
        title = (told.custom_title or "").strip()
        begun = title.removesuffix("…").removesuffix("...").strip()
        own = bool(title) and (told.title_generated or not any(one.startswith(begun) for one in state.asked))
        settings = {
            "approval": msgspec.to_builtins(told.approval),
            "additional_dirs": told.additional_dirs,
            "archived": told.archived,
        }
        said = repr(settings)
        new = title if own and title != state.title else None
        changed = said != state.settings and (bool(state.settings) or said != repr(NOTHING))
        state.settings = said
        if new is None and not changed:
            self.out.skip("state-says-nothing-new")
            return
        state.title = new or state.title
        self._stream("").add(Config(title=new, meta={"dev.asrd.kimi": settings} if changed else None))

    # streams

    def _agent_of(self, name: str) -> str:
        return name.rsplit("/", 1)[1] if "/" in name else ""

    def _agent(self, ident: str) -> AgentState:
        return self.state.agents.setdefault(ident, AgentState())

    def _key(self, ident: str) -> StreamKey:
        session = self.group.rsplit("/", 1)[-1].removesuffix(".jsonl")
        return StreamKey("kimi-py", ident, session) if ident else StreamKey("kimi-py", session)

    def _stream(self, ident: str, at: str | None = None) -> StreamOut:
        key = self._key(ident)
        found = self.out.stream(key)
        if found is not None:
            return found
        lineage = Lineage(root=True)
        if ident:
            parent = self._key("")
            named = ident in self.state.named
            field = "SubagentEvent.agent_id" if ident in self.state.spawned else "subagents/<id>/wire.jsonl"
            kind = "native-field" if ident in self.state.spawned else "native-path"
            lineage = Lineage(
                root=False,
                parent=LineageParent(
                    agent="kimi-py", session_id=parent.session_id, call_id=self.state.spawned.get(ident)
                ),
                relation="spawned_by",
                evidence=Evidence(
                    kind="native-id-in-output" if named else kind,
                    field="ToolResult.output" if named else field,
                    value=ident,
                ),
            )
        stream = self.open(key, started_at=at, lineage=lineage)
        for profile, facet, how, reason in (
            ("usage", "inference.model", "unavailable", "the wire does not name the model"),
            ("usage", "usage.reasoning", "unavailable", "kimi-cli gives no reasoning tokens"),
            ("usage", "usage.compaction", "unavailable", "the figures of a compaction's request are not in the wire"),
            ("usage", "usage_total", "unavailable", "kimi-cli declares no total"),
            ("coding", "exec.exitCode", "partial", "text of failed commands; 0 where it says the command succeeded"),
            ("coding", "file_change.before", "partial", "only where the file was read whole before"),
            ("core", "workspace", "partial", "from kimi.json, where it still lists the folder"),
        ):
            stream.add(Capture(profile=profile, facet=facet, state=how, reason=reason))
        return stream

    def add(self, ident: str, record: Record, at: str | None, native_id: str | None = None) -> str:
        record.at = at
        record.turn_id = record.turn_id or self._agent(ident).turn
        record.native_id = native_id
        return self._stream(ident, at).add(record)

    # the wire

    def _message(self, ident: str, wire: Wire, at: str | None) -> None:
        kind = PAYLOADS.get(wire.type)
        said: Any = msgspec.convert(wire.payload, kind) if kind is not None else None
        agent = self._agent(ident)
        if not isinstance(said, CallPart):
            self._whole_call(ident, agent, at)
        match said:
            case TurnBegin():
                self._prompt(ident, agent, said, at, steer=wire.type == "SteerInput")
            case StepBegin():
                agent.inference = f"{agent.turns}.{said.n}"
                agent.asked = self.add(ident, Inference(inference_id=agent.inference, id_source="derived"), at)
            case NativeCall():
                self._call(ident, agent, said, at)
            case CallPart():
                self._call_part(ident, agent, said, wire, at)
            case Status():
                self._status(ident, agent, said, at)
            case ResultOf():
                self._result(ident, agent, said, at)
            case SubagentEvent():
                self._subagent(ident, agent, said, at)
            case AskedFor():
                agent.approvals[said.id] = said.tool_call_id
                meta = {"dev.asrd.action": said.action} if said.action else None
                self.add(ident, Approval(phase="requested", call_id=said.tool_call_id, meta=meta), at, said.id)
            case Answered():
                self._answered(ident, agent, said, at)
            case _:
                self._plain(ident, agent, wire, at)

    def _plain(self, ident: str, agent: AgentState, wire: Wire, at: str | None) -> None:
        match wire.type:
            case "ContentPart":
                blocks = _blocks([wire.payload])
                self.add(
                    ident,
                    Message(role="assistant", author="agent", content=blocks, inference_id=agent.inference),
                    at,
                )
            case "TurnEnd":
                status = "interrupted" if agent.interrupted else "completed"
                self.add(ident, Turn(turn_id=agent.turn or "0", phase="end", status=status), at)
                agent.turn = None
            case "Notification" if self._exited(ident, agent, wire.payload, at):
                return
            case "CompactionEnd":
                self.add(ident, Compaction(), at)
            case _:
                if wire.type == "StepInterrupted":
                    agent.interrupted = True
                self.add(ident, Native(native_type=wire.type, data=msgspec.to_builtins(wire)), at)

    def _prompt(self, ident: str, agent: AgentState, said: TurnBegin, at: str | None, steer: bool) -> None:
        if isinstance(said.user_input, str):
            self.state.asked = [*self.state.asked[-KEPT:], said.user_input.strip()[:ASKED]]
        author, origin = ("agent", "agent") if ident else ("human", "prompt")
        reminder = isinstance(said.user_input, str) and _REMINDER.fullmatch(said.user_input) is not None
        if reminder:
            author, origin = "harness", "injected"
        if not steer:
            agent.turns += 1
            agent.turn, agent.interrupted, agent.inference, agent.asked = str(agent.turns), False, None, None
            self.add(
                ident, Turn(turn_id=agent.turn, phase="start", trigger="agent" if ident or reminder else "prompt"), at
            )
        self.add(
            ident,
            Message(role="user", author=author, origin=origin, content=_blocks(said.user_input)),
            at,
        )

    def _status(self, ident: str, agent: AgentState, said: Status, at: str | None) -> None:
        changed = said.plan_mode is not None and said.plan_mode != agent.mode
        if changed:
            first, agent.mode = agent.mode is None and said.plan_mode is False, said.plan_mode
            if not first:
                self.add(ident, Config(mode="plan" if said.plan_mode else "default"), at)
        if said.token_usage is None:
            if not changed:
                self.out.skip("context-size")
            return
        usage = said.token_usage
        name, known = agent.inference, agent.asked
        if name is None or known is None:
            name = said.message_id or f"usage@{at}"
        self.add(
            ident,
            Inference(
                inference_id=name,
                id_source="derived" if known else None,
                supersedes=known,
                usage=Usage(
                    input=usage.input_other,
                    output=usage.output,
                    cache_read=usage.input_cache_read,
                    cache_write=usage.input_cache_creation,
                ),
            ),
            at,
            said.message_id,
        )
        agent.asked = None

    # tools

    def _call(self, ident: str, agent: AgentState, said: NativeCall, at: str | None) -> None:
        text = said.function.arguments or ""
        call = Call(said.function.name, text, "", agent.inference)
        call.record = self.add(ident, _call_of(said.id, call), at)
        agent.calls[said.id] = call
        agent.last_call = said.id
        if items := _plan(call):
            self.add(ident, Plan(items=items, call_id=said.id), at)

    def _call_part(self, ident: str, agent: AgentState, said: CallPart, wire: Wire, at: str | None) -> None:
        call = agent.calls.get(agent.last_call or "")
        if call is None:
            self.add(ident, Native(native_type=wire.type, data=msgspec.to_builtins(wire)), at)
            return
        call.text += said.arguments_part or ""
        call.pieces = True
        self.out.skip("piece-of-a-call")

    def _whole_call(self, ident: str, agent: AgentState, at: str | None) -> None:
        """A call whose arguments came in pieces, now that something else came."""
        name = agent.last_call
        call = agent.calls.get(name or "")
        if name is None or call is None or not call.pieces:
            return
        call.pieces = False
        record = _call_of(name, call)
        record.supersedes = call.record
        call.record = self.add(ident, record, at)
        if items := _plan(call):
            self.add(ident, Plan(items=items, call_id=name), at)

    def _result(self, ident: str, agent: AgentState, said: ResultOf, at: str | None) -> None:
        name, value = said.tool_call_id, said.return_value
        call = agent.calls.pop(name, None)
        decision = agent.decided.pop(name, None)
        content = _blocks(value.output) if value.output else list[Block]()
        text = "\n".join(b.text for b in content if isinstance(b, Text))
        words = value.message or ""
        status = "failed" if value.is_error else "completed"
        if value.is_error and (decision == "deny" or _REJECTED.search(words)):
            status = "denied"
        args = _arguments(call.text) if call else {}
        ran = _exec(call, args, words, value.is_error, status)
        meta: dict[str, Any] = {"dev.asrd.message": words} if words and content else {}
        record = self.add(
            ident,
            ToolResult(
                call_id=name,
                linkage="exact" if call else "none",
                status=status,
                content=content or ([Text(text=words)] if words else None),
                exec=ran,
                meta=meta or None,
            ),
            at,
        )
        if call is None:
            return
        if (found := _TASK.match(text)) is not None:
            if ran is not None:
                agent.behind[found[1]] = Behind(name, record, text, ran.command)
                while len(agent.behind) > KEPT:
                    del agent.behind[next(iter(agent.behind))]
            elif call.name == "Agent" and (child := _AGENT.search(text)) and child[1] not in agent.linked:
                self._named(ident, agent, child[1], name, at)
        if ran is not None:
            agent.files.doubt()
            for commit in commits(ran.command, text):
                self.add(ident, VcsAction(action="commit", commit=commit, evidence="observed", call_id=name), at)
        elif not value.is_error:
            self._touched(ident, agent, name, call.name, args, words, text, value.display, at)

    def _exited(self, ident: str, agent: AgentState, payload: Any, at: str | None) -> bool:
        """Whether a note says how a command in the background ended: then its call's result is completed."""
        told: Any = cast("dict[str, Any]", payload).get("payload") if isinstance(payload, dict) else None
        if not isinstance(told, dict):
            return False
        task = cast("dict[str, Any]", told)
        name, code, seconds = task.get("task_id"), task.get("exit_code"), task.get("duration_s")
        if not isinstance(name, str) or name not in agent.behind or type(code) is not int:
            return False
        one = agent.behind.pop(name)
        self.add(
            ident,
            ToolResult(
                call_id=one.call,
                linkage="exact",
                status="failed" if code else "completed",
                content=[Text(text=one.text)],
                exec=Exec(
                    command=one.command,
                    exit_code=code,
                    duration_ms=round(seconds * 1000) if isinstance(seconds, (int, float)) else None,
                    timed_out=True if task.get("timed_out") is True else None,
                ),
                supersedes=one.record,
            ),
            at,
        )
        return True

    def _named(self, ident: str, agent: AgentState, child: str, call: str, at: str | None) -> None:
        """A sub-agent in the background, which only the result of its call names."""
        agent.linked.append(child)
        if child not in self.state.spawned:
            self.state.spawned[child] = call
            self.state.named.append(child)
        key = self._key(child)
        target = LinkTarget(agent="kimi-py", session_id=key.session_id, namespace=key.namespace)
        evidence = Evidence(kind="native-id-in-output", field="ToolResult.output", value=child)
        self.add(ident, Link(relation="spawned", target=target, call_id=call, evidence=evidence), at)

    def _touched(
        self,
        ident: str,
        agent: AgentState,
        name: str,
        tool: str,
        args: dict[str, Any],
        words: str,
        text: str,
        display: list[dict[str, Any]],
        at: str | None,
    ) -> None:
        path = args.get("path")
        if not isinstance(path, str):
            return
        key = absolute(None, path)
        if tool == "ReadFile":
            if (whole := _whole(words, text)) is not None:
                agent.files.is_(key, whole)
            return
        if tool not in ("StrReplaceFile", "WriteFile"):
            return
        known = agent.files.get(key)
        there = args.get("mode") == "append" or bool(known and known.text)
        before_text = known.text if known else None
        if known and known.doubtful and not _shows_whole(display, before_text):
            before_text = None
        after = None
        if tool == "StrReplaceFile":
            edits = _edits(args)
            if before_text is not None and edits:
                after = replaced(before_text, edits)
        elif args.get("mode") == "append":
            after = before_text + str(args.get("content")) if before_text is not None else None
        elif isinstance(args.get("content"), str):
            after = cast("str", args["content"])
        if after is None:
            before_text = None
        self.add(
            ident,
            FileChange(
                path=within(path, None),
                change="create" if tool == "WriteFile" and not there and _created(display) else "modify",
                call_id=name,
                before=content_of(before_text) if before_text is not None else None,
                after=content_of(after) if after is not None else None,
                applied=True,
                evidence="derived" if tool == "StrReplaceFile" else "reported",
            ),
            at,
        )
        if after is None:
            agent.files.forget(key)
        else:
            agent.files.is_(key, after)

    # sub-agents and approvals

    def _subagent(self, ident: str, agent: AgentState, said: SubagentEvent, at: str | None) -> None:
        call = said.parent_tool_call_id or said.task_tool_call_id
        child = said.agent_id or call
        if child is None:
            self.add(ident, Native(native_type="SubagentEvent", data=msgspec.to_builtins(said)), at)
            return
        if child not in agent.linked:
            agent.linked.append(child)
            self.state.spawned[child] = call
            key = self._key(child)
            field = "SubagentEvent.agent_id" if said.agent_id else "SubagentEvent.parent_tool_call_id"
            self.add(
                ident,
                Link(
                    relation="spawned",
                    target=LinkTarget(agent="kimi-py", session_id=key.session_id, namespace=key.namespace),
                    call_id=call,
                    evidence=Evidence(kind="native-field", field=field, value=child),
                ),
                at,
            )
        if said.agent_id is None:
            self._message(child, said.event, at)
        elif not self.out.noted():
            self.out.skip("sub-agent-restated")

    def _answered(self, ident: str, agent: AgentState, said: Answered, at: str | None) -> None:
        call = agent.approvals.pop(said.request_id, None)
        words = {"approve": "allow", "approve_for_session": "allow_always", "reject": "deny"}
        decision = words.get(said.response or "", said.response)
        if call is not None and decision is not None:
            agent.decided[call] = decision
        meta = {"dev.asrd.feedback": said.feedback} if said.feedback else None
        self.add(ident, Approval(phase="decided", call_id=call, decision=decision, meta=meta), at, said.request_id)


# ---------------------------------------------------------------- how it says things


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


def _arguments(text: str) -> dict[str, Any]:
    """A call's arguments, which are JSON in text; what is no object is wrapped as it stands."""
    if not text:
        return {}
    try:
        return _object.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {"raw": text}


def _call_of(name: str, call: Call) -> ToolCall:
    kind = KINDS.get(call.name, "other")
    return ToolCall(call_id=name, name=call.name, kind=kind, input=_arguments(call.text), inference_id=call.inference)


def _plan(call: Call) -> list[PlanItem]:
    words = {"done": "completed", "in_progress": "in_progress", "pending": "pending"}
    if call.name != "SetTodoList":
        return []
    try:
        todos = msgspec.convert(_arguments(call.text).get("todos"), list[Todo])
    except msgspec.ValidationError:
        return []
    return [PlanItem(text=t.title, status=words.get(t.status, t.status)) for t in todos]


def _exec(call: Call | None, args: dict[str, Any], words: str, failed: bool, status: str) -> Exec | None:
    if call is None or call.name not in ("Shell", "Bash"):
        return None
    command = args.get("command")
    ran = Exec(command=command if isinstance(command, str) else None)
    if found := _EXIT.search(words):
        ran.exit_code = int(found[1])
    elif _TIMEOUT.search(words):
        ran.timed_out = True
    elif not failed and status == "completed" and words.startswith("Command executed successfully"):
        ran.exit_code = 0
    return ran


def _whole(words: str, text: str) -> str | None:
    """A file that was read whole: every line behind its number, with the newlines the file has."""
    if "from line 1." not in words or "End of file reached" not in words or "truncated" in words.lower():
        return None
    lines = text.split("\n")
    last = lines.pop() if lines and not lines[-1] else None
    found = [m[1] for m in map(_NUMBERED.match, lines) if m]
    if len(found) != len(lines) or "\ufffd" in text:
        return None
    return "\n".join(found) + ("\n" if last is not None else "")


def _edits(args: dict[str, Any]) -> list[tuple[str, str, bool]]:
    given = args.get("edit")
    try:
        if isinstance(given, list):
            found = msgspec.convert(cast("list[Any]", given), list[Replace])
        else:
            found = [msgspec.convert(given, Replace)]
    except msgspec.ValidationError:
        return []
    return [(e.old, e.new, e.replace_all) for e in found]


def _shows_whole(display: list[dict[str, Any]], text: str | None) -> bool:
    """Whether a diff that the edit shows has the whole of this text as what was there before."""
    if text is None:
        return False
    for block in display:
        if block.get("type") == "diff" and block.get("old_start") in (None, 1) and not block.get("is_summary"):
            return block.get("old_text") in (text, text.removesuffix("\n"))
    return False


def _created(display: list[dict[str, Any]]) -> bool:
    return any(b.get("type") == "diff" and b.get("old_text") == "" and not b.get("is_summary") for b in display)


RECORDER = KimiPyRecorder
