"""Print the completion script of a shell: `source <(asrd completion bash)`. Session ids are completed too."""

from __future__ import annotations

import argparse
import contextlib
import sys

from asrd.errors import AsrdError

BASH = """_asrd() {
  local cur=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=($(compgen -W "$(asrd completion --words "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)" -- "$cur"))
}
complete -o default -F _asrd asrd
"""
ZSH = """#compdef asrd
_asrd() {
  local -a words_; words_=(${(f)"$(asrd completion --words ${words[2,CURRENT-1]} 2>/dev/null)"})
  compadd -a words_
}
compdef _asrd asrd
"""
FISH = """complete -c asrd -f -a '(asrd completion --words (commandline -opc)[2..-1] 2>/dev/null)'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), help="the shell")
    parser.add_argument("--words", nargs=argparse.REMAINDER, help="what may come after these words (for the scripts)")


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    if args.words is not None:
        sys.stdout.write("\n".join(words(args.words)) + "\n")
        return 0
    sys.stdout.write({"bash": BASH, "zsh": ZSH, "fish": FISH}[args.shell or "bash"])
    return 0


def words(before: list[str]) -> list[str]:
    """What may come next."""
    from asrd import cli

    if not before:
        return cli.commands()
    name = cli.ALIASES.get(before[0], before[0])
    if name not in cli.commands() or hasattr(cli.load(name), "main"):
        return []
    parser = cli.parser_of(name)
    actions = parser._actions  # argparse has no public way to list its actions
    for action in actions:
        if before[-1] in action.option_strings and action.choices:
            return [str(c) for c in action.choices]
    found = [o for a in actions for o in a.option_strings if o.startswith("--")]
    if any(a.dest == "session" and not a.option_strings for a in actions):
        from asrd.commands._common import asker

        with contextlib.suppress(AsrdError):
            sessions = asker().ask("sessions.list", {"limit": 200})["sessions"]
            found += ["last", *(s["sessionId"] for s in sessions)]
    for action in actions:
        if not action.option_strings and action.choices:
            found += [str(c) for c in action.choices]
    return found
