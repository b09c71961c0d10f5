"""Brings a session's records to `handoff`: the session named, its sub-agents, the working tree as it is now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from asrd import clock, query
from asrd.handoff import DEFAULT_BUDGET, Brief, SessionRecords, Work, brief, render, slim
from asrd.handoff.native import DEFAULT_NATIVE_BUDGET, NativeFile, native
from asrd.paths import environment
from asrd.query import Rows, key_of, known_records, records_of
from asrd.records import AnyRecord
from asrd.redact import secrets_of
from asrd.worktree import RealTree

Progress = Callable[[int, int], None]
"""Told how many records were read, of how many, every so often."""
OFTEN = 2_000


def no_progress(read: int, of: int) -> None:
    """Nobody watches."""


def work_of(
    rows: Rows, refs: list[str], cwd: str | None, alone: bool = False, progress: Progress = no_progress
) -> Work:
    """The sessions named, each with its sub-agents unless `alone`, without what no brief shows.

    Raises NothingFound, Ambiguous.
    """
    stored = [query.resolve(rows, ref, cwd) for ref in refs]
    numbers = [s.number for s in stored]
    if not alone:
        stored += rows.numbered(sorted(query.below(rows, numbers)))
    tree = RealTree({s.row.cwd for s in stored if s.row.cwd})
    total, read = sum(s.row.records for s in stored), 0
    sessions: list[SessionRecords] = []
    for one in stored:
        found: list[AnyRecord] = []
        for record in known_records(rows, one):
            found.append(slim(record))
            read += 1
            if read % OFTEN == 0:
                progress(read, total)
        sessions.append(SessionRecords(key_of(one), found))
    return Work(sessions, clock.now(), tree)


def make(rows: Rows, params: Any, progress: Progress = no_progress) -> Brief:
    """The brief that these parameters ask for (`answers.HandoffParams`).

    Values of variables that hold secrets are taken out wherever they stand: those of the process that makes the brief.
    """
    refs = [params.session, *params.also]
    work = work_of(rows, refs, params.cwd, params.alone, progress)
    budget = DEFAULT_BUDGET if params.budget is None else params.budget
    return brief(work, budget, target=params.to, redact=params.redact, known_secrets=secrets_of(environment()))


def make_native(rows: Rows, params: Any, folder: str | None = None) -> NativeFile:
    """The session that these parameters name as a session file of the target, to go on in `folder` (default: its own).

    Raises NothingFound, Ambiguous, UsageError.
    """
    stored = query.resolve(rows, params.session, params.cwd)
    work = Work([SessionRecords(key_of(stored), records_of(rows, stored))], clock.now())
    budget = DEFAULT_NATIVE_BUDGET if params.budget is None else params.budget
    return native(
        work, params.to, budget=budget, redact=params.redact, known_secrets=secrets_of(environment()), cwd=folder
    )


def answer(rows: Rows, params: Any) -> dict[str, Any]:
    """`handoff`: the brief as structure and as Markdown."""
    made = make(rows, params)
    return {"schema": "asrd.handoff/1", "brief": msgspec.to_builtins(made), "markdown": render(made)}
