"""Answers the questions of `query.Rows` from the index and the streams. One thread, one connection, read-only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from asrd.query import FIGURES, Edge, Selection, Stored, Sums
from asrd.rollup import SessionRow
from asrd.store.disk import Disk, RealDisk
from asrd.store.index import SESSION
from asrd.store.stream import lines_of

_SESSION = "s.id, " + ", ".join(f's."{c}"' for c in SESSION)
_GROUPS = {
    "session": "i.owner",
    "model": "i.model",
    "harness": "s.agent",
    "hour": "substr(i.at, 1, 16)",
    "project": "s.cwd",
    "branch": "i.branch",
    "effort": "i.effort",
}
_SUMS = (
    "sum(i.measured), sum(i.measured = 0), sum(i.ambiguous), "
    + ", ".join(f"sum(i.{f})" for f in FIGURES)
    + ", "
    + ", ".join(f"sum(i.measured AND i.{f} IS NULL)" for f in FIGURES)
)


class IndexRows:
    """`query.Rows` over an index."""

    def __init__(self, db: sqlite3.Connection, streams: Path, disk: Disk | None = None) -> None:
        self._db = db
        self._streams = streams
        self._disk: Disk = disk or RealDisk()

    def sessions(
        self,
        *,
        limit: int | None = None,
        harness: str | None = None,
        project: str | None = None,
        since: str | None = None,
    ) -> list[Stored]:
        """Sessions, the last changed first."""
        where, values = ["1"], list[Any]()
        if harness:
            where.append("s.agent = ?")
            values.append(harness)
        if project:
            where.append("(s.cwd = ? OR s.cwd LIKE ? ESCAPE '\\')")
            values += [project, _like(project.rstrip("/") + "/") + "%"]
        if since:
            where.append("s.last_at >= ?")
            values.append(since)
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
        where, values = ["i.counted = 1"], list[Any]()
        if selection.since:
            where.append("i.at >= ?")
            values.append(selection.since)
        if selection.until:
            where.append("i.at < ?")
            values.append(selection.until)
        if selection.harness:
            where.append("s.agent = ?")
            values.append(selection.harness)
        if selection.project:
            where.append("(s.cwd = ? OR s.cwd LIKE ? ESCAPE '\\')")
            values += [selection.project, _like(selection.project.rstrip("/") + "/") + "%"]
        if selection.owners is not None:
            where.append(f"i.owner IN ({','.join(str(int(n)) for n in selection.owners)})")
        group = _GROUPS[by] if by else "NULL"
        sql = (
            f"SELECT {group}, {_SUMS} FROM inference i LEFT JOIN session s ON s.id = coalesce(i.owner, i.session) "
            f"WHERE {' AND '.join(where)}" + (" GROUP BY 1" if by else "")
        )
        found: list[tuple[Any, Sums]] = []
        for row in self._db.execute(sql, values):
            name, requests, unmeasured, ambiguous, *rest = tuple(row)
            figures, unknown = rest[: len(FIGURES)], rest[len(FIGURES) :]
            if requests is None:
                continue
            found.append(
                (
                    name,
                    Sums(
                        requests,
                        *figures,
                        unmeasured=unmeasured or 0,
                        ambiguous=ambiguous or 0,
                        unknown={f: n for f, n in zip(FIGURES, unknown, strict=True) if n},
                    ),
                )
            )
        if by == "hour":
            return sorted(found, key=lambda f: f[0] or "")
        return sorted(found, key=lambda f: (-((f[1].input or 0) + (f[1].output or 0)), str(f[0])))

    def edges(self) -> list[Edge]:
        """Every stated relation, each side resolved to a recorded session where there is one."""
        by_id: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for number, agent, ident, namespace in self._db.execute("SELECT id, agent, session_id, namespace FROM session"):
            by_id.setdefault((agent, ident), []).append((namespace, number))

        def target(agent: str, ident: str, namespace: str) -> int | None:
            at_hand = by_id.get((agent, ident), [])
            exact = [n for ns, n in at_hand if ns == namespace]
            if exact:
                return exact[0]
            return at_hand[0][1] if len(at_hand) == 1 else None

        edges: list[Edge] = []
        for number, agent, ident, namespace, relation, call, evidence in self._db.execute(
            "SELECT id, parent_agent, parent_session, parent_namespace, parent_relation, parent_call, parent_evidence "
            "FROM session WHERE parent_session IS NOT NULL"
        ):
            other = target(agent, ident, namespace or "")
            edges.append(
                Edge(
                    number,
                    other,
                    relation or "spawned_by",
                    evidence,
                    None,
                    None,
                    call,
                    number,
                    agent,
                    ident,
                    namespace or "",
                )
            )
        for number, relation, agent, ident, namespace, call, kind, field, value in self._db.execute(
            "SELECT session, relation, agent, session_id, namespace, call_id, kind, field, value FROM link"
        ):
            other = target(agent, ident, namespace)
            child, parent = (other, number) if relation == "spawned" else (number, other)
            edges.append(Edge(child, parent, relation, kind, field, value, call, number, agent, ident, namespace))
        return edges

    def lines(self, stored: Stored, start: int) -> Iterator[bytes]:
        """The records of a session from `seq` start on, as lines."""
        for number, line in enumerate(lines_of(self._disk, self._streams / stored.row.path, 0, stored.row.bytes)):
            if number >= start:
                yield line

    def totals(self) -> dict[str, int]:
        """Sessions, records and bytes of the store."""
        row = self._db.execute(
            "SELECT count(*), sum(records), sum(bytes), sum(gaps), sum(losses) FROM session"
        ).fetchone()
        return dict(zip(("sessions", "records", "bytes", "gaps", "losses"), (n or 0 for n in row), strict=True))

    def _stored(self, sql: str, values: list[Any]) -> list[Stored]:
        return [Stored(r[0], SessionRow(*tuple(r)[1:])) for r in self._db.execute(sql, values)]


def _like(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
