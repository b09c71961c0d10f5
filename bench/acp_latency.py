"""What `asrd acp` adds to a message's way: round trips to an echoing agent, with and without it.

    python bench/acp_latency.py [--trips 2000] [--json]

A round trip goes through twice, so what is added one way is half of what is printed as added.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from websockets.sync.client import connect
from websockets.sync.server import serve

ECHO = "import os\nwhile d := os.read(0, 1 << 16):\n while d: d = d[os.write(1, d):]"
ASRD_ACP = [sys.executable, "-c", "import sys; from asrd.acp import cli_main; sys.exit(cli_main(sys.argv[1:]))"]


def message(size: int) -> bytes:
    """A chunk of a message, as agents send them."""
    text = "x" * size
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    return json.dumps(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
    ).encode()


def trips(say: Callable[[bytes], None], hear: Callable[[int], None], count: int, size: int) -> list[float]:
    """Milliseconds of each round trip."""
    data = message(size) + b"\n"
    taken: list[float] = []
    for number in range(count + 100):
        began = time.perf_counter()
        say(data)
        hear(len(data))
        if number >= 100:  # warm
            taken.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.0005)
    return taken


def over_pipes(command: list[str], count: int, size: int) -> list[float]:
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert agent.stdin is not None and agent.stdout is not None
    to, back = agent.stdin.fileno(), agent.stdout.fileno()

    def hear(wanted: int) -> None:
        while wanted:
            wanted -= len(os.read(back, wanted))

    def say(data: bytes) -> None:
        while data:
            data = data[os.write(to, data) :]

    taken = trips(say, hear, count, size)
    agent.stdin.close()
    agent.wait()
    agent.stdout.close()
    return taken


def over_unix(path: str, count: int, size: int) -> list[float]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(path)

        def hear(wanted: int) -> None:
            while wanted:
                wanted -= len(client.recv(wanted))

        return trips(client.sendall, hear, count, size)


def over_ws(address: str, count: int, size: int) -> list[float]:
    with connect(address, compression=None, proxy=None) as client:

        def hear(wanted: int) -> None:
            client.recv()

        return trips(lambda data: client.send(data.decode().rstrip()), hear, count, size)


def listening(folder: str, address: str, agent: str) -> tuple[subprocess.Popen[str], str]:
    argv = ["--spool", f"{folder}/spool", "--listen", address, "--connect", agent]
    proxy = subprocess.Popen([*ASRD_ACP, *argv], stderr=subprocess.PIPE, text=True)
    assert proxy.stderr is not None
    return proxy, proxy.stderr.readline().split(" at ", 1)[1].strip()


def echo_unix(path: str) -> subprocess.Popen[bytes]:
    code = (
        "import socket,sys,threading\ns=socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1]);s.listen()\n"
        "def f(c):\n while d:=c.recv(1<<16): c.sendall(d)\n"
        "while 1: threading.Thread(target=f,args=(s.accept()[0],),daemon=True).start()"
    )
    agent = subprocess.Popen([sys.executable, "-S", "-c", code, path])
    while not Path(path).exists():
        time.sleep(0.01)
    time.sleep(0.1)
    return agent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trips", type=int, default=2000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    count: int = options.trips
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        echo = [sys.executable, "-S", "-c", ECHO]
        through = [*ASRD_ACP, "--spool", f"{folder}/spool", "--", *echo]
        for size in (50, 20_000):  # a pipe holds 64 KiB, and the echo waits for its reader
            put(found, f"stdio {size} B", over_pipes(echo, count, size), over_pipes(through, count, size))
        agent = echo_unix(f"{folder}/agent")
        proxy, where = listening(folder, f"unix:{folder}/s", f"unix:{folder}/agent")
        direct = over_unix(f"{folder}/agent", count, 50)
        put(found, "unix 50 B", direct, over_unix(where.removeprefix("unix:"), count, 50))
        proxy.terminate()
        agent.terminate()
        with serve(lambda c: [c.send(m) for m in c] and None, "127.0.0.1", 0, compression=None) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            direct_to = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
            proxy, where = listening(folder, "ws://127.0.0.1:0", direct_to)
            put(found, "ws 50 B", over_ws(direct_to, count, 50), over_ws(where, count, 50))
            proxy.terminate()
            server.shutdown()
    if options.json:
        sys.stdout.write(json.dumps(found) + "\n")
        return
    sys.stdout.write(
        f"{'':16}{'direct':>9}{'through':>9}{'added':>9}{'p99 added':>11}   ms a round trip, median" + "\n"
    )
    for name, row in found.items():
        sys.stdout.write(
            f"{name:16}{row['direct']:9.3f}{row['through']:9.3f}{row['added']:9.3f}{row['p99_added']:11.3f}" + "\n"
        )


def put(found: dict[str, dict[str, float]], name: str, direct: list[float], through: list[float]) -> None:
    def p99(taken: list[float]) -> float:
        return statistics.quantiles(taken, n=100)[98]

    a, b = statistics.median(direct), statistics.median(through)
    found[name] = {"direct": a, "through": b, "added": b - a, "p99_added": p99(through) - p99(direct)}


if __name__ == "__main__":
    main()
