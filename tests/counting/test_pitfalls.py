"""What other tools count wrong is counted right: the table of `python -m tests.pitfalls`."""

from pathlib import Path

import pytest

from tests.pitfalls import CASES, outcome


@pytest.mark.parametrize("ident", CASES)
def test_a_home_with_a_known_pitfall_is_counted_right(ident: str, tmp_path: Path) -> None:
    one = CASES[ident]

    ours = outcome(one, tmp_path)

    assert ours == one.right, one.what
