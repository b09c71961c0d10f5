"""Questions and their answers: pure. What is known comes through `Rows`; what goes out is plain JSON values.

Every answer has a `schema` with a version; fields are only added within one. `null` is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypedDict, Unpack
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Struct

from asrd.errors import Ambiguous, NothingFound, UsageError
from asrd.lineage import Edge, Links, Tree, reach
from asrd.moments import in_order
from asrd.recorders.base import StreamKey
from asrd.records import AnyRecord, decode
from asrd.rollup import CONFLICT, Declared, SessionRow
from asrd.timing import Spent, Took, Turn, seconds, spent


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
    """Which counted responses: half-open `[since, until)` as `bound` gives times; None = no bound."""

    since: str | None = None
    until: str | None = None
    harness: str | None = None
    project: str | None = None
    owners: list[int] | None = None


OWN = "asrd"
"""The agent name of what asrd itself observed: no session of a harness."""


class Explained(Struct):
    """One recorded statement of a response: where it stands, what it says, and whether it counts."""

    key: str
    session: int
    owner: int | None
    seq: int
    at: str | None
    model: str | None
    figures: dict[str, int | None]
    measured: bool
    counted: bool
    copy_of: str | None
    ambiguous: int = 0


class Named(Struct):
    """What a session is called in a table of figures."""

    agent: str
    session_id: str
    title: str | None
    lower_bound: str | None
    not_recorded: str | None


class Window(Struct):
    """A turn, as far as it is known: `ended_at` None = its end was not recorded, `last_at` is then its last record's time."""

    session: int
    started_at: str | None
    ended_at: str | None
    last_at: str | None
    status: str | None

    @property
    def end(self) -> str | None:
        """When it ended: of an end without a time, when its last record was made; None while it is open."""
        return self.ended_at or (self.last_at if self.status is not None else None)


class Timed(Struct):
    """Something that took time: a tool call (`kind` is the tool's) or a response (`kind` is `model`)."""

    session: int
    kind: str
    started_at: str | None
    ended_at: str | None


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

    def own(self) -> list[Stored]:
        """The streams of what asrd itself observed."""
        ...

    def names(self, numbers: Iterable[int]) -> dict[int, Named]:
        """What sessions are called in a table of figures, and what is known to be missing of them."""
        ...

    def numbered(self, numbers: list[int]) -> list[Stored]:
        """Sessions by number."""
        ...

    def usage(self, selection: Selection, by: str | None) -> list[tuple[Any, Sums]]:
        """Figures by `session`, `model`, `harness`, `hour`, `project`, `branch`, or in all (None)."""
        ...

    def links(self, around: Iterable[int] | None = None) -> Links:
        """The relations of these sessions and of all they are related to, at any remove; None = of all sessions."""
        ...

    def carriers(self, selection: Selection) -> int:
        """How many of the counted requests are entries whose figures are of one request or more."""
        ...

    def possible(self, selection: Selection) -> int:
        """Statements of the selected sessions that may be requests of their own: what counts under their id is unlike them."""
        ...

    def sharing(self, numbers: Iterable[int]) -> set[int]:
        """Other sessions that state a response, call or turn which one of these states too, linked to it or not."""
        ...

    def explained(self, selection: Selection, limit: int | None) -> list[Explained]:
        """Every statement of the responses that count in a selection, the statements that do not count too."""
        ...

    def declared(self) -> list[tuple[int, str]]:
        """Sessions whose harness declares cumulative totals, and those totals; not those that begin with another's."""
        ...

    def native_children(self) -> list[tuple[int, int]]:
        """Parent and child of one harness, as the harness says it started them."""
        ...

    def windows(self, selection: Selection) -> list[Window]:
        """The turns of these sessions that overlap the interval; copies left out."""
        ...

    def timed(self, selection: Selection) -> list[Timed]:
        """The calls and responses of these sessions that took time, as far as they are known; copies left out."""
        ...

    def lines(self, stored: Stored, start: int) -> Iterator[bytes]:
        """The records of a session from `seq` start on, as lines."""
        ...

    def totals(self) -> dict[str, int]:
        """Sessions, records and bytes of the store."""
        ...


# ---------------------------------------------------------------- naming a session


def key_of(stored: Stored) -> StreamKey:
    """What names a session."""
    return StreamKey(stored.row.agent, stored.row.session_id, stored.row.namespace)


def known_records(rows: Rows, stored: Stored) -> Iterator[AnyRecord]:
    """The records of a session that this version knows, in order."""
    for line in rows.lines(stored, 0):
        try:
            yield decode(line)
        except msgspec.MsgspecError:
            continue  # a record of a later version: what is made is of what is understood


