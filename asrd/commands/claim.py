"""Claim sessions for a piece of work, in a plain file that can be kept in git (`asrd report` reads it).

`asrd claim NAME --session REF…` adds to the claim of that name; claiming the same again changes nothing. With
`--interval SINCE/UNTIL` only what the sessions (and what they spawned) did between two times is claimed, SINCE included, UNTIL not.
A session brings what it spawned, unless `--alone`. `--list` prints the claims, `--remove` takes back: the sessions that are
named, or the whole claim. The file is `.asrd-claims.toml` at the top of the working tree (else `claims.toml` beside asrd's
settings); it may be edited by hand, and what is not changed stays as it stands.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from asrd import clock
from asrd.claims import Claim, ClaimsUnreadable, IntervalRef, SessionRef, with_claim, without_claim
from asrd.commands._common import asker, here, print_json, short
from asrd.commands._sheets import claims_file, claims_of, refused, text_of
from asrd.errors import UsageError
from asrd.paths import folders
from asrd.plural import many
from asrd.query import bound, since_of
from asrd.store.disk import replace
from asrd.text import Paper, inert


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="the piece of work, such as session-051")
    parser.add_argument("--session", nargs="+", action="extend", default=[], metavar="REF", help="sessions it claims")
    parser.add_argument("--interval", metavar="SINCE/UNTIL", help="claim only this time of them")
    parser.add_argument("--receipt", nargs="+", action="extend", default=[], metavar="NAME", help="receipts it claims")
    parser.add_argument("--title", help="what it is about")
    parser.add_argument("--phase", nargs="+", action="extend", default=[], metavar="PHASE", help="its phases, in order")
    parser.add_argument("--alone", action="store_true", help="without what the sessions spawned")
    parser.add_argument("--list", action="store_true", help="print the claims")
    parser.add_argument("--remove", action="store_true", help="take back the named sessions, or the claim")
    parser.add_argument("--file", metavar="FILE", help="the claims file")
    parser.add_argument("--json", action="store_true", help="exact and stable, for programs")


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    path = claims_file(args.file, Path.cwd(), folders())
    if args.list:
        listed(path, args.json)
        return 0
    if not args.name:
        raise UsageError(what="a claim without a name", command="claim")
    text, claims = text_of(path), claims_of(path)
    old = claims.get(args.name)
    sessions = [session_of(ref) for ref in args.session]
    intervals = [IntervalRef(s, *interval_of(args.interval)) for s in sessions] if args.interval else []
    named = bool(sessions or args.receipt)
    try:
        if args.remove and not named:
            changed = without_claim(text, args.name)
        elif args.remove:
            claim = old or Claim(name=args.name)
            claim.intervals = [i for i in claim.intervals if i not in intervals]
            claim.sessions = [s for s in claim.sessions if args.interval or s not in sessions]
            claim.receipts = [r for r in claim.receipts if r not in args.receipt]
            changed = with_claim(text, claim) if old else text
        else:
            claim = old or Claim(name=args.name)
            claim.title = args.title if args.title is not None else claim.title
            claim.phases = args.phase or claim.phases
            claim.alone = claim.alone or args.alone
            claim.sessions = joined(claim.sessions, [] if args.interval else sessions)
            claim.intervals = joined(claim.intervals, intervals)
            claim.receipts = joined(claim.receipts, args.receipt)
            changed = (
                with_claim(text, claim) if args.name not in claims or claim != claims_of(path)[args.name] else text
            )
    except ClaimsUnreadable as error:
        raise refused(path, error) from error
    if changed != text:
        replace(path, changed.encode())
    now = claims_of(path).get(args.name)
    if args.json:
        print_json({"schema": "asrd.claims/1", "file": str(path), "claims": [told(now)] if now else []})
    else:
        words = "no longer there" if now is None else summary(now)
        sys.stderr.write(inert(f"{args.name}: {words} ({path}).\n"))
    return 0


def joined(old: list[Any], new: list[Any]) -> list[Any]:
    """Both, each once, in order."""
    return list(dict.fromkeys([*old, *new]))


def session_of(ref: str) -> SessionRef:
    """The recorded session a person names. Raises NothingFound, Ambiguous."""
    found: dict[str, Any] = asker().ask("session.get", {"session": ref, "cwd": here()})["session"]
    return SessionRef(found["agent"], found["sessionId"], found["namespace"] or "")


def interval_of(text: str) -> tuple[str, str]:
    """`SINCE/UNTIL` as two times in UTC. Raises UsageError."""
    since, slash, until = text.partition("/")
    low, high = (bound(since_of(t, clock.now())) for t in (since, until)) if slash and since and until else (None, None)
    if low is None or high is None or low >= high:
        raise UsageError(what=f"the interval {text} (SINCE/UNTIL, the first before the second)", command="claim")
    return f"{low}Z", f"{high}Z"


def summary(claim: Claim) -> str:
    """What a claim claims, in words."""
    parts = [
        many(len(items), word)
        for items, word in ((claim.sessions, "session"), (claim.intervals, "interval"), (claim.receipts, "receipt"))
        if items
    ]
    return ", ".join(parts) or "claims nothing"


def told(claim: Claim) -> dict[str, Any]:
    """A claim as JSON values."""
    return {
        "name": claim.name,
        "title": claim.title,
        "phases": claim.phases,
        "alone": claim.alone,
        "sessions": [named(s) for s in claim.sessions],
        "intervals": [{**named(i.session), "since": i.since, "until": i.until} for i in claim.intervals],
        "receipts": claim.receipts,
    }


def named(ref: SessionRef) -> dict[str, Any]:
    """A session as JSON values."""
    return {"agent": ref.agent, "sessionId": ref.session_id, "namespace": ref.namespace or None}


def listed(path: Path, as_json: bool) -> None:
    """The claims of a file on stdout."""
    claims = claims_of(path)
    if as_json:
        print_json({"schema": "asrd.claims/1", "file": str(path), "claims": [told(c) for c in claims.values()]})
        return
    rows: list[tuple[Any, ...]] = []
    for c in claims.values():
        what = [f"{s.agent}:{short(s.session_id)}" for s in c.sessions]
        what += [f"{i.session.agent}:{short(i.session.session_id)} {i.since}/{i.until}" for i in c.intervals]
        rows.append((c.name, c.title or "", c.phase_count, ", ".join([*what, *c.receipts])))
    Paper().table(("NAME", "TITLE", "PHASES", "CLAIMS"), rows, right=(2,), colours={0: "cyan"}, wide=(3, 1))
