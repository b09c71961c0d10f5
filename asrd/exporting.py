"""Brings sessions to `export`: those named, with all that they started, what counts of them, and without their secrets."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from msgspec import Struct, field

from asrd import __version__, query
from asrd.attribution import Commit
from asrd.errors import CollectorRefused, NothingFound
from asrd.export import Exported, File, Format, Given
from asrd.export.clean import clean
from asrd.lineage import SPAWN
from asrd.paths import environment
from asrd.query import Rows, Stored, known_records
from asrd.redact import Mode, Redactor, secrets_of
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
) -> Given:
    """What a form is made from, of all these sessions at once. Sessions that one of the others started stand below it."""
    return _given(
        rows, stored, parents(rows, stored), counts, Redactor(mode, secrets_of(environment())), content, licence
    )


def trees(
    rows: Rows,
    stored: list[Stored],
    counts: Callable[[list[int]], dict[int, Counted]],
    mode: Mode,
    *,
    content: bool = True,
    licence: str | None = None,
) -> Iterator[Given]:
    """As `given`, one part for each session that none of the others started: no more than one tree is held at a time."""
    above = parents(rows, stored)
    below: dict[int, list[Stored]] = {}
    for one in stored:
        root = one.number
        while root in above:
            root = above[root][0]
        below.setdefault(root, []).append(one)
    secrets = secrets_of(environment())
    for tree in below.values():
        numbers = [s.number for s in tree]
        yield _given(rows, tree, above, counts(numbers), Redactor(mode, secrets), content, licence)


def headed(rows: Rows, stored: list[Stored], mode: Mode, commits: Iterable[Commit]) -> Given:
    """What a form that speaks of a repository is made from: the sessions' headers only, and what is known of commits."""
    redactor = Redactor(mode, secrets_of(environment()))
    sessions: list[Exported] = []
    for one in stored:
        first = [clean(r, redactor) for r in islice(known_records(rows, one), 1)]
        sessions.append(Exported(one.row.agent, one.row.session_id, one.row.namespace, first, {}))
    return Given(sessions, mode, dict(sorted(redactor.removed.items())), __version__, commits=list(commits))


def parents(rows: Rows, stored: list[Stored]) -> dict[int, tuple[int, str | None]]:
    """By session (numbers of the index): which of the others started it, and the call that did, as `asrd tree` draws it."""
    numbers = {s.number for s in stored}
    found: dict[int, tuple[int, str | None]] = {}
    for edge in rows.links([s.number for s in stored]).edges():
        if edge.relation in SPAWN and edge.state == "edge" and edge.child in numbers and edge.parent in numbers:
            found.setdefault(edge.child, (edge.parent, edge.call_id))
    for one in stored:
        if one.number in found and _above(found, found[one.number][0], one.number):
            del found[one.number]
    return found


def _given(
    rows: Rows,
    stored: list[Stored],
    above: Mapping[int, tuple[int, str | None]],
    counts: Mapping[int, Counted],
    redactor: Redactor,
    content: bool,
    licence: str | None,
) -> Given:
    place = {s.number: n for n, s in enumerate(stored)}
    sessions: list[Exported] = []
    for one in stored:
        row = one.row
        cleaned = [clean(r, redactor) for r in known_records(rows, one)]
        parent, call = above.get(one.number, (None, None))
        count = counts.get(one.number, Counted({}, []))
        sessions.append(
            Exported(
                row.agent,
                row.session_id,
                row.namespace,
                cleaned,
                count.by_seq,
                count.elsewhere,
                None if parent is None else place[parent],
                call,
            )
        )
    removed = dict(sorted(redactor.removed.items()))
    return Given(sessions, redactor.mode, removed, __version__, content, licence)


class Told(Struct):
    """What went by: how many sessions, and what was taken out of them."""

    sessions: int = 0
    removed: Counter[str] = field(default_factory=Counter[str])


def files(form: Format, parts: Iterable[Given], told: Told) -> Iterator[File]:
    """The files of a form, made part by part; `told` is added to as they go by. Files of one name are parts of one only
    where the form says so (`Format.joined`): else the later one gets another name.
    """
    names: set[str] = set()
    for part in parts:
        told.sessions += len(part.sessions)
        told.removed.update(part.removed)
        for file in form.make(part):
            yield file if form.joined else File(_free_name(file.name, names), file.data)


def _free_name(name: str, names: set[str]) -> str:
    stem, dot, rest = name.partition(".")
    number = 1
    while name in names:
        number += 1
        name = f"{stem}-{number}{dot}{rest}"
    names.add(name)
    return name


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
