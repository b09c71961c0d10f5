"""Agent Trace and Git AI, of every capture: its repository made again from its edits, each line its session's."""

import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec import Struct

from asrd import blaming, exporting
from asrd.attribution import lines_of
from asrd.export import File, Given, formats
from asrd.export.view import urn
from asrd.recorders.base import StreamKey
from tests.export.captured import cases, record
from tests.export.notes import parse
from tests.export.rebuilt import WORKSPACE, rebuilt

SCHEMA = json.loads((Path(__file__).parent / "agent-trace-0.1.0.schema.json").read_text())
VALIDATOR: Any = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)
Line = tuple[str, int]
"""A path and a line of it."""


class Capture(Struct):
    """A capture's commits; who wrote which line (by path and words), and how the files stand at each commit."""

    given: Given
    authors: dict[str, dict[str, set[StreamKey | None]]]
    files: dict[tuple[str, str], list[str]]
    head: str


@cache
def capture(case: str) -> Capture | None:
    """What is exported of a capture's repository; None where nothing of it names contents."""
    with tempfile.TemporaryDirectory() as folder, record(case, Path(folder)) as one:
        made = rebuilt(one.sessions(), Path(folder) / "repo")
        if made is None:
            return None
        top = str(made.repo.folder)
        commits = blaming.commits(one.rows, top, f"{made.first}..HEAD", WORKSPACE)
        given = exporting.headed(one.rows, exporting.chosen(one.rows, [], None, False), "default", commits)
        files = {
            (c.commit, path): lines_of(made.repo.git("show", f"{c.commit}:{path}") + "\n")
            for c in commits
            for path in made.repo.git("ls-tree", "-r", "--name-only", c.commit).splitlines()
        }
        return Capture(given, made.authors, files, made.repo.git("rev-parse", "HEAD"))


def files(case: str, form: str) -> list[File]:
    """What `asrd export` writes; nothing where nothing is to be exported."""
    found = capture(case)
    return formats()[form].make(found.given) if found is not None else []


def told_by_traces(case: str) -> dict[str, dict[Line, str]]:
    """By commit: the session of each line, as a URL."""
    found: dict[str, dict[Line, str]] = {}
    for file in files(case, "agent-trace"):
        for trace in map(json.loads, file.data.splitlines()):
            lines = found.setdefault(trace["vcs"]["revision"], {})
            for one in trace["files"]:
                for talk in one["conversations"]:
                    for r in talk["ranges"]:
                        lines |= {(one["path"], n): talk["url"] for n in range(r["start_line"], r["end_line"] + 1)}
    return found


def told_by_notes(case: str) -> dict[str, dict[Line, str]]:
    """By commit: the session of each line, as Git AI names it."""
    found: dict[str, dict[Line, str]] = {}
    for file in files(case, "git-ai"):
        note = parse(file.data.decode())
        assert file.name == f"{note.metadata['base_commit_sha']}.note"
        agents = {key: s["agent_id"]["id"] for key, s in note.metadata["sessions"].items()}
        found[note.metadata["base_commit_sha"]] = {
            (path, n): agents[key.split("::")[0]]
            for path, some in note.attested.items()
            for key, ns in some.items()
            for n in ns
        }
    return found


@pytest.mark.parametrize("case", cases())
def test_every_trace_is_one_by_the_schema_of_agent_trace(case: str) -> None:
    for file in files(case, "agent-trace"):
        for line in file.data.splitlines():
            errors: list[Any] = list(VALIDATOR.iter_errors(json.loads(line)))
            assert errors == []


@pytest.mark.parametrize("case", cases())
def test_every_line_that_a_form_tells_of_is_one_that_the_session_wrote(case: str) -> None:
    found = capture(case)
    traces, notes = told_by_traces(case), told_by_notes(case)

    assert bool(traces) == bool(notes) == (found is not None)
    for commit, lines in traces.items():
        assert found is not None and {line: url.rsplit(":", 1)[1] for line, url in lines.items()} == notes[commit]
        for (path, number), url in lines.items():
            wrote = found.authors[path][found.files[commit, path][number - 1]]
            assert url in {urn(k.agent, k.session_id, k.namespace) for k in wrote if k is not None}


@pytest.mark.parametrize("case", cases())
def test_every_line_that_only_one_session_wrote_is_told_of(case: str) -> None:
    found = capture(case)
    if found is None:
        return
    told = {
        (path, found.files[commit, path][n - 1]): url
        for commit, lines in told_by_traces(case).items()
        for (path, n), url in lines.items()
    }

    wrote = {(p, text): who for p, lines in found.authors.items() for text, who in lines.items() if len(who) == 1}
    left = {
        (path, text)
        for (path, text), (who,) in wrote.items()
        if who is not None and text in found.files.get((found.head, path), [])
    }
    assert left <= set(told)


@pytest.mark.parametrize("case", ["claude-code/S1", "codex/A1-appserver", "opencode/S3", "acp/pi"])
def test_git_takes_the_notes_of_a_capture(case: str, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "f").write_bytes(b"".join(f.data for f in files(case, "git-ai")[:1]))
    git = ["git", "-C", str(tmp_path), "-c", "user.name=d", "-c", "user.email=d@e.f"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "notes", "--ref=ai", "add", "-F", str(tmp_path / "f"), "HEAD"], check=True)

    shown = subprocess.run([*git, "notes", "--ref=ai", "show", "HEAD"], check=True, capture_output=True).stdout

    assert parse(shown.decode()) == parse((tmp_path / "f").read_text())


def test_captures_with_edits_have_lines_and_those_without_digests_have_nothing_to_export() -> None:
    told = {case for case in cases() if capture(case) is not None}

    assert len(told) > 50
    assert not told & {"deepseek/S1", "t3code/S1", "acp/opencode", "claude-code/S2"}
    assert told >= {"cursor/S1", "kimi-py/S1", "antigravity/S1", "claude-code/S8-v2.1.197"}
