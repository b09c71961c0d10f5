"""Answers the questions of `query.Rows` from the index and the streams. One thread, one connection, read-only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from asrd.handoff_token import find_token
from asrd.ledger import FAR
from asrd.lineage import Call, Edge, Links, Node, Statement, moment
from asrd.moments import sql_before, sql_from
from asrd.query import FIGURES, OWN, Explained, Named, Selection, Stored, Sums, Timed, Window
from asrd.report.spending import Part
from asrd.report.work import Worked
from asrd.rollup import CARRIER, SessionRow
from asrd.store.disk import Disk, RealDisk
from asrd.store.index import SESSION
from asrd.store.search import Found, Question, Search
from asrd.store.stream import lines_of, near

_SESSION = "s.id, " + ", ".join(f's."{c}"' for c in SESSION)
_GROUPS = {
    "session": "CASE WHEN f.owned THEN f.who END",
    "model": "nullif(f.model, '')",
    "harness": "s.agent",
    "hour": "nullif(f.slot, '')",
    "day": "nullif(substr(f.slot, 1, 10), '')",
    "project": "s.cwd",
    "branch": "nullif(f.branch, '')",
    "effort": "nullif(f.effort, '')",
}
_STATED = (
    "session", "seq", "relation", "agent", "session_id", "namespace", "call_id", "kind", "field", "value", "of_agent",
    "of_session", "of_namespace", "started_at", "chained",
)  # fmt: skip
_BY_DAYS = (None, "session", "model", "harness", "day", "project")
_TOLD = [name for f in FIGURES for name in (f, f"{f}_told")]
_SUMS = "sum(f.requests), sum(f.unmeasured), sum(f.ambiguous), " + ", ".join(f"sum(f.{n})" for n in _TOLD)
_RAW = (
    "SELECT coalesce(owner, session) AS who, owner IS NOT NULL AS owned, substr(at, 1, 16) AS slot, "
    "coalesce(model, '') AS model, coalesce(branch, '') AS branch, coalesce(effort, '') AS effort, "
    "measured AS requests, NOT measured AS unmeasured, ambiguous, "
    + ", ".join(f"coalesce({f}, 0) AS {f}, measured AND {f} IS NOT NULL AS {f}_told" for f in FIGURES)
    + " FROM inference WHERE counted"
)
"""Responses one by one, in the shape of `figure`: for the parts of an interval that are no whole quarter of an hour."""
_SUMMED = (
    "SELECT who, owned, slot, model, branch, effort, requests, unmeasured, ambiguous, "
    + ", ".join(_TOLD)
    + " FROM figure WHERE requests + unmeasured <> 0"
)


class IndexRows:
    """`query.Rows` over an index."""

    def __init__(self, db: sqlite3.Connection, streams: Path, disk: Disk | None = None) -> None:
        self._db = db
        self._streams = streams
        self._disk: Disk = disk or RealDisk()
        self._search: Search | None = None

    def search(self, question: Question) -> Found:
        """Records by their words, the best first; nothing where no search index is."""
        if self._search is None or not self._search.there:
            self._search = Search(self._streams.parent / "search.sqlite", self._streams, self._disk)
        return self._search.ask(question)

    def sessions(
        self,
        *,
        limit: int | None = None,
        harness: str | None = None,
        project: str | None = None,
        since: str | None = None,
    ) -> list[Stored]:
        """Sessions, the last changed first."""
        where, values = [f"s.agent <> '{OWN}'"], list[Any]()
        if harness:
            where.append("s.agent = ?")
            values.append(harness)
        if project:
            where.append("(s.cwd = ? OR s.cwd LIKE ? ESCAPE '\\')")
            values += [project, _like(project.rstrip("/") + "/") + "%"]
        if since:
            sql, bounds = sql_from("s.last_at", since)
            where.append(sql)
            values += bounds
        sql = f"SELECT {_SESSION} FROM session s WHERE {' AND '.join(where)} ORDER BY s.last_at DESC NULLS LAST, s.session_id"
        return self._stored(sql + (f" LIMIT {int(limit)}" if limit is not None else ""), values)

    def named(self, text: str) -> list[Stored]:
        """Sessions whose id is, or else starts with, this text."""
        exact = self._stored(f"SELECT {_SESSION} FROM session s WHERE s.session_id = ?", [text])
        if exact or not text:
            return exact
        return self._stored(
            f"SELECT {_SESSION} FROM session s WHERE s.session_id >= ? AND s.session_id < ? ORDER BY s.last_at DESC",
            [text, text + "\U0010ffff"],
        )

    def own(self) -> list[Stored]:
        """The streams of what asrd itself observed."""
        return self._stored(f"SELECT {_SESSION} FROM session s WHERE s.agent = ?", [OWN])

    def names(self, numbers: Iterable[int]) -> dict[int, Named]:
        """What sessions are called in a table of figures, and what is known to be missing of them."""
        found: dict[int, Named] = {}
        for part in _parts(numbers):
            columns = "id, agent, session_id, coalesce(title, prompt), lower_bound, not_recorded"
            for r in self._db.execute(f"SELECT {columns} FROM session WHERE id IN ({part})"):
                found[r[0]] = Named(r[1], r[2], r[3], r[4], r[5])
        return found

    def numbered(self, numbers: list[int]) -> list[Stored]:
        """Sessions by number."""
        found: list[Stored] = []
        for at in range(0, len(numbers), 500):
            part = numbers[at : at + 500]
            marks = ",".join("?" * len(part))
            found += self._stored(f"SELECT {_SESSION} FROM session s WHERE s.id IN ({marks})", part)
        return found

    def usage(self, selection: Selection, by: str | None) -> list[tuple[Any, Sums]]:
        """Figures of counted responses by a group, the largest input and output first; by hour in order."""
        where, more = ["1"], list[Any]()
        if selection.harness:
            where.append("s.agent = ?")
            more.append(selection.harness)
        if selection.project:
            where.append("(s.cwd = ? OR s.cwd LIKE ? ESCAPE '\\')")
            more += [selection.project, _like(selection.project.rstrip("/") + "/") + "%"]
        rows, values = _from(selection, by)
        group = _GROUPS[by] if by else "NULL"
        join = "LEFT JOIN session s ON s.id = f.who " if len(where) > 1 or "s." in group else ""
        sql = f"SELECT {group}, {_SUMS} FROM ({rows}) f {join}WHERE {' AND '.join(where)}"
        found: list[tuple[Any, Sums]] = []
        for row in self._db.execute(sql + (" GROUP BY 1" if by else ""), [*values, *more]):
            name, requests, unmeasured, ambiguous, i, i_told, o, o_told, cr, cr_told, cw, cw_told, r, r_told = row
            if requests is None:
                continue
            told = (i_told, o_told, cr_told, cw_told, r_told)
            sums = Sums(
                requests,
                i if i_told else None,
                o if o_told else None,
                cr if cr_told else None,
                cw if cw_told else None,
                r if r_told else None,
                unmeasured or 0,
                ambiguous or 0,
                {f: requests - n for f, n in zip(FIGURES, told, strict=True) if n < requests}
                if min(told) < requests
                else {},
            )
            found.append((name, sums))
        if by in ("hour", "day"):
            return sorted(found, key=lambda f: f[0] or "")
        return sorted(found, key=lambda f: (-((f[1].input or 0) + (f[1].output or 0)), str(f[0])))

    # relations

    def links(self, around: Iterable[int] | None = None) -> Links:
        """The relations of these sessions and of all they are related to, at any remove; None = of all sessions."""
        links = Links()
        fresh = set(around) if around is not None else set(self._numbers("SELECT id FROM session"))
        known: set[int] = set()
        while fresh:
            known |= fresh
            nodes = [n for n in self._nodes(fresh) if n.agent != OWN]
            for node in nodes:
                links.add_session(node)
            inside = {n.number for n in nodes}
            for said in self._said(inside, everything=around is None):
                links.add(said)
            fresh = set[int]() if around is None else self._related(inside) - known
        self._add_calls(links)
        return links

    def _nodes(self, numbers: set[int]) -> Iterator[Node]:
        for part in _parts(numbers):
            for r in self._db.execute(
                "SELECT id, agent, session_id, namespace, coalesce(started_at, first_at), scope = 'secondary', digest, alias "
                f"FROM session WHERE id IN ({part})"
            ):
                yield Node(r[0], r[1], r[2], r[3], r[4], bool(r[5]), r[6] or "", r[7] or "")

    def _said(self, numbers: set[int], everything: bool) -> Iterator[Statement]:
        """What these sessions state, what is stated of them, and what asrd observed of them."""
        columns = ", ".join(f"l.{c}" for c in _STATED)
        for part in _parts(numbers):
            for r in self._db.execute(
                "SELECT id, parent_relation, parent_agent, parent_session, parent_namespace, parent_call, parent_evidence, "
                f"token FROM session WHERE id IN ({part}) AND (parent_session IS NOT NULL OR token IS NOT NULL)"
            ):
                if r[3] is not None:
                    yield Statement(r[0], 0, r[1] or "spawned_by", r[2], r[3], r[4] or "", r[5], r[6])
                token = find_token(r[7]) if r[7] else None
                if token is not None:
                    of, kind = token.session, "handoff-token"
                    yield Statement(r[0], -1, "continued_from", "", "", "", None, kind, "prompt", str(token), digest=of)
            sql = f"SELECT {columns} FROM link l WHERE l.session IN ({part})"
            if not everything:
                sql += (
                    f" UNION SELECT {columns} FROM session s JOIN link l ON l.session_id = s.session_id AND l.agent = s.agent "
                    f"WHERE s.id IN ({part}) UNION SELECT {columns} FROM session s JOIN link l ON l.session_id = s.alias "
                    f"AND l.agent = s.agent WHERE s.id IN ({part}) UNION SELECT {columns} FROM session s JOIN link l "
                    f"ON l.of_session = s.session_id AND l.of_agent = s.agent WHERE s.id IN ({part})"
                )
            yield from map(_statement, self._db.execute(sql))
        if everything:
            sql = f"SELECT {columns} FROM session s JOIN link l ON l.session = s.id WHERE s.agent = '{OWN}'"
            yield from map(_statement, self._db.execute(sql))

    def _related(self, numbers: set[int]) -> set[int]:
        """The recorded sessions on the other side of what is stated by or of these."""
        found: set[int] = set()
        digests: set[str] = set()
        for part in _parts(numbers):
            here = f"s.id IN ({part})"
            found.update(
                self._numbers(
                    "SELECT p.id FROM session s JOIN session p ON p.session_id = s.parent_session "
                    f"AND p.agent = s.parent_agent WHERE {here} UNION "
                    "SELECT c.id FROM session s JOIN session c ON c.parent_session = s.session_id "
                    f"AND c.parent_agent = s.agent WHERE {here} UNION "
                    "SELECT t.id FROM link l JOIN session t ON t.session_id = l.session_id AND t.agent = l.agent "
                    f"WHERE l.session IN ({part}) UNION "
                    "SELECT t.id FROM link l JOIN session t ON t.alias = l.session_id AND t.agent = l.agent "
                    f"WHERE l.session IN ({part}) UNION "
                    "SELECT l.session FROM session s JOIN link l ON l.session_id = s.session_id AND l.agent = s.agent "
                    f"WHERE {here} AND l.of_session IS NULL UNION "
                    "SELECT l.session FROM session s JOIN link l ON l.session_id = s.alias AND l.agent = s.agent "
                    f"WHERE {here} AND l.of_session IS NULL UNION "
                    "SELECT t.id FROM session s JOIN link l ON l.of_session = s.session_id AND l.of_agent = s.agent "
                    f"JOIN session t ON t.session_id = l.session_id AND t.agent = l.agent WHERE {here} UNION "
                    "SELECT t.id FROM session s JOIN link l ON l.session_id = s.session_id AND l.agent = s.agent "
                    f"JOIN session t ON t.session_id = l.of_session AND t.agent = l.of_agent WHERE {here}"
                )
            )
            for (line,) in self._db.execute(f"SELECT token FROM session s WHERE {here} AND token IS NOT NULL"):
                token = find_token(line)
                if token is not None:
                    found.update(self._numbers("SELECT id FROM session WHERE digest = ?", (token.session,)))
            digests.update(r[0] for r in self._db.execute(f"SELECT digest FROM session s WHERE {here}") if r[0])
        for number, line in self._db.execute("SELECT id, token FROM session WHERE token IS NOT NULL"):
            token = find_token(line)
            if token is not None and token.session in digests:
                found.add(number)
        return found

    def _add_calls(self, links: Links) -> None:
        """The calls that judging needs: those that printed an id, and those of sessions whose variables were inherited."""
        outer: set[int] = set()
        for said in links.statements():
            if said.kind == "native-id-in-output" and said.call_id:
                sql = f"SELECT {_CALL} FROM call WHERE session = ? AND call_id = ?"
                for r in self._db.execute(sql, (said.by, said.call_id)):
                    links.add_call(Call(*tuple(r)))
            elif said.kind == "process":
                sql = "SELECT id FROM session WHERE agent = ? AND session_id = ?"
                outer.update(self._numbers(sql, (said.agent, said.session_id)))
        for part in _parts(outer):
            for r in self._db.execute(f"SELECT {_CALL} FROM call WHERE session IN ({part})"):
                links.add_call(Call(*tuple(r)))

    def _numbers(self, sql: str, values: Iterable[Any] = ()) -> list[int]:
        return [r[0] for r in self._db.execute(sql, tuple(values))]

    def carriers(self, selection: Selection) -> int:
        """How many of the counted requests are entries whose figures are of one request or more (U11)."""
        where, values = _where(selection, "i", "coalesce(i.owner, i.session)")
        sql = (
            "SELECT count(*) FROM inference i INDEXED BY inference_request "  # few: never all of an interval
            "LEFT JOIN session s ON s.id = coalesce(i.owner, i.session) "
            f"WHERE i.request = '{CARRIER}' AND i.counted AND i.measured AND {where}"
        )
        return self._db.execute(sql, values).fetchone()[0]

    def possible(self, selection: Selection) -> int:
        """Statements of the selected sessions that may be requests of their own: what counts under their id is unlike them."""
        where, values = _where(selection, "i", "i.session")
        unlike = f"i.model IS NOT o.model OR abs(julianday(i.at) - julianday(o.at)) * 86400 > {FAR}"
        sql = (
            "SELECT count(*) FROM inference i JOIN session s ON s.id = i.session JOIN inference o ON o.key = i.key AND o.counted "
            f"WHERE NOT i.counted AND i.ambiguous AND i.copy_of IS NULL AND s.observed IS NULL AND ({unlike}) AND {where} "
            f"AND i.owner NOT IN ({','.join(str(int(n)) for n in selection.owners or ())})"
        )
        return self._db.execute(sql, values).fetchone()[0]

    def sharing(self, numbers: Iterable[int]) -> set[int]:
        """Other sessions that state a response, call or turn which one of these states too, linked to it or not."""
        given, found = set(numbers), set[int]()
        for part in _parts(given):
            for table in ("inference", "call", "turn"):
                sql = f"SELECT DISTINCT o.session FROM {table} i JOIN {table} o ON o.key = i.key WHERE i.session IN ({part})"
                found.update(self._numbers(sql))
        return found - given

    def edges(self, around: Iterable[int] | None = None) -> list[Edge]:
        """Every relation of `links(around)`, with its state."""
        return self.links(around).edges()

    # figures opened

    def explained(self, selection: Selection, limit: int | None) -> list[Explained]:
        """Every statement of the responses that count in a selection, the statements that do not count too."""
        where, values = _where(selection, "i", "coalesce(i.owner, i.session)")
        keys = (
            "SELECT i.key FROM inference i LEFT JOIN session s ON s.id = coalesce(i.owner, i.session) "
            f"WHERE i.counted AND {where}"
        )
        keys += " ORDER BY i.at, i.key" + (f" LIMIT {int(limit)}" if limit is not None else "")
        figures = ", ".join(f"i.{f}" for f in FIGURES)
        sql = (
            f"SELECT i.key, i.session, i.owner, i.seq, i.at, i.model, i.measured, i.counted, i.copy_of, i.ambiguous, {figures} "
            f"FROM ({keys}) k JOIN inference i ON i.key = k.key JOIN session t ON t.id = i.session "
            "ORDER BY i.at, i.key, t.agent, t.session_id, i.seq"
        )
        found: list[Explained] = []
        for r in self._db.execute(sql, values):
            told: dict[str, int | None] = {str(f): n for f, n in zip(FIGURES, tuple(r)[10:], strict=True)}
            found.append(Explained(r[0], r[1], r[2], r[3], r[4], r[5], told, bool(r[6]), bool(r[7]), r[8], r[9]))
        return found

    def declared(self) -> list[tuple[int, str]]:
        """Sessions whose harness declares cumulative totals, and those totals; not those that begin with another's."""
        sql = (
            "SELECT s.id, s.declared FROM session s WHERE s.declared IS NOT NULL AND s.copies = 0 AND s.scope = 'primary' "
            "AND s.parent_session IS NULL AND NOT EXISTS (SELECT 1 FROM link l WHERE l.session = s.id "
            "AND l.relation IN ('forked_from', 'resumed_from', 'copies'))"
        )
        return [(r[0], r[1]) for r in self._db.execute(sql)]

    def native_children(self) -> list[tuple[int, int]]:
        """Parent and child of one harness, as the harness says it started them."""
        sql = (
            "SELECT p.id, c.id FROM session c JOIN session p ON p.session_id = c.parent_session AND p.agent = c.parent_agent "
            "WHERE c.parent_relation = 'spawned_by' AND c.agent = p.agent"
        )
        return [(r[0], r[1]) for r in self._db.execute(sql)]

    # time

    def windows(self, selection: Selection) -> list[Window]:
        """The turns of these sessions that overlap the interval; copies left out."""
        where, values = _where(selection, "i", "i.owner", timed=False)
        where, values = _within(where, values, selection, "i.started_at", "coalesce(i.ended_at, i.last_at)")
        sql = (
            "SELECT i.owner, i.started_at, i.ended_at, i.last_at, i.status FROM turn i JOIN session s ON s.id = i.owner "
            f"WHERE i.counted AND {where}"
        )
        return [Window(*tuple(r)) for r in self._db.execute(sql, values)]

    def timed(self, selection: Selection) -> list[Timed]:
        """The calls and responses of these sessions that took time, as far as they are known; copies left out."""
        where, values = _where(selection, "i", "i.owner", timed=False)
        calls, bounds = _within(where, values, selection, "i.at", "i.result_at")
        found = [
            Timed(*tuple(r))
            for r in self._db.execute(
                "SELECT i.owner, coalesce(i.kind, 'other'), i.at, i.result_at FROM call i JOIN session s ON s.id = i.owner "
                f"WHERE i.counted AND {calls}",
                bounds,
            )
        ]
        responses, bounds = _within(where, values, selection, "i.at", None)
        for owner, at, took in self._db.execute(
            "SELECT i.owner, i.at, i.duration_ms FROM inference i JOIN session s ON s.id = i.owner "
            f"WHERE i.counted AND i.duration_ms > 0 AND {responses}",
            bounds,
        ):
            found.append(Timed(owner, "model", _earlier(at, took), at))
        return found

    # reports

    def parts(self, selection: Selection, by: str, tiers: list[int], hourly: list[str]) -> list[Part]:
        """Counted responses by `slot` (a quarter of an hour), `session`, `model`, `harness`, `project`, or `branch`."""
        where, values = _where(selection, "i", "i.owner")
        total = "coalesce(i.input, 0) + coalesce(i.cache_read, 0) + coalesce(i.cache_write, 0)"
        steps = " ".join(f"WHEN {total} > {int(t)} THEN {int(t)}" for t in sorted(tiers, reverse=True))
        tier = f"CASE {steps} ELSE 0 END" if steps else "0"
        # A cost of nothing for tokens is what some harnesses write where they have no price: it says nothing.
        native = f"i.cost IS NOT NULL AND NOT (CAST(i.cost AS REAL) = 0 AND {total} + coalesce(i.output, 0) > 0)"
        long = " OR ".join("i.model LIKE ?" for _ in hourly)
        day = (
            f"CASE WHEN {long} THEN substr(i.at, 1, 13) ELSE substr(i.at, 1, 10) END"
            if hourly
            else "substr(i.at, 1, 10)"
        )
        sums = ", ".join(f"sum(i.{f}), sum(i.measured AND i.{f} IS NULL)" for f in FIGURES)
        sql = (
            f"SELECT {_PARTS[by]}, {day}, i.model, i.provider, {tier}, CASE WHEN {native} THEN coalesce(i.currency, '') END, "
            f"CASE WHEN {native} THEN i.cost END, count(*), sum(i.measured), sum(NOT i.measured), sum(i.ambiguous), "
            f"sum(i.cache_write_5m), sum(i.cache_write_1h), {sums} "
            f"FROM inference i LEFT JOIN session s ON s.id = coalesce(i.owner, i.session) WHERE i.counted AND {where} "
            "GROUP BY 1, 2, 3, 4, 5, 6, 7, 8"
        )
        return [_part(tuple(r), by) for r in self._db.execute(sql, [*(f"%{h}%" for h in hourly), *values])]

    def work(self) -> dict[int | None, Worked]:
        """What each session did, by its number; None = the owner is not recorded."""
        found: dict[int | None, Worked] = {}
        for owner, turns in self._db.execute("SELECT owner, count(*) FROM turn WHERE counted GROUP BY owner"):
            found.setdefault(owner, Worked()).turns = turns
        sql = "SELECT owner, count(*), sum(status = 'failed'), sum(one_off) FROM call WHERE counted GROUP BY owner"
        for owner, calls, failed, one_off in self._db.execute(sql):
            one = found.setdefault(owner, Worked())
            one.calls, one.failed, one.one_off = calls, failed or 0, one_off or 0
        return found

    def lines(self, stored: Stored, start: int) -> Iterator[bytes]:
        """The records of a session from `seq` start on, as lines."""
        path, end = self._streams / stored.row.path, stored.row.bytes
        at, first = near(self._disk, path, start, end)
        yield from islice(lines_of(self._disk, path, at, end), max(0, start - first), None)

    def totals(self) -> dict[str, int]:
        """Sessions, records and bytes of the store."""
        row = self._db.execute(
            "SELECT count(*), sum(records), sum(bytes), sum(gaps), sum(losses) FROM session"
        ).fetchone()
        return dict(zip(("sessions", "records", "bytes", "gaps", "losses"), (n or 0 for n in row), strict=True))

    def _stored(self, sql: str, values: list[Any]) -> list[Stored]:
        return [Stored(r[0], SessionRow(*tuple(r)[1:])) for r in self._db.execute(sql, values)]


