"""Gives a session's state to another agent or person: records in, a brief and a way to start the target out.

Pure: no disk, no clock, no model. The shell brings the records, the time and what it sees of the working tree.
"""

from asrd.handoff.branch import live, slim
from asrd.handoff.brief import (
    Brief,
    BudgetTooSmall,
    FileNow,
    Item,
    Ref,
    Section,
    SessionRecords,
    Source,
    Work,
    WorkingTree,
    estimate,
)
from asrd.handoff.render import explain, render
from asrd.handoff.select import DEFAULT_BUDGET, brief
from asrd.handoff.targets import Options, PlannedFile, Start, Target, start, target_named, targets

__all__ = [
    "DEFAULT_BUDGET", "Brief", "BudgetTooSmall", "FileNow", "Item", "Options", "PlannedFile", "Ref", "Section",
    "SessionRecords", "Source", "Start", "Target", "Work", "WorkingTree", "brief", "estimate", "explain",
    "live", "render", "slim", "start", "target_named", "targets",
]  # fmt: skip
