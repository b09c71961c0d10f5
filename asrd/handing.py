"""Brings a session's records to `handoff`: the session named, its sub-agents, the working tree as it is now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from asrd import clock, query
from asrd.handoff import Brief, SessionRecords, Work, brief, render, slim
from asrd.handoff.native import NativeFile, native
from asrd.paths import environment
from asrd.query import Rows, Stored
from asrd.recorders.base import StreamKey
from asrd.records import AnyRecord, decode
from asrd.redact import holds_secret
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
        for record in records(rows, one):
            found.append(slim(record))
            read += 1
            if read % OFTEN == 0:
                progress(read, total)
        sessions.append(SessionRecords(key_of(one), found))
    return Work(sessions, clock.now(), tree)


def key_of(stored: Stored) -> StreamKey:
    """What names a session."""
    return StreamKey(stored.row.agent, stored.row.session_id, stored.row.namespace)


def records(rows: Rows, stored: Stored) -> Iterator[AnyRecord]:
    """The records of a session that this version knows, in order."""
    for line in rows.lines(stored, 0):
        try:
            yield decode(line)
        except msgspec.MsgspecError:
            continue  # a record of a later version: what is made is of what is understood


def records_of(rows: Rows, stored: Stored) -> list[AnyRecord]:
    """All of them, whole."""
    return list(records(rows, stored))


def secrets_here(env: Mapping[str, str] | None = None) -> list[str]:
    """The values that this environment (default: the process's) holds under names of secrets."""
    env = environment() if env is None else env
    return [value for name, value in env.items() if value and holds_secret(name)]


def make(rows: Rows, params: Any, progress: Progress = no_progress) -> Brief:
    """The brief that these parameters ask for (`answers.HandoffParams`).

    Values of variables that hold secrets are taken out wherever they stand: those of the process that makes the brief.
    """
    refs = [params.session, *params.also]
    work = work_of(rows, refs, params.cwd, params.alone, progress)
    return brief(work, params.budget, target=params.to, redact=params.redact, known_secrets=secrets_here())


def make_native(rows: Rows, params: Any, folder: str | None = None) -> NativeFile:
    """The session that these parameters name as a session file of the target, to go on in `folder` (default: its own).

    Raises NothingFound, Ambiguous, UsageError.
    """
    stored = query.resolve(rows, params.session, params.cwd)
    work = Work([SessionRecords(key_of(stored), records_of(rows, stored))], clock.now())
    return native(work, params.to, budget=params.budget, redact=params.redact, known_secrets=secrets_here(), cwd=folder)


def answer(rows: Rows, params: Any) -> dict[str, Any]:
    """`handoff`: the brief as structure and as Markdown."""
    made = make(rows, params)
    return {"schema": "asrd.handoff/1", "brief": msgspec.to_builtins(made), "markdown": render(made)}
