"""Find records by their words, in all sessions: prompts, answers, thoughts, commands, outputs, diffs. The best first.

All words are to be there; "a phrase", -not, begin*, this OR that. Words only of a filter are fine too:

    asrd search 'sqlite locked'
    asrd search --tool bash --exit nonzero --since 7d
    asrd search '"no such table" -migrate' --project . --role assistant

Each hit names its record: `asrd show SESSION --record rN` shows it whole. The index is made as sessions grow, by the daemon
or by this command; it holds no text and may be deleted.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from asrd import clock
from asrd.client import open_reader
from asrd.commands._common import asker, here, json_argument, print_json, short
from asrd.paths import folders
from asrd.query import bound, since_of
from asrd.store.disk import RealDisk
from asrd.text import Paper, inert, one_line, when
from asrd.words import WordsIndexer


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("query", nargs="*", metavar="QUERY", help="words, phrases, -not, begin*, OR")
    parser.add_argument("--harness", help="only sessions of this harness")
    parser.add_argument("--project", metavar="FOLDER", help="only sessions in this folder or below")
    parser.add_argument("--session", metavar="SESSION", help="only this session")
    parser.add_argument("--role", metavar="ROLE", help="only messages of: prompt, user, assistant, system, developer")
    parser.add_argument("--tool", metavar="NAME", help="only calls of this tool and their results")
    parser.add_argument(
        "--type", metavar="TYPE", help="only records of this type (message, tool_result, file_change, …)"
    )
    parser.add_argument("--since", metavar="WHEN", help="7d, 12h, 2026-11-01, …")
    parser.add_argument("--until", metavar="WHEN", help="a day or a time; what is at it is not found")
    parser.add_argument("--exit", metavar="CODE", help="only results: an exit code, nonzero, or failed")
    parser.add_argument("-n", "--limit", type=int, default=20, help="how many (20)")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it; 1 where nothing was found."""
    to = asker()
    if not to.daemon:
        to.rows()
        take_in(quiet=args.json)
    now = clock.now()
    answer = to.ask(
        "search",
        {
            "query": " ".join(args.query),
            "harness": args.harness,
            "project": None if args.project is None else os.path.abspath(Path(args.project).expanduser()),
            "session": args.session,
            "role": args.role,
            "tool": args.tool,
            "type": args.type,
            "since": bound(since_of(args.since, now)) if args.since else None,
            "until": bound(since_of(args.until, now)) if args.until else None,
            "exit": args.exit,
            "limit": args.limit,
            "cwd": here(),
        },
    )
    if args.json:
        print_json(answer)
    else:
        show(answer)
    return 0 if answer["hits"] else 1


def show(answer: dict[str, Any]) -> None:
    """The hits, as a person reads them."""
    paper = Paper()
    last = None
    for hit in answer["hits"]:
        key = (hit["agent"], hit["sessionId"], hit["namespace"])
        if key != last:
            title = one_line(hit["title"], max(20, (paper.width or 100) - 40))
            paper.line(paper.paint(f"{inert(hit['agent'])} {inert(short(hit['sessionId']))}", "bold") + f"  {title}")
            last = key
        what = hit["role"] or hit["tool"] or hit["type"]
        code = f" exit {hit['exitCode']}" if hit["exitCode"] is not None else ""
        head = f"{hit['record']:>7} {inert(what)}{code}, {when(hit['at'], clock.now())}"
        paper.line(paper.paint(head, "dim") + "  " + _marked(paper, hit["snippet"], hit["matches"]))
    matched = f"{answer['matched']:,}{'+' if answer['more'] else ''}"
    late = answer["streams"] - answer["streamsSearched"]
    words = f"{matched} {'record matches' if matched == '1' else 'records match'}" + (
        f"; {len(answer['hits']):,} shown" if answer["hits"] else ""
    )
    sys.stderr.write(words + (f"; {late:,} sessions are not indexed yet" if late > 1 else "") + ".\n")


def _marked(paper: Paper, snippet: str, matches: list[list[int]]) -> str:
    out, at = "", 0
    for start, end in matches:
        out += inert(snippet[at:start]) + paper.paint(inert(snippet[start:end]), "yellow")
        at = end
    return (out + inert(snippet[at:])).replace("\n", " ")


def take_in(quiet: bool) -> None:
    """Brings the search index up to date where no daemon does; says on stderr that it takes a while unless `quiet`."""
    where = folders()
    if not os.access(where.store, os.W_OK):
        return
    words = WordsIndexer(where, lambda: open_reader(where), RealDisk())
    began, told = clock.ticks(), False
    try:
        while words.step(8 << 20):
            if not told and not quiet and clock.ticks() - began > 0.5:
                sys.stderr.write("asrd: indexing what is new…\n")
                told = True
    finally:
        words.close()
