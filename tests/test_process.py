"""What a process inherited: the nearest session by its ancestors, from allowed variables alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from asrd import clock
from asrd.process import ALLOWED, Process, available, inherited, table, writer_of

A, B, C = "0361bb7a-168f-4e33-8f38-4e88e2cfa914", "01a22ac8-64b1-7cf2-8184-537f0e040ce7", "p1"
CLAUDE, CODEX, CALL = "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "CODEX_TOOL_CALL_ID"


def processes(*rows: tuple[int, int, dict[str, str]], writes: dict[int, str] | None = None) -> dict[int, Process]:
    """(pid, parent, variables) each; they start one second after the other."""
    open_in = writes or {}
    return {
        pid: Process(pid, parent, n * 1_000_000, env, frozenset({open_in[pid]} if pid in open_in else ()))
        for n, (pid, parent, env) in enumerate(rows)
    }


CHAIN = processes(
    (1, 0, {}),
    (10, 1, {}),  # a terminal
    (20, 10, {}),  # claude, session A
    (21, 20, {CLAUDE: A}),  # its shell
    (30, 21, {CLAUDE: A}),  # codex, session B
    (31, 30, {CLAUDE: A, CODEX: B, CALL: "call_1"}),  # its shell
    (40, 31, {CLAUDE: A, CODEX: B, CALL: "call_1"}),  # pi, session C
    (41, 40, {CLAUDE: A, CODEX: B, CALL: "call_1", "PI_SESSION_ID": C}),
)


def test_a_process_names_the_session_whose_tool_started_it() -> None:
    (found,) = inherited(CHAIN, CHAIN[30], "codex", B)

    assert (found.agent, found.session_id, found.variable, found.chained) == ("claude-code", A, CLAUDE, True)
    assert found.ancestors == (21, 20, 10, 1)


def test_of_two_that_are_inherited_the_nearest_counts() -> None:
    (found,) = inherited(CHAIN, CHAIN[40], "pi", C)

    assert (found.agent, found.session_id, found.call_id) == ("codex", B, "call_1")


def test_the_outermost_harness_inherits_nothing() -> None:
    assert inherited(CHAIN, CHAIN[20], "claude-code", A) == []


def test_the_same_harness_inside_itself_is_told_by_its_environment_at_the_start() -> None:
    nested = processes(
        (1, 0, {}), (20, 1, {}), (21, 20, {CLAUDE: A}), (30, 21, {CLAUDE: A}), (31, 30, {CLAUDE: "inner"})
    )

    (found,) = inherited(nested, nested[30], "claude-code", "inner")

    assert found.session_id == A


def test_a_variable_that_nobody_above_lacks_is_not_chained() -> None:
    stale = processes((1, 0, {}), (50, 1, {CLAUDE: A}), (51, 50, {CLAUDE: A}))

    (found,) = inherited(stale, stale[51], "codex", B)

    assert found.chained is False


@pytest.mark.parametrize("value", ["", "a b", "x" * 200, "sk-ant-\n", "../x"])
def test_what_is_no_id_names_nothing(value: str) -> None:
    odd = processes((1, 0, {}), (20, 1, {}), (30, 20, {CLAUDE: value}))

    assert inherited(odd, odd[30], "codex", B) == []


def test_the_writer_has_the_file_open_or_stands_above_its_tools() -> None:
    opened = processes((1, 0, {}), (30, 1, {}), (31, 30, {CODEX: B}), writes={30: "/s.jsonl"})
    closed = processes((1, 0, {}), (30, 1, {}), (31, 30, {CODEX: B}), (32, 31, {CODEX: B}))

    by_file, by_tools = writer_of(opened, "/s.jsonl", "codex", B), writer_of(closed, "/s.jsonl", "codex", B)

    assert by_file is not None and by_file.pid == 30
    assert by_tools is not None and by_tools.pid == 30
    assert writer_of(closed, "/s.jsonl", "codex", "other") is None


def test_two_processes_that_write_one_file_are_no_answer() -> None:
    both = processes((1, 0, {}), (30, 1, {}), (40, 1, {}), writes={30: "/s", 40: "/s"})

    assert writer_of(both, "/s", "codex", B) is None


def test_nothing_but_allowed_variables_is_kept() -> None:
    assert all("KEY" not in name and "TOKEN" not in name and "SECRET" not in name for name in ALLOWED)


@pytest.mark.skipif(not available(), reason="processes are looked at on Linux only")
def test_a_real_process_is_seen_with_its_start_and_its_file(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    words = f"f = open({str(path)!r}, 'a'); print('ready', flush=True); input()"
    env = {**os.environ, CLAUDE: A, "ANTHROPIC_API_KEY": "sk-never"}
    before = clock.seconds()
    with subprocess.Popen(
        [sys.executable, "-c", words], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()

        found = table([str(path)])[child.pid]

        child.stdin.write("\n")
        child.stdin.flush()
    assert found.env == {name: v for name, v in env.items() if name in ALLOWED}
    assert found.writes == {str(path)}
    assert abs(found.started / 1e6 - before) < 5
    assert "sk-never" not in repr(found)


def test_another_systems_proc_is_empty(tmp_path: Path) -> None:
    assert table([], tmp_path / "no-proc") == {}
