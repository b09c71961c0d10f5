"""Reads SQLite databases that belong to someone else, while they are written, without any trace of the reading.

Invariants
    - The owner's files are opened for reading only, and never locked: no `fcntl` lock, no `-shm`, no journal, no
      checkpoint. What SQLite would write, lock or delete ends in `_Files`, which can do none of it. A reader that is
      killed leaves nothing behind.
    - What is given is one committed state: the pages of the database file together with the frames of its write-ahead
      log as they were when reading began. When the owner changed the database file meanwhile (a checkpoint, a commit
      without a log), what was read since is thrown away and read again.
    - Only the pages that a query needs are read, never the whole database for one new row.

Where the database cannot be read in place (a crashed transaction left a rollback journal, a writer that never pauses),
it is read from a private copy, a reflink where the file system has them. Why each step is safe stands in
`docs/decisions/0005-reading-databases.md`.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import apsw
from msgspec import Struct

from asrd.sources import RowQuery

TRIES = 6
"""How often a database is read again because it was changed meanwhile, before a private copy is taken."""
PAUSE = 0.02
"""Seconds between tries; also how old a change must be for its time stamp to tell it from the next one (Linux counts
file times in ticks of at most 10 ms)."""
BATCH = 1000
"""Rows that are read before it is looked at whether the database was changed meanwhile."""
BATCH_BYTES = 16 << 20
"""Bytes of text after which it is looked at too."""
WAL_LIMIT = 1 << 30
"""Bytes of a write-ahead log that are read into memory; with more a private copy is taken."""
FICLONE = 0x40049409
"""ioctl of Linux (linux/fs.h): share the blocks of another file."""


class Changed(Exception):
    """The owner changed the database file while it was read."""


class Unreadable(Exception):
    """What stood in the way, in a few words."""


class Counts(Struct):
    """What reading cost, for measurements."""

    bytes: int = 0
    opened: int = 0
    copied: int = 0


counts = Counts()


# ---------------------------------------------------------------- the rows


def rows(
    path: str, queries: tuple[RowQuery, ...], since: dict[str, Any] | None = None
) -> Iterator[tuple[RowQuery, dict[str, Any]]]:
    """The rows the queries give, in their order; `since` holds the marks of the last reading and takes the new ones.

    Marks are changed only when all rows were given. What the schema refuses, or has not of what a query must have, is
    reported at the end.

    Raises:
        Unreadable: the database cannot be read now, or a query was refused.
    """
    reading = _Reading(path, dict(since or {}))
    try:
        for number, query in enumerate(queries):
            for values in reading.rows(f"{number}/{query.table}", query):
                yield query, values
    finally:
        reading.close()
    if since is not None:
        since.update(reading.marks)
    if reading.refused:
        raise Unreadable("; ".join(reading.refused))


class _Reading:
    """One reading of a database: the state it is in, as long as it stands, and the marks."""

    def __init__(self, path: str, since: dict[str, Any]) -> None:
        self.marks: dict[str, Any] = {}
        self.refused: list[str] = []
        self._path = path
        self._since = since
        self._held = ExitStack()
        self._shot: Snapshot | None = None
        self._failed = 0
        self._whole: set[str] = set()
        """Queries whose `changed` the schema refuses: they are read whole."""

    def close(self) -> None:
        self._shot = None
        self._held.close()

    def rows(self, name: str, query: RowQuery) -> Iterator[dict[str, Any]]:
        """The rows of one query. When the database was changed meanwhile it goes on behind the rows already given."""
        taken = 0
        while True:
            try:
                for values in self._rows(name, query, taken):
                    taken += 1
                    yield values
                return
            except Changed:
                self._again("it is written without a pause; again later")
            except (apsw.BusyError, apsw.LockedError, apsw.CantOpenError) as error:
                self._again(str(error))
            except (apsw.SQLError, apsw.SchemaChangeError) as error:
                if query.changed is None or name in self._whole:
                    self.refused.append(f"{query.table}: {error}")
                    return
                self._whole.add(name)
            except (apsw.Error, OSError) as error:
                raise Unreadable(str(error)) from error

    def _again(self, reason: str) -> None:
        self.close()
        self._failed += 1
        if self._failed > TRIES + 2:
            raise Unreadable(reason)
        time.sleep(PAUSE * self._failed)

    def _snapshot(self) -> Snapshot:
        if self._shot is None:
            self._held = ExitStack()
            self._shot = self._held.enter_context(snapshot(self._path, copy=self._failed >= TRIES))
        return self._shot

    def _rows(self, name: str, query: RowQuery, taken: int) -> Iterator[dict[str, Any]]:
        """The rows of one query but the first `taken`, given in batches that are known to be of one state."""
        shot = self._snapshot()
        have: set[str] = set()
        for kind, table in execute(shot.db, "SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view')"):
            if kind == "table":
                have.add(table)
            elif re.search(rf"\b{re.escape(table)}\b", " ".join((query.sql, query.mark or "", query.changed or ""))):
                self._refuse(f"{table} is a view, which may never end")
                return
        absent = [table for table in query.needs or (query.table,) if table not in have]
        if absent:
            if query.columns:
                self._refuse(f"another schema: no table {', '.join(absent)}")
            return
        sql, values = self._wanted(shot.db, name, query)
        for batch in _batches(itertools.islice(_rows(shot.db, sql, values), taken, None)):
            shot.check()
            if missing := [column for column in query.columns if column not in batch[0]]:
                self._refuse(f"another schema: {query.table} has no {', '.join(missing)}")
            for row in batch:
                if query.since is not None:
                    self._raise_mark(name, row.get(query.since))
                yield {k: v for k, v in row.items() if not k.startswith("_")}
        shot.check()

    def _wanted(self, db: apsw.Connection, name: str, query: RowQuery) -> tuple[str, dict[str, Any]]:
        """The query for what is new or other since the mark; the whole query where there is none, or it went back."""
        mark = self._since.get(name)
        if query.mark is not None and query.changed is not None:
            now = _mark(db, query.mark)
            if now is None:
                return query.sql, {}
            self.marks[name] = now
            if mark is None or now < mark or name in self._whole:
                return query.sql, {}
            return query.changed, {"since": mark}
        if query.since is not None and mark is not None:
            self._raise_mark(name, mark)
            return f'SELECT * FROM ({query.sql}) WHERE "{query.since}" >= :since', {"since": mark}
        return query.sql, {}

    def _refuse(self, what: str) -> None:
        if what not in self.refused:
            self.refused.append(what)

    def _raise_mark(self, name: str, value: Any) -> None:
        best = self.marks.get(name)
        if value is not None and (best is None or value > best):
            self.marks[name] = value


def execute(db: apsw.Connection, sql: str, values: Mapping[str, Any] | None = None) -> apsw.Cursor:
    """Runs a statement; its rows are read from the cursor. Raises apsw.Error."""
    return db.execute(sql, values)  # pyright: ignore[reportUnknownMemberType]


def _batches(found: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for row in found:
        batch.append(row)
        size += sum(len(v) for v in row.values() if isinstance(v, (str, bytes)))
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _mark(db: apsw.Connection, sql: str) -> Any:
    """The mark, or None where the schema has none (then everything is read)."""
    try:
        return next(iter(execute(db, sql)), (None,))[0]
    except apsw.SQLError:
        return None


def _rows(db: apsw.Connection, sql: str, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    given = 0
    try:
        for row in _plain_rows(db, sql, values):
            given += 1
            yield row
    except UnicodeDecodeError:
        yield from itertools.islice(_mended_rows(db, sql, values), given, None)


def _plain_rows(db: apsw.Connection, sql: str, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    names: list[str] = []
    cursor = execute(db, sql, values)
    for row in cursor:
        if not names:
            names = [c[0] for c in cursor.get_description()]
        yield dict(zip(names, row, strict=True))


def _mended_rows(db: apsw.Connection, sql: str, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a query some of whose text is no UTF-8: the bytes that are none become U+FFFD."""
    names = _names(db, sql, values)
    columns = ", ".join(
        f"typeof({n}), CASE typeof({n}) WHEN 'text' THEN CAST({n} AS BLOB) ELSE {n} END" for n in map(_quoted, names)
    )
    for row in execute(db, f"SELECT {columns} FROM ({sql})", values):
        pairs = zip(names, row[::2], row[1::2], strict=True)
        yield {n: v.decode("utf-8", "replace") if kind == "text" else v for n, kind, v in pairs}


