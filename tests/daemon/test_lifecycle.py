"""The daemon from its start to its end: it records, answers, feeds followers, and nobody can keep it from that."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asrd import wire
from asrd.client import Asker, Client
from asrd.errors import DaemonRefused, DaemonUnreachable
from tests.daemons import Running, command, running, until
from tests.faults.figures import figure
from tests.golden import CAPTURES
from tests.homes import recorded, streams_of

CLAUDE = CAPTURES / "claude-code" / "S1" / "home"
SESSION = next(CLAUDE.rglob("*.jsonl"))
RELATIVE = SESSION.relative_to(CLAUDE)
IDENT = SESSION.stem


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder without any harness."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def lay(home: Path, data: bytes | None = None) -> Path:
    """The session's file, whole or with these bytes."""
    path = home / RELATIVE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(SESSION.read_bytes() if data is None else data)
    return path


def whole(tmp_path: Path) -> dict[str, bytes]:
    """The streams of the session when it is there from the start."""
    home = tmp_path / "whole"
    home.mkdir()
    lay(home)
    with recorded(home, tmp_path / "whole-store") as one:
        return one.streams()


def raw(daemon: Running) -> socket.socket:
    """A bare connection."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(30)
    client.connect(str(daemon.where.socket))
    return client


# ---------------------------------------------------------------- start, record, ask, stop


def test_a_session_is_recorded_while_it_is_written(home: Path, store: Path, tmp_path: Path) -> None:
    lines = SESSION.read_bytes().splitlines(keepends=True)

    with running(home, store) as daemon:
        path = lay(home, b"")
        for line in lines:
            with path.open("ab") as file:
                file.write(line)
            time.sleep(0.01)
        wanted = whole(tmp_path)
        until(lambda: streams_of(daemon.where) == wanted)
        told = daemon.ask("usage")["total"]
        code = daemon.end()

    assert streams_of(daemon.where) == wanted
    assert (told["requests"], told["inputTotal"], told["output"]) == (8, 16379, 412)
    assert code == 0, daemon.words


def test_the_answers_are_the_same_with_and_without_a_daemon(home: Path, store: Path) -> None:
    lay(home)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("sessions.list", {}),
        ("session.get", {"session": "last"}),
        ("session.records", {"session": IDENT, "from": 3, "limit": 4}),
        ("usage", {"timezone": "Europe/Berlin"}),
        ("tree", {}),
        ("lineage", {"session": IDENT[:8]}),
    ]

    with running(home, store) as daemon:
        daemon.caught_up()
        assert until(lambda: daemon.records_of(IDENT))
        with_daemon = [daemon.ask(method, **params) for method, params in asked]
        daemon.end()
    without = [Asker(daemon.where).ask(method, params) for method, params in asked]

    assert with_daemon == without


def test_sigterm_during_an_import_ends_it_soon_and_nothing_is_lost(home: Path, store: Path, tmp_path: Path) -> None:
    path = lay(home)
    line = next(x for x in SESSION.read_bytes().splitlines(keepends=True) if b'"assistant"' in x)
    with path.open("ab") as file:
        for number in range(30_000):
            another = line.replace(b'"id":"msg_', b'"id":"msg_%06d' % number)
            file.write(another.replace(b'"uuid":"', b'"uuid":"%06d' % number))

    with running(home, store) as daemon:
        assert until(lambda: streams_of(daemon.where))
        began = time.monotonic()
        code = daemon.end()
        took = time.monotonic() - began
    cut = streams_of(daemon.where)
    with recorded(home, store) as one, recorded(home, tmp_path / "other") as other:
        assert one.streams() == other.streams()
        for name, data in cut.items():
            assert len(data) < len(other.streams()[name]), "it had ended before it was stopped"

    assert code == 0, daemon.words
    assert took < 5


def test_folders_that_appear_later_are_watched(home: Path, store: Path) -> None:
    with running(home, store) as daemon:
        time.sleep(0.2)
        assert daemon.ask("sessions.list")["sessions"] == []

        lay(home)

        assert until(lambda: daemon.records_of(IDENT)) > 0
        daemon.end()


def test_a_watcher_that_fails_leaves_polling(home: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = home / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import watchfiles._rust_notify as n\n"
        "class None_:\n"
        "    def __init__(self, *a): raise OSError(28, 'No space left on device')\n"
        "n.RustNotify = None_\n"
    )
    path = lay(home, b"")
    lines = SESSION.read_bytes().splitlines(keepends=True)

    with running(home, store, PYTHONPATH=str(site)) as daemon:
        path.write_bytes(b"".join(lines[:8]))
        first = until(lambda: daemon.records_of(IDENT))
        with path.open("ab") as file:
            file.write(b"".join(lines[8:]))
        grown = until(lambda: (n := daemon.records_of(IDENT)) > first and n)
        state = daemon.ask("status")["watch"]
        daemon.end()

    assert first > 0 and grown > first
    assert "polling" in state and "No space left" in state


# ---------------------------------------------------------------- two daemons, none, one that died


def test_a_second_daemon_says_who_records(home: Path, store: Path) -> None:
    with running(home, store) as daemon:
        second = command(daemon.env, "run")
        synced = command(daemon.env, "sync", "--json")
        reindexed = command(daemon.env, "reindex")
        daemon.end()

    assert second.returncode == 30
    assert f"(process {daemon.process.pid})" in second.stderr
    assert synced.returncode == 30 and reindexed.returncode == 30


def test_a_socket_and_lock_of_one_that_was_killed_are_taken_over(home: Path, store: Path) -> None:
    lay(home)
    with running(home, store) as first:
        assert until(lambda: first.records_of(IDENT))
        first.end(signal.SIGKILL)
        assert first.where.socket.exists()
    with pytest.raises(DaemonUnreachable):
        Client(first.where.socket)

    listed = Asker(first.where).ask("sessions.list")["sessions"]
    with running(home, store) as second:
        again = second.caught_up().ask("sessions.list")["sessions"]
        code = second.end()

    assert [s["sessionId"] for s in listed] == [s["sessionId"] for s in again] == [IDENT]
    assert code == 0
    assert not second.where.socket.exists()


def test_without_a_daemon_following_says_what_to_do(home: Path, store: Path) -> None:
    lay(home)
    with recorded(home, store) as one:
        env = {"HOME": str(home), "ASRD_HOME": str(store)}
        followed = command(env, "follow", "last")
        status = command(env, "status")

    assert followed.returncode == 40
    assert "asrd run" in followed.stderr
    assert status.returncode == 1 and "no daemon records" in status.stdout
    assert one.where.streams.is_dir()


# ---------------------------------------------------------------- followers


def test_a_follower_gets_each_record_once_also_after_it_came_back(home: Path, store: Path, tmp_path: Path) -> None:
    lines = SESSION.read_bytes().splitlines(keepends=True)
    wanted = [msgspec.json.decode(x) for data in whole(tmp_path).values() for x in data.splitlines()]
    got: list[dict[str, Any]] = []

    with running(home, store) as daemon:
        path = lay(home, b"".join(lines[:6]))
        assert until(lambda: daemon.records_of(IDENT))
        follower = follow(daemon, got, at_least=daemon.records_of(IDENT))
        with path.open("ab") as file:
            file.write(b"".join(lines[6:12]))
        take(follower, got, more=1)
        follower.close()  # it goes away in the middle
        with path.open("ab") as file:
            file.write(b"".join(lines[12:]))
        follower = follow(daemon, got, at_least=1)
        take(follower, got, more=len(wanted) - len(got))
        follower.close()
        code = daemon.end()

    assert got == wanted
    assert code == 0, daemon.words


def follow(daemon: Running, got: list[dict[str, Any]], at_least: int) -> Client:
    """Follows the session from behind what it has already."""
    follower = Client(daemon.where.socket, 30)
    params = {"session": IDENT, **({"after": got[-1]["id"]} if got else {})}
    assert follower.ask("session.follow", params)["from"] == len(got)
    take(follower, got, at_least)
    return follower


def take(follower: Client, got: list[dict[str, Any]], more: int) -> None:
    end = len(got) + more
    while len(got) < end:
        found = follower.receive()
        got += found["params"]["records"]
        assert found["params"]["next"] == got[-1]["seq"] + 1


def test_followers_that_break_off_leave_the_others_alone(home: Path, store: Path) -> None:
    lines = SESSION.read_bytes().splitlines(keepends=True)

    with running(home, store) as daemon:
        path = lay(home, b"".join(lines[:4]))
        assert until(lambda: daemon.records_of(IDENT))
        for _ in range(20):
            one = raw(daemon)
            one.sendall(wire.request(1, "session.follow", {"session": IDENT}))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            one.close()
        for line in lines[4:]:
            with path.open("ab") as file:
                file.write(line)
            time.sleep(0.005)
        assert until(lambda: daemon.records_of(IDENT) > 20)
        assert until(lambda: daemon.ask("status")["clients"] == 1)
        code = daemon.end()

    assert code == 0, daemon.words
    assert "Traceback" not in daemon.words


def test_following_from_the_terminal_shows_records_as_they_come(home: Path, store: Path, tmp_path: Path) -> None:
    lines = SESSION.read_bytes().splitlines(keepends=True)
    (wanted,) = [data.splitlines() for data in whole(tmp_path).values()]

    with running(home, store) as daemon:
        path = lay(home, b"".join(lines[:6]))
        assert until(lambda: daemon.records_of(IDENT))
        words = [sys.executable, "-m", "asrd", "follow", "last", "--json", "--after", "h", "--wait", "0"]
        with subprocess.Popen(words, env=daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
            assert follower.stdout is not None
            first = follower.stdout.readline()
            with path.open("ab") as file:
                file.write(b"".join(lines[6:]))
            rest = [follower.stdout.readline() for _ in range(len(wanted) - 2)]
            daemon.end()
            code = follower.wait(30)

    assert [msgspec.json.decode(x) for x in (first, *rest)] == [msgspec.json.decode(x) for x in wanted[1:]]
    assert code == 40  # the daemon is gone


def test_following_goes_on_where_it_was_when_the_daemon_comes_back(home: Path, store: Path, tmp_path: Path) -> None:
    lines = SESSION.read_bytes().splitlines(keepends=True)
    (wanted,) = [data.splitlines() for data in whole(tmp_path).values()]

    with running(home, store) as daemon:
        path = lay(home, b"".join(lines[:6]))
        assert until(lambda: daemon.records_of(IDENT))
        words = [sys.executable, "-m", "asrd", "follow", "last", "--json"]
        follower = subprocess.Popen(words, env=daemon.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert follower.stdout is not None and follower.stderr is not None
        got = [follower.stdout.readline()]
        daemon.process.kill()
        daemon.process.wait()
    assert b"the daemon ended; waiting 30 s" in follower.stderr.readline()
    with path.open("ab") as file:
        file.write(b"".join(lines[6:]))
    (path.parent / "another.jsonl").touch()
    with running(home, store):
        got += [follower.stdout.readline() for _ in range(len(wanted) - 1)]
        follower.terminate()
        follower.communicate()

    assert [line.rstrip() for line in got] == wanted


# ---------------------------------------------------------------- clients that misbehave


GARBAGE = [
    b"\n",
    b"nonsense\n",
    b"\xff\xfe\x00\n",
    b"[]\n",
    b"5\n",
    b'{"method": 5, "id": 1}\n',
    b'{"method": 5, "id": 1, nonsense\n',
    b'{"id": {"a": 1}, "method": "status"}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "no.such"}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "session.get"}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "session.get", "params": {"session": 7}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "session.get", "params": {"session": "\\ud800"}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "session.follow", "params": {"session": "none"}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "session.records", "params": {"session": "last", "limit": -1}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "session.records", "params": {"session": "last", "from": 99999999999999999}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "usage", "params": {"since": "never"}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "usage", "params": {"timezone": "../../etc/passwd"}}\n',
    b'{"jsonrpc": "2.0", "id": 1, "method": "handoff", "params": {"session": "last", "budget": -5}}\n',
    b'{"jsonrpc": "2.0", "method": "status"}\n',
    b"[" * 100_000 + b"\n",
]


def test_garbage_is_refused_and_the_next_question_is_answered(home: Path, store: Path) -> None:
    lay(home)
    with running(home, store) as daemon:
        assert until(lambda: daemon.records_of(IDENT))
        for number, line in enumerate(GARBAGE):
            client = raw(daemon)
            client.sendall(line + wire.request(77, "status", {}))
            with client.makefile("rb") as answers:
                last: dict[str, Any] = {}
                while last.get("id") != 77:
                    last = msgspec.json.decode(answers.readline())
                    assert "error" in last or last["id"] in (1, 77), (number, last)
                assert last["result"]["running"], (number, last)
            client.close()
        code = daemon.end()

    assert code == 0, daemon.words


def test_a_hundred_megabytes_without_a_newline_are_refused_and_not_kept(home: Path, store: Path) -> None:
    with running(home, store) as daemon:
        client = raw(daemon)
        block = b"x" * (1 << 20)
        for _ in range(100):
            client.sendall(block)
        client.sendall(b"\n" + wire.request(2, "status", {}))
        with client.makefile("rb") as answers:
            refused, answered = msgspec.json.decode(answers.readline()), msgspec.json.decode(answers.readline())
        peak = int(next(x for x in status_of(daemon) if x.startswith("VmHWM")).split()[1]) / 1024
        client.close()
        daemon.end()

    assert refused["error"]["code"] == wire.INVALID
    assert answered["id"] == 2 and answered["result"]["running"]
    assert peak < 200


def status_of(daemon: Running) -> list[str]:
    return Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()


def test_a_client_that_never_reads_keeps_nobody_waiting(home: Path, store: Path) -> None:
    lay(home)
    with running(home, store) as daemon:
        assert until(lambda: daemon.records_of(IDENT))
        deaf = raw(daemon)
        deaf.settimeout(1)
        try:
            for number in range(400):
                deaf.sendall(wire.request(number, "session.records", {"session": IDENT}))
        except TimeoutError:
            pass  # the daemon takes no more of it
        began = time.monotonic()
        told = daemon.ask("status")
        took = time.monotonic() - began
        code = daemon.end()
        deaf.close()

    assert told["running"]
    assert took < 2
    assert code == 0, daemon.words


def test_a_refusal_has_its_exit_code_and_is_the_same_as_without_a_daemon(home: Path, store: Path) -> None:
    lay(home, SESSION.read_bytes())
    with running(home, store) as daemon:
        with pytest.raises(DaemonRefused) as refused:
            daemon.ask("session.get", session="none")
        shown = command(daemon.env, "show", "none", "--json")
        daemon.end()
    without = command(daemon.env, "show", "none", "--json")

    assert refused.value.exit_code == 50
    assert shown.returncode == without.returncode == 50
    assert "No session matches none" in shown.stderr
    assert shown.stderr == without.stderr


# ---------------------------------------------------------------- private


@pytest.mark.parametrize("umask", [0, 0o077])
def test_all_is_private_whatever_the_umask(umask: int, home: Path, store: Path) -> None:
    lay(home)
    before = os.umask(umask)
    try:
        daemon = Running(home, store)
    finally:
        os.umask(before)
    try:
        daemon.ready()
        assert until(lambda: daemon.records_of(IDENT))

        modes = {p: stat.S_IMODE(p.lstat().st_mode) for p in [store, *store.rglob("*")]}
        kinds = {p: stat.S_IFMT(p.lstat().st_mode) for p in modes}
    finally:
        daemon.end(signal.SIGKILL)

    assert stat.S_ISSOCK(kinds[daemon.where.socket])
    for path, mode in modes.items():
        assert mode == (0o700 if stat.S_ISDIR(kinds[path]) else 0o600), f"{path} {mode:o}"
    figure("users whose umask is 000 or 077", "files of the store that are not theirs alone", "0")


def test_a_store_deeper_than_a_socket_address_is_reached(home: Path, tmp_path: Path) -> None:
    store = tmp_path / ("deep-" * 20) / ("deeper-" * 20)

    with running(home, store) as daemon:
        told = daemon.ask("status")
        shown = command(daemon.env, "status", "--json")
        code = daemon.end()

    assert len(str(daemon.where.socket)) > 200
    assert told["socket"] == str(daemon.where.socket)
    assert shown.returncode == 0
    assert code == 0


def test_a_disk_without_room_is_said_and_recording_goes_on_when_there_is_room(home: Path, store: Path) -> None:
    site = home / "site"
    site.mkdir()
    flag = home / "full"
    flag.touch()
    (site / "sitecustomize.py").write_text(
        "import os, errno\n"
        "real = os.write\n"
        "def write(handle, data):\n"
        f"    if len(data) > 200 and os.path.exists({str(flag)!r}): raise OSError(errno.ENOSPC, 'full')\n"
        "    return real(handle, data)\n"
        "os.write = write\n"
    )
    lay(home)

    with running(home, store, PYTHONPATH=str(site)) as daemon:
        said = until(lambda: daemon.ask("status")["trouble"])
        flag.unlink()
        recorded_now = until(lambda: daemon.records_of(IDENT))
        daemon.end()

    assert any("No room left" in one["what"] for one in said)
    assert recorded_now > 20
