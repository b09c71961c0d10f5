"""Say why a commit is: which session made it, and which sessions, turns and prompts its lines come from.

`committed by` is who was seen to run the commit (its id stands in a recorded output, or that of a commit with the same
patch). Lines are blamed one by one as `asrd blame` does it; what is not proved is unknown.
"""

from __future__ import annotations

import argparse

from asrd.blaming import Blamer, why
from asrd.commands._common import asker, here, json_argument, print_json, short
from asrd.commands.blame import headline
from asrd.paths import environment
from asrd.redact import MODES, Redactor, secrets_of
from asrd.repository import Repository
from asrd.text import Paper, inert, one_line


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("commit", metavar="COMMIT", nargs="?", default="HEAD", help="a commit, as git names it")
    parser.add_argument("--repo", metavar="DIR", help="the repository (default: this folder's)")
    parser.add_argument("--was", metavar="DIR", help="where the repository lay when it was recorded, if elsewhere")
    parser.add_argument("--redact", choices=MODES, default="default")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    repository = Repository(args.repo or here())
    commit = repository.commit(args.commit)
    blamer = Blamer(asker().rows(), repository, args.was)
    answer = why(blamer, commit, Redactor(args.redact, secrets_of(environment())))
    if args.json:
        print_json(answer)
        return 0
    paper = Paper()
    paper.line(f"{answer['commit'][:12]} {answer['at']} {one_line(answer['subject'], 100)}")
    for made in answer["committedBy"] or [None]:
        paper.line(f"committed by {headline(made) if made else 'unknown'}")
    for one in answer["sessions"]:
        name = f"{one['agent']}:{short(one['sessionId'])}"
        models = ", ".join(one["models"]) or "model unknown"
        paper.line(inert(f"{one['lines']:,} lines of {name}, {models} ({', '.join(one['evidence'])})"))
        for turn in one["turns"]:
            asked = turn["prompt"]
            said = f"“{one_line(asked['text'], 120)}” [{asked['record']}]" if asked else "prompt unknown"
            paper.line(f"  {said}")
    paper.line(
        f"{answer['unknownLines']:,} lines of unknown origin; {answer['sessionsLookedAt']:,} sessions looked at."
    )
    return 0
