"""In a terminal: a handed-over brief reaches the model, and an installed session shows the history that was imported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from asrd.handoff_token import find_token
from tests.real.inside import Command, run
from tests.real.programs import at_home, program
from tests.real.test_handoff import Place, links_back

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is the terminal"),
]

RESUMES = {
    "claude": ("claude", "--model", "claude-sonnet-4-6", "--resume", "{id}"),
    "codex": ("codex", "resume", "--no-daemon", "{id}"),
    "opencode": ("opencode", "-s", "{id}"),
    "pi": ("pi", "--provider", "mock", "--model", "mock-1", "--session", "{id}"),
}
STARTS = {
    "claude": ("--model", "claude-sonnet-4-6"), "codex": ("--", "--no-daemon"), "opencode": (),
    "pi": ("--", "--provider", "mock", "--model", "mock-1"), "gemini": ("--model", "gemini-2.5-pro"),
    "qwen": ("--", "--auth-type", "openai"),
}  # fmt: skip
"""What `asrd handoff` is told besides. Codex's background server would outlive the test."""


@pytest.mark.parametrize("name", RESUMES)
def test_the_imported_history_is_on_the_screen(name: str, tmp_path: Path) -> None:
    place = Place(tmp_path, program(name))
    at_home(program(name), place.home, place.ws)
    made = place.asrd_json(
        "handoff", f"claude-code:{place.source}", "--to", name, "--native", "--install", "--cwd", str(place.ws)
    )
    argv = [word.replace("{id}", made["sessionId"]) for word in RESUMES[name]]

    told = run([Command(argv, place.env, str(place.ws), patience=60, screen="Because VERSION was not set")])

    shown = " ".join(told.ended[0].stdout.split())
    assert told.ended[0].code == 0, told.ended[0].stdout
    assert "Why did check.sh fail the first time after the edit?" in shown and "Fixed add, set VERSION" in shown
    assert made["token"] in shown and not told.asked, "opening it asks no model"


@pytest.mark.parametrize("name", STARTS)
def test_a_brief_is_the_first_prompt_in_the_terminal(name: str, tmp_path: Path) -> None:
    place = Place(tmp_path, program(name))
    at_home(program(name), place.home, place.ws)
    text = place.asrd("handoff", f"claude-code:{place.source}", "--to", name).strip()
    argv = [
        "asrd",
        "handoff",
        f"claude-code:{place.source}",
        "--to",
        name,
        "--run",
        "--cwd",
        str(place.ws),
        *STARTS[name],
    ]

    told = run([Command(argv, place.env, str(place.ws), patience=60, screen="")])
    place.asrd("sync")

    assert told.ended[0].code == 0, told.ended[0].stdout
    assert any(find_token(t) and text in t for asked in told.asked for t in asked.texts())
    links_back(place, text)
