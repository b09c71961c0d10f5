"""Brings what is recorded to a folder or an S3-compatible store: streams in parts, and tables that DuckDB and Spark read.

streams/host=H/HARNESS/NAME/DIGEST/START-END.jsonl.zst[.enc]    parts of streams: bytes [START, END), whole lines
tables/TABLE/host=H/day=YYYY-MM-DD/part.parquet                  sessions, records, requests, calls, edges: no words

- Resumable without a state of its own: what lies at the target says how far each stream was brought. A part is put
whole or not at all, and never changed. DIGEST is of the stream's header: a stream that was made anew is brought anew.
- With a key, parts are encrypted here (AES-256-GCM, the part's name bound to it); tables are then left out.
- Many hosts ship to one target. Rows have the identity `key` by which equal responses and calls count once
(docs/fleet.md).
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import msgspec
import zstandard
from msgspec import Struct

from asrd.errors import ShipUnusable
from asrd.query import Stored
from asrd.store.disk import make_folder, replace
from asrd.store.rows import IndexRows

PART = 32 << 20
"""Bytes of lines that a part has at most, unless one line has more."""
MAGIC = b"ASRDE1"
TABLES = ("sessions", "records", "requests", "calls", "edges")
NO_DAY = "unknown"


class Target(Protocol):
    """Where things are put, by name."""

    def put(self, name: str, data: bytes) -> None:
        """Puts one whole thing in its place."""
        ...

    def names(self, below: str) -> Iterator[str]:
        """The names of what lies below a name."""
        ...

    def get(self, name: str) -> bytes:
        """One thing."""
        ...


class FolderTarget:
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, data: bytes) -> None:
        """Puts one whole file, for its owner only."""
        path = self.folder / name
        make_folder(path.parent)
        replace(path, data)

    def names(self, below: str) -> Iterator[str]:
        """The files below a name."""
        for path in sorted((self.folder / below).rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                yield path.relative_to(self.folder).as_posix()

    def get(self, name: str) -> bytes:
        """One file."""
        return (self.folder / name).read_bytes()


class ObjectTarget:
    """A store that obstore knows by its URL (`s3://bucket/prefix`); keys and region come from the environment (`AWS_…`)."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError as error:
            raise ShipUnusable(target=url, reason="it needs the package obstore (pip install 'asrd[ship]')") from error
        self.url = url
        self._api: Any = obstore
        options: Any = (
            {"client_options": {"allow_http": True}}
            if os.environ.get("AWS_ENDPOINT_URL", "").startswith("http:")
            else {}
        )
        try:
            self._store: Any = from_url(url, **options)
        except Exception as error:  # obstore's errors share no base that is not Exception
            raise ShipUnusable(target=url, reason=str(error).splitlines()[0]) from error

    def _do(self, name: str, *words: Any) -> Any:
        try:
            return getattr(self._api, name)(self._store, *words)
        except Exception as error:
            raise ShipUnusable(target=self.url, reason=str(error).splitlines()[0]) from error

    def put(self, name: str, data: bytes) -> None:
        """Puts one whole object."""
        self._do("put", name, data)

    def names(self, below: str) -> Iterator[str]:
        """The objects below a name."""
        for batch in self._do("list", below):
            yield from (one["path"] for one in batch)

    def get(self, name: str) -> bytes:
        """One object."""
        return bytes(self._do("get", name).bytes())


def target_of(text: str) -> Target:
    """A target by its URL or path. Raises ShipUnusable."""
    if "://" in text and not text.startswith("file://"):
        return ObjectTarget(text)
    return FolderTarget(Path(text.removeprefix("file://")))


class Shipped(Struct, rename="camel"):
    """What was brought: streams with something new, parts, their bytes (as they lie there), rows by table."""

    streams: int = 0
    parts: int = 0
    bytes: int = 0
    rows: dict[str, int] = {}


# ---------------------------------------------------------------- streams


