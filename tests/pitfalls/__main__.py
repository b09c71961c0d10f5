"""Prints the table of pitfalls; exits with 1 where one is wrong. Words: ids of cases."""

import json
import sys
import tempfile
from pathlib import Path

from tests.pitfalls import CASES, outcome
from tests.pitfalls.elsewhere import ELSEWHERE, IDS, NOT_OURS, SAME


def main(given: list[str]) -> int:
    """Prints the table; gives how many cases are wrong."""
    wrong = 0
    for ident in given or CASES:
        one = CASES[ident]
        with tempfile.TemporaryDirectory() as work:
            ours = outcome(one, Path(work))
        wrong += ours != one.right
        print(f"{'ok ' if ours == one.right else 'NOT'}  {ident:<18}{one.what:<112}{json.dumps(one.right)}")
        if ours != one.right:
            print(f"{'':23}ours: {ours}")
    if not given:
        print("\nHeld by other tests:")
        for ident, (file, name) in ELSEWHERE.items():
            print(f"     {ident:<6}{file}::{name}")
        print("\nDecided by a case of another id:")
        for ident, other in SAME.items():
            print(f"     {ident:<6}{other}")
        print("\nNot ours, and why:")
        for ident, why in NOT_OURS.items():
            print(f"     {ident:<6}{why}")
        listed = sum(i in CASES for i in IDS)
        print(f"\nOf {len(IDS)} miscounts and rules {listed} are cases, {len(SAME)} are decided by one of those,")
        print(
            f"{len(ELSEWHERE)} are held by other tests, {len(NOT_OURS)} are not ours; {len(CASES) - listed} cases are of no list."
        )
    print(f"{len(given or CASES) - wrong} of {len(given or CASES)} are right")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
