"""The store's only way to the disk, and the only module that makes things durable.

What a file system promises: bytes given to `write` are in its cache; only `fsync` on the file makes them survive power
loss, and only `fsync` on the folder makes a new name survive. Nothing here counts on more than that.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Protocol

from asrd.errors import StoreFull, StoreUnusable


class Disk(Protocol):
    """What streams need of a disk. Errors are StoreFull and StoreUnusable."""

    def size(self, path: Path) -> int | None:
        """Bytes in the file, None when there is none."""
        ...

    def read(self, path: Path, start: int, length: int) -> bytes:
        """At most `length` bytes from `start`."""
        ...

    def append(self, path: Path, data: bytes) -> None:
        """All of data at the end, or nothing of it; not yet durable."""
        ...

    def sync(self, path: Path) -> None:
        """Makes what was appended durable, and the file's name when it is new."""
        ...

    def truncate(self, path: Path, size: int) -> None:
        """Cuts the file to size, durably."""
        ...


MAX_OPEN = 128


class RealDisk:
    """Files by path, with the last used ones kept open."""

    def __init__(self) -> None:
        self._open: OrderedDict[Path, int] = OrderedDict()
        self._new: set[Path] = set()
        self._lock = Lock()

    def size(self, path: Path) -> int | None:
        """Bytes in the file, None when there is none."""
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreUnusable(store=path, reason=error.strerror) from error

    def read(self, path: Path, start: int, length: int) -> bytes:
        """At most `length` bytes from `start`."""
        try:
            with open(path, "rb", buffering=0) as file:
                file.seek(start)
                parts: list[bytes] = []
                left = length
                while left > 0 and (data := file.read(left)):
                    parts.append(data)
                    left -= len(data)
                return b"".join(parts)
        except OSError as error:
            raise StoreUnusable(store=path, reason=error.strerror) from error

    def append(self, path: Path, data: bytes) -> None:
        """All of data at the end, or nothing of it; not yet durable."""
        with self._lock:
            handle = self._handle(path)
            before = os.lseek(handle, 0, os.SEEK_END)
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(handle, view) :]
            except OSError as error:
                # What was written of it is a torn tail: it is cut now, and on the next opening if that fails too.
                with contextlib.suppress(OSError):
                    os.ftruncate(handle, before)
                if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                    raise StoreFull(store=path.parent) from error
                raise StoreUnusable(store=path, reason=error.strerror) from error

    def sync(self, path: Path) -> None:
        """Makes what was appended durable, and the file's name when it is new."""
        with self._lock:
            handle = os.dup(self._handle(path))
            new = path in self._new
            self._new.discard(path)
        try:
            os.fdatasync(handle) if hasattr(os, "fdatasync") else os.fsync(handle)
            if new:
                sync_folder(path.parent)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull(store=path.parent) from error
            raise StoreUnusable(store=path, reason=error.strerror) from error
        finally:
            os.close(handle)

    def truncate(self, path: Path, size: int) -> None:
        """Cuts the file to size, durably."""
        with self._lock:
            handle = self._handle(path)
            try:
                os.ftruncate(handle, size)
                os.fsync(handle)
            except OSError as error:
                raise StoreUnusable(store=path, reason=error.strerror) from error

    def close(self) -> None:
        """Closes all files."""
        with self._lock:
            for handle in self._open.values():
                os.close(handle)
            self._open.clear()

    def _handle(self, path: Path) -> int:
        handle = self._open.get(path)
        if handle is not None:
            self._open.move_to_end(path)
            return handle
        try:
            try:
                handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            except FileNotFoundError:
                make_folder(path.parent)
                handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                self._new.add(path)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull(store=path.parent) from error
            raise StoreUnusable(store=path, reason=error.strerror) from error
        self._open[path] = handle
        if len(self._open) > MAX_OPEN:
            _, old = self._open.popitem(last=False)
            os.close(old)
        return handle


def make_folder(path: Path) -> None:
    """A private folder (0700) with its parents; raises StoreUnusable or StoreFull."""
    try:
        missing: list[Path] = []
        at = path
        while not at.exists():
            missing.append(at)
            at = at.parent
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(folder.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(store=path) from error
        raise StoreUnusable(store=path, reason=error.strerror) from error


def sync_folder(path: Path) -> None:
    """Makes the names in a folder durable."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return  # a folder that may not be opened for reading: its owner's, not ours to sync
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems that know no fsync on folders
            raise
    finally:
        os.close(handle)


def replace(path: Path, data: bytes) -> None:
    """A whole small file in place of the old one: the old content or the new one after power loss, never a mix."""
    draft = path.with_name(f".{path.name}.new")
    make_folder(path.parent)
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(draft, path)
        sync_folder(path.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(store=path.parent) from error
        raise StoreUnusable(store=path, reason=error.strerror) from error
