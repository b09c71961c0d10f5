"""Tokens and money by day, week, month and the rest: every response once, kinds of money apart."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from asrd.errors import UsageError
from asrd.prices import List
from asrd.records import Cost
from asrd.report.spending import BY, day_of, priced, spending
from asrd.store import Store
from asrd.store.rows import IndexRows
from tests.homes import Recorded, recorded
from tests.report.build import session
from tests.store.build import Made, where_of

CAPTURES = Path(__file__).parents[1] / "captures"
TODAY = date(2026, 11, 30)
MILLION = 1_000_000
ONE = Decimal("0.0005025")
"""What one response of `tests.report.build` costs by the list."""


@pytest.fixture(scope="module")
def prices() -> List:
    return List()


def told(store: Recorded, by: str, prices: List | None, **more: Any) -> dict[str, Any]:
    hints: dict[str, Any] = {"tiers": prices.tiers(), "hourly": prices.hourly()} if prices else {}
    return priced(spending(store.rows, by=by, **hints, **more), prices, TODAY)


def amount(value: dict[str, Any]) -> Decimal | None:
    return None if value["cost"]["listEstimate"] is None else Decimal(value["cost"]["listEstimate"]["amount"])


def home_of(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    session(home, "a", ["ls"] * 2, day="2026-10-31", hour=23)
    session(home, "b", ["ls"] * 3, day="2026-11-01", hour=10, branch="topic")
    session(home, "c", ["ls"], day="2026-11-02", cwd="/home/dev/other", model="claude-haiku-4-5-20251001")
    return home


RIGHT: dict[str, list[tuple[Any, int]]] = {
    "daily": [("2026-10-31", 2), ("2026-11-01", 3), ("2026-11-02", 1)],
    "weekly": [("2026-10-26", 5), ("2026-11-02", 1)],
    "monthly": [("2026-10", 2), ("2026-11", 4)],
    "session": [("b", 3), ("a", 2), ("c", 1)],
    "tree": [("b", 3), ("a", 2), ("c", 1)],
    "model": [("claude-opus-4-5-20251101", 5), ("claude-haiku-4-5-20251001", 1)],
    "harness": [("claude-code", 6)],
    "project": [("/home/dev/app", 5), ("/home/dev/other", 1)],
    "branch": [("topic", 3), ("main", 2), ("main", 1)],
}
FIELD = {"daily": "day", "weekly": "week", "monthly": "month", "session": "sessionId", "tree": "sessionId"}


@pytest.mark.parametrize("by", BY)
def test_rows_are_as_they_are_asked_for_and_add_up(tmp_path: Path, prices: List, by: str) -> None:
    home = home_of(tmp_path)

    with recorded(home, tmp_path / "store") as store:
        found, usage = told(store, by, prices), store.usage()

    assert [(r[FIELD.get(by, by)], r["requests"]) for r in found["rows"]] == RIGHT[by]
    for figure in ("requests", "input", "cacheRead", "cacheWrite", "output", "inputTotal"):
        assert sum(r[figure] for r in found["rows"]) == found["total"][figure] == usage[figure]
    assert sum(a for r in found["rows"] if (a := amount(r)) is not None) == amount(found["total"])


def test_the_list_estimate_is_exact_to_the_last_digit(tmp_path: Path, prices: List) -> None:
    session(tmp_path / "home", "a", ["ls"] * 7)

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = told(store, "daily", prices)

    assert found["total"]["cost"]["listEstimate"] == {"amount": "0.0035175", "currency": "USD", "requests": 7}
    assert amount(found["total"]) == ONE * 7


def test_a_day_begins_where_the_timezone_says(tmp_path: Path) -> None:
    home = home_of(tmp_path)

    with recorded(home, tmp_path / "store") as store:
        berlin = told(store, "monthly", None, timezone="Europe/Berlin")
        kolkata = told(store, "daily", None, timezone="Asia/Kolkata")

    assert [(r["month"], r["requests"]) for r in berlin["rows"]] == [("2026-11", 6)]
    assert [r["day"] for r in kolkata["rows"]] == ["2026-11-01", "2026-11-02"]


def test_an_interval_is_half_open(tmp_path: Path) -> None:
    session(tmp_path / "home", "a", ["ls"] * 3)

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = told(store, "daily", None, since="2026-11-02T10:01:00Z", until="2026-11-02T10:03:00Z")

    assert found["total"]["requests"] == 2


def test_without_a_price_list_everything_is_unpriced_and_nothing_is_0(tmp_path: Path) -> None:
    session(tmp_path / "home", "a", ["ls"] * 3)

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        cost = told(store, "daily", None)["total"]["cost"]

    assert cost["listEstimate"] is None
    assert cost["unpricedRequests"] == 3
    assert "genai-prices" in cost["unpriced"][0]["why"]


def test_a_model_without_a_price_stands_beside_those_that_have_one(tmp_path: Path, prices: List) -> None:
    session(tmp_path / "home", "a", ["ls"] * 3)
    session(tmp_path / "home", "b", ["ls"] * 2, model="local-llama")

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        cost = told(store, "harness", prices)["rows"][0]["cost"]

    assert (cost["listEstimate"]["requests"], cost["unpricedRequests"]) == (3, 2)
    assert cost["unpriced"] == [{"why": "the price list has no local-llama", "requests": 2}]


def test_what_a_harness_wrote_down_is_kept_apart_and_not_estimated_again(tmp_path: Path, prices: List) -> None:
    home = CAPTURES / "opencode" / "S1" / "home"

    with recorded(home, tmp_path / "store") as store:
        found, usage = told(store, "model", prices), store.usage()

    cost = found["total"]["cost"]
    assert cost["listEstimate"] is None and cost["unpricedRequests"] == 0
    (source,) = cost["sourceEstimate"]
    assert (source["currency"], source["requests"]) == ("USD", usage["requests"])
    assert Decimal(source["amount"]) > 0


def test_a_cost_of_nothing_for_tokens_says_nothing(tmp_path: Path, prices: List) -> None:
    store = Store(where_of(tmp_path))
    made = Made("a", agent="pi")
    for n, cost in enumerate(("0", "0.0", "0.1", "0.2", None)):
        told = Cost(amount=cost, currency="USD") if cost is not None else None
        made.response(f"r{n}", MILLION, 0, model="claude-opus-4-5", at="2026-11-02T10:00:00Z", cost=told)
    store.append(made.key, made.records)
    store.sync()
    db = store.index.reader()

    rows = IndexRows(db, store.folders.streams, store.disk)
    cost = priced(spending(rows, by="daily", tiers=[], hourly=[]), prices, TODAY)["total"]["cost"]
    db.close()
    store.close()

    assert cost["listEstimate"] == {"amount": "15", "currency": "USD", "requests": 3}
    assert cost["sourceEstimate"] == [{"amount": "0.3", "currency": "USD", "requests": 2}]


def test_a_long_request_is_priced_apart_from_short_ones(tmp_path: Path, prices: List) -> None:
    short = {"input_tokens": 1000, "output_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    long = {**short, "input_tokens": 250_000}
    session(tmp_path / "home", "a", ["ls"] * 250, model="claude-sonnet-4-5-20250929", usage=short)
    session(tmp_path / "home", "b", ["ls"], model="claude-sonnet-4-5-20250929", usage=long)

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = {r["sessionId"]: amount(r) for r in told(store, "session", prices)["rows"]}

    assert found["a"] == Decimal("0.75")
    assert found["b"] == Decimal("1.5")


def test_a_tree_has_what_its_root_spawned(tmp_path: Path, prices: List) -> None:
    home = CAPTURES / "claude-code" / "S2" / "home"

    with recorded(home, tmp_path / "store") as store:
        tree, sessions = told(store, "tree", prices), told(store, "session", prices)

    assert (len(tree["rows"]), len(sessions["rows"])) == (1, 4)
    assert tree["rows"][0]["requests"] == 10
    assert amount(tree["total"]) == amount(sessions["total"])


def test_copies_cost_nothing(tmp_path: Path, prices: List) -> None:
    home = CAPTURES / "claude-code" / "S3" / "home"

    with recorded(home, tmp_path / "store") as store:
        found, usage = told(store, "session", prices), store.usage()

    assert found["total"]["requests"] == usage["requests"]
    assert found["total"]["cost"]["listEstimate"]["requests"] == usage["requests"]


def test_requests_without_figures_are_unpriced(tmp_path: Path, prices: List) -> None:
    home = CAPTURES / "vibe" / "S1" / "home"

    with recorded(home, tmp_path / "store") as store:
        total = told(store, "harness", prices)["total"]

    why = {u["why"]: u["requests"] for u in total["cost"]["unpriced"]}
    assert why["their figures are not recorded"] == total["unmeasuredRequests"] > 0


def test_a_kind_of_report_that_is_none_is_refused(tmp_path: Path) -> None:
    with recorded(tmp_path, tmp_path / "store") as store, pytest.raises(UsageError):
        spending(store.rows, by="blocks")


def test_what_is_no_time_has_no_day() -> None:
    found = [day_of(text, None) for text in (None, "", "nonsense", "2026-11-02T10:15")]

    assert found == [None, None, None, date(2026, 11, 2)]
