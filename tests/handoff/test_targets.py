"""How targets are started, as values."""

import pytest

from asrd.errors import UsageError
from asrd.handoff import Options, brief, render, start, target_named, targets
from asrd.handoff.targets.base import ARGUMENT_LIMIT
from asrd.handoff_token import find_token
from tests.handoff.build import Story, work

NAMES = [
    "claude", "codex", "copilot", "cursor", "gemini", "hermes", "kimi", "openclaw", "opencode", "pi", "prompt", "qwen", "vibe",
]  # fmt: skip
PROGRAMS = [n for n in NAMES if n != "prompt"]


def a_brief(target: str, padding: int = 0) -> str:
    story = Story()
    story.asks("Go on.")
    return render(brief(work(story), target=target)) + "x" * padding


def test_every_target_is_found() -> None:
    assert list(targets()) == NAMES
    assert target_named("claude-code").name == "claude"
    with pytest.raises(UsageError, match="handing off to emacs"):
        target_named("emacs")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("headless", [False, True])
def test_a_brief_reaches_the_target_whole_and_once(name: str, headless: bool) -> None:
    text = a_brief(name)

    made = start(name, text, Options(headless=headless, cwd="/w/app"))

    carried = [a for a in made.argv if text in a] + [made.stdin] * (made.stdin is not None)
    assert len(carried) == 1 and carried[0] is not None and carried[0].endswith(text)
    assert made.argv[0] == target_named(name).program and made.cwd == "/w/app" and not made.files


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("headless", [False, True])
def test_a_brief_that_fits_no_argument_is_piped_or_read_from_a_file(name: str, headless: bool) -> None:
    text = a_brief(name, ARGUMENT_LIMIT)

    made = start(name, text, Options(headless=headless, brief_path="/state/brief.md"))

    assert all(len(a.encode()) <= ARGUMENT_LIMIT for a in made.argv)
    if made.stdin is not None:
        assert made.stdin == text and not made.files
    else:
        assert [(f.path, f.text, f.mode) for f in made.files] == [("/state/brief.md", text, 0o600)]
        prompts = [a for a in made.argv if "/state/brief.md" in a]
        assert len(prompts) == 1 and find_token(prompts[0]) == find_token(text)


def test_a_large_brief_without_a_place_for_its_file_is_refused() -> None:
    with pytest.raises(ValueError, match="brief_path"):
        start("claude", "x" * (ARGUMENT_LIMIT + 1))


def test_no_argument_is_longer_than_linux_allows() -> None:
    made = start("claude", "é" * 65_536, Options(brief_path="/state/brief.md"))

    assert all(len(a.encode()) < 131_072 for a in made.argv) and made.files


def test_options_are_passed_in_the_targets_own_words() -> None:
    options = Options(headless=True, model="m", permissions="all", extra=("--verbose",))

    assert start("claude", "# B", options).argv == (
        "claude", "-p", "--dangerously-skip-permissions", "--model", "m", "--verbose", "--", "# B",
    )  # fmt: skip
    assert start("codex", "# B", options).argv == (
        "codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--model", "m", "--verbose",
        "--", "# B",
    )  # fmt: skip
    assert start("gemini", "# B", Options(permissions="edits")).argv == (
        "gemini", "--approval-mode", "auto_edit", "--prompt-interactive=# B",
    )  # fmt: skip


def test_nothing_is_allowed_that_was_not_asked_for() -> None:
    for name in PROGRAMS:
        for argument in start(name, "# B", Options(headless=True)).argv:
            assert not any(w in argument for w in ("danger", "yolo", "bypass", "auto", "force", "allow"))


def test_a_new_openclaw_session_has_an_id_of_its_own() -> None:
    text = a_brief("openclaw")

    argv = start("openclaw", text).argv

    assert argv[argv.index("--session-id") + 1] == f"handoff-{str(find_token(text))[-8:]}"


def test_prompt_is_for_standard_output() -> None:
    made = start("prompt", "# B", Options(cwd="/w"))

    assert (made.argv, made.stdin, made.files) == ((), "# B", ())
