"""How long agents worked: each for itself, side by side, and as one; with how much of it is instrumented.

AGENT adds the sessions' own turns: two agents side by side for an hour are two hours. UNION counts each instant once.
ENVELOPE runs from the first to the last, pauses included. INSTRUMENTED is the part of the agents' time in which a tool
call or a response that took time is recorded. "at least" says that a turn is open, or has no end in its file.
"""

from __future__ import annotations

import argparse
from typing import Any

from asrd.commands._common import (
    asker,
    bounds_arguments,
    bounds_asked,
    json_argument,
    print_json,
    session_argument,
    short,
)
from asrd.text import Paper, one_line


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser, optional=True)
    parser.add_argument("--tree", action="store_true", help="with a session: all that it started too")
    bounds_arguments(parser)
    parser.add_argument("-n", "--limit", type=int, default=20, help="rows of the table (default 20)")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    answer = asker().ask("time", bounds_asked(args))
    if args.json:
        print_json(answer)
        return 0
    paper = Paper()
    rows = answer["bySession"]
    total = answer["total"]
    paper.table(
        ("SESSION", "AGENT", "UNION", "ENVELOPE", "INSTRUMENTED", "TURNS", ""),
        [[f"{short(r['sessionId'])}  {one_line(r['title'] or '', 40)}", *_cells(r)] for r in rows[: args.limit]],
        right=range(1, 6),
        colours={0: "cyan"},
        wide=(0,),
        foot=["total", *_cells(total)],
        yields=(3, 5, 4),
    )
    if len(rows) > args.limit:
        paper.line(paper.paint(f"{len(rows) - args.limit} more (-n)", "dim"))
    paper.line()
    paper.line(f"Side by side: {length(total['overlapSeconds'])}.")
    if total["wallSeconds"] is not None:
        paper.line(f"Interval: {length(total['wallSeconds'])}.")
    if total["toolSeconds"]:
        each = ", ".join(f"{kind} {length(s)}" for kind, s in total["toolSeconds"].items())
        paper.line(f"In tools: {each}.")
    return 0


def _cells(row: dict[str, Any]) -> list[Any]:
    share = row["instrumentedShare"]
    instrumented = length(row["instrumentedSeconds"]) + (f" ({share:.1%})" if share is not None else "")
    times = [length(row[k]) for k in ("agentSeconds", "unionSeconds", "envelopeSeconds")]
    return [*times, instrumented, row["turns"], "at least" if row["lowerBound"] else ""]


def length(seconds: float | None) -> str:
    """A length of time for reading: `2 h 03 min`, `4 min 05 s`, `1.25 s`."""
    if seconds is None:
        return "unknown"
    if seconds >= 3600:
        return f"{int(seconds // 3600):,} h {int(seconds % 3600 // 60):02d} min"
    if seconds >= 60:
        return f"{int(seconds // 60)} min {int(seconds % 60):02d} s"
    return f"{seconds:.2f} s"
