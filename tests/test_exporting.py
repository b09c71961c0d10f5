"""Sessions are exported with those they started, placed by the edges of the tree, and what counts of them once."""

from pathlib import Path

import pytest

from asrd import exporting
from asrd.errors import NothingFound
from asrd.store.counted import counted
from tests.golden import CAPTURES
from tests.homes import recorded


def test_sub_agents_stand_below_the_call_that_started_them(tmp_path: Path) -> None:
    with recorded(CAPTURES / "claude-code/S2" / "home", tmp_path) as one:
        root = next(s for s in one.rows.sessions() if s.row.parent_session is None)

        stored = exporting.chosen(one.rows, [root.row.session_id], None, False)
        given = exporting.given(one.rows, stored, counted(one.db, [s.number for s in stored]), "default")

    assert len(given.sessions) == len(given.tree(0)) > 2
    assert given.roots() == [0] and all(s.parent_call for s in given.sessions[1:])


def test_alone_is_without_them(tmp_path: Path) -> None:
    with recorded(CAPTURES / "claude-code/S2" / "home", tmp_path) as one:
        root = next(s for s in one.rows.sessions() if s.row.parent_session is None)

        assert [s.number for s in exporting.chosen(one.rows, [root.row.session_id], None, True)] == [root.number]


def test_an_empty_store_has_nothing_to_export(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with recorded(tmp_path / "home", tmp_path / "store") as one, pytest.raises(NothingFound):
        exporting.chosen(one.rows, [], None, False)
