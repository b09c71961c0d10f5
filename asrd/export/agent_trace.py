"""Agent Trace 0.1.0 (agent-trace.dev): for each commit, which lines come from which session, as far as that is proved.

A record is made for each commit with lines of the exported sessions. Lines of unknown origin are left out: what no range
names is not said to be a person's.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec

from asrd.attribution import Commit, Range
from asrd.export import File, Format, Given
from asrd.export.view import urn

VERSION = "0.1.0"


def make(given: Given) -> list[File]:
    """One file: a record a line, one for each commit; none where no line is known to come from these sessions."""
    found = [r for c in given.commits if (r := record(given, c)) is not None]
    return [File("traces.jsonl", b"".join(msgspec.json.encode(r) + b"\n" for r in found))] if found else []


def record(given: Given, commit: Commit) -> dict[str, Any] | None:
    """The record of one commit; None where none of its lines is known to come from these sessions."""
    wanted = {(s.agent, s.session_id, s.namespace) for s in given.sessions}
    files: list[dict[str, Any]] = []
    names: set[tuple[str, str, str]] = set()
    for path, ranges in sorted(commit.files.items()):
        by_session: dict[tuple[str, str, str, str | None], list[Range]] = {}
        for one in ranges:
            if one.origin is not None and one.origin.session in wanted:
                by_session.setdefault((*one.origin.session, one.origin.model), []).append(one)
        talks: list[dict[str, Any]] = []
        for (agent, session, namespace, model), some in by_session.items():
            names.add((agent, session, namespace))
            contributor: dict[str, Any] = {"type": "ai"}
            if model and len(model) <= 250:
                contributor["model_id"] = model
            talks.append(
                {
                    "url": urn(agent, session, namespace),
                    "contributor": contributor,
                    "ranges": [{"start_line": r.start, "end_line": r.end} for r in some],
                }
            )
        if talks:
            files.append({"path": path, "conversations": talks})
    if not files:
        return None
    found: dict[str, Any] = {
        "version": VERSION,
        "id": uuid5("\n".join([commit.commit, *sorted("/".join(n) for n in names)])),
        "timestamp": utc(commit.at),
        "vcs": {"type": "git", "revision": commit.commit},
        "files": files,
        "metadata": {
            "dev.asrd": {
                "version": given.version,
                "evidence": sorted({r.origin.evidence for some in commit.files.values() for r in some if r.origin}),
            }
        },
    }
    if len({n[0] for n in names}) == 1:
        one = next(s for s in given.sessions if (s.agent, s.session_id, s.namespace) in names)
        version = one.header.agent.version if one.header else None
        if version:  # the schema knows no tool without one; the session's URL names it too
            found["tool"] = {"name": one.agent, "version": version}
    return found


def utc(at: str) -> str:
    """A time in UTC with `Z`: schemas.ts of the format takes no other zone."""
    return datetime.fromisoformat(at).astimezone(UTC).isoformat().replace("+00:00", "Z")


NAMESPACE_URL = bytes.fromhex("6ba7b8119dad11d180b400c04fd430c8")
"""The name space of URLs (RFC 9562, section 6.6)."""


def uuid5(name: str) -> str:
    """The UUID of a name (RFC 9562, version 5): the same each time."""
    digest = bytearray(
        hashlib.sha1(NAMESPACE_URL + name.encode("utf-8", "replace"), usedforsecurity=False).digest()[:16]
    )
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


FORMAT = Format(
    name="agent-trace",
    title="Agent Trace 0.1.0",
    make=make,
    loses={
        "file_change": "only lines that a commit holds and whose origin is proved",
        "inference": "the model that wrote a line, as the harness names it",
        "session": "the id, as a URN",
        "*": "left out",
    },
    repository=True,
)
