"""Tokens and money by day, week, month, session, model, harness, project, branch or tree. Pure.

Every response counts once, as in `usage`. Money of different kinds stays apart (L1): what harnesses wrote down as their own
estimate, and what a price list says for the others. No harness records what was charged. What has no price is counted as
unpriced, never as 0 (L2); amounts are exact decimals (L3); windows of a provider's limits are not inferred from use (L4).

Weeks begin on Monday and are named by it. A tree is a session with all that it spawned, named by the session on top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol, Unpack
from zoneinfo import ZoneInfo

from msgspec import Struct

from asrd.errors import UsageError
from asrd.lineage import Tree
from asrd.prices import PACKAGE, List, Tokens, Unpriced
from asrd.query import FIGURES, Bounds, Rows, Selection, Sums, selected, usage_json, zone_of

BY = ("daily", "weekly", "monthly", "session", "model", "harness", "project", "branch", "tree")


UNTOLD = "their figures are not recorded"
"""Why responses have no price whose tokens stand nowhere."""


class Part(Struct):
    """Responses with all that a price depends on in common. `native`: their harness wrote their cost down, in `currency`."""

    group: Any
    day: str | None
    model: str | None
    provider: str | None
    tier: int
    currency: str | None
    native: str | None
    sums: Sums
    cache_write_5m: int = 0
    cache_write_1h: int = 0


class SpendingRows(Rows, Protocol):
    """What this module asks of an index besides what all queries do."""

    def parts(self, selection: Selection, by: str, tiers: list[int], hourly: list[str]) -> list[Part]:
        """Counted responses by `slot` (a quarter of an hour), `session`, `model`, `harness`, `project`, or `branch`."""
        ...


def spending(
    rows: SpendingRows,
    *,
    by: str,
    tiers: list[int] | None = None,
    hourly: list[str] | None = None,
    **bounds: Unpack[Bounds],
) -> dict[str, Any]:
    """`usage.report`: figures by row, and the parts that `priced` puts prices to. Raises UsageError."""
    if by not in BY:
        raise UsageError(what=f"usage by {by}", command="usage")
    if by == "tree":
        bounds["tree_of"] = True
    timezone = bounds.get("timezone")
    zone = zone_of(timezone)
    selection = selected(rows, **bounds)
    column = {"daily": "slot", "weekly": "slot", "monthly": "slot", "tree": "session"}.get(by, by)
    found = rows.parts(selection, column, tiers or [], hourly or [])
    name = _namer(rows, by, zone, found)
    groups: dict[str, tuple[dict[str, Any], list[Part]]] = {}
    for part in found:
        key, told = name(part.group)
        groups.setdefault(key, (told, []))[1].append(part)
    ordered = sorted(groups) if column == "slot" else sorted(groups, key=lambda k: (-_weight(groups[k][1]), k))
    return {
        "schema": "asrd.usage-parts/1",
        "by": by,
        "since": selection.since,
        "until": selection.until,
        "timezone": timezone or "UTC",
        "rows": [{**groups[k][0], **_figures(groups[k][1]), "parts": _parts(groups[k][1])} for k in ordered],
        "total": _figures(found),
    }


def _weight(parts: list[Part]) -> int:
    return sum((p.sums.input or 0) + (p.sums.output or 0) for p in parts)


def _figures(parts: Iterable[Part]) -> dict[str, Any]:
    total = Sums()
    for part in parts:
        total.add(part.sums)
    return usage_json(total)


def _parts(parts: list[Part]) -> list[dict[str, Any]]:
    """The parts of a row as JSON values, those with the same price in one."""
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for p in parts:
        key = (p.day, p.model, p.provider, p.tier, p.currency, p.native is None)
        one = merged.setdefault(
            key,
            {"day": p.day, "model": p.model, "provider": p.provider, "tier": p.tier, "currency": p.currency, "native": None,
             "requests": 0, "unmeasured": 0, "cacheWrite5m": 0, "cacheWrite1h": 0, **dict.fromkeys(FIGURES, 0)},
        )  # fmt: skip
        one["requests"] += p.sums.requests
        one["unmeasured"] += p.sums.unmeasured
        one["cacheWrite5m"] += p.cache_write_5m
        one["cacheWrite1h"] += p.cache_write_1h
        for figure in FIGURES:
            one[figure] += getattr(p.sums, figure) or 0
        if p.native is not None:
            one["native"] = str(Decimal(one["native"] or 0) + Decimal(p.native))
    return list(merged.values())


def _namer(
    rows: SpendingRows, by: str, zone: ZoneInfo | None, found: list[Part]
) -> Callable[[Any], tuple[str, dict[str, Any]]]:
    """How a group is called: a key to sort and join by, and its fields in the answer."""
    if by in ("daily", "weekly", "monthly"):
        word = {"daily": "day", "weekly": "week", "monthly": "month"}[by]

        def of_time(slot: Any) -> tuple[str, dict[str, Any]]:
            day = day_of(slot, zone)
            if day is not None and by == "weekly":
                day -= timedelta(days=day.weekday())
            text = "" if day is None else day.isoformat()[: 7 if by == "monthly" else 10]
            return text, {word: text or None}

        return of_time
    if by in ("session", "tree"):
        top: dict[int, int] = {}
        if by == "tree":
            links = rows.links(None)
            above = Tree(links.edges(), links.nodes).spawned_above
            for number in _members(found):
                at = number
                while at in above and (parent := above[at].parent) is not None:
                    at = parent
                top[number] = at
        numbers = {top.get(n, n) for n in _members(found)}
        names = {s.number: s.row for s in rows.numbered(sorted(numbers))}

        def of_session(number: Any) -> tuple[str, dict[str, Any]]:
            place: Any = top.get(number, number)
            row = names.get(place)
            if row is None:
                return "", {"agent": None, "sessionId": None, "namespace": None, "title": "owner not recorded"}
            told = {
                "agent": row.agent,
                "sessionId": row.session_id,
                "namespace": row.namespace or None,
                "title": row.title or row.prompt,
                "lastAt": row.last_at,
            }
            return f"{row.agent}\x1f{row.session_id}\x1f{row.namespace}", told

        return of_session
    if by == "branch":
        return lambda group: ("\x1f".join(x or "" for x in group), {"project": group[0], "branch": group[1]})
    return lambda group: (group or "", {by: group})


def _members(found: list[Part]) -> set[int]:
    return {int(p.group) for p in found if p.group is not None}


def day_of(slot: str | None, zone: ZoneInfo | None) -> date | None:
    """The day in a timezone of a moment given as `YYYY-MM-DDTHH:MM` UTC; None where it is none."""
    if not slot:
        return None
    try:
        moment = datetime.fromisoformat(slot).replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment.astimezone(zone or UTC).date()


# ---------------------------------------------------------------- money


class _Money(Struct):
    """Money of the two kinds, and what has none."""

    estimate: Decimal = Decimal(0)
    estimated: int = 0
    sources: dict[str, Decimal] = {}
    sourced: dict[str, int] = {}
    unpriced: int = 0
    why: dict[str, int] = {}
    """Requests without a price by reason."""

    def add(self, other: _Money) -> None:
        """Adds other responses' money, kind by kind."""
        self.estimate += other.estimate
        self.estimated += other.estimated
        for currency, amount in other.sources.items():
            self.sources = {**self.sources, currency: self.sources.get(currency, Decimal(0)) + amount}
            self.sourced = {**self.sourced, currency: self.sourced.get(currency, 0) + other.sourced[currency]}
        self.unpriced += other.unpriced
        self.why = {w: self.why.get(w, 0) + other.why.get(w, 0) for w in {**self.why, **other.why}}

    def json(self) -> dict[str, Any]:
        """As JSON values; amounts as decimal text."""
        return {
            "listEstimate": {"amount": _amount(self.estimate), "currency": "USD", "requests": self.estimated}
            if self.estimated
            else None,
            "sourceEstimate": [
                {"amount": _amount(amount), "currency": currency, "requests": self.sourced[currency]}
                for currency, amount in sorted(self.sources.items())
            ],
            "unpricedRequests": self.unpriced,
            "unpriced": [{"why": why, "requests": n} for why, n in sorted(self.why.items())],
        }


