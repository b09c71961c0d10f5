"""kill -9 of the proxy, the agent or the client at any message: what is recorded is a beginning of what happened."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from asrd.acp.spool import finished
from asrd.convert import convert_home
from asrd.records import encode, encode_lines
from asrd.validate import check
from tests.acp.kept import SPOOL, Script, scripts
from tests.acp.proxies import ASRD_ACP, REPLAY, agent_of, children, gone
from tests.acp.truth import CAPTURES

CLIENT = Path(__file__).parent / "kill_client.py"
"""A client of its own process, so that it can be killed: plays its part, and says how far it has come."""

CASES = ["claude-manual", "kimi", "pi", "vibe", "qwen"]


@pytest.mark.parametrize("seed", range(20))
def test_after_a_kill_the_stream_is_a_beginning_and_what_is_missing_is_said(seed: int, tmp_path: Path) -> None:
    a_schedule(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 120))
def test_after_any_kill_the_stream_is_a_beginning_and_what_is_missing_is_said(seed: int, tmp_path: Path) -> None:
    a_schedule(seed, tmp_path)


def a_schedule(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    case = CASES[seed % len(CASES)]
    victim = ("proxy", "agent", "client")[seed % 3]
    script = scripts(case)[0]
    at = chance.randrange(3, len(script))

    agent = play_and_kill(script, victim, at, tmp_path)

    deadline = time.monotonic() + 10
    while not gone(agent) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert gone(agent), "the agent lives on"
    (spool,) = (tmp_path / SPOOL).glob("*.acp.jsonl")
    once = finished(spool)
    assert once is (victim != "proxy"), "a writer that died is found dead, others said that they ended"
    assert finished(spool)
    found = convert_home(tmp_path, only="acp")
    if victim == "proxy":
        assert found, "nothing is said of what was lost"
    for key, records in found.items():
        assert list(check(encode_lines(records).splitlines(keepends=True))) == []
        if key.agent == "acp":
            continue
        kinds = [json.loads(encode(r)) for r in records]
        if victim == "proxy":
            assert any(r["type"] == "gap" and "between" in r["_meta"]["dev.asrd.acp"]["why"] for r in kinds)
            assert not any(r["type"] == "end" for r in kinds)
        whole = convert_home(CAPTURES / case / "home", only="acp")[key]
        beginning(said(kinds), said([json.loads(encode(r)) for r in whole]))


def play_and_kill(script: Script, victim: str, at: int, folder: Path) -> int:
    """Plays `at` messages, then kills; gives the agent's process id once all three have ended but it perhaps."""
    command, _ = agent_of(script, folder)
    told = folder / "client.json"
    told.write_text(json.dumps(script[:at]))
    proxy = subprocess.Popen(
        [*ASRD_ACP, "--spool", str(folder / SPOOL), "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    assert proxy.stdin is not None and proxy.stdout is not None
    client = subprocess.Popen(
        [sys.executable, "-S", "-E", str(CLIENT), str(REPLAY.parent), str(told), str(folder / "client.heard")],
        stdin=proxy.stdout,
        stdout=proxy.stdin,
        stderr=subprocess.PIPE,
    )
    proxy.stdin.close()
    proxy.stdout.close()
    assert client.stderr is not None
    assert client.stderr.readline() == b"played\n"
    (agent,) = children(proxy.pid)
    if victim == "proxy":
        proxy.kill()
    elif victim == "client":
        client.kill()
    else:
        subprocess.run(["kill", "-9", str(agent)], check=True)
    if victim != "client":
        client.kill()
    client.stderr.close()
    client.wait(10)
    proxy.wait(10)
    return agent


def said(records: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What was said and done, without what only tells how it ended."""
    found: list[tuple[str, str]] = []
    for record in records:
        if record["type"] == "message":
            text = "".join(b.get("text", "") for b in record["content"])
            found.append((record["role"], text))
        elif record["type"] in ("tool_call", "tool_result"):
            found.append((record["type"], record["callId"]))
    return found


def beginning(part: list[tuple[str, str]], whole: list[tuple[str, str]]) -> None:
    """Every message and call of the part is the whole's at that place; the last may be cut short."""
    for ours, theirs in zip(part[:-1], whole, strict=False):
        assert ours == theirs
    if part:
        last, there = part[-1], whole[len(part) - 1 : len(part) + 1]
        assert any(last[0] == kind and text.startswith(last[1]) for kind, text in there)
