"""The composition root: one task group of watcher, recorder and server, around one store.

The hot path is a hint, a look, an append: nothing else is awaited on it, and no question is answered on it.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import socket
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from asrd import clock, crew, process
from asrd.acp.spool import finished
from asrd.archive import ImportParams, take_in
from asrd.errors import AsrdError, SettingsError, StoreError, StoreFull, StoreLocked, StoreUnusable
from asrd.notify import Notifier, activated
from asrd.paths import Folders
from asrd.places import watched
from asrd.recorders import load
from asrd.records import Record
from asrd.serve import Server
from asrd.settings import read as read_settings
from asrd.store import Grown, Store
from asrd.store.lock import locked
from asrd.tail import Group, Quiet, Tail
from asrd.upkeep import Job, Upkeep, work
from asrd.watch import Watcher
from asrd.witness import Witness
from asrd.words import WordsIndexer

log = logging.getLogger("asrd")

SLICE = 1 << 20
"""Source bytes read of one group before another has its turn."""
PART = 128 << 10
"""Source bytes caught up with before what changes now has its turn: some 5 ms."""
ROUND = 0.05
"""Seconds after which what was appended is made durable: what changes now waits no longer than that for what is caught up."""
SWITCH = 0.0005
"""Seconds a thread may keep the interpreter while another waits: a line that comes passes five threads to its followers."""
POLL = 2.0
"""Seconds between looks at sources that changed lately: the safety net for lost hints."""
LATELY = 600.0
SCAN = 60.0
"""Seconds between looks for sources everywhere; more where a look takes long, so that it costs a thousandth of a core."""
SCAN_UNWATCHED = 5.0
MUCH = 16 << 20
"""Source bytes read after which an idle daemon gives back the memory that took (30 of 107 MB after 100 MB of 3,000 sessions)."""
AT_LEAST_EVERY = 3600.0
"""Seconds after which a source that fails each time is tried again at the latest."""
LOOK = 0.1
"""Seconds between looks for the process behind a source that changes; longer where a look takes long."""
QUIET = 0.5
"""Seconds without a hint after which the search index may go on."""
STARTING = 900.0
"""Seconds that opening the store may take: the index of a large one may have to be made anew."""
STUCK = 900.0
"""Seconds after which a round of recording is taken for stuck, and the watchdog is told nothing more."""
TOLD = 10.0
"""Seconds between two words to the service manager."""
UPKEEP_WAITS = 2.0
"""Seconds that upkeep waits, at most, between two streams while something changes."""
UPKEEP_FIRST = 600.0
UPKEEP = 3600.0
"""Seconds from the start to the first look at what rests, and between two."""
ROOTS = 2.0
"""Seconds between looks whether a harness's folder appeared, and whether the store is still there."""
LOCK = 0.5
"""Seconds between looks whether another process has let go of the store."""


class Backlog:
    """Groups that have something new: those that change now before those that wait since the start."""

    def __init__(self) -> None:
        self._hot: OrderedDict[tuple[str, str], Group] = OrderedDict()
        self._cold: OrderedDict[tuple[str, str], Group] = OrderedDict()

    def hot(self, group: Group) -> None:
        """Something changes now."""
        self._cold.pop(group.key, None)
        self._hot[group.key] = group

    def cold(self, group: Group) -> None:
        """Something to catch up with."""
        if group.key not in self._hot:
            self._cold[group.key] = group

    def first(self, group: Group) -> None:
        """Something to catch up with, before all others of its kind."""
        self.cold(group)
        if group.key in self._cold:
            self._cold.move_to_end(group.key, last=False)

    def take_hot(self) -> Group | None:
        """The next group that changes now."""
        return _first_of(self._hot)

    def take_cold(self) -> Group | None:
        """The next group to catch up with."""
        return _first_of(self._cold)

    def any_hot(self) -> bool:
        """Whether something changes now."""
        return bool(self._hot)

    def __len__(self) -> int:
        return len(self._hot) + len(self._cold)


def _first_of(queue: OrderedDict[tuple[str, str], Group]) -> Group | None:
    return queue.popitem(last=False)[1] if queue else None


