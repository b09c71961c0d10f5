"""Makes the expected streams of a capture anew: `python -m tests.golden HARNESS/CASE…` (`make golden CASE=…`)."""

import shutil
import sys
from pathlib import Path

from asrd.convert import Streams, convert_home
from asrd.recorders.base import StreamKey
from asrd.records import encode_lines

CAPTURES = Path(__file__).parent / "captures"


def name_of(key: StreamKey) -> str:
    parts = [key.agent, key.namespace, key.session_id] if key.namespace else [key.agent, key.session_id]
    return "".join(c if c.isalnum() or c in "-." else "_" for c in ".".join(parts)) + ".asr.jsonl"


def write(case: str) -> None:
    """Writes `expected/` of one capture from what its home gives today."""
    folder = CAPTURES / case / "expected"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in expected(convert_home(CAPTURES / case / "home")).items():
        (folder / name).write_bytes(data)


def expected(streams: Streams) -> dict[str, bytes]:
    return {name_of(key): encode_lines(records) for key, records in streams.items()}


def cases() -> list[str]:
    return sorted(f"{p.parent.parent.name}/{p.parent.name}" for p in CAPTURES.glob("*/*/home"))


if __name__ == "__main__":
    for one in sys.argv[1:] or cases():
        write(one)
