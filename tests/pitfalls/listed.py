# ruff: noqa: E501
"""Confirmed miscounts of other tools, by their id in the list."""

import json
from pathlib import Path
from typing import Any

from asrd import query
from tests.homes import Recorded
from tests.pitfalls.cases import (
    DAY,
    MODEL,
    S1,
    S2,
    T1,
    T2,
    Lines,
    Told,
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
    rows_of,
    said,
    spent,
    started,
    sub,
    tokens,
    total,
    turn,
    usage,
)

# ================================================================ A: one record a line is no request


@case("A1", "one response on 3 lines (3 in, 40,000 cached, 600 out each)", requests=1, input=40_003, output=600)
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", f"u{n}", usage(3, 40_000, 600), n) for n in range(3)])


@case("A2", "two equal token_count and one without info", requests=1, input=100, output=20)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(), count(one, one, 2), count(one, one, 3), count(None, None, 4)])


@case("A3", "the estimate of a compaction (last: total 5,000, all else 0)", requests=1, input=100, output=20)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(), count(one, one, 2), count(one, tokens(0, 0, 0, 5000), 3)])


@case("A4", "a token_usage_record beside its token_count", requests=1, input=100, output=20)
def _(home: Path) -> None:
    one = tokens(100, 80, 20)
    codex(home, [meta(version="0.171.0"), *turn(), record("r1", one, 2), count(one, one, 2)])


@case("A5", "a rollout in archived_sessions, compressed", requests=1, input=100, output=20)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(), count(one, one, 2)], folder="archived_sessions", zst=True)


@case("A6", "one thread in two files (a revert)", requests=2, input=300, output=50)
def _(home: Path) -> None:
    one, two = tokens(100, 0, 20), tokens(200, 0, 30)
    first = meta(version="0.171.0")
    codex(home, [first, *turn(), record("r1", one, 2)])
    codex(home, [first, *turn(5, "t2"), record("r2", two, 6)], behind="_01a22ac9-1111-7000-8000-000000000009")


@case(
    "A7",
    "a sub-agent's own turn whose client time (60 s) is below its interval (300 s)",
    requests=1,
    input=100,
    output=20,
)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": T1, "depth": 1}}}
    own = "01a22ac9-0001-7000-8000-0000000000aa"
    codex(home, [meta(T2, source=source), *turn(1, own), count(one, one, 2), ended(own, 301, 60_000)], T2)


@case("A8", "settings that are applied again after a compaction start no history", requests=2, input=300, output=50)
def _(home: Path) -> None:
    one, two = tokens(100, 0, 20), tokens(200, 0, 30)
    settings = {
        "type": "thread_settings_applied",
        "thread_id": T1,
        "thread_settings": {"model": "gpt-5.5", "cwd": "/w"},
    }
    compacted = line("compacted", {"message": "summary"}, 4)
    codex(home, [meta(version="0.171.0"), line("event_msg", settings, 1), *turn(), record("r1", one, 3), compacted,
                 line("event_msg", settings, 5), record("r2", two, 6)])  # fmt: skip


@case("A9", "no effort is no word", ask=rows_of("SELECT DISTINCT effort FROM inference WHERE counted"), rows=[(None,)])
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(), count(one, one, 2)])


@case(
    "A17", "a token_count in the millisecond in which one task gives way to the next", requests=1, input=100, output=20
)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(
        home,
        [meta(), started("a", 1), context("a", 1), count(one, one, 5), started("b", 5), context("b", 5), ended("b", 9)],
    )


@case(
    "A21", "the branch that a rollout's first line states", ask=rows_of("SELECT branch FROM session"), rows=[("topic",)]
)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(git={"branch": "topic", "commit_hash": "a" * 40}), *turn(), count(one, one, 2)])


def doubts(one: Recorded) -> Told:
    answer = query.tree(one.rows, None)
    return {
        "requests": one.usage()["requests"],
        "roots": len(answer["roots"]),
        "refused": [r["why"] for r in answer["refused"]],
    }


