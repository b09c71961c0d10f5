"""The captures as they are exported: each home recorded once, all of its sessions taken, what counts of them at hand."""

import shutil
import tempfile
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from asrd import exporting
from asrd.export import Given
from asrd.redact import Mode
from asrd.store.counted import counted
from tests.golden import CAPTURES
from tests.golden import cases as all_cases
from tests.homes import Recorded, recorded
from tests.truth import CROSS, expected_usage, lay_out

EXPECTED = {name.replace("claude/", "claude-code/"): told for name, told in expected_usage().items()}


class Taken(Struct):
    """A capture: its sessions at once and tree by tree, as `asrd export` makes them, and what `asrd usage` says of them."""

    whole: Given
    trees: list[Given]
    usage: dict[str, Any]


def cases() -> list[str]:
    """Every capture, and the home that two of them are parts of."""
    return [*all_cases(), CROSS]


def record(case: str, work: Path) -> AbstractContextManager[Recorded]:
    """A capture, recorded into a store below `work`. Spools of `asrd acp` lie in the home, where its own folders are."""
    if not case.startswith("acp/"):
        return recorded(lay_out(case, work), work / "store")
    home = shutil.copytree(CAPTURES / case / "home", work / "home")
    return recorded(home, home, {"HOME": str(home)})


def given(case: str, mode: Mode = "default") -> Given:
    """What a form is made from, of all sessions of a capture."""
    return taken(case, mode).whole


@cache
def taken(case: str, mode: Mode = "default") -> Taken:
    """A capture with all that forms are made from."""
    with tempfile.TemporaryDirectory() as folder, record(case, Path(folder)) as one:
        stored = exporting.chosen(one.rows, [], None, False)
        whole = exporting.given(one.rows, stored, counted(one.db, [s.number for s in stored]), mode)
        trees = list(exporting.trees(one.rows, stored, lambda some: counted(one.db, some), mode))
        return Taken(whole, trees, one.usage())


def expected(case: str) -> tuple[int, int]:
    """Input total and output of a capture: those of a correct reader where they are known, else those of `asrd usage`."""
    if case in EXPECTED:
        return EXPECTED[case][1:]
    usage = taken(case).usage
    return usage["inputTotal"] or 0, usage["output"] or 0
