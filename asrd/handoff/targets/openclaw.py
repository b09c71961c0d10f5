"""OpenClaw: `openclaw agent --local --message TEXT` runs one turn without its gateway, in a session of its own."""

from asrd.handoff.brief import find_token
from asrd.handoff.targets.base import Target


def session_id(prompt: str) -> str:
    """A new session's id: from the token of the brief, so that no session in use is taken over."""
    token = find_token(prompt)
    return f"handoff-{str(token).rpartition('-')[2]}" if token else "handoff"


TARGET = Target(
    name="openclaw",
    program="openclaw",
    interactive=None,
    headless=lambda prompt: (
        "agent",
        "--local",
        "--agent",
        "main",
        "--session-id",
        session_id(prompt),
        "--message",
        prompt,
    ),
    checked="2026.9.6",
    note="It runs one turn; the same --session-id goes on from there.",
)
