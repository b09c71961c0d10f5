"""The JSON Schema (2020-12) of one line of a stream, made from the structs of `asrd.records`.

Invariants
    - Open enums stay open: the known words are shown, and any string is valid. So are unknown record types, content
      blocks and fields.
    - A field that is absent is unknown; null is not valid for it.
    - What it checks is one line. What holds between lines is checked by `asrd.validate`.
"""

from __future__ import annotations

import json
import types
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from asrd.records import FORMAT_VERSION, RECORD_TYPES, Record

_ALWAYS = {"seq", "id"}
"""Required in a stream, though a record is made before the stream gives them."""


def schema() -> dict[str, Any]:
    """The schema of one line, as JSON values. `$defs` has a part for each record type and each object in one."""
    parts: dict[str, Any] = {}
    common = _object(Record, parts)
    by_type: list[dict[str, Any]] = []
    for kind in RECORD_TYPES:
        tag = str(kind.__struct_config__.tag)
        by_type.append({"if": _tagged(tag), "then": _reference(kind, parts)})
    words = [str(kind.__struct_config__.tag) for kind in RECORD_TYPES]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"asr-{FORMAT_VERSION}.schema.json",
        "title": f"Agent Session Record {FORMAT_VERSION}: one line of a stream",
        "description": "Enums are open: known words are listed, any string is valid. Unknown types and fields are kept.",
        "type": "object",
        "required": ["type", "seq", "id"],
        "properties": common["properties"] | {"type": _open(words), "_meta": {"type": "object"}},
        "allOf": by_type,
        "$defs": dict(sorted(parts.items())),
    }


def text() -> str:
    """The schema as the text of its file, with a newline at the end."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _object(kind: type[Struct], parts: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    config = kind.__struct_config__
    properties: dict[str, Any] = {}
    required: list[str] = []
    if config.tag is not None:
        properties["type"] = {"const": config.tag}
        required.append("type")
    for f in msgspec.structs.fields(kind):
        properties[f.encode_name] = _value(hints[f.name], parts)
        if f.required or (issubclass(kind, Record) and f.name in _ALWAYS):
            required.append(f.encode_name)
    if issubclass(kind, Record):
        properties["seq"]["minimum"] = 0
    made: dict[str, Any] = {"description": " ".join((kind.__doc__ or "").split()), "type": "object"}
    if required:
        made["required"] = required
    return made | {"properties": properties}


def _value(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    origin = get_origin(kind)
    if kind is Any:
        return {}
    if origin is Annotated:
        meta: msgspec.Meta = kind.__metadata__[0]
        return _open(meta.examples) if meta.examples else {"type": "string"} | (meta.extra_json_schema or {})
    if origin in (Union, types.UnionType):
        return _choice([m for m in get_args(kind) if m is not types.NoneType], parts)
    if origin is list:
        return {"type": "array", "items": _value(get_args(kind)[0], parts)}
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _reference(kind, parts)
    plain = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object"}
    return {"type": plain[dict if origin is dict else kind]}


def _choice(members: list[Any], parts: dict[str, Any]) -> dict[str, Any]:
    if len(members) == 1:
        return _value(members[0], parts)
    if float in members:  # a number, whole or not
        return {"type": "number"}
    if all(isinstance(m, type) and issubclass(m, Struct) for m in members):
        return _blocks(members, parts)
    return {"anyOf": [_value(m, parts) for m in members]}


def _blocks(members: list[type[Struct]], parts: dict[str, Any]) -> dict[str, Any]:
    """Objects told apart by `type`, one of an unknown type being valid."""
    tags = [str(m.__struct_config__.tag) for m in members]
    parts["Block"] = {
        "description": "A part of a message or a result; a block of an unknown type is kept.",
        "type": "object",
        "required": ["type"],
        "properties": {"type": _open(tags)},
        "allOf": [
            {"if": _tagged(tag), "then": _reference(m, parts)} for tag, m in zip(tags, members, strict=True)
        ],
    }  # fmt: skip
    return {"$ref": "#/$defs/Block"}


def _reference(kind: type[Struct], parts: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in parts:
        parts[name] = {}
        parts[name] = _object(kind, parts)
    return {"$ref": f"#/$defs/{name}"}


def _tagged(tag: str) -> dict[str, Any]:
    return {"properties": {"type": {"const": tag}}, "required": ["type"]}


def _open(words: list[Any]) -> dict[str, Any]:
    return {"anyOf": [{"enum": cast("list[str]", words)}, {"type": "string"}]}
