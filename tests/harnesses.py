"""`docs/harnesses.md`: where asrd reads the sessions of each harness, what it does not read, and what the harness does not write.

All of it is what the code and the captures say: the roots, places and unread files of each recorder, and the `capture`
records in the expected streams.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from asrd.recorders import load
from asrd.recorders.base import Recorder, Root
from tests.golden import CAPTURES

PAGE = Path(__file__).parents[1] / "docs" / "harnesses.md"

HEAD = """\
# What is read of each harness

Made by `make docs` from the recorders and the captures' streams; do not edit. `asrd doctor` says the same of this machine, with
figures. asrd only reads; names in `(…)` are environment variables that move the folder. *Captured with* names the versions of the
program that wrote the captures in `tests/captures`; *from documents* means that nobody has seen the real program's files yet.
What a harness writes to no file, nobody can read from its files: `asrd usage` says "at least" there.
"""


def page() -> str:
    """The page, whole."""
    lacking = not_written()
    return "\n".join([HEAD, *(section(name, one, lacking.get(name, [])) for name, one in load().items())])


def section(name: str, recorder: type[Recorder], lacking: list[str]) -> str:
    """One harness."""
    about = (sys.modules[recorder.__module__].__doc__ or "").split("\n\n")[0]
    apart = [p.pattern for p in recorder.places if p.kind == "shared"]
    read = [p.pattern for p in recorder.places if p.kind != "shared"]
    versions = ", ".join(recorder.versions)
    lines = [
        f"## `{name}`",
        " ".join(about.split()),
        "",
        f"- **Folders**: {folders(recorder.roots)}",
        f"- **Sessions**: {patterns(read)}",
        *([f"- **About many sessions**: {patterns(apart)}"] if apart else []),
        f"- **Evidence**: {'captured with ' + versions if recorder.evidence == 'captured' else 'from ' + recorder.evidence}",
        *(f"- **Not read**: `{u.pattern}`: {u.why}" for u in recorder.unread),
        *([f"- **Not, or not wholly, in its files**: {'; '.join(lacking)}"] if lacking else []),
    ]
    return "\n".join(lines) + "\n"


def folders(roots: Iterable[Root]) -> str:
    """Folders, each with the variables that move it."""
    found: dict[str, list[str]] = {}
    for root in roots:
        found.setdefault(root.default, []).extend(f"`{name}`" for name in root.env)
    return "; ".join(f"`~/{folder}`" + (f" ({', '.join(env)})" if env else "") for folder, env in found.items())


def patterns(found: list[str]) -> str:
    """Globs below a harness's folder, each once; those that stand again below another folder by that folder alone."""
    first = [p for p in dict.fromkeys(found) if not any(p.endswith("/" + other) for other in found)]
    again = {p.removesuffix("/" + q): None for p in found for q in first if p.endswith("/" + q)}
    return ", ".join(f"`{p}`" for p in first) + "".join(f"; the same below `{folder}`" for folder in again)


def not_written() -> dict[str, list[str]]:
    """By harness: what a `capture` record of any of its captures says to be partial or unavailable, and why."""
    found: dict[str, dict[str, None]] = {}
    for path in sorted(CAPTURES.glob("*/*/expected/*.asr.jsonl")):
        if path.is_relative_to(CAPTURES / "acp"):
            continue  # what a connection does not say, under the agent's name
        harness: str | None = None
        for line in path.read_bytes().splitlines():
            record: dict[str, Any] = msgspec.json.decode(line)
            if harness is None:
                harness = record["agent"]["name"]
            if record["type"] == "capture" and record.get("reason") and record["state"] in ("partial", "unavailable"):
                assert harness is not None
                found.setdefault(harness, {})[f"`{record.get('facet') or record['profile']}` ({record['reason']})"] = (
                    None
                )
    return {harness: sorted(said) for harness, said in found.items()}
