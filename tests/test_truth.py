"""Of every capture, what was recorded is what really happened: the table that `make truth` prints."""

from pathlib import Path

import pytest

from asrd.store.index import stream_files
from asrd.validate import bounded, check, report
from tests.truth import Comparison, cases, compare, expected_usage, line_of


@pytest.mark.parametrize("case", cases())
def test_what_was_recorded_of_a_capture_is_what_happened(case: str, tmp_path: Path) -> None:
    comparison = compare(case, tmp_path)

    assert comparison.differences() == {}, line_of(comparison)
    assert invalid(tmp_path / "store" / "streams") == []


def invalid(streams: Path) -> list[str]:
    """Findings of `asrd validate` that make a stream of the store invalid."""
    found: list[str] = []
    for path in stream_files(streams):
        with path.open("rb") as file:
            errors = [f for f in check(bounded(file)) if f.severity == "error"]
        found += list(report(errors, path.name))
    return found


def test_every_home_whose_figures_are_known_is_in_the_table() -> None:
    known = {name.replace("claude/", "claude-code/") for name in expected_usage()}

    assert known - set(cases()) == set()


def test_a_table_says_where_it_differs() -> None:
    wrong = Comparison("codex/S1", {"calls": (6, 7), "turns": (2, 2)})

    assert wrong.differences() == {"calls": (6, 7)}
    assert "6≠7" in line_of(wrong)
    assert line_of(wrong).endswith("DIFFERENT: calls")