@case("A22", "parents in a circle", ask=doubts, requests=2, roots=1, refused=["a session would come from itself"])
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    for thread, other in ((T1, T2), (T2, T1)):
        source = {"subagent": {"thread_spawn": {"parent_thread_id": other, "depth": 1}}}
        own = f"01a22ace-0001-7000-8000-0000000000{thread[-2:]}"
        codex(home, [meta(thread, source=source), *turn(1, own), count(one, one, 2)], thread)


@case("A23", "a malformed line inside", ask=lambda one: total(one) | {"losses": one.rows.totals()["losses"]},
      requests=2, input=4, output=13, losses=1)  # fmt: skip
def _(home: Path) -> None:
    claude(
        home,
        S1,
        [
            said("msg_A", "req_A", "u1", usage(2, 0, 6)),
            b'{"type":"assis',
            said("msg_B", "req_B", "u2", usage(2, 0, 7), 2),
        ],
    )


@case("A24", "a sub-agent's file carries its parent's session id", ask=by_session, requests=2, owners={S1: 1, "a1": 1})
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(2, 0, 6))])
    claude(home, sub("a1"), [said("msg_S", "req_S", "v1", usage(1, 0, 5), 2, isSidechain=True, agentId="a1")])


# ================================================================ B: what is skipped, merged or moved


@case("B1", "a tool's input with null in it", requests=1, input=3, output=600)
def _(home: Path) -> None:
    odd = [
        {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "Bash",
            "input": {"id": None, "model": None, "deep": {"usage": None}},
        }
    ]
    claude(
        home,
        S1,
        [said("msg_A", "req_A", "u1", usage(3, 0, 12)), said("msg_A", "req_A", "u2", usage(3, 0, 600), 2, content=odd)],
    )


@case(
    "B2", "a side question that replays its parent under another request id", ask=by_session, requests=1, owners={S1: 1}
)
def _(home: Path) -> None:
    claude(home, sub("aside"), [said("msg_A", "req_9", "v1", usage(3, 0, 600), 1, isSidechain=True, agentId="aside")])
    claude(home, S1, [said("msg_A", "req_1", f"u{n}", usage(3, 0, 600), n) for n in range(2)])


def progress(uuid: str, agent: str, message: dict[str, Any], second: float = 3) -> dict[str, Any]:
    return {
        "type": "progress", "uuid": uuid, "parentUuid": None, "sessionId": S1, "timestamp": at(second), "cwd": "/w",
        "version": "2.1.300", "isSidechain": False, "parentToolUseID": "toolu_9",
        "data": {"type": "agent_progress", "agentId": agent, "message": message},
    }  # fmt: skip


NESTED: dict[str, Any] = {"type": "assistant", "uuid": "v1", "timestamp": at(3),
          "message": {"id": "msg_S", "role": "assistant", "model": MODEL, "content": [], "usage": usage(1, 0, 5)}}  # fmt: skip


@case("B3", "a sub-agent that only its parent's progress shows", ask=lambda one: total(one) | by_day(one),
      requests=2, input=3, output=11, days={DAY: 2})  # fmt: skip
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(2, 0, 6)), progress("p1", "a1", NESTED)])


@case("C9", "the same, with the sub-agent's file there", ask=by_session, requests=2, owners={S1: 1, "a1": 1})
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(2, 0, 6)), progress("p1", "a1", NESTED)])
    claude(home, sub("a1"), [said("msg_S", "req_S", "v1", usage(1, 0, 5), 3, isSidechain=True, agentId="a1")])


@case("B4", "no message id, the same line in two files", requests=1, input=3, output=7)
def _(home: Path) -> None:
    claude(home, S1, [said(None, None, "u1", usage(3, 0, 7))])
    claude(home, S2, [said(None, None, "u1", usage(3, 0, 7)), asked("x", "on", 5, sessionId=S2)])


