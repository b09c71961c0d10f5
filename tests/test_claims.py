"""The claims file: read strictly, changed one claim at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrd.claims import (
    HEAD,
    Claim,
    ClaimsUnreadable,
    IntervalRef,
    SessionRef,
    quoted,
    read_claims,
    with_claim,
    without_claim,
)

ONE = SessionRef("claude-code", "143fb411")
TWO = SessionRef("codex", "01a2", "root-1")
FILE = """\
# ours
[claim.a]  # the first
title = "A"
sessions = ["claude-code:143fb411"]
# between

[claim."b c"]
phases = 5
intervals = [{ session = "codex:01", since = 2026-09-02T00:15:00Z, until = "2026-09-02T02:00:00Z" }]
"""
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
refs = st.builds(
    SessionRef,
    agent=st.from_regex(r"[a-z-]{1,9}", fullmatch=True),
    session_id=texts.filter(bool),
    namespace=texts,
)
claims = st.builds(
    Claim,
    name=texts.filter(bool),
    title=st.none() | texts,
    phases=st.integers(0, 99) | st.lists(texts, max_size=3),
    sessions=st.lists(refs, max_size=3),
    intervals=st.lists(st.builds(IntervalRef, session=refs, since=texts.filter(bool), until=texts.filter(bool)), max_size=2),
    receipts=st.lists(texts, max_size=3),
    alone=st.booleans(),
)  # fmt: skip


def test_a_claims_file_says_who_claims_what() -> None:
    text = FILE

    found = read_claims(text)

    assert found["a"] == Claim(name="a", title="A", sessions=[ONE])
    assert found["b c"].phase_count == 5
    assert found["b c"].intervals == [
        IntervalRef(SessionRef("codex", "01"), "2026-09-02T00:15:00+00:00", "2026-09-02T02:00:00Z")
    ]


def test_changing_a_claim_leaves_every_other_line_as_it_stands() -> None:
    changed = Claim(name="a", title="new", sessions=[ONE, TWO])

    text = with_claim(FILE, changed)

    assert read_claims(text)["a"] == changed
    assert text.startswith("# ours\n") and text.endswith(FILE[FILE.index('[claim."b c"]') :])


def test_claiming_the_same_again_changes_nothing() -> None:
    once = with_claim("", Claim(name="a", sessions=[ONE]))

    twice = with_claim(once, Claim(name="a", sessions=[ONE]))

    assert twice == once
    assert once.startswith(HEAD)


def test_a_claim_that_is_taken_back_is_gone_and_the_others_stay() -> None:
    text = without_claim(FILE, "a")

    assert list(read_claims(text)) == ["b c"]
    assert without_claim(text, "a") == text


@given(st.lists(claims, max_size=4, unique_by=lambda c: c.name))
def test_what_is_written_is_read_back(given: list[Claim]) -> None:
    text = ""

    for one in given:
        text = with_claim(text, one)

    assert list(read_claims(text).values()) == given


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[claim.a]\nsesions = []", "claim.a.sesions"),
        ("[claims.a]\n", "claims"),
        ("[claim.a]\nsessions = ['noharness']", "claim.a.sessions"),
        ("[claim.a]\nsessions = [5]", "claim.a"),
        ("[claim.a]\nintervals = [{ session = 'codex:1', since = 'x' }]", "claim.a.intervals.until"),
        ("[claim.a]\ntitle = 5", "claim.a"),
        ("claim = 5", "claim"),
        ("[claim.a", "the file"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_its_place(text: str, key: str) -> None:
    with pytest.raises(ClaimsUnreadable) as refused:
        read_claims(text)

    assert refused.value.key == key


def test_a_layout_in_which_one_claim_cannot_be_changed_alone_is_refused() -> None:
    text = 'claim.a.title = "A"\nclaim.b.title = "B"\n'

    with pytest.raises(ClaimsUnreadable) as refused:
        with_claim(text, Claim(name="a", title="new"))

    assert "by hand" in str(refused.value)


def test_a_header_inside_a_text_is_no_header() -> None:
    text = '[claim.a]\ntitle = """\n[claim.b]\nx"""\n'

    with pytest.raises(ClaimsUnreadable):
        with_claim(text, Claim(name="a", title="new"))

    assert list(read_claims(with_claim(text, Claim(name="c")))) == ["a", "c"]


def test_odd_characters_are_written_as_toml_reads_them() -> None:
    title = '\x7f\x00"\\\\é😀'
    text = f"[claim.a]\ntitle = {quoted(title)}\n"

    found = read_claims(text)

    assert found["a"].title == title
