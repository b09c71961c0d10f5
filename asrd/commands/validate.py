"""Check that files are ASR 0.1 streams: one finding a line, with line number, record and rule.

Exit code 0 when all are valid, 1 when there are findings that make one invalid, 2 for a call that makes no sense.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import IO, cast

from zstandard import ZstdDecompressor

from asrd.commands._common import json_argument
from asrd.store.sealed import SEALED
from asrd.text import inert
from asrd.validate import bounded, check, failed, report


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="streams; - for standard input")
    parser.add_argument("--no-warnings", action="store_true", help="only what makes a stream invalid")
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    code = 0
    valid = 0
    for name in args.files:
        try:
            file = sys.stdin.buffer if name == "-" else _open(Path(name))
        except OSError as error:
            sys.stderr.write(f"asrd: {name} cannot be read ({error.strerror}).\n")
            code = 2
            continue
        with file:
            found = list(check(bounded(file)))
        bad = failed(found)
        valid += not bad
        code = max(code, int(bad))
        shown = [f for f in found if f.severity == "error" or not args.no_warnings]
        for line in report(shown, name, as_json=args.json):
            sys.stdout.write((line if args.json else inert(line)) + "\n")
    if not args.json:
        sys.stderr.write(f"{valid} of {len(args.files)} valid.\n")
    return code


def _open(path: Path) -> IO[bytes]:
    """A stream, plain or sealed."""
    file = path.open("rb")
    if path.name.endswith(SEALED):
        plain = ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=True)
        return io.BufferedReader(cast(io.RawIOBase, plain))
    return file
