"""Each module of asrd has its tests, where a reader looks for them."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

COVERED_ELSEWHERE = {
    "__init__": "test_docs.py",
    "__main__": "test_cli.py",
    "acp/__init__": "acp/test_spool.py",
    "commands/__init__": "test_cli.py",
    "commands/_common": "test_cli.py",
    "commands/completion": "test_cli.py",
    "commands/convert": "test_cli.py",
    "commands/doctor": "test_cli.py",
    "commands/ls": "test_cli.py",
    "commands/reindex": "test_cli.py",
    "commands/run": "test_cli.py",
    "commands/status": "test_cli.py",
    "commands/sync": "test_cli.py",
    "commands/validate": "test_cli.py",
    "commands/follow": "daemon/test_lifecycle.py",
    "export/": "export/test_forms.py",
    "handoff/__init__": "handoff/test_brief.py",
    "handoff/native/": "handoff/test_native.py",
    "handoff/targets/": "handoff/test_targets.py",
    "lineage/__init__": "lineage/test_links.py",
    "recorders/__init__": "test_captures.py",
    "report/__init__": "report/test_sheet.py",
    "sources": "test_framing.py",
    "store/__init__": "store/test_stream.py",
    "top/__init__": "top/test_glance.py",
    "ui/__init__": "ui/test_view.py",
}
"""Modules (and folders, with `/`) without a test file of their own, and the file that covers them.

This list must only shrink: a module that gets its own file leaves it.
"""


def modules() -> list[str]:
    """Every module of asrd by its path, without `.py`."""
    return sorted(p.relative_to(ROOT / "asrd").with_suffix("").as_posix() for p in (ROOT / "asrd").rglob("*.py"))


def own_file(module: str) -> Path:
    """`tests/store/test_stream.py` for `store/stream`; a leading underscore of the module is left out."""
    folder, _, name = module.rpartition("/")
    return ROOT / "tests" / folder / f"test_{name.lstrip('_')}.py"


def covered_elsewhere(module: str) -> bool:
    return any(module == one or (one.endswith("/") and module.startswith(one)) for one in COVERED_ELSEWHERE)


@pytest.mark.parametrize("module", [m for m in modules() if not covered_elsewhere(m)])
def test_a_module_has_its_test_file(module: str) -> None:
    path = own_file(module)

    assert path.is_file(), f"asrd/{module}.py has no {path.relative_to(ROOT)}"


@pytest.mark.parametrize("module", COVERED_ELSEWHERE)
def test_the_list_names_what_is_there_and_only_shrinks(module: str) -> None:
    covering = ROOT / "tests" / COVERED_ELSEWHERE[module]

    there = [m for m in modules() if m == module or (module.endswith("/") and m.startswith(module))]
    assert there, "it is gone: take it from the list"
    assert covering.is_file(), f"{covering.name} is not there"
    own = {own_file(m) for m in there if own_file(m).is_file()} - {covering}
    assert own == set(), "it has its own now: take it from the list"


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("test_*.py")), ids=lambda p: p.name)
def test_a_test_file_has_tests(path: Path) -> None:
    text = path.read_text("utf-8")

    assert "def test_" in text or "TestCase" in text
