"""What a person set in `config.toml`. Without the file everything has its default; a mistake in it is a sentence.

[seal]
after = "30d"          # compress streams that were idle for so long; "never" leaves them as they are

[[retain]]             # words go, what counts stays; without a rule nothing ever goes
age = "180d"
harness = "codex"      # optional: only its sessions
project = "~/scratch"  # optional: only sessions in this folder or below it

[[retain]]
size = "20GB"          # the oldest first, until all (of this rule) are smaller

[search]
index = true           # the daemon keeps the search index up to date

[log]
format = "text"        # or "json"
file = "~/asrd.log"    # besides the journal or stderr; rotated
size = "10MB"
keep = 5
"""

from __future__ import annotations

import re
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from asrd.errors import SettingsError
from asrd.retention import Rule

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_SPANS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1), "y": timedelta(days=365)}


class _Table(Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """A table of the file."""


class Seal(_Table, frozen=True):
    """`[seal]`: after what time at rest a stream is compressed; None = never."""

    after: timedelta | None = timedelta(days=30)


class Search(_Table, frozen=True):
    """`[search]`."""

    index: bool = True


class Log(_Table, frozen=True):
    """`[log]`. `size` in bytes; `keep`: how many full files stay."""

    format: Literal["text", "json"] = "text"
    file: str | None = None
    size: int = 10_000_000
    keep: int = 5


class Settings(_Table, frozen=True):
    """The whole file."""

    seal: Seal = Seal()
    retain: tuple[Rule, ...] = ()
    search: Search = Search()
    log: Log = Log()


def read(path: Path, home: Path) -> Settings:
    """The settings in a file; the defaults where there is none. `home`: what `~` stands for.

    Raises SettingsError for what is no TOML, an unknown key, or a value that cannot be.
    """
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise SettingsError(path=path, key="the file", expected="readable", found=error.strerror) from error
    except ValueError as error:
        raise SettingsError(path=path, key="the file", expected="TOML", found=str(error)) from error
    for number, rule in enumerate(_tables(given, "retain")):
        where = f"retain[{number}]"
        if not rule.keys() & {"age", "size"}:
            raise SettingsError(path=path, key=where, expected="a rule with age or size", found=str(rule))
        _turn(rule, "age", age, path, where)
        _turn(rule, "size", size, path, where)
        if isinstance(project := rule.get("project"), str):
            rule["project"] = str(_below(home, project)).rstrip("/") or "/"
    for table in _tables(given, "seal"):
        if table.get("after") == "never":
            table["after"] = None
        _turn(table, "after", age, path, "seal")
    for table in _tables(given, "log"):
        _turn(table, "size", size, path, "log")
        if isinstance(file := table.get("file"), str):
            table["file"] = str(_below(home, file))
    try:
        found = msgspec.convert(given, Settings)
    except msgspec.ValidationError as error:
        words, _, at = str(error).partition(" - at ")
        key = at.strip("`").removeprefix("$.") or "the file"
        got = re.fullmatch(r"Expected (.*), got (.*)", words)
        if got:
            raise SettingsError(path=path, key=key, expected=got[1], found=got[2]) from error
        raise SettingsError(path=path, key=key, expected="something asrd knows", found=words) from error
    if found.log.size < 1 or found.log.keep < 0:
        raise SettingsError(path=path, key="log.size and log.keep", expected="a size, and 0 or more", found=found.log)
    return found


def age(text: Any) -> timedelta:
    """`12h`, `90d`, `6w`, `2y`. Raises ValueError."""
    found = re.fullmatch(r"(\d{1,6})\s*([hdwy])", text.strip()) if isinstance(text, str) else None
    if not found or int(found[1]) < 1:
        raise ValueError("a time such as 12h, 90d, 6w, 2y")
    return int(found[1]) * _SPANS[found[2]]


def size(text: Any) -> int:
    """Bytes: `500MB`, `20GB`, `1GiB`, or a plain number. Raises ValueError."""
    if isinstance(text, int) and not isinstance(text, bool) and text >= 0:
        return text
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)\s*([A-Za-z]*)", text.strip()) if isinstance(text, str) else None
    if not found or found[2].upper() not in _UNITS:
        raise ValueError("a size such as 500MB, 20GB, 1GiB")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _tables(given: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The tables of that name that are tables; what is not is told by the conversion."""
    found: Any = given.get(name, [])
    several: list[Any] = cast("list[Any]", found) if isinstance(found, list) else [found]
    return [one for one in several if isinstance(one, dict)]


def _turn(table: dict[str, Any], key: str, turn: Any, path: Path, where: str) -> None:
    if table.get(key) is None:
        return
    try:
        table[key] = turn(table[key])
    except ValueError as error:
        raise SettingsError(path=path, key=f"{where}.{key}", expected=error, found=repr(table[key])) from error


def _below(home: Path, text: str) -> Path:
    return home / text[2:] if text.startswith("~/") else home if text == "~" else Path(text)
