"""Cursor's command line agent: a prompt argument, in the terminal or with `-p`. From its documents, not looked at."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="cursor",
    aliases=("cursor-agent",),
    program="cursor-agent",
    interactive=lambda prompt: (prompt,),
    headless=lambda prompt: ("-p", "{options}", prompt),
    model=lambda name: ("--model", name),
    permissions={"all": ("--force",)},
)
