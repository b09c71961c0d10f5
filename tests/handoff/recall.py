"""How much of what a successor needs is in a brief: `python -m tests.handoff.recall [CAPTURES]`.

For each capture with a `truth.json`, for generated sessions of 500 turns, and for some that were worded without a look at
the rules (`tests/handoff/blind.py`), a list of facts is taken from what really
happened (never from the brief): the share of them found at 2k, 4k, 8k and 16k tokens is printed beside two baselines
of the same budget: the end of the transcript, and its start (the whole of it where it fits).
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from asrd.convert import convert_home
from asrd.handoff import SessionRecords, Work, brief, estimate, render
from asrd.records import AnyRecord, FileChange, Message, Text, ToolCall, ToolResult, encode
from tests.handoff.build import NOW, Story, work

DIGITS = 12
"""Digits of a digest that tell a file of a generated session: a brief with little room gives no more."""
BUDGETS = (2000, 4000, 8000, 16000)
CAPTURES = Path(__file__).parent.parent / "captures"


class Fact(NamedTuple):
    """Something that happened: its kind, and the texts that must all stand in a brief for it to be there."""

    kind: str
    texts: tuple[str, ...]

    def found_in(self, text: str) -> bool:
        return all(t in text for t in self.texts)


# ---------------------------------------------------------------- what really happened


def facts_of(truth: dict[str, Any]) -> list[Fact]:
    """The facts of a capture's `truth.json`."""
    facts: list[Fact] = []
    turns = rows(truth.get("turns"))
    for turn in turns:
        if turn["prompt"].startswith("/"):
            continue  # a command of the harness, not a wish
        facts.append(Fact("prompt", (one_line(turn["prompt"]),)))
        if turn.get("final_text"):
            facts.append(Fact("answer", (one_line(turn["final_text"]),)))
    final: dict[str, str] = {}
    for edit in cast("list[Any]", truth.get("edits") or []):
        if isinstance(edit, dict):
            made = cast("dict[str, Any]", edit)
            if made.get("file") and "after" in made:
                final[str(made["file"])] = str(made["after"])
    for path, content in final.items():
        facts.append(Fact("file", (path.rsplit("/", 1)[-1], hashlib.sha256(content.encode()).hexdigest())))
    failed = [s for s in rows(truth.get("shell")) if s["exit_code"]]
    if failed:
        facts.append(Fact("failing command", (failed[-1]["cmd"], f"exit {failed[-1]['exit_code']}")))
    if failed or final:
        for line in cast("list[str]", truth.get("git_log_newest_first") or []):
            ident, _, subject = line.split(" ", 2)
            if subject != "init":
                facts.append(Fact("commit", (ident,)))
    facts += checked(truth)
    if not any("final_text" in t for t in turns):
        facts += spoken(truth)
    return facts


def checked(truth: dict[str, Any]) -> Iterator[Fact]:
    """For captures with `check_runs`: the last failing check with its code, the commits, the file at the end."""
    failed = [c for c in rows(truth.get("check_runs")) if c["exit"]]
    if failed:
        yield Fact("failing command", ("check.py", f"exit {failed[-1]['exit']}"))
    if truth.get("edits") and isinstance(truth.get("calc_final"), str):
        yield Fact("file", ("calc.py", hashlib.sha256(str(truth["calc_final"]).encode()).hexdigest()))
    for line in cast("list[str]", truth.get("git_log") or []):
        ident, _, subject = line.split(" ", 2)
        if subject not in ("init", "initial"):
            yield Fact("commit", (ident,))


def spoken(truth: dict[str, Any]) -> Iterator[Fact]:
    """For captures without turns: the tasks that were given to sub-agents, and each script's last words."""
    last: dict[str, str] = {}
    for response in rows(truth.get("responses")):
        if response.get("incomplete") or str(response["script"]).startswith(("aux", "_aux")):
            continue  # cut off, or a title made beside the conversation
        for call in rows(response.get("calls")) + rows(response.get("tool_calls")):
            for text in strings(call.get("input") or call.get("arguments") or call.get("args") or {}):
                if text.startswith("[["):
                    yield Fact("task", (one_line(text),))
        words = [t for t in spoken_texts(response) if t and not t.startswith("(script ")]
        if words:
            last[str(response["script"])] = words[-1]
    for script, text in last.items():
        kind = "summary" if script == "COMPACT" else "answer"
        inner = re.search(r"<summary>\s*(.*?)\s*</summary>", text, re.DOTALL)
        yield Fact(kind, (inner[1] if inner else one_line(text),))


