"""What `retain` and `seal` share: the job is done by the daemon where one runs, else here."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from asrd import clock
from asrd.commands._common import asker, print_json
from asrd.paths import folders
from asrd.store import Store
from asrd.store.lock import locked
from asrd.text import Paper, inert, size
from asrd.upkeep import Job, Upkeep, work


def ask(job: Job) -> dict[str, Any]:
    """The job's answer. Raises StoreLocked where another asrd records and does not answer."""
    to = asker()
    if to.daemon:
        return to.ask("upkeep", msgspec.to_builtins(job), patient=True)
    where = folders()
    with locked(where.lock):
        store = Store(where)
        try:
            store.index.catch_up(store.disk)
            return work(Upkeep(store), job, clock.now())
        finally:
            store.close()


def tell(answer: dict[str, Any], args: argparse.Namespace, nothing: str) -> int:
    """Says what was done; 1 where something was left that should not have been."""
    if args.json:
        print_json(answer)
    left = 0
    words = {"retained": "words gone", "sealed": "compressed", "unsealed": "plain again"}
    paper = Paper()
    for name, deeds in answer.items():
        if name not in words:
            continue
        rows: list[list[Any]] = []
        for one in deeds:
            left += one["kept"] is not None
            became = "" if answer["dryRun"] else one["kept"] or size(one["after"])
            rows.append([inert(one["agent"]), inert(one["sessionId"]), one["rule"], size(one["before"]), became])
        if not rows or args.json:
            continue
        would = "would be: " if answer["dryRun"] else ""
        before, after = (
            sum(d["before"] for d in deeds),
            sum(d["before"] if d["kept"] else d["after"] or 0 for d in deeds),
        )
        foot = [f"{len(rows):,}", "", "", size(before), "" if answer["dryRun"] else size(after)]
        paper.table(["harness", "session", would + words[name], "bytes", "now"], rows, right=(3,), foot=foot)
    if not args.json and not any(answer[name] for name in words):
        paper.line(nothing)
    return 1 if left else 0
