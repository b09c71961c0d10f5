"""Which sessions a piece of work claims: a TOML file that people can read, edit and keep in git. Pure.

```toml
[claim.session-051]
title = "Search by tiles"
phases = ["plan", "build"]
sessions = ["claude-code:143fb411-04a3-4990-aa65-da472225c1b3"]
intervals = [{ session = "codex:01a22abf", since = "2026-09-02T00:15:00Z", until = "2026-09-02T02:22:29Z" }]
receipts = ["a35f6c5f493ae6cf0.yaml"]
```

A session that is claimed brings what it spawned (by links with evidence) unless `alone = true`. An interval claims a session
and what it spawned between two times, `since` included and `until` not. `receipts` are those of `asrd receipts`. Nothing is
ever claimed because it happened at the same time. Changing one claim leaves every other line of the file as it stands.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, cast

import msgspec
from msgspec import Struct

FILE = ".asrd-claims.toml"
"""The file's name at the top of a working tree."""
HEAD = "# Which sessions a piece of work claims: written by `asrd claim`, read by `asrd report`.\n"

_HEADER = re.compile(r"^[ \t]*\[", re.M)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class ClaimsUnreadable(ValueError):
    """Why a claims file cannot be used: where, what should stand there, what does."""

    def __init__(self, key: str, expected: str, found: str) -> None:
        self.key, self.expected, self.found = key, expected, found
        super().__init__(f"{key} should be {expected}, not {found}")


class SessionRef(Struct, frozen=True, order=True):
    """A session by its harness and whole id; `namespace` where the id is only unique there."""

    agent: str
    session_id: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.agent}:{self.session_id}"


class IntervalRef(Struct, frozen=True, order=True):
    """A session and what it spawned in `[since, until)`, RFC 3339 UTC."""

    session: SessionRef
    since: str
    until: str


class Claim(Struct, kw_only=True):
    """What one piece of work claims. `phases`: their names, or how many where only that is known."""

    name: str
    title: str | None = None
    phases: list[str] | int = []
    sessions: list[SessionRef] = []
    intervals: list[IntervalRef] = []
    receipts: list[str] = []
    alone: bool = False

    @property
    def phase_count(self) -> int:
        """How many phases there are."""
        return self.phases if isinstance(self.phases, int) else len(self.phases)


_KEYS = {"title", "phases", "sessions", "intervals", "receipts", "alone"}


def read_claims(text: str) -> dict[str, Claim]:
    """The claims of a file by name. Raises ClaimsUnreadable; unknown keys are refused, so that no typing error is passed over."""
    try:
        whole = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClaimsUnreadable("the file", "TOML", str(error)) from error
    if unknown := sorted(set(whole) - {"claim"}):
        raise ClaimsUnreadable(unknown[0], "a table [claim.NAME]", "another key")
    return {name: _claim(name, given) for name, given in _table(whole.get("claim", {}), "claim").items()}


def _claim(name: str, given: Any) -> Claim:
    where = f"claim.{name}"
    table = _table(given, where)
    if unknown := sorted(set(table) - _KEYS):
        raise ClaimsUnreadable(f"{where}.{unknown[0]}", f"one of {', '.join(sorted(_KEYS))}", "an unknown key")
    claim = Claim(name=name)
    try:
        claim.title = msgspec.convert(table.get("title"), str | None)
        claim.phases = msgspec.convert(table.get("phases", []), list[str] | int)
        claim.receipts = msgspec.convert(table.get("receipts", []), list[str])
        claim.alone = msgspec.convert(table.get("alone", False), bool)
        given_sessions = msgspec.convert(table.get("sessions", []), list[str | dict[str, str]])
        given_intervals = msgspec.convert(table.get("intervals", []), list[dict[str, Any]])
    except msgspec.ValidationError as error:
        raise ClaimsUnreadable(where, "as `asrd claim` writes it", str(error)) from error
    claim.sessions = [_session(one, f"{where}.sessions") for one in given_sessions]
    for one in given_intervals:
        since, until = (_time(one.get(side), f"{where}.intervals.{side}") for side in ("since", "until"))
        claim.intervals.append(IntervalRef(_session(one.get("session"), f"{where}.intervals.session"), since, until))
    return claim


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ClaimsUnreadable(where, "a table", type(value).__name__)
    return cast("dict[str, Any]", value)


