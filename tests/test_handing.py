"""What a handoff is given: the sessions named, their sub-agents, and the working tree as it is."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from asrd.answers import HandoffParams, params_of
from asrd.errors import NothingFound
from asrd.handing import answer, work_of
from asrd.query import records_of, resolve
from asrd.store.rows import IndexRows
from tests.golden import CAPTURES
from tests.homes import Recorded, recorded

TREE = "59964eac-517f-42da-bfe8-951d7e00f813"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Generator[Recorded]:
    with recorded(CAPTURES / "claude-code/S2/home", Path(tmp_path_factory.mktemp("store"))) as one:
        yield one


def names(rows: IndexRows, refs: list[str], **more: Any) -> list[str]:
    return [s.key.session_id for s in work_of(rows, refs, None, **more).sessions]


def test_sub_agents_come_with_their_session_unless_it_is_handed_on_alone(one: Recorded) -> None:
    assert names(one.rows, [TREE])[0] == TREE
    assert len(set(names(one.rows, [TREE]))) == 4
    assert names(one.rows, [TREE], alone=True) == [TREE]


def test_a_session_named_twice_comes_once_with_its_records(one: Recorded) -> None:
    child = next(n for n in names(one.rows, [TREE]) if n != TREE)

    assert sorted(set(names(one.rows, [TREE, child]))) == sorted(set(names(one.rows, [TREE])))
    stored = resolve(one.rows, TREE)
    assert len(records_of(one.rows, stored)) == stored.row.records


def test_a_session_that_is_not_there_is_said(one: Recorded) -> None:
    with pytest.raises(NothingFound):
        work_of(one.rows, [TREE, "none"], None)


def test_the_answer_is_the_brief_as_structure_and_text(one: Recorded) -> None:
    told = answer(one.rows, params_of(HandoffParams, {"session": TREE, "to": "codex"}))

    assert told["schema"] == "asrd.handoff/1"
    assert TREE in told["markdown"]
    assert told["brief"]["tokens"] <= told["brief"]["budget"]
