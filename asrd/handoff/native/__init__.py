"""Writes a session's visible history as a session file of another program, one small module a program: found, not registered.

Nothing here is written to a disk: a file comes out as a value. Its history is marked as imported, so that it is a copy
for every recorder of asrd and never counts.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from datetime import datetime
from functools import cache

from asrd.errors import UsageError
from asrd.handoff.brief import Work
from asrd.handoff.native.base import DEFAULT_NATIVE_BUDGET, History, NativeFile, Said, Writer, history
from asrd.redact import Mode

__all__ = [
    "DEFAULT_NATIVE_BUDGET", "History", "NativeFile", "Said", "Writer", "history", "native", "writers",
]  # fmt: skip


@cache
def writers() -> dict[str, Writer]:
    """Every program whose files can be written, by the name of its target."""
    found: dict[str, Writer] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name != "base":
            found[module.name] = importlib.import_module(f"{__name__}.{module.name}").WRITER
    return dict(sorted(found.items()))


def native(
    work: Work,
    target: str,
    *,
    budget: int = DEFAULT_NATIVE_BUDGET,
    redact: Mode = "default",
    known_secrets: Iterable[str] = (),
    cwd: str | None = None,
    now: datetime | None = None,
) -> NativeFile:
    """The first session of some work as a session file of the target. `cwd`: the folder it is to go on in.

    Raises UsageError where no file of that target can be written, or the session has nothing that was said.
    """
    writer = writers().get(target)
    if writer is None:
        raise UsageError(what=f"a session file for {target} (there are {', '.join(writers())})", command="handoff")
    return writer(history(work, target, budget, redact, known_secrets, cwd, now or work.now))
