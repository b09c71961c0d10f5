"""Upkeep of real captures: streams are sealed and lose their words, and no answer changes."""

import shutil
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from asrd import clock
from asrd.daemon import sync_once
from asrd.records import Session, decode
from asrd.retention import Due, Rule
from asrd.store import Store
from asrd.store.index import remove
from asrd.upkeep import OWN, Job, Upkeep, work
from asrd.validate import check, failed
from tests.golden import CAPTURES
from tests.homes import environment
from tests.store.build import Made, where_of
from tests.upkeep_of import CODEX, S2, lines, opened, paths, store_of, told

NOW = clock.now() + timedelta(days=400)
HOMES = [S2, CODEX, CAPTURES / "opencode" / "S1" / "home", CAPTURES / "pi" / "S3" / "home"]


def everything(store: Store, **job: object) -> dict[str, list[dict[str, object]]]:
    return work(Upkeep(store), Job(**job), NOW)  # type: ignore[arg-type]


def test_sealed_streams_answer_as_before(tmp_path: Path) -> None:
    where = store_of(S2, tmp_path / "store")
    before, plain = told(where), {p: lines(where, p) for p in paths(where)}
    store = opened(where)

    did = everything(store, after=86400.0)
    store.close()

    assert {d["kept"] for d in did["sealed"]} == {None}
    assert paths(where) == [p + ".zst" for p in plain]
    assert told(where) == before
    assert {p: lines(where, p) for p in plain} == plain
    remove(where.index)
    assert told(where) == before


def test_a_store_is_recorded_on_over_sealed_streams(tmp_path: Path) -> None:
    home, whole = tmp_path / "home", tmp_path / "whole"
    shutil.copytree(CODEX, home)
    source = next(home.rglob("rollout-*.jsonl"))
    data = source.read_bytes()
    source.write_bytes(b"".join(data.splitlines(keepends=True)[:20]))
    where = store_of(home, tmp_path / "store")
    store = opened(where)
    everything(store, after=86400.0)
    store.close()
    assert [p for p in paths(where) if p.endswith(".zst")]
    source.write_bytes(data)

    env = environment(home, tmp_path / "store")
    sync_once(where, env)

    assert paths(where) == paths(store_of(home, whole))
    assert [lines(where, p) for p in paths(where)] == [lines(store_of(home, whole), p) for p in paths(where)]


@pytest.mark.parametrize("home", HOMES, ids=lambda h: h.parent.parent.name)
def test_without_words_every_answer_is_the_same_and_nothing_comes_back(tmp_path: Path, home: Path) -> None:
    where = store_of(home, tmp_path / "store")
    before = told(where)
    store = opened(where)

    did = everything(store, rules=[Rule(age=timedelta(days=1))])
    store.close()

    assert {d["kept"] for d in did["retained"]} == {None}
    assert len(did["retained"]) == len(before["sessions"])
    assert told(where) == before
    remove(where.index)
    assert told(where) == before
    remove(where.cursors)  # every source is read again from its start
    sync_once(where, environment(home, tmp_path / "store"))
    assert told(where) == before


def test_a_wordless_stream_says_so_is_valid_and_holds_no_words(tmp_path: Path) -> None:
    where = store_of(CODEX, tmp_path / "store")
    (path,) = paths(where)
    ids = [decode(line).id for line in lines(where, path)]
    assert b"demo workspace" in b"".join(lines(where, path))
    size = (where.streams / path).stat().st_size
    store = opened(where)

    everything(store, rules=[Rule(size=0)])
    store.close()

    found = lines(where, path)
    header = decode(found[0])
    assert isinstance(header, Session)
    assert header.content_level == "metadata"
    said = {"rule": "more than 0 bytes in all", "through": len(ids) - 1, "bytes": size}
    assert header.meta is not None
    assert header.meta["dev.asrd.retained"] == said
    assert [decode(line).id for line in found] == ids
    assert not failed(list(check(line + b"\n" for line in found)))
    assert b"demo workspace" not in b"".join(found)


