"""Commands over a recorded capture, as a user runs them in one process."""

import json
from pathlib import Path
from typing import Any

import pytest

from asrd.cli import main
from asrd.daemon import sync_once
from asrd.paths import folders
from tests.golden import CAPTURES
from tests.homes import environment


class Asrd:
    """`asrd` with a home and a store of its own."""

    def __init__(self, home: Path, store: Path, patch: pytest.MonkeyPatch, out: pytest.CaptureFixture[str]) -> None:
        for name, value in environment(home, store).items():
            patch.setenv(name, value)
        sync_once(folders(environment(home, store)), environment(home, store))
        self._out = out

    def text(self, *args: str) -> str:
        assert main(list(args)) == 0
        return self._out.readouterr().out

    def json(self, *args: str) -> Any:
        return json.loads(self.text(*args, "--json"))


def over(case: str, where: Path, patch: pytest.MonkeyPatch, out: pytest.CaptureFixture[str]) -> Asrd:
    return Asrd(CAPTURES / case / "home", where / "store", patch, out)
