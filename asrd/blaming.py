"""Brings a repository and the recorded edits to `attribution`: which session, turn, prompt and model a line or commit is of.

Only sessions that are known to have worked on this repository are looked at: their folder is one of its working trees (or
below, or what `was` names), or they made a commit, or began at one, that it has.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from asrd.attribution import Commit, Edit, Known, Origin, digest, in_time, ranges, trace
from asrd.errors import RepositoryUnusable
from asrd.export.view import nanoseconds, standing, text_of
from asrd.handoff.view import View
from asrd.query import Rows, Stored, key_of, records_of
from asrd.records import (
    AnyRecord,
    FileChange,
    Inference,
    Message,
    Session,
    ToolCall,
    Turn,
    VcsAction,
)
from asrd.redact import Redactor
from asrd.repository import UNCOMMITTED, BlamedLine, Repository

DEPTH = 2
"""How often a commit is looked for in another with the same patch, and that one in a third."""
SAID = 300
"""Characters of a prompt that an answer quotes."""


class Made(Struct, frozen=True):
    """A commit that a session's record names: it was seen to make it."""

    origin: Origin
    commit: str


class Work(Struct):
    """What sessions did to one repository. `edits` by the path below it; `said`: prompts by session and record."""

    edits: dict[str, list[Edit]]
    made: list[Made]
    said: dict[tuple[str, str, str, str], str]
    sessions: int


class Blamer:
    """Blames files and commits of one repository on what is recorded."""

    def __init__(self, rows: Rows, repository: Repository, was: str | None = None) -> None:
        self.repository = repository
        self.work = work_on(rows, repository, was)
        self._traced: dict[tuple[str | None, str, str | None, str], tuple[list[Known], bool]] = {}
        self._patches: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self._news: dict[tuple[str, str, str], list[int]] = {}

    def lines(
        self, path: str, revision: str | None = None, first: int | None = None, last: int | None = None
    ) -> list[tuple[int, BlamedLine, Origin | None]]:
        """The lines of a file: each with its number, what git says of it, and where it comes from (None = unknown)."""
        blamed = self.repository.blame(path, revision, first, last)
        start = first or 1
        return [(n, line, self.origin(line)) for n, line in enumerate(blamed, start)]

    def origin(self, line: BlamedLine, depth: int = 0) -> Origin | None:
        """Where a line comes from, as far as it is proved."""
        commit = None if line.commit == UNCOMMITTED else line.commit
        previous, previous_path = line.previous, line.previous_path or line.path
        if commit is not None and previous is None:
            parents = self.repository.info(commit).parents
            previous = parents[0] if parents else None
        origins, here = self._at(commit, line.path, previous, previous_path)
        found = origins[line.line - 1] if line.line <= len(origins) else None
        if isinstance(found, Origin):
            return found
        if here or commit is None or depth >= DEPTH:
            return None
        return self._by_patch(line, commit, depth)

    def _at(self, commit: str | None, path: str, previous: str | None, previous_path: str) -> tuple[list[Known], bool]:
        """The origins of a file's lines at a commit, and whether they are decided there: recorded edits led to its content or
        to some of its lines. What they leave in doubt, as two sessions that did the same, another commit does not settle.
        """
        key = (commit, path, previous, previous_path)
        if key not in self._traced:
            after = self.repository.content(commit, path)
            before = self.repository.content(previous, previous_path) if previous is not None else None
            edits = self.work.edits.get(path, [])
            latest = self.repository.info(commit).time if commit is not None else None
            origins = trace(before, after, edits, latest) if after is not None and edits else []
            whole = digest(after) if after is not None else None
            led = any(e.after == whole and in_time(e, latest) for e in edits)
            self._traced[key] = (origins, led or any(isinstance(o, Origin) for o in origins))
        return self._traced[key]

    def _by_patch(self, line: BlamedLine, commit: str, depth: int) -> Origin | None:
        """The origin that the same line has in other commits with the same patch, where they agree."""
        if not self.work.edits.get(line.path):
            return None
        parents = self.repository.info(commit).parents
        here = self._added(parents[0], commit, line.path) if len(parents) == 1 else []
        if line.line not in here:
            return None
        place = here.index(line.line)
        told: list[Origin | None] = []
        for before, after in self._same(commit, line.path):
            there = self._added(before, after, line.path)
            if len(there) != len(here):
                continue
            (other,) = self.repository.blame(line.path, after, there[place], there[place])
            if other.text == line.text:
                told.append(self.origin(other, depth + 1))
        proved = [t for t in told if t is not None]
        if len(proved) != len(told) or len({t.session for t in proved}) != 1:
            return None
        evidence = proved[0].evidence
        return replace(proved[0], evidence=evidence if evidence.startswith("patch-") else f"patch-{evidence}")

    def _same(self, commit: str, path: str) -> list[tuple[str, str]]:
        key = (commit, path)
        if key not in self._patches:
            self._patches[key] = self.repository.same_patch(commit, path)
        return self._patches[key]

    def _added(self, before: str, after: str, path: str) -> list[int]:
        """The numbers of the lines that a file has at one commit and git blames on what came after another."""
        key = (before, after, path)
        if key not in self._news:
            try:
                blamed = self.repository.blame(path, f"{before}..{after}")
            except RepositoryUnusable:  # the file is not there
                blamed = []
            self._news[key] = [n for n, line in enumerate(blamed, 1) if not line.boundary]
        return self._news[key]

    def commit(self, name: str) -> Commit:
        """The lines a commit added, and where they come from."""
        commit = self.repository.commit(name)
        info = self.repository.info(commit)
        files: dict[str, list[Any]] = {}
        for path, _ in self.repository.changed(commit):
            try:
                blamed = self.repository.blame(path, commit)
            except RepositoryUnusable:  # no file any more
                continue
            own = [(n, line) for n, line in enumerate(blamed, 1) if line.commit == commit]
            files[path] = ranges([(n, self.origin(line)) for n, line in own])
        return Commit(commit, info.at, files)

    def made_by(self, commit: str) -> list[tuple[Origin, str]]:
        """Who was seen to make a commit: by its id, else by one with the same patch; with how that is known."""
        exact = [(m.origin, "observed") for m in self.work.made if m.commit == commit]
        if exact:
            return exact
        recorded = {m.commit: m for m in self.work.made}
        others = [o for o in self.repository.same_commit(commit) if o in recorded] if recorded else []
        return [(recorded[o].origin, "patch") for o in others]


