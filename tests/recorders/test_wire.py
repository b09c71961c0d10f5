"""The wire format of Protocol Buffers: what is written comes back, and any bytes give fields or NotAMessage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrd.recorders import _wire
from tests.captures.wire import message


def test_a_message_gives_its_fields_by_number_in_order() -> None:
    data = message((1, "one"), (3, 7), (1, b"\xff"), (2, [(1, 300)]))

    found = _wire.fields(data)

    assert found == {1: [b"one", b"\xff"], 3: [7], 2: [b"\x08\xac\x02"]}
    assert (_wire.number(data, 2, 1), _wire.text(data, 1), _wire.inside(data, 1)) == (300, None, b"\xff")


def test_bytes_as_the_encoding_page_shows_them_are_read() -> None:
    data = bytes.fromhex("1a03089601")  # message Test3 { Test1 c = 3; } with c.a = 150

    value = _wire.number(data, 3, 1)

    assert value == 150


def test_numbers_below_zero_and_fixed_widths_are_read() -> None:
    data = bytes.fromhex("08ffffffffffffffffff01" + "1500000080" + "190000000000000080")

    found = _wire.fields(data)

    assert _wire.signed(_wire.number(data, 1)) == -1
    assert found[2] == [bytes.fromhex("00000080")]
    assert found[3] == [bytes.fromhex("0000000000000080")]


@pytest.mark.parametrize("data", ["0a05616263", "00", "0b", "08", "08ffffffffffffffffffff01", "0affffffffffffffffff01"])
def test_what_is_cut_or_no_message_is_said_to_be_none(data: str) -> None:
    with pytest.raises(_wire.NotAMessage):
        _wire.fields(bytes.fromhex(data))


def test_a_message_nobody_knows_is_told_by_number() -> None:
    data = message((4, [(2, "words\nmore")]), (9, b"\x00\xff"), (1, -2))

    told = _wire.plain(data)

    assert told["4"] == [{"2": ["words\nmore"]}]
    assert told["1"] == [-2]
    assert told["9"][0]["bytes"] == 2


@given(st.binary(max_size=400))
def test_any_bytes_are_fields_or_no_message(data: bytes) -> None:
    try:
        found = _wire.fields(data)
    except _wire.NotAMessage:
        found = None

    assert found is None or all(n > 0 for n in found)
    assert _wire.text(data, 1, 2, 3) is None or isinstance(_wire.text(data, 1, 2, 3), str)
    assert _wire.plain(data) is not None
