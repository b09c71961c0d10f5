"""A harness changed under us: its files are damaged or of a newer make. Recording goes on, and `asrd doctor` says what was seen.

Each recorder is fed a capture of its own as a user would have it: files in a home, recorded by `asrd sync`, told by `doctor`.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import zstandard

from asrd.commands.doctor import examine
from asrd.daemon import sync_once
from asrd.paths import environment, folders
from asrd.places import Found, find_for, roots_of
from asrd.recorders import load
from tests.golden import CAPTURES

WHERE = {
    "acp": "acp/claude", "antigravity": "antigravity/S1-transcript", "claude-code": "claude-code/S1",
    "claude-desktop": "claude-desktop/S1", "codex": "codex/S1", "copilot": "copilot/S1", "cursor": "cursor/S1-transcript",
    "cursor-desktop": "cursor-desktop/S1",
    "deepseek": "deepseek/S1", "gemini": "gemini/S1", "hermes": "hermes/S1", "kimi": "kimi/S1", "kimi-py": "kimi-py/S1",
    "openclaw": "openclaw/S1", "opencode": "opencode/S1", "pi": "pi/S1", "qwen": "qwen/S1", "t3code": "t3code/S1",
    "vibe": "vibe/S1", "vibe-2": "vibe-2/S1-v2.0.2",
}  # fmt: skip
"""The capture each recorder is fed."""
LINES = tuple(
    n
    for n in WHERE
    if n not in ("hermes", "openclaw", "opencode", "t3code", "claude-desktop", "cursor-desktop", "vibe")
)
DOCUMENTS = (
    ("claude-desktop", "claude-desktop/S1", ""),
    ("opencode", "opencode-1.1/S1", ""),
    ("vibe", "vibe/S1", "chunks/"),
    ("vibe-2", "vibe-2/S1-v1.3.5", ""),
)
"""Recorders of documents: a capture, and in which folder the largest of them is damaged."""
TABLES = {
    "antigravity": ("antigravity/S1", "steps", "step_payload", "step_type = 15"),
    "cursor": ("cursor/S1", "blobs", "data", "1"),
    "cursor-desktop": ("cursor-desktop/S1", "cursorDiskKV", "value", "key LIKE 'bubbleId:%'"),
    "hermes": ("hermes/S1", "messages", "tool_calls", "tool_calls IS NOT NULL"),
    "openclaw": ("openclaw/S1", "transcript_events", "event_json", "event_json IS NOT NULL"),
    "opencode": ("opencode/S1", "part", "data", "1"),
    "t3code": ("t3code/S1", "orchestration_events", "payload_json", "event_type = 'thread.message-sent'"),
}
"""For each recorder of a database: a capture, its most important table, a column that says what happened, and where."""

Told = dict[str, Any]
Wrong = Callable[[sqlite3.Connection, str, str, str], None]


class Home:
    """A capture's home, to be damaged, recorded and examined."""

    def __init__(self, name: str, case: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name, self.path, self.patch = name, folder / "home", monkeypatch
        shutil.copytree(CAPTURES / case / "home", self.path)
        self.store = self.path / ".local/share/asrd" if name == "acp" else folder / "store"
        monkeypatch.setenv("HOME", str(self.path))
        monkeypatch.setenv("ASRD_HOME", str(self.store))

    def sources(self, kind: str) -> list[Found]:
        recorder = load()[self.name]
        roots = roots_of(recorder, self.path, environment())
        return [f for f in find_for(recorder, roots, lambda path, why: None) if f.source.kind == kind]

    def told(self) -> Told:
        """What `asrd doctor` says of the recorder once all was recorded, with all that a person should read."""
        sync_once(folders(), environment())
        found = examine()
        # What ACP records has the name of the agent that was spoken to.
        ours = [h for h in found["harnesses"] if self.name in ("acp", h["harness"])]
        told: Told = {"needs": found["needsAPerson"]}
        for field in ("sessions", "records", "losses", "gaps", "natives"):
            told[field] = sum(h[field] for h in ours)
        for field in ("kept", "unknown", "skips"):
            told[field] = {name: number for h in ours for name, number in h[field].items()}
        return told

    def change_line(self, change: Callable[[bytes], bytes | None], pick: random.Random) -> None:
        """Makes one line of the largest file another: of its second half, so that a session is under way."""
        path = max((Path(f.path) for f in self.sources("lines")), key=lambda p: p.stat().st_size)
        lines = unpacked(path).split(b"\n")
        places = [n for n, line in enumerate(lines) if n > len(lines) // 2 and len(line) > 40]
        pick.shuffle(places)
        at, other = next((n, made) for n in places if (made := change(lines[n])) is not None)
        lines[at] = other
        packed(path, b"\n".join(lines))

    def database(self) -> sqlite3.Connection:
        return sqlite3.connect(max((Path(f.path) for f in self.sources("table")), key=lambda p: p.stat().st_size))


def unpacked(path: Path) -> bytes:
    if path.suffix != ".zstd":
        return path.read_bytes()
    with path.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


def packed(path: Path, data: bytes) -> None:
    path.write_bytes(zstandard.ZstdCompressor().compress(data) if path.suffix == ".zstd" else data)


# ---------------------------------------------------------------- what is wrong with a line


def renamed(line: bytes) -> bytes | None:
    """A record of a type that no version has; None where a record says no type."""
    value: dict[str, Any] = json.loads(line)
    frame = fields(value, "frame")
    inside = [fields(value, name) for name in ("payload", "event", "message")]
    for holder in (value, *inside, fields(fields(frame, "params"), "update"), frame):
        for field in ("sessionUpdate", "type", "role", "kind", "method"):
            if isinstance(holder.get(field), str):
                holder[field] = "never.seen"
                return json.dumps(value).encode()
    return None


def fields(value: dict[str, Any], name: str) -> dict[str, Any]:
    """The object of that name, as it stands in its holder; an empty one where there is none."""
    found = value.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def retyped(line: bytes) -> bytes:
    """What the record is about, or its name, is a list of numbers."""
    value: Any = json.loads(line)
    record = cast("dict[str, Any]", value[-1] if isinstance(value, list) else value)
    names = ("payload", "event", "message", "data", "id", "content", "sessionId")
    name = next((n for n in names if n in record), None) or max(record, key=lambda k: len(str(record[k])))
    record[name] = [1, 2]
    return json.dumps(value).encode()


def cut(line: bytes) -> bytes:
    return line[: len(line) // 2]


def not_utf8(line: bytes) -> bytes:
    """A byte of the longest text is none of UTF-8."""
    at = line.rindex(b'"')
    return line[:at] + b"\xff\xfe" + line[at:]


def huge(line: bytes) -> bytes | None:
    """Twenty million bytes of a record that no version has."""
    other = renamed(line)
    value = json.loads(other or line)
    if other is None:
        return None
    value["padding"] = "x" * 20_000_000
    return json.dumps(value).encode()


def says(told: Told, before: Told) -> bool:
    """Whether doctor tells a person of something that it did not tell before."""
    return bool(set(told["needs"]) - set(before["needs"]))


def keeps(told: Told, before: Told) -> bool:
    """Whether doctor names a kind that is kept as it is, or a rule by which something is left out, more than before."""
    more = [n for n, number in told["kept"].items() if number > before["kept"].get(n, 0)]
    return bool(more) or bool(set(told["skips"]) - set(before["skips"]))


@pytest.fixture(scope="session")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Told]:
    """What doctor says of a capture as it is; worked out once."""
    known: dict[tuple[str, str], Told] = {}

    def of(name: str, case: str) -> Told:
        if (name, case) not in known:
            with pytest.MonkeyPatch.context() as patch:
                known[name, case] = Home(name, case, tmp_path_factory.mktemp("whole"), patch).told()
        return known[name, case]

    return of


def test_every_recorder_is_fed() -> None:
    assert set(WHERE) == set(load())


@pytest.mark.parametrize("wrong", [renamed, retyped, cut, not_utf8, huge], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", LINES)
def test_a_line_that_is_wrong_costs_no_other_and_doctor_says_so(
    name: str,
    wrong: Callable[[bytes], bytes | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    undamaged: Callable[[str, str], Told],
) -> None:
    before = undamaged(name, WHERE[name])
    home = Home(name, WHERE[name], tmp_path, monkeypatch)
    home.change_line(wrong, random.Random(f"{name} {wrong.__name__}"))

    told = home.told()

    assert not [k for k in told["unknown"] if k.startswith("mistake:")], told["unknown"]
    assert told["sessions"] >= before["sessions"]
    assert told["records"] > before["records"] * 0.6
    assert says(told, before) if wrong in (cut, not_utf8) else says(told, before) or keeps(told, before)


@pytest.mark.parametrize("wrong", [retyped, cut, not_utf8], ids=lambda f: f.__name__)
@pytest.mark.parametrize(("name", "case", "folder"), DOCUMENTS)
def test_a_document_that_is_wrong_costs_no_other_and_doctor_says_so(
    name: str,
    case: str,
    folder: str,
    wrong: Callable[[bytes], bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    undamaged: Callable[[str, str], Told],
) -> None:
    before = undamaged(name, case)
    home = Home(name, case, tmp_path, monkeypatch)
    found = [p for f in home.sources("document") + home.sources("tree") for p in documents(Path(f.path))]
    path = max((p for p in found if folder in str(p)), key=lambda p: p.stat().st_size)
    path.write_bytes(wrong(path.read_bytes()))

    told = home.told()

    assert not [k for k in told["unknown"] if k.startswith("mistake:")], told["unknown"]
    assert told["sessions"] == before["sessions"]
    assert says(told, before) or keeps(told, before)


def documents(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("*.json"))


# ---------------------------------------------------------------- databases


def column_renamed(db: sqlite3.Connection, table: str, column: str, where: str) -> None:
    """A newer schema calls the column something else."""
    column = "content" if column == "tool_calls" else column
    db.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column}_2"')


def last(table: str, where: str) -> str:
    return f'rowid = (SELECT max(rowid) FROM "{table}" WHERE {where})'


def value_retyped(db: sqlite3.Connection, table: str, column: str, where: str) -> None:
    db.execute(f'UPDATE "{table}" SET "{column}" = 17 WHERE {last(table, where)}')


def value_cut(db: sqlite3.Connection, table: str, column: str, where: str) -> None:
    half = f'substr("{column}", 1, max(length("{column}") / 2, 1))'
    db.execute(f'UPDATE "{table}" SET "{column}" = {half} WHERE {last(table, where)}')


def value_not_utf8(db: sqlite3.Connection, table: str, column: str, where: str) -> None:
    bad = f"""CAST(CAST("{column}" AS BLOB) || x'fffe' AS TEXT)"""
    db.execute(f'UPDATE "{table}" SET "{column}" = {bad} WHERE {last(table, where)}')


def value_huge(db: sqlite3.Connection, table: str, column: str, where: str) -> None:
    db.execute(
        f"""UPDATE "{table}" SET "{column}" = '{{"type":"never.seen","padding":"' || ? || '"}}'
        WHERE {last(table, where)}""",
        ("x" * 20_000_000,),
    )


def table_gone(db: sqlite3.Connection, table: str, column: str, where: str) -> None:
    """A newer schema keeps it elsewhere."""
    db.execute(f'ALTER TABLE "{table}" RENAME TO "{table}_2"')


def column_more(db: sqlite3.Connection, table: str, column: str, where: str) -> None:
    """A newer schema says more of each row."""
    db.execute(f"""ALTER TABLE "{table}" ADD COLUMN since_the_update TEXT DEFAULT 'x'""")


ROWS = [value_retyped, value_cut, value_not_utf8, value_huge]
SCHEMAS = [column_renamed, table_gone]


def damage(home: Home, wrong: Wrong, table: str, column: str, where: str) -> None:
    db = home.database()
    for (trigger,) in db.execute("SELECT name FROM sqlite_master WHERE type IN ('trigger', 'view')").fetchall():
        db.execute(f'DROP TRIGGER IF EXISTS "{trigger}"')
    wrong(db, table, column, where)
    db.commit()
    db.close()


@pytest.mark.parametrize("wrong", ROWS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", TABLES)
def test_a_row_that_is_wrong_costs_no_other_and_doctor_says_so(
    name: str,
    wrong: Wrong,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    undamaged: Callable[[str, str], Told],
) -> None:
    case, *place = TABLES[name]
    before = undamaged(name, case)
    home = Home(name, case, tmp_path, monkeypatch)
    damage(home, wrong, *place)

    told = home.told()

    assert not [k for k in told["unknown"] if k.startswith("mistake:")], told["unknown"]
    assert told["sessions"] == before["sessions"]
    assert told["records"] > before["records"] * 0.6
    assert says(told, before) or keeps(told, before)


@pytest.mark.parametrize("wrong", SCHEMAS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", TABLES)
def test_a_newer_schema_is_said_and_nothing_is_harmed(
    name: str,
    wrong: Wrong,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    undamaged: Callable[[str, str], Told],
) -> None:
    case, *place = TABLES[name]
    before = undamaged(name, case)
    home = Home(name, case, tmp_path, monkeypatch)
    damage(home, wrong, *place)

    told = home.told()

    assert not [k for k in told["unknown"] if k.startswith("mistake:")], told["unknown"]
    assert says(told, before), told


@pytest.mark.parametrize("name", TABLES)
def test_a_column_that_is_new_changes_nothing_that_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undamaged: Callable[[str, str], Told]
) -> None:
    case, *place = TABLES[name]
    before = undamaged(name, case)
    home = Home(name, case, tmp_path, monkeypatch)
    damage(home, column_more, *place)

    told = home.told()

    same = ("sessions", "records", "losses", "gaps", "needs", "unknown")
    assert {k: told[k] for k in same} == {k: before[k] for k in same}