@case(
    "B5",
    "a gateway's id in two unrelated sessions",
    ask=figures("requests", "ambiguousRequests"),
    requests=1,
    ambiguousRequests=1,
)
def _(home: Path) -> None:
    claude(home, S1, [said("ocgo", None, "u1", usage(3, 0, 7), 1, model="m1")])
    claude(home, S2, [said("ocgo", None, "x1", usage(9, 0, 8), 3000, model="m2", session=S2)])


def in_y(one: Recorded) -> Told:
    return {"requests": query.usage(one.rows, project="/y")["total"]["requests"], "all": one.usage()["requests"]}


@case("B6", "a copy in another project, asked for that project", ask=in_y, requests=0, all=1)
def _(home: Path) -> None:
    claude(home, S1, [asked("u0", "hi", cwd="/x"), said("msg_A", "req_A", "u1", usage(3, 0, 7), cwd="/x")], "-x")
    copied: dict[str, Any] = {"cwd": "/y", "forkedFrom": {"sessionId": S1, "messageUuid": "u1"}, "session": S2}
    claude(
        home,
        S2,
        [said("msg_A", "req_A", "u1", usage(3, 0, 7), **copied), asked("y", "on", 9, sessionId=S2, cwd="/y")],
        "-y",
    )


@case(
    "B7",
    "a time with six digits",
    ask=lambda one: total(one) | by_day(one),
    requests=2,
    input=103,
    output=27,
    days={DAY: 2},
)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(3, 0, 7), stamp=f"{DAY}T10:00:00.123456Z")])
    codex(home, [meta(), *turn(), count(one, one, 2, stamp=f"{DAY}T10:00:02.123456Z")])


@case("B8", "a response whose lines lie on both sides of midnight: one request, on the day its last line says",
      ask=lambda one: total(one) | by_day(one), requests=1, input=3, output=600, days={"2026-12-01": 1})  # fmt: skip
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(3, 0, 12), stamp="2026-11-30T23:59:59.000Z"),
                      said("msg_A", "req_A", "u2", usage(3, 0, 600), stamp="2026-12-01T00:00:01.000Z")])  # fmt: skip


@case("B9", "a lost token_count: total 100, then 400 with last 50", ask=figures("inputTotal"), inputTotal=400)
def _(home: Path) -> None:
    codex(
        home,
        [
            meta(),
            *turn(),
            count(tokens(100, 0, 0), tokens(100, 0, 0), 2),
            count(tokens(400, 0, 0), tokens(50, 0, 0), 3),
        ],
    )


@case("B10", "totals alone, with a reset: 100, 160, 40, 70", ask=figures("inputTotal"), inputTotal=230)
def _(home: Path) -> None:
    codex(home, [meta(), *turn(), *(count(tokens(n, 0, 0), None, 2 + i) for i, n in enumerate((100, 160, 40, 70)))])


@case("B11", "a full context: the total is filled up, nothing was used", requests=2, input=130, output=25)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(), count(one, one, 2), count(tokens(0, 0, 0, 200_000), tokens(0, 0, 0, 199_880), 3),
                 count(tokens(30, 0, 5, 200_035), tokens(30, 0, 5), 4)])  # fmt: skip