def commits(rows: Rows, folder: str, which: str, was: str | None) -> list[Commit]:
    """The commits of a range, and where their lines come from. Raises RepositoryUnusable."""
    blamer = Blamer(rows, Repository(folder), was)
    return [blamer.commit(c) for c in blamer.repository.commits(which)]


# ---------------------------------------------------------------- what is recorded


def work_on(rows: Rows, repository: Repository, was: str | None) -> Work:
    """What the sessions of a repository did to it."""
    work = Work({}, [], {}, 0)
    folders = [t.rstrip("/") for t in (repository.top, *repository.trees, *([was] if was else []))]
    for stored in rows.sessions():
        row = stored.row
        if not (row.edits or row.commits) or row.observed is not None:
            continue
        records = records_of(rows, stored)
        own = _folders(records, repository, folders)
        if own:
            work.sessions += 1
            _take(work, stored, records, own)
    return work


def _folders(records: list[AnyRecord], repository: Repository, folders: list[str]) -> list[str]:
    """The folders that were this repository's top when the session ran; none where it did not work on it."""
    header = records[0] if records and isinstance(records[0], Session) else None
    roots = header.workspace.roots if header and header.workspace else []
    found = list(folders)
    if any(_below(r.path, f) is not None for r in roots for f in folders):
        return found
    commits = {r.commit for r in records if isinstance(r, VcsAction) and r.commit and r.copy_of is None}
    commits |= {r.vcs.head for r in roots if r.vcs and r.vcs.head}
    if any(repository.holds(c) for c in commits):
        return [*found, *(r.path.rstrip("/") for r in roots)]
    named = {r.path.path for r in records if isinstance(r, FileChange)}
    return found if any(_below(n, f) is not None for n in named for f in folders) else []


def _below(path: str, folder: str) -> str | None:
    """A path below a folder; None where it is not."""
    path = posixpath.normpath(path)
    if path == folder:
        return ""
    return path[len(folder) + 1 :] if path.startswith(folder + "/") else None


def _take(work: Work, stored: Stored, records: list[AnyRecord], folders: list[str]) -> None:
    key = key_of(stored)
    view = View(0, key, records)
    models = {r.inference_id: r.model for r in records if isinstance(r, Inference) and r.model}
    calls = {r.call_id: r for r in records if isinstance(r, ToolCall)}
    prompts: dict[str | None, str] = {}
    turn: str | None = None
    prompt: str | None = None

    def origin(record: FileChange | VcsAction) -> Origin:
        call = calls.get(record.call_id) if record.call_id else None
        ident = record.turn_id or turn
        asked = prompts.get(ident) if ident is not None else prompt
        model = models.get(call.inference_id) if call is not None and call.inference_id else None
        return Origin(key.agent, key.session_id, key.namespace, record.id, ident, asked, model, "content")

    for record in standing(records):
        if record.copy_of is not None:
            continue
        if isinstance(record, Turn):
            turn = record.turn_id if record.phase == "start" else None
        elif isinstance(record, Message):
            if record.role == "user" and record.origin in (None, "prompt", "command", "agent"):
                prompt = record.id
                prompts.setdefault(record.turn_id or turn, record.id)
                work.said[(key.agent, key.session_id, key.namespace, record.id)] = text_of(record.content)
        elif isinstance(record, VcsAction):
            if record.action == "commit" and record.commit:
                work.made.append(Made(origin(record), record.commit))
        elif isinstance(record, FileChange):
            after = record.after.sha256 if record.after else None
            before = record.before.sha256 if record.before else None
            made = record.change == "create"
            if after is None or record.applied is False or (before is None and not made):
                continue
            absolute = view.absolute(record.path)
            path = next((p for f in folders if (p := _below(absolute, f))), None)
            if path is None:
                continue
            at = nanoseconds(record.at)
            call = calls.get(record.call_id) if record.call_id else None
            edit = Edit(
                origin(record),
                record.seq,
                None if at is None else at / 1e9,
                None if made and before is None else before,
                after,
                record.diff,
                pairs(call),
            )
            work.edits.setdefault(path, []).append(edit)


