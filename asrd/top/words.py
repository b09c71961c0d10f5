"""What runs now in words: the line on top, money, numbers, and in which order sessions stand. Pure."""

from __future__ import annotations

from typing import Any

from asrd.text import inert


def short_number(amount: int | None) -> str:
    """A number of tokens in at most five characters; unknown is a dash."""
    if amount is None:
        return "–"
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if amount >= size:
            value = amount / size
            return f"{value:.0f}{unit}" if value >= 100 else f"{value:.1f}{unit}"
    return str(amount)


def name_of(session: dict[str, Any]) -> tuple[Any, ...]:
    """A session's whole name."""
    return (session["agent"], session["sessionId"], session["namespace"])


def ordered(sessions: list[dict[str, Any]], order: str) -> list[dict[str, Any]]:
    """Sessions as they came (those at work first), or the fastest or dearest first."""
    if order == "tokens":
        return sorted(sessions, key=lambda s: -sum(s["perMinute"][k] or 0 for k in ("input", "output")))
    if order == "cost":
        return sorted(sessions, key=lambda s: -(amount(s["today"]) or 0))
    return sessions


def amount(today: dict[str, Any] | None) -> float | None:
    """US dollars of a day, for ordering; None = unknown. The two kinds of estimate are of different responses."""
    if today is None:
        return None
    cost = today["cost"]
    parts = [cost["listEstimate"], *[c for c in cost["sourceEstimate"] if c["currency"] == "USD"]]
    known = [float(p["amount"]) for p in parts if p]
    return sum(known) if known else None


def price(today: dict[str, Any] | None) -> str:
    """Money as a row shows it: list estimate, then what sources say."""
    if today is None:
        return "–"
    cost = today["cost"]
    words = [f"${float(c['amount']):.2f}" for c in [cost["listEstimate"]] if c]
    words += [
        ("$" if c["currency"] == "USD" else c["currency"] + " ") + f"{float(c['amount']):.2f} src"
        for c in cost["sourceEstimate"]
    ]
    return inert(" + ".join(words)) or "–"


def summed(answer: dict[str, Any]) -> str:
    """The line on top."""
    rate, today = answer["perMinute"], answer["today"]
    words = [
        f"{answer['working']} working",
        f"{short_number(rate['input'])} in, {short_number(rate['output'])} out a minute",
        f"today {short_number(today['inputTotal'])} in, {short_number(today['output'])} out"
        + (" (at least)" if today["lowerBound"] else ""),
        f"cost today {price(today)}",
        "live" if answer["daemon"] else "not live: no daemon records (asrd run)",
    ]
    return "  ·  ".join(words)
