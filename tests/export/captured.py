"""The captures as they are exported: each home recorded once, all of its sessions taken, what counts of them at hand."""

import tempfile
from functools import cache
from pathlib import Path

from asrd import exporting
from asrd.export import Given
from asrd.redact import Mode
from asrd.store.counted import counted
from tests.golden import CAPTURES
from tests.golden import cases as all_cases
from tests.homes import recorded
from tests.truth import expected_usage

EXPECTED = {name.replace("claude/", "claude-code/"): told for name, told in expected_usage().items()}


def cases() -> list[str]:
    """Every capture with a home."""
    return [c for c in all_cases() if not c.startswith("acp/")]


def with_figures() -> list[str]:
    """Those whose right figures are known."""
    return [c for c in cases() if c in EXPECTED]


def given(case: str, mode: Mode = "default") -> Given:
    """What a form is made from, of all sessions of a capture."""
    return whole_and_trees(case, mode)[0]


@cache
def whole_and_trees(case: str, mode: Mode = "default") -> tuple[Given, list[Given]]:
    """All sessions of a capture at once, and tree by tree as `asrd export` makes them."""
    with tempfile.TemporaryDirectory() as folder, recorded(CAPTURES / case / "home", Path(folder) / "store") as one:
        stored = exporting.chosen(one.rows, [], None, False)
        whole = exporting.given(one.rows, stored, counted(one.db, [s.number for s in stored]), mode)
        return whole, list(exporting.trees(one.rows, stored, lambda some: counted(one.db, some), mode))


def expected(case: str) -> tuple[int, int]:
    """Input total and output of a capture."""
    _, total, output = EXPECTED[case]
    return total, output
