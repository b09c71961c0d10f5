"""What is taken out of a message before it is kept, and what is not touched."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrd.acp.frames import redact, telling, whole

SECRET = "hunter2-xyzzy"


def kept(frame: Any) -> Any:
    data, _ = redact(json.dumps(frame).encode())
    return json.loads(data)


def test_a_message_without_a_secret_is_the_same_bytes() -> None:
    data = b'{ "method":"session/update" , "params":{"usage":{"totalTokens":5},"key":"k"}, "x":1e40 }'

    assert redact(data) == (data, 0)


@pytest.mark.parametrize("name", ["env", "headers", "httpHeaders", "environment", "ENV", "cookies"])
@pytest.mark.parametrize(
    "pairs", [{"A": SECRET}, [{"name": "A", "value": SECRET}], [f"A={SECRET}"], {"A": [SECRET, {"b": 1}]}]
)
def test_values_under_env_and_headers_are_hidden_and_names_stay(name: str, pairs: Any) -> None:
    text = json.dumps(kept({"deep": [{"in": {name: pairs}}]}))

    assert SECRET not in text and "A" in text


@pytest.mark.parametrize("name", ["apiKey", "api_key", "token", "clientSecret", "password", "Authorization"])
def test_a_value_whose_name_says_that_it_is_secret_is_hidden(name: str) -> None:
    assert kept({name: SECRET}) == {name: "[removed: assigned-secret]"}


def test_names_that_only_look_secret_keep_their_values() -> None:
    frame = {
        "sessionKey": "agent:main",
        "tokens": 5,
        "token_count": {"input_tokens": 3},
        "env": "production",
        "key": "v",
    }

    assert kept(frame) == frame


def test_what_an_agent_is_logged_in_with_is_hidden_but_for_the_method() -> None:
    frame = {"method": "authenticate", "params": {"methodId": "api-key", "_meta": {"x": {"y": SECRET}}, "n": 7}}

    assert kept(frame)["params"] == {
        "methodId": "api-key",
        "_meta": {"x": {"y": "[removed: credential]"}},
        "n": "[removed: credential]",
    }


@pytest.mark.parametrize(
    ("args", "there"),
    [
        (["--api-key", SECRET], ["--api-key", "[removed: argument]"]),
        ([f"--token={SECRET}"], ["--token=[removed: argument]"]),
        (["--port", "80"], ["--port", "80"]),
        (["--token", "--verbose"], ["--token", "--verbose"]),
        ([f"postgres://u:{SECRET}@h/d"], ["postgres://[removed: address]@h/d"]),
    ],
)
def test_secret_arguments_of_servers_are_hidden(args: list[str], there: list[str]) -> None:
    frame = {"method": "session/new", "params": {"mcpServers": [{"name": "s", "command": "c", "args": args}]}}

    assert kept(frame)["params"]["mcpServers"][0]["args"] == there


def test_redacting_twice_changes_nothing_more() -> None:
    once, count = redact(json.dumps({"env": {"A": SECRET}, "token": SECRET}).encode())

    assert count == 2
    assert redact(once) == (once, 0)


def test_a_word_at_the_edge_of_a_slice_is_seen() -> None:
    for before in range(256 * 1024 - 8, 256 * 1024 + 2):
        assert telling(b"x" * before + b"mcpServers" + b"x" * 100)


@pytest.mark.parametrize("data", [b"", b"{", b"nope", b'{"a":1} 2', b'"\xff"', b"[" * 100_000])
def test_what_is_no_json_is_not_whole(data: bytes) -> None:
    assert not whole(data)


NAMES = st.sampled_from(["env", "headers", "a", "token"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


@given(values)
def test_any_message_keeps_its_shape_and_loses_what_is_named(value: Any) -> None:
    frame = {"env": {"X": SECRET}, "v": value, "headers": [{"name": "n", "value": SECRET}]}

    data, count = redact(json.dumps(frame).encode())

    assert count >= 2 and SECRET.encode() not in data
    assert set(msgspec.json.decode(data)) == {"env", "v", "headers"}
