"""Brings a session's records to `handoff`: the session named, its sub-agents, the working tree as it is now."""

from __future__ import annotations

from typing import Any

import msgspec

from asrd import clock, query
from asrd.handoff import Brief, SessionRecords, Work, brief, render
from asrd.query import Rows, Stored
from asrd.recorders.base import StreamKey
from asrd.records import AnyRecord, decode
from asrd.worktree import RealTree


def work_of(rows: Rows, refs: list[str], cwd: str | None, alone: bool = False) -> Work:
    """The sessions named, each with its sub-agents unless `alone`. Raises NothingFound, Ambiguous."""
    stored = [query.resolve(rows, ref, cwd) for ref in refs]
    numbers = [s.number for s in stored]
    if not alone:
        stored += rows.numbered(sorted(query.below(rows, numbers)))
    tree = RealTree({s.row.cwd for s in stored if s.row.cwd})
    return Work([SessionRecords(key_of(s), records_of(rows, s)) for s in stored], clock.now(), tree)


def key_of(stored: Stored) -> StreamKey:
    """What names a session."""
    return StreamKey(stored.row.agent, stored.row.session_id, stored.row.namespace)


def records_of(rows: Rows, stored: Stored) -> list[AnyRecord]:
    """The records of a session that this version knows, in order."""
    found: list[AnyRecord] = []
    for line in rows.lines(stored, 0):
        try:
            found.append(decode(line))
        except msgspec.MsgspecError:
            continue  # a record of a later version: the brief is of what is understood
    return found


def make(rows: Rows, params: Any) -> Brief:
    """The brief that these parameters ask for (`answers.HandoffParams`)."""
    refs = [params.session, *params.also]
    work = work_of(rows, refs, params.cwd, params.alone)
    return brief(work, params.budget, target=params.to, redact=params.redact)


def answer(rows: Rows, params: Any) -> dict[str, Any]:
    """`handoff`: the brief as structure and as Markdown."""
    made = make(rows, params)
    return {"schema": "asrd.handoff/1", "brief": msgspec.to_builtins(made), "markdown": render(made)}
