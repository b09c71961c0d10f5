"""The real daemon, killed again and again while a real folder grows: the streams are those of a whole reading."""

import random
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.daemons import Running, until
from tests.faults.figures import figure
from tests.golden import CAPTURES
from tests.homes import recorded, streams_of
from tests.schedules import difference, pieces

PARTS = ("claude-code/S1", "claude-code/S2", "claude-code/S3", "codex/S1", "codex/S2-v2", "codex/S4-auto", "pi/S3")
KILLS = 8


def grown_home(folder: Path) -> Path:
    """Sessions of several harnesses in one home."""
    for part in PARTS:
        shutil.copytree(CAPTURES / part / "home", folder, dirs_exist_ok=True)
    return folder


class Growing(threading.Thread):
    """Writes what `whole` holds into `home`, piece by piece: as much of it as `share` says, in some 0.9 s for each daemon."""

    def __init__(self, whole: Path, home: Path, chance: random.Random, daemons: int) -> None:
        super().__init__()
        self.home = home
        self.arriving = pieces(whole, chance)
        self.pause = 0.9 * daemons / len(self.arriving)
        self.share = 0.0
        self.more = threading.Event()

    def run(self) -> None:
        """Until all is written."""
        for number, (path, data) in enumerate(self.arriving):
            assert data is not None
            while number >= len(self.arriving) * self.share:
                self.more.wait(0.05)
            target = self.home / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("ab") as file:
                file.write(data)
            self.more.wait(self.pause)


def size_of(daemon: Running) -> int:
    """Bytes of all streams."""
    return sum(map(len, streams_of(daemon.where).values()))


def wait_for_more(daemon: Running, before: int) -> None:
    until(lambda: size_of(daemon) > before, 3)


@pytest.mark.parametrize(
    ("seed", "kills"),
    [(1, KILLS), *(pytest.param(n, 20, marks=[pytest.mark.slow, pytest.mark.timeout(300)]) for n in (2, 3, 4))],
)
def test_a_daemon_killed_in_a_loop_loses_and_doubles_nothing(seed: int, kills: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    whole = grown_home(tmp_path / "whole")
    home = tmp_path / "home"
    home.mkdir()
    with recorded(whole, tmp_path / "whole-store") as one:
        wanted = one.streams()
    writer = Growing(whole, home, chance, kills)

    writer.start()
    killed_at: list[int] = []
    for number in range(kills):
        writer.share = (number + 1) / (kills + 1)
        before = killed_at[-1] if killed_at else 0
        daemon = Running(home, tmp_path / "store").ready()
        wait_for_more(daemon, before)
        time.sleep(chance.random() * 0.2)
        daemon.end(signal.SIGKILL)
        killed_at.append(size_of(daemon))
    writer.share = 1.0
    writer.more.set()  # the rest comes at once
    writer.join()
    last = Running(home, tmp_path / "store").ready()
    until(lambda: streams_of(last.where) == wanted)
    code = last.end()

    assert difference(streams_of(last.where), wanted) is None
    assert code == 0, last.words
    assert len(set(killed_at)) > kills // 2, "it was killed while there was nothing to do"
    figure(
        f"the daemon killed {kills} times while sessions of three harnesses grow (seed {seed})",
        "lost; doubled",
        "0; 0",
    )


def test_what_is_answered_after_kills_is_what_the_streams_hold(tmp_path: Path) -> None:
    home = grown_home(tmp_path / "home")
    chance = random.Random(5)

    for _ in range(3):
        daemon = Running(home, tmp_path / "store").ready()
        time.sleep(chance.random() * 0.3)
        daemon.end(signal.SIGKILL)
    with recorded(home, tmp_path / "store") as killed, recorded(home, tmp_path / "other") as never:
        assert killed.usage() == never.usage()
        assert difference(killed.streams(), never.streams()) is None
    figure("the daemon killed three times during its first reading", "lost; doubled; other answers", "0; 0; 0")
