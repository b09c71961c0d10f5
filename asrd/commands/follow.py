"""Follow a session live: its records as they are written.

`--after rN` goes on behind a record that was seen before, so that nothing is lost or seen twice. Needs a running daemon; one
that ends (an upgrade, a crash) is waited for, and the session followed on where it was.
"""

from __future__ import annotations

import argparse
import sys

from asrd.commands import show
from asrd.commands._common import asker, here, json_argument, print_line, session_argument
from asrd.text import Paper

WAIT = 30.0
"""Seconds; a service is started again after at most 10 (asrd/service.py), and reads its store's index first."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser)
    parser.add_argument("--after", metavar="rN", help="go on behind this record")
    parser.add_argument("--from", dest="start", type=int, default=0, metavar="SEQ", help="from this record on")
    parser.add_argument("--full", action="store_true", help="texts and outputs whole")
    parser.add_argument(
        "--wait", type=float, default=WAIT, metavar="SECONDS", help=f"for a daemon that ended (default {WAIT:.0f})"
    )
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    paper, calls = Paper(), dict[str, str]()
    params = {"session": args.session, "cwd": here(), "after": args.after, "from": args.start}

    def lost() -> None:
        if args.wait > 0:
            sys.stderr.write(f"asrd: the daemon ended; waiting {args.wait:g} s for it.\n")

    for records in asker().follow(params, args.wait, lost):
        for record in records:
            if args.json:
                print_line(record)
            else:
                show.show(paper, record, args.full, calls)
        sys.stdout.flush()
    return 0
