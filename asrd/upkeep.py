"""Keeps a store in shape: compresses what is at rest, and lets words go by the rules a person set. Never silently.

What was done stands in a stream of asrd's own, `streams/asrd/upkeep.asr.jsonl`, one record a deed. A stream is first
made anew beside the old one, read back and held against it, and then put in its place in one step; the recording waits
for that step alone.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from asrd import __version__, clock
from asrd.errors import StoreError
from asrd.recorders.base import StreamKey
from asrd.records import (
    Agent,
    Lineage,
    Native,
    Producer,
    Record,
    Session,
    decode,
    encode,
)
from asrd.retention import Counts, Due, Held, Rule, Slimmer, due
from asrd.rollup import RETAINED, Retained
from asrd.store import Store
from asrd.store.disk import draft
from asrd.store.rows import IndexRows
from asrd.store.sealed import SealDamaged, Sealed, seal, sealed_name
from asrd.store.stream import lines_of

log = logging.getLogger("asrd")

OWN = StreamKey("asrd", "upkeep")
"""The stream of what was done to the store."""
SMALL = 4096
"""Bytes below which compressing a stream saves no room on a disk."""


class Did(Struct, rename="camel"):
    """One deed, or what would be one. `before`, `after`: bytes of the file. `kept`: why it was left as it is."""

    agent: str
    session_id: str
    path: str
    rule: str
    before: int
    after: int | None = None
    kept: str | None = None


class _Seq(Struct):
    seq: int


_seq = msgspec.json.Decoder(_Seq)


class Upkeep:
    """Works on a store that this process holds the lock of.

    `quiet`: a context in which nobody else appends; `settle` makes durable what was appended, inside of it.
    """

    def __init__(
        self,
        store: Store,
        quiet: Callable[[], AbstractContextManager[Any]] = nullcontext,
        settle: Callable[[], object] | None = None,
    ) -> None:
        self.store = store
        self.quiet = quiet
        self.settle = settle or store.sync

    def held(self) -> list[Held]:
        """Every stream of a harness's session."""
        db = self.store.index.reader()
        try:
            sessions = IndexRows(db, self.store.folders.streams, self.store.disk).sessions()
        finally:
            db.close()
        found: list[Held] = []
        for stored in sessions:
            row = stored.row
            size, changed = self._file(self.store.folders.streams / row.path)
            if size:
                last = _moment(row.last_at) or changed
                key = (row.agent, row.session_id, row.namespace, row.path)
                found.append(Held(*key, row.cwd, last, size, row.records, row.wordless))
        return found

    # sealing

    def at_rest(self, after: timedelta | None, now: datetime) -> list[Held]:
        """The plain streams that had no record for so long, the oldest first; None = nothing ever rests."""
        if after is None:
            return []
        idle = [h for h in self.held() if now - h.last_at >= after and h.size >= SMALL]
        streams = self.store.folders.streams
        return sorted((h for h in idle if (streams / h.path).exists()), key=lambda h: (h.last_at, h.path))

    def seal(self, held: Held) -> Did:
        """Compresses one stream. What it holds stays the same, byte for byte."""
        did = Did(held.agent, held.session_id, held.path, "at rest", held.size)
        path = self.store.folders.streams / held.path
        size = self.store.disk.size(path) or 0
        try:
            new = self._sealed(path, path, size)
        except (SealDamaged, StoreError, msgspec.MsgspecError) as error:
            did.kept = f"it is not whole: {error}"
            return did
        return self._swapped(did, path, new, size, sealed=True)

    def unseal(self, held: Held) -> Did:
        """Puts the plain stream in the place of a sealed one."""
        path = self.store.folders.streams / held.path
        did = Did(held.agent, held.session_id, held.path, "asked for", held.size)
        size = self.store.disk.size(path) or 0
        new = draft(path, _bytes(self.store, path, size))
        return self._swapped(did, path, new, size, sealed=False)

    def _swapped(self, did: Did, path: Path, new: Path, size: int, *, sealed: bool) -> Did:
        """Puts a draft of the stream's first `size` bytes in its place, unless it grew or was sealed meanwhile."""
        with self.quiet():
            self.settle()
            if self.store.disk.size(path) != size or (sealed and not path.exists()):
                new.unlink(missing_ok=True)
                did.kept = "it grew meanwhile"
                return did
            self.store.swap(path, new, sealed=sealed, other=False)
        did.after = self._file(path)[0]
        return did

    def _sealed(self, path: Path, content: Path, size: int) -> Path:
        """A sealed draft for a stream, from the first `size` bytes of a file, read back and compared."""
        digest = hashlib.sha256()

        def take(start: int, length: int) -> bytes:
            data = self.store.disk.read(content, start, length)
            digest.update(data)
            return data

        new = draft(sealed_name(path), seal(take, size, lambda line: _seq.decode(line).seq))
        try:
            sealed = Sealed(new)
            again = hashlib.sha256()
            for number in range(sealed.frames()):
                again.update(sealed.frame(number))
            if sealed.size != size or again.digest() != digest.digest():
                raise SealDamaged("what was written is not what was read")
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        return new

    # retention

    def due(self, rules: tuple[Rule, ...], now: datetime) -> list[Due]:
        """The streams whose words go by these rules."""
        return due(rules, self.held(), now) if rules else []

    def retain(self, one: Due) -> Did:
        """Takes the words out of one stream, and says so in it and in asrd's own. What counts stays, or the words do."""
        held = one.held
        did = Did(held.agent, held.session_id, held.path, one.rule, held.size)
        path = self.store.folders.streams / held.path
        size = self.store.disk.size(path) or 0
        try:
            plain = self._wordless(held, one.rule, path, size)
        except (StoreError, msgspec.MsgspecError) as error:
            did.kept = f"it is not whole: {error}"
            return did
        if plain is None:
            did.kept = "what counts would change; please report it"
            return did
        try:
            length = plain.stat().st_size
            sealed = self._sealed(path, plain, length) if length >= SMALL else None
            with self.quiet():
                self.settle()
                if self.store.disk.size(path) != size:
                    if sealed is not None:
                        sealed.unlink(missing_ok=True)
                    did.kept = "it grew meanwhile"
                    return did
                self.store.swap(path, sealed or plain, sealed=sealed is not None, other=True)
                did.after = self._file(path)[0]
                self.note("dev.asrd.upkeep.retained", did)
        finally:
            plain.unlink(missing_ok=True)
        return did

    def _wordless(self, held: Held, rule: str, path: Path, size: int) -> Path | None:
        """A draft of the stream without its words; None where it would not count the same."""
        key = (held.agent, held.session_id, held.namespace)
        before, after = Counts(*key), Counts(*key)
        records = taken = earlier = 0
        for line in lines_of(self.store.disk, path, 0, size):
            if records == 0:
                header = decode(line)
                said = header.meta.get(RETAINED) if header.meta else None
                earlier = msgspec.convert(said, Retained).bytes if said else 0
            if records > held.through:
                taken += len(line) + 1
            records += 1
        slimmer = Slimmer(Retained(rule, records - 1, earlier + taken))

        def lines() -> Iterator[bytes]:
            for line in lines_of(self.store.disk, path, 0, size):
                try:
                    before.add(decode(line))
                except msgspec.ValidationError:  # a type of another version: it stays, whatever it holds
                    yield line + b"\n"
                    continue
                slim = encode(slimmer.slim(decode(line)))
                after.add(decode(slim))
                yield slim + b"\n"

        new = draft(path, lines())
        if before.same(after):
            return new
        new.unlink(missing_ok=True)
        log.error("%s keeps its words: what counts would change without them", held.path)
        return None

    # what was done

    def note(self, kind: str, data: Struct) -> None:
        """Says in asrd's own stream what was done to the store. Inside of `quiet`, after `settle`."""
        append(self.store, Native(native_type=kind, data=msgspec.to_builtins(data)))

    def _file(self, path: Path) -> tuple[int, datetime]:
        """The bytes of a stream's file, plain or sealed (0 = gone), and when it last changed."""
        for name in (path, sealed_name(path)):
            try:
                info = os.stat(name)
                return info.st_size, datetime.fromtimestamp(info.st_mtime, UTC)
            except OSError:
                continue
        return 0, datetime.fromtimestamp(0, UTC)


