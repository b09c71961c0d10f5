"""What really happened in a capture of `tests/captures/acp`, from its `truth.json`, and what its streams say."""

import json
import re
from pathlib import Path
from typing import Any, cast

from asrd.convert import convert_home
from asrd.records import (
    AnyRecord,
    FileChange,
    Inference,
    Message,
    Record,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    UsageTotal,
    VcsAction,
    decode,
    encode,
)

CAPTURES = Path(__file__).parents[1] / "captures" / "acp"
CASES = sorted(p.parent.name for p in CAPTURES.glob("*/truth.json"))


def items(value: Any) -> list[Any]:
    """A list from JSON; none when there is none."""
    return cast("list[Any]", value or [])


class Call:
    """A call that the model made: its id as the agent's own files have it, its name, input, and the exit code of a command."""

    def __init__(self, ident: str, name: str, given: Any, exit_code: int | None, failed: bool, result: str) -> None:
        self.id, self.name = ident, name
        self.input: Any = given
        self.exit_code, self.failed, self.result = exit_code, failed, result


class Truth:
    """The prompts, responses and calls of the conversation; what the programs did beside it is left out."""

    def __init__(self, case: str) -> None:
        told = json.loads((CAPTURES / case / "truth.json").read_text())
        self.prompts: list[str] = [t["prompt"] for t in told["turns"]] if "turns" in told else PROMPTS
        self.calls: list[Call] = []
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.tokens = self.requests = 0
        results = {r["call_id"]: r for r in told.get("tool_results", [])}
        exits = {c["id"]: c for c in told.get("calls", [])}
        for response in told["responses"]:
            if response["script"] not in ("S7T1", "S7T2", "ACP1", "ACP2"):
                continue
            exhausted = "exhausted" in json.dumps([response.get("text"), response.get("items")])
            if exhausted and (case, response["script"]) != ("hermes", "ACP1"):
                continue  # asked beside the conversation: titles, reviews, memory. Hermes did ask on within its turn.
            self.requests += 1
            self.tokens += tokens(response["usage"])
            self._words(response)
            for call in items(response.get("calls") or response.get("tool_calls")):
                given = call.get("input", call.get("args", call.get("arguments")))
                if isinstance(given, str) and given.startswith("{"):
                    given = json.loads(given)
                seen = results.get(call["id"], {})
                text = str(
                    seen.get("output_as_sent_to_model") or exits.get(call["id"], {}).get("result_seen_by_model") or ""
                )
                found = re.search(r"(?:Exit code|exited with code) (\d+)", text) if seen else None
                code = (
                    exits.get(call["id"], {}).get("exit_code") if not seen else int(found.group(1)) if found else None
                )
                if call["name"] == "apply_patch":
                    code = None
                if call["name"] == "Bash" and seen.get("is_error") is False:
                    code = 0  # Claude Code gives every other command as an error
                self.calls.append(Call(call["id"], call["name"], given, code, bool(seen.get("is_error")), text))
        self.commit = str((told.get("git_log_newest_first") or told.get("git_log"))[0]).split()[0]

    def _words(self, response: dict[str, Any]) -> None:
        for block in items(response.get("content")):
            if block["type"] == "text":
                self.texts.append(block["text"])
            elif block["type"] == "thinking":
                self.thoughts.append(block["thinking"])
        for item in items(response.get("items")):
            if item["type"] == "message":
                self.texts.append("".join(c["text"] for c in items(item["content"])))
            elif item["type"] == "reasoning":
                self.thoughts.append("\n\n".join(c["text"] for c in items(item["summary"])))
        if response.get("text"):
            self.texts.append(response["text"])
        if response.get("reasoning"):
            self.thoughts.append(response["reasoning"])


def tokens(usage: dict[str, Any]) -> int:
    """Input with what was cached, and output with reasoning, as the model server delivered them."""
    if "input" in usage:
        return usage["input"] + usage["output"]
    cached = usage.get("cache_creation_input_tokens", 0) + usage.get("cache_read_input_tokens", 0)
    return usage["input_tokens"] + cached + usage["output_tokens"]


PROMPTS = ["[[S7T1]] Fix calc.add so that ./check.sh passes, then commit.", "[[S7T2]] Why did it fail?"]


class Told:
    """What the stream of a capture's session says, corrections applied."""

    def __init__(self, records: list[Record]) -> None:
        whole: list[AnyRecord] = [decode(encode(r)) for r in records]
        gone = {r.supersedes for r in whole if r.supersedes}
        self.records = [r for r in whole if r.id not in gone]
        self.calls = [r for r in self.records if isinstance(r, ToolCall)]
        self.results = {r.call_id: r for r in self.records if isinstance(r, ToolResult)}
        self.changes = [r for r in self.records if isinstance(r, FileChange)]
        self.commits = [r.commit for r in self.records if isinstance(r, VcsAction)]
        self.turns = [r for r in self.records if isinstance(r, Turn)]
        self.inferences = [r for r in self.records if isinstance(r, Inference)]
        self.totals = [r for r in self.records if isinstance(r, UsageTotal)]
        said = [r for r in self.records if isinstance(r, Message)]
        self.prompts = [words(r) for r in said if r.origin == "prompt"]
        self.texts = [words(r) for r in said if r.role == "assistant" and isinstance(r.content[0], Text)]
        self.thoughts = [words(r) for r in said if r.role == "assistant" and isinstance(r.content[0], Thinking)]


def words(message: Message) -> str:
    return "".join(b.text or "" for b in message.content if isinstance(b, Text | Thinking))


def told(case: str) -> Told:
    """The one stream of a case."""
    (records,) = convert_home(CAPTURES / case / "home", only="acp").values()
    return Told(records)
