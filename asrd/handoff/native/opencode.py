"""OpenCode: what `opencode export` writes; `opencode import FILE` takes it in, `opencode -s ID` opens it.

Its sessions are in a database that only OpenCode itself should write. The mark is the session's `metadata`; messages
that are older than the session are its copy. Checked with 1.18.33.
"""

from __future__ import annotations

from typing import Any

from asrd.handoff.native.base import History, NativeFile, compact, file_of, ms
from asrd.recorders.base import IMPORTED_KEY

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
NO_TOKENS = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
NO_MODEL = {"providerID": "asrd", "modelID": "imported"}
"""Said of what was imported: no model of OpenCode's answered it."""


def write(told: History) -> NativeFile:
    """The export of a session whose history is imported."""
    now = ms(told.now)
    session = identifier(told, "ses", ~(now * 0x1000 + 1), "session")
    count = 0

    def made(prefix: str) -> str:
        nonlocal count
        count += 1
        return identifier(told, prefix, now * 0x1000 + count, f"{prefix}{count}")

    messages: list[dict[str, Any]] = []
    asked = ""
    turns = [(t.role, t.text, min(ms(t.at), now - 1)) for t in told.turns]
    for role, text, at in [*turns, ("user", told.note, now)]:
        ident = made("msg")
        info: dict[str, Any] = {"id": ident, "sessionID": session, "role": role, "time": {"created": at}}
        if role == "user":
            asked = ident
            info |= {"agent": "build", "model": NO_MODEL}
        else:
            info |= {
                **NO_MODEL, "parentID": asked, "mode": "build", "agent": "build", "cost": 0, "tokens": NO_TOKENS,
                "path": {"cwd": told.folder, "root": told.folder}, "time": {"created": at, "completed": at},
                "finish": "stop",
            }  # fmt: skip
        part = {"id": made("prt"), "sessionID": session, "messageID": ident, "type": "text", "text": text}
        messages.append(
            {"info": info, "parts": [part | ({"time": {"start": at, "end": at}} if role != "user" else {})]}
        )
    info = {
        "id": session, "slug": f"imported-{told.chance('slug').hex()[:6]}", "projectID": "global",
        "directory": told.folder, "title": f"Imported from {told.source.agent}", "version": "1.18.33",
        "time": {"created": now, "updated": now}, "metadata": {IMPORTED_KEY: told.origin},
    }  # fmt: skip
    return file_of(
        told, "opencode", session, f"import/{session}.json", compact({"info": info, "messages": messages}) + "\n",
        ".local/share/opencode", (), ("opencode", "-s", session), load=("opencode", "import", "{file}"),
    )  # fmt: skip


def identifier(told: History, prefix: str, number: int, what: str) -> str:
    """An id as OpenCode makes them: six bytes of time and count, then 14 characters."""
    chance = "".join(ALPHABET[b % 62] for b in told.chance(what)[:14])
    return f"{prefix}_{(number & 0xFFFFFFFFFFFF):012x}{chance}"


WRITER = write
