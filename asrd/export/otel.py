"""OpenTelemetry GenAI spans as OTLP/JSON: a line of `TracesData` for each session that none of the others started.

    invoke_agent   a session; one that another started stands below the call that did it, in the same trace
    chat           a response that counts, with its tokens; input includes what came from and went to a cache
    execute_tool   a tool call

    - Ids are digests of the session's and the record's ids: sent twice, they are the same spans.
    - Copies are left out, but for a response that counts where it is copied: the session it was made in is not recorded.
    - Tokens stand on `chat` only, so that a sum over spans counts each response once.
    - A time that is not recorded is that of the session's last record before it, and `dev.asrd.time` says `unknown`.
    - Words (`gen_ai.output.messages`, arguments, results, prompts) only where they are asked for.

Names are those of open-telemetry/semantic-conventions-genai (development, after v0.1.0). `gen_ai.provider.name` is required
there; where no record names a provider it is left out: none is guessed.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from asrd.export import Exported, File, Format, Given
from asrd.export.view import (
    Figures,
    Step,
    file_stem,
    models,
    nanoseconds,
    result_text,
    steps,
    text_of,
    thinking_of,
    totals,
)
from asrd.records import Gap, Loss, Message, ToolCall, ToolResult

SCOPE = "dev.asrd"
INTERNAL, CLIENT = 1, 3
ERROR = 2
FINISH = {
    "end_turn": "stop",
    "stop": "stop",
    "max_tokens": "length",
    "tool_use": "tool_call",
    "tool_calls": "tool_call",
}
"""Words of providers and what the conventions call them; others are passed on as they are."""


def make(given: Given) -> list[File]:
    """One file a trace."""
    found: list[File] = []
    for number in given.roots():
        one = given.sessions[number]
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in traces(given, number))
        found.append(File(f"{file_stem(one.agent, one.session_id, one.namespace)}.otlp.jsonl", data))
    return found


MOST = 500
"""Spans on a line, so that no request to a collector grows without bound."""


def traces(given: Given, root: int) -> list[dict[str, Any]]:
    """The trace of one session and all that it started."""
    trace = digest(ident(given.sessions[root]), 32)
    found: list[dict[str, Any]] = []
    for number in given.tree(root):
        one = given.sessions[number]
        above = None
        if one.parent is not None:
            parent = given.sessions[one.parent]
            call = next(
                (
                    r
                    for r in parent.records
                    if isinstance(r, ToolCall) and r.call_id == one.parent_call and not r.copy_of
                ),
                None,
            )
            above = span_id(parent, call.id if call is not None else "h")
        spans = _spans(given, one, trace, above)
        found += [_data(given, one, spans[at : at + MOST]) for at in range(0, len(spans), MOST)]
    return found


def ident(one: Exported) -> str:
    """What names a session, for digests."""
    return "\x1f".join((one.agent, one.namespace, one.session_id))


def digest(text: str, length: int) -> str:
    """So many hex digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:length]


def span_id(one: Exported, record: str) -> str:
    """The id of the span of a record."""
    return digest(f"{ident(one)}\x1f{record}", 16)


def _data(given: Given, one: Exported, spans: list[dict[str, Any]]) -> dict[str, Any]:
    header = one.header
    resource = {
        "service.name": one.agent,
        "service.version": header.agent.version if header else None,
        "telemetry.sdk.name": "asrd",
        "telemetry.sdk.version": given.version,
        "telemetry.sdk.language": "python",
        "dev.asrd.redaction": given.redaction,
    }
    scope = {"name": SCOPE, "version": given.version}
    return {
        "resourceSpans": [
            {"resource": {"attributes": attributes(resource)}, "scopeSpans": [{"scope": scope, "spans": spans}]}
        ]
    }


