"""The relations of one session to others, each with its evidence."""

from __future__ import annotations

import argparse

from asrd.commands._common import asker, here, json_argument, print_json, session_argument
from asrd.text import Paper


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser)
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    answer = asker().ask("lineage", {"session": args.session, "cwd": here()})
    if args.json:
        print_json(answer)
        return 0
    Paper().table(
        ("RELATION", "FROM", "TO", "CALL", "EVIDENCE", "FIELD", "STATED"),
        [
            (
                link["relation"],
                (link["from"] or {}).get("sessionId") or link["target"]["sessionId"] + " (not recorded)",
                (link["to"] or {}).get("sessionId") or link["target"]["sessionId"] + " (not recorded)",
                link["callId"],
                link["evidence"]["kind"],
                link["evidence"]["field"],
                "here" if link["statedHere"] else "there",
            )
            for link in answer["links"]
        ],
    )
    return 0
