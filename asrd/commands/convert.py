"""Convert a native session file to ASR on stdout. No daemon and no store are used."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from asrd.convert import convert_path
from asrd.errors import SourceUnreadable
from asrd.records import encode_lines
from asrd.text import inert_json


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("path", metavar="PATH", type=Path, help="a file a harness wrote")
    parser.add_argument("--harness", help="its harness, when its content does not tell")
    parser.add_argument("--session", help="only the stream of this session, when the file holds several")


def run(args: argparse.Namespace) -> int:
    """Runs it. Raises SourceUnreadable, UnknownHarness."""
    try:
        streams = convert_path(args.path, args.harness)
    except OSError as error:
        raise SourceUnreadable(source=args.path, reason=error.strerror or error) from error
    for key, records in streams.items():
        if args.session is None or key.session_id.startswith(args.session):
            data = encode_lines(records)
            if sys.stdout.isatty():
                sys.stdout.write(inert_json(data.decode()))
            else:
                sys.stdout.buffer.write(data)
    sys.stdout.flush()
    return 0
