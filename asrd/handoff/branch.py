"""The live branch of a session: what a person went on from, without what was left behind.

The source says it in one of three ways: a record names a parent that stands further back, a record takes turns back, or
a prompt starts anew. What was left is counted, and not shown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, cast

import msgspec
from msgspec import structs

from asrd.handoff_token import TOKEN_LINE
from asrd.records import (
    AnyRecord,
    Approval,
    Capture,
    FileChange,
    Gap,
    Loss,
    Message,
    Native,
    Session,
    Text,
    ToolCall,
    ToolResult,
    VcsAction,
)


def live(records: Sequence[AnyRecord]) -> tuple[list[AnyRecord], int]:
    """The records of the live branch in order, and how many stand on branches that were left.

    Walked back from the last record. A record whose `parent` stands before a prompt, an answer or a call starts a
    branch there: what lies between was left. Two things are no branch: results, which name their own call, and calls of
    one response that stand side by side. A prompt without any parent, in a source that names parents, starts anew.
    Where a source says that turns were taken back (`TAKEN_BACK`, `REWOUND`), they were left. Records that a later one
    supersedes are not live.
    """
    superseded = {r.supersedes for r in records if r.supersedes}
    seqs = [r.seq for r in records]
    spoken_before: list[int] = []
    last = -1
    for i, record in enumerate(records):
        spoken_before.append(last)
        if speaks(record):
            last = i
    kept: list[AnyRecord] = []
    left = 0
    turns = 0  # how many prompts, with what followed them, were taken back by what stands after them
    i = len(records) - 1
    while i >= 0:
        record = records[i]
        if turns:
            left += 1
            turns -= isinstance(record, Message) and is_prompt(record)
        elif record.id not in superseded:
            kept.append(record)
        turns += taken_back(record)
        back = came_from(record, seqs)
        if (rewound := rewound_to(record, records)) is not None:
            left += i - rewound
            i = rewound - 1
            continue
        if 0 <= back < i:
            back = same_line_end(records, back, i)
            if spoken_before[i] > back and not side_by_side(records, spoken_before, back, i):
                left += i - 1 - back
                i = back
                continue
        i -= 1
    kept.reverse()
    return kept, left


def came_from(record: AnyRecord, seqs: list[int]) -> int:
    """Where the record that this one went on from stands; -1 = it is the one before, or cannot start a branch."""
    if isinstance(record, ToolResult | FileChange | VcsAction | Approval):
        return -1
    if record.parent:
        return place_of(record.parent, seqs)
    if isinstance(record, Message) and is_prompt(record) and record.meta and record.meta.get(ROOT):
        return 0
    return -1


TAKEN_BACK = "event_msg/thread_rolled_back"
"""Codex: the last `num_turns` turns are no longer part of the thread."""
REWOUND = "$rewindTo"
"""Gemini: the message of that id, and all after it, are no longer part of the conversation."""


def taken_back(record: AnyRecord) -> int:
    """How many turns before it a record takes back."""
    if not isinstance(record, Native) or record.native_type != TAKEN_BACK:
        return 0
    data = fields_of(record.data)
    count = fields_of(data.get("payload", data)).get("num_turns")
    return count if isinstance(count, int) and count > 0 else 0


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of an object; none of what is no object. What a recorder passed on as it was written is decoded."""
    if isinstance(value, msgspec.Raw):
        try:
            value = msgspec.json.decode(value)
        except msgspec.MsgspecError:
            return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def rewound_to(record: AnyRecord, records: Sequence[AnyRecord]) -> int | None:
    """Where the message stands that a record says the conversation went back to just before."""
    if not isinstance(record, Native) or record.native_type != REWOUND:
        return None
    ident = fields_of(record.data).get(REWOUND)
    return (
        next((n for n, r in enumerate(records) if r.native_id == ident and r.seq < record.seq), None) if ident else None
    )


ROOT = "dev.asrd.root"
"""Under `_meta`: the source says that the record has no parent, although others came before it."""


