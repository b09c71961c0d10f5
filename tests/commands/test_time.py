"""`asrd time`: what it tells, as JSON and for reading."""

from pathlib import Path

import pytest

from asrd.commands.time import length
from tests.commands.counting import over


def test_time_of_a_tree_of_sub_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asrd = over("claude-code/S2", tmp_path, monkeypatch, capsys)

    told = asrd.json("time")
    words = asrd.text("time")

    total = told["total"]
    assert told["schema"] == "asrd.time/1"
    assert total["sessions"] == 4
    assert total["agentSeconds"] == pytest.approx(sum(s["agentSeconds"] for s in told["bySession"]))
    assert total["agentSeconds"] - total["unionSeconds"] == pytest.approx(total["overlapSeconds"])
    assert total["wallSeconds"] is None
    assert "Side by side" in words
    assert "59964eac-517f" in words


def test_an_interval_has_a_wall_and_clips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asrd = over("claude-code/S2", tmp_path, monkeypatch, capsys)

    part = asrd.json("time", "--since", "2026-11-30T04:40:12", "--until", "2026-11-30T04:40:13")["total"]

    assert part["wallSeconds"] == 1.0
    assert 0 < part["unionSeconds"] <= 1.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "unknown"), (0.0, "0.00 s"), (59.994, "59.99 s"), (245.0, "4 min 05 s"), (7380.0, "2 h 03 min")],
)
def test_a_length_is_said_in_words(seconds: float | None, words: str) -> None:
    assert length(seconds) == words
