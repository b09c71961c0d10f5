"""`asrd service` with a service manager that writes down what it is asked, for a user who is not root."""

import os
import sys
from pathlib import Path

import msgspec
import pytest

from asrd.cli import main
from asrd.commands import service
from tests.homes import environment

SYSTEMCTL = """#!/bin/sh
[ "$1" = --version ] && echo "systemd ${VERSION:-255} (of a test)" && exit
echo "$(basename "$0") $*" >> "$ASKED"
case "$*" in
  *show-environment*) exit ${MANAGER:-0} ;;
  *"show asrd.service"*) printf 'LoadState=loaded\\nActiveState=active\\nSubState=running\\nMainPID=77\\nNRestarts=2\\n' ;;
  *start*) exit ${STARTS:-0} ;;
esac
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what the service manager was asked is written down, one line each."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("systemctl", "loginctl", "launchctl", "journalctl"):
        (programs / name).write_text(SYSTEMCTL)
        (programs / name).chmod(0o755)
    for name, value in environment(tmp_path / "home", tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    (tmp_path / "home").mkdir()
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path / "asked"


def units(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "home" / ".config" / "systemd" / "user").glob("*"))


def test_it_is_installed_started_and_told_how_to_outlive_a_login(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["service", "install"])

    assert code == 0
    assert [p.name for p in units(tmp_path)] == ["asrd.service", "asrd.socket"]
    assert f"Environment=ASRD_HOME={tmp_path}/store" in units(tmp_path)[0].read_text()
    assert asked.read_text().splitlines()[1:5] == [
        "systemctl --user daemon-reload",
        "systemctl --user enable asrd.socket asrd.service",
        "systemctl --user stop asrd.socket asrd.service",  # another version may run
        "systemctl --user start asrd.socket asrd.service",
    ]
    said = capsys.readouterr().err
    assert str(units(tmp_path)[0]) in said
    assert "loginctl enable-linger" in said
    assert (tmp_path / "store").is_dir()  # the sandbox needs it there


def test_the_service_is_told_only_what_its_user_has_set(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASRD_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))

    main(["service", "install"])

    text = units(tmp_path)[0].read_text()
    assert [x for x in text.splitlines() if x.startswith("Environment=")] == [
        f"Environment=XDG_DATA_HOME={tmp_path}/data"
    ]
    assert f"ListenStream={tmp_path}/run/asrd/asrd.sock" in units(tmp_path)[1].read_text()


@pytest.mark.parametrize(("version", "steps"), [("252", False), ("254", True), ("v9~rc", True)])
def test_a_systemd_that_cannot_wait_longer_each_time_is_not_asked_to(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, steps: bool
) -> None:
    monkeypatch.setenv("VERSION", version)

    main(["service", "install"])

    lines = units(tmp_path)[0].read_text().splitlines()
    assert ("RestartSteps=8" in lines) == steps
    assert ("RestartSec=10" in lines) != steps


def test_installing_again_changes_nothing_and_starts_nothing_anew(asked: Path, tmp_path: Path) -> None:
    main(["service", "install"])
    before = [(p, p.stat().st_mtime_ns) for p in units(tmp_path)]
    asked.unlink()

    code = main(["service", "install"])

    assert code == 0
    assert [(p, p.stat().st_mtime_ns) for p in units(tmp_path)] == before
    assert "stop" not in asked.read_text()


def test_a_dry_run_writes_and_runs_nothing(asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["service", "install", "--dry-run"])

    out = capsys.readouterr().out
    assert code == 0
    assert "ExecStart=" in out
    assert "systemctl --user enable asrd.socket asrd.service" in out
    assert units(tmp_path) == []
    assert not asked.exists()


def test_uninstalling_removes_the_files_and_leaves_the_store(asked: Path, tmp_path: Path) -> None:
    main(["service", "install"])

    assert main(["service", "uninstall"]) == 0
    assert main(["service", "uninstall"]) == 0

    assert units(tmp_path) == []
    assert (tmp_path / "store").is_dir()
    assert "systemctl --user disable --now asrd.socket asrd.service" in asked.read_text()


def test_root_is_refused(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)

    assert main(["service", "install"]) == 60

    assert "this is root" in capsys.readouterr().err
    assert units(tmp_path) == []


def test_without_systemd_or_without_a_manager_it_is_refused(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANAGER", "1")
    assert main(["service", "install"]) == 60
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert main(["service", "start"]) == 60

    first, second = capsys.readouterr().err.splitlines()
    assert "systemd runs no manager for this user" in first
    assert "systemd is not here; start `asrd run`" in second
    assert units(tmp_path) == []


def test_what_fails_is_said_in_its_own_words(
    asked: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STARTS", "5")

    assert main(["service", "start"]) == 60

    assert "`systemctl --user start asrd.socket asrd.service` says" in capsys.readouterr().err


def test_status_says_what_manager_and_daemon_say(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["service", "status", "--json"])

    said = msgspec.json.decode(capsys.readouterr().out)
    assert code == 1  # it runs and does not answer
    assert said["schema"] == "asrd.service/1"
    assert (said["active"], said["pid"], said["restarts"], said["answers"]) == (True, 77, 2, False)


def test_logs_are_the_journals(asked: Path) -> None:
    assert main(["service", "logs", "-f", "-n", "5"]) == 0

    last = asked.read_text().splitlines()[-1]
    assert last == "journalctl --user --unit asrd.service --lines 5 --no-pager --follow"


def test_on_macos_an_agent_is_loaded_and_unloaded(asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    path = tmp_path / "home" / "Library" / "LaunchAgents" / "dev.asrd.asrd.plist"

    assert main(["service", "install"]) == 0
    assert path.exists()
    assert main(["service", "uninstall"]) == 0

    assert not path.exists()
    lines = asked.read_text().splitlines()
    assert f"launchctl bootstrap gui/1000 {path}" in lines
    assert lines[-1] == "launchctl bootout gui/1000/dev.asrd.asrd"


@pytest.mark.parametrize("action", service.ACTIONS)
def test_every_action_has_a_dry_run(asked: Path, action: str) -> None:
    main(["service", action, "--dry-run"])

    assert not asked.exists()
