"""GitHub Copilot CLI: what its captures hold, however they come, and whatever is wrong in them."""

import json
from typing import Any

import pytest

from asrd.capture import Capture as Life
from asrd.convert import Streams, take
from asrd.recorders.base import sha256
from asrd.recorders.copilot import RECORDER
from asrd.records import (
    Approval,
    Capture,
    Compaction,
    Config,
    End,
    FileChange,
    Inference,
    Link,
    Message,
    Native,
    Plan,
    Session,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    UsageTotal,
    VcsAction,
)
from asrd.sources import Row, Source
from tests.golden import CAPTURES
from tests.recorders.arrivals import groups_of, lineage_of, lines_of, of, record, standing, streams_of
from tests.recorders.scripted import ScriptedCaptures, findings

HARNESS = "copilot"
HOMES = CAPTURES / HARNESS


# ---------------------------------------------------------------- events made here

PATH = "session-state/one/events.jsonl"
SOURCE = Source(HARNESS, "session-state/one", "one", PATH, "lines")
INDEX = Source(
    HARNESS,
    "session-state/one",
    "one/snapshots",
    "session-state/one/rewind-file-snapshots/index.json",
    "document",
    "",
    True,
)
START = ("session.start", {"sessionId": "one", "version": 1, "copilotVersion": "1.0.102", "context": {"cwd": "/w"}})


def streams_given(*events: tuple[Any, ...], index: Any = None) -> Streams:
    """The streams these events give; an event may have the agent it is of as a third."""
    lines = [
        {
            "type": t,
            "data": d,
            "id": f"e{i}",
            "timestamp": f"2026-11-30T05:00:{i:02}.000Z",
            **({"agentId": a[0]} if a else {}),
        }
        for i, (t, d, *a) in enumerate([START, *events])
    ]
    contents: list[Any] = [(SOURCE, b"".join(json.dumps(line).encode() + b"\n" for line in lines))]
    if index is not None:
        contents.insert(0, (INDEX, [Row("index.json", "index.json", "r1", {}, json.dumps(index).encode())]))
    streams = record(RECORDER, contents)[0]
    assert [f for f in findings(streams) if "call-unseen" not in f] == []
    return streams


def given(*events: tuple[Any, ...], index: Any = None) -> list[Any]:
    (records,) = streams_given(*events, index=index).values()
    return [r for r in records[1:] if not isinstance(r, Capture)]


PROMPT = ("user.message", {"content": "go", "messageId": "m1", "interactionId": "i1"})


def asks(name: str, given: Any, ident: str = "c1", **more: Any) -> tuple[str, dict[str, Any]]:
    request = {"toolCallId": ident, "name": name, "arguments": given}
    return "assistant.message", {
        "content": "",
        "messageId": "m2",
        "apiCallId": "resp-1",
        "toolRequests": [request],
        **more,
    }


def done(ident: str = "c1", **more: Any) -> tuple[str, dict[str, Any]]:
    return "tool.execution_complete", {"toolCallId": ident, "success": True, **more}


ANSWER = ("assistant.message", {"content": "done", "messageId": "m3", "apiCallId": "resp-2"})
TURN_END = ("assistant.turn_end", {"turnId": "0"})


class TestCaptures(ScriptedCaptures):
    recorder = RECORDER


def test_the_declared_totals_are_what_the_responses_come_to() -> None:
    for case in ("S1", "S2", "S7-acp"):
        streams = streams_of(RECORDER, HOMES / case / "home")
        main = next(iter(streams.values()))

        totals = {r.scope: r.usage for r in main if isinstance(r, UsageTotal)}
        own = [r.usage for r in main if isinstance(r, Inference) and r.usage]
        every = [r.usage for r in standing(streams, Inference) if r.usage]

        for scope, counted in (("session", own), ("tree", every)):
            for field in ("input", "output", "cache_read", "cache_write", "reasoning"):
                assert getattr(totals[scope], field) == sum(getattr(u, field) for u in counted), (case, scope, field)


def test_a_header_says_version_folder_and_commit() -> None:
    (header, *_) = next(iter(streams_of(RECORDER, HOMES / "S1" / "home").values()))

    assert isinstance(header, Session) and header.workspace is not None
    (root,) = header.workspace.roots
    assert (header.agent.version, root.path) == ("1.0.102", "/home/dev/app")
    assert root.vcs is not None and (root.vcs.branch, len(root.vcs.head or "")) == ("main", 40)


