"""What a session holds harms nobody who reads of it: no terminal, no path, no page, no sum, no memory."""

import contextlib
import io
import json
import re
import resource
import sys
from pathlib import Path

import pytest
import zstandard

from asrd import cli
from asrd.errors import SourceUnreadable
from asrd.paths import folders
from asrd.places import Found
from asrd.reading import UNPACKED, read_lines
from asrd.sources import Place, Source
from asrd.store.check import check
from asrd.store.disk import RealDisk
from asrd.store.index import stream_files
from asrd.text import Guard
from tests.daemons import command
from tests.faults import hostile
from tests.faults.figures import figure
from tests.homes import environment

BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
DEEP = "00000000-0000-4000-8000-300000000000"
COMMANDS = (
    ["ls"], ["ls", "--json"], ["usage"], ["usage", "--json"], ["usage", "--by", "session"], ["status"], ["doctor"],
    ["doctor", "--json"], ["tree"], ["tree", DEEP], ["tree", "--json"], ["lineage", DEEP], ["lineage", DEEP, "--json"],
    ["show", DEEP], ["show", DEEP, "--full"], ["show", DEEP, "--json"], ["check"], ["time"], ["report"],
    ["interval", DEEP, "--until", "2026-12-01"], ["interval", DEEP, "--until", "2026-12-01", "--json"],
    ["handoff", DEEP, "--to", "claude", "--dry-run"],
)  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A recorded home of evil sessions; gives the environment to ask in."""
    folder = tmp_path_factory.mktemp("hostile")
    env = environment(hostile.home(folder / "home"), folder / "store", NO_COLOR="1")
    done = command(env, "sync", "--quiet")
    assert done.returncode == 0, done.stderr
    return env


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_nothing_that_a_session_says_is_obeyed_by_a_terminal(
    words: list[str], store: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    out, err = io.StringIO(), io.StringIO()

    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(words)

    assert code in (0, 1, 2), err.getvalue()
    assert "Traceback" not in err.getvalue()
    assert BAD.findall(out.getvalue() + err.getvalue()) == []
    if "--json" in words:
        assert (
            [json.loads(line) for line in out.getvalue().splitlines()]
            if words[0] == "show"
            else json.loads(out.getvalue())
        )
    figure("hostile text in sessions", "what a terminal obeys, in the output of every command", "nothing")


def test_ids_are_no_paths(store: dict[str, str]) -> None:
    where = folders(store)

    files = list(stream_files(where.streams))

    assert len(files) > 30
    for path in files:
        assert path.resolve().parent.parent == where.streams.resolve()
        assert re.fullmatch(r"[A-Za-z0-9_~][A-Za-z0-9._~-]*\.asr\.jsonl", path.name), path.name
        assert len(path.name) < 256
    assert not Path("/tmp/asrd-was-here").exists()
    figure("hostile session ids (`../`, NUL, 5,000 letters, …)", "files outside the store, or of another form", "0")


def test_sessions_with_ids_alike_do_not_share_a_stream(store: dict[str, str]) -> None:
    headers = [json.loads(p.read_bytes().split(b"\n", 1)[0]) for p in stream_files(folders(store).streams)]

    assert len({(h["agent"]["name"], h["sessionId"]) for h in headers}) == len(headers)


def test_no_figure_breaks_a_sum(store: dict[str, str]) -> None:
    done = command(store, "usage", "--json")

    total = json.loads(done.stdout)["total"]
    assert done.returncode == 0, done.stderr
    for name in ("input", "output", "cacheRead", "inputTotal"):
        assert 0 <= total[name] < 10**13, (name, total[name])
    figure(
        "figures without measure (10^30, 2^64, negative, text)",
        "sums of `asrd usage`",
        "unharmed; such a figure is unknown",
    )


def test_every_line_is_accounted_for(store: dict[str, str]) -> None:
    where = folders(store)
    disk = RealDisk()

    trouble = [found for found in check(disk, where.streams) if found.trouble or found.torn]

    assert trouble == []
    deep = next(p for p in stream_files(where.streams) if DEEP in p.name).read_bytes()
    assert deep.count(b'"type":"loss"') >= 2, "what is nested too deep is a loss, with its place"
    disk.close()


def test_a_database_of_views_is_refused_and_said(store: dict[str, str]) -> None:
    done = command(store, "doctor")

    assert "is a view, which may never end" in done.stdout
    figure("a database whose tables are endless views", "time spent on it", "none; `asrd doctor` names it")


def packed(path: Path, data: bytes) -> Found:
    path.write_bytes(zstandard.ZstdCompressor(level=19).compress(data))
    return Found(Source("x", "g", "n", path.name, "lines"), str(path), str(path.parent), Place("*"))


def test_a_file_that_unpacks_without_end_is_cut(tmp_path: Path) -> None:
    bomb = packed(tmp_path / "bomb.jsonl.zst", bytes(300 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = 0

    with pytest.raises(SourceUnreadable, match="unpacks to more than"):
        for data in read_lines(bomb, 0):
            taken += len(data)

    assert taken == UNPACKED
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    figure(
        "a compressed file that unpacks to 300 MB of nothing",
        "bytes taken",
        "64 MiB, in pieces; then it is unreadable",
    )


def test_a_compressed_session_is_read_whole(tmp_path: Path) -> None:
    lines = b"".join(json.dumps({"n": n, "text": "word " * 30}).encode() + b"\n" for n in range(20_000))

    assert b"".join(read_lines(packed(tmp_path / "a.jsonl.zst", lines), 0)) == lines


def test_a_guard_lets_our_colours_through_on_a_terminal_only() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, pipe = Terminal(), io.StringIO()

    for out in (terminal, pipe):
        Guard(out).write("\x1b[1mA\x1b[0m\x1b]0;t\x07\r\x1b[2J")

    assert terminal.getvalue() == "\x1b[1mA\x1b[0m\ufffd]0;t\ufffd\ufffd\ufffd[2J"
    assert pipe.getvalue() == "\ufffd[1mA\ufffd[0m\ufffd]0;t\ufffd\ufffd\ufffd[2J"


def test_without_the_guard_a_name_that_is_no_text_would_break_the_output() -> None:
    plain, guarded = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in "12")

    with pytest.raises(UnicodeEncodeError):
        plain.write("\udcff")
        plain.flush()
    Guard(guarded).write("\udcff")  # type: ignore[reportArgumentType]
    guarded.flush()

    assert sys.getfilesystemencoding() == "utf-8"
