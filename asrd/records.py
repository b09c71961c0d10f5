"""ASR 0.1 records: the project's vocabulary, one struct a record type.

A record is one line of a stream. Its `type` says what it is; every field that is absent is unknown (never zero,
never empty). Names in JSON are camelCase; `_meta` holds vendor data under reverse-DNS keys.

    - `decode(line)` gives the struct of a known type, and raises msgspec.ValidationError for others;
      `read(line)` never refuses a JSON object: unknown types, fields and enum values are kept (`Document`).
    - Every enum is open: the words in the comments are those this version writes.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, Union

import msgspec
from msgspec import Struct, field

FORMAT_VERSION = "0.1"
MAX_LINE = 64 * 1024 * 1024
"""Bytes a line of a stream may have (spec section 2)."""

SPAN = "dev.asrd.span"
SOURCE = "dev.asrd.source"


class Part(Struct, rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """Base of the objects inside a record."""


class Span(Part, frozen=True, kw_only=True):
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

    meta: dict[str, Any] = field(name="_meta", default_factory=dict)


Block: TypeAlias = Union[Text, Thinking, Image, File, Resource, Other]


# ---------------------------------------------------------------- records


class Record(Struct, tag_field="type", rename="camel", omit_defaults=True, kw_only=True, gc=False):
    """What every record may carry. `seq` and `id` are given by the stream it is added to."""

    seq: int = -1
    id: str = ""
    at: str | None = None
    at_source: str | None = None  # native | recorder
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
    method: str  # native | converter | live-proxy
    instance: str | None = None
    lossy: list[str] = field(default_factory=list)


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
    """What says so: `kind` native-field | native-path | native-id-in-output | handoff-token | process | acp."""

    kind: str
    field: str | None = None
    value: str | None = None


class Lineage(Part, kw_only=True):
    """`{root: true}`, or a parent with its relation and evidence, or `{}` = unknown."""

    root: bool | None = None
    parent: LineageParent | None = None
    relation: str | None = None
    evidence: Evidence | None = None


class SourceRef(Part, kw_only=True):
    """A source as a stream names it. `fingerprint`: SHA-256 of its first line, 16 hex digits."""

    id: str
    kind: str  # file | table | connection
    name: str
    fingerprint: str | None = None


class Session(Record, tag="session", kw_only=True):
    """[core] The header: line 1 of a stream."""

    format_version: str
    agent: Agent
    session_id: str
    producer: Producer
    lineage: Lineage
    scope: str  # primary | secondary
    profiles: list[str]
    content_level: str  # full | redacted | metadata
    namespace: str | None = None
    authority: str | None = None  # local | imported
    started_at: str | None = None
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

    turn_id: str
    phase: str  # start | end
    trigger: str | None = None  # prompt | queued | schedule | hook | agent | resume | command
    status: str | None = None  # completed | interrupted | failed | refused
    error: Error | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Message(Record, tag="message", kw_only=True):
    """[core] Something said, by anyone to anyone."""

    role: str  # user | assistant | system | developer
    content: list[Block]
    message_id: str | None = None
    author: str | None = None  # human | agent | harness | tool
    origin: str | None = None  # prompt | injected | command | agent | summary | hook
    audience: str | None = None  # model | user | both
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
    source: str = "native"


class Inference(Record, tag="inference", kw_only=True):
    """[usage] One model request and its response; exactly one that counts for one response."""

    inference_id: str
    id_source: str | None = None  # native (default) | derived
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

    scope: str  # turn | session | tree
    usage: Usage
    cumulative: bool | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Limit(Record, tag="limit", kw_only=True):
    """[usage] A provider's limit as recorded."""

    window: str | None = None
    used_percent: int | float | None = None
    resets_at: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class ToolCall(Record, tag="tool_call", kw_only=True):
    """[coding] The model asked for a tool."""

    call_id: str
    name: str
    input: dict[str, Any]
    call_id_source: str | None = None  # native | derived
    inference_id: str | None = None
    kind: str | None = None  # read | edit | execute | search | fetch | think | delegate | plan | mcp | other
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
    linkage: str  # exact | order | none
    status: str  # completed | failed | denied | cancelled | unknown
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
    change: str  # create | modify | delete | rename
    call_id: str | None = None
    before: Content | None = None
    after: Content | None = None
    diff: str | None = None
    applied: bool | str | None = None  # true | false | "unknown"
    evidence: str | None = None  # reported | observed | derived
    from_path: Place | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class VcsAction(Record, tag="vcs", kw_only=True):
    """[coding] Something done to, or seen of, version control."""

    action: str  # commit | checkout | branch | merge | push | state
    root: str | None = None
    commit: str | None = None
    branch: str | None = None
    evidence: str | None = None  # observed | reported | derived
    call_id: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class PlanItem(Part, kw_only=True):
    """One step of a plan."""

    text: str
    status: str  # pending | in_progress | completed | cancelled


