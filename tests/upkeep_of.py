"""Stores to look after: real captures recorded, and what a user is told of them in one value."""

from pathlib import Path
from typing import Any

from asrd.answers import ask
from asrd.client import open_reader
from asrd.daemon import sync_once
from asrd.paths import Folders, folders
from asrd.store import Store
from asrd.store.rows import IndexRows
from tests.golden import CAPTURES
from tests.homes import environment

S2 = CAPTURES / "claude-code" / "S2" / "home"
CODEX = CAPTURES / "codex" / "S1" / "home"


def store_of(home: Path, store: Path) -> Folders:
    """A home, recorded."""
    env = environment(home, store)
    sync_once(folders(env), env)
    return folders(env)


def opened(where: Folders) -> Store:
    store = Store(where)
    store.index.catch_up(store.disk)
    return store


def told(where: Folders) -> dict[str, Any]:
    """`usage`, `ls` and `tree`, but for how large streams are and whether they have words."""
    opened(where).close()
    db = open_reader(where)
    try:
        rows = IndexRows(db, where.streams)
        listed = ask(rows, "sessions.list", {})["sessions"]
        for one in listed:
            del one["bytes"], one["contentLevel"]
        return {
            "usage": ask(rows, "usage", {}),
            "sessions": listed,
            "tree": ask(rows, "tree", {}),
        }
    finally:
        db.close()


def lines(where: Folders, path: str) -> list[bytes]:
    """The lines of a stream, by its path below the streams, sealed or not."""
    store = Store(where)
    try:
        size = store.disk.size(where.streams / path) or 0
        return store.disk.read(where.streams / path, 0, size).split(b"\n")[:-1]
    finally:
        store.close()


def paths(where: Folders) -> list[str]:
    """Every file below the streams."""
    return sorted(str(p.relative_to(where.streams)) for p in where.streams.rglob("*") if p.is_file())
