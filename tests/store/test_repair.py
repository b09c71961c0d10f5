"""Repair: whatever is damaged, what can be read is kept, what cannot be is put aside, and the stream is valid again."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from asrd.daemon import sync_once
from asrd.paths import Folders
from asrd.store.check import check
from asrd.store.index import remove
from asrd.store.repair import Repaired, repair
from asrd.upkeep import Job, Upkeep, work
from tests.homes import environment
from tests.test_upkeep import NOW
from tests.upkeep_of import CODEX, S2, opened, paths, store_of, told


def repaired(where: Folders) -> list[Repaired]:
    store = opened(where)
    try:
        return list(repair(store))
    finally:
        store.close()


def troubles(where: Folders) -> list[str]:
    store = opened(where)
    try:
        return [c.path for c in check(store.disk, where.streams) if c.trouble or c.torn]
    finally:
        store.close()


def aside(where: Folders) -> bytes:
    """All that was put aside."""
    return b"".join(p.read_bytes() for p in sorted((where.store / "quarantine").rglob("*")) if p.is_file())


def change(lines: list[bytes], number: int, new: bytes) -> bytes:
    return b"\n".join([*lines[:number], new, *lines[number + 1 :]])


DAMAGE: dict[str, Callable[[bytes, list[bytes]], bytes]] = {
    "a torn tail": lambda data, lines: data + b'{"type":"message","seq"',
    "zeros in a line": lambda data, lines: change(lines, 20, b"\0" * len(lines[20])),
    "a line cut in two": lambda data, lines: change(lines, 20, lines[20][:40] + b"\n" + lines[20][40:]),
    "two lines run into each other": lambda data, lines: b"\n".join([*lines[:30], lines[30] + lines[31], *lines[32:]]),
    "lines that are gone": lambda data, lines: b"\n".join([*lines[:10], *lines[14:]]),
    "a line doubled": lambda data, lines: b"\n".join([*lines[:10], lines[9], *lines[10:]]),
    "the last line": lambda data, lines: change(lines, len(lines) - 2, b'{"type": nonsense}'),
    "a message's response": lambda data, lines: change(
        lines, next(i for i, x in enumerate(lines) if b'"type":"inference"' in x and b'"usage"' in x), b"\xff\xfe"
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_stream_is_whole_again_and_counts_as_before(tmp_path: Path, damage: str) -> None:
    where = store_of(S2, tmp_path / "store")
    before = told(where)["usage"]
    path = where.streams / max(paths(where), key=lambda p: (where.streams / p).stat().st_size)
    data = path.read_bytes()
    lines = data.split(b"\n")
    bad = DAMAGE[damage](data, lines)
    path.write_bytes(bad)
    remove(where.index)

    (done,) = repaired(where)

    assert troubles(where) == []
    kept = set(path.read_bytes().split(b"\n"))
    left = [x for x in bad.split(b"\n") if x not in kept]
    assert [x for x in left if x not in aside(where)] == []
    assert done.path == str(path.relative_to(where.streams))
    sync_once(where, environment(S2, tmp_path / "store"))  # the sources are read again
    assert told(where)["usage"] == before
    assert repaired(where) == []


def test_a_gap_says_where_what_it_stands_for_lies(tmp_path: Path) -> None:
    where = store_of(CODEX, tmp_path / "store")
    path = where.streams / paths(where)[0]
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(change(lines, 7, b"nonsense"))

    (done,) = repaired(where)

    gap = msgspec.json.decode(path.read_bytes().split(b"\n")[7])
    said = gap["_meta"]["dev.asrd.repaired"]
    assert (gap["type"], gap["seq"], gap["id"], gap["reason"]) == ("gap", 7, "r7", "unreadable")
    assert (where.store / "quarantine" / said["file"]).read_bytes() == b"nonsense\n"
    assert (done.gaps, done.kept, done.aside) == (1, len(lines) - 2, [said["file"]])


def test_a_header_is_made_anew_from_the_index(tmp_path: Path) -> None:
    where = store_of(CODEX, tmp_path / "store")
    before = told(where)
    path = where.streams / paths(where)[0]
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(change(lines, 0, b"\0" * 30))

    (done,) = repaired(where)

    assert done.what.startswith("its header was made anew")
    assert troubles(where) == []
    assert told(where)["usage"] == before["usage"]
    sync_once(where, environment(CODEX, tmp_path / "store"))
    assert path.read_bytes().count(b"\n") == len(lines) - 1  # nothing came twice


def test_what_nothing_is_known_of_is_put_aside_whole_and_recorded_anew(tmp_path: Path) -> None:
    where = store_of(CODEX, tmp_path / "store")
    before = told(where)
    path = where.streams / paths(where)[0]
    bad = b"\0" * 30 + path.read_bytes()[30:]
    path.write_bytes(bad)
    remove(where.index)

    (done,) = repaired(where)

    assert "put aside whole" in done.what
    assert aside(where) == bad
    remove(where.cursors)
    sync_once(where, environment(CODEX, tmp_path / "store"))
    assert told(where)["usage"] == before["usage"]


@pytest.mark.parametrize("where_at", ["a frame", "the tables"])
def test_a_damaged_sealed_stream_keeps_what_can_be_read(tmp_path: Path, where_at: str) -> None:
    home = tmp_path / "home"
    shutil.copytree(CODEX, home)
    where = store_of(home, tmp_path / "store")
    before = told(where)["usage"]
    (path,) = paths(where)
    store = opened(where)
    work(Upkeep(store), Job(seal=[path]), NOW)
    store.close()
    sealed = where.streams / (path + ".zst")
    data = sealed.read_bytes()
    bad = data[:500] + b"\xff" * 30 + data[530:] if where_at == "a frame" else data[:-9]
    sealed.write_bytes(bad)
    assert told(where)["usage"] == before  # what was taken in stays until it is repaired

    repaired(where)

    assert troubles(where) == []
    sync_once(where, environment(home, tmp_path / "store"))
    assert told(where)["usage"] == before