# ---------------------------------------------------------------- what is asked for


class Job(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What upkeep is asked to do, by a command or over the socket. Times in seconds.

    `rules`: retention; `after`: seal what rested for so long; `seal`, `unseal`: these streams (paths below `streams/`).
    """

    rules: list[Rule] = []
    after: float | None = None
    seal: list[str] = []
    unseal: list[str] = []
    dry_run: bool = False


def work(upkeep: Upkeep, job: Job, now: datetime, pause: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """Does a job; `pause` is called between two streams. The answer is `asrd.upkeep/1`."""
    did: dict[str, list[Did]] = {"retained": [], "sealed": [], "unsealed": []}
    gone: set[str] = set()
    for one in upkeep.due(tuple(job.rules), now):
        held = one.held
        would = Did(held.agent, held.session_id, held.path, one.rule, held.size)
        did["retained"].append(would if job.dry_run else upkeep.retain(one))
        gone.add(held.path)
        pause()
    after = None if job.after is None else timedelta(seconds=job.after)
    resting = upkeep.at_rest(after, now)
    if job.seal or job.unseal:
        plain = {h.path: h for h in upkeep.held()}
        streams = upkeep.store.folders.streams
        resting += [plain[p] for p in job.seal if p in plain and (streams / p).exists()]
        for path in job.unseal:
            if path in plain and not (streams / path).exists():
                held = plain[path]
                would = Did(held.agent, held.session_id, held.path, "asked for", held.size)
                did["unsealed"].append(would if job.dry_run else upkeep.unseal(held))
    for held in resting:
        if held.path in gone:
            continue
        would = Did(held.agent, held.session_id, held.path, "at rest", held.size)
        did["sealed"].append(would if job.dry_run else upkeep.seal(held))
        pause()
    return {
        "schema": "asrd.upkeep/1",
        "dryRun": job.dry_run,
        **{name: [msgspec.to_builtins(d) for d in deeds] for name, deeds in did.items()},
    }


def append(store: Store, record: Record) -> None:
    """Adds a record to asrd's own stream of deeds, durably; its time is the clock's and is marked so."""
    at = clock.now_text()
    records: list[Record] = []
    seq = store.next_seq(OWN)
    if not seq:
        header = Session(
            format_version="0.1",
            agent=Agent(name=OWN.agent, version=__version__),
            session_id=OWN.session_id,
            producer=Producer(name="asrd", version=__version__, method="native", instance="upkeep/1"),
            authority="local",
            started_at=at,
            lineage=Lineage(root=True),
            scope="primary",
            profiles=["core"],
            content_level="metadata",
        )
        header.seq, header.id = 0, "h"
        records.append(header)
        seq = 1
    record.seq, record.id, record.at, record.at_source = seq, f"r{seq}", at, "recorder"
    store.append(OWN, [*records, record])
    store.sync()


def _bytes(store: Store, path: Path, size: int) -> Iterator[bytes]:
    at = 0
    while at < size and (data := store.disk.read(path, at, min(1 << 20, size - at))):
        at += len(data)
        yield data


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
