"""Sources that arrive in random pieces, with restarts, kills and power cuts between: `run(home, work, seed)`.

`python -m tests.schedules [COUNT] [CASE…]` runs schedules over the captures and prints how many gave the same streams.
"""

import contextlib
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import asrd.tail
from asrd.paths import Folders, folders
from asrd.places import Found, find
from asrd.store import Store
from asrd.store.index import remove, stream_files
from asrd.tail import Quiet, Tail
from tests.disks import FragileDisk, PowerCut
from tests.golden import CAPTURES, cases


def whole(home: Path, work: Path) -> dict[str, bytes]:
    """The streams a home gives when it is there from the start."""
    where = folders({"HOME": str(home), "ASRD_HOME": str(work)})
    store = Store(where)
    tail = Tail(store, home, {}, Quiet())
    for group in tail.scan():
        tail.observe(group)
    tail.close()
    store.close()
    return streams(where)


def streams(where: Folders) -> dict[str, bytes]:
    return {str(p.relative_to(where.streams)): p.read_bytes() for p in stream_files(where.streams)}


def pieces(home: Path, chance: random.Random) -> list[tuple[str, bytes | None]]:
    """(path, bytes to append), so that each file comes in random cuts; files of one group one after the other.

    Without bytes: the folder of that name comes whole. (The records of a tree of documents stand in the order in which they
    were seen; how they arrive is tried in `tests/recorders`.)
    """
    by_group: dict[tuple[str, str], list[Found]] = {}
    for found in find(home, {}, lambda path, reason: None):
        by_group.setdefault((found.source.harness, found.source.group), []).append(found)
    queues: list[list[tuple[str, bytes | None]]] = []
    for group in by_group.values():
        queue: list[tuple[str, bytes | None]] = []
        for found in sorted(group, key=lambda f: (not f.source.sidecar, f.source.order, f.source.name)):
            path = os.path.relpath(found.path, home)
            if found.source.kind == "tree":
                queue.append((path, None))
                continue
            data = Path(found.path).read_bytes()
            if found.source.kind != "lines" or path.endswith(".zst"):
                queue.append((path, data))
                continue
            style = chance.choice(("lines", "cuts", "few", "whole"))
            if style == "lines":
                queue += [(path, line) for line in data.splitlines(keepends=True)]
            elif style == "whole" or len(data) < 4:
                queue.append((path, data))
            else:
                count = chance.randint(1, 40 if style == "cuts" else 5)
                cuts = sorted({0, len(data), *(chance.randrange(len(data)) for _ in range(count))})
                queue += [(path, data[a:b]) for a, b in zip(cuts, cuts[1:], strict=False)]
        if queue:
            queues.append(queue)
    arriving: list[tuple[str, bytes | None]] = []
    while queues:
        queue = chance.choice(queues)
        count = min(len(queue), chance.randint(1, 12))
        arriving += queue[:count]
        del queue[:count]
        if not queue:
            queues.remove(queue)
    return arriving


@contextlib.contextmanager
def paces(chance: random.Random) -> Generator[None]:
    """Nothing is waited for; states are kept each time or never, and few captures or many in memory."""
    before = {name: getattr(asrd.tail, name) for name in ("BESIDE_WAIT", "SAVE_AFTER", "OPEN_CAPTURES")}
    asrd.tail.BESIDE_WAIT = 0.0
    asrd.tail.SAVE_AFTER = chance.choice((0.0, 1e9))
    asrd.tail.OPEN_CAPTURES = chance.choice((1, 2, 48))
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(asrd.tail, name, value)


def run(capture_home: Path, work: Path, seed: int) -> dict[str, bytes]:
    """The streams after one random schedule."""
    chance = random.Random(seed)
    with paces(chance):
        return _run(capture_home, work, chance)


def _run(capture_home: Path, work: Path, chance: random.Random) -> dict[str, bytes]:
    home = work / "home"
    home.mkdir(parents=True)
    where = folders({"HOME": str(home), "ASRD_HOME": str(work / "store")})
    disk = FragileDisk()
    store = Store(where, disk)
    tail = Tail(store, home, {}, Quiet())

    def restart() -> None:
        nonlocal disk, store, tail
        disk = FragileDisk()
        while True:
            try:
                store = Store(where, disk)
                store.index.catch_up(disk)
                tail = Tail(store, home, {}, Quiet())
                return
            except PowerCut:
                continue

    def abandon() -> None:
        """What the system does to a process that ends without a word."""
        store.index.close()
        store.cursors.close()

    for path, data in pieces(capture_home, chance):
        target = home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if data is None:
            shutil.copytree(capture_home / path, target)
        else:
            with open(target, "ab") as file:
                file.write(data)
        act = chance.random()
        if act < 0.5:
            continue
        if act > 0.93:
            disk.fuse = chance.randint(0, 6)
        try:
            for group in tail.scan():
                tail.observe(group, chance.choice((1, 3000, 1 << 30)))
            tail.sync()
            if act > 0.88:
                tail.close()
                store.close()
                restart()
        except PowerCut:
            abandon()
            disk.lose(chance)
            if chance.random() < 0.2:
                remove(where.cursors)
            if chance.random() < 0.2:
                remove(where.index)
            restart()
    disk.fuse = None
    for _ in range(3):
        for group in tail.scan():
            tail.observe(group)
    tail.close()
    store.close()
    return streams(where)


def difference(given: dict[str, bytes], wanted: dict[str, bytes]) -> str | None:
    """The first difference in words, None when there is none."""
    if sorted(given) != sorted(wanted):
        return f"streams {sorted(set(given) ^ set(wanted))}"
    for name, data in wanted.items():
        for number, (ours, theirs) in enumerate(zip(given[name].splitlines(), data.splitlines(), strict=False)):
            if ours != theirs:
                return f"{name} line {number}:\n  {ours[:400]!r}\n  {theirs[:400]!r}"
        if given[name] != data:
            return f"{name}: {len(given[name].splitlines())} lines where {len(data.splitlines())} should be"
    return None


def one(case: str, seed: int) -> str | None:
    """The difference one schedule of one capture makes."""
    work = Path(tempfile.mkdtemp(prefix="asrd-schedule-"))
    try:
        home = Path(case) if os.path.isdir(case) else CAPTURES / case / "home"
        return difference(run(home, work / "run", seed), whole(home, work / "whole"))
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    chosen = sys.argv[2:] or cases()
    same = 0
    for seed in range(count):
        case = chosen[seed % len(chosen)]
        found = one(case, seed)
        same += found is None
        if found is not None:
            print(f"seed {seed} {case}: {found}")
    print(f"{same} of {count} random schedules over {len(chosen)} captures gave the same streams, byte for byte")
