"""Prints the streams a home gives: `python -m tests.look HOME [HARNESS]`. `-v` prints whole records."""

import sys
from pathlib import Path

from asrd.convert import convert_home
from asrd.records import encode

if __name__ == "__main__":
    args = [a for a in sys.argv[1:] if a != "-v"]
    for key, records in convert_home(Path(args[0]), only=args[1] if len(args) > 1 else None).items():
        print(f"== {key}")
        for record in records:
            line = encode(record).decode()
            print(line if "-v" in sys.argv else line[:300])