def test_a_session_killed_in_the_middle_of_an_answer_has_its_prompt_and_no_end() -> None:
    records = next(iter(streams_of(RECORDER, HOMES / "S5-midstream" / "home").values()))

    assert [r.phase for r in records if isinstance(r, Turn)] == ["start"]
    assert not [r for r in records if isinstance(r, End | Inference)]


def test_a_turn_ends_where_the_model_asks_for_no_more_tools() -> None:
    records = given(PROMPT, asks("bash", {"command": "x"}), done(), TURN_END, ANSWER, TURN_END)

    ends = [(r.status, r.turn_id) for r in records if isinstance(r, Turn) and r.phase == "end"]

    assert ends == [("completed", "i1")]


def test_an_abort_ends_the_turn() -> None:
    records = given(PROMPT, asks("bash", {"command": "x"}), ("abort", {"reason": "user"}))

    assert [r.status for r in records if isinstance(r, Turn) and r.phase == "end"] == ["interrupted"]
    assert [r.native_type for r in records if isinstance(r, Native)] == ["abort"]


def test_an_error_of_the_model_ends_the_turn_with_its_reason() -> None:
    records = given(PROMPT, ("session.error", {"errorType": "rate_limit", "message": "slow down", "statusCode": 429}))

    (end,) = [r for r in of(Turn, records) if r.phase == "end"]

    assert (end.status, end.error.code, end.error.message) == ("failed", "429", "slow down")


USAGE = {
    "model": "m",
    "inputTokens": 100,
    "outputTokens": 9,
    "cacheReadTokens": 60,
    "cacheWriteTokens": 10,
    "reasoningTokens": 4,
}


def used(ident: str = "resp-1") -> tuple[str, dict[str, Any]]:
    return "session.usage_record", {"usage": {**USAGE, "apiCallId": ident, "accounting": {"usageId": ident}}}


def test_cached_tokens_are_taken_out_of_the_input() -> None:
    (inference,) = of(Inference, given(PROMPT, used()))

    usage = inference.usage
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning) == (30, 60, 10, 9, 4)
    assert inference.meta["dev.asrd.usage"]["inputTokens"] == 100


def test_a_usage_record_that_comes_twice_counts_once() -> None:
    records = given(PROMPT, used(), used())

    assert len(of(Inference, records)) == 1


def test_figures_that_come_behind_the_answer_take_the_place_of_what_it_said() -> None:
    first, second = of(Inference, given(PROMPT, asks("bash", {}, outputTokens=9), used()))

    assert (first.usage.output, first.usage.input) == (9, None)
    assert (second.supersedes, second.usage.input) == (first.id, 30)


def test_an_old_log_has_the_output_of_an_answer_and_the_figures_of_a_compaction() -> None:
    compacted = {"success": True, "preCompactionTokens": 100, "summaryContent": "short", "requestId": "q1"}
    records = given(
        PROMPT,
        ("assistant.message", {"content": "done", "messageId": "m3", "outputTokens": 7}),
        (
            "session.compaction_complete",
            {**compacted, "compactionTokensUsed": {"input": 50, "output": 5, "cachedInput": 40}},
        ),
    )

    answer, compaction = of(Inference, records)
    (said,) = of(Compaction, records)

    assert (answer.inference_id, answer.usage.output) == ("m3", 7)
    assert (compaction.inference_id, compaction.usage.input, compaction.usage.cache_read) == ("q1", 10, 40)
    assert (said.tokens_before, said.summary) == (100, "short")


def test_a_compaction_whose_request_has_its_record_counts_once() -> None:
    records = given(
        PROMPT,
        used("resp-c"),
        (
            "session.compaction_complete",
            {"success": True, "trigger": "manual", "compactionTokensUsed": {"inputTokens": 100, "outputTokens": 9}},
        ),
    )

    assert [r.inference_id for r in records if isinstance(r, Inference)] == ["resp-c"]
    assert [r.trigger for r in records if isinstance(r, Compaction)] == ["manual"]


STARTED = ("session.compaction_start", {"trigger": "threshold", "currentTokens": 128169})
COMPACTED = (
    "session.compaction_complete",
    {
        "success": True,
        "trigger": "threshold",
        "compactionTokensUsed": {"model": "m", "inputTokens": 1260, "outputTokens": 42, "cacheReadTokens": 218},
    },
)


