"""Questions and their answers: pure. What is known comes through `Rows`; what goes out is plain JSON values.

Every answer has a `schema` with a version; fields are only added within one. `null` is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Struct

from asrd.errors import Ambiguous, NothingFound, UsageError
from asrd.rollup import SessionRow


class Stored(Struct):
    """A session in the index: its number there and its row."""

    number: int
    row: SessionRow


class Sums(Struct):
    """Figures of counted responses. A sum is None when no member of the group says it; `unknown` counts those that do not."""

    requests: int = 0
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    unmeasured: int = 0
    """Requests that are known to have been made and whose figures stand nowhere."""
    ambiguous: int = 0
    unknown: dict[str, int] = {}

    def add(self, other: Sums) -> None:
        """Adds another group's figures."""
        self.requests += other.requests
        self.unmeasured += other.unmeasured
        self.ambiguous += other.ambiguous
        for field in FIGURES:
            mine, theirs = getattr(self, field), getattr(other, field)
            if theirs is not None:
                setattr(self, field, (mine or 0) + theirs)
            self.unknown = {**self.unknown}
            if n := other.unknown.get(field):
                self.unknown[field] = self.unknown.get(field, 0) + n


FIGURES = ("input", "output", "cache_read", "cache_write", "reasoning")
NAMES = {"cache_read": "cacheRead", "cache_write": "cacheWrite"}


class Selection(Struct):
    """Which counted responses: half-open `[since, until)` in RFC 3339 UTC text; None = no bound."""

    since: str | None = None
    until: str | None = None
    harness: str | None = None
    project: str | None = None
    owners: list[int] | None = None


class Edge(Struct):
    """One stated relation between two sessions. `child`/`parent` are numbers, None when that side is not recorded."""

    child: int | None
    parent: int | None
    relation: str
    evidence: str | None
    field: str | None
    value: str | None
    call_id: str | None
    stated_by: int
    target_agent: str
    target_session: str
    target_namespace: str


class Rows(Protocol):
    """The few questions this module asks of an index."""

    def sessions(
        self,
        *,
        limit: int | None = None,
        harness: str | None = None,
        project: str | None = None,
        since: str | None = None,
    ) -> list[Stored]:
        """Sessions, the last changed first."""
        ...  # fmt: skip

    def named(self, text: str) -> list[Stored]:
        """Sessions whose id is, or else starts with, this text."""
        ...

    def numbered(self, numbers: list[int]) -> list[Stored]:
        """Sessions by number."""
        ...

    def usage(self, selection: Selection, by: str | None) -> list[tuple[Any, Sums]]:
        """Figures by `session`, `model`, `harness`, `hour`, `project`, `branch`, or in all (None)."""
        ...

    def edges(self) -> list[Edge]:
        """Every stated relation."""
        ...

    def lines(self, stored: Stored, start: int) -> Iterator[bytes]:
        """The records of a session from `seq` start on, as lines."""
        ...

    def totals(self) -> dict[str, int]:
        """Sessions, records and bytes of the store."""
        ...


# ---------------------------------------------------------------- naming a session


def resolve(rows: Rows, ref: str, cwd: str | None = None) -> Stored:
    """The session a person names: by id, unique prefix, `harness:id`, `last`, or `.` (the last in this folder).

    Raises NothingFound and Ambiguous (with candidates).
    """
    if ref == "last" or ref == ".":
        found = rows.sessions(limit=1, project=cwd if ref == "." else None)
        if not found:
            raise NothingFound(query=ref)
        return found[0]
    agent, _, rest = ref.partition(":")
    candidates = rows.named(ref)
    if not candidates and rest:
        candidates = [s for s in rows.named(rest) if s.row.agent == agent or s.row.agent.startswith(agent)]
    if not candidates:
        raise NothingFound(query=ref)
    if len(candidates) > 1:
        primary = [s for s in candidates if s.row.scope == "primary"]
        same = {s.row.session_id for s in candidates}
        if len(same) == 1 and len(primary) == 1:
            return primary[0]
        names = ", ".join(f"{s.row.agent}:{s.row.session_id}" for s in candidates[:8])
        raise Ambiguous(query=ref, count=len(candidates), candidates=names + (", …" if len(candidates) > 8 else ""))
    return candidates[0]


