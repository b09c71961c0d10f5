"""Let the words of old sessions go, by the rules of config.toml or the one given. What counts stays.

Each record stays with its place, times, ids and figures, so `usage`, `ls`, `tree` and `report` do not change; messages,
inputs and outputs of tools and diffs go, and do not come back from the harness's files. The stream's header says so, and
asrd's own stream (`asrd show asrd:upkeep`) says what was done. Without a rule nothing goes. `--dry-run` only says.

    asrd retain --dry-run --age 180d
    asrd retain --size 20GB --harness codex
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from asrd.commands._common import json_argument
from asrd.commands._upkeep import ask, tell
from asrd.errors import UsageError
from asrd.paths import folders
from asrd.retention import Rule
from asrd.settings import age, read, size
from asrd.upkeep import Job


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("--dry-run", action="store_true", help="say what would go, change nothing")
    parser.add_argument("--age", metavar="90d", help="sessions without a record for so long (h, d, w, y)")
    parser.add_argument("--size", metavar="20GB", help="the oldest, until all are smaller")
    parser.add_argument("--harness", help="only sessions of this harness")
    parser.add_argument("--project", metavar="FOLDER", help="only sessions in this folder or below")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it; 1 where a stream could not be changed."""
    where = folders()
    settings = read(where.config, where.home)
    rules = [_rule(args)] if args.age or args.size else list(settings.retain)
    if not (args.age or args.size) and (args.harness or args.project):
        raise UsageError(what="--harness or --project without --age or --size", command="retain")
    nothing = "No rule is set; give --age or --size, or write `[[retain]]` into " + str(where.config) + "."
    if rules:
        nothing = "Nothing is old or large enough."
    return tell(ask(Job(rules=rules, dry_run=args.dry_run)), args, nothing)


def _rule(args: argparse.Namespace) -> Rule:
    try:
        project = None if args.project is None else os.path.abspath(Path(args.project).expanduser())
        return Rule(age(args.age) if args.age else None, size(args.size) if args.size else None, args.harness, project)
    except ValueError as error:
        raise UsageError(what=f"{args.age or ''} {args.size or ''} (it takes {error})", command="retain") from error
