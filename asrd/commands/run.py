"""Record in the foreground until stopped (SIGTERM, Ctrl-C); `--once` brings everything up to date and ends.

This is what the user service runs. Sessions are seen as they are written; `asrd status` says how it goes.
"""

from __future__ import annotations

import argparse
import logging
import sys

import anyio

from asrd.commands import sync
from asrd.daemon import Daemon
from asrd.paths import environment, folders


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("--once", action="store_true", help="bring everything up to date and end (= asrd sync)")
    parser.add_argument("--verbose", action="store_true", help="say more on stderr")
    sync.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    if args.once:
        return sync.run(args)
    logging.basicConfig(
        stream=sys.stderr, level=logging.DEBUG if args.verbose else logging.INFO, format="%(levelname)s %(message)s"
    )
    for noisy in ("watchfiles", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    where = folders()
    daemon = Daemon(where, environment())
    log = logging.getLogger("asrd")
    anyio.run(daemon.run, lambda: log.info("recording into %s, answering at %s", where.store, where.socket))
    return 0
