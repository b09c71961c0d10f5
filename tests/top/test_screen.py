"""The live view, without a terminal and in a real one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textual", reason="the extra asrd[top] is not installed")

from asrd.top.screen import Top, told
from tests.daemons import until
from tests.ui.build import HOSTILE, lay, story, where_of


def session(ident: str, per_minute: int, working: bool = True, title: str = "") -> dict[str, Any]:
    cost: dict[str, Any] = {"listEstimate": {"amount": str(per_minute / 100), "currency": "USD"}, "sourceEstimate": []}
    figures: dict[str, Any] = {"requests": 1, "inputTotal": 1000, "output": 5, "lowerBound": False, "cost": cost}
    return {
        "agent": "codex", "sessionId": ident, "namespace": None, "title": title or f"do {ident}", "cwd": "/w", "model": "m",
        "state": "open" if working else "idle", "working": working, "subagent": False, "lastAt": "2026-11-02T11:59:30Z",
        "records": 3, "openCalls": 0, "perMinute": {"input": per_minute, "output": 1, "requests": 1}, "today": figures,
    }  # fmt: skip


def answer(*sessions: dict[str, Any]) -> dict[str, Any]:
    return {
        "schema": "asrd.top/1", "at": "2026-11-02T12:00:00", "daemon": True, "sessions": list(sessions),
        "working": sum(s["working"] for s in sessions), "perMinute": {"input": 300, "output": 10, "requests": 2},
        "today": sessions[0]["today"] if sessions else session("x", 0)["today"],
    }  # fmt: skip


class Told:
    """What the screen is told, and what it asked."""

    def __init__(self, *sessions: dict[str, Any]) -> None:
        self.now = answer(*sessions)
        self.asked: list[str] = []

    def look(self) -> dict[str, Any]:
        return self.now

    def last(self, one: dict[str, Any], count: int) -> list[dict[str, Any]]:
        self.asked.append(one["sessionId"])
        return [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": f"said by {one['sessionId']}"}],
            }
        ]


def screen(app: Top) -> str:
    """All that is on the screen."""
    return "\n".join("".join(s.text for s in strip) for strip in app.screen._compositor.render_strips())  # pyright: ignore[reportPrivateUsage]


async def settled(app: Top, pilot: Any) -> str:
    """The screen once nothing is asked any more."""
    for _ in range(200):
        await pilot.pause(0.02)
        if all(worker.is_finished for worker in app.workers):
            break
    await pilot.pause(0.05)
    return screen(app)


async def test_it_shows_what_runs_and_what_the_chosen_session_said() -> None:
    given = Told(session("one", 5), session("two", 90, working=False))
    app = Top(given.look, given.last, every=60)

    async with app.run_test(size=(120, 24)) as pilot:
        first = await settled(app, pilot)
        await pilot.press("j")
        second = await settled(app, pilot)

    assert "1 working" in first and "300 in, 10 out a minute" in first and "live" in first
    assert "● working" in first and "○ idle" in first and "do two" in first
    assert "said by one" in first and "said by two" in second


async def test_a_long_record_takes_one_line_of_a_narrow_screen() -> None:
    given = Told(session("one", 5))
    said = "make " + "everything and more " * 9
    given.last = lambda one, count: [{"type": "tool_call", "name": "shell", "input": {"command": said}}] * 2
    app = Top(given.look, given.last, every=60)

    async with app.run_test(size=(60, 20)) as pilot:
        shown = await settled(app, pilot)

    assert len([line for line in shown.split("\n") if "everything" in line]) == 2


async def test_the_order_changes_and_the_cursor_stays_with_its_session() -> None:
    given = Told(session("one", 5), session("two", 90))
    app = Top(given.look, given.last, every=60)

    async with app.run_test(size=(120, 24)) as pilot:
        await settled(app, pilot)
        await pilot.press("o")
        await settled(app, pilot)
        shown = screen(app)

    assert shown.index("do two") < shown.index("do one")
    assert given.asked[-1] == "one"


async def test_a_session_that_ends_leaves_and_nothing_is_left_to_say() -> None:
    given = Told(session("one", 5))
    app = Top(given.look, given.last, every=60)

    async with app.run_test(size=(100, 20)) as pilot:
        await settled(app, pilot)
        given.now = answer()
        await pilot.press("r")
        shown = await settled(app, pilot)

    assert "do one" not in shown and "Nothing runs now." in shown


async def test_what_goes_wrong_is_said_and_the_next_look_is_tried() -> None:
    given = Told(session("one", 5))
    answers: list[Any] = [RuntimeError("busy [bold]"), given.now]

    def look() -> dict[str, Any]:
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, Exception):
            raise found
        return found

    app = Top(look, given.last, every=60)
    async with app.run_test(size=(100, 20)) as pilot:
        first = await settled(app, pilot)
        await pilot.press("r")
        second = await settled(app, pilot)

    assert "could not look: busy [bold]" in first
    assert "do one" in second


@pytest.mark.parametrize("words", HOSTILE)
async def test_hostile_words_are_shown_and_not_obeyed(words: str) -> None:
    given = Told(session("one", 5, title="[red]x[/red] " + words))
    app = Top(given.look, given.last, every=60)

    async with app.run_test(size=(160, 20)) as pilot:
        shown = await settled(app, pilot)

    assert "[red]x[/red]" in shown
    assert "\x1b" not in shown and "\u202e" not in shown


def test_a_record_is_told_on_one_line() -> None:
    call = {"type": "tool_call", "name": "shell", "input": {"command": "make\n\x1b[2Jtest"}}
    result = {
        "type": "tool_result",
        "status": "failed",
        "exec": {"exitCode": 2},
        "content": [{"type": "text", "text": "no"}],
    }

    assert told(call, 60).plain == "shell          make \ufffd[2Jtest"
    assert told(result, 60).plain.split() == ["failed", "2", "no"]
    assert "\n" not in told({"type": "native", "data": {"a": "x\ny"}}, 40).plain


@pytest.fixture
def tmux(tmp_path: Path) -> Generator[list[str]]:
    """A terminal of its own server."""
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux here")
    words = ["tmux", "-S", str(tmp_path / "tmux.sock"), "-f", "/dev/null"]
    yield words
    subprocess.run([*words, "kill-server"], check=False, capture_output=True)


def test_it_runs_in_a_terminal_and_ends_on_q(tmp_path: Path, tmux: list[str]) -> None:
    where = where_of(tmp_path)
    lay(where, *story())
    env = [f"{k}={v}" for k, v in (("HOME", tmp_path / "home"), ("ASRD_HOME", where.store), ("TERM", "xterm-256color"))]
    program = ["env", *env, sys.executable, "-m", "asrd", "top"]
    subprocess.run([*tmux, "new-session", "-d", "-x", "120", "-y", "30", *program], check=True, env=os.environ)

    def pane() -> str:
        return subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=False).stdout

    shown = until(lambda: found if "Nothing runs now." in (found := pane()) and "working" in found else None)
    subprocess.run([*tmux, "send-keys", "q"], check=True)
    ended = until(lambda: not subprocess.run([*tmux, "has-session"], capture_output=True, check=False).returncode == 0)

    assert shown and "0 working" in shown and "STATE" in shown and "not live" in shown
    assert ended
