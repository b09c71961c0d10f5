"""Chat in JSON Lines for training and evaluation: one line a session, with tool calls in the shape that OpenAI's API has.

A line has `messages` (roles system, user, assistant, tool; `tool_calls` with arguments as text) and `metadata`: which session
it is, whose models made it, its figures, the licence as given (`null` = none was stated), and how it was redacted. Whoever
trains on it must have the right to: the words are those of the persons and models that wrote them, whatever the licence says.
Copies of other sessions are left out, so that nothing is trained on twice.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asrd.export import Exported, File, Format, Given
from asrd.export.view import models, result_text, steps, text_of, thinking_of, totals
from asrd.records import Compaction, ToolResult


def make(given: Given) -> list[File]:
    """A line a session; sessions in which nothing was said are left out."""
    lines = [line(given, s) for s in given.sessions]
    data = b"".join(msgspec.json.encode(one) + b"\n" for one in lines if one["messages"])
    return [File("training.jsonl", data)]


def line(given: Given, one: Exported) -> dict[str, Any]:
    """One session as chat."""
    header = one.header
    found: list[dict[str, Any]] = []
    open_calls: set[str] = set()
    for step in steps(one.records):
        if step.copied:
            continue
        if step.source == "agent":
            said: dict[str, Any] = {"role": "assistant"}
            words = "\n".join(t for m in step.messages if (t := text_of(m.content)))
            thought = "\n".join(t for m in step.messages if (t := thinking_of(m.content)))
            said["content"] = words or None
            if thought:
                said["reasoning_content"] = thought
            if step.calls:
                said["tool_calls"] = [
                    {
                        "id": c.call_id,
                        "type": "function",
                        "function": {"name": c.name, "arguments": msgspec.json.encode(c.input).decode()},
                    }
                    for c in step.calls
                ]
            if words or thought or step.calls:
                found.append(said)
            open_calls |= {c.call_id for c in step.calls}
            found += [_result(r) for r in step.results if r.call_id in open_calls]
        elif isinstance(step.record, Compaction):
            if step.record.summary:
                found.append({"role": "system", "content": step.record.summary})
        elif step.messages and (words := text_of(step.messages[0].content)):
            found.append({"role": step.source, "content": words})
    return {
        "messages": found,
        "metadata": {
            "agent": one.agent,
            "version": header.agent.version if header else None,
            "sessionId": one.session_id,
            "namespace": one.namespace or None,
            "models": models(one.records),
            "usage": totals(one.total()),
            "licence": given.licence,
            "redaction": {"mode": given.redaction, "removed": given.removed},
            "contentLevel": header.content_level if header else None,
        },
    }


def _result(result: ToolResult) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": result.call_id, "content": result_text(result)}


FORMAT = Format(
    name="training",
    title="training JSONL",
    make=make,
    loses={
        "session": "agent, version and id kept in `metadata`",
        "message": "text and thinking kept; images, files and resources are left out; copies are left out",
        "inference": "models and totals kept in `metadata`",
        "tool_call": "kept",
        "tool_result": "text kept; status, exit code and times are left out; results without their call are left out",
        "compaction": "summary kept",
        "*": "left out",
    },
    joined=True,
)
