"""How fast `asrd search` is: 10,000 sessions in a made store, indexed, then asked. Prints a table.

    python bench/search.py [SESSIONS] [FOLDER]

Texts follow Zipf's law over a made vocabulary, so that there are very common and very rare words. Deterministic.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from asrd.answers import ask
from asrd.client import open_reader
from asrd.paths import folders
from asrd.store import Store
from asrd.store.disk import RealDisk
from asrd.store.rows import IndexRows
from asrd.words import WordsIndexer

TURNS = 6
WORDS = 30_000


def say(line: str) -> None:
    """One line of the table."""
    sys.stdout.write(line + "\n")


def vocabulary(chance: random.Random) -> tuple[list[str], list[float]]:
    """Made words, and how often each is used so far (cumulated)."""
    syllables = [a + b for a in "bcdfghklmnprstvz" for b in "aeiou"]
    words = list(dict.fromkeys("".join(chance.choices(syllables, k=chance.randint(2, 4))) for _ in range(WORDS)))
    return words, list(itertools.accumulate(1 / (n + 3) for n in range(len(words))))


def session(number: int, chance: random.Random, words: list[str], weights: list[float]) -> str:
    """One stream: prompts, answers, calls with their results, responses with figures."""

    def text(low: int, high: int) -> str:
        return " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(low, high)))

    agent = ("codex", "claude-code", "gemini")[number % 3]
    ident = f"{number:08x}-0000-4000-8000-{chance.getrandbits(48):012x}"
    day = f"2026-{number % 11 + 1:02d}-{number % 27 + 1:02d}"
    records: list[dict[str, object]] = [
        {
            "type": "session", "formatVersion": "0.1", "agent": {"name": agent, "version": "1"}, "sessionId": ident,
            "producer": {"name": "asrd", "version": "0", "method": "converter", "instance": "bench/1"},
            "lineage": {"root": True}, "scope": "primary", "profiles": ["core"], "contentLevel": "full",
            "workspace": {"roots": [{"id": "r1", "path": f"/home/dev/p{number % 200}"}]},
        }
    ]  # fmt: skip
    for turn in range(TURNS):
        at = f"{day}T10:{turn:02d}:00.000Z"
        call, response = f"call-{number}-{turn}", f"resp-{number}-{turn}"
        tool = ("bash", "read", "edit")[turn % 3]
        code = int(chance.random() < 0.1)
        records += [
            {"type": "message", "at": at, "role": "user", "origin": "prompt", "content": [{"type": "text", "text": text(5, 60)}]},
            {"type": "inference", "at": at, "inferenceId": response, "model": "m", "usage": {"input": 1000, "output": 100}},
            {"type": "message", "at": at, "role": "assistant", "content": [{"type": "text", "text": text(20, 150)}]},
            {"type": "tool_call", "at": at, "callId": call, "name": tool, "input": {"command": text(3, 20)}},
            {"type": "tool_result", "at": at, "callId": call, "linkage": "exact", "status": "failed" if code else "completed",
             "content": [{"type": "text", "text": text(20, 300)}], "exec": {"exitCode": code}},
        ]  # fmt: skip
    lines = [{**r, "seq": n, "id": f"r{n}" if n else "h"} for n, r in enumerate(records)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def main() -> None:
    """Makes, indexes, asks, prints."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    work = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp(prefix="asrd-search-"))
    where = folders({"HOME": str(work), "ASRD_HOME": str(work / "store")})
    chance = random.Random(7)
    words, weights = vocabulary(chance)
    size = 0
    for number in range(count):
        text = session(number, chance, words, weights)
        agent = ("codex", "claude-code", "gemini")[number % 3]
        path = where.streams / agent / f"{number:08x}.asr.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text, "utf-8")
        size += len(text)
    store = Store(where)
    store.index.catch_up(store.disk)
    store.close()
    began = time.perf_counter()
    indexer = WordsIndexer(where, lambda: open_reader(where), RealDisk())
    while indexer.step():
        pass
    indexer.close()
    took = time.perf_counter() - began
    file = sum(os.path.getsize(p) for p in where.store.glob("search.sqlite*"))
    say(f"{count:,} sessions, {size / 1e6:.0f} MB of streams, {count * (TURNS * 5 + 1):,} records")
    say(f"indexed in {took:.1f} s: {size / 1e6 / took:.1f} MB/s, in parts; {file / 1e6:.0f} MB of index")
    say(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB\n")
    common, middle, rare = words[0], words[300], words[-50]
    questions: dict[str, dict[str, object]] = {
        "the most common word": {"query": common},
        "two common words": {"query": f"{common} {words[1]}"},
        "a common and a rare one": {"query": f"{common} {rare}"},
        "a middling word": {"query": middle},
        "a rare word": {"query": rare},
        "a phrase": {"query": f'"{common} {words[1]}"'},
        "the beginning of a word": {"query": f"{middle[:3]}*"},
        "not": {"query": f"{middle} -{common}"},
        "common, of one harness and project": {"query": common, "harness": "codex", "project": "/home/dev/p3"},
        "common, results that failed": {"query": common, "tool": "bash", "exit": "nonzero"},
        "only filters": {"tool": "edit", "exit": "1"},
        "common, one week": {"query": common, "since": "2026-05-01", "until": "2026-05-08"},
    }  # fmt: skip
    say(f"{'question':<38}{'first':>8}{'median':>9}{'worst':>8}  matches")
    slowest = 0.0
    for name, given in questions.items():
        rows = IndexRows(open_reader(where), where.streams)  # a connection of its own: nothing is warm in it
        times: list[float] = []
        answer: dict[str, object] = {}
        for _ in range(9):
            began = time.perf_counter()
            answer = ask(rows, "search", given)
            times.append((time.perf_counter() - began) * 1000)
        slowest = max(slowest, statistics.median(times))
        told = f"{answer['matched']:,}{'+' if answer['more'] else ''}"
        say(f"{name:<38}{times[0]:>6.1f}ms{statistics.median(times):>7.1f}ms{max(times):>6.1f}ms  {told}")
    say(f"\nslowest median {slowest:.1f} ms (to reach: 100)")


if __name__ == "__main__":
    main()
