"""What git says is read without running what a repository's settings name, and names are never read as options."""

from pathlib import Path

import pytest

from asrd.errors import RepositoryUnusable
from asrd.repository import Repository
from tests.histories import Repo


def test_a_folder_of_no_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RepositoryUnusable):
        Repository(str(tmp_path))


def test_a_name_that_looks_like_an_option_is_no_option(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.commit()

    with pytest.raises(RepositoryUnusable):
        Repository(str(repo.folder)).commit("--help")


def test_settings_of_the_repository_run_nothing(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.write("a.txt", "one\n")
    first = repo.commit()
    repo.write("a.txt", "one\ntwo\n")
    second = repo.commit()
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    (repo.folder / ".gitattributes").write_text("*.txt diff=evil\n")
    for key in ("diff.external", "diff.evil.textconv", "diff.evil.command", "core.fsmonitor", "core.pager"):
        repo.git("config", key, str(trap))
    (tmp_path / "sprung").unlink(missing_ok=True)

    one = Repository(str(repo.folder))
    told = (one.blame("a.txt"), one.changed(second), one.patch(first, second, "a.txt"), one.same_commit(second))

    assert [line.commit for line in told[0]] == [first, second] and told[1] == [("a.txt", "a.txt")] and told[2]
    assert not (tmp_path / "sprung").exists()


def test_names_of_files_are_as_they_are(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.write("späce and\ttab.py", "x\n")
    commit = repo.commit()

    one = Repository(str(repo.folder))

    assert one.changed(commit) == [("späce and\ttab.py", None)]
    assert [line.text for line in one.blame("späce and\ttab.py")] == ["x"]


def test_the_content_of_a_file_is_read_once_per_commit(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "r")
    repo.write("a", "x\n")
    commit = repo.commit()
    one = Repository(str(repo.folder))

    assert (one.content(commit, "a"), one.content(commit, "gone"), one.content(None, "a")) == ("x\n", None, "x\n")
