"""Clients that people use, with the settings of `docs/acp.md`, against a scripted agent through `asrd acp`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asrd.convert import convert_home
from asrd.recorders.base import StreamKey
from asrd.records import Approval, FileChange, Message, Record, Session, Text, ToolResult, Turn, UsageTotal
from tests.acp.kept import SPOOL
from tests.acp.proxies import ASRD_ACP

PAGE = Path(__file__).parents[2] / "docs" / "acp.md"
AGENT = [sys.executable, "-S", "-E", str(Path(__file__).parent / "scripted_agent.py")]
SDK = "@agentclientprotocol/sdk@2.4.0"


def settings() -> list[tuple[str, list[str]]]:
    """Every agent that the page's settings name: its name, and the command line a client runs for it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for name, server in json.loads(block)["agent_servers"].items():
            found.append((name, [server["command"], *server["args"]]))
    return found


def through(command: list[str], home: Path) -> list[str]:
    """A command line of the page, with this asrd and the scripted agent in the place of the named ones."""
    at = command.index("--")
    assert command[:2] == ["asrd", "acp"]
    return [*ASRD_ACP, *command[2:at], "--spool", str(home / SPOOL), "--", *AGENT]


def recorded(home: Path) -> list[Record]:
    found = convert_home(home, only="acp")
    return found[StreamKey("scripted-agent", "sess-1", "acp")]


def is_what_happened(records: list[Record], protocol: int) -> None:
    head = records[0]
    assert isinstance(head, Session) and head.meta is not None
    assert head.meta["dev.asrd.acp"]["protocolVersion"] == protocol
    said = [(m.role, b.text) for m in records if isinstance(m, Message) for b in m.content if isinstance(b, Text)]
    assert said == [("user", "write it"), ("assistant", "I wrote the file.")]
    assert [(t.phase, t.status) for t in records if isinstance(t, Turn)] == [("start", None), ("end", "completed")]
    assert [a.decision for a in records if isinstance(a, Approval)] == [None, "allow"]
    assert [r.status for r in records if isinstance(r, ToolResult)] == ["completed"]
    assert [(c.change, c.path.path) for c in records if isinstance(c, FileChange)] == [("create", "new.txt")]


def test_the_page_has_settings_for_the_editors_it_names() -> None:
    names = [name for name, _ in settings()]

    assert len(names) >= 6 and all("recorded" in name for name in names)


@pytest.mark.parametrize(("name", "command"), settings()[:1] + settings()[-1:])
async def test_the_client_of_pypi_works_through_the_pages_settings(
    name: str, command: list[str], tmp_path: Path
) -> None:
    acp: Any = pytest.importorskip("acp")
    seen: list[str] = []

    class Client:
        async def request_permission(self, options: Any, session_id: str, tool_call: Any, **_: Any) -> Any:
            outcome = acp.schema.AllowedOutcome(outcome="selected", option_id="yes")
            return acp.schema.RequestPermissionResponse(outcome=outcome)

        async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
            if update.session_update == "agent_message_chunk":
                seen.append(update.content.text)

        def on_connect(self, conn: Any) -> None:
            pass

    async with acp.spawn_agent_process(Client(), *through(command, tmp_path)) as (connection, process):
        first = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await connection.new_session(cwd="/w", mcp_servers=[])
        answer = await connection.prompt(session_id=session.session_id, prompt=[acp.text_block("write it")])
        process.stdin.close()
        await process.wait()

    assert (first.protocol_version, answer.stop_reason, "".join(seen)) == (1, "end_turn", "I wrote the file.")
    records = recorded(tmp_path)
    is_what_happened(records, 1)
    (total,) = [r for r in records if isinstance(r, UsageTotal)]
    assert (total.usage.total, total.usage.input, total.usage.cache_read) == (18, 10, 3)


@pytest.mark.real
@pytest.mark.parametrize("protocol", [1, 2])
def test_the_client_of_npm_works_in_both_protocols(protocol: int, tmp_path: Path) -> None:
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("no npm")
    (tmp_path / "package.json").write_text('{"private": true}')
    subprocess.run(
        ["npm", "install", "--silent", "--no-audit", "--no-fund", SDK], cwd=tmp_path, check=True, timeout=110
    )
    client = tmp_path / "client.mjs"
    shutil.copy(Path(__file__).parent / "npm_client.mjs", client)
    _, command = settings()[0]

    ran = subprocess.run(
        ["node", str(client), str(protocol), *through(command, tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr.decode()
    seen = json.loads(ran.stdout)
    assert (seen["protocol"], seen["text"], seen["asked"]) == (protocol, "I wrote the file.", 1)
    assert seen["stop"] == ("end_turn" if protocol == 1 else None)
    is_what_happened(recorded(tmp_path), protocol)