def records_of(rows: Rows, stored: Stored) -> list[AnyRecord]:
    """All of them, whole."""
    return list(known_records(rows, stored))


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
        named = [s for s in rows.named(rest) if s.row.agent.startswith(agent)]
        candidates = [s for s in named if s.row.agent == agent] or named
    if not candidates:
        raise NothingFound(query=ref)
    if len(candidates) > 1:
        primary = [s for s in candidates if s.row.scope == "primary" and s.row.observed is None]
        primary = [s for s in primary if CONFLICT not in s.row.namespace] or primary
        same = {s.row.session_id for s in candidates}
        if len(same) == 1 and len(primary) == 1:
            return primary[0]
        names = ", ".join(f"{s.row.agent}:{s.row.session_id}" for s in candidates[:8])
        raise Ambiguous(query=ref, count=len(candidates), candidates=names + (", …" if len(candidates) > 8 else ""))
    return candidates[0]


def exactly(rows: Rows, agent: str, session_id: str, namespace: str = "") -> Stored:
    """The one session with this harness, whole id and namespace. Raises NothingFound."""
    for stored in rows.named(session_id):
        row = stored.row
        if (row.agent, row.session_id, row.namespace) == (agent, session_id, namespace):
            return stored
    raise NothingFound(query=f"{agent}:{session_id}" + (f" of {namespace}" if namespace else ""))


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
        "contentLevel": row.content_level,
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
    known = [n for n in (sums.input, sums.cache_read, sums.cache_write) if n is not None]
    out: dict[str, Any] = {
        "requests": sums.requests,
        "input": sums.input,
        "cacheRead": sums.cache_read,
        "cacheWrite": sums.cache_write,
        "output": sums.output,
        "reasoning": sums.reasoning,
        "inputTotal": sum(known) if known else None,
    }
    out["unmeasuredRequests"] = sums.unmeasured
    out["lowerBound"] = sums.unmeasured > 0
    if sums.ambiguous:
        out["ambiguousRequests"] = sums.ambiguous
    if sums.unknown and (unknown := {NAMES.get(k, k): v for k, v in sums.unknown.items() if v}):
        out["requestsNotSaying"] = unknown
    return out


def list_sessions(rows: Rows, *, limit: int | None, harness: str | None, project: str | None, since: str | None) -> Any:
    """`sessions.list`."""
    found = rows.sessions(limit=limit, harness=harness, project=project, since=bound(since))
    sums = dict(rows.usage(Selection(owners=[s.number for s in found]), "session")) if found else {}
    return {
        "schema": "asrd.sessions/1",
        "sessions": [session_json(s, sums.get(s.number, Sums())) for s in found],
    }


def get_session(rows: Rows, stored: Stored) -> Any:
    """`session.get`: one session with its relations."""
    sums = dict(rows.usage(Selection(owners=[stored.number]), "session"))
    return {
        "schema": "asrd.session/1",
        "session": session_json(stored, sums.get(stored.number, Sums())),
        "links": lineage(rows, stored),
    }


def records(rows: Rows, stored: Stored, start: int, limit: int | None) -> Any:
    """`session.records`: records as they stand in the stream, from `seq` start on."""
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


class Bounds(TypedDict, total=False):
    """What figures are asked for: in [since, until), of a harness, a folder, a session `ref`, or it with all it started.

    `timezone`: where days begin, None = UTC; `cwd`: the folder that `.` stands for in `ref`.
    """

    since: str | None
    until: str | None
    harness: str | None
    project: str | None
    timezone: str | None
    ref: str | None
    tree_of: bool
    cwd: str | None


def usage(rows: Rows, *, limit: int | None = None, **bounds: Unpack[Bounds]) -> Any:
    """`usage`: every response once; by session (the first `limit`), model, harness and day (UTC, or `timezone`'s)."""
    timezone = bounds.get("timezone")
    zone = zone_of(timezone)
    selection = selected(rows, **bounds)
    by_harness = rows.usage(selection, "harness")
    total = Sums()
    for _, sums in by_harness:
        total.add(sums)
    days: dict[str, Sums] = {}
    for hour, sums in rows.usage(selection, "day" if zone is None else "hour"):
        days.setdefault(_day(hour, zone), Sums()).add(sums)
    by_session = rows.usage(selection, "session")
    names = rows.names(n for n, _ in by_session if n is not None)
    reasons = sorted({r.lower_bound for r in names.values() if r.lower_bound})
    never = sorted({(r.agent, r.not_recorded) for r in names.values() if r.not_recorded})
    shown = by_session if limit is None else by_session[:limit]
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
                "title": names[n].title if n in names else "owner not recorded",
                **usage_json(s),
            }
            for n, s in shown
        ],
        "sessions": len(by_session),
        "byModel": [{"model": m, **usage_json(s)} for m, s in rows.usage(selection, "model")],
        "byHarness": [{"harness": h, **usage_json(s)} for h, s in by_harness],
        "byDay": [{"day": d or None, **usage_json(s)} for d, s in sorted(days.items())],
    }
    answer["notRecorded"] = [{"harness": h, "reason": r} for h, r in never]
    always = selection.since is None and selection.until is None
    answer["unitemised"] = unitemised(rows, dict(by_session)) if always else []
    if carriers := rows.carriers(selection):
        answer["total"]["carriers"] = carriers
    if selection.owners is not None and (possible := rows.possible(selection)):
        answer["total"]["possibleRequests"] = possible
    if reasons:
        answer["total"]["lowerBound"] = True
        answer["lowerBoundReasons"] = reasons
    return answer


