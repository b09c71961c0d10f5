"""Small streams by hand: sessions with messages, calls and responses, as recorders would write them."""

from pathlib import Path
from typing import Any

from asrd.paths import Folders, folders
from asrd.recorders.base import StreamKey
from asrd.records import (
    SPAN,
    Agent,
    CopyOf,
    Evidence,
    Exec,
    Inference,
    Lineage,
    LineageParent,
    Link,
    LinkTarget,
    Message,
    Producer,
    Record,
    Session,
    SourceRef,
    Span,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
)


def where_of(work: Path) -> Folders:
    return folders({"HOME": str(work / "home"), "ASRD_HOME": str(work / "store")})


class Made:
    """A stream in the making: each record gets its `seq`, `id` and span."""

    def __init__(self, ident: str, agent: str = "codex", started_at: str | None = None, **header: Any) -> None:
        self.key = StreamKey(agent, ident, header.get("namespace") or "")
        self.records: list[Record] = []
        self.add(
            Session(
                format_version="0.1",
                agent=Agent(name=agent, version="1.0"),
                session_id=ident,
                producer=Producer(name="asrd", version="0", method="converter", instance="x/1", lossy=[]),
                authority="local",
                started_at=started_at,
                lineage=header.pop("lineage", Lineage()),
                scope=header.pop("scope", "primary"),
                profiles=["core"],
                content_level="full",
                sources=[SourceRef(id="s1", kind="file", name=f"{ident}.jsonl", fingerprint="f")],
                **header,
            )
        )

    def add(self, record: Record) -> str:
        seq = len(self.records)
        record.seq, record.id = seq, f"r{seq}" if seq else "h"
        if seq:
            record.meta = {SPAN: Span(source="s1", start=seq * 10, end=seq * 10 + 9)}  # type: ignore[attr-defined]
        self.records.append(record)
        return record.id

    def prompt(self, text: str, at: str | None = None) -> "Made":
        self.add(Message(role="user", author="human", origin="prompt", content=[Text(text=text)], at=at))
        return self

    def response(self, ident: str, given: int | None, output: int | None, **more: Any) -> "Made":
        usage = None if given is None and output is None else Usage(input=given, output=output)
        self.add(Inference(inference_id=ident, usage=usage, model=more.pop("model", "m"), **more))
        return self

    def call(self, ident: str, code: int | None = None, **more: Any) -> "Made":
        self.add(ToolCall(call_id=ident, name="shell", kind="execute", input={"command": "x"}, **more))
        ran = Exec(exit_code=code) if code is not None else None
        status = "failed" if code else "completed"
        self.add(ToolResult(call_id=ident, linkage="exact", status=status, exec=ran, copy_of=more.get("copy_of")))
        return self

    def turn(self, ident: str, **more: Any) -> "Made":
        self.add(Turn(turn_id=ident, phase="start", trigger="prompt", **more))
        self.add(Turn(turn_id=ident, phase="end", status="completed", **more))
        return self

    def link(self, relation: str, target: str, agent: str = "codex", call_id: str | None = None) -> "Made":
        evidence = Evidence(kind="native-field", field="x", value=target)
        self.add(
            Link(
                relation=relation,
                target=LinkTarget(agent=agent, session_id=target),
                call_id=call_id,
                evidence=evidence,
            )
        )
        return self


def child_of(parent: str, relation: str = "spawned_by", agent: str = "codex") -> Lineage:
    evidence = Evidence(kind="native-field", field="x", value=parent)
    return Lineage(
        root=False, parent=LineageParent(agent=agent, session_id=parent), relation=relation, evidence=evidence
    )


def copied(session: str) -> CopyOf:
    return CopyOf(session_id=session, native_id="n")
