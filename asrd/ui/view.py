"""What the page asks: sessions, records made fit for a page, words in them, money. Reads the index and the streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, cast

import msgspec
from msgspec import Struct

from asrd import query
from asrd.errors import NoSuchRecord
from asrd.prices import List
from asrd.query import Stored, Sums
from asrd.redact import Redactor, holds_secret, mark, worth_hiding
from asrd.report.spending import priced, spending
from asrd.store.rows import IndexRows

CLIP = 2_000
"""Characters of one text that a list of records carries; the whole record is asked for when it is opened."""
FIRST_PART, PART = 200, 1_000
"""Records in the first part of a session, which is seen at once, and in those that follow."""
MOST_FOUND = 5_000
"""Records that a search names at most."""

IDS = frozenset(
    "type id at turnId nativeId messageId inferenceId callId sessionId parent supersedes sha256 phase role kind status".split()
)
"""Fields whose words tie records together: they stay as they are where they are ids in form."""


class Ref(Struct, rename="camel", frozen=True):
    """A session by its whole name."""

    agent: str
    session_id: str
    namespace: str = ""


def find(rows: IndexRows, ref: Ref) -> Stored:
    """The session. Raises NothingFound."""
    return query.exactly(rows, ref.agent, ref.session_id, ref.namespace)


def session(rows: IndexRows, ref: Ref) -> dict[str, Any]:
    """One session with its relations and all that it started, as `session.get` and `tree` say it."""
    stored = find(rows, ref)
    sums = dict(rows.usage(query.Selection(owners=[stored.number]), "session"))
    return {
        "session": query.session_json(stored, sums.get(stored.number, Sums())),
        "links": query.lineage(rows, stored),
        "children": [query.session_json(s) for s in rows.numbered(sorted(query.below(rows, [stored.number])))],
    }


def records(rows: IndexRows, stored: Stored, start: int = 0) -> Iterator[list[dict[str, Any]]]:
    """The records from `seq` start on in parts, each as a page shows it (`fit`)."""
    part: list[dict[str, Any]] = []
    most = FIRST_PART
    for line in rows.lines(stored, start):
        part.append(fit(line))
        if len(part) >= most:
            yield part
            part, most = [], PART
    yield part


def record(rows: IndexRows, ref: Ref, seq: int) -> Any:
    """One record whole, as it stands. Raises NothingFound, NoSuchRecord."""
    for line in rows.lines(find(rows, ref), max(0, seq)):
        return msgspec.json.decode(line)
    raise NoSuchRecord(session=f"{ref.agent}:{ref.session_id}", record=f"r{seq}")


def fit(line: bytes) -> dict[str, Any]:
    """A record without vendor data, its long texts cut; `clipped` says that something was cut."""
    found: dict[str, Any] = msgspec.json.decode(line)
    found.pop("_meta", None)
    if len(line) > CLIP:
        cut = False

        def clip(text: str) -> str:
            nonlocal cut
            if len(text) <= CLIP:
                return text
            cut = True
            return text[:CLIP]

        found = over(found, clip)
        if cut:
            found["clipped"] = True
    return found


def over(value: Any, change: Callable[[str], str]) -> Any:
    """The value with each text in it changed; the names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {k: over(v, change) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [over(v, change) for v in cast("list[Any]", value)]
    return value


def search(rows: IndexRows, ref: Ref, text: str) -> dict[str, Any]:
    """The `seq` of each record in whose line the text stands, small and capital letters alike; in ASCII as JSON writes it."""
    wanted = text.lower()
    ways = {msgspec.json.encode(wanted)[1:-1], wanted.encode()}
    found: list[int] = []
    stored = find(rows, ref)
    for seq, line in enumerate(rows.lines(stored, 0)):
        low = line.lower() if wanted.isascii() else line.decode("utf-8", "replace").lower().encode()
        if wanted and any(way in low for way in ways):
            found.append(seq)
            if len(found) >= MOST_FOUND:
                return {"seqs": found, "more": True}
    return {"seqs": found, "more": False}


class Spending(Struct, rename="camel", kw_only=True):
    """What figures are asked for: as `usage.report`."""

    by: str
    since: str | None = None
    until: str | None = None
    timezone: str | None = None
    harness: str | None = None
    project: str | None = None


def money(rows: IndexRows, asked: Spending, prices: List | None, today: date) -> dict[str, Any]:
    """`usage.report` with money; `prices` None: without a price list."""
    answer = spending(
        rows,
        by=asked.by,
        since=asked.since,
        until=asked.until,
        timezone=asked.timezone,
        harness=asked.harness,
        project=asked.project,
        tiers=prices.tiers() if prices else None,
        hourly=prices.hourly() if prices else None,
    )
    return priced(answer, prices, today)


# ---------------------------------------------------------------- one session as one file


def whole(rows: IndexRows, stored: Stored, redactor: Redactor) -> dict[str, Any]:
    """A session and all that it started, with every record, redacted: what the page as one file holds."""
    row = stored.row
    ref = Ref(row.agent, row.session_id, row.namespace)
    answer = session(rows, ref)
    below = rows.numbered(sorted(query.below(rows, [stored.number])))
    sessions: list[dict[str, Any]] = []
    for one in (stored, *below):
        name = Ref(one.row.agent, one.row.session_id, one.row.namespace)
        said = answer if one is stored else session(rows, name)
        sessions.append(
            {
                **cast("dict[str, Any]", redacted(said, redactor)),
                "records": [_bare(line, redactor) for line in rows.lines(one, 0)],
            }
        )
    return {
        "schema": "asrd.page/1",
        "sessions": sessions,
        "redaction": redactor.mode,
        "removed": dict(redactor.removed),
    }


def _bare(line: bytes, redactor: Redactor) -> Any:
    found: dict[str, Any] = msgspec.json.decode(line)
    found.pop("_meta", None)
    return redacted(found, redactor)


def redacted(value: Any, redactor: Redactor, name: str = "") -> Any:
    """The value without its secrets: in its texts, and where a field's name says that it holds one."""
    if isinstance(value, str):
        if name in IDS and len(value) <= 128 and value.isascii() and " " not in value:
            return value
        kind = holds_secret(name) if name and redactor.mode != "off" else None
        if kind and worth_hiding(value, kind, True):
            redactor.removed["assigned-secret"] += 1
            return mark("assigned-secret")
        return redactor(value)
    if isinstance(value, dict):
        return {k: redacted(v, redactor, k) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [redacted(v, redactor, name) for v in cast("list[Any]", value)]
    return value
