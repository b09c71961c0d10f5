"""Clients and agents around `asrd acp`, for its tests."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.acp.kept import SPOOL, Script

REPLAY = Path(__file__).parent / "replay.py"
ASRD_ACP = [sys.executable, "-c", "import sys; from asrd.acp import cli_main; sys.exit(cli_main(sys.argv[1:]))"]


def agent_of(script: Script, folder: Path, name: str = "agent") -> tuple[list[str], Path]:
    """The command of an agent that plays a script, and the file that holds what it heard."""
    told, heard = folder / f"{name}.json", folder / f"{name}.heard"
    told.write_text(json.dumps(script))
    return [sys.executable, "-S", "-E", str(REPLAY), "agent", str(told), str(heard)], heard


def spool_of(home: Path) -> list[Path]:
    return sorted((home / SPOOL).glob("*.acp.jsonl"))


def copy_of(home: Path, lines: int = 1) -> Path:
    """The only copy, once it has so many lines: it is written beside the session, some moments later."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = spool_of(home)
        if len(found) == 1 and found[0].read_bytes().count(b"\n") >= lines:
            return found[0]
        time.sleep(0.005)
    raise AssertionError("no copy was written")


def kept(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


class Through:
    """A client of an agent behind `asrd acp` on stdio."""

    def __init__(self, command: list[str], home: Path, *options: str, **more: Any) -> None:
        popen: Any = subprocess.Popen
        self.process: subprocess.Popen[bytes] = popen(
            [*ASRD_ACP, "--spool", str(home / SPOOL), *options, "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            **more,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.heard = b""

    def plays(self, script: Script) -> None:
        """Says the client's part, each message when all before it was heard."""
        waiting = self.heard.count(b"\n")
        wanted = 0
        for way, message in script:
            if way == "a2c":
                wanted += 1
                continue
            waiting = self._hear(wanted, waiting)
            self.stdin.write(message.encode() + b"\n")
        self._hear(wanted, waiting)

    def _hear(self, wanted: int, waiting: int) -> int:
        while waiting < wanted:
            piece = self.stdout.read(1 << 16)
            assert piece, "the agent closed its end"
            self.heard += piece
            waiting += piece.count(b"\n")
        return waiting

    def waits(self) -> None:
        """Until the agent has said a line."""
        while not self.heard.endswith(b"\n"):
            self.heard += self.stdout.read(1)

    def ends(self) -> tuple[int, bytes]:
        """Closes its end; gives the exit code and stderr."""
        self.stdin.close()
        while piece := self.stdout.read(1 << 16):
            self.heard += piece
        code = self.process.wait(20)
        assert self.process.stderr is not None
        said = self.process.stderr.read()
        self.process.stderr.close()
        self.stdout.close()
        return code, said


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True
