"""Runs commands beside a scripted model where nothing else can be reached: `python -m tests.real.inside` inside `unshare -n`.

Reads a `Plan` (JSON) from standard input; writes a `Told` to standard output.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.real.model_server import Asked, ModelServer

PORT = 18765
URL = f"http://127.0.0.1:{PORT}"


class Command(Struct):
    """One program to run to its end."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    stdin: str = ""
    patience: float = 120.0


class Plan(Struct):
    """What to run, one after the other."""

    commands: list[Command]
    alone: bool = True
    """Whether this process has a network of its own."""


class Ended(Struct):
    """How a command ended. `code` None = it did not, and was stopped."""

    code: int | None
    stdout: str
    stderr: str
    asked: int
    """How many requests for an answer had been made by then."""


class Told(Struct):
    """What came of a plan."""

    ended: list[Ended]
    asked: list[Asked]
    others: list[str]


@cache
def can_be_alone() -> bool:
    """Whether a process may have a network namespace of its own here."""
    return (
        shutil.which("unshare") is not None
        and subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0
    )


def run(commands: list[Command]) -> Told:
    """Runs the commands beside a model of their own, without any other network where the system allows that."""
    alone = can_be_alone()
    argv = [*(["unshare", "-n"] if alone else []), sys.executable, "-m", "tests.real.inside"]
    done = subprocess.run(
        argv, input=msgspec.json.encode(Plan(commands, alone)), capture_output=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr.decode()
    return msgspec.json.decode(done.stdout, type=Told)


ROOT = Path(__file__).parents[2]


def loopback_up() -> None:
    """Sets `lo` up: a new network namespace has it down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14s", b"lo", 0x1 | 0x40, b"")  # IFF_UP | IFF_RUNNING
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    if plan.alone:
        loopback_up()
    server = ModelServer(PORT)
    ended: list[Ended] = []
    for command in plan.commands:
        process = subprocess.Popen(
            command.argv, env=command.env, cwd=command.cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(command.stdin.encode(), timeout=command.patience)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            code = None
        ended.append(Ended(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), len(server.asked)))
    server.close()
    sys.stdout.buffer.write(msgspec.json.encode(Told(ended, server.asked, server.others)))


if __name__ == "__main__":
    main()
