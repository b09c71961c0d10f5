"""The composition root in parts: what is recorded next, what one source's trouble costs the others, one whole reading.

The daemon as a process is tried in `daemon/test_lifecycle.py` and `crash/test_kill.py`.
"""

from pathlib import Path
from typing import Any

import pytest

from asrd import daemon, store
from asrd.daemon import Backlog, Daemon, sync_once
from asrd.errors import StoreFull, StoreLocked, StreamCorrupt
from asrd.paths import folders
from asrd.recorders.base import StreamKey
from asrd.store import Store
from asrd.store.lock import locked
from asrd.store.rows import IndexRows
from asrd.tail import Group, Tail
from tests.golden import CAPTURES
from tests.homes import environment, recorded, streams_of

HOME = CAPTURES / "claude-code/S2/home"


def group(name: str) -> Group:
    return Group("codex", name, {})


def test_what_changes_now_comes_before_what_waits() -> None:
    backlog, old, older, new = Backlog(), group("old"), group("older"), group("new")

    for one in (old, older, old):
        backlog.cold(one)
    backlog.hot(new)
    backlog.hot(older)
    backlog.cold(new)

    assert len(backlog) == 3 and backlog.any_hot()
    assert [backlog.take_hot() for _ in range(3)] == [new, older, None]
    assert [backlog.take_cold() for _ in range(2)] == [old, None]
    assert len(backlog) == 0 and not backlog.any_hot()


class Working:
    """A daemon's recording thread, called by hand."""

    def __init__(self, work: Path) -> None:
        self.where = folders(environment(HOME, work))
        self.daemon = Daemon(self.where, {})
        self.store = Store(self.where)
        self.tail = Tail(self.store, HOME, {}, self.daemon)
        for one in self.tail.scan():
            self.daemon.backlog.cold(one)

    def rounds(self, most: int = 50) -> None:
        while len(self.daemon.backlog) and most:
            self.daemon._work(self.tail)  # type: ignore[reportPrivateUsage]
            most -= 1

    def close(self) -> dict[str, bytes]:
        self.tail.close()
        self.store.close()
        return streams_of(self.where)


@pytest.fixture
def working(tmp_path: Path) -> Working:
    return Working(tmp_path / "store")


