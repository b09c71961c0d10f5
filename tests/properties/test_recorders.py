"""What every recorder owes, over all recorders and all captures: total, deterministic, accounted, resumable, local."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from asrd.capture import Capture
from asrd.convert import Streams
from asrd.recorders import load
from asrd.recorders.base import Recorder
from asrd.sources import Line, Row, Source
from tests.golden import CAPTURES, cases
from tests.recorders.arrivals import (
    Content,
    damaged,
    goes_on_from_any_prefix,
    groups_of,
    lines_in,
    lines_of,
    mistakes,
    record,
    same_however_it_comes,
    with_line,
)

Kind = type[Recorder]
RECORDERS = sorted(load())
QUICK = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)


def pairs() -> list[tuple[str, str]]:
    """Each capture with each recorder that finds something in it."""
    return [
        (name, case)
        for case in cases()
        for name, recorder in load().items()
        if groups_of(recorder, CAPTURES / case / "home")
    ]


PAIRS = pairs()


def home(case: str) -> Path:
    return CAPTURES / case / "home"


def example(name: str) -> list[Content]:
    """The first group of sources of the recorder's first capture."""
    case = next(case for recorder, case in PAIRS if recorder == name)
    return groups_of(load()[name], home(case))[0]


def whole(recorder: Kind, contents: list[Content]) -> tuple[Streams, Capture]:
    """The streams of these contents, with what must hold of any streams."""
    streams, capture = record(recorder, contents)
    for key, records in streams.items():
        assert [r.seq for r in records] == list(range(len(records))), key
        assert [r.id for r in records] == ["h" if not n else f"r{n}" for n in range(len(records))], key
        assert recorder.secondary or key.agent == recorder.harness
    for lines in lines_of(streams).values():
        for line in lines:
            line.decode("utf-8")
            assert b"\n" not in line
            assert line == line.strip() and json.loads(line)["type"]
    return streams, capture


def passed_over(recorder: Kind, contents: list[Content]) -> list[bytes]:
    """The items that became neither a record nor a named skip (a loss and a native record are records)."""
    capture = Capture(recorder, contents[0][0].group)
    left: list[bytes] = []
    for source, content in contents:
        for item in lines_with_ends(content) if isinstance(content, bytes) else content:
            skipped = sum(capture.accounts()[0].values())
            if isinstance(item, bytes):
                capture.receive_bytes(source, item)
                capture.receive_settled(source)
            else:
                capture.receive_rows(source, [item])
            if not capture.commands() and sum(capture.accounts()[0].values()) == skipped:
                left.append(item if isinstance(item, bytes) else item.data or repr(item.values).encode())
    return left


def lines_with_ends(data: bytes) -> list[bytes]:
    *lines, tail = data.split(b"\n")
    return [line + b"\n" for line in lines] + ([tail] if tail else [])


def test_every_recorder_has_a_capture() -> None:
    assert {name for name, _ in PAIRS} == set(RECORDERS)


@pytest.mark.parametrize(("name", "case"), PAIRS, ids=lambda v: v)
def test_every_item_of_a_capture_is_accounted_for_without_a_mistake(name: str, case: str) -> None:
    recorder = load()[name]

    for contents in groups_of(recorder, home(case)):
        assert passed_over(recorder, contents) == []
        assert mistakes(whole(recorder, contents)[1]) == []


@pytest.mark.parametrize(("name", "case"), PAIRS, ids=lambda v: v)
def test_equal_bytes_give_equal_records_however_they_come(name: str, case: str) -> None:
    same_however_it_comes(load()[name], home(case), f"{name} {case}")


@pytest.mark.parametrize(("name", "case"), PAIRS, ids=lambda v: v)
def test_a_stream_that_holds_a_part_is_gone_on_with(name: str, case: str) -> None:
    goes_on_from_any_prefix(load()[name], home(case), f"{name} {case}")


@pytest.mark.parametrize(("name", "case"), PAIRS, ids=lambda v: v)
def test_one_damaged_item_costs_no_other(name: str, case: str) -> None:
    recorder = load()[name]
    chance = random.Random(f"{name} {case}")

    for contents in groups_of(recorder, home(case))[:3]:
        for _ in range(6):
            broken = broken_somewhere(contents, chance)

            assert passed_over(recorder, broken) == []
            assert mistakes(whole(recorder, broken)[1]) == []