def test_a_compaction_whose_request_has_no_record_counts() -> None:
    _, compaction, _ = of(Inference, given(PROMPT, used("r1"), STARTED, COMPACTED, used("r2")))

    assert (compaction.usage.input, compaction.usage.cache_read, compaction.usage.output) == (1042, 218, 42)
    assert (compaction.id_source, compaction.meta["dev.asrd.kind"]) == ("derived", "compaction")


def test_the_request_of_a_compaction_by_hand_has_its_own_id_and_counts_once() -> None:
    figures = {
        "prompt_tokens": 1260,
        "completion_tokens": 42,
        "prompt_tokens_details": {"cached_tokens": 218},
        "completion_tokens_details": {"reasoning_tokens": 11},
    }
    success = {"modelCall": {"model": "m", "api_id": "resp-c"}, "responseUsage": figures, "modelCallDurationMs": 14}

    records = given(PROMPT, used("r1"), STARTED, ("model.model_call_success", success), COMPACTED)

    _, compaction = of(Inference, records)
    assert (compaction.inference_id, compaction.model, compaction.duration_ms) == ("resp-c", "m", 14)
    assert (compaction.usage.input, compaction.usage.output, compaction.usage.reasoning) == (1042, 42, 11)
    assert [r.data["modelCall"]["api_id"] for r in records if isinstance(r, Native) and "success" in r.native_type]


RESTATED = "dev.asrd.restated"
SUMMED = "What was said, in short."
BY_HAND = (
    STARTED,
    (
        "model.model_call_success",
        {
            "modelCall": {"model": "m", "api_id": "resp-c"},
            "responseUsage": {"prompt_tokens": 1260, "completion_tokens": 42},
            "responseChunk": {"id": "resp-c", "choices": [{"delta": {"content": SUMMED}, "finish_reason": "stop"}]},
            "requestMessages": json.dumps([{"role": "user", "content": "go"}]),
        },
    ),
    ("model.message", {"message": {"role": "assistant", "content": SUMMED}, "modelCall": {"api_id": "resp-c"}}),
    ("model.response", {"response": {"role": "assistant", "content": SUMMED}}),
    (
        "model.messages_snapshot",
        {
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": "done"},
                {"role": "user", "content": "Please sum up."},
                {"role": "assistant", "content": SUMMED},
            ]
        },
    ),
)


def test_what_a_compaction_by_hand_says_again_is_recorded_once() -> None:
    done = ("session.compaction_complete", {"success": True, "summaryContent": SUMMED, "trigger": "manual"})

    records = given(PROMPT, ANSWER, *BY_HAND, done)

    texts = [(r.role, r.origin, r.content[0].text) for r in of(Message, records)]
    assert texts == [
        ("user", "prompt", "go"),
        ("assistant", None, "done"),
        ("assistant", "summary", SUMMED),
        ("user", "injected", "Please sum up."),
    ]
    summary, asked = of(Message, records)[2:]
    (compaction,) = of(Compaction, records)
    assert (compaction.message_id, compaction.summary) == (summary.message_id, None)
    assert summary.inference_id == "resp-c" and asked.meta[RESTATED] == ["messages"]
    (answered,) = [r for r in of(Inference, records) if r.inference_id == "resp-c"]
    assert answered.stop_reason == "stop"
    began, trace = of(Native, records)
    assert (began.native_type, trace.native_type) == ("session.compaction_start", "model.model_call_success")
    assert set(trace.data) == {"modelCall", "responseUsage", "responseChunk"} and trace.data["responseChunk"] == {
        "id": "resp-c"
    }
    assert trace.meta[RESTATED] == ["requestMessages", "responseChunk.choices"]


def test_a_summary_that_is_another_than_the_answer_is_said_by_the_compaction() -> None:
    done = ("session.compaction_complete", {"success": True, "summaryContent": "other", "trigger": "manual"})

    (compaction,) = of(Compaction, given(PROMPT, *BY_HAND, done))

    assert (compaction.message_id, compaction.summary) == (None, "other")


def test_what_the_model_was_sent_outside_a_compaction_is_kept_whole() -> None:
    records = given(PROMPT, ANSWER, *BY_HAND[1:])

    kept = {r.native_type: r for r in of(Native, records)}
    assert set(kept) == {event for event, _ in BY_HAND[1:]}
    assert [r.data for r in kept.values()] == [data for _, data in BY_HAND[1:]]
    assert not [r for r in kept.values() if RESTATED in r.meta]


