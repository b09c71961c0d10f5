"""Says what of a stream is not as ASR 0.1 has it (`asrd validate`, spec section 7): findings, never an exception.

A line is decoded once, into a struct that admits only what the format knows. What is refused is looked at field by
field, so that a clean stream costs little and a bad line is named exactly.

Invariants
    - Any bytes give findings. Nothing is read but the lines given, and nothing is kept of a record but its ids.
    - An open enum never fails: an unknown word, field, block or record type is a warning, and a vendor's (with a dot in
      its name) is none.
    - The error rules on fields agree with the JSON Schema (`asrd.schema`).
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Protocol, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, field

from asrd.records import (
    FORMAT_VERSION,
    MAX_LINE,
    RECORD_TYPES,
    SOURCE,
    SPAN,
    Record,
    read,
)

Severity = Literal["error", "warning"]

RULES: dict[str, tuple[Severity, str]] = {
    "header-first": ("error", "Line 1 is the header, a `session` record."),
    "header-again": ("error", "There is one header."),
    "format-version": ("warning", "The format's version is one this asrd writes."),
    "torn-line": ("warning", "The last line ends with a newline; readers ignore one that does not."),
    "too-long": ("error", "A line has at most 64 MiB."),
    "blank-line": ("error", "Each line holds a record."),
    "not-utf-8": ("error", "A line is UTF-8."),
    "byte-order-mark": ("error", "A stream has no byte order mark."),
    "carriage-return": ("warning", "Lines end with a line feed alone."),
    "not-json": ("error", "A line is JSON."),
    "not-an-object": ("error", "A line is one JSON object."),
    "unportable": ("warning", "Text holds no lone surrogates, and numbers fit a double: common readers refuse others."),
    "seq-gap": ("error", "`seq` starts at 0 and rises by 1."),
    "id-repeated": ("error", "`id` is unique in the stream."),
    "id-form": ("warning", "`id` is `h` for the header, else `r` and the `seq`."),
    "field-missing": ("error", "Required fields are there."),
    "field-type": ("error", "Fields have their types; what is unknown is absent, not null."),
    "time-form": ("warning", "Times are RFC 3339 in UTC."),
    "preview-long": ("error", "The `preview` of a loss has at most 200 characters."),
    "unknown-type": ("warning", "A record type is the format's, or a vendor's with a dot in its name."),
    "unknown-field": ("warning", "A field is the format's; vendor data goes under `_meta`."),
    "unknown-word": ("warning", "An enum's word is the format's, or a vendor's with a dot in it."),
    "unknown-block": ("warning", "A content block is the format's, or a vendor's with a dot in its name."),
    "meta-key": ("warning", "Keys of `_meta` are reverse DNS names, so they have a dot."),
    "span-form": ("error", "A span is `{source, start, end}` with start not behind end."),
    "span-source": ("error", "The source of a span was named before, in the header or by a `config` record."),
    "parent-unknown": ("error", "`parent` is the `id` of an earlier record."),
    "supersedes-unknown": ("error", "`supersedes` is the `id` of an earlier record."),
    "call-unknown": ("error", "A result comes after the call its `callId` names, or says `linkage: none`."),
    "call-unseen": ("warning", "A `callId` elsewhere names a call of this stream."),
    "call-repeated": ("warning", "A `callId` names one call; a later record of it supersedes the earlier."),
    "call-unmatched": (
        "error",
        "In a stream that ended and claims `coding`, a call has its result, or a gap follows it.",
    ),
    "inference-unknown": ("error", "In a stream that claims `usage`, an `inferenceId` names an earlier inference."),
    "inference-repeated": ("error", "One inference counts for one response: a later one supersedes the one before."),
}
"""Every rule: its severity, and what is so in a stream that keeps it."""


class Finding(Struct, frozen=True):
    """One thing that is not as it should be. `line` counts from 1; `record` is the `id` when the line has one."""

    line: int
    record: str | None
    rule: str
    message: str
    severity: Severity


def check(lines: Iterable[bytes]) -> Iterator[Finding]:
    """What is wrong with a stream, in order of its lines; what shows only at the end comes last.

    `lines` come with their newlines, as a file gives them (`bounded` keeps a huge line out of memory); when no line has
    one, the caller has cut them off and the last line is not torn.
    """
    stream = _Stream()
    found = stream.found
    held: bytes | None = None
    with_newlines = False
    number = 0
    for number, line in enumerate(lines, 1):
        if held is not None:
            stream.receive(number - 1, held)
            held = None
        if line.endswith(b"\n"):
            with_newlines = True
            stream.receive(number, line)
        else:
            held = line
        if found:
            yield from found
            found.clear()
    if number == 0:
        stream.finding(1, None, "header-first", "the stream is empty")
    elif held is not None:
        if with_newlines or number == 1:
            stream.finding(number, None, "torn-line", f"{len(held)} bytes without a newline")
        else:
            stream.receive(number, held)
    stream.close()
    yield from found


def report(findings: Iterable[Finding], name: str, *, as_json: bool = False) -> Iterator[str]:
    """Findings about the stream `name` as lines for a person, or as JSON objects, one a line, newline left out."""
    for one in findings:
        if as_json:
            yield msgspec.json.encode({"file": name, **msgspec.structs.asdict(one)}).decode()
        else:
            record = f" {one.record}" if one.record else ""
            yield f"{name}:{one.line}:{record} {one.severity} {one.rule}: {one.message}"


def failed(findings: Iterable[Finding]) -> bool:
    """Whether a stream is invalid: a finding is an error. Warnings leave it valid."""
    return any(f.severity == "error" for f in findings)


class Readable(Protocol):
    """What `bounded` needs of a binary file."""

    def readline(self, size: int = -1, /) -> bytes:
        """At most `size` bytes, up to and with the next newline."""
        ...


def bounded(file: Readable) -> Iterator[bytes]:
    """The lines of a file; of one that is too long its first bytes only, which `check` finds too long."""
    size = MAX_LINE + 2
    while line := file.readline(size):
        yield line
        while len(line) == size and not line.endswith(b"\n"):
            line = file.readline(size)


# ---------------------------------------------------------------- a stream, record by record


class _Facts(Struct, rename="camel"):
    """Of a record that is not as it should be, what the links of a stream need."""

    tag: str
    seq: int | None = None
    id: str | None = None
    parent: str | None = None
    supersedes: str | None = None
    copy_of: Any = None
    call_id: str | None = None
    inference_id: str | None = None
    linkage: str | None = None
    relation: str | None = None
    profile: str | None = None
    facet: str | None = None
    state: str | None = None
    preview: str | None = None
    format_version: str | None = None
    profiles: list[Any] | None = None
    sources: list[Any] | None = None
    span: Any = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)


_FACT_KINDS: dict[str, type] = {
    "seq": int,
    "copy_of": object,
    "span": object,
    "profiles": list,
    "sources": list,
    "meta": dict,
}


def _facts_of(tag: Any, fields: dict[str, Any]) -> _Facts:
    facts = _Facts(tag if isinstance(tag, str) else "")
    for f in msgspec.structs.fields(_Facts)[1:]:
        value = fields.get(f.encode_name)
        if isinstance(value, _FACT_KINDS.get(f.name, str)) and not isinstance(value, bool):
            setattr(facts, f.name, value)
    return facts


_CALLED = ("file_change", "vcs", "plan", "approval", "message_sent", "memory_write")


class _Stream:
    """What is remembered of the records so far: ids, calls without a result, and what the header claims."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self._next = 0
        self._ids: set[str] = set()
        self._profiles: frozenset[str] = frozenset()
        self._sources: set[str] | None = None
        self._calls: set[str] = set()
        self._open: dict[str, tuple[int, str | None]] = {}
        self._awaited: dict[str, tuple[int, str | None]] = {}
        self._excused = False
        self._ended = 0
        self._inferences: dict[str, str | None] = {}
        self._meta_keys = {SPAN, SOURCE}
        self._of_tag = {
            "session": self._session,
            "message": self._message,
            "tool_call": self._call,
            "tool_result": self._result,
            "inference": self._inference,
            "config": self._config,
            "capture": self._capture,
            "gap": self._gap,
            "loss": self._gap,
            "end": self._end,
            "link": self._link,
        } | dict.fromkeys(_CALLED, self._mention)

    def finding(self, line: int, record: str | None, rule: str, message: str) -> None:
        """Notes that a rule is not kept."""
        self.found.append(Finding(line, record, rule, message, RULES[rule][0]))

    def receive(self, line: int, data: bytes) -> None:
        """The next line, whole."""
        try:
            if len(data) <= MAX_LINE and data[-2:] != b"\r\n":
                self._add(line, _strict.decode(data))
                return
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            pass
        record = self._look(line, data)
        if record is not None:
            self._add(line, record)
            return
        self._next += 1
        if line == 1:
            self.finding(1, None, "header-first", "it is no record")

    def close(self) -> None:
        """What shows only when the stream is at its end."""
        for call, (line, record) in self._awaited.items():
            self.finding(line, record, "call-unseen", f"no call is {call!r}")
        if "coding" in self._profiles and not self._excused:
            for call, (line, record) in self._open.items():
                if line < self._ended:
                    self.finding(line, record, "call-unmatched", f"{call!r} has no result, and no gap comes after it")

    def _add(self, line: int, record: Any) -> None:
        """The links of a record: what it points to, and what it is for later ones."""
        name: str | None = record.id
        seq: int | None = record.seq
        tag: str = record.tag if type(record) is _Facts else _TAGS[type(record)]
        if line == 1 and tag != "session":
            self.finding(line, name, "header-first", f"it is a `{tag}` record")
        if seq is None:
            self._next += 1
        else:
            if seq != self._next:
                self.finding(line, name, "seq-gap", f"`seq` is {seq} where {self._next} comes next")
            self._next = seq + 1
        if record.parent is not None and record.parent not in self._ids:
            self.finding(line, name, "parent-unknown", f"no earlier record is {record.parent!r}")
        if record.supersedes is not None and record.supersedes not in self._ids:
            self.finding(line, name, "supersedes-unknown", f"no earlier record is {record.supersedes!r}")
        if name is not None:
            if name in self._ids:
                self.finding(line, name, "id-repeated", f"an earlier record is {name!r}")
            elif seq is not None and name != (f"r{seq}" if seq else "h"):
                self.finding(line, name, "id-form", f"the `id` of `seq` {seq} is {name!r}")
            self._ids.add(name)
        of_tag = self._of_tag.get(tag)
        if of_tag is not None:
            of_tag(line, record)
        if record.meta is not None:
            self._meta(line, record)

    # a line that was refused

    def _look(self, line: int, data: bytes) -> _Facts | None:
        if len(data) > MAX_LINE and len(data.rstrip(b"\r\n")) > MAX_LINE:
            self.finding(line, None, "too-long", f"more than {MAX_LINE} bytes")
            return None
        if data.endswith(b"\r\n"):
            self.finding(line, None, "carriage-return", "it ends with a carriage return and a line feed")
        if data.startswith(b"\xef\xbb\xbf"):
            self.finding(line, None, "byte-order-mark", "it starts with EF BB BF")
            data = data[3:]
        if not data.strip():
            self.finding(line, None, "blank-line", "it is empty")
            return None
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            self.finding(line, None, "not-utf-8", f"byte {error.start} of it is 0x{data[error.start]:02x}")
            return None
        try:
            fields = read(data).fields
        except msgspec.ValidationError as error:
            self.finding(line, None, "not-an-object", str(error))
            return None
        except msgspec.MsgspecError as error:
            self.finding(line, None, "not-json", str(error))
            return None
        return self._look_at(line, data, fields)

    def _look_at(self, line: int, data: bytes, fields: dict[str, Any]) -> _Facts:
        tag = fields.get("type")
        name = fields.get("id")
        name = name if isinstance(name, str) else None
        if tag is None:
            self.finding(line, name, "field-missing", "`type` is missing")
        elif not isinstance(tag, str):
            self.finding(line, name, "field-type", "`type` should be a string")
        kind = _KINDS.get(tag) if isinstance(tag, str) else None
        if kind is None and isinstance(tag, str) and "." not in tag:
            self.finding(line, name, "unknown-type", f"no record type is called {tag!r}")
        for rule, message in _oddities(fields, kind or Record, "", closed=kind is not None):
            self.finding(line, name, rule, message)
        try:
            msgspec.json.decode(data)
        except msgspec.MsgspecError as error:
            self.finding(line, name, "unportable", str(error))
        return _facts_of(tag, fields)

    # by type

    def _session(self, line: int, record: Any) -> None:
        if line != 1:
            self.finding(line, record.id, "header-again", "it is a second `session` record")
            return
        if record.format_version not in (FORMAT_VERSION, None):
            self.finding(line, record.id, "format-version", f"`formatVersion` is {record.format_version!r}")
        self._profiles = frozenset(p for p in record.profiles or () if isinstance(p, str))
        if record.sources is not None:
            self._sources = {name for s in record.sources if isinstance(name := _get(s, "id"), str)}

    def _message(self, line: int, record: Any) -> None:
        if record.inference_id is not None:
            self._of_inference(line, record)

    def _of_inference(self, line: int, record: Any) -> None:
        if record.inference_id not in self._inferences and "usage" in self._profiles:
            self.finding(line, record.id, "inference-unknown", f"no earlier inference is {record.inference_id!r}")

    def _call(self, line: int, record: Any) -> None:
        call: str | None = record.call_id
        if record.inference_id is not None:
            self._of_inference(line, record)
        if call is None:
            return
        if call not in self._calls or (record.supersedes is None and record.copy_of is None):
            if call in self._calls:
                self.finding(line, record.id, "call-repeated", f"an earlier call is {call!r}")
            if record.copy_of is None:
                self._open[call] = (line, record.id)
        self._calls.add(call)
        self._awaited.pop(call, None)

    def _result(self, line: int, record: Any) -> None:
        if record.linkage == "none" or record.call_id is None:
            return
        if record.call_id not in self._calls:
            self.finding(line, record.id, "call-unknown", f"no earlier call is {record.call_id!r}")
        self._open.pop(record.call_id, None)

    def _mention(self, line: int, record: Any) -> None:
        if record.call_id is not None and record.call_id not in self._calls:
            self._awaited.setdefault(record.call_id, (line, record.id))

    def _link(self, line: int, record: Any) -> None:
        if record.relation == "spawned":  # the call of other relations is the other session's
            self._mention(line, record)

    def _inference(self, line: int, record: Any) -> None:
        response: str | None = record.inference_id
        if response is None:
            return
        if record.copy_of is not None:
            self._inferences.setdefault(response, None)
            return
        counts = self._inferences.get(response)
        if counts is not None and record.supersedes != counts:
            self.finding(line, record.id, "inference-repeated", f"{counts!r} counts for {response!r} already")
        self._inferences[response] = record.id

    def _config(self, line: int, record: Any) -> None:
        source = _get(record.meta[SOURCE], "id") if record.meta and SOURCE in record.meta else None
        if isinstance(source, str) and self._sources is not None:
            self._sources.add(source)

    def _capture(self, line: int, record: Any) -> None:
        if record.profile == "coding" and record.facet in (None, "tool_result") and record.state != "full":
            self._excused = True

    def _gap(self, line: int, record: Any) -> None:
        self._open.clear()
        if record.span is not None:
            self._span(line, record.id, record.span)
        preview = getattr(record, "preview", None)
        if preview is not None and len(preview) > 200:
            self.finding(line, record.id, "preview-long", f"`preview` has {len(preview)} characters")

    def _end(self, line: int, record: Any) -> None:
        self._ended = line

    def _meta(self, line: int, record: Any) -> None:
        for key, value in record.meta.items():
            if key == SPAN:
                self._span(line, record.id, value)
            elif key not in self._meta_keys:
                if "." not in key:
                    self.finding(line, record.id, "meta-key", f"`_meta` has {key!r}")
                elif len(self._meta_keys) < 1000:  # a stream cannot make this set grow for ever
                    self._meta_keys.add(key)

    def _span(self, line: int, name: str | None, span: Any) -> None:
        source, start, end = _get(span, "source"), _get(span, "start"), _get(span, "end")
        if type(start) is not int or type(end) is not int or start > end or not isinstance(source, str):
            self.finding(line, name, "span-form", f"a span is {span!r}")
        elif self._sources is not None and source not in self._sources:
            self.finding(line, name, "span-source", f"no source is called {source!r}")