@pytest.mark.parametrize("error", [ValueError("oh"), StreamCorrupt(stream="x", offset=1, reason="y")])
def test_a_source_that_fails_costs_the_others_nothing(
    error: Exception, working: Working, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe, tries = working.tail.observe, [0]

    def fails(one: Group, budget: int = 0) -> bool:
        if "subagents" in one.name:
            tries[0] += 1
            raise error
        return observe(one, budget)

    monkeypatch.setattr(working.tail, "observe", fails)
    working.rounds()
    monkeypatch.undo()
    trouble = working.daemon.status()["trouble"]
    streams = working.close()

    with recorded(HOME, tmp_path / "whole") as whole:
        wanted = whole.streams()
    assert isinstance(trouble, list) and len(trouble) == 3 == tries[0]  # type: ignore[reportUnknownArgumentType]
    assert 0 < len(streams) < len(wanted)
    assert streams.items() <= wanted.items()


def test_a_source_that_fails_is_left_alone_longer_each_time(working: Working, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(one: Group, budget: int = 0) -> bool:
        raise ValueError("oh")

    monkeypatch.setattr(working.tail, "observe", fails)
    monkeypatch.setattr(daemon.clock, "ticks", lambda: 1000.0)
    waits: list[float] = []
    for _ in range(9):
        one = group("bad")
        working.daemon._observe(working.tail, one, 1)  # type: ignore[reportPrivateUsage]
        waits.append(working.daemon._failed[one.key][1] - 1000.0)  # type: ignore[reportPrivateUsage]

    assert waits[:3] == [120.0, 240.0, 480.0]
    assert waits[-1] == daemon.AT_LEAST_EVERY
    working.close()


def test_a_full_disk_keeps_what_waits_and_nothing_is_lost(
    working: Working, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = working.store.append

    def full(key: Any, records: Any) -> None:
        raise StoreFull(store="x")

    waiting = len(working.daemon.backlog)
    monkeypatch.setattr(working.store, "append", full)
    for _ in range(3):
        with pytest.raises(StoreFull):
            working.rounds()
    assert len(working.daemon.backlog) == waiting
    monkeypatch.setattr(working.store, "append", append)
    working.rounds()

    with recorded(HOME, tmp_path / "whole") as whole:
        assert working.close() == whole.streams()


def test_hints_may_come_while_hints_are_taken(working: Working) -> None:
    path = str(next(HOME.rglob("*.jsonl")))
    taken: list[str] = []
    at = working.tail.at

    def more(path: str) -> Any:
        taken.append(path)
        if len(taken) < 30:
            working.daemon._hints.append(f"{path}x")  # type: ignore[reportPrivateUsage]
        return at(path)

    working.tail.at = more  # type: ignore[method-assign]
    working.daemon._hints.extend([path] * 5)  # type: ignore[reportPrivateUsage]
    working.rounds()

    assert taken[0] == path
    assert len(taken) == len(set(taken))
    working.close()


def test_troubles_are_not_kept_without_end(working: Working) -> None:
    for number in range(500):
        working.daemon.source_unreadable(f"/x/{number}", "no")

    status = working.daemon.status()
    assert isinstance(status["trouble"], list) and len(status["trouble"]) == 200  # type: ignore[reportUnknownArgumentType]
    working.close()


def test_one_damaged_stream_stops_no_whole_reading_and_is_told(tmp_path: Path) -> None:
    env = environment(HOME, tmp_path)
    with recorded(HOME, tmp_path) as one:
        path = one.where.streams / next(iter(one.streams()))
        wanted = one.streams()
    for other in sorted(one.where.streams.rglob("*.jsonl")):
        if other != path:
            other.unlink()
    one.where.cursors.unlink()
    path.write_bytes(path.read_bytes() + b"no record\n")

    with pytest.raises(StreamCorrupt) as raised:
        sync_once(one.where, env)

    assert str(path) in str(raised.value)
    left = {name: data for name, data in wanted.items() if one.where.streams / name != path}
    assert {n: d for n, d in streams_of(one.where).items() if n in left} == left


def test_a_whole_reading_says_how_far_it_is_and_what_it_read(tmp_path: Path) -> None:
    told: list[tuple[int, int, int]] = []
    env = environment(HOME, tmp_path)

    def progress(done: int, groups: int, taken: int) -> None:
        told.append((done, groups, taken))

    done = sync_once(folders(env), env, progress)

    assert done["sources"] == 4 and done["bytes"] > 10_000
    assert told[-1][:2] == (4, 4)
    assert [t[0] for t in told] == sorted(t[0] for t in told)
    assert sync_once(folders(env), env) == {"sources": 0, "bytes": 0}


def test_a_store_that_another_records_into_is_left_alone(tmp_path: Path) -> None:
    where = folders(environment(HOME, tmp_path))
    with locked(where.lock), pytest.raises(StoreLocked):
        sync_once(where, environment(HOME, tmp_path))

    assert not where.streams.exists()


def test_what_changes_now_waits_for_a_part_of_what_is_caught_up_with_not_for_all(
    working: Working, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "PART", 2000)
    monkeypatch.setattr(daemon, "ROUND", 1e9)  # all in one round, if nothing else ends it
    waiting = list(working.daemon.backlog._cold.values())  # type: ignore[reportPrivateUsage]
    first, live = waiting[0], waiting[-1]
    path = next(iter(live.found.values())).path
    done: list[tuple[str, str]] = []
    observe, sync_groups, sync = working.tail.observe, working.tail.sync_groups, working.tail.sync

    def observed(one: Group, budget: int) -> bool:
        more = observe(one, budget)
        if not done:
            working.daemon.hint(path)
        done.append(("read", one.name))
        return more

    def synced(some: list[Group]) -> None:
        sync_groups(some)
        done.extend(("durable", one.name) for one in some)

    def all_synced(between: Any = None) -> Any:
        done.append(("all durable", ""))
        return sync(between)

    monkeypatch.setattr(working.tail, "observe", observed)
    monkeypatch.setattr(working.tail, "sync_groups", synced)
    monkeypatch.setattr(working.tail, "sync", all_synced)
    working.rounds(1)

    assert done[:4] == [("read", first.name), ("read", live.name), ("durable", live.name), ("read", first.name)]
    assert done[-1] == ("all durable", "")
    assert working.daemon.lately.keys() == {live.key}
    with recorded(HOME, tmp_path / "whole") as whole:
        assert working.close() == whole.streams()


@pytest.mark.parametrize("waits", [False, True])
def test_what_comes_while_the_index_is_told_is_told_before_the_rest(
    waits: bool, working: Working, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`waits`: some of the same stream is durable already and waits to be told."""
    monkeypatch.setattr(store, "PART", 1)
    tail = working.tail
    *waiting, live = working.daemon.backlog._cold.values()  # type: ignore[reportPrivateUsage]
    told: list[set[StreamKey]] = []
    monkeypatch.setattr(working.daemon, "grown", lambda grown: told.append({one.key for one in grown}))  # type: ignore[reportUnknownLambdaType]

    def between() -> None:
        if len(told) == 1:
            tail.observe(live)
            tail.sync_groups([live])

    for one in waiting:
        tail.observe(one)
    if waits:
        tail.observe(live, 2000)
    tail.sync(between)

    assert live.capture is not None
    assert told[1] == set(live.capture.streams())
    assert told.count(told[1]) == 1
    assert len(told) == 4  # an append is told whole
    with recorded(HOME, tmp_path / "whole") as whole:
        wanted = [(s.row.session_id, s.row.bytes, s.row.records) for s in whole.rows.sessions()]
        rows = IndexRows(working.store.index.reader(), working.where.streams)
        assert sorted((s.row.session_id, s.row.bytes, s.row.records) for s in rows.sessions()) == sorted(wanted)
        assert working.close() == whole.streams()


def test_memory_is_given_back_once_after_much_was_read(working: Working, monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[int] = []
    rest = working.store.index.rest
    monkeypatch.setattr(working.store.index, "rest", lambda: (rests.append(working.tail.taken), rest()))
    monkeypatch.setattr(daemon, "MUCH", 1000)

    for _ in range(2):
        working.rounds()
        working.daemon._save(working.tail)  # type: ignore[reportPrivateUsage]

    assert rests == [working.tail.taken] and rests[0] > 1000
    working.close()
