"""`asrd audit` over the captures: what really happened is in the account, with record ids that `asrd show` finds."""

import json
from pathlib import Path

import pytest

from asrd.cli import main
from tests.golden import CAPTURES
from tests.homes import environment


def audited(
    case: str, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    for name, value in environment(CAPTURES / case / "home", store).items():
        monkeypatch.setenv(name, value)
    main(["sync"])
    capsys.readouterr()
    assert main(["audit", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("case", ["claude-code/S1", "codex/S1", "codex/S1-v0.55.0"])
def test_the_account_of_a_capture_tells_its_commands_exit_codes_edits_and_commit(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = json.loads((CAPTURES / case / "truth.json").read_text())

    answer = json.loads(audited(case, tmp_path, monkeypatch, capsys, "last", "--json"))

    actions = [a for s in answer["sessions"] for t in s["turns"] for a in t["actions"]]
    ran = [
        (a["command"]["text"], a["result"]["exitCode"])
        for a in actions
        if a["did"] == "call" and a["kind"] == "execute"
    ]
    scripted = [(s["cmd"], s["exit_code"]) for s in truth["shell"]]
    assert [r for r in ran if r[0] in {c for c, _ in scripted}] == scripted
    assert sum(a["did"] == "file_change" for a in actions) == len(truth["edits"])
    commits = [a["commit"] for a in actions if a["did"] == "vcs"]
    assert commits == [truth["git_log_newest_first"][0].split()[0]]
    asked = [a["said"]["text"] for s in answer["sessions"] for t in s["turns"] for a in t["asked"]]
    assert asked == [t["prompt"] for t in truth["turns"]]


def test_sub_agents_are_accounted_for_with_what_started_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--since", "2026-01-01", "--format", "markdown")

    out = audited("claude-code/S2", tmp_path, monkeypatch, capsys, *words)

    assert out.startswith("# Audit\n") and "spawned by claude\\-code:" in out


def test_what_happened_in_a_length_of_time_is_accounted_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    all_of_it = audited("claude-code/S1", tmp_path, monkeypatch, capsys, "--since", "36500d")

    assert "1 session, 2 prompts" in all_of_it
    assert main(["audit", "--since", "0h"]) == 0
    assert "0 sessions, 0 prompts" in capsys.readouterr().out


def test_an_audit_of_nothing_named_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit"]) == 2
