"""What a brief looks like, and what cannot break it."""

import json

from asrd.handoff import Ref, brief, render
from asrd.handoff.render import bracket, code, fenced, quoted
from tests.handoff.build import Story, work


def test_a_fence_is_longer_than_any_in_it() -> None:
    assert fenced("a") == "```data\na\n```"
    assert fenced("x ```` y") == "`````data\nx ```` y\n`````"


def test_every_line_of_a_quotation_is_marked() -> None:
    assert quoted("# a\n\nb") == "> # a\n>\n> b"


def test_code_stays_on_its_line() -> None:
    assert code("a\nb") == "`a⏎b`"
    assert code("echo `date`") == "`` echo `date` ``"


def test_many_records_are_named_by_the_first_and_the_last() -> None:
    refs = tuple(Ref(n % 2, f"r{n}") for n in range(9))

    assert bracket(refs) == "[r0, s1:r1, s1:r7, r8]"
    assert bracket(()) == "[no record]"


def test_the_json_holds_the_same_items_with_their_reasons() -> None:
    story = Story()
    story.asks("Fix it.")
    story.runs("make test", 2, "boom")

    made = brief(work(story), target="codex")
    given = json.loads(render(made, "json"))

    assert given["schema"] == "asrd.handoff/1" and given["target"] == "codex" and given["token"] == made.token
    assert given["tokens"] <= given["budget"]
    opened = next(s for s in given["sections"] if s["name"] == "open")
    assert opened["items"][0] == {
        "text": "Fails: `make test`: exit 2",
        "refs": [{"session": 0, "record": "r2"}, {"session": 0, "record": "r3"}],
        "voice": "data",
        "why": "a command whose last run failed",
        "quote": "boom",
        "left_out": 0,
    }
