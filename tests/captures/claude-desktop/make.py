"""Makes the capture of Claude Desktop: `python -m tests.captures.claude-desktop.make` (run as a file, for the hyphen).

Its document is constructed from the published one; the session beside it is the real file of `claude-code/S1`, in which the
script says the other origin.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REAL = HERE.parent / "claude-code/S1/home/.claude/projects/-home-dev-app"
SESSION = "local_357377c2-0000-4000-8000-000000000001"


def main() -> None:
    home = HERE / "S1" / "home"
    shutil.rmtree(home, ignore_errors=True)
    projects = home / ".claude/projects/-home-dev-app"
    projects.mkdir(parents=True)
    (real,) = REAL.glob("*.jsonl")
    lines = [desktop(line) for line in real.read_bytes().splitlines()]
    (projects / real.name).write_bytes(b"\n".join(lines) + b"\n")
    told: dict[str, Any] = {
        "sessionId": SESSION,
        "cliSessionId": real.stem,
        "cwd": "/home/dev/app",
        "originCwd": "/home/dev/app",
        "lastFocusedAt": 1796015358864,
        "createdAt": 1796015358817,
        "lastActivityAt": 1796015389277,
        "model": "claude-opus-5",
        "effort": "medium",
        "isArchived": False,
        "title": "Fix calc.add",
        "titleSource": "auto",
        "permissionMode": "auto",
        "enabledMcpTools": {"server:tool": True},
        "remoteMcpServersConfig": [
            {"uuid": "u", "name": "server", "url": "https://example.org/a-secret-path", "tools": []}
        ],
    }
    folder = home / "Library/Application Support/Claude/claude-code-sessions/account-1/organization-1"
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.json").write_text(json.dumps(told, separators=(",", ":")))
    (HERE / "S1/truth.json").write_text(json.dumps({"session": SESSION, "cli": real.stem}, indent=1) + "\n")


def desktop(line: bytes) -> bytes:
    """The line as Claude Code writes it under Claude Desktop."""
    value = json.loads(line)
    if "entrypoint" not in value:
        return line
    value["entrypoint"] = "claude-desktop"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


if __name__ == "__main__":
    main()
