"""What pieces of work cost: sessions by the claims on them, and the intervals that are claimed. Pure.

A rollup is one recorded session (a sub-agent is one of its own); a stream that only sees another recorded session is none.
A claim covers the sessions it names and what they spawned, by links with evidence; nothing is ever attributed because it
happened at the same time.

Invariants
    - Every total is over distinct sessions (K1). What several claims cover is charged to none of them: it stands in a row
      of its own, which says how many claims share it (K2, K12); what no claim covers is counted (K3).
    - claimed = the rows of all claims + the shared row; measured = claimed + claimed by none.
    - Wall is from the first to the last record of a session, idle time included (T15). Seconds are added, and rounded once.
    - Intervals are half open and clipped, and may overlap: an interval inside another is marked, and one figure over all of
      them has each session's time and each response once (K5).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec import Struct

from asrd.claims import Claim, IntervalRef, SessionRef
from asrd.lineage import Tree
from asrd.query import Rows, Selection, Stored, Sums, Timed, Window, bound
from asrd.report.sheet import Cell, Sheet, Table, hours
from asrd.timing import Interval, Took, Turn, clipped, measure, merged, micros, spent, windows_of


class Worked(Struct):
    """What one session did, each thing once: turns, tool calls, those that failed, those that are one-off code."""

    turns: int = 0
    calls: int = 0
    failed: int = 0
    one_off: int = 0


class WorkRows(Rows, Protocol):
    """What this module asks of an index besides what all queries do."""

    def work(self) -> dict[int | None, Worked]:
        """What each session did, by its number; None = the owner is not recorded."""
        ...


class Tally(Struct):
    """Totals over distinct sessions; `wall` in microseconds."""

    rollups: int = 0
    requests: int = 0
    turns: int = 0
    calls: int = 0
    errors: int = 0
    one_off: int = 0
    wall: int = 0
    unmeasured: int = 0
    open_turns: int = 0
    """Sessions whose last turn is not recorded to have ended: at work, cut off, or of a harness that says no ends."""
    input_total: int | None = None
    output: int | None = None
    bounds: set[str] = set()

    def add(self, other: Tally) -> None:
        """Adds the totals of other sessions."""
        for name in ("rollups", "requests", "turns", "calls", "errors", "one_off", "wall", "unmeasured", "open_turns"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("input_total", "output"):
            mine, more = getattr(self, name), getattr(other, name)
            setattr(self, name, mine if more is None else (mine or 0) + more)
        self.bounds = self.bounds | other.bounds

    def json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "rollups": self.rollups,
            "requests": self.requests,
            "unmeasuredRequests": self.unmeasured,
            "turns": self.turns,
            "toolCalls": self.calls,
            "errors": self.errors,
            "oneOffCode": self.one_off,
            "wallSeconds": self.wall / 1_000_000,
            "inputTotal": self.input_total,
            "output": self.output,
            "openSessions": self.open_turns,
            "lowerBound": bool(self.bounds) or self.unmeasured > 0,
            "lowerBoundReasons": sorted(self.bounds),
        }


class _Covered(Struct):
    """A claim with the sessions it covers."""

    claim: Claim
    sessions: set[int]
    missing: list[SessionRef]


class _Store(Struct):
    """What of the store a report needs."""

    stored: dict[int, Stored]
    by_key: dict[tuple[str, str], list[Stored]]
    tree: Tree
    tallies: dict[int, Tally]
    nobody: Tally
    """What counts and whose session is not recorded."""

    def find(self, ref: SessionRef) -> int | None:
        """The number of a session; of one that only sees another, the other's. None = not recorded."""
        found = self.by_key.get((ref.agent, ref.session_id), [])
        if ref.namespace or len(found) > 1:
            found = [s for s in found if s.row.namespace == ref.namespace]
        if len(found) != 1:
            return None
        return found[0].row.observed or found[0].number

    def covered(self, number: int, alone: bool) -> set[int]:
        """A session and what it spawned; not the streams that only see another of them."""
        found = {number} if alone else {number} | self.tree.descendants(number)
        return found & set(self.tallies)


