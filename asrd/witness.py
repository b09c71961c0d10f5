"""Keeps what asrd sees of processes while it runs: which session's tool started the process that writes a source.

It is no part of any harness's source, so it has a stream of its own (`asrd`, session `observed`), append-only like all others:
one `link` an observation, each once. The index takes it in like any stream; what it proves is decided there (V2, V3).
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from asrd import __version__, clock, process
from asrd.recorders.base import StreamKey
from asrd.records import Agent, Evidence, Lineage, Link, LinkTarget, Producer, Record, Session
from asrd.rollup import OBSERVED
from asrd.store import Store

OBSERVER = StreamKey("asrd", "observed")
LOOKS = 40
"""How often a source that changes is looked at before it is let go: its writer may be gone, or of another user."""


class _Sighted(Struct):
    """A source that changes, whose process was not found yet."""

    key: StreamKey
    looks: int = 0


class Witness:
    """Looks for the processes behind sources that change. `saw` may be called on any thread; `look` on one at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, _Sighted] = {}
        self._done: set[str] = set()
        self._told: set[tuple[StreamKey, str, str]] | None = None

    def saw(self, path: str, key: StreamKey) -> None:
        """The source at this path changes now; it is this session's."""
        if path not in self._done and path not in self._waiting:
            self._waiting[path] = _Sighted(key)

    @property
    def waiting(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._waiting)

    def look(self) -> list[Record]:
        """Looks once at all processes, for every source that waits; gives what is new, to be passed to `keep`."""
        if not self._waiting:
            return []
        waiting = dict(self._waiting)
        table = process.table(waiting)
        found: list[Record] = []
        for path, one in waiting.items():
            one.looks += 1
            writer = process.writer_of(table, path, one.key.agent, one.key.session_id)
            if writer is None and one.looks < LOOKS:
                continue
            self._waiting.pop(path, None)
            if writer is not None:
                self._done.add(path)
                told = process.inherited(table, writer, one.key.agent, one.key.session_id)
                found += [link_of(one.key, t) for t in told]
        return found

    def keep(self, links: list[Record]) -> int:
        """Appends what was not told before; gives how many that were. The caller syncs the store."""
        told = self._so_far()
        fresh: list[Record] = []
        for link in links:
            assert isinstance(link, Link) and link.meta is not None
            of = link.meta[OBSERVED]["of"]
            name = (
                StreamKey(of["agent"], of["sessionId"], of.get("namespace") or ""),
                link.target.agent,
                link.target.session_id,
            )
            if name not in told:
                told.add(name)
                fresh.append(link)
        if not fresh:
            return 0
        start = self._store.next_seq(OBSERVER)
        records: list[Record] = [header(), *fresh] if start == 0 else fresh
        for seq, record in enumerate(records, start):
            record.seq, record.id = seq, f"r{seq}" if seq else "h"
        self._store.append(OBSERVER, records)
        return len(fresh)

    def _so_far(self) -> set[tuple[StreamKey, str, str]]:
        """What the stream tells already, from the index."""
        if self._told is None:
            self._told = set()
            db = self._store.index.reader()
            try:
                for r in db.execute(
                    "SELECT l.of_agent, l.of_session, l.of_namespace, l.agent, l.session_id FROM link l "
                    "JOIN session s ON s.id = l.session WHERE s.agent = ? AND l.of_session IS NOT NULL",
                    (OBSERVER.agent,),
                ):
                    self._told.add((StreamKey(r[0], r[1], r[2] or ""), r[3], r[4]))
            except sqlite3.Error:
                self._told = None
                raise
            finally:
                db.close()
        return self._told


def link_of(key: StreamKey, told: process.Inherited) -> Link:
    """One observation as a record: the session `key` was started by the one whose variable its process inherited."""
    started = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=told.started)
    of = {"agent": key.agent, "sessionId": key.session_id} | ({"namespace": key.namespace} if key.namespace else {})
    return Link(
        relation="spawned_by",
        target=LinkTarget(agent=told.agent, session_id=told.session_id),
        evidence=Evidence(kind="process", field=f"environ.{told.variable}", value=told.session_id),
        at=clock.now_text(),
        at_source="recorder",
        meta={
            OBSERVED: {
                "of": of,
                "startedAt": started.isoformat().replace("+00:00", "Z"),
                "chained": told.chained,
                "pid": told.pid,
                "ancestors": list(told.ancestors),
                **({"callId": told.call_id} if told.call_id else {}),
            }
        },
    )


def header() -> Session:
    """The first record of what asrd observed."""
    return Session(
        format_version="0.1",
        agent=Agent(name=OBSERVER.agent, version=__version__),
        session_id=OBSERVER.session_id,
        producer=Producer(name="asrd", version=__version__, method="native"),
        authority="local",
        started_at=clock.now_text(),
        lineage=Lineage(),
        scope="secondary",
        profiles=["lineage"],
        content_level="metadata",
    )
