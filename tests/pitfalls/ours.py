# ruff: noqa: E501
"""Miscounts that no list has: times, days, copies of homes, what is recorded late, what is gone. Figures by hand."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asrd import query
from asrd.spanning import receipt
from tests.golden import CAPTURES
from tests.homes import Recorded, environment, recorded
from tests.pitfalls.cases import (
    DAY,
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
    by_session,
    case,
    claude,
    codex,
    context,
    count,
    ended,
    entry,
    meta,
    pi,
    said,
    spent,
    started,
    sub,
    tokens,
    total,
    turn,
    usage,
)
from tests.pitfalls.rules import FIRST, OWN, SPAWN, again

S3, T3 = "33333333-0000-4000-8000-000000000003", "01a22aca-0000-7000-8000-000000000003"


def local_days(zone: str, since: str | None = None, until: str | None = None) -> Callable[[Recorded], Told]:
    """Requests by the days of a timezone."""

    def ask(one: Recorded) -> Told:
        told = query.usage(one.rows, timezone=zone, since=since, until=until)
        return {"days": {d["day"]: d["requests"] for d in told["byDay"]}, "total": told["total"]["requests"]}

    return ask


def at_times(*times: str) -> Callable[[Path], None]:
    def write(home: Path) -> None:
        claude(home, S1, [said(f"msg_{n}", f"req_{n}", f"u{n}", usage(1, 0, 1), stamp=t) for n, t in enumerate(times)])

    return write


AUTUMN = at_times("2026-10-24T21:59:59.999Z", "2026-10-24T22:00:00.000Z", "2026-10-25T00:30:00.000Z", "2026-10-25T01:30:00.000Z",
                  "2026-10-25T22:59:59.999Z", "2026-10-25T23:00:00.000Z")  # fmt: skip
"""Berlin's 25 October has 25 hours: from 22:00 UTC to 23:00 UTC."""

case("dst-autumn", "the day of 25 hours, asked for by days", ask=local_days("Europe/Berlin"),
     days={"2026-10-24": 1, "2026-10-25": 4, "2026-10-26": 1}, total=6)(AUTUMN)  # fmt: skip
case("dst-bounds", "the day of 25 hours, asked for by its bounds", ask=local_days("Europe/Berlin", "2026-10-25", "2026-10-26"),
     days={"2026-10-25": 4}, total=4)(AUTUMN)  # fmt: skip
case("dst-spring", "the day of 23 hours: 28 March 23:00 UTC to 29 March 22:00 UTC", ask=local_days("Europe/Berlin", "2026-03-29", "2026-03-30"),
     days={"2026-03-29": 2}, total=2)(
    at_times("2026-03-28T22:59:59.000Z", "2026-03-28T23:00:00.000Z", "2026-03-29T21:59:59.000Z", "2026-03-29T22:00:00.000Z")
)  # fmt: skip
case("zone-45", "a timezone of quarters of an hour: Kathmandu's day begins at 18:15 UTC", ask=local_days("Asia/Kathmandu", "2026-11-30", "2026-12-01"),
     days={DAY: 2}, total=2)(
    at_times("2026-11-29T18:14:59.999Z", "2026-11-29T18:15:00.000Z", "2026-11-30T18:14:59.999Z", "2026-11-30T18:15:00.000Z")
)  # fmt: skip
case("offset", "times with an offset: 01:00+02:00 is the day before", ask=by_day, days={DAY: 2, "2026-12-01": 1})(
    at_times("2026-12-01T01:00:00.000+02:00", "2026-11-30T20:00:00-03:00", "2026-11-30T22:30:00-03:00")
)
case("no-time", "what is no time has no day; 23:59:60 is the day's last second", ask=by_day, days={None: 1, DAY: 1})(
    at_times("soon", "2026-11-30T23:59:60Z")
)