def report(rows: WorkRows, claims: Iterable[Claim]) -> dict[str, Any]:
    """`report`: the answer; `work_sheet` makes its tables."""
    ordered = sorted(claims, key=lambda c: c.name)
    store = _store(rows)
    covered = [_cover(store, c) for c in ordered]
    claimants: dict[int, list[str]] = {}
    for one in covered:
        for number in one.sessions:
            claimants.setdefault(number, []).append(one.claim.name)
    shared = {n for n, names in claimants.items() if len(names) > 1}
    claimed, none = Tally(), Tally()
    for number, tally in store.tallies.items():
        (claimed if number in claimants else none).add(tally)
    none.add(store.nobody)
    measured = Tally()
    measured.add(claimed)
    measured.add(none)
    intervals = _intervals(rows, store, ordered)
    return {
        "schema": "asrd.report/1",
        "rollups": {"claimed": claimed.json(), "unclaimed": none.json(), "measured": measured.json()},
        "claims": [
            {
                "name": one.claim.name,
                "title": one.claim.title,
                "phases": one.claim.phase_count,
                **_sum(store, one.sessions - shared).json(),
                "sharedRollups": len(one.sessions & shared),
                "sessions": [_named(store.stored[n]) for n in sorted(one.sessions)],
                "notRecorded": [_ref(r) for r in one.missing],
            }
            for one in covered
            if one.claim.sessions
        ],
        "shared": {
            **_sum(store, shared).json(),
            "by": sorted({name for n in shared for name in claimants[n]}),
            "sessions": [{**_named(store.stored[n]), "claims": sorted(claimants[n])} for n in sorted(shared)],
        },
        "unclaimed": [_named(store.stored[n]) for n in sorted(set(store.tallies) - set(claimants))],
        "intervals": intervals,
        "coverage": _coverage(covered, intervals),
    }


def _store(rows: WorkRows) -> _Store:
    sessions = rows.sessions()
    links = rows.links(None)
    by_key: dict[tuple[str, str], list[Stored]] = {}
    for one in sessions:
        by_key.setdefault((one.row.agent, one.row.session_id), []).append(one)
    sums = dict(rows.usage(Selection(), "session"))
    worked = rows.work()
    tallies = {
        s.number: _tally(sums.get(s.number, Sums()), worked.get(s.number, Worked()), s)
        for s in sessions
        if s.row.observed is None
    }
    nobody = _tally(sums.get(None, Sums()), worked.get(None, Worked()), None)
    return _Store({s.number: s for s in sessions}, by_key, Tree(links.edges(), links.nodes), tallies, nobody)


def _tally(sums: Sums, worked: Worked, stored: Stored | None) -> Tally:
    told = [n for n in (sums.input, sums.cache_read, sums.cache_write) if n is not None]
    tally = Tally(
        rollups=int(stored is not None),
        requests=sums.requests,
        turns=worked.turns,
        calls=worked.calls,
        errors=worked.failed,
        one_off=worked.one_off,
        unmeasured=sums.unmeasured,
        input_total=sum(told) if told else None,
        output=sums.output,
    )
    if stored is not None:
        row = stored.row
        start, end = micros(row.first_at), micros(row.last_at)
        tally.wall = max(0, end - start) if start is not None and end is not None else 0
        tally.bounds = {row.lower_bound} if row.lower_bound else set()
        tally.open_turns = int(row.open_turn is not None and not row.ended)
    return tally


def _cover(store: _Store, claim: Claim) -> _Covered:
    found: set[int] = set()
    missing: list[SessionRef] = []
    for ref in claim.sessions:
        number = store.find(ref)
        if number is None:
            missing.append(ref)
        else:
            found |= store.covered(number, claim.alone)
    return _Covered(claim, found, missing)