def selected(rows: Rows, **bounds: Unpack[Bounds]) -> Selection:
    """The responses that are asked for. Raises UsageError, NothingFound, Ambiguous."""
    zone = zone_of(bounds.get("timezone"))
    owners = None
    if (ref := bounds.get("ref")) is not None:
        owners = [resolve(rows, ref, bounds.get("cwd")).number]
        owners += sorted(below(rows, owners)) if bounds.get("tree_of") else []
    since, until = bound(bounds.get("since"), zone), bound(bounds.get("until"), zone)
    return Selection(since, until, bounds.get("harness"), bounds.get("project"), owners)


def zone_of(name: str | None) -> ZoneInfo | None:
    """A timezone by name, None = UTC. Raises UsageError."""
    if name is None or name.upper() == "UTC":
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(what=f"`{name}` as a timezone", command="COMMAND") from error


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
    """A bound of an interval, as `moments.in_order` gives times; a bare day is its start in the timezone.

    Raises UsageError for what is no time.
    """
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise UsageError(what=f"`{text}` as a time", command="COMMAND") from error
    if moment.tzinfo is None and zone is not None:
        text = moment.replace(tzinfo=zone).isoformat()
    found = in_order(text)
    if found is None:
        raise UsageError(what=f"`{text}` as a time", command="COMMAND")
    return found


def since_of(text: str, now: datetime) -> str:
    """A start that may be given as a length of time (`7d`, `12h`, `30m`), as a day or a time."""
    if text and text[-1] in "dhmw" and text[:-1].isdigit():
        unit = {"d": "days", "h": "hours", "m": "minutes", "w": "weeks"}[text[-1]]
        return (now - timedelta(**{unit: int(text[:-1])})).isoformat()
    return text


# ---------------------------------------------------------------- relations


def below(rows: Rows, numbers: Iterable[int]) -> set[int]:
    """All that these sessions started, at any remove, by spawn relations only (U17); not these themselves."""
    roots = set(numbers)
    links = rows.links(roots)
    grown = Tree(links.edges(), links.nodes)
    return {d for root in roots for d in grown.descendants(root)} - roots


def lineage(rows: Rows, stored: Stored) -> list[dict[str, Any]]:
    """The relations one session has, with their evidence and state; `resolved` says whether the other side is recorded."""
    links = rows.links([stored.number])
    edges = links.edges()
    refused = {(e.stated_by, e.seq): e for e in Tree(edges, links.nodes).refused}
    found: list[dict[str, Any]] = []
    for given in edges:
        if stored.number not in (given.child, given.parent, given.stated_by):
            continue
        edge = refused.get((given.stated_by, given.seq), given)
        found.append(
            {
                "relation": edge.relation,
                "from": _named(links, edge.child),
                "to": _named(links, edge.parent),
                "target": {
                    "agent": edge.target_agent or None,
                    "sessionId": edge.target_session or None,
                    "namespace": edge.target_namespace or None,
                },
                "callId": edge.call_id,
                "evidence": {"kind": edge.evidence, "field": edge.field, "value": edge.value},
                "statedHere": edge.stated_by == stored.number,
                "resolved": edge.child is not None and edge.parent is not None,
                "state": edge.state,
                "why": edge.why,
            }
        )
    return found


def _named(links: Links, number: int | None) -> dict[str, Any] | None:
    node = links.nodes.get(number) if number is not None else None
    if node is None:
        return None
    return {"agent": node.agent, "sessionId": node.session_id, "namespace": node.namespace or None}


