"""An agent that speaks protocols 1 and 2 by a script: thinks, answers in pieces, asks before it edits, edits, ends.

It needs nothing but Python. `SCRIPTED_LATEST` is the latest protocol it speaks (default 2).
"""

import json
import os
import sys
from typing import Any


def say(**fields: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **fields}) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def update(kind: str, /, **fields: Any) -> None:
    say(method="session/update", params={"sessionId": "sess-1", "update": {"sessionUpdate": kind, **fields}})


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


DIFF_1 = {"type": "diff", "path": "/w/new.txt", "oldText": None, "newText": "hello\n"}
DIFF_2 = {
    "type": "diff",
    "changes": [{"operation": "add", "path": "/w/new.txt"}],
    "patch": {"format": "git_patch", "text": "diff --git a/new.txt b/new.txt\n"},
}
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def turn(protocol: int, asked: dict[str, Any]) -> None:
    two = protocol >= 2
    if two:
        say(id=asked["id"], result={"messageId": "user-1"})
        update("user_message", messageId="user-1", content=asked["params"]["prompt"])
        update("state_update", state="running")
    update("agent_thought_chunk", messageId="thought-1", content=words("Let me "))
    update("agent_thought_chunk", messageId="thought-1", content=words("think."))
    call = {"toolCallId": "call-1", "title": "Write new.txt", "kind": "edit", "status": "pending"}
    update("tool_call_update" if two else "tool_call", **call, rawInput={"path": "/w/new.txt"})
    permission: dict[str, Any] = {"sessionId": "sess-1", "options": OPTIONS}
    if two:
        permission |= {"title": "Write?", "subject": {"type": "tool_call", "toolCall": {"toolCallId": "call-1"}}}
    else:
        permission |= {"toolCall": {"toolCallId": "call-1"}}
    say(id=900, method="session/request_permission", params=permission)
    while True:
        answer = hear()
        if answer.get("id") == 900 and "method" not in answer:
            break
    update("tool_call_update", toolCallId="call-1", status="completed", content=[DIFF_2 if two else DIFF_1])
    update("agent_message_chunk", messageId="message-1", content=words("I wrote "))
    update("agent_message_chunk", messageId="message-1", content=words("the file."))
    if two:
        update("state_update", state="idle", stopReason="end_turn")
    else:
        usage = {"totalTokens": 18, "inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 3}
        say(id=asked["id"], result={"stopReason": "end_turn", "usage": usage})


def main() -> None:
    protocol = 1
    while True:
        asked = hear()
        method, ident = asked.get("method"), asked.get("id")
        if method == "initialize":
            protocol = min(asked["params"]["protocolVersion"], int(os.environ.get("SCRIPTED_LATEST", "2")))
            info = {"name": "scripted-agent", "version": "1.0.0"}
            result: dict[str, Any] = {"protocolVersion": protocol}
            result |= (
                {"info": info, "capabilities": {}} if protocol >= 2 else {"agentInfo": info, "agentCapabilities": {}}
            )
            say(id=ident, result=result | {"authMethods": []})
        elif method == "session/new":
            say(id=ident, result={"sessionId": "sess-1"})
        elif method == "session/prompt":
            turn(protocol, asked)
        elif ident is not None and method is not None:
            say(id=ident, error={"code": -32601, "message": f"method not found: {method}"})


if __name__ == "__main__":
    main()
