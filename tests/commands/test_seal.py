"""`asrd seal`: streams at rest are compressed, and every command reads them as before."""

from pathlib import Path

import pytest

from asrd.cli import main

Capsys = pytest.CaptureFixture[str]


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
        ["handoff", "last", "--to", "prompt"],
    ]
    commands += [["show", "last", "--json", "--from", "20"], ["lineage", "last"]]
    before = [said(c, capsys) for c in commands]
    assert all(before)

    main(["seal", "--after", "1h"])
    capsys.readouterr()
    assert len(list((store / "streams").rglob("*.zst"))) == 4

    assert [said(c, capsys) for c in commands] == before


def said(words: list[str], capsys: Capsys) -> str:
    main(words)
    out = capsys.readouterr().out
    return "\n".join(line for line in out.splitlines() if "made" not in line)
