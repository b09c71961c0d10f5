"""Contents between edits are made again only where their digest is the recorded one; origins follow lines through them."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrd.attribution import BASE, Edit, Origin, Range, digest, lines_of, patched, ranges, trace

texts = st.lists(st.sampled_from(["a", "b", "", "c c", "}"]), max_size=8).map(
    lambda ls: "".join(line + "\n" for line in ls)
)


def origin(record: str, session: str = "s") -> Origin:
    return Origin("example", session, "", record, None, None, None, "content")


def edit(
    before: str | None, after: str, record: str = "r1", session: str = "s", at: float | None = 1.0, diff: bool = True
) -> Edit:
    told = "".join(difflib.unified_diff((before or "").splitlines(True), after.splitlines(True)))
    return Edit(
        origin(record, session),
        1,
        at,
        None if before is None else digest(before),
        digest(after),
        told if diff else None,
    )


@given(texts, texts)
def test_a_diff_leads_to_the_other_content_both_ways(before: str, after: str) -> None:
    diff = "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True)))

    if before != after:
        assert after in patched(before, diff)
        assert before in patched(after, diff, back=True)


@given(texts, texts, texts)
def test_lines_of_a_whole_chain_are_of_its_edits_or_were_there(first: str, second: str, third: str) -> None:
    found = trace(first, third, [edit(first, second, "r1"), edit(second, third, "r2", at=2.0)], 9.0)

    assert len(found) == len(lines_of(third))
    assert all(o is BASE or (isinstance(o, Origin) and o.record in ("r1", "r2")) for o in found)


@given(texts, texts)
def test_without_edits_nothing_is_known_but_what_stayed(before: str, after: str) -> None:
    assert all(o is None or o == BASE for o in trace(before, after, [], None))


def test_an_edit_that_was_made_later_did_not_lead_to_a_content() -> None:
    one = edit("a\n", "a\nb b b\n", at=100.0)

    assert trace("a\n", "a\nb b b\n", [one], 50.0) == [BASE, None]
    assert trace("a\n", "a\nb b b\n", [one], 100.0) == [BASE, origin("r1")]


def test_a_chain_is_followed_by_digests_where_contents_between_cannot_be_made_again() -> None:
    edits = [
        edit("a\n", "a\nx x x\n", "r1", at=1.0, diff=False),
        edit("a\nx x x\n", "a\nx x x\ny\n", "r2", at=2.0, diff=False),
    ]

    found = trace("a\n", "a\nx x x\ny\n", edits, None)

    assert [o and isinstance(o, Origin) and o.session for o in found[1:]] == [("example", "s", "")] * 2


def test_digests_alone_do_not_tell_the_lines_of_two_sessions_apart() -> None:
    edits = [
        edit("a\n", "a\nx x x\n", "r1", "one", 1.0, diff=False),
        edit("a\nx x x\n", "a\nx x x\ny\n", "r2", "two", 2.0, diff=False),
    ]

    assert trace("a\n", "a\nx x x\ny\n", edits, None)[1:] == [None, None]


def test_a_line_that_stands_twice_is_not_told_across_a_gap() -> None:
    found = trace("a\n", "a\nsame one\nsame one\n", [edit("a\n", "a\nsame one\n")], None)

    assert found == [BASE, None, None]


def test_a_diff_that_does_not_fit_gives_nothing() -> None:
    assert patched("a\nb\n", "@@ -1,1 +1,1 @@\n-zzz\n+b\n") == []


@pytest.mark.parametrize("text", ["", "a", "a\n", "\n", "a\n\n"])
def test_lines_are_counted_as_git_does(text: str) -> None:
    assert len(lines_of(text)) == text.count("\n") + bool(text and not text.endswith("\n"))


def test_lines_of_one_origin_are_one_range() -> None:
    one = origin("r1")

    assert ranges([(1, one), (2, one), (4, one), (5, None)]) == [Range(1, 2, one), Range(4, 4, one), Range(5, 5, None)]