def nights(one: Recorded) -> Told:
    days = [
        query.time(one.rows, since=a, until=b)["total"]
        for a, b in (("2026-11-30", "2026-12-01"), ("2026-12-01", "2026-12-02"))
    ]
    parts = [
        receipt(one.rows, S1, a, b, None, None)["delta"]["agentSeconds"]
        for a, b in ((None, "2026-12-01"), ("2026-12-01", "2026-12-02"))
    ]
    return {"time": [d["agentSeconds"] for d in days], "turns": [d["turns"] for d in days], "receipts": sum(parts)}


@case(
    "midnight",
    "a turn from 23:50 to 00:10: ten minutes of either day",
    ask=nights,
    time=[600.0, 600.0],
    turns=[1, 1],
    receipts=1200.0,
)
def _(home: Path) -> None:
    early = asked("u0", "hi", timestamp="2026-11-30T23:50:00.000Z")
    claude(home, S1, [early, said("msg_A", "req_A", "u1", usage(1, 0, 1), stamp="2026-12-01T00:10:00.000Z")])


def backwards(one: Recorded) -> Told:
    told = query.time(one.rows)["total"]
    return total(one) | {"agent": told["agentSeconds"], "unavailable": told["unavailable"], "bound": told["lowerBound"]}


@case("clock-back", "a clock that goes back an hour within a turn: its length is unknown, its figures are not", ask=backwards,
      requests=2, input=300, output=50, agent=3.0, unavailable=1, bound=True)  # fmt: skip
def _(home: Path) -> None:
    one, two = tokens(100, 0, 20), tokens(300, 0, 50)
    codex(
        home,
        [
            meta(),
            *turn(3600, FIRST),
            count(one, one, 3601),
            ended(FIRST, 10),
            *turn(20, OWN),
            count(two, tokens(200, 0, 30), 21),
            ended(OWN, 23),
        ],
    )


@case("outlives", "a sub-agent that goes on after its parent: [0,10] and [5,60]", ask=lambda one: {n: query.time(one.rows, ref=T1, tree_of=True)["total"][f"{n}Seconds"] for n in ("agent", "union", "envelope")},
      agent=65.0, union=60.0, envelope=60.0)  # fmt: skip
def _(home: Path) -> None:
    codex(home, [meta(), *turn(0, FIRST), ended(FIRST, 10)])
    codex(home, [meta(T2, 5, source=SPAWN), *turn(5, OWN), ended(OWN, 60)], T2)


@answered(
    "two-roots",
    "a home, and a copy of it under another root that went on",
    requests=2,
    input=300,
    output=50,
    sessions=1,
)
def _(work: Path) -> Told:
    home, store = work / "home", work / "store"
    one, two = tokens(100, 0, 20), tokens(300, 0, 50)
    lines = [meta(), *turn(), count(one, one, 2)]
    codex(home, lines)
    shutil.copytree(home / ".codex", work / "other")
    codex(work / "elsewhere", [*lines, count(two, tokens(200, 0, 30), 3)])
    shutil.copytree(work / "elsewhere" / ".codex", work / "other", dirs_exist_ok=True)
    told: Told = {}
    for env in (
        environment(home, store),
        environment(home, store, CODEX_HOME=str(work / "other")),
        environment(home, store),
    ):
        with recorded(home, store, env) as found:
            told = total(found) | {"sessions": len(found.rows.sessions())}
    return told


@case("backup", "a folder of transcripts copied beside itself", ask=by_session, requests=2, owners={S1: 2})
def _(home: Path) -> None:
    lines = [
        asked("u0", "hi"),
        said("msg_A", "req_A", "u1", usage(3, 0, 6)),
        asked("u2", "on", 5),
        said("msg_B", "req_B", "u3", usage(3, 0, 7), 6),
    ]
    claude(home, S1, lines)
    claude(home, S1, lines[:2], "-w-backup")


