"""Make the index anew from the streams alone. Answers are the same afterwards; it only takes time."""

from __future__ import annotations

import argparse
import sys

from asrd.paths import folders
from asrd.plural import many
from asrd.store import Store
from asrd.store.lock import locked


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes: nothing."""


def run(args: argparse.Namespace) -> int:
    """Runs it. Raises StoreLocked while a daemon records."""
    where = folders()
    with locked(where.lock):
        store = Store(where)
        count = store.reindex()
        store.close()
    sys.stderr.write(f"{many(count, 'stream')} indexed anew.\n")
    return 0
