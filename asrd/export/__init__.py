"""Sessions in the forms of other programs: one module a form, found and not registered.

- Pure: records come in, files' contents go out. What leaves was redacted before (`asrd.export.clean`).
- Every module says what its form has no place for (`LOSES`); `docs/exports.md` is made from that and from what tests count.
- A response counts once: which record of it counts was decided before (`Exported.counted`), by the same ledger as `asrd usage`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import Struct

from asrd.attribution import Commit
from asrd.export.view import Figures
from asrd.records import AnyRecord, Session
from asrd.redact import Mode


class Exported(Struct):
    """One session: its records, in order, without words that may not leave.

    `counted`: figures of the responses that count in it, by the `seq` of the inference record they are shown at;
    `elsewhere`: those of responses that are its own and stand in no record of it. `parent`: the number (in `Given.sessions`)
    of the session that started it, and the call that did.
    """

    agent: str
    session_id: str
    namespace: str
    records: list[AnyRecord]
    counted: dict[int, Figures]
    elsewhere: list[Figures] = []
    parent: int | None = None
    parent_call: str | None = None

    @property
    def header(self) -> Session | None:
        """The header, where the stream has one."""
        first = self.records[0] if self.records else None
        return first if isinstance(first, Session) else None

    def total(self) -> Figures:
        """All that counts of it."""
        return Figures.sum([*self.counted.values(), *self.elsewhere])


class Given(Struct):
    """What is exported: sessions (those that were started by another stand after it), and how they were redacted.

    `commits`: what is known of the commits of a repository, for the forms that attribute lines.
    """

    sessions: list[Exported]
    redaction: Mode
    removed: dict[str, int]
    version: str
    content: bool = True
    """Whether forms that leave words out by their own convention are to hold them."""
    licence: str | None = None
    commits: list[Commit] = []

    def roots(self) -> list[int]:
        """The sessions that none of the others started."""
        return [n for n, s in enumerate(self.sessions) if s.parent is None]

    def children(self, number: int) -> list[int]:
        """The sessions that one started."""
        return [n for n, s in enumerate(self.sessions) if s.parent == number]

    def tree(self, number: int) -> list[int]:
        """One and all that it started, at any remove."""
        return [number, *(d for c in self.children(number) for d in self.tree(c))]


class File(Struct, frozen=True):
    """One file to write: its name (no folders) and its bytes."""

    name: str
    data: bytes


class Format(Struct, frozen=True):
    """A form: its name, what a person calls it, how it is made, and what it has no place for."""

    name: str
    title: str
    make: Callable[[Given], list[File]]
    loses: dict[str, str]
    """By record type, what becomes of it; `*` is all others. `kept` in a text means nothing is lost of it."""
    repository: bool = False
    """Whether it speaks of lines of a repository (`Given.commits`)."""
    joined: bool = False
    """Whether what it makes of several `Given` is one file: its bytes, one behind the other."""


@cache
def formats() -> dict[str, Format]:
    """Every form by its name. A module binds `FORMAT`."""
    found: dict[str, Format] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        loaded: Any = import_module(f"{__name__}.{module}")
        if hasattr(loaded, "FORMAT"):
            found[loaded.FORMAT.name] = loaded.FORMAT
    return dict(sorted(found.items()))
