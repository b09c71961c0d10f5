"""Bytes to lines: every byte of a source lies in exactly one line, whatever the pieces it came in.

Invariants
    - The lines depend on the bytes alone, not on how they were cut.
    - A line is given only when its newline was seen; what follows the last newline is the torn tail, and waits.
    - A line longer than `limit` is given as `Oversize` (place, digest, first bytes); memory stays below limit + chunk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from asrd.sources import Line, Oversize

LIMIT = 64 * 1024 * 1024
PREVIEW = 512


class LineFramer:
    """Cuts a source into lines, from byte `start` on."""

    def __init__(self, start: int = 0, limit: int = LIMIT) -> None:
        self.offset = start
        """The first byte not yet given out: where to read again after a restart."""
        self._limit = limit
        self._parts: list[bytes] = []
        self._held = 0
        self._digest: Any = None  # a SHA-256, set while an oversize line passes
        self._preview = b""
        self._passed = 0

    def receive(self, chunk: bytes) -> Iterator[Line | Oversize]:
        """The lines that end in this chunk. A carriage return before the newline belongs to the line break."""
        at = 0
        if self._parts or self._digest is not None:
            end = chunk.find(b"\n")
            if end < 0:
                self._hold(chunk)
                return
            self._hold(chunk[:end])
            yield self._take()
            at = end + 1
        start = self.offset
        find = chunk.find
        while (end := find(b"\n", at)) >= 0:
            if end - at > self._limit:
                self._hold(chunk[at:end])
                yield self._take()
                start = self.offset
            else:
                stop = end - 1 if end > at and chunk[end - 1] == 13 else end
                data = chunk[at:stop]
                line = Line(start, start + (stop - at), data)
                start += end - at + 1
                self.offset = start
                yield line
            at = end + 1
        if at < len(chunk):
            self._hold(chunk[at:] if at else chunk)

    def tail(self) -> bytes:
        """The torn tail so far (empty while an oversize line passes)."""
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0] if self._parts else b""

    def pending(self) -> int:
        """Bytes after the last newline."""
        return self._passed if self._digest is not None else self._held

    def take_tail(self) -> Line:
        """The torn tail as a line, for a shell that knows it is whole. Its newline, if it comes, is an empty line."""
        data = self.tail()
        line = Line(self.offset, self.offset + len(data), data)
        self.offset += len(data)
        self._parts, self._held = [], 0
        return line

    def _hold(self, piece: bytes) -> None:
        if self._digest is not None:
            self._digest.update(piece)
            self._passed += len(piece)
            return
        if not piece:
            return
        self._parts.append(piece)
        self._held += len(piece)
        if self._held > self._limit:
            data = b"".join(self._parts)
            self._digest = hashlib.sha256(data)
            self._preview = data[:PREVIEW]
            self._passed = len(data)
            self._parts, self._held = [], 0

    def _take(self) -> Line | Oversize:
        start = self.offset
        if self._digest is not None:
            found = Oversize(start, start + self._passed, self._digest.hexdigest(), self._preview)
            self.offset = start + self._passed + 1
            self._digest, self._preview, self._passed = None, b"", 0
            return found
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._held = [], 0
        self.offset = start + len(data) + 1
        if data.endswith(b"\r"):
            data = data[:-1]
        return Line(start, start + len(data), data)
