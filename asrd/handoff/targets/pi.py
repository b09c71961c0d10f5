"""Pi: a prompt argument, in the terminal or with `-p`. It asks for no permissions. An argument `@file` is attached."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="pi",
    program="pi",
    interactive=lambda prompt: (prompt,),
    headless=lambda prompt: ("-p", "{options}", prompt),
    model=lambda name: ("--model", name),
    checked="1.6.0",
)
