"""Makes the captures of Cursor CLI from the public field map: `python -m tests.captures.cursor.make`.

S1: store, sidecar and transcript, as the program writes them. S1-transcript: the same transcript alone, as Cursor Desktop
leaves it. S1-messages: a store whose root names JSON messages only, as older builds wrote it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from tests.captures import story
from tests.captures.wire import message

HERE = Path(__file__).parent
IDENT = "8b045f58-0000-4000-8000-000000000001"
FOLDER = hashlib.md5(story.CWD.encode()).hexdigest()
MODEL = "cursor-grok-4.5-high"


class Store:
    """The blobs, in the order they were written."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.time = story.START

    def put(self, data: bytes) -> bytes:
        ident = hashlib.sha256(data).digest()
        self.blobs.setdefault(ident.hex(), data)
        return ident

    def json(self, value: Any) -> bytes:
        return self.put(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    def now(self) -> int:
        self.time += 900
        return self.time


def tool(call: story.Call) -> tuple[str, dict[str, Any], int, bytes, bytes]:
    """Name, arguments, field of the tool; arguments and result as protobuf."""
    path = f"{story.CWD}/calc.py"
    match call.kind:
        case "run":
            args = {"command": call.command, "working_directory": story.CWD}
            shown = message((1, call.command), (2, story.CWD), (3, call.exit), (5, call.result))
            result = message((1 if call.exit == 0 else 2, shown))
            return "Shell", args, 1, message((1, call.command), (2, story.CWD)), result
        case "read":
            return "Read", {"path": path}, 8, message((1, path)), message((1, [(1, path), (2, story.BEFORE)]))
        case _:
            args = {"path": path, "contents": story.AFTER}
            done = message((1, [(1, path), (3, 1), (4, 1), (6, story.BEFORE), (7, story.AFTER)]))
            return "Write", args, 12, message((1, path)), done


def wrapped(text: str) -> str:
    return f"<timestamp>Monday, Nov 30, 2026, 5:09 AM (UTC)</timestamp>\n<user_query>\n{text}\n</user_query>"


def tell(store: Store, *, turns: bool) -> bytes:
    """The whole conversation, a root behind each response; gives the last root."""
    messages = [store.json({"role": "system", "content": "You are an agent."})]
    messages.append(store.json({"role": "user", "content": "<user_info>\nOS: linux\n</user_info>"}))
    done: list[bytes] = []
    root = b""
    for number, told in enumerate(story.TURNS):
        user = store.put(message((1, told.prompt), (2, f"msg-{number}"), (25, store.now())))
        messages.append(
            store.json(
                {"role": "user", "content": [{"type": "text", "text": wrapped(told.prompt)}], "id": f"m{number}"}
            )
        )
        steps: list[bytes] = []
        current = b""
        for response in told.responses:
            parts: list[dict[str, Any]] = [{"type": "reasoning", "signature": "c2ln", "text": ""}]
            if response.thinking:
                steps.append(store.put(message((3, [(1, response.thinking), (2, 40), (3, store.now())]))))
            if response.text:
                parts.append({"type": "text", "text": response.text})
                steps.append(store.put(message((1, [(1, response.text), (2, store.now())]))))
            if response.call:
                name, args, field, given, result = tool(response.call)
                parts.append({"type": "tool-call", "toolCallId": response.call.id, "toolName": name, "args": args})
                start = store.now()
                asked = [(field, [(1, given)]), (57, response.call.id), (59, start)]
                steps.append(store.put(message((2, asked))))
                current = store.put(message((1, [(1, user), *((2, s) for s in steps), (3, f"request-{number}")])))
                root = store.put(
                    message(
                        *((1, m) for m in messages), *((8, t) for t in [*done, current]), (9, "file://" + story.CWD)
                    )
                )
                answered = [(field, [(1, given), (2, result)]), (57, response.call.id), (59, start), (60, store.now())]
                steps[-1] = store.put(message((2, answered)))
            options = {"cursor": {"modelName": MODEL}}
            messages.append(
                store.json({"role": "assistant", "id": response.id, "content": parts, "providerOptions": options})
            )
            if response.call:
                answer = {"type": "tool-result", "toolCallId": response.call.id, "toolName": tool(response.call)[0]}
                messages.append(store.json({"role": "tool", "content": [{**answer, "result": response.call.result}]}))
        current = store.put(message((1, [(1, user), *((2, s) for s in steps), (3, f"request-{number}")])))
        done.append(current)
        tree = [(8, t) for t in done] if turns else []
        root = store.put(message(*((1, m) for m in messages), *tree, (9, "file://" + story.CWD), (22, "cli")))
    return root


def database(folder: Path, *, turns: bool) -> None:
    folder.mkdir(parents=True)
    store = Store()
    root = tell(store, turns=turns)
    told = {
        "agentId": IDENT,
        "latestRootBlobId": root.hex(),
        "name": "Fix add",
        "mode": "default",
        "createdAt": story.START,
    }
    db = sqlite3.connect(folder / "store.db")
    db.executescript(
        """PRAGMA user_version = 1;
        CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB);
        CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);"""
    )
    db.executemany("INSERT INTO blobs VALUES (?, ?)", store.blobs.items())
    db.execute("INSERT INTO meta VALUES ('0', ?)", (json.dumps(told).encode().hex(),))
    db.commit()
    db.close()
    sidecar = {"schemaVersion": 1, "createdAtMs": story.START, "hasConversation": True, "cwd": story.CWD}
    (folder / "meta.json").write_text(json.dumps(sidecar))


def transcript(home: Path) -> None:
    folder = home / ".cursor/projects/home-dev-app/agent-transcripts" / IDENT
    folder.mkdir(parents=True)
    lines: list[dict[str, Any]] = []
    for told in story.TURNS:
        lines.append({"role": "user", "message": {"content": [{"type": "text", "text": wrapped(told.prompt)}]}})
        for response in told.responses:
            parts: list[dict[str, Any]] = [{"type": "text", "text": response.text}] if response.text else []
            if response.call:
                name, args, *_ = tool(response.call)
                parts.append({"type": "tool_use", "name": name, "input": args})
            lines.append({"role": "assistant", "message": {"content": parts}})
        lines.append({"type": "turn_ended", "status": "success"})
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    (folder / f"{IDENT}.jsonl").write_text(text, "utf-8")


def main() -> None:
    for case in ("S1", "S1-transcript", "S1-messages"):
        home = HERE / case / "home"
        shutil.rmtree(home, ignore_errors=True)
        if case != "S1-transcript":
            database(home / ".cursor/chats" / FOLDER / IDENT, turns=case == "S1")
        if case != "S1-messages":
            transcript(home)
        story.write(HERE / case, story.truth() | {"model": MODEL})


if __name__ == "__main__":
    main()
