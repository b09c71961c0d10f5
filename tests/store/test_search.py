"""Search: what people type finds what is there, in the right order, and nothing of it is a language of its own."""

from pathlib import Path
from typing import Any

import pytest

from asrd.errors import UsageError
from asrd.paths import Folders
from asrd.records import Exec, FileChange, Message, Place, Text, ToolCall, ToolResult, Workspace, WorkspaceRoot
from asrd.store import Store
from asrd.store.disk import RealDisk
from asrd.store.rows import IndexRows
from asrd.store.search import LONG, Question, Search, SearchIndex, expression, snip
from tests.store.build import Made, where_of


def said(made: Made, text: str, role: str = "assistant", at: str | None = None) -> None:
    made.add(Message(role=role, content=[Text(text=text)], at=at))


def ran(made: Made, ident: str, command: str, output: str, code: int, tool: str = "bash") -> None:
    made.add(ToolCall(call_id=ident, name=tool, kind="execute", input={"command": command}))
    status = "failed" if code else "completed"
    made.add(
        ToolResult(
            call_id=ident, linkage="exact", status=status, content=[Text(text=output)], exec=Exec(exit_code=code)
        )
    )


def at(made: Made, folder: str) -> Made:
    made.records[0].workspace = Workspace(roots=[WorkspaceRoot(id="r1", path=folder)])  # type: ignore[attr-defined]
    return made


def kept(tmp_path: Path, *sessions: Made) -> Folders:
    where = where_of(tmp_path)
    store = Store(where)
    for made in sessions:
        store.append(made.key, made.records)
    store.close()
    indexed(where)
    return where


def indexed(where: Folders) -> None:
    store = Store(where)
    db = store.index.reader()
    index = SearchIndex(where.store / "search.sqlite", where.streams, RealDisk())
    for row in index.behind([s.row for s in IndexRows(db, where.streams).sessions()]):
        while index.take(row, budget=300):
            pass
    index.close()
    db.close()
    store.close()


def found(where: Folders, query: str = "", **more: Any) -> list[str]:
    search = Search(where.store / "search.sqlite", where.streams, RealDisk())
    hits = search.ask(Question(query=query, **more)).hits
    search.close()
    return [f"{h.session_id}/{h.record}" for h in hits]


@pytest.fixture
def two(tmp_path: Path) -> Folders:
    one = at(Made("one"), "/home/dev/app/web").prompt("Fix the flaky parser test", at="2026-11-01T10:00:00Z")
    said(one, "The parser test fails because of a race.", at="2026-11-01T10:00:05Z")
    ran(one, "c1", "pytest tests/test_parser.py", "no such table: users\n1 failed", 1)
    ran(one, "c2", "pytest", "1 passed", 0)
    other = at(Made("two", agent="pi"), "/home/dev/application").prompt("write docs", at="2026-11-09T10:00:00Z")
    said(other, "Größe in Übersicht, naïve café; foo_bar.baz()")
    other.add(
        FileChange(change="modify", path=Place(path="src/parser/lexer.rs"), diff="+let zeppelin = 1;", applied=True)
    )
    return kept(tmp_path, one, other)


def test_all_words_are_to_be_there(two: Folders) -> None:
    assert found(two, "flaky parser") == ["one/r1"]
    assert found(two, "flaky zeppelin") == []


def test_a_prompt_comes_before_an_answer_and_an_output(two: Folders) -> None:
    assert found(two, "parser test")[0] == "one/r1"
    assert set(found(two, "parser")) == {"one/r1", "one/r2", "one/r3", "two/r3"}


def test_phrases_prefixes_negations_and_either(two: Folders) -> None:
    assert found(two, '"no such table"') == ["one/r4"]
    assert found(two, '"such no table"') == []
    assert found(two, "zepp*") == ["two/r3"]
    assert found(two, "parser -race -lexer -pytest") == ["one/r1"]
    assert set(found(two, "zeppelin OR flaky")) == {"two/r3", "one/r1"}


def test_marks_on_letters_and_small_letters_make_no_difference(two: Folders) -> None:
    assert found(two, "GROSSE ubersicht") == []  # ß is no ss
    assert found(two, "GRÖßE ubersicht CAFE") == ["two/r2"]
    assert found(two, "foo_bar.baz") == ["two/r2"]


