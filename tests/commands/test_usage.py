"""`asrd usage` with a word prints one table with money; without one it is as it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from asrd.cli import main
from asrd.report.spending import BY
from tests.report.build import session


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions, recorded."""
    session(tmp_path / "home", "a1111111", ["ls"] * 2, prompt="\x1b[31mred")
    session(tmp_path / "home", "b2222222", ["ls"], model="local-llama")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ASRD_HOME", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    assert main(["sync"]) == 0
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    capsys.readouterr()
    assert main([*args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("by", BY)
def test_each_word_prints_a_table_and_the_same_total(place: Path, capsys: pytest.CaptureFixture[str], by: str) -> None:
    capsys.readouterr()

    code = main(["usage", by])

    out = capsys.readouterr().out
    assert code == 0 and out.startswith(by.upper())
    assert "1 unpriced" in out and "$0.0010" in out and "local-llama" in out
    assert "\x1b" not in out


def test_a_session_behind_the_word_restricts_it(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "usage", "model", "a111")

    assert [r["model"] for r in found["rows"]] == ["claude-opus-4-5-20251101"]
    assert found["total"]["requests"] == 2


def test_a_session_without_a_word_is_as_it_was(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, one = said(capsys, "usage"), said(capsys, "usage", "b222")

    assert {"total", "bySession", "byModel", "byHarness", "byDay"} <= set(whole)
    assert (whole["schema"], whole["total"]["requests"], one["total"]["requests"]) == ("asrd.usage/1", 3, 1)


def test_without_cost_no_money_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "usage", "daily", "--no-cost")

    assert "cost" not in json.dumps(found)
    assert found["total"]["requests"] == 3


@pytest.mark.parametrize("words", [["daily", "a111", "b222"], ["a111", "b222"], ["a111", "daily"]])
def test_more_words_than_that_are_refused(place: Path, words: list[str]) -> None:
    code = main(["usage", *words])

    assert code == 2


def test_since_and_until_bound_a_table(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "usage", "daily", "--since", "2026-11-02T10:02:00Z", "--until", "2026-11-03")

    assert found["total"]["requests"] == 1
