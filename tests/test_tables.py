"""Databases that belong to someone else: read while they are written, without a trace, and only what is new."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from asrd import reading, tables
from asrd.errors import SourceUnreadable
from asrd.places import Found
from asrd.reading import changed, read_rows
from asrd.sources import Place, RowQuery, Source
from asrd.tables import Changed, Unreadable, counts, rows, snapshot

T = RowQuery("t", "SELECT id, x FROM t ORDER BY id", ("id",))

WRITER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], timeout=0)
db.execute("PRAGMA journal_mode=" + sys.argv[2])
db.execute("PRAGMA wal_autocheckpoint=" + sys.argv[3])
db.execute("CREATE TABLE IF NOT EXISTS t(id INTEGER PRIMARY KEY, x TEXT, y TEXT)")
db.execute("CREATE INDEX IF NOT EXISTS ty ON t(y)")
db.commit()
print("ready", flush=True)
worst, n = 0.0, 0
for line in sys.stdin:
    for _ in range(int(line)):
        start = time.perf_counter()
        with db:
            db.execute("INSERT INTO t(x, y) VALUES (?, ?)", ("row", "row"))
            db.execute("UPDATE t SET y = ? WHERE id = 1", (str(n),))
        worst = max(worst, time.perf_counter() - start)
        n += 1
    print(n, worst, flush=True)
"""


