r"""Pi (`@earendil-works/pi-coding-agent`, before that `@mariozechner/pi-coding-agent`): one JSONL file a session.

Where: `~/.pi/agent/sessions/--<cwd with - for />--/<start, : and . as ->_<session id>.jsonl`; the folder `agent` is
moved by PI_CODING_AGENT_DIR, the folder of sessions by PI_CODING_AGENT_SESSION_DIR (then flat). Seen: 0.74.2, 1.0.0,
1.6.0 (format version 3), and published files of version 1 (no version, no entry ids). No file says the program's version.

    {"type":"session","version":3,"id":"01a22ac9-cbd0-…","timestamp":"2026-11-30T04:49:57.715Z","cwd":"/home/dev/app"}
    {"type":"model_change","id":"73fdf04b","parentId":null,"timestamp":"…","provider":"mock","modelId":"mock-1"}
    {"type":"thinking_level_change","id":"2737c45d","parentId":"73fdf04b","timestamp":"…","thinkingLevel":"medium"}
    {"type":"message","id":"3f80e4db",…,"message":{"role":"system","content":"","sections":{"preamble":"You are …"},
      "toolsAdded":[{"name":"read",…}]}}
    {"type":"message","id":"dff7b20e",…,"message":{"role":"user","content":[{"type":"text","text":"…"}],"timestamp":1796014198256}}
    {"type":"message","id":"176de84b",…,"message":{"role":"assistant","content":[{"type":"thinking",…},{"type":"text",…},
      {"type":"toolCall","id":"call_1","name":"read","arguments":{"path":"calc.py"}}],"provider":"mock","model":"mock-1",
      "usage":{"input":5498,"output":115,"cacheRead":5503,"cacheWrite":0,"reasoning":11,"totalTokens":11116,"cost":{…}},
      "stopReason":"toolUse","responseId":"resp-1","durationMs":190,"thinkingLevel":"medium"}}
    {"type":"message","id":"93a63bac",…,"message":{"role":"toolResult","toolCallId":"call_3","toolName":"bash",
      "content":[{"type":"text","text":"…\n\nCommand exited with code 101"}],"isError":true}}
    {"type":"compaction","id":"2c0dd0b4",…,"summary":"…","firstKeptEntryId":"52762b9d","tokensBefore":41524,"usage":{…}}

What is particular
    - Entries make a tree by `parentId`; a file is only appended to, and every branch counts.
    - `input` excludes cached tokens, `output` includes reasoning. Usage stands on assistant messages, and (since 0.81)
      on compactions, branch summaries and tool results; what is nested in `details` or `retainedTail` never counts.
    - A fork's header names its parent's file; the copied entries keep id and time. An entry older than the session it
      stands in was written by another: it is a copy.
    - Exit codes are text: "Command exited with code N" closes a failed `bash`; a `bash` that did not fail ended with 0.
    - No turn ids: a turn starts at each prompt, and ends where a response calls no tool.
    - Files of version 1 and 2 are rewritten with new ids when a later Pi opens them: their entries are not new.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, ClassVar, Union, cast

import msgspec
from msgspec import Raw, Struct

from asrd.recorders.base import IMPORTED, Recorder, StreamKey, StreamOut, fields_of, from_ms, sha256, within
from asrd.records import (
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
    Message,
    Native,
    Other,
    Record,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Truncated,
    Turn,
    Usage,
    VcsAction,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, Source

# ---------------------------------------------------------------- native content


NOTHING = Raw()


def there(raw: Raw) -> bool:
    """Whether a field that is passed on as it stands was there, and not null."""
    return bytes(raw) not in (b"", b"null")


class TextBlock(Struct, tag_field="type", tag="text"):
    text: str


class ThinkingBlock(Struct, tag_field="type", tag="thinking"):
    thinking: str = ""
    thinkingSignature: str | None = None
    redacted: bool = False


class CallBlock(Struct, tag_field="type", tag="toolCall"):
    id: str
    name: str
    arguments: Raw = Raw(b"{}")


class ImageBlock(Struct, tag_field="type", tag="image"):
    data: str | None = None
    mimeType: str | None = None


NativeBlock = Union[TextBlock, ThinkingBlock, CallBlock, ImageBlock]
NativeContent = Union[str, list[Raw], None]


class NativeUsage(Struct):
    """Tokens of one response; `cost` in US dollars by Pi's own price list, 0 also where it has no price."""

    input: int | None = None
    output: int | None = None
    cacheRead: int | None = None
    cacheWrite: int | None = None
    cacheWrite1h: int | None = None
    reasoning: int | None = None
    reasoningTokens: int | None = None  # OpenClaw's name for it
    totalTokens: int | None = None
    cost: Raw = NOTHING


class NativeCost(Struct):
    total: Raw = NOTHING


# ---------------------------------------------------------------- native messages


class Tool(Struct):
    name: str


class SystemMessage(Struct, tag_field="role", tag="system"):
    content: NativeContent = None
    sections: Raw = NOTHING
    toolsAdded: list[Raw] | None = None
    toolsRemoved: list[Raw] | None = None
    timestamp: float | None = None


class UserMessage(Struct, tag_field="role", tag="user"):
    content: NativeContent = None
    timestamp: float | None = None
    display: bool | None = None
    provenance: dict[str, Any] | None = None
    idempotencyKey: str | None = None
    openclaw: dict[str, Any] | None = msgspec.field(name="__openclaw", default=None)


class AssistantMessage(Struct, tag_field="role", tag="assistant"):
    content: NativeContent = None
    api: str | None = None
    provider: str | None = None
    model: str | None = None
    usage: Raw = NOTHING
    stopReason: str | None = None
    rawStopReason: str | None = None
    errorMessage: str | None = None
    responseId: str | None = None
    durationMs: float | None = None
    thinkingLevel: str | None = None
    timestamp: float | None = None
    openclaw: dict[str, Any] | None = msgspec.field(name="__openclaw", default=None)


class ResultMessage(Struct, tag_field="role", tag="toolResult"):
    toolCallId: str
    toolName: str | None = None
    content: NativeContent = None
    details: Raw = NOTHING
    isError: bool | None = None
    usage: Raw = NOTHING
    durationMs: float | None = None
    timestamp: float | None = None
    openclaw: dict[str, Any] | None = msgspec.field(name="__openclaw", default=None)


