"""List prices of model responses, from the price package `genai-prices`: offline, with the prices of the day of each response.

A list price is an estimate of what the provider's price list says (tag: list estimate), never what was charged: no harness
records a charge. Amounts are exact decimals in US dollars. What cannot be priced says why, and is never 0.

The package is loaded when the first price is asked for, so that recording never carries it.
"""

from __future__ import annotations

from copy import copy
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

from msgspec import Struct

PACKAGE = "genai-prices"


class Tokens(Struct, frozen=True):
    """Tokens of responses of one model, one day, one tier. `tier`: the largest of `tiers()` that each one's input exceeds.

    `cache_write_1h` and `cache_write_5m` are parts of `cache_write`; what neither says is taken as kept for five minutes,
    which is the provider's default.
    """

    model: str | None
    provider: str | None
    at: str | None
    """The day (`YYYY-MM-DD`), or the hour (`YYYY-MM-DDTHH`) where the price depends on it; None = not recorded."""
    tier: int
    requests: int
    input: int
    cache_read: int
    cache_write: int
    cache_write_5m: int
    cache_write_1h: int
    output: int


class Unpriced(Exception):
    """Why there is no list price: a sentence."""


class List:
    """The price list of the installed package. Raises ImportError where there is none."""

    def __init__(self) -> None:
        from importlib.metadata import version

        import genai_prices.data_snapshot
        import genai_prices.types

        self._types: Any = genai_prices.types
        self._snapshot: Any = genai_prices.data_snapshot.get_snapshot()
        self.version = version(PACKAGE)
        self._known: dict[tuple[str | None, str], Any] = {}
        self._rates: dict[tuple[str | None, str, str | None, int], tuple[Decimal, ...]] = {}

    def tiers(self) -> list[int]:
        """Every number of input tokens above which some model has another price."""
        found: set[int] = set()
        for _, model in self._models():
            for price in _prices(model):
                for _, value in self._tiered(price):
                    found.update(t.start for t in value.tiers)
        return sorted(found)

    def hourly(self) -> list[str]:
        """Parts of the names of models whose price depends on the time of day."""
        limit = self._types.TimeOfDateConstraint
        return sorted({m.id.split("-")[0] for _, m in self._models() if any(isinstance(c, limit) for c in _limits(m))})

    def newest(self, today: date) -> str | None:
        """The last day, up to today, on which a price in the list starts: the list is at least as new."""
        starts = self._types.StartDateConstraint
        days = [c.start_date for _, m in self._models() for c in _limits(m) if isinstance(c, starts)]
        return max((d for d in days if d <= today), default=today).isoformat() if days else None

    def price(self, tokens: Tokens) -> Decimal:
        """What the list says for these responses, in US dollars. Raises Unpriced."""
        if not tokens.model:
            raise Unpriced("the model is not recorded")
        key = (tokens.provider, tokens.model, tokens.at, tokens.tier)
        rates = self._rates.get(key)
        if rates is None:
            rates = self._rates[key] = self._rates_of(tokens)
        hour = tokens.cache_write_1h
        amounts = (tokens.input, tokens.cache_read, max(0, tokens.cache_write - hour), hour, tokens.output)
        return sum((n * r for n, r in zip(amounts, rates, strict=False)), rates[5] * tokens.requests)

    def _rates_of(self, tokens: Tokens) -> tuple[Decimal, ...]:
        """Dollars for one token of input, cache read, five-minute and one-hour cache write, output; and for one request.

        The package says what a million of each costs; with the tier settled, a price is the sum of its parts.
        """
        model = self._find(tokens.provider, tokens.model or "")
        price = self._flat(model.get_prices(self._when(model, tokens.at)), tokens.tier)
        each = getattr(price, "requests_kcount", None)
        request = each / 1000 if isinstance(each, Decimal) else Decimal(0)
        million = {"input_tokens": 1_000_000}
        rates: list[Decimal] = []
        for part in (
            million,
            {**million, "cache_read_tokens": 1_000_000},
            {**million, "cache_write_tokens": 1_000_000},
            {**million, "cache_write_tokens": 1_000_000, "cache_write_1h_tokens": 1_000_000},
            {"output_tokens": 1_000_000},
        ):
            try:
                rates.append((price.calc_price(self._types.Usage(**part))["total_price"] - request) / 1_000_000)
            except ValueError as error:
                raise Unpriced(f"the price list cannot price it ({error})") from error
        return (*rates, request)

    def _models(self) -> list[tuple[Any, Any]]:
        return [(provider, model) for provider in self._snapshot.providers for model in provider.models]

    def _find(self, provider: str | None, model: str) -> Any:
        key = (provider, model)
        if key not in self._known:
            try:
                self._known[key] = self._snapshot.find_provider_model(model, None, provider or None, None)[1]
            except LookupError:
                self._known[key] = None
        if self._known[key] is None:
            raise Unpriced(f"the price list has no {model}" + (f" of {provider}" if provider else ""))
        return self._known[key]

    def _when(self, model: Any, at: str | None) -> datetime:
        if at:
            try:
                return datetime.fromisoformat(at if len(at) == 10 else f"{at}:30").replace(tzinfo=UTC)
            except ValueError:
                pass
        if isinstance(model.prices, self._types.ModelPrice):
            return datetime(2000, 1, 1, tzinfo=UTC)
        raise Unpriced("its price changed, and the time of the response is not recorded")

    def _flat(self, price: Any, tier: int) -> Any:
        """The price with each tiered rate as it is for that much input: what is left is linear, so that sums are exact."""
        flat = copy(price)
        for name, value in self._tiered(price):
            rate = value.base
            for step in value.tiers:
                rate = step.price if tier >= step.start else rate
            setattr(flat, name, rate)
        return flat

    def _tiered(self, price: Any) -> list[tuple[str, Any]]:
        rates = cast("dict[str, Any]", vars(price))
        return [(name, rate) for name, rate in rates.items() if isinstance(rate, self._types.TieredPrices)]


def _conditional(model: Any) -> list[Any]:
    """Prices that depend on something, each with `constraint` and `prices`; none where a model has one price."""
    found: Any = model.prices
    return cast("list[Any]", found) if isinstance(found, list) else []


def _prices(model: Any) -> list[Any]:
    """Every price of a model, whatever it depends on."""
    found: list[Any] = [c.prices for c in _conditional(model)] or [model.prices]
    variants: list[Any] = model.price_variants or []
    return found + [v.prices for v in variants]


def _limits(model: Any) -> list[Any]:
    """What the prices of a model depend on."""
    found: list[Any] = [c.constraint for c in _conditional(model)]
    variants: list[Any] = model.price_variants or []
    return found + [v.constraint for v in variants]
