"""Another user of the machine: what only root can try."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

UID = 65534
"""`nobody`."""
BECOME = f"""
import contextlib, importlib, os, pkgutil, sys
import asrd, asrd.commands, asrd.recorders, asrd.store, asrd.lineage, asrd.handoff, asrd.report
import encodings.idna, unicodedata, zoneinfo, select, fcntl, sqlite3
for package in (asrd, asrd.commands, asrd.recorders, asrd.store, asrd.lineage, asrd.handoff, asrd.report):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)  # what Python needs may lie where the other user sees nothing
os.umask(0o022)
os.setgroups([])
os.setgid({UID})
os.setuid({UID})
os.chdir("/")
"""
COMMAND = BECOME + "from asrd.cli import main\nsys.exit(main(sys.argv[1:]))\n"


def give(folder: Path, *trees: Path) -> Path:
    """Gives folders, with all below and a way to them, to the other user; gives the first."""
    for tree in (folder, *trees):
        for base, _, names in os.walk(tree):
            os.chown(base, UID, UID)
            for name in names:
                os.chown(os.path.join(base, name), UID, UID, follow_symlinks=False)
    let_through(folder)
    return folder


def let_through(folder: Path) -> None:
    """Lets everyone pass the folders above."""
    for at in folder.parents:
        if at.stat().st_uid == os.getuid() and at != at.parent:
            at.chmod(at.stat().st_mode | 0o011)


def run(script: str, env: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """A Python script that becomes the other user."""
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def as_user(env: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """A command of asrd as the other user."""
    return run(COMMAND, env, *words)
