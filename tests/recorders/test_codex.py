"""Codex: what its rollouts say is in the streams, once, whatever the version, the cut and the damage."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_group, groups, merge
from asrd.places import find_for, roots_of
from asrd.recorders.base import StreamKey, Writer, sha256
from asrd.recorders.codex import RECORDER
from asrd.records import (
    SOURCE,
    SPAN,
    Approval,
    Compaction,
    Config,
    FileChange,
    Inference,
    Limit,
    Link,
    Loss,
    Message,
    Native,
    Record,
    Session,
    ToolCall,
    ToolResult,
    Turn,
    VcsAction,
    encode,
    encode_lines,
)
from asrd.records import Capture as CaptureState
from asrd.sources import Line, Row, Source
from tests.figures import figures
from tests.golden import CAPTURES
from tests.recorders.arrivals import remembered

CODEX = CAPTURES / "codex"
CASES = sorted(p.parent.name for p in CODEX.glob("*/truth.json") if "responses" in json.loads(p.read_text()))
NAMED = ["T1-names", "T1-names-v0.128.0"]
THREAD = "01a22c2c-1726-7c93-8264-55e71fedf568"
AT = "2026-11-30T10:00:00.000Z"

FIGURES = {
    "A1-appserver": (21, 21545, 755),
    "A2-subagents-v0.128.0": (9, 9108, 198),
    "A3-fork-v0.128.0": (11, 11136, 246),
    "A3-fork-v0.145.0": (11, 11136, 246),
    "S1": (8, 11129, 412),
    "S1-codemode": (7, 9522, 351),
    "S1-v0.128.0": (8, 11129, 412),
    "S1-v0.55.0": (8, 11129, 412),
    "S2-v1": (10, 37827, 1645),
    "S2-v1-v0.96.0": (9, 34827, 1545),
    "S2-v2": (14, 58337, 2860),
    "S3": (7, 7308, 238),
    "S4-auto": (6, 102231, 261),
    "S5-kill-in-tool": (3, 27077, 157),
    "S6-claude-runs-codex": (3, 24606, 639),
    "S7-acp": (8, 58836, 1152),
    "S7-acp-zed": (8, 58836, 1152),
    "S8-fatal": (1, 533, 24),
    "S8-retry": (2, 1033, 45),
}
"""Requests, input with cached tokens, output: what was paid for and recorded."""


# ---------------------------------------------------------------- helpers


def streams_of(home: Path) -> Streams:
    found: Streams = {}
    for group in groups(find_for(RECORDER, roots_of(RECORDER, home, {}), lambda path, reason: None)):
        merge(found, convert_group(RECORDER, group))
    return found


def truth_of(case: str) -> dict[str, Any]:
    return json.loads((CODEX / case / "truth.json").read_text())


def standing(records: list[Record], kind: type[Record]) -> list[Any]:
    """Records of a kind that no later one replaced, without copies."""
    gone = {r.supersedes for r in records if r.supersedes}
    return [r for r in records if isinstance(r, kind) and r.id not in gone and not r.copy_of]


def table(streams: Streams) -> dict[str, Any]:
    """What happened, over all sessions of a home, as the streams say it."""
    rows: dict[str, Any] = {"prompts": [], "calls": set(), "exits": [], "edits": [], "commits": [], "models": set()}
    children: list[tuple[str, str]] = []
    for key, records in streams.items():
        rows["prompts"] += [
            text
            for m in standing(records, Message)
            if m.origin == "prompt"
            for text in re.findall(r"\[\[\w+\]\]", m.content[0].text)
        ]
        rows["calls"] |= {c.call_id for c in standing(records, ToolCall) if c.inference_id}
        rows["exits"] += [
            (r.exec.command, r.exec.exit_code)
            for r in standing(records, ToolResult)
            if r.exec and r.exec.exit_code is not None
        ]
        rows["edits"] += [
            (c.path.path, c.before.sha256, c.after.sha256)
            for c in standing(records, FileChange)
            if c.before and c.after
        ]
        rows["commits"] += [v.commit for v in standing(records, VcsAction) if v.action == "commit"]
        rows["models"] |= {i.model for i in standing(records, Inference) if i.usage}
        children += [(key.session_id, x.target.session_id) for x in standing(records, Link) if x.relation == "spawned"]
    rows["prompts"].sort()
    rows["spawned"] = sorted(children)
    return rows


def true_table(truth: dict[str, Any]) -> dict[str, Any]:
    """The same from what the scripted model and the working tree say happened."""
    whole = [r for r in truth["responses"] if r.get("api") == "responses" and not r.get("incomplete")]
    recorded = [r for r in whole if r["usage"]["input_tokens"] != 9]  # a request for a title is in no file
    prompts = sorted(  # a copied prompt stands in two files
        {
            f"[[{m}]]"
            for name, markers in truth["prompt_markers_in_each_file_in_order"].items()
            if "/.codex/" in name
            for m in markers
            if not m.startswith("SUB")
        }
    )
    return {
        "prompts": prompts,
        "calls": {
            i.get("call_id") or i["id"]
            for r in recorded
            for i in r["items"]
            if "call_id" in i or i["type"] == "web_search_call"
        },
        "edits": [(e["file"], sha256(e["before"]), sha256(e["after"])) for e in truth["edits"]]
        if "edits" in truth
        else None,
        "commits": [line.split()[0] for line in truth["git_log_newest_first"] if not line.endswith(" init")],
        "models": {r["model"] for r in recorded},
        "shell": [(s["cmd"], s["exit_code"]) for s in truth.get("shell", [])],
        "results": {r["call_id"] for r in truth["tool_results"] if r["call_id"].startswith(("call_", "exec"))},
    }


def lines_of(path: Path) -> list[Line]:
    found: list[Line] = []
    at = 0
    for data in path.read_bytes().split(b"\n"):
        if data:
            found.append(Line(at, at + len(data), data))
        at += len(data) + 1
    return found


def source_of(path: Path) -> Source:
    relative = path.as_posix().split(".codex/")[1]
    located = RECORDER.locate(relative)
    assert located is not None
    return Source("codex", located.group, located.name, relative, "lines", located.order)


def rollouts() -> list[Path]:
    return sorted(CODEX.glob("*/home/.codex/**/rollout-*.jsonl"))


def appended(capture: Capture, into: Streams) -> None:
    for command in capture.commands():
        into.setdefault(command.key, []).extend(command.records)


def written(streams: Streams) -> dict[StreamKey, bytes]:
    return {key: encode_lines(records) for key, records in streams.items()}


def given(lines: list[dict[str, Any] | bytes], name: str = "rollout-2026-11-30T00-00-00-T.jsonl") -> list[Record]:
    """The records of one constructed rollout."""
    data = b"".join((one if isinstance(one, bytes) else msgspec.json.encode(one)) + b"\n" for one in lines)
    capture = Capture(RECORDER, "T")
    capture.receive_bytes(Source("codex", "T", name, name, "lines"), data)
    streams: Streams = {}
    appended(capture, streams)
    (records,) = streams.values()
    return records


def line(kind: str, payload: dict[str, Any], at: str = "2026-11-30T10:00:00.000Z", **more: Any) -> dict[str, Any]:
    return {"timestamp": at, "type": kind, "payload": payload, **more}


def meta(thread: str, **more: Any) -> dict[str, Any]:
    told = {
        "id": thread,
        "timestamp": "2026-11-30T10:00:00.000Z",
        "cwd": "/home/dev/app",
        "cli_version": "0.141.0",
        "source": "cli",
    }
    return line("session_meta", told | more)


def event(kind: str, at: str = "2026-11-30T10:00:01.000Z", **payload: Any) -> dict[str, Any]:
    return line("event_msg", {"type": kind, **payload}, at)


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return line("response_item", {"type": kind, **payload})


def tokens(figures: tuple[int, ...]) -> dict[str, int]:
    names = ("input_tokens", "cached_input_tokens", "output_tokens", "total_tokens")
    return dict(zip(names, figures, strict=False))


def count(
    total: tuple[int, ...], last: tuple[int, ...] | None = None, at: str = "2026-11-30T10:00:01.000Z"
) -> dict[str, Any]:
    info: dict[str, Any] = {"total_token_usage": tokens(total)}
    if last is not None:
        info["last_token_usage"] = tokens(last)
    return event("token_count", at, info=info)


def counted(records: list[Record]) -> tuple[int, int, int]:
    told = figures({StreamKey("codex", "T"): records})
    return told["requests"], told["input_total"], told["output"]


# ---------------------------------------------------------------- the captures


@pytest.mark.parametrize("case", CASES)
def test_usage_is_exactly_what_was_paid_for_and_recorded(case: str) -> None:
    streams = streams_of(CODEX / case / "home")

    told = figures(streams)

    assert (told["requests"], told["input_total"], told["output"]) == FIGURES[case]


@pytest.mark.parametrize("case", CASES)
def test_what_happened_is_in_the_streams(case: str) -> None:
    truth = true_table(truth_of(case))

    rows = table(streams_of(CODEX / case / "home"))

    assert rows["prompts"] == truth["prompts"]
    assert rows["calls"] == truth["calls"]
    assert truth["edits"] is None or rows["edits"] == truth["edits"]
    assert rows["commits"] == truth["commits"]
    assert rows["models"] == truth["models"]
    named = [one for one in rows["exits"] if one[0] in {cmd for cmd, _ in truth["shell"]}]
    assert named == truth["shell"]


@pytest.mark.parametrize("case", CASES)
def test_every_line_of_a_capture_is_understood(case: str) -> None:
    streams = streams_of(CODEX / case / "home")

    records = [r for rs in streams.values() for r in rs]

    assert not [r for r in records if isinstance(r, Loss)]
    assert not [r.native_type for r in records if isinstance(r, Native) and r.meta and "dev.asrd.unexpected" in r.meta]


@pytest.mark.parametrize("case", CASES)
def test_every_result_that_the_model_got_has_its_call(case: str) -> None:
    truth = true_table(truth_of(case))
    killed = {"S5-kill-in-tool"}

    results = [r for rs in streams_of(CODEX / case / "home").values() for r in standing(rs, ToolResult)]

    assert {r.linkage for r in results} <= {"exact"}
    if case not in killed:
        assert truth["results"] <= {r.call_id for r in results}


@pytest.mark.parametrize("case", ["A2-subagents-v0.128.0", "S2-v1", "S2-v1-v0.96.0", "S2-v2"])
def test_sub_agents_are_linked_from_both_sides(case: str) -> None:
    streams = streams_of(CODEX / case / "home")
    calls = {c.call_id: key.session_id for key, rs in streams.items() for c in standing(rs, ToolCall)}

    spawned = [(k.session_id, x) for k, rs in streams.items() for x in standing(rs, Link) if x.relation == "spawned"]
    headers: list[Session] = [rs[0] for rs in streams.values()]  # type: ignore[misc]

    assert sorted((p, x.target.session_id) for p, x in spawned) == sorted(
        (h.lineage.parent.session_id, h.session_id) for h in headers if h.lineage.parent
    )
    assert len(spawned) == len(streams) - 1
    assert all(calls[x.call_id] == parent for parent, x in spawned)
    assert [h.lineage.root for h in headers].count(True) == 1


def test_the_tree_of_sub_agents_is_the_one_that_was_scripted() -> None:
    streams = streams_of(CODEX / "S2-v2" / "home")

    headers = [rs[0] for rs in streams.values() if isinstance(rs[0], Session)]
    paths = {h.session_id: (h.meta or {}).get("dev.asrd.agentPath", "/root") for h in headers}

    assert sorted((paths[p], paths[c]) for p, c in table(streams)["spawned"]) == [
        ("/root", "/root/alpha"),
        ("/root", "/root/beta"),
        ("/root/alpha", "/root/alpha/gamma"),
    ]


@pytest.mark.parametrize(
    ("case", "child"), [("A2-subagents-v0.128.0", "71-7d31"), ("S2-v1", "84-7fe3"), ("S2-v2", "10-7281")]
)
def test_an_inherited_history_is_a_copy_and_its_turn_is_not_the_childs(case: str, child: str) -> None:
    streams = streams_of(CODEX / case / "home")
    (records,) = [rs for key, rs in streams.items() if child in key.session_id]

    copies = [r for r in records if r.copy_of]
    own = standing(records, Turn)

    assert {r.copy_of.session_id for r in copies if r.copy_of} == {records[0].lineage.parent.session_id}  # type: ignore[union-attr]
    assert [m.origin for m in copies if isinstance(m, Message) and m.author == "human"] == ["prompt"]
    assert [(t.phase, t.trigger, t.status) for t in own] == [("start", "agent", None), ("end", None, "completed")]


def test_what_a_sub_agent_inherited_is_no_request_of_anyone() -> None:
    streams = streams_of(CODEX / "S2-v2" / "home")
    (records,) = [rs for key, rs in streams.items() if "10-7281" in key.session_id]

    copied_calls = [r for r in records if isinstance(r, ToolCall) and r.copy_of]
    copied_requests = [r for r in records if isinstance(r, Inference) and r.copy_of]

    assert len(copied_calls) == 2
    assert copied_requests == []


def test_a_fork_refers_to_its_base_and_an_archived_one_too() -> None:
    streams = streams_of(CODEX / "S3" / "home")
    ids = truth_of("S3")["session_ids"]

    forks = {k.session_id: x for k, rs in streams.items() for x in rs if isinstance(x, Link)}

    assert {child: x.target.session_id for child, x in forks.items()} == {
        ids["fork1"]: ids["original"],
        ids["fork2_of_fork1"]: ids["fork1"],
    }
    assert {x.relation for x in forks.values()} == {"forked_from"}
    assert all(not r.copy_of for rs in streams.values() for r in rs)


@pytest.mark.parametrize("case", ["A3-fork-v0.128.0", "A3-fork-v0.145.0"])
def test_a_fork_that_copies_owns_its_last_turn(case: str) -> None:
    streams = streams_of(CODEX / case / "home")
    (fork,) = [rs for rs in streams.values() if rs[0].lineage.relation == "forked_from"]  # type: ignore[attr-defined]
    (original,) = [rs for rs in streams.values() if rs is not fork]

    copied = {r.inference_id for r in fork if isinstance(r, Inference) and r.usage and r.copy_of}
    own = [m.content[0].text for m in standing(fork, Message) if m.origin == "prompt"]

    assert own == ["[[F4]] In the fork."]
    assert len(copied) in (0, 6)  # 0.145 copies no figures of its own kind
    assert copied <= {i.inference_id for i in standing(original, Inference)}


def test_what_the_app_server_did_is_told() -> None:
    streams = streams_of(CODEX / "A1-appserver" / "home")
    records, fork = streams.values()

    calls = {c.call_id: c for c in standing(records, ToolCall)}
    results = [(calls[r.call_id].name, r.status) for r in standing(records, ToolResult)]
    turns = [t.status for t in standing(records, Turn) if t.phase == "end"]

    assert [one for one in results if one[1] != "completed"] == [
        ("exec_command", "denied"),
        ("apply_patch", "denied"),
        ("apply_patch", "failed"),
        ("exec_command", "cancelled"),
        ("exec_command", "failed"),
    ]
    assert ("user_shell", "completed") in results and ("web_search", "completed") in results
    assert [a.decision for a in standing(records, Approval)] == ["deny", "deny"]
    assert turns.count("interrupted") == 1
    assert [c.trigger for c in standing(records, Compaction)] == ["manual"]
    assert [type(b).__name__ for m in standing(records, Message) if "[[A3]]" in str(m.content) for b in m.content] == [
        "Text",
        "Image",
    ]
    reverts = [
        r.data["history_base"]["end_ordinal_exclusive"]
        for r in records
        if isinstance(r, Native) and r.native_type == "session_meta"
    ]
    assert reverts == [92, 94]
    assert [x.target.session_id for x in standing(fork, Link)] == [records[0].session_id]  # type: ignore[attr-defined]


def test_a_compaction_names_the_message_whose_summary_it_repeats() -> None:
    (records,) = streams_of(CODEX / "S4-auto" / "home").values()

    said = [r for r in records if isinstance(r, Message) and r.origin == "summary"]
    compacted = [r for r in records if isinstance(r, Compaction)]

    assert [c.message_id for c in compacted] == [m.message_id for m in said] != []


@pytest.mark.parametrize(
    ("case", "facets"),
    [
        ("S1", set[str]()),
        ("S1-v0.128.0", {"usage.cacheWrite"}),
        ("S1-v0.55.0", {"usage.cacheWrite", "turn.end"}),
    ],
)
def test_what_a_version_does_not_write_is_said(case: str, facets: set[str]) -> None:
    (records,) = streams_of(CODEX / case / "home").values()

    said = [r.facet for r in records if isinstance(r, CaptureState)]

    assert {f for f in said if f in ("usage.cacheWrite", "turn.end")} == facets
    assert len(said) == len(set(said))


def test_a_compaction_is_one_record_and_replaced_history_is_not_said_again() -> None:
    streams = streams_of(CODEX / "S4-auto" / "home")
    (records,) = streams.values()

    (compaction,) = standing(records, Compaction)
    readme = [m for m in standing(records, Message) if m.origin == "prompt" and "[[S4T1]]" in m.content[0].text]

    assert compaction.trigger == "auto"
    assert compaction.summary.endswith("SUMMARY: the readme was read; alpha is 42.")
    assert len(readme) == 1


def test_a_killed_turn_is_interrupted_and_what_ran_keeps_its_result() -> None:
    (records,) = streams_of(CODEX / "S5-kill-in-tool" / "home").values()

    ends = [t.status for t in standing(records, Turn) if t.phase == "end"]
    results = {r.call_id for r in standing(records, ToolResult)}
    open_calls = [c.input for c in standing(records, ToolCall) if c.call_id not in results]

    assert ends == ["interrupted", "completed"]
    assert len(open_calls) == 1 and b"sleep 25" in bytes(open_calls[0])


def test_a_request_that_failed_is_stated_without_figures() -> None:
    (records,) = streams_of(CODEX / "S8-fatal" / "home").values()

    failed = [i for i in standing(records, Inference) if i.error]
    ends = [t for t in standing(records, Turn) if t.phase == "end"]

    assert len(failed) == 1 and failed[0].usage is None
    assert [t.status for t in ends] == ["failed", "completed"]
    assert "mock: bad request" in ends[0].error.message


def test_in_code_mode_each_command_is_a_call_within_the_script() -> None:
    (records,) = streams_of(CODEX / "S1-codemode" / "home").values()

    nested = [c for c in standing(records, ToolCall) if c.call_id.startswith("exec-")]
    outer = {c.call_id for c in standing(records, ToolCall) if c.name == "exec"}

    assert [c.name for c in nested].count("exec_command") == 5
    assert [c.name for c in nested].count("apply_patch") == 2
    assert {c.meta["dev.asrd.within"]["callId"] for c in nested} == outer
    assert {c.meta["dev.asrd.within"]["linkage"] for c in nested} == {"order"}


@pytest.mark.parametrize("case", CASES)
def test_links_inside_a_stream_point_back(case: str) -> None:
    for records in streams_of(CODEX / case / "home").values():
        known: set[str] = set()
        inferences: set[str] = set()

        for record in records:
            assert record.supersedes is None or record.supersedes in known
            name = getattr(record, "inference_id", None)
            if isinstance(record, Inference):
                inferences.add(record.inference_id)
            assert name is None or name in inferences
            known.add(record.id)


@pytest.mark.parametrize("case", CASES)
def test_each_response_that_said_something_joins_its_usage(case: str) -> None:
    for records in streams_of(CODEX / case / "home").values():
        final = {r.supersedes: r for r in records if isinstance(r, Inference) and r.supersedes}
        by_name = {r.inference_id: final.get(r.id, r) for r in records if isinstance(r, Inference)}

        said = [m for m in standing(records, Message) if m.role == "assistant" and m.origin != "agent"]
        called = [c for c in standing(records, ToolCall) if c.inference_id]

        assert said
        assert all(by_name[one.inference_id].usage is not None for one in [*said, *called])
        counting = {i.inference_id for i in standing(records, Inference) if i.usage}
        joined = {by_name[one.inference_id].inference_id for one in [*said, *called]}
        assert joined <= counting
        assert len(counting - joined) <= len(standing(records, Compaction))  # up to 0.137 a summary is no item


@pytest.mark.parametrize("case", CASES)
def test_each_call_joins_the_figures_of_its_own_response(case: str) -> None:
    paid = {
        i["call_id"]: (r["usage"]["input_tokens"], r["usage"]["output_tokens"])
        for r in truth_of(case)["responses"]
        if r.get("api") == "responses" and not r.get("incomplete")
        for i in r["items"]
        if "call_id" in i
    }

    joined: dict[str, tuple[int, int]] = {}
    for records in streams_of(CODEX / case / "home").values():
        final = {r.supersedes: r for r in records if isinstance(r, Inference) and r.supersedes}
        by_name = {r.inference_id: final.get(r.id, r) for r in records if isinstance(r, Inference)}
        for call in standing(records, ToolCall):
            if call.call_id in paid:
                usage = by_name[call.inference_id].usage
                assert usage is not None and usage.input is not None and usage.output is not None
                joined[call.call_id] = (usage.input + (usage.cache_read or 0), usage.output)

    assert joined == paid


# ---------------------------------------------------------------- determinism


@pytest.mark.parametrize("case", CASES)
def test_the_cut_of_the_bytes_and_restarts_change_nothing(case: str) -> None:
    home = CODEX / case / "home"
    whole = written(streams_of(home))

    for seed in (0, 1):
        chance = random.Random(seed)
        streams: Streams = {}
        for group in groups(find_for(RECORDER, roots_of(RECORDER, home, {}), lambda path, reason: None)):
            capture = Capture(RECORDER, group[0].source.group)
            for one in group:
                data = Path(one.path).read_bytes()
                at = 0
                while at < len(data):
                    size = chance.randrange(1, 6000) if seed else data.index(b"\n", at) + 1 - at
                    capture.receive_bytes(one.source, data[at : at + size])
                    at += size
                    appended(capture, streams)
                    if chance.random() < 0.3:
                        kept = capture.offset(one.source)
                        capture = Capture(RECORDER, group[0].source.group, saved=capture.save())
                        at = kept

        assert written(streams) == whole


@pytest.mark.parametrize("case", ["A1-appserver", "A3-fork-v0.128.0", "S1", "S1-v0.55.0", "S2-v2", "S4-auto"])
def test_a_stream_that_holds_a_part_is_continued(case: str) -> None:
    home = CODEX / case / "home"
    for group in groups(find_for(RECORDER, roots_of(RECORDER, home, {}), lambda path, reason: None)):
        whole = convert_group(RECORDER, group)
        ((key, records),) = whole.items()
        for share in (1, len(records) // 3, len(records) - 2):
            capture = Capture(RECORDER, group[0].source.group, recorded={key: remembered(records[:share])})
            rest: Streams = {}

            for one in group:
                capture.receive_bytes(one.source, Path(one.path).read_bytes())
            appended(capture, rest)

            assert encode_lines(records[:share] + rest.get(key, [])) == encode_lines(records)


def review_told(by_items: bool) -> list[dict[str, Any] | bytes]:
    """A review as the thread that asked for it has it: from 0.155 on with items, before with events."""
    target = {"type": "custom", "instructions": "look at calc.py"}
    if by_items:
        begin: dict[str, Any] = {
            "turn_id": "R",
            "thread_id": "T",
            "item": {"type": "EnteredReviewMode", "target": target},
        }
        end: dict[str, Any] = {
            "turn_id": "R",
            "thread_id": "T",
            "item": {"type": "ExitedReviewMode", "review_output": {}},
        }
        said = {"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "look at calc.py"}]}
        inside = event("item_completed", thread_id="other", turn_id="X", item=said)
        entered, exited = event("item_completed", **begin), event("item_completed", **end)
    else:
        entered, exited = event("entered_review_mode", target=target), event("exited_review_mode", review_output={})
        inside = event("user_message", message="look at calc.py")
    found = {"type": "input_text", "text": "<user_action>\n  <context>User initiated a review task."}
    return [
        meta("T"),
        entered,
        event("task_started", turn_id="X"),
        inside,
        item("message", role="user", content=[found]),
        exited,
        item("message", role="assistant", id="msg_1", content=[{"type": "output_text", "text": "It subtracts."}]),
        event("task_complete", turn_id="R", last_agent_message=None),
        event("task_started", turn_id="N"),
    ]


@pytest.mark.parametrize("by_items", [True, False])
def test_a_review_is_a_turn_in_which_this_thread_asked_no_model(by_items: bool) -> None:
    records = given(review_told(by_items))

    begun, ended, after = standing(records, Turn)
    prompts = [m for m in standing(records, Message) if m.origin == "prompt"]
    (found,) = [m for m in standing(records, Message) if m.role == "assistant"]
    assert (begun.phase, begun.trigger, begun.turn_id) == ("start", "command", ended.turn_id)
    assert (ended.status, ended.native_id, after.turn_id) == ("completed", "R", "N")
    assert [m.content[0].text for m in prompts] == ["look at calc.py"]
    assert (found.origin, found.inference_id, found.turn_id) == ("agent", None, begun.turn_id)
    assert not standing(records, Inference)


def test_only_items_that_are_not_known_are_said_to_be_unexpected() -> None:
    lines: list[dict[str, Any] | bytes] = [
        meta("T"),
        *(
            event("item_completed", thread_id="T", turn_id="N", item={"type": kind, "id": "i"})
            for kind in ("ImageView", "HookPrompt", "NeverSeen")
        ),
    ]

    natives = standing(given(lines), Native)

    assert [n.data["item"]["type"] for n in natives if n.meta and "dev.asrd.unexpected" in n.meta] == ["NeverSeen"]
    assert len(natives) == 3


def test_a_review_that_was_killed_ends_when_the_next_turn_starts() -> None:
    records = given([*review_told(True)[:4], event("task_started", turn_id="N"), event("task_complete", turn_id="N")])

    turns = [(t.turn_id, t.phase, t.status) for t in standing(records, Turn)]
    assert turns == [("R", "start", None), ("R", "end", "interrupted"), ("N", "start", None), ("N", "end", "completed")]


def used(response: str, turn: str) -> dict[str, Any]:
    figures = tokens((100, 0, 10, 110)) | {"cache_write_input_tokens": 0, "reasoning_output_tokens": 0}
    return line("token_usage_record", {"thread_id": "T", "turn_id": turn, "response_id": response, "usage": figures})


@pytest.mark.parametrize(("compacted", "unmeasured"), [(False, 0), (True, 1)])
def test_a_response_that_was_no_summary_fails_the_turn_without_another_request(
    compacted: bool, unmeasured: int
) -> None:
    lines: list[dict[str, Any] | bytes] = [
        meta("T"),
        event("task_started", turn_id="N"),
        used("resp_1", "N"),
        *([line("compacted", {"message": "", "replacement_history": []})] if compacted else []),
        item("message", role="user", content=[{"type": "input_text", "text": "go"}]),
        event("user_message", message="go"),
        event("task_complete", turn_id="N", error={"message": "expected exactly one compaction output item"}),
    ]

    records = given(lines)

    asked = standing(records, Inference)
    assert len([i for i in asked if i.usage is not None]) == 1
    assert len([i for i in asked if i.usage is None]) == unmeasured


def test_a_patch_that_a_hook_blocked_changed_nothing_and_was_refused_by_policy() -> None:
    patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch\n"
    call = item("custom_tool_call", name="apply_patch", input=patch, call_id="c1")
    output = f"Command blocked by PreToolUse hook: not this. Command: {patch}"

    records = given([meta("T"), call, item("custom_tool_call_output", call_id="c1", output=output)])

    (result,), (change,), (refused,) = (standing(records, kind) for kind in (ToolResult, FileChange, Approval))
    assert (result.status, change.applied, change.after) == ("denied", False, None)
    assert (refused.call_id, refused.decision, refused.by, refused.policy) == (
        "c1",
        "deny",
        "policy",
        "hook:PreToolUse",
    )


def test_the_output_of_a_tool_that_nothing_called_is_context() -> None:
    output = item("function_call_output", id="fco_1", name="goal_objective", namespace="agent", output="finish it")

    records = given([meta("T"), output])

    (message,) = standing(records, Message)
    assert (message.role, message.author, message.origin, message.content[0].text) == (
        "user",
        "harness",
        "injected",
        "finish it",
    )
    assert message.meta["dev.asrd.name"] == "goal_objective"
    assert not standing(records, ToolResult)


@pytest.mark.parametrize(
    ("name", "output", "status"),
    [
        (
            "exec_command",
            "approval policy is Never; reject command — you cannot ask for escalated permissions",
            "denied",
        ),
        ("write_stdin", "write_stdin failed: Unknown process id 99999", "failed"),
        ("view_image", "unable to locate image at `/nope.png`: No such file or directory (os error 2)", "failed"),
        ("request_user_input", "request_user_input is unavailable in Default mode", "failed"),
        ("exec_command", "it is unavailable in Default mode, says the page", "completed"),
    ],
)
def test_a_call_that_codex_itself_turned_down_did_not_succeed(name: str, output: str, status: str) -> None:
    call = item("function_call", name=name, arguments="{}", call_id="c1")

    records = given([meta("T"), call, item("function_call_output", call_id="c1", output=output)])

    assert [r.status for r in standing(records, ToolResult)] == [status]


# ---------------------------------------------------------------- hostility


def damaged(lines: list[Line], chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """A rollout with one line damaged, in each way."""
    datas = [one.data for one in lines]
    for what in ("kind", "inner kind", "payload", "stamp", "field", "cut", "bytes", "word"):
        at = chance.randrange(1, len(datas))
        told: Any = json.loads(datas[at])
        if what == "kind":
            told["type"] = "renamed"
        elif what == "inner kind" and "type" in told["payload"]:
            told["payload"]["type"] = "renamed"
        elif what == "payload":
            told["payload"] = "words"
        elif what == "stamp":
            told["timestamp"] = 17
        elif what == "field":
            told["payload"] = {k: (v if k == "type" else [[v]]) for k, v in told["payload"].items()}
        data = json.dumps(told).encode()
        if what == "cut":
            data = datas[at][: len(datas[at]) // 2]
        elif what == "bytes":
            data = datas[at].replace(b'"payload"', b'"x":"\xff\xfe","payload"', 1)
        elif what == "word":
            data = b"what is this"
        yield what, b"\n".join([*datas[:at], data, *datas[at + 1 :]]) + b"\n"


@pytest.mark.parametrize("path", rollouts(), ids=lambda p: f"{p.relative_to(CODEX).parts[0]}-{p.stem[-6:]}")
def test_damage_is_recorded_and_recording_goes_on(path: Path) -> None:
    source = source_of(path)
    for what, data in damaged(lines_of(path), random.Random(path.name)):
        writer = Writer()
        recorder = RECORDER(writer, source.group)
        at = 0
        for one in data.split(b"\n")[:-1]:
            skipped = sum(writer.skips.values())

            recorder.convert(source, Line(at, at + len(one), one), "")

            assert writer.drain() or sum(writer.skips.values()) > skipped, (what, one[:200])
            at += len(one) + 1
        assert not [name for name in writer.counts if name.startswith("mistake:")], (what, writer.counts)


def test_a_huge_line_is_a_loss_and_the_rest_is_recorded() -> None:
    (path,) = (CODEX / "S1").glob("home/.codex/**/rollout-*.jsonl")
    lines = [one.data for one in lines_of(path)]
    huge = msgspec.json.encode(event("agent_message", message="A" * 200_000))
    capture = Capture(RECORDER, source_of(path).group, limit=100_000)
    streams: Streams = {}

    capture.receive_bytes(source_of(path), b"\n".join([*lines[:5], huge, *lines[5:]]) + b"\n")
    appended(capture, streams)

    (records,) = streams.values()
    assert [r.reason for r in records if isinstance(r, Loss)] == ["oversize"]
    assert counted(records)[0] == FIGURES["S1"][0]


def test_a_first_line_that_is_lost_leaves_a_stream_of_the_name_of_the_file() -> None:
    path = rollouts()[0]
    lines = [one.data for one in lines_of(path)]
    capture = Capture(RECORDER, source_of(path).group)
    streams: Streams = {}

    capture.receive_bytes(source_of(path), b"\n".join([lines[0][:-9], *lines[1:]]) + b"\n")
    appended(capture, streams)

    ((key, records),) = streams.items()
    assert key.session_id in path.name
    assert isinstance(records[1], Loss)
    assert figures(streams)["requests"] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        '{"cmd":\n"ls"}',
        '{"cmd":"ls","x":"\\ud83d"}',
        '{"cmd":',
        "words",
        '["ls"]',
        '{"cmd":["ls"]}',
        '{"cmd":"\\u0041\\ud83d\\ude42"}',
    ],
)
def test_arguments_of_any_kind_are_an_object_on_one_line(arguments: str) -> None:
    records = given([meta("T"), item("function_call", name="exec_command", arguments=arguments, call_id="c1")])

    (call,) = standing(records, ToolCall)
    written = encode(call)

    assert b"\n" not in written
    assert isinstance(msgspec.json.decode(written)["input"], dict)


def test_a_state_that_is_not_utf_8_leaves_a_stream_that_is() -> None:
    records = given([meta("T"), b'{"timestamp":null,"type":"world_state","payload":{"x":"\xff\xfe"}}'])

    assert [type(r).__name__ for r in records[-2:]] == ["Loss", "Native"]
    encode_lines(records).decode("utf-8")


def test_numbers_that_no_file_should_hold_do_not_stop_a_save() -> None:
    capture = Capture(RECORDER, "T")
    source = Source("codex", "T", "n", "n", "lines")
    odd: list[dict[str, Any]] = [
        meta("T"),
        count((2**63, 0, 1), (2**63, 0, 1)),
        line("turn_context", {"model": "m", "approval_policy": 10**30, "sandbox_policy": {"x": 10**30}}),
        event("error", message="m", codex_error_info={"x": 10**30}),
        item(
            "function_call",
            name="update_plan",
            arguments='{"plan":[{"step":"a","status":"pending","x":1' + "0" * 30 + "}]}",
            call_id="c1",
        ),
        item(
            "function_call_output",
            call_id="c1",
            output="Wall time: 1 seconds\nProcess exited with code " + "9" * 5000 + "\nOutput:\n",
        ),
    ]

    capture.receive_bytes(source, b"".join(json.dumps(one).encode() + b"\n" for one in odd))

    assert not [name for name in capture.accounts()[1] if name.startswith("mistake:")]
    assert Capture(RECORDER, "T", saved=capture.save()).offset(source) == capture.offset(source)


# ---------------------------------------------------------------- rules of counting


@pytest.mark.parametrize(
    ("counts", "right"),
    [
        (
            [((10000, 0, 0), (10000, 0, 0)), ((25000, 0, 0), (15000, 0, 0)), ((25000, 0, 0), (15000, 0, 0))],
            (2, 25000, 0),
        ),
        ([((100, 0, 20, 120), (100, 0, 20, 120)), ((100, 0, 20, 120), (0, 0, 0, 5000))], (1, 100, 20)),
        (
            [
                ((100, 0, 20, 120), (100, 0, 20, 120)),
                ((0, 0, 0, 200000), (0, 0, 0, 199880)),
                ((30, 0, 5, 200035), (30, 0, 5, 35)),
            ],
            (2, 130, 25),
        ),
        ([((100, 0, 0), None), ((160, 0, 0), None), ((40, 0, 0), None), ((70, 0, 0), None)], (4, 230, 0)),
        ([((100, 0, 0), (100, 0, 0)), ((400, 0, 0), (50, 0, 0))], (3, 400, 0)),
        ([((100, 0, 0), None), ((250, 0, 0), None)], (2, 250, 0)),
        ([((11129, 0, 412), (11129, 0, 412)), ((2001, 0, 71), (2001, 0, 71))], (2, 13130, 483)),
        ([((1280, 0, 46), (1280, 0, 46)), ((1290, 0, 48), (1290, 0, 48))], (2, 2570, 94)),
    ],
    ids=["repeat", "estimate", "fill", "reset", "missing-line", "totals-only", "resume", "resume-to-more"],
)
def test_a_counter_is_differenced(counts: list[Any], right: tuple[int, int, int]) -> None:
    records = given([meta("T"), *(count(total, last) for total, last in counts)])

    assert counted(records) == right


def test_a_counter_without_figures_is_no_response() -> None:
    records = given([meta("T"), event("token_count", info=None, rate_limits=None)])

    assert counted(records) == (0, 0, 0)


@pytest.mark.parametrize(
    ("total", "last", "right"),
    [((2600, 0, 90), (1300, 0, 50), (3, 3880, 136)), ((2580, 0, 96), (1300, 0, 50), (2, 2580, 96))],
    ids=["it counted anew", "it went on"],
)
def test_a_counter_that_said_it_was_empty_counts_anew_where_the_figures_do_not_go_on(
    total: tuple[int, ...], last: tuple[int, ...], right: tuple[int, int, int]
) -> None:
    empty = event("token_count", info=None, rate_limits=None)

    records = given([meta("T"), count((1280, 0, 46), (1280, 0, 46)), empty, count(total, last)])

    assert counted(records) == right


def test_a_rollout_that_was_migrated_in_place_counts_once() -> None:
    said = item("function_call", name="shell", arguments="{}", call_id="c1")
    before = [
        meta("T"),
        said,
        count((100, 0, 20), (100, 0, 20)),
        count((160, 0, 30), (60, 0, 10), "2026-11-30T10:00:02.000Z"),
    ]
    limits = {"rate_limits": {"limit_id": None}}
    after = [
        {"timestamp": one["timestamp"], "ordinal": n, "type": one["type"], "payload": {**one["payload"], **more}}
        for n, (one, more) in enumerate(zip(before, ({"history_mode": "paginated"}, {}, limits, limits), strict=True))
    ]
    after.append(count((200, 0, 40), (40, 0, 10), "2026-11-30T10:00:03.000Z"))
    source = Source("codex", "T", "rollout-2026-11-30T00-00-00-T.jsonl", "rollout.jsonl", "lines")
    capture = Capture(RECORDER, "T")
    streams: Streams = {}

    capture.receive_bytes(source, b"".join(msgspec.json.encode(one) + b"\n" for one in before))
    capture.receive_replaced(source)
    capture.receive_bytes(source, b"".join(msgspec.json.encode(one) + b"\n" for one in after))
    appended(capture, streams)

    (records,) = streams.values()
    assert counted(records) == (3, 200, 40)
    assert len(standing(records, ToolCall)) == 1
    assert capture.accounts()[0]["count-stated-before"] == 2


def test_input_leaves_cached_tokens_out() -> None:
    records = given([meta("T"), count((100, 80, 20, 120), (100, 80, 20, 120))])

    (inference,) = standing(records, Inference)

    assert (inference.usage.input, inference.usage.cache_read, inference.usage.output) == (20, 80, 20)
    assert inference.id_source == "derived"
    assert inference.meta["dev.asrd.usage"]["last"].input_tokens == 100


def response(name: str, figures: tuple[int, ...], thread: str = "T") -> dict[str, Any]:
    return line("token_usage_record", {"thread_id": thread, "response_id": name, "usage": tokens(figures)})


def test_records_of_responses_take_the_place_of_the_counter() -> None:
    records = given([meta("T"), response("r1", (100, 80, 20, 120)), count((100, 80, 20, 120), (100, 80, 20, 120))])

    assert counted(records) == (1, 100, 20)
    assert [i.inference_id for i in standing(records, Inference)] == ["r1"]


def test_a_record_of_a_response_that_the_counter_told_of_first_takes_its_place() -> None:
    records = given([meta("T"), count((50, 0, 5), (50, 0, 5)), response("r9", (50, 0, 5))])

    assert counted(records) == (1, 50, 5)


def test_a_response_that_stands_twice_counts_once() -> None:
    records = given([meta("T"), response("r1", (100, 0, 20)), response("r1", (100, 0, 20))])

    assert counted(records) == (1, 100, 20)
    assert len(standing(records, Inference)) == 1


def test_another_threads_response_is_a_copy() -> None:
    records = given([meta("T"), response("r1", (100, 0, 20), thread="OTHER"), response("r2", (7, 0, 1))])

    assert counted(records) == (1, 7, 1)
    assert [r.copy_of.session_id for r in records if r.copy_of] == ["OTHER", "OTHER"][
        : sum(1 for r in records if r.copy_of)
    ]


def test_a_compactions_latest_response_is_not_another() -> None:
    copied = {"response_id": "r1", "usage": tokens((100, 0, 20))}
    records = given(
        [
            meta("T"),
            response("r1", (100, 0, 20)),
            line("compacted", {"message": "so far", "latest_token_usage_record": copied}),
        ]
    )

    assert counted(records) == (1, 100, 20)


def test_equal_limits_are_stated_once() -> None:
    limits = {"primary": {"used_percent": 12.0, "window_minutes": 300, "resets_at": 1790000000}, "secondary": None}
    counts = [event("token_count", info=None, rate_limits=limits) for _ in range(5)]

    records = given([meta("T"), *counts])

    (limit,) = [r for r in records if isinstance(r, Limit)]
    assert (limit.window, limit.used_percent, limit.resets_at) == ("300m", 12.0, "2026-09-21T14:13:20.000Z")


# ---------------------------------------------------------------- forks that copy

PARENT = "01a22ac0-0000-7000-8000-000000000001"
CHILD = "01a22ac1-0000-7000-8000-000000000002"


def turn_at(thread_ms: int) -> str:
    return f"{thread_ms >> 16:08x}-{thread_ms & 0xFFFF:04x}-7000-8000-00000000000a"


def stamp(ms: int) -> str:
    from asrd.recorders.base import from_ms

    told = from_ms(ms)
    assert told is not None
    return told


def fork(restamped: bool, with_meta: bool, **more: Any) -> list[Record]:
    """A fork that copies its parent's history (100 in, 10 out, stated twice), then has a turn of its own (30 in, 5 out)."""
    began = 0x01A22AC10000
    before = began - 60_000
    at = stamp(began + 3) if restamped else stamp(before + 5)
    own = began + 40
    header = meta(CHILD, timestamp=stamp(began), **({"forked_from_id": PARENT} | more))
    copied = [
        event("task_started", at, turn_id=turn_at(before)),
        line(
            "response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "old"}]}, at
        ),
        event("user_message", at, message="old"),
        count((100, 0, 10), (100, 0, 10), at),
        count((100, 0, 10), (100, 0, 10), at),
    ]
    if with_meta:
        copied.insert(0, line("session_meta", {"id": PARENT, "cli_version": "0.141.0"}, at))
    return given(
        [
            header,
            *copied,
            event("task_started", stamp(own), turn_id=turn_at(own)),
            line(
                "response_item",
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "new"}]},
                stamp(own),
            ),
            event("user_message", stamp(own), message="new"),
            count((130, 0, 15), (30, 0, 5), stamp(own + 900)),
        ]
    )


