"""A home with small Claude Code sessions, each answer a minute after the one before."""

import json
from pathlib import Path
from typing import Any

MODEL = "claude-opus-4-5-20251101"
USAGE = {"input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 30, "output_tokens": 7,
         "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}}  # fmt: skip


def session(
    home: Path,
    name: str,
    commands: list[str],
    day: str = "2026-11-02",
    hour: int = 10,
    failed: tuple[int, ...] = (),
    prompt: str = "go",
    model: str = MODEL,
    cwd: str = "/home/dev/app",
    branch: str = "main",
    usage: dict[str, Any] | None = None,
) -> None:
    """One session: a prompt, and one answer with a command for each command; those of `failed` went wrong."""
    base = {
        "sessionId": name,
        "cwd": cwd,
        "gitBranch": branch,
        "version": "2.1.0",
        "isSidechain": False,
        "userType": "external",
    }
    lines: list[dict[str, Any]] = []

    def add(minute: int, line: dict[str, Any]) -> None:
        lines.append(
            {
                **base,
                "uuid": f"{name}-{len(lines)}",
                "parentUuid": f"{name}-{len(lines) - 1}" if lines else None,
                "timestamp": f"{day}T{hour:02d}:{minute:02d}:00.000Z",
                **line,
            }
        )

    add(0, {"type": "user", "promptId": f"{name}-p", "message": {"role": "user", "content": prompt}})
    for n, command in enumerate(commands):
        use = {"type": "tool_use", "id": f"toolu_{name}_{n}", "name": "Bash", "input": {"command": command}}
        said = {"id": f"msg_{name}_{n}", "type": "message", "role": "assistant", "model": model, "content": [use],
                "stop_reason": "tool_use", "usage": usage or USAGE}  # fmt: skip
        add(n + 1, {"type": "assistant", "requestId": f"req_{name}_{n}", "message": said})
        result = {"type": "tool_result", "tool_use_id": f"toolu_{name}_{n}", "content": "x", "is_error": n in failed}
        add(n + 1, {"type": "user", "message": {"role": "user", "content": [result]}})
    folder = home / ".claude" / "projects" / cwd.replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
