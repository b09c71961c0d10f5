"""Codex: `sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl`, opened by `codex resume ID`.

What the model is given are the `response_item`s; what the terminal shows are the `event_msg`s beside them. The mark is
`session_meta.originator`. Checked with 0.171.0.
"""

from __future__ import annotations

from typing import Any

from asrd.handoff.native.base import History, NativeFile, file_of, stamp


def write(told: History) -> NativeFile:
    """The rollout of a thread whose history is imported."""
    thread, turn, now = told.uuid7("thread"), told.uuid7("turn"), told.written_at
    lines: list[dict[str, Any]] = []

    def line(at: str, kind: str, payload: dict[str, Any]) -> None:
        lines.append({"timestamp": at, "ordinal": len(lines), "type": kind, "payload": payload})

    def said(at: str, role: str, text: str) -> None:
        content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
        line(at, "response_item", {"type": "message", "role": role, "content": content})
        shown: dict[str, Any] = {"type": "user_message" if role == "user" else "agent_message", "message": text}
        line(at, "event_msg", {**shown, **({"images": []} if role == "user" else {})})

    meta = {
        "id": thread, "session_id": thread, "timestamp": now, "cwd": told.folder, "originator": told.origin,
        "cli_version": "0.171.0", "source": "cli", "thread_source": "user",
    }  # fmt: skip
    line(now, "session_meta", meta)
    for one in told.turns:
        said(one.at, one.role, one.text)
    line(now, "event_msg", {"type": "task_started", "turn_id": turn, "model_context_window": None})
    said(now, "user", told.note)
    line(now, "event_msg", {"type": "task_complete", "turn_id": turn, "last_agent_message": None})
    day = stamp(told.now)
    path = f"sessions/{day[:10].replace('-', '/')}/rollout-{day[:19].replace(':', '-')}-{thread}.jsonl"
    return file_of(told, "codex", thread, path, lines, ".codex", ("CODEX_HOME",), ("codex", "resume", thread))


WRITER = write
