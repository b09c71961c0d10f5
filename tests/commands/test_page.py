"""The page of one session as a file holds no secret, and says what was done."""

import json
import re
from pathlib import Path

import pytest

from asrd import cli
from asrd.commands._page import file_name
from tests.ui.build import SECRET


@pytest.mark.usefixtures("where")
def test_the_page_of_a_session_is_one_file_without_its_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.html"

    code = cli.main(["export", "--format", "html", "story", "-o", str(path), "--json"])
    told = json.loads(capsys.readouterr().out)

    assert code == 0 and told["sessions"] == 2 and told["removed"] == {"github-token": 1}
    text = path.read_text("utf-8")
    assert told["bytes"] == path.stat().st_size and path.stat().st_mode & 0o777 == 0o600
    assert SECRET not in text and "The notes say 42." in text
    assert re.findall(r"(?:src|href)=\"(?!data:)[^\"]+\"", text) == []


@pytest.mark.usefixtures("where")
def test_what_is_not_redacted_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.html"

    code = cli.main(["export", "--format", "html", "story", "-o", str(path), "--redact", "off"])

    assert code == 0 and "nothing was redacted" in capsys.readouterr().err
    assert SECRET in path.read_text("utf-8")


@pytest.mark.usefixtures("where")
def test_a_page_is_of_one_session(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", "--format", "html"]) == 2
    assert "other than one session" in capsys.readouterr().err


@pytest.mark.usefixtures("where")
def test_without_a_name_the_session_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()

    codes = [cli.main(["export", "--format", "html", "story", *more]) for more in ([], ["--out", "folder"])]

    assert codes == [0, 0]
    assert (tmp_path / "story.html").read_bytes() == (tmp_path / "folder" / "story.html").read_bytes()


def test_a_file_name_is_safe_whatever_the_id() -> None:
    assert [file_name(s) for s in ("../../etc/x", "-rf", "a b", "…")] == [
        "etc-x.html",
        "rf.html",
        "a-b.html",
        "session.html",
    ]


@pytest.mark.usefixtures("where")
def test_a_secret_of_this_shell_is_taken_out_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_TOKEN", "It passes now")

    cli.main(["export", "--format", "html", "story", "-o", str(tmp_path / "one.html")])

    assert "It passes now" not in (tmp_path / "one.html").read_text("utf-8")
