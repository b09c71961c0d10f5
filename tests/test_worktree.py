"""The working tree as it is now: digests, the commit, and silence where nothing can be told."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

import asrd.worktree
from asrd.handoff import FileNow
from asrd.worktree import RealTree


def test_a_file_has_its_digest_and_a_missing_one_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    tree = RealTree([str(tmp_path)])

    assert tree.file(str(tmp_path / "a")) == FileNow(True, hashlib.sha256(b"x").hexdigest())
    assert tree.file(str(tmp_path / "b")) == FileNow(False)


def test_of_a_folder_that_is_not_here_nothing_is_told(tmp_path: Path) -> None:
    tree = RealTree([str(tmp_path / "gone/")])

    assert tree.file(str(tmp_path / "gone/a")) is None
    assert tree.head(str(tmp_path / "gone")) is None


def test_what_is_no_file_or_too_large_has_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asrd.worktree, "LARGEST", 3)
    (tmp_path / "large").write_bytes(b"1234")
    os.mkfifo(tmp_path / "pipe")
    tree = RealTree([])

    assert [tree.file(str(tmp_path / p)) for p in ("large", "pipe", "")] == [FileNow(True)] * 3


def test_the_commit_is_gits_own_and_git_writes_nothing(tmp_path: Path) -> None:
    def git(*args: str) -> str:
        return subprocess.run(["git", "-C", str(tmp_path), *args], check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    assert RealTree([]).head(str(tmp_path)) is None
    git("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x")
    before = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*"))

    assert RealTree([]).head(str(tmp_path)) == git("rev-parse", "HEAD").strip()
    assert sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*")) == before


def test_without_git_nothing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert RealTree([]).head(str(tmp_path)) is None
