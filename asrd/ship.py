"""Brings what is recorded to a folder or an S3-compatible store: streams in parts, and tables that DuckDB and Spark read.

streams/host=H/HARNESS/NAME/DIGEST[-N]/START-END-MARK.jsonl.zst[.enc]    parts of streams: bytes [START, END), whole lines
tables/TABLE/host=H/day=YYYY-MM-DD/part.parquet                  sessions, records, requests, calls, edges: no words

- Resumable without a state of its own: what lies at the target says how far each stream was brought. A part is put
whole or not at all, and never changed. DIGEST is of the stream's header: a stream that was made anew is brought anew.
- MARK is of all bytes up to END. A stream whose first END bytes are others now was repaired: it is brought whole once more,
into DIGEST-2, DIGEST-3, …; the highest number is the stream as it is, the lower ones as it was.
- With a key, parts are encrypted here (AES-256-GCM, the part's name bound to it); tables are then left out.
- Many hosts ship to one target. Rows have the identity `key` by which equal responses and calls count once
(docs/fleet.md).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from importlib import import_module
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
NO_DAY = "unknown"
ROWS = 100_000
"""Rows of a table that are held before they are written."""


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

_PART = re.compile(r"(\d+)-(\d+)-([0-9a-f]{16})\.jsonl\.zst(?:\.enc)?")


class Lies(Struct):
    """What lies at the target of one stream as it is now: its folder, how far it was brought, and the mark of those bytes."""

    folder: str
    number: int
    end: int = 0
    mark: str = ""


def ship_streams(
    rows: IndexRows, stored: Iterable[Stored], target: Target, host: str, key: bytes | None = None
) -> Shipped:
    """Brings what streams grew by since they were brought last; one that was repaired, whole. Raises ShipUnusable."""
    found = Shipped()
    there = lying(target, f"streams/host={host}")
    for one in stored:
        first = next(rows.lines(one, 0), None)
        if first is None:
            continue
        stem = one.row.path.removesuffix(".asr.jsonl")
        base = f"streams/host={host}/{stem}/{hashlib.sha256(first).hexdigest()[:16]}"
        lies = there.get(base, Lies(base, 1))
        before = found.parts
        try:
            _bring(rows.lines(one, 0), lies, target, key, found)
        except _Repaired:
            number = lies.number + 1
            _bring(rows.lines(one, 0), Lies(f"{base}-{number}", number), target, key, found)
        found.streams += found.parts > before
    return found


def lying(target: Target, below: str) -> dict[str, Lies]:
    """What was brought before, by stream: the last time that it was begun, and how far it got."""
    found: dict[str, Lies] = {}
    for name in target.names(below):
        folder, _, last = name.rpartition("/")
        base, number = _begun(folder)
        lies = found.get(base)
        if lies is None or number > lies.number:
            lies = found[base] = Lies(folder, number)
        part = _PART.fullmatch(last)
        if number == lies.number and part is not None and int(part[2]) > lies.end:
            lies.end, lies.mark = int(part[2]), part[3]
    return found


def _begun(folder: str) -> tuple[str, int]:
    """A stream's folder as it was begun first, and which time this one is."""
    above, _, last = folder.rpartition("/")
    digest, _, again = last.partition("-")
    return f"{above}/{digest}", int(again) if again.isdigit() else 1


class _Repaired(Exception):
    """The bytes that were brought are not those of the stream any more."""


def _bring(lines: Iterator[bytes], lies: Lies, target: Target, key: bytes | None, found: Shipped) -> None:
    """Brings the lines behind those that lie there. Raises _Repaired where those are others now."""
    digest = hashlib.sha256()
    at = start = 0
    held: list[bytes] = []
    for line in lines:
        if at == lies.end and at and mark(digest, key) != lies.mark:
            raise _Repaired
        if not held:
            start = at
        digest.update(line + b"\n")
        at += len(line) + 1
        if at <= lies.end:
            continue
        if start < lies.end:
            raise _Repaired
        held.append(line + b"\n")
        if at - start >= PART:
            _put_part(start, at, held, mark(digest, key), lies, target, key, found)
            held = []
    if at < lies.end or (at == lies.end and mark(digest, key) != lies.mark):
        raise _Repaired
    if held:
        _put_part(start, at, held, mark(digest, key), lies, target, key, found)


def _put_part(
    start: int, end: int, lines: list[bytes], told: str, lies: Lies, target: Target, key: bytes | None, found: Shipped
) -> None:
    name = f"{lies.folder}/{start:012d}-{end:012d}-{told}.jsonl.zst"
    packed = zstandard.ZstdCompressor(level=9, write_checksum=True).compress(b"".join(lines))
    if key is not None:
        name += ".enc"
        packed = sealed(packed, key, name)
    target.put(name, packed)
    found.parts += 1
    found.bytes += len(packed)


def mark(digest: Any, key: bytes | None) -> str:
    """16 hex digits that tell a stream's bytes so far from others; with a key, without it they say nothing of them."""
    told = digest.digest() if key is None else hmac.digest(key, digest.digest(), "sha256")
    return told.hex()[:16]


def stream_at(target: Target, folder: str, key: bytes | None = None) -> bytes:
    """A stream as it was brought, put together from its parts. Raises ShipUnusable where one is missing or another's."""
    data = b""
    digest = hashlib.sha256()
    for name in sorted(target.names(folder)):
        if name.rpartition("/")[0] != folder:
            continue
        packed = target.get(name)
        if name.endswith(".enc"):
            if key is None:
                raise ShipUnusable(target=folder, reason="it is encrypted, and no key was given")
            packed = opened(packed, key, name)
        part = _PART.fullmatch(name.rpartition("/")[2])
        if part is None or int(part[1]) != len(data):
            raise ShipUnusable(target=folder, reason=f"the part that begins at {len(data)} is missing")
        more = zstandard.ZstdDecompressor().decompress(packed)
        digest.update(more)
        data += more
        if (len(data), mark(digest, key)) != (int(part[2]), part[3]):
            raise ShipUnusable(target=folder, reason=f"the part that begins at {int(part[1])} is not of this stream")
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
    names = [c for c in columns if c != "day"]
    places = [columns.index(c) for c in names]
    schema = arrow.schema([(c, _type(arrow, c)) for c in names])
    count = held = 0
    waiting: dict[str, list[tuple[Any, ...]]] = {}
    with tempfile.TemporaryDirectory(prefix="asrd-ship-") as folder, ExitStack() as open_files:
        writers: dict[str, Any] = {}

        def write() -> None:
            for when, some in waiting.items():
                if when not in writers:
                    path = Path(folder) / f"{len(writers)}.parquet"
                    writers[when] = open_files.enter_context(parquet.ParquetWriter(path, schema, compression="zstd"))
                values = {c: [r[p] for r in some] for c, p in zip(names, places, strict=True)}
                writers[when].write_table(arrow.table(values, schema=schema))
            waiting.clear()

        for row in rows:
            waiting.setdefault(row[day] or NO_DAY, []).append(row)
            count, held = count + 1, held + 1
            if held >= ROWS:
                write()
                held = 0
        write()
        open_files.close()
        for number, when in sorted(enumerate(writers), key=lambda one: one[1]):
            data = (Path(folder) / f"{number}.parquet").read_bytes()
            target.put(f"tables/{table}/host={host}/day={when}/part.parquet", data)
            found.parts += 1
            found.bytes += len(data)
    found.rows[table] = count


def _type(arrow: Any, column: str) -> Any:
    if column == "duration_ms":
        return arrow.float64()
    return arrow.int64() if column in _NUMBERS else arrow.string()
