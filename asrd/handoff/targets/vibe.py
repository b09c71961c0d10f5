"""Mistral Vibe: a prompt argument in the terminal, `-p TEXT` without one; `-p` without a prompt reads standard input.

`--trust` is for this start only: without it a folder that was never trusted asks before the prompt is taken.
"""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="vibe",
    aliases=("mistral-vibe",),
    program="vibe",
    interactive=lambda prompt: ("--trust", "{options}", "--", prompt),
    headless=lambda prompt: ("--trust", "{options}", f"--prompt={prompt}"),
    piped=("--trust", "{options}", "-p"),
    permissions={"edits": ("--agent", "accept-edits"), "all": ("--agent", "auto-approve")},
    reads_outside=lambda folder: ("--add-dir", folder),
    checked="3.0.2",
)
