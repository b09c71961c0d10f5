# ruff: noqa: E501
"""A case: a home that a function writes, what a user must be told of it, and how that is asked.

The homes go through `asrd sync`; the answers are those of `usage`, `tree`, `time` and the index.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import zstandard
from msgspec import Struct

from asrd import query
from tests.homes import Recorded, recorded

DAY = "2026-11-30"
S1, S2 = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002"
T1, T2 = "01a22ac8-0000-7000-8000-000000000001", "01a22ac9-0000-7000-8000-000000000002"
MODEL = "claude-sonnet-4-6"
Lines = list[dict[str, Any]]
Told = dict[str, Any]


class Case(Struct):
    """One pitfall: its id in the list, what is in the home, and what must be told.

    `write` None: no home is asked about; `answer` gives what is told, in a folder of its own.
    """

    id: str
    what: str
    right: Told
    write: Callable[[Path], None] | None = None
    ask: Callable[[Recorded], Told] | None = None
    answer: Callable[[Path], Told] | None = None


CASES: dict[str, Case] = {}


def case(
    ident: str, what: str, ask: Callable[[Recorded], Told] | None = None, **right: Any
) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """A home that the function writes, what must be told of it, and how it is asked."""

    def add(write: Callable[[Path], None]) -> Callable[[Path], None]:
        assert ident not in CASES
        CASES[ident] = Case(ident, what, right, write, ask or total)
        return write

    return add


def answered(ident: str, what: str, **right: Any) -> Callable[[Callable[[Path], Told]], Callable[[Path], Told]]:
    """A case that the function itself answers, in a folder of its own; what must come out."""

    def add(answer: Callable[[Path], Told]) -> Callable[[Path], Told]:
        assert ident not in CASES
        CASES[ident] = Case(ident, what, right, answer=answer)
        return answer

    return add


def outcome(one: Case, work: Path) -> Told:
    """What is told of a case, in a folder of its own."""
    if one.answer is not None:
        return one.answer(work)
    assert one.write is not None and one.ask is not None
    (work / "home").mkdir(parents=True)
    one.write(work / "home")
    with recorded(work / "home", work / "store") as found:
        return one.ask(found)


# ---------------------------------------------------------------- what is asked


def total(one: Recorded) -> Told:
    """Requests, input total and output."""
    told = one.usage()
    return {"requests": told["requests"], "input": told["inputTotal"], "output": told["output"]}


def figures(*names: str) -> Callable[[Recorded], Told]:
    """These figures of the total."""
    return lambda one: {n: one.usage().get(n) for n in names}


def by_session(one: Recorded) -> Told:
    """Requests by the session that owns them, with the total."""
    told = query.usage(one.rows)
    owners = {(s["sessionId"] or "none"): s["requests"] for s in told["bySession"]}
    return {"requests": told["total"]["requests"], "owners": owners}


def by_model(one: Recorded) -> Told:
    """Output by model."""
    return {"models": {m["model"]: m["output"] for m in query.usage(one.rows)["byModel"]}}


def by_day(one: Recorded) -> Told:
    """Requests by day."""
    return {"days": {d["day"]: d["requests"] for d in query.usage(one.rows)["byDay"]}}


def rows_of(sql: str) -> Callable[[Recorded], Told]:
    """What the index says."""
    return lambda one: {"rows": [tuple(r) for r in one.db.execute(sql)]}


# ---------------------------------------------------------------- Claude Code


def at(second: float, day: str = DAY) -> str:
    whole = int(second)
    stamp = f"{day}T{10 + whole // 3600:02d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
    return f"{stamp}.{round((second - whole) * 1000):03d}Z"


def usage(input: int = 0, cache: int = 0, output: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "input_tokens": input,
        "cache_read_input_tokens": cache,
        "cache_creation_input_tokens": 0,
        "output_tokens": output,
    } | more


def said(
    ident: str | None, request: str | None, uuid: str, figure: dict[str, Any], second: float = 1, **more: Any
) -> dict[str, Any]:
    """One assistant line of a transcript: `message.id`, `requestId`, `uuid`, usage."""
    content = more.pop("content", [{"type": "text", "text": uuid}])
    message = {
        "type": "message",
        "role": "assistant",
        "model": more.pop("model", MODEL),
        "content": content,
        "usage": figure,
    }
    if ident is not None:
        message["id"] = ident
    line = {
        "type": "assistant", "uuid": uuid, "parentUuid": more.pop("parent", None), "sessionId": more.pop("session", S1),
        "timestamp": more.pop("stamp", at(second)), "cwd": "/w", "version": "2.1.300", "isSidechain": False, "gitBranch": "main",
        "message": message,
    }  # fmt: skip
    return line | ({"requestId": request} if request else {}) | more


def asked(uuid: str, text: str, second: float = 0, **more: Any) -> dict[str, Any]:
    return {
        "type": "user", "uuid": uuid, "parentUuid": None, "sessionId": S1, "timestamp": at(second), "cwd": "/w",
        "version": "2.1.300", "isSidechain": False, "message": {"role": "user", "content": text},
    } | more  # fmt: skip


def claude(home: Path, name: str, lines: Iterable[dict[str, Any] | bytes], project: str = "-w") -> Path:
    """Writes a transcript: `name` is its path below the project's folder, without `.jsonl`."""
    path = home / ".claude" / "projects" / project / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join((o if isinstance(o, bytes) else json.dumps(o).encode()) + b"\n" for o in lines))
    return path


