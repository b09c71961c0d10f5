"""The store: streams by session, with their index and cursors. It never sees a harness."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import msgspec

from asrd.errors import StoreTooNew, StoreUnusable
from asrd.paths import Folders
from asrd.recorders.base import Recorded, StreamKey
from asrd.records import Record
from asrd.store.cursors import Cursors
from asrd.store.disk import Disk, RealDisk, make_folder, put, replace
from asrd.store.disk import remove as remove_file
from asrd.store.index import Grown, Index, key_of_file, remove
from asrd.store.sealed import sealed_name
from asrd.store.stream import Stream, file_name, folder_name, recorded

VERSION = 2
"""The newest version of a store that this asrd reads. 1: plain streams. 2: some are sealed.

A store says the lowest version that reads all of it: one that has nothing sealed stays readable for the asrd before.
"""
PLAIN = 1
PART = 300
"""Records after which telling the index makes room for what cannot wait: some 5 ms."""


class _Marker(msgspec.Struct):
    version: int


class Store:
    """Streams by session. `append` then `sync`: the records survive power loss, and the index knows them."""

    def __init__(
        self, folders: Folders, disk: Disk | None = None, index: Index | None = None, cursors: Cursors | None = None
    ) -> None:
        """`index`, `cursors`: others than those of the folder (`asrd.crew`)."""
        self.folders = folders
        self.disk: Disk = disk or RealDisk()
        check_version(folders.store)
        make_folder(folders.streams)
        make_folder(folders.spool)
        self.index = index or Index(folders.index, folders.streams)
        self.cursors = cursors or Cursors(folders.cursors)
        self._streams: dict[StreamKey, Stream] = {}
        self._grown: dict[StreamKey, list[Grown]] = {}
        """What was appended since the last `sync`, append by append."""
        self._unsynced = 0

    def path(self, key: StreamKey) -> Path:
        """Where a session's stream lies."""
        return self.folders.streams / folder_name(key.agent) / file_name(key)

    def next_seq(self, key: StreamKey) -> int:
        """How many records a stream has."""
        return self.stream(key).next_seq

    def append(self, key: StreamKey, records: list[Record]) -> None:
        """Adds records to a session's stream. Durable, and told to the index, after `sync`."""
        stream = self.stream(key)
        stream.append(records)
        self._unsynced += len(records)
        self._grown.setdefault(key, []).append(Grown(key, stream.path, stream.size, list(records)))

    def sync(
        self, keys: Collection[StreamKey] | None = None, told: Callable[[list[Grown]], object] | None = None
    ) -> list[Grown]:
        """Makes all that was appended (to the streams `keys` alone) durable, tells the index, and gives what grew.

        With `told` the index is told part by part, and `told` of each part after it; it may append and sync what cannot wait.
        """
        waiting = list(self._grown) if keys is None else [key for key in keys if key in self._grown]
        if not waiting:
            return []
        self.disk.sync(*(self._grown[key][0].path for key in waiting))
        appends = {key: list(self._grown[key]) for key in waiting}
        grown = self._tell(appends) if told is None else self._tell_in_parts(appends, told)
        if len(self._streams) > 2048:
            self._streams.clear()
        return grown

    def _tell(self, appends: dict[StreamKey, list[Grown]]) -> list[Grown]:
        """The index takes in appends that are durable, the first that wait of their streams; then they wait no more."""
        grown = [_joined(several) for several in appends.values()]
        self.index.add(grown)
        for key, several in appends.items():
            waiting = self._grown[key]
            del waiting[: len(several)]
            if not waiting:
                del self._grown[key]
            self._unsynced -= sum(len(one.records) for one in several)
        return grown

    def _tell_in_parts(
        self, durable: dict[StreamKey, list[Grown]], told: Callable[[list[Grown]], object]
    ) -> list[Grown]:
        """The same, some records at a time. What `told` syncs is told with all that came before it, and left out here."""
        left = [one for several in durable.values() for one in several]
        left.reverse()
        grown: list[Grown] = []
        while left:
            part: dict[StreamKey, list[Grown]] = {}
            records = 0
            while left and records < PART:
                one = left.pop()
                of_part, waiting = part.get(one.key, []), self._grown.get(one.key, [])
                if len(of_part) < len(waiting) and waiting[len(of_part)] is one:
                    part[one.key] = [*of_part, one]
                    records += len(one.records)
            if part:
                grown += (news := self._tell(part))
                told(news)
        return grown

    def unsynced(self) -> int:
        """How many records wait for `sync`."""
        return self._unsynced

    def recorded(self) -> Mapping[StreamKey, Recorded]:
        """What each stream holds, read when it is asked for."""
        return _Lazily(self)

    def reindex(self) -> int:
        """Throws the index away and makes it anew from the streams alone."""
        self.index.close()
        remove(self.folders.index)
        self.index = Index(self.folders.index, self.folders.streams)
        return self.index.catch_up(self.disk)

    def swap(self, path: Path, new: Path, *, sealed: bool, other: bool) -> None:
        """Puts a durable draft in a stream's place, plain or sealed. `other`: it holds other bytes than the stream did.

        Only when all is synced. After power loss either the old form or the new one is the stream.
        """
        assert path not in {several[0].path for several in self._grown.values()}, f"{path} is not synced"
        make_folder(path.parent)
        self._let_go(path)
        if sealed:
            raise_version(self.folders.store)
        put(new, sealed_name(path) if sealed else path)
        remove_file(path if sealed else sealed_name(path))
        if other:
            self.index.again(self.disk, path)

    def reopen(self, path: Path) -> None:
        """A stream was given more lines than `append` knows of: it is opened and taken in anew."""
        self._let_go(path)
        self.index.again(self.disk, path)

    def discard(self, path: Path) -> None:
        """Takes a stream out of the store; what it held was put elsewhere before."""
        self._let_go(path)
        remove_file(path)
        remove_file(sealed_name(path))
        self.index.again(self.disk, path)

    def _let_go(self, path: Path) -> None:
        if isinstance(self.disk, RealDisk):
            self.disk.forget(path)
        for key in [k for k, s in self._streams.items() if s.path == path]:
            del self._streams[key]

    def close(self) -> None:
        """Syncs and closes everything."""
        self.sync()
        self.cursors.close()
        self.index.close()
        if isinstance(self.disk, RealDisk):
            self.disk.close()

    def stream(self, key: StreamKey) -> Stream:
        """A session's stream, opened."""
        found = self._streams.get(key)
        if found is None:
            found = self._streams[key] = Stream(self.disk, self.path(key))
        return found


