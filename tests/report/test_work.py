"""Work is reported over distinct sessions; what several claim is nobody's own, what nobody claims is counted."""

from pathlib import Path
from typing import Any

import pytest

from asrd.claims import Claim, IntervalRef, SessionRef
from asrd.records import ToolCall, ToolResult, Turn
from asrd.report.sheet import markdown, page, words
from asrd.report.work import report, work_sheet
from asrd.store import Store
from asrd.store.rows import IndexRows
from tests.homes import Recorded, recorded
from tests.report.build import session
from tests.store.build import Made, where_of

CAPTURES = Path(__file__).parents[1] / "captures"
FIGURES = ("rollups", "requests", "turns", "toolCalls", "errors", "oneOffCode", "wallSeconds")


def claude(name: str) -> SessionRef:
    return SessionRef("claude-code", name)


def answer(store: Recorded, *claims: Claim) -> dict[str, Any]:
    return report(store.rows, claims)


def three(home: Path) -> None:
    session(home, "a", ["ls", "python -c 'x'"], failed=(0,))
    session(home, "b", ["cat <<'E' > f\npython -c 'x'\nE\n"] * 3)
    session(home, "c", ["python - <<'E'\nx\nE\n"])


def figures(value: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value[f] for f in FIGURES)


def test_claimed_and_unclaimed_make_up_what_is_measured(tmp_path: Path) -> None:
    three(tmp_path / "home")

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = answer(store, Claim(name="w", sessions=[claude("a"), claude("b")]))["rollups"]

    assert figures(found["claimed"]) == (2, 5, 2, 5, 1, 1, 300.0)
    assert figures(found["unclaimed"]) == (1, 1, 1, 1, 0, 1, 60.0)
    assert figures(found["measured"]) == (3, 6, 3, 6, 1, 2, 360.0)


def test_what_two_claim_is_in_the_row_of_those_who_share_it(tmp_path: Path) -> None:
    three(tmp_path / "home")
    claims = [
        Claim(name="w1", sessions=[claude("a"), claude("b")], phases=["plan", "build"]),
        Claim(name="w2", sessions=[claude("b")]),
        Claim(name="w3", sessions=[claude("c")]),
    ]

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = answer(store, *claims)

    assert [(c["name"], c["phases"], c["requests"]) for c in found["claims"]] == [
        ("w1", 2, 2),
        ("w2", 0, 0),
        ("w3", 0, 1),
    ]
    assert (found["shared"]["by"], found["shared"]["requests"]) == (["w1", "w2"], 3)
    rows = work_sheet(found).tables[1].rows
    assert words(rows[-1][0]) == "shared by 2"


def test_a_claim_adds_up_however_often_it_is_made(tmp_path: Path) -> None:
    three(tmp_path / "home")
    claims = [Claim(name=f"w{n}", sessions=[claude("a"), claude("a"), claude("b")]) for n in range(3)]

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = answer(store, *claims)

    rows = [*found["claims"], found["shared"]]
    for figure in FIGURES:
        assert sum(r[figure] for r in rows) == found["rollups"]["claimed"][figure]
    assert found["rollups"]["claimed"]["requests"] == 5


@pytest.mark.parametrize(("alone", "right"), [(False, (4, 10)), (True, (1, 3))])
def test_a_session_brings_what_it_spawned_unless_it_is_claimed_alone(tmp_path: Path, alone: bool, right: Any) -> None:
    home = CAPTURES / "claude-code" / "S2" / "home"

    with recorded(home, tmp_path / "store") as store:
        root = next(s for s in store.rows.sessions() if s.row.parent_session is None)
        found = answer(store, Claim(name="w", sessions=[claude(root.row.session_id)], alone=alone))

    (one,) = found["claims"]
    assert (one["rollups"], one["requests"]) == right
    assert found["rollups"]["measured"]["rollups"] == 4


def test_nothing_is_claimed_because_it_happened_at_the_same_time(tmp_path: Path) -> None:
    session(tmp_path / "home", "a", ["ls"])
    session(tmp_path / "home", "b", ["ls"])

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = answer(store, Claim(name="w", sessions=[claude("a")]))

    assert [s["sessionId"] for s in found["unclaimed"]] == ["b"]


def test_an_interval_is_clipped_and_its_end_is_not_in_it(tmp_path: Path) -> None:
    session(tmp_path / "home", "a", ["ls"] * 5)
    time = IntervalRef(claude("a"), "2026-11-02T10:01:30Z", "2026-11-02T10:04:00Z")

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        (row,) = answer(store, Claim(name="w", intervals=[time]))["intervals"]["rows"]

    assert (row["requests"], row["agentSeconds"], row["unionSeconds"], row["wallSeconds"]) == (2, 150.0, 150.0, 150.0)
    assert row["inside"] == []
    assert row["instrumentedSeconds"] == 0.0


def test_the_share_of_an_interval_in_which_something_took_time_is_told(tmp_path: Path) -> None:
    store = Store(where_of(tmp_path))
    made = Made("a", agent="pi")
    made.add(Turn(turn_id="t", phase="start", trigger="prompt", at="2026-11-02T10:00:00Z"))
    made.add(ToolCall(call_id="c", name="shell", kind="execute", input={}, at="2026-11-02T10:01:00Z"))
    made.add(ToolResult(call_id="c", linkage="exact", status="completed", at="2026-11-02T10:02:00Z"))
    made.add(Turn(turn_id="t", phase="end", status="completed", at="2026-11-02T10:04:00Z"))
    store.append(made.key, made.records)
    store.sync()
    db = store.index.reader()
    time = IntervalRef(SessionRef("pi", "a"), "2026-11-02T10:01:30Z", "2026-11-02T11:00:00Z")

    found = report(IndexRows(db, store.folders.streams, store.disk), [Claim(name="w", intervals=[time])])
    db.close()
    store.close()

    (row,) = found["intervals"]["rows"]
    assert (row["agentSeconds"], row["instrumentedSeconds"], row["lowerBound"]) == (150.0, 30.0, False)
    sheet = work_sheet(found)
    assert sheet.tables[2].rows[0][sheet.tables[2].heads.index("timed")] == "20%"
    for table in sheet.tables:
        assert {len(r) for r in (*table.rows, table.foot or table.heads)} == {len(table.heads)}


