"""Reads what a source holds: bytes of a file of lines, rows of documents and databases. Never writes to them.

A database is read from a private copy (with its `-wal` and `-shm`), so that its owner's files are never locked,
checkpointed or changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from typing import Any

import zstandard

from asrd.errors import SourceUnreadable
from asrd.places import Found
from asrd.sources import Row, RowQuery

CHUNK = 1 << 20


def read_lines(found: Found, start: int, chunk: int = CHUNK) -> Iterator[bytes]:
    """The bytes of a file of lines from `start` on (of its decompressed content for `.zst`), in chunks.

    Raises SourceUnreadable.
    """
    try:
        with open(found.path, "rb", buffering=0) as file:
            if found.path.endswith(".zst"):
                yield from _decompressed(file, start, chunk)
                return
            file.seek(start)
            while data := file.read(chunk):
                yield data
    except OSError as error:
        raise SourceUnreadable(source=found.path, reason=error.strerror or str(error)) from error
    except zstandard.ZstdError as error:
        raise SourceUnreadable(source=found.path, reason=f"zstd: {error}") from error


def _decompressed(file: Any, start: int, chunk: int) -> Iterator[bytes]:
    with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as reader:
        left = start
        while left > 0:
            passed = reader.read(min(left, chunk))
            if not passed:
                return
            left -= len(passed)
        while data := reader.read(chunk):
            yield data


def read_rows(found: Found) -> Iterator[Row]:
    """The rows of a document, a tree of documents or a database, as they stand now. Raises SourceUnreadable."""
    kind = found.source.kind
    if kind == "document":
        yield _document(found.path, os.path.basename(found.path), os.path.basename(found.path))
    elif kind == "tree":
        yield from _tree(found.path)
    else:
        yield from _table(found)


def _document(path: str, table: str, key: str) -> Row:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SourceUnreadable(source=path, reason=error.strerror or str(error)) from error
    return Row(table, key, revision_of(data), {}, data)


def _tree(folder: str) -> Iterator[Row]:
    for base, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if not name.endswith(".json"):
                continue
            path = os.path.join(base, name)
            relative = os.path.relpath(path, folder).replace(os.sep, "/")
            if os.path.isfile(path) and not os.path.islink(path):
                yield _document(path, relative.split("/", 1)[0], relative)


def _table(found: Found) -> Iterator[Row]:
    folder = tempfile.mkdtemp(prefix="asrd-")
    try:
        copy = os.path.join(folder, "db")
        try:
            shutil.copyfile(found.path, copy)
            for suffix in ("-wal", "-shm"):
                if os.path.exists(found.path + suffix):
                    shutil.copyfile(found.path + suffix, copy + suffix)
            with sqlite3.connect(copy) as db:
                db.row_factory = sqlite3.Row
                have = {r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}
                for query in found.place.queries:
                    if query.table in have:
                        yield from rows_of(db, query)
        except (OSError, sqlite3.Error) as error:
            raise SourceUnreadable(source=found.path, reason=str(error)) from error
        finally:
            with_db = locals().get("db")
            if with_db is not None:
                with_db.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rows_of(db: sqlite3.Connection, query: RowQuery) -> Iterator[Row]:
    """The rows a query gives, each with its key and revision."""
    for row in db.execute(query.sql):
        values = dict(row)
        key = "/".join(str(values.get(k)) for k in query.key)
        rowid = values.get("rowid")
        yield Row(query.table, key, revision_of_values(values), values, start=rowid if isinstance(rowid, int) else 0)


def revision_of(data: bytes) -> str:
    """Digest of a document's content, 16 hex digits."""
    return hashlib.sha256(data).hexdigest()[:16]


def revision_of_values(values: dict[str, Any]) -> str:
    """Digest of a row's content, 16 hex digits: the same values give the same digest."""
    text = json.dumps(values, sort_keys=True, default=lambda v: v.hex() if isinstance(v, bytes) else str(v))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
