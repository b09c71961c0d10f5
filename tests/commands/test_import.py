"""`asrd export --archive` and `asrd import`: from one machine to another, with a daemon there and without."""

from pathlib import Path

import msgspec
import pytest

from asrd.cli import main
from tests.daemons import command, running
from tests.homes import environment
from tests.upkeep_of import CODEX, S2, store_of, told


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """All of one machine."""
    store_of(S2, tmp_path / "one")
    done = command(environment(S2, tmp_path / "one"), "export", "--archive", str(tmp_path / "a.tar.zst"))
    assert done.returncode == 0, done.stderr
    assert "4 streams" in done.stderr
    return tmp_path / "a.tar.zst"


def test_it_arrives_where_nothing_is(tmp_path: Path, archive: Path) -> None:
    env = environment(CODEX, tmp_path / "two")

    first = command(env, "import", str(archive))
    second = command(env, "import", str(archive), "--json")
    listed = command(env, "ls", "--json")

    assert "4 new here (135 records)" in first.stdout
    answer = msgspec.json.decode(second.stdout)
    assert answer["schema"] == "asrd.import/1"
    assert {s["outcome"] for s in answer["streams"]} == {"here"}
    assert len(msgspec.json.decode(listed.stdout)["sessions"]) == 4


def test_a_daemon_takes_it_in(tmp_path: Path, archive: Path) -> None:
    where = store_of(CODEX, tmp_path / "two")
    alone = store_of(CODEX, tmp_path / "three")
    command(environment(CODEX, tmp_path / "three"), "import", str(archive))
    with running(CODEX, tmp_path / "two"):
        done = command(environment(CODEX, tmp_path / "two"), "import", str(archive))

    assert done.returncode == 0, done.stderr
    assert "4 new here" in done.stdout
    assert told(where)["usage"]["total"] == told(alone)["usage"]["total"]
    assert list((tmp_path / "two" / "incoming").iterdir()) == []


def test_single_sessions_are_taken_along_by_name(tmp_path: Path) -> None:
    store_of(S2, tmp_path / "one")
    env = environment(S2, tmp_path / "one")

    done = command(env, "export", "--archive", str(tmp_path / "a.tar.zst"), "59964eac", "--json")

    streams = msgspec.json.decode(done.stdout)["streams"]
    assert [s["sessionId"][:8] for s in streams] == ["59964eac"]


def test_what_is_no_archive_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment(CODEX, tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    (tmp_path / "x").write_bytes(b"no")

    assert main(["import", str(tmp_path / "x")]) == 36
    assert main(["import", str(tmp_path / "nowhere")]) == 36
    assert main(["import", str(tmp_path)]) == 36

    assert "cannot be imported" in capsys.readouterr().err
