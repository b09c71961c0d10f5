# ruff: noqa: E501
"""Counting rules, by their id, each with a home in which it decides; and what of the list of miscounts needs several steps."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asrd import query
from asrd.convert import convert_path
from asrd.receipts import NotAReceipt, read_receipt
from asrd.records import Inference, Limit, Record, ToolResult, decode
from asrd.report.spending import spending
from asrd.spanning import receipt
from tests.homes import Recorded, recorded
from tests.pitfalls.cases import (
    DAY,
    MODEL,
    S1,
    S2,
    T1,
    T2,
    Lines,
    Told,
    answered,
    asked,
    at,
    by_day,
    by_model,
    by_session,
    case,
    claude,
    codex,
    context,
    count,
    ended,
    entry,
    figures,
    line,
    meta,
    pi,
    record,
    said,
    spent,
    started,
    sub,
    tokens,
    total,
    turn,
    usage,
)

SPAWN = {"subagent": {"thread_spawn": {"parent_thread_id": T1, "depth": 1}}}
FIRST, OWN = "01a22ac8-0001-7000-8000-0000000000aa", "01a22ac9-0001-7000-8000-0000000000aa"


def again(work: Path, ask: Callable[[Recorded], Told], *steps: Callable[[Path], object]) -> Told:
    """What is told of a home that is recorded after each of these steps, each given the home."""
    home, told = work / "home", Told()
    home.mkdir(parents=True)
    for step in steps:
        step(home)
        with recorded(home, work / "store") as one:
            told = ask(one)
    return told


def made(one: Recorded, kind: type[Record]) -> list[Any]:
    """The records of a kind, of all sessions."""
    found: list[Any] = []
    for stored in one.rows.sessions()[::-1]:
        found += [r for text in one.rows.lines(stored, 0) if isinstance(r := decode(text), kind)]
    return found


def tool(ident: str, name: str = "Bash", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": name, "input": given or {"command": "ls"}}


def result(uuid: str, call: str, second: float, **more: Any) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": call, "content": "ok"}]
    return asked(uuid, "", second, message={"role": "user", "content": content}, **more)


# ================================================================ A, B, C, D, E: the rest of the list


@answered(
    "A10",
    "a receipt whose counts are missing is no receipt, and none of 0",
    refused=["assistant", "errors", "model_response_count"],
)
def _(work: Path) -> Told:
    kept = Path(__file__).parents[1] / "receipts"
    refused: list[str] = []
    for name, words in (
        ("a0083f0c8eb083ddb", ("assistant", "errors")),
        ("codex-task-tree-session-120", ("model_response_count",)),
    ):
        text = (kept / f"{name}.yaml").read_text()
        for word in words:
            lines = [one for one in text.splitlines() if not one.strip().startswith(f"{word}:")]
            assert len(lines) < len(text.splitlines())
            (work / "x.yaml").write_text("\n".join(lines))
            try:
                read_receipt("x.yaml", (work / "x.yaml").read_bytes())
            except NotAReceipt:
                refused.append(word)
    return {"refused": refused}


def by_branch(one: Recorded) -> Told:
    return {"branches": {r["branch"]: r["output"] for r in spending(one.rows, by="branch")["rows"]}}


@case(
    "A20",
    "a branch changes within a session: each response is its own branch's",
    ask=by_branch,
    branches={"main": 600, "topic": 7},
)
def _(home: Path) -> None:
    claude(
        home,
        S1,
        [
            said("msg_A", "req_A", "u1", usage(3, 0, 600)),
            said("msg_B", "req_B", "u2", usage(1, 0, 7), 2, gitBranch="topic"),
        ],
    )


def tools(one: Recorded) -> Told:
    told = query.time(one.rows)["total"]
    ran = made(one, ToolResult)
    return {"interval": told["toolSeconds"], "execution": [r.exec.duration_ms if r.exec else None for r in ran]}


@case(
    "A25",
    "a call at 10 s, its result at 70 s: an interval, no execution time",
    ask=tools,
    interval={"execute": 60.0},
    execution=[None],
)
def _(home: Path) -> None:
    claude(
        home,
        S1,
        [
            asked("u0", "hi"),
            said("msg_A", "req_A", "u1", usage(1, 0, 1), 10, content=[tool("toolu_000000000001")]),
            result("u2", "toolu_000000000001", 70),
            said("msg_B", "req_B", "u3", usage(1, 0, 1), 80),
        ],
    )


def everything(home: Path) -> None:
    """Claude Code, Codex and Pi with copies, over midnight."""
    night = "2026-12-01T00:10:00.000Z"
    claude(
        home,
        S1,
        [asked("u0", "hi"), *(said("msg_A", "req_A", f"u{n}", usage(3, 0, out), n) for n, out in ((1, 12), (2, 600)))],
    )
    copied: dict[str, Any] = {"forkedFrom": {"sessionId": S1, "messageUuid": "u2"}, "session": S2}
    claude(
        home,
        S2,
        [
            said("msg_A", "req_A", "u2", usage(3, 0, 600), 2, **copied),
            said("msg_B", "req_B", "w1", usage(1, 0, 1), session=S2, stamp=night),
        ],
    )
    one, two = tokens(100, 0, 20), tokens(300, 0, 50)
    codex(
        home, [meta(), *turn(), count(one, one, 2), count(one, one, 3), count(two, tokens(200, 0, 30), 4, stamp=night)]
    )
    old = [entry("e1", None, 1, spent(1, 1), "r1")]
    pi(home, "p2", [*old, entry("e3", "e1", 9, spent(3, 3), "r3")], parentSession=str(pi(home, "p1", old)))


def all_ways(one: Recorded) -> Told:
    """Requests and output, asked for in every way there is."""
    rows, midnight = one.rows, "2026-12-01"
    whole = query.usage(rows)
    parts = [
        query.usage(rows, since=a, until=b)["total"] for a, b in ((None, at(3)), (at(3), midnight), (midnight, None))
    ]
    told = {name: whole[name] for name in ("bySession", "byModel", "byHarness", "byDay")} | {"windows": parts}
    told |= {
        by: spending(rows, by=by)["rows"]
        for by in ("daily", "weekly", "monthly", "session", "model", "harness", "project", "branch")
    }
    told["explain"] = [
        r["counted"] | {"requests": 1} for r in query.explain(rows, query.Selection(), None)["responses"]
    ]
    return {
        name: (sum(r["requests"] for r in group), sum(r["output"] or 0 for r in group)) for name, group in told.items()
    }


WAYS = (
    "bySession",
    "byModel",
    "byHarness",
    "byDay",
    "windows",
    "daily",
    "weekly",
    "monthly",
    "session",
    "model",
    "harness",
    "project",
    "branch",
    "explain",
)


@case("B14", "by day, by session, in parts of time, opened: one total", ask=all_ways, **dict.fromkeys(WAYS, (6, 655)))
def _(home: Path) -> None:
    everything(home)


@case("B17", "a line with `usage` at its top inside a rollout", requests=1, input=100, output=20)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(), count(one, one, 2), {"timestamp": at(3), "type": "turn.completed", "usage": one}])


@case("B27", "a log that is a link to another one in the home", ask=by_session, requests=2, owners={S1: 1, S2: 1})
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(3, 0, 7))])
    kept = claude(home, S2, [said("msg_B", "req_B", "w1", usage(1, 0, 1), session=S2)], "-kept")
    target = home / ".claude" / "kept" / f"{S2}.jsonl"
    target.parent.mkdir()
    os.symlink(kept.rename(target), home / ".claude" / "projects" / "-w" / f"{S2}.jsonl")


@case("B29", "tokens of Gemini CLI whose total has the cached ones once (100 of which 40 cached, 5 + 2 out, 3 of tools, 110)",
      ask=figures("requests", "input", "cacheRead", "inputTotal", "output"), requests=1, input=63, cacheRead=40, inputTotal=103, output=7)  # fmt: skip
def _(home: Path) -> None:
    chats = home / ".gemini" / "tmp" / "ws" / "chats"
    chats.mkdir(parents=True)
    figure = {"input": 100, "output": 5, "cached": 40, "thoughts": 2, "tool": 3, "total": 110}
    message = {
        "id": "2e9f866a-bed7-468e-bcde-27c6f874eff3",
        "timestamp": at(1),
        "type": "gemini",
        "content": "hi",
        "tokens": figure,
        "model": "g",
    }
    head = {"sessionId": S1, "projectHash": "0" * 64, "startTime": at(0), "lastUpdated": at(0), "kind": "main"}
    (chats / "session-2026-11-30T10-00-11111111.jsonl").write_text(json.dumps(head) + "\n" + json.dumps(message) + "\n")


def alarms(one: Recorded) -> Told:
    told = query.usage(one.rows)
    known = {
        "requests",
        "input",
        "cacheRead",
        "cacheWrite",
        "output",
        "reasoning",
        "inputTotal",
        "unmeasuredRequests",
        "lowerBound",
    }
    return {
        "requests": told["total"]["requests"],
        "cacheRead": told["total"]["cacheRead"],
        "alarms": sorted(set(told["total"]) - known),
    }


@case(
    "C-7",
    "a provider without a cache: twenty requests, no token of them cached, and no alarm",
    ask=alarms,
    requests=20,
    cacheRead=0,
    alarms=[],
)
def _(home: Path) -> None:
    pi(
        home,
        "p1",
        [
            entry(f"e{n}", f"e{n - 1}" if n else None, n, spent(10_000, 5) | {"reasoning": 0}, f"r{n}")
            for n in range(20)
        ],
    )


@case("C-9", "input, cache reads, cache writes and output stay apart", ask=figures("input", "cacheRead", "cacheWrite", "output"),
      input=3, cacheRead=40_000, cacheWrite=500, output=600)  # fmt: skip
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(3, 40_000, 600) | {"cache_creation_input_tokens": 500})])


@case("C-11", "a sub-agent's rollout, packed and archived, below its parent's", ask=lambda one: by_session(one) | {"below": len(query.tree(one.rows, T1)["roots"][0]["children"])},
      requests=2, owners={T1: 1, T2: 1}, below=1)  # fmt: skip
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(1, FIRST), count(one, one, 2)])
    codex(
        home,
        [meta(T2, 10, source=SPAWN), *turn(11, OWN), count(one, one, 12)],
        T2,
        folder="archived_sessions",
        zst=True,
    )


@case("E-2", "a thread that was resumed the next day: totals 100, then 160", ask=lambda one: by_day(one) | {"input": {d["day"]: d["inputTotal"] for d in query.usage(one.rows)["byDay"]}},
      days={"2026-11-30": 1, "2026-12-01": 1}, input={"2026-11-30": 100, "2026-12-01": 60})  # fmt: skip
def _(home: Path) -> None:
    first, second = tokens(100, 0, 0), tokens(160, 0, 0)
    later = {"stamp": "2026-12-01T09:00:00.000Z"}
    codex(
        home,
        [meta(), *turn(1, FIRST), count(first, first, 2), ended(FIRST, 3), count(second, tokens(60, 0, 0), 4, **later)],
    )


@answered("E-3", "a file read in the middle of a line, then one that shrank", whole=(1, 600, 0), shrunk=(2, 607, 0))
def _(work: Path) -> Told:
    text = json.dumps(said("msg_A", "req_A", "u1", usage(3, 0, 600))).encode() + b"\n"
    other = json.dumps(said("msg_B", "req_B", "u2", usage(1, 0, 7), 2)).encode() + b"\n"

    def put(data: bytes) -> Any:
        def write(home: Path) -> None:
            path = home / ".claude" / "projects" / "-w" / f"{S1}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

        return write

    def told(one: Recorded) -> Told:
        return {"is": (one.usage()["requests"], one.usage()["output"], one.rows.totals()["losses"])}

    whole, shrunk = (
        again(work / "a", told, put(text[:200]), put(text)),
        again(work / "b", told, put(text * 2), put(other)),
    )
    return {"whole": whole["is"], "shrunk": shrunk["is"]}


def lengths(one: Recorded) -> Told:
    told = query.time(one.rows)["total"]
    return {name: told[f"{name}Seconds"] for name in ("agent", "union", "tool")}


@case("E-8", "a turn of 100 s, a call of 60 s that has one of 20 s inside, beside it one of 30 s", ask=lengths,
      agent=100.0, union=100.0, tool={"delegate": 60.0, "execute": 20.0})  # fmt: skip
def _(home: Path) -> None:
    ids = [f"toolu_00000000000{n}" for n in range(3)]
    claude(
        home,
        S1,
        [
            asked("u0", "hi"),
            said("msg_A", "req_A", "u1", usage(1, 0, 1), 10, content=[tool(ids[0], "Task", prompt="x")]),
            said("msg_A", "req_A", "u2", usage(1, 0, 1), 30, content=[tool(ids[1])]),
            result("u3", ids[1], 50),
            said("msg_A", "req_A", "u4", usage(1, 0, 1), 60, content=[tool(ids[2])]),
            result("u5", ids[0], 70),
            result("u6", ids[2], 90),
            said("msg_B", "req_B", "u7", usage(1, 0, 1), 100),
        ],
    )


@answered(
    "E-12", "a transcript with forty lines of hooks before its first message, given as a file", requests=1, output=600
)
def _(work: Path) -> Told:
    hooks = [{"type": "progress", "uuid": f"h{n}", "parentUuid": None, "sessionId": S1, "timestamp": at(0), "cwd": "/w", "version": "2.1.300",
              "isSidechain": False, "data": {"type": "hook_progress", "hookEvent": "SessionStart", "hookName": "x", "command": "true"}} for n in range(40)]  # fmt: skip
    path = claude(work, S1, [*hooks, said("msg_A", "req_A", "u1", usage(3, 0, 600))])
    path = path.rename(work / "x.jsonl")
    found = [r for records in convert_path(path).values() for r in records if isinstance(r, Inference)]
    return {"requests": len(found), "output": sum(r.usage.output or 0 for r in found if r.usage)}


@case("E-13", "equal limits without a time in two threads", ask=lambda one: {"limits": [(r.used_percent, r.at) for r in made(one, Limit)]},
      limits=[(42.0, None), (42.0, None)])  # fmt: skip
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    limits = {"primary": {"used_percent": 42.0, "window_minutes": 300, "resets_at": 1796040000}, "secondary": None}
    for thread in (T1, T2):
        told = count(one, one, 2)
        told["payload"]["rate_limits"] = limits
        del told["timestamp"]
        codex(home, [meta(thread), *turn(1, OWN), told, told], thread)


@answered("E-15", "a log that is away for a moment", before=(1, 600), away=(1, 600), after=(2, 607))
def _(work: Path) -> Told:
    lines = [said("msg_A", "req_A", "u1", usage(3, 0, 600)), said("msg_B", "req_B", "u2", usage(1, 0, 7), 2)]
    told: dict[str, tuple[int, int]] = {}
    home = work / "home"
    path = claude(home, S1, lines[:1])
    for name in ("before", "away", "after"):
        if name == "away":
            path.rename(work / "aside")
        if name == "after":
            (work / "aside").rename(path)
            claude(home, S1, lines)
        with recorded(home, work / "store") as one:
            told[name] = (one.usage()["requests"], one.usage()["output"])
    return dict(told)


@case("E-19", "a second prompt without a new session: both runs count", ask=lambda one: total(one) | {"turns": query.time(one.rows)["total"]["turns"]},
      requests=2, input=4, output=607, turns=2)  # fmt: skip
def _(home: Path) -> None:
    claude(
        home,
        S1,
        [
            asked("u0", "hi"),
            said("msg_A", "req_A", "u1", usage(3, 0, 600)),
            asked("u2", "go on", 5),
            said("msg_B", "req_B", "u3", usage(1, 0, 7), 6),
        ],
    )


@case("E-20", "requests that a harness writes to no file are named, not 0", ask=lambda one: {"said": sorted({n["harness"] for n in query.usage(one.rows)["notRecorded"]})},
      said=["claude-code", "codex"])  # fmt: skip
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    claude(home, S1, [asked("u0", "hi"), said("msg_A", "req_A", "u1", usage(3, 0, 600))])
    codex(home, [meta(), *turn(), count(one, one, 2)])


@case(
    "E-21",
    "a summary that says 13 minutes of a turn of 42",
    ask=lambda one: {"agent": query.time(one.rows)["total"]["agentSeconds"]},
    agent=2520.0,
)
def _(home: Path) -> None:
    summary = asked("u2", "", 2520, type="system", subtype="turn_duration", durationMs=780_000)
    del summary["message"]
    claude(home, S1, [asked("u0", "hi"), said("msg_A", "req_A", "u1", usage(3, 0, 600), 2520), summary])


# ================================================================ U: universal rules


@case("U4", "usage nested in a tool's result, in details and in a kept tail", requests=1, input=5, output=5)
def _(home: Path) -> None:
    nested = {"role": "assistant", "usage": spent(99, 99), "responseId": "rx"}
    reply = {"type": "message", "id": "e2", "parentId": "e1", "timestamp": at(2), "message": {"role": "toolResult", "toolCallId": "c1", "toolName": "sub",
             "content": [{"type": "text", "text": "x"}], "details": {"results": [{"messages": [nested]}]}, "isError": False}}  # fmt: skip
    pi(home, "p1", [entry("e1", None, 1, spent(5, 5), "r1"), reply])


@case("U5", "one response says 0, one says nothing", ask=figures("requests", "output", "unmeasuredRequests", "lowerBound"),
      requests=1, output=0, unmeasuredRequests=1, lowerBound=True)  # fmt: skip
def _(home: Path) -> None:
    pi(home, "p1", [entry("e1", None, 1, spent(7, 0), "r1"), entry("e2", "e1", 2, None, "r2")])


@case("U7", "a recorded total of 0 beside 10 and 2", requests=1, input=10, output=2)
def _(home: Path) -> None:
    pi(home, "p1", [entry("e1", None, 1, spent(10, 2, 0), "r1")])


@case("U8", "600 out, of which 400 are reasoning", ask=figures("output", "reasoning"), output=600, reasoning=400)
def _(home: Path) -> None:
    one = tokens(100, 0, 600) | {"reasoning_output_tokens": 400}
    codex(home, [meta(), *turn(), count(one, one, 2)])


@case("U9", "100 of which 80 cached (Codex), 20 and 80 cached (Claude): the same", ask=lambda one: {"each": sorted((h["input"], h["cacheRead"]) for h in query.usage(one.rows)["byHarness"])},
      each=[(20, 80), (20, 80)])  # fmt: skip
def _(home: Path) -> None:
    one = tokens(100, 80, 20)
    codex(home, [meta(), *turn(), count(one, one, 2)])
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(20, 80, 20))])


@case("U10", "an attempt that failed with figures, and the one after it", requests=2, input=200, output=55)
def _(home: Path) -> None:
    pi(
        home,
        "p1",
        [
            entry("e1", None, 1, spent(100, 5), "r1", stopReason="error", errorMessage="overloaded"),
            entry("e2", "e1", 2, spent(100, 50), "r2"),
        ],
    )


@case(
    "U11",
    "a compaction's figures are of one request or two: counted, and told apart",
    ask=figures("requests", "output", "carriers"),
    requests=2,
    output=12,
    carriers=1,
)
def _(home: Path) -> None:
    kept = {"type": "compaction", "id": "c1", "parentId": "e1", "timestamp": at(5), "summary": "s", "firstKeptEntryId": "e1", "tokensBefore": 9, "usage": spent(7, 7)}  # fmt: skip
    pi(home, "p1", [entry("e1", None, 1, spent(5, 5), "r1"), kept])


@case("U12", "one response in three lines, two calls, one prompt", ask=lambda one: {n: query.list_sessions(one.rows, limit=None, harness=None, project=None, since=None)["sessions"][0][n] for n in ("prompts", "turns", "calls")} | {"requests": one.usage()["requests"]},
      prompts=1, turns=1, calls=2, requests=1)  # fmt: skip
def _(home: Path) -> None:
    parts = [[{"type": "text", "text": "x"}], [tool("toolu_000000000001")], [tool("toolu_000000000002")]]
    claude(
        home,
        S1,
        [
            asked("u0", "hi"),
            *(said("msg_A", "req_A", f"u{n}", usage(3, 0, 600), n, content=c) for n, c in enumerate(parts, 1)),
        ],
    )


@case("U17", "a root with a child and a fork: below it is the child", ask=lambda one: {"below": query.tree(one.rows, T1)["roots"][0]["descendants"]["output"], "tree": query.usage(one.rows, ref=T1, tree_of=True)["total"]["output"]},
      below=7, tree=27)  # fmt: skip
def _(home: Path) -> None:
    third = "01a22aca-0000-7000-8000-000000000003"
    codex(home, [meta(), *turn(1, FIRST), count(tokens(100, 0, 20), tokens(100, 0, 20), 2), ended(FIRST, 3)])
    codex(home, [meta(T2, 10, source=SPAWN), *turn(11, OWN), count(tokens(9, 0, 7), tokens(9, 0, 7), 12)], T2)
    codex(
        home,
        [
            meta(third, 20, forked_from_id=T1),
            *turn(21, "01a22aca-0001-7000-8000-0000000000aa"),
            count(tokens(9, 0, 5), tokens(9, 0, 5), 22),
        ],
        third,
    )


@case("U19", "a response at exactly the end of a window is the next one's", ask=lambda one: {"windows": [query.usage(one.rows, since=a, until=b)["total"]["requests"] for a, b in ((at(0), at(100)), (at(100), at(200)))]},
      windows=[1, 2])  # fmt: skip
def _(home: Path) -> None:
    claude(home, S1, [said(f"msg_{n}", f"req_{n}", f"u{n}", usage(1, 0, 1), n) for n in (50, 100, 150)])


@case("U21", "a placeholder model stays as it is, in the breakdown too", ask=by_model, models={"codex-auto-review": 20})
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(model="codex-auto-review"), count(one, one, 2)])


def alone(one: Recorded) -> Told:
    told = {ref: query.usage(one.rows, ref=ref)["total"] for ref in (S1, S2)}
    names = ("requests", "input", "ambiguousRequests", "possibleRequests")
    return {ref: [t.get(n) for n in names] for ref, t in told.items()} | {"all": one.usage()["requests"]}


@case(
    "U16",
    "an id that two unrelated sessions state with other models: asked for alone, either tells of it",
    ask=alone,
    **{S1: [0, None, None, 1], S2: [1, 9, 1, None], "all": 1},
)
def _(home: Path) -> None:
    claude(home, S1, [said("ocgo", None, "u1", usage(3, 0, 7), 1, model="m1")])
    claude(home, S2, [said("ocgo", None, "x1", usage(9, 0, 8), 3000, model="m2", session=S2)])


# ================================================================ C: Claude Code


@case("C7", "a gateway's id in two files that carry one session's id: a copy", requests=1, input=3, output=7)
def _(home: Path) -> None:
    one = said("ocgo", None, "u1", usage(3, 0, 7))
    claude(home, S1, [one])
    claude(home, S2, [one, asked("x", "on", 5, sessionId=S2)])


@case("C11", "a sub-agent that another sub-agent's call started", ask=lambda one: {"below": [c["sessionId"] for c in query.tree(one.rows, "a1")["roots"][0]["children"]], "call": [c["callId"] for c in query.tree(one.rows, "a1")["roots"][0]["children"]]},
      below=["a2"], call=["toolu_000000000009"])  # fmt: skip
def _(home: Path) -> None:
    side: dict[str, Any] = {"isSidechain": True}
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(2, 0, 6))])
    claude(
        home,
        sub("a1"),
        [
            said(
                "msg_1",
                "req_1",
                "v1",
                usage(1, 0, 5),
                2,
                agentId="a1",
                content=[tool("toolu_000000000009", "Agent", prompt="x")],
                **side,
            )
        ],
    )
    claude(home, sub("a2"), [said("msg_2", "req_2", "w1", usage(1, 0, 5), 3, agentId="a2", **side)])
    told = {
        "agentType": "general",
        "description": "d",
        "toolUseId": "toolu_000000000009",
        "parentAgentId": "a1",
        "spawnDepth": 2,
    }
    (home / ".claude" / "projects" / "-w" / f"{sub('a2')}.meta.json").write_text(json.dumps(told))


def boundary(uuid: str, second: float) -> dict[str, Any]:
    return {"type": "system", "subtype": "compact_boundary", "uuid": uuid, "parentUuid": None, "logicalParentUuid": "u1", "sessionId": S1, "timestamp": at(second),
            "cwd": "/w", "version": "2.1.300", "isSidechain": False, "content": "Conversation compacted",
            "compactMetadata": {"trigger": "auto", "preTokens": 100}}  # fmt: skip


@case("C12", "three compactions, two of them by a fork of their own that repeats its session: only the third is unmeasured",
      ask=lambda one: by_session(one) | figures("output", "unmeasuredRequests")(one), requests=4, owners={S1: 2, "acompact-00000001": 1, "acompact-00000002": 1}, output=33, unmeasuredRequests=1)  # fmt: skip
def _(home: Path) -> None:
    a, b = said("msg_A", "req_A", "u1", usage(9, 0, 1)), said("msg_B", "req_B", "u2", usage(9, 0, 2), 30)
    claude(home, S1, [asked("u0", "hi"), a, boundary("b1", 20), b, boundary("b2", 40), boundary("b3", 60)])
    for number, name, copied, second, out in (
        (1, "acompact-00000001", [a], 15, 10),
        (2, "acompact-00000002", [a, boundary("b1", 20), b], 35, 20),
    ):
        side: dict[str, Any] = {"isSidechain": True, "agentId": name}
        claude(
            home,
            sub(name),
            [
                *(c | side for c in copied),
                said(f"msg_S{number}", f"req_S{number}", f"s{number}", usage(90, 0, out), second, **side),
            ],
        )


@case(
    "C13",
    "sub-agent turns between the lines of their parent",
    ask=lambda one: total(one) | {"sessions": len(one.rows.sessions())},
    requests=3,
    input=3,
    output=6,
    sessions=2,
)
def _(home: Path) -> None:
    old: dict[str, Any] = {"version": "1.0.98"}
    claude(
        home,
        S1,
        [
            asked("u0", "hi", **old),
            said("msg_1", "req_1", "u1", usage(1, 0, 1), 1, parent="u0", **old),
            asked("s0", "task", 2, isSidechain=True, **old),
            said("msg_2", "req_2", "s1", usage(1, 0, 2), 3, parent="s0", isSidechain=True, **old),
            said("msg_3", "req_3", "u2", usage(1, 0, 3), 4, parent="u1", **old),
        ],
    )


@case("C17", "an advisor's pass of another model is outside the top level", ask=lambda one: {"models": {m["model"]: m["input"] for m in query.usage(one.rows)["byModel"]}, "input": one.usage()["input"]},
      models={MODEL: 40, "m2": 7}, input=47)  # fmt: skip
def _(home: Path) -> None:
    steps = [
        {"type": "message", "input_tokens": 40, "output_tokens": 5},
        {"type": "advisor_message", "model": "m2", "input_tokens": 7, "output_tokens": 1},
    ]
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(40, 0, 5) | {"iterations": steps})])


@case(
    "C22",
    "no line says how long a model took",
    ask=lambda one: {"least": query.time(one.rows)["total"]["modelSecondsAtLeast"]},
    least=None,
)
def _(home: Path) -> None:
    claude(home, S1, [asked("u0", "hi"), said("msg_A", "req_A", "u1", usage(3, 0, 600), 60)])


# ================================================================ X: Codex


@case("X2", "a response of another thread in a fork's file", ask=by_session, requests=2, owners={T1: 1, T2: 1})
def _(home: Path) -> None:
    one, two = tokens(100, 80, 20), tokens(50, 0, 10)
    codex(home, [meta(version="0.171.0"), *turn(1, FIRST), record("r1", one, 2), ended(FIRST, 3)])
    codex(
        home,
        [
            meta(T2, 10, version="0.171.0", forked_from_id=T1),
            meta(T1, 10),
            record("r1", one, 10.1),
            *turn(11, OWN),
            record("r2", two, 12, T2),
        ],
        T2,
    )


@case("X3", "the last response again in a compaction", requests=1, input=100, output=20)
def _(home: Path) -> None:
    one = tokens(100, 80, 20)
    last = record("r1", one, 2)["payload"]
    codex(
        home,
        [
            meta(version="0.171.0"),
            *turn(),
            record("r1", one, 2),
            line("compacted", {"message": "s", "latest_token_usage_record": last}, 3),
        ],
    )


@case("X5", "running sums of turn and thread beside a response", requests=2, input=25, output=0)
def _(home: Path) -> None:
    lines = [record("r1", tokens(10, 0, 0), 2), record("r2", tokens(15, 0, 0), 3)]
    for told, whole in zip(lines, (10, 25), strict=True):
        told["payload"] |= {"turn_token_usage": tokens(whole, 0, 0), "thread_token_usage": tokens(whole, 0, 0)}
    codex(home, [meta(version="0.171.0"), *turn(), *lines])


@case("X6", "totals 10,000, 25,000, 25,000", requests=2, input=25_000, output=0)
def _(home: Path) -> None:
    first, second = tokens(10_000, 0, 0), tokens(25_000, 0, 0)
    codex(
        home,
        [
            meta(),
            *turn(),
            count(first, first, 2),
            count(second, tokens(15_000, 0, 0), 3),
            count(second, tokens(15_000, 0, 0), 4),
        ],
    )


@case("X13", "totals 100 and 250 alone", requests=2, input=250, output=0)
def _(home: Path) -> None:
    codex(home, [meta(), *turn(), count(tokens(100, 0, 0), None, 2), count(tokens(250, 0, 0), None, 3)])


@case(
    "X15",
    "an old rollout without any figures",
    ask=figures("requests", "input", "output"),
    requests=0,
    input=None,
    output=None,
)
def _(home: Path) -> None:
    said_so = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    codex(home, [meta(version="0.30.0"), *turn(), line("response_item", said_so, 2)])


@case("X16", "the model of the turn at hand", ask=by_model, models={"gpt-5.5": 20, "gpt-5.5-mini": 30})
def _(home: Path) -> None:
    one, two = tokens(100, 0, 20), tokens(200, 0, 50)
    codex(
        home,
        [
            meta(),
            *turn(),
            count(one, one, 2),
            ended("t1", 3),
            started("t2", 4),
            context("t2", 4, "gpt-5.5-mini"),
            count(two, tokens(100, 0, 30), 5),
        ],
    )


@case("X17", "five equal limits are one observation", ask=lambda one: {"limits": len(made(one, Limit))}, limits=1)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    limits = {"primary": {"used_percent": 42.0, "window_minutes": 300, "resets_at": 1796040000}, "secondary": None}
    lines = [count(one, one, 2 + n) for n in range(5)]
    for told in lines:
        told["payload"]["rate_limits"] = limits
    codex(home, [meta(), *turn(), *lines])


@case("X21", "a child by its own field, and a guardian's review", ask=lambda one: {"below": sorted(c["sessionId"] for c in query.tree(one.rows, T1)["roots"][0]["children"]), "tree": query.usage(one.rows, ref=T1, tree_of=True)["total"]["output"]},
      below=[T2, "01a22aca-0000-7000-8000-000000000003"], tree=32)  # fmt: skip
def _(home: Path) -> None:
    third = "01a22aca-0000-7000-8000-000000000003"
    codex(home, [meta(), *turn(1, FIRST), count(tokens(100, 0, 20), tokens(100, 0, 20), 2), ended(FIRST, 3)])
    codex(
        home,
        [
            meta(T2, 10, session_id=T1, parent_thread_id=T1, source=SPAWN),
            *turn(11, OWN),
            count(tokens(9, 0, 7), tokens(9, 0, 7), 12),
        ],
        T2,
    )
    codex(
        home,
        [
            meta(
                third,
                20,
                session_id=T1,
                parent_thread_id=T1,
                thread_source="guardian_review",
                source={"subagent": "review"},
            ),
            *turn(21, "01a22aca-0001-7000-8000-0000000000aa"),
            count(tokens(9, 0, 5), tokens(9, 0, 5), 22),
        ],
        third,
    )


@case("X23", "a child whose own records begin at an ordinal", ask=by_session, requests=2, owners={T1: 1, T2: 1})
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(version="0.171.0"), *turn(1, FIRST), record("r1", one, 2), ended(FIRST, 3)])
    lines = [
        meta(T2, 10, version="0.171.0", source=SPAWN, subagent_history_start_ordinal=4),
        meta(T1, 10),
        *turn(10, FIRST),
        *turn(11, OWN),
        record("r2", one, 12, T2),
    ]
    codex(home, [told | {"ordinal": n} for n, told in enumerate(lines)], T2)


@case("X27", "500 replayed lines within 30 ms of a child's start", ask=lambda one: by_session(one) | {"agent": query.time(one.rows, ref=T2)["total"]["agentSeconds"]},
      requests=251, owners={T1: 250, T2: 1}, agent=4.0)  # fmt: skip
def _(home: Path) -> None:
    def history(second: float, step: float) -> Lines:
        found = [started(FIRST, second), context(FIRST, second)]
        for n in range(1, 251):
            found += [
                count(tokens(n * 10, 0, n), tokens(10, 0, 1), second + n * step),
                line("event_msg", {"type": "agent_message", "message": f"{n}"}, second + n * step),
            ]
        return found

    codex(home, [meta(), *history(1, 1), ended(FIRST, 300)])
    codex(
        home,
        [
            meta(T2, 400, source=SPAWN, forked_from_id=T1),
            meta(T1, 400),
            *history(400, 0.0001),
            *turn(401, OWN),
            count(tokens(2530, 0, 255), tokens(30, 0, 5), 402),
            ended(OWN, 405),
        ],
        T2,
    )


@case(
    "X29",
    "a child of another day, in another folder",
    ask=lambda one: {"below": [c["sessionId"] for c in query.tree(one.rows, T1)["roots"][0]["children"]]},
    below=[T2],
)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(1, FIRST), count(one, one, 2)])
    codex(home, [meta(T2, 10, source=SPAWN), *turn(11, OWN), count(one, one, 12)], T2, folder="sessions/2026/12/02")


@case("X30", "a folder and a name of another day than its lines", ask=by_day, days={DAY: 1})
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(), count(one, one, 2)], folder="sessions/2026/11/29")


@case("X31", "one rollout active, archived and packed", requests=1, input=100, output=20)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    lines = [meta(), *turn(), count(one, one, 2)]
    codex(home, lines)
    codex(home, lines, folder="archived_sessions")
    codex(home, lines, folder="archived_sessions", zst=True)


@answered("X32", "a rollout that was written anew without its first response", requests=2, input=300, output=50)
def _(work: Path) -> Told:
    first = meta(version="0.171.0")
    one, two = record("r1", tokens(100, 0, 20), 2), record("r2", tokens(200, 0, 30), 6)
    return again(
        work,
        total,
        lambda home: codex(home, [first, *turn(), one, *turn(5, "t2"), two]),
        lambda home: codex(home, [first, *turn(5, "t2"), two]),
    )


@case(
    "X34",
    "malformed lines, one before the first",
    ask=lambda one: total(one) | {"losses": one.rows.totals()["losses"]},
    requests=1,
    input=100,
    output=20,
    losses=2,
)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    path = codex(home, [meta(), *turn(), count(one, one, 2)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b'{"ty\n' + b"".join(lines[:2]) + b'{"timestamp"\n' + b"".join(lines[2:]))


def states(one: Recorded) -> Told:
    rows = one.db.execute("SELECT turn_id, status, ended_at IS NOT NULL FROM turn ORDER BY seq")
    return {"turns": [tuple(r) for r in rows], "open": query.time(one.rows)["total"]["openTurns"]}


@case(
    "X35",
    "a task that starts while another is open",
    ask=states,
    turns=[("a", "interrupted", 0), ("b", None, 0)],
    open=1,
)
def _(home: Path) -> None:
    codex(home, [meta(), started("a", 1), context("a", 1), started("b", 5), context("b", 5)])


# ================================================================ P: Pi


@case("P2", "equal entry ids in two files, no response ids, other times", requests=2, input=2, output=2)
def _(home: Path) -> None:
    for ident, second in (("p1", 1), ("p2", 99)):
        pi(home, ident, [entry("1a2b3c4d", None, second, spent(1, 1), None)])


@case("P3", "a fork whose parent's file is gone", ask=by_session, requests=2, owners={"none": 1, "p2": 1})
def _(home: Path) -> None:
    old = [entry("e1", None, 1, spent(1, 1), "r1")]
    first = pi(home, "p1", old)
    pi(home, "p2", [*old, entry("e3", "e1", 90, spent(3, 3), "r3")], parentSession=str(first), timestamp=at(60))
    first.unlink()


@case("P5", "an abandoned branch counts", requests=3, input=6, output=6)
def _(home: Path) -> None:
    pi(
        home,
        "p1",
        [entry(i, p, n, spent(n, n), f"r{i}") for i, p, n in (("e1", None, 1), ("e2", "e1", 2), ("e2b", "e1", 3))],
    )


@case(
    "P13",
    "a torn line that the next load ended",
    ask=lambda one: total(one) | {"losses": one.rows.totals()["losses"]},
    requests=2,
    input=3,
    output=3,
    losses=1,
)
def _(home: Path) -> None:
    path = pi(home, "p1", [entry("e1", None, 1, spent(1, 1), "r1")])
    path.write_text(path.read_text() + '{"type":"mess\n' + json.dumps(entry("e2", "e1", 2, spent(2, 2), "r2")) + "\n")


@case(
    "P15",
    "history that a program put in, with figures of nothing",
    ask=figures("requests", "input", "output"),
    requests=1,
    input=5,
    output=5,
)
def _(home: Path) -> None:
    pi(home, "p1", [entry("e1", None, 1, spent(0, 0), None), entry("e2", "e1", 2, spent(5, 5), "r2")])


# ================================================================ T: time


def time_of(*names: str) -> Callable[[Recorded], Told]:
    return lambda one: {n: query.time(one.rows)["total"][f"{n}Seconds"] for n in names}


@case(
    "T15",
    "eight hours between two turns of a minute",
    ask=time_of("agent", "union", "envelope"),
    agent=120.0,
    union=120.0,
    envelope=28_860.0,
)
def _(home: Path) -> None:
    claude(
        home,
        S1,
        [
            asked("u0", "hi"),
            said("msg_A", "req_A", "u1", usage(3, 0, 6), 60),
            asked("u2", "on", 28_800),
            said("msg_B", "req_B", "u3", usage(1, 0, 7), 28_860),
        ],
    )


@case(
    "T18",
    "two unrelated sessions in one hour",
    ask=time_of("agent", "union", "overlap"),
    agent=7200.0,
    union=3600.0,
    overlap=3600.0,
)
def _(home: Path) -> None:
    claude(home, S1, [asked("u0", "hi"), said("msg_A", "req_A", "u1", usage(3, 0, 6), 3600)])
    claude(home, S2, [asked("w0", "hi", sessionId=S2), said("msg_B", "req_B", "w1", usage(3, 0, 6), 3600, session=S2)])


@case("T10", "a response that began before a cutoff and ended behind it", ask=lambda one: {"parts": [receipt(one.rows, S1, a, b, None, None)["delta"]["output"] for a, b in ((None, at(30)), (at(30), at(90)))]},
      parts=[None, 600])  # fmt: skip
def _(home: Path) -> None:
    claude(home, S1, [asked("u0", "hi"), said("msg_A", "req_A", "u1", usage(3, 0, 600), 60)])


# ================================================================ S: what is read


@answered("S7", "a response seen with 12 out, then, a day later, with 600", before={DAY: 12}, after={"2026-12-01": 600})
def _(work: Path) -> Told:
    first = said("msg_A", "req_A", "u1", usage(3, 0, 12), stamp=f"{DAY}T23:59:59.000Z")
    second = said("msg_A", "req_A", "u2", usage(3, 0, 600), stamp="2026-12-01T00:00:01.000Z")
    told: Told = {}
    for name, lines in (("before", [first]), ("after", [first, second])):
        claude(work / "home", S1, lines)
        with recorded(work / "home", work / "store") as one:
            told[name] = {d["day"]: d["output"] for d in query.usage(one.rows)["byDay"]}
    return told
