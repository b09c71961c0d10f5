"""What commands share: the usual arguments, the one to ask, JSON out."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import msgspec

from asrd import clock
from asrd.client import Asker
from asrd.paths import folders
from asrd.query import since_of
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


def bounds_arguments(parser: argparse.ArgumentParser) -> None:
    """What figures are over: `--since`, `--until`, `--timezone`, `--harness`, `--project`."""
    parser.add_argument("--since", help="from a day, a time, or a length such as 7d (included)")
    parser.add_argument("--until", help="up to a day or time (not included)")
    parser.add_argument("--timezone", help="where days begin, such as Europe/Berlin (default UTC)")
    parser.add_argument("--harness", help="only this harness")
    parser.add_argument("--project", help="only sessions of that folder")


def bounds_asked(args: argparse.Namespace) -> dict[str, Any]:
    """What figures are asked for, as `usage` and `time` take it, of `args.session` (with `args.tree`) or of all."""
    return {
        "session": args.session,
        "tree": args.tree or None,
        "cwd": here() if args.session else None,
        "since": start_of(args.since),
        "until": args.until,
        "timezone": args.timezone,
        "harness": args.harness,
        "project": args.project,
    }


def start_of(since: str | None) -> str | None:
    """`--since` as it is asked: a length of time is counted back from now."""
    return since_of(since, clock.now()) if since else None


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
