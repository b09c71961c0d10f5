"""ATIF v1.8 (Agent Trajectory Interchange Format, Harbor RFC 0001): one JSON document a session, sub-agents embedded.

Prompt tokens include cached ones there, and cached ones are those that were read. A result stands in the step of its call.
What has no place stands under `extra`; what has none there either is counted in `extra.dev.asrd.leftOut`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import msgspec

from asrd.export import Exported, File, Format, Given
from asrd.export.view import (
    Figures,
    Step,
    file_stem,
    iso,
    models,
    result_text,
    steps,
    text_of,
    thinking_of,
    tools,
    totals,
)
from asrd.records import (
    TYPE_NAMES,
    AnyRecord,
    Compaction,
    Gap,
    Image,
    Loss,
    Message,
    Record,
    ToolResult,
)

SCHEMA_VERSION = "ATIF-v1.8"
UNKNOWN = "unknown"
"""The version of a harness that is not recorded: the format requires one."""


def make(given: Given) -> list[File]:
    """One document for each session that none of the others started."""
    found: list[File] = []
    for number in given.roots():
        one = given.sessions[number]
        document = trajectory(given, number)
        data = msgspec.json.format(msgspec.json.encode(document), indent=2)
        found.append(File(f"{file_stem(one.agent, one.session_id, one.namespace)}.atif.json", data + b"\n"))
    return found


def trajectory(given: Given, number: int) -> dict[str, Any]:
    """One session, with those it started below it."""
    one = given.sessions[number]
    children = given.children(number)
    started = {
        given.sessions[c].parent_call: _ident(given.sessions[c]) for c in children if given.sessions[c].parent_call
    }
    found = steps(one.records)
    shown = [_step(s, one, started) for s in found] or [{"source": "system", "message": "", "extra": {"empty": True}}]
    header = one.header
    named = models(one.records)
    told = tools(one.records)
    figures = one.total()
    agent: dict[str, Any] = {"name": one.agent, "version": (header.agent.version if header else None) or UNKNOWN}
    if named:
        agent["model_name"] = named[0]
    if told:
        agent["tool_definitions"] = [{"type": "function", "function": {"name": name}} for name in told]
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "session_id": one.session_id,
        "trajectory_id": _ident(one),
        "agent": agent,
        "steps": [{"step_id": n, **s} for n, s in enumerate(shown, 1)],
        "final_metrics": _final(given, number, figures, len(shown)),
        "extra": _extra(given, one),
    }
    if notes := _notes(one):
        document["notes"] = notes
    if children:
        document["subagent_trajectories"] = [trajectory(given, c) for c in children]
    return document


def _ident(one: Exported) -> str:
    return "/".join(p for p in (one.agent, one.namespace, one.session_id) if p)


def _step(step: Step, one: Exported, started: dict[str | None, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"source": step.source}
    if at := iso(step.at):
        found["timestamp"] = at
    if step.source == "agent":
        if step.inference is not None:
            if step.inference.model:
                found["model_name"] = step.inference.model
            if step.inference.effort:
                found["reasoning_effort"] = step.inference.effort
    found["message"] = "\n".join(t for m in step.messages if (t := _said(m)))
    if isinstance(step.record, Compaction):
        found["message"] = step.record.summary or ""
    extra: dict[str, Any] = {"recordIds": [r.id for r in _records(step)]}
    if step.record.turn_id:
        extra["turnId"] = step.record.turn_id
    if step.source == "agent":
        thought = "\n".join(t for m in step.messages if (t := thinking_of(m.content)))
        if thought:
            found["reasoning_content"] = thought
        if step.calls:
            found["tool_calls"] = [
                {
                    "tool_call_id": c.call_id,
                    "function_name": c.name,
                    "arguments": c.input,
                    "extra": {"recordId": c.id, **({"kind": c.kind} if c.kind else {})},
                }
                for c in {c.call_id: c for c in step.calls}.values()
            ]
        inference = step.inference
        if inference is not None:
            figures = one.counted.get(inference.seq)
            if figures is not None and (metrics := _metrics(figures)):
                found["metrics"] = metrics
            if figures is not None:
                found["llm_call_count"] = 1
            said = {
                "inferenceId": inference.inference_id,
                "stopReason": inference.stop_reason,
                "provider": inference.provider,
                "durationMs": inference.duration_ms,
                "error": msgspec.to_builtins(inference.error) if inference.error else None,
            }
            extra["inference"] = {k: v for k, v in said.items() if v is not None}
    elif step.messages:
        extra["role"] = step.messages[0].role
        extra["origin"] = step.messages[0].origin
        extra["author"] = step.messages[0].author
    calls = {c.call_id for c in step.calls}
    if step.results:
        found["observation"] = {"results": [_result(r, calls, started) for r in step.results]}
    if step.copied:
        found["is_copied_context"] = True
    if images := [b for m in step.messages for b in m.content if isinstance(b, Image)]:
        extra["images"] = [{"mediaType": i.media_type, "path": i.path, "sha256": i.sha256} for i in images]
    others = [*step.others, *([step.record] if isinstance(step.record, Compaction) else [])]
    if others:
        extra["records"] = [_plain(r) for r in others]
    found["extra"] = {k: v for k, v in extra.items() if v is not None}
    return found


def _records(step: Step) -> list[AnyRecord]:
    every: list[AnyRecord] = [step.record, *step.messages, *step.calls, *step.results, *step.others]
    return list({r.id: r for r in every}.values())


def _said(message: Message) -> str:
    return text_of(message.content)


def _plain(record: Record) -> dict[str, Any]:
    """The record as it is written, without the place it was made from."""
    found = cast("dict[str, Any]", msgspec.to_builtins(record))
    return {k: v for k, v in found.items() if k not in ("_meta", "seq", "nativeId", "turnId", "parent")}


def _result(result: ToolResult, calls: set[str], started: dict[str | None, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"content": result_text(result)}
    if result.call_id in calls:
        found["source_call_id"] = result.call_id
    if result.call_id in started:
        found["subagent_trajectory_ref"] = [{"trajectory_id": started[result.call_id]}]
    extra: dict[str, Any] = {"recordId": result.id, "status": result.status, "linkage": result.linkage}
    if result.call_id not in calls:
        extra["callId"] = result.call_id
    if result.exec is not None:
        ran = cast("dict[str, Any]", msgspec.to_builtins(result.exec))
        shown = found["content"]
        extra["exec"] = {k: v for k, v in ran.items() if not (k in ("stdout", "stderr") and v == shown)}
    if result.truncated is not None:
        extra["truncated"] = msgspec.to_builtins(result.truncated)
    found["extra"] = extra
    return found


def _metrics(figures: Figures) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if figures.input_total is not None:
        found["prompt_tokens"] = figures.input_total
    if figures.output is not None:
        found["completion_tokens"] = figures.output
    if figures.cache_read is not None:
        found["cached_tokens"] = figures.cache_read
    if figures.cost is not None and figures.currency == "USD":
        found["cost_usd"] = float(figures.cost)
    extra = {"cache_write_tokens": figures.cache_write, "reasoning_tokens": figures.reasoning}
    if extra := {k: v for k, v in extra.items() if v is not None}:
        found["extra"] = extra
    return found


def _final(given: Given, number: int, own: Figures, count: int) -> dict[str, Any]:
    """Tokens of the session itself; the cost with that of the sub-agents, as the format says it; `extra.tree`: all of both."""
    tree = Figures.sum(f for n in given.tree(number) for f in [given.sessions[n].total()])
    found: dict[str, Any] = {"total_steps": count}
    if own.input_total is not None:
        found["total_prompt_tokens"] = own.input_total
    if own.output is not None:
        found["total_completion_tokens"] = own.output
    if own.cache_read is not None:
        found["total_cached_tokens"] = own.cache_read
    if tree.cost is not None and tree.currency == "USD":
        found["total_cost_usd"] = float(tree.cost)
    found["extra"] = {"dev.asrd.usage": totals(own), "dev.asrd.tree": totals(tree)}
    return found


def _notes(one: Exported) -> str | None:
    lost = [f"{r.id}: {type(r).__name__.lower()} ({r.reason})" for r in one.records if isinstance(r, Gap | Loss)]
    return f"What was not recorded: {'; '.join(lost)}." if lost else None


PLACED = {
    "session", "message", "inference", "tool_call", "tool_result", "file_change", "approval", "vcs", "compaction", "gap", "loss",
}  # fmt: skip


def _extra(given: Given, one: Exported) -> dict[str, Any]:
    left = Counter(TYPE_NAMES[type(r)] for r in one.records)
    header = one.header
    said: dict[str, Any] = {
        "dev.asrd.redaction": {"mode": given.redaction, "removed": given.removed},
        "dev.asrd.leftOut": {k: n for k, n in sorted(left.items()) if k not in PLACED},
        "dev.asrd.version": given.version,
        "dev.asrd.contentLevel": header.content_level if header else None,
    }
    if one.namespace:
        said["dev.asrd.namespace"] = one.namespace
    return {k: v for k, v in said.items() if v is not None}


FORMAT = Format(
    name="atif",
    title="ATIF v1.8",
    make=make,
    loses={
        "session": "kept: agent, version, ids; the rest under `extra`",
        "message": "text and thinking kept; images by digest or path; files and resources are left out",
        "inference": "kept; cost only in USD",
        "tool_call": "kept",
        "tool_result": "kept: status, exit code and times under `extra`; images are left out",
        "file_change": "kept under `extra` of the step",
        "approval": "kept under `extra` of the step",
        "vcs": "kept under `extra` of the step",
        "compaction": "kept as a step of the system",
        "gap": "in `notes`",
        "loss": "in `notes`",
        "link": "only spawns: as embedded trajectories",
        "*": "counted in `extra`",
    },
)
