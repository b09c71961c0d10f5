"""Hand a session on: build a starter context from its record and start a new session in any harness.

Without `--run` the brief goes to stdout (or to `--out FILE`, 0600). `--run` starts the target with it and becomes it.
No model is called; secrets are removed (`--redact`), and how many is said on stderr. A running session is never taken
over: the target starts a new one.

`--native` writes the history as a session file of the target instead (codex, claude, pi, opencode): into a copy, and
with `--install` into the target's home, where its own resume opens it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from asrd import clock, handing
from asrd.answers import HandoffParams
from asrd.commands._common import asker, here, print_json, session_argument
from asrd.errors import SettingsError, UsageError
from asrd.handoff import DEFAULT_BUDGET, Brief, Options, Start, explain, render, start, target_named, targets
from asrd.handoff.native import DEFAULT_NATIVE_BUDGET, NativeFile
from asrd.paths import environment, folders
from asrd.store.disk import make_folder


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    session_argument(parser)
    parser.add_argument(
        "--also", action="append", default=[], metavar="SESSION", help="another session of the same work"
    )
    parser.add_argument("--to", required=True, metavar="TARGET", help=", ".join(targets()))
    parser.add_argument(
        "--budget", type=int, metavar="TOKENS", help=f"default {DEFAULT_BUDGET}, of --native {DEFAULT_NATIVE_BUDGET}"
    )
    parser.add_argument("--redact", choices=("strict", "default", "off"), default="default", help="what is removed")
    parser.add_argument("--alone", action="store_true", help="leave its sub-agents out")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the brief there (0600)")
    parser.add_argument("--native", action="store_true", help="the history as a session file of the target")
    parser.add_argument("--install", action="store_true", help="with --native: put it into the target's home")
    parser.add_argument("--run", action="store_true", help="start the target with it")
    parser.add_argument("--dry-run", action="store_true", help="print exactly what would be started")
    parser.add_argument("--headless", action="store_true", help="with --run: answer once and end, without a terminal")
    parser.add_argument("--model", help="with --run: the target's model")
    parser.add_argument(
        "--permissions", choices=("ask", "edits", "all"), default="ask", help="with --run: what it may do unasked"
    )
    parser.add_argument("--cwd", help="with --run: where it works (default: the session's folder when it is here)")
    parser.add_argument(
        "--worktree", metavar="BRANCH", help="with --run: in a new git worktree beside that folder, on a new branch"
    )
    parser.add_argument("--why", action="store_true", help="say why each item is in the brief, or is not")
    parser.add_argument("--json", action="store_true", help="the brief as structure")
    parser.epilog = "What stands behind `--` goes to the target: asrd handoff last --to pi --run -- --provider x"
    parser.set_defaults(extra=())


def main(given: list[str]) -> int:
    """Runs it with arguments as they stand: those behind `--` are the target's."""
    from asrd.cli import parser_of

    at = given.index("--") if "--" in given else len(given)
    args = parser_of("handoff").parse_args(given[:at])
    args.extra = tuple(given[at + 1 :])
    return run(args)


def run(args: argparse.Namespace) -> int:
    """Runs it. Raises NothingFound, Ambiguous, BudgetTooSmall."""
    target = target_named(args.to)
    usable(args)
    params = HandoffParams(
        session=args.session,
        also=args.also,
        to=target.name,
        budget=args.budget,
        redact=args.redact,
        alone=args.alone,
        cwd=here(),
    )
    # Asked of the store itself, with or without a daemon: the secrets to take out are those of this shell.
    rows = asker().rows()
    if args.native:
        folder = os.path.abspath(args.cwd) if args.cwd else None
        native = handing.make_native(rows, params, folder)
        if not os.path.isdir(native.folder):
            sys.stderr.write(f"asrd: {native.folder} is not here; the session goes on in {here()}.\n")
            native = handing.make_native(rows, params, here())
        return continue_natively(args, native)
    made = handing.make(rows, params, show_progress if sys.stderr.isatty() else handing.no_progress)
    text = render(made)
    tell(made)
    if args.json:
        print_json(msgspec.to_builtins(made))
        return 0
    if args.why:
        sys.stdout.write(explain(made) + "\n")
        return 0
    if args.run or args.dry_run:
        return begin(args, made, text)
    if args.out:
        private(args.out, text)
        sys.stderr.write(f"written to {args.out}\n")
    else:
        sys.stdout.write(text)
    return 0


