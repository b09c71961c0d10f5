"""`asrd acp` between real messages: the same bytes both ways, over stdio, Unix sockets and WebSocket, and a copy."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.http11 import Request, Response

from asrd.acp import cli_main, listen
from asrd.acp.spool import finished
from tests.acp.kept import SPOOL, Script, direction, records, scripts
from tests.acp.truth import CAPTURES, CASES

REPLAY = Path(__file__).parent / "replay.py"
ASRD_ACP = [sys.executable, "-c", "import sys; from asrd.acp import cli_main; sys.exit(cli_main(sys.argv[1:]))"]


def agent_of(script: Script, folder: Path, name: str = "agent") -> tuple[list[str], Path]:
    """The command of an agent that plays a script, and the file that holds what it heard."""
    told, heard = folder / f"{name}.json", folder / f"{name}.heard"
    told.write_text(json.dumps(script))
    return [sys.executable, "-S", "-E", str(REPLAY), "agent", str(told), str(heard)], heard


def spool_of(home: Path) -> list[Path]:
    return sorted((home / SPOOL).glob("*.acp.jsonl"))


def copy_of(home: Path, lines: int = 1) -> Path:
    """The only copy, once it has so many lines: it is written beside the session, some moments later."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = spool_of(home)
        if len(found) == 1 and found[0].read_bytes().count(b"\n") >= lines:
            return found[0]
        time.sleep(0.005)
    raise AssertionError("no copy was written")


