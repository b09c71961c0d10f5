"""All captures in one store: the total is the sum of the rows, with the same work seen over ACP or not."""

from pathlib import Path
from typing import Any

import pytest

from asrd.convert import Streams, convert_home
from tests.counting.stores import answers, filled, streams_of
from tests.golden import CAPTURES
from tests.truth import CROSS, expected_usage, lay_out

ACP = sorted(p.name for p in (CAPTURES / "acp").iterdir() if (p / "home").is_dir())
NATIVE = {"claude-manual": "claude-code/S7-acp-manual", "claude": "claude-code/S7-acp", "codex-zed": "codex/S7-acp-zed"}


def native(case: str) -> str:
    """Where the capture of a row of `expected-usage.tsv` lies."""
    return case.replace("claude/", "claude-code/", 1)


def counts(told: dict[str, Any]) -> dict[str, int]:
    """Of a store: turns, calls and responses that count."""
    return {table: len(rows) for table, rows in told["counted"].items()}


def everything(tmp_path: Path) -> Streams:
    rows = [native(case) for case in expected_usage() if case != CROSS]
    return streams_of(*rows) | convert_home(lay_out(CROSS, tmp_path))


def test_the_total_over_all_captures_is_the_sum_of_the_rows(tmp_path: Path) -> None:
    streams = everything(tmp_path)
    seen = streams_of(*(f"acp/{name}" for name in ACP))

    total = answers(filled(tmp_path, list((streams | seen).items())))["usage"]["total"]

    rows = expected_usage().values()
    assert (total["inputTotal"], total["output"]) == (sum(r[1] for r in rows), sum(r[2] for r in rows))


@pytest.mark.parametrize("name", ACP)
def test_work_that_was_recorded_over_acp_too_counts_once(name: str, tmp_path: Path) -> None:
    case = NATIVE.get(name, f"{name}/S7-acp")
    both = streams_of(case, f"acp/{name}")

    told = answers(filled(tmp_path, sorted(both.items())))

    row = expected_usage()[case.replace("claude-code/", "claude/", 1)]
    total = told["usage"]["total"]
    assert (total["inputTotal"], total["output"]) == row[1:]
    assert [r for r in told["tree"]["roots"] if r["observed"]] == []
    alone = answers(filled(tmp_path / "native", list(streams_of(case).items())))
    assert counts(told) == counts(alone)
    assert len(told["tree"]["roots"]) == len(alone["tree"]["roots"])


def test_a_secondary_stream_counts_while_no_primary_is_recorded(tmp_path: Path) -> None:
    alone = answers(filled(tmp_path, list(streams_of("acp/opencode").items())))["usage"]["total"]

    assert alone["requests"] + alone["unmeasuredRequests"] > 0


UNITEMISED = {"claude-code/S4-manual": (2089, 46), "claude-code/S7-acp": (14, 6), "claude-code/S7-acp-manual": (7, 3)}
"""Of the captures, those whose harness declares more than its files itemise; the first is the compaction's own request."""


def test_what_is_declared_beyond_the_files_is_told_apart_and_never_added(tmp_path: Path) -> None:
    told = answers(filled(tmp_path, list(everything(tmp_path).items())))["usage"]

    beyond = {(u["inputTotal"], u["output"]) for u in told["unitemised"]}

    assert beyond == set(UNITEMISED.values())
    assert told["total"]["inputTotal"] == sum(r[1] for r in expected_usage().values())


def test_a_compaction_of_claude_code_is_a_request_whose_figures_stand_in_no_file(tmp_path: Path) -> None:
    told = answers(filled(tmp_path, list(streams_of("claude-code/S4-manual").items())))["usage"]

    assert (told["total"]["requests"], told["total"]["unmeasuredRequests"]) == (5, 1)
    assert told["total"]["lowerBound"]
