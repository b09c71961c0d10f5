"""Writes the wire format of Protocol Buffers, for constructed captures: fields in the order they are given."""

from __future__ import annotations

from typing import Any


def message(*fields: tuple[int, Any]) -> bytes:
    """A message of (number, value): an integer, text, bytes, or a list of such fields; None is left out, and so is 0."""
    out = bytearray()
    for number, value in fields:
        if value is None or value == 0:
            continue
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            body = message(*value) if isinstance(value, list) else value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(body)) + body
    return bytes(out)


def varint(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
