"""Read every stream of the store and say what is whole. Changes nothing; exit code 1 when something is not."""

from __future__ import annotations

import argparse

import msgspec

from asrd.commands._common import json_argument, print_json
from asrd.paths import folders
from asrd.store.check import check
from asrd.store.disk import RealDisk
from asrd.text import Paper, size


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
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
        f"{len(found):,} streams, {records:,} records, {size(sum(f.whole for f in found))}: {len(found) - len(bad):,} whole"
    )
    return 1 if bad else 0
