"""Asks: the daemon over its socket when one runs, else the store itself. The answers are the same."""

from __future__ import annotations

import contextlib
import math
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from asrd import __version__, clock, wire
from asrd.answers import METHODS, ask
from asrd.errors import (
    DaemonRefused,
    DaemonUnreachable,
    NothingFound,
    NotUnderstood,
    StoreFull,
    StoreLocked,
    StoreUnusable,
)
from asrd.paths import Folders, short_name
from asrd.store import Store, check_version
from asrd.store.lock import holder, locked
from asrd.store.rows import IndexRows

TIMEOUT = 60.0
STATUS_TIMEOUT = 10.0
"""Seconds after which a daemon that does not say how it is, is said not to answer."""


class Client:
    """One conversation with the daemon."""

    def __init__(self, path: Path, timeout: float | None = TIMEOUT) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            with short_name(path) if path.parent.is_dir() else contextlib.nullcontext(str(path)) as name:
                self._connect(name, timeout or TIMEOUT)
        except OSError as error:
            self._socket.close()
            raise DaemonUnreachable(socket=path) from error
        self._file = self._socket.makefile("rb")
        self._next = 0

    def _connect(self, name: str, timeout: float) -> None:
        until = clock.ticks() + timeout
        while True:
            try:
                return self._socket.connect(name)
            except BlockingIOError:  # as many wait to be let in as the system allows
                if clock.ticks() > until:
                    raise
            clock.pause(0.01)

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The answer to one question. Raises DaemonRefused, DaemonUnreachable."""
        self._next += 1
        self._send(wire.request(self._next, method, params))
        while True:
            found = self.receive()
            if found.get("id") == self._next:
                break
        if "error" in found:
            raise refusal(found["error"])
        return found["result"]

    def receive(self) -> dict[str, Any]:
        """The next message. Raises DaemonUnreachable when the daemon is gone."""
        try:
            line = self._file.readline()
        except OSError as error:
            raise DaemonUnreachable(socket=self.path) from error
        if not line:
            raise DaemonUnreachable(socket=self.path)
        return msgspec.json.decode(line)

    def patient(self, seconds: float | None = None) -> None:
        """Waits for messages so long; None = as long as it takes."""
        self._socket.settimeout(seconds)

    def close(self) -> None:
        """Ends the conversation; another thread that waits in `receive` gets DaemonUnreachable."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._socket.close()

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise DaemonUnreachable(socket=self.path) from error


def refusal(error: dict[str, Any]) -> DaemonRefused:
    """What the daemon refused, with the exit code and the kind of error it says."""
    found = DaemonRefused(reason=error.get("message", "no reason given"))
    data: dict[str, Any] = error.get("data") or {}
    if isinstance(data.get("kind"), str):
        found.facts["kind"] = data["kind"]
    if isinstance(data.get("exitCode"), int):
        found.exit_code = data["exitCode"]  # type: ignore[misc]
    return found


class Asker:
    """Asks wherever the answer is: `method` with `params`, daemon or not."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self._client: Client | None = None
        self._rows: IndexRows | None = None
        with contextlib.suppress(DaemonUnreachable):
            self._client = Client(folders.socket)

    @property
    def daemon(self) -> bool:
        """Whether a daemon answers."""
        return self._client is not None

    def ask(self, method: str, params: dict[str, Any] | None = None, *, patient: bool = False) -> Any:
        """The answer, waited for as long as it takes when `patient`. Raises AsrdError of all kinds."""
        given = {k: v for k, v in (params or {}).items() if v is not None}
        if self._client is not None:
            if patient:
                self._client.patient()
            elif method == "status":
                self._client.patient(STATUS_TIMEOUT)
            try:
                return self._client.ask(method, given)
            except DaemonUnreachable:
                self._client.close()
                self._client = None
                if method not in METHODS and method != "status":
                    raise
                # It ended, or does not answer yet: what it would say stands in the store.
        if method == "status":
            return self._status()
        if method not in METHODS:
            raise NotUnderstood(what=f"the method {method}")
        return msgspec.json.decode(msgspec.json.encode(ask(self.rows(), method, given)))

    def rows(self) -> IndexRows:
        """The index itself, brought up to date with the streams when no daemon does that."""
        if self._rows is None:
            if not self.folders.streams.is_dir():
                raise NothingFound(query="anything (nothing is recorded yet; `asrd sync` records)")
            check_version(self.folders.store)
            if holder(self.folders.lock) is None:
                # A store that cannot be written is asked as it is.
                with contextlib.suppress(StoreLocked, StoreUnusable, StoreFull), locked(self.folders.lock):
                    store = Store(self.folders)
                    store.index.catch_up(store.disk)
                    store.close()
            self._rows = IndexRows(open_reader(self.folders), self.folders.streams)
        return self._rows

    def follow(
        self, params: dict[str, Any], wait: float = 0.0, lost: Callable[[], None] = lambda: None
    ) -> Iterator[list[Any]]:
        """Records as they come, in lists, each once.

        A daemon that ends is waited for so many seconds (`lost` is called first), and the same session followed on where it
        was. Raises DaemonUnreachable where none runs, or when it ended and did not come back, DaemonRefused.
        """
        if self._client is None:
            raise DaemonUnreachable(socket=self.folders.socket)
        given: dict[str, Any] = {k: v for k, v in params.items() if v is not None}
        until = clock.ticks()
        while True:
            try:
                self._client = self._client or Client(self.folders.socket)
                answer = self._client.ask("session.follow", given)
                self._client.patient()
                given = {"session": answer["sessionId"], "agent": answer["agent"], "from": answer["from"]}
                if answer["namespace"] is not None:
                    given["namespace"] = answer["namespace"]
                until = math.inf
                while True:
                    found = self._client.receive()
                    if found.get("method") == "session.records":
                        given["from"] = found["params"]["next"]
                        yield found["params"]["records"]
            except (DaemonUnreachable, DaemonRefused):
                # Lost now; or not back yet, or back and not yet with this session.
                if until == math.inf:
                    until = clock.ticks() + wait
                    lost()
                if self._client is not None:
                    self._client.close()
                    self._client = None
                if clock.ticks() >= until:
                    raise
                clock.pause(0.1)

    def _status(self) -> dict[str, Any]:
        totals = self.rows().totals() if self.folders.streams.is_dir() else {}
        return {
            "schema": "asrd.status/1",
            "running": False,
            "pid": holder(self.folders.lock),
            "version": __version__,
            "store": str(self.folders.store),
            "socket": str(self.folders.socket),
            "totals": totals,
        }


def open_reader(folders: Folders) -> Any:
    """A connection to the index for reading. Raises StoreUnusable where there is none (yet)."""
    import sqlite3

    said: sqlite3.Error | None = None
    for how in ("mode=ro", "mode=ro&immutable=1"):
        if how != "mode=ro" and (
            os.access(folders.store, os.W_OK) or folders.index.with_suffix(".sqlite-wal").exists()
        ):
            break  # only where nobody can write may it be taken as it lies
        try:
            db = sqlite3.connect(f"{folders.index.as_uri()}?{how}", uri=True, timeout=10)
            db.execute("SELECT 1 FROM session LIMIT 1")
            db.row_factory = sqlite3.Row
            return db
        except sqlite3.Error as error:
            said = error
    raise StoreUnusable(store=folders.store, reason=f"its index: {said}; try again in a moment") from said