@pytest.mark.parametrize(("count", "short"), [(1, True), (2, False), (3, False), (None, False)])
def test_a_total_that_leaves_out_requests_of_the_log_is_said_to(count: int | None, short: bool) -> None:
    metrics = {"m": {"requests": {"count": count}, "usage": USAGE}}
    over = ("session.shutdown", {"shutdownType": "routine", "modelMetrics": metrics})

    (stream,) = streams_given(PROMPT, used("resp-1"), asks("bash", {}), done(), ANSWER, over, over).values()

    told = [r for r in stream if isinstance(r, Capture) and r.facet == "usage_total"]
    said = [(r.state, r.at, r.meta["dev.asrd.requests"]) for r in told if r.meta]
    assert said == ([("partial", None, {"total": 1, "log": 2})] if short else [])


def test_a_call_that_copilot_made_itself_is_no_request() -> None:
    told = ("system.notification", {"content": "Agent has finished", "kind": {"type": "agent_idle"}})
    asks_itself = {"toolCallId": "c9", "name": "read_agent", "arguments": {"agent_id": "a"}}

    records = given(PROMPT, used(), told, ("assistant.message", {"messageId": "m9", "toolRequests": [asks_itself]}))

    assert [r.inference_id for r in records if isinstance(r, Inference)] == ["resp-1"]
    (call,) = of(ToolCall, records)
    assert (call.call_id, call.inference_id) == ("c9", None)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"shellExecution": {"exitCode": 101}, "result": {"content": "no"}}, 101),
        ({"result": {"content": "no\n<shellId: 0 completed with exit code 2>"}}, 2),
        ({"result": {"content": "no\n<exited with exit code 0>"}}, 0),
        ({"toolTelemetry": {"metrics": {"exit_code": 3.0}}}, 3),
        ({"result": {"content": "still running"}}, None),
    ],
)
def test_an_exit_code_is_an_integer_where_it_is_known(more: dict[str, Any], code: int | None) -> None:
    (got,) = of(ToolResult, given(PROMPT, asks("bash", {"command": "x"}), done(**more)))

    assert (got.exec.command, got.exec.exit_code) == ("x", code)


@pytest.mark.parametrize(
    ("kind", "decision", "by", "status"),
    [
        ("approved", "allow", None, "completed"),
        ("approved-for-session", "allow_always", None, "completed"),
        ("denied-interactively-by-user", "deny", "human", "denied"),
        ("denied-by-rules", "deny", "policy", "denied"),
    ],
)
def test_a_call_that_was_refused_is_denied(kind: str, decision: str, by: str | None, status: str) -> None:
    records = given(
        PROMPT,
        asks("bash", {"command": "x"}),
        ("permission.requested", {"requestId": "p1", "permissionRequest": {"kind": "shell", "toolCallId": "c1"}}),
        ("permission.completed", {"requestId": "p1", "result": {"kind": kind}}),
        done(success=decision != "deny", error={"message": "no"} if decision == "deny" else None),
    )

    asked, decided = of(Approval, records)
    (got,) = of(ToolResult, records)

    assert (asked.phase, asked.call_id, decided.call_id, decided.decision, decided.by) == (
        "requested",
        "c1",
        "c1",
        decision,
        by,
    )
    assert got.status == status


def test_a_call_that_a_resume_found_without_a_result_is_unknown() -> None:
    records = given(
        PROMPT,
        asks("bash", {"command": "x"}),
        ("session.resume", {"context": {"cwd": "/w"}}),
        done(success=False, model="resumed", error={"message": "interrupted"}),
        ("session.warning", {"warningType": "interrupted_tools"}),
    )

    assert [r.status for r in records if isinstance(r, ToolResult)] == ["unknown"]
    assert [r.native_type for r in records if isinstance(r, Native)] == ["session.resume", "session.warning"]
    assert [r.status for r in of(Turn, records) if r.phase == "end"] == ["interrupted"]


def test_a_call_only_the_execution_tells_of_is_recorded() -> None:
    records = given(
        PROMPT,
        ("tool.user_requested", {"toolCallId": "c9", "toolName": "bash", "arguments": {"command": "ls"}}),
        done("c9"),
    )

    assert [(r.call_id, r.input) for r in records if isinstance(r, ToolCall)] == [("c9", {"command": "ls"})]


def test_a_patch_is_the_input_as_it_stands() -> None:
    records = given(PROMPT, asks("apply_patch", "*** Begin Patch"))

    assert [r.input for r in records if isinstance(r, ToolCall)] == [{"raw": "*** Begin Patch"}]


