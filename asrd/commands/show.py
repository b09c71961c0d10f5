"""Show one session: what was asked, said, done.

A record that says better what an earlier one said names it ("instead of r21"): the earlier one no longer counts. Text is
folded (`--full` shows it whole); `--record rN` shows one record whole; `--json` gives the records as they stand.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import msgspec

from asrd.commands._common import asker, here, json_argument, print_json, print_line, session_argument
from asrd.errors import NoSuchRecord
from asrd.text import Paper, inert, one_line


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser)
    parser.add_argument("--record", metavar="rN", help="one record, whole")
    parser.add_argument("--full", action="store_true", help="texts and outputs whole")
    parser.add_argument("--from", dest="start", type=int, default=0, metavar="SEQ", help="from this record on")
    parser.add_argument("-n", "--limit", type=int, help="how many records")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    ask = asker()
    paper = Paper()
    if args.record:
        number = 0 if args.record == "h" else int(args.record.lstrip("r")) if args.record.lstrip("r").isdigit() else -1
        answer = ask.ask(
            "session.records", {"session": args.session, "cwd": here(), "from": max(number, 0), "limit": 1}
        )
        if number < 0 or not answer["records"]:
            raise NoSuchRecord(session=args.session, record=args.record)
        if args.json:
            print_json(answer["records"][0])
        else:
            text = msgspec.json.format(msgspec.json.encode(answer["records"][0]), indent=2).decode()
            paper.line(inert(text))
        return 0
    if args.json:
        for record in fetch(ask, args.session, args.start, args.limit):
            print_line(record)
        return 0
    calls: dict[str, str] = {}
    for record in fetch(ask, args.session, args.start, args.limit):
        show(paper, record, args.full, calls)
    return 0


def fetch(ask: Any, session: str, start: int, limit: int | None) -> Iterator[dict[str, Any]]:
    """Records from `start` on, asked for in parts."""
    given = 0
    while True:
        part = min(500, limit - given) if limit is not None else 500
        answer = ask.ask("session.records", {"session": session, "cwd": here(), "from": start, "limit": part})
        yield from answer["records"]
        given += len(answer["records"])
        start = answer["next"]
        if not answer["more"] or not answer["records"] or (limit is not None and given >= limit):
            return


SAID = ("copyOf", "supersedes")
"""What `show` says of every record, in words."""

MARKS = {"user": ("▶", "cyan"), "assistant": ("●", "green"), "system": ("○", "dim"), "developer": ("○", "dim")}


def show(paper: Paper, record: dict[str, Any], full: bool, calls: dict[str, str] | None = None) -> None:
    """One record, as a person reads it. `calls`: the tool of each call that was shown, which the results then name."""
    calls = {} if calls is None else calls
    kind = record["type"]
    ident = paper.paint(f"{record['id']:>6} ", "dim")
    width = max(40, (paper.width or 120) - 12)

    def say(mark: str, colour: str | None, head: str, text: str = "") -> None:
        copied = paper.paint(" (copy)", "dim") if record.get("copyOf") else ""
        if record.get("supersedes"):
            copied += paper.paint(f" (instead of {record['supersedes']})", "dim")
        head = one_line(head, 200)
        beside = 21 if record.get("supersedes") else 0
        body = inert(text).rstrip() if full else one_line(text, max(20, width - len(head) - beside))
        if full and "\n" in body:
            body = "\n" + "\n".join("        " + line for line in body.split("\n"))
        paper.line(f"{ident}{paper.paint(mark, colour)} {paper.paint(head, colour)}{copied}{' ' if body else ''}{body}")

    if kind == "session":
        workspace: dict[str, Any] = record.get("workspace") or {}
        roots: list[dict[str, Any]] = workspace.get("roots") or [{}]
        version = record["agent"].get("version") or "version unknown"
        say("═", "bold", f"{record['agent']['name']} {version}", f"{record['sessionId']}  {roots[0].get('path', '')}")
    elif kind == "message":
        mark, colour = MARKS.get(record["role"], ("○", None))
        if record.get("origin") not in (None, "prompt", "command", "summary") and record["role"] != "assistant":
            mark, colour = "○", "dim"
        origin = record.get("origin")
        head = record["role"] if not origin or origin == "prompt" else f"{record['role']} ({origin})"
        for block in record["content"]:
            if block["type"] == "thinking":
                say("·", "dim", "thinking", block.get("text") or block.get("summary") or "(hidden)")
            else:
                say(mark, colour, head, block.get("text") or block.get("path") or f"[{block['type']}]")
    elif kind == "tool_call":
        calls[record["callId"]] = record["name"]
        given = record["input"]
        words = given.get("command") or given.get("cmd") or given.get("file_path") or given.get("path") or given
        say(
            "▸",
            "yellow",
            inert(record["name"]),
            words if isinstance(words, str) else msgspec.json.encode(words).decode(),
        )
    elif kind == "tool_result":
        ran: dict[str, Any] = record.get("exec") or {}
        notes = [f"exit {ran['exitCode']}"] if ran.get("exitCode") is not None else []
        notes += [f"signal {ran['signal']}"] if ran.get("signal") is not None else []
        notes += ["timed out"] if ran.get("timedOut") else []
        head = inert(calls.get(record["callId"], ""))
        head += f"{' ' if head else ''}{record['status']}" + (f" ({', '.join(notes)})" if notes else "")
        content: list[dict[str, Any]] = record.get("content") or []
        text = "\n".join(b.get("text") or f"[{b['type']}]" for b in content)
        say("◂", "red" if record["status"] in ("failed", "denied") else "dim", head, text)
    elif kind == "inference":
        error, counted = wrong(record), figures(record)
        say("≈", "red" if error else "dim", str(record.get("model") or "model unknown"), error or counted or "asked")
    elif kind == "usage_total":
        say("Σ", "dim", f"total of {record['scope']}", figures(record))
    elif kind == "approval":
        tool = inert(calls.get(record.get("callId") or "", ""))
        asked, decision = (
            record["phase"] == "requested",
            str(record.get("decision") or "approval decided").replace("_", " "),
        )
        denied = decision.startswith("deny")
        head = f"{tool} {'approval requested' if asked else decision}".strip()
        told = [
            f"by {record['by']}" if record.get("by") else "",
            f"({record['policy']})" if record.get("policy") else "",
        ]
        say("?" if asked else "✗" if denied else "✓", "red" if denied else "dim", head, " ".join(told))
    elif kind == "end":
        say("■", "dim", f"ended {record['status']}", record.get("reason") or "")
    elif kind == "file_change":
        before = f"{record['fromPath']['path']} → " if record.get("fromPath") else ""
        refused = " (not applied)" if record.get("applied") is False else ""
        say("✎", "magenta", record["change"], before + record["path"]["path"] + refused)
    elif kind == "plan":
        say("☐", "blue", "plan", "; ".join(f"{i['text']} ({i.get('status') or 'pending'})" for i in record["items"]))
    elif kind == "compaction":
        sizes = [f"{n:,}" if n is not None else "?" for n in (record.get("tokensBefore"), record.get("tokensAfter"))]
        shrank = f"{' → '.join(sizes)} tokens" if sizes != ["?", "?"] else ""
        say(
            "⇥",
            "blue",
            f"compaction {record.get('trigger') or ''}".rstrip(),
            f"{shrank} {record.get('summary') or ''}".strip(),
        )
    elif kind == "capture":
        say("–", "dim", f"{record.get('facet') or record['profile']} {record['state']}", record.get("reason") or "")
    elif kind == "turn":
        words = f"{record.get('trigger') or record.get('status') or ''} {wrong(record)}".rstrip()
        say("┌" if record["phase"] == "start" else "└", "dim", f"turn {record['phase']}", words)
    elif kind == "link":
        meta: dict[str, Any] = record.get("_meta") or {}
        seen: dict[str, Any] = meta.get("dev.asrd.observed") or {}
        of: dict[str, Any] | None = seen.get("of")
        sides: list[dict[str, Any]] = [
            *([of] if of else []),
            record["target"],
        ]  # of this session, where no other is named
        told = " → ".join(f"{s['agent']} {s['sessionId']}" for s in sides)
        say("⇄", "blue", record["relation"], f"{told} ({record['evidence']['kind']})")
    elif kind in ("gap", "loss"):
        say("!", "red", kind, record["reason"])
    elif kind == "vcs":
        say("⎇", "magenta", record["action"], f"{record.get('commit') or ''} {record.get('branch') or ''}")
    else:
        rest = {
            k: v
            for k, v in record.items()
            if k not in (*("type", "seq", "id", "at", "_meta", "nativeId", "turnId"), *SAID)
        }
        meta = record.get("_meta") or {}
        vendor = {k: v for k, v in meta.items() if k not in ("dev.asrd.source", "dev.asrd.span")}
        if not rest and not vendor and "dev.asrd.source" in meta:
            say("–", "dim", "source", meta["dev.asrd.source"]["name"])  # the record only introduces it
        else:
            say("–", "dim", kind, msgspec.json.encode(rest or vendor).decode())


def figures(record: dict[str, Any]) -> str:
    """Its tokens, those that are known."""
    usage: dict[str, Any] = record.get("usage") or {}
    return "  ".join(f"{k} {v:,}" for k, v in usage.items() if isinstance(v, int))


def wrong(record: dict[str, Any]) -> str:
    """What went wrong, in the source's words; "" where nothing did."""
    error: dict[str, Any] = record.get("error") or {}
    return ": ".join(str(error[name]) for name in ("code", "message") if error.get(name))
