"""Whether a tool call is one-off code: a shell command shaped as a Python heredoc or as `python -c`.

The rule is the seed's (`tool_calls.one_off_code`): calls are counted, not commands. A command is read as a shell would
split it, so that what stands in a heredoc's body, in quotes or in a comment is never taken for a command; `$(…)` and
`bash -c '…'` are looked into. Code that a file or another program holds (`python run.py`, `python -m pytest`) is not one-off.
"""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

KEYS = ("command", "cmd", "script")
"""Under which names harnesses give a shell command: text, or the words of one."""
LONGEST = 256 << 10
"""Characters of a command that are read; a longer one is judged by its beginning."""
DEPTH = 8
"""How deep `$(…)` and `bash -c` are looked into."""

_PYTHON = re.compile(r"(?:.*[/\\])?(?:python|pypy)(?:\d+(?:\.\d+)*)?w?(?:\.exe)?")
_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|k|a)?sh")
_WORD = re.compile(r"[^\s'\"\\`$#&|;<>()]+")
_QUOTED = re.compile(r"[^\"\\`$]+")
"""Runs of characters that mean nothing, in a word and in double quotes."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.S)
_BEFORE = {"env", "sudo", "nohup", "time", "timeout", "nice", "ionice", "exec", "command", "stdbuf", "if", "then",
           "else", "elif", "do", "while", "until", "!", "{", "builtin", "setsid", "doas", "chrt", "taskset"}  # fmt: skip
"""Words that a command may stand behind at once, apart from their options and numbers."""
_RUNNERS = {"uv", "uvx", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi", "conda", "mamba", "micromamba", "docker",
            "podman", "kubectl", "xargs", "srun", "parallel", "nix", "devbox", "mise", "rtx", "pyenv", "direnv",
            "xvfb-run"}  # fmt: skip
"""Programs that run another with arguments of their own before it: the first Python in their words is what they run."""


class Simple(msgspec.Struct):
    """One simple command: its words without quotes, and whether a heredoc is its input (its own, or through a pipe)."""

    words: list[str]
    fed: bool = False


def one_off(given: object) -> bool:
    """Whether the input of a tool call is one-off code. `given`: an object, or the JSON of one."""
    if isinstance(given, msgspec.Raw):
        data = bytes(given)
        if b"python" not in data and b"pypy" not in data:
            return False
        given = msgspec.json.decode(data)
    if not isinstance(given, dict):
        return False
    values = cast("dict[str, Any]", given)
    return any(_is_code(values[key]) for key in KEYS if key in values)


def _is_code(value: Any, depth: int = 0) -> bool:
    if isinstance(value, str):
        if "python" not in value and "pypy" not in value:
            return False
        return any(_runs_code(c, depth) for c in commands(value))
    if isinstance(value, list):
        words = cast("list[Any]", value)
        return bool(words) and all(isinstance(w, str) for w in words) and _runs_code(Simple(words), depth)
    return False


def _runs_code(command: Simple, depth: int) -> bool:
    words = command.words
    at = 0
    loose = False
    while at < len(words):
        word = words[at]
        if _PYTHON.fullmatch(word):
            return _python(words[at + 1 :], command.fed)
        if _SHELL.fullmatch(word) and not loose:
            script = _shell_script(words[at + 1 :])
            return depth < DEPTH and script is not None and _is_code(script, depth + 1)
        name = word.rpartition("/")[2]
        if name in _RUNNERS:
            loose = True
        elif not (loose or name in _BEFORE or _ASSIGNMENT.fullmatch(word) or (at and word[:1] in "-0123456789")):
            return False
        at += 1
    return False


def _python(words: list[str], fed: bool) -> bool:
    """Whether Python with these arguments runs code that it is given in the command itself."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "-":
            return fed
        if not word.startswith("-"):
            return False
        if word.startswith("--"):
            at += 2 if word == "--check-hash-based-pycs" else 1
            continue
        for place, letter in enumerate(word[1:], 1):
            if letter == "c":
                return True
            if letter == "m":
                return False
            if letter in "WX":
                at += place == len(word) - 1
                break
        at += 1
    return fed


def _shell_script(words: list[str]) -> str | None:
    """What a shell is given to run by `-c` (also `-lc`); None where it runs a file or nothing."""
    for at, word in enumerate(words):
        if not word.startswith(("-", "+")):
            return None
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            rest = [w for w in words[at + 1 :] if not w.startswith("-")]
            return rest[0] if rest else None
    return None


# ---------------------------------------------------------------- splitting as a shell does


def commands(text: str) -> list[Simple]:
    """The simple commands of a shell text in order, those inside `$(…)` too."""
    reader = _Reader(text[:LONGEST])
    reader.until("")
    return reader.found


