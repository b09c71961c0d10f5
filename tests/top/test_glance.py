"""What runs now is told from what is recorded, at a given moment."""

from collections.abc import Generator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from asrd.client import open_reader
from asrd.records import Inference, Turn, Usage
from asrd.store.rows import IndexRows
from asrd.top.glance import glance
from tests.store.build import Made
from tests.ui.build import lay, where_of

NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)


def at(minutes: float) -> str:
    """So many minutes before now."""
    return (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def made(ident: str, ago: float, *, ended: bool, **used: Any) -> Made:
    """A session whose last response came so many minutes ago, in a turn that has ended or not."""
    one = Made(ident, started_at=at(ago + 1))
    one.add(Turn(turn_id="t", phase="start", trigger="prompt", at=at(ago + 1)))
    one.prompt(f"Do {ident}.", at=at(ago + 1))
    one.add(Inference(inference_id=f"{ident}-i", model="gpt-5", usage=Usage(**used) if used else None, at=at(ago)))
    if ended:
        one.add(Turn(turn_id="t", phase="end", status="completed", at=at(ago)))
    return one


@pytest.fixture
def rows(tmp_path: Path) -> Generator[IndexRows]:
    where = where_of(tmp_path)
    lay(
        where,
        made("works", 1, ended=False, input=1000, cache_read=500, output=50),
        made("waits", 90, ended=False, input=700, output=10),
        made("rests", 8, ended=True, input=300, output=3),
        made("done", 30, ended=True, input=4, output=4),
        made("killed", 60 * 30, ended=False, input=9, output=9),
        made("silent", 2, ended=False),
    )
    db = open_reader(where)
    yield IndexRows(db, where.streams)
    db.close()


def test_sessions_at_work_come_first_and_old_ones_not_at_all(rows: IndexRows) -> None:
    answer = glance(rows, NOW, None, True)

    told = [(s["sessionId"], s["working"], s["state"]) for s in answer["sessions"]]
    assert told == [
        ("works", True, "open"), ("silent", True, "open"), ("waits", False, "open"), ("rests", False, "idle"),
    ]  # fmt: skip
    assert (answer["schema"], answer["working"], answer["daemon"]) == ("asrd.top/1", 2, True)


def test_tokens_a_minute_are_those_of_the_last_five_minutes(rows: IndexRows) -> None:
    answer = glance(rows, NOW, None, False)

    rates = {s["sessionId"]: s["perMinute"] for s in answer["sessions"]}
    assert rates["works"] == {"input": 300, "output": 10, "requests": 1}
    assert rates["rests"] == {"input": 0, "output": 0, "requests": 0}
    assert rates["silent"]["input"] is None
    assert (answer["perMinute"]["input"], answer["perMinute"]["output"]) == (300, 10)


def test_today_begins_at_midnight_where_the_machine_is(rows: IndexRows) -> None:
    utc = glance(rows, NOW, None, False)["today"]
    east = glance(rows, NOW.astimezone(timezone(timedelta(hours=12))), None, False)["today"]

    assert (utc["requests"], utc["inputTotal"], utc["output"]) == (4, 1000 + 500 + 700 + 300 + 4, 67)
    assert east["requests"] == 0


def test_money_stays_unknown_without_prices(rows: IndexRows) -> None:
    answer = glance(rows, NOW, None, False)

    assert answer["today"]["cost"]["listEstimate"] is None
    assert answer["today"]["cost"]["unpricedRequests"] > 0
