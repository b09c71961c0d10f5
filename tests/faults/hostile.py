"""A home in which everything that a session can hold is made to harm its reader."""

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

ESCAPES = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31m\x1b]8;;http://evil/\x1b\\x\x1b]52;c;ZXZpbA==\x07"  # title, clear, link, clipboard
    "\x9b31m\x90q\x9c\x07\x08\r"  # the same in C1, and what moves the cursor
)
BIDI = "\u202egnp.exe\u2066\u2067\u200f\u061c\ufeff\u200b"
HTML = "<script>alert(1)</script><img src=x onerror=alert(1)>&lt;"
LINES = "one\u2028two\u2029three\x85four\x0bfive\x0csix"
TRAVERSAL = "../../../../../../tmp/asrd-was-here"
EVIL = ESCAPES + BIDI + HTML + LINES + TRAVERSAL

IDS = (
    TRAVERSAL,
    "..",
    ".",
    "/etc/passwd",
    "a/../../b",
    "nul\x00byte",
    "new\nline",
    "x" * 5000,
    ESCAPES,
    BIDI,
    "C:\\windows\\system32",
    "-rf",
    "CON",
    "~root",
    "%2e%2e%2f",
)
"""Session ids that are not to become paths."""

NUMBERS: tuple[Any, ...] = (10**30, 2**63, 2**64, -(2**63) - 1, 2**62, 1e308, -5, 0.5, True, "12", None, [], 2**53 + 1)


def write(path: Path, *lines: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for line in lines:
            file.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")


def claude(sid: str, number: Any, **more: Any) -> list[dict[str, Any]]:
    """A session of Claude Code in which every text is evil and every figure is `number`."""
    base = {"isSidechain": False, "userType": EVIL, "cwd": "/home/" + EVIL, "sessionId": sid, "version": EVIL,
            "gitBranch": EVIL, "timestamp": "2026-11-30T12:00:00.000Z"}  # fmt: skip
    usage = {"input_tokens": number, "output_tokens": number, "cache_read_input_tokens": number,
             "cache_creation_input_tokens": number}  # fmt: skip
    return [
        {**base, "type": "user", "parentUuid": None, "uuid": "u1" + EVIL, "message": {"role": "user", "content": EVIL}},
        {**base, "type": "assistant", "parentUuid": "u1" + EVIL, "uuid": "a1", "requestId": EVIL,
         "message": {"id": "m" + EVIL + sid, "role": "assistant", "model": EVIL, "usage": usage, "content": [
             {"type": "text", "text": EVIL}, {"type": "thinking", "thinking": EVIL, "signature": EVIL},
             {"type": "tool_use", "id": "t1" + EVIL, "name": EVIL, "input": {"command": EVIL, "file_path": TRAVERSAL}},
             {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "python - <<X\n" + EVIL}}]}},
        {**base, "type": "user", "parentUuid": "a1", "uuid": "u2", "toolUseResult": {"stdout": EVIL, "filePath": EVIL},
         "message": {"role": "user", "content": [
             {"type": "tool_result", "tool_use_id": "t1" + EVIL, "content": EVIL, "is_error": True}]}},
        {**base, "type": "summary", "summary": EVIL, "leafUuid": EVIL, **more},
    ]  # fmt: skip


def codex(sid: str, number: Any) -> list[dict[str, Any]]:
    """A session of Codex of the same sort."""
    at = "2026-11-30T12:00:00.000Z"
    usage = {"input_tokens": number, "cached_input_tokens": number, "output_tokens": number,
             "reasoning_output_tokens": number, "total_tokens": number}  # fmt: skip
    return [
        {"timestamp": at, "type": "session_meta", "payload": {
            "id": sid, "timestamp": at, "cwd": EVIL, "originator": EVIL, "cli_version": EVIL, "instructions": None,
            "git": {"commit_hash": EVIL, "branch": EVIL, "repository_url": EVIL}}},
        {"timestamp": at, "type": "turn_context", "payload": {"cwd": EVIL, "model": EVIL, "effort": EVIL}},
        {"timestamp": at, "type": "response_item", "payload": {
            "type": "message", "role": "user", "content": [{"type": "input_text", "text": EVIL}]}},
        {"timestamp": at, "type": "response_item", "payload": {
            "type": "function_call", "name": EVIL, "arguments": EVIL, "call_id": EVIL}},
        {"timestamp": at, "type": "event_msg", "payload": {
            "type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage}}},
    ]  # fmt: skip


def deep(levels: int) -> bytes:
    """A line of JSON so deep that a careless reader runs out of stack."""
    return b'{"type":"user","message":' + b'{"a":[' * levels + b"1" + b"]}" * levels + b"}"


def home(folder: Path) -> Path:
    """Lays it all out; gives the folder."""
    projects = folder / ".claude/projects"
    for number, sid in enumerate(IDS):
        write(projects / f"-p{number}" / f"00000000-0000-4000-8000-{number:012d}.jsonl", *claude(sid, 7))
    for number, figure in enumerate(NUMBERS):
        name = f"00000000-0000-4000-8000-1{number:011d}"
        write(projects / f"-n{number}" / f"{name}.jsonl", *claude(name, figure))
        rollout = f"rollout-2026-11-30T12-00-00-00000000-0000-4000-8000-2{number:011d}.jsonl"
        write(
            folder / ".codex/sessions/2026/11/30" / rollout, *codex(f"00000000-0000-4000-8000-2{number:011d}", figure)
        )
    name = "00000000-0000-4000-8000-300000000000"
    lines = claude(name, 7)
    write(
        projects / "-deep" / f"{name}.jsonl",
        lines[0],
        deep(200),
        deep(2000),
        deep(150_000),
        b'{"type":' * 90_000,
        *lines,
    )
    for number, at in enumerate(("9999-99-99T99:99:99Z", EVIL, "0000-00-00T00:00:00Z", "2026-11-30", "1e400")):
        name = f"00000000-0000-4000-8000-4{number:011d}"
        write(projects / f"-t{number}" / f"{name}.jsonl", *[{**one, "timestamp": at} for one in claude(name, 7)])
    evil_name = "".join(c for c in ESCAPES + BIDI + HTML if c not in "/\0")[:60] + ".jsonl"
    write(Path(os.fsdecode(os.fsencode(projects / "-names"))) / evil_name, *claude("named", 7))
    endless(folder / ".local/share/opencode/opencode.db")
    return folder


def endless(path: Path) -> None:
    """A database whose tables are views that never end (the rows' own billion laughs)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path)
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    for table in ("session", "message", "part", "project", "todo", "event"):
        db.execute(
            f"CREATE VIEW {table} AS {rows} SELECT i AS id, i AS rowid, i AS session_id, i AS message_id, i AS seq, "
            "i AS time_created, i AS time_updated, hex(zeroblob(1000)) AS data, 'x' AS directory, 'y' AS title, "
            "i AS project_id, i AS parent_id, 'z' AS version FROM n"
        )
    db.commit()
    db.close()
