"""Claude Code's recorder: what its captures hold, however they come, and whatever is wrong in them."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from asrd.capture import Capture
from asrd.convert import Streams, convert_group, groups, merge, take
from asrd.places import Found, find_for, roots_of
from asrd.reading import read_rows
from asrd.recorders.base import Recorded, StreamKey, sha256
from asrd.recorders.claude_code import RECORDER, State
from asrd.records import (
    Approval,
    Compaction,
    Config,
    CopyOf,
    Evidence,
    FileChange,
    Image,
    Inference,
    Limit,
    Link,
    Loss,
    Message,
    Native,
    Plan,
    Record,
    Session,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
    VcsAction,
    encode,
    encode_lines,
    span_of,
)
from asrd.sources import Source
from tests.figures import figures
from tests.recorders.arrivals import remembered

CAPTURES = Path(__file__).parent.parent / "captures" / "claude-code"
CASES = sorted(p.name for p in CAPTURES.iterdir() if (p / "home").is_dir())

# ---------------------------------------------------------------- captures


def found(home: Path) -> list[list[Found]]:
    return groups(find_for(RECORDER, roots_of(RECORDER, home, {}), lambda path, reason: None))


def streams_of(home: Path) -> Streams:
    streams: Streams = {}
    for group in found(home):
        merge(streams, convert_group(RECORDER, group))
    return streams


def truth_of(case: str) -> dict[str, Any]:
    return json.loads((CAPTURES / case / "truth.json").read_text())


def version_of(streams: Streams) -> tuple[int, ...]:
    headers = [r for records in streams.values() for r in records if isinstance(r, Session)]
    return max(tuple(int(n) for n in (h.agent.version or "0").split(".")) for h in headers)


def every(streams: Streams, kind: type[Record]) -> list[Any]:
    """The records of a kind that count: no copies, none that a later record supersedes, each native one once."""
    kept: dict[tuple[str, str], Any] = {}
    for key, records in streams.items():
        old = {r.supersedes for r in records if r.supersedes}
        for number, r in enumerate(records):
            if isinstance(r, kind) and r.copy_of is None and r.id not in old:
                name = (r.native_id or f"{key}/{number}", getattr(r, "call_id", None) or str(type(r)))
                kept.setdefault((str(name), getattr(r, "phase", "") or getattr(r, "inference_id", "")), r)
    return list(kept.values())


def words(content: Iterable[Any]) -> str:
    return "\n".join(b.text for b in content if isinstance(b, Text))


# ---------------------------------------------------------------- what the streams say, and what happened

Table = dict[str, Any]


def told(streams: Streams) -> Table:
    """What streams say of a home, in the words of `truth.json`."""
    calls = {r.call_id: r for r in every(streams, ToolCall)}
    results: dict[str, ToolResult] = {}
    for r in every(streams, ToolResult):
        results.setdefault(r.call_id, r)
    return {
        "prompts": sorted(words(m.content) for m in every(streams, Message) if m.origin == "prompt"),
        "calls": sorted(
            (c.call_id, c.name, json.dumps(as_asked(plain(c.input)), sort_keys=True)) for c in calls.values()
        ),
        "results": {
            i: (r.status in ("failed", "denied", "unknown"), words(r.content or [])) for i, r in results.items()
        },
        "shell": [
            (plain(calls[i].input)["command"], r.exec.exit_code if r.exec else None)
            for i, r in results.items()
            if i in calls and calls[i].name == "Bash" and r.status in ("completed", "failed")
        ],
        "edits": [
            (c.path.path, c.before.sha256 if c.before else None, c.after.sha256 if c.after else None)
            for c in every(streams, FileChange)
        ],
        "responses": {
            i.inference_id: (
                i.model,
                i.usage and (i.usage.input, i.usage.cache_read, i.usage.cache_write, i.usage.output),
            )
            for i in every(streams, Inference)
            if i.usage is not None
        },
        "commits": [v.commit for v in every(streams, VcsAction) if v.action == "commit" and v.commit],
        "tree": tree(streams),
    }


def tree(streams: Streams) -> set[tuple[str, str]]:
    """Parent and child of sub-agents that were given a task, each named by the marker in its first words."""
    name: dict[str, str] = {}
    for key, records in streams.items():
        first = next(
            (words(r.content) for r in records if isinstance(r, Message) and r.origin in ("prompt", "agent")), ""
        )
        if first.startswith("[["):
            name[key.session_id] = first[2 : first.index("]]")]
    edges: set[tuple[str, str]] = set()
    for key, records in streams.items():
        header = records[0]
        assert isinstance(header, Session)
        parent = header.lineage.parent
        if parent is not None and header.lineage.relation == "spawned_by" and key.session_id in name:
            edges.add((name[parent.session_id], name[key.session_id]))
    return edges


def happened(truth: dict[str, Any], version: tuple[int, ...], recorded: set[str]) -> Table:
    """What `truth.json` says, as far as this version of the program writes it down at all."""
    responses: list[dict[str, Any]] = [r for r in truth["responses"] if r.get("message_id") in recorded]
    edges: set[tuple[str, str]] = set()

    def calls(response: dict[str, Any]) -> list[dict[str, Any]]:
        return response.get("calls") or []

    def walk(parent: str, children: Mapping[str, Any]) -> None:
        for title, below in children.items():
            child = title.split(" ")[0]
            if child in {r["script"] for r in responses}:
                # Before 2.1.3xx a nested sub-agent's file names the session only.
                edges.add((parent if version >= (2, 1, 300) else root, child))
                walk(child, below)

    trees: dict[str, dict[str, Any]] = truth.get("subagent_tree") or {}
    root = next(iter(trees), "")
    walk(root, trees.get(root, {}))
    one = version >= (2, 0)
    return {
        "calls": sorted(
            (c["id"], c["name"], json.dumps(c["input"], sort_keys=True)) for r in responses for c in calls(r)
        ),
        "shell": [(s["cmd"], s["exit_code"] if one else None) for s in truth.get("shell", [])],
        "edits": [
            (e["file"], sha256(e["before"]) if e["before"] is not None else None, sha256(e["after"]))
            for e in truth.get("edits", [])
        ],
        "responses": {
            r["message_id"]: (
                r["model"] if version >= (2, 1) else None,
                tuple(
                    r["usage"][f]
                    for f in (
                        "input_tokens",
                        "cache_read_input_tokens",
                        "cache_creation_input_tokens",
                        "output_tokens",
                    )
                ),
            )
            for r in responses
        },
        "commits": [line.split()[0] for line in reversed(truth["git_log_newest_first"][:-1])],
        "tree": edges,
    }


def as_asked(given: dict[str, Any]) -> dict[str, Any]:
    """A call's input without what the harness adds to it (a default of Edit)."""
    return {k: v for k, v in given.items() if (k, v) != ("replace_all", False)}


def plain(value: Any) -> Any:
    return json.loads(encode(Native(native_type="x", data=value)))["data"]


@pytest.mark.parametrize("case", CASES)
def test_a_capture_counts_exactly_what_was_used(case: str) -> None:
    truth = truth_of(case)

    counted = figures(streams_of(CAPTURES / case / "home"))

    assert counted == {k: truth["expected_usage"][k] for k in ("requests", "input_total", "output")}


@pytest.mark.parametrize("case", CASES)
def test_a_capture_says_what_happened(case: str) -> None:
    streams = streams_of(CAPTURES / case / "home")
    truth = truth_of(case)

    said = told(streams)
    true = happened(truth, version_of(streams), set(said["responses"]))

    assert said["calls"] == true["calls"]
    assert said["tree"] == true["tree"]
    assert said["commits"] == true["commits"]
    for ident, (model, usage) in true["responses"].items():
        assert said["responses"][ident][1] == usage
        assert model is None or said["responses"][ident][0] == model
    if true["shell"]:
        assert said["shell"] == true["shell"]
    if true["edits"]:
        assert [e for e in said["edits"] if e[1] or e[2]] == true["edits"]
    for turn in truth.get("turns", []):
        assert said["prompts"].count(turn["prompt"]) == 1


@pytest.mark.parametrize("case", CASES)
def test_a_capture_holds_every_result_the_model_got(case: str) -> None:
    streams = streams_of(CAPTURES / case / "home")

    results = told(streams)["results"]

    for true in truth_of(case)["tool_results"]:
        sent = true["output_as_sent_to_model"]
        text = sent if isinstance(sent, str) else "\n".join(b["text"] for b in sent if b.get("type") == "text")
        failed, said = results[true["call_id"]]
        assert failed == bool(true["is_error"])
        assert text.startswith(said.rstrip()) or said.startswith(text[:80])


@pytest.mark.parametrize("case", CASES)
def test_a_capture_has_every_prompt_in_its_session_and_order(case: str) -> None:
    streams = streams_of(CAPTURES / case / "home")
    by_name = {key.session_id: records for key, records in streams.items()}

    for path, markers in truth_of(case)["prompt_markers_in_each_file_in_order"].items():
        name = Path(path).stem.removeprefix("agent-")
        if ".claude/" not in path or (name not in by_name and not markers):
            continue
        said = [words(r.content) for r in by_name[name] if isinstance(r, Message) and r.origin in ("prompt", "agent")]
        own = [text[2 : text.index("]]")] for text in said if text.startswith("[[")]

        # Side chains stand in the session's file and are streams of their own.
        assert own == [m for m in markers if m in own]
        assert [m for m in markers if m not in own] == [m for m in markers if m.startswith("SUB") and m not in own]