def diff(*lines: str) -> str:
    return "\ndiff --git a/w/a.txt b/w/a.txt\n--- a/w/a.txt\n+++ b/w/a.txt\n" + "\n".join(lines) + "\n"


VIEW = [
    asks("view", {"path": "/w/a.txt"}),
    done(result={"content": "one\ntwo\n", "detailedContent": diff("@@ -1,3 +1,3 @@", " one", " two", " ")}),
]
RUN = [asks("bash", {"command": "x"}, "c3"), done("c3", shellExecution={"exitCode": 0})]


def edited(*lines: str) -> list[tuple[str, dict[str, Any]]]:
    shown = {"content": "updated", "detailedContent": diff(*lines)}
    return [
        asks("edit", {"path": "/w/a.txt", "old_str": "two", "new_str": "three"}, "c2"),
        done("c2", result=shown, fileEdits=[{"path": "/w/a.txt", "kind": "edit"}]),
    ]


WHOLE = edited("@@ -1,3 +1,3 @@", " one", "-two", "+three", " ")
PIECE = edited("@@ -2,1 +2,1 @@", "-two", "+three")


def changes(*events: tuple[str, dict[str, Any]], index: Any = None) -> list[Any]:
    return of(FileChange, given(PROMPT, *events, index=index))


def test_an_edit_of_a_file_that_was_viewed_has_both_digests_and_its_diff() -> None:
    (change,) = changes(*VIEW, *PIECE)

    assert (change.before.sha256, change.after.sha256) == (sha256("one\ntwo\n"), sha256("one\nthree\n"))
    assert change.diff.startswith("diff --git") and "-two\n+three" in change.diff


def test_after_a_command_only_a_diff_of_the_whole_file_proves_what_it_held() -> None:
    (sure,) = changes(*VIEW, *RUN, *WHOLE)
    (unsure,) = changes(*VIEW, *RUN, *PIECE)

    assert (sure.before.sha256, sure.after.sha256) == (sha256("one\ntwo\n"), sha256("one\nthree\n"))
    assert (unsure.before, unsure.after) == (None, None)


def test_snapshots_of_the_prompt_complete_what_its_edits_do_not_say() -> None:
    image = {"kind": "content", "contentHash": sha256("one\ntwo\n"), "size": 8}
    after = {"kind": "content", "contentHash": sha256("one\nthree\n"), "size": 10}
    index = {
        "snapshots": [{"eventId": "e1", "files": {"f": {"path": "/w/a.txt", "preimage": image, "postimage": after}}}]
    }

    first, second = changes(*PIECE, ("session.shutdown", {"shutdownType": "routine"}), index=index)

    assert (first.before.sha256, first.after) == (sha256("one\ntwo\n"), None)
    assert second.supersedes == first.id
    assert (second.before.sha256, second.after.sha256) == (sha256("one\ntwo\n"), sha256("one\nthree\n"))


def test_a_created_file_has_its_digest_afterwards() -> None:
    (change,) = changes(
        asks("create", {"path": "/w/a.txt", "file_text": "new\n"}, "c2"),
        done("c2", fileEdits=[{"path": "/w/a.txt", "kind": "create"}]),
    )

    assert (change.change, change.before, change.after.sha256) == ("create", None, sha256("new\n"))


def test_an_edit_that_failed_changes_nothing() -> None:
    assert changes(PIECE[0], done("c2", success=False, fileEdits=[{"path": "/w/a.txt", "kind": "edit"}])) == []


def test_a_sub_agents_events_are_a_stream_of_their_own() -> None:
    streams = streams_given(
        PROMPT,
        asks("task", {"prompt": "count"}),
        ("subagent.started", {"toolCallId": "c1", "agentName": "general-purpose"}, "a1"),
        ("user.message", {"content": "count", "source": "agent-one", "interactionId": "i2"}, "a1"),
        ("assistant.message", {**asks("task", {"prompt": "more"}, "c2")[1], "apiCallId": "resp-2"}, "a1"),
        ("subagent.started", {"toolCallId": "c2", "agentName": "explore"}, "a2"),
    )

    main, child, below = streams.values()

    links = [
        (k.session_id, r.target.session_id, r.call_id) for k, rs in streams.items() for r in rs if isinstance(r, Link)
    ]
    assert links == [("one", "a1", "c1"), ("a1", "a2", "c2")]
    assert lineage_of(below).parent.session_id == "a1"
    assert [(m.author, m.origin) for m in child if isinstance(m, Message) and m.role == "user"] == [("agent", "agent")]
    assert [words.content for words in main if isinstance(words, Message)][0] == [Text(text="go")]


