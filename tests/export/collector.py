"""An OTLP/HTTP collector that keeps what it is sent, as bytes that the protocol's own decoder then reads."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Collector:
    """Listens on the loopback; `bodies` is what came, `answer` the status it gives."""

    def __init__(self, answer: int = 200) -> None:
        self.bodies: list[tuple[str, str | None, bytes]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                collector.bodies.append((self.path, self.headers["Content-Type"], data))
                self.send_response(answer)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
