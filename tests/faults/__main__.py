"""`make faults`: every fault of the suite, and what was found written into `docs/reliability.md`."""

import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import pytest

from tests.faults.figures import FILE

DOCS = Path(__file__).parents[2] / "docs/reliability.md"
HEAD = """# Reliability, in figures

Made by `make faults`; do not edit. Each row is a test in `tests/faults`, `tests/crash`, `tests/daemon` or `tests/test_crew.py`
that fails when the row is not true. "Lost" and "doubled" are told by comparing the streams, byte for byte, with those of a
reading that nothing disturbed.

| fault | looked at | found |
|---|---|---|
"""
TAIL = """
{count} tests on {system}, Python {python}. What is not tried: a disk that returns other bytes than were written (streams
are checked by `asrd check`, not repaired from a second copy), and a kernel that loses what `fdatasync` confirmed.
"""
PARTS = ("tests/faults", "tests/crash", "tests/daemon", "tests/test_crew.py")


class Count:
    """Counts the tests that passed."""

    passed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed += report.when == "call" and report.passed


def main() -> int:
    """Runs them; gives pytest's exit code. The page is written only when all passed."""
    count = Count()
    with tempfile.TemporaryDirectory() as folder:
        os.environ[FILE] = str(Path(folder) / "figures")
        code = pytest.main([*PARTS, "-m", "not real and not browser", *sys.argv[1:]], plugins=[count])
        kept = Path(os.environ[FILE])
        rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    if code == 0:
        lines = [
            f"| {row['fault']} | {row['what']} | {row['found']} |\n" for row in sorted(rows, key=lambda r: r["fault"])
        ]
        tail = TAIL.format(count=count.passed, system=platform.system(), python=platform.python_version())
        DOCS.write_text(HEAD + "".join(dict.fromkeys(lines)) + tail)
    return int(code)


if __name__ == "__main__":
    raise SystemExit(main())
