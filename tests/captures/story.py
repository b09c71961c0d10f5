"""The session that constructed captures tell, each in its harness's own form: what was asked, done, answered and paid for.

A check that ends 101, a file that is read and edited, the check again, a commit: two turns, seven responses.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from msgspec import Struct

CWD = "/home/dev/app"
BEFORE = "def add(a, b):\n    return a - b\n"
AFTER = "def add(a, b):\n    return a + b\n"
COMMIT = "3f786850e387550fdab836ed7e6dc881de23001b"
START = 1796015358000
"""When the first prompt was typed, ms since 1970."""


class Call(Struct, frozen=True):
    """A call and its answer. `kind`: run (a command), read, or edit (`old` by `new`)."""

    id: str
    kind: str
    result: str
    command: str = ""
    exit: int = 0


class Response(Struct, frozen=True):
    """What the model said and asked for, with its figures: uncached input, cache read, output."""

    id: str
    text: str
    call: Call | None
    input: int
    cached: int
    output: int
    thinking: str = ""


class Told(Struct, frozen=True):
    """A turn."""

    prompt: str
    responses: tuple[Response, ...]


TURNS = (
    Told(
        "Fix calc.add so that check.py passes. Run check.py first.",
        (
            Response(
                "resp-1",
                "I will run the check first.",
                Call("call_1", "run", "AssertionError: add(2, 3) gave -1\n", "python3 check.py", 101),
                4100,
                0,
                61,
                "The check says what is wrong.",
            ),
            Response("resp-2", "", Call("call_2", "read", BEFORE), 230, 4096, 33),
            Response("resp-3", "It subtracts.", Call("call_3", "edit", ""), 180, 4224, 88),
            Response("resp-4", "", Call("call_4", "run", "ok\n", "python3 check.py", 0), 150, 4352, 29),
            Response("resp-5", "calc.add adds now; check.py passes. 🙂", None, 90, 4480, 41),
        ),
    ),
    Told(
        "Commit it.",
        (
            Response(
                "resp-6",
                "",
                Call("call_5", "run", COMMIT + "\n", "git commit -qam 'Fix add' && git rev-parse HEAD", 0),
                120,
                4608,
                52,
            ),
            Response("resp-7", "Committed.", None, 75, 4736, 12),
        ),
    ),
)

CALLS = tuple(r.call for t in TURNS for r in t.responses if r.call)


def truth() -> dict[str, Any]:
    """What really happened, as `truth.json` of a capture says it."""
    responses = [r for t in TURNS for r in t.responses]
    return {
        "prompts": [t.prompt for t in TURNS],
        "texts": [r.text for r in responses if r.text],
        "calls": [c.id for c in CALLS],
        "exits": {c.id: c.exit for c in CALLS if c.kind == "run"},
        "edits": [["calc.py", digest(BEFORE), digest(AFTER)]],
        "commits": [COMMIT],
        "requests": len(responses),
        "input_total": sum(r.input + r.cached for r in responses),
        "output": sum(r.output for r in responses),
    }


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write(folder: Path, facts: dict[str, Any]) -> None:
    """Writes `truth.json` beside a capture's home."""
    (folder / "truth.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", "utf-8")
