"""A home's sources arriving in pieces, with restarts between, and after a cursor was lost."""

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from asrd.capture import Capture
from asrd.convert import Streams, groups, take
from asrd.places import Found, find
from asrd.reading import read_rows
from asrd.recorders import named
from asrd.recorders.base import Recorded, StreamKey
from asrd.records import encode
from asrd.sources import Line, Row
from tests.recorders.arrivals import remembered

Lines = dict[StreamKey, list[bytes]]


def groups_of(home: Path, harness: str) -> list[list[Found]]:
    """The groups of one harness, each in the order it is read."""
    found = groups(find(home, {}, lambda path, reason: None, harness))
    return [sorted(g, key=lambda f: (not f.source.sidecar, f.source.order, f.source.name)) for g in found]


def arriving(
    group: list[Found],
    chance: random.Random | None = None,
    recorded: Mapping[StreamKey, Recorded] | None = None,
) -> Streams:
    """The streams of a group; with `chance` in cuts of any size, rows a few at a time, restarted at any moment."""
    harness, name = group[0].source.harness, group[0].source.group
    capture = Capture(named(harness), name, recorded=recorded)
    streams: Streams = {}

    def settled() -> Capture:
        take(streams, capture)
        if chance is None or recorded is not None or chance.random() > 0.3:
            return capture
        return Capture(named(harness), name, saved=capture.save())

    for one in group:
        if one.source.kind != "lines":
            rows = list(read_rows(one))
            while rows:
                count = chance.randint(1, 4) if chance else len(rows)
                capture.receive_rows(one.source, rows[:count])
                rows = rows[count:]
                capture = settled()
            continue
        data = Path(one.path).read_bytes()
        at = 0
        while at < len(data):
            size = chance.choice((1, 30, 800, 9000)) if chance else len(data)
            capture.receive_bytes(one.source, data[at : at + size])
            capture = settled()
            at = capture.read_to(one.source)
        capture.receive_settled(one.source)
        take(streams, capture)
    return streams


def by_line(group: list[Found]) -> Streams:
    """The streams of a group whose files come line by line."""
    capture = Capture(named(group[0].source.harness), group[0].source.group)
    streams: Streams = {}
    for one in group:
        if one.source.kind != "lines":
            for row in read_rows(one):
                capture.receive_rows(one.source, [row])
        else:
            for line in Path(one.path).read_bytes().splitlines(keepends=True):
                capture.receive_bytes(one.source, line)
                take(streams, capture)
        take(streams, capture)
    return streams


def lines(streams: Streams) -> Lines:
    return {key: [encode(r) for r in records] for key, records in sorted(streams.items())}


def rest_after(group: list[Found], chance: random.Random) -> Iterator[tuple[Lines, Lines]]:
    """What is added to streams cut at random when the group is read again, beside what was cut off."""
    whole = arriving(group)
    kept = {key: records[: chance.randrange(1, len(records) + 1)] for key, records in whole.items()}
    again = arriving(group, recorded={key: remembered(records) for key, records in kept.items()})
    left = {key: records[len(kept[key]) :] for key, records in whole.items()}
    yield lines({k: v for k, v in again.items() if v}), lines({k: v for k, v in left.items() if v})


def same_however_it_comes(home: Path, harness: str, seed: str) -> None:
    """Whole, item by item, and cut anywhere with restarts between: the same records with the same ids."""
    chance = random.Random(seed)
    found = groups_of(home, harness)
    assert found
    for group in found:
        whole = lines(arriving(group))
        assert lines(by_line(group)) == whole
        for _ in range(3):
            assert lines(arriving(group, chance)) == whole


def goes_on_from_any_prefix(home: Path, harness: str, seed: str) -> None:
    """The state is lost: with what the streams hold already, a run from the start gives exactly the rest."""
    chance = random.Random(seed)
    found = groups_of(home, harness)
    assert found
    for group in found:
        for _ in range(5):
            for added, left in rest_after(group, chance):
                assert added == left


def accounted(group: list[Found]) -> list[str]:
    """Items of a group that became no record, no skip and no loss; what is unexpected, lost or a mistake."""
    harness, name = group[0].source.harness, group[0].source.group
    capture = Capture(named(harness), name)
    bad: list[str] = []
    for one in group:
        items: list[tuple[Line | Row, bytes]] = []
        if one.source.kind == "lines":
            data = Path(one.path).read_bytes()
            items = [(Line(0, 0, part), part + b"\n") for part in data.split(b"\n") if part]
        else:
            items = [(row, b"") for row in read_rows(one)]
        for item, data in items:
            skips = sum(capture.accounts()[0].values())
            if data:
                capture.receive_bytes(one.source, data)
            elif isinstance(item, Row):
                capture.receive_rows(one.source, [item])
            made = sum(len(c.records) for c in capture.commands())
            if not made and sum(capture.accounts()[0].values()) == skips:
                bad.append(f"{one.source.name}: {item!r:.200}")
    counts = capture.accounts()[1]
    return bad + [k for k in counts if k.startswith(("unexpected", "loss", "mistake"))]