_PARTS = {
    "slot": "substr(i.at, 1, 14) || substr('00153045', (CAST(substr(i.at, 15, 2) AS INTEGER) / 15) * 2 + 1, 2), NULL",
    "session": "i.owner, NULL",
    "model": "i.model, NULL",
    "harness": "s.agent, NULL",
    "project": "s.cwd, NULL",
    "branch": "s.cwd, i.branch",
}


def _part(row: tuple[Any, ...], by: str) -> Part:
    first, second, day, model, provider, tier, currency, cost, count, requests, unmeasured, ambiguous, w5, w1, *told = (
        row
    )
    sums = Sums(requests or 0, unmeasured=unmeasured or 0, ambiguous=ambiguous or 0)
    for figure, amount, untold in zip(FIGURES, told[::2], told[1::2], strict=True):
        if amount is not None:
            setattr(sums, figure, amount)
        if untold:
            sums.unknown[figure] = untold
    group = (first, second) if by == "branch" else first
    native = None if cost is None else str(Decimal(cost) * count)  # exact, where SQLite would sum floats
    return Part(group, day, model, provider, tier, currency, native, sums, w5 or 0, w1 or 0)


_CALL = "session, call_id, at, result_at, kind"


def _statement(row: Any) -> Statement:
    *said, chained = tuple(row)
    return Statement(*said, chained=bool(chained))