def _amount(value: Decimal) -> str:
    """All digits, none of them an exponent."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def priced(answer: dict[str, Any], prices: List | None, today: date) -> dict[str, Any]:
    """The answer of `spending` with money in place of the parts. `prices` None: there is no price list."""
    total = _Money()
    made: list[dict[str, Any]] = []
    for row in answer["rows"]:
        money = _Money()
        models: dict[str | None, dict[str, Any]] = {}
        for part in row["parts"]:
            one = _money(part, prices)
            money.add(one)
            told = models.setdefault(part["model"], {"requests": 0, "money": _Money()})
            told["requests"] += part["requests"]
            told["money"].add(one)
        total.add(money)
        made.append(
            {
                **{k: v for k, v in row.items() if k != "parts"},
                "cost": money.json(),
                "models": [
                    {"model": m, "requests": t["requests"], "cost": t["money"].json()}
                    for m, t in sorted(models.items(), key=lambda item: (-item[1]["requests"], item[0] or ""))
                ],
            }
        )
    return {
        **answer,
        "schema": "asrd.usage-report/1",
        "rows": made,
        "total": {**answer["total"], "cost": total.json()},
        "prices": None
        if prices is None
        else {
            "package": PACKAGE,
            "version": prices.version,
            "newest": prices.newest(today),
            "of": "the day of each response",
        },
    }


def _money(part: dict[str, Any], prices: List | None) -> _Money:
    if part["native"] is not None:
        currency = part["currency"] or "unknown currency"
        return _Money(sources={currency: Decimal(part["native"])}, sourced={currency: part["requests"]})
    tokens = Tokens(
        part["model"], part["provider"], part["day"], part["tier"], part["requests"], part["input"], part["cache_read"],
        part["cache_write"], part["cacheWrite5m"], part["cacheWrite1h"], part["output"],
    )  # fmt: skip
    untold = part["unmeasured"]
    money = _Money(unpriced=untold, why={UNTOLD: untold} if untold else {})
    if not (tokens.input or tokens.cache_read or tokens.cache_write or tokens.output):
        return money  # what used nothing costs nothing
    try:
        if prices is None:
            raise Unpriced(f"the price package is not installed (pip install {PACKAGE})")
        money.estimate, money.estimated = prices.price(tokens), part["requests"]
    except Unpriced as error:
        money.add(_Money(unpriced=part["requests"], why={str(error): part["requests"]}))
    return money