def test_commands_that_failed_in_every_way_say_how() -> None:
    streams = streams_of(CAPTURES / "S8-v2.1.197" / "home")
    results = {r.call_id[-3:]: r for r in every(streams, ToolResult)}

    ends = {
        name: (r.status, r.exec.exit_code if r.exec else None, r.exec.timed_out if r.exec else None)
        for name, r in results.items()
        if name in ("A04", "A05", "A06", "A07", "A08", "A13", "A16", "B02", "D01")
    }

    assert ends == {
        "A04": ("completed", 1, None),  # grep that found nothing: the harness says so of code 1 only
        "A05": ("failed", 3, None),
        "A06": ("completed", 0, None),
        "A07": ("failed", 143, True),
        "A08": ("completed", 0, None),  # went on in the background; the note of its end says the code
        "A13": ("failed", None, None),
        "A16": ("completed", 0, None),
        "B02": ("completed", 0, None),
        "D01": ("denied", None, None),
    }


def test_sessions_that_failed_or_were_killed_end_their_turns() -> None:
    streams = {k.session_id[-2:]: r for k, r in streams_of(CAPTURES / "S8-v2.1.197" / "home").items()}

    ends = {
        name: [(r.status, r.error and r.error.code) for r in streams[name] if isinstance(r, Turn) and r.phase == "end"]
        for name in ("02", "03", "05", "16", "17")
    }

    assert ends == {
        "02": [("failed", "400")],
        "03": [("completed", None)],
        "05": [("failed", None)],
        "16": [("interrupted", None), ("completed", None)],
        "17": [("interrupted", None), ("completed", None)],
    }


@pytest.mark.parametrize(
    "text",
    [
        "This command requires approval",
        "Permission to use Bash has been denied.",
        "Claude requested permissions to write to /w/a, but you haven't granted it yet.",
        "Hook PreToolUse:Bash denied this tool",
    ],
)
def test_a_call_that_nobody_was_asked_for_is_denied_by_the_policy(text: str) -> None:
    s = Transcript("2.0.65")
    s.call("Bash", command="curl x")
    s.result(text, error=True, toolUseResult=f"Error: {text}")

    records = s.records()

    assert [(r.status, r.exec) for r in of(ToolResult, records)] == [("denied", None)]
    assert [(a.decision, a.by) for a in of(Approval, records)] == [("deny", "policy")]


def test_esc_is_told_from_a_refusal_by_the_line_that_follows() -> None:
    streams = streams_of(CAPTURES / "S5-esc-v2.1.197" / "home")

    results = {r.call_id[-3:]: r.status for r in every(streams, ToolResult)}
    decisions = {r.call_id[-3:]: r.decision for r in every(streams, Approval)}
    turns = [r.trigger or r.status for r in every(streams, Turn)]
    (broken,) = [i for i in every(streams, Inference) if i.usage is None]

    assert results == {"P01": "denied", "R01": "cancelled", "Q01": "completed"}
    assert decisions == {"P01": "deny", "R01": "cancelled"}
    assert turns == [
        "prompt", "interrupted", "queued", "completed", "prompt", "interrupted",
        "prompt", "interrupted", "prompt", "completed", "queued", "completed",
    ]  # fmt: skip
    assert (broken.inference_id, broken.error.code) == ("msg_2", "interrupted")


def test_what_a_broken_off_response_had_said_is_the_agents() -> None:
    streams = streams_of(CAPTURES / "S5-esc-v2.1.197" / "home")

    (partial,) = [m for m in every(streams, Message) if words(m.content).startswith("w0 w1 w2")]

    assert (partial.role, partial.author, partial.inference_id) == ("assistant", "agent", None)


def test_turns_end_as_they_did() -> None:
    ends = {
        case: [r.status for r in every(streams_of(CAPTURES / case / "home"), Turn) if r.phase == "end"]
        for case in ("S1", "S1-v1.0.98", "S5-kill-in-tool")
    }

    assert ends["S1"] == ["completed", "completed"]
    assert ends["S1-v1.0.98"] == ["completed", "completed"]
    assert ends["S5-kill-in-tool"] == ["interrupted", "completed"]


def test_a_turn_has_what_started_it() -> None:
    streams = streams_of(CAPTURES / "S2" / "home")

    starts = Counter(r.trigger for r in every(streams, Turn) if r.phase == "start")

    assert starts == {"prompt": 1, "agent": 4}  # three sub-agents, and the note that the one in the background is done


def test_blocked_commands_are_denied_by_the_policy() -> None:
    streams = streams_of(CAPTURES / "S7-acp" / "home")

    denied = [r for r in every(streams, ToolResult) if r.status == "denied"]
    decisions = [r for r in every(streams, Approval) if r.decision == "deny"]

    assert len(denied) == 3
    assert [(d.by, d.policy) for d in decisions] == [("policy", "classifier:auto-mode:no-verdict")] * 3
    assert not any(r.exec for r in denied)


def test_permissions_given_by_a_person_say_so() -> None:
    streams = streams_of(CAPTURES / "S7-acp-manual" / "home")

    given = Counter((r.decision, r.by) for r in every(streams, Approval))

    assert given == {("allow", "human"): 5, ("allow", "policy"): 1}


def test_calls_that_the_kill_cut_off_have_an_unknown_result() -> None:
    streams = streams_of(CAPTURES / "S5-kill-in-tool" / "home")
    before = streams_of(CAPTURES / "S5-kill-in-tool" / "home-after-kill")

    after = [r.status for r in every(streams, ToolResult)]
    (killed,) = before.values()
    (whole,) = streams.values()

    assert after == ["completed", "unknown", "unknown"]
    assert encode_lines(whole).startswith(encode_lines(killed))


def test_a_fork_says_what_it_copied_and_from_where() -> None:
    streams = {k.session_id: r for k, r in streams_of(CAPTURES / "S3" / "home").items()}
    origin, first, second = (
        "11111111-2222-4333-8444-555555555555",
        "d433265b-7d8f-42bd-b501-3985c45e33a8",
        "763444ba-82cb-4b14-8cbf-6c0ff11f4498",
    )

    links = {
        name: [(r.relation, r.target.session_id) for r in records if isinstance(r, Link)]
        for name, records in streams.items()
    }
    copies = Counter(r.copy_of.session_id for r in streams[second] if isinstance(r, Inference) and r.copy_of)

    assert links[origin] == []
    assert links[first] == [("copies", origin), ("forked_from", origin)]
    assert links[second] == [("copies", origin), ("copies", first), ("forked_from", first)]
    assert copies == {origin: 3, first: 2}
    results = [r.copy_of and r.copy_of.session_id for r in streams[second] if isinstance(r, ToolResult)]
    assert results == [origin, first]  # what a copied call came to was copied with it
    natives = {r.native_id for r in streams[origin] if isinstance(r, Message) and r.native_id}
    assert len(natives & {r.native_id for r in streams[first] if isinstance(r, Message)}) > 3


def test_a_compaction_says_its_tokens_and_where_its_summary_is() -> None:
    streams = streams_of(CAPTURES / "S4-manual" / "home")

    (compaction,) = every(streams, Compaction)
    (summary,) = [m for m in every(streams, Message) if m.origin == "summary"]

    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == ("manual", 2087, 2756)
    assert compaction.message_id == summary.message_id
    assert compaction.kept_from is not None


def test_declared_totals_show_what_stands_in_no_line() -> None:
    streams = streams_of(CAPTURES / "S4-manual" / "home")
    truth = truth_of("S4-manual")["expected_usage"]

    last = every(streams, UsageTotal)[-1].usage
    total = last.input + last.cache_read + last.cache_write

    assert total - truth["input_total"] == truth["unrecorded_input"]
    assert last.output - truth["output"] == truth["unrecorded_output"]


@pytest.mark.parametrize("case", CASES)
def test_every_line_of_a_capture_is_accounted_for_and_expected(case: str) -> None:
    home = CAPTURES / case / "home"

    for group in found(home):
        capture, records = run(group)
        skips, counts = capture.accounts()
        lines = sum(len(Path(f.path).read_bytes().splitlines()) for f in group if f.source.kind == "lines")
        documents = sum(f.source.kind == "document" for f in group)
        spans = {(s.source, s.start) for r in records for s in [span_of(r)] if s}
        early = skips.get("held-for-the-header", 0)

        assert len(spans) + sum(skips.values()) - early >= lines + documents
        assert not [k for k in counts if k.startswith(("unexpected", "loss", "mistake"))]


# ---------------------------------------------------------------- the same records however they come


