"""`asrd show` as a person reads it: what belongs together, what counts, what went wrong, what is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from asrd.commands.show import show
from asrd.text import Paper


def shown(capsys: pytest.CaptureFixture[str], *records: dict[str, Any]) -> list[str]:
    """The lines of these records, shown one after the other."""
    calls: dict[str, str] = {}
    for number, record in enumerate(records, 1):
        show(Paper(), {"id": f"r{number}", **record}, False, calls)
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


def test_a_result_names_the_tool_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(
        capsys,
        {"type": "tool_call", "callId": "a", "name": "bash", "input": {"command": "make"}},
        {"type": "tool_call", "callId": "b", "name": "read", "input": {"path": "x"}},
        {"type": "tool_result", "callId": "b", "status": "completed", "content": [{"type": "text", "text": "hi"}]},
        {"type": "tool_result", "callId": "a", "status": "failed", "exec": {"exitCode": 2, "timedOut": True}},
        {"type": "tool_result", "callId": "unseen", "status": "completed", "exec": {"signal": "9"}},
    )

    assert lines[2:] == ["r3 ◂ read completed hi", "r4 ◂ bash failed (exit 2, timed out)", "r5 ◂ completed (signal 9)"]


def test_a_record_that_counts_instead_of_another_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(
        capsys,
        {"type": "inference", "inferenceId": "i", "model": "m"},
        {"type": "inference", "inferenceId": "i", "model": "m", "usage": {"input": 7}, "supersedes": "r1"},
    )

    assert lines == ["r1 ≈ m asked", "r2 ≈ m (instead of r1) input 7"]


def test_what_went_wrong_is_said_in_the_sources_words(capsys: pytest.CaptureFixture[str]) -> None:
    error = {"code": "429", "message": "slow down"}

    lines = shown(
        capsys,
        {"type": "inference", "inferenceId": "i", "model": "m", "error": error},
        {"type": "turn", "turnId": "t", "phase": "end", "status": "failed", "error": error},
    )

    assert lines == ["r1 ≈ m 429: slow down", "r2 └ turn end failed 429: slow down"]


def test_plans_compactions_renames_and_blind_spots_are_words(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(
        capsys,
        {"type": "plan", "items": [{"text": "a", "status": "completed"}, {"text": "b"}]},
        {"type": "compaction", "trigger": "manual", "tokensBefore": 9000, "summary": "short"},
        {"type": "compaction"},
        {"type": "file_change", "path": {"path": "b"}, "fromPath": {"path": "a"}, "change": "rename"},
        {"type": "file_change", "path": {"path": "c"}, "change": "create", "applied": False},
        {"type": "capture", "profile": "usage", "facet": "usage.reasoning", "state": "unavailable", "reason": "none"},
    )

    assert lines == [
        "r1 ☐ plan a (completed); b (pending)",
        "r2 ⇥ compaction manual 9,000 → ? tokens short",
        "r3 ⇥ compaction",
        "r4 ✎ rename a → b",
        "r5 ✎ create c (not applied)",
        "r6 – usage.reasoning unavailable none",
    ]


def test_a_record_that_only_introduces_a_source_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    source = {
        "dev.asrd.source": {"id": "s2", "kind": "file", "name": "logs/audit.jsonl"},
        "dev.asrd.span": {"source": "s2"},
    }

    lines = shown(
        capsys,
        {"type": "config", "_meta": source},
        {"type": "config", "mode": "plan", "_meta": source},
        {"type": "config", "copyOf": {"sessionId": "a"}, "_meta": {**source, "dev.asrd.dsh": {"mode": "safe"}}},
    )

    assert lines == [
        "r1 – source logs/audit.jsonl",
        'r2 – config {"mode":"plan"}',
        'r3 – config (copy) {"dev.asrd.dsh":{"mode":"safe"}}',
    ]


def test_a_link_that_is_not_of_this_session_names_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    link = {
        "type": "link", "relation": "observes", "target": {"agent": "cursor-desktop", "sessionId": "a"},
        "evidence": {"kind": "native-field"},
    }  # fmt: skip

    lines = shown(capsys, link, {**link, "_meta": {"dev.asrd.observed": {"of": {"agent": "cursor", "sessionId": "a"}}}})

    assert lines == [
        "r1 ⇄ observes cursor-desktop a (native-field)",
        "r2 ⇄ observes cursor a → cursor-desktop a (native-field)",
    ]


def test_approvals_totals_and_ends_are_words(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(
        capsys,
        {"type": "tool_call", "callId": "a", "name": "bash", "input": {"command": "make"}},
        {"type": "approval", "callId": "a", "phase": "requested"},
        {
            "type": "approval",
            "callId": "a",
            "phase": "decided",
            "decision": "allow_always",
            "by": "policy",
            "policy": "mode",
        },
        {"type": "approval", "phase": "decided", "decision": "deny", "by": "human"},
        {"type": "usage_total", "scope": "session", "usage": {"input": 15015, "output": 515}, "cumulative": True},
        {"type": "end", "status": "completed", "reason": "routine"},
    )

    assert lines[1:] == [
        "r2 ? bash approval requested",
        "r3 ✓ bash allow always by policy (mode)",
        "r4 ✗ deny by human",
        "r5 Σ total of session input 15,015 output 515",
        "r6 ■ ended completed routine",
    ]
