"""The tables of another campaign come out of its receipts to the letter."""

import functools
import itertools
from pathlib import Path

from msgspec import structs

from asrd.claims import read_claims
from asrd.receipts import Claimant, Claimed, Interval, Receipt, name_of, read_receipt, read_snapshot
from asrd.report.foreign import foreign_sheet
from asrd.report.sheet import Sheet, Table, words

RECEIPTS = Path(__file__).parents[1] / "receipts"
PUBLISHED = """\
codex-task-tree-session-062.yaml session-062 607 2.84 h 1.46 h 1.46 h yes
codex-task-tree-session-063.yaml session-063 441 2.08 h 0.85 h 0.85 h yes
codex-task-tree-session-064.yaml session-064 3,444 17.57 h 9.0 h 9.0 h yes
codex-task-tree-session-065.yaml session-064, session-065 286 1.74 h 1.74 h 1.99 h no
codex-task-tree-session-066.yaml session-064, session-066 106 0.64 h 0.64 h 1.11 h no
codex-task-tree-session-067.yaml session-064, session-067 28 0.14 h 0.14 h 0.32 h no
codex-task-tree-session-068.yaml session-064, session-068 308 1.9 h 1.9 h 2.67 h no
codex-task-tree-session-069.yaml session-064, session-069 190 0.8 h 0.8 h 1.57 h no
codex-task-tree-session-070-review.yaml session-064, session-070 23 0.12 h 0.12 h 0.42 h no
codex-task-tree-session-070.yaml session-064, session-070 114 0.52 h 0.52 h 2.67 h no
codex-task-tree-session-071.yaml session-071 68 0.25 h 0.25 h 0.25 h yes
codex-task-tree-session-072.yaml session-072 1,467 8.64 h 3.65 h 3.65 h yes
codex-task-tree-session-073.yaml session-072, session-073 279 1.81 h 1.81 h 1.81 h yes
codex-task-tree-session-074.yaml session-072, session-074 272 1.58 h 1.58 h 1.9 h yes
codex-task-tree-session-075.yaml session-072, session-075 212 1.41 h 1.41 h 1.75 h no
codex-task-tree-session-078.yaml session-078, session-082 2,401 13.41 h 9.45 h 10.0 h yes
codex-task-tree-session-088.yaml session-088 661 3.21 h 1.43 h 1.43 h yes
codex-task-tree-session-115.yaml session-115 213 19.6 h 6.7 h 6.7 h yes
codex-task-tree-session-118.yaml session-118 59 0.38 h 0.16 h 0.16 h yes
codex-task-tree-session-119.yaml session-119 86 0.51 h 0.25 h 0.25 h yes
codex-task-tree-session-120.yaml session-120 96 0.68 h 0.2 h 0.2 h yes
codex-task-tree-pr137-publication-tail.yaml unattributed 610 4.39 h 1.77 h 1.82 h yes
session-051 2 1 38 28 0 0.05 h
session-053 2 1 25 15 0 0.16 h
session-054 2 2 88 64 0 0.13 h
session-055 1 1 93 56 0 0.16 h
session-077 3 3 148 97 0 0.22 h
session-079 3 1 78 46 0 0.23 h
session-080 4 1 115 77 1 0.28 h
session-081 4 1 87 49 0 0.24 h
session-084 3 1 329 166 0 2.74 h
"""
"""Rows of the campaign's published tables, as they were printed; blanks for commas between columns."""


@functools.cache
def read() -> tuple[Receipt, ...]:
    return tuple(read_receipt(p.name, p.read_bytes()) for p in sorted(RECEIPTS.glob("*.yaml")))


def versions() -> list[Receipt]:
    return list(read())


def claims() -> Claimed:
    claimed = read_snapshot((RECEIPTS / "claims_snapshot_095.json").read_bytes())
    for name, one in read_claims((RECEIPTS / "claims.toml").read_text("utf-8")).items():
        receipts = [name_of(r)[0] for r in one.receipts]
        claimed.add(Claimed({name: Claimant(name, receipts=receipts)}))
    return claimed


def table(sheet: Sheet, title: str) -> Table:
    return next(t for t in sheet.tables if t.title.startswith(title))


def printed(found: Table, columns: int) -> list[str]:
    """Rows as the campaign prints them."""
    return [" ".join(words(c) for c in row[:columns]) for row in found.rows]


def test_the_published_rows_come_out() -> None:
    sheet = foreign_sheet(versions(), claims())

    rows = {*printed(table(sheet, "Intervals"), 7), *printed(table(sheet, "Sessions"), 7)}

    assert len(PUBLISHED.splitlines()) == 31
    assert [line for line in PUBLISHED.splitlines() if line not in rows] == []


def test_every_row_has_a_cell_for_every_head() -> None:
    sheet = foreign_sheet(versions(), claims())

    for found in sheet.tables:
        assert {len(r) for r in (*found.rows, found.foot or found.heads)} == {len(found.heads)}


def test_the_campaign_cost_170_hours_and_not_the_sum_of_its_sessions() -> None:
    published = foreign_sheet(versions(), claims()).data["published"]

    claimed, naive = published["claimed"], published["sumOfDeclared"]

    assert (claimed["wallHours"], naive["wallHours"]) == ("170.08", "541.75")
    assert (claimed["turns"], claimed["toolCalls"], claimed["errors"]) == (29742, 16800, 349)
    assert (naive["turns"], naive["toolCalls"], naive["errors"]) == (82235, 44969, 1022)


