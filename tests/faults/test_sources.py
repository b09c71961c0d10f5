"""What stands in a harness's folder may be anything: what is no session harms none that is one."""

import errno
import json
import os
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import asrd.reading
from asrd import clock
from asrd.daemon import sync_once
from asrd.paths import folders
from asrd.places import Found
from asrd.reading import opened, read_lines
from asrd.sources import Place, Source
from tests.daemons import command, running, until
from tests.faults.figures import figure
from tests.faults.hostile import claude, write
from tests.faults.measured import Peak, sync
from tests.faults.others import as_user, give
from tests.golden import CAPTURES
from tests.homes import environment, recorded, streams_of
from tests.schedules import difference

PROJECT = ".claude/projects/-home-dev-app"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    shutil.copytree(CAPTURES / "claude-code/S1/home", tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def wanted(home: Path, tmp_path: Path) -> dict[str, bytes]:
    """The streams of the home when nothing else lies in it."""
    with recorded(home, tmp_path / "alone") as one:
        return one.streams()


def found(path: Path, root: Path) -> Found:
    return Found(Source("x", "g", "n", path.name, "lines"), str(path), str(root), Place("*"))


ODD: dict[str, Callable[[Path], Any]] = {
    "a FIFO": lambda path: os.mkfifo(path),
    "a link to a device that never ends": lambda path: path.symlink_to("/dev/zero"),
    "a link out of the folder": lambda path: path.symlink_to("/etc/passwd"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nothing": lambda path: path.symlink_to(path.with_name("none")),
    "a folder": lambda path: path.mkdir(),
    "a socket": lambda path: bind(path),
    "an empty file": lambda path: path.touch(),
    "a megabyte of noise": lambda path: path.write_bytes(os.urandom(1 << 20)),
    "a megabyte of NUL": lambda path: path.write_bytes(bytes(1 << 20)),
}


def bind(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # the name of a socket may have 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(before)


@pytest.mark.parametrize("what", ODD)
def test_what_is_no_session_harms_none(what: str, home: Path, wanted: dict[str, bytes], tmp_path: Path) -> None:
    folder = home / PROJECT
    folder.mkdir(parents=True, exist_ok=True)
    ODD[what](folder / "aaaaaaaa-0000-4000-8000-000000000001.jsonl")

    code, peak, said = sync(home, tmp_path / "store", patience=30)

    ours = streams_of(folders(environment(home, tmp_path / "store")))
    assert code == 0, said
    assert {name: ours.get(name) for name in wanted} == wanted
    assert peak < 150
    figure(f"{what} where a session should be", "other sessions; seconds waited", "recorded whole; 0")


def test_folders_in_a_circle_end(home: Path, wanted: dict[str, bytes], tmp_path: Path) -> None:
    folder = home / PROJECT
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "round").symlink_to(folder, target_is_directory=True)
    (home / ".claude/projects/up").symlink_to(home, target_is_directory=True)
    deep = folder
    for number in range(60):
        deep = deep / f"d{number}"
    deep.mkdir(parents=True)

    code, _, said = sync(home, tmp_path / "store", patience=30)

    assert code == 0, said
    assert difference(streams_of(folders(environment(home, tmp_path / "store"))), wanted) is None
    figure("links in a circle, links out, 60 folders deep", "other sessions; endless walks", "recorded whole; 0")


@pytest.mark.parametrize("what", ["a FIFO", "a link out of the folder", "a link to a device that never ends"])
def test_what_takes_a_sources_place_between_look_and_opening_is_not_read(what: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    path = root / "a.jsonl"
    path.write_bytes(b"{}\n")
    one = found(path, root)
    assert b"".join(read_lines(one, 0)) == b"{}\n"
    path.unlink()
    ODD[what](path)

    with pytest.raises(asrd.reading.SourceUnreadable, match="regular file|leads out"):
        list(read_lines(one, 0))
    figure("a source replaced by a FIFO, device or link out between look and opening", "bytes read of it", "0")


def test_a_source_replaced_while_it_is_opened_is_read_another_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"old\n")
    monkeypatch.setattr(asrd.reading, "_lies_below", lambda handle, root: False)  # type: ignore[reportUnknownLambdaType]
    real = os.path.realpath

    def swaps(name: str) -> str:
        if name == str(path):
            path.unlink()
            path.write_bytes(b"new\n")
        return real(name)

    monkeypatch.setattr(os.path, "realpath", swaps)

    with pytest.raises(OSError, match="replaced while it was opened"):
        opened(str(path), str(tmp_path))


def test_a_session_replaced_by_another_is_recorded_with_a_gap_and_none_is_lost(home: Path, tmp_path: Path) -> None:
    lines = home / PROJECT / "aaaaaaaa-0000-4000-8000-000000000001.jsonl"
    first, second = claude("first", 3), claude("second", 3)
    write(lines, *first)
    where = folders(environment(home, tmp_path / "store"))
    sync_once(where, {})
    lines.unlink()
    write(lines, *[{**one, "uuid": f"x{n}"} for n, one in enumerate(second)], *second, *second)

    sync_once(where, {})

    text = b"".join(streams_of(where).values())
    assert b'"reason":"replaced"' in text or b'"reason":"truncated"' in text
    assert b'"sessionId":"first"' in text and b'"sessionId":"second"' in text


FAULTS = (errno.ESTALE, errno.EIO, errno.EACCES, errno.EINTR, errno.ENXIO)


@pytest.mark.parametrize("code", FAULTS, ids=[errno.errorcode[c] for c in FAULTS])
def test_a_read_that_fails_for_a_while_loses_nothing(
    code: int, home: Path, wanted: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = asrd.reading.opened
    calls: list[str] = []

    class Breaks:
        """A file whose second read fails."""

        def __init__(self, file: Any) -> None:
            self.file, self.reads = file, 0

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def seek(self, at: int) -> None:
            self.file.seek(at)

        def fileno(self) -> int:
            return self.file.fileno()

        def read(self, size: int = -1) -> bytes:
            self.reads += 1
            if self.reads > 1:
                raise OSError(code, os.strerror(code))
            return self.file.read(1000)

    def flaky(path: str, root: str) -> Any:
        calls.append(path)
        if len(calls) % 3 == 1:
            raise OSError(code, os.strerror(code))
        return Breaks(real(path, root)) if len(calls) % 3 == 2 else real(path, root)

    where = folders(environment(home, tmp_path / "store"))
    monkeypatch.setattr(asrd.reading, "opened", flaky)
    for _ in range(6):
        sync_once(where, {})
    monkeypatch.undo()
    sync_once(where, {})

    assert len(calls) >= 3
    assert difference(streams_of(where), wanted) is None
    figure(f"reads that fail for a while ({errno.errorcode[code]})", "lost; doubled", "0; 0")


@pytest.mark.parametrize("jump", [-3.2e8, 3.2e8])
def test_a_clock_that_jumps_changes_no_stream(
    jump: float, home: Path, wanted: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, looks = clock.seconds, iter(range(10**9))
    monkeypatch.setattr(clock, "seconds", lambda: real() + (jump if next(looks) % 2 else 0))
    where = folders(environment(home, tmp_path / "store"))

    sync_once(where, {})
    for path in (home / ".claude/projects").rglob("*.jsonl"):
        os.utime(path, (4e9, 4e9))  # written in the year 2096
    sync_once(where, {})

    assert difference(streams_of(where), wanted) is None
    figure("a clock that jumps ten years forth and back, files of the year 2096", "lost; doubled", "0; 0")


def test_a_line_of_a_gigabyte_takes_no_memory(home: Path, wanted: dict[str, bytes], tmp_path: Path) -> None:
    lines = home / PROJECT / "aaaaaaaa-0000-4000-8000-000000000001.jsonl"
    write(lines, *claude("big", 3))
    with lines.open("r+b") as file:
        file.seek(0, 2)
        file.truncate(file.tell() + (1 << 30))  # sparse: it takes no room on the disk
        file.seek(0, 2)
        file.write(b"\n" + b"\n".join(json.dumps(one).encode() for one in claude("big", 3)) + b"\n")

    code, peak, said = sync(home, tmp_path / "store")

    ours = streams_of(folders(environment(home, tmp_path / "store")))
    text = b"".join(data for name, data in ours.items() if name not in wanted)
    assert code == 0, said
    assert peak < 250
    assert b'"reason":"oversize"' in text and len(text) < 100_000
    assert {name: ours[name] for name in wanted} == wanted
    figure("a line of 1 GiB", "peak memory; what it becomes", f"{peak} MB; a `loss` with place and digest")


def test_thousands_of_files_at_once_are_all_recorded(home: Path, tmp_path: Path) -> None:
    count = 3000
    with running(home, tmp_path / "store") as daemon:
        daemon.caught_up()
        peak = Peak(daemon.process.pid)
        for number in range(count):
            sid = f"bbbbbbbb-0000-4000-8000-{number:012d}"
            write(home / f".claude/projects/-many-{number % 50}" / f"{sid}.jsonl", *claude(sid, 1)[:1])

        assert until(lambda: daemon.ask("status")["totals"]["sessions"] >= count + 1, 60)
        most = peak.end()
        status = daemon.caught_up().ask("status")

    assert status["trouble"] == []
    assert most < 250
    figure(f"{count:,} sessions that appear at once", "recorded; memory of the daemon at most", f"{count:,}; {most} MB")


@pytest.mark.slow  # the daemon looks everywhere once a minute
def test_more_notifications_than_the_system_keeps_lose_nothing(home: Path, tmp_path: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    with running(home, tmp_path / "store") as daemon:
        daemon.caught_up()
        folder = home / ".claude/projects/-noise"
        folder.mkdir()
        assert until(lambda: daemon.ask("status")["watch"].startswith("watching"))
        daemon.process.send_signal(signal.SIGSTOP)
        for number in range(most // 2 + 100):  # each makes and closes a file: two notifications at least
            (folder / f"{number % 50}.tmp").touch()
            (folder / f"{number % 50}.tmp").unlink()
        sid = "cccccccc-0000-4000-8000-000000000001"
        write(folder / f"{sid}.jsonl", *claude(sid, 1))
        daemon.process.send_signal(signal.SIGCONT)

        assert until(lambda: daemon.records_of(sid) > 0, 90)
    figure(f"more than {most:,} notifications while the daemon is stopped", "sessions missed", "0")


def test_permission_lost_and_regained_loses_nothing(home: Path, wanted: dict[str, bytes], tmp_path: Path) -> None:
    if os.getuid():
        pytest.skip("needs root, to become a user whom modes bind")
    tmp = give(tmp_path, home)
    projects = home / ".claude/projects"
    session = next(projects.rglob("*.jsonl"))
    env = environment(home, tmp / "store")
    session.chmod(0)

    refused = as_user(env, "sync", "--quiet")
    said = as_user(env, "doctor")
    projects.chmod(0)
    closed = as_user(env, "sync", "--quiet")
    projects.chmod(0o755)
    session.chmod(0o644)
    again = as_user(env, "sync", "--quiet")

    assert (refused.returncode, closed.returncode, again.returncode) == (0, 0, 0), refused.stderr + again.stderr
    assert "cannot be read" in said.stdout and "ermission" in said.stdout
    assert difference(streams_of(folders(env)), wanted) is None
    figure(
        "permission of a session, then of its folder, lost and regained",
        "lost; doubled; said",
        "0; 0; by `asrd doctor`",
    )


def test_a_file_that_is_gone_before_it_was_read_is_said(home: Path, tmp_path: Path) -> None:
    sid = "dddddddd-0000-4000-8000-000000000001"
    lines = home / PROJECT / f"{sid}.jsonl"
    write(lines, *claude(sid, 1))
    with lines.open("ab") as file:
        file.write(b'{"type":"user","torn')
    env = environment(home, tmp_path / "store")
    sync_once(folders(env), {})
    lines.unlink()

    done = command(env, "sync", "--quiet")

    assert done.returncode == 0, done.stderr
    assert any(b'"reason":"deleted"' in data for data in streams_of(folders(env)).values())
