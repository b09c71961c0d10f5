"""`asrd check --repair`: says what it did, where what it put aside lies, and is done after once."""

from pathlib import Path

import msgspec
import pytest

from asrd.cli import main
from tests.homes import environment
from tests.upkeep_of import CODEX, paths, store_of

Capsys = pytest.CaptureFixture[str]


def test_a_damaged_stream_is_repaired_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    where = store_of(CODEX, tmp_path / "store")
    for name, value in environment(CODEX, tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    path = where.streams / paths(where)[0]
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:9], b"damaged", *lines[10:]]))

    assert main(["check"]) == 1
    assert main(["check", "--repair"]) == 0
    said = capsys.readouterr().out
    assert main(["check"]) == 0
    assert main(["check", "--repair", "--json"]) == 0

    assert "damaged lines became gaps; 70 records kept, 1 gap" in said
    aside = next(line.split(": ", 1)[1] for line in said.splitlines() if "put aside" in line)
    assert Path(aside).read_bytes() == b"damaged\n"
    out = capsys.readouterr().out
    assert msgspec.json.decode(out[out.index("{") :]) == {"schema": "asrd.repair/1", "streams": []}
