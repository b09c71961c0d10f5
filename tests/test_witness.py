"""What asrd sees of processes is a stream of its own, each fact once, and becomes an edge in the index."""

from pathlib import Path
from typing import Any

import pytest

from asrd import process
from asrd.client import open_reader
from asrd.paths import folders
from asrd.process import Inherited
from asrd.recorders.base import StreamKey
from asrd.records import Agent, Lineage, Producer, Record, Session, ToolCall, ToolResult
from asrd.store import Store
from asrd.store.index import stream_files
from asrd.store.rows import IndexRows
from asrd.validate import check
from asrd.witness import OBSERVER, Witness, link_of
from tests.homes import environment

OUTER, INNER = StreamKey("claude-code", "out"), StreamKey("codex", "in")
STARTED = 1_796_000_000_000_000


def told(call_id: str | None = None, chained: bool = True) -> Inherited:
    return Inherited("claude-code", "out", "CLAUDE_CODE_SESSION_ID", call_id, 30, STARTED, (21, 20, 1), chained)


def at(offset: int) -> str:
    record = link_of(INNER, told())
    assert record.meta is not None
    moment = record.meta["dev.asrd.observed"]["startedAt"]
    from datetime import datetime, timedelta

    return (
        (datetime.fromisoformat(moment.replace("Z", "+00:00")) + timedelta(seconds=offset))
        .isoformat()
        .replace("+00:00", "Z")
    )


def session(key: StreamKey, *records: Record) -> tuple[StreamKey, list[Record]]:
    head = Session(
        format_version="0.1", agent=Agent(name=key.agent), session_id=key.session_id, scope="primary", profiles=["core"],
        producer=Producer(name="asrd", version="0", method="converter"), lineage=Lineage(root=True), content_level="full",
        started_at=at(1) if key == INNER else at(-60),
    )  # fmt: skip
    given: list[Record] = [head, *records]
    for seq, record in enumerate(given):
        record.seq, record.id = seq, f"r{seq}" if seq else "h"
    return key, given


def outer(call: int, result: int | None) -> tuple[StreamKey, list[Record]]:
    records: list[Record] = [ToolCall(call_id="c1", name="Bash", kind="execute", input={}, at=at(call))]
    if result is not None:
        records.append(ToolResult(call_id="c1", linkage="exact", status="completed", at=at(result)))
    return session(OUTER, *records)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    found = Store(folders(environment(tmp_path / "home", tmp_path / "store")))
    yield found
    found.close()


def add(store: Store, *sessions: tuple[StreamKey, list[Record]]) -> None:
    for key, records in sessions:
        store.append(key, records)
    store.sync()


def edges(store: Store) -> list[tuple[str | None, str, str | None]]:
    db = open_reader(store.folders)
    try:
        return [(e.evidence, e.state, e.call_id) for e in IndexRows(db, store.folders.streams).edges()]
    finally:
        db.close()


def test_an_observation_is_kept_once_and_is_an_edge_whatever_comes_first(store: Store) -> None:
    witness = Witness(store)

    first, again = witness.keep([link_of(INNER, told())]), witness.keep([link_of(INNER, told())])
    store.sync()
    assert (first, again, edges(store)) == (1, 0, [("process", "unresolved", None)])
    add(store, session(INNER), outer(-1, None))

    assert edges(store) == [("process", "edge", "c1")]
    assert Witness(store).keep([link_of(INNER, told())]) == 0


def test_without_an_open_call_it_is_only_possible(store: Store) -> None:
    Witness(store).keep([link_of(INNER, told())])

    add(store, session(INNER), outer(-50, -40))

    assert edges(store) == [("process", "possible", None)]


def test_the_call_that_the_environment_names_is_the_call(store: Store) -> None:
    Witness(store).keep([link_of(INNER, told("other"))])

    add(store, session(INNER), outer(-1, 5))

    assert edges(store) == [("process", "possible", "other")]


def test_the_stream_is_valid_and_no_session_of_a_harness(store: Store) -> None:
    Witness(store).keep([link_of(INNER, told())])
    add(store, session(INNER), outer(-1, 5))

    rows = IndexRows(open_reader(store.folders), store.folders.streams)

    assert {s.row.agent for s in rows.sessions()} == {"claude-code", "codex"}
    (path,) = [p for p in stream_files(store.folders.streams) if p.parent.name == OBSERVER.agent]
    with path.open("rb") as file:
        assert list(check(file)) == []


def test_a_source_whose_writer_is_never_found_is_let_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(paths: object) -> dict[int, process.Process]:
        return {}

    monkeypatch.setattr(process, "table", nobody)
    witness = Witness(store)
    witness.saw("/s.jsonl", INNER)

    for _ in range(40):
        assert witness.look() == []

    assert not witness.waiting
