"""What is asked of the index is answered from the index and the streams, for one reader."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from asrd.query import Selection, Stored
from asrd.records import Workspace, WorkspaceRoot
from asrd.store import Store
from asrd.store.rows import IndexRows
from tests.store.build import Made, child_of, where_of


def placed(ident: str, folder: str, at: str, **more: Any) -> Made:
    workspace = Workspace(roots=[WorkspaceRoot(id="r1", path=folder)])
    return Made(ident, workspace=workspace, **more).prompt("do it", at).response(f"q-{ident}", 10, 1, at=at)


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    """Four sessions: two in folders that look alike, one below one of them, one of another harness."""
    store = Store(where_of(tmp_path))
    for made in (
        placed("aa1", "/w/a_b", "2026-01-01T10:00:00Z"),
        placed("aa2", "/w/axb", "2026-01-02T10:00:00Z"),
        placed("ab3", "/w/a_b/sub", "2026-01-03T10:00:00Z", lineage=child_of("aa1")),
        placed("zz4", "/w/100%", "2026-01-04T10:00:00Z", agent="pi"),
    ):
        store.append(made.key, made.records)
    store.sync()
    db = store.index.reader()
    yield IndexRows(db, store.folders.streams, store.disk)
    db.close()
    store.close()


def names(found: list[Stored]) -> list[str]:
    return [s.row.session_id for s in found]


def test_sessions_come_the_last_changed_first_and_as_asked_for(rows: IndexRows) -> None:
    assert names(rows.sessions()) == ["zz4", "ab3", "aa2", "aa1"]
    assert names(rows.sessions(limit=1)) == ["zz4"]
    assert names(rows.sessions(harness="pi")) == ["zz4"]
    assert names(rows.sessions(since="2026-01-03T00:00:00")) == ["zz4", "ab3"]


def test_a_folder_is_itself_and_what_is_below_to_the_letter(rows: IndexRows) -> None:
    assert names(rows.sessions(project="/w/a_b")) == ["ab3", "aa1"]
    assert names(rows.sessions(project="/w/100%")) == ["zz4"]
    assert names(rows.sessions(project="/w/1%")) == []


def test_a_session_is_named_by_its_id_or_its_start(rows: IndexRows) -> None:
    assert names(rows.named("aa1")) == ["aa1"]
    assert names(rows.named("aa")) == ["aa2", "aa1"]
    assert names(rows.named("")) == []
    assert names(rows.named("a%")) == []
    assert names(rows.named("' OR 1=1 --")) == []


def test_figures_are_within_half_open_bounds(rows: IndexRows) -> None:
    def requests(since: str | None, until: str | None) -> int:
        return sum(s.requests for _, s in rows.usage(Selection(since=since, until=until), None))

    assert requests(None, None) == 4
    assert requests("2026-01-02T10:00:00", "2026-01-03T10:00:00") == 1
    assert requests("2026-01-02T10:00:00.001", "2026-01-03T10:00:00.001") == 1
    assert requests(None, "2026-01-01T10:00:00") == 0


def test_records_are_given_from_a_place_on(rows: IndexRows) -> None:
    (stored,) = rows.named("aa1")

    assert len(list(rows.lines(stored, 0))) == stored.row.records == 3
    assert [b'"seq":2' in line for line in rows.lines(stored, 2)] == [True]
    assert list(rows.lines(stored, 9)) == []


def test_totals_are_of_the_store(rows: IndexRows) -> None:
    totals = rows.totals()

    assert (totals["sessions"], totals["records"]) == (4, 12)
    assert totals["bytes"] == sum(s.row.bytes for s in rows.sessions())


def test_a_reader_cannot_write(rows: IndexRows) -> None:
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        rows._db.execute("DELETE FROM session")  # type: ignore[reportPrivateUsage]
