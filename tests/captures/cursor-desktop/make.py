"""Makes the captures of Cursor Desktop from public descriptions of its database (`python -m tests.captures.cursor-desktop.make`).

S1: the story in one conversation, figures on the last bubble of each turn only, contents of the edited file beside it.
S2: a conversation whose sub-agent has one of its own; a command that was rejected, one that goes on, an edit that was skipped,
    a file that was made, a compaction, a plan; a draft, an old conversation that stands in its own row, and what is not read.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

from tests.captures import story

HERE = Path(__file__).parent
IDENT = "8b045f58-0000-4000-8000-000000000001"
PARENT, CHILD, OLD = (f"8b045f58-0000-4000-8000-00000000000{n}" for n in "234")
WORKSPACE = "93c175a1e1761d404ef54f2a5f463464"
MODEL = "composer-2.5"
SECRET = "c2VjcmV0LWtleS1vZi1jdXJzb3I="
"""Stands where the program keeps its keys; is in no record."""


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Desktop:
    """The rows of one machine's databases, in the order they were written."""

    def __init__(self, home: Path) -> None:
        shutil.rmtree(home, ignore_errors=True)
        self.user = home / ".config/Cursor/User"
        self.heads: list[dict[str, Any]] = []
        folder = self.user / "workspaceStorage" / WORKSPACE
        folder.mkdir(parents=True)
        (folder / "workspace.json").write_text(text({"folder": f"file://{story.CWD}"}))
        self.own = database(folder / "state.vscdb")
        (self.user / "globalStorage").mkdir()
        self.all = database(self.user / "globalStorage/state.vscdb")
        self.item(self.all, "cursorAuth/accessToken", SECRET)
        self.item(self.own, "aiService.prompts", text([{"text": "…", "commandType": 4}]))

    def item(self, db: sqlite3.Connection, key: str, value: str) -> None:
        db.execute("INSERT INTO ItemTable VALUES (?, ?)", (key, value))

    def put(self, key: str, value: Any) -> None:
        db = self.all
        db.execute(
            "INSERT INTO cursorDiskKV VALUES (?, ?)", (key, value if isinstance(value, str | None) else text(value))
        )

    def content(self, held: str) -> str:
        """The key of a file's content; the digest in it is not one that a reader can make (but for nothing at all)."""
        key = "composer.content." + story.digest(f"normalised:{held}" if held else "")
        self.put(key, held)
        return key

    def composer(self, ident: str, bubbles: list[dict[str, Any]], **more: Any) -> None:
        """Writes the bubbles, and behind them the row that names them."""
        for bubble in bubbles:
            self.put(f"bubbleId:{ident}:{bubble['bubbleId']}", bubble)
        told = {
            "_v": 16,
            "composerId": ident,
            "text": "",
            "createdAt": story.START,
            "lastUpdatedAt": story.START + 60_000,
            "status": "completed",
            "unifiedMode": "agent",
            "isAgentic": True,
            "modelConfig": {"modelName": MODEL, "maxMode": False},
            "fullConversationHeadersOnly": [{"bubbleId": b["bubbleId"], "type": b["type"]} for b in bubbles],
            "conversationMap": {},
            "generatingBubbleIds": [],
            "usageData": {},
            "blobEncryptionKey": SECRET,
            "speculativeSummarizationEncryptionKey": SECRET,
            **more,
        }
        self.put(f"composerData:{ident}", told)
        if "name" in more:
            uri = {
                "$mid": 1,
                "fsPath": story.CWD,
                "external": f"file://{story.CWD}",
                "path": story.CWD,
                "scheme": "file",
            }
            head = {"type": "head", "composerId": ident, "name": more["name"], "createdAt": story.START}
            self.heads.append({**head, "workspaceIdentifier": {"id": WORKSPACE, "uri": uri}})

    def close(self, owned: list[str]) -> None:
        self.item(self.own, "composer.composerData", text({"selectedComposerIds": owned}))
        self.item(self.all, "composer.composerHeaders", text({"allComposers": self.heads}))
        for db in (self.own, self.all):
            db.commit()
            db.close()


