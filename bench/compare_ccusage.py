"""ccusage's figures of a home beside asrd's, with the reason for each difference: `make compare`, or

    python bench/compare_ccusage.py HOME...

A reason is only given when it explains a difference to the token: each known way of counting otherwise is worked out from
the home itself (how much it would add), and the fewest of them that make up the difference exactly are named. What none of
them makes up is told as not explained. ccusage (npm, latest) is installed below bench/out, runs offline and in UTC.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUT = HERE / "out"
ASRD = [sys.executable, "-m", "asrd"]
THEIRS = {"claude-code": "claude", "codex": "codex", "opencode": "opencode", "pi": "pi", "gemini": "gemini",
          "copilot": "copilot", "hermes": "hermes", "kimi": "kimi", "qwen": "qwen", "openclaw": "openclaw",
          "antigravity": "antigravity"}  # fmt: skip
"""ccusage's command for each harness."""
FIGURES = ("input", "cacheRead", "cacheWrite", "output")
COLUMNS = dict(zip(FIGURES, ("input", "cache_read", "cache_write", "output"), strict=True))
NAMES = dict(zip(FIGURES, ("inputTokens", "cacheReadTokens", "cacheCreationTokens", "outputTokens"), strict=True))

Vector = tuple[int, int, int, int]
NOTHING: Vector = (0, 0, 0, 0)


def say(text: str = "") -> None:
    """One line on stdout."""
    sys.stdout.write(text + "\n")


def ccusage() -> Path:
    """The program, installed where it is not. Ends with a sentence when npm cannot."""
    folder = OUT / "ccusage"
    binary = folder / "node_modules/.bin/ccusage"
    if not binary.exists():
        folder.mkdir(parents=True, exist_ok=True)
        native = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "x64")
        packages = ["ccusage@latest", f"@ccusage/ccusage-{sys.platform}-{native}@latest"]
        done = subprocess.run(["npm", "install", "--prefix", str(folder), *packages], capture_output=True)
        if done.returncode:
            raise SystemExit("ccusage could not be installed: " + done.stderr.decode()[-500:])
    return binary


def their_figures(binary: Path, home: Path, harness: str) -> tuple[Vector, Decimal | None] | None:
    """The totals ccusage gives of one harness and what it says they cost; None where it has none."""
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG")}
    env |= {"HOME": str(home), "TZ": "UTC", "NO_COLOR": "1", "CCUSAGE_OFFLINE": "1"}
    words = [str(binary), THEIRS[harness], "daily", "--offline", "--json"]
    done = subprocess.run(words, env=env, capture_output=True)
    try:
        totals: dict[str, Any] = json.loads(done.stdout, parse_float=Decimal)["totals"]
    except (ValueError, KeyError, TypeError):
        return None
    found = [int(totals.get(NAMES[f]) or 0) for f in FIGURES]
    cost = totals.get("totalCost", totals.get("costUSD"))
    return (found[0], found[1], found[2], found[3]), None if cost is None else Decimal(str(cost))


def vector(row: Any) -> Vector:
    """Four numbers, unknown as none."""
    a, b, c, d = (int(n or 0) for n in row)
    return a, b, c, d


def plus(a: Vector, b: Vector, sign: int = 1) -> Vector:
    """The sum (or difference) of two."""
    return (a[0] + sign * b[0], a[1] + sign * b[1], a[2] + sign * b[2], a[3] + sign * b[3])


# ---------------------------------------------------------------- ways of counting otherwise


def ways(
    db: sqlite3.Connection, home: Path, harness: str, ours: Vector, row: dict[str, Any]
) -> list[tuple[str, Vector]]:
    """Each known way of counting otherwise, with what it changes here."""
    reasoning, cached, written = row.get("reasoning") or 0, ours[1], ours[2]
    found: list[tuple[str, Vector]] = [
        ("reasoning is left out of the output", (0, 0, 0, -reasoning)),
        ("reasoning is added to an output that has it in it", (0, 0, 0, reasoning)),
        ("tokens read from the cache are counted as input as well", (cached, 0, 0, 0)),
        ("tokens written to the cache are not counted", (0, 0, -written, 0)),
        ("tokens written to the cache are counted as input", (written, 0, -written, 0)),
        ("the sessions of this harness are not found at all", (-ours[0], -ours[1], -ours[2], -ours[3])),
    ]
    columns = ", ".join(f"sum(i.{COLUMNS[f]})" for f in FIGURES)
    copies = f"SELECT {columns} FROM inference i JOIN session s ON s.id = i.session WHERE NOT i.counted AND s.agent = ?"
    again = vector(db.execute(copies, (harness,)).fetchone())
    thought = db.execute(copies.replace(columns, "sum(i.reasoning)"), (harness,)).fetchone()[0] or 0
    found.append(("copies in forks, resumes and sub-agents are counted again", again))
    found.append(("copies are counted again, without their reasoning", plus(again, (0, 0, 0, -thought))))
    below = (
        f"SELECT {columns} FROM inference i JOIN session s ON s.id = i.owner WHERE i.counted AND s.agent = ? "
        "AND s.parent_relation = 'spawned_by'"
    )
    found.append(("sub-agents are left out", plus(NOTHING, vector(db.execute(below, (harness,)).fetchone()), -1)))
    forked = (
        f"SELECT {columns} FROM inference i JOIN session s ON s.id = i.owner WHERE i.counted AND s.agent = ? "
        "AND EXISTS (SELECT 1 FROM link l WHERE l.session = s.id AND l.relation IN ('forked_from', 'resumed_from'))"
    )
    found.append(("forks are left out", plus(NOTHING, vector(db.execute(forked, (harness,)).fetchone()), -1)))
    if harness == "claude-code":
        found += claude_ways(home)
    if harness == "qwen":
        found += qwen_ways(home, ours)
    found += one_by_one(db, harness)
    for why, change in [
        f for f in found if change_leaves_out(f[1])
    ]:  # what is left, counted with its cache in the input
        found.append(
            (
                f"{why}, and the others' tokens read from the cache are input as well",
                plus(change, (cached + change[1], 0, 0, 0)),
            )
        )
    return [(why, change) for why, change in found if change != NOTHING]


