"""What a fault was found to cost or to leave, in figures: `make faults` writes them into `docs/reliability.md`."""

import json
import os
from pathlib import Path

FILE = "ASRD_FIGURES"
"""Names the file that figures are added to, one JSON object a line; without it they are not kept."""


def figure(fault: str, what: str, found: str) -> None:
    """Keeps one line of the table: what was done, what was looked at, what was found."""
    if path := os.environ.get(FILE):
        with Path(path).open("a") as file:
            file.write(json.dumps({"fault": fault, "what": what, "found": found}) + "\n")