class Owner:
    """Another process that writes a database."""

    def __init__(self, path: Path, mode: str, checkpoint: int) -> None:
        command = [sys.executable, "-c", WRITER, str(path), mode, str(checkpoint)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said()

    def said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def starts(self, count: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()

    def writes(self, count: int) -> None:
        self.starts(count)
        assert self.said().split()[0]

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        assert self.process.wait(20) == 0, "the owner was hindered"
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def owner(path: Path, mode: str = "wal", checkpoint: int = 1000) -> Generator[Owner]:
    one = Owner(path, mode, checkpoint)
    try:
        yield one
    finally:
        one.close()


def found_in(path: Path, *queries: RowQuery) -> Found:
    source = Source("x", path.name, path.name, path.name, "table")
    return Found(source, str(path), str(path.parent), Place(path.name, "table", queries or (T,)))


def traces(folder: Path) -> dict[str, tuple[str, int, int, int]]:
    """Each file's content, time, inode and number of links, the time of the last change of any of these with it."""
    found: dict[str, tuple[str, int, int, int]] = {}
    for path in [folder, *sorted(folder.iterdir())]:
        info = path.stat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[path.name] = (content, info.st_mtime_ns, info.st_ctime_ns, info.st_nlink)
    return found


def count(path: Path) -> int:
    return sum(1 for _ in rows(str(path), (T,)))


# ---------------------------------------------------------------- no trace


@pytest.mark.parametrize("mode", ["wal", "delete", "truncate", "persist"])
def test_reading_leaves_no_trace_while_the_owner_has_the_database_open(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "db"
    with owner(path, mode) as one:
        one.writes(200)
        before = traces(tmp_path)

        given = count(path)

        assert given == 200
        assert traces(tmp_path) == before


def test_reading_leaves_no_trace_when_the_owner_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with owner(path) as one:
        one.writes(50)
    before = traces(tmp_path)

    given = count(path)

    assert given == 50
    assert sorted(before) == [tmp_path.name, "db"] or sorted(before) == ["db", tmp_path.name]
    assert traces(tmp_path) == before


def test_a_log_that_a_killed_owner_left_is_read_and_left(tmp_path: Path) -> None:
    path = tmp_path / "db"
    one = Owner(path, "wal", 0)
    one.writes(30)
    one.process.kill()
    one.process.wait()
    for pipe in (one.process.stdin, one.process.stdout):
        assert pipe is not None
        pipe.close()
    before = traces(tmp_path)

    given = count(path)

    assert given == 30
    assert "db-wal" in before
    assert traces(tmp_path) == before


def test_reading_holds_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with owner(path) as one:
        one.writes(10)

        with snapshot(str(path)) as shot, closing(sqlite3.connect(path, timeout=0)) as other:
            assert next(iter(tables.execute(shot.db, "SELECT count(*) FROM t")))[0] == 10
            other.execute("BEGIN EXCLUSIVE")
            other.execute("INSERT INTO t(x) VALUES ('more')")
            other.commit()
            busy = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]

            assert busy == 0
            with pytest.raises(Changed):
                shot.check()


def test_nothing_can_be_written_through_a_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with owner(path) as one:
        one.writes(10)
    before = traces(tmp_path)

    with snapshot(str(path)) as shot, pytest.raises(tables.apsw.Error):
        tables.execute(shot.db, "PRAGMA query_only=0; DELETE FROM t")

    assert traces(tmp_path) == before


READER = """
import sys
from asrd.sources import RowQuery
from asrd.tables import rows
while True:
    n = sum(1 for _ in rows(sys.argv[1], (RowQuery("t", "SELECT id, x FROM t ORDER BY id", ("id",)),)))
    print(n, flush=True)
"""


def test_a_reader_that_is_killed_leaves_nothing_and_hinders_no_one(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with owner(path) as one:
        one.writes(3000)
        before = traces(tmp_path)
        for pause in (0.0, 0.003, 0.011):
            reader = subprocess.Popen([sys.executable, "-c", READER, str(path)], stdout=subprocess.PIPE, text=True)
            assert reader.stdout is not None
            reader.stdout.readline()
            time.sleep(pause)
            reader.send_signal(signal.SIGKILL)
            reader.wait()
            reader.stdout.close()

        assert traces(tmp_path) == before
        one.writes(10)
        with closing(sqlite3.connect(path, timeout=0)) as other:
            assert other.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


# ---------------------------------------------------------------- one state


@pytest.mark.parametrize(("mode", "checkpoint"), [("wal", 4), ("wal", 1000), ("delete", 0)])
def test_what_is_given_is_one_committed_state_while_the_owner_writes(
    tmp_path: Path, mode: str, checkpoint: int
) -> None:
    path = tmp_path / "db"
    both = RowQuery(
        "t", "SELECT (SELECT count(*) FROM t) AS n, max(id) AS id, (SELECT y FROM t WHERE id = 1) AS y FROM t", ("id",)
    )
    with owner(path, mode, checkpoint) as one:
        one.writes(1)
        one.starts(400)
        seen: list[dict[str, Any]] = []
        for _ in range(40):
            try:
                seen += [values for _, values in rows(str(path), (both,))]
            except Unreadable:
                continue
        one.said()
        seen += [values for _, values in rows(str(path), (both,))]

    assert all(v["n"] == v["id"] == int(v["y"]) + 1 for v in seen)
    assert seen[-1]["n"] == 401


def test_the_owner_never_waits_for_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with owner(path, "wal", 4) as one:
        one.writes(500)
        one.starts(300)
        given = 0
        for _ in range(20):
            try:
                given = max(given, count(path))
            except Unreadable:
                continue
        written = one.said().split()

    # The owner's timeout is 0: one lock in its way would have ended it with "database is locked".
    assert int(written[0]) == 800
    assert given >= 500


def test_a_rollback_journal_of_a_crash_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with owner(path, "delete") as one:
        one.writes(2000)
    script = (
        "import sqlite3, os, sys; db = sqlite3.connect(sys.argv[1]); db.execute('PRAGMA cache_size=1');"
        "db.execute('BEGIN'); db.execute(\"UPDATE t SET x = 'never committed'\");"
        "db.executemany('INSERT INTO t(x) VALUES (?)', [('z' * 3000,)] * 50); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    before = traces(tmp_path)

    given = [values["x"] for _, values in rows(str(path), (T,))]

    assert "db-journal" in before
    assert given == ["row"] * 2000
    assert traces(tmp_path) == before


def test_a_log_that_is_begun_again_while_it_is_read_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "db"
    with owner(path) as one:
        one.writes(5)
        real: Any = os.pread
        begun = [b"another header"]

        def reading(file: int, size: int, offset: int) -> bytes:
            return begun.pop() if size == 32 and begun else real(file, size, offset)

        monkeypatch.setattr(os, "pread", reading)

        with pytest.raises(Changed), snapshot(str(path)):
            pass
        assert count(path) == 5


# ---------------------------------------------------------------- in the way


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)

    with pytest.raises(SourceUnreadable):
        list(read_rows(found_in(path)))


def test_a_database_that_is_gone_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable):
        list(read_rows(found_in(tmp_path / "none")))

    assert list(tmp_path.iterdir()) == []


def test_a_query_that_a_newer_schema_refuses_is_reported_and_the_others_are_answered(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with owner(path) as one:
        one.writes(3)
    refused = RowQuery("t", "SELECT id, gone FROM t", ("id",))
    older = RowQuery("later", "SELECT * FROM later", ("id",))
    given: list[str] = []

    with pytest.raises(SourceUnreadable, match="no such column: gone"):
        given.extend(row.key for row in read_rows(found_in(path, refused, older, T)))

    assert given == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("query", "what"),
    [
        (RowQuery("t", "SELECT * FROM t ORDER BY id", ("id",), columns=("id", "said")), "t has no said"),
        (RowQuery("later", "SELECT * FROM later", ("id",), columns=("id",)), "no table later"),
    ],
)
def test_columns_that_must_be_there_and_are_not_are_reported_and_what_there_is_is_given(
    query: RowQuery, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "db"
    with owner(path) as one:
        one.writes(2)
    given: list[str] = []

    with pytest.raises(SourceUnreadable, match=f"another schema: {what}"):
        given.extend(row.key for row in read_rows(found_in(path, query, T)))

    assert given == ["1", "2"] * (1 + (query.table == "t"))


def test_text_that_is_no_utf8_is_read_with_its_bytes_replaced(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with owner(path) as one:
        one.writes(2)
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO t(x) VALUES (CAST(x'41ff42' AS TEXT)), ('after'), (x'00ff')")
        db.commit()

    given = [values["x"] for _, values in rows(str(path), (T,))]

    assert given == ["row", "row", "A\ufffdB", "after", b"\x00\xff"]


# ---------------------------------------------------------------- only what is new

BIG = RowQuery(
    "t",
    "SELECT id, x FROM t ORDER BY id",
    ("id",),
    mark="SELECT max(rowid) FROM log",
    changed="SELECT id, x FROM t WHERE id IN (SELECT t_id FROM log WHERE rowid > :since) ORDER BY id",
)


def big(path: Path, megabytes: int) -> sqlite3.Connection:
    """A database of that size with a log of what was changed, kept open."""
    db = sqlite3.connect(path)
    db.executescript(
        "PRAGMA journal_mode=wal; PRAGMA synchronous=off;"
        "CREATE TABLE t(id TEXT PRIMARY KEY, x TEXT); CREATE TABLE log(t_id TEXT);"
    )
    text = "x" * 8000
    for n in range(megabytes * 128):
        db.execute("INSERT INTO t VALUES (?, ?)", (f"m{n:09}", text))
        db.execute("INSERT INTO log VALUES (?)", (f"m{n:09}",))
        if n % 1024 == 0:
            db.commit()
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return db


def test_one_new_row_costs_a_few_pages_of_a_large_database(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with closing(big(path, 30)) as db:
        found = found_in(path, BIG)
        since: dict[str, Any] = {}
        assert sum(1 for _ in read_rows(found, None, since)) == 30 * 128
        db.execute("INSERT INTO t VALUES ('n', 'new')")
        db.execute("UPDATE t SET x = 'rewritten' WHERE id = 'm000000007'")
        db.executemany("INSERT INTO log VALUES (?)", [("n",), ("m000000007",)])
        db.commit()
        counts.bytes = counts.copied = 0

        given = [(row.key, row.values["x"]) for row in read_rows(found, None, since)]

    assert given == [("m000000007", "rewritten"), ("n", "new")]
    assert counts.bytes < 200_000
    assert counts.copied == 0


@pytest.mark.parametrize("left", ["", "INSERT INTO log VALUES ('m000000001');"])
def test_a_mark_that_went_back_reads_everything_again(tmp_path: Path, left: str) -> None:
    path = tmp_path / "db"
    with closing(big(path, 1)) as db:
        found = found_in(path, BIG)
        since: dict[str, Any] = {}
        list(read_rows(found, None, since))
        db.executescript(f"DELETE FROM log; {left} UPDATE t SET x = 'all' WHERE id = 'm000000003'")
        db.commit()

        given = [row.key for row in read_rows(found, None, since)]

    assert len(given) == 128


def test_what_changed_is_read_whole_where_an_older_schema_refuses_to_tell(tmp_path: Path) -> None:
    path = tmp_path / "db"
    newer = RowQuery("t", BIG.sql, ("id",), mark=BIG.mark, changed="SELECT id, x FROM t WHERE flag = :since")
    with closing(big(path, 1)):
        since: dict[str, Any] = {"0/t": 5}

        given = [row.key for row in read_rows(found_in(path, newer), None, since)]

    assert len(given) == 128
    assert since == {"0/t": 128}


def test_marks_stay_where_they_were_when_reading_fails(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with closing(big(path, 1)):
        since: dict[str, Any] = {"0/t": 5}
        reading = read_rows(found_in(path, BIG), None, since)

        next(reading)

        assert since == {"0/t": 5}


def test_rows_of_a_growing_column_are_read_from_the_largest_on(tmp_path: Path) -> None:
    path = tmp_path / "db"
    growing = RowQuery("t", "SELECT id, x FROM t", ("id",), since="id")
    with owner(path) as one:
        one.writes(5)
        since: dict[str, Any] = {}
        list(read_rows(found_in(path, growing), None, since))
        one.writes(2)

        given = [row.key for row in read_rows(found_in(path, growing), None, since)]

    assert given == ["5", "6", "7"]


def test_rows_whose_revision_is_known_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with owner(path) as one:
        one.writes(3)
        known = {f"t/{row.key}": row.rev for row in read_rows(found_in(path))}
        one.writes(1)

        given = [row.key for row in read_rows(found_in(path), known)]

    assert given == ["4"]


def test_a_change_is_seen_without_opening_the_database(tmp_path: Path) -> None:
    path = tmp_path / "db"
    found = found_in(path)
    with owner(path) as one:
        one.writes(1)
        time.sleep(0.03)
        token = changed(found)
        counts.opened = 0

        assert changed(found, token) is None
        one.writes(1)
        assert changed(found, token) not in (None, token)
        assert counts.opened == 0


def test_a_change_in_the_same_tick_as_the_token_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(b"1234")
    fresh = changed(found_in(path))

    time.sleep(0.03)

    assert changed(found_in(path), fresh) not in (None, fresh)


# ---------------------------------------------------------------- trees


def tree(folder: Path) -> Found:
    source = Source("x", "tree", "tree", "tree", "tree")
    return Found(source, str(folder), str(folder.parent), Place("tree", "tree"))


def test_only_changed_documents_of_a_tree_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tree"
    (folder / "part").mkdir(parents=True)
    for name in "abc":
        (folder / "part" / f"{name}.json").write_text("{}")
    time.sleep(0.03)
    since: dict[str, Any] = {}
    assert [row.key for row in read_rows(tree(folder), None, since)] == ["part/a.json", "part/b.json", "part/c.json"]
    (folder / "part" / "b.json").write_text('{"n": 1}')
    (folder / "part" / "d.json").write_text("{}")
    os.remove(folder / "part" / "c.json")
    time.sleep(0.03)
    opened: list[str] = []
    real = reading.opened

    def watching(path: str, root: str) -> Any:
        opened.append(os.path.basename(path))
        return real(path, root)

    monkeypatch.setattr(reading, "opened", watching)
    given = [row.key for row in read_rows(tree(folder), None, since)]

    assert given == ["part/b.json", "part/d.json"]
    assert opened == ["b.json", "d.json"]


def test_a_document_that_changes_within_a_tick_is_read_once_more(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "a.json").write_text("{}")
    since: dict[str, Any] = {}
    first = [row.rev for row in read_rows(tree(folder), None, since)]
    stat = (folder / "a.json").stat()
    (folder / "a.json").write_text("[]")
    os.utime(folder / "a.json", ns=(stat.st_atime_ns, stat.st_mtime_ns))

    again = [row.rev for row in read_rows(tree(folder), None, since)]

    assert len(again) == 1
    assert again != first


def test_links_and_other_files_of_a_tree_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (tmp_path / "outside.json").write_text("{}")
    (folder / "link.json").symlink_to(tmp_path / "outside.json")
    os.mkfifo(folder / "fifo.json")
    (folder / "a.json").write_text("{}")
    (folder / "notes.txt").write_text("x")

    given = [row.key for row in read_rows(tree(folder))]

    assert given == ["a.json"]
