"""Compress streams that are at rest (seekable Zstandard). Every command reads them as before.

Without a session: all that had no record for as long as `[seal] after` in config.toml says (30 days), or `--after`. A
session that goes on is unsealed by itself. The daemon does this once an hour.
"""

from __future__ import annotations

import argparse

from asrd.commands._common import asker, here, json_argument
from asrd.commands._upkeep import ask, tell
from asrd.errors import UsageError
from asrd.paths import folders
from asrd.settings import age, read
from asrd.upkeep import Job


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("sessions", nargs="*", metavar="SESSION", help="these, however long they rest")
    parser.add_argument("--after", metavar="30d", help="sessions without a record for so long (h, d, w, y)")
    parser.add_argument("--undo", action="store_true", help="make these sessions' streams plain again")
    parser.add_argument("--dry-run", action="store_true", help="say what would be compressed, change nothing")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it; 1 where a stream could not be changed."""
    if args.undo and not args.sessions:
        raise UsageError(what="--undo without a session", command="seal")
    if args.sessions:
        to = asker()
        paths = [to.ask("session.get", {"session": s, "cwd": here()})["session"]["stream"] for s in args.sessions]
        job = Job(unseal=paths, dry_run=args.dry_run) if args.undo else Job(seal=paths, dry_run=args.dry_run)
        return tell(ask(job), args, "They are so already.")
    where = folders()
    after = read(where.config, where.home).seal.after
    if args.after:
        try:
            after = age(args.after)
        except ValueError as error:
            raise UsageError(what=f"{args.after} (it takes {error})", command="seal") from error
    seconds = None if after is None else after.total_seconds()
    return tell(ask(Job(after=seconds, dry_run=args.dry_run)), args, "Nothing rests that is not compressed.")
