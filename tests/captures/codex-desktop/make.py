"""Makes the capture of Codex Desktop (run as a file): the real rollout of `codex/S1`, whose first lines say the other origin.

Published rollouts of the program differ from those of the command line in `originator` and `source`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

HERE = Path(__file__).parent
REAL = HERE.parent / "codex/S1/home/.codex/sessions"


def main() -> None:
    home = HERE / "S1" / "home"
    shutil.rmtree(home, ignore_errors=True)
    for real in REAL.rglob("*.jsonl"):
        path = home / ".codex/sessions" / real.relative_to(REAL)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\n".join(desktop(line) for line in real.read_bytes().splitlines()) + b"\n")
    shutil.copyfile(HERE.parent / "codex/S1/truth.json", HERE / "S1/truth.json")


def desktop(line: bytes) -> bytes:
    value = json.loads(line)
    if value.get("type") != "session_meta":
        return line
    value["payload"] |= {"originator": "Codex Desktop", "source": "vscode"}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


if __name__ == "__main__":
    main()
