"""The service under a real systemd user manager: started, killed, stopped, hung, asked, renewed, removed.

It installs `asrd.service` for the user who runs it, so it runs only where that is wanted (`ASRD_TEST_MANAGER=1`): in a
runner that is thrown away, or by `make test-service` in a machine of its own.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asrd.client import Client
from asrd.errors import AsrdError
from asrd.paths import folders
from asrd.service import UNIT
from asrd.store.lock import locked
from tests.daemons import until

WANTED = "ASRD_TEST_MANAGER"
PATIENCE = 120.0
"""Seconds; the machine may be an emulated one."""
LINE = (
    b'{"type":"user","uuid":"u%d","parentUuid":null,"sessionId":"of-the-service","cwd":"/home/dev/p","version":"2.1.0",'
    b'"timestamp":"2026-11-30T10:00:00.000Z","message":{"role":"user","content":"hello"}}\n'
)


def refusal() -> str | None:
    """Why no service can be installed here; None where one can."""
    if os.environ.get(WANTED) != "1":
        return f"it installs a service for its user: {WANTED}=1 says that this is wanted"
    if os.getuid() == 0:
        return "a service is not root's"
    if shutil.which("systemctl") is None:
        return "systemd is not here"
    if subprocess.run(["systemctl", "--user", "show-environment"], capture_output=True, check=False).returncode:
        return "systemd runs no manager for this user"
    if subprocess.run(["systemctl", "--user", "cat", UNIT], capture_output=True, check=False).returncode == 0:
        return "this user has the service already"
    return None


class Service:
    """The service, installed for a store and a folder of Claude Code of its own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.store = base / "store"
        self.claude = base / "claude"
        self.env = {**os.environ, "ASRD_HOME": str(self.store), "CLAUDE_CONFIG_DIR": str(self.claude)}
        self.where = folders(self.env)
        self.session = self.claude / "projects" / "-home-dev-p" / "of-the-service.jsonl"
        self.written = 0
        (self.claude / "projects").mkdir(parents=True)

    def asrd(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command."""
        return subprocess.run(
            [sys.executable, "-m", "asrd", *words],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def systemctl(self, *words: str) -> str:
        """What the manager says."""
        done = subprocess.run(["systemctl", "--user", *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def status(self) -> dict[str, Any]:
        """`asrd service status --json`."""
        return msgspec.json.decode(self.asrd("service", "status", "--json").stdout)

    def runs(self) -> dict[str, Any]:
        """Its status, waited for until it runs and answers."""
        return until(lambda: s if (s := self.status())["active"] and s["answers"] else None, PATIENCE)

    def pid(self) -> int:
        return int(self.systemctl("show", "-P", "MainPID", UNIT))

    def writes(self) -> None:
        """The harness writes a line."""
        self.session.parent.mkdir(parents=True, exist_ok=True)
        with self.session.open("ab") as file:
            file.write(LINE % self.written)
        self.written += 1

    def recorded(self) -> int:
        """How many prompts of the session the daemon knows."""
        try:
            client = Client(self.where.socket)
        except AsrdError:
            return -1
        try:
            return client.ask("session.get", {"session": "of-the-service"})["session"]["prompts"]
        except AsrdError:
            return -1
        finally:
            client.close()

    def records(self) -> bool:
        """Whether a line that is written now is recorded, and all before it."""
        self.writes()
        return until(lambda: self.recorded() == self.written, PATIENCE)


@pytest.fixture(scope="module")
def service() -> Generator[Service]:
    if reason := refusal():
        pytest.skip(reason)
    base = Path.home() / ".cache" / f"asrd-test-{os.getpid()}"  # the sandbox has a /tmp of its own
    one = Service(base)
    try:
        done = one.asrd("service", "install")
        assert done.returncode == 0, done.stderr
        yield one
    finally:
        one.asrd("service", "uninstall")
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def inside(service: Service) -> Any:
    """Runs a command where the daemon runs, with its sight of the files; gives its exit code."""
    service.runs()

    def run(*words: str) -> int:
        enter = ["nsenter", "-t", str(service.pid()), "-U", "-m", "--preserve-credentials"]
        return subprocess.run([*enter, *words], capture_output=True, check=False).returncode

    if run("true"):
        pytest.skip("a process cannot enter the name spaces of another here")
    return run


def test_it_records_answers_and_is_seen_by_its_manager(service: Service) -> None:
    assert service.runs()["pid"] == service.pid()
    assert service.records()
    assert "recording" in until(lambda: s if "recording" in (s := service.status()["says"]) else None, PATIENCE)
    assert f"answering at {service.where.socket}" in service.asrd("service", "logs", "-n", "500").stdout
    assert all(file["current"] for file in service.status()["files"])


def test_systemd_understands_every_line_of_the_units(service: Service) -> None:
    words = service.asrd("service", "logs", "-n", "500").stdout

    assert "Unknown key" not in words and "ignoring" not in words


def test_a_killed_daemon_comes_back_and_nothing_is_missing(service: Service) -> None:
    before = service.runs()["pid"]
    os.kill(before, signal.SIGKILL)
    service.writes()

    assert until(lambda: service.pid() not in (0, before), PATIENCE)
    assert service.runs()["restarts"] >= 1
    assert service.records()


def test_who_asks_starts_it(service: Service) -> None:
    service.systemctl("stop", UNIT)
    assert not service.status()["active"]  # asking how the service is starts nothing
    service.writes()

    assert service.asrd("status").returncode == 0
    assert service.runs()
    assert service.records()


def test_stopped_it_stays_stopped_and_started_it_catches_up(service: Service) -> None:
    assert service.asrd("service", "stop").returncode == 0
    assert service.asrd("status").returncode == 1  # nobody starts it by asking
    assert service.systemctl("is-active", UNIT) in ("inactive", "failed")
    service.writes()

    assert service.asrd("service", "start").returncode == 0
    assert service.runs()
    assert service.records()


def test_a_daemon_that_hangs_is_ended_and_started_again(service: Service) -> None:
    extra = Path.home() / ".config" / "systemd" / "user" / f"{UNIT}.d" / "quick.conf"
    extra.parent.mkdir()
    try:
        extra.write_text("[Service]\nWatchdogSec=4\n")
        service.systemctl("daemon-reload")
        service.asrd("service", "restart")
        before = service.runs()["pid"]
        time.sleep(6)  # one that lives is left alone
        assert service.pid() == before

        os.kill(before, signal.SIGSTOP)

        assert until(lambda: service.pid() not in (0, before), PATIENCE)
        assert "watchdog" in service.asrd("service", "logs", "-n", "50").stdout
        assert service.records()
    finally:
        shutil.rmtree(extra.parent)
        service.systemctl("daemon-reload")
        service.asrd("service", "restart")


def test_it_may_write_its_store_and_nothing_else(service: Service, inside: Any) -> None:
    assert inside("touch", str(service.store / "probe")) == 0
    (service.store / "probe").unlink()
    assert inside("cat", str(service.session)) == 0
    for path in (
        Path.home() / "probe",
        service.claude / "probe",
        Path("/var/lib/probe"),
        Path(f"/run/user/{os.getuid()}/p"),
    ):
        assert inside("touch", str(path)) != 0, path
        assert not path.exists()
    assert inside("touch", "/tmp/asrd-probe") == 0
    assert not Path("/tmp/asrd-probe").exists()  # a /tmp of its own


def test_it_has_no_rights_to_gain_and_limits_that_hold(service: Service) -> None:
    pid = service.runs()["pid"]
    said = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    assert (said["NoNewPrivs"], said["Seccomp"], said["CapBnd"]) == ("1", "2", "0000000000000000")
    assert os.stat(f"/proc/{pid}/ns/user").st_ino != os.stat("/proc/self/ns/user").st_ino

    group = Path(f"/sys/fs/cgroup{Path(f'/proc/{pid}/cgroup').read_text().split(':')[2].strip()}")
    limits = {name: (group / name).read_text().strip() for name in ("memory.high", "memory.max", "pids.max")}
    assert limits == {"memory.high": str(512 << 20), "memory.max": str(1 << 30), "pids.max": "128"}


def test_it_waits_while_another_records_into_its_store(service: Service) -> None:
    service.asrd("service", "stop")
    with locked(service.where.lock):
        assert service.asrd("service", "start").returncode == 0
        assert until(lambda: str(service.status()["says"]).startswith("waits:"), PATIENCE)
        asked = service.asrd("ls")
        assert asked.returncode == 0, asked.stderr  # the store answers itself

    assert service.runs()
    assert service.records()


def test_a_store_that_was_removed_is_made_anew_with_all_that_is_there(service: Service) -> None:
    service.runs()
    shutil.rmtree(service.store)

    assert until(lambda: service.recorded() == service.written, PATIENCE)
    service.asrd("service", "stop")
    shutil.rmtree(service.store)
    assert service.asrd("service", "start").returncode == 0
    assert service.records()


def test_installing_again_renews_only_what_is_other(service: Service) -> None:
    before = service.runs()["pid"]
    assert service.asrd("service", "install").returncode == 0
    assert service.pid() == before

    unit = Path.home() / ".config" / "systemd" / "user" / UNIT
    unit.write_text(unit.read_text().replace("Nice=5", "Nice=4"))  # as an older version made it
    assert not all(file["current"] for file in service.status()["files"])
    assert service.asrd("service", "install").returncode == 0

    assert service.runs()["pid"] != before
    assert all(file["current"] for file in service.status()["files"])
    assert service.records()


def test_uninstalled_nothing_of_it_is_left_but_the_store(service: Service) -> None:
    pid = service.runs()["pid"]
    try:
        assert service.asrd("service", "uninstall").returncode == 0

        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            pytest.fail("it still runs")
        assert service.status()["installed"] is False
        assert not list((Path.home() / ".config" / "systemd").rglob("asrd.*"))
        assert not service.where.socket.exists()
        assert len(list(service.where.streams.rglob("*.jsonl"))) == 1
    finally:
        service.asrd("service", "install")
