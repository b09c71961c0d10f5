"""Of every capture, what was recorded is what really happened: the table that `make truth` prints."""

from pathlib import Path

import pytest

from tests.truth import Comparison, cases, compare, expected_usage, line_of


@pytest.mark.parametrize("case", cases())
def test_what_was_recorded_of_a_capture_is_what_happened(case: str, tmp_path: Path) -> None:
    comparison = compare(case, tmp_path)

    assert comparison.differences() == {}, line_of(comparison)


def test_every_home_whose_figures_are_known_is_in_the_table() -> None:
    known = {name.replace("claude/", "claude-code/") for name in expected_usage()}

    assert known - set(cases()) == set()


def test_a_table_says_where_it_differs() -> None:
    wrong = Comparison("codex/S1", {"calls": (6, 7), "turns": (2, 2)})

    assert wrong.differences() == {"calls": (6, 7)}
    assert "6≠7" in line_of(wrong)
    assert line_of(wrong).endswith("DIFFERENT: calls")
