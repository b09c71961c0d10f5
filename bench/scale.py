"""Measures what grows with the store: `python bench/scale.py [big|follow|backfill|many]` (`make bench-scale`).

    many      20,000 sessions, 500 MB: everything below (this is what it does when nothing is said)
    big       10 GB: the first sync with all cores, its peak of memory
    follow    3,000 sources: what the daemon costs that follows them while nothing happens
    backfill  1 GB: the time from a line written to its record on `follow` while the rest is being recorded

`--sessions`, `--megabytes`, `--lines`, `--idle` and `--repeat` say other sizes; `--where` another folder than `bench/out`.
Makes a home of Claude Code's, then prints, with the load of the machine: the first sync with one and with all cores, a second
sync with nothing new, `asrd usage` and `asrd status`, the time from start to the first answer, the time from a line written to
its record on `follow` while the rest is still being recorded and when all is, and what the idle daemon costs. Every figure is
of whole processes, workers with it; memory of several processes is the sum of their proportional sets. Nothing is asserted.
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
from bench import ASRD, OUT, cpu_of, latency, rss_of, timed

WORDS = [w.strip() for w in (Path(__file__).parent / "gen_corpus.py").read_text().split() if w.isalpha()]


def make_home(home: Path, sessions: int, megabytes: int) -> None:
    """A home with that many sessions, their sizes skewed as real ones are (a tenth holds half)."""
    chance = random.Random(11)
    each = megabytes * 1_000_000 / sessions
    for number in range(sessions):
        sid = f"{number:08x}-0000-4000-8000-{number:012d}"
        size = each * (5.0 if number % 10 == 0 else 0.55)
        path = home / f".claude/projects/-home-dev-p{number % 200}" / f"{sid}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            turn = 0
            while file.tell() < size:
                file.write(turn_of(sid, turn, chance))
                turn += 1
        os.utime(path, (1.79e9 + number, 1.79e9 + number))


def turn_of(sid: str, turn: int, chance: random.Random) -> bytes:
    """A prompt, and an answer with a call and its result."""
    base = {"isSidechain": False, "userType": "external", "cwd": "/home/dev/p", "sessionId": sid, "version": "2.1.305",
            "gitBranch": "main", "timestamp": f"2026-11-{1 + turn % 28:02d}T12:{turn % 60:02d}:00.000Z"}  # fmt: skip
    words = " ".join(chance.choices(WORDS, k=chance.randint(20, 300)))
    u, a, r = f"{sid}-{turn}u", f"{sid}-{turn}a", f"{sid}-{turn}r"
    usage = {"input_tokens": 5, "output_tokens": chance.randint(1, 900), "cache_read_input_tokens": chance.randint(0, 9999),
             "cache_creation_input_tokens": 7}  # fmt: skip
    lines: list[dict[str, Any]] = [
        {**base, "type": "user", "parentUuid": None, "uuid": u, "message": {"role": "user", "content": words}},
        {**base, "type": "assistant", "parentUuid": u, "uuid": a, "requestId": "req" + a,
         "message": {"id": "msg" + a, "role": "assistant", "model": "claude-sonnet-4-6", "usage": usage, "content": [
             {"type": "text", "text": words}, {"type": "tool_use", "id": "t" + a, "name": "Bash", "input": {"command": "ls"}}]}},
        {**base, "type": "user", "parentUuid": a, "uuid": r, "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t" + a, "content": words, "is_error": False}]}},
    ]  # fmt: skip
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def family(pid: int) -> list[int]:
    """A process and those it started."""
    found = [pid]
    for one in found:
        try:
            found += [int(p) for p in Path(f"/proc/{one}/task/{one}/children").read_text().split()]
        except OSError:
            continue
    return found


def proportional(pid: int) -> float:
    """MB a process and its children hold, pages they share counted once."""
    total = 0
    for one in family(pid):
        try:
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total / 1024


def load() -> str:
    """How busy the machine is: processes that want to run, over the last minute."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def ran(pid: int) -> float:
    """Seconds of CPU all threads of a process had, to the nanosecond where Linux says so."""
    try:
        return sum(int((t / "schedstat").read_text().split()[0]) for t in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    except OSError:
        return cpu_of(pid) / os.sysconf("SC_CLK_TCK")


def measured(argv: list[str], env: dict[str, str]) -> dict[str, float]:
    """Wall and CPU seconds (children with it) and the peak of memory of a process and its workers."""
    began, before = time.perf_counter(), os.times()
    child = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL)
    peak = 0.0
    while child.poll() is None:
        peak = max(peak, proportional(child.pid))
        time.sleep(0.2)
    after = os.times()
    if child.returncode:
        raise SystemExit(f"{argv}: exit {child.returncode}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall": time.perf_counter() - began, "cpu": cpu, "memory": peak}


def first_answer(env: dict[str, str], store: Path) -> tuple[subprocess.Popen[bytes], float]:
    """Starts a daemon; gives it, and the seconds from its start to its first answer to `sessions.list`."""
    import socket

    began = time.perf_counter()
    daemon = subprocess.Popen([*ASRD, "run"], env=env, stderr=subprocess.DEVNULL)
    ask = b'{"jsonrpc":"2.0","id":1,"method":"sessions.list","params":{"limit":20}}\n'
    while True:
        one = socket.socket(socket.AF_UNIX)
        try:
            one.connect(str(store / "asrd.sock"))
            one.sendall(ask)
            if one.makefile("rb").readline():
                return daemon, time.perf_counter() - began
        except OSError:
            time.sleep(0.005)
        finally:
            one.close()


