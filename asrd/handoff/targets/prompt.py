"""Any other program, or a person: the brief goes to standard output, to be pasted or piped."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="prompt",
    aliases=("stdout", "text"),
    program="",
    interactive=None,
    headless=lambda prompt: (),
    piped=(),
    checked="-",
)
