"""Answers over a Unix socket, for this user alone. Shell: bytes to `wire`, methods to `answers`.

Promises
    - The socket is 0600 in a 0700 folder, and the peer's uid is checked on top.
    - A client that sends nonsense, too much, or never reads, harms itself alone.
    - A follower gets each record once, in order, from the record it asks for; after a reconnect it asks on from its last.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import sqlite3
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import SocketStream, TaskStatus

from asrd import __version__, wire
from asrd.answers import METHODS, RecordsParams, SessionParams, ask, params_of, session_of, start_of
from asrd.errors import AsrdError, DaemonRefused, NotUnderstood
from asrd.paths import Folders, short_name
from asrd.recorders.base import StreamKey
from asrd.store import Grown
from asrd.store.disk import RealDisk, make_folder
from asrd.store.rows import IndexRows
from asrd.store.stream import near

log = logging.getLogger("asrd")

SEND_TIMEOUT = 30.0
"""Seconds a client may leave an answer unread before it is dropped."""
FOLLOW_CHUNK = 1 << 20
MOST_CLIENTS = 512


class Server:
    """The socket. `grown` is told what streams grew by; followers wait for it."""

    def __init__(
        self,
        folders: Folders,
        reader: Callable[[], sqlite3.Connection],
        status: Callable[[], dict[str, object]],
        own: Mapping[str, tuple[type[Any], Callable[[Any], Any]]] | None = None,
        passed: socket.socket | None = None,
    ) -> None:
        """`own`: methods that only the daemon can answer, with the struct of their parameters.

        `passed`: a listening socket that the service manager made and whose name stays its own.
        """
        self._passed = passed
        self.folders = folders
        self._reader = reader
        self._status = status
        self._own = own or {}
        self._local = threading.local()
        self._disk = RealDisk()
        self._waiting: dict[StreamKey, set[anyio.Event]] = {}
        self._sizes: dict[StreamKey, int] = {}
        self.asked: set[str] = set()
        """Methods that were asked for since the start."""
        self.clients = 0

    def grown(self, grown: list[Grown]) -> None:
        """Streams grew: their followers look."""
        for one in grown:
            waiting = self._waiting.get(one.key)
            if waiting:
                self._sizes[one.key] = one.size
                for event in waiting:
                    event.set()

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Answers until cancelled."""
        path = self.folders.socket
        make_folder(path.parent)
        listener = self._listen(path)
        try:
            task_status.started()
            async with listener:
                await listener.serve(self._client)
        finally:
            if self._passed is None:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)

    def _listen(self, path: Path) -> Any:
        from anyio._core._eventloop import get_async_backend  # anyio has no public way to take a bound Unix socket

        if self._passed is not None:
            if reached(self._passed.getsockname()):
                return get_async_backend().create_unix_listener(self._passed)
            log.warning("the socket that was passed has lost its name; answering at one of its own")
            self._passed.close()
            self._passed = None  # a daemon that was started by hand took the name, and removed it at its end
        path.unlink(missing_ok=True)  # the store's lock is held: no other daemon listens here
        with short_name(path) as name:
            raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            raw.setblocking(False)
            before = os.umask(0o177)
            try:
                raw.bind(name)
            finally:
                os.umask(before)
            raw.listen(MOST_CLIENTS)
        return get_async_backend().create_unix_listener(raw)

    async def _client(self, stream: SocketStream) -> None:
        async with stream:
            raw: Any = stream.extra_attributes[anyio.abc.SocketAttribute.raw_socket]()
            uid = peer_uid(raw)
            if uid is not None and uid != os.getuid():
                log.warning("refused a client of uid %s", uid)
                return
            if self.clients >= MOST_CLIENTS:
                with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await stream.send(wire.refusal(None, wire.ASRD, "too many clients"))
                return
            self.clients += 1
            try:
                await self._talk(stream)
            except* (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, ConnectionError):
                pass  # it went away, while asking or while it was told something
            except* Exception:
                log.exception("a conversation broke off")  # what went wrong for one client must not end the daemon
            finally:
                self.clients -= 1

    async def _talk(self, stream: SocketStream) -> None:
        connection = wire.Connection()
        sending = anyio.Lock()

        async def send(data: bytes) -> None:
            async with sending:
                with anyio.move_on_after(SEND_TIMEOUT) as late:
                    await stream.send(data)
                if late.cancelled_caught:
                    await anyio.aclose_forcefully(stream)
                    raise anyio.ClosedResourceError

        async with anyio.create_task_group() as tasks:
            following: dict[int, anyio.CancelScope] = {}
            try:
                async for chunk in stream:
                    for request in connection.receive(chunk):
                        if isinstance(request, wire.Refused):
                            await send(wire.refusal(request.id, request.code, request.message))
                        elif request.method == "session.follow":
                            await self._follow(request, send, tasks, following)
                        else:
                            data = await self._answer(request)
                            if data:
                                await send(data)
            finally:
                tasks.cancel_scope.cancel()

    async def _answer(self, request: wire.Request) -> bytes:
        ident = None if request.id is msgspec.UNSET else request.id
        try:
            result = await anyio.to_thread.run_sync(self._ask, request)
            data = wire.answer(ident, result)
        except AsrdError as error:
            data = refused(ident, error)
        except Exception as error:  # one bad question must not end the daemon
            log.exception("%s could not be answered", request.method)
            data = wire.refusal(ident, wire.INTERNAL, f"{type(error).__name__}: {error}")
        return b"" if request.id is msgspec.UNSET else data

    def _ask(self, request: wire.Request) -> Any:
        if request.method in METHODS:
            self.asked.add(request.method)
        if request.method == "status":
            return self.status()
        if request.method in self._own:
            struct, function = self._own[request.method]
            return function(params_of(struct, request.params))
        return ask(self.rows(), request.method, request.params)

    def rows(self) -> IndexRows:
        """The index, for this thread."""
        rows = getattr(self._local, "rows", None)
        if rows is None:
            rows = self._local.rows = IndexRows(self._reader(), self.folders.streams, self._disk)
        return rows

    def status(self) -> dict[str, Any]:
        """`status`."""
        return {
            "schema": "asrd.status/1",
            "running": True,
            "pid": os.getpid(),
            "version": __version__,
            "store": str(self.folders.store),
            "socket": str(self.folders.socket),
            "clients": self.clients,
            "totals": self.rows().totals(),
            "methods": sorted([*METHODS, *self._own, "status", "session.follow"]),
            **self._status(),
        }

    async def _follow(self, request: wire.Request, send: Any, tasks: Any, following: dict[int, Any]) -> None:
        ident = None if request.id is msgspec.UNSET else request.id
        try:
            params: RecordsParams = params_of(RecordsParams, request.params)
            start = start_of(params)
            stored = await anyio.to_thread.run_sync(lambda: session_of(self.rows(), params))
        except AsrdError as error:
            await send(refused(ident, error))
            return
        number = len(following) + 1
        following[number] = None
        row = stored.row
        key = StreamKey(row.agent, row.session_id, row.namespace)
        answer = {
            "schema": "asrd.follow/1",
            "subscription": number,
            "agent": row.agent,
            "sessionId": row.session_id,
            "namespace": row.namespace or None,
            "from": start,
        }
        await send(wire.answer(ident, answer))
        tasks.start_soon(self._feed, key, self.folders.streams / row.path, row.bytes, start, number, send)

    async def _feed(self, key: StreamKey, path: Path, size: int, start: int, number: int, send: Any) -> None:
        event = anyio.Event()
        waiting = self._waiting.setdefault(key, set())
        waiting.add(event)
        try:
            # What became durable between the look-up and the registration is asked for once more.
            size = max(size, await anyio.to_thread.run_sync(self._indexed, key))
            offset, seq = await anyio.to_thread.run_sync(near, self._disk, path, start, size)
            while True:
                size = max(size, self._sizes.get(key, 0))
                while offset < size:
                    upto = min(size, offset + FOLLOW_CHUNK)
                    lines, offset = await anyio.to_thread.run_sync(self._lines, path, offset, upto, size)
                    first = seq
                    seq += len(lines)
                    wanted = lines[max(0, start - first) :]
                    if wanted:
                        await send(
                            wire.notification(
                                "session.records",
                                {"subscription": number, "records": [msgspec.Raw(x) for x in wanted], "next": seq},
                            )
                        )
                await event.wait()
                waiting.discard(event)
                event = anyio.Event()
                waiting.add(event)
        finally:
            waiting.discard(event)
            if not waiting:
                self._waiting.pop(key, None)
                self._sizes.pop(key, None)

    def _lines(self, path: Path, offset: int, upto: int, size: int) -> tuple[list[bytes], int]:
        """Whole lines from an offset on, at least one where there is one, and where they end."""
        while True:
            data = self._disk.read(path, offset, upto - offset)
            end = data.rfind(b"\n") + 1
            if end or upto >= size:
                return data[:end].split(b"\n")[:-1], offset + end if end else size
            upto = min(size, upto + FOLLOW_CHUNK)

    def _indexed(self, key: StreamKey) -> int:
        for stored in self.rows().named(key.session_id):
            if stored.row.agent == key.agent and stored.row.namespace == key.namespace:
                return stored.row.bytes
        return 0


def refused(ident: int | str | None, error: AsrdError) -> bytes:
    """An error of ours as the wire says it."""
    code = wire.NO_METHOD if isinstance(error, NotUnderstood) else wire.ASRD
    reason = error.facts.get("reason") if isinstance(error, DaemonRefused) else None
    return wire.refusal(ident, code, str(reason or error), {"kind": type(error).__name__, "exitCode": error.exit_code})


def reached(name: str | bytes) -> bool:
    """Whether somebody listens at the name of a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.setblocking(False)
        try:
            one.connect(name)
        except BlockingIOError:  # so many wait there already
            return True
        except OSError:
            return False
        return True


def peer_uid(raw: socket.socket) -> int | None:
    """The uid of the process at the other end; None where the system does not say (the socket's mode holds then)."""
    if sys.platform == "linux":
        credentials = raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", credentials)[1]
    if sys.platform == "darwin":  # struct xucred: version, uid, …
        credentials = raw.getsockopt(0, 1, 76)
        return struct.unpack_from("2I", credentials)[1]
    return None


__all__ = ["Server", "SessionParams", "peer_uid", "short_name"]