def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP/JSON has them; unknown ones (None) are left out."""
    return [{"key": k, "value": _value(v)} for k, v in given.items() if v is not None]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, tuple):
        return {"arrayValue": {"values": [_value(v) for v in value]}}  # pyright: ignore[reportUnknownVariableType]
    return {"stringValue": str(value)}


class _Clock:
    """Times of a session: a time that is not recorded is the last one before it."""

    def __init__(self, one: Exported) -> None:
        own = [r for r in one.records if not r.copy_of or r.seq in one.counted]
        known = [t for r in own if (t := nanoseconds(r.at)) is not None]
        self.first, self.last = (min(known), max(known)) if known else (0, 0)
        self.now = self.first
        self.known = bool(known)

    def __call__(self, at: str | None) -> tuple[int, bool]:
        moment = nanoseconds(at)
        if moment is None:
            return self.now, False
        self.now = moment
        return moment, True


def _spans(given: Given, one: Exported, trace: str, above: str | None) -> list[dict[str, Any]]:
    clock = _Clock(one)
    top = span_id(one, "h")
    header = one.header
    named = models(one.records)
    root: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": one.agent,
        "gen_ai.agent.version": header.agent.version if header else None,
        "gen_ai.conversation.id": one.session_id,
        "gen_ai.request.model": named[0] if named else None,
        "dev.asrd.record.id": "h",
        "dev.asrd.session.namespace": one.namespace or None,
        "dev.asrd.time": None if clock.known else "unknown",
    }
    lost = sum(isinstance(r, Gap | Loss) for r in one.records)
    root["dev.asrd.losses"] = lost or None
    for name, number in totals(one.total()).items():
        root[f"dev.asrd.usage.{name}"] = number
    found = [_span(trace, top, above, f"invoke_agent {one.agent}", INTERNAL, clock.first, clock.last, root)]
    events: list[dict[str, Any]] = []
    found[0]["events"] = events
    for step in steps(one.records):
        counts = step.inference is not None and step.inference.seq in one.counted
        if step.copied and not counts:
            continue
        if step.source == "agent":
            if counts:
                found.append(_chat(given, one, step, trace, top, clock))
            elif given.content:
                events += [_said(m, clock) for m in step.messages if not m.copy_of]
            found += [
                _tool(given, one, call, step.results, trace, top, clock) for call in step.calls if not call.copy_of
            ]
        elif given.content and step.messages:
            events.append(_said(step.messages[0], clock))
    for number, figures in enumerate(one.elsewhere):
        said = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": one.session_id, "dev.asrd.time": "unknown"}
        span = span_id(one, f"elsewhere{number}")
        found.append(_span(trace, span, top, "chat", CLIENT, clock.last, clock.last, {**said, **_usage(figures)}))
    return found


def _said(message: Message, clock: _Clock) -> dict[str, Any]:
    """What was said outside of a response that counts, as an event: by others, or where the harness tells of no response."""
    moment, _ = clock(message.at)
    said = {
        "role": message.role,
        "content": text_of(message.content),
        "reasoning": thinking_of(message.content) or None,
    }
    return {"timeUnixNano": str(moment), "name": "dev.asrd.message", "attributes": attributes(said)}


def _span(
    trace: str, ident: str, parent: str | None, name: str, kind: int, start: int, end: int, said: dict[str, Any]
) -> dict[str, Any]:
    found: dict[str, Any] = {"traceId": trace, "spanId": ident}
    if parent is not None:
        found["parentSpanId"] = parent
    found.update(
        name=name,
        kind=kind,
        startTimeUnixNano=str(min(start, end)),
        endTimeUnixNano=str(max(start, end)),
        attributes=attributes(said),
    )
    return found


def _usage(figures: Figures) -> dict[str, Any]:
    return {
        "gen_ai.usage.input_tokens": figures.input_total,
        "gen_ai.usage.output_tokens": figures.output,
        "gen_ai.usage.cache_read.input_tokens": figures.cache_read,
        "gen_ai.usage.cache_write.input_tokens": figures.cache_write,
        "gen_ai.usage.reasoning.output_tokens": figures.reasoning,
        "dev.asrd.unmeasured": True if figures.unmeasured else None,
        "dev.asrd.cost": figures.cost,
        "dev.asrd.cost.currency": figures.currency,
    }


def _chat(given: Given, one: Exported, step: Step, trace: str, top: str, clock: _Clock) -> dict[str, Any]:
    inference = step.inference
    assert inference is not None
    end, known = clock(inference.at)
    start = end - int((inference.duration_ms or 0) * 1_000_000)
    reason = inference.stop_reason
    said: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": inference.provider,
        "gen_ai.conversation.id": one.session_id,
        "gen_ai.request.model": inference.model,
        "gen_ai.request.reasoning.level": inference.effort,
        "gen_ai.response.id": inference.inference_id if inference.id_source != "derived" else None,
        "gen_ai.response.finish_reasons": (FINISH.get(reason, reason),) if reason else None,
        "dev.asrd.record.id": inference.id,
        "dev.asrd.turn.id": inference.turn_id,
        "dev.asrd.time": None if known else "unknown",
        "error.type": (inference.error.code or "_OTHER") if inference.error else None,
        **_usage(one.counted[inference.seq]),
    }
    if given.content:
        parts: list[dict[str, Any]] = []
        for message in step.messages:
            if thought := thinking_of(message.content):
                parts.append({"type": "reasoning", "content": thought})
            if words := text_of(message.content):
                parts.append({"type": "text", "content": words})
        parts += [{"type": "tool_call", "id": c.call_id, "name": c.name, "arguments": c.input} for c in step.calls]
        if parts:
            said["gen_ai.output.messages"] = msgspec.json.encode([{"role": "assistant", "parts": parts}]).decode()
    name = f"chat {inference.model}" if inference.model else "chat"
    span = _span(trace, span_id(one, inference.id), top, name, CLIENT, max(0, start), end, said)
    if inference.error is not None:
        span["status"] = {"code": ERROR}
        if given.content and inference.error.message:
            span["status"] = {"message": inference.error.message, "code": ERROR}
    return span


def _tool(
    given: Given, one: Exported, call: ToolCall, results: list[ToolResult], trace: str, top: str, clock: _Clock
) -> dict[str, Any]:
    start, known = clock(call.at)
    result = next((r for r in reversed(results) if r.call_id == call.call_id), None)
    end = nanoseconds(result.at) if result is not None else None
    ran = result.exec if result is not None else None
    status = result.status if result is not None else None
    failed = status in ("failed", "denied", "cancelled")
    said: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.call_id,
        "gen_ai.conversation.id": one.session_id,
        "dev.asrd.tool.kind": call.kind,
        "dev.asrd.record.id": call.id,
        "dev.asrd.turn.id": call.turn_id,
        "dev.asrd.result": status or "none recorded",
        "process.exit.code": ran.exit_code if ran else None,
        "error.type": status if failed else None,
        "dev.asrd.time": None if known else "unknown",
    }
    if given.content:
        said["gen_ai.tool.call.arguments"] = msgspec.json.encode(call.input).decode()
        if result is not None:
            said["gen_ai.tool.call.result"] = result_text(result)
    span = _span(
        trace,
        span_id(one, call.id),
        top,
        f"execute_tool {call.name}",
        INTERNAL,
        start,
        start if end is None else end,
        said,
    )
    if failed:
        span["status"] = {"code": ERROR}
    return span


FORMAT = Format(
    name="otel",
    title="OpenTelemetry GenAI (OTLP/JSON)",
    make=make,
    loses={
        "session": "agent, version and id kept",
        "message": "only with --content: text and thinking",
        "inference": "kept: tokens, model, times, stop reason; the provider only where a record names it",
        "tool_call": "kept; the input only with --content",
        "tool_result": "status, exit code and time kept; text only with --content",
        "link": "only spawns: as parent spans",
        "gap": "counted",
        "loss": "counted",
        "*": "left out",
    },
)
