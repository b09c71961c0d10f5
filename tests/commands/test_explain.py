"""`asrd usage --explain`: every figure can be opened, with the copies left out of it."""

from pathlib import Path

import pytest

from tests.commands.counting import over


def test_the_records_behind_a_total_add_up_and_the_copies_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asrd = over("claude-code/S3", tmp_path, monkeypatch, capsys)

    told = asrd.json("usage", "--explain")
    text = asrd.text("usage", "--explain")

    counted = [r["counted"] for r in told["responses"]]
    assert sum(c["output"] for c in counted) == told["total"]["output"] == 238
    assert (len(counted), told["more"]) == (7, 0)
    left_out = [o["why"] for r in told["responses"] for o in r["leftOut"]]
    assert left_out
    assert {why.split(" of ")[0] for why in left_out} == {"a copy"}
    assert "a copy of 11111111-2222" in text


def test_one_session_is_opened_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asrd = over("claude-code/S3", tmp_path, monkeypatch, capsys)

    told = asrd.json("usage", "11111111-2222", "--explain")

    assert {r["owner"]["sessionId"][:13] for r in told["responses"]} == {"11111111-2222"}


def test_what_the_harness_declares_beyond_its_files_is_said_and_not_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asrd = over("claude-code/S4-manual", tmp_path, monkeypatch, capsys)

    told = asrd.json("usage")

    assert told["total"]["inputTotal"] == 10220
    assert [(u["inputTotal"], u["output"], u["declared"]["inputTotal"]) for u in told["unitemised"]] == [
        (2089, 46, 12309)
    ]
    assert "Unitemised: at least 2,089 input and 46 output" in asrd.text("usage")
