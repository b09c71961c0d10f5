"""Methods by name, as the socket and the CLI both ask them: one table, the same answers with and without a daemon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from asrd import query, spanning
from asrd.claims import Claim, IntervalRef, SessionRef
from asrd.errors import NotUnderstood, UsageError
from asrd.query import Bounds, Rows, Stored
from asrd.report import spending, work
from asrd.store.search import Question


class _Params(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What a method may be asked with."""


class ListParams(_Params):
    """`sessions.list`."""

    limit: int | None = None
    harness: str | None = None
    project: str | None = None
    since: str | None = None


class SessionParams(_Params):
    """A session by name; `cwd` is the folder that `.` stands for."""

    session: str
    cwd: str | None = None


class NamedParams(SessionParams):
    """With `agent` it is the one session of that harness, whole id and namespace, whatever others are called."""

    agent: str | None = None
    namespace: str | None = None


class RecordsParams(NamedParams):
    """`session.records`: from `seq` on, or after a record id."""

    from_: int = msgspec.field(name="from", default=0)
    after: str | None = None
    limit: int | None = None


class UsageParams(_Params):
    """`usage`."""

    since: str | None = None
    until: str | None = None
    harness: str | None = None
    project: str | None = None
    timezone: str | None = None
    session: str | None = None
    tree: bool = False
    cwd: str | None = None
    limit: int | None = None
    """How many sessions are listed (`usage`), or responses (`usage.explain`); None = all."""


class IntervalParams(SessionParams, kw_only=True):
    """`interval`: the cutoffs of a tree's receipt; `since` None = from its beginning."""

    until: str
    since: str | None = None
    timezone: str | None = None


class SpendingParams(UsageParams, kw_only=True):
    """`usage.report`: by what; `tiers`, `hourly`: what prices depend on (`asrd.prices.List`)."""

    by: str
    tiers: list[int] = []
    hourly: list[str] = []


class SessionNamed(_Params):
    """A session by its harness and whole id."""

    agent: str
    session_id: str
    namespace: str = ""


class IntervalNamed(_Params):
    """A session and what it spawned in `[since, until)`."""

    session: SessionNamed
    since: str
    until: str


class ClaimParams(_Params):
    """One claim, as `asrd.claims` reads it from a file."""

    name: str
    title: str | None = None
    phases: list[str] | int = []
    sessions: list[SessionNamed] = []
    intervals: list[IntervalNamed] = []
    receipts: list[str] = []
    alone: bool = False


class SearchParams(Question):
    """`search`. `session`: a session by name; `cwd`: the folder that `.` stands for."""

    cwd: str | None = None


class ReportParams(_Params):
    """`report`: the claims to report by."""

    claims: list[ClaimParams] = []


class TreeParams(_Params):
    """`tree`."""

    session: str | None = None
    cwd: str | None = None
    limit: int | None = None


class HandoffParams(SessionParams):
    """`handoff`: the brief of a session for a target; nothing is started."""

    to: str = "prompt"
    also: list[str] = []
    budget: int | None = None
    redact: Literal["strict", "default", "off"] = "default"
    alone: bool = False


def start_of(params: RecordsParams) -> int:
    """The first `seq` that is asked for."""
    if params.after is None:
        return max(0, params.from_)
    if params.after == "h":
        return 1
    if params.after.startswith("r") and params.after[1:].isdigit():
        return int(params.after[1:]) + 1
    raise UsageError(what=f"the record id {params.after}", command="follow")


def session_of(rows: Rows, params: NamedParams) -> Stored:
    """The session that is asked for. Raises NothingFound, Ambiguous, UsageError."""
    if params.agent is not None:
        return query.exactly(rows, params.agent, params.session, params.namespace or "")
    if params.namespace is not None:
        raise UsageError(what="a namespace without its agent", command="COMMAND")
    return query.resolve(rows, params.session, params.cwd)


def _list(rows: Rows, p: ListParams) -> Any:
    return query.list_sessions(rows, limit=p.limit, harness=p.harness, project=p.project, since=p.since)


def bounds_of(p: UsageParams) -> Bounds:
    """What figures are asked for."""
    return Bounds(
        since=p.since,
        until=p.until,
        harness=p.harness,
        project=p.project,
        timezone=p.timezone,
        ref=p.session,
        tree_of=p.tree,
        cwd=p.cwd,
    )


