"""The command `asrd`: one module a command in `asrd.commands`, found and not registered.

A command module has its help as docstring (first line = summary), `arguments(parser)`, and `run(args) -> exit code`.
Data goes to stdout, words about it to stderr; `--json` is exact and stable, text is for people.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pkgutil
import sys
from collections.abc import Generator
from importlib import import_module
from typing import IO, Any, NoReturn, cast

import msgspec

from asrd import __version__
from asrd.errors import AsrdError, DaemonRefused, StoreUnusable
from asrd.text import Guard, inert, inert_json

ALIASES = {"list": "ls", "resume": "handoff", "cost": "usage"}
GROUPS = (
    ("Record", ("sync", "run", "acp", "service")),
    (
        "Ask",
        (
            "ls",
            "show",
            "follow",
            "tree",
            "usage",
            "search",
            "top",
            "ui",
            "lineage",
            "time",
            "interval",
            "claim",
            "report",
            "receipts",
        ),
    ),
    ("Hand on", ("handoff", "export", "import", "ship", "audit", "blame", "why", "mcp")),
    ("Look after", ("status", "doctor", "check", "reindex", "validate", "convert", "seal", "retain", "completion")),
)


VERBATIM = {"mcp", "acp"}
"""Commands whose output is a protocol: what a program reads is not changed."""


@contextlib.contextmanager
def guarded() -> Generator[None]:
    """While a command runs, what it writes as text is made inert."""
    with (
        contextlib.redirect_stdout(cast("IO[str]", Guard(sys.stdout))),
        contextlib.redirect_stderr(cast("IO[str]", Guard(sys.stderr))),
    ):
        yield


class Parser(argparse.ArgumentParser):
    """Ends with exit code 2 and one sentence."""

    def error(self, message: str) -> NoReturn:
        """One sentence, and where to read more."""
        sys.stderr.write(f"asrd: {message}; see `{self.prog} --help`.\n")
        raise SystemExit(2)


def commands() -> list[str]:
    """Every command by name."""
    import asrd.commands

    return sorted(
        m.name.replace("_", "-") for m in pkgutil.iter_modules(asrd.commands.__path__) if not m.name.startswith("_")
    )


def load(name: str) -> Any:
    """The module of a command."""
    return import_module(f"asrd.commands.{name.replace('-', '_')}")


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    module = load(name)
    parser = Parser(
        prog=f"asrd {name}", description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    module.arguments(parser)
    return parser


def help_text() -> str:
    """What `asrd --help` prints."""
    known = commands()
    lines = [
        "usage: asrd COMMAND [ARGUMENTS]",
        "",
        "asrd records what coding agents do, links it, counts it once and hands it off.",
        "`asrd sync && asrd ls` records this machine's sessions and lists them.",
    ]
    told: set[str] = set()
    for title, names in (*GROUPS, ("More", tuple(known))):
        here = [n for n in names if n in known and n not in told]
        told.update(here)
        if here:
            lines += ["", title + ":"]
            lines += [f"  {n:<12}{(load(n).__doc__ or '').strip().splitlines()[0]}" for n in here]
    lines += [
        "",
        "`asrd COMMAND --help` says more. A session is named by its id, the start of it, `last`, or `.` (last here).",
    ]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Runs one command; gives its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if not args or args[0] in ("-h", "--help", "help"):
        if len(args) > 1 and args[0] == "help" and args[1] in commands():
            args = [args[1], "--help"]
        else:
            sys.stdout.write(help_text() + "\n")
            return 0
    if args[0] in ("-V", "--version", "version"):
        sys.stdout.write(f"asrd {__version__}\n")
        return 0
    name = ALIASES.get(args[0], args[0])
    if name not in commands():
        sys.stderr.write(f"asrd: there is no command {args[0]}; see `asrd --help`.\n")
        return 2
    module = load(name)
    as_json = "--json" in args
    try:
        with contextlib.nullcontext() if name in VERBATIM else guarded():
            if hasattr(module, "main"):  # a command that takes its arguments as they stand
                return int(module.main(args[1:]))
            return int(module.run(parser_of(name).parse_args(args[1:])) or 0)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    except AsrdError as error:
        return fail(error, as_json, name)
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:  # a folder of another user, a disk that went away: a sentence, not a traceback
        return fail(StoreUnusable(store=error.filename or "a file", reason=error.strerror or str(error)), as_json)
    except KeyboardInterrupt:
        return 130


def fail(error: AsrdError, as_json: bool, command: str = "COMMAND") -> int:
    """Says what went wrong, on stderr; gives the exit code."""
    sentence = str(error.facts.get("reason")) if isinstance(error, DaemonRefused) else str(error)
    # What several commands ask does not know by which of them it was asked.
    sentence = sentence.replace("`asrd COMMAND --help`", f"`asrd {command} --help`")
    if as_json:
        kind = error.facts.get("kind") if isinstance(error, DaemonRefused) else None  # as without a daemon
        data = {"error": {"kind": kind or type(error).__name__, "message": sentence, "exitCode": error.exit_code}}
        sys.stderr.write(inert_json(msgspec.json.encode(data).decode()) + "\n")
    else:
        sys.stderr.write(f"asrd: {inert(sentence)}\n")
    return error.exit_code