def spoken_texts(response: dict[str, Any]) -> Iterator[str]:
    if isinstance(response.get("text"), str):
        yield str(response["text"])
    for part in rows(response.get("content")):
        if part.get("type") == "text":
            yield str(part["text"])
    for item in rows(response.get("items")):
        if item.get("type") == "message":
            yield "".join(str(c.get("text", "")) for c in rows(item["content"]))


def rows(value: Any) -> list[dict[str, Any]]:
    """A list of objects, or nothing."""
    return cast("list[dict[str, Any]]", value or [])


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in cast("dict[str, Any]", value).values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from strings(one)


def one_line(text: str) -> str:
    return " ".join(text.split())


def prompts_of(folder: Path) -> list[Fact]:
    """For captures without turns: the prompts of the commands that were run."""
    text = (folder / "cmd.txt").read_text() if (folder / "cmd.txt").exists() else ""
    return [Fact("prompt", (p,)) for p in re.findall(r"(?:-p|--json|--skip-git-repo-check) '(\[\[[^']+)'", text)]


# ---------------------------------------------------------------- generated sessions


def generated(seed: int, turns: int = 500) -> tuple[Work, list[Fact]]:
    """A session of many turns with the facts that a successor needs, spread over it by chance."""
    rng = random.Random(seed)
    story = Story(f"g{seed}")
    facts: list[Fact] = []

    def fact(kind: str, *texts: str) -> None:
        facts.append(Fact(kind, texts))

    goal = f"Build the importer number {seed}: it must read CSV and JSON and write rows to the store, tested and documented."
    story.asks(goal)
    fact("goal", goal)
    files: dict[str, str] = {}
    superseded = {rng.randrange(20, turns - 20) for _ in range(4)}
    decisions = {rng.randrange(5, turns - 5) for _ in range(6)}
    commits: list[str] = []
    failing = (0, "", 0)
    for n in range(1, turns):
        if n in superseded:
            wish, instead = f"Name column {n} amount_{n}.", f"No, call column {n} total_{n} instead."
            story.asks(wish)
            story.says(f"Column {n} is named.")
            story.asks(instead)
            fact("superseded wish", wish)
            fact("correction", instead)
        else:
            story.asks(
                f"Step {n}: " + rng.choice(["go on with the parser", "look at the tests", "clean up the module"]) + "."
            )
        for _ in range(rng.randrange(4)):
            story.runs(f"sed -n {n},{n + 40}p src/file{rng.randrange(30)}.py", 0, "code line\n" * rng.randrange(60))
        if rng.random() < 0.3:
            path = f"src/part_{rng.randrange(24)}.py"
            sha = hashlib.sha256(f"{seed}-{n}".encode()).hexdigest()
            story.changes(path, "modify" if path in files else "create", sha, "+line\n" * rng.randrange(30))
            files[path] = sha
        if rng.random() < 0.2:
            code = rng.choice([0, 0, 1, 2, 101])
            command = f"pytest -q tests/test_{rng.randrange(6)}.py"
            story.runs(command, code, "F" * 60 + f"\nFAILED case {n}\n" if code else "passed")
            failing = (n, command, code) if code else failing
        if n % 40 == 0:
            commits.append(hashlib.sha1(f"{seed}-{n}".encode()).hexdigest())
            story.commits(commits[-1], f"step {n}")
        if n in decisions:
            said = f"I decided to keep table {n} in one file because the reader needs it whole."
            story.says(f"Looked at it. {said} Going on.")
            fact("decision", said)
        else:
            story.says(f"Step {n} is done.")
    steps = [(f"finish part {k}", "pending" if k > 3 else "completed") for k in range(7)]
    story.plans(*steps)
    for text, status in steps:
        if status == "pending":
            fact("open step", text)
    story.asks("Finish what is open in the plan.")
    fact("last prompt", "Finish what is open in the plan.")
    for path, sha in files.items():
        fact("file", path, sha[:DIGITS])
    for commit in commits:
        fact("commit", commit)
    fact("failing command", failing[1], f"exit {failing[2]}")
    return work(story), facts