@case("B12", "a sub-agent's own two events 0.4 s apart, its parent missing", requests=2, input=250, output=0)
def _(home: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": T1, "depth": 1}}}
    own = "01a22ac9-0001-7000-8000-0000000000aa"
    codex(home, [meta(T2, source=source), *turn(1, own), count(tokens(100, 0, 0), tokens(100, 0, 0), 1.1),
                 count(tokens(250, 0, 0), tokens(150, 0, 0), 1.5)], T2)  # fmt: skip


def replay(second: float) -> Lines:
    """A parent's turn as a child's file repeats it, stamped anew."""
    one = tokens(100, 0, 20)
    return [meta(T1, second), started("01a22ac8-0001-7000-8000-0000000000aa", second + 0.001),
            context("01a22ac8-0001-7000-8000-0000000000aa", second + 0.002), count(one, one, second + 0.003)]  # fmt: skip


@case("B13", "a replay of exactly one event of the parent", ask=by_session, requests=2, owners={T1: 1, T2: 1})
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": T1, "depth": 1}}}
    own, first = "01a22ac9-0001-7000-8000-0000000000aa", "01a22ac8-0001-7000-8000-0000000000aa"
    codex(home, [meta(), *turn(1, first), count(one, one, 2), ended(first, 3)])
    codex(home, [meta(T2, 10, source=source, forked_from_id=T1), *replay(10), *turn(11, own),
                 count(tokens(150, 0, 30), tokens(50, 0, 10), 12)], T2)  # fmt: skip


@case("B15", "two sessions with equal times, models and figures", requests=2, input=200, output=40)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    for thread in (T1, T2):
        codex(
            home,
            [meta(thread), *turn(1, f"01a22ace-0001-7000-8000-0000000000{thread[-2:]}"), count(one, one, 2)],
            thread,
        )


@case("B16", "one thread in sessions and in archived_sessions", requests=1, input=100, output=20)
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    for folder in ("sessions/2026/11/30", "archived_sessions"):
        codex(home, [meta(), *turn(), count(one, one, 2)], folder=folder)


@case("B19", "a fork of two copied messages and one of its own", ask=by_session, requests=3, owners={"p1": 2, "p2": 1})
def _(home: Path) -> None:
    old = [entry("e1", None, 1, spent(1, 1), "r1"), entry("e2", "e1", 2, spent(2, 2), "r2")]
    first = pi(home, "p1", old)
    pi(home, "p2", [*old, entry("e3", "e2", 9, spent(3, 3), "r3")], parentSession=str(first))


@case("B20", "a total (20) above its parts (10 in, 0 out) makes no output", requests=1, input=10, output=0)
def _(home: Path) -> None:
    pi(home, "p1", [entry("e1", None, 1, spent(10, 0, 20), "r1")])


@case("B21", "cache writes of 100 of which 60 and 30 are told apart",
      ask=rows_of("SELECT cache_write, cache_write_5m, cache_write_1h FROM inference WHERE counted"), rows=[(100, 60, 30)])  # fmt: skip
def _(home: Path) -> None:
    split = {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 30}
    claude(
        home,
        S1,
        [said("msg_A", "req_A", "u1", usage(1, 0, 1) | {"cache_creation_input_tokens": 100, "cache_creation": split})],
    )


@case("B22", "no model is no model", ask=by_model, models={None: 20})
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), started("t1", 1), context("t1", 1, model=None), count(one, one, 2)])


@case("B23", "a token figure that is text is a diagnostic, not 0", ask=lambda one: total(one) | {"kept": one.rows.sessions()[0].row.natives},
      requests=1, input=2, output=6, kept=1)  # fmt: skip
def _(home: Path) -> None:
    claude(
        home,
        S1,
        [
            said("msg_A", "req_A", "u1", usage(2, 0, 6)),
            said("msg_B", "req_B", "u2", usage() | {"output_tokens": "many"}, 2),
        ],
    )


@case("B25", "a synthetic model's line is no request, in the total or by model", ask=lambda one: total(one) | by_model(one),
      requests=1, input=2, output=6, models={MODEL: 6})  # fmt: skip
def _(home: Path) -> None:
    claude(
        home,
        S1,
        [said("msg_A", "req_A", "u1", usage(2, 0, 6)), said("syn", None, "u2", usage(), 2, model="<synthetic>")],
    )


@case("B26", "a workflow's sub-agent is a child of its session", ask=lambda one: {"below": len(query.tree(one.rows, S1)["roots"][0]["children"])},
      below=1)  # fmt: skip
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(2, 0, 6))])
    claude(
        home,
        f"{S1}/subagents/workflows/wf1/agent-w1",
        [said("msg_S", "req_S", "v1", usage(1, 0, 5), 2, isSidechain=True, agentId="w1")],
    )


