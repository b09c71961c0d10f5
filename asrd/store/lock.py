"""One daemon a store: a lock that says who holds it, and that the system drops when its holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path

from asrd import clock
from asrd.errors import StoreLocked, StoreUnusable
from asrd.store.disk import make_folder

TRIES = 25
"""How often a lock that nobody signed is tried again, 20 ms apart: `holder` takes it for a moment."""


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Holds the store's lock. Raises StoreLocked with the holder's pid while another process has it."""
    make_folder(path.parent)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnusable(store=path.parent, reason=error.strerror) from error
    try:
        for left in range(TRIES, -1, -1):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                pid = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
                if pid or not left:  # without a pid it is one that only looks, or has just begun
                    raise StoreLocked(pid=pid or "unknown", store=path.parent) from error
            clock.pause(0.02)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def holder(path: Path) -> int | None:
    """The pid of the process that holds the lock, None when none does."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        text = os.read(handle, 32).decode("ascii", "replace").strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(handle)
    return None