class _Reader:
    """Reads a shell text once from left to right."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text, self.at, self.depth = text, 0, depth
        self.found: list[Simple] = []
        self._bodies: list[tuple[str, bool]] = []

    def until(self, end: str) -> None:
        """Reads commands up to `end` (`)` or a backtick, at this depth) or the end of the text."""
        text, size = self.text, len(self.text)
        now = Simple([])
        word: list[str] | None = None
        fed_by_pipe = False
        heredoc_next: bool | None = None

        def close_word() -> None:
            nonlocal word, heredoc_next
            if word is None:
                return
            whole = "".join(word)
            word = None
            if heredoc_next is not None:
                self._bodies.append((whole, heredoc_next))
                heredoc_next = None
                now.fed = True
            elif now.words and now.words[-1] in _REDIRECTIONS:
                now.words.pop()  # a redirection and where it goes
            else:
                now.words.append(whole)

        def close_command(pipe: bool = False) -> None:
            nonlocal now, fed_by_pipe
            close_word()
            now.words = [w for w in now.words if w not in _REDIRECTIONS]
            now.fed = now.fed or fed_by_pipe
            fed_by_pipe = pipe and now.fed
            if now.words:
                self.found.append(now)
            now = Simple([])

        while self.at < size:
            char = text[self.at]
            if end and char == end:
                self.at += 1
                break
            if char == "\\":
                if text[self.at + 1 : self.at + 2] != "\n":
                    word = word if word is not None else []
                    word.append(text[self.at + 1 : self.at + 2])
                self.at += 2
            elif char == "'":
                stop = text.find("'", self.at + 1)
                stop = size if stop < 0 else stop
                word = word if word is not None else []
                word.append(text[self.at + 1 : stop])
                self.at = stop + 1
            elif char == '"':
                word = word if word is not None else []
                word.append(self._quoted())
            elif char == "`" or text.startswith("$(", self.at):
                word = word if word is not None else []
                word.append(self._inner())
            elif char == "#" and word is None:
                stop = text.find("\n", self.at)
                self.at = size if stop < 0 else stop
            elif char == "\n":
                close_command()
                self.at += 1
                self._skip_bodies()
            elif char in " \t\r":
                close_word()
                self.at += 1
            elif text.startswith("<<<", self.at):
                close_word()
                now.words.append("<<<")
                self.at += 3
            elif text.startswith("<<", self.at):
                _drop_number(word)
                close_word()
                self.at += 2
                heredoc_next = text[self.at : self.at + 1] == "-"
                self.at += heredoc_next
            elif char in "<>":
                _drop_number(word)
                close_word()
                while self.at < size and text[self.at] in "<>&|":
                    self.at += 1
                now.words.append(">")
            elif char == "&" and text.startswith("&>", self.at):
                close_word()
                self.at += 2
                now.words.append(">")
            elif char in ";&|()":
                twice = text[self.at + 1 : self.at + 2] == char
                close_command(pipe=char == "|" and not twice)
                self.at += 1 + twice
                if char == "|" and text[self.at : self.at + 1] == "&":
                    self.at += 1
            else:
                word = word if word is not None else []
                run = _WORD.match(text, self.at)
                word.append(run[0] if run else char)
                self.at += len(run[0]) if run else 1
        close_command()

    def _quoted(self) -> str:
        """A text in double quotes, from its opening quote on; `$(…)` in it is looked into."""
        text, size = self.text, len(self.text)
        out: list[str] = []
        self.at += 1
        while self.at < size and text[self.at] != '"':
            char = text[self.at]
            if char == "\\":
                out.append(text[self.at + 1 : self.at + 2])
                self.at += 2
            elif char == "`" or text.startswith("$(", self.at):
                out.append(self._inner())
            else:
                run = _QUOTED.match(text, self.at)
                out.append(run[0] if run else char)
                self.at += len(run[0]) if run else 1
        self.at += 1
        return "".join(out)

    def _inner(self) -> str:
        """A command substitution: its commands are found, its text stays unknown."""
        backtick = self.text[self.at] == "`"
        self.at += 1 if backtick else 2
        if self.depth >= DEPTH:
            self.at = len(self.text)
            return ""
        inner = _Reader(self.text, self.depth + 1)
        inner.at = self.at
        inner.until("`" if backtick else ")")
        self.at = inner.at
        self.found += inner.found
        return ""

    def _skip_bodies(self) -> None:
        """Passes over the bodies of the heredocs that the line before announced."""
        for delimiter, tabs in self._bodies:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop].rstrip("\r")
                self.at = min(stop + 1, len(self.text))
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
        self._bodies.clear()


_REDIRECTIONS = {">", "<<<"}


def _drop_number(word: list[str] | None) -> None:
    """A number that stands right before a redirection is the redirection's."""
    if word is not None and "".join(word).isdigit():
        word.clear()
        word.append(">")