def _where(selection: Selection, table: str, who: str, timed: bool = True) -> tuple[str, list[Any]]:
    """The selection as SQL over a table joined to `session s`, the session that owns its rows."""
    where, values = ["1"], list[Any]()
    if timed and selection.since:
        sql, bounds = sql_from(f"{table}.at", selection.since)
        where.append(sql)
        values += bounds
    if timed and selection.until:
        sql, bounds = sql_before(f"{table}.at", selection.until)
        where.append(sql)
        values += bounds
    if selection.harness:
        where.append("s.agent = ?")
        values.append(selection.harness)
    if selection.project:
        where.append("(s.cwd = ? OR s.cwd LIKE ? ESCAPE '\\')")
        values += [selection.project, _like(selection.project.rstrip("/") + "/") + "%"]
    if selection.owners is not None:
        where.append(f"{who} IN ({','.join(str(int(n)) for n in selection.owners)})")
    return " AND ".join(where), values


def _within(where: str, values: list[Any], selection: Selection, start: str, end: str | None) -> tuple[str, list[Any]]:
    """What may overlap the interval of a selection: not what began at its end or later, nor what ended before it."""
    values = list(values)
    if selection.until and end:
        sql, bounds = sql_before(start, selection.until)
        where += f" AND ({start} IS NULL OR {sql})"
        values += bounds
    if selection.since:
        sql, bounds = sql_from(end or start, selection.since)
        where += f" AND ({end or start} IS NULL OR {sql})"
        values += bounds
    return where, values


