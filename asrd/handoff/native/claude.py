"""Claude Code: `projects/<cwd, - for every other sign>/<session id>.jsonl`, opened by `claude --resume ID` in that folder.

The mark is `forkedFrom` on every line that is a copy. Answers are of the model `<synthetic>`, Claude Code's own word for
what no model of its own said, without usage. Checked with 2.1.332.
"""

from __future__ import annotations

import re
from typing import Any

from asrd.handoff.native.base import History, NativeFile, Said, file_of

NO_USAGE = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def write(told: History) -> NativeFile:
    """The file of a session whose history is imported."""
    session = told.uuid4("session")
    lines: list[dict[str, Any]] = []

    def line(number: int, one: Said, copy: bool) -> None:
        message: dict[str, Any] = {"role": one.role, "content": one.text}
        if one.role == "assistant":
            message = {
                "id": f"msg_{told.chance(f'm{number}').hex()[:24]}", "type": "message", "role": "assistant",
                "model": "<synthetic>", "content": [{"type": "text", "text": one.text}], "stop_reason": "stop_sequence",
                "stop_sequence": "", "usage": NO_USAGE,
            }  # fmt: skip
        made: dict[str, Any] = {
            "parentUuid": lines[-1]["uuid"] if lines else None, "isSidechain": False, "userType": "external",
            "cwd": told.folder, "sessionId": session, "version": "2.1.332", "gitBranch": told.branch or "",
            "type": one.role, "message": message, "uuid": told.uuid4(f"line{number}"), "timestamp": one.at,
        }  # fmt: skip
        if copy:
            made["forkedFrom"] = {"sessionId": told.origin, "messageUuid": one.record}
        lines.append(made)

    for number, one in enumerate(told.turns):
        line(number, one, copy=True)
    line(len(told.turns), Said("user", told.note, told.written_at, ""), copy=False)
    path = f"projects/{re.sub('[^a-zA-Z0-9]', '-', told.folder)}/{session}.jsonl"
    return file_of(
        told, "claude", session, path, lines, ".claude", ("CLAUDE_CONFIG_DIR",), ("claude", "--resume", session)
    )


WRITER = write
