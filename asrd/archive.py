"""Sessions from one store to another: a compressed tar of whole streams with a manifest. Identity is kept, nothing counts twice.

    manifest.json          what is inside, each stream with its key, size and SHA-256
    streams/HARNESS/NAME   the streams, plain

A stream is told by its key (harness, session id, namespace), never by its place in the archive. What comes in is either
new here, or longer than what is here (which then grows by what is missing), or here already, or it went on otherwise:
that is kept beside as `NAME~conflict-DIGEST`, and what both have counts once, by the keys of its records. Where another
session has an equal id it is kept as `NAME~other-DIGEST`, and all of it counts. Records are never edited.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, Literal, cast

import msgspec
import zstandard
from msgspec import Struct

from asrd import __version__, clock
from asrd.errors import ArchiveUnusable, StoreFull, StoreUnusable
from asrd.query import Stored
from asrd.recorders.base import StreamKey
from asrd.records import decode, encode
from asrd.retention import Slimmer
from asrd.rollup import RETAINED, Retained
from asrd.store import Store
from asrd.store.check import check_stream
from asrd.store.disk import draft, make_folder, put
from asrd.store.index import key_of_file
from asrd.store.rows import IndexRows
from asrd.store.stream import SUFFIX, file_name, folder_name, lines_of
from asrd.upkeep import Upkeep

SCHEMA = "asrd.archive/1"
MOST_MANIFEST = 1 << 30
CHUNK = 1 << 20

Outcome = Literal["new", "longer", "here", "conflict", "other"]


class Entry(Struct, rename="camel"):
    """One stream of an archive."""

    agent: str
    session_id: str
    path: str
    bytes: int
    records: int
    sha256: str
    namespace: str = ""


class Manifest(Struct, rename="camel"):
    """What is inside of an archive, and what made it."""

    schema: str
    version: str
    made: str
    streams: list[Entry]


class Taken(Struct, rename="camel"):
    """What became of one stream of an archive; `added`: how many records are new here."""

    agent: str
    session_id: str
    namespace: str
    outcome: Outcome
    path: str
    added: int


class ImportParams(Struct, rename="camel", forbid_unknown_fields=True):
    """`import`, over the socket: an archive that the daemon can read."""

    file: str


# ---------------------------------------------------------------- out


def export(rows: IndexRows, sessions: Iterable[Stored], to: Path) -> Manifest:
    """Writes sessions into an archive, as far as their streams are indexed now. The file is whole or not there (0600)."""
    chosen = list(sessions)
    entries: list[Entry] = []
    for stored in chosen:
        digest = hashlib.sha256()
        size = records = 0
        for line in rows.lines(stored, 0):
            digest.update(line + b"\n")
            size += len(line) + 1
            records += 1
        row = stored.row
        name = f"streams/{row.path}"
        entries.append(Entry(row.agent, row.session_id, name, size, records, digest.hexdigest(), row.namespace))
    manifest = Manifest(SCHEMA, __version__, clock.now_text(), entries)
    new = to.with_name(f".{to.name}.new")
    try:
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(handle, "wb") as file:
            compressor = zstandard.ZstdCompressor(level=9, write_checksum=True)
            with (
                compressor.stream_writer(file, closefd=False) as packed,
                tarfile.open(fileobj=cast("IO[bytes]", packed), mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                said = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
                tar.addfile(_member("manifest.json", len(said)), io.BytesIO(said))
                for stored, entry in zip(chosen, entries, strict=True):
                    lines = _Lines(rows.lines(stored, 0))
                    tar.addfile(_member(entry.path, entry.bytes), cast("IO[bytes]", lines))
        put(new, to)
    except OSError as error:
        raise StoreUnusable(store=to, reason=error.strerror or str(error)) from error
    finally:
        new.unlink(missing_ok=True)
    return manifest


def _member(name: str, size: int) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.size, found.mode = size, 0o600
    return found


class _Lines:
    """Lines as a file to read from."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._held = bytearray()

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes."""
        while len(self._held) < size:
            line = next(self._lines, None)
            if line is None:
                break
            self._held += line + b"\n"
        data = bytes(self._held[:size])
        del self._held[:size]
        return data


# ---------------------------------------------------------------- in


def take_in(upkeep: Upkeep, archive: Path) -> dict[str, Any]:
    """Imports an archive; the answer is `asrd.import/1`. Raises ArchiveUnusable for what is none, or is damaged."""
    importer = _Importer(upkeep, archive)
    try:
        with archive.open("rb") as file:
            plain = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file, read_across_frames=True)
            with tarfile.open(fileobj=cast("IO[bytes]", plain), mode="r|") as tar:
                importer.receive(tar)
    except (OSError, zstandard.ZstdError, tarfile.TarError, msgspec.MsgspecError) as error:
        if isinstance(error, StoreFull | StoreUnusable):
            raise
        raise ArchiveUnusable(archive=archive, reason=str(error)) from error
    return {
        "schema": "asrd.import/1",
        "made": importer.made,
        "streams": [msgspec.to_builtins(t) for t in importer.taken],
    }


class _Importer:
    def __init__(self, upkeep: Upkeep, archive: Path) -> None:
        self.upkeep = upkeep
        self.store: Store = upkeep.store
        self.archive = archive
        self.made = ""
        self.taken: list[Taken] = []

    def receive(self, tar: tarfile.TarFile) -> None:
        """The members of an archive, in order: the manifest, then the streams it names."""
        first = tar.next()
        if first is None or first.name != "manifest.json" or not first.isreg() or first.size > MOST_MANIFEST:
            raise self._unusable("it has no manifest")
        file = tar.extractfile(first)
        assert file is not None
        manifest = msgspec.json.decode(file.read(), type=Manifest)
        if manifest.schema != SCHEMA:
            raise self._unusable(f"it is of the form {manifest.schema}, which this asrd does not know")
        self.made = manifest.made
        waiting = {e.path: e for e in manifest.streams}
        while (member := tar.next()) is not None:
            entry = waiting.pop(member.name, None)
            if entry is None:
                raise self._unusable(f"its manifest does not name {member.name[:200]}")
            data = tar.extractfile(member) if member.isreg() else None
            if data is None or member.size != entry.bytes:
                raise self._unusable(f"{entry.path[:200]} is not as its manifest says")
            self.taken.append(self._take(entry, data))
        if waiting:
            raise self._unusable(f"{len(waiting)} streams are missing, {next(iter(waiting))[:200]} among them")

    def _take(self, entry: Entry, data: IO[bytes]) -> Taken:
        digest = hashlib.sha256()

        def parts() -> Iterator[bytes]:
            left = entry.bytes
            while left > 0:
                part = data.read(min(CHUNK, left))
                if not part:
                    raise self._unusable(f"{entry.path[:200]} ends early")
                digest.update(part)
                left -= len(part)
                yield part

        # The place comes from the key and is made safe; the archive's own names are never used as paths.
        named = StreamKey(entry.agent, entry.session_id, entry.namespace)
        incoming = self.store.folders.store / "incoming"
        make_folder(incoming)
        new = draft(incoming / f"{hashlib.sha256(repr(named).encode('utf-8', 'replace')).hexdigest()[:32]}", parts())
        try:
            if digest.hexdigest() != entry.sha256:
                raise self._unusable(f"{entry.path[:200]} has another digest than its manifest says")
            found = check_stream(self.store.disk, new, entry.path)
            if found.trouble or found.torn:
                raise self._unusable(f"{entry.path[:200]}: {found.trouble or 'it ends with a torn line'}")
            key = key_of_file(self.store.disk, new)
            if key is None or (key.agent, key.session_id) != (entry.agent, entry.session_id):
                raise self._unusable(f"{entry.path[:200]} holds another session than its manifest says")
            with self.upkeep.quiet():
                self.upkeep.settle()
                taken = self._place(key, new, found.records)
                if taken.outcome != "here":
                    self.upkeep.note("dev.asrd.upkeep.imported", taken)
            return taken
        finally:
            new.unlink(missing_ok=True)

    def _place(self, key: StreamKey, new: Path, records: int) -> Taken:
        """Where the stream goes, and puts it there."""
        disk, streams = self.store.disk, self.store.folders.streams
        path, mark = self.store.path(key), ""
        outcome: Outcome = "new"
        while disk.size(path):
            same, parted = self._compare(path, new)
            if parted is None:
                if same >= records:
                    return self._taken(key, mark, "here", path, 0)
                self._lengthen(path, new, same)
                return self._taken(key, mark, "longer", path, records - same)
            if mark:  # what stands at the digest of this very line differs in it: not by chance
                raise StoreUnusable(store=path, reason="it is not the stream its name says")
            outcome = "other" if same == 0 else "conflict"
            mark = f"~{outcome}-{parted}"
            path = streams / folder_name(key.agent) / (file_name(key).removesuffix(SUFFIX) + mark + SUFFIX)
        self.store.swap(path, new, sealed=False, other=True)
        return self._taken(key, mark, outcome, path, records)

    def _taken(self, key: StreamKey, mark: str, outcome: Outcome, path: Path, added: int) -> Taken:
        where = str(path.relative_to(self.store.folders.streams))
        return Taken(key.agent, key.session_id, key.namespace + mark, outcome, where, added)

    def _compare(self, here: Path, new: Path) -> tuple[int, str | None]:
        """How many records both begin with, and the digest of the first that differs (None: one is the other's start).

        Headers are equal but for who produced them. Where one of them has no words any longer, words are not compared.
        """
        disk = self.store.disk
        mine, theirs = lines_of(disk, here), lines_of(disk, new)
        slim = None
        same = 0
        for a, b in zip_longest(mine, theirs):
            if a is None or b is None:
                return same, None
            if same == 0:
                mine_head, their_head = decode(a), decode(b)
                wordless = [h for h in (mine_head, their_head) if h.meta and RETAINED in h.meta]
                if wordless:
                    said = Retained("", 0, 0)
                    slim = (Slimmer(said), Slimmer(said))
                    slim[0].slim(mine_head)
                    slim[1].slim(their_head)
                for head in (mine_head, their_head):
                    head.producer = None  # type: ignore[union-attr]
                equal = encode(mine_head) == encode(their_head)
            else:
                equal = a == b if slim is None else _slimmed(slim[0], a) == _slimmed(slim[1], b)
            if not equal:
                return same, hashlib.sha256(b).hexdigest()[:12]
            same += 1
        return same, None

    def _lengthen(self, path: Path, new: Path, have: int) -> None:
        """Adds to the stream here what the other has more."""
        disk = self.store.disk
        held: list[bytes] = []
        size = 0
        for number, line in enumerate(lines_of(disk, new)):
            if number < have:
                continue
            held.append(line + b"\n")
            size += len(line) + 1
            if size >= CHUNK:
                disk.append(path, b"".join(held))
                held, size = [], 0
        if held:
            disk.append(path, b"".join(held))
        disk.sync(path)
        self.store.reopen(path)

    def _unusable(self, reason: str) -> ArchiveUnusable:
        return ArchiveUnusable(archive=self.archive, reason=reason)


def _slimmed(slimmer: Slimmer, line: bytes) -> bytes:
    try:
        return encode(slimmer.slim(decode(line)))
    except msgspec.ValidationError:
        return line
