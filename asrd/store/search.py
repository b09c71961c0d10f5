"""Search over all words of all streams: an index of its own, `search.sqlite`. A cache: deleting it costs indexing again.

It holds no text: of each record its words are indexed, and where its line stands; a snippet is read from the stream. It is
kept apart from the index that answers are made from, grows behind it and never holds it up. Whatever a stream loses (words
that are not kept any longer, a repair) leaves the search too, as the stream is taken in anew.

    stream   how far each stream was taken in
    doc      one row a record (more for one with very long text): its place and what it is
    words    full text (FTS5, no content): `facet` what it is, as words that no text has; `body` its text

Filters are words of `facet`, so that a filter makes a search faster and not slower.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import apsw
import msgspec
from msgspec import Struct

from asrd.errors import UsageError
from asrd.moments import sql_before, sql_from, utc
from asrd.query import bound
from asrd.recorders.base import StreamKey
from asrd.records import (
    AnyRecord,
    Compaction,
    Config,
    FileChange,
    Inference,
    MemoryWrite,
    Message,
    MessageSent,
    Native,
    Plan,
    Resource,
    Session,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    VcsAction,
    decode,
)
from asrd.rollup import SessionRow
from asrd.store.disk import Disk, make_folder
from asrd.store.index import remove
from asrd.store.stream import lines_of

VERSION = 1
LONG = 200_000
"""Characters of one row of `words`; longer text becomes several."""
RANKED = 4_000
"""Matches that are ranked: of more, the last taken in."""
BEST = 250
"""Of these, how many are looked at for what they are."""
SNIPPET = 160
"""Characters of a snippet."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS stream (
  id INTEGER PRIMARY KEY, agent TEXT NOT NULL, session_id TEXT NOT NULL, namespace TEXT NOT NULL, path TEXT NOT NULL,
  bytes INTEGER NOT NULL, wordless INTEGER NOT NULL, UNIQUE (agent, session_id, namespace));
CREATE TABLE IF NOT EXISTS doc (
  id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seq INTEGER NOT NULL, start INTEGER NOT NULL, length INTEGER NOT NULL,
  part INTEGER NOT NULL, type TEXT NOT NULL, role TEXT, tool TEXT, at TEXT, exit INTEGER);
