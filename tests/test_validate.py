"""Validation: each rule bites on the stream that breaks it, and on no other."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrd import validate
from asrd.records import MAX_LINE
from asrd.validate import RULES, Finding, bounded, check, failed, report

HEADER: dict[str, Any] = {
    "type": "session",
    "seq": 0,
    "id": "h",
    "formatVersion": "0.1",
    "agent": {"name": "claude-code"},
    "sessionId": "s",
    "producer": {"name": "asrd", "version": "1", "method": "converter"},
    "lineage": {"root": True},
    "scope": "primary",
    "profiles": ["core", "coding", "usage"],
    "contentLevel": "full",
    "sources": [{"id": "s1", "kind": "file", "name": "a.jsonl"}],
}
PROMPT: dict[str, Any] = {"type": "message", "role": "user", "content": [{"type": "text", "text": "hi"}]}
CALL: dict[str, Any] = {"type": "tool_call", "callId": "c1", "name": "Bash", "input": {"command": "ls"}}
RESULT: dict[str, Any] = {"type": "tool_result", "callId": "c1", "linkage": "exact", "status": "completed"}
RESPONSE: dict[str, Any] = {"type": "inference", "inferenceId": "i1", "usage": {"input": 3, "output": 4}}
END: dict[str, Any] = {"type": "end", "status": "completed"}
GAP: dict[str, Any] = {"type": "gap", "reason": "truncated"}
LOSS: dict[str, Any] = {"type": "loss", "reason": "malformed", "span": {"source": "s1", "start": 0, "end": 9}}


def stream(*records: dict[str, Any], header: dict[str, Any] | None = None) -> list[bytes]:
    """Lines of a stream: the header, then the records with their `seq` and `id` where they give none.

    A field of the header that is None is left out.
    """
    lines = [{k: v for k, v in (HEADER | (header or {})).items() if v is not None}]
    for seq, record in enumerate(records, 1):
        lines.append({"type": record["type"], "seq": seq, "id": f"r{seq}"} | record)
    return [json.dumps(line).encode() + b"\n" for line in lines]


def rules(lines: list[bytes]) -> list[str]:
    return [f.rule for f in check(lines)]


def span(source: str = "s1", start: int = 0, end: int = 9) -> dict[str, Any]:
    return {"_meta": {"dev.asrd.span": {"source": source, "start": start, "end": end}}}


def test_a_clean_stream_has_no_findings() -> None:
    lines = stream(
        {"type": "turn", "turnId": "t1", "phase": "start", "trigger": "prompt", "at": "2026-10-26T14:02:11.204Z"},
        PROMPT | span(),
        RESPONSE,
        RESPONSE | {"supersedes": "r3", "usage": {"input": 3, "output": 9}},
        CALL | {"inferenceId": "i1", "parent": "r2"},
        {"type": "file_change", "path": {"path": "a"}, "change": "modify", "applied": "unknown", "callId": "c1"},
        RESULT,
        {"type": "tool_result", "callId": "elsewhere", "linkage": "none", "status": "unknown"},
        {"type": "config", "_meta": {"dev.asrd.source": {"id": "s2", "kind": "file", "name": "b"}}},
        LOSS | span("s2"),
        {"type": "native", "nativeType": "mood", "data": None},
        END,
    )

    findings = list(check(lines))

    assert findings == []


Change = Callable[[list[bytes]], list[bytes]]

BROKEN: list[tuple[str, list[bytes]]] = [
    ("header-first", stream(PROMPT | {"seq": 0, "id": "h"})[1:]),
    ("header-first", []),
    ("header-again", stream(HEADER | {"seq": 1, "id": "r1"})),
    ("format-version", stream(header={"formatVersion": "0.9"})),
    ("torn-line", [*stream(PROMPT), b'{"type":"mess']),
    ("torn-line", [stream()[0].rstrip()]),
    ("blank-line", [*stream(), b"\n"]),
    ("not-utf-8", [*stream(), b'{"type":"native","seq":1,"id":"r1","nativeType":"\xff","data":1}\n']),
    ("byte-order-mark", [b"\xef\xbb\xbf" + stream()[0]]),
    ("carriage-return", [stream()[0].replace(b"\n", b"\r\n")]),
    ("not-json", [*stream(), b'{"type":\n']),
    ("not-json", [*stream(), b'{"a":' + b"[" * 200_000 + b"\n"]),
    ("not-an-object", [*stream(), b"[1]\n"]),
    ("unportable", [*stream(), b'{"type":"native","seq":1,"id":"r1","nativeType":"x","data":"\\ud800"}\n']),
    ("unportable", [*stream(), b'{"type":"native","seq":1,"id":"r1","nativeType":"x","data":1e999}\n']),
    ("seq-gap", stream(PROMPT | {"seq": 2, "id": "r2"})),
    ("id-repeated", stream(PROMPT, PROMPT | {"id": "r1"})),
    ("id-form", stream(PROMPT | {"id": "first"})),
    ("field-missing", stream({"type": "message", "role": "user"})),
    ("field-missing", stream(header={"agent": {}})),
    ("field-missing", [*stream(), b'{"seq":1,"id":"r1"}\n']),
    ("field-type", stream(PROMPT | {"role": 3})),
    ("field-type", stream(PROMPT | {"at": None})),
    ("field-type", stream(PROMPT | {"content": "hi"})),
    ("field-type", stream(PROMPT | {"content": [{"type": "text", "text": 1}]})),
    ("field-type", stream(PROMPT | {"content": [{"text": "x"}]})),
    ("field-type", stream(RESPONSE | {"usage": {"input": 3.5}})),
    ("field-type", stream(RESPONSE | {"usage": {"input": True}})),
    ("field-type", stream(RESPONSE | {"durationMs": "3"})),
    ("field-type", stream(CALL | {"input": "ls"}, RESULT)),
    ("field-type", stream({"type": "file_change", "path": {"path": "a"}, "change": "modify", "applied": 1})),
    ("field-type", stream(PROMPT | {"_meta": []})),
    ("field-type", stream({"type": ["x"]})),
    ("time-form", stream(PROMPT | {"at": "yesterday"})),
    ("time-form", stream(PROMPT | {"at": "2026-10-26T14:02:11+02:00"})),
    ("preview-long", stream(LOSS | {"preview": "x" * 201})),
    ("unknown-type", stream({"type": "mood"})),
    ("unknown-field", stream(PROMPT | {"mood": 1})),
    ("unknown-field", stream(PROMPT | {"content": [{"type": "text", "text": "x", "mood": 1}]})),
    ("unknown-word", stream(PROMPT | {"origin": "parrot"})),
    ("unknown-word", stream(header={"profiles": ["core", "dancing"]})),
    ("unknown-word", stream({"type": "file_change", "path": {"path": "a"}, "change": "modify", "applied": "so-so"})),
    ("unknown-block", stream(PROMPT | {"content": [{"type": "hologram"}]})),
    ("meta-key", stream(PROMPT | {"_meta": {"mood": 1}})),
    ("span-form", stream(PROMPT | span(start=9, end=3))),
    ("span-form", stream(PROMPT | {"_meta": {"dev.asrd.span": 3}})),
    ("span-source", stream(PROMPT | span("s2"))),
    ("span-source", stream(GAP | {"span": {"source": "s9", "start": 0, "end": 1}})),
    ("parent-unknown", stream(PROMPT | {"parent": "r2"}, PROMPT)),
    ("supersedes-unknown", stream(PROMPT | {"supersedes": "r1"})),
    ("call-unknown", stream(RESULT, CALL | {"callId": "c2"})),
    ("call-unknown", stream(RESULT, CALL)),
    ("call-unseen", stream({"type": "approval", "phase": "requested", "callId": "c9"})),
    ("call-unseen", stream({"type": "link", "relation": "spawned", "callId": "c9",
                            "target": {"agent": "a", "sessionId": "b"}, "evidence": {"kind": "native-field"}})),
    ("call-repeated", stream(CALL, RESULT, CALL, RESULT)),
    ("call-unmatched", stream(CALL, END)),
    ("call-unmatched", stream(GAP, CALL, END)),
    ("call-unmatched", stream(CALL, RESULT | {"linkage": "none"}, END)),
    ("inference-unknown", stream(PROMPT | {"inferenceId": "i1"})),
    ("inference-unknown", stream(CALL | {"inferenceId": "i1"}, RESULT)),
    ("inference-repeated", stream(RESPONSE, RESPONSE)),
    ("inference-repeated", stream(RESPONSE, RESPONSE | {"supersedes": "r1"}, RESPONSE | {"supersedes": "r1"})),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "lines"), BROKEN)
def test_a_stream_that_breaks_one_rule_has_that_finding_alone(rule: str, lines: list[bytes]) -> None:
    findings = list(check(lines))

    assert [f.rule for f in findings] == [rule]
    assert findings[0].severity == RULES[rule][0]
    assert findings[0].message
    assert failed(findings) == (RULES[rule][0] == "error")


def test_every_rule_is_shown_to_bite() -> None:
    shown = {rule for rule, _ in BROKEN} | {"too-long"}

    assert shown == set(RULES)


KEPT: list[tuple[str, list[bytes]]] = [
    ("a vendor's record type", stream({"type": "com.example.mood", "mood": 1})),
    ("a vendor's word", stream(PROMPT | {"origin": "com.example.parrot"})),
    ("a vendor's block", stream(PROMPT | {"content": [{"type": "com.example.hologram", "x": 1}]})),
    ("an approval before its call", stream({"type": "approval", "phase": "requested", "callId": "c1"}, CALL, RESULT)),
    ("a call without a result in a stream that goes on", stream(CALL)),
    ("a call without a result before a gap", stream(CALL, GAP, END)),
    ("a call without a result before a loss", stream(CALL, LOSS, END)),
    ("a call after the end", stream(END, CALL)),
    ("a call without a result where coding is not claimed", stream(CALL, END, header={"profiles": ["core"]})),
    (
        "a call without a result where results are not recorded",
        stream({"type": "capture", "profile": "coding", "facet": "tool_result", "state": "off"}, CALL, END),
    ),
    ("an inference that is not recorded", stream(PROMPT | {"inferenceId": "i"}, header={"profiles": ["core"]})),
    ("a copy of an inference", stream(RESPONSE | {"copyOf": {"sessionId": "a"}}, RESPONSE)),
    ("a copy of a call", stream(CALL | {"copyOf": {"sessionId": "a"}}, END)),
    ("a call said better", stream(CALL, CALL | {"supersedes": "r1"}, RESULT, CALL | {"supersedes": "r2"}, END)),
    ("spans where no sources are named", stream(PROMPT | span("s9"), header={"sources": None})),
    (
        "a call of another session",
        stream(
            {
                "type": "link",
                "relation": "spawned_by",
                "callId": "theirs",
                "target": {"agent": "a", "sessionId": "b"},
                "evidence": {"kind": "native-field", "field": "parent"},
            }
        ),
    ),
    ("integers beyond 64 bits", stream({"type": "native", "nativeType": "x", "data": 10**30})),
]


@pytest.mark.parametrize(("what", "lines"), KEPT)
def test_what_the_format_allows_has_no_finding(what: str, lines: list[bytes]) -> None:
    findings = list(check(lines))

    assert findings == [], what


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.parametrize("whole", [True, False])
def test_a_line_over_the_limit_is_too_long_and_the_rest_is_checked(
    monkeypatch: pytest.MonkeyPatch, over: int, whole: bool
) -> None:
    assert MAX_LINE == 64 * 1024 * 1024
    monkeypatch.setattr(validate, "MAX_LINE", 1000)
    head, tail = b'{"type":"native","seq":1,"id":"r1","nativeType":"x","data":"', b'"}\n'
    long = head + b"x" * (1001 + over - len(head) - len(tail)) + tail
    lines = [*stream(), long, *stream(PROMPT, PROMPT | {"role": 3})[2:]]

    findings = list(check(lines if whole else bounded(io.BytesIO(b"".join(lines)))))

    assert [(f.line, f.rule) for f in findings] == [(2, "too-long")] * over + [(3, "field-type")]


def test_a_file_gives_the_lines_it_has() -> None:
    data = b"".join(stream(PROMPT, PROMPT)) + b"torn"

    lines = list(bounded(io.BytesIO(data)))

    assert b"".join(lines) == data
    assert len(lines) == 4


def test_lines_without_newlines_are_not_torn() -> None:
    lines = [line.rstrip() for line in stream(PROMPT, PROMPT | {"role": 3})]

    findings = list(check(lines))

    assert [(f.line, f.rule) for f in findings] == [(3, "field-type")]


def test_a_finding_names_line_record_field_and_rule() -> None:
    lines = stream(PROMPT, PROMPT | {"content": [{"type": "text"}]})

    findings = list(check(lines))

    assert findings == [Finding(3, "r2", "field-missing", "`content[0].text` is missing", "error")]


def test_all_that_is_wrong_with_a_line_is_said() -> None:
    lines = stream(PROMPT | {"role": 3, "origin": "parrot", "at": "now", "mood": 1, "parent": "r9"})

    found = rules(lines)

    assert sorted(found) == ["field-type", "parent-unknown", "time-form", "unknown-field", "unknown-word"]


def test_a_broken_call_still_has_its_result() -> None:
    lines = stream(CALL | {"name": 3}, RESULT, END)

    assert rules(lines) == ["field-type"]


def test_a_missing_line_is_said_once() -> None:
    lines = stream(PROMPT, PROMPT, PROMPT, PROMPT)

    findings = list(check(lines[:2] + lines[3:]))

    assert [(f.line, f.rule) for f in findings] == [(3, "seq-gap")]


def test_findings_come_as_the_lines_are_read() -> None:
    taken = 0

    def lines() -> Any:
        nonlocal taken
        for line in stream({"type": "mood"}, PROMPT, PROMPT):
            taken += 1
            yield line

    first = next(check(lines()))

    assert first.rule == "unknown-type"
    assert taken == 2


def test_a_report_is_text_or_json() -> None:
    findings = [Finding(3, "r2", "seq-gap", "seq is 2", "error"), Finding(1, None, "torn-line", "9 bytes", "warning")]

    text = list(report(findings, "a.asr.jsonl"))
    lines = [json.loads(line) for line in report(findings, "a.asr.jsonl", as_json=True)]

    assert text == [
        "a.asr.jsonl:3: r2 error seq-gap: seq is 2",
        "a.asr.jsonl:1: warning torn-line: 9 bytes",
    ]
    assert lines[0] == {
        "file": "a.asr.jsonl",
        "line": 3,
        "record": "r2",
        "rule": "seq-gap",
        "message": "seq is 2",
        "severity": "error",
    }


def test_warnings_leave_a_stream_valid() -> None:
    findings = list(check(stream({"type": "mood"})))

    assert [f.severity for f in findings] == ["warning"]
    assert not failed(findings)


@given(st.lists(st.binary(max_size=60)))
def test_any_bytes_give_findings_and_no_exception(pieces: list[bytes]) -> None:
    lines = [*stream(), *(p + b"\n" for p in pieces)]

    findings = list(check(lines))

    assert all(f.rule in RULES for f in findings)
    assert len(findings) >= len(pieces)


@given(st.data())
def test_a_record_cut_or_changed_anywhere_gives_findings_and_no_exception(data: st.DataObject) -> None:
    whole = b"".join(stream(PROMPT | span(), RESPONSE, CALL, RESULT, LOSS, END))
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.integers(0, 255))
    changed = whole[:at] + bytes([byte]) + whole[at + 1 :]

    findings = list(check(changed.splitlines(keepends=True)))

    assert all(isinstance(f.message, str) and f.rule in RULES for f in findings)


def test_what_the_fast_way_admits_the_slow_way_has_nothing_against(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: bytes) -> Any:
        raise validate.msgspec.ValidationError

    class Refusing:
        decode = staticmethod(refuse)

    lines = [line for _, kept in KEPT for line in kept]
    fast = rules(lines)

    monkeypatch.setattr(validate, "_strict", Refusing())
    slow = rules(lines)

    assert slow == fast
