"""What pieces of work cost: sessions and intervals by the claims on them, what nobody claims, and what is unmeasured.

Claims are those of `asrd claim` (`.asrd-claims.toml` at the top of the working tree; `--claims` names another file). Every
total is over distinct sessions; what several claim is charged to none of them and stands in a row of its own. `--format`
gives Markdown, one HTML page that loads nothing, or JSON.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from asrd.claims import SessionRef
from asrd.commands._common import asker
from asrd.commands._sheets import claims_file, claims_of, format_arguments, print_sheet
from asrd.errors import SettingsError
from asrd.paths import folders
from asrd.report.work import work_sheet


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("--claims", metavar="FILE", help="the claims file (default: the one of this working tree)")
    format_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    path = claims_file(args.claims, Path.cwd(), folders())
    if args.claims is not None and not path.exists():
        raise SettingsError(path=path, key="the claims file", expected="there", found="missing")
    claims = [
        {
            "name": c.name,
            "title": c.title,
            "phases": c.phases,
            "sessions": [session(s) for s in c.sessions],
            "intervals": [{"session": session(i.session), "since": i.since, "until": i.until} for i in c.intervals],
            "receipts": c.receipts,
            "alone": c.alone,
        }
        for c in claims_of(path).values()
    ]
    print_sheet(work_sheet(asker().ask("report", {"claims": claims})), args.format)
    return 0


def session(ref: SessionRef) -> dict[str, str]:
    """A session as the question names it."""
    return {"agent": ref.agent, "sessionId": ref.session_id, "namespace": ref.namespace}
