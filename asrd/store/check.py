"""Reads every stream and says what is whole. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from asrd.errors import StoreUnusable
from asrd.store.disk import Disk
from asrd.store.index import stream_files
from asrd.store.stream import lines_of


class Checked(Struct):
    """What was found of one stream. `whole`: bytes of its whole prefix; `torn`: bytes of its torn tail."""

    path: str
    records: int
    whole: int
    torn: int
    trouble: str | None = None


class _Head(Struct):
    seq: int
    id: str
    type: str


_head = msgspec.json.Decoder(_Head)


def check(disk: Disk, streams: Path) -> Iterator[Checked]:
    """Every stream of a store: each line a JSON record, the header first, `seq` without a hole, `id` as given."""
    for path in stream_files(streams):
        name = str(path.relative_to(streams))
        try:
            yield check_stream(disk, path, name)
        except StoreUnusable as error:
            yield Checked(name, 0, 0, 0, str(error.facts.get("reason", error)))


def check_stream(disk: Disk, path: Path, name: str) -> Checked:
    """One stream."""
    size = disk.size(path) or 0
    found = Checked(name, 0, 0, 0)
    for line in lines_of(disk, path):
        try:
            head = _head.decode(line)
        except msgspec.MsgspecError as error:
            found.trouble = f"byte {found.whole}: {error}"
            return found
        if head.seq != found.records:
            found.trouble = f"byte {found.whole}: seq {head.seq} where {found.records} should be"
            return found
        if head.id != (f"r{head.seq}" if head.seq else "h") or (head.seq == 0) != (head.type == "session"):
            found.trouble = f"byte {found.whole}: {head.type} with id {head.id} at seq {head.seq}"
            return found
        found.records += 1
        found.whole += len(line) + 1
    found.torn = size - found.whole
    if not found.records:
        found.trouble = "no header"
    return found
