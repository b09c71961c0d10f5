"""`asrd receipts` keeps what others measured, apart from what asrd recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from asrd.cli import main

RECEIPTS = Path(__file__).parents[1] / "receipts"
ALL = sorted(str(p) for p in RECEIPTS.glob("*.yaml"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ASRD_HOME", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert main([*args, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_receipts_are_taken_in_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = said(capsys, "receipts", "import", *ALL)

    again = said(capsys, "receipts", "import", *ALL)

    assert (len(first["taken"]), len(again["taken"]), len(again["known"])) == (39, 0, 39)


def test_the_campaign_is_reported_with_its_claims(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claims = [str(RECEIPTS / "claims_snapshot_095.json"), str(RECEIPTS / "claims.toml")]
    main(["receipts", "import", *ALL, "--claims", *claims])

    found = said(capsys, "receipts", "report")

    assert found["published"]["claimed"]["wallHours"] == "170.08"
    assert {r["receipt"]: r["declaring"] for r in found["intervals"]["rows"]}["codex-task-tree-session-115"] == [
        "session-115"
    ]


def test_the_claims_file_of_the_place_claims_receipts_too(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["receipts", "import", *ALL])
    (place / ".git").mkdir()
    main(["claim", "w", "--receipt", "a0083f0c8eb083ddb.yaml"])

    found = said(capsys, "receipts", "report")

    assert [s["session"] for s in found["sessions"]["own"]] == ["w"]
    assert found["rollups"]["claimed by a session"]["rollups"] == 1


def test_what_is_no_receipt_is_refused_and_the_others_are_taken(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "bad.yaml").write_text("a: 1\n")

    found = said(capsys, "receipts", "import", "bad.yaml", "missing.yaml", ALL[0], code=1)

    assert found["taken"] == [ALL[0]]
    assert [r["file"] for r in found["refused"]] == ["bad.yaml", "missing.yaml"]


def test_a_later_version_replaces_an_earlier_one_whichever_came_first(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = (
        RECEIPTS / "codex-task-tree-session-072.yaml",
        RECEIPTS / "codex-task-tree-session-072@1e17510-superseded.yaml",
    )
    (place / "codex-task-tree-session-072.yaml").write_bytes(
        old.read_bytes()
    )  # an import of the day before, by its own name
    main(["receipts", "import", str(new), "codex-task-tree-session-072.yaml"])

    found = said(capsys, "receipts", "report")["intervals"]["rows"]

    assert [r["modelResponses"] for r in found] == [1467]


def test_receipts_never_show_in_what_asrd_recorded(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "home").mkdir()
    main(["sync"])
    main(["receipts", "import", *ALL])

    usage, report = said(capsys, "usage"), said(capsys, "report")

    assert usage["total"]["requests"] == 0
    assert report["rollups"]["measured"]["rollups"] == 0


def test_all_are_forgotten_when_asked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["receipts", "import", *ALL, "--claims", str(RECEIPTS / "claims_snapshot_095.json")])

    main(["receipts", "forget"])

    found = said(capsys, "receipts", "report")
    assert found["rollups"]["measured"]["rollups"] == 0 and found["coverage"] is None
