"""Makes anew what the docs show and the code knows: `python -m tests.samples` (`make docs`).

    docs/format.md                 fields and one real line of each record type, the rules of validation
    docs/schema/asr-0.1.schema.json
    docs/errors.md
    docs/harnesses.md              what is read of each harness, and what it does not write

A sample is a line of an expected stream of a capture, as it stands there. One that is still there is kept, so that a
new capture changes no sample.
"""

import re
import types
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from asrd import schema
from asrd.records import RECORD_TYPES, SPAN, Block, Record
from asrd.validate import RULES
from tests.golden import CAPTURES

DOCS = Path(__file__).parents[1] / "docs"
FORMAT = DOCS / "format.md"
SCHEMA = DOCS / "schema" / "asr-0.1.schema.json"

BLOCK = re.compile(r"(?ms)^<!-- made: (\S+) -->\n(.*?)^<!-- end -->$")
SAMPLE = re.compile(r"(?m)^```json\n(.*)\n```$")
KEY = re.compile(r'(?<!\\)"(dev\.asrd\.[^"]+)":')
FIELD = re.compile(r'(?<!\\)"(\w+)":')
SHORT = 600
"""Bytes of a line that a page shows without scrolling far."""

_type = msgspec.json.Decoder(msgspec.defstruct("_Typed", [("type", str)]))


def real_lines() -> dict[str, dict[str, list[str]]]:
    """Every line of every expected stream, by record type and capture."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(CAPTURES.glob("*/*/expected/*.asr.jsonl")):
        case = "/".join(path.relative_to(CAPTURES).parts[:2])
        for line in path.read_bytes().splitlines():
            kind = str(getattr(_type.decode(line), "type"))  # noqa: B009
            found.setdefault(kind, {}).setdefault(case, []).append(line.decode())
    return found


def best(lines: dict[str, list[str]]) -> tuple[str, str]:
    """The line that shows most fields on little room, and its capture; a copy only where there is nothing else."""

    def rank(one: tuple[str, str]) -> tuple[bool, bool, int, int, str, str]:
        line, case = one
        shown = set(FIELD.findall(line.partition('"_meta"')[0]))
        return (len(line) > SHORT, "copyOf" in shown, -len(shown), len(line), case, line)

    return min(((line, case) for case, of_case in lines.items() for line in of_case), key=rank)


def sample(kind: str, before: str, real: dict[str, dict[str, list[str]]]) -> str:
    """The sample of a record type: the one that stands there if it is real, else the best."""
    lines = real.get(kind)
    if not lines:
        return "No capture holds one yet.\n"
    shown = SAMPLE.search(before)
    kept = [(shown.group(1), case) for case, of in lines.items() if shown and shown.group(1) in of]
    line, case = min(kept, key=lambda one: one[1]) if kept else best(lines)
    return f"```json\n{line}\n```\nFrom the capture `{case}`.\n"


def fields(kind: type[Struct]) -> str:
    """The fields of a struct with their words, on one line; `*` = required."""
    hints = get_type_hints(kind, include_extras=True)
    shown: list[str] = []
    common = {f.name for f in msgspec.structs.fields(Record)} if issubclass(kind, Record) else set[str]()
    for f in msgspec.structs.fields(kind):
        if f.encode_name == "_meta" or (f.name in common and not f.required):
            continue
        shown.append(f"`{f.encode_name}{'*' if f.required else ''}{_shape(hints[f.name])}`")
    return " · ".join(shown)


def _shape(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Annotated:
        words = kind.__metadata__[0].examples
        return " (" + "|".join(words) + ")" if words else ""
    if origin in (Union, types.UnionType):
        members = [m for m in get_args(kind) if m is not types.NoneType]
        if bool in members and len(members) > 1:
            return " (true|false|unknown)"
        return _shape(members[0]) if len(members) == 1 else ""
    if origin is list:
        inner = get_args(kind)[0]
        return "[]" if inner == Block else "[]" + _shape(inner)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return "{" + ", ".join(_inner(kind)) + "}"
    return ""


def _inner(kind: type[Struct]) -> list[str]:
    hints = get_type_hints(kind, include_extras=True)
    return [f"{f.encode_name}{'*' if f.required else ''}{_shape(hints[f.name])}" for f in msgspec.structs.fields(kind)]


def keys(real: dict[str, dict[str, list[str]]]) -> str:
    """Every `dev.asrd` key in the captures' streams: where it stands, and for which harnesses."""
    found: dict[str, tuple[set[str], set[str]]] = {}
    for kind, of_case in real.items():
        for case, lines in of_case.items():
            for line in lines:
                for key in KEY.findall(line):
                    on, harnesses = found.setdefault(key, (set(), set()))
                    on.add(kind)
                    harnesses.add(case.split("/")[0])
    rows = [
        f"| `{key}` | {', '.join(sorted(on))} | {'every' if key == SPAN else ', '.join(sorted(harnesses))} |"
        for key, (on, harnesses) in sorted(found.items())
    ]
    return "\n".join(["| key | on | harnesses |", "|---|---|---|", *rows]) + "\n"


def made(name: str, before: str, real: dict[str, dict[str, list[str]]]) -> str:
    """What stands between the marks of a block."""
    if name == "rules":
        rows = [f"| `{rule}` | {severity} | {says} |" for rule, (severity, says) in RULES.items()]
        return "\n".join(["| rule | severity | what is so in a stream that keeps it |", "|---|---|---|", *rows]) + "\n"
    if name == "keys":
        return keys(real)
    if name == "blocks":
        blocks: list[type[Struct]] = list(get_args(Block))
        return "".join(
            f"- `{one.__struct_config__.tag}` {fields(one) or '`_meta`'}: {(one.__doc__ or '').strip()}\n"
            for one in blocks
        )
    kind = {str(t.__struct_config__.tag): t for t in RECORD_TYPES}[name]
    profile, _, says = " ".join((kind.__doc__ or "").split()).partition("] ")
    return f"{says} Profile: `{profile.lstrip('[')}`.\n\n{fields(kind)}\n\n{sample(name, before, real)}"


def format_page(text: str) -> str:
    """The format's page with its made blocks anew."""
    real = real_lines()
    return BLOCK.sub(lambda m: f"<!-- made: {m[1]} -->\n{made(m[1], m[2], real)}<!-- end -->", text)


def main() -> None:
    """Writes every made page."""
    from tests.harnesses import PAGE as HARNESSES
    from tests.harnesses import page as harnesses
    from tests.test_errors import DOCS as ERRORS
    from tests.test_errors import table

    FORMAT.write_text(format_page(FORMAT.read_text("utf-8")), "utf-8")
    SCHEMA.write_text(schema.text(), "utf-8")
    ERRORS.write_text(table(), "utf-8")
    HARNESSES.write_text(harnesses(), "utf-8")


if __name__ == "__main__":
    main()