def run(
    group: list[Found], cut: random.Random | None = None, recorded: Mapping[StreamKey, Recorded] | None = None
) -> tuple[Capture, list[Record]]:
    """One group through a Capture; with `cut`, in pieces of any size and with restarts between them."""
    capture = Capture(RECORDER, group[0].source.group, recorded=recorded)
    streams: Streams = {}
    for one in sorted(group, key=lambda f: (not f.source.sidecar, f.source.order, f.source.name)):
        if one.source.kind != "lines":
            capture.receive_rows(one.source, read_rows(one))
            take(streams, capture)
            continue
        data = Path(one.path).read_bytes()
        at = 0
        while at < len(data):
            size = cut.choice((1, 40, 700, 5000, 60000)) if cut else len(data)
            capture.receive_bytes(one.source, data[at : at + size])
            at += size
            take(streams, capture)
            if cut and cut.random() < 0.3:
                capture = Capture(RECORDER, one.source.group, saved=capture.save())
                at = capture.offset(one.source)
        capture.receive_settled(one.source)
        take(streams, capture)
    return capture, [r for key in sorted(streams) for r in streams[key]]


@pytest.mark.parametrize("case", CASES)
def test_the_records_do_not_depend_on_how_the_bytes_came(case: str) -> None:
    cut = random.Random(case)

    for group in found(CAPTURES / case / "home"):
        whole = encode_lines(run(group)[1])
        for _ in range(2):
            assert encode_lines(run(group, cut)[1]) == whole


@pytest.mark.parametrize("case", CASES)
def test_the_records_do_not_depend_on_lines_coming_one_by_one(case: str) -> None:
    for group in found(CAPTURES / case / "home"):
        capture = Capture(RECORDER, group[0].source.group)
        streams: Streams = {}
        for one in sorted(group, key=lambda f: not f.source.sidecar):
            if one.source.kind != "lines":
                capture.receive_rows(one.source, read_rows(one))
            else:
                for line in Path(one.path).read_bytes().splitlines(keepends=True):
                    capture.receive_bytes(one.source, line)
                    take(streams, capture)
                capture.receive_settled(one.source)
            take(streams, capture)

        assert encode_lines([r for k in sorted(streams) for r in streams[k]]) == encode_lines(run(group)[1])


@pytest.mark.parametrize("case", ["S1", "S2", "S2-v1.0.98", "S3", "S5-kill-in-tool"])
def test_a_stream_whose_cursor_was_lost_goes_on_where_it_was(case: str) -> None:
    chance = random.Random(case)

    for group in found(CAPTURES / case / "home"):
        whole: Streams = {}
        merge(whole, convert_group(RECORDER, group))
        kept = {key: records[: chance.randrange(1, len(records) + 1)] for key, records in whole.items()}
        known = {key: remembered(records) for key, records in kept.items()}

        again = run(group, recorded=known)[1]

        rest = [r for key in sorted(whole) for r in whole[key][len(kept[key]) :]]
        assert encode_lines(again) == encode_lines(rest)


# ---------------------------------------------------------------- trouble


def lines_of(case: str) -> list[bytes]:
    path = max((CAPTURES / case / "home").rglob("*.jsonl"), key=lambda p: p.stat().st_size)
    return path.read_bytes().splitlines()


SID = "69cfb8a0-e6ec-4746-bec8-9d82477c5d3e"
SOURCE = Source(
    "claude-code", f"projects/-home-dev-app/{SID}.jsonl", "main", f"projects/-home-dev-app/{SID}.jsonl", "lines"
)


def told_by(lines: list[bytes], source: Source = SOURCE, limit: int = 1 << 22) -> tuple[Capture, Streams]:
    capture = Capture(RECORDER, source.group, limit=limit)
    streams: Streams = {}
    capture.receive_bytes(source, b"\n".join(lines) + b"\n")
    take(streams, capture)
    return capture, streams


def only(streams: Streams) -> list[Any]:
    assert len(streams) == 1
    return list(next(iter(streams.values())))


def test_a_line_of_an_unknown_type_is_kept_whole() -> None:
    lines = lines_of("S1")
    lines[20] = lines[20].replace(b'"type":"assistant"', b'"type":"quantum-state"')

    capture, streams = told_by(lines)

    kept = [r for r in only(streams) if isinstance(r, Native) and r.native_type == "quantum-state"]
    assert len(kept) == 1 and kept[0].data["uuid"]
    assert capture.accounts()[1].get("loss:malformed") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"output_tokens":', b'"output_tokens":"many","was":'),
        (b'"timestamp":"', b'"timestamp":7,"was":"'),
        (b'"content":[', b'"content":5,"was":['),
        (b'"isSidechain":false', b'"isSidechain":"no"'),
        (b'"permissionDecision":{', b'"permissionDecision":{"decision":5,"was":{}},"was2":{'),
        (b'"toolUseResult":', b'"toolUseResult":[1],"was":'),
        (b'"input":{', b'"input":[3],"was":{'),
        (b'"attachment":{', b'"attachment":"gone","was":{'),
        (b'"modelUsage":{', b'"modelUsage":5,"was":{'),
        (b'"message":{', b'"message":"gone","was":{'),
    ],
)
def test_a_field_of_another_type_stops_nothing(old: bytes, new: bytes) -> None:
    lines = [line.replace(old, new, 1) for line in lines_of("S1")]

    capture, streams = told_by(lines)

    skips, counts = capture.accounts()
    spans = {s.start for r in only(streams) for s in [span_of(r)] if s}
    assert len(spans) + sum(skips.values()) >= len(lines)
    assert not [k for k in counts if k.startswith("mistake")]


def test_a_line_that_was_cut_is_a_loss_and_the_rest_is_recorded() -> None:
    lines = lines_of("S1")
    lines[30] = lines[30][:100]

    _, streams = told_by(lines)

    records = only(streams)
    (loss,) = [r for r in records if isinstance(r, Loss)]
    assert loss.span.end - loss.span.start == 100
    assert isinstance(records[-1], UsageTotal)


def test_bytes_that_are_no_text_are_said_and_read_as_far_as_they_go() -> None:
    lines = lines_of("S1")
    place = next(i for i, said in enumerate(lines) if b'"text":"Fixed add' in said and b'"assistant"' in said)
    lines[place] = lines[place].replace(b"Fixed add", b"\xff\xfeFixed add")

    _, streams = told_by(lines)

    records = only(streams)
    assert [r.reason for r in records if isinstance(r, Loss)] == ["not-utf-8"]
    assert any("�" in words(r.content) for r in records if isinstance(r, Message))
    assert figures(streams)["requests"] == 8


def test_a_line_longer_than_may_be_read_is_said_and_passed_over() -> None:
    lines = lines_of("S1")
    lines.insert(40, b'{"type":"user","message":{"role":"user","content":"' + b"A" * 300_000 + b'"}}')

    capture, streams = told_by(lines, limit=250_000)

    assert capture.accounts()[1]["loss:oversize"] == 1
    assert figures(streams)["requests"] == 8


def test_an_empty_file_starts_no_session() -> None:
    capture = Capture(RECORDER, SOURCE.group)

    capture.receive_bytes(SOURCE, b"")
    capture.receive_bytes(SOURCE, b"\n")

    assert capture.commands() == []


def test_a_file_of_nothing_but_lines_without_a_folder_is_recorded_in_the_end() -> None:
    lines = [line(type="summary", summary=f"title {n}", leafUuid=f"leaf-{n}") for n in range(40)]

    _, streams = told_by(lines)

    assert [r.data["summary"] for r in only(streams) if isinstance(r, Native)] == [f"title {n}" for n in range(40)]


# ---------------------------------------------------------------- lines made for one fact


def line(**fields: Any) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


