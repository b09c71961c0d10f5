"""Claude Code: a prompt argument, in the terminal or with `-p`; `-p` without a prompt reads standard input."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="claude",
    aliases=("claude-code", "cc"),
    program="claude",
    interactive=lambda prompt: ("--", prompt),
    headless=lambda prompt: ("-p", "{options}", "--", prompt),
    piped=("-p", "{options}"),
    model=lambda name: ("--model", name),
    permissions={"edits": ("--permission-mode", "acceptEdits"), "all": ("--dangerously-skip-permissions",)},
    reads_outside=lambda folder: ("--add-dir", folder),
    checked="2.1.332",
)
