"""An agent, or a client, that plays its part of a kept connection: `python replay.py (agent|client) SCRIPT HEARD`.

SCRIPT: a JSON list of [direction, message]. It says its own messages, each when all that came before it was heard; what
it hears goes to the file HEARD as it came. It needs nothing of asrd, so that it starts fast. An agent ends when its
script and then its stdin ended.
"""

import json
import os
import sys


def play(part: str, script: list[list[str]], heard: str, read: int = 0, write: int = 1) -> None:
    mine = "a2c" if part == "agent" else "c2a"
    waiting = b""
    out = os.open(heard, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for direction, message in script:
        if direction == mine:
            data = message.encode() + b"\n"
            while data:
                data = data[os.write(write, data) :]
            continue
        while b"\n" not in waiting:
            piece = os.read(read, 1 << 16)
            if not piece:
                sys.exit(3)
            os.write(out, piece)
            waiting += piece
        waiting = waiting.split(b"\n", 1)[1]
    if part == "agent":
        while piece := os.read(read, 1 << 16):
            os.write(out, piece)


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        told = json.load(file)
    play(sys.argv[1], told, sys.argv[3])
    sys.exit(int(os.environ.get("REPLAY_CODE", "0")))
