"""A scripted model on loopback: it answers every request with the same words, in the wire format it was asked in.

Wire formats: Anthropic Messages, OpenAI Responses and Chat Completions, Gemini generateContent; streamed or whole. What
was asked is kept, in order. No answer calls a tool, so a program that is started headless ends after one.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import zstandard
from msgspec import Struct

ANSWER = "I have read the brief and go on from there."


class Asked(Struct):
    """One request: its path, and its body where that is JSON."""

    path: str
    body: Any = None

    def texts(self) -> Iterator[str]:
        """Every string in the body."""
        return strings(self.body)


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in cast("dict[str, Any]", value).values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from strings(one)


class ModelServer:
    """Serves until `close`. `asked`: the requests for an answer, in order; `others`: what else was asked."""

    def __init__(self, port: int = 0) -> None:
        self.asked: list[Asked] = []
        self.others: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.others.append(f"GET {self.path}")
                models = [{"id": "mock-1", "object": "model", "type": "model", "display_name": "mock-1"}]
                self.whole({"object": "list", "data": models, "models": []})

            def do_POST(self) -> None:
                path = self.path.split("?")[0]
                asked = Asked(path, body_of(self))
                body = cast("dict[str, Any]", asked.body or {})
                if path.endswith("/count_tokens") or path.endswith(":countTokens"):
                    self.whole({"input_tokens": 100, "totalTokens": 100})
                elif path.endswith("/messages"):
                    self.told(asked, body.get("stream"), anthropic_events(), anthropic())
                elif path.endswith("/responses"):
                    self.told(asked, body.get("stream"), responses_events(), response("completed"))
                elif path.endswith("/chat/completions"):
                    self.told(asked, body.get("stream"), chat_events(), chat())
                elif ":streamGenerateContent" in path or ":generateContent" in path:
                    self.told(asked, ":stream" in path, [("", gemini())], gemini())
                else:
                    outer.others.append(f"POST {self.path}")
                    self.whole({})

            def told(self, asked: Asked, stream: Any, events: list[tuple[str, Any]], whole: Any) -> None:
                outer.asked.append(asked)
                if not stream:
                    self.whole(whole)
                    return
                data = "".join(
                    (f"event: {name}\n" if name else "")
                    + f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"
                    for name, event in events
                ).encode()
                self.send(data, "text/event-stream")

            def whole(self, value: Any) -> None:
                self.send(json.dumps(value).encode(), "application/json")

            def send(self, data: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Serves no more."""
        self._server.shutdown()
        self._server.server_close()


def body_of(handler: BaseHTTPRequestHandler) -> Any:
    """The body of a request, unpacked; None where it is not JSON."""
    if handler.headers.get("Transfer-Encoding", "").lower() == "chunked":
        data = b""
        while (size := int(handler.rfile.readline().split(b";")[0], 16)) > 0:
            data += handler.rfile.read(size)
            handler.rfile.readline()
        handler.rfile.readline()
    else:
        data = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    packed = handler.headers.get("Content-Encoding", "")
    if packed == "gzip":
        data = gzip.decompress(data)
    elif packed == "zstd":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    try:
        return json.loads(data)
    except ValueError:
        return None


# ---------------------------------------------------------------- answers by wire format


def anthropic(text: str = ANSWER, stop: str | None = "end_turn") -> dict[str, Any]:
    return {
        "id": "msg_mock", "type": "message", "role": "assistant", "model": "mock-1", "stop_reason": stop,
        "stop_sequence": None, "content": [{"type": "text", "text": text}] if text else [],
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }  # fmt: skip


def anthropic_events() -> list[tuple[str, Any]]:
    delta = {"type": "text_delta", "text": ANSWER}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": anthropic("", None)},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    return [(str(e["type"]), e) for e in events]


def response(status: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": ANSWER, "annotations": []}
    item: dict[str, Any] = {
        "type": "message",
        "id": "msg_mock",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "id": "resp_mock", "object": "response", "status": status, "model": "mock-1",
        "output": [item] if status == "completed" else [],
        "usage": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, **details},
    }  # fmt: skip


def responses_events() -> list[tuple[str, Any]]:
    item = response("completed")["output"][0]
    place = {"item_id": "msg_mock", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response("in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **place, "part": {**item["content"][0], "text": ""}},
        {"type": "response.output_text.delta", **place, "delta": ANSWER},
        {"type": "response.output_text.done", **place, "text": ANSWER},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response("completed")},
    ]
    return [(str(e["type"]), {**e, "sequence_number": n}) for n, e in enumerate(events)]


CHAT_USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def chat() -> dict[str, Any]:
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "chatcmpl-mock", "object": "chat.completion", "created": 1, "model": "mock-1", "choices": [choice],
        "usage": CHAT_USAGE,
    }  # fmt: skip


def chat_events() -> list[tuple[str, Any]]:
    base = {"id": "chatcmpl-mock", "object": "chat.completion.chunk", "created": 1, "model": "mock-1"}
    delta = {"role": "assistant", "content": ANSWER}
    return [
        ("", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}),
        ("", {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        ("", {**base, "choices": [], "usage": CHAT_USAGE}),
        ("", "[DONE]"),
    ]


def gemini() -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "mock-1", "responseId": "gem_mock"}