def test_filters_alone_and_with_words(two: Folders) -> None:
    assert found(two, exit="1") == ["one/r4"]
    assert found(two, exit="nonzero", tool="BASH") == ["one/r4"]
    assert found(two, exit="failed") == ["one/r4"]
    assert found(two, "passed", exit="0") == ["one/r6"]
    assert found(two, "parser", harness="pi") == ["two/r3"]
    assert found(two, "parser", role="prompt") == ["one/r1"]
    assert found(two, "parser", type="file_change") == ["two/r3"]
    assert found(two, "parser", session="codex/one/") == found(two, "parser", harness="codex")


def test_a_folder_means_what_lies_below_it_and_not_what_begins_like_it(two: Folders) -> None:
    assert found(two, "parser", project="/home/dev/application") == ["two/r3"]
    assert set(found(two, "parser", project="/home/dev/app")) == {"one/r1", "one/r2", "one/r3"}
    assert len(found(two, "parser", project="/home/dev/")) == 4


def test_times_are_half_open(two: Folders) -> None:
    assert found(two, "parser", since="2026-11-01T10:00:05") == ["one/r2"]
    assert found(two, "parser", until="2026-11-01T10:00:05Z") == ["one/r1"]
    assert found(two, "docs", since="2026-11-09", until="2026-11-10") == ["two/r1"]
    assert found(two, "docs", since="2026-10-01", until="2026-11-09") == []


@pytest.mark.parametrize(
    "query", ["NEAR(a b)", "AND", "parser) OR (1", "{facet} : x", 'a"b', "body:parser", "^parser", "*", "a + b", "- -", "\0parser"]
)  # fmt: skip
def test_nothing_typed_is_syntax(two: Folders, query: str) -> None:
    try:
        expression(Question(query=query))
    except UsageError:
        return

    found(two, query)  # finds what it finds, and raises nothing


@pytest.mark.parametrize("query", ["", '""', "*", "--", "- ..."])
def test_a_search_for_no_word_is_refused(query: str) -> None:
    with pytest.raises(UsageError, match="no word"):
        expression(Question(query=query))


def test_what_a_stream_grew_by_is_found_and_nothing_twice(tmp_path: Path, two: Folders) -> None:
    store = Store(two)
    more = Made("one")
    more.records = [*([more.records[0]] * store.next_seq(more.key))]
    said(more, "the zeppelin lands")
    store.append(more.key, [more.records[-1]])
    store.close()

    indexed(two)
    indexed(two)

    assert set(found(two, "zeppelin")) == {"one/r7", "two/r3"}
    assert found(two, "flaky") == ["one/r1"]


def test_a_very_long_text_is_found_at_its_end_once(tmp_path: Path) -> None:
    made = Made("long")
    said(made, "start " + "filler " * (LONG // 4) + " needle and needle " + "x" * 50)
    where = kept(tmp_path, made)

    search = Search(where.store / "search.sqlite", where.streams, RealDisk())
    (hit,) = search.ask(Question(query="needle")).hits

    assert hit.record == "r1"
    assert [hit.snippet[a:b] for a, b in hit.matches] == ["needle", "needle"]
    search.close()


def test_a_file_that_is_no_index_is_made_anew(tmp_path: Path, two: Folders) -> None:
    (two.store / "search.sqlite").write_bytes(b"nonsense" * 100)
    for suffix in ("-wal", "-shm"):
        (two.store / f"search.sqlite{suffix}").unlink(missing_ok=True)

    indexed(two)

    assert found(two, "flaky") == ["one/r1"]


def test_without_an_index_nothing_is_found_and_nothing_breaks(tmp_path: Path) -> None:
    search = Search(tmp_path / "search.sqlite", tmp_path, RealDisk())

    assert search.ask(Question(query="x")).hits == []
    assert not search.there


def test_a_session_that_is_gone_is_let_go(tmp_path: Path, two: Folders) -> None:
    index = SearchIndex(two.store / "search.sqlite", two.streams, RealDisk())

    index.forget_others({Made("two", agent="pi").key})
    index.close()

    assert found(two, "flaky") == []
    assert found(two, "zeppelin") == ["two/r3"]


def test_a_snippet_is_one_line_around_the_first_match_with_its_marks() -> None:
    text = "a " * 200 + "before\n\nthe Café parsers after " + "z " * 200

    cut, marks = snip(text, ["cafe", "pars*"])

    assert [cut[a:b] for a, b in marks] == ["Café", "parsers"]
    assert "\n" not in cut
    assert cut.startswith("…")
    assert cut.endswith("…")
    assert len(cut) <= 162
