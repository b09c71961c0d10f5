"""Take in an archive that `asrd export --archive` made, here or on another machine. Nothing counts twice.

A session is told by its harness and id. What is new comes in; what is here and shorter grows; what is here stays. A session
that went on otherwise on both machines is kept beside, and what both have counts once; `asrd show asrd:upkeep` says what
came in.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from asrd import clock
from asrd.archive import take_in
from asrd.commands._common import asker, json_argument, print_json
from asrd.errors import ArchiveUnusable
from asrd.paths import folders
from asrd.store import Store
from asrd.store.disk import make_folder
from asrd.store.lock import locked
from asrd.text import Paper, inert
from asrd.upkeep import Upkeep


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("file", metavar="FILE", help="the archive")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    answer = _ask(Path(args.file))
    if args.json:
        print_json(answer)
        return 0
    words = {
        "new": "new here",
        "longer": "longer there; what was missing was added",
        "here": "here already",
        "conflict": "went on otherwise here; kept beside",
        "other": "another session has its id here; kept beside",
    }
    paper = Paper()
    for outcome, said in words.items():
        found = [s for s in answer["streams"] if s["outcome"] == outcome]
        if found:
            added = sum(s["added"] for s in found)
            paper.line(f"{len(found):>6,} {said}" + (f" ({added:,} records)" if added else ""))
        for one in found if outcome in ("conflict", "other") else ():
            paper.line(f"       {inert(one['agent'])} {inert(one['sessionId'])}: {inert(one['path'])}")
    if not answer["streams"]:
        sys.stderr.write("The archive is empty.\n")
    return 0


def _ask(archive: Path) -> dict[str, Any]:
    where = folders()
    if not archive.is_file():
        raise ArchiveUnusable(archive=archive, reason="it is no file")
    to = asker()
    if not to.daemon:
        with locked(where.lock):
            store = Store(where)
            try:
                store.index.catch_up(store.disk)
                return take_in(Upkeep(store), archive)
            finally:
                store.close()
    # A hardened daemon sees neither this terminal's /tmp nor folders of others: it gets a copy in its store.
    make_folder(where.store / "incoming")
    copy = where.store / "incoming" / f"{clock.seconds():.6f}.tar.zst"
    try:
        shutil.copyfile(archive, copy)
        return to.ask("import", {"file": str(copy)}, patient=True)
    except OSError as error:
        raise ArchiveUnusable(archive=archive, reason=error.strerror or str(error)) from error
    finally:
        copy.unlink(missing_ok=True)
