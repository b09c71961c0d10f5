"""The private file that `asrd acp` copies a connection into, for the daemon to read: JSON Lines, one message a line.

    {"at": "2026-11-30T04:45:55.869123Z", "dir": "c2a", "frame": {"jsonrpc": "2.0", …}}
    {"at": …, "dir": "a2c", "frame": {…}, "redacted": 2}
    {"at": …, "dir": "a2c", "lost": {"reason": "malformed", "bytes": 31, "sha256": "…"}}
    {"at": …, "dir": "meta", "event": "open", "connection": "…", "transport": "stdio", "command": "claude-agent-acp", …}

`dir`: `c2a` from client to agent, `a2c` back, `meta` about the connection itself. `frame` is the message verbatim, or a
text that holds it when it has a newline in it. Events: `open` (first line), `eof` (`side` closed its end), `dropped`
(`frames` and `bytes` were forwarded and could not be kept), `closed` (last line: how it ended), `lost` (the writer died;
said by whoever found the file).

Invariants
    - Nothing that forwards ever waits for it: a message is handed over in memory, a thread of its own writes.
    - Its trouble (no room, no rights, a slow disk) is its own: messages that cannot be kept are counted, and the count is
      written as soon as that is possible.
    - Nothing is written before its secrets were taken out (`frames.redact`).
    - While its writer lives the file is locked (flock), so that everyone can tell a live one from a dead one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import queue
import secrets
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from asrd import __version__, clock
from asrd.acp import frames
from asrd.framing import LineFramer
from asrd.sources import Oversize

Direction = Literal["c2a", "a2c"]

SUFFIX = ".acp.jsonl"
LONGEST = 64 * 1024 * 1024 - 4096
"""Bytes a message may have to be kept whole: with what stands around it a line stays below 64 MiB."""
WAITING = 256 * 1024 * 1024
"""Bytes that may wait in memory for the disk. What comes beyond is counted as dropped."""
RETRY = 1.0
"""Seconds between attempts to write after one failed."""

_encode = msgspec.json.Encoder().encode


def connection_id(now: datetime, pid: int) -> str:
    """A name for a connection that no other has; names sort by time."""
    return f"{now:%Y%m%dT%H%M%S.%f}-{pid}-{secrets.token_hex(3)}"


def moment(seconds: float) -> str:
    """RFC 3339 UTC with microseconds."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


class _Chunk(msgspec.Struct, frozen=True, gc=False):
    at: float
    dir: Direction
    data: bytes
    message: bool  # a whole message, not a piece of a stream of lines


class _Note(msgspec.Struct, frozen=True):
    at: float
    event: str
    facts: dict[str, Any]


