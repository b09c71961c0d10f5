"""OpenCode: `opencode --prompt TEXT` in the terminal, `opencode run TEXT` without one (standard input is added)."""

from asrd.handoff.targets.base import Target

TARGET = Target(
    name="opencode",
    aliases=("oc",),
    program="opencode",
    interactive=lambda prompt: ("--prompt", prompt),
    headless=lambda prompt: ("run", "{options}", "--", prompt),
    piped=("run", "{options}"),
    model=lambda name: ("--model", name),
    permissions={"all": ("--auto",)},
    pipe_first=True,
    checked="1.18.33",
)
