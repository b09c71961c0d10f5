"""Tells systemd how the daemon is: ready, stopping, what it does, and that it is alive (sd_notify(3)).

Each word is one datagram to the socket that `NOTIFY_SOCKET` names; without it nothing is sent, and nothing here ever fails.
Twenty lines of our own instead of a library: the protocol is fixed, and the libraries are bindings to libsystemd or as long.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping

FIRST = 3
"""The first descriptor that socket activation passes (sd_listen_fds(3))."""


class Notifier:
    """One socket to tell. `watchdog`: seconds within which systemd wants a sign of life, None when it does not."""

    def __init__(self, env: Mapping[str, str]) -> None:
        name = env.get("NOTIFY_SOCKET", "")
        self._name = "\0" + name[1:] if name.startswith("@") else name if name.startswith("/") else ""
        self._socket: socket.socket | None = None
        self.watchdog = _watchdog(env)
        self._status = ""

    @property
    def told(self) -> bool:
        """Whether there is a service manager that is told."""
        return bool(self._name)

    def ready(self) -> None:
        """The daemon answers."""
        self._send("READY=1")

    def stopping(self) -> None:
        """The daemon was told to end."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Sent at least twice within `watchdog`."""
        self._send("WATCHDOG=1")

    def status(self, words: str) -> None:
        """What it does, on one line; sent when it is another than before."""
        if words != self._status:
            self._status = words
            self._send("STATUS=" + " ".join(words.split())[:400])

    def longer(self, seconds: float) -> None:
        """It will be so long before the next word: starting takes as long as it takes."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def _send(self, words: str) -> None:
        if not self._name:
            return
        with contextlib.suppress(OSError, ValueError):
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._socket.setblocking(False)
            self._socket.sendto(words.encode(), self._name)

    def close(self) -> None:
        """Closes the socket."""
        if self._socket is not None:
            self._socket.close()


def _watchdog(env: Mapping[str, str]) -> float | None:
    """Seconds, from what sd_watchdog_enabled(3) reads; another process's watchdog is not ours."""
    period, pid = env.get("WATCHDOG_USEC", ""), env.get("WATCHDOG_PID", "")
    if not period.isdigit() or int(period) <= 0 or (pid and pid != str(os.getpid())):
        return None
    return int(period) / 1_000_000


def activated(env: Mapping[str, str]) -> socket.socket | None:
    """The listening socket that systemd passed, None where it passed none.

    Of several the first Unix socket is taken. It is systemd's: the daemon neither makes nor removes its name.
    """
    if env.get("LISTEN_PID") != str(os.getpid()) or not env.get("LISTEN_FDS", "").isdigit():
        return None
    for number in range(FIRST, FIRST + min(int(env["LISTEN_FDS"]), 16)):
        try:
            found = socket.socket(fileno=number)
        except OSError:
            continue
        if found.family == socket.AF_UNIX and found.type == socket.SOCK_STREAM:
            os.set_inheritable(number, False)
            found.setblocking(False)
            return found
        found.detach()
    return None
