"""The life of one source without any disk: bytes in, records out; what is lost is said once."""

from typing import Any

import msgspec
import pytest

from asrd.capture import Capture, lines_seen
from asrd.convert import Streams, take
from asrd.recorders.base import Recorder
from asrd.recorders.codex import RECORDER
from asrd.records import Gap, Loss, Message, Record, Text, span_of
from asrd.sources import Row, Source
from tests.properties.test_tailing import NAME, THREAD, meta, said

SOURCE = Source("codex", THREAD, NAME, f"sessions/{NAME}", "lines")


class Life:
    """A capture and all it said so far."""

    def __init__(self, recorder: type[Recorder] = RECORDER, **more: Any) -> None:
        self.capture = Capture(recorder, THREAD, **more)
        self.streams: Streams = {}

    def bytes(self, data: bytes) -> "Life":
        self.capture.receive_bytes(SOURCE, data)
        return self.take()

    def take(self) -> "Life":
        take(self.streams, self.capture)
        return self

    def restart(self) -> "Life":
        self.capture = Capture(RECORDER, THREAD, saved=self.capture.save())
        return self

    def all(self) -> list[Record]:
        return [r for records in self.streams.values() for r in records]

    def words(self) -> list[str]:
        return [b.text for r in self.all() if isinstance(r, Message) for b in r.content if isinstance(b, Text)]

    def gaps(self) -> list[tuple[str, int | None]]:
        return [(r.reason, r.bytes) for r in self.all() if isinstance(r, Gap)]


def test_a_line_cut_in_two_is_recorded_once() -> None:
    line = said(1)

    for cut in range(len(line) + 1):
        life = Life().bytes(meta()).bytes(line[:cut]).bytes(line[cut:])
        assert life.words() == ["word 1"]


def test_spans_are_the_bytes_a_record_was_made_from() -> None:
    data = meta() + said(1) + said(2)

    records = Life().bytes(data).all()

    spans = [span_of(r) for r in records if isinstance(r, Message)]
    assert [data[s.start : s.end] + b"\n" for s in spans if s] == [said(1), said(2)]


def test_a_torn_tail_waits_for_its_end() -> None:
    life = Life().bytes(meta() + said(1)[:-5])

    life.capture.receive_settled(SOURCE)

    assert life.take().words() == []
    assert life.capture.pending(SOURCE) == len(said(1)) - 5
    assert life.capture.offset(SOURCE) == len(meta())
    assert life.bytes(said(1)[-5:]).words() == ["word 1"]


def test_a_whole_object_without_a_newline_is_taken_once_when_it_settled() -> None:
    life = Life().bytes(meta() + said(1)[:-1])

    life.capture.receive_settled(SOURCE)
    life.take()
    assert life.words() == ["word 1"]
    life.restart().bytes(b"\n" + said(2))

    assert life.words() == ["word 1", "word 2"]
    assert life.capture.accounts()[0] == {"blank-line": 1}


def test_a_truncated_source_is_a_gap_and_known_lines_do_not_come_again() -> None:
    life = Life().bytes(meta() + said(1) + said(2))
    before = life.capture.read_to(SOURCE)

    life.capture.receive_truncated(SOURCE, 20)
    life.take().bytes(meta() + said(1) + said(3))

    assert life.gaps() == [("truncated", before - 20)]
    assert life.words() == ["word 1", "word 2", "word 3"]
    assert life.capture.accounts()[0]["line-seen-before"] == 2


def test_a_copy_elsewhere_says_nothing_new_whether_its_first_is_open_or_saved() -> None:
    first = Life().bytes(meta() + said(1))
    seen = first.capture.lines_seen(NAME)
    restarted = Life(saved=first.capture.save())

    copy = Life()
    copy.capture.receive_known(SOURCE, seen)
    copy.bytes(meta() + said(1) + said(2))

    assert len(seen) == 2 * 8
    assert lines_seen(first.capture.save(), NAME) == restarted.capture.lines_seen(NAME) == seen
    assert first.capture.lines_seen("other.jsonl") == b""
    assert copy.words() == ["word 2"]


def test_a_replaced_source_is_a_gap_also_after_a_restart() -> None:
    life = Life().bytes(meta() + said(1)).restart()

    life.capture.receive_replaced(SOURCE)
    life.take().restart().bytes(meta() + said(1) + said(2))

    assert life.gaps() == [("replaced", None)]
    assert life.words() == ["word 1", "word 2"]


def test_a_source_that_went_before_it_was_read_is_a_gap() -> None:
    life = Life().bytes(meta() + said(1) + said(2)[:10])

    life.capture.receive_gone(SOURCE, len(meta() + said(1)) + 10)

    assert life.take().gaps() == [("deleted", 10)]


def test_a_source_that_went_after_it_was_read_is_none() -> None:
    life = Life().bytes(meta() + said(1))

    life.capture.receive_gone(SOURCE, len(meta() + said(1)))

    assert life.take().gaps() == []


def test_a_state_of_another_revision_is_not_used() -> None:
    saved = Life().bytes(meta()).capture.save()

    class Later(RECORDER):
        revision = RECORDER.revision + 1

    with pytest.raises(msgspec.ValidationError, match="another revision"):
        Capture(Later, THREAD, saved=saved)


def test_a_line_longer_than_may_be_read_is_a_loss_and_the_next_is_recorded() -> None:
    life = Life(limit=1000).bytes(meta())
    long = b'{"pad":"' + b"x" * 5000 + b'"}\n'

    for at in range(0, len(long), 700):
        life.bytes(long[at : at + 700])
    life.bytes(said(1))

    (loss,) = [r for r in life.all() if isinstance(r, Loss)]
    assert (loss.reason, loss.span.end - loss.span.start) == ("oversize", len(long) - 1)
    assert life.words() == ["word 1"]


def test_rows_are_recorded_again_only_when_they_changed() -> None:
    received: list[str] = []

    class Rows(RECORDER):
        def receive(self, source: Source, item: Any) -> None:
            received.append(f"{item.key} {item.rev}")
            self.out.skip("counted")

    capture = Capture(Rows, THREAD)
    table = Source("codex", THREAD, NAME, "x.db", "table")
    capture.receive_rows(table, [Row("t", "1", "a", {}), Row("t", "2", "a", {})])
    capture.receive_rows(table, [Row("t", "1", "b", {}), Row("t", "2", "a", {})])
    again = Capture(Rows, THREAD, saved=capture.save())
    again.receive_rows(table, [Row("t", "1", "b", {}), Row("u", "2", "a", {})])

    assert received == ["1 a", "2 a", "1 b", "2 a"]


def test_what_each_stream_must_hold_is_told() -> None:
    life = Life().bytes(meta() + said(1))

    assert life.capture.expected() == {key: len(records) for key, records in life.streams.items()}
    assert life.capture.streams() == list(life.streams)
