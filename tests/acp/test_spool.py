"""The copy of a connection: private, without secrets, honest about what it misses, and found finished."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from asrd.acp import spool as spooling
from asrd.acp.spool import Spool, finished
from tests.acp.proxies import Through, copy_of, kept, spool_of


def test_secrets_are_taken_out_before_anything_is_written(tmp_path: Path) -> None:
    secret = "hunter2-xyzzy"  # none of the words that tell of a secret
    servers: list[dict[str, Any]] = [
        {"name": "a", "command": "x", "args": ["--api-key", secret, "--port", "1"], "env": [{"name": "K", "value": secret}]},
        {"type": "http", "name": "b", "url": f"https://u:{secret}@h/p?key={secret}", "headers": [{"name": "A", "value": secret}]},
    ]  # fmt: skip
    said = [
        {"id": 1, "method": "session/new", "params": {"cwd": "/w", "mcpServers": servers}},
        {"id": 2, "method": "authenticate", "params": {"methodId": "key", "_meta": {"api-key": {"value": secret}}}},
        {"id": 3, "method": "providers/set", "params": {"id": "p", "headers": {"X": secret}, "apiKey": secret}},
        {"id": 4, "result": {"action": "accept", "content": {"pin": secret, "n": 1}}},
        {"id": 5, "method": "terminal/create", "params": {"command": "c", "env": [{"name": "T", "value": secret}]}},
    ]
    data = b"".join(json.dumps(one).encode() + b"\n" for one in said)
    data += b'{"\\u0065nv": {"E": "' + secret.encode() + b'"}}\n'  # a name in escapes
    cat = [sys.executable, "-S", "-c", "import os\nwhile d := os.read(0, 1 << 20): os.write(1, d)"]
    process = Through(cat, tmp_path).process

    out, _ = process.communicate(data, 20)

    assert out == data
    (path,) = spool_of(tmp_path)
    assert secret not in path.read_text()
    lines = kept(path)
    assert sum(line.get("redacted", 0) > 0 for line in lines) == 12
    new = lines[1]["frame"]["params"]["mcpServers"]
    assert new[0]["args"] == ["--api-key", "[removed: argument]", "--port", "1"]
    assert new[0]["env"] == [{"name": "K", "value": "[removed: env]"}]
    assert new[1]["url"] == "https://[removed: address]@h/p?[removed: address]"


def test_the_copy_is_private(tmp_path: Path) -> None:
    Through([sys.executable, "-S", "-c", ""], tmp_path).ends()

    (path,) = spool_of(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def lines_of(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("*.acp.jsonl")
    return [{k: v for k, v in line.items() if k != "at"} for line in kept(path)]


def test_messages_in_any_pieces_are_the_same_lines(tmp_path: Path) -> None:
    data = b'{"a":1}\n{"b":"\xc3\xbc"}\n'
    for name, size in (("whole", 100), ("bytes", 1)):
        spool = Spool(tmp_path / name, "c", transport="stdio", time=lambda: 0.0)
        spool.start()
        for at in range(0, len(data), size):
            spool.put("c2a", data[at : at + size])
        spool.close()

    assert lines_of(tmp_path / "bytes") == lines_of(tmp_path / "whole")
    assert [line["frame"] for line in lines_of(tmp_path / "whole")[1:3]] == [{"a": 1}, {"b": "ü"}]


def test_a_message_with_line_breaks_is_kept_as_a_text(tmp_path: Path) -> None:
    spool = Spool(tmp_path, "c", transport="ws")
    spool.start()
    spool.put("a2c", b'{\n "a": 1\n}', message=True)
    spool.close()

    assert lines_of(tmp_path)[1] == {"dir": "a2c", "frame": '{\n "a": 1\n}'}


def test_what_comes_faster_than_the_disk_takes_it_is_counted_and_the_next_message_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spooling, "WAITING", 30)
    spool = Spool(tmp_path, "c", transport="stdio")
    spool.put("c2a", b'{"first":1}\n{"se')
    spool.put("c2a", b'cond":"is lost in the middle"}\n')
    spool.start()  # now the disk takes what waits
    while spool._waiting:  # pyright: ignore[reportPrivateUsage]
        pass
    spool.put("c2a", b'rest of it"}\n{"third":3}\n')
    spool.close()

    lines = lines_of(tmp_path)
    assert [line.get("frame") for line in lines if line["dir"] == "c2a"] == [{"first": 1}, {"third": 3}]
    dropped = [line for line in lines if line.get("event") == "dropped"]
    assert [(line["direction"], line["bytes"], line["reason"]) for line in dropped] == [("c2a", 35, "too much at once")]


def test_when_there_is_room_again_what_was_not_kept_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "RETRY", 0.0)
    room = [True]
    write = os.write

    def full(fd: int, data: memoryview) -> int:
        if room[0]:
            return write(fd, data)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(spooling.os, "write", full)
    file = spooling._File(tmp_path / "c.acp.jsonl")  # pyright: ignore[reportPrivateUsage]
    file.append([b'{"n":1}'])
    room[0] = False
    file.append([b'{"n":2}', b'{"n":3}'])
    room[0] = True
    file.append([b'{"n":4}'])
    file.close()

    first, said, last = kept(tmp_path / "c.acp.jsonl")
    assert (first, last) == ({"n": 1}, {"n": 4})
    assert (said["event"], said["frames"], said["bytes"]) == ("dropped", 2, 14)
    assert said["reason"] == "No space left on device"


# ---------------------------------------------------------------- the daemon's side of the spool


def test_a_copy_is_finished_when_its_connection_is_over_unless_it_is_to_be_kept(tmp_path: Path) -> None:
    wait = [sys.executable, "-S", "-c", "import sys\nprint('up', flush=True)\nsys.stdin.read()"]
    client = Through(wait, tmp_path)
    client.waits()
    path = copy_of(tmp_path)
    assert not finished(path)
    assert b'"event":"lost"' not in path.read_bytes()

    client.ends()

    assert finished(path)
    keeping = Through(wait, tmp_path, "--keep-frames")
    keeping.ends()
    assert [finished(p) for p in spool_of(tmp_path)] == [True, False]


def test_a_copy_whose_writer_died_is_ended_by_who_finds_it_and_finished_then(tmp_path: Path) -> None:
    client = Through([sys.executable, "-S", "-c", "print('{}', flush=True)\nimport time; time.sleep(60)"], tmp_path)
    client.waits()
    path = copy_of(tmp_path, lines=2)
    client.process.kill()
    client.ends()
    with path.open("ab") as file:
        file.write(b'{"at":"2026')  # torn in the middle of a line

    assert [finished(path), finished(path)] == [False, True]
    assert path.read_bytes().splitlines()[-2] == b'{"at":"2026'
    assert json.loads(path.read_bytes().splitlines()[-1])["event"] == "lost"
