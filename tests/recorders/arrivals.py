"""How files may reach a recorder, and how they may be damaged: whole, line by line, cut anywhere, with restarts, again.

A group is given as its contents: each source with its bytes, or with the rows of a document. Nothing here knows a harness.
"""

import json
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from asrd.capture import Capture
from asrd.convert import Streams, groups, take
from asrd.places import find_for, roots_of
from asrd.reading import read_lines, read_rows
from asrd.recorders.base import Recorded, Recorder, StreamKey
from asrd.records import (
    SOURCE,
    FileChange,
    Inference,
    Loss,
    Message,
    Record,
    Session,
    Text,
    ToolResult,
    encode,
    span_of,
)
from asrd.sources import Row, Source
from asrd.store.stream import held
from tests.golden import CAPTURES

Content = tuple[Source, bytes | list[Row]]
Kind = type[Recorder]


def cases_of(harness: str) -> list[str]:
    """Names of the captures of a harness."""
    return sorted(p.name for p in (CAPTURES / harness).iterdir() if (p / "home").is_dir())


def groups_of(recorder: Kind, home: Path) -> list[list[Content]]:
    """What the sources of a home hold, by group, sidecars first."""
    found: list[list[Content]] = []
    for group in groups(find_for(recorder, roots_of(recorder, home, {}), lambda path, reason: None)):
        contents: list[Content] = []
        for one in sorted(group, key=lambda f: (not f.source.sidecar, f.source.order, f.source.name)):
            lines = one.source.kind == "lines"
            contents.append((one.source, b"".join(read_lines(one, 0)) if lines else list(read_rows(one))))
        found.append(contents)
    return found


def record(
    recorder: Kind,
    contents: list[Content],
    *,
    cut: Callable[[bytes], Iterable[bytes]] = lambda data: [data],
    restart: Callable[[], bool] = lambda: False,
    recorded: Mapping[StreamKey, Recorded] | None = None,
    limit: int = 1 << 22,
) -> tuple[Streams, Capture]:
    """The streams that contents give, cut and restarted in these ways, and the capture at their end."""
    group = contents[0][0].group
    capture = Capture(recorder, group, recorded=recorded, limit=limit)
    streams: Streams = {}
    for source, content in contents:
        pieces: list[Any] = list(cut(content)) if isinstance(content, bytes) else [[row] for row in content]
        while pieces:
            piece = pieces.pop(0)
            if isinstance(piece, bytes):
                capture.receive_bytes(source, piece)
            else:
                capture.receive_rows(source, piece)
            take(streams, capture)
            if recorded is None and restart():
                unread = capture.pending(source) if isinstance(piece, bytes) else 0
                if unread:
                    pieces.insert(0, capture_tail(content, capture.offset(source), unread))
                capture = Capture(recorder, group, saved=capture.save(), limit=limit)
        if isinstance(content, bytes):
            capture.receive_settled(source)
            take(streams, capture)
    return streams, capture


def capture_tail(content: Any, offset: int, unread: int) -> bytes:
    """The bytes behind the last whole line, which a restart reads again."""
    return bytes(content[offset : offset + unread])


def streams_of(recorder: Kind, home: Path) -> Streams:
    """All streams of a home."""
    streams: Streams = {}
    for contents in groups_of(recorder, home):
        for key, records in record(recorder, contents)[0].items():
            streams.setdefault(key, []).extend(records)
    return streams


def lines_of(streams: Streams) -> dict[StreamKey, list[bytes]]:
    return {key: [encode(r) for r in records] for key, records in streams.items()}


# ---------------------------------------------------------------- the ways


def same_however_it_comes(recorder: Kind, home: Path, seed: str) -> None:
    """Whole, line by line, and cut anywhere with restarts between: the same records with the same ids."""
    chance = random.Random(seed)
    for contents in groups_of(recorder, home):
        whole = lines_of(record(recorder, contents)[0])

        by_line = lines_of(record(recorder, contents, cut=lambda d: d.splitlines(keepends=True))[0])
        anywhere = lines_of(
            record(recorder, contents, cut=lambda d: cut_anywhere(d, chance), restart=lambda: chance.random() < 0.3)[0]
        )

        assert by_line == whole
        assert anywhere == whole


