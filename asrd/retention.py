"""What is kept of a session whose words are not kept any longer: every record's line without its words. Pure.

Promises
    - Each record stays at its place, with its `seq`, `id`, times, ids and span: links and handoffs still find it, and a
      source that is read again is recognised, so that nothing comes back.
    - What counts stays: figures, turns, calls with their outcome, changed files, commits, gaps. `same` proves it for a
      stream before it is put in the old one's place.
    - The header says so: `contentLevel` `metadata`, and under `_meta` `dev.asrd.retained` by which rule, through which
      `seq`, and of how many bytes.

Words go from messages, thoughts, inputs and outputs of tools, diffs, plans, summaries, and native records. The first
prompt keeps what lists show of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from asrd.handoff_token import TOKEN_LINE
from asrd.oneoff import one_off
from asrd.records import (
    SOURCE,
    SPAN,
    Approval,
    Block,
    Compaction,
    Config,
    FileChange,
    Loss,
    MemoryWrite,
    Message,
    MessageSent,
    Native,
    Other,
    Plan,
    Record,
    Session,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from asrd.rollup import OBSERVED, ONE_OFF, PROMPT_LENGTH, RETAINED, TOKEN_LENGTH, Fold, Retained, SessionRow

FRESH = timedelta(hours=1)
"""A session that had a record so lately is left alone, whatever a rule says: it may be at work."""

# ---------------------------------------------------------------- which sessions


class Rule(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One rule of `retain`: the words of sessions go when they are older than `age`, or while all are larger than `size`.

    `harness`, `project` (a folder and what lies below): only of these sessions.
    """

    age: timedelta | None = None
    size: int | None = None
    harness: str | None = None
    project: str | None = None

    def concerns(self, held: Held) -> bool:
        """Whether a session is one of those the rule is about."""
        if self.harness is not None and held.agent != self.harness:
            return False
        if self.project is None:
            return True
        below = self.project.rstrip("/") + "/"
        return held.cwd is not None and (held.cwd == self.project or held.cwd.startswith(below))


class Held(Struct, frozen=True):
    """A stream as upkeep sees it. `size`: bytes its file has, sealed or not; `last_at`: of its last record, or its file."""

    agent: str
    session_id: str
    namespace: str
    path: str
    cwd: str | None
    last_at: datetime
    size: int
    records: int = 0
    through: int = -1
    """The last `seq` without words, where there are such."""

    @property
    def wordless(self) -> bool:
        """Whether no record of it has words any more."""
        return self.through >= self.records - 1


class Due(Struct, frozen=True):
    """A stream whose words go, and by which rule, in words."""

    held: Held
    rule: str


def due(rules: Iterable[Rule], streams: Iterable[Held], now: datetime) -> list[Due]:
    """The streams whose words go, each once, the oldest first."""
    ordered = sorted(streams, key=lambda h: (h.last_at, h.path))
    found: dict[str, Due] = {}
    for rule in rules:
        mine = [h for h in ordered if rule.concerns(h)]
        can = [h for h in mine if not h.wordless and now - h.last_at >= FRESH]
        if rule.age is not None:
            for held in can:
                if now - held.last_at >= rule.age:
                    found.setdefault(held.path, Due(held, f"older than {_days(rule.age)}"))
        if rule.size is not None:
            left = sum(h.size for h in mine if h.path not in found)
            for held in can:
                if left <= rule.size:
                    break
                if held.path not in found:
                    found[held.path] = Due(held, f"more than {rule.size:,} bytes in all")
                    left -= held.size
    return sorted(found.values(), key=lambda d: (d.held.last_at, d.held.path))


def _days(age: timedelta) -> str:
    return f"{age.days} days" if age >= timedelta(days=2) else f"{int(age.total_seconds() // 3600)} hours"


# ---------------------------------------------------------------- what stays of a record

_WHOLE = ("turn", "inference", "usage_total", "limit", "link", "vcs", "capture", "gap", "end")
"""Types that hold facts and no words: they stay as they are."""
_MARKS = (SPAN, SOURCE, ONE_OFF, OBSERVED, RETAINED)
_LONG = 1000
"""Bytes above which vendor data of a record of facts is taken for words (the descriptions of tools, say)."""


