"""A home recorded into a store of its own, and what a user would then be told of it."""

import contextlib
import sqlite3
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from asrd import query
from asrd.client import open_reader
from asrd.daemon import sync_once
from asrd.paths import Folders, folders
from asrd.query import Stored
from asrd.recorders.base import StreamKey
from asrd.records import AnyRecord, decode
from asrd.store.index import stream_files
from asrd.store.rows import IndexRows


class Recorded:
    """A store that was brought up to date and is not written any more."""

    def __init__(self, where: Folders, db: sqlite3.Connection) -> None:
        self.where, self.db = where, db
        self.rows = IndexRows(db, where.streams)

    def usage(self) -> dict[str, Any]:
        """The total of `asrd usage`."""
        return query.usage(self.rows)["total"]

    def sessions(self) -> dict[StreamKey, list[AnyRecord]]:
        """The records of every session."""
        return {key_of(s): [decode(line) for line in self.rows.lines(s, 0)] for s in self.rows.sessions()}

    def streams(self) -> dict[str, bytes]:
        """The stream files, byte for byte, by their path below `streams`."""
        return streams_of(self.where)


def key_of(stored: Stored) -> StreamKey:
    return StreamKey(stored.row.agent, stored.row.session_id, stored.row.namespace)


def streams_of(where: Folders) -> dict[str, bytes]:
    return {str(p.relative_to(where.streams)): p.read_bytes() for p in stream_files(where.streams)}


def environment(home: Path, store: Path, **more: str) -> dict[str, str]:
    """What asrd finds in its environment: this home, and all of its own below `store`."""
    return {"HOME": str(home), "ASRD_HOME": str(store), **more}


@contextlib.contextmanager
def recorded(home: Path, store: Path, env: Mapping[str, str] | None = None) -> Generator[Recorded]:
    """The home, recorded as `asrd sync` does it."""
    env = environment(home, store) if env is None else env
    where = folders(env)
    sync_once(where, env)
    db = open_reader(where)
    try:
        yield Recorded(where, db)
    finally:
        db.close()
