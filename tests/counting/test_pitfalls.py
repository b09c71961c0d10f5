"""What other tools count wrong is counted right: the table of `python -m tests.pitfalls`."""

from pathlib import Path

import pytest

from tests.pitfalls import CASES, outcome
from tests.pitfalls.elsewhere import ELSEWHERE, IDS, NOT_OURS, SAME

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("ident", CASES)
def test_a_home_with_a_known_pitfall_is_counted_right(ident: str, tmp_path: Path) -> None:
    one = CASES[ident]

    ours = outcome(one, tmp_path)

    assert ours == one.right, one.what


@pytest.mark.parametrize("ident", IDS)
def test_each_listed_miscount_and_rule_has_one_place(ident: str) -> None:
    places = [
        name
        for name, where in (("case", CASES), ("test", ELSEWHERE), ("same", SAME), ("not ours", NOT_OURS))
        if ident in where
    ]

    assert len(places) == 1, places
    if ident in ELSEWHERE:
        file, name = ELSEWHERE[ident]
        assert f"def {name}(" in (ROOT / file).read_text("utf-8")
    assert SAME.get(ident, next(iter(CASES))) in CASES


def test_no_place_is_of_an_id_that_is_not_listed() -> None:
    assert {*ELSEWHERE, *SAME, *NOT_OURS} - set(IDS) == set()
