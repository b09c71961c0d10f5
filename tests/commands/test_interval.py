"""`asrd interval`: a receipt, as JSON and for reading."""

from pathlib import Path

import pytest

from asrd.cli import main
from tests.commands.counting import over

ROOT = "59964eac-517f-42da-bfe8-951d7e00f813"


def test_a_receipt_is_printed_with_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asrd = over("claude-code/S2", tmp_path, monkeypatch, capsys)
    words = ("interval", ROOT, "--since", "2026-11-30T04:40:11", "--until", "2026-12-01")

    told, again = asrd.json(*words), asrd.json(*words)
    text = asrd.text(*words)

    assert told == again
    assert told["schema"] == "asrd.interval/1"
    assert told["after"]["requests"] == 10
    assert told["delta"]["requests"] == told["after"]["requests"] - told["before"]["requests"]
    assert told["digest"] in text
    assert len(told["sessions"]) == 4


def test_an_interval_that_ends_before_it_begins_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    over("claude-code/S2", tmp_path, monkeypatch, capsys)

    code = main(["interval", ROOT, "--since", "2026-12-02", "--until", "2026-12-01"])

    assert code == 2
    assert "ends at" in capsys.readouterr().err
