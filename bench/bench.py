"""Measures asrd on a large home with known totals, beside `cat` of the same files and ccusage: `make bench`.

Prints MB/s, CPU seconds and peak memory of the first sync and of a second one with nothing new, the time from a line
written to the same record on `follow`, and what the idle daemon costs. Every figure is of a whole process, as the
operating system accounts for it. Nothing is asserted but the totals, which must be exact.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUT = HERE / "out"
ASRD = [sys.executable, "-m", "asrd"]


def timed(argv: list[str], env: dict[str, str] | None = None, out: Any = subprocess.DEVNULL) -> dict[str, float]:
    """Wall and CPU seconds, and peak memory in MB, of one process."""
    began = time.perf_counter()
    child = subprocess.Popen(argv, env=env, stdout=out, stderr=subprocess.PIPE)
    assert child.stderr is not None
    words = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{argv}: exit {child.returncode}: {words.decode()[-2000:]}")
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss / 1024}


def corpus(args: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """The home and its truth; made once."""
    home = OUT / f"home-{args.seed}-{args.claude_mb}-{args.codex_mb}"
    truth = Path(f"{home}.truth.json")
    if not truth.exists():
        shutil.rmtree(home, ignore_errors=True)
        OUT.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, str(HERE / "gen_corpus.py"), str(home), "--seed", str(args.seed), "--truth", str(truth),
             "--claude-sessions", str(args.claude_sessions), "--claude-mb", str(args.claude_mb),
             "--codex-sessions", str(args.codex_sessions), "--codex-mb", str(args.codex_mb)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return home, json.loads(truth.read_text())


def right(truth: dict[str, Any], usage: dict[str, Any]) -> list[tuple[str, int, int]]:
    """(what, right, ours) for every total of the truth file."""
    by = {row["harness"]: row for row in usage["byHarness"]}
    rows: list[tuple[str, int, int]] = []
    if claude := truth["right_total"].get("claude"):
        ours = by["claude-code"]
        for theirs, mine in (("input_tokens", "input"), ("cache_creation_input_tokens", "cacheWrite"),
                             ("cache_read_input_tokens", "cacheRead"), ("output_tokens", "output")):  # fmt: skip
            rows.append((f"claude-code {mine}", claude[theirs], ours[mine]))
        rows.append(("claude-code requests", truth["claude"]["inferences"], ours["requests"]))
    if codex := truth["right_total"].get("codex"):
        ours = by["codex"]
        rows.append(("codex inputTotal", codex["input_tokens"], ours["inputTotal"]))
        for theirs, mine in (("cached_input_tokens", "cacheRead"), ("output_tokens", "output"),
                             ("reasoning_output_tokens", "reasoning")):  # fmt: skip
            rows.append((f"codex {mine}", codex[theirs], ours[mine]))
        rows.append(("codex requests", truth["codex"]["inferences"], ours["requests"]))
    return rows


def latency(home: Path, store: Path, lines: int) -> tuple[float, float, int]:
    """Median and 99th percentile in ms from a line written to its record on `follow`, and how many were seen."""
    env = {**os.environ, "HOME": str(home), "ASRD_HOME": str(store)}
    target = next((home / ".claude/projects").glob("*/*.jsonl"))
    sid = target.stem
    cwd = json.loads(target.read_bytes().splitlines()[1])["cwd"]
    s = socket.socket(socket.AF_UNIX)
    s.connect(str(store / "asrd.sock"))
    stream = s.makefile("rb")
    records = json.loads(subprocess.run([*ASRD, "ls", "--json"], env=env, capture_output=True, check=True).stdout)
    count = next(x["records"] for x in records["sessions"] if x["sessionId"] == sid)
    ask = {"jsonrpc": "2.0", "id": 1, "method": "session.follow", "params": {"session": sid, "from": count}}
    s.sendall(json.dumps(ask).encode() + b"\n")
    stream.readline()
    seen: dict[str, float] = {}

    def read() -> None:
        for line in stream:
            now = time.perf_counter()
            for record in json.loads(line)["params"]["records"]:
                if record["type"] == "message":
                    for block in record["content"]:
                        seen.setdefault(block.get("text", ""), now)

    threading.Thread(target=read, daemon=True).start()
    written: dict[str, float] = {}
    run = time.time_ns()
    with open(target, "ab", buffering=0) as file:
        for number in range(lines):
            words = f"latency line {run}-{number}"
            line = {
                "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": sid,
                "version": "2.1.305", "gitBranch": "main", "type": "user", "message": {"role": "user", "content": words},
                "uuid": f"00000000-0000-4000-8000-{number:012d}", "timestamp": "2026-11-30T12:00:00.000Z",
            }  # fmt: skip
            written[words] = time.perf_counter()
            file.write(json.dumps(line).encode() + b"\n")
            time.sleep(0.03)
    time.sleep(1.5)
    took = sorted((seen[w] - t) * 1000 for w, t in written.items() if w in seen)
    return statistics.median(took), took[int(len(took) * 0.99)], len(took)


def main() -> None:
    """Runs it all and prints it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--claude-sessions", type=int, default=200)
    parser.add_argument("--claude-mb", type=int, default=300)
    parser.add_argument("--codex-sessions", type=int, default=80)
    parser.add_argument("--codex-mb", type=int, default=100)
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--idle", type=int, default=30, help="seconds the idle daemon is looked at")
    parser.add_argument("--no-ccusage", action="store_true")
    args = parser.parse_args()
    home, truth = corpus(args)
    files = [str(p) for p in home.rglob("*") if p.is_file()]
    megabytes = sum(os.path.getsize(f) for f in files) / 1e6
    store = OUT / "store"
    shutil.rmtree(store, ignore_errors=True)
    env = {**os.environ, "HOME": str(home), "ASRD_HOME": str(store)}
    print(f"{len(files)} files, {megabytes:.1f} MB, {os.cpu_count()} cores, Python {sys.version.split()[0]}\n")

    rows: list[tuple[str, dict[str, float]]] = [("cat of the same files", timed(["cat", *files]))]
    rows.append(("asrd sync, first", timed([*ASRD, "sync", "--quiet"], env)))
    rows.append(("asrd sync, nothing new", timed([*ASRD, "sync", "--quiet"], env)))
    rows.append(("asrd usage --json", timed([*ASRD, "usage", "--json"], env)))
    if not args.no_ccusage:
        rows += ccusage(env)
    print(f"{'':32}{'wall s':>8}{'cpu s':>8}{'MB/s':>8}{'peak MB':>9}")
    for name, found in rows:
        print(f"{name:32}{found['wall']:8.2f}{found['cpu']:8.2f}{megabytes / found['wall']:8.1f}{found['memory']:9.1f}")
    usage = json.loads(subprocess.run([*ASRD, "usage", "--json"], env=env, capture_output=True, check=True).stdout)
    print()
    wrong = 0
    for name, theirs, ours in right(truth, usage):
        wrong += theirs != ours
        print(f"{name:32}{theirs:>16,}{ours:>16,}  {'exact' if theirs == ours else 'WRONG'}")

    copy = OUT / "live-home"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home, copy)
    live_env = {**os.environ, "HOME": str(copy), "ASRD_HOME": str(OUT / "live-store")}
    shutil.rmtree(OUT / "live-store", ignore_errors=True)
    subprocess.run([*ASRD, "sync", "--quiet"], env=live_env, check=True)
    daemon = subprocess.Popen([*ASRD, "run"], env=live_env, stderr=subprocess.DEVNULL)
    try:
        while not (OUT / "live-store/asrd.sock").exists():
            time.sleep(0.05)
        time.sleep(3)
        median, p99, seen = latency(copy, OUT / "live-store", args.lines)
        print(
            f"\nline written to record on follow: median {median:.1f} ms, p99 {p99:.1f} ms, {seen} of {args.lines} seen"
        )
        time.sleep(25)
        ticks = os.sysconf("SC_CLK_TCK")
        before = cpu_of(daemon.pid)
        time.sleep(args.idle)
        idle = (cpu_of(daemon.pid) - before) / ticks / args.idle * 100
        print(f"idle daemon: {idle:.2f} % of a core, {rss_of(daemon.pid):.1f} MB, {len(files)} files")
    finally:
        daemon.terminate()
        daemon.wait(10)
    if wrong:
        raise SystemExit(f"{wrong} totals are wrong")


def ccusage(env: dict[str, str]) -> list[tuple[str, dict[str, float]]]:
    """Runs ccusage (npm, latest) over the same home, where npm can install it."""
    folder = OUT / "ccusage"
    binary = folder / "node_modules/.bin/ccusage"
    if not binary.exists():
        folder.mkdir(parents=True, exist_ok=True)
        native = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "x64")
        packages = ["ccusage@latest", f"@ccusage/ccusage-{sys.platform}-{native}@latest"]
        done = subprocess.run(["npm", "install", "--prefix", str(folder), *packages], capture_output=True)
        if done.returncode:
            print("ccusage could not be installed; left out\n")
            return []
    quiet = {**env, "CCUSAGE_OFFLINE": "1", "NO_COLOR": "1"}
    found: list[tuple[str, dict[str, float]]] = []
    for words in (["claude", "daily", "--offline", "--json"], ["codex", "daily", "--offline", "--json"]):
        try:
            found.append((f"ccusage {words[0]} {words[1]}", timed([str(binary), *words], quiet)))
        except SystemExit as stop:
            print(f"ccusage {words}: {stop}")
    return found


def cpu_of(pid: int) -> int:
    """CPU ticks a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def rss_of(pid: int) -> float:
    """Resident MB of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    main()
