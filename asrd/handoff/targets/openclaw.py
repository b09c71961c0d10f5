"""OpenClaw: `openclaw agent --local --message TEXT` runs one turn without its gateway, in a session of its own."""

from asrd.handoff.targets.base import NEW_SESSION, Target

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
        NEW_SESSION,
        "--message",
        prompt,
    ),
    checked="2026.9.6",
    note="It runs one turn; the same --session-id goes on from there.",
)