class Transcript:
    """Builds the lines of one session."""

    def __init__(self, version: str = "2.1.332", **every: Any) -> None:
        self.lines: list[bytes] = []
        self.every: dict[str, Any] = {"cwd": "/w", "sessionId": SID, "version": version, "isSidechain": False, **every}
        self.last: str | None = None

    def add(self, type_: str, **fields: Any) -> str:
        uuid = f"u{len(self.lines)}"
        at = f"2026-01-01T00:00:{len(self.lines):02d}.000Z"
        told = {"parentUuid": self.last, "uuid": uuid, "timestamp": at, "type": type_, **self.every, **fields}
        self.lines.append(line(**told))
        self.last = uuid
        return uuid

    def user(self, content: Any, **fields: Any) -> str:
        return self.add("user", message={"role": "user", "content": content}, **fields)

    def said(
        self, block: Any, ident: str = "msg_1", usage: Any = None, stop: str | None = "end_turn", **fields: Any
    ) -> str:
        usage = usage or {
            "input_tokens": 10,
            "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 2,
            "output_tokens": 7,
        }
        model = fields.pop("model", "claude-x")
        message = {
            "id": ident,
            "role": "assistant",
            "model": model,
            "content": [block],
            "stop_reason": stop,
            "usage": usage,
        }
        return self.add("assistant", message=message, **fields)

    def call(self, tool: str, ident: str = "t1", of: str = "msg_1", **given: Any) -> str:
        return self.said({"type": "tool_use", "id": ident, "name": tool, "input": given}, of, stop="tool_use")

    def result(self, content: Any, ident: str = "t1", error: bool = False, **fields: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": ident, "content": content, "is_error": error}
        return self.user([block], **fields)

    def records(self, source: Source = SOURCE) -> list[Any]:
        return only(told_by(self.lines, source)[1])


TEXT = {"type": "text", "text": "done"}


def of(kind: type[Any], records: list[Any]) -> list[Any]:
    return [r for r in records if isinstance(r, kind)]


def test_a_response_that_is_stated_better_later_counts_once_with_the_larger_output() -> None:
    s = Transcript()
    s.user("go")
    for block, output in (({"type": "thinking", "thinking": "hm"}, 3), (TEXT, 3), (TEXT, 600), (TEXT, 12)):
        s.said(block, usage={"input_tokens": 1, "output_tokens": output}, stop=None)

    records = s.records()

    first, better = of(Inference, records)
    assert (first.usage, better.usage) == (Usage(input=1, output=3), Usage(input=1, output=600))
    assert better.supersedes == first.id
    assert len([m for m in of(Message, records) if m.role == "assistant"]) == 4


def test_lines_that_a_resume_writes_again_are_recorded_once() -> None:
    called = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    usage = {"input_tokens": 10, "output_tokens": 7}
    message = {"id": "msg_1", "role": "assistant", "model": "m", "stop_reason": "tool_use", "usage": usage}
    s = Transcript("2.0.65")
    asked = s.user("go")
    at = "2026-01-01T00:00:30.000Z"
    s.add("assistant", message={**message, "content": [TEXT, called]}, timestamp=at)
    s.result("one")
    s.last = asked
    s.add("assistant", message={**message, "content": [TEXT]}, timestamp=at)
    s.add("assistant", message={**message, "content": [called]}, timestamp=at)
    s.result("one")
    s.user("on")
    s.call("Bash", "t2", "msg_2", command="ls")
    s.result("two", "t2")

    records = s.records()

    assert [c.call_id for c in of(ToolCall, records)] == ["t1", "t2"]
    assert [r.call_id for r in of(ToolResult, records)] == ["t1", "t2"]
    assert [m.content[0].text for m in of(Message, records)] == ["go", "done", "on"]
    assert [i.inference_id for i in of(Inference, records)] == ["msg_1", "msg_2"]


def test_a_call_written_again_that_has_no_result_yet_gets_it() -> None:
    called = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    message = {"id": "msg_1", "role": "assistant", "model": "m", "content": [called], "usage": {"output_tokens": 7}}
    s = Transcript("2.0.65")
    asked = s.user("go")
    at = "2026-01-01T00:00:30.000Z"
    s.add("assistant", message=message, timestamp=at)
    s.last = asked
    s.add("assistant", message=message, timestamp=at)
    s.result("one")

    assert [r.linkage for r in of(ToolResult, s.records())] == ["exact"]


def test_of_equal_outputs_the_last_statement_holds() -> None:
    s = Transcript()
    s.said(TEXT, usage={"input_tokens": 1, "output_tokens": 9}, stop=None)
    s.said(TEXT, usage={"input_tokens": 2, "output_tokens": 9})

    last = of(Inference, s.records())[-1]

    assert last.usage == Usage(input=2, output=9)
    assert last.stop_reason == "end_turn"


def test_passes_outside_the_top_level_count_under_their_own_model() -> None:
    passes = [
        {"type": "message", "input_tokens": 10, "output_tokens": 1},
        {"type": "message", "input_tokens": 30, "output_tokens": 1},
        {"type": "advisor_message", "model": "m2", "input_tokens": 7, "output_tokens": 1},
    ]
    s = Transcript()
    s.said(TEXT, usage={"input_tokens": 40, "output_tokens": 2, "iterations": passes})

    found = of(Inference, s.records())

    assert [(i.model, i.usage.input) for i in found] == [("claude-x", 40), ("m2", 7)]


def test_cache_writes_keep_their_split_and_reasoning_stays_inside_output() -> None:
    usage = {
        "input_tokens": 3,
        "output_tokens": 600,
        "output_tokens_details": {"thinking_tokens": 400},
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 30},
    }
    s = Transcript()
    s.said(TEXT, usage=usage)

    (found,) = of(Inference, s.records())

    assert found.usage == Usage(
        input=3, output=600, reasoning=400, cache_read=0, cache_write=100, cache_write_5m=60, cache_write_1h=30
    )


def test_a_line_the_harness_wrote_for_the_model_is_no_request() -> None:
    s = Transcript()
    s.user("go")
    text = "API Error: 529 overloaded"
    s.said({"type": "text", "text": text}, "x", model="<synthetic>", isApiErrorMessage=True, apiErrorStatus=529)

    records = s.records()

    assert of(Inference, records) == []
    end = of(Turn, records)[-1]
    assert (end.status, end.error.code, end.error.message) == ("failed", "529", text)
    assert of(Message, records)[-1].author == "harness"


def test_a_refusal_ends_the_turn_as_refused() -> None:
    s = Transcript()
    s.user("go")
    s.add("assistant", message={"id": "m", "role": "assistant", "model": "x", "content": [], "stop_reason": "refusal"})

    assert [t.status for t in of(Turn, s.records()) if t.phase == "end"] == ["refused"]


def test_a_usage_limit_says_when_it_resets() -> None:
    s = Transcript()
    text = "Claude AI usage limit reached|1755806400"
    s.said({"type": "text", "text": text}, "x", model="<synthetic>", isApiErrorMessage=True)

    (limit,) = of(Limit, s.records())

    assert limit.resets_at == "2025-08-21T20:00:00.000Z"


def test_a_request_that_no_response_names_stays_without_figures() -> None:
    s = Transcript()
    s.user("go")
    for ident in ("r-lost", "r-kept"):
        s.lines.append(line(type="api-request", id=ident, timestamp="2026-01-01T00:00:09.000Z", params={"model": "m"}))
    s.said(TEXT, requestRef="r-kept")

    found = of(Inference, s.records())

    old = {i.supersedes for i in found}
    assert [i.inference_id for i in found if i.id not in old] == ["r-lost", "msg_1"]
    assert found[0].usage is None and found[0].model == "m"


def test_a_cut_response_says_that_its_output_is_not_all() -> None:
    s = Transcript()
    s.said(TEXT, stop=None, isAbortedMidStream=True)
    s.user("[Request interrupted by user]")

    records = s.records()

    assert of(Inference, records)[0].meta["dev.asrd.aborted"] is True
    assert any(c.facet == "output" and c.state == "partial" for c in records if hasattr(c, "facet"))


def test_figures_that_the_harness_set_to_zero_are_unknown() -> None:
    zero = dict.fromkeys(("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"), 0)
    s = Transcript()
    s.said(TEXT, usage={**zero, "cache_creation": {"ephemeral_5m_input_tokens": 19}})

    (found,) = of(Inference, s.records())

    assert found.inference_id == "msg_1" and found.usage is None


@pytest.mark.parametrize(("answers", "triggers"), [(True, ["prompt", "resume"]), (False, ["prompt", "prompt"])])
def test_a_resume_ends_the_turn_it_found_open(answers: bool, triggers: list[str]) -> None:
    s = Transcript()
    s.user("go")
    s.lines.append(
        line(type="queue-operation", operation="enqueue", content="on", timestamp="2026-01-01T00:00:09.000Z")
    )
    s.user("Continue from where you left off.", isMeta=True)
    s.said({"type": "text", "text": "No response requested."}, "x", model="<synthetic>", stop="stop_sequence")
    if not answers:
        s.user("on")
    s.said(TEXT)

    turns = [(t.phase, t.trigger or t.status) for t in of(Turn, s.records())]

    assert turns == [("start", "prompt"), ("end", "interrupted"), ("start", triggers[1]), ("end", "completed")]


def test_esc_ends_the_turn_and_is_no_prompt() -> None:
    s = Transcript()
    s.user("go")
    s.user([{"type": "text", "text": "[Request interrupted by user]"}])

    records = s.records()

    assert [(t.phase, t.status) for t in of(Turn, records)] == [("start", None), ("end", "interrupted")]
    assert [m.origin for m in of(Message, records)] == ["prompt", "injected"]


REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. …NOT written to the file)."
)


@pytest.mark.parametrize(
    ("decision", "status", "by"),
    [({"decision": "reject", "source": "user_reject"}, "denied", "human"), (None, "cancelled", None)],
)
def test_a_refused_call_is_told_from_one_that_was_interrupted(decision: Any, status: str, by: str | None) -> None:
    s = Transcript()
    s.user("go")
    s.call("Bash", command="sleep 9")
    more = {"permissionDecision": decision} if decision else {}
    s.result(REFUSED, error=True, toolDenialKind="user-rejected", toolUseResult="User rejected tool use", **more)

    records = s.records()

    assert [r.status for r in of(ToolResult, records)] == [status]
    assert [a.by for a in of(Approval, records)] == ([by] if by else [])


@pytest.mark.parametrize("version", ["2.1.197", "2.1.318", "2.1.332"])
@pytest.mark.parametrize(
    ("line", "follows", "status", "decisions"),
    [
        ({}, {}, "denied", [("deny", "human")]),
        ({}, {"interruptedMessageId": "msg_1"}, "cancelled", [("cancelled", "human")]),
        ({"toolDenialBeforeRun": True}, {}, "denied", [("deny", "human")]),
    ],
    ids=["No", "Esc in the tool", "No (2.1.332)"],
)
def test_at_the_terminal_the_line_that_follows_tells_a_refusal_from_esc_in_the_tool(
    version: str, line: dict[str, Any], follows: dict[str, Any], status: str, decisions: list[tuple[str, str]]
) -> None:
    s = Transcript(version, entrypoint="cli")
    s.user("go")
    s.call("Bash", command="touch a")
    kind = {} if version == "2.1.197" else {"toolDenialKind": "user-rejected"}
    s.result(REFUSED, error=True, toolUseResult="User rejected tool use", **kind, **line)
    s.user([{"type": "text", "text": "[Request interrupted by user for tool use]"}], **follows)

    records = s.records()

    old = {r.supersedes for r in records}
    assert [r.status for r in of(ToolResult, records) if r.id not in old] == [status]
    assert [(a.decision, a.by) for a in of(Approval, records) if a.id not in old] == decisions
    assert [t.status for t in of(Turn, records)] == [None, "interrupted"]


