"""What a target is: how a program takes a long first prompt, as a value. Nothing here starts anything.

A brief reaches a target by the first of these ways that has room for it: as an argument, on standard input, in a file
that the prompt tells it to read. The prompt always holds the brief's token line, so the new session can be linked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from asrd.handoff_token import TOKEN_LINE, find_token

ARGUMENT_LIMIT = 96 * 1024
"""Bytes an argument may have here. Linux allows 131,072 for one argument (MAX_ARG_STRLEN), macOS 262,144 for all of them
with the environment (an ARG_MAX of 1,048,576 on newer ones)."""

Permissions = Literal["ask", "edits", "all"]
"""What the target may do unasked: nothing beyond its own default, edits of files, or everything."""


class PlannedFile(Struct, frozen=True):
    """A file to write before the start, readable by its owner only."""

    path: str
    text: str
    mode: int = 0o600


class Start(Struct, frozen=True):
    """How to start a target.

    `argv` is empty for a target that is no program: `stdin` is then what goes to standard output. `stdin` None = the
    terminal's. `env` is added to the environment. `cwd` None = where the caller is. `note` is a sentence for the person
    who starts it.
    """

    argv: tuple[str, ...]
    stdin: str | None = None
    files: tuple[PlannedFile, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    note: str = ""


class Options(Struct, frozen=True):
    """What a person may say about the start.

    `headless`: answer once and end, without a terminal. `brief_path`: where a brief that fits no argument is written
    (absolute, outside the work's folder). `extra`: arguments passed on as they are. `moment`: a word that no start before
    had, for programs that are told the id of the new session.
    """

    headless: bool = False
    model: str | None = None
    permissions: Permissions = "ask"
    cwd: str | None = None
    brief_path: str | None = None
    extra: tuple[str, ...] = ()
    moment: str = ""


class Target(Struct, frozen=True):
    """A program that can take work over.

    `interactive` and `headless` make the arguments of a start with a prompt in them; `piped` those of a headless start
    that reads the prompt from standard input, where the program can. `reads_outside`: the arguments that let it read a
    folder outside its working folder. `checked`: the version whose help, or whose real start, was looked at; "" = only
    documents were.
    """

    name: str
    program: str
    interactive: Callable[[str], Sequence[str]] | None
    headless: Callable[[str], Sequence[str]]
    piped: Sequence[str] | None = None
    model: Callable[[str], Sequence[str]] | None = None
    permissions: dict[str, Sequence[str]] = {}
    reads_outside: Callable[[str], Sequence[str]] | None = None
    env: dict[str, str] = {}
    aliases: tuple[str, ...] = ()
    checked: str = ""
    note: str = ""
    pipe_first: bool = False
    """Whether a headless start pipes every prompt: the program changes one that is an argument."""


def plan(target: Target, text: str, options: Options) -> Start:
    """How to start the target with a text as its first prompt.

    Raises ValueError when the text fits no argument, cannot be piped, and `brief_path` is not given.
    """
    if not target.program:
        return Start((), text, cwd=options.cwd)
    options_before = tuple(target.permissions.get(options.permissions, ()))
    if options.model and target.model:
        options_before += tuple(target.model(options.model))
    options_before += options.extra
    headless = options.headless or target.interactive is None
    fits = len(text.encode("utf-8", "surrogatepass")) <= ARGUMENT_LIMIT
    files: tuple[PlannedFile, ...] = ()
    stdin: str | None = None
    piped = headless and target.piped is not None and (target.pipe_first or not fits)
    if piped:
        stdin, prompt = text, ""
    elif fits:
        prompt = text
    else:
        if options.brief_path is None:
            raise ValueError("a brief of this size is read from a file: say where it goes (brief_path)")
        files = (PlannedFile(options.brief_path, text),)
        prompt = read_this(text, options.brief_path)
        if target.reads_outside:
            options_before += tuple(target.reads_outside(options.brief_path.rpartition("/")[0] or "/"))
    if stdin is not None:
        shape: Sequence[str] = target.piped or ()
    elif headless or target.interactive is None:
        shape = target.headless(prompt)
    else:
        shape = target.interactive(prompt)
    token = find_token(text)
    new = "-".join(w for w in ("handoff", str(token).rpartition("-")[2] if token else "", options.moment) if w)
    arguments = tuple(new if word == NEW_SESSION else word for word in arrange(shape, options_before))
    return Start((target.program, *arguments), stdin, files, dict(target.env), options.cwd, target.note)


NEW_SESSION = "{session}"
"""Stands for the id of a new session: of the brief's token and the moment, so that no session in use is gone on with."""
OPTIONS_HERE = "{options}"
"""Where in a target's arguments the options go; without it they stand first."""


def arrange(shape: Sequence[str], options: Sequence[str]) -> tuple[str, ...]:
    """The arguments with the options in their place."""
    if OPTIONS_HERE not in shape:
        return (*options, *shape)
    at = list(shape).index(OPTIONS_HERE)
    return (*shape[:at], *options, *shape[at + 1 :])


def read_this(text: str, path: str) -> str:
    """The prompt that sends a target to a file with the brief, with the brief's token line."""
    token = find_token(text)
    line = f"{TOKEN_LINE}{token}\n\n" if token else ""
    return (
        f"{line}You take over work that another agent session began. Read the whole handoff brief first; it is in the "
        f"file {path} and may be longer than one read. Then go on with what it says is open."
    )
