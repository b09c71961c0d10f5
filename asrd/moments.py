"""Times as texts that compare: one order for whatever digits and zone a source wrote. Pure.

Records keep times as their source wrote them (RFC 3339, any number of digits: T19). As plain text `10:00:00Z` stands behind
`10:00:00.5Z`, and `12:00:00+02:00` behind both. What compares times, in Python or in SQL, does it by what is here.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_WRITTEN = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d+))?([Zz]|[+-]\d\d:?\d\d)?")


def in_order(text: str) -> str | None:
    """A time as UTC without `Z` and without zeros at its end (`2026-11-30T10:00:00.5`); None for what is no time.

    Of two times the earlier has the lesser text, equal ones have the same. A time without a zone is UTC's. Every digit is
    kept, also of nanoseconds.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        try:
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))  # a day, hours without seconds
        except ValueError:
            return None
        day, clock, fraction, zone = f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}", f"{moment:%f}", f"{moment:%z}"
    else:
        day, clock, fraction, zone = found[1], found[2], found[3], found[4]
    if zone not in ("Z", "z", "", None):
        try:
            moment = datetime.fromisoformat(f"{day}T{clock}{zone}").astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        day, clock = f"{moment:%Y-%m-%d}", f"{moment:%H:%M:%S}"
    fraction = (fraction or "").rstrip("0")
    return f"{day}T{clock}.{fraction}" if fraction else f"{day}T{clock}"


def utc(text: str | None) -> str | None:
    """A time as the index keeps it: as it was written where that is UTC's, else the same moment with `Z`; None for none."""
    if text is None or (text[-1:] == "Z" and text[10:11] == "T"):
        return text
    found = in_order(text)
    return None if found is None else found + "Z"


def before(one: str, other: str) -> bool:
    """Whether one time is before the other. Both are times as `utc` gives them."""
    if len(one) == len(other):
        return one < other
    return (in_order(one) or one) < (in_order(other) or other)


def within(at: str | None, since: str | None, until: str | None) -> bool:
    """Whether a time lies in [since, until); None = no bound. What has no time lies in no interval that has a bound."""
    if since is None and until is None:
        return True
    moment = in_order(at) if at is not None else None
    low, high = (in_order(b) if b is not None else None for b in (since, until))
    return moment is not None and (low is None or moment >= low) and (high is None or moment < high)


def sql_from(column: str, bound: str) -> tuple[str, list[str]]:
    """SQL that a time is at a bound (as `in_order` gives it) or later, with its values. `column` has times of `utc`."""
    if "." not in bound:
        return f"{column} >= ?", [bound]
    return f"({column} >= ? AND rtrim({column}, 'Z') >= ?)", [bound[:19], bound]


def sql_before(column: str, bound: str) -> tuple[str, list[str]]:
    """SQL that a time is before a bound, as `sql_from` has it: the two share no time and leave none out."""
    if "." not in bound:
        return f"{column} < ?", [bound]
    return f"({column} < ? AND rtrim({column}, 'Z') < ?)", [bound[:19] + "~", bound]
