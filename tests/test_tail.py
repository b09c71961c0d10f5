"""The shell that follows sources: what it does is decided by looking at the files, whatever the hints said."""

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

import asrd.tail
from asrd.convert import convert_home
from asrd.errors import StoreFull
from asrd.paths import folders
from asrd.places import find
from asrd.records import AnyRecord, Config, Gap, Message, Text, decode
from asrd.store import Grown, Store
from asrd.store.index import stream_files
from asrd.tail import Quiet, Tail
from tests.golden import CAPTURES
from tests.homes import environment, recorded, streams_of
from tests.properties.test_tailing import ARCHIVE, FOLDER, NAME, THREAD, meta, said


class Told:
    """What the tail reported."""

    def __init__(self) -> None:
        self.unreadable: list[tuple[str, str]] = []
        self.others: list[tuple[str, str]] = []
        self.growth: list[int] = []

    def source_unreadable(self, path: str, reason: str) -> None:
        self.unreadable.append((os.path.basename(path), reason))

    def not_followed(self, path: str, reason: str) -> None:
        self.others.append((os.path.basename(path), reason))

    def grown(self, grown: list[Grown]) -> None:
        self.growth.append(sum(len(g.records) for g in grown))


class Following:
    """A home with one rollout, and a store that follows it."""

    def __init__(self, work: Path) -> None:
        self.home = work / "home"
        (self.home / FOLDER).mkdir(parents=True)
        (self.home / ARCHIVE).mkdir()
        self.path = self.home / FOLDER / NAME
        self.where = folders(environment(self.home, work / "store"))
        self.told = Told()
        self.open()

    def open(self) -> None:
        self.store = Store(self.where)
        self.tail = Tail(self.store, self.home, {}, self.told)

    def close(self) -> None:
        self.tail.close()
        self.store.close()

    def restart(self) -> None:
        self.close()
        self.open()

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def look(self) -> int:
        """Looks everywhere; gives how many groups had something new."""
        due = self.tail.scan()
        for group in due:
            self.tail.observe(group)
        self.tail.sync()
        return len(due)

    def records(self) -> list[AnyRecord]:
        return [decode(x) for p in stream_files(self.where.streams) for x in p.read_bytes().splitlines()]

    def words(self) -> list[str]:
        return [b.text for r in self.records() if isinstance(r, Message) for b in r.content if isinstance(b, Text)]

    def gaps(self) -> list[tuple[str, int | None]]:
        return [(r.reason, r.bytes) for r in self.records() if isinstance(r, Gap)]

    def state(self) -> tuple[str, str]:
        self.tail.save()
        ((_, cursors),) = self.store.cursors.all().items()
        (cursor,) = cursors.values()
        return cursor.state, cursor.reason


@pytest.fixture
def one(tmp_path: Path) -> Any:
    one = Following(tmp_path)
    yield one
    one.close()


def test_nothing_new_is_nothing_to_do(one: Following) -> None:
    one.write(meta() + said(1))

    assert [one.look(), one.look(), one.look()] == [1, 0, 0]
    one.restart()
    assert one.look() == 0
    assert one.tail.taken == 0
    assert one.words() == ["word 1"]


def test_a_restart_reads_on_where_it_was(one: Following) -> None:
    one.write(meta() + said(1))
    one.look()
    one.restart()
    one.write(said(2))

    one.look()

    assert one.words() == ["word 1", "word 2"]
    assert one.tail.taken <= len(said(2)) + asrd.tail.TAIL


def test_a_file_that_moved_to_the_archive_goes_on_as_the_same_session(one: Following) -> None:
    one.write(meta() + said(1))
    one.look()
    one.path = one.path.rename(one.home / ARCHIVE / NAME)
    one.write(said(2))

    one.look()
    one.restart()
    one.look()

    assert one.words() == ["word 1", "word 2"]
    assert len(list(stream_files(one.where.streams))) == 1
    assert one.gaps() == []


def test_a_rollout_that_was_packed_goes_on_as_the_same_session(one: Following) -> None:
    one.write(meta() + said(1))
    one.look()
    data = one.path.read_bytes() + said(2)
    one.path.unlink()
    one.path.with_name(NAME + ".zst").write_bytes(zstandard.ZstdCompressor().compress(data))

    one.look()
    one.restart()
    one.look()

    assert one.words() == ["word 1", "word 2"]


def test_a_source_that_is_deleted_after_it_was_read_stays_recorded(one: Following) -> None:
    one.write(meta() + said(1))
    one.look()
    before = one.records()
    one.path.unlink()

    one.look()
    one.restart()
    one.look()

    assert one.records() == before
    assert one.state()[0] == "gone"


