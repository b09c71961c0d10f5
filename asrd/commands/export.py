"""Write sessions to a file for elsewhere: `--archive FILE` takes them to another machine, with their identity.

    asrd export --archive sessions.tar.zst              all that is recorded
    asrd export --archive one.tar.zst last codex:01a2   these sessions

    asrd export --format html last -o one.html          the page of `asrd ui` for this session, as one file

There, `asrd import FILE` takes it in; nothing counts twice, also where both machines have a session. An archive holds the
streams as they stand, words and all: it is as private as the store. Any tar with Zstandard reads it.

The page holds the session and all that it started, needs no server and no network, and is redacted (`--redact`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from asrd import query
from asrd.archive import export
from asrd.commands._common import asker, here, json_argument, print_json
from asrd.errors import UsageError
from asrd.redact import MODES, Redactor
from asrd.store.disk import replace
from asrd.text import size


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("sessions", nargs="*", metavar="SESSION", help="these; without one, all that is recorded")
    parser.add_argument("--archive", metavar="FILE", help="a compressed tar of whole streams, for `asrd import`")
    parser.add_argument("--format", choices=("html",), help="one session as this; html: the page of `asrd ui`")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where to (`-`: stdout); default: a file named by the session"
    )
    parser.add_argument(
        "--redact", choices=MODES, default="default", help="what a format leaves out: secrets (default)"
    )
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    if args.format == "html":
        return page(args)
    if not args.archive:
        raise UsageError(what="an export without --archive FILE", command="export")
    return archive(args)


def page(args: argparse.Namespace) -> int:
    """`--format html`."""
    from asrd.ui.page import single
    from asrd.ui.view import whole

    if len(args.sessions) != 1:
        raise UsageError(what="a page of other than one session", command="export")
    rows = asker().rows()
    stored = query.resolve(rows, args.sessions[0], here())
    held = whole(rows, stored, Redactor(args.redact))
    data = single(held)
    if args.output == "-":
        sys.stdout.buffer.write(data)
        return 0
    path = Path(args.output or file_name(stored.row.session_id))
    replace(path, data)
    removed = sum(held["removed"].values())
    if args.json:
        told = {"schema": "asrd.export-html/1", "file": str(path), "bytes": len(data), "redaction": args.redact}
        print_json({**told, "removed": held["removed"], "sessions": len(held["sessions"])})
    else:
        words = "nothing was redacted" if args.redact == "off" else f"{removed:,} secrets removed"
        sys.stderr.write(f"{path}: {len(held['sessions']):,} in all, {size(len(data))}, {words}\n")
    return 0


def file_name(session: str) -> str:
    """A name for the page of a session, safe in any folder."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in session)[:80].strip("-") + ".html"


def archive(args: argparse.Namespace) -> int:
    """`--archive`."""
    rows = asker().rows()
    if args.sessions:
        named = {s.number: s for s in (query.resolve(rows, name, here()) for name in args.sessions)}
        chosen = list(named.values())
    else:
        chosen = [*rows.sessions(), *rows.own()]
    manifest = export(rows, chosen, Path(args.archive))
    if args.json:
        print_json(msgspec.to_builtins(manifest))
    else:
        whole = sum(e.bytes for e in manifest.streams)
        packed = Path(args.archive).stat().st_size
        sys.stderr.write(f"{len(manifest.streams):,} streams, {size(whole)} in {size(packed)}: {args.archive}\n")
    return 0
