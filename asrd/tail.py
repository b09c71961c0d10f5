"""Follows the sources: looks at files, feeds what is new to captures, appends what they say.

A watch notification is a hint. What happened is told only by looking at the file afterwards, so hints may come late,
twice, in any order or not at all: the streams are the same.

`Tail` is used by one thread at a time; `Watch` (in `watch.py`) and the daemon decide when.
"""

from __future__ import annotations

import itertools
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
import xxhash

from asrd import clock
from asrd.capture import TAIL, Capture, lines_seen
from asrd.errors import SourceError, SourceUnreadable
from asrd.places import Found, find_for, found_at, roots_of
from asrd.reading import CHUNK, changed, read_lines, read_rows
from asrd.recorders import load
from asrd.sources import COMPRESSED, Source
from asrd.store import Grown, Store
from asrd.store.cursors import Cursor, Saved

BATCH_BYTES = 8 << 20
"""Source bytes read before what they gave is made durable."""
BATCH_RECORDS = 6000
ROWS = 400
"""Rows converted at a time."""
OPEN_CAPTURES, OPEN_BYTES, FEW = 48, 192 << 20, 8
"""Captures kept in memory, and the size of their sources together from which on only a few are; others go on from their
saved state. What a capture keeps grows with its source, to about a seventh of it (measured)."""
SETTLE = 1 << 20
"""A torn tail up to this size is looked at for being whole each time; a larger one when nothing came for a while."""
BESIDE_WAIT = 2.0
"""Seconds a new source waits for the sidecar that its harness writes with it."""
SAVE_AFTER = 5.0
"""Seconds between two savings of one live capture's state; without it the source is read again after a crash."""


class Reports(Protocol):
    """What the shell tells of its work."""

    def source_unreadable(self, path: str, reason: str) -> None:
        """A source could not be read; recording goes on without it."""
        ...

    def not_followed(self, path: str, reason: str) -> None:
        """Something below a root is no source that can be followed."""
        ...

    def grown(self, grown: list[Grown]) -> None:
        """These streams grew, durably."""
        ...


class Quiet:
    """Reports to nobody."""

    def source_unreadable(self, path: str, reason: str) -> None:
        """Says nothing."""

    def not_followed(self, path: str, reason: str) -> None:
        """Says nothing."""

    def grown(self, grown: list[Grown]) -> None:
        """Says nothing."""


class _Seen:
    """What is known in memory of one source: its last received bytes, which end at `end`."""

    __slots__ = ("end", "tail")

    def __init__(self) -> None:
        self.end = -1
        self.tail = b""


class Group:
    """The sources that feed one recorder, and where they stand."""

    __slots__ = (
        "capture",
        "cursors",
        "dirty",
        "found",
        "harness",
        "key",
        "name",
        "replays",
        "saved_at",
        "seen",
        "waits_since",
    )

    def __init__(self, harness: str, name: str, cursors: dict[str, Cursor]) -> None:
        self.harness = harness
        self.name = name
        self.key = (harness, name)
        self.found: dict[str, Found] = {}
        self.cursors = cursors
        self.seen: dict[str, _Seen] = {}
        self.capture: Capture | None = None
        self.dirty = False
        self.saved_at = 0.0
        self.waits_since: float | None = None
        self.replays = False
        """Whether the sources are read again from the start, to find where the streams stand: nothing to go on from yet."""

    def ordered(self) -> list[Found]:
        """The sources in the order they are read: sidecars first."""
        return sorted(self.found.values(), key=lambda f: (not f.source.sidecar, f.source.order, f.source.name))

    def cursor_of(self, found: Found) -> Cursor:
        """Where a source stands; at its start when it was not looked at yet."""
        source = found.source
        cursor = self.cursors.get(source.name)
        if cursor is None:
            cursor = self.cursors[source.name] = Cursor(self.harness, self.name, source.name, found.path, source.kind)
        return cursor


