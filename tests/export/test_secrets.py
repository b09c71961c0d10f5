"""No secret leaves in any form, wherever a record holds it; ids, digests and figures stay as they are."""

import pytest

from asrd.export import Exported, Given, formats
from asrd.export.clean import clean
from asrd.records import (
    AnyRecord,
    Compaction,
    Exec,
    FileChange,
    Message,
    Native,
    Place,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    decode,
    encode,
)
from asrd.redact import Redactor
from tests.golden import CAPTURES
from tests.handoff.build import Story

SECRET = "ghp_" + "a1B2c3D4e5" * 4


def everywhere() -> list[AnyRecord]:
    """A session with the secret wherever a record holds words."""
    story = Story()
    some: list[AnyRecord] = [
        Message(role="user", origin="prompt", content=[Text(text=f"use {SECRET}")]),
        Message(role="assistant", content=[Thinking(text=SECRET), Text(text=SECRET)]),
        ToolCall(call_id="c1", name="Bash", input={"env": {"K": SECRET}, "list": [SECRET], SECRET: 1}, title=SECRET),
        ToolResult(
            call_id="c1",
            linkage="exact",
            status="completed",
            content=[Text(text=SECRET)],
            exec=Exec(command=f"x {SECRET}", stdout=SECRET, stderr=SECRET),
            meta={"raw": SECRET},
        ),
        FileChange(path=Place(path=f"{SECRET}.txt"), change="modify", diff=f"+{SECRET}", call_id="c1"),
        Compaction(summary=SECRET),
        Native(native_type="x", data={"deep": [{"er": SECRET}]}),
    ]
    for one in some:
        story.add(one)
    return story.records


@pytest.mark.parametrize("form", [f for f in formats() if not formats()[f].repository])
def test_a_secret_does_not_leave_in_a_form(form: str) -> None:
    redactor = Redactor("default")
    records = [clean(r, redactor) for r in everywhere()]
    given = Given([Exported("example", "s", "", records, {})], "default", dict(redactor.removed), "0")

    files = formats()[form].make(given)

    assert files and not any(SECRET.encode() in f.data or SECRET in f.name for f in files)
    assert redactor.removed["github-token"] >= 13


def test_without_redaction_nothing_is_changed() -> None:
    records = everywhere()

    assert [clean(r, Redactor("off")) for r in records] == records


def test_a_value_under_the_name_of_a_secret_is_one() -> None:
    call = ToolCall(call_id="c", name="login", input={"password": "correct-horse-7-battery"})

    cleaned = clean(call, Redactor("default"))

    assert isinstance(cleaned, ToolCall) and "correct-horse" not in str(cleaned.input)


@pytest.mark.parametrize("case", ["claude-code/S1", "codex/S1", "gemini/S1", "opencode/S1"])
def test_what_names_and_links_records_stays(case: str) -> None:
    kept = (
        "id",
        "seq",
        "at",
        "turnId",
        "callId",
        "inferenceId",
        "supersedes",
        "parent",
        "usage",
        "before",
        "after",
        "commit",
    )
    for path in sorted((CAPTURES / case / "expected").glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            record = decode(line)

            cleaned = clean(record, Redactor("strict"))

            for name in kept:
                assert field(encode(record), name) == field(encode(cleaned), name)


def field(line: bytes, name: str) -> object:
    import json

    return json.loads(line).get(name)