# ---------------------------------------------------------------- baselines


def transcript(records: list[AnyRecord]) -> str:
    """A session as a reader of its messages would print it."""
    lines: list[str] = []
    for record in records:
        if isinstance(record, Message):
            lines.append(f"{record.role}: " + "\n".join(b.text for b in record.content if isinstance(b, Text)))
        elif isinstance(record, ToolCall):
            lines.append(f"call {record.name} {json.loads(encode(record))['input']}")
        elif isinstance(record, ToolResult):
            code = f"exit {record.exec.exit_code}\n" if record.exec and record.exec.exit_code is not None else ""
            lines.append(f"result {code}" + "\n".join(b.text for b in record.content or () if isinstance(b, Text)))
        elif isinstance(record, FileChange):
            lines.append(f"changed {record.path.path}\n{record.diff or ''}")
    return "\n".join(lines)


def within(text: str, budget: int, end: bool) -> str:
    """As much of a text's start, or end, as a budget allows."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(text[-middle:] if end else text[:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    return (text[-low:] if end else text[:low]) if low else ""


# ---------------------------------------------------------------- the table


def sessions_of(home: Path) -> list[SessionRecords]:
    streams = convert_home(home)
    spawned = {
        k: getattr(getattr(rs[0], "lineage", None), "relation", None) == "spawned_by" for k, rs in streams.items()
    }
    keys = sorted(streams, key=lambda k: (spawned[k], k))
    return [SessionRecords(k, cast("list[AnyRecord]", streams[k])) for k in keys]


def captured(folder: Path) -> tuple[Work, list[Fact]]:
    """The work of a capture and its facts."""
    return Work(sessions_of(folder / "home"), NOW), happened(folder)


def happened(folder: Path) -> list[Fact]:
    """The facts that a capture's `truth.json` tells, each once."""
    facts = facts_of(json.loads((folder / "truth.json").read_text()))
    if not any(f.kind == "prompt" for f in facts):
        facts = prompts_of(folder) + facts
    return list(dict.fromkeys(facts))


def share(facts: list[Fact], text: str) -> float:
    flat = text + "\n" + one_line(text) + "\n" + one_line(re.sub(r"^> ?", "", text, flags=re.MULTILINE))
    return sum(f.found_in(flat) for f in facts) / len(facts) if facts else 1.0


def row(one: Work, facts: list[Fact]) -> list[tuple[float, float, float]]:
    """For each budget the share of facts in the brief, in the transcript's end, and in its start."""
    told = "\n".join(transcript(list(s.records)) for s in one.sessions)
    return [
        (
            share(facts, render(brief(one, budget))),
            share(facts, within(told, budget, end=True)),
            share(facts, within(told, budget, end=False)),
        )
        for budget in BUDGETS
    ]


def cases(captures: Path) -> Iterator[tuple[str, Work, list[Fact]]]:
    for truth in sorted(captures.glob("*/*/truth.json")):
        folder = truth.parent
        if re.match(r"S[124]\b", folder.name):
            one, facts = captured(folder)
            if one.sessions and facts:
                yield f"{folder.parent.name}/{folder.name}", one, facts
    for seed in range(10):
        one, facts = generated(seed)
        yield f"generated/{seed}", one, facts
    from tests.handoff.blind import HELD_OUT, SEEN, blind

    for name, pool in (("blind", SEEN), ("held out", HELD_OUT)):
        for seed in range(5):
            one, facts = blind(seed, pool)
            yield f"{name}/{seed}", one, facts


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else CAPTURES
    print(f"{'brief / end / start of transcript':34} facts  " + "  ".join(f"{b:>17}" for b in BUDGETS))
    for name, one, facts in cases(where):
        cells = "  ".join(f"{a:4.0%} / {b:4.0%} / {c:4.0%}" for a, b, c in row(one, facts))
        print(f"{name:34} {len(facts):5}  {cells}")
        if "-v" in sys.argv:
            text = render(brief(one, 4000 if name[0].islower() and "/S" in name else 8000))
            for missing in [f for f in facts if share([f], text) < 1]:
                print("    missing", missing)