def usable(args: argparse.Namespace) -> None:
    """Raises UsageError for options that do not go together."""
    if args.install and not args.native:
        raise UsageError(what="--install without --native", command="handoff")
    if args.native and (args.also or args.why or args.worktree):
        raise UsageError(what="--native with --also, --why or --worktree", command="handoff")
    for word in args.extra:
        if word.startswith(("--resume", "--continue")):
            raise UsageError(what=f"{word} (a handoff starts a new session and takes none over)", command="handoff")


def show_progress(read: int, of: int) -> None:
    """How far the reading of a long session is, on one line of the terminal; taken away at the end."""
    if of < LONG:
        return
    last = read + handing.OFTEN > of
    sys.stderr.write("\r\x1b[K" if last else f"\rasrd: {read:,} of {of:,} records read")
    sys.stderr.flush()


LONG = 20_000
"""Records from which reading takes long enough to be shown."""


def tell(made: Brief) -> None:
    """Says what was removed and how large it is, on stderr."""
    removed = ", ".join(f"{n} {kind}" for kind, n in sorted(made.removed.items()))
    words = f"about {made.tokens:,} of {made.budget:,} tokens"
    sys.stderr.write(f"asrd: {words}; " + (f"removed: {removed}" if removed else "no secrets found") + ".\n")


def begin(args: argparse.Namespace, made: Brief, text: str) -> int:
    """Starts the target, or prints how it would be."""
    folder = folder_of(args, made)
    tree = worktree_of(folder, args.worktree) if args.worktree else None
    headless = args.headless or not sys.stdin.isatty() or (args.run and not sys.stdout.isatty())
    briefs = folders().store / "briefs"
    options = Options(
        headless=headless,
        model=args.model,
        permissions=args.permissions,
        cwd=tree[-2] if tree else folder,
        brief_path=str(args.out.absolute() if args.out else briefs / f"{made.token.replace('/', '-')}.md"),
        extra=tuple(args.extra),
        moment=f"{clock.now():%Y%m%d%H%M%S%f}",
    )
    planned = start(args.to, text, options)
    if args.dry_run:
        sys.stdout.write((f"{shlex.join(tree)}\n" if tree else "") + describe(planned))
        return 0
    if not planned.argv:
        sys.stdout.write(planned.stdin or text)
        return 0
    if shutil.which(planned.argv[0]) is None:
        raise UsageError(
            what=f"starting {planned.argv[0]} (it is not installed here; --dry-run shows the command)",
            command="handoff",
        )
    if tree:
        make_worktree(tree)
        sys.stderr.write(f"asrd: what is not committed stays in {folder}.\n")
    for file in planned.files:
        private(Path(file.path), file.text)
    if headless and not args.headless:
        sys.stderr.write("asrd: there is no terminal here, so it answers once and ends (--headless).\n")
    if planned.note:
        sys.stderr.write(f"asrd: {planned.note}\n")
    become(planned)
    return 0


def folder_of(args: argparse.Namespace, made: Brief) -> str:
    """Where the target works. Raises UsageError for a folder that was asked for and is not there."""
    if args.cwd:
        if not os.path.isdir(args.cwd):
            raise UsageError(what=f"working in {args.cwd} (it is no folder here)", command="handoff")
        return os.path.abspath(args.cwd)
    folder = made.sources[0].folder if made.sources else None
    if folder and os.path.isdir(folder):
        return folder
    if folder:
        sys.stderr.write(f"asrd: {folder} is not here; it works in {here()}.\n")
    return here()


def worktree_of(folder: str, branch: str) -> list[str]:
    """The command that makes a worktree on a new branch: beside the folder, named after both."""
    place = f"{folder.rstrip('/')}-{branch.replace('/', '-')}"
    return ["git", "-C", folder, "worktree", "add", "-b", branch, place, "HEAD"]