CREATE INDEX IF NOT EXISTS doc_stream ON doc (stream);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(
  facet, body, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2");
"""


class Question(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What is searched for. `exit`: a number, `nonzero`, or `failed`; times are RFC 3339 UTC, half-open."""

    query: str = ""
    harness: str | None = None
    project: str | None = None
    session: str | None = None
    role: str | None = None
    tool: str | None = None
    type: str | None = None
    since: str | None = None
    until: str | None = None
    exit: str | None = None
    limit: int = 20


class Hit(Struct, rename="camel"):
    """A record that matches. `matches`: places in the snippet, [start, end) in characters."""

    agent: str
    session_id: str
    namespace: str
    path: str
    seq: int
    type: str
    role: str | None
    tool: str | None
    at: str | None
    exit_code: int | None
    snippet: str
    matches: list[tuple[int, int]]
    score: float

    @property
    def record(self) -> str:
        """The record's id."""
        return f"r{self.seq}" if self.seq else "h"


class Found(Struct):
    """The hits, how many records matched (at least, when `more`), and how many streams were searched."""

    hits: list[Hit]
    matched: int
    more: bool
    streams: int


# ---------------------------------------------------------------- words of a record


def words_of(record: AnyRecord) -> str:
    """All text of a record that a person might look for."""
    if isinstance(record, Message):
        return _blocks(record.content)
    if isinstance(record, ToolCall):
        return "\n".join([record.name, record.title or "", *_strings(record.input)])
    if isinstance(record, ToolResult):
        text = _blocks(record.content)
        if record.exec is not None and not text:
            text = "\n".join(filter(None, (record.exec.stdout, record.exec.stderr)))
        return text
    if isinstance(record, Session):
        roots = record.workspace.roots if record.workspace else []
        return "\n".join(filter(None, (record.title, *(r.path for r in roots))))
    if isinstance(record, FileChange):
        return f"{record.path.path}\n{record.diff or ''}"
    if isinstance(record, Plan):
        return "\n".join(item.text for item in record.items)
    if isinstance(record, Compaction):
        return record.summary or ""
    if isinstance(record, Config):
        return record.title or ""
    if isinstance(record, VcsAction):
        return " ".join(filter(None, (record.commit, record.branch)))
    if isinstance(record, MessageSent | MemoryWrite):
        return "\n".join(filter(None, (record.target, _blocks(record.content))))
    if isinstance(record, Native):
        return "\n".join(_strings(record.data))
    if isinstance(record, Turn | Inference) and record.error is not None:
        return record.error.message or ""
    return ""


def _blocks(content: list[Any] | None) -> str:
    parts: list[str] = []
    for block in content or ():
        if isinstance(block, Text | Resource):
            parts.append(block.text or "")
        elif isinstance(block, Thinking):
            parts.append(block.text or block.summary or "")
    return "\n".join(p for p in parts if p)


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    """Every string in a value, keys left out; not deeper than a person would write."""
    if isinstance(value, str):
        yield value
    elif depth < 12:
        if isinstance(value, dict):
            for one in cast("dict[str, Any]", value).values():
                yield from _strings(one, depth + 1)
        elif isinstance(value, list):
            for one in cast("list[Any]", value):
                yield from _strings(one, depth + 1)


def _facet(kind: str, value: str) -> str:
    """A word that no text has and that the tokenizer leaves whole."""
    return f"zq{kind}{hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def _folders(cwd: str | None) -> Iterator[str]:
    """The folder and all above it, but the root."""
    at = posixpath.normpath(cwd) if cwd else "/"
    while at not in ("/", "", "."):
        yield at
        at = posixpath.dirname(at)


# ---------------------------------------------------------------- taking in


class SearchIndex:
    """The file, opened to take streams in. One thread at a time."""

    def __init__(self, path: Path, streams: Path, disk: Disk) -> None:
        make_folder(path.parent)
        self.path = path
        self._streams = streams
        self._disk = disk
        self._db: Any = _open(path)
        self.dropped = False
        """Whether words went since `purge`."""

    def behind(self, rows: list[SessionRow]) -> list[SessionRow]:
        """The sessions of which something was not taken in yet, the last changed first."""
        known = {
            (agent, session_id, namespace): (size, wordless)
            for agent, session_id, namespace, size, wordless in self._db.execute(
                "SELECT agent, session_id, namespace, bytes, wordless FROM stream"
            )
        }
        late = [r for r in rows if known.get((r.agent, r.session_id, r.namespace)) != (r.bytes, r.wordless)]
        return sorted(late, key=lambda r: r.last_at or "", reverse=True)

    def forget_others(self, keys: set[StreamKey]) -> None:
        """Lets go of streams that are not there any more."""
        for number, *key in self._db.execute("SELECT id, agent, session_id, namespace FROM stream").fetchall():
            if StreamKey(*key) not in keys:
                with self._db:
                    self._drop(number)
                    self._db.execute("DELETE FROM stream WHERE id = ?", (number,))
                self.dropped = True

    def together(self) -> Any:
        """A context: what is taken in inside of it is written at its end."""
        return self._db

    def take(
        self, row: SessionRow, tool_of: Callable[[str], str | None] = lambda _: None, budget: int = 1 << 62
    ) -> bool:
        """Takes in what a stream grew by, about `budget` bytes of it; whether more is left. `tool_of`: by call id."""
        key = (row.agent, row.session_id, row.namespace)
        with self._db:
            found = self._db.execute(
                "SELECT id, bytes, wordless FROM stream WHERE agent = ? AND session_id = ? AND namespace = ?", key
            ).fetchone()
            if found is None:
                self._db.execute("INSERT INTO stream VALUES (NULL, ?, ?, ?, ?, 0, ?)", (*key, row.path, row.wordless))
                number, start = self._db.last_insert_rowid(), 0
            else:
                number, start, wordless = found
                if start > row.bytes or wordless != row.wordless:
                    self._drop(number)
                    self.dropped, start = True, 0
            end = self._take(number, row, start, tool_of, budget)
            self._db.execute(
                "UPDATE stream SET bytes = ?, wordless = ?, path = ? WHERE id = ?",
                (end, row.wordless, row.path, number),
            )
        return end < row.bytes

    def _take(self, number: int, row: SessionRow, start: int, tool_of: Callable[[str], str | None], budget: int) -> int:
        common = [_facet("h", row.agent), _facet("i", f"{row.agent}/{row.session_id}/{row.namespace}")]
        common += [_facet("p", folder) for folder in _folders(row.cwd)]
        tools: dict[str, str] = {}
        at = start
        docs: list[tuple[Any, ...]] = []
        texts: list[tuple[str, str]] = []
        for line in lines_of(self._disk, self._streams / row.path, start, row.bytes):
            place, at = at, at + len(line) + 1
            try:
                record = decode(line)
            except msgspec.MsgspecError:
                continue
            if isinstance(record, ToolCall):
                tools[record.call_id] = record.name
            text = words_of(record).strip() if record.copy_of is None else ""
            if text:
                role = record.role if isinstance(record, Message) else None
                code = record.exec.exit_code if isinstance(record, ToolResult) and record.exec else None
                tool = record.name if isinstance(record, ToolCall) else None
                if isinstance(record, ToolResult):
                    tool = tools.get(record.call_id) or tool_of(record.call_id)
                kind = str(record.__struct_config__.tag)
                facets = [*common, _facet("k", kind)]
                facets += [_facet("m", record.at[:7])] if record.at else []
                facets += [_facet("r", role)] if role else []
                if isinstance(record, Message) and record.origin == "prompt":
                    facets.append(_facet("r", "prompt"))
                facets += [_facet("t", tool.lower())] if tool else []
                if code is not None:
                    facets += [_facet("e", str(code)), *([_facet("e", "nonzero")] if code else [])]
                if isinstance(record, ToolResult) and record.status == "failed":
                    facets.append(_facet("e", "failed"))
                for part in range(0, len(text), LONG):
                    docs.append(
                        (number, record.seq, place, len(line), part // LONG, kind, role, tool, utc(record.at), code)
                    )
                    texts.append((" ".join(facets), text[part : part + LONG]))
            if at - start >= budget:
                break
        for doc, (facet, text) in zip(docs, texts, strict=True):
            self._db.execute("INSERT INTO doc VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", doc)
            rowid = self._db.last_insert_rowid()
            safe = text.encode("utf-8", "replace").decode()
            self._db.execute("INSERT INTO words (rowid, facet, body) VALUES (?, ?, ?)", (rowid, facet, safe))
        return max(at, start) if at - start >= budget else row.bytes

    def _drop(self, number: int) -> None:
        self._db.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM doc WHERE stream = ?)", (number,))
        self._db.execute("DELETE FROM doc WHERE stream = ?", (number,))

    def purge(self) -> None:
        """Takes words that went out of the file too: until then they are only marked as gone."""
        self._db.execute("INSERT INTO words (words) VALUES ('optimize')")
        self._db.pragma("wal_checkpoint(truncate)")
        self._db.execute("VACUUM")
        self._db.pragma("wal_checkpoint(truncate)")
        self.dropped = False

    def close(self) -> None:
        """Closes the file."""
        self._db.close()


def _open(path: Path) -> Any:
    """The file to write; one that is damaged or of another version is made anew."""
    for attempt in (0, 1):
        db: Any = None
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            db = apsw.Connection(str(path))
            db.set_busy_timeout(10_000)
            version = db.pragma("user_version")
            if version not in (0, VERSION):
                raise apsw.CorruptError("another version")
            db.pragma("journal_mode", "wal")
            db.pragma("synchronous", "normal")
            db.pragma("secure_delete", "on")
            db.execute(_SCHEMA)
            db.pragma("user_version", VERSION)
            return db
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError):
            if db is not None:
                db.close()
            if attempt:
                raise
            remove(path)
    raise AssertionError("not reached")


