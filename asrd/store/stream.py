"""An append-only stream of records: one line each, whole or absent.

Invariants
    - After `append` and `sync` the records survive power loss.
    - A crash leaves a whole prefix of what was appended, and at most one torn line, which opening cuts off.
    - Where to resume a source is in the records' spans; cursors only save reading again.
    - Deleting the index or the cursors changes how long an answer takes, and nothing else.
    - Lines are never edited. A later record may say that an earlier one was wrong.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from asrd.errors import StreamCorrupt
from asrd.recorders.base import HEADER_PLACE, Recorded, StreamKey
from asrd.records import SOURCE, SPAN, Record, SourceRef, Span, content_of, encode_lines
from asrd.store.disk import Disk

SUFFIX = ".asr.jsonl"
CHUNK = 1 << 20
REPAIRED = "dev.asrd.repaired"
"""Under `_meta` of what stands in for damaged lines (`store.repair`): the `file` they lie in, its `bytes` and `sha256`."""


def file_name(key: StreamKey) -> str:
    """A stream's file name: the session id where it is safe as a name, else made safe with a digest behind it."""
    name = f"{key.namespace}~{key.session_id}" if key.namespace else key.session_id
    safe = re.sub(r"[^A-Za-z0-9._~-]", "_", name)[:140].lstrip(".-") or "_"
    if safe != name:
        safe += (
            "-" + hashlib.sha256(f"{key.namespace}\0{key.session_id}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
        )
    return safe + SUFFIX


def folder_name(agent: str) -> str:
    """The folder of one harness's streams."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", agent)[:80].lstrip(".-") or "_"


class _Head(Struct, rename="camel"):
    """What is read of a line to find its place."""

    seq: int
    id: str
    type: str = ""
    phase: str = ""
    native_id: str | None = None
    call_id: str | None = None
    inference_id: str | None = None
    supersedes: str | None = None
    copy_of: Any = None
    usage: dict[str, Any] | None = None
    meta: dict[str, Any] | None = field(name="_meta", default=None)
    sources: list[SourceRef] | None = None
    producer: dict[str, Any] | None = None
    content_level: str | None = None
    reason: str = ""


_head = msgspec.json.Decoder(_Head)


class Stream:
    """One stream, opened for appending. Its torn tail is cut on opening.

    Raises StreamCorrupt where its last whole line is no record.
    """

    def __init__(self, disk: Disk, path: Path) -> None:
        self.path = path
        self._disk = disk
        self.size = disk.size(path) or 0
        self.next_seq = 0
        self.recovered = 0
        """Bytes of the torn tail that was cut off."""
        if self.size:
            self._recover()

    def append(self, records: list[Record]) -> None:
        """Adds records, whose `seq` must go on from the stream's; durable after `sync`."""
        assert records[0].seq == self.next_seq, f"{self.path}: {records[0].seq} does not follow {self.next_seq}"
        data = encode_lines(records)
        self._disk.append(self.path, data)
        self.size += len(data)
        self.next_seq = records[-1].seq + 1

    def sync(self) -> None:
        """Makes what was appended durable."""
        self._disk.sync(self.path)

    def _recover(self) -> None:
        end = self.size
        tail = b""
        while True:
            start = max(0, end - CHUNK)
            tail = self._disk.read(self.path, start, end - start) + tail
            end = start
            last = tail.rfind(b"\n")
            if last >= 0 and (tail.rfind(b"\n", 0, last) >= 0 or start == 0):
                break
            if start == 0:
                break
        whole = self.size - (len(tail) - last - 1) if last >= 0 else 0
        if whole != self.size:
            self._disk.truncate(self.path, whole)
            self.recovered = self.size - whole
            self.size = whole
        if not whole:
            return
        line = tail[tail.rfind(b"\n", 0, last) + 1 : last]
        try:
            self.next_seq = _head.decode(line).seq + 1
        except msgspec.MsgspecError as error:
            raise StreamCorrupt(stream=self.path, offset=whole - len(line) - 1, reason=str(error)) from error


def lines_of(disk: Disk, path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """The whole lines of a stream from byte `start` on, newline left out; a torn tail is not given."""
    held = b""
    at = start
    while end is None or at < end:
        data = disk.read(path, at, CHUNK if end is None else min(CHUNK, end - at))
        if not data:
            return
        at += len(data)
        lines = (held + data).split(b"\n") if held else data.split(b"\n")
        held = lines.pop()
        yield from lines


class _Numbered(Struct):
    """What is read of a line to find another."""

    seq: int


_numbered = msgspec.json.Decoder(_Numbered)
NEAR = 1 << 16
"""Bytes that are read through rather than halved again."""


def near(disk: Disk, path: Path, seq: int, end: int) -> tuple[int, int]:
    """Where a line begins that stands at or shortly before record `seq`, and that line's `seq`; (0, 0) where that is not known.

    The first `end` bytes are halved until what is left is short: each line says its `seq`, and no line is ever left out.
    So no table of places has to be kept. Where a line in the way is damaged, the stream is read from its beginning.
    """
    low, at, high = 0, 0, end
    while seq > at and high - low > NEAR:
        middle = (low + high) // 2
        start, line = _line_from(disk, path, middle, high)
        if line is None:
            high = middle
            continue
        try:
            number = _numbered.decode(line).seq
        except (msgspec.MsgspecError, RecursionError):
            return 0, 0
        if number <= at:
            return 0, 0
        if number > seq:
            high = middle
        else:
            low, at = start, number
    return low, at


def _line_from(disk: Disk, path: Path, start: int, end: int) -> tuple[int, bytes | None]:
    """The first line that begins after byte `start` and ends before `end`, and where it begins; None where there is none."""
    data, length = b"", NEAR // 4
    while True:
        first = data.find(b"\n") + 1
        if first and (last := data.find(b"\n", first)) >= 0:
            return start + first, data[first:last]
        at = start + len(data)
        more = disk.read(path, at, min(length, end - at)) if at < end else b""
        if not more:
            return start, None
        data, length = data + more, length * 2


def recorded(disk: Disk, path: Path) -> Recorded:
    """What a stream holds, by place in its sources. Raises StreamCorrupt for a line that is no record."""
    return held(lines_of(disk, path), path)


def held(lines: Iterable[bytes], path: Path) -> Recorded:
    """What these lines of the stream at `path` hold. Raises StreamCorrupt for one that is no record."""
    kinds: dict[str, str] = {}
    found = Recorded(ids={}, natives={}, tokens={}, spoken=kinds, says={}, replaces={})
    offset = 0
    for line in lines:
        try:
            head = _head.decode(line)
        except msgspec.MsgspecError as error:
            raise StreamCorrupt(stream=path, offset=offset, reason=str(error)) from error
        offset += len(line) + 1
        for reference in head.sources or ():
            found.sources[reference.name] = reference.id
            found.fingerprints[reference.name] = reference.fingerprint or ""
        meta = head.meta or {}
        if SOURCE in meta:
            reference = msgspec.convert(meta[SOURCE], SourceRef)
            found.sources[reference.name] = reference.id
            found.fingerprints[reference.name] = reference.fingerprint or ""
        if head.native_id is not None:
            found.natives[f"{head.type}/{head.native_id}/{head.phase}"] = head.id
        if head.type == "inference" and head.usage is not None and head.copy_of is None:
            used = head.usage
            whole = sum(used.get(part) or 0 for part in ("input", "cacheRead", "cacheWrite"))
            found.tokens[head.id] = (whole, used.get("cacheRead") or 0, used.get("output") or 0)
        if head.supersedes is not None:
            found.tokens.pop(head.supersedes, None)
        kinds[head.id] = f"{head.type}/{head.phase}/{head.call_id or ''}/{head.inference_id or ''}"
        found.says[head.id] = content_of(line)
        if head.supersedes is not None:
            found.replaces[head.id] = head.supersedes
        if head.producer is not None:
            found.instance = str(head.producer.get("instance") or "")
        if REPAIRED in meta:
            found.kinds = kinds
        if (
            REPAIRED in meta
            or head.content_level not in (None, "full")
            or (head.type == "gap" and head.reason in ("truncated", "replaced"))
        ):
            found.fixed = True
        place = HEADER_PLACE
        if SPAN in meta:
            span = msgspec.convert(meta[SPAN], Span)
            place = (span.source, span.start, span.key, span.rev)
        found.ids.setdefault(place, []).append(head.id)
        found.next_seq = head.seq + 1
    return found
