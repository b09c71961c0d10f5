"""Say in five seconds whether recording works: daemon, store, how far behind, what needs a person."""

from __future__ import annotations

import argparse

from asrd import clock
from asrd.commands._common import asker, json_argument, print_json
from asrd.plural import many
from asrd.text import Paper, size, when


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it; 0 while a daemon records, 1 while none does."""
    answer = asker().ask("status")
    if args.json:
        print_json(answer)
        return 0 if answer["running"] else 1
    paper = Paper()
    totals = answer["totals"]
    if answer["running"]:
        behind = f"{many(answer['behind'], 'source')} behind" if answer["behind"] else "looking for sources"
        state = "caught up" if answer["caughtUp"] else behind
        words = f"recording since {when(answer['startedAt'], clock.now())} (process {answer['pid']}), {state}"
        paper.line(paper.paint("● ", "green") + words)
        paper.line(f"  {answer['watch']}")
    elif answer["pid"]:
        paper.line(
            paper.paint("○ ", "yellow")
            + "process {pid} has the store and answers nothing: a sync, or a daemon that hangs".format(**answer)
        )
    else:
        paper.line(paper.paint("○ ", "yellow") + "no daemon records; start it with `asrd run`, or use `asrd sync`")
    if totals:
        paper.line(
            f"  {many(totals['sessions'], 'session')}, {many(totals['records'], 'record')}, {size(totals['bytes'])} "
            f"in {answer['store']}"
        )
        if totals["gaps"] or totals["losses"]:
            paper.line(
                f"  {many(totals['gaps'], 'gap')} and {many(totals['losses'], 'loss')} stated; `asrd doctor` says where"
            )
    else:
        paper.line(f"  nothing recorded yet in {answer['store']}")
    for one in answer.get("trouble", [])[:8]:
        paper.line(paper.paint("! ", "red") + f"{one['path']}: {one['what']}")
    return 0 if answer["running"] else 1
