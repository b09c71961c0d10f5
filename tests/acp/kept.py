"""The kept connections of the captures, as scripts to play, and streams to compare without times and places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from asrd.convert import convert_home
from asrd.recorders.acp import SpoolLine
from asrd.records import encode
from tests.acp.truth import CAPTURES

Script = list[tuple[str, str]]
SPOOL = ".local/share/asrd/spool"


def scripts(case: str) -> list[Script]:
    """Each connection of a case: direction and message, verbatim, in order."""
    return [script(path) for path in sorted((CAPTURES / case / "home" / SPOOL).glob("*.acp.jsonl"))]


def script(path: Path) -> Script:
    found: Script = []
    for line in path.read_bytes().splitlines():
        told = msgspec.json.decode(line, type=SpoolLine)
        if isinstance(told.frame, msgspec.Raw):
            found.append((told.dir, bytes(told.frame).decode()))
    return found


def direction(script: Script, which: str) -> bytes:
    """All bytes that went in one direction."""
    return b"".join(message.encode() + b"\n" for d, message in script if d == which)


def records(home: Path) -> dict[str, list[dict[str, Any]]]:
    """The streams below a home folder, without what differs from run to run: times, places, names of connections."""
    found: dict[str, list[dict[str, Any]]] = {}
    for key, stream in convert_home(home, only="acp").items():
        found[f"{key.agent}/{key.session_id}"] = [bare(json.loads(encode(r))) for r in stream]
    return found


def bare(record: dict[str, Any]) -> dict[str, Any]:
    for name in ("at", "startedAt", "sources", "from", "to"):
        record.pop(name, None)
    for name in ("turnId", "inferenceId"):
        if "/" in record.get(name, ""):
            record[name] = record[name].rsplit("/", 1)[1]
    meta = record.get("_meta", {})
    for name in ("dev.asrd.span", "dev.asrd.source"):
        meta.pop(name, None)
    for name in ("connection", "transport"):
        meta.get("dev.asrd.acp", {}).pop(name, None)
    return record
