"""`asrd blame` and `asrd why` on a capture's repository, built anew."""

import json
from pathlib import Path

import pytest

from asrd.cli import main
from tests.golden import CAPTURES
from tests.histories import Clock, Repo
from tests.homes import environment

CASE = "claude-code/S1"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Repo:
    truth = json.loads((CAPTURES / CASE / "truth.json").read_text())
    for name, value in environment(CAPTURES / CASE / "home", tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    clock = Clock()
    clock.now = int(truth["ended"])
    repo = Repo(tmp_path / "repo", clock)
    repo.write("calc.py", truth["edits"][0]["before"])
    repo.commit("init")
    repo.write("calc.py", truth["edits"][-1]["after"])
    repo.commit("fix add")
    monkeypatch.chdir(repo.folder)
    main(["sync"])
    capsys.readouterr()
    return repo


def test_blame_names_the_session_and_the_prompt_of_a_line(repository: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["blame", "calc.py:2", "--was", "/home/dev/app"])

    out = capsys.readouterr().out
    assert code == 0 and "claude-code:69cfb8a0" in out and "Fix calc.add" in out and "claude-sonnet-4-6" in out
    assert "1 of 1 lines known" in out and "     return a + b" in out


def test_a_file_is_found_through_a_link_to_its_folder(
    repository: Repo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link").symlink_to(repository.folder)

    assert main(["blame", str(tmp_path / "link" / "calc.py"), "--was", "/home/dev/app"]) == 0
    assert "claude-code:69cfb8a0" in capsys.readouterr().out


def test_blame_as_json_says_null_for_what_is_unknown(repository: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    main(["blame", "calc.py", "--was", "/home/dev/app", "--json"])

    answer = json.loads(capsys.readouterr().out)
    known = {line["line"] for line in answer["lines"] if line["origin"]}
    assert answer["schema"] == "asrd.blame/1" and 1 not in known and {2, 9} <= known


def test_why_counts_the_lines_of_a_commit(repository: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["why", "HEAD", "--was", "/home/dev/app"])

    out = capsys.readouterr().out
    assert code == 0 and "4 lines of claude-code:69cfb8a0" in out and "0 lines of unknown origin" in out


def test_a_session_elsewhere_is_not_blamed(repository: Repo, capsys: pytest.CaptureFixture[str]) -> None:
    main(["blame", "calc.py"])

    assert "0 of 9 lines known; 0 sessions looked at" in capsys.readouterr().out


def test_a_file_of_no_repository_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["blame", "x.py"]) == 62
    assert "cannot be blamed" in capsys.readouterr().err
