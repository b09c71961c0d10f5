"""The handoff token: what a brief says of the session it was made from, so that the session it starts is linked to it. Pure.

A module of its own because every index entry needs it, and no question should wait for what makes briefs.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

from asrd.recorders.base import StreamKey

TOKEN_LINE = "asrd-handoff: "
"""How the line of a brief begins that names its session."""
_TOKEN = re.compile(r"asrd-handoff: h1-([0-9a-f]{16})-([0-9]{1,12})-([a-z][a-z0-9_]{0,30})-([0-9a-f]{8})(?![0-9a-f])")


def session_digest(key: StreamKey) -> str:
    """What a token names a session by: SHA-256 of agent, namespace and session id, 16 hex digits."""
    return hashlib.sha256(
        f"{key.agent}\0{key.namespace}\0{key.session_id}".encode("utf-8", "surrogatepass")
    ).hexdigest()[:16]


class Token(Struct, frozen=True):
    """The token of a brief: the session it was made from, its last record, and the target. The same work gives the same."""

    session: str
    seq: int
    target: str

    def __str__(self) -> str:
        body = f"h1-{self.session}-{self.seq}-{self.target}"
        return f"{body}-{hashlib.sha256(body.encode()).hexdigest()[:8]}"


def find_token(text: str) -> Token | None:
    """The token of the brief that a text holds: the first one whose check digits are right; None = there is none.

    A text is a prompt, or what was read from a file; tokens that a brief quotes from an earlier one do not match.
    """
    for found in _TOKEN.finditer(text):
        token = Token(found[1], int(found[2]), found[3])
        if str(token).endswith(found[4]):
            return token
    return None


def quiet_tokens(text: str) -> str:
    """The text with the token lines it holds made into ones that `find_token` passes over."""
    return text.replace(TOKEN_LINE, "asrd-handoff (earlier): ")
