"""One session as a brief sees it: its live records by what they are, and what each says."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec import Struct

from asrd.handoff.branch import fields_of, is_prompt, live
from asrd.handoff.brief import Ref, Source
from asrd.recorders.base import StreamKey
from asrd.records import AnyRecord, Config, Exec, Inference, Link, Message, Place, Session, Text, ToolCall, ToolResult


class Exchange(Struct):
    """A prompt and what was answered to it, up to the next prompt."""

    prompt: Message
    answers: list[Message]


class Run(Struct, frozen=True):
    """One time a command ran: its records, its exit code and what it printed."""

    refs: tuple[Ref, ...]
    exit_code: int | None
    failed: bool
    status: str
    output: str
    order: tuple[int, int]


class View:
    """One session as a brief sees it: its live records by what they are."""

    def __init__(self, number: int, key: StreamKey, records: Sequence[AnyRecord]) -> None:
        self.number = number
        self.key = key
        self.all = records
        header = records[0] if records and isinstance(records[0], Session) else None
        self.header: Session | None = header
        self.records, self.left = live(records)
        kept = {r.id for r in self.records} if self.left else set[str]()
        outside = [r for r in records if r.id not in kept] if self.left else []
        self.left_at = self.ref(*outside[:1], *outside[1:][-1:])
        """The first and the last record that is not live, where a branch was left."""
        self.calls: dict[str, ToolCall] = {}
        self.results: dict[str, ToolResult] = {}
        self.exchanges: list[Exchange] = []
        self.before: list[Message] = []
        spawned = header is not None and header.lineage.relation == "spawned_by"
        by_people = any(isinstance(r, Message) and is_prompt(r) and r.origin != "agent" for r in self.records)
        self._agents_ask = spawned or not by_people
        for record in self.records:
            if isinstance(record, ToolCall):
                self.calls[record.call_id] = record
            elif isinstance(record, ToolResult):
                self.results[record.call_id] = record
            elif isinstance(record, Message):
                self._said(record)

    def _said(self, message: Message) -> None:
        if is_prompt(message) and words(message) and (message.origin != "agent" or self._agents_ask):
            self.exchanges.append(Exchange(message, []))
        elif message.role == "assistant" and message.origin not in ("summary", "injected", "hook") and words(message):
            (self.exchanges[-1].answers if self.exchanges else self.before).append(message)

    def ref(self, *records: AnyRecord) -> tuple[Ref, ...]:
        return tuple(Ref(self.number, r.id) for r in records)

    def of(self, kind: type[Any]) -> Iterator[Any]:
        return (r for r in self.records if isinstance(r, kind))

    def folder(self) -> str | None:
        if self.header and self.header.workspace and self.header.workspace.roots:
            return self.header.workspace.roots[0].path
        return next((c.cwd for c in self.of(Config) if c.cwd), None)

    def absolute(self, place: Place) -> str:
        """A place as a path, absolute where the record says below what it lies."""
        roots = self.header.workspace.roots if self.header and self.header.workspace else []
        for root in roots:
            if root.id == place.root:
                return posixpath.normpath(posixpath.join(root.path, place.path))
        folder = self.folder()
        if place.root is None and folder and not posixpath.isabs(place.path) and "\\" not in place.path:
            return posixpath.normpath(posixpath.join(folder, place.path))
        return place.path

    def source(self, role: str) -> Source:
        """What the head of the brief says of it."""
        header = self.header
        root = header.workspace.roots[0] if header and header.workspace and header.workspace.roots else None
        models = [r.model for r in self.records if isinstance(r, Inference | Config) and r.model]
        times = [r.at for r in self.records if r.at]
        return Source(
            agent=self.key.agent,
            session_id=self.key.session_id,
            namespace=self.key.namespace,
            role="sub-agent" if role == "sub-agent" else "session",
            first=self.all[0].id if self.all else "h",
            last=self.all[-1].id if self.all else "h",
            records=len(self.all),
            version=header.agent.version if header else None,
            model=models[-1] if models else None,
            folder=self.folder(),
            branch=root.vcs.branch if root and root.vcs else None,
            head=root.vcs.head if root and root.vcs else None,
            started=(header.started_at if header else None) or (times[0] if times else None),
            ended=times[-1] if times else None,
            title=header.title if header else None,
        )


def words(message: Message) -> str:
    """The text of a message: its text blocks, one below the other."""
    return "\n".join(b.text for b in message.content if isinstance(b, Text)).strip()


def result_text(result: ToolResult) -> str:
    """What a tool gave back: its output streams where the record has them, else its text blocks."""
    ran = result.exec
    if ran is not None and (ran.stdout or ran.stderr):
        return "\n".join(t for t in (ran.stdout, ran.stderr) if t)
    return "\n".join(b.text for b in result.content or () if isinstance(b, Text))


def arguments(call: ToolCall) -> dict[str, Any]:
    """A call's input."""
    return fields_of(call.input)


