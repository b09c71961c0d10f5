"""What the scripted model server and the measured commands say happened, beside what the streams say, as rows.

For captures whose truth.json has `responses`, `calls`, `edits`, `check_runs`, `git_log` (Pi, OpenClaw, Vibe and others).
`told(truth)` and `recorded(streams)` give tables that must be equal; nothing in them depends on a capture.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from asrd.convert import Streams
from asrd.recorders.base import sha256
from asrd.records import (
    Compaction,
    FileChange,
    Inference,
    Link,
    Message,
    Record,
    Session,
    Text,
    ToolCall,
    ToolResult,
    VcsAction,
    encode,
)
from tests.figures import figures

Rows = dict[str, Any]


def truth_of(folder: Path) -> Rows:
    """truth.json of a capture."""
    return json.loads((folder / "truth.json").read_text())


def expected_of(folder: Path) -> dict[str, int]:
    """The figures about.toml says a correct reader gets."""
    return tomllib.loads((folder / "about.toml").read_text())["expected"]


def told(truth: Rows) -> Rows:
    """What happened, in tables: calls, exit codes, edits, commits, models, prompts."""
    given = [r for r in truth["responses"] if r["delivered"] == "full"]
    ended = {c["id"]: c["exit_code"] for c in truth["calls"] if c.get("exit_code") is not None}
    return {
        "calls": sorted((c["id"], c["name"]) for r in given for c in r["tool_calls"]),
        "results": {
            c["id"]: c["result_seen_by_model"]
            for c in sorted(truth["calls"], key=lambda c: c["id"])
            if c.get("result_seen_by_model") is not None
        },
        "exit_codes": dict(sorted(ended.items())),
        "edits": _edits(truth),
        "commits": sorted(line.split()[0] for line in truth["git_log"][:-1]),
        "models": sorted({r["model"] for r in given if not r["script"].startswith("_")}),
        "prompts": [t["prompt"] for t in truth["turns"]],
    }


def _edits(truth: Rows) -> list[tuple[str, str | None, str | None]]:
    """Each edit with the digests of the file before and after, worked out backwards from how it was at the end."""
    rows: list[tuple[str, str | None, str | None]] = []
    after = truth["calc_final"]
    for edit in reversed(truth["edits"]):
        before = after.replace(edit["new"], edit["old"])
        rows.append((Path(edit["file"]).name, sha256(before), sha256(after)))
        after = before
    return rows[::-1]


def own(streams: Streams) -> list[Record]:
    """The records of all streams in the order of their times, copies of other sessions' left out."""
    found = [r for records in streams.values() for r in records if r.copy_of is None]
    return sorted(found, key=lambda r: r.at or "")


def words(message: Message | ToolResult) -> str:
    return "\n".join(b.text for b in message.content or () if isinstance(b, Text))


def recorded(streams: Streams) -> Rows:
    """The same tables from streams."""
    records = own(streams)
    superseded = {r.supersedes for r in records if r.supersedes}
    results = [r for r in records if isinstance(r, ToolResult) and r.id not in superseded]
    scripts = {r.call_id for r in records if isinstance(r, ToolCall)}
    changes = [r for r in records if isinstance(r, FileChange)]
    return {
        "calls": sorted((r.call_id, r.name) for r in records if isinstance(r, ToolCall)),
        "results": {r.call_id: words(r) for r in sorted(results, key=lambda r: r.call_id) if r.call_id in scripts},
        "exit_codes": {
            r.call_id: r.exec.exit_code
            for r in sorted(results, key=lambda r: r.call_id)
            if r.exec is not None and r.exec.exit_code is not None
        },
        "edits": [(Path(c.path.path).name, c.before and c.before.sha256, c.after and c.after.sha256) for c in changes],
        "commits": sorted(r.commit or "" for r in records if isinstance(r, VcsAction) and r.action == "commit"),
        "models": sorted({r.model for r in records if isinstance(r, Inference) and r.model}),
        "prompts": [
            words(r) for r in records if isinstance(r, Message) and r.origin == "prompt" and r.author == "human"
        ],
    }


def differences(truth: Rows, streams: Streams) -> Rows:
    """Where the tables differ, each as (told, recorded); nothing when they are equal.

    A command that was killed leaves a prompt that `turns` does not list, and a call that came to nothing.
    """
    ours, theirs = recorded(streams), told(truth)
    killed = {c["id"] for c in truth["calls"] if "exit_code" in c and c["exit_code"] is None}
    for table in (ours, theirs):
        table["results"] = {k: v for k, v in table["results"].items() if k not in killed}
    extra = sum(1 for c in truth["commands"] if c.get("bg") and len(c) == 2)
    if len(ours["prompts"]) == len(theirs["prompts"]) + extra:
        ours["prompts"] = ours["prompts"][extra:]
    return {k: (theirs[k], ours[k]) for k in theirs if theirs[k] != ours[k]}


def usage(streams: Streams) -> dict[str, int]:
    """Input total and output, counted once."""
    found = figures(streams)
    return {"input_total": found["input_total"], "output": found["output"]}


def children(streams: Streams) -> list[tuple[str | None, str, bool]]:
    """Each spawn: the call, the child's first words, and whether the child names the same parent."""
    rows: list[tuple[str | None, str, bool]] = []
    by_session = {key.session_id: records for key, records in streams.items()}
    for key, records in streams.items():
        for link in records:
            if not isinstance(link, Link) or link.relation != "spawned":
                continue
            child = by_session[link.target.session_id]
            header = child[0]
            assert isinstance(header, Session)
            parent = header.lineage.parent
            first = next(words(r) for r in child if isinstance(r, Message) and r.role == "user")
            rows.append((link.call_id, first, parent is not None and parent.session_id == key.session_id))
    return sorted(rows, key=str)


def whole(streams: Streams) -> dict[str, list[bytes]]:
    """Streams as lines, to compare to the letter."""
    return {str(key): [encode(r) for r in records] for key, records in streams.items()}


def problems(streams: Streams) -> list[str]:
    """What must hold in every stream: gapless `seq`, links that point back, results with their calls."""
    found: list[str] = []
    for key, records in streams.items():
        seen: set[str] = set()
        calls: set[str] = set()
        inferences: set[str] = set()
        for number, record in enumerate(records):
            name = f"{key.session_id} {record.id}"
            if record.seq != number:
                found.append(f"{name}: seq {record.seq}, not {number}")
            points = [back for back in (record.parent, record.supersedes) if back is not None and back not in seen]
            found += [f"{name}: points to {back}" for back in points]
            if isinstance(record, ToolCall):
                calls.add(record.call_id)
            if isinstance(record, Inference):
                inferences.add(record.inference_id)
            if isinstance(record, ToolResult) and record.linkage != "none" and record.call_id not in calls:
                found.append(f"{name}: no call {record.call_id}")
            ident = getattr(record, "inference_id", None)
            if ident is not None and ident not in inferences:
                found.append(f"{name}: no inference {ident}")
            if isinstance(record, Compaction) and record.kept_from and record.kept_from.startswith("r"):
                if record.kept_from not in seen:
                    found.append(f"{name}: kept from {record.kept_from}")
            seen.add(record.id)
            msgspec.json.decode(encode(record))
    return found
