"""A receipt of a session's tree between two cutoffs: what it did in [since, until), as it was known at each.

A receipt for past cutoffs never changes when later records arrive, and receipts of intervals that meet add up. A session
that is at work at the end, or was cut off, makes a lower bound. DIGEST tells two receipts apart.
"""

from __future__ import annotations

import argparse

from asrd.commands._common import asker, here, json_argument, print_json, session_argument, start_of
from asrd.commands.time import length
from asrd.text import Paper


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser)
    parser.add_argument("--since", help="from a day, a time, or a length such as 7d (included); default: its beginning")
    parser.add_argument("--until", required=True, help="up to a day or time (not included)")
    parser.add_argument("--timezone", help="where days begin, such as Europe/Berlin (default UTC)")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    answer = asker().ask(
        "interval",
        {
            "session": args.session,
            "cwd": here(),
            "since": start_of(args.since),
            "until": args.until,
            "timezone": args.timezone,
        },
    )
    if args.json:
        print_json(answer)
        return 0
    paper = Paper()
    root = answer["root"]
    paper.line(f"{root['agent']}:{root['sessionId']}  [{answer['since'] or 'its beginning'}, {answer['until']})")
    paper.line()
    counts = ("sessions", "turns", "calls", "failedCalls", "requests", "input", "cacheRead", "cacheWrite", "output")
    times = ("agentSeconds", "unionSeconds", "overlapSeconds", "instrumentedSeconds")
    parts = [answer[side] for side in ("before", "after", "delta")]
    rows = [[name, *(p.get(name) for p in parts)] for name in counts]
    rows += [[name.removesuffix("Seconds"), *(length(p.get(name) or 0) for p in parts)] for name in times]
    paper.table(("", "BEFORE", "AFTER", "DELTA"), rows, right=range(1, 4), colours={0: "cyan"})
    paper.line()
    if answer["wallSeconds"] is not None:
        paper.line(f"Interval: {length(answer['wallSeconds'])}.")
    if answer["delta"]["earlierSeconds"]:
        paper.line(f"Of that, {length(answer['delta']['earlierSeconds'])} lie before it and were known only in it.")
    if answer["lowerBound"]:
        live, unknown = answer["liveSessions"], answer["after"]["unmeasuredRequests"]
        words = [f"{live} sessions were at work at its end, or cut off"] if live else []
        words += [f"{unknown} requests are known whose figures no file holds"] if unknown else []
        paper.line(f"At least: {'; '.join(words)}.")
    if answer["decreased"]:
        paper.line(f"Less than before: {', '.join(answer['decreased'])}; a later record corrected an earlier one.")
    paper.line(f"Digest {answer['digest']}")
    return 0
