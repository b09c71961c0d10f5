"""The receipts of another campaign as the tables it prints itself, in its own units; nothing of ours is in them.

The rules are K1 to K8 and K12: totals are over distinct receipts; what several sessions claim is charged to none of them
and stands in a row of its own with the true number of those who share it; what nobody claims is counted; interval rows
are not added unless that is proved. Hours are rounded as the campaign does it: each receipt to two decimals, then added.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from msgspec import Struct

from asrd.receipts import Chosen, Claimed, Interval, Log, Receipt, in_force, moment
from asrd.report.sheet import Cell, Sheet, Table, hours

MOST = 12
"""How many trees are tried together for a proof."""


class Sum(Struct):
    """Totals over distinct log receipts. `one_off` counts those that say it."""

    count: int = 0
    turns: int = 0
    calls: int = 0
    errors: int = 0
    one_off: int = 0
    hours: Decimal = Decimal(0)

    def cells(self, one_off: bool = True) -> list[Cell]:
        """As the campaign sets it."""
        once: list[Cell] = [self.one_off] if one_off else []
        return [self.count, self.turns, self.calls, self.errors, *once, theirs(self.hours)]

    def json(self) -> dict[str, Any]:
        """As JSON values; hours as decimal text."""
        return {
            "rollups": self.count,
            "turns": self.turns,
            "toolCalls": self.calls,
            "errors": self.errors,
            "oneOffCode": self.one_off,
            "wallHours": str(self.hours),
        }


def summed(receipts: Iterable[Receipt]) -> Sum:
    """The sum over receipts of logs, each once by name (K1)."""
    total = Sum()
    for one in {r.name: r for r in receipts}.values():
        log = one.measured
        if isinstance(log, Log):
            total.count += 1
            total.turns += log.turns
            total.calls += log.calls
            total.errors += log.errors
            total.one_off += log.one_off or 0
            total.hours += rounded(log.wall_seconds)
    return total


def rounded(seconds: float) -> Decimal:
    """Hours of one receipt with two decimals, as the campaign rounds them (of the binary value)."""
    return Decimal(str(round(seconds / 3600, 2)))


def theirs(value: Decimal) -> str:
    """Hours as the campaign prints them: no more decimals than there are; the empty sum is `0 h`."""
    return f"{float(value):,} h" if value else "0 h"


def foreign_sheet(versions: Iterable[Receipt], claimed: Claimed) -> Sheet:
    """The four tables, and what of the versions was left out."""
    chosen = in_force(versions)
    receipts = chosen.receipts
    owners: dict[str, list[str]] = {}
    for session in claimed.sessions.values():
        for name in dict.fromkeys(session.receipts):
            owners.setdefault(name, []).append(session.name)
    logs = {n: r for n, r in receipts.items() if isinstance(r.measured, Log)}
    shared = {n for n in logs if len(owners.get(n, [])) > 1}
    tables: list[Table] = []
    data: dict[str, Any] = {}
    for made, key, value in (
        _rollups(logs, owners),
        _sessions(logs, owners, shared, claimed),
        _intervals(receipts, owners),
        _published(claimed),
        _coverage(receipts, claimed),
        _left_out(chosen),
    ):
        if made is not None:
            tables.append(made)
        data[key] = value
    return Sheet(
        title="Receipts of another campaign",
        lead=[
            "Measured by others, in their units: a turn is a record of an answer, a model response a line of usage. "
            "Nothing here is added to what asrd recorded."
        ],
        tables=tables,
        data={"schema": "asrd.receipts/1", "units": "foreign", **data},
    )


def _rollups(logs: dict[str, Receipt], owners: dict[str, list[str]]) -> tuple[Table, str, Any]:
    by = {
        "claimed by a session": summed(r for n, r in logs.items() if n in owners),
        "claimed by none": summed(r for n, r in logs.items() if n not in owners),
        "measured": summed(logs.values()),
    }
    table = Table(
        title="Logs of Claude Code",
        heads=["Rollups", "count", "turns", "tool calls", "errors", "one-off code", "wall"],
        rows=[[name, *one.cells()] for name, one in by.items()],
        right=[1, 2, 3, 4, 5, 6],
    )
    return table, "rollups", {name: one.json() for name, one in by.items()}


def _sessions(
    logs: dict[str, Receipt], owners: dict[str, list[str]], shared: set[str], claimed: Claimed
) -> tuple[Table, str, Any]:
    rows: list[list[Cell]] = []
    values: list[dict[str, Any]] = []
    for name, session in sorted(claimed.sessions.items()):
        own = [logs[r] for r in session.receipts if r in logs]
        if not own:
            continue
        one = summed(r for r in own if r.name not in shared)
        rows.append([name, session.phases, *one.cells(one_off=False)])
        values.append({"session": name, "title": session.title, "phases": session.phases, **one.json()})
    sharing = sorted({s for n in shared for s in owners[n]})
    one = summed(logs[n] for n in shared)
    if shared:
        rows.append([f"shared by {len(sharing)} sessions", None, *one.cells(one_off=False)])
    table = Table(
        title="Sessions",
        heads=["Session", "Phases", "Rollups", "Turns", "Tool calls", "Errors", "Wall"],
        rows=rows,
        right=[1, 2, 3, 4, 5, 6],
    )
    return table, "sessions", {"own": values, "shared": {"by": sharing, **one.json()}}


# ---------------------------------------------------------------- intervals


def _intervals(receipts: dict[str, Receipt], owners: dict[str, list[str]]) -> tuple[Table, str, Any]:
    trees = {n: r.measured for n, r in receipts.items() if isinstance(r.measured, Interval)}
    order = sorted(trees, key=lambda n: (n not in owners, f"{n}.yaml"))
    rows: list[list[Cell]] = []
    values: list[dict[str, Any]] = []
    inside: dict[str, tuple[str, bool]] = {}
    below = _children(trees)
    for name in order:
        tree = trees[name]
        found = _inside(name, trees, owners, below)
        if found:
            inside[name] = found
        declaring = sorted(owners.get(name, []))
        mark = None if found is None else f"{'inside' if found[1] else 'perhaps inside'} {found[0]}"
        figures = [rounded(s) for s in (tree.agent_seconds, tree.union_seconds, tree.window_seconds)]
        rows.append(
            [
                f"{name}.yaml",
                ", ".join(declaring) or "unattributed",
                tree.responses,
                *[theirs(f) for f in figures],
                tree.lower_bound,
                mark or "",
            ]
        )
        values.append(
            {
                "receipt": name,
                "declaring": declaring,
                "root": tree.root,
                "start": tree.start,
                "end": tree.end,
                "modelResponses": tree.responses,
                "agentSeconds": tree.agent_seconds,
                "instrumentedSeconds": tree.instrumented_seconds,
                "unionSeconds": tree.union_seconds,
                "windowSeconds": tree.window_seconds,
                "lowerBound": tree.lower_bound,
                "live": tree.live,
                "inside": None if found is None else {"receipt": found[0], "proved": found[1]},
            }
        )
    least, most = _additive(trees, {n for n, (_, proved) in inside.items() if proved})
    table = Table(
        title="Intervals of Codex task trees",
        heads=[
            "Receipt",
            "declaring sessions",
            "model responses",
            "agent time",
            "active union",
            "wall window",
            "live lower bound",
            "inside",
        ],  # fmt: skip
        rows=rows,
        right=[2, 3, 4, 5],
        notes=[]
        if not rows
        else [
            "These rows overlap and must not be added. A row with a window inside another's is inside it when both have one root, "
            "or when its root is proved to be a child: what the larger tree had done before is to the token what trees of such "
            "roots had done. One of another root whose figures would fit is perhaps inside: receipts do not name sub-agents.",
            f"Agent time of all, each second once: at least {hours(least)} (windows that cannot overlap), at most {hours(most)}.",
        ],
    )
    additive = {"agentSecondsAtLeast": str(least), "agentSecondsAtMost": str(most)}
    return table, "intervals", {"rows": values, "additive": additive}


def _children(trees: dict[str, Interval]) -> dict[str, set[str]]:
    """Roots that are proved to be in the tree of another root, by that root.

    Of intervals with one start: where what a tree had done before with one model and level is exactly the sum of what some
    other trees had done (responses, input and output tokens, stream seconds), those are the tree's.
    """
    found: dict[str, set[str]] = {}
    for tree in trees.values():
        others = {t.root: t for t in trees.values() if t.root != tree.root and t.start == tree.start}
        for key, total in tree.before.items():
            having = [(root, t.before[key]) for root, t in sorted(others.items()) if key in t.before][:MOST]
            for count in range(1, len(having) + 1):
                for some in itertools.combinations(having, count):
                    added = [sum(row[i] for _, row in some) for i in range(4)]
                    if added[:3] == list(total[:3]) and abs(added[3] - total[3]) < 0.0015:
                        found.setdefault(tree.root, set()).update(root for root, _ in some)
    return {root: children for root, children in found.items() if not any(root in found.get(c, ()) for c in children)}


def _inside(
    name: str, trees: dict[str, Interval], owners: dict[str, list[str]], below: dict[str, set[str]]
) -> tuple[str, bool] | None:
    """The receipt that holds this one, and whether that is proved.

    Proved: the same root or a root that is proved to be below, and a window inside the other's. Not proved: another root,
    a window inside, and figures that fit;
    one that a session declares together with this one is named before others, then the one with the longest window.
    """
    own = trees[name]
    start, end = moment(own.start), moment(own.end)
    proved: list[tuple[float, str]] = []
    fitting: list[tuple[bool, float, str]] = []
    for other, tree in trees.items():
        wider = (tree.window_seconds, other) > (own.window_seconds, name)
        if other == name or not wider or moment(tree.start) > start or moment(tree.end) < end:
            continue
        if tree.root == own.root or own.root in below.get(tree.root, ()):
            proved.append((tree.window_seconds, other))
        elif tree.responses >= own.responses and tree.agent_seconds >= own.agent_seconds:
            together = bool(set(owners.get(other, ())) & set(owners.get(name, ())))
            fitting.append((together, tree.window_seconds, other))
    if proved:
        return max(proved)[1], True
    return (max(fitting)[2], False) if fitting else None


def _additive(trees: dict[str, Interval], inside: set[str]) -> tuple[Decimal, Decimal]:
    """Bounds of the agent seconds of all: over windows that cannot overlap, and over all that are not proved inside."""
    most = sum((Decimal(str(t.agent_seconds)) for n, t in trees.items() if n not in inside), Decimal(0))
    taken: list[Interval] = []
    for _, tree in sorted(trees.items(), key=lambda item: (-item[1].agent_seconds, item[0])):
        start, end = moment(tree.start), moment(tree.end)
        if all(end <= moment(t.start) or start >= moment(t.end) for t in taken):
            taken.append(tree)
    return sum((Decimal(str(t.agent_seconds)) for t in taken), Decimal(0)), most


# ---------------------------------------------------------------- what was published, and coverage


def _published(claimed: Claimed) -> tuple[Table | None, str, Any]:
    """The campaign's total from figures it published by session: shared logs once, not once a session."""
    told = {n: s for n, s in sorted(claimed.sessions.items()) if s.declared is not None}
    if not told:
        return None, "published", None
    sharers: dict[str, list[str]] = {}
    for name, session in told.items():
        for log in session.receipts:
            if log in claimed.shared:
                sharers.setdefault(log, []).append(name)
    naive, own, once = Sum(), Sum(), Sum()
    rows: list[list[Cell]] = []
    for name, session in told.items():
        assert session.declared is not None
        one = Sum()
        _plus(one, session.declared)
        _plus(naive, session.declared)
        for log in session.receipts:
            if log in claimed.shared:
                _plus(one, claimed.shared[log], -1)
        own = _total(own, one)
        rows.append([name, session.phases, *one.cells(one_off=False)[1:]])
    for log in sharers:
        _plus(once, claimed.shared[log])
    total = _total(own, once)
    rows.append([f"shared by {len({s for found in sharers.values() for s in found})} sessions", None,
                 *once.cells(one_off=False)[1:]])  # fmt: skip
    table = Table(
        title="Claude Code, from the figures published by session",
        heads=["Session", "Phases", "Turns", "Tool calls", "Errors", "Wall"],
        rows=rows,
        right=[1, 2, 3, 4, 5],
        foot=["claimed by a session", None, *total.cells(one_off=False)[1:]],
        notes=[
            f"Each log once. Adding what the sessions declare would give {theirs(naive.hours)}: every session that shares "
            "a log declares the whole of it."
        ],
    )

    def figures(one: Sum) -> dict[str, Any]:
        return {k: v for k, v in one.json().items() if k not in ("rollups", "oneOffCode")}

    return table, "published", {"claimed": figures(total), "shared": figures(once), "sumOfDeclared": figures(naive)}