def test_the_shared_row_says_how_many_share() -> None:
    sheet = foreign_sheet(versions(), claims())

    shared = sheet.data["sessions"]["shared"]
    row = table(sheet, "Sessions").rows[-1]

    assert row[0] == "shared by 15 sessions"
    assert len(shared["by"]) == 15 and shared["rollups"] == 3


def test_own_rows_and_the_shared_row_are_what_is_claimed() -> None:
    data = foreign_sheet(versions(), claims()).data

    rows = [*data["sessions"]["own"], data["sessions"]["shared"]]

    claimed = data["rollups"]["claimed by a session"]
    for figure in ("rollups", "turns", "toolCalls", "errors"):
        assert sum(r[figure] for r in rows) == claimed[figure]


def test_receipts_that_nobody_claims_are_counted() -> None:
    nobody = Claimed()

    rollups = foreign_sheet(versions(), nobody).data["rollups"]

    assert rollups["claimed by a session"]["turns"] == 0
    assert rollups["claimed by none"] == rollups["measured"]
    assert rollups["measured"]["rollups"] == 15


def test_a_superseded_version_never_counts_whatever_the_order() -> None:
    orders = [versions(), versions()[::-1], versions() * 2]

    sheets = [foreign_sheet(order, claims()).data for order in orders]

    assert sheets[0] == sheets[1] == sheets[2]
    assert {one["file"]: one["why"] for one in sheets[0]["leftOut"]} == {
        "codex-task-tree-session-072@1e17510-superseded.yaml": "superseded",
        "codex-task-tree-session-092@0e1961e-superseded.yaml": "superseded; the later version is not here",
    }


def test_intervals_that_may_overlap_are_marked_and_not_added() -> None:
    found = foreign_sheet(versions(), claims()).data["intervals"]

    inside = {
        r["receipt"].removeprefix("codex-task-tree-session-"): (r["inside"]["receipt"][-3:], r["inside"]["proved"])
        for r in found["rows"]
        if r["inside"]
    }

    proved = {name: host for name, (host, sure) in inside.items() if sure}
    perhaps = {name: host for name, (host, sure) in inside.items() if not sure}
    assert proved == {"066": "064", "067": "064", "069": "064", "070-review": "064", "070": "064", "075": "072"}
    assert perhaps == {"065": "064", "068": "064", "071": "064", "073": "072", "074": "072"}
    assert float(found["additive"]["agentSecondsAtLeast"]) < float(found["additive"]["agentSecondsAtMost"])


def test_a_tree_that_is_off_by_one_token_is_not_proved_to_be_inside() -> None:
    trees = {r.name: r.measured for r in versions() if isinstance(r.measured, Interval) and not r.superseded}
    child = trees["codex-task-tree-session-067"]
    responses, given, *more = child.before["gpt-5.6-sol", "xhigh"]
    off = structs.replace(child, before={**child.before, ("gpt-5.6-sol", "xhigh"): (responses, given + 1, *more)})
    mark = {r.name: r for r in versions() if not r.superseded}

    whole = foreign_sheet(mark.values(), Claimed()).data["intervals"]["rows"]
    mark["codex-task-tree-session-067"] = structs.replace(mark["codex-task-tree-session-067"], measured=off)
    changed = foreign_sheet(mark.values(), Claimed()).data["intervals"]["rows"]

    assert sum(r["inside"] is not None and r["inside"]["proved"] for r in whole) == 6
    assert sum(r["inside"] is not None and r["inside"]["proved"] for r in changed) == 0


def test_the_share_of_an_interval_that_was_timed_is_told() -> None:
    rows = {r["receipt"]: r for r in foreign_sheet(versions(), claims()).data["intervals"]["rows"]}

    overnight = rows["codex-task-tree-session-115"]

    assert round(overnight["instrumentedSeconds"] / overnight["agentSeconds"] * 100, 1) == 3.3
    assert round(overnight["instrumentedSeconds"] / 3600, 2) == 0.65


def test_neighbouring_intervals_of_one_root_follow_each_other() -> None:
    trees = {r.name: r.measured for r in versions()}
    chain = [trees[f"codex-task-tree-session-{n}"] for n in (118, 119, 120)]

    ends = [(a.end, b.start) for a, b in itertools.pairwise(t for t in chain if isinstance(t, Interval))]

    assert all(end == start for end, start in ends)
    assert sum(t.agent_seconds for t in chain if isinstance(t, Interval)) == 5639.976


def test_an_interval_of_the_same_root_is_inside_for_certain() -> None:
    big = next(r for r in versions() if r.name == "codex-task-tree-session-072" and not r.superseded)
    small = next(r for r in versions() if r.name == "codex-task-tree-session-072" and r.superseded)
    renamed = read_receipt("part.yaml", (RECEIPTS / small.file).read_bytes())

    found = foreign_sheet([big, renamed], Claimed()).data["intervals"]

    assert [r["inside"] for r in found["rows"]] == [None, {"receipt": big.name, "proved": True}]
    assert isinstance(big.measured, Interval)
    assert found["additive"]["agentSecondsAtMost"] == str(big.measured.agent_seconds)


def test_a_receipt_that_is_declared_and_not_here_is_no_measurement() -> None:
    claimed = Claimed(
        {
            "a": Claimant("a", receipts=["missing"]),
            "b": Claimant("b"),
            "c": Claimant("c", receipts=["a0083f0c8eb083ddb"]),
        }
    )

    coverage = foreign_sheet(versions(), claimed).data["coverage"]

    assert coverage["measured"] == ["c"]
    assert {one["why"]: one["sessions"] for one in coverage["unmeasured"]} == {
        "it declares no receipt": ["b"],
        "the receipts it declares are not here": ["a"],
    }
    assert coverage["total"] == 3
