"""asrd top prints once where there is no terminal."""

import json
import sys

import pytest

from asrd import cli
from asrd.commands import top
from asrd.paths import Folders
from asrd.prices import List
from tests.ui.build import CHILD, grow, story


def recent(where: Folders) -> None:
    """The session goes on now."""
    from asrd import clock
    from asrd.records import Turn

    grow(where, story()[0].key, Turn(turn_id="t2", phase="start", trigger="prompt", at=clock.now_text()))


def test_a_table_is_printed_in_a_pipe(where: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    recent(where)

    code = cli.main(["top"])
    out = capsys.readouterr().out

    assert code == 0 and out.startswith("1 working  ·  0 in, 0 out a minute")
    assert [line.split()[:3] for line in out.splitlines()[2:]] == [["story", "codex", "working"]]


def test_json_is_one_document(where: Folders, capsys: pytest.CaptureFixture[str]) -> None:
    recent(where)

    code = cli.main(["top", "--json"])
    answer = json.loads(capsys.readouterr().out)

    assert code == 0 and answer["schema"] == "asrd.top/1"
    assert [(s["sessionId"], s["state"], s["working"]) for s in answer["sessions"]] == [("story", "open", True)]
    assert answer["today"]["requests"] == 0


def test_without_the_extra_it_says_what_to_install(
    where: Folders, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setitem(sys.modules, "asrd.top.screen", None)

    code = cli.main(["top"])
    said = capsys.readouterr()

    assert code == 0 and "pip install 'asrd[top]'" in said.err and "SESSION" in said.out


def test_the_last_words_of_a_session_are_its_messages_and_calls(where: Folders) -> None:
    look, last = top.looking(List())

    found = last({"agent": "codex", "sessionId": "story", "namespace": None}, 4)
    below = last({"agent": CHILD.agent, "sessionId": CHILD.session_id, "namespace": CHILD.namespace}, 9)

    assert [r["type"] for r in found] == ["tool_result", "tool_call", "tool_result", "message"]
    assert [r["type"] for r in below] == ["message", "message"]
    assert look()["daemon"] is False
