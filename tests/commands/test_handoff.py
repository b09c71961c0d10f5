"""`asrd handoff` prints a brief, starts a target with it, and writes session files; it never goes on in a session in use."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asrd.cli import main
from asrd.commands import handoff
from asrd.handoff import targets
from asrd.handoff_token import find_token
from tests.homes import environment
from tests.report.build import session

PROGRAM = """#!/usr/bin/env python3
import json, os, sys
told = {"argv": sys.argv[1:], "cwd": os.getcwd(), "tty": os.isatty(0), "stdin": "" if os.isatty(0) else sys.stdin.read()}
open(os.environ["TOLD"], "w").write(json.dumps(told))
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with two recorded sessions, and programs called claude and codex that say how they were started."""
    home, bin_folder = tmp_path / "home", tmp_path / "bin"
    session(home, "a1111111", ["ls", "make"])
    session(home, "b2222222", ["ls"])
    bin_folder.mkdir()
    for name in ("claude", "codex", "openclaw"):
        (bin_folder / name).write_text(PROGRAM)
        (bin_folder / name).chmod(0o755)
    for name, value in environment(home, tmp_path / "store", TOLD=str(tmp_path / "told.json")).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    (tmp_path / "ws").mkdir()
    monkeypatch.chdir(tmp_path / "ws")
    assert main(["sync"]) == 0
    return tmp_path


def started(place: Path, *args: str) -> dict[str, Any]:
    """Runs `asrd handoff` as a process without a terminal; gives how the program was started."""
    done = subprocess.run(
        [sys.executable, "-m", "asrd", "handoff", *args], capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {**json.loads((place / "told.json").read_text()), "words": done.stderr}


def test_without_a_terminal_the_target_runs_headless_in_the_folder_that_was_named(place: Path) -> None:
    told = started(place, "a111", "--to", "claude", "--run", "--cwd", str(place / "ws"), "--", "--verbose")

    assert told["argv"][:3] == ["-p", "--verbose", "--"] and find_token(told["argv"][3])
    assert told["cwd"] == str(place / "ws")
    assert "no terminal here" in told["words"]


def test_in_a_terminal_the_target_gets_the_terminal(place: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(sys.executable, [sys.executable, "-m", "asrd", "handoff", "a111", "--to", "codex", "--run"])
    while True:
        try:
            if not os.read(terminal, 4096):
                break
        except OSError:
            break
    _, status = os.waitpid(pid, 0)

    told = json.loads((place / "told.json").read_text())

    assert status == 0 and told["tty"] is True
    assert told["argv"][0] == "--" and find_token(told["argv"][1])


def test_several_sessions_make_one_brief(place: Path) -> None:
    told = started(place, "a111", "--also", "b222", "--to", "codex", "--run")

    text = told["argv"][-1]
    assert "claude-code:a1111111" in text and "claude-code:b2222222" in text


def test_a_folder_that_is_not_here_is_told_and_one_that_was_asked_for_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["handoff", "a111", "--to", "codex", "--run", "--cwd", "/nowhere/at/all"])

    assert code == 2 and "/nowhere/at/all (it is no folder here)" in capsys.readouterr().err


def test_a_worktree_is_made_on_a_new_branch_and_worked_in(place: Path) -> None:
    repo = place / "ws"
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "start"]):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *command], cwd=repo, check=True)

    told = started(place, "a111", "--to", "claude", "--run", "--cwd", str(repo), "--worktree", "try/it")

    branch = subprocess.run(
        ["git", "branch", "--show-current"], cwd=told["cwd"], capture_output=True, text=True, check=True
    )
    assert told["cwd"] == f"{repo}-try-it" and branch.stdout.strip() == "try/it"
    assert f"not committed stays in {repo}" in told["words"]


def test_a_secret_of_this_shell_is_taken_out_wherever_it_stands(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session(place / "home", "c3333333", ["echo correct-horse-battery"])
    main(["sync"])
    monkeypatch.setenv("DEPLOY_TOKEN", "correct-horse-battery")
    capsys.readouterr()

    main(["handoff", "c333", "--to", "prompt"])

    told = capsys.readouterr()
    assert "correct-horse-battery" not in told.out and "[removed: known-value]" in told.out
    assert "known-value" in told.err


@pytest.mark.parametrize("name", [n for n in targets() if n != "prompt"])
def test_no_target_is_told_to_go_on_in_a_session(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()

    main(["handoff", "a111", "--to", name, "--dry-run", "--headless"])
    first = capsys.readouterr().out
    main(["handoff", "a111", "--to", name, "--dry-run", "--headless"])
    second = capsys.readouterr().out

    line = next(x for x in first.splitlines() if x.startswith(targets()[name].program)).split("# Handoff brief")[0]
    assert not {"resume", "--resume", "--continue", "-c", "--last"} & set(line.split())
    assert ("--session-id" not in line) or first != second, "an id of a session is a new one each time"


def test_arguments_that_take_a_session_over_are_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["handoff", "a111", "--to", "claude", "--run", "--", "--resume", "b2222222"])

    assert code == 2 and "takes none over" in capsys.readouterr().err
    assert not (place / "told.json").exists()


def test_a_native_file_is_a_copy_until_it_is_installed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(p for p in (place / "home").rglob("*"))
    capsys.readouterr()

    code = main(["handoff", "a111", "--to", "codex", "--native"])

    told = capsys.readouterr()
    file = Path(told.out.strip())
    assert code == 0 and file.is_relative_to(place / "store") and file.stat().st_mode & 0o777 == 0o600
    assert sorted(p for p in (place / "home").rglob("*")) == before


def test_an_installed_file_is_in_the_home_of_the_target_and_never_written_over(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(place / "elsewhere"))
    capsys.readouterr()

    main(["handoff", "a111", "--to", "codex", "--native", "--install", "--json"])

    told = json.loads(capsys.readouterr().out)
    file = Path(told["file"])
    assert told["schema"] == "asrd.native/1" and told["resume"] == ["codex", "resume", told["sessionId"]]
    assert file.is_relative_to(place / "elsewhere" / "sessions") and told["sessionId"] in file.name
    first = json.loads(file.read_text().splitlines()[0])
    assert first["payload"]["originator"] == "asrd:claude-code:a1111111"


def test_a_session_of_a_folder_that_is_not_here_goes_on_where_the_command_runs(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()

    main(["handoff", "a111", "--to", "pi", "--native", "--json", "--cwd", "/nowhere/at/all"])

    told = capsys.readouterr()
    assert json.loads(told.out)["folder"] == str(place / "ws") and "/nowhere/at/all is not here" in told.err


def test_installed_sessions_stand_below_the_one_they_come_from_and_count_nothing(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    main(["usage", "--json"])
    before = json.loads(capsys.readouterr().out)["total"]

    for target in ("claude", "codex", "pi"):
        assert main(["handoff", "a111", "--to", target, "--native", "--install"]) == 0
    main(["sync"])

    capsys.readouterr()
    main(["usage", "--json"])
    assert json.loads(capsys.readouterr().out)["total"] == before
    main(["tree", "a111", "--json"])
    (root,) = json.loads(capsys.readouterr().out)["roots"]
    assert sorted(c["agent"] for c in root["children"]) == ["claude-code", "codex", "pi"]
    assert {c["relation"] for c in root["children"]} == {"continued_from"}


def test_how_far_a_long_session_is_read_is_shown_and_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    handoff.show_progress(2_000, 19_000)
    short = capsys.readouterr()

    for read in range(2_000, 50_001, 2_000):
        handoff.show_progress(read, 50_001)

    told = capsys.readouterr()
    assert short.err == "" and told.out == ""
    assert "2,000 of 50,001 records read" in told.err and told.err.endswith("\r\x1b[K")


def test_install_without_native_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["handoff", "a111", "--to", "codex", "--install"])

    assert code == 2 and "--install without --native" in capsys.readouterr().err
