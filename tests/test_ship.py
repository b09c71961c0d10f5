"""What is shipped is the streams, byte for byte, once; and tables of many hosts give the exact totals, each response once."""

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from asrd.client import open_reader
from asrd.errors import ShipUnusable
from asrd.query import Stored
from asrd.rollup import SessionRow
from asrd.ship import FolderTarget, ObjectTarget, lying, mark, ship_streams, ship_tables, stream_at
from tests.export.captured import EXPECTED
from tests.golden import CAPTURES
from tests.homes import Recorded, recorded

DOCUMENT = Path(__file__).parents[1] / "docs" / "fleet.md"
KEY = bytes(range(32))


def shipped_streams(target: Any, key: bytes | None = None) -> set[bytes]:
    folders = {name.rpartition("/")[0] for name in target.names("streams")}
    return {stream_at(target, folder, key) for folder in folders}


def ship(one: Recorded, target: Any, host: str, key: bytes | None = None) -> int:
    return ship_streams(one.rows, one.rows.sessions(), target, host, key).parts


def test_streams_come_out_as_they_are_and_only_once(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "to")
    with recorded(CAPTURES / "claude-code/S2" / "home", tmp_path / "store") as one:
        first, again = ship(one, target, "a"), ship(one, target, "a")

        assert (first > 2, again) == (True, 0)
        assert shipped_streams(target) == set(one.streams().values())


def test_a_stream_that_grew_is_brought_on_from_where_it_was(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "to")
    with recorded(CAPTURES / "codex/S1" / "home", tmp_path / "store") as one:
        (stored,) = one.rows.sessions()
        whole = stored.row.bytes
        stored.row.bytes = len(b"\n".join(list(one.rows.lines(stored, 0))[:5])) + 1
        ship_streams(one.rows, [stored], target, "a")
        stored.row.bytes = whole

        ship_streams(one.rows, [stored], target, "a")

        assert len(list(target.names("streams"))) == 2
        assert shipped_streams(target) == set(one.streams().values())


class Lines:
    """A stream that is what it is told to be."""

    def __init__(self, *lines: bytes) -> None:
        self.held = list(lines)

    def lines(self, stored: Any, start: int) -> Iterator[bytes]:
        yield from self.held[start:]

    def ship(self, target: FolderTarget, key: bytes | None = None) -> int:
        stored: Any = Stored(1, SessionRow("x", "s", path="x/s.asr.jsonl"))
        return ship_streams(self, [stored], target, "a", key).parts  # type: ignore[arg-type]

    @property
    def whole(self) -> bytes:
        return b"".join(line + b"\n" for line in self.held)


def latest(target: FolderTarget, key: bytes | None = None) -> bytes:
    (lies,) = lying(target, "streams").values()
    return stream_at(target, lies.folder, key)


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize(
    "repaired",
    [
        (b"head", b"one", b"TWO", b"three"),
        (b"head", b"one", b"two"),
        (b"head", b"one", b"two and three"),
        (b"head", b"one", b"gap", b"gap", b"three", b"four"),
        (b"head", b"one", b"TWO", b"three", b"four"),
        (b"head",),
    ],
)
def test_a_stream_that_was_repaired_behind_its_header_is_brought_whole_again(
    tmp_path: Path, repaired: tuple[bytes, ...], key: bytes | None
) -> None:
    target = FolderTarget(tmp_path)
    before = Lines(b"head", b"one", b"two", b"three")
    before.ship(target, key)
    after = Lines(*repaired)

    first, again = after.ship(target, key), after.ship(target, key)

    assert (first, again) == (1, 0) and latest(target, key) == after.whole
    folders = sorted({name.rpartition("/")[0] for name in target.names("streams")})
    assert [stream_at(target, folder, key) for folder in folders] == [before.whole, after.whole]
    after.held.append(b"more")
    assert after.ship(target, key) == 1 and latest(target, key) == after.whole
    assert Lines(*before.held).ship(target, key) == 1 and latest(target, key) == before.whole  # the third time


def test_another_key_begins_anew_and_names_do_not_tell_what_is_encrypted(tmp_path: Path) -> None:
    target, other = FolderTarget(tmp_path), bytes(32)
    one = Lines(b"head", b"one")

    assert [one.ship(target, key) for key in (KEY, KEY, other, None)] == [1, 0, 1, 1]
    marks = [name.split("-")[-1][:16] for name in target.names("streams")]
    assert len(set(marks)) == 3 and mark(hashlib.sha256(one.whole), None) in marks


