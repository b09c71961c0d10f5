"""The folders asrd uses, from the environment and platformdirs; the only reader of either.

With ASRD_HOME everything lies below that folder. Without it: streams, index and cursors in the user's data folder, the
socket in the user's runtime folder, settings in the user's config folder.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Generator, Mapping
from pathlib import Path

import platformdirs
from msgspec import Struct


class Folders(Struct, frozen=True):
    """Where things are. All folders are 0700, all files 0600."""

    home: Path
    """The user's home folder, below which harnesses keep their files."""
    store: Path
    streams: Path
    index: Path
    cursors: Path
    spool: Path
    lock: Path
    socket: Path
    config: Path


def folders(env: Mapping[str, str] | None = None) -> Folders:
    """The folders as this environment (default: the process's) says."""
    env = os.environ if env is None else env
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    if asrd_home := env.get("ASRD_HOME"):
        store = Path(asrd_home).expanduser().absolute()
        socket, config = store / "asrd.sock", store / "config.toml"
    else:
        store = Path(env["XDG_DATA_HOME"]) / "asrd" if env.get("XDG_DATA_HOME") else _data(home)
        socket = _runtime(env, store) / "asrd.sock"
        config = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "asrd" / "config.toml"
    return Folders(
        home=home,
        store=store,
        streams=store / "streams",
        index=store / "index.sqlite",
        cursors=store / "cursors.sqlite",
        spool=store / "spool",
        lock=store / "lock",
        socket=socket,
        config=config,
    )


def environment() -> Mapping[str, str]:
    """The process's environment; ASRD_HOME says where the store is, so that the spool is found like any source."""
    return {**os.environ, "ASRD_HOME": str(folders().store)}


def _data(home: Path) -> Path:
    given = Path(platformdirs.user_data_dir("asrd", appauthor=False))
    real_home = Path(os.path.expanduser("~"))
    return home / given.relative_to(real_home) if given.is_relative_to(real_home) and home != real_home else given


def _runtime(env: Mapping[str, str], store: Path) -> Path:
    if runtime := env.get("XDG_RUNTIME_DIR"):
        return Path(runtime) / "asrd"
    if sys.platform == "darwin":
        return Path(platformdirs.user_runtime_dir("asrd", appauthor=False))
    # Without a login session there may be no runtime folder; a shared one is no place for a private socket.
    login = Path(f"/run/user/{os.getuid()}")
    return login / "asrd" if os.access(login, os.W_OK) else store


@contextlib.contextmanager
def short_name(path: Path) -> Generator[str]:
    """A name for the path that fits a socket address (107 bytes; 103 on macOS), however long the path is."""
    if len(os.fsencode(path)) <= 100:
        yield str(path)
        return
    handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            yield f"/proc/self/fd/{handle}/{path.name}"
        else:
            yield str(path)
    finally:
        os.close(handle)