def test_intervals_that_overlap_are_marked_and_counted_once_together(tmp_path: Path) -> None:
    session(tmp_path / "home", "a", ["ls"] * 5)
    whole = IntervalRef(claude("a"), "2026-11-02T10:00:00Z", "2026-11-02T11:00:00Z")
    part = IntervalRef(claude("a"), "2026-11-02T10:01:00Z", "2026-11-02T10:03:00Z")

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = answer(store, Claim(name="w1", intervals=[part]), Claim(name="w2", intervals=[whole]))["intervals"]

    one, two = found["rows"]
    assert (one["requests"], two["requests"]) == (5, 2)
    assert (one["agentSeconds"], two["agentSeconds"]) == (300.0, 120.0)
    assert (one["addsSeconds"], two["addsSeconds"]) == (300.0, 0.0)
    assert found["additive"] == {"agentSeconds": 300.0, "unionSeconds": 300.0, "requests": 5}
    assert (one["inside"], [o["claims"] for o in two["inside"]]) == ([], [["w2"]])


def test_the_same_interval_claimed_twice_is_one_row(tmp_path: Path) -> None:
    session(tmp_path / "home", "a", ["ls"])
    time = IntervalRef(claude("a"), "2026-11-02T10:00:00Z", "2026-11-02T11:00:00Z")

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = answer(store, Claim(name="w2", intervals=[time]), Claim(name="w1", intervals=[time]))["intervals"]

    assert [r["claims"] for r in found["rows"]] == [["w1", "w2"]]


def test_a_turn_that_is_open_makes_an_interval_a_lower_bound(tmp_path: Path) -> None:
    session(tmp_path / "home", "a", ["ls"] * 5)
    early = IntervalRef(claude("a"), "2026-11-02T10:00:00Z", "2026-11-02T10:02:00Z")
    late = IntervalRef(claude("a"), "2026-11-02T10:00:00Z", "2026-11-02T10:30:00Z")

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = answer(store, Claim(name="w", sessions=[claude("a")], intervals=[early, late]))

    bounds = {r["until"]: (r["lowerBound"], r["liveSessions"]) for r in found["intervals"]["rows"]}
    assert bounds == {early.until: (False, 0), late.until: (True, 1)}
    assert found["claims"][0]["openSessions"] == 1


def test_figures_that_are_known_to_be_too_low_say_so(tmp_path: Path) -> None:
    home = CAPTURES / "vibe" / "S1" / "home"

    with recorded(home, tmp_path / "store") as store:
        refs = [SessionRef(s.row.agent, s.row.session_id, s.row.namespace) for s in store.rows.sessions()]
        found = answer(store, Claim(name="w", sessions=refs))

    assert found["claims"][0]["lowerBound"]


def test_coverage_says_what_is_unmeasured_and_why(tmp_path: Path) -> None:
    session(tmp_path / "home", "a", ["ls"])
    claims = [
        Claim(name="w1", sessions=[claude("a"), claude("gone")]),
        Claim(name="w2", sessions=[claude("gone")]),
        Claim(name="w3"),
        Claim(name="w4", receipts=["x"]),
    ]

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        found = answer(store, *claims)

    assert (found["coverage"]["measured"], found["coverage"]["total"]) == (["w1"], 4)
    assert [u["name"] for u in found["coverage"]["unmeasured"]] == ["w2", "w3", "w4"]
    assert found["claims"][0]["notRecorded"] == [{"agent": "claude-code", "sessionId": "gone", "namespace": None}]


def test_a_session_seen_twice_is_one_rollup_whichever_stream_is_claimed(tmp_path: Path) -> None:
    store = Store(where_of(tmp_path))
    native = Made("a", agent="pi").turn("t1").call("c1").response("r1", 10, 1)
    seen = Made("seen", agent="proxy", scope="secondary").turn("x1").call("y1").response("z1", 10, 1)
    seen.link("observes", "a", agent="pi")
    for made in (native, seen):
        store.append(made.key, made.records)
    store.sync()
    db = store.index.reader()

    rows = IndexRows(db, store.folders.streams, store.disk)
    found = [report(rows, [Claim(name="w", sessions=[SessionRef(*ref)])]) for ref in (("pi", "a"), ("proxy", "seen"))]
    db.close()
    store.close()

    for one in found:
        figures_of = one["rollups"]
        assert [figures_of["measured"][k] for k in ("rollups", "requests", "turns", "toolCalls")] == [1, 1, 1, 1]
        assert figures_of["claimed"] == figures_of["measured"]


def test_a_hostile_claim_is_words_on_the_page(tmp_path: Path) -> None:
    three(tmp_path / "home")
    name = "</td><script>alert(1)</script>\x1b]0;x\x07|"

    with recorded(tmp_path / "home", tmp_path / "store") as store:
        sheet = work_sheet(answer(store, Claim(name=name, title=name, sessions=[claude("a")])))

    assert "<script" not in page(sheet) and "\x1b" not in page(sheet)
    assert "<script" not in markdown(sheet) and "\x1b" not in markdown(sheet)
