"""A session that begins with a brief goes on from the session the brief was made from, whichever is recorded first."""

from pathlib import Path

import pytest

from asrd.handoff_token import TOKEN_LINE, Token, session_digest
from asrd.records import Message, Text
from tests.counting.stores import Parts, answers, filled
from tests.counting.test_windows import stream


def handed(line: str) -> Parts:
    old = stream("old")
    prompt = Message(
        role="user",
        origin="prompt",
        content=[Text(text=f"# Handoff brief\n{line}\n\ngo on")],
        at="2026-11-30T01:00:00Z",
    )
    return [old, stream("new", prompt)]


def token() -> str:
    return f"{TOKEN_LINE}{Token(session_digest(stream('old')[0]), 3, 'codex')}"


@pytest.mark.parametrize("order", [1, -1])
def test_the_token_of_a_first_prompt_links(order: int, tmp_path: Path) -> None:
    told = answers(filled(tmp_path, handed(token())[::order]))

    (link,) = told["lineage"]["newa"]
    assert (link["relation"], link["evidence"]["kind"], link["state"]) == ("continued_from", "handoff-token", "edge")
    assert (link["from"]["sessionId"], link["to"]["sessionId"]) == ("new", "old")
    (root,) = told["tree"]["roots"]
    assert [(c["sessionId"], c["relation"]) for c in root["children"]] == [("new", "continued_from")]
    assert root["descendants"]["requests"] == 0


def test_it_is_unresolved_until_the_source_is_recorded(tmp_path: Path) -> None:
    told = answers(filled(tmp_path, handed(token())[1:]))

    assert [link["state"] for link in told["lineage"]["newa"]] == ["unresolved"]


def test_a_token_with_wrong_check_digits_or_one_that_is_quoted_links_nothing(tmp_path: Path) -> None:
    wrong = token()[:-1] + ("0" if token()[-1] != "0" else "1")

    for n, line in enumerate((wrong, token().replace(TOKEN_LINE, "asrd-handoff (earlier): "))):
        assert answers(filled(tmp_path / str(n), handed(line)))["lineage"]["newa"] == []