# ---------------------------------------------------------------- answers


def session_json(stored: Stored, sums: Sums | None = None) -> dict[str, Any]:
    """A session as answers show it."""
    row = stored.row
    return {
        "agent": row.agent,
        "sessionId": row.session_id,
        "namespace": row.namespace or None,
        "title": row.title,
        "prompt": row.prompt,
        "version": row.version,
        "originator": row.originator,
        "model": row.model,
        "cwd": row.cwd,
        "branch": row.branch,
        "scope": row.scope,
        "startedAt": row.started_at or row.first_at,
        "firstAt": row.first_at,
        "lastAt": row.last_at,
        "parent": None
        if row.parent_session is None
        else {
            "agent": row.parent_agent,
            "sessionId": row.parent_session,
            "namespace": row.parent_namespace or None,
            "relation": row.parent_relation,
            "callId": row.parent_call,
            "evidence": row.parent_evidence,
        },
        "root": None if row.root is None else bool(row.root),
        "state": state_of(row),
        "records": row.records,
        "turns": row.turns,
        "prompts": row.prompts,
        "messages": row.messages,
        "calls": row.calls,
        "failedCalls": row.failed,
        "openCalls": row.open_calls,
        "edits": row.edits,
        "commits": row.commits,
        "compactions": row.compactions,
        "copies": row.copies,
        "gaps": row.gaps,
        "losses": row.losses,
        "natives": row.natives,
        "usage": usage_json(sums) if sums is not None else None,
        "lowerBound": row.lower_bound,
        "notRecorded": row.not_recorded,
        "stream": row.path,
        "bytes": row.bytes,
    }


def state_of(row: SessionRow) -> str:
    """`ended` as the source says, else `open` while a turn is open, else `idle`. Never by time."""
    if row.ended:
        return row.ended
    return "open" if row.open_turn is not None else "idle"


def usage_json(sums: Sums) -> dict[str, Any]:
    """Figures as answers show them. `inputTotal` = input + cacheRead + cacheWrite; `output` has reasoning in it."""
    known = [getattr(sums, f) for f in ("input", "cache_read", "cache_write")]
    out: dict[str, Any] = {"requests": sums.requests}
    for field in ("input", "cache_read", "cache_write", "output", "reasoning"):
        out[NAMES.get(field, field)] = getattr(sums, field)
    out["inputTotal"] = None if all(k is None for k in known) else sum(k or 0 for k in known)
    out["unmeasuredRequests"] = sums.unmeasured
    out["lowerBound"] = sums.unmeasured > 0
    if sums.ambiguous:
        out["ambiguousRequests"] = sums.ambiguous
    if unknown := {NAMES.get(k, k): v for k, v in sums.unknown.items() if v}:
        out["requestsNotSaying"] = unknown
    return out


def list_sessions(rows: Rows, *, limit: int | None, harness: str | None, project: str | None, since: str | None) -> Any:
    """`sessions.list`."""
    found = rows.sessions(limit=limit, harness=harness, project=project, since=since)
    sums = dict(rows.usage(Selection(owners=[s.number for s in found]), "session")) if found else {}
    return {
        "schema": "asrd.sessions/1",
        "sessions": [session_json(s, sums.get(s.number, Sums())) for s in found],
    }


def get_session(rows: Rows, ref: str, cwd: str | None = None) -> Any:
    """`session.get`: one session with its relations."""
    stored = resolve(rows, ref, cwd)
    sums = dict(rows.usage(Selection(owners=[stored.number]), "session"))
    return {
        "schema": "asrd.session/1",
        "session": session_json(stored, sums.get(stored.number, Sums())),
        "links": lineage(rows, stored),
    }


def records(rows: Rows, ref: str, start: int, limit: int | None, cwd: str | None = None) -> Any:
    """`session.records`: records as they stand in the stream, from `seq` start on."""
    stored = resolve(rows, ref, cwd)
    found: list[Any] = []
    size = 0
    for line in rows.lines(stored, start):
        found.append(msgspec.Raw(line))
        size += len(line)
        if (limit is not None and len(found) >= limit) or size > 16 << 20:
            break
    return {
        "schema": "asrd.records/1",
        "agent": stored.row.agent,
        "sessionId": stored.row.session_id,
        "namespace": stored.row.namespace or None,
        "records": found,
        "next": start + len(found),
        "more": start + len(found) < stored.row.records,
    }