@pytest.mark.parametrize("restamped", [True, False], ids=["restamped", "as-it-was"])
def test_a_copy_without_turn_ids_ends_with_its_burst_and_holds_what_is_older(restamped: bool) -> None:
    began = 0x01A22AC10000
    at = [stamp(began + 3)] * 3 if restamped else [stamp(began - 9000), stamp(began - 5000), stamp(began - 100)]
    header = meta(CHILD, timestamp=stamp(began), cli_version="0.80.0", forked_from_id=PARENT)

    records = given(
        [
            header,
            count((100, 0, 10), (100, 0, 10), at[0]),
            count((150, 0, 15), (50, 0, 5), at[1]),
            count((160, 0, 16), (10, 0, 1), at[2]),
            count((190, 0, 21), (30, 0, 5), stamp(began + 800)),
        ]
    )

    assert counted(records) == (1, 30, 5)


@pytest.mark.parametrize("with_meta", [True, False], ids=["meta", "no-meta"])
@pytest.mark.parametrize("restamped", [True, False], ids=["restamped", "as-it-was"])
def test_a_fork_owns_only_its_own_turns(restamped: bool, with_meta: bool) -> None:
    records = fork(restamped, with_meta)

    prompts = [m.content[0].text for m in standing(records, Message) if m.origin == "prompt"]

    assert counted(records) == (1, 30, 5)
    assert prompts == ["new"]
    assert {r.copy_of.session_id for r in records if r.copy_of} == {PARENT}


