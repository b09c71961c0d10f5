"""Stores that several commands are asked about."""

from pathlib import Path

import pytest

from asrd.cli import main
from asrd.paths import Folders
from tests.homes import environment
from tests.ui.build import lay, story, where_of
from tests.upkeep_of import S2


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store of a session with sub-agents."""
    for name, value in environment(S2, tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    assert main(["sync", "--quiet"]) == 0
    return tmp_path / "store"


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """The folders of a store with the session `story` and its sub-agent."""
    found = where_of(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ASRD_HOME", str(tmp_path / "store"))
    lay(found, *story())
    return found
