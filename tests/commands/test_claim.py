"""`asrd claim` keeps claims in a file, one at a time."""

import json
from pathlib import Path
from typing import Any

import pytest

from asrd.cli import main
from tests.report.build import session


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working tree, with two sessions recorded."""
    home, tree = tmp_path / "home", tmp_path / "tree"
    session(home, "a1111111", ["ls", "ls"])
    session(home, "b2222222", ["ls"])
    (tree / ".git").mkdir(parents=True)
    (tree / "sub").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ASRD_HOME", str(tmp_path / "store"))
    monkeypatch.chdir(tree / "sub")
    assert main(["sync"]) == 0
    return tree


def said(capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    capsys.readouterr()
    assert main([*args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_claim_names_the_whole_id_and_lies_at_the_top_of_the_tree(place: Path) -> None:
    code = main(["claim", "w", "--session", "a111", "--title", "T", "--phase", "plan", "build"])

    text = (place / ".asrd-claims.toml").read_text("utf-8")
    assert code == 0
    assert '"claude-code:a1111111"' in text and 'phases = ["plan", "build"]' in text


def test_claiming_again_changes_no_byte(place: Path) -> None:
    main(["claim", "w", "--session", "a111", "--title", "T"])
    before = (place / ".asrd-claims.toml").read_bytes()

    main(["claim", "w", "--session", "a1111111"])

    assert (place / ".asrd-claims.toml").read_bytes() == before


def test_sessions_and_whole_claims_are_taken_back(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["claim", "w", "--session", "a111", "b222"])
    main(["claim", "v", "--session", "a111"])

    main(["claim", "w", "--session", "a111", "--remove"])
    main(["claim", "v", "--remove"])

    (left,) = said(capsys, "claim", "--list")["claims"]
    assert (left["name"], [s["sessionId"] for s in left["sessions"]]) == ("w", ["b2222222"])


def test_an_interval_claims_a_time_and_not_the_session(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["claim", "w", "--session", "a111", "--interval", "2026-11-02T10:00:00Z/2026-11-02T12:00:00+01:00"])

    (claim,) = said(capsys, "claim", "--list")["claims"]
    report = said(capsys, "report")

    assert claim["sessions"] == []
    assert (claim["intervals"][0]["since"], claim["intervals"][0]["until"]) == (
        "2026-11-02T10:00:00Z",
        "2026-11-02T11:00:00Z",
    )
    assert report["intervals"]["rows"][0]["requests"] == 2
    assert report["rollups"]["claimed"]["rollups"] == 0


@pytest.mark.parametrize("text", ["x", "2026-11-02", "2026-11-03/2026-11-02", "/2026-11-02", "2026-11-02/2026-11-02"])
def test_what_is_no_interval_is_refused(place: Path, text: str) -> None:
    code = main(["claim", "w", "--session", "a111", "--interval", text])

    assert code == 2
    assert not (place / ".asrd-claims.toml").exists()


def test_a_session_that_is_not_recorded_cannot_be_claimed(place: Path) -> None:
    code = main(["claim", "w", "--session", "zzz"])

    assert code == 50
