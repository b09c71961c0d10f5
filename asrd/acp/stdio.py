"""`asrd acp -- COMMAND…`: stands between a client and an agent on stdin and stdout.

Invariants
    - Bytes are forwarded as they came, both ways, before anything looks at them: the copy is only handed over in memory,
      and a thread of its own does the rest (`spool`).
    - stderr is the agent's own: it is inherited, and nothing of ours is written to it while the agent runs.
    - The agent ends as it would without us, and so do we: signals go on to it, its exit code or signal becomes ours.
    - When one side closes its end, the other side's end is closed, and only that one.
    - When we are killed the agent is too (Linux): who kills us means it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from asrd import clock
from asrd.acp.spool import Direction, Spool

CHUNK = 1 << 16
"""Bytes read at once: what a pipe holds."""
SILENT = 0.5
"""Seconds without a byte after which an ended agent's pipe, held open by someone else, is given up."""

PASSED_ON = tuple(
    signal.Signals(getattr(signal, name))
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
)

CANNOT_RUN, NOT_FOUND = 126, 127
"""What a shell ends with when a command cannot be run, or is not there."""


def run(command: Sequence[str], spool: Spool) -> int:
    """Runs the agent with its stdin and stdout through us. Gives its exit code; ends by its signal when it did.

    `spool` is started here, after the agent (a process is not forked while threads run).
    """
    sys.setswitchinterval(0.0002)  # a thread that has bytes to forward waits at most this long for another
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    try:
        agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=_in_the_agent())
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        sys.stderr.write(f"asrd acp: {command[0]} cannot be run: {error.strerror}\n")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else CANNOT_RUN
    assert agent.stdin is not None and agent.stdout is not None
    spool.start()
    to_agent, from_agent = agent.stdin.fileno(), agent.stdout.fileno()
    forward = _Pump(0, to_agent, "c2a", spool)
    back = _Pump(from_agent, 1, "a2c", spool)
    forward.start()
    back.start()
    threading.Thread(target=_pass_signals, args=(agent,), name="signals", daemon=True).start()

    code = agent.wait()
    _drain(back)
    if code >= 0:
        spool.close(by="agent", code=code)
        return code
    spool.close(by="agent", signal=signal.Signals(-code).name)
    return _end_by(-code)


class _Pump:
    """Forwards one direction until one of its ends closes, then closes the other."""

    def __init__(self, source: int, sink: int, direction: Direction, spool: Spool) -> None:
        self._source, self._sink, self._spool = source, sink, spool
        self._direction: Direction = direction
        self._thread = threading.Thread(target=self._run, name=direction, daemon=True)
        self.moved = clock.ticks()

    def start(self) -> None:
        self._thread.start()

    def join(self, seconds: float) -> bool:
        """Whether it is done."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        put, source, sink = self._spool.put, self._source, self._sink
        direction = self._direction
        while True:
            try:
                data = _read(source)
            except OSError:
                data = b""
            if not data:
                break
            put(direction, data)  # only in memory; before the write, for an answer must not be kept before its question
            try:
                _write(sink, data)
            except OSError:  # nobody reads any more
                break
            self.moved = clock.ticks()
        self._spool.note("eof", side="client" if direction == "c2a" else "agent")
        for end in (sink, source):
            _close(end)


def _read(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            select.select([fd], [], [])


def _write(fd: int, data: bytes) -> None:
    try:
        written = os.write(fd, data)
        if written == len(data):
            return
    except BlockingIOError:
        written = 0
    view = memoryview(data)[written:]
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])


def _close(fd: int) -> None:
    with contextlib.suppress(OSError):
        if fd <= 2:  # keeps the number taken, so that no file of ours is ever opened as stdin or stdout
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            os.dup2(null, fd, inheritable=False)
            os.close(null)
        else:
            os.close(fd)


def _drain(back: _Pump) -> None:
    """The agent is gone: forwards what its pipe still holds, and what its own children still say for a moment."""
    while not back.join(0.02):
        if clock.ticks() - back.moved > SILENT:
            return


def _pass_signals(agent: subprocess.Popen[bytes]) -> None:
    while True:
        if sys.platform == "linux":
            found = signal.sigwaitinfo(PASSED_ON)
            number, from_terminal = found.si_signo, found.si_code > 0  # SI_KERNEL: the whole group got it already
        else:
            number, from_terminal = signal.sigwait(PASSED_ON), False
        if not from_terminal:
            with contextlib.suppress(OSError):
                agent.send_signal(number)


PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""


def _in_the_agent() -> Callable[[], None]:
    libc: ctypes.CDLL | None = ctypes.CDLL(None, use_errno=True) if platform.system() == "Linux" else None
    us = os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != us:  # we were killed before it was set
                os._exit(CANNOT_RUN)

    return prepare


def _end_by(number: int) -> int:
    """Ends this process by the signal that ended the agent, without a core file of its own."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    return 128 + number