def _names(db: apsw.Connection, sql: str, values: Mapping[str, Any]) -> list[str]:
    cursor = db.cursor()
    found: list[str] = []

    def keep(one: apsw.Cursor, _sql: str, _values: Any) -> bool:
        found.extend(c[0] for c in one.get_description())
        return False

    cursor.exec_trace = keep
    try:
        cursor.execute(sql, values)  # pyright: ignore[reportUnknownMemberType]
    except apsw.ExecTraceAbort:
        pass
    return found


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# ---------------------------------------------------------------- one state of a database


class Stamp(Struct, frozen=True):
    """What tells one content of a database file from another: its inode, size and time, and its rollback journal."""

    inode: int
    size: int
    mtime: int
    journal: tuple[int, int] | None


def stamp(path: str) -> Stamp:
    """The stamp of a database file as it is now. Raises OSError."""
    info = os.stat(path)
    return Stamp(info.st_ino, info.st_size, info.st_mtime_ns, _hot_journal(path))


def _hot_journal(path: str) -> tuple[int, int] | None:
    """Size and time of a rollback journal that holds something; None when there is none, or an empty or cleared one."""
    try:
        with open(path + "-journal", "rb", buffering=0) as file:
            if file.read(8) != b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7":
                return None
            info = os.fstat(file.fileno())
    except FileNotFoundError:
        return None
    return info.st_size, info.st_mtime_ns


