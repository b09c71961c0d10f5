"""`asrd lineage` as a person reads it: which session comes from which, whoever stated it."""

from __future__ import annotations

from typing import Any

from asrd.commands.lineage import side

HERE = {"agent": "cursor-desktop", "sessionId": "a", "namespace": None}


def link(**more: Any) -> dict[str, Any]:
    """A link of the answer `asrd.lineage/1` whose target is the session that is asked for."""
    return {"from": None, "to": None, "target": HERE, **more}


def test_a_side_is_named_as_it_can_be_asked_for() -> None:
    assert side(link(to=HERE), "to") == "cursor-desktop:a"


def test_the_target_of_a_statement_is_the_side_that_is_not_recorded() -> None:
    other = {"agent": "codex", "sessionId": "b", "namespace": None}

    assert side(link(to=other), "from") == "cursor-desktop:a (not recorded)"


def test_a_side_that_nothing_names_is_not_said_to_be_the_other() -> None:
    assert side(link(to=HERE), "from") == "not recorded"
    assert side(link(target={"agent": None, "sessionId": None, "namespace": None}), "from") == "not recorded"
