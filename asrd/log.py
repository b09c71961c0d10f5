"""Where the daemon's own words go: the journal, stderr, or a file that is rotated. Text, or one JSON object a line.

Under systemd stderr is the journal: each line begins with its priority (sd-daemon(3)), so that `journalctl -p warning` works.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO, Literal

import msgspec

Format = Literal["text", "json"]
_PRIORITY = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}
NOISY = ("watchfiles", "asyncio", "websockets")


class Text(logging.Formatter):
    """`2026-11-30T09:00:00Z WARNING words`; without the time where the journal keeps it, with its priority instead."""

    def __init__(self, journal: bool = False) -> None:
        super().__init__()
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        """One line, or more for a traceback; each line of it has the priority."""
        words = record.getMessage()
        if record.exc_info:
            words += "\n" + self.formatException(record.exc_info)
        if self._journal:
            mark = f"<{_PRIORITY.get(record.levelno, 5)}>"
            return "\n".join(mark + line for line in words.split("\n"))
        return f"{_at(record)} {record.levelname} {words}"


class Json(logging.Formatter):
    """`{"at", "level", "message", "error"?}`, one line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        said = {"at": _at(record), "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(said).decode("utf-8", "replace")


class PrivateFile(RotatingFileHandler):
    """A file of at most `size` bytes that is then renamed to `.1`, with `keep` of these; all are 0600."""

    def __init__(self, path: Path, size: int, keep: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        super().__init__(path, maxBytes=size, backupCount=keep, encoding="utf-8", errors="replace", delay=True)

    def _open(self) -> IO[str]:  # type: ignore[override]
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(handle, "a", encoding="utf-8", errors="replace")


def begin(
    env: Mapping[str, str], form: Format, file: Path | None = None, size: int = 10_000_000, keep: int = 5, verbose: bool = False
) -> None:  # fmt: skip
    """Sends the words of this process where they belong. With a file they go there, and to stderr only from warnings on.

    Raises OSError where the file cannot be written.
    """
    stderr = logging.StreamHandler(sys.stderr)
    stderr.setFormatter(Json() if form == "json" else Text(journal="JOURNAL_STREAM" in env))
    handlers: list[logging.Handler] = [stderr]
    if file is not None:
        kept = PrivateFile(file, size, keep)
        kept.setFormatter(Json() if form == "json" else Text())
        os.close(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600))  # tells now what is wrong
        stderr.setLevel(logging.WARNING)
        handlers.append(kept)
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