def side_by_side(records: Sequence[AnyRecord], spoken_before: list[int], back: int, i: int) -> bool:
    """Whether all that was said between two records is of one response, the one that stands at the first of them."""
    before = back if speaks(records[back]) else spoken_before[back]
    response = response_of(records[before]) if before >= 0 else None
    if response is None:
        return False
    at = spoken_before[i]
    while at > back:
        if response_of(records[at]) != response:
            return False
        at = spoken_before[at]
    return True


def response_of(record: AnyRecord) -> str | None:
    """The response a record is of, where it says so."""
    return record.inference_id if isinstance(record, Message | ToolCall) else None


def place_of(ident: str, seqs: list[int]) -> int:
    """Where the record of that id stands, or the last one before it where it is not at hand; -1 = nowhere."""
    seq = 0 if ident == "h" else int(ident[1:]) if ident[1:].isdigit() else -1
    return bisect_right(seqs, seq) - 1


def same_line_end(records: Sequence[AnyRecord], at: int, before: int) -> int:
    """The last of the records that were made from the same native record as the one at `at`."""
    native = records[at].native_id
    if native is not None:
        while at + 1 < before and records[at + 1].native_id == native:
            at += 1
    return at


def speaks(record: AnyRecord) -> bool:
    """Whether a record carries the conversation on: a prompt, an answer, a call."""
    if isinstance(record, Message):
        return record.role == "assistant" or is_prompt(record)
    return isinstance(record, ToolCall)


def is_prompt(message: Message) -> bool:
    """Whether a person (or, in a sub-agent, the agent above) asked this."""
    return (
        message.role == "user"
        and message.origin in (None, "prompt", "agent")
        and message.author in (None, "human", "agent")
    )


LONGEST_KEPT = 16_384
"""Characters of a result's text that `slim` keeps, where a brief may quote it."""
NEEDED = (
    "command", "cmd", "script", "file_path", "path", "filePath", "absolute_path", "target_file", "notebook_path",
    "filename", "file", "prompt", "message", "task", "instructions",
)  # fmt: skip
"""The fields of a call's input that a brief may quote."""


def slim(record: AnyRecord) -> AnyRecord:
    """The record without what a brief never shows: for readers that hold large sessions in memory.

    The Markdown of a brief of slim records is that of one of whole records.
    """
    meta = {ROOT: True} if record.meta and record.meta.get(ROOT) else None
    if isinstance(record, Session | Gap | Loss | Capture):
        return record
    if isinstance(record, Native) and record.native_type not in (TAKEN_BACK, REWOUND):
        return structs.replace(record, data=None, meta=meta)
    if isinstance(record, Message):
        unseen = record.role in ("system", "developer") or record.origin in ("injected", "hook", "command")
        content = [] if unseen else [b for b in record.content if isinstance(b, Text)]
        return structs.replace(record, content=content, meta=meta)
    if isinstance(record, ToolCall):
        given = fields_of(record.input)
        return structs.replace(record, input={k: given[k] for k in NEEDED if k in given}, meta=meta)
    if isinstance(record, ToolResult):
        return slim_result(structs.replace(record, meta=meta))
    return structs.replace(record, meta=meta)


def slim_result(result: ToolResult) -> ToolResult:
    """A result without output that no brief quotes: that of a command which did not fail."""
    ran = result.exec
    if result.status in ("failed", "denied", "cancelled") or (ran is not None and ran.exit_code not in (None, 0)):
        return result
    texts = [b for b in result.content or () if isinstance(b, Text)]
    if any(TOKEN_LINE in b.text for b in texts):
        return result
    if ran is None:
        return structs.replace(result, content=[Text(text=b.text[:LONGEST_KEPT]) for b in texts])
    if any(TOKEN_LINE in t for t in (ran.stdout, ran.stderr) if t):
        return result
    return structs.replace(result, content=None, exec=structs.replace(ran, stdout=None, stderr=None))
