"""Public reports about tools like this one, as tests of asrd: its number in the collection, the trigger, the right answer.

Those about one harness's records are in `tests/recorders`; C2, C9, C11 in `daemon/test_lifecycle.py`, D3 in `crash/`.
"""

import json
import os
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from asrd import cli
from asrd.client import Asker
from asrd.records import AnyRecord, Loss, Message, Text, ToolCall, Turn
from asrd.store.index import remove
from asrd.validate import bounded, check
from tests.daemons import running, until
from tests.golden import CAPTURES
from tests.homes import Recorded, environment, recorded
from tests.properties.test_tailing import ARCHIVE, FOLDER, NAME, meta, said

CLAUDE = CAPTURES / "claude-code/S1/home"
SESSION = next(CLAUDE.rglob("*.jsonl"))
IDENT = SESSION.stem
PROJECT = Path(".claude/projects/-home-dev-app")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / PROJECT).mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def lay(home: Path, data: bytes | None = None, folder: Path = PROJECT, name: str = SESSION.name) -> Path:
    path = home / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(SESSION.read_bytes() if data is None else data)
    return path


def lines() -> list[bytes]:
    return SESSION.read_bytes().splitlines(keepends=True)


def standing(one: Recorded) -> list[AnyRecord]:
    return [r for records in one.sessions().values() for r in records]


def prompts(one: Recorded) -> list[str]:
    return [
        b.text
        for r in standing(one)
        if isinstance(r, Message) and r.origin == "prompt"
        for b in r.content
        if isinstance(b, Text)
    ]


def whole_and_valid(one: Recorded) -> None:
    for name in one.streams():
        with (one.where.streams / name).open("rb") as file:
            assert [f for f in check(bounded(file)) if f.severity == "error"] == []


RIGHT = (8, 16379, 412)


def figures(one: Recorded) -> tuple[int, int, int]:
    usage = one.usage()
    return usage["requests"], usage["inputTotal"], usage["output"]


# ---------------------------------------------------------------- C: size


def test_c5_a_session_of_many_messages_is_recorded_and_indexed(home: Path, store: Path) -> None:
    body = b"".join(
        line.replace(b'"uuid":"', b'"uuid":"%06d' % n).replace(b'"id":"msg_', b'"id":"msg_%06d' % n)
        for n in range(1000)
        for line in lines()
        if b'"type":"assistant"' in line
    )
    lay(home, lines()[0] + body)

    with recorded(home, store) as one:
        (session,) = one.rows.sessions()
        assert session.row.messages + session.row.calls >= 7000
        assert figures(one)[0] == 8000


def test_c7_a_line_of_many_megabytes_is_recorded_and_the_rest_too(home: Path, store: Path) -> None:
    picture = json.loads(lines()[-1]) | {"type": "user", "uuid": "big"}
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 16_000_000}
    picture["message"] = {"role": "user", "content": [{"type": "image", "source": source}]}
    lay(home, lines()[0] + json.dumps(picture).encode() + b"\n" + b"".join(lines()[1:]))

    with recorded(home, store) as one:
        assert figures(one) == RIGHT
        whole_and_valid(one)


def test_c10_and_d2_questions_are_answered_while_much_is_imported(home: Path, store: Path) -> None:
    body = b"".join(line.replace(b'"uuid":"', b'"uuid":"%06d' % n) for n in range(1200) for line in lines())
    for number in range(4):
        lay(home, body, name=f"{number}{SESSION.name[1:]}")
    took: list[float] = []

    with running(home, store) as daemon:
        while len(took) < 20:
            began = time.monotonic()
            daemon.ask("sessions.list")
            took.append(time.monotonic() - began)
        daemon.end()

    assert sorted(took)[len(took) // 2] < 0.5
    assert max(took) < 5


# ---------------------------------------------------------------- D: the store


def test_d1_many_readers_and_a_writer_all_get_what_they_asked_for(home: Path, store: Path) -> None:
    shutil.copytree(CLAUDE, home, dirs_exist_ok=True)
    failed: list[BaseException] = []
    counts: list[int] = []

    with running(home, store) as daemon:
        assert until(lambda: daemon.records_of(IDENT))

        def ask() -> None:
            try:
                for _ in range(15):
                    counts.append(len(daemon.ask("sessions.list")["sessions"]))
                    with closing(sqlite3.connect(f"{daemon.where.index.as_uri()}?mode=ro", uri=True, timeout=1)) as db:
                        db.execute("SELECT count(*) FROM session").fetchone()
            except BaseException as error:
                failed.append(error)

        readers = [threading.Thread(target=ask) for _ in range(4)]
        for one in readers:
            one.start()
        for number in range(15):
            lay(home, name=f"{number:08d}{SESSION.name[8:]}")
        for one in readers:
            one.join()
        assert until(lambda: len(daemon.ask("sessions.list")["sessions"]) == 16)
        daemon.end()

    assert failed == []
    assert len(counts) == 60


def test_d5_sessions_that_start_at_once_are_all_there(home: Path, store: Path) -> None:
    with running(home, store) as daemon:
        writers = [
            threading.Thread(target=lay, args=(home, None, PROJECT, f"{n:08d}{SESSION.name[8:]}")) for n in range(8)
        ]
        for one in writers:
            one.start()
        for one in writers:
            one.join()
        assert until(lambda: len(daemon.ask("sessions.list")["sessions"]) == 8)
        daemon.end()


# ---------------------------------------------------------------- E: broken input


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"text":"', b'"text":"\\udcb2', "lone-surrogate"),
        (b'"command":"', b'"command":"\\ud83d x ', "lone-surrogate"),
        (b'"command":"', b'"command":"\xff ', "not-utf-8"),
        (b'"file_path":"', b'"file_path":"\xed\xa0\x80', "not-utf-8"),
    ],
)
def test_e2_what_is_no_text_is_stored_as_valid_text_and_costs_nothing_else(
    old: bytes, new: bytes, reason: str, home: Path, store: Path
) -> None:
    damaged = SESSION.read_bytes().replace(old, new)
    assert damaged != SESSION.read_bytes()
    lay(home, damaged)

    with recorded(home, store) as one:
        for data in one.streams().values():
            for line in data.decode("utf-8").splitlines():
                json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8")
        assert figures(one) == RIGHT
        assert {r.reason for r in standing(one) if isinstance(r, Loss)} == {reason}
        assert len([r for r in standing(one) if isinstance(r, ToolCall)]) == 7
        whole_and_valid(one)


