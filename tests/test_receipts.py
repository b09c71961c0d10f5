"""Receipts are read strictly, and the latest version of each is in force."""

from pathlib import Path

import pytest

from asrd.receipts import (
    CLAUDE,
    CODEX,
    Interval,
    Log,
    NotAReceipt,
    in_force,
    name_of,
    read_receipt,
    read_session_record,
    read_snapshot,
)

RECEIPTS = Path(__file__).parent / "receipts"
TREE = (RECEIPTS / "codex-task-tree-session-119.yaml").read_text("utf-8")
LOG = (RECEIPTS / "a35f6c5f493ae6cf0.yaml").read_text("utf-8")


def problems(text: str) -> list[str]:
    with pytest.raises(NotAReceipt) as refused:
        read_receipt("x.yaml", text.encode())
    return refused.value.problems


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("packing/usage/a.yaml", ("a", None, False)),
        ("7e50@11ce70e.yaml", ("7e50", "11ce70e", False)),
        ("s-072@1e17510-superseded.yaml", ("s-072", "1e17510", True)),
        ("a\\b.json", ("b", None, False)),
        ("a", ("a", None, False)),
    ],
)
def test_a_path_names_a_receipt_and_its_version(path: str, right: tuple[str, str | None, bool]) -> None:
    found = name_of(path)

    assert found == right


def test_the_two_kinds_are_told_apart_by_their_contract() -> None:
    tree, log = read_receipt("t.yaml", TREE.encode()), read_receipt("l.yaml", LOG.encode())

    assert (tree.kind, log.kind) == (CODEX, CLAUDE)
    assert isinstance(tree.measured, Interval) and isinstance(log.measured, Log)
    assert (tree.measured.responses, tree.measured.live, tree.measured.window_seconds) == (86, 3, 894.0)
    assert (log.measured.turns, log.measured.calls, log.measured.wall_seconds) == (38, 28, 170.722)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("    agent_active_seconds: 1841.26", "    agent_active_seconds: 1841.27", "not after less before"),
        ("live_session_count: 3", "live_session_count: 0", "snapshot_incomplete"),
        ("end_cutoff_at: '2026-09-09T16:34:50Z'", "end_cutoff_at: '2026-09-09T16:19:56Z'", "not after the start"),
        ("end_cutoff_at: '2026-09-09T16:34:50Z'", "end_cutoff_at: '2026-09-09T16:34:50'", "no offset"),
        ("CodexTaskTreeDelta/v1", "CodexTaskTreeDelta/v9", "none that is known"),
        ("    root_task_id: 01a082b3-057c-7c62-905c-1a543979e33a\n", "", "root_task_id"),
    ],
)
def test_a_receipt_that_disagrees_with_itself_is_refused(old: str, new: str, word: str) -> None:
    assert old in TREE
    text = TREE.replace(old, new)

    found = problems(text)

    assert any(word in p for p in found), found


def test_a_counter_that_goes_down_is_refused() -> None:
    text = TREE.replace("    task_count: 426", "    task_count: 400")

    found = problems(text)

    assert any("goes down" in p for p in found)


def test_a_log_whose_wall_is_not_its_span_is_refused() -> None:
    text = LOG.replace("wall_seconds: 170.722", "wall_seconds: 171.722")

    found = problems(text)

    assert found == ["span.wall_seconds is 171.722, and the times are 170.722 s apart"]


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff\xfe", b"a: [", b"a: 1\n" * 2_000_000])
def test_what_is_no_receipt_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(NotAReceipt) as refused:
        read_receipt("x.yaml", data)

    assert refused.value.problems


def test_at_most_64_problems_are_told() -> None:
    rows = "".join(f"      k{n}: {n + 1}\n" for n in range(100))
    text = TREE.replace("  after:\n", "  after:\n    more:\n" + rows, 1)

    found = problems(text)

    assert len(found) == 64


def test_the_version_with_the_latest_snapshot_is_in_force_in_any_order() -> None:
    old = read_receipt("s.yaml", (RECEIPTS / "codex-task-tree-session-072@1e17510-superseded.yaml").read_bytes())
    new = read_receipt("s.yaml", (RECEIPTS / "codex-task-tree-session-072.yaml").read_bytes())

    chosen = [in_force(order) for order in ([old, new], [new, old], [new, old, new])]

    assert [c.receipts["s"].sha256 for c in chosen] == [new.sha256] * 3
    assert [[why for _, why in c.left_out] for c in chosen] == [["replaced by s.yaml"]] * 3


def test_claims_of_a_close_report_name_the_receipts() -> None:
    claimed = read_snapshot((RECEIPTS / "claims_snapshot_095.json").read_bytes())

    one = claimed.sessions["session-064"]

    assert claimed.total == 95 and len(claimed.sessions) == 51
    assert one.receipts[0] == "codex-task-tree-session-064" and len(one.receipts) == 8


def test_a_session_record_claims_what_its_front_matter_names() -> None:
    text = (
        "---\nsession:\n  id: session-051\n  title: Tiles\n  workflow_phases: [{name: plan}, {name: build}]\n"
        "  resource_rollups:\n  - packing/campaign/resource-usage/a.yaml\n  - packing/campaign/resource-usage/a.yaml\n---\n# x\n"
    )

    found = read_session_record(text.encode()).sessions["session-051"]

    assert (found.title, found.phases, found.receipts) == ("Tiles", 2, ["a"])
