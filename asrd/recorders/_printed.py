"""Ids of sessions that a command printed which ran another harness: what links sessions across harnesses (V9).

Local and deterministic: decided from the outer session's own source, before the inner session is known to exist. Three
things must come together, so that a log that is only shown links nothing:

    1. the command line names the harness's program where a program stands (not as an argument, a file or a folder);
    2. a line of the output, or all of it, is a JSON object of the shape in which that program announces its session;
    3. the id stands in that object's own field.

What a wrapper script prints is left to other evidence: its command line names no harness.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec
from msgspec import Struct


class Printed(Struct, frozen=True):
    """A session that an output names: its harness, its id, and the field where the id stands."""

    agent: str
    session_id: str
    field: str


class _Announces(Struct, frozen=True):
    """How a harness's program announces its session. `captured`: seen in a capture, else from its documents."""

    agent: str
    field: str
    fits: Callable[[dict[str, Any]], bool]
    captured: bool = False

    def told(self, found: dict[str, Any]) -> Printed | None:
        ident = found.get(self.field)
        if isinstance(ident, str) and 0 < len(ident) <= 200 and self.fits(found):
            return Printed(self.agent, ident, self.field)
        return None


def _is(*kinds: str) -> Callable[[dict[str, Any]], bool]:
    return lambda found: found.get("type") in kinds


PROGRAMS: dict[str, tuple[_Announces, ...]] = {
    # {"type":"thread.started","thread_id":"01a22ac8-…"}
    "codex": (_Announces("codex", "thread_id", _is("thread.started"), captured=True),),
    # {"type":"system","subtype":"init","session_id":"0361bb7a-…"} of stream-json; {"type":"result",…,"session_id":…} of json
    "claude": (_Announces("claude-code", "session_id", _is("system", "result"), captured=True),),
    # stream-json: {"type":"init","session_id":…}; json: {"session_id":…,"response":…,"stats":…}
    "gemini": (_Announces("gemini", "session_id", lambda f: f.get("type") == "init" or "response" in f),),
    "qwen": (_Announces("qwen", "session_id", _is("system", "result")),),
    # {"type":"step_start","timestamp":…,"sessionID":"ses_…","part":{…}}
    "opencode": (_Announces("opencode", "sessionID", lambda f: isinstance(f.get("type"), str) and "part" in f),),
    # {"type":"session","version":3,"id":"…","timestamp":…,"cwd":…}
    "pi": (_Announces("pi", "id", lambda f: f.get("type") == "session" and "cwd" in f),),
}
"""By the name of the program, as commands call it. Other harnesses print no session id in a JSON of their own."""

_FIELDS = tuple({f'"{a.field}"' for announces in PROGRAMS.values() for a in announces})
_WRAPPERS = r"do|then|else|time|exec|nohup|command|sudo|xargs|npx|bunx|setsid|env|timeout\s+\S+|-\S+"
_BEFORE = r"""(?:^|[;&|\n(`{"'!]|\$\(|(?<!\S)(?:""" + _WRAPPERS + "))"
_COMMAND = re.compile(
    _BEFORE
    + r"""\s*(?:(?:-\S+|[A-Za-z_]\w*=\S*)\s+)*(?:[^\s;&|'"`=]*/)?("""
    + "|".join(PROGRAMS)
    + r""")(?:@[\w.^~-]+)?(?=\s|$|['"])"""
)


_OPENS = re.compile(r"(?m)^[ \t]*[\[{]")


def programs(given: Any) -> list[str]:
    """The programs of harnesses that a tool call's input runs, each once; looked for in all its texts."""
    found: dict[str, None] = {}
    for text in _texts(given):
        for name in PROGRAMS:
            if name in text:
                found.update(dict.fromkeys(_COMMAND.findall(text)))
                break
    return list(found)


def printed(ran: list[str], output: str) -> list[Printed]:
    """The sessions that the output of those programs announces, in order, each once."""
    if not any(field in output for field in _FIELDS):
        return []
    found: dict[Printed, None] = {}
    for data in _objects(output):
        for name in ran:
            for announces in PROGRAMS.get(name, ()):
                if (told := announces.told(data)) is not None:
                    found[told] = None
    return list(found)


def _texts(given: Any) -> Iterator[str]:
    """Every text of an input: a value, or a word of a list, at the top."""
    if isinstance(given, msgspec.Raw):
        try:
            given = msgspec.json.decode(given)
        except (msgspec.MsgspecError, RecursionError):
            return
    for value in cast("dict[str, Any]", given).values() if isinstance(given, dict) else (given,):
        if isinstance(value, msgspec.Raw):
            yield from _texts(value)
        elif isinstance(value, str):
            yield value
        elif isinstance(value, list):
            words = [w for w in cast("list[Any]", value) if isinstance(w, str)]
            yield " ".join(words[:1] + [f"'{w}'" if " " in w else w for w in words[1:]])


def _objects(output: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of an output: those of its lines, or all of it (an object, or a list of them)."""
    some = False
    for line in output.splitlines():
        text = line.strip()
        if text.startswith("{") and any(field in text for field in _FIELDS):
            data = _decoded(text)
            if isinstance(data, dict):
                some = True
                yield cast("dict[str, Any]", data)
    begin = None if some else _OPENS.search(output)
    if begin is None:
        return
    whole = _decoded(output[begin.end() - 1 :].strip())
    for data in cast("list[Any]", whole) if isinstance(whole, list) else (whole,):
        if isinstance(data, dict):
            yield cast("dict[str, Any]", data)


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return None
