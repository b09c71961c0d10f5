"""Brings sessions to `export`: those named, with all that they started, what counts of them, and without their secrets."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterable

from asrd import __version__, query
from asrd.attribution import Commit
from asrd.errors import CollectorRefused, NothingFound
from asrd.export import Exported, File, Given
from asrd.export.clean import clean
from asrd.handing import records_of, secrets_here
from asrd.lineage import SPAWN
from asrd.query import Rows, Stored
from asrd.redact import Mode, Redactor
from asrd.store.counted import Counted

TIMEOUT = 30.0
"""Seconds a collector may take to answer."""


def chosen(rows: Rows, refs: list[str], cwd: str | None, alone: bool) -> list[Stored]:
    """The sessions named (none = all), each followed by all that it started. Raises NothingFound, Ambiguous."""
    if not refs:
        found = rows.sessions()[::-1]
        if not found:
            raise NothingFound(query="anything")
        return found
    named = [query.resolve(rows, ref, cwd) for ref in refs]
    numbers = list(dict.fromkeys(s.number for s in named))
    more = set[int]() if alone else query.below(rows, numbers)
    order = [*numbers, *sorted(more - set(numbers))]
    stored = {s.number: s for s in rows.numbered(order)}
    return [stored[n] for n in order]


def given(
    rows: Rows,
    stored: list[Stored],
    counts: dict[int, Counted],
    mode: Mode,
    *,
    content: bool = True,
    licence: str | None = None,
    commits: Iterable[Commit] = (),
) -> Given:
    """What a form is made from. Sessions that one of the others started, by the edges that `asrd tree` draws, stand below it."""
    redactor = Redactor(mode, secrets_here())
    place = {s.number: n for n, s in enumerate(stored)}
    parents: dict[int, tuple[int, str | None]] = {}
    for edge in rows.links([s.number for s in stored]).edges():
        if edge.relation in SPAWN and edge.state == "edge" and edge.child in place and edge.parent in place:
            parents.setdefault(place[edge.child], (place[edge.parent], edge.call_id))
    sessions: list[Exported] = []
    for n, one in enumerate(stored):
        row = one.row
        records = [clean(r, redactor) for r in records_of(rows, one)]
        parent, call = parents.get(n, (None, None))
        if parent is not None and _above(parents, parent, n):
            parent, call = None, None
        count = counts.get(one.number, Counted({}, []))
        sessions.append(
            Exported(row.agent, row.session_id, row.namespace, records, count.by_seq, count.elsewhere, parent, call)
        )
    removed = dict(sorted(redactor.removed.items()))
    return Given(sessions, mode, removed, __version__, content, licence, list(commits))


def _above(parents: dict[int, tuple[int, str | None]], start: int, child: int) -> bool:
    """Whether `child` is above `start`, which would make a ring."""
    seen: set[int] = set()
    while start in parents and start not in seen:
        seen.add(start)
        start = parents[start][0]
        if start == child:
            return True
    return False


def send(files: Iterable[File], url: str) -> int:
    """Sends OTLP/JSON to a collector (OTLP/HTTP, `/v1/traces`); gives how many requests were taken. Raises CollectorRefused."""
    target = url if url.rstrip("/").endswith("/v1/traces") else url.rstrip("/") + "/v1/traces"
    if not target.startswith(("http://", "https://")):
        raise CollectorRefused(url=url, reason="it is no http or https address")
    sent = 0
    for file in files:
        for line in file.data.splitlines():
            request = urllib.request.Request(
                target, data=line, headers={"Content-Type": "application/json"}, method="POST"
            )
            try:
                with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                    answer.read()
            except (urllib.error.URLError, OSError) as error:
                raise CollectorRefused(url=url, reason=str(error)) from error
            sent += 1
    return sent
