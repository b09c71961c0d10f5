"""Brings a tree's records to `interval`: the sessions that are related to its root, or state the same, as the store has them."""

from __future__ import annotations

from typing import Any

from asrd import interval, query
from asrd.errors import UsageError
from asrd.query import Rows, records_of


def receipt(rows: Rows, ref: str, since: str | None, until: str, timezone: str | None, cwd: str | None) -> Any:
    """`interval`: the receipt of the tree below a session for [since, until). Raises NothingFound, Ambiguous, UsageError."""
    selection = query.selected(rows, since=since, until=until, timezone=timezone)
    low, high = selection.since, selection.until
    assert high is not None
    if low is not None and low >= high:
        raise UsageError(what=f"an interval that ends at {until} and begins at {since}", command="interval")
    root = query.resolve(rows, ref, cwd)
    links = rows.links([root.number])
    if others := rows.sharing(links.nodes):
        links = rows.links([root.number, *others])
    stored = {s.number: s for s in rows.numbered(sorted({root.number, *links.nodes}))}
    given = {n: interval.Recorded(links.nodes[n], records_of(rows, s)) for n, s in stored.items() if n in links.nodes}
    observed = [
        interval.Recorded(interval.Node(s.number, s.row.agent, s.row.session_id), records_of(rows, s))
        for s in rows.own()
    ]
    return interval.receipt(given[root.number], list(given.values()), observed, _z(low), _z(high) or high)


def _z(text: str | None) -> str | None:
    return None if text is None else text + "Z"
