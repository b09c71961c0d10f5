"""Spans of every capture in the protocol's own messages, and over gRPC to a server that speaks it: nothing is lost."""

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from asrd.export import formats
from tests.export.captured import cases, expected, given

json_format: Any = pytest.importorskip("google.protobuf.json_format")
grpc: Any = pytest.importorskip("grpc")
messages: Any = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
service: Any = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc")


class Server:
    """A collector's trace service: keeps what it is sent."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self._server = grpc.server(ThreadPoolExecutor(1))
        service.add_TraceServiceServicer_to_server(self, self._server)
        self.port: int = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def Export(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        return messages.ExportTraceServiceResponse()

    def close(self) -> None:
        self._server.stop(0).wait()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


def request_of(line: bytes) -> Any:
    """A line as the message that is sent. OTLP/JSON has ids in hex where protobuf's own mapping has base64; unknown keys fail."""
    found = json.loads(line)
    for span in (s for r in found["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return json_format.ParseDict(found, messages.ExportTraceServiceRequest())


def figure(span: Any, name: str) -> int:
    return sum(a.value.int_value for a in span.attributes if a.key == name)


@pytest.mark.parametrize("case", cases())
def test_spans_arrive_over_grpc_with_the_tokens_of_the_capture(case: str, server: Server) -> None:
    sent = [request_of(line) for file in formats()["otel"].make(given(case)) for line in file.data.splitlines()]
    server.requests.clear()

    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        for request in sent:
            service.TraceServiceStub(channel).Export(request, timeout=10)

    spans = [s for r in server.requests for part in r.resource_spans for scope in part.scope_spans for s in scope.spans]
    told = tuple(sum(figure(s, f"gen_ai.usage.{name}_tokens") for s in spans) for name in ("input", "output"))
    assert server.requests == sent and told == expected(case)
    assert all(len(s.trace_id) == 16 and len(s.span_id) == 8 and len(s.parent_span_id) in (0, 8) for s in spans)


def test_a_key_that_the_protocol_does_not_know_is_refused() -> None:
    with pytest.raises(json_format.ParseError):
        request_of(b'{"resourceSpans": [], "more": 1}')
