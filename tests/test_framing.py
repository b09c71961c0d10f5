"""Framing: every byte lies in one line, whatever the pieces it came in."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrd.framing import PREVIEW, LineFramer
from asrd.sources import Line, Oversize


def frame(*chunks: bytes, start: int = 0, limit: int = 1 << 20) -> list[Line | Oversize]:
    framer = LineFramer(start, limit)
    return [line for chunk in chunks for line in framer.receive(chunk)]


def test_a_line_has_its_place_without_the_newline() -> None:
    lines = frame(b"ab\ncde\n")

    assert lines == [Line(0, 2, b"ab"), Line(3, 6, b"cde")]


def test_a_line_cut_in_two_is_given_once_its_newline_came() -> None:
    framer = LineFramer()

    first = list(framer.receive(b"ab"))
    second = list(framer.receive(b"c\nd"))

    assert first == []
    assert second == [Line(0, 3, b"abc")]
    assert framer.tail() == b"d"
    assert framer.pending() == 1
    assert framer.offset == 4


def test_a_carriage_return_belongs_to_the_line_break() -> None:
    lines = frame(b"ab\r\n", b"c\r", b"\n", b"\r\n")

    assert lines == [Line(0, 2, b"ab"), Line(4, 5, b"c"), Line(7, 7, b"")]


def test_places_go_on_from_the_start_given() -> None:
    lines = frame(b"ab\n", start=100)

    assert lines == [Line(100, 102, b"ab")]


@pytest.mark.parametrize("chunks", [[b"x" * 20 + b"\nab\n"], [b"x" * 7, b"x" * 13, b"\na", b"b\n"]])
def test_a_line_over_the_limit_is_told_by_place_and_digest(chunks: list[bytes]) -> None:
    lines = frame(*chunks, limit=10)

    first, second = lines
    assert isinstance(first, Oversize)
    assert (first.start, first.end) == (0, 20)
    assert first.sha256 == hashlib.sha256(b"x" * 20).hexdigest()
    assert first.preview[:10] == b"x" * 10
    assert second == Line(21, 23, b"ab")


def test_a_line_over_the_limit_is_not_kept_in_memory() -> None:
    framer = LineFramer(limit=1000)

    for _ in range(100):
        assert list(framer.receive(b"x" * 100)) == []

    assert framer.tail() == b""
    assert framer.pending() == 10_000
    (line,) = framer.receive(b"\n")
    assert isinstance(line, Oversize)
    assert len(line.preview) <= PREVIEW
    assert line.end == 10_000


def test_a_torn_tail_taken_as_a_line_leaves_its_newline_as_an_empty_line() -> None:
    framer = LineFramer()
    assert list(framer.receive(b"ab\ncd")) == [Line(0, 2, b"ab")]

    tail = framer.take_tail()
    after = list(framer.receive(b"\nef\n"))

    assert tail == Line(3, 5, b"cd")
    assert after == [Line(5, 5, b""), Line(6, 8, b"ef")]


pieces = st.lists(st.binary(max_size=8) | st.sampled_from([b"\n", b"\r\n", b"ab\n", b"x" * 12]), max_size=12)


@given(pieces, st.integers(1, 20))
def test_lines_do_not_depend_on_how_the_bytes_were_cut(chunks: list[bytes], limit: int) -> None:
    whole = b"".join(chunks)

    given_whole = frame(whole, limit=limit)
    given_in_pieces = frame(*chunks, limit=limit)
    byte_by_byte = frame(*(whole[i : i + 1] for i in range(len(whole))), limit=limit)

    assert outline(given_in_pieces) == outline(given_whole)
    assert outline(byte_by_byte) == outline(given_whole)


def outline(lines: list[Line | Oversize]) -> list[tuple[str, int, int, bytes | str]]:
    return [
        ("line", one.start, one.end, one.data) if isinstance(one, Line) else ("big", one.start, one.end, one.sha256)
        for one in lines
    ]


@given(pieces)
def test_every_byte_lies_in_one_line_or_the_torn_tail(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    framer = LineFramer()

    lines = [line for chunk in chunks for line in framer.receive(chunk)]

    at = 0
    for line in lines:
        assert isinstance(line, Line)
        assert line.start == at
        assert whole[line.start : line.end] == line.data
        breaks = whole[line.end : line.end + 2]
        assert breaks.startswith(b"\n") or breaks == b"\r\n"
        at = line.end + (1 if breaks.startswith(b"\n") else 2)
    assert framer.tail() == whole[at:]
    assert framer.offset == at
    assert framer.pending() == len(whole) - at


@given(pieces, st.integers(0, 100))
def test_framing_again_from_the_offset_gives_the_rest(chunks: list[bytes], cut: int) -> None:
    whole = b"".join(chunks)
    framer = LineFramer()

    before = list(framer.receive(whole[:cut]))
    after = frame(whole[framer.offset :], start=framer.offset)

    assert before + after == frame(whole)