def _earlier(at: str | None, ms: float) -> str | None:
    """The moment so many milliseconds before another; None where that is not known."""
    if at is None:
        return None
    try:
        return (moment(at) - timedelta(milliseconds=ms)).isoformat()
    except (ValueError, OverflowError):
        return None


def _parts(numbers: Iterable[int], size: int = 900) -> Iterator[str]:
    """The numbers as SQL lists."""
    ordered = sorted(numbers)
    for at in range(0, len(ordered), size):
        yield ",".join(str(int(n)) for n in ordered[at : at + size])


def _from(selection: Selection, by: str | None) -> tuple[str, list[Any]]:
    """The rows to sum: whole days or quarters of an hour, what is left of the interval one by one."""
    since, until = selection.since, selection.until
    if by in _BY_DAYS and all(not moment or moment[10:] in ("T00:00:00", "") for moment in (since, until)):
        where, values = ["1"], list[Any]()
        for moment, sign in ((since, ">="), (until, "<")):
            if moment:
                where.append(f"slot <> '' AND slot {sign} ?")
                values.append(moment[:10])
        if selection.owners is not None:
            where.append(f"owned AND who IN ({','.join(str(int(n)) for n in selection.owners)})")
        return f"SELECT * FROM day WHERE {' AND '.join(where)}", values
    numbers = None if selection.owners is None else ",".join(str(int(n)) for n in selection.owners)
    summed = _SUMMED + (f" AND owned AND who IN ({numbers})" if numbers is not None else "")
    raw = _RAW + (f" AND owner IN ({numbers})" if numbers is not None else "")
    low, high = _quarter(since, up=True) if since else None, _quarter(until) if until else None
    if since is not None and until is not None and low is not None and high is not None and low > high:
        return _one_by_one(raw, since, until)
    values: list[Any] = []
    if low is not None:
        summed += " AND slot >= ?"
        values.append(low)
    if high is not None:
        summed += " AND slot <> '' AND slot < ?"
        values.append(high)
    for start, end, whole in ((since, low, since == f"{low}:00"), (high, until, until == f"{high}:00")):
        if start is not None and end is not None and not whole:
            sql, bounds = _one_by_one(raw, start, end)
            summed += f" UNION ALL {sql}"
            values += bounds
    return summed, values


def _one_by_one(raw: str, since: str, until: str) -> tuple[str, list[Any]]:
    """The responses in [since, until), where nothing is summed for such an interval."""
    (first, low), (second, high) = sql_from("at", since), sql_before("at", until)
    return f"{raw} AND {first} AND {second}", [*low, *high]


def _quarter(moment: str, up: bool = False) -> str:
    """The quarter of an hour a moment lies in (`YYYY-MM-DDTHH:MM`); `up`: the first that begins at it or later."""
    start = moment[:14] + f"{int(moment[14:16]) // 15 * 15:02d}"
    if not up or moment == start + ":00":
        return start
    return (datetime.fromisoformat(start) + timedelta(minutes=15)).strftime("%Y-%m-%dT%H:%M")


def _like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
