"""A receipt of a session's whole life says what `asrd usage` and `asrd time` say of it and of all that it started."""

from pathlib import Path
from typing import Any

import pytest

from asrd import query
from asrd.spanning import receipt
from asrd.store.rows import IndexRows
from tests.counting.stores import filled, streams_of
from tests.counting.test_orders import GROUPS
from tests.counting.test_windows import rows_of
from tests.homes import recorded
from tests.pitfalls import CASES

FIGURES = ("requests", "input", "cacheRead", "cacheWrite", "output", "reasoning", "unmeasuredRequests")


def told(rows: IndexRows, ref: str) -> dict[str, Any]:
    """Of a tree's whole life: the figures of its receipt, and those of the other commands."""
    delta = receipt(rows, ref, None, "2100-01-01", None, None)["delta"]
    usage = query.usage(rows, ref=ref, tree_of=True)["total"]
    time = query.time(rows, ref=ref, tree_of=True)["total"]
    same = {name: (delta[name], usage[name]) for name in FIGURES}
    same |= {name: (delta[name], time[name]) for name in ("agentSeconds", "unionSeconds", "openTurns")}
    return {name: pair for name, pair in same.items() if (pair[0] or 0) != (pair[1] or 0)}


def refs(rows: IndexRows) -> list[str]:
    found = [s.row for s in rows.sessions() if s.row.scope == "primary"]
    return sorted({r.session_id for r in found if sum(o.session_id == r.session_id for o in found) == 1})


@pytest.mark.parametrize("ident", [i for i, c in CASES.items() if c.write is not None])
def test_of_a_home_with_a_pitfall(ident: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    write = CASES[ident].write
    assert write is not None
    write(tmp_path / "home")

    with recorded(tmp_path / "home", tmp_path / "store") as one:
        assert {ref: other for ref in refs(one.rows) if (other := told(one.rows, ref))} == {}


@pytest.mark.parametrize("group", GROUPS)
def test_of_captures_that_are_related(group: str, tmp_path: Path) -> None:
    rows = rows_of(filled(tmp_path, list(streams_of(*GROUPS[group]).items())))

    names = refs(rows)
    assert len(rows.sessions()) > 1
    assert {ref: other for ref in names if (other := told(rows, ref))} == {}
