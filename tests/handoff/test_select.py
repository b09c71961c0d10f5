"""What comes into a brief first, and what goes out of it when there is no room."""

import hashlib
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asrd.handoff import BudgetTooSmall, brief, estimate, render, slim
from asrd.handoff_token import find_token
from asrd.records import (
    Native,
)
from tests.handoff.build import COMMIT, SHA, Story, a_session, markdown, section, work


def test_a_brief_holds_what_a_successor_needs_each_with_its_record() -> None:
    story = a_session()

    text = markdown(story)

    assert section(text, "Goal") == "- [r2]\n> Fix add so that ./check.sh passes, then commit.\n"
    assert "“Now write the docs in French.” Answered: “Done.” [r16]" in section(text, "What the user asked, in order")
    assert "> No, write them in English instead. You must never touch mul." in section(text, "Last exchange")
    assert "> The link is broken. Shall I remove it?" in section(text, "Last exchange")
    assert f"`calc.py` modified in 2 changes; sha256 {SHA}, 10 bytes" in section(text, "Files")
    assert "`./check.sh`: exit 0 in the last of 2 runs; before: exit 101" in section(text, "Commands")
    assert "add(2,3) = 5\nVERSION is missing" in section(text, "Commands")
    assert f"commit {COMMIT}: “fix add”" in section(text, "Version control")
    assert "- [in_progress] write docs [r19]\n- [pending] push [r19]" in section(text, "Plan")
    assert "Fails: `make docs`: exit 2" in section(text, "Open now")
    assert "make: *** [docs] Error 1" in section(text, "Open now")
    assert "not answered: “Shall I remove it?”" in section(text, "Open now")
    assert "the agent: “I decided to keep mul as it is because it is tested.”" in section(
        text, "Constraints and decisions"
    )
    assert "environment" not in text


def test_a_prompt_and_the_one_it_corrects_come_in_before_the_others() -> None:
    story = Story()
    story.asks("Build it.")
    for n in range(60):
        story.asks(f"Write part {n} of the long report about the things that were measured in that week, with care.")
        story.says(f"Part {n} is written.")
    wish = story.asks("Store the dates as text.")
    story.says("Stored.")
    correction = story.asks("Actually, store the dates as numbers.")
    story.says("Stored as numbers.")
    for n in range(60):
        story.asks(f"Check part {n} of the long report about the things that were measured in that week, with care.")
    story.asks("Go on.")

    text = markdown(story, 1200)

    asked = section(text, "What the user asked, in order")
    assert (
        f"“Store the dates as text.” Answered: “Stored.” [{wish}]" in asked
        or f"“Store the dates as text.” [{wish}]" in asked
    )
    assert "(worded as a correction) “Actually, store the dates as numbers.”" in asked
    assert asked.index(f"[{wish}]") < asked.index(f"[{correction}]")
    assert "more left out for the budget" in asked


@pytest.mark.parametrize("budget", [700, 1000, 2000, 4000, 16000])
def test_a_brief_is_never_over_its_budget(budget: int) -> None:
    story = a_session()
    rng = random.Random(3)
    for n in range(200):
        story.asks(f"Wish {n}: " + "word " * rng.randrange(200))
        story.runs(f"make part{n} " + "x" * rng.randrange(300), rng.choice([0, 1, None]), "line\n" * rng.randrange(400))
        story.changes(f"src/part{n}.py", after=hashlib.sha256(b"%d" % n).hexdigest(), diff="+x\n" * rng.randrange(300))
        story.says("Answer. " * rng.randrange(100) + "I decided it because it is so.")

    made = brief(work(story), budget)

    assert made.tokens == estimate(render(made)) <= budget
    assert made.tokens > budget * 0.8


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["asks", "says", "runs", "changes"]), st.text(max_size=300)), max_size=12),
    st.integers(400, 3000),
)
def test_any_text_keeps_the_budget_and_its_one_token(parts: list[tuple[str, str]], budget: int) -> None:
    story = Story()
    for what, text in parts:
        getattr(story, what)(text)

    made = brief(work(story), budget)
    text = render(made)

    assert made.tokens == estimate(text) <= budget
    assert str(find_token(text)) == made.token
    assert [line for line in text.split("\n") if line.startswith("## ")] == [f"## {s.title}" for s in made.sections]


def test_a_budget_without_room_for_the_head_is_refused_with_what_it_needs() -> None:
    with pytest.raises(BudgetTooSmall) as refused:
        brief(work(a_session()), 50)

    needed = int(refused.value.facts["needed"])
    assert brief(work(a_session()), needed).tokens <= needed


def test_a_small_budget_keeps_the_goal_and_what_fails_and_counts_the_rest() -> None:
    text = markdown(a_session(), 420)

    assert "> Fix add so that ./check.sh passes, then commit." in text
    assert "Fails: `make docs`: exit 2" in text
    assert "broken link" not in text


def test_the_same_work_gives_the_same_brief() -> None:
    assert markdown(a_session()) == markdown(a_session())
    assert render(brief(work(a_session())), "json") == render(brief(work(a_session())), "json")


def test_a_brief_of_slim_records_is_the_same() -> None:
    story = a_session()
    story.records.insert(-1, Native(seq=0, id="x", native_type="noise", data={"big": "x" * 1000}))
    for n, record in enumerate(story.records):
        record.seq, record.id = n, f"r{n}" if n else "h"
    whole = markdown(story)

    story.records = [slim(r) for r in story.records]

    assert markdown(story) == whole