def test_a_copied_response_has_the_id_it_has_in_its_own_session() -> None:
    copied = [r for r in fork(True, True) if isinstance(r, Inference) and r.copy_of]
    own = given([meta(PARENT), event("task_started", turn_id=turn_at(1)), count((100, 0, 10), (100, 0, 10))])

    (original,) = standing(own, Inference)

    assert [c.inference_id for c in copied] == [original.inference_id]


def test_a_spawned_fork_is_a_child_whose_prompts_are_its_parents() -> None:
    source = {
        "subagent": {
            "thread_spawn": {"parent_thread_id": PARENT, "depth": 1, "agent_nickname": "Ada", "agent_role": "explorer"}
        }
    }

    records = fork(True, True, source=source)

    assert counted(records) == (1, 30, 5)
    header = records[0]
    assert isinstance(header, Session) and header.lineage.relation == "spawned_by"
    assert header.lineage.parent is not None and header.lineage.parent.session_id == PARENT
    assert (header.meta or {})["dev.asrd.agentNickname"] == "Ada"
    assert [(m.author, m.origin) for m in standing(records, Message)] == [("agent", "agent")]


def test_a_counter_that_starts_with_what_a_fork_inherited_counts_only_the_childs() -> None:
    began = 0x01A22AC10000
    header = meta(CHILD, timestamp=stamp(began), forked_from_id=PARENT)

    records = given(
        [
            header,
            event("task_started", stamp(began + 5), turn_id=turn_at(began + 5)),
            count((13104, 0, 705), (10103, 0, 604), stamp(began + 90)),
        ]
    )

    assert counted(records) == (1, 10103, 604)


