"""The page's files and what a browser may do with them; the same page as one file that needs no server."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from typing import Any

import msgspec

SCRIPTS = ("dom.js", "list.js", "items.js", "wire.js", "session.js", "views.js", "app.js")
"""In the order they are loaded: each uses only what stands before it."""
STYLE = "asrd.css"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/asrd.css": (STYLE, "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    **{f"/{name}": (name, "text/javascript; charset=utf-8") for name in SCRIPTS},
}
"""What is served, by path."""


def content(name: str) -> bytes:
    """A file of the page."""
    return (files("asrd.ui") / "static" / name).read_bytes()


def headers(port: int) -> dict[str, str]:
    """What each answer says: the page runs its own scripts and talks to its own server, nothing else."""
    return {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
            f"connect-src 'self' ws://127.0.0.1:{port} ws://localhost:{port}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
        ),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def single(data: dict[str, Any]) -> bytes:
    """The page with its style, its scripts and its records in one file; what may run in it is named by digest."""
    style = content(STYLE).decode()
    script = "\n".join(content(name).decode() for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    held = msgspec.json.encode(data).decode().replace("<", "\\u003c").replace("\u2028", "\\u2028")
    page = content("index.html").decode()
    page = re.sub(r"[ \t]*<(?:link|script)\b[^>]*(?:></script>|>)\n", "", page)
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n'
    tail = f'<script type="application/json" id="held">{held}</script>\n<script>{script}</script>\n'
    return page.replace("</head>", head + "</head>").replace("</body>", tail + "</body>").encode()


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
