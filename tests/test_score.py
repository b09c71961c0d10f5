"""Of every capture that a program wrote, nothing is lost by us: the score that `make score` prints (`tests.score`)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.golden import CAPTURES
from tests.score import packets
from tests.score.facts import Truth, of_capture
from tests.score.rubric import DENSITY, DUPLICATES, NATIVE, POINTS, Mark
from tests.score.table import Row, cases, constructed, line_of, of_home, of_streams, packet_rows, share_of, streams_of

REAL = [case for case in cases() if not constructed(case)]
Lines = list[dict[str, Any]]


@pytest.mark.parametrize("case", REAL)
def test_nothing_that_a_native_file_holds_is_lost(case: str) -> None:
    truth = truth_of(case)

    row = of_home(case, CAPTURES / case / "home", truth)

    assert row.lost == {}, line_of(row)
    assert row.marks[DUPLICATES].share == 1
    assert set(row.marks) == set(POINTS)


@pytest.mark.parametrize("case", sorted(set(cases()) - set(REAL)))
def test_nothing_that_a_capture_made_from_documents_holds_is_lost(case: str) -> None:
    row = of_home(case, CAPTURES / case / "home", truth_of(case))

    assert row.lost == {}, line_of(row)
    assert row.marks[DUPLICATES].share == 1


def test_every_harness_with_captures_of_its_own_is_scored() -> None:
    written = {p.parent.parent.name for p in CAPTURES.glob("*/S1/truth.json")}
    written -= {"acp", "claude-desktop", "t3code"}  # what they show are sessions of other harnesses

    assert written - {case.split("/")[0] for case in cases()} == set()


def test_a_first_scenario_scores_more_than_the_report_gives_its_file_for_all_but_density() -> None:
    better: dict[str, bool] = {}
    for harness, native in NATIVE.items():
        case = f"{harness}/S1"
        if case not in REAL:
            continue
        found = of_home(case, CAPTURES / case / "home", truth_of(case)).marks
        file = {m: Mark(native.below.get(m, 1.0), 1, 1) for m in POINTS}
        but_density = set(POINTS) - {DENSITY}
        better[harness] = share_of(found, but_density) >= share_of(file, but_density)

    assert len(better) > 6
    assert all(better.values()), better


@pytest.mark.skipif(packets.folder() is None, reason="ASRD_PACKETS names no copy of the packets: they have no licence")
def test_nothing_that_a_packet_holds_is_lost_and_nothing_it_lacks_is_claimed() -> None:
    where = packets.folder()
    assert where is not None

    rows = list(packet_rows(where))

    assert [(row.lost, row.claimed) for row in rows] == [({}, {})] * 5, "\n".join(map(line_of, rows))
    assert all(row.marks[DUPLICATES].share == 1 for row in rows)


# ---------------------------------------------------------------- the score sees what is lost


def truth_of(case: str) -> Truth:
    truth = of_capture(CAPTURES / case)
    assert truth is not None
    return truth


def damaged(damage: Callable[[Lines], None], case: str = "pi/S1") -> Row:
    """The row of a capture whose one stream was changed."""
    streams = streams_of(CAPTURES / case / "home")
    (name,) = streams
    lines = [json.loads(line) for line in streams[name].splitlines()]
    damage(lines)
    for seq, line in enumerate(lines):
        line["seq"] = seq
    changed = {name: b"".join(json.dumps(line).encode() + b"\n" for line in lines)}
    return of_streams(case, changed, truth_of(case), changed)


def first(lines: Lines, kind: str, **fields: Any) -> dict[str, Any]:
    return next(line for line in lines if line["type"] == kind and fields.items() <= line.items())


def another_prompt(lines: Lines) -> None:
    first(lines, "message", role="user")["content"] = [{"type": "text", "text": "Something else."}]


def no_answer(lines: Lines) -> None:
    said = [line for line in lines if line["type"] == "message" and line["role"] == "assistant"]
    lines.remove(said[-1])


def another_argument(lines: Lines) -> None:
    first(lines, "tool_call", name="read")["input"] = {"path": "other.py"}


def no_exit_code(lines: Lines) -> None:
    del first(lines, "tool_result", callId="call_s1t1_2_0")["exec"]["exitCode"]


def another_hash(lines: Lines) -> None:
    first(lines, "file_change")["after"]["sha256"] = "0" * 64


def order_for_a_link(lines: Lines) -> None:
    first(lines, "tool_result")["linkage"] = "order"


def no_turn(lines: Lines) -> None:
    del first(lines, "tool_call")["turnId"]


def another_model(lines: Lines) -> None:
    for line in lines:
        if line["type"] == "inference":
            line["model"] = "another"


def other_figures(lines: Lines) -> None:
    for line in lines:
        if line["type"] == "inference":
            line["usage"]["output"] += 1


def no_cache_writes(lines: Lines) -> None:
    for line in lines:
        if line["type"] == "inference":
            del line["usage"]["cacheWrite"]


def no_time(lines: Lines) -> None:
    del first(lines, "tool_result")["at"]


def a_loss(lines: Lines) -> None:
    span = {"source": "s1", "start": 0, "end": 1}
    lines.append({"type": "loss", "id": "lost", "reason": "malformed", "span": span})


def another_version(lines: Lines) -> None:
    lines[0]["formatVersion"] = "0.2"


def edit_after_the_check(lines: Lines) -> None:
    edit = first(lines, "tool_result", callId="call_s1t1_3_0")
    lines.remove(edit)
    lines.insert(lines.index(first(lines, "tool_result", callId="call_s1t1_4_0")) + 1, edit)


DAMAGES: list[tuple[Callable[[Lines], None], str]] = [
    (another_prompt, "work.submitted_turns"),
    (another_prompt, "revision.r1"),
    (no_answer, "work.visible_responses"),
    (no_answer, "broad.readable_rationale"),
    (another_argument, "work.actions"),
    (no_exit_code, "work.results"),
    (another_hash, "work.changed_files"),
    (edit_after_the_check, "revision.final_after_r2"),
    (order_for_a_link, "causal.action_result"),
    (no_turn, "broad.thread_structure"),
    (another_model, "attribution.model_config"),
    (other_figures, "attribution.usage"),
    (no_cache_writes, "attribution.token_semantics"),
    (no_time, "broad.event_timestamps"),
    (a_loss, "broad.observed_schema_stability"),
    (another_version, "broad.declared_format_version"),
]


@pytest.mark.parametrize(("damage", "metric"), DAMAGES)
def test_what_is_taken_out_of_a_stream_is_lost_by_us(damage: Callable[[Lines], None], metric: str) -> None:
    whole = damaged(lambda lines: None)

    row = damaged(damage)

    assert metric not in whole.lost
    assert metric in row.lost
    assert "LOST BY US" in line_of(row)


def test_a_call_more_than_was_made_costs_points() -> None:
    def one_more(lines: Lines) -> None:
        lines.insert(-1, {**first(lines, "tool_call"), "id": "more", "callId": "call_more"})

    row = damaged(one_more)

    assert row.marks["work.actions"].share == pytest.approx(6 / 7)


@pytest.mark.parametrize("kind", ["message", "tool_call", "tool_result"])
def test_what_stands_twice_is_no_longer_said_once(kind: str) -> None:
    def again(lines: Lines) -> None:
        lines.insert(
            -1,
            {
                "type": "native",
                "id": "again",
                "nativeType": "copy",
                "data": dict(
                    first(lines, kind, role="user")
                    if kind == "message"
                    else [line for line in lines if line["type"] == kind][-1]
                ),
            },
        )

    row = damaged(again)

    assert DUPLICATES in row.lost
    assert "also in ['again']" in row.lost[DUPLICATES]


def test_a_record_that_takes_the_place_of_another_repeats_nothing() -> None:
    def better(lines: Lines) -> None:
        said = first(lines, "message", role="user")
        lines.insert(lines.index(said) + 1, {**said, "id": "better", "supersedes": said["id"]})

    row = damaged(better)

    assert row.marks[DUPLICATES].full


def test_a_fact_is_natively_absent_only_where_the_stream_says_so() -> None:
    def silent(lines: Lines) -> None:
        lines.remove(first(lines, "capture", facet="turn.end"))

    said, unsaid = damaged(lambda lines: None, "gemini/S1"), damaged(silent, "gemini/S1")

    assert "work.visible_responses" in said.absent
    assert "work.visible_responses" in unsaid.lost
