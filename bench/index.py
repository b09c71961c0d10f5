"""How fast questions are over a large index: `python bench/index.py [--streams N] [--records N]` (`make bench-index`).

Makes a store of many streams of four harnesses, one of them the root of 500 descendants on four levels, makes its index from
the streams alone, then prints how long `asrd usage`, `asrd usage daily`, `asrd tree` of that root and `asrd ls` take as whole
commands, and what one record more costs: to take in, and to be in both answers. Totals are compared with what was written.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from asrd.paths import folders
from asrd.recorders.base import StreamKey
from asrd.records import Inference, Record, Usage
from asrd.store import Store
from bench import ASRD, OUT

HARNESSES = (("claude-code", "claude-sonnet-4-6"), ("codex", "gpt-5"), ("gemini", "gemini-2.5-pro"), ("pi", "mock-1"))
DESCENDANTS = 500
Lines = list[dict[str, Any]]


def ident(number: int) -> str:
    """The id of a session."""
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def stream(number: int, count: int, chance: random.Random) -> tuple[Lines, int, int]:
    """A stream of `count` records, and the requests and output tokens in it."""
    agent, model = HARNESSES[0 if number <= DESCENDANTS else number % len(HARNESSES)]
    lineage: dict[str, Any] = {"root": True}
    if 0 < number <= DESCENDANTS:  # a tree of four levels: eight below the root, eight below each of these, and so on
        parent = {"agent": agent, "sessionId": ident((number - 1) // 8)}
        lineage = {"root": False, "relation": "spawned_by", "parent": parent, "evidence": {"kind": "native-field"}}
    day = f"2026-{number % 11 + 1:02d}-{number % 27 + 1:02d}"
    lines: Lines = [
        {
            "type": "session", "formatVersion": "0.1", "agent": {"name": agent, "version": "1"}, "sessionId": ident(number),
            "producer": {"name": "asrd", "version": "0", "method": "converter", "instance": "bench/1"}, "lineage": lineage,
            "startedAt": f"{day}T10:00:00.000Z", "scope": "primary", "profiles": ["core"], "contentLevel": "full",
            "workspace": {"roots": [{"id": "r1", "path": f"/home/dev/p{number % 200}"}]},
        }
    ]  # fmt: skip
    requests = output = turn = 0
    while len(lines) < count:
        at = f"{day}T{10 + turn // 60 % 12:02d}:{turn % 60:02d}:00.000Z"
        tokens = chance.randint(1, 900)
        requests, output = requests + 1, output + tokens
        usage = {
            "input": chance.randint(1, 900),
            "output": tokens,
            "cacheRead": chance.randint(0, 90_000),
            "cacheWrite": 7,
        }
        call, name = f"call-{number:08x}-{turn:08x}", f"msg-{number:08x}-{turn:08x}"
        lines += [
            {"type": "message", "at": at, "role": "user", "origin": "prompt", "content": [{"type": "text", "text": "Go on."}]},
            {"type": "inference", "at": at, "inferenceId": name, "model": model, "usage": usage},
            {"type": "message", "at": at, "role": "assistant", "inferenceId": name, "content": [{"type": "text", "text": "Yes."}]},
            {"type": "tool_call", "at": at, "callId": call, "name": "bash", "kind": "execute", "input": {"command": "ls"}},
            {"type": "tool_result", "at": at, "callId": call, "linkage": "exact", "status": "completed",
             "content": [{"type": "text", "text": "done"}], "exec": {"exitCode": 0}},
        ]  # fmt: skip
        turn += 1
    return [{**line, "seq": n, "id": f"r{n}" if n else "h"} for n, line in enumerate(lines)], requests, output


def made(store: Path, streams: int, records: int) -> dict[str, int]:
    """The store, made once, and what is in it."""
    known = store / "made.json"
    if known.exists():
        return json.loads(known.read_text())
    shutil.rmtree(store, ignore_errors=True)
    where = folders({"HOME": str(store), "ASRD_HOME": str(store)})
    chance = random.Random(5)
    total = {"records": 0, "requests": 0, "output": 0}
    for number in range(streams):
        lines, requests, output = stream(number, records // streams, chance)
        agent = str(lines[0]["agent"]["name"])
        path = where.streams / agent / f"{ident(number)}.asr.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
        for name, more in (("records", len(lines)), ("requests", requests), ("output", output)):
            total[name] += more
    began = time.perf_counter()
    opened = Store(where)
    opened.index.catch_up(opened.disk)
    opened.close()
    print(f"the index was made from the streams in {time.perf_counter() - began:.1f} s", flush=True)
    known.write_text(json.dumps(total))
    return total


def asked(env: dict[str, str], words: list[str], times: int) -> tuple[Any, list[float]]:
    """The answer of a command, and how long it took each time, in ms."""
    took: list[float] = []
    answer: Any = None
    for _ in range(times):
        began = time.perf_counter()
        done = subprocess.run([*ASRD, *words], env=env, capture_output=True, check=True)
        took.append((time.perf_counter() - began) * 1000)
        answer = json.loads(done.stdout) if words[-1] == "--json" else None
    return answer, took


def told(usage: dict[str, Any]) -> tuple[int, int]:
    """Requests and output tokens of `asrd usage --json`."""
    return usage["total"]["requests"], usage["total"]["output"]


def more(env: dict[str, str], store: Path) -> float:
    """A response more in a descendant of the root; gives how long taking it in took, durable, in ms."""
    opened = Store(folders({"HOME": env["HOME"], "ASRD_HOME": str(store)}))
    key = StreamKey(HARNESSES[0][0], ident(DESCENDANTS), "")
    seq = opened.next_seq(key)
    one: Record = Inference(
        inference_id=f"msg-more-{seq:08x}",
        model=HARNESSES[0][1],
        usage=Usage(input=1, output=1),
        at="2026-11-30T10:00:00.000Z",
    )
    one.seq, one.id = seq, f"r{seq}"
    began = time.perf_counter()
    opened.append(key, [one])
    opened.sync()
    took = (time.perf_counter() - began) * 1000
    opened.close()
    return took


def main() -> None:
    """Makes, asks, prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--times", type=int, default=9)
    args = parser.parse_args()
    store = OUT / f"index-{args.streams}-{args.records}"
    total = made(store, args.streams, args.records)
    env = {**os.environ, "HOME": str(store), "ASRD_HOME": str(store), "PYTHONDONTWRITEBYTECODE": ""}
    print(f"{args.streams:,} streams, {total['records']:,} records, {total['requests']:,} requests; {os.cpu_count()} cores, "
          f"load {os.getloadavg()[0]:.1f}\n")  # fmt: skip
    print(f"{'whole command':<34}{'least':>8}{'median':>9}{'worst':>8}")
    questions = (
        ["usage"], ["usage", "--json"], ["tree", ident(0)], ["tree", ident(0), "--json"], ["usage", "daily", "--json"],
        ["ls", "-n", "20"],
    )  # fmt: skip
    answers: dict[str, Any] = {}
    for words in questions:
        name = " ".join(["asrd", *words]).replace(ident(0), "ROOT")
        answers[name], took = asked(env, words, args.times)
        print(f"{name:<34}{min(took):>6.0f}ms{statistics.median(took):>7.0f}ms{max(took):>6.0f}ms", flush=True)
    requests, output = told(answers["asrd usage --json"])
    wrong = (
        []
        if (requests, output) == (total["requests"], total["output"])
        else [f"{requests:,} requests, {output:,} output"]
    )
    took_in = [more(env, store) for _ in range(args.times)]
    after, took = asked(env, ["usage", "--json"], 1)
    if told(after) != (requests + args.times, output + args.times):
        wrong.append(f"{told(after)} after {args.times} responses more")
    below, took_tree = asked(env, ["tree", ident(0), "--json"], 1)
    print(f"\na record more: {statistics.median(took_in):.1f} ms to be durable and in the index; "
          f"usage {took[0]:.0f} ms, tree {took_tree[0]:.0f} ms right after it")  # fmt: skip
    if below == answers["asrd tree ROOT --json"]:
        wrong.append("the tree is as it was")
    total["requests"], total["output"] = told(after)
    (store / "made.json").write_text(json.dumps(total))
    print("totals: " + ("; ".join(wrong) if wrong else "exact, before and after"))
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
