"""The fold of one session's records: what is counted, what is left out, and what is unknown."""

from asrd.records import (
    Capture,
    Compaction,
    Config,
    Content,
    End,
    FileChange,
    Gap,
    Loss,
    Message,
    Native,
    Place,
    Record,
    Span,
    Text,
    Turn,
    VcsAction,
    Workspace,
    WorkspaceRoot,
)
from asrd.rollup import PROMPT_LENGTH, Fold, SessionRow
from tests.store.build import Made, child_of, copied


def folded(made: Made, *more: Record) -> Fold:
    for record in more:
        made.add(record)
    fold = Fold(SessionRow(made.key.agent, made.key.session_id))
    for record in made.records:
        fold.add(record)
    return fold


def test_what_happened_is_counted_and_copies_are_not() -> None:
    made = Made("a").turn("t1").prompt("do  it\nnow").call("c1", 0).call("c2", 101).response("q1", 1, 2)
    made.call("c0", copy_of=copied("b")).turn("t0", copy_of=copied("b")).response("q0", 1, 2, copy_of=copied("b"))
    place = Place(path="x.py")

    row = folded(
        made,
        FileChange(path=place, change="modify", after=Content(sha256="0" * 64)),
        FileChange(path=place, change="modify", copy_of=copied("b")),
        FileChange(path=place, change="create", applied=False),
        VcsAction(action="commit", commit="1" * 40, branch="main"),
        VcsAction(action="push"),
        Gap(reason="torn"),
        Loss(reason="malformed", span=Span(source="s1", start=0, end=1)),
        Native(native_type="x", data={}),
        Compaction(trigger="auto"),
    ).row

    assert (row.turns, row.prompts, row.calls, row.failed, row.open_calls) == (1, 1, 2, 1, 0)
    assert (row.edits, row.commits, row.gaps, row.losses, row.natives, row.compactions) == (1, 1, 1, 1, 1, 1)
    assert row.copies == 6
    assert (row.prompt, row.branch, row.records) == ("do it now", "main", len(made.records))


def test_a_correction_is_not_another_event() -> None:
    made = Made("a").prompt("one").call("c1", 1)
    made.add(Message(role="user", origin="prompt", content=[Text(text="one, mended")], supersedes="r1"))
    made.call("c1", 0, supersedes="r2")

    row = folded(made).row

    assert (row.prompts, row.messages, row.calls) == (1, 1, 1)


def test_a_prompt_that_takes_its_place_in_a_queue_is_a_prompt_once() -> None:
    made = Made("a")
    made.add(Native(native_type="queue-operation", data={}))
    prompt = Message(role="user", origin="prompt", content=[Text(text="one")], supersedes="r1")
    made.add(prompt)
    made.add(Message(role="user", origin="prompt", content=[Text(text="one, mended")], supersedes="r2"))

    row = folded(made).row

    assert (row.prompts, row.messages, row.prompt) == (1, 1, "one")


def test_the_first_prompt_names_the_session_as_far_as_it_fits() -> None:
    made = Made("a")
    made.add(Message(role="user", origin="injected", content=[Text(text="context")]))

    row = folded(made.prompt("x" * 900).prompt("later")).row

    assert row.prompt == "x" * PROMPT_LENGTH


def test_times_are_the_first_and_the_last_of_its_own_records() -> None:
    made = Made("a").prompt("b", "2026-01-02T00:00:00Z").prompt("a", "2026-01-01T00:00:00Z").prompt("c")
    made.add(Gap(reason="torn", at="2020-01-01T00:00:00Z", copy_of=copied("b")))

    row = folded(made).row

    assert (row.first_at, row.last_at) == ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z")


def test_the_header_says_where_and_from_whom() -> None:
    roots = Workspace(roots=[WorkspaceRoot(id="r1", path="/w"), WorkspaceRoot(id="r2", path="/v")])

    row = folded(Made("a", lineage=child_of("p"), workspace=roots, title="T", started_at="2026-01-01T00:00:00Z")).row

    assert (row.cwd, row.title, row.started_at, row.version) == ("/w", "T", "2026-01-01T00:00:00Z", "1.0")
    assert (row.parent_session, row.parent_relation, row.parent_evidence, row.root) == (
        "p",
        "spawned_by",
        "native-field",
        0,
    )


def test_what_changed_later_is_in_force() -> None:
    row = folded(Made("a").response("q", 1, 1, model="old"), Config(model="new", title="N", version="2")).row

    assert (row.model, row.title, row.version) == ("new", "N", "2")
    assert folded(Made("a").response("q", 1, 1, model="<synthetic>")).row.model is None


def test_a_turn_is_open_until_its_end() -> None:
    start = Turn(turn_id="t2", phase="start", at="2026-01-01T00:00:00Z")
    fold = folded(Made("a").turn("t1"), start, Gap(reason="torn", at="2026-01-01T00:00:09Z"))
    assert (fold.row.open_turn, fold.row.ended) == ("t2", None)
    fold.close()
    assert fold.turns["codex\x1fa\x1ft2"].last_at == "2026-01-01T00:00:09Z"

    ended = folded(Made("a").turn("t1"), start, Turn(turn_id="t2", phase="end"), End(status="completed"))
    assert (ended.row.open_turn, ended.row.ended) == (None, "completed")


def test_when_a_turn_was_last_heard_of_does_not_reach_into_the_next() -> None:
    fold = folded(
        Made("a"),
        Turn(turn_id="t1", phase="start", at="2026-01-01T00:00:00Z"),
        Gap(reason="torn", at="2026-01-01T00:00:05Z"),
        Turn(turn_id="t2", phase="start", at="2026-01-09T00:00:00Z"),
    )

    assert fold.turns["codex\x1fa\x1ft1"].last_at == "2026-01-01T00:00:05Z"


def test_ids_that_mean_something_only_here_are_kept_apart() -> None:
    made = Made("a").response("q1", 1, 1).response("q2", 1, 1, id_source="derived").response("q3", None, None)

    fold = folded(made)

    assert list(fold.inferences) == ["codex\x1fq1", "codex\x1fa\x1fq2", "codex\x1fq3"]
    assert [r.measured for r in fold.inferences.values()] == [1, 1, 0]
    assert [r.output for r in fold.inferences.values()] == [1, 1, None]


def test_figures_missing_of_a_moment_make_a_lower_bound_and_those_never_recorded_do_not() -> None:
    moment = Capture(profile="usage", facet="usage", state="partial", reason="it was cut", at="2026-01-01T00:00:00Z")
    never = Capture(profile="usage", facet="requests", state="partial", reason="titles are asked for elsewhere")
    other = Capture(profile="coding", facet="usage", state="off", reason="nothing", at="2026-01-01T00:00:00Z")

    row = folded(Made("a"), moment, never, other).row

    assert (row.lower_bound, row.not_recorded) == ("it was cut", "titles are asked for elsewhere")
    assert folded(Made("a"), never).row.lower_bound is None


def test_links_are_rows_with_their_evidence() -> None:
    (link,) = folded(Made("a").link("spawned", "b", call_id="c1")).links

    assert (link.relation, link.session_id, link.call_id, link.kind, link.value) == (
        "spawned",
        "b",
        "c1",
        "native-field",
        "b",
    )