def clipped(one: Recorded) -> Told:
    part = query.usage(one.rows, since=at(100), until=at(200))
    return {"requests": part["total"]["requests"], "output": part["total"]["output"]}


@case("B28", "a message of Gemini CLI in a legacy .json beside its .jsonl", requests=1, input=100, output=7)
def _(home: Path) -> None:
    chats = home / ".gemini" / "tmp" / "ws" / "chats"
    chats.mkdir(parents=True)
    figure = {"input": 100, "output": 5, "cached": 40, "thoughts": 2, "tool": 0, "total": 107}
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
    (chats / "session-2026-11-30T10-00-11111111.json").write_text(json.dumps(head | {"messages": [message]}))


@case("B31", "a session's responses before, in and at the end of an interval", ask=clipped, requests=1, output=20)
def _(home: Path) -> None:
    claude(
        home,
        S1,
        [said(f"msg_{n}", f"req_{n}", f"u{n}", usage(1, 0, out), n) for n, out in ((50, 10), (150, 20), (200, 30))],
    )


# ================================================================ C: copies and threads


@case("C-1", "iterations of 10 and 30, top level 40", requests=1, input=40, output=5)
def _(home: Path) -> None:
    steps = [{"type": "message", "input_tokens": n, "output_tokens": 1} for n in (10, 30)]
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(40, 0, 5) | {"iterations": steps})])


@case("C-2", "one token_count twice", requests=1, input=15_000, output=0)
def _(home: Path) -> None:
    one = tokens(15_000, 0, 0)
    codex(home, [meta(), *turn(), count(one, one, 2), count(one, one, 3)])


@case("C-3", "a resumed copy in another file", ask=by_session, requests=2, owners={S1: 1, S2: 1})
def _(home: Path) -> None:
    claude(home, S1, [asked("u0", "hi"), said("msg_A", "req_A", "u1", usage(3, 0, 7))])
    copied: dict[str, Any] = {"forkedFrom": {"sessionId": S1, "messageUuid": "u1"}, "session": S2}
    claude(
        home,
        S2,
        [
            said("msg_A", "req_A", "u1", usage(3, 0, 7), **copied),
            said("msg_B", "req_B", "w1", usage(1, 0, 1), 9, session=S2),
        ],
    )


@case("C-4", "a parent and three sub-agents", ask=lambda one: total(one) | {"tree": query.usage(one.rows, ref=S1, tree_of=True)["total"]["output"]},
      requests=4, input=4, output=10, tree=10)  # fmt: skip
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(1, 0, 1))])
    for n in (2, 3, 4):
        claude(
            home,
            sub(f"a{n}"),
            [said(f"msg_{n}", f"req_{n}", f"v{n}", usage(1, 0, n), n, isSidechain=True, agentId=f"a{n}")],
        )


@case("C-5", "a sub-agent that starts with its parent's lines", ask=by_session, requests=2, owners={S1: 1, "a1": 1})
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u7", usage(3, 0, 7))])
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a1"}
    claude(
        home,
        sub("a1"),
        [
            said("msg_A", "req_9", "u7", usage(3, 0, 7), **side),
            said("msg_S", "req_S", "u20", usage(1, 0, 1), 9, **side),
        ],
    )


@case("C-6", "a file whose first line carries another session's id", ask=by_session, requests=2, owners={S1: 1, S2: 1})
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(3, 0, 7))])
    claude(
        home,
        S2,
        [said("msg_A", "req_A", "u1", usage(3, 0, 7)), said("msg_B", "req_B", "w1", usage(1, 0, 1), 9, session=S2)],
    )


@case("C-10", "a last line that is not finished", ask=lambda one: total(one) | {"losses": one.rows.totals()["losses"]},
      requests=1, input=2, output=6, losses=0)  # fmt: skip
