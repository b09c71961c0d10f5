"""A report shows words, whatever they are."""

import re
from decimal import Decimal

import pytest

from asrd.report.sheet import Sheet, Table, hours, markdown, page, plain, words

HOSTILE = (
    "</td><script>alert(1)</script>\x1b[31m‮[x](javascript:1) | `a` <img src=x onerror=1> www.x.org https://x.org @me"
)


def sheet() -> Sheet:
    return Sheet(
        title=HOSTILE,
        lead=[HOSTILE],
        tables=[
            Table(title="T", heads=["a", "b", "c"], rows=[[HOSTILE, 1234, None]], right=[1], foot=["t", 0, True], notes=[HOSTILE]),
            Table(title="Empty", heads=["a"], rows=[]),
        ],
    )  # fmt: skip


def test_a_page_has_no_tag_of_the_words_it_shows() -> None:
    text = page(sheet())

    tags = {t.lower() for t in re.findall(r"<\s*/?\s*([a-zA-Z!][a-zA-Z0-9]*)", text)}

    assert tags <= {"!doctype", "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "table", "thead",
                    "tbody", "tfoot", "tr", "th", "td"}  # fmt: skip
    assert "\x1b" not in text and "‮" not in text
    assert "default-src 'none'" in text


def test_markdown_keeps_one_row_a_line_and_shows_marks_as_words() -> None:
    text = markdown(sheet())

    row = next(line for line in text.splitlines() if "1,234" in line)

    assert len(re.findall(r"(?<!\\)\|", row)) == 4
    assert row.endswith("| 1,234 | – |")
    assert "<" not in text.replace("&lt;", "") and "](" not in text.replace("\\](", "")
    assert "https://" not in text and "@" not in text and "www." not in text


@pytest.mark.parametrize(
    ("cell", "right"),
    [
        (None, "–"),
        (0, "0"),
        (True, "yes"),
        (False, "no"),
        (1234567, "1,234,567"),
        ("a\n b", "a b"),
        ("a\x00", "a\ufffd"),
    ],
)
def test_a_cell_is_words(cell: str | int | None, right: str) -> None:
    found = words(cell)

    assert found == right


@pytest.mark.parametrize(
    ("seconds", "right"),
    [(0, "0.00 h"), (None, None), (3600, "1.00 h"), (Decimal("18"), "<0.01 h"), (54, "0.02 h"), (3.6e6, "1,000.00 h")],
)
def test_hours_are_rounded_once_and_unknown_stays_unknown(seconds: float | None, right: str | None) -> None:
    found = hours(seconds)

    assert found == right


def test_ordinary_names_stay_readable_in_markdown() -> None:
    names = ["claude-code:143fb411", "codex_task_tree.yaml", "0.5 h", "session-051, session-052"]

    found = [plain(n) for n in names]

    assert found == names