def broken_somewhere(contents: list[Content], chance: random.Random) -> list[Content]:
    """The contents with one line, document or row damaged."""
    places = lines_in(contents)
    rows = [(i, n) for i, (_, content) in enumerate(contents) if isinstance(content, list) for n in range(len(content))]
    if places and (not rows or chance.random() < 0.5):
        return with_line(contents, chance.choice(places), lambda line: damaged(line, chance) if line else line)
    if not rows:
        return contents
    index, number = chance.choice(rows)
    source, content = contents[index]
    assert isinstance(content, list)
    changed = [*content[:number], wrong_row(content[number], chance), *content[number + 1 :]]
    return [*contents[:index], (source, changed), *contents[index + 1 :]]


def wrong_row(row: Row, chance: random.Random) -> Row:
    """A document with damaged bytes, or a row with a value of another kind, cut JSON, or a column less."""
    if row.data:
        data = damaged(row.data, chance) if row.data.lstrip().startswith(b"{") else row.data[: len(row.data) // 2]
        return Row(row.table, row.key, "other", {}, data, row.start)
    values = dict(row.values)
    column = chance.choice(sorted(values))
    match chance.randrange(4):
        case 0:
            del values[column]
        case 1 if isinstance(values[column], str):
            values[column] = values[column][: len(values[column]) // 2]
        case 2:
            values[column] = None
        case _:
            values[column] = chance.choice([7, "text", b"\xff\x00", 1.5, "{}", "[1]", -(2**63)])
    return Row(row.table, row.key, "other", values, b"", row.start)


# ---------------------------------------------------------------- any bytes at all


def as_line(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "replace")


json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=8), inside, max_size=4),
    max_leaves=12,
)
json_lines: Any = json_values.map(as_line)


def known_lines(name: str) -> Any:
    """Lines of the recorder's captures, some with parts of one put into another."""
    lines = [
        line
        for _, content in example(name)
        for line in (content.split(b"\n") if isinstance(content, bytes) else [row.data for row in content])
        if line
    ][:60] or [b"{}"]
    picked: Any = st.sampled_from(lines)
    return picked | st.tuples(picked, picked, st.integers(0, 400), st.integers(0, 400)).map(
        lambda t: t[0][: t[2]] + t[1][t[3] :]
    )


@pytest.mark.parametrize("name", RECORDERS)
@QUICK
@given(data=st.data())
def test_any_bytes_give_records_and_never_an_exception(name: str, data: st.DataObject) -> None:
    recorder = load()[name]
    source, content = example(name)[0]
    items = data.draw(st.lists(st.binary(max_size=60) | json_lines | known_lines(name), max_size=12), "lines")

    contents: list[Content]
    if isinstance(content, bytes):
        contents = [(source, b"".join(item.replace(b"\n", b" ") + b"\n" for item in items))]
    elif source.kind == "table":
        contents = [(source, [any_row(data, row) for row in content[:6]])]
    else:
        contents = [
            (
                source,
                [
                    Row(r.table, r.key, str(n), {}, d or b" ")
                    for n, (r, d) in enumerate(zip(content, items, strict=False))
                ],
            )
        ]

    assert passed_over(recorder, contents) == []
    assert mistakes(whole(recorder, contents)[1]) == []


def any_row(data: st.DataObject, row: Row) -> Row:
    """The row with some values that are anything."""
    anything = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=9) | st.binary(max_size=9)
    others = data.draw(st.dictionaries(st.sampled_from(sorted(row.values)), anything | json_values.map(json.dumps)))
    return Row(row.table, row.key, "other", row.values | others, b"", row.start)


# ---------------------------------------------------------------- the driver, with a recorder that errs


@pytest.mark.parametrize("error", [KeyError, AssertionError, AttributeError, ZeroDivisionError, RecursionError])
def test_a_recorder_that_errs_leaves_a_loss_and_stops_nothing(error: type[Exception]) -> None:
    class Wrong(load()["codex"]):
        def receive(self, source: Source, item: Line | Row) -> None:
            if b"boom" in item.data:
                raise error("mistake")
            super().receive(source, item)

    source, content = example("codex")[0]
    assert isinstance(content, bytes)
    first, _, rest = content.partition(b"\n")

    contents: list[Content] = [(source, first + b'\n{"boom":1}\n' + rest)]
    streams, capture = record(Wrong, contents)
    (right,) = record(load()["codex"], [(source, content)])[0].values()
    (records,) = streams.values()

    assert [r.seq for r in records] == list(range(len(records)))
    assert len(records) == len(right) + 1
    assert passed_over(Wrong, contents) == []
    assert sum(n for name, n in capture.accounts()[1].items() if name.startswith(("mistake:", "loss:"))) > 0
