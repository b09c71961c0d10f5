"""What is counted depends on the streams alone: not on their order, not on the batches they came in, not on coming twice."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from asrd.ledger import Statement, choose
from asrd.recorders.base import StreamKey
from asrd.records import Record
from asrd.rollup import Fold, SessionRow
from asrd.store.disk import RealDisk
from asrd.store.index import Grown, Index, decode_or_none, key_of_file, stream_files
from asrd.store.stream import lines_of
from tests.homes import recorded
from tests.store.build import Made, child_of, copied
from tests.truth import CROSS, lay_out

HOMES = (
    "claude-code/S1-v1.0.98",
    "claude-code/S2",
    "claude-code/S3",
    "codex/S2-v1",
    "codex/S2-v2",
    "codex/S3",
    "opencode/S3",
    "pi/S3",
    "kimi-py/S2",
    CROSS,
)
Streams = list[tuple[StreamKey, Path, list[tuple[int, Record]]]]
"""Each stream with its file and its records, each with the bytes up to its end."""
Table = dict[str, list[Any]]


def streams_in(folder: Path) -> Streams:
    disk = RealDisk()
    found: Streams = []
    for path in stream_files(folder):
        key, size = key_of_file(disk, path), 0
        records: list[tuple[int, Record]] = []
        for line in lines_of(disk, path):
            size += len(line) + 1
            record = decode_or_none(line)
            assert record is not None
            records.append((size, record))
        assert key is not None
        found.append((key, path, records))
    disk.close()
    return found


def batches(streams: Streams, chance: random.Random) -> Iterator[list[Grown]]:
    """The streams in any order, each in parts, several growing in one batch."""
    left: Streams = [(key, path, list(records)) for key, path, records in streams]
    while left:
        chosen = chance.sample(left, chance.randint(1, min(3, len(left))))
        grown: list[Grown] = []
        for key, path, records in chosen:
            count = chance.randint(1, len(records))
            grown.append(Grown(key, path, records[count - 1][0], [r for _, r in records[:count]]))
            del records[:count]
        left = [one for one in left if one[2]]
        yield grown


def told(path: Path) -> Table:
    """All an index holds, without its own numbers for sessions."""
    with closing(sqlite3.connect(path)) as db:
        names = {
            n: f"{a}/{i}/{ns}" for n, a, i, ns in db.execute("SELECT id, agent, session_id, namespace FROM session")
        }
        found: Table = {}
        for table in ("session", "inference", "call", "turn", "link", "figure"):
            columns = [c[1] for c in db.execute(f"PRAGMA table_info({table})")]
            numbers = [i for i, c in enumerate(columns) if c in ("session", "owner", "who", "observed")]
            rows = [
                [names.get(v, v) if i in numbers and isinstance(v, int) else v for i, v in enumerate(row)]
                for row in db.execute(f"SELECT * FROM {table}").fetchall()
            ]
            if table == "session":
                rows = [row[1:] for row in rows]  # without the number itself
            if table == "figure":
                rows = [row for row in rows if row[columns.index("requests")] or row[columns.index("unmeasured")]]
            found[table] = sorted(rows, key=repr)
    return found


def indexed(work: Path, streams: Streams, folder: Path, chance: random.Random) -> Table:
    index = Index(work, folder)
    for grown in batches(streams, chance):
        index.add(grown)
    index.close()
    return told(work)


def same(ours: Table, theirs: Table) -> None:
    for table, rows in theirs.items():
        assert ours[table] == rows, table


@pytest.mark.parametrize("case", HOMES)
def test_the_index_depends_neither_on_order_nor_on_batches(case: str, tmp_path: Path) -> None:
    with recorded(lay_out(case, tmp_path), tmp_path / "store") as one:
        wanted = told(one.where.index)
        folder = one.where.streams
    streams = streams_in(folder)

    for seed in range(6):
        ours = indexed(tmp_path / f"index-{seed}.sqlite", streams, folder, random.Random(seed))

        same(ours, wanted)


@pytest.mark.parametrize("case", HOMES)
def test_an_index_made_anew_is_the_same(case: str, tmp_path: Path) -> None:
    with recorded(lay_out(case, tmp_path), tmp_path / "store") as one:
        wanted = told(one.where.index)
        folder = one.where.streams
    index = Index(tmp_path / "anew.sqlite", folder)
    disk = RealDisk()

    first, second = index.catch_up(disk), index.catch_up(disk)
    index.close()
    disk.close()

    assert (first, second) == (len(streams_in(folder)), 0)
    same(told(tmp_path / "anew.sqlite"), wanted)


@pytest.mark.parametrize("case", HOMES)
def test_importing_again_changes_nothing(case: str, tmp_path: Path) -> None:
    home = lay_out(case, tmp_path)
    with recorded(home, tmp_path / "store") as one:
        wanted, streams = told(one.where.index), one.streams()
        cursors = one.where.cursors
    cursors.unlink()

    with recorded(home, tmp_path / "store") as again:
        assert again.streams() == streams
        same(told(again.where.index), wanted)


def contested() -> list[Made]:
    """Sessions that state the same responses: forks, copies, a fork of a fork, an observer, an owner that is not here."""
    first = Made("a", started_at="2026-01-01T00:00:00Z").turn("t1").response("q1", 10, 5).call("c1", 0)
    fork = Made("b", started_at="2026-01-01T00:00:01Z", lineage=child_of("a", "forked_from")).turn("t1")
    fork.response("q1", 10, 7).call("c1", 0).response("q2", 20, 2)
    deeper = Made("c", started_at="2026-01-01T00:00:00Z", lineage=child_of("b", "forked_from")).response("q1", 10, 7)
    deeper.response("q2", 20, 2).response("q3", 1, 1, copy_of=copied("gone")).call("c9", copy_of=copied("gone"))
    watching = Made("w", agent="acp", scope="secondary").response("q1", 10, 5).link("observes", "a")
    stranger = Made("d", started_at="2025-01-01T00:00:00Z").response("q2", 20, 2, model="other")
    unmeasured = Made("e").response("q4", None, None).response("q5", 3, None)
    return [first, fork, deeper, watching, stranger, unmeasured]


def test_contested_responses_have_one_owner_in_any_order(tmp_path: Path) -> None:
    folder = tmp_path / "streams"
    made = contested()
    streams: Streams = [
        (m.key, folder / m.key.agent / f"{m.key.session_id}.asr.jsonl", list(enumerate(m.records, 1))) for m in made
    ]

    tables = [indexed(tmp_path / f"{n}.sqlite", streams, folder, random.Random(n)) for n in range(60)]

    for other in tables[1:]:
        same(other, tables[0])
    counted = [row for row in tables[0]["inference"] if row[-3]]
    assert len({row[1] for row in counted}) == len(counted)


def test_a_fold_in_parts_is_the_fold_of_all() -> None:
    for made in contested():
        row, parts = SessionRow(made.key.agent, made.key.session_id), SessionRow(made.key.agent, made.key.session_id)
        fold = Fold(row)
        for record in made.records:
            fold.add(record)
        fold.close()
        for record in made.records:
            piece = Fold(parts)
            piece.add(record)
            piece.close()

        assert parts == row


def test_a_choice_does_not_depend_on_the_order_of_statements() -> None:
    chance = random.Random(8)
    for _ in range(300):
        said = [
            Statement(
                session=n,
                session_id=f"s{n}",
                seq=chance.randint(1, 9),
                output=chance.choice([None, 1, 5, 5]),
                measured=chance.random() < 0.8,
                secondary=chance.random() < 0.2,
                copy_of=chance.choice([None, None, "s0", "gone"]),
                model=chance.choice(["m", "m", "n"]),
                at=chance.choice([None, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"]),
                started_at=chance.choice([None, "2026-01-01T00:00:00Z"]),
            )
            for n in range(chance.randint(1, 5))
        ]
        descends = {(a, b) for a in range(5) for b in range(a) if chance.random() < 0.4}

        choices = {repr(choose(chance.sample(said, len(said)), said_by(descends))) for _ in range(8)}

        assert len(choices) == 1


def said_by(pairs: set[tuple[int, int]]) -> Callable[[int, int], bool]:
    return lambda a, b: (a, b) in pairs