def ship_streams(
    rows: IndexRows, stored: Iterable[Stored], target: Target, host: str, key: bytes | None = None
) -> Shipped:
    """Brings what streams grew by since they were brought last. Raises ShipUnusable."""
    found = Shipped()
    ends: dict[str, int] = {}
    for name in target.names(f"streams/host={host}"):
        folder, _, last = name.rpartition("/")
        end = last.partition(".")[0].partition("-")[2]
        if end.isdigit():
            ends[folder] = max(ends.get(folder, 0), int(end))
    for one in stored:
        lines = rows.lines(one, 0)
        first = next(lines, None)
        if first is None:
            continue
        stem = one.row.path.removesuffix(".asr.jsonl")
        folder = f"streams/host={host}/{stem}/{hashlib.sha256(first).hexdigest()[:16]}"
        before = found.parts
        for start, data in _parts(first, lines, ends.get(folder, 0)):
            name = f"{folder}/{start:012d}-{start + len(data):012d}.jsonl.zst"
            packed = zstandard.ZstdCompressor(level=9, write_checksum=True).compress(data)
            if key is not None:
                name += ".enc"
                packed = sealed(packed, key, name)
            target.put(name, packed)
            found.parts += 1
            found.bytes += len(packed)
        found.streams += found.parts > before
    return found


