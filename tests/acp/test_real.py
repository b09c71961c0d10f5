"""A real agent from npm behind `asrd acp`, against a scripted model server: `pytest -m real`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from asrd.convert import convert_home
from asrd.records import Inference, Link, Message, Session, Text, ToolCall, ToolResult, Turn
from tests.acp.kept import SPOOL
from tests.acp.proxies import ASRD_ACP

GEMINI = "@google/gemini-cli@0.61.0"
SETTINGS = {
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
}

ANSWERS: list[list[dict[str, Any]]] = [
    [{"text": "I will look."}, {"functionCall": {"name": "read_file", "args": {"file_path": "note.txt"}}}],
    [{"text": "It says: größer."}],
]
"""What the model says, answer by answer."""


class Model(BaseHTTPRequestHandler):
    """Speaks the streaming form of the Gemini API, as far as the agent needs it."""

    asked = 0
    lock = threading.Lock()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "streamGenerateContent" not in self.path:
            self._send("application/json", json.dumps({"totalTokens": 5}).encode())
            return
        with Model.lock:
            parts = ANSWERS[min(Model.asked, len(ANSWERS) - 1)]
            Model.asked += 1
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        data = json.dumps({"candidates": [candidate], "usageMetadata": usage}, ensure_ascii=False)
        self._send("text/event-stream", f"data: {data}\r\n\r\n".encode())

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def model() -> Generator[str]:
    Model.asked = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.real
@pytest.mark.timeout(300)
def test_a_real_gemini_behind_asrd_acp_is_recorded_twice_and_counted_once(model: str, tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm")
    install = tmp_path / "npm"
    install.mkdir()
    (install / "package.json").write_text('{"private": true}')
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", GEMINI], cwd=install, check=True)
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".gemini").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps(SETTINGS))
    work.mkdir()
    (work / "note.txt").write_text("größer\n")
    env = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "GEMINI_API_KEY": "sk-test-000",
        "GOOGLE_GEMINI_BASE_URL": model,
    }
    agent = [str(install / "node_modules/.bin/gemini"), "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "--acp"]
    command = [*ASRD_ACP, "--spool", str(home / SPOOL), "--", *agent]

    session = a_turn(command, work, env)

    native = convert_home(home, only="gemini")
    ((key, acp),) = convert_home(home, only="acp").items()
    assert (key.agent, key.session_id, key.namespace) == ("gemini", session, "acp")
    assert isinstance(acp[0], Session) and acp[0].scope == "secondary"
    assert [x.target.session_id for x in acp if isinstance(x, Link) and x.relation == "observes"] == [session]
    assert session in [k.session_id for k in native]
    said = [
        b.text
        for m in acp
        if isinstance(m, Message) and m.role == "assistant"
        for b in m.content
        if isinstance(b, Text)
    ]
    assert said == ["I will look.", "It says: größer."]
    assert [c.name for c in acp if isinstance(c, ToolCall)] == ["read_file"]
    assert [r.status for r in acp if isinstance(r, ToolResult)] == ["completed"]
    assert [(t.phase, t.status) for t in acp if isinstance(t, Turn)] == [("start", None), ("end", "completed")]
    counted = [r for s in native.values() for r in s if isinstance(r, Inference) and r.usage is not None]
    assert len(counted) == 2 and not [r for r in acp if isinstance(r, Inference)]


def a_turn(command: list[str], work: Path, env: dict[str, str]) -> str:
    """One prompt and its answer, by a client that only knows the protocol; gives the session's id."""
    process = subprocess.Popen(
        command, cwd=work, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None and process.stdout is not None

    def ask(ident: int, method: str, **params: Any) -> dict[str, Any]:
        assert process.stdin is not None and process.stdout is not None
        asked = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            told = json.loads(line)
            if told.get("id") == ident and "method" not in told:
                assert "result" in told, told
                return told["result"]
        raise AssertionError("the agent ended")

    first = ask(1, "initialize", protocolVersion=1, clientCapabilities={"fs": {}, "terminal": False})
    assert first["agentInfo"]["name"] == "gemini-cli"
    session = ask(2, "session/new", cwd=str(work), mcpServers=[])["sessionId"]
    answer = ask(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "What does note.txt say?"}])
    assert answer["stopReason"] == "end_turn"
    process.stdin.close()
    process.wait(60)
    process.stdout.close()
    return session
