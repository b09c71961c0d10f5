"""Markdown for people: a session as a document to read, what it says quoted so that none of it becomes markup."""

from __future__ import annotations

import re

import msgspec

from asrd.export import Exported, File, Format, Given
from asrd.export.view import Figures, Step, file_stem, models, result_text, steps, text_of, thinking_of
from asrd.handoff.render import code
from asrd.handoff.view import command_of, path_of
from asrd.records import Approval, Compaction, End, FileChange, Gap, Loss, Message, VcsAction

_TICKS = re.compile(r"`{3,}|~{3,}")
_MARKS = re.compile(r"([\\`*_{}\[\]<>()#+!|~-])")


def make(given: Given) -> list[File]:
    """One document for each session that none of the others started; those it started stand in it."""
    found: list[File] = []
    for number in given.roots():
        one = given.sessions[number]
        parts = [_session(given, given.sessions[n], n == number) for n in given.tree(number)]
        data = ("\n".join(parts)).encode("utf-8", "replace")
        found.append(File(f"{file_stem(one.agent, one.session_id, one.namespace)}.md", data))
    return found


def fenced(text: str, language: str = "") -> str:
    """Text as a block of code that nothing in it can end."""
    longest = max((len(t) for t in _TICKS.findall(text)), default=2)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text.rstrip(chr(10))}\n{ticks}"


def plain(text: str) -> str:
    """Words on one line, that cannot be read as markup."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()))


def _session(given: Given, one: Exported, top: bool) -> str:
    header = one.header
    mark = "#" if top else "##"
    lines = [f"{mark} {plain((header.title if header else None) or f'{one.agent} {one.session_id}')}", ""]
    version = header.agent.version if header else None
    folder = header.workspace.roots[0].path if header and header.workspace and header.workspace.roots else None
    lines.append(f"- session: {code(f'{one.agent}:{one.session_id}')}, version {plain(version or 'unknown')}")
    if folder:
        lines.append(f"- folder: {code(folder)}")
    if named := models(one.records):
        lines.append(f"- models: {', '.join(code(m) for m in named)}")
    lines.append(f"- {_figures(one.total())}")
    if top:
        removed = sum(given.removed.values())
        lines.append(f"- redaction: {given.redaction}, {removed} removed; thinking is folded")
    for step in steps(one.records):
        lines += _step(step)
    for record in one.records:
        if isinstance(record, Gap | Loss):
            kind = "gap" if isinstance(record, Gap) else "loss"
            lines += ["", f"*Not recorded ({kind}): {plain(record.reason)}* [{record.id}]"]
        elif isinstance(record, End):
            lines += ["", f"*Session ended: {plain(record.status)}* [{record.id}]"]
    return "\n".join(lines) + "\n"


def _figures(total: Figures) -> str:
    def told(number: int | None) -> str:
        return "unknown" if number is None else f"{number:,}"

    words = f"{total.requests:,} responses, {told(total.input_total)} tokens in, {told(total.output)} out"
    return words + (f", {total.unmeasured:,} requests without figures" if total.unmeasured else "")


def _step(step: Step) -> list[str]:
    copied = " (copy)" if step.copied else ""
    at = f" · {step.at}" if step.at else ""
    lines: list[str] = []
    if step.messages:
        first = step.messages[0]
        who = {"user": "User", "assistant": "Assistant"}.get(first.role, "System")
        if step.source == "system" and first.origin:
            who = f"System ({plain(first.origin)})"
        elif first.origin == "agent":
            who = "Another agent"
        lines += ["", f"### {who}{copied}{at} [{first.id}]"]
        for message in step.messages:
            lines += _message(message)
    elif step.calls:
        lines += ["", f"### Assistant{copied}{at} [{step.calls[0].id}]"]
    elif isinstance(step.record, Compaction):
        lines += ["", f"### Compaction{copied}{at} [{step.record.id}]"]
        lines += ["", fenced(step.record.summary)] if step.record.summary else []
    results = {r.call_id: r for r in step.results}
    for call in step.calls:
        what = command_of(call, None) or path_of(call)
        shown = what if what is not None else msgspec.json.encode(call.input).decode()
        lines += ["", f"**{plain(call.name)}** [{call.id}]", "", fenced(shown)]
        if (result := results.pop(call.call_id, None)) is not None:
            ran = result.exec
            ended = f", exit {ran.exit_code}" if ran is not None and ran.exit_code is not None else ""
            lines += ["", f"{plain(result.status)}{ended} [{result.id}]"]
            if output := result_text(result):
                lines += ["", fenced(output)]
        else:
            lines += ["", "*no result recorded*"]
    for result in results.values():
        lines += ["", f"Result of {code(result.call_id)}: {plain(result.status)} [{result.id}]"]
        lines += ["", fenced(output)] if (output := result_text(result)) else []
    for other in step.others:
        if isinstance(other, FileChange):
            refused = ", not applied" if other.applied is False else ""
            lines += ["", f"{plain(other.change)} {code(other.path.path)}{refused} [{other.id}]"]
            lines += ["", fenced(other.diff, "diff")] if other.diff else []
        elif isinstance(other, VcsAction) and (other.commit or other.branch):
            lines += ["", f"{plain(other.action)} {code(other.commit or other.branch or '')} [{other.id}]"]
        elif isinstance(other, Approval) and other.phase == "decided":
            by = f" by {plain(other.by)}" if other.by else ""
            lines += ["", f"*{plain(other.decision or 'decided')}{by}* [{other.id}]"]
    return lines


def _message(message: Message) -> list[str]:
    lines: list[str] = []
    if thought := thinking_of(message.content):
        lines += ["", "<details><summary>Thinking</summary>", "", fenced(thought), "", "</details>"]
    if words := text_of(message.content):
        lines += ["", "\n".join(f"> {_quoted(line)}" for line in words.split("\n"))]
    for block in message.content:
        kind = str(type(block).__struct_config__.tag)
        if kind not in ("text", "thinking"):
            lines += ["", f"*[{kind}]*"]
    return lines


_HTML = re.compile(r"[<>&]")
_NAMES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def _quoted(line: str) -> str:
    """A line of what was said: its own Markdown stays, inside the quotation; HTML, links and pictures do not work."""
    safe = _HTML.sub(lambda f: _NAMES[f[0]], line).replace("](", "]\\(").replace("![", "!\\[")
    return safe.replace("]:", "]\\:") if _defines(line) else safe


_ESCAPED = re.compile(r"\\.")
_LABEL = re.compile(r"[\s>*+\-\d.)]*\[")


def _defines(line: str) -> bool:
    """Whether a line may end the label of a link's definition (`[label]: address`, CommonMark 4.7), begun here or lines before.

    A label begins its block and has no bracket in it that is not escaped.
    """
    head, found, _ = _ESCAPED.sub("", line).partition("]:")
    return bool(found) and ("[" not in head or _LABEL.match(head) is not None)


FORMAT = Format(
    name="markdown",
    title="Markdown",
    make=make,
    loses={
        "session": "kept: agent, version, folder, title",
        "message": "text and thinking kept; images, files and resources are named only",
        "inference": "totals kept",
        "tool_call": "command or path, else the input",
        "tool_result": "kept: text, status, exit code",
        "file_change": "kept: path and diff",
        "approval": "decisions kept",
        "vcs": "commits and branches kept",
        "compaction": "kept",
        "gap": "kept",
        "loss": "kept",
        "end": "kept",
        "*": "left out",
    },
)
