"""The estimate of tokens, and the token that links."""

from hypothesis import given
from hypothesis import strategies as st

from asrd.handoff import Token, estimate, find_token, session_digest
from asrd.handoff.brief import quiet_tokens
from asrd.recorders.base import StreamKey

KEY = StreamKey("codex", "01a22abf-7916-7f20-b35c-e52e5017a6b6")


def test_the_estimate_counts_as_it_says() -> None:
    assert estimate("") == 0
    assert estimate("letter letters") == 1 + 2
    assert estimate("1234 56") == 2 + 1
    assert estimate("a();\n    b") == 1 + 2 + 1 + 1
    assert estimate("é€") == 3


@given(st.lists(st.text(max_size=60), max_size=6))
def test_pieces_are_never_counted_as_less_than_the_whole(pieces: list[str]) -> None:
    assert estimate("\n".join(pieces)) <= sum(estimate(p) + 1 for p in pieces)


def test_a_token_is_found_in_a_prompt_and_names_its_session() -> None:
    token = Token(session_digest(KEY), 70, "claude")

    found = find_token(f"# Handoff brief\nasrd-handoff: {token}\n\nYou take over")

    assert found == token
    assert str(token) == str(Token(session_digest(KEY), 70, "claude"))
    assert session_digest(KEY) != session_digest(StreamKey("codex", KEY.session_id, "other"))


def test_a_token_whose_check_digits_are_wrong_is_none() -> None:
    text = str(Token(session_digest(KEY), 70, "claude"))

    assert find_token(f"asrd-handoff: {text[:-1]}{'0' if text[-1] != '0' else '1'}") is None
    assert find_token(f"asrd-handoff: {text.replace('-70-', '-71-')}") is None
    assert find_token("asrd-handoff: what is that?") is None


def test_a_quoted_token_is_passed_over() -> None:
    token = Token(session_digest(KEY), 70, "claude")

    assert find_token(quiet_tokens(f"asrd-handoff: {token}")) is None
