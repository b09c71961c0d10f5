"""List prices: of the day, of the tier, each kind of token at its own rate, and never 0 for what has none."""

from datetime import date
from decimal import Decimal

import msgspec
import pytest

from asrd.prices import List, Tokens, Unpriced

OPUS = "claude-opus-4-5-20251101"
NOTHING = Tokens(OPUS, None, "2026-11-02", 0, 1, 0, 0, 0, 0, 0, 0)
MILLION = 1_000_000


@pytest.fixture(scope="module")
def prices() -> List:
    return List()


def tokens(**changed: object) -> Tokens:
    return msgspec.structs.replace(NOTHING, **changed)


@pytest.mark.parametrize(
    ("changed", "right"),
    [
        ({"input": MILLION}, "5"),
        ({"cache_read": MILLION}, "0.5"),
        ({"cache_write": MILLION, "cache_write_5m": MILLION}, "6.25"),
        ({"cache_write": MILLION, "cache_write_1h": MILLION}, "10"),
        ({"cache_write": MILLION}, "6.25"),
        ({"cache_write": 2 * MILLION, "cache_write_5m": MILLION, "cache_write_1h": MILLION}, "16.25"),
        ({"output": MILLION}, "25"),
        ({"output": 1}, "0.000025"),
    ],
)
def test_each_kind_of_token_has_its_own_rate(prices: List, changed: dict[str, int], right: str) -> None:
    found = prices.price(tokens(**changed))

    assert found == Decimal(right)


def test_many_responses_cost_what_each_costs_together(prices: List) -> None:
    one = prices.price(tokens(input=3, cache_read=100, cache_write=30, cache_write_5m=10, cache_write_1h=20, output=7))

    thousand = prices.price(
        tokens(requests=1000, input=3000, cache_read=100_000, cache_write=30_000, cache_write_5m=10_000,
               cache_write_1h=20_000, output=7000)
    )  # fmt: skip

    assert thousand == one * 1000 == Decimal("0.5025")


def test_a_long_request_is_priced_by_its_tier(prices: List) -> None:
    short, long = (
        prices.price(tokens(model="gemini-2.5-pro", tier=tier, input=MILLION, requests=5)) for tier in (0, 200_000)
    )

    assert (short, long) == (Decimal("1.25"), Decimal("2.5"))
    assert 200_000 in prices.tiers()


def test_a_price_is_that_of_the_day(prices: List) -> None:
    before, after = (
        prices.price(tokens(model="o3", provider="openai", at=day, input=MILLION))
        for day in ("2025-06-01", "2025-06-20")
    )

    assert before == Decimal(10) and after == Decimal(2)


@pytest.mark.parametrize(
    "changed",
    [
        {"model": None},
        {"model": "mock-1"},
        {"model": "<synthetic>"},
        {"provider": "a gateway nobody knows"},
        {"model": "o3", "provider": "openai", "at": None},
    ],
)
def test_what_the_list_does_not_say_is_unpriced_with_a_reason(prices: List, changed: dict[str, object]) -> None:
    with pytest.raises(Unpriced) as refused:
        prices.price(tokens(input=MILLION, **changed))

    assert str(refused.value)


def test_the_list_says_how_new_it_is(prices: List) -> None:
    found = prices.newest(date(2026, 11, 30))

    assert prices.version
    assert found is not None and "2026-01-01" < found <= "2026-11-30"