# ---------------------------------------------------------------- asking

_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')
_PLAIN = re.compile(r"[^\W_]+", re.UNICODE)
_BOOST = {"prompt": 2.0, "user": 1.6, "assistant": 1.4, "tool_call": 1.1, "tool_result": 0.8, "native": 0.5}


def expression(question: Question) -> tuple[str, list[str]]:
    """The question as FTS5 says it, and the words to mark in snippets (`*` at the end: a prefix).

    Words are all to be there; `"a phrase"`, `-not`, `begin*`, `this OR that`. Nothing of it is FTS5's own syntax.
    Raises UsageError where neither a word nor a filter is left.
    """
    wanted: list[list[str]] = []
    unwanted: list[str] = []
    marks: list[str] = []
    either = False
    for minus, phrase, word in _TERM.findall(question.query):
        if word == "OR" and not minus:
            either = bool(wanted)
            continue
        prefix = bool(word) and word.endswith("*")
        text = phrase or word.rstrip("*")
        plain = _PLAIN.findall(text)
        if not plain:
            continue
        said = '"' + " ".join(plain) + '"' + ("*" if prefix else "")
        if minus:
            unwanted.append(said)
            continue
        marks += [*plain[:-1], plain[-1] + ("*" if prefix else "")]
        if either:
            wanted[-1].append(said)
            either = False
        else:
            wanted.append([said])
    parts = [f"{{body}} : ({' OR '.join(terms)})" for terms in wanted]
    for kind, value in _filters(question):
        parts.append(f'{{facet}} : "{_facet(kind, value)}"')
    if months := list(_months(question.since, question.until)):
        said = " OR ".join(f'"{_facet("m", month)}"' for month in months)
        parts.append(f"{{facet}} : ({said})")
    if not parts:
        raise UsageError(what="a search for no word", command="search")
    whole = " AND ".join(f"({p})" for p in parts)
    if unwanted:
        whole = f"({whole}) NOT ({{body}} : ({' OR '.join(unwanted)}))"
    return whole, marks


