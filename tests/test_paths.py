"""Where asrd keeps its things: one folder by ASRD_HOME, else the user's own folders, never a shared one."""

import os
from pathlib import Path

import pytest

from asrd.paths import environment, folders


def test_everything_lies_below_asrd_home(tmp_path: Path) -> None:
    where = folders({"HOME": "/home/x", "ASRD_HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/run/x", "XDG_DATA_HOME": "/d"})

    mine = [where.store, where.streams, where.index, where.cursors, where.spool, where.lock, where.socket, where.config]
    assert all(path == tmp_path or tmp_path in path.parents for path in mine)
    assert where.home == Path("/home/x")
    assert len(set(mine)) == len(mine)


def test_asrd_home_may_be_relative_or_start_with_a_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert folders({"HOME": str(tmp_path), "ASRD_HOME": "here"}).store == tmp_path / "here"
    assert folders({"HOME": str(tmp_path), "ASRD_HOME": "~/there"}).store == tmp_path / "there"


def test_without_it_the_users_own_folders_are_used() -> None:
    where = folders(
        {"HOME": "/home/x", "XDG_DATA_HOME": "/data", "XDG_RUNTIME_DIR": "/run/x", "XDG_CONFIG_HOME": "/conf"}
    )

    assert where.store == Path("/data/asrd")
    assert where.socket == Path("/run/x/asrd/asrd.sock")
    assert where.config == Path("/conf/asrd/config.toml")


def test_the_store_follows_home() -> None:
    where = folders({"HOME": "/home/someone-else"})

    assert where.store.is_relative_to("/home/someone-else")


def test_without_a_runtime_folder_the_socket_is_in_a_private_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # type: ignore[reportUnknownLambdaType]

    where = folders({"HOME": "/home/x", "XDG_DATA_HOME": "/data"})

    assert where.socket.parent == where.store


def test_the_environment_is_the_processs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASRD_HOME", str(tmp_path))

    assert folders().store == tmp_path
    assert environment()["ASRD_HOME"] == str(tmp_path)