@pytest.mark.parametrize(
    ("version", "text", "result", "error", "code"),
    [
        ("2.1.332", "Exit code 101\nboom", "Error: Exit code 101\nboom", True, 101),
        ("2.1.332", "Exit code 1", "Error: Exit code 1", True, 1),
        ("2.1.332", "ok", {"stdout": "ok", "stderr": "", "interrupted": False}, False, 0),
        ("2.1.332", "", {"stdout": "", "stderr": "", "interrupted": False}, False, 0),
        ("2.1.332", "cut", {"stdout": "cut", "stderr": "", "interrupted": True}, False, None),
        ("2.1.332", "", {"stdout": "", "stderr": "", "returnCodeInterpretation": "No matches found"}, False, 1),
        ("2.1.332", "", {"stdout": "", "stderr": "", "returnCodeInterpretation": "No files copied"}, False, None),
        ("2.1.332", "Command running in background with ID: b1", {"stdout": "", "backgroundTaskId": "b1"}, False, None),
        ("1.0.98", "boom", "Error: boom", True, None),
        ("1.0.98", "ok", {"stdout": "ok", "stderr": "", "interrupted": False}, False, None),
    ],
)
def test_an_exit_code_is_an_integer_where_it_is_known(
    version: str, text: str, result: Any, error: bool, code: int | None
) -> None:
    s = Transcript(version)
    s.call("Bash", command="./check.sh")
    s.result(text, error=error, toolUseResult=result)

    (found,) = of(ToolResult, s.records())

    assert (found.exec.exit_code if found.exec else None) == code
    assert found.status == ("cancelled" if text == "cut" else "failed" if error else "completed")


def test_a_command_whose_code_1_is_no_error_says_nothing_in_a_sub_agent() -> None:
    s = Transcript(isSidechain=True, agentId="a1")
    s.call("Bash", command="grep x y")
    s.result("")
    s.call("Bash", "t2", "msg_2", command="make")
    s.result("", "t2")

    records = s.records(agent_source("a1"))

    assert [r.exec.exit_code if r.exec else None for r in of(ToolResult, records)] == [None, 0]


def agent_source(ident: str, kind: Any = "lines") -> Source:
    path = f"projects/-w/{SID}/subagents/agent-{ident}.jsonl"
    if kind == "document":
        return Source("claude-code", path, path[:-6] + ".meta.json", path[:-6] + ".meta.json", "document", "0", True)
    return Source("claude-code", path, path, path, "lines", "1")


@pytest.mark.parametrize(
    ("tool", "result", "before", "after"),
    [
        ("Edit", {"filePath": "/w/a", "oldString": "1", "newString": "2", "originalFile": "1 1\n"}, "1 1\n", "2 1\n"),
        (
            "Edit",
            {"filePath": "/w/a", "oldString": "1", "newString": "2", "originalFile": "1 1\n", "replaceAll": True},
            "1 1\n",
            "2 2\n",
        ),
        (
            "Edit",
            {"filePath": "/w/a", "oldString": "b", "newString": "", "originalFile": "a\nb\nc\n"},
            "a\nb\nc\n",
            "a\nc\n",
        ),
        ("Write", {"type": "create", "filePath": "/w/a", "content": "x", "originalFile": None}, None, "x"),
        ("Write", {"type": "update", "filePath": "/w/a", "content": "x", "originalFile": "w"}, "w", "x"),
        (
            "MultiEdit",
            {
                "filePath": "/w/a",
                "originalFileContents": "ab",
                "edits": [{"old_string": "a", "new_string": "c"}, {"old_string": "cb", "new_string": "d"}],
            },
            "ab",
            "d",
        ),
        ("NotebookEdit", {"notebook_path": "/w/n", "original_file": "{}", "updated_file": "[]"}, "{}", "[]"),
        ("Edit", {"filePath": "/w/a", "oldString": "1", "newString": "2", "originalFile": None}, None, None),
        ("Edit", {"filePath": "/w/a", "oldString": "zz", "newString": "2", "originalFile": "1"}, "1", None),
    ],
)
def test_an_edit_gives_both_contents_where_they_are_certain(
    tool: str, result: dict[str, Any], before: str | None, after: str | None
) -> None:
    s = Transcript()
    s.call(tool, file_path="/w/a")
    s.result("ok", toolUseResult=result)

    (change,) = of(FileChange, s.records())

    assert (change.before and change.before.sha256) == (sha256(before) if before is not None else None)
    assert (change.after and change.after.sha256) == (sha256(after) if after is not None else None)
    assert change.path.root == "r1"
    assert change.change == ("create" if result.get("type") == "create" else "modify")


def test_a_patch_made_for_show_is_made_anew() -> None:
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-  a", "+  b"]}
    real = {**hunk, "lines": ["-\ta", "+\tb"]}
    s = Transcript()
    for number, patch in enumerate((hunk, real)):
        s.call("Edit", f"t{number}", f"msg_{number}", file_path="/w/a")
        result = {
            "filePath": "/w/a",
            "oldString": "a",
            "newString": "b",
            "originalFile": "\ta\n",
            "structuredPatch": [patch],
        }
        s.result("ok", f"t{number}", toolUseResult=result)

    shown, fits = of(FileChange, s.records())

    assert shown.after.sha256 == sha256("\tb\n")
    assert shown.diff == fits.diff == "--- /w/a\n+++ /w/a\n@@ -1,1 +1,1 @@\n-\ta\n+\tb\n"


def test_a_failed_edit_changes_no_file() -> None:
    s = Transcript()
    s.call("Edit", file_path="/w/a")
    s.result("<tool_use_error>String to replace not found</tool_use_error>", error=True, toolUseResult="Error: …")

    assert of(FileChange, s.records()) == []


def test_a_sub_agents_write_is_known_from_its_input() -> None:
    s = Transcript(isSidechain=True, agentId="a1")
    s.call("Write", file_path="/w/n.txt", content="new\n")
    s.result("File created successfully at: /w/n.txt")

    (change,) = of(FileChange, s.records(agent_source("a1")))

    assert (change.change, change.after.sha256, change.before) == ("create", sha256("new\n"), None)


def test_todos_are_the_plan_as_a_whole() -> None:
    s = Transcript()
    s.call("TodoWrite", todos=[{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}])
    s.result(
        "Todos have been modified",
        toolUseResult={"oldTodos": [], "newTodos": [{"content": "a", "status": "completed"}]},
    )
    s.call("TaskCreate", "t2", "msg_2", subject="build")
    s.result("Task #1 created successfully: build", "t2", toolUseResult={"task": {"id": "1", "subject": "build"}})
    s.call("TaskUpdate", "t3", "msg_3", taskId="1", status="completed")
    s.result("Updated task #1", "t3", toolUseResult={"success": True})

    plans = [[(i.text, i.status) for i in p.items] for p in of(Plan, s.records())]

    assert plans == [[("a", "completed")], [("build", "pending")], [("build", "completed")]]


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("Bash", "execute"),
        ("mcp__db__query", "mcp"),
        ("Task", "delegate"),
        ("Agent", "delegate"),
        ("WebSearch", "search"),
        ("WebFetch", "fetch"),
        ("ExitPlanMode", "plan"),
        ("Skill", "other"),
    ],
)
def test_a_tool_has_its_kind(tool: str, kind: str) -> None:
    s = Transcript()
    s.call(tool, a=1)

    assert [c.kind for c in of(ToolCall, s.records())] == [kind]


def test_pictures_stand_once_and_then_by_their_digest() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}
    s = Transcript()
    s.user([{"type": "text", "text": "look"}, picture])
    s.user([picture])

    images = [b for m in of(Message, s.records()) for b in m.content if isinstance(b, Image)]

    assert [(i.data, i.bytes, i.sha256) for i in images] == [
        ("aGVsbG8=", 5, sha256("hello")),
        (None, 5, sha256("hello")),
    ]


def test_thoughts_that_were_not_shown_are_known_to_have_been_there() -> None:
    s = Transcript()
    s.said({"type": "thinking", "thinking": "", "signature": "x"}, stop=None)
    s.said({"type": "redacted_thinking", "data": "x"}, stop=None)
    s.said({"type": "thinking", "thinking": "hm", "signature": "x"}, stop=None)

    thoughts = [m.content[0] for m in of(Message, s.records())]

    assert thoughts == [Thinking(redacted=True), Thinking(redacted=True), Thinking(text="hm")]


