"""Follow a session live: its records as they are written.

`--after rN` goes on behind a record that was seen before, so that nothing is lost or seen twice after a reconnect.
Needs a running daemon.
"""

from __future__ import annotations

import argparse
import sys

from asrd.commands import show
from asrd.commands._common import asker, here, json_argument, print_line, session_argument
from asrd.text import Paper


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser)
    parser.add_argument("--after", metavar="rN", help="go on behind this record")
    parser.add_argument("--from", dest="start", type=int, default=0, metavar="SEQ", help="from this record on")
    parser.add_argument("--full", action="store_true", help="texts and outputs whole")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    paper, calls = Paper(), dict[str, str]()
    params = {"session": args.session, "cwd": here(), "after": args.after, "from": args.start}
    for records in asker().follow(params):
        for record in records:
            if args.json:
                print_line(record)
            else:
                show.show(paper, record, args.full, calls)
        sys.stdout.flush()
    return 0