class BashMessage(Struct, tag_field="role", tag="bashExecution"):
    """A command the person ran with `!`."""

    command: str
    output: str = ""
    exitCode: int | None = None
    cancelled: bool = False
    truncated: bool = False
    fullOutputPath: str | None = None
    excludeFromContext: bool | None = None
    timestamp: float | None = None


class CustomMessage(Struct, tag_field="role", tag="custom"):
    """A message an extension put in (`hookMessage` before version 3)."""

    customType: str | None = None
    content: NativeContent = None
    display: bool | None = None
    details: Raw = NOTHING
    timestamp: float | None = None


class HookMessage(CustomMessage, tag_field="role", tag="hookMessage"):
    pass


class BranchSummaryMessage(Struct, tag_field="role", tag="branchSummary"):
    summary: str
    fromId: str | None = None
    timestamp: float | None = None


class CompactionSummaryMessage(Struct, tag_field="role", tag="compactionSummary"):
    summary: str
    tokensBefore: int | None = None
    timestamp: float | None = None


NativeMessage = Union[
    SystemMessage, UserMessage, AssistantMessage, ResultMessage, BashMessage, CustomMessage, HookMessage,
    BranchSummaryMessage, CompactionSummaryMessage,
]  # fmt: skip


# ---------------------------------------------------------------- native entries


class _Entry(Struct, tag_field="type"):
    id: str | None = None
    parentId: str | None = None
    timestamp: str | float | None = None

    @property
    def at(self) -> str | None:
        """The source's own text of the time; OpenClaw and old files give milliseconds in places."""
        return self.timestamp if isinstance(self.timestamp, str) else from_ms(self.timestamp)


class SessionEntry(_Entry, tag="session"):
    """The header, line 1. `provider`, `modelId`, `thinkingLevel` and `branchedFrom` are version 1's."""

    version: int | None = None
    cwd: str | None = None
    parentSession: str | None = None
    branchedFrom: str | None = None
    provider: str | None = None
    modelId: str | None = None
    thinkingLevel: str | None = None


class ModelEntry(_Entry, tag="model_change"):
    provider: str | None = None
    modelId: str | None = None


class ThinkingEntry(_Entry, tag="thinking_level_change"):
    thinkingLevel: str | None = None


class MessageEntry(_Entry, tag="message", kw_only=True):
    message: NativeMessage


class CompactionEntry(_Entry, tag="compaction", kw_only=True):
    summary: str | None = None
    firstKeptEntryId: str | None = None
    firstKeptEntryIndex: int | None = None
    tokensBefore: int | None = None
    tokensAfter: int | None = None
    details: Raw = NOTHING
    usage: Raw = NOTHING
    fromHook: bool | None = None
    systemMessage: Raw = NOTHING
    retainedTail: Raw = NOTHING


class BranchEntry(_Entry, tag="branch_summary", kw_only=True):
    summary: str | None = None
    fromId: str | None = None
    details: Raw = NOTHING
    usage: Raw = NOTHING
    fromHook: bool | None = None


class CustomEntry(_Entry, tag="custom", kw_only=True):
    """State an extension keeps in the session; the model never sees it."""

    customType: str | None = None
    data: Raw = NOTHING


class CustomMessageEntry(_Entry, tag="custom_message", kw_only=True):
    customType: str | None = None
    content: NativeContent = None
    display: bool | None = None
    details: Raw = NOTHING


class LabelEntry(_Entry, tag="label", kw_only=True):
    targetId: str | None = None
    label: str | None = None


class ContextEditEntry(_Entry, tag="context_edit", kw_only=True):
    """From here on another entry stands otherwise in the context, or (`null`) not at all: a failed response tried again."""

    targetId: str | None = None
    replacement: Raw = NOTHING


class InfoEntry(_Entry, tag="session_info", kw_only=True):
    name: str | None = None


Entry = Union[
    SessionEntry, ModelEntry, ThinkingEntry, MessageEntry, CompactionEntry, BranchEntry, CustomEntry,
    CustomMessageEntry, LabelEntry, ContextEditEntry, InfoEntry,
]  # fmt: skip

_entry = msgspec.json.Decoder(Entry)
_block = msgspec.json.Decoder(NativeBlock)
_usage = msgspec.json.Decoder(NativeUsage)
_cost = msgspec.json.Decoder(NativeCost)
_any = msgspec.json.Decoder()


def read_entry(data: bytes) -> Entry:
    """One entry. What is passed on as it stands is looked at too: nothing that is no text gets into a record.

    Raises msgspec.DecodeError or UnicodeDecodeError (no JSON), msgspec.ValidationError (no entry known).
    """
    entry = _entry.decode(data)
    data.decode()
    if b"\\ud" in data or b"\\uD" in data:
        _any.decode(data)  # a lone surrogate
    return entry


# ---------------------------------------------------------------- state


class Call(Struct):
    """A tool call without its result yet."""

    name: str
    path: str | None = None
    command: str | None = None
    cwd: str | None = None
    whole: bool = False
    """A read of a whole file."""
    content: str | None = None
    edits: list[tuple[str, str]] = []
    message: str | None = None
    target: str | None = None
    channel: str | None = None
    """What is sent, to whom, by which channel (OpenClaw)."""


class SessionState(Struct):
    """What is kept of one session between its entries."""

    key: StreamKey | None = None
    cwd: str | None = None
    started: str | None = None
    parent: str | None = None
    """Session id of the parent a header names."""
    version: int = 1
    source: str = ""
    last: str | None = None
    """Id of the last entry."""
    records: dict[str, str] = {}
    """The last record made from an entry, by the entry's id."""
    firsts: dict[str, str] = {}
    """The first record made from an entry, where that is not the last."""
    turn: str | None = None
    turns: int = 0
    ended: str | None = None
    """Record that ended the turn at hand."""
    calls: dict[str, Call] = {}
    files: dict[str, str] = {}
    """Whole contents known for certain, by absolute path."""
    doubtful: bool = False
    """A command ran since: a file may be another now."""
    legacy: dict[str, int] = {}
    """Entries of a version 1 or 2 file, to know them again when it is rewritten."""
    said: list[str] = []
    """Capture states said later than after the header."""
    system: str = ""
    """Digest of the system prompt last recorded: a compaction repeats it."""
    model: str | None = None
    extra: dict[str, Any] = {}
    """For harnesses that write Pi's entries: what they keep."""