def command_of(call: ToolCall | None, ran: Exec | None) -> str | None:
    """The command line a call ran, where the result or the call's input names one."""
    if ran is not None and ran.command:
        return ran.command.strip()
    if call is None:
        return None
    given = arguments(call)
    for name in ("command", "cmd", "script"):
        value = given.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, list) and value:
            parts = [str(v) for v in cast("list[Any]", value)]
            return (parts[-1] if len(parts) == 3 and parts[1] in ("-lc", "-c") else " ".join(parts)).strip()
    return None


def roles_of(views: Sequence[View]) -> list[str]:
    """What each session is: a sub-agent when it says that, or another says that it started it; else a session."""
    keys = {v.key for v in views}
    started = {
        StreamKey(link.target.agent, link.target.session_id, link.target.namespace or "")
        for v in views
        for link in v.of(Link)
        if link.relation == "spawned"
    }
    roles: list[str] = []
    for view in views:
        lineage = view.header.lineage if view.header else None
        spawned = lineage is not None and lineage.relation == "spawned_by"
        roles.append("sub-agent" if view.number and (spawned or view.key in started & keys) else "session")
    return roles


def outcome_of(runs: list[Run]) -> str:
    """How the runs of a command ended, the last first."""
    last = runs[-1]
    text = ended(last)
    if len(runs) > 1:
        earlier: list[str] = []
        for run in reversed(runs[:-1]):
            if ended(run) not in earlier and ended(run) != text:
                earlier.append(ended(run))
        text += f" in the last of {len(runs)} runs" + (f"; before: {', '.join(earlier[:4])}" if earlier else "")
    return text


def ended(run: Run) -> str:
    """How one run ended: its exit code where the record has it."""
    if run.exit_code is not None:
        return f"exit {run.exit_code}"
    return {
        "completed": "done (exit code not recorded)",
        "failed": "failed (exit code not recorded)",
        "denied": "refused, not run",
        "cancelled": "cancelled",
    }.get(run.status, "how it ended is not recorded")


def path_of(call: ToolCall | None) -> str | None:
    """The path that a call's input names."""
    if call is None:
        return None
    given = arguments(call)
    for name in ("file_path", "path", "filePath", "absolute_path", "target_file", "notebook_path", "filename", "file"):
        value = given.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def task_of(call: ToolCall | None) -> str | None:
    """What a call asks of a sub-agent."""
    if call is None or call.kind not in (None, "delegate", "other", "think"):
        return None
    given = arguments(call)
    return next(
        (v for n in ("prompt", "message", "task", "instructions") if isinstance(v := given.get(n), str) and v), None
    )


_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]?")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, fences of code left out."""
    for found in _SENTENCE.finditer(_CODE_BLOCK.sub("\n", text)):
        sentence = found.group().strip(" \t-*>#")
        if sentence:
            yield sentence


_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
