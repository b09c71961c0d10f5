"""What the page asks is answered from the store, fit for a page; one file of it holds no secret."""

from collections.abc import Generator
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asrd.client import open_reader
from asrd.errors import NothingFound
from asrd.redact import Redactor
from asrd.store.rows import IndexRows
from asrd.ui import view
from asrd.ui.view import Ref
from tests.ui.build import CHILD, EVIL, LONG, SECRET, STORY, evil, lay, long, story, where_of


@pytest.fixture
def rows(tmp_path: Path) -> Generator[IndexRows]:
    where = where_of(tmp_path)
    lay(where, *story(), evil(), long(2500))
    db = open_reader(where)
    yield IndexRows(db, where.streams)
    db.close()


def test_a_session_is_found_by_its_whole_name_alone(rows: IndexRows) -> None:
    found = view.find(rows, CHILD)

    assert (found.row.session_id, found.row.namespace) == ("child", "story")
    for wrong in (Ref("codex", "child"), Ref("pi", "child", "story"), Ref("codex", "chil", "story")):
        with pytest.raises(NothingFound):
            view.find(rows, wrong)


def test_a_session_comes_with_what_it_started(rows: IndexRows) -> None:
    answer = view.session(rows, STORY)

    assert answer["session"]["gaps"] == answer["session"]["losses"] == 1
    assert [(c["sessionId"], c["parent"]["callId"]) for c in answer["children"]] == [("child", "c3")]


def test_the_first_part_is_small_and_all_parts_are_all_records(rows: IndexRows) -> None:
    parts = list(view.records(rows, view.find(rows, LONG)))
    later = list(view.records(rows, view.find(rows, LONG), 2490))

    assert [len(p) for p in parts] == [200, 1000, 1000, 300]
    assert [r["seq"] for part in parts for r in part] == list(range(2500))
    assert [r["seq"] for part in later for r in part] == list(range(2490, 2500))


def test_a_long_text_is_cut_and_the_record_says_so() -> None:
    line = msgspec.json.encode({"type": "message", "seq": 4, "content": [{"text": "x" * 5000}], "_meta": {"a": 1}})

    fitted = view.fit(line)

    assert fitted["clipped"] is True and fitted["content"][0]["text"] == "x" * view.CLIP
    assert "_meta" not in fitted
    assert "clipped" not in view.fit(msgspec.json.encode({"seq": 1, "data": ["y" * 100] * 100}))


def test_a_record_is_given_whole(rows: IndexRows) -> None:
    found = view.record(rows, STORY, 3)

    assert found["id"] == "r3" and "dev.asrd.span" in found["_meta"]
    with pytest.raises(NothingFound):
        view.record(rows, STORY, 900)


def test_a_search_names_the_records_that_hold_the_words(rows: IndexRows) -> None:
    assert view.search(rows, LONG, "NEEDLE") == {"seqs": [2499], "more": False}
    assert view.search(rows, STORY, "*Calc.py*")["seqs"] == [6]
    assert view.search(rows, EVIL, "x onerror=")["seqs"] != []
    assert view.search(rows, STORY, "") == {"seqs": [], "more": False}


def test_a_search_finds_quotes_and_letters_of_any_script(tmp_path: Path) -> None:
    from tests.store.build import Made

    where = where_of(tmp_path)
    lay(where, Made("words").prompt('Say "Grüße" to ÄNNE\nnow.'))
    db = open_reader(where)
    rows = IndexRows(db, where.streams)

    found = [
        view.search(rows, Ref("codex", "words"), text)["seqs"] for text in ('say "', "GRÜSSE", "änne\nNOW", "nobody")
    ]
    db.close()

    assert found == [[1], [], [1], []]


def test_money_without_a_price_list_is_what_sources_say(rows: IndexRows) -> None:
    answer = view.money(rows, view.Spending(by="model"), None, date(2026, 11, 3))

    assert {r["model"]: r["requests"] for r in answer["rows"]}["gpt-5"] == 2
    assert answer["total"]["cost"]["listEstimate"] is None and answer["prices"] is None


def test_one_file_holds_the_session_with_its_sub_agents_and_no_secret(rows: IndexRows) -> None:
    redactor = Redactor("default")

    held = view.whole(rows, view.find(rows, STORY), redactor)
    text = msgspec.json.encode(held).decode()

    assert [s["session"]["sessionId"] for s in held["sessions"]] == ["story", "child"]
    assert [len(s["records"]) for s in held["sessions"]] == [19, 4]
    assert SECRET not in text and held["removed"] == {"github-token": 1}
    assert SECRET in msgspec.json.encode(view.whole(rows, view.find(rows, STORY), Redactor("off"))).decode()


def test_a_field_that_holds_a_secret_by_its_name_is_emptied_and_ids_stay() -> None:
    redactor = Redactor("default")
    given: dict[str, Any] = {
        "input": {"password": "hunter2-hunter2", "api_key": ["tr0ub4dor&3xyz"], "note": "fine"},
        "callId": "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9aB3dE5gH7jK9",
    }

    clean = view.redacted(given, redactor)

    assert "hunter2" not in str(clean) and "tr0ub4dor" not in str(clean)
    assert clean["callId"] == given["callId"] and clean["input"]["note"] == "fine"
    assert view.redacted(given, Redactor("off")) == given
