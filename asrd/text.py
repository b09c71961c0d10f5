"""Text for people: tables, colours, numbers, times. Whatever a session holds is made inert before a terminal sees it."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import IO, Any

_INERT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Control characters (escapes), marks that reorder text, invisible ones, lone surrogates."""

COLOURS = {
    "dim": "2",
    "bold": "1",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def inert(text: str) -> str:
    """Text that a terminal shows and does not obey; tabs and newlines stay."""
    return text if _plain(text) else _INERT.sub("\ufffd", text)


def inert_json(text: str) -> str:
    """JSON text in which the same characters are escaped: the same values, and nothing that a terminal obeys."""
    return text if _plain(text) else _INERT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _plain(text: str) -> bool:
    """Whether it holds nothing but printable ASCII, tabs and newlines: told ten times as fast as by searching."""
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


_COLOUR = r"\x1b\[[0-9;]*m"
COLOURED = re.compile(_COLOUR)
"""What paints text; it takes no column."""
_OURS = re.compile(rf"({_COLOUR}|\r?\x1b\[K|\r(?=asrd: ))")
"""What asrd itself writes to a terminal: colours, and a line anew."""


class Guard:
    """A text stream that lets through what a terminal shows, and of what it obeys only what asrd itself writes.

    Commands make what sessions hold inert themselves; this is for what one of them forgets, and for names of files that are
    no text. What is no terminal gets no colours either.
    """

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._ours = _OURS if out.isatty() else None

    def write(self, text: str) -> int:
        """Writes text, made inert."""
        if self._ours is None:
            return self._out.write(inert(text))
        parts = self._ours.split(text)
        parts[::2] = [inert(part) for part in parts[::2]]
        return self._out.write("".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


def one_line(text: str | None, width: int) -> str:
    """Text on one line, at most `width` columns wide."""
    return cut(" ".join(inert(text or "").split()), width)


def code_line(text: str, width: int) -> str:
    """A line of a file with the room it leaves at its beginning and within, at most `width` columns wide."""
    return cut(inert(text.expandtabs(4)).replace("\n", " ").rstrip(), width)


def cut(line: str, width: int) -> str:
    """A line, cut where it is wider than `width` columns."""
    if columns(line) <= width:
        return line
    out = ""
    for char in line:
        if columns(out + char) > width - 1:
            break
        out += char
    return out + "…"


def columns(text: str) -> int:
    """How many columns a terminal needs for it."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


NARROWEST = 16
"""Columns that are left, on the narrowest terminal, to the cell that is cut: an id as lists show it, and a bit."""


class Paper:
    """Where text goes: coloured and fitted on a terminal, plain in a pipe."""

    def __init__(self, out: IO[str] | None = None, colour: bool | None = None) -> None:
        self.out = out or sys.stdout
        self.terminal = self.out.isatty()
        self.colour = (self.terminal and "NO_COLOR" not in os.environ) if colour is None else colour
        try:
            self.width = os.get_terminal_size(self.out.fileno()).columns if self.terminal else 0
        except (OSError, ValueError):
            self.width = 0

    def line(self, text: str = "") -> None:
        """One line."""
        self.out.write(text + "\n")

    def paint(self, text: str, colour: str | None) -> str:
        """Text in a colour, where colours are shown."""
        return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if colour and self.colour and text else text

    def table(
        self,
        heads: Sequence[str],
        rows: Iterable[Sequence[Any]],
        right: Sequence[int] = (),
        colours: dict[int, str] | None = None,
        wide: Sequence[int] = (),
        foot: Sequence[Any] | None = None,
        yields: Sequence[int] = (),
    ) -> None:
        """Aligned columns. `right`: columns aligned right; `wide`: those that are cut to fit a terminal, the first one least;
        `yields`: those that are left out, in this order, of a terminal that is too narrow still, and named below the table.
        """
        body = [[cell(c) for c in row] for row in rows]
        last = [cell(c) for c in foot] if foot else None
        everything = [list(heads), *body, *([last] if last else [])]
        widths = [max(columns(r[i]) for r in everything) for i in range(len(heads))]
        shown, left_out = list(range(len(heads))), list(yields)

        def over() -> int:
            return sum(widths[i] for i in shown) + 2 * (len(shown) - 1) - self.width

        if self.width and over() > 0:
            needed = widths.copy()
            for i in wide:
                widths[i] = min(needed[i], NARROWEST)
            while over() > 0 and left_out:
                shown.remove(left_out.pop(0))
            for i in wide:
                if i in shown:
                    widths[i] = min(needed[i], widths[i] + max(0, -over()))

        def show(row: Sequence[str], paint: str | None = None) -> None:
            parts: list[str] = []
            for i in shown:
                text = one_line(row[i], widths[i]) if i in wide else row[i]
                pad = " " * max(0, widths[i] - columns(text))
                tinted = self.paint(text, paint or (colours or {}).get(i))
                parts.append(pad + tinted if i in right else tinted + pad)
            self.line("  ".join(parts).rstrip())

        show(heads, "bold")
        for row in body:
            show(row)
        if last:
            show(last, "bold")
        if gone := [heads[i].lower() for i in yields if i not in shown]:
            self.line(self.paint(one_line(f"too narrow for: {', '.join(gone)}", self.width), "dim"))


def cell(value: Any) -> str:
    """A value as a table shows it: unknown is a dash, numbers have thousands apart."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return inert(str(value)).replace("\n", " ")


def size(number: int) -> str:
    """Bytes for people."""
    amount = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return ""


def when(text: str | None, now: datetime) -> str:
    """A time as a person reads it: how long ago, or the day."""
    if not text:
        return "–"
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return text[:16]
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    passed = (now - moment).total_seconds()
    if 0 <= passed < 60:
        return "now"
    if 0 <= passed < 3600:
        return f"{int(passed // 60)} min ago"
    if 0 <= passed < 86400:
        return f"{int(passed // 3600)} h ago"
    if 0 <= passed < 7 * 86400:
        return f"{int(passed // 86400)} d ago"
    return moment.astimezone().strftime("%Y-%m-%d")
