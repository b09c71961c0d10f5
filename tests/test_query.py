"""Questions over a store: names, bounds, days, trees. What is unknown stays unknown."""

from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from asrd import query
from asrd.errors import Ambiguous, NothingFound, UsageError
from asrd.query import Sums, bound, resolve, since_of, state_of, usage_json
from asrd.records import Workspace, WorkspaceRoot
from asrd.rollup import SessionRow
from asrd.store import Store
from asrd.store.rows import IndexRows
from tests.store.build import Made, child_of, copied, where_of


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    store = Store(where_of(tmp_path))
    yield store
    store.close()


@pytest.fixture
def ask(store: Store) -> Generator[Any]:
    """Puts sessions into a store and gives what answers over it."""
    opened: list[Any] = []

    def put(*made: Made) -> IndexRows:
        for one in made:
            store.append(one.key, one.records)
        store.sync()
        opened.append(store.index.reader())
        return IndexRows(opened[-1], store.folders.streams, store.disk)

    yield put
    for db in opened:
        db.close()


def at(folder: str) -> Workspace:
    return Workspace(roots=[WorkspaceRoot(id="r1", path=folder)])


# ---------------------------------------------------------------- names


def test_a_session_is_named_by_id_prefix_harness_last_or_here(ask: Any) -> None:
    rows = ask(
        Made("abc-1", workspace=at("/w")).prompt("x", "2026-01-01T00:00:00Z"),
        Made("abd-2", agent="pi", workspace=at("/v")).prompt("y", "2026-01-02T00:00:00Z"),
    )

    def named(ref: str, cwd: str | None = None) -> str:
        return resolve(rows, ref, cwd).row.session_id

    assert [named(r) for r in ("abc-1", "abc", "codex:abc", "codex:abc-1", "pi:ab")] == ["abc-1"] * 4 + ["abd-2"]
    assert named("last") == "abd-2"
    assert named(".", "/w") == "abc-1"
    with pytest.raises(Ambiguous, match=r"ab names 2 sessions: .*codex:abc-1"):
        named("ab")
    for nobody in ("xyz", "", "pi:abc", "abc-12"):
        with pytest.raises(NothingFound):
            named(nobody)
    with pytest.raises(NothingFound):
        named(".", "/nowhere")


def test_an_equal_id_names_the_primary_one(ask: Any) -> None:
    rows = ask(Made("a", agent="acp", scope="secondary").prompt("x"), Made("a", agent="pi").prompt("x"))

    assert resolve(rows, "a").row.agent == "pi"
    assert resolve(rows, "acp:a").row.agent == "acp"


# ---------------------------------------------------------------- figures


def test_sums_know_what_they_do_not_know() -> None:
    total = Sums()
    assert usage_json(total)["inputTotal"] is None and usage_json(total)["output"] is None

    total.add(Sums(1, input=5, output=2, unknown={"cache_read": 1}))
    total.add(Sums(2, input=1, cache_read=10, unmeasured=1, unknown={"output": 2}))
    told = usage_json(total)

    assert (told["requests"], told["input"], told["cacheRead"], told["inputTotal"], told["output"]) == (3, 6, 10, 16, 2)
    assert told["cacheWrite"] is None
    assert (told["unmeasuredRequests"], told["lowerBound"]) == (1, True)
    assert told["requestsNotSaying"] == {"cacheRead": 1, "output": 2}


def test_adding_sums_changes_only_the_sum() -> None:
    one, other = Sums(1, input=1, unknown={"output": 1}), Sums(1, input=2, unknown={"output": 1})

    one.add(other)
    one.add(other)

    assert (one.input, one.unknown) == (5, {"output": 3})
    assert (other.input, other.unknown) == (2, {"output": 1})


def test_usage_by_everything_adds_up_to_the_total(ask: Any) -> None:
    rows = ask(
        Made("a").response("q1", 10, 1, at="2026-01-01T23:30:00Z", model="m1"),
        Made("b", agent="pi").response("q2", 20, 2, at="2026-01-02T00:30:00Z", model="m2").response("q3", 5, 3),
        Made("c").response("q1", 10, 1, copy_of=copied("a")).response("q4", None, None, at="2026-01-02T00:40:00Z"),
    )

    answer = query.usage(rows)

    assert (answer["total"]["requests"], answer["total"]["inputTotal"], answer["total"]["output"]) == (3, 35, 6)
    assert answer["total"]["unmeasuredRequests"] == 1 and answer["total"]["lowerBound"]
    for table in ("bySession", "byModel", "byHarness", "byDay"):
        assert sum(row["requests"] for row in answer[table]) == 3
        assert sum(row["output"] or 0 for row in answer[table]) == 6
    assert {d["day"]: d["requests"] for d in answer["byDay"]} == {"2026-01-01": 1, "2026-01-02": 1, None: 1}


@pytest.mark.parametrize(
    ("zone", "days"),
    [
        ("UTC", {"2026-01-01": 1, "2026-01-02": 1}),
        ("Europe/Berlin", {"2026-01-02": 2}),
        ("America/New_York", {"2026-01-01": 2}),
        ("Asia/Kathmandu", {"2026-01-02": 2}),
    ],
)
def test_days_begin_where_the_person_is(zone: str, days: dict[str, int], ask: Any) -> None:
    made = Made("a").response("q1", 1, 1, at="2026-01-01T23:30:00Z").response("q2", 1, 1, at="2026-01-02T00:30:00Z")

    assert {d["day"]: d["requests"] for d in query.usage(ask(made), timezone=zone)["byDay"]} == days


