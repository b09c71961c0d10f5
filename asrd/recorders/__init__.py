"""One harness a module; they are found, not registered: `load()` gives every recorder in this folder."""

from __future__ import annotations

import logging
import pkgutil
from functools import cache
from importlib import import_module

from asrd.errors import UnknownHarness
from asrd.recorders.base import Recorder

_NOT_HARNESSES = {"base"}
log = logging.getLogger("asrd")
broken: list[str] = []
"""Modules that could not be loaded; `asrd doctor` says so."""


@cache
def load() -> dict[str, type[Recorder]]:
    """Every recorder by its harness's name, in order of name. A module binds `RECORDER`, or `RECORDERS` for several."""
    found: dict[str, type[Recorder]] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        if module in _NOT_HARNESSES or module.startswith("_"):
            continue
        try:
            loaded = import_module(f"{__name__}.{module}")
        except Exception:  # one recorder that cannot be loaded must not stop the others
            log.exception("the recorder %s cannot be loaded; its harness is not recorded", module)
            broken.append(module)
            continue
        if hasattr(loaded, "RECORDER"):
            found[loaded.RECORDER.harness] = loaded.RECORDER
        for recorder in getattr(loaded, "RECORDERS", ()):
            found[recorder.harness] = recorder
    return dict(sorted(found.items()))


def named(harness: str) -> type[Recorder]:
    """The recorder of a harness. Raises UnknownHarness."""
    recorders = load()
    if harness not in recorders:
        raise UnknownHarness(harness=harness, known=", ".join(recorders))
    return recorders[harness]
