"""Files are converted in memory, wherever they lie, to what the store would hold."""

import shutil
from pathlib import Path

import pytest
import zstandard

from asrd.convert import convert_home, convert_path
from asrd.errors import UnknownHarness
from asrd.records import encode_lines
from tests.golden import CAPTURES
from tests.homes import recorded

ONE_FILE = {
    "claude-code": ("claude-code/S1", "*.jsonl"),
    "codex": ("codex/S1", "rollout-*.jsonl"),
    "pi": ("pi/S1", "*.jsonl"),
}


@pytest.mark.parametrize("case", ["claude-code/S2", "codex/S3", "opencode/S2", "pi/S3", "vibe/S1", "hermes/S1"])
def test_a_home_in_memory_is_what_the_store_holds(case: str, tmp_path: Path) -> None:
    streams = convert_home(CAPTURES / case / "home")

    with recorded(CAPTURES / case / "home", tmp_path) as one:
        held = one.sessions()
    assert {key: encode_lines(records) for key, records in streams.items()} == {
        key: encode_lines(list(records)) for key, records in held.items()
    }


def test_only_one_harness_is_converted_when_asked() -> None:
    assert convert_home(CAPTURES / "codex/S1/home", only="claude-code") == {}


@pytest.mark.parametrize("harness", ONE_FILE)
def test_a_file_anywhere_is_known_by_what_it_says(harness: str, tmp_path: Path) -> None:
    case, pattern = ONE_FILE[harness]
    source = next((CAPTURES / case / "home").rglob(pattern))
    elsewhere = Path(shutil.copy(source, tmp_path / "file"))

    (key, records), *_ = convert_path(elsewhere).items()

    assert key.agent == harness
    assert len(records) > 10


def test_a_file_in_its_place_gives_the_stream_of_its_home() -> None:
    source = next((CAPTURES / "codex/S1/home").rglob("rollout-*.jsonl"))

    assert list(convert_path(source)) == list(convert_home(CAPTURES / "codex/S1/home"))


def test_a_packed_file_is_unpacked(tmp_path: Path) -> None:
    source = next((CAPTURES / "codex/S1/home").rglob("rollout-*.jsonl"))
    packed = tmp_path / f"{source.name}.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress(source.read_bytes()))

    (records,) = convert_path(packed).values()
    (plain,) = convert_path(source).values()

    assert len(records) == len(plain)


@pytest.mark.parametrize("content", [b"", b"nothing known\n", b'{"hello": 1}\n', b"\xff\x00\x01"])
def test_a_file_of_nobody_is_said_to_be_so(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)

    with pytest.raises(UnknownHarness, match="codex"):
        convert_path(tmp_path / "x")


def test_a_named_harness_is_believed(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b'{"hello": 1}\n')

    streams = convert_path(tmp_path / "x.jsonl", "codex")

    assert [key.agent for key in streams] == ["codex"]
    with pytest.raises(UnknownHarness, match="nobody"):
        convert_path(tmp_path / "x.jsonl", "nobody")
