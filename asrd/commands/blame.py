"""Say which session, turn, prompt and model each line of a file comes from; unknown where that is not proved.

    asrd blame src/app.py            every line, as it is in the working tree
    asrd blame src/app.py:40-60      these lines
    asrd blame src/app.py --at v1.0  at a commit

What proves a line: `git blame` names the commit that brought it; the contents before and in that commit are joined by
recorded edits, each by SHA-256. It survives rebase and squash as far as the patch is the same. How sure it is stands beside
(`content`, `edit`, `patch-…`; docs/blame.md). A line without a session is unknown: not a person's.
"""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import Any

from asrd.blaming import Blamer, blame, place_of
from asrd.commands._common import asker, json_argument, print_json, short
from asrd.errors import UsageError
from asrd.paths import environment
from asrd.redact import MODES, Redactor, secrets_of
from asrd.repository import Repository
from asrd.text import Paper, code_line, one_line

_PLACE = re.compile(r"(.+?):(\d+)(?:-(\d+))?$")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("file", metavar="FILE[:LINE[-LINE]]", help="a file of a repository")
    parser.add_argument("--at", metavar="COMMIT", help="as it was at a commit (default: as it is now)")
    parser.add_argument("--was", metavar="DIR", help="where the repository lay when it was recorded, if elsewhere")
    parser.add_argument("--redact", choices=MODES, default="default")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    name, first, last = args.file, None, None
    if not os.path.exists(name) and (found := _PLACE.match(name)):
        name, first = found[1], int(found[2])
        last = int(found[3]) if found[3] else first
        if first < 1 or last < first:
            raise UsageError(what=f"the lines {first} to {last}", command="blame")
    folder = Path(name).parent
    repository = Repository(str(folder if folder.is_dir() else Path.cwd()))
    where = Path(os.path.realpath(folder)) / Path(name).name
    path = place_of(repository, str(where), os.path.realpath(os.getcwd()))
    blamer = Blamer(asker().rows(), repository, args.was)
    revision = repository.commit(args.at) if args.at else None
    answer = blame(blamer, path, revision, first, last, Redactor(args.redact, secrets_of(environment())))
    if args.json:
        print_json(answer)
    else:
        show(answer)
    return 0


def show(answer: dict[str, Any]) -> None:
    """Lines that follow each other and are of one origin together."""
    paper = Paper()
    before: Any = ()
    room = max(20, (paper.width or 180) - 20)
    for line in answer["lines"]:
        origin = line["origin"]
        if origin != before:
            before = origin
            paper.line(paper.paint(headline(origin), "bold" if origin else "dim"))
        commit = (line["commit"] or "not committed")[:12]
        paper.line(f"{line['line']:>6} {paper.paint(f'{commit:<12}', 'dim')} {code_line(line['text'], room)}")
    total = len(answer["lines"])
    paper.line(f"{answer['known']:,} of {total:,} lines known; {answer['sessionsLookedAt']:,} sessions looked at.")


def headline(origin: dict[str, Any] | None) -> str:
    """An origin in a line."""
    if origin is None:
        return "unknown"
    asked = f" “{one_line(origin['prompt']['text'], 80)}”" if origin["prompt"] else ""
    model = origin["model"] or "model unknown"
    name = f"{origin['agent']}:{short(origin['sessionId'])}"
    return one_line(f"{name} [{origin['record']}] {model} ({origin['evidence']}){asked}", 200)
