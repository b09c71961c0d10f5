"""Say what is recorded of each harness and what is not: roots, versions, sources, sessions, skips, losses, gaps.

Exit code 1 when something needs a person: an unreadable source, a damaged stream, an unknown shape, a stated loss.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import msgspec

from asrd.commands._common import asker, json_argument, print_json
from asrd.errors import NothingFound
from asrd.paths import environment, folders
from asrd.places import find_for, roots_of, unread
from asrd.plural import many
from asrd.recorders import broken, load
from asrd.store.cursors import Cursors
from asrd.text import Paper, size, when

KINDS = 24
"""Kinds of native records that are named for a person; `--json` has all."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("--all", action="store_true", help="harnesses without any trace here too")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    found = examine()
    if args.json:
        print_json({"schema": "asrd.doctor/1", **found})
    else:
        show(Paper(), found, args.all)
    return 1 if found["needsAPerson"] else 0


def examine() -> dict[str, Any]:
    """Everything doctor says, by harness, and in `needsAPerson` the sentences a person should read."""
    where, env = folders(), environment()
    sessions: list[dict[str, Any]] = []
    ask = asker()
    try:
        sessions = ask.ask("sessions.list")["sessions"]
    except NothingFound:
        pass
    cursors, accounts = {}, {}
    if where.cursors.exists():
        kept = Cursors(where.cursors)
        cursors, accounts = kept.all(), {(a.harness, a.group): a for a in kept.accounts()}
        kept.close()
    harnesses: list[dict[str, Any]] = []
    needs: list[str] = []
    spaces = {r.namespace for r in load().values() if r.namespace}
    not_followed: list[dict[str, str]] = []
    for name, recorder in load().items():
        roots = roots_of(recorder, where.home, env)
        here = [r for r in roots if os.path.isdir(r)]
        sources = find_for(recorder, here, lambda path, reason: not_followed.append({"path": path, "why": reason}))
        sources = [s for s in sources if s.source.kind != "shared"]  # no session's own file
        mine = [c for (h, _), by_name in cursors.items() if h == name for c in by_name.values() if c.kind != "shared"]
        skips: dict[str, int] = {}
        counts: dict[str, int] = {}
        for (harness, _), account in accounts.items():
            if harness == name:
                for into, text in ((skips, account.skips), (counts, account.counts)):
                    for rule, number in msgspec.json.decode(text).items():
                        into[rule] = into.get(rule, 0) + number
        space = recorder.namespace  # its sessions are named by other agents
        ours = [s for s in sessions if (s["namespace"] == space if space else s["agent"] == name)]
        ours = [s for s in ours if space or s["namespace"] not in spaces]
        versions = sorted({s["version"] for s in ours if s["version"]}, key=version_order)
        refused = {
            (c.path, c.reason)
            for (h, _), by_name in cursors.items()
            if h == name
            for c in by_name.values()
            if c.state == "unreadable"
        }
        unreadable = [{"path": path, "why": why} for path, why in sorted(refused)]
        unknown = {k: v for k, v in counts.items() if k.startswith(("unexpected:", "mistake:"))}
        one = {
            "harness": name,
            "evidence": evidence(recorder),
            "roots": [{"path": r, "there": r in here} for r in roots],
            "versions": versions,
            "versionsNotChecked": []
            if space  # they are the agents'
            else [v for v in versions if recorder.versions and not known(v, recorder.versions)],
            "sources": len(sources),
            "bytes": sum(c.size for c in mine),
            "recorded": sum(c.state in ("caught up", "torn") for c in mine),
            "torn": sum(c.state == "torn" for c in mine),
            "gone": sum(c.state == "gone" for c in mine),
            "unreadable": unreadable,
            "sessions": len(ours),
            "records": sum(s["records"] for s in ours),
            "lastAt": max((s["lastAt"] for s in ours if s["lastAt"]), default=None),
            "losses": sum(s["losses"] for s in ours),
            "gaps": sum(s["gaps"] for s in ours),
            "natives": sum(s["natives"] for s in ours),
            "unread": [
                {"pattern": u.pattern, "why": u.why, "files": files, "bytes": size}
                for u, files, size in unread(recorder, here)
            ],
            "skips": dict(sorted(skips.items(), key=lambda kv: -kv[1])),
            "unknown": unknown,
            "kept": {k.removeprefix("native:"): n for k, n in sorted(counts.items()) if k.startswith("native:")},
        }
        harnesses.append(one)
        needs += troubles(one)
    needs += [f"the recorder {name} cannot be loaded; its harness is not recorded" for name in broken]
    return {"harnesses": harnesses, "notFollowed": not_followed, "needsAPerson": needs}