def sub(name: str, session: str = S1) -> str:
    return f"{session}/subagents/agent-{name}"


# ---------------------------------------------------------------- Codex


def tokens(input: int, cached: int, output: int, whole: int | None = None) -> dict[str, int]:
    told = {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, "reasoning_output_tokens": 0}
    return told | {"total_tokens": input + output if whole is None else whole}


def line(kind: str, payload: dict[str, Any], second: float, **more: Any) -> dict[str, Any]:
    return {"timestamp": more.pop("stamp", at(second)), "type": kind, "payload": payload}


def meta(thread: str = T1, second: float = 0, version: str = "0.142.0", **more: Any) -> dict[str, Any]:
    told = {
        "id": thread,
        "timestamp": at(second),
        "cwd": "/w",
        "originator": "codex_exec",
        "cli_version": version,
        "source": "exec",
    }
    return line("session_meta", told | more, second)


def started(turn: str, second: float) -> dict[str, Any]:
    return line("event_msg", {"type": "task_started", "turn_id": turn}, second)


def ended(turn: str, second: float, ms: int | None = None) -> dict[str, Any]:
    told = {"type": "task_complete", "turn_id": turn} | ({"duration_ms": ms} if ms is not None else {})
    return line("event_msg", told, second)


def context(turn: str, second: float, model: str | None = "gpt-5.5", **more: Any) -> dict[str, Any]:
    told = {
        "turn_id": turn,
        "cwd": "/w",
        "approval_policy": "never",
        "sandbox_policy": {"type": "read-only"},
        "summary": "auto",
    }
    return line("turn_context", told | ({"model": model} if model else {}) | more, second)


def count(whole: dict[str, int] | None, last: dict[str, int] | None, second: float, **more: Any) -> dict[str, Any]:
    """A `token_count`: the thread's total so far and the last response; None = `info: null`."""
    info = None if whole is None else {"total_token_usage": whole, "model_context_window": 272000}
    if info is not None and last is not None:
        info["last_token_usage"] = last
    return line("event_msg", {"type": "token_count", "info": info, "rate_limits": None}, second, **more)


def record(response: str, figure: dict[str, int], second: float, thread: str = T1) -> dict[str, Any]:
    told = {"thread_id": thread, "turn_id": "t1", "session_id": thread, "response_id": response, "usage": figure}
    return line("token_usage_record", told, second)


def codex(
    home: Path, lines: Iterable[dict[str, Any]], thread: str = T1, folder: str = "sessions/2026/11/30", **more: Any
) -> Path:
    path = home / ".codex" / folder / f"rollout-2026-11-30T10-00-00-{thread}{more.get('behind', '')}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"".join(json.dumps(o).encode() + b"\n" for o in lines)
    if more.get("zst"):
        path = path.with_name(path.name + ".zst")
        data = zstandard.compress(data)
    path.write_bytes(data)
    return path


def turn(second: float = 1, ident: str = "t1", **more: Any) -> Lines:
    return [started(ident, second), context(ident, second, **more)]


# ---------------------------------------------------------------- Pi


def pi(home: Path, ident: str, entries: Lines, **header: Any) -> Path:
    path = home / ".pi" / "agent" / "sessions" / "--w--" / f"2026-11-30T10-00-00-000Z_{ident}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = {"type": "session", "version": 3, "id": ident, "timestamp": at(0), "cwd": "/w"} | header
    path.write_text("".join(json.dumps(o) + "\n" for o in [head, *entries]))
    return path


def entry(
    ident: str, parent: str | None, second: float, figure: dict[str, Any] | None, response: str | None, **more: Any
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": ident}], "api": "openai-completions",
                               "provider": "p", "model": "m", "stopReason": "stop", "timestamp": 1796030000000 + int(second * 1000)}  # fmt: skip
    if figure is not None:
        message["usage"] = figure
    if response is not None:
        message["responseId"] = response
    return {"type": "message", "id": ident, "parentId": parent, "timestamp": at(second), "message": message | more}


def spent(input: int, output: int, whole: int | None = None) -> dict[str, Any]:
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}
    whole = input + output if whole is None else whole
    return {"input": input, "output": output, "cacheRead": 0, "cacheWrite": 0, "totalTokens": whole, "cost": cost}
