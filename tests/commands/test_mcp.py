"""`asrd mcp` over stdio, asked by the SDK's own client: tools that only read, secrets taken out, errors told."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asrd.cli import main
from tests.homes import environment, streams_of
from tests.report.build import session

mcp = pytest.importorskip("mcp", reason="the extra asrd[mcp] is not installed")

SECRET = "ghp_" + "Zx9Q" * 9


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    session(tmp_path / "home", "a1111111", ["ls", f"curl -H 'Authorization: token {SECRET}' x"])
    session(tmp_path / "home", "b2222222", ["make"])
    for name, value in environment(tmp_path / "home", tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    assert main(["sync"]) == 0
    return tmp_path


async def asked(use: Callable[[Any], Any], *args: str) -> Any:
    """What a client makes of a server of its own."""
    command = [sys.executable, "-m", "asrd", "mcp", *args]
    where = {
        "HOME": os.environ["HOME"],
        "ASRD_HOME": os.environ["ASRD_HOME"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    server = mcp.StdioServerParameters(command=command[0], args=command[1:], env={**os.environ, **where})
    async with mcp.Client(server) as client:
        return await use(client)


async def test_every_tool_says_that_it_only_reads(store: Path) -> None:
    tools = (await asked(lambda client: client.list_tools())).tools

    assert {"list_sessions", "show_session", "show_record", "session_tree", "brief", "search"} == {
        t.name for t in tools
    }
    assert all(t.annotations.read_only_hint and t.annotations.destructive_hint is False for t in tools)
    assert all(t.description and t.input_schema["properties"] for t in tools)


async def test_sessions_are_listed_and_shown_without_secrets(store: Path) -> None:
    async def use(client: Any) -> tuple[Any, Any, Any]:
        listed = await client.call_tool("list_sessions", {"limit": 5})
        shown = await client.call_tool("show_session", {"session": "a111", "start": 0})
        record = await client.call_tool("show_record", {"session": "a111", "record": "r1"})
        return listed.structured_content, shown.structured_content, record.structured_content

    listed, shown, record = await asked(use)

    assert {s["sessionId"] for s in listed["sessions"]} == {"a1111111", "b2222222"}
    assert SECRET not in str(shown) and "[removed: github-token]" in str(shown)
    assert shown["records"][0]["type"] == "session" and record["id"] == "r1"


async def test_a_brief_is_that_of_the_command(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = await asked(lambda client: client.call_tool("brief", {"session": "a111", "budget": 4000}))

    capsys.readouterr()
    main(["handoff", "a111", "--to", "prompt", "--budget", "4000"])
    assert found.content[0].text == capsys.readouterr().out


async def test_words_are_found_in_any_session(store: Path) -> None:
    found = await asked(lambda client: client.call_tool("search", {"query": "Authorization"}))

    hits = found.structured_content["hits"]
    assert [h["sessionId"] for h in hits] and {h["sessionId"] for h in hits} == {"a1111111"}
    assert SECRET not in str(hits)


async def test_what_cannot_be_answered_is_told_in_asrds_words(store: Path) -> None:
    found = await asked(lambda client: client.call_tool("show_session", {"session": "zzzz"}))

    assert found.is_error and "No session matches" in found.content[0].text


async def test_asking_writes_nothing(store: Path) -> None:
    def files() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in (store / "home").rglob("*") if p.is_file()}

    from asrd.paths import folders

    before, streams = files(), streams_of(folders())

    async def use(client: Any) -> None:
        for tool, given in (
            ("list_sessions", {}), ("show_session", {"session": "a111"}), ("session_tree", {"session": "a111"}),
            ("brief", {"session": "a111"}),
        ):  # fmt: skip
            assert not (await client.call_tool(tool, given)).is_error

    await asked(use)

    assert files() == before and streams_of(folders()) == streams


def test_without_the_sdk_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)

    code = main(["mcp"])

    assert code == 2 and "asrd[mcp]" in capsys.readouterr().err