OLD_NEW = (
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("oldText", "newText"),
    ("old_str", "new_str"),
    ("old", "new"),
    ("search", "replace"),
)
"""How the editing tools of harnesses name a text and what takes its place; each use is checked by digest."""
WHOLE = ("content", "file_text", "contents", "text")
"""How writing tools name a whole content."""


def pairs(call: ToolCall | None) -> tuple[tuple[str, str], ...]:
    """The texts that a call replaces, old and new; of a whole content, nothing and that. Only candidates: digests decide."""
    if call is None:
        return ()
    given: dict[str, Any] = call.input
    found: list[tuple[str, str]] = []
    for one in (given, *_edits(given)):
        for old, new in OLD_NEW:
            a, b = one.get(old), one.get(new)
            if isinstance(a, str) and isinstance(b, str):
                found.append((a, b))
                break
    if not found:
        found = [("", v) for n in WHOLE if isinstance(v := given.get(n), str)]
    return tuple(found)


def _edits(given: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    for name in ("edits", "edit", "replacements", "changes"):
        some = given.get(name)
        if isinstance(some, dict):
            yield cast("dict[str, Any]", some)
        elif isinstance(some, list):
            yield from (cast("dict[str, Any]", e) for e in cast("list[Any]", some) if isinstance(e, dict))


# ---------------------------------------------------------------- answers


def blame(
    blamer: Blamer, path: str, revision: str | None, first: int | None, last: int | None, redactor: Redactor
) -> dict[str, Any]:
    """`asrd.blame/1`: each line with its commit and where it comes from."""
    found = blamer.lines(path, revision, first, last)
    return {
        "schema": "asrd.blame/1",
        "repository": blamer.repository.top,
        "path": path,
        "revision": revision,
        "sessionsLookedAt": blamer.work.sessions,
        "known": sum(origin is not None for _, _, origin in found),
        "lines": [
            {
                "line": number,
                "commit": None if line.commit == UNCOMMITTED else line.commit,
                "path": line.path,
                "text": redactor(line.text),
                "origin": origin_json(blamer, origin, redactor),
            }
            for number, line, origin in found
        ],
    }


def why(blamer: Blamer, name: str, redactor: Redactor) -> dict[str, Any]:
    """`asrd.why/1`: who made a commit, and where its lines come from."""
    commit = blamer.commit(name)
    info = blamer.repository.info(commit.commit)
    lines: Counter[tuple[str, str, str] | None] = Counter()
    origins: dict[tuple[str, str, str], list[Origin]] = {}
    for some in commit.files.values():
        for one in some:
            lines[one.origin.session if one.origin else None] += one.end - one.start + 1
            if one.origin is not None:
                origins.setdefault(one.origin.session, []).append(one.origin)
    return {
        "schema": "asrd.why/1",
        "repository": blamer.repository.top,
        "commit": commit.commit,
        "at": commit.at,
        "subject": redactor(info.subject),
        "sessionsLookedAt": blamer.work.sessions,
        "committedBy": [
            {**cast("dict[str, Any]", origin_json(blamer, origin, redactor)), "evidence": evidence}
            for origin, evidence in blamer.made_by(commit.commit)
        ],
        "sessions": [
            {
                "agent": session[0],
                "sessionId": session[1],
                "namespace": session[2] or None,
                "lines": lines[session],
                "evidence": sorted({o.evidence for o in some}),
                "models": sorted({o.model for o in some if o.model}),
                "turns": [origin_json(blamer, o, redactor) for o in {(o.turn, o.prompt): o for o in some}.values()],
            }
            for session, some in origins.items()
        ],
        "unknownLines": lines[None],
        "files": {
            path: [{"start": r.start, "end": r.end, "origin": origin_json(blamer, r.origin, redactor)} for r in some]
            for path, some in commit.files.items()
        },
    }


def origin_json(blamer: Blamer, origin: Origin | None, redactor: Redactor) -> dict[str, Any] | None:
    """An origin as answers show it; null is unknown."""
    if origin is None:
        return None
    said = blamer.work.said.get((*origin.session, origin.prompt or ""))
    return {
        "agent": origin.agent,
        "sessionId": origin.session_id,
        "namespace": origin.namespace or None,
        "record": origin.record,
        "turnId": origin.turn,
        "prompt": None if origin.prompt is None else {"record": origin.prompt, "text": redactor(said or "")[:SAID]},
        "model": origin.model,
        "evidence": origin.evidence,
    }


def place_of(repository: Repository, name: str, cwd: str) -> str:
    """A file that a person names, as a path below the top of the repository. Raises RepositoryUnusable."""
    found = _below(posixpath.normpath(posixpath.join(cwd, name)), repository.top)
    if not found:
        raise RepositoryUnusable(folder=name, reason=f"it does not lie in {repository.top}")
    return found
