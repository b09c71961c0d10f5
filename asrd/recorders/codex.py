r"""Codex (`@openai/codex`; Codex Desktop and the IDE extensions write the same rollouts): one JSONL file a thread.

Where: `$CODEX_HOME` (`~/.codex`): `sessions/YYYY/MM/DD/rollout-<local time>-<thread id>.jsonl`, moved to the flat
`archived_sessions/` when archived, `.zst` when packed; after a revert the thread goes on in
`rollout-<time>-<thread id>_<segment id>.jsonl`. `session_index.jsonl`: the names that threads were given. Seen: 0.55, 0.96,
0.128, 0.137, 0.145, 0.154, 0.166, 0.171; published files of 0.45 to 0.146; lines without envelope and `.json` documents of the
first program.

    {"timestamp":"…Z","ordinal":0,"type":"session_meta","payload":{"id":"01a2…","session_id":"<root thread>","cwd":"/home/dev/app",
      "originator":"codex_exec","cli_version":"0.171.0","source":"exec","git":{"commit_hash":"020a…","branch":"main"}}}
    {…,"type":"event_msg","payload":{"type":"task_started","turn_id":"01a2…","turn_attribution":{"turn_trigger":"exec"}}}
    {…,"type":"turn_context","payload":{"turn_id":"01a2…","cwd":"…","model":"gpt-5.5","approval_policy":"never"}}
    {…,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"…"}],
      "internal_chat_message_metadata_passthrough":{"turn_id":"…","content_item_kinds":["user.text"]}}}
    {…,"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"call_1"}}
    {…,"type":"token_usage_record","payload":{"thread_id":"…","response_id":"resp_1","usage":{"input_tokens":1001,
      "cached_input_tokens":203,"output_tokens":37,"reasoning_output_tokens":11,"total_tokens":1038},"turn_token_usage":{…}}}
    {…,"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"call_1","exit_code":0,…}}}
    {…,"type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"…exited with code 0\n…"}}
    {…,"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{…},"last_token_usage":{…}}}}
    {…,"type":"compacted","payload":{"message":"…","replacement_history":[…]}}

    session_index.jsonl: {"id":"01a2…","thread_name":"Fix the adder","updated_at":"2026-11-30T10:17:21.419785128Z"}

What is particular
    - `input_tokens` includes cached tokens, `output_tokens` includes reasoning. Since 0.153 `token_usage_record` says the
      usage of one response; before, only a counter that grows: what it grew by is counted. A counter that falls starts anew;
      a fork's counter starts at what it inherited; a counter that stands still says nothing new.
    - A response's usage comes after its items (in 0.55 before them). So an `inference` without figures opens a response, and
      the one with figures supersedes it.
    - Text and reasoning stand twice, as an event and as an item: the item is taken. A prompt is an item too; in files
      whose items do not say what they are, the `user_message` event tells prompts from injected context.
    - A command's `CommandExecution` comes before the output the model got; both are one result. In code mode (`exec` runs
      JavaScript) its commands have ids of their own, `exec-<uuid>`: calls of their own, within the call by order only.
    - Sub-agents have files of their own. One that inherits its parent's history starts with a copy of it, stamped anew: a
      copy is what stands before `subagent_history_start_ordinal`, or belongs to a turn that is older than the thread (ids
      are UUIDs of version 7 and hold their time), or was stamped before the thread began.
    - A name that a thread is given is a line of `session_index.jsonl`, about all threads; 0.126 to 0.128 say it in the
      rollout too (then it is recorded from where it was read first), 0.145 and later there alone.
    - Not in any file: failed attempts, requests for titles, and who approved what.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Union
from urllib.parse import unquote, urlsplit
from zlib import crc32

import msgspec
from msgspec import Raw, Struct, field

from asrd.recorders._observed import Contents, absolute, commits, content_of, patched
from asrd.recorders.base import IMPORTED, Recorder, StreamKey, StreamOut, fields_of, from_ms, items_of, sha256, within
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
    Image,
    Inference,
    Limit,
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
    Resource,
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
from asrd.records import Place as FilePlace
from asrd.sources import Line, Located, Place, Root, Row, Source, Unread

INDEX = "session_index.jsonl"
KEEP_CALLS = 256
"""Calls without a result, and results that a later item may complete, that are remembered at most."""
KEEP_NAMES = 16
"""Names of a thread that are remembered at most, to be known where they are said again."""

# ---------------------------------------------------------------- native records


Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]


class Tokens(Struct, omit_defaults=True, gc=False):
    """Figures as Codex counts: `input_tokens` includes `cached_input_tokens`, `output_tokens` includes reasoning."""

    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    output_tokens: Count | None = None
    reasoning_output_tokens: Count | None = None
    total_tokens: Count | None = None
    cache_write_input_tokens: Count | None = None


class Git(Struct, gc=False):
    """The working tree when the thread began."""

    commit_hash: str | None = None
    branch: str | None = None
    repository_url: str | None = None


class Base(Struct, gc=False):
    """What a thread's history starts with: that of another file, up to an ordinal.

    `thread_id` is the thread whose first file it is, or the segment id of a later one.
    """

    thread_id: str
    end_ordinal_exclusive: int | None = None
    end_byte_offset: int | None = None


class Meta(Struct, gc=False):
    """`session_meta`, and the first line of files without envelope."""

    id: str
    timestamp: str | None = None
    session_id: str | None = None
    cwd: str | None = None
    originator: str | None = None
    cli_version: str | None = None
    source: Any = None
    thread_source: str | None = None
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    forked_from_ordinal_exclusive: int | None = None
    history_base: Base | None = None
    subagent_history_start_ordinal: int | None = None
    history_mode: str | None = None
    agent_path: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    model_provider: str | None = None
    runtime_workspace_roots: list[str] | None = None
    base_instructions: Any = None
    instructions: Any = None
    git: Git | None = None


class Passthrough(Struct, gc=False):
    """What 0.154 and later say of an item: its turn, and what each of its content items is."""

    turn_id: str | None = None
    content_item_kinds: list[str] | None = None


class Piece(Struct, gc=False):
    """One content item."""

    type: str = ""
    text: str | None = None
    image_url: str | None = None
    encrypted_content: str | None = None


class Item(Struct, tag_field="type", gc=False):
    """Base of what the model was given or gave."""

    id: str | None = None
    passed: Passthrough | None = field(name="internal_chat_message_metadata_passthrough", default=None)


class Said(Item, tag="message"):
    role: str = ""
    content: list[Piece] | str = ""
    phase: str | None = None


class Reasoned(Item, tag="reasoning"):
    summary: list[Piece] = []
    content: list[Piece] | None = None


class Called(Item, tag="function_call"):
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    namespace: str | None = None


class CustomCalled(Item, tag="custom_tool_call"):
    call_id: str = ""
    name: str = ""
    input: str = ""
    namespace: str | None = None


class ShellCalled(Item, tag="local_shell_call"):
    action: dict[str, Any] = {}
    call_id: str | None = None
    status: str | None = None


class SearchedWeb(Item, tag="web_search_call"):
    status: str | None = None
    action: dict[str, Any] | None = None


class SearchedTools(Item, tag="tool_search_call"):
    call_id: str | None = None
    arguments: Any = None
    status: str | None = None


class FoundTools(Item, tag="tool_search_output"):
    call_id: str | None = None
    status: str | None = None
    tools: Any = None


class Returned(Item, tag="function_call_output"):
    call_id: str = ""
    name: str | None = None
    namespace: str | None = None
    output: str | list[Piece] | dict[str, Any] | None = ""


class CustomReturned(Item, tag="custom_tool_call_output"):
    call_id: str = ""
    output: str | list[Piece] | dict[str, Any] | None = ""


class AgentSaid(Item, tag="agent_message"):
    author: str = ""
    recipient: str = ""
    content: list[Piece] = []


class AddedTools(Item, tag="additional_tools"):
    role: str | None = None
    tools: Any = None


AnyItem = Union[
    Said, Reasoned, Called, CustomCalled, ShellCalled, SearchedWeb, SearchedTools, FoundTools, Returned, CustomReturned,
    AgentSaid, AddedTools,
]  # fmt: skip


class Duration(Struct, gc=False):
    """A span of time."""

    secs: int = 0
    nanos: int = 0

    def ms(self) -> float:
        return round(self.secs * 1000 + self.nanos / 1e6, 3)


class Done(Struct, tag_field="type", gc=False):
    """Base of the items of `item_completed` (0.166 and later)."""

    id: str = ""


class UserItem(Done, tag="UserMessage"):
    content: list[Piece] = []


class AgentItem(Done, tag="AgentMessage"):
    pass


class ReasoningItem(Done, tag="Reasoning"):
    pass


class ExecItem(Done, tag="CommandExecution"):
    command: list[str] | str = ""
    cwd: str | None = None
    source: str | None = None
    status: str | None = None
    exit_code: int | None = None
    aggregated_output: str | None = None
    duration: Duration | None = None


class Change(Struct, gc=False):
    """What happened to one file."""

    type: str = ""
    content: str | None = None
    unified_diff: str | None = None
    move_path: str | None = None


class ChangeItem(Done, tag="FileChange"):
    changes: dict[str, Change] = {}
    status: str | None = None
    stdout: str | None = None
    stderr: str | None = None


class ActivityItem(Done, tag="SubAgentActivity"):
    kind: str = ""
    agent_thread_id: str = ""
    agent_path: str | None = None
    model: str | None = None
    reasoning_effort: str | None = None


class CollabItem(Done, tag="CollabAgentToolCall"):
    tool: str = ""
    status: str | None = None
    receiver_thread_ids: list[str] = []


class CompactionItem(Done, tag="ContextCompaction"):
    pass


class McpItem(Done, tag="McpToolCall"):
    server: str | None = None
    tool: str | None = None
    arguments: Any = None
    status: str | None = None
    result: Any = None
    error: Any = None
    duration: Duration | None = None


class WebItem(Done, tag="WebSearch"):
    query: str | None = None
    action: Any = None


AnyDone = Union[
    UserItem, AgentItem, ReasoningItem, ExecItem, ChangeItem, ActivityItem, CollabItem, CompactionItem, McpItem, WebItem
]


class Event(Struct, tag_field="type", gc=False):
    """Base of what `event_msg` holds."""


class Attribution(Struct, gc=False):
    """Who started a turn."""

    turn_trigger: str | None = None
    parent_turn_id: str | None = None
    initiating_agent_path: str | None = None


class Started(Event, tag="task_started"):
    turn_id: str | None = None
    turn_attribution: Attribution | None = None


class StartedToo(Started, tag="turn_started"):
    pass


class Failure(Struct, gc=False):
    message: str | None = None
    codex_error_info: Any = None


class Completed(Event, tag="task_complete"):
    turn_id: str | None = None
    last_agent_message: str | None = None
    error: Failure | None = None
    duration_ms: int | float | None = None


class CompletedToo(Completed, tag="turn_complete"):
    pass


class Aborted(Event, tag="turn_aborted"):
    turn_id: str | None = None
    reason: str | None = None


class UserTold(Event, tag="user_message"):
    message: str = ""
    images: list[str] | None = None


class AgentTold(Event, tag="agent_message"):
    pass


class ReasonTold(Event, tag="agent_reasoning"):
    pass


class RawReasonTold(Event, tag="agent_reasoning_raw_content"):
    pass


class ReasonBreak(Event, tag="agent_reasoning_section_break"):
    pass


class CountInfo(Struct, gc=False):
    total_token_usage: Tokens
    last_token_usage: Tokens | None = None


class Counted(Event, tag="token_count"):
    info: CountInfo | None = None
    rate_limits: Raw = Raw(b"")


class Settings(Struct, gc=False):
    """What is in force; `turn_context` and `thread_settings_applied` both say it."""

    turn_id: str | None = None
    model: str | None = None
    model_provider_id: str | None = None
    effort: str | None = None
    reasoning_effort: str | None = None
    cwd: str | None = None
    approval_policy: Raw = Raw(b"")
    sandbox_policy: Raw = Raw(b"")
    collaboration_mode: Any = None


class SettingsApplied(Event, tag="thread_settings_applied"):
    thread_id: str | None = None
    thread_settings: Settings | None = None


class ItemDone(Event, tag="item_completed"):
    item: AnyDone
    thread_id: str | None = None
    turn_id: str | None = None


class PatchEnded(Event, tag="patch_apply_end"):
    call_id: str = ""
    turn_id: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    success: bool | None = None
    changes: dict[str, Change] | None = None


class ExecEnded(Event, tag="exec_command_end"):
    call_id: str = ""
    turn_id: str | None = None
    command: list[str] | str = ""
    cwd: str | None = None
    source: str | None = None
    status: str | None = None
    exit_code: int | None = None
    aggregated_output: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    duration: Duration | None = None


class McpEnded(Event, tag="mcp_tool_call_end"):
    call_id: str = ""
    result: Any = None
    duration: Duration | None = None


class WebEnded(Event, tag="web_search_end"):
    call_id: str | None = None
    query: str | None = None


class ImageViewed(Event, tag="view_image_tool_call"):
    call_id: str | None = None


class Compacted(Event, tag="context_compacted"):
    pass


class Named(Event, tag="thread_name_updated"):
    thread_name: str | None = None
    thread_id: str | None = None


class Spawned(Event, tag="collab_agent_spawn_end"):
    call_id: str | None = None
    new_thread_id: str | None = None
    new_agent_nickname: str | None = None
    new_agent_role: str | None = None


class Activity(Event, tag="sub_agent_activity"):
    kind: str = ""
    agent_thread_id: str = ""
    agent_path: str | None = None
    event_id: str | None = None
    call_id: str | None = None


class Failed(Event, tag="error"):
    message: str | None = None
    codex_error_info: Any = None


class AskedExec(Event, tag="exec_approval_request"):
    call_id: str | None = None


class AskedPatch(Event, tag="apply_patch_approval_request"):
    call_id: str | None = None


class Assessed(Event, tag="guardian_assessment"):
    id: str | None = None
    status: str | None = None
    target_item_id: str | None = None
    call_id: str | None = None


AnyEvent = Union[
    Started, StartedToo, Completed, CompletedToo, Aborted, UserTold, AgentTold, ReasonTold, RawReasonTold, ReasonBreak,
    Counted, SettingsApplied, ItemDone, PatchEnded, ExecEnded, McpEnded, WebEnded, ImageViewed, Compacted, Named, Spawned,
    Activity, Failed, AskedExec, AskedPatch, Assessed,
]  # fmt: skip


class Envelope(Struct, tag_field="type", gc=False):
    """What every line says."""

    timestamp: str | None = None
    ordinal: int | None = None


class MetaLine(Envelope, tag="session_meta", kw_only=True):
    payload: Meta


class LineMeta(Struct, gc=False):
    inherited_user_message: bool = False
    compaction_output: bool = False


class ItemLine(Envelope, tag="response_item", kw_only=True):
    payload: AnyItem
    metadata: LineMeta | None = None


class EventLine(Envelope, tag="event_msg", kw_only=True):
    payload: AnyEvent


class ContextLine(Envelope, tag="turn_context", kw_only=True):
    payload: Settings


class Response(Struct, gc=False):
    response_id: str
    usage: Tokens
    thread_id: str | None = None
    turn_id: str | None = None
    turn_token_usage: Tokens | None = None


class ResponseLine(Envelope, tag="token_usage_record", kw_only=True):
    payload: Response


class Replaced(Struct, gc=False):
    message: str | None = None


class CompactedLine(Envelope, tag="compacted", kw_only=True):
    payload: Replaced


class WorldLine(Envelope, tag="world_state", kw_only=True):
    payload: Raw


class Trigger(Struct, gc=False):
    trigger_turn: bool | None = None


class AgentEnvelopeLine(Envelope, tag="inter_agent_communication_metadata", kw_only=True):
    payload: Trigger


class LooseEvent(Struct, gc=False):
    """A line whose payload is not in the shape expected, or of a kind with no standard place."""

    type: str
    payload: Raw
    timestamp: Any = None


class Kind(Struct, gc=False):
    type: Any = None


class BareMark(Struct, gc=False):
    record_type: str


class Arguments(Struct, gc=False):
    """The arguments of tools that are looked at, whatever the tool."""

    cmd: str | None = None
    command: Any = None
    workdir: str | None = None
    plan: Any = None


class JsonOutput(Struct, gc=False):
    """Output of a command up to 0.96."""

    output: str
    metadata: JsonOutputMeta


class JsonOutputMeta(Struct, gc=False):
    exit_code: int | None = None
    duration_seconds: float | None = None


class Window(Struct, gc=False):
    used_percent: int | float | None = None
    window_minutes: int | None = None
    resets_at: int | None = None


class Indexed(Struct, gc=False):
    """A line of `session_index.jsonl`: a thread was named. The last one of a thread is its name."""

    id: str
    thread_name: str | None = None
    updated_at: str | None = None


class ReviewTarget(Struct, gc=False):
    instructions: str | None = None
    """What a person asked to be reviewed, in their own words."""


class ReviewItem(Struct, gc=False):
    """A review begins or ends, as an item (from 0.155 on) or as an event."""

    type: Any = None
    target: ReviewTarget | None = None


class ReviewEvent(ReviewItem):
    turn_id: str | None = None
    item: ReviewItem | None = None


class CompletedItem(Struct, gc=False):
    item: Kind | None = None


class Limits(Struct, gc=False):
    primary: Window | None = None
    secondary: Window | None = None
    limit_id: Any = None
    plan_type: Any = None


class Document(Struct, gc=False):
    """A session of the first program (2025-04): one document, rewritten in place."""

    session: Meta
    items: list[Raw]


AnyLine = Union[
    MetaLine, ItemLine, EventLine, ContextLine, ResponseLine, CompactedLine, WorldLine, AgentEnvelopeLine, AnyItem
]

_line = msgspec.json.Decoder(AnyLine)
_loose = msgspec.json.Decoder(LooseEvent)
_kind = msgspec.json.Decoder(Kind)
_meta = msgspec.json.Decoder(Meta)
_mark = msgspec.json.Decoder(BareMark)
_item = msgspec.json.Decoder(AnyItem)
_arguments = msgspec.json.Decoder(Arguments)
_object = msgspec.json.Decoder(dict[str, Any])
_json_output = msgspec.json.Decoder(JsonOutput)
_limits = msgspec.json.Decoder(Limits)
_document = msgspec.json.Decoder(Document)
_indexed = msgspec.json.Decoder(Indexed)
_review = msgspec.json.Decoder(ReviewEvent)
_completed_item = msgspec.json.Decoder(CompletedItem)
_value = msgspec.json.Decoder()

NO_PLACE = {
    "thread_rolled_back", "ghost_snapshot", "collab_waiting_end", "collab_agent_interaction_end", "collab_close_end",
    "collab_resume_end", "entered_review_mode", "exited_review_mode", "warning", "stream_error", "background_event",
    "deprecation_notice", "image_generation_end", "hook_prompt", "thread_goal_updated",
}  # fmt: skip
"""Kinds that are known and have no standard place: `native`, without a word on their shape."""
NO_PLACE_ITEMS = {"EnteredReviewMode", "ExitedReviewMode", "HookPrompt", "ImageView"}
"""The same of items that were completed (0.155, 0.171)."""

KINDS = {
    "exec_command": "execute", "shell": "execute", "shell_command": "execute", "local_shell": "execute", "exec": "execute",
    "container.exec": "execute", "write_stdin": "execute", "apply_patch": "edit", "update_plan": "plan", "view_image": "read",
    "web_search": "search", "tool_search": "search", "spawn_agent": "delegate", "wait_agent": "delegate", "wait": "delegate",
    "send_input": "delegate", "send_message": "delegate", "close_agent": "delegate", "resume_agent": "delegate",
    "list_agents": "delegate", "followup_task": "delegate", "interrupt_agent": "delegate", "read_mcp_resource": "mcp",
    "list_mcp_resources": "mcp", "list_mcp_resource_templates": "mcp",
}  # fmt: skip

INJECTED = (
    "<environment_context>", "<ENVIRONMENT_CONTEXT>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>",
    "<permissions instructions>", "<collaboration_mode>", "<turn_aborted>", "<subagent_notification>", "<skill>",
    "<skills_instructions>", "<user_action>", "<hook_prompt", "<model_switch>", "<personality_spec>", "<goal_context>",
    "<multi_agent_",
    "Warning: apply_patch was requested via", "Warning: The maximum number of unified exec",
)  # fmt: skip
"""How context begins that Codex injects as the user, in files whose items do not say what they are."""
SUMMARY = "Another language model started to solve this problem"

_ROLLOUT = re.compile(
    r"(?:^|/)(rollout-[^/]*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:_[^/]*)?\.jsonl?)(?:\.zst)?$"
)
_HEAD = re.compile(
    r"(?:Chunk ID: \S*\n)?(?:Exit code: (-?\d{1,10})\n)?Wall time: ([\d.]{1,15}) seconds\n"
    r"(?:Process exited with code (-?\d{1,10})\n)?(?:Process running with session ID (\d+)\n)?"
    r"(?:Original token count: \d+\n)?(?:Total output lines: \d+\n)?Output:\n"
)
_CODE_HEAD = re.compile(r"Script (completed|failed|running|terminated)[^\n]*\n(?:Wall time:? ([\d.]{1,15}) seconds\n)?")
_EXIT = re.compile(r"(?:Process exited with code|[Ee]xit code:?) (-?\d{1,10})\b")
_UNFIT = re.compile(r"[\n\r]|\\u[dD][89a-fA-F]")
"""What JSON on a line may not hold as it stands: line ends, and surrogates that may be alone."""
_ABORTED = re.compile(r"Wall time: ([\d.]{1,15}) seconds\naborted")
_TIMED_OUT = re.compile(r"command timed out after \d+ ?m?s|timed out after \d+")
_REFUSED = {
    "Command blocked by PreToolUse hook: ": "hook:PreToolUse", "Tool call blocked by PreToolUse hook: ": "hook:PreToolUse",
    "approval policy is ": "approval_policy",
}  # fmt: skip
"""How Codex says that a call was refused without asking a person (0.171), and by which policy."""
_TURNED_DOWN = {"view_image": ("unable to locate image at ",)}
"""How Codex says that a tool could not do what was asked, beside the tool's own name and what came to it."""
_READ = re.compile(r"(?:cat|sed -n ['\"]?1,(?P<last>\d+)p['\"]?)\s+(?P<path>[^\s|;&<>*?$`'\"\\]+)\s*")
_CUT = re.compile(r"tokens truncated|omitted \d+ of \d+ lines|\[\.\.\. omitted|chars truncated|\[trimmed: ")
_SHORT = re.compile(r"^\[([^\s\]]+)(?: \(root-commit\))? ([0-9a-f]{7,40})\] ", re.M)
_PATCH = "*** Begin Patch"


