"""ACP: what a client and an agent say to each other over the Agent Client Protocol, as `asrd acp` copies it.

A source is one connection: `spool/<connection id>.acp.jsonl`, written by `asrd acp` (see `asrd/acp/spool.py`). All of
them feed one recorder, because one session may live through many connections. Lines (shortened):

    {"at":"…","dir":"meta","event":"open","connection":"20261130T044555.869-7-a1b2c3","transport":"stdio",…}
    {"at":"…","dir":"c2a","frame":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,…}}}
    {"at":"…","dir":"a2c","frame":{"id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"gemini-cli",…}}}}
    {"at":"…","dir":"c2a","frame":{"id":2,"method":"session/new","params":{"cwd":"/home/dev/app","mcpServers":[]}}}
    {"at":"…","dir":"a2c","frame":{"id":2,"result":{"sessionId":"3ed3db6d-…","modes":{"currentModeId":"yolo"}}}}
    {"at":"…","dir":"c2a","frame":{"id":3,"method":"session/prompt","params":{"sessionId":"3ed3db6d-…","prompt":[…]}}}
    {"at":"…","dir":"a2c","frame":{"method":"session/update","params":{"sessionId":"…","update":{"sessionUpdate":
        "agent_message_chunk","content":{"type":"text","text":"I will "}}}}}
    {"at":"…","dir":"a2c","frame":{"id":3,"result":{"stopReason":"end_turn","usage":{…}}}}
    {"at":"…","dir":"meta","event":"closed","by":"agent","code":0}

What is decided here
    - A stream is named by the agent's own harness (`claude-code`, `codex`, … by `AGENTS`; else by the name the agent gave),
      the session's id, and namespace `acp`. An agent that keeps a native session of its own makes it `secondary`, with a
      link `observes`; such a stream never counts. Other agents' streams are `primary`.
    - Times are those at which a message was seen (`atSource: recorder`); the protocol has none.
    - A message is written when its end is certain: another kind of update, another `messageId`, a call, the turn's end.
      `usage_update` and what else tells of the session rather than of the conversation ends nothing.
    - A call is written when something else happens or its result comes, so that its input, which agents send in pieces, is
      whole most often; what changes later is a record that supersedes it.
    - Between `session/load` (or a resume that asks for a replay) and its answer, the conversation is replayed history: a
      named skip, for it is no new activity.
    - `usage_update` is how full the context is, never usage. The result of a prompt has totals, whose meaning differs by
      agent (`AGENTS`). One response's figures are known from Qwen (each) and OpenCode (a turn's last) only.
    - Whether the figures count cached tokens within input is told by their own sum; where the sum tells nothing, only the
      total is said and the raw figures are kept.

Versions seen: the adapters of the captures `S7-acp` (protocol 1). Protocol 2 is built from the schema of
`@agentclientprotocol/sdk` 2.4.0 and read loosely, because it is a draft.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import hashlib
import re
import shlex
from typing import Any, ClassVar, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from asrd.recorders.base import Recorder, StreamKey, StreamOut, fields_of, sha256, within
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
    Gap,
    Image,
    Inference,
    Lineage,
    LineageParent,
    Link,
    LinkTarget,
    Loss,
    Message,
    MessageSent,
    Native,
    Other,
    Plan,
    PlanItem,
    Record,
    Resource,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
    VcsAction,
    Workspace,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, Source

ACP = "dev.asrd.acp"
NAMESPACE = "acp"
GROUP = "acp"


# ---------------------------------------------------------------- what is known of agents


class Known(Struct, frozen=True):
    """What the captures showed of one agent. `harness`: the name of the recorder of its native files.

    `usage`: what a prompt's result says: `turn`, `session` (running total), `last` (the turn's last response only),
    `quota` (under `_meta`, without a word on cached tokens), `each` (every response, in its messages), `none`.
    `whole`: its diffs hold whole files. `exit_text`: where its own text says the exit code, with the value as group 1.
    `own_version`: the version it tells is the harness's, not an adapter's. `named_by`: where the tool's name stands in a
    call's first title, as group 1; `command_by`: where a command does, in the title of one that runs a command and sends no
    input. `lossy`: what was measured to be lost (`docs/acp-losses.md`).
    """

    harness: str
    usage: str = "none"
    whole: bool = False
    exit_text: str | None = None
    own_version: bool = False
    named_by: str | None = None
    command_by: str | None = None
    lossy: tuple[str, ...] = ()


ALWAYS_LOST = ("at.native", "inference.id", "inference.model", "prompt.system", "thinking.signature")
"""Facts for which the protocol has no place."""

_CLAUDE = Known(
    "claude-code",
    usage="turn",
    exit_text=r"\AExit code (\d{1,3})(?:\n|\Z)",
    lossy=("exec.exitCode", "inference.usage"),
)
_CODEX = Known(
    "codex",
    usage="turn",
    lossy=(
        "file_change.content", "file_change.diff", "inference.usage", "tool_call", "tool_call.input", "tool_call.name",
    ),
)  # fmt: skip
_CODEX_ZED = Known(
    "codex", lossy=("file_change.content", "inference.usage", "tool_call.input", "tool_call.name", "usage_total")
)
_KIMI = Known(
    "kimi",
    named_by=r"\A(\w+)\Z",
    exit_text=r"Command failed with exit code: (\d{1,3})\.\s*\Z",
    own_version=True,
    lossy=(
        "exec.exitCode",
        "file_change.content",
        "file_change.diff",
        "inference.usage",
        "tool_call.id",
        "usage_total",
    ),
)

AGENTS: dict[str, Known] = {
    "@agentclientprotocol/claude-agent-acp": _CLAUDE,
    "@zed-industries/claude-agent-acp": _CLAUDE,
    "@zed-industries/claude-code-acp": _CLAUDE,
    "@agentclientprotocol/codex-acp": _CODEX,
    "codex-acp": _CODEX_ZED,
    "@zed-industries/codex-acp": _CODEX_ZED,
    "Copilot": Known(
        "copilot", usage="session", own_version=True, lossy=("file_change.content", "inference.usage", "tool_call.name")
    ),
    "gemini-cli": Known(
        "gemini",
        usage="quota",
        whole=True,
        own_version=True,
        command_by=r"\A(.+)\Z",
        lossy=(
            "exec.exitCode",
            "inference.usage",
            "tool_call.id",
            "tool_call.input",
            "usage_total",
            "vcs.commit",
        ),
    ),
    "hermes-agent": Known(
        "hermes",
        usage="session",
        whole=True,
        exit_text=r"^- \*\*exit_code:\*\* (\d{1,3})\s*$",
        own_version=True,
        command_by=r"\Aterminal: (.+)\Z",
        lossy=(
            "inference.usage",
            "message",
            "tool_call.id",
            "tool_call.input",
            "tool_call.name",
            "tool_result",
        ),
    ),
    "Kimi Code CLI": _KIMI,
    "openclaw-acp": Known(
        "openclaw",
        own_version=True,
        named_by=r"\A(\w+): ",
        lossy=("file_change.content", "inference.usage", "message", "thinking", "usage_total"),
    ),
    "OpenCode": Known(
        "opencode",
        usage="last",
        own_version=True,
        named_by=r"\A(\w+)\Z",
        lossy=("file_change.content", "inference.usage", "usage_total"),
    ),
    "pi-acp": Known(
        "pi",
        whole=True,
        named_by=r"\A(read|edit|write)\Z",
        command_by=r"\A(.+)\Z",
        exit_text=r"Command exited with code (\d{1,3})\s*\Z",
        lossy=("file_change.content", "inference.usage", "tool_call.input", "tool_call.name", "usage_total"),
    ),
    "qwen-code": Known("qwen", usage="each", whole=True, own_version=True, lossy=("usage_total",)),
    "@mistralai/mistral-vibe": Known(
        "vibe",
        usage="session",
        own_version=True,
        lossy=("exec.exitCode", "inference.usage", "tool_call.id", "tool_call.input"),
    ),
}
"""By `agentInfo.name` (protocol 2: `info.name`), as seen in the captures; older names as their packages give them."""


# ---------------------------------------------------------------- native structs


class Lost(Struct):
    """A message that `asrd acp` forwarded and could not keep."""

    reason: str
    bytes: int = 0
    sha256: str | None = None


class SpoolLine(Struct):
    """One line of a spool."""

    at: str
    dir: str
    frame: Raw | UnsetType = UNSET
    lost: Lost | None = None
    event: str = ""
    connection: str = ""
    transport: str = ""
    command: str | None = None
    side: str | None = None
    by: str | None = None
    code: int | None = None
    signal: str | None = None
    reason: str | None = None
    bytes: int | None = None
    frames: int | None = None


class RpcError(Struct):
    """JSON-RPC 2.0, section 5.1."""

    code: int = 0
    message: str = ""
    data: Raw | UnsetType = UNSET


class Frame(Struct):
    """JSON-RPC 2.0: a request, a notification or a response."""

    method: str | None = None
    id: int | str | float | None | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: RpcError | None = None


class Camel(Struct, rename="camel"):
    """Base of the protocol's objects."""


class Implementation(Camel):
    """A program's name and version."""

    name: str = ""
    title: str | None = None
    version: str | None = None


class Initialize(Camel):
    """`initialize`, request and result, both protocols."""

    protocol_version: int | str | None = None
    client_info: Implementation | None = None
    agent_info: Implementation | None = None
    info: Implementation | None = None
    agent_capabilities: Raw | UnsetType = UNSET
    capabilities: Raw | UnsetType = UNSET
    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class Option(Camel):
    """A configuration option."""

    id: str
    category: str | None = None
    current_value: Any = None


class Modes(Camel):
    """The modes of a session."""

    current_mode_id: str | None = None


class Models(Camel):
    """The models of a session (older than configuration options)."""

    current_model_id: str | None = None


class SessionRequest(Camel):
    """The requests that make or open a session, and those that name one."""

    session_id: str | None = None
    cwd: str | None = None
    additional_directories: list[str] | None = None
    replay_from: Raw | UnsetType = UNSET
    mode_id: str | None = None
    config_id: str | None = None
    value: Any = None


class SessionResult(Camel):
    """What they are answered with."""

    session_id: str | None = None
    modes: Modes | None = None
    models: Models | None = None
    config_options: list[Option] | None = None
    meta: dict[str, Raw] | None = field(name="_meta", default=None)


class Prompt(Camel):
    """`session/prompt`."""

    session_id: str
    prompt: list[Raw] = []
    meta: dict[str, Raw] | None = field(name="_meta", default=None)


class Figures(Camel):
    """Tokens, as a prompt's result or an idle state tells them."""

    total_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    thought_tokens: int | None = None
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None


class PromptResult(Camel):
    """The result of a prompt: protocol 1 the end of its turn, protocol 2 that it was taken."""

    stop_reason: str | None = None
    message_id: str | None = None
    usage: Raw | UnsetType = UNSET
    meta: dict[str, Raw] | None = field(name="_meta", default=None)


class Update(Camel):
    """`session/update`."""

    session_id: str
    update: Raw
    meta: dict[str, Raw] | None = field(name="_meta", default=None)


class Kind(Camel):
    """What an update is."""

    session_update: str


class ContentBlock(Camel):
    """A piece of content."""

    type: str
    text: str | None = None
    data: str | None = None
    mime_type: str | None = None
    uri: str | None = None
    name: str | None = None
    resource: EmbeddedResource | None = None


class EmbeddedResource(Camel):
    """A resource with its content."""

    uri: str = ""
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class Chunk(Camel):
    """A piece of a message."""

    content: Raw
    message_id: str | None = None
    meta: dict[str, Raw] | None = field(name="_meta", default=None)


class Whole(Camel):
    """A message at once (protocol 2). Content: absent = unchanged, null = cleared."""

    message_id: str
    content: list[Raw] | None | UnsetType = UNSET
    meta: dict[str, Raw] | None = field(name="_meta", default=None)


class ToolUpdate(Camel):
    """A call, or what changed of it: absent = unchanged, null = cleared."""

    tool_call_id: str
    title: str | None | UnsetType = UNSET
    name: str | None | UnsetType = UNSET
    kind: str | None | UnsetType = UNSET
    status: str | None | UnsetType = UNSET
    content: list[Raw] | None | UnsetType = UNSET
    locations: Raw | UnsetType = UNSET
    raw_input: Raw | UnsetType = UNSET
    raw_output: Raw | UnsetType = UNSET
    meta: dict[str, Raw] | None = field(name="_meta", default=None)


class ToolContent(Camel):
    """One item of a call's content."""

    type: str
    content: Raw | UnsetType = UNSET
    path: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    terminal_id: str | None = None
    session_id: str | None = None
    changes: list[DiffChange] | None = None
    patch: DiffPatch | None = None


