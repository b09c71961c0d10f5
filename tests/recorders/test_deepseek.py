"""DeepSeek Harness: the story as its log tells it, once; forks copy, sub-agents name their parent, the cache only reconciles."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import zstandard

from asrd.convert import convert_home
from asrd.recorders._observed import content_of
from asrd.recorders.base import StreamKey
from asrd.recorders.deepseek import RECORDER
from asrd.records import FileChange, Inference, Message, Native, Text, ToolCall, Turn, UsageTotal
from asrd.sources import Source
from tests.captures.deepseek.make import PARENT, Log
from tests.figures import figures
from tests.recorders.arrivals import (
    Content,
    goes_on_from_any_prefix,
    goes_on_past_a_line_that_is_too_long,
    goes_on_whatever_is_wrong,
    groups_of,
    lineage_of,
    lines_of,
    mistakes,
    of,
    record,
    same_however_it_comes,
    unaccounted,
)
from tests.recorders.storied import home_of, streams_of, told, truth_of

CASES = ["deepseek/S1", "deepseek/S3"]
FORK = StreamKey("deepseek", "session-22222222-2222-4222-8222-222222222222")
CHILD = StreamKey("deepseek", "session-33333333-3333-4333-8333-333333333333")


def test_the_story_is_told_once_with_every_figure() -> None:
    (records,) = streams_of("deepseek/S1", "deepseek").values()
    truth = truth_of("deepseek/S1")

    given = told(records)

    # The edit fits the file with and without a newline at its end: no digest is certain, as a capture state says.
    assert given.pop("edits") == [["calc.py", None, None]]
    assert given.pop("answered") == truth["calls"]
    assert given == {k: v for k, v in truth.items() if k != "edits"}


def test_the_total_of_the_cache_is_the_sum_of_the_responses() -> None:
    (records,) = streams_of("deepseek/S1", "deepseek").values()
    (total,) = of(UsageTotal, records)

    usages = [r.usage for r in of(Inference, records) if r.usage]

    assert total.usage.input == sum(u.input for u in usages)
    assert total.usage.cache_read == sum(u.cache_read for u in usages)
    assert total.usage.output == sum(u.output for u in usages)


def test_a_turn_says_who_began_it_and_how_it_ended() -> None:
    (records,) = streams_of("deepseek/S1", "deepseek").values()

    turns = [(t.turn_id, t.phase, t.trigger, t.status) for t in of(Turn, records)]

    assert turns == [
        ("1", "start", "prompt", None),
        ("1", "end", None, "completed"),
        ("2", "start", "prompt", None),
        ("2", "end", None, "completed"),
    ]


def test_what_a_fork_inherits_is_a_copy_and_a_sub_agent_names_its_parent() -> None:
    streams = streams_of("deepseek/S3", "deepseek")
    truth = truth_of("deepseek/S3")

    copied = [r for r in streams[FORK] if r.copy_of]

    assert {r.copy_of.session_id for r in copied if r.copy_of} == {truth["parent"]}
    assert [r.inference_id for r in of(Inference, streams[FORK]) if not r.copy_of] == ["resp-8"]
    assert (lineage_of(streams[FORK]).relation, lineage_of(streams[CHILD]).relation) == ("forked_from", "spawned_by")
    assert lineage_of(streams[CHILD]).parent.session_id == truth["parent"]
    given = figures(streams)
    assert given == {k: truth[k] for k in ("requests", "input_total", "output")}


def test_a_log_of_format_3_beside_its_format_4_is_read_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(home_of("deepseek/S3"), home)
    (log,) = home.glob(".dsh/sessions/*/session-3333*/session.v4.jsonl")
    log.with_name("session.v3.jsonl").write_bytes(log.read_bytes().replace(b'"version":4', b'"version":3'))

    both = convert_home(home, only="deepseek")[CHILD]

    alone = streams_of("deepseek/S3", "deepseek")[CHILD]
    assert [m.content for m in of(Message, both)] == [m.content for m in of(Message, alone)]


def test_plain_and_compressed_logs_give_the_same(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(home_of("deepseek/S1"), home)
    (packed,) = home.rglob("session.v4.jsonl.zstd")
    with packed.open("rb") as file:
        data = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    packed.unlink()
    packed.with_name("session.v4.jsonl").write_bytes(data)

    plain = lines_of(convert_home(home, only="deepseek"))

    assert plain == lines_of(streams_of("deepseek/S1", "deepseek"))


def test_a_call_of_a_response_that_was_never_run_is_told() -> None:
    contents = groups_of(RECORDER, home_of("deepseek/S1"))[0]
    source, data = contents[0]
    assert isinstance(data, bytes)
    asked = data.index(b'"type":"assistant/message"')
    until = data.index(b"\n", asked) + 1

    streams, _ = record(RECORDER, [(source, data[:until])])

    (records,) = streams.values()
    assert [c.call_id for c in of(ToolCall, records)] == ["call_1"]


@pytest.mark.parametrize(
    ("shown", "old", "new", "told_of"),
    [
        (("a", "b"), "b\n", "c\n", ("a\nb\n", "a\nc\n")),  # only a file that ends in a newline has this
        (("a", "b"), "b", "c", (None, None)),
        (("a", "a\u2028b"), "x", "y", (None, None)),
        ((), "b\n", "c\n", (None, None)),
    ],
)
def test_what_an_edit_made_is_known_where_its_old_text_settles_how_the_file_ended(
    shown: tuple[str, ...], old: str, new: str, told_of: tuple[str | None, str | None]
) -> None:
    log = a_log_of_an_edit(shown, len(shown), old, new)

    (records,) = record(RECORDER, log)[0].values()

    (change,) = of(FileChange, records)
    assert (change.before, change.after) == tuple(content_of(t) if t is not None else None for t in told_of)


def test_a_read_of_a_part_of_a_file_says_nothing_of_the_whole() -> None:
    (records,) = record(RECORDER, a_log_of_an_edit(("a", "b"), 3, "b\n", "c\n"))[0].values()

    assert [(c.before, c.after) for c in of(FileChange, records)] == [(None, None)]


def a_log_of_an_edit(shown: tuple[str, ...], total: int, old: str, new: str) -> list[Content]:
    """A session that reads a file (these lines of so many) and edits it."""
    log = Log(id=PARENT)
    given: list[tuple[str, dict[str, str], Any]] = [
        (
            "read",
            {},
            {"lines": [{"number": n, "text": t} for n, t in enumerate(shown, 1)], "offset": 1, "totalLines": total},
        ),
        ("edit", {"old_string": old, "new_string": new}, {"diffs": []}),
    ]
    for number, (name, args, meta) in enumerate(given):
        args = {"file_path": "f.txt", **args}
        log.add("tool/call", {"callId": f"c{number}", "name": name, "arguments": json.dumps(args), "turn": 1})
        answer: dict[str, Any] = {"content": [], "isError": False, "toolCallId": f"c{number}"}
        log.add("tool/result", {"message": answer, "meta": meta, "turn": 1})
    name = "sessions/p/s/session.v4.jsonl"
    return [(Source("deepseek", PARENT, name, name, "lines", "1"), b"".join(log.lines()))]


def test_an_event_nobody_knows_is_kept_whole() -> None:
    contents = groups_of(RECORDER, home_of("deepseek/S1"))[0]
    source, data = contents[0]
    assert isinstance(data, bytes)
    more = b'{"type":"goal/change","seq":900,"time":1796015390000,"data":{"goal":"all"}}\n'

    streams, capture = record(RECORDER, [(source, data + more)])

    (records,) = streams.values()
    assert [(n.native_type, n.data) for n in of(Native, records)] == [("goal/change", {"goal": "all"})]
    assert mistakes(capture) == []


@pytest.mark.parametrize("case", CASES)
def test_the_same_however_it_comes(case: str) -> None:
    same_however_it_comes(RECORDER, home_of(case), case)
    goes_on_from_any_prefix(RECORDER, home_of(case), case)


@pytest.mark.parametrize("case", CASES)
def test_each_line_is_accounted_for(case: str) -> None:
    for contents in groups_of(RECORDER, home_of(case)):
        streams, capture = record(RECORDER, contents)

        assert unaccounted(contents, streams, capture) == 0
        assert [c for c in capture.accounts()[1] if c.startswith(("unexpected", "loss", "mistake"))] == []


def test_it_goes_on_whatever_is_wrong() -> None:
    goes_on_whatever_is_wrong(RECORDER, home_of("deepseek/S1"), "deepseek", 40)
    goes_on_past_a_line_that_is_too_long(RECORDER, home_of("deepseek/S3"))


def test_no_word_of_the_stream_of_chunks_is_said_twice() -> None:
    (records,) = streams_of("deepseek/S1", "deepseek").values()

    texts = [b.text for m in of(Message, records) for b in m.content if isinstance(b, Text)]

    assert len(texts) > 6
    assert len(texts) == len(set(texts))
