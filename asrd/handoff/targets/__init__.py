"""The programs that can take work over, one small module each: found, not registered."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from asrd.errors import UsageError
from asrd.handoff.targets.base import Options, PlannedFile, Start, Target, plan

__all__ = ["Options", "PlannedFile", "Start", "Target", "start", "target_named", "targets"]


@cache
def targets() -> dict[str, Target]:
    """Every target by its name, in the order of the names."""
    found: dict[str, Target] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name != "base":
            target: Target = importlib.import_module(f"{__name__}.{module.name}").TARGET
            found[target.name] = target
    return dict(sorted(found.items()))


def target_named(name: str) -> Target:
    """The target of that name, or with that other name. Raises UsageError when there is none."""
    for target in targets().values():
        if name == target.name or name in target.aliases:
            return target
    raise UsageError(what=f"handing off to {name} (there are {', '.join(targets())})", command="handoff")


def start(target: str, text: str, options: Options | None = None) -> Start:
    """How to start a target with a brief as its first prompt, as a value: nothing is started or written here.

    Raises UsageError for an unknown target, ValueError as `plan` does.
    """
    return plan(target_named(target), text, options or Options())
