"""Draw sessions below those they come from: sub-agents, forks, resumes, handoffs, with own and descendant figures."""

from __future__ import annotations

import argparse
from typing import Any

from asrd import clock
from asrd.commands._common import asker, here, json_argument, print_json, session_argument, short
from asrd.plural import many
from asrd.text import COLOURED, Paper, columns, one_line, when


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser, optional=True)
    parser.add_argument("-n", "--limit", type=int, help="how many roots")
    parser.add_argument("--all", action="store_true", help="roots without anything below them too")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    answer = asker().ask(
        "tree", {"session": args.session, "cwd": here() if args.session else None, "limit": args.limit}
    )
    if args.json:
        print_json(answer)
        return 0
    paper = Paper()
    roots: list[dict[str, Any]] = answer["roots"]
    shown = [r for r in roots if r["children"] or args.session or args.all]
    for root in shown:
        draw(paper, root, "", "")
    for doubt in answer["possible"]:
        paper.line(paper.paint(f"possible: {told(doubt)}", "dim"))
    for doubt in answer["refused"]:
        paper.line(paper.paint(f"refused: {told(doubt)}", "dim"))
    if alone := len(roots) - len(shown):
        paper.line(paper.paint(f"not shown: {many(alone, 'session')} without any relation (--all)", "dim"))
    return 0


WORDS = {"spawned_by": "sub-agent", "spawned": "sub-agent", "forked_from": "fork", "resumed_from": "resumed",
         "continued_from": "handoff", "observes": "observer"}  # fmt: skip


def told(doubt: dict[str, Any]) -> str:
    """A relation that places nothing, with the reason."""
    child, parent = (short(doubt[side]["sessionId"]) if doubt[side] else "–" for side in ("child", "parent"))
    return f"{child} {doubt['relation']} {parent} ({doubt['evidence']}): {doubt['why']}"


def tokens(counted: dict[str, Any]) -> str:
    """Input and output; what no request has figures of is unknown, and not 0; "" where no request counts here."""
    if not counted["requests"]:
        return "tokens unknown" if counted["unmeasuredRequests"] else ""
    return f"{counted['inputTotal'] or 0:,} in  {counted['output'] or 0:,} out"


def draw(paper: Paper, node: dict[str, Any], first: str, rest: str) -> None:
    """One node and what is below it."""
    own, below = node["own"], node["descendants"]
    figures = tokens(own)
    if below["requests"] or below["unmeasuredRequests"]:
        figures = f"{figures}  + below {tokens(below)}".strip()
    known = own["requests"] or below["requests"]
    relation = WORDS.get(node["relation"] or "", node["relation"] or "")
    if figures and known and (own["lowerBound"] or below["lowerBound"]):
        figures += " (at least)"
    children = node["children"]
    words = [
        paper.paint(short(node["sessionId"]), "cyan"),
        paper.paint(node["agent"], "green"),
        paper.paint(relation, "blue") if relation else "",
        when(node["lastAt"], clock.now()),
        node["state"],
    ]
    line = first + "  ".join(w for w in words if w)
    title, width = node["title"] or "", paper.width or 300
    needed = columns(COLOURED.sub("", line)) + columns(figures) + 4
    if needed + min(20, columns(title)) > width:  # a narrow terminal: a line of its own
        paper.line(line)
        line, needed = rest + ("│  " if children else "   "), columns(rest) + 3 + columns(figures) + 2
    else:
        line += "  "
    told = [figures, one_line(title, max(8, min(60, width - needed)))]
    paper.line((line + "  ".join(w for w in told if w)).rstrip())
    if node["unresolvedParent"]:
        paper.line(rest + paper.paint(f"   from {node['unresolvedParent']}, which is not recorded", "dim"))
    for number, child in enumerate(children):
        final = number == len(children) - 1
        draw(paper, child, rest + ("└─ " if final else "├─ "), rest + ("   " if final else "│  "))
