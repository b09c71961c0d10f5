"""Numbers of things in words."""

from asrd.plural import many


def test_one_of_something_is_no_plural() -> None:
    assert [many(n, "source") for n in (0, 1, 2, 1234)] == ["0 sources", "1 source", "2 sources", "1,234 sources"]
    assert [many(n, "loss") for n in (1, 2)] == ["1 loss", "2 losses"]
