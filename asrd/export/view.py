"""What all forms need of a session: which records stand, its responses as steps, its figures and times.

A step is one response of the model with what it said and asked for, and with the results of its calls. What was said by
others stands between. Nothing is guessed: what names no response is a step of its own, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from msgspec import Struct, field

from asrd.records import (
    AnyRecord,
    Approval,
    Block,
    Compaction,
    Config,
    FileChange,
    Inference,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    VcsAction,
)


class Figures(Struct):
    """Tokens and cost of counted responses. None is unknown; `input` excludes what came from and went to a cache."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    cost: str | None = None
    currency: str | None = None
    requests: int = 1
    unmeasured: int = 0

    @property
    def input_total(self) -> int | None:
        """Input with cache reads and writes; None where none of them is told."""
        known = [n for n in (self.input, self.cache_read, self.cache_write) if n is not None]
        return sum(known) if known else None

    @staticmethod
    def sum(parts: Iterable[Figures]) -> Figures:
        """All of them together. A cost is summed where all costs are of one currency."""
        total = Figures(requests=0)
        costs: dict[str | None, Decimal] = {}
        for part in parts:
            total.requests += part.requests
            total.unmeasured += part.unmeasured
            for name in ("input", "output", "cache_read", "cache_write", "reasoning"):
                value = getattr(part, name)
                if value is not None:
                    setattr(total, name, (getattr(total, name) or 0) + value)
            if part.cost is not None:
                costs[part.currency] = costs.get(part.currency, Decimal(0)) + Decimal(part.cost)
        if len(costs) == 1:
            ((total.currency, cost),) = costs.items()
            total.cost = str(cost)
        return total


def totals(figures: Figures) -> dict[str, Any]:
    """Figures in asrd's own words, as every form that has room for them says them."""
    return {
        "requests": figures.requests,
        "unmeasuredRequests": figures.unmeasured,
        "inputTotal": figures.input_total,
        "input": figures.input,
        "cacheRead": figures.cache_read,
        "cacheWrite": figures.cache_write,
        "output": figures.output,
        "reasoning": figures.reasoning,
    }


class Step(Struct):
    """One response, or something said: `source` is `agent`, `user` or `system`."""

    source: str
    record: AnyRecord
    inference: Inference | None = None
    messages: list[Message] = field(default_factory=list[Message])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    others: list[AnyRecord] = field(default_factory=list[AnyRecord])
    """File changes, approvals, commits and such that belong to its calls."""

    @property
    def at(self) -> str | None:
        """When it was: of its response, else of its first record."""
        return next((r.at for r in (self.record, *self.messages, *self.calls) if r.at), None)

    @property
    def copied(self) -> bool:
        """Whether it repeats another session's."""
        return all(r.copy_of is not None for r in (self.record, *self.messages, *self.calls))


def standing(records: Iterable[AnyRecord]) -> list[AnyRecord]:
    """The records that none later took the place of."""
    all_of = list(records)
    gone = {r.supersedes for r in all_of if r.supersedes}
    return [r for r in all_of if r.id not in gone]


def steps(records: Iterable[AnyRecord]) -> list[Step]:
    """The steps of a session, in the order of its records."""
    found: list[Step] = []
    by_inference: dict[str, Step] = {}
    by_call: dict[str, Step] = {}

    def agent(record: AnyRecord, inference: str | None) -> Step:
        if inference is not None and inference in by_inference:
            return by_inference[inference]
        last = found[-1] if found else None
        if inference is None and last is not None and last.source == "agent" and last.inference is None:
            if not last.results:
                return last
        step = Step("agent", record)
        found.append(step)
        if inference is not None:
            by_inference[inference] = step
        return step

    for record in standing(records):
        if isinstance(record, Inference):
            step = by_inference.get(record.inference_id)
            if step is None or step.inference is not None:
                step = Step("agent", record)
                found.append(step)
                by_inference[record.inference_id] = step
            step.inference = record
        elif isinstance(record, Message):
            if record.role == "assistant" and record.origin != "summary":
                agent(record, record.inference_id).messages.append(record)
            else:
                asked = record.role == "user" and record.origin in (None, "prompt", "command", "agent")
                found.append(Step("user" if asked else "system", record, messages=[record]))
        elif isinstance(record, ToolCall):
            step = agent(record, record.inference_id)
            step.calls.append(record)
            by_call[record.call_id] = step
        elif isinstance(record, ToolResult):
            step = by_call.get(record.call_id) if record.linkage != "none" else None
            if step is None:
                step = Step("system", record)
                found.append(step)
            step.results.append(record)
        elif isinstance(record, FileChange | Approval | VcsAction):
            step = by_call.get(record.call_id) if record.call_id else None
            if step is None:
                step = Step("system", record)
                found.append(step)
            step.others.append(record)
        elif isinstance(record, Compaction):
            found.append(Step("system", record))
    return found


def text_of(blocks: Iterable[Block] | None) -> str:
    """The text blocks, one below the other."""
    return "\n".join(b.text for b in blocks or () if isinstance(b, Text))


def thinking_of(blocks: Iterable[Block] | None) -> str:
    """What the model thought, as far as it is recorded in words."""
    said = [(b.text or b.summary) for b in blocks or () if isinstance(b, Thinking)]
    return "\n".join(s for s in said if s)


def result_text(result: ToolResult) -> str:
    """What a tool gave back: its text, else the output of the command it ran."""
    text = text_of(result.content)
    if text or result.exec is None:
        return text
    return "\n".join(t for t in (result.exec.stdout, result.exec.stderr) if t)


def models(records: Iterable[AnyRecord]) -> list[str]:
    """The models that are named, the first first."""
    named = (r.model for r in records if isinstance(r, Inference | Config) and r.model)
    return list(dict.fromkeys(named))


def tools(records: Iterable[AnyRecord]) -> list[str]:
    """The names of the tools that were to hand, as far as that is recorded, and of those that were called."""
    told = (t for r in records if isinstance(r, Config) for t in r.tools or ())
    called = (r.name for r in records if isinstance(r, ToolCall))
    return list(dict.fromkeys([*told, *called]))


def nanoseconds(at: str | None) -> int | None:
    """A time as nanoseconds since 1970, with all the digits of its source; None where it is none."""
    if not at:
        return None
    whole, dot, rest = at.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))] if dot else ""
    zone = rest[len(digits) :] if dot else ""
    try:
        moment = datetime.fromisoformat((whole + zone).replace("Z", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    fraction = int((digits + "000000000")[:9]) if digits else 0
    found = (since.days * 86400 + since.seconds) * 1_000_000_000 + fraction
    return found if found >= 0 else None


def iso(at: str | None) -> str | None:
    """A time as it was written, where Python reads it."""
    if not at:
        return None
    try:
        datetime.fromisoformat(at.replace("Z", "+00:00"))
    except ValueError:
        return None
    return at


def urn(agent: str, session_id: str, namespace: str = "") -> str:
    """A session as a URI (RFC 8141's form; the namespace `asr` is not registered)."""
    from urllib.parse import quote

    parts = [agent, *([namespace] if namespace else []), session_id]
    return "urn:asr:" + ":".join(quote(p, safe="") for p in parts)


def file_stem(agent: str, session_id: str, namespace: str = "") -> str:
    """A name for a file of one session."""
    parts = [agent, *([namespace] if namespace else []), session_id]
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in ".".join(parts))[:120]
