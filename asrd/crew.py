"""A first reading by several processes: workers convert and append, this process alone writes the index and the cursors.

Invariants
    - A worker appends only to streams that it made itself for the group at hand; a group that needs another stream, or
      fails, is left to the parent, which does it as if there had been no workers.
    - The append stays the commit point: what a worker tells of a stream was synced before, in the order it was appended.
    - The streams are those of one process, byte for byte: a stream is made of one group, by one recorder.
    - The store's lock lasts as long as any worker (its file is inherited), and a worker ends when its parent is gone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, cast

import msgspec

from asrd.errors import AsrdError, StoreUnusable
from asrd.paths import Folders
from asrd.recorders import load
from asrd.recorders.base import Recorded, StreamKey
from asrd.records import Record
from asrd.rollup import SessionRow
from asrd.store import Grown, Store
from asrd.store.cursors import Cursor, Cursors, Saved
from asrd.store.index import Folded, Index, folded
from asrd.store.stream import Stream
from asrd.tail import Group, Quiet, Tail

WORTH = 12 << 20
"""Source bytes from which on workers are started: below it one process is done before they would be."""
MOST = 6
"""Workers at most: the process that writes the index keeps up with about as many."""
_LENGTH = struct.Struct("<I")


class _Indexed(msgspec.Struct, tag=True):
    """Streams grew, durably."""

    items: list[Folded]


class _Kept(msgspec.Struct, tag=True):
    """Where sources stand, and what captures go on from."""

    cursors: list[Cursor]
    saved: list[Saved]


class _Read(msgspec.Struct, tag=True):
    """A group was read (or `left` to the parent); `taken`: source bytes read so far."""

    number: int
    taken: int
    left: bool


class _Over(msgspec.Struct, tag=True):
    """The worker is done; all it said is durable."""


_told = msgspec.msgpack.Decoder(_Indexed | _Kept | _Read | _Over)


class Taken(StoreUnusable):
    """{store} was not made by this worker ({reason}); the parent goes on with it."""


# ---------------------------------------------------------------- which groups, how many workers


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def fresh(due: Iterable[Group]) -> list[tuple[Group, int]]:
    """The groups nothing is known of yet with their size in bytes, the largest first. Not spools: those the parent deletes."""
    found: list[tuple[Group, int]] = []
    for group in due:
        if group.cursors or load()[group.harness].spooled:
            continue
        size = 0
        for one in group.found.values():
            if one.source.kind == "shared":
                continue
            with contextlib.suppress(OSError):
                size += os.stat(one.path).st_size
        found.append((group, size))
    return sorted(found, key=lambda f: (-f[1], f[0].key))


def workers_for(groups: Sequence[tuple[Group, int]], jobs: int | None) -> int:
    """How many workers to start; 0 = none. `jobs`: at most so many processes, None = as many as there are cores.

    Workers are forked, which only a process without other threads can do safely.
    """
    most = cores() if jobs is None else jobs
    if most < 2 or len(groups) < 2 or sum(size for _, size in groups) < WORTH:
        return 0
    if not hasattr(os, "fork") or sys.platform == "darwin" or threading.active_count() > 1:
        return 0
    return min(most, MOST, len(groups))


# ---------------------------------------------------------------- the parent


class _Worker:
    """A worker as its parent sees it: its process, and what came from it and is no whole message yet."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid, self.pipe = pid, pipe
        self.held = bytearray()
        self.over = False

    def messages(self, data: bytes) -> Iterable[_Indexed | _Kept | _Read | _Over]:
        """The messages that end in this piece."""
        self.held += data
        while len(self.held) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self.held)
            if len(self.held) < _LENGTH.size + length:
                return
            with memoryview(self.held) as view:
                found = _told.decode(view[_LENGTH.size : _LENGTH.size + length])
            del self.held[: _LENGTH.size + length]
            yield found


def record(
    store: Store,
    env: Mapping[str, str],
    groups: Sequence[tuple[Group, int]],
    count: int,
    progress: Callable[[int, int], None],
) -> tuple[set[tuple[str, str]], int]:
    """Reads groups with `count` workers; gives the keys of those that are done, and the source bytes read.

    `progress(groups done, bytes read)`. Raises StoreFull, StoreUnusable.
    """
    chosen = [group for group, _ in groups]
    done: set[int] = set()
    taken: dict[int, int] = {}
    workers: dict[int, _Worker] = {}
    read: dict[int, set[int]] = {}
    try:
        with tempfile.TemporaryFile() as tasks:
            tasks.write(b"".join(_LENGTH.pack(n) for n in range(len(chosen))))
            tasks.flush()
            tasks.seek(0)
            for _ in range(count):
                worker = _start(store.folders, env, chosen, tasks.fileno(), [w.pipe for w in workers.values()])
                workers[worker.pipe] = worker
                read[worker.pipe] = set()
        open_pipes = set(workers)
        while open_pipes:
            for pipe in select.select(open_pipes, [], [])[0]:
                worker = workers[pipe]
                data = os.read(pipe, 1 << 20)
                if not data:
                    open_pipes.discard(pipe)
                    if worker.over:
                        done |= read[pipe]
                    continue
                for told in worker.messages(data):
                    if isinstance(told, _Indexed):
                        store.index.add_folded(told.items)
                    elif isinstance(told, _Kept):
                        store.cursors.put(told.cursors, told.saved)
                    elif isinstance(told, _Read):
                        taken[pipe] = told.taken
                        if not told.left:
                            read[pipe].add(told.number)
                            progress(sum(map(len, read.values())), sum(taken.values()))
                    else:
                        worker.over = True
    finally:
        for worker in workers.values():
            os.close(worker.pipe)
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)  # one that is over has ended by itself; another must not go on
            with contextlib.suppress(ChildProcessError):
                os.waitpid(worker.pid, 0)
    return {chosen[n].key for n in done}, sum(taken.values())