def test_settings_of_the_child_end_a_copy() -> None:
    settings = {"model": "m", "cwd": "/home/dev/app"}

    records = given(
        [
            meta("T2", cli_version="0.153.0", forked_from_id="T1"),
            line("session_meta", {"id": "T1"}),
            count((100, 0, 10), (100, 0, 10)),
            event("thread_settings_applied", thread_id="T1", thread_settings=settings),
            event("thread_settings_applied", thread_id="T2", thread_settings=settings),
            count((150, 0, 15), (50, 0, 5)),
            response("r9", (50, 0, 5), thread="T2"),
        ]
    )

    assert counted(records) == (1, 50, 5)


# ---------------------------------------------------------------- calls and results


def result_of(output: Any, name: str = "exec_command", arguments: str = '{"cmd":"ls"}') -> ToolResult:
    records = given(
        [
            meta("T"),
            item("function_call", name=name, arguments=arguments, call_id="c1"),
            item("function_call_output", call_id="c1", output=output),
        ]
    )
    (result,) = standing(records, ToolResult)
    return result


@pytest.mark.parametrize(
    ("output", "status", "exit_code"),
    [
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 101\nOutput:\nno\n", "failed", 101),
        ("Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n", "completed", 0),
        ("Exit code: 2\nWall time: 3 seconds\nTotal output lines: 9\nOutput:\nx", "failed", 2),
        ('{"output":"no","metadata":{"exit_code":101,"duration_seconds":0.5}}', "failed", 101),
        (
            [{"type": "input_text", "text": "Wall time: 0.1 seconds\nProcess exited with code 7\nOutput:\n"}],
            "failed",
            7,
        ),
        ({"content": "words", "success": False}, "failed", None),
        (
            'exec_command failed for `rm -rf x`: CreateProcess { message: "Rejected(\\"rejected by user\\")" }',
            "denied",
            None,
        ),
        ("aborted by user after 3.1s", "cancelled", None),
        (
            "failed in sandbox LinuxSeccomp with execution error: sandbox denied exec error, exit code: 1, stdout: , stderr: no",
            "failed",
            1,
        ),
        ("Chunk ID: 1\nWall time: 10.0 seconds\nProcess running with session ID 7\nOutput:\n", "completed", None),
    ],
)
def test_an_output_in_any_form_gives_status_and_exit_code(output: Any, status: str, exit_code: int | None) -> None:
    result = result_of(output)

    assert (result.status, result.exec.exit_code if result.exec else None) == (status, exit_code)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (
            "[main b5d8da4] x\n" + "b5d8da43f68262e46f6cf8549840aa26a484c4c3",
            ["b5d8da43f68262e46f6cf8549840aa26a484c4c3"],
        ),
        ("nothing to commit\nb5d8da43f68262e46f6cf8549840aa26a484c4c3", []),
    ],
)
def test_a_commit_counts_of_a_command_that_failed_behind_it_where_git_names_it(words: str, found: list[str]) -> None:
    records = given(
        [
            meta("T"),
            item(
                "function_call",
                name="exec_command",
                arguments='{"cmd":"git commit -m x; git rev-parse HEAD; no"}',
                call_id="c1",
            ),
            item("function_call_output", call_id="c1", output=f"Process exited with code 127\nOutput:\n{words}\n"),
        ]
    )

    assert [v.commit for v in records if isinstance(v, VcsAction)] == found