def _sum(store: _Store, numbers: Iterable[int]) -> Tally:
    total = Tally()
    for number in numbers:
        total.add(store.tallies[number])
    return total


def _named(stored: Stored) -> dict[str, Any]:
    row = stored.row
    return {"agent": row.agent, "sessionId": row.session_id, "namespace": row.namespace or None}


def _ref(ref: SessionRef) -> dict[str, Any]:
    return {"agent": ref.agent, "sessionId": ref.session_id, "namespace": ref.namespace or None}


# ---------------------------------------------------------------- intervals


class _Row(Struct):
    """One claimed interval: whose, of which sessions, and their windows in it."""

    ref: IntervalRef
    claims: list[str]
    members: set[int]
    since: str
    until: str
    windows: dict[int, list[Interval]]
    turns: list[Window]
    took: list[Timed]


def _intervals(rows: WorkRows, store: _Store, claims: list[Claim]) -> dict[str, Any]:
    declared: dict[IntervalRef, list[str]] = {}
    for claim in claims:
        for ref in claim.intervals:
            declared.setdefault(ref, []).append(claim.name)
    made: list[_Row] = []
    missing: list[dict[str, Any]] = []
    for ref, names in sorted(declared.items(), key=lambda item: (item[0].since, item[0].until, item[0])):
        number = store.find(ref.session)
        if number is None:
            missing.append({"claims": sorted(set(names)), **_ref(ref.session), "since": ref.since, "until": ref.until})
            continue
        since, until = bound(ref.since) or "", bound(ref.until) or ""
        members = store.covered(number, alone=False)
        selection = Selection(since=since, until=until, owners=sorted(members))
        turns, took = rows.windows(selection), rows.timed(selection)
        windows, _, _ = windows_of(_turns(turns))
        low, high = micros(since), micros(until)
        inside = {s: merged(clipped(w, low, high)) for s, w in windows.items()}
        made.append(_Row(ref, sorted(set(names)), members, since, until, inside, turns, took))
    taken: dict[int, list[Interval]] = {}
    values: list[dict[str, Any]] = []
    for row in sorted(made, key=lambda r: (r.since, -_length(r), r.ref)):
        adds = 0
        for session, windows in row.windows.items():
            before = taken.get(session, [])
            taken[session] = merged([*before, *windows])
            adds += measure(taken[session]) - measure(before)
        values.append(_interval(rows, store, row, made, adds))
    total = sum(measure(w) for w in taken.values())
    union = measure(w for one in taken.values() for w in one)
    return {
        "rows": values,
        "additive": {
            "agentSeconds": total / 1_000_000,
            "unionSeconds": union / 1_000_000,
            "requests": _requests_once(rows, made),
        },
        "notRecorded": missing,
    }


def _turns(found: Iterable[Window]) -> list[Turn]:
    return [Turn(w.session, w.started_at, w.ended_at, w.last_at) for w in found]


def _length(row: _Row) -> int:
    return (micros(row.until) or 0) - (micros(row.since) or 0)


def _interval(rows: WorkRows, store: _Store, row: _Row, others: list[_Row], adds: int) -> dict[str, Any]:
    took = [Took(t.session, t.kind, t.started_at, t.ended_at) for t in row.took]
    time = spent(_turns(row.turns), took, row.since, row.until)
    sums = Sums()
    for _, one in rows.usage(Selection(since=row.since, until=row.until, owners=sorted(row.members)), None):
        sums.add(one)
    limit = micros(row.until) or 0
    live = {
        w.session for w in row.turns if w.ended_at is None and (micros(w.last_at) or micros(w.started_at) or 0) <= limit
    }
    bounds = {reason for n in row.members for reason in store.tallies[n].bounds}
    bounds |= {"a turn is not recorded to have ended in it"} if live else set()
    return {
        "claims": row.claims,
        **_ref(row.ref.session),
        "since": row.ref.since,
        "until": row.ref.until,
        "sessions": len(row.members),
        "requests": sums.requests,
        "unmeasuredRequests": sums.unmeasured,
        "agentSeconds": time.agent / 1_000_000,
        "unionSeconds": time.union / 1_000_000,
        "wallSeconds": (time.wall or 0) / 1_000_000,
        "instrumentedSeconds": time.instrumented / 1_000_000,
        "lowerBound": bool(bounds) or sums.unmeasured > 0,
        "lowerBoundReasons": sorted(bounds),
        "liveSessions": len(live),
        "addsSeconds": adds / 1_000_000,
        "inside": [_place(o) for o in others if o is not row and _holds(o, row)],
    }


