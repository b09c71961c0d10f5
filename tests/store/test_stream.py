"""A stream is appended to, cut where it is torn, and read; its file's name is safe and its own."""

import stat
from pathlib import Path

import pytest

from asrd.errors import StoreTooNew, StoreUnusable, StreamCorrupt
from asrd.recorders.base import HEADER_PLACE, StreamKey
from asrd.records import encode_lines
from asrd.store import Store, check_version
from asrd.store import stream as streams
from asrd.store.disk import RealDisk
from asrd.store.stream import Stream, file_name, folder_name, lines_of, near, recorded
from tests.store.build import Made, where_of


@pytest.fixture
def disk() -> RealDisk:
    return RealDisk()


def test_a_torn_tail_is_cut_on_opening(disk: RealDisk, tmp_path: Path) -> None:
    path = tmp_path / "a.asr.jsonl"
    whole = encode_lines(Made("a").prompt("hi").prompt("there").records)

    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        stream = Stream(disk, path)
        left = whole[: whole.rfind(b"\n", 0, cut) + 1]
        assert (path.read_bytes(), stream.size, stream.recovered) == (left, len(left), cut - len(left))
        assert stream.next_seq == left.count(b"\n")
    disk.close()


def test_a_tail_longer_than_what_is_read_at_once_is_cut_too(disk: RealDisk, tmp_path: Path) -> None:
    path = tmp_path / "a.asr.jsonl"
    whole = encode_lines(Made("a").prompt("x" * 3_000_000).prompt("y" * 2_500_000).records)
    path.write_bytes(whole[:-10])

    stream = Stream(disk, path)

    assert stream.next_seq == 2
    assert path.read_bytes() == whole[: whole.rfind(b"\n", 0, -10) + 1]
    disk.close()


def test_a_last_line_that_is_no_record_is_said_and_left_as_it_is(disk: RealDisk, tmp_path: Path) -> None:
    path = tmp_path / "a.asr.jsonl"
    path.write_bytes(encode_lines(Made("a").records) + b"not a record\n")
    before = path.read_bytes()

    with pytest.raises(StreamCorrupt) as raised:
        Stream(disk, path)

    assert f"byte {before.rfind(b'not')}" in str(raised.value)
    assert path.read_bytes() == before
    disk.close()


def test_records_that_do_not_follow_are_refused(disk: RealDisk, tmp_path: Path) -> None:
    made = Made("a").prompt("hi").prompt("there")
    stream = Stream(disk, tmp_path / "a.asr.jsonl")
    stream.append(made.records[:1])

    with pytest.raises(AssertionError):
        stream.append(made.records[2:])
    disk.close()