class Spool:
    """Copies one connection into a file. `put` and `note` return at once and never raise."""

    def __init__(
        self,
        folder: Path,
        connection: str,
        *,
        transport: str,
        command: str | None = None,
        keep: bool = False,
        time: Callable[[], float] = clock.seconds,
    ) -> None:
        self.path = folder / (connection + SUFFIX)
        self._time = time
        self._opening = _Note(
            time(),
            "open",
            {
                "connection": connection,
                "transport": transport,
                "command": os.path.basename(command) if command else None,
                "pid": os.getpid(),
                "asrd": __version__,
                "keep": keep,
            },
        )
        self._queue: queue.SimpleQueue[_Chunk | _Note | None] = queue.SimpleQueue()
        self._waiting = 0
        self._count = threading.Lock()
        self._missed = {"c2a": 0, "a2c": 0}  # bytes not handed over since the last one that was
        self._file = _File(self.path)
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to write."""
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    def put(self, direction: Direction, data: bytes, *, message: bool = False) -> None:
        """A piece of the bytes that went in one direction, or (`message`) one whole message."""
        if self._waiting + len(data) > WAITING:
            self._missed[direction] += len(data)
            return
        if self._missed[direction]:
            self._queue.put(_Note(self._time(), "missed", {"dir": direction, "bytes": self._missed[direction]}))
            self._missed[direction] = 0
        with self._count:
            self._waiting += len(data)
        self._queue.put(_Chunk(self._time(), direction, data, message))

    def note(self, event: str, **facts: Any) -> None:
        """Something about the connection itself."""
        self._queue.put(_Note(self._time(), event, facts))

    def close(self, patience: float = 2.0, **facts: Any) -> None:
        """The connection is over. Waits for the disk, at most `patience` seconds."""
        for direction, size in self._missed.items():
            if size:
                self.note("missed", dir=direction, bytes=size)
        self.note("closed", **facts)
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join(patience)

    # in the thread

    def _run(self) -> None:
        cutters = {"c2a": _Cutter(), "a2c": _Cutter()}
        self._file.append([_meta(self._opening)])
        going = True
        while going:
            item = self._queue.get()
            lines: list[bytes] = []
            size = 0
            while True:
                if item is None:
                    going = False
                    break
                if isinstance(item, _Chunk):
                    with self._count:
                        self._waiting -= len(item.data)
                    size += len(item.data)
                    if item.message:
                        lines.append(line_of(item.at, item.dir, item.data))
                    else:
                        lines += cutters[item.dir].receive(item)
                elif item.event == "missed":
                    lines += cutters[item.facts["dir"]].missed(item)
                else:
                    if item.event == "closed":
                        lines += [line for d, c in cutters.items() for line in c.rest(item.at, d)]
                    lines.append(_meta(item))
                if size > 1 << 20:
                    break
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            self._file.append(lines)
        self._file.close()


class _Cutter:
    """Bytes of one direction to lines of the spool."""

    def __init__(self) -> None:
        self._framer = LineFramer(limit=LONGEST)
        self._skipping = False

    def receive(self, chunk: _Chunk) -> list[bytes]:
        data = chunk.data
        if self._skipping:  # behind bytes that were dropped, a message is whole again after the next newline
            newline = data.find(b"\n")
            if newline < 0:
                return []
            data = data[newline + 1 :]
            self._skipping = False
        lines: list[bytes] = []
        for found in self._framer.receive(data):
            if isinstance(found, Oversize):
                lost = {"reason": "oversize", "bytes": found.end - found.start, "sha256": found.sha256}
                lines.append(_lost(chunk.at, chunk.dir, lost))
            elif found.data:
                lines.append(line_of(chunk.at, chunk.dir, found.data))
        return lines

    def missed(self, note: _Note) -> list[bytes]:
        tail = self._framer.pending()
        self._framer = LineFramer(limit=LONGEST)
        self._skipping = True
        facts = {"direction": note.facts["dir"], "bytes": note.facts["bytes"] + tail, "reason": "too much at once"}
        return [_meta(_Note(note.at, "dropped", facts))]

    def rest(self, at: float, direction: str) -> list[bytes]:
        """What came after the last newline when the connection ended."""
        tail = self._framer.tail()
        if not tail.strip():
            return []
        if tail.rstrip().endswith((b"}", b"]")) and frames.whole(tail):
            return [line_of(at, direction, tail)]
        lost = {"reason": "torn", "bytes": len(tail), "sha256": hashlib.sha256(tail).hexdigest()}
        return [_lost(at, direction, lost)]


def line_of(at: float, direction: str, data: bytes) -> bytes:
    """The line for one message, newline left out: its secrets taken out, else verbatim."""
    size = len(data)
    if size > LONGEST:
        lost = {"reason": "oversize", "bytes": size, "sha256": hashlib.sha256(data).hexdigest()}
        return _lost(at, direction, lost)
    try:
        kept, removed = frames.redact(data)
        if not removed and not frames.whole(data):
            raise msgspec.DecodeError("not JSON")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        lost = {"reason": "malformed", "bytes": size, "sha256": hashlib.sha256(data).hexdigest()}
        return _lost(at, direction, lost)
    if b"\n" in kept or b"\r" in kept:
        kept = _encode(kept.decode())
    tail = b',"redacted":%d}' % removed if removed else b"}"
    return b'{"at":"%s","dir":"%s","frame":' % (moment(at).encode(), direction.encode()) + kept + tail


def _lost(at: float, direction: str, lost: dict[str, Any]) -> bytes:
    return _encode({"at": moment(at), "dir": direction, "lost": lost})


def _meta(note: _Note) -> bytes:
    fixed = {"at": moment(note.at), "dir": "meta", "event": note.event}
    return _encode(fixed | note.facts | fixed)  # in this order, and no fact takes their place


class _File:
    """The file, with its trouble kept inside: what could not be written is counted and said later."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self._torn = False
        self._dropped = 0
        self._bytes = 0
        self._why = ""
        self._again = 0.0

    def append(self, lines: list[bytes]) -> None:
        if not lines:
            return
        if clock.ticks() < self._again:
            self._drop(lines)
            return
        if self._dropped:
            note = _Note(
                clock.seconds(), "dropped", {"frames": self._dropped, "bytes": self._bytes, "reason": self._why}
            )
            said = [_meta(note)]
        else:
            said = []
        data = (b"\n" if self._torn else b"") + b"".join(line + b"\n" for line in said + lines)
        try:
            self._open()
            self._write(data)
        except OSError as error:
            self._why = error.strerror or str(error)
            self._again = clock.ticks() + RETRY
            self._drop(lines)
        else:
            self._torn = False
            self._dropped = self._bytes = 0
            self._again = 0.0

    def close(self) -> None:
        if self._dropped:  # the last chance to say so
            self._again = 0.0
            self.append([_meta(_Note(clock.seconds(), "closed", {"reason": "not all of it could be kept"}))])
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
            self._fd = -1

    def _drop(self, lines: list[bytes]) -> None:
        self._dropped += len(lines)
        self._bytes += sum(map(len, lines))

    def _open(self) -> None:
        if self._fd >= 0:
            return
        for folder in (
            self._path.parent.parent,
            self._path.parent,
        ):  # the store, when nothing is recorded yet, and the spool
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL):  # a folder that knows no locks
                os.close(fd)
                raise
        self._fd = fd

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.write(self._fd, view)
            self._torn = data[len(data) - len(view) + written - 1] != 10
            view = view[written:]


# ---------------------------------------------------------------- the daemon's side


def finished(path: Path) -> bool:
    """Whether a spool file may be deleted once all of it is recorded: its connection is over and it is not to be kept.

    A file whose writer died without saying so gets a last line that says it (`lost`); it is finished when that line too
    was recorded, so this gives False the first time. Never raises; what cannot be told is not finished.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        size = os.fstat(fd).st_size
        first = _event(os.pread(fd, 8192, 0).split(b"\n", 1)[0])
        if size == 0 or first is None:
            return False
        tail = os.pread(fd, 8192, max(0, size - 8192))
        last = _event(tail.rstrip(b"\n").rsplit(b"\n", 1)[-1]) if tail.endswith(b"\n") else None
        if last is not None and last.event in ("closed", "lost"):
            return not first.keep
        torn = b"" if tail.endswith(b"\n") else b"\n"
        os.write(fd, torn + _meta(_Note(clock.seconds(), "lost", {})) + b"\n")
        return False
    except OSError:
        return False
    finally:
        os.close(fd)


class _Event(msgspec.Struct):
    """What is read of a line about the connection."""

    dir: str
    event: str
    keep: bool = False


def _event(line: bytes) -> _Event | None:
    try:
        found = msgspec.json.decode(line, type=_Event)
    except msgspec.MsgspecError:
        return None
    return found if found.dir == "meta" else None