class InForce(Struct, array_like=True):
    """What the next request is made with."""

    model: str | None = None
    effort: str | None = None
    cwd: str | None = None


class Totals(Struct, array_like=True):
    """A counter as it stood: input, cached, output, reasoning."""

    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    @classmethod
    def of(cls, tokens: Tokens) -> Totals:
        return cls(
            tokens.input_tokens or 0,
            tokens.cached_input_tokens or 0,
            tokens.output_tokens or 0,
            tokens.reasoning_output_tokens or 0,
        )

    def fell_from(self, before: Totals) -> bool:
        return (
            self.input < before.input
            or self.output < before.output
            or self.cached < before.cached
            or self.reasoning < before.reasoning
        )

    def minus(self, before: Totals) -> Totals:
        return Totals(
            self.input - before.input,
            self.cached - before.cached,
            self.output - before.output,
            self.reasoning - before.reasoning,
        )


class Open(Struct, array_like=True):
    """A call without a result yet."""

    name: str
    record: str
    turn: str | None = None
    command: str | None = None
    cwd: str | None = None
    patch: str | None = None
    changed: bool = False
    result: str | None = None
    text: tuple[int, int] = (0, 0)
    status: str | None = None
    exit_code: int | None = None
    duration_ms: float | None = None
    failed: bool | None = None
    plan: list[PlanItem] | None = None


class Ended(Struct, array_like=True):
    """A call whose output came, which a late item may complete."""

    record: str
    status: str


class Unsure(Struct, array_like=True):
    """A user's message that no event has confirmed as a prompt yet."""

    record: str
    text: str
    said_so: bool
    prompt: bool
    at: str | None = None
    turn: str | None = None
    native_id: str | None = None


class State(Struct):
    """All that is kept between lines."""

    thread: str | None = None
    began: str | None = None
    spawned: bool = False
    """Another agent started this thread: its prompts are an agent's."""
    path: str | None = None
    provider: str | None = None
    roots: list[WorkspaceRoot] = []
    header: int = 0
    """Digest of the first session_meta: another one of the same thread is told from it."""
    # copies
    copying: bool = False
    owner: str | None = None
    start_ordinal: int | None = None
    inherits: bool = False
    saw_turn: bool = False
    last_ms: int | None = None
    burst: int | None = None
    """In files without turn ids: the pause, in ms, that ends a copy, which is written in one go."""
    # turns
    turn: str | None = None
    turn_derived: bool = False
    turns: int = 0
    error: Error | None = None
    answered: bool = False
    prompted: bool = False
    review: str | None = None
    """The turn of a review that is under way: another thread does it, and what it says is repeated here in part."""
    reviewing: bool = False
    """The turn of the thread that reviews was seen to start."""
    reviewed: bool = False
    """The review is over: Codex says next what it found, in a message that no response is behind."""
    attributed: bool = False
    """This file says of turns who started them."""
    by_command: bool = False
    summary: str | None = None
    """What a response said that was asked for a summary; the compaction after it repeats it, behind words of its own."""
    summary_id: str | None = None
    # what is in force
    config: InForce = field(default_factory=InForce)
    mode: str | None = None
    policy: bytes = b""
    sandbox: bytes = b""
    # usage
    emptied: bool = False
    """The program said that it had counted nothing, in a thread that had a count."""
    unwritten: bool = False
    """It was said that the counter has no cache writes."""
    total: Totals | None = None
    counted: Totals = field(default_factory=Totals)
    base: Totals | None = None
    forked: bool = False
    epoch: int = 0
    by_record: bool = False
    said: set[int] = set()
    """Digests of the response ids, and of the counts with their times, that were told: one that stands twice counts once."""
    differenced: str | None = None
    """The response that the counter alone told of last, and by how much it grew."""
    grew: Totals = field(default_factory=Totals)
    responses: int = 0
    response: str | None = None
    """The inference that items belong to, and the record that opened it."""
    opened: str | None = None
    passed: bool = False
    """An output or a prompt came since: the next item belongs to another response."""
    usage_first: bool | None = None
    estimate: int | None = None
    limits: bytes = b""
    # calls
    open: dict[str, Open] = {}
    ended: dict[str, Ended] = {}
    searches: int = 0
    unsure: list[Unsure] = []
    evented: bool = False
    links: list[str] = []
    compactions: int = 0
    trigger: bool | None = None
    files: Contents = field(default_factory=Contents)
    items: list[int] = []
    """Digests of the items of a document that were recorded."""
    named: list[str] = []
    """Names that the rollout said and the index did not yet."""
    indexed: list[str] = []
    """Names that the index said and the rollout did not yet."""