KEEP_FILES = 512 * 1024
"""Characters of file contents kept to tell what an edit made of a file."""
MOST_CALLS = 10_000

KINDS = {
    "read": "read", "bash": "execute", "powershell": "execute", "exec": "execute", "edit": "edit", "write": "edit",
    "apply_patch": "edit", "grep": "search", "find": "search", "ls": "search", "web_search": "search",
    "web_fetch": "fetch", "sessions_spawn": "delegate",
}  # fmt: skip

_EXIT = re.compile(r"(?:^|\n)\(?Command exited with code (-?\d+)\)?\s*$")
_SIGNAL = re.compile(r"(?:^|\n)\(?Command (?:was )?(?:killed|terminated) by signal (\w+)\)?\s*$")
_TIMEOUT = re.compile(r"(?:^|\n)Command timed out after [\d.]+ ?s(?:econds)?\s*$")
_CANCELLED = re.compile(r"(?:^|\n)(?:Command aborted|Operation aborted|Skipped due to queued user message\.?)\s*$")
_DENIED = re.compile(r"^Tool execution was blocked")
_COMMIT = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_FULL_ID = re.compile(r"(?m)^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NUMBERED = re.compile(r"^([ +-])\s*(\d+) ?(.*)$", re.S)


# ---------------------------------------------------------------- the conversion of entries


class EntryRecorder(Recorder):
    """Converts Pi's entries. OpenClaw writes entries of this kind too, with some fields of its own."""

    vendor: ClassVar[str]
    """Prefix of `_meta` keys."""
    silence_is_zero: ClassVar[bool] = False
    """Whether a command that did not fail, and says no exit code, ended with 0."""

    def facts(self, stream: StreamOut) -> None:
        """Says what this harness does not record, after the header."""
        raise NotImplementedError

    # records

    def add(self, stream: StreamOut, state: SessionState, entry: _Entry, record: Record) -> str:
        """Adds a record made from an entry, with what all records of an entry share."""
        if record.at is None:
            record.at = entry.at
        record.native_id = entry.id
        if record.turn_id is None:
            record.turn_id = state.turn
        if state.parent is not None and state.started and isinstance(entry.timestamp, str):
            if entry.timestamp < state.started:
                record.copy_of = CopyOf(session_id=state.parent, native_id=entry.id)
        if entry.id is not None and entry.id not in state.records:
            parent = entry.parentId
            if parent is not None and parent != state.last:
                record.parent = state.records.get(parent)
        name = stream.add(record)
        if entry.id is not None:
            before = state.records.get(entry.id)
            if before is not None and entry.id not in state.firsts:
                state.firsts[entry.id] = before
            state.records[entry.id] = name
        return name

    def convert_entry(self, stream: StreamOut, state: SessionState, entry: Entry) -> None:
        """One entry that is not a header."""
        if isinstance(entry, MessageEntry):
            self.message(stream, state, entry, entry.message)
        elif isinstance(entry, CompactionEntry):
            self._compaction(stream, state, entry)
        elif isinstance(entry, ModelEntry):
            state.model = entry.modelId
            meta = {f"{self.vendor}.provider": entry.provider} if entry.provider else None
            self.add(stream, state, entry, Config(model=entry.modelId, meta=meta))
        elif isinstance(entry, ThinkingEntry):
            self.add(stream, state, entry, Config(effort=entry.thinkingLevel))
        elif isinstance(entry, BranchEntry):
            self._branch(stream, state, entry)
        elif isinstance(entry, CustomMessageEntry):
            self._custom(stream, state, entry, entry)
        elif isinstance(entry, InfoEntry):
            self.add(stream, state, entry, Config(title=entry.name))
        elif isinstance(entry, CustomEntry):
            self.custom(stream, state, entry)
        elif isinstance(entry, LabelEntry):
            data = {"targetId": entry.targetId, "label": entry.label}
            self.add(stream, state, entry, Native(native_type="label", data=data))
        elif isinstance(entry, ContextEditEntry):
            data = {"targetId": entry.targetId, "replacement": entry.replacement if there(entry.replacement) else None}
            self.add(stream, state, entry, Native(native_type="context_edit", data=data))
        state.last = entry.id or state.last

    def custom(self, stream: StreamOut, state: SessionState, entry: CustomEntry) -> None:
        """An extension's own state."""
        self.add(
            stream,
            state,
            entry,
            Native(native_type=f"custom/{entry.customType}", data=entry.data if there(entry.data) else None),
        )

    def message(self, stream: StreamOut, state: SessionState, entry: MessageEntry, said: NativeMessage) -> None:
        if isinstance(said, AssistantMessage):
            self.response(stream, state, entry, said)
        elif isinstance(said, ResultMessage):
            self.result(stream, state, entry, said)
        elif isinstance(said, UserMessage):
            self.prompt(stream, state, entry, said)
        elif isinstance(said, SystemMessage):
            self._system(stream, state, entry, said)
        elif isinstance(said, BashMessage):
            self._typed_command(stream, state, entry, said)
        elif isinstance(said, CustomMessage):
            self._custom(stream, state, entry, said)
        else:
            text = Text(text=said.summary)
            self.add(stream, state, entry, Message(role="user", author="agent", origin="summary", content=[text]))

    def _system(self, stream: StreamOut, state: SessionState, entry: _Entry, said: SystemMessage) -> None:
        state.system = _prompt_of(said)
        content = self.blocks(said.content)
        if there(said.sections):
            sections = fields_of(_any.decode(said.sections))
            content += [Text(text=text) for text in sections.values() if isinstance(text, str)]
        if said.toolsAdded or said.toolsRemoved:
            names = [msgspec.json.decode(tool, type=Tool).name for tool in said.toolsAdded or ()]
            meta: dict[str, Any] = {f"{self.vendor}.toolsAdded": said.toolsAdded}
            if said.toolsRemoved:
                meta[f"{self.vendor}.toolsRemoved"] = said.toolsRemoved
            self.add(stream, state, entry, Config(tools=names or None, meta=meta))
        message = Message(role="system", author="harness", origin="injected", audience="model", content=content)
        self.add(stream, state, entry, message)

    # turns

    def start_turn(self, stream: StreamOut, state: SessionState, entry: _Entry, trigger: str) -> None:
        """A turn starts; there is no native id, so the entry that starts it names it."""
        state.turns += 1
        state.turn = entry.id or f"turn-{state.turns}"
        state.ended = None
        self.add(stream, state, entry, Turn(turn_id=state.turn, phase="start", trigger=trigger))

    def end_turn(self, stream: StreamOut, state: SessionState, entry: _Entry, status: str, error: Error | None) -> None:
        if state.turn is None:
            return
        end = Turn(turn_id=state.turn, phase="end", status=status, error=error, supersedes=state.ended)
        state.ended = self.add(stream, state, entry, end)

    def prompt(self, stream: StreamOut, state: SessionState, entry: MessageEntry, said: UserMessage) -> None:
        """A prompt, typed by a person."""
        content = self.blocks(said.content)
        self.start_turn(stream, state, entry, "prompt")
        message = Message(role="user", author="human", origin="prompt", content=content, message_id=entry.id)
        self.add(stream, state, entry, message)

    # responses

    def response(self, stream: StreamOut, state: SessionState, entry: MessageEntry, said: AssistantMessage) -> None:
        content: list[Block] = []
        calls: list[tuple[CallBlock, Any]] = []
        for block in self._read(said.content):
            if isinstance(block, CallBlock):
                calls.append((block, _any.decode(block.arguments)))
            else:
                content.append(_said(block))
        error = Error(message=said.errorMessage) if said.errorMessage else None
        inference = self.inference(said, error)
        if inference is not None:
            self.add(stream, state, entry, inference)
        ident = inference.inference_id if inference else None
        if content:
            author = "agent" if inference else "harness"
            message = Message(
                role="assistant", author=author, content=content, message_id=entry.id, inference_id=ident
            )  # fmt: skip
            self.add(stream, state, entry, message)
        for block, arguments in calls:
            self.called(stream, state, entry, block, arguments, ident)
        if not content and not calls and inference is None:
            self.add(stream, state, entry, Message(role="assistant", author="harness", content=[]))
        if not calls and inference is not None:
            status = {"aborted": "interrupted", "error": "failed"}.get(said.stopReason or "", "completed")
            if said.stopReason is not None:
                self.end_turn(stream, state, entry, status, error)
        elif said.stopReason in ("aborted", "error"):
            status = "interrupted" if said.stopReason == "aborted" else "failed"
            self.end_turn(stream, state, entry, status, error)

    def inference(self, said: AssistantMessage, error: Error | None) -> Inference | None:
        """The request behind a response; None where the harness made the message without a model."""
        meta: dict[str, Any] = {}
        usage, cost = self.tokens(said.usage, meta)
        if usage is None and said.responseId is None and error is None and said.stopReason not in ("aborted", "error"):
            if f"{self.vendor}.usage" not in meta and there(said.usage):
                return None  # seeded history: all figures are 0, no response id (Pi's SDK)
        if said.api:
            meta[f"{self.vendor}.api"] = said.api
        if said.rawStopReason and said.rawStopReason != said.stopReason:
            meta[f"{self.vendor}.rawStopReason"] = said.rawStopReason
        ident, native = said.responseId, said.responseId is not None
        if ident is None:
            ident = derived(said.timestamp, said.provider, said.model, said.api, said.stopReason, said.usage)
        return Inference(
            inference_id=ident,
            id_source=None if native else "derived",
            model=said.model,
            provider=said.provider,
            effort=said.thinkingLevel,
            stop_reason=said.stopReason,
            usage=usage,
            cost=cost,
            duration_ms=_whole(said.durationMs),
            error=error,
            meta=meta or None,
        )

    def tokens(self, raw: Raw, meta: dict[str, Any]) -> tuple[Usage | None, Cost | None]:
        """Usage and cost as reported. All zero = nothing was reported; other shapes are kept in `meta`."""
        if not there(raw):
            return None, None
        try:
            given = _usage.decode(raw)
        except msgspec.ValidationError:
            meta[f"{self.vendor}.usage"] = _any.decode(raw)
            return None, None
        if not any((given.input, given.output, given.cacheRead, given.cacheWrite, given.totalTokens)):
            return None, None
        reasoning = given.reasoning if given.reasoning is not None else given.reasoningTokens
        usage = Usage(
            input=given.input,
            output=given.output,
            cache_read=given.cacheRead,
            cache_write=given.cacheWrite,
            cache_write_1h=given.cacheWrite1h,
            reasoning=reasoning,
            total=given.totalTokens,
        )
        return usage, self._money(given.cost)

    def _money(self, raw: Raw) -> Cost | None:
        if not there(raw):
            return None
        try:
            total = _cost.decode(raw).total
            if not there(total) or float(bytes(total)) == 0:
                return None
        except (msgspec.ValidationError, ValueError):
            return None
        return Cost(amount=bytes(total).decode(), currency="USD")

    def _carried(
        self, stream: StreamOut, state: SessionState, entry: _Entry, raw: Raw, what: str, known: bool
    ) -> str | None:
        """Tokens on an entry that is no response: of one request or more, by a model that is not named."""
        meta: dict[str, Any] = {f"{self.vendor}.carrier": what}
        usage, cost = self.tokens(raw, meta)
        if usage is None and not known:
            return None
        ident = f"{what}:{entry.id or derived(entry.timestamp, raw)}"
        inference = Inference(inference_id=ident, id_source="derived", usage=usage, cost=cost, meta=meta)
        self.add(stream, state, entry, inference)
        return ident

    # calls

    def called(
        self, stream: StreamOut, state: SessionState, entry: _Entry, block: CallBlock, arguments: Any, ident: str | None
    ) -> None:
        asked, given_it = self.asked(block.name, arguments)
        call = _planned(asked, given_it)
        state.calls[block.id] = call
        if len(state.calls) > MOST_CALLS:
            del state.calls[next(iter(state.calls))]
        given: Any = block.arguments if isinstance(arguments, dict) else {"raw": arguments}
        kind = KINDS.get(asked) or ("mcp" if self.of_mcp(asked) else "other")
        self.add(
            stream,
            state,
            entry,
            ToolCall(call_id=block.id, name=block.name, input=given, kind=kind, inference_id=ident),
        )

    def asked(self, name: str, arguments: Any) -> tuple[str, Any]:
        """The tool that a call is for, and what it is given: the call's own, where no other tool is called through it."""
        return name, arguments

    def of_mcp(self, tool: str) -> bool:
        """Whether a tool's name is that of an MCP server's."""
        return tool.startswith("mcp_")

    def came_to(
        self, call: Call | None, said: ResultMessage, details: dict[str, Any], text: str
    ) -> tuple[str, dict[str, Any], str]:
        """The tool whose result this is, its details and its text: the message's own, where `asked` gives a call's own."""
        return said.toolName or (call.name if call else ""), details, text

    def result(self, stream: StreamOut, state: SessionState, entry: MessageEntry, said: ResultMessage) -> str:
        """What a call came to, and what it did to files and commits; gives the id of its record."""
        content = self.blocks(said.content)
        details: Any = _any.decode(said.details) if there(said.details) else None
        call = state.calls.pop(said.toolCallId, None)
        words = "\n".join(b.text for b in content if isinstance(b, Text))
        name, fields, text = self.came_to(call, said, fields_of(details), words)
        ran = self.ran(state, name, call, said, fields, text)
        status = "failed" if said.isError else "completed" if said.isError is False else "unknown"
        if said.isError and _CANCELLED.search(text):
            status = "cancelled"
        elif said.isError and _DENIED.search(text):
            status = "denied"
        elif fields.get("status") in ("failed", "error", "forbidden"):
            status = "failed"
        elif fields.get("status") in ("denied", "approval-unavailable"):
            status = "denied"
        elif fields.get("status") == "approval-pending":
            status = "unknown"
        change = None
        if call is not None and not said.isError:
            change = self._change(state, call, fields, text, said.toolCallId)
        if ran is not None or KINDS.get(name) in (None, "delegate"):
            state.doubtful = True
        ident = self.add(
            stream,
            state,
            entry,
            ToolResult(
                call_id=said.toolCallId,
                linkage="exact" if call else "none",
                status=status,
                content=content,
                exec=ran,
                truncated=_truncated(fields),
                meta=self._details(details, change, said, ran, words),
            ),
        )
        if change is not None:
            self.add(stream, state, entry, change)
        if ran is not None and not ran.exit_code and ran.command and _COMMIT.search(ran.command):
            for full in dict.fromkeys(_FULL_ID.findall(text)):
                root = "r1" if state.cwd else None
                self.add(
                    stream,
                    state,
                    entry,
                    VcsAction(action="commit", root=root, commit=full, evidence="observed", call_id=said.toolCallId),
                )
        self._carried(stream, state, entry, said.usage, "tool-result", False)
        self.linked(stream, state, entry, said, fields)
        if there(said.details) and b'"usage"' in bytes(said.details) and "nested" not in state.said:
            state.said.append("nested")
            self.add(
                stream,
                state,
                entry,
                Capture(
                    profile="usage",
                    facet="inference.nested",
                    state="partial",
                    reason="a tool result holds usage of other runs; what is in no session file does not count here",
                ),
            )
        return ident

    def linked(
        self, stream: StreamOut, state: SessionState, entry: _Entry, said: ResultMessage, details: dict[str, Any]
    ) -> None:
        """A sub-agent that a result names. Pi has none."""

    def _details(
        self, details: Any, change: FileChange | None, said: ResultMessage, ran: Exec | None, text: str
    ) -> dict[str, Any]:
        meta: dict[str, Any] = {}
        if said.durationMs is not None and ran is None:
            meta[f"{self.vendor}.durationMs"] = _whole(said.durationMs)
        if isinstance(details, dict):
            fields = fields_of(cast(Any, details))
            told = {"diff", "patch", "firstChangedLine"} if change is not None and change.diff else set[str]()
            if ran is not None:
                told |= {"exitCode", "durationMs", "cwd", "aggregated"}
            rest = {k: v for k, v in fields.items() if k not in told and not (isinstance(v, str) and v == text)}
            if rest and not _repeats(text, fields):
                meta[f"{self.vendor}.details"] = rest
        elif details is not None:
            meta[f"{self.vendor}.details"] = details
        return meta

    def ran(
        self, state: SessionState, name: str, call: Call | None, said: ResultMessage, details: dict[str, Any], text: str
    ) -> Exec | None:
        """How a command ended. The exit code is a field (OpenClaw), or the last line of a failed `bash`'s text (Pi)."""
        if KINDS.get(name) != "execute" and not isinstance(details.get("exitCode"), int):
            return None
        ran = Exec(command=call.command if call else None)
        code = details.get("exitCode")
        if isinstance(code, int) and not isinstance(code, bool):
            ran.exit_code = code
        elif "exitCode" not in details and details.get("status") != "running":
            found = _EXIT.search(text)
            if found and said.isError is not None:
                ran.exit_code = int(found.group(1))
            elif said.isError is False and self.silence_is_zero:
                ran.exit_code = 0
        signal = details.get("exitSignal")
        if isinstance(signal, str | int) and not isinstance(signal, bool):
            ran.signal = str(signal)
        elif found := _SIGNAL.search(text):
            ran.signal = found.group(1)
        if details.get("noOutputTimedOut") is True or details.get("timedOut") is True or _TIMEOUT.search(text):
            ran.timed_out = True
        took = details.get("durationMs", said.durationMs)
        if isinstance(took, int | float) and not isinstance(took, bool):
            ran.duration_ms = _whole(took)
        cwd = details.get("cwd")
        where = cwd if isinstance(cwd, str) else (call.cwd if call else None) or state.cwd
        if where:
            ran.cwd = within(where, _roots(state))
        return ran

    # files

    def _change(
        self, state: SessionState, call: Call, details: dict[str, Any], text: str, ident: str
    ) -> FileChange | None:
        """What a result says of a file: whole contents are kept, an edit's are worked out where that is certain."""
        if call.path is None:
            return None
        path = posixpath.normpath(posixpath.join(state.cwd or "/", call.path))
        if call.name == "read":
            if call.whole and "truncation" not in details and "\ufffd" not in text and "image" not in text[:40]:
                if state.doubtful:
                    state.files.clear()
                    state.doubtful = False
                _keep(state, path, text)
            return None
        known = state.files.get(path)
        if call.name == "write" and call.content is not None:
            before = known if not state.doubtful else None
            created, patch = details.get("created"), details.get("patch")
            change = FileChange(
                path=within(call.path, _roots(state)),
                change="create" if created is True else "modify",
                call_id=ident,
                before=_content(before) if created is not True else None,
                after=_content(call.content),
                diff=patch if isinstance(patch, str) else None,
                applied=True,
                evidence="reported",
            )
            if before is None and not isinstance(created, bool):
                change.meta = {"dev.asrd.change": "created or overwritten: the source does not say which"}
            self._now(state, path, call.content)
            return change
        if call.name != "edit" or not call.edits:
            return None
        patch = details.get("patch")
        patch = patch if isinstance(patch, str) else None
        shown = details.get("diff")
        before, after = self._contents(state, call, known, patch, shown if isinstance(shown, str) else None)
        self._now(state, path, after)
        return FileChange(
            path=within(call.path, _roots(state)),
            change="modify",
            call_id=ident,
            before=_content(before),
            after=_content(after),
            diff=patch,
            applied=True,
            evidence="reported",
        )

    def _now(self, state: SessionState, path: str, content: str | None) -> None:
        if state.doubtful:
            state.files.clear()
            state.doubtful = False
        state.files.pop(path, None)
        if content is not None:
            _keep(state, path, content)

    def _contents(
        self, state: SessionState, call: Call, known: str | None, patch: str | None, shown: str | None
    ) -> tuple[str | None, str | None]:
        """Before and after of an edit, or None where they are not certain."""
        if patch is not None and (whole := whole_by_patch(patch)):
            return whole
        if known is None:
            return None, None
        after = applied(known, call.edits)
        if after is None:
            return None, None
        if not state.doubtful:
            return known, after
        lines = whole_by_numbers(shown) if shown is not None else None
        if lines == (_lines(known), _lines(after)):
            return known, after
        return None, None

    # the rest

    def _compaction(self, stream: StreamOut, state: SessionState, entry: CompactionEntry) -> None:
        made_by_model = entry.fromHook is not True
        self._carried(stream, state, entry, entry.usage, "compaction", made_by_model)
        meta: dict[str, Any] = {}
        if there(entry.details):
            meta[f"{self.vendor}.details"] = _any.decode(entry.details)
        if entry.fromHook:
            meta[f"{self.vendor}.fromHook"] = True
        first = entry.firstKeptEntryId or ""
        kept = state.firsts.get(first) or state.records.get(first) or entry.firstKeptEntryId
        if entry.firstKeptEntryIndex is not None:
            meta[f"{self.vendor}.firstKeptEntryIndex"] = entry.firstKeptEntryIndex
        if there(entry.systemMessage):
            meta[f"{self.vendor}.systemMessage"] = {
                "sha256": sha256(bytes(entry.systemMessage)),
                "bytes": len(bytes(entry.systemMessage)),
            }
        self.add(
            stream,
            state,
            entry,
            Compaction(
                tokens_before=entry.tokensBefore,
                tokens_after=entry.tokensAfter,
                summary=entry.summary,
                kept_from=kept,
                meta=meta or None,
            ),
        )
        if there(entry.systemMessage):
            said = msgspec.json.decode(entry.systemMessage, type=NativeMessage)
            if isinstance(said, SystemMessage) and _prompt_of(said) != state.system:
                self._system(stream, state, entry, said)

    def _branch(self, stream: StreamOut, state: SessionState, entry: BranchEntry) -> None:
        self._carried(stream, state, entry, entry.usage, "branch-summary", False)
        meta: dict[str, Any] = {f"{self.vendor}.fromId": entry.fromId} if entry.fromId else {}
        if there(entry.details):
            meta[f"{self.vendor}.details"] = _any.decode(entry.details)
        self.add(
            stream,
            state,
            entry,
            Message(
                role="user",
                author="agent",
                origin="summary",
                audience="model",
                content=[Text(text=entry.summary or "")],
                meta=meta or None,
            ),
        )

    def _custom(
        self, stream: StreamOut, state: SessionState, entry: _Entry, said: CustomMessage | CustomMessageEntry
    ) -> None:
        meta: dict[str, Any] = {f"{self.vendor}.customType": said.customType}
        if there(said.details):
            meta[f"{self.vendor}.details"] = _any.decode(said.details)
        self.add(
            stream,
            state,
            entry,
            Message(
                role="user",
                author="harness",
                origin="injected",
                audience="both" if said.display else "model",
                content=self.blocks(said.content),
                meta=meta,
            ),
        )

    def _typed_command(self, stream: StreamOut, state: SessionState, entry: MessageEntry, said: BashMessage) -> None:
        """`!command`: the person's own; it asks nothing of the model and starts no turn."""
        ident = f"command:{entry.id or derived(entry.timestamp, said.command)}"
        seen = "user" if said.excludeFromContext else "both"
        words = Text(text=f"!{said.command}")
        message = Message(role="user", author="human", origin="command", audience=seen, content=[words])
        self.add(stream, state, entry, message)
        meta = {f"{self.vendor}.fullOutputPath": said.fullOutputPath} if said.fullOutputPath else None
        self.add(
            stream,
            state,
            entry,
            ToolResult(
                call_id=ident,
                linkage="none",
                status="cancelled" if said.cancelled else "failed" if said.exitCode else "completed",
                content=[Text(text=said.output)],
                exec=Exec(
                    command=said.command,
                    exit_code=said.exitCode,
                    cwd=within(state.cwd, _roots(state)) if state.cwd else None,
                ),
                truncated=Truncated() if said.truncated else None,
                meta=meta,
            ),
        )
        state.doubtful = True

    # content

    def _read(self, content: NativeContent) -> list[NativeBlock | Other]:
        if content is None:
            return []
        if isinstance(content, str):
            return [TextBlock(content)] if content else []
        found: list[NativeBlock | Other] = []
        for raw in content:
            try:
                found.append(_block.decode(raw))
            except msgspec.ValidationError:
                found.append(Other(meta={f"{self.vendor}.block": _any.decode(raw)}))
        return found

    def blocks(self, content: NativeContent) -> list[Block]:
        """Content of a message that calls no tools."""
        return [_said(block) for block in self._read(content)]


def _said(block: NativeBlock | Other) -> Block:
    if isinstance(block, TextBlock):
        return Text(text=block.text)
    if isinstance(block, ThinkingBlock):
        if block.thinking:
            return Thinking(text=block.thinking, redacted=True if block.redacted else None)
        return Thinking(redacted=True)
    if isinstance(block, ImageBlock):
        return Image(media_type=block.mimeType, data=block.data)
    if isinstance(block, CallBlock):
        return Other(meta={"dev.asrd.block": {"type": "toolCall", "id": block.id, "name": block.name}})
    return block


def _repeats(text: str, fields: dict[str, Any]) -> bool:
    """Whether a result's text is its details written out."""
    if not text.startswith("{"):
        return False
    try:
        return _any.decode(text) == fields
    except msgspec.DecodeError:
        return False


def derived(*parts: Any) -> str:
    """An id made from what cannot change of a record that has none: 16 hex digits behind `derived:`."""
    words = [bytes(p).decode("utf-8", "replace") if isinstance(p, Raw) else str(p) for p in parts]
    return "derived:" + sha256("\x1f".join(words))[:16]


def _prompt_of(said: SystemMessage) -> str:
    tools = b"".join(bytes(tool) for tool in said.toolsAdded or ())
    return sha256(msgspec.json.encode(said.content) + bytes(said.sections) + tools)[:16]


def _whole(number: float | None) -> int | float | None:
    return int(number) if number is not None and number == int(number) else number


def _roots(state: SessionState) -> list[WorkspaceRoot] | None:
    return [WorkspaceRoot(id="r1", path=state.cwd)] if state.cwd else None


def _content(text: str | None) -> Content | None:
    if text is None:
        return None
    data = text.encode("utf-8", "surrogatepass")
    return Content(sha256=sha256(data), bytes=len(data))


def _keep(state: SessionState, path: str, content: str) -> None:
    state.files.pop(path, None)
    state.files[path] = content
    total = sum(map(len, state.files.values()))
    while total > KEEP_FILES and state.files:
        total -= len(state.files.pop(next(iter(state.files))))


def _truncated(details: dict[str, Any]) -> Truncated | None:
    """`details.truncation` of Pi's tools: `totalBytes` there were, `outputBytes` stand in the result."""
    fields = fields_of(details.get("truncation"))
    if fields.get("truncated") is not True:
        return None
    total, left = fields.get("totalBytes"), fields.get("outputBytes")
    return Truncated(bytes=total - left if isinstance(total, int) and isinstance(left, int) else None)


def _planned(name: str, arguments: Any) -> Call:
    """What of a call is needed when its result comes."""
    call = Call(name=name)
    given = fields_of(arguments)
    path = given.get("path", given.get("file_path"))
    call.path = path if isinstance(path, str) else None
    command = given.get("command")
    call.command = command if isinstance(command, str) else None
    workdir = given.get("workdir")
    call.cwd = workdir if isinstance(workdir, str) else None
    call.whole = given.get("offset") in (None, 0, 1) and given.get("limit") is None
    content = given.get("content")
    call.content = content if isinstance(content, str) and len(content) <= KEEP_FILES else None
    edits = given.get("edits")
    for one in cast(list[Any], edits) if isinstance(edits, list) else [given]:
        fields = fields_of(one)
        old, new = fields.get("oldText"), fields.get("newText")
        if isinstance(old, str) and isinstance(new, str):
            call.edits = [*call.edits, (old, new)]
    return call


def applied(content: str, edits: list[tuple[str, str]]) -> str | None:
    """Content with each old text (which must stand in it exactly once, none in another) replaced; None where not so."""
    if "\r" in content:
        return None  # Pi's edit turns line ends round and back
    places: list[tuple[int, int, str]] = []
    for old, new in edits:
        if not old or content.count(old) != 1 or "\r" in old + new:
            return None
        at = content.index(old)
        places.append((at, at + len(old), new))
    places.sort()
    made, end = "", 0
    for start, stop, new in places:
        if start < end:
            return None
        made += content[end:start] + new
        end = stop
    return made + content[end:]


def whole_by_patch(patch: str) -> tuple[str, str] | None:
    """Before and after of a file whose unified patch shows all of it; None where it may show a part.

    It shows all when its one hunk starts at line 1 and fewer than three unchanged lines end it: a patch has at least
    three lines of context (`diff -u`; Pi asks for four), unless the file ends.
    """
    lines = patch.split("\n")
    hunks = [i for i, line in enumerate(lines) if line.startswith("@@")]
    if len(hunks) != 1:
        return None
    head = _HUNK.match(lines[hunks[0]])
    if head is None or head.group(1) not in ("0", "1") or head.group(3) not in ("0", "1"):
        return None
    left = int(head.group(2) or 1)
    right = int(head.group(4) or 1)
    before: list[str] = []
    after: list[str] = []
    tail = 0
    bare = {" ": False, "-": False, "+": False}
    last = ""
    for line in lines[hunks[0] + 1 :]:
        if line.startswith("\\"):
            bare[last] = True
            continue
        if len(before) == left and len(after) == right:
            break
        mark, text = line[:1], line[1:]
        if mark == " ":
            before.append(text)
            after.append(text)
            tail += 1
        elif mark == "-":
            before.append(text)
            tail = 0
        elif mark == "+":
            after.append(text)
            tail = 0
        else:
            return None
        last = mark
    if len(before) != left or len(after) != right or tail >= 3 or any("\r" in t for t in before + after):
        return None
    cut_before = bare["-"] or bare[" "]
    cut_after = bare["+"] or bare[" "]
    made = [
        "".join(t + "\n" for t in side)[: -1 if cut and side else None]
        for side, cut in ((before, cut_before), (after, cut_after))
    ]
    return made[0], made[1]


def whole_by_numbers(shown: str) -> tuple[list[str], list[str]] | None:
    """Lines before and after by the numbered diff Pi shows (`-2     return a - b`), where it shows a whole file."""
    before: list[str] = []
    after: list[str] = []
    tail = 0
    width = 0
    for line in shown.split("\n"):
        found = _NUMBERED.match(line)
        if found is None:
            return None
        mark, number = found.group(1), int(found.group(2))
        width = width or line.index(found.group(2)) + len(found.group(2)) + 1
        text = line[width:]
        if mark in " -":
            before.append(text)
            if number != len(before):
                return None
        if mark in " +":
            after.append(text)
            if number != len(after) and mark == "+":
                return None
        tail = tail + 1 if mark == " " else 0
    return (before, after) if tail < 3 else None


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines and lines[-1] == "" else lines


# ---------------------------------------------------------------- the recorder


class State(Struct):
    """One session, and what its file is called."""

    session: SessionState = msgspec.field(default_factory=SessionState)


class PiRecorder(EntryRecorder):
    """One file is one session; files of one name in two folders (export and import) are the same session."""

    harness = "pi"
    vendor = "dev.pi"
    silence_is_zero = True
    roots = (
        Root(".pi/agent", env=("PI_CODING_AGENT_DIR",)),
        Root(".pi/agent/sessions", env=("PI_CODING_AGENT_SESSION_DIR",)),
    )
    places = (Place("sessions/*/*.jsonl"), Place("*.jsonl"))
    versions = ("0.74.2", "1.0.0", "1.6.0")
    State = State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """A file's group is its own name: an imported session keeps it."""
        return Located(group=posixpath.basename(path), name=path, order=path)

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether the first line is a Pi header."""
        try:
            entry = _entry.decode(head.split(b"\n", 1)[0])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return False
        known = isinstance(entry, SessionEntry) and entry.cwd is not None and (entry.version or 1) <= 3
        return known and not owned(head)

    def receive(self, source: Source, item: Line | Row) -> None:
        entry = read_entry(item.data)
        state: SessionState = self.state.session
        if isinstance(entry, SessionEntry):
            self._header(source, state, entry)
            return
        if state.source == "":
            state.source = source.name
        if entry.id is not None and source.name != state.source and entry.id in state.records:
            self.out.skip("entry-of-the-same-session-in-another-file")
            return
        if state.version < 3 and self._rewritten(state, entry):
            return
        self.convert_entry(self.main(), state, entry)

    def _rewritten(self, state: SessionState, entry: Entry) -> bool:
        """Whether an entry of an old file stands here again because a later Pi rewrote the file."""
        said = entry.message.timestamp if isinstance(entry, MessageEntry) else None
        name = sha256(f"{type(entry).__name__}\x1f{entry.timestamp}\x1f{said}")[:16]
        if state.extra.get("rewritten"):
            left = state.legacy.get(name, 0)
            if left == 0:
                return False
            state.legacy[name] = left - 1
            self.out.skip("entry-rewritten-by-a-later-version")
            return True
        state.legacy[name] = state.legacy.get(name, 0) + 1
        return False

    def _header(self, source: Source, state: SessionState, entry: SessionEntry) -> None:
        version = entry.version or 1
        if state.key is not None:
            if version > state.version:
                state.extra["rewritten"] = True
            self.out.skip("header-of-the-same-session")
            return
        state.source = source.name
        ident = entry.id or session_of(source.path)
        namespace = "" if _UUID.fullmatch(ident) else (entry.cwd or "")
        state.key = StreamKey(self.harness, ident, namespace)
        state.cwd, state.started, state.version = entry.cwd, entry.at, version
        origin = entry.parentSession or entry.branchedFrom
        lineage = Lineage(root=True)
        if origin:
            field = "parentSession" if entry.parentSession else "branchedFrom"
            state.parent = origin if origin.startswith(IMPORTED) else session_of(origin)
            lineage = Lineage(
                root=False,
                parent=LineageParent(agent=self.harness, session_id=state.parent),
                relation="forked_from",
                evidence=Evidence(kind="native-field", field=field, value=origin),
            )
        stream = self.open(
            state.key,
            started_at=entry.at,
            lineage=lineage,
            cwd=entry.cwd,
            lossy=("thinking.signature", "text.signature"),
            meta={"dev.pi.formatVersion": version},
        )
        self.facts(stream)
        if entry.provider or entry.modelId or entry.thinkingLevel:
            meta = {"dev.pi.provider": entry.provider} if entry.provider else None
            stream.add(Config(model=entry.modelId, effort=entry.thinkingLevel, at=entry.at, meta=meta))

    def facts(self, stream: StreamOut) -> None:
        """Pi's files lack some of what the profiles promise."""
        for profile, facet, state, reason in (
            ("coding", "tool_result.exec.exitCode", "partial", "Pi writes it as text, and only when it is not 0"),
            ("coding", "file_change.before", "partial", "known where a read, a write or a patch shows the whole file"),
            ("coding", "approval", "unavailable", "Pi asks for no permission"),
            ("usage", "usage_total", "unavailable", "Pi declares no total"),
            (
                "lineage",
                "link.spawned",
                "unavailable",
                "Pi has no sub-agents; extensions that have keep them elsewhere",
            ),
        ):
            stream.add(Capture(profile=profile, facet=facet, state=state, reason=reason))

    def main(self) -> StreamOut:
        state: SessionState = self.state.session
        if state.key is None:
            state.key = StreamKey(self.harness, session_of(self.group))
            self.facts(self.open(state.key))
        found = self.out.stream(state.key)
        return found if found is not None else self.open(state.key)


_OPENCLAW = re.compile(rb'"customType"\s*:\s*"(?:model-snapshot"|openclaw)')
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def owned(head: bytes) -> bool:
    """Whether entries that start a file are OpenClaw's: it notes the model beside each change of it, and its own facts."""
    try:
        first = _entry.decode(head.split(b"\n", 1)[0])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return isinstance(first, SessionEntry) and _OPENCLAW.search(head) is not None


def session_of(path: str) -> str:
    """The session id in a file's name: what stands behind the first `_`, else the name without its ending."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".jsonl")
    return name.split("_", 1)[1] if "_" in name else name


RECORDER = PiRecorder
