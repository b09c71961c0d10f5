"""One process a store: the lock says who holds it and goes with its holder."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from asrd.errors import StoreLocked, StoreUnusable
from asrd.store.lock import holder, locked

HOLD = """
import sys, time
from pathlib import Path
from asrd.store.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_held_lock_says_whose_it_is_and_goes_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "store" / "lock"
    assert holder(path) is None
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        assert holder(path) == other.pid

        with pytest.raises(StoreLocked, match=str(other.pid)), locked(path):
            pass

        other.kill()
        other.wait()
    assert holder(path) is None
    with locked(path):
        assert path.read_text() == str(os.getpid())
        assert oct(path.stat().st_mode)[-3:] == "600"
    assert path.read_text() == ""


def test_one_that_only_looks_keeps_nobody_out(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path):
        pass
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            holder(path)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for one in lookers:
        one.start()
    try:
        for _ in range(40):
            with locked(path):
                time.sleep(0.001)
    finally:
        stop.set()
        for one in lookers:
            one.join()

    assert holder(path) is None


def test_a_lock_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(StoreUnusable), locked(tmp_path / "file" / "lock"):
        pass
