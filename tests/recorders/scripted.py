"""What a capture's truth.json says happened, beside what streams say of it, as equal tables.

For captures made against a scripted model: responses with their figures, calls with what the model saw of them, the exit
codes that were measured, edits, commits, sub-agents. No id of a capture stands here; a name a harness gives calls of its
own is told to `told` by a function.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from asrd.convert import Streams
from asrd.recorders.base import Recorder, sha256
from asrd.records import Inference, Link, Message, Session, Text, ToolCall, ToolResult, VcsAction, encode
from asrd.validate import check
from tests.figures import figures
from tests.golden import CAPTURES
from tests.recorders.arrivals import (
    cases_of,
    edits,
    figures_of_responses,
    goes_on_from_any_prefix,
    goes_on_past_a_line_that_is_too_long,
    goes_on_whatever_is_wrong,
    groups_of,
    lines_of,
    record,
    same_however_it_comes,
    standing,
    streams_of,
    unaccounted,
)

Table = dict[str, Any]


def truth_of(harness: str, case: str) -> Table:
    return json.loads((CAPTURES / harness / case / "truth.json").read_text("utf-8"))


def words(record: Message | ToolResult) -> str:
    return "\n".join(b.text for b in record.content or () if isinstance(b, Text))


def marker(text: str) -> str | None:
    """The name of the script a prompt calls up: `[[S1T1]] Please …`."""
    return text[2 : text.index("]]")] if text.startswith("[[") else None


def told(streams: Streams, plain: Callable[[str], str] = str) -> Table:
    """What streams tell. `plain`: a call's id as the model gave it."""
    calls = standing(streams, ToolCall)
    results = {plain(r.call_id): r for r in standing(streams, ToolResult)}
    said = [m for m in standing(streams, Message) if m.role == "user"]
    return {
        "prompts": sorted(str(marker(words(m))) for m in said if m.origin == "prompt"),
        "calls": sorted((plain(c.call_id), c.name, json.dumps(c.input, sort_keys=True)) for c in calls),
        "results": {ident: words(r) for ident, r in results.items()},
        "exit codes": {i: r.exec.exit_code for i, r in results.items() if r.exec and r.exec.exit_code is not None},
        "failed": {ident for ident, r in results.items() if r.status != "completed"},
        "edits": edits(streams),
        "commits": [v.commit for v in standing(streams, VcsAction) if v.action == "commit"],
        "models": {i.model for i in standing(streams, Inference) if i.model},
        "figures": figures_of_responses(streams),
        "answers": sorted(
            words(m) for m in standing(streams, Message) if m.role == "assistant" and m.origin != "summary" and words(m)
        ),
        "spawned": spawned(streams, plain),
    }


def spawned(streams: Streams, plain: Callable[[str], str]) -> set[tuple[str, str]]:
    """The call and the first words of every sub-agent, where the parent's link and the child's header agree."""
    found: set[tuple[str, str]] = set()
    for key, records in streams.items():
        header = records[0]
        assert isinstance(header, Session)
        parent = header.lineage.parent
        if parent is None or header.lineage.relation != "spawned_by":
            continue
        links = [
            r
            for k, rs in streams.items()
            if (k.session_id, k.namespace) == (parent.session_id, parent.namespace or "")
            for r in rs
            if isinstance(r, Link)
            and (r.target.session_id, r.target.namespace or "") == (key.session_id, key.namespace)
        ]
        first = next(words(r) for r in records if isinstance(r, Message) and r.role == "user")
        for link in links:
            if link.relation == "spawned" and link.call_id == parent.call_id:
                found.add((plain(link.call_id or ""), str(marker(first))))
    return found


def happened(truth: Table) -> Table:
    """What truth.json tells, in the same words. Scripts whose name starts with `_` ran outside the conversation."""
    given = [r for r in truth["responses"] if r["delivered"] == "full"]
    scripts = {r["script"] for r in truth["responses"]}
    tree: Table = truth.get("subagent_tree") or {"children": []}
    children: list[Table] = tree["children"]
    below = {c["script"] for c in children}
    called = [c for r in given for c in r["tool_calls"]]
    return {
        "prompts": sorted(s for s in scripts - below if not s.startswith("_") and not s.endswith("ANN")),
        "calls": sorted((c["id"], c["name"], json.dumps(c["args"], sort_keys=True)) for c in called),
        "results": {c["id"]: c["result_seen_by_model"] for c in truth["calls"] if c.get("result_seen_by_model")},
        "exit codes": {c["id"]: c["exit_code"] for c in truth["calls"] if c.get("exit_code") is not None},
        "edits": _edits(truth),
        "commits": [line.split()[0] for line in reversed(truth["git_log"][:-1])],
        "models": {r["model"] for r in given},
        "figures": sorted((r["usage"]["input"], r["usage"]["cached"], r["usage"]["output"]) for r in given),
        "answers": sorted(r["text"] for r in given if r["text"] and not _aside(r)),
        "spawned": {(c["spawn_call_id"], c["script"]) for c in children},
    }


