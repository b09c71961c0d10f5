"""`asrd tree` as a person reads it: what is unknown is no figure, and a narrow terminal still shows all of it."""

from __future__ import annotations

import io
from typing import Any

import pytest

from asrd.commands.tree import draw
from asrd.text import Paper, columns

NOTHING: dict[str, Any] = {
    "requests": 0, "unmeasuredRequests": 0, "inputTotal": None, "output": None, "lowerBound": False,
}  # fmt: skip


def node(ident: str, *children: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A node of the answer `asrd.tree/1`, of a session without figures."""
    return {
        "sessionId": ident, "agent": "kimi", "relation": None, "lastAt": None, "state": "idle", "title": None,
        "own": NOTHING, "descendants": NOTHING, "unresolvedParent": None, "children": list(children), **more,
    }  # fmt: skip


def drawn(root: dict[str, Any], width: int = 0) -> list[str]:
    """Its lines, on a terminal of that width; 0: in a pipe."""
    out = io.StringIO()
    paper = Paper(out)
    paper.width = width
    draw(paper, root, "", "")
    return out.getvalue().splitlines()


def test_a_session_without_figures_has_unknown_tokens() -> None:
    (line,) = drawn(node("s", own={**NOTHING, "unmeasuredRequests": 1, "lowerBound": True}))

    assert line == "s  kimi  –  idle  tokens unknown"


def test_a_session_of_which_no_request_counts_has_no_figures() -> None:
    below = {**NOTHING, "requests": 2, "inputTotal": 1500, "output": 20}
    seen = node("s", relation="observes", title="Seen elsewhere")

    assert drawn(seen) == ["s  kimi  observer  –  idle  Seen elsewhere"]
    assert drawn({**seen, "descendants": below}) == [
        "s  kimi  observer  –  idle  + below 1,500 in  20 out  Seen elsewhere"
    ]


@pytest.mark.parametrize("width", [50, 60, 80])
def test_no_line_is_wider_than_the_terminal_and_the_title_is_still_there(width: int) -> None:
    some = {**NOTHING, "requests": 1, "inputTotal": 12, "output": 3}
    root = node(
        "root", node("child", own=some, title="the child " * 9), own=some, descendants=some, title="the root " * 9
    )

    lines = drawn(root, width)

    assert max(columns(line) for line in lines) <= width
    assert any("the root" in line for line in lines) and any("the child" in line for line in lines)
    assert any("+ below 12 in  3 out" in line for line in lines)
