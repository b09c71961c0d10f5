"""The watcher hints at what changed; where the system does not notify it says so and stays quiet."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import asrd.watch
from asrd.watch import Watcher


async def until(true: Callable[[], bool], seconds: float = 20) -> bool:
    for _ in range(int(seconds * 100)):
        if true():
            break
        await anyio.sleep(0.01)
    return true()


async def hints_for(hints: list[str], wanted: str) -> bool:
    return await until(lambda: any(h.endswith(wanted) for h in hints))


async def test_a_change_below_a_watched_folder_is_a_hint(tmp_path: Path) -> None:
    hints: list[str] = []
    watcher = Watcher(hints.append)
    assert watcher.want([str(tmp_path), str(tmp_path / "none")])
    assert not watcher.want([str(tmp_path)])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run)
        assert await until(lambda: watcher.watching)
        (tmp_path / "sub").mkdir()
        await anyio.sleep(0.2)
        (tmp_path / "sub" / "a.jsonl").write_text("x")
        assert await hints_for(hints, "a.jsonl")
        tasks.cancel_scope.cancel()

    assert watcher.state == "watching 1 folders"


async def test_folders_that_are_wanted_later_are_watched_too(tmp_path: Path) -> None:
    hints: list[str] = []
    watcher = Watcher(hints.append)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run)
        await anyio.sleep(0.05)
        assert watcher.state == "nothing to watch yet"
        watcher.want([str(tmp_path)])
        assert await until(lambda: watcher.watching)
        (tmp_path / "b.jsonl").write_text("x")
        assert await hints_for(hints, "b.jsonl")
        tasks.cancel_scope.cancel()


class Broken:
    """A notifier that cannot be made, or that fails while it is asked."""

    at_start = True

    def __init__(self, *_: Any) -> None:
        if self.at_start:
            raise OSError(28, "No space left on device")

    def __enter__(self) -> "Broken":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def watch(self, *_: Any) -> Any:
        raise RuntimeError("the kernel said no")


@pytest.mark.parametrize("at_start", [True, False])
async def test_a_system_that_does_not_notify_is_said_and_nothing_ends(
    at_start: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broken, "at_start", at_start)
    monkeypatch.setattr(asrd.watch, "RustNotify", Broken)
    watcher = Watcher(lambda path: None)
    watcher.want([str(tmp_path)])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run)
        assert await until(lambda: "polling" in watcher.state)
        tasks.cancel_scope.cancel()

    assert "polling" in watcher.state and not watcher.watching
    assert ("No space left" if at_start else "the kernel said no") in watcher.state


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads")
async def test_a_watcher_that_is_cancelled_leaves_no_thread(tmp_path: Path) -> None:
    import threading

    watcher = Watcher(lambda path: None)
    watcher.want([str(tmp_path)])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run)
        assert await until(lambda: watcher.watching)
        await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()
    await anyio.sleep(0.3)

    assert not [t for t in threading.enumerate() if "watch" in t.name.lower()]
