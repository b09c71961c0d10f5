"""What crosses the socket: JSON-RPC 2.0, one message a line. Sans-I/O: bytes in, requests out; answers in, bytes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

LONGEST_REQUEST = 1 << 20
"""Bytes a request may have; answers may be larger."""

PARSE, INVALID, NO_METHOD, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
ASRD = -32000
"""Our own errors; `data.exitCode` and `data.kind` say which."""


class Request(Struct):
    """A question. Without `id` it is a notification and gets no answer."""

    method: str
    params: dict[str, Any] = {}
    id: int | str | None | UnsetType = UNSET
    jsonrpc: str = "2.0"


class Refused(Struct):
    """A line that is no request: what to answer."""

    code: int
    message: str
    id: int | str | None = None


_request = msgspec.json.Decoder(Request)


class Connection:
    """One client's half of the conversation: cuts bytes into lines and lines into requests."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._too_long = False

    def receive(self, chunk: bytes) -> Iterator[Request | Refused]:
        """The requests that end in this chunk. What is too long or no request is refused, and the next is read."""
        self._held += chunk
        while (end := self._held.find(b"\n")) >= 0:
            line = bytes(self._held[:end])
            del self._held[: end + 1]
            if self._too_long:
                self._too_long = False
                continue
            if line.strip():
                yield parse(line)
        if len(self._held) > LONGEST_REQUEST:
            self._held.clear()
            if not self._too_long:
                self._too_long = True
                yield Refused(INVALID, f"a request longer than {LONGEST_REQUEST} bytes")


def parse(line: bytes) -> Request | Refused:
    """One line as a request."""
    if len(line) > LONGEST_REQUEST:
        return Refused(INVALID, f"a request longer than {LONGEST_REQUEST} bytes")
    try:
        return _request.decode(line)
    except msgspec.ValidationError as error:
        try:
            ident = msgspec.json.decode(line).get("id")
        except AttributeError:  # JSON, and no object
            ident = None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as worse:  # wrong behind the first mistake too
            return Refused(PARSE, str(worse))
        return Refused(INVALID, str(error), ident if isinstance(ident, int | str) else None)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return Refused(PARSE, str(error))


def answer(ident: int | str | None, result: Any) -> bytes:
    """The line that answers a request."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": ident, "result": result}) + b"\n"


def refusal(ident: int | str | None, code: int, message: str, data: Any = None) -> bytes:
    """The line that refuses a request."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return msgspec.json.encode({"jsonrpc": "2.0", "id": ident, "error": error}) + b"\n"


def notification(method: str, params: Any) -> bytes:
    """A line that asks for no answer."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}) + b"\n"


def request(ident: int, method: str, params: Any) -> bytes:
    """The line that asks."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}) + b"\n"