def tree(rows: Rows, ref: str | None, cwd: str | None = None, limit: int | None = None) -> Any:
    """`tree`: sessions below those they come from, with own and descendant figures; forks stand beside, not below in sums."""
    top = [resolve(rows, ref, cwd)] if ref is not None else rows.sessions(limit=None)
    links = rows.links([s.number for s in top] if ref is not None else None)
    edges = links.edges()
    grown = Tree(edges, links.nodes)
    if ref is None:
        top = [s for s in top if s.number not in grown.above]
        top = top[:limit] if limit is not None else top
    wanted = grown.shown_below(s.number for s in top)
    for number in list(wanted):
        wanted |= grown.descendants(number)
    stored = {s.number: s for s in rows.numbered(sorted(wanted))}
    sums = dict(rows.usage(Selection(owners=sorted(wanted)), "session"))
    unresolved = {e.child: e for e in reversed(edges) if e.state == "unresolved" and e.parent is None}
    summed: dict[int, Sums] = {}

    def all_below(number: int) -> Sums:
        """Own figures and those of all descendants."""
        found = summed.get(number)
        if found is None:
            found = summed[number] = Sums()
            for child in grown.spawned_below.get(number, ()):
                found.add(sums.get(child, Sums()))
                found.add(all_below(child))
        return found

    def node(number: int) -> dict[str, Any]:
        row = stored[number].row
        edge = grown.above.get(number) if number not in roots else None
        missing = unresolved.get(number) if number not in grown.above else None
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
            "unresolvedParent": (missing.target_session or None) if missing else None,
            "observed": row.observed is not None,
            "own": usage_json(sums.get(number, Sums())),
            "descendants": usage_json(all_below(number)),
            "children": [node(child) for child in sorted(grown.below.get(number, ()), key=_order(stored))],
        }

    roots = {s.number for s in top}
    doubtful = [e for e in edges if e.state == "possible" and (e.child in wanted or e.parent in wanted)]
    refused = [e for e in (*grown.refused, *(e for e in edges if e.state == "refused")) if e.child in wanted]
    return {
        "schema": "asrd.tree/1",
        "roots": [node(s.number) for s in top if s.number in stored],
        "possible": [_doubt(links, e) for e in doubtful],
        "refused": [_doubt(links, e) for e in refused],
    }


def _doubt(links: Links, edge: Edge) -> dict[str, Any]:
    return {
        "relation": edge.relation,
        "child": _named(links, edge.child),
        "parent": _named(links, edge.parent),
        "evidence": edge.evidence,
        "why": edge.why,
    }


def _order(stored: dict[int, Stored]) -> Any:
    def key(number: int) -> tuple[str, str, str]:
        row = stored[number].row
        return (row.started_at or row.first_at or "~", row.session_id, row.namespace)

    return key


# ---------------------------------------------------------------- time


def time(rows: Rows, **bounds: Unpack[Bounds]) -> Any:
    """`time`: how long agents worked in [since, until): side by side, together, and how much of it is instrumented."""
    selection = selected(rows, **bounds)
    turns = [Turn(w.session, w.started_at, w.end, w.last_at) for w in rows.windows(selection)]
    took = [Took(t.session, t.kind, t.started_at, t.ended_at) for t in rows.timed(selection)]
    by_session: dict[int, tuple[list[Turn], list[Took]]] = {}
    for turn in turns:
        by_session.setdefault(turn.session, ([], []))[0].append(turn)
    for one in took:
        if one.session in by_session:
            by_session[one.session][1].append(one)
    names = {s.number: s.row for s in rows.numbered(sorted(by_session))}
    each = [
        (names[n], spent(*given, selection.since, selection.until)) for n, given in by_session.items() if n in names
    ]
    each.sort(key=lambda e: (-e[1].agent, e[0].agent, e[0].session_id))
    return {
        "schema": "asrd.time/1",
        "since": selection.since,
        "until": selection.until,
        "total": time_json(spent(turns, took, selection.since, selection.until)),
        "bySession": [
            {
                "agent": row.agent,
                "sessionId": row.session_id,
                "namespace": row.namespace or None,
                "title": row.title or row.prompt,
                "state": state_of(row),
                **time_json(one),
            }
            for row, one in each
            if one.agent or one.open_turns or one.unavailable
        ],
    }