class Slimmer:
    """Takes the words out of one stream's records, in order."""

    def __init__(self, said: Retained) -> None:
        self._said = said
        self._prompted = False

    def slim(self, record: Record) -> Record:
        """The record without its words. The one given is changed."""
        meta: dict[str, Any] | None = getattr(record, "meta", None)
        facts = str(record.__struct_config__.tag) in _WHOLE
        if meta is not None and (facts or isinstance(record, Config | Session)):
            record.meta = {k: v for k, v in meta.items() if k in _MARKS or _short(v)} or None  # type: ignore[attr-defined]
        if facts:
            return record
        if isinstance(record, Session):
            return self._header(record)
        if meta is not None and not isinstance(record, Config):
            record.meta = {k: v for k, v in meta.items() if k in _MARKS} or None  # type: ignore[attr-defined]
        if isinstance(record, Message):
            record.content = self._message(record)
        elif isinstance(record, ToolCall):
            if one_off(record.input):
                record.meta = {**(record.meta or {}), ONE_OFF: True}
            record.input, record.title = {}, None
        elif isinstance(record, ToolResult):
            record.content = [_bare(b) for b in record.content] if record.content else record.content
            if record.exec is not None:
                record.exec.command = record.exec.stdout = record.exec.stderr = None
        elif isinstance(record, FileChange):
            record.diff = None
        elif isinstance(record, Plan):
            record.items = []
        elif isinstance(record, Compaction):
            record.summary = None
        elif isinstance(record, Config):
            record.tools = None
        elif isinstance(record, MessageSent | MemoryWrite):
            record.content = None
        elif isinstance(record, Native):
            record.data = None
        elif isinstance(record, Loss):
            record.preview = None
        else:
            assert isinstance(record, Approval)
        return record

    def _header(self, record: Session) -> Session:
        record.content_level = "metadata"
        record.meta = {**(record.meta or {}), RETAINED: msgspec.to_builtins(self._said)}
        return record

    def _message(self, record: Message) -> list[Block]:
        """Bare blocks; the first prompt keeps what lists show of it, and the line a handoff is known by."""
        bare = [_bare(b) for b in record.content]
        if self._prompted or record.origin != "prompt" or record.copy_of is not None:
            return bare
        words = " ".join(b.text for b in record.content if isinstance(b, Text))
        end = _shown(words)
        if not end:
            return bare
        self._prompted = True
        name, at = words[:end], words.find(TOKEN_LINE)
        if at >= 0:
            line = words[at:][:TOKEN_LENGTH].splitlines()[0]
            name = words[: max(end, at + len(line))] if at < end else f"{name}\n{line}"
        return [Text(text=name), *(b for b in bare if not isinstance(b, Text))]


def _shown(words: str) -> int:
    """Where the part of a prompt ends that lists show, and one character more, so that a space at its end stays one."""
    length = 0
    for word in re.finditer(r"\S+", words):
        length += len(word[0]) + (length > 0)
        if length > PROMPT_LENGTH:
            return word.end() - (length - PROMPT_LENGTH - 1)
    return len(words) if length else 0


def _short(value: Any) -> bool:
    return len(msgspec.json.encode(value)) <= _LONG


def _bare(block: Block) -> Block:
    if isinstance(block, Text):
        return Text(text="")
    if isinstance(block, Thinking):
        return Thinking(redacted=True)
    if isinstance(block, Other):
        return Other()
    bare = msgspec.structs.replace(block)
    for name in ("data", "text"):
        if hasattr(bare, name):
            setattr(bare, name, None)
    return bare


# ---------------------------------------------------------------- the proof


class Counts:
    """What counts of one stream, to be held against another's."""

    def __init__(self, agent: str, session_id: str, namespace: str) -> None:
        self._fold = Fold(SessionRow(agent, session_id, namespace))

    def add(self, record: Record) -> None:
        """One record more."""
        self._fold.add(record)

    def value(self) -> Any:
        """All that answers are made from."""
        fold = self._fold
        fold.close()
        fold.row.content_level, fold.row.wordless = None, -1  # what is meant to differ
        return (
            fold.row,
            fold.inferences,
            fold.calls,
            fold.results,
            fold.turns,
            fold.links,
            fold.superseded,
            fold.amended,
        )

    def same(self, other: Counts) -> bool:
        """Whether all that answers are made from is equal."""
        return self.value() == other.value()