def test_a_refused_command_is_denied_by_a_person() -> None:
    records = given(
        [
            meta("T"),
            item("function_call", name="exec_command", arguments='{"cmd":"ls"}', call_id="c1"),
            item("function_call_output", call_id="c1", output='exec_command failed: Rejected("rejected by user")'),
        ]
    )

    (approval,) = [r for r in records if isinstance(r, Approval)]

    assert (approval.call_id, approval.decision, approval.by) == ("c1", "deny", "human")


def executed(call_id: str, exit_code: int, text: str, turn: str = "t1", status: str = "completed") -> dict[str, Any]:
    told = {"type": "CommandExecution", "id": call_id, "command": ["bash", "-lc", "ls"], "status": status}
    told |= {"exit_code": exit_code, "aggregated_output": text}
    return event("item_completed", thread_id="T", turn_id=turn, item=told)


def test_a_late_execution_completes_the_result_of_its_older_turn() -> None:
    records = given(
        [
            meta("T"),
            event("task_started", turn_id="t1"),
            item("function_call", name="exec_command", arguments='{"cmd":"ls"}', call_id="c1"),
            item("function_call_output", call_id="c1", output="aborted by user after 2.0s"),
            event("turn_aborted", turn_id="t1", reason="interrupted"),
            event("task_started", turn_id="t2"),
            executed("c1", -1, "part", status="failed"),
        ]
    )

    (result,) = standing(records, ToolResult)

    assert (result.turn_id, result.status, result.exec.exit_code) == ("t1", "cancelled", -1)


