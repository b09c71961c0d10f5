"""`asrd ship` brings streams and tables to a folder, and says what was new."""

import json
from pathlib import Path

import pytest

from asrd.cli import main
from tests.golden import CAPTURES
from tests.homes import environment


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    for name, value in environment(CAPTURES / "codex/S1" / "home", tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    main(["sync"])
    capsys.readouterr()
    return tmp_path


def test_a_folder_gets_streams_and_tables_and_the_second_time_no_stream(
    synced: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    words = ["ship", str(synced / "to"), "--host", "h", "--json"]

    codes = [main(words), main(words)]

    first, again = [json.loads(part) for part in capsys.readouterr().out.replace("}\n{", "}\0{").split("\0")]
    assert codes == [0, 0] and first["schema"] == "asrd.ship/1"
    assert (first["streams"]["parts"], again["streams"]["parts"]) == (1, 0)
    assert set(first["tables"]["rows"]) == {"sessions", "records", "requests", "calls", "edges"}
    assert list((synced / "to/tables/requests/host=h").glob("day=*/part.parquet"))


def test_with_a_key_no_tables_leave(synced: Path) -> None:
    (synced / "key").write_text("ab" * 32)

    code = main(["ship", str(synced / "to"), "--host", "h", "--key", str(synced / "key")])

    assert code == 0 and not (synced / "to/tables").exists()
    assert all(p.name.endswith(".enc") for p in (synced / "to/streams").rglob("*.jsonl*"))


@pytest.mark.parametrize("words", [["--host", "../up"], ["--key", "k", "--only", "tables"]])
def test_what_makes_no_sense_is_refused(synced: Path, words: list[str]) -> None:
    assert main(["ship", str(synced / "to"), *words]) == 2


def test_a_key_that_is_none_is_told(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (synced / "key").write_text("short")

    assert main(["ship", str(synced / "to"), "--key", str(synced / "key")]) == 63
    assert "64 hex digits" in capsys.readouterr().err
