"""Sessions are exported with those they started, placed by the edges of the tree, and what counts of them once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from asrd import exporting
from asrd.errors import NothingFound
from asrd.export import Exported, Given, formats
from asrd.query import Stored
from asrd.store import Store
from asrd.store.counted import counted
from asrd.store.rows import IndexRows
from tests.golden import CAPTURES
from tests.homes import recorded
from tests.store.build import Made, child_of, where_of


def test_sub_agents_stand_below_the_call_that_started_them(tmp_path: Path) -> None:
    with recorded(CAPTURES / "claude-code/S2" / "home", tmp_path) as one:
        root = next(s for s in one.rows.sessions() if s.row.parent_session is None)

        stored = exporting.chosen(one.rows, [root.row.session_id], None, False)
        given = exporting.given(one.rows, stored, counted(one.db, [s.number for s in stored]), "default")

    assert len(given.sessions) == len(given.tree(0)) > 2
    assert given.roots() == [0] and all(s.parent_call for s in given.sessions[1:])


def test_alone_is_without_them(tmp_path: Path) -> None:
    with recorded(CAPTURES / "claude-code/S2" / "home", tmp_path) as one:
        root = next(s for s in one.rows.sessions() if s.row.parent_session is None)

        assert [s.number for s in exporting.chosen(one.rows, [root.row.session_id], None, True)] == [root.number]


def test_a_tree_is_read_when_those_before_it_are_written(tmp_path: Path) -> None:
    made = where_of(tmp_path)
    store = Store(made)
    for one in (Made("a").prompt("1"), Made("b").prompt("2"), Made("c", lineage=child_of("a")).prompt("3")):
        store.append(one.key, one.records)
    store.sync()
    db = store.index.reader()
    rows = IndexRows(db, store.folders.streams, store.disk)
    read: list[str] = []
    lines = rows.lines

    def counting(stored: Stored, start: int) -> Iterator[bytes]:
        read.append(stored.row.session_id)
        return lines(stored, start)

    rows.lines = counting  # type: ignore[method-assign]
    told = exporting.Told()
    stored = sorted(exporting.chosen(rows, [], None, False), key=lambda s: s.row.session_id)

    made_of = exporting.files(
        formats()["asr"], exporting.trees(rows, stored, lambda some: counted(db, some), "off"), told
    )
    first = next(made_of)
    before = list(read)
    rest = list(made_of)

    assert first.name == "codex_a.asr.jsonl" and before == ["a", "c"] and read == ["a", "c", "b"]
    assert (len(rest), told.sessions) == (2, 3)
    db.close()
    store.close()


def test_two_sessions_whose_names_are_alike_are_two_files() -> None:
    parts = [Given([Exported("x", ident, "", [], {})], "off", {}, "0") for ident in ("a.b", "a/b", "a_b")]

    made = [f.name for f in exporting.files(formats()["asr"], parts, exporting.Told())]

    assert made == ["x_a_b.asr.jsonl", "x_a_b-2.asr.jsonl", "x_a_b-3.asr.jsonl"]


def test_what_is_taken_out_is_told_for_each_tree_and_for_all() -> None:
    parts = [Given([Exported("x", ident, "", [], {})], "default", {"k": n}, "0") for n, ident in enumerate("ab", 2)]
    told = exporting.Told()

    (*_,) = exporting.files(formats()["training"], parts, told)

    assert told.removed == {"k": 5}


def test_an_empty_store_has_nothing_to_export(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with recorded(tmp_path / "home", tmp_path / "store") as one, pytest.raises(NothingFound):
        exporting.chosen(one.rows, [], None, False)
