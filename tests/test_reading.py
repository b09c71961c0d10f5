"""What a source holds is read without touching it: lines in chunks, packed files, documents; databases in `test_tables`."""

import contextlib
import io
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

import asrd.reading
from asrd import tables
from asrd.errors import SourceUnreadable
from asrd.places import Found
from asrd.reading import changed, opened, read_lines, read_rows, revision_of, revision_of_values
from asrd.sources import Kind, Place, RowQuery, Source

LINES = b"".join(b'{"n":%d}\n' % n for n in range(3000))


def found(path: Path, kind: Kind = "lines", **more: Any) -> Found:
    source = Source("x", "g", path.name, path.name, kind)
    return Found(source, str(path), str(path.parent), Place("*", kind, **more))


@pytest.mark.parametrize("chunk", [1, 7, 4096, 1 << 20])
def test_bytes_are_read_from_any_place_in_any_chunks(chunk: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES[:5000])

    for start in (0, 1, 4999, 5000, 9999):
        assert b"".join(read_lines(found(path), start, chunk)) == LINES[start:5000]
        assert all(len(c) <= chunk for c in read_lines(found(path), start, chunk))


@pytest.mark.parametrize("frames", [1, 3])
def test_a_packed_file_is_read_from_any_place_of_what_it_holds(frames: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    step = len(LINES) // frames + 1
    packed = [zstandard.ZstdCompressor().compress(LINES[at : at + step]) for at in range(0, len(LINES), step)]
    path.write_bytes(b"".join(packed))

    for start in (0, 1, 12_345, len(LINES), len(LINES) + 9):
        assert b"".join(read_lines(found(path), start, 4096)) == LINES[start:]


@pytest.mark.parametrize("content", [b"no zstd at all", b"\x28\xb5\x2f\xfd" + b"\xff" * 40])
def test_a_packed_file_that_is_damaged_is_unreadable(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(content)

    with pytest.raises(SourceUnreadable, match="zstd"):
        list(read_lines(found(path), 0))


def test_a_packed_file_that_is_still_written_gives_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    packed = zstandard.ZstdCompressor().compress(os.urandom(100_000).hex().encode())
    path.write_bytes(packed[: len(packed) // 2])

    try:
        got = b"".join(read_lines(found(path), 0))
    except SourceUnreadable:
        got = b""
    assert len(got) < 200_000


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="No such file"):
        list(read_lines(found(tmp_path / "none"), 0))
    with pytest.raises(SourceUnreadable, match="s a directory"):
        list(read_lines(found(tmp_path), 0))
    with pytest.raises(SourceUnreadable, match="No such file"):
        list(read_rows(found(tmp_path / "none", "document")))


def test_a_document_is_a_row_with_the_digest_of_its_content(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a":1}')

    (row,) = read_rows(found(path, "document"))

    assert (row.table, row.key, row.data, row.rev) == ("a.json", "a.json", b'{"a":1}', revision_of(b'{"a":1}'))
    assert list(read_rows(found(path, "document"), {"a.json/a.json": row.rev})) == []


def test_a_tree_gives_its_documents_in_order_and_later_only_what_changed(tmp_path: Path) -> None:
    for name in ("b/2.json", "a/1.json", "b/10.json", "b/note.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f'"{name}"')
        os.utime(tmp_path / name, (1e9, 1e9))
    (tmp_path / "b/link.json").symlink_to(tmp_path / "a/1.json")
    since: dict[str, Any] = {}

    first = [row.key for row in read_rows(found(tmp_path, "tree"), since=since)]
    (tmp_path / "b/2.json").write_text('"changed"')
    os.utime(tmp_path / "b/2.json", (2e9, 1e9 + 1))
    second = [row.key for row in read_rows(found(tmp_path, "tree"), since=since)]

    assert [k for k in first if "link" not in k] == ["a/1.json", "b/10.json", "b/2.json"]
    assert second == ["b/2.json"]


def test_a_token_changes_with_the_source(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    os.utime(path, (1e9, 1e9))
    token = changed(found(path, "document"))

    assert changed(found(path, "document"), token) is None
    path.write_text("{ }")
    os.utime(path, (1e9, 1e9 + 1))
    assert changed(found(path, "document"), token) not in (None, token)


def test_reading_leaves_the_source_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES)
    path.chmod(0o400)
    before = path.stat()

    list(read_lines(found(path), 0))

    after = path.stat()
    assert (after.st_mtime_ns, after.st_size, after.st_mode) == (before.st_mtime_ns, before.st_size, before.st_mode)


def test_equal_values_have_equal_revisions() -> None:
    assert revision_of_values({"a": 1, "b": b"x"}) == revision_of_values({"b": b"x", "a": 1})
    assert revision_of_values({"a": 1}) != revision_of_values({"a": "1"})
    assert revision_of_values({"a": None}) != revision_of_values({})
    assert revision_of_values({"a": "\ud800"})


# ---------------------------------------------------------------- shared files


def first_letter(line: bytes) -> str | None:
    return chr(line[0]) if line[:1].isalpha() else None


def part(path: Path, group: str) -> Found:
    """A shared file as a source of a group: a line belongs to the group of its first letter."""
    whole = found(path, "shared", owner=first_letter)
    return Found(msgspec.structs.replace(whole.source, group=group), whole.path, whole.root, whole.place)


def test_each_group_has_its_lines_of_a_shared_file_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "index.jsonl"
    path.write_bytes(b"a 1\nb 1\n\na 2\n7 no one's\na torn")

    assert [r.data for r in read_rows(part(path, "a"))] == [b"a 1", b"a 2"]
    assert [r.data for r in read_rows(part(path, "b"))] == [b"b 1"]
    assert list(read_rows(part(path, "c"))) == []


def test_a_line_of_a_shared_file_stays_itself_when_the_file_is_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "index.jsonl"
    path.write_bytes(b"b 1\na 1\na 2\n")
    before = list(read_rows(part(path, "a")))
    path.write_bytes(b"a 2\n")

    assert list(read_rows(part(path, "a"))) == before[1:]


def test_the_token_of_a_shared_file_is_that_of_the_groups_own_lines(tmp_path: Path) -> None:
    path = tmp_path / "index.jsonl"
    path.write_bytes(b"a 1\n")
    a = changed(part(path, "a"))

    assert changed(part(path, "b")) is None
    assert changed(part(path, "a"), a) is None
    path.write_bytes(b"a 1\nb 1\n")
    assert changed(part(path, "a"), a) is None
    assert changed(part(path, "b")) is not None
    path.write_bytes(b"a 3\nb 1\n")
    assert changed(part(path, "a"), a) is not None


def test_a_shared_file_is_read_once_for_all_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index.jsonl"
    path.write_bytes(b"".join(b"%c 1\n" % letter for letter in range(ord("a"), ord("z"))))
    os.utime(path, (1, 1))
    read: list[str] = []

    def counted(path: str, root: str) -> io.FileIO:
        read.append(path)
        return opened(path, root)

    monkeypatch.setattr(asrd.reading, "opened", counted)

    for letter in "abcdefgh":
        assert changed(part(path, letter)) and len(list(read_rows(part(path, letter)))) == 1

    assert len(read) == 1


EVENTS = RowQuery("event", "SELECT grp AS owner, id, word FROM event ORDER BY id", key=("id",), since="id")


def of_group(path: Path, group: str, query: RowQuery = EVENTS) -> Found:
    """A shared database as a source of a group."""
    whole = found(path, "shared", queries=(query,), owner="owner")
    return Found(msgspec.structs.replace(whole.source, group=group), whole.path, whole.root, whole.place)


def add(path: Path, *rows: tuple[str, str]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY, grp TEXT, word TEXT)")
        db.executemany("INSERT INTO event (grp, word) VALUES (?, ?)", rows)
    os.utime(path, ns=(time := os.stat(path).st_mtime_ns - 10**9, time))


def test_each_group_has_its_rows_of_a_shared_database(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    add(path, ("a", "one"), ("b", "two"), ("a", "three"))

    assert [r.values for r in read_rows(of_group(path, "a"))] == [{"id": 1, "word": "one"}, {"id": 3, "word": "three"}]
    assert [(r.table, r.key) for r in read_rows(of_group(path, "b"))] == [("event", "2")]
    assert changed(of_group(path, "c")) is None


def test_of_a_shared_database_that_grew_only_what_is_new_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    add(path, *[("a", f"word {n}") for n in range(50)], ("b", "two"))
    before = changed(of_group(path, "a"))
    given: list[int] = []
    rows = tables.rows

    def counted(*args: Any) -> Iterator[tuple[RowQuery, dict[str, Any]]]:
        for query, values in rows(*args):
            given.append(values["id"])
            yield query, values

    monkeypatch.setattr(tables, "rows", counted)
    add(path, ("b", "three"))

    assert changed(of_group(path, "a"), before) is None
    assert [r.values["word"] for r in read_rows(of_group(path, "b"))] == ["two", "three"]
    assert given == [51, 52]


def test_another_database_at_the_place_of_a_shared_one_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    add(path, ("a", "one"), ("a", "two"))
    assert len(list(read_rows(of_group(path, "a")))) == 2
    add(tmp_path / "new.db", ("a", "other"))
    os.replace(tmp_path / "new.db", path)

    assert [r.values["word"] for r in read_rows(of_group(path, "a"))] == ["other"]


def test_a_schema_of_a_shared_database_that_is_another_is_told(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    add(path, ("a", "one"))
    wrong = RowQuery("event", "SELECT grp AS owner, id, words FROM event", key=("id",))

    assert changed(of_group(path, "a", wrong)) is not None
    with pytest.raises(SourceUnreadable, match="words"):
        list(read_rows(of_group(path, "a", wrong)))


def test_a_shared_document_may_speak_of_all_groups_of_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_bytes(b"folder one")

    def parts(data: bytes) -> list[tuple[str, bytes]]:
        return [("folder", data)]

    def of(group: str) -> list[bytes]:
        whole = found(path, "shared", parts=parts)
        mine = Found(msgspec.structs.replace(whole.source, group=group), whole.path, whole.root, whole.place)
        return [row.data for row in read_rows(mine)]

    assert of("folder/a") == of("folder/b") == of("folder") == [b"folder one"]
    assert of("other/a") == of("folder/a/b") == []
