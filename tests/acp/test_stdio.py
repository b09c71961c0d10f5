"""`asrd acp -- COMMAND`: the same bytes both ways, exit codes, signals, and trouble that stays ours."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acp.kept import SPOOL, direction, records, scripts
from tests.acp.proxies import Through, agent_of, children, gone, kept, spool_of
from tests.acp.truth import CAPTURES, CASES


@pytest.mark.parametrize("case", CASES)
def test_over_stdio_the_bytes_are_the_same_and_so_are_the_records(case: str, tmp_path: Path) -> None:
    for number, script in enumerate(scripts(case)):
        command, heard = agent_of(script, tmp_path, str(number))
        client = Through(command, tmp_path)

        client.plays(script)
        code, said = client.ends()

        assert (code, said) == (0, b"")
        assert client.heard == direction(script, "a2c")
        assert heard.read_bytes() == direction(script, "c2a")
    assert records(tmp_path) == records(CAPTURES / case / "home")


def test_a_message_of_64_mib_passes_whole(tmp_path: Path) -> None:
    cat = [sys.executable, "-S", "-c", "import os\nwhile d := os.read(0, 1 << 20):\n while d: d = d[os.write(1, d):]"]
    big = b'{"x":"' + b"y" * (64 * 1024 * 1024 - 8) + b'"}\n'
    process = Through(cat, tmp_path).process

    out, said = process.communicate(big, 60)

    assert (process.returncode, said) == (0, b"")
    assert out == big
    (path,) = spool_of(tmp_path)
    lost = [line["lost"] for line in kept(path) if "lost" in line]
    assert [one["reason"] for one in lost] == ["oversize", "oversize"]  # with what stands around it: over 64 MiB


def test_bytes_that_are_no_messages_pass_as_they_are(tmp_path: Path) -> None:
    cat = [sys.executable, "-S", "-c", "import os\nwhile d := os.read(0, 1 << 20): os.write(1, d)"]
    odd = b'not json\r\n\n\xff\xfe\n{"a": 1} trailing\n[]\n{"torn": '
    process = Through(cat, tmp_path).process

    out, _ = process.communicate(odd, 20)

    assert out == odd
    (path,) = spool_of(tmp_path)
    there = [line.get("frame", line.get("lost", {}).get("reason")) for line in kept(path) if line["dir"] == "c2a"]
    assert there == ["malformed", "malformed", "malformed", [], "torn"]


@pytest.mark.parametrize("code", [0, 1, 7, 255])
def test_the_agents_exit_code_is_ours(code: int, tmp_path: Path) -> None:
    process = Through([sys.executable, "-S", "-c", f"raise SystemExit({code})"], tmp_path).process

    process.communicate(b"", 20)

    assert process.returncode == code
    (path,) = spool_of(tmp_path)
    assert kept(path)[-1] | {"at": ""} == {"at": "", "dir": "meta", "event": "closed", "by": "agent", "code": code}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGKILL])
def test_a_signal_goes_on_to_the_agent_and_what_ends_it_ends_us(number: signal.Signals, tmp_path: Path) -> None:
    wait = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nprint('up', flush=True)\ntime.sleep(60)"
    client = Through([sys.executable, "-S", "-c", wait], tmp_path)
    client.waits()

    if number == signal.SIGKILL:
        os.kill(children(client.process.pid)[0], number)
    else:
        client.process.send_signal(number)

    code, _ = client.ends()
    assert code == -number
    (path,) = spool_of(tmp_path)
    assert kept(path)[-1]["signal"] == number.name


def test_an_agent_that_handles_a_signal_ends_as_it_likes(tmp_path: Path) -> None:
    handle = (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print('up', flush=True)\ntime.sleep(60)"
    )
    client = Through([sys.executable, "-S", "-c", handle], tmp_path)
    client.waits()

    client.process.terminate()

    assert client.ends()[0] == 5


def test_when_we_are_killed_so_is_the_agent(tmp_path: Path) -> None:
    wait = "import time\nprint('up', flush=True)\ntime.sleep(60)"  # does not look at its stdin
    client = Through([sys.executable, "-S", "-c", wait], tmp_path)
    client.waits()
    (agent,) = children(client.process.pid)

    client.process.kill()

    client.process.wait(10)
    deadline = time.monotonic() + 5
    while not gone(agent) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert gone(agent)
    client.ends()


def test_half_a_close_leaves_the_other_half_open(tmp_path: Path) -> None:
    late = "import sys, time\nsys.stdin.read()\ntime.sleep(0.2)\nprint('{\"late\":1}', flush=True)\nsys.exit(4)"
    client = Through([sys.executable, "-S", "-c", late], tmp_path)

    code, _ = client.ends()

    assert (code, client.heard) == (4, b'{"late":1}\n')


def test_stderr_is_the_agents_own(tmp_path: Path) -> None:
    talk = "import sys\nsys.stderr.buffer.write(b'\\xffwords\\n')\nprint('{}')"
    client = Through([sys.executable, "-S", "-c", talk], tmp_path)

    assert client.ends()[1] == b"\xffwords\n"


def test_a_command_that_is_not_there_is_said_as_a_shell_says_it(tmp_path: Path) -> None:
    code, said = Through(["/no/such/agent"], tmp_path).ends()

    assert code == 127
    assert said == b"asrd acp: /no/such/agent cannot be run: No such file or directory\n"


@pytest.mark.parametrize("trouble", ["no-rights", "no-folder", "no-room"])
def test_our_own_trouble_never_harms_the_session(trouble: str, tmp_path: Path) -> None:
    (script,) = scripts("gemini")
    command, heard = agent_of(script, tmp_path)
    limit: dict[str, Any] = {}
    folder = tmp_path / SPOOL
    if trouble == "no-folder":
        folder.parent.mkdir(parents=True)
        folder.write_text("a file where the folder should be")
    elif trouble == "no-rights":
        folder.mkdir(parents=True)
        os.symlink("/dev/full", folder / "x")
        limit["env"] = os.environ | {"ASRD_HOME": "/proc/nowhere"}
        folder = Path("/proc/nowhere/spool")
    else:
        limit["preexec_fn"] = no_room
    client = Through(command, tmp_path, *(["--spool", str(folder)] if trouble == "no-rights" else []), **limit)

    client.plays(script)
    code, said = client.ends()

    assert (code, said) == (0, b"")
    assert client.heard == direction(script, "a2c") and heard.read_bytes() == direction(script, "c2a")


def no_room() -> None:
    """No file of this process and its children may grow beyond 2,000 bytes: writing more fails as a full disk does."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
