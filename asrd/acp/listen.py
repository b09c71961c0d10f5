"""`asrd acp --listen …`: the same for sockets. Each client that connects gets a connection of its own to the agent.

    unix:PATH               newline-delimited JSON, as on stdio (our convention: the protocol names no such transport)
    ws://HOST:PORT[/PATH]   one message a text frame (draft "Streamable HTTP & WebSocket Transport" of the ACP)
    -- COMMAND…             an agent started for each connection, on its stdin and stdout

Invariants
    - Bytes go on before anything looks at them; the copy is handed over in memory. Between equal transports they are the
      same bytes; between a stream and frames each line is one frame.
    - How one side ends is how the other side is ended: close codes and reasons of WebSocket go on.
    - Only this machine can connect, unless it was said otherwise, and then only with a token.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as ws_connect
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as ws_serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from asrd import clock
from asrd.acp.spool import Direction, Spool, connection_id
from asrd.framing import LineFramer
from asrd.sources import Line

CHUNK = 1 << 16
LONGEST = 64 * 1024 * 1024
"""Bytes a message may have."""
PATIENCE = 5.0
"""Seconds an agent has to end after its stdin closed, and again after SIGTERM."""

NORMAL, GOING_AWAY, TOO_BIG, INTERNAL, TRY_LATER = 1000, 1001, 1009, 1011, 1013
"""Close codes of RFC 6455, section 7.4."""

NOT_PASSED_ON = {
    "host", "connection", "upgrade", "content-length", "transfer-encoding", "date", "server",
    "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions", "sec-websocket-protocol",
    "sec-websocket-accept",
}  # fmt: skip
"""Headers that belong to one hop (RFC 9110, 7.6.1, and RFC 6455)."""


class Address(Struct, frozen=True):
    """Where to listen or connect: a Unix socket's `path`, or a WebSocket's `host`, `port` and `target`."""

    kind: str  # unix | ws | wss
    path: str = ""
    host: str = ""
    port: int = 0
    target: str = ""

    def uri(self, target: str) -> str:
        """The address as a WebSocket URI, with the client's own target where it names none."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.kind}://{host}:{self.port}{self.target if self.target not in ('', '/') else target}"


class Settings(Struct, frozen=True):
    """What `run` needs to know."""

    listen: Address
    connect: Address | None
    command: tuple[str, ...]
    folder: Path
    keep: bool
    token: str | None


def address(text: str) -> Address:
    """`unix:PATH` or `ws://HOST:PORT[/PATH]`. Raises ValueError with a sentence that says what is wrong."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path:
            raise ValueError("unix: needs the path of a socket")
        return Address("unix", path=os.path.expanduser(path))
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("ws", "wss") or not parts.hostname:
        raise ValueError(f"{text} is no address: use unix:PATH or ws://HOST:PORT")
    if port is None:
        port = 443 if parts.scheme == "wss" else 80
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return Address(parts.scheme, host=parts.hostname, port=port, target=target)


def settings(
    listen: str,
    connect: str | None,
    command: Sequence[str],
    *,
    folder: Path,
    keep: bool,
    allow_remote: bool,
    token: str | None,
) -> Settings:
    """The settings these options make. Raises ValueError with a sentence that says what is wrong."""
    at = address(listen)
    if at.kind == "wss":
        raise ValueError("listening with TLS is not something asrd does: put a server that does in front")
    if at.kind == "ws" and not loopback(at.host):
        if not allow_remote:
            raise ValueError(f"{at.host} can be reached from other machines: say --allow-remote if that is meant")
        if not token:
            raise ValueError("--allow-remote needs a token that clients must send: set ASRD_ACP_TOKEN")
    to = address(connect) if connect else None
    return Settings(at, to, tuple(command), folder, keep, token or None)


def loopback(host: str) -> bool:
    """Whether a host is this machine and can be reached from no other."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def run(settings: Settings) -> int:
    """Listens until SIGINT or SIGTERM. Gives 0, or 1 when the address cannot be used. Says on stderr where it listens."""
    try:
        asyncio.run(_until_told(settings))
    except OSError as error:
        sys.stderr.write(f"asrd acp: cannot listen: {error.strerror or error}\n")
        return 1
    return 0


