"""`asrd retain` and `asrd seal`: by rule or by name, by this command or by the daemon; said before and after."""

from pathlib import Path

import msgspec
import pytest

from asrd.cli import main
from tests.daemons import command, running
from tests.homes import environment
from tests.upkeep_of import CODEX, S2, paths, store_of, told

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in environment(S2, tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    assert main(["sync", "--quiet"]) == 0
    return tmp_path / "store"


def test_without_a_rule_nothing_goes_and_it_says_how_to_give_one(store: Path, capsys: Capsys) -> None:
    assert main(["retain"]) == 0

    assert "No rule is set; give --age or --size" in capsys.readouterr().out


def test_a_dry_run_says_what_would_go(store: Path, capsys: Capsys) -> None:
    assert main(["retain", "--dry-run", "--size", "0", "--harness", "claude-code"]) == 0

    out = capsys.readouterr().out
    assert "would be: words gone" in out
    assert "59964eac" in out


def test_rules_of_the_settings_are_followed(store: Path, capsys: Capsys) -> None:
    (store / "config.toml").write_text('[[retain]]\nsize = 0\nproject = "/nowhere"\n')
    assert main(["retain", "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["retained"] == []
    (store / "config.toml").write_text('[[retain]]\nsize = 0\nproject = "/home/dev"\n')

    assert main(["retain", "--json"]) == 0

    answer = msgspec.json.decode(capsys.readouterr().out)
    assert len(answer["retained"]) == 4
    assert all(d["kept"] is None and d["after"] < d["before"] for d in answer["retained"])
    assert main(["retain"]) == 0
    assert "Nothing is old or large enough." in capsys.readouterr().out


def test_mistakes_are_sentences(store: Path, capsys: Capsys) -> None:
    assert main(["retain", "--age", "soon"]) == 2
    assert main(["retain", "--harness", "codex"]) == 2
    (store / "config.toml").write_text("[[retain]]\nage = 7\n")
    assert main(["retain"]) == 10

    assert "Traceback" not in capsys.readouterr().err


def test_a_session_is_sealed_and_unsealed_by_name(store: Path, capsys: Capsys) -> None:
    assert main(["seal", "last"]) == 0
    assert main(["seal", "--undo", "last"]) == 0
    assert main(["seal", "--undo", "last"]) == 0

    out = capsys.readouterr().out
    assert "compressed" in out
    assert "plain again" in out
    assert "They are so already." in out


def test_every_command_reads_a_sealed_session(store: Path, capsys: Capsys) -> None:
    commands = [
        ["show", "last"],
        ["ls", "--json"],
        ["usage", "--json"],
        ["tree"],
        ["check"],
        ["handoff", "last", "--print"],
    ]
    commands += [["show", "last", "--json", "--from", "20"], ["lineage", "last"]]
    before = [said(c, capsys) for c in commands]

    main(["seal", "--after", "1h"])
    capsys.readouterr()

    assert [said(c, capsys) for c in commands] == before


def said(words: list[str], capsys: Capsys) -> str:
    main(words)
    out = capsys.readouterr().out
    return "\n".join(line for line in out.splitlines() if "made" not in line)


def test_the_daemon_does_it_where_it_runs_and_goes_on_recording(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    where = store_of(CODEX, tmp_path / "store")
    before = told(where)
    env = environment(home, tmp_path / "store")
    with running(home, tmp_path / "store") as daemon:
        done = command(env, "retain", "--size", "0", "--json")
        sealed = command(env, "seal", "--after", "1h", "--json")
        follows = daemon.ask("session.records", session="last", limit=3)

    assert done.returncode == 0, done.stderr
    assert [d["kept"] for d in msgspec.json.decode(done.stdout)["retained"]] == [None]
    assert msgspec.json.decode(sealed.stdout)["sealed"] == []  # wordless streams are sealed already
    assert follows["records"][0]["contentLevel"] == "metadata"
    assert [p for p in paths(where) if p.startswith("codex") and p.endswith(".zst")]
    assert told(where)["usage"] == before["usage"]
