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
