"""What happened in a session, from those who saw it: the scripted model server and the working tree, or a packet's observer."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from asrd.recorders.base import sha256
from tests.recorders import script_truth

Rows = dict[str, Any]
MARKER = re.compile(r"\[\[(\w+)\]\]")


class Prompt(Struct):
    """What was asked. `text` is None where only its marker is known; `turn` is its place among the prompts."""

    marker: str
    text: str | None = None


class Response(Struct):
    """The answer that ended a turn. `usage`: input with cached tokens, output with reasoning; None = not told."""

    marker: str
    text: str
    model: str | None = None
    usage: tuple[int, int] | None = None
    before: list["Response"] = []
    """Earlier answers without a call in the same turn: a harness may ask for more that it shows nobody."""


class Action(Struct):
    """A call. `texts`: the texts in its arguments. `command` is a command line, its words known as `argv` in packets."""

    marker: str
    call_id: str | None
    texts: list[str]
    command: str | None = None
    edits: bool = False
    ended: bool = True
    """Whether it came to a result that was passed on."""
    exit_code: int | None = None
    output: str = ""


class Edit(Struct):
    path: str
    before: str | None
    after: str | None


class Truth(Struct):
    prompts: list[Prompt]
    responses: list[Response]
    actions: list[Action]
    edits: list[Edit]
    sessions: list[str]
    whole: bool = True
    """Whether every call is known, so that another is one too many (an observer of packets tells only four)."""

    def turn_of(self, marker: str) -> int | None:
        """The place of the prompt with that marker; None for what sub-agents were asked."""
        return next((n for n, p in enumerate(self.prompts) if p.marker == marker), None)


def texts(value: Any) -> list[str]:
    """Every text in a JSON value, in order."""
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, dict):
        return [t for v in value.values() for t in texts(v)]  # type: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [t for v in value for t in texts(v)]  # type: ignore[reportUnknownVariableType]
    return []


def of_capture(folder: Path) -> Truth | None:
    """What `truth.json` of a capture tells; None when it does not tell of single responses."""
    truth: Rows = json.loads((folder / "truth.json").read_text())
    if "texts" in truth:
        return of_table(truth)
    if "responses" not in truth:
        return None
    told = of_server(truth) if "git_log_newest_first" in truth else of_script(truth)
    if told is not None and "S5" in folder.name:
        # A kill may come before the harness wrote of a call at all.
        files = [p.read_bytes() for p in (folder / "home").rglob("*") if p.is_file()]
        told.actions = [a for a in told.actions if any((a.call_id or "").encode() in data for data in files)]
    return told


# ---------------------------------------------------------------- Claude Code and Codex


def of_server(truth: Rows) -> Truth | None:
    """A truth.json with `tool_results` and the raw items of each response. None when it has no scripts to tell turns by."""
    given = [r for r in truth["responses"] if not r.get("incomplete") and r.get("script") not in (None, "aux", "main")]
    if not given or not all("script" in r for r in given):
        return None
    told = {t["call_id"]: t for t in truth["tool_results"]}
    ran = {s["step"]: s for s in truth.get("shell") or ()}
    stated = {m.group(1): t for t in truth.get("turns") or () if (m := MARKER.search(t["prompt"]))}
    files: dict[str, list[str]] = truth.get("prompt_markers_in_each_file_in_order") or {}
    written = {m for markers in files.values() for m in markers}
    asked = [m for m in dict.fromkeys(r["script"] for r in given) if m in written and not m.startswith("SUB")]
    ids: Any = truth.get("session_ids") or []
    actions: list[Action] = []
    responses: list[Response] = []
    for r in given:
        calls = asks(r)
        for call in calls:
            arguments = call.get("input", call.get("arguments"))
            result = told.get(call["id"])
            output = str(result["output_as_sent_to_model"]) if result else ""
            found = re.search(r"(?:^Exit code|Process exited with code) (\d+)", output)
            shell = ran.get(f"{r['script']}#{r.get('step')}")
            actions.append(
                Action(
                    r["script"],
                    call["id"],
                    texts(arguments),
                    command=shell["cmd"] if shell else None,
                    ended=result is not None and output != "aborted",
                    exit_code=shell["exit_code"] if shell else int(found.group(1)) if found else None,
                    output=output,
                )
            )
        if not calls and (words := answer(r)) and r["script"] in asked:
            responses.append(Response(r["script"], words, r.get("model"), used(r["usage"])))
    return Truth(
        prompts=[Prompt(m, stated[m]["prompt"] if m in stated else None) for m in asked],
        responses=last_of_each(responses),
        actions=actions,
        edits=[Edit(e["file"], digest(e["before"]), digest(e["after"])) for e in truth.get("edits") or ()],
        sessions=texts(ids),
    )


def asks(response: Rows) -> list[Rows]:
    """The calls of a response, each with its id and its arguments."""
    given = [c for c in response.get("calls") or () if c.get("id")]
    known = {c["id"] for c in given}
    more = [i for i in response.get("items") or () if i.get("call_id") and i["call_id"] not in known]
    return given + [{"id": i["call_id"], "input": i.get("arguments")} for i in more]


def answer(response: Rows) -> str:
    """The words a response shows."""
    blocks: list[Rows] = list(response.get("content") or ())
    for item in response.get("items") or ():
        blocks += item.get("content") or () if item.get("type") == "message" else ()
    return "\n".join(b["text"] for b in blocks if b.get("type") in ("text", "output_text"))


def used(usage: Rows) -> tuple[int, int]:
    cached = usage.get("cache_creation_input_tokens", 0) + usage.get("cache_read_input_tokens", 0)
    return usage["input_tokens"] + cached, usage["output_tokens"]


def digest(text: str | None) -> str | None:
    return None if text is None else sha256(text)


def last_of_each(responses: list[Response]) -> list[Response]:
    """The last answer of each turn, in the order of the turns, with those before it."""
    by_turn: dict[str, list[Response]] = {}
    for response in responses:
        by_turn.setdefault(response.marker, []).append(response)
    return [structs.replace(found[-1], before=found[:-1]) for found in by_turn.values()]


# ---------------------------------------------------------------- the others


def of_script(truth: Rows) -> Truth:
    """A truth.json with `calls`, `turns` and what the model was told of each call."""
    given = [r for r in truth["responses"] if r["delivered"] == "full" and not r["script"].startswith("_")]
    stated = {m: t["prompt"] for t in truth["turns"] for m in MARKER.findall(t["prompt"])}
    first = [r["script"] for r in truth["responses"] if not r["script"].startswith(("_", "SUB"))]
    asked = [m for m in dict.fromkeys([*first, *stated]) if not m.endswith("ANN")]
    ids = {c["id"] for r in given for c in r["tool_calls"]}
    return Truth(
        prompts=[Prompt(m, stated.get(m)) for m in asked],
        responses=last_of_each(
            [
                Response(r["script"], r["text"], r["model"], (r["usage"]["input"], r["usage"]["output"]))
                for r in given
                if not r["tool_calls"] and r["script"] in asked
            ]
        ),
        actions=[
            Action(
                c["script"],
                c["id"],
                texts(c["args"]),
                command=c["args"].get("command") if isinstance(c["args"].get("command"), str) else None,
                ended=c.get("result_seen_by_model") is not None and "killed" not in c.get("note", ""),
                exit_code=c.get("exit_code"),
                output=c.get("result_seen_by_model") or "",
            )
            for c in truth["calls"]
            if c["id"] in ids
        ],
        edits=[Edit(*row) for row in script_truth.told(truth)["edits"]],
        sessions=[],
    )


# ---------------------------------------------------------------- constructed captures


def of_table(truth: Rows) -> Truth:
    """A truth.json of bare lists: prompts, what was said, calls, exit codes, edits. Of turns it tells only how the last ended."""
    asked = [Prompt(f"P{n}", text) for n, text in enumerate(truth["prompts"], 1)]
    codes: dict[str, int] = truth["exits"]
    return Truth(
        prompts=asked,
        responses=[Response(asked[-1].marker, truth["texts"][-1], truth.get("model"))],
        actions=[Action("", ident, [], exit_code=codes.get(ident)) for ident in truth["calls"]],
        edits=[Edit(*row) for row in truth["edits"]],
        sessions=[],
    )


# ---------------------------------------------------------------- packets


def of_packet(told: Mapping[str, Any], model: str | None = None) -> Truth:
    """One run of `ground-truth.json`: two turns, four actions of which the third is the edit."""
    actions = [
        Action(
            f"R{a['turn']}",
            a["call_id"],
            [],
            command=" ".join(a["argv"]) if a["kind"] == "shell" else None,
            edits=a["kind"] == "edit",
            exit_code=a["exit_code"],
            output=a["output"] or "",
        )
        for a in told["actions"]
    ]
    change = told["file_change"]
    return Truth(
        prompts=[Prompt(f"R{n}", text) for n, text in enumerate(told["prompts"], 1)],
        responses=[Response(f"R{n}", text, model) for n, text in enumerate(told["responses"], 1)],
        actions=actions,
        edits=[Edit(change["path"], change["before_sha256"], change["after_sha256"])],
        sessions=[told["session_id"]],
        whole=False,
    )
