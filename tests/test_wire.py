"""The line protocol: what is no request is refused, and the next is read, however the bytes come."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asrd import wire
from asrd.wire import LONGEST_REQUEST, Connection, Refused, Request

ASK = wire.request(1, "status", {"a": 1})


def received(*chunks: bytes) -> list[Request | Refused]:
    connection = Connection()
    return [one for chunk in chunks for one in connection.receive(chunk)]


def test_requests_are_read_however_they_are_cut() -> None:
    data = ASK + b"\n  \n" + wire.request(2, "usage", {})

    for cut in range(len(data)):
        found = received(data[:cut], data[cut:])
        assert [(r.id, r.method) for r in found if isinstance(r, Request)] == [(1, "status"), (2, "usage")]


@pytest.mark.parametrize(
    ("line", "code", "ident"),
    [
        (b"nonsense", wire.PARSE, None),
        (b"\xff", wire.PARSE, None),
        (b"[1]", wire.INVALID, None),
        (b'{"id":7}', wire.INVALID, 7),
        (b'{"id":"x","method":5}', wire.INVALID, "x"),
        (b'{"id":{},"method":"a"}', wire.INVALID, None),
        (b'{"method":5, nonsense', wire.PARSE, None),
        (b'{"id":1,"method":"a","params":[1]}', wire.INVALID, 1),
        (b"[" * 10_000, wire.PARSE, None),
        (b'{"method":"' + b"x" * LONGEST_REQUEST + b'"}', wire.INVALID, None),
    ],
)
def test_what_is_no_request_is_refused_and_the_next_is_read(line: bytes, code: int, ident: Any) -> None:
    refused, asked = received(line + b"\n" + ASK)

    assert isinstance(refused, Refused) and isinstance(asked, Request)
    assert (refused.code, refused.id) == (code, ident)
    assert asked.method == "status"


def test_a_request_without_end_is_refused_once_and_not_kept() -> None:
    connection = Connection()
    found = [one for _ in range(40) for one in connection.receive(b"x" * 100_000)]
    held = len(connection._held)  # type: ignore[reportPrivateUsage]

    found += connection.receive(b"the rest of it\n" + ASK)

    assert [type(one) for one in found] == [Refused, Request]
    assert held <= LONGEST_REQUEST


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(st.binary(max_size=60) | st.text(max_size=30).map(str.encode), max_size=8))
def test_any_bytes_are_refused_or_understood(chunks: list[bytes]) -> None:
    for one in received(*chunks):
        assert isinstance(one, Request | Refused)


def test_messages_are_one_line_of_json_rpc() -> None:
    lines = [
        wire.answer(1, {"text": "a\nb"}),
        wire.refusal("x", wire.ASRD, "no\nway", {"exitCode": 50}),
        wire.refusal(None, wire.PARSE, "?"),
        wire.notification("session.records", {"records": [msgspec.Raw(b'{"a":1}')]}),
        ASK,
    ]

    for line in lines:
        assert line.endswith(b"\n") and line.count(b"\n") == 1
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert json.loads(lines[1]) == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {"code": wire.ASRD, "message": "no\nway", "data": {"exitCode": 50}},
    }
    assert "data" not in json.loads(lines[2])["error"]
    assert json.loads(lines[3])["params"] == {"records": [{"a": 1}]}
