"""`asrd report` prints what claimed work cost, from the claims file and what is recorded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asrd.cli import main
from tests.commands.test_claim import place
from tests.daemons import running
from tests.homes import environment
from tests.report.build import session

__all__ = ["place"]


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_the_report_comes_in_four_forms(place: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    main(["claim", "session-051", "--session", "a111"])
    capsys.readouterr()

    code = main(["report", "--format", form])

    out = capsys.readouterr().out
    assert code == 0 and "session-051" in out
    assert {
        "markdown": "| session-051 |",
        "html": ">session-051</td>",
        "json": '"asrd.report/1"',
        "text": "SESSION",
    }[form] in out


def test_a_mistake_in_the_file_is_told_with_its_place(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / ".asrd-claims.toml").write_text("[claim.w]\nsesions = []\n")

    code = main(["report"])

    assert code == 10
    assert "claim.w.sesions" in capsys.readouterr().err


def test_a_claims_file_that_is_not_there_is_told(place: Path) -> None:
    code = main(["report", "--claims", "missing.toml"])

    assert code == 10


def test_a_daemon_gives_the_same_report_and_the_same_usage(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "store"
    session(home, "a1111111", ["ls", "python -c 'x'"])
    env = {**os.environ, **environment(home, store)}

    def told(*words: str) -> bytes:
        command = [sys.executable, "-m", "asrd", *words]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, check=True).stdout

    told("sync")
    told("claim", "w", "--session", "a111", "--file", "c.toml")
    asked = (["report", "--claims", "c.toml", "--json"], ["usage", "daily", "--json"])
    alone = [told(*words) for words in asked]

    with running(home, store):
        with_daemon = [told(*words) for words in asked]

    assert with_daemon == alone
    assert json.loads(alone[0])["rollups"]["claimed"]["oneOffCode"] == 1
