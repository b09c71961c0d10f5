"""Codex: `codex PROMPT` in the terminal, `codex exec PROMPT` without one; `codex exec -` reads standard input."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="codex",
    aliases=("cod",),
    program="codex",
    interactive=lambda prompt: ("--", prompt),
    headless=lambda prompt: ("exec", "--skip-git-repo-check", "{options}", "--", prompt),
    piped=("exec", "--skip-git-repo-check", "{options}", "-"),
    model=lambda name: ("--model", name),
    permissions={
        "edits": ("--sandbox", "workspace-write"),
        "all": ("--dangerously-bypass-approvals-and-sandbox",),
    },
    checked="0.171.0",
)
