"""What git says of a repository: read only, without running anything that its settings name.

Raises RepositoryUnusable where git is not there, or the folder is none of a repository.
"""

from __future__ import annotations

import os
import subprocess
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from asrd.errors import RepositoryUnusable

SAFE = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "core.pager=cat",
    "-c",
    "log.showSignature=false",
)
UNCOMMITTED = "0" * 40
EVERYWHERE = ("--all", "--reflog")
PATCHES = 2_000
"""Commits of a file that are looked at for one with the same patch."""
TIPS = 100
"""Tips of branches and of what is forgotten that are looked at for a squash."""


class BlamedLine(Struct, frozen=True):
    """A line as `git blame` says: its commit and its number and path there, and the content before that commit."""

    commit: str
    line: int
    path: str
    previous: str | None
    previous_path: str | None
    text: str
    boundary: bool = False
    """Whether it is older than the range that was asked for."""


class CommitInfo(Struct, frozen=True):
    """A commit: when it was committed (seconds since 1970 and RFC 3339), its parents, and its subject."""

    commit: str
    time: float
    at: str
    parents: list[str]
    subject: str


class Repository:
    """A repository, by a folder of its working tree."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.top = self._ask("rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").rstrip("\n")
        self._blobs: dict[tuple[str, str], str | None] = {}
        self._infos: dict[str, CommitInfo] = {}

    def _run(self, *words: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        folder = getattr(self, "top", self.folder)
        env = {
            **os.environ,
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }
        try:
            return subprocess.run(
                ["git", *SAFE, "-C", folder, *words], input=given, capture_output=True, check=False, env=env
            )
        except OSError as error:
            raise RepositoryUnusable(folder=self.folder, reason=error.strerror or str(error)) from error

    def _ask(self, *words: str, given: bytes | None = None) -> bytes:
        done = self._run(*words, given=given)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise RepositoryUnusable(
                folder=self.folder, reason=said[-1] if said else f"git ended with {done.returncode}"
            )
        return done.stdout

    @cached_property
    def trees(self) -> list[str]:
        """The folders of all its working trees."""
        found = self._ask("worktree", "list", "--porcelain").decode("utf-8", "surrogateescape")
        return [line[9:] for line in found.splitlines() if line.startswith("worktree ")]

    def holds(self, commit: str) -> bool:
        """Whether it has a commit."""
        return bool(commit) and commit.isalnum() and self._run("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0

    def commit(self, name: str) -> str:
        """The full id of a commit. Raises RepositoryUnusable for what names none."""
        return self._ask("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").decode().strip()

    def commits(self, which: str) -> list[str]:
        """The commits of a range (`a..b`), or one, the oldest first."""
        if ".." not in which:
            return [self.commit(which)]
        return self._ask("rev-list", "--reverse", "--end-of-options", which).decode().split()

    def info(self, commit: str) -> CommitInfo:
        """What is known of a commit."""
        if commit not in self._infos:
            words = ("show", "-s", "--format=%ct%x00%cI%x00%P%x00%s", "--end-of-options", commit)
            time, at, parents, subject = self._ask(*words).decode("utf-8", "replace").rstrip("\n").split("\0", 3)
            self._infos[commit] = CommitInfo(commit, float(time), at, parents.split(), subject)
        return self._infos[commit]

    def content(self, commit: str | None, path: str) -> str | None:
        """A file at a commit (None: in the working tree); None where it is not there, or is no file."""
        if commit is None:
            try:
                return (Path(self.top) / path).read_bytes().decode("utf-8", "surrogateescape")
            except OSError:
                return None
        key = (commit, path)
        if key not in self._blobs:
            done = self._run("cat-file", "blob", f"{commit}:{path}")
            text = done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None
            self._blobs[key] = text
        return self._blobs[key]

    def blame(
        self, path: str, revision: str | None = None, first: int | None = None, last: int | None = None
    ) -> list[BlamedLine]:
        """Every line of a file (of the working tree, or at a revision) with its commit. Raises RepositoryUnusable."""
        words = ["blame", "--porcelain", "--no-textconv"]
        if first is not None:
            words.append(f"-L{first},{last if last is not None else first}")
        said = self._ask(*words, *([revision] if revision else []), "--", path).decode("utf-8", "surrogateescape")
        found: list[BlamedLine] = []
        facts: dict[str, dict[str, str]] = {}
        commit, number = "", 0
        for line in said.split("\n"):
            if line.startswith("\t"):
                fact = facts[commit]
                before, _, before_path = fact.get("previous", "").partition(" ")
                where = fact.get("filename", path)
                old = "boundary" in fact
                found.append(BlamedLine(commit, number, where, before or None, before_path or None, line[1:], old))
                continue
            head, _, rest = line.partition(" ")
            if len(head) == 40 and all(c in "0123456789abcdef" for c in head):
                commit, number = head, int(rest.split()[0])
                facts.setdefault(commit, {})
            elif commit and head:
                facts[commit][head] = rest
        return found

    def changed(self, commit: str) -> list[tuple[str, str | None]]:
        """The files a commit changed against its first parent: each path, and the path before (None = new)."""
        said = self._ask(
            "diff-tree", "-r", "-z", "-M", "--root", "--no-commit-id", "--name-status", "-m", "--first-parent", commit
        )
        parts = said.decode("utf-8", "surrogateescape").split("\0")
        found: list[tuple[str, str | None]] = []
        at = 0
        while at + 1 < len(parts):
            status, path = parts[at], parts[at + 1]
            at += 2
            if status[:1] in ("R", "C"):
                found.append((parts[at], path))
                at += 1
            elif status[:1] in ("M", "T", "A"):
                found.append((path, None if status[0] == "A" else path))
        return found

    def patch(self, before: str, after: str, path: str) -> str | None:
        """The id of what changed in a file between two commits, whatever the lines are numbered (`git patch-id`)."""
        return self._patch_id(self._run("diff", "--no-ext-diff", "--no-textconv", before, after, "--", path).stdout)

    def _patch_id(self, diff: bytes) -> str | None:
        if not diff:
            return None
        said = self._ask("patch-id", "--stable", given=diff).decode().split()
        return said[0] if said else None

    def same_patch(self, commit: str, path: str) -> list[tuple[str, str]]:
        """Pairs of commits (before, after) in whose difference this file changed as it did in a commit; none of it itself.

        Commits of all branches and of what is forgotten (reflogs) are looked at one by one, then whole branches (a squash).
        """
        parents = self.info(commit).parents
        if len(parents) != 1:
            return []
        wanted = self.patch(parents[0], commit, path)
        if wanted is None:
            return []
        log = self._log("--", path)
        found: list[tuple[str, str]] = []
        mine = self._author(commit)
        for line in self._ask("patch-id", "--stable", given=log).decode().splitlines() if log else ():
            patch, other = line.split()
            above = self.info(other).parents
            if patch == wanted and len(above) == 1 and self._author(other) == mine and not self._before(other, commit):
                found.append((above[0], other))
        if found:
            return found
        tips = self._run("rev-list", *EVERYWHERE, f"-n{TIPS}", "--not", commit).stdout.decode().split()
        for tip in tips:
            base = self._run("merge-base", tip, parents[0]).stdout.decode().strip()
            if base and self.patch(base, tip, path) == wanted:
                found.append((base, tip))
        return found

    def _log(self, *words: str) -> bytes:
        """The patches of commits of all branches and reflogs, the newest first."""
        return self._run(
            "log", *EVERYWHERE, "-p", "--no-merges", "--no-ext-diff", "--no-textconv", f"-n{PATCHES}", *words
        ).stdout

    def _author(self, commit: str) -> bytes:
        """Who wrote a commit, and when: a rebase and a cherry-pick keep that."""
        return self._ask("show", "-s", "--format=%an%x00%ae%x00%at", "--end-of-options", commit)

    def _before(self, other: str, commit: str) -> bool:
        """Whether a commit is (in) the history of another: then it is none that was rewritten into it."""
        return self._run("merge-base", "--is-ancestor", other, commit).returncode == 0

    def same_commit(self, commit: str) -> list[str]:
        """Other commits whose whole patch is that of a commit (a rebase, a cherry-pick)."""
        if len(self.info(commit).parents) > 1:
            return []
        mine = self._run("diff-tree", "-p", "--root", "--no-ext-diff", "--no-textconv", commit).stdout
        wanted = self._patch_id(mine)
        log = self._log()
        if wanted is None or not log:
            return []
        pairs = [line.split() for line in self._ask("patch-id", "--stable", given=log).decode().splitlines()]
        author = self._author(commit)
        return [
            other
            for patch, other in pairs
            if patch == wanted and self._author(other) == author and not self._before(other, commit)
        ]
