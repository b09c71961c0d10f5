"""Runs `asrd sync` over a home and measures the whole process."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from tests.homes import environment

MEASURE = """
import os, sys
from asrd.cli import main
code = main(["sync", "--quiet", *sys.argv[1:]])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
sys.exit(code)
"""


def sync(home: Path, store: Path, *words: str, patience: float = 90) -> tuple[int, int, str]:
    """Exit code, peak memory in MB, and what was said."""
    env = {**os.environ, **environment(home, store)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *words], env=env, capture_output=True, text=True, timeout=patience, check=False
    )
    lines = done.stdout.split()
    return done.returncode, int(lines[-1]) if lines else 0, done.stderr


def resident(pid: int) -> int:
    """Resident MB of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return 0


class Peak:
    """The largest resident memory of a process, looked at until `end`."""

    def __init__(self, pid: int) -> None:
        self.most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, args=(pid,), daemon=True)
        self._thread.start()

    def _look(self, pid: int) -> None:
        while not self._over.wait(0.02):
            try:
                self.most = max(self.most, resident(pid))
            except OSError:
                return

    def end(self) -> int:
        """The peak in MB."""
        self._over.set()
        self._thread.join()
        return self.most
