"""Kimi Code: `kimi -p TEXT` answers once, asking for nothing; `kimi -c` goes on from there in the terminal."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="kimi",
    aliases=("kimi-code",),
    program="kimi",
    interactive=None,
    headless=lambda prompt: ("-p", prompt),
    model=lambda name: ("--model", name),
    reads_outside=lambda folder: ("--add-dir", folder),
    checked="2.1.0",
    note="It answers once and ends; `kimi -c` goes on in the terminal.",
)
