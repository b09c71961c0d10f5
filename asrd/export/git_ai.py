"""Git AI authorship notes 3.0.0: for each commit, the note that `refs/notes/ai` would hold. Made on demand, never written there.

    git notes --ref=ai add -F COMMIT.note COMMIT

Notes go stale with a rebase; those of this command are made from what is recorded, whenever they are asked for. Lines of
unknown origin are left out, which the standard calls untracked: not a person's.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from asrd.attribution import Commit
from asrd.export import File, Format, Given

SCHEMA_VERSION = "authorship/3.0.0"
TOOLS = {"claude-code": "claude"}
"""Harnesses whose name there is another."""


def make(given: Given) -> list[File]:
    """One note a commit."""
    notes = [(c.commit, note(given, c)) for c in given.commits]
    return [File(f"{commit}.note", data) for commit, data in notes if data is not None]


def session_key(tool: str, conversation: str) -> str:
    """`s_` and 14 hex digits of the SHA-256 of `tool:conversation` (specs/git_ai_standard_v3.0.0.md)."""
    return "s_" + hashlib.sha256(f"{tool}:{conversation}".encode("utf-8", "replace")).hexdigest()[:14]


def trace_key(session: str, record: str) -> str:
    """`t_` and 14 hex digits, of the record that made the lines: the standard takes random ones, these stay the same."""
    return "t_" + hashlib.sha256(f"{session}\x1f{record}".encode("utf-8", "replace")).hexdigest()[:14]


def note(given: Given, commit: Commit) -> bytes | None:
    """The note of one commit; None where none of its lines is known to come from these sessions."""
    wanted = {(s.agent, s.session_id, s.namespace) for s in given.sessions}
    sessions: dict[str, Any] = {}
    lines: list[str] = []
    for path, ranges in sorted(commit.files.items()):
        entries: dict[str, list[tuple[int, int]]] = {}
        for one in ranges:
            origin = one.origin
            if origin is None or origin.session not in wanted:
                continue
            tool = TOOLS.get(origin.agent, origin.agent)
            key = session_key(tool, origin.session_id)
            sessions[key] = {
                "agent_id": {"tool": tool, "id": origin.session_id, "model": origin.model or "unknown"},
                "custom_attributes": {"dev.asrd.evidence": origin.evidence},
            }
            entries.setdefault(f"{key}::{trace_key(origin.session_id, origin.record)}", []).append((one.start, one.end))
        if entries:
            lines.append(quoted(path))
            for key, some in entries.items():
                told = ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in joined(some))
                lines.append(f"  {key} {told}")
    if not lines:
        return None
    metadata = {
        "schema_version": SCHEMA_VERSION,
        "base_commit_sha": commit.commit,
        "prompts": {},
        "sessions": sessions,
    }
    data = msgspec.json.format(msgspec.json.encode(metadata), indent=2)
    return "\n".join([*lines, "---", ""]).encode("utf-8", "replace") + data + b"\n"


def quoted(path: str) -> str:
    """A path, in quotation marks where the standard asks for them."""
    return f'"{path}"' if any(c in path for c in " \t\n") else path


def joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges in order, those that touch made one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


FORMAT = Format(
    name="git-ai",
    title="Git AI authorship 3.0.0",
    make=make,
    loses={
        "file_change": "only lines that a commit holds and whose origin is proved",
        "inference": "the model that wrote a line",
        "session": "the harness and the id",
        "*": "left out",
    },
    repository=True,
)