def database(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path)
    db.executescript(
        """PRAGMA page_size = 1024;
        CREATE TABLE ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);
        CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB);"""
    )
    return db


class Bubbles:
    """The bubbles of a conversation, each some time after the one before."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.all: list[dict[str, Any]] = []

    def add(self, kind: int, words: str = "", **more: Any) -> dict[str, Any]:
        number = len(self.all)
        second = number * 2
        bubble = {
            "_v": 3,
            "type": kind,
            "bubbleId": f"{self.mark}{number:07d}-0000-4000-8000-000000000000",
            "createdAt": f"2026-11-30T05:{9 + second // 60:02d}:{second % 60:02d}.250Z",
            "text": words,
            "richText": "{}",
            "tokenCount": {"inputTokens": 0, "outputTokens": 0},
            "isAgentic": True,
            "unifiedMode": 2,
            "toolResults": [],
            "allThinkingBlocks": [],
            **more,
        }
        self.all.append(bubble)
        return bubble

    def call(self, ident: str, name: str, args: dict[str, Any], result: Any, **more: Any) -> dict[str, Any]:
        told = {
            "tool": {"run_terminal_command_v2": 15, "edit_file_v2": 38, "read_file_v2": 40, "task_v2": 48}.get(name, 0),
            "toolIndex": 0,
            "modelCallId": "",
            "toolCallId": ident,
            "status": "completed",
            "name": name,
            "params": text(args),
            "rawArgs": text(args),
            "result": text(result) if result is not None else None,
            "additionalData": {},
            **more,
        }
        return self.add(2, capabilityType=15, isAgentic=False, toolFormerData=told)


def tool(desktop: Desktop, call: story.Call) -> tuple[str, dict[str, Any], Any]:
    path = f"{story.CWD}/calc.py"
    match call.kind:
        case "run":
            result: dict[str, Any] = {"output": call.result, "rejected": False, "notInterrupted": True}
            if call.exit:
                result["exitCode"] = call.exit
            return "run_terminal_command_v2", {"command": call.command, "cwd": ""}, result
        case "read":
            return "read_file_v2", {"targetFile": path}, {"contents": call.result, "totalLinesInFile": 2}
        case _:
            ids = {"beforeContentId": desktop.content(story.BEFORE), "afterContentId": desktop.content(story.AFTER)}
            return "edit_file_v2", {"relativeWorkspacePath": path, "noCodeblock": True}, ids


def tell(desktop: Desktop) -> list[dict[str, Any]]:
    bubbles = Bubbles("a")
    for told in story.TURNS:
        bubbles.add(1, told.prompt, modelInfo={"modelName": MODEL})
        for response in told.responses:
            if response.thinking:
                bubbles.add(2, capabilityType=30, thinking={"text": response.thinking, "signature": "c2ln"})
            if response.text:
                last = response.call is None
                counted = {"inputTokens": response.input + response.cached, "outputTokens": response.output}
                bubbles.add(2, response.text, **({"tokenCount": counted} if last else {}))
            if response.call:
                name, args, result = tool(desktop, response.call)
                extra = {"additionalData": {"status": "error"}} if response.call.exit else {}
                bubbles.call(response.call.id, name, args, result, **extra)
    return bubbles.all


def first() -> None:
    desktop = Desktop(HERE / "S1/home")
    desktop.composer(IDENT, tell(desktop), name="Fix add")
    desktop.close([IDENT])
    ends = [t.responses[-1] for t in story.TURNS]
    facts = {
        **story.truth(),
        "model": MODEL,
        "expected_usage": {
            "requests": len(ends),
            "input_total": sum(r.input + r.cached for r in ends),
            "output": sum(r.output for r in ends),
        },
    }
    story.write(HERE / "S1", facts)


def second() -> None:
    desktop = Desktop(HERE / "S2/home")
    made = f"{story.CWD}/notes.md"
    main = Bubbles("b")
    main.add(1, "Look into calc.py with a helper, then tidy up.", modelInfo={"modelName": MODEL})
    main.call("tool_task", "task_v2", {"description": "Look", "prompt": "Read calc.py."}, {"agentId": CHILD})
    main.add(2, capabilityType=22, isAgentic=False)
    refused = {"output": "", "rejected": True, "notInterrupted": True}
    main.call(
        "tool_rm", "run_terminal_command_v2", {"command": "rm -r build"}, refused, additionalData={"status": "rejected"}
    )
    skipped = text({"clientVisibleErrorMessage": "Edit rejected: User chose to skip"})
    main.call("tool_skip", "edit_file_v2", {"relativeWorkspacePath": made}, None, status="cancelled", error=skipped)
    ids = {"beforeContentId": desktop.content(""), "afterContentId": desktop.content("# Notes\n")}
    main.call("tool_made", "edit_file_v2", {"relativeWorkspacePath": made}, ids)
    missing = text({"clientVisibleErrorMessage": "File not found", "modelVisibleErrorMessage": "No such file: x.py"})
    main.call("tool_gone", "read_file_v2", {"targetFile": "x.py"}, None, status="error", error=missing)
    main.call("tool_goes", "run_terminal_command_v2", {"command": "make serve"}, None, status="running")
    main.add(2)
    main.add(2, "Serving now.", tokenCount={"inputTokens": 21_000, "outputTokens": 310})
    child = Bubbles("c")
    child.add(1, "Read calc.py.")
    child.call("tool_child", "read_file_v2", {"targetFile": "calc.py"}, {"contents": story.BEFORE})
    child.add(2, "It subtracts.", tokenCount={"inputTokens": 900, "outputTokens": 9}, modelInfo={"modelName": "fast-1"})
    info = {"parentComposerId": PARENT, "toolCallId": "tool_task", "subagentTypeName": "explore"}
    desktop.composer(CHILD, child.all, subagentInfo=info, name="Look")
    desktop.composer(
        PARENT,
        main.all,
        name="Tidy up",
        status="generating",
        generatingBubbleIds=[main.all[-3]["bubbleId"]],
        subagentComposerIds=[CHILD],
        newlyCreatedFiles=[{"uri": {"fsPath": made, "path": made, "scheme": "file"}}],
        todos=[
            {"id": "1", "content": "Look", "status": "completed"},
            {"id": "2", "content": "Tidy", "status": "in_progress"},
        ],
    )
    old = [
        {
            "type": 1,
            "bubbleId": "d0",
            "text": "What is add?",
            "timingInfo": {"clientRpcSendTime": story.START - 90_000},
        },
        {"type": 2, "bubbleId": "d1", "text": "A function.", "tokenCount": {"inputTokens": 400, "outputTokens": 6}},
    ]
    desktop.composer(OLD, [], _v=3, conversation=old, fullConversationHeadersOnly=[], createdAt=story.START - 99_000)
    desktop.composer("empty-state-draft", [], isDraft=True, status="none")
    desktop.put("composerData:8b045f58-0000-4000-8000-000000000009", None)
    desktop.put(f"checkpointId:{PARENT}:1", {"files": []})
    desktop.put(f"checkpointId:{PARENT}:2", {"files": []})
    desktop.put("agentKv:blob:" + story.digest("x"), "…")
    desktop.close([PARENT, OLD])
    counted = [main.all[-1], child.all[-1], old[-1]]
    story.write(
        HERE / "S2",
        {
            "prompts": ["Look into calc.py with a helper, then tidy up.", "What is add?"],
            "spawned": {CHILD: "tool_task"},
            "results": {"tool_rm": "denied", "tool_skip": "cancelled", "tool_made": "completed", "tool_gone": "failed"},
            "running": ["tool_goes"],
            "edits": [["notes.md", None, story.digest("# Notes\n")]],
            "expected_usage": {
                "requests": len(counted),
                "input_total": sum(b["tokenCount"]["inputTokens"] for b in counted),
                "output": sum(b["tokenCount"]["outputTokens"] for b in counted),
            },
        },
    )


if __name__ == "__main__":
    first()
    second()
