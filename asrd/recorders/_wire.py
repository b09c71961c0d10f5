"""Reads the wire format of Protocol Buffers, for harnesses that publish no schema. No harness of its own.

A message is a run of fields, each a key (number << 3 | wire type) and a value: 0 a varint, 1 eight bytes, 2 a length and
that many bytes (text, bytes, or another message: the wire does not tell which), 5 four bytes. Source:
protobuf.dev/programming-guides/encoding. Groups (3, 4) are not read: no harness seen writes them.

Invariants
    - Any bytes give fields or NotAMessage, in time that grows with their number; nothing is guessed from content but in
      `plain`, whose words say so.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeAlias

Fields: TypeAlias = dict[int, list[int | bytes]]
"""The values of each field number, in the order they are written."""

DEEP = 12
"""Messages inside messages that `plain` looks into."""


class NotAMessage(ValueError):
    """These bytes are no protobuf message."""


def fields(data: bytes) -> Fields:
    """The fields of a message. Raises NotAMessage."""
    found: Fields = {}
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            value = data[at : at + size]
            at += size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value = data[at : at + size]
            at += size
        else:
            raise NotAMessage(f"wire type {wire}")
        if number == 0 or at > end:
            raise NotAMessage("a field that is cut, or has number 0")
        found.setdefault(number, []).append(value)
    return found


def every(data: bytes, *path: int) -> list[int | bytes]:
    """Every value at a path of field numbers, in order; what is no message on the way gives none."""
    values: list[int | bytes] = [data]
    for number in path:
        inner: list[int | bytes] = []
        for value in values:
            if isinstance(value, bytes):
                try:
                    inner += fields(value).get(number, [])
                except NotAMessage:
                    continue
        values = inner
    return values


def inside(data: bytes, *path: int) -> bytes | None:
    """The last value at a path that is bytes (the last one holds, as the wire format says), None when there is none."""
    found = [v for v in every(data, *path) if isinstance(v, bytes)]
    return found[-1] if found else None


def text(data: bytes, *path: int) -> str | None:
    """The text at a path; None when there is none, or its bytes are no UTF-8."""
    found = inside(data, *path)
    try:
        return None if found is None else found.decode()
    except UnicodeDecodeError:
        return None


def number(data: bytes, *path: int) -> int | None:
    """The integer at a path, as it is written (int32 and int64 that are negative come as 64 bits: see `signed`)."""
    found = [v for v in every(data, *path) if isinstance(v, int)]
    return found[-1] if found else None


def signed(value: int | None) -> int | None:
    """An int32 or int64 of the wire as the number that it is."""
    return value - (1 << 64) if value is not None and value >= 1 << 63 else value


def plain(data: bytes, deep: int = 0) -> Any:
    """A message as JSON can hold it, by field number: what reads as text is text, as a message is one; else its digest.

    A guess at which of the two a value is, made for a person to read: only for records that have no standard place.
    """
    try:
        told = fields(data)
    except NotAMessage:
        return _value(data, DEEP)
    return {str(n): [_value(v, deep + 1) for v in values] for n, values in sorted(told.items())}


def _value(value: int | bytes, deep: int) -> Any:
    if isinstance(value, int):
        return signed(value)
    try:
        words = value.decode()
    except UnicodeDecodeError:
        words = None
    if words is not None and (words.isprintable() or any(c in words for c in "\n\t") and _readable(words)):
        return words
    if value and deep < DEEP:
        try:
            fields(value)
        except NotAMessage:
            pass
        else:
            return plain(value, deep)
    return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}


def _readable(words: str) -> bool:
    return all(c.isprintable() or c in "\n\r\t" for c in words)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise NotAMessage("a varint that is cut, or too long")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), at
        shift += 7
