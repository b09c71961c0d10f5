"""What really happened is found in the brief, on captures and on long generated sessions."""

from pathlib import Path

import pytest

from asrd.handoff import SessionRecords, brief, render, slim
from asrd.records import decode, encode
from tests.handoff.blind import HELD_OUT, SEEN, Pool, blind
from tests.handoff.recall import CAPTURES, captured, generated, happened, share, transcript, within

FOLDERS = sorted(p.parent for p in CAPTURES.glob("*/S[124]*/truth.json") if len(happened(p.parent)) >= 2)

NOT_IN_THE_SOURCE = {("S1-v1.0.98", "failing command"), ("S1-v1.3.5", "file"), ("S1-v2.0.2", "file")}
"""Facts that the native files do not hold: Claude Code 1.0.98 wrote no exit code; in Vibe 1 and early 2 the check ran between
the only look at the file and its edit, and no result shows contents or a difference."""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_brief_of_4000_tokens_holds_what_happened_in_a_capture(folder: Path) -> None:
    work, facts = captured(folder)
    held = [f for f in facts if (folder.name, f.kind) not in NOT_IN_THE_SOURCE]

    text = render(brief(work, 4000))

    assert len(held) >= 2 and work.sessions
    assert share(held, text) >= 0.95, [f for f in held if share([f], text) < 1]


@pytest.mark.parametrize("seed", range(3))
def test_a_brief_of_8000_tokens_holds_what_happened_in_500_turns(seed: int) -> None:
    work, facts = generated(seed)
    told = transcript(list(work.sessions[0].records))

    found = share(facts, render(brief(work, 8000)))

    assert found >= 0.9
    assert found > 5 * share(facts, within(told, 8000, end=True))


@pytest.mark.parametrize("pool", [SEEN, HELD_OUT], ids=["seen", "held out"])
def test_words_that_no_rule_was_written_for_are_found_too(pool: Pool) -> None:
    work, facts = blind(1, pool)
    told = transcript(list(work.sessions[0].records))

    text = render(brief(work, 8000))

    assert share(facts, text) >= 0.9
    assert share(facts, text) > 3 * share(facts, within(told, 8000, end=True))
    for kind in ("goal", "open step", "last prompt", "question", "failing command", "failure output", "commit"):
        assert share([f for f in facts if f.kind == kind], text) == 1, kind


def test_a_planted_secret_in_any_field_of_a_capture_stays_out_of_the_brief() -> None:
    key = "ghp_" + "Zx9Q" * 9
    work, _ = captured(CAPTURES / "claude-code" / "S1")
    session = work.sessions[0]
    lines = [encode(r).decode().replace("add", f"add {key} ") if r.seq else encode(r).decode() for r in session.records]
    planted = [decode(line.encode()) for line in lines]

    text = render(brief(type(work)([SessionRecords(session.key, planted)], work.now), 16000))

    assert key not in text and "[removed: github-token]" in text


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_brief_of_slim_records_reads_the_same(folder: Path) -> None:
    whole, _ = captured(folder)

    slimmed = [SessionRecords(s.key, [slim(r) for r in s.records]) for s in whole.sessions]

    assert render(brief(type(whole)(slimmed, whole.now), 8000)) == render(brief(whole, 8000))
