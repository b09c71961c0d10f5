"""Stand between an ACP client and an agent, byte for byte, and record what they say.

`asrd acp -- COMMAND…` on stdin and stdout; `--listen … --connect …` on Unix sockets and WebSockets (docs/acp.md).
"""

from __future__ import annotations

import argparse

from asrd.acp import cli_main


def arguments(parser: argparse.ArgumentParser) -> None:
    """Takes its arguments as they stand: what is behind `--` is the agent's."""


def main(argv: list[str]) -> int:
    """Runs it; gives the agent's exit code."""
    return cli_main(argv)