def _(home: Path) -> None:
    path = claude(home, S1, [said("msg_A", "req_A", "u1", usage(2, 0, 6))])
    path.write_bytes(path.read_bytes() + b'{"type":"assistant","mess')


# ================================================================ D: order, days, time


@case("D1", "no request id, an id of a gateway, three blocks", requests=1, input=3, output=7)
def _(home: Path) -> None:
    claude(home, S1, [said("chatcmpl-1", None, f"u{n}", usage(3, 0, 7), n) for n in range(3)])


@case("D2", "the copy's file comes first in the folder", ask=by_session, requests=2, owners={S2: 1, S1: 1})
def _(home: Path) -> None:
    claude(home, S2, [asked("u0", "hi", sessionId=S2), said("msg_A", "req_A", "u1", usage(3, 0, 7), session=S2)])
    copied: dict[str, Any] = {"forkedFrom": {"sessionId": S2, "messageUuid": "u1"}}
    claude(
        home,
        S1,
        [said("msg_A", "req_A", "u1", usage(3, 0, 7), **copied), said("msg_B", "req_B", "w1", usage(1, 0, 1), 9)],
    )


@case("D3", "12 out in one file, 600 in another", requests=1, input=3, output=600)
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(3, 0, 12))])
    claude(home, S2, [said("msg_A", "req_A", "u1", usage(3, 0, 600)), asked("x", "on", 5, sessionId=S2)])


def lengths(one: Recorded) -> Told:
    told = query.time(one.rows)["total"]
    return {name: told[f"{name}Seconds"] for name in ("agent", "union", "overlap")}


@case(
    "D4", "a turn of 60 minutes with a sub-agent's 30 inside", ask=lengths, agent=5400.0, union=3600.0, overlap=1800.0
)
def _(home: Path) -> None:
    codex(home, [meta(), *turn(0), ended("t1", 3600)])
    source = {"subagent": {"thread_spawn": {"parent_thread_id": T1, "depth": 1}}}
    own = "01a22ace-0001-7000-8000-0000000000aa"
    codex(home, [meta(T2, 600, source=source), *turn(600, own), ended(own, 2400)], T2)


@case("D5", "a session across midnight", ask=by_day, days={"2026-11-30": 1, "2026-12-01": 1})
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(1, 0, 1), stamp="2026-11-30T23:50:00.000Z"),
                      said("msg_B", "req_B", "u2", usage(1, 0, 1), stamp="2026-12-01T00:10:00.000Z")])  # fmt: skip


@case("D6", "(10 in, 5 out) and (9 in, 7 out) of one response: one whole record", requests=1, input=9, output=7)
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(10, 0, 5)), said("msg_A", "req_A", "u2", usage(9, 0, 7), 2)])


def narrowed(one: Recorded) -> Told:
    part = query.usage(one.rows, since=at(5))
    return {"owners": {s["sessionId"]: s["requests"] for s in part["bySession"]}}


@case("D7", "an interval that leaves the original out owns no copy", ask=narrowed, owners={S2: 1})
def _(home: Path) -> None:
    claude(home, S1, [asked("u0", "hi"), said("msg_A", "req_A", "u1", usage(3, 0, 7))])
    copied: dict[str, Any] = {"forkedFrom": {"sessionId": S1, "messageUuid": "u1"}, "session": S2}
    claude(
        home,
        S2,
        [
            said("msg_A", "req_A", "u1", usage(3, 0, 7), **copied),
            said("msg_B", "req_B", "w1", usage(1, 0, 1), 9, session=S2),
        ],
    )


@case(
    "D9",
    "a synthetic line without usage",
    ask=figures("requests", "unmeasuredRequests"),
    requests=0,
    unmeasuredRequests=0,
)
def _(home: Path) -> None:
    claude(home, S1, [asked("u0", "hi"), said("syn", None, "u1", usage(), model="<synthetic>")])


# ================================================================ E: cut off, partial, unknown


