"""Every capture gives its expected streams, whole and cut in any pieces."""

import json
import re

import pytest

from asrd.convert import convert_home
from tests.golden import CAPTURES, cases, expected


@pytest.mark.parametrize("case", cases())
def test_a_capture_gives_its_expected_streams(case: str) -> None:
    wanted = {p.name: p.read_bytes() for p in sorted((CAPTURES / case / "expected").glob("*.asr.jsonl"))}

    given = expected(convert_home(CAPTURES / case / "home"))

    assert sorted(given) == sorted(wanted)
    for name, data in given.items():
        for ours, theirs in zip(data.splitlines(), wanted[name].splitlines(), strict=False):
            assert ours == theirs, f"{case} {name}"
        assert data == wanted[name], f"{case} {name}: another number of records"


def test_a_history_that_a_truth_tells_is_one_that_git_printed() -> None:
    told: dict[str, list[str]] = {}
    for path in sorted(CAPTURES.glob("*/*/truth.json")):
        truth = json.loads(path.read_text("utf-8"))
        told[f"{path.parent.parent.name}/{path.parent.name}"] = truth.get("git_log") or []

    invented = {
        c: line for c, lines in told.items() for line in lines if not re.fullmatch(r"[0-9a-f]{40} \S+ .+", line)
    }

    assert sum(map(len, told.values())) > 50
    assert invented == {}
