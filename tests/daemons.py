"""The daemon as a process of its own, as a user runs it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

from asrd.client import Client
from asrd.errors import AsrdError, DaemonUnreachable
from asrd.paths import Folders, folders
from tests.homes import environment

PATIENCE = 30.0
"""Seconds after which something that should come soon is given up; the machine may be busy."""


def until(true: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Waits for something to be true; gives it. The last answer is given when it never was."""
    end = time.monotonic() + patience
    while True:
        found = true()
        if found or time.monotonic() > end:
            return found
        time.sleep(0.01)


class Running:
    """One `asrd run`. `words`: what it said on stderr, once it ended."""

    def __init__(self, home: Path, store: Path, **more: str) -> None:
        self.env = {**os.environ, **environment(home, store, **more)}
        self.where: Folders = folders(self.env)
        self.words = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "asrd", "run"],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> "Running":
        """Waits until it answers."""
        assert until(self._answers), self.end()
        return self

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            return True
        with contextlib.suppress(DaemonUnreachable):
            self.ask("status")
            return True
        return False

    def ask(self, method: str, **params: Any) -> Any:
        """The answer to one question over a connection of its own."""
        client = Client(self.where.socket)
        try:
            return client.ask(method, params)
        finally:
            client.close()

    def caught_up(self) -> "Running":
        """Waits until all that is there was recorded."""
        assert until(lambda: self.process.poll() is not None or self.ask("status")["caughtUp"])
        assert self.process.poll() is None, self.end()
        return self

    def records_of(self, session: str) -> int:
        """How many records the session has by now."""
        try:
            return self.ask("session.get", session=session)["session"]["records"]
        except AsrdError:
            return 0

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ends it by a signal; gives its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, self.words = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


@contextlib.contextmanager
def running(home: Path, store: Path, **more: str) -> Generator[Running]:
    """A daemon that answers, and is ended whatever happens."""
    daemon = Running(home, store, **more)
    try:
        yield daemon.ready()
    finally:
        if daemon.process.poll() is None:
            daemon.end(signal.SIGKILL)
        if daemon.process.stderr:
            daemon.process.stderr.close()


def command(env: Mapping[str, str], *args: str, patience: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """One command of asrd in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "asrd", *args],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
