"""`asrd export` writes each form where it is told to, sends spans to a collector, and takes secrets out."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto_json.trace.v1.trace import TracesData

from asrd.cli import main
from asrd.export import formats
from tests.export.collector import Collector
from tests.golden import CAPTURES
from tests.histories import Repo
from tests.homes import environment

CASE = "claude-code/S2"


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    for name, value in environment(CAPTURES / CASE / "home", tmp_path / "store").items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    main(["sync"])
    capsys.readouterr()
    return tmp_path


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    yield found
    found.close()


@pytest.mark.parametrize("form", [f for f in formats() if not formats()[f].repository])
def test_a_form_is_written_into_a_folder_for_its_owner_only(
    synced: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["export", "--format", form, "--out", "out", "--json"])

    told = json.loads(capsys.readouterr().out)
    paths = [Path(f["path"]) for f in told["files"]]
    assert code == 0 and told["schema"] == "asrd.export/1" and paths
    assert all(
        p.stat().st_size == f["bytes"] and p.stat().st_mode & 0o777 == 0o600
        for p, f in zip(paths, told["files"], strict=True)
    )


def test_one_session_as_markdown_comes_on_stdout(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["export", "last", "--format", "markdown"])

    out = capsys.readouterr().out
    assert code == 0 and out.startswith("# ") and "responses" in out


def test_json_on_stdout_has_the_values_of_the_file(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["export", "last", "--format", "atif", "--out", "one.json"])
    capsys.readouterr()

    main(["export", "last", "--format", "atif"])

    assert json.loads(capsys.readouterr().out) == json.loads(Path("one.json").read_text())


def test_spans_come_to_a_collector_once_and_again_with_the_same_ids(synced: Path, collector: Collector) -> None:
    words = ["export", "--format", "otel", "--to", collector.url]

    assert main(words) == 0
    first = list(collector.bodies)
    assert main(words) == 0

    assert first and collector.bodies[len(first) :] == first
    for path, kind, data in first:
        assert (path, kind) == ("/v1/traces", "application/json")
        assert TracesData.from_dict(json.loads(data)).resource_spans


def test_words_are_sent_to_a_collector_only_where_they_are_asked_for(synced: Path, collector: Collector) -> None:
    main(["export", "--format", "otel", "--to", collector.url])
    quiet = b"".join(data for _, _, data in collector.bodies)

    main(["export", "--format", "otel", "--to", collector.url, "--content"])

    assert b"[[SUBC]]" not in quiet and b"gen_ai.tool.call.arguments" not in quiet
    assert b"[[SUBC]]" in b"".join(data for _, _, data in collector.bodies)


def test_a_collector_that_refuses_is_told(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refusing = Collector(answer=503)

    code = main(["export", "--format", "otel", "--to", refusing.url])

    refusing.close()
    assert code == 61 and "503" in capsys.readouterr().err


def test_a_licence_that_is_stated_stands_in_each_training_line(
    synced: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["export", "--format", "training", "--licence", "CC-BY-4.0"])

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines and all(line["metadata"]["licence"] == "CC-BY-4.0" for line in lines)


def test_an_export_of_no_form_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export"]) == 2


def test_several_files_do_not_go_to_stdout(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--format", "sts"]) == 2
    assert "more than one file" in capsys.readouterr().err


def test_training_lines_of_many_sessions_are_one_file(synced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["export", "--format", "training"])
    lines = capsys.readouterr().out.splitlines()

    main(["export", "--format", "training", "--out", "folder"])
    main(["export", "--format", "training", "--out", "one.jsonl"])

    assert len(lines) > 1
    assert [json.loads(x) for x in Path("one.jsonl").read_text().splitlines()] == [json.loads(x) for x in lines]
    assert Path("folder/training.jsonl").read_bytes() == Path("one.jsonl").read_bytes()
    assert [p.name for p in Path("folder").iterdir()] == ["training.jsonl"]


@pytest.mark.parametrize("form", [f for f in formats() if formats()[f].repository])
def test_a_repository_without_a_proved_line_has_nothing_to_export(
    synced: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = Repo(synced / "repo")
    repo.write("a.py", "x = 1\n")
    repo.commit()

    assert main(["export", "--format", form, "--repo", str(repo.folder), "--out", "out"]) == 0
    assert main(["export", "--format", form, "--repo", str(repo.folder)]) == 0

    said = capsys.readouterr()
    assert said.err.count("nothing to export") == 2 and said.out == "" and not Path("out").exists()
