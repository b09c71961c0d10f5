"""The socket's own promises: this user alone, a name that fits, whole lines to followers. More in `daemon/`."""

import os
import socket
from pathlib import Path
from typing import Any

import anyio
import pytest

from asrd import serve, wire
from asrd.client import Client
from asrd.errors import DaemonRefused, DaemonUnreachable, NothingFound, NotUnderstood
from asrd.paths import Folders
from asrd.serve import Server, peer_uid, refused, short_name
from asrd.store import Store
from tests.golden import CAPTURES
from tests.homes import recorded
from tests.store.build import Made, where_of

HOME = CAPTURES / "codex/S1/home"


def test_the_peer_is_known_by_its_uid() -> None:
    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        assert peer_uid(here) == os.getuid()


@pytest.mark.parametrize("length", [10, 90, 150, 4000])
def test_a_path_of_any_length_has_a_name_that_fits(length: int, tmp_path: Path) -> None:
    folder = tmp_path
    while len(str(folder)) < min(length, 3500):
        folder /= "d" * 50
    folder.mkdir(parents=True, exist_ok=True)

    with short_name(folder / "asrd.sock") as name, socket.socket(socket.AF_UNIX) as listener:
        assert len(os.fsencode(name)) <= 107
        listener.bind(name)

    assert (folder / "asrd.sock").is_socket()


def test_errors_of_ours_are_refusals_with_their_kind() -> None:
    assert b'"exitCode":50' in refused(3, NothingFound(query="x"))
    assert b'"kind":"NothingFound"' in refused(3, NothingFound(query="x"))
    assert str(wire.NO_METHOD).encode() in refused(3, NotUnderstood(what="x"))


async def serving(where: Folders, reader: Any, body: Any) -> None:
    server = Server(where, reader, lambda: {"caughtUp": True})
    async with anyio.create_task_group() as tasks:
        await tasks.start(server.run)
        try:
            await body(server)
        finally:
            tasks.cancel_scope.cancel()


def reading(where: Folders) -> Any:
    import sqlite3

    def reader() -> sqlite3.Connection:
        db = sqlite3.connect(f"file:{where.index}?mode=ro", uri=True, check_same_thread=False)
        db.row_factory = sqlite3.Row
        opened.append(db)
        return db

    opened: list[sqlite3.Connection] = []
    return reader, opened


async def test_another_user_is_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def another(raw: socket.socket) -> int:
        return os.getuid() + 1

    monkeypatch.setattr(serve, "peer_uid", another)
    with recorded(HOME, tmp_path) as one:
        reader, opened = reading(one.where)

        async def body(server: Server) -> None:
            def ask() -> Any:
                client = Client(one.where.socket, 20)
                try:
                    return client.ask("status", {})
                finally:
                    client.close()

            with pytest.raises(DaemonUnreachable):
                await anyio.to_thread.run_sync(ask)

        await serving(one.where, reader, body)
    assert opened == []


async def test_a_follower_gets_whole_lines_however_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "FOLLOW_CHUNK", 100)
    with recorded(HOME, tmp_path) as one:
        reader, opened = reading(one.where)
        (records,) = one.sessions().values()
        got: list[Any] = []

        async def body(server: Server) -> None:
            def follow() -> None:
                client = Client(one.where.socket, 20)
                client.ask("session.follow", {"session": "last", "after": "r4"})
                while len(got) < len(records) - 5:
                    got.extend(client.receive()["params"]["records"])
                client.close()

            await anyio.to_thread.run_sync(follow)

        await serving(one.where, reader, body)
        for db in opened:
            db.close()
    assert [r["seq"] for r in got] == list(range(5, len(records)))


async def test_a_session_of_which_two_have_the_id_is_followed_by_harness_and_namespace(tmp_path: Path) -> None:
    made = where_of(tmp_path)
    store = Store(made)
    for agent, words in (("codex", "one"), ("pi", "two")):
        one = Made("same", agent).prompt(words)
        store.append(one.key, one.records)
    store.sync()
    store.close()
    got: list[Any] = []
    reader, opened = reading(made)

    async def body(server: Server) -> None:
        def follow() -> None:
            client = Client(made.socket, 20)
            with pytest.raises(DaemonRefused, match="names 2 sessions"):
                client.ask("session.follow", {"session": "same"})
            with pytest.raises(DaemonRefused, match="No session"):
                client.ask("session.follow", {"session": "same", "agent": "pi", "namespace": "elsewhere"})
            with pytest.raises(DaemonRefused, match="namespace without"):
                client.ask("session.get", {"session": "same", "namespace": "elsewhere"})
            assert client.ask("session.get", {"session": "same", "agent": "codex"})["session"]["agent"] == "codex"
            client.ask("session.follow", {"session": "same", "agent": "pi"})
            got.extend(client.receive()["params"]["records"])
            client.close()

        await anyio.to_thread.run_sync(follow)

    await serving(made, reader, body)
    for db in opened:
        db.close()
    assert [r["content"][0]["text"] for r in got if r["type"] == "message"] == ["two"]


async def test_a_question_that_fails_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded(HOME, tmp_path) as one:
        reader, opened = reading(one.where)

        async def body(server: Server) -> None:
            def fails(*_: Any) -> Any:
                raise ZeroDivisionError("oh")

            monkeypatch.setattr(serve, "ask", fails)

            def twice() -> list[Any]:
                client = Client(one.where.socket, 20)
                client._send(wire.request(1, "usage", {}) + wire.request(2, "status", {}))  # type: ignore[reportPrivateUsage]
                found = [client.receive(), client.receive()]
                client.close()
                return found

            failed, told = await anyio.to_thread.run_sync(twice)
            assert failed["error"]["code"] == wire.INTERNAL and "ZeroDivisionError: oh" in failed["error"]["message"]
            assert told["result"]["running"]

        await serving(one.where, reader, body)
        for db in opened:
            db.close()
