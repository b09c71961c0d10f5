"""What the shell can tell of a working tree now: files by digest, the commit git is at. Reads, never writes."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable

from asrd.handoff import FileNow

LARGEST = 32 << 20
"""Bytes of the largest file that is digested."""


class RealTree:
    """The working tree of this machine. Of a folder that is not here at all, nothing can be told."""

    def __init__(self, roots: Iterable[str]) -> None:
        self._missing = tuple(r.rstrip("/") + "/" for r in roots if not os.path.isdir(r))

    def file(self, path: str) -> FileNow | None:
        """The file at an absolute path; None = cannot be told."""
        if self._missing and path.startswith(self._missing):
            return None
        try:
            info = os.stat(path)
        except FileNotFoundError:
            return FileNow(False)
        except OSError:
            return None
        if not stat.S_ISREG(info.st_mode) or info.st_size > LARGEST:
            return FileNow(True)
        try:
            with open(path, "rb") as file:
                return FileNow(True, hashlib.file_digest(file, "sha256").hexdigest())
        except OSError:
            return FileNow(True)

    def head(self, folder: str) -> str | None:
        """The commit that git is at in a folder; None = none, or cannot be told."""
        if not os.path.isdir(folder):
            return None
        command = ["git", "-C", folder, "rev-parse", "HEAD"]
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=5, check=False, env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.decode().strip() or None if done.returncode == 0 else None
