"""Where each source was last looked at, with the recorder's state: a cache. Deleting it costs reading again."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Generator, Mapping
from pathlib import Path

from msgspec import Struct

from asrd.errors import StoreUnusable
from asrd.store.disk import damaged, database_error, make_folder

SCHEMA = """
CREATE TABLE IF NOT EXISTS source (
  harness TEXT NOT NULL, grp TEXT NOT NULL, name TEXT NOT NULL, path TEXT NOT NULL, kind TEXT NOT NULL,
  device INTEGER, inode INTEGER, size INTEGER, mtime_ns INTEGER, offset INTEGER, first TEXT,
  tail_length INTEGER, tail TEXT, state TEXT, reason TEXT, token TEXT, marks TEXT,
  PRIMARY KEY (harness, grp, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS capture (
  harness TEXT NOT NULL, grp TEXT NOT NULL, saved BLOB, skips TEXT, counts TEXT, versions TEXT,
  PRIMARY KEY (harness, grp)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS recorder (harness TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
"""
VERSION = 2


class Cursor(Struct):
    """Where one source stands. `state`: caught up | torn | gone | unreadable, with its reason."""

    harness: str
    group: str
    name: str
    path: str
    kind: str
    device: int = 0
    inode: int = 0
    size: int = 0
    mtime_ns: int = 0
    offset: int = 0
    first: str = ""
    tail_length: int = 0
    tail: str = ""
    state: str = "caught up"
    reason: str = ""
    token: str = ""
    marks: str = "{}"
    """Of rows: how far each table or document was read, as JSON (`reading.read_rows`)."""


class Saved(Struct):
    """What was kept of one group: the Capture's state, and its accounts as JSON."""

    harness: str
    group: str
    saved: bytes | None
    skips: str = "{}"
    counts: str = "{}"
    versions: str = "[]"


class Cursors:
    """The cursor file. Used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        make_folder(path.parent)
        self.path = path
        self._db = _open(path)

    def all(self) -> dict[tuple[str, str], dict[str, Cursor]]:
        """Every cursor by (harness, group), then by source name."""
        found: dict[tuple[str, str], dict[str, Cursor]] = {}
        for row in self._db.execute("SELECT * FROM source"):
            cursor = Cursor(*row)
            found.setdefault((cursor.harness, cursor.group), {})[cursor.name] = cursor
        return found

    def saved(self, harness: str, group: str) -> Saved | None:
        """What was kept of a group."""
        row = self._db.execute("SELECT * FROM capture WHERE harness = ? AND grp = ?", (harness, group)).fetchone()
        return Saved(*row) if row else None

    def accounts(self) -> list[Saved]:
        """The accounts of every group, without the captures' states."""
        rows = self._db.execute("SELECT harness, grp, NULL, skips, counts, versions FROM capture")
        return [Saved(*row) for row in rows]

    def kept(self, harness: str) -> list[bytes]:
        """The captures' states of a harness."""
        rows = self._db.execute("SELECT saved FROM capture WHERE harness = ? AND saved IS NOT NULL", (harness,))
        return [row[0] for row in rows]

    def forget(self, harness: str, sources: list[str]) -> None:
        """Forgets where these sources stand, and what their groups kept: they are read again from the start."""
        with self._db:
            for name in sources:
                groups = "SELECT grp FROM source WHERE harness = ? AND name = ?"
                self._db.execute(
                    f"DELETE FROM capture WHERE harness = ? AND grp IN ({groups})", (harness, harness, name)
                )
                self._db.execute(
                    f"UPDATE source SET token = '' WHERE harness = ? AND grp IN ({groups})", (harness, harness, name)
                )

    def revise(self, revisions: Mapping[str, int]) -> list[str]:
        """Takes in the recorders' revisions by harness; gives those whose sources are to be read again, as theirs is another.

        Where none was kept it was 1, the first. Raises StoreFull, StoreUnusable.
        """
        kept: dict[str, int] = dict(self._db.execute("SELECT harness, revision FROM recorder").fetchall())
        other = [harness for harness, revision in revisions.items() if kept.get(harness, 1) != revision]
        if other or kept.keys() != revisions.keys():
            with self._writing():
                for harness in other:
                    self._db.execute("UPDATE source SET token = '' WHERE harness = ? AND state <> 'gone'", (harness,))
                    self._db.execute("UPDATE capture SET saved = NULL WHERE harness = ?", (harness,))
                self._db.executemany("INSERT OR REPLACE INTO recorder VALUES (?, ?)", revisions.items())
        return other

    def put(self, cursors: list[Cursor], saved: list[Saved]) -> None:
        """Keeps cursors and states, all or none of them. Raises StoreFull, StoreUnusable."""
        with self._writing():
            self._db.executemany(
                "INSERT OR REPLACE INTO source VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                [tuple(getattr(c, f) for f in Cursor.__struct_fields__) for c in cursors],
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO capture VALUES (?,?,?,?,?,?)",
                [(s.harness, s.group, s.saved, s.skips, s.counts, s.versions) for s in saved],
            )

    def drop(self, cursors: list[Cursor]) -> None:
        """Forgets sources that will not come again. Raises StoreFull, StoreUnusable."""
        with self._writing():
            self._db.executemany(
                "DELETE FROM source WHERE harness = ? AND grp = ? AND name = ?",
                [(c.harness, c.group, c.name) for c in cursors],
            )

    @contextlib.contextmanager
    def _writing(self) -> Generator[None]:
        try:
            with self._db:
                yield
        except sqlite3.Error as error:
            raise database_error(self.path, error) from error

    def close(self) -> None:
        """Closes the file."""
        self._db.close()


def _open(path: Path) -> sqlite3.Connection:
    """The cursor file; one that cannot be used is put aside by deleting it, as it is only a cache."""
    for attempt in (0, 1):
        db: sqlite3.Connection | None = None
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            os.close(handle)
            db = sqlite3.connect(path, check_same_thread=False, timeout=10)
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError("another version")
            db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;" + SCHEMA)
            db.execute(f"PRAGMA user_version = {VERSION}")
            return db
        except OSError as error:
            raise StoreUnusable(store=path, reason=error.strerror) from error
        except sqlite3.DatabaseError as error:
            if db is not None:
                db.close()
            if attempt or not damaged(error):
                raise database_error(path, error) from error
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
    raise AssertionError("not reached")
