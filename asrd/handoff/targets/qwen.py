"""Qwen Code: `-i TEXT` stays in the terminal, `-p TEXT` answers once; standard input comes before the prompt."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="qwen",
    aliases=("qwen-code",),
    program="qwen",
    interactive=lambda prompt: (f"--prompt-interactive={prompt}",),
    headless=lambda prompt: (f"--prompt={prompt}",),
    piped=(),
    model=lambda name: ("--model", name),
    permissions={"edits": ("--approval-mode", "auto-edit"), "all": ("--approval-mode", "yolo")},
    reads_outside=lambda folder: ("--include-directories", folder),
    pipe_first=True,
    checked="0.24.4",
)
