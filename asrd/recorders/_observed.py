"""What the words of tools prove: exit codes, commits, and the contents of files. No harness, and no recorder, of its own.

A content is known for certain from a whole read or a write; an edit makes the next one of it. A command may change any
file, so after one a content is doubtful until a digest, a read or a diff of the whole file confirms it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from msgspec import Struct

from asrd.recorders.base import sha256
from asrd.records import Content

KEEP_FILES = 64
"""Files whose contents are kept to tell what an edit makes of them."""
KEEP_CHARACTERS = 256 * 1024
"""The longest content that is kept."""

_COMMIT = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_FULL_ID = re.compile(r"(?m)^[ \t]*(?:Output: )?(?:commit )?([0-9a-f]{64}|[0-9a-f]{40})[ \t]*$")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def commits(command: str | None, output: str) -> list[str]:
    """Full commit ids, each on a line of its own, that a command which commits gave out; in order, each once."""
    if not command or not _COMMIT.search(command):
        return []
    return list(dict.fromkeys(_FULL_ID.findall(output)))


def absolute(cwd: str | None, path: str) -> str:
    """The path as one key for a file, below `cwd` when it is relative and that is known."""
    return posixpath.normpath(posixpath.join(cwd or "", path))


def content_of(text: str) -> Content:
    """Digest and size of a text as UTF-8."""
    return Content(sha256=sha256(text), bytes=len(text.encode("utf-8", "surrogatepass")))


def replaced(text: str, edits: Iterable[tuple[str, str, bool]]) -> str | None:
    """What exact replacements (old, new, every) make of a text; None where an old text is absent or not the only one."""
    for old, new, every in edits:
        found = text.count(old) if old else 0
        if not found or (found > 1 and not every):
            return None
        text = text.replace(old, new)
    return text


def patched(text: str, diff: str) -> str | None:
    """What a unified diff makes of a text; None where a line of it does not fit. Lines are what stands between newlines."""
    lines, out, at = text.split("\n"), list[str](), 0
    hunks, remaining = False, [0, 0]
    for line in diff.split("\n"):
        if head := _HUNK.match(line):
            start = int(head[1]) - (1 if head[2] != "0" else 0)
            if start < at or start > len(lines):
                return None
            out += lines[at:start]
            at, hunks = start, True
            remaining = [int(head[2] or 1), int(head[4] or 1)]
        elif hunks and line[:1] in (" ", "-", "+") and (remaining[0] or remaining[1]):
            if line[0] != "+":
                if at >= len(lines) or lines[at] != line[1:]:
                    return None
                at += 1
                remaining[0] -= 1
            if line[0] != "-":
                out.append(line[1:])
                remaining[1] -= 1
    return "\n".join(out + lines[at:]) if hunks else None


class Known(Struct):
    """What is known of one file now. `text` only where the whole content is known."""

    sha256: str | None = None
    bytes: int | None = None
    text: str | None = None
    doubtful: bool = False


class Contents(Struct):
    """What is known of the contents of files, by absolute path."""

    files: dict[str, Known] = {}

    def get(self, path: str) -> Known | None:
        return self.files.get(path)

    def is_(self, path: str, text: str) -> None:
        """The file holds exactly this."""
        self.files.pop(path, None)
        content = content_of(text)
        kept = text if len(text) <= KEEP_CHARACTERS else None
        self.files[path] = Known(content.sha256, content.bytes, kept)
        while len(self.files) > KEEP_FILES:
            self.files.pop(next(iter(self.files)))

    def shows(self, path: str, *texts: str) -> None:
        """The file holds one of these, and a digest may say which: the first is kept, as doubtful."""
        known = self.files.get(path)
        for text in texts:
            if known is not None and known.sha256 == sha256(text):
                self.is_(path, text)
                return
        self.is_(path, texts[0])
        self.files[path].doubtful = True

    def hashes(self, path: str, digest: str, size: int | None) -> None:
        """The source says the digest of the file. A kept text that has it (or has it without, or with, its last
        newline) is certain from now on; another is forgotten.
        """
        known = self.files.get(path)
        text = known.text if known else None
        if text is not None:
            for form in (text, text + "\n", text.removesuffix("\n")):
                if sha256(form) == digest:
                    self.is_(path, form)
                    return
        self.files.pop(path, None)
        self.files[path] = Known(digest, size)

    def doubt(self) -> None:
        """A command ran: any file may be another now."""
        for known in self.files.values():
            known.doubtful = True

    def forget(self, path: str) -> None:
        self.files.pop(path, None)