@case("same-id", "two harnesses whose sessions have one id", ask=lambda one: {"each": sorted((s["agent"], s["requests"]) for s in query.usage(one.rows)["bySession"])},
      each=[("claude-code", 1), ("codex", 1)])  # fmt: skip
def _(home: Path) -> None:
    one = tokens(100, 0, 20)
    codex(home, [meta(), *turn(), count(one, one, 2)])
    claude(home, T1, [said("msg_A", "req_A", "u1", usage(3, 0, 6), session=T1)])


# ================================================================ recorded late, or gone


@answered(
    "late-parent",
    "a sub-agent that is recorded before its parent, whose history it repeats",
    first={T2: 1},
    then={T1: 1, T2: 1},
    below=[T2],
)
def _(work: Path) -> Told:
    one, more = tokens(100, 0, 20), tokens(150, 0, 30)
    replay = [meta(T1, 10), started(FIRST, 10), context(FIRST, 10), count(one, one, 10.01)]
    told: Told = {}
    steps: list[Callable[[], object]] = [
        lambda: codex(
            home,
            [
                meta(T2, 10, source=SPAWN, forked_from_id=T1),
                *replay,
                *turn(11, OWN),
                count(more, tokens(50, 0, 10), 12),
            ],
            T2,
        ),
        lambda: codex(home, [meta(), *turn(1, FIRST), count(one, one, 2), ended(FIRST, 3)]),
    ]
    home = work / "home"
    for name, step in zip(("first", "then"), steps, strict=True):
        step()
        with recorded(home, work / "store") as found:
            owners = by_session(found)["owners"]
            told[name] = {k: v for k, v in owners.items() if k != "none"}
            told["below"] = [c["sessionId"] for c in query.tree(found.rows, None)["roots"][0]["children"]]
    return told


@case(
    "gone-middle",
    "a fork of a fork whose middle is deleted (Claude Code)",
    ask=by_session,
    requests=3,
    owners={S1: 1, "none": 1, S3: 1},
)
def _(home: Path) -> None:
    a, b = said("msg_A", "req_A", "u1", usage(3, 0, 6)), said("msg_B", "req_B", "u2", usage(3, 0, 7), 5, session=S2)
    claude(home, S1, [asked("u0", "hi"), a])

    def copy(told: dict[str, Any]) -> dict[str, Any]:
        return told | {"sessionId": S3, "forkedFrom": {"sessionId": S2, "messageUuid": told["uuid"]}}

    claude(
        home,
        S3,
        [copy(asked("u0", "hi")), copy(a), copy(b), said("msg_C", "req_C", "u3", usage(3, 0, 8), 9, session=S3)],
    )


@case(
    "gone-middle-pi",
    "the same, of Pi, without ids of responses",
    ask=by_session,
    requests=3,
    owners={"p1": 1, "none": 1, "p3": 1},
)
def _(home: Path) -> None:
    one, two = entry("e1", None, 1, spent(1, 1), None), entry("e2", "e1", 30, spent(2, 2), None)
    first = pi(home, "p1", [one])
    gone = pi(home, "p2", [one, two], parentSession=str(first), timestamp=at(20))
    pi(home, "p3", [one, two, entry("e3", "e2", 90, spent(3, 3), None)], parentSession=str(gone), timestamp=at(60))
    gone.unlink()


@case("gone-middle-codex", "the same, of Codex, whose old rollouts have no ids of responses", ask=lambda one: by_session(one) | total(one),
      requests=3, owners={T1: 1, "none": 1, T3: 1}, input=180, output=35)  # fmt: skip
