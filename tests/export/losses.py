"""What each form loses, counted over all captures: `python -m tests.export.losses` writes the table of docs/exports.md.

A fact of a record (its text, its id, its digest) is held where it stands in the files of the form, as it is written there.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from asrd.export import Given, formats
from asrd.export.view import result_text, standing, text_of, thinking_of
from asrd.records import (
    AnyRecord,
    Approval,
    Compaction,
    Config,
    End,
    FileChange,
    Gap,
    Inference,
    Link,
    Loss,
    Message,
    Native,
    Plan,
    ToolCall,
    ToolResult,
    Turn,
    UsageTotal,
    VcsAction,
)
from tests.export.captured import cases, given

DOCUMENT = Path(__file__).parents[2] / "docs" / "exports.md"
BEGIN, END = "<!-- counted: begin -->", "<!-- counted: end -->"
FORMS = ("asr", "atif", "otel", "markdown", "sts", "training")
FACTS: tuple[str, ...] = (
    "prompts and answers", "thinking", "responses (by id)", "calls (by id)", "results (text)", "file changes", "commits",
    "approvals", "compactions (summary)", "spawned sessions", "plans", "turns", "gaps and losses", "ends", "settings",
    "declared totals", "harness's own",
)  # fmt: skip


def facts(record: AnyRecord) -> Iterator[tuple[str, str]]:
    """What is looked for of a record: under which name, and the words."""
    if isinstance(record, Message):
        yield "prompts and answers", text_of(record.content)
        yield "thinking", thinking_of(record.content)
    elif isinstance(record, Inference):
        yield "responses (by id)", record.inference_id
    elif isinstance(record, ToolCall):
        yield "calls (by id)", record.call_id
    elif isinstance(record, ToolResult):
        yield "results (text)", result_text(record)
    elif isinstance(record, FileChange):
        yield "file changes", record.diff or (record.after and record.after.sha256) or record.path.path
    elif isinstance(record, VcsAction):
        yield "commits", record.commit or ""
    elif isinstance(record, Approval):
        yield "approvals", f"\0{record.id}"
    elif isinstance(record, Compaction):
        yield "compactions (summary)", record.summary or ""
    elif isinstance(record, Link):
        if record.relation == "spawned":
            yield "spawned sessions", record.target.session_id
    elif isinstance(record, Plan):
        yield "plans", record.items[0].text if record.items else ""
    else:
        names = (
            (Turn, "turns"), (Gap | Loss, "gaps and losses"), (End, "ends"), (Config, "settings"),
            (UsageTotal, "declared totals"), (Native, "harness's own"),
        )  # fmt: skip
        for kind, name in names:
            if isinstance(record, kind):
                yield name, f"\0{record.id}"


def held(words: str, form: str, text: str) -> bool:
    """Whether the files of a form hold the words; those that begin with NUL are the id of a record."""
    if words.startswith("\0"):
        ident = words[1:]
        return any(mark in text for mark in (f'"{ident}"', f"[{ident}]", f"{ident}:"))
    lines = [line.strip() for line in words.split("\n") if line.strip()]  # blocks of a message may stand apart
    if form == "markdown":
        return all(line in text or escaped(line) in text for line in lines)
    ways = [lines]
    for _ in range(2):  # in a field, and in one that holds JSON as text
        ways.append([json.dumps(line, ensure_ascii=False)[1:-1] for line in ways[-1]])
    return all(any(way in text for way in line) for line in zip(*ways[1:], strict=True))


def escaped(line: str) -> str:
    return (
        line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("](", "]\\(").replace("![", "!\\[")
    )


def counted(one: Given, form: str) -> dict[str, tuple[int, int]]:
    """By fact: how many there are, and how many the form holds."""
    make = formats()[form].make
    whole = "\n".join(f.data.decode() for f in make(one))
    found: dict[str, tuple[int, int]] = dict.fromkeys(FACTS, (0, 0))
    for session in one.sessions:
        alone = replace(one, sessions=[replace(session, parent=None)])
        own = "\n".join(f.data.decode() for f in make(alone))  # ids of records are those of one session
        for record in standing(session.records):
            for name, words in facts(record) if record.copy_of is None else ():
                if words.strip():
                    every, some = found[name]
                    found[name] = (
                        every + 1,
                        some + held(words.strip(), form, own if words.startswith("\0") else whole),
                    )
    return found


def table() -> str:
    """The table, in Markdown."""
    sums: dict[str, dict[str, tuple[int, int]]] = {form: dict.fromkeys(FACTS, (0, 0)) for form in FORMS}
    for case in cases():
        for form in FORMS:
            for name, (every, some) in counted(given(case), form).items():
                before = sums[form][name]
                sums[form][name] = (before[0] + every, before[1] + some)
    lines = ["| of the captures | about | " + " | ".join(FORMS) + " |", "|---|---:|" + "---:|" * len(FORMS)]
    for name in FACTS:
        every = sums["asr"][name][0]
        shares = [share(*sums[form][name]) for form in FORMS]
        about = round(every, 1 - len(str(every)))
        lines.append(f"| {name} | {about:,} | " + " | ".join(shares) + " |")
    return "\n".join(lines)


def share(every: int, some: int) -> str:
    """A share as the table says it."""
    if not every or not some:
        return "–"
    return "all" if some == every else f"{100 * some // every} %"


def words() -> str:
    """What each form says that it loses, in Markdown."""
    lines: list[str] = []
    for form in formats().values():
        lines += [f"### `{form.name}`: {form.title}", ""]
        lines += [f"- {'all else' if kind == '*' else kind}: {said}" for kind, said in form.loses.items()]
        lines.append("")
    return "\n".join(lines)


def written(text: str) -> str:
    """The document with the table made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n\n{words()}{END}{tail}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