@case("E-1", "killed before the turn's end", ask=lambda one: total(one) | {"open": query.time(one.rows)["total"]["openTurns"]},
      requests=2, input=300, output=50, open=1)  # fmt: skip
def _(home: Path) -> None:
    one, two = tokens(100, 0, 20), tokens(300, 0, 50)
    codex(home, [meta(), *turn(), count(one, one, 2), count(two, tokens(200, 0, 30), 3)])


@case("E-4", "two models in one turn", ask=by_model, models={"m1": 7, "m2": 9})
def _(home: Path) -> None:
    claude(
        home,
        S1,
        [
            said("msg_A", "req_A", "u1", usage(1, 0, 7), model="m1"),
            said("msg_B", "req_B", "u2", usage(1, 0, 9), 2, model="m2"),
        ],
    )


@case("E-5", "a measured request and one of unknown figures", ask=figures("requests", "unmeasuredRequests", "lowerBound"),
      requests=1, unmeasuredRequests=1, lowerBound=True)  # fmt: skip
def _(home: Path) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None, "sessionId": S1, "timestamp": at(5),
                "cwd": "/w", "version": "2.1.300", "isSidechain": False, "content": "Conversation compacted",
                "compactMetadata": {"trigger": "manual", "preTokens": 100}}  # fmt: skip
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(1, 0, 7)), boundary])


@case(
    "E-6",
    "no recorded duration is none",
    ask=lambda one: {"model": query.time(one.rows)["total"]["modelSecondsAtLeast"]},
    model=None,
)
def _(home: Path) -> None:
    claude(home, S1, [asked("u0", "hi"), said("msg_A", "req_A", "u1", usage(1, 0, 7), 9)])


@case("E-7", "no time is no day", ask=by_day, days={None: 1})
def _(home: Path) -> None:
    one = said("msg_A", "req_A", "u1", usage(1, 0, 7))
    del one["timestamp"]
    claude(home, S1, [one])


@case(
    "E-17",
    "cached input counts once",
    ask=figures("input", "cacheRead", "inputTotal"),
    input=20,
    cacheRead=80,
    inputTotal=100,
)
def _(home: Path) -> None:
    one = tokens(100, 80, 20)
    codex(home, [meta(), *turn(), count(one, one, 2)])


@case("E-16", "input of Claude Code is without its cache", ask=figures("input", "cacheRead"), input=3, cacheRead=40_000)
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(3, 40_000, 600))])


@case(
    "E-18",
    "a thread's total of 100, and a forked child's of 130 with it inside",
    ask=figures("inputTotal"),
    inputTotal=130,
)
def _(home: Path) -> None:
    one, own = tokens(100, 0, 20), "01a22ac9-0001-7000-8000-0000000000aa"
    first = "01a22ac8-0001-7000-8000-0000000000aa"
    source = {"subagent": {"thread_spawn": {"parent_thread_id": T1, "depth": 1}}}
    codex(home, [meta(), *turn(1, first), count(one, one, 2), ended(first, 3)])
    codex(home, [meta(T2, 10, source=source, forked_from_id=T1), *replay(10), *turn(11, own),
                 count(tokens(130, 0, 25), tokens(30, 0, 5), 12)], T2)  # fmt: skip


@case("F1", "blocks that disagree: the largest output, then the last", requests=1, input=4, output=9)
def _(home: Path) -> None:
    claude(home, S1, [said("msg_A", "req_A", "u1", usage(50, 0, 8)), said("msg_A", "req_A", "u2", usage(3, 0, 9), 2),
                      said("msg_A", "req_A", "u3", usage(4, 0, 9), 3)])  # fmt: skip


@case("F2", "equal `last` of two responses, an estimate and a refresh", requests=2, input=200, output=40)
def _(home: Path) -> None:
    one, two = tokens(100, 0, 20), tokens(200, 0, 40)
    codex(
        home,
        [
            meta(),
            *turn(),
            count(one, one, 2),
            count(two, one, 3),
            count(two, one, 4),
            count(two, tokens(0, 0, 0, 5000), 5),
        ],
    )


