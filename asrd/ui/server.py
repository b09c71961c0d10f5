"""The page over HTTP and its questions over WebSocket, on 127.0.0.1 alone.

Promises
    - A page must come with the cookie that the one-time link gave; a WebSocket must come from this very page (`Origin`).
    - A `Host` that is not this server is refused: a name that was made to point here reads nothing.
    - A page that asks nonsense, or never reads, harms itself alone.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Struct
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve

from asrd import answers, clock
from asrd.client import Client, open_reader
from asrd.errors import AsrdError, DaemonUnreachable, NotUnderstood
from asrd.paths import Folders
from asrd.prices import List
from asrd.store.rows import IndexRows
from asrd.ui import page, view

log = logging.getLogger("asrd")

LOOK = 1.0
"""Seconds between looks whether something was recorded, to tell the pages."""
ASKED_AT_ONCE = 4


class Asked(Struct):
    """A question of the page."""

    id: int
    method: str
    params: dict[str, Any] = {}


class Viewer:
    """Serves the page until `stop`. `url`: the link that opens it, once."""

    def __init__(self, folders: Folders, port: int = 0) -> None:
        self.folders = folders
        self._token: str | None = secrets.token_urlsafe(24)
        self._cookie = secrets.token_urlsafe(32)
        self._lock = threading.Lock()
        self._local = threading.local()
        self._pages: set[ServerConnection] = set()
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(ASKED_AT_ONCE, "asrd-ui")
        self._prices: List | None = None
        self._prices_read = False
        self._server: Server = serve(
            self._page, "127.0.0.1", port, process_request=self._request, server_header=None, max_size=1 << 16,
            compression=None,
        )  # fmt: skip
        self.port: int = self._server.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/?token={self._token}"

    def run(self) -> None:
        """Serves until `stop` is called."""
        looking = threading.Thread(target=self._look, name="asrd-ui-look", daemon=True)
        looking.start()
        self._server.serve_forever()
        self._stopped.set()
        looking.join()

    def stop(self) -> None:
        """Ends serving; pages are told by their connection's end."""
        self._stopped.set()
        for one in list(self._pages):
            with contextlib.suppress(OSError, ConnectionClosed):
                one.close(1001)
        self._server.shutdown()
        self._pool.shutdown(wait=False, cancel_futures=True)

    # ---------------------------------------------------------------- HTTP

    def _request(self, connection: ServerConnection, request: Request) -> Response | None:
        here = {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}
        host = request.headers.get_all("Host")
        if len(host) != 1 or host[0] not in here:
            return self._said(HTTPStatus.FORBIDDEN, "This server answers to 127.0.0.1 only.")
        parts = urlsplit(request.path)
        token = parse_qs(parts.query).get("token")
        if token and parts.path == "/" and self._use(token[0]):
            kept = f"asrd-{self.port}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"
            return self._answer(HTTPStatus.SEE_OTHER, b"", "text/plain", {"Location": "/", "Set-Cookie": kept})
        if not self._known(request):
            return self._said(
                HTTPStatus.FORBIDDEN, "This link opens once, in one browser. Start `asrd ui` again for a new one."
            )
        if parts.path == "/live":
            if request.headers.get("Origin") != f"http://{host[0]}":
                return self._said(HTTPStatus.FORBIDDEN, "Only the page itself may ask.")
            return None
        if parts.path not in page.FILES:
            return self._said(HTTPStatus.NOT_FOUND, "There is nothing here.")
        name, kind = page.FILES[parts.path]
        return self._answer(HTTPStatus.OK, page.content(name), kind)

    def _use(self, token: str) -> bool:
        """Whether this is the one-time token; it is none afterwards."""
        with self._lock:
            right = self._token is not None and hmac.compare_digest(token.encode(), self._token.encode())
            if right:
                self._token = None
            return right

    def _known(self, request: Request) -> bool:
        cookies: SimpleCookie = SimpleCookie()
        for line in request.headers.get_all("Cookie"):
            with contextlib.suppress(CookieError):
                cookies.load(line)
        found = cookies.get(f"asrd-{self.port}")
        return found is not None and hmac.compare_digest(found.value.encode(), self._cookie.encode())

    def _said(self, status: HTTPStatus, words: str) -> Response:
        return self._answer(status, (words + "\n").encode(), "text/plain; charset=utf-8")

    def _answer(self, status: HTTPStatus, body: bytes, kind: str, more: dict[str, str] | None = None) -> Response:
        given = {"Content-Type": kind, "Content-Length": str(len(body)), "Connection": "close"}
        return Response(
            status.value, status.phrase, Headers({**given, **page.headers(self.port), **(more or {})}), body
        )

    # ---------------------------------------------------------------- WebSocket

    def _page(self, connection: ServerConnection) -> None:
        followed: dict[int, Client] = {}
        self._pages.add(connection)
        try:
            for message in connection:
                try:
                    asked = msgspec.json.decode(message, type=Asked)
                except msgspec.MsgspecError:
                    connection.close(1007, "not a question")
                    return
                self._pool.submit(self._told, connection, asked, followed)
        except ConnectionClosed:
            pass  # it went away
        finally:
            self._pages.discard(connection)
            for client in list(followed.values()):
                client.close()

    def _told(self, connection: ServerConnection, asked: Asked, followed: dict[int, Client]) -> None:
        def send(**what: Any) -> None:
            connection.send(msgspec.json.encode({"id": asked.id, **what}), text=True)

        try:
            try:
                if asked.method == "records":
                    stored = view.find(self.rows(), self._ref(asked))
                    for part in view.records(self.rows(), stored, int(asked.params.get("from") or 0)):
                        send(part=part)
                    send(result={"records": stored.row.records})
                elif asked.method == "follow":
                    self._follow(connection, asked, followed, send)
                elif asked.method == "unfollow":
                    client = followed.pop(int(asked.params.get("follow") or 0), None)
                    if client is not None:
                        client.close()
                    send(result=None)
                else:
                    send(result=self.ask(asked.method, asked.params))
            except (AsrdError, msgspec.ValidationError, ValueError, TypeError, OSError, sqlite3.Error) as error:
                send(error=str(error))
        except (ConnectionClosed, OSError):
            pass  # it went away before it was answered
        except Exception:
            log.exception("%s could not be answered", asked.method)  # one question must not end the page

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The answer to one question of the page. Raises AsrdError."""
        rows = self.rows()
        methods: dict[str, Callable[[], Any]] = {
            "session": lambda: view.session(rows, msgspec.convert(params, view.Ref)),
            "record": lambda: view.record(rows, msgspec.convert(params["session"], view.Ref), int(params["seq"])),
            "search": lambda: view.search(rows, msgspec.convert(params["session"], view.Ref), str(params["text"])),
            "money": lambda: view.money(rows, msgspec.convert(params, view.Spending), self._list(), clock.now().date()),
            "totals": lambda: {"totals": rows.totals(), "daemon": self._daemon()},
        }
        if method in methods:
            return methods[method]()
        if method in ("sessions.list", "tree"):
            return answers.ask(rows, method, params)
        raise NotUnderstood(what=f"the method {method}")

    def _ref(self, asked: Asked) -> view.Ref:
        return msgspec.convert(asked.params.get("session"), view.Ref)

    def _daemon(self) -> bool:
        with contextlib.suppress(DaemonUnreachable):
            Client(self.folders.socket).close()
            return True
        return False

    def _list(self) -> List | None:
        with self._lock:
            if not self._prices_read:
                self._prices_read = True
                with contextlib.suppress(ImportError):
                    self._prices = List()
            return self._prices

    def rows(self) -> IndexRows:
        """The index, for this thread."""
        rows = getattr(self._local, "rows", None)
        if rows is None:
            rows = self._local.rows = IndexRows(open_reader(self.folders), self.folders.streams)
        return rows

    # ---------------------------------------------------------------- what is new

    def _follow(self, connection: ServerConnection, asked: Asked, followed: dict[int, Client], send: Any) -> None:
        """Passes on what the daemon records. `live` false: nobody does; the page asks again."""
        ref = self._ref(asked)
        try:
            client = Client(self.folders.socket)
            one = {"session": ref.session_id, "agent": ref.agent, "namespace": ref.namespace}
            client.ask("session.follow", {**one, "from": int(asked.params.get("from") or 0)})
            client.patient()
        except AsrdError:
            send(result={"live": False})
            return
        followed[asked.id] = client
        if connection not in self._pages:  # it went away meanwhile, and closed all it knew
            client.close()
            return
        send(result={"live": True, "follow": asked.id})

        def pass_on() -> None:
            with contextlib.suppress(AsrdError, ConnectionClosed, OSError, ValueError):
                while True:
                    told = client.receive()
                    if told.get("method") == "session.records":
                        fitted = [view.fit(msgspec.json.encode(r)) for r in told["params"]["records"]]
                        connection.send(msgspec.json.encode({"follow": asked.id, "records": fitted}), text=True)

        threading.Thread(target=pass_on, name="asrd-ui-follow", daemon=True).start()

    def _look(self) -> None:
        rows: IndexRows | None = None
        before: Any = None
        while not self._stopped.wait(LOOK):
            if not self._pages:
                continue
            try:
                rows = rows or IndexRows(open_reader(self.folders), self.folders.streams)
                totals = rows.totals()
            except (AsrdError, sqlite3.Error):
                rows = None
                continue
            if totals != before:
                if before is not None:
                    self._tell(totals)
                before = totals

    def _tell(self, totals: dict[str, int]) -> None:
        words = msgspec.json.encode({"changed": totals})
        for one in list(self._pages):
            with contextlib.suppress(ConnectionClosed, OSError):
                one.send(words, text=True)


__all__ = ["Viewer"]
