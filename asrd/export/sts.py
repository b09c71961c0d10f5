"""STS-Format (Session Trace Simple Format) of the Hugging Face Hub: a header line and message lines, shown by its viewer.

Source: huggingface.co/docs/hub/session-traces-format. Arguments of a call are text there; figures stand in the header,
where more than the format names is allowed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asrd.export import Exported, File, Format, Given
from asrd.export.view import file_stem, nanoseconds, result_text, standing, text_of, thinking_of, totals
from asrd.records import Compaction, Inference, Message, ToolCall, ToolResult


def make(given: Given) -> list[File]:
    """One file a session."""
    return [File(f"{file_stem(s.agent, s.session_id, s.namespace)}.sts.jsonl", lines(given, s)) for s in given.sessions]


def lines(given: Given, one: Exported) -> bytes:
    """The header and the messages of one session."""
    header = one.header
    first: dict[str, Any] = {"type": "session", "harness": one.agent, "id": one.session_id}
    if header is not None and header.title:
        first["name"] = header.title
    first["dev.asrd"] = {
        "usage": totals(one.total()),
        "version": header.agent.version if header else None,
        "redaction": {"mode": given.redaction, "removed": given.removed},
    }
    return b"".join(msgspec.json.encode(line) + b"\n" for line in [first, *messages(one)])


def messages(one: Exported) -> list[dict[str, Any]]:
    """The messages: what one response said and called is one."""
    found: list[dict[str, Any]] = []
    open_at: dict[str | None, dict[str, Any]] = {}
    model: dict[str, str] = {}
    for record in standing(one.records):
        if isinstance(record, Inference) and record.model:
            model[record.inference_id] = record.model
        elif isinstance(record, Message) and record.role == "assistant" and record.origin != "summary":
            said = _assistant(found, open_at, record.inference_id, record.at, model)
            said["content"] = "\n".join(t for t in (said["content"], text_of(record.content)) if t)
            if thought := thinking_of(record.content):
                said["reasoningContent"] = "\n".join(t for t in (said.get("reasoningContent"), thought) if t)
        elif isinstance(record, Message):
            open_at.pop(None, None)
            role = (
                "user" if record.role == "user" and record.origin in (None, "prompt", "command", "agent") else "system"
            )
            found.append(_timed({"role": role, "content": text_of(record.content)}, record.at))
        elif isinstance(record, ToolCall):
            said = _assistant(found, open_at, record.inference_id, record.at, model)
            arguments = msgspec.json.encode(record.input).decode()
            said.setdefault("toolCalls", []).append({"id": record.call_id, "name": record.name, "arguments": arguments})
        elif isinstance(record, ToolResult):
            open_at.pop(None, None)
            found.append(
                _timed({"role": "tool", "toolCallId": record.call_id, "content": result_text(record)}, record.at)
            )
        elif isinstance(record, Compaction) and record.summary:
            found.append(_timed({"role": "system", "content": record.summary}, record.at))
    return [{"type": "message", "message": m} for m in found]


def _assistant(
    found: list[dict[str, Any]],
    open_at: dict[str | None, dict[str, Any]],
    inference: str | None,
    at: str | None,
    model: dict[str, str],
) -> dict[str, Any]:
    said = open_at.get(inference)
    if said is None:
        said = open_at[inference] = _timed({"role": "assistant", "content": ""}, at)
        if inference is not None and inference in model:
            said["model"] = model[inference]
        found.append(said)
    return said


def _timed(message: dict[str, Any], at: str | None) -> dict[str, Any]:
    moment = nanoseconds(at)
    return message if moment is None else {**message, "timestamp": moment // 1_000_000}


FORMAT = Format(
    name="sts",
    title="STS-Format",
    make=make,
    loses={
        "session": "harness, id and title kept",
        "message": "text and thinking kept; images, files and resources are left out",
        "inference": "model kept; figures as totals in the header",
        "tool_call": "kept",
        "tool_result": "text kept; status, exit code and times are left out",
        "compaction": "summary kept",
        "*": "left out",
    },
)
