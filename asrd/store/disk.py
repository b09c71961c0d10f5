"""The store's only way to the disk, and the only module that makes things durable.

What a file system promises: bytes given to `write` are in its cache; only `fsync` on the file makes them survive power
loss, and only `fsync` on the folder makes a new name survive. Nothing here counts on more than that.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Protocol

from asrd.errors import StoreFull, StoreUnusable
from asrd.store.sealed import SealDamaged, Sealed, identity, sealed_name


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

    def sync(self, *paths: Path) -> None:
        """Makes what was appended to these files durable, and the names of those that are new."""
        ...

    def truncate(self, path: Path, size: int) -> None:
        """Cuts the file to size, durably."""
        ...


MAX_OPEN = 128
MAX_SEALED = 8
AT_ONCE = 8
"""Files that are made durable side by side: the disk joins what waits for it at the same time."""


class RealDisk:
    """Files by path, with the last used ones kept open. A sealed stream is read by the name of the plain one."""

    def __init__(self) -> None:
        self._open: OrderedDict[Path, int] = OrderedDict()
        self._new: set[Path] = set()
        self._lock = Lock()
        self._sealed: OrderedDict[Path, Sealed] = OrderedDict()
        self._pool: ThreadPoolExecutor | None = None

    def size(self, path: Path) -> int | None:
        """Bytes in the file, None when there is none."""
        try:
            return path.stat().st_size
        except FileNotFoundError:
            sealed = self.sealed(path)
            return sealed.size if sealed is not None else None
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
        except FileNotFoundError as error:
            return self._read_sealed(path, start, length, error)
        except OSError as error:
            raise StoreUnusable(store=path, reason=error.strerror) from error

    def _read_sealed(self, path: Path, start: int, length: int, why: OSError) -> bytes:
        for _ in range(2):
            sealed = self.sealed(path)
            if sealed is not None:
                try:
                    return sealed.read(start, length)
                except (SealDamaged, OSError) as error:
                    raise StoreUnusable(store=sealed.path, reason=str(error)) from error
            if path.exists():  # unsealed between the two looks
                return self.read(path, start, length)
        raise StoreUnusable(store=path, reason=why.strerror) from why

    def sealed(self, path: Path) -> Sealed | None:
        """The sealed form of a stream, where that is what there is. Raises StoreUnusable for one that is damaged."""
        name = sealed_name(path)
        try:
            now = identity(os.stat(name))
        except OSError:
            return None
        with self._lock:
            found = self._sealed.get(name)
        if found is not None and found.identity == now:
            return found
        try:
            found = Sealed(name)
        except FileNotFoundError:
            return None
        except (SealDamaged, OSError) as error:
            raise StoreUnusable(store=name, reason=str(error)) from error
        with self._lock:
            self._sealed[name] = found
            while len(self._sealed) > MAX_SEALED:
                self._sealed.popitem(last=False)
        return found

    def forget(self, path: Path) -> None:
        """Closes a stream's file, because another is put in its place."""
        with self._lock:
            handle = self._open.pop(path, None)
            if handle is not None:
                os.close(handle)
            self._sealed.pop(sealed_name(path), None)

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

    def sync(self, *paths: Path) -> None:
        """Makes what was appended to these files durable, and the names of those that are new."""
        if len(paths) == 1:
            self._flush(paths[0])
        else:
            self._pool = self._pool or ThreadPoolExecutor(AT_ONCE, "asrd-sync")
            list(self._pool.map(self._flush, paths))
        with self._lock:
            new = self._new.intersection(paths)
        for folder in {path.parent for path in new}:
            sync_folder(folder)
        with self._lock:
            self._new -= new

    def _flush(self, path: Path) -> None:
        with self._lock:
            handle = os.dup(self._handle(path))
        try:
            os.fdatasync(handle) if hasattr(os, "fdatasync") else os.fsync(handle)
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
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
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
                if sealed_name(path).exists():
                    unseal(path)
                    return self._handle(path)
                handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
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
    replace_with(path, (data,))


def draft(path: Path, parts: Iterable[bytes]) -> Path:
    """A whole file beside the one of that name, durable, to be put in its place by `put`."""
    new = path.with_name(f".{path.name}.new")
    make_folder(path.parent)
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            for data in parts:
                view = memoryview(data)
                while view:
                    view = view[os.write(handle, view) :]
            os.fsync(handle)
        finally:
            os.close(handle)
    except BaseException as error:
        with contextlib.suppress(OSError):
            new.unlink()
        if not isinstance(error, OSError):
            raise
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(store=path.parent) from error
        raise StoreUnusable(store=path, reason=error.strerror) from error
    return new


def put(new: Path, path: Path) -> None:
    """Puts a draft in its place, durably."""
    try:
        os.replace(new, path)
        sync_folder(path.parent)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(store=path.parent) from error
        raise StoreUnusable(store=path, reason=error.strerror) from error


def replace_with(path: Path, parts: Iterable[bytes]) -> None:
    """As `replace`, for content that comes in parts."""
    put(draft(path, parts), path)


def remove(path: Path) -> None:
    """Takes a file away, durably; one that is not there is gone already."""
    try:
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise StoreUnusable(store=path, reason=error.strerror) from error


def unseal(path: Path) -> None:
    """Puts the plain stream in the place of its sealed form. Raises StoreUnusable where that is damaged."""
    name = sealed_name(path)
    try:
        sealed = Sealed(name)
        replace_with(path, (sealed.frame(number) for number in range(sealed.frames())))
    except (SealDamaged, OSError) as error:
        raise StoreUnusable(store=name, reason=str(error)) from error
    remove(name)


def database_error(path: Path, error: sqlite3.Error) -> StoreFull | StoreUnusable:
    """What SQLite says of the index or the cursors, as a sentence of ours: without room, or not usable."""
    code = (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF
    full = code == sqlite3.SQLITE_FULL
    if code == sqlite3.SQLITE_IOERR:  # its shared memory finds no room either, and says only that something failed
        with contextlib.suppress(OSError):
            full = os.statvfs(path.parent).f_bavail == 0
    return StoreFull(store=path.parent) if full else StoreUnusable(store=path, reason=str(error))


def damaged(error: sqlite3.Error) -> bool:
    """Whether the file itself is at fault, and making it anew helps."""
    code = (getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
