"""The client: one question at a time to the daemon, or to the store itself when none answers."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from asrd.client import Asker, Client
from asrd.errors import DaemonRefused, DaemonUnreachable, NothingFound, NotUnderstood, StoreTooNew, StoreUnusable
from asrd.paths import folders
from asrd.store.lock import locked
from tests.golden import CAPTURES
from tests.homes import environment, recorded

HOME = CAPTURES / "codex/S3/home"


@contextlib.contextmanager
def answering(path: Path, *lines: bytes) -> Generator[list[Any]]:
    """Something that takes one connection, and answers its questions with these lines, one each."""
    asked: list[Any] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(20)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rwb") as file:
                for line in lines:
                    asked.append(json.loads(file.readline()))
                    file.write(line)
                    file.flush()

        thread = threading.Thread(target=serve)
        thread.start()
        yield asked
        thread.join()


def test_the_answer_is_the_one_to_the_question(tmp_path: Path) -> None:
    other = b'{"method":"session.records","params":{}}\n{"id":9,"result":1}\n'
    with answering(tmp_path / "s", other + b'{"id":1,"result":{"x":2}}\n') as asked:
        client = Client(tmp_path / "s", 20)
        assert client.ask("status", {"a": 1}) == {"x": 2}
        client.close()

    assert asked == [{"jsonrpc": "2.0", "id": 1, "method": "status", "params": {"a": 1}}]


def test_a_refusal_has_the_daemons_words_and_exit_code(tmp_path: Path) -> None:
    line = b'{"id":1,"error":{"code":-32000,"message":"No such","data":{"exitCode":50}}}\n'
    with answering(tmp_path / "s", line, b'{"id":2,"error":{}}\n'):
        client = Client(tmp_path / "s", 20)
        with pytest.raises(DaemonRefused, match="No such") as refused:
            client.ask("session.get", {})
        with pytest.raises(DaemonRefused, match="no reason given") as other:
            client.ask("x", {})
        client.close()

    assert (refused.value.exit_code, other.value.exit_code) == (50, 43)


def test_a_daemon_that_ends_in_the_middle_is_unreachable(tmp_path: Path) -> None:
    with answering(tmp_path / "s", b""):
        client = Client(tmp_path / "s", 20)
        with pytest.raises(DaemonUnreachable):
            client.ask("status", {})
        client.close()


def test_a_daemon_that_lets_go_without_a_word_leaves_the_store_to_answer(tmp_path: Path) -> None:
    with recorded(HOME, tmp_path / "store") as one:
        with answering(one.where.socket, b""):
            asker = Asker(one.where)
            found = asker.ask("usage")["total"]
        assert found == one.usage()
    assert not asker.daemon


def test_what_only_a_daemon_does_is_not_done_without_it(tmp_path: Path) -> None:
    with recorded(HOME, tmp_path / "store") as one, answering(one.where.socket, b""):
        with pytest.raises(DaemonUnreachable):
            Asker(one.where).ask("upkeep", {})


@pytest.mark.parametrize("kind", ["nothing", "file", "dead"])
def test_a_socket_nobody_listens_at_is_said(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "s"
    if kind == "file":
        path.write_text("x")
    if kind == "dead":
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))

    with pytest.raises(DaemonUnreachable, match=r"asrd run"):
        Client(path)


def test_without_a_daemon_the_store_answers(tmp_path: Path) -> None:
    with recorded(HOME, tmp_path) as one:
        ask = Asker(one.where)

    assert not ask.daemon
    assert len(ask.ask("sessions.list", {"limit": None})["sessions"]) == 3
    assert ask.ask("status")["running"] is False
    with pytest.raises(NotUnderstood):
        ask.ask("no.such")
    with pytest.raises(DaemonUnreachable):
        next(iter(ask.follow({"session": "last"})))


def test_without_anything_recorded_it_says_what_records(tmp_path: Path) -> None:
    where = folders(environment(tmp_path, tmp_path / "store"))

    assert Asker(where).ask("status")["totals"] == {}
    with pytest.raises(NothingFound, match="asrd sync"):
        Asker(where).ask("sessions.list")
    assert not where.store.exists()


def test_streams_without_an_index_are_enough(tmp_path: Path) -> None:
    with recorded(HOME, tmp_path) as one:
        before = Asker(one.where).ask("usage")
    one.where.index.unlink()
    one.where.cursors.unlink()

    assert Asker(one.where).ask("usage") == before


def test_a_store_of_the_future_is_said(tmp_path: Path) -> None:
    with recorded(HOME, tmp_path) as one:
        (one.where.store / "version.json").write_text('{"version": 99}')

    with pytest.raises(StoreTooNew):
        Asker(one.where).ask("usage")


def test_while_another_records_the_index_is_read_as_it_is(tmp_path: Path) -> None:
    with recorded(HOME, tmp_path) as one:
        before = Asker(one.where).ask("usage")

    with locked(one.where.lock):
        assert Asker(one.where).ask("usage") == before


def test_a_store_may_have_any_name(tmp_path: Path) -> None:
    with recorded(HOME, tmp_path / "a %41#b?c=d & 'e") as one:
        assert Asker(one.where).ask("usage")["total"] == one.usage()


def test_an_index_that_is_not_made_yet_is_said(tmp_path: Path) -> None:
    where = folders(environment(tmp_path, tmp_path / "store"))
    where.streams.mkdir(parents=True)

    with locked(where.lock), pytest.raises(StoreUnusable, match="index"):
        Asker(where).ask("sessions.list")


def test_a_conversation_that_is_closed_lets_go_who_waits_in_it(tmp_path: Path) -> None:
    path = tmp_path / "one.sock"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        client = Client(path)
        client.patient()
        ended: list[Exception] = []

        def wait() -> None:
            try:
                client.receive()
            except DaemonUnreachable as error:
                ended.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.1)
        client.close()
        waiting.join(10)

    assert not waiting.is_alive() and len(ended) == 1
