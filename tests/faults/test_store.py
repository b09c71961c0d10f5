"""A store whose disk is full, read only or taken away says so, harms nothing, and goes on when it can."""

import contextlib
import errno
import os
import random
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from asrd.daemon import sync_once
from asrd.errors import StoreFull
from asrd.ledger import Statement, choose
from asrd.paths import folders
from asrd.store.check import check
from asrd.store.disk import RealDisk
from asrd.store.index import Index
from tests.daemons import Running, command, until
from tests.faults.figures import figure
from tests.faults.hostile import claude, write
from tests.faults.measured import sync
from tests.faults.others import as_user, give
from tests.golden import CAPTURES
from tests.homes import environment, recorded, streams_of
from tests.properties.test_folds import same, told
from tests.schedules import difference

PARTS = ("claude-code/S1", "claude-code/S2", "codex/S1", "codex/S3", "pi/S3")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for part in PARTS:
        shutil.copytree(CAPTURES / part / "home", tmp_path / "home", dirs_exist_ok=True)
    return tmp_path / "home"


@pytest.fixture
def wanted(home: Path, tmp_path: Path) -> dict[str, bytes]:
    with recorded(home, tmp_path / "alone") as one:
        return one.streams()


@contextlib.contextmanager
def small_disk(folder: Path, kilobytes: int) -> Generator[Path]:
    """A real file system of that size. Skips where none can be mounted."""
    folder.mkdir()
    if (
        os.getuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def whole(store: Path) -> list[Any]:
    """What is not whole of a store, torn tails aside."""
    disk = RealDisk()
    try:
        return [f for f in check(disk, store / "streams") if f.trouble]
    finally:
        disk.close()


def is_prefix(ours: dict[str, bytes], wanted: dict[str, bytes]) -> bool:
    """Whether every stream is a whole prefix of what it should be, but for a torn line."""
    return all(wanted[name].startswith(data[: data.rfind(b"\n") + 1]) for name, data in ours.items())


@pytest.mark.parametrize("kilobytes", [300, 500, 700])
def test_a_full_disk_is_said_and_all_is_there_when_there_is_room(
    kilobytes: int, home: Path, wanted: dict[str, bytes], tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", kilobytes) as disk:
        env = environment(home, disk / "store")
        full = command(env, "sync", "--quiet")
        ours = streams_of(folders(env))

        assert full.returncode == 31, full.stderr
        assert "No room left" in full.stderr and "Traceback" not in full.stderr
        assert is_prefix(ours, wanted)
        assert [f for f in whole(disk / "store") if f.trouble != "no header"] == []

        subprocess.run(["mount", "-o", "remount,size=40m", str(disk)], check=True)
        again = command(env, "sync", "--quiet")

        assert again.returncode == 0, again.stderr
        assert difference(streams_of(folders(env)), wanted) is None
        assert command(env, "check").returncode == 0
    figure("a real disk that is full, then has room", "lost; doubled; exit code while it is full", "0; 0; 31")


def test_a_daemon_whose_disk_is_full_answers_and_goes_on(home: Path, wanted: dict[str, bytes], tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 900) as disk:
        daemon = Running(home, disk / "store").ready()
        try:
            assert until(lambda: any("No room" in t["what"] for t in daemon.ask("status")["trouble"]))
            subprocess.run(["mount", "-o", "remount,size=40m", str(disk)], check=True)

            assert until(lambda: difference(streams_of(daemon.where), wanted) is None, 40)
            assert daemon.end() == 0, daemon.words
        finally:
            daemon.end(9)
    figure("a full disk below the daemon", "answers meanwhile; lost; doubled", "yes, and says it; 0; 0")


@pytest.mark.parametrize("at", [1, 2, 3, 5, 8])
def test_no_room_at_any_write_is_made_good(
    at: int, home: Path, wanted: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = folders(environment(home, tmp_path / "store"))
    real, writes = os.write, [0]

    def writing(handle: int, data: Any) -> int:
        if os.path.basename(os.readlink(f"/proc/self/fd/{handle}")).endswith(".asr.jsonl"):
            writes[0] += 1
            if writes[0] == at:
                return real(handle, bytes(data)[: len(data) // 2])  # half of it, as a disk that fills up does
            if writes[0] == at + 1:
                raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(os, "write", writing)
    with pytest.raises(StoreFull):
        sync_once(where, {})
    monkeypatch.undo()
    ours = streams_of(where)
    sync_once(where, {})

    assert is_prefix(ours, wanted)
    assert difference(streams_of(where), wanted) is None
    figure("a disk that takes half of a write, then nothing, at five writes", "lost; doubled", "0; 0")


def test_a_read_only_store_is_refused_in_one_sentence_and_can_be_asked(home: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 20_000) as disk:
        env = environment(home, disk / "store")
        assert command(env, "sync", "--quiet").returncode == 0
        before = command(env, "usage", "--json").stdout
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

        refused = command(env, "sync", "--quiet")
        asked = command(env, "usage", "--json")

        assert refused.returncode in (34, 35), refused.stderr
        assert "Traceback" not in refused.stderr and refused.stderr.count("\n") == 1
        assert asked.returncode == 0, asked.stderr
        assert asked.stdout == before
    figure("a store that is read only", "recording; asking", "refused in one sentence; the same answers")


def test_a_store_whose_permission_is_lost_and_regained(home: Path, wanted: dict[str, bytes], tmp_path: Path) -> None:
    if os.getuid():
        pytest.skip("needs root, to become a user whom modes bind")
    tmp = give(tmp_path, home)
    env = environment(home, tmp / "store")
    assert as_user(env, "sync", "--quiet").returncode == 0
    write(home / ".claude/projects/-more/eeeeeeee-0000-4000-8000-000000000001.jsonl", *claude("more", 1))
    os.chown(home / ".claude/projects/-more", 65534, 65534)
    (tmp / "store/streams").chmod(0o500)
    (tmp / "store/streams/claude-code").chmod(0o500)

    refused = as_user(env, "sync", "--quiet")
    (tmp / "store/streams").chmod(0o700)
    (tmp / "store/streams/claude-code").chmod(0o700)
    again = as_user(env, "sync", "--quiet")

    ours = streams_of(folders(env))
    assert refused.returncode in (34, 35) and "Traceback" not in refused.stderr, refused.stderr
    assert again.returncode == 0, again.stderr
    assert {name: ours[name] for name in wanted} == wanted
    assert len(ours) == len(wanted) + 1
    figure("permission of the store lost and regained", "lost; doubled", "0; 0")


@pytest.mark.parametrize("victim", ["index.sqlite", "cursors.sqlite", "index.sqlite-wal", "lock", "version.json"])
@pytest.mark.parametrize("damage", ["gone", "noise", "empty", "half"])
def test_what_is_derived_may_be_damaged(
    victim: str, damage: str, home: Path, wanted: dict[str, bytes], tmp_path: Path
) -> None:
    env = environment(home, tmp_path / "store")
    where = folders(env)
    sync_once(where, {})
    index = told(where.index)
    path = where.store / victim
    old = path.read_bytes() if path.exists() else b""
    if damage == "gone":
        path.unlink(missing_ok=True)
    else:
        path.write_bytes({"noise": os.urandom(5000), "empty": b"", "half": old[: len(old) // 2]}[damage])

    code, _, said = sync(home, tmp_path / "store")

    if victim == "version.json" and damage != "gone":
        assert code == 35, said  # which version wrote it is unknown: it is left alone
        assert "Traceback" not in said
        return
    assert code == 0, said
    assert difference(streams_of(where), wanted) is None
    same(told(where.index), index)
    figure("index, cursors, log or lock gone, cut or overwritten", "lost; doubled; other answers", "0; 0; 0")


def test_an_index_that_stops_in_the_middle_of_a_whole_store_is_as_it_was(home: Path, tmp_path: Path) -> None:
    with recorded(home, tmp_path / "store") as one:
        index, streams = told(one.where.index), one.where.streams
    disk = RealDisk()
    broken = Index(tmp_path / "broken.sqlite", streams)

    with pytest.raises(KeyboardInterrupt), broken.whole():
        broken.catch_up(disk)
        raise KeyboardInterrupt
    empty = told(tmp_path / "broken.sqlite")
    broken.catch_up(disk)
    broken.close()
    disk.close()

    assert empty["session"] == [] and empty["inference"] == []
    same(told(tmp_path / "broken.sqlite"), index)


def test_what_counts_is_the_same_asked_by_pairs_or_by_origins() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        count = chance.randint(1, 7)
        parents = {n: {p for p in range(n) if chance.random() < 0.4} for n in range(count)}

        def origins(a: int, parents: dict[int, set[int]] = parents) -> set[int]:
            found: set[int] = set()
            for p in parents[a]:
                found |= {p} | origins(p, parents)
            return found

        said = [
            Statement(n, f"s{n}", n, chance.randint(0, 3), True, chance.random() < 0.2,
                      f"s{chance.randrange(count)}" if chance.random() < 0.3 else None, "m", None, f"2026-01-0{n + 1}")
            for n in range(count)
        ]  # fmt: skip

        by_pairs = choose(said, lambda a, b, o=origins: b in o(a))
        by_origins = choose(said, lambda a, b: 1 / 0 > 0, origins)

        assert by_pairs == by_origins


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced"])
def test_a_store_that_is_taken_away_below_the_daemon_ends_it_and_the_next_one_records_all(
    how: str, home: Path, wanted: dict[str, bytes], tmp_path: Path
) -> None:
    store = tmp_path / "store"
    daemon = Running(home, store).ready().caught_up()
    kept = streams_of(daemon.where)
    if how == "removed":
        shutil.rmtree(store)
    else:
        store.rename(tmp_path / "other")
    if how == "replaced":
        (store / "streams").mkdir(parents=True)

    assert until(lambda: daemon.process.poll() is not None)
    assert daemon.end() == 35
    assert "it was removed or replaced while asrd recorded into it" in daemon.words
    assert "Traceback" not in daemon.words

    again = Running(home, store).ready().caught_up()
    assert again.end() == 0
    assert difference(streams_of(again.where), wanted) is None
    if how != "removed":
        moved = folders(environment(home, tmp_path / "other"))
        assert streams_of(moved) == kept
    figure(
        "the store removed, renamed or replaced below the daemon",
        "said; recorded by the next one (a service starts again by itself)",
        "in one sentence, exit code 35; all",
    )
