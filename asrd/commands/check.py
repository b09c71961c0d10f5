"""Read every stream of the store and say what is whole. Changes nothing; exit code 1 when something is not.

`--repair` makes damaged streams whole: what cannot be read is put aside below `quarantine/` as it is, the rest is kept, and
a `gap` record stands in the place of each record that is missing. Sources that are still there are read again.
"""

from __future__ import annotations

import argparse

import msgspec

from asrd.commands._common import json_argument, print_json
from asrd.paths import folders
from asrd.plural import many
from asrd.store import Store
from asrd.store.check import check
from asrd.store.disk import RealDisk
from asrd.store.lock import locked
from asrd.store.repair import repair
from asrd.text import Paper, size


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("--repair", action="store_true", help="make damaged streams whole; nothing is discarded")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it. Raises StoreLocked with `--repair` while a daemon records."""
    if args.repair:
        return _repair(args)
    found = list(check(RealDisk(), folders().streams))
    bad = [f for f in found if f.trouble]
    torn = [f for f in found if f.torn and not f.trouble]
    if args.json:
        print_json({"schema": "asrd.check/1", "streams": [msgspec.to_builtins(f) for f in found]})
        return 1 if bad else 0
    paper = Paper()
    for one in bad:
        paper.line(
            paper.paint("damaged ", "red") + f"{one.path}: {one.trouble}; its first {one.records:,} records are whole"
        )
    for one in torn:
        paper.line(
            paper.paint("torn    ", "yellow")
            + f"{one.path}: {one.torn} bytes at the end, cut off when it is next written"
        )
    records = sum(f.records for f in found)
    paper.line(
        f"{many(len(found), 'stream')}, {many(records, 'record')}, {size(sum(f.whole for f in found))}: "
        f"{len(found) - len(bad):,} whole"
    )
    return 1 if bad else 0


def _repair(args: argparse.Namespace) -> int:
    where = folders()
    with locked(where.lock):
        store = Store(where)
        try:
            done = list(repair(store))
        finally:
            store.close()
    if args.json:
        print_json({"schema": "asrd.repair/1", "streams": [msgspec.to_builtins(d) for d in done]})
        return 0
    paper = Paper()
    for one in done:
        paper.line(
            f"{one.path}: {one.what}; {many(one.kept, 'record')} kept"
            + (f", {many(one.gaps, 'gap')}" if one.gaps else "")
        )
        for name in one.aside:
            paper.line(f"  put aside: {where.store / 'quarantine' / name}")
    paper.line(
        f"{many(len(done), 'stream')} repaired. `asrd sync` takes what is missing from the sources that are still there."
        if done
        else "Every stream is whole."
    )
    return 0
