"""Tokens, each model response counted once: in all, by day, model, harness and session.

`asrd usage daily` (weekly, monthly, session, model, harness, project, branch, tree) prints one table, with money: what
harnesses wrote down as their own estimate (SOURCE), and what the price list of the installed price package says for the
others (LIST), with the prices of the day of each response. The two are not added; what has no price is counted as unpriced.
A session behind the word restricts it: `asrd usage model last`, `asrd usage tree 1f3c`. `--no-cost` leaves money out.

`input` is uncached; INPUT TOTAL = input + cache reads + cache writes; OUTPUT has reasoning in it. "at least" says that
requests are known whose figures no file holds. Copies (forks, resumes, sub-agents that start with their parent's
history, a session seen by two recorders) never add.
"""

from __future__ import annotations

import argparse
import contextlib
from decimal import Decimal
from typing import Any

from asrd import clock
from asrd.commands._common import asker, bounds_arguments, bounds_asked, json_argument, print_json, short
from asrd.errors import UsageError
from asrd.prices import List
from asrd.report.spending import BY, priced
from asrd.text import Paper, inert, one_line


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument(
        "words", nargs="*", metavar="[daily|weekly|monthly|session|model|harness|project|branch|tree] [SESSION]",
        help="one table with money; and a session: its id, the start of it, harness:id, `last`, or `.` (the last in this folder)",
    )  # fmt: skip
    parser.add_argument("--no-cost", action="store_true", help="with such a word: without money")
    parser.add_argument("--tree", action="store_true", help="with a session: its sub-agents too")
    parser.add_argument(
        "--explain", action="store_true", help="the records behind the figures, and the copies left out"
    )
    parser.add_argument("--by", choices=("day", "model", "harness", "session"), help="only this table")
    bounds_arguments(parser)
    parser.add_argument("-n", "--limit", type=int, default=20, help="rows of a table (default 20)")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    words: list[str] = list(args.words)
    by = words.pop(0) if words and words[0] in BY else None
    if len(words) > 1:
        raise UsageError(what=f"`usage` with {' '.join(args.words)}", command="usage")
    args.session = words[0] if words else None
    asked = bounds_asked(args)
    if by is not None:
        spending(asked, by, args)
        return 0
    if args.explain:
        answer = asker().ask("usage.explain", {**asked, "limit": None if args.json else args.limit})
        if args.json:
            print_json(answer)
        else:
            explained(Paper(), answer)
        return 0
    answer = asker().ask("usage", {**asked, "limit": None if args.json else args.limit})
    if args.json:
        print_json(answer)
        return 0
    paper = Paper()
    tables: dict[str, list[dict[str, Any]]] = {
        "day": answer["byDay"],
        "harness": answer["byHarness"],
        "model": answer["byModel"],
        "session": answer["bySession"],
    }
    for name in (args.by,) if args.by else ("day", "harness", "model", "session"):
        rows = tables[name]
        part = rows[-args.limit :] if name == "day" else rows[: args.limit]
        table(paper, name.upper(), [(label(name, r), r) for r in part], answer["total"])
        known = answer["sessions"] if name == "session" else len(rows)
        if known > len(part):
            paper.line(paper.paint(f"{known - len(part)} more (-n)", "dim"))
        paper.line()
    total = answer["total"]
    if total["lowerBound"]:
        reasons: list[str] = answer.get("lowerBoundReasons") or []
        known = total["unmeasuredRequests"]
        words = ([f"{known} requests are known whose figures no file holds"] if known else []) + reasons
        paper.line("At least: " + "; ".join(words) + ".")
    if beyond := answer["unitemised"]:
        tokens = [sum(one[k] for one in beyond) for k in ("inputTotal", "output")]
        paper.line(
            f"Unitemised: at least {tokens[0]:,} input and {tokens[1]:,} output that {len(beyond)} sessions' harnesses declare "
            "beyond what their files itemise; not added."
        )
    for note in answer["notRecorded"]:
        paper.line(paper.paint(f"{note['harness']}: {note['reason']}", "dim"))
    if total.get("ambiguousRequests"):
        paper.line(
            f"{total['ambiguousRequests']} statements may be other requests under an equal id; they are not added."
        )
    if total.get("carriers"):
        paper.line(f"{total['carriers']} of the requests are entries whose figures are of one request or more.")
    if total.get("possibleRequests"):
        paper.line(
            f"Possible: {total['possibleRequests']} statements whose id counts for another session, unlike them; not added."
        )
    return 0


def label(name: str, row: dict[str, Any]) -> str:
    """What a row is of."""
    if name == "session":
        return f"{short(row['sessionId'] or '–')}  {one_line(row['title'] or '', 40)}"
    return row[name] or "unknown"


def explained(paper: Paper, answer: dict[str, Any]) -> None:
    """Response by response: the record that counts, and below it those of the same response that do not."""

    def cells(one: dict[str, Any]) -> list[Any]:
        session: dict[str, Any] = one["session"] or {}
        parts = [one[k] for k in ("input", "cacheRead", "cacheWrite", "output")]
        return [f"{short(session.get('sessionId') or '–')} {one['record']}", one["at"], one["model"], *parts]

    rows: list[list[Any]] = []
    for response in answer["responses"]:
        note = "" if response["measured"] else "figures in no file"
        if response["owner"] is None:
            note = "owner not recorded"
        if response["possible"]:
            note = f"{response['possible']} may be other requests under an equal id"
        rows.append([*cells(response["counted"]), note])
        rows += [["  not " + cells(o)[0], *cells(o)[1:], o["why"]] for o in response["leftOut"]]
    total = answer["total"]
    paper.table(
        ("RECORD", "AT", "MODEL", "INPUT", "CACHE READ", "CACHE WRITE", "OUTPUT", ""),
        rows,
        right=range(3, 7),
        colours={0: "cyan"},
        foot=[
            f"{total['requests']} requests",
            "",
            "",
            *(total[k] for k in ("input", "cacheRead", "cacheWrite", "output")),
            "",
        ],
        yields=(1, 2),
    )
    if answer["more"]:
        paper.line(paper.paint(f"{answer['more']} more (-n, or --json for all)", "dim"))