def _get(value: Any, key: str) -> Any:
    """A field of a struct or of an object; None where it has none."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).get(key)
    return getattr(value, key, None)


# ---------------------------------------------------------------- a record, field by field

TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|\+00:00)")


def _oddities(value: Any, kind: Any, path: str, *, closed: bool = True) -> Iterator[tuple[str, str]]:
    """What of a value is not as its type says: rule and message. `closed`: unknown fields are odd."""
    origin = get_origin(kind)
    if kind is Any:
        return
    if origin is Annotated:
        yield from _odd_text(value, kind.__metadata__[0], path)
    elif origin in (Union, types.UnionType):
        yield from _odd_choice(value, [m for m in get_args(kind) if m is not types.NoneType], path)
    elif origin is list:
        if not isinstance(value, list):
            yield "field-type", f"`{path}` should be a list"
            return
        for i, item in enumerate(cast("list[Any]", value)):
            yield from _oddities(item, get_args(kind)[0], f"{path}[{i}]")
    elif isinstance(kind, type) and issubclass(kind, Struct):
        yield from _odd_object(value, kind, path, closed)
    elif not _is_plain(value, kind):
        yield "field-type", f"`{path}` should be {_PLAIN[dict if origin is dict else kind][0]}"


def _odd_text(value: Any, meta: Meta, path: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, str):
        yield "field-type", f"`{path}` should be a string"
    elif meta.examples is None:
        if TIME.fullmatch(value) is None:
            yield "time-form", f"`{path}` is {value[:80]!r}"
    elif value not in meta.examples and "." not in value:
        yield "unknown-word", f"`{path}` is {value[:80]!r}, not one of {', '.join(map(str, meta.examples))}"


def _odd_choice(value: Any, members: list[Any], path: str) -> Iterator[tuple[str, str]]:
    if len(members) == 1:
        yield from _oddities(value, members[0], path)
        return
    if all(isinstance(m, type) and issubclass(m, Struct) for m in members):
        tag = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
        if not isinstance(tag, str):
            yield "field-type", f"`{path}` should be an object with a `type`"
            return
        for member in members:
            if member.__struct_config__.tag == tag:
                yield from _odd_object(value, member, path, True)
                return
        if "." not in tag:
            yield "unknown-block", f"`{path}` is a {tag[:80]!r}"
        return
    for member in members:
        if get_origin(member) is Annotated and isinstance(value, str):
            yield from _oddities(value, member, path)
            return
        if not list(_oddities(value, member, path)):
            return
    yield (
        "field-type",
        f"`{path}` should be {' or '.join(_PLAIN[str if get_origin(m) is Annotated else m][0] for m in members)}",
    )


def _odd_object(value: Any, kind: type[Struct], path: str, closed: bool) -> Iterator[tuple[str, str]]:
    if not isinstance(value, dict):
        yield "field-type", f"`{path}` should be an object"
        return
    fields = cast("dict[str, Any]", value)
    known = _fields(kind)
    prefix = f"{path}." if path else ""
    for key, (field_kind, required) in known.items():
        if key in fields:
            if fields[key] is None and field_kind is not Any:
                yield "field-type", f"`{prefix}{key}` is null; what is unknown is left out"
            else:
                yield from _oddities(fields[key], field_kind, prefix + key)
        elif required:
            yield "field-missing", f"`{prefix}{key}` is missing"
    if closed:
        tag_field = kind.__struct_config__.tag_field
        for key in fields:
            if key not in known and key != tag_field:
                yield "unknown-field", f"`{prefix}{key[:80]}` is not a field of it"


_PLAIN: Mapping[Any, tuple[str, tuple[type, ...]]] = {
    str: ("a string", (str,)),
    int: ("an integer", (int,)),
    float: ("a number", (int, float)),
    bool: ("true or false", (bool,)),
    dict: ("an object", (dict,)),
}


def _is_plain(value: Any, kind: Any) -> bool:
    kinds = _PLAIN[dict if get_origin(kind) is dict else kind][1]
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


_ALWAYS = {"seq", "id"}
"""Required in a stream, though a record is made before the stream gives them."""


@cache
def _fields(kind: type[Struct]) -> dict[str, tuple[Any, bool]]:
    """The fields of a struct by their name in JSON: type, and whether it must be there."""
    hints = get_type_hints(kind, include_extras=True)
    always = _ALWAYS if issubclass(kind, Record) else ()
    return {
        f.encode_name: (hints[f.name], f.required or f.name in always) for f in msgspec.structs.fields(kind)
    }  # fmt: skip


@cache
def _closed(kind: type[Struct]) -> type[Struct]:
    """The struct again, admitting the known words, blocks and fields alone: what it decodes has no oddities."""
    config = kind.__struct_config__
    fields: list[Any] = []
    for f in msgspec.structs.fields(kind):
        field_kind, required = _fields(kind)[f.encode_name]
        closed = _closed_kind(field_kind)
        fields.append((f.name, closed) if required else (f.name, closed, None))
    return msgspec.defstruct(
        kind.__name__,
        fields,
        rename={f.name: f.encode_name for f in msgspec.structs.fields(kind)},
        tag=config.tag,
        tag_field=config.tag_field,
        kw_only=True,
        forbid_unknown_fields=True,
        gc=False,
    )


def _closed_kind(kind: Any) -> Any:
    origin = get_origin(kind)
    if origin is Annotated:
        words = kind.__metadata__[0].examples
        return Literal[tuple(words)] if words else Annotated[str, Meta(pattern=rf"^{TIME.pattern}\Z")]
    if origin in (Union, types.UnionType):
        return Union[tuple(_closed_kind(m) for m in get_args(kind) if m is not types.NoneType)]
    if origin is list:
        return list[_closed_kind(get_args(kind)[0])]
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _closed(kind)
    return cast("Any", kind)


_KINDS: dict[str, type[Record]] = {str(t.__struct_config__.tag): t for t in RECORD_TYPES}
_TAGS: dict[type[Struct], str] = {_closed(t): tag for tag, t in _KINDS.items()}
_strict = msgspec.json.Decoder(Union[tuple(_TAGS)])
