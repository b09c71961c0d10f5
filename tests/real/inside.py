"""Runs commands beside a scripted model where nothing else can be reached: `python -m tests.real.inside` inside `ALONE`.

Reads a `Plan` (JSON) from standard input; writes a `Told` to standard output.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
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
    screen: str | None = None
    """In a terminal (tmux): until these words are on the screen; "" = until the model was asked. `stdout` is the screen."""


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


ALONE = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]
"""A network and a process tree of its own: nothing else is reached, and what a program leaves running ends with it."""


@cache
def can_be_alone() -> bool:
    """Whether a process may have namespaces of its own here."""
    return shutil.which("unshare") is not None and subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0


def run(commands: list[Command]) -> Told:
    """Runs the commands beside a model of their own, without any other network where the system allows that."""
    alone = can_be_alone()
    argv = [*(ALONE if alone else []), sys.executable, "-m", "tests.real.inside"]
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


def in_terminal(command: Command, server: ModelServer) -> Ended:
    """Runs a command in a terminal of its own until what is waited for is seen, then ends it."""
    folder = tempfile.mkdtemp()
    tmux = ["tmux", "-S", f"{folder}/terminal", "-f", "/dev/null"]
    env = {**command.env, "TERM": "xterm-256color"}
    named = shlex.join(f"{k}={v}" for k, v in env.items())
    line = f"cd {shlex.quote(command.cwd)} && exec env -i {named} {shlex.join(command.argv)}"
    before, found, shown = len(server.asked), False, ""
    subprocess.run([*tmux, "new-session", "-d", "-x", "160", "-y", "50", line], check=True)
    end = time.monotonic() + command.patience
    while not found and time.monotonic() < end:
        time.sleep(0.3)
        seen = subprocess.run([*tmux, "capture-pane", "-p", "-S", "-500"], capture_output=True, text=True, check=False)
        shown = seen.stdout or shown
        found = command.screen in shown if command.screen else len(server.asked) > before
        if seen.returncode:
            break  # the program ended, and its terminal with it
    time.sleep(1.0)  # what it writes to its files about the answer
    subprocess.run([*tmux, "kill-server"], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)
    return Ended(0 if found else None, shown, "", len(server.asked))


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    if plan.alone:
        loopback_up()
    server = ModelServer(PORT)
    ended: list[Ended] = []
    for command in plan.commands:
        if command.screen is not None:
            ended.append(in_terminal(command, server))
            continue
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
