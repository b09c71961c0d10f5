"""ASR 0.1 records: the project's vocabulary, one struct a record type.

A record is one line of a stream. Its `type` says what it is; every field that is absent is unknown (never zero,
never empty). Names in JSON are camelCase; `_meta` holds vendor data under reverse-DNS keys.

    - `decode(line)` gives the struct of a known type, and raises msgspec.ValidationError for others;
      `read(line)` never refuses a JSON object: unknown types, fields and enum values are kept (`Document`).
    - Every enum is open: its words are those this version writes, and any other string is kept. Words of a vendor
      have a dot in them (reverse DNS).
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any, TypeAlias, Union, cast

import msgspec
import xxhash
from msgspec import Meta, Struct, field

FORMAT_VERSION = "0.1"
MAX_LINE = 64 * 1024 * 1024
"""Bytes a line of a stream may have (spec section 2)."""

SPAN = "dev.asrd.span"
SOURCE = "dev.asrd.source"
BLOCK = "dev.asrd.block"
"""Under `_meta` of `Other`: a content block of a type this version does not know, as it was written."""

# ---------------------------------------------------------------- words: spec section 4

Time: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339 in UTC with as many digits as the source had: 2026-10-26T14:02:11.204Z."""

AtSource: TypeAlias = Annotated[str, Meta(examples=["native", "recorder"])]
Method: TypeAlias = Annotated[str, Meta(examples=["native", "converter", "live-proxy"])]
Authority: TypeAlias = Annotated[str, Meta(examples=["local", "imported"])]
Scope: TypeAlias = Annotated[str, Meta(examples=["primary", "secondary"])]
Profile: TypeAlias = Annotated[str, Meta(examples=["core", "coding", "lineage", "usage", "messaging"])]
ContentLevel: TypeAlias = Annotated[str, Meta(examples=["full", "redacted", "metadata"])]
SourceKind: TypeAlias = Annotated[str, Meta(examples=["file", "table", "connection"])]
TurnPhase: TypeAlias = Annotated[str, Meta(examples=["start", "end"])]
TurnTrigger: TypeAlias = Annotated[
    str, Meta(examples=["prompt", "queued", "schedule", "hook", "agent", "resume", "command"])
]
TurnStatus: TypeAlias = Annotated[str, Meta(examples=["completed", "interrupted", "failed", "refused"])]
Role: TypeAlias = Annotated[str, Meta(examples=["user", "assistant", "system", "developer"])]
Author: TypeAlias = Annotated[str, Meta(examples=["human", "agent", "harness", "tool"])]
Origin: TypeAlias = Annotated[str, Meta(examples=["prompt", "injected", "command", "agent", "summary", "hook"])]
Audience: TypeAlias = Annotated[str, Meta(examples=["model", "user", "both"])]
IdSource: TypeAlias = Annotated[str, Meta(examples=["native", "derived"])]
TotalScope: TypeAlias = Annotated[str, Meta(examples=["turn", "session", "tree"])]
ToolKind: TypeAlias = Annotated[
    str, Meta(examples=["read", "edit", "execute", "search", "fetch", "think", "delegate", "plan", "mcp", "other"])
]
Linkage: TypeAlias = Annotated[str, Meta(examples=["exact", "order", "none"])]
ResultStatus: TypeAlias = Annotated[str, Meta(examples=["completed", "failed", "denied", "cancelled", "unknown"])]
Change: TypeAlias = Annotated[str, Meta(examples=["create", "modify", "delete", "rename"])]
Applied: TypeAlias = Annotated[str, Meta(examples=["unknown"])]
Seen: TypeAlias = Annotated[str, Meta(examples=["reported", "observed", "derived"])]
VcsVerb: TypeAlias = Annotated[str, Meta(examples=["commit", "checkout", "branch", "merge", "push", "state"])]
PlanStatus: TypeAlias = Annotated[str, Meta(examples=["pending", "in_progress", "completed", "cancelled"])]
ApprovalPhase: TypeAlias = Annotated[str, Meta(examples=["requested", "decided"])]
Decision: TypeAlias = Annotated[str, Meta(examples=["allow", "allow_always", "deny", "deny_always", "cancelled"])]
DecidedBy: TypeAlias = Annotated[str, Meta(examples=["human", "policy", "harness", "agent"])]
CompactionTrigger: TypeAlias = Annotated[str, Meta(examples=["auto", "manual"])]
Relation: TypeAlias = Annotated[
    str,
    Meta(examples=["spawned", "spawned_by", "forked_from", "resumed_from", "continued_from", "observes", "copies"]),
]
EvidenceKind: TypeAlias = Annotated[
    str,
    Meta(examples=["native-field", "native-path", "native-id-in-output", "handoff-token", "process", "acp"]),
]
CaptureState: TypeAlias = Annotated[str, Meta(examples=["full", "partial", "off", "unavailable", "unknown"])]
GapReason: TypeAlias = Annotated[
    str, Meta(examples=["torn", "deleted", "truncated", "replaced", "unreadable", "dropped", "oversize"])
]
EndStatus: TypeAlias = Annotated[str, Meta(examples=["completed", "interrupted", "crashed", "unknown"])]