def test_bounds_are_half_open_and_in_the_persons_timezone(ask: Any) -> None:
    rows = ask(
        Made("a")
        .response("q1", 1, 1, at="2026-01-01T23:00:00.000Z")
        .response("q2", 1, 2, at="2026-01-01T23:00:00.001Z")
        .response("q3", 1, 4, at="2026-01-02T23:00:00Z")
    )

    def output(**more: Any) -> int:
        return query.usage(rows, **more)["total"]["output"] or 0

    assert output(since="2026-01-02", timezone="Europe/Berlin") == 7
    assert output(since="2026-01-02", until="2026-01-03", timezone="Europe/Berlin") == 3
    assert output(since="2026-01-01T23:00:00.001Z") == 6
    assert output(until="2026-01-01T23:00:00.001Z") == 1
    assert output(since="2026-01-02") == 4


@pytest.mark.parametrize("zone", ["Nowhere", "../../etc/passwd", "Europe", "", "Europe/Berlin\0", "a" * 300])
def test_a_timezone_that_is_none_is_a_usage_error(zone: str, ask: Any) -> None:
    with pytest.raises(UsageError, match="timezone"):
        query.usage(ask(Made("a")), timezone=zone)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-01-02", "2026-01-02T00:00:00"),
        ("2026-01-02T10:00:00Z", "2026-01-02T10:00:00"),
        ("2026-01-02T10:00:00.500+02:00", "2026-01-02T08:00:00.5"),
        (None, None),
    ],
)
def test_a_bound_is_written_as_records_write_times(text: str | None, said: str | None) -> None:
    assert bound(text) == said


@pytest.mark.parametrize("text", ["never", "", "2026-13-01", "7 days"])
def test_a_bound_that_is_no_time_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="as a time"):
        bound(text)


def test_a_start_may_be_a_length_of_time() -> None:
    now = datetime(2026, 1, 8, 12, tzinfo=UTC)

    assert [since_of(t, now)[:13] for t in ("7d", "12h", "90m", "1w")] == [
        "2026-01-01T12",
        "2026-01-08T00",
        "2026-01-08T10",
        "2026-01-01T12",
    ]
    assert since_of("2026-01-01", now) == "2026-01-01"


# ---------------------------------------------------------------- states and relations


@pytest.mark.parametrize(
    ("row", "state"),
    [({"ended": "crashed", "open_turn": "t"}, "crashed"), ({"open_turn": "t"}, "open"), ({}, "idle")],
)
def test_a_state_is_what_the_source_says(row: dict[str, Any], state: str) -> None:
    assert state_of(SessionRow("a", "b", **row)) == state


def test_a_tree_has_own_figures_and_those_below(ask: Any) -> None:
    rows = ask(
        Made("root").response("q1", 1, 1).link("spawned", "kid", call_id="c"),
        Made("kid", lineage=child_of("root")).response("q2", 1, 2),
        Made("grandkid", lineage=child_of("kid")).response("q3", 1, 4),
        Made("fork", lineage=child_of("root", "forked_from")).response("q4", 1, 8),
        Made("orphan", lineage=child_of("gone")).response("q5", 1, 16),
    )

    roots = {r["sessionId"]: r for r in query.tree(rows, None)["roots"]}

    assert set(roots) == {"root", "orphan"}
    root = roots["root"]
    assert (root["own"]["output"], root["descendants"]["output"]) == (1, 6)
    assert {c["sessionId"] for c in root["children"]} == {"kid", "fork"}
    assert next(c["callId"] for c in root["children"] if c["sessionId"] == "kid") == "c"
    assert roots["orphan"]["unresolvedParent"] is not None
    assert query.usage(rows, ref="root", tree_of=True)["total"]["output"] == 7


def test_a_cycle_of_statements_has_an_end(ask: Any) -> None:
    rows = ask(
        Made("a", lineage=child_of("b")).response("q1", 1, 1),
        Made("b", lineage=child_of("a")).response("q2", 1, 2),
        Made("c", lineage=child_of("c")).response("q3", 1, 4),
    )

    roots = query.tree(rows, None)["roots"]

    def names(nodes: list[dict[str, Any]]) -> list[str]:
        return [n for node in nodes for n in [node["sessionId"], *names(node["children"])]]

    assert len(names(roots)) == len(set(names(roots)))
    assert query.usage(rows, ref="a", tree_of=True)["total"]["output"] in (1, 3)


def test_relations_are_given_from_both_sides(ask: Any) -> None:
    rows = ask(Made("p").link("spawned", "k", call_id="c1"), Made("k", lineage=child_of("p")))

    for name in ("p", "k"):
        links = query.lineage(rows, resolve(rows, name))
        assert {(x["relation"], x["from"]["sessionId"], x["to"]["sessionId"]) for x in links} <= {
            ("spawned", "k", "p"),
            ("spawned_by", "k", "p"),
        }
        assert all(x["resolved"] for x in links)


def test_records_come_in_parts(ask: Any) -> None:
    rows = ask(Made("a").prompt("1").prompt("2").prompt("3"))

    one = query.resolve(rows, "a")
    first = query.records(rows, one, 0, 2)
    rest = query.records(rows, one, first["next"], None)

    assert (len(first["records"]), first["next"], first["more"]) == (2, 2, True)
    assert (len(rest["records"]), rest["next"], rest["more"]) == (2, 4, False)
    assert query.records(rows, one, 99, None)["records"] == []
