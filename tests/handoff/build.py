"""Builds sessions by hand: records that say only what a test is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from asrd.handoff import SessionRecords, Work, WorkingTree
from asrd.recorders.base import StreamKey
from asrd.records import (
    Agent,
    AnyRecord,
    Content,
    Exec,
    FileChange,
    Lineage,
    LineageParent,
    Message,
    Place,
    Plan,
    PlanItem,
    Producer,
    Session,
    Text,
    ToolCall,
    ToolResult,
    Vcs,
    VcsAction,
    Workspace,
    WorkspaceRoot,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Story:
    """One session that is told record by record; each method gives the id of what it added."""

    def __init__(
        self, name: str = "s", folder: str = "/w/app", parent: str | None = None, head: str | None = None
    ) -> None:
        self.key = StreamKey("example", name)
        self.records: list[AnyRecord] = []
        lineage = Lineage(root=True)
        if parent:
            lineage = Lineage(
                root=False, parent=LineageParent(agent="example", session_id=parent), relation="spawned_by"
            )
        self.add(
            Session(
                format_version="0.1", agent=Agent(name="example"), session_id=name, lineage=lineage, scope="primary",
                producer=Producer(name="asrd", version="0", method="native"), profiles=["core", "coding"], content_level="full",
                workspace=Workspace(roots=[WorkspaceRoot(id="w", path=folder, vcs=Vcs(type="git", head=head) if head else None)]),
            )
        )  # fmt: skip
        self._calls = 0

    def add(self, record: AnyRecord) -> str:
        record.seq = len(self.records)
        record.id = f"r{record.seq}" if record.seq else "h"
        self.records.append(record)
        return record.id

    def asks(self, text: str, parent: str | None = None) -> str:
        return self.add(Message(role="user", author="human", origin="prompt", content=[Text(text=text)], parent=parent))

    def is_told(self, text: str, origin: str = "injected") -> str:
        return self.add(Message(role="user", author="harness", origin=origin, content=[Text(text=text)]))

    def says(self, text: str, parent: str | None = None) -> str:
        return self.add(Message(role="assistant", author="agent", content=[Text(text=text)], parent=parent))

    def calls(self, name: str, given: dict[str, Any], kind: str | None = None) -> str:
        self._calls += 1
        self.add(ToolCall(call_id=f"c{self._calls}", name=name, input=given, kind=kind))
        return f"c{self._calls}"

    def runs(self, command: str, exit_code: int | None = 0, output: str = "") -> str:
        call = self.calls("Bash", {"command": command}, "execute")
        status = "failed" if exit_code else "completed"
        return self.add(
            ToolResult(
                call_id=call,
                linkage="exact",
                status=status,
                exec=Exec(exit_code=exit_code),
                content=[Text(text=output)],
            )
        )

    def changes(self, path: str, change: str = "modify", after: str | None = None, diff: str | None = None) -> str:
        call = self.calls("Edit", {"file_path": path}, "edit")
        content = Content(sha256=after, bytes=10) if after else None
        return self.add(
            FileChange(path=Place(path=path, root="w"), change=change, call_id=call, after=content, diff=diff)
        )

    def commits(self, ident: str, message: str) -> str:
        call = self.calls("Bash", {"command": f'git commit -q -m "{message}"'}, "execute")
        self.add(ToolResult(call_id=call, linkage="exact", status="completed", exec=Exec(exit_code=0)))
        return self.add(VcsAction(action="commit", commit=ident, evidence="observed", call_id=call))

    def plans(self, *steps: tuple[str, str]) -> str:
        return self.add(Plan(items=[PlanItem(text=text, status=status) for text, status in steps]))


def work(*stories: Story, tree: WorkingTree | None = None) -> Work:
    return Work([SessionRecords(s.key, s.records) for s in stories], NOW, tree)
