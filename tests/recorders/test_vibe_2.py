"""Mistral Vibe 1 and early 2: what its captures hold, however they come, and whatever is wrong in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asrd.capture import Capture as Life
from asrd.convert import Streams, take
from asrd.paths import folders
from asrd.reading import revision_of
from asrd.recorders.vibe_2 import RECORDER
from asrd.records import (
    Capture,
    Config,
    FileChange,
    Inference,
    Message,
    Native,
    Session,
    ToolResult,
    UsageTotal,
    VcsAction,
)
from asrd.sources import Row, Source
from tests.figures import figures
from tests.golden import CAPTURES
from tests.homes import environment, recorded
from tests.recorders.arrivals import (
    cases_of,
    goes_on_from_any_prefix,
    goes_on_whatever_is_wrong,
    groups_of,
    record,
    remembered,
    same_however_it_comes,
    streams_of,
    unaccounted,
)
from tests.recorders.scripted import findings

HARNESS = "vibe-2"
HOMES = CAPTURES / HARNESS
CASES = cases_of(HARNESS)


def truth_of(case: str) -> dict[str, Any]:
    return json.loads((HOMES / case / "truth.json").read_text())


def words(record: Message | ToolResult) -> str:
    return "\n".join(getattr(b, "text", "") for b in record.content or ())


# ---------------------------------------------------------------- what happened


@pytest.mark.parametrize("case", CASES)
def test_the_figures_are_what_was_paid_for_over_both_sessions(case: str) -> None:
    truth, streams = truth_of(case), streams_of(RECORDER, HOMES / case / "home")

    counted = figures(streams)

    assert (counted["input_total"], counted["output"]) == (
        truth["expected_usage"]["input_total"],
        truth["expected_usage"]["output"],
    )
    assert {
        k.session_id: [[r.usage.input, r.usage.output] for r in records if isinstance(r, UsageTotal)]
        for k, records in streams.items()
    } == {session: [told] for session, told in truth["sessions"].items()}


@pytest.mark.parametrize("case", CASES)
def test_the_first_session_tells_what_happened(case: str) -> None:
    truth, streams = truth_of(case), streams_of(RECORDER, HOMES / case / "home")
    first = next(records for k, records in streams.items() if k.session_id == next(iter(truth["sessions"])))
    asked = [r for r in truth["run"] if r["script"] == "S1"]

    results = {r.call_id: r for r in first if isinstance(r, ToolResult)}

    assert [words(r) for r in first if isinstance(r, Message) and r.origin == "prompt"] == [truth["turns"][0]["prompt"]]
    assert [words(r) for r in first if isinstance(r, Message) and r.role == "assistant"] == [
        r["text"] for r in asked if r["text"]
    ]
    assert {i: words(r) for i, r in results.items()} == {c["id"]: c["result_seen_by_model"] for c in truth["calls"]}
    exits = {i: r.exec.exit_code for i, r in results.items() if r.exec}
    assert exits == {c["id"]: c["exit_code"] for c in truth["calls"] if "exit_code" in c}
    assert [r.path.path for r in first if isinstance(r, FileChange)] == ["calc.py"]
    assert [r.commit for r in first if isinstance(r, VcsAction)] == [truth["git_log"][0].split()[0]]
    header = first[0]
    assert isinstance(header, Session) and header.workspace is not None
    assert header.workspace.roots[0].vcs is not None
    assert header.workspace.roots[0].vcs.head == truth["git_log"][-1].split()[0]


@pytest.mark.parametrize("case", CASES)
def test_a_session_that_goes_on_says_that_it_cannot_be_told_from_which(case: str) -> None:
    for records in streams_of(RECORDER, HOMES / case / "home").values():
        facets = {r.facet: r.state for r in records if isinstance(r, Capture)}
        assert (facets["copies"], facets["at"], facets["inference.usage"]) == ("unavailable", "unavailable", "partial")
        assert facets["file_change.before"] == "partial"
        assert {r.at for r in records} == {None}


@pytest.mark.parametrize("case", CASES)
def test_a_capture_is_valid_and_each_item_is_accounted_for(case: str) -> None:
    for contents in groups_of(RECORDER, HOMES / case / "home"):
        streams, capture = record(RECORDER, contents)

        if any(
            isinstance(content, bytes) for _, content in contents
        ):  # of a document each record has a place of its own
            assert unaccounted(contents, streams, capture) == 0
        assert capture.accounts()[1] == {}
        assert findings(streams) == []


@pytest.mark.parametrize("case", CASES)
def test_the_records_do_not_depend_on_how_the_bytes_came(case: str) -> None:
    same_however_it_comes(RECORDER, HOMES / case / "home", case)
    goes_on_from_any_prefix(RECORDER, HOMES / case / "home", case)


@pytest.mark.parametrize("case", CASES)
def test_damage_costs_nothing_else(case: str) -> None:
    goes_on_whatever_is_wrong(RECORDER, HOMES / case / "home", case)


# ---------------------------------------------------------------- documents that grow

PATH = "logs/session/session_20261130_110908_ffe660ef.json"
SOURCE = Source(HARNESS, PATH.removesuffix(".json"), PATH, PATH, "document")


def document(*messages: dict[str, Any], spent: tuple[int, int] = (0, 0), **more: Any) -> Row:
    stats = {"session_prompt_tokens": spent[0], "session_completion_tokens": spent[1]}
    data = json.dumps({"metadata": {"session_id": "one", "stats": stats, **more}, "messages": messages}).encode()
    return Row("session.json", "session.json", revision_of(data), {}, data)


def given(*rows: Row) -> Streams:
    capture = Life(RECORDER, SOURCE.group)
    streams: Streams = {}
    for row in rows:
        capture.receive_rows(SOURCE, [row])
        take(streams, capture)
    return streams


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


GROWN = (
    document(user("a"), agent("b"), spent=(100, 10)),
    document(user("a"), agent("b"), user("c"), agent("d"), spent=(250, 30)),
)


def test_what_the_sums_grew_by_is_counted_as_it_grows() -> None:
    (records,) = given(*GROWN).values()

    assert [(r.usage.input, r.usage.output) for r in records if isinstance(r, Inference) and r.usage] == [
        (100, 10),
        (150, 20),
    ]
    assert [words(r) for r in records if isinstance(r, Message)] == ["a", "b", "c", "d"]


def test_sums_are_not_counted_again_when_the_state_is_lost(tmp_path: Path) -> None:
    path, told, streams = tmp_path / "home/.vibe" / PATH, list[tuple[int, int]](), dict[str, bytes]()
    path.parent.mkdir(parents=True)
    for row in (*GROWN, GROWN[1]):
        path.write_bytes(row.data)
        with recorded(tmp_path / "home", tmp_path / "store") as one:
            told.append((one.usage()["inputTotal"], one.usage()["output"]))
            streams = one.streams()
    folders(environment(tmp_path / "home", tmp_path / "store")).cursors.unlink()

    with recorded(tmp_path / "home", tmp_path / "store") as one:
        told.append((one.usage()["inputTotal"], one.usage()["output"]))
        assert one.streams() == streams
    path.write_bytes(document(user("a"), agent("b"), user("c"), agent("d"), user("e"), spent=(400, 60)).data)
    with recorded(tmp_path / "home", tmp_path / "store") as one:
        told.append((one.usage()["inputTotal"], one.usage()["output"]))
    assert told == [(100, 10), (250, 30), (250, 30), (250, 30), (400, 60)]


def test_a_folder_that_was_followed_while_it_grew_goes_on_when_the_state_is_lost(tmp_path: Path) -> None:
    folder, told = tmp_path / "home/.vibe/logs/session/session_20261130_110908_ffe660ef", list[tuple[Any, ...]]()
    folder.mkdir(parents=True)
    where = folders(environment(tmp_path / "home", tmp_path / "store"))
    lines: list[str] = []
    for text, spent, lost in (
        ("a", (0, 0), False),
        ("b", (100, 10), False),
        ("c", (250, 30), True),
        ("d", (400, 60), False),
    ):
        stats = {"session_prompt_tokens": spent[0], "session_completion_tokens": spent[1]}
        (folder / "meta.json").write_text(json.dumps({"session_id": "one", "stats": stats}))
        lines.append(json.dumps({**user(text), "message_id": text}))
        (folder / "messages.jsonl").write_text("".join(line + "\n" for line in lines))
        if lost:
            where.cursors.unlink()

        with recorded(tmp_path / "home", tmp_path / "store") as one:
            (data,) = one.streams().values()
            said = [json.loads(line) for line in data.splitlines()]
            prompts = [m["content"][0]["text"] for m in said if m["type"] == "message"]
            turns = [t["turnId"] for t in said if t["type"] == "turn"]
            told.append(("".join(prompts), "".join(turns), one.usage()["inputTotal"], one.usage()["output"]))

    assert told == [("a", "a", None, None), ("ab", "ab", 100, 10), ("abc", "abc", 250, 30), ("abcd", "abcd", 400, 60)]


def test_sums_that_grow_after_the_state_was_lost_are_counted_by_what_they_grew_by() -> None:
    ((key, records),) = given(*GROWN).items()
    capture, more = Life(RECORDER, SOURCE.group, recorded={key: remembered(records)}), Streams()
    longer = document(user("a"), agent("b"), user("c"), agent("d"), user("e"), spent=(400, 60))

    for row in (GROWN[1], longer):
        capture.receive_rows(SOURCE, [row])
        take(more, capture)

    counted = [r.usage for r in more[key] if isinstance(r, Inference) and r.usage]
    assert [(u.input, u.output) for u in counted] == [(150, 30)]


def test_a_history_that_was_rewritten_says_so() -> None:
    (records,) = given(GROWN[0], document(user("a"), agent("x"), spent=(100, 10))).values()

    assert [r.data for r in records if isinstance(r, Native)] == [{"kept": 1, "replaced": 1}]


@pytest.mark.parametrize(
    ("result", "code", "status"),
    [
        ("stdout: x\n\nstderr: \nreturncode: 0", 0, "completed"),
        ("<tool_error>bash failed: Command failed: 'x'\nReturn code: 101\nStdout: y</tool_error>", 101, "failed"),
        ("<tool_error>Command timed out</tool_error>", None, "failed"),
    ],
)
def test_an_exit_code_is_read_from_the_words_of_a_result(result: str, code: int | None, status: str) -> None:
    call = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "x"}'}}

    (records,) = given(document(agent("", call), {"role": "tool", "tool_call_id": "c1", "content": result})).values()

    (told,) = [r for r in records if isinstance(r, ToolResult)]
    assert told.exec is not None
    assert (told.exec.exit_code, told.status, told.linkage) == (code, status, "exact")


def test_an_edit_of_a_file_that_was_read_whole_is_told_with_contents() -> None:
    read = {"id": "c1", "function": {"name": "read_file", "arguments": '{"path": "/w/a"}'}}
    block = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE"
    edit = {
        "id": "c2",
        "function": {"name": "search_replace", "arguments": json.dumps({"file_path": "/w/a", "content": block})},
    }
    shown = "path: /w/a\ncontent: old\n\nlines_read: 1\nwas_truncated: False"

    (records,) = given(
        document(
            agent("", read), {"role": "tool", "tool_call_id": "c1", "content": shown},
            agent("", edit), {"role": "tool", "tool_call_id": "c2", "content": "file: /w/a\nblocks_applied: 1"},
        )
    ).values()  # fmt: skip

    (change,) = [r for r in records if isinstance(r, FileChange)]
    assert change.before is not None and change.after is not None
    assert (change.before.bytes, change.after.bytes, change.before.sha256 != change.after.sha256) == (4, 4, True)


def test_a_title_and_a_model_that_change_are_told() -> None:
    (records,) = given(
        document(user("a"), title="One", config={"active_model": "m"}),
        document(user("a"), title="Two", config={"active_model": "n"}),
    ).values()

    header = records[0]
    assert isinstance(header, Session) and header.title == "One"
    assert [(r.model, r.title) for r in records if isinstance(r, Config)] == [("m", None), ("n", "Two")]


def test_a_document_elsewhere_is_known_by_its_metadata() -> None:
    (path, _) = sorted((HOMES / "S1-v1.3.5/home").rglob("*.json"))

    assert RECORDER.claims(path.read_bytes()[:4096])
    assert not RECORDER.claims(b'{"metadata":{},"messages":[]}')
