"""Real processes: a harness started by another's tool while the daemon records is linked by what its process inherited."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asrd.process import ALLOWED, available
from tests.daemons import running, until

OUTER, INNER = "0361bb7a-168f-4e33-8f38-4e88e2cfa914", "01a22ac8-64b1-7cf2-8184-537f0e040ce7"

INNER_PROGRAM = """
import datetime, json, os, sys
at = lambda: datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
path, ident = sys.argv[1:]
os.makedirs(os.path.dirname(path), exist_ok=True)
with open(path, "a") as file:
    meta = {"id": ident, "timestamp": at(), "cwd": "/w", "originator": "codex_exec", "cli_version": "0.171.0"}
    file.write(json.dumps({"timestamp": at(), "type": "session_meta", "payload": meta}) + chr(10))
    file.flush()
    print("written", flush=True)
    sys.stdin.readline()
"""
OUTER_PROGRAM = """
import datetime, json, os, subprocess, sys
at = lambda: datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
path, ident, inner = sys.argv[1], sys.argv[2], sys.argv[3:]
os.makedirs(os.path.dirname(path), exist_ok=True)
def line(kind, uuid, parent, message):
    text = json.dumps({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": ident, "cwd": "/w", "version": "2.1.332",
                       "isSidechain": False, "timestamp": at(), "message": message})
    with open(path, "a") as file:
        file.write(text + chr(10))
line("user", "u1", None, {"role": "user", "content": "run it"})
use = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "./run.sh"}}
usage = {"input_tokens": 3, "output_tokens": 5}
line("assistant", "a1", "u1", {"id": "msg_1", "role": "assistant", "model": "m", "content": [use], "usage": usage})
child = subprocess.Popen([sys.executable, "-c", inner[0], *inner[1:]], env={**os.environ, "CLAUDE_CODE_SESSION_ID": ident},
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print("inner runs", flush=True)
sys.stdin.readline()
child.stdin.write(chr(10)); child.stdin.close(); child.wait()
line("user", "u2", "a1", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}]})
"""


@pytest.mark.skipif(not available(), reason="processes are looked at on Linux only")
def test_a_session_that_a_tool_of_another_starts_is_linked_while_it_runs_and_after(tmp_path: Path) -> None:
    home = tmp_path / "home"
    outer = home / ".claude" / "projects" / "-w" / f"{OUTER}.jsonl"
    inner = home / ".codex" / "sessions" / "2026" / "11" / "30" / f"rollout-2026-11-30T04-48-25-{INNER}.jsonl"
    outer.parent.mkdir(parents=True)
    inner.parent.mkdir(parents=True)
    env = {k: v for k, v in os.environ.items() if k not in ALLOWED} | {"SECRET_TOKEN": "sk-never"}
    with running(home, tmp_path / "store") as daemon:
        daemon.caught_up()
        with subprocess.Popen(
            [sys.executable, "-c", OUTER_PROGRAM, str(outer), OUTER, INNER_PROGRAM, str(inner), INNER],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as harness:
            assert harness.stdout is not None and harness.stdin is not None
            harness.stdout.readline()
            while_it_runs = until(lambda: link(daemon, INNER))
            harness.stdin.write("\n")
            harness.stdin.close()
            harness.wait(20)
        until(lambda: daemon.ask("session.get", session=OUTER)["session"]["openCalls"] == 0)
        after = link(daemon, INNER)
        tree = daemon.ask("tree", session=OUTER)["roots"][0]

    for found in (while_it_runs, after):
        assert found is not None
        assert (found["relation"], found["evidence"]["kind"], found["state"]) == ("spawned_by", "process", "edge")
        assert (found["to"]["sessionId"], found["callId"]) == (OUTER, "toolu_1")
    assert [c["sessionId"] for c in tree["children"]] == [INNER]
    kept = (tmp_path / "store" / "streams" / "asrd" / "observed.asr.jsonl").read_text()
    assert "sk-never" not in kept
    assert [json.loads(text)["type"] for text in kept.splitlines()] == ["session", "link"]


def link(daemon: Any, session: str) -> dict[str, Any] | None:
    """The link of a session that processes prove, once it is there."""
    try:
        found = daemon.ask("lineage", session=session)["links"]
    except Exception:
        return None
    return next((one for one in found if one["state"] == "edge"), None)
