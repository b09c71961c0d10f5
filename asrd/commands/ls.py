"""List sessions, the last changed first.

Sub-agents, and what another program saw of a session that is recorded itself, are left out unless `--all` is given; the
last line says what was left out.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from asrd import clock
from asrd.commands._common import asker, here, json_argument, print_json, short, start_of
from asrd.plural import many
from asrd.text import Paper, one_line, when


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("-n", "--limit", type=int, default=None, help="how many (default 30 on a terminal, else all)")
    parser.add_argument("--all", action="store_true", help="sub-agents too, and what was seen by another program")
    parser.add_argument("--harness", help="only this harness")
    parser.add_argument("--here", action="store_true", help="only sessions of this folder")
    parser.add_argument("--project", help="only sessions of that folder")
    parser.add_argument("--since", help="changed since: a day, a time, or a length such as 7d")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    paper = Paper()
    answer = asker().ask(
        "sessions.list",
        {
            "harness": args.harness,
            "project": here() if args.here else args.project,
            "since": start_of(args.since),
            "limit": args.limit if args.json or args.all else None,
        },
    )
    if args.json:
        print_json(answer)
        return 0
    sessions: list[dict[str, Any]] = answer["sessions"]
    themselves = {(s["agent"], s["sessionId"]) for s in sessions if s["scope"] == "primary"}
    shown: list[dict[str, Any]] = []
    agents = seen = 0
    for session in sessions:
        observed = session["scope"] == "secondary" and (session["agent"], session["sessionId"]) in themselves
        if args.all or not (observed or is_subagent(session)):
            shown.append(session)
        elif observed:
            seen += 1
        else:
            agents += 1
    if not sessions:
        asked = args.harness or args.here or args.project or args.since
        what = "is like that" if asked else "is recorded here"
        sys.stderr.write(f"asrd: no session {what}; `asrd doctor` shows what is recorded of each harness.\n")
        return 0
    limit = args.limit or (30 if paper.terminal else len(shown))
    now = clock.now()
    paper.table(
        ("SESSION", "HARNESS", "CHANGED", "TURNS", "CALLS", "INPUT", "OUTPUT", "STATE", "WHAT"),
        [
            (
                short(s["sessionId"]),
                s["agent"],
                when(s["lastAt"], now),
                s["turns"],
                s["calls"],
                s["usage"]["inputTotal"],
                s["usage"]["output"],
                s["state"],
                one_line(s["title"] or s["prompt"] or s["cwd"] or "", 80),
            )
            for s in shown[:limit]
        ],
        right=(3, 4, 5, 6),
        colours={0: "cyan", 1: "green"},
        wide=(8,),
        yields=(4, 3, 7, 6, 5),
    )
    hidden = [f"{many(agents, 'sub-agent')} (--all)"] if agents else []
    hidden += [f"{seen} seen by another program too (--all)"] if seen else []
    if len(shown) > limit:
        hidden.append(f"{len(shown) - limit} older (-n)")
    if hidden and paper.terminal:
        paper.line(paper.paint("not shown: " + ", ".join(hidden), "dim"))
    return 0


def is_subagent(session: dict[str, Any]) -> bool:
    """Whether a session was started by another as its sub-agent."""
    return bool(session["parent"] and session["parent"]["relation"] in ("spawned_by", "spawned"))