def _filters(question: Question) -> Iterator[tuple[str, str]]:
    if question.harness:
        yield "h", question.harness
    if question.project:
        yield "p", posixpath.normpath(question.project)
    if question.session:
        yield "i", question.session
    if question.role:
        yield "r", question.role
    if question.tool:
        yield "t", question.tool.lower()
    if question.type:
        yield "k", question.type
    if question.exit is not None:
        yield "e", question.exit


def _months(since: str | None, until: str | None) -> Iterator[str]:
    """The months an interval touches, where it has both ends and is no longer than five years."""
    if not since or not until or not (since[:4].isdigit() and until[:4].isdigit()):
        return
    first, last = (int(t[:4]) * 12 + int(t[5:7] or 1) - 1 for t in (since, until))
    if last - first < 60:
        for month in range(first, last + 1):
            yield f"{month // 12:04d}-{month % 12 + 1:02d}"


class Search:
    """The file, opened to ask. One thread."""

    def __init__(self, path: Path, streams: Path, disk: Disk) -> None:
        self._streams = streams
        self._disk = disk
        self._db: Any = None
        if path.exists():
            try:
                self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
                self._db.set_busy_timeout(10_000)
                if self._db.pragma("user_version") != VERSION:
                    self._db = None
            except apsw.Error:
                self._db = None

    @property
    def there(self) -> bool:
        """Whether there is anything to ask."""
        return self._db is not None

    def ask(self, question: Question) -> Found:
        """The best matches first. Raises UsageError for a question without a word or filter, or with what is no time."""
        since, until = bound(question.since), bound(question.until)
        question = msgspec.structs.replace(question, since=since, until=until)
        said, marks = expression(question)
        if self._db is None:
            return Found([], 0, False, 0)
        sql = "SELECT rowid, bm25(words, 0.0, 1.0) FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?"
        values: list[Any] = [said]
        if question.since or question.until:
            (first, low), (second, high) = (
                sql_from("d.at", question.since or ""),
                sql_before("d.at", question.until or "~"),
            )
            sql = (
                "SELECT words.rowid, bm25(words, 0.0, 1.0) FROM words JOIN doc d ON d.id = words.rowid WHERE words MATCH ? "
                f"AND {first} AND {second} ORDER BY words.rowid DESC LIMIT ?"
            )
            values += [*low, *high]
        if not marks:  # only filters: nothing to rank by, the last first
            sql = sql.replace("bm25(words, 0.0, 1.0)", "-1.0")
        rows: list[tuple[int, float]] = self._db.execute(sql, (*values, RANKED + 1)).fetchall()
        more = len(rows) > RANKED
        rows = sorted(rows[:RANKED], key=lambda r: (r[1], -r[0]))
        best: dict[tuple[int, int], tuple[float, int]] = {}
        sql = "SELECT stream, seq, type, role FROM doc WHERE id = ?"
        for ident, rank in rows[: max(BEST, 2 * question.limit)]:
            stream, seq, kind, role = self._db.execute(sql, (ident,)).fetchone()
            score = -rank * _BOOST.get(role or kind, 1.0)
            if (known := best.get((stream, seq))) is None or score > known[0]:
                best[stream, seq] = (score, ident)
        order = sorted(best.values(), key=lambda b: (-b[0], -b[1]))
        hits = [self._hit(ident, score, marks) for score, ident in order[: max(0, question.limit)]]
        (streams,) = self._db.execute("SELECT count(*) FROM stream").fetchone()
        return Found(hits, len(rows), more, streams)

    def _hit(self, ident: int, score: float, marks: list[str]) -> Hit:
        row = self._db.execute(
            "SELECT s.agent, s.session_id, s.namespace, s.path, d.seq, d.type, d.role, d.tool, d.at, d.exit, d.start, "
            "d.length, d.part FROM doc d JOIN stream s ON s.id = d.stream WHERE d.id = ?",
            (ident,),
        ).fetchone()
        told, (start, length, part) = row[:10], row[10:]
        text = ""
        try:
            line = self._disk.read(self._streams / str(told[3]), start, length)
            text = words_of(decode(line)).strip()[part * LONG : (part + 1) * LONG]
        except Exception:  # the stream changed since: the next look at it takes it in anew
            text = ""
        snippet, matches = snip(text, marks)
        agent, session_id, namespace, path, seq, kind, role, tool, at, code = told
        key = (agent, session_id, namespace, path, seq)
        return Hit(*key, kind, role, tool, at, code, snippet, matches, round(score, 4))

    def close(self) -> None:
        """Closes the file."""
        if self._db is not None:
            self._db.close()