def _start(folders: Folders, env: Mapping[str, str], groups: list[Group], tasks: int, others: list[int]) -> _Worker:
    parent = os.getpid()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        for pipe in others:
            os.close(pipe)
        _work(folders, env, groups, tasks, theirs, parent)
    os.close(theirs)
    return _Worker(pid, ours)


# ---------------------------------------------------------------- a worker


def _work(
    folders: Folders, env: Mapping[str, str], groups: list[Group], tasks: int, pipe: int, parent: int
) -> NoReturn:
    """The life of a worker. The numbers of the groups to read come from a file whose place all workers share."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
        store = _Fresh(folders, pipe, parent)
        tail = Tail(store, folders.home, env, Quiet())
        while len(number := os.read(tasks, _LENGTH.size)) == _LENGTH.size:
            at: int = _LENGTH.unpack(number)[0]
            store.begin()
            try:
                left = tail.observe(groups[at])
            except AsrdError:
                left = True
            _tell(pipe, _Read(at, tail.taken, left))
        tail.close()
        _tell(pipe, _Over())
        code = 0
    finally:
        os._exit(code)


def _tell(pipe: int, message: msgspec.Struct) -> None:
    data = msgspec.msgpack.encode(message)
    view = memoryview(_LENGTH.pack(len(data)) + data)
    while view:
        view = view[os.write(pipe, view) :]


class _Fresh(Store):
    """The store as a worker has it: streams it makes itself, and index and cursors at the other end of a pipe."""

    def __init__(self, folders: Folders, pipe: int, parent: int) -> None:
        index = cast("Index", _ToldIndex(self, pipe))  # of an index, only taking in is asked of it; so with the cursors
        super().__init__(folders, index=index, cursors=cast("Cursors", _ToldCursors(pipe)))
        self._parent = parent
        self.made: set[StreamKey] = set()

    def begin(self) -> None:
        """Another group: what streams were made for the last one is over."""
        self.made.clear()
        self._streams.clear()

    def stream(self, key: StreamKey) -> Stream:
        """A stream made for the group at hand. Raises Taken for any other that is there."""
        if key not in self.made:
            self._refuse(key)
            self.made.add(key)
        return super().stream(key)

    def append(self, key: StreamKey, records: list[Record]) -> None:
        """As `Store.append`; ends the process when the parent is gone, and the store's lock with it."""
        if os.getppid() != self._parent:
            os._exit(1)
        super().append(key, records)

    def recorded(self) -> Mapping[StreamKey, Recorded]:
        """Nothing: a stream that is there is not this worker's. Asking for it raises Taken."""
        return _Nothing(self)

    def _refuse(self, key: StreamKey) -> None:
        path = self.path(key)
        if self.disk.size(path) is not None:
            raise Taken(store=path, reason="another group feeds it")


class _Nothing(dict[StreamKey, Recorded]):
    def __init__(self, store: _Fresh) -> None:
        super().__init__()
        self._store = store

    def get(self, key: StreamKey, default: Any = None) -> Any:
        """Nothing, or Taken."""
        self._store._refuse(key)  # pyright: ignore[reportPrivateUsage]
        return default


class _ToldIndex:
    """What a worker has for an index: it folds, and tells the parent."""

    def __init__(self, store: _Fresh, pipe: int) -> None:
        self._store, self._pipe = store, pipe
        self._rows: dict[StreamKey, SessionRow] = {}

    def add(self, grown: Sequence[Grown]) -> None:
        """Tells what streams grew by, as rows."""
        streams = self._store.folders.streams
        items: list[Folded] = []
        for one in grown:
            row = self._rows.get(one.key)
            if row is None:
                row = self._rows[one.key] = SessionRow(one.key.agent, one.key.session_id, one.key.namespace)
            items.append(folded(row, one, streams))
        _tell(self._pipe, _Indexed(items))
        self._rows = {key: row for key, row in self._rows.items() if key in self._store.made}

    def close(self) -> None:
        """Nothing to close."""


class _ToldCursors:
    """What a worker has for cursors."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def revise(self, revisions: Mapping[str, int]) -> list[str]:
        """None: what was recorded by another revision has cursors, and is the parent's."""
        return []

    def all(self) -> dict[tuple[str, str], dict[str, Cursor]]:
        """None: groups that have cursors are the parent's."""
        return {}

    def saved(self, harness: str, group: str) -> Saved | None:
        """Nothing was kept."""
        return None

    def put(self, cursors: list[Cursor], saved: list[Saved]) -> None:
        """Tells the parent to keep them."""
        _tell(self._pipe, _Kept(cursors, saved))

    def drop(self, cursors: list[Cursor]) -> None:
        """Never asked: spools are the parent's."""

    def close(self) -> None:
        """Nothing to close."""