def table(paper: Paper, head: str, rows: list[tuple[str, dict[str, Any]]], total: dict[str, Any]) -> None:
    """One table of figures."""

    def figures(row: dict[str, Any]) -> list[Any]:
        values = [row[k] for k in ("requests", "input", "cacheRead", "cacheWrite", "inputTotal", "output", "reasoning")]
        return [*values, "at least" if row["lowerBound"] else ""]

    paper.table(
        (head, "REQUESTS", "INPUT", "CACHE READ", "CACHE WRITE", "INPUT TOTAL", "OUTPUT", "REASONING", ""),
        [[name, *figures(row)] for name, row in rows],
        right=range(1, 8),
        colours={0: "cyan"},
        wide=(0,),
        foot=["total", *figures(total)],
        yields=(7, 4, 3, 2, 1),
    )


def spending(asked: dict[str, Any], by: str, args: argparse.Namespace) -> None:
    """One table with money."""
    prices: List | None = None
    if not args.no_cost:
        with contextlib.suppress(ImportError):
            prices = List()
    hints = {"tiers": prices.tiers(), "hourly": prices.hourly()} if prices else {}
    answer = asker().ask("usage.report", {**asked, "by": by, **hints})
    answer = priced(answer, prices, clock.now().date())
    if args.no_cost:
        answer = without_cost(answer)
    if args.json:
        print_json(answer)
    else:
        money_table(Paper(), answer, args.limit)


def without_cost(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer without money."""

    def bare(row: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in row.items() if k != "cost"}

    rows = [{**bare(r), "models": [bare(m) for m in r["models"]]} for r in answer["rows"]]
    return {**answer, "rows": rows, "total": bare(answer["total"]), "prices": None}


def called(by: str, row: dict[str, Any]) -> str:
    """What a row is called."""
    if by in ("session", "tree"):
        return f"{short(row['sessionId'] or '–')}  {one_line(row['title'] or '', 36)}"
    if by == "branch":
        return f"{one_line(row['project'] or 'unknown', 40)}  {one_line(row['branch'] or 'unknown', 40)}"
    word = {"daily": "day", "weekly": "week", "monthly": "month"}.get(by, by)
    return row[word] or "unknown"


def money_table(paper: Paper, answer: dict[str, Any], limit: int) -> None:
    """Rows with figures and money; what could not be priced below."""
    by, rows, total = answer["by"], answer["rows"], answer["total"]
    with_cost = "cost" in total
    shown = rows[-limit:] if by in ("daily", "weekly", "monthly") else rows[:limit]

    def cells(row: dict[str, Any]) -> list[Any]:
        values: list[Any] = [row[k] for k in ("requests", "input", "cacheRead", "cacheWrite", "inputTotal", "output")]
        marks = ["at least"] if row["lowerBound"] else []
        if with_cost:
            cost = row["cost"]
            values += [
                dollars(cost["listEstimate"]),
                ", ".join(m for c in cost["sourceEstimate"] if (m := dollars(c))) or None,
            ]
            marks += [f"{cost['unpricedRequests']:,} unpriced"] if cost["unpricedRequests"] else []
        return [*values, ", ".join(marks)]

    heads = [
        "REQUESTS",
        "INPUT",
        "CACHE READ",
        "CACHE WRITE",
        "INPUT TOTAL",
        "OUTPUT",
        *(["LIST", "SOURCE"] if with_cost else []),
    ]
    models: list[Any] = [", ".join(m["model"] or "unknown" for m in r["models"]) for r in shown]
    show = by in ("daily", "weekly", "monthly", "session", "tree")
    paper.table(
        (by.upper(), *heads, "", *(["MODELS"] if show else [])),
        [[called(by, r), *cells(r), *([m] if show else [])] for r, m in zip(shown, models, strict=True)],
        right=range(1, len(heads) + 1),
        colours={0: "cyan"},
        wide=(*([0] if by in ("session", "tree") else []), *([len(heads) + 2] if show else [])),
        foot=["total", *cells(total), *([""] if show else [])],
        yields=(*([len(heads) + 2] if show else []), 4, 3, 2, 1),
    )
    if len(rows) > len(shown):
        paper.line(paper.paint(f"{len(rows) - len(shown)} more (-n)", "dim"))
    if not with_cost:
        return
    used, cost = answer["prices"], total["cost"]
    if used:
        words = f"LIST: {used['package']} {used['version']} (prices up to {used['newest']}), as on the day of each response."
        paper.line(paper.paint(words + " SOURCE: as harnesses estimate it. Neither is what was charged.", "dim"))
    for one in cost["unpriced"]:
        paper.line(paper.paint(inert(f"Unpriced: {one['requests']:,} ({one['why']})."), "dim"))


def dollars(cost: dict[str, Any] | None) -> str | None:
    """An amount to the cent, or with four decimals where it is less than one; the exact one is in `--json`."""
    if cost is None:
        return None
    amount = Decimal(cost["amount"])
    text = f"{amount:,.2f}" if amount == 0 or amount >= Decimal("0.01") else f"{amount:.4f}"
    return f"${text}" if cost["currency"] == "USD" else f"{text} {cost['currency']}"