def test_a_shutdown_ends_the_session_and_a_resume_goes_on() -> None:
    records = next(iter(streams_of(RECORDER, HOMES / "S1" / "home").values()))

    assert [(r.status, r.reason) for r in records if isinstance(r, End)] == [("completed", "routine")] * 2
    assert [r.action for r in records if isinstance(r, VcsAction)] == ["commit", "state"]


def test_context_that_is_put_before_a_prompt_is_injected() -> None:
    records = given(
        ("user.message", {"content": "go", "transformedContent": "<now>today</now>\n\ngo", "interactionId": "i1"})
    )

    said = [(m.origin, m.content) for m in records if isinstance(m, Message)]

    assert said == [("prompt", [Text(text="go")]), ("injected", [Text(text="<now>today</now>")])]


def test_changes_of_model_mode_and_title_are_said() -> None:
    records = given(
        ("session.model_change", {"newModel": "m2", "reasoningEffort": "high"}),
        ("session.mode_changed", {"newMode": "plan"}),
        ("session.title_changed", {"title": "Adding"}),
    )

    said = [(c.model, c.effort, c.mode, c.title) for c in records if isinstance(c, Config)][1:]

    assert said == [("m2", "high", None, None), (None, None, "plan", None), (None, None, None, "Adding")]


@pytest.mark.parametrize(
    "kind",
    [
        "hook.start",
        "hook.end",
        "session.info",
        "session.compaction_start",
        "session.truncation",
        "session.usage_checkpoint",
    ],
)
def test_a_kind_without_a_place_is_kept_whole(kind: str) -> None:
    records = given((kind, {"hookType": "preToolUse", "n": 1}))

    assert [(r.native_type, r.data["n"]) for r in records if isinstance(r, Native)] == [(kind, 1)]


def test_a_checklist_is_the_plan_as_a_whole() -> None:
    records = given(PROMPT, asks("update_todo", {"todos": "- [x] a\n- [ ] b"}))

    (plan,) = of(Plan, records)

    assert [(i.text, i.status) for i in plan.items] == [("a", "completed"), ("b", "pending")]


def test_a_file_elsewhere_is_known_by_its_first_line() -> None:
    (contents,) = groups_of(RECORDER, HOMES / "S1" / "home")

    heads = [content[:4096] for _, content in contents if isinstance(content, bytes)]

    assert [RECORDER.claims(head) for head in heads] == [True]


# ---------------------------------------------------------------- the store of all sessions

STORE = Source(HARNESS, "session-state/one", "session-store.db", "session-store.db", "shared", "~")


def stored(ident: int, called: bool = False, table: str = "assistant_usage_events", **more: Any) -> Row:
    """A request in the store: 100 `ident` tokens of input, 40 of them cached."""
    values = {
        "id": ident, "model": "m", "input_tokens": 100 * ident, "cache_read_tokens": 40, "output_tokens": ident,
        "finish_reason": "tool_calls" if called else "stop", "created_at": "2026-11-30T05:00:01.500Z", **more,
    }  # fmt: skip
    return Row(table, str(ident), json.dumps(values), values)


def arriving(*steps: Row | tuple[Any, ...]) -> tuple[list[Any], dict[str, int]]:
    """The standing records of a log and a store that grow in turns, and what was left out by which rule."""
    events = [
        json.dumps({"type": s[0], "data": s[1], "id": f"e{n}", "timestamp": f"2026-11-30T05:00:{n:02}.000Z"}).encode()
        for n, s in enumerate([START, *[s for s in steps if isinstance(s, tuple)]])
    ]
    capture = Life(RECORDER, "session-state/one")
    capture.receive_bytes(SOURCE, events.pop(0) + b"\n")
    for step in steps:
        if isinstance(step, Row):
            capture.receive_rows(STORE, [step])
        else:
            capture.receive_bytes(SOURCE, events.pop(0) + b"\n")
    streams: Streams = {}
    take(streams, capture)
    assert [f for f in findings(streams) if "call-unseen" not in f] == []
    (records,) = streams.values()
    gone = {r.supersedes for r in records}
    return [r for r in records if r.id not in gone], capture.accounts()[0]


def counted(records: list[Any]) -> list[tuple[str, int | None, int | None]]:
    return [
        (r.inference_id, r.usage.input if r.usage else None, r.usage.output if r.usage else None)
        for r in of(Inference, records)
    ]


