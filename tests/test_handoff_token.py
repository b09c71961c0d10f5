"""The token that links a session to the brief it began with."""

import subprocess
import sys

from asrd.handoff_token import Token, find_token, quiet_tokens, session_digest
from asrd.recorders.base import StreamKey

KEY = StreamKey("codex", "01a22abf-7916-7f20-b35c-e52e5017a6b6")


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


def test_no_question_but_that_for_a_brief_loads_what_makes_briefs() -> None:
    script = "import sys, asrd.commands.usage; print('asrd.handoff' in sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert loaded.strip() == "False"
