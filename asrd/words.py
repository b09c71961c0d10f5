"""Keeps the search index behind the streams, in parts: what the daemon does on the side, and a command in one go."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from functools import partial

import apsw

from asrd import clock
from asrd.errors import AsrdError
from asrd.paths import Folders
from asrd.recorders.base import StreamKey
from asrd.rollup import SessionRow
from asrd.store.disk import Disk
from asrd.store.index import SESSION
from asrd.store.search import SearchIndex

log = logging.getLogger("asrd")

PART = 128 << 10
"""Bytes of streams taken in at a time: some 10 ms."""
EVERYTHING = 3600.0
"""Seconds between two looks at all sessions."""
WAIT = 0.2
AT_LEAST_EVERY = 5.0
"""Seconds between two looks while something is busy, and after which a part is taken in all the same."""
IDLE = 2.0
PAUSE = 0.01
"""Seconds between two looks at what grew, and between two parts."""
FIRST = 900.0
"""Seconds a daemon waits before it makes the first search index of a store by itself; a search makes it begin at once."""
LOW = 15
"""How nice the thread is that indexes (Linux: priorities are by thread there)."""


class WordsIndexer:
    """Takes in what streams grew by. `news`: streams that grew since; may be added to from another thread."""

    def __init__(self, folders: Folders, reader: Callable[[], sqlite3.Connection], disk: Disk) -> None:
        self.news: set[StreamKey] = set()
        self._folders = folders
        self._reader = reader
        self._disk = disk
        self._index: SearchIndex | None = None
        self._db: sqlite3.Connection | None = None
        self._late: list[SessionRow] = []
        self._looked: float | None = None
        self._lock = threading.Lock()

    def step(self, part: int = PART) -> bool:
        """Takes in a part; whether more is left. On the first call, and once an hour, all sessions are looked at."""
        with self._lock:
            if self._index is None or self._db is None:
                self._db = self._reader()
                self._index = SearchIndex(self._folders.store / "search.sqlite", self._folders.streams, self._disk)
            if not self._late:
                self._late = self._behind(self._index, self._db)
            with self._index.together():
                while self._late and part > 0:
                    row = self._late[0]
                    if not self._index.take(row, partial(self._tool, row), part):
                        self._late.pop(0)
                    part -= max(min(row.bytes, part), 4096)
            if not self._late and self._index.dropped:
                self._index.purge()
            return bool(self._late) or bool(self.news)

    def _behind(self, index: SearchIndex, db: sqlite3.Connection) -> list[SessionRow]:
        columns = ", ".join(f'"{c}"' for c in SESSION)
        if self._looked is None or clock.ticks() - self._looked >= EVERYTHING:
            self._looked = clock.ticks()
            self.news.clear()
            rows = [SessionRow(*tuple(r)) for r in db.execute(f"SELECT {columns} FROM session WHERE agent <> 'asrd'")]
            index.forget_others({StreamKey(r.agent, r.session_id, r.namespace) for r in rows})
            return index.behind(rows)
        rows: list[SessionRow] = []
        while self.news:
            with contextlib.suppress(KeyError):
                key = self.news.pop()
                sql = f"SELECT {columns} FROM session WHERE agent = ? AND session_id = ? AND namespace = ?"
                found = db.execute(sql, (key.agent, key.session_id, key.namespace)).fetchone()
                if found is not None and key.agent != "asrd":
                    rows.append(SessionRow(*tuple(found)))
        return index.behind(rows)

    def _tool(self, row: SessionRow, call: str) -> str | None:
        """The name of the tool of a call whose record was taken in before."""
        assert self._db is not None
        sql = (
            "SELECT c.name FROM call c JOIN session s ON s.id = c.session WHERE c.call_id = ? AND s.agent = ? "
            "AND s.session_id = ? AND s.namespace = ?"
        )
        found = self._db.execute(sql, (call, row.agent, row.session_id, row.namespace)).fetchone()
        return found[0] if found else None

    def run(self, stop: threading.Event, busy: Callable[[], bool], wanted: Callable[[], bool] = lambda: True) -> None:
        """Takes in whatever comes until told to stop, at most a quarter of the time; hardly while something is `busy`.

        `wanted`: whether anyone searched. A store without a search index gets one only then, or after a while: it takes
        minutes for a large store, and many never search.
        For a thread of its own, whose priority is lowered where the system knows priorities by thread.
        """
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW)
        asked_from = clock.ticks() + FIRST
        while not (wanted() or self._made() or clock.ticks() >= asked_from):
            if stop.wait(IDLE):
                return
        more, last = True, clock.ticks()
        while not stop.wait(PAUSE if more else IDLE):
            if busy() and clock.ticks() - last < AT_LEAST_EVERY:
                more = not stop.wait(WAIT)
                continue
            started = clock.ticks()
            try:
                more = self.step()
            except (AsrdError, OSError, sqlite3.Error, apsw.Error) as error:
                log.warning("search: %s", error)
                more = False
            last = clock.ticks()
            if stop.wait(3 * (last - started)):
                break
        self.close()

    def _made(self) -> bool:
        return (self._folders.store / "search.sqlite").exists()

    def close(self) -> None:
        """Closes what was opened."""
        with self._lock:
            if self._index is not None:
                self._index.close()
            if self._db is not None:
                self._db.close()
            self._index = self._db = None
