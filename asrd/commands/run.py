"""Record in the foreground until stopped (SIGTERM, Ctrl-C); `--once` brings everything up to date and ends.

This is what the user service runs. Sessions are seen as they are written; `asrd status` says how it goes.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import anyio

from asrd import log
from asrd.commands import sync
from asrd.daemon import Daemon
from asrd.errors import SettingsError
from asrd.paths import environment, folders
from asrd.settings import read


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("--once", action="store_true", help="bring everything up to date and end (= asrd sync)")
    parser.add_argument("--verbose", action="store_true", help="say more")
    parser.add_argument(
        "--log-format", choices=("text", "json"), help="how it says it (text, or what config.toml says)"
    )
    parser.add_argument("--log-file", metavar="FILE", help="say it there, rotated; warnings on stderr too")
    sync.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    if args.once:
        return sync.run(args)
    where = folders()
    said = read(where.config, where.home).log
    name = args.log_file or said.file
    file = Path(name).expanduser().absolute() if name else None
    try:
        log.begin(environment(), args.log_format or said.format, file, said.size, said.keep, args.verbose)
    except OSError as error:
        raise SettingsError(path=file, key="the log", expected="a file to write", found=error.strerror) from error
    daemon = Daemon(where, environment())
    told = logging.getLogger("asrd")
    anyio.run(daemon.run, lambda: told.info("recording into %s, answering at %s", where.store, where.socket))
    return 0
