"""Where a session's records come from, at any remove."""

from asrd.lineage import derives

SAID = {3: [2], 2: [1], 4: [5], 5: [4]}


def stated(number: int) -> list[int]:
    return SAID.get(number, [])


def test_a_fork_of_a_fork_comes_from_the_first() -> None:
    assert derives(3, 1, stated)
    assert not derives(1, 3, stated)


def test_a_cycle_of_statements_ends() -> None:
    assert derives(4, 5, stated)
    assert not derives(4, 1, stated)
