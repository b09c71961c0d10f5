"""Takes secrets out of whole records, wherever words stand in them; what names and links records stays.

The rules are those of `asrd.redact`. Ids, digests, times and numbers of the format's own fields are not words; the fields of
free objects (a tool's input, vendor data, a harness's own record) all are, their names too.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from asrd.records import SPAN, AnyRecord
from asrd.redact import Redactor

KEPT = frozenset(
    "type seq id at atSource turnId nativeId parent supersedes callId callIdSource inferenceId idSource messageId sha256 "
    "sessionId namespace formatVersion fingerprint head commit role author origin audience phase trigger status linkage kind "
    "change evidence applied action relation decision by scope method authority profiles contentLevel mediaType state profile "
    "facet startedAt resetsAt".split()
)
"""Fields of the format itself that hold no words."""
FREE = frozenset(("input", "data", "_meta"))
"""Fields that hold an object of someone else's making: every word in it is looked at."""


def clean(record: AnyRecord, redactor: Redactor) -> AnyRecord:
    """The record without its secrets: a new one, or itself where nothing is redacted."""
    if redactor.mode == "off":
        return record
    fields = msgspec.to_builtins(record)
    return msgspec.convert(_record(fields, redactor), AnyRecord)


def _record(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for name, one in cast("dict[str, Any]", value).items():
            if name == "parent" and isinstance(one, dict):
                found[name] = _record(one, redactor)
            elif name in KEPT:
                found[name] = one
            elif name in FREE:
                found[name] = _free(one, redactor)
            else:
                found[name] = _record(one, redactor)
        return found
    if isinstance(value, list):
        return [_record(v, redactor) for v in cast("list[Any]", value)]
    return redactor(value) if isinstance(value, str) else value


def _free(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor(value)
    if isinstance(value, list):
        return [_free(v, redactor) for v in cast("list[Any]", value)]
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return {redactor(str(k)): v if k == SPAN else _assigned(str(k), v, redactor) for k, v in given.items()}
    return value


def _assigned(name: str, value: Any, redactor: Redactor) -> Any:
    """A value of a free object: `{"password": "…"}` is an assignment too, which the text alone does not show."""
    if not isinstance(value, str):
        return _free(value, redactor)
    found = redactor(value)
    if found != value or len(name) > 100:
        return found
    beside = redactor(f'{name}="{value}"')
    begin, end = f'{name}="', '"'
    if beside.startswith(begin) and beside.endswith(end) and '"' not in value and "\n" not in value:
        return beside[len(begin) : -len(end)]
    return found