def test_a_source_that_is_deleted_in_the_middle_of_a_line_is_a_gap_once(one: Following) -> None:
    one.write(meta() + said(1)[:-9])
    one.look()
    assert one.state() == ("torn", f"{len(said(1)) - 9} bytes after the last newline")
    one.path.unlink()

    for _ in range(3):
        one.look()
        one.restart()

    assert one.gaps() == [("deleted", len(said(1)) - 9)]


def test_that_a_source_is_gone_is_kept_only_with_its_gap(one: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    one.write(meta() + said(1)[:-9])
    one.look()
    one.tail.save()
    one.path.unlink()

    one.tail.scan()  # the gap is said, and the power goes before it is durable

    kept = one.store.cursors.all()
    assert [c.state for cursors in kept.values() for c in cursors.values()] == ["torn"]


def test_a_file_that_comes_back_goes_on(one: Following) -> None:
    one.write(meta() + said(1))
    one.look()
    data = one.path.read_bytes()
    one.path.unlink()
    one.look()
    one.path.write_bytes(data + said(2))

    one.look()

    assert one.words() == ["word 1", "word 2"]
    assert one.state()[0] == "caught up"


def test_a_source_that_cannot_be_read_is_told_once_and_tried_again(
    one: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.write(meta() + said(1))
    fails = [True]
    read = asrd.tail.read_lines

    def read_lines(found: Any, start: int, chunk: int) -> Any:
        if fails[0]:
            raise asrd.tail.SourceUnreadable(source=found.path, reason="Permission denied")
        return read(found, start, chunk)

    monkeypatch.setattr(asrd.tail, "read_lines", read_lines)
    one.look()
    one.look()
    assert one.state() == ("unreadable", "Permission denied")
    fails[0] = False
    one.look()

    assert one.told.unreadable == [(NAME, "Permission denied")]
    assert one.words() == ["word 1"]
    assert one.state()[0] == "caught up"


def test_what_a_full_disk_refused_is_recorded_when_there_is_room(
    one: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.write(meta() + said(1))
    one.look()
    one.write(said(2) + said(3))
    append = one.store.append

    def full(key: Any, records: Any) -> None:
        raise StoreFull(store="x")

    monkeypatch.setattr(one.store, "append", full)
    with pytest.raises(StoreFull):
        one.look()
    monkeypatch.setattr(one.store, "append", append)
    one.look()

    assert one.words() == ["word 1", "word 2", "word 3"]


def test_a_hint_about_a_database_may_name_its_journal(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / "opencode/S1/home", home)
    database = next(home.rglob("*.db"))
    where = folders(environment(home, tmp_path / "store"))
    store = Store(where)
    tail = Tail(store, home, {}, Told())

    groups = {tail.at(f"{database}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")}
    others = [tail.at(str(home / p)) for p in ("x.db", ".local/share/opencode/none.db", "")]
    tail.close()
    store.close()

    assert len(groups) == 1 and None not in groups
    assert others == [None, None, None]


def test_a_database_larger_than_a_slice_is_read_and_then_left_alone(tmp_path: Path) -> None:
    shutil.copytree(CAPTURES / "hermes/S1/home", tmp_path / "home")
    where = folders(environment(tmp_path / "home", tmp_path / "store"))
    store = Store(where)
    tail = Tail(store, tmp_path / "home", {}, Told())
    (group,) = tail.scan()
    (database,) = (found.path for found in group.found.values())
    assert os.path.getsize(database) > 1000

    more = [tail.observe(group, 1000), tail.observe(group, 1000)]

    assert more == [True, False]
    assert not group.replays
    tail.close()
    store.close()


@pytest.mark.parametrize("most", [{"OPEN_CAPTURES": 1}, {"OPEN_BYTES": 1, "FEW": 2}])
def test_many_captures_take_turns_in_memory(
    most: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    for case in ("claude-code/S1", "claude-code/S2", "claude-code/S3", "codex/S1", "codex/S3", "pi/S1"):
        shutil.copytree(CAPTURES / case / "home", home, dirs_exist_ok=True)

    with recorded(home, tmp_path / "all") as all_open:
        for name, value in most.items():
            monkeypatch.setattr(asrd.tail, name, value)
        store = Store(folders(environment(home, tmp_path / "one")))
        tail = Tail(store, home, {}, Quiet())
        for group in tail.scan():
            while tail.observe(group):
                pass

        assert len(tail._captures) <= 2 < len(tail.groups)  # type: ignore[reportPrivateUsage]
        tail.close()
        store.close()
        assert streams_of(store.folders) == all_open.streams()


def test_growth_is_told_when_it_is_durable(one: Following) -> None:
    one.write(meta() + said(1))
    due = one.tail.scan()
    for group in due:
        one.tail.observe(group)
    assert one.told.growth == []

    one.tail.sync()

    assert one.told.growth == [len(one.records())]


WITH_SIDECAR = CAPTURES / "kimi/S1/home"


class Waiting:
    """A home whose sessions' sidecars are not written yet, followed on a clock of its own."""

    def __init__(self, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = work / "home"
        shutil.copytree(WITH_SIDECAR, self.home)
        sources = list(find(WITH_SIDECAR, {}, lambda path, reason: None))
        self.sidecars = [self.home / os.path.relpath(f.path, WITH_SIDECAR) for f in sources if f.source.sidecar]
        for path in self.sidecars:
            path.rename(f"{path}.later")
        for found in sources:
            if not found.source.sidecar:
                os.utime(self.home / os.path.relpath(found.path, WITH_SIDECAR))
        self.now = 1000.0
        monkeypatch.setattr(asrd.tail.clock, "ticks", lambda: self.now)
        self.store = Store(folders(environment(self.home, work / "store")))
        self.tail = Tail(self.store, self.home, {}, Told())

    def streams(self) -> dict[str, bytes]:
        self.tail.close()
        self.store.close()
        return streams_of(self.store.folders)


def test_a_new_session_waits_a_moment_for_its_sidecar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Waiting(tmp_path, monkeypatch)
    with recorded(WITH_SIDECAR, tmp_path / "whole") as whole:
        wanted = whole.streams()

    waiting = [g for g in one.tail.scan() if one.tail.observe(g)]
    assert waiting and all(one.tail.waiting(g) for g in waiting)
    for path in one.sidecars:
        Path(f"{path}.later").rename(path)

    assert not any(one.tail.observe(g) for g in waiting)
    assert one.streams() == wanted


def test_a_sidecar_that_never_comes_is_not_waited_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Waiting(tmp_path, monkeypatch)
    waiting = [g for g in one.tail.scan() if one.tail.observe(g)]

    one.now += asrd.tail.BESIDE_WAIT + 0.1

    assert waiting and not any(one.tail.observe(g) for g in waiting)
    assert one.streams()


CLAUDE = CAPTURES / "claude-code/S1/home"


@pytest.mark.parametrize("lost", ["nothing", "cursors", "index"])
def test_a_file_that_moves_to_another_folder_goes_on_as_the_same_source(lost: str, tmp_path: Path) -> None:
    home, name = tmp_path / "home", next(CLAUDE.rglob("*.jsonl")).name
    lines = next(CLAUDE.rglob("*.jsonl")).read_bytes().splitlines(keepends=True)
    path = home / ".claude/projects/-a" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(lines[:9]) + lines[9][:30])
    with recorded(home, tmp_path / "store") as first:
        before = first.streams()
    other = home / ".claude/projects/-b"
    other.mkdir()
    path = path.rename(other / name)

    with recorded(home, tmp_path / "store") as moved:
        held = moved.streams()
    with path.open("ab") as file:
        file.write(lines[9][30:] + b"".join(lines[10:]))
    with recorded(home, tmp_path / "store") as later:
        wanted = later.streams()
        cursors, index = later.where.cursors, later.where.index
    for gone in {"cursors": [cursors], "index": [index]}.get(lost, []):
        gone.unlink()

    with recorded(home, tmp_path / "store") as again, recorded(CLAUDE, tmp_path / "whole") as whole:
        assert again.streams() == wanted
        assert again.usage() == whole.usage()
        (ours,), (theirs,) = again.sessions().values(), whole.sessions().values()
    (only,) = before
    assert held[only].startswith(before[only]) and wanted[only].startswith(held[only])
    assert kinds(ours) == kinds(theirs)
    assert not [r for r in ours if isinstance(r, Gap)]


def kinds(records: list[AnyRecord]) -> list[str]:
    """The types of records, without those that only name a source."""
    found = [str(r.__struct_config__.tag) for r in records]
    return [kind for kind in found if kind != "config"]


def test_another_file_where_an_old_one_was_is_not_taken_for_it(tmp_path: Path) -> None:
    home, source = tmp_path / "home", next(CLAUDE.rglob("*.jsonl"))
    folder = home / ".claude/projects/-a"
    folder.mkdir(parents=True)
    (folder / source.name).write_bytes(source.read_bytes())
    with recorded(home, tmp_path / "store"):
        pass
    other = home / ".claude/projects/-b"
    other.mkdir()
    (other / source.name).write_bytes(source.read_bytes())

    with recorded(home, tmp_path / "store") as one:
        assert one.usage()["output"] == 412
        assert {s.row.session_id for s in one.rows.sessions()} == {source.stem}


def test_a_copy_of_a_session_file_in_another_folder_says_only_what_is_new_in_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / "claude-code/S1/home", home)
    (original,) = (home / ".claude/projects").glob("*/*.jsonl")
    copy = home / ".claude/projects/-other" / original.name
    copy.parent.mkdir()
    shutil.copy(original, copy)
    where = folders(environment(home, tmp_path / "store"))
    with recorded(CAPTURES / "claude-code/S1/home", tmp_path / "alone") as once:
        alone = once.streams()

    def sync() -> dict[str, bytes]:
        store = Store(where)
        tail = Tail(store, home, {}, Told())
        for group in tail.scan():
            tail.observe(group)
        tail.close()
        store.close()
        return streams_of(where)

    both = sync()
    with open(copy, "ab") as file:
        file.write(
            b'{"type":"user","message":{"role":"user","content":"only here"},"uuid":"00000000-0000-4000-8000-000000000001",'
            b'"timestamp":"2026-11-30T12:00:00.000Z","cwd":"/x","sessionId":"s","version":"2.1.332"}\n'
        )
    grown = sync()

    (name,) = grown
    assert list(both) == list(alone) == [name]
    assert both[name].splitlines()[1:] == alone[name].splitlines()[1:], "but for the header, which names the file"
    assert grown[name].startswith(both[name])
    assert grown[name].count(b'"only here"') == 1


def names(one: Following) -> list[str]:
    return [r.title for r in one.records() if isinstance(r, Config) and r.title]


def named(one: Following, *said: str, thread: str = THREAD) -> None:
    """What Codex's index of names says now."""
    lines = [{"id": thread, "thread_name": name, "updated_at": "2026-11-30T10:17:21.4Z"} for name in said]
    (one.home / ".codex/session_index.jsonl").write_bytes(b"".join(msgspec.json.encode(x) + b"\n" for x in lines))


def test_what_a_shared_file_says_waits_for_its_session_and_is_said_once(one: Following) -> None:
    named(one, "First")
    one.path.touch()
    assert one.look() and names(one) == []

    one.write(meta() + said(1))
    one.look()
    assert names(one) == ["First"]
    named(one, "First", "Second")
    assert one.look() == 1
    named(one, "Second")  # rewritten, with the last one kept
    one.look()
    one.write(said(2))
    one.restart()
    one.look()

    assert names(one) == ["First", "Second"]
    assert one.words() == ["word 1", "word 2"]
    assert one.look() == 0


def test_what_a_shared_file_says_of_others_is_nothing_new(one: Following) -> None:
    named(one, "Another's", thread="01a22bf5-8935-7281-802a-cda30e20a4c2")
    one.write(meta() + said(1))

    assert [one.look(), one.look()] == [1, 0]
    assert names(one) == []
    assert one.state()[0] == "caught up"


def test_a_shared_file_is_known_again_when_cursors_are_lost(one: Following) -> None:
    one.write(meta() + said(1))
    named(one, "First")
    one.look()
    one.write(said(2))
    one.look()
    named(one, "First", "Second")
    one.look()
    before = one.records()
    one.close()
    one.where.cursors.unlink()
    one.open()

    one.look()

    assert one.records() == before
    assert names(one) == ["First", "Second"]


def test_a_store_of_all_sessions_is_read_as_it_grows_and_known_again(tmp_path: Path) -> None:
    shutil.copytree(CAPTURES / "copilot/S1-v1.0.92/home", tmp_path / "home")
    (database,) = (tmp_path / "home").rglob("session-store.db")
    with contextlib.closing(sqlite3.connect(database)) as db, db:
        db.execute("DELETE FROM assistant_usage_events WHERE id > 2")
    with recorded(tmp_path / "home", tmp_path / "store") as one:
        first = (one.usage()["inputTotal"], one.usage()["output"])
    shutil.copy(next((CAPTURES / "copilot/S1-v1.0.92/home").rglob("session-store.db")), database)

    with recorded(tmp_path / "home", tmp_path / "store") as one:
        whole, streams = (one.usage()["inputTotal"], one.usage()["output"]), one.streams()
    folders(environment(tmp_path / "home", tmp_path / "store")).cursors.unlink()
    with recorded(tmp_path / "home", tmp_path / "store") as one:
        again = one.streams()

    assert (first, whole) == ((3003, 203), (21021, 621))
    assert again == streams


def test_files_that_all_have_one_name_are_no_copies_of_each_other(tmp_path: Path) -> None:
    home = CAPTURES / "vibe-2/S1-v2.0.2/home"

    with recorded(home, tmp_path / "store") as one:
        told = {key.session_id: len(records) for key, records in one.sessions().items()}

    assert told == {key.session_id: len(records) for key, records in convert_home(home).items()}