ASKS = asks("bash", {"command": "ls"}, model="m")
SAYS = ("assistant.message", {"content": "hi", "messageId": "m9", "apiCallId": "resp-2", "model": "m"})
EITHER_WAY = [("resp-1", 60, 1), ("resp-2", 160, 2)]


@pytest.mark.parametrize(
    "steps",
    [
        (PROMPT, ASKS, SAYS, stored(1, called=True), stored(2)),
        (PROMPT, ASKS, stored(1, called=True), SAYS, stored(2)),
        (PROMPT, stored(1, called=True), ASKS, stored(2), SAYS),
        (PROMPT, stored(1, called=True), stored(2), ASKS, SAYS),
    ],
    ids=["log first", "in turns", "store first", "store long before"],
)
def test_a_response_gets_its_figures_from_the_store_whichever_came_first(steps: tuple[Any, ...]) -> None:
    records, _ = arriving(*steps)

    assert sorted(counted(records)) == EITHER_WAY
    assert all(r.turn_id == "i1" for r in of(Inference, records))


def test_figures_that_no_response_can_have_are_a_request_of_their_own() -> None:
    records, _ = arriving(PROMPT, ASKS, stored(1, model="another"), stored(2, called=True))

    assert counted(records) == [("usage@1", 60, 1), ("resp-1", 160, 2)]
    assert [r.id_source for r in of(Inference, records)] == ["derived", None]


def test_a_log_that_has_its_figures_needs_none_of_the_store() -> None:
    records, skips = arriving(PROMPT, used("resp-1"), ASKS, stored(1, called=True))

    assert [name for name, _, _ in counted(records)] == ["resp-1"]
    assert skips["figures-stand-in-the-log"] == 1


@pytest.mark.parametrize("store_first", [False, True])
def test_the_request_of_a_compaction_that_both_tell_of_counts_once(store_first: bool) -> None:
    row = stored(7, initiator="compaction", input_tokens=1260, output_tokens=42)
    both = [STARTED, row, COMPACTED, STARTED] if store_first else [STARTED, COMPACTED, STARTED, row]

    records, skips = arriving(PROMPT, *both)

    assert [(r.usage.output, r.meta["dev.asrd.kind"]) for r in of(Inference, records)] == [(42, "compaction")]
    assert skips.get("figures-stand-in-the-log", 0) == (0 if store_first else 1)


def test_the_request_of_a_compaction_that_only_the_store_tells_of_counts() -> None:
    row = stored(7, initiator="compaction", finish_reason=None)

    records, _ = arriving(PROMPT, SAYS, row, stored(8))

    assert counted(records) == [("usage@7", 660, 7), ("resp-2", 760, 8)]


@pytest.mark.parametrize(
    ("summary", "titles", "rule"),
    [
        ("My adder session", ["My adder session"], None),
        ("go", [], "title-that-is-the-prompt"),
        ("g...", [], "title-that-is-the-prompt"),
    ],
)
def test_the_name_of_a_session_is_its_title_and_the_first_prompt_is_none(
    summary: str, titles: list[str], rule: str | None
) -> None:
    records, skips = arriving(PROMPT, stored(1, table="sessions", summary=summary))

    assert [r.title for r in of(Config, records) if r.title] == titles
    assert [name for name in skips if name.startswith("title")] == ([rule] if rule else [])


def test_the_first_prompt_since_a_resume_is_no_title_either() -> None:
    more = ("user.message", {"content": "and then", "messageId": "m5", "interactionId": "i2"})
    last = ("user.message", {"content": "at last", "messageId": "m6", "interactionId": "i3"})
    resume = ("session.resume", {"sessionId": "one"})

    told = {
        summary: arriving(PROMPT, ANSWER, resume, more, last, stored(1, table="sessions", summary=summary))[1]
        for summary in ("go", "and then", "at last")
    }

    assert [skips.get("title-that-is-the-prompt", 0) for skips in told.values()] == [1, 1, 0]


def test_a_title_that_the_log_told_is_not_told_again() -> None:
    records, skips = arriving(
        PROMPT, ("session.title_changed", {"title": "Adder"}), stored(1, table="sessions", summary="Adder")
    )

    assert [r.title for r in of(Config, records) if r.title] == ["Adder"]
    assert skips["title-told-before"] == 1


