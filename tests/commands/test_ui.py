"""asrd ui serves until it is ended; the page of one session as a file holds no secret."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asrd import cli
from asrd.commands import ui
from asrd.paths import Folders
from tests.ui.build import SECRET, lay, story, where_of


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    found = where_of(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ASRD_HOME", str(tmp_path / "store"))
    lay(found, *story())
    return found


def test_it_prints_the_link_serves_and_ends_on_a_signal(where: Folders) -> None:
    words = [sys.executable, "-m", "asrd", "ui", "story", "--no-open", "--json"]
    with subprocess.Popen(words, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\?token=[\w-]+)#/s/codex/story", told["url"])
        assert found is not None
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=10)
        connection.request("GET", found[2])
        status = connection.getresponse().status
        connection.close()

        process.send_signal(signal.SIGINT)
        code = process.wait(20)

    assert (told["schema"], status, code) == ("asrd.ui/1", 303, 0)


def test_it_says_when_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASRD_HOME", str(tmp_path / "none"))

    code = cli.main(["ui", "--no-open"])

    assert code == 50 and "nothing is recorded yet" in capsys.readouterr().err


def test_an_address_names_a_session_whatever_is_in_its_id() -> None:
    plain = ui.address({"agent": "codex", "sessionId": "a/b c#d", "namespace": None})
    below = ui.address({"agent": "codex", "sessionId": "x", "namespace": "y"})

    assert (plain, below) == ("#/s/codex/a%2Fb%20c%23d", "#/s/codex/x/y")


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