def _(home: Path) -> None:
    second = "01a22ac9-0001-7000-8000-0000000000bb"
    one, two, three = tokens(100, 0, 20), tokens(150, 0, 30), tokens(180, 0, 35)
    own = [started(FIRST, 1), context(FIRST, 1), count(one, one, 2), ended(FIRST, 3)]
    middle = [started(second, 31), context(second, 31), count(two, tokens(50, 0, 10), 32), ended(second, 33)]
    last = "01a22aca-0001-7000-8000-0000000000cc"
    codex(home, [meta(), *own])

    def stamped(lines: Lines) -> Lines:
        return [told | {"timestamp": at(60)} for told in lines]

    codex(
        home,
        [
            meta(T3, 60, forked_from_id=T2),
            *stamped([meta(T2), meta(), *own, *middle]),
            *turn(61, last),
            count(three, tokens(30, 0, 5), 62),
            ended(last, 63),
        ],
        T3,
    )


@answered(
    "after-receipt", "a response that is stated better after a receipt was made", same=True, parts=[12, 588], whole=600
)
def _(work: Path) -> Told:
    first = [asked("u0", "hi"), said("msg_A", "req_A", "u1", usage(3, 0, 12), 10)]
    made: list[Any] = []
    parts: list[Any] = []

    def ask(one: Recorded) -> Told:
        made.append(receipt(one.rows, S1, None, at(30), None, None))
        parts[:] = [made[-1]["delta"]["output"], receipt(one.rows, S1, at(30), at(90), None, None)["delta"]["output"]]
        return {"whole": one.usage()["output"]}

    told = again(
        work,
        ask,
        lambda h: claude(h, S1, first),
        lambda h: claude(h, S1, [*first, said("msg_A", "req_A", "u2", usage(3, 0, 600), 60)]),
    )
    return {"same": made[0] == made[1], "parts": parts} | told


@answered(
    "opened-first",
    "a response whose figures come a day after it began",
    before=(0, 1, None),
    after=(1, 0, 20),
    days={DAY: 1},
)
def _(work: Path) -> Told:
    one = tokens(100, 0, 20)
    words = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    lines: Lines = [meta(), *turn(), {"timestamp": at(2), "type": "response_item", "payload": words}]
    seen: list[Any] = []

    def ask(found: Recorded) -> Told:
        told = found.usage()
        seen.append((told["requests"], told["unmeasuredRequests"], told["output"]))
        return by_day(found)

    told = again(work, ask, lambda h: codex(h, lines), lambda h: codex(h, [*lines, count(one, one, 3)]))
    return {"before": seen[0], "after": seen[1]} | told


@case(
    "side-by-side",
    "sub-agents of one parent that repeat each other's lines",
    ask=by_session,
    requests=3,
    owners={S1: 1, "a1": 1, "a2": 1},
)
def _(home: Path) -> None:
    a = said("msg_A", "req_A", "u1", usage(3, 0, 6))
    side: dict[str, Any] = {"isSidechain": True}
    one, two = (
        said("msg_1", "req_1", "v1", usage(1, 0, 1), 5, agentId="a1", **side),
        said("msg_2", "req_2", "w1", usage(1, 0, 2), 6, agentId="a2", **side),
    )
    claude(home, S1, [asked("u0", "hi"), a])
    claude(home, sub("a1"), [a | side | {"agentId": "a1"}, one])
    claude(home, sub("a2"), [a | side | {"agentId": "a2"}, two])


@case(
    "fork-of-fork-pi",
    "a fork of a fork of Pi, without ids of responses",
    ask=by_session,
    requests=3,
    owners={"p1": 1, "p2": 1, "p3": 1},
)
def _(home: Path) -> None:
    one, two = entry("e1", None, 1, spent(1, 1), None), entry("e2", "e1", 30, spent(2, 2), None)
    first = pi(home, "p1", [one])
    second = pi(home, "p2", [one, two], parentSession=str(first), timestamp=at(20))
    pi(home, "p3", [one, two, entry("e3", "e2", 90, spent(3, 3), None)], parentSession=str(second), timestamp=at(60))


@case("fork-of-fork-codex", "a fork of a fork of Codex, whose old rollouts have no ids of responses", ask=lambda one: by_session(one) | total(one),
      requests=3, owners={T1: 1, T2: 1, T3: 1}, input=180, output=35)  # fmt: skip
