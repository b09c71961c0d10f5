"""Write sessions to a file for elsewhere: `--archive FILE` takes them to another machine, with their identity.

    asrd export --archive sessions.tar.zst              all that is recorded
    asrd export --archive one.tar.zst last codex:01a2   these sessions

There, `asrd import FILE` takes it in; nothing counts twice, also where both machines have a session. An archive holds the
streams as they stand, words and all: it is as private as the store. Any tar with Zstandard reads it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from asrd import query
from asrd.archive import export
from asrd.commands._common import asker, here, json_argument, print_json
from asrd.errors import UsageError
from asrd.text import size


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("sessions", nargs="*", metavar="SESSION", help="these; without one, all that is recorded")
    parser.add_argument("--archive", metavar="FILE", help="a compressed tar of whole streams, for `asrd import`")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    if not args.archive:
        raise UsageError(what="an export without --archive FILE", command="export")
    return archive(args)


def archive(args: argparse.Namespace) -> int:
    """`--archive`."""
    rows = asker().rows()
    if args.sessions:
        named = {s.number: s for s in (query.resolve(rows, name, here()) for name in args.sessions)}
        chosen = list(named.values())
    else:
        chosen = [*rows.sessions(), *rows.own()]
    manifest = export(rows, chosen, Path(args.archive))
    if args.json:
        print_json(msgspec.to_builtins(manifest))
    else:
        whole = sum(e.bytes for e in manifest.streams)
        packed = Path(args.archive).stat().st_size
        sys.stderr.write(f"{len(manifest.streams):,} streams, {size(whole)} in {size(packed)}: {args.archive}\n")
    return 0
