"""A file that comes together with its folder is recorded at once, though nothing is written to it again."""

import json
import time
from pathlib import Path

from tests.daemons import running, until
from tests.pitfalls import S1, asked


def test_the_first_session_of_a_new_project_is_recorded_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".claude" / "projects" / "-old").mkdir(parents=True)
    with running(home, tmp_path / "store") as daemon:
        daemon.caught_up()
        time.sleep(1.5)  # folders are watched by now
        path = home / ".claude" / "projects" / "-new" / f"{S1}.jsonl"

        path.parent.mkdir()
        path.write_text(json.dumps(asked("u1", "hello")) + "\n")
        start = time.monotonic()

        assert until(lambda: daemon.records_of(S1), 20)
        assert time.monotonic() - start < 20