def caught_up(env: dict[str, str]) -> bool:
    """Whether the daemon has nothing left to do."""
    done = subprocess.run([*ASRD, "status", "--json"], env=env, capture_output=True, check=False)
    return done.returncode == 0 and bool(json.loads(done.stdout).get("caughtUp"))


SIZES = {"many": (20_000, 500), "big": (4_000, 10_000), "follow": (3_000, 100), "backfill": (2_000, 1_000)}
"""Sessions and megabytes."""


def main() -> None:
    """Runs it all and prints it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="?", choices=SIZES, default="many")
    parser.add_argument("--sessions", type=int)
    parser.add_argument("--megabytes", type=int)
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--idle", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--where", type=Path, default=OUT)
    parser.add_argument("--keep", action="store_true", help="the home that was made, for another time")
    args = parser.parse_args()
    sessions, megabytes = args.sessions or SIZES[args.what][0], args.megabytes or SIZES[args.what][1]
    home = args.where / f"scale-{sessions}-{megabytes}"
    if not (home / "made").exists():
        shutil.rmtree(home, ignore_errors=True)
        make_home(home, sessions, megabytes)
        (home / "made").touch()
    store = args.where / f"scale-store-{args.what}"
    env = {**os.environ, "HOME": str(home), "ASRD_HOME": str(store)}
    size = sum(p.stat().st_size for p in home.rglob("*.jsonl")) / 1e6
    print(f"{sessions:,} sessions, {size:,.0f} MB, {load()}, Python {sys.version.split()[0]}\n", flush=True)
    try:
        if args.what in ("many", "big"):
            reading(env, store, size, args.repeat, ["--jobs", "1"] if args.what == "many" else None)
        if args.what in ("many", "follow"):
            at_rest(env, home, store, args.lines, args.idle, args.repeat)
        if args.what in ("many", "backfill"):
            catching_up(env, home, store, args.lines, args.repeat)
    finally:
        shutil.rmtree(store, ignore_errors=True)
        if args.what == "big" and not args.keep:
            shutil.rmtree(home)


def reading(env: dict[str, str], store: Path, megabytes: float, repeat: int, one_core: list[str] | None) -> None:
    """First readings and what is asked of the store then."""
    print(f"{'':34}{'wall s':>8}{'cpu s':>8}{'MB/s':>8}{'peak MB':>9}")

    def show(name: str, runs: list[dict[str, float]], per_second: bool = True) -> None:
        one = {key: statistics.median(r[key] for r in runs) for key in runs[0]}
        rate = f"{megabytes / one['wall']:8.1f}" if per_second else " " * 8
        print(f"{name:34}{one['wall']:8.2f}{one['cpu']:8.2f}{rate}{one['memory']:9.1f}   {load()}", flush=True)

    kinds: list[tuple[str, list[str]]] = [("first sync, one core", one_core)] if one_core else []
    for name, words in (*kinds, ("first sync, all cores", [])):
        runs: list[dict[str, float]] = []
        for _ in range(repeat):
            shutil.rmtree(store, ignore_errors=True)
            runs.append(measured([*ASRD, "sync", "--quiet", *words], env))
        show(name, runs)
    for name, words in (("second sync, nothing new", ["sync", "--quiet"]), ("asrd usage --json", ["usage", "--json"])):
        show(name, [timed([*ASRD, *words], env) for _ in range(3)], False)


def at_rest(env: dict[str, str], home: Path, store: Path, lines: int, idle: int, repeat: int) -> None:
    """Starting, answering, one new line, and doing nothing."""
    if not store.exists():
        measured([*ASRD, "sync", "--quiet"], env)
    starts: list[float] = []
    for _ in range(3):
        daemon, took = first_answer(env, store)
        starts.append(took)
        daemon.terminate()
        daemon.wait(30)
    print(f"\nstart to the first answer: {statistics.median(starts) * 1000:.0f} ms   {load()}")

    daemon, _ = first_answer(env, store)
    while not caught_up(env):
        time.sleep(0.2)
    asked = statistics.median(timed([*ASRD, "status"], env)["wall"] for _ in range(3))
    print(f"asrd status: {asked:.2f} s   {load()}")
    for _ in range(repeat):
        median, p99, seen = latency(home, store, lines)
        print(
            f"line to record, all caught up: median {median:.1f} ms, p99 {p99:.1f} ms, {seen} of {lines} seen   {load()}"
        )
    time.sleep(30)
    for _ in range(repeat):
        before, began = ran(daemon.pid), time.monotonic()
        time.sleep(idle)
        share = (ran(daemon.pid) - before) / (time.monotonic() - began) * 100
        print(f"idle: {share:.3f} % of a core, {rss_of(daemon.pid):.1f} MB resident   {load()}", flush=True)
    daemon.terminate()
    daemon.wait(30)


def catching_up(env: dict[str, str], home: Path, store: Path, lines: int, repeat: int) -> None:
    """One new line while everything else is still being recorded."""
    for _ in range(repeat):
        shutil.rmtree(store, ignore_errors=True)
        first = next((home / ".claude/projects").glob("*/*.jsonl"))
        os.utime(first)  # the session that is written to was the last one: it is recorded first
        daemon, _ = first_answer(env, store)
        time.sleep(5)
        median, p99, seen = latency(home, store, lines)
        behind = "still" if not caught_up(env) else "no longer"
        print(f"line to record, while the rest is recorded: median {median:.1f} ms, p99 {p99:.1f} ms, {seen} of {lines} seen "
              f"({behind} behind at the end, {rss_of(daemon.pid):.1f} MB)   {load()}", flush=True)  # fmt: skip
        daemon.terminate()
        daemon.wait(60)


if __name__ == "__main__":
    main()
