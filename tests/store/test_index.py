"""The index is exactly the streams up to where they were taken in, and can be thrown away."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asrd.errors import StoreFull, StoreUnusable
from asrd.records import ToolCall, ToolResult, encode_lines
from asrd.rollup import SessionRow
from asrd.store import Store
from asrd.store.index import Folded, Grown, Index, decode_or_none, folded, key_of_file, remove, stream_files
from tests.store.build import Made, child_of, copied, where_of


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = Store(where_of(tmp_path))
    yield store
    store.close()


def put(store: Store, *made: Made) -> None:
    for one in made:
        store.append(one.key, one.records[store.next_seq(one.key) :])
    store.sync()


def asked(store: Store, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store.folders.index)) as db:
        return db.execute(sql).fetchall()


COUNTED = (
    "SELECT s.session_id, i.output FROM inference i JOIN session s ON s.id = i.session WHERE counted ORDER BY 1, 2"
)


def test_a_response_that_two_sessions_state_counts_once_as_a_whole(store: Store) -> None:
    put(store, Made("a", started_at="2026-01-01T00:00:00Z").response("q", 10, 5))
    put(store, Made("b", lineage=child_of("a", "forked_from")).response("q", 9, 8))

    assert stat.S_IMODE(store.folders.index.stat().st_mode) == 0o600
    assert asked(store, COUNTED) == [("b", 8)]
    assert asked(
        store, "SELECT s.session_id, i.output FROM inference i JOIN session s ON s.id = i.owner WHERE counted"
    ) == [("a", 8)]


def ended(made: Made, call: str, status: str, supersedes: str | None = None) -> str:
    return made.add(ToolResult(call_id=call, linkage="exact", status=status, supersedes=supersedes))


def background() -> Made:
    """A call that failed at last, one that did not after all, one that failed twice: two of three failed."""
    made = Made("a")
    for call, statuses in (
        ("c1", ("completed", "failed")),
        ("c2", ("failed", "completed")),
        ("c3", ("failed", "unknown", "failed")),
    ):
        made.add(ToolCall(call_id=call, name="shell", kind="execute", input={}))
        known = None
        for status in statuses:
            known = ended(made, call, status, known)
    return made


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_a_call_failed_if_its_last_result_says_so(store: Store, size: int) -> None:
    made = background()
    for at in range(0, len(made.records), size):
        store.append(made.key, made.records[at : at + size])
        store.sync()

    assert asked(store, "SELECT failed, open_calls FROM session") == [(2, 0)]
    assert asked(store, "SELECT count(*) FROM call WHERE status = 'failed'") == [(2,)]


def test_it_is_so_too_where_another_process_folds(store: Store) -> None:
    made, row = background(), SessionRow("codex", "a")
    path = store.folders.streams / "codex" / "a.asr.jsonl"
    for at, record in enumerate(made.records):
        told = folded(row, Grown(made.key, path, at + 1, [record]), store.folders.streams)
        store.index.add_folded(msgspec.json.decode(msgspec.json.encode([told]), type=list[Folded]))

    assert asked(store, "SELECT failed FROM session") == [(2,)]


def test_a_copy_never_counts_where_its_original_is_recorded(store: Store) -> None:
    put(store, Made("b").response("q", 10, 5, copy_of=copied("a")).call("c", 0, copy_of=copied("a")))
    assert asked(store, "SELECT counted, owner FROM inference") == [(1, None)]

    put(store, Made("a").response("q", 10, 5).call("c", 0))

    assert asked(store, COUNTED) == [("a", 5)]
    assert asked(store, "SELECT s.session_id FROM call c JOIN session s ON s.id = c.session WHERE counted") == [("a",)]


def test_an_inference_that_was_superseded_does_not_count(store: Store) -> None:
    made = Made("a").response("q", 10, None)
    made.response("q", 10, 7, supersedes="r1")

    put(store, made)

    assert asked(store, COUNTED) == [("a", 7)]


def test_calls_have_their_results_whenever_those_come(store: Store) -> None:
    made = Made("a").call("c1", 101).call("c2", 0)
    store.append(made.key, made.records[:2])
    store.sync()
    assert asked(store, "SELECT call_id, status, exit_code FROM call") == [("c1", None, None)]

    put(store, made)

    assert asked(store, "SELECT call_id, status, exit_code FROM call ORDER BY 1") == [
        ("c1", "failed", 101),
        ("c2", "completed", 0),
    ]


def test_a_stream_that_is_shorter_or_gone_is_taken_in_anew(store: Store) -> None:
    first, second = Made("a").response("q", 1, 1).response("r", 1, 2), Made("b").response("s", 1, 4)
    put(store, first, second)
    store.path(first.key).write_bytes(encode_lines(first.records[:2]))
    store.path(second.key).unlink()

    store.index.catch_up(store.disk)

    assert asked(store, COUNTED) == [("a", 1)]
    assert asked(store, "SELECT session_id, records FROM session") == [("a", 2)]


def test_a_copy_counts_again_when_its_original_is_gone(store: Store) -> None:
    put(store, Made("a").response("q", 1, 1), Made("b").response("q", 1, 1, copy_of=copied("a")))
    store.path(Made("a").key).unlink()

    store.index.catch_up(store.disk)

    assert asked(store, COUNTED) == [("b", 1)]
    assert asked(store, "SELECT owner FROM inference") == [(None,)]


def test_reindex_makes_the_same_of_the_streams_alone(store: Store) -> None:
    put(store, Made("a").response("q", 1, 1).call("c", 0), Made("b").response("q", 1, 3).link("forked_from", "a"))
    before = {t: asked(store, f"SELECT * FROM {t}") for t in ("session", "inference", "call", "link")}

    assert store.reindex() == 2

    assert {t: asked(store, f"SELECT * FROM {t}") for t in before} == before


@pytest.mark.parametrize("content", [b"no database" * 100, b""])
def test_an_index_that_cannot_be_used_is_made_anew(content: bytes, store: Store) -> None:
    put(store, Made("a").response("q", 1, 1))
    store.index.close()
    remove(store.folders.index)
    store.folders.index.write_bytes(content)

    store.index = Index(store.folders.index, store.folders.streams)
    store.index.catch_up(store.disk)

    assert asked(store, COUNTED) == [("a", 1)]


def full() -> sqlite3.OperationalError:
    """What SQLite says when the disk is full."""
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (full(), StoreFull),
        (sqlite3.DatabaseError("disk image is malformed"), StoreUnusable),
    ],
)
def test_what_the_index_could_not_take_in_is_taken_in_later(
    wrong: Exception, error: type[Exception], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made("a").response("q", 1, 1).response("r", 1, 2)
    store.append(made.key, made.records[:2])

    def fails(*_: object) -> None:
        raise wrong

    monkeypatch.setattr(store.index, "_settle", fails)
    with pytest.raises(error):
        store.sync()
    monkeypatch.undo()
    put(store, made)

    assert asked(store, COUNTED) == [("a", 1), ("a", 2)]
    assert asked(store, "SELECT records FROM session") == [(3,)]


def test_records_of_a_later_version_are_passed_over(store: Store) -> None:
    data = encode_lines(Made("a").response("q", 1, 1).records)
    path = store.path(Made("a").key)
    path.parent.mkdir(parents=True)
    path.write_bytes(data + b'{"type":"quantum","seq":2,"id":"r2","new":[1]}\n{"type":"message","seq":3,"id":"r3"}\n')

    store.index.catch_up(store.disk)

    assert asked(store, COUNTED) == [("a", 1)]
    assert store.index.place_of(Made("a").key) == path.stat().st_size


def test_lines_that_are_no_records_are_told(tmp_path: Path, store: Store) -> None:
    assert decode_or_none(b"not json") is None
    assert decode_or_none(b'{"type":"message"}') is None
    path = tmp_path / "x.asr.jsonl"
    path.write_bytes(b"not json\n")
    assert key_of_file(store.disk, path) is None
    path.write_bytes(b"")
    assert key_of_file(store.disk, path) is None
    assert list(stream_files(tmp_path / "none")) == []


def test_batches_are_taken_in_whole_or_not_at_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [Made("a").response("q", 1, 1), Made("b").response("r", 1, 2)]
    grown = [Grown(m.key, store.path(m.key), 100, list(m.records)) for m in made]
    put_, calls = store.index._put, [0]  # type: ignore[reportPrivateUsage]

    def second_fails(*args: Any) -> None:
        calls[0] += 1
        if calls[0] == 2:
            raise RuntimeError
        put_(*args)

    monkeypatch.setattr(store.index, "_put", second_fails)
    with pytest.raises(RuntimeError):
        store.index.add(grown)
    monkeypatch.undo()

    assert asked(store, "SELECT count(*) FROM session") == [(0,)]
    store.index.add([Grown(m.key, store.path(m.key), 100, list(m.records)) for m in made])
    assert asked(store, COUNTED) == [("a", 1), ("b", 2)]
