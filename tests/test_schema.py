"""The JSON Schema: its file is current, it takes what the format takes, and it agrees with validation."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from asrd import schema
from asrd.records import RECORD_TYPES
from asrd.validate import check
from tests.test_records import examples
from tests.test_validate import BROKEN, CALL, HEADER, KEPT, LOSS, PROMPT, RESPONSE, RESULT, stream

FILE = Path(__file__).parents[1] / "docs" / "schema" / "asr-0.1.schema.json"
VALIDATOR = Draft202012Validator(schema.schema())

FIELD_RULES = {"field-missing", "field-type"}


def valid(line: bytes) -> bool:
    return cast("bool", VALIDATOR.is_valid(json.loads(line)))  # type: ignore[reportUnknownMemberType]


def sound(line: bytes) -> bool:
    """Whether validation finds the fields of a line as they should be."""
    return not any(f.rule in FIELD_RULES and f.line == 2 for f in check([*stream(), line]))


def test_the_file_in_docs_is_current() -> None:
    assert FILE.read_text("utf-8") == schema.text(), "python -m tests.samples"


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema.schema())


def test_every_record_type_has_its_part() -> None:
    made = schema.schema()

    types = [one["if"]["properties"]["type"]["const"] for one in made["allOf"]]

    assert types == [t.__struct_config__.tag for t in RECORD_TYPES]
    assert all(made["$defs"][t.__name__]["description"] for t in RECORD_TYPES)


@pytest.mark.parametrize("example", examples())
def test_the_public_examples_are_valid(example: bytes) -> None:
    assert valid(example)


def test_an_enum_shows_its_words_and_takes_any() -> None:
    made = schema.schema()

    role = made["$defs"]["Message"]["properties"]["role"]

    assert role == {"anyOf": [{"enum": ["user", "assistant", "system", "developer"]}, {"type": "string"}]}
    assert valid(stream(PROMPT | {"role": "com.example.parrot"})[1])
    assert not valid(stream(PROMPT | {"role": 3})[1])


def test_what_is_unknown_is_valid_and_null_is_not() -> None:
    assert valid(stream({"type": "com.example.mood", "mood": None})[1])
    assert valid(stream(PROMPT | {"content": [{"type": "hologram", "depth": None}], "mood": 1})[1])
    assert valid(stream({"type": "native", "nativeType": "x", "data": None})[1])
    assert not valid(stream(PROMPT | {"at": None})[1])


LINES = [
    line
    for _, lines in [*BROKEN, *KEPT]
    for line in lines[1:]
    if line.startswith(b"{") and line.endswith(b"}\n") and b"\xff" not in line
]


@pytest.mark.parametrize("line", LINES)
def test_schema_and_validation_agree(line: bytes) -> None:
    assert valid(line) == sound(line)


RECORDS: list[dict[str, Any]] = [HEADER, PROMPT, CALL, RESULT, RESPONSE, LOSS]
values = st.none() | st.booleans() | st.integers(0) | st.text(max_size=3) | st.just(1.5)
values |= st.lists(values, max_size=2) | st.dictionaries(st.sampled_from(["type", "path", "id"]), values, max_size=2)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(RECORDS), st.data())
def test_schema_and_validation_agree_on_changed_records(record: dict[str, Any], data: st.DataObject) -> None:
    kind = next(t for t in RECORD_TYPES if t.__struct_config__.tag == record["type"])
    keys = cast("list[str]", list(schema.schema()["$defs"][kind.__name__]["properties"]))
    key = data.draw(st.sampled_from([k for k in keys if k != "type"]))
    changed = {"seq": 1, "id": "r1"} | record | {key: data.draw(values)}
    if data.draw(st.booleans()):
        del changed[key]
    line = json.dumps(changed).encode() + b"\n"

    assert valid(line) == sound(line)
