"""`asrd acp` as a command: what it forwards, and what is recorded of it afterwards."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.homes import recorded

AGENT = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "toy", "version": "1"}}
    elif asked["method"] == "session/new":
        result = {"sessionId": "toy-1"}
    else:
        said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}}
        update = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "toy-1", "update": said}}
        print(json.dumps(update), flush=True)
        result = {"stopReason": "end_turn"}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
sys.exit(7)
"""

ASKED: list[tuple[str, dict[str, Any]]] = [
    ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
    ("session/new", {"cwd": "/work/app", "mcpServers": []}),
    ("session/prompt", {"sessionId": "toy-1", "prompt": [{"type": "text", "text": "hi there"}]}),
]


def test_a_connection_is_forwarded_and_recorded_by_the_next_sync(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "store"
    home.mkdir()
    env = {**os.environ, "HOME": str(home), "ASRD_HOME": str(store)}
    command = [sys.executable, "-m", "asrd", "acp", "--", sys.executable, "-c", AGENT]
    answers: list[dict[str, object]] = []

    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proxy:
        assert proxy.stdin is not None and proxy.stdout is not None
        for number, (method, params) in enumerate(ASKED):
            line = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            proxy.stdin.write(json.dumps(line).encode() + b"\n")
            proxy.stdin.flush()
            while True:
                answers.append(json.loads(proxy.stdout.readline()))
                if answers[-1].get("id") == number:
                    break
        proxy.stdin.close()
        code = proxy.wait()
    modes = [oct(s.stat().st_mode)[-3:] for s in (store / "spool").iterdir()]
    with recorded(home, store) as one:
        sessions = one.sessions()

    assert code == 7, "the agent's exit code is ours"
    assert len(answers) == 4
    assert modes == ["600"]
    assert list((store / "spool").iterdir()) == [], "over and recorded"
    ((key, records),) = sessions.items()
    assert (key.agent, key.session_id) == ("toy", "toy-1")
    assert [r.content[0].text for r in records if hasattr(r, "content") and r.content] == ["hi there", "hello"]  # type: ignore[union-attr]
