"""Stores filled in any order, and what a user is told of them."""

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asrd import query
from asrd.client import open_reader
from asrd.convert import Streams, convert_home
from asrd.paths import Folders, folders
from asrd.recorders.base import StreamKey
from asrd.records import Record, decode, encode
from asrd.store import Store
from asrd.store.rows import IndexRows
from tests.golden import CAPTURES
from tests.homes import environment

Parts = list[tuple[StreamKey, list[Record]]]


def streams_of(*cases: str) -> Streams:
    """The streams of these captures, as one store would hold them."""
    found: Streams = {}
    for case in cases:
        for key, records in convert_home(CAPTURES / case / "home").items():
            assert key not in found, f"{key} is in two captures"
            found[key] = records
    return found


def parts(streams: Mapping[StreamKey, list[Record]], chance: random.Random) -> Parts:
    """The streams in pieces, each stream's in order, mixed at random."""
    waiting: list[Parts] = []
    for key, records in streams.items():
        pieces: Parts = []
        at = 0
        while at < len(records):
            size = chance.choice((1, 3, 20, len(records)))
            pieces.append((key, records[at : at + size]))
            at += size
        waiting.append(pieces)
    found: Parts = []
    while waiting:
        pieces = chance.choice(waiting)
        found.append(pieces.pop(0))
        waiting = [w for w in waiting if w]
    return found


def copied(records: Iterable[Record]) -> list[Record]:
    return [decode(encode(r)) for r in records]


def filled(where: Path, given: Parts, chance: random.Random | None = None) -> Folders:
    """A store that took these parts in, synced now and then."""
    found = folders(environment(where / "home", where / "store"))
    store = Store(found)
    for key, records in given:
        store.append(key, copied(records))
        if chance is None or chance.random() < 0.5:
            store.sync()
    store.close()
    return found


def answers(where: Folders) -> dict[str, Any]:
    """All that depends on how sessions relate and what counts once."""
    db = open_reader(where)
    try:
        rows = IndexRows(db, where.streams)
        usage: dict[str, Any] = query.usage(rows)
        usage["bySession"].sort(key=str)
        lineage = {s.row.session_id + s.row.namespace + s.row.agent: query.lineage(rows, s) for s in rows.sessions()}
        explained = query.explain(rows, query.Selection(), None)
        return {
            "usage": usage,
            "tree": query.tree(rows, None),
            "lineage": lineage,
            "time": query.time(rows),
            "explain": sorted(map(str, explained["responses"])),
            "counted": {
                table: sorted(
                    tuple(r)
                    for r in db.execute(
                        f"SELECT i.key, s.agent, s.session_id, s.namespace, o.session_id FROM {table} i "
                        "JOIN session s ON s.id = i.session LEFT JOIN session o ON o.id = i.owner WHERE i.counted"
                    )
                )
                for table in ("inference", "call", "turn")
            },
        }
    finally:
        db.close()
