"""Makes damaged streams whole again, and discards nothing: what cannot be read is put aside as it is.

    torn tail          put aside, cut off
    damaged lines      put aside; in their place stands a `gap` for each `seq` that is missing, with their digest
    damaged header     made anew from what the index knows of the session; without that the whole file is put aside
    sealed, damaged    the frames that can be read are kept; each other one is as damaged lines

What is put aside lies below `quarantine/` with the stream's path, the byte it began at, and its digest. Sources of a
repaired stream are read again from the start at the next look: what the gap took away and the source still has comes back.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import zstandard
from msgspec import Struct

from asrd import __version__
from asrd.errors import StoreUnusable
from asrd.recorders.base import StreamKey
from asrd.records import (
    SOURCE,
    Agent,
    Gap,
    Lineage,
    LineageParent,
    Producer,
    Record,
    Session,
    SourceRef,
    Workspace,
    WorkspaceRoot,
    encode,
)
from asrd.store import Store
from asrd.store.check import check_stream
from asrd.store.disk import draft, make_folder, replace
from asrd.store.index import stream_files
from asrd.store.sealed import SealDamaged, Sealed, sealed_name
from asrd.store.stream import REPAIRED, lines_of

SKIPPABLE = 0x184D2A50
MOST_MISSING = 1_000_000
"""Records between two lines above which the second one's `seq` is taken for damaged."""


class Repaired(Struct, rename="camel"):
    """What was done to one stream. `aside`: files below `quarantine/`; `gaps`: records that stand for what was damaged."""

    path: str
    what: str
    kept: int = 0
    gaps: int = 0
    aside: list[str] = []


class _Head(Struct):
    seq: int
    id: str
    type: str


class _Damaged(Struct):
    """Bytes of a stream that are no line of it. `seq`: the first that is missing, where the file says it."""

    at: int
    data: bytes
    why: str


_head = msgspec.json.Decoder(_Head)


def repair(store: Store) -> Iterator[Repaired]:
    """Repairs every stream that is not whole; gives what was done to each. Only with the store's lock, and all synced."""
    for path in stream_files(store.folders.streams):
        name = str(path.relative_to(store.folders.streams))
        try:
            found = check_stream(store.disk, path, name)
            sound = not found.trouble and not found.torn
        except StoreUnusable:
            sound = False
        if not sound:
            yield _Repair(store, path, name).run()


