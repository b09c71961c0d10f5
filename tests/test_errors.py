"""Our own errors: codes of their own, sentences that hold their facts, and the table in the docs."""

import ast
import string
from pathlib import Path

import pytest

from asrd import errors
from asrd.errors import AsrdError

DOCS = Path(__file__).parents[1] / "docs" / "errors.md"


def tree(kind: type[AsrdError] = AsrdError, depth: int = 0) -> list[tuple[int, type[AsrdError]]]:
    """Every error with its depth, each above those it is made more exact by."""
    found = [(depth, kind)]
    for one in kind.__subclasses__():
        if one.__module__ == errors.__name__:
            found += tree(one, depth + 1)
    return found


def elsewhere(folder: Path) -> list[str]:
    """Classes with an exit code of their own that do not stand in `asrd/errors.py`."""
    found: list[str] = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and path.name != "errors.py":
                assigned = [t for part in node.body if isinstance(part, ast.Assign) for t in part.targets]
                if any(isinstance(t, ast.Name) and t.id == "exit_code" for t in assigned):
                    found.append(f"{path.name}: {node.name}")
    return found


def holes(kind: type[AsrdError]) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(kind.__doc__ or "") if name]


def sentence(kind: type[AsrdError]) -> str:
    return " ".join((kind.__doc__ or "").split())


def table() -> str:
    """`docs/errors.md`: every error, its exit code, and the sentence its user reads."""
    rows = [f"| {kind.exit_code} | `{kind.__name__}` | {sentence(kind)} |" for _, kind in tree()]
    return "\n".join(
        [
            "# What can go wrong, and what a command ends with",
            "",
            "A command ends with 0 when it did what was asked, and else with the code of what went wrong on our side. What a",
            "harness got wrong is in its stream (`loss`, `gap`) and is no error. Made by `python -m tests.samples` from",
            "`asrd/errors.py`.",
            "",
            "| exit code | error | what its user reads |",
            "|---|---|---|",
            *sorted(rows, key=lambda row: int(row.split("|")[1])),
            "",
        ]
    )


ERRORS = [kind for _, kind in tree()]


def test_exit_codes_are_unique_and_fit_a_byte() -> None:
    codes = [kind.exit_code for kind in ERRORS]

    assert len(set(codes)) == len(codes)
    assert all(0 < code < 126 for code in codes)  # 126 and above are the shell's own


@pytest.mark.parametrize("kind", ERRORS)
def test_a_sentence_holds_its_facts(kind: type[AsrdError]) -> None:
    facts = {name: f"<{name}>" for name in holes(kind)}

    error = kind(**facts)

    assert error.facts == facts
    assert all(fact in str(error) for fact in facts.values())
    assert "{" not in str(error)
    assert str(error)[-1] in ".>"
    assert "\n" not in str(error)


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_has_a_sentence_and_a_code_of_its_own(kind: type[AsrdError]) -> None:
    assert "__doc__" in vars(kind) and kind.__doc__
    assert "exit_code" in vars(kind)


def test_every_error_with_an_exit_code_stands_in_one_place() -> None:
    assert elsewhere(DOCS.parents[1] / "asrd") == []


def test_the_tree_at_the_head_of_the_module_is_the_tree() -> None:
    drawn = (errors.__doc__ or "").split("AsrdError", 1)[1].splitlines()[1:]

    found = ["  " * depth + kind.__name__ for depth, kind in tree()]

    assert found == ["AsrdError", *(line[4:] for line in drawn if line.strip())]


def raised() -> list[tuple[str, int, str, set[str]]]:
    """Every place in asrd where one of our errors is made: file, line, name, and the facts it gives."""
    names = {kind.__name__ for kind in ERRORS}
    found: list[tuple[str, int, str, set[str]]] = []
    for path in sorted((DOCS.parents[1] / "asrd").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                if not any(k.arg is None for k in node.keywords):
                    facts = {k.arg for k in node.keywords if k.arg}
                    found.append((path.name, node.lineno, node.func.id, facts))
    return found


def test_errors_are_raised_with_all_their_facts() -> None:
    by_name = {kind.__name__: kind for kind in ERRORS}

    made = raised()

    short = [(file, line, name) for file, line, name, facts in made if not set(holes(by_name[name])) <= facts]
    assert made
    assert short == []


def test_the_table_in_the_docs_is_current() -> None:
    assert DOCS.read_text("utf-8") == table(), "python -m tests.samples"