def _lineage(rows: Rows, p: NamedParams) -> Any:
    stored = session_of(rows, p)
    return {"schema": "asrd.lineage/1", "sessionId": stored.row.session_id, "links": query.lineage(rows, stored)}


def _spending(rows: Any, p: SpendingParams) -> Any:
    return spending.spending(rows, by=p.by, tiers=p.tiers, hourly=p.hourly, **bounds_of(p))


def _report(rows: Any, p: ReportParams) -> Any:
    def ref(one: SessionNamed) -> SessionRef:
        return SessionRef(one.agent, one.session_id, one.namespace)

    claims = [
        Claim(
            name=c.name,
            title=c.title,
            phases=c.phases,
            sessions=[ref(s) for s in c.sessions],
            intervals=[IntervalRef(ref(i.session), i.since, i.until) for i in c.intervals],
            receipts=c.receipts,
            alone=c.alone,
        )
        for c in p.claims
    ]
    return work.report(rows, claims)


def _handoff(rows: Any, p: HandoffParams) -> Any:
    from asrd import handing  # no other question waits for what makes briefs

    return handing.answer(rows, p)


def _search(rows: Any, p: SearchParams) -> Any:
    session = None
    if p.session is not None:
        row = query.resolve(rows, p.session, p.cwd).row
        session = f"{row.agent}/{row.session_id}/{row.namespace}"
    found = rows.search(msgspec.structs.replace(p, session=session))
    titles: dict[tuple[str, str, str], Any] = {}
    hits: list[dict[str, Any]] = []
    for hit in found.hits:
        key = (hit.agent, hit.session_id, hit.namespace)
        if key not in titles:
            named = [s.row for s in rows.named(hit.session_id)]
            titles[key] = next((r for r in named if (r.agent, r.session_id, r.namespace) == key), None)
        row = titles[key]
        told = msgspec.to_builtins(hit)
        told["namespace"] = hit.namespace or None
        told["record"] = hit.record
        told["title"] = (row.title or row.prompt) if row else None
        told["cwd"] = row.cwd if row else None
        del told["path"]
        hits.append(told)
    return {
        "schema": "asrd.search/1",
        "hits": hits,
        "matched": found.matched,
        "more": found.more,
        "streamsSearched": found.streams,
        "streams": rows.totals()["sessions"],
    }


METHODS: dict[str, tuple[type[Struct], Callable[[Rows, Any], Any]]] = {
    "sessions.list": (ListParams, _list),
    "session.get": (NamedParams, lambda rows, p: query.get_session(rows, session_of(rows, p))),
    "session.records": (
        RecordsParams,
        lambda rows, p: query.records(rows, session_of(rows, p), start_of(p), p.limit),
    ),
    "usage": (UsageParams, lambda rows, p: query.usage(rows, limit=p.limit, **bounds_of(p))),
    "usage.explain": (
        UsageParams,
        lambda rows, p: query.explain(rows, query.selected(rows, **bounds_of(p)), p.limit),
    ),
    "time": (UsageParams, lambda rows, p: query.time(rows, **bounds_of(p))),
    "interval": (
        IntervalParams,
        lambda rows, p: spanning.receipt(rows, p.session, p.since, p.until, p.timezone, p.cwd),
    ),
    "tree": (TreeParams, lambda rows, p: query.tree(rows, p.session, p.cwd, p.limit)),
    "lineage": (NamedParams, _lineage),
    "handoff": (HandoffParams, _handoff),
    "search": (SearchParams, _search),
    "report": (ReportParams, _report),
    "usage.report": (SpendingParams, _spending),
}


def params_of(struct: type[Any], given: Any) -> Any:
    """The parameters of a method. Raises UsageError for what it does not take."""
    try:
        return msgspec.convert(given, struct)
    except msgspec.ValidationError as error:
        raise UsageError(what=f"this ({error})", command="COMMAND") from error


def ask(rows: Rows, method: str, given: Any) -> Any:
    """Answers a method that needs nothing but the store. Raises NotUnderstood for a method that is none."""
    if method not in METHODS:
        raise NotUnderstood(what=f"the method {method}")
    struct, function = METHODS[method]
    return function(rows, params_of(struct, given))
