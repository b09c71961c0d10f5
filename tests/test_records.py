"""Records keep what was written: the public examples, and everything this version does not know."""

import json
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrd.records import (
    BLOCK,
    RECORD_TYPES,
    SPAN,
    Exec,
    FileChange,
    Message,
    Native,
    Other,
    Place,
    Session,
    Span,
    Text,
    ToolResult,
    Turn,
    decode,
    encode,
    encode_lines,
    read,
    span_of,
)

EXAMPLES = Path(__file__).parent / "examples" / "agent-session-record.txt"

COMMON = "type seq id at atSource turnId nativeId parent copyOf supersedes _meta"
FIELDS = {
    "session": "formatVersion agent namespace sessionId producer authority startedAt lineage scope workspace profiles "
    "contentLevel title sources",
    "turn": "phase trigger status error",
    "message": "messageId role author origin audience inferenceId content",
    "inference": "inferenceId idSource model provider effort stopReason usage cost durationMs error",
    "usage_total": "scope usage cumulative",
    "limit": "window usedPercent resetsAt",
    "tool_call": "callId callIdSource inferenceId name kind title input",
    "tool_result": "callId linkage status content exec truncated",
    "file_change": "callId path change before after diff applied evidence fromPath",
    "vcs": "action root commit branch evidence callId",
    "plan": "items callId",
    "approval": "callId phase decision by policy",
    "compaction": "trigger tokensBefore tokensAfter summary messageId keptFrom",
    "config": "model mode effort cwd tools version title",
    "link": "relation target callId evidence",
    "message_sent": "channel target content callId",
    "memory_write": "channel target content callId",
    "capture": "profile facet state reason",
    "gap": "reason span from to bytes",
    "loss": "reason span sha256 preview",
    "native": "nativeType data",
    "end": "status reason",
}
"""Every record type with its fields: section 4 of the format's text, and `fromPath`, `vcs.callId`, `plan.callId`."""


def examples() -> list[bytes]:
    """The five records of the format's public page, as they stand there."""
    return [part.encode() for part in EXAMPLES.read_text("utf-8").strip().split("\n\n")]


def ordered(data: bytes) -> Any:
    """JSON as nested pairs: equal only when fields, values and their order are."""
    return json.loads(data, object_pairs_hook=tuple)


@pytest.mark.parametrize("example", examples())
def test_a_public_example_survives_reading_and_writing(example: bytes) -> None:
    document = read(example)

    line = document.write()

    assert ordered(line) == ordered(example)


@pytest.mark.parametrize("example", examples())
def test_a_public_example_survives_as_a_struct(example: bytes) -> None:
    record = decode(example)

    line = encode(record)

    assert json.loads(line) == json.loads(example)


def test_the_public_examples_are_five_of_the_known_types() -> None:
    records = [decode(example) for example in examples()]

    types = [read(encode(r)).type for r in records]

    assert types == ["session", "message", "tool_call", "tool_result", "vcs"]


def test_every_record_type_has_its_fields() -> None:
    known = {
        str(t.__struct_config__.tag): {"type"} | {f.encode_name for f in msgspec.structs.fields(t)}
        for t in RECORD_TYPES
    }

    wanted = {name: set(COMMON.split()) | set(fields.split()) for name, fields in FIELDS.items()}

    assert known == wanted


def test_unknown_fields_survive_nested_and_in_order() -> None:
    line = b'{"z":1,"type":"message","seq":3,"a":{"y":[{"x":null}],"b":true},"role":"user","content":[{"q":1}]}'

    written = read(line).write()

    assert written == line


def test_an_unknown_record_type_survives_and_is_no_struct() -> None:
    line = b'{"type":"com.example.mood","seq":3,"id":"r3","mood":"calm"}'

    document = read(line)

    assert document.write() == line
    assert document.type == "com.example.mood"
    assert document.record() is None
    with pytest.raises(msgspec.ValidationError):
        decode(line)


def test_an_unknown_word_of_an_enum_is_kept() -> None:
    line = b'{"type":"turn","seq":1,"id":"r1","turnId":"t","phase":"start","trigger":"com.example.doorbell"}'

    record = decode(line)

    assert isinstance(record, Turn)
    assert record.trigger == "com.example.doorbell"
    assert json.loads(encode(record)) == json.loads(line)