def usage(
    rows: Rows,
    *,
    since: str | None = None,
    until: str | None = None,
    harness: str | None = None,
    project: str | None = None,
    timezone: str | None = None,
    ref: str | None = None,
    tree_of: bool = False,
    cwd: str | None = None,
) -> Any:
    """`usage`: every response once; by session, model, harness and day (UTC, or `timezone`'s)."""
    owners = None
    if ref is not None:
        stored = resolve(rows, ref, cwd)
        owners = [stored.number]
        if tree_of:
            owners += sorted(descendants(spawned(rows.edges()), stored.number))
    zone = _zone(timezone)
    selection = Selection(bound(since, zone), bound(until, zone), harness, project, owners)
    total = Sums()
    for _, sums in rows.usage(selection, None):
        total.add(sums)
    days: dict[str, Sums] = {}
    for hour, sums in rows.usage(selection, "hour"):
        days.setdefault(_day(hour, zone), Sums()).add(sums)
    by_session = rows.usage(selection, "session")
    names = {s.number: s.row for s in rows.numbered([n for n, _ in by_session if n is not None])}
    bounds = sorted({r.lower_bound for r in names.values() if r.lower_bound})
    never = sorted({(r.agent, r.not_recorded) for r in names.values() if r.not_recorded})
    answer: dict[str, Any] = {
        "schema": "asrd.usage/1",
        "since": selection.since,
        "until": selection.until,
        "timezone": timezone or "UTC",
        "total": usage_json(total),
        "bySession": [
            {
                "agent": names[n].agent if n in names else None,
                "sessionId": names[n].session_id if n in names else None,
                "title": (names[n].title or names[n].prompt) if n in names else "owner not recorded",
                **usage_json(s),
            }
            for n, s in by_session
        ],
        "byModel": [{"model": m, **usage_json(s)} for m, s in rows.usage(selection, "model")],
        "byHarness": [{"harness": h, **usage_json(s)} for h, s in rows.usage(selection, "harness")],
        "byDay": [{"day": d or None, **usage_json(s)} for d, s in sorted(days.items())],
    }
    answer["notRecorded"] = [{"harness": h, "reason": r} for h, r in never]
    if bounds:
        answer["total"]["lowerBound"] = True
        answer["lowerBoundReasons"] = bounds
    return answer


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None or name.upper() == "UTC":
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(what=f"the timezone {name}", command="usage") from error


def _day(hour: str | None, zone: ZoneInfo | None) -> str:
    """The day of a moment given as `YYYY-MM-DDTHH:MM` UTC; "" when there is none."""
    if not hour:
        return ""
    if zone is None:
        return hour[:10]
    try:
        moment = datetime.fromisoformat(hour if len(hour) > 13 else hour + ":00").replace(tzinfo=UTC)
    except ValueError:
        return hour[:10]
    return moment.astimezone(zone).strftime("%Y-%m-%d")


