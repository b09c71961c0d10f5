"""Cursors are kept all or none, and are only a cache: what cannot be used is made anew."""

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from asrd.errors import StoreUnusable
from asrd.store.cursors import Cursor, Cursors, Saved


def cursor(name: str, **more: object) -> Cursor:
    made = Cursor("codex", "g", name, f"/x/{name}", "lines")
    for field, value in more.items():
        setattr(made, field, value)
    return made


def test_what_was_kept_is_there_after_opening_again(tmp_path: Path) -> None:
    one = cursor("a", offset=7, size=9, state="torn", reason="2 bytes", token="t", mtime_ns=2**62)
    kept = Cursors(tmp_path / "c.sqlite")
    kept.put([one, cursor("b")], [Saved("codex", "g", b"\x00state", '{"x": 1}', '{"y": 2}')])
    kept.put([cursor("b", offset=3)], [])
    kept.close()

    again = Cursors(tmp_path / "c.sqlite")

    assert again.all() == {("codex", "g"): {"a": one, "b": cursor("b", offset=3)}}
    assert again.saved("codex", "g") == Saved("codex", "g", b"\x00state", '{"x": 1}', '{"y": 2}')
    assert again.saved("codex", "other") is None
    assert [(a.saved, a.skips) for a in again.accounts()] == [(None, '{"x": 1}')]
    assert stat.S_IMODE((tmp_path / "c.sqlite").stat().st_mode) == 0o600
    again.close()


def test_cursors_and_states_are_kept_together_or_not_at_all(tmp_path: Path) -> None:
    kept = Cursors(tmp_path / "c.sqlite")
    kept.put([cursor("a")], [])
    wrong = Saved("codex", "g", b"", "{}", "{}")
    wrong.skips = object()  # type: ignore[assignment]

    with pytest.raises(StoreUnusable):
        kept.put([cursor("a", offset=99)], [wrong])

    assert kept.all()[("codex", "g")]["a"].offset == 0
    kept.close()


@pytest.mark.parametrize("content", [b"no database" * 100, b"", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_cannot_be_used_is_made_anew(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(content)

    kept = Cursors(path)
    kept.put([cursor("a")], [])

    assert list(kept.all()) == [("codex", "g")]
    kept.close()


def test_cursors_of_another_version_are_not_used(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    Cursors(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO source (harness, grp, name, path, kind) VALUES ('a', 'b', 'c', 'd', 'lines')")
        db.execute("PRAGMA user_version = 99")
        db.commit()

    kept = Cursors(path)

    assert kept.all() == {}
    kept.close()
