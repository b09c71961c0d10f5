"""Records live ACP connections: `asrd acp` stands between a client and an agent, and keeps a copy for the daemon.

    stdio.py    an agent started as a command, over stdin and stdout
    listen.py   Unix sockets (newline-delimited JSON) and WebSocket (one message a text frame)
    spool.py    the private file a connection is copied into; the daemon reads it like any other source
    frames.py   pure: what is taken out of a message before it is kept

The records are made by `asrd.recorders.acp`, which knows nothing of this package.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from asrd import clock
from asrd.paths import folders

TOKEN = "ASRD_ACP_TOKEN"
"""The variable that holds the token a remote client must present."""

USAGE = """asrd acp [--keep-frames] -- COMMAND…
       asrd acp [--keep-frames] --listen unix:PATH|ws://HOST:PORT (--connect unix:PATH|ws://… | -- COMMAND…)"""


def cli_main(argv: Sequence[str]) -> int:
    """`asrd acp`: stand between an ACP client and an agent, byte for byte, and record what they say.

    Without --listen the agent's COMMAND is run with our stdin, stdout and stderr; its exit code or signal becomes ours.
    With --listen every client that connects gets a connection of its own to the agent.
    """
    ours, command = _split(list(argv))
    parser = argparse.ArgumentParser(
        prog="asrd acp", usage=USAGE, description=(cli_main.__doc__ or "").split(": ", 1)[1]
    )
    parser.add_argument("--keep-frames", action="store_true", help="keep the raw messages beside the stream")
    parser.add_argument(
        "--spool", type=Path, metavar="FOLDER", help="where the daemon takes them from (default: its own)"
    )
    parser.add_argument("--listen", metavar="ADDRESS", help="unix:PATH or ws://HOST:PORT[/PATH]")
    parser.add_argument("--connect", metavar="ADDRESS", help="the agent: unix:PATH or ws://HOST:PORT[/PATH]")
    parser.add_argument("--allow-remote", action="store_true", help=f"listen on other than loopback; needs {TOKEN}")
    try:
        options = parser.parse_args(ours)
        if bool(options.connect) == bool(command):
            parser.error("give either the agent's command behind `--`, or --connect ADDRESS")
        if options.connect and not options.listen:
            parser.error("--connect needs --listen ADDRESS")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2
    folder: Path = options.spool or folders().spool
    if options.listen is None:
        from asrd.acp import stdio
        from asrd.acp.spool import Spool, connection_id

        connection = connection_id(clock.now(), os.getpid())
        spool = Spool(folder, connection, transport="stdio", command=command[0], keep=options.keep_frames)
        return stdio.run(command, spool)
    from asrd.acp import listen

    try:
        settings = listen.settings(
            options.listen,
            options.connect,
            command,
            folder=folder,
            keep=options.keep_frames,
            allow_remote=options.allow_remote,
            token=os.environ.get(TOKEN),
        )
    except ValueError as error:
        sys.stderr.write(f"asrd acp: {error}\n")
        return 2
    return listen.run(settings)


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in argv:
        return argv, []
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]