# ================================================================ the three end to end


@case("claude-trio", "a transcript, its resumed copy and a sub-agent known three ways", ask=by_session,
      requests=3, owners={S1: 1, S2: 1, "a1": 1})  # fmt: skip
def _(home: Path) -> None:
    outs = [said("msg_A", "req_A", f"u{n}", usage(3, 0, out), n) for n, out in ((1, 12), (2, 12), (3, 600))]
    claude(home, S1, [asked("u0", "hi"), *outs, progress("p1", "a1", NESTED, 4)])
    copied = said(
        "msg_A", "req_A", "u3", usage(3, 0, 600), 3, forkedFrom={"sessionId": S1, "messageUuid": "u3"}, session=S2
    )
    claude(home, S2, [copied, said("msg_B", "req_B", "w1", usage(1, 0, 1), 9, session=S2)])
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a1"}
    claude(
        home,
        sub("a1"),
        [
            said("msg_A", "req_9", "u1", usage(3, 0, 12), 1, **side),
            said("msg_S", "req_S", "v1", usage(1, 0, 5), 4, **side),
        ],
    )
    side_car = home / ".claude" / "projects" / "-w" / f"{sub('a1')}.meta.json"
    side_car.write_text(
        json.dumps({"agentType": "general", "description": "d", "toolUseId": "toolu_9", "spawnDepth": 1})
    )


@case("codex-tree", "a root with refreshes, an estimate, a fill and an archived twin; a child with a replay and a record",
      ask=lambda one: by_session(one) | figures("inputTotal")(one), requests=3, owners={T1: 2, T2: 1}, inputTotal=180)  # fmt: skip
def _(home: Path) -> None:
    hundred, own = tokens(100, 0, 20), "01a22ac9-0001-7000-8000-0000000000aa"
    first = "01a22ac8-0001-7000-8000-0000000000aa"
    root = [meta(), *turn(1, first), count(hundred, hundred, 2), count(hundred, hundred, 3), count(None, None, 4),
            count(hundred, tokens(0, 0, 0, 5000), 5), count(tokens(0, 0, 0, 200_000), tokens(0, 0, 0, 199_880), 6),
            count(tokens(30, 0, 5, 200_035), tokens(30, 0, 5), 7)]  # fmt: skip
    codex(home, root)
    codex(home, root, folder="archived_sessions", zst=True)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": T1, "depth": 1}}}

    def settings(thread: str) -> dict[str, Any]:
        told = {
            "type": "thread_settings_applied",
            "thread_id": thread,
            "thread_settings": {"model": "gpt-5.5", "cwd": "/w"},
        }
        return line("event_msg", told, 10.01)

    nine = record("r9", tokens(50, 0, 10), 12, T2)
    codex(home, [meta(T2, 10, version="0.171.0", source=source, forked_from_id=T1), *replay(10), settings(T1), settings(T2),
                 *turn(11, own), nine, count(tokens(150, 0, 30), tokens(50, 0, 10), 12)], T2)  # fmt: skip


@case("pi-fork", "a branch, a compaction that keeps copies, a fork and an export", ask=by_session,
      requests=5, owners={"p1": 4, "p2": 1})  # fmt: skip
def _(home: Path) -> None:
    one, two, other = (
        entry(i, p, n, spent(n, n), f"r{i}") for i, p, n in (("e1", None, 1), ("e2", "e1", 2), ("e2b", "e1", 3))
    )
    kept = {"type": "compaction", "id": "c1", "parentId": "e2", "timestamp": at(5), "summary": "s", "firstKeptEntryId": "e2",
            "tokensBefore": 9, "retainedTail": [two["message"]], "usage": spent(7, 7)}  # fmt: skip
    first = pi(home, "p1", [one, two, other, kept])
    pi(home, "p2", [one, two, entry("e3", "e2", 9, spent(4, 4), "re3")], parentSession=str(first))