def cut_anywhere(data: bytes, chance: random.Random) -> list[bytes]:
    cuts = sorted({0, len(data), *(chance.randrange(len(data) + 1) for _ in range(30))})
    return [data[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]


def goes_on_from_any_prefix(recorder: Kind, home: Path, seed: str) -> None:
    """The state is lost: with what the streams hold already, a run from the start gives exactly the rest."""
    chance = random.Random(seed)
    for contents in groups_of(recorder, home):
        whole = record(recorder, contents)[0]
        for _ in range(4):
            kept = {key: records[: chance.randrange(1, len(records) + 1)] for key, records in whole.items()}
            known = {key: remembered(records) for key, records in kept.items()}

            more = record(recorder, contents, recorded=known)[0]

            for key, records in whole.items():
                assert [encode(r) for r in [*kept[key], *more.get(key, [])]] == [encode(r) for r in records], key


def remembered(records: Iterable[Record]) -> Recorded:
    """What the store knows of a stream that holds these records."""
    return held((encode(r) for r in records), Path("stream"))


def sources_of(records: list[Record]) -> dict[str, str]:
    """Names of a stream's sources by their id in it."""
    header = records[0]
    assert isinstance(header, Session)
    found = {s.id: s.name for s in header.sources or []}
    for one in records[1:]:
        meta: Any = getattr(one, "meta", None) or {}
        if SOURCE in meta:
            reference = msgspec.to_builtins(meta[SOURCE])
            found[reference["id"]] = reference["name"]
    return found


# ---------------------------------------------------------------- accounts


def unaccounted(contents: list[Content], streams: Streams, capture: Capture) -> int:
    """How many lines and rows are neither in a record's span nor in a named skip (0 = each is in exactly one)."""
    items = 0
    for _, content in contents:
        if isinstance(content, bytes):
            items += content.count(b"\n") + (not content.endswith(b"\n"))
        else:
            items += len(content)
    places: set[tuple[Any, ...]] = set()
    for records in streams.values():
        names = sources_of(records)
        for one in records[1:]:
            span = span_of(one)
            assert span is not None
            places.add((names[span.source], span.start, span.key, span.rev))
    return items - len(places) - sum(capture.accounts()[0].values())


def mistakes(capture: Capture) -> list[str]:
    """A recorder's own exceptions; there are none, whatever comes."""
    return [name for name in capture.accounts()[1] if name.startswith("mistake:")]


# ---------------------------------------------------------------- damage


def lines_in(contents: list[Content]) -> list[tuple[int, int]]:
    """Where the lines of a group are: index of the content, number of the line."""
    return [
        (i, n)
        for i, (_, content) in enumerate(contents)
        if isinstance(content, bytes)
        for n in range(content.count(b"\n"))
    ]


def with_line(contents: list[Content], at: tuple[int, int], change: Callable[[bytes], bytes]) -> list[Content]:
    """The contents with one line made another."""
    index, number = at
    source, content = contents[index]
    assert isinstance(content, bytes)
    lines = content.split(b"\n")
    lines[number] = change(lines[number])
    return [*contents[:index], (source, b"\n".join(lines)), *contents[index + 1 :]]


def renamed(line: bytes) -> bytes:
    """A record of a type nobody has seen."""
    value: Any = json.loads(line)
    inside: list[Any] = [value, value.get("message"), value.get("event")]
    for holder in inside:
        if isinstance(holder, dict) and "type" in holder:
            holder["type"] = "never.seen"
    return json.dumps(value).encode()


def retyped(line: bytes, chance: random.Random) -> bytes:
    """One field somewhere has a value of another type."""
    value = json.loads(line)
    places: list[tuple[Any, Any]] = []

    def walk(inside: Any) -> None:
        names = cast("Iterable[Any]", inside if isinstance(inside, dict) else range(len(cast("list[Any]", inside))))
        for name in list(names):
            places.append((cast("Any", inside), name))
            if isinstance(inside[name], dict | list):
                walk(inside[name])

    walk(value)
    if places:
        holder, name = chance.choice(places)
        others: list[Any] = [7, "text", None, [], {}, True, 1.5, [1], {"a": 1}, ["text"], -1]
        holder[name] = chance.choice([o for o in others if type(o) is not type(holder[name])])
    return json.dumps(value).encode()


def damaged(line: bytes, chance: random.Random) -> bytes:
    """The line with one thing wrong: a type, a field, its end, its bytes, or one value for another line's."""
    match chance.randrange(5):
        case 0:
            return renamed(line)
        case 1:
            return line[: chance.randrange(1, len(line))]
        case 2:
            at = chance.randrange(len(line))
            return line[:at] + bytes([chance.choice((0xFF, 0xC3, 0x80, 0x00))]) + line[at + 1 :]
        case _:
            return retyped(line, chance)


def goes_on_whatever_is_wrong(recorder: Kind, home: Path, seed: str, times: int = 60) -> None:
    """One line at a time is damaged: each line is accounted for, the recorder makes no mistake, the rest is recorded."""
    chance = random.Random(seed)
    for contents in groups_of(recorder, home):
        places = lines_in(contents)
        for _ in range(times if places else 0):
            at = chance.choice(places)
            broken = with_line(contents, at, lambda line: damaged(line, chance))

            streams, capture = record(recorder, broken)

            # What was mended is said by a loss, and the line it was made is recorded or left out as any.
            mended = sum(isinstance(r, Loss) and r.reason not in ("malformed",) for rs in streams.values() for r in rs)
            assert -mended <= unaccounted(broken, streams, capture) <= 0, at
            assert mistakes(capture) == [], at
            assert all([r.seq for r in records] == list(range(len(records))) for records in streams.values())


def goes_on_past_a_line_that_is_too_long(recorder: Kind, home: Path) -> None:
    """A line longer than may be read is a loss with its place and digest; what else is recorded stays as it was."""
    contents = groups_of(recorder, home)[0]
    index, _ = lines_in(contents)[0]
    source, content = contents[index]
    assert isinstance(content, bytes)
    first, _, rest = content.partition(b"\n")
    long = b'{"type":"x","pad":"' + b"a" * (1 << 21) + b'"}'
    wide = [*contents[:index], (source, b"\n".join([first, long, rest])), *contents[index + 1 :]]

    streams, capture = record(recorder, wide, limit=1 << 20)
    whole, _ = record(recorder, contents)

    losses = [r for records in streams.values() for r in records if isinstance(r, Loss)]
    assert [(loss.reason, loss.span.end - loss.span.start) for loss in losses] == [("oversize", len(long))]
    assert unaccounted(wide, streams, capture) == 0
    assert said(streams) == said(whole)


def said(streams: Streams) -> list[str]:
    """All that was said, and what tools answered, in order."""
    found: list[str] = []
    for records in streams.values():
        for one in records:
            if isinstance(one, Message | ToolResult):
                found += [b.text for b in one.content or () if isinstance(b, Text)]
    return found


def of(kind: type[Any], records: Iterable[Any]) -> list[Any]:
    """The records of a kind."""
    return [r for r in records if isinstance(r, kind)]


def lineage_of(records: list[Record]) -> Any:
    """What the header says of where a session came from."""
    header = records[0]
    assert isinstance(header, Session)
    return header.lineage


def standing(streams: Streams, kind: type[Any]) -> list[Any]:
    """The records of a kind that count: no copies, none that a later one supersedes."""
    found: list[Any] = []
    for records in streams.values():
        gone = {r.supersedes for r in records if r.supersedes}
        found += [r for r in records if isinstance(r, kind) and r.copy_of is None and r.id not in gone]
    return found


def figures_of_responses(streams: Streams) -> list[tuple[int, int, int]]:
    """Input total, cache read and output of every response, sorted."""
    return sorted(
        (
            (r.usage.input or 0) + (r.usage.cache_read or 0) + (r.usage.cache_write or 0),
            r.usage.cache_read or 0,
            r.usage.output or 0,
        )
        for r in standing(streams, Inference)
        if r.usage is not None
    )


def edits(streams: Streams) -> list[tuple[str, str | None, str | None]]:
    return [
        (Path(c.path.path).name, c.before and c.before.sha256, c.after and c.after.sha256)
        for c in standing(streams, FileChange)
    ]
