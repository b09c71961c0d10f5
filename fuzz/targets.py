"""What is fuzzed, and what may come of it. A target takes any bytes; any other outcome than these is an AssertionError.

recorder.<harness>  records whose lines are UTF-8 JSON and follow one another without a gap (`seq`), each with a span of a
source; each line of input is a record, a named skip or a loss; the same again when it is cut and
restored anywhere. Never an exception.
framer              the bytes again, each in one line or oversize; the same however they were cut. Never an exception.
wire                requests or refusals; what is behind a bad line is still understood. Never an exception.
validate            findings with a rule that `docs/format.md` names. Never an exception.
frames              frames of ACP: the same bytes, or others with what was redacted counted; msgspec.DecodeError for what is
                        no JSON or holds a number out of range.
text                what a terminal shows: no control character, and for JSON the same value.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import msgspec

from asrd import text, validate, wire
from asrd.acp import frames
from asrd.capture import Capture
from asrd.framing import LineFramer
from asrd.recorders import load
from asrd.recorders.base import Recorder
from asrd.records import encode_lines
from asrd.sources import Line, Oversize, Row, Source

LIMIT = 4096
"""The longest line a target lets pass, so that oversize ones are tried too."""


def recorder_of(harness: str) -> Callable[[bytes], None]:
    """The target of one harness."""
    recorder = load()[harness]
    kinds = {place.kind for place in recorder.places}

    def target(data: bytes) -> None:
        if "lines" in kinds:
            whole = _streams(recorder, [data])
            cut = len(data) // 2
            assert _streams(recorder, [data[:cut], data[cut:]], again=True) == whole, "cut and restored it is another"
        if kinds - {"lines"}:
            _rows(recorder, data)

    return target


def _source(recorder: type[Recorder], kind: Any) -> Source:
    return Source(recorder.harness, "group", "group", "group", kind)


def _streams(recorder: type[Recorder], pieces: list[bytes], again: bool = False) -> dict[Any, bytes]:
    capture = Capture(recorder, "group", limit=LIMIT)
    source = _source(recorder, "lines")
    streams: dict[Any, bytes] = {}
    for number, piece in enumerate(pieces, 1):
        capture.receive_bytes(source, piece)
        _take(capture, streams)
        if again:
            at = capture.offset(source)
            capture = Capture(recorder, "group", limit=LIMIT, saved=capture.save())
            capture.receive_bytes(source, b"".join(pieces[:number])[at:])
            _take(capture, streams)
    return streams


def _rows(recorder: type[Recorder], data: bytes) -> None:
    kind = next(k for k in ("table", "tree", "document") if any(p.kind == k for p in recorder.places))
    capture = Capture(recorder, "group", limit=LIMIT)
    streams: dict[Any, bytes] = {}
    for number, part in enumerate(data.split(b"\0", 8)):
        values: dict[str, Any] = {}
        if kind == "table":
            try:
                found = json.loads(part)
            except (ValueError, RecursionError):
                found = part.decode("utf-8", "replace")
            values = cast("dict[str, Any]", found) if isinstance(found, dict) else {"id": number, "data": found}
        names = [q.table for p in recorder.places for q in p.queries] or ["message"]
        row = Row(names[number % len(names)], f"k{number}", f"rev{number}", values, b"" if values else part, number)
        capture.receive_rows(_source(recorder, kind), [row])
    _take(capture, streams)


def _take(capture: Capture, streams: dict[Any, bytes]) -> None:
    for command in capture.commands():
        before = streams.get(command.key, b"")
        data = encode_lines(command.records)
        for number, line in enumerate(data.splitlines(), before.count(b"\n")):
            record = json.loads(line.decode("utf-8"))
            assert record["seq"] == number, "seq has a gap"
        streams[command.key] = before + data


def framer(data: bytes) -> None:
    """The framer."""
    step = 1 + data[0] if data else 1
    found: list[list[tuple[int, int, bytes]]] = []
    for size in (step, max(1, len(data))):
        one = LineFramer(0, 64)
        lines: list[tuple[int, int, bytes]] = []
        for at in range(0, len(data), size):
            lines += [_as_line(item) for item in one.receive(data[at : at + size])]
        found.append(lines)
        assert one.offset + one.pending() == len(data), "bytes are missing"
        for start, end, held in lines:
            assert data[start:end] == held or len(held) < end - start, "a line holds other bytes"
    assert found[0] == found[1], "cut otherwise the lines are others"


def _as_line(item: Line | Oversize) -> tuple[int, int, bytes]:
    return (item.start, item.end, item.data if isinstance(item, Line) else b"")


def wires(data: bytes) -> None:
    """The wire."""
    connection = wire.Connection()
    for found in connection.receive(data):
        if isinstance(found, wire.Refused):
            json.loads(wire.refusal(found.id, found.code, found.message))
        else:
            assert isinstance(found.method, str)
    rest = list(connection.receive(b'\n{"jsonrpc":"2.0","id":"last","method":"status"}\n'))
    assert isinstance(rest[-1], wire.Request) and rest[-1].id == "last", "a bad line took a good one with it"


def validates(data: bytes) -> None:
    """`asrd validate`."""
    findings = list(validate.check(data.splitlines(keepends=True)))
    assert all(found.rule in validate.RULES for found in findings)


def frame(data: bytes) -> None:
    """Frames of ACP."""
    if not frames.whole(data):
        return  # passed on as it is, and recorded as what cannot be read
    try:
        redacted, count = frames.redact(data)
    except msgspec.DecodeError:  # JSON with a number that nothing holds: the proxy treats it as what is no JSON
        return
    assert count >= 0 and (count or redacted == data)


def texts(data: bytes) -> None:
    """Text for a terminal."""
    given = data.decode("utf-8", "surrogateescape")
    shown = text.inert(given)
    assert len(shown) == len(given) and text.inert(shown) == shown
    assert not any(ord(c) < 32 and c not in "\t\n" or 127 <= ord(c) < 160 for c in shown)
    assert "\n" not in text.one_line(given, 40) and text.columns(text.one_line(given, 40)) <= 40
    value = json.dumps(data.decode("utf-8", "replace"), ensure_ascii=False)
    assert json.loads(text.inert_json(value)) == json.loads(value)


TARGETS: dict[str, Callable[[bytes], None]] = {
    **{f"recorder.{harness}": recorder_of(harness) for harness in load()},
    "framer": framer,
    "wire": wires,
    "validate": validates,
    "frames": frame,
    "text": texts,
}