class Part(Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """Base of the objects inside a record."""


class Span(Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False, frozen=True):
    """The source bytes a record was made from: [start, end), newline left out.

    For a row of a table or a document that is rewritten in place, `key` names the row and `rev` its content.
    """

    source: str
    start: int
    end: int
    key: str | None = None
    rev: str | None = None


# ---------------------------------------------------------------- content


class Text(Part, tag_field="type", tag="text", kw_only=True):
    """Words."""

    text: str


class Thinking(Part, tag_field="type", tag="thinking", kw_only=True):
    """What the model thought: plain, summarised, or only known to have been there (`redacted`)."""

    text: str | None = None
    redacted: bool | None = None
    summary: str | None = None


class Image(Part, tag_field="type", tag="image", kw_only=True):
    """A picture: its data (base64), its path, or its digest and size."""

    media_type: str | None = None
    data: str | None = None
    path: str | None = None
    sha256: str | None = None
    bytes: int | None = None


class File(Part, tag_field="type", tag="file", kw_only=True):
    """A file that was attached by path."""

    path: str
    media_type: str | None = None


class Resource(Part, tag_field="type", tag="resource", kw_only=True):
    """Something with a URI, with its text when that was embedded."""

    uri: str
    text: str | None = None


class Other(Part, tag_field="type", tag="other", kw_only=True):
    """Content with no standard place; what it was is under `_meta`."""

    meta: dict[str, Any] = field(name="_meta", default={})


Block: TypeAlias = Union[Text, Thinking, Image, File, Resource, Other]


# ---------------------------------------------------------------- records


class Record(Struct, tag_field="type", rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """What every record may carry. `seq` and `id` are given by the stream it is added to."""

    seq: int = -1
    id: str = ""
    at: Time | None = None
    at_source: AtSource | None = None
    turn_id: str | None = None
    native_id: str | None = None
    parent: str | None = None
    copy_of: CopyOf | None = None
    supersedes: str | None = None


class CopyOf(Part, kw_only=True):
    """The record of another session that this one repeats."""

    session_id: str
    native_id: str | None = None


class Agent(Part, kw_only=True):
    """The harness: its name and version."""

    name: str
    version: str | None = None


class Producer(Part, kw_only=True):
    """What wrote the stream. `lossy`: dotted names of what is known to be lost."""

    name: str
    version: str
    method: Method
    instance: str | None = None
    lossy: list[str] = []


class Vcs(Part, kw_only=True):
    """The state of a working tree at the start."""

    type: str
    head: str | None = None
    branch: str | None = None
    remote: str | None = None


class WorkspaceRoot(Part, kw_only=True):
    """A folder the session works in; paths name it by `id`."""

    id: str
    path: str
    vcs: Vcs | None = None


class Workspace(Part, kw_only=True):
    """The folders of a session."""

    roots: list[WorkspaceRoot]


class LineageParent(Part, kw_only=True):
    """The session this one came from; `call_id` is the tool call that did it."""

    agent: str
    session_id: str
    namespace: str | None = None
    call_id: str | None = None


class Evidence(Part, kw_only=True):
    """What says so: `kind` says of which sort it is, `field` where it stands, `value` what stands there."""

    kind: EvidenceKind
    field: str | None = None
    value: str | None = None


class Lineage(Part, kw_only=True):
    """`{root: true}`, or a parent with its relation and evidence, or `{}` = unknown."""

    root: bool | None = None
    parent: LineageParent | None = None
    relation: Relation | None = None
    evidence: Evidence | None = None


class SourceRef(Part, kw_only=True):
    """A source as a stream names it. `fingerprint`: SHA-256 of its first line, 16 hex digits."""

    id: str
    kind: SourceKind
    name: str
    fingerprint: str | None = None


class Session(Record, tag="session", kw_only=True):
    """[core] The header: line 1 of a stream."""

    format_version: str
    agent: Agent
    session_id: str
    producer: Producer
    lineage: Lineage
    scope: Scope
    profiles: list[Profile]
    content_level: ContentLevel
    namespace: str | None = None
    authority: Authority | None = None
    started_at: Time | None = None
    workspace: Workspace | None = None
    title: str | None = None
    sources: list[SourceRef] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Error(Part, kw_only=True):
    """What a harness said went wrong."""

    code: str | None = None
    message: str | None = None


class Turn(Record, tag="turn", kw_only=True):
    """[core] A turn starts or ends."""

    turn_id: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    phase: TurnPhase
    trigger: TurnTrigger | None = None
    status: TurnStatus | None = None
    error: Error | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Message(Record, tag="message", kw_only=True):
    """[core] Something said, by anyone to anyone."""

    role: Role
    content: list[Block]
    message_id: str | None = None
    author: Author | None = None
    origin: Origin | None = None
    audience: Audience | None = None
    inference_id: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Usage(Part, kw_only=True):
    """Tokens as reported. `input` excludes cached tokens; `output` includes reasoning."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_5m: int | None = field(name="cacheWrite5m", default=None)
    cache_write_1h: int | None = field(name="cacheWrite1h", default=None)
    reasoning: int | None = None
    total: int | None = None


class Cost(Part, kw_only=True):
    """Money as the harness reported it; `amount` is a decimal in text."""

    amount: str
    currency: str
    source: str = "native"  # the only word so far; left out when written


class Inference(Record, tag="inference", kw_only=True):
    """[usage] One model request and its response; exactly one that counts for one response."""

    inference_id: str
    id_source: IdSource | None = None
    model: str | None = None
    provider: str | None = None
    effort: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    cost: Cost | None = None
    duration_ms: int | float | None = None
    error: Error | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class UsageTotal(Record, tag="usage_total", kw_only=True):
    """[usage] A total the harness itself declares; used to reconcile, never added up."""

    scope: TotalScope
    usage: Usage
    cumulative: bool | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Limit(Record, tag="limit", kw_only=True):
    """[usage] A provider's limit as recorded."""

    window: str | None = None
    used_percent: int | float | None = None
    resets_at: Time | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ToolCall(Record, tag="tool_call", kw_only=True):
    """[coding] The model asked for a tool."""

    call_id: str
    name: str
    input: dict[str, Any]
    call_id_source: IdSource | None = None
    inference_id: str | None = None
    kind: ToolKind | None = None
    title: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Place(Part, kw_only=True):
    """A path, below a workspace root when `root` names one."""

    path: str
    root: str | None = None


class Exec(Part, kw_only=True):
    """A command that ran."""

    command: str | None = None
    cwd: Place | None = None
    exit_code: int | None = None
    signal: str | None = None
    duration_ms: int | float | None = None
    stdout: str | None = None
    stderr: str | None = None
    timed_out: bool | None = None


class Truncated(Part, kw_only=True):
    """How many bytes the source itself had left out."""

    bytes: int | None = None


class ToolResult(Record, tag="tool_result", kw_only=True):
    """[coding] What a tool call came to."""

    call_id: str
    linkage: Linkage
    status: ResultStatus
    content: list[Block] | None = None
    exec: Exec | None = None
    truncated: Truncated | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Content(Part, kw_only=True):
    """A file's content by digest."""

    sha256: str | None = None
    bytes: int | None = None


class FileChange(Record, tag="file_change", kw_only=True):
    """[coding] A file was made, changed, deleted or renamed."""

    path: Place
    change: Change
    call_id: str | None = None
    before: Content | None = None
    after: Content | None = None
    diff: str | None = None
    applied: bool | Applied | None = None
    evidence: Seen | None = None
    from_path: Place | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class VcsAction(Record, tag="vcs", kw_only=True):
    """[coding] Something done to, or seen of, version control."""

    action: VcsVerb
    root: str | None = None
    commit: str | None = None
    branch: str | None = None
    evidence: Seen | None = None
    call_id: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class PlanItem(Part, kw_only=True):
    """One step of a plan."""

    text: str
    status: PlanStatus


class Plan(Record, tag="plan", kw_only=True):
    """[coding] The whole plan, each time it changes."""

    items: list[PlanItem]
    call_id: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Approval(Record, tag="approval", kw_only=True):
    """[coding] A permission was asked for or decided."""

    call_id: str | None = None
    phase: ApprovalPhase
    decision: Decision | None = None
    by: DecidedBy | None = None
    policy: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Compaction(Record, tag="compaction", kw_only=True):
    """[core] The harness replaced history by a summary."""

    trigger: CompactionTrigger | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    summary: str | None = None
    message_id: str | None = None
    kept_from: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Config(Record, tag="config", kw_only=True):
    """[core] What changed and is now in force."""

    model: str | None = None
    mode: str | None = None
    effort: str | None = None
    cwd: str | None = None
    tools: list[str] | None = None
    version: str | None = None
    title: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class LinkTarget(Part, kw_only=True):
    """The other session of a link."""

    agent: str
    session_id: str
    namespace: str | None = None


class Link(Record, tag="link", kw_only=True):
    """[lineage] One relation to another session."""

    relation: Relation
    target: LinkTarget
    evidence: Evidence
    call_id: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class MessageSent(Record, tag="message_sent", kw_only=True):
    """[messaging] Something was sent to someone outside the session."""

    channel: str | None = None
    target: str | None = None
    content: list[Block] | None = None
    call_id: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class MemoryWrite(Record, tag="memory_write", kw_only=True):
    """[messaging] Something was written to memory."""

    channel: str | None = None
    target: str | None = None
    content: list[Block] | None = None
    call_id: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Capture(Record, tag="capture", kw_only=True):
    """[core] How much of a profile's facet this harness lets a recorder see."""

    profile: Profile
    state: CaptureState
    facet: str | None = None
    reason: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Gap(Record, tag="gap", kw_only=True):
    """[core] Bytes or events never seen."""

    reason: GapReason
    span: Span | None = None
    from_: str | None = field(name="from", default=None)
    to: str | None = None
    bytes: int | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Loss(Record, tag="loss", kw_only=True):
    """[core] Source bytes seen and not convertible. `preview` <= 200 characters, redacted."""

    reason: str
    span: Span
    sha256: str | None = None
    preview: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Native(Record, tag="native", kw_only=True):
    """[core] A harness's own record with no standard place."""

    native_type: str
    data: Any
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class End(Record, tag="end", kw_only=True):
    """[core] The session ended, by evidence in the source."""

    status: EndStatus
    reason: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


AnyRecord: TypeAlias = Union[
    Session, Turn, Message, Inference, UsageTotal, Limit, ToolCall, ToolResult, FileChange, VcsAction, Plan, Approval,
    Compaction, Config, Link, MessageSent, MemoryWrite, Capture, Gap, Loss, Native, End,
]  # fmt: skip

RECORD_TYPES: tuple[type[Record], ...] = AnyRecord.__args__  # type: ignore[attr-defined]
TYPE_NAMES: dict[type[Record], str] = {t: str(t.__struct_config__.tag) for t in RECORD_TYPES}

_decoder = msgspec.json.Decoder(AnyRecord)
_encoder = msgspec.json.Encoder(decimal_format="number")
_BLOCKS = frozenset(str(t.__struct_config__.tag) for t in (Text, Thinking, Image, File, Resource, Other))


def decode(line: bytes) -> AnyRecord:
    """One line of a stream as its struct. Content blocks of unknown types become `Other` with the block under `BLOCK`.

    Raises:
        msgspec.ValidationError: a type this version does not know, or a field of another type; `read` keeps those.
        msgspec.DecodeError: not JSON, not UTF-8, or nested too deep.
    """
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        found = read(line).record()
        if found is None:
            if isinstance(error, msgspec.ValidationError):
                raise
            raise msgspec.ValidationError(str(error)) from error
        return found


def encode(record: Record) -> bytes:
    """The record as one line, newline left out. Lone surrogates, which UTF-8 has no bytes for, become U+FFFD."""
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError:
        return _encoder.encode(_without_surrogates(record))


def content_of(line: bytes) -> int:
    """Digest of what a record's line says: without its number and id, and without which record it corrects."""
    return xxhash.xxh3_64_intdigest(_NUMBERED.sub(b"", _CORRECTS.sub(b"", line, count=1), count=1))


_NUMBERED = re.compile(rb'"seq":\d+,"id":"[^"]*",?')
_CORRECTS = re.compile(rb'"supersedes":"[^"]*",?')


def encode_lines(records: list[Any]) -> bytes:
    """The records as lines, each with its newline; lone surrogates become U+FFFD."""
    try:
        return _encoder.encode_lines(records)
    except UnicodeEncodeError:
        return b"".join(encode(record) + b"\n" for record in records)


class Document(Struct):
    """A line as it was written: everything in it is kept, known to this version or not."""

    fields: dict[str, Any]

    @property
    def type(self) -> str:
        """The record's type, "" when it has none."""
        return str(self.fields.get("type", ""))

    def record(self) -> AnyRecord | None:
        """The struct, or None where this version knows no such record. Unknown content blocks become `Other`."""
        try:
            return msgspec.convert(self.fields, AnyRecord)
        except msgspec.ValidationError:
            content = self.fields.get("content")
            if not isinstance(content, list):
                return None
        blocks = [_known(block) for block in cast("list[Any]", content)]
        try:
            return msgspec.convert({**self.fields, "content": blocks}, AnyRecord)
        except msgspec.ValidationError:
            return None

    def write(self) -> bytes:
        """The line again: the same fields with the same values, in the same order."""
        try:
            return _encoder.encode(self.fields)
        except UnicodeEncodeError:
            return _spell(self.fields).encode()


def read(line: bytes) -> Document:
    """A line as a Document: integers of any size, floats of any precision and lone surrogates keep their value.

    Of equal keys in one object the last one is kept, as everywhere in JSON. Raises msgspec.MsgspecError when the line
    is not a JSON object.
    """
    try:
        return Document(_object.decode(line))
    except RecursionError as error:
        raise msgspec.DecodeError("nested too deep") from error
    except msgspec.MsgspecError:
        # What msgspec refuses and JSON allows: numbers out of range, escapes of lone surrogates.
        try:
            text = line.decode("utf-8")
            found: Any = json.loads(text, parse_float=_exact, parse_int=_integer, parse_constant=_no_number)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise
        return Document(cast("dict[str, Any]", found))


def _exact(text: str) -> float | Decimal:
    """The float of that text, or its Decimal where a float would be another number."""
    value = float(text)
    exact = Decimal(text)
    return value if isfinite(value) and Decimal(repr(value)) == exact else exact


def _integer(text: str) -> int | Decimal:
    """The integer of that text; a Decimal where Python refuses so many digits (4300)."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _known(block: Any) -> Any:
    kind = cast("dict[str, Any]", block).get("type") if isinstance(block, dict) else None
    if isinstance(kind, str) and kind in _BLOCKS:
        return cast("Any", block)
    return {"type": "other", "_meta": {BLOCK: cast("Any", block)}}


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_without_surrogates(v) for v in cast("list[Any]", value)]
    if isinstance(value, Struct):
        fields = {f: _without_surrogates(getattr(value, f)) for f in value.__struct_fields__}
        return msgspec.structs.replace(value, **fields)
    return value


def _spell(value: Any) -> str:
    """JSON with escapes for what is not ASCII: the only spelling of a lone surrogate."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{_spell(v)}" for k, v in cast("dict[str, Any]", value).items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_spell, cast("list[Any]", value))) + "]"
    return _encoder.encode(value).decode()


_object = msgspec.json.Decoder(dict[str, Any], float_hook=_exact)


def span_of(record: Record) -> Span | None:
    """The source bytes a record was made from, when it says."""
    meta = getattr(record, "meta", None)
    found = meta.get(SPAN) if meta else None
    if found is None or isinstance(found, Span):
        return found
    return msgspec.convert(found, Span)
