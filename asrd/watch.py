"""Tells when to look: watchfiles where the system notifies, polling where it does not and as the safety net.

A hint is only a path. It may be late, doubled or missing; `Tail` looks at the file itself.

watchfiles' notifier gathers changes in steps: short ones cost wake-ups, long ones latency. So the steps are short
while something changes and long when nothing did for a while; its `awatch` cannot do that, its `RustNotify` can.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator

import anyio
import anyio.to_thread
from watchfiles._rust_notify import RustNotify  # the notifier below awatch; awatch fixes the step for good

from asrd import clock

BUSY_STEP_MS = 4
QUIET_STEP_MS = 60
LONGEST_BURST_MS = 30
BUSY = 20.0
"""Seconds after a change in which more are expected."""
WAIT_MS = 4000
TRY_AGAIN = 60.0
"""Seconds after which a system that did not notify is asked again."""


class Watcher:
    """Watches folders; new ones are taken in when `want` is told. `state` says in words how it watches."""

    def __init__(self, hint: Callable[[str], None]) -> None:
        self._hint = hint
        self._folders: frozenset[tuple[str, int, int]] = frozenset()
        """Each with its device and inode: one that was renamed and made anew is another."""
        self._changed = anyio.Event()
        self._stop = threading.Event()
        self.state = "not started"
        self.watching = False

    def want(self, folders: Iterable[str]) -> bool:
        """The folders to watch, those that exist; gives whether that is news."""
        wanted = frozenset(_standing(folders))
        if wanted == self._folders:
            return False
        self._folders = wanted
        self._changed.set()
        self._stop.set()
        return True

    async def run(self) -> None:
        """Watches until cancelled."""
        try:
            while True:
                self._changed, self._stop = anyio.Event(), threading.Event()
                folders = sorted(path for path, _, _ in self._folders)
                if not folders:
                    self.state = "nothing to watch yet"
                    await self._changed.wait()
                    continue
                try:
                    notifier = RustNotify(folders, False, False, 300, True, True)
                    self.watching = True
                    self.state = f"watching {len(folders)} folders"
                    with notifier:
                        await self._listen(notifier)
                except (OSError, RuntimeError) as error:
                    # Too many watches, or a file system without notifications: polling goes on by itself.
                    self.watching = False
                    self.state = f"polling, as the system does not notify ({error})"
                    with anyio.move_on_after(TRY_AGAIN):
                        await self._changed.wait()
        finally:
            self._stop.set()

    async def _listen(self, notifier: RustNotify) -> None:
        stop = self._stop
        busy_until = clock.ticks() + BUSY
        while not stop.is_set():
            step = BUSY_STEP_MS if clock.ticks() < busy_until else QUIET_STEP_MS
            found = await anyio.to_thread.run_sync(
                notifier.watch, LONGEST_BURST_MS, step, WAIT_MS, stop, abandon_on_cancel=True
            )
            if isinstance(found, set):
                busy_until = clock.ticks() + BUSY
                for _, path in found:
                    self._hint(path)


def _standing(folders: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    for path in folders:
        try:
            info = os.stat(path)
        except (OSError, ValueError):
            continue
        if stat.S_ISDIR(info.st_mode):
            yield path, info.st_dev, info.st_ino
