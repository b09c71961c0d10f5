"""Tokens, each model response counted once: in all, by day, model, harness and session.

`input` is uncached; INPUT TOTAL = input + cache reads + cache writes; OUTPUT has reasoning in it. "at least" says that
requests are known whose figures no file holds. Copies (forks, resumes, sub-agents that start with their parent's
history, a session seen by two recorders) never add.
"""

from __future__ import annotations

import argparse
from typing import Any

from asrd import clock
from asrd.commands._common import asker, here, json_argument, print_json, session_argument, short
from asrd.query import since_of
from asrd.text import Paper, one_line


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser, optional=True)
    parser.add_argument("--tree", action="store_true", help="with a session: its sub-agents too")
    parser.add_argument(
        "--explain", action="store_true", help="the records behind the figures, and the copies left out"
    )
    parser.add_argument("--by", choices=("day", "model", "harness", "session"), help="only this table")
    parser.add_argument("--since", help="from a day, a time, or a length such as 7d (included)")
    parser.add_argument("--until", help="up to a day or time (not included)")
    parser.add_argument("--timezone", help="where days begin, such as Europe/Berlin (default UTC)")
    parser.add_argument("--harness", help="only this harness")
    parser.add_argument("--project", help="only sessions of that folder")
    parser.add_argument("-n", "--limit", type=int, default=20, help="rows of a table (default 20)")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    asked = {
        "session": args.session,
        "tree": args.tree or None,
        "cwd": here() if args.session else None,
        "since": since_of(args.since, clock.now()) if args.since else None,
        "until": args.until,
        "timezone": args.timezone,
        "harness": args.harness,
        "project": args.project,
    }
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
        foot=["total", *figures(total)],
    )