def test_what_a_hook_a_command_and_the_harness_say_is_no_prompt() -> None:
    s = Transcript()
    s.user("Caveat: The messages below were generated by the user while running local commands.", isMeta=True)
    s.user("<command-name>/model</command-name>")
    s.user("<local-command-stdout>Set model</local-command-stdout>")
    s.user("<bash-input>ls</bash-input>")
    s.user("Stop hook feedback:\n- go on", isMeta=True)
    s.user("<task-notification>\n<task-id>a1</task-id></task-notification>", promptSource="system")
    s.user("This session is being continued…", isCompactSummary=True)
    s.user("the one prompt")

    records = s.records()

    assert [m.origin for m in of(Message, records)] == [
        "injected", "command", "command", "command", "hook", "agent", "summary", "prompt",
    ]  # fmt: skip
    assert [t.trigger for t in of(Turn, records) if t.phase == "start"] == [
        "command",
        "command",
        "hook",
        "agent",
        "prompt",
    ]


def test_a_prompt_typed_while_the_agent_works_supersedes_its_place_in_the_queue() -> None:
    s = Transcript()
    s.user("go")
    s.call("Bash", command="x")
    for words_ in ("more", "never sent"):
        s.lines.append(
            line(type="queue-operation", operation="enqueue", content=words_, timestamp="2026-01-01T00:00:09.000Z")
        )
    s.lines.append(
        line(type="queue-operation", operation="remove", content="never sent", timestamp="2026-01-01T00:00:10.000Z")
    )
    s.add("attachment", attachment={"type": "queued_command", "prompt": "more", "commandMode": "prompt"})
    s.said(TEXT, "msg_2")
    s.lines.append(
        line(type="queue-operation", operation="enqueue", content="next", timestamp="2026-01-01T00:00:12.000Z")
    )
    s.user("next")

    records = s.records()

    queued = {r.id: r.data["content"] for r in of(Native, records) if r.data["operation"] == "enqueue"}
    prompts = [(words(m.content), queued.get(m.supersedes or "")) for m in of(Message, records) if m.origin == "prompt"]
    assert prompts == [("go", None), ("more", "more"), ("next", "next")]
    assert [t.trigger for t in of(Turn, records) if t.phase == "start"] == ["prompt", "prompt"]


def test_a_prompt_that_waited_for_a_turn_to_end_was_queued() -> None:
    s = Transcript()
    s.user("go")
    s.lines.append(
        line(type="queue-operation", operation="enqueue", content="next", timestamp="2026-01-01T00:00:09.000Z")
    )
    s.said(TEXT)
    s.user("next")

    assert [t.trigger for t in of(Turn, s.records()) if t.phase == "start"] == ["prompt", "queued"]


@pytest.mark.parametrize(
    ("summary", "status", "code"),
    [
        ('Background command "x (exit code 9)" completed (exit code 0)', "completed", 0),
        ('Background command "x" failed with exit code 3', "failed", 3),
    ],
)
@pytest.mark.parametrize("queued", [False, True])
def test_a_note_that_a_background_command_ended_completes_its_result(
    summary: str, status: str, code: int, queued: bool
) -> None:
    s = Transcript()
    s.call("Bash", command="./check.sh", run_in_background=True)
    s.result("Command running in background with ID: b1", toolUseResult={"stdout": "", "backgroundTaskId": "b1"})
    note = f"<task-notification>\n<tool-use-id>t1</tool-use-id>\n<summary>{summary}</summary>\n</task-notification>"
    for _ in range(2):
        if queued:
            s.add("attachment", attachment={"type": "queued_command", "prompt": note})
        else:
            s.user(note, promptSource="system")

    first, last = of(ToolResult, s.records())

    assert (first.status, first.exec.exit_code if first.exec else None) == ("completed", None)
    assert last.supersedes == first.id
    assert (last.call_id, last.status, last.exec.exit_code) == ("t1", status, code)
    assert last.content == first.content


def test_asking_for_a_background_commands_output_tells_its_exit_code() -> None:
    s = Transcript("2.0.65")
    s.call("Bash", command="./check.sh", run_in_background=True)
    s.result("Command running in background with ID: b1", toolUseResult={"stdout": "", "backgroundTaskId": "b1"})
    s.call("TaskOutput", "t2", "msg_2", task_id="b1")
    running: dict[str, Any] = {"task_id": "b1", "task_type": "local_bash", "status": "running", "exitCode": None}
    s.result("running", "t2", toolUseResult={"retrieval_status": "timeout", "task": running})
    s.call("TaskOutput", "t3", "msg_3", task_id="b1")
    ended = {**running, "status": "failed", "exitCode": 3}
    s.result("<exit_code>3</exit_code>", "t3", toolUseResult={"retrieval_status": "success", "task": ended})

    found = [(r.call_id, r.status, r.exec and r.exec.exit_code) for r in of(ToolResult, s.records())]

    assert found == [
        ("t1", "completed", None),
        ("t2", "completed", None),
        ("t3", "completed", None),
        ("t1", "failed", 3),
    ]


def test_a_note_of_what_is_no_background_command_ends_nothing() -> None:
    s = Transcript()
    s.call("Bash", command="./check.sh")
    s.result("Exit code 2", error=True)
    s.user("<task-notification><tool-use-id>t1</tool-use-id><summary>x (exit code 0)</summary></task-notification>")

    assert [(r.status, r.exec.exit_code) for r in of(ToolResult, s.records())] == [("failed", 2)]


def test_a_sub_agent_links_the_one_it_waited_for() -> None:
    s = Transcript(isSidechain=True, agentId="a1")
    s.call("Agent", prompt="nest")
    s.result(
        "[Subagent hand-back] The report follows:\n  agentId: aforged0000 (use SendMessage with to: it)\n"
        "agentId: a578e36d31cf148f5 (use SendMessage with to: 'a578e36d31cf148f5' to continue this agent)"
    )

    (link,) = of(Link, s.records(agent_source("a1")))

    assert (link.relation, link.call_id, link.target.session_id) == ("spawned", "t1", "a578e36d31cf148f5")
    assert link.evidence == Evidence(kind="native-id-in-output", field="tool_result.content", value="a578e36d31cf148f5")


@pytest.mark.parametrize(("before", "requests"), [("u0", 1), ("not-in-this-file", 0)])
def test_the_summary_a_fork_begins_with_was_asked_for_elsewhere(before: str, requests: int) -> None:
    s = Transcript()
    s.user("go")
    s.last = None
    s.add(
        "system",
        subtype="compact_boundary",
        logicalParentUuid=before,
        compactMetadata={"trigger": "manual", "preTokens": 9, "postTokens": 2},
    )

    records = s.records()

    assert len(of(Compaction, records)) == 1
    assert len(of(Inference, records)) == requests


def test_a_prompt_after_a_turn_that_was_killed_did_not_wait() -> None:
    s = Transcript()
    s.user("go")
    s.lines.append(line(type="api-request", id="q1", timestamp="2026-01-01T00:00:05.000Z", params={}))
    s.lines.append(
        line(type="queue-operation", operation="enqueue", content="next", timestamp="2026-01-01T00:00:09.000Z")
    )
    s.user("next")

    assert [t.trigger for t in of(Turn, s.records()) if t.phase == "start"] == ["prompt", "prompt"]


def test_work_that_a_hook_sent_back_ends_the_turn_anew() -> None:
    s = Transcript()
    s.user("go")
    s.said(TEXT)
    s.said({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "x"}}, "msg_2", stop="tool_use")
    s.said(TEXT, "msg_3")

    ends = [t for t in of(Turn, s.records()) if t.phase == "end"]

    assert [e.supersedes for e in ends] == [None, ends[0].id]


def test_changes_of_folder_version_model_and_mode_are_said_once() -> None:
    s = Transcript()
    s.user("a", permissionMode="default")
    s.said(TEXT, "m1", effort="high")
    s.every |= {"cwd": "/w/sub", "version": "2.1.333"}
    s.user("b", permissionMode="plan")
    s.said(TEXT, "m2", model="claude-y", effort="high")
    s.said(TEXT, "m3", model="claude-y", effort="high")

    changes = [(c.cwd, c.version, c.model, c.effort, c.mode) for c in of(Config, s.records())]

    assert changes == [
        (None, None, None, None, "default"),
        (None, None, "claude-x", "high", None),
        ("/w/sub", None, None, None, None),
        (None, "2.1.333", None, None, None),
        (None, None, None, None, "plan"),
        (None, None, "claude-y", None, None),
    ]


def test_a_branch_of_history_names_its_parent() -> None:
    s = Transcript()
    first = s.user("a")
    s.said(TEXT, "m1")
    s.last = first
    s.said(TEXT, "m2")
    s.last = "u-unknown"
    s.user("b")

    records = s.records()

    prompt = next(m for m in of(Message, records) if m.native_id == first)
    branch = of(Inference, records)[1]
    assert branch.parent == prompt.id
    assert of(Turn, records)[-1].native_id and of(Message, records)[-1].meta["dev.asrd.parentUuid"] == "u-unknown"


def test_lines_with_forked_from_are_copies_and_own_lines_are_not() -> None:
    s = Transcript()
    fork = {"sessionId": "other", "messageUuid": "u0"}
    s.user("a", forkedFrom=fork)
    s.said(TEXT, "m1", forkedFrom=fork)
    s.user("b")
    s.said(TEXT, "m2")

    records = s.records()

    assert records[0].lineage.parent.session_id == "other" and records[0].lineage.relation == "forked_from"
    assert [i.copy_of for i in of(Inference, records)] == [CopyOf(session_id="other", native_id="u0"), None]
    assert [bool(m.copy_of) for m in of(Message, records)] == [True, True, False, False]


