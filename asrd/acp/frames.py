"""Takes secrets out of a message before it is kept. Pure.

Invariants
    - A message without a secret is kept verbatim, byte for byte.
    - What stands under `env` or `headers`, what `authenticate` is given, the answers of a form and values whose name says
      that they are secret are replaced by a mark, wherever they stand; names stay.
    - A message that is no JSON cannot be looked into: nothing of it is kept but its size and digest.
"""

from __future__ import annotations

from typing import Any, TypeGuard
from urllib.parse import urlsplit, urlunsplit

import msgspec

from asrd.redact import holds_secret, mark

HIDING = {"env", "environment", "envvars", "headers", "httpheaders", "cookies"}
"""Names whose values are hidden one by one (lower case, without `_` and `-`)."""

SECRET = {
    "apikey", "token", "accesstoken", "refreshtoken", "authtoken", "idtoken", "bearertoken", "secret", "clientsecret",
    "password", "passwd", "passphrase", "authorization", "cookie", "credential", "credentials", "privatekey",
}  # fmt: skip
"""Names whose value, when it is text, is hidden whole."""

AUTHENTICATING = {"authenticate", "auth/login", "auth/set", "providers/set"}
"""Requests whose parameters are hidden but for the names of methods and providers."""

_TELLING = (
    b"env", b"Env", b"ENV", b"eaders", b"EADERS", b"ookie", b"oken", b"ecret", b"assw", b"assph", b"ey\"", b"uthorization",
    b"redential", b"authenticate", b"auth/", b"providers/", b"\"accept\"", b"mcpServers", b"\\u00",
)  # fmt: skip
"""One of them is in every message that can hold a secret. `\\u00`: a name may be written in escapes."""

_SLICE = 256 * 1024
_LONGEST = max(len(word) for word in _TELLING)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_skim = msgspec.json.Decoder(msgspec.Raw).decode


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a decoded value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Whether a decoded value is a JSON array."""
    return isinstance(value, list)


def whole(data: bytes) -> bool:
    """Whether the bytes are one JSON value in UTF-8."""
    try:
        _skim(data)
        data.decode("utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def redact(data: bytes) -> tuple[bytes, int]:
    """A message without its secrets, and how many were taken out (0 = the same bytes).

    Raises msgspec.DecodeError, UnicodeDecodeError or RecursionError when it is no JSON.
    """
    if not telling(data):
        return data, 0
    frame = _decode(data)
    hider = _Hider()
    for one in frame if is_array(frame) else [frame]:
        hider.message(one)
    return (_encode(frame), hider.count) if hider.count else (data, 0)


def telling(data: bytes) -> bool:
    """Whether a message has a word that a secret could stand behind. In slices, so that other threads go on."""
    for start in range(0, len(data), _SLICE):
        piece = data[start : start + _SLICE + _LONGEST]
        if any(word in piece for word in _TELLING):
            return True
    return False


class _Hider:
    """Hides in place, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def message(self, frame: Any) -> None:
        if is_object(frame):
            method: Any = frame.get("method")
            params: Any = frame.get("params")
            result: Any = frame.get("result")
            if isinstance(method, str) and method in AUTHENTICATING and is_object(params):
                for key in list(params):
                    if key not in ("methodId", "providerId", "id"):
                        params[key] = self.all(params[key], "credential")
            if is_object(result) and result.get("action") == "accept" and "content" in result:
                result["content"] = self.all(result["content"], "form-answer")
        self.inside(frame)

    def inside(self, value: Any) -> None:
        if is_object(value):
            for key, item in list(value.items()):
                value[key] = self.named(key, item)
        elif is_array(value):
            for item in value:
                self.inside(item)

    def named(self, name: str, value: Any) -> Any:
        plain = name.lower().replace("_", "").replace("-", "")
        if plain in HIDING and (is_object(value) or is_array(value)):
            return self.pairs(value, "env" if plain.startswith("env") else "header")
        if plain in SECRET and isinstance(value, str):
            return self.one(value, "assigned-secret")
        if name == "mcpServers" and is_array(value):
            for server in value:
                self.server(server)
        self.inside(value)
        return value

    def pairs(self, value: Any, kind: str) -> Any:
        if is_object(value):
            return {k: self.all(v, kind) for k, v in value.items()}
        if is_array(value):
            return [self.pair(item, kind) for item in value]
        return value

    def pair(self, item: Any, kind: str) -> Any:
        if is_object(item):
            return {k: v if k in ("name", "key") else self.all(v, kind) for k, v in item.items()}
        if isinstance(item, str):
            name, equals, value = item.partition("=")
            return f"{name}={self.one(value, kind)}" if equals else self.one(item, kind)
        return self.all(item, kind)

    def all(self, value: Any, kind: str) -> Any:
        """Every text in a value, hidden; numbers and truth values too, for they may be a code."""
        if is_object(value):
            return {k: self.all(v, kind) for k, v in value.items()}
        if is_array(value):
            return [self.all(v, kind) for v in value]
        return value if value is None else self.one(value, kind)

    def server(self, server: Any) -> None:
        """What an MCP server is started or reached with: secrets in its arguments and its address."""
        if not is_object(server):
            return
        url: Any = server.get("url")
        if isinstance(url, str):
            server["url"] = self.address(url)
        args: Any = server.get("args")
        if is_array(args):
            server["args"] = self.arguments(args)

    def arguments(self, args: list[Any]) -> list[Any]:
        given: list[Any] = []
        hide = False
        for arg in args:
            if not isinstance(arg, str):
                given.append(arg)
                continue
            name, equals, _ = arg.lstrip("-").partition("=")
            names_secret = arg.startswith("-") and holds_secret(name) is not None
            if hide and not arg.startswith("-"):
                given.append(self.one(arg, "argument"))
            elif names_secret and equals:
                given.append(f"{arg.partition('=')[0]}={self.one(arg.partition('=')[2], 'argument')}")
            elif "://" in arg:
                given.append(self.address(arg))
            else:
                given.append(arg)
            hide = names_secret and not equals
        return given

    def address(self, url: str) -> str:
        """An address without its user part and the values of its query."""
        try:
            parts = urlsplit(url)
            host = parts.netloc.rpartition("@")
        except ValueError:
            return self.one(url, "address")
        if not host[1] and not parts.query:
            return url
        self.count += 1
        user = mark("address") + "@" if host[1] else ""
        return urlunsplit(parts._replace(netloc=user + host[2], query=mark("address") if parts.query else ""))

    def one(self, value: Any, kind: str) -> Any:
        hidden = mark(kind)
        if value == "" or value == hidden:
            return value
        self.count += 1
        return hidden
