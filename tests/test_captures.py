"""Every capture gives its expected streams, whole and cut in any pieces."""

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
