"""Ids that only number the calls and turns of a session are of that session; others are one anywhere."""

from pathlib import Path

from tests.counting.stores import answers, filled, streams_of

SESSIONS = ("kimi/S1", "kimi/S2", "kimi/S5", "kimi-py/S1", "kimi-py/S2", "hermes/S1", "hermes/S5")


def counts(told: dict[str, list[tuple[str, ...]]]) -> dict[str, int]:
    return {table: len(rows) for table, rows in told.items()}


def test_sessions_in_one_store_have_as_many_turns_and_calls_as_each_alone(tmp_path: Path) -> None:
    alone = [
        counts(answers(filled(tmp_path / str(n), list(streams_of(c).items())))["counted"])
        for n, c in enumerate(SESSIONS)
    ]

    together = counts(answers(filled(tmp_path / "all", list(streams_of(*SESSIONS).items())))["counted"])

    assert together == {table: sum(one[table] for one in alone) for table in together}
