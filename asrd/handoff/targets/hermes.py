"""Hermes: `hermes chat -q TEXT` takes one prompt and answers it; `hermes -c` goes on from there in the terminal."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="hermes",
    aliases=("hermes-agent",),
    program="hermes",
    interactive=None,
    headless=lambda prompt: ("chat", "{options}", "-Q", "-q", prompt),
    model=lambda name: ("--model", name),
    permissions={"all": ("--yolo",)},
    checked="0.19.0",
    note="It answers once and ends; `hermes -c` goes on in the terminal.",
)
