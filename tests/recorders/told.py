"""What a stream tells and what truth.json says, as equal tables: prompts, calls, edits, commits, models, sub-agents.

And the ways rows may reach a recorder: whole, row by row, in random pieces with restarts between, again from the start.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

from asrd.capture import Capture
from asrd.convert import Streams, groups, take
from asrd.places import Found, find
from asrd.reading import read_rows
from asrd.recorders import named
from asrd.recorders.base import StreamKey
from asrd.records import (
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
from asrd.sources import Row, Source
from tests.golden import CAPTURES, cases
from tests.recorders.arrivals import remembered

Table = dict[str, Any]
Item = tuple[Source, Row]


def captures(harness: str) -> list[str]:
    """The captures below `tests/captures/<harness>/` that have a truth.json."""
    return [c for c in cases() if c.split("/")[0] == harness and (CAPTURES / c / "truth.json").exists()]


def truth_of(case: str) -> Any:
    return json.loads((CAPTURES / case / "truth.json").read_text("utf-8"))


def current(streams: Streams) -> list[tuple[StreamKey, Record]]:
    """The records that stand: no copies, nothing that was superseded."""
    found: list[tuple[StreamKey, Record]] = []
    for key, records in streams.items():
        gone = {r.supersedes for r in records if r.supersedes}
        found += [(key, r) for r in records if r.id not in gone and not r.copy_of]
    return found


def words(record: Message | ToolResult) -> str:
    return "".join(b.text for b in record.content or () if isinstance(b, Text))


def spawning_call(header: Record) -> list[str]:
    """The call that started a session, "" for one that is not named; empty for a session that no call started."""
    if not isinstance(header, Session) or header.lineage.relation != "spawned_by" or header.lineage.parent is None:
        return []
    return [header.lineage.parent.call_id or ""]


def told(streams: Streams) -> Table:
    """The table of what streams tell."""
    records = current(streams)
    results = {r.call_id: r for _, r in records if isinstance(r, ToolResult)}
    calls = [r for _, r in records if isinstance(r, ToolCall)]
    prompts = [r for _, r in records if isinstance(r, Message) and r.origin == "prompt"]
    prompts.sort(key=lambda m: m.at or "")
    links = [(k, r) for k, r in records if isinstance(r, Link) and r.relation == "spawned"]
    return {
        # `opencode run` stores a prompt in quotes (1.1 with a newline behind it); the stream has it as it was stored.
        "prompts": [words(m).strip().strip('"') for m in prompts],
        "calls": sorted((c.call_id, c.name, json.dumps(c.input, sort_keys=True)) for c in calls),
        "results": {i: words(r) for i, r in results.items()},
        "exits": {i: r.exec.exit_code for i, r in results.items() if r.exec},
        "edits": [
            (
                r.path.path.rsplit("/", 1)[-1],
                r.before.sha256 if r.before else None,
                r.after.sha256 if r.after else None,
            )
            for _, r in records
            if isinstance(r, FileChange)
        ],
        "commits": [r.commit for _, r in records if isinstance(r, VcsAction) and r.action == "commit"],
        "models": {r.model for _, r in records if isinstance(r, Inference)},
        "sub-agents": sorted((r.call_id or "", r.target.session_id) for _, r in links),
        "children": sorted((call, key.session_id) for key, rs in streams.items() for call in spawning_call(rs[0])),
    }


def true(truth: Any) -> Table:
    """The table of what a truth.json says, with what it does not know left out of `prompts` and `results`."""
    calls = truth["calls"]
    content = truth["calc_final"]
    children: list[Any] = truth["subagent_tree"]["children"] if truth.get("subagent_tree") else []
    edits: list[tuple[str, str, str]] = []
    for edit in reversed(truth["edits"]):
        before = content.replace(edit["new"], edit["old"])
        edits.append((edit["file"].rsplit("/", 1)[-1], digest(before), digest(content)))
        content = before
    # What a harness tells the model of a call that was killed with it stands in no file.
    told_to_model = {c["id"]: c["result_seen_by_model"] for c in calls if "killed" not in c.get("note", "")}
    return {
        "prompts": [t["prompt"] for t in truth["turns"]],
        "calls": sorted((c["id"], c["name"], json.dumps(c["args"], sort_keys=True)) for c in calls),
        "results": {i: r for i, r in told_to_model.items() if r is not None},
        "exits": {c["id"]: c["exit_code"] for c in calls if c.get("exit_code") is not None},
        "edits": edits[::-1],
        "commits": [line.split()[0] for line in truth["git_log"] if not line.endswith(" initial")][::-1],
        "models": {r["model"] for r in truth["responses"] if not r["script"].startswith("_aux_title")},
        "spawns": sorted(c["spawn_call_id"] for c in children),
    }


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- how rows arrive


def sources(home: Path, harness: str) -> list[list[Found]]:
    """The groups of sources of a home."""
    return groups(find(home, {}, lambda path, reason: None, harness))


def items(group: list[Found]) -> list[Item]:
    """Every row of a group, in the order it is read."""
    return [(one.source, row) for one in group for row in read_rows(one)]


def record(harness: str, group: str, arriving: list[list[Item]], *, restart: bool = False) -> Streams:
    """The streams that rows give when they arrive in these pieces, with a restart behind each when asked for."""
    capture = Capture(named(harness), group)
    streams: Streams = {}
    for piece in arriving:
        for source, row in piece:
            capture.receive_rows(source, [row])
        take(streams, capture)
        if restart:
            capture = Capture(named(harness), group, saved=capture.save())
    return streams


def pieces(all_items: list[Item], seed: int) -> list[list[Item]]:
    """The rows cut at random places."""
    chance = random.Random(seed)
    cuts = sorted(chance.sample(range(len(all_items)), min(9, len(all_items) - 1)))
    return [all_items[a:b] for a, b in zip([0, *cuts], [*cuts, len(all_items)], strict=True)]


def goes_on(harness: str, group: str, all_items: list[Item], streams: Streams, seed: int) -> Streams:
    """The streams when each is cut at a random place, the state is lost, and everything is read again."""
    chance = random.Random(seed)
    cut = {key: records[: chance.randint(1, len(records))] for key, records in streams.items()}
    capture = Capture(named(harness), group, recorded={key: remembered(records) for key, records in cut.items()})
    for source, row in all_items:
        capture.receive_rows(source, [row])
    again = {key: list(records) for key, records in cut.items()}
    for command in capture.commands():
        again.setdefault(command.key, []).extend(command.records)
    return again


def same_however_cut(home: Path, harness: str, group: str) -> None:
    """Whole, row by row, and cut anywhere with restarts between: the same records with the same ids."""
    (found,) = sources(home, harness)
    rows = items(found)
    whole = lines(record(harness, group, [rows]))

    assert lines(record(harness, group, [[r] for r in rows], restart=True)) == whole
    for seed in range(3):
        assert lines(record(harness, group, pieces(rows, seed), restart=True)) == whole


def goes_on_where_it_was_cut(home: Path, harness: str, group: str) -> None:
    """The state is lost: with what the streams hold already, a run from the start gives exactly the rest."""
    (found,) = sources(home, harness)
    rows = items(found)
    whole = record(harness, group, [rows])

    for seed in range(3):
        assert lines(goes_on(harness, group, rows, whole, seed)) == lines(whole)


def lines(streams: Streams) -> dict[StreamKey, list[bytes]]:
    return {key: [encode(r) for r in records] for key, records in streams.items()}
