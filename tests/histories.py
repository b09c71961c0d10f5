"""Repositories with a history of which every line's author is known: sessions, people, commits, rebases and squashes."""

import difflib
import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from asrd.attribution import digest
from asrd.query import Stored
from asrd.records import (
    Agent,
    AnyRecord,
    Content,
    FileChange,
    Inference,
    Lineage,
    Message,
    Place,
    Producer,
    Session,
    Text,
    ToolCall,
    Turn,
    VcsAction,
    Workspace,
    WorkspaceRoot,
    encode,
)
from asrd.rollup import SessionRow

START = 1_796_000_000
HUMAN = "human"


class Clock:
    """Counts seconds, so that commits and edits have times that tell their order."""

    def __init__(self) -> None:
        self.now = START

    def tick(self) -> int:
        self.now += 10
        return self.now


class Told:
    """One session, told record by record."""

    def __init__(self, name: str, folder: str, clock: Clock) -> None:
        self.name, self.clock = name, clock
        self.records: list[AnyRecord] = []
        self.calls = 0
        self.add(
            Session(
                format_version="0.1", agent=Agent(name="example"), session_id=name, lineage=Lineage(root=True), scope="primary",
                producer=Producer(name="asrd", version="0", method="native"), profiles=["core", "coding"], content_level="full",
                workspace=Workspace(roots=[WorkspaceRoot(id="w", path=folder)]),
            )
        )  # fmt: skip

    def add(self, record: AnyRecord) -> None:
        record.seq = len(self.records)
        record.id = f"r{record.seq}" if record.seq else "h"
        self.records.append(record)

    def at(self) -> str:
        from datetime import UTC, datetime

        return datetime.fromtimestamp(self.clock.tick(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def asks(self, text: str) -> None:
        turn = f"{self.name}-t{len(self.records)}"
        self.add(Turn(turn_id=turn, phase="start", trigger="prompt", at=self.at()))
        self.add(Message(role="user", author="human", origin="prompt", turn_id=turn, content=[Text(text=text)]))
        self.turn = turn

    def edits(self, path: str, before: str | None, after: str, how: str = "diff") -> None:
        """A recorded edit; `how`: with its diff, with the texts it replaced, or with digests only."""
        self.calls += 1
        call, inference = f"{self.name}-c{self.calls}", f"{self.name}-i{self.calls}"
        self.add(Inference(inference_id=inference, model="model-1", turn_id=self.turn))
        given: dict[str, Any] = {"path": path}
        if how == "texts" and before is not None:
            given |= {"old_string": before, "new_string": after}
        self.add(ToolCall(call_id=call, name="Edit", input=given, inference_id=inference, turn_id=self.turn))
        diff = "".join(
            difflib.unified_diff(
                (before or "").splitlines(True), after.splitlines(True), "a", "b", n=random.Random(0).choice([3])
            )
        )
        self.add(
            FileChange(
                path=Place(root="w", path=path),
                change="create" if before is None else "modify",
                before=None if before is None else Content(sha256=digest(before)),
                after=Content(sha256=digest(after)),
                diff=diff if how == "diff" else None,
                applied=True,
                call_id=call,
                turn_id=self.turn,
                at=self.at(),
            )
        )

    def commits(self, commit: str) -> None:
        self.add(VcsAction(action="commit", commit=commit, evidence="observed", turn_id=self.turn, at=self.at()))


class Shelf:
    """The sessions, as an index gives them."""

    def __init__(self, *told: Told) -> None:
        self.told = list(told)

    def sessions(self) -> list[Stored]:
        return [
            Stored(n, SessionRow("example", t.name, edits=1, commits=1, records=len(t.records)))
            for n, t in enumerate(self.told)
        ]

    def lines(self, stored: Stored, start: int) -> Iterator[bytes]:
        yield from (encode(r) for r in self.told[stored.number].records[start:])


class Repo:
    """A repository that is worked on."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self.folder, self.clock = folder, clock or Clock()
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, check: bool = True) -> str:
        when = f"{self.clock.tick()} +0000"
        env = {
            **os.environ, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_AUTHOR_NAME": "dev", "GIT_AUTHOR_EMAIL": "d@e.f", "GIT_COMMITTER_NAME": "dev",
            "GIT_COMMITTER_EMAIL": "d@e.f",
        }  # fmt: skip
        if words[0] in ("rebase", "cherry-pick"):
            del env["GIT_AUTHOR_DATE"]
        done = subprocess.run(["git", "-C", str(self.folder), *words], capture_output=True, env=env, check=False)
        if check and done.returncode:
            raise AssertionError(done.stderr.decode() + done.stdout.decode())
        return done.stdout.decode().strip() if not done.returncode else "failed"

    def read(self, path: str) -> str | None:
        file = self.folder / path
        return file.read_text() if file.exists() else None

    def write(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def commit(self, message: str = "x") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def edit(self, told: Told, path: str, after: str, how: str = "diff") -> None:
        """A session changes a file, and it is recorded."""
        told.edits(path, self.read(path), after, how)
        self.write(path, after)


class Generated:
    """A history made by chance: who wrote which line stands in `authors`, by the line's words."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = Clock()
        self.repo = Repo(folder, self.clock)
        self.told = [Told(f"session-{seed}-{n}", str(folder), self.clock) for n in range(self.chance.randint(2, 4))]
        self.authors: dict[str, set[str]] = {}
        self.count = 0
        self.rewritten = 0
        for path in ("a.py", "b.py"):
            self.repo.write(path, "".join(self._line(HUMAN) for _ in range(12)))
        self.repo.commit("start")
        for told in self.told:
            told.asks(f"do the work of {told.name}")
        for round_ in range(5):
            self._round(round_)

    def _line(self, author: str) -> str:
        self.count += 1
        text = (
            self.chance.choice(["}", "", "    return"])
            if self.chance.random() < 0.15
            else f"line {self.count} = {self.count}"
        )
        self.authors.setdefault(text, set()).add(author)
        return text + "\n"

    def _changed(self, text: str, author: str) -> str:
        lines = text.splitlines(True)
        at = self.chance.randint(0, len(lines))
        new = [self._line(author) for _ in range(self.chance.randint(1, 4))]
        gone = self.chance.choice([0, 0, 1, 2])
        return "".join(lines[:at] + new + lines[at + gone :])

    def _work(self, author: str | Told) -> None:
        path = self.chance.choice(["a.py", "b.py"])
        text = self.repo.read(path) or ""
        if isinstance(author, Told):
            how = self.chance.choice(["diff", "diff", "texts", "digests"])
            self.repo.edit(author, path, self._changed(text, author.name), how)
        else:
            self.repo.write(path, self._changed(text, author))

    def _round(self, number: int) -> None:
        branch = f"work-{number}"
        self.repo.git("checkout", "-q", "-b", branch)
        for _ in range(self.chance.randint(1, 3)):
            for _ in range(self.chance.randint(1, 4)):
                self._work(self.chance.choice([HUMAN, *self.told, *self.told]))
            commit = self.repo.commit(f"work {number}")
            if self.chance.random() < 0.5:
                self.chance.choice(self.told).commits(commit)
        self.repo.git("checkout", "-q", "main")
        how = self.chance.choice(["merge", "rebase", "squash", "rebase"])
        if how != "merge" or self.chance.random() < 0.3:
            self._work(HUMAN)
            self.repo.commit("meanwhile")
        if how == "rebase":
            self.repo.git("checkout", "-q", branch)
            if self.repo.git("rebase", "-q", "main", check=False) == "failed":
                self.repo.git("rebase", "--abort", check=False)
            else:
                self.rewritten += 1
            self.repo.git("checkout", "-q", "main")
        if how == "squash":
            done = self.repo.git("merge", "-q", "--squash", branch, check=False)
            if done == "failed":
                self.repo.git("reset", "-q", "--hard")
                return
            self.repo.commit("squashed")
            self.rewritten += 1
        elif self.repo.git("merge", "-q", "--no-edit", branch, check=False) == "failed":
            self.repo.git("merge", "--abort", check=False)
            self.repo.git("reset", "-q", "--hard")


class Hard(Generated):
    """As `Generated`, with what makes origins hard to tell: cherry-picks, renames, lines moved to another file, reformatting,
    reverts, commits amended by a person, and sessions that write each other's lines again.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.done: Counter[str] = Counter()
        super().__init__(folder, seed)

    def _paths(self) -> list[str]:
        return self.repo.git("ls-files").splitlines()

    def _work(self, author: str | Told) -> None:
        kind = self.chance.choice(["edit", "edit", "edit", "again", "move", "format"])
        path = self.chance.choice(self._paths())
        text = self.repo.read(path) or ""
        name = author.name if isinstance(author, Told) else author
        lines = text.splitlines(True)
        if kind == "again" and lines:  # a line that someone wrote, or that was taken out, is written again
            line = self.chance.choice(sorted(self.authors)) + "\n"
            self.authors[line[:-1]].add(name)
            at = self.chance.randint(0, len(lines))
            after = "".join(lines[:at] + [line] + lines[at:])
        elif kind == "move" and len(lines) > 2 and len(self._paths()) > 1:
            at = self.chance.randrange(len(lines))
            line = lines.pop(at)
            self.authors[line.rstrip("\n")].add(name)
            self._put(author, path, "".join(lines))
            path = self.chance.choice([p for p in self._paths() if p != path])
            after = (self.repo.read(path) or "") + line
        elif kind == "format":
            wide = [line if line.startswith("    ") or not line.strip() else "    " + line for line in lines]
            for old, new in zip(lines, wide, strict=True):
                if old != new:
                    self.authors.setdefault(new.rstrip("\n"), set()).add(name)
            after = "".join(wide)
        else:
            after = self._changed(text, name)
        self.done[kind] += 1
        self._put(author, path, after)

    def _put(self, author: str | Told, path: str, after: str) -> None:
        if isinstance(author, Told):
            self.repo.edit(author, path, after, self.chance.choice(["diff", "diff", "texts", "digests"]))
        else:
            self.repo.write(path, after)

    def _round(self, number: int) -> None:
        super()._round(number)
        kind = self.chance.choice(["pick", "rename", "amend", "revert", "pick"])
        self.done[kind] += 1
        if kind == "rename":
            path = self.chance.choice(self._paths())
            self.repo.git("mv", path, f"moved-{number}.py")
            if self.chance.random() < 0.5:
                author = self.chance.choice([HUMAN, *self.told])
                name = author.name if isinstance(author, Told) else author
                text = self.repo.read(f"moved-{number}.py") or ""
                self._put(author, f"moved-{number}.py", self._changed(text, name))
            self.repo.commit("renamed")
        elif kind == "amend":
            told = self.chance.choice(self.told)
            self._work(told)
            told.commits(self.repo.commit("by a session"))
            self._work(HUMAN)
            self.repo.git("add", "-A")
            self.repo.git("commit", "-q", "--amend", "--allow-empty", "-m", "amended")
        elif kind == "revert":
            if self.repo.git("revert", "--no-edit", "HEAD", check=False) == "failed":
                self.repo.git("revert", "--abort", check=False)
                self.repo.git("reset", "-q", "--hard")
        else:
            self.repo.git("checkout", "-q", "-b", f"side-{number}")
            self._work(self.chance.choice([HUMAN, *self.told]))
            commit = self.repo.commit("on the side")
            self.repo.git("checkout", "-q", "main")
            self._work(HUMAN)
            self.repo.commit("meanwhile")
            if self.repo.git("cherry-pick", commit, check=False) == "failed":
                self.repo.git("cherry-pick", "--abort", check=False)
                self.repo.git("reset", "-q", "--hard")
            else:
                self.rewritten += 1