class _Repair:
    def __init__(self, store: Store, path: Path, name: str) -> None:
        self.store, self.path = store, path
        self.found = Repaired(name, "")
        self._sources: list[SourceRef] = []

    def run(self) -> Repaired:
        found = self.found
        sealed = not self.path.exists()
        lines = list(self._read(sealed))
        first = next((x for x in lines if isinstance(x, bytes)), None)
        headed = first is not None and isinstance(lines[0], bytes) and _header_of(lines[0])
        header = None if headed else self._made_header()
        if not headed and header is None:
            return self._put_all_aside(sealed)
        new = draft(self.path, self._whole(lines, header))
        whole = check_stream(self.store.disk, new, found.path)
        if whole.trouble or whole.torn:
            new.unlink(missing_ok=True)
            raise StoreUnusable(store=self.path, reason=f"it could not be repaired: {whole.trouble}")
        self.store.swap(self.path, new, sealed=False, other=True)
        found.kept = whole.records - found.gaps
        did = ["its header was made anew"] * (header is not None) + ["damaged lines became gaps"] * bool(found.gaps)
        torn = any(isinstance(x, _Damaged) and x.why == "torn" for x in lines)
        found.what = ", ".join(did + ["a torn tail was cut off"] * torn) or "it was unsealed"
        self._read_sources_again()
        return found

    # reading what is there

    def _read(self, sealed: bool) -> Iterator[bytes | _Damaged]:
        """Lines that are records at their place in the order, and what is between them."""
        expected = -1
        for at, data, why in self._pieces(sealed):
            if why is None:
                try:
                    head = _head.decode(data)
                except (msgspec.MsgspecError, RecursionError) as error:
                    yield _Damaged(at, data + b"\n", str(error))
                    continue
                good = head.id == (f"r{head.seq}" if head.seq else "h") and (head.seq == 0) == (head.type == "session")
                if good and expected < head.seq <= expected + MOST_MISSING:
                    expected = head.seq
                    yield data
                    continue
                yield _Damaged(at, data + b"\n", f"seq {head.seq} where {expected + 1} should be")
            else:
                yield _Damaged(at, data, why)

    def _pieces(self, sealed: bool) -> Iterator[tuple[int, bytes, str | None]]:
        """Each line with its place; a torn tail, or a frame that cannot be read, with why."""
        if not sealed:
            at, size = 0, self.store.disk.size(self.path) or 0
            for line in lines_of(self.store.disk, self.path):
                yield at, line, None
                at += len(line) + 1
            if at < size:
                yield at, self.store.disk.read(self.path, at, size - at), "torn"
            return
        name = sealed_name(self.path)
        try:
            file = Sealed(name)
        except (SealDamaged, OSError) as error:
            yield from self._raw_frames(name, str(error))
            return
        for number in range(file.frames()):
            at, _ = file.extent(number)
            try:
                frame = file.frame(number)
            except SealDamaged as error:
                yield at, file.packed(number), str(error)
                continue
            for line in frame.split(b"\n")[:-1]:
                yield at, line, None
                at += len(line) + 1

    def _raw_frames(self, name: Path, why: str) -> Iterator[tuple[int, bytes, str | None]]:
        """A sealed file whose tables are gone: frame by frame from its start, as far as that goes."""
        data = name.read_bytes()
        at = 0
        while data:
            reader = zstandard.ZstdDecompressor().decompressobj()
            try:
                frame = reader.decompress(data)
            except zstandard.ZstdError:
                break
            if not reader.eof or len(reader.unused_data) >= len(data):
                break
            data = reader.unused_data
            for line in frame.split(b"\n")[:-1]:
                yield at, line, None
                at += len(line) + 1
        if data and struct.unpack("<I", data[:4].ljust(4, b"\0"))[0] & ~0xF != SKIPPABLE:
            yield at, data, why

    # writing what is whole

    def _whole(self, lines: list[bytes | _Damaged], header: Session | None) -> Iterator[bytes]:
        """The stream again: every record, and a gap for each that is missing before it."""
        due = 0
        waiting: list[_Damaged] = []
        if header is not None:
            kept = self._aside([x for x in lines[:1] if isinstance(x, _Damaged)])
            lines = lines[1:] if kept is not None else lines
            header.meta = {REPAIRED: kept} if kept is not None else {REPAIRED: {}}
            yield encode(header) + b"\n"
            due = 1
        for item in lines:
            if isinstance(item, _Damaged):
                waiting.append(item)
                continue
            seq = _head.decode(item).seq
            if seq < due:  # the header, when one was made
                waiting.append(_Damaged(0, item + b"\n", "doubled"))
                continue
            for record in self._gaps(due, seq, waiting):
                yield encode(record) + b"\n"
            waiting = []
            yield item + b"\n"
            due = seq + 1
        self._aside([w for w in waiting if w.why == "torn"])
        left = [w for w in waiting if w.why != "torn"]
        if left:  # at the end nobody says how many records it were: one gap stands for them
            for record in self._gaps(due, due + 1, left):
                yield encode(record) + b"\n"

    def _gaps(self, start: int, end: int, damaged: list[_Damaged]) -> Iterator[Record]:
        """Gaps in the place of the records `[start, end)`; the first one says where what was there lies now."""
        kept = self._aside(damaged)
        for seq in range(start, end):
            size = sum(len(d.data) for d in damaged) if seq == start else None
            meta: dict[str, Any] = {REPAIRED: kept if kept is not None and seq == start else {}}
            record = Gap(reason="unreadable", bytes=size or None, meta=meta)
            record.seq, record.id = seq, f"r{seq}"
            self.found.gaps += 1
            yield record

    def _aside(self, damaged: list[_Damaged]) -> dict[str, object] | None:
        """Puts bytes aside, durably; gives what a record says of them."""
        if not damaged:
            return None
        data = b"".join(d.data for d in damaged)
        digest = hashlib.sha256(data).hexdigest()
        name = f"{self.found.path}.{damaged[0].at}.{digest[:12]}"
        path = self.store.folders.store / "quarantine" / name
        make_folder(path.parent)
        replace(path, data)
        self.found.aside.append(name)
        return {"file": name, "bytes": len(data), "sha256": digest, "why": damaged[0].why[:200]}

    def _put_all_aside(self, sealed: bool) -> Repaired:
        """The whole file: nothing says whose session it is."""
        path = sealed_name(self.path) if sealed else self.path
        data = path.read_bytes()
        self._aside([_Damaged(0, data, "no header")])
        self.store.discard(self.path)
        self.found.what = "nothing says whose session it is: put aside whole"
        return self.found

    # the header, and the sources

    def _made_header(self) -> Session | None:
        """A header from what the index knows; None where it knows nothing."""
        db = sqlite3.connect(f"file:{self.store.folders.index}?mode=ro", uri=True)
        db.row_factory = sqlite3.Row
        try:
            row = db.execute("SELECT * FROM session WHERE path = ?", (self.found.path,)).fetchone()
        except sqlite3.Error:
            row = None
        finally:
            db.close()
        if row is None:
            return None
        parent = None
        if row["parent_session"]:
            parent = LineageParent(
                agent=row["parent_agent"],
                session_id=row["parent_session"],
                namespace=row["parent_namespace"] or None,
                call_id=row["parent_call"],
            )
        self._sources = self._known_sources(row["agent"], row["session_id"], row["namespace"])
        root = None if row["root"] is None else bool(row["root"])
        header = Session(
            format_version="0.1",
            agent=Agent(name=row["agent"], version=row["version"]),
            session_id=row["session_id"],
            namespace=row["namespace"] or None,
            producer=Producer(name="asrd", version=__version__, method="converter", instance="repair/1"),
            authority=row["authority"],
            started_at=row["started_at"],
            lineage=Lineage(root=root, parent=parent, relation=row["parent_relation"] if parent else None),
            scope=row["scope"],
            profiles=["core"],
            content_level=row["content_level"] or "full",
            sources=[s for s in self._sources if s.id == "s1"],
            workspace=Workspace(roots=[WorkspaceRoot(id="r1", path=row["cwd"])]) if row["cwd"] else None,
        )
        header.seq, header.id = 0, "h"
        return header

    def _known_sources(self, agent: str, session_id: str, namespace: str) -> list[SourceRef]:
        """The sources of a session by what the recorder kept of it; none where that is gone."""
        for group in self.store.cursors.kept(agent):
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                state = msgspec.msgpack.decode(group, type=_Group)
                for stream in msgspec.msgpack.decode(state.recorder, type=tuple[_Writer, Any])[0].streams:
                    key = stream.key
                    if (key.agent, key.session_id, key.namespace) == (agent, session_id, namespace):
                        return [_reference(n, i, state.sources.get(n, _Known())) for n, i in stream.sources.items()]
        return []

    def _read_sources_again(self) -> None:
        """Forgets where the sources of this stream were left, so that what is missing is taken from them again."""
        names = [s.name for s in self._sources]
        harness = ""
        for line in lines_of(self.store.disk, self.path):
            with contextlib.suppress(msgspec.MsgspecError):
                head = msgspec.json.decode(line, type=_Sourced)
                harness = harness or (head.agent.name if head.agent else "")
                names += [s.name for s in head.sources]
                if SOURCE in head.meta:
                    names.append(msgspec.convert(head.meta[SOURCE], SourceRef).name)
        self.store.cursors.forget(harness, names)


class _Known(Struct):
    """Of `capture.SourceState`."""

    first: str = ""
    revisions: dict[str, str] = {}


class _Group(Struct):
    """Of `capture.GroupState`, which the cursors keep."""

    sources: dict[str, _Known]
    recorder: bytes


class _Kept(Struct):
    key: StreamKey
    sources: dict[str, str]


class _Writer(Struct):
    """Of `recorders.base.WriterState`."""

    streams: list[_Kept] = []


class _Sourced(Struct):
    agent: Agent | None = None
    sources: list[SourceRef] = []
    meta: dict[str, Any] = msgspec.field(name="_meta", default={})


def _reference(name: str, ident: str, known: _Known) -> SourceRef:
    return SourceRef(id=ident, kind="table" if known.revisions else "file", name=name, fingerprint=known.first or None)


def _header_of(line: bytes) -> bool:
    try:
        return _head.decode(line).type == "session"
    except msgspec.MsgspecError:
        return False
