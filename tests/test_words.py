"""Words are indexed behind the streams: in parts, after what grew, and again where words are gone."""

import threading
from datetime import timedelta
from pathlib import Path

from asrd.client import open_reader
from asrd.paths import Folders
from asrd.retention import Rule
from asrd.store.disk import RealDisk
from asrd.store.search import Question, Search
from asrd.upkeep import Job, Upkeep, work
from asrd.words import WordsIndexer
from tests.daemons import running, until
from tests.test_upkeep import NOW
from tests.upkeep_of import CODEX, S2, opened, store_of


def indexer(where: Folders) -> WordsIndexer:
    return WordsIndexer(where, lambda: open_reader(where), RealDisk())


def matched(where: Folders, query: str) -> int:
    search = Search(where.store / "search.sqlite", where.streams, RealDisk())
    found = search.ask(Question(query=query))
    search.close()
    return found.matched


def test_it_is_done_in_parts_and_ends(tmp_path: Path) -> None:
    where = store_of(S2, tmp_path / "store")
    words = indexer(where)

    steps = 0
    while words.step(2000):
        steps += 1
    words.close()

    assert steps > 20
    assert matched(where, "alpha note") > 0


def test_the_tool_of_a_result_is_known_when_its_call_came_before(tmp_path: Path) -> None:
    where = store_of(S2, tmp_path / "store")
    words = indexer(where)
    while words.step(500):  # each record by itself
        pass
    words.close()

    search = Search(where.store / "search.sqlite", where.streams, RealDisk())
    hits = search.ask(Question(type="tool_result", tool="Read", limit=50)).hits
    search.close()

    assert {h.tool for h in hits} == {"Read"}


def test_words_that_are_not_kept_are_not_found(tmp_path: Path) -> None:
    where = store_of(CODEX, tmp_path / "store")
    words = indexer(where)
    while words.step():
        pass
    words.close()
    assert matched(where, "demo workspace") > 0
    store = opened(where)
    work(Upkeep(store), Job(rules=[Rule(age=timedelta(days=1))]), NOW)
    store.close()

    before = (where.store / "search.sqlite").read_bytes()
    words = indexer(where)
    while words.step():
        pass
    words.close()

    assert matched(where, "demo workspace") == 0
    assert b"kspace" in before  # the index keeps beginnings that words share only once
    assert b"kspace" not in (where.store / "search.sqlite").read_bytes()


def test_it_stops_when_told_and_waits_while_something_is_busy(tmp_path: Path) -> None:
    where = store_of(CODEX, tmp_path / "store")
    stop, asked = threading.Event(), threading.Event()

    def busy() -> bool:
        asked.set()
        return True

    thread = threading.Thread(target=indexer(where).run, args=(stop, busy))
    thread.start()
    assert asked.wait(10)
    stop.set()
    thread.join(10)

    assert not thread.is_alive()
    assert matched(where, "workspace") == 0


def test_the_daemon_keeps_the_search_up_to_date(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    source = next(CODEX.rglob("rollout-*.jsonl"))
    lines = source.read_bytes().splitlines(keepends=True)
    with running(home, tmp_path / "store") as daemon:
        path = home / source.relative_to(CODEX)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(lines[:12]))

        first = until(lambda: daemon.ask("search", type="message", query="")["matched"])
        with path.open("ab") as file:
            file.write(b"".join(lines[12:]))
        found = until(lambda: daemon.ask("search", query="demo workspace")["hits"])

    assert first
    assert found
    assert found[0]["agent"] == "codex"


def test_a_first_search_index_is_made_only_when_someone_searches(tmp_path: Path) -> None:
    where = store_of(S2, tmp_path / "store")
    words = indexer(where)
    stop, searched = threading.Event(), threading.Event()
    thread = threading.Thread(target=words.run, args=(stop, lambda: False, searched.is_set))

    thread.start()
    before = until(lambda: (where.store / "search.sqlite").exists(), 2.5)
    searched.set()
    after = until(lambda: (where.store / "search.sqlite").exists(), 10)
    stop.set()
    thread.join()

    assert not before
    assert after