class Snapshot:
    """A database as it stands at one moment. `check` says whether it still does."""

    def __init__(self, db: apsw.Connection, path: str, seen: Stamp | None) -> None:
        self.db = db
        self._path = path
        self._seen = seen

    def check(self) -> None:
        """Raises Changed when the database file was written since the snapshot began (a private copy never is)."""
        if self._seen is not None and stamp(self._path) != self._seen:
            raise Changed


@contextmanager
def snapshot(path: str, *, copy: bool = False) -> Generator[Snapshot]:
    """A database for reading, in place or from a private copy. Raises Changed, OSError, apsw.Error."""
    counts.opened += 1
    with _copied(path) if copy else _in_place(path) as shot:
        yield shot


@contextmanager
def _in_place(path: str) -> Generator[Snapshot]:
    seen = _settled(path)
    if seen.journal is not None:
        raise Changed
    main = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        files = _Files(main, _log(path + "-wal"))
        try:
            db = apsw.Connection(path, vfs=files.name, flags=apsw.SQLITE_OPEN_READONLY)
            try:
                # The index of the log is kept on the heap, so that no -shm is needed.
                execute(db, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA query_only=1; PRAGMA cache_size=-8000")
                yield Snapshot(db, path, seen)
            finally:
                db.close(True)
        finally:
            files.unregister()
    finally:
        os.close(main)


def _settled(path: str) -> Stamp:
    """The stamp, taken when it is old enough that a later change is sure to have another."""
    seen = stamp(path)
    if 0 <= time.time_ns() - seen.mtime < PAUSE * 1e9:
        time.sleep(PAUSE)
        again = stamp(path)
        if again != seen:
            raise Changed
    return seen


def _log(path: str) -> bytes:
    """The write-ahead log, whole and of one generation; empty when there is none.

    A log is begun again by writing its header first: the same header before and after means that no frame read between
    was of another generation. A frame that is cut ends the log, as its checksum does not fit.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size > WAL_LIMIT:
                raise Changed
            parts: list[bytes] = []
            while data := file.read(1 << 24):
                parts.append(data)
            whole = b"".join(parts)
            if os.pread(file.fileno(), 32, 0) != whole[:32]:
                raise Changed
    except FileNotFoundError:
        return b""
    counts.bytes += len(whole)
    return whole


@contextmanager
def _copied(path: str) -> Generator[Snapshot]:
    before = _settled(path)
    folder = tempfile.mkdtemp(prefix="asrd-")
    try:
        copy = os.path.join(folder, "db")
        for suffix in ("", "-wal", "-journal"):
            try:
                _clone(path + suffix, copy + suffix)
            except FileNotFoundError:
                if not suffix:
                    raise
        if stamp(path) != before:
            raise Changed
        counts.copied += 1
        db = apsw.Connection(copy, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            yield Snapshot(db, path, None)
        finally:
            db.close(True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _clone(path: str, copy: str) -> None:
    """Copies a file, sharing its blocks where the file system can."""
    with open(path, "rb") as source, open(copy, "xb") as target:
        os.fchmod(target.fileno(), 0o600)
        try:
            fcntl.ioctl(target.fileno(), FICLONE, source.fileno())
        except OSError:
            shutil.copyfileobj(source, target, 1 << 22)
            counts.bytes += target.tell()


# ---------------------------------------------------------------- what SQLite sees of the disk

_number = itertools.count()


class _Files(apsw.VFS):
    """The files of one database as SQLite may see them: the database file, and the log as it was. Nothing else.

    Temporary files of sorting go to SQLite's own place; nothing beside the database can be made or deleted.
    """

    def __init__(self, main: int, log: bytes) -> None:
        self.name = f"asrd-{next(_number)}"
        self.base = apsw.vfs_names()[0]
        super().__init__(self.name, self.base)
        self.main = main
        self.log = log

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            flags[1] = apsw.SQLITE_OPEN_READONLY
            return _Main(self.main)
        if flags[0] & apsw.SQLITE_OPEN_WAL:
            flags[1] = apsw.SQLITE_OPEN_READONLY
            return _Log(self.log)
        if name is None:
            return apsw.VFSFile(self.base, name, flags)
        raise apsw.CantOpenError("only the database and its log are opened")

    def xFullPathname(self, name: str) -> str:
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:
        return pathname.endswith("-wal") and bool(self.log)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        raise apsw.ReadOnlyError("the database belongs to someone else")


class _ReadOnly:
    """What SQLite asks of a file, with everything that would leave a trace refused or, for locks, nothing at all."""

    def xWrite(self, data: bytes, offset: int) -> None:
        raise apsw.ReadOnlyError("the database belongs to someone else")

    def xTruncate(self, newsize: int) -> None:
        raise apsw.ReadOnlyError("the database belongs to someone else")

    def xSync(self, flags: int) -> None: ...

    def xLock(self, level: int) -> None: ...

    def xUnlock(self, level: int) -> None: ...

    def xClose(self) -> None: ...

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, ptr: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return 4096

    def xDeviceCharacteristics(self) -> int:
        return 0


class _Main(_ReadOnly):
    def __init__(self, main: int) -> None:
        self.main = main

    def xRead(self, amount: int, offset: int) -> bytes:
        data = os.pread(self.main, amount, offset)
        counts.bytes += len(data)
        return data

    def xFileSize(self) -> int:
        return os.fstat(self.main).st_size


class _Log(_ReadOnly):
    def __init__(self, log: bytes) -> None:
        self.log = log

    def xRead(self, amount: int, offset: int) -> bytes:
        return self.log[offset : offset + amount]

    def xFileSize(self) -> int:
        return len(self.log)
