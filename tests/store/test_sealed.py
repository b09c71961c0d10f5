"""Sealed streams: whole, seekable, read by the name of the plain one, and never both the truth."""

import random
from pathlib import Path

import msgspec
import pytest
import zstandard

from asrd.errors import StoreTooNew, StoreUnusable
from asrd.records import Message, Text
from asrd.store import Store, check_version
from asrd.store.check import check_stream
from asrd.store.disk import RealDisk, draft, put, unseal
from asrd.store.sealed import FRAME, SealDamaged, Sealed, seal, sealed_name
from asrd.store.stream import Stream, lines_of, recorded
from tests.store.build import Made, where_of
from tests.upkeep_of import opened


def plain(path: Path, lines: int = 40, width: int = 100) -> bytes:
    """A stream of so many lines."""
    made = Made("a" * 8)
    for number in range(lines):
        made.prompt(f"{number} " + "x" * width)
    stream = Stream(RealDisk(), path)
    stream.append(made.records)
    return path.read_bytes()


def seal_file(path: Path) -> None:
    """The sealed form in the place of a plain one."""
    data = path.read_bytes()
    put(draft(sealed_name(path), seal(lambda s, n: data[s : s + n], len(data), seq)), sealed_name(path))
    path.unlink()


def seq(line: bytes) -> int:
    return msgspec.json.decode(line)["seq"]


def test_a_sealed_stream_is_read_by_the_name_of_the_plain_one(tmp_path: Path) -> None:
    path = tmp_path / "a.asr.jsonl"
    data = plain(path)
    seal_file(path)

    disk = RealDisk()

    assert disk.size(path) == len(data)
    assert disk.read(path, 0, len(data)) == data
    assert list(lines_of(disk, path)) == data.split(b"\n")[:-1]
    assert check_stream(disk, path, "a").records == 41
    assert recorded(disk, path).next_seq == 41


def test_any_part_of_it_is_read_without_the_others(tmp_path: Path) -> None:
    path = tmp_path / "a.asr.jsonl"
    data = plain(path, lines=60, width=100_000)
    seal_file(path)
    chance = random.Random(3)

    sealed = Sealed(sealed_name(path))

    assert sealed.frames() > 4
    for _ in range(40):
        start, length = chance.randrange(len(data)), chance.randrange(300_000)
        assert sealed.read(start, length) == data[start : start + length]
    offset, first = sealed.place_of(33)
    assert first <= 33
    assert seq(data[offset:].split(b"\n", 1)[0]) == first


def test_a_line_longer_than_a_frame_is_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "a.asr.jsonl"
    data = plain(path, lines=2, width=3 * FRAME)

    seal_file(path)

    assert RealDisk().read(path, 0, len(data)) == data


def test_any_zstandard_program_gives_the_stream_back(tmp_path: Path) -> None:
    path = tmp_path / "a.asr.jsonl"
    data = plain(path, lines=30, width=100_000)
    seal_file(path)

    with sealed_name(path).open("rb") as file:
        found = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()

    assert found == data


def test_a_session_that_goes_on_is_unsealed(tmp_path: Path) -> None:
    path = tmp_path / "a.asr.jsonl"
    data = plain(path)
    seal_file(path)
    stream = Stream(RealDisk(), path)
    more = Message(role="user", content=[Text(text="on it goes")])
    more.seq, more.id = stream.next_seq, f"r{stream.next_seq}"

    stream.append([more])
    stream.sync()

    assert path.read_bytes().startswith(data)
    assert path.read_bytes().count(b"\n") == 42
    assert not sealed_name(path).exists()


def test_where_both_are_there_the_plain_one_is_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "a.asr.jsonl"
    data = plain(path)
    seal_file(path)
    old = sealed_name(path).read_bytes()
    unseal(path)
    path.write_bytes(data + b"more\n")
    sealed_name(path).write_bytes(old)  # what a crash leaves between the two steps

    disk = RealDisk()

    assert disk.read(path, 0, 1 << 20) == data + b"more\n"
    assert disk.size(path) == len(data) + 5


@pytest.mark.parametrize("damage", ["frame", "tail", "empty"])
def test_damage_is_told_and_never_read_as_records(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.asr.jsonl"
    plain(path)
    seal_file(path)
    data = bytearray(sealed_name(path).read_bytes())
    data = {"frame": data[:200] + b"\xff" * 20 + data[220:], "tail": data[:-3], "empty": bytearray()}[damage]
    sealed_name(path).write_bytes(data)

    with pytest.raises((StoreUnusable, SealDamaged)):
        list(lines_of(RealDisk(), path))


def test_a_torn_stream_is_not_sealed() -> None:
    data = b'{"seq":0}\n{"seq":1'

    with pytest.raises(SealDamaged, match="torn"):
        list(seal(lambda s, n: data[s : s + n], len(data), lambda _: 0))


def test_a_stream_that_shrinks_meanwhile_is_not_sealed() -> None:
    with pytest.raises(SealDamaged, match="before its size"):
        list(seal(lambda s, n: b"", 10, lambda _: 0))


def test_a_store_with_something_sealed_is_refused_by_an_asrd_that_would_not_see_it(tmp_path: Path) -> None:
    where = where_of(tmp_path)
    store = opened(where)
    made = Made("a" * 8).prompt("x" * 9000)
    store.append(made.key, made.records)
    store.sync()
    path = store.path(made.key)
    before = (where.store / "version.json").read_bytes()
    data = path.read_bytes()

    new = draft(sealed_name(path), seal(lambda s, n: data[s : s + n], len(data), seq))
    store.swap(path, new, sealed=True, other=False)
    store.close()

    assert before == b'{"version":1}'
    assert (where.store / "version.json").read_bytes() == b'{"version":2}'


def test_a_store_from_the_future_is_refused_with_a_sentence(tmp_path: Path) -> None:
    where = where_of(tmp_path)
    opened(where).close()
    (where.store / "version.json").write_bytes(b'{"version":3}')

    with pytest.raises(StoreTooNew, match="version 3, which is newer than this one reads; upgrade asrd"):
        check_version(where.store)
    with pytest.raises(StoreTooNew):
        Store(where)
