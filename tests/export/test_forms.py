"""Every form, of every capture: it is what its own validator takes, and its tokens are those that a correct reader counts."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from atif import Trajectory
from msgspec.structs import replace
from opentelemetry.proto_json.trace.v1.trace import TracesData

from asrd import query
from asrd.export import Exported, File, Given, formats
from asrd.export.view import Figures
from asrd.paths import folders
from asrd.recorders.base import StreamKey
from asrd.records import FileChange, Gap, Message, Place, Session, Span, Text, Thinking, ToolCall, ToolResult, decode
from asrd.store import Store
from asrd.store.rows import IndexRows
from asrd.validate import check, failed
from tests.export.captured import EXPECTED, cases, expected, given, taken
from tests.handoff.build import Story

Table = dict[str, Any]


def documents(case: str, form: str) -> list[Table]:
    return [json.loads(file.data) for file in formats()[form].make(given(case))]


def lines(case: str, form: str) -> list[Table]:
    return [json.loads(line) for file in formats()[form].make(given(case)) for line in file.data.splitlines()]


def trajectories(found: list[Table]) -> Iterator[Table]:
    for one in found:
        yield one
        yield from trajectories(one.get("subagent_trajectories", []))


def spans(case: str) -> list[Table]:
    return [
        s
        for line in lines(case, "otel")
        for r in line["resourceSpans"]
        for scope in r["scopeSpans"]
        for s in scope["spans"]
    ]


def attribute(span: Table, name: str) -> Any:
    for one in span["attributes"]:
        if one["key"] == name:
            (value,) = one["value"].values()
            return int(value) if "intValue" in one["value"] else value
    return None


# ---------------------------------------------------------------- tokens


@pytest.mark.parametrize("case", cases())
def test_what_counts_of_a_capture_is_what_a_correct_reader_counts(case: str) -> None:
    total = Figures.sum(s.total() for s in given(case).sessions)

    assert (total.input_total or 0, total.output or 0) == expected(case)


@pytest.mark.parametrize("case", cases())
def test_the_tokens_of_the_steps_and_of_the_end_of_atif_are_those(case: str) -> None:
    found = list(trajectories(documents(case, "atif")))

    steps = [s["metrics"] for t in found for s in t["steps"] if "metrics" in s]
    ends = [t["final_metrics"] for t in found]

    assert (added(steps, "prompt_tokens"), added(steps, "completion_tokens")) == expected(case)
    assert (added(ends, "total_prompt_tokens"), added(ends, "total_completion_tokens")) == expected(case)


@pytest.mark.parametrize("case", cases())
def test_the_tokens_of_spans_are_those_and_stand_on_chat_spans_only(case: str) -> None:
    found = spans(case)

    told = [(attribute(s, "gen_ai.usage.input_tokens"), attribute(s, "gen_ai.usage.output_tokens")) for s in found]

    assert (sum(i or 0 for i, _ in told), sum(o or 0 for _, o in told)) == expected(case)
    assert all(s["name"].startswith("chat") for s, (i, _) in zip(found, told, strict=True) if i is not None)


@pytest.mark.parametrize("case", cases())
def test_streams_that_were_exported_are_counted_to_the_same_tokens_in_another_store(case: str, tmp_path: Path) -> None:
    store = Store(folders({"HOME": str(tmp_path), "ASRD_HOME": str(tmp_path / "store")}))
    for file in formats()["asr"].make(given(case)):
        records = [decode(line) for line in file.data.splitlines()]
        head = records[0]
        assert isinstance(head, Session)
        store.append(StreamKey(head.agent.name, head.session_id, head.namespace or ""), list(records))
    store.sync()
    db = store.index.reader()

    total = query.usage(IndexRows(db, store.folders.streams, store.disk))["total"]

    assert (total["inputTotal"] or 0, total["output"] or 0) == expected(case)
    db.close()
    store.close()


@pytest.mark.parametrize("form", ["sts", "training"])
@pytest.mark.parametrize("case", cases())
def test_the_totals_in_the_heads_of_chat_forms_are_those(case: str, form: str) -> None:
    found = lines(case, form)

    heads: list[Table] = [h for h in found if "metadata" in h or "dev.asrd" in h]
    usages: list[Table] = [(h.get("metadata") or h["dev.asrd"])["usage"] for h in heads]

    assert (added(usages, "inputTotal"), added(usages, "output")) == expected(case)


@pytest.mark.parametrize("case", cases())
def test_the_head_of_a_markdown_document_tells_the_tokens(case: str) -> None:
    files = formats()["markdown"].make(given(case))

    told = re.findall(r"^- .* responses, (\S+) tokens in, (\S+) out", "\n".join(f.data.decode() for f in files), re.M)

    numbers = [(number(i), number(o)) for i, o in told]
    assert (sum(i for i, _ in numbers), sum(o for _, o in numbers)) == expected(case)


def number(text: str) -> int:
    return 0 if text == "unknown" else int(text.replace(",", ""))


def added(found: list[Table], name: str) -> int:
    return sum(one.get(name) or 0 for one in found)


# ---------------------------------------------------------------- the forms' own validators


@pytest.mark.parametrize("case", cases())
def test_a_trajectory_is_one_for_the_validator_of_atif(case: str) -> None:
    for document in documents(case, "atif"):
        found = Trajectory.model_validate(document)

        assert found.schema_version == "ATIF-v1.8" and all(t["steps"] for t in trajectories([document]))


def test_a_trajectory_is_one_for_the_validator_of_harbor() -> None:
    module: Any = pytest.importorskip("harbor.utils.trajectory_validator", reason="harbor needs Python 3.12")

    for case in cases():
        for document in documents(case, "atif"):
            validator = module.TrajectoryValidator()
            assert validator.validate(document), validator.get_errors()


@pytest.mark.parametrize("case", cases())
def test_spans_are_those_of_the_protocol_and_name_no_key_it_does_not_know(case: str) -> None:
    for line in lines(case, "otel"):
        assert TracesData.from_dict(line).to_dict() == without_defaults(line)


ZEROS = [("startTimeUnixNano", "0"), ("endTimeUnixNano", "0"), ("timeUnixNano", "0")]


def without_defaults(value: Any) -> Any:
    """The message as the protocol writes it: empty lists and zeros of numbers are not written."""
    if isinstance(value, dict):
        return {k: without_defaults(v) for k, v in value.items() if v != [] and (k, v) not in ZEROS}  # type: ignore[misc]
    if isinstance(value, list):
        return [without_defaults(v) for v in value]  # type: ignore[misc]
    return value


@pytest.mark.parametrize("case", cases())
def test_every_span_has_an_id_of_its_own_and_a_parent_that_is_there(case: str) -> None:
    found = spans(case)

    ids = [(s["traceId"], s["spanId"]) for s in found]

    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[0-9a-f]{32}", t) and re.fullmatch("[0-9a-f]{16}", s) for t, s in ids)
    assert all((s["traceId"], s["parentSpanId"]) in set(ids) for s in found if "parentSpanId" in s)
    assert all(int(s["startTimeUnixNano"]) <= int(s["endTimeUnixNano"]) for s in found)


@pytest.mark.parametrize("case", cases())
def test_an_sts_file_has_a_header_and_messages_with_the_fields_the_hub_reads(case: str) -> None:
    for file in formats()["sts"].make(given(case)):
        first, *rest = [json.loads(line) for line in file.data.splitlines()]

        assert first["type"] == "session" and first["harness"] and first["id"]
        for line in rest:
            message = line["message"]
            assert line["type"] == "message" and message["role"] in ("user", "assistant", "system", "tool")
            assert isinstance(message["content"], str)
            assert ("toolCallId" in message) == (message["role"] == "tool")
            assert all(isinstance(json.loads(c["arguments"]), dict) for c in message.get("toolCalls", ()))


FOLDS = {"<details><summary>Thinking</summary>", "</details>"}
HARMFUL = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "![p](http://elsewhere.example/p.png)",
    "[r]: http://elsewhere.example 'x'", "[r]", "![r]", "[r][r]", "[r\ns]: http://elsewhere.example", "[r s]",
    "<http://elsewhere.example>", "```", "~~~~", "</details>", "<!-- x",
    "[a]\\(x)", "\\[r]: http://elsewhere.example", "[a\\]b]: http://elsewhere.example", "[a\\]b]",
    "- [r]: http://elsewhere.example", "1. [l]: http://elsewhere.example", "[l]", "> [r]: http://elsewhere.example", "&lt;b&gt;",
]  # fmt: skip


def harm(text: str) -> list[str]:
    """What a reader of CommonMark makes of a document that is HTML, a link or a picture; folds of thinking are ours."""
    module: Any = pytest.importorskip("markdown_it")
    tokens = [t for one in module.MarkdownIt("commonmark").parse(text) for t in (one, *(one.children or ()))]
    html = [t.content.strip() for t in tokens if t.type in ("html_block", "html_inline")]
    return [h for h in html if h not in FOLDS] + [t.type for t in tokens if t.type in ("link_open", "image")]


@pytest.mark.parametrize("case", cases())
def test_nothing_in_a_markdown_document_becomes_html_a_link_or_a_picture(case: str) -> None:
    for file in formats()["markdown"].make(given(case)):
        assert harm(file.data.decode()) == []


def test_code_in_an_answer_keeps_its_brackets() -> None:
    story = Story()
    story.add(Message(role="assistant", content=[Text(text="```py\nfor x in y[0]:\n    pass\n```")]))

    (file,) = formats()["markdown"].make(Given([Exported("x", "s", "", story.records, {})], "off", {}, "0"))

    assert "> for x in y[0]:\n" in file.data.decode()


def test_words_that_would_do_harm_do_none_in_markdown() -> None:
    story = Story()
    for words in [*HARMFUL, "\n".join(HARMFUL), "\n\n".join(HARMFUL)]:
        story.add(Message(role="user", origin="prompt", content=[Text(text=words)]))
        story.add(Message(role="assistant", content=[Thinking(text=words), Text(text=words)]))
        story.add(ToolCall(call_id=words, name=words, input={"command": words}))
        story.add(ToolResult(call_id=words, linkage="exact", status="failed", content=[Text(text=words)]))
        story.add(FileChange(path=Place(path=words), change="modify", diff=words))
        story.add(Gap(reason=words, span=Span(source="s1", start=0, end=1)))

    (file,) = formats()["markdown"].make(
        Given([Exported(HARMFUL[0], HARMFUL[1], "", story.records, {})], "off", {}, "0")
    )

    assert harm(file.data.decode()) == []


@pytest.mark.parametrize("case", cases())
def test_training_lines_hold_each_result_after_its_call_and_say_licence_and_redaction(case: str) -> None:
    for line in lines(case, "training"):
        called: set[str] = set()
        for message in line["messages"]:
            called |= {c["id"] for c in message.get("tool_calls", ())}
            assert message["role"] != "tool" or message["tool_call_id"] in called
        assert {"licence", "redaction", "usage"} <= set(line["metadata"])


@pytest.mark.parametrize("case", cases())
def test_asr_comes_out_as_valid_as_it_is(case: str) -> None:
    for file in formats()["asr"].make(given(case)):
        findings = list(check(file.data.splitlines(keepends=True)))

        assert not failed(findings)
        assert [decode(line).seq for line in file.data.splitlines()] == list(range(file.data.count(b"\n")))


@pytest.mark.parametrize("form", [f for f in formats() if not formats()[f].repository])
def test_a_form_is_the_same_each_time(form: str) -> None:
    make = formats()[form].make

    assert make(given("claude-code/S2")) == make(given("claude-code/S2"))


@pytest.mark.parametrize("case", cases())
def test_tree_by_tree_a_form_is_what_it_is_of_all_sessions_at_once(case: str) -> None:
    whole, trees = taken(case).whole, taken(case).trees

    for form in (f for f in formats().values() if not f.repository):
        at_once = form.make(replace(whole, removed={}))
        by_tree = [file for tree in trees for file in form.make(replace(tree, removed={}))]
        if form.joined:
            assert {f.name for f in by_tree} == {f.name for f in at_once}
            at_once, by_tree = (
                [File("", line) for f in some for line in f.data.splitlines()] for some in (at_once, by_tree)
            )
        assert sorted(by_tree, key=lambda f: (f.name, f.data)) == sorted(at_once, key=lambda f: (f.name, f.data))


def test_the_forms_are_found() -> None:
    assert set(formats()) >= {"agent-trace", "asr", "atif", "git-ai", "markdown", "otel", "sts", "training"}


def test_no_form_is_left_without_a_word_on_what_it_loses() -> None:
    assert all(f.loses for f in formats().values())


def test_no_figure_that_is_known_is_left_unread() -> None:
    assert len(EXPECTED) > 70 and set(EXPECTED) <= set(cases())
