"""Converts native files to ASR records in memory: `asrd convert`, and the tests of recorders. No store, no daemon."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from asrd.capture import Capture
from asrd.errors import SourceUnreadable, UnknownHarness
from asrd.places import Found, find
from asrd.reading import read_lines, read_rows
from asrd.recorders import load, named
from asrd.recorders.base import Recorder, StreamKey
from asrd.records import Record
from asrd.sources import COMPRESSED, Place, Source

Streams = dict[StreamKey, list[Record]]


def convert_home(home: Path, env: Mapping[str, str] | None = None, only: str | None = None) -> Streams:
    """All streams that the harness files below a home folder give, each with its records in order."""
    streams: Streams = {}
    for group in groups(find(home, env or {}, lambda path, reason: None, only)):
        merge(streams, convert_group(named(group[0].source.harness), group))
    return streams


def groups(found: Iterable[Found]) -> list[list[Found]]:
    """Sources that feed one recorder, together and in their order."""
    by_group: dict[tuple[str, str], list[Found]] = {}
    for one in found:
        by_group.setdefault((one.source.harness, one.source.group), []).append(one)
    return list(by_group.values())


def convert_group(recorder: type[Recorder], group: list[Found], chunk: int = 1 << 20) -> Streams:
    """The streams one group of sources gives, read whole."""
    capture = Capture(recorder, group[0].source.group)
    streams: Streams = {}
    for one in sorted(group, key=lambda f: (not f.source.sidecar, f.source.order, f.source.name)):
        try:
            if one.source.kind == "lines":
                for data in read_lines(one, 0, chunk):
                    capture.receive_bytes(one.source, data)
                    take(streams, capture)
                capture.receive_settled(one.source)
            elif one.source.kind != "shared" or capture.streams():  # what it says needs a session to be said of
                capture.receive_rows(one.source, read_rows(one))
        except SourceUnreadable:
            continue
        take(streams, capture)
    return streams


def convert_path(path: Path, harness: str | None = None) -> Streams:
    """The streams of one native file, its harness told by its content or named.

    Raises UnknownHarness when no recorder, or more than one, claims it.
    """
    with open(path, "rb") as file:
        head = file.read(65536)
    if path.suffix in COMPRESSED:
        import zstandard

        head = zstandard.ZstdDecompressor().stream_reader(head).read(65536)
    claims = [harness] if harness else [n for n, r in load().items() if r.claims(head)]
    if len(claims) != 1:
        raise UnknownHarness(harness=f"for {path.name}", known=", ".join(claims or load()))
    recorder = named(claims[0])
    table = head.startswith(b"SQLite format 3")
    kinds = [p for p in recorder.places if (p.kind == "table") == table and not p.sidecar]
    place = kinds[0] if kinds else Place("*")
    relative = _below_a_root(recorder, path)
    located = recorder.locate(relative)
    name = located.name if located else path.name
    source = Source(recorder.harness, located.group if located else path.name, name, relative, place.kind)
    real = path.resolve()  # a person named it: where a link leads is their choice
    return convert_group(recorder, [Found(source, str(real), str(real.parent), place)])


def _below_a_root(recorder: type[Recorder], path: Path) -> str:
    parts = path.resolve().parts
    for root in recorder.roots:
        tail = Path(root.default).parts
        for i in range(len(parts) - len(tail), -1, -1):
            if parts[i : i + len(tail)] == tail:
                return os.path.join(*parts[i + len(tail) :])
    return path.name


def take(streams: Streams, capture: Capture) -> None:
    """Puts what a capture wants appended into the streams."""
    for command in capture.commands():
        streams.setdefault(command.key, []).extend(command.records)


def merge(streams: Streams, more: Streams) -> None:
    """Adds streams to streams."""
    for key, records in more.items():
        streams.setdefault(key, []).extend(records)
