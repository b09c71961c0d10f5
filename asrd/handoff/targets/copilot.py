"""GitHub Copilot CLI: `-i TEXT` stays in the terminal, `-p TEXT` answers once."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="copilot",
    aliases=("copilot-cli",),
    program="copilot",
    interactive=lambda prompt: ("-i", prompt),
    headless=lambda prompt: ("-p", prompt),
    model=lambda name: ("--model", name),
    permissions={"edits": ("--allow-tool", "write"), "all": ("--allow-all-tools",)},
    reads_outside=lambda folder: ("--add-dir", folder),
    checked="1.0.102",
)
