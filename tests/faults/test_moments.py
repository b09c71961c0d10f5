"""The wrong moment: a folder renamed while it is followed, a stop or a start in the middle of a reading, an hour twice."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asrd.daemon import sync_once
from asrd.errors import StoreFull
from asrd.paths import folders
from asrd.store import Store
from asrd.store.lock import holder
from asrd.tail import Quiet, Tail
from tests.daemons import Running, command, running, until
from tests.faults.figures import figure
from tests.faults.test_store import PARTS, small_disk
from tests.golden import CAPTURES
from tests.homes import environment, recorded, streams_of
from tests.schedules import difference

PROJECT = ".claude/projects/-home-dev-app"
MANY = 800


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for part in PARTS:
        shutil.copytree(CAPTURES / part / "home", tmp_path / "home", dirs_exist_ok=True)
    return tmp_path / "home"


@pytest.fixture
def wanted(home: Path, tmp_path: Path) -> dict[str, bytes]:
    with recorded(home, tmp_path / "alone") as one:
        return one.streams()


def prompt(sid: str, number: int, at: str = "2026-11-30T12:00:00.000Z", words: str = "hello") -> bytes:
    line: dict[str, Any] = {
        "type": "user", "uuid": f"{sid}-{number}", "parentUuid": None, "sessionId": sid, "cwd": "/home/dev/app",
        "version": "2.1.305", "timestamp": at, "message": {"role": "user", "content": f"{words} {number:06d}"},
    }  # fmt: skip
    return msgspec.json.encode(line) + b"\n"


def grow(home: Path, sid: str, *lines: bytes) -> Path:
    path = home / PROJECT / f"{sid}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.writelines(lines)
    return path


def many(home: Path) -> None:
    """So many sessions that a reading takes a while, and workers are worth it."""
    text = "word " * 2000
    for number in range(MANY):
        sid = f"cccccccc-0000-4000-8000-{number:012d}"
        grow(home, sid, *(prompt(sid, turn, words=text) for turn in range(4)))


# ---------------------------------------------------------------- the harness's folder


def test_a_root_that_is_renamed_while_it_is_followed_and_comes_back(home: Path, tmp_path: Path) -> None:
    sid, other = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
    grow(home, sid, prompt(sid, 0))
    with running(home, tmp_path / "store") as daemon:
        daemon.caught_up()
        assert until(lambda: daemon.records_of(sid) > 0)
        (home / ".claude").rename(home / ".claude-aside")
        with (home / ".claude-aside/projects/-home-dev-app" / f"{sid}.jsonl").open("ab") as file:
            file.write(prompt(sid, 1))
        grow(home, other, prompt(other, 0))  # the harness begins anew at the old place
        assert until(lambda: daemon.records_of(other) > 0)
        shutil.copytree(home / ".claude", tmp_path / "begun")
        shutil.rmtree(home / ".claude")
        (home / ".claude-aside").rename(home / ".claude")
        shutil.copytree(tmp_path / "begun", home / ".claude", dirs_exist_ok=True)
        grow(home, sid, prompt(sid, 2))

        with recorded(home, tmp_path / "whole") as one:
            whole = one.streams()
        assert until(lambda: difference(streams_of(daemon.where), whole) is None, 90), difference(
            streams_of(daemon.where), whole
        )
        assert daemon.end() == 0, daemon.words
    figure("a harness's folder renamed while it is followed, made anew, and put back", "lost; doubled", "0; 0")


@pytest.mark.parametrize("times", ["other", "the same"])
def test_a_session_cut_and_grown_to_the_same_length_is_another_content(times: str, home: Path, tmp_path: Path) -> None:
    sid = "aaaaaaaa-0000-4000-8000-000000000001"
    path = grow(home, sid, *(prompt(sid, n) for n in range(20)))
    with running(home, tmp_path / "store") as daemon:
        assert until(lambda: "hello 000019" in said_of(daemon, sid))
        before = os.stat(path)
        new = b"".join(prompt(sid, n + 100, words="other") for n in range(20))
        new = new[: new.rfind(b"\n", 0, before.st_size - 1) + 1]
        new += b" " * (before.st_size - len(new) - 1) + b"\n"
        os.truncate(path, 0)
        with path.open("r+b") as file:
            file.write(new)
        if times == "the same":
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert os.stat(path).st_size == before.st_size and os.stat(path).st_ino == before.st_ino

        assert until(lambda: "other 000110" in said_of(daemon, sid))
        words = said_of(daemon, sid)
        assert daemon.end() == 0, daemon.words
    assert words.count("hello 000019") == 1  # what it was stays recorded
    assert words.count("other 000110") == 1
    figure("a session cut and grown to the same length, its time set back", "seen; lost; doubled", "yes; 0; 0")


def said_of(daemon: Running, sid: str) -> str:
    found = [data for name, data in streams_of(daemon.where).items() if sid in name]
    return b"".join(found).decode()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_sessions_that_are_moved_to_the_archive_are_recorded_once(tmp_path: Path) -> None:
    count = 10_000
    home = tmp_path / "home"
    lines = next((CAPTURES / "codex/S1/home").rglob("rollout-*.jsonl")).read_bytes().splitlines(keepends=True)[:3]
    native = msgspec.json.decode(lines[0])["payload"]["id"].encode()
    live, kept = home / ".codex/sessions/2026/11/30", home / ".codex/archived_sessions"
    live.mkdir(parents=True)
    kept.mkdir()
    for number in range(count):
        sid = f"019eeeee-0000-7000-8000-{number:012d}"
        (live / f"rollout-2026-11-30T10-00-00-{sid}.jsonl").write_bytes(
            b"".join(line.replace(native, sid.encode()) for line in lines)
        )
    env = environment(home, tmp_path / "store")
    sync_once(folders(env), env)
    before = streams_of(folders(env))
    for path in list(live.iterdir()):
        path.rename(kept / path.name)

    sync_once(folders(env), env)

    assert len(before) == count
    assert difference(streams_of(folders(env)), before) is None
    figure(f"{count:,} sessions rotated into an archive", "lost; doubled", "0; 0")


# ---------------------------------------------------------------- the store


def test_no_room_exactly_at_the_index_leaves_the_streams_and_is_made_good(
    home: Path, wanted: dict[str, bytes], tmp_path: Path
) -> None:
    where = folders(environment(home, tmp_path / "store"))
    store = Store(where)
    db: sqlite3.Connection = store.index._db  # type: ignore[reportPrivateUsage]
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages + 2}")  # SQLite says then what it says on a full disk
    tail = Tail(store, home, {}, Quiet())
    full = 0
    for group in tail.scan():
        tail.observe(group)
        try:
            tail.sync()
        except StoreFull:
            full += 1
    held = streams_of(where)
    db.execute("PRAGMA max_page_count = 1000000")
    tail.close()
    store.close()

    assert full > 1
    assert {name: held[name] for name in held} == {name: wanted[name] for name in held} and held
    with recorded(home, where.store) as again, recorded(home, tmp_path / "other") as never:
        assert difference(again.streams(), wanted) is None
        assert again.usage() == never.usage()
    figure("a disk that is full exactly when the index is written", "lost; doubled; other answers", "0; 0; 0")


def test_a_store_in_memory_is_a_store(home: Path, wanted: dict[str, bytes], tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 40_000) as disk:
        for _ in range(3):
            daemon = Running(home, disk / "store").ready()
            time.sleep(0.1)
            daemon.end(signal.SIGKILL)
        with running(home, disk / "store") as daemon:
            assert until(lambda: difference(streams_of(daemon.where), wanted) is None)
            assert daemon.end() == 0, daemon.words
        assert command(environment(home, disk / "store"), "check").returncode == 0
    figure("a store on tmpfs, its daemon killed three times", "lost; doubled", "0; 0")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_first_reading_that_is_stopped_leaves_no_worker_and_is_gone_on_with(
    number: signal.Signals, home: Path, tmp_path: Path
) -> None:
    many(home)
    env = {**os.environ, **environment(home, tmp_path / "store")}
    where = folders(env)
    with recorded(home, tmp_path / "alone") as one:
        wanted = one.streams()
    sync = subprocess.Popen(
        [sys.executable, "-m", "asrd", "sync", "--quiet", "--jobs", "3"], env=env, stderr=subprocess.PIPE, text=True
    )
    assert until(lambda: len(list(where.streams.rglob("*.jsonl"))) > 2 or sync.poll() is not None)
    running_still = sync.poll() is None
    sync.send_signal(number)
    _, words = sync.communicate(timeout=60)

    assert running_still, "it was over before it could be stopped"
    assert sync.returncode != 0
    assert "Traceback" not in words
    assert until(lambda: holder(where.lock) is None)  # every worker holds the lock while it lives
    for name, data in streams_of(where).items():
        assert wanted[name].startswith(data[: data.rfind(b"\n") + 1])
    assert command(env, "sync", "--quiet").returncode == 0
    assert difference(streams_of(where), wanted) is None
    figure("`asrd sync` ended by SIGTERM, SIGINT or SIGKILL in its middle", "lost; doubled; workers left", "0; 0; 0")


def test_a_daemon_that_is_started_while_a_sync_reads_says_so_and_harms_nothing(home: Path, tmp_path: Path) -> None:
    many(home)
    env = {**os.environ, **environment(home, tmp_path / "store")}
    where = folders(env)
    sync = subprocess.Popen([sys.executable, "-m", "asrd", "sync", "--quiet", "--jobs", "2"], env=env)
    assert until(lambda: holder(where.lock) == sync.pid)

    second = Running(home, tmp_path / "store")
    code = second.process.wait(60)
    second.end()
    assert sync.wait(60) == 0

    assert code == 30
    assert f"Another asrd (process {sync.pid}) is recording" in second.words
    with recorded(home, tmp_path / "alone") as one:
        wanted = one.streams()
    with running(home, tmp_path / "store") as daemon:
        daemon.caught_up()
        assert difference(streams_of(daemon.where), wanted) is None
        assert daemon.end() == 0, daemon.words
    figure("a daemon started while `asrd sync` reads", "what it says; lost; doubled", "who reads (exit 30); 0; 0")


# ---------------------------------------------------------------- the clock


def test_an_hour_that_comes_twice_counts_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    chance = random.Random(3)
    sid = "aaaaaaaa-0000-4000-8000-000000000001"
    times = [f"2026-10-{24 + h // 24:02d}T{h % 24:02d}:{chance.randrange(60):02d}:00.000Z" for h in range(72)]
    times += [f"2026-03-{28 + h // 24:02d}T{h % 24:02d}:{chance.randrange(60):02d}:00.000Z" for h in range(72)]
    grow(home, sid, *(prompt(sid, n, at) + answer(sid, n, at) for n, at in enumerate(times)))
    streams: list[dict[str, bytes]] = []
    for zone in ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"):
        env = environment(home, tmp_path / zone.replace("/", "-"), TZ=zone)
        assert command(env, "sync", "--quiet").returncode == 0
        streams.append(streams_of(folders(env)))
        done = command(env, "usage", "daily", "--json")
        days = msgspec.json.decode(done.stdout)

        assert sum(row["requests"] for row in days["rows"]) == len(times), zone
        assert sum(row["output"] for row in days["rows"]) == sum(range(len(times))), zone

    assert all(one == streams[0] for one in streams)
    figure(
        "clocks set forth and back, in four time zones", "other streams; requests that a day lost or doubled", "0; 0"
    )


def answer(sid: str, number: int, at: str) -> bytes:
    line: dict[str, Any] = {
        "type": "assistant", "uuid": f"{sid}-{number}a", "parentUuid": f"{sid}-{number}", "sessionId": sid,
        "cwd": "/home/dev/app", "version": "2.1.305", "timestamp": at, "requestId": f"r{number}",
        "message": {"id": f"m{number}", "role": "assistant", "model": "claude-sonnet-4-6", "content": [],
                    "usage": {"input_tokens": 1, "output_tokens": number}},
    }  # fmt: skip
    return msgspec.json.encode(line) + b"\n"