class Daemon:
    """Records until it is told to stop."""

    def __init__(self, folders: Folders, env: Mapping[str, str]) -> None:
        self.folders = folders
        self.env = env
        self.started = clock.now_text()
        self.backlog = Backlog()
        self.caught_up = False
        self.trouble: OrderedDict[str, str] = OrderedDict()
        self.lately: dict[tuple[str, str], tuple[float, Group]] = {}
        self._failed: dict[tuple[str, str], tuple[int, float]] = {}
        """Groups that could not be recorded: how often, and until when they are left alone unless they change."""
        self._waited = False
        """Whether another process had the store when this one came."""
        self._gone = False
        """Whether the store was removed or replaced below this process."""
        self._unsure = False
        """Whether a folder appeared: files made in it before it was watched were not notified."""
        self._wake = anyio.Event()
        self._look = anyio.Event()
        self._folders: set[str] = set()
        """Folders that a hint named before."""
        self.witness: Witness | None = None
        self._hints: deque[str] = deque()
        self._tail_lock = threading.Lock()
        self._upkeep_lock = threading.Lock()
        self._words: WordsIndexer | None = None
        self._hinted = 0.0
        """When something was last said to have changed."""
        self.notify = Notifier(env)
        self._began: float | None = None
        """When the round that records now began."""
        self._rested = 0
        """Source bytes read when memory was last given back."""
        self._after: list[Callable[[list[Grown]], None]] = []
        self.watcher = Watcher(self.hint)

    # reports of the tail, from its thread

    def source_unreadable(self, path: str, reason: str) -> None:
        """A source could not be read; recording goes on without it."""
        log.warning("%s cannot be read: %s", path, reason)
        self._note(path, f"cannot be read: {reason}")

    def not_followed(self, path: str, reason: str) -> None:
        """Something below a root is no source that can be followed."""
        log.warning("%s is not followed: %s", path, reason)
        self._note(path, f"not followed: {reason}")

    def grown(self, grown: list[Grown]) -> None:
        """These streams grew, durably: followers are told."""
        if self._words is not None:
            self._words.news.update(one.key for one in grown)
        for told in self._after:
            anyio.from_thread.run_sync(told, grown)

    def _note(self, path: str, words: str) -> None:
        self.trouble[path] = words
        while len(self.trouble) > 200:
            self.trouble.popitem(last=False)

    # hints

    def hint(self, path: str) -> None:
        """Look at this path soon."""
        self._hinted = clock.ticks()
        self._hints.append(path)
        self._wake.set()

    # tasks

    async def run(self, ready: Callable[[], None] | None = None) -> None:
        """Records and answers until SIGTERM or SIGINT.

        Raises StoreLocked when another process records into the store, unless a service manager started this one: then it
        waits. Raises StoreUnusable when the store is removed or replaced below it.
        """
        sys.setswitchinterval(SWITCH)
        passed = activated(self.env)
        with contextlib.ExitStack() as held:
            await self._take_lock(held, passed)
            store = await anyio.to_thread.run_sync(Store, self.folders)
            tail: Tail | None = None
            try:
                self.notify.status("opening the store")
                self.notify.longer(STARTING)
                if store.index.rebuilt:
                    await anyio.to_thread.run_sync(store.index.catch_up, store.disk)
                upkeep = Upkeep(store, lambda: self._tail_lock, lambda: tail.sync() if tail else None)

                def keep_up(job: Job) -> dict[str, Any]:
                    return self._do(upkeep, job)

                def take(params: ImportParams) -> dict[str, Any]:
                    with self._upkeep_lock:
                        return take_in(upkeep, Path(params.file))

                own: dict[str, tuple[type[Any], Callable[[Any], Any]]] = {
                    "upkeep": (Job, keep_up),
                    "import": (ImportParams, take),
                }
                server = Server(self.folders, store.index.reader, self.status, own, passed)
                self._after.append(server.grown)
                async with anyio.create_task_group() as tasks:
                    await tasks.start(server.run)
                    tasks.start_soon(self._signals, tasks.cancel_scope)
                    if not store.index.rebuilt:  # what it holds is answered before it is known whether that is all
                        await anyio.to_thread.run_sync(store.index.catch_up, store.disk)
                    tail = await anyio.to_thread.run_sync(self._tail, store)
                    self.notify.ready()
                    tasks.start_soon(self._show_life)
                    tasks.start_soon(self.watcher.run)
                    tasks.start_soon(self._scan, tail, tasks.cancel_scope)
                    tasks.start_soon(self._poll, tail)
                    tasks.start_soon(self._record, tail)
                    tasks.start_soon(self._keep_up, upkeep)
                    tasks.start_soon(self._index_words, store, server)
                    if process.available():
                        tasks.start_soon(self._watch_processes, store, tail)
                    if ready is not None:
                        ready()
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(_close, store, tail, self._gone)
        if self._gone:
            raise StoreUnusable(
                store=self.folders.store, reason="it was removed or replaced while asrd recorded into it"
            )

    async def _take_lock(self, held: contextlib.ExitStack, passed: socket.socket | None) -> None:
        """Takes the store's lock. Under a service manager it is waited for: a service that ends now would stay ended.

        Who asks meanwhile at the socket that was passed is let go at once, and reads the store itself.
        """
        while True:
            try:
                held.enter_context(locked(self.folders.lock))
                return
            except StoreLocked as error:
                if not self.notify.told:
                    raise
                if not self._waited:
                    log.warning("%s This one waits.", error)
                    self._waited = True
                    self.notify.ready()
                self.notify.status(f"waits: process {error.facts['pid']} records into the store")
                self.notify.alive()
            while passed is not None:
                try:
                    passed.accept()[0].close()
                except OSError:
                    break
            await anyio.sleep(LOCK)

    def _tail(self, store: Store) -> Tail:
        return Tail(store, self.folders.home, self.env, self, finished)

    async def _signals(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                log.info("stopping on %s", signal.Signals(number).name)
                self.notify.stopping()
                scope.cancel()
                return

    async def _scan(self, tail: Tail, scope: anyio.CancelScope) -> None:
        last, took, looked = -1e9, 0.0, -1e9
        folders: list[str] = []
        streams = os.stat(self.folders.streams)
        while True:
            if not _stands(self.folders.streams, streams):
                self._gone = True
                scope.cancel()
                return
            # What they are seldom changes; whether they are there is looked at each time.
            if clock.ticks() - looked >= SCAN:
                folders, looked = await anyio.to_thread.run_sync(self._watchable, tail), clock.ticks()
            news = self.watcher.want(folders)
            often = min(max(SCAN, 1000 * took), 10 * SCAN) if self.watcher.watching else SCAN_UNWATCHED
            unsure = self._unsure and clock.ticks() - last >= 10 * took
            if news or unsure or clock.ticks() - last >= often:
                if news:
                    await anyio.sleep(0.05)  # the watch stands before the look, so that nothing falls between
                began, self._unsure = clock.ticks(), False
                due = await anyio.to_thread.run_sync(self._locked_scan, tail)
                last = clock.ticks()
                took = last - began
                for group in due:
                    if self._failed.get(group.key, (0, 0.0))[1] <= last:
                        self.backlog.cold(group)
                if due:
                    self._wake.set()
                elif not len(self.backlog):
                    self.caught_up = True
            await anyio.sleep(ROOTS)

    def _watchable(self, tail: Tail) -> list[str]:
        found: list[str] = []
        for name, recorder in load().items():
            for root in tail.roots()[name]:
                found += watched(recorder, root)
        return found

    def _locked_scan(self, tail: Tail) -> list[Group]:
        with self._tail_lock:
            return tail.scan()

    async def _poll(self, tail: Tail) -> None:
        while True:
            await anyio.sleep(POLL)
            now = clock.ticks()
            for key, (at, group) in list(self.lately.items()):
                if now - at > LATELY:
                    del self.lately[key]
                elif tail.changed(group):
                    self.backlog.hot(group)
                    self._wake.set()

    async def _record(self, tail: Tail) -> None:
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            while self._hints or len(self.backlog):
                try:
                    await anyio.to_thread.run_sync(self._work, tail)
                    self.trouble.pop(str(self.folders.store), None)
                except StoreError as error:
                    await self._wait_for_store(error)
            self.caught_up = True
            with anyio.move_on_after(5.5) as idle:
                await self._wake.wait()
            if idle.cancelled_caught:
                try:
                    await anyio.to_thread.run_sync(self._save, tail)
                except StoreError as error:
                    await self._wait_for_store(error)
                    self._wake.set()

    async def _wait_for_store(self, error: StoreError) -> None:
        """The store cannot be written now: that is said, and tried again after a while."""
        log.error("%s", error)
        self._note(str(self.folders.store), str(error))
        await anyio.sleep(5)

    def _work(self, tail: Tail) -> None:
        """One round: hints first, then a slice of what waits; all that was appended is durable at its end."""
        self._began = clock.ticks()
        try:
            self._work_round(tail)
        finally:
            self._began = None

    def _work_round(self, tail: Tail) -> None:
        with self._tail_lock:
            until = clock.ticks() + ROUND
            waits = self._live(tail)
            while clock.ticks() < until and (group := self.backlog.take_cold()) is not None:
                self._catch_up(tail, group)
                waits = self._live(tail)
            tail.sync(lambda: self._live(tail))
            if waits:
                clock.pause(0.02)

    def _live(self, tail: Tail) -> bool:
        """What changes now: looked at, recorded, durable and told to its followers before anything else goes on.

        Gives whether some of it waits for a sidecar.
        """
        hints: set[str] = set()
        while self._hints:
            hints.add(self._hints.popleft())
        for path in (one for hint in hints for one in self._inside(hint)):
            group = tail.at(path)
            if group is not None:
                self.backlog.hot(group)
            elif os.path.isdir(path):
                self._unsure = True
        again: list[Group] = []
        try:
            while self.backlog.any_hot():
                self._observe_hot(tail, again)
        finally:
            for group in again:
                self.backlog.hot(group)
        return bool(again)

    def _observe_hot(self, tail: Tail, again: list[Group]) -> None:
        """Some of what changes now: many that change at once are made durable together. `again`: those left waiting."""
        until = clock.ticks() + ROUND
        grown: list[Group] = []
        while clock.ticks() < until and (group := self.backlog.take_hot()) is not None:
            again.append(group)
            more = self._observe(tail, group, SLICE)
            if more and tail.waiting(group):
                continue
            again.pop()
            if more:
                self.backlog.cold(group)
            if more is not None:
                grown.append(group)
        tail.sync_groups(grown)
        for group in grown:
            self.lately[group.key] = (clock.ticks(), group)
            self._sighted(group)

    def _catch_up(self, tail: Tail, group: Group) -> None:
        """A slice of what waits, in parts: what changes meanwhile waits for one of them."""
        for _ in range(SLICE // PART):
            more = self._observe(tail, group, PART)
            if not more:
                return
            if tail.waiting(group):
                clock.pause(0.02)
                break
            if self._hints:
                self.backlog.first(group)
                return
        self.backlog.cold(group)

    def _observe(self, tail: Tail, group: Group, budget: int) -> bool | None:
        """So many bytes of one group; whether more of it is left. None = it went wrong, which leaves the others alone."""
        try:
            more = tail.observe(group, budget)
            self._failed.pop(group.key, None)
            return more
        except StoreFull:
            self.backlog.cold(group)
            raise
        except AsrdError as error:
            log.error("%s", error)
            self._note(group.name, str(error))
        except Exception as error:
            log.exception("%s of %s could not be recorded", group.name, group.harness)
            self._note(group.name, f"asrd failed on it ({type(error).__name__}: {error}); please report it")
        times = self._failed.get(group.key, (0, 0.0))[0] + 1
        self._failed[group.key] = (times, clock.ticks() + min(SCAN * 2**times, AT_LEAST_EVERY))
        self.lately.pop(group.key, None)
        return None

    def _inside(self, path: str) -> list[str]:
        """A path; of a folder that is new here also the files that just came into it: before it was watched, maybe."""
        if path in self._folders or not os.path.isdir(path):
            return [path]
        self._folders.add(path)
        found = [path]
        lately = clock.seconds() - LATELY
        for base, _, names in os.walk(path):
            for name in names:
                one = os.path.join(base, name)
                with contextlib.suppress(OSError):
                    if os.stat(one).st_mtime >= lately:
                        found.append(one)
        return found

    def _sighted(self, group: Group) -> None:
        """A group changes now: whose process writes it is looked for."""
        if self.witness is None or group.capture is None or len(group.found) > 8:
            return
        keys = group.capture.streams()
        for found in group.found.values():
            if keys and found.source.kind == "lines" and not found.source.sidecar:
                self.witness.saw(found.path, keys[0])
                self._look.set()

    async def _watch_processes(self, store: Store, tail: Tail) -> None:
        """Looks at processes while sources change whose process is not known; keeps what they inherited."""
        self.witness = witness = Witness(store)
        while True:
            await self._look.wait()
            self._look = anyio.Event()
            while witness.waiting:
                start = clock.ticks()
                found = await anyio.to_thread.run_sync(witness.look)
                if found:
                    await anyio.to_thread.run_sync(self._keep, witness, tail, found)
                await anyio.sleep(max(LOOK, 20 * (clock.ticks() - start)))

    def _keep(self, witness: Witness, tail: Tail, found: list[Record]) -> None:
        with self._tail_lock:
            if witness.keep(found):
                tail.sync()

    def _save(self, tail: Tail) -> None:
        with self._tail_lock:
            tail.sync()
            tail.save()
            if tail.taken - self._rested >= MUCH:
                self._rested = tail.taken
                tail.store.index.rest()
                give_back()

    # what systemd is told

    async def _show_life(self) -> None:
        """Says how it goes, and that it is alive: not while the recording has been at one thing for too long."""
        period = TOLD if self.notify.watchdog is None else min(self.notify.watchdog / 3, TOLD)
        while True:
            began = self._began
            if began is None or clock.ticks() - began < STUCK:
                self.notify.alive()
            behind = len(self.backlog)
            words = f"{behind:,} sources behind" if behind else "recording" if self.caught_up else "looking for sources"
            self.notify.status(f"{words}; {len(self.trouble):,} in trouble" if self.trouble else words)
            await anyio.sleep(period)

    # upkeep, between what changes now

    async def _keep_up(self, upkeep: Upkeep) -> None:
        """Seals what rests and lets go what the settings say, once an hour."""
        await anyio.sleep(UPKEEP_FIRST)
        while True:
            try:
                settings = read_settings(self.folders.config, self.folders.home)
                after = settings.seal.after
                seconds = None if after is None else after.total_seconds()
                job = Job(rules=list(settings.retain), after=seconds)
                done = await anyio.to_thread.run_sync(self._do, upkeep, job)
                for name in ("retained", "sealed"):
                    if done[name]:
                        log.info("%s: %d sessions", name, len(done[name]))
                self.trouble.pop(str(self.folders.config), None)
            except AsrdError as error:
                log.error("%s", error)
                where = self.folders.config if isinstance(error, SettingsError) else self.folders.store
                self._note(str(where), str(error))
            await anyio.sleep(UPKEEP)

    # search, behind everything else

    async def _index_words(self, store: Store, server: Server) -> None:
        """Keeps the search index up to date, in small parts while nothing waits to be recorded."""
        try:
            if not read_settings(self.folders.config, self.folders.home).search.index:
                return
        except SettingsError:
            pass  # said by upkeep
        words = WordsIndexer(self.folders, store.index.reader, store.disk)
        self._words = words
        stop = threading.Event()
        more = (stop, self._busy, lambda: "search" in server.asked)
        thread = threading.Thread(target=words.run, args=more, name="asrd-words", daemon=True)
        thread.start()
        try:
            await anyio.sleep_forever()
        finally:
            stop.set()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(thread.join, 2.0)

    def _busy(self) -> bool:
        """Whether something changes now or did just so, or the first catching up is not done."""
        if self._hints or self.backlog.any_hot() or clock.ticks() - self._hinted < QUIET:
            return True
        return bool(len(self.backlog) and not self.caught_up)

    def _do(self, upkeep: Upkeep, job: Job) -> dict[str, Any]:
        with self._upkeep_lock:
            return work(upkeep, job, clock.now(), self._let_record)

    def _let_record(self) -> None:
        """Waits, between two streams that are looked after, while something changes that is to be recorded."""
        until = clock.ticks() + UPKEEP_WAITS
        clock.pause(0.01)
        while self._busy() and clock.ticks() < until:
            clock.pause(0.05)

    def status(self) -> dict[str, object]:
        """What `asrd status` shows of the daemon itself."""
        return {
            "startedAt": self.started,
            "watch": self.watcher.state,
            "processes": "seen"
            if process.available()
            else "not seen on this system: only ids in outputs and handoffs link",
            "behind": len(self.backlog),
            "caughtUp": self.caught_up and not len(self.backlog),
            "trouble": [{"path": p, "what": w} for p, w in self.trouble.items()],
        }


def _close(store: Store, tail: Tail | None, gone: bool = False) -> None:
    with contextlib.suppress(StoreError if gone else StoreFull):
        if tail is not None:
            tail.close()
    with contextlib.suppress(StoreError) if gone else contextlib.nullcontext():
        store.close()


def give_back() -> None:
    """Gives memory that is free back to the system, where its C library keeps it (glibc: malloc_trim(3))."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _stands(folder: Path, before: os.stat_result) -> bool:
    """Whether the same folder stands at a path; one that may not be looked at now is taken for the same."""
    try:
        return os.path.samestat(os.stat(folder), before)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def sync_once(
    folders: Folders,
    env: Mapping[str, str],
    progress: Callable[[int, int, int], None] | None = None,
    jobs: int | None = None,
) -> dict[str, int]:
    """Brings everything up to date and ends. `progress(groups done, groups in all, bytes read)`.

    What nothing is known of yet is read by up to `jobs` processes (None = as many as there are cores). Raises StoreLocked
    while a daemon has the store, and what went wrong with a source after all others were recorded.
    """
    with locked(folders.lock):
        store = Store(folders)
        tail = Tail(store, folders.home, env, Quiet(), finished)
        try:
            store.index.catch_up(store.disk)
            due = tail.scan()
            with store.index.whole() if len(due) > 1 else contextlib.nullcontext():
                taken, failed = _read_all(store, tail, env, due, progress, jobs)
            if failed:
                raise failed[0]
            return {"sources": len(due), "bytes": taken}
        finally:
            _close(store, tail)


def _read_all(
    store: Store,
    tail: Tail,
    env: Mapping[str, str],
    due: list[Group],
    progress: Callable[[int, int, int], None] | None,
    jobs: int | None,
) -> tuple[int, list[AsrdError]]:
    """Reads all groups to their end; gives the bytes read and what went wrong."""
    failed: list[AsrdError] = []
    waiting: list[Group] = []
    left, before = due, 0

    def told(done: int, taken: int) -> None:
        if progress is not None:
            progress(done, len(due), taken)

    def observe(group: Group) -> bool:
        try:
            return tail.observe(group)
        except StoreFull:
            raise
        except AsrdError as error:
            failed.append(error)
            return False

    fresh = crew.fresh(due) if jobs != 1 else []
    if count := crew.workers_for(fresh, jobs):
        done, before = crew.record(store, env, fresh, count, told)
        left = [g for g in due if g.key not in done]
        store.index.catch_up(store.disk)  # what workers appended and could not tell
    for number, group in enumerate(left):
        if observe(group):
            waiting.append(group)
        told(len(due) - len(left) + number + 1, before + tail.taken)
    while waiting:
        clock.pause(0.02)
        waiting = [g for g in waiting if observe(g)]
    tail.sync()
    return before + tail.taken, failed
