"""Imports point down: a module may import its own folder and anything on a lower line of `LINES`.

Read from the source alone: nothing is imported to find out. Names on one line are neighbours and do not import each other.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

EFFECTS = """
__main__
cli
ui top
daemon client
crew
tail serve convert acp witness archive ship
answers upkeep words
spanning exporting blaming
handing
reading
places
store
watch process
clock paths tables text worktree repository settings notify log
"""
PURE = """
wire
report
interval
query export retention service
handoff
capture lineage ledger rollup timing validate schema acp.frames claims receipts prices attribution
handoff_token
recorders
framing
sources
records redact oneoff
errors moments plural
"""
LINES = [line.split() for line in (EFFECTS + PURE).split("\n") if line]
RANK = {name: len(LINES) - i for i, line in enumerate(LINES) for name in line}

NOT_PURE = {
    "anyio", "asyncio", "ctypes", "fcntl", "multiprocessing", "os", "platform", "platformdirs", "random", "resource",
    "secrets", "select", "shutil", "signal", "socket", "sqlite3", "subprocess", "tempfile", "threading", "time", "uuid",
    "watchfiles", "websockets",
}  # fmt: skip
"""What a module of the lower half may not import: it is told what happened, and says what should."""

BUILT_ON = {"recorders.openclaw": ["asrd.recorders.pi"]}
"""Harnesses that run another's engine and write its native records: their recorders may use its structs."""


def modules() -> dict[str, Path]:
    """Every module of asrd by its name below it; a package has the name of its folder."""
    found: dict[str, Path] = {}
    for path in sorted((ROOT / "asrd").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT / "asrd").with_suffix("").parts)
        found[name.removesuffix("__init__").rstrip(".")] = path
    del found[""]  # asrd/__init__.py: the story and the version, imported by all
    return found


def line_of(module: str) -> str:
    """The name in LINES that a module goes by: itself, or the folder it lies in; `cli` is the door of `commands`."""
    if module.split(".")[0] == "commands":
        return "cli"
    while module not in RANK and "." in module:
        module = module.rpartition(".")[0]
    return module


def imported(source: str, package: str, known: set[str]) -> list[str]:
    """What a source imports: modules of asrd as `asrd.x.y`, others by their full name. `package`: for dots."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parts, base] if base else parts)
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                found.append(whole if whole.removeprefix("asrd.") in known else base)
    return found


def misplaced(module: str, source: str, known: set[str], package: str = "asrd") -> list[str]:
    """The imports of a module that do not point down."""
    own = line_of(module)
    if own not in RANK:
        return [f"{module} has no line"]
    wrong: list[str] = []
    for name in imported(source, package, known):
        if not name.startswith("asrd."):
            if own in PURE.split() and name.split(".")[0] in NOT_PURE:
                wrong.append(f"{module} is pure and imports {name}")
            continue
        other = name.removeprefix("asrd.")
        if line_of(other) == own or other.split(".")[0] == module.split(".")[0]:
            continue
        if RANK.get(line_of(other), len(LINES)) >= RANK[own]:
            wrong.append(f"{module} imports {other}, which is not below it")
    return wrong


MODULES = modules()


def package_of(module: str) -> str:
    folder = MODULES[module].parent.relative_to(ROOT)
    return ".".join(folder.parts)


def test_every_module_has_its_line() -> None:
    homeless = [module for module in MODULES if line_of(module) not in RANK]

    assert homeless == []


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    source = MODULES[module].read_text("utf-8")

    wrong = misplaced(module, source, set(MODULES), package_of(module))

    assert wrong == []


@pytest.mark.parametrize("module", [m for m in MODULES if line_of(m) in PURE.split()])
def test_what_is_pure_opens_no_file_and_reads_no_clock(module: str) -> None:
    tree = ast.parse(MODULES[module].read_text("utf-8"))

    calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]

    assert [c for c in calls if c in ("open", "input", "print", "datetime.now", "datetime.utcnow")] == []


@pytest.mark.parametrize("module", [m for m in MODULES if m.startswith("recorders.")])
def test_a_recorder_knows_no_other_but_of_the_harness_it_is_built_on(module: str) -> None:
    names = imported(MODULES[module].read_text("utf-8"), package_of(module), set(MODULES))

    others = [n for n in names if n.startswith("asrd.recorders.") and n != "asrd.recorders.base"]

    theirs = {n for n in others if not n.rpartition(".")[2].startswith("_")}
    assert sorted(theirs) == BUILT_ON.get(module, [])


@pytest.mark.parametrize("module", [m for m in MODULES if not m.startswith("recorders")])
def test_no_harness_is_named_outside_its_recorder(module: str) -> None:
    names = imported(MODULES[module].read_text("utf-8"), package_of(module), set(MODULES))

    harnesses = [n for n in names if n.startswith("asrd.recorders.") and n != "asrd.recorders.base"]

    assert harnesses == []


@pytest.mark.parametrize("module", [m for m in MODULES if line_of(m) == "store"])
def test_the_store_knows_of_recorders_only_what_names_a_session(module: str) -> None:
    source = ast.parse(MODULES[module].read_text("utf-8"))

    names = [
        alias.name
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("asrd.recorders")
        for alias in node.names
    ]

    assert set(names) <= {"StreamKey", "Recorded", "HEADER_PLACE"}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("recorders.pi", "from asrd.store import Store"),
        ("recorders.pi", "from asrd import store"),
        ("recorders.pi", "from ..store.disk import Disk"),
        ("records", "import asrd.sources"),
        ("clock", "from asrd.paths import folders"),
        ("rollup", "def late():\n    import os"),
        ("validate", "from os import path"),
        ("acp.frames", "import socket"),
    ],
)
def test_an_import_that_points_up_is_found(module: str, source: str) -> None:
    known = {"recorders.pi", "records", "sources", "clock", "paths", "store", "store.disk", "rollup", "validate"}

    wrong = misplaced(module, source, known, "asrd.recorders")

    assert len(wrong) == 1
