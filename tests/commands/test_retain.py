"""`asrd retain`: by the rules of the settings or one given; said before and after."""

from pathlib import Path

import msgspec
import pytest

from asrd.cli import main

Capsys = pytest.CaptureFixture[str]


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
