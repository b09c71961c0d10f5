"""What the shell brings to a handoff: the session and those below it, without what no brief shows, and the secrets here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asrd import handing
from asrd.records import ToolResult, encode
from tests.homes import Recorded, recorded
from tests.report.build import session


@pytest.fixture
def store(tmp_path: Path) -> Any:
    session(tmp_path / "home", "a1111111", ["ls", "make"])
    with recorded(tmp_path / "home", tmp_path / "store") as found:
        yield found


def params(**more: Any) -> Any:
    given = {
        "session": "a111",
        "also": [],
        "to": "codex",
        "budget": 8000,
        "redact": "default",
        "alone": False,
        "cwd": None,
    }
    return SimpleNamespace(**{**given, **more})


def test_work_holds_no_output_that_no_brief_shows(store: Recorded) -> None:
    whole = handing.records_of(store.rows, store.rows.sessions()[0])

    work = handing.work_of(store.rows, ["a111"], None)

    (one,) = work.sessions
    assert [r.id for r in one.records] == [r.id for r in whole]
    assert sum(len(encode(r)) for r in one.records) < sum(len(encode(r)) for r in whole)
    assert not [
        r for r in one.records if isinstance(r, ToolResult) and r.exec and r.exec.stdout and not r.exec.exit_code
    ]


def test_progress_is_told_of_all_that_is_read(store: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing, "OFTEN", 2)
    told: list[tuple[int, int]] = []

    made = handing.make(store.rows, params(), lambda read, of: told.append((read, of)))

    total = store.rows.sessions()[0].row.records
    assert told == [(n, total) for n in range(2, total + 1, 2)] and made.sources[0].records == total


def test_only_values_under_names_of_secrets_are_secrets() -> None:
    env = {"DB_PASSWORD": "one-two-three", "API_KEY": "four", "EDITOR": "vi", "EMPTY_TOKEN": ""}

    assert handing.secrets_here(env) == ["one-two-three", "four"]


def test_a_native_file_goes_on_in_the_folder_that_is_asked_for(store: Recorded) -> None:
    made = handing.make_native(store.rows, params(), "/w/other")

    assert made.folder == "/w/other" and made.resume == ("codex", "resume", made.session_id)
    assert '"cwd":"/w/other"' in made.text.splitlines()[0]
