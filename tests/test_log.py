"""The daemon's own words: where they go, and how."""

import logging
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

from asrd import log
from asrd.cli import main
from tests.homes import environment


@pytest.fixture(autouse=True)
def root() -> Generator[logging.Logger]:
    """The root logger, as it was afterwards."""
    one = logging.getLogger()
    before, level = list(one.handlers), one.level
    yield one
    for handler in one.handlers:
        if handler not in before:
            handler.close()
    one.handlers, one.level = before, level


def say(words: str = "hello") -> None:
    logging.getLogger("asrd").warning("%s", words)


def test_text_has_its_time_and_level(capsys: pytest.CaptureFixture[str]) -> None:
    log.begin({}, "text")

    say()

    at, level, words = capsys.readouterr().err.split()
    assert (level, words) == ("WARNING", "hello")
    assert at.endswith("Z")


def test_the_journal_gets_priorities_and_keeps_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    log.begin({"JOURNAL_STREAM": "8:1"}, "text")

    say("two\nlines")
    logging.getLogger("asrd").error("bad")

    assert capsys.readouterr().err == "<4>two\n<4>lines\n<3>bad\n"


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    log.begin({}, "json")

    try:
        raise ValueError("why\nso")
    except ValueError:
        logging.getLogger("asrd").exception("it broke")

    (line,) = capsys.readouterr().err.splitlines()
    said = msgspec.json.decode(line)
    assert (said["level"], said["message"]) == ("error", "it broke")
    assert "why\nso" in said["error"]


def test_a_file_is_rotated_and_private(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "logs" / "asrd.log"
    path.parent.mkdir()
    log.begin({}, "text", path, size=500, keep=2)

    for number in range(60):
        logging.getLogger("asrd").info("line %d", number)
    say("seen on both")

    files = sorted(p.name for p in path.parent.iterdir())
    assert files == ["asrd.log", "asrd.log.1", "asrd.log.2"]
    assert all(p.stat().st_mode & 0o777 == 0o600 for p in path.parent.iterdir())
    assert all(p.stat().st_size <= 500 for p in path.parent.iterdir())
    assert path.read_text().rstrip().endswith("seen on both")
    err = capsys.readouterr().err
    assert "seen on both" in err
    assert "line 1" not in err


def test_a_file_that_cannot_be_written_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment(tmp_path, tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    (tmp_path / "folder").mkdir()

    code = main(["run", "--log-file", str(tmp_path / "folder")])

    assert code == 10
    assert "the log should be a file to write" in capsys.readouterr().err
