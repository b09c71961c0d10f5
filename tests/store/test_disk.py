"""The disk: what is appended is there whole or not at all, and trouble has a name."""

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from asrd.errors import StoreFull, StoreUnusable
from asrd.store.disk import MAX_OPEN, RealDisk, make_folder, replace


@pytest.fixture
def disk() -> Any:
    disk = RealDisk()
    yield disk
    disk.close()


def test_appends_are_read_back_and_truncated(disk: RealDisk, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "x"

    assert disk.size(path) is None
    disk.append(path, b"one\n")
    disk.append(path, b"two\n")
    disk.sync(path)
    assert (disk.size(path), disk.read(path, 4, 100)) == (8, b"two\n")
    disk.truncate(path, 5)

    assert disk.read(path, 0, 100) == b"one\nt"


def test_more_files_than_may_be_open_at_once(disk: RealDisk, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in (*range(MAX_OPEN + 20), 0, 1, 2):
        disk.append(tmp_path / str(number), b"x")
    for number in range(MAX_OPEN + 20):
        disk.sync(tmp_path / str(number))

    assert [len((tmp_path / str(n)).read_bytes()) for n in (0, 2, 3, MAX_OPEN)] == [2, 2, 1, 1]
    assert len(os.listdir("/proc/self/fd")) - before <= MAX_OPEN + 1


@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, StoreFull), (errno.EDQUOT, StoreFull), (errno.EIO, StoreUnusable)]
)
def test_a_write_that_fails_half_way_leaves_nothing(
    number: int, error: type[Exception], disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    disk.append(path, b"whole\n")
    write, calls = os.write, [0]

    def half(handle: int, data: memoryview) -> int:
        calls[0] += 1
        if calls[0] > 1:
            raise OSError(number, "no")
        return write(handle, data[:3])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(error):
        disk.append(path, b"another\n")
    monkeypatch.undo()

    assert path.read_bytes() == b"whole\n"
    disk.append(path, b"again\n")
    assert path.read_bytes() == b"whole\nagain\n"


def test_a_write_in_small_parts_is_whole(disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def two(handle: int, data: memoryview) -> int:
        return write(handle, data[:2])

    monkeypatch.setattr(os, "write", two)

    disk.append(tmp_path / "x", b"in many parts")
    monkeypatch.undo()

    assert (tmp_path / "x").read_bytes() == b"in many parts"


def test_trouble_has_a_name(disk: RealDisk, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(StoreUnusable):
        disk.append(tmp_path / "file" / "below", b"x")
    with pytest.raises(StoreUnusable):
        disk.read(tmp_path / "none", 0, 1)
    with pytest.raises(StoreUnusable):
        make_folder(tmp_path / "file" / "folder")
    with pytest.raises(StoreUnusable):
        disk.size(tmp_path / "file" / "x" / "y")


def test_folders_and_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_folder(tmp_path / "a" / "b")
        replace(tmp_path / "a" / "b" / "c", b"data")
    finally:
        os.umask(before)

    assert [stat.S_IMODE((tmp_path / p).stat().st_mode) for p in ("a", "a/b", "a/b/c")] == [0o700, 0o700, 0o600]


def test_a_replaced_file_is_the_old_one_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    replace(path, b"old")

    def fails(handle: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(StoreFull):
        replace(path, b"new")
    monkeypatch.undo()

    assert path.read_bytes() == b"old"
    replace(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert os.listdir(tmp_path) == ["x"]