class DiffChange(Camel):
    """One file of a diff (protocol 2)."""

    operation: str
    path: str
    old_path: str | None = None


class DiffPatch(Camel):
    """The text of a diff (protocol 2)."""

    format: str = ""
    text: str = ""


class ContentChunk(Camel):
    """`tool_call_content_chunk` (protocol 2)."""

    tool_call_id: str
    content: Raw


class PlanEntry(Camel):
    """A step of a plan."""

    content: str = ""
    status: str = "pending"


class PlanUpdate(Camel):
    """`plan` (protocol 1) and `plan_update` (protocol 2)."""

    entries: list[PlanEntry] | None = None
    plan: PlanBody | None = None


class PlanBody(Camel):
    """A plan with its id (protocol 2)."""

    type: str = ""
    plan_id: str | None = None
    entries: list[PlanEntry] | None = None


class ModeUpdate(Camel):
    """`current_mode_update`."""

    current_mode_id: str


class OptionsUpdate(Camel):
    """`config_option_update`, and the answer to `session/set_config_option`."""

    config_options: list[Option] | None = None


class InfoUpdate(Camel):
    """`session_info_update`."""

    title: str | None | UnsetType = UNSET
    meta: dict[str, Raw] | None = field(name="_meta", default=None)


class ContextUpdate(Camel):
    """`usage_update`: how full the context is, and what the session cost so far."""

    used: int | None = None
    size: int | None = None
    cost: Raw | UnsetType = UNSET
    meta: dict[str, Raw] | None = field(name="_meta", default=None)


class Notice(Camel):
    """`notice`."""

    title: str | None = None
    description: str | None = None
    severity: str | None = None


class CompactionUpdate(Camel):
    """`compaction_update` and its summary's chunks."""

    compaction_id: str = ""
    status: str | None = None
    summary: Any = None
    content: Raw | UnsetType = UNSET


class StateUpdate(Camel):
    """`state_update` (protocol 2), and the state of a sub-agent."""

    state: str = ""
    stop_reason: str | None = None
    usage: Raw | UnsetType = UNSET


class SubagentUpdate(Camel):
    """`subagent_update`, in both dialects: `session_id` is the child's since 2026-11-20, `subagent_session_id` before."""

    session_id: str | None = None
    subagent_session_id: str | None = None
    title: str | None = None
    name: str | None = None
    tool_call_id: str | None = None
    cwd: str | None = None
    state: Any = None


class Between(Camel):
    """`session_message` and its chunks: what one session says to another."""

    message_id: str | None = None
    sender_session_id: str | None = None
    recipient_session_id: str | None = None
    sender_message_id: str | None = None
    recipient_message_id: str | None = None
    content: Raw | UnsetType = UNSET


class TerminalUpdate(Camel):
    """`terminal_update` and `terminal_output_chunk` (protocol 2), data in base64."""

    terminal_id: str
    command: str | None = None
    cwd: str | None = None
    output: TerminalData | None = None
    data: str | None = None
    exit_status: ExitStatus | None = None


class TerminalData(Camel):
    """What a terminal shows."""

    data: str = ""


class ExitStatus(Camel):
    """How a command ended."""

    exit_code: int | None = None
    signal: str | None = None


class Permission(Camel):
    """`session/request_permission`, both protocols."""

    session_id: str
    tool_call: Raw | UnsetType = UNSET
    options: list[PermissionOption] = []
    title: str | None = None
    description: str | None = None
    subject: PermissionSubject | None = None


class PermissionSubject(Camel):
    """What a permission is asked for (protocol 2)."""

    type: str = ""
    tool_call: Raw | UnsetType = UNSET
    tool_call_id: str | None = None
    command: str | None = None


class PermissionOption(Camel):
    """One of the answers that can be given."""

    option_id: str
    name: str | None = None
    kind: str | None = None


class Outcome(Camel):
    """The answer that was given."""

    outcome: str = ""
    option_id: str | None = None


class PermissionResult(Camel):
    """The result of `session/request_permission`."""

    outcome: Outcome


class ClientRequest(Camel):
    """`fs/*` and `terminal/*`: what the agent has the client do (protocol 1)."""

    session_id: str
    path: str | None = None
    content: str | None = None
    line: int | None = None
    limit: int | None = None
    terminal_id: str | None = None
    command: str | None = None
    args: list[str] | None = None
    cwd: str | None = None


class ClientResult(Camel):
    """What the client answered."""

    content: str | None = None
    terminal_id: str | None = None
    output: str | None = None
    truncated: bool | None = None
    exit_status: ExitStatus | None = None
    exit_code: int | None = None
    signal: str | None = None


# ---------------------------------------------------------------- state


class Pending(Struct, omit_defaults=True):
    """A request that was not answered yet."""

    method: str
    at: str
    params: bytes = b""
    session: str | None = None
    cwd: str | None = None
    more: list[str] = []
    turn: str | None = None
    call: str | None = None
    options: dict[str, str] = {}
    path: str | None = None
    content: str | None = None
    whole: bool = True
    terminal: str | None = None
    config: str | None = None
    value: str | None = None
    command: str | None = None


class Held(Struct, omit_defaults=True):
    """A message that belongs to no session, kept until there is one."""

    at: str
    type: str
    data: bytes


class Connection(Struct, omit_defaults=True):
    """One connection: who speaks, and what is not answered yet."""

    id: str = ""
    transport: str = ""
    command: str | None = None
    protocol: int = 1
    agent: str = ""
    known: str = ""
    version: str | None = None
    info: bytes = b""
    capabilities: bytes = b""
    meta: bytes = b""
    client: bytes = b""
    pending: dict[str, Pending] = {}
    sessions: list[str] = []
    held: list[Held] = []
    eof: str = ""
    counted: int = 0
    """Turns and responses that the protocol gives no id; theirs is made of the connection's and this."""


class Part(Struct, omit_defaults=True):
    """A piece of a message: words, or other content as it came."""

    text: str | None = None
    raw: bytes = b""


class Buffer(Struct, omit_defaults=True):
    """A message whose end was not seen yet."""

    kind: str
    at: str
    message_id: str | None = None
    turn: str | None = None
    parts: list[Part] = []
    meta: dict[str, bytes] = {}
    parent: str | None = None


class OpenTurn(Struct, omit_defaults=True):
    """A turn that was not ended yet. `prompt`: its text, to know an echo by."""

    id: str
    prompt: str = ""
    unsaid: list[bytes] | None = None
    at: str = ""


class Tool(Struct, omit_defaults=True):
    """A call as it stands now, and what of it was written."""

    id: str
    at: str
    turn: str | None = None
    title: str | None = None
    first_title: str | None = None
    name: str | None = None
    kind: str | None = None
    status: str | None = None
    input: bytes = b""
    output: bytes = b""
    content: list[bytes] = []
    diffs: list[bytes] = []
    """The diffs last shown: Kimi's end with the result, whose content takes their place."""
    locations: bytes = b""
    meta: dict[str, bytes] = {}
    terminal: str | None = None
    denied: bool = False
    missed: bool = False
    dirty: bool = True
    call: str = ""
    said_title: str | None = None
    said_locations: bytes = b""
    result: str = ""
    said: str = ""
    changes: list[str] = []
    commits: list[str] = []


class Terminal(Struct, omit_defaults=True):
    """A terminal: the client's (protocol 1), the agent's (protocol 2), or one told in `_meta`."""

    command: str | None = None
    cwd: str | None = None
    output: bytes = b""
    exit_code: int | None = None
    signal: str | None = None


class SessionState(Struct, omit_defaults=True):
    """One session."""

    agent: str
    id: str
    known: str = ""
    connection: str = ""
    cwd: str | None = None
    more: list[str] = []
    turns: list[OpenTurn] = []
    replaying: int = 0
    buffer: Buffer | None = None
    tools: dict[str, Tool] = {}
    terminals: dict[str, Terminal] = {}
    config: dict[str, str] = {}
    options: dict[str, str] = {}
    context: bytes = b""
    totals: bytes = b""
    observed: list[str] = []
    children: list[str] = []
    read: dict[str, str] = {}
    said: dict[str, list[str]] = {}
    """Records of a message by kind and id (protocol 2), to supersede."""
    sent: list[str] = []
    summary: str = ""
    last: str = ""


class State(Struct):
    """All that is kept between lines."""

    connections: dict[str, Connection] = {}
    sessions: dict[str, SessionState] = {}


# ---------------------------------------------------------------- decoding

_line = msgspec.json.Decoder(SpoolLine).decode
_frame = msgspec.json.Decoder(Frame).decode
_object = msgspec.json.Decoder(dict[str, Raw]).decode
_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

FINAL = {"completed", "failed", "cancelled"}
CONVERSATION = {
    "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "user_message", "agent_message", "agent_thought",
    "tool_call", "tool_call_update", "tool_call_content_chunk", "plan", "plan_update", "plan_removed", "usage_update",
    "terminal_update", "terminal_output_chunk", "notice", "compaction_update", "compaction_summary_chunk",
    "session_message", "session_message_chunk", "state_update",
}  # fmt: skip
"""Updates that are history when they are replayed; the others tell how the session stands now."""

META_APART = {
    "available_commands_update", "current_mode_update", "config_option_update", "plan", "terminal_update",
    "terminal_output_chunk", "tool_call_content_chunk", "state_update", "compaction_summary_chunk",
}  # fmt: skip
"""Updates whose vendor data has no place in what becomes of them: it is a record of its own."""

OPENING = {"session/new", "session/load", "session/resume", "session/fork"}
KEPT_NOWHERE = {"initialize", "authenticate", "auth/login", "logout", "auth/logout", "session/list"}
"""Requests about the connection or about other sessions: their facts stand in headers, or are none of a session."""

_COMMIT = re.compile(r"\bgit\b[^\n]*\bcommit\b")
_FULL_ID = re.compile(r"^\s*(?:- \*\*output:\*\* )?([0-9a-f]{40})\s*$", re.MULTILINE)
"""A commit's full id on a line of its own (Hermes writes the output's first line behind a label)."""


def present(raw: Raw | UnsetType) -> bytes:
    """A value's JSON; empty when it is absent or null."""
    return b"" if isinstance(raw, UnsetType) or bytes(raw) == b"null" else bytes(raw)


