"""What the streams of a constructed capture tell, as a table to compare with its `truth.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from asrd.convert import Streams, convert_home
from asrd.recorders.base import StreamKey
from asrd.records import FileChange, Message, Record, Text, ToolCall, ToolResult, VcsAction
from tests.figures import figures
from tests.golden import CAPTURES
from tests.recorders.told import current

Table = dict[str, Any]


def home_of(case: str) -> Path:
    return CAPTURES / case / "home"


def truth_of(case: str) -> Table:
    return json.loads((CAPTURES / case / "truth.json").read_text("utf-8"))


def streams_of(case: str, only: str) -> Streams:
    return convert_home(home_of(case), only=only)


def words(record: Message | ToolResult) -> str:
    return "".join(b.text for b in record.content or () if isinstance(b, Text))


def told(records: list[Record]) -> Table:
    """Prompts, words, calls, exit codes, edits, commits and figures of one stream, what was superseded left out."""
    streams: Streams = {StreamKey("x", "x"): records}
    standing = [r for _, r in current(streams)]
    results = [r for r in standing if isinstance(r, ToolResult)]
    return {
        "prompts": [words(r) for r in standing if isinstance(r, Message) and r.origin == "prompt"],
        "texts": [words(r) for r in standing if isinstance(r, Message) and r.role == "assistant" and words(r)],
        "calls": [r.call_id for r in standing if isinstance(r, ToolCall)],
        "answered": [r.call_id for r in results],
        "exits": {r.call_id: r.exec.exit_code for r in results if r.exec is not None},
        "edits": [
            [
                r.path.path.rsplit("/", 1)[-1],
                r.before.sha256 if r.before else None,
                r.after.sha256 if r.after else None,
            ]
            for r in standing
            if isinstance(r, FileChange)
        ],
        "commits": [r.commit for r in standing if isinstance(r, VcsAction)],
        **figures(streams),
    }