def make_worktree(command: list[str]) -> None:
    """Makes it. Raises UsageError where git refuses."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise UsageError(what=f"a worktree ({error.strerror}: git)", command="handoff") from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise UsageError(what=f"a worktree ({said[-1] if said else 'git refused'})", command="handoff")


def continue_natively(args: argparse.Namespace, made: NativeFile) -> int:
    """Writes the session file, installs it, opens it: as far as the options say."""
    home = native_home(made)
    place = home / made.path
    copy = args.out or folders().store / "briefs" / made.target / Path(made.path).name
    target = place if args.install and not made.load else copy
    command = shlex.join(made.resume)
    if args.dry_run:
        sys.stdout.write(f"# writes {target} ({len(made.text.encode()):,} bytes, 0600)\n")
        if made.load and args.install:
            sys.stdout.write(f"cd {shlex.quote(made.folder)}\n{shlex.join(loading(made, target))}\n")
        sys.stdout.write(f"cd {shlex.quote(made.folder)}\n{command}\n")
        return 0
    if target.exists() and target == place:
        raise UsageError(what=f"writing over {target}, which is there", command="handoff")
    private(target, made.text)
    if made.load and args.install:
        load(made, target)
    left = f", {made.left_out} left out for the budget" if made.left_out else ""
    removed = f"; {sum(made.removed.values())} secrets removed" if made.removed else ""
    sys.stderr.write(f"asrd: {made.turns} turns of history{left}{removed}.\n")
    if args.json:
        told = {
            f: getattr(made, f) for f in ("target", "session_id", "folder", "turns", "left_out", "token", "removed")
        }
        names = {"session_id": "sessionId", "left_out": "leftOut"}
        answer = {"schema": "asrd.native/1", **{names.get(k, k): v for k, v in told.items()}}
        print_json({**answer, "file": str(target), "installed": args.install, "resume": list(made.resume)})
        return 0
    if not args.install:
        sys.stdout.write(f"{target}\n")
        sys.stderr.write(f"asrd: a copy; with --install it goes to {place if not made.load else made.load[0]}.\n")
        return 0
    if args.run:
        become(Start((*made.resume, *args.extra), cwd=made.folder))
    sys.stdout.write(f"cd {shlex.quote(made.folder)} && {command}\n")
    return 0


def native_home(made: NativeFile) -> Path:
    """The folder of the target's own files."""
    env = environment()
    named = next((env[name] for name in made.home_env if env.get(name)), None)
    return Path(named) if named else folders().home / made.home


def loading(made: NativeFile, file: Path) -> list[str]:
    """The command by which the target takes a file in."""
    return [str(file.absolute()) if word == "{file}" else word for word in made.load]


def load(made: NativeFile, file: Path) -> None:
    """Has the target take the file in. Raises UsageError where it is not here, or refuses."""
    command = loading(made, file)
    if shutil.which(command[0]) is None:
        raise UsageError(what=f"starting {command[0]} (it is not installed here)", command="handoff")
    where = made.folder if os.path.isdir(made.folder) else here()
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UsageError(what=f"`{shlex.join(command)}` ({said[-1] if said else done.returncode})", command="handoff")


def describe(planned: Start) -> str:
    """Exactly what would be run."""
    lines = [f"cd {shlex.quote(planned.cwd)}"] if planned.cwd else []
    lines += [f"# writes {f.path} ({len(f.text.encode()):,} bytes, 0600)" for f in planned.files]
    lines += [f"export {k}={shlex.quote(v)}" for k, v in planned.env.items()]
    if planned.argv:
        lines.append(shlex.join(planned.argv) + (" < brief" if planned.stdin else ""))
    if planned.stdin:
        lines += ["# standard input:", planned.stdin]
    return "\n".join(lines) + "\n"


def become(planned: Start) -> None:
    """Replaces this process by the target's."""
    if planned.cwd:
        os.chdir(planned.cwd)
    env = {**os.environ, **planned.env}
    if planned.stdin is not None:
        reading, writing = os.pipe()
        if os.fork() == 0:  # a child feeds standard input, however long the brief is
            os.close(reading)
            with contextlib.suppress(OSError), os.fdopen(writing, "wb") as feed:
                feed.write(planned.stdin.encode("utf-8", "surrogatepass"))
            os._exit(0)
        os.close(writing)
        os.dup2(reading, 0)
        os.close(reading)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(planned.argv[0], list(planned.argv), env)
    except OSError as error:
        raise UsageError(what=f"starting {planned.argv[0]} ({error.strerror})", command="handoff") from error


def private(path: Path, text: str) -> None:
    """Writes a file that only its owner reads. Raises SettingsError where that cannot be."""
    if not path.parent.is_dir():
        make_folder(path.parent)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.fchmod(handle, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
    except OSError as error:
        raise SettingsError(
            path=path, key="--out", expected="a file that can be written", found=error.strerror
        ) from error