def test_an_execution_and_its_output_are_one_result_unless_the_model_saw_less() -> None:
    call = item("function_call", name="exec_command", arguments='{"cmd":"ls"}', call_id="c1")
    same = item(
        "function_call_output",
        call_id="c1",
        output="Wall time: 0.0 seconds\nProcess exited with code 3\nOutput:\nwords",
    )
    less = item(
        "function_call_output", call_id="c1", output="Wall time: 0.0 seconds\nProcess exited with code 3\nOutput:\nwo…"
    )

    one = [r for r in given([meta("T"), call, executed("c1", 3, "words"), same]) if isinstance(r, ToolResult)]
    two = [r for r in given([meta("T"), call, executed("c1", 3, "words"), less]) if isinstance(r, ToolResult)]

    assert len(one) == 1
    assert len(two) == 2 and two[1].supersedes == two[0].id
    assert two[1].exec is not None and two[1].exec.exit_code == 3


def patch_call(patch: str) -> list[dict[str, Any] | bytes]:
    return [
        item("custom_tool_call", name="apply_patch", input=patch, call_id="c2"),
        item("custom_tool_call_output", call_id="c2", output="Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."),
    ]


def test_a_new_file_is_known_whole_from_its_patch() -> None:
    records = given([meta("T"), *patch_call("*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch")])

    (change,) = standing(records, FileChange)

    assert (change.path.path, change.change, change.before) == ("a.txt", "create", None)
    assert change.after.sha256 == sha256("one\ntwo\n")


