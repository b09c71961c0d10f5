"""asrd beside what a user would pick instead, on the same home in one run: `python bench/peers.py [HOME]` (`make bench-peers`).

Each peer is installed where it can be (npm, PyPI) and left out with a word where it cannot. Wall and CPU seconds are of the
process and all it started, the median of `--repeat` runs in turn; memory is the peak of all of them together. (agentsview's work is
done by a server that outlives the command: only its wall seconds are its own.)
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from scale import measured

from bench import ASRD, OUT

PEERS = OUT / "peers"


def pip(name: str) -> Path | None:
    """A peer from PyPI, in an environment of its own."""
    folder = PEERS / name
    if not (folder / "bin" / name).exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin/pip"), "install", "--quiet", name], capture_output=True, check=False)
    return folder / "bin" / name if (folder / "bin" / name).exists() else None


def npm(name: str) -> Path | None:
    """A peer from npm."""
    binary = PEERS / "npm/node_modules/.bin" / name
    if not binary.exists():
        subprocess.run(
            ["npm", "install", "--prefix", str(PEERS / "npm"), name], capture_output=True, check=False, timeout=120
        )
    return binary if binary.exists() else None


def main() -> None:
    """Runs it all in turn and prints the medians."""
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path, nargs="?", default=OUT / "home-7-300-100")
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    home = args.home.resolve()
    megabytes = sum(p.stat().st_size for p in home.rglob("*") if p.is_file()) / 1e6
    work = PEERS / "work"
    env = {**os.environ, "HOME": str(home), "ASRD_HOME": str(work / "asrd"), "AGENTSVIEW_DATA_DIR": str(work / "agentsview"),
           "CCUSAGE_OFFLINE": "1", "NO_COLOR": "1"}  # fmt: skip
    commands: list[tuple[str, list[str] | None, bool]] = [
        ("asrd sync, first", [*ASRD, "sync", "--quiet"], True),
        ("asrd sync, first, one process", [*ASRD, "sync", "--quiet", "--jobs", "1"], True),
        ("asrd sync, nothing new", [*ASRD, "sync", "--quiet"], False),
        ("asrd usage --json", [*ASRD, "usage", "--json"], False),
    ]
    view = pip("agentsview")
    commands += [("agentsview sync, first", [str(view), "sync"], True)] if view else [("agentsview", None, False)]
    commands += [("agentsview sync, nothing new", [str(view), "sync"], False)] if view else []
    ccusage = OUT / "ccusage/node_modules/.bin/ccusage"
    if not ccusage.exists():
        ccusage = npm("ccusage") or ccusage
    for words in ("claude", "codex"):
        argv = [str(ccusage), words, "daily", "--offline", "--json"]
        commands.append((f"ccusage {words} daily", argv if ccusage.exists() else None, False))
    tokscale = npm("tokscale")
    commands.append(("tokscale", [str(tokscale), "--json"] if tokscale else None, False))
    log = pip("claude-code-log")
    argv = [str(log), str(home / ".claude/projects"), "--output", str(work / "html"), "--no-individual-sessions"]
    commands.append(("claude-code-log (Claude only)", argv if log else None, True))

    print(f"{megabytes:.0f} MB, {os.cpu_count()} cores, median of {args.repeat}\n")
    print(f"{'':34}{'wall s':>8}{'cpu s':>8}{'MB/s':>8}{'peak MB':>9}")
    for name, argv, anew in commands:
        if argv is None:
            print(f"{name:34}could not be installed here")
            continue
        runs: list[dict[str, float]] = []
        for _ in range(args.repeat):
            if (
                view and "agentsview" in name
            ):  # it leaves a server behind that does the work: it is ended before each run
                subprocess.run([str(view), "serve", "stop"], env=env, capture_output=True, check=False)
            if anew:
                shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True, exist_ok=True)
            try:
                runs.append(measured(argv, env))
            except SystemExit as stop:
                print(f"{name:34}{str(stop)[-120:]}")
                break
        if view and "agentsview" in name:
            subprocess.run([str(view), "serve", "stop"], env=env, capture_output=True, check=False)
        if runs:
            one = {key: statistics.median(r[key] for r in runs) for key in runs[0]}
            rate = megabytes / one["wall"]
            print(f"{name:34}{one['wall']:8.2f}{one['cpu']:8.2f}{rate:8.1f}{one['memory']:9.1f}", flush=True)


if __name__ == "__main__":
    main()
