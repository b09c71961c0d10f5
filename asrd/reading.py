"""Reads what a source holds: bytes of a file of lines, rows of documents and databases. Never writes to them.

Databases are read by `tables`, so that their owner's files are never locked, checkpointed or changed.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from typing import Any

import zstandard
from msgspec import Struct

from asrd import tables
from asrd.errors import SourceUnreadable
from asrd.framing import LIMIT
from asrd.places import Found
from asrd.sources import COMPRESSED, Row

CHUNK = 1 << 20
WINDOW = 1 << 26
"""Bytes of memory that unpacking a file may ask for."""
UNPACKED, UNPACKED_TIMES = 64 << 20, 400
"""A compressed file is unpacked to this many bytes, or to this many times its size, if that is more. Session files shrink 5 to
50 times; what grows more is made to fill a disk."""
TICK = 20_000_000
"""Nanoseconds after which the time of a file tells one change from the next (Linux counts them in ticks of 10 ms)."""


def read_lines(found: Found, start: int, chunk: int = CHUNK) -> Iterator[bytes]:
    """The bytes of a file of lines from `start` on (of its decompressed content where it is compressed), in chunks.

    Raises SourceUnreadable.
    """
    try:
        with opened(found.path, found.root) as file:
            if found.path.endswith(COMPRESSED):
                yield from _decompressed(file, start, chunk)
                return
            file.seek(start)
            while data := file.read(chunk):
                yield data
    except OSError as error:
        raise SourceUnreadable(source=found.path, reason=error.strerror or str(error)) from error
    except zstandard.ZstdError as error:
        raise SourceUnreadable(source=found.path, reason=f"zstd: {error}") from error


def opened(path: str, root: str) -> io.FileIO:
    """A source opened for reading: a regular file below `root`, also if something else took its place since it was found.

    Opening waits for nothing (a FIFO without a writer would). Raises OSError.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            code = errno.EISDIR if stat.S_ISDIR(info.st_mode) else errno.EINVAL
            raise OSError(code, os.strerror(code) if code == errno.EISDIR else "not a regular file")
        if not _lies_below(handle, root):
            real = os.path.realpath(path)
            if not real.startswith(os.path.join(os.path.realpath(root), "")):
                raise OSError(errno.EXDEV, "a link that leads out of the harness's folder")
            if not os.path.samestat(info, os.stat(real)):
                raise OSError(errno.ESTALE, "replaced while it was opened")
        return io.FileIO(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _lies_below(handle: int, root: str) -> bool:
    """Whether the system says (Linux does) that what is open lies below a folder that is no link."""
    try:
        return os.readlink(f"/proc/self/fd/{handle}").startswith(os.path.join(root, ""))
    except OSError:
        return False


def _decompressed(file: Any, start: int, chunk: int) -> Iterator[bytes]:
    most = max(UNPACKED, UNPACKED_TIMES * os.fstat(file.fileno()).st_size)
    unpacking = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    with unpacking.stream_reader(file, read_across_frames=True) as reader:
        left = start
        while left > 0:
            passed = reader.read(min(left, chunk))
            if not passed:
                return
            left -= len(passed)
        done = start
        while data := reader.read(min(chunk, max(most - done, 0) + 1)):
            yield data[: most - done]
            done += len(data)
            if done > most:
                raise OSError(
                    errno.EFBIG, f"it unpacks to more than {UNPACKED_TIMES} times its size; the rest is not read"
                )


def read_rows(
    found: Found, known: Mapping[str, str] | None = None, since: dict[str, Any] | None = None
) -> Iterator[Row]:
    """The rows of a document, a tree of documents or a database, as they stand now.

    `known`: the revisions already recorded, by `table/key`; rows that have them are left out. `since`: what the last
    reading left there; only what is new or other since is read, and the dict takes what the next reading needs (only
    when all rows were read; it is plain JSON). An empty dict reads everything.

    Raises SourceUnreadable, also after rows were given: they are right, the rest comes another time.
    """
    for row in _rows(found, since):
        if known is None or known.get(f"{row.table}/{row.key}") != row.rev:
            yield row


def changed(found: Found, before: str | None = None) -> str | None:
    """A token of what the source holds now, None when it is still `before`. Only names, sizes and times are looked at.

    Of a shared source the token is of the rows that are this group's: None when it has none. It is read for that once.

    Take the token first and read then: what is written meanwhile gives another token. Raises SourceUnreadable.
    """
    try:
        kind = found.source.kind
        if kind == "shared":
            part, trouble = _part(found)
            said = "".join([*(row.rev for row in part), trouble])
            token = hashlib.sha256(said.encode()).hexdigest()[:16] if said else None
            return None if token == before else token
        if kind == "tree":
            files = [_stat(path) for path, _ in _documents(found)]
        else:
            suffixes = ("", "-wal", "-journal") if kind == "table" else ("",)
            files = [_stat(found.path + suffix) for suffix in suffixes]
    except OSError as error:
        raise SourceUnreadable(source=found.path, reason=error.strerror or str(error)) from error
    digest = hashlib.sha256()
    newest = 0
    for info in files:
        newest = max(newest, info[2])
        digest.update(repr(info).encode())
    token = digest.hexdigest()[:16]
    # A change within the same tick of the file system's clock would have the same time: looked at once more.
    if time.time_ns() - newest < TICK:
        token += "+"
    return None if token == before else token


def _stat(path: str) -> tuple[int, int, int]:
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return (0, 0, 0)
    return (info.st_ino, info.st_size, info.st_mtime_ns)


def _rows(found: Found, since: dict[str, Any] | None) -> Iterator[Row]:
    kind = found.source.kind
    if kind == "document":
        name = os.path.basename(found.path)
        yield _document(found.path, found.root, name, name)
    elif kind == "tree":
        yield from _tree(found, since)
    elif kind == "shared":
        part, trouble = _part(found)
        yield from part
        if trouble:
            raise SourceUnreadable(source=found.path, reason=trouble)
    else:
        yield from _table(found, since)


def _document(path: str, root: str, table: str, key: str) -> Row:
    """A document whole. One longer than a line may be is not read: SourceUnreadable, so that memory stays bounded."""
    try:
        with opened(path, root) as file:
            if os.fstat(file.fileno()).st_size > LIMIT:
                raise SourceUnreadable(source=path, reason=f"a document longer than {LIMIT} bytes")
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise SourceUnreadable(source=path, reason=error.strerror or str(error)) from error
    return Row(table, key, revision_of(data), {}, data)


class _Shared(Struct):
    """A shared source as it was read last: how its files stood, its rows by group and key, and where to read on."""

    stood: tuple[tuple[int, int, int], ...]
    inode: int
    rows: dict[str, dict[str, Row]] = {}
    marks: dict[str, Any] = {}
    trouble: str = ""
    """What its schema refused."""


_shared: dict[str, _Shared] = {}
"""By path: read once for all its groups."""


def _part(found: Found) -> tuple[list[Row], str]:
    """The rows of a shared source that belong to the group, in their order, and what could not be read of it.

    A line is a row named by its digest: one that comes again is known. What does not end with a newline yet comes another
    time. A line that names no group is no one's.
    """
    suffixes = ("", "-wal", "-journal") if found.place.queries else ("",)
    stood = tuple(_stat(found.path + suffix) for suffix in suffixes)
    known = _shared.get(found.path)
    if known is None or known.stood != stood:
        known = _shared_table(found, stood, known) if found.place.queries else _shared_lines(found, stood)
        if time.time_ns() - max(mtime for _, _, mtime in stood) < TICK:
            known.stood = ()  # a change within the same tick would have the same time: looked at once more
        _shared[found.path] = known
    group = found.source.group
    mine = known.rows.get(group) or known.rows.get(os.path.dirname(group), {})
    return list(mine.values()), known.trouble


def _shared_lines(found: Found, stood: tuple[tuple[int, int, int], ...]) -> _Shared:
    owner, parts = found.place.owner, found.place.parts
    told = _Shared(stood, stood[0][0])
    table = os.path.basename(found.path)
    data = _document(found.path, found.root, table, table).data if told.inode else b""
    if parts is not None:
        said = parts(data)
    else:
        assert callable(owner), f"{found.place.pattern} does not say whose its lines are"
        said = [(group, line) for line in data.split(b"\n")[:-1] if line.strip() and (group := owner(line)) is not None]
    for group, line in said:
        name = revision_of(line)
        told.rows.setdefault(group, {}).setdefault(name, Row(table, name, name, {}, line))
    return told


def _shared_table(found: Found, stood: tuple[tuple[int, int, int], ...], before: _Shared | None) -> _Shared:
    owner = found.place.owner
    assert isinstance(owner, str), f"{found.place.pattern} does not say whose its rows are"
    told = _Shared(stood, stood[0][0])
    if before is not None and before.inode == told.inode:
        told.rows, told.marks = before.rows, before.marks
    try:
        for query, values in tables.rows(found.path, found.place.queries, told.marks) if told.inode else ():
            group = values.pop(owner)
            key = f"{query.table}/" + "/".join(str(values.get(k)) for k in query.key)
            told.rows.setdefault(str(group), {})[key] = Row(
                query.table, key.split("/", 1)[1], revision_of_values(values), values
            )
    except tables.Unreadable as error:
        told.trouble = str(error)
    return told


def _tree(found: Found, since: dict[str, Any] | None) -> Iterator[Row]:
    """The documents of a tree; with `since` only those whose size or time is another than at the last reading."""
    before: dict[str, str] = (since or {}).get("files") or {}
    after: dict[str, str] = {}
    unreadable: SourceUnreadable | None = None
    try:
        for path, relative in _documents(found):
            inode, size, mtime = _stat(path)
            fresh = time.time_ns() - mtime < TICK
            after[relative] = "" if fresh else f"{inode}:{size}:{mtime}"
            if before.get(relative) and before[relative] == after[relative]:
                continue
            try:
                yield _document(path, found.root, relative.split("/", 1)[0], relative)
            except SourceUnreadable as error:
                after[relative] = ""
                if os.path.lexists(path):
                    unreadable = error
    except OSError as error:
        raise SourceUnreadable(source=found.path, reason=error.strerror or str(error)) from error
    if since is not None:
        since["files"] = after
    if unreadable is not None:
        raise unreadable


def _documents(found: Found) -> list[tuple[str, str]]:
    """The JSON documents of a tree, in the order the place says, with their paths below it. Links are not followed."""
    arrange = found.place.arrange
    listed: list[tuple[tuple[str, ...], str, str]] = []
    for base, folders, names in os.walk(found.path):
        folders.sort()
        for name in names:
            if not name.endswith(".json"):
                continue
            path = os.path.join(base, name)
            relative = os.path.relpath(path, found.path).replace(os.sep, "/")
            place = arrange(relative) if arrange else tuple(relative.split("/"))
            if place is not None and os.path.isfile(path) and not os.path.islink(path):
                listed.append((place, path, relative))
    listed.sort()
    return [(path, relative) for _, path, relative in listed]


def _table(found: Found, since: dict[str, Any] | None) -> Iterator[Row]:
    try:
        for query, values in tables.rows(found.path, found.place.queries, since):
            key = "/".join(str(values.get(k)) for k in query.key)
            rowid = values.get("rowid")
            start = rowid if isinstance(rowid, int) else 0
            yield Row(query.table, key, revision_of_values(values), values, start=start)
    except tables.Unreadable as error:
        raise SourceUnreadable(source=found.path, reason=str(error)) from error


def revision_of(data: bytes) -> str:
    """Digest of a document's content, 16 hex digits."""
    return hashlib.sha256(data).hexdigest()[:16]


def revision_of_values(values: dict[str, Any]) -> str:
    """Digest of a row's content, 16 hex digits: the same values give the same digest."""
    text = json.dumps(values, sort_keys=True, default=lambda v: v.hex() if isinstance(v, bytes) else str(v))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
