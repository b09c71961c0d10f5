"""A report as tables of cells, and how it is set in Markdown and HTML. Text on a terminal is `asrd.text`'s.

Cells are strings, whole numbers, yes/no, or None = unknown (a dash; never 0). Whatever a session, a file or a claim says
stays words in each form: Markdown's marks and HTML's tags are escaped, control characters and marks that reorder text
are replaced. The page has no script and loads nothing.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal
from html import escape
from typing import Any, TypeAlias

from msgspec import Struct

Cell: TypeAlias = str | int | bool | None

_INERT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_MARKS = re.compile(r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_TAGS = re.compile("[<>&@]")
_START = re.compile(r"^[#+=-]")


class Table(Struct, kw_only=True):
    """One table. `right`: the columns of numbers; `foot`: a last row apart; `notes`: sentences below it."""

    title: str
    heads: list[str]
    rows: list[list[Cell]]
    right: list[int] = []
    foot: list[Cell] | None = None
    notes: list[str] = []


class Sheet(Struct, kw_only=True):
    """A report: its title, sentences before the tables, the tables, and the same as JSON values with a `schema`."""

    title: str
    lead: list[str] = []
    tables: list[Table] = []
    data: dict[str, Any] = {}


def hours(seconds: float | Decimal | None) -> str | None:
    """Seconds as hours with two decimals, rounded once here; what is something never shows as nothing; None stays unknown."""
    if seconds is None:
        return None
    value = seconds if isinstance(seconds, Decimal) else Decimal(str(seconds))
    found = (value / 3600).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
    return "<0.01 h" if value > 0 and not found else f"{found:,} h"


def words(cell: Cell) -> str:
    """A cell as text on one line, harmless where it is shown."""
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return " ".join(_INERT.sub("\ufffd", cell).split())


# ---------------------------------------------------------------- Markdown


def markdown(sheet: Sheet) -> str:
    """The report as GitHub's Markdown."""
    lines = [f"# {plain(sheet.title)}", ""]
    for sentence in sheet.lead:
        lines += [plain(sentence), ""]
    for table in sheet.tables:
        lines += [f"## {plain(table.title)}", ""]
        rows = [*table.rows, *([table.foot] if table.foot else [])]
        if rows:
            lines.append("| " + " | ".join(plain(h) for h in table.heads) + " |")
            lines.append("|" + "|".join("---:" if i in table.right else "---" for i in range(len(table.heads))) + "|")
            lines += ["| " + " | ".join(plain(c) for c in row) + " |" for row in rows]
            lines.append("")
        else:
            lines += ["None.", ""]
        for note in table.notes:
            lines += [plain(note), ""]
    return "\n".join(lines).rstrip() + "\n"


def plain(cell: Cell) -> str:
    """A cell as Markdown that shows exactly its words: no marks, tags, links, mentions or headings of its own."""
    text = words(cell)
    if not isinstance(cell, str):
        return text
    text = _TAGS.sub(lambda m: _ENTITIES[m[0]], _MARKS.sub(r"\\\g<0>", text))
    return _START.sub(r"\\\g<0>", text.replace("://", "&#58;//").replace("www.", "www&#46;"))


_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;"}


# ---------------------------------------------------------------- HTML

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --dim: #5f6670; --line: #d9dde3; --band: #f4f6f8; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e6ea; --dim: #9aa2ad; --line: #363b43; --band: #22262c; --page: #17191d; }
}
* { box-sizing: border-box; }
body { margin: 2rem auto; max-width: 88rem; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif;
       color: var(--ink); background: var(--page); }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { margin: .4rem 0; max-width: 60rem; } .note { color: var(--dim); font-size: .875rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .875rem; min-width: 40rem; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top;
         overflow-wrap: break-word; max-width: 28rem; }
thead th { border-bottom: 2px solid var(--line); color: var(--dim); font-weight: 600; white-space: nowrap; }
tbody tr:hover { background: var(--band); }
tfoot td { border-top: 2px solid var(--line); border-bottom: 0; font-weight: 600; }
.n { text-align: right; white-space: nowrap; } .s { white-space: nowrap; }
""".strip()


def page(sheet: Sheet) -> str:
    """The report as one HTML page: no script, nothing loaded from anywhere, every word escaped."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{_html(sheet.title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{_html(sheet.title)}</h1>",
        *[f"<p>{_html(sentence)}</p>" for sentence in sheet.lead],
    ]
    for table in sheet.tables:
        parts.append(f"<h2>{_html(table.title)}</h2>")
        if table.rows or table.foot:
            parts.append('<div class="wide"><table><thead>' + _row(table.heads, table.right, "th") + "</thead><tbody>")
            parts += [_row(row, table.right, "td") for row in table.rows]
            parts.append("</tbody>")
            if table.foot:
                parts.append("<tfoot>" + _row(table.foot, table.right, "td") + "</tfoot>")
            parts.append("</table></div>")
        else:
            parts.append("<p>None.</p>")
        parts += [f'<p class="note">{_html(note)}</p>' for note in table.notes]
    parts.append("</body></html>")
    return "\n".join(parts) + "\n"


def _row(cells: list[Any], right: list[int], tag: str) -> str:
    made: list[str] = []
    for i, cell in enumerate(cells):
        text = words(cell)
        kind = ' class="n"' if i in right else ' class="s"' if len(text) <= SHORT else ""
        made.append(f"<{tag}{kind}>{escape(text)}</{tag}>")
    return "<tr>" + "".join(made) + "</tr>"


SHORT = 24
"""Characters of a cell that stays on one line on a page: a time, a name."""


def _html(cell: Cell) -> str:
    return escape(words(cell))
