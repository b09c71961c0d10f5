"""Prints the table of pitfalls; exits with 1 where one is wrong. Words: ids of cases."""

import json
import sys
import tempfile
from pathlib import Path

from tests.pitfalls import CASES, outcome


def main() -> int:
    """Prints the table; gives how many cases are wrong."""
    wrong = 0
    for ident in sys.argv[1:] or CASES:
        one = CASES[ident]
        with tempfile.TemporaryDirectory() as work:
            ours = outcome(one, Path(work))
        wrong += ours != one.right
        print(f"{'ok ' if ours == one.right else 'NOT'}  {ident:<12}{one.what:<92}{json.dumps(one.right)}")
        if ours != one.right:
            print(f"{'':17}ours: {ours}")
    print(f"{len(sys.argv[1:] or CASES) - wrong} of {len(sys.argv[1:] or CASES)} are right")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(), 1))
