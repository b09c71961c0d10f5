"""Text for people: nothing that a session holds can move the cursor, and tables stay aligned."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest

from asrd.text import Paper, cell, code_line, columns, inert, one_line, size, when

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[2J\x1b]0;title\x07",
        "\x9b31m",
        "back\b\b",
        "\r overwritten",
        "\u202e reversed",
        "zero\u200bwidth",
        "\ufeff",
        "\ud800",
        "\x7f",
        "\u2066x\u2069",
    ],
)
def test_nothing_moves_the_cursor_or_turns_text_around(text: str) -> None:
    shown = inert(text)

    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u200b\ufeff\ud800\u2066\u2069" for c in shown)
    shown.encode()
    assert inert("tab\tand\nline é 漢 😀") == "tab\tand\nline é 漢 😀"


@pytest.mark.parametrize(
    ("text", "width", "line"),
    [
        ("a  b\n c", 20, "a b c"),
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcde…"),
        ("漢字漢字", 5, "漢字…"),
        ("漢字漢字", 8, "漢字漢字"),
        (None, 5, ""),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
    ],
)
def test_a_line_is_as_wide_as_may_be(text: str | None, width: int, line: str) -> None:
    assert one_line(text, width) == line
    assert columns(one_line(text, width)) <= width


def table(**more: Any) -> list[str]:
    out = io.StringIO()
    Paper(out, **more).table(
        ("NAME", "COUNT"),
        [("漢", 1234567), ("b\x1b[1m", None), ("c", "x\ny")],
        right=(1,),
        colours={0: "cyan"},
        foot=["total", 3],
    )
    return out.getvalue().splitlines()


def test_columns_are_aligned_by_width_and_unknown_is_a_dash() -> None:
    assert table() == [
        "NAME       COUNT",
        "漢     1,234,567",
        "b�[1m          –",
        "c            x y",
        "total          3",
    ]


def test_colours_are_for_terminals_alone() -> None:
    assert not any("\x1b" in line for line in table())
    assert table(colour=True)[1].startswith("\x1b[36m漢\x1b[0m")
    assert "\x1b[1m" not in "".join(table(colour=True)[2:3]).replace("\x1b[36m", "").replace("\x1b[0m", "")


def narrow(width: int, **more: Any) -> list[str]:
    out = io.StringIO()
    paper = Paper(out)
    paper.width = width
    rows = [("session-1", 1000, 20, "idle", "what was asked of it at first"), ("s", None, 3, "open", "b")]
    paper.table(("SESSION", "INPUT", "OUTPUT", "STATE", "WHAT"), rows, right=(1, 2), wide=(4,), yields=(3, 2), **more)
    return out.getvalue().splitlines()


def test_a_table_leaves_columns_out_of_a_narrow_terminal_in_their_order_and_names_them() -> None:
    assert narrow(0)[1] == "session-1  1,000      20  idle   what was asked of it at first"
    assert narrow(62) == narrow(0)
    assert narrow(55)[1] == "session-1  1,000      20  idle   what was asked of it …"
    assert narrow(46) == [
        "SESSION    INPUT  OUTPUT  WHAT",
        "session-1  1,000      20  what was asked of i…",
        "s              –       3  b",
        "too narrow for: state",
    ]
    assert narrow(38)[1:] == [
        "session-1  1,000  what was asked of i…",
        "s              –  b",
        "too narrow for: state, output",
    ]
    assert narrow(20)[1] == "session-1  1,000  what was asked …"  # no narrower: the terminal wraps it
    assert all(columns(line) <= width for width in range(34, 70) for line in narrow(width))


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (True, "yes"), (False, "no"), (0, "0"), (1234, "1,234"), ("a\nb", "a b"), (1.5, "1.5")],
)
def test_a_cell_says_what_is_known(value: Any, text: str) -> None:
    assert cell(value) == text


@pytest.mark.parametrize(
    ("text", "width", "line"),
    [
        ("    return  a\n", 20, "    return  a"),
        ("\tx", 20, "    x"),
        ("        deep", 6, "     …"),
        ("\x1b[1m  a", 20, "\ufffd[1m  a"),
    ],
)
def test_a_line_of_code_keeps_its_room(text: str, width: int, line: str) -> None:
    assert code_line(text, width) == line


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 KB"), (1_500_000, "1.5 MB"), (5 * 10**12, "5000.0 GB")]
)
def test_sizes_are_short(number: int, text: str) -> None:
    assert size(number) == text


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (None, "–"),
        ("2026-11-30T11:59:30Z", "now"),
        ("2026-11-30T11:29:59.123Z", "30 min ago"),
        ("2026-11-30T09:00:00", "3 h ago"),
        ("2026-11-28T09:00:00Z", "2 d ago"),
        ("2025-01-02T12:00:00Z", "2025-01-02"),
        ("2027-01-02T12:00:00Z", "2027-01-02"),
        ("no time at all, really", "no time at all, "),
    ],
)
def test_times_are_said_as_a_person_would(at: str | None, text: str) -> None:
    assert when(at, NOW) == text
