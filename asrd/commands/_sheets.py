"""What the commands that print a report share: in which form, and where claims are kept."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from asrd.claims import FILE, Claim, ClaimsUnreadable, read_claims
from asrd.commands._common import print_json
from asrd.errors import SettingsError
from asrd.paths import Folders
from asrd.report.sheet import Sheet, markdown, page, words
from asrd.text import Paper

FORMATS = ("text", "markdown", "json", "html")


def format_arguments(parser: argparse.ArgumentParser) -> None:
    """`--format` and `--json`."""
    parser.add_argument("--format", choices=FORMATS, default="text", help="how it is printed (default text)")
    parser.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")


def print_sheet(sheet: Sheet, form: str) -> None:
    """The report on stdout."""
    if form == "json":
        print_json(sheet.data)
    elif form == "markdown":
        sys.stdout.write(markdown(sheet))
    elif form == "html":
        sys.stdout.write(page(sheet))
    else:
        _text(sheet, Paper())


def _text(sheet: Sheet, paper: Paper) -> None:
    paper.line(paper.paint(words(sheet.title), "bold"))
    for sentence in sheet.lead:
        paper.line(words(sentence))
    for table in sheet.tables:
        paper.line()
        paper.line(paper.paint(words(table.title), "cyan"))
        if table.rows or table.foot:
            paper.table([h.upper() for h in table.heads], table.rows, right=table.right, foot=table.foot)
        else:
            paper.line("None.")
        for note in table.notes:
            paper.line(paper.paint(words(note), "dim"))


def claims_file(given: str | None, cwd: Path, folders: Folders) -> Path:
    """The claims file: the one that is given, else the one of this working tree, else the one beside asrd's settings."""
    if given is not None:
        return Path(given)
    for folder in (cwd, *cwd.parents):
        if (folder / FILE).is_file() or (folder / ".git").exists():
            return folder / FILE
    return folders.config.with_name("claims.toml")


def text_of(path: Path) -> str:
    """What a file holds, "" where there is none. Raises SettingsError."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "something that is not UTF-8"
        raise SettingsError(path=path, key="the file", expected="readable", found=reason) from error


def claims_of(path: Path) -> dict[str, Claim]:
    """The claims of a file. Raises SettingsError with the place of what is wrong."""
    text = text_of(path)
    try:
        return read_claims(text)
    except ClaimsUnreadable as error:
        raise refused(path, error) from error


def refused(path: Path, error: ClaimsUnreadable) -> SettingsError:
    """What is wrong with a claims file, as its user reads it."""
    return SettingsError(path=path, key=error.key, expected=error.expected, found=error.found)
