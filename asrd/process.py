"""Which process writes a source, and what it inherited: Linux only, while a session runs. Reads `/proc`, changes nothing.

    - The process of a source is the one that has it open for writing, else the one whose tools carry the session's own id in
      their environment.
    - Its environment at its start names the session of another harness, where that one's tool started it (V2, V5).
    - Where several are named the nearest counts: the one whose variable came in lowest on the way up (V4).

Of an environment only the variables of `SAYS` are looked at, and only what names a session leaves this module: nothing
that could be a credential is kept, printed or compared. macOS shows a process's environment to root alone: there `Table`
is empty, and `available()` says so.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from asrd import clock


class Says(Struct, frozen=True):
    """A variable that names the session a process was started in."""

    variable: str
    agent: str
    call: str | None = None
    """The variable that names the tool call, where there is one."""


SAYS = (
    Says("CLAUDE_CODE_SESSION_ID", "claude-code"),
    Says("CODEX_THREAD_ID", "codex", "CODEX_TOOL_CALL_ID"),
    Says("PI_SESSION_ID", "pi"),
    Says("GEMINI_SESSION_ID", "gemini"),
    Says("QWEN_SESSION_ID", "qwen"),
    Says("OPENCODE_SESSION_ID", "opencode"),
)
"""`counting/rules` 8.1 for the first three (seen in a capture for Claude Code and Codex); an id that is no session of that
harness resolves to nothing."""
ALLOWED = frozenset([s.variable for s in SAYS] + [s.call for s in SAYS if s.call])
"""The names of variables that are looked at."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


class Process(Struct, frozen=True):
    """A process: its parent, its start (microseconds since 1970), the allowed variables at its start, the files it writes."""

    pid: int
    parent: int
    started: int
    env: Mapping[str, str] = {}
    writes: frozenset[str] = frozenset()


class Inherited(Struct, frozen=True):
    """What the process of a source says of the session that started it.

    `chained`: the harness of that session was found among its ancestors.
    """

    agent: str
    session_id: str
    variable: str
    call_id: str | None
    pid: int
    started: int
    ancestors: tuple[int, ...]
    chained: bool


def writer_of(table: Mapping[int, Process], path: str, agent: str, session_id: str) -> Process | None:
    """The process that writes a source: with the file open, else above the tools that carry its session's id."""
    open_in = [p for p in table.values() if path in p.writes]
    if open_in:
        pids = {p.pid for p in open_in}
        tops = [p for p in open_in if p.parent not in pids]
        return tops[0] if len(tops) == 1 else None
    variables = [s.variable for s in SAYS if s.agent == agent]
    found: set[int] = set()
    for one in table.values():
        if any(one.env.get(v) == session_id for v in variables):
            above = table.get(one.parent)
            if above is not None and not any(above.env.get(v) == session_id for v in variables):
                found.add(above.pid)
    return table[found.pop()] if len(found) == 1 else None


def inherited(table: Mapping[int, Process], inner: Process, agent: str, session_id: str) -> list[Inherited]:
    """The session that the environment of a process names, never its own: of several the nearest (V4).

    More than one only where none is nearer than the other.
    """
    chain: list[Process] = [inner]
    while (above := table.get(chain[-1].parent)) is not None and above.pid not in {p.pid for p in chain}:
        chain.append(above)
    found: list[tuple[int, Inherited]] = []
    for says in SAYS:
        ident = inner.env.get(says.variable, "")
        if not _ID.fullmatch(ident) or (says.agent, ident) == (agent, session_id):
            continue
        height = 0
        while height < len(chain) and chain[height].env.get(says.variable) == ident:
            height += 1
        # The first ancestor without the variable is the harness that set it. At the top of what can be seen (a daemon, a
        # terminal multiplexer, another user's process) nobody is.
        chained = height < len(chain) and chain[height].pid > 1
        call = inner.env.get(says.call) if says.call else None
        told = Inherited(
            agent=says.agent,
            session_id=ident,
            variable=says.variable,
            call_id=call if call and _ID.fullmatch(call) else None,
            pid=inner.pid,
            started=inner.started,
            ancestors=tuple(p.pid for p in chain[1:]),
            chained=chained,
        )
        found.append((height if chained else len(chain) + 1, told))
    return [told for height, told in found if height == min(h for h, _ in found)]


# ---------------------------------------------------------------- the machine


def available() -> bool:
    """Whether processes can be looked at here."""
    return sys.platform == "linux" and os.path.isdir("/proc/self/fd")


def table(paths: Iterable[str] = (), proc: Path = Path("/proc")) -> dict[int, Process]:
    """The processes of this user, with which of the paths each has open for writing. Empty where that cannot be seen."""
    if proc == Path("/proc") and not available():
        return {}
    wanted = set(paths)
    booted = clock.booted()
    found: dict[int, Process] = {}
    try:
        names = os.listdir(proc)
    except OSError:
        return {}
    for name in names:
        if name.isdigit() and (one := _process(proc / name, int(name), booted, wanted)) is not None:
            found[one.pid] = one
    return found


def _process(folder: Path, pid: int, booted: int, wanted: set[str]) -> Process | None:
    try:
        stat = (folder / "stat").read_bytes()
        fields = stat[stat.rindex(b")") + 2 :].split()
        parent, ticks = int(fields[1]), int(fields[19])
    except (OSError, ValueError, IndexError):
        return None
    hertz = os.sysconf("SC_CLK_TCK") or 100
    # Starts are told in whole ticks (10 ms), rounded down: the end of the tick is a moment at which it surely ran.
    started = booted + (ticks + 1) * 1_000_000 // hertz
    return Process(pid, parent, started, _environment(folder), _writes(folder, wanted))


def _environment(folder: Path) -> dict[str, str]:
    """The allowed variables as they were at the process's start. Everything else is passed over unread."""
    try:
        data = (folder / "environ").read_bytes()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for entry in data.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if (text := name.decode("utf-8", "replace")) in ALLOWED:
            found[text] = value.decode("utf-8", "replace")
    return found


def _writes(folder: Path, wanted: set[str]) -> frozenset[str]:
    if not wanted:
        return frozenset()
    found: set[str] = set()
    try:
        numbers = os.listdir(folder / "fd")
    except OSError:
        return frozenset()
    for number in numbers:
        try:
            path = os.readlink(folder / "fd" / number)
            if path in wanted and _writable((folder / "fdinfo" / number).read_text()):
                found.add(path)
        except (OSError, ValueError):
            continue
    return frozenset(found)


def _writable(info: str) -> bool:
    """Whether an open file is open for writing: the access mode in the octal flags of `fdinfo`."""
    for line in info.splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False
