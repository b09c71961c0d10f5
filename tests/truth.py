"""What was recorded of every capture beside what really happened: `python -m tests.truth [HARNESS/CASE…]` (`make truth`).

Recorded is what a user is told: the home goes through `asrd sync` into a store, and calls, results, exit codes, models and
figures are those the index counts (once over all sessions of the home); prompts, edits, commits and links are the streams'.
True is what the scripted model server sent and the working tree's own history, from `truth.json`.
"""

import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from asrd.lineage import SPAWN
from asrd.recorders.base import StreamKey
from asrd.records import AnyRecord, FileChange, Message, Session, Text, ToolCall, VcsAction, encode
from tests.golden import CAPTURES
from tests.homes import Recorded, environment, recorded
from tests.recorders import script_truth
from tests.recorders.test_claude_code import happened
from tests.recorders.test_codex import true_table

Table = dict[str, Any]

COLUMNS = (
    "turns",
    "calls",
    "results",
    "exits",
    "edits",
    "commits",
    "links",
    "models",
    "requests",
    "input",
    "output",
)
FIGURES = CAPTURES / "expected-usage.tsv"
CROSS = "cross/S6-claude-runs-codex"
"""One home with sessions of two harnesses; each harness's part of it is a capture of its own."""
MARKER = re.compile(r"\[\[(\w+)\]\]")


class Comparison(Struct):
    """One capture: each column as (recorded, true); columns that `truth.json` says nothing of are left out."""

    case: str
    columns: dict[str, tuple[Any, Any]]

    def differences(self) -> dict[str, tuple[Any, Any]]:
        return {name: pair for name, pair in self.columns.items() if pair[0] != pair[1]}


def cases() -> list[str]:
    """Captures that a scripted model server tells of, whose homes stand alone.

    Copies of ACP frames are compared in `tests/acp`; captures constructed from documents in their recorders' tests.
    """
    told = {
        f"{p.parent.parent.name}/{p.parent.name}": json.loads(p.read_text()) for p in CAPTURES.glob("*/*/truth.json")
    }
    found = {case for case, truth in told.items() if isinstance(truth.get("responses"), list)}
    return sorted({c for c in found if not c.startswith("acp/")} | {CROSS})


def expected_usage() -> dict[str, tuple[int | None, int, int]]:
    """Requests (None = not told), input total and output of each capture."""
    found: dict[str, tuple[int | None, int, int]] = {}
    for line in FIGURES.read_text().splitlines()[1:]:
        case, requests, total, output = line.split("\t")[:4]
        found[case] = (int(requests) if requests else None, int(total), int(output))
    return found


def lay_out(case: str, work: Path) -> Path:
    """The home of a case; the one of two harnesses is put together from its parts."""
    if case != CROSS:
        return CAPTURES / case / "home"
    name = case.split("/")[1]
    for harness in ("claude-code", "codex"):
        shutil.copytree(CAPTURES / harness / name / "home", work / "home", dirs_exist_ok=True)
    return work / "home"


# ---------------------------------------------------------------- recorded


def told(one: Recorded) -> Table:
    """What a user is told of a home."""
    sessions = one.sessions()
    standing = [(k, r) for k, records in sessions.items() for r in without_replaced(records) if r.copy_of is None]
    counted = one.db.execute("SELECT call_id, result_seq, exit_code FROM call WHERE counted = 1").fetchall()
    named = {r.call_id: r for _, r in standing if isinstance(r, ToolCall)}
    usage = one.usage()
    prompts: dict[tuple[str, str], str] = {}
    for key, r in standing:
        if isinstance(r, Message) and r.origin == "prompt":
            prompts.setdefault((key.agent, r.native_id or f"{key} {r.id}"), words(r))
    return {
        "turns": sorted(marker for text in prompts.values() for marker in MARKER.findall(text)),
        "calls": Counter(asked_as(c["call_id"]) for c in counted if not nested(c["call_id"])),
        "results": {asked_as(c["call_id"]) for c in counted if c["result_seq"] is not None},
        "exits": {asked_as(c["call_id"]): c["exit_code"] for c in counted if c["exit_code"] is not None},
        "shell": [(command(named.get(c["call_id"])), c["exit_code"]) for c in by_place(one)],
        "edits": [edit(r) for _, r in standing if isinstance(r, FileChange) and (r.before or r.after)],
        "commits": sorted({r.commit or "" for _, r in standing if isinstance(r, VcsAction) and r.action == "commit"}),
        "links": links(one, sessions),
        "models": {
            m for (m,) in one.db.execute("SELECT DISTINCT model FROM inference WHERE counted AND measured") if m
        },
        "requests": usage["requests"],
        "input": usage["inputTotal"] or 0,
        "output": usage["output"] or 0,
    }