def _place(row: _Row) -> dict[str, Any]:
    return {"claims": row.claims, **_ref(row.ref.session), "since": row.ref.since, "until": row.ref.until}


def _holds(big: _Row, small: _Row) -> bool:
    """Whether an interval holds another: all its sessions, and all its time."""
    starts, ends = micros(big.since) or 0, micros(big.until) or 0
    return small.members <= big.members and starts <= (micros(small.since) or 0) and (micros(small.until) or 0) <= ends


def _requests_once(rows: WorkRows, made: list[_Row]) -> int:
    """The responses in any of the intervals, each once: by sessions that are claimed for the same times."""
    times: dict[int, list[tuple[str, str]]] = {}
    for row in made:
        for member in row.members:
            times.setdefault(member, []).append((row.since, row.until))
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for member, spans in times.items():
        groups.setdefault(_joined(spans), []).append(member)
    total = 0
    for spans, members in groups.items():
        for since, until in spans:
            for _, one in rows.usage(Selection(since=since, until=until, owners=sorted(members)), None):
                total += one.requests
    return total


def _joined(spans: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for since, until in sorted(spans, key=lambda s: micros(s[0]) or 0):
        if found and (micros(since) or 0) <= (micros(found[-1][1]) or 0):
            if (micros(until) or 0) > (micros(found[-1][1]) or 0):
                found[-1] = (found[-1][0], until)
        else:
            found.append((since, until))
    return tuple(found)


# ---------------------------------------------------------------- coverage


def _coverage(covered: list[_Covered], intervals: dict[str, Any]) -> dict[str, Any]:
    timed = {name for row in intervals["rows"] for name in row["claims"]}
    measured: list[str] = []
    unmeasured: list[dict[str, Any]] = []
    for one in covered:
        name = one.claim.name
        if one.sessions or name in timed:
            measured.append(name)
        elif one.claim.sessions or one.claim.intervals:
            unmeasured.append({"name": name, "why": "the sessions it claims are not recorded here"})
        elif one.claim.receipts:
            unmeasured.append(
                {"name": name, "why": "it claims only receipts of another campaign (`asrd receipts report`)"}
            )
        else:
            unmeasured.append({"name": name, "why": "it claims no session"})
    return {"measured": measured, "unmeasured": unmeasured, "total": len(covered)}


# ---------------------------------------------------------------- tables

_HEADS = ["rollups", "requests", "turns", "tool calls", "errors", "one-off code", "wall", ""]


def _cells(value: dict[str, Any]) -> list[Cell]:
    figures: list[Cell] = [value[k] for k in ("rollups", "requests", "turns", "toolCalls", "errors", "oneOffCode")]
    mark = "at least" if value["lowerBound"] else f"{value['openSessions']} open" if value["openSessions"] else ""
    return [*figures, hours(value["wallSeconds"]), mark]


def work_sheet(answer: dict[str, Any]) -> Sheet:
    """The tables of an answer of `report`."""
    rollups, shared, intervals = answer["rollups"], answer["shared"], answer["intervals"]
    right = list(range(1, 8))
    tables = [
        Table(
            title="Rollups",
            heads=["", *_HEADS],
            rows=[
                ["claimed by a session", *_cells(rollups["claimed"])],
                ["claimed by none", *_cells(rollups["unclaimed"])],
                ["measured", *_cells(rollups["measured"])],
            ],
            right=right,
            notes=[
                "A rollup is one recorded session, sub-agents apart; a request is one model response, whatever the number of "
                "lines or files it stands in. Wall is from first to last record, idle time included, added up over sessions. "
                "Open: the last turn is not recorded to have ended."
            ],
        )
    ]
    rows: list[list[Cell]] = []
    rows += [[c["name"], c["title"] or "", c["phases"], *_cells(c)] for c in answer["claims"]]
    if shared["by"]:
        rows.append([f"shared by {len(shared['by'])}", ", ".join(shared["by"]), None, *_cells(shared)])
    tables.append(
        Table(
            title="Sessions of work",
            heads=["session", "title", "phases", *_HEADS],
            rows=rows,
            right=list(range(2, 10)),
            foot=["claimed", "", None, *_cells(rollups["claimed"])] if rows else None,
            notes=["What several claim is charged to none of them, and stands in the row of those who share it."]
            if shared["by"]
            else [],
        )
    )
    tables.append(_interval_table(intervals))
    coverage = answer["coverage"]
    reasons: dict[str, list[str]] = {}
    for one in coverage["unmeasured"]:
        reasons.setdefault(one["why"], []).append(one["name"])
    lines: list[list[Cell]] = [["measured", len(coverage["measured"]), ""]]
    for why, names in sorted(reasons.items()):
        lines.append(["unmeasured", len(names), f"{why}: {', '.join(names)}"])
    notes = [
        f"{c['name']}: {len(c['notRecorded'])} of the sessions it claims are not recorded here."
        for c in answer["claims"]
        if c["notRecorded"]
    ]
    tables.append(
        Table(
            title="Coverage",
            heads=["coverage", "sessions", "why"],
            rows=lines,
            right=[1],
            foot=["total", coverage["total"], ""],
            notes=[*notes, "A missing measurement is not zero cost."] if coverage["unmeasured"] or notes else notes,
        )
    )
    return Sheet(
        title="Sessions conducted",
        lead=[
            "Every total is over distinct recorded sessions. A session belongs to the work that claims it, never to work that "
            "happened at the same time."
        ],
        tables=tables,
        data=answer,
    )


def _interval_table(intervals: dict[str, Any]) -> Table:
    rows: list[list[Cell]] = [
        [
            f"{r['agent']}:{r['sessionId']}",
            r["since"],
            r["until"],
            ", ".join(r["claims"]),
            "; ".join(f"inside {' and '.join(o['claims'])} {o['since']}/{o['until']}" for o in r["inside"]),
            r["requests"],
            hours(r["agentSeconds"]),
            hours(r["unionSeconds"]),
            hours(r["wallSeconds"]),
            f"{r['instrumentedSeconds'] / r['agentSeconds']:.0%}" if r["agentSeconds"] else None,
            r["lowerBound"],
            hours(r["addsSeconds"]),
        ]
        for r in intervals["rows"]
    ]
    additive = intervals["additive"]
    once = [hours(additive["agentSeconds"]), hours(additive["unionSeconds"])]
    notes = [
        "Intervals may overlap and are not added; ADDS is the agent time that no row above has, and the last row has each "
        "session's time and each response once. TIMED is the share of the agent time in which a call or a response that took time "
        "is recorded."
    ]
    notes += [
        f"Not recorded here: {one['agent']}:{one['sessionId']}, claimed by {', '.join(one['claims'])}."
        for one in intervals["notRecorded"]
    ]
    return Table(
        title="Intervals",
        heads=[
            "session",
            "since",
            "until",
            "claimed by",
            "inside",
            "requests",
            "agent time",
            "active union",
            "wall window",
            "timed",
            "lower bound",
            "adds",
        ],  # fmt: skip
        rows=rows,
        right=[5, 6, 7, 8, 9, 11],
        foot=["each once", "", "", "", "", additive["requests"], *once, "", "", "", once[0]] if rows else None,
        notes=notes if rows or intervals["notRecorded"] else [],
    )