def test_a_patch_that_does_not_fit_what_was_seen_leaves_the_contents_unknown() -> None:
    seen = [
        item("function_call", name="exec_command", arguments='{"cmd":"cat a.txt"}', call_id="c1"),
        item(
            "function_call_output",
            call_id="c1",
            output="Wall time: 0.0 seconds\nProcess exited with code 0\nOutput:\nother\n",
        ),
    ]

    records = given(
        [meta("T"), *seen, *patch_call("*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch")]
    )

    (change,) = standing(records, FileChange)
    assert (change.before, change.after, change.applied) == (None, None, True)


def test_a_failed_patch_changes_nothing() -> None:
    records = given(
        [
            meta("T"),
            item(
                "custom_tool_call",
                name="apply_patch",
                input="*** Begin Patch\n*** Add File: a\n+x\n*** End Patch",
                call_id="c2",
            ),
            item("custom_tool_call_output", call_id="c2", output="apply_patch verification failed: no such line"),
        ]
    )

    (change,) = standing(records, FileChange)

    assert (change.applied, change.after) == (False, None)


def test_edits_after_one_that_failed_start_from_what_was_seen() -> None:
    seen = [
        item("function_call", name="exec_command", arguments='{"cmd":"cat a.txt"}', call_id="c1"),
        item(
            "function_call_output",
            call_id="c1",
            output="Wall time: 0.0 seconds\nProcess exited with code 0\nOutput:\none\n",
        ),
    ]
    change = {"a.txt": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-one\n+two\n"}}
    failed = event("patch_apply_end", call_id="c2", success=False, changes=change)
    done = event("patch_apply_end", call_id="c3", success=True, changes=change)

    records = given([meta("T"), *seen, failed, done])

    told = [(c.applied, c.before.sha256, c.after and c.after.sha256) for c in standing(records, FileChange)]
    assert told == [(False, sha256("one\n"), None), (True, sha256("one\n"), sha256("two\n"))]


# ---------------------------------------------------------------- prompts


def user(text: str) -> dict[str, Any]:
    return item("message", role="user", content=[{"type": "input_text", "text": text}])


def test_a_users_message_that_no_event_says_is_context() -> None:
    answer = item("message", role="assistant", content=[{"type": "output_text", "text": "ok"}])

    records = given(
        [meta("T"), user("strange words of the harness"), user("do it"), event("user_message", message="do it"), answer]
    )

    said = [(m.content[0].text, m.origin) for m in standing(records, Message) if m.role == "user"]
    assert said == [("do it", "prompt"), ("strange words of the harness", "injected")]


def test_a_prompt_without_events_stays_a_prompt() -> None:
    answer = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}
    bare: list[dict[str, Any] | bytes] = [
        {"id": "T", "timestamp": "2025-07-01T10:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do it"}]},
        answer,
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"output":"x","metadata":{"exit_code":4}}'},
    ]

    records = given(bare)

    assert [m.origin for m in standing(records, Message)] == ["prompt", None]
    assert [r.exec.exit_code for r in standing(records, ToolResult)] == [4]
    assert not [r for r in records if isinstance(r, (Native, Loss))]