def _owner(line: bytes) -> str | None:
    """The thread that a line of `session_index.jsonl` names."""
    try:
        return _indexed.decode(line).id
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class CodexRecorder(Recorder):
    """Rollouts of Codex, whoever started it."""

    harness = "codex"
    roots = (Root(".codex", env=("CODEX_HOME",)),)
    places = (
        Place("sessions/**/rollout-*.jsonl"),
        Place("sessions/**/rollout-*.jsonl.zst"),
        Place("archived_sessions/rollout-*.jsonl"),
        Place("archived_sessions/rollout-*.jsonl.zst"),
        Place("sessions/rollout-*.json", "document"),
        Place(INDEX, "shared", owner=_owner),
    )
    unread = (
        Unread("history.jsonl", "prompts of all threads, which their rollouts hold"),
        Unread("state_*.sqlite", "a list of the threads: what their rollouts and the index of names say"),
        Unread("thread_history_*.sqlite", "a projection of the rollouts"),
    )
    versions = ("0.55.0", "0.96.0", "0.128.0", "0.137.0", "0.145.0", "0.154.0", "0.166.0", "0.171.0")
    State = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """Files of one thread are one group, in the order of their names; the folder and `.zst` are no part of a name."""
        if path == INDEX:
            return Located(group="", name=INDEX, order="~")
        found = _ROLLOUT.search(path)
        if found is None:
            return None
        name, thread = found[1], found[2]
        return Located(group=thread if name.endswith("l") else name, name=name, order=name)

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """A first line that is a `session_meta`, or the first line or document of the formats before it."""
        first = head.lstrip(b"\xef\xbb\xbf\0 \r\n").split(b"\n", 1)[0]
        try:
            return isinstance(_line.decode(first), MetaLine)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        try:
            meta = _meta.decode(first)
            return bool(meta.timestamp) and b'"instructions"' in first and b'"type"' not in first[:200]
        except (msgspec.DecodeError, UnicodeDecodeError):
            return head.lstrip()[:1] == b"{" and b'"session"' in head[:200] and b'"items"' in head

    passing = re.compile(rb'\{"timestamp":"[^"]{0,40}"(,"ordinal":\d{1,18})')  # `codex migrate-rollouts` adds it

    def __init__(self, out: Any, group: str) -> None:
        super().__init__(out, group)
        self._stream: StreamOut | None = None
        self._copy: str | None = None
        self._places: dict[str, FilePlace] = {}

    # -------------------------------------------------------------- the line

    def receive(self, source: Source, item: Line | Row) -> None:
        if isinstance(item, Row):
            if source.kind == "shared":
                self.on_indexed(_indexed.decode(item.data))
            else:
                self.on_document(item)
            return
        data = item.data
        try:
            line = _line.decode(data)
        except msgspec.ValidationError as error:
            self.on_other(item, error)
            return
        if isinstance(line, MetaLine):
            self.on_meta(line.payload, line.timestamp, data)
            return
        state = self.state
        self._copy = None
        if state.copying:
            self._settle(line)
        if isinstance(line, EventLine):
            _EVENTS[type(line.payload)](self, line.payload, line.timestamp)
        elif isinstance(line, ItemLine):
            meta = line.metadata
            _ITEMS[type(line.payload)](self, line.payload, line.timestamp, meta is not None and meta.compaction_output)
        elif isinstance(line, ContextLine):
            self.on_settings(line.payload, line.timestamp, "turn-context-unchanged")
        elif isinstance(line, ResponseLine):
            self.on_response(line.payload, line.timestamp)
        elif isinstance(line, CompactedLine):
            self.on_compacted(line.payload, line.timestamp)
        elif isinstance(line, WorldLine):
            told = line.payload
            text = str(told, "utf-8")
            world = _value.decode(told) if _UNFIT.search(text) else told
            self._add(Native(native_type="world_state", data=world, at=line.timestamp, turn_id=state.turn))
        elif isinstance(line, AgentEnvelopeLine):
            state.trigger = line.payload.trigger_turn
            self.out.skip("agent-message-envelope")
        else:
            _ITEMS[type(line)](self, line, None, False)

    def main(self) -> StreamOut:
        """The thread's stream; opened by the name of the file when no `session_meta` came first."""
        if self._stream is None:
            state = self.state
            if state.thread is None:
                state.thread = self.group
                found = _ROLLOUT.search(self.group)
                if found is not None:
                    state.thread = found[2]
            self._stream = self.open(StreamKey(self.harness, state.thread or self.group))
        return self._stream

    def _add(self, record: Record) -> str:
        if self._copy is not None:
            record.copy_of = CopyOf(session_id=self._copy, native_id=record.native_id)
        stream = self._stream
        return (self.main() if stream is None else stream).add(record)

    def on_other(self, item: Line, error: msgspec.ValidationError) -> None:
        """A kind with no standard place, another shape than expected, or a line of the formats without envelope."""
        data = item.data
        try:
            loose = _loose.decode(data)
        except msgspec.ValidationError:
            self.on_bare(item, error)
            return
        kind = _kind.decode(loose.payload).type if bytes(loose.payload)[:1] == b"{" else None
        name = f"{loose.type}/{kind}" if isinstance(kind, str) else loose.type
        known = isinstance(kind, str) and kind in NO_PLACE
        if kind == "item_completed":
            known = _item_kind(loose.payload) in NO_PLACE_ITEMS
        if not known:
            self.out.count(f"unexpected:{name}")
        self._copy = None
        if self.state.copying:
            self._copy = self.state.owner
        at = loose.timestamp if isinstance(loose.timestamp, str) else None
        if b"ReviewMode" in data or b"_review_mode" in data:
            self._review(loose.payload, at)
        self._add(
            Native(
                native_type=name,
                data=_value.decode(loose.payload),
                at=at,
                turn_id=self.state.turn,
                meta=None if known else {"dev.asrd.unexpected": str(error)},
            )
        )

    def _review(self, payload: Raw, at: str | None) -> None:
        """A review began or ended: a turn that no event starts. Before 0.155 its id is not said either."""
        state = self.state
        try:
            told = _review.decode(payload)
        except msgspec.ValidationError:
            return
        item = told.item or told
        kind = item.type
        if kind in ("EnteredReviewMode", "entered_review_mode"):
            turn = told.turn_id or self._next_turn()
            if turn != state.turn:
                self._begin(turn, derived=False)
                self._add(Turn(turn_id=turn, phase="start", trigger="command", at=at, native_id=told.turn_id))
            if item.target is not None and item.target.instructions:
                words: list[Block] = [Text(text=item.target.instructions)]
                self._add(self._prompt(words, at, turn, None))
            state.review, state.reviewing, state.reviewed = turn, False, False
        elif kind in ("ExitedReviewMode", "exited_review_mode") and state.review is not None:
            state.reviewed = True

    def on_bare(self, item: Line, error: msgspec.ValidationError) -> None:
        data = item.data
        try:
            mark = _mark.decode(data)
        except msgspec.ValidationError:
            pass
        else:
            self.out.skip(f"bare-{mark.record_type}")
            return
        if self.state.thread is not None or b'"type"' in data[:200]:
            raise error
        meta = _meta.decode(data)
        self.on_meta(meta, meta.timestamp, data)

    # -------------------------------------------------------------- the session

    def on_meta(self, meta: Meta, at: str | None, data: bytes) -> None:
        state = self.state
        if state.header and meta.id != state.thread:
            self.on_foreign_meta(meta, at)
            return
        digest = crc32(msgspec.json.encode((meta.id, meta.cli_version, meta.cwd, meta.history_base)))
        if state.header:
            if digest == state.header:
                self.out.skip("session-meta-repeated")
            elif meta.history_base is not None:
                self._copy = None
                told = fields_of(fields_of(_value.decode(data)).get("payload"))
                told.pop("base_instructions", None)  # as in the first file
                self._add(Native(native_type="session_meta", data=told, at=at))
            else:
                self._copy = None
                self._add(Config(cwd=meta.cwd, version=meta.cli_version, at=at))
            return
        spawn = _spawn_of(meta)
        late = state.thread is not None and self.out.stream(StreamKey(self.harness, state.thread)) is not None
        state.header = digest or 1
        state.began = meta.timestamp or at
        state.thread = state.thread if late else meta.id
        state.provider = meta.model_provider
        parent, parent_field = meta.parent_thread_id, "session_meta.parent_thread_id"
        if parent is None and spawn.get("parent_thread_id"):
            parent, parent_field = (
                str(spawn["parent_thread_id"]),
                "session_meta.source.subagent.thread_spawn.parent_thread_id",
            )
        state.spawned = parent is not None
        state.path = meta.agent_path or spawn.get("agent_path")
        imported = meta.originator if meta.originator and meta.originator.startswith(IMPORTED) else None
        origin = imported or meta.forked_from_id or (meta.history_base.thread_id if meta.history_base else None)
        origin_field = "session_meta.originator" if imported else "session_meta.forked_from_id"
        state.forked = origin is not None
        state.owner = imported or meta.forked_from_id or parent
        state.start_ordinal = meta.subagent_history_start_ordinal
        state.copying = state.start_ordinal is not None or (state.forked and meta.history_base is None)
        version = _version(meta.cli_version)
        state.burst = 1000 if version is None else 50 if version < (0, 104) else None
        roots = [WorkspaceRoot(id="r1", path=meta.cwd)] if meta.cwd else []
        if roots and meta.git is not None:
            git = meta.git
            roots[0].vcs = Vcs(type="git", head=git.commit_hash, branch=git.branch, remote=git.repository_url)
        for path in meta.runtime_workspace_roots or ():
            if path != meta.cwd:
                roots.append(WorkspaceRoot(id=f"r{len(roots) + 1}", path=path))
        state.roots = roots
        state.config.cwd = meta.cwd
        if parent is not None:
            lineage = _lineage(parent, "spawned_by", parent_field)
        elif origin is not None:
            lineage = _lineage(origin, "forked_from", origin_field)
        elif meta.thread_source == "user" or isinstance(meta.source, str):
            lineage = Lineage(root=True)
        else:
            lineage = Lineage()
        told = {
            "dev.asrd.originator": meta.originator,
            "dev.asrd.surface": meta.source if isinstance(meta.source, str) else None,
            "dev.asrd.threadSource": meta.thread_source,
            "dev.asrd.historyMode": meta.history_mode,
            "dev.asrd.provider": meta.model_provider,
            "dev.asrd.rootSession": meta.session_id if meta.session_id != meta.id else None,
            "dev.asrd.agentPath": state.path,
            "dev.asrd.agentNickname": meta.agent_nickname or spawn.get("agent_nickname"),
            "dev.asrd.agentRole": meta.agent_role or spawn.get("agent_role"),
            "dev.asrd.agentDepth": spawn.get("depth"),
            "dev.asrd.subagent": _kind_of_subagent(meta.source) if not spawn else None,
        }
        self._copy = None
        if late:
            self._add(
                Config(
                    cwd=meta.cwd, version=meta.cli_version, at=at, meta={k: v for k, v in told.items() if v is not None}
                )
            )
            if lineage.parent is not None and lineage.evidence is not None:
                self._link(lineage.relation or "spawned_by", lineage.parent.session_id, lineage.evidence, at)
        else:
            self._stream = self.open(
                StreamKey(self.harness, meta.id),
                version=meta.cli_version,
                started_at=meta.timestamp or at,
                lineage=lineage,
                workspace=Workspace(roots=roots) if roots else None,
                lossy=("thinking.encrypted",),
                meta={k: v for k, v in told.items() if v is not None} or None,
            )
        for profile, facet, how, why in CAPTURES:
            self._add(Capture(profile=profile, facet=facet, state=how, reason=why))
        if version is not None and version <= ENDLESS:
            why = "this version does not say when a turn ended"
            self._add(Capture(profile="core", facet="turn.end", state="unavailable", reason=why))
        if origin is not None:
            base = meta.history_base
            where = "session_meta.history_base" if base is not None else origin_field
            ends = meta.forked_from_ordinal_exclusive
            told = {"dev.asrd.historyBase": msgspec.to_builtins(base)} if base else {}
            if ends is not None:
                told["dev.asrd.endsBeforeOrdinal"] = ends
            self._link(
                "forked_from", origin, Evidence(kind="native-field", field=where, value=origin), at, meta=told or None
            )
        for told_text in (meta.base_instructions, meta.instructions):
            text: Any = fields_of(told_text).get("text") if isinstance(told_text, dict) else told_text
            if isinstance(text, str) and text:
                self._add(
                    Message(
                        role="system",
                        author="harness",
                        origin="injected",
                        audience="model",
                        content=[Text(text=text)],
                        at=at,
                    )
                )

    def on_foreign_meta(self, meta: Meta, at: str | None) -> None:
        """Another thread's `session_meta`: what follows is a copy of it, until this thread's own part begins."""
        state = self.state
        if state.saw_turn and not state.copying:
            self._copy = None
            evidence = Evidence(kind="native-field", field="session_meta.id", value=meta.id)
            self._link("copies", meta.id, evidence, at)
            return
        state.copying = True
        state.owner = meta.id
        state.forked = True
        self._copy = None
        self._link("copies", meta.id, Evidence(kind="native-field", field="session_meta.id", value=meta.id), at)

    def _link(
        self,
        relation: str,
        target: str,
        evidence: Evidence,
        at: str | None,
        call_id: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        name = f"{relation} {target}"
        links = self.state.links
        if name in links:
            self.out.skip("link-stated-before")
            return
        links.append(name)
        self._add(
            Link(
                relation=relation,
                target=LinkTarget(agent=self.harness, session_id=target),
                evidence=evidence,
                call_id=call_id,
                at=at,
                turn_id=self.state.turn,
                meta=meta,
            )
        )

    # -------------------------------------------------------------- copies

    def _settle(self, line: Any) -> None:
        """Whether a line of a thread that inherits a history is the copy of another's, or the first of its own."""
        state = self.state
        if state.start_ordinal is not None:
            ordinal: int | None = getattr(line, "ordinal", None)
            if ordinal is not None:
                if ordinal >= state.start_ordinal:
                    self._own()
                    return
                inherited: bool | None = None
                if isinstance(line, ItemLine):
                    inherited = line.metadata is not None and line.metadata.inherited_user_message
                    state.inherits = state.inherits or inherited
                if not (state.inherits and inherited is False):
                    self._copy = state.owner
                return
        stamp: str | None = getattr(line, "timestamp", None)
        now = _ms(stamp)
        began = _ms(state.began)
        last, state.last_ms = state.last_ms, now
        if now is not None and began is not None and now < began:
            self._copy = state.owner
            return
        payload = getattr(line, "payload", None)
        if isinstance(payload, SettingsApplied) and payload.thread_id == state.thread:
            self._own()
            return
        turn = payload.turn_id if isinstance(payload, (Started, Settings)) else None
        if turn is not None:
            state.saw_turn = True
            made, thread = _uuid_ms(turn), _uuid_ms(state.thread)
            if made is None or thread is None:
                if now is not None and began is not None and now - began >= 1000:
                    self._own()
                    return
            elif made >= thread and (now is None or made <= now):
                self._own()
                return
        elif not state.saw_turn and state.burst is not None and last is not None and now is not None:
            if now - last >= state.burst:
                self._own()
                return
        self._copy = state.owner

    def _own(self) -> None:
        """The thread's own part begins: what was open in the copy stays with its owner."""
        state = self.state
        state.copying = False
        state.saw_turn = True
        state.turn, state.turn_derived = None, False
        state.response = state.opened = None
        state.usage_first, state.passed = None, False
        state.open, state.unsure = {}, []
        state.error = None
        state.responses = 0
        state.config, state.mode, state.policy, state.sandbox = InForce(cwd=state.config.cwd), None, b"", b""

    # -------------------------------------------------------------- turns

    def on_started(self, event: Started, at: str | None) -> None:
        state = self.state
        if state.review is not None and not state.reviewing:
            state.reviewing = True
            self.out.skip("turn-of-the-reviewing-thread")
            return
        turn = event.turn_id or self._next_turn()
        if state.turn is not None and not state.turn_derived and state.turn != turn:
            self._add(
                Turn(turn_id=state.turn, phase="end", status="interrupted", meta={"dev.asrd.rule": "next-turn-started"})
            )
        self._begin(turn, derived=event.turn_id is None)
        told = event.turn_attribution
        trigger: str | None = None
        if told is not None:
            state.attributed = True
        elif state.attributed:
            # a turn that nobody is said to have started: a command of the program itself, such as a compaction by hand
            trigger = "command"
            state.by_command = True
        meta: dict[str, Any] | None = None
        if told is not None:
            if told.parent_turn_id or told.initiating_agent_path:
                trigger = "agent"
                meta = {"dev.asrd.parentTurn": told.parent_turn_id, "dev.asrd.by": told.initiating_agent_path}
            elif told.turn_trigger is not None:
                trigger = TRIGGERS.get(told.turn_trigger)
                meta = {"dev.asrd.trigger": told.turn_trigger}
        if trigger is None and state.spawned and self._copy is None:
            trigger = "agent"
        self._add(Turn(turn_id=turn, phase="start", trigger=trigger, at=at, native_id=event.turn_id, meta=meta))

    def _begin(self, turn: str, derived: bool) -> None:
        state = self.state
        state.turn, state.turn_derived = turn, derived
        state.response = state.opened = None
        state.usage_first, state.passed = None, False
        state.error = None
        state.answered = state.prompted = state.by_command = False
        state.review, state.reviewed = None, False

    def _next_turn(self) -> str:
        state = self.state
        state.turns += 1
        return f"{self._copy or state.thread}/turn/{state.turns}"

    def on_completed(self, event: Completed, at: str | None) -> None:
        state = self.state
        turn = state.review or event.turn_id or state.turn
        if turn is None:
            self._add(Native(native_type="event_msg/task_complete", data=msgspec.to_builtins(event), at=at))
            return
        error = _error(event.error) or (state.error if not event.last_agent_message else None)
        if event.error is not None and not state.answered:
            self._add(
                Inference(
                    inference_id=f"{turn}/failed",
                    id_source="derived",
                    model=state.config.model,
                    provider=state.provider,
                    effort=state.config.effort,
                    error=error,
                    at=at,
                    turn_id=turn,
                )
            )
        meta = {"dev.asrd.durationMs": event.duration_ms} if event.duration_ms is not None else None
        self._add(
            Turn(
                turn_id=turn,
                phase="end",
                status="failed" if error else "completed",
                error=error,
                at=at,
                native_id=event.turn_id or turn,
                meta=meta,
            )
        )
        self._finish(turn)

    def on_aborted(self, event: Aborted, at: str | None) -> None:
        turn = self.state.review or event.turn_id or self.state.turn
        if turn is None:
            self._add(Native(native_type="event_msg/turn_aborted", data=msgspec.to_builtins(event), at=at))
            return
        meta = {"dev.asrd.reason": event.reason} if event.reason else None
        self._add(Turn(turn_id=turn, phase="end", status="interrupted", at=at, native_id=event.turn_id, meta=meta))
        self._finish(turn)

    def _finish(self, turn: str) -> None:
        state = self.state
        if turn == state.turn:
            state.turn = state.review = None
            state.response = state.opened = None
            state.error = None
            state.reviewed = False

    def on_failed(self, event: Failed, at: str | None) -> None:
        self.state.error = _error(Failure(event.message, event.codex_error_info))
        self._add(
            Native(native_type="event_msg/error", data=msgspec.to_builtins(event), at=at, turn_id=self.state.turn)
        )

    # -------------------------------------------------------------- what is in force

    def on_settings_applied(self, event: SettingsApplied, at: str | None) -> None:
        if event.thread_id is not None and event.thread_id != self.state.thread:
            self._copy = event.thread_id
        if event.thread_settings is None:
            self.out.skip("settings-empty")
            return
        self.on_settings(event.thread_settings, at, "settings-unchanged")

    def on_settings(self, told: Settings, at: str | None, rule: str) -> None:
        state = self.state
        was = state.config
        now = InForce(
            model=told.model or was.model,
            effort=told.effort or told.reasoning_effort or was.effort,
            cwd=told.cwd or was.cwd,
        )
        meta: dict[str, Any] = {}
        if (policy := bytes(told.approval_policy)) not in (b"", b"null", state.policy):
            state.policy = policy
            meta["dev.asrd.approvalPolicy"] = _value.decode(policy)
        if (sandbox := bytes(told.sandbox_policy)) not in (b"", b"null", state.sandbox):
            state.sandbox = sandbox
            meta["dev.asrd.sandbox"] = _value.decode(sandbox)
        mode: Any = fields_of(told.collaboration_mode).get("mode")
        mode = mode if isinstance(mode, str) else state.mode
        if told.model_provider_id:
            state.provider = told.model_provider_id
        if now == was and mode == state.mode and not meta:
            self.out.skip(rule)
            return
        state.config, old_mode, state.mode = now, state.mode, mode
        self._add(
            Config(
                model=now.model if now.model != was.model else None,
                effort=now.effort if now.effort != was.effort else None,
                cwd=now.cwd if now.cwd != was.cwd else None,
                mode=mode if mode != old_mode else None,
                at=at,
                turn_id=told.turn_id or state.turn,
                meta=meta or None,
            )
        )

    def on_named(self, event: Named, at: str | None) -> None:
        if event.thread_id is not None and event.thread_id != self.state.thread:
            self._copy = event.thread_id
        name = event.thread_name or ""
        if self._copy is None and self._told_by(self.state.indexed, name, self.state.named):
            return
        self._add(Config(title=event.thread_name, at=at, turn_id=self.state.turn))

    def on_indexed(self, told: Indexed) -> None:
        """A name of this thread, once: the rollouts of some versions say it too."""
        self._copy = None
        if not told.thread_name:
            self.out.skip("name-that-is-empty")
        elif not self._told_by(self.state.named, told.thread_name, self.state.indexed):
            self._add(Config(title=told.thread_name, at=told.updated_at))

    def _told_by(self, other: list[str], name: str, own: list[str]) -> bool:
        """Whether the other place said this name already, each time once; else it may say it yet."""
        if name in other:
            other.remove(name)
            self.out.skip("name-told-before")
            return True
        own.append(name)
        del own[:-KEEP_NAMES]
        return False

    def on_added_tools(self, item: AddedTools, at: str | None, summary: bool) -> None:
        self._add(
            Config(
                tools=_tool_names(item.tools), at=at, turn_id=_passed_turn(item) or self.state.turn, native_id=item.id
            )
        )

    # -------------------------------------------------------------- what was said

    def on_said(self, item: Said, at: str | None, summary: bool) -> None:
        role = item.role
        content = item.content
        passed = item.passed
        turn = (passed.turn_id if passed is not None else None) or self.state.turn
        blocks: list[Block] = [Text(text=content)] if isinstance(content, str) else [_block(p) for p in content]
        if role == "assistant":
            found = self.state.reviewed
            self.state.reviewed = False
            inference = None if found else self._respond(item.id, at, turn)
            if summary:
                self.state.summary = "\n".join(b.text for b in blocks if isinstance(b, Text))
                self.state.summary_id = item.id
            self._add(
                Message(
                    role="assistant",
                    author="agent",
                    origin="summary" if summary else "agent" if found else None,
                    content=blocks,
                    message_id=item.id,
                    inference_id=inference,
                    at=at,
                    turn_id=turn,
                    native_id=item.id,
                    meta={"dev.asrd.phase": item.phase} if item.phase else None,
                )
            )
            self.state.answered = True
            return
        if role != "user":
            self._add(
                Message(
                    role=role if role in ("system", "developer") else "user",
                    author="harness",
                    origin="injected",
                    audience="model",
                    content=blocks,
                    message_id=item.id,
                    at=at,
                    turn_id=turn,
                    native_id=item.id,
                )
            )
            return
        kinds = passed.content_item_kinds if passed is not None else None
        text = content if isinstance(content, str) else "\n".join(p.text for p in content if p.text)
        origin, said_so = _origin_of(kinds, text)
        if origin == "prompt":
            self.on_prompt(blocks, text, said_so, at, turn, item.id)
            return
        self._add(
            Message(
                role="user",
                author="harness" if origin != "command" else "human",
                origin=origin,
                audience="model",
                content=blocks,
                message_id=item.id,
                at=at,
                turn_id=turn,
                native_id=item.id,
            )
        )

    def on_prompt(
        self, blocks: list[Block], text: str, said_so: bool, at: str | None, turn: str | None, native_id: str | None
    ) -> str:
        state = self.state
        state.passed = state.prompted = True
        state.usage_first = None
        if not said_so and (turn is None or state.turn_derived):
            # files before 0.104 have no turn events: a turn starts with its prompt
            turn = self._next_turn()
            self._begin(turn, derived=True)
            self._add(Turn(turn_id=turn, phase="start", trigger="agent" if state.spawned else "prompt", at=at))
            state.prompted = True
        record = self._add(self._prompt(blocks, at, turn, native_id))
        state.unsure.append(Unsure(record, text, said_so, True, at, turn, native_id))
        del state.unsure[:-16]
        return record

    def _prompt(self, blocks: list[Block], at: str | None, turn: str | None, native_id: str | None) -> Message:
        agent = self.state.spawned and self._copy is None
        return Message(
            role="user",
            author="agent" if agent else "human",
            origin="agent" if agent else "prompt",
            audience="both",
            content=blocks,
            message_id=native_id,
            at=at,
            turn_id=turn,
            native_id=native_id,
        )

    def on_user_told(self, event: UserTold, at: str | None) -> None:
        self.state.evented = True
        if self.state.review is not None:
            self.out.skip("prompt-of-the-reviewing-thread")
            return
        self._confirm(event.message, [Text(text=event.message)], at, None)

    def on_user_item(self, item: UserItem, at: str | None, turn: str | None) -> None:
        text = "\n".join(p.text for p in item.content if p.text)
        self._confirm(text, [_block(p) for p in item.content], at, item.id)

    def _confirm(self, text: str, blocks: list[Block], at: str | None, native_id: str | None) -> None:
        """An event says that the person (or the parent agent) said this: the item before it was its prompt."""
        unsure = self.state.unsure
        alike = [one for one in unsure if one.text == text]
        alike += [one for one in reversed(unsure) if (text and text in one.text) or (one.text and one.text in text)]
        if alike:
            unsure.remove(alike[0])
            self.out.skip("prompt-in-response-item")
            return
        if not text and unsure:
            unsure.pop(0)
            self.out.skip("prompt-in-response-item")
            return
        self.on_prompt(blocks, text, False, at, self.state.turn, native_id)
        unsure.pop()

    def _doubt(self) -> None:
        """The model answers: a user's message that no event confirmed was context, in files that have such events."""
        state = self.state
        for one in state.unsure:
            if not one.said_so and state.evented:
                self._add(
                    Message(
                        role="user",
                        author="harness",
                        origin="injected",
                        audience="model",
                        content=[Text(text=one.text)],
                        message_id=one.native_id,
                        at=one.at,
                        turn_id=one.turn,
                        native_id=one.native_id,
                        supersedes=one.record,
                        meta={"dev.asrd.rule": "no-event-says-prompt"},
                    )
                )
        state.unsure = []

    def on_reasoned(self, item: Reasoned, at: str | None, summary: bool) -> None:
        turn = _passed_turn(item) or self.state.turn
        inference = self._respond(item.id, at, turn)
        told = "\n\n".join(p.text for p in item.summary if p.text) or None
        raw = "\n".join(p.text for p in item.content if p.text) or None if item.content else None
        hidden = True if not raw and not told else None
        self._add(
            Message(
                role="assistant",
                author="agent",
                content=[Thinking(text=raw, summary=told, redacted=hidden)],
                message_id=item.id,
                inference_id=inference,
                at=at,
                turn_id=turn,
                native_id=item.id,
            )
        )

    def on_agent_said(self, item: AgentSaid, at: str | None, summary: bool) -> None:
        state = self.state
        own = state.path or "/root"
        trigger, state.trigger = state.trigger, None
        state.passed = True
        meta: dict[str, Any] = {"dev.asrd.author": item.author, "dev.asrd.recipient": item.recipient}
        if trigger is not None:
            meta["dev.asrd.triggersTurn"] = trigger
        self._add(
            Message(
                role="assistant" if item.author == own else "user",
                author="agent",
                origin="agent",
                content=[_block(p) for p in item.content],
                message_id=item.id,
                at=at,
                turn_id=_passed_turn(item) or state.turn,
                native_id=item.id,
                meta=meta,
            )
        )

    def on_compacted(self, payload: Replaced, at: str | None) -> None:
        state = self.state
        state.compactions += 1
        state.answered = False
        state.response = state.opened = None
        state.usage_first = None
        # by hand it is a turn of its own, without a prompt
        auto = state.prompted and state.turn is not None and not state.turn_derived
        trigger = "auto" if auto else "manual" if state.by_command else None
        said = state.summary if payload.message and payload.message.endswith(state.summary or "\0") else None
        self._add(
            Compaction(
                trigger=trigger,
                summary=payload.message or None,
                message_id=state.summary_id if said else None,
                at=at,
                turn_id=state.turn,
            )
        )
        state.summary = state.summary_id = None

    def on_context_compacted(self, event: Event | CompactionItem, at: str | None, turn: str | None = None) -> None:
        if self.state.compactions:
            self.state.compactions -= 1
            self.out.skip("compaction-in-compacted")
            return
        self._add(Native(native_type="event_msg/context_compacted", data={}, at=at, turn_id=self.state.turn))

    # -------------------------------------------------------------- responses

    def _respond(self, native_id: str | None, at: str | None, turn: str | None) -> str | None:
        """The response an item of the model belongs to; an inference without figures opens a new one.

        None for text that was imported from another program: no response of Codex's; and for what a sub-agent inherited up
        to `subagent_history_start_ordinal`: items without the figures and the id of their responses, which the owner says.
        """
        state = self.state
        if self._copy is not None and (self._copy.startswith(IMPORTED) or state.start_ordinal is not None):
            return None
        if state.unsure:
            self._doubt()
        if state.response is not None and (not state.passed or state.usage_first):
            return state.response
        thread = self._copy or state.thread
        if native_id:
            name = f"{native_id}/response"
        else:
            total = state.total or Totals()
            state.responses += 1
            name = f"{thread}/{state.epoch}/{total.input}/{total.output}/+{state.responses}"
        state.response = name
        state.passed = False
        config = state.config
        state.opened = self._add(
            Inference(
                inference_id=name,
                id_source="derived",
                model=config.model,
                provider=state.provider,
                effort=config.effort,
                at=at,
                turn_id=turn,
            )
        )
        return name

    def on_response(self, payload: Response, at: str | None) -> None:
        """One response with its own figures (X1): nothing else counts in this thread from now on."""
        state = self.state
        if payload.thread_id is not None and payload.thread_id != state.thread:
            self._copy = payload.thread_id  # X2
        told = payload.usage
        before: str | None = None
        if self._copy is None:
            digest = int(sha256(payload.response_id)[:15], 16)
            if digest in state.said:
                self.out.skip("response-stated-before")
                return
            state.said.add(digest)
            figures = Totals.of(told)
            if state.differenced is not None and state.opened is None and state.grew == figures:
                before = state.differenced  # the counter told of this response before its record came
            else:
                state.counted = _sum(state.counted, figures)
            state.by_record = True
            state.differenced = None
            if state.opened is None:
                state.answered = True  # with nothing that is recorded, as for a compaction: an error is of what it gave
        raw: dict[str, Any] = {"usage": told}
        turn = payload.turn_id or state.turn
        self._count(payload.response_id, _usage(told), at, turn, raw, native=True, before=before)
        if payload.turn_token_usage is not None:
            self._add(
                UsageTotal(scope="turn", usage=_usage(payload.turn_token_usage), cumulative=True, at=at, turn_id=turn)
            )

    def _count(
        self,
        name: str,
        usage: Usage,
        at: str | None,
        turn: str | None,
        raw: dict[str, Any],
        *,
        native: bool,
        before: str | None = None,
    ) -> str:
        state = self.state
        if state.unsure:
            self._doubt()
        config = state.config
        opened = state.opened if state.response is not None else None
        record = self._add(
            Inference(
                inference_id=name,
                id_source=None if native else "derived",
                model=config.model,
                provider=state.provider,
                effort=config.effort,
                usage=usage,
                at=at,
                turn_id=turn,
                native_id=name if native else None,
                supersedes=opened or before,
                meta={"dev.asrd.usage": raw},
            )
        )
        if state.usage_first is None and not native and state.turn_derived:
            state.usage_first = opened is None
        state.opened = None
        state.responses = 0
        if state.usage_first:
            state.response, state.passed = name, False
        else:
            state.response = None
        return record

    def on_counted(self, event: Counted, at: str | None) -> None:
        """The counter (X6 to X13): what it grew by is one response's, unless responses have records of their own."""
        noted = self.on_limits(event.rate_limits, at)
        state = self.state
        info = event.info
        if info is None:
            state.emptied = state.total is not None
            if not noted:
                self.out.skip("token-count-without-figures")  # X8
            return
        told, last = info.total_token_usage, info.last_token_usage
        now, before = Totals.of(told), state.total
        if not state.by_record and self._copy is None:
            # `codex migrate-rollouts` writes a session's file anew, other words for the same counts at the same times
            digest = int(sha256(f"{at}/{now}/{Totals.of(last) if last is not None else None}")[:15], 16)
            if digest in state.said:
                self.out.skip("count-stated-before")
                return
            state.said.add(digest)
        grew = last is not None and (last.input_tokens or last.output_tokens)
        if before is not None and now == before:
            if last is not None and not grew and last.total_tokens and last.total_tokens != state.estimate:
                # X9: after a compaction, an estimate of what the context holds
                state.estimate = last.total_tokens
                data = {"total": told, "last": last}
                self._add(Native(native_type="event_msg/token_count", data=data, at=at, turn_id=state.turn))
            elif not noted:
                self.out.skip("token-count-repeated")  # X7
            return
        state.total = now
        fell = before is not None and now.fell_from(before)
        itemised = Totals.of(last) if last is not None and grew else None
        # A program that goes on with a session counts anew (0.36, 0.55), also where it soon has more than there was: all
        # that it counted is one response's, or it said before that it had counted nothing.
        anew = before is not None and bool(before.input or before.output) and not fell and itemised is not None
        anew = anew and (itemised == now or (state.emptied and itemised != now.minus(before or Totals())))
        state.emptied = False
        if fell or anew:
            state.epoch += 1
            self.out.count("usage-epoch")
        if not now.input and not now.output:
            # X10: the context window is full; the counter holds an estimate
            data = {"total": told, "last": last}
            self._add(Native(native_type="event_msg/token_count", data=data, at=at, turn_id=state.turn))
            return
        if state.by_record and self._copy is None:
            self._total(told, at, now.minus(state.counted) if state.base is None else None)
            return
        if told.cache_write_input_tokens is None and not state.unwritten and self._copy is None:
            state.unwritten = True
            why = "this version counts no cache writes"
            self._add(Capture(profile="usage", facet="usage.cacheWrite", state="unavailable", reason=why))
        delta = now if before is None or fell or anew else now.minus(before)
        gap: Totals | None = None
        if itemised is not None and itemised != delta:
            ahead = not delta.fell_from(itemised)
            if ahead and (fell or (before is None and state.forked and self._copy is None)):
                delta = itemised  # a new counter that starts from what was there before (X25)
            elif ahead:
                gap, delta = delta.minus(itemised), itemised  # X12: lines between are missing
                self.out.count("usage-gap")
        thread = self._copy or state.thread
        raw: dict[str, Any] = {"total": told}
        if last is not None:
            raw["last"] = last
        name = f"{thread}/{state.epoch}/{now.input}/{now.output}"
        if gap is not None and (gap.input or gap.output):
            missing = Usage(
                input=gap.input - gap.cached, output=gap.output, cache_read=gap.cached, reasoning=gap.reasoning
            )
            self._add(
                Inference(
                    inference_id=f"{name}/gap",
                    id_source="derived",
                    model=state.config.model,
                    provider=state.provider,
                    usage=missing,
                    turn_id=state.turn,
                    meta={"dev.asrd.usage": {"rule": "counter grew by more than the last response", "requests": None}},
                )
            )
            if self._copy is None:
                state.counted = _sum(state.counted, gap)
        usage = Usage(
            input=max(0, delta.input - delta.cached),
            output=delta.output,
            cache_read=delta.cached if told.cached_input_tokens is not None else None,
            reasoning=delta.reasoning if told.reasoning_output_tokens is not None else None,
            cache_write=last.cache_write_input_tokens if last is not None and itemised == delta else None,
        )
        record = self._count(name, usage, at, state.turn, raw, native=False)
        if self._copy is None:
            state.differenced, state.grew = record, delta
            state.counted = _sum(state.counted, delta)
            self._total(told, at, now.minus(state.counted) if state.base is None else None)

    def _total(self, told: Tokens, at: str | None, base: Totals | None) -> None:
        """The counter is the harness's own total. A fork's includes what it inherited: its `base`."""
        state = self.state
        if base is not None:
            state.base = base
        meta: dict[str, Any] | None = None
        if state.base is not None and (state.base.input or state.base.output):
            meta = {"dev.asrd.base": {"input_tokens": state.base.input, "output_tokens": state.base.output}}
        self._add(
            UsageTotal(scope="session", usage=_usage(told), cumulative=True, at=at, turn_id=state.turn, meta=meta)
        )

    def on_limits(self, raw: Raw, at: str | None) -> bool:
        """Limits of the provider, once for as long as they stay the same (X17)."""
        state = self.state
        told = bytes(raw)
        if not told or told == b"null" or told == state.limits:
            return False
        state.limits = told
        limits = _limits.decode(raw)
        noted = False
        for name, window in (("primary", limits.primary), ("secondary", limits.secondary)):
            if window is not None:
                noted = True
                meta: dict[str, Any] = {"dev.asrd.window": name}
                if limits.limit_id:
                    meta["dev.asrd.limit"] = limits.limit_id
                if limits.plan_type:
                    meta["dev.asrd.plan"] = limits.plan_type
                self._add(
                    Limit(
                        window=f"{window.window_minutes}m" if window.window_minutes else name,
                        used_percent=window.used_percent,
                        resets_at=from_ms(window.resets_at * 1000) if window.resets_at else None,
                        at=at,
                        turn_id=state.turn,
                        meta=meta,
                    )
                )
        return noted

    # -------------------------------------------------------------- calls

    def on_called(self, item: Called, at: str | None, summary: bool) -> None:
        text = item.arguments
        args: Arguments | None = None
        try:
            args = _arguments.decode(text)
            given: Any = Raw(text.encode()) if not _UNFIT.search(text) else _object.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            given = _object_or_raw(text)
        command: str | None = None
        workdir: str | None = None
        if args is not None:
            command, workdir = args.cmd, args.workdir
            if command is None and args.command is not None:
                command = _command(args.command)
        patch = text if _PATCH in text else None
        if patch is not None and args is not None:
            patch = _patch_in(args)
        self._call(item, item.call_id, item.name, given, at, command, workdir, patch, item.namespace)
        if item.name == "update_plan" and args is not None and args.plan is not None:
            self.state.open[item.call_id].plan = _plan(args.plan)

    def on_custom_called(self, item: CustomCalled, at: str | None, summary: bool) -> None:
        patch = item.input if item.name == "apply_patch" and _PATCH in item.input else None
        self._call(item, item.call_id, item.name, {"raw": item.input}, at, None, None, patch, item.namespace)

    def on_shell_called(self, item: ShellCalled, at: str | None, summary: bool) -> None:
        call_id = item.call_id or item.id or self._next_call("shell")
        action = item.action
        workdir = action.get("working_directory")
        self._call(
            item,
            call_id,
            "local_shell",
            action,
            at,
            _command(action.get("command")),
            workdir if isinstance(workdir, str) else None,
            None,
            None,
        )

    def on_searched_tools(self, item: SearchedTools, at: str | None, summary: bool) -> None:
        given = _object_or_raw(item.arguments)
        self._call(
            item, item.call_id or item.id or self._next_call("tools"), "tool_search", given, at, None, None, None, None
        )

    def on_searched_web(self, item: SearchedWeb, at: str | None, summary: bool) -> None:
        """A search of the provider: the call, and that it came to an end; what was found is not recorded."""
        native = item.id
        call_id = native or self._next_call("web")
        self._call(item, call_id, "web_search", item.action or {}, at, None, None, None, None)
        self.state.open.pop(call_id, None)
        self._add(
            ToolResult(
                call_id=call_id,
                linkage="exact",
                status={"completed": "completed", "failed": "failed"}.get(item.status or "", "unknown"),
                at=at,
                turn_id=_passed_turn(item) or self.state.turn,
                native_id=native,
            )
        )

    def _next_call(self, what: str) -> str:
        self.state.searches += 1
        return f"{self._copy or self.state.thread}/{what}/{self.state.searches}"

    def _call(
        self, item: Item, call_id: str, name: str, given: Any, at: str | None, command: str | None, workdir: str | None,
        patch: str | None, namespace: str | None,
    ) -> str:  # fmt: skip
        state = self.state
        turn = (item.passed.turn_id if item.passed is not None else None) or state.turn
        inference = self._respond(item.id, at, turn)
        kind = KINDS.get(name)
        if kind is None:
            kind = "mcp" if name.startswith("mcp__") or (namespace or "").startswith("mcp__") else "other"
        record = self._add(
            ToolCall(
                call_id=call_id,
                call_id_source="derived" if call_id != item.id and "/" in call_id else None,
                inference_id=inference,
                name=name,
                kind=kind,
                input=given,
                at=at,
                turn_id=turn,
                native_id=item.id,
                meta={"dev.asrd.namespace": namespace} if namespace else None,
            )
        )
        opened = state.open
        opened[call_id] = Open(name, record, turn, command, workdir or state.config.cwd, patch)
        if len(opened) > KEEP_CALLS:
            opened.pop(next(iter(opened)))
        return record

    # -------------------------------------------------------------- results

    def on_returned(self, item: Returned | CustomReturned, at: str | None, summary: bool) -> None:
        state = self.state
        state.passed = True
        call_id = item.call_id
        if isinstance(item, Returned) and item.name and not call_id:
            self.on_context_returned(item, at)
            return
        call = state.open.pop(call_id, None)
        turn = (item.passed.turn_id if item.passed is not None else None) or (call.turn if call else None) or state.turn
        name = call.name if call else ""
        content: list[Block] | None
        success: bool | None = None
        output = item.output
        if output is None or isinstance(output, str):
            text, content = output or "", None
        elif isinstance(output, list):
            content = [_block(p) for p in output]
            text = "\n".join(p.text for p in output if p.text)
        else:
            inner = output.get("content")
            text = inner if isinstance(inner, str) else msgspec.json.encode(output).decode()
            content = None
            success = output.get("success") if isinstance(output.get("success"), bool) else None
        read = _read_output(text, name)
        if call is not None and call.result is not None:
            if (len(read.body), crc32(read.body.encode("utf-8", "surrogatepass"))) == call.text:
                self.out.skip("result-in-command-execution")
                self._ended(call_id, Ended(call.result, call.status or "unknown"))
                return
            read.exit_code = call.exit_code if call.exit_code is not None else read.exit_code
            read.status = call.status if read.status not in ("denied", "cancelled") else read.status
            read.duration_ms = call.duration_ms if call.duration_ms is not None else read.duration_ms
        if read.status is None:
            if read.exit_code is not None:
                read.status = "completed" if read.exit_code == 0 else "failed"
            elif success is not None or (call is not None and call.failed is not None):
                read.status = "failed" if success is False or (call is not None and call.failed) else "completed"
            else:
                read.status = "completed"
        command = call.command if call else None
        cwd = call.cwd if call else None
        runs = read.exit_code is not None or read.duration_ms is not None or KINDS.get(name) == "execute"
        if content is None:
            content = [Text(text=read.stated if read.stated is not None else text)]
        duration = call.duration_ms if call is not None and read.duration_ms is None else read.duration_ms
        meta: dict[str, Any] | None = {"dev.asrd.running": read.running} if read.running else None
        record = self._add(
            ToolResult(
                call_id=call_id,
                linkage="exact" if call is not None else "none",
                status=read.status,
                content=content,
                exec=Exec(
                    command=command,
                    cwd=self._place(cwd) if cwd and command is not None else None,
                    exit_code=read.exit_code,
                    duration_ms=duration,
                    timed_out=read.timed_out,
                )
                if runs
                else None,
                at=at,
                turn_id=turn,
                native_id=item.id,
                supersedes=call.result if call is not None else None,
                meta=meta,
            )
        )
        if call is None:
            return
        self._ended(call_id, Ended(record, read.status))
        if read.status == "denied" and "rejected by user" in text:
            self._add(Approval(call_id=call_id, phase="decided", decision="deny", by="human", at=at, turn_id=turn))
        elif read.status == "denied" and (policy := next((p for w, p in _REFUSED.items() if text.startswith(w)), None)):
            self._add(
                Approval(
                    call_id=call_id, phase="decided", decision="deny", by="policy", policy=policy, at=at, turn_id=turn
                )
            )
        if call.plan is not None and read.status == "completed":
            self._add(Plan(items=call.plan, call_id=call_id, at=at, turn_id=turn))
        if call.patch is not None and not call.changed:
            self._patched(call_id, call, read.status == "completed", at, turn)
        elif call.result is None and command is not None:
            self._ran(call_id, command, cwd, read.exit_code, read.body, at, turn)
        if name == "spawn_agent":
            child = _child_in(text)
            if child is not None:
                evidence = Evidence(
                    kind="native-id-in-output", field="function_call_output.output.agent_id", value=child
                )
                self._link("spawned", child, evidence, at, call_id)

    def on_context_returned(self, item: Returned, at: str | None) -> None:
        """Context that Codex gives the model as the output of a tool which nothing called (0.171: `goal_objective`)."""
        output = item.output
        if isinstance(output, list):
            content: list[Block] = [_block(p) for p in output]
        else:
            content = [Text(text=output if isinstance(output, str) else msgspec.json.encode(output).decode())]
        self._add(
            Message(
                role="user",
                author="harness",
                origin="injected",
                audience="model",
                content=content,
                message_id=item.id,
                at=at,
                turn_id=_passed_turn(item) or self.state.turn,
                native_id=item.id,
                meta={"dev.asrd.name": item.name}
                | ({"dev.asrd.namespace": item.namespace} if item.namespace is not None else {}),
            )
        )

    def _ended(self, call_id: str, one: Ended) -> None:
        ended = self.state.ended
        ended[call_id] = one
        if len(ended) > KEEP_CALLS:
            ended.pop(next(iter(ended)))

    def on_found_tools(self, item: FoundTools, at: str | None, summary: bool) -> None:
        state = self.state
        state.passed = True
        call_id = item.call_id or item.id or ""
        call = state.open.pop(call_id, None)
        self._add(
            ToolResult(
                call_id=call_id,
                linkage="exact" if call is not None else "none",
                status="completed" if item.status in (None, "completed") else "failed",
                content=[Other(meta={"dev.asrd.tools": item.tools})] if item.tools is not None else None,
                at=at,
                turn_id=_passed_turn(item) or state.turn,
                native_id=item.id,
            )
        )

    def on_exec_item(self, item: ExecItem, at: str | None, turn: str | None) -> None:
        self._executed(item.id, item, item.aggregated_output or "", at, turn)

    def on_exec_ended(self, event: ExecEnded, at: str | None) -> None:
        text = event.aggregated_output
        if not text:
            text = (event.stdout or "") + (event.stderr or "")
        self._executed(event.call_id, event, text, at, event.turn_id)

    def _executed(self, call_id: str, item: ExecItem | ExecEnded, text: str, at: str | None, turn: str | None) -> None:
        """A command came to an end: its result, before (or long after) the output that the model got."""
        state = self.state
        command = _command(item.command)
        cwd = _path(item.cwd)
        turn = turn or state.turn
        call = state.open.get(call_id)
        before = state.ended.get(call_id)
        status = {"completed": "completed", "failed": "failed", "declined": "denied"}.get(item.status or "", "unknown")
        if status == "unknown" and item.exit_code is not None:
            status = "completed" if item.exit_code == 0 else "failed"
        if call is None and before is None:
            given = {"command": item.command, "cwd": cwd} if cwd else {"command": item.command}
            name = "user_shell" if (item.source or "").startswith("user") else "exec_command"
            self._within(call_id, name, "execute", given, at, turn)
        if before is not None and before.status in ("denied", "cancelled"):
            status = before.status
        duration = item.duration.ms() if item.duration is not None else None
        record = self._add(
            ToolResult(
                call_id=call_id,
                linkage="exact",
                status=status,
                content=[Text(text=text)],
                exec=Exec(
                    command=command,
                    cwd=self._place(cwd) if cwd else None,
                    exit_code=item.exit_code,
                    duration_ms=duration,
                ),
                at=at,
                turn_id=turn,
                native_id=call_id,
                supersedes=before.record if before is not None else None,
            )
        )
        if call is not None:
            call.result, call.status, call.exit_code = record, status, item.exit_code
            call.duration_ms = duration
            call.text = (len(text), crc32(text.encode("utf-8", "surrogatepass")))
            call.command, call.cwd = command or call.command, cwd or call.cwd
        if command is not None and before is None:
            self._ran(call_id, command, cwd or state.config.cwd, item.exit_code, text, at, turn)

    def _within(
        self, call_id: str, name: str, kind: str, given: dict[str, Any], at: str | None, turn: str | None
    ) -> None:
        """A call that no item of the model names: one of a script's. Which script is known by order alone."""
        scripts = [c for c, o in self.state.open.items() if o.name in ("exec", "wait") and o.turn == turn]
        meta: dict[str, Any] | None = None
        if len(scripts) == 1:
            meta = {"dev.asrd.within": {"callId": scripts[0], "linkage": "order"}}
        self._add(
            ToolCall(
                call_id=call_id, name=name, kind=kind, input=given, at=at, turn_id=turn, native_id=call_id, meta=meta
            )
        )

    def _ran(
        self,
        call_id: str,
        command: str,
        cwd: str | None,
        exit_code: int | None,
        text: str,
        at: str | None,
        turn: str | None,
    ) -> None:
        """What a command's words prove: a commit, the head, the content of a file."""
        named = _SHORT.search(text) if "git" in command and "commit" in command else None
        if "git" in command and (exit_code == 0 or (exit_code is not None and named)):
            ids = commits(command, text)
            if exit_code and named:  # what failed came behind the commit that git itself names
                ids = [one for one in ids if one.startswith(named[2])]
            root = self.state.roots[0].id if self.state.roots else None
            if ids:
                self._add(
                    VcsAction(
                        action="commit",
                        commit=ids[0],
                        root=root,
                        evidence="observed",
                        call_id=call_id,
                        at=at,
                        turn_id=turn,
                    )
                )
            elif named:
                full = named[2] if len(named[2]) == 40 else None
                meta = None if full else {"dev.asrd.shortId": named[2]}
                self._add(
                    VcsAction(
                        action="commit", commit=full, branch=named[1], root=root, evidence="observed", call_id=call_id, at=at,
                        turn_id=turn, meta=meta,
                    )
                )  # fmt: skip
            elif command.strip() == "git rev-parse HEAD" and len(text.strip()) == 40:
                self._add(
                    VcsAction(
                        action="state",
                        commit=text.strip(),
                        root=root,
                        evidence="observed",
                        call_id=call_id,
                        at=at,
                        turn_id=turn,
                    )
                )
        files = self.state.files
        if (exit_code == 0 or exit_code is None) and command[:4] in ("cat ", "sed "):
            shown = _READ.fullmatch(command)
            if shown is not None and not _CUT.search(text):
                last = shown["last"]
                if last is None or text.count("\n") < int(last):
                    files.is_(absolute(cwd, shown["path"]), text)
                return
        files.doubt()

    # -------------------------------------------------------------- edits

    def on_change_item(self, item: ChangeItem, at: str | None, turn: str | None) -> None:
        failed = item.status in ("failed", "declined")
        state = self.state
        call = state.open.get(item.id)
        turn = turn or state.turn
        if call is None and item.id not in state.ended:
            self._within(item.id, "apply_patch", "edit", {"files": list(item.changes)}, at, turn)
            text = (item.stdout or "") + (item.stderr or "")
            self._add(
                ToolResult(
                    call_id=item.id,
                    linkage="exact",
                    status=("denied" if item.status == "declined" else "failed") if failed else "completed",
                    content=[Text(text=text)] if text else None,
                    at=at,
                    turn_id=turn,
                    native_id=item.id,
                )
            )
        self._changed(item.id, call, item.changes, not failed, at, turn)

    def on_patch_ended(self, event: PatchEnded, at: str | None) -> None:
        call = self.state.open.get(event.call_id)
        if call is not None:
            call.failed = event.success is False
        self._changed(
            event.call_id, call, event.changes or {}, event.success is not False, at, event.turn_id or self.state.turn
        )

    def _changed(
        self,
        call_id: str,
        call: Open | None,
        changes: dict[str, Change],
        applied: bool,
        at: str | None,
        turn: str | None,
    ) -> None:
        if call is not None:
            call.changed = True
        if not changes:
            self.out.skip("patch-without-changes")
        cwd = self.state.config.cwd
        for path, change in changes.items():
            whole = absolute(cwd, path)
            files = self.state.files
            known = files.get(whole)
            before = known.text if known is not None else None
            after: str | None = None
            diff = change.unified_diff
            kind = {"add": "create", "update": "modify", "delete": "delete"}.get(change.type, change.type)
            if change.type == "add":
                after, before = change.content, None
            elif change.type == "delete":
                before = change.content if change.content is not None else before
            elif before is not None and diff is not None:
                after = patched(before, diff)
                if after is None:
                    before = None
            self._change(
                call_id,
                path,
                kind,
                before,
                after,
                diff,
                applied,
                change.move_path,
                known is not None and known.doubtful,
                at,
                turn,
            )

    def _change(
        self, call_id: str, path: str, kind: str, before: str | None, after: str | None, diff: str | None, applied: bool,
        moved: str | None, doubtful: bool, at: str | None, turn: str | None,
    ) -> None:  # fmt: skip
        files = self.state.files
        cwd = self.state.config.cwd
        whole = absolute(cwd, path)
        derived = before is not None and kind == "modify"
        meta = {"dev.asrd.contents": "as last seen; a command ran since"} if derived and doubtful else None
        self._add(
            FileChange(
                call_id=call_id,
                path=self._place(moved or path),
                from_path=self._place(path) if moved else None,
                change="rename" if moved else kind,
                before=content_of(before) if before is not None and kind != "create" else None,
                after=content_of(after) if after is not None and applied else None,
                diff=diff,
                applied=applied,
                evidence="derived" if derived else "reported",
                at=at,
                turn_id=turn,
                native_id=call_id,
                meta=meta,
            )
        )
        if not applied:
            return
        files.forget(whole)
        if after is not None:
            files.is_(absolute(cwd, moved or path), after)

    def _patched(self, call_id: str, call: Open, applied: bool, at: str | None, turn: str | None) -> None:
        """A patch that no event tells of (0.55, or given to the shell): what its own words say."""
        for one in _patches(call.patch or ""):
            known = self.state.files.get(absolute(call.cwd, one.path))
            before = known.text if known is not None else None
            after: str | None = None
            if one.kind == "create":
                after, before = one.added, None
            elif one.kind == "modify" and before is not None:
                after = _apply(before, one.lines)
                before = before if after is not None else None
            diff = "\n".join(one.lines) + "\n" if one.lines else None
            doubtful = known is not None and known.doubtful
            self._change(call_id, one.path, one.kind, before, after, diff, applied, one.moved, doubtful, at, turn)

    # -------------------------------------------------------------- other agents, other tools

    def on_item_done(self, event: ItemDone, at: str | None) -> None:
        if event.thread_id is not None and event.thread_id != self.state.thread:
            self._copy = event.thread_id
        _DONE[type(event.item)](self, event.item, at, event.turn_id or self.state.turn)

    def on_activity_item(self, item: ActivityItem, at: str | None, turn: str | None) -> None:
        if item.kind != "started":
            self._add(
                Native(
                    native_type="item_completed/SubAgentActivity", data=msgspec.to_builtins(item), at=at, turn_id=turn
                )
            )
            return
        told = {
            "dev.asrd.agentPath": item.agent_path,
            "dev.asrd.model": item.model,
            "dev.asrd.effort": item.reasoning_effort,
        }
        evidence = Evidence(kind="native-field", field="item.agent_thread_id", value=item.agent_thread_id)
        meta = {k: v for k, v in told.items() if v is not None} or None
        self._link("spawned", item.agent_thread_id, evidence, at, item.id, meta)

    def on_activity(self, event: Activity, at: str | None) -> None:
        if event.kind != "started" or not event.agent_thread_id:
            self._add(
                Native(
                    native_type="event_msg/sub_agent_activity",
                    data=msgspec.to_builtins(event),
                    at=at,
                    turn_id=self.state.turn,
                )
            )
            return
        evidence = Evidence(
            kind="native-field", field="sub_agent_activity.agent_thread_id", value=event.agent_thread_id
        )
        self._link("spawned", event.agent_thread_id, evidence, at, event.call_id or event.event_id)

    def on_collab_item(self, item: CollabItem, at: str | None, turn: str | None) -> None:
        if item.tool != "spawn_agent" or not item.receiver_thread_ids:
            self.out.skip("collab-call-in-response-item")
            return
        for child in item.receiver_thread_ids:
            evidence = Evidence(kind="native-field", field="item.receiver_thread_ids", value=child)
            self._link("spawned", child, evidence, at, item.id)

    def on_spawned(self, event: Spawned, at: str | None) -> None:
        child = event.new_thread_id
        if not child:
            self._add(Native(native_type="event_msg/collab_agent_spawn_end", data=msgspec.to_builtins(event), at=at))
            return
        told = {"dev.asrd.agentNickname": event.new_agent_nickname, "dev.asrd.agentRole": event.new_agent_role}
        evidence = Evidence(kind="native-field", field="collab_agent_spawn_end.new_thread_id", value=child)
        self._link(
            "spawned", child, evidence, at, event.call_id, {k: v for k, v in told.items() if v is not None} or None
        )

    def on_mcp_item(self, item: McpItem, at: str | None, turn: str | None) -> None:
        state = self.state
        failed = item.status == "failed" or item.error is not None
        call = state.open.get(item.id)
        if call is not None:
            call.failed = failed
            call.duration_ms = item.duration.ms() if item.duration is not None else None
            self.out.skip("mcp-result-in-output")
            return
        if item.id in state.ended:
            self.out.skip("mcp-result-in-output")
            return
        given = _object_or_raw(item.arguments)
        self._within(item.id, f"mcp__{item.server}__{item.tool}", "mcp", given, at, turn)
        self._add(
            ToolResult(
                call_id=item.id,
                linkage="exact",
                status="failed" if failed else "completed",
                content=[Other(meta={"dev.asrd.result": item.error if item.error is not None else item.result})],
                at=at,
                turn_id=turn,
                native_id=item.id,
            )
        )

    def on_mcp_ended(self, event: McpEnded, at: str | None) -> None:
        call = self.state.open.get(event.call_id)
        if call is None:
            if event.call_id in self.state.ended:
                self.out.skip("mcp-result-in-output")
                return
            self._add(Native(native_type="event_msg/mcp_tool_call_end", data=msgspec.to_builtins(event), at=at))
            return
        ok: Any = fields_of(event.result).get("Ok")
        call.failed = not isinstance(ok, dict) or bool(fields_of(ok).get("isError") or fields_of(ok).get("is_error"))
        call.duration_ms = event.duration.ms() if event.duration is not None else None
        self.out.skip("mcp-result-in-output")

    def on_asked(self, event: AskedExec | AskedPatch, at: str | None) -> None:
        self._add(Approval(call_id=event.call_id, phase="requested", at=at, turn_id=self.state.turn))

    def on_assessed(self, event: Assessed, at: str | None) -> None:
        decision = {"approved": "allow", "denied": "deny", "aborted": "cancelled", "timed_out": "cancelled"}.get(
            event.status or ""
        )
        self._add(
            Approval(
                call_id=event.target_item_id or event.call_id,
                phase="decided" if decision else "requested",
                decision=decision,
                by="agent" if decision else None,
                policy="guardian",
                at=at,
                turn_id=self.state.turn,
                native_id=event.id,
                meta={"dev.asrd.status": event.status},
            )
        )

    def on_agent_told(self, *told: Any) -> None:
        self.out.skip("text-in-response-item")

    def on_reason_told(self, *told: Any) -> None:
        self.out.skip("reasoning-in-response-item")

    def on_web_ended(self, *told: Any) -> None:
        self.out.skip("search-in-response-item")

    def on_image_viewed(self, *told: Any) -> None:
        self.out.skip("image-in-response-item")

    # -------------------------------------------------------------- documents

    def on_document(self, row: Row) -> None:
        """The first program's document: what it holds beyond what was recorded of it."""
        told = _document.decode(row.data)
        state = self.state
        if not state.header:
            self.on_meta(told.session, told.session.timestamp, row.data)
        digests = [crc32(bytes(one)) for one in told.items]
        known = 0
        while known < len(state.items) and known < len(digests) and state.items[known] == digests[known]:
            known += 1
        state.items = digests
        if known == len(digests):
            self.out.skip("document-without-news")
        self._copy = None
        for raw in told.items[known:]:
            try:
                item = _item.decode(raw)
            except msgspec.ValidationError as error:
                data: Any = _value.decode(raw)
                kind = fields_of(data).get("type")
                self._add(Native(native_type=str(kind or "item"), data=data, meta={"dev.asrd.unexpected": str(error)}))
                continue
            _ITEMS[type(item)](self, item, None, False)

    def _place(self, path: str) -> FilePlace:
        found = self._places.get(path)
        if found is None:
            if len(self._places) > 1024:
                self._places.clear()
            found = self._places[path] = within(path, self.state.roots)
        return found


# ---------------------------------------------------------------- what is not recorded

CAPTURES = (
    ("core", "thinking", "partial", "reasoning is encrypted; only its summary is readable"),
    ("usage", "inference.failed", "unavailable", "failed attempts, retries and requests for titles are in no file"),
    ("coding", "approval", "partial", "who approved is not recorded; a refusal shows in the result"),
    ("coding", "file_change.before", "partial", "contents are known where the session shows the whole file"),
)
"""Facets that Codex does not let be seen: profile, facet, state, reason."""

ENDLESS = (0, 96)
"""The newest version seen that does not say when a turn ended (the oldest seen that does is 0.128)."""

TRIGGERS = {
    "exec": "prompt", "user": "prompt", "user_input": "prompt", "tui": "prompt", "app_server": "prompt", "prompt": "prompt",
    "queued": "queued", "automation": "schedule", "schedule": "schedule", "hook": "hook", "resume": "resume",
}  # fmt: skip
"""`turn_trigger` in the words of records; a word that is not here is kept in `_meta` only."""


# ---------------------------------------------------------------- small readings


def _spawn_of(meta: Meta) -> dict[str, Any]:
    return fields_of(fields_of(fields_of(meta.source).get("subagent")).get("thread_spawn"))


def _kind_of_subagent(source: Any) -> Any:
    return fields_of(source).get("subagent")


def _lineage(parent: str, relation: str, where: str) -> Lineage:
    return Lineage(
        root=False,
        parent=LineageParent(agent="codex", session_id=parent),
        relation=relation,
        evidence=Evidence(kind="native-field", field=where, value=parent),
    )


def _uuid_ms(ident: str | None) -> int | None:
    """The time a UUID of version 7 was made, in ms since 1970 (RFC 9562 5.7); None for other ids."""
    if ident is None or len(ident) != 36 or ident[14] != "7":
        return None
    try:
        return int(ident[:8] + ident[9:13], 16)
    except ValueError:
        return None


def _ms(stamp: str | None) -> int | None:
    """RFC 3339 as ms since 1970."""
    if stamp is None:
        return None
    try:
        return int(datetime.fromisoformat(stamp).timestamp() * 1000 + 0.5)
    except (ValueError, OverflowError):
        return None


def _item_kind(payload: Raw) -> Any:
    """What kind of item an `item_completed` is of; None where that cannot be told."""
    try:
        item = _completed_item.decode(payload).item
    except msgspec.ValidationError:
        return None
    return item.type if item is not None and isinstance(item.type, str) else None


def _passed_turn(item: Item) -> str | None:
    return item.passed.turn_id if item.passed is not None else None


def _version(text: str | None) -> tuple[int, int] | None:
    found = re.match(r"(\d{1,6})\.(\d{1,6})", text or "")
    return (int(found[1]), int(found[2])) if found else None


def _error(failure: Failure | None) -> Error | None:
    if failure is None:
        return None
    code = failure.codex_error_info
    if code is not None and not isinstance(code, str):
        code = msgspec.json.encode(code).decode()
    return Error(code=code, message=failure.message)


def _usage(told: Tokens) -> Usage:
    """Figures with input that excludes cached tokens.

    Cache writes are inside `input_tokens`: `total_tokens` is input plus output where they are not 0.
    """
    written, fresh = told.cache_write_input_tokens, told.input_tokens
    if fresh is not None:
        fresh -= told.cached_input_tokens or 0
        if written and told.total_tokens == (told.input_tokens or 0) + (told.output_tokens or 0):
            fresh -= written
    return Usage(
        input=fresh if fresh is None or fresh > 0 else 0,
        output=told.output_tokens,
        cache_read=told.cached_input_tokens,
        cache_write=written,
        reasoning=told.reasoning_output_tokens,
        total=told.total_tokens,
    )


def _sum(one: Totals, other: Totals) -> Totals:
    return Totals(
        one.input + other.input, one.cached + other.cached, one.output + other.output, one.reasoning + other.reasoning
    )


def _origin_of(kinds: list[str] | None, text: str) -> tuple[str, bool]:
    """What a user's message is, and whether the item itself says so."""
    if text.startswith("<user_shell_command>"):
        return "command", True
    if kinds and any(k != "unknown" for k in kinds):
        if any(k.startswith("user.") for k in kinds):
            return "prompt", True
        if any("summary" in k or "compaction" in k for k in kinds):
            return "summary", True
        return ("hook" if any(k.startswith("hook") for k in kinds) else "injected"), True
    head = text.lstrip()
    if head.startswith(INJECTED):
        return "injected", False
    if head.startswith(SUMMARY):
        return "summary", False
    return "prompt", False


def _block(piece: Piece) -> Block:
    if piece.text is not None:
        return Text(text=piece.text)
    if piece.image_url is not None:
        url = piece.image_url
        if url.startswith("data:") and ";base64," in url:
            head, data = url.split(";base64,", 1)
            return Image(media_type=head[5:] or None, data=data)
        return Resource(uri=url)
    if piece.encrypted_content is not None:
        return Other(meta={"dev.asrd.encrypted": piece.encrypted_content})
    return Other(meta={"dev.asrd.type": piece.type})


def _tool_names(tools: Any) -> list[str]:
    names: list[str] = []
    for tool in map(fields_of, items_of(tools)):
        name, inner = tool.get("name"), items_of(tool.get("tools"))
        if inner:
            names += [f"{name}.{one}" for one in _tool_names(inner)]
        elif isinstance(name, str):
            names.append(name)
    return names


def _object_or_raw(text: Any) -> dict[str, Any]:
    if isinstance(text, dict):
        return fields_of(text)
    if isinstance(text, str):
        try:
            return _object.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    return {"raw": text}


def _command(words: Any) -> str | None:
    """A command as one text: what a shell was given, else its words quoted."""
    if isinstance(words, str):
        return words
    parts = [str(word) for word in items_of(words)]
    if not parts:
        return None
    if len(parts) == 3 and parts[1] in ("-lc", "-c", "/c", "-Command"):
        return parts[2]
    return shlex.join(parts)


def _path(told: str | None) -> str | None:
    """A folder that is told as a path or as a `file:` URL."""
    if told is not None and told.startswith("file://"):
        return unquote(urlsplit(told).path)
    return told


def _plan(steps: Any) -> list[PlanItem]:
    items: list[PlanItem] = []
    for step in map(fields_of, items_of(steps)):
        text, status = step.get("step"), step.get("status")
        if isinstance(text, str) and isinstance(status, str):
            items.append(PlanItem(text=text, status=status))
    return items


def _patch_in(args: Arguments) -> str | None:
    told = [args.cmd, args.command, *items_of(args.command)]
    return next((one for one in told if isinstance(one, str) and _PATCH in one), None)


def _child_in(text: str) -> str | None:
    try:
        told = _object.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    child = told.get("agent_id")
    return child if isinstance(child, str) and child else None


class Output:
    """What an output's words say."""

    __slots__ = ("body", "duration_ms", "exit_code", "running", "stated", "status", "timed_out")

    def __init__(self, body: str) -> None:
        self.body = body
        self.stated: str | None = None
        self.exit_code: int | None = None
        self.duration_ms: float | None = None
        self.running: str | None = None
        self.status: str | None = None
        self.timed_out: bool | None = None


def _read_output(text: str, name: str) -> Output:
    """Exit code and time of a command, and its output alone; and whether the call was refused or broken off.

    Forms: text before `Output:` (0.96 and later), `{"output", "metadata": {"exit_code"}}` (0.55, and the tool `shell`),
    and sentences of Codex itself.
    """
    read = Output(text)
    head = text[:13]
    if head.startswith("Chunk ID: ") or head.startswith("Wall time: ") or head.startswith("Exit code: "):
        found = _HEAD.match(text)
        if found is not None:
            code = found[1] or found[3]
            read.body = text[found.end() :]
            read.exit_code = int(code) if code is not None else None
            read.duration_ms = round(float(found[2]) * 1000, 3) if found[2].count(".") < 2 else None
            read.running = found[4]
        elif (broken := _ABORTED.match(text)) is not None:
            read.status = "cancelled"
            read.duration_ms = round(float(broken[1]) * 1000, 3) if broken[1].count(".") < 2 else None
        if read.exit_code is not None and _TIMED_OUT.search(text[:400]):
            read.timed_out = True
        return read
    if head.startswith('{"output":'):
        try:
            told = _json_output.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return read
        read.body = read.stated = told.output
        read.exit_code = told.metadata.exit_code
        seconds = told.metadata.duration_seconds
        read.duration_ms = round(seconds * 1000, 3) if seconds is not None else None
        return read
    if head.startswith("Script "):
        found = _CODE_HEAD.match(text)
        if found is not None:
            read.status = {"completed": "completed", "failed": "failed", "terminated": "cancelled"}.get(found[1])
            if found[2] is not None and found[2].count(".") < 2:
                read.duration_ms = round(float(found[2]) * 1000, 3)
        return read
    start = text if len(text) <= 800 else text[:400] + text[-400:]
    if "rejected by user" in start or "Rejected(" in start or start.startswith(("rejected:", *_REFUSED)):
        read.status = "denied"
    elif start.startswith("aborted"):
        read.status = "cancelled"
    elif name and start.startswith((f"{name} failed: ", f"{name} is unavailable in ", *_TURNED_DOWN.get(name, ()))):
        read.status = "failed"
    elif KINDS.get(name) == "execute" or name == "apply_patch":
        found = _EXIT.search(start)
        if found is not None:
            read.exit_code = int(found[1])
        elif start.startswith(("exec_command failed", "failed to parse", "failed in sandbox", "execution error")):
            read.status = "failed"
        elif start.startswith(("apply_patch verification failed", "patch rejected")):
            read.status = "denied" if start.startswith("patch rejected") else "failed"
        if _TIMED_OUT.search(start):
            read.timed_out, read.status = True, "failed"
    elif start.startswith(("unsupported call", "failed to parse", "unsupported custom tool call", "tool call error")):
        read.status = "failed"
    return read


class Patch(Struct):
    """One file of an `apply_patch` text (the format of Codex's own tool)."""

    path: str
    kind: str
    lines: list[str] = []
    moved: str | None = None

    @property
    def added(self) -> str:
        return "".join(line[1:] + "\n" for line in self.lines if line.startswith("+"))


def _patches(text: str) -> list[Patch]:
    """The files of a patch text, each with its lines as given."""
    start = text.find(_PATCH)
    end = text.find("*** End Patch", start)
    found: list[Patch] = []
    for line in text[start : end if end >= 0 else None].split("\n")[1:]:
        for head, kind in (
            ("*** Add File: ", "create"),
            ("*** Update File: ", "modify"),
            ("*** Delete File: ", "delete"),
        ):
            if line.startswith(head):
                found.append(Patch(line[len(head) :].strip(), kind, []))
                break
        else:
            if line.startswith("*** Move to: ") and found:
                found[-1].moved = line[13:].strip()
            elif found and (line[:1] in ("+", "-", " ", "@") or line == "*** End of File" or line == ""):
                found[-1].lines.append(line)
    for one in found:
        while one.lines and one.lines[-1] == "":
            one.lines.pop()
    return found


def _apply(text: str, lines: list[str]) -> str | None:
    """What an update of `apply_patch` makes of a text; None where it does not fit exactly.

    Lines of context are sought from where the last change ended, `@@ words` first seeks a line that is these words; the
    result ends with a newline (codex-rs/apply-patch).
    """
    old = text.split("\n")
    if old and old[-1] == "":
        old.pop()
    chunks: list[tuple[str | None, list[str], list[str], bool]] = []
    for line in lines:
        if line.startswith("@@"):
            chunks.append((line[3:] or None, [], [], False))
            continue
        if not chunks:
            chunks.append((None, [], [], False))
        anchor, gone, came, _ = chunks[-1]
        if line == "*** End of File":
            chunks[-1] = (anchor, gone, came, True)
        elif line[:1] == "+":
            came.append(line[1:])
        elif line[:1] == "-":
            gone.append(line[1:])
        else:
            gone.append(line[1:])
            came.append(line[1:])
    out: list[str] = []
    at = 0
    for anchor, gone, came, _ in chunks:
        if anchor is not None:
            found = next((i for i in range(at, len(old)) if old[i] == anchor), None)
            if found is None:
                return None
            out += old[at : found + 1]
            at = found + 1
        if not gone:
            out += old[at:]
            at = len(old)
            out += came
            continue
        found = next((i for i in range(at, len(old) - len(gone) + 1) if old[i : i + len(gone)] == gone), None)
        if found is None:
            return None
        out += old[at:found] + came
        at = found + len(gone)
    return "\n".join(out + old[at:]) + "\n"


# ---------------------------------------------------------------- kinds and their places

_R = CodexRecorder
_EVENTS: dict[type, Callable[[CodexRecorder, Any, str | None], None]] = {
    Started: _R.on_started, StartedToo: _R.on_started, Completed: _R.on_completed, CompletedToo: _R.on_completed,
    Aborted: _R.on_aborted, UserTold: _R.on_user_told, AgentTold: _R.on_agent_told, ReasonTold: _R.on_reason_told,
    RawReasonTold: _R.on_reason_told, ReasonBreak: _R.on_reason_told, Counted: _R.on_counted,
    SettingsApplied: _R.on_settings_applied, ItemDone: _R.on_item_done, PatchEnded: _R.on_patch_ended,
    ExecEnded: _R.on_exec_ended, McpEnded: _R.on_mcp_ended, WebEnded: _R.on_web_ended, ImageViewed: _R.on_image_viewed,
    Compacted: _R.on_context_compacted, Named: _R.on_named, Spawned: _R.on_spawned, Activity: _R.on_activity,
    Failed: _R.on_failed, AskedExec: _R.on_asked, AskedPatch: _R.on_asked, Assessed: _R.on_assessed,
}  # fmt: skip
_ITEMS: dict[type, Callable[[CodexRecorder, Any, str | None, bool], None]] = {
    Said: _R.on_said, Reasoned: _R.on_reasoned, Called: _R.on_called, CustomCalled: _R.on_custom_called,
    ShellCalled: _R.on_shell_called, SearchedWeb: _R.on_searched_web, SearchedTools: _R.on_searched_tools,
    FoundTools: _R.on_found_tools, Returned: _R.on_returned, CustomReturned: _R.on_returned,
    AgentSaid: _R.on_agent_said, AddedTools: _R.on_added_tools,
}  # fmt: skip
_DONE: dict[type, Callable[[CodexRecorder, Any, str | None, str | None], None]] = {
    UserItem: _R.on_user_item, AgentItem: _R.on_agent_told, ReasoningItem: _R.on_reason_told, ExecItem: _R.on_exec_item,
    ChangeItem: _R.on_change_item, ActivityItem: _R.on_activity_item, CollabItem: _R.on_collab_item,
    CompactionItem: _R.on_context_compacted, McpItem: _R.on_mcp_item, WebItem: _R.on_web_ended,
}  # fmt: skip

RECORDER = CodexRecorder
