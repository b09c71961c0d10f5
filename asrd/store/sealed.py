"""A stream that is at rest, compressed: `NAME.asr.jsonl.zst`, in the seekable format of Zstandard.

A sealed file stands for the stream of the same name without `.zst`; offsets into it are those of the uncompressed
stream. Where both files are there the plain one is the stream, and the sealed one a leftover: it is whole before the
plain one goes, and the plain one is whole before it goes.

    frames of whole lines, about `FRAME` bytes each, with a checksum each
    skippable frame 0x184D2A51: msgpack {"asrd": 1, "seq": first seq of each frame, "records", "bytes", "sha256"}
    skippable frame 0x184D2A5E: the seek table of Zstandard's contrib/seekable_format/zstd_seekable_compression_format.md

Any Zstandard program gives the stream back (`zstd -dc NAME.asr.jsonl.zst`).
"""

from __future__ import annotations

import bisect
import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import zstandard
from msgspec import Struct

SEALED = ".zst"
FRAME = 1 << 20
"""Bytes of the stream in a frame: what must be decompressed to read one line."""
LEVEL = 9
_SEEK_TABLE = 0x184D2A5E
_INDEX = 0x184D2A51
_SEEKABLE = 0x8F92EAB1


class SealDamaged(Exception):
    """A sealed file is no such file, or a part of it cannot be decompressed."""


class Contents(Struct):
    """What the index frame says: the first `seq` of each frame, and the whole stream's records, bytes and digest."""

    asrd: int
    seq: list[int]
    records: int
    bytes: int
    sha256: str


def sealed_name(path: Path) -> Path:
    """Where the sealed form of a stream lies."""
    return path.with_name(path.name + SEALED)


def identity(info: os.stat_result) -> tuple[int, int, int]:
    """Inode, size and time of change: another file of the same name has another."""
    return (info.st_ino, info.st_size, info.st_mtime_ns)


def seal(read: Callable[[int, int], bytes], size: int, seq_of: Callable[[bytes], int]) -> Iterator[bytes]:
    """The sealed form of a stream of `size` bytes, in pieces. `read(start, length)`; `seq_of(line)`.

    Raises SealDamaged where the stream does not end with a whole line.
    """
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=True)
    digest = hashlib.sha256()
    table: list[tuple[int, int]] = []
    first: list[int] = []
    records = at = 0
    held = b""
    while at < size:
        more = read(at, min(FRAME, size - at))
        if not more:
            raise SealDamaged("the stream ends before its size")
        at += len(more)
        data = held + more
        end = data.rfind(b"\n") + 1
        if not end:
            if at >= size:
                raise SealDamaged("the stream ends with a torn line")
            held = data  # a line longer than a frame: the frame grows with it
            continue
        held, data = data[end:], data[:end]
        first.append(seq_of(data[: data.index(b"\n")]))
        records += data.count(b"\n")
        digest.update(data)
        packed = compressor.compress(data)
        table.append((len(packed), len(data)))
        yield packed
        if at >= size and held:
            raise SealDamaged("the stream ends with a torn line")
    said = msgspec.msgpack.encode(Contents(1, first, records, size, digest.hexdigest()))
    yield struct.pack("<II", _INDEX, len(said)) + said
    body = b"".join(struct.pack("<II", *sizes) for sizes in table) + struct.pack("<IBI", len(table), 0, _SEEKABLE)
    yield struct.pack("<II", _SEEK_TABLE, len(body)) + body


class Sealed:
    """A sealed file, open for reading from any thread. Raises SealDamaged; OSError where it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._last: tuple[int, bytes] = (-1, b"")
        self._ends, self._places, self.contents = self._tables()

    def __del__(self) -> None:
        """Closes the file when the last reader, of whatever thread, is done with it."""
        handle, self._handle = getattr(self, "_handle", -1), -1
        if handle >= 0:
            os.close(handle)

    @property
    def identity(self) -> tuple[int, int, int]:
        """What tells this file from another of its name."""
        return identity(os.fstat(self._handle))

    @property
    def size(self) -> int:
        """Bytes of the stream."""
        return self._ends[-1] if self._ends else 0

    def read(self, start: int, length: int) -> bytes:
        """At most `length` bytes of the stream from `start`."""
        parts: list[bytes] = []
        number = bisect.bisect_right(self._ends, start)
        while length > 0 and number < len(self._ends):
            before = self._ends[number - 1] if number else 0
            part = self.frame(number)[start - before : start - before + length]
            parts.append(part)
            start += len(part)
            length -= len(part)
            number += 1
        return b"".join(parts)

    def frames(self) -> int:
        """How many frames there are."""
        return len(self._ends)

    def extent(self, number: int) -> tuple[int, int]:
        """The bytes [start, end) of the stream in a frame."""
        return (self._ends[number - 1] if number else 0, self._ends[number])

    def frame(self, number: int) -> bytes:
        """One frame's bytes of the stream."""
        last, plain = self._last
        if last != number:
            start, length = self._places[number]
            begin, end = self.extent(number)
            data = os.pread(self._handle, length, start)
            try:
                plain = zstandard.ZstdDecompressor().decompress(data, max_output_size=end - begin)
            except zstandard.ZstdError as error:
                raise SealDamaged(f"frame {number}: {error}") from error
            if len(plain) != end - begin:
                raise SealDamaged(f"frame {number} has {len(plain)} bytes, not {end - begin}")
            self._last = (number, plain)
        return plain

    def packed(self, number: int) -> bytes:
        """One frame as it lies in the file."""
        start, length = self._places[number]
        return os.pread(self._handle, length, start)

    def place_of(self, seq: int) -> tuple[int, int]:
        """Where to begin reading for a record: the byte a frame starts at, and the `seq` of its first line."""
        number = max(0, bisect.bisect_right(self.contents.seq, seq) - 1)
        return (self._ends[number - 1] if number else 0, self.contents.seq[number] if self.contents.seq else 0)

    def _tables(self) -> tuple[list[int], list[tuple[int, int]], Contents]:
        handle = self._handle
        size = os.fstat(handle).st_size
        foot = os.pread(handle, 9, max(0, size - 9))
        if len(foot) != 9 or struct.unpack("<IBI", foot)[2] != _SEEKABLE:
            raise SealDamaged("no seek table at its end")
        count, descriptor, _ = struct.unpack("<IBI", foot)
        width = 12 if descriptor & 0x80 else 8
        length = count * width + 9
        if length > size:
            raise SealDamaged("its seek table is longer than the file")
        body = os.pread(handle, length, size - length)
        ends: list[int] = []
        places: list[tuple[int, int]] = []
        at = end = 0
        for number in range(count):
            packed, plain = struct.unpack_from("<II", body, number * width)
            places.append((at, packed))
            at += packed
            end += plain
            ends.append(end)
        head = os.pread(handle, 8, at)
        if len(head) == 8 and struct.unpack("<II", head)[0] == _INDEX:
            said = os.pread(handle, struct.unpack("<II", head)[1], at + 8)
            try:
                contents = msgspec.msgpack.decode(said, type=Contents)
            except msgspec.MsgspecError as error:
                raise SealDamaged(f"its index: {error}") from error
            if len(contents.seq) == count and contents.bytes == end:
                return ends, places, contents
        raise SealDamaged("no index of records")
