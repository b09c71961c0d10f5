"""Bring every session of this machine up to date in the store, and end.

The same as `asrd run --once`. While a daemon runs there is nothing to do: it keeps up by itself.
"""

from __future__ import annotations

import argparse
import sys

from asrd import clock
from asrd.commands._common import json_argument, print_json
from asrd.daemon import sync_once
from asrd.errors import StoreLocked
from asrd.paths import environment, folders
from asrd.plural import many
from asrd.store.lock import holder
from asrd.text import size


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    json_argument(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes that read what is new (default: one a core)")


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    where = folders()
    pid = holder(where.lock)
    if pid is not None:
        if pid and not args.json:
            sys.stderr.write(f"asrd: the daemon (process {pid}) keeps this store up to date.\n")
            return 0
        raise StoreLocked(pid=pid, store=where.store)
    bar = Bar() if sys.stderr.isatty() and not args.quiet and not args.json else None
    began = clock.ticks()
    done = sync_once(where, environment(), bar.show if bar else None, args.jobs)
    took = clock.ticks() - began
    if bar:
        bar.clear()
    if args.json:
        print_json({"schema": "asrd.sync/1", **done, "seconds": round(took, 3)})
    elif not args.quiet:
        sys.stderr.write(
            f"{many(done['sources'], 'source')} had something new, {size(done['bytes'])} read in {took:.1f} s. `asrd ls` lists.\n"
        )
    return 0


class Bar:
    """A line that says how far it is, on a terminal."""

    def __init__(self) -> None:
        self._began = clock.ticks()
        self._last = 0.0

    def show(self, done: int, groups: int, taken: int) -> None:
        """The line anew, at most ten times a second."""
        now = clock.ticks()
        if now - self._last < 0.1 and done < groups:
            return
        self._last = now
        passed = max(now - self._began, 0.001)
        share = done / groups if groups else 1.0
        left = passed / share - passed if share > 0.02 else 0
        filled = int(share * 24)
        sys.stderr.write(
            f"\r\x1b[K[{'█' * filled}{'·' * (24 - filled)}] {done:,}/{groups:,} sources  {size(taken)}  "
            f"{size(int(taken / passed))}/s" + (f"  {left:.0f} s left" if left >= 1 else "")
        )
        sys.stderr.flush()

    def clear(self) -> None:
        """Takes the line away."""
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
