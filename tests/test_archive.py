"""Archives: two stores become one, nothing counts twice, nothing is lost, and a hostile archive harms nothing."""

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from asrd import query
from asrd.archive import SCHEMA, export, take_in
from asrd.client import open_reader
from asrd.errors import ArchiveUnusable
from asrd.paths import Folders, folders
from asrd.retention import Rule
from asrd.store import Store
from asrd.store.rows import IndexRows
from asrd.upkeep import Job, Upkeep, work
from tests.homes import environment
from tests.store.build import Made
from tests.test_upkeep import NOW
from tests.upkeep_of import CODEX, S2, lines, opened, paths, store_of, told


def fresh(tmp_path: Path, name: str) -> Folders:
    return folders(environment(tmp_path, tmp_path / name))


def packed(where: Folders, to: Path) -> Path:
    opened(where).close()
    db = open_reader(where)
    rows = IndexRows(db, where.streams)
    export(rows, [*rows.sessions(), *rows.own()], to)
    db.close()
    return to


def imported(where: Folders, archive: Path) -> list[str]:
    store = opened(where)
    try:
        return [s["outcome"] for s in take_in(Upkeep(store), archive)["streams"]]
    finally:
        store.close()


def recorded(where: Folders, *sessions: Made) -> Folders:
    store = Store(where)
    for made in sessions:
        store.append(made.key, made.records)
    store.close()
    return where


def session(ident: str = "a" * 8, *responses: str, **more: Any) -> Made:
    made = Made(ident, started_at=more.pop("started_at", "2026-11-01T00:00:00Z"), **more).prompt("hello")
    for name in responses:
        made.response(name, 100, 10, at="2026-11-01T00:00:01Z")
    return made


def usage(where: Folders) -> tuple[int, int | None]:
    opened(where).close()
    db = open_reader(where)
    try:
        total = query.usage(IndexRows(db, where.streams))["total"]
        return total["requests"], total["input"]
    finally:
        db.close()


def test_a_store_that_is_taken_elsewhere_answers_the_same_there(tmp_path: Path) -> None:
    here = store_of(S2, tmp_path / "here")
    there = fresh(tmp_path, "there")

    outcomes = imported(there, packed(here, tmp_path / "a.tar.zst"))

    assert outcomes == ["new"] * 4
    assert told(there) == told(here)
    assert {p: lines(there, p) for p in paths(here)} == {p: lines(here, p) for p in paths(here)}


def test_what_is_taken_in_twice_counts_once(tmp_path: Path) -> None:
    here, there = store_of(S2, tmp_path / "here"), store_of(S2, tmp_path / "there")
    archive = packed(here, tmp_path / "a.tar.zst")
    before = told(there)

    first, second = imported(there, archive), imported(there, archive)

    assert first == second == ["here"] * 4
    assert told(there) == before


def test_a_longer_stream_adds_what_is_missing_and_a_shorter_one_nothing(tmp_path: Path) -> None:
    short = recorded(fresh(tmp_path, "short"), session("a" * 8, "r1"))
    long = recorded(fresh(tmp_path, "long"), session("a" * 8, "r1", "r2", "r3"))

    grew = imported(short, packed(long, tmp_path / "long.tar.zst"))
    back = imported(long, packed(short, tmp_path / "short.tar.zst"))

    assert grew == ["longer"]
    assert "here" in back
    assert usage(short) == usage(long) == (3, 300)
    assert lines(short, paths(long)[1]) == lines(long, paths(long)[1])


def test_a_sealed_stream_grows_too(tmp_path: Path) -> None:
    short = recorded(fresh(tmp_path, "short"), session("a" * 8, "r1"))
    long = recorded(fresh(tmp_path, "long"), session("a" * 8, "r1", "r2"))
    (path,) = paths(short)
    store = opened(short)
    work(Upkeep(store), Job(seal=[path]), NOW)
    store.close()
    assert paths(short) == [path + ".zst"]

    imported(short, packed(long, tmp_path / "long.tar.zst"))

    assert usage(short) == (2, 200)


