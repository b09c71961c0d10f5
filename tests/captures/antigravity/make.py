"""Makes the captures of Antigravity from the public field map: `python -m tests.captures.antigravity.make`.

S1: database and transcript, as the program writes them. S1-transcript: the same transcript without its database.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.captures import story
from tests.captures.wire import message

HERE = Path(__file__).parent
IDENT = "73cde065-0000-4000-8000-000000000001"
BELOW = ".gemini/antigravity-cli"


class Steps:
    """The steps of a conversation in both forms."""

    def __init__(self) -> None:
        self.seconds = story.START // 1000
        self.rows: list[tuple[int, int, bytes, bytes]] = []
        self.lines: list[dict[str, Any]] = []
        self.generations: list[bytes] = []

    def add(self, kind: int, payload: bytes, meta: list[tuple[int, Any]], line: dict[str, Any]) -> None:
        self.seconds += 2
        index = len(self.rows)
        self.rows.append((index, kind, message((1, [(1, self.seconds), (2, 204_000_000)]), *meta), payload))
        at = f"{datetime.fromtimestamp(self.seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
        head = {"step_index": index, "source": line.pop("source"), "type": line.pop("type"), "status": "DONE"}
        self.lines.append({**head, "created_at": at, **line})

    def prompt(self, text: str) -> None:
        wrapped = f"<USER_REQUEST>\n{text}\n</USER_REQUEST>\n<ADDITIONAL_METADATA>\nThe time.\n</ADDITIONAL_METADATA>"
        self.add(
            14, message((19, [(2, text)])), [], {"source": "USER_EXPLICIT", "type": "USER_INPUT", "content": wrapped}
        )

    def response(self, said: story.Response) -> None:
        calls = [(7, [(1, said.call.id), (2, name(said.call)), (3, json.dumps(args(said.call)))])] if said.call else []
        body = [(1, said.text or None), (3, said.thinking or None), (6, said.id), *calls]
        usage = [(2, said.input), (3, said.output), (5, said.cached), (7, said.id)]
        line: dict[str, Any] = {"source": "MODEL", "type": "PLANNER_RESPONSE", "input_tokens": said.input}
        line |= {"cache_read_tokens": said.cached, "output_tokens": said.output}
        if said.thinking:
            line["thinking"] = said.thinking
        if said.text:
            line["content"] = said.text
        if said.call:
            line["tool_calls"] = [{"name": name(said.call), "args": args(said.call)}]
        self.generations.append(
            message(
                (
                    1,
                    [
                        (1, "You are an agent."),
                        (2, [(2, 1), (3, story.TURNS[0].prompt)]),
                        (4, [(7, said.id)]),
                        (19, "claude-x"),
                    ],
                )
            )
        )
        self.add(15, message((20, body)), [(9, usage)], line)

    def result(self, call: story.Call) -> None:
        text = f"Created At: 2026-11-30T05:09:20Z\nCompleted At: 2026-11-30T05:09:21Z\n{answer(call)}"
        meta = [(4, [(1, call.id), (2, name(call)), (3, json.dumps(args(call)))])]
        self.add(132, message((140, [(2, [(1, text)])])), meta, {"source": "MODEL", "type": "GENERIC", "content": text})

    def notice(self, text: str) -> None:
        body = message((114, [(4, [(4, text)])]))
        self.add(101, body, [], {"source": "SYSTEM", "type": "SYSTEM_MESSAGE", "content": text})


def name(call: story.Call) -> str:
    return {"run": "run_command", "read": "view_file", "edit": "replace_file_content"}[call.kind]


def args(call: story.Call) -> dict[str, Any]:
    path = f"{story.CWD}/calc.py"
    match call.kind:
        case "run":
            return {"CommandLine": call.command, "Cwd": story.CWD, "toolSummary": "Run it"}
        case "read":
            return {"AbsolutePath": path}
        case _:
            old, new = story.BEFORE.rstrip("\n"), story.AFTER.rstrip("\n")
            return {"AllowMultiple": False, "TargetFile": path, "TargetContent": old, "ReplacementContent": new}


def answer(call: story.Call) -> str:
    match call.kind:
        case "run":
            output = call.result.replace("\n", "\r\n")
            return f"\nThe command exited with code {call.exit}.\nOutput:\n{output}\n"
        case "read":
            numbered = "\n".join(f"{i}: {line}" for i, line in enumerate(story.BEFORE.split("\n"), 1))
            size = f"Total Lines: 3\nTotal Bytes: {len(story.BEFORE)}\nShowing lines 1 to 3\n"
            return (
                f"{size}{numbered}\nThe above content shows the entire, complete file contents of the requested file.\n"
            )
        case _:
            diff = "@@ -1,3 +1,3 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n \n"
            return f"The following changes were made:\n[diff_block_start]\n{diff}[diff_block_end]\n\nPlease note."


def tell() -> Steps:
    steps = Steps()
    for number, told in enumerate(story.TURNS):
        steps.prompt(told.prompt)
        if number:
            steps.notice("<SYSTEM_MESSAGE>\nAll background tasks have been stopped.\n</SYSTEM_MESSAGE>")
        for response in told.responses:
            steps.response(response)
            if response.call:
                steps.result(response.call)
    return steps


def database(path: Path, steps: Steps) -> None:
    path.parent.mkdir(parents=True)
    db = sqlite3.connect(path)
    db.executescript(
        """PRAGMA user_version = 1;
        CREATE TABLE trajectory_meta (trajectory_id TEXT, cascade_id TEXT);
        CREATE TABLE steps (idx INTEGER PRIMARY KEY, step_type INTEGER, status INTEGER, step_format INTEGER,
            metadata BLOB, step_payload BLOB);
        CREATE TABLE gen_metadata (idx INTEGER PRIMARY KEY, data BLOB);
        CREATE TABLE executor_metadata (idx INTEGER PRIMARY KEY, data BLOB);
        CREATE TABLE parent_references (idx INTEGER PRIMARY KEY, data BLOB);
        CREATE TABLE trajectory_metadata_blob (id TEXT, data BLOB);
        CREATE TABLE battle_mode_infos (idx INTEGER PRIMARY KEY, data BLOB);"""
    )
    db.execute("INSERT INTO trajectory_meta VALUES (?, ?)", ("t-1", IDENT))
    db.execute("INSERT INTO trajectory_metadata_blob VALUES (?, ?)", ("m", message((1, [(1, "file://" + story.CWD)]))))
    db.executemany("INSERT INTO steps VALUES (?, ?, 3, 0, ?, ?)", steps.rows)
    db.executemany("INSERT INTO gen_metadata VALUES (?, ?)", enumerate(steps.generations))
    db.commit()
    db.close()


def transcript(home: Path, steps: Steps) -> None:
    logs = home / BELOW / "brain" / IDENT / ".system_generated/logs"
    logs.mkdir(parents=True)
    lines = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in steps.lines]
    (logs / "transcript_full.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    steps = tell()
    for case in ("S1", "S1-transcript"):
        home = HERE / case / "home"
        shutil.rmtree(home, ignore_errors=True)
        if case == "S1":
            database(home / BELOW / "conversations" / f"{IDENT}.db", steps)
        transcript(home, steps)
        story.write(HERE / case, story.truth())


if __name__ == "__main__":
    main()