def test_a_reference_of_a_session_is_kept_whole() -> None:
    records, _ = arriving(PROMPT, stored(1, table="session_refs", ref_type="pr", ref_value="7"))

    assert [(r.native_type, r.data["ref_value"], r.native_id) for r in of(Native, records)] == [
        ("session_refs", "7", "1")
    ]


ORIGIN, FORK = "8f61f72d-96a4-4529-85e9-85ba3b9f67b8", "460b746d-bb8e-47c2-a2fc-ea1400ea65c3"
NAMED = f'Forked from "go" ({ORIGIN}) as "go (fork)" ({FORK}).'


def forked(*told: tuple[Any, ...]) -> bytes:
    """The log of a fork: it began at 05:01, with events of 05:00; `told` comes behind them, a minute later or when it says."""
    start = {**START[1], "sessionId": FORK, "startTime": "2026-11-30T05:01:00.000Z"}
    old = [PROMPT, used(), asks("bash", {"command": "ls"}), done(shellExecution={"exitCode": 3})]
    lines = [("session.start", start, "01:00")]
    lines += [(t, d, f"00:{n:02}") for n, (t, d) in enumerate(old)]
    lines += [(t, d, at[0] if at else f"01:{n:02}") for n, (t, d, *at) in enumerate(told, 1)]
    events = [
        {"type": t, "data": d, "id": f"e{n}", "timestamp": f"2026-11-30T05:{at}.000Z"}
        for n, (t, d, at) in enumerate(lines)
    ]
    return b"".join(json.dumps(e).encode() + b"\n" for e in events)


OWN = (("user.message", {"content": "on", "messageId": "m7", "interactionId": "i7"}), used("resp-7"))


def test_a_fork_begins_with_copies_of_the_session_it_names() -> None:
    data = forked(("session.info", {"infoType": "fork", "message": NAMED}), *OWN)

    (records,) = record(RECORDER, [(SOURCE, data)])[0].values()

    copied: list[Any] = [r for r in records if r.copy_of]
    assert {r.copy_of.session_id for r in copied} == {ORIGIN}
    assert {r.copy_of.native_id for r in copied} == {"e1", "e2", "e3", "e4"}
    assert [r.inference_id for r in of(Inference, records) if not r.copy_of] == ["resp-7"]
    assert [r.exec.exit_code for r in of(ToolResult, records)] == [3]
    (link,) = [r for r in records if isinstance(r, Link)]
    assert (link.relation, link.target.session_id, link.copy_of) == ("forked_from", ORIGIN, None)
    spans = [r.meta["dev.asrd.span"].start for r in copied]
    assert spans == sorted(spans) and len(set(spans)) == 4


def test_events_older_than_their_session_are_no_copies_where_no_fork_is_named() -> None:
    late = (*used("resp-8"), "00:59")

    (records,) = record(RECORDER, [(SOURCE, forked(*OWN, late))])[0].values()

    assert not [r for r in records if r.copy_of or isinstance(r, Link)]
    assert [r.inference_id for r in of(Inference, records)] == ["resp-1", "resp-7", "resp-8"]


def test_a_fork_gives_the_same_records_however_its_bytes_come() -> None:
    data = forked(("session.info", {"infoType": "fork", "message": NAMED}), *OWN)
    whole = lines_of(record(RECORDER, [(SOURCE, data)])[0])

    for size in (1, 7, 300):
        capture = Life(RECORDER, "session-state/one")
        for at in range(0, len(data), size):
            capture.receive_bytes(SOURCE, data[at : at + size])
        streams: Streams = {}
        take(streams, capture)
        assert lines_of(streams) == whole


def test_a_request_that_was_undone_counts_by_its_figures_in_the_store() -> None:
    """The log holds one request (100 in, 9 out); the store that one and an undone one."""
    rewind = ("session.info", {"infoType": "rewind", "message": "Rewound the conversation."})
    kept = stored(1, output_tokens=9)

    records, skipped = arriving(PROMPT, used(), rewind, kept, stored(2))

    assert counted(records) == [("resp-1", 30, 9), ("usage@2", 160, 2)]
    assert skipped["figures-stand-in-the-log"] == 1


def test_a_request_behind_an_undo_is_not_taken_for_an_undone_one() -> None:
    rewind = ("session.info", {"infoType": "rewind", "message": "Rewound the conversation."})

    records, _ = arriving(PROMPT, used(), rewind, stored(2, created_at="2026-11-30T05:09:00.000Z"))

    assert counted(records) == [("resp-1", 30, 9)]
