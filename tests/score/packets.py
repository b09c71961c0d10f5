"""The packets of Session-Bench, each laid out as the home it came from. They are read where they lie and not kept here."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast


def folder() -> Path | None:
    """Where the packets are, if anywhere: ASRD_PACKETS."""
    given = os.environ.get("ASRD_PACKETS")
    return Path(given) if given and (Path(given) / "ground-truth.json").is_file() else None


def claude(native: Path, home: Path, session: str) -> None:
    _copy(native / "session.jsonl", home / ".claude/projects/-project" / f"{session}.jsonl")


def codex(native: Path, home: Path, session: str) -> None:
    rollout = next(native.glob("rollout-*.jsonl"))
    _copy(rollout, home / ".codex/sessions/2026/09/14" / rollout.name)


def pi(native: Path, home: Path, session: str) -> None:
    _copy(
        native / "session.jsonl", home / ".pi/agent/sessions/--project--" / f"2026-10-02T00-00-00-000Z_{session}.jsonl"
    )


def kimi(native: Path, home: Path, session: str) -> None:
    shutil.copytree(native / "session", home / ".kimi-code/sessions/wd_project_0" / session)


def hermes(native: Path, home: Path, session: str) -> None:
    """The database, built again from the export of its rows."""
    exported = json.loads((native / "capture/session-store-rows.json").read_text())
    (home / ".hermes").mkdir(parents=True)
    db = sqlite3.connect(home / ".hermes/state.db")
    with db:
        for table in (t for store in exported["stores"] for t in store["tables"]):
            _table(db, table)
    db.close()


def _table(db: sqlite3.Connection, table: Mapping[str, Any]) -> None:
    columns: list[str] = table["columns"]
    given: Any = table["column_types"]
    types: dict[str, str] = (
        cast("dict[str, str]", given) if isinstance(given, dict) else dict(zip(columns, given, strict=True))
    )
    quoted = [f'"{c}"' for c in columns]
    name, names = table["table"], ", ".join(quoted)
    typed = ", ".join(f"{quote} {types.get(column, '')}" for quote, column in zip(quoted, columns, strict=True))
    db.execute(f'CREATE TABLE "{name}" ({typed})')
    marks = ", ".join("?" * (len(columns) + 1))
    for row in table["rows"]:
        values: list[Any] = [row["values"][c] for c in columns] if isinstance(row["values"], dict) else row["values"]
        plain = [bytes.fromhex(v["blob_hex"]) if isinstance(v, dict) else v for v in values]  # type: ignore[reportUnknownArgumentType]
        db.execute(f'INSERT INTO "{name}" (rowid, {names}) VALUES ({marks})', [row["rowid"], *plain])


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


LAYOUTS: Mapping[str, tuple[str, Callable[[Path, Path, str], None]]] = {
    "claude-cli": ("claude-code", claude),
    "codex-cli": ("codex", codex),
    "pi": ("pi", pi),
    "kimi": ("kimi", kimi),
    "hermes": ("hermes", hermes),
}
"""By the report's name: our name of the harness, and how its packet becomes a home."""


def lay_out(packets: Path, run: str, session: str, home: Path) -> str:
    """Makes the home of a run (`harness/run`) and gives our name of its harness."""
    name, layout = LAYOUTS[run.split("/")[0]]
    home.mkdir(parents=True, exist_ok=True)
    layout(packets / run / "native", home, session)
    return name