def test_a_part_that_is_not_of_the_stream_is_seen(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path)
    one = Lines(b"head", b"one")
    one.ship(target)
    one.held.append(b"two")
    one.ship(target)
    first, second = target.names("streams")
    folder = first.rpartition("/")[0]
    target.put(first, zstandard.ZstdCompressor().compress(b"head\nONE\n"))

    with pytest.raises(ShipUnusable, match="begins at 0 is not of"):
        stream_at(target, folder)
    (tmp_path / first).unlink()
    with pytest.raises(ShipUnusable, match="begins at 0 is missing"):
        stream_at(target, folder)
    assert second


def test_rows_that_are_written_in_parts_are_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    found: list[Any] = []
    with recorded(CAPTURES / "claude-code/S2" / "home", tmp_path / "store") as one:
        db = open_reader(one.where)
        for rows in (7, 100_000):
            monkeypatch.setattr("asrd.ship.ROWS", rows)
            target = FolderTarget(tmp_path / str(rows))
            told = ship_tables(db, one.rows, one.rows.sessions(), target, "a").rows
            files = {name: parquet.read_table(target.folder / name).to_pylist() for name in target.names("tables")}
            found.append((told, files))
        db.close()

    assert found[0] == found[1] and found[0][0]["records"] > 100
    assert sum(len(v) for k, v in found[0][1].items() if "/records/" in k) == found[0][0]["records"]


def test_encrypted_parts_hold_no_word_and_open_with_their_key_only(tmp_path: Path) -> None:
    target = FolderTarget(tmp_path / "to")
    with recorded(CAPTURES / "codex/S1" / "home", tmp_path / "store") as one:
        ship(one, target, "a", KEY)

        (name,) = target.names("streams")
        assert name.endswith(".enc") and target.get(name).startswith(b"ASRDE1")
        assert shipped_streams(target, KEY) == set(one.streams().values())
        with pytest.raises(ShipUnusable):
            shipped_streams(target, bytes(32))


def test_three_hosts_with_overlapping_copies_give_the_exact_totals_in_duckdb(tmp_path: Path) -> None:
    duckdb: Any = pytest.importorskip("duckdb")
    target = FolderTarget(tmp_path / "to")
    hosts = {
        "a": ["claude-code/S1", "claude-code/S2", "codex/S3"],
        "b": ["claude-code/S1", "codex/S3", "codex/S1"],
        "c": ["claude-code/S2", "codex/S1", "codex/S3"],
    }
    for host, cases in hosts.items():
        for case in cases:
            shutil.copytree(CAPTURES / case / "home", tmp_path / host, dirs_exist_ok=True)
        with recorded(tmp_path / host, tmp_path / f"store-{host}") as one:
            db = open_reader(one.where)
            ship_tables(db, one.rows, one.rows.sessions(), target, host)
            db.close()
    sql = "".join(re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)).replace(
        "TARGET", str(tmp_path / "to")
    )

    *views, question = [s for s in sql.split(";") if s.strip()]
    connection = duckdb.connect()
    for view in views:
        connection.execute(view)
    requests, total, output = connection.execute(question).fetchone()

    right = [EXPECTED[c] for c in ("claude-code/S1", "claude-code/S2", "codex/S1", "codex/S3")]
    assert (requests, total, output) == tuple(sum(r[n] or 0 for r in right) for n in range(3))
    naive = connection.execute("SELECT sum(output) FROM requests WHERE counted = 1").fetchone()[0]
    assert naive > output  # there was something to count once


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server: Any = pytest.importorskip("moto.server")
    one = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    one.start()
    host, port = one.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    boto: Any = pytest.importorskip("boto3")
    client = boto.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
    client.create_bucket(Bucket="fleet")
    yield "s3://fleet/agents"
    one.stop()


@pytest.mark.filterwarnings("default")
def test_streams_go_to_a_store_that_speaks_s3_and_resume_there(bucket: str, tmp_path: Path) -> None:
    target = ObjectTarget(bucket)
    with recorded(CAPTURES / "claude-code/S2" / "home", tmp_path / "store") as one:
        first, again = ship(one, target, "a"), ship(one, target, "a")

        assert (first > 2, again) == (True, 0)
        assert shipped_streams(target) == set(one.streams().values())
