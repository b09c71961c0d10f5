"""Run asrd as a service of this user: systemd on Linux, launchd on macOS. It starts with the session and after a failure.

    asrd service install      write the files, start it (again after an update: the same command)
    asrd service status       what the service manager and the daemon say
    asrd service logs -f      what it says as it goes
    asrd service uninstall    stop it, remove the files; what is recorded stays

`--dry-run` prints what would be written and run. The service may read what you can read and write only its store.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from asrd.commands._common import asker, json_argument, print_json
from asrd.errors import AsrdError, ServiceError
from asrd.paths import Folders, folders
from asrd.recorders import load
from asrd.service import LABEL, SOCKET, UNIT, Plan, agent, socket_unit, unit, variables
from asrd.store.disk import make_folder, replace
from asrd.text import inert

STEPS = 254
"""The first systemd that knows RestartSteps (systemd.service(5))."""
ACTIONS = ("install", "start", "stop", "restart", "status", "logs", "uninstall")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("--dry-run", action="store_true", help="print what would be written and run, do nothing")
    parser.add_argument(
        "--observe",
        action="store_true",
        help="install without name spaces, so that sessions are linked by their processes too (Linux)",
    )
    parser.add_argument("-f", "--follow", action="store_true", help="logs: as they come")
    parser.add_argument("-n", "--lines", type=int, default=100, help="logs: how many lines (100)")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it. Raises ServiceError where there is no service manager for a user here."""
    env, where = (
        os.environ,
        folders(),
    )  # as the user has it: what is not set there has its usual place in the service too
    manager = Launchd(env, where, args) if sys.platform == "darwin" else Systemd(env, where, args)
    manager.check()
    if args.action == "status":
        return status(manager, args.json)
    return int(getattr(manager, args.action)() or 0)


class File(Struct):
    """A file of the service."""

    path: Path
    data: bytes

    @property
    def current(self) -> bool:
        """Whether it stands there as it should."""
        try:
            return self.path.read_bytes() == self.data
        except OSError:
            return False


