"""Tells when to look: watchfiles where the system notifies, polling where it does not and as the safety net.

A hint is only a path. It may be late, doubled or missing; `Tail` looks at the file itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import anyio
from watchfiles import Change, awatch

STEP_MS = 10
"""How long watchfiles waits for more of a burst: most of the latency of a hint."""
LONGEST_BURST_MS = 40


class Watcher:
    """Watches folders; new ones are taken in when `folders` changes. `state` says in words how it watches."""

    def __init__(self, hint: Callable[[str], None]) -> None:
        self._hint = hint
        self._folders: frozenset[str] = frozenset()
        self._changed = anyio.Event()
        self.state = "not started"

    def want(self, folders: Iterable[str]) -> bool:
        """The folders to watch, those that exist; gives whether that is news."""
        wanted = frozenset(f for f in folders if os.path.isdir(f))
        if wanted == self._folders:
            return False
        self._folders = wanted
        self._changed.set()
        return True

    async def run(self) -> None:
        """Watches until cancelled."""
        while True:
            self._changed = anyio.Event()
            folders = self._folders
            if not folders:
                self.state = "nothing to watch yet"
                await self._changed.wait()
                continue
            stop = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_changed, stop)
                try:
                    self.state = f"watching {len(folders)} folders"
                    async for changes in awatch(
                        *sorted(folders),
                        watch_filter=_all,
                        step=STEP_MS,
                        debounce=LONGEST_BURST_MS,
                        stop_event=stop,
                        recursive=True,
                        ignore_permission_denied=True,
                        rust_timeout=60_000,
                        yield_on_timeout=False,
                    ):
                        for _, path in changes:
                            self._hint(path)
                except (OSError, RuntimeError) as error:
                    # Too many watches, or a file system without notifications: polling goes on by itself.
                    self.state = f"polling, as the system does not notify ({error})"
                    await self._changed.wait()
                tasks.cancel_scope.cancel()

    async def _until_changed(self, stop: anyio.Event) -> None:
        await self._changed.wait()
        stop.set()


def _all(change: Change, path: str) -> bool:
    return True