@pytest.mark.parametrize(("before", "reason"), [(b"\xef\xbb\xbf", "byte-order-mark"), (b"\0" * 4096, "nul-bytes")])
@pytest.mark.parametrize("at", [0, 3])
def test_e7_a_mark_or_zeros_before_a_line_leave_the_record(
    before: bytes, reason: str, at: int, home: Path, store: Path
) -> None:
    given = lines()
    given[at] = before + given[at]
    lay(home, b"".join(given))

    with recorded(home, store) as one:
        assert figures(one) == RIGHT
        assert [r.reason for r in standing(one) if isinstance(r, Loss)] == [reason]


def test_e8_an_index_of_the_harness_that_is_stale_is_not_believed(home: Path, store: Path) -> None:
    lay(home)
    (home / PROJECT / "sessions-index.json").write_text('{"version":1,"entries":[]}')

    with recorded(home, store) as one:
        assert len(one.rows.sessions()) == 1


# ---------------------------------------------------------------- F: files that move, shrink, vanish


def test_f1_a_transcript_the_harness_deleted_stays_recorded_and_counted(home: Path, store: Path) -> None:
    path = lay(home)
    with recorded(home, store) as one:
        streams = one.streams()
    path.unlink()

    with recorded(home, store) as later:
        assert later.streams() == streams and figures(later) == RIGHT
        where = later.where
    remove(where.index)
    remove(where.cursors)
    with recorded(home, store) as anew:
        assert anew.streams() == streams and figures(anew) == RIGHT


def test_f3_a_rollout_that_lies_live_and_archived_is_one_session(home: Path, store: Path) -> None:
    for folder in (FOLDER, ARCHIVE):
        (home / folder).mkdir(parents=True)
        (home / folder / NAME).write_bytes(meta() + said(1) + said(2))

    with recorded(home, store) as one:
        words = [b.text for r in standing(one) if isinstance(r, Message) for b in r.content if isinstance(b, Text)]
        assert words == ["word 1", "word 2"]
        assert len(one.rows.sessions()) == 1


def test_f7_a_last_line_that_is_torn_is_recorded_when_it_is_whole_and_once(home: Path, store: Path) -> None:
    data = SESSION.read_bytes()
    path = lay(home, data[:-40])
    with recorded(home, store) as torn:
        before = len(standing(torn))

    path.write_bytes(data)
    with recorded(home, store) as whole, recorded(CLAUDE, store.with_name("other")) as other:
        assert whole.streams() == other.streams()
        assert before < len(standing(whole))


# ---------------------------------------------------------------- G: paths


@pytest.mark.parametrize("cwd", ["/a/b.c_d", "D:\\x", '/w/it\'s a "test"', "/ü/漢"])
def test_g1_the_folder_is_what_the_record_says_and_never_decoded_from_a_name(cwd: str, home: Path, store: Path) -> None:
    lay(home, SESSION.read_bytes().replace(b'"/home/dev/app"', json.dumps(cwd).encode()))

    with recorded(home, store) as one:
        (session,) = one.rows.sessions()
        assert session.row.cwd == cwd
        assert [s.row.session_id for s in one.rows.sessions(project=cwd)] == [IDENT]


def test_g3_a_session_whose_file_moved_to_another_project_is_one_session(home: Path, store: Path) -> None:
    half = len(lines()) // 2
    path = lay(home, b"".join(lines()[:half]))
    with recorded(home, store):
        pass
    other = home / ".claude/projects/-home-dev-app-sub"
    other.mkdir()
    path = path.rename(other / path.name)
    with path.open("ab") as file:
        file.write(b"".join(lines()[half:]))

    with recorded(home, store) as one:
        (session,) = one.rows.sessions()
        assert figures(one) == RIGHT
        assert len(prompts(one)) == 2
        assert session.row.turns == len({r.turn_id for r in standing(one) if isinstance(r, Turn)}) == 2
        assert (session.row.calls, session.row.prompts) == (7, 2)


# ---------------------------------------------------------------- I: healthy and recording nothing


def test_i6_doctor_says_that_sources_gave_no_session(
    home: Path, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(home, b'{"type":"summary","summary":"x","leafUuid":"y"}\n' * 3)
    env: dict[str, Any] = environment(home, store)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)

    assert cli.main(["sync", "--quiet"]) == 0
    cli.main(["doctor"])

    out = capsys.readouterr().out
    assert "claude-code" in out
    assert os.listdir(store)
    with recorded(home, store) as one:
        assert Asker(one.where).ask("sessions.list")["schema"]