def _aside(response: Table) -> bool:
    """Whether a response was given outside the conversation: a summary, or to a request the script does not know."""
    return response["script"].startswith("_") or response["text"].startswith("(script ")


def _edits(truth: Table) -> list[tuple[str, str, str]]:
    """Digests before and after each edit, worked out backwards from how the file was at the end."""
    found: list[tuple[str, str, str]] = []
    after = truth["calc_final"]
    for edit in reversed(truth["edits"]):
        before = after.replace(edit["new"], edit["old"])
        found.append((Path(edit["file"]).name, sha256(before), sha256(after)))
        after = before
    return found[::-1]


def unrecorded(said: Table, true: Table) -> tuple[int, int]:
    """Input total and output of the responses that streams do not have. Raises AssertionError where they have others."""
    left = list(true["figures"])
    for one in said["figures"]:
        assert one in left, f"{one} was never given, or is counted twice"
        left.remove(one)
    return sum(i for i, _, _ in left), sum(o for _, _, o in left)


def findings(streams: Streams) -> list[str]:
    """What `asrd validate` finds wrong in streams."""
    return [
        f"{key.session_id}: {finding}"
        for key, records in streams.items()
        for finding in check(encode(r) + b"\n" for r in records)
    ]


def differences(said: Table, true: Table, but: tuple[str, ...] = ()) -> Table:
    """The rows of the tables that are not equal, but for those named: (told, true)."""
    return {name: (said[name], row) for name, row in true.items() if name not in but and said[name] != row}


# ---------------------------------------------------------------- what holds for every capture


class ScriptedCaptures:
    """What holds for every capture of one harness: a test class of that harness says whose they are and what differs."""

    recorder: ClassVar[type[Recorder]]
    killed: ClassVar[frozenset[str]] = frozenset()
    """Calls that were killed with the harness: what it tells the model of them later stands in no file."""
    lost: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Rows of the tables that the files of a case do not have."""

    def seen(self, text: str) -> str:
        """What the model was shown of a result."""
        return text

    def plain(self, ident: str) -> str:
        """A call's id as the model gave it."""
        return ident

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", cases_of(self.recorder.harness))

    def home(self, case: str) -> Path:
        return CAPTURES / self.recorder.harness / case / "home"

    def tables(self, case: str) -> tuple[Table, Table]:
        """What the streams tell, and what happened."""
        said = told(streams_of(self.recorder, self.home(case)), self.plain)
        return said, happened(truth_of(self.recorder.harness, case))

    def test_a_capture_counts_exactly_what_was_used(self, case: str) -> None:
        expected = truth_of(self.recorder.harness, case)["expected_usage"]

        counted = figures(streams_of(self.recorder, self.home(case)))

        assert (counted["input_total"], counted["output"]) == (expected["input_total"], expected["output"])

    def test_every_response_counts_once_and_what_is_missing_stands_in_no_file(self, case: str) -> None:
        expected = truth_of(self.recorder.harness, case)["expected_usage"]

        said, true = self.tables(case)

        assert unrecorded(said, true) == (expected["unrecorded_input"], expected["unrecorded_output"])

    def test_a_capture_says_what_happened(self, case: str) -> None:
        said, true = self.tables(case)

        different = differences(said, true, but=("results", "figures", *self.lost.get(case, ())))

        assert different == {}

    def test_results_are_what_the_model_was_shown(self, case: str) -> None:
        said, true = self.tables(case)

        shown = {ident: self.seen(text) for ident, text in true["results"].items() if ident not in self.killed}

        assert {ident for ident, text in shown.items() if said["results"][ident].strip() not in text} == set()
        assert not self.killed & said["results"].keys()

    def test_every_line_of_a_capture_is_accounted_for_once(self, case: str) -> None:
        for contents in groups_of(self.recorder, self.home(case)):
            streams, capture = record(self.recorder, contents)

            assert unaccounted(contents, streams, capture) == 0
            assert capture.accounts()[1] == {}
            assert findings(streams) == []

    def test_the_records_do_not_depend_on_how_the_bytes_came(self, case: str) -> None:
        same_however_it_comes(self.recorder, self.home(case), case)

    def test_a_stream_whose_cursor_was_lost_goes_on_where_it_was(self, case: str) -> None:
        goes_on_from_any_prefix(self.recorder, self.home(case), case)

    def test_recording_goes_on_whatever_is_wrong_in_a_line(self, case: str) -> None:
        goes_on_whatever_is_wrong(self.recorder, self.home(case), case)

    def test_a_line_longer_than_may_be_read_is_said_and_passed_over(self) -> None:
        goes_on_past_a_line_that_is_too_long(self.recorder, self.home("S1"))


def goes_on_after_a_kill(recorder: type[Recorder], case: Path) -> None:
    """What was recorded of a case just after the kill is the beginning of what its resumed session gives."""
    before = lines_of(streams_of(recorder, case / "home-after-kill"))
    after = lines_of(streams_of(recorder, case / "home"))

    assert before.keys() == after.keys()
    assert all(after[key][: len(lines)] == lines for key, lines in before.items())
    assert sum(map(len, after.values())) > sum(map(len, before.values()))
