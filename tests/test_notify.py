"""What systemd is told, over a real datagram socket, and the socket it passes: the protocols, as sd_notify(3) has them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from asrd.client import Client
from asrd.errors import DaemonUnreachable
from asrd.notify import Notifier, activated
from asrd.paths import folders
from asrd.store.lock import locked
from tests.daemons import PATIENCE, until
from tests.homes import environment, recorded
from tests.upkeep_of import CODEX


class Systemd:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self.socket.settimeout(PATIENCE)

    def told(self) -> str:
        """The next word."""
        return self.socket.recv(4096).decode()

    def until(self, word: str) -> list[str]:
        """All words up to this one."""
        words = [self.told()]
        while words[-1] != word:
            words.append(self.told())
        return words


@pytest.fixture
def systemd(tmp_path: Path) -> Generator[Systemd]:
    one = Systemd(str(tmp_path / "notify"))
    yield one
    one.socket.close()


def started(tmp_path: Path, env: dict[str, str], *before: str) -> subprocess.Popen[str]:
    """A daemon, started as a service manager does it: `before` is what runs it."""
    return subprocess.Popen(
        [*before, sys.executable, "-m", "asrd", "run"],
        env={**os.environ, **environment(CODEX, tmp_path / "store"), **env},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        close_fds=False,
    )


def test_words_are_sent_as_datagrams(systemd: Systemd) -> None:
    one = Notifier({"NOTIFY_SOCKET": systemd.name})

    one.ready()
    one.status("two\nlines  here")
    one.status("two\nlines  here")
    one.alive()
    one.longer(1.5)
    one.stopping()
    one.close()

    words = [systemd.told() for _ in range(5)]
    assert words == ["READY=1", "STATUS=two lines here", "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=1500000", "STOPPING=1"]


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
def test_an_abstract_socket_is_reached(tmp_path: Path) -> None:
    other = Systemd(f"@asrd-test-{os.getpid()}-{tmp_path.name}")
    one = Notifier({"NOTIFY_SOCKET": other.name})

    one.ready()

    assert other.told() == "READY=1"
    one.close()
    other.socket.close()


@pytest.mark.parametrize("name", ["", "relative", "/nowhere/at/all", "vsock:2:1"])
def test_without_anybody_there_nothing_fails(name: str) -> None:
    one = Notifier({"NOTIFY_SOCKET": name})

    one.ready()
    one.alive()

    one.close()


@pytest.mark.parametrize(
    ("env", "seconds"),
    [
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "x"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_is_ours_or_none(env: dict[str, str], seconds: float | None) -> None:
    assert Notifier(env).watchdog == seconds


def test_a_daemon_says_that_it_is_ready_alive_and_stopping(tmp_path: Path, systemd: Systemd) -> None:
    process = started(tmp_path, {"NOTIFY_SOCKET": systemd.name, "WATCHDOG_USEC": "600000"})
    try:
        before = systemd.until("READY=1")
        beats: list[float] = []
        while len(beats) < 4:
            if systemd.told() == "WATCHDOG=1":
                beats.append(time.monotonic())
        process.send_signal(signal.SIGTERM)
        systemd.until("STOPPING=1")
        code = process.wait(PATIENCE)
    finally:
        process.kill()
        process.communicate()

    assert before[:-1] == ["STATUS=opening the store", "EXTEND_TIMEOUT_USEC=900000000"]
    assert max(b - a for a, b in zip(beats, beats[1:], strict=False)) < 0.6
    assert code == 0


def test_a_daemon_that_hangs_is_not_said_to_be_alive(tmp_path: Path, systemd: Systemd) -> None:
    process = started(tmp_path, {"NOTIFY_SOCKET": systemd.name, "WATCHDOG_USEC": "600000"})
    try:
        systemd.until("READY=1")
        systemd.until("WATCHDOG=1")
        process.send_signal(signal.SIGSTOP)
        systemd.socket.settimeout(0.7)
        words: list[str] = []
        with pytest.raises(TimeoutError):
            while True:
                words.append(systemd.told())
    finally:
        process.kill()
        process.communicate()

    assert len(words) < 3  # what was under way


def test_a_recording_that_is_stuck_lets_the_watchdog_bite(tmp_path: Path, systemd: Systemd) -> None:
    code = (
        "import sys, asrd.daemon as d; d.STUCK = 0.2; w = d.Daemon._work_round; "
        "d.Daemon._work_round = lambda self, tail: d.clock.pause(60); "
        "from asrd.cli import main; sys.exit(main(['run']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            **environment(CODEX, tmp_path / "store"),
            "NOTIFY_SOCKET": systemd.name,
            "WATCHDOG_USEC": "600000",
        },
        stderr=subprocess.DEVNULL,
    )
    try:
        systemd.until("READY=1")
        systemd.socket.settimeout(1.5)
        with pytest.raises(TimeoutError):
            while True:
                systemd.told()
    finally:
        process.kill()
        process.wait()


PASS = """
import os, socket, sys
listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listening.bind(sys.argv[1])
listening.listen()
os.dup2(listening.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
"""
"""What systemd does before it starts a service that has a socket."""


def test_a_daemon_answers_at_the_socket_it_is_passed_and_leaves_its_name(tmp_path: Path) -> None:
    path = tmp_path / "passed.sock"
    process = started(tmp_path, {}, sys.executable, "-c", PASS, str(path))
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            assert until(lambda: client.connect_ex(str(path)) == 0)  # before it is there: the answer waits
            client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"status","params":{}}\n')
            with client.makefile("rb") as file:
                answer = file.readline()
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE)
    finally:
        process.kill()
        process.communicate()

    assert b'"running":true' in answer
    assert code == 0
    assert path.exists()
    assert not (tmp_path / "store" / "asrd.sock").exists()


def test_a_service_waits_for_the_store_and_lets_who_asks_read_it(tmp_path: Path, systemd: Systemd) -> None:
    where = folders(environment(CODEX, tmp_path / "store"))
    path = tmp_path / "passed.sock"
    with recorded(CODEX, tmp_path / "store"), locked(where.lock):
        process = started(tmp_path, {"NOTIFY_SOCKET": systemd.name}, sys.executable, "-c", PASS, str(path))
        try:
            waits = systemd.until(f"STATUS=waits: process {os.getpid()} records into the store")
            systemd.until("WATCHDOG=1")
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(PATIENCE)
                client.connect(str(path))
                let_go = client.recv(1)
        except BaseException:
            process.kill()
            raise
    try:
        systemd.until("STATUS=opening the store")
        assert until(lambda: answers(path))
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert waits[0] == "READY=1"  # who starts it need not wait for the other
    assert let_go == b""
    assert process.returncode == 0


def answers(path: Path) -> bool:
    """Whether a daemon says something at this name."""
    try:
        client = Client(path, PATIENCE)
        client.ask("status", {})
        client.close()
    except DaemonUnreachable:
        return False
    return True


def test_a_passed_socket_that_lost_its_name_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "passed.sock"
    code = PASS.replace("listening.listen()", "listening.listen(); os.unlink(sys.argv[1])")
    process = started(tmp_path, {}, sys.executable, "-c", code, str(path))
    try:
        assert until(lambda: answers(tmp_path / "store" / "asrd.sock"))
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize(
    "env", [{}, {"LISTEN_FDS": "1"}, {"LISTEN_PID": "1", "LISTEN_FDS": "1"}, {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "x"}]
)  # fmt: skip
def test_no_socket_is_taken_that_was_passed_to_another(env: dict[str, str]) -> None:
    assert activated(env) is None
