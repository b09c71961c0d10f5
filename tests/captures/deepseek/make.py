"""Makes the captures of DeepSeek Harness from the public description of its format: `python -m tests.captures.deepseek.make`.

S1: the story, compressed, with the cache. S3: a fork of it that goes on, and a sub-agent, in plain.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import zstandard

from tests.captures import story

HERE = Path(__file__).parent
PARENT = "session-11111111-1111-4111-8111-111111111111"
FORK = "session-22222222-2222-4222-8222-222222222222"
CHILD = "session-33333333-3333-4333-8333-333333333333"


class Log:
    """The lines of one session."""

    def __init__(self, **header: Any) -> None:
        first = {"createdAt": story.START, "cwd": story.CWD, "delegationDepth": 0, "isSeeded": False, "type": "session"}
        self.header = {**first, "version": 4, **header}
        self.events: list[dict[str, Any]] = []
        self.time = story.START

    def add(self, kind: str, data: Any, **more: Any) -> int:
        self.time += 137
        seq = len(self.events)
        self.events.append({"data": data, "seq": seq, **more, "time": self.time, "type": kind})
        return seq

    def said(self, ident: str, text: str, kind: str = "user") -> dict[str, Any]:
        return {"content": [{"text": text, "type": "text"}], "id": ident, "role": "user", "source": {"kind": kind}}

    def lines(self) -> list[bytes]:
        return [
            json.dumps(e, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            for e in (self.header, *self.events)
        ]


def arguments(call: story.Call) -> tuple[str, dict[str, Any]]:
    match call.kind:
        case "run":
            return "bash", {"command": call.command, "description": "Run it"}
        case "read":
            return "read", {"file_path": "calc.py"}
        case _:
            return "edit", {"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b"}


def result(call: story.Call) -> tuple[str, bool, Any]:
    """What the model is told, whether it is an error, and what DSH keeps beside it."""
    path = f"{story.CWD}/calc.py"
    match call.kind:
        case "run":
            return call.result + (f"\n[exit code: {call.exit}]\n" if call.exit else ""), bool(call.exit), None
        case "read":
            lines = [{"number": n, "text": line} for n, line in enumerate(call.result.splitlines(), 1)]
            numbered = "\n".join(f"{line['number']}: {line['text']}" for line in lines)
            end = f"(End of file - total {len(lines)} lines)"
            text = f"<path>{path}</path>\n<type>file</type>\n<content>\n{numbered}\n\n{end}\n</content>"
            return text, False, {"lang": "py", "lines": lines, "offset": 1, "path": path, "totalLines": len(lines)}
        case _:
            diffs = [{"newText": "a + b", "oldText": "a - b", "path": "calc.py"}]
            return f"The file {path} has been updated successfully.", False, {"diffs": diffs}


def turn(log: Log, number: int, told: story.Told) -> None:
    prompt = log.said(f"prompt-{number}", told.prompt)
    log.add("agent/inbox/spliced", {"inserted": [prompt], "start": 0, "target": "next-turn"})
    log.add("turn/start", {"turn": number})
    log.add("agent/inbox/spliced", {"inserted": [], "removedCount": 1, "start": 0, "target": "next-turn"})
    log.add("step/start", {"step": 1, "turn": number})
    log.add("user/message", prompt, surfaceOp="append")
    if number == 1:
        log.add("user/message", log.said("context-1", "[runtime context]", "runtime-context"), surfaceOp="append")
        header = {"config": {"model": "deepseek-flash", "provider": "deepseek-official", "reasoningEffort": "high"}}
        log.add("request/header", {"header": {**header, "tools": [{"name": "bash"}]}, "reason": "initial"})
    for step, response in enumerate(told.responses, 1):
        step_of(log, number, step, response)
    log.add("turn/end", {"reason": {"kind": "completed"}, "turn": number})


def step_of(log: Log, number: int, step: int, response: story.Response) -> None:
    content: list[dict[str, Any]] = [{"text": response.thinking, "type": "reasoning"}]
    if response.text:
        content.append({"text": response.text, "type": "text"})
    if response.call:
        name, args = arguments(response.call)
        content.append({"arguments": json.dumps(args), "id": response.call.id, "name": name, "type": "tool-call"})
    usage = {
        "cacheReadTokens": response.cached,
        "cacheWriteTokens": 0,
        "inputTokens": response.input,
        "outputTokens": response.output,
        "totalTokens": response.input + response.cached + response.output,
    }
    source = {"kind": "model", "model": "deepseek-flash", "provider": "deepseek-official"}
    message = {"content": content, "id": response.id, "role": "assistant", "source": source}
    reason = {"kind": "tool-calls" if response.call else "stop"}
    stream = [
        {"dt": [0], "index": 1, "texts": [response.text], "time0": log.time, "type": "text-chunks"},
        {"chunk": {"type": "usage", "usage": usage}, "time": log.time, "type": "chunk"},
        {"chunk": {"reason": reason, "type": "finish"}, "time": log.time, "type": "chunk"},
    ]
    data = {"message": message, "step": step, "stream": stream, "turn": number, "usage": usage}
    log.add("assistant/message", data, surfaceOp="append")
    if response.call:
        name, args = arguments(response.call)
        call = {"arguments": json.dumps(args), "callId": response.call.id, "name": name, "step": step, "turn": number}
        seq = log.add("tool/call", call)
        text, failed, meta = result(response.call)
        answer: dict[str, Any] = {"content": [{"text": text, "type": "text"}], "id": f"result-{response.call.id}"}
        answer |= {"isError": failed, "role": "tool", "source": {"callId": response.call.id, "kind": "tool"}}
        answer["toolCallId"] = response.call.id
        beside = {"meta": meta} if meta else {}
        told = {"message": answer, **beside, "step": step, "turn": number}
        log.add("tool/result", told, sourceEventSeqs=[seq], surfaceOp="append")
    log.add("step/end", {"step": step, "turn": number})


def session(ident: str = PARENT, turns: int = 2, **header: Any) -> Log:
    log = Log(id=ident, **header)
    log.add("permission/preset", {"preset": "workspace-write"})
    log.add("sandbox/mode", {"mode": "workspace-write"})
    for number, told in enumerate(story.TURNS[:turns], 1):
        turn(log, number, told)
        log.add("session-log-deepseek/delivery-accepted", {"sessionId": ident, "throughSeq": len(log.events) - 1})
    return log


def cache(log: Log) -> bytes:
    responses = [r for t in story.TURNS for r in t.responses]
    totals = {
        "cacheReadTokens": sum(r.cached for r in responses),
        "cacheWriteTokens": 0,
        "outputTokens": sum(r.output for r in responses),
        "uncachedInputTokens": sum(r.input for r in responses),
    }
    rows = {"tokenUsage": {"seq": len(log.events) - 1, "val": {"totals": totals}, "ver": 2}}
    identity = {"createdAt": story.START, "cwd": story.CWD, "formatVersion": 4, "isSeeded": False}
    return json.dumps({"record": {"identity": identity, "rows": rows}, "version": 7}).encode()


def main() -> None:
    home = HERE / "S1" / "home"
    shutil.rmtree(home, ignore_errors=True)
    log = session()
    folder = home / ".dsh/sessions/home-dev-app" / PARENT
    folder.mkdir(parents=True)
    first, *rest = log.lines()
    # One frame for the header, then some lines a frame, as it is written.
    frames = [first, *(b"".join(rest[i : i + 5]) for i in range(0, len(rest), 5))]
    packed = b"".join(zstandard.ZstdCompressor().compress(frame) for frame in frames)
    (folder / "session.v4.jsonl.zstd").write_bytes(packed)
    caches = home / ".dsh/storages/session_projcache/sessions"
    caches.mkdir(parents=True)
    (caches / f"{PARENT}.json").write_bytes(cache(log))
    story.write(HERE / "S1", story.truth())

    home = HERE / "S3" / "home"
    shutil.rmtree(home, ignore_errors=True)
    fork = session(FORK, 1, isSeeded=True, parentSession=PARENT)
    fork.add("session/end-seed", {})
    turn(fork, 2, story.Told("Explain it.", (story.Response("resp-8", "It was a typo.", None, 88, 4480, 19),)))
    child = Log(id=CHILD, parentSession=PARENT, origin="subagent", delegationDepth=1)
    turn(child, 1, story.Told("Look at calc.py.", (story.Response("resp-9", "It subtracts.", None, 900, 0, 9),)))
    for one in (fork, child):
        folder = home / ".dsh/sessions/home-dev-app" / one.header["id"]
        folder.mkdir(parents=True)
        (folder / "session.v4.jsonl").write_bytes(b"".join(one.lines()))
    facts = {
        "requests": 2,
        "input_total": 88 + 4480 + 900,
        "output": 19 + 9,
        "parent": PARENT,
        "fork": FORK,
        "child": CHILD,
    }
    story.write(HERE / "S3", facts)


if __name__ == "__main__":
    main()
