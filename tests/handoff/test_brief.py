"""The estimate of tokens."""

from hypothesis import given
from hypothesis import strategies as st

from asrd.handoff import estimate


def test_the_estimate_counts_as_it_says() -> None:
    assert estimate("") == 0
    assert estimate("letter letters") == 1 + 2
    assert estimate("1234 56") == 2 + 1
    assert estimate("a();\n    b") == 1 + 2 + 1 + 1
    assert estimate("é€") == 3


@given(st.lists(st.text(max_size=60), max_size=6))
def test_pieces_are_never_counted_as_less_than_the_whole(pieces: list[str]) -> None:
    assert estimate("\n".join(pieces)) <= sum(estimate(p) + 1 for p in pieces)