def test_a_session_that_went_on_otherwise_is_kept_and_what_both_have_counts_once(tmp_path: Path) -> None:
    one = recorded(fresh(tmp_path, "one"), session("a" * 8, "r1", "r2", "mine"))
    other = recorded(fresh(tmp_path, "other"), session("a" * 8, "r1", "r2", "theirs", "more"))

    outcomes = imported(one, packed(other, tmp_path / "b.tar.zst"))
    again = imported(one, packed(other, tmp_path / "b.tar.zst"))

    assert (outcomes, again) == (["conflict"], ["here"])
    assert usage(one) == (5, 500)
    db = open_reader(one)
    assert "~conflict-" not in query.resolve(IndexRows(db, one.streams), "aaaa").row.namespace
    db.close()


def test_derived_ids_of_what_both_have_count_once_too(tmp_path: Path) -> None:
    def made(last: str) -> Made:
        return session("a" * 8).response("1", 100, 10, id_source="derived").response(last, 7, 1)

    one = recorded(fresh(tmp_path, "one"), made("mine"))
    other = recorded(fresh(tmp_path, "other"), made("theirs"))

    imported(one, packed(other, tmp_path / "b.tar.zst"))

    assert usage(one) == (3, 114)


def test_the_conflict_grows_when_it_grew_elsewhere(tmp_path: Path) -> None:
    one = recorded(fresh(tmp_path, "one"), session("a" * 8, "r1", "mine"))
    other = recorded(fresh(tmp_path, "other"), session("a" * 8, "r1", "theirs"))
    imported(one, packed(other, tmp_path / "b.tar.zst"))
    later = recorded(fresh(tmp_path, "later"), session("a" * 8, "r1", "theirs", "more"))

    outcomes = imported(one, packed(later, tmp_path / "c.tar.zst"))

    assert outcomes == ["longer"]
    assert usage(one) == (4, 400)
    assert len([p for p in paths(one) if "~conflict-" in p]) == 1


def test_another_session_of_an_equal_id_is_kept_and_all_of_it_counts(tmp_path: Path) -> None:
    def made(at: str) -> Made:
        return session("1", started_at=at).response("1", 100, 10, id_source="derived")

    one = recorded(fresh(tmp_path, "one"), made("2026-11-01T00:00:00Z"))
    other = recorded(fresh(tmp_path, "other"), made("2026-11-02T00:00:00Z"))

    outcomes = imported(one, packed(other, tmp_path / "b.tar.zst"))

    assert outcomes == ["other"]
    assert usage(one) == (2, 200)


def test_streams_of_two_versions_of_asrd_are_the_same_session(tmp_path: Path) -> None:
    old, new = session("a" * 8, "r1"), session("a" * 8, "r1", "r2")
    new.records[0].producer.version = "9.9"  # type: ignore[attr-defined]
    one, other = recorded(fresh(tmp_path, "one"), old), recorded(fresh(tmp_path, "other"), new)

    assert imported(one, packed(other, tmp_path / "b.tar.zst")) == ["longer"]


@pytest.mark.parametrize("wordless", ["here", "there"])
def test_a_stream_without_words_is_the_same_session(tmp_path: Path, wordless: str) -> None:
    here, there = store_of(CODEX, tmp_path / "here"), store_of(CODEX, tmp_path / "there")
    store = opened(here if wordless == "here" else there)
    work(Upkeep(store), Job(rules=[Rule(size=0)]), NOW)
    store.close()
    before = told(here)["usage"]

    outcomes = imported(here, packed(there, tmp_path / "b.tar.zst"))

    assert "conflict" not in outcomes
    assert told(here)["usage"] == before


# ---------------------------------------------------------------- archives that are not what they say


