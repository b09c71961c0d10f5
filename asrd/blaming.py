"""Brings a repository and the recorded edits to `attribution`."""

from __future__ import annotations

from asrd.attribution import Commit
from asrd.query import Rows


def commits(rows: Rows, folder: str, which: str, was: str | None) -> list[Commit]:
    """The commits."""
    raise NotImplementedError