def test_what_went_is_said_in_a_stream_of_its_own(tmp_path: Path) -> None:
    where = store_of(CODEX, tmp_path / "store")
    store = opened(where)

    everything(store, rules=[Rule(age=timedelta(days=30))])
    own = store.path(OWN)
    store.close()

    header, deed = (msgspec.json.decode(line) for line in lines(where, str(own.relative_to(where.streams))))
    assert header["agent"]["name"] == "asrd"
    assert deed["nativeType"] == "dev.asrd.upkeep.retained"
    assert deed["data"]["rule"] == "older than 30 days"
    assert deed["data"]["before"] > deed["data"]["after"]
    assert deed["atSource"] == "recorder"


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    where = store_of(S2, tmp_path / "store")
    before = {p: (where.streams / p).read_bytes() for p in paths(where)}
    store = opened(where)

    did = everything(store, rules=[Rule(age=timedelta(days=1))], after=86400.0, dry_run=True)
    store.close()

    assert len(did["retained"]) == 4
    assert {p: (where.streams / p).read_bytes() for p in paths(where)} == before


def test_a_stream_that_grows_meanwhile_is_left_as_it_is(tmp_path: Path) -> None:
    where = where_of(tmp_path)
    store = opened(where)
    made = Made("a" * 8, started_at="2026-01-01T00:00:00Z").prompt("x" * 9000, at="2026-01-01T00:00:00Z")
    store.append(made.key, made.records)
    store.sync()
    upkeep = Upkeep(store)
    (held,) = upkeep.held()
    more = Made("a" * 8).prompt("x").prompt("y").records[2]

    def grow() -> None:
        store.append(made.key, [more])
        store.sync()
        upkeep.settle = store.sync

    upkeep.settle = grow
    did = upkeep.seal(held)

    assert did.kept == "it grew meanwhile"
    assert store.path(made.key).exists()
    assert [p for p in paths(where) if "zst" in p or p.split("/")[1].startswith(".")] == []

    more.seq, more.id = 3, "r3"
    upkeep.settle = grow
    left = upkeep.retain(Due(held, "by hand"))

    assert left.kept == "it grew meanwhile"
    assert [p for p in paths(where) if p != f"codex/{'a' * 8}.asr.jsonl"] == []
    assert lines(where, f"codex/{'a' * 8}.asr.jsonl")[3].count(b'"id":"r3"') == 1
    upkeep.settle = store.sync
    assert upkeep.retain(Due(held, "by hand")).kept is None
    store.close()


def test_words_stay_where_what_counts_would_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = store_of(CODEX, tmp_path / "store")
    (path,) = paths(where)
    before = (where.streams / path).read_bytes()
    store = opened(where)

    def other(_: object, __: object) -> bool:
        return False

    monkeypatch.setattr("asrd.retention.Counts.same", other)

    did = everything(store, rules=[Rule(age=timedelta(days=1))])
    store.close()

    assert did["retained"][0]["kept"] == "what counts would change; please report it"
    assert (where.streams / path).read_bytes() == before


def test_power_loss_at_the_swap_leaves_the_old_form_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = store_of(CODEX, tmp_path / "store")
    before = told(where)
    store = opened(where)

    def cut(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("asrd.store.remove_file", cut)  # the sealed form stands, the plain one too
    with pytest.raises(KeyboardInterrupt):
        everything(store, rules=[Rule(age=timedelta(days=1))])
    monkeypatch.undo()
    store.close()

    assert len(paths(where)) == 2
    assert told(where) == before
    store = opened(where)
    did = everything(store, rules=[Rule(age=timedelta(days=1))])
    store.close()
    assert did["retained"][0]["kept"] is None
    assert told(where) == before


def test_unsealing_gives_the_plain_stream_back(tmp_path: Path) -> None:
    where = store_of(CODEX, tmp_path / "store")
    (path,) = paths(where)
    before = (where.streams / path).read_bytes()
    store = opened(where)
    everything(store, seal=[path])
    assert paths(where) == [path + ".zst"]

    everything(store, unseal=[path])
    store.close()

    assert paths(where) == [path]
    assert (where.streams / path).read_bytes() == before
