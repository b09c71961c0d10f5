"""`asrd acp --listen`: Unix sockets and WebSocket, several connections, close codes, and who may connect."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
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
from tests.acp.kept import SPOOL, Script, direction, records, scripts
from tests.acp.proxies import ASRD_ACP, REPLAY, agent_of, kept, spool_of
from tests.acp.truth import CAPTURES, CASES


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