def claude_ways(home: Path) -> list[tuple[str, Vector]]:
    """What the lines of one response add when they are counted apart, and what an early line leaves out."""
    lines: dict[str, list[tuple[str | None, Vector, str]]] = defaultdict(list)
    for path in sorted(home.glob(".claude/projects/**/*.jsonl")):
        for text in path.read_bytes().splitlines():
            try:
                line = json.loads(text)
                message = line["message"]
                usage = message["usage"]
            except (ValueError, KeyError, TypeError):
                continue
            if line.get("type") == "assistant" and message.get("id"):
                figures = vector(
                    usage.get(k)
                    for k in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
                )
                lines[message["id"]].append((line.get("requestId"), figures, str(path)))
    without = early = across = NOTHING
    for found in lines.values():
        best = max(found, key=lambda f: f[1][3])[1]
        if all(request is None for request, _, _ in found):
            total = NOTHING
            for _, figures, _ in found:
                total = plus(total, figures)
            without = plus(without, plus(total, best, -1))
            per_file = {path: figures for _, figures, path in found}
            for figures in list(per_file.values())[1:]:
                across = plus(across, figures)
        else:
            early = plus(early, plus(found[0][1], best, -1))
    return [
        ("lines without a requestId are each counted: one response is counted once a line", without),
        ("responses without a requestId are counted again in each copy of their session", across),
        ("of a response's lines the first one counts, whose output was not complete", early),
    ]


def qwen_ways(home: Path, ours: Vector) -> list[tuple[str, Vector]]:
    """What the answers of the chat say; requests made beside it (titles, memory, summaries) stand in telemetry lines."""
    total = NOTHING
    for path in sorted(home.glob(".qwen/projects/*/chats/*.jsonl")):
        for text in path.read_bytes().splitlines():
            try:
                line = json.loads(text)
                usage = line["usageMetadata"]
                cached = usage.get("cachedContentTokenCount") or 0
                figures = (usage["promptTokenCount"] - cached, cached, 0, usage["candidatesTokenCount"])
            except (ValueError, KeyError, TypeError):
                continue
            if line.get("type") == "assistant":
                total = plus(total, figures)
    return [("requests beside the chat, which only telemetry lines hold, are left out", plus(total, ours, -1))]


def one_by_one(db: sqlite3.Connection, harness: str) -> list[tuple[str, Vector]]:
    """Each fork and sub-agent left out alone, where there are few."""
    columns = ", ".join(f"sum(i.{COLUMNS[f]})" for f in FIGURES)
    each = ", ".join(f"i.{COLUMNS[f]}" for f in FIGURES)
    sql = (
        f"SELECT s.session_id, s.parent_relation, s.id, {columns} FROM inference i JOIN session s ON s.id = i.owner "
        "WHERE i.counted AND s.agent = ? AND (s.parent_session IS NOT NULL OR EXISTS (SELECT 1 FROM link l "
        "WHERE l.session = s.id AND l.relation IN ('forked_from', 'resumed_from'))) GROUP BY s.id LIMIT 25"
    )
    found: list[tuple[str, Vector]] = []
    for ident, relation, number, *figures in db.execute(sql, (harness,)):
        what = "sub-agent" if relation == "spawned_by" else "fork"
        first = f"SELECT {each} FROM inference i WHERE i.counted AND i.measured AND i.owner = ? ORDER BY i.at, i.seq LIMIT 1"
        for found_first in db.execute(first, (number,)):
            why = f"the first response of the {what} {ident} is left out, as if it were a copy"
            found.append((why, plus(NOTHING, vector(found_first), -1)))
        found.append((f"the {what} {ident} is left out", plus(NOTHING, vector(figures), -1)))
    sql = (
        f"SELECT i.at, {each} FROM inference i JOIN session s ON s.id = i.owner WHERE i.counted AND i.measured AND s.agent = ? "
        "LIMIT 41"
    )
    single = db.execute(sql, (harness,)).fetchall()
    if len(single) <= 40:  # in a large home some response would fit by chance
        found += [(f"the response of {r[0]} is left out", plus(NOTHING, vector(r[1:]), -1)) for r in single]
    return found


