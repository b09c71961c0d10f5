"""What a handoff brief is: sections of items, each with the records it was taken from.

Invariants
    - Every item names its source records, and says why it is there and how much of it was left out.
    - `Brief.tokens` is `estimate(render(brief))`, and never more than `Brief.budget`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct

from asrd.errors import UsageError
from asrd.recorders.base import StreamKey
from asrd.records import AnyRecord

SCHEMA = "asrd.handoff/1"

# ---------------------------------------------------------------- what goes in


class SessionRecords(Struct, frozen=True):
    """One session of the work: its key and its records, in order, the header first."""

    key: StreamKey
    records: Sequence[AnyRecord]


class FileNow(Struct, frozen=True):
    """A file of the working tree as it is now. `sha256` is None when it is not there, or could not be read."""

    exists: bool
    sha256: str | None = None


class WorkingTree(Protocol):
    """What the shell can tell of the files as they are now. Nothing here reads a disk."""

    def file(self, path: str) -> FileNow | None:
        """The file at an absolute path; None = cannot be told (another machine)."""
        ...

    def head(self, folder: str) -> str | None:
        """The commit that the folder's version control is at; None = none, or cannot be told."""
        ...


class Work(Struct, frozen=True):
    """What is handed off: a session with its sub-agents, or several sessions, as of `now`.

    `sessions`: the first is the one that is handed off. Those that another of them started are sub-agents; any other is
    a session in its own right, earlier ones first.
    """

    sessions: Sequence[SessionRecords]
    now: datetime
    tree: WorkingTree | None = None


class BudgetTooSmall(UsageError):
    """A budget of {budget} tokens is not something asrd can do: the head of this brief alone needs {needed}; give --budget {needed} or more."""  # noqa: E501


# ---------------------------------------------------------------- what comes out


class Ref(Struct, frozen=True):
    """A record: `session` counts the brief's sessions from 0, `record` is the record's id in that session's stream."""

    session: int
    record: str

    def __str__(self) -> str:
        return self.record if self.session == 0 else f"s{self.session}:{self.record}"


Voice = Literal["user", "assistant", "data", "fact"]
"""Who speaks in an item: the user, the assistant, something that is data (tool output, file content), or the record."""


class Item(Struct, frozen=True):
    """One thing that a successor should know.

    `text` is a statement on one line; `quote` is verbatim and stands below it. `left_out`: characters of the original
    that the budget left no room for. `why` is for `asrd handoff --why`.
    """

    text: str
    refs: tuple[Ref, ...]
    voice: Voice
    why: str
    quote: str = ""
    left_out: int = 0


class Section(Struct, frozen=True):
    """Items of one kind. `omitted`: items of it that the budget left no room for; `omitted_refs` are up to five."""

    name: str
    title: str
    items: tuple[Item, ...]
    note: str = ""
    omitted: int = 0
    omitted_refs: tuple[Ref, ...] = ()


class Source(Struct, frozen=True):
    """One session of the brief: which, over which records, and what it is to the first one."""

    agent: str
    session_id: str
    namespace: str
    role: Literal["session", "sub-agent"]
    first: str
    last: str
    records: int
    version: str | None = None
    model: str | None = None
    folder: str | None = None
    branch: str | None = None
    head: str | None = None
    started: str | None = None
    ended: str | None = None
    title: str | None = None


class Brief(Struct, frozen=True):
    """A handoff brief. `removed`: how many secrets were taken out of it, by kind."""

    schema: str
    token: str
    target: str
    made: str
    sources: tuple[Source, ...]
    sections: tuple[Section, ...]
    budget: int
    tokens: int
    redaction: str
    removed: dict[str, int]
    short: bool = False
    """Whether the budget had no room for the whole head."""


TITLES = {
    "goal": "Goal",
    "asked": "What the user asked, in order",
    "rules": "Constraints and decisions",
    "plan": "Plan",
    "open": "Open now",
    "last": "Last exchange",
    "files": "Files",
    "commands": "Commands",
    "commits": "Version control",
    "agents": "Sub-agents",
    "errors": "Errors and dead ends",
    "summary": "What was summarised",
    "gaps": "What this record does not hold",
}

NOTES = {
    "asked": "A later wish goes before an earlier one.",
    "rules": "Sentences quoted from the session, found by their wording.",
    "summary": "Written by the harness or its model when it shortened its history; not checked against the record.",
}


# ---------------------------------------------------------------- tokens of the budget

_LETTERS = re.compile(r"[A-Za-z]+").findall
_DIGITS = re.compile(r"[0-9]+").findall
_MARKS = re.compile(r"[!-/:-@\[-`{-~]+").findall
_SPACES = re.compile(r"\n[ \t]*|[ \t\r\f\v]{2,}").findall
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]").findall
_BEYOND = re.compile(r"[^\x00-\x7f]+").findall


def estimate(text: str) -> int:
    """How many tokens of a model a text is, estimated to be rather too many than too few.

    A run of letters is a token for each six begun; of digits, for each three; of punctuation, for each two; a new line
    with its indentation is one, as is a longer space; anything beyond ASCII is a token for each two bytes of UTF-8.
    Cutting a text at line ends never makes it fewer. The measured error is in `docs/handoff.md`.
    """
    total = sum([(len(word) + 5) // 6 for word in _LETTERS(text)])
    total += sum([(len(number) + 2) // 3 for number in _DIGITS(text)])
    total += sum([(len(marks) + 1) // 2 for marks in _MARKS(text)])
    total += len(_SPACES(text)) + len(_CONTROLS(text))
    if not text.isascii():
        total += sum([(len(run.encode("utf-8", "surrogatepass")) + 1) // 2 for run in _BEYOND(text)])
    return total
