"""What questions need, derived from streams: a cache. Deleting it costs a `reindex`, and nothing else.

One transaction takes in what one batch of streams grew by, together with how far each stream was taken in, so that the
index is always exactly the streams up to those places. Readers use connections of their own and never wait.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import astuple

from asrd.errors import StoreUnusable
from asrd.handoff_token import session_digest
from asrd.ledger import Response, Statement, Told, choose, relayed, summarised, unmarked
from asrd.lineage import OWNERS, derives, origins
from asrd.recorders.base import StreamKey
from asrd.records import Record, decode, read
from asrd.rollup import COMPACTION, CONFLICT, RANDOM, CallRow, Fold, InferenceRow, LinkRow, SessionRow, TurnRow
from asrd.store.disk import Disk, damaged, database_error, make_folder
from asrd.store.sealed import SEALED, SealDamaged, Sealed, identity
from asrd.store.stream import SUFFIX, lines_of

VERSION = 21


def _columns(struct: type[msgspec.Struct]) -> list[str]:
    return list(struct.__struct_fields__)


def _list(columns: Iterable[str]) -> str:
    return ", ".join(f'"{c}"' for c in columns)


def _marks(columns: Sequence[str]) -> str:
    return ", ".join("?" * len(columns))


FIGURES = ("input", "output", "cache_read", "cache_write", "reasoning")
SESSION, INFERENCE, CALL, TURN, LINK = (_columns(t) for t in (SessionRow, InferenceRow, CallRow, TurnRow, LinkRow))

_BASE = f"""
CREATE TABLE IF NOT EXISTS session (
  id INTEGER PRIMARY KEY, {", ".join(f'"{c}"' for c in SESSION)},
  UNIQUE (agent, session_id, namespace));