def without_replaced(records: list[AnyRecord]) -> list[AnyRecord]:
    gone = {r.supersedes for r in records if r.supersedes}
    return [r for r in records if r.id not in gone]


def words(message: Message) -> str:
    return "\n".join(b.text for b in message.content if isinstance(b, Text))


def nested(call_id: str) -> bool:
    """Whether a call was made by a script of Codex, or by a person in its shell, and not by the model."""
    return call_id.startswith("exec-") or bool(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", call_id))


def asked_as(call_id: str) -> str:
    """A call's id as the model server gave it (Gemini CLI puts the tool's name before it)."""
    return call_id.split("__")[-1]


def command(call: ToolCall | None) -> str:
    """The command line a call runs, "" when it is none."""
    given: Table = json.loads(encode(call))["input"] if call else {}
    line: Any = given.get("command") or given.get("cmd") or ""
    return str(line[-1] if isinstance(line, list) else line)  # type: ignore[reportUnknownArgumentType]


def edit(change: FileChange) -> tuple[str, str | None, str | None]:
    before, after = change.before, change.after
    return (Path(change.path.path).name, before and before.sha256, after and after.sha256)


def by_place(one: Recorded) -> list[Any]:
    """The calls that count and ended with an exit code, in the order of their sessions' records."""
    return one.db.execute(
        "SELECT call_id, exit_code FROM call WHERE counted = 1 AND exit_code IS NOT NULL ORDER BY at, session, seq"
    ).fetchall()


def links(one: Recorded, sessions: Mapping[StreamKey, list[AnyRecord]]) -> set[tuple[str, str]]:
    """Parent and child of each sub-agent by the markers of what they were asked."""
    names = {key: first_marker(records) for key, records in sessions.items()}
    numbered = {s.number: StreamKey(s.row.agent, s.row.session_id, s.row.namespace) for s in one.rows.sessions()}
    spawns = [e for e in one.rows.edges() if e.relation in SPAWN and e.state == "edge"]
    return {
        (names[numbered[e.parent]], names[numbered[e.child]])
        for e in spawns
        if e.parent is not None and e.child is not None and names[numbered[e.child]]
    }


def first_marker(records: list[AnyRecord]) -> str:
    """What a session was asked by, or the path its harness names it by where the task itself is encrypted."""
    for r in records:
        if isinstance(r, Session) and (path := (r.meta or {}).get("dev.asrd.agentPath")):
            return str(path)
        if isinstance(r, Message) and r.copy_of is None and (m := MARKER.search(words(r))):
            return m.group(1)
    return ""


# ---------------------------------------------------------------- true


def true(case: str, truth: Table, mine: Table, one: Recorded, home: Path) -> Table:
    """What `truth.json` says, without what stands in no file of the home (a call that a kill came before)."""
    files = [p.read_bytes() for p in home.rglob("*") if p.is_file()]
    names = {c["id"] for c in truth.get("calls", ())} | {r["model"] for r in truth["responses"] if "model" in r}
    written = {name for name in names if any(name.encode() in data for data in files)}
    if truth.get("harness") in ("claude", "cross") and case.startswith("claude"):
        return of_claude(truth, one)
    if "tool_results" in truth:
        return of_codex(truth, mine)
    return of_script(truth, mine, written)


def of_claude(truth: Table, one: Recorded) -> Table:
    """Claude Code's own; what its version does not write down is worked out in `test_claude_code.happened`."""
    versions = [s.row.version or "0" for s in one.rows.sessions(harness="claude-code")]
    version = max(tuple(int(n) for n in v.split(".")) for v in versions)
    responses = {
        key.split("\x1f")[-1]
        for (key,) in one.db.execute("SELECT key FROM inference WHERE counted = 1 AND measured = 1")
    }
    said = happened(truth, version, responses)
    models = {model for model, _ in said["responses"].values()}
    ids = {ident for ident, _, _ in said["calls"]}
    exits = {t["call_id"]: code_in(t) for t in truth["tool_results"] if t["call_id"] in ids}
    return {
        "turns": prompts(truth, "/.claude/") or None,
        "calls": Counter(ident for ident, _, _ in said["calls"]),
        "results": {t["call_id"] for t in truth["tool_results"] if t["call_id"] in ids},
        "exits": {i: c for i, c in exits.items() if c is not None} if version >= (2, 0) else {},
        "shell": said["shell"] if version >= (2, 0) else [],
        "edits": [(Path(path).name, before, after) for path, before, after in said["edits"]],
        "commits": sorted(said["commits"]) if truth["git_log_newest_first"] != ["-"] else None,
        "links": said["tree"],
        "models": models if None not in models else None,
    }


def of_codex(truth: Table, mine: Table) -> Table:
    said = true_table(truth)
    tree: set[tuple[str, str]] = set()
    grow(truth.get("subagent_tree") or {}, None, tree)
    exits = {t["call_id"]: code_in(t) for t in truth["tool_results"]}
    # The model is told "aborted" of a call that was killed; that stands in no rollout.
    killed = {t["call_id"] for t in truth["tool_results"] if t.get("output_as_sent_to_model") == "aborted"}
    return {
        "turns": sorted(m.strip("[]") for m in said["prompts"]),
        "calls": Counter(said["calls"]),
        "results": {i for i in said["results"] if i not in killed or i in mine["results"]},
        "exits": {i: c for i, c in exits.items() if c is not None},
        "shell": said["shell"],
        "edits": [(Path(p).name, b, a) for p, b, a in said["edits"] or ()],
        "commits": sorted(said["commits"]),
        "links": tree if "subagent_tree" in truth or not any("SUB" in str(r) for r in truth["responses"]) else None,
        "models": said["models"],
    }


def of_script(truth: Table, mine: Table, written: set[str]) -> Table:
    said = script_truth.told(truth)
    tree: Table = truth.get("subagent_tree") or {"children": []}
    killed = {c["id"] for c in truth["calls"] if "killed" in c.get("note", "")}
    # A command that was killed is not among `turns`: what it asked is the marker its responses go by. Those that
    # answer a sub-agent's end (…ANN) were asked by the harness.
    asked = {m for text in said["prompts"] for m in MARKER.findall(text)}
    asked |= {
        r["script"]
        for r in truth["responses"]
        if not r["script"].startswith(("_", "SUB")) and not r["script"].endswith("ANN")
    }
    return {
        "turns": sorted(asked),
        "calls": Counter(ident for ident, _ in said["calls"] if ident in written),
        "results": {i for i in said["results"] if i not in killed or i in mine["results"]},
        "exits": said["exit_codes"],
        "edits": said["edits"],
        "commits": said["commits"],
        "links": {(tree["parent_script"], c["script"]) for c in tree["children"]},
        "models": set(said["models"]) & written,
    }


def prompts(truth: Table, folder: str) -> list[str]:
    """What was asked, by marker, each once: a copied prompt stands in two files."""
    by_file: Table = truth["prompt_markers_in_each_file_in_order"]
    asked = {m for name, markers in by_file.items() if folder in name for m in markers}
    return sorted(m for m in asked if not m.startswith("SUB"))


def grow(tree: Mapping[str, Any], parent: str | None, into: set[tuple[str, str]]) -> None:
    for title, below in tree.items():
        name = title.split(" (")[0]
        if name in ("root", "/root"):  # named by what a person asked
            name = title.split("(")[1].rstrip(")")
        if parent is not None:
            into.add((parent, name))
        grow(below, name, into)


def code_in(result: Table) -> int | None:
    """The exit code in what the model was told of a command, None where that does not say one."""
    text = str(result.get("output_as_sent_to_model", ""))
    found = re.search(r"(?:^Exit code|Process exited with code) (\d+)", text)
    return int(found.group(1)) if found else None


# ---------------------------------------------------------------- the table


def compare(case: str, work: Path) -> Comparison:
    """One capture, recorded below `work`."""
    home = lay_out(case, work)
    with recorded(home, work / "store", environment(home, work / "store")) as one:
        mine = told(one)
        theirs: Table = {}
        if case != CROSS:
            theirs = true(case, json.loads((CAPTURES / case / "truth.json").read_text()), mine, one, home)
    name = case.replace("claude-code/", "claude/")
    requests, total, output = expected_usage().get(name) or in_truth(case)
    theirs |= {"requests": requests, "input": total, "output": output}
    for part in ("exits", "results"):  # truth.json does not tell of each call how it ended
        if part in theirs:
            mine[part] = (
                {i: c for i, c in mine[part].items() if i in theirs[part]}
                if part == "exits"
                else mine[part] & theirs[part]
            )
    if theirs.get("shell"):  # what was run, by command: a script's commands have ids of their own
        lines = {line for line, _ in theirs["shell"]}
        mine["exits"] = [pair for pair in mine["shell"] if pair[0] in lines]
        theirs["exits"] = theirs["shell"]
    if not theirs.get("edits"):  # truth.json does not tell of files that commands wrote
        theirs["edits"] = None
    elif all(before and after for _, before, after in theirs["edits"]):  # nor of each that was made or removed
        mine["edits"] = [e for e in mine["edits"] if e[1] and e[2]]
    columns = {c: (mine[c], theirs[c]) for c in COLUMNS if theirs.get(c) is not None}
    return Comparison(case, columns)


def in_truth(case: str) -> tuple[int | None, int | None, int | None]:
    """The figures a capture's own truth.json gives, where it does."""
    path = CAPTURES / case / "truth.json"
    told: Table = json.loads(path.read_text()).get("expected_usage") or {} if path.exists() else {}
    return told.get("requests"), told.get("input_total"), told.get("output")


def shown(value: Any) -> str:
    return str(value if isinstance(value, int) else len(value))


def line_of(one: Comparison) -> str:
    """One row of the table."""
    cells: list[str] = []
    for name in COLUMNS:
        pair = one.columns.get(name)
        if pair is None:
            cells.append("–")
        elif pair[0] == pair[1]:
            cells.append(shown(pair[0]))
        else:
            cells.append(f"{shown(pair[0])}≠{shown(pair[1])}")
    verdict = "equal" if not one.differences() else "DIFFERENT: " + ", ".join(one.differences())
    return f"{one.case:<36}" + "".join(f"{c:>9}" for c in cells) + f"  {verdict}"


def main(chosen: list[str]) -> int:
    print(f"{'capture':<36}" + "".join(f"{c:>9}" for c in COLUMNS))
    different: list[Comparison] = []
    for case in chosen or cases():
        with tempfile.TemporaryDirectory(prefix="asrd-truth-") as work:
            one = compare(case, Path(work))
        print(line_of(one))
        if one.differences():
            different.append(one)
    for one in different:
        for name, (ours, theirs) in one.differences().items():
            print(f"\n{one.case} {name}\n  recorded {ours}\n  true     {theirs}")
    return len(different)


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