def archive_of(tmp_path: Path, members: list[tuple[str, bytes]], manifest: Any = None) -> Path:
    """An archive by hand."""
    streams = [
        {
            "agent": "codex",
            "sessionId": "a" * 8,
            "path": name,
            "bytes": len(data),
            "records": 1,
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        for name, data in members
    ]
    said: dict[str, Any] = {"schema": SCHEMA, "version": "0", "made": "x", "streams": streams}
    said = {**said, **(manifest or {})}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, data in [("manifest.json", msgspec.json.encode(said)), *members]:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    path = tmp_path / "hostile.tar.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(raw.getvalue()))
    return path


def good(tmp_path: Path) -> bytes:
    where = recorded(fresh(tmp_path, "good"), session("a" * 8, "r1"))
    return (where.streams / paths(where)[0]).read_bytes()


ENTRY = {"agent": "codex", "sessionId": "a" * 8, "path": "streams/x", "records": 1}
HOSTILE: dict[str, Callable[[bytes], tuple[list[tuple[str, bytes]], Any]]] = {
    "no manifest for a member": lambda data: ([("streams/x", data)], {"streams": []}),
    "another form": lambda data: ([("streams/x", data)], {"schema": "asrd.archive/9"}),
    "another session than it says": lambda data: ([("streams/x", data.replace(b'"aaaaaaaa"', b'"bbbbbbbb"'))], None),
    "another digest": lambda data: (
        [("streams/x", data)],
        {"streams": [{**ENTRY, "bytes": len(data), "sha256": "0" * 64}]},
    ),
    "torn": lambda data: ([("streams/x", data[:-5])], None),
    "no records": lambda data: ([("streams/x", b"\0" * 500)], None),
    "a hole": lambda data: ([("streams/x", b"".join(data.splitlines(keepends=True)[::2]))], None),
    "missing": lambda data: (
        [],
        {"streams": [{"agent": "codex", "sessionId": "a", "path": "p", "bytes": 1, "records": 1, "sha256": "0" * 64}]},
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_an_archive_that_is_not_what_it_says_is_refused_and_adds_nothing(tmp_path: Path, case: str) -> None:
    there = fresh(tmp_path, "there")
    members, manifest = HOSTILE[case](good(tmp_path))
    archive = archive_of(tmp_path, members, manifest)

    with pytest.raises(ArchiveUnusable):
        imported(there, archive)

    assert paths(there) == []
    assert list((there.store / "incoming").glob("*")) == []


def test_names_in_an_archive_are_never_paths(tmp_path: Path) -> None:
    there = fresh(tmp_path, "there")
    archive = archive_of(tmp_path, [("../../../../evil", good(tmp_path))])

    assert imported(there, archive) == ["new"]

    assert not list(tmp_path.rglob("evil*"))
    assert paths(there) == ["asrd/upkeep.asr.jsonl", f"codex/{'a' * 8}.asr.jsonl"]


def test_a_session_id_that_is_a_path_stays_inside(tmp_path: Path) -> None:
    there = fresh(tmp_path, "there")
    data = good(tmp_path).replace(b'"aaaaaaaa"', b'"../../x"')
    ident = {"agent": "codex", "sessionId": "../../x", "path": "p", "bytes": len(data), "records": 1}
    archive = archive_of(tmp_path, [("p", data)], {"streams": [{**ident, "sha256": hashlib.sha256(data).hexdigest()}]})

    assert imported(there, archive) == ["new"]

    assert all(".." not in p.split("/") for p in paths(there))


@pytest.mark.parametrize("data", [b"", b"no archive", zstandard.ZstdCompressor().compress(b"x" * 2000)])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)

    with pytest.raises(ArchiveUnusable):
        imported(fresh(tmp_path, "there"), tmp_path / "a")


def test_an_archive_is_private(tmp_path: Path) -> None:
    archive = packed(store_of(CODEX, tmp_path / "here"), tmp_path / "a.tar.zst")

    assert archive.stat().st_mode & 0o777 == 0o600
