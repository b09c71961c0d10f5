"""`asrd search`: as a person types it and as a program reads it, with a daemon and without."""

from pathlib import Path

import msgspec
import pytest

from asrd.cli import main
from tests.daemons import command, running, until
from tests.homes import environment
from tests.store.build import Made
from tests.store.test_search import kept
from tests.upkeep_of import CODEX

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in environment(CODEX, tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    assert main(["sync", "--quiet"]) == 0
    return tmp_path


def test_hits_name_their_records_and_show_opens_them(home: Path, capsys: Capsys) -> None:
    assert main(["search", "check.sh", "passes", "--json"]) == 0
    answer = msgspec.json.decode(capsys.readouterr().out)
    hit = answer["hits"][0]

    assert answer["schema"] == "asrd.search/1"
    assert (hit["role"], hit["agent"]) == ("user", "codex")
    assert [hit["snippet"][a:b] for a, b in hit["matches"]]
    assert main(["show", hit["sessionId"], "--record", hit["record"], "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["id"] == hit["record"]


def test_text_is_for_people(home: Path, capsys: Capsys) -> None:
    assert main(["search", "demo", "workspace"]) == 0

    out = capsys.readouterr()
    assert "# demo workspace" in out.out
    assert "1 record matches; 1 shown" in out.err


def test_filters_are_passed_on(home: Path, capsys: Capsys) -> None:
    assert main(["search", "--exit", "nonzero", "--json"]) == 0
    failed = msgspec.json.decode(capsys.readouterr().out)["hits"]
    assert {h["exitCode"] for h in failed} == {101}
    assert main(["search", "--exit", "nonzero", "--tool", "apply_patch"]) == 1
    assert main(["search", "check.sh", "--since", "1h", "--until", "2020-01-01"]) == 1
    assert main(["search", "check.sh", "--session", "last", "--role", "prompt", "-n", "1"]) == 0
    assert main(["search", "check.sh", "--project", "/home/dev/app"]) == 0
    assert main(["search", "check.sh", "--project", "/home/dev/ap"]) == 1


def test_what_cannot_be_searched_for_is_a_sentence(home: Path, capsys: Capsys) -> None:
    assert main(["search", "--", "..."]) == 2
    assert main(["search", "x", "--since", "yesterday-ish"]) == 2
    assert main(["search", "x", "--session", "nosuch"]) == 50

    assert "Traceback" not in capsys.readouterr().err


def test_hostile_text_is_inert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    kept(tmp_path, Made("evil").prompt("\x1b[2J\u202e needle \x1b]0;owned\x07 \u202e txt \x1b[31m"))
    for name, value in environment(tmp_path / "home", tmp_path / "store").items():
        monkeypatch.setenv(name, value)

    assert main(["search", "needle"]) == 0

    out = capsys.readouterr().out
    assert "needle" in out
    assert not any(c in out for c in "\x1b\x07\u202e")


def test_the_daemon_answers_the_same(home: Path, tmp_path: Path) -> None:
    env = environment(CODEX, tmp_path / "store")
    alone = command(env, "search", "demo workspace", "--json")
    with running(CODEX, tmp_path / "store") as daemon:
        until(lambda: daemon.ask("search", query="demo workspace")["hits"])
        asked = command(env, "search", "demo workspace", "--json")

    assert alone.returncode == asked.returncode == 0
    assert msgspec.json.decode(alone.stdout)["hits"] == msgspec.json.decode(asked.stdout)["hits"]
