"""Gemini CLI: `-i TEXT` stays in the terminal, `-p TEXT` answers once; standard input comes before the prompt."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="gemini",
    aliases=("gemini-cli", "gmi"),
    program="gemini",
    interactive=lambda prompt: (f"--prompt-interactive={prompt}",),
    headless=lambda prompt: (f"--prompt={prompt}",),
    piped=(),
    model=lambda name: ("--model", name),
    permissions={"edits": ("--approval-mode", "auto_edit"), "all": ("--approval-mode", "yolo")},
    reads_outside=lambda folder: ("--include-directories", folder),
    checked="0.61.0",
)
