"""An inner session's id in an outer call's output is a link; a log that is shown, and plain output, are none."""

import json
from typing import Any

import pytest

from asrd.capture import Capture
from asrd.recorders import named
from asrd.recorders._printed import Printed, printed, programs
from asrd.records import Link, Record
from asrd.sources import Source
from tests.homes import recorded

STARTED = '{"type":"thread.started","thread_id":"01a22ac8-64b1-7cf2-8184-537f0e040ce7"}'
CODEX = Printed("codex", "01a22ac8-64b1-7cf2-8184-537f0e040ce7", "thread_id")
INIT = '{"type":"system","subtype":"init","cwd":"/w","session_id":"0361bb7a-168f-4e33-8f38-4e88e2cfa914"}'
RESULT = '{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"0361bb7a-168f-4e33-8f38-4e88e2cfa914"}'
CLAUDE = Printed("claude-code", "0361bb7a-168f-4e33-8f38-4e88e2cfa914", "session_id")


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("codex exec --json 'read'", ["codex"]),
        ("cd notes && codex exec --json x 2>/dev/null | tee out", ["codex"]),
        ("env | sort > e.txt; codex exec --json x", ["codex"]),
        ("OPENAI_API_KEY=x timeout 60 /opt/bin/codex exec", ["codex"]),
        ("npx -y @openai/codex@latest exec --json hi", ["codex"]),
        ("out=$(claude -p hi --output-format json)", ["claude"]),
        ("for i in 1 2; do claude -p $i; done", ["claude"]),
        ("codex exec --json x & claude -p y", ["codex", "claude"]),
        ("cat codex.jsonl", []),
        ("cat ~/.codex/sessions/x.jsonl", []),
        ("cat logs/codex", []),
        ("grep claude notes.txt", []),
        ("ls codex/ claude/", []),
        ("echo hello", []),
    ],
)
def test_a_program_is_what_stands_where_a_program_stands(command: str, found: list[str]) -> None:
    assert programs({"command": command}) == found


def test_a_command_may_be_a_list_of_words() -> None:
    assert programs({"cmd": ["bash", "-lc", "codex exec --json 'x'"]}) == ["codex"]
    assert programs({"command": ["codex", "exec", "--json"]}) == ["codex"]


@pytest.mark.parametrize(
    ("ran", "output", "found"),
    [
        (["codex"], f"Reading additional input from stdin...\n{STARTED}\n{{\"type\":\"turn.started\"}}\n", [CODEX]),
        (["claude"], RESULT, [CLAUDE]),
        (["claude"], INIT + "\n" + RESULT + "\n", [CLAUDE]),
        (["claude"], json.dumps([json.loads(INIT), json.loads(RESULT)], indent=2), [CLAUDE]),
        (["claude"], STARTED, []),
        (["codex"], "second inner answer", []),
        (["codex"], f"it said {STARTED}", []),
        (["codex"], '{"type":"thread.started","thread_id":7}', []),
        (["codex"], '{"type":"thread.started","thread_id":', []),
        (
            ["opencode"],
            '{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{}}',
            [Printed("opencode", "ses_1", "sessionID")],
        ),
        (["pi"], '{"type":"session","version":3,"id":"p1","timestamp":"t","cwd":"/w"}', [Printed("pi", "p1", "id")]),
        (["codex", "claude"], STARTED + "\n" + RESULT, [CODEX, CLAUDE]),
    ],
)  # fmt: skip
def test_an_id_stands_in_the_field_of_the_object_that_announces_it(
    ran: list[str], output: str, found: list[Printed]
) -> None:
    assert printed(ran, output) == found


# ---------------------------------------------------------------- through recorders


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def codex_that_runs(command: str, output: str) -> list[bytes]:
    """The lines of a Codex rollout with one command, as its captures have them."""
    at = "2026-11-30T04:48:{:02d}.000Z"
    meta = {"id": "outer", "timestamp": at.format(0), "cwd": "/w", "originator": "codex_exec", "cli_version": "0.171.0"}
    call = {
        "type": "function_call",
        "name": "exec_command",
        "call_id": "call_1",
        "arguments": json.dumps({"cmd": command}),
    }
    result = {"type": "function_call_output", "call_id": "call_1", "output": output}
    return [
        line(timestamp=at.format(0), type="session_meta", payload=meta),
        line(timestamp=at.format(1), type="response_item", payload=call),
        line(timestamp=at.format(9), type="response_item", payload=result),
    ]


def recorded_lines(lines: list[bytes], restart: bool = False) -> list[Record]:
    source = Source("codex", "rollout-outer", "rollout-outer.jsonl", "sessions/rollout-outer.jsonl", "lines")
    capture = Capture(named("codex"), "rollout-outer")
    found: list[Record] = []
    for one in lines:
        capture.receive_bytes(source, one)
        found += [r for c in capture.commands() for r in c.records]
        if restart:
            capture = Capture(named("codex"), "rollout-outer", saved=capture.save())
    return found


def links(records: list[Record]) -> list[tuple[str, str, str, str | None]]:
    return [(r.relation, r.target.agent, r.target.session_id, r.call_id) for r in records if isinstance(r, Link)]


@pytest.mark.parametrize("restart", [False, True])
def test_codex_that_runs_claude_is_linked_with_the_call_even_after_a_restart(restart: bool) -> None:
    records = recorded_lines(codex_that_runs("claude -p hi --output-format json", RESULT), restart)

    assert links(records) == [("spawned", "claude-code", CLAUDE.session_id, "call_1")]


def test_the_link_stands_right_behind_the_result() -> None:
    records = recorded_lines(codex_that_runs("claude -p hi --output-format json", RESULT))

    at = next(n for n, r in enumerate(records) if isinstance(r, Link))
    assert records[at].at == records[at - 1].at
    assert type(records[at - 1]).__name__ == "ToolResult"


@pytest.mark.parametrize(
    ("command", "output"),
    [("claude -p hi", "the answer"), ("cat claude-run.json", RESULT), ("claude -p hi --output-format json", STARTED)],
)
def test_plain_output_and_a_log_that_is_shown_link_nothing(command: str, output: str) -> None:
    assert links(recorded_lines(codex_that_runs(command, output))) == []


def test_claude_that_runs_codex_is_linked_as_its_capture_shows(tmp_path: Any) -> None:
    from tests.truth import CROSS, lay_out

    with recorded(lay_out(CROSS, tmp_path), tmp_path / "store") as one:
        told = [r for records in one.sessions().values() for r in records if isinstance(r, Link)]
        edges = [(e.relation, e.evidence, e.state) for e in one.rows.edges()]

    assert [(r.target.session_id, r.evidence.kind) for r in told] == [(CODEX.session_id, "native-id-in-output")]
    assert edges == [("spawned", "native-id-in-output", "edge")]