def _parts(first: bytes, lines: Iterator[bytes], have: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines from a place on, in parts with where they begin."""
    at = 0
    held: list[bytes] = []
    start = size = 0
    for line in _chained(first, lines):
        end = at + len(line) + 1
        if end > have:
            if not held:
                start = at
            held.append(line + b"\n")
            size += len(line) + 1
            if size >= PART:
                yield start, b"".join(held)
                held, size = [], 0
        at = end
    if held:
        yield start, b"".join(held)


def _chained(first: bytes, lines: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from lines


def stream_at(target: Target, folder: str, key: bytes | None = None) -> bytes:
    """A stream as it was brought, put together from its parts. Raises ShipUnusable where a part is missing."""
    data = b""
    for name in sorted(target.names(folder)):
        packed = target.get(name)
        if name.endswith(".enc"):
            if key is None:
                raise ShipUnusable(target=folder, reason="it is encrypted, and no key was given")
            packed = opened(packed, key, name)
        start = int(name.rpartition("/")[2].partition("-")[0])
        if start != len(data):
            raise ShipUnusable(target=folder, reason=f"the part that begins at {len(data)} is missing")
        data += zstandard.ZstdDecompressor().decompress(packed)
    return data


def read_key(path: str) -> bytes:
    """A key of 32 bytes, as 64 hex digits in a file. Raises ShipUnusable."""
    try:
        key = bytes.fromhex(Path(path).read_text().strip())
    except (OSError, ValueError) as error:
        raise ShipUnusable(target=path, reason="it holds no key of 64 hex digits") from error
    if len(key) != 32:
        raise ShipUnusable(target=path, reason="it holds no key of 64 hex digits")
    return key


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise ShipUnusable(target="this", reason="it needs cryptography (pip install 'asrd[ship]')") from error
    return AESGCM(key)


def sealed(data: bytes, key: bytes, name: str) -> bytes:
    """Encrypted (AES-256-GCM, random nonce); the name is bound to it."""
    nonce = os.urandom(12)
    return MAGIC + nonce + _cipher(key).encrypt(nonce, data, name.encode())


def opened(data: bytes, key: bytes, name: str) -> bytes:
    """Decrypted. Raises ShipUnusable for another key, another name, or what was changed."""
    try:
        return _cipher(key).decrypt(data[6:18], data[18:], name.encode())
    except Exception as error:  # cryptography's InvalidTag
        raise ShipUnusable(target=name, reason="the key does not open it") from error


# ---------------------------------------------------------------- tables

_SESSION = "s.agent, s.session_id, s.namespace"
_FACTS = (
    "i.key, i.seq, i.at, i.copy_of, s.scope = 'secondary' AS secondary, i.counted, o.session_id AS owner_session_id, "
    "substr(i.at, 1, 10) AS day"
)
_QUERIES = {
    "sessions": f"SELECT {_SESSION}, s.version, s.scope, s.authority, s.started_at, s.first_at, s.last_at, s.cwd, s.branch, "
    "s.model, s.parent_agent, s.parent_session, s.parent_namespace, s.parent_relation, s.turns, s.prompts, s.messages, s.calls, "
    "s.failed, s.edits, s.commits, s.compactions, s.copies, s.gaps, s.losses, s.records, s.bytes, s.ended, s.lower_bound, "
    "substr(coalesce(s.started_at, s.first_at), 1, 10) AS day FROM session s ORDER BY s.agent, s.session_id, s.namespace",
    "requests": f"SELECT {_SESSION}, {_FACTS}, i.model, i.provider, i.effort, i.turn, i.input, i.output, i.cache_read, "
    "i.cache_write, i.reasoning, i.cost, i.currency, i.measured, i.duration_ms, i.ambiguous FROM inference i "
    "JOIN session s ON s.id = i.session LEFT JOIN session o ON o.id = i.owner ORDER BY i.key, i.session",
    "calls": f"SELECT {_SESSION}, {_FACTS}, i.call_id, i.turn, i.name, i.kind, i.result_seq, i.result_at, i.status, i.exit_code "
    "FROM call i JOIN session s ON s.id = i.session LEFT JOIN session o ON o.id = i.owner ORDER BY i.key, i.session",
    "edges": f"SELECT {_SESSION}, l.seq, l.relation, l.agent AS target_agent, l.session_id AS target_session, "
    "l.namespace AS target_namespace, l.call_id, l.kind AS evidence, l.field, "
    "substr(coalesce(s.started_at, s.first_at), 1, 10) AS day FROM link l JOIN session s ON s.id = l.session "
    "UNION ALL SELECT s.agent, s.session_id, s.namespace, 0, s.parent_relation, s.parent_agent, s.parent_session, "
    "s.parent_namespace, s.parent_call, s.parent_evidence, NULL, substr(coalesce(s.started_at, s.first_at), 1, 10) "
    "FROM session s WHERE s.parent_session IS NOT NULL",
}
_NUMBERS = frozenset(
    "turns prompts messages calls failed edits commits compactions copies gaps losses records bytes seq secondary counted input "
    "output cache_read cache_write reasoning measured ambiguous result_seq exit_code".split()
)
_RECORDS = (
    "agent",
    "session_id",
    "namespace",
    "seq",
    "id",
    "type",
    "at",
    "turn_id",
    "copy_of",
    "supersedes",
    "bytes",
    "day",
)


class _Head(Struct, rename="camel"):
    type: str
    seq: int
    id: str
    at: str | None = None
    turn_id: str | None = None
    copy_of: dict[str, Any] | None = None
    supersedes: str | None = None


_head = msgspec.json.Decoder(_Head)


def ship_tables(
    db: sqlite3.Connection, rows: IndexRows, stored: Iterable[Stored], target: Target, host: str
) -> Shipped:
    """Brings the tables, whole, by day. They hold no words. Raises ShipUnusable where pyarrow is missing."""
    found = Shipped()
    for table, sql in _QUERIES.items():
        cursor = db.execute(sql)
        columns = [d[0] for d in cursor.description]
        _put(found, target, host, table, columns, (tuple(r) for r in cursor))
    _put(found, target, host, "records", list(_RECORDS), _records(rows, stored))
    return found


def _records(rows: IndexRows, stored: Iterable[Stored]) -> Iterator[tuple[Any, ...]]:
    for one in stored:
        row = one.row
        for line in rows.lines(one, 0):
            try:
                head = _head.decode(line)
            except msgspec.MsgspecError:  # of a later version
                continue
            copy = (head.copy_of or {}).get("sessionId")
            day = (head.at or row.started_at or row.first_at or "")[:10] or None
            names = (row.agent, row.session_id, row.namespace)
            yield (*names, head.seq, head.id, head.type, head.at, head.turn_id, copy, head.supersedes, len(line), day)


def _put(
    found: Shipped, target: Target, host: str, table: str, columns: list[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ShipUnusable(target=table, reason="tables need pyarrow (pip install 'asrd[ship]')") from error
    day = columns.index("day")
    by_day: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        by_day.setdefault(row[day] or NO_DAY, []).append(row)
    names = [c for c in columns if c != "day"]
    schema = arrow.schema([(c, _type(arrow, c)) for c in names])
    for when, some in sorted(by_day.items()):
        values = {c: [r[columns.index(c)] for r in some] for c in names}
        out = BytesIO()
        parquet.write_table(arrow.table(values, schema=schema), out, compression="zstd")
        target.put(f"tables/{table}/host={host}/day={when}/part.parquet", out.getvalue())
        found.parts += 1
        found.bytes += len(out.getvalue())
    found.rows[table] = sum(map(len, by_day.values()))


def _type(arrow: Any, column: str) -> Any:
    if column == "duration_ms":
        return arrow.float64()
    return arrow.int64() if column in _NUMBERS else arrow.string()
