"""What commands share: the usual arguments, the one to ask, JSON out."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import msgspec

from asrd.client import Asker
from asrd.paths import folders
from asrd.text import inert_json


def json_argument(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="exact and stable, for programs")


def session_argument(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """A session by name."""
    words = "a session: its id, the start of it, harness:id, `last`, or `.` (the last in this folder)"
    if optional:
        parser.add_argument("session", nargs="?", metavar="SESSION", help=words)
    else:
        parser.add_argument("session", metavar="SESSION", help=words)


def asker() -> Asker:
    """The one to ask: the daemon, or the store."""
    return Asker(folders())


def here() -> str:
    """The folder the command runs in."""
    return os.getcwd()


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(inert_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()) + "\n")


def print_line(value: Any) -> None:
    """One line of JSON on stdout."""
    sys.stdout.write(inert_json(msgspec.json.encode(value).decode()) + "\n")


def short(ident: str, width: int = 13) -> str:
    """An id as lists show it, long enough to be pasted."""
    return ident if len(ident) <= width + 3 else ident[:width]
