"""The files of the service: they parse, systemd accepts them, and those in the repository are the ones that are made."""

import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from asrd.service import LABEL, USUAL, Plan, agent, socket_unit, unit, variables

ROOT = Path(__file__).parents[1]
ODD = Plan(
    command=("/opt/my tools/asrd", "run"),
    store='/home/d/100% "mine"/asrd',
    socket="/home/d/100% s/asrd.sock",
    log="/Users/d/Library/Logs/asrd.log",
    env={"ASRD_HOME": '/home/d/100% "mine"/asrd', "CODEX_HOME": "/x$HOME;y"},
)


def test_the_files_of_the_repository_are_the_ones_that_are_made() -> None:
    assert (ROOT / "systemd" / "asrd.service").read_text() == unit(USUAL)
    assert (ROOT / "systemd" / "asrd.socket").read_text() == socket_unit(USUAL)
    assert (ROOT / "launchd" / f"{LABEL}.plist").read_bytes() == agent(USUAL)


unit_of = unit


def verified(tmp_path: Path, plan: Plan) -> str:
    """What `systemd-analyze verify` says of the units."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    program = tmp_path / "my tools" / "asrd"
    program.parent.mkdir(exist_ok=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "run").mkdir(mode=0o700, exist_ok=True)
    plan = Plan((str(program), "run"), plan.store, plan.socket, plan.log, plan.env, plan.observe)
    for name, text in (("asrd.service", unit_of(plan)), ("asrd.socket", socket_unit(plan))):
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", "asrd.service", "asrd.socket"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path / "run"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    newer = ("RestartSteps", "RestartMaxDelaySec")  # systemd 254; older ones leave them out
    said = [x for x in done.stderr.splitlines() if x and not any(f"Unknown key '{n}'" in x for n in newer)]
    return "\n".join([*said, f"exit {done.returncode}" if done.returncode else ""]).strip()


@pytest.mark.parametrize("plan", [USUAL, ODD, Plan(USUAL.command, USUAL.store, USUAL.socket, "", {}, observe=True)])
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path, plan: Plan) -> None:
    assert verified(tmp_path, plan) == ""


def test_systemd_would_find_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(plan: Plan) -> str:
        return unit(plan).replace("=yes", "=perhaps")

    monkeypatch.setitem(verified.__globals__, "unit_of", wrong)

    assert "perhaps" in verified(tmp_path, USUAL)


def test_the_service_may_write_its_store_and_nothing_else() -> None:
    lines = unit(USUAL).splitlines()

    assert {"NoNewPrivileges=yes", "PrivateTmp=yes", "ProtectHome=read-only", "ProtectSystem=strict"} <= set(lines)
    assert [x for x in lines if x.startswith("ReadWritePaths=")] == ["ReadWritePaths=%h/.local/share/asrd %t/asrd"]
    assert {"RestrictAddressFamilies=AF_UNIX", "MemoryMax=1G", "CPUQuota=100%", "UMask=0077"} <= set(lines)
    assert {"Type=notify", "WatchdogSec=60", "Restart=on-failure"} <= set(lines)


def test_what_would_need_name_spaces_is_left_out_to_observe_processes() -> None:
    text = unit(Plan(USUAL.command, USUAL.store, USUAL.socket, "", {}, observe=True))

    assert not any(word in text for word in ("ProtectHome", "PrivateTmp", "PrivateUsers", "ProtectSystem"))
    assert "NoNewPrivileges=yes" in text


def test_odd_names_are_quoted_as_systemd_reads_them() -> None:
    text = unit(ODD)

    assert 'ExecStart="/opt/my tools/asrd" run' in text
    assert 'Environment="ASRD_HOME=/home/d/100%% \\"mine\\"/asrd"' in text
    assert 'Environment="CODEX_HOME=/x$HOME;y"' in text
    assert 'ReadWritePaths="/home/d/100%% \\"mine\\"/asrd" "/home/d/100%% s"' in text
    assert "ListenStream=/home/d/100%% s/asrd.sock" in socket_unit(ODD)


def test_the_agent_is_a_plist_that_launchd_understands() -> None:
    said = plistlib.loads(agent(ODD))

    assert said["Label"] == LABEL
    assert said["ProgramArguments"] == ["/opt/my tools/asrd", "run", "--log-file", ODD.log]
    assert said["KeepAlive"] == {"SuccessfulExit": False, "Crashed": True}
    assert said["EnvironmentVariables"] == dict(ODD.env)
    assert said["Umask"] == 0o077
    known = {
        "Label", "ProgramArguments", "RunAtLoad", "KeepAlive", "ThrottleInterval", "ProcessType", "LowPriorityIO", "Nice",
        "Umask", "SoftResourceLimits", "HardResourceLimits", "ExitTimeOut", "StandardOutPath", "StandardErrorPath",
        "EnvironmentVariables",
    }  # fmt: skip
    assert set(said) <= known  # launchd.plist(5)


def test_only_folders_are_taken_from_the_environment() -> None:
    env = {"CODEX_HOME": "/c", "OPENAI_API_KEY": "sk-x", "ASRD_HOME": "", "XDG_DATA_HOME": "/d\nExecStart=/bin/evil"}

    assert variables(env, {"codex": ("CODEX_HOME",), "pi": ("PI_HOME",)}) == {"CODEX_HOME": "/c"}