def test_what_a_stream_holds_is_known_by_place(disk: RealDisk, tmp_path: Path) -> None:
    path = tmp_path / "a.asr.jsonl"
    path.write_bytes(encode_lines(Made("a").prompt("hi").prompt("there").records))

    held = recorded(disk, path)

    assert held.next_seq == 3
    assert held.sources == {"a.jsonl": "s1"}
    assert held.fingerprints == {"a.jsonl": "f"}
    assert held.ids == {HEADER_PLACE: ["h"], ("s1", 10, None, None): ["r1"], ("s1", 20, None, None): ["r2"]}
    assert held.take(("s1", 10, None, None)) == "r1"
    assert held.take(("s1", 10, None, None)) is None
    disk.close()


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_lines_are_read_whole_up_to_a_place(
    size: int, disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asrd.store.stream.CHUNK", size)
    (tmp_path / "x").write_bytes(b"one\ntwo\nthree\ntorn")

    assert list(lines_of(disk, tmp_path / "x")) == [b"one", b"two", b"three"]
    assert list(lines_of(disk, tmp_path / "x", 4)) == [b"two", b"three"]
    assert list(lines_of(disk, tmp_path / "x", 0, 8)) == [b"one", b"two"]
    disk.close()


@pytest.mark.parametrize(
    "ident",
    ["../../etc/passwd", "a/b", ".hidden", "-rf", "", "x" * 400, "täst", "a\0b", "a\nb", "\ud800", "CON:", "a b", "~"],
)
def test_a_session_id_cannot_lead_out_of_the_store(ident: str) -> None:
    name = file_name(StreamKey("codex", ident))

    assert "/" not in name and "\0" not in name and not name.startswith((".", "-"))
    assert len(name.encode()) < 200
    assert name.endswith(".asr.jsonl")
    assert "/" not in folder_name(ident) and folder_name(ident) not in ("", ".", "..")


def test_ids_that_look_alike_have_files_of_their_own() -> None:
    ids = ["a/b", "a_b", "a:b", "a b", "A/b", "x" * 150, "x" * 151]

    names = {file_name(StreamKey("codex", i)) for i in ids} | {file_name(StreamKey("codex", "b", "a"))}

    assert len(names) == len(ids) + 1
    assert file_name(StreamKey("codex", "0a-b.c")) == "0a-b.c.asr.jsonl"


def test_a_store_keeps_what_it_was_given_and_tells_its_index(tmp_path: Path) -> None:
    made = Made("a").prompt("hi")
    store = Store(where_of(tmp_path))

    store.append(made.key, made.records)
    assert store.unsynced() == 2
    grown = store.sync()
    assert (len(grown), store.unsynced(), store.sync()) == (1, 0, [])

    assert store.next_seq(made.key) == 2
    assert store.index.place_of(made.key) == grown[0].size == store.path(made.key).stat().st_size
    assert stat.S_IMODE(store.path(made.key).stat().st_mode) == 0o600
    assert store.recorded()[made.key].next_seq == 2
    assert store.recorded().get(Made("b").key) is None
    store.close()


def test_a_file_of_another_session_at_a_streams_place_is_refused(tmp_path: Path) -> None:
    store = Store(where_of(tmp_path))
    path = store.path(Made("a").key)
    path.parent.mkdir(parents=True)
    path.write_bytes(encode_lines(Made("b").records))

    with pytest.raises(StoreUnusable, match="another session"):
        store.recorded()[Made("a").key]
    store.close()


def test_a_store_of_the_future_is_left_alone(tmp_path: Path) -> None:
    where = where_of(tmp_path)
    Store(where).close()
    (where.store / "version.json").write_bytes(b'{"version": 99}')

    with pytest.raises(StoreTooNew, match="version 99"):
        Store(where)
    (where.store / "version.json").write_bytes(b"{")
    with pytest.raises(StoreUnusable, match=r"version\.json"):
        check_version(where.store)


def long_stream(path: Path) -> bytes:
    made = Made("a")
    for n in range(400):
        made.prompt("x" * (n * 37 % 900 if n != 200 else 70_000))
    data = encode_lines(made.records)
    path.write_bytes(data)
    return data


def test_a_record_is_found_without_reading_those_before_it(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "NEAR", 512)
    path = tmp_path / "a.asr.jsonl"
    data = long_stream(path)
    starts = [0, *(n + 1 for n, b in enumerate(data) if b == 10)][:-1]
    asked: list[int] = []
    read = RealDisk.read

    def counting(self: RealDisk, path: Path, start: int, length: int) -> bytes:
        asked.append(length)
        return read(self, path, start, length)

    monkeypatch.setattr(RealDisk, "read", counting)
    for seq in range(len(starts) + 2):
        asked.clear()
        at, first = near(disk, path, seq, len(data))

        assert starts[first] == at and first <= seq
        assert min(seq, len(starts) - 1) - first <= 4 and len(asked) < 60
    disk.close()


def test_only_what_is_known_to_be_whole_is_halved(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "NEAR", 512)
    path = tmp_path / "a.asr.jsonl"
    data = long_stream(path)
    starts = [0, *(n + 1 for n, b in enumerate(data) if b == 10)][:-1]

    at, first = near(disk, path, 300, starts[100])

    assert first <= 100 and starts[first] == at


def test_where_a_line_is_damaged_the_stream_is_read_from_its_beginning(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "NEAR", 512)
    path = tmp_path / "a.asr.jsonl"
    data = long_stream(path)
    path.write_bytes(data.replace(b'"seq":', b'"sea":'))

    assert near(disk, path, 300, len(data)) == (0, 0)
    disk.close()
