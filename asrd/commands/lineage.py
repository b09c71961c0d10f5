"""The relations of one session to others, each with its evidence.

Whichever side stated it: SESSION was started by, forked from, resumed from, handed off by, or sees what is in COMES FROM.
"""

from __future__ import annotations

import argparse
from typing import Any

from asrd.commands._common import asker, here, json_argument, print_json, session_argument
from asrd.text import Paper


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser)
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    answer: dict[str, Any] = asker().ask("lineage", {"session": args.session, "cwd": here()})
    if args.json:
        print_json(answer)
        return 0
    links: list[dict[str, Any]] = answer["links"]
    Paper().table(
        ("RELATION", "SESSION", "COMES FROM", "CALL", "EVIDENCE", "FIELD", "STATED", "STATE"),
        [
            (
                link["relation"],
                side(link, "from"),
                side(link, "to"),
                link["callId"],
                link["evidence"]["kind"],
                link["evidence"]["field"],
                "here" if link["statedHere"] else "there",
                link["state"] + (f": {link['why']}" if link["why"] else ""),
            )
            for link in links
        ],
        yields=(3, 5, 6, 4),
    )
    return 0


def side(link: dict[str, Any], name: str) -> str:
    """One side of a link: the session, or what it was stated to be."""
    found: dict[str, Any] | None = link[name]
    if found:
        return f"{found['agent']}:{found['sessionId']}"
    other: dict[str, Any] | None = link["to" if name == "from" else "from"]
    target = link["target"]
    if target["sessionId"] is None or (other and all(other[k] == target[k] for k in ("agent", "sessionId"))):
        return "not recorded"  # the statement's target is the other side
    return f"{target['agent']}:{target['sessionId']} (not recorded)"
