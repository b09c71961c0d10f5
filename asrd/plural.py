"""Numbers of things in words, for whatever says some: pages, reports, commands. Pure."""

from __future__ import annotations


def many(number: int, thing: str) -> str:
    """How many of something: `1 session`, `2 sessions`."""
    return f"{number:,} {thing}" + ("" if number == 1 else "es" if thing.endswith("ss") else "s")