def _joined(appends: list[Grown]) -> Grown:
    """Appends to one stream, one after the other, as one."""
    if len(appends) == 1:
        return appends[0]
    last = appends[-1]
    return Grown(last.key, last.path, last.size, [record for one in appends for record in one.records])


class _Lazily(Mapping[StreamKey, Recorded]):
    def __init__(self, store: Store) -> None:
        self._store = store

    def __getitem__(self, key: StreamKey) -> Recorded:
        path = self._store.path(key)
        if not self._store.disk.size(path):
            raise KeyError(key)
        self._store.next_seq(key)  # opens it, which cuts a torn tail off
        if not self._store.disk.size(path):
            raise KeyError(key)
        if key_of_file(self._store.disk, path) != key:
            raise StoreUnusable(store=path, reason="it holds another session than its name says")
        return recorded(self._store.disk, path)

    def __iter__(self) -> Iterator[StreamKey]:
        return iter(())

    def __len__(self) -> int:
        return 0


def check_version(store: Path) -> None:
    """Writes the store's version on first use; raises StoreTooNew for one from the future."""
    path = store / "version.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Marker).version
    except FileNotFoundError:
        replace(path, msgspec.json.encode(_Marker(PLAIN)))
        return
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreUnusable(store=store, reason=f"version.json: {error}") from error
    if found > VERSION:
        raise StoreTooNew(store=store, version=found)


def raise_version(store: Path) -> None:
    """Says that the store holds what an asrd of version 1 does not see, before it does."""
    path = store / "version.json"
    if msgspec.json.decode(path.read_bytes(), type=_Marker).version < VERSION:
        replace(path, msgspec.json.encode(_Marker(VERSION)))


__all__ = ["Grown", "Store", "check_version", "raise_version"]