def troubles(one: dict[str, Any]) -> list[str]:
    """What a person should know of a harness."""
    name = one["harness"]
    found = [f"{name}: {u['path']} cannot be read ({u['why']})" for u in one["unreadable"]]
    if one["losses"]:
        found.append(f"{name}: {many(one['losses'], 'loss')} stated (bytes seen and not convertible)")
    if one["gaps"]:
        found.append(f"{name}: {many(one['gaps'], 'gap')} stated (bytes never seen)")
    for what, number in one["unknown"].items():
        kind, _, detail = what.partition(":")
        if kind == "mistake":
            found.append(
                f"{name}: the recorder failed {number} times ({detail}); the lines are kept as losses; please report it"
            )
        else:
            found.append(
                f"{name}: {number} records of kind {detail} have no place in this version; they are kept as they are"
            )
    if one["versionsNotChecked"]:
        found.append(
            f"{name}: versions {', '.join(one['versionsNotChecked'])} are newer than what this recorder was checked against"
        )
    lacking = not one["skips"] or any(rule.endswith("-without-transcript") for rule in one["skips"])
    if one["sources"] and not one["sessions"] and one["recorded"] and lacking:
        found.append(f"{name}: {many(one['sources'], 'source')} and not one session")
    return found


def evidence(recorder: Any) -> str:
    """What a recorder was built from, in words."""
    versions = ", ".join(recorder.versions)
    return f"captured with {versions}" if recorder.evidence == "captured" and versions else f"from {recorder.evidence}"


def version_order(version: str) -> tuple[int, ...]:
    """Numbers of a version, for comparing."""
    return tuple(int(p) for p in version.replace("-", ".").split(".") if p.isdigit())


def known(version: str, checked: tuple[str, ...]) -> bool:
    """Whether a version is not newer than those that were checked."""
    return version_order(version) <= max(version_order(v) for v in checked)


def show(paper: Paper, found: dict[str, Any], everything: bool) -> None:
    """For people."""
    from asrd import clock

    now = clock.now()
    shown = [h for h in found["harnesses"] if everything or h["sources"] or h["sessions"]]
    paper.table(
        ("HARNESS", "SOURCES", "SIZE", "SESSIONS", "RECORDS", "LAST", "LOSSES", "GAPS", "VERSIONS", "EVIDENCE"),
        [
            (
                h["harness"],
                h["sources"],
                size(h["bytes"]),
                h["sessions"],
                h["records"],
                when(h["lastAt"], now),
                h["losses"],
                h["gaps"],
                ", ".join(h["versions"][-3:]) or None,
                h["evidence"],
            )
            for h in shown
        ],
        right=(1, 2, 3, 4, 6, 7),
        colours={0: "green"},
        wide=(9,),
        yields=(2, 4, 5, 1, 8),
    )
    for h in shown:
        if h["skips"]:
            rules = ", ".join(f"{rule} {number:,}" for rule, number in h["skips"].items())
            paper.line(paper.paint(f"{h['harness']} left out on purpose: {rules}", "dim"))
        if h["unread"]:
            told = ", ".join(f"{u['pattern']} {u['files']:,} ({u['why']})" for u in h["unread"])
            paper.line(paper.paint(f"{h['harness']} files not read: {told}", "dim"))
        if h["kept"]:
            kinds = sorted(h["kept"].items(), key=lambda kv: (-kv[1], kv[0]))
            more = f", and {len(kinds) - KINDS} kinds more" if len(kinds) > KINDS else ""
            told = ", ".join(f"{kind} {number:,}" for kind, number in kinds[:KINDS])
            paper.line(paper.paint(f"{h['harness']} kept as it is, with no place of its own: {told}{more}", "dim"))
    missing = [h["harness"] for h in found["harnesses"] if h not in shown]
    if missing:
        paper.line(paper.paint(f"nothing here of {', '.join(missing)}", "dim"))
    for one in found["notFollowed"][:20]:
        paper.line(paper.paint("! ", "yellow") + f"{one['path']} is not followed: {one['why']}")
    for sentence in found["needsAPerson"]:
        paper.line(paper.paint("! ", "red") + sentence)
    if not found["needsAPerson"]:
        paper.line("Nothing needs a person.")
