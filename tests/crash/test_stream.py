"""The power goes at every operation of the disk, with several tears of what was being written: a whole prefix is left.

And after it all is as if the power had never gone: also when the index and the cursors went with it.
"""

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import asrd.store
import asrd.tail
from asrd.paths import Folders, folders
from asrd.store import Store
from asrd.store.check import check
from asrd.store.disk import RealDisk
from asrd.store.index import remove
from asrd.tail import Group, Quiet, Tail
from tests.disks import FragileDisk, PowerCut
from tests.faults.figures import figure
from tests.golden import CAPTURES
from tests.homes import environment, recorded, streams_of
from tests.schedules import difference, paces, pieces

TEARS = 2
PORTIONS = 10
HOMES = ("claude-code/S2", "codex/S3")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is told a few records at a time."""
    monkeypatch.setattr(asrd.store, "PART", 5)


@pytest.fixture(params=HOMES)
def whole(request: pytest.FixtureRequest) -> Path:
    """A home as it is in the end."""
    return CAPTURES / request.param / "home"


def arrive(whole: Path, home: Path) -> Iterator[None]:
    """Lets a home grow: each file comes in a few portions, cut anywhere, those of one session one after the other."""
    for portion in portions(whole):
        for path, data in portion:
            assert data is not None
            target = home / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("ab") as file:
                file.write(data)
        yield


def portions(whole: Path) -> list[list[tuple[str, bytes | None]]]:
    arriving = pieces(whole, random.Random(4))
    size = len(arriving) // PORTIONS + 1
    return [arriving[at : at + size] for at in range(0, len(arriving), size)]


def take_in(where: Folders, whole: Path, home: Path, disk: FragileDisk) -> bool:
    """Follows a home while it grows, as the daemon does; whether the power lasted."""
    store: Store | None = None
    try:
        store = Store(where, disk)
        tail = Tail(store, home, {}, Quiet())
        due: list[Group] = []

        def cannot_wait() -> None:
            if due:
                group = due.pop()
                tail.observe(group)
                tail.sync_groups([group])

        for _ in arrive(whole, home):
            due += tail.scan()
            while due:
                tail.observe(due.pop())
                tail.sync(cannot_wait)
        tail.close()
        store.close()
        return True
    except PowerCut:
        if store is not None:
            disk.close()
            store.index.close()
            store.cursors.close()
        return False


def operations(whole: Path, work: Path) -> int:
    """How many operations of the disk it takes to follow the home to its end."""
    disk = FragileDisk()
    assert take_in(folders(environment(work / "home", work / "store")), whole, work / "home", disk)
    disk.close()
    return disk.operations


@pytest.mark.parametrize("caches", ["kept", "deleted"])
def test_a_crash_anywhere_leaves_a_whole_prefix_and_is_made_good(whole: Path, tmp_path: Path, caches: str) -> None:
    with recorded(whole, tmp_path / "whole-store") as one:
        wanted, figures = one.streams(), one.usage()
    with paces(random.Random(1)):
        asrd.tail.SAVE_AFTER = 0.0
        count = operations(whole, tmp_path / "count")
        for fuse in range(count):
            chance = random.Random(fuse)
            work = tmp_path / f"cut-{fuse}"
            where = folders(environment(work / "home", work / "store"))
            disk = FragileDisk(fuse)

            assert not take_in(where, whole, work / "home", disk)

            for tear in range(TEARS):
                torn = folders(environment(whole, work / f"torn-{tear}"))
                lose_power(disk, where, torn, chance)
                for name, data in streams_of(torn).items():
                    left = data[: data.rfind(b"\n") + 1]
                    assert wanted[name].startswith(left), f"{name} is no prefix after a cut at operation {fuse}"
                if caches == "deleted":
                    remove(torn.index)
                    remove(torn.cursors)
                shutil.copytree(whole, work / "home", dirs_exist_ok=True)
                with recorded(work / "home", torn.store) as again:
                    assert difference(again.streams(), wanted) is None, f"operation {fuse}, tear {tear}"
                    assert again.usage() == figures, f"operation {fuse}, tear {tear}"
                assert not [f for f in check(RealDisk(), torn.streams) if f.trouble or f.torn]
            shutil.rmtree(work)

    assert count > 20
    figure(
        f"the power cut at each operation of the disk, index and cursors {caches} ({name_of(whole)})",
        "operations; cuts tried; lost; doubled; other answers",
        f"{count}; {count * TEARS}; 0; 0; 0",
    )


def name_of(whole: Path) -> str:
    """The capture a home is of."""
    return str(whole.parent.relative_to(CAPTURES))


def lose_power(disk: FragileDisk, where: Folders, torn: Folders, chance: random.Random) -> None:
    """A copy of the store with what the power cut left of it: all that was synced, and some prefix of the rest."""
    shutil.copytree(where.store, torn.store)
    moved = FragileDisk()
    moved.durable = {torn.store / path.relative_to(where.store): size for path, size in disk.durable.items()}
    moved.lose(chance)


def test_what_was_synced_survives_every_cut(whole: Path, tmp_path: Path) -> None:
    with paces(random.Random(2)):
        asrd.tail.SAVE_AFTER = 0.0
        count = operations(whole, tmp_path / "count")
        for fuse in range(count):
            work = tmp_path / f"cut-{fuse}"
            where = folders(environment(work / "home", work / "store"))
            disk = FragileDisk(fuse)
            take_in(where, whole, work / "home", disk)
            before = streams_of(where)

            disk.lose(random.Random(fuse))

            after = streams_of(where)
            for path, size in disk.durable.items():
                name = str(path.relative_to(where.streams))
                assert after.get(name, b"")[:size] == before.get(name, b"")[:size]
            shutil.rmtree(work)
    figure(
        f"the power cut at each operation of the disk, what was synced before ({name_of(whole)})",
        "operations; bytes lost",
        f"{count}; 0",
    )


def test_the_index_says_nothing_that_is_not_durable(whole: Path, tmp_path: Path) -> None:
    with paces(random.Random(3)):
        fuses = range(1, operations(whole, tmp_path / "count"), 3)
        for fuse in fuses:
            work = tmp_path / f"cut-{fuse}"
            where = folders(environment(work / "home", work / "store"))
            disk = FragileDisk(fuse)
            take_in(where, whole, work / "home", disk)

            with contextlib.closing(sqlite3.connect(where.index)) as db:
                told = dict(db.execute("SELECT path, bytes FROM session").fetchall())

            for path, size in told.items():
                assert size <= disk.durable[where.streams / path]
            disk.close()
    figure(
        f"the power cut at every third operation of the disk ({name_of(whole)})",
        "cuts; streams of which the index says more than is durable",
        f"{len(fuses)}; 0",
    )


def test_a_stream_that_lost_its_end_gets_it_back(whole: Path, tmp_path: Path) -> None:
    with recorded(whole, tmp_path / "store") as one:
        path = next(iter(sorted(one.where.streams.rglob("*.jsonl"))))
        wanted = one.streams()
    cuts = (1, 2, 40, path.stat().st_size // 2, path.stat().st_size - 1)
    for cut in cuts:
        path.write_bytes(path.read_bytes()[:-cut])
        remove(one.where.cursors)

        with recorded(whole, tmp_path / "store") as again:
            assert difference(again.streams(), wanted) is None
    figure(f"a stream that lost its end, by so many bytes ({name_of(whole)})", "cuts; not made good", f"{len(cuts)}; 0")
