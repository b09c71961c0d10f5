"""The receipt of a recorded tree: what `interval` answers from a store, in any order its streams came."""

import random
from pathlib import Path

import pytest

from asrd import spanning
from asrd.client import open_reader
from asrd.errors import NothingFound, UsageError
from asrd.store.rows import IndexRows
from tests.counting.stores import filled, parts, streams_of

ROOT = "59964eac-517f-42da-bfe8-951d7e00f813"
SINCE, UNTIL = "2026-11-30T04:40:11", "2026-11-30T04:40:14"


def rows_of(where: Path, seed: int | None = None) -> IndexRows:
    streams = streams_of("claude-code/S2")
    given = list(streams.items()) if seed is None else parts(streams, random.Random(seed))
    found = filled(where, given)
    return IndexRows(open_reader(found), found.streams)


def test_a_receipt_does_not_depend_on_the_order_in_which_streams_came(tmp_path: Path) -> None:
    one = spanning.receipt(rows_of(tmp_path / "a"), ROOT, SINCE, UNTIL, None, None)
    other = spanning.receipt(rows_of(tmp_path / "b", 7), ROOT, SINCE, UNTIL, None, None)

    assert one == other
    assert (one["since"], one["until"]) == (SINCE + "Z", UNTIL + "Z")
    assert one["after"]["sessions"] == 4


def test_cutoffs_are_days_of_a_timezone(tmp_path: Path) -> None:
    told = spanning.receipt(rows_of(tmp_path), ROOT, "2026-11-30", "2026-12-01", "Europe/Berlin", None)

    assert (told["since"], told["wallSeconds"]) == ("2026-11-29T23:00:00Z", 86400.0)


def test_an_interval_without_a_length_and_a_session_that_is_not_there_are_refused(tmp_path: Path) -> None:
    rows = rows_of(tmp_path)

    with pytest.raises(UsageError):
        spanning.receipt(rows, ROOT, UNTIL, SINCE, None, None)
    with pytest.raises(NothingFound):
        spanning.receipt(rows, "no such session", None, UNTIL, None, None)