def time_json(one: Spent) -> dict[str, Any]:
    """Time as answers show it, in seconds; null is unknown."""
    return {
        "agentSeconds": seconds(one.agent),
        "unionSeconds": seconds(one.union),
        "overlapSeconds": seconds(one.overlap),
        "envelopeSeconds": seconds(one.envelope),
        "wallSeconds": seconds(one.wall),
        "instrumentedSeconds": seconds(one.instrumented),
        "instrumentedShare": None if one.share is None else round(one.share, 6),
        "toolSeconds": {kind: seconds(n) for kind, n in sorted(one.tools.items())},
        "modelSecondsAtLeast": seconds(one.model_least),
        "modelSecondsAtMost": seconds(one.model_most),
        "sessions": one.sessions,
        "turns": one.turns,
        "openTurns": one.open_turns,
        "lowerBound": one.open_turns > 0 or one.unavailable > 0,
        "unavailable": one.unavailable,
    }


# ---------------------------------------------------------------- figures opened


def explain(rows: Rows, selection: Selection, limit: int | None) -> Any:
    """`usage.explain`: the records behind a total, response by response, and the statements of them that were left out."""
    found = rows.explained(selection, limit)
    numbers = {n for e in found for n in (e.session, e.owner) if n is not None}
    names = {s.number: s for s in rows.numbered(sorted(numbers))}
    groups: dict[str, list[Explained]] = {}
    for one in found:
        groups.setdefault(one.key, []).append(one)

    def session(number: int | None) -> dict[str, Any] | None:
        stored = names.get(number) if number is not None else None
        if stored is None:
            return None
        row = stored.row
        return {"agent": row.agent, "sessionId": row.session_id, "namespace": row.namespace or None}

    def told(one: Explained, counted: Explained) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "session": session(one.session),
            "record": f"r{one.seq}",
            "at": one.at,
            "model": one.model,
            **{NAMES.get(f, f): one.figures[f] for f in FIGURES},
        }
        if one is not counted:
            answer["why"] = left_out(one, counted, names)
        return answer

    responses: list[dict[str, Any]] = []
    for members in groups.values():
        counted = next((m for m in members if m.counted), None)
        if counted is None:
            continue
        others = [m for m in members if m is not counted]
        responses.append(
            {
                "owner": session(counted.owner),
                "measured": counted.measured,
                "counted": told(counted, counted),
                "leftOut": [told(m, counted) for m in others],
                "possible": counted.ambiguous,
                "disagreement": any(m.figures["input"] != counted.figures["input"] for m in others if m.measured),
            }
        )
    total = Sums()
    for _, sums in rows.usage(selection, None):
        total.add(sums)
    return {
        "schema": "asrd.explain/1",
        "since": selection.since,
        "until": selection.until,
        "total": usage_json(total),
        "responses": responses,
        "more": max(0, total.requests + total.unmeasured - len(responses)),
    }


def left_out(one: Explained, counted: Explained, names: dict[int, Stored]) -> str:
    """Why a statement does not count, in words."""
    if one.copy_of is not None:
        return f"a copy of {one.copy_of}"
    row = names[one.session].row if one.session in names else None
    if row is not None and row.observed is not None:
        return "seen by another program; the session's own stream counts"
    if one.session == counted.session:
        return "an earlier statement of the same response"
    return "the same response, stated in another session"


def unitemised(rows: Rows, by_session: dict[int | None, Sums]) -> list[dict[str, Any]]:
    """What harnesses declare as used beyond what their files itemise: a lower bound of what stands in no file.

    Only sessions that begin with nothing of another are compared, over their whole life; a declared total of a tree is
    compared with the session and those of its harness that it started. It is never added.
    """
    stated = [(n, _totals.decode(text)) for n, text in rows.declared()]
    children: dict[int, list[int]] = {}
    for parent, child in rows.native_children():
        children.setdefault(parent, []).append(child)
    found: list[tuple[int, str, Declared, dict[str, int]]] = []
    for number, totals in stated:
        scope = "tree" if "tree" in totals else "session"
        total = totals.get(scope)
        if total is None or number not in by_session:
            continue
        mine = Sums()
        for one in reach(children, [number]) if scope == "tree" else {number}:
            mine.add(by_session.get(one, Sums()))
        parts = [n for n in (mine.input, mine.cache_read, mine.cache_write) if n is not None]
        more = {
            "inputTotal": (total.input_total or 0) - sum(parts),
            "output": (total.output or 0) - (mine.output or 0),
        }
        if any(n > 0 for n in more.values()):
            found.append((number, scope, total, {k: max(0, n) for k, n in more.items()}))
    names = {s.number: s.row for s in rows.numbered([f[0] for f in found])}
    return [
        {
            "agent": names[number].agent,
            "sessionId": names[number].session_id,
            "namespace": names[number].namespace or None,
            "scope": scope,
            "record": f"r{total.seq}",
            "declared": {"inputTotal": total.input_total, "output": total.output},
            **more,
        }
        for number, scope, total, more in found
    ]


_totals = msgspec.json.Decoder(dict[str, Declared])
