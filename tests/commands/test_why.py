"""`asrd why` of a commit that nothing is recorded of: unknown, and no error."""

from pathlib import Path

import pytest

from asrd.cli import main
from tests.golden import CAPTURES
from tests.histories import Repo
from tests.homes import environment


def test_a_commit_that_nothing_is_recorded_of_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment(CAPTURES / "codex/S1" / "home", tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    repo = Repo(tmp_path / "repo")
    repo.write("a.py", "mine = 5\n")
    repo.commit("by hand")
    main(["sync"])
    capsys.readouterr()

    code = main(["why", "HEAD", "--repo", str(repo.folder)])

    out = capsys.readouterr().out
    assert code == 0 and "committed by unknown" in out and "1 lines of unknown origin" in out