def _plus(total: Sum, figures: Any, sign: int = 1) -> None:
    total.turns += sign * figures.turns
    total.calls += sign * figures.calls
    total.errors += sign * figures.errors
    total.hours += sign * figures.hours


def _total(a: Sum, b: Sum) -> Sum:
    total = Sum()
    _plus(total, a)
    _plus(total, b)
    return total


def _coverage(receipts: dict[str, Receipt], claimed: Claimed) -> tuple[Table | None, str, Any]:
    if not claimed.sessions:
        return None, "coverage", None
    measured = sorted(n for n, s in claimed.sessions.items() if any(r in receipts for r in s.receipts))
    reasons: dict[str, list[str]] = {}
    for name, session in sorted(claimed.sessions.items()):
        if name in measured:
            continue
        if session.receipts:
            why = "the receipts it declares are not here"
        elif session.declared is not None:
            why = "only figures are published, no receipt is named"
        else:
            why = "it declares no receipt"
        reasons.setdefault(why, []).append(name)
    total = max(claimed.total or 0, len(claimed.sessions))
    if total > len(claimed.sessions):
        reasons.setdefault("it declares no receipt", [])
    rows: list[list[Cell]] = [["measured", len(measured), ""]]
    untold = total - len(claimed.sessions)
    for why, names in sorted(reasons.items()):
        count = len(names) + (untold if why == "it declares no receipt" else 0)
        rows.append(["unmeasured", count, why])
    table = Table(
        title="Coverage",
        heads=["Coverage", "sessions", "why"],
        rows=rows,
        right=[1],
        foot=["total", total, ""],
        notes=[
            "A receipt that is declared and not here is no measurement, and a missing measurement is not zero cost."
        ],
    )
    value = {
        "measured": measured,
        "unmeasured": [
            {"why": why, "sessions": names, "count": len(names) + (untold if why == "it declares no receipt" else 0)}
            for why, names in sorted(reasons.items())
        ],
        "total": total,
    }
    return table, "coverage", value


def _left_out(chosen: Chosen) -> tuple[Table | None, str, Any]:
    found = [(r.file, why, r.sha256) for r, why in chosen.left_out]
    table = Table(title="Versions that do not count", heads=["File", "why"], rows=[[f, why] for f, why, _ in found])
    value = [{"file": f, "why": why, "sha256": sha} for f, why, sha in found]
    return (table if found else None), "leftOut", value
