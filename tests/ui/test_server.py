"""The page is for the one who has its link: other browsers, other pages and other names get nothing."""

import http.client
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from asrd.records import Message, Text
from asrd.ui import page
from asrd.ui.server import Viewer
from tests.daemons import Running, running
from tests.golden import CAPTURES
from tests.ui.build import STORY, grow, lay, story, viewing, where_of


@pytest.fixture
def viewer(tmp_path: Path) -> Generator[Viewer]:
    where = where_of(tmp_path)
    lay(where, *story())
    with viewing(where) as one:
        yield one


def get(viewer: Viewer, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """An answer over HTTP: status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=10)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = (answer.status, dict(answer.getheaders()), answer.read())
    connection.close()
    return found


def cookie_of(viewer: Viewer) -> str:
    """What the link gives."""
    _, headers, _ = get(viewer, viewer.url.partition(str(viewer.port))[2])
    return headers["Set-Cookie"].partition(";")[0]


def talk(viewer: Viewer, cookie: str, origin: str | None = None) -> ClientConnection:
    """A page's connection."""
    given = origin if origin is not None else f"http://127.0.0.1:{viewer.port}"
    return connect(
        f"ws://127.0.0.1:{viewer.port}/live", additional_headers={"Cookie": cookie, "Origin": given}, max_size=None
    )


def ask(page: ClientConnection, method: str, **params: Any) -> list[Any]:
    """The answers to one question, parts first."""
    page.send(msgspec.json.encode({"id": 1, "method": method, "params": params}), text=True)
    found: list[Any] = []
    while True:
        told = msgspec.json.decode(page.recv(10))
        if told.get("id") == 1:
            found.append(told)
            if "part" not in told:
                return found


def named(ref: Any) -> dict[str, Any]:
    return msgspec.to_builtins(ref)


def test_the_link_opens_once_and_its_cookie_opens_the_page(viewer: Viewer) -> None:
    path = viewer.url.partition(str(viewer.port))[2]

    status, headers, _ = get(viewer, path)
    cookie = headers["Set-Cookie"]

    assert (status, headers["Location"]) == (303, "/")
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert get(viewer, path)[0] == 403
    assert get(viewer, "/?token=wrong")[0] == 403
    opened = get(viewer, "/", Cookie=cookie.partition(";")[0])
    assert (opened[0], opened[2]) == (200, page.content("index.html"))
    assert get(viewer, "/../server.py", Cookie=cookie.partition(";")[0])[0] == 404


@pytest.mark.parametrize("path", [*page.FILES, "/live", "/nothing"])
def test_nothing_is_given_without_the_cookie(viewer: Viewer, path: str) -> None:
    status, headers, body = get(viewer, path, Cookie="asrd-1=x; other=y")

    assert status == 403 and b"asrd ui" in body
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", ""])
def test_another_name_for_this_machine_reads_nothing(viewer: Viewer, host: str) -> None:
    cookie = cookie_of(viewer)

    status, _, body = get(viewer, "/", Host=host.format(port=viewer.port), Cookie=cookie)

    assert status == 403 and b"127.0.0.1 only" in body


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "https://127.0.0.1", "http://127.0.0.1:1"])
def test_another_page_may_not_ask(viewer: Viewer, origin: str) -> None:
    cookie = cookie_of(viewer)

    with pytest.raises(InvalidStatus) as refused:
        talk(viewer, cookie, origin)

    assert refused.value.response.status_code == 403


def test_it_listens_on_the_loopback_alone(viewer: Viewer) -> None:
    assert viewer.url.startswith(f"http://127.0.0.1:{viewer.port}/?token=")
    assert viewer._server.socket.getsockname()[0] == "127.0.0.1"  # pyright: ignore[reportPrivateUsage]


def test_the_page_asks_and_is_answered(viewer: Viewer) -> None:
    with talk(viewer, cookie_of(viewer)) as here:
        (sessions,) = ask(here, "sessions.list", limit=5)
        *parts, end = ask(here, "records", session=named(STORY))
        (tree,) = ask(here, "tree")
        (money,) = ask(here, "money", by="harness")
        (totals,) = ask(here, "totals")
        (found,) = ask(here, "search", session=named(STORY), text="cargo")
        (one,) = ask(here, "record", session=named(STORY), seq=2)

    assert {s["sessionId"] for s in sessions["result"]["sessions"]} == {"story", "child"}
    assert [len(p["part"]) for p in parts] == [19] and end["result"] == {"records": 19}
    assert tree["result"]["roots"][0]["children"][0]["sessionId"] == "child"
    assert money["result"]["rows"][0]["requests"] == 2
    assert totals["result"]["daemon"] is False and totals["result"]["totals"]["gaps"] == 1
    assert found["result"]["seqs"] == [7, 8] and one["result"]["id"] == "r2"


def test_a_question_that_is_none_is_refused_and_the_next_is_answered(viewer: Viewer) -> None:
    with talk(viewer, cookie_of(viewer)) as here:
        wrong = [
            ask(here, "handoff", session="story")[0],
            ask(here, "session", agent="codex", sessionId="no")[0],
            ask(here, "record", session=named(STORY), seq="x")[0],
            ask(here, "records", session=3)[0],
            ask(here, "sessions.list", evil=1)[0],
        ]
        right = ask(here, "totals")[0]

    assert all("error" in one and "result" not in one for one in wrong)
    assert "result" in right


def test_what_is_no_question_ends_that_page_alone(viewer: Viewer) -> None:
    cookie = cookie_of(viewer)
    with talk(viewer, cookie) as other, talk(viewer, cookie) as here:
        here.send("no JSON")
        with pytest.raises(ConnectionClosed):
            here.recv(10)

        assert "result" in ask(other, "totals")[0]


def test_a_page_is_told_when_something_was_recorded(viewer: Viewer) -> None:
    with talk(viewer, cookie_of(viewer)) as here:
        before = ask(here, "totals")[0]["result"]["totals"]["records"]
        time.sleep(1.2)  # the first look only remembers
        grow(viewer.folders, story()[0].key, Message(role="assistant", content=[Text(text="more")]))

        told = msgspec.json.decode(here.recv(10))

    assert told["changed"]["records"] == before + 1


def test_records_come_as_the_daemon_writes_them(tmp_path: Path) -> None:
    home = tmp_path / "home"
    source = next((CAPTURES / "claude-code" / "S1" / "home").rglob("*.jsonl"))
    path = home / source.relative_to(CAPTURES / "claude-code" / "S1" / "home")
    path.parent.mkdir(parents=True)
    lines = source.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-4]))
    with running(home, tmp_path / "store") as daemon:
        assert isinstance(daemon.caught_up(), Running)
        with viewing(daemon.where) as viewer, talk(viewer, cookie_of(viewer)) as here:
            ref = {"agent": "claude-code", "sessionId": source.stem}
            *parts, _ = ask(here, "records", session=ref)
            known = sum(len(p["part"]) for p in parts)
            (following,) = ask(here, "follow", session=ref, **{"from": known})

            path.write_bytes(b"".join(lines))
            found: list[int] = []
            while not found:
                told = msgspec.json.decode(here.recv(20))
                found = [r["seq"] for r in told.get("records", [])]

    assert following["result"]["live"] is True
    assert found[0] == known
