"""Upkeep where a daemon runs: it does the job, between what it records."""

from pathlib import Path

import msgspec

from tests.daemons import command, running
from tests.homes import environment
from tests.upkeep_of import CODEX, paths, store_of, told


def test_the_daemon_does_it_where_it_runs_and_goes_on_recording(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    where = store_of(CODEX, tmp_path / "store")
    before = told(where)
    env = environment(home, tmp_path / "store")
    with running(home, tmp_path / "store") as daemon:
        done = command(env, "retain", "--size", "0", "--json")
        sealed = command(env, "seal", "--after", "1h", "--json")
        follows = daemon.ask("session.records", session="last", limit=3)

    assert done.returncode == 0, done.stderr
    assert [d["kept"] for d in msgspec.json.decode(done.stdout)["retained"]] == [None]
    assert msgspec.json.decode(sealed.stdout)["sealed"] == []  # wordless streams are sealed already
    assert follows["records"][0]["contentLevel"] == "metadata"
    assert [p for p in paths(where) if p.startswith("codex") and p.endswith(".zst")]
    assert told(where)["usage"] == before["usage"]