class Plan(Record, tag="plan", kw_only=True):
    """[coding] The whole plan, each time it changes."""

    items: list[PlanItem]
    call_id: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Approval(Record, tag="approval", kw_only=True):
    """[coding] A permission was asked for or decided."""

    call_id: str | None = None
    phase: str  # requested | decided
    decision: str | None = None  # allow | allow_always | deny | deny_always | cancelled
    by: str | None = None  # human | policy | harness | agent
    policy: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Compaction(Record, tag="compaction", kw_only=True):
    """[core] The harness replaced history by a summary."""

    trigger: str | None = None  # auto | manual
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

    relation: str  # spawned | spawned_by | forked_from | resumed_from | continued_from | observes | copies
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

    profile: str
    state: str  # full | partial | off | unavailable | unknown
    facet: str | None = None
    reason: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Gap(Record, tag="gap", kw_only=True):
    """[core] Bytes or events never seen."""

    reason: str  # torn | deleted | truncated | replaced | unreadable | dropped | oversize
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

    status: str  # completed | interrupted | crashed | unknown
    reason: str | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


AnyRecord: TypeAlias = Union[
    Session, Turn, Message, Inference, UsageTotal, Limit, ToolCall, ToolResult, FileChange, VcsAction, Plan, Approval,
    Compaction, Config, Link, MessageSent, MemoryWrite, Capture, Gap, Loss, Native, End,
]  # fmt: skip

RECORD_TYPES: tuple[type[Record], ...] = AnyRecord.__args__  # type: ignore[attr-defined]
TYPE_NAMES: dict[type[Record], str] = {t: str(t.__struct_config__.tag) for t in RECORD_TYPES}

Relation = Literal["spawned", "spawned_by", "forked_from", "resumed_from", "continued_from", "observes", "copies"]

_decoder = msgspec.json.Decoder(AnyRecord)
_encoder = msgspec.json.Encoder()
_object = msgspec.json.Decoder(dict[str, Any])


def decode(line: bytes) -> AnyRecord:
    """One line of a stream as its struct.

    Raises:
        msgspec.ValidationError: a type or a value this version does not know; `read` keeps those.
        msgspec.DecodeError: not JSON.
    """
    return _decoder.decode(line)


def encode(record: Record) -> bytes:
    """The record as one line, newline left out."""
    return _encoder.encode(record)


def encode_lines(records: list[Any]) -> bytes:
    """The records as lines, each with its newline."""
    return _encoder.encode_lines(records)


class Document(Struct):
    """A line as it was written: everything in it is kept, known to this version or not."""

    fields: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.fields.get("type", ""))

    def record(self) -> AnyRecord | None:
        """The struct, or None where this version knows no such record."""
        try:
            return msgspec.convert(self.fields, AnyRecord)
        except msgspec.ValidationError:
            return None

    def write(self) -> bytes:
        """The line again: the same fields with the same values, in the same order."""
        return _encoder.encode(self.fields)


def read(line: bytes) -> Document:
    """A line as a Document. Raises msgspec.MsgspecError when it is not a JSON object."""
    return Document(_object.decode(line))


def span_of(record: Record) -> Span | None:
    """The source bytes a record was made from, when it says."""
    meta = getattr(record, "meta", None)
    found = meta.get(SPAN) if meta else None
    if found is None or isinstance(found, Span):
        return found
    return msgspec.convert(found, Span)
