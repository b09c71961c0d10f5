"""Account for sessions: who asked for what, what was done, and who approved it, with record ids.

    asrd audit last                          one session and all that it started
    asrd audit --since 2026-11-01            every session with records since then
    asrd audit last --format markdown        for a review; `--format json` for programs

Of each turn: what started it, who asked, each call with who or what approved it and how it ended, files changed, commits,
what was sent or written to memory. What no record says is `not recorded`; what the recording cannot see is listed.
Secrets are taken out (`--redact strict` also e-mail addresses and home folders).
"""

from __future__ import annotations

import argparse
import sys

from asrd import query
from asrd.commands._common import asker, here, json_argument, print_json, session_argument, start_of
from asrd.errors import UsageError
from asrd.paths import environment
from asrd.query import key_of, records_of
from asrd.redact import MODES, Redactor, secrets_of
from asrd.report.audit import Audited, audit, markdown, text
from asrd.text import inert


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser, optional=True)
    parser.add_argument(
        "--since", metavar="TIME", help="only what happened from then on: a day, a time, or a length such as 7d"
    )
    parser.add_argument("--until", metavar="TIME", help="only what happened before")
    parser.add_argument("--timezone", metavar="ZONE", help="of days without one (default: UTC)")
    parser.add_argument("--alone", action="store_true", help="without the sessions that this one started")
    parser.add_argument("--format", choices=("text", "markdown", "json"), default="text")
    parser.add_argument("--redact", choices=MODES, default="default")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    if not args.session and not args.since:
        raise UsageError(what="`audit` without a session or --since", command="audit")
    rows = asker().rows()
    bounds = query.selected(rows, since=start_of(args.since), until=args.until, timezone=args.timezone)
    if args.session:
        stored = [query.resolve(rows, args.session, here())]
        if not args.alone:
            stored += rows.numbered(sorted(query.below(rows, [stored[0].number])))
    else:
        stored = rows.sessions(since=bounds.since)[::-1]
    redactor = Redactor(args.redact, secrets_of(environment()))
    sessions = (Audited(key_of(s), records_of(rows, s)) for s in stored)
    answer = audit(sessions, redactor, bounds.since, bounds.until)
    if args.json or args.format == "json":
        print_json(answer)
    else:
        sys.stdout.write(inert((markdown if args.format == "markdown" else text)(answer)))
    return 0