def _(home: Path) -> None:
    second, last = "01a22ac9-0001-7000-8000-0000000000bb", "01a22aca-0001-7000-8000-0000000000cc"
    one, two, three = tokens(100, 0, 20), tokens(150, 0, 30), tokens(180, 0, 35)
    own = [started(FIRST, 1), context(FIRST, 1), count(one, one, 2), ended(FIRST, 3)]
    middle = [started(second, 31), context(second, 31), count(two, tokens(50, 0, 10), 32), ended(second, 33)]

    def stamped(lines: Lines, second: float) -> Lines:
        return [told | {"timestamp": at(second)} for told in lines]

    codex(home, [meta(), *own])
    codex(home, [meta(T2, 30, forked_from_id=T1), *stamped([meta(), *own], 30), *middle], T2)
    codex(
        home,
        [
            meta(T3, 60, forked_from_id=T2),
            *stamped([meta(T2, 30, forked_from_id=T1), meta(), *own, *middle], 60),
            *turn(61, last),
            count(three, tokens(30, 0, 5), 62),
            ended(last, 63),
        ],
        T3,
    )


def worked(one: Recorded) -> Told:
    told = one.rows.work()
    return {
        "turns": sum(w.turns for w in told.values()),
        "calls": sum(w.calls for w in told.values()),
        "failed": sum(w.failed for w in told.values()),
    }


@answered(
    "fork-of-fork-kimi",
    "a fork of a fork of Kimi, whose turns and calls are only numbered",
    first=(8, 2, 6, 1),
    then=(10, 4, 6, 1),
)
def _(work: Path) -> Told:
    """A capture of two turns, forked twice by the rule of its files; each fork has a turn of one response more."""
    home = work / "home"
    shutil.copytree(CAPTURES / "kimi" / "S1" / "home", home)
    told: Told = {}

    def tell(name: str) -> None:
        with recorded(home, work / name) as one:
            told[name] = (one.usage()["requests"], *worked(one).values())

    tell("first")
    (folder,) = (home / ".kimi-code" / "sessions").glob("wd_*/session_*")
    forks = [folder.with_name(name) for name in ("session_fork", "session_fork_of_fork")]
    for origin, new in zip((folder, *forks), forks, strict=False):
        shutil.copytree(origin, new)
        state = json.loads((new / "state.json").read_text()) | {"id": new.name, "forkedFrom": origin.name}
        (new / "state.json").write_text(json.dumps(state))
        with open(new / "agents" / "main" / "wire.jsonl", "a") as file:
            file.write(json.dumps({"type": "forked", "time": 1796014600000}) + "\n")
    for number, new in enumerate(forks):
        step: dict[str, Any] = {"uuid": f"5f0e1b1c-0000-4000-8000-00000000000{number}", "turnId": "0", "step": 1}
        used = {"inputOther": 10, "output": 3, "inputCacheRead": 5, "inputCacheCreation": 2}
        loop = "context.append_loop_event"
        lines: Lines = [
            {"type": "turn.prompt", "input": [{"type": "text", "text": "on"}], "origin": {"kind": "user"}, "turnId": 2},
            {"type": loop, "event": {"type": "step.begin", **step}},
            {"type": "llm.request", "kind": "loop", "model": "kimi-k2", "modelAlias": "m/kimi-k2", "turnStep": "0.1"},
            {"type": "usage.record", "model": "m/kimi-k2", "usage": used, "usageScope": "turn"},
            {"type": loop, "event": {"type": "step.end", "finishReason": "end_turn", "usage": used, **step}},
        ]
        with open(new / "agents" / "main" / "wire.jsonl", "a") as file:
            file.writelines(json.dumps(one | {"time": 1796014700000 + number}) + "\n" for one in lines)
    tell("then")
    return told
