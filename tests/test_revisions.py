"""A recorder of a new revision meets a store of an earlier one: nothing is doubled or lost, what was wrong is put right."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from asrd.paths import folders
from asrd.recorders import load
from asrd.recorders.base import Recorded as Held
from asrd.recorders.base import StreamOut
from asrd.records import SOURCE, SPAN, AnyRecord, Capture, FileChange, Inference, Message, Record, Session, Text, encode
from asrd.retention import Rule
from asrd.store import Store
from asrd.tail import Quiet, Tail
from asrd.validate import check
from tests.golden import CAPTURES
from tests.homes import Recorded, environment, recorded, streams_of
from tests.test_upkeep import everything
from tests.upkeep_of import opened

CASES = [
    "claude-code/S1", "claude-code/S2", "codex/S1", "codex/S3", "codex/S4-auto", "codex/T1-names", "copilot/S1",
    "copilot/S2-v1.0.92", "gemini/S1", "hermes/S1", "kimi/S2", "kimi-py/S2", "openclaw/S1", "opencode/S1", "opencode-1.1/S1",
    "pi/S3", "qwen/S2", "vibe/S1", "vibe-2/S1-v1.3.5", "vibe-2/S1-v2.0.2", "hermes/S1-v0.13.0", "hermes/S1-v0.13.0-document",
    "kimi-py/S1-v1.0", "claude-desktop/S2-cowork",
]  # fmt: skip
"""Files of lines, documents, trees, databases; sub-agents, forks, compaction, names; each harness that runs here."""
SUMS = ("counters-", "total-")
"""How requests are named that are what a sum grew by."""


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The recorders as an earlier revision might have been: without files that changed, with figures and words that are wrong.

    Figures that are differences between two readings of a sum stay: nobody can read it as it was once more.
    """
    add = StreamOut.add

    def earlier(self: StreamOut, record: Record, *, once: bool = False) -> str:
        if isinstance(record, FileChange):
            self._writer.skip("not-yet")  # type: ignore[reportPrivateUsage]
            return "h"
        if isinstance(record, Inference) and record.usage and not record.inference_id.startswith(SUMS):
            record.usage.output = 1
        if isinstance(record, Message) and record.role == "assistant":
            record.author = "harness"
        return add(self, record, once=once)

    with monkeypatch.context() as patched:
        patched.setattr(StreamOut, "add", earlier)
        yield patched


def raise_revisions(monkeypatch: pytest.MonkeyPatch) -> None:
    for recorder in load().values():
        monkeypatch.setattr(recorder, "revision", recorder.revision + 1)


def what_stands(one: Recorded) -> dict[str, Counter[bytes]]:
    """What the streams say, in any order: without ids, numbers, and what was superseded."""
    found: dict[str, Counter[bytes]] = {}
    for key, records in one.sessions().items():
        gone = {r.supersedes for r in records if r.supersedes}
        names = sources_of(records)
        found[str(key)] = Counter(
            said(r, names) for r in records if r.id not in gone and not isinstance(r, Session | Capture)
        )
    return found


def sources_of(records: list[AnyRecord]) -> dict[str, str]:
    names: dict[str, str] = {}
    for record in records:
        told: list[Any] = [*(record.sources or ())] if isinstance(record, Session) else []
        names |= {s.id: s.name for s in told}
        if (extra := (record.meta or {}).get(SOURCE)) is not None:
            names[extra["id"]] = extra["name"]
    return names


def said(record: AnyRecord, names: dict[str, str]) -> bytes:
    """A record's words: that it corrects another, and which number and id it has, says nothing."""
    meta = dict(record.meta or {})
    span = dict(meta.pop(SPAN, {}))
    span["source"] = names.get(str(span.get("source")))
    record.seq, record.id, record.supersedes, record.parent, record.meta = -1, "", None, None, meta or None
    return encode(record) + repr(sorted(span.items())).encode()


def totals(one: Recorded) -> tuple[Any, ...]:
    usage = one.usage()
    calls = one.db.execute("SELECT count(*) FROM call WHERE counted = 1").fetchone()[0]
    return usage["requests"], usage["inputTotal"], usage["output"], calls


@pytest.mark.parametrize("case", CASES)
def test_a_store_of_an_earlier_revision_is_put_right_once(
    case: str, first: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / case / "home", home)
    with recorded(home, tmp_path / "store") as one:
        before = {name: len(data.splitlines()) for name, data in one.streams().items()}
    first.undo()
    raise_revisions(monkeypatch)

    with recorded(home, tmp_path / "store") as one:
        after, put_right, figures = one.streams(), what_stands(one), totals(one)
        wrong = [f for records in one.sessions().values() for f in errors(records)]
    with recorded(home, tmp_path / "fresh") as fresh:
        assert len(wrong) == len([f for records in fresh.sessions().values() for f in errors(records)]), wrong
        assert put_right == what_stands(fresh)
        assert figures == totals(fresh)
        assert before.keys() == after.keys() == fresh.streams().keys()

    with recorded(home, tmp_path / "store") as one:
        assert one.streams() == after, "looked at again, there is nothing to put right"
    folders(environment(home, tmp_path / "store")).cursors.unlink()
    with recorded(home, tmp_path / "store") as one:
        assert one.streams() == after, "nor when the state is lost"


