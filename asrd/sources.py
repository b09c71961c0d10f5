"""What a source is, and what comes out of one.

A source is a file of lines, a document that is rewritten in place, or the rows of a database. What comes out is the
same for a recorder: a `Line` or a `Row`, each with its place in the source. The place is what a record's span says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

Kind = Literal["lines", "document", "tree", "table", "shared"]
"""lines: appended to (also compressed); document: one file rewritten in place; tree: a folder of documents, each a row;
table: rows of an SQLite database; shared: a file of lines, or a database, about many sessions, each line or row of the group
it names."""

COMPRESSED = (".zst", ".zstd")
"""How the name of a file ends whose lines are compressed with Zstandard."""


class Root(Struct, frozen=True):
    """A folder a harness keeps its sessions below: `default` below the home folder, or what a variable says.

    `env` names variables in the order the harness reads them; `below` is added to a variable's value.
    """

    default: str
    env: tuple[str, ...] = ()
    below: str = ""


class RowQuery(Struct, frozen=True):
    """Rows to read from a database: `sql` gives them in a stable order; `key` names the columns that identify one.

    `table` is what the rows are called (`Row.table`); a query whose tables (`needs`, else `table`) are not all there is
    left out (older schema). A column whose name begins with `_` only orders rows: it is not part of the row.

    How a large database is followed without reading it all again, where one of these is given:
        since    a column of `sql` that only grows (sequence, update time): rows below the largest one seen are left out
        mark,    `mark` gives one value that grows with every change (`SELECT max(rowid) FROM event`); `changed` gives the
        changed  rows that are new or other since `:since`, an earlier mark, in the order and with the columns of `sql`

    `columns`: those that say what happened. Where the table or one of them is not there the schema is another one: what
    there is is read, and the difference is reported.
    """

    table: str
    sql: str
    key: tuple[str, ...]
    since: str | None = None
    needs: tuple[str, ...] = ()
    mark: str | None = None
    changed: str | None = None
    columns: tuple[str, ...] = ()


class Place(Struct, frozen=True):
    """Where sources lie below a root: a glob (`**` crosses folders), and how they are read.

    `sidecar`: a document that belongs to another source's group and never starts a session by itself.
    `arrange`: for a tree, what its documents are sorted by, from their path below the folder (None = by the path);
    a document it gives None for is not read.
    `owner`: for a shared file, the group that a line of it belongs to (None = it names none); for a shared database, the
    column of its queries that names the group. `parts`: for a shared document, what it says of which group, or of all groups
    of a folder, as bytes. Such a file makes no session: each group that has another source has its
    part of it, and reads it when it has a stream.
    """

    pattern: str
    kind: Kind = "lines"
    queries: tuple[RowQuery, ...] = ()
    sidecar: bool = False
    arrange: Callable[[str], tuple[str, ...] | None] | None = None
    owner: Callable[[bytes], str | None] | str | None = None
    parts: Callable[[bytes], list[tuple[str, bytes]]] | None = None


class Unread(Struct, frozen=True):
    """What a harness leaves below a root and is not read: a glob, and why. `asrd doctor` counts such files."""

    pattern: str
    why: str


class Source(Struct, frozen=True):
    """One source as recorders see it.

    `group`: sources with equal groups feed one recorder, in the order of `order`. `name` is neutral: it stays the same
    when the file is renamed or archived. `path` is relative to the root, with `/`.
    """

    harness: str
    group: str
    name: str
    path: str
    kind: Kind
    order: str = ""
    sidecar: bool = False


class Located(Struct, frozen=True):
    """What a recorder says of a path: the group it belongs to, its neutral name, its order in the group.

    `beside`: the path (below the root) of a sidecar that the harness writes with it and that is read first when it is
    there; a new source waits a moment for it, so that the header can say what it says.
    """

    group: str
    name: str
    order: str = ""
    beside: str = ""


class Line(Struct, frozen=True, gc=False):
    """Bytes between newlines, with their place: [start, end), newline left out."""

    start: int
    end: int
    data: bytes


class Row(Struct, frozen=True, gc=False):
    """A row, or a document of a tree: its key, its content (`values`, or `data` for a document), its revision.

    `start` is the row id, or 0; `rev` is a digest of the content, so that a rewritten row is told from an old one.
    """

    table: str
    key: str
    rev: str
    values: dict[str, Any]
    data: bytes = b""
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.data) if self.data else self.start + 1


class Oversize(Struct, frozen=True, gc=False):
    """A line longer than may be read: its place and digest, without its bytes."""

    start: int
    end: int
    sha256: str
    preview: bytes


def first_line_digest(data: bytes) -> str:
    """SHA-256 of a first line, 16 hex digits."""
    return hashlib.sha256(data).hexdigest()[:16]