class Manager:
    """What both service managers need."""

    name = ""

    def __init__(self, env: Mapping[str, str], where: Folders, args: argparse.Namespace) -> None:
        self.env, self.where, self.args = env, where, args

    def plan(self) -> Plan:
        """The service of this home."""
        script = Path(sys.executable).with_name("asrd")
        command = (str(script),) if script.exists() else (sys.executable, "-m", "asrd")
        roots = {name: tuple(v for root in r.roots for v in root.env) for name, r in load().items()}
        return Plan(
            command=(*command, "run"),
            store=str(self.where.store),
            socket=str(self.where.socket),
            log=str(self.where.home / "Library" / "Logs" / "asrd.log"),
            env=variables(self.env, roots),
            observe=self.args.observe,
            steps=self.steps(),
        )

    def steps(self) -> bool:
        """Whether the service manager can wait longer after each failure."""
        return True

    def check(self) -> None:
        """Raises ServiceError where it cannot be done here. A dry run needs nobody."""
        if not self.args.dry_run and os.getuid() == 0:
            raise self.refused(
                "it is a service of the user whose sessions it records, and this is root; run it as that user"
            )

    def files(self) -> list[File]:
        """The files as they should stand."""
        raise NotImplementedError

    def refused(self, reason: str) -> ServiceError:
        """Why it cannot be done."""
        done = {"install": "installed", "uninstall": "uninstalled", "start": "started", "stop": "stopped"}
        done |= {"restart": "restarted", "status": "asked", "logs": "read"}
        return ServiceError(action=done[self.args.action], reason=reason)

    def write(self) -> bool:
        """Writes the files; whether any was other than it should be."""
        changed = False
        for file in self.files():
            if self.args.dry_run:
                sys.stdout.write(f"# {file.path}{' (as it stands)' if file.current else ''}\n{file.data.decode()}\n")
            elif file.current:
                say(f"{file.path} is as it should be.")
            else:
                replace(file.path, file.data)
                say(f"{file.path} written.")
                changed = True
        if not self.args.dry_run:
            make_folder(self.where.store)
            make_folder(self.where.socket.parent)
        return changed

    def remove(self) -> None:
        """Removes the files."""
        for file in self.files():
            if self.args.dry_run:
                sys.stdout.write(f"rm {file.path}\n")
            elif file.path.exists():
                file.path.unlink()
                say(f"{file.path} removed.")

    def call(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a program of the service manager. Raises ServiceError with what it says when it fails and `check`."""
        if self.args.dry_run:
            sys.stdout.write(" ".join(words) + "\n")
            return subprocess.CompletedProcess(words, 0, "", "")
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self.refused(f"{words[0]}: {error}") from error
        if check and done.returncode:
            raise self.refused(f"`{' '.join(words)}` says: {(done.stderr or done.stdout).strip()[:500]}")
        return done

    def shown(self) -> dict[str, Any]:
        """What the service manager says: `installed`, `active`, `state`, `pid`."""
        raise NotImplementedError


class Systemd(Manager):
    """systemd's user manager."""

    name = "systemd"

    @property
    def folder(self) -> Path:
        """Where a user's units lie."""
        return Path(self.env.get("XDG_CONFIG_HOME") or self.where.home / ".config") / "systemd" / "user"

    def files(self) -> list[File]:
        """Both units."""
        plan = self.plan()
        return [
            File(self.folder / UNIT, unit(plan).encode()),
            File(self.folder / SOCKET, socket_unit(plan).encode()),
        ]

    def steps(self) -> bool:
        """Since systemd 254, which `systemctl --version` tells: `systemd 252 (252.39-1~deb12u2)`."""
        try:
            done = subprocess.run(["systemctl", "--version"], capture_output=True, text=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return True
        return (_number((done.stdout.split() + ["", ""])[1]) or STEPS) >= STEPS

    def check(self) -> None:
        """There must be a user manager."""
        super().check()
        if self.args.dry_run:
            return
        if shutil.which("systemctl") is None:
            raise self.refused("systemd is not here; start `asrd run` by what starts programs here")
        if self.call("systemctl", "--user", "show-environment", check=False).returncode:
            raise self.refused(
                "systemd runs no manager for this user; log in (not by su or sudo), or run `loginctl enable-linger` once"
            )

    def install(self) -> None:
        """Writes the units and starts them; started ones start anew where something changed."""
        changed = self.write()
        self.call("systemctl", "--user", "daemon-reload")
        self.call("systemctl", "--user", "enable", SOCKET, UNIT)
        if changed:
            self.call("systemctl", "--user", "stop", SOCKET, UNIT)
        self.call("systemctl", "--user", "start", SOCKET, UNIT)
        if not self.args.dry_run:
            say("asrd records. `asrd service status` says how it goes.")
            if self._lingers() is not True:
                say("It ends when you log out; `loginctl enable-linger` keeps it running.")

    def _lingers(self) -> bool | None:
        if shutil.which("loginctl") is None:
            return None
        said = self.call("loginctl", "show-user", str(os.getuid()), "--property=Linger", check=False).stdout
        return {"Linger=yes": True, "Linger=no": False}.get(said.strip())

    def start(self) -> None:
        """Starts both."""
        self.call("systemctl", "--user", "start", SOCKET, UNIT)

    def stop(self) -> None:
        """Stops both: whoever asked would start it again else."""
        self.call("systemctl", "--user", "stop", SOCKET, UNIT)

    def restart(self) -> None:
        """Starts both anew: a daemon that was started by hand took the socket's name with it."""
        self.call("systemctl", "--user", "stop", SOCKET, UNIT)
        self.call("systemctl", "--user", "start", SOCKET, UNIT)

    def uninstall(self) -> None:
        """Stops it and removes the units."""
        self.call("systemctl", "--user", "disable", "--now", SOCKET, UNIT, check=False)
        self.remove()
        self.call("systemctl", "--user", "daemon-reload")
        if not self.args.dry_run and not asker().daemon:
            self.where.socket.unlink(missing_ok=True)  # systemd leaves its name; one started by hand keeps its own
        if not self.args.dry_run:
            say(f"What is recorded stays in {self.where.store}.")

    def logs(self) -> int:
        """The journal."""
        words = ["journalctl", "--user", "--unit", UNIT, "--lines", str(self.args.lines), "--no-pager"]
        words += ["--follow"] if self.args.follow else []
        words += ["--output", "json"] if self.args.json else []
        if self.args.dry_run:
            sys.stdout.write(" ".join(words) + "\n")
            return 0
        try:
            return subprocess.run(words, check=False).returncode
        except OSError as error:
            raise self.refused(f"{words[0]}: {error}") from error

    def shown(self) -> dict[str, Any]:
        """`systemctl show`."""
        fields = ("LoadState", "ActiveState", "SubState", "MainPID", "NRestarts", "StatusText", "MemoryCurrent")
        words = ("systemctl", "--user", "show", UNIT, "--property=" + ",".join(fields))
        said = dict(_fields(self.call(*words).stdout, "="))
        return {
            "installed": said.get("LoadState") == "loaded",
            "active": said.get("ActiveState") == "active",
            "state": "/".join(filter(None, (said.get("ActiveState"), said.get("SubState")))) or None,
            "pid": _number(said.get("MainPID")) or None,
            "restarts": _number(said.get("NRestarts")),
            "memory": _number(said.get("MemoryCurrent")),
            "says": said.get("StatusText") or None,
        }


class Launchd(Manager):
    """launchd's agents of a user."""

    name = "launchd"

    @property
    def domain(self) -> str:
        """Where a user's agents run."""
        return f"gui/{os.getuid()}"

    def files(self) -> list[File]:
        """The agent."""
        return [File(self.where.home / "Library" / "LaunchAgents" / f"{LABEL}.plist", agent(self.plan()))]

    def check(self) -> None:
        """There must be a launchctl."""
        super().check()
        if not self.args.dry_run and shutil.which("launchctl") is None:
            raise self.refused("launchctl is not here")

    def install(self) -> None:
        """Writes the agent and loads it anew."""
        changed = self.write()
        if changed or self.args.dry_run or not self.shown()["installed"]:
            self.call("launchctl", "bootout", f"{self.domain}/{LABEL}", check=False)
            self.call("launchctl", "bootstrap", self.domain, str(self.files()[0].path))
        if not self.args.dry_run:
            say("asrd records while you are logged in. `asrd service status` says how it goes.")

    def start(self) -> None:
        """Starts it."""
        if self.args.dry_run or not self.shown()["installed"]:
            self.call("launchctl", "bootstrap", self.domain, str(self.files()[0].path), check=False)
        self.call("launchctl", "kickstart", f"{self.domain}/{LABEL}")

    def stop(self) -> None:
        """Unloads it: launchd starts what is loaded."""
        self.call("launchctl", "bootout", f"{self.domain}/{LABEL}")

    def restart(self) -> None:
        """Starts it anew."""
        self.call("launchctl", "kickstart", "-k", f"{self.domain}/{LABEL}")

    def uninstall(self) -> None:
        """Unloads it and removes the agent."""
        self.call("launchctl", "bootout", f"{self.domain}/{LABEL}", check=False)
        self.remove()
        if not self.args.dry_run:
            say(f"What is recorded stays in {self.where.store}.")

    def logs(self) -> int:
        """The end of the log file."""
        words = ["tail", "-n", str(self.args.lines), *(["-F"] if self.args.follow else []), self.plan().log]
        if self.args.dry_run:
            sys.stdout.write(" ".join(words) + "\n")
            return 0
        return subprocess.run(words, check=False).returncode

    def shown(self) -> dict[str, Any]:
        """`launchctl print`."""
        done = self.call("launchctl", "print", f"{self.domain}/{LABEL}", check=False)
        said = dict(_fields(done.stdout, " = "))
        return {
            "installed": done.returncode == 0,
            "active": said.get("state") == "running",
            "state": said.get("state"),
            "pid": _number(said.get("pid")),
            "restarts": None,
            "memory": None,
            "says": None,
        }


def status(manager: Manager, as_json: bool) -> int:
    """What the service manager and the daemon say; 0 while it runs and answers."""
    shown = manager.shown()
    try:
        asked = asker() if shown["active"] else None  # whoever asks at the socket starts it
        said = asked.ask("status") if asked is not None and asked.daemon else None
    except AsrdError:
        said = None
    daemon = said if said and said["running"] else None
    files = [{"path": str(f.path), "current": f.current} for f in manager.files()]
    answer: dict[str, Any] = {
        "schema": "asrd.service/1",
        "manager": manager.name,
        **shown,
        "answers": daemon is not None,
        "caughtUp": daemon.get("caughtUp") if daemon else None,
        "files": files,
    }
    if as_json:
        print_json(answer)
    else:
        out = sys.stdout.write
        state = inert(str(answer["state"])) if shown["installed"] else "not installed; `asrd service install`"
        out(f"{manager.name}: {state}" + (f" (process {shown['pid']})" if shown["pid"] else "") + "\n")
        if shown["says"] and shown["active"]:
            out(f"it says: {inert(shown['says'])}\n")
        if shown["restarts"]:
            times = "once" if shown["restarts"] == 1 else f"{shown['restarts']} times"
            out(f"started again {times} after failures; `asrd service logs` says why\n")
        out("it answers\n" if daemon else "it does not answer\n" if shown["active"] else "")
        for file in files:
            if shown["installed"] and not file["current"]:
                out(f"{file['path']} is not as this version makes it; `asrd service install` renews it\n")
    return 0 if shown["active"] and daemon is not None else 1


def say(words: str) -> None:
    """One line about what is done."""
    sys.stderr.write(words + "\n")


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() and int(text) < 1 << 62 else None


def _fields(text: str, sign: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, equals, value = line.strip().partition(sign)
        if equals:
            yield name, value
