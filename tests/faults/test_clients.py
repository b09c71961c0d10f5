"""Who asks the daemon, or may not: many followers, bad ones, and other users of the machine."""

import json
import os
import socket
import time
from pathlib import Path

import pytest

from asrd.client import Client
from tests.daemons import command, running, until
from tests.faults.figures import figure
from tests.faults.hostile import claude, write
from tests.faults.measured import Peak, resident
from tests.faults.others import BECOME, as_user, let_through, run
from tests.homes import environment

SID = "ffffffff-0000-4000-8000-000000000001"
root_only = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become another user")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path / f"home/.claude/projects/-p/{SID}.jsonl", *claude(SID, 1))
    return tmp_path / "home"


def grow(home: Path, number: int) -> None:
    said = claude(SID, 1)[0]
    with next((home / ".claude/projects/-p").glob("*.jsonl")).open("ab") as file:
        line = {**said, "uuid": f"more-{number}", "message": {"role": "user", "content": f"line {number}"}}
        file.write(json.dumps(line).encode() + b"\n")


def connect(path: Path) -> socket.socket:
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(30)
    here = os.open(path.parent, os.O_RDONLY)
    one.connect(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)
    return one


def test_two_hundred_followers_get_each_record_once(home: Path, tmp_path: Path) -> None:
    count, lines = 200, 10
    with running(home, tmp_path / "store") as daemon:
        daemon.caught_up()
        start = daemon.records_of(SID)
        before = resident(daemon.process.pid)
        followers = [Client(daemon.where.socket) for _ in range(count)]
        for one in followers:
            one.ask("session.follow", {"session": SID, "from": start})
        for number in range(lines):
            grow(home, number)
        assert until(lambda: daemon.records_of(SID) >= start + lines)
        wanted = list(range(start, daemon.records_of(SID)))

        got: list[list[int]] = []
        for one in followers:
            seen: list[int] = []
            while len(seen) < len(wanted):
                seen += [r["seq"] for r in one.receive()["params"]["records"]]
            got.append(seen)
        after = resident(daemon.process.pid)
        for one in followers:
            one.close()
        assert until(lambda: daemon.ask("status")["clients"] <= 1)

    assert got == [wanted] * count
    assert after - before < 60
    figure(f"{count} followers of one session", "records missed; doubled; memory for all", f"0; 0; {after - before} MB")


def test_clients_that_send_noise_or_never_read_keep_nobody_waiting(home: Path, tmp_path: Path) -> None:
    with running(home, tmp_path / "store") as daemon:
        daemon.caught_up()
        peak = Peak(daemon.process.pid)
        silent = connect(daemon.where.socket)
        silent.settimeout(0.2)
        ask = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sessions.list", "params": {}}).encode() + b"\n"
        try:
            for _ in range(3000):
                silent.sendall(ask)
        except TimeoutError:
            pass
        noisy = connect(daemon.where.socket)
        noisy.settimeout(2)
        try:
            for _ in range(100):
                noisy.sendall(os.urandom(1 << 20))
        except OSError:
            pass
        waits: list[float] = []
        for _ in range(20):
            began = time.monotonic()
            daemon.ask("sessions.list")
            waits.append(time.monotonic() - began)
        most = peak.end()
        noisy.close()
        silent.close()

    assert max(waits) < 5
    assert most < 250
    figure("a client that never reads, one that sends 100 MB of noise", "memory of the daemon at most", f"{most} MB")


def test_requests_nested_without_end_are_refused(home: Path, tmp_path: Path) -> None:
    with running(home, tmp_path / "store") as daemon:
        one = connect(daemon.where.socket)
        one.sendall(b'{"jsonrpc":"2.0","id":1,"method":"status","params":' + b"[" * 400_000 + b"\n")
        answer = json.loads(one.makefile("rb").readline())
        one.close()

        assert answer["error"]["code"] in (-32700, -32600)
        assert daemon.ask("status")["running"]


ASK = (
    BECOME
    + """
import json, socket
found = {}
def tried(what, act):
    try:
        found[what] = act()
    except OSError as error:
        found[what] = type(error).__name__
store, home = sys.argv[1], sys.argv[2]
tried("list the store", lambda: os.listdir(store))
tried("list the streams", lambda: os.listdir(store + "/streams"))
for name in ("index.sqlite", "cursors.sqlite", "lock", "version.json", sys.argv[3]):
    tried("read " + name, lambda: open(os.path.join(store, name), "rb").read(10).hex())
    tried("write " + name, lambda: open(os.path.join(store, name), "ab").write(b"x"))
def ask():
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(5)
    one.connect(store + "/asrd.sock")
    one.sendall(b'{"jsonrpc":"2.0","id":1,"method":"status","params":{}}\\n')
    return one.recv(100).decode()
tried("ask", ask)
print(json.dumps(found))
"""
)


@root_only
def test_another_user_reads_nothing_of_the_store_and_gets_no_answer(home: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with running(home, store) as daemon:
        daemon.caught_up()
        let_through(store)
        stream = next((store / "streams").rglob("*.jsonl")).relative_to(store)

        done = run(ASK, {}, str(store), str(home), str(stream))

    found = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert set(found.values()) == {"PermissionError"}, found
    assert len(found) == 13
    figure("another user (uid 65534)", "files of the store read or written; answers got", "0 of 12; 0")


@root_only
def test_another_user_at_an_open_socket_is_refused_by_uid(home: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with running(home, store) as daemon:
        daemon.caught_up()
        let_through(store)
        store.chmod(0o755)  # as if someone had opened the folder and the socket by mistake
        (store / "asrd.sock").chmod(0o777)

        done = run(ASK, {}, str(store), str(home), "version.json")

        assert json.loads(done.stdout)["ask"] in ("", "ConnectionResetError", "BrokenPipeError"), done.stdout
        assert daemon.ask("status")["running"]
    figure("another user at a socket whose modes were opened", "answers got", "0: the uid of the peer is looked at")


@root_only
def test_another_user_cannot_make_the_daemon_read_for_it(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    write(secret, *claude("the-secret-session", 1))
    secret.chmod(0o600)
    let_through(secret)
    folder = tmp_path / "home/.claude/projects/-shared"
    folder.mkdir(parents=True)
    folder.chmod(0o777)  # a folder that another user may write into
    let_through(folder / "x")
    script = BECOME + f"os.symlink({str(secret)!r}, {str(folder / 'a.jsonl')!r})\n"
    hard = BECOME + f"os.link({str(secret)!r}, {str(folder / 'b.jsonl')!r})\n"
    assert run(script, {}).returncode == 0
    run(hard, {})  # the system refuses it (fs.protected_hardlinks), or gives what the owner can read anyway

    env = environment(tmp_path / "home", tmp_path / "store")
    done = command(env, "sync", "--quiet")

    listed = command(env, "ls", "--json").stdout
    assert done.returncode == 0, done.stderr
    assert (folder / "a.jsonl").is_symlink()
    if not (folder / "b.jsonl").exists():
        assert "the-secret-session" not in listed
    figure("another user's link out of a shared folder", "read through it", "nothing")


@root_only
def test_a_store_of_another_user_is_not_taken_over(tmp_path: Path, home: Path) -> None:
    env = environment(home, tmp_path / "store")
    assert command(env, "sync", "--quiet").returncode == 0
    let_through(tmp_path / "store")

    done = as_user({**env, "HOME": "/nonexistent"}, "ls")

    assert done.returncode != 0
    assert "Traceback" not in done.stderr, done.stderr