CREATE INDEX IF NOT EXISTS session_id ON session (session_id);
CREATE INDEX IF NOT EXISTS session_last ON session (last_at);
CREATE INDEX IF NOT EXISTS session_parent ON session (parent_session);
CREATE INDEX IF NOT EXISTS session_digest ON session (digest);
CREATE INDEX IF NOT EXISTS session_alias ON session (alias) WHERE alias IS NOT NULL;
CREATE INDEX IF NOT EXISTS session_token ON session (token) WHERE token IS NOT NULL;
CREATE TABLE IF NOT EXISTS inference (
  session INTEGER NOT NULL, {", ".join(f'"{c}"' for c in INFERENCE)}, counted INTEGER NOT NULL DEFAULT 0,
  owner INTEGER, ambiguous INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (key, session)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS inference_session ON inference (session, seq);
CREATE INDEX IF NOT EXISTS inference_owner ON inference (owner);
CREATE INDEX IF NOT EXISTS inference_mark ON inference (mark) WHERE mark IS NOT NULL;
CREATE INDEX IF NOT EXISTS inference_lost ON inference (session) WHERE owner IS NULL;
CREATE INDEX IF NOT EXISTS inference_lost_turn ON inference (turn) WHERE owner IS NULL;
CREATE INDEX IF NOT EXISTS inference_request ON inference (session) WHERE request IS NOT NULL;
CREATE INDEX IF NOT EXISTS inference_at ON inference (at) WHERE counted;
CREATE TABLE IF NOT EXISTS call (
  session INTEGER NOT NULL, {", ".join(f'"{c}"' for c in CALL)}, counted INTEGER NOT NULL DEFAULT 0,
  owner INTEGER, ambiguous INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, call_id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS call_lost ON call (session) WHERE owner IS NULL;
CREATE INDEX IF NOT EXISTS call_key ON call (key);
CREATE INDEX IF NOT EXISTS call_id ON call (call_id);
CREATE TABLE IF NOT EXISTS turn (
  session INTEGER NOT NULL, {", ".join(f'"{c}"' for c in TURN)}, counted INTEGER NOT NULL DEFAULT 0,
  owner INTEGER, ambiguous INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, turn_id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS turn_lost ON turn (session) WHERE owner IS NULL;
CREATE INDEX IF NOT EXISTS turn_key ON turn (key);
CREATE TABLE IF NOT EXISTS link (
  session INTEGER NOT NULL, {", ".join(f'"{c}"' for c in LINK)}, PRIMARY KEY (session, seq)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS link_target ON link (session_id);
CREATE INDEX IF NOT EXISTS link_of ON link (of_session) WHERE of_session IS NOT NULL;
CREATE TABLE IF NOT EXISTS figure (
  who INTEGER NOT NULL, owned INTEGER NOT NULL, slot TEXT NOT NULL, model TEXT NOT NULL, branch TEXT NOT NULL,
  effort TEXT NOT NULL, requests INTEGER NOT NULL, unmeasured INTEGER NOT NULL, ambiguous INTEGER NOT NULL,
  {", ".join(f"{f} INTEGER NOT NULL, {f}_told INTEGER NOT NULL" for f in FIGURES)},
  PRIMARY KEY (who, owned, slot, model, branch, effort)) WITHOUT ROWID;
"""
_TABLES = f"""{_BASE}
CREATE TABLE IF NOT EXISTS day (
  who INTEGER NOT NULL, owned INTEGER NOT NULL, slot TEXT NOT NULL, model TEXT NOT NULL,
  requests INTEGER NOT NULL, unmeasured INTEGER NOT NULL, ambiguous INTEGER NOT NULL,
  {", ".join(f"{f} INTEGER NOT NULL, {f}_told INTEGER NOT NULL" for f in FIGURES)},
  PRIMARY KEY (who, owned, slot, model)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sealed (path TEXT PRIMARY KEY, identity TEXT, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS touched (who INTEGER PRIMARY KEY);
"""
"""`figure` holds what `usage` sums: counted responses by owner, quarter of an hour, model, branch and effort. Triggers keep
it, so that a record more costs no scan. `who` is the owner, or the session that states it where none is recorded. `day`
is the same by whole days (UTC) and models, made anew from `figure` for those that were `touched`."""


_SUMMED = ["requests", "unmeasured", "ambiguous", *(n for f in FIGURES for n in (f, f"{f}_told"))]


def _quarter(row: str) -> str:
    minute = f"substr('00153045', (CAST(substr({row}.at, 15, 2) AS INTEGER) / 15) * 2 + 1, 2)"
    return f"coalesce(substr({row}.at, 1, 14) || {minute}, '')"


def _told(row: str, sign: str) -> str:
    """Adds (or takes away) one response to `figure`."""
    amounts = [f"{row}.measured", f"NOT {row}.measured", f"{row}.ambiguous"]
    for figure in FIGURES:
        amounts += [f"coalesce({row}.{figure}, 0)", f"{row}.measured AND {row}.{figure} IS NOT NULL"]
    texts = ", ".join(f"coalesce({row}.{c}, '')" for c in ("model", "branch", "effort"))
    return (
        f"INSERT INTO figure SELECT coalesce({row}.owner, {row}.session), {row}.owner IS NOT NULL, {_quarter(row)}, {texts}, "
        + ", ".join(f"{sign}({a})" for a in amounts)
        + f" WHERE {row}.counted ON CONFLICT DO UPDATE SET "
        + ", ".join(f"{n} = {n} + excluded.{n}" for n in _SUMMED)
        + f"; INSERT OR IGNORE INTO touched SELECT coalesce({row}.owner, {row}.session) WHERE {row}.counted;"
    )


_LATER = tuple(line for line in _TABLES.split(";\n") if "CREATE INDEX" in line and "inference_session" not in line)
"""Indexes that nothing asks of while a whole store is taken in: they are made at its end, in one go."""
_DAYS = (
    "INSERT INTO day SELECT who, owned, substr(slot, 1, 10), model, "
    + ", ".join(f"sum({n})" for n in _SUMMED)
    + " FROM figure WHERE {where} requests + unmeasured <> 0 GROUP BY 1, 2, 3, 4"
)
_WATCHED = ("counted", "owner", "ambiguous", "measured", "at", "model", "branch", "effort", *FIGURES)
_TRIGGERS = f"""
CREATE TRIGGER IF NOT EXISTS figure_new AFTER INSERT ON inference WHEN new.counted BEGIN {_told("new", "+")} END;
CREATE TRIGGER IF NOT EXISTS figure_gone AFTER DELETE ON inference WHEN old.counted BEGIN {_told("old", "-")} END;
CREATE TRIGGER IF NOT EXISTS figure_other AFTER UPDATE ON inference
  WHEN {" OR ".join(f"old.{c} IS NOT new.{c}" for c in _WATCHED)}
  BEGIN {_told("old", "-")} {_told("new", "+")} END;
"""
SCHEMA = _TABLES + _TRIGGERS

_STATEMENTS = {
    table: f"SELECT i.session, s.session_id, i.seq, {figures}, s.scope = 'secondary', i.copy_of, {said}, s.started_at, "
    "i.copy_of IS NOT NULL AND EXISTS (SELECT 1 FROM session o WHERE o.session_id = i.copy_of AND o.agent = s.agent "
    "AND o.records > 0), s.namespace, i.key, i.counted, i.owner, i.ambiguous, s.observed "
    f"FROM {table} i JOIN session s ON s.id = i.session "
    "WHERE i.key IN ({marks}) ORDER BY i.key"
    for table, figures, said in (
        ("inference", "i.output, i.measured", "i.model, i.at"),
        ("call", "0, 1", "i.name, i.at"),
        ("turn", "0, 1", "NULL, i.started_at"),
    )
}
"""For each table of things that count once: the statements of some keys, as `ledger.Statement` has them, and what was
decided of each: key, counted, owner, ambiguous, and whether its session is observed."""


_SUMS = (
    "INSERT INTO figure SELECT coalesce(owner, session), owner IS NOT NULL, "
    + _quarter("inference")
    + ", coalesce(model, ''), coalesce(branch, ''), coalesce(effort, ''), sum(measured), sum(NOT measured), sum(ambiguous), "
    + ", ".join(f"sum(coalesce({f}, 0)), sum(measured AND {f} IS NOT NULL)" for f in FIGURES)
    + " FROM inference WHERE counted GROUP BY 1, 2, 3, 4, 5, 6"
)
"""What the triggers would have made of every response there is."""

_PUT_SESSION = f"UPDATE session SET {', '.join(f'{c} = ?' for c in SESSION)} WHERE id = ?"
_PUT_INFERENCE = (
    f"INSERT INTO inference (session, {_list(INFERENCE)}, counted, owner) "
    f"VALUES (?, {_marks(INFERENCE)}, ?, ?) ON CONFLICT (key, session) DO UPDATE SET "
    + ", ".join(f'"{c}" = excluded."{c}"' for c in INFERENCE[1:])
    + " WHERE excluded.measured >= measured"
)
_PUT_CALL = (
    f"INSERT INTO call (session, {_list(CALL)}, counted, owner) VALUES (?, {_marks(CALL)}, ?, ?) "
    "ON CONFLICT (session, call_id) DO UPDATE SET name = excluded.name, kind = excluded.kind, one_off = excluded.one_off"
)
_PUT_RESULT = (
    "UPDATE call SET result_seq = ?, result_at = ?, status = ?, exit_code = ? WHERE session = ? AND call_id = ?"
)
_PUT_TURN = (
    f"INSERT INTO turn (session, {_list(TURN)}, counted, owner) VALUES (?, {_marks(TURN)}, ?, ?) "
    "ON CONFLICT (session, turn_id) DO UPDATE SET started_at = coalesce(started_at, excluded.started_at), "
    "ended_at = coalesce(excluded.ended_at, ended_at), status = coalesce(excluded.status, status), "
    "last_at = coalesce(excluded.last_at, last_at)"
)
_INFERENCE_COPY, _CALL_COPY, _TURN_COPY = (c.index("copy_of") for c in (INFERENCE, CALL, TURN))

_OF = "s.session_id = l.of_session AND s.agent = l.of_agent AND s.namespace = l.of_namespace"
"""The session that a link is of, where another stream states it."""
_PLAIN = f"substr(p.namespace, 1, instr(p.namespace || '{CONFLICT}', '{CONFLICT}') - 1)"
"""The namespace of a session `p` as its header says it, also where it went on otherwise elsewhere."""
_ORIGINS = ", ".join(f"'{r}'" for r in sorted(OWNERS))


class Grown(msgspec.Struct):
    """What one stream grew by: its records, and its size and file after them."""

    key: StreamKey
    path: Path
    size: int
    records: list[Record]


class Folded(msgspec.Struct, array_like=True):
    """What an index takes in of one stream: its session as it is now, and what came as rows of the tables.

    `size`: bytes of the stream after it. `relates`: it says, or may change, where sessions come from.
    """

    row: SessionRow
    inferences: list[Any]
    calls: list[Any]
    results: list[Any]
    turns: list[Any]
    links: list[Any]
    superseded: list[int]
    amended: list[tuple[str, bool]]
    relates: bool


def folded(row: SessionRow, grown: Grown, streams: Path) -> Folded:
    """The fold over what one stream grew by. `row` is its session before, and after it: it is changed."""
    before = (row.parent_session, row.observed, row.records)
    row.path = str(grown.path.relative_to(streams))
    row.digest = row.digest or session_digest(grown.key)
    fold = Fold(row)
    for record in grown.records:
        fold.add(record)
    fold.close()
    row.bytes = grown.size
    news = any(link.relation in OWNERS or link.relation in ("observes", "spawned") for link in fold.links)
    other = before != (row.parent_session, row.observed, row.records) and (not before[2] or bool(row.observed))
    return Folded(
        row,
        [astuple(r) for r in fold.inferences.values()],
        [astuple(r) for r in fold.calls.values()],
        [(r.result_seq, r.result_at, r.status, r.exit_code, r.call_id) for r in fold.results.values()],
        [astuple(r) for r in fold.turns.values()],
        [astuple(r) for r in fold.links],
        fold.superseded,
        fold.amended,
        news or other,
    )


class Index:
    """The index file. One thread adds; `reader()` gives a connection to ask from any thread."""

    def __init__(self, path: Path, streams: Path) -> None:
        make_folder(path.parent)
        self.path = path
        self.streams = streams
        self.rebuilt = not path.exists()
        self._lock = threading.Lock()
        self._db = self._create()
        self._rows: dict[StreamKey, tuple[int, SessionRow]] = {}
        self._amended: dict[int, int] = {}
        """By session: by how much its failed calls were put right for results that were said anew."""
        self._whole = False
        """Whether a whole store is being taken in, in one transaction."""

    # adding

    def rest(self) -> None:
        """Lets go of pages kept in memory; those that are needed again are read again."""
        with self._lock:
            self._db.execute("PRAGMA shrink_memory")

    def add(self, grown: Sequence[Grown]) -> None:
        """Takes in what streams grew by, all or none of it. Raises StoreFull, StoreUnusable."""
        with self._lock, self._adding():
            self._take([folded(self._row(one.key)[1], one, self.streams) for one in grown])

    def add_folded(self, items: Sequence[Folded]) -> None:
        """Takes in what another process folded of streams that were new to it. Raises StoreFull, StoreUnusable."""
        with self._lock, self._adding():
            for one in items:
                row = one.row
                key = _key_of(row)
                ident = self._row(key)[0]
                row.failed += self._amended.get(ident, 0)  # what that process cannot know
                self._rows[key] = (ident, row)
            self._take(items)

    @contextlib.contextmanager
    def _adding(self) -> Generator[None]:
        try:
            with contextlib.nullcontext() if self._whole else self._db:
                yield
        except BaseException as error:
            self._rows.clear()  # they went ahead of what was taken in
            if isinstance(error, sqlite3.Error):
                raise database_error(self.path, error) from error
            raise

    def _take(self, items: Sequence[Folded]) -> None:
        keys: dict[str, list[str]] = {"inference": [], "call": [], "turn": []}
        grown: set[int] = set()
        news: list[int] = []
        summed: set[int] = set()
        for one in items:
            ident = self._row(_key_of(one.row))[0]
            grown.add(ident)
            if one.relates:
                news.append(ident)
            if one.row.compactions or one.row.internal is not None:
                summed.add(ident)
            self._put(ident, one)
            for table, rows in (("inference", one.inferences), ("call", one.calls), ("turn", one.turns)):
                keys[table] += [r[0] for r in rows]
        if self._whole:
            return  # how they count is decided when all is there
        related: set[int] = set()
        for ident in dict.fromkeys(news):
            related |= self._relate(ident, keys)
        for table, touched in keys.items():
            self._settle(table, touched)
        self._match_turns(keys["turn"], grown)
        self._match_relayed(keys["inference"], grown | related)
        self._match_repeated(grown | related)
        if summed or news:
            self._match_summaries(summed | set(news))
        self._sum_up()

    def _match_turns(self, turns: list[str] | None, sessions: set[int]) -> None:
        """Responses without an id of their own, in a turn of the session that theirs comes from, are that one's (X23).

        The evidence is the turn's native id, which stands in both, and equal figures; each is matched with one.
        """
        db = self._db
        here = set(sessions)
        for part in _parts(turns or [], 500):
            marks = ",".join("?" * len(part))
            here.update(r[0] for r in db.execute(f"SELECT DISTINCT session FROM turn WHERE key IN ({marks})", part))
        where = "1" if turns is None else f"session IN ({_numbers(here)})"
        foreign = db.execute(
            "SELECT DISTINCT session, turn_id, owner FROM turn "
            f"WHERE {where} AND owner IS NOT NULL AND owner <> session AND copy_of IS NULL"
        ).fetchall()
        columns = f"key, model, {', '.join(FIGURES)}"
        for session, turn, owner in foreign:
            if self._name(session)[0] != self._name(owner)[0] or not self._derives(session, owner):
                continue
            asked = f"SELECT {columns} FROM inference WHERE session = ? AND turn = ? AND measured {{}} ORDER BY seq"
            theirs, mine = (
                [(r[0], tuple(r[1:])) for r in db.execute(asked.format(only), (whose, turn))]
                for whose, only in ((owner, ""), (session, "AND copy_of IS NULL"))
            )
            known = {
                r[0] for r in db.execute("SELECT key FROM inference WHERE session = ? AND turn = ?", (session, turn))
            }
            for key, other in unmarked(mine, theirs, known):
                db.execute(
                    "UPDATE inference SET key = ?, copy_of = ? WHERE key = ? AND session = ?",
                    (other, self._name(owner)[1], key, session),
                )
                self._settle("inference", [other])

    def _match_relayed(self, keys: list[str] | None, sessions: set[int]) -> None:
        """Copies of what the session they name did not state itself are the first owner's: `ledger.relayed`.

        Where that one is not recorded, they are copies of what the copy says that they were made from.

        Looked at are those of these sessions, and those that may be of one of these responses; with None all of them.
        """
        db = self._db
        if db.execute("SELECT 1 FROM inference WHERE owner IS NULL LIMIT 1").fetchone() is None:
            return
        lost = "SELECT DISTINCT session FROM inference {} WHERE owner IS NULL AND counted AND copy_of IS NOT NULL AND "
        copiers: set[int] = set()
        if keys is None:
            copiers.update(r[0] for r in db.execute(lost.format("") + "1"))
        else:
            copiers.update(r[0] for r in db.execute(lost.format("") + f"session IN ({_numbers(sessions)})"))
            for part in _parts(keys, 500):
                given = f"FROM inference WHERE key IN ({','.join('?' * len(part))}) AND copy_of IS NULL"
                for by, index in (("turn", "inference_lost_turn"), ("mark", "inference_mark")):
                    asked = lost.format(f"INDEXED BY {index}") + f"{by} IN (SELECT {by} {given} AND {by} IS NOT NULL)"
                    copiers.update(r[0] for r in db.execute(asked, part))
        columns = f"i.key, i.mark, i.turn, i.model, {', '.join('i.' + f for f in FIGURES)}"
        whose = (
            f"SELECT coalesce(i.copy_of, s.session_id), {columns} FROM inference i JOIN session s ON s.id = i.session "
            "WHERE i.measured AND s.agent = ? AND i.copy_of IS {} NULL AND {} ORDER BY s.session_id, i.seq"
        )
        above = {one: origins(one, self._stated) for one in copiers}
        for copier in sorted(copiers, key=lambda one: (len(above[one]), self._name(one))):
            rows = db.execute(
                f"SELECT {columns} FROM inference i WHERE i.session = ? AND i.owner IS NULL AND i.counted "
                "AND i.copy_of IS NOT NULL AND i.measured ORDER BY i.seq",
                (copier,),
            ).fetchall()
            known = {r[0] for r in db.execute("SELECT key FROM inference WHERE session = ?", (copier,))}
            agent = self._name(copier)[0]
            stated: list[Any] = []
            near = f"i.session IN ({_numbers(above[copier])})"
            for mark in {r[1] for r in rows if r[1] is not None}:
                stated += (
                    db.execute(whose.format("", "i.mark = ?"), (agent, mark)).fetchall()
                    or db.execute(whose.format("NOT", f"i.mark = ? AND {near}"), (agent, mark)).fetchall()
                )
            for turn in {r[2] for r in rows if r[1] is None and r[2] is not None}:
                numbers = set(above[copier])
                if len(turn) >= RANDOM:
                    sql = "SELECT session FROM turn WHERE key = ?"
                    numbers.update(r[0] for r in db.execute(sql, (f"{agent}\x1f{turn}",)))
                here = "i.turn = ? AND i.mark IS NULL AND "
                anywhere = f"{here} i.session IN ({_numbers(numbers)})"
                stated += (
                    db.execute(whose.format("", anywhere), (agent, turn)).fetchall()
                    or db.execute(whose.format("NOT", here + near), (agent, turn)).fetchall()
                )
            of = {r[1]: r[0] for r in stated}
            found = relayed((_response(r) for r in rows), [_response(r[1:]) for r in stated], known)
            for one, other in found:
                sql = "UPDATE OR IGNORE inference SET key = ?, copy_of = ? WHERE key = ?"
                db.execute(sql, (other.key, of[other.key], one.key))
                self._settle("inference", [one.key, other.key])

    def _match_repeated(self, sessions: set[int] | None) -> None:
        """Copied turns and calls that the session they name did not state itself are the first owner's.

        That one is a session it comes from, which states the same native id; where several do, it is left open. Where that one
        is not recorded it is the copy of it which stands nearest to it. Looked at are those of these sessions; with None all.
        """
        db = self._db
        where = "1" if sessions is None else f"session IN ({_numbers(sessions)})"
        for table, ident in (("turn", "turn_id"), ("call", "call_id")):
            lost = db.execute(
                f"SELECT session, key, {ident} FROM {table} WHERE owner IS NULL AND counted AND copy_of IS NOT NULL AND {where}"
            ).fetchall()
            above = {one: origins(one, self._stated) for one in {r[0] for r in lost}}
            for session, key, name in sorted(lost, key=lambda r: (len(above[r[0]]), self._name(r[0]), r[1])):
                near = _numbers(above[session])
                asked = (
                    f"SELECT DISTINCT i.key, coalesce(i.copy_of, s.session_id) FROM {table} i JOIN session s ON s.id = i.session "
                    f"AND s.agent = ? WHERE i.session IN ({near}) AND i.{ident} = ? AND i.copy_of IS {{}} NULL LIMIT 2"
                )
                given = (self._name(session)[0], name)
                found = (
                    db.execute(asked.format(""), given).fetchall() or db.execute(asked.format("NOT"), given).fetchall()
                )
                if len(found) == 1 and found[0][0] != key:
                    db.execute(f"UPDATE {table} SET key = ?, copy_of = ? WHERE key = ?", (*found[0], key))
                    self._settle(table, [key, found[0][0]])

    def _match_summaries(self, sessions: set[int] | None) -> None:
        """Requests for summaries that a fork of the session made are the fork's. Of these sessions; None = of all."""
        db = self._db
        listed = _numbers(sessions or ())
        here = "1" if sessions is None else f"f.id IN ({listed})"
        mine = "1" if sessions is None else f"i.session IN ({listed})"
        parents = db.execute(
            "SELECT p.id FROM session f JOIN session p ON p.agent = f.agent AND p.session_id = f.parent_session "
            f"AND {_PLAIN} = f.parent_namespace WHERE f.internal = 'compact' AND {here} UNION "
            "SELECT i.session FROM inference i JOIN session p ON p.id = i.session JOIN session f "
            "ON f.agent = p.agent AND f.parent_session = p.session_id AND f.internal = 'compact' "
            f"WHERE i.request = '{COMPACTION}' AND NOT i.measured AND {mine}"
        ).fetchall()
        for (parent,) in parents:
            found = db.execute(
                "SELECT i.key, i.session, i.at, f.session_id FROM session p JOIN session f ON f.agent = p.agent "
                f"AND f.internal = 'compact' AND f.parent_session = p.session_id AND f.parent_namespace = {_PLAIN} "
                "JOIN inference i ON i.session = f.id AND i.owner = f.id AND i.measured AND i.counted WHERE p.id = ?",
                (parent,),
            ).fetchall()
            forks = {r[1]: r[3] for r in found}
            requests = db.execute(
                "SELECT key, session, at, copy_of FROM inference "
                f"WHERE session = ? AND request = '{COMPACTION}' AND NOT measured",
                (parent,),
            ).fetchall()
            asked = {r[0]: r for r in requests if r[3] is None or r[3] in forks.values()}
            made = summarised((Told(*r[:3]) for r in asked.values()), (Told(*r[:3]) for r in found))
            of = {one.key: forks[other.session] for one, other in made}
            for key, (_, _, _, known) in asked.items():
                if of.get(key) != known:
                    sql = "UPDATE inference SET copy_of = ? WHERE key = ? AND session = ?"
                    db.execute(sql, (of.get(key), key, parent))
                    self._settle("inference", [key])

    def _sum_up(self) -> None:
        """Makes the days of those whose figures changed anew."""
        db = self._db
        for (who,) in db.execute("SELECT who FROM touched").fetchall():
            db.execute("DELETE FROM day WHERE who = ?", (who,))
            db.execute(_DAYS.format(where="who = ? AND"), (who,))
        db.execute("DELETE FROM touched")

    @contextlib.contextmanager
    def whole(self) -> Generator[None]:
        """While a whole store is taken in: one transaction, and what each row decides of others only at its end.

        For an index that holds nothing yet; with one that does it changes nothing. Others see the index as it was until
        all is there. An exception leaves it as it was. Raises StoreFull, StoreUnusable.
        """
        with self._lock:
            if self._whole or self._db.execute("SELECT 1 FROM session LIMIT 1").fetchone() is not None:
                nothing = True
            else:
                nothing = False
                self._db.execute("BEGIN IMMEDIATE")
                for name in _names("INDEX", "\n".join(_LATER)):
                    self._db.execute(f"DROP INDEX {name}")
                for name in _names("TRIGGER", _TRIGGERS):
                    self._db.execute(f"DROP TRIGGER {name}")
                self._whole = True
        if nothing:
            yield
            return
        try:
            yield
            with self._lock, self._adding():
                self._finish()
        except BaseException:
            with self._lock:
                self._db.rollback()
                self._rows.clear()
            raise
        finally:
            self._whole = False

    def _finish(self) -> None:
        """All is there: what counts, and the sums of it."""
        db = self._db
        for statement in _LATER:
            db.execute(statement)
        watchers = (
            "SELECT DISTINCT session FROM link WHERE relation = 'observes' AND of_session IS NULL UNION "
            f"SELECT s.id FROM link l JOIN session s ON {_OF} WHERE l.relation = 'observes'"
        )
        for (watcher,) in db.execute(watchers).fetchall():
            self._observe(watcher)
        for table in _STATEMENTS:
            self._settle(table, None)
        self._match_turns(None, set())
        self._match_relayed(None, set())
        self._match_repeated(None)
        self._match_summaries(None)
        db.execute(_SUMS)
        db.execute(_DAYS.format(where=""))
        for statement in _statements(_TRIGGERS):
            db.execute(statement)
        db.commit()

    def _relate(self, ident: int, keys: dict[str, list[str]]) -> set[int]:
        """A session is new, or says where it comes from: what that decides of sessions known before is decided anew.

        Gives those sessions, the one at hand too.
        """
        db = self._db
        (agent, session_id), front, seen = self._name(ident), [ident], {ident}
        watchers = db.execute(
            "SELECT session FROM link WHERE session_id = ? AND agent = ? AND relation = 'observes' "
            "UNION SELECT session FROM link WHERE session = ? AND relation = 'observes' UNION SELECT l.session FROM session s "
            "JOIN link l ON l.session_id = s.alias AND l.agent = s.agent WHERE s.id = ? AND l.relation = 'observes' "
            f"UNION SELECT s.id FROM link l JOIN session s ON {_OF} WHERE l.relation = 'observes' AND l.session = ? "
            f"UNION SELECT s.id FROM session s JOIN link l ON {_OF} WHERE l.relation = 'observes' AND s.id = ?",
            (session_id, agent, *[ident] * 4),
        ).fetchall()
        for (watcher,) in watchers:
            self._observe(watcher)
        while front:  # those that come from it, at any remove, by what they say
            agent, session_id = self._name(front.pop())
            for (child,) in db.execute(
                f"SELECT session FROM link WHERE session_id = ? AND agent = ? AND relation IN ({_ORIGINS}) UNION "
                "SELECT id FROM session WHERE parent_session = ? AND parent_agent = ?",
                (session_id, agent, session_id, agent),
            ).fetchall():
                if child not in seen:
                    seen.add(child)
                    front.append(child)
        for one in seen:
            for table, touched in keys.items():
                touched += [r[0] for r in db.execute(f"SELECT key FROM {table} WHERE session = ?", (one,))]
        return seen

    def _observe(self, watcher: int) -> None:
        """Whether the session that a stream sees is recorded: nothing of the stream counts then.

        A secondary stream says so itself; of another the session that it sees says so.
        """
        db = self._db
        found = db.execute(
            "SELECT p.id FROM (SELECT l.agent, l.session_id FROM link l JOIN session s ON s.id = l.session WHERE l.session = ? "
            "AND l.relation = 'observes' AND l.of_session IS NULL AND s.scope = 'secondary' UNION "
            f"SELECT l.agent, l.session_id FROM session s JOIN link l ON {_OF} WHERE s.id = ? AND l.relation = 'observes') l "
            "JOIN session p ON p.agent = l.agent AND (p.session_id = l.session_id OR p.alias = l.session_id) AND p.id <> ? "
            "AND p.scope = 'primary' AND p.records > 0 ORDER BY p.session_id <> l.session_id, p.namespace, p.session_id LIMIT 1",
            (watcher, watcher, watcher),
        ).fetchone()
        number = found[0] if found else None
        (known,) = db.execute("SELECT observed FROM session WHERE id = ?", (watcher,)).fetchone()
        if known == number:
            return
        db.execute("UPDATE session SET observed = ? WHERE id = ?", (number, watcher))
        for _, row in (r for r in self._rows.values() if r[0] == watcher):
            row.observed = number
        for table in _STATEMENTS:
            keys = [r[0] for r in db.execute(f"SELECT key FROM {table} WHERE session = ?", (watcher,))]
            db.execute(
                f"UPDATE {table} SET counted = {0 if number else 'copy_of IS NULL'}, owner = ? WHERE session = ?",
                (number or watcher, watcher),
            )
            self._settle(table, keys)

    def _name(self, ident: int) -> tuple[str, str]:
        return self._db.execute("SELECT agent, session_id FROM session WHERE id = ?", (ident,)).fetchone()

    def place_of(self, key: StreamKey) -> int:
        """How many bytes of a stream were taken in."""
        with self._lock:
            return self._row(key)[1].bytes

    def catch_up(self, disk: Disk, progress: Callable[[int, int], None] | None = None) -> int:
        """Takes in what streams hold and the index does not; gives how many streams that were.

        A stream that is shorter than what was taken in, or gone, is forgotten and taken in anew.
        """
        with self._lock, self._adding():
            files = dict(_sizes(self.streams, self._sealed_size))
            known = {
                path: (ident, size) for ident, path, size in self._db.execute("SELECT id, path, bytes FROM session")
            }
            for path, (ident, size) in known.items():
                if files.get(path, -1) < size:
                    if files.get(path) and key_of_file(disk, self.streams / path) is None:
                        files[path] = size  # damaged: what was taken in stays, and tells `repair` whose it is
                    else:
                        self._forget(ident)
            self._sum_up()
            self._rows.clear()
        starts = {path: known.get(path, (0, 0))[1] for path in files}
        behind = [
            (self.streams / path, start if size >= start else 0)
            for path, size in files.items()
            if size > (start := starts[path]) or size < start
        ]
        with self.whole() if len(behind) > 1 else contextlib.nullcontext():
            for done, (path, start) in enumerate(behind):
                self._take_in(disk, path, start)
                if progress is not None:
                    progress(done + 1, len(behind))
        return len(behind)

    def _sealed_size(self, path: Path, info: os.stat_result) -> int:
        """The bytes of a sealed stream; a file that was looked at before is not opened again.

        Of one that is damaged, what was taken in of it: that stays until `asrd check --repair`.
        """
        name, now = str(path.relative_to(self.streams)), "{}:{}:{}".format(*identity(info))
        sql = "SELECT bytes FROM sealed WHERE path = ? AND identity = ?"
        found = self._db.execute(sql, (name, now)).fetchone()
        if found is not None:
            return found[0]
        try:
            size = Sealed(path).size
        except (SealDamaged, OSError):
            sql = "SELECT bytes FROM session WHERE path = ?"
            known = self._db.execute(sql, (name.removesuffix(SEALED),)).fetchone()
            return known[0] if known else 0
        self._db.execute("INSERT OR REPLACE INTO sealed VALUES (?, ?, ?)", (name, now, size))
        return size

    def again(self, disk: Disk, path: Path) -> None:
        """Takes in one stream anew, because another content was put in its place."""
        with self._lock, self._adding():
            found = self._db.execute(
                "SELECT id FROM session WHERE path = ?", (str(path.relative_to(self.streams)),)
            ).fetchone()
            if found is not None:
                self._forget(found[0])
            self._sum_up()
        if disk.size(path):
            self._take_in(disk, path, 0)

    def _take_in(self, disk: Disk, path: Path, start: int) -> None:
        size = start
        records: list[Record] = []
        key: StreamKey | None = None
        for line in lines_of(disk, path, start):
            size += len(line) + 1
            record = decode_or_none(line)
            if record is not None:
                records.append(record)
            if len(records) >= 20_000:
                key = key or key_of_file(disk, path)
                if key is not None:
                    self.add([Grown(key, path, size, records)])
                records = []
        key = key or key_of_file(disk, path)
        if key is not None and (records or size > start):
            self.add([Grown(key, path, size, records)])

    def _row(self, key: StreamKey) -> tuple[int, SessionRow]:
        found = self._rows.get(key)
        if found is None:
            got = self._db.execute(
                f"SELECT id, {_list(SESSION)} FROM session WHERE agent = ? AND session_id = ? AND namespace = ?",
                (key.agent, key.session_id, key.namespace),
            ).fetchone()
            if got is None:
                row = SessionRow(key.agent, key.session_id, key.namespace)
                ident = self._db.execute(
                    f"INSERT INTO session ({_list(SESSION)}) VALUES ({_marks(SESSION)})", astuple(row)
                ).lastrowid
                assert ident is not None
            else:
                ident, row = got[0], SessionRow(*got[1:])
            if len(self._rows) > 4096:
                self._rows.clear()
            found = self._rows[key] = (ident, row)
        return found

    def _put(self, ident: int, one: Folded) -> None:
        db, row = self._db, one.row
        counts, owner = row.observed is None, row.observed or ident
        for call, failed in one.amended:
            sql = (
                "SELECT count(*) FROM call WHERE session = ? AND call_id = ? AND status = 'failed' AND copy_of IS NULL"
            )
            change = int(failed) - db.execute(sql, (ident, call)).fetchone()[0]
            row.failed += change
            self._amended[ident] = self._amended.get(ident, 0) + change
        db.execute(_PUT_SESSION, (*astuple(row), ident))
        if one.superseded:
            db.executemany(
                "DELETE FROM inference WHERE session = ? AND seq = ?", [(ident, seq) for seq in one.superseded]
            )
        if one.inferences:
            db.executemany(
                _PUT_INFERENCE, [(ident, *r, int(counts and not r[_INFERENCE_COPY]), owner) for r in one.inferences]
            )
        if one.calls:
            db.executemany(_PUT_CALL, [(ident, *r, int(counts and not r[_CALL_COPY]), owner) for r in one.calls])
        if one.results:
            db.executemany(_PUT_RESULT, [(*r[:-1], ident, r[-1]) for r in one.results])
        if one.turns:
            db.executemany(_PUT_TURN, [(ident, *r, int(counts and not r[_TURN_COPY]), owner) for r in one.turns])
        if one.links:
            db.executemany(
                f"INSERT OR REPLACE INTO link (session, {_list(LINK)}) VALUES (?, {_marks(LINK)})",
                [(ident, *r) for r in one.links],
            )

    def _settle(self, table: str, keys: list[str] | None) -> None:
        """Decides anew which statement counts for those keys that stand in several sessions, or only as copies.

        Of all keys with None.
        """
        db = self._db
        several = "GROUP BY key HAVING count(*) > 1 OR max(copy_of) IS NOT NULL OR max(counted) = 0"
        contested: list[str] = []
        if keys is None:
            contested = [r[0] for r in db.execute(f"SELECT key FROM {table} {several}")]
        else:
            for part in _parts(keys, 500):
                marks = ",".join("?" * len(part))
                contested += [
                    r[0] for r in db.execute(f"SELECT key FROM {table} WHERE key IN ({marks}) {several}", part)
                ]
        if not contested:
            return
        known: dict[int, frozenset[int]] = {}

        def comes_from(a: int) -> frozenset[int]:
            if a not in known:
                known[a] = origins(a, self._stated)
            return known[a]

        for part in _parts(contested, 500):
            asked = _STATEMENTS[table].format(marks=",".join("?" * len(part)))
            other: list[tuple[int, int | None, int, str, int]] = []
            for key, rows in itertools.groupby(db.execute(asked, part).fetchall(), lambda r: r[-5]):
                stated = list(rows)
                choice = choose([_statement(r[:-5]) for r in stated], self._derives, comes_from)
                for row in stated:
                    counted = int(row[0] == choice.counts and row[-1] is None)
                    decided = (counted, choice.owner, choice.ambiguous)
                    if decided != tuple(row[-4:-1]):
                        other.append((*decided, key, row[0]))
            db.executemany(
                f"UPDATE {table} SET counted = ?, owner = ?, ambiguous = ? WHERE key = ? AND session = ?", other
            )

    def _derives(self, a: int, b: int) -> bool:
        """Whether session a says, at any remove, that it comes from session b by fork, resume, copy or spawn."""
        return derives(a, b, self._stated)

    def _stated(self, ident: int) -> list[int]:
        """The recorded sessions that a session comes from, as it, or the one that started it, says."""
        agent, session_id = self._name(ident)
        return [
            r[0]
            for r in self._db.execute(
                f"SELECT s.id FROM link l JOIN session s ON s.agent = l.agent AND s.session_id = l.session_id "
                f"WHERE l.session = ? AND l.relation IN ({_ORIGINS}) "
                "UNION SELECT p.id FROM session s JOIN session p ON p.agent = s.parent_agent "
                "AND p.session_id = s.parent_session WHERE s.id = ? "
                "UNION SELECT l.session FROM link l WHERE l.session_id = ? AND l.agent = ? AND l.relation = 'spawned' "
                "AND l.of_session IS NULL",
                (ident, ident, session_id, agent),
            )
            if r[0] != ident
        ]

    def _forget(self, ident: int) -> None:
        left = {
            table: [r[0] for r in self._db.execute(f"SELECT key FROM {table} WHERE session = ?", (ident,))]
            for table in _STATEMENTS
        }
        sql = "SELECT key FROM inference WHERE request IS NOT NULL AND copy_of = ?"
        left["inference"] += [r[0] for r in self._db.execute(sql, (self._name(ident)[1],))]
        for table in (*_STATEMENTS, "link"):
            self._db.execute(f"DELETE FROM {table} WHERE session = ?", (ident,))
        self._db.execute("DELETE FROM session WHERE id = ?", (ident,))
        self._rows.clear()
        for (watcher,) in self._db.execute("SELECT id FROM session WHERE observed = ?", (ident,)).fetchall():
            self._observe(watcher)
        for table, keys in left.items():
            self._settle(table, keys)

    # asking

    def reader(self) -> sqlite3.Connection:
        """A connection to ask with, for one thread; rows by name."""
        db = sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True, timeout=10, check_same_thread=False)
        db.row_factory = sqlite3.Row
        return db

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    def _create(self) -> sqlite3.Connection:
        for attempt in (0, 1):
            db: sqlite3.Connection | None = None
            try:
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
                db = sqlite3.connect(self.path, check_same_thread=False, timeout=10)
                version = db.execute("PRAGMA user_version").fetchone()[0]
                if version not in (0, VERSION):
                    raise sqlite3.DatabaseError("another version")
                self.rebuilt = self.rebuilt or version == 0
                db.executescript(
                    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-32000;" + SCHEMA
                )
                db.execute(f"PRAGMA user_version = {VERSION}")
                return db
            except OSError as error:
                raise StoreUnusable(store=self.path, reason=error.strerror) from error
            except sqlite3.DatabaseError as error:
                if db is not None:
                    db.close()
                if attempt or not damaged(error):
                    raise database_error(self.path, error) from error
                self.rebuilt = True
                remove(self.path)
        raise AssertionError("not reached")


_MARK = re.compile(r"~(conflict|other)-[0-9a-f]{12}(?=\.asr\.jsonl$)")


def remove(path: Path) -> None:
    """Removes an index or cursor file with what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _key_of(row: SessionRow) -> StreamKey:
    return StreamKey(row.agent, row.session_id, row.namespace)


def stream_files(streams: Path) -> Iterator[Path]:
    """Every stream of a store, by the name of its plain file, also where it is sealed."""
    if streams.is_dir():
        for folder in sorted(p for p in streams.iterdir() if p.is_dir()):
            names = {
                p.name.removesuffix(SEALED) for p in folder.iterdir() if p.name.endswith((SUFFIX, SUFFIX + SEALED))
            }
            yield from (folder / name for name in sorted(names) if not name.startswith("."))


def _sizes(streams: Path, sealed_size: Callable[[Path, os.stat_result], int]) -> Iterator[tuple[str, int]]:
    """The size of every stream by its path below the streams, in the order of `stream_files`."""
    if not streams.is_dir():
        return
    for folder in sorted(e.name for e in os.scandir(streams) if e.is_dir()):
        entries = [e for e in os.scandir(streams / folder) if e.name.endswith((SUFFIX, SUFFIX + SEALED))]
        plain = {e.name: e.stat().st_size for e in entries if e.name.endswith(SUFFIX) and not e.name.startswith(".")}
        for entry in entries:
            name = entry.name.removesuffix(SEALED)
            if name not in plain and not name.startswith("."):
                plain[name] = sealed_size(Path(entry.path), entry.stat())
        for name, size in sorted(plain.items()):
            yield f"{folder}/{name}", size


class _Key(msgspec.Struct, rename="camel"):
    agent: dict[str, Any]
    session_id: str
    namespace: str | None = None


def key_of_file(disk: Disk, path: Path) -> StreamKey | None:
    """The session a stream file is of, by its header; None where that cannot be read."""
    for line in lines_of(disk, path):
        try:
            head = msgspec.json.decode(line, type=_Key)
        except msgspec.MsgspecError:
            return None
        mark = _MARK.search(path.name)  # another stream of the same name, from another machine
        namespace = (head.namespace or "") + (mark[0] if mark else "")
        return StreamKey(str(head.agent.get("name", "")), head.session_id, namespace)
    return None


def decode_or_none(line: bytes) -> Record | None:
    """A record, or None for a type or shape this version does not know."""
    try:
        return decode(line)
    except msgspec.ValidationError:
        try:
            return read(line).record()
        except msgspec.MsgspecError:
            return None
    except msgspec.DecodeError:
        return None


def _statement(row: Sequence[Any]) -> Statement:
    session, ident, seq, output, measured, secondary, copy_of, model, at, started_at, there, namespace = row
    return Statement(
        session,
        ident,
        seq,
        output,
        bool(measured),
        bool(secondary),
        copy_of,
        model,
        at,
        started_at,
        bool(there),
        namespace,
    )


def _response(row: Sequence[Any]) -> Response:
    key, mark, turn, *told = row
    return Response(key, mark, turn, tuple(told))


def _names(what: str, text: str) -> list[str]:
    return re.findall(rf"CREATE {what} IF NOT EXISTS (\w+)", text)


def _statements(text: str) -> Iterator[str]:
    """The single statements of a text: sqlite3 runs several at once only outside a transaction."""
    held = ""
    for line in text.splitlines(keepends=True):
        held += line
        if sqlite3.complete_statement(held):
            yield held
            held = ""


def _numbers(sessions: Iterable[int]) -> str:
    """Sessions as an SQL list."""
    return ",".join(map(str, sorted(sessions)))


def _parts(items: list[str], size: int) -> Iterator[list[str]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]
