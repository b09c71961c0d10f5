"""Builds sessions by hand: records that say only what a test is about."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from asrd.handoff import SessionRecords, Work, WorkingTree, brief, render
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


SHA = hashlib.sha256(b"now").hexdigest()
COMMIT = "b5d8da43f68262e46f6cf8549840aa26a484c4c3"


def a_session() -> Story:
    story = Story(head="d85ac20138aa5c2a41d77c10f426edf4e2f9e780")
    story.is_told("<environment>linux</environment>")
    story.asks("Fix add so that ./check.sh passes, then commit.")
    story.says("I will read it. I decided to keep mul as it is because it is tested.")
    story.changes("calc.py", after="0" * 64, diff="@@ -1 +1 @@\n-a - b\n+a + b")
    story.runs("./check.sh", 101, "add(2,3) = 5\nVERSION is missing")
    story.changes("calc.py", after=SHA, diff='@@ -9 +9,2 @@\n+VERSION = "2"')
    story.runs("./check.sh", 0, "ok")
    story.commits(COMMIT, "fix add")
    story.says("Fixed and committed.")
    story.asks("Now write the docs in French.")
    story.says("Done.")
    story.asks("No, write them in English instead. You must never touch mul.")
    story.plans(("write docs", "in_progress"), ("push", "pending"))
    story.runs("make docs", 2, "docs/x.md: broken link\nmake: *** [docs] Error 1")
    story.says("The link is broken. Shall I remove it?")
    return story


def markdown(story: Story, budget: int = 4000) -> str:
    return render(brief(work(story), budget))


def section(text: str, title: str) -> str:
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0] if f"\n## {title}\n" in text else ""