def errors(records: list[AnyRecord]) -> list[str]:
    return [str(f) for f in check(encode(r) + b"\n" for r in records) if f.severity == "error"]


@pytest.mark.parametrize("case", ["claude-code/S1", "codex/S1", "copilot/S1", "pi/S3"])
def test_a_source_that_is_still_written_goes_on_with_the_new_revision(
    case: str, first: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / case / "home", home)
    whole = {path: path.read_bytes() for path in home.rglob("*.jsonl")}
    for path, data in whole.items():
        path.write_bytes(data[: len(data) // 2])  # in the middle of a line
    with recorded(home, tmp_path / "store"):
        pass
    first.undo()
    raise_revisions(monkeypatch)
    with recorded(home, tmp_path / "store"):
        pass
    for path, data in whole.items():
        with path.open("ab") as file:
            file.write(data[len(data) // 2 :])

    with recorded(home, tmp_path / "store") as one, recorded(home, tmp_path / "fresh") as fresh:
        assert what_stands(one) == what_stands(fresh)
        assert totals(one) == totals(fresh)


def test_only_sources_of_another_revision_are_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for case in ("codex/S1", "pi/S3"):
        shutil.copytree(CAPTURES / case / "home", home, dirs_exist_ok=True)
    with recorded(home, tmp_path / "store") as one:
        before = one.streams()
    monkeypatch.setattr(load()["codex"], "revision", load()["codex"].revision + 1)
    where = folders(environment(home, tmp_path / "store"))

    store = Store(where)
    tail = Tail(store, home, {}, Quiet())
    due = tail.scan()
    for group in due:
        tail.observe(group)
    tail.close()
    store.close()

    assert {group.harness for group in due} == {"codex"}
    assert streams_of(where) == before, "the same records: nothing to put right"
    store = Store(where)
    assert Tail(store, home, {}, Quiet()).scan() == [], "once"
    store.close()


def test_a_session_whose_source_is_gone_stays_as_it_was_recorded(
    first: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / "codex/S1/home", home)
    with recorded(home, tmp_path / "store") as one:
        before = one.streams()
    first.undo()
    raise_revisions(monkeypatch)
    shutil.rmtree(home / ".codex")

    with recorded(home, tmp_path / "store") as one:
        assert one.streams() == before


def test_words_that_were_let_go_do_not_come_again(
    monkeypatch: pytest.MonkeyPatch, first: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(CAPTURES / "codex/S1/home", home)
    with recorded(home, tmp_path / "store"):
        pass
    store = opened(folders(environment(home, tmp_path / "store")))
    everything(store, rules=[Rule(age=timedelta(days=1))])
    store.close()
    with recorded(home, tmp_path / "store") as one:
        kept = words(one)
    first.undo()
    raise_revisions(monkeypatch)

    with recorded(home, tmp_path / "store") as one:
        assert words(one) == kept
    assert len(kept) == 1, "how the first prompt began, for its title"


def words(one: Recorded) -> list[str]:
    """What is said in all streams."""
    said = [r for records in one.sessions().values() for r in records if isinstance(r, Message)]
    return [b.text for r in said for b in r.content if isinstance(b, Text) and b.text]


SAYS = Message(role="user", content=[Text(text="new")])


def of_a_row(**more: Any) -> Held:
    """A stream of an earlier revision with one message, of a row that is known by what is said of it."""
    ids: dict[tuple[str, int, str | None, str | None], list[str]] = {("s1", 0, "row", "said before"): ["r1"]}
    return Held(instance="x/1", ids=ids, spoken={"r1": "message///"}, says={"r1": 1}, **more)


def test_what_is_said_otherwise_of_a_row_corrects_what_stands_of_it() -> None:
    assert of_a_row().meet(("s1", 0, "row", "said now"), SAYS) == ("r1", False)
    assert of_a_row().meet(("s1", 0, "another", "said now"), SAYS)[0] is None
    assert of_a_row(fixed=True).meet(("s1", 0, "row", "said now"), SAYS)[0] is None


def test_of_several_statements_about_a_row_none_is_taken_for_the_one_that_changed() -> None:
    held = of_a_row()
    held.ids["s1", 0, "row", "said later"] = ["r2"]
    held.spoken["r2"] = "message///"

    assert held.meet(("s1", 0, "row", "said now"), SAYS)[0] is None


def test_of_several_statements_that_correct_one_another_the_last_stands() -> None:
    held = of_a_row(replaces={"r2": "r1"})
    held.ids["s1", 0, "row", "said later"] = ["r2"]
    held.spoken["r2"] = "message///"

    assert held.meet(("s1", 0, "row", "said now"), SAYS) == ("r2", False)
