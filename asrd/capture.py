"""The sans-I/O life of one group of sources: observations in, commands out.

A group is what one recorder reads: most often one file, sometimes several that make one session (segments after a
revert, a sidecar), or one database with many sessions.

Invariants
    - The records depend on the bytes of each source, not on how they were cut, nor on restarts between.
    - `save()` and `restore()` change nothing but the time it takes.
    - What a source lost (truncated, replaced, gone before it was read) is said in a `gap` record, once.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import xxhash
from msgspec import Struct

from asrd.framing import LIMIT, LineFramer
from asrd.recorders.base import Recorded, Recorder, StreamKey, Writer, first_digest
from asrd.records import Gap, Record
from asrd.sources import Line, Row, Source


class Append(Struct, frozen=True):
    """Add these records to that stream, in order. Their `seq` goes on from what the stream has."""

    key: StreamKey
    records: list[Record]


class SourceState(Struct):
    """Where one source of the group stands."""

    offset: int = 0
    first: str = ""
    """Digest of its first line."""
    generation: int = 0
    """How often its content was replaced or cut."""
    digests: bytes = b""
    """xxh3-64 of every line seen, 8 bytes each: lines that come again after a replacement are not new."""
    revisions: dict[str, str] = {}
    """For rows and documents: the revision last recorded, by key."""


class GroupState(Struct):
    """What a Capture keeps between runs."""

    harness: str
    revision: int
    sources: dict[str, SourceState]
    recorder: bytes


TAIL = 512
"""How many bytes before the offset tell a file that grew from one that was replaced."""


class _Open:
    """One source while it is followed."""

    __slots__ = ("digests", "framer", "seen", "source", "state")

    def __init__(self, source: Source, state: SourceState, limit: int) -> None:
        self.source = source
        self.state = state
        self.framer = LineFramer(state.offset, limit)
        self.digests = array("Q", state.digests)
        self.seen: set[int] | None = set(self.digests) if state.generation else None


class Capture:
    """The life of one group. `limit`: the longest line that is read, in bytes."""

    def __init__(
        self,
        recorder: type[Recorder],
        group: str,
        *,
        recorded: Mapping[StreamKey, Recorded] | None = None,
        saved: bytes | None = None,
        limit: int = LIMIT,
    ) -> None:
        self._writer = Writer(recorded)
        self.recorder = recorder(self._writer, group)
        self.group = group
        self._limit = limit
        self._open: dict[str, _Open] = {}
        self._states: dict[str, SourceState] = {}
        if saved is not None:
            state = msgspec.msgpack.decode(saved, type=GroupState)
            if state.harness != recorder.harness or state.revision != recorder.revision:
                raise msgspec.ValidationError("saved by another revision of the recorder")
            self.recorder.restore(state.recorder)
            self._states = state.sources

    # observations

    def receive_moved(self, source: Source, before: str, first: str) -> None:
        """The file of this source was recorded under the name `before`; `first`: the digest of its first line then."""
        self._writer.moved[source.name] = (before, first)

    def receive_bytes(self, source: Source, chunk: bytes) -> None:
        """The next bytes of a file of lines."""
        one = self._source(source)
        state, seen, convert = one.state, one.seen, self.recorder.convert
        push = one.digests.append
        xxh, passing = xxhash.xxh3_64_intdigest, self.recorder.passing
        for item in one.framer.receive(chunk):
            if not state.first:
                state.first = first_digest(item)
            if type(item) is Line:
                digest = xxh(item.data if passing is None else _lasting(item.data, passing))
                if seen is not None:
                    if digest in seen:
                        self._writer.skips["line-seen-before"] = self._writer.skips.get("line-seen-before", 0) + 1
                        continue
                    seen.add(digest)
                push(digest)
            convert(source, item, state.first)

    def receive_settled(self, source: Source) -> None:
        """Nothing more came for a while: a torn tail that is a whole JSON object is taken as a line.

        A whole object cannot become another by growing, so the record is the same as if its newline had come.
        """
        one = self._source(source)
        tail = one.framer.tail()
        if not tail.endswith(b"}"):
            return
        try:
            msgspec.json.decode(tail)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        item = one.framer.take_tail()
        if not one.state.first:
            one.state.first = first_digest(item)
        passing = self.recorder.passing
        digest = xxhash.xxh3_64_intdigest(item.data if passing is None else _lasting(item.data, passing))
        if one.seen is None or digest not in one.seen:
            one.digests.append(digest)
            self.recorder.convert(source, item, one.state.first)

    def receive_rows(self, source: Source, rows: Iterable[Row]) -> None:
        """Rows or documents as they stand now; those whose revision was recorded already are passed over."""
        one = self._source(source)
        revisions = one.state.revisions
        for row in rows:
            name = f"{row.table}/{row.key}"
            if revisions.get(name) == row.rev:
                continue
            self.recorder.convert(source, row, one.state.first)
            revisions[name] = row.rev

    def receive_truncated(self, source: Source, size: int) -> None:
        """The file is shorter than what was read: what it holds now is read from the start, for lines not seen yet."""
        self._again(source, "truncated", size)

    def receive_replaced(self, source: Source) -> None:
        """Another content stands at the source's place."""
        self._again(source, "replaced", None)

    def receive_known(self, source: Source, lines: bytes) -> None:
        """Lines that were recorded from a copy of this source elsewhere, by digest: they are not new here."""
        one = self._source(source)
        one.digests.frombytes(lines)
        one.seen = set(one.digests)
        one.state.generation = max(1, one.state.generation)

    def receive_gone(self, source: Source, size: int) -> None:
        """The source is gone. `size`: the largest it was seen; bytes below it that were not read are a gap."""
        one = self._source(source)
        unread = size - one.framer.offset
        if unread > 0 and source.kind == "lines":
            self._gap(one, "deleted", unread)

    def forget(self, source: Source) -> None:
        """The source was recorded to its end, deleted by us, and will not come again: nothing more is kept of it."""
        self._open.pop(source.name, None)
        self._states.pop(source.name, None)

    # commands

    def commands(self) -> list[Append]:
        """What is to be appended, in order; each stream's records together."""
        by_stream: dict[StreamKey, list[Record]] = {}
        for stream, record in self._writer.drain():
            records = by_stream.get(stream.key)
            if records is None:
                records = by_stream[stream.key] = []
            records.append(record)
        return [Append(key, records) for key, records in by_stream.items()]

    # values

    def offset(self, source: Source) -> int:
        """The first byte of a source not yet recorded: where to read on."""
        return self._source(source).framer.offset

    def read_to(self, source: Source) -> int:
        """The first byte of a source not yet received (behind the torn tail)."""
        framer = self._source(source).framer
        return framer.offset + framer.pending()

    def pending(self, source: Source) -> int:
        """Bytes of the torn tail."""
        return self._source(source).framer.pending()

    def first(self, source: Source) -> str:
        """Digest of the first line, "" before it was seen."""
        return self._source(source).state.first

    def revisions(self, source: Source) -> Mapping[str, str]:
        """The recorded revision of each row, by `table/key`."""
        return self._source(source).state.revisions

    def lines_seen(self, name: str) -> bytes:
        """Digests of the lines it saw in sources of that file name, 8 bytes each."""
        seen = {source: state.digests for source, state in self._states.items()}
        seen.update((source, one.digests.tobytes()) for source, one in self._open.items())
        return _of_name(seen, name)

    def accounts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Skips by rule, and counts of what a person may want to see."""
        return self._writer.skips, self._writer.counts

    def natives(self) -> dict[str, int]:
        """How many records were kept as they are, by their native type."""
        return self._writer.natives

    def expected(self) -> dict[StreamKey, int]:
        """How many records each stream must hold for this state to go on from it."""
        return {key: stream.next_seq for key, stream in self._writer.streams.items()}

    def streams(self) -> list[StreamKey]:
        """The streams this group feeds."""
        return list(self._writer.streams)

    def save(self) -> bytes:
        """All that is kept between runs. Only after what `commands()` gave was appended."""
        for name, one in self._open.items():
            one.state.offset = one.framer.offset
            one.state.digests = one.digests.tobytes()
            self._states[name] = one.state
        return msgspec.msgpack.encode(
            GroupState(self.recorder.harness, self.recorder.revision, self._states, self.recorder.save())
        )

    # inside

    def _source(self, source: Source) -> _Open:
        one = self._open.get(source.name)
        if one is None:
            state = self._states.get(source.name) or SourceState()
            one = self._open[source.name] = _Open(source, state, self._limit)
        return one

    def _again(self, source: Source, reason: str, size: int | None) -> None:
        one = self._source(source)
        before = one.framer.offset
        self._gap(one, reason, before - size if size is not None else None)
        one.state.generation += 1
        one.state.first = ""
        one.seen = set(one.digests)
        one.framer = LineFramer(0, self._limit)

    def _gap(self, one: _Open, reason: str, missing: int | None) -> None:
        at = one.framer.offset
        self._writer.begin(one.source, Line(at, at, b""), one.state.first)
        meta: dict[str, Any] = {"dev.asrd.generation": one.state.generation + 1}
        self.recorder.main().add(Gap(reason=reason, bytes=missing, meta=meta))
        self._writer.count(f"gap:{reason}")


def _lasting(line: bytes, passing: re.Pattern[bytes]) -> bytes:
    found = passing.match(line)
    return line if found is None else line[: found.start(1)] + line[found.end(1) :]


def lines_seen(saved: bytes, name: str) -> bytes:
    """`Capture.lines_seen` of one that was saved; none when it is unreadable."""
    try:
        state = msgspec.msgpack.decode(saved, type=GroupState)
    except msgspec.MsgspecError:
        return b""
    return _of_name({source: s.digests for source, s in state.sources.items()}, name)


def _of_name(digests: dict[str, bytes], name: str) -> bytes:
    """Those of the sources that are files of that name."""
    return b"".join(lines for source, lines in digests.items() if source.rsplit("/", 1)[-1] == name)