class AcpRecorder(Recorder):
    harness = "acp"
    roots = (Root(".local/share/asrd/spool", env=("ASRD_HOME",), below="spool"),)
    places = (Place("*.acp.jsonl"),)
    versions = ("protocol 1", "protocol 2 draft (schema of sdk 2.4.0)")
    method = "live-proxy"
    secondary = True
    namespace = NAMESPACE
    spooled = True
    State = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        name = path.rsplit("/", 1)[-1]
        return Located(group=GROUP, name=name, order=name)

    @classmethod
    def claims(cls, head: bytes) -> bool:
        first = head.split(b"\n", 1)[0]
        return b'"dir":"meta"' in first and b'"event":"open"' in first

    def main(self) -> StreamOut:
        """The stream of the connection's latest session; of the connection itself when it has none."""
        name = self.out.source_name
        connection = self.state.connections.get(name)
        if connection is not None and connection.sessions:
            session = self.state.sessions[connection.sessions[-1]]
            stream = self.out.stream(self._key(session))
            if stream is not None:
                return stream
        ident = (connection.id if connection else "") or name.removesuffix(".acp.jsonl")
        key = StreamKey("acp", ident, NAMESPACE)
        meta: dict[str, Any] = {ACP: {"connection": ident}}
        return self.open(key, scope="secondary", profiles=("core",), meta=meta)

    # ------------------------------------------------------------ lines

    def receive(self, source: Source, item: Line | Row) -> None:
        line = _line(item.data)
        name = source.name
        connection = self.state.connections.get(name)
        if connection is None:
            connection = Connection(id=name.removesuffix(".acp.jsonl"))
        if line.dir == "meta":
            self.state.connections[name] = connection
            self._meta_line(name, connection, line)
            return
        if line.dir not in ("c2a", "a2c"):
            raise msgspec.ValidationError(f"no direction is called {line.dir}")
        if line.lost is not None:
            self.state.connections[name] = connection
            self._lost(line.lost)
            return
        if isinstance(line.frame, UnsetType):
            raise msgspec.ValidationError("a line without a frame")
        frames, strange = _frames(line.frame)
        self.state.connections[name] = connection
        for frame, data in frames:
            self._frame(connection, line, frame, data)
        for data in strange:
            self._native(self.main(), line.at, "not JSON-RPC", Raw(data))

    def _frame(self, connection: Connection, line: SpoolLine, frame: Frame, data: bytes) -> None:
        """One message: a request or notification, or an answer to one that went the other way."""
        ident = None if isinstance(frame.id, UnsetType) else f"{line.dir}:{frame.id!r}"
        if frame.method is not None:
            self._asked(connection, line, frame, ident, data)
            return
        other = "a2c" if line.dir == "c2a" else "c2a"
        pending = connection.pending.get(f"{other}:{frame.id!r}")
        if pending is None:
            self._hold(connection, line.at, "response without its request", data)
            return
        self._answered(connection, line, frame, pending, data)
        connection.pending.pop(f"{other}:{frame.id!r}", None)

    def _lost(self, lost: Lost) -> None:
        stream = self.main()
        span = self.out.span(stream.sources.get(self.out.source_name, "s1"))
        self.out.count(f"loss:{lost.reason}")
        stream.add(Loss(reason=lost.reason, span=span, sha256=lost.sha256, meta={ACP: {"bytes": lost.bytes}}))

    # ------------------------------------------------------------ the connection itself

    def _meta_line(self, name: str, connection: Connection, line: SpoolLine) -> None:
        if line.event == "open":
            connection.id = line.connection or connection.id
            connection.transport, connection.command = line.transport, line.command
            self.out.skip("connection-open")
        elif line.event == "eof":
            connection.eof = connection.eof or line.side or ""
            self.out.skip("connection-eof")
        elif line.event == "dropped":
            self._dropped(connection, line)
        elif line.event in ("closed", "lost"):
            self._closed(name, connection, line)
        else:
            self._native(self.main(), line.at, f"connection {line.event}", Raw(b"{}"))

    def _dropped(self, connection: Connection, line: SpoolLine) -> None:
        """Messages were forwarded and could not be kept: every session of the connection may miss some."""
        meta: dict[str, Any] = {ACP: {"why": line.reason, "frames": line.frames}}
        sessions = [self.state.sessions[k] for k in connection.sessions]
        for session in sessions:
            self._settle(session, line.at)
            self._put(session, Gap(reason="dropped", bytes=line.bytes, meta=meta), line.at)
        if not sessions:
            self.main().add(Gap(reason="dropped", at=line.at, at_source="recorder", bytes=line.bytes, meta=meta))

    def _closed(self, name: str, connection: Connection, line: SpoolLine) -> None:
        """The connection is over: what was open is written, and turns that were going on ended here."""
        lost = line.event == "lost"
        for key in connection.sessions:
            session = self.state.sessions[key]
            if session.connection == name:
                self._leave(session, connection, line, lost)
        if connection.held and not connection.sessions:
            for held in connection.held:
                self._native(self.main(), held.at, held.type, Raw(held.data))
        if lost and not connection.sessions:
            self.main().add(_seen(Gap(reason="dropped", meta={ACP: {"why": BETWEEN}}), line.at, None))
        self.out.skip("connection-lost" if lost else "connection-closed")
        self.state.connections.pop(name, None)

    def _leave(self, session: SessionState, connection: Connection, line: SpoolLine, lost: bool) -> None:
        working = bool(session.turns)
        self._settle(session, line.at)
        self._missing(session, line.at)
        if lost:
            self._put(session, Gap(reason="dropped", meta={ACP: {"why": BETWEEN}}), line.at)
        elif working:
            how = _how(connection, line)
            crashed = bool(line.signal) or bool(line.code)
            code = line.signal or (f"exit {line.code}" if line.code else "closed")
            for turn in list(session.turns):
                self._say_prompt(session, turn, None, line.at)
                end = Turn(turn_id=turn.id, phase="end", status="interrupted", error=Error(code=code, message=how))
                self._put(session, end, line.at)
            if line.by == "agent" and connection.eof != "client" or crashed:
                self._put(session, End(status="crashed" if crashed else "interrupted", reason=how), line.at)
        session.turns, session.replaying, session.connection = [], 0, ""
        session.tools, session.terminals, session.buffer = {}, {}, None
        session.read, session.said, session.sent, session.summary = {}, {}, [], ""
        session.config, session.options, session.context, session.totals = {}, {}, b"", b""

    # ------------------------------------------------------------ requests and notifications

    def _asked(self, connection: Connection, line: SpoolLine, frame: Frame, ident: str | None, data: bytes) -> None:
        method = frame.method or ""
        params = bytes(frame.params) if not isinstance(frame.params, UnsetType) else b"{}"
        handle = self.METHODS.get((line.dir, method))
        if handle is not None:
            pending = handle(self, connection, line.at, params, data, ident)
        elif method in KEPT_NOWHERE:
            self.out.skip(method)
            pending = Pending(method, line.at)
        else:
            pending = self._unknown(connection, line.at, method, params)
        if ident is not None and pending is not None:
            connection.pending[ident] = pending

    def _unknown(self, connection: Connection, at: str, method: str, params: bytes) -> Pending:
        """A method without a standard place: kept whole, in its session when it names one."""
        named = _session_named(params)
        session = self._session_of(connection, named) if named else None
        if session is None:
            self._hold(connection, at, method, params)
        else:
            self._native(self._stream(session), at, method, Raw(params))
        return Pending(method, at, session=named)

    def _initialize(
        self, connection: Connection, at: str, params: bytes, data: bytes, ident: str | None
    ) -> Pending | None:
        told = msgspec.json.decode(params, type=Initialize)
        client = told.client_info or told.info
        connection.client = _encode(client) if client else b""
        self.out.skip("initialize")
        return Pending("initialize", at)

    def _opening(
        self, connection: Connection, at: str, params: bytes, data: bytes, ident: str | None
    ) -> Pending | None:
        asked = msgspec.json.decode(params, type=SessionRequest)
        method = msgspec.json.decode(data, type=Frame).method or ""
        more = asked.additional_directories or []
        pending = Pending(method, at, params, session=asked.session_id, cwd=asked.cwd, more=more)
        replays = method == "session/load" or not isinstance(asked.replay_from, UnsetType)
        if method in ("session/load", "session/resume") and asked.session_id:
            pending.whole = replays
            session = self._open_known(connection, asked.session_id, pending, at, replays)
            if replays:
                session.replaying += 1
        self.out.skip(method)
        return pending

    def _prompt(self, connection: Connection, at: str, params: bytes, data: bytes, ident: str | None) -> Pending | None:
        asked = msgspec.json.decode(params, type=Prompt)
        blocks = [block(bytes(raw)) for raw in asked.prompt]
        session = self._session_of(connection, asked.session_id)
        self._settle(session, at)
        trigger = "queued" if session.turns else "prompt"
        turn = OpenTurn(self._made(connection), at=at)
        turn.prompt = "".join(b.text for b in blocks if isinstance(b, Text))
        turn.unsaid = [bytes(raw) for raw in asked.prompt]
        meta = {ACP: {"_meta": asked.meta}} if asked.meta else None
        self._stream(session).add(
            Turn(turn_id=turn.id, phase="start", trigger=trigger, at=at, at_source="recorder", meta=meta)
        )
        session.turns.append(turn)
        if connection.protocol < 2:
            self._say_prompt(session, turn, None, at)
        return Pending("session/prompt", at, session=asked.session_id, turn=turn.id)

    def _say_prompt(self, session: SessionState, turn: OpenTurn, message_id: str | None, at: str) -> None:
        """The prompt of a turn, once. In protocol 2 it waits for the id that the agent gives it."""
        if turn.unsaid is None:
            return
        blocks = [block(raw) for raw in turn.unsaid]
        turn.unsaid = None
        record = Message(role="user", content=blocks, origin="prompt", message_id=message_id)
        record.turn_id, record.native_id = turn.id, message_id
        record.at, record.at_source = turn.at, "recorder"
        self._stream(session).add(record)
        session.last = at

    def _set(self, connection: Connection, at: str, params: bytes, data: bytes, ident: str | None) -> Pending | None:
        asked = msgspec.json.decode(params, type=SessionRequest)
        method = msgspec.json.decode(data, type=Frame).method or ""
        pending = Pending(method, at, session=asked.session_id)
        if method == "session/set_mode":
            pending.config, pending.value = "mode", asked.mode_id
        elif isinstance(asked.value, str):
            pending.config, pending.value = asked.config_id, asked.value
        self.out.skip(method)
        return pending

    def _ending(self, connection: Connection, at: str, params: bytes, data: bytes, ident: str | None) -> Pending | None:
        asked = msgspec.json.decode(params, type=SessionRequest)
        method = msgspec.json.decode(data, type=Frame).method or ""
        self.out.skip(method)
        return Pending(method, at, session=asked.session_id)

    # ------------------------------------------------------------ what the agent asks of the client

    def _permission(
        self, connection: Connection, at: str, params: bytes, data: bytes, ident: str | None
    ) -> Pending | None:
        asked = msgspec.json.decode(params, type=Permission)
        raw = asked.tool_call
        subject = asked.subject
        if isinstance(raw, UnsetType) and subject is not None:
            raw = subject.tool_call
        update = None if isinstance(raw, UnsetType) else msgspec.json.decode(raw, type=ToolUpdate)
        call = update.tool_call_id if update else subject.tool_call_id if subject else None
        session = self._session_of(connection, asked.session_id)
        meta: dict[str, Any] = {"options": asked.options}
        if asked.title or asked.description:
            meta |= {"title": asked.title, "description": asked.description}
        if subject is not None and subject.command:
            meta["command"] = subject.command
        self._settle(session, at, but=call)
        known = session.tools.get(call or "")
        if update is not None and (known is not None or not self._asks_by_itself(session, update)):
            tool = self._merge(session, update, at)
            self._say_call(session, tool)
            known = tool
        elif update is not None:  # the request names no call of the session
            meta["toolCall"] = raw
            self._proposed(session, update, at)
        record = Approval(phase="requested", call_id=known.id if known else None, meta={ACP: meta})
        self._put(session, record, at)
        options = {o.option_id: o.kind or "" for o in asked.options}
        return Pending(
            "session/request_permission",
            at,
            session=asked.session_id,
            call=known.id if known else None,
            options=options,
        )

    def _asks_by_itself(self, session: SessionState, update: ToolUpdate) -> bool:
        """Hermes gives the question an id of its own (`edit-approval-1`), which is the id of no call."""
        return session.known == "hermes-agent" and update.tool_call_id.startswith("edit-approval-")

    def _proposed(self, session: SessionState, update: ToolUpdate, at: str) -> None:
        """Hermes says what an edit changes in its question only; whether it was done is not said."""
        for raw in update.content or []:
            change = msgspec.json.decode(raw, type=ToolContent)
            if change.type == "diff" and change.path and change.new_text is not None:
                record = self._change(session, None, change, applied="unknown")
                self._put(session, record, at)

    def _client_file(
        self, connection: Connection, at: str, params: bytes, data: bytes, ident: str | None
    ) -> Pending | None:
        asked = msgspec.json.decode(params, type=ClientRequest)
        method = msgspec.json.decode(data, type=Frame).method or ""
        session = self._session_of(connection, asked.session_id)
        if method == "fs/write_text_file":
            self._settle(session, at)
        whole = asked.line is None and asked.limit is None
        self.out.skip(method)
        return Pending(method, at, session=asked.session_id, path=asked.path, content=asked.content, whole=whole)

    def _client_terminal(
        self, connection: Connection, at: str, params: bytes, data: bytes, ident: str | None
    ) -> Pending | None:
        asked = msgspec.json.decode(params, type=ClientRequest)
        method = msgspec.json.decode(data, type=Frame).method or ""
        session = self._session_of(connection, asked.session_id)
        if method == "terminal/kill":
            self._native(self._stream(session), at, method, Raw(params))
        else:
            self.out.skip(method)
        command = shlex.join([asked.command, *(asked.args or [])]) if asked.command else None
        return Pending(method, at, session=asked.session_id, terminal=asked.terminal_id, cwd=asked.cwd, command=command)

    # ------------------------------------------------------------ answers

    def _answered(self, connection: Connection, line: SpoolLine, frame: Frame, pending: Pending, data: bytes) -> None:
        result = bytes(frame.result) if not isinstance(frame.result, UnsetType) else b"null"
        if result == b"null":
            result = b"{}"
        method = pending.method
        if method in OPENING:
            self._opened(connection, line.at, pending, result, frame.error, data)
        elif method == "session/prompt":
            self._prompted(connection, line.at, pending, result, frame.error)
        elif frame.error is not None and method not in ("fs/read_text_file", "fs/write_text_file"):
            self._refused(connection, line.at, pending, data)
        elif method == "initialize":
            self._initialized(connection, result)
        elif method == "session/request_permission":
            self._decided(connection, line.at, pending, result)
        elif method in ("session/set_mode", "session/set_config_option"):
            self._was_set(connection, line.at, pending, result)
        elif method in ("session/close", "session/delete"):
            self._was_ended(connection, line.at, pending)
        elif method in ("fs/read_text_file", "fs/write_text_file"):
            self._file_answered(connection, line.at, pending, result, frame.error)
        elif method.startswith("terminal/"):
            self._terminal_answered(connection, line.at, pending, result)
        elif method in KEPT_NOWHERE:
            self.out.skip(f"{method} result")
        else:
            session = self._find(connection, pending.session)
            if session is None:
                self._hold(connection, line.at, f"{method} result", result)
            else:
                self._native(self._stream(session), line.at, f"{method} result", Raw(result))

    def _refused(self, connection: Connection, at: str, pending: Pending, data: bytes) -> None:
        """An error for a request that changes nothing by itself."""
        session = self._find(connection, pending.session)
        if session is None:
            self._hold(connection, at, f"{pending.method} error", data)
            return
        self._native(self._stream(session), at, f"{pending.method} error", Raw(data))
        if pending.method == "session/request_permission":
            record = Approval(phase="decided", call_id=pending.call, decision="cancelled")
            self._put(session, record, at)

    def _initialized(self, connection: Connection, result: bytes) -> None:
        told = msgspec.json.decode(result, type=Initialize)
        agent = told.agent_info or told.info
        if isinstance(told.protocol_version, int):
            connection.protocol = told.protocol_version
        if agent is not None and agent.name:
            known = AGENTS.get(agent.name)
            connection.known = agent.name if known else ""
            connection.agent = known.harness if known else agent.name
            connection.version = agent.version if known is None or known.own_version else None
            connection.info = _encode(agent)
        connection.capabilities = present(told.agent_capabilities) or present(told.capabilities)
        connection.meta = present(told.meta)
        self.out.skip("initialize result")

    def _opened(
        self, connection: Connection, at: str, pending: Pending, result: bytes, error: RpcError | None, data: bytes
    ) -> None:
        told = msgspec.json.decode(result, type=SessionResult)
        again = pending.method in ("session/load", "session/resume")
        if error is not None:
            session = self._find(connection, pending.session)
            if session is not None and again and pending.whole:
                session.replaying = max(0, session.replaying - 1)
            self._refused(connection, at, pending, data)
            return
        ident = pending.session if again else told.session_id
        if not ident:
            self._hold(connection, at, f"{pending.method} result", result)
            return
        if pending.method == "session/fork":
            session = self._open_fork(connection, ident, pending, at)
        elif again:
            session = self._session_of(connection, ident)
            if pending.whole:
                session.replaying = max(0, session.replaying - 1)
        else:
            session = self._open_new(connection, ident, pending)
        modes = told.modes.current_mode_id if told.modes else None
        models = told.models.current_model_id if told.models else None
        self._configure(session, at, told.config_options, mode=modes, model=models, method=pending.method)
        if told.meta:
            self._native(self._stream(session), at, f"{pending.method} result _meta", told.meta)
            self._provenance(session, told.meta, f"{pending.method}.result", at)

    def _prompted(
        self, connection: Connection, at: str, pending: Pending, result: bytes, error: RpcError | None
    ) -> None:
        told = msgspec.json.decode(result, type=PromptResult)
        session = self._find(connection, pending.session)
        turn = next((t for t in session.turns if t.id == pending.turn), None) if session else None
        if session is None or turn is None:
            self.out.skip("session/prompt result")
            return
        if error is not None:
            self._say_prompt(session, turn, None, at)
            wrong = Error(code=str(error.code), message=error.message or None)
            detail = {} if isinstance(error.data, UnsetType) else {"data": error.data}
            self._end_turn(session, turn, at, "failed", wrong, detail)
            return
        if connection.protocol >= 2 and told.stop_reason is None:
            self._say_prompt(session, turn, told.message_id, at)
            self.out.skip("session/prompt result")
            return
        usage = present(told.usage)
        meta = {k: bytes(v) for k, v in (told.meta or {}).items()}
        self._settle(session, at)
        self._totals(connection, session, usage, meta, at)
        detail = {"stopReason": told.stop_reason} | ({"_meta": told.meta} if told.meta else {})
        self._end_turn(session, turn, at, STOPS.get(told.stop_reason or "", "completed"), None, detail)

    def _decided(self, connection: Connection, at: str, pending: Pending, result: bytes) -> None:
        told = msgspec.json.decode(result, type=PermissionResult)
        session = self._find(connection, pending.session)
        if session is None:
            self.out.skip("session/request_permission result")
            return
        kind = pending.options.get(told.outcome.option_id or "", "")
        decision = "cancelled" if told.outcome.outcome == "cancelled" else DECISIONS.get(kind)
        meta: dict[str, Any] = {"answeredBy": "client", "optionId": told.outcome.option_id, "kind": kind or None}
        tool = session.tools.get(pending.call or "")
        if tool is not None and decision in ("deny", "deny_always"):
            tool.denied = True
        record = Approval(phase="decided", call_id=pending.call, decision=decision, meta={ACP: _given(meta)})
        self._put(session, record, at)

    def _was_set(self, connection: Connection, at: str, pending: Pending, result: bytes) -> None:
        told = msgspec.json.decode(result, type=OptionsUpdate)
        session = self._find(connection, pending.session)
        self.out.skip(f"{pending.method} result")
        if session is None:
            return
        if told.config_options is not None:
            self._configure(session, at, told.config_options)
        elif pending.config == "mode" and pending.method == "session/set_mode":
            self._configure(session, at, None, mode=pending.value)

    def _was_ended(self, connection: Connection, at: str, pending: Pending) -> None:
        session = self._find(connection, pending.session)
        self.out.skip(f"{pending.method} result")
        if session is None:
            return
        self._settle(session, at)
        self._missing(session, at)
        if pending.method == "session/delete":
            self._native(self._stream(session), at, "session/delete", Raw(_encode({"sessionId": session.id})))
        else:
            self._put(session, End(status="completed", reason="session/close"), at)

    def _file_answered(
        self, connection: Connection, at: str, pending: Pending, result: bytes, error: RpcError | None
    ) -> None:
        told = msgspec.json.decode(result, type=ClientResult)
        session = self._find(connection, pending.session)
        self.out.skip(f"{pending.method} result")
        if session is None or pending.path is None:
            return
        if pending.method == "fs/read_text_file":
            if error is not None:
                session.read[pending.path] = ""
            elif pending.whole and told.content is not None:
                session.read[pending.path] = _encode(_content(told.content)).decode()
            return
        before = session.read.get(pending.path)
        after = pending.content or ""
        existed: dict[str, Any] | None = {ACP: {"existed": "unknown"}} if before is None else None
        record = FileChange(
            path=within(pending.path, self._roots(session)),
            change="create" if before == "" else "modify",
            before=msgspec.json.decode(before, type=Content) if before else None,
            after=_content(after) if error is None else None,
            applied=error is None,
            evidence="observed",
            meta=existed,
        )
        self._put(session, record, at)
        if error is None:
            session.read[pending.path] = _encode(_content(after)).decode()

    def _terminal_answered(self, connection: Connection, at: str, pending: Pending, result: bytes) -> None:
        told = msgspec.json.decode(result, type=ClientResult)
        session = self._find(connection, pending.session)
        self.out.skip(f"{pending.method} result")
        if session is None:
            return
        ident = told.terminal_id if pending.method == "terminal/create" else pending.terminal
        terminal = session.terminals.setdefault(ident or "", Terminal())
        if pending.method == "terminal/create":
            terminal.command, terminal.cwd = pending.command, pending.cwd
        if told.output is not None:
            terminal.output = told.output.encode("utf-8", "surrogatepass")
        status = told.exit_status
        if status is None and pending.method == "terminal/wait_for_exit":
            status = ExitStatus(told.exit_code, told.signal)
        if status is not None:
            terminal.exit_code, terminal.signal = status.exit_code, status.signal
        if pending.method == "terminal/release" and not any(
            self._terminal_of(session, t) is terminal for t in session.tools.values()
        ):
            ran = self._exec(session, None, terminal)
            self._native(self._stream(session), at, "terminal", ran)

    # ------------------------------------------------------------ updates

    def _updated(
        self, connection: Connection, at: str, params: bytes, data: bytes, ident: str | None
    ) -> Pending | None:
        told = msgspec.json.decode(params, type=Update)
        update = bytes(told.update)
        kind = msgspec.json.decode(update, type=Kind).session_update
        handle = self.UPDATES.get(kind)
        session = self._session_of(connection, told.session_id, at)
        if session.replaying and kind in CONVERSATION:
            self.out.skip("replayed-history")
            return None
        if handle is None:
            self._settle(session, at)
            self._native(self._stream(session), at, f"session/update {kind}", told.update)
            return None
        handle(self, connection, session, at, kind, update)
        if kind in META_APART and (meta := present(_object(update).get("_meta", Raw(b"null")))):
            self._native(self._stream(session), at, f"session/update {kind} _meta", Raw(meta))
        if told.meta:
            self._native(self._stream(session), at, "session/update _meta", told.meta)
        return None

    def _chunk(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=Chunk)
        content = msgspec.json.decode(told.content, type=ContentBlock)
        who = kind.split("_")[0] if kind != "agent_thought_chunk" else "thought"
        meta = {k: bytes(v) for k, v in (told.meta or {}).items()}
        if self._one_response(connection, session, content, meta, at):
            return
        if who == "user" and self._is_echo(session, told.message_id, content, at):
            return
        if content.type == "text" and not content.text and not meta:
            self.out.skip("empty-chunk")
            return
        claude = fields_of(_any(meta["claudeCode"])) if "claudeCode" in meta else {}
        parent = claude.get("parentToolUseId")
        if claude.get("kind") == "informational":
            who = "notice"
        held = session.buffer
        if held is None or not _same(held, who, told.message_id, parent):
            self._settle(session, at)
            held = session.buffer = Buffer(who, at, told.message_id, self._turn_now(session), parent=parent)
        held.message_id = held.message_id or told.message_id
        if content.type == "text" and content.text is not None:
            if held.parts and held.parts[-1].text is not None:
                held.parts[-1].text += content.text
            else:
                held.parts.append(Part(content.text))
        else:
            held.parts.append(Part(raw=bytes(told.content)))
        held.meta |= meta
        self.out.skip("chunk-held")

    def _is_echo(self, session: SessionState, message_id: str | None, content: ContentBlock, at: str) -> bool:
        """Some agents send the prompt back: it was written when it was asked."""
        for turn in session.turns:
            if content.type == "text" and content.text and turn.prompt and content.text in turn.prompt:
                self._say_prompt(session, turn, message_id, at)
                self.out.skip("prompt-echo")
                return True
        return False

    def _whole(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        """A message at once, or what is now in place of one (protocol 2)."""
        told = msgspec.json.decode(update, type=Whole)
        if isinstance(told.content, UnsetType):
            self.out.skip("message-unchanged")
            return
        raws = [bytes(raw) for raw in told.content or []]
        blocks = [block(raw) for raw in raws]
        who = {"user_message": "user", "agent_message": "agent"}.get(kind, "thought")
        text = "".join(b.text for b in blocks if isinstance(b, Text))
        if who == "user":
            for turn in session.turns:
                if text == turn.prompt:
                    self._say_prompt(session, turn, told.message_id, at)
                    self.out.skip("prompt-echo")
                    return
        held = session.buffer
        if held is not None and held.kind == who and held.message_id == told.message_id:
            session.buffer = None
        self._settle(session, at)
        place = f"{who}/{told.message_id}"
        before = session.said.pop(place, [])
        parts = [Part(raw=raw) for raw in raws]
        meta = {k: bytes(v) for k, v in (told.meta or {}).items()}
        new = Buffer(who, at, told.message_id, self._turn_now(session), parts, meta)
        self._say_message(session, new, before[0] if before else None)
        for old in before[1:]:
            self._put(session, Message(role="assistant", content=[], message_id=told.message_id, supersedes=old), at)

    def _tool(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=ToolUpdate)
        known = session.tools.get(told.tool_call_id)
        held = session.buffer
        if known is None or held is None or held.message_id is None:
            self._settle(session, at, but=told.tool_call_id)
        tool = self._merge(session, told, at)
        for name, value in _object(update).items():
            if name not in TOOL_FIELDS:
                tool.meta[name] = bytes(value)
        self._vendor(session, tool, told.meta)
        if tool.status in FINAL:
            self._say_result(session, tool, at)
        else:
            self.out.skip("call-held")

    def _tool_piece(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=ContentChunk)
        tool = session.tools.get(told.tool_call_id)
        if tool is None:
            tool = self._merge(session, ToolUpdate(told.tool_call_id), at)
        self._settle(session, at, but=tool.id)
        tool.content = _append(tool.content, bytes(told.content))
        if msgspec.json.decode(told.content, type=ToolContent).type == "diff":
            tool.diffs = [*tool.diffs, bytes(told.content)]
        if tool.status in FINAL:
            self._say_result(session, tool, at)
        else:
            self.out.skip("call-held")

    def _plan(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=PlanUpdate)
        entries = told.entries if told.entries is not None else told.plan.entries if told.plan else None
        self._settle(session, at)
        if entries is None and kind != "plan_removed":
            self._native(self._stream(session), at, f"session/update {kind}", Raw(update))
            return
        items = [PlanItem(text=e.content, status=e.status) for e in entries or []]
        meta: dict[str, Any] | None = {ACP: {"update": Raw(update)}} if kind != "plan" else None
        self._put(session, Plan(items=items, meta=meta), at)

    def _mode(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=ModeUpdate)
        self._configure(session, at, None, mode=told.current_mode_id)
        if not self.out.noted():
            self.out.skip("config-unchanged")

    def _options(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=OptionsUpdate)
        self._configure(session, at, told.config_options)
        if not self.out.noted():
            self.out.skip("config-unchanged")

    def _info(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=InfoUpdate)
        if isinstance(told.title, str) and session.config.get("title") != told.title:
            session.config["title"] = told.title
            meta: dict[str, Any] | None = {ACP: {"_meta": told.meta}} if told.meta else None
            self._put(session, Config(title=told.title, meta=meta), at)
        elif told.meta:
            self._native(self._stream(session), at, "session/update session_info_update", Raw(update))
        else:
            self.out.skip("config-unchanged")
        if told.meta:
            self._provenance(session, told.meta, "session_info_update", at)

    def _commands(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        self.out.skip("available-commands")

    def _context(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=ContextUpdate)
        cost = Raw(present(told.cost)) if present(told.cost) else None
        session.context = _encode(_given({"used": told.used, "size": told.size, "cost": cost, "_meta": told.meta}))
        model = _any(told.meta["_claude/model"]) if told.meta and "_claude/model" in told.meta else None
        if isinstance(model, str) and session.config.get("model") != model:
            self._configure(session, at, None, model=model)
        if session.turns:
            self.out.skip("context-fill")  # said with the end of the turn
        else:
            self._native(self._stream(session), at, "session/update usage_update", Raw(update))

    def _notice(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=Notice)
        self._settle(session, at)
        words = "\n\n".join(w for w in (told.title, told.description) if w)
        record = Message(role="system", author="harness", audience="user", content=[Text(text=words)])
        record.meta = {ACP: {"update": Raw(update)}}
        self._put(session, record, at)

    def _compaction(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=CompactionUpdate)
        if kind == "compaction_summary_chunk":
            content = None if isinstance(told.content, UnsetType) else block(bytes(told.content))
            session.summary += content.text if isinstance(content, Text) else ""
            self.out.skip("chunk-held")
            return
        self._settle(session, at)
        if told.status != "completed":
            self._native(self._stream(session), at, f"session/update {kind}", Raw(update))
            return
        words = told.summary if isinstance(told.summary, str) else session.summary or None
        session.summary = ""
        record = Compaction(summary=words, meta={ACP: {"update": Raw(update)}})
        record.native_id = told.compaction_id or None
        self._put(session, record, at)

    def _state_told(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=StateUpdate)
        self._be(connection, session, told, at)

    def _be(self, connection: Connection, session: SessionState, told: StateUpdate, at: str) -> None:
        """Protocol 2: a turn goes on while the session runs."""
        if told.state == "running":
            if session.turns:
                self.out.skip("state")
                return
            self._settle(session, at)
            turn = OpenTurn(self._made(connection), at=at)
            record = Turn(turn_id=turn.id, phase="start", trigger="agent", at=at, at_source="recorder")
            self._stream(session).add(record)
            session.turns.append(turn)
        elif told.state == "idle":
            self._settle(session, at)
            usage = present(told.usage)
            if usage and usage != session.totals:
                session.totals = usage
                self._totals(connection, session, usage, {}, at)
            for turn in list(session.turns):
                status = STOPS.get(told.stop_reason or "", "completed")
                self._say_prompt(session, turn, None, at)
                self._end_turn(session, turn, at, status, None, {"stopReason": told.stop_reason})
            self.out.skip("state")
        else:
            self.out.skip("state")

    def _terminal_told(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=TerminalUpdate)
        try:
            piece = base64.b64decode(told.data or "", validate=True)
            shown = base64.b64decode(told.output.data, validate=True) if told.output else None
        except (binascii.Error, ValueError) as error:
            raise msgspec.ValidationError(f"terminal data is no base64: {error}") from error
        terminal = session.terminals.setdefault(told.terminal_id, Terminal())
        terminal.output = (terminal.output if shown is None else shown) + piece
        terminal.command = told.command or terminal.command
        terminal.cwd = told.cwd or terminal.cwd
        if told.exit_status is not None:
            terminal.exit_code, terminal.signal = told.exit_status.exit_code, told.exit_status.signal
        self.out.skip("terminal-held")
        for tool in session.tools.values():
            if tool.result and self._terminal_of(session, tool) is terminal:
                self._say_result(session, tool, at)

    # ------------------------------------------------------------ other sessions

    def _subagent(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        told = msgspec.json.decode(update, type=SubagentUpdate)
        old = told.subagent_session_id
        child = old or told.session_id
        if not child or child == session.id:
            raise msgspec.ValidationError("a sub-agent without a session of its own")
        self._settle(session, at)
        place = "subagentSessionId" if old else "sessionId"
        evidence = Evidence(kind="acp", field=f"session/update.subagent_update.{place}", value=child)
        if child not in session.children:
            session.children.append(child)
            target = LinkTarget(agent=session.agent, session_id=child, namespace=NAMESPACE)
            meta: dict[str, Any] = {ACP: {"update": Raw(update)}}
            call = told.tool_call_id if told.tool_call_id in session.tools else None
            link = Link(relation="spawned", target=target, evidence=evidence, call_id=call, meta=meta)
            self._put(session, link, at)
            self._open_child(connection, session, child, told, evidence, at)
        else:
            self._native(self._stream(session), at, "session/update subagent_update", Raw(update))
        state: Any = told.state
        if isinstance(state, str):
            state = {"state": state}
        if isinstance(state, dict):
            self._be(connection, self._session_of(connection, child, at), msgspec.convert(state, StateUpdate), at)

    def _between(self, connection: Connection, session: SessionState, at: str, kind: str, update: bytes) -> None:
        """Said by one session to another and shown in both: sent in the one, received in the other, each once."""
        told = msgspec.json.decode(update, type=Between)
        sent = told.sender_session_id == session.id
        ident = (told.sender_message_id if sent else told.recipient_message_id) or told.message_id or ""
        raws = [] if isinstance(told.content, UnsetType) else _array(told.content)
        if kind == "session_message" and ident in session.sent:
            self.out.skip("message-seen-before")
            return
        self._settle(session, at)
        session.sent.append(ident)
        blocks = [block(raw) for raw in raws]
        meta: dict[str, Any] = {ACP: {"update": Raw(update)}}
        if sent:
            record: Record = MessageSent(
                channel="session", target=told.recipient_session_id, content=blocks, meta=meta, native_id=ident or None
            )
        else:
            record = Message(role="user", author="agent", origin="agent", content=blocks, message_id=ident, meta=meta)
        self._put(session, record, at)

    # ------------------------------------------------------------ opening streams

    def _session_of(self, connection: Connection, ident: str, at: str | None = None) -> SessionState:
        """The session of that id on this connection; opened when it is heard of for the first time."""
        found = self._find(connection, ident)
        if found is not None:
            if found.connection != self.out.source_name:
                self._adopt(connection, found)
            return found
        asked = [p for p in connection.pending.values() if p.method in ("session/new", "session/fork")]
        if len(asked) == 1 and asked[0].method == "session/new":  # an update that came before the answer
            return self._open_new(connection, ident, asked[0])
        session = self._start(connection, ident, None, Lineage(), None, at)
        why = {"why": "the session was going on before this connection was recorded"}
        self._put(session, Gap(reason="dropped", meta={ACP: why}), at)
        return session

    def _find(self, connection: Connection, ident: str | None) -> SessionState | None:
        return self.state.sessions.get(f"{connection.agent or 'unknown'}/{ident}") if ident else None

    def _adopt(self, connection: Connection, session: SessionState) -> None:
        session.connection = self.out.source_name
        key = f"{session.agent}/{session.id}"
        if key in connection.sessions:
            connection.sessions.remove(key)
        connection.sessions.append(key)

    def _open_new(self, connection: Connection, ident: str, pending: Pending) -> SessionState:
        found = self._find(connection, ident)
        if found is not None:
            self._adopt(connection, found)
            return found
        at = pending.at
        return self._start(connection, ident, pending.cwd, Lineage(root=True), at, at, asked=pending)

    def _open_known(self, connection: Connection, ident: str, pending: Pending, at: str, replays: bool) -> SessionState:
        """A session that was there before: what happened since it was last seen here is not known from ACP."""
        found = self._find(connection, ident)
        if found is not None:
            elsewhere = found.connection not in ("", self.out.source_name)
            self._adopt(connection, found)
            if not replays and not elsewhere:
                why = {"why": "session/resume: what happened since was not sent"}
                self._put(found, Gap(reason="dropped", from_=found.last or None, to=at, meta={ACP: why}), at)
            return found
        session = self._start(connection, ident, pending.cwd, Lineage(), None, at, asked=pending)
        if self._goes_on(session):
            why = {"why": "session/resume: what happened since was not sent"}
            if not replays:
                self._put(session, Gap(reason="dropped", to=at, meta={ACP: why}), at)
        elif replays:
            reason = "what happened before was replayed when the session was loaded, and is not recorded as activity"
            self._put(session, Capture(profile="core", facet="history", state="off", reason=reason), at)
        else:
            why = {"why": "session/resume: what happened before was not sent"}
            self._put(session, Gap(reason="dropped", to=at, meta={ACP: why}), at)
        return session

    def _open_fork(self, connection: Connection, ident: str, pending: Pending, at: str) -> SessionState:
        origin = pending.session or ""
        evidence = Evidence(kind="acp", field="session/fork.params.sessionId", value=origin)
        parent = LineageParent(agent=connection.agent or "unknown", session_id=origin, namespace=NAMESPACE)
        lineage = Lineage(root=False, parent=parent, relation="forked_from", evidence=evidence)
        return self._start(connection, ident, pending.cwd, lineage, pending.at, at, asked=pending)

    def _open_child(
        self,
        connection: Connection,
        session: SessionState,
        child: str,
        told: SubagentUpdate,
        evidence: Evidence,
        at: str,
    ) -> None:
        call = told.tool_call_id if told.tool_call_id in session.tools else None
        parent = LineageParent(agent=session.agent, session_id=session.id, namespace=NAMESPACE, call_id=call)
        lineage = Lineage(root=False, parent=parent, relation="spawned_by", evidence=evidence)
        title = told.title or told.name
        self._start(connection, child, told.cwd, lineage, at, at, title=title, observes=False)

    def _start(
        self,
        connection: Connection,
        ident: str,
        cwd: str | None,
        lineage: Lineage,
        started_at: str | None,
        at: str | None,
        title: str | None = None,
        observes: bool = True,
        asked: Pending | None = None,
    ) -> SessionState:
        agent = connection.agent or "unknown"
        session = SessionState(agent, ident, known=connection.known, cwd=cwd)
        session.more = asked.more if asked is not None else []
        known = AGENTS.get(connection.known)
        self.state.sessions[f"{agent}/{ident}"] = session
        self._adopt(connection, session)
        meta = _given(
            {
                "connection": connection.id,
                "transport": connection.transport or None,
                "protocolVersion": connection.protocol,
                "agentInfo": Raw(connection.info) if connection.info else None,
                "capabilities": Raw(connection.capabilities) if connection.capabilities else None,
                "_meta": Raw(connection.meta) if connection.meta else None,
                "clientInfo": Raw(connection.client) if connection.client else None,
                "request": Raw(asked.params) if asked is not None else None,
            }
        )
        roots = self._roots(session)
        stream = self.open(
            self._key(session),
            version=connection.version,
            lineage=lineage,
            scope="secondary" if known else "primary",
            started_at=started_at,
            workspace=Workspace(roots=roots) if roots else None,
            lossy=ALWAYS_LOST + (known.lossy if known else ()),
            meta={ACP: meta},
            at=at,
            title=title,
        )
        session.last = at or ""
        if self._goes_on(session):
            return session
        for state in _captures(known):
            state.at, state.at_source = at, "recorder"
            stream.add(state)
        if known is not None and observes and known.harness != "openclaw":
            self._observes(session, ident, Evidence(kind="acp", field="sessionId", value=ident), at)
        for held in connection.held:
            self._native(stream, held.at, held.type, Raw(held.data))
        connection.held = []
        return session

    def _goes_on(self, session: SessionState) -> bool:
        """Whether a stream is there from connections that nothing is known of any more: what its head says stands."""
        stream = self._stream(session)
        return stream.next_seq > 1 and self.out.source_name not in stream.sources

    def _observes(self, session: SessionState, native: str, evidence: Evidence, at: str | None) -> None:
        if native in session.observed:
            return
        session.observed.append(native)
        target = LinkTarget(agent=session.agent, session_id=native)
        self._put(session, Link(relation="observes", target=target, evidence=evidence), at)

    def _provenance(self, session: SessionState, meta: dict[str, Raw], where: str, at: str) -> None:
        """Agents that say themselves which native session this one is."""
        if session.known == "hermes-agent" and "hermes" in meta:
            told = fields_of(fields_of(_any(meta["hermes"])).get("sessionProvenance")).get("currentHermesSessionId")
            field = f"{where}._meta.hermes.sessionProvenance.currentHermesSessionId"
        elif session.known == "openclaw-acp" and "sessionKey" in meta:
            told = _any(meta["sessionKey"])
            field = f"{where}._meta.sessionKey"
            if isinstance(told, str) and not told.startswith("agent:"):
                return  # the key before the gateway has given it its agent's name
        else:
            return
        if isinstance(told, str) and told:
            self._observes(session, told, Evidence(kind="acp", field=field, value=told), at)

    # ------------------------------------------------------------ writing what was held

    def _settle(self, session: SessionState, at: str, but: str | None = None) -> None:
        """Writes what was held: the message, and calls (except `but`) that changed since they were written."""
        for turn in session.turns:
            self._say_prompt(session, turn, None, at)
        held, session.buffer = session.buffer, None
        if held is not None:
            self._say_message(session, held, None)
        for tool in session.tools.values():
            if tool.dirty and tool.id != but:
                self._say_call(session, tool)

    def _say_message(self, session: SessionState, held: Buffer, supersedes: str | None) -> None:
        blocks: list[Block] = []
        for part in held.parts:
            if part.text is None:
                blocks.append(_thought(block(part.raw)) if held.kind == "thought" else block(part.raw))
            elif part.text:
                blocks.append(Thinking(text=part.text) if held.kind == "thought" else Text(text=part.text))
        if not blocks and supersedes is None:
            return
        role, author, audience = WHO[held.kind]
        record = Message(role=role, author=author, audience=audience, content=blocks, message_id=held.message_id)
        record.native_id, record.turn_id, record.supersedes = held.message_id, held.turn, supersedes
        record.meta = {ACP: {"_meta": {k: Raw(v) for k, v in held.meta.items()}}} if held.meta else None
        caller = session.tools.get(held.parent or "")
        if caller is not None and caller.call:
            record.parent = caller.call
        record.at, record.at_source = held.at, "recorder"
        ident = self._stream(session).add(record)
        if held.message_id is not None and self._protocol(session) >= 2:
            session.said.setdefault(f"{held.kind}/{held.message_id}", []).append(ident)

    def _protocol(self, session: SessionState) -> int:
        connection = self.state.connections.get(session.connection)
        return connection.protocol if connection else 1

    def _merge(self, session: SessionState, told: ToolUpdate, at: str) -> Tool:
        tool = session.tools.get(told.tool_call_id)
        if tool is None:
            tool = session.tools[told.tool_call_id] = Tool(told.tool_call_id, at, self._turn_now(session))
            tool.first_title = told.title if isinstance(told.title, str) else None
        if not isinstance(told.title, UnsetType):
            tool.title = told.title
        if not isinstance(told.name, UnsetType) and told.name != tool.name:
            tool.name, tool.dirty = told.name, True
        if not isinstance(told.kind, UnsetType) and told.kind != tool.kind:
            tool.kind, tool.dirty = told.kind, True
        if not isinstance(told.status, UnsetType):
            tool.status = told.status
        if not isinstance(told.raw_input, UnsetType) and present(told.raw_input) != tool.input:
            tool.input, tool.dirty = present(told.raw_input), True
        if not isinstance(told.raw_output, UnsetType):
            tool.output = present(told.raw_output)
        if not isinstance(told.content, UnsetType):
            tool.content = [bytes(raw) for raw in told.content or []]
            shown = [raw for raw in tool.content if msgspec.json.decode(raw, type=ToolContent).type == "diff"]
            tool.diffs = shown or tool.diffs
        if not isinstance(told.locations, UnsetType):
            tool.locations = present(told.locations)
        return tool

    def _vendor(self, session: SessionState, tool: Tool, meta: dict[str, Raw] | None) -> None:
        """`_meta` merges by key. What Codex and Pi tell of a terminal in it is a terminal's output and end."""
        for name, raw in (meta or {}).items():
            if name == "claudeCode":
                before = fields_of(_any(tool.meta[name])) if name in tool.meta else {}
                tool.meta[name] = _encode(before | fields_of(_any(raw)))
                continue
            told = fields_of(_any(raw)) if name.startswith("terminal_") else {}
            ident = told.get("terminal_id")
            if not isinstance(ident, str):
                tool.meta[name] = bytes(raw)
                continue
            tool.terminal = ident
            terminal = session.terminals.setdefault(ident, Terminal())
            data, code, cwd = told.get("data"), told.get("exit_code"), told.get("cwd")
            if isinstance(data, str):
                terminal.output += data.encode("utf-8", "surrogatepass")
            if isinstance(code, int):
                terminal.exit_code = code
            if isinstance(told.get("signal"), str):
                terminal.signal = told["signal"]
            if isinstance(cwd, str):
                terminal.cwd = cwd

    def _say_call(self, session: SessionState, tool: Tool) -> None:
        tool.dirty = False
        name, source = _name(session.known, tool)
        given: Any = _any(tool.input) if tool.input else None
        meta: dict[str, Any] = {}
        if source != "name":
            meta["nameSource"] = source
        if not tool.input or given is None:
            meta["input"] = "not sent"
        if tool.kind in KINDS:
            meta["kind"] = tool.kind
        if tool.locations not in (b"", b"[]"):
            meta["locations"] = Raw(tool.locations)
        if tool.meta:
            meta["_meta"] = {k: Raw(v) for k, v in tool.meta.items() if k != "claudeCode"} | _brief(tool.meta)
        record = ToolCall(
            call_id=tool.id,
            name=name,
            input=_input(tool.input, given),
            kind=KINDS.get(tool.kind or "", tool.kind),
            title=tool.title,
            supersedes=tool.call or None,
            meta={ACP: meta} if meta else None,
        )
        record.native_id, record.turn_id = tool.id, tool.turn
        caller = session.tools.get(_parent_call(tool) or "")
        if caller is not None and caller.call:
            record.parent = caller.call
        record.at, record.at_source = tool.at, "recorder"
        tool.call = self._stream(session).add(record)
        tool.said_title, tool.said_locations = tool.title, tool.locations

    def _say_result(self, session: SessionState, tool: Tool, at: str) -> None:
        if tool.dirty:
            self._say_call(session, tool)
        status, decision = self._status(tool)
        terminal = self._terminal_of(session, tool)
        content = self._result_content(tool)
        meta: dict[str, Any] = {}
        ran, conflict = self._ran(session, tool, terminal, content)
        if tool.output and not _is_text(tool.output):
            meta["rawOutput"] = Raw(tool.output)
        if tool.title != tool.said_title:
            meta["title"] = tool.title
        if tool.locations != tool.said_locations and tool.locations not in (b"", b"[]"):
            meta["locations"] = Raw(tool.locations)
        if tool.meta:
            meta["_meta"] = {k: Raw(v) for k, v in tool.meta.items()}
        extra: dict[str, Any] = {ACP: meta} if meta else {}
        if conflict:
            extra["dev.asrd.conflict"] = conflict
        record = ToolResult(
            call_id=tool.id,
            linkage="exact",
            status=status,
            content=content or None,
            exec=ran,
            supersedes=tool.result or None,
            meta=extra or None,
        )
        saying = sha256(_encode(record))
        if saying == tool.said:
            self.out.skip("result-unchanged")
            return
        if decision is not None and not tool.result:
            self._put(session, decision, at)
        record.native_id, record.turn_id = tool.id, tool.turn
        record.at, record.at_source = at, "recorder"
        tool.result = self._stream(session).add(record)
        # What is compared next time would supersede this one.
        record_next = msgspec.structs.replace(
            record, seq=-1, id="", at=None, at_source=None, turn_id=None, native_id=None
        )
        record_next.supersedes, record_next.meta = tool.result, extra or None
        tool.said = sha256(_encode(record_next))
        if status == "completed":
            self._say_changes(session, tool, at)
        self._say_commits(session, tool, ran, content, at)
        session.last = at

    def _status(self, tool: Tool) -> tuple[str, Approval | None]:
        """The result's status. Claude Code says in `_meta` when its own classifier refused a call."""
        status = tool.status or "unknown"
        claude = fields_of(_any(tool.meta["claudeCode"])) if "claudeCode" in tool.meta else {}
        reason = fields_of(claude.get("toolResponse")).get("decisionReasonType")
        if status == "failed" and isinstance(reason, str):
            decision = Approval(phase="decided", call_id=tool.id, decision="deny", by="harness", policy=reason)
            return "denied", decision
        if status != "completed" and tool.denied:
            return "denied", None
        return status, None

    def _result_content(self, tool: Tool) -> list[Block]:
        given = _any(tool.output) if tool.output else None
        if isinstance(given, str) and given:
            return [Text(text=given)]
        blocks: list[Block] = []
        for raw in tool.content:
            item = msgspec.json.decode(raw, type=ToolContent)
            if item.type == "content" and not isinstance(item.content, UnsetType):
                blocks.append(block(bytes(item.content)))
            elif item.type not in ("diff", "terminal", "content"):
                blocks.append(Other(meta={ACP: Raw(raw)}))
        if not blocks:
            words = fields_of(given).get("formatted_output")
            if isinstance(words, str) and words:
                blocks.append(Text(text=words))
        return blocks

    # ------------------------------------------------------------ commands

    def _terminal_of(self, session: SessionState, tool: Tool) -> Terminal | None:
        if tool.terminal is not None:
            return session.terminals.get(tool.terminal)
        for raw in tool.content:
            item = msgspec.json.decode(raw, type=ToolContent)
            if item.type == "terminal" and item.terminal_id:
                return session.terminals.get(item.terminal_id)
        return None

    def _exec(self, session: SessionState, command: str | None, terminal: Terminal) -> Exec:
        cwd = within(terminal.cwd, self._roots(session)) if terminal.cwd else None
        return Exec(
            command=command or terminal.command,
            cwd=cwd,
            exit_code=terminal.exit_code,
            signal=terminal.signal,
            stdout=terminal.output.decode("utf-8", "replace") if terminal.output else None,
        )

    def _ran(
        self, session: SessionState, tool: Tool, terminal: Terminal | None, content: list[Block]
    ) -> tuple[Exec | None, dict[str, Any] | None]:
        """What a command came to, from every place that agents say it; and what contradicts itself."""
        given = fields_of(_any(tool.input)) if tool.input else {}
        output = fields_of(_any(tool.output)) if tool.output else {}
        code = _exit_code(output)
        if terminal is None and code is None and tool.kind != "execute":
            return None, None
        command = _command(given.get("command") or output.get("command")) or _titled(session.known, tool)
        ran = self._exec(session, command, terminal or Terminal())
        details = fields_of(output.get("details"))
        cwd = given.get("cwd") or given.get("workdir") or output.get("directory") or details.get("cwd")
        if ran.cwd is None and isinstance(cwd, str) and cwd:
            ran.cwd = within(cwd, self._roots(session))
        claude = fields_of(_any(tool.meta["claudeCode"])) if "claudeCode" in tool.meta else {}
        for place in (output, fields_of(claude.get("toolResponse"))):
            for name in ("stdout", "stderr"):
                said = place.get(name)
                if isinstance(said, str) and getattr(ran, name) is None:
                    setattr(ran, name, said)
        if ran.stdout is None and output.get("type") == "shell_result" and isinstance(output.get("output"), str):
            ran.stdout = output["output"]  # Qwen: both outputs as one
        if ran.exit_code is None:
            ran.exit_code = code
        ran.duration_ms = _duration(output)
        if isinstance(output.get("signal"), str):
            ran.signal = output["signal"]
        text = self._exit_said(session, tool, content, ran.stdout)
        conflict: dict[str, Any] | None = None
        if text is not None and ran.exit_code is not None and text != ran.exit_code:
            conflict = {"exitCode": {"reported": ran.exit_code, "text": text}}
        if text is not None:
            ran.exit_code = text
        return (ran if ran != Exec() else None), conflict

    def _exit_said(self, session: SessionState, tool: Tool, content: list[Block], stdout: str | None) -> int | None:
        """The exit code as the agent's own text says it. Pi's adapter has a wrong one in its field (1 for 101).

        Agents add such a line when a command failed, so in other results it is the command's own words; Hermes always
        does, at the end.
        """
        known = AGENTS.get(session.known)
        if known is None or known.exit_text is None or (tool.status != "failed" and known.harness != "hermes"):
            return None
        words = "".join(b.text for b in content if isinstance(b, Text)) or stdout or ""
        found = re.findall(known.exit_text, words, re.MULTILINE)
        return int(found[-1]) if found else None

    def _say_commits(self, session: SessionState, tool: Tool, ran: Exec | None, content: list[Block], at: str) -> None:
        if ran is None or not ran.command or not _COMMIT.search(ran.command):
            return
        words = "\n".join([*(b.text for b in content if isinstance(b, Text)), ran.stdout or ""])
        for commit in _FULL_ID.findall(words):
            if commit not in tool.commits:
                tool.commits.append(commit)
                record = VcsAction(action="commit", commit=commit, evidence="observed", call_id=tool.id)
                record.root = "r1" if session.cwd else None
                self._put(session, record, at, tool.turn)

    # ------------------------------------------------------------ files

    def _say_changes(self, session: SessionState, tool: Tool, at: str) -> None:
        for raw in tool.diffs:
            item = msgspec.json.decode(raw, type=ToolContent)
            for record in self._changes(session, tool, item):
                saying = sha256(_encode(record))
                if saying not in tool.changes:
                    tool.changes.append(saying)
                    self._put(session, record, at, tool.turn)
        if tool.kind == "edit" and not tool.changes and (record := self._patched(session, tool)) is not None:
            tool.changes.append(sha256(_encode(record)))
            self._put(session, record, at, tool.turn)

    def _changes(self, session: SessionState, tool: Tool, item: ToolContent) -> list[FileChange]:
        if item.changes is None:
            if item.path is None or item.new_text is None:
                return []
            return [self._change(session, tool, item, applied=True)]
        patch = item.patch.text if item.patch and item.patch.text else None
        found: list[FileChange] = []
        for one in item.changes:
            record = FileChange(
                path=within(one.path, self._roots(session)),
                change=OPERATIONS.get(one.operation, one.operation),
                call_id=tool.id,
                applied=True,
                evidence="reported",
                diff=patch if len(item.changes) == 1 else None,
                from_path=within(one.old_path, self._roots(session)) if one.old_path else None,
            )
            if patch and len(item.changes) > 1:
                record.meta = {ACP: {"patch": patch}} if not found else None
            found.append(record)
        return found

    def _change(self, session: SessionState, tool: Tool | None, item: ToolContent, applied: bool | str) -> FileChange:
        """A diff of protocol 1. Its texts are whole files with some agents, pieces with others; a piece has no digest."""
        old, new = item.old_text, item.new_text or ""
        path = item.path or ""
        known = AGENTS.get(session.known)
        before, after = self._contents(tool, old, new)
        if before is None and after is None and (old is None or (known is not None and known.whole)):
            before, after = old, new
        record = FileChange(
            path=within(path, self._roots(session)),
            change="create" if old is None else "modify",
            call_id=tool.id if tool else None,
            before=_content(before) if before is not None else None,
            after=_content(after) if after is not None else None,
            diff=_patch(tool),
            applied=applied,
            evidence="reported",
        )
        if record.diff is None and after is not None and (old is None or before is not None):
            record.diff = unified(before or "", after, path)
        if record.diff is None:
            record.meta = {ACP: {"oldText": old, "newText": new}}
        return record

    def _contents(self, tool: Tool | None, old: str | None, new: str) -> tuple[str | None, str | None]:
        """Whole contents where the agent has them beside the diff: Claude Code's and Vibe's former content, Qwen's both."""
        if tool is None:
            return None, None
        output = fields_of(_any(tool.output)) if tool.output else {}
        if isinstance(output.get("originalContent"), str) and isinstance(output.get("newContent"), str):
            return output["originalContent"], output["newContent"]
        claude = fields_of(_any(tool.meta["claudeCode"])) if "claudeCode" in tool.meta else {}
        told = fields_of(claude.get("toolResponse"))
        former, a, b = told.get("originalFile"), told.get("oldString"), told.get("newString")
        if isinstance(former, str) and isinstance(a, str) and isinstance(b, str) and a and a in former:
            count = -1 if told.get("replaceAll") is True else 1
            if count == -1 or former.count(a) == 1:
                return former, former.replace(a, b, count)
            return former, None
        former = output.get("previousContent")
        if isinstance(former, str) and old and former.count(old) == 1:
            return former, former.replace(old, new, 1)
        return None, None

    def _patched(self, session: SessionState, tool: Tool) -> FileChange | None:
        """An edit without a diff in its content, whose result has a patch (OpenClaw, Pi)."""
        patch = _patch(tool)
        paths = [fields_of(p).get("path") for p in cast("list[Any]", _any(tool.locations))] if tool.locations else []
        if patch is None or len(paths) != 1 or not isinstance(paths[0], str):
            return None
        path = within(paths[0], self._roots(session))
        return FileChange(path=path, change="modify", call_id=tool.id, diff=patch, applied=True, evidence="reported")

    # ------------------------------------------------------------ usage

    def _one_response(
        self, connection: Connection, session: SessionState, content: ContentBlock, meta: dict[str, bytes], at: str
    ) -> bool:
        """Qwen tells each response's figures in an empty piece of a message."""
        known = AGENTS.get(session.known)
        if known is None or known.usage != "each" or "usage" not in meta or content.text:
            return False
        self._settle(session, at)
        duration = _any(meta["durationMs"]) if "durationMs" in meta else None
        self._inference(connection, session, meta["usage"], at, duration if isinstance(duration, int | float) else None)
        return True

    def _inference(
        self, connection: Connection, session: SessionState, raw: bytes, at: str, duration: float | None = None
    ) -> None:
        usage = usage_of(msgspec.json.decode(raw, type=Figures))
        record = Inference(inference_id=self._made(connection), id_source="derived", usage=usage)
        record.duration_ms = duration
        record.meta = {"dev.asrd.usage": Raw(raw)}
        self._put(session, record, at)

    def _totals(
        self, connection: Connection, session: SessionState, usage: bytes, meta: dict[str, bytes], at: str
    ) -> None:
        known = AGENTS.get(session.known)
        how = known.usage if known else "turn"
        if not usage:
            if how == "quota" and "quota" in meta:
                record = UsageTotal(scope="turn", usage=Usage(), cumulative=False)
                record.meta = {"dev.asrd.usage": Raw(meta["quota"])}
                self._put(session, record, at)
            return
        if how == "last":
            self._inference(connection, session, usage, at)
            return
        total = UsageTotal(scope="session" if how == "session" else "turn", usage=Usage())
        total.usage = usage_of(msgspec.json.decode(usage, type=Figures))
        total.cumulative = None if known is None else how == "session"
        total.meta = {"dev.asrd.usage": Raw(usage)}
        self._put(session, total, at)

    # ------------------------------------------------------------ turns and configuration

    def _turn_now(self, session: SessionState) -> str | None:
        """The turn that what happens now belongs to; when several are open that is not certain."""
        return session.turns[0].id if len(session.turns) == 1 else None

    def _end_turn(
        self,
        session: SessionState,
        turn: OpenTurn,
        at: str,
        status: str,
        error: Error | None,
        detail: dict[str, Any],
    ) -> None:
        self._settle(session, at)
        if len(session.turns) == 1:
            self._missing(session, at)
        if session.context:
            detail["context"] = Raw(session.context)
        record = Turn(turn_id=turn.id, phase="end", status=status, error=error, meta={ACP: _given(detail)})
        self._stream(session).add(_seen(record, at, turn.id))
        session.turns.remove(turn)
        if not session.turns:  # a call that goes on behind the turn may still have its result
            waiting = [t for t in session.tools.values() if not t.result]
            session.tools = {t.id: t for t in waiting[-WAITING_CALLS:]}
        session.last = at

    def _missing(self, session: SessionState, at: str) -> None:
        """Calls whose result never came: said once, for the agent has gone on without telling."""
        open_calls = [t.id for t in session.tools.values() if t.call and not t.result and not t.missed]
        if open_calls:
            for ident in open_calls:
                session.tools[ident].missed = True
            why: dict[str, Any] = {"why": "no result of these calls was sent", "callIds": open_calls}
            self._put(session, Gap(reason="dropped", meta={ACP: why}), at)

    def _configure(
        self,
        session: SessionState,
        at: str,
        options: list[Option] | None,
        mode: str | None = None,
        model: str | None = None,
        method: str | None = None,
    ) -> None:
        """What is now in force, when it is not what was."""
        values: dict[str, str] = {}
        others: dict[str, str] = {}
        for option in options or []:
            value = option.current_value
            told = value if isinstance(value, str) else _encode(value).decode()
            name = CATEGORIES.get(option.category or "")
            if name is not None and name not in values:
                values[name] = told
            else:
                others[option.id] = told
        if mode is not None and options is None or mode is not None and "mode" not in values:
            values["mode"] = mode
        if model is not None and "model" not in values:
            values["model"] = model
        changed = {k: v for k, v in values.items() if session.config.get(k) != v}
        changed_others = {k: v for k, v in others.items() if session.options.get(k) != v}
        if not changed and not changed_others:
            if not self.out.noted():
                self.out.skip("config-unchanged")
            return
        session.config |= changed
        session.options |= changed_others
        meta = _given({"options": changed_others or None, "request": method})
        record = Config(
            model=changed.get("model"),
            mode=changed.get("mode"),
            effort=changed.get("effort"),
            meta={ACP: meta} if meta else None,
        )
        self._put(session, record, at)

    # ------------------------------------------------------------ small things

    def _made(self, connection: Connection) -> str:
        """An id for what has none, equal for equal bytes, and no other connection's."""
        connection.counted += 1
        return f"{connection.id}/{connection.counted}"

    def _key(self, session: SessionState) -> StreamKey:
        return StreamKey(session.agent, session.id, NAMESPACE)

    def _stream(self, session: SessionState) -> StreamOut:
        stream = self.out.stream(self._key(session))
        assert stream is not None
        return stream

    def _roots(self, session: SessionState) -> list[WorkspaceRoot] | None:
        folders = [session.cwd, *session.more] if session.cwd else []
        return [WorkspaceRoot(id=f"r{n}", path=path) for n, path in enumerate(folders, 1)] or None

    def _put(self, session: SessionState, record: Record, at: str | None, turn: str | None = None) -> str:
        session.last = at or session.last
        return self._stream(session).add(_seen(record, at, turn or self._turn_now(session)))

    def _native(self, stream: StreamOut, at: str, kind: str, data: Any) -> None:
        stream.add(_seen(Native(native_type=kind, data=data), at, None))

    def _hold(self, connection: Connection, at: str, kind: str, data: bytes) -> None:
        """A message of the connection: in the stream of its latest session, else of its first one, when there is one."""
        if connection.sessions:
            self._native(self.main(), at, kind, Raw(data))
            return
        connection.held.append(Held(at, kind, data))
        self.out.skip("held-until-a-session-is-known")

    # ------------------------------------------------------------ which method takes what

    METHODS: ClassVar = {
        ("c2a", "initialize"): _initialize,
        ("c2a", "session/new"): _opening,
        ("c2a", "session/load"): _opening,
        ("c2a", "session/resume"): _opening,
        ("c2a", "session/fork"): _opening,
        ("c2a", "session/prompt"): _prompt,
        ("c2a", "session/set_mode"): _set,
        ("c2a", "session/set_config_option"): _set,
        ("c2a", "session/close"): _ending,
        ("c2a", "session/delete"): _ending,
        ("a2c", "session/update"): _updated,
        ("a2c", "session/request_permission"): _permission,
        ("a2c", "fs/read_text_file"): _client_file,
        ("a2c", "fs/write_text_file"): _client_file,
        ("a2c", "terminal/create"): _client_terminal,
        ("a2c", "terminal/output"): _client_terminal,
        ("a2c", "terminal/wait_for_exit"): _client_terminal,
        ("a2c", "terminal/kill"): _client_terminal,
        ("a2c", "terminal/release"): _client_terminal,
    }
    UPDATES: ClassVar = {
        "user_message_chunk": _chunk,
        "agent_message_chunk": _chunk,
        "agent_thought_chunk": _chunk,
        "user_message": _whole,
        "agent_message": _whole,
        "agent_thought": _whole,
        "tool_call": _tool,
        "tool_call_update": _tool,
        "tool_call_content_chunk": _tool_piece,
        "plan": _plan,
        "plan_update": _plan,
        "plan_removed": _plan,
        "current_mode_update": _mode,
        "config_option_update": _options,
        "session_info_update": _info,
        "available_commands_update": _commands,
        "usage_update": _context,
        "notice": _notice,
        "compaction_update": _compaction,
        "compaction_summary_chunk": _compaction,
        "state_update": _state_told,
        "terminal_update": _terminal_told,
        "terminal_output_chunk": _terminal_told,
        "subagent_update": _subagent,
        "session_message": _between,
        "session_message_chunk": _between,
    }


# ---------------------------------------------------------------- tables

BETWEEN = "what stood between client and agent ended without a word; what followed was not seen"

STOPS = {"refusal": "refused", "cancelled": "interrupted"}
"""What a turn's stop reason says of its status; every other one is `completed`, with the reason beside it."""

DECISIONS = {
    "allow_once": "allow", "allow_always": "allow_always", "reject_once": "deny", "reject_always": "deny_always",
}  # fmt: skip

WAITING_CALLS = 64
"""Calls without a result that are remembered from turn to turn."""

KINDS = {"delete": "edit", "move": "edit", "switch_mode": "other"}
"""The protocol's kinds of tools that records have another word for."""

OPERATIONS = {"add": "create", "delete": "delete", "modify": "modify", "move": "rename", "copy": "create"}

CATEGORIES = {"mode": "mode", "model": "model", "thought_level": "effort"}
"""Categories of configuration options that have a field of their own."""

WHO: dict[str, tuple[str, str | None, str | None]] = {
    "user": ("user", None, None),
    "agent": ("assistant", "agent", None),
    "thought": ("assistant", "agent", None),
    "notice": ("system", "harness", "user"),
}
"""Role, author and audience of a held message."""

TOOL_FIELDS = {
    "sessionUpdate", "toolCallId", "title", "name", "kind", "status", "content", "locations", "rawInput", "rawOutput", "_meta",
}  # fmt: skip


# ---------------------------------------------------------------- values


def _frames(raw: Raw) -> tuple[list[tuple[Frame, bytes]], list[bytes]]:
    """The messages in a frame (several in a batch), decoded before anything changes; and what is no message."""
    data = bytes(raw)
    if data[:1] == b'"':
        data = msgspec.json.decode(data, type=str).encode()
    found: list[tuple[Frame, bytes]] = []
    strange: list[bytes] = []
    for one in _array(Raw(data)) if data.lstrip()[:1] == b"[" else [data]:
        try:
            found.append((_frame(one), one))
        except msgspec.ValidationError:
            strange.append(one)
    return found, strange


def _array(raw: Raw) -> list[bytes]:
    """The items of a JSON array, as they stand; a value that is none is its only item."""
    data = bytes(raw)
    if data.lstrip()[:1] != b"[":
        return [data]
    return [bytes(item) for item in msgspec.json.decode(data, type=list[Raw])]


def _session_named(params: bytes) -> str | None:
    try:
        return msgspec.json.decode(params, type=SessionRequest).session_id
    except msgspec.ValidationError:
        return None


def _seen(record: Record, at: str | None, turn: str | None) -> Record:
    record.at = at
    record.at_source = "recorder" if at is not None else None
    record.turn_id = record.turn_id or turn
    return record


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """The values that are there."""
    return {k: v for k, v in values.items() if v is not None}


def _same(held: Buffer, who: str, message_id: str | None, parent: str | None) -> bool:
    """Whether a piece goes on with the message that is held."""
    if held.kind != who or held.parent != parent or who == "notice":
        return False
    return held.message_id == message_id or held.message_id is None or message_id is None


def _how(connection: Connection, line: SpoolLine) -> str:
    if line.signal:
        return f"the agent was ended by {line.signal}"
    if line.code:
        return f"the agent ended with code {line.code}"
    if line.by == "asrd":
        return "what stood between client and agent was told to end"
    if connection.eof == "client" or line.by == "client":
        return "the client closed the connection"
    return "the agent closed the connection"


def block(raw: bytes) -> Block:
    """A content block as records have it. Raises msgspec.ValidationError."""
    found = msgspec.json.decode(raw, type=ContentBlock)
    if found.type == "text" and found.text is not None:
        return Text(text=found.text)
    if found.type == "image" and found.data is not None:
        return Image(media_type=found.mime_type, data=found.data)
    if found.type == "resource_link" and found.uri:
        if found.uri.startswith("file://"):
            return File(path=found.uri.removeprefix("file://"), media_type=found.mime_type)
        return Resource(uri=found.uri)
    if found.type == "resource" and found.resource is not None:
        if found.resource.blob is None:
            return Resource(uri=found.resource.uri, text=found.resource.text)
        size = len(found.resource.blob)
        digest = hashlib.sha256(found.resource.blob.encode()).hexdigest()
        brief = {"uri": found.resource.uri, "mimeType": found.resource.mime_type, "base64": size, "sha256": digest}
        return Other(meta={ACP: {"type": "resource"} | _given(brief)})
    return Other(meta={ACP: Raw(raw)})


def _thought(found: Block) -> Block:
    return Thinking(text=found.text) if isinstance(found, Text) else found


def _append(content: list[bytes], item: bytes) -> list[bytes]:
    """Content with one more item; words go on with words."""
    new = msgspec.json.decode(item, type=ToolContent)
    if content and new.type == "content" and not isinstance(new.content, UnsetType):
        last = msgspec.json.decode(content[-1], type=ToolContent)
        if last.type == "content" and not isinstance(last.content, UnsetType):
            a, b = block(bytes(last.content)), block(bytes(new.content))
            if isinstance(a, Text) and isinstance(b, Text):
                joined = {"type": "content", "content": {"type": "text", "text": a.text + b.text}}
                return [*content[:-1], _encode(joined)]
    return [*content, item]


def _name(agent: str, tool: Tool) -> tuple[str, str]:
    """A call's name, and where it stands. The protocol has a place for it only since late, and few agents fill it."""
    if tool.name:
        return tool.name, "name"
    for place, name in (("claudeCode", "toolName"), ("toolName", ""), ("tool_name", "")):
        if place in tool.meta:
            told = _any(tool.meta[place])
            told = fields_of(told).get(name) if name else told
            if isinstance(told, str) and told:
                return told, f"_meta.{place}"
    known = AGENTS.get(agent)
    if agent == "gemini-cli" and "__" in tool.id:
        return tool.id.split("__", 1)[0], "toolCallId"
    named = re.search(known.named_by, tool.first_title) if known and known.named_by and tool.first_title else None
    if named is not None:
        return named.group(1), "title"
    if tool.kind:
        return tool.kind, "kind"
    return tool.title or "unknown", "title" if tool.title else "none"


def _parent_call(tool: Tool) -> str | None:
    """Claude Code's adapter tells a sub-agent's call by the call that started the sub-agent."""
    if "claudeCode" not in tool.meta:
        return None
    told = fields_of(_any(tool.meta["claudeCode"])).get("parentToolUseId")
    return told if isinstance(told, str) else None


def _brief(meta: dict[str, bytes]) -> dict[str, Any]:
    """Claude Code's `_meta` without the result, which stands with the result."""
    if "claudeCode" not in meta:
        return {}
    told = fields_of(_any(meta["claudeCode"]))
    return {"claudeCode": {k: v for k, v in told.items() if k != "toolResponse"}}


def _input(raw: bytes, given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    return cast("dict[str, Any]", Raw(raw)) if isinstance(given, dict) else {"raw": Raw(raw)}


def _is_text(raw: bytes) -> bool:
    return raw.lstrip()[:1] == b'"'


def _command(given: Any) -> str | None:
    """A command line. Of a shell with `-c` it is what the shell is given, as the native files say it."""
    if isinstance(given, str):
        return given or None
    if not isinstance(given, list):
        return None
    words = [w for w in cast("list[Any]", given) if isinstance(w, str)]
    if len(words) == 3 and words[1] in ("-c", "-lc") and words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh"):
        return words[2]
    return shlex.join(words) if words else None


def _titled(agent: str, tool: Tool) -> str | None:
    """The command that a title is, with agents that send no input. A title that was cut short is none."""
    known = AGENTS.get(agent)
    if known is None or known.command_by is None or tool.kind != "execute" or not tool.first_title:
        return None
    found = re.search(known.command_by, tool.first_title, re.DOTALL)
    return None if found is None or found.group(1).endswith(("…", "...")) else found.group(1)


def _exit_code(output: dict[str, Any]) -> int | None:
    """The exit code in a call's raw output: Codex, Qwen; OpenCode; OpenClaw; Copilot."""
    places = [output, fields_of(output.get("metadata")), fields_of(output.get("details"))]
    contents = output.get("contents")
    if isinstance(contents, list):
        places += [fields_of(c) for c in cast("list[Any]", contents) if fields_of(c).get("type") == "shell_exit"]
    for place in places:
        for name in ("exit_code", "exitCode", "exit"):
            code = place.get(name)
            if isinstance(code, int) and not isinstance(code, bool):
                return code
    return None


def _duration(output: dict[str, Any]) -> float | None:
    told = output.get("duration")
    if isinstance(told, dict):
        seconds, nanos = fields_of(told).get("secs"), fields_of(told).get("nanos")
        if isinstance(seconds, int) and isinstance(nanos, int):
            return seconds * 1000 + nanos / 1e6
    ms = fields_of(output.get("details")).get("durationMs")
    return ms if isinstance(ms, int | float) and not isinstance(ms, bool) else None


def _patch(tool: Tool | None) -> str | None:
    """The unified diff that an agent has of its own edit, with true line numbers."""
    if tool is None:
        return None
    output = fields_of(_any(tool.output)) if tool.output else {}
    given = fields_of(_any(tool.input)) if tool.input else {}
    for place, name in (
        (fields_of(output.get("metadata")), "diff"),  # OpenCode
        (fields_of(output.get("details")), "patch"),  # Pi, OpenClaw
        (output, "fileDiff"),  # Qwen
    ):
        if isinstance(place.get(name), str):
            return place[name]
    detailed = output.get("detailedContent")
    if isinstance(detailed, str) and detailed.lstrip().startswith("diff --git"):  # Copilot
        return detailed.lstrip("\n")
    for place in (output, given):
        changes = fields_of(place.get("changes"))
        if len(changes) == 1:  # Codex (Zed's adapter)
            told = fields_of(next(iter(changes.values()))).get("unified_diff")
            if isinstance(told, str):
                return told
    return None


def _content(text: str) -> Content:
    data = text.encode("utf-8", "surrogatepass")
    return Content(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))


def unified(before: str, after: str, path: str) -> str:
    """The unified diff of two whole contents."""
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), path, path)
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


def usage_of(told: Figures) -> Usage:
    """Tokens as records count them: `input` without cached ones, `output` with reasoning.

    Agents differ in whether `inputTokens` holds the cached tokens and `outputTokens` the thoughts. The total tells which:
    exactly one of the four ways of counting must give it. Where none or several different ones do, only the total is said.
    """
    i, o, total = told.input_tokens, told.output_tokens, told.total_tokens
    cached = (told.cached_read_tokens or 0) + (told.cached_write_tokens or 0)
    thought = told.thought_tokens or 0
    ways: set[tuple[int, int]] = set()
    if i is not None and o is not None and total is not None:
        for inside, counted in ((True, True), (False, True), (False, False), (True, False)):
            if i + o + (0 if inside else cached) + (0 if counted else thought) == total and (not inside or i >= cached):
                ways.add((i - cached if inside else i, o if counted else o + thought))
    usage = Usage(total=total)
    if len(ways) == 1:
        usage.input, usage.output = next(iter(ways))
        usage.cache_read, usage.cache_write = told.cached_read_tokens, told.cached_write_tokens
        usage.reasoning = told.thought_tokens
    return usage


def _captures(known: Known | None) -> list[Capture]:
    """How much of each promise this agent lets a recorder see over ACP, said once after the header."""
    usage = known.usage if known else "unknown"
    each = {
        "each": ("full", None),
        "last": ("partial", "only the last response of a turn has figures"),
        "unknown": ("unknown", None),
    }.get(usage, ("unavailable", "ACP has no figures of single responses"))
    found = [Capture(profile="usage", facet="inference", state=each[0], reason=each[1])]
    if usage in ("none", "each", "last"):
        found.append(
            Capture(profile="usage", facet="usage_total", state="unavailable", reason="the agent gives no totals")
        )
    elif usage == "quota":
        reason = "whether cached tokens and thoughts are counted is not said; raw figures are kept"
        found.append(Capture(profile="usage", facet="usage_total", state="partial", reason=reason))
    if known is not None and "exec.exitCode" in known.lossy:
        state = "partial" if known.exit_text else "unavailable"
        reason = "the agent says it when it is not 0" if known.exit_text else "the agent does not send it"
        found.append(Capture(profile="coding", facet="exec.exitCode", state=state, reason=reason))
    by = "whether a person or a rule of the client answered is not said"
    found.append(Capture(profile="coding", facet="approval.by", state="unavailable", reason=by))
    return found


RECORDER = AcpRecorder
