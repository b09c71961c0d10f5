"""`asrd export --format html`: the page of `asrd ui` for one session and all that it started, as one file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from asrd import query
from asrd.commands._common import asker, here, print_json
from asrd.errors import UsageError
from asrd.paths import environment
from asrd.redact import Redactor, secrets_of
from asrd.store.disk import replace
from asrd.text import inert, size


def page(args: argparse.Namespace) -> int:
    """Writes it to `args.out`, a folder or a file (`-`: stdout; None: here, named by the session). Raises UsageError."""
    from asrd.ui.page import single
    from asrd.ui.view import whole

    if len(args.sessions) != 1:
        raise UsageError(what="a page of other than one session", command="export")
    rows = asker().rows()
    stored = query.resolve(rows, args.sessions[0], here())
    held = whole(rows, stored, Redactor(args.redact, secrets_of(environment())))
    data = single(held)
    if args.out == "-":
        sys.stdout.buffer.write(data)
        return 0
    path = Path(args.out or ".")
    if path.is_dir():
        path = path / file_name(stored.row.session_id)
    replace(path, data)
    removed = sum(held["removed"].values())
    if args.json:
        told = {"schema": "asrd.export-html/1", "file": str(path), "bytes": len(data), "redaction": args.redact}
        print_json({**told, "removed": held["removed"], "sessions": len(held["sessions"])})
    else:
        words = "nothing was redacted" if args.redact == "off" else f"{removed:,} secrets removed"
        sys.stderr.write(inert(f"{path}: {size(len(data))}, sessions: {len(held['sessions']):,}, {words}\n"))
    return 0


def file_name(session: str) -> str:
    """A name for the page of a session, safe in any folder."""
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in session)[:80].strip("-")
    return (safe or "session") + ".html"
