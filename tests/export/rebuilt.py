"""A git repository made again from what is recorded of a capture: its edits one after the other, its commits where they were.

Contents are those of `truth.json` of any capture, of calls' inputs and of diffs, each taken only where its SHA-256 is the one
that a record names: what is written into the repository is what the harness's program wrote, or nothing.
"""

import ast
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from asrd.attribution import digest, lines_of, patched
from asrd.blaming import pairs
from asrd.export.view import nanoseconds, standing
from asrd.handoff.view import View
from asrd.recorders.base import StreamKey
from asrd.records import AnyRecord, FileChange, ToolCall, VcsAction
from tests.golden import CAPTURES
from tests.histories import Clock, Repo

WORKSPACE = "/home/dev/app"
"""Where the sessions of all captures ran."""


class Step(Struct):
    """One thing that was done: a change of a file with digests, or a commit (`change` None)."""

    at: int
    session: StreamKey
    change: FileChange | None = None
    path: str = ""
    source: str | None = None
    """The path before, of a rename."""
    call: ToolCall | None = None


class Rebuilt(Struct):
    """A repository, its commit before the sessions' first one, and who wrote which line (by path and text; None = nobody)."""

    repo: Repo
    first: str
    authors: dict[str, dict[str, set[StreamKey | None]]]


def steps(sessions: dict[StreamKey, list[AnyRecord]]) -> list[Step]:
    """What was done, in order of time; copies, and changes that are said not to have been applied, are left out."""
    found: list[Step] = []
    for key, records in sessions.items():
        view = View(0, key, records)
        calls = {r.call_id: r for r in records if isinstance(r, ToolCall)}
        last = 0
        for record in standing(records):
            last = nanoseconds(record.at) or last
            if record.copy_of is not None:
                continue
            if isinstance(record, VcsAction) and record.action == "commit" and record.commit:
                found.append(Step(last, key))
            elif isinstance(record, FileChange) and record.applied is not False:
                places = [record.path, *([record.from_path] if record.from_path else [])]
                path, source = ([*(below(view.absolute(p)) for p in places), None])[:2]
                if path is not None:
                    call = calls.get(record.call_id) if record.call_id else None
                    found.append(Step(last, key, record, path, source, call))
    return sorted(found, key=lambda s: s.at)


def below(path: str) -> str | None:
    """A path below the workspace."""
    return path.removeprefix(WORKSPACE + "/") if path.startswith(WORKSPACE + "/") else None


def proved(step: Step) -> bool:
    """Whether a change names the contents that blame needs: what it left, and what it began with or that it made the file."""
    change = step.change
    return (
        change is not None
        and change.after is not None
        and change.after.sha256 is not None
        and (change.change == "create" or (change.before is not None and change.before.sha256 is not None))
    )


def rebuilt(sessions: dict[StreamKey, list[AnyRecord]], folder: Path) -> Rebuilt | None:
    """The repository of a capture; None where no change of a file names its contents."""
    done = steps(sessions)
    if not any(proved(s) for s in done):
        return None
    known = contents(done)
    clock = Clock()
    # Git's times are those of the commits made again: after every edit, where a capture has times at all.
    clock.now = max(clock.now, max(s.at for s in done) // 1_000_000_000 + 60)
    found = Rebuilt(Repo(folder, clock), "", {})
    found.first = found.repo.commit("before")
    for step in done:
        if step.change is None:
            found.repo.commit(f"by {step.session.session_id}")
        else:
            _write(found, step, known)
    found.repo.commit("the rest")
    return found


def needed(digests: dict[str, str], sha256: str) -> str:
    """A content. Where it is not known, a capture's `truth.json` should tell it (`before`, `after`)."""
    assert sha256 in digests, f"no content with the digest {sha256} is known: tell it in the capture's truth.json"
    return digests[sha256]


def _write(found: Rebuilt, step: Step, known: dict[str, str]) -> None:
    change, repo = step.change, found.repo
    assert change is not None
    if change.change == "delete":
        (repo.folder / step.path).unlink(missing_ok=True)
    if not proved(step):
        return
    assert change.after is not None and change.after.sha256 is not None
    before = needed(known, change.before.sha256) if change.before is not None and change.before.sha256 else None
    after = needed(known, change.after.sha256)
    start = step.source or step.path
    if before is not None and repo.read(start) != before:  # it was so before the sessions began, or a person made it so
        repo.write(start, before)
        repo.commit("between")
        _note(found, step.path, lines_of(before), None)
        found.first = repo.git("rev-parse", "HEAD") if not _sessions(found) else found.first
    _note(found, step.path, Counter(lines_of(after)) - Counter(lines_of(before or "")), step.session)
    if step.source is not None:
        (repo.folder / step.source).unlink(missing_ok=True)
    repo.write(step.path, after)


def _sessions(found: Rebuilt) -> bool:
    return any(who is not None for lines in found.authors.values() for some in lines.values() for who in some)


def _note(found: Rebuilt, path: str, lines: Iterable[str], who: StreamKey | None) -> None:
    for line in lines:
        found.authors.setdefault(path, {}).setdefault(line, set()).add(who)


# ---------------------------------------------------------------- contents


def contents(done: list[Step]) -> dict[str, str]:
    """Every content that a change names, by its digest: told by a capture's truth, or made from one that is known."""
    known = {digest(t): t for t in told()}
    for step in done:
        known |= {digest(new): new for old, new in pairs(step.call) if not old}
    while True:
        more = {digest(t): t for s in done for t in _made(s, known)}
        more = {d: t for d, t in more.items() if d in _wanted(done) and d not in known}
        if not more:
            return known
        known |= more


def _wanted(done: list[Step]) -> set[str]:
    ends = [e for s in done if s.change is not None for e in (s.change.before, s.change.after)]
    return {e.sha256 for e in ends if e is not None and e.sha256 is not None}


def _made(step: Step, known: dict[str, str]) -> Iterator[str]:
    change = step.change
    if change is None:
        return
    for end, back in ((change.before, False), (change.after, True)):
        text = known.get(end.sha256) if end is not None and end.sha256 is not None else None
        if text is not None:
            yield from patched(text, change.diff, back=back)
            for old, new in pairs(step.call):
                yield text.replace(new, old, 1) if back else text.replace(old, new, 1)


@cache
def told() -> frozenset[str]:
    """Every content that the truth of any capture names, or the program that made it."""
    found: set[str] = set()

    def look(value: Any) -> None:
        if isinstance(value, dict):
            found.update(v for k, v in value.items() if k in ("before", "after", "content") and isinstance(v, str))  # type: ignore[misc]
            for one in value.values():  # type: ignore[misc]
                look(one)
        elif isinstance(value, list):
            for one in value:  # type: ignore[misc]
                look(one)

    for path in CAPTURES.glob("*/*/truth.json"):
        look(json.loads(path.read_text()))
    for path in CAPTURES.glob("**/*.py"):  # what makes those that are constructed from documents
        constants = (n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant))
        found.update(v for v in constants if isinstance(v, str))
    return frozenset(found)
