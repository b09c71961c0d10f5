"""`check` says of each stream what is whole, and changes nothing."""

from pathlib import Path

import pytest

from asrd.records import encode_lines
from asrd.store.check import Checked, check
from asrd.store.disk import RealDisk
from tests.store.build import Made

WHOLE = encode_lines(Made("a").prompt("hi").prompt("there").records)
LINES = WHOLE.splitlines(keepends=True)


def checked(folder: Path, data: bytes) -> Checked:
    path = folder / "codex" / "a.asr.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    disk = RealDisk()
    (found,) = check(disk, folder)
    disk.close()
    assert path.read_bytes() == data
    return found


def test_a_whole_stream_is_whole(tmp_path: Path) -> None:
    assert checked(tmp_path, WHOLE) == Checked("codex/a.asr.jsonl", 3, len(WHOLE), 0)


def test_a_torn_tail_is_said_and_is_no_damage(tmp_path: Path) -> None:
    found = checked(tmp_path, WHOLE[:-5])

    assert (found.records, found.torn, found.trouble) == (2, len(LINES[2]) - 5, None)


@pytest.mark.parametrize(
    ("data", "trouble", "records"),
    [
        (b"", "no header", 0),
        (b"\0" * 4096, "no header", 0),
        (LINES[0] + b"\0" * 40 + b"\n" + LINES[1], "byte", 1),
        (LINES[0] + LINES[2], "seq 2 where 1", 1),
        (LINES[0] + LINES[1] + LINES[1], "seq 1 where 2", 2),
        (LINES[1], "seq 1 where 0", 0),
        (LINES[0] + LINES[1].replace(b'"id":"r1"', b'"id":"r7"'), "with id r7", 1),
        (LINES[0].replace(b'"type":"session"', b'"type":"native"'), "native with id h", 0),
        (LINES[0] + b"{}\n", "byte", 1),
    ],
)
def test_damage_is_placed(data: bytes, trouble: str, records: int, tmp_path: Path) -> None:
    found = checked(tmp_path, data)

    assert trouble in (found.trouble or "")
    assert found.records == records
