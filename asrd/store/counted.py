"""Where the responses that count are shown: for each session, the records at which their figures stand, each once.

The figures are those of the statement that the ledger took; they are shown in the session that owns the response, at its own
statement of it, so that the sum over any sessions is what `asrd usage` says of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from msgspec import Struct

from asrd.export.view import Figures


class Counted(Struct):
    """What counts of one session: by the `seq` of its record, and what stands in no record of it."""

    by_seq: dict[int, Figures]
    elsewhere: list[Figures]


def counted(db: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Counted]:
    """What counts of these sessions (numbers of the index)."""
    found = {n: Counted({}, []) for n in numbers}
    ordered = sorted(found)
    for at in range(0, len(ordered), 500):
        part = ordered[at : at + 500]
        marks = ",".join("?" * len(part))
        sql = (
            "SELECT coalesce(c.owner, c.session), coalesce(mine.seq, CASE WHEN c.owner IS NULL OR c.owner = c.session "
            "THEN c.seq END), c.input, c.output, c.cache_read, c.cache_write, c.reasoning, c.cost, c.currency, c.measured "
            "FROM inference c LEFT JOIN inference mine ON mine.key = c.key AND mine.session = c.owner "
            f"WHERE c.counted AND (c.owner IN ({marks}) OR (c.owner IS NULL AND c.session IN ({marks}))) ORDER BY c.key"
        )
        for who, seq, i, o, cr, cw, r, cost, currency, measured in db.execute(sql, [*part, *part]):
            figures = Figures(i, o, cr, cw, r, cost, currency, int(measured), int(not measured))
            if seq is None or seq in found[who].by_seq:
                found[who].elsewhere.append(figures)
            else:
                found[who].by_seq[seq] = figures
    return found