@pytest.mark.parametrize(("kind", "copied"), [("automode-unavailable", True), ("interrupted", False)])
def test_the_result_of_a_copied_call_is_a_copy_but_for_what_the_resume_itself_wrote(kind: str, copied: bool) -> None:
    s = Transcript()
    s.user("go")
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    s.said(call, stop="tool_use", requestSessionId="other")
    line = s.result("it did not run", error=True, toolDenialKind=kind)

    (result,) = of(ToolResult, s.records())

    assert result.copy_of == (CopyOf(session_id="other", native_id=line) if copied else None)


def test_a_commit_is_seen_in_what_a_command_printed() -> None:
    full = "b5d8da43f68262e46f6cf8549840aa26a484c4c3"
    s = Transcript()
    s.call("Bash", command="git commit -q -m x && git rev-parse HEAD")
    s.result(full, toolUseResult={"stdout": full, "stderr": ""})
    s.call("Bash", "t2", "msg_2", command="git checkout -b topic && git commit -m y")
    s.result("Switched to a new branch 'topic'\n[topic abc1234] y", "t2", toolUseResult={"stdout": "", "stderr": ""})
    s.call("Bash", "t3", "msg_3", command="cat log")
    s.result(full, "t3", toolUseResult={"stdout": full, "stderr": ""})

    seen = [(v.action, v.commit, v.branch) for v in of(VcsAction, s.records())]

    assert seen == [("commit", full, None), ("commit", None, "topic"), ("branch", None, "topic")]


def test_a_commit_counts_of_a_command_that_failed_behind_it_where_git_names_it() -> None:
    full = "b5d8da43f68262e46f6cf8549840aa26a484c4c3"
    s = Transcript()
    s.call("Bash", command="git commit -m x && git rev-parse HEAD && ./check.sh")
    s.result(f"Exit code 101\n[main b5d8da4] x\n{full}", error=True)
    s.call("Bash", "t2", "msg_2", command="git commit -m y; git rev-parse HEAD; exit 1")
    s.result(f"Exit code 1\nnothing to commit, working tree clean\n{full}", "t2", error=True)

    seen = [(v.action, v.commit, v.call_id) for v in of(VcsAction, s.records())]

    assert seen == [("commit", full, "t1")]


def test_news_of_a_sub_agent_are_copies_of_its_responses() -> None:
    nested = {
        "type": "assistant",
        "uuid": "n1",
        "message": {"id": "msg_S", "model": "m", "role": "assistant", "usage": {"input_tokens": 1, "output_tokens": 2}},
    }
    s = Transcript()
    s.call("Task", prompt="x")
    s.add("progress", data={"type": "agent_progress", "agentId": "abc", "message": nested}, parentToolUseID="t1")
    s.add("progress", data={"type": "bash_progress", "output": "x"}, toolUseID="t1")

    records = s.records()

    copied = [i for i in of(Inference, records) if i.copy_of]
    assert [(i.inference_id, i.copy_of.session_id) for i in copied] == [("msg_S", "abc")]
    assert [(link.relation, link.target.session_id, link.call_id) for link in of(Link, records)] == [
        ("spawned", "abc", "t1")
    ]
    assert figures({StreamKey("claude-code", SID): records})["requests"] == 1


def test_a_sidecar_that_comes_first_is_in_the_header_and_later_a_link(tmp_path: Path) -> None:
    place = tmp_path / ".claude" / "projects" / "-w" / SID / "subagents"
    place.mkdir(parents=True)
    s = Transcript(isSidechain=True, agentId="a1")
    s.user("task")
    (place / "agent-a1.jsonl").write_bytes(s.lines[0] + b"\n")
    meta = {
        "agentType": "Explore",
        "description": "look",
        "toolUseId": "toolu_9",
        "parentAgentId": "a0",
        "spawnDepth": 2,
    }
    (place / "agent-a1.meta.json").write_text(json.dumps(meta))
    ((file, sidecar),) = [sorted(g, key=lambda f: f.source.sidecar) for g in found(tmp_path)]

    _, first = run([file, sidecar])
    late = Capture(RECORDER, file.source.group)
    late.receive_bytes(file.source, s.lines[0] + b"\n")
    late.receive_rows(sidecar.source, read_rows(sidecar))
    later = late.commands()[0].records

    header = first[0]
    assert isinstance(header, Session) and header.lineage.parent is not None
    parent = header.lineage.parent
    assert (parent.session_id, parent.namespace, parent.call_id) == ("a0", SID, "toolu_9")
    assert header.title == "look"
    (link,) = of(Link, later)
    assert (link.relation, link.target.session_id, link.call_id) == ("spawned_by", "a0", "toolu_9")


@pytest.mark.parametrize("name", ["acompact-3d346a6bf6f19caa", "aaside_question-3d346a6bf6f19caa"])
def test_a_fork_the_harness_made_for_itself_is_told_from_a_sub_agent(name: str) -> None:
    s = Transcript(isSidechain=True, agentId=name)
    s.user("copied")
    s.said(TEXT)

    records = s.records(agent_source(name))

    assert records[0].meta["dev.asrd.internal"] == name[1:].split("-")[0]
    assert of(Inference, records)[0].inference_id == "msg_1"


def test_workflow_agents_are_sub_agents_of_their_session() -> None:
    s = Transcript(isSidechain=True, agentId="a7")
    s.user("step")
    path = f"projects/-w/{SID}/subagents/workflows/wf_1/agent-a7.jsonl"

    (key,) = told_by(s.lines, Source("claude-code", path, path, path, "lines"))[1]

    assert key == StreamKey("claude-code", "a7", SID)


def test_a_journal_of_a_workflow_is_a_stream_of_its_own() -> None:
    path = f"projects/-w/{SID}/subagents/workflows/wf_1/journal.jsonl"
    lines = [line(type="started", key="k", agentId="a7"), line(type="result", key="k", agentId="a7")]

    (key,) = (streams := told_by(lines, Source("claude-code", path, path, path, "lines"))[1])

    assert key == StreamKey("claude-code", "subagents/workflows/wf_1/journal", SID)
    assert [n.native_type for n in of(Native, only(streams))] == ["started", "result"]


def test_a_session_starts_when_its_first_line_says_not_when_a_copied_one_does() -> None:
    s = Transcript()
    s.lines.append(
        line(type="queue-operation", operation="enqueue", content="on", timestamp="2026-02-01T00:00:00.000Z")
    )
    s.user("copied")

    header = s.records()[0]

    assert header.started_at == "2026-02-01T00:00:00.000Z"
    assert header.workspace.roots[0].path == "/w"


def test_a_file_elsewhere_is_named_by_what_it_says() -> None:
    s = Transcript()
    s.user("a")

    (key,) = told_by(s.lines, Source("claude-code", "session.jsonl", "session.jsonl", "session.jsonl", "lines"))[1]

    assert key == StreamKey("claude-code", SID)
    assert RECORDER.claims(s.lines[0])
    assert not RECORDER.claims(b'{"uuid":"1","parentUuid":null,"sessionId":"x","message":{"parts":[]}}')


def test_a_context_that_comes_again_is_left_out_by_name() -> None:
    s = Transcript()
    for _ in range(2):
        s.add("attachment", attachment={"type": "skill_listing", "content": "x" * 300})
        s.add(
            "attachment",
            attachment={"type": "prompt_snapshot", "systemPrompt": ["be kind"], "tools": [{"name": "Bash"}]},
        )

    capture, streams = told_by(s.lines)

    skips = capture.accounts()[0]
    assert skips == {"context-repeated:skill_listing": 1, "context-repeated:prompt_snapshot": 1}
    assert [m.role for m in of(Message, only(streams))] == ["user", "system"]
    assert [c.tools for c in of(Config, only(streams))] == [["Bash"]]


def test_what_a_local_command_printed_ends_the_turn_it_made() -> None:
    s = Transcript()
    s.user("<local-command-caveat>The command below was run directly</local-command-caveat>", isMeta=True)
    s.user("<command-name>/context</command-name>")
    s.add("system", subtype="local_command", content="<local-command-stdout>3k of 200k</local-command-stdout>")
    s.user("go")
    s.call("Bash", command="sleep 9")
    s.add("system", subtype="local_command", content="<local-command-stdout>typed meanwhile</local-command-stdout>")

    turns = of(Turn, s.records())

    assert [(r.trigger or r.status, r.native_id) for r in turns] == [
        ("command", "u1"), ("completed", "u2"), ("prompt", "u3"),
    ]  # fmt: skip


def test_a_turn_that_a_hook_halted_was_interrupted() -> None:
    s = Transcript()
    s.user("forbidden")
    s.user("Operation stopped by hook: not today", isMeta=True)
    s.user("read both")
    s.call("Read", "t1", file_path="/w/a")
    s.call("Read", "t2", file_path="/w/b")
    s.result("a", "t1")
    halted = {"type": "hook_stopped_continuation", "message": "enough", "hookName": "PostToolUse:Read"}
    s.add("attachment", attachment=halted, rendered=[{"content": "hook stopped continuation: enough"}])
    last = s.result("b", "t2")
    s.user("next")

    records = s.records()

    turns = [(r.phase, r.status, r.native_id) for r in of(Turn, records)]
    assert turns[1] == ("end", "interrupted", "u1")
    assert turns[3] == ("end", "interrupted", last)
    assert [(r.status, r.turn_id) for r in of(ToolResult, records)] == [("completed", "u2")] * 2