def _session(value: Any, where: str) -> SessionRef:
    if isinstance(value, str):
        agent, colon, ident = value.partition(":")
        if colon and agent and ident:
            return SessionRef(agent, ident)
    elif isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        agent, ident, namespace = given.get("agent"), given.get("id"), given.get("namespace", "")
        if isinstance(agent, str) and isinstance(ident, str) and isinstance(namespace, str) and agent and ident:
            return SessionRef(agent, ident, namespace)
    raise ClaimsUnreadable(where, '"harness:id" or { agent, id, namespace }', type(cast("Any", value)).__name__)


def _time(value: Any, where: str) -> str:
    text = value.isoformat() if hasattr(value, "isoformat") else value
    if not isinstance(text, str) or not text:
        raise ClaimsUnreadable(where, "a time", repr(value))
    return text


# ---------------------------------------------------------------- writing


def with_claim(text: str, claim: Claim) -> str:
    """The file with this claim in place of the one of its name, or at its end. All else stays as it is, comments too.

    Raises ClaimsUnreadable when the file is none, or is laid out so that one claim cannot be changed alone.
    """
    before = read_claims(text)
    parts = _blocks(text)
    block = render(claim)
    if claim.name in before:
        wanted = "".join(block if name == claim.name else part for name, part in parts)
    else:
        joined = text if text else HEAD
        wanted = joined.rstrip("\n") + "\n\n" + block
    return _proved(wanted, {**before, claim.name: claim})


def without_claim(text: str, name: str) -> str:
    """The file without a claim; a name that is not there changes nothing. Raises ClaimsUnreadable."""
    before = read_claims(text)
    if name not in before:
        return text
    wanted = "".join(part for found, part in _blocks(text) if found != name)
    return _proved(wanted.rstrip("\n") + "\n", {n: c for n, c in before.items() if n != name})


def _proved(text: str, right: dict[str, Claim]) -> str:
    """The text, which must say exactly these claims. Raises ClaimsUnreadable when it does not."""
    if read_claims(text) != right:
        raise ClaimsUnreadable("the file", "one table [claim.NAME] for each claim", "another layout; edit it by hand")
    return text


def _blocks(text: str) -> list[tuple[str | None, str]]:
    """The text cut before each table header; with the claim's name where the header is one of a claim."""
    starts = [m.start() for m in _HEADER.finditer(text)]
    cuts = [0, *[s for s in starts if s], len(text)]
    parts: list[tuple[str | None, str]] = []
    for start, stop in zip(cuts, cuts[1:], strict=False):
        part = text[start:stop]
        name: str | None = None
        try:
            found = tomllib.loads(part.split("\n", 1)[0])
        except tomllib.TOMLDecodeError:
            found = {}
        if isinstance(found.get("claim"), dict) and len(found["claim"]) == 1:
            name = next(iter(found["claim"]))
        parts.append((name, part))
    return parts


def render(claim: Claim) -> str:
    """One claim as TOML."""
    key = claim.name if _BARE.fullmatch(claim.name) else quoted(claim.name)
    lines = [f"[claim.{key}]"]
    if claim.title is not None:
        lines.append(f"title = {quoted(claim.title)}")
    if isinstance(claim.phases, int):
        lines.append(f"phases = {claim.phases}")
    elif claim.phases:
        lines.append(f"phases = [{', '.join(quoted(p) for p in claim.phases)}]")
    if claim.alone:
        lines.append("alone = true")
    lines += _list("sessions", [_written(s) for s in claim.sessions])
    lines += _list(
        "intervals",
        [
            f"{{ session = {_written(i.session)}, since = {quoted(i.since)}, until = {quoted(i.until)} }}"
            for i in claim.intervals
        ],
    )
    lines += _list("receipts", [quoted(r) for r in claim.receipts])
    return "\n".join(lines) + "\n\n"


def _list(key: str, items: list[str]) -> list[str]:
    """One item a line, so that two people's claims merge line by line."""
    return [f"{key} = [", *[f"  {item}," for item in items], "]"] if items else []


def _written(ref: SessionRef) -> str:
    if not ref.namespace:
        return quoted(str(ref))
    return f"{{ agent = {quoted(ref.agent)}, id = {quoted(ref.session_id)}, namespace = {quoted(ref.namespace)} }}"


def quoted(text: str) -> str:
    """A TOML basic string: JSON's, which is the same but for DEL and what stands outside the BMP."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
