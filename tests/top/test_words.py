"""What runs now, in words."""

from typing import Any

import pytest

from asrd.top.words import amount, ordered, price, short_number


def today(listed: str | None, *sources: tuple[str, str]) -> dict[str, Any]:
    cost = {
        "listEstimate": listed and {"amount": listed, "currency": "USD"},
        "sourceEstimate": [{"amount": a, "currency": c} for a, c in sources],
    }
    return {"cost": cost}


@pytest.mark.parametrize(
    ("number", "words"),
    [(None, "–"), (0, "0"), (999, "999"), (1000, "1.0k"), (120_200, "120k"), (9_960_000, "10.0M"), (2 * 10**9, "2.0G")],
)
def test_a_number_is_short_and_unknown_is_no_zero(number: int | None, words: str) -> None:
    assert short_number(number) == words


def test_money_names_its_kind() -> None:
    assert price(None) == "–"
    assert price(today(None)) == "–"
    assert price(today("1.234", ("0.5", "USD"), ("2", "EUR"))) == "$1.23 + $0.50 src + EUR 2.00 src"
    assert "\x1b" not in price(today(None, ("1", "\x1b[2J")))


def test_sessions_are_ordered_by_what_is_asked() -> None:
    slow = {"id": 1, "perMinute": {"input": 1, "output": None}, "today": today("5")}
    fast = {"id": 2, "perMinute": {"input": 9, "output": 1}, "today": None}

    assert [s["id"] for s in ordered([slow, fast], "tokens")] == [2, 1]
    assert [s["id"] for s in ordered([fast, slow], "cost")] == [1, 2]
    assert [s["id"] for s in ordered([fast, slow], "changed")] == [2, 1]
    assert (amount(None), amount(today(None)), amount(today("1", ("2", "USD")))) == (None, None, 3.0)
