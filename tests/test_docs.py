"""The docs are what the code does: samples decode, made blocks are current, links lead to files, the public is described."""

import ast
import re
from pathlib import Path

import msgspec
import pytest

from asrd.answers import METHODS
from asrd.recorders import load
from asrd.records import RECORD_TYPES, decode
from asrd.validate import check
from tests.harnesses import PAGE as HARNESSES
from tests.harnesses import page as harnesses
from tests.samples import BLOCK, FORMAT, SAMPLE, format_page, real_lines
from tests.test_validate import stream

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MODULES = sorted((ROOT / "asrd").rglob("*.py"))
KEY = re.compile(r"dev\.asrd\.[A-Za-z][A-Za-z0-9]*")

FENCE = re.compile(r"(?ms)^```json\n(.*?)^```$")
METHOD = re.compile(r"(?m)^\| `([a-z.]+)` \| (.*?) \|")
LINK = re.compile(r"\[[^]]*]\(([^)#\s]+)(?:#[^)]*)?\)")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def samples() -> list[str]:
    """Every line in a `json` block of the docs that is a record."""
    return [
        line
        for page in PAGES
        for block in FENCE.findall(page.read_text("utf-8"))
        for line in block.splitlines()
        if line.startswith('{"type":')
    ]


def test_the_format_page_is_current() -> None:
    text = FORMAT.read_text("utf-8")

    assert text == format_page(text), "python -m tests.samples"


def test_the_page_of_the_harnesses_is_current() -> None:
    assert HARNESSES.read_text("utf-8") == harnesses(), "python -m tests.samples"


def test_the_page_of_the_harnesses_has_what_is_read_what_is_not_and_why() -> None:
    sections = {part.split("`")[0]: part for part in harnesses().split("\n## `")[1:]}

    assert sections.keys() == load().keys()
    assert "`session_index.jsonl`" in sections["codex"].partition("About many sessions")[2]
    assert "`history.jsonl`: prompts of all threads" in sections["codex"].partition("Not read")[2]
    assert (
        "`usage` (no count of tokens is written)" in sections["cursor"].partition("Not, or not wholly, in its files")[2]
    )


def test_the_format_page_has_every_record_type_and_its_marks() -> None:
    made = [m[1] for m in BLOCK.finditer(FORMAT.read_text("utf-8"))]

    assert made == [*(str(t.__struct_config__.tag) for t in RECORD_TYPES), "blocks", "keys", "rules"]


def test_a_sample_is_a_line_of_a_capture() -> None:
    real = {line for of_type in real_lines().values() for lines in of_type.values() for line in lines}

    shown = SAMPLE.findall(FORMAT.read_text("utf-8"))

    assert [line for line in shown if line not in real] == []


def test_samples_decode_and_their_fields_are_sound() -> None:
    for line in samples():
        record = decode(line.encode())

        findings = list(check([*stream(), line.encode() + b"\n"]))

        assert record.id
        assert [f for f in findings if f.rule.startswith(("field", "unknown", "not", "time"))] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    targets = [t for t in LINK.findall(page.read_text("utf-8")) if "://" not in t and not t.startswith("mailto:")]

    assert [t for t in targets if not (page.parent / t).exists()] == []


def unnamed(page: str) -> list[str]:
    """What the table of the socket's page lacks: methods, and parameters of methods (a row may say `as` another)."""
    rows = {m[1]: m[2] for m in METHOD.finditer(page)}
    missing: list[str] = []
    for name, method in METHODS.items():
        told = rows.get(name, "")
        told += "".join(rows.get(other, "") for other in re.findall(r"as `([\w.]+)`", told))
        wanted = {f.encode_name for f in msgspec.structs.fields(method[0])}
        missing += [] if name in rows else [name]
        missing += sorted(f"{name}: {p}" for p in wanted - set(re.findall(r"`(\w+)(?:\[\])?`", told)))
    return missing


def test_the_page_of_the_socket_names_every_method_and_parameter() -> None:
    text = (ROOT / "docs" / "socket.md").read_text("utf-8")

    assert unnamed(text) == []
    assert unnamed(text.replace("| `time` | as `usage` |", "| `tome` | |"))[0] == "time"
    assert unnamed(text.replace("`limit`, `harness`, `project`, `since` |", "`harness`, `project`, `since` |")) == [
        "sessions.list: limit"
    ]


def undescribed(source: str, *, native: bool = False) -> list[str]:
    """What of a module is public and has no docstring: itself, its functions, its classes.

    `native`: classes are a harness's own shapes and their recorder, which the module's docstring describes.
    """
    tree = ast.parse(source)
    missing: list[str] = [] if ast.get_docstring(tree) else ["the module"]
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node) and not (native and isinstance(node, ast.ClassDef)):
                missing.append(node.name)
    return missing


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_what_is_public_is_described(module: Path) -> None:
    native = module.parent.name == "recorders" and module.name != "base.py"

    missing = undescribed(module.read_text("utf-8"), native=native)

    assert missing == []


def test_what_is_not_described_is_found() -> None:
    source = 'class A:\n    """Said."""\n\ndef f(): ...\n\ndef _g(): ...\n\nasync def h(): ...\n\nclass B: ...\n'

    missing = undescribed(source)

    assert missing == ["the module", "f", "h", "B"]


def test_the_keys_of_the_format_page_are_those_of_the_shared_code() -> None:
    elsewhere = ("recorders", "export")  # keys of one harness, and of other formats (docs/exports.md)
    shared = [m for m in MODULES if m.parent.name not in elsewhere or m.name == "base.py"]
    shared = [m for m in shared if m.name != "service.py"]  # launchd's label, no key
    used = {key for m in shared for key in KEY.findall(m.read_text("utf-8"))}

    described = set(KEY.findall(BLOCK.sub("", FORMAT.read_text("utf-8"))))

    assert used - described == set()
    assert described - {key for m in MODULES for key in KEY.findall(m.read_text("utf-8"))} == set()


def test_decisions_are_numbered_without_a_gap_and_say_what_they_cost() -> None:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))

    numbers = [int(p.name[:4]) for p in pages]

    assert numbers == list(range(1, len(pages) + 1))
    for page in pages:
        assert "## What it costs" in page.read_text("utf-8"), page.name
