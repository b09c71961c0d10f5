"""Watch what runs now: sessions at work, tokens a minute, today's tokens and cost.

Keys: j k choose, o orders (by change, tokens, cost), r looks now, q ends. The live view needs the extra `asrd[top]`; without it,
in a pipe, and with `--once`, the table is printed once. Shown: sessions with an open turn that changed in the last day, and
those that changed in the last ten minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
from datetime import datetime
from typing import Any

from asrd import clock
from asrd.client import Client, open_reader
from asrd.commands._common import asker, json_argument, print_json, short
from asrd.errors import DaemonUnreachable
from asrd.paths import folders
from asrd.prices import List
from asrd.store.rows import IndexRows
from asrd.text import Paper, one_line, when
from asrd.top.glance import glance
from asrd.top.words import price, short_number, summed


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("--once", action="store_true", help="print the table once")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    ask = asker()
    prices: List | None = None
    with contextlib.suppress(ImportError):
        prices = List()
    if args.json:
        print_json(glance(ask.rows(), local(), prices, ask.daemon))
        return 0
    paper = Paper()
    if args.once or not paper.terminal or not sys.stdin.isatty():
        table(paper, glance(ask.rows(), local(), prices, ask.daemon))
        return 0
    try:
        import asrd.top.screen
    except ImportError:
        table(paper, glance(ask.rows(), local(), prices, ask.daemon))
        sys.stderr.write("asrd: the live view needs `pip install 'asrd[top]'`.\n")
        return 0
    ask.rows()  # brings the index up to date, and says when nothing is recorded
    asrd.top.screen.Top(*looking(prices)).run()
    return 0


def local() -> datetime:
    """Now, where this machine is."""
    return clock.now().astimezone()


def looking(prices: List | None) -> Any:
    """What the live view asks: what runs, and the last records of a session. Each thread reads by a connection of its own."""
    where = folders()
    here = threading.local()

    def rows() -> IndexRows:
        if not hasattr(here, "rows"):
            here.rows = IndexRows(open_reader(where), where.streams)
        return here.rows

    def look() -> dict[str, Any]:
        daemon = False
        with contextlib.suppress(DaemonUnreachable):
            Client(where.socket).close()
            daemon = True
        return glance(rows(), local(), prices, daemon)

    def last(session: dict[str, Any], count: int) -> list[dict[str, Any]]:
        from asrd.ui.view import Ref, find, records

        reader = rows()
        stored = find(reader, Ref(session["agent"], session["sessionId"], session["namespace"] or ""))
        found = [r for part in records(reader, stored, max(0, stored.row.records - 3 * count)) for r in part]
        return [r for r in found if r["type"] in ("message", "tool_call", "tool_result")][-count:]

    return look, last


def table(paper: Paper, answer: dict[str, Any]) -> None:
    """The table, once."""
    paper.line(summed(answer))
    now = datetime.fromisoformat(answer["at"] + "+00:00")
    paper.table(
        ("SESSION", "HARNESS", "STATE", "CHANGED", "IN/MIN", "OUT/MIN", "TODAY", "COST", "WHAT"),
        [
            (
                short(s["sessionId"]),
                s["agent"],
                "working" if s["working"] else s["state"],
                when(s["lastAt"], now),
                short_number(s["perMinute"]["input"]),
                short_number(s["perMinute"]["output"]),
                short_number(s["today"]["inputTotal"] if s["today"] else None),
                price(s["today"]),
                one_line(s["title"] or s["cwd"] or "", 60),
            )
            for s in answer["sessions"]
        ],
        right=(4, 5, 6, 7),
        colours={0: "cyan", 1: "green"},
        wide=(8,),
        yields=(3, 7, 6, 5, 4),
    )