class Tail:
    """Brings streams up to date with their sources."""

    def __init__(
        self,
        store: Store,
        home: Path,
        env: Mapping[str, str],
        reports: Reports,
        finished: Callable[[Path], bool] | None = None,
    ) -> None:
        """`finished`: whether a source of ours (a spool) may be deleted, now that all of it is recorded."""
        self._finished = finished
        self.store = store
        self.home = home
        self.env = env
        self.reports = reports
        self.groups: dict[tuple[str, str], Group] = {}
        store.cursors.revise({name: recorder.revision for name, recorder in load().items()})
        self._known = store.cursors.all()
        self._inodes = {
            (c.device, c.inode): c for known in self._known.values() for c in known.values() if c.kind == "lines"
        }
        """The cursor that was last kept of each file: a file that moves is known by it."""
        self._names: dict[tuple[str, str], set[tuple[str, str]]] = {}
        """Groups by harness and file name: files of one name in two folders may be copies."""
        self._captures: OrderedDict[tuple[str, str], Group] = OrderedDict()
        self._told: set[tuple[str, str]] = set()
        self._pending: dict[tuple[str, str], Group] = {}
        self._bytes = 0
        self.taken = 0
        """Source bytes read since the start."""

    # finding

    def roots(self) -> dict[str, list[str]]:
        """The roots of every harness by its name."""
        return {name: roots_of(recorder, self.home, self.env) for name, recorder in load().items()}

    def scan(self) -> list[Group]:
        """Looks for sources everywhere; gives the groups that have something new, the last changed first."""
        due: dict[tuple[str, str], tuple[int, Group]] = {}
        moved: set[int] = set()
        present: set[tuple[str, str, str]] = set()
        for harness, recorder in load().items():
            for found in find_for(recorder, roots_of(recorder, self.home, self.env), self._not_followed):
                source = found.source
                present.add((harness, source.group, source.name))
                group = self._group(harness, source.group)
                group.found[source.name] = found
                self._names.setdefault((harness, os.path.basename(found.path)), set()).add(group.key)
                changed = self._changed(group, found)
                if changed is not None and not group.cursors and (old := self._moved(found)) is not None:
                    moved.add(id(old))
                if changed is not None:
                    before = due.get(group.key)
                    due[group.key] = (max(changed, before[0] if before else 0), group)
        for key, cursors in list(self._known.items()):
            for cursor in cursors.values():
                if cursor.state != "gone" and (*key, cursor.name) not in present:
                    self._gone(key, cursor, id(cursor) in moved)
        return [group for _, group in sorted(due.values(), key=lambda d: -d[0])]

    def at(self, path: str) -> Group | None:
        """The group of the source at a path, when it is one that may have something new."""
        for harness, recorder in load().items():
            for root in roots_of(recorder, self.home, self.env):
                if not path.startswith(root + os.sep):
                    continue
                base = path
                for suffix in ("-wal", "-shm", "-journal"):
                    base = base.removesuffix(suffix)
                found = found_at(recorder, root, base, self._not_followed)
                if found is not None:
                    group = self._group(harness, found.source.group)
                    other = group.found.get(found.source.name)
                    if other is None or other.path == found.path or not os.path.exists(other.path):
                        group.found[found.source.name] = found
                    self._names.setdefault((harness, os.path.basename(found.path)), set()).add(group.key)
                    if found.beside:
                        self._beside(group, found)
                    return group
        return None

    def _beside(self, group: Group, found: Found) -> None:
        path = os.path.join(found.root, found.beside)
        if os.path.exists(path):
            other = found_at(load()[group.harness], found.root, path, self._not_followed)
            if other is not None and other.source.group == group.name:
                group.found[other.source.name] = other

    def _group(self, harness: str, name: str) -> Group:
        key = (harness, name)
        group = self.groups.get(key)
        if group is None:
            cursors = self._known.get(key)
            if cursors is None:
                cursors = self._known[key] = {}
            group = self.groups[key] = Group(harness, name, cursors)
        return group

    def _changed(self, group: Group, found: Found) -> int | None:
        """The time of the last change in ns when there is something to read, None when there is not."""
        cursor = group.cursors.get(found.source.name)
        token, mtime = _token(found)
        if token is None:
            return None
        if cursor is None or cursor.token != token or cursor.path != found.path:
            return mtime
        if cursor.state == "unreadable":
            return mtime
        return None

    def _gone(self, key: tuple[str, str], cursor: Cursor, moved: bool = False) -> None:
        group = self._group(*key)
        cursor.state = "gone"
        found = group.found.pop(cursor.name, None)
        if (
            cursor.size > cursor.offset
            and not moved
            and cursor.kind == "lines"
            and not cursor.path.endswith(COMPRESSED)
        ):
            source = found.source if found else None
            if source is None:
                source = Source(key[0], key[1], cursor.name, cursor.path, "lines")
            capture = self._capture(group)
            capture.receive_gone(source, cursor.size)
            self._append(capture)
            group.dirty = True
            self._pending[group.key] = group  # that it is gone is kept when the gap is durable
        else:
            self.store.cursors.put([cursor], [])

    # reading

    def observe(self, group: Group, budget: int = 1 << 62) -> bool:
        """Reads what is new of a group's sources; gives whether more is left because the budget (bytes) is used up."""
        if self._waits(group):
            return True
        left = budget
        try:
            capture = self._capture(group)
            for found in group.ordered():
                try:
                    left -= self._read(group, capture, found, left)
                except SourceUnreadable as error:
                    self._unreadable(group, found, error)
                if left <= 0:
                    break
            self._append(capture)
        except BaseException:
            self.forget(group)
            raise
        group.replays = group.replays and left <= 0
        group.dirty = True
        self._pending[group.key] = group
        return left <= 0

    def waiting(self, group: Group) -> bool:
        """Whether a group is not read yet because its sidecar is awaited."""
        return group.capture is None and group.waits_since is not None

    def changed(self, group: Group) -> bool:
        """Whether a group has something new, by a look at its files."""
        return any(self._changed(group, f) is not None for f in group.found.values())

    def _waits(self, group: Group) -> bool:
        """Whether a new source waits for its sidecar."""
        if group.cursors or not any(f.beside for f in group.found.values()):
            return False
        for found in list(group.found.values()):
            if found.beside:
                self._beside(group, found)
        if any(f.source.sidecar for f in group.found.values()):
            return False
        now = clock.ticks()
        if group.waits_since is None:
            ages = [clock.seconds() - os.stat(f.path).st_mtime for f in group.found.values() if os.path.exists(f.path)]
            if not ages or min(ages) > BESIDE_WAIT:
                return False
            group.waits_since = now
        return now - group.waits_since < BESIDE_WAIT

    def _read(self, group: Group, capture: Capture, found: Found, budget: int) -> int:
        source = found.source
        try:
            info = os.stat(found.path)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise SourceUnreadable(source=found.path, reason=error.strerror or str(error)) from error
        token, _ = _token(found)
        if source.kind == "shared" and (token is None or not capture.streams()):
            return 0  # nothing in it is of this group, or the session that it is about is not there yet
        cursor = group.cursor_of(found)
        if source.kind != "lines":
            before = self.taken
            self._read_rows(capture, found, cursor)
            self._note(group, capture, found, cursor, info, token)
            return self.taken - before  # what was new, not what is there: that is no reason to look again
        size = info.st_size
        compressed = found.path.endswith(COMPRESSED)  # its size says nothing of how far it was read
        position = capture.read_to(source)
        if position and not compressed and size < position:
            self._again(group, capture, found, size)
            position = 0
        took = self._pull(group, capture, found, position, self._known_tail(group, found, cursor, position), budget)
        if took < 0:
            self._again(group, capture, found, None)
            took = self._pull(group, capture, found, 0, b"", budget)
        if took < budget and (capture.pending(source) <= SETTLE):
            capture.receive_settled(source)
        if took < budget:
            self._note(group, capture, found, cursor, info, token)
        return max(took, 0)

    def _read_rows(self, capture: Capture, found: Found, cursor: Cursor) -> None:
        """Rows that are new or other since the last reading."""
        marks: dict[str, Any] = msgspec.json.decode(cursor.marks)
        rows = read_rows(found, capture.revisions(found.source), marks)
        while part := list(itertools.islice(rows, ROWS)):
            capture.receive_rows(found.source, part)
            size = sum(len(row.data) + 256 for row in part)
            self._bytes += size
            self.taken += size
            self._append(capture)
            if self._bytes >= BATCH_BYTES or self.store.unsynced() >= BATCH_RECORDS:
                self.sync()
        cursor.marks = msgspec.json.encode(marks).decode()

    def _known_tail(self, group: Group, found: Found, cursor: Cursor, position: int) -> bytes | str:
        """The bytes (or their digest) that must stand before `position` if the file is still the one that was read."""
        seen = group.seen.get(found.source.name)
        if seen is not None and seen.end == position:
            return seen.tail
        if position and cursor.offset == position and cursor.tail_length:
            return f"{cursor.tail_length}:{cursor.tail}"
        return b""

    def _pull(
        self, group: Group, capture: Capture, found: Found, position: int, known: bytes | str, budget: int
    ) -> int:
        """Reads from `position` on; gives how many bytes came, or -1 when another content stands before it."""
        source = found.source
        if isinstance(known, str):
            length = int(known.partition(":")[0])
        else:
            length = len(known)
        seen = group.seen.get(source.name)
        if seen is None:
            seen = group.seen[source.name] = _Seen()
        took = 0
        before = b""
        verified = length == 0
        part = CHUNK if found.path.endswith(COMPRESSED) else max(min(CHUNK, budget), length + 1)
        for chunk in read_lines(found, position - length, part):
            if not verified:
                before += chunk
                if len(before) < length:
                    continue
                head, chunk = before[:length], before[length:]
                digest = f"{length}:{xxhash.xxh3_64_hexdigest(head)}"
                if (head != known) if isinstance(known, bytes) else (digest != known):
                    return -1
                verified = True
                seen.tail, seen.end = head, position
            if not chunk:
                continue
            capture.receive_bytes(source, chunk)
            took += len(chunk)
            self._bytes += len(chunk)
            self.taken += len(chunk)
            if seen.end < 0:
                seen.end = position
            seen.tail = (seen.tail + chunk)[-TAIL:] if len(chunk) < TAIL else chunk[-TAIL:]
            seen.end += len(chunk)
            self._append(capture)
            if self._bytes >= BATCH_BYTES or self.store.unsynced() >= BATCH_RECORDS:
                self.sync()
            if took >= budget:
                break
        if not verified:
            return -1
        return took

    def _again(self, group: Group, capture: Capture, found: Found, size: int | None) -> None:
        """Another content stands at the source's place, or less of it."""
        if size is None:
            capture.receive_replaced(found.source)
        else:
            capture.receive_truncated(found.source, size)
        group.seen.pop(found.source.name, None)

    def _note(
        self, group: Group, capture: Capture, found: Found, cursor: Cursor, info: os.stat_result, token: str | None
    ) -> None:
        source = found.source
        cursor.path, cursor.kind = found.path, source.kind
        cursor.device, cursor.inode = info.st_dev, info.st_ino
        if source.kind == "lines":
            self._inodes[info.st_dev, info.st_ino] = cursor
        cursor.size, cursor.mtime_ns, cursor.token = info.st_size, info.st_mtime_ns, token or ""
        cursor.state, cursor.reason = "caught up", ""
        if source.kind == "lines":
            cursor.offset = capture.offset(source)
            cursor.first = capture.first(source)
            pending = capture.pending(source)
            seen = group.seen.get(source.name)
            tail = seen.tail[: len(seen.tail) - pending] if seen is not None and pending < len(seen.tail) else b""
            if seen is not None:
                cursor.tail_length, cursor.tail = len(tail), xxhash.xxh3_64_hexdigest(tail) if tail else ""
            if pending:
                cursor.state, cursor.reason = "torn", f"{pending} bytes after the last newline"

    def _unreadable(self, group: Group, found: Found, error: SourceError) -> None:
        cursor = group.cursor_of(found)
        reason = str(error.facts.get("reason", error))
        if (cursor.state, cursor.reason) != ("unreadable", reason):
            self.reports.source_unreadable(found.path, reason)
        cursor.state, cursor.reason, cursor.token = "unreadable", reason, ""

    # captures

    def _capture(self, group: Group) -> Capture:
        if group.capture is None:
            group.capture = self._restore(group)
            read = sum(c.size for one in self._captures.values() for c in one.cursors.values())
            if len(self._captures) >= OPEN_CAPTURES or (len(self._captures) >= FEW and read >= OPEN_BYTES):
                idle = [old for old in self._captures.values() if old is not group and not old.replays]
                self.release(idle[: max(1, len(self._captures) // 2)])
        self._captures[group.key] = group
        self._captures.move_to_end(group.key)
        return group.capture

    def _restore(self, group: Group) -> Capture:
        recorder = load()[group.harness]
        kept = self.store.cursors.saved(group.harness, group.name) if group.cursors else None
        if kept is not None and kept.saved is not None:
            try:
                capture = Capture(recorder, group.name, recorded=self.store.recorded(), saved=kept.saved)
                if all(self.store.next_seq(k) == n for k, n in capture.expected().items()):
                    return capture
            except msgspec.MsgspecError:
                pass
        group.replays = True
        for cursor in group.cursors.values():
            cursor.marks = "{}"  # what was recorded is told by the streams: all rows are looked at again
        capture = Capture(recorder, group.name, recorded=self.store.recorded())
        for found in group.found.values():
            if (old := self._moved(found)) is not None:
                capture.receive_moved(found.source, old.name, old.first)
            elif not group.cursors and (lines := self._lines_of_twins(group, found)):
                capture.receive_known(found.source, lines)
        return capture

    def _lines_of_twins(self, group: Group, found: Found) -> bytes:
        """Digests of the lines that files of the same name in other folders gave: a copy of one says nothing new."""
        lines = b""
        if found.source.kind != "lines" or "*" not in found.place.pattern.rsplit("/", 1)[-1]:
            return lines  # a name that all files of a harness have says nothing of what is in them
        name = os.path.basename(found.path)
        for key in self._names.get((group.harness, name), ()):
            if key == group.key:
                continue
            other = self.groups[key]
            if other.capture is not None:
                lines += other.capture.lines_seen(name)
            elif (kept := self.store.cursors.saved(*key)) is not None and kept.saved is not None:
                lines += lines_seen(kept.saved, name)
        return lines

    def _moved(self, found: Found) -> Cursor | None:
        """Where the file of a new source was recorded before it moved there; None when it is new, or still there too."""
        if found.source.kind != "lines" or found.path.endswith(COMPRESSED):
            return None
        try:
            info = os.stat(found.path)
        except OSError:
            return None
        old = self._inodes.get((info.st_dev, info.st_ino))
        if (
            old is None
            or old.harness != found.source.harness
            or old.path == found.path
            or old.name == found.source.name
        ):
            return None
        return None if os.path.exists(old.path) or info.st_size < old.offset else old

    def _append(self, capture: Capture) -> None:
        for command in capture.commands():
            self.store.append(command.key, command.records)

    def sync_groups(self, groups: Iterable[Group]) -> None:
        """Makes what the streams of these groups grew by durable, before all others; `sync` keeps where sources stand."""
        keys = [key for group in groups if group.capture is not None for key in group.capture.streams()]
        if grown := self.store.sync(keys):
            self.reports.grown(grown)

    def sync(self, between: Callable[[], object] | None = None) -> list[Grown]:
        """Makes what was appended durable, and keeps where its sources stand. `between`: called between parts of it."""
        self._bytes = 0

        def told(part: list[Grown]) -> None:
            self.reports.grown(part)
            if between is not None:
                between()

        grown = self.store.sync(told=None if between is None else told)
        if grown and between is None:
            self.reports.grown(grown)
        now = clock.ticks()
        due = [g for g in self._pending.values() if now - g.saved_at >= SAVE_AFTER]
        self.save(due)
        return grown

    def save(self, groups: Iterable[Group] | None = None) -> None:
        """Keeps the state of these groups (default: of all that have something to keep). Only when all is synced."""
        chosen = list(self._pending.values()) if groups is None else list(groups)
        if not chosen or self.store.unsynced():
            return
        now = clock.ticks()
        cursors: list[Cursor] = []
        saved: list[Saved] = []
        for group in chosen:
            self._pending.pop(group.key, None)
            if group.capture is None:
                continue
            group.dirty, group.saved_at = False, now
            cursors.extend(group.cursors.values())
            skips, counts = group.capture.accounts()
            counts = {**counts, **{f"native:{kind}": n for kind, n in group.capture.natives().items()}}
            saved.append(
                Saved(
                    group.harness,
                    group.name,
                    None if group.replays else group.capture.save(),
                    msgspec.json.encode(skips).decode(),
                    msgspec.json.encode(counts).decode(),
                )
            )
        self.store.cursors.put(cursors, saved)
        for group in chosen:
            self._discard(group)

    def _discard(self, group: Group) -> None:
        """Deletes spools of ours that are over and recorded to their end."""
        if self._finished is None or not load()[group.harness].spooled or group.capture is None:
            return
        over: list[Cursor] = []
        for name, found in list(group.found.items()):
            cursor = group.cursors.get(name)
            if cursor is None or cursor.state != "caught up" or cursor.offset != cursor.size:
                continue
            if _token(found)[0] == cursor.token and self._finished(Path(found.path)):
                os.unlink(found.path)
                group.capture.forget(found.source)
                del group.found[name], group.cursors[name]
                group.seen.pop(name, None)
                over.append(cursor)
        if over:
            self.store.cursors.drop(over)

    def release(self, groups: list[Group]) -> None:
        """Lets go of captures; their state is kept. Many at once cost one sync."""
        dirty = [group for group in groups if group.capture is not None and group.dirty]
        if dirty:
            self.sync()
            self.save(dirty)
        for group in groups:
            self._captures.pop(group.key, None)
            group.capture = None
            group.seen.clear()

    def forget(self, group: Group) -> None:
        """Lets go of a capture that may have said more than was appended: it is made anew from what the streams hold."""
        self._captures.pop(group.key, None)
        self._pending.pop(group.key, None)
        group.capture, group.dirty = None, False
        group.seen.clear()
        for cursor in group.cursors.values():
            cursor.token = ""

    def close(self) -> None:
        """Syncs and keeps everything."""
        self.sync()
        self.save()

    def _not_followed(self, path: str, reason: str) -> None:
        if (path, reason) not in self._told:
            self._told.add((path, reason))
            self.reports.not_followed(path, reason)


def _token(found: Found) -> tuple[str | None, int]:
    """What changes whenever the source may have something new, and when it last changed (ns)."""
    if found.source.kind != "lines":
        try:
            return changed(found), os.stat(found.path).st_mtime_ns
        except (SourceUnreadable, OSError):
            return None, 0
    try:
        info = os.stat(found.path)
    except OSError:
        return None, 0
    return f"{info.st_dev}:{info.st_ino}:{info.st_size}:{info.st_mtime_ns}", info.st_mtime_ns
