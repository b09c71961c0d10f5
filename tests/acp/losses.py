"""What ACP loses of the native truth of the same run, measured: `python -m tests.acp.losses` writes `docs/acp-losses.md`."""

from pathlib import Path
from typing import Any, cast

from asrd.records import Session
from tests.acp.truth import CASES, Call, Told, Truth, told

PAGE = Path(__file__).parents[2] / "docs" / "acp-losses.md"

FACTS = {
    "message": "messages of the model, word for word",
    "thinking": "thoughts, word for word",
    "tool_call": "calls",
    "tool_call.id": "call ids, as the native file has them",
    "tool_call.name": "names of tools",
    "tool_call.input": "inputs, as the model gave them",
    "tool_result": "results of calls",
    "exec.exitCode": "exit codes of commands",
    "file_change.content": "digests of edited files, before and after",
    "file_change.diff": "unified diffs of edits",
    "vcs.commit": "commits",
    "inference.usage": "responses with their own figures",
    "usage_total": "tokens of the whole run in totals",
}
"""The name of each fact as headers declare its loss, and what it is."""

EDITS = {"Edit", "edit", "replace", "patch", "apply_patch"}

Measured = dict[str, tuple[int, int]]
"""For each fact: how many the stream has, of how many there were."""


def measure(case: str) -> Measured:
    """The facts of a case's stream that are true, of those that happened."""
    truth, stream = Truth(case), told(case)
    pairs = matched(truth, stream)
    edits = [c for c in truth.calls if c.name in EDITS and not c.failed]
    there = [c for c in truth.calls if c.id in pairs]
    exits = [c for c in there if c.exit_code is not None]
    results = {c.id: stream.results.get(pairs[c.id].call_id) for c in there}

    def exit_code(call: Call) -> int | None:
        result = results.get(call.id)
        return result.exec.exit_code if result is not None and result.exec is not None else None

    digests = [c for c in stream.changes if c.before and c.before.sha256 and c.after and c.after.sha256]
    committed = not any(c.failed or c.exit_code for c in truth.calls[-1:])
    return {
        "message": (same(truth.texts, stream.texts), len(truth.texts)),
        "thinking": (same(truth.thoughts, stream.thoughts), len(truth.thoughts)),
        "tool_call": (len(pairs), len(truth.calls)),
        "tool_call.id": (sum(pairs[c.id].call_id == c.id for c in there), len(there)),
        "tool_call.name": (sum(pairs[c.id].name == c.name for c in there), len(there)),
        "tool_call.input": (sum(holds(pairs[c.id].input, c.input) for c in there), len(there)),
        "tool_result": (sum(r is not None for r in results.values()), len(there)),
        "exec.exitCode": (sum(exit_code(c) == c.exit_code for c in exits), len(exits)),
        "file_change.content": (len(digests), len(edits)),
        "file_change.diff": (sum(c.diff is not None for c in stream.changes), len(edits)),
        "vcs.commit": (int(truth.commit in stream.commits), int(committed)),
        "inference.usage": (sum(i.usage is not None for i in stream.inferences), truth.requests),
        "usage_total": (totals(stream), truth.tokens),
    }


def matched(truth: Truth, stream: Told) -> dict[str, Any]:
    """The stream's call for each of the model's, by id, else by its place when both have as many."""
    by_id = {c.call_id: c for c in stream.calls}
    found: dict[str, Any] = {}
    for place, call in enumerate(truth.calls):
        ends = [c for ident, c in by_id.items() if ident == call.id or ident.endswith((":" + call.id, "__" + call.id))]
        if ends:
            found[call.id] = ends[0]
        elif len(stream.calls) == len(truth.calls):
            found[call.id] = stream.calls[place]
    return found


def holds(given: dict[str, Any], wanted: Any) -> bool:
    """Whether an input has all that the model gave."""
    return isinstance(wanted, dict) and given == given | cast("dict[str, Any]", wanted)


def same(wanted: list[str], given: list[str]) -> int:
    """How many of the texts are there; white space around them, and Gemini's empty title, are not counted as words."""
    left = [text.removeprefix("****").strip() for text in given]
    found = 0
    for text in wanted:
        if text.strip() in left:
            left.remove(text.strip())
            found += 1
    return found


def totals(stream: Told) -> int:
    """Tokens of the run by its totals: the last running total, or the sum of what turns came to."""
    counted = [t for t in stream.totals if t.usage.total is not None]
    if any(t.cumulative for t in counted):
        return counted[-1].usage.total or 0
    return sum(t.usage.total or 0 for t in counted)


def lost(case: str) -> set[str]:
    """The names of the facts that a case's stream does not have all of."""
    return {fact for fact, (has, of) in measure(case).items() if has < of}


def header(case: str) -> Session:
    first = told(case).records[0]
    assert isinstance(first, Session)
    return first


def page() -> str:
    """`docs/acp-losses.md`."""
    out = [
        "# What ACP loses",
        "",
        "Made by `python -m tests.acp.losses` from the captures in `tests/captures/acp`: for each agent, how much of what really",
        "happened in a run (`truth.json`) stands in the stream that was recorded from its ACP connection. A test keeps this",
        "page equal to what is measured, and each header's `producer.lossy` equal to the rows that are not whole.",
        "",
        "Lost with every agent, because the protocol has no place for it: times (they are the recorder's), ids and models of",
        "single responses, the system prompt, signatures of thoughts. Native files of the same runs have these facts; record",
        "them too, and use the ACP stream for what only it has: who was asked for permission, and what was answered.",
        "",
        "`usage_total` is in tokens: what the totals of the stream come to, of what the model server delivered for the",
        "conversation. `k of n` elsewhere is a count; what is said of calls is said of those that are there. An empty cell:",
        "nothing of the kind happened in that run.",
        "",
    ]
    for start in range(0, len(CASES), 5):
        cases = CASES[start : start + 5]
        measured = {case: measure(case) for case in cases}
        out.append("| fact | " + " | ".join(f"{case} ({version(case)})" for case in cases) + " |")
        out.append("|---|" + "---|" * len(cases))
        for fact, what in FACTS.items():
            cells = [cell(*measured[case][fact]) for case in cases]
            out.append(f"| `{fact}`: {what} | " + " | ".join(cells) + " |")
        out.append("")
    return "\n".join(out)


def cell(has: int, of: int) -> str:
    if of == 0:
        return ""
    return "all" if has == of else f"{has} of {of}"


def version(case: str) -> str:
    meta = header(case).meta or {}
    info = meta["dev.asrd.acp"]["agentInfo"]
    return f"{info['name']} {info['version']}"


if __name__ == "__main__":
    PAGE.write_text(page())
