"""Pi: `sessions/--<cwd>--/<time>_<session id>.jsonl`, opened by `pi --session ID`.

The mark is the header's `parentSession`; entries that are older than the session are its copy. Checked with 1.6.0.
"""

from __future__ import annotations

import re
from typing import Any

from asrd.handoff.native.base import History, NativeFile, Said, file_of, ms

NO_USAGE = {
    "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}  # fmt: skip


def write(told: History) -> NativeFile:
    """The file of a session whose history is imported."""
    session, now = told.uuid7("session"), told.written_at
    header = {"type": "session", "version": 3, "id": session, "timestamp": now, "cwd": told.folder}
    lines: list[dict[str, Any]] = [{**header, "parentSession": told.origin}]

    def entry(number: int, one: Said) -> None:
        message: dict[str, Any] = {"role": one.role, "content": [{"type": "text", "text": one.text}]}
        if one.role == "assistant":
            model = {"api": "openai-completions", "provider": "asrd", "model": told.model or "unknown"}
            message |= {**model, "usage": NO_USAGE, "stopReason": "stop"}
        lines.append(
            {
                "type": "message",
                "id": told.chance(f"entry{number}").hex()[:8],
                "parentId": lines[-1]["id"] if number else None,
                "timestamp": one.at,
                "message": {**message, "timestamp": ms(one.at)},
            }  # fmt: skip
        )

    for number, one in enumerate(told.turns):
        entry(number, one)
    entry(len(told.turns), Said("user", told.note, now, ""))
    folder = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", told.folder))
    path = f"sessions/--{folder}--/{re.sub('[:.]', '-', now)}_{session}.jsonl"
    return file_of(
        told, "pi", session, path, lines, ".pi/agent", ("PI_CODING_AGENT_DIR",), ("pi", "--session", session)
    )


WRITER = write