def test_a_turn_that_ran_out_of_rounds_failed() -> None:
    s = Transcript()
    s.user("go")
    s.call("Bash", command="ls")
    s.result("a")
    s.add("attachment", attachment={"type": "max_turns_reached", "maxTurns": 1, "turnCount": 2})

    (_, end) = of(Turn, s.records())

    assert (end.status, end.error.code, end.native_id) == ("failed", "max_turns_reached", "u3")


@pytest.mark.parametrize("kind", ["coordinator", "peer"])
def test_what_another_agent_sends_is_a_turn_of_its_own_where_none_is_under_way(kind: str) -> None:
    s = Transcript(isSidechain=True, agentId="a1")
    s.user("look")
    s.user("The coordinator sent a message while you were working: also there", isMeta=True, origin={"kind": kind})
    s.said(TEXT)
    s.user("The coordinator sent a message while you were working: more", isMeta=True, origin={"kind": kind})
    s.said(TEXT, "msg_2")

    records = s.records(agent_source("a1"))

    assert [(r.trigger or r.status, r.turn_id) for r in of(Turn, records)] == [
        ("agent", "u0"), ("completed", "u0"), ("agent", "u3"), ("completed", "u3"),
    ]  # fmt: skip
    assert [(m.author, m.origin) for m in of(Message, records) if m.role == "user"] == [("agent", "agent")] * 3


def test_a_message_of_another_agent_that_waited_is_no_prompt_of_a_person() -> None:
    s = Transcript()
    s.user("go")
    told = {"prompt": '<agent-message from="ann">found it</agent-message>', "commandMode": "prompt"}
    s.add("attachment", attachment={"type": "queued_command", "origin": {"kind": "peer", "from": "ann"}, **told})

    (_, sent) = of(Message, s.records())

    assert (sent.author, sent.origin) == ("agent", "agent")


def test_a_skill_that_runs_as_a_sub_agent_is_one() -> None:
    main, agent = Transcript(), Transcript(isSidechain=True, agentId="a0ff1ce")
    main.user("go")
    main.call("Skill", skill="greet")
    main.result('Skill "greet" completed', toolUseResult={"status": "forked", "agentId": "a0ff1ce", "result": "hello"})
    agent.user("Base directory for this skill: /w/.claude/skills/greet\n\nGreet Bob", isMeta=True)
    agent.said(TEXT)

    (link,) = of(Link, main.records())
    turns = of(Turn, agent.records(agent_source("a0ff1ce")))

    assert (link.relation, link.target.session_id, link.call_id) == ("spawned", "a0ff1ce", "t1")
    assert [r.trigger or r.status for r in turns] == ["agent", "completed"]


def test_a_fork_as_a_sub_agent_begins_with_a_copy_of_its_parents_last_response() -> None:
    s = Transcript(isSidechain=True, agentId="a1")
    s.lines.append(
        line(type="fork-context-ref", agentId="a1", parentSessionId=SID, parentLastUuid="p", contextLength=9)
    )
    s.call("Agent", prompt="find it")
    s.user(
        [
            {"type": "tool_result", "tool_use_id": "t1", "content": "Fork started — that fork is you."},
            {"type": "text", "text": "<fork-boilerplate>be brief</fork-boilerplate>\n\nYour directive: find it"},
        ]
    )
    s.said(TEXT, "msg_2")

    records = s.records(agent_source("a1"))

    assert records[0].agent.version == "2.1.332"
    assert [(r.inference_id, r.copy_of) for r in of(Inference, records)] == [
        ("msg_1", CopyOf(session_id=SID)),
        ("msg_2", None),
    ]
    assert [c.copy_of for c in of(ToolCall, records)] == [CopyOf(session_id=SID)]
    assert [(r.relation, r.target.session_id) for r in of(Link, records)] == [("copies", SID)]
    assert [r.trigger or r.status for r in of(Turn, records)] == ["agent", "completed"]
    assert not of(Loss, records)


def test_a_search_is_a_request_whose_figures_no_line_holds() -> None:
    s = Transcript()
    s.user("go")
    s.call("WebSearch", "t1", query="asr")
    s.result('Web search results for query: "asr"', "t1", toolUseResult={"query": "asr", "results": []})
    s.call("WebSearch", "t2", of="msg_2", query="asr")
    s.result("no network", "t2", error=True)

    asked = [r for r in of(Inference, s.records()) if r.usage is None]

    assert [(r.inference_id, r.id_source) for r in asked] == [("t1/search", None)]


def test_only_the_replays_of_a_request_are_passed_over() -> None:
    s = Transcript()
    s.user("go")
    for kind in ("blob", "shape", "resumed"):
        s.lines.append(line(type=f"api-request-{kind}", messageId="m1", pausedRequestId="r1", resumedRequestId="r2"))

    capture, streams = told_by(s.lines)

    assert capture.accounts()[0] == {"request-replay": 2}
    assert [n.native_type for n in of(Native, only(streams))] == ["api-request-resumed"]


def test_a_failed_turn_says_what_the_harness_calls_the_error() -> None:
    codes: list[Any] = []
    for fields in ({"error": "invalid_request"}, {"error": "unknown"}, {"error": "x", "apiErrorType": "overloaded"}):
        s = Transcript()
        s.user("go")
        s.said({"type": "text", "text": "Prompt is too long"}, model="<synthetic>", isApiErrorMessage=True, **fields)
        codes += [r.error.code for r in of(Turn, s.records()) if r.error]

    assert codes == ["invalid_request", None, "overloaded"]


def test_a_session_that_starts_in_a_worktree_has_its_version_and_folder_in_the_header() -> None:
    s = Transcript()
    s.lines.append(line(type="worktree-state", worktreeSession={"worktreePath": "/w"}, sessionId=SID))
    s.user("go")

    header = s.records()[0]

    assert (header.agent.version, header.workspace.roots[0].path) == ("2.1.332", "/w")


WILD = [
    {"type": "system", "subtype": "stop_hook_summary", "hookCount": 1},
    {"type": "system", "subtype": "turn_duration", "durationMs": 5},
    {"type": "system", "subtype": "api_error", "error": {"status": 529}, "retryAttempt": 1},
    {"type": "system", "subtype": "informational", "content": "note"},
    {"type": "system", "subtype": "local_command", "content": "<command-name>/x</command-name>"},
    {"type": "system", "subtype": "microcompact_boundary", "microcompactMetadata": {"preTokens": 9, "tokensSaved": 2}},
    {"type": "pr-link", "prNumber": 1},
    {"type": "agent-name", "agentName": "x"},
    {"type": "custom-title", "customTitle": "T"},
    {"type": "ai-title", "aiTitle": "U"},
    {"type": "teleported-from", "remoteSessionId": "r"},
    {"type": "file-history-snapshot", "snapshot": {"trackedFileBackups": {"a": {"version": 1}}}},
    {"type": "started", "key": "k"},
    {"type": "result", "key": "k"},
    {"type": "queue-operation", "operation": "popAll", "content": "x"},
    {"type": "permission-mode", "permissionMode": "plan"},
    {"type": "atis-latch", "atis": "on"},
    {"type": "progress", "data": {"type": "hook_progress", "hookEvent": "Stop"}},
    {"type": "progress", "data": {"type": "waiting_for_task"}},
    {"type": "attachment", "attachment": {"type": "hook_success", "stdout": "", "exitCode": 0}},
    {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": ["look"]}},
    {"type": "attachment", "attachment": {"type": "task_reminder", "content": [{"id": 1}]}},
    {"type": "attachment", "attachment": {"type": "edited_text_file", "filename": "a", "snippet": "1"}},
    {"type": "attachment", "attachment": {"type": "file", "filename": "a", "content": {"file": {"content": "x"}}}},
    {"type": "attachment", "attachment": {"type": "nested_memory", "content": {"content": "x"}}},
    {"type": "attachment", "attachment": {"type": "never_seen", "x": 1}},
]


@pytest.mark.parametrize(
    "native", WILD, ids=lambda n: str(n.get("subtype") or n.get("attachment", n.get("data", n))["type"])
)
def test_a_kind_seen_in_the_wild_has_its_place(native: dict[str, Any]) -> None:
    s = Transcript()
    s.user("go")
    if native["type"] in ("system", "attachment", "progress"):
        s.add(native.pop("type"), **native)
    else:
        s.lines.append(line(**native))

    capture, streams = told_by(s.lines)

    last = span_of(only(streams)[-1])
    assert last is not None and last.start == len(s.lines[0]) + 1
    assert not [k for k in capture.accounts()[1] if k.startswith(("unexpected", "mistake", "loss"))]


def test_the_state_of_a_recorder_can_be_kept() -> None:
    s = Transcript()
    s.user("go")
    s.call("Edit", file_path="/w/a")
    capture, _ = told_by(s.lines)

    again = Capture(RECORDER, SOURCE.group, saved=capture.save())

    state = again.recorder.state
    assert isinstance(state, State)
    assert list(state.threads[""].calls) == ["t1"]
