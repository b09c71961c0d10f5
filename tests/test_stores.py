"""Stores of versions before: read, answered from, and recorded on by this one; those of versions to come are refused.

`tests/stores/v1` was written by asrd at commit 202505a (store version 1, index 4, cursors 2) from the captures claude-code/S2
and codex/S1; `usage.json` and `ls.json` are what that version answered.
"""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asrd.cli import main
from asrd.daemon import sync_once
from asrd.paths import Folders, folders
from asrd.retention import Rule
from asrd.upkeep import Job, Upkeep, work
from tests.homes import environment
from tests.test_upkeep import NOW
from tests.upkeep_of import CODEX, S2, opened, paths, told

V1 = Path(__file__).parent / "stores" / "v1"


@pytest.fixture
def old(tmp_path: Path) -> Folders:
    """The old store with the home it was recorded from."""
    shutil.copytree(V1, tmp_path / "store")
    shutil.copytree(S2, tmp_path / "home")
    shutil.copytree(CODEX, tmp_path / "home", dirs_exist_ok=True)
    return folders(environment(tmp_path / "home", tmp_path / "store"))


def answered() -> dict[str, Any]:
    return msgspec.json.decode((V1 / "usage.json").read_bytes())


def test_an_old_store_answers_as_it_did(old: Folders) -> None:
    found = told(old)

    assert found["usage"]["total"] == answered()["total"]
    assert found["usage"]["byModel"] == answered()["byModel"]
    before = {s["sessionId"]: s for s in msgspec.json.decode((V1 / "ls.json").read_bytes())["sessions"]}
    after = {s["sessionId"]: s for s in found["sessions"]}
    assert before.keys() <= after.keys()
    for ident, session in before.items():
        for field in ("title", "turns", "calls", "records", "startedAt", "state"):
            assert after[ident][field] == session[field], (ident, field)


def test_an_old_store_is_recorded_on_and_nothing_comes_twice(old: Folders) -> None:
    before = {p: (old.streams / p).read_bytes() for p in paths(old)}

    sync_once(old, environment(old.home, old.store))

    after = {p: (old.streams / p).read_bytes() for p in paths(old)}
    assert after.keys() == before.keys()
    assert all(after[p].startswith(data) for p, data in before.items())
    assert told(old)["usage"]["total"] == answered()["total"]


def test_an_old_store_stays_readable_for_its_version_until_something_is_sealed(old: Folders) -> None:
    store = opened(old)
    before = (old.store / "version.json").read_bytes()

    work(Upkeep(store), Job(rules=[Rule(size=0)]), NOW)
    store.close()

    assert before == b'{"version":1}'
    assert (old.store / "version.json").read_bytes() == b'{"version":2}'
    assert told(old)["usage"]["total"] == answered()["total"]


@pytest.mark.parametrize("command", ["sync", "ls", "usage", "check --repair", "reindex", "retain --age 1d", "run"])
def test_a_newer_store_is_refused_by_every_command_and_left_as_it_is(
    old: Folders, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment(old.home, old.store).items():
        monkeypatch.setenv(name, value)
    (old.store / "version.json").write_bytes(b'{"version":99}')
    before = {p: (old.streams / p).read_bytes() for p in paths(old)}

    code = main(command.split())

    assert code == 32
    assert "version 99, which is newer than this one reads; upgrade asrd" in capsys.readouterr().err
    assert {p: (old.streams / p).read_bytes() for p in paths(old)} == before