def test_the_document_of_the_first_program_is_recorded_as_it_grows() -> None:
    from asrd.reading import revision_of
    from asrd.sources import Row

    def row(items: list[Any]) -> Row:
        data = msgspec.json.encode(
            {"session": {"id": "T", "timestamp": "2025-05-07T10:00:00.000Z", "instructions": ""}, "items": items}
        )
        return Row("d", "rollout-2025-05-07-T.json", revision_of(data), {}, data)

    said: list[Any] = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do it"}]}]
    capture = Capture(RECORDER, "d")
    source = Source("codex", "d", "d", "d", "document")
    streams: Streams = {}

    capture.receive_rows(source, [row(said)])
    capture.receive_rows(
        source,
        [row([*said, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}])],
    )
    appended(capture, streams)

    (records,) = streams.values()
    assert [m.content[0].text for m in standing(records, Message)] == ["do it", "ok"]


# ---------------------------------------------------------------- the rest


def test_a_second_file_after_a_revert_goes_on_with_the_same_session() -> None:
    first, second = f"rollout-2026-11-30T10-00-00-{PARENT}.jsonl", f"rollout-2026-11-30T11-00-00-{PARENT}_{CHILD}.jsonl"
    located = [RECORDER.locate(f"sessions/2026/11/30/{name}") for name in (second, first)]
    assert located[0] and located[1] and located[0].group == located[1].group == PARENT
    capture = Capture(RECORDER, PARENT)
    base = {"thread_id": PARENT, "end_ordinal_exclusive": 5}
    streams: Streams = {}

    for one, more in sorted([(located[0], {"history_base": base}), (located[1], {})], key=lambda pair: pair[0].order):
        data = (
            msgspec.json.encode(meta(PARENT, **more))
            + b"\n"
            + msgspec.json.encode(response(one.name, (10, 0, 1), PARENT))
            + b"\n"
        )
        capture.receive_bytes(Source("codex", one.group, one.name, one.name, "lines", one.order), data)
    appended(capture, streams)

    ((key, records),) = streams.items()
    assert key.session_id == PARENT
    assert figures(streams) == {"requests": 2, "input_total": 20, "output": 2}
    assert [r.native_type for r in records if isinstance(r, Native)] == ["session_meta"]
    assert [r.seq for r in records] == list(range(len(records)))


def test_an_archived_or_packed_file_keeps_its_name() -> None:
    name = f"rollout-2026-11-30T10-00-00-{PARENT}.jsonl"

    located = [
        RECORDER.locate(p)
        for p in (f"sessions/2026/11/30/{name}", f"archived_sessions/{name}", f"archived_sessions/{name}.zst")
    ]

    assert located[0] is not None
    assert located[1:] == [located[0], located[0]]
    assert RECORDER.locate("sessions/notes.jsonl") is None


def test_a_file_elsewhere_is_told_by_its_first_line() -> None:
    head = rollouts()[0].read_bytes()[:65536]

    assert RECORDER.claims(head)
    assert RECORDER.claims(b'{"id":"T","timestamp":"2025-07-01T10:00:00Z","instructions":null}\n')
    assert not RECORDER.claims(
        b'{"type":"session","version":3,"id":"x","timestamp":"2026-11-30T04:49:57.715Z","cwd":"/"}\n'
    )
    assert not RECORDER.claims(b"")


def test_a_name_a_plan_and_a_rollback_have_their_places() -> None:
    plan = '{"plan":[{"step":"read","status":"completed"},{"step":"fix","status":"in_progress"}]}'

    records = given(
        [
            meta("T"),
            event("thread_name_updated", thread_name="Fix add"),
            item("function_call", name="update_plan", arguments=plan, call_id="c1"),
            item("function_call_output", call_id="c1", output="Plan updated"),
            event("thread_rolled_back", num_turns=1),
            item("ghost_snapshot", ghost_commit={"id": "abc"}),
            event("guardian_assessment", id="g1", target_item_id="c1", status="denied"),
        ]
    )

    kinds = [type(r).__name__ for r in records]
    assert [r.title for r in records if isinstance(r, Config)] == ["Fix add"]
    assert [r.native_type for r in records if isinstance(r, Native)] == [
        "event_msg/thread_rolled_back",
        "response_item/ghost_snapshot",
    ]
    assert "Plan" in kinds and "Approval" in kinds
    assert not [r for r in records if isinstance(r, Native) and r.meta and "dev.asrd.unexpected" in r.meta]


# ---------------------------------------------------------------- names


def titles(records: list[Record]) -> list[tuple[str | None, str | None]]:
    """The titles a stream says, each with the name of the source it comes from."""
    (header,) = [r for r in records if isinstance(r, Session)]
    names = {s.id: s.name for s in header.sources or ()}
    for record in records:
        if isinstance(record, Config) and record.meta and SOURCE in record.meta:
            told = record.meta[SOURCE]
            names[told["id"]] = told["name"]
    return [
        (r.title, names[r.meta[SPAN].source])
        for r in records
        if isinstance(r, Config) and r.title and r.meta is not None
    ]


@pytest.mark.parametrize("case", NAMED)
def test_a_thread_is_called_what_it_was_named_last_and_each_name_is_said_once(case: str) -> None:
    truth = truth_of(case)

    streams = streams_of(CODEX / case / "home")

    assert {k.session_id: [t for t, _ in titles(r)] for k, r in streams.items()} == truth["names"]


@pytest.mark.parametrize("case", NAMED)
def test_a_thread_that_only_the_index_names_is_no_session(case: str) -> None:
    streams = streams_of(CODEX / case / "home")

    assert truth_of(case)["elsewhere"]
    assert not {k.session_id for k in streams} & set(truth_of(case)["elsewhere"])


def test_a_name_is_recorded_from_the_rollout_where_that_says_it_and_else_from_the_index() -> None:
    said = {
        case: {source for r in streams_of(CODEX / case / "home").values() for _, source in titles(r)} for case in NAMED
    }

    assert said["T1-names"] == {"session_index.jsonl"}
    assert all(name is not None and name.startswith("rollout-") for name in said["T1-names-v0.128.0"])


def test_a_name_that_the_index_said_first_is_not_said_again_by_the_rollout() -> None:
    capture = Capture(RECORDER, THREAD)
    rollout = Source("codex", THREAD, "rollout.jsonl", "rollout.jsonl", "lines")
    index = Source("codex", THREAD, "session_index.jsonl", "session_index.jsonl", "shared")
    meta = {"timestamp": AT, "type": "session_meta", "payload": {"id": THREAD, "cwd": "/w", "cli_version": "0.128.0"}}
    line = msgspec.json.encode({"id": THREAD, "thread_name": "Fix it", "updated_at": AT})

    capture.receive_bytes(rollout, msgspec.json.encode(meta) + b"\n")
    capture.receive_rows(index, [Row("session_index.jsonl", "k", "k", {}, line)])
    capture.receive_bytes(
        rollout, msgspec.json.encode(event("thread_name_updated", thread_id=THREAD, thread_name="Fix it")) + b"\n"
    )

    streams: Streams = {}
    appended(capture, streams)
    assert [t for (records,) in [streams.values()] for t, _ in titles(records)] == ["Fix it"]
    assert capture.accounts()[0] == {"name-told-before": 1}


@pytest.mark.parametrize("name", [None, ""])
def test_an_empty_name_is_a_named_skip(name: str | None) -> None:
    capture = Capture(RECORDER, THREAD)
    index = Source("codex", THREAD, "session_index.jsonl", "session_index.jsonl", "shared")
    line = msgspec.json.encode({"id": THREAD, "thread_name": name})

    capture.receive_rows(index, [Row("session_index.jsonl", "k", "k", {}, line)])

    assert capture.commands() == []
    assert capture.accounts()[0] == {"name-that-is-empty": 1}
