"""A first reading by several processes gives the streams, and the answers, of one process."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from asrd import crew
from asrd.paths import folders
from asrd.store import Store
from asrd.tail import Group, Quiet, Tail
from tests.daemons import command, until
from tests.faults.figures import figure
from tests.golden import CAPTURES
from tests.homes import Recorded, environment, key_of, recorded, streams_of
from tests.properties.test_folds import same, told
from tests.schedules import difference

PARTS = ("claude-code/S1", "claude-code/S2", "claude-code/S3", "codex/S1", "codex/S3", "pi/S3", "opencode/S1")
SYNC = """
import os, sys
from asrd import crew
from asrd.daemon import sync_once
from asrd.paths import folders
crew.WORTH = 0
crew.cores = lambda: 3
said = []
sync_once(folders(), os.environ, lambda *numbers: said.append(numbers), None if len(sys.argv) < 2 else int(sys.argv[1]))
print(said[-1][0], said[-1][1])
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Sessions of several harnesses."""
    folder = tmp_path / "home"
    for part in PARTS:
        shutil.copytree(CAPTURES / part / "home", folder, dirs_exist_ok=True)
    return folder


def sync(home: Path, store: Path, script: str = SYNC) -> subprocess.CompletedProcess[str]:
    """`asrd sync` with workers, in a process of its own."""
    env = {**os.environ, **environment(home, store)}
    return subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60)


def again(home: Path, store: Path) -> tuple[Recorded, dict[str, bytes]]:
    """A store that should have nothing left to do."""
    with recorded(home, store) as one:
        return one, one.streams()


def groups_of(home: Path, store: Path) -> list[Group]:
    one = Store(folders(environment(home, store)))
    try:
        return Tail(one, home, {}, Quiet()).scan()
    finally:
        one.close()


def test_several_processes_write_the_streams_of_one(home: Path, tmp_path: Path) -> None:
    with recorded(home, tmp_path / "alone") as one:
        wanted, index, usage = one.streams(), told(one.where.index), one.usage()

    done = sync(home, tmp_path / "crew")

    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == done.stdout.split()[1], "progress ends with all groups"
    where = folders(environment(home, tmp_path / "crew"))
    assert difference(streams_of(where), wanted) is None
    same(told(where.index), index)
    with recorded(home, tmp_path / "crew") as later:
        assert later.usage() == usage
        assert later.streams() == wanted, "nothing was left to do"


def test_a_group_that_needs_a_stream_of_another_is_left_to_the_parent(home: Path, tmp_path: Path) -> None:
    with recorded(home, tmp_path / "alone") as one:
        wanted, key = one.streams(), key_of(one.rows.sessions()[0])
        half = next(p for p in sorted((tmp_path / "alone/streams").rglob("*.jsonl")) if p.stat().st_size > 2000)
    store = tmp_path / "store"
    there = store / half.relative_to(tmp_path / "alone")
    there.parent.mkdir(parents=True)
    lines = half.read_bytes().splitlines(keepends=True)
    there.write_bytes(b"".join(lines[: len(lines) // 2]))

    done = sync(home, store)

    assert done.returncode == 0, done.stderr
    assert key.agent
    assert difference(streams_of(folders(environment(home, store))), wanted) is None


DYING = SYNC.replace(
    "said = []",
    """
import os as system
was, seen = crew._Fresh.append, []
def dies(self, key, records):
    seen.append(key)
    if len(seen) == 3:
        system._exit(9)
    was(self, key, records)
crew._Fresh.append = dies
said = []""",
)


def test_the_groups_of_a_worker_that_dies_are_read_by_the_parent(home: Path, tmp_path: Path) -> None:
    with recorded(home, tmp_path / "alone") as one:
        wanted, index = one.streams(), told(one.where.index)

    done = sync(home, tmp_path / "store", DYING)

    assert done.returncode == 0, done.stderr
    where = folders(environment(home, tmp_path / "store"))
    assert difference(streams_of(where), wanted) is None
    same(told(where.index), index)
    figure("a worker of a first reading that dies in its middle", "lost; doubled; other answers", "0; 0; 0")


SLOW = SYNC.replace(
    "said = []",
    """
import time
was = crew._Fresh.append
def slow(self, key, records):
    was(self, key, records)
    time.sleep(0.03)
crew._Fresh.append = slow
said = []""",
)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_sync_that_is_killed_leaves_no_worker_and_is_made_good(home: Path, tmp_path: Path, seed: int) -> None:
    with recorded(home, tmp_path / "alone") as one:
        wanted, index = one.streams(), told(one.where.index)
    store = tmp_path / "store"
    where = folders(environment(home, store))
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW], env={**os.environ, **environment(home, store)}, stdout=subprocess.DEVNULL
    )
    until(lambda: streams_of(where))
    threading.Event().wait(random.Random(seed).random() * 0.3)

    process.send_signal(signal.SIGKILL)
    process.wait()

    def free() -> bool:
        return command(environment(home, store), "sync", "--quiet").returncode == 0

    assert until(free), "the lock is dropped when the last worker is gone"
    assert difference(streams_of(where), wanted) is None
    same(told(where.index), index)
    figure(
        "a first reading by several processes, killed at three moments",
        "lost; doubled; other answers; workers left",
        "0; 0; 0; 0",
    )


def test_little_to_read_starts_no_workers(home: Path, tmp_path: Path) -> None:
    groups = crew.fresh(groups_of(home, tmp_path / "store"))

    assert len(groups) > 5
    assert crew.workers_for(groups, None) == 0


def test_one_job_and_other_threads_start_no_workers(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "WORTH", 0)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    groups = crew.fresh(groups_of(home, tmp_path / "store"))

    assert crew.workers_for(groups, 1) == 0
    assert crew.workers_for(groups, 2) == 2
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert crew.workers_for(groups, 2) == 0


def test_what_is_known_already_is_the_parents(home: Path, tmp_path: Path) -> None:
    with recorded(home, tmp_path / "store"):
        pass
    lines = next((home / ".claude/projects").rglob("*.jsonl"))
    with lines.open("ab") as file:
        file.write(b'{"type":"summary","summary":"more"}\n')

    due = groups_of(home, tmp_path / "store")

    assert len(due) == 1
    assert crew.fresh(due) == []


COUNTED = SYNC.replace(
    "said = []",
    """said = []
record = crew.record
def counted(*given):
    done = record(*given)
    print("done by workers", len(done[0]), "of", len(given[2]))
    return done
crew.record = counted""",
)


def test_workers_do_all_that_they_are_given(home: Path, tmp_path: Path) -> None:
    done = sync(home, tmp_path / "store", COUNTED)

    assert done.returncode == 0, done.stderr
    told_of = next(line for line in done.stdout.splitlines() if line.startswith("done by workers")).split()
    assert told_of[3] == told_of[5] and int(told_of[3]) > 5, done.stdout