async def _until_told(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def ready(where: str) -> None:
        sys.stderr.write(f"asrd acp: listening at {where}\n")
        sys.stderr.flush()

    await serve(settings, stop, ready)


async def serve(settings: Settings, stop: asyncio.Event, ready: Callable[[str], None] = lambda where: None) -> None:
    """Listens until `stop` is set or the task is cancelled. `ready` is told the address, with the port it got."""
    gate = _Gate(settings)
    if settings.listen.kind == "unix":
        await _serve_unix(settings, gate, stop, ready)
    else:
        await _serve_ws(settings, gate, stop, ready)


# ---------------------------------------------------------------- two kinds of sides


class Ending(Struct, frozen=True):
    """How a side ended: a close code and reason (WebSocket's, or what is nearest to it), `abrupt` = without one."""

    code: int = NORMAL
    reason: str = ""
    abrupt: bool = False


class Side(Protocol):
    """One end of a connection. `frames`: it gives and takes whole messages, else pieces of a stream of lines."""

    frames: bool

    async def receive(self) -> str | bytes | None:
        """The next message or piece; None = it ended (see `ending`)."""
        ...

    async def send(self, data: str | bytes) -> None:
        """Raises OSError or ConnectionClosed when it ended."""
        ...

    async def finish(self) -> None:
        """Nothing more will be sent (half close, where there is such a thing)."""
        ...

    async def end(self, ending: Ending) -> None:
        """Ends it in this way."""
        ...

    def ending(self) -> Ending:
        """How it ended."""
        ...


class StreamSide:
    """A Unix socket."""

    frames = False

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._abrupt = False

    async def receive(self) -> bytes | None:
        try:
            return await self._reader.read(CHUNK) or None
        except OSError:
            self._abrupt = True
            return None

    async def send(self, data: str | bytes) -> None:
        self._writer.write(data.encode() if isinstance(data, str) else data)
        await self._writer.drain()

    async def finish(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            if self._writer.can_write_eof():
                self._writer.write_eof()

    async def end(self, ending: Ending) -> None:
        if ending.abrupt:
            self._writer.transport.abort()
            return
        with contextlib.suppress(OSError):
            self._writer.close()
            await self._writer.wait_closed()

    def ending(self) -> Ending:
        return Ending(abrupt=self._abrupt)


class CommandSide:
    """An agent that was started for this connection."""

    frames = False

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        assert process.stdin is not None and process.stdout is not None
        self._in, self._out = process.stdin, process.stdout

    async def receive(self) -> bytes | None:
        return await self._out.read(CHUNK) or None

    async def send(self, data: str | bytes) -> None:
        self._in.write(data.encode() if isinstance(data, str) else data)
        await self._in.drain()

    async def finish(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._in.close()

    async def end(self, ending: Ending) -> None:
        await self.finish()
        for signals in (None, self._process.terminate, self._process.kill):
            if signals is not None:
                with contextlib.suppress(ProcessLookupError):
                    signals()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), PATIENCE)
                return

    def ending(self) -> Ending:
        code = self._process.returncode
        if code is None or code == 0:
            return Ending()
        how = f"code {code}" if code > 0 else signal.Signals(-code).name
        return Ending(INTERNAL, f"the agent ended with {how}")

    @property
    def returncode(self) -> int | None:
        """The agent's exit code, minus its signal; None while it runs."""
        return self._process.returncode


class FrameSide:
    """A WebSocket, either end."""

    frames = True

    def __init__(self, connection: ServerConnection | ClientConnection) -> None:
        self._connection = connection

    async def receive(self) -> str | bytes | None:
        try:
            return await self._connection.recv()
        except ConnectionClosed:
            return None

    async def send(self, data: str | bytes) -> None:
        await self._connection.send(data)

    async def finish(self) -> None:
        """There is no half close: what ends is said by `end`."""

    async def end(self, ending: Ending) -> None:
        if ending.abrupt:
            self._connection.transport.abort()
            return
        with contextlib.suppress(ConnectionClosed, OSError):
            await self._connection.close(ending.code, ending.reason)

    def ending(self) -> Ending:
        code, reason = self._connection.close_code, self._connection.close_reason or ""
        if code is None or code in (1006, 1015):  # never sent: the connection was cut
            return Ending(abrupt=True)
        if code == 1005:  # closed without a code
            return Ending()
        return Ending(code, reason)


class WsAgent(FrameSide):
    """An agent that was reached over WebSocket: what its answer to the upgrade said goes on to the client."""

    def __init__(self, connection: ClientConnection) -> None:
        super().__init__(connection)
        self._client = connection

    def response_headers(self) -> Headers | None:
        """The headers of its 101 answer (`Acp-Connection-Id`, cookies)."""
        return self._client.response.headers if self._client.response is not None else None

    def subprotocol(self) -> Subprotocol | None:
        """The subprotocol it chose."""
        return self._client.subprotocol


# ---------------------------------------------------------------- one connection


async def join(client: Side, agent: Side, spool: Spool, over: Callable[[], None] = lambda: None) -> None:
    """Forwards both ways until one side ends, then ends the other in the same way.

    When it is cancelled both sides are told that we go away. `over` is called when nothing more is forwarded: from then
    on it ends by itself and is not to be cancelled.
    """
    spool.start()
    by = "client"
    ending = Ending()
    try:
        async with asyncio.TaskGroup() as tasks:
            forward = tasks.create_task(_forward(client, agent, "c2a", spool))
            back = tasks.create_task(_forward(agent, client, "a2c", spool))
            await asyncio.wait((forward, back), return_when=asyncio.FIRST_COMPLETED)
            if back.done():
                by = "agent"
                if isinstance(agent, CommandSide):
                    await agent.end(Ending())
                ending = agent.ending()
                await client.end(ending)
                forward.cancel()
            else:
                ending = client.ending()
                if client.frames or ending.abrupt:
                    await agent.end(ending)
                else:  # the client closed its half; what the agent still says goes on
                    await agent.finish()
                    if isinstance(agent, CommandSide):
                        await agent.end(Ending())
                    await asyncio.wait((back,), timeout=PATIENCE)
                back.cancel()
    except asyncio.CancelledError:
        by, ending = "asrd", Ending(GOING_AWAY)
    finally:
        over()
        facts: dict[str, object] = {"by": by}
        if client.frames or agent.frames or ending.code != NORMAL:
            facts["close"] = None if ending.abrupt else ending.code
            if ending.reason:
                facts["reason"] = ending.reason
        if isinstance(agent, CommandSide) and agent.returncode is not None:
            code = agent.returncode
            facts |= {"code": code} if code >= 0 else {"signal": signal.Signals(-code).name}
        await _end_all(client, agent, ending)
        await asyncio.to_thread(spool.close, 2.0, **facts)


async def _end_all(client: Side, agent: Side, ending: Ending) -> None:
    for side in (client, agent):
        with contextlib.suppress(Exception):
            await asyncio.wait_for(side.end(ending), PATIENCE * 4)


async def _forward(source: Side, sink: Side, direction: Direction, spool: Spool) -> None:
    lines = LineFramer(limit=LONGEST) if sink.frames and not source.frames else None
    while True:
        data = await source.receive()
        if data is None:
            break
        _keep(spool, direction, data, source.frames)  # in memory; before its answer can come
        try:
            if lines is not None:
                for found in lines.receive(data if isinstance(data, bytes) else data.encode()):
                    if isinstance(found, Line) and found.data.strip():
                        await sink.send(found.data.decode("utf-8", "replace"))
            elif source.frames and not sink.frames:
                await sink.send(as_line(data))
            else:
                await sink.send(data)
        except (OSError, ConnectionClosed):
            break
    if lines is not None and lines.tail().strip():
        with contextlib.suppress(OSError, ConnectionClosed):
            await sink.send(lines.tail().decode("utf-8", "replace"))


def _keep(spool: Spool, direction: Direction, data: str | bytes, message: bool) -> None:
    spool.put(direction, data.encode() if isinstance(data, str) else data, message=message)


def as_line(message: str | bytes) -> bytes:
    """A message as one line: a newline between JSON tokens is a space as well."""
    data = message.encode() if isinstance(message, str) else message
    return data.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"


# ---------------------------------------------------------------- who may connect, and to what


class _Gate:
    """Opens the agent's side for a client, and the spool for both."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def spool(self, transport: str) -> Spool:
        command = self.settings.command[0] if self.settings.command else None
        name = connection_id(clock.now(), os.getpid())
        return Spool(self.settings.folder, name, transport=transport, command=command, keep=self.settings.keep)

    async def agent(
        self, target: str = "/", headers: Headers | None = None, wanted: Sequence[Subprotocol] = ()
    ) -> Side:
        """Raises OSError, or InvalidHandshake when a WebSocket agent refuses."""
        settings = self.settings
        if settings.connect is None:
            process = await asyncio.create_subprocess_exec(
                *settings.command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            return CommandSide(process)
        if settings.connect.kind == "unix":
            return StreamSide(*await asyncio.open_unix_connection(settings.connect.path))
        return WsAgent(
            await ws_connect(
                settings.connect.uri(target),
                additional_headers=headers,
                subprotocols=list(wanted) or None,
                user_agent_header=None,
                compression=None,
                max_size=LONGEST,
                ping_interval=None,
                proxy=None,
            )
        )

    def refuses(self, request: Request) -> tuple[HTTPStatus, str] | None:
        """Why a WebSocket client may not connect; None = it may."""
        if self.settings.token:
            given = request.headers.get("Authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self.settings.token}".encode()):
                return HTTPStatus.UNAUTHORIZED, "a token is needed\n"
        origin = request.headers.get("Origin")
        if origin is not None and not loopback(urlsplit(origin).hostname or ""):
            return HTTPStatus.FORBIDDEN, "a page from elsewhere may not connect\n"
        return None


# ---------------------------------------------------------------- Unix sockets


async def _serve_unix(settings: Settings, gate: _Gate, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    path = settings.listen.path
    _take_place(path)
    forwarding: set[asyncio.Task[None]] = set()
    ending: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        forwarding.add(task)

        def over() -> None:
            forwarding.discard(task)
            ending.add(task)

        try:
            agent = await gate.agent()
            await join(StreamSide(reader, writer), agent, gate.spool("unix"), over)
        except (OSError, InvalidHandshake) as error:
            sys.stderr.write(f"asrd acp: the agent cannot be reached: {error}\n")
        except asyncio.CancelledError:
            return
        finally:
            writer.transport.abort()  # nothing, when it was closed in order
            forwarding.discard(task)
            ending.discard(task)

    before = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(connected, path)
    finally:
        os.umask(before)
    ready(f"unix:{path}")
    try:
        await stop.wait()
    finally:
        server.close()
        for task in list(forwarding):
            task.cancel()
        if left := forwarding | ending:
            await asyncio.wait(left, timeout=PATIENCE * 4)
        with contextlib.suppress(OSError):
            os.unlink(path)


def _take_place(path: str) -> None:
    """Removes a socket that nobody listens at any more. Raises OSError when somebody does, or it is no socket."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(17, f"{path} is there and is no socket")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise FileExistsError(98, f"somebody listens at {path}")


# ---------------------------------------------------------------- WebSocket


async def _serve_ws(settings: Settings, gate: _Gate, stop: asyncio.Event, ready: Callable[[str], None]) -> None:
    agents: dict[ServerConnection, Side] = {}

    async def asked(connection: ServerConnection, request: Request) -> Response | None:
        refusal = gate.refuses(request)
        if refusal is not None:
            return connection.respond(*refusal)
        headers = Headers(
            (k, v)
            for k, v in request.headers.raw_items()
            if k.lower() not in NOT_PASSED_ON and not (settings.token and k.lower() == "authorization")
        )
        wanted = [
            Subprotocol(name.strip())
            for value in request.headers.get_all("Sec-WebSocket-Protocol")
            for name in value.split(",")
        ]
        try:
            agents[connection] = await gate.agent(request.path, headers, wanted)
        except InvalidStatus as error:
            answer = error.response
            return connection.respond(HTTPStatus(answer.status_code), (answer.body or b"").decode("utf-8", "replace"))
        except (OSError, InvalidHandshake, TimeoutError) as error:
            return connection.respond(HTTPStatus.BAD_GATEWAY, f"the agent cannot be reached: {error}\n")
        return None

    def answered(connection: ServerConnection, request: Request, response: Response) -> Response | None:
        agent = agents.get(connection)
        theirs = agent.response_headers() if isinstance(agent, WsAgent) else None
        if theirs is not None and response.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
            for name, value in theirs.raw_items():
                if name.lower() not in NOT_PASSED_ON:
                    response.headers[name] = value
        return None

    async def connected(connection: ServerConnection) -> None:
        agent = agents.pop(connection)
        await join(FrameSide(connection), agent, gate.spool("ws"))

    def chosen(connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        agent = agents.get(connection)
        return agent.subprotocol() if isinstance(agent, WsAgent) else None

    async with ws_serve(
        connected,
        settings.listen.host,
        settings.listen.port,
        process_request=asked,
        process_response=answered,
        select_subprotocol=chosen,
        compression=None,
        max_size=LONGEST,
        ping_interval=None,
        server_header=None,
    ) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        ready(msgspec.structs.replace(settings.listen, port=port).uri(settings.listen.target or "/"))
        await stop.wait()
    for agent in agents.values():  # asked for by clients that never came through the handshake
        await agent.end(Ending(GOING_AWAY))