def test_an_unknown_block_is_kept_beside_the_known_ones() -> None:
    block = {"type": "hologram", "depth": 3}
    content = [{"type": "text", "text": "hi"}, block, "bare", {"type": ["odd"]}]
    line = json.dumps({"type": "message", "seq": 1, "id": "r1", "role": "user", "content": content}).encode()

    record = decode(line)

    assert isinstance(record, Message)
    assert record.content == [
        Text(text="hi"),
        Other(meta={BLOCK: block}),
        Other(meta={BLOCK: "bare"}),
        Other(meta={BLOCK: {"type": ["odd"]}}),
    ]
    assert ordered(read(line).write()) == ordered(line)


@pytest.mark.parametrize(
    "number",
    [b"123456789012345678901234567890", b"-99999999999999999999", b"18446744073709551616", b"9" * 5000],
)
def test_integers_of_any_size_keep_their_digits(number: bytes) -> None:
    line = b'{"type":"native","nativeType":"x","data":{"n":' + number + b"}}"

    written = read(line).write()

    assert written == line


@pytest.mark.parametrize(("number", "written"), [(b"1e400", b"1E+400"), (b"0.1234567890123456789012", None)])
def test_floats_that_no_double_holds_keep_their_value(number: bytes, written: bytes | None) -> None:
    line = b'{"n":' + number + b"}"

    again = read(line).write()

    assert again == b'{"n":' + (written or number) + b"}"


def test_lone_surrogates_survive_reading_and_writing() -> None:
    line = b'{"type":"com.example.x","text":"a\\ud800b","\\udc00":["\\ud83d\\ude00",1.5,null,true]}'

    written = read(line).write()

    assert json.loads(written) == json.loads(line)
    assert read(written).fields == read(line).fields


def test_a_struct_is_had_from_a_line_with_a_lone_surrogate() -> None:
    line = b'{"type":"message","seq":1,"id":"r1","role":"user","content":[{"type":"text","text":"\\ud800"}]}'

    record = decode(line)

    assert isinstance(record, Message)
    assert record.content == [Text(text="\ud800")]


def test_a_written_record_has_no_lone_surrogates() -> None:
    record = Native(
        native_type="a\ud800", data=msgspec.Raw(b'{"n":1.50}'), meta={SPAN: Span(source="s", start=0, end=1)}
    )

    lines = encode_lines([record, Message(role="user", content=[Text(text="\udfff\U0001f600")])])

    first, second = lines.splitlines()
    assert b'"nativeType":"a\xef\xbf\xbd","data":{"n":1.50}' in first
    assert json.loads(second)["content"][0]["text"] == "\ufffd\U0001f600"


@pytest.mark.parametrize(
    "line",
    [b"", b"[1]", b'"x"', b"{", b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}', b'{"a":' + b"[" * 200_000],
)
def test_what_is_no_json_object_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        read(line)
    with pytest.raises(msgspec.MsgspecError):
        decode(line)


def test_what_is_unknown_is_absent() -> None:
    result = ToolResult(call_id="c", linkage="exact", status="unknown", exec=Exec(exit_code=0))
    change = FileChange(path=Place(path="a"), change="modify", applied=False)

    lines = encode_lines([result, change])

    first, second = map(json.loads, lines.splitlines())
    assert first["exec"] == {"exitCode": 0}
    assert second == {"type": "file_change", "path": {"path": "a"}, "change": "modify", "applied": False}


def test_an_empty_lineage_is_written_as_unknown() -> None:
    header = decode(examples()[0])
    assert isinstance(header, Session)
    header.lineage.root = None

    fields = json.loads(encode(header))

    assert fields["lineage"] == {}


@pytest.mark.parametrize("meta", [None, {"dev.asrd.note": 1}])
def test_a_record_without_a_span_has_none(meta: dict[str, Any] | None) -> None:
    record = Native(native_type="x", data=1, meta=meta)

    assert span_of(record) is None


def test_a_span_is_found_before_and_after_writing() -> None:
    span = Span(source="s1", start=3, end=9, key="row", rev="abc")
    record = Native(native_type="x", data=1, meta={SPAN: span})

    again = decode(encode(record))

    assert span_of(record) == span
    assert span_of(again) == span


def test_a_value_that_is_not_finite_is_no_json() -> None:
    with pytest.raises(msgspec.DecodeError):
        read(b'{"type":"native","data":-Infinity}')


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=6))
def test_any_object_survives_reading_and_writing(fields: dict[str, Any]) -> None:
    line = json.dumps(fields).encode()

    written = read(line).write()

    assert json.loads(written) == fields
    assert list(json.loads(written)) == list(cast("dict[str, Any]", json.loads(line)))