def kept(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


# ---------------------------------------------------------------- stdio


class Through:
    """A client of an agent behind `asrd acp` on stdio."""

    def __init__(self, command: list[str], home: Path, *options: str, **more: Any) -> None:
        popen: Any = subprocess.Popen
        self.process: subprocess.Popen[bytes] = popen(
            [*ASRD_ACP, "--spool", str(home / SPOOL), *options, "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            **more,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.heard = b""

    def plays(self, script: Script) -> None:
        """Says the client's part, each message when all before it was heard."""
        waiting = self.heard.count(b"\n")
        wanted = 0
        for way, message in script:
            if way == "a2c":
                wanted += 1
                continue
            waiting = self._hear(wanted, waiting)
            self.stdin.write(message.encode() + b"\n")
        self._hear(wanted, waiting)

    def _hear(self, wanted: int, waiting: int) -> int:
        while waiting < wanted:
            piece = self.stdout.read(1 << 16)
            assert piece, "the agent closed its end"
            self.heard += piece
            waiting += piece.count(b"\n")
        return waiting

    def waits(self) -> None:
        """Until the agent has said a line."""
        while not self.heard.endswith(b"\n"):
            self.heard += self.stdout.read(1)

    def ends(self) -> tuple[int, bytes]:
        """Closes its end; gives the exit code and stderr."""
        self.stdin.close()
        while piece := self.stdout.read(1 << 16):
            self.heard += piece
        code = self.process.wait(20)
        assert self.process.stderr is not None
        said = self.process.stderr.read()
        self.process.stderr.close()
        self.stdout.close()
        return code, said


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


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


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


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


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


def test_secrets_are_taken_out_before_anything_is_written(tmp_path: Path) -> None:
    secret = "hunter2-xyzzy"  # none of the words that tell of a secret
    servers: list[dict[str, Any]] = [
        {"name": "a", "command": "x", "args": ["--api-key", secret, "--port", "1"], "env": [{"name": "K", "value": secret}]},
        {"type": "http", "name": "b", "url": f"https://u:{secret}@h/p?key={secret}", "headers": [{"name": "A", "value": secret}]},
    ]  # fmt: skip
    said = [
        {"id": 1, "method": "session/new", "params": {"cwd": "/w", "mcpServers": servers}},
        {"id": 2, "method": "authenticate", "params": {"methodId": "key", "_meta": {"api-key": {"value": secret}}}},
        {"id": 3, "method": "providers/set", "params": {"id": "p", "headers": {"X": secret}, "apiKey": secret}},
        {"id": 4, "result": {"action": "accept", "content": {"pin": secret, "n": 1}}},
        {"id": 5, "method": "terminal/create", "params": {"command": "c", "env": [{"name": "T", "value": secret}]}},
    ]
    data = b"".join(json.dumps(one).encode() + b"\n" for one in said)
    data += b'{"\\u0065nv": {"E": "' + secret.encode() + b'"}}\n'  # a name in escapes
    cat = [sys.executable, "-S", "-c", "import os\nwhile d := os.read(0, 1 << 20): os.write(1, d)"]
    process = Through(cat, tmp_path).process

    out, _ = process.communicate(data, 20)

    assert out == data
    (path,) = spool_of(tmp_path)
    assert secret not in path.read_text()
    lines = kept(path)
    assert sum(line.get("redacted", 0) > 0 for line in lines) == 12
    new = lines[1]["frame"]["params"]["mcpServers"]
    assert new[0]["args"] == ["--api-key", "[removed: argument]", "--port", "1"]
    assert new[0]["env"] == [{"name": "K", "value": "[removed: env]"}]
    assert new[1]["url"] == "https://[removed: address]@h/p?[removed: address]"


def test_the_copy_is_private(tmp_path: Path) -> None:
    Through([sys.executable, "-S", "-c", ""], tmp_path).ends()

    (path,) = spool_of(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


# ---------------------------------------------------------------- the daemon's side of the spool


def test_a_copy_is_finished_when_its_connection_is_over_unless_it_is_to_be_kept(tmp_path: Path) -> None:
    wait = [sys.executable, "-S", "-c", "import sys\nprint('up', flush=True)\nsys.stdin.read()"]
    client = Through(wait, tmp_path)
    client.waits()
    path = copy_of(tmp_path)
    assert not finished(path)
    assert b'"event":"lost"' not in path.read_bytes()

    client.ends()

    assert finished(path)
    keeping = Through(wait, tmp_path, "--keep-frames")
    keeping.ends()
    assert [finished(p) for p in spool_of(tmp_path)] == [True, False]


def test_a_copy_whose_writer_died_is_ended_by_who_finds_it_and_finished_then(tmp_path: Path) -> None:
    client = Through([sys.executable, "-S", "-c", "print('{}', flush=True)\nimport time; time.sleep(60)"], tmp_path)
    client.waits()
    path = copy_of(tmp_path, lines=2)
    client.process.kill()
    client.ends()
    with path.open("ab") as file:
        file.write(b'{"at":"2026')  # torn in the middle of a line

    assert [finished(path), finished(path)] == [False, True]
    assert path.read_bytes().splitlines()[-2] == b'{"at":"2026'
    assert json.loads(path.read_bytes().splitlines()[-1])["event"] == "lost"


# ---------------------------------------------------------------- sockets


@asynccontextmanager
async def listening(
    address: str, home: Path, command: list[str] | None = None, agent: str | None = None, token: str | None = None
) -> AsyncGenerator[str]:
    """`asrd acp --listen`, in this process; gives the address it got."""
    settings = listen.settings(
        address, agent, command or [], folder=home / SPOOL, keep=False, allow_remote=False, token=token
    )
    stop, up = asyncio.Event(), asyncio.Event()
    where: list[str] = []

    def ready(at: str) -> None:
        where.append(at)
        up.set()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(listen.serve(settings, stop, ready))
        await asyncio.wait_for(up.wait(), 10)
        try:
            yield where[0]
        finally:
            stop.set()


async def plays_unix(path: str, script: Script) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path, limit=1 << 26)
    heard = b""
    for way, message in script:
        if way == "a2c":
            heard += await asyncio.wait_for(reader.readline(), 20)
        else:
            writer.write(message.encode() + b"\n")
            await writer.drain()
    writer.write_eof()
    heard += await asyncio.wait_for(reader.read(), 20)
    writer.close()
    await writer.wait_closed()
    return heard


async def plays_ws(address: str, script: Script) -> list[str | bytes]:
    heard: list[str | bytes] = []
    async with connect(address, compression=None, max_size=1 << 26, proxy=None) as client:
        for way, message in script:
            if way == "a2c":
                heard.append(await asyncio.wait_for(client.recv(), 20))
            else:
                await client.send(message)
    return heard


@pytest.mark.parametrize("case", CASES)
async def test_over_unix_sockets_the_bytes_are_the_same_and_so_are_the_records(case: str, tmp_path: Path) -> None:
    for number, script in enumerate(scripts(case)):
        command, heard = agent_of(script, tmp_path, str(number))
        async with listening(f"unix:{tmp_path}/s{number}", tmp_path, command) as where:
            got = await plays_unix(where.removeprefix("unix:"), script)

        assert got == direction(script, "a2c")
        assert heard.read_bytes() == direction(script, "c2a")
    assert records(tmp_path) == records(CAPTURES / case / "home")


@pytest.mark.parametrize("case", CASES)
async def test_over_websocket_each_message_is_a_frame_and_the_records_are_the_same(case: str, tmp_path: Path) -> None:
    for number, script in enumerate(scripts(case)):
        command, heard = agent_of(script, tmp_path, str(number))
        async with listening("ws://127.0.0.1:0", tmp_path, command) as where:
            got = await plays_ws(where, script)

        assert got == [message for way, message in script if way == "a2c"]
        assert heard.read_bytes() == direction(script, "c2a")
    assert records(tmp_path) == records(CAPTURES / case / "home")


@pytest.mark.parametrize("address", ["unix:{}/s", "ws://127.0.0.1:0"])
async def test_over_sockets_a_message_of_5_mb_passes_whole_and_is_kept(address: str, tmp_path: Path) -> None:
    cat = [sys.executable, "-S", "-c", "import os\nwhile d := os.read(0, 1 << 20):\n while d: d = d[os.write(1, d):]"]
    big = json.dumps({"x": "ü" * 2_500_000}, ensure_ascii=False)
    script: Script = [("c2a", big), ("a2c", big)]
    async with listening(address.format(tmp_path), tmp_path, cat) as where:
        if where.startswith("unix:"):
            got = await plays_unix(where.removeprefix("unix:"), script)
        else:
            (message,) = await plays_ws(where, script)
            got = (message.encode() if isinstance(message, str) else message) + b"\n"

    assert got == big.encode() + b"\n"
    there = [line["frame"] for line in kept(spool_of(tmp_path)[0]) if "frame" in line]
    assert there == [json.loads(big)] * 2


def scripted(script: Script) -> Any:
    """A WebSocket agent that plays a script."""

    async def agent(connection: ServerConnection) -> None:
        for way, message in script:
            if way == "a2c":
                await connection.send(message)
            else:
                assert await connection.recv() == message

    return agent


async def test_from_websocket_to_websocket_frames_stay_frames(tmp_path: Path) -> None:
    (script,) = scripts("copilot")
    async with serve(scripted(script), "127.0.0.1", 0, compression=None) as agent:
        port = agent.sockets[0].getsockname()[1]
        async with listening("ws://127.0.0.1:0", tmp_path, agent=f"ws://127.0.0.1:{port}") as where:
            got = await plays_ws(where, script)

    assert got == [message for way, message in script if way == "a2c"]
    assert records(tmp_path) == records(CAPTURES / "copilot" / "home")


async def test_connections_at_the_same_time_are_kept_apart_and_a_client_may_come_again(tmp_path: Path) -> None:
    (script,) = scripts("gemini")
    told = tmp_path / "script.json"
    told.write_text(json.dumps(script))
    command = [sys.executable, "-S", "-E", str(REPLAY), "agent", str(told), os.devnull]
    async with listening(f"unix:{tmp_path}/s", tmp_path, command) as where:
        path = where.removeprefix("unix:")
        both = await asyncio.gather(plays_unix(path, script), plays_unix(path, script))
        again = await plays_unix(path, script)

    assert [*both, again] == [direction(script, "a2c")] * 3
    assert len(spool_of(tmp_path)) == 3


@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (1001, "bye"), (4321, "of our own")])
async def test_a_close_code_goes_on_to_the_other_side(code: int, reason: str, tmp_path: Path) -> None:
    seen: asyncio.Future[tuple[int | None, str | None]] = asyncio.get_running_loop().create_future()

    async def agent(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            async for message in connection:
                await connection.send(message)
        seen.set_result((connection.close_code, connection.close_reason))

    async with serve(agent, "127.0.0.1", 0) as server:
        to = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with listening("ws://127.0.0.1:0", tmp_path, agent=to) as where:
            client = await connect(where, proxy=None)
            await client.send("{}")
            assert await client.recv() == "{}"
            await client.close(code, reason)
            closed = await asyncio.wait_for(seen, 10)

    assert closed == (code, reason)
    last = kept(spool_of(tmp_path)[0])[-1]
    assert (last["by"], last["close"]) == ("client", code)


async def test_how_the_agent_closes_is_how_the_client_is_closed(tmp_path: Path) -> None:
    async def agent(connection: ServerConnection) -> None:
        await connection.close(4009, "no more")

    async with serve(agent, "127.0.0.1", 0) as server:
        to = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with listening("ws://127.0.0.1:0", tmp_path, agent=to) as where, connect(where, proxy=None) as client:
            with pytest.raises(ConnectionClosed):
                await client.recv()

    assert (client.close_code, client.close_reason) == (4009, "no more")


async def test_an_agent_that_fails_closes_a_websocket_with_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", "raise SystemExit(3)"]
    async with listening("ws://127.0.0.1:0", tmp_path, command) as where, connect(where, proxy=None) as client:
        with pytest.raises(ConnectionClosed):
            await client.recv()

    assert (client.close_code, client.close_reason) == (1011, "the agent ended with code 3")


async def test_headers_and_cookies_of_the_upgrade_go_both_ways(tmp_path: Path) -> None:
    asked: list[Headers] = []

    async def agent(connection: ServerConnection) -> None:
        assert connection.request is not None
        asked.append(connection.request.headers)
        await connection.wait_closed()

    def answer(connection: ServerConnection, request: Request, response: Response) -> None:
        response.headers["Acp-Connection-Id"] = "abc"
        response.headers["Set-Cookie"] = "s=1"

    async with serve(agent, "127.0.0.1", 0, process_response=answer) as server:
        to = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/acp"
        async with listening("ws://127.0.0.1:0", tmp_path, agent=to) as where:
            headers = {"Cookie": "s=0", "Authorization": "Bearer theirs"}
            async with connect(where, additional_headers=headers, proxy=None) as client:
                assert client.response is not None
                got = client.response.headers

    assert (got["Acp-Connection-Id"], got["Set-Cookie"]) == ("abc", "s=1")
    assert (asked[0]["Cookie"], asked[0]["Authorization"]) == ("s=0", "Bearer theirs")


async def refused(where: str, **options: Any) -> int:
    with pytest.raises(InvalidStatus) as error:
        async with connect(where, proxy=None, **options) as client:
            assert isinstance(client, ClientConnection)
    return error.value.response.status_code


async def test_who_may_not_connect_is_refused(tmp_path: Path) -> None:
    cat = [sys.executable, "-S", "-c", "import os\nwhile d := os.read(0, 1 << 20): os.write(1, d)"]
    async with listening("ws://127.0.0.1:0", tmp_path, cat, token="t0ken") as where:
        assert await refused(where) == 401
        assert await refused(where, additional_headers={"Authorization": "Bearer wrong"}) == 401
        with_token = {"Authorization": "Bearer t0ken"}
        assert await refused(where, additional_headers=with_token, origin="https://evil.example") == 403
        async with connect(where, additional_headers=with_token, proxy=None) as client:
            await client.send("{}")
            assert await client.recv() == "{}"


async def test_an_agent_that_is_not_there_is_said_to_the_client(tmp_path: Path) -> None:
    async with listening("ws://127.0.0.1:0", tmp_path, agent=f"unix:{tmp_path}/nobody") as where:
        assert await refused(where) == 502


async def test_a_unix_socket_is_private_and_a_stale_one_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
        stale.bind(str(path))
    async with listening(f"unix:{path}", tmp_path, ["true"]):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(ExceptionGroup):
            async with listening(f"unix:{path}", tmp_path, ["true"]):
                pass
    assert not path.exists()


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--listen", "ws://0.0.0.0:1", "--", "x"], "--allow-remote"),
        (["--listen", "ws://0.0.0.0:1", "--allow-remote", "--", "x"], "token"),
        (["--listen", "tcp:1", "--", "x"], "no address"),
        (["--connect", "unix:/x"], "--listen"),
        ([], "either the agent's command"),
    ],
)
def test_what_cannot_be_done_is_said(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASRD_ACP_TOKEN", raising=False)

    code = cli_main(argv)

    assert code == 2
    assert words in capsys.readouterr().err


def test_a_listener_says_where_it_listens_and_ends_when_told(tmp_path: Path) -> None:
    argv = ["--spool", str(tmp_path / "spool"), "--listen", f"unix:{tmp_path}/s", "--", "cat"]
    process = subprocess.Popen([*ASRD_ACP, *argv], stderr=subprocess.PIPE)
    assert process.stderr is not None

    assert process.stderr.readline() == f"asrd acp: listening at unix:{tmp_path}/s\n".encode()
    process.terminate()

    assert process.wait(10) == 0
    process.stderr.close()
