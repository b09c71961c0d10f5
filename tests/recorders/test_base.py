"""What all recorders share: damaged bytes are mended and said, ids are given once, paths and times are put as they are."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asrd.recorders.base import (
    HEADER_PLACE,
    Recorded,
    StreamKey,
    Writer,
    from_ms,
    is_text,
    mend,
    plain,
    preview,
    sha256,
    split_objects,
    within,
)
from asrd.records import (
    Agent,
    Gap,
    Lineage,
    Loss,
    Message,
    Native,
    Producer,
    Session,
    Text,
    WorkspaceRoot,
    encode,
    span_of,
)
from asrd.sources import Line, Source
from tests.properties.test_tailing import meta, said
from tests.test_capture import Life

SOURCE = Source("x", "g", "a.jsonl", "a.jsonl", "lines")


def header(ident: str) -> Session:
    return Session(
        format_version="0.1",
        agent=Agent(name="x"),
        session_id=ident,
        producer=Producer(name="asrd", version="0", method="converter"),
        lineage=Lineage(),
        scope="primary",
        profiles=["core"],
        content_level="full",
    )


@pytest.mark.parametrize(
    ("data", "mended", "why"),
    [
        (b'{"a":1}', b'{"a":1}', ""),
        (b'\xef\xbb\xbf{"a":1}', b'{"a":1}', "byte-order-mark"),
        (b'\0\0\0{"a":1}\0', b'{"a":1}', "nul-bytes"),
        (b'{"a":"\xff"}', b'{"a":"\xef\xbf\xbd"}', "not-utf-8"),
        (b'{"a":"\\ud83d x"}', b'{"a":"\\ufffd x"}', "lone-surrogate"),
        (b'{"a":"\\uDCB2"}', b'{"a":"\\ufffd"}', "lone-surrogate"),
        (b'{"a":"\\ud83d\\ude00"}', b'{"a":"\\ud83d\\ude00"}', ""),
        (b'{"a":"\\ud83d\\ud83d\\ude00"}', b'{"a":"\\ufffd\\ud83d\\ude00"}', "lone-surrogate"),
        (b'{"a":"\\\\ud83d"}', b'{"a":"\\\\ud83d"}', ""),
        (b'{"a":"\\\\\\ud83d"}', b'{"a":"\\\\\\ufffd"}', "lone-surrogate"),
        ('{"a":"ü😀"}'.encode(), '{"a":"ü😀"}'.encode(), ""),
    ],
)
def test_what_json_cannot_hold_is_replaced_and_named(data: bytes, mended: bytes, why: str) -> None:
    assert mend(data) == (mended, why)
    assert is_text(data) == (why in ("", "byte-order-mark", "nul-bytes"))
    json.loads(mended)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.binary(max_size=40) | st.text('\\ud8DcfF09aA"', max_size=30).map(str.encode))
def test_mended_bytes_are_text(data: bytes) -> None:
    mended, why = mend(data)

    assert is_text(mended)
    assert (mended == data) == (why == "")


@pytest.mark.parametrize(
    ("data", "pieces"),
    [
        (b'{"a":1}{"b":2}', [(0, b'{"a":1}'), (7, b'{"b":2}')]),
        ('{"a":"ü"} {"b":2}'.encode(), [(0, '{"a":"ü"}'.encode()), (11, b'{"b":2}')]),
        (b'{"a":1}', [(0, b'{"a":1}')]),
        (b'{"a":1}{"b":', []),
        (b"", []),
        (b"\xff", []),
    ],
)
def test_values_on_one_line_are_told_apart(data: bytes, pieces: list[tuple[int, bytes]]) -> None:
    assert list(split_objects(data)) == pieces


# ---------------------------------------------------------------- damaged lines through the driver


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\xef\xbb\xbf" + said(1), "byte-order-mark"),
        (b"\0" * 4096 + said(1), "nul-bytes"),
        (said(1).replace(b"word", b"word\xff"), "not-utf-8"),
        (said(1).replace(b"word", b"\\ud83d word"), "lone-surrogate"),
    ],
)
def test_a_damaged_line_is_a_loss_and_still_a_record(line: bytes, reason: str) -> None:
    life = Life().bytes(meta() + line + said(2))

    losses = [r for r in life.all() if isinstance(r, Loss)]
    assert [(loss.reason, loss.span.start) for loss in losses] == [(reason, len(meta()))]
    assert losses[0].sha256 == sha256(line[:-1])
    assert len(life.words()) == 2 and life.words()[0].endswith("1")
    assert all(encode(r).decode("utf-8") for r in life.all())


def test_two_objects_on_a_line_are_two_records() -> None:
    life = Life().bytes(meta() + said(1)[:-1] + said(2))

    assert life.words() == ["word 1", "word 2"]
    spans = [span_of(r) for r in life.all() if isinstance(r, Message)]
    assert [s.start - len(meta()) for s in spans if s] == [0, len(said(1)) - 1]


@pytest.mark.parametrize(
    ("line", "reason"),
    [(b"nonsense\n", "malformed"), (said(1)[:40] + b"\n", "malformed"), (b"[" * 100_000 + b"\n", "too-deep")],
)
def test_what_cannot_be_read_is_a_loss_with_its_place_and_digest(line: bytes, reason: str) -> None:
    life = Life().bytes(meta() + line + said(2))

    (loss,) = [r for r in life.all() if isinstance(r, Loss)]
    assert loss.reason in (reason, "malformed")
    assert (loss.span.start, loss.span.end) == (len(meta()), len(meta()) + len(line) - 1)
    assert loss.sha256 == sha256(line[:-1])
    assert life.words() == ["word 2"]


def test_a_loss_shows_no_secret() -> None:
    shown = preview(b'{"key": "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789", "x": "short"} ' * 9)

    assert "abcdefghijklmnopqrstuvwxyz" not in shown and "short" in shown
    assert len(shown) <= 200


def test_a_record_of_a_type_never_seen_is_kept_whole() -> None:
    life = Life().bytes(meta() + b'{"type":"quantum-state","payload":{"deep":[1,{"x":null}]}}\n')

    kept = [r for r in life.all() if isinstance(r, Native)]
    assert any("quantum-state" in r.native_type for r in kept)
    assert any(b'"deep":[1,{"x":null}]' in encode(r) for r in kept)
    assert any(name.startswith("unexpected:") for name in life.capture.accounts()[1])


# ---------------------------------------------------------------- the writer


def writing(recorded: dict[StreamKey, Recorded] | None = None) -> Writer:
    writer = Writer(recorded)
    writer.begin(SOURCE, Line(0, 5, b"first"), "digest")
    return writer


def test_records_have_ids_in_order_and_their_place() -> None:
    writer = writing()
    stream = writer.open(StreamKey("x", "1"), header("1"))

    writer.begin(SOURCE, Line(6, 9, b"abc"), "digest")
    assert [stream.add(Gap(reason="torn")), stream.add(Gap(reason="torn"))] == ["r1", "r2"]

    records = [r for _, r in writer.drain()]
    assert [(r.seq, r.id) for r in records] == [(0, "h"), (1, "r1"), (2, "r2")]
    assert [(s.start, s.end) for s in map(span_of, records[1:]) if s] == [(6, 9), (6, 9)]
    assert writer.drain() == []
    assert isinstance(records[0], Session) and records[0].sources and records[0].sources[0].fingerprint == "digest"


def test_a_source_that_the_header_did_not_name_is_introduced_once() -> None:
    writer = writing()
    stream = writer.open(StreamKey("x", "1"), header("1"))
    other = Source("x", "g", "b.jsonl", "b.jsonl", "lines")

    for start in (0, 10):
        writer.begin(other, Line(start, start + 3, b"abc"), "other")
        stream.add(Gap(reason="torn"))

    lines = [encode(r) for _, r in writer.drain()]
    assert [b'"name":"b.jsonl"' in line for line in lines] == [False, True, False, False]
    assert stream.sources == {"a.jsonl": "s1", "b.jsonl": "s2"}


def test_what_a_stream_holds_keeps_its_id_and_is_not_said_again() -> None:
    key = StreamKey("x", "1")
    held = Recorded(
        next_seq=3,
        sources={"a.jsonl": "s1"},
        fingerprints={"a.jsonl": "digest"},
        ids={HEADER_PLACE: ["h"], ("s1", 6, None, None): ["r1", "r2"]},
    )
    writer = writing({key: held})
    stream = writer.open(key, header("1"))

    writer.begin(SOURCE, Line(6, 9, b"abc"), "digest")
    given = [stream.add(Gap(reason="torn")) for _ in range(3)]

    assert given == ["r1", "r2", "r3"]
    assert [(r.seq, r.id) for _, r in writer.drain()] == [(3, "r3")]


def test_another_file_at_the_same_place_is_recorded_from_its_start() -> None:
    key = StreamKey("x", "1")
    ids: dict[Any, list[str]] = {HEADER_PLACE: ["h"], ("s1", 0, None, None): ["r1"]}
    writer = writing({key: Recorded(2, {"a.jsonl": "s1"}, {"a.jsonl": "another"}, ids)})

    stream = writer.open(key, header("1"))

    assert stream.add(Gap(reason="torn")) == "r2"


def test_a_writer_goes_on_where_it_was_saved() -> None:
    writer = writing()
    writer.open(StreamKey("x", "1"), header("1"))
    writer.skip("a-rule")
    writer.count("a-thing")

    later = writing()
    later.restore(writer.save())
    stream = later.stream(StreamKey("x", "1"))

    assert stream is not None and stream.add(Gap(reason="torn")) == "r1"
    assert (later.skips, later.counts) == ({"a-rule": 1}, {"a-thing": 1})


# ---------------------------------------------------------------- small helpers


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (1796013526528, "2026-11-30T04:38:46.528Z"),
        (1796013526528.9, "2026-11-30T04:38:46.528Z"),
        (0, None),
        (None, None),
        (-5, None),
        (1e30, None),
        (1, "1970-01-01T00:00:00.001Z"),
    ],
)
def test_milliseconds_are_times_or_nothing(ms: float | None, text: str | None) -> None:
    assert from_ms(ms) == text


@pytest.mark.parametrize(
    ("path", "root", "below"),
    [
        ("/w/app/src/x.py", "r1", "src/x.py"),
        ("/w/app", "r1", "."),
        ("/w/application/x", None, "/w/application/x"),
        ("src/../y.py", "r1", "y.py"),
        ("../y.py", None, "../y.py"),
        ("/w/app/", None, "/w/app/"),
    ],
)
def test_a_path_is_below_a_root_or_as_it_stands(path: str, root: str | None, below: str) -> None:
    place = within(path, [WorkspaceRoot(id="r1", path="/w/app")])

    assert (place.root, place.path) == (root, below) or (path, place.path) == ("/w/app/", "")
    assert within(path, None).root is None


def test_row_values_are_put_as_json_can_hold_them() -> None:
    assert plain({"a": b"x", "b": 1}) == {"a": {"bytes": 1, "sha256": sha256(b"x")}, "b": 1}
    assert sha256("\ud800") == sha256(b"\xed\xa0\x80")
    assert Message(role="user", content=[Text(text="x")]).content[0] == Text(text="x")
