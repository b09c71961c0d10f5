"""Plays a connection: what client and agent say, as `asrd acp` would have kept it, and the streams that come of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from asrd.capture import Capture
from asrd.recorders.acp import GROUP, AcpRecorder
from asrd.recorders.base import Recorded, StreamKey
from asrd.records import AnyRecord, decode, encode
from asrd.sources import Source


def source(name: str) -> Source:
    """A spool of that name."""
    return Source("acp", GROUP, name, name, "lines", name)


class Play:
    """One connection, opened and initialized; each thing said is a second later than the one before."""

    def __init__(
        self, protocol: int = 1, agent: str | None = "some-agent", name: str = "20261130T000000.000000-1-aaaaaa"
    ) -> None:
        self.name = name + ".acp.jsonl"
        self.lines: list[bytes] = []
        self._id = 0
        self.meta("open", connection=name, transport="stdio", keep=False)
        if agent is not None:
            info = {"name": agent, "version": "1.2.3"}
            asked = self.asks("initialize", protocolVersion=protocol, clientInfo={"name": "client", "version": "1"})
            self.answers(asked, protocolVersion=protocol, **{"agentInfo" if protocol == 1 else "info": info})

    # what is said

    def line(self, direction: str, **fields: Any) -> None:
        at = len(self.lines)
        stamp = f"2026-11-30T00:{at // 60:02d}:{at % 60:02d}Z"
        self.lines.append(json.dumps({"at": stamp, "dir": direction, **fields}, separators=(",", ":")).encode())

    def meta(self, event: str, **facts: Any) -> None:
        self.line("meta", event=event, **facts)

    def asks(self, method: str, by: str = "c2a", **params: Any) -> tuple[str, int]:
        """A request; gives what `answers` needs."""
        self._id += 1
        self.line(by, frame={"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return ("a2c" if by == "c2a" else "c2a", self._id)

    def answers(self, asked: tuple[str, int], **result: Any) -> None:
        self.line(asked[0], frame={"jsonrpc": "2.0", "id": asked[1], "result": result})

    def fails(self, asked: tuple[str, int], code: int, message: str) -> None:
        self.line(asked[0], frame={"jsonrpc": "2.0", "id": asked[1], "error": {"code": code, "message": message}})

    def tells(self, method: str, by: str = "a2c", **params: Any) -> None:
        """A notification."""
        self.line(by, frame={"jsonrpc": "2.0", "method": method, "params": params})

    def update(self, kind: str, session: str = "s1", /, **fields: Any) -> None:
        self.tells("session/update", sessionId=session, update={"sessionUpdate": kind, **fields})

    # short forms

    def new(self, session: str = "s1", cwd: str = "/w") -> Play:
        self.answers(self.asks("session/new", cwd=cwd, mcpServers=[]), sessionId=session)
        return self

    def prompt(self, text: str, session: str = "s1") -> tuple[str, int]:
        return self.asks("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def says(
        self, text: str, message: str | None = None, kind: str = "agent_message_chunk", session: str = "s1"
    ) -> None:
        named = {"messageId": message} if message else {}
        self.update(kind, session, content={"type": "text", "text": text}, **named)

    def calls(self, ident: str, **fields: Any) -> None:
        self.update("tool_call", toolCallId=ident, **{"title": "a call", **fields})

    def changes(self, ident: str, **fields: Any) -> None:
        self.update("tool_call_update", toolCallId=ident, **fields)


def streams(
    *plays: Play, restart: bool = False, recorded: Mapping[StreamKey, Recorded] | None = None
) -> dict[StreamKey, list[AnyRecord]]:
    """The streams of some connections, one after the other. `restart`: the recorder starts anew at every line."""
    capture = Capture(AcpRecorder, GROUP, recorded=recorded)
    found: dict[StreamKey, list[AnyRecord]] = {}
    for play in plays:
        for line in play.lines:
            capture.receive_bytes(source(play.name), line + b"\n")
            for append in capture.commands():
                found.setdefault(append.key, []).extend(decode(encode(r)) for r in append.records)
            if restart:
                capture = Capture(AcpRecorder, GROUP, saved=capture.save())
    return found


def stream(*plays: Play) -> list[AnyRecord]:
    """The records of the only stream."""
    (records,) = streams(*plays).values()
    return records


def skipped(*plays: Play) -> dict[str, int]:
    """How often each rule left a line out."""
    capture = Capture(AcpRecorder, GROUP)
    for play in plays:
        capture.receive_bytes(source(play.name), b"".join(line + b"\n" for line in play.lines))
    return capture.accounts()[0]