def change_leaves_out(change: Vector) -> bool:
    """Whether a change only takes away, from the cache too."""
    return max(change) <= 0 and change[1] < 0


def explained(difference: Vector, known: list[tuple[str, Vector]]) -> list[str] | None:
    """The fewest ways that make up a difference exactly; None where none do."""
    for count in range(4):
        for some in itertools.combinations(known, count):
            total = NOTHING
            for _, change in some:
                total = plus(total, change)
            if total == difference:
                return [why for why, _ in some]
    return None


def in_part(difference: Vector, known: list[tuple[str, Vector]]) -> str:
    """What may make up a difference in part: ways of the same sign that would change every figure at least as much."""
    fitting = [
        why for why, change in known if all(0 <= d <= c or c <= d <= 0 for d, c in zip(difference, change, strict=True))
    ]
    return f"NOT EXPLAINED to the token; some of this would do: {fitting[0]}" if fitting else "NOT EXPLAINED"


def why_costs_differ(cost: dict[str, Any], ours: Decimal, theirs: Decimal | None, same_tokens: bool) -> str:
    """What money differs by, in words; "" where it does not."""
    if theirs is None or abs(ours - theirs) < Decimal("0.000001"):
        return ""
    reasons: list[str] = []
    if not same_tokens:
        reasons.append("the tokens differ")
    if cost["unpricedRequests"]:
        told = [f"{one['requests']} ({one['why']})" for one in cost["unpriced"]]
        reasons.append("unpriced here: " + ", ".join(told))
    if not reasons:
        reasons.append("another price list")
    return "; ".join(reasons)


def compare(home: Path, binary: Path) -> tuple[list[dict[str, Any]], int]:
    """The rows of one home, and how many of them are not explained."""
    store = OUT / "compare-store"
    shutil.rmtree(store, ignore_errors=True)
    env = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "VIRTUAL_ENV", "PYTHONPATH")}
    env |= {"HOME": str(home), "ASRD_HOME": str(store)}
    subprocess.run([*ASRD, "sync", "--quiet"], env=env, check=True, capture_output=True)
    done = subprocess.run([*ASRD, "usage", "harness", "--json"], env=env, check=True, capture_output=True)
    answer = json.loads(done.stdout)
    db = sqlite3.connect(f"file:{store / 'index.sqlite'}?mode=ro", uri=True)
    rows: list[dict[str, Any]] = []
    open_questions = 0
    for row in answer["rows"]:
        harness = row["harness"]
        found = their_figures(binary, home, harness) if harness in THEIRS else None
        ours = vector(row[f] for f in FIGURES)
        cost = row["cost"]
        money = Decimal(cost["listEstimate"]["amount"]) if cost["listEstimate"] else Decimal(0)
        money += sum((Decimal(c["amount"]) for c in cost["sourceEstimate"] if c["currency"] == "USD"), Decimal(0))
        made: dict[str, Any] = {"harness": harness, "asrd": ours, "cost": money}
        if found is None:
            made |= {"ccusage": None, "why": ["ccusage does not read this harness"], "money": ""}
        else:
            theirs, price = found
            known, difference = ways(db, home, harness, ours, row), plus(theirs, ours, -1)
            why = explained(difference, known)
            open_questions += why is None
            made |= {
                "ccusage": theirs,
                "theirCost": price,
                "why": why if why is not None else [in_part(difference, known)],
                "money": why_costs_differ(cost, money, price, theirs == ours),
            }
        rows.append(made)
    db.close()
    return rows, open_questions


def show(home: Path, rows: list[dict[str, Any]]) -> None:
    """The rows as a table."""
    say(f"{home}\n{'harness':13}{'':9}" + "".join(f"{f:>14}" for f in FIGURES) + f"{'USD':>14}")
    for row in rows:
        for name, figures, money in (
            ("asrd", row["asrd"], row["cost"]),
            ("ccusage", row["ccusage"], row.get("theirCost")),
        ):
            if figures is not None:
                cost = "" if money is None else f"{money:.6f}"
                head = row["harness"] if name == "asrd" else ""
                say(f"{head:13}{name:9}" + "".join(f"{n:>14,}" for n in figures) + f"{cost:>14}")
        for why in row["why"]:
            say(f"{'':13}because  {why}")
        if row["money"]:
            say(f"{'':13}USD      {row['money']}")
    say()


def main() -> None:
    """Compares each home; 1 when a difference in tokens is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("homes", nargs="+", type=Path, metavar="HOME")
    args = parser.parse_args()
    binary = ccusage()
    version = subprocess.run([str(binary), "--version"], capture_output=True, check=False).stdout.decode().strip()
    say(f"{version}; amounts are estimates, ours by the price package and the harness's own\n")
    open_questions = 0
    for home in args.homes:
        rows, some = compare(home.absolute(), binary)
        show(home, rows)
        open_questions += some
    if open_questions:
        raise SystemExit(f"{open_questions} differences are not explained.")


if __name__ == "__main__":
    main()