def snip(text: str, marks: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """The part of a text around its first matches, on one line, and where the matches stand in it."""
    pattern = _pattern(marks)
    plain = _plain(text)
    first = pattern.search(plain) if pattern else None
    start = max(0, first.start() - SNIPPET // 3) if first else 0
    if start:  # not in the middle of a word, where that is near
        space = text.find(" ", start, start + 20)
        start = space + 1 if space >= 0 else start
    cut = " ".join(text[start : start + 2 * SNIPPET].split())[:SNIPPET].strip()
    cut = ("…" if start else "") + cut + ("…" if start + SNIPPET < len(text) else "")
    return cut, [m.span() for m in pattern.finditer(_plain(cut))] if pattern else []


def _pattern(marks: list[str]) -> re.Pattern[str] | None:
    if not marks:
        return None
    words = sorted({_plain(m) for m in marks}, key=len, reverse=True)
    one = "|".join(re.escape(w[:-1]) + r"[^\W_]*" if w.endswith("*") else re.escape(w) for w in words)
    return re.compile(rf"(?<![^\W_])(?:{one})(?![^\W_])")


def _plain(text: str) -> str:
    """Small letters without marks, each character at its place."""
    small = text.lower()
    if small.isascii() and len(small) == len(text):
        return small
    return "".join((unicodedata.normalize("NFD", c)[:1] or c).lower()[:1] or c for c in text)
