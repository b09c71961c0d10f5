"""The document says of each form what the captures show, and what the form says of itself."""

from tests.export.captured import given
from tests.export.losses import DOCUMENT, counted, held, written


def test_the_table_of_losses_is_what_the_captures_show() -> None:
    text = DOCUMENT.read_text()

    assert written(text) == text, "make it anew: python -m tests.export.losses"


def test_asr_holds_every_fact() -> None:
    found = counted(given("claude-code/S2"), "asr")

    assert found["calls (by id)"][0] > 3
    assert all(every == some for every, some in found.values())


def test_a_fact_that_is_not_there_is_seen_as_lost() -> None:
    assert not held("not said", "sts", '{"content":"said"}') and held("said", "sts", '{"content":"said"}')
    assert not held("\0r7", "atif", '{"recordIds":["r77"]}') and held("\0r7", "atif", '["r7"]')
