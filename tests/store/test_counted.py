"""What counts is placed at its owner's own record, and its sum is that of `usage`, whatever sessions share responses."""

from pathlib import Path

import pytest

from asrd import query
from asrd.export.view import Figures
from asrd.store.counted import counted
from tests.golden import CAPTURES
from tests.homes import recorded


@pytest.mark.parametrize(
    "case", ["claude-code/S3", "codex/S3", "opencode/S3", "pi/S3", "claude-code/S2", "codex/S2-v2"]
)
def test_the_figures_of_each_session_are_those_of_usage(case: str, tmp_path: Path) -> None:
    with recorded(CAPTURES / case / "home", tmp_path) as one:
        numbers = [s.number for s in one.rows.sessions()]
        sums = dict(one.rows.usage(query.Selection(owners=numbers), "session"))

        found = counted(one.db, numbers)

        for number in numbers:
            mine = Figures.sum([*found[number].by_seq.values(), *found[number].elsewhere])
            theirs = sums.get(number, query.Sums())
            assert (mine.requests, mine.input, mine.output, mine.cache_read) == (
                theirs.requests, theirs.input, theirs.output, theirs.cache_read,
            )  # fmt: skip


def test_a_record_that_figures_stand_at_is_a_response_of_that_session(tmp_path: Path) -> None:
    with recorded(CAPTURES / "codex/S3" / "home", tmp_path) as one:
        stored = one.rows.sessions()

        found = counted(one.db, [s.number for s in stored])

        for session in stored:
            lines = list(one.rows.lines(session, 0))
            assert all(b'"type":"inference"' in lines[seq] for seq in found[session.number].by_seq)
