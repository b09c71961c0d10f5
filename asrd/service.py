"""The files that make asrd a service of its user: systemd units, a launchd agent. Pure: text in, text out.

As they stand for a usual home they are kept in `systemd/` and `launchd/`; `asrd service install` makes them for the home it
runs in. What is said of the sandbox, and what of it a user manager can do:

    reads    all that the user can read (harnesses keep their sessions in the home folder), changes nothing of it
    writes   the store, its socket's folder, nothing else: ProtectHome, ProtectSystem, ReadWritePaths
    network  none but Unix sockets: RestrictAddressFamilies
    limits   memory, tasks and processor time; starts again after a failure, ever later

A user manager makes such name spaces by way of a user name space of its own (PrivateUsers), in which the kernel shows no
other process's environment: links that need it (evidence `process`) are not found by a hardened service. `--observe` leaves
out what makes one.
"""

from __future__ import annotations

import plistlib
from collections.abc import Mapping
from pathlib import PurePosixPath

from msgspec import Struct

LABEL = "dev.asrd.asrd"
UNIT = "asrd.service"
SOCKET = "asrd.socket"
NOT_AGAIN = (2, 10, 32)
"""Exit codes after which starting again changes nothing: usage, settings, a newer store. (Another daemon is waited for.)"""


class Plan(Struct, frozen=True):
    """What a service needs to know. `command`: how asrd is started; `socket`: where it answers; `log`: for launchd.

    `env`: variables it must have as its user has them, such as where harnesses keep their files. `steps`: whether systemd
    can wait longer after each failure (since 254); one that cannot waits ten seconds each time.
    """

    command: tuple[str, ...]
    store: str
    socket: str
    log: str
    env: Mapping[str, str] = {}
    observe: bool = False
    steps: bool = True


USUAL = Plan(
    command=("%h/.local/bin/asrd", "run"),
    store="%h/.local/share/asrd",
    socket="%t/asrd/asrd.sock",
    log="/Users/USER/Library/Logs/asrd.log",
)
"""A usual home, in systemd's own words for its folders."""


def unit(plan: Plan) -> str:
    """`asrd.service`, for a user manager."""
    writes = " ".join(dict.fromkeys(_quoted(p) for p in (plan.store, _folder(plan.socket))))
    lines = [
        "# Records what coding agents do. Made by `asrd service install`; `systemctl --user edit asrd` changes it.",
        "[Unit]",
        "Description=asrd, the recorder of coding agents",
        f"Requires={SOCKET}",
        f"After={SOCKET}",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=notify",
        *_made_first(plan),
        f"ExecStart={' '.join(_quoted(c, command=True) for c in plan.command)}",
        *(f"Environment={_quoted(f'{name}={value}', specifiers=False)}" for name, value in sorted(plan.env.items())),
        "WatchdogSec=60",
        "TimeoutStartSec=120",
        "TimeoutStopSec=30",
        "Restart=on-failure",
        *(["RestartSec=3", "RestartSteps=8", "RestartMaxDelaySec=300"] if plan.steps else ["RestartSec=10"]),
        f"RestartPreventExitStatus={' '.join(map(str, NOT_AGAIN))}",
        "UMask=0077",
        "# limits",
        "MemoryHigh=512M",
        "MemoryMax=1G",
        "CPUQuota=100%",
        "TasksMax=128",
        "LimitNOFILE=65536",
        "Nice=5",
        "IOSchedulingClass=best-effort",
        "IOSchedulingPriority=6",
        "# no new rights, no network",
        "NoNewPrivileges=yes",
        "RestrictAddressFamilies=AF_UNIX",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "SystemCallErrorNumber=EPERM",
    ]
    if not plan.observe:
        lines += [
            "# the home folder to read, the store to write (these need name spaces: see asrd/service.py)",
            "ProtectHome=read-only",
            "ProtectSystem=strict",
            f"ReadWritePaths={writes}",
            "PrivateTmp=yes",
            "PrivateDevices=yes",
            "PrivateUsers=yes",
            "ProtectKernelTunables=yes",
            "ProtectKernelModules=yes",
            "ProtectKernelLogs=yes",
            "ProtectControlGroups=yes",
            "ProtectClock=yes",
            "ProtectHostname=yes",
            "RestrictNamespaces=yes",
            "CapabilityBoundingSet=",
        ]
    return "\n".join([*lines, "", "[Install]", "WantedBy=default.target", f"Also={SOCKET}", ""])


def socket_unit(plan: Plan) -> str:
    """`asrd.socket`: whoever asks starts the daemon."""
    return "\n".join(
        [
            "# Where asrd answers. Made by `asrd service install`.",
            "[Unit]",
            "Description=Where asrd answers",
            "",
            "[Socket]",
            f"ListenStream={plan.socket if plan.socket.startswith('%') else plan.socket.replace('%', '%%')}",
            "SocketMode=0600",
            "DirectoryMode=0700",
            f"Service={UNIT}",
            "",
            "[Install]",
            "WantedBy=sockets.target",
            "",
        ]
    )


def agent(plan: Plan) -> bytes:
    """`dev.asrd.asrd.plist`, for launchd."""
    said: dict[str, object] = {
        "Label": LABEL,
        "ProgramArguments": [*plan.command, "--log-file", plan.log],
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False, "Crashed": True},
        "ThrottleInterval": 10,
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "Nice": 5,
        "Umask": 0o077,
        "SoftResourceLimits": {"NumberOfFiles": 16384, "Core": 0},
        "HardResourceLimits": {"NumberOfFiles": 65536, "Core": 0},
        "ExitTimeOut": 30,
        "StandardOutPath": "/dev/null",
        "StandardErrorPath": plan.log + ".stderr",
    }
    if plan.env:
        said["EnvironmentVariables"] = dict(sorted(plan.env.items()))
    return plistlib.dumps(said, sort_keys=False)


def variables(env: Mapping[str, str], roots: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """What a service must be given of its user's variables: where asrd and harnesses keep things, and nothing else.

    `roots`: the variables each harness reads its folder from, by its name. Values with control characters are left out.
    """
    names = {"ASRD_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", *(v for several in roots.values() for v in several)}
    return {n: env[n] for n in sorted(names) if env.get(n) and env[n].isprintable()}


def _made_first(plan: Plan) -> list[str]:
    """The store is made outside of the sandbox: systemd starts nothing whose writable folder is not there."""
    return [] if plan.observe else [f"ExecStartPre=+/bin/mkdir -p -m 700 {_quoted(plan.store, command=True)}"]


def _folder(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _quoted(word: str, specifiers: bool = True, command: bool = False) -> str:
    """A word as systemd reads it back: quoted where needed, `%` doubled where it is no specifier of ours, `$` in a command."""
    if not (specifiers and word.startswith(("%h", "%t"))):
        word = word.replace("%", "%%")
    word = word.replace("\\", "\\\\").replace('"', '\\"')
    word = word.replace("$", "$$") if command else word
    return f'"{word}"' if not word or any(c in " \t;'\"\\" for c in word) else word
