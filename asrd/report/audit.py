"""What was done, at whose asking, and who approved it: an account of sessions for review, with the record of each statement.

Only what records say. An action without a recorded approval has none here (`approvals` is empty): that does not mean that
nobody was asked. What the recording could not see is listed beside (`unseen`), so that silence can be judged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from asrd import moments
from asrd.export.view import standing, text_of
from asrd.handoff.render import code
from asrd.handoff.view import command_of, path_of, task_of
from asrd.plural import many
from asrd.recorders.base import StreamKey
from asrd.records import (
    TYPE_NAMES,
    AnyRecord,
    Approval,
    Capture,
    End,
    Evidence,
    FileChange,
    Gap,
    LineageParent,
    Link,
    Loss,
    MemoryWrite,
    Message,
    MessageSent,
    Place,
    Session,
    ToolCall,
    ToolResult,
    Turn,
    VcsAction,
)
from asrd.redact import Redactor

SCHEMA = "asrd.audit/1"
LONGEST = 2_000
"""Characters of a prompt, a command or a message that the account quotes; what is left out is counted."""


class Audited(Struct):
    """One session to account for: its name and its records, whole."""

    key: StreamKey
    records: list[AnyRecord]


def audit(sessions: Iterable[Audited], redactor: Redactor, since: str | None = None, until: str | None = None) -> Any:
    """The account, as `asrd.audit/1`. With `since`, `until` (RFC 3339 UTC, half-open): only what has a time in between.

    Each session is let go of when it is accounted for: of all of them only the accounts are held.
    """
    accounts = [a for one in sessions if (a := _account(one, redactor, since, until))["turns"] or since is None]
    total: Counter[str] = Counter()
    approved: Counter[str] = Counter()
    for account in accounts:
        for turn in account["turns"]:
            total["turns"] += turn["turnId"] is not None or turn["record"] is not None
            total["prompts"] += sum(a["origin"] in ("prompt", "command") for a in turn["asked"])
            for action in turn["actions"]:
                total[action["did"]] += action.get("applied") is not False
                approved[_approver(action)] += action["did"] == "call"
    return {
        "schema": SCHEMA,
        "since": since,
        "until": until,
        "redaction": {"mode": redactor.mode, "removed": dict(sorted(redactor.removed.items()))},
        "totals": {
            "sessions": len(accounts),
            "turns": total["turns"],
            "prompts": total["prompts"],
            "calls": total["call"],
            "fileChanges": total["file_change"],
            "vcs": total["vcs"],
            "sent": total["message_sent"],
            "memoryWrites": total["memory_write"],
            "callsByApprover": dict(sorted((k, v) for k, v in approved.items() if v)),
        },
        "sessions": accounts,
    }


def _approver(action: dict[str, Any]) -> str:
    """Who decided on a call: `human`, `policy`, `harness`, `agent`, `unnamed`, or `not recorded`."""
    decided = [a for a in action.get("approvals", ()) if a["phase"] == "decided"]
    return "not recorded" if not decided else decided[-1]["by"] or "unnamed"


class _Quoter:
    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor

    def __call__(self, text: str | None) -> dict[str, Any] | None:
        if text is None:
            return None
        text = self.redactor(text)
        left = max(0, len(text) - LONGEST)
        return {"text": text[:LONGEST], "leftOut": left} if left else {"text": text}

    def place(self, place: Place | None) -> str | None:
        return None if place is None else self.redactor(place.path)


def _account(one: Audited, redactor: Redactor, since: str | None, until: str | None) -> dict[str, Any]:
    quote = _Quoter(redactor)
    records = [r for r in standing(one.records) if r.copy_of is None]
    header = one.records[0] if one.records and isinstance(one.records[0], Session) else None
    turns: dict[str | None, dict[str, Any]] = {}
    order: list[dict[str, Any]] = []
    calls: dict[str, dict[str, Any]] = {}
    unseen: list[dict[str, Any]] = []
    ended: dict[str, Any] | None = None
    waiting: dict[str, list[Approval]] = {}
    """Approvals whose call comes after them, or never."""
    current: str | None = None

    def turn_of(record: AnyRecord) -> dict[str, Any]:
        ident = record.turn_id or current
        found = turns.get(ident)
        if found is None:
            found = turns[ident] = {
                "turnId": ident,
                "record": None,
                "at": None,
                "trigger": None,
                "asked": [],
                "status": None,
                "ended": None,
                "actions": [],
            }
            order.append(found)
        return found

    def within(record: AnyRecord) -> bool:
        return moments.within(record.at, since, until)

    for record in records:
        if isinstance(record, Turn):
            if record.phase == "start":
                current = record.turn_id
                if within(record):
                    turn = turn_of(record)
                    turn.update(record=record.id, at=record.at, trigger=record.trigger)
            else:
                if record.turn_id in turns:
                    turns[record.turn_id].update(status=record.status, ended={"record": record.id, "at": record.at})
                current = None
        elif isinstance(record, Approval | ToolResult | FileChange) and record.call_id in calls:
            _add(calls[record.call_id], record, quote)
            if isinstance(record, FileChange) and within(record):
                turn_of(record)["actions"].append(_changed(record, quote))
        elif isinstance(record, Gap | Loss):
            unseen.append({"record": record.id, "what": TYPE_NAMES[type(record)], "reason": record.reason})
        elif isinstance(record, Capture):
            facet = f"{record.profile}.{record.facet}" if record.facet else record.profile
            unseen.append(
                {"record": record.id, "what": f"{facet}: {record.state}", "reason": quote_text(quote, record.reason)}
            )
        elif isinstance(record, End):
            ended = {"record": record.id, "status": record.status, "reason": quote_text(quote, record.reason)}
        elif not within(record):
            continue
        elif isinstance(record, Message):
            if record.role == "user" and record.origin in (None, "prompt", "command", "agent"):
                turn_of(record)["asked"].append(
                    {
                        "record": record.id,
                        "at": record.at,
                        "author": record.author,
                        "origin": record.origin,
                        "said": quote(text_of(record.content)),
                        "blocks": len(record.content),
                    }
                )
        elif isinstance(record, ToolCall):
            action = calls[record.call_id] = {
                "did": "call",
                "record": record.id,
                "at": record.at,
                "callId": record.call_id,
                "tool": redactor(record.name),
                "kind": record.kind,
                "command": quote(command_of(record, None)),
                "path": None if (path := path_of(record)) is None else redactor(path),
                "task": quote(task_of(record)),
                "input": quote(msgspec.json.encode(record.input).decode()),
                "approvals": [],
                "result": None,
                "fileChanges": [],
            }
            for approval in waiting.pop(record.call_id, ()):
                _add(action, approval, quote)
            turn_of(record)["actions"].append(action)
        elif isinstance(record, FileChange):
            turn_of(record)["actions"].append(_changed(record, quote))
        elif isinstance(record, VcsAction):
            if record.action != "state":
                turn_of(record)["actions"].append(
                    {
                        "did": "vcs",
                        "record": record.id,
                        "at": record.at,
                        "callId": record.call_id,
                        "action": record.action,
                        "commit": record.commit,
                        "branch": record.branch,
                        "evidence": record.evidence,
                    }
                )
        elif isinstance(record, MessageSent | MemoryWrite):
            turn_of(record)["actions"].append(
                {
                    "did": TYPE_NAMES[type(record)],
                    "record": record.id,
                    "at": record.at,
                    "callId": record.call_id,
                    "channel": record.channel,
                    "target": None if record.target is None else redactor(record.target),
                    "content": quote(text_of(record.content)),
                }
            )
        elif isinstance(record, Approval):
            waiting.setdefault(record.call_id or "", []).append(record)
        elif isinstance(record, ToolResult):
            ran = record.exec
            turn_of(record)["actions"].append(
                {
                    "did": "result",
                    "record": record.id,
                    "at": record.at,
                    "callId": record.call_id,
                    "status": record.status,
                    "exitCode": ran.exit_code if ran else None,
                    "command": quote(ran.command if ran else None),
                }
            )
    for approval in (a for some in waiting.values() for a in some):
        turn_of(approval)["actions"].append({"did": "approval", "callId": approval.call_id, **_approval(approval)})
    return {
        "agent": one.key.agent,
        "sessionId": one.key.session_id,
        "namespace": one.key.namespace or None,
        "record": header.id if header else None,
        "version": header.agent.version if header else None,
        "startedAt": header.started_at if header else None,
        "folder": redactor(header.workspace.roots[0].path)
        if header and header.workspace and header.workspace.roots
        else None,
        "startedBy": _started_by(header, records),
        "turns": [t for t in order if t["asked"] or t["actions"] or t["record"]],
        "ended": ended,
        "unseen": unseen,
        "copies": sum(r.copy_of is not None for r in one.records),
    }


def quote_text(quote: _Quoter, text: str | None) -> str | None:
    """A short text, redacted."""
    return None if text is None else quote.redactor(text)[:LONGEST]


def _started_by(header: Session | None, records: Iterable[AnyRecord]) -> dict[str, Any] | None:
    if header is not None and header.lineage.parent is not None:
        return _parent(header.lineage.parent, header.lineage.relation, header.lineage.evidence, header.id)
    for record in records:
        if isinstance(record, Link) and record.relation in (
            "spawned_by",
            "continued_from",
            "resumed_from",
            "forked_from",
        ):
            target = record.target
            parent = LineageParent(
                agent=target.agent, session_id=target.session_id, namespace=target.namespace, call_id=record.call_id
            )
            return _parent(parent, record.relation, record.evidence, record.id)
    return None


def _parent(parent: LineageParent, relation: str | None, evidence: Evidence | None, record: str) -> dict[str, Any]:
    return {
        "record": record,
        "relation": relation,
        "agent": parent.agent,
        "sessionId": parent.session_id,
        "namespace": parent.namespace,
        "callId": parent.call_id,
        "evidence": evidence.kind if evidence else None,
    }


def _approval(record: Approval) -> dict[str, Any]:
    return {
        "record": record.id,
        "at": record.at,
        "phase": record.phase,
        "decision": record.decision,
        "by": record.by,
        "policy": record.policy,
    }


def _add(action: dict[str, Any], record: Approval | ToolResult | FileChange, quote: _Quoter) -> None:
    if isinstance(record, Approval):
        action["approvals"].append(_approval(record))
    elif isinstance(record, FileChange):
        action["fileChanges"].append(record.id)
    else:
        ran = record.exec
        action["result"] = {
            "record": record.id,
            "at": record.at,
            "status": record.status,
            "exitCode": ran.exit_code if ran else None,
            "signal": ran.signal if ran else None,
        }
        if ran is not None and ran.command and action["command"] is None:
            action["command"] = quote(ran.command)


def _changed(record: FileChange, quote: _Quoter) -> dict[str, Any]:
    return {
        "did": "file_change",
        "record": record.id,
        "at": record.at,
        "callId": record.call_id,
        "change": record.change,
        "path": quote.place(record.path),
        "fromPath": quote.place(record.from_path),
        "before": record.before.sha256 if record.before else None,
        "after": record.after.sha256 if record.after else None,
        "applied": record.applied,
        "evidence": record.evidence,
    }


# ---------------------------------------------------------------- Markdown and text


_LINE = re.compile(r"\s+")
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")


Quoted = Callable[[str], str]
Plain = Callable[[str | None], str]


def _flat(text: str, width: int = 300) -> str:
    text = _LINE.sub(" ", text).strip()
    return text if len(text) <= width else text[: width - 1] + "…"


def _plain(text: str | None) -> str:
    """Words of a session as Markdown shows and does not obey them."""
    return _MARKS.sub(r"\\\1", _flat(text or ""))


def _as_code(text: str) -> str:
    return code(_flat(text))


def _words(text: str | None) -> str:
    return _flat(text or "")


def markdown(answer: dict[str, Any]) -> str:
    """The account as Markdown: what is quoted cannot be read as headings, links or HTML."""
    return "\n".join(_lines(answer, _as_code, _plain, heading="#")) + "\n"


def text(answer: dict[str, Any]) -> str:
    """The account for a terminal; whoever prints it makes it inert."""
    return "\n".join(_lines(answer, _flat, _words, heading="")) + "\n"


def _lines(answer: dict[str, Any], quoted: Quoted, plain: Plain, heading: str) -> list[str]:
    def head(level: int, words: str) -> list[str]:
        return ["", f"{heading * level} {words}", ""] if heading else ["", words]

    totals = answer["totals"]
    bounds = [f"{name} {answer[name]}" for name in ("since", "until") if answer[name]]
    lines = [f"{heading} Audit".strip(), ""]
    lines.append(
        f"{many(totals['sessions'], 'session')}, {many(totals['prompts'], 'prompt')}, {many(totals['calls'], 'call')}, "
        f"{many(totals['fileChanges'], 'file change')}, {many(totals['vcs'], 'version control action')}, "
        f"{totals['sent']} sent, {many(totals['memoryWrites'], 'memory write')}"
        + (f" ({', '.join(bounds)})" if bounds else "")
        + f". Redaction: {answer['redaction']['mode']}, {sum(answer['redaction']['removed'].values())} removed."
    )
    approvers = ", ".join(f"{name} {n}" for name, n in totals["callsByApprover"].items())
    lines.append(f"Calls by who decided on them: {approvers or 'none'}.")
    for session in answer["sessions"]:
        name = f"{session['agent']}:{session['sessionId']}"
        lines += head(2, plain(name))
        lines.append(
            f"version {plain(session['version'] or 'unknown')}, started {session['startedAt'] or 'unknown'}, "
            f"folder {quoted(session['folder']) if session['folder'] else 'unknown'}"
        )
        if by := session["startedBy"]:
            lines.append(
                f"{plain((by['relation'] or 'related to').replace('_', ' '))} {plain(by['agent'] + ':' + by['sessionId'])}"
                f" (evidence: {plain(by['evidence'] or 'none given')}) [{by['record']}]"
            )
        for turn in session["turns"]:
            began = f"started by {plain(turn['trigger'])}" if turn["trigger"] else "what started it is not recorded"
            where = f" [{turn['record']}]" if turn["record"] else ""
            title = f"Turn {plain(turn['turnId'] or '')}: {began}, {turn['at'] or 'time unknown'}{where}"
            lines += head(3, title if turn["turnId"] else "Outside of turns")
            for asked in turn["asked"]:
                who = f"{plain(asked['author'] or 'author unknown')} ({plain(asked['origin'] or 'origin unknown')})"
                said = asked["said"]["text"] if asked["said"] else ""
                lines.append(f"- asked by {who}: {quoted(said)} [{asked['record']}]")
            for action in turn["actions"]:
                lines.append(_action(action, quoted, plain))
            if turn["ended"]:
                lines.append(f"- ended: {plain(turn['status'] or 'status unknown')} [{turn['ended']['record']}]")
        if session["ended"]:
            lines.append(f"- session ended: {plain(session['ended']['status'])} [{session['ended']['record']}]")
        if session["unseen"]:
            lines += head(3, "What the recording does not see")
            lines += [
                f"- {plain(u['what'])}: {plain(u['reason'] or 'no reason given')} [{u['record']}]"
                for u in session["unseen"]
            ]
    return lines


def _action(action: dict[str, Any], quoted: Quoted, plain: Plain) -> str:
    did = action["did"]
    where = f"[{action['record']}]"
    evidence = plain(action.get("evidence") or "evidence unknown")
    if did == "call":
        what = action["command"] or action["task"]
        shown = quoted(what["text"]) if what else quoted(action["path"]) if action["path"] else ""
        result = action["result"]
        if result is None:
            came = "no result recorded"
        else:
            code_ = f", exit {result['exitCode']}" if result["exitCode"] is not None else ""
            came = f"{plain(result['status'])}{code_} [{result['record']}]"
        decided = [
            f"{plain(a['decision'] or a['phase'])} by {plain(a['by'] or 'unknown')}"
            + (f" ({plain(a['policy'])})" if a["policy"] else "")
            + f" [{a['record']}]"
            for a in action["approvals"]
        ]
        called = f"{plain(action['tool'])} {shown}".rstrip()
        return f"- {called} {where}: {came}; approval: {', '.join(decided) or 'not recorded'}"
    if did == "file_change":
        hashes = f" → {action['after'][:12]}" if action["after"] else ""
        applied = {False: ", not applied", "unknown": ", unknown whether applied"}.get(action["applied"], "")
        return f"- {plain(action['change'])} {quoted(action['path'] or '')}{hashes} ({evidence}{applied}) {where}"
    if did == "vcs":
        return f"- {plain(action['action'])} {plain(action['commit'] or action['branch'] or '')} ({evidence}) {where}"
    if did == "result":
        ended = f", exit {action['exitCode']}" if action["exitCode"] is not None else ""
        return f"- result of a call that is not recorded: {plain(action['status'])}{ended} {where}"
    if did == "approval":
        decision = plain(action["decision"] or action["phase"])
        return f"- approval without a call: {decision} by {plain(action['by'] or 'unknown')} {where}"
    said = action["content"]["text"] if action["content"] else ""
    verb = "sent" if did == "message_sent" else "remembered"
    to = plain(" ".join(t for t in (action["channel"], action["target"]) if t) or "target unknown")
    return f"- {verb} to {to}: {quoted(said)} {where}"