def bound(text: str | None, zone: ZoneInfo | None = None) -> str | None:
    """A bound of an interval as records write times; a bare day is its start in the timezone.

    Raises UsageError for what is no time.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise UsageError(what=f"the time {text}", command="usage") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone or UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")


def since_of(text: str, now: datetime) -> str:
    """A start that may be given as a length of time (`7d`, `12h`, `30m`), as a day or a time."""
    if text and text[-1] in "dhmw" and text[:-1].isdigit():
        unit = {"d": "days", "h": "hours", "m": "minutes", "w": "weeks"}[text[-1]]
        return (now - timedelta(**{unit: int(text[:-1])})).isoformat()
    return text


# ---------------------------------------------------------------- relations


def spawned(edges: list[Edge]) -> dict[int, set[int]]:
    """Children by parent, by spawn edges only (U17)."""
    children: dict[int, set[int]] = {}
    for edge in edges:
        if edge.relation in ("spawned", "spawned_by") and edge.child is not None and edge.parent is not None:
            children.setdefault(edge.parent, set()).add(edge.child)
    return children


def descendants(children: dict[int, set[int]], root: int) -> set[int]:
    """All below a root; a cycle is walked once."""
    found: set[int] = set()
    front = [root]
    while front:
        for child in children.get(front.pop(), ()):
            if child not in found and child != root:
                found.add(child)
                front.append(child)
    return found


def lineage(rows: Rows, stored: Stored) -> list[dict[str, Any]]:
    """The relations one session has, with their evidence; `resolved` says whether the other side is recorded."""
    found: list[dict[str, Any]] = []
    for edge in rows.edges():
        if stored.number not in (edge.child, edge.parent, edge.stated_by):
            continue
        found.append(
            {
                "relation": edge.relation,
                "from": edge.child,
                "to": edge.parent,
                "target": {
                    "agent": edge.target_agent,
                    "sessionId": edge.target_session,
                    "namespace": edge.target_namespace or None,
                },
                "callId": edge.call_id,
                "evidence": {"kind": edge.evidence, "field": edge.field, "value": edge.value},
                "statedHere": edge.stated_by == stored.number,
                "resolved": edge.child is not None and edge.parent is not None,
            }
        )
    numbers = {n for f in found for n in (f["from"], f["to"]) if n is not None}
    names = {s.number: s.row for s in rows.numbered(sorted(numbers))}
    for one in found:
        for side in ("from", "to"):
            number = one[side]
            one[side] = (
                None
                if number is None or number not in names
                else {"agent": names[number].agent, "sessionId": names[number].session_id}
            )
    return found


def tree(rows: Rows, ref: str | None, cwd: str | None = None, limit: int | None = None) -> Any:
    """`tree`: sessions below those they come from, with own and descendant figures; forks stand beside, not below in sums."""
    edges = rows.edges()
    below: dict[int, dict[int, Edge]] = {}
    above: dict[int, int] = {}
    for edge in edges:
        if edge.child is None or edge.parent is None or edge.relation == "copies":
            continue
        old = below.get(edge.parent, {}).get(edge.child)
        if edge.child in above and above[edge.child] != edge.parent and old is None:
            continue  # one place in the tree: the first stated parent
        if _leads_to(above, edge.parent, edge.child):
            continue  # a cycle is refused
        if old is None or (old.call_id is None and edge.call_id is not None):
            below.setdefault(edge.parent, {})[edge.child] = edge
            above[edge.child] = edge.parent
    if ref is not None:
        top = [resolve(rows, ref, cwd)]
    else:
        top = [s for s in rows.sessions(limit=None) if s.number not in above]
        top = top[:limit] if limit is not None else top
    wanted: set[int] = set()
    front = [s.number for s in top]
    while front:
        number = front.pop()
        if number not in wanted:
            wanted.add(number)
            front += list(below.get(number, {}))
    stored = {s.number: s for s in rows.numbered(sorted(wanted))}
    sums = dict(rows.usage(Selection(owners=sorted(wanted)), "session"))
    children = spawned(edges)

    def node(number: int, edge: Edge | None) -> dict[str, Any]:
        all_below = Sums()
        for child in descendants(children, number):
            if child in sums:
                all_below.add(sums[child])
        row = stored[number].row
        return {
            "agent": row.agent,
            "sessionId": row.session_id,
            "namespace": row.namespace or None,
            "title": row.title or row.prompt,
            "state": state_of(row),
            "lastAt": row.last_at,
            "relation": edge.relation if edge else None,
            "callId": edge.call_id if edge else row.parent_call,
            "evidence": edge.evidence if edge else None,
            "unresolvedParent": row.parent_session if edge is None and row.parent_session is not None else None,
            "own": usage_json(sums.get(number, Sums())),
            "descendants": usage_json(all_below),
            "children": [node(child, e) for child, e in sorted(below.get(number, {}).items(), key=_order(stored))],
        }

    return {"schema": "asrd.tree/1", "roots": [node(s.number, None) for s in top if s.number in stored]}


def _order(stored: dict[int, Stored]) -> Any:
    def key(item: tuple[int, Edge]) -> tuple[str, str]:
        row = stored[item[0]].row
        return (row.started_at or row.first_at or "~", row.session_id)

    return key


def _leads_to(above: dict[int, int], start: int, goal: int) -> bool:
    at: int | None = start
    seen: set[int] = set()
    while at is not None and at not in seen:
        if at == goal:
            return True
        seen.add(at)
        at = above.get(at)
    return False
