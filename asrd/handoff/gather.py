"""Finds what may go into a brief: candidates, each with its records, its reason, and forms from a line to the whole.

What is found by wording (corrections, rules, decisions, checks) is quoted and said to be so: the lists of words are
below, in English only. Everything else is what a record says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from asrd.handoff.brief import NOTES, FileNow, Ref, Voice, Work
from asrd.handoff.render import code
from asrd.handoff.view import (
    Exchange,
    Run,
    View,
    command_of,
    ended,
    outcome_of,
    path_of,
    result_text,
    sentences,
    task_of,
    words,
)
from asrd.handoff_token import find_token, quiet_tokens
from asrd.recorders.base import StreamKey
from asrd.records import (
    Approval,
    Capture,
    Compaction,
    End,
    FileChange,
    Gap,
    Inference,
    Link,
    Loss,
    Message,
    Place,
    Plan,
    ToolCall,
    ToolResult,
    Turn,
    VcsAction,
)
from asrd.redact import Redactor


class Form(Struct, frozen=True):
    """One size of an item: its statement and its quotation, and how much of the original it leaves out."""

    text: str
    quote: str = ""
    left_out: int = 0


class Candidate(Struct):
    """Something that may go into a brief: what makes its forms, from the smallest to the whole."""

    section: str
    rank: str
    order: tuple[Any, ...]
    """Where it stands in its section."""
    refs: tuple[Ref, ...]
    voice: Voice
    why: str
    forms: Sequence[Callable[[], Form]]
    importance: tuple[Any, ...] = ()
    """Which comes first among those of its rank."""
    base: int = 0
    """The form it is first tried in: the smallest that says what it is there for."""


def prepared(text: str) -> str:
    """Text as a brief may show it: no control or hidden characters, no token lines of earlier briefs."""
    return quiet_tokens(_HIDDEN.sub("", _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))))


_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)

_SLACK = 600
"""Characters beyond a cut that are still searched for secrets, so that none is cut in two and shown by half."""


class Texts:
    """Cuts texts to a size and takes the secrets out of them first."""

    def __init__(self, redactor: Redactor) -> None:
        self._redact = redactor

    def cut(self, text: str, limit: int, tail: float = 0.3) -> tuple[str, int]:
        """At most about `limit` characters of a text, `tail` of them from its end; and how many were left out."""
        text = text.strip("\n")
        if len(text) <= limit + 40:
            return self._redact(prepared(text)), 0
        from_end = int(limit * tail)
        from_start = limit - from_end
        if _KEY_BLOCK in text:
            text = self._redact(text)
            if len(text) <= limit + 40:
                return prepared(text), 0
        start = self._redact(prepared(_start(text, from_start + _SLACK)))[:from_start]
        end = self._redact(prepared(_end(text, from_end + _SLACK)))[-from_end:] if from_end else ""
        left = len(text) - len(start) - len(end)
        return f"{start}\n[… {left} characters left out …]\n{end}".rstrip("\n"), left

    def line(self, text: str, limit: int) -> tuple[str, int]:
        """The start of a text on one line, at most `limit` characters; and how many were left out."""
        short = self._redact(prepared(_start(text.strip(), limit + _SLACK)))
        short = " ".join(short.split())
        if len(short) <= limit and len(text) <= limit + _SLACK:
            return short, 0
        short = short[:limit].rstrip() + " …"
        return short, max(0, len(text) - len(short))

    def all(self, text: str) -> str:
        """The whole text without its secrets."""
        return self._redact(prepared(text))


_KEY_BLOCK = "PRIVATE KEY-----"


def _start(text: str, size: int) -> str:
    """The first characters of a text, without the word that is cut off at their end."""
    if len(text) <= size:
        return text
    words = text[:size].rsplit(None, 1)
    return words[0] if len(words) == 2 else text[:size]


def _end(text: str, size: int) -> str:
    """The last characters of a text, without the word that is cut off at their start."""
    if len(text) <= size:
        return text
    words = text[-size:].split(None, 1)
    return words[1] if len(words) == 2 else text[-size:]


# ---------------------------------------------------------------- gathering

_CHECKS = re.compile(
    r"(?:^|[\s/;&|(])(?:pytest|tox|nox|unittest|cargo|make|just|npm|npx|pnpm|yarn|bun|go|mvn|gradle|ctest|jest|vitest|mocha|"
    r"eslint|tsc|mypy|pyright|ruff|flake8|rspec|rake|dotnet|swift|bazel|ninja|cmake|clippy|phpunit)\b|test|check|lint|build|verify|bench",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r"^(?:grep|rg|ag|ls|cat|head|tail|find|fd|which|type|test|\[|diff|cmp|pgrep|sed -n|wc|stat|file|pwd|echo)\b"
)
_CORRECTS = re.compile(
    r"^\W*(?:no|nope|not|wait|stop|actually|instead|rather|sorry|wrong|undo|revert|forget|scrap|never ?mind|don't|do not|"
    r"please don't|hold on|i meant|i said|that's not|this is not)\b|"
    r"\b(?:instead|rather than|no longer|forget (?:about|the|what)|scrap (?:that|the)|changed? (?:my|our) mind|"
    r"change of plan|on second thought|after all|"
    r"let's (?:go|stick) with|(?:take|took) (?:that|it|this) back|"
    r"ignore (?:my|what i|the earlier|the previous)|not what i|supersedes?|"
    r"drop the (?:idea|plan)|replaces? (?:my|the) (?:earlier|previous))\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:must(?: not|n't)?|never|always|do not|don't|only|without|make sure|ensure|keep|prefer|avoid|no longer|"
    r"should(?: not|n't)?|forbidden|not allowed|required?|important|at (?:most|least)|instead of|"
    r"(?:has|have|had|needs?) to|can(?:not|'t)|may (?:only|not)|under no|no (?:new|more|other)|whatever you|frozen|hands off|"
    r"(?:leave|let) .{1,40}\b(?:alone|as (?:it|they) (?:is|are)|untouched)|stays? (?:as|under|within|below|on)|touch)\b",
    re.IGNORECASE,
)
_DECIDES = re.compile(
    r"\b(?:root cause|the (?:problem|issue|bug|cause|reason) (?:is|was)|turns? out|trade-?offs?|agreed|because|since|so that|"
    r"instead of|rather than|otherwise|in order to|to avoid)\b",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"\b(?:decid(?:e|ed|es|ing)|decisions?|chose|choosing|choice|going with|go with|went (?:for|with)|opt(?:ed|ing)? for|opted|"
    r"settled? (?:on|for)|settling (?:on|for)|pick(?:ed|ing)|stick(?:ing)? (?:to|with)|in favou?r of|"
    r"(?:we|i)(?:'ll| will|'m| am|'re| are)? (?:use|using|keep|keeping|store|storing|prefer|stay with|leave|leaving)|"
    r"(?:rather than|instead of) \w+ing)\b|"
    r"\bstays? \w[\w-]*,? (?:because|since|so)\b",
    re.IGNORECASE,
)
_DEAD_END = re.compile(
    r"\b(?:tried|attempted|attempts?|revert(?:ed|ing)?|gave up|given up|abandon(?:ed|ing)?|ruled out|dead end|no luck|"
    r"(?:did|does|do|would|will)(?:n't| not) (?:help|work|fix|change|solve|make a difference)|won't (?:work|help)|"
    r"(?:no|without) (?:help|effect|success)|(?:put|rolled|changed|backed) (?:it|them|that|this) (?:back|out)|"
    r"(?:cannot|can't) be (?:used|done)|not (?:an option|possible|usable|viable)|not supported|"
    r"made (?:it|things|that) (?:slower|worse)|only (?:hides|masks|moves))\b",
    re.IGNORECASE,
)
_COMMIT_MESSAGE = re.compile(r"""commit\b[^\n;&|]*?\s-[a-zA-Z]*m\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")


def thin(prompt: str) -> bool:
    """Whether a prompt says little by itself: fewer than four words of four letters or more (`go on`, `yes, do that`)."""
    return len(_LONG_WORD.findall(prompt[:200])) < 4


_LONG_WORD = re.compile(r"\w{4,}")


class Gathering:
    """Finds the candidates of a brief."""

    def __init__(self, work: Work, views: list[View], roles: list[str], texts: Texts) -> None:
        self.work = work
        self.views = views
        self.mains = [v for v, r in zip(views, roles, strict=True) if r == "session"]
        self.subs = [v for v, r in zip(views, roles, strict=True) if r == "sub-agent"]
        self.texts = texts
        self.found: list[Candidate] = []
        self.base = next((f for f in (v.folder() for v in self.mains) if f), None)

    def candidates(self) -> list[Candidate]:
        self._asked()
        self._plan()
        self._commands()
        self._unfinished()
        self._files()
        self._commits()
        self._agents()
        self._errors()
        self._summaries()
        self._gaps()
        self._reads()
        return self.found

    def add(
        self,
        section: str,
        rank: str,
        order: tuple[Any, ...],
        refs: tuple[Ref, ...],
        voice: Voice,
        why: str,
        *forms: Callable[[], Form],
        importance: tuple[Any, ...] = (),
        base: int = 0,
    ) -> None:
        self.found.append(Candidate(section, rank, order, refs, voice, why, forms, importance, base))

    def quote(self, text: str, limit: int, before: str = "", tail: float = 0.3) -> Callable[[], Form]:
        """A form that quotes at most `limit` characters."""

        def form() -> Form:
            cut, left = self.texts.cut(text, limit, tail)
            return Form(before, cut, left)

        return form

    def sizes(self, text: str, *limits: int, before: str = "", tail: float = 0.3) -> list[Callable[[], Form]]:
        """Forms of a quotation, each larger than the one before, as long as there is more to quote."""
        needed = [limit for n, limit in enumerate(limits) if n == 0 or len(text) > limits[n - 1]]
        return [self.quote(text, limit, before, tail) for limit in needed]

    # what was asked

    def _asked(self) -> None:
        for view in self.mains:
            exchanges = [(e, self._handed_over(view, e)) for e in view.exchanges]
            if not exchanges:
                continue
            first, last = exchanges[0], exchanges[-1]
            self._goal(view, *first)
            self._last(view, *last)
            corrections = {n for n, (e, _) in enumerate(exchanges) if n and _CORRECTS.search(words(e.prompt)[:400])}
            if len(exchanges) > 1 and first[0].answers:
                self._first_answer(view, first[0])
            said = Counter(text for _, text in exchanges)
            for n, (exchange, text) in enumerate(exchanges):
                if n in (0, len(exchanges) - 1):
                    continue
                corrected = n in corrections
                near = corrected or n + 1 in corrections
                self.add(
                    "asked", "corrections" if near else "asked", (view.number, n),
                    view.ref(exchange.prompt), "user",
                    "a prompt worded as a correction" if corrected
                    else "the prompt before a correction" if near else "a prompt between the first and the last",
                    *self._prompt_forms(exchange, text, corrected),
                    importance=(said[text] > 1 or thin(text), -n),
                )  # fmt: skip
            self._rules(view, exchanges)

    def _prompt_forms(self, exchange: Exchange, text: str, corrected: bool) -> list[Callable[[], Form]]:
        mark = "(worded as a correction) " if corrected else ""
        answer = words(exchange.answers[-1]) if exchange.answers else ""

        def short(limit: int, answered: int) -> Callable[[], Form]:
            def form() -> Form:
                line, left = self.texts.line(text, limit)
                said = ""
                if answer and answered:
                    said = f" Answered: “{self.texts.line(answer, answered)[0]}”"
                return Form(f"{mark}“{line}”{said}", "", left)

            return form

        forms = [short(160, 0), short(300, 160)]
        if len(text) > 300 or len(answer) > 160:
            forms.append(short(1200, 600))
        return forms + self._whole(exchange, text, f"{mark}The prompt, and what was said to it:")

    def _whole(self, exchange: Exchange, text: str, before: str) -> list[Callable[[], Form]]:
        """Forms of an exchange with all that was said in it, where one line does not hold it."""
        said = [words(a) for a in exchange.answers]
        if len(said) < 2 and len(text) <= 1200 and all(len(s) <= 600 for s in said):
            return []
        told = "\n".join([text] * bool(text) + [f"The agent: {s}" for s in said])
        return [self.quote(told, limit, before) for limit in (4000, 20_000)]

    def _goal(self, view: View, exchange: Exchange, text: str) -> None:
        before = ""
        if find_token(words(exchange.prompt)):
            before = "Handed over from an earlier session; its brief gave as the goal:"
        self.add(
            "goal", "goal", (view.number, 0), view.ref(exchange.prompt), "user", "the first prompt of the session",
            *self.sizes(text, 700, 2500, 8000, 1_000_000, before=before),
        )  # fmt: skip

    def _first_answer(self, view: View, exchange: Exchange) -> None:
        answer = exchange.answers[-1]

        def form(limit: int) -> Callable[[], Form]:
            def make() -> Form:
                line, left = self.texts.line(words(answer), limit)
                return Form(f"To the goal the agent answered: “{line}”", "", left)

            return make

        why = "the last answer to the first prompt"
        forms = [form(160), form(600), *self._whole(exchange, "", "To the goal the agent answered:")]
        self.add("asked", "asked", (view.number, 0), view.ref(answer), "assistant", why, *forms, importance=(False, -1))

    def _last(self, view: View, exchange: Exchange, text: str) -> None:
        only = len(view.exchanges) == 1
        prompt = exchange.prompt
        if only:
            forms = [lambda: Form("The user's last prompt is the goal above.")]
        else:
            forms = self.sizes(text, 500, 2500, 8000, 1_000_000, before="The user:")
        why = "the last prompt of the session"
        self.add("last", "last-prompt", (view.number, 0), view.ref(prompt), "user", why, *forms)
        answers = exchange.answers
        if not answers:
            self.add(
                "last", "last-answer", (view.number, 1), view.ref(prompt), "fact", "the last prompt has no answer",
                lambda: Form("No answer to it is recorded."),
            )  # fmt: skip
            return
        final = answers[-1]
        self.add(
            "last", "last-answer", (view.number, 2), view.ref(final), "assistant", "the last answer of the session",
            *self.sizes(words(final), 700, 3000, 10_000, 1_000_000, before="The agent:"),
        )  # fmt: skip
        for n, earlier in enumerate(reversed(answers[-4:-1])):
            self.add(
                "last", "decisions", (view.number, 1, -n), view.ref(earlier), "assistant",
                "said on the way to the last answer", *self.sizes(words(earlier), 300, 1500, before="The agent, before that:"),
                importance=(n,),
            )  # fmt: skip

    def _handed_over(self, view: View, exchange: Exchange) -> str:
        """The words of a prompt; of one that is an earlier brief, the goal and wishes that the brief gives."""
        text = words(exchange.prompt)
        token = find_token(text)
        if token is None:
            return text
        carried = brief_goal(text)
        if carried is None:
            for result in list(view.results.values())[:40]:
                found = _LINE_NUMBERS.sub("", result_text(result))
                if find_token(found) == token and (carried := brief_goal(found)) is not None:
                    break
        return carried if carried is not None else text

    def _rules(self, view: View, exchanges: list[tuple[Exchange, str]]) -> None:
        seen: set[str] = set()
        for n, (exchange, text) in enumerate(exchanges):
            ends = n in (0, len(exchanges) - 1)
            if len(text) > (700 if ends else 160) or (not ends and len(exchanges) > 12):
                self._sentences(view, exchange.prompt, text, _RULE, "user", "rules", seen)
            for answer in exchange.answers:
                if answer is not exchange.answers[-1] or n != len(exchanges) - 1:
                    self._sentences(view, answer, words(answer), _DEAD_END, "assistant", "dead-ends", seen)
                    self._sentences(view, answer, words(answer), _DECIDED, "assistant", "decided", seen)
                    self._sentences(view, answer, words(answer), _DECIDES, "assistant", "decisions", seen)

    def _sentences(
        self,
        view: View,
        message: Message,
        text: str,
        shape: re.Pattern[str],
        who: Voice,
        rank: str,
        seen: set[str],
    ) -> None:
        for at, sentence in enumerate(sentences(text[:20_000])):
            if not 12 <= len(sentence) <= 400 or sentence in seen or not shape.search(sentence):
                continue
            seen.add(sentence)
            name = "the user" if who == "user" else "the agent"

            def form(sentence: str = sentence, name: str = name) -> Form:
                line, left = self.texts.line(sentence, 320)
                return Form(f"{name}: “{line}”", "", left)

            why = WORDED[rank]
            self.add(
                "errors" if rank == "dead-ends" else "rules",
                rank,
                (view.number, message.seq, at),
                view.ref(message),
                who,
                why,
                form,
                importance=(-message.seq, at),
            )

    # the plan

    def _plan(self) -> None:
        for view in self.mains:
            plan = next(reversed(list(view.of(Plan))), None)
            if plan is None:
                continue
            for n, step in enumerate(plan.items):
                done = step.status in ("completed", "cancelled")

                def form(status: str = step.status, text: str = step.text) -> Form:
                    line, left = self.texts.line(text, 300)
                    return Form(f"[{status}] {line}", "", left)

                self.add(
                    "plan", "plan", (view.number, n), view.ref(plan), "assistant", "a step of the last state of the plan",
                    form, importance=(done, n),
                )  # fmt: skip

    # commands

    def runs(self) -> dict[str, list[Run]]:
        """Every run of every command line, by the command line."""
        found: dict[str, list[Run]] = {}
        for view in self.views:
            for record in view.records:
                if not isinstance(record, ToolResult):
                    continue
                call = view.calls.get(record.call_id)
                if record.exec is None and (call is None or call.kind != "execute"):
                    continue
                command = command_of(call, record.exec)
                if not command:
                    continue
                exit_code = record.exec.exit_code if record.exec else None
                failed = exit_code not in (None, 0) or (exit_code is None and record.status == "failed")
                refs = view.ref(*([call] if call else []), record)
                run = Run(refs, exit_code, failed, record.status, result_text(record), (view.number, record.seq))
                found.setdefault(command, []).append(run)
        return found

    def _commands(self) -> None:
        runs = self.runs()
        last_failure = max((r.order for rs in runs.values() for r in rs if r.failed), default=None)
        for command, mine in runs.items():
            last = mine[-1]
            failures = [r for r in mine if r.failed]
            check = bool(_CHECKS.search(command))
            looking = bool(_LOOKS.match(command)) and not check
            if last.exit_code is None and last.status in ("cancelled", "unknown"):
                section, rank, why = "open", "open", "a command whose last run was not seen to end"
            elif last.failed and not looking:
                section, rank, why = "open", "failing", "a command whose last run failed"
            elif failures and not looking:
                section, rank, why = "commands", "checks", "a command that failed and then did not"
            else:
                section, rank = "commands", "checks" if check else "commands"
                why = "a check that ran" if check else "a command that ran"
            shown = failures[-1] if failures else None
            self.add(
                section, rank, (1, *last.order) if section == "open" else last.order, last.refs, "data", why,
                *self._command_forms(command, mine, shown, "Fails: " if rank == "failing" else ""),
                importance=(not check, bool(shown is None or shown.order != last_failure), -last.order[0], -last.order[1]),
            )  # fmt: skip

    def _command_forms(self, command: str, runs: list[Run], shown: Run | None, before: str) -> list[Callable[[], Form]]:
        outcome = outcome_of(runs)

        def form(limit: int, output: int) -> Callable[[], Form]:
            def make() -> Form:
                line, left = self.texts.line(command, limit)
                text = f"{before}{code(line)}: {outcome}"
                if shown is None or not output:
                    return Form(text, "", left)
                quote, more = self.texts.cut(shown.output, output, 0.75)
                if not quote:
                    return Form(text, "", left)
                which = "" if shown is runs[-1] else f" Output of the run with {ended(shown)} [{shown.refs[-1]}]:"
                return Form(text + which, quote, left + more)

            return make

        forms = [form(160, 0)]
        if shown is not None and shown.output.strip():
            forms += [form(400, 500), form(1000, 2000), form(4000, 8000)]
        elif len(command) > 160:
            forms.append(form(1000, 0))
        return forms

    # what is open

    def _unfinished(self) -> None:
        for view in self.views:
            ended_here = next(reversed(list(view.of(End))), None)
            for call_id, call in view.calls.items():
                if call_id not in view.results:
                    self._no_result(view, call)
            self._turn_state(view)
            self._approvals(view)
            if ended_here is not None and ended_here.status != "completed":
                why = "how the session ended"
                text = f"The session ended {ended_here.status}" + (
                    f": {ended_here.reason}" if ended_here.reason else "."
                )
                self._fact("open", "open", (2, view.number, ended_here.seq), view.ref(ended_here), why, text)
            if view in self.mains and view.exchanges and view.exchanges[-1].answers:
                self._question(view, view.exchanges[-1].answers[-1])

    def _fact(
        self,
        section: str,
        rank: str,
        order: tuple[Any, ...],
        refs: tuple[Ref, ...],
        why: str,
        text: str,
        limit: int = 400,
    ) -> None:
        def form() -> Form:
            line, left = self.texts.line(text, limit)
            return Form(line, "", left)

        self.add(section, rank, order, refs, "fact", why, form)

    def _no_result(self, view: View, call: ToolCall) -> None:
        command = command_of(call, None)
        about = command or call.title or path_of(call) or ""

        def form() -> Form:
            line, left = self.texts.line(about, 300)
            return Form(f"No result is recorded for {code(call.name)}" + (f" {code(line)}" if line else ""), "", left)

        self.add("open", "open", (2, view.number, call.seq), view.ref(call), "data", "a call without a result", form)

    def _turn_state(self, view: View) -> None:
        turns = list(view.of(Turn))
        if not turns:
            return
        last: Turn = turns[-1]
        if last.phase == "end":
            if last.status in ("interrupted", "failed", "refused"):
                text = f"The last turn ended {last.status}"
                if last.error and last.error.message:
                    text += f": {last.error.message}"
                self._fact("open", "open", (2, view.number, last.seq), view.ref(last), "how the last turn ended", text)
            return
        ends = {t.turn_id for t in turns if t.phase == "end"}
        if ends and last.turn_id not in ends:
            text = "The last turn has no recorded end: the agent may have been stopped in it."
            self._fact("open", "open", (2, view.number, last.seq), view.ref(last), "a turn without an end", text)

    def _approvals(self, view: View) -> None:
        decided = {a.call_id for a in view.of(Approval) if a.phase == "decided"}
        for approval in view.of(Approval):
            call = view.calls.get(approval.call_id or "")
            about = (command_of(call, None) or path_of(call) or call.name) if call else "a call"
            if (
                approval.phase == "requested"
                and approval.call_id not in decided
                and approval.call_id not in view.results
            ):
                text = f"Permission was asked for and not decided: {about}"
                self._fact("open", "open", (2, view.number, approval.seq), view.ref(approval), "an open approval", text)
            elif approval.phase == "decided" and approval.decision in ("deny", "deny_always", "cancelled"):
                text = f"Refused by {approval.by or 'someone'} ({approval.decision}): {about}"
                self._fact(
                    "rules", "rules", (view.number, approval.seq, 0), view.ref(approval), "a refused permission", text
                )

    def _question(self, view: View, answer: Message) -> None:
        asked = [s for s in sentences(words(answer)[-3000:]) if s.endswith("?")]
        for n, sentence in enumerate(asked[-3:]):
            text = f"Asked of the user, and not answered: “{sentence}”"
            self._fact(
                "open", "open", (3, view.number, answer.seq, n), view.ref(answer), "a question in the last answer", text
            )

    # files

    def _files(self) -> None:
        changes: dict[str, list[tuple[View, FileChange]]] = {}
        stated: set[tuple[int, str]] = set()
        for view in self.views:
            for change in view.of(FileChange):
                if change.call_id:
                    stated.add((view.number, change.call_id))
                path = view.absolute(change.path)
                if change.applied is False:
                    text = f"A change of {self.shown(path)} was not applied."
                    self._fact(
                        "errors",
                        "errors",
                        (view.number, change.seq),
                        view.ref(change),
                        "a change that was not applied",
                        text,
                    )
                    continue
                if change.from_path is not None:
                    old = view.absolute(change.from_path)
                    changes.setdefault(path, []).extend(changes.pop(old, []))
                changes.setdefault(path, []).append((view, change))
        self._edit_calls(stated, changes)
        latest = sorted(changes.items(), key=lambda kv: (kv[1][-1][0].number, kv[1][-1][1].seq))
        for n, (path, mine) in enumerate(latest):
            self._file(path, mine, n)
        self._heads()

    def _edit_calls(self, stated: set[tuple[int, str]], changes: dict[str, list[tuple[View, FileChange]]]) -> None:
        """Edits that were called for and of which no change is recorded."""
        asked: dict[str, list[Ref]] = {}
        for view in self.views:
            for call_id, call in view.calls.items():
                path = path_of(call)
                if call.kind != "edit" or (view.number, call_id) in stated or not path:
                    continue
                absolute = view.absolute(Place(path=path))
                result = view.results.get(call_id)
                if absolute not in changes and result is not None and result.status == "completed":
                    asked.setdefault(absolute, []).extend(view.ref(call))
        for n, (path, refs) in enumerate(asked.items()):
            name = self.shown(path)
            text = f"{name}: {len(refs)} completed edit calls; the record does not hold the file's state"
            self._fact("files", "files", (1, n), tuple(refs), "edit calls without a recorded change", text)

    def shown(self, path: str) -> str:
        """A path as the brief shows it: below the work's folder where it lies there."""
        if self.base and path.startswith(self.base.rstrip("/") + "/"):
            path = path[len(self.base.rstrip("/")) + 1 :]
        return code(self.texts.all(path))

    def _file(self, path: str, mine: list[tuple[View, FileChange]], n: int) -> None:
        first, last = mine[0][1], mine[-1][1]
        refs = tuple(r for view, change in mine for r in view.ref(change))
        what = "created" if first.change == "create" and last.change != "delete" else WHAT.get(last.change, last.change)
        if first.change == "create" and last.change == "delete":
            what = "created and deleted again"
        times = f" in {len(mine)} changes" if len(mine) > 1 else ""
        state, known = "", None
        if last.change != "delete":
            known = last.after.sha256 if last.after else None
            state = f"; sha256 {known}" if known else "; its content is not recorded"
        moved = self._moved_on(path, last)
        begin = first.before.sha256 if first.before and first.before.sha256 else None
        size = f", {last.after.bytes} bytes" if last.after and last.after.bytes is not None else ""
        was = f"; before the session sha256 {begin}" if begin and len(mine) > 0 else ""
        diff = _HUNK.sub(lambda m: f"[lines {m[1]} {m[2]}]" if m[1] else "[…]", last.diff or "")

        def small() -> Form:
            return Form(f"{self.shown(path)} {what}{moved}")

        def marked() -> Form:
            digest = f"; sha256 {known[:SHORT_DIGEST]}…" if known else state
            return Form(f"{self.shown(path)} {what}{digest}{moved}")

        def hashed() -> Form:
            return Form(f"{self.shown(path)} {what}{times}{state}{moved}")

        def full(limit: int) -> Callable[[], Form]:
            def form() -> Form:
                text = f"{self.shown(path)} {what}{times}{state}{size}{was}{moved}"
                quote, left = self.texts.cut(diff, limit, 0.4) if limit and diff else ("", 0)
                return Form(text + (" Last change:" if quote else ""), quote, left)

            return form

        forms = [small, marked, hashed, full(0)]
        if diff.strip():
            forms += [full(600), full(3000), full(12_000)]
        why = "a file that the session changed"
        self.add("files", "files", (0, n), refs, "data", why, *forms, importance=(-n,), base=1)

    def _moved_on(self, path: str, last: FileChange) -> str:
        """What the working tree says of a file, as a clause; "" when it was not asked or cannot tell."""
        now: FileNow | None = self.work.tree.file(path) if self.work.tree is not None else None
        if now is None:
            return ""
        if not now.exists:
            return "; gone now, as recorded" if last.change == "delete" else "; NOT THERE NOW: the tree moved on"
        if last.change == "delete":
            return "; THERE AGAIN NOW: the tree moved on"
        known = last.after.sha256 if last.after else None
        if known is None or now.sha256 is None:
            return ""
        if known == now.sha256:
            return "; the same now"
        return f"; CHANGED SINCE: now sha256 {now.sha256}"

    def _heads(self) -> None:
        """Whether version control stands where the session last saw it."""
        if self.work.tree is None:
            return
        for view in self.mains:
            folder = view.folder()
            now = self.work.tree.head(folder) if folder else None
            if not now:
                continue
            seen = [a for a in view.of(VcsAction) if a.commit]
            root = (
                view.header.workspace.roots[0]
                if view.header and view.header.workspace and view.header.workspace.roots
                else None
            )
            last = seen[-1].commit if seen else root.vcs.head if root and root.vcs else None
            if last is None:
                text = f"The tree is now at commit {now}; the record holds none to compare it with."
            elif now.startswith(last) or last.startswith(now):
                text = f"The tree is still at commit {now}, the last one recorded."
            else:
                text = f"THE TREE MOVED ON: it is now at commit {now}; the last one recorded is {last}."
            refs = view.ref(seen[-1]) if seen else view.ref(view.all[0])
            self._fact("commits", "commits", (-1, view.number), refs, "the working tree as it is now", text)

    # version control

    def _commits(self) -> None:
        seen: set[tuple[str, str]] = set()
        for view in self.views:
            for action in view.of(VcsAction):
                if action.action == "state":
                    continue
                what = action.commit or action.branch or ""
                if (action.action, what) in seen and what:
                    continue
                seen.add((action.action, what))
                call = view.calls.get(action.call_id or "")
                command = command_of(call, None) if call else None
                message = _COMMIT_MESSAGE.search(command) if command else None
                text = action.action + (f" {action.commit}" if action.commit else "")
                text += f" on {action.branch}" if action.branch else ""
                if message:
                    text += f": “{(message[1] or message[2] or '').strip()}”"
                refs = view.ref(*([call] if call else []), action)
                self.add(
                    "commits", "commits", (0, view.number, action.seq), refs, "data", "something done to version control",
                    lambda text=text: Form(*self.texts.line(text, 260)[:1]),
                    importance=(action.action != "commit", -action.seq),
                )  # fmt: skip

    # sub-agents

    def _agents(self) -> None:
        known = {v.key for v in self.views}
        tasks = self._tasks()
        for view in self.subs:
            task, asked = tasks.get(view.key) or (words(view.exchanges[0].prompt) if view.exchanges else "", ())
            answers = view.exchanges[-1].answers if view.exchanges else view.before
            answer = words(answers[-1]) if answers else ""
            refs = (*asked, *view.ref(*([view.exchanges[0].prompt] if view.exchanges and not asked else [])))
            refs += view.ref(*answers[-1:])
            if not refs:
                refs = view.ref(*view.all[:1])
            self.add(
                "agents", "agents", (view.number,), refs, "assistant", "what a sub-agent was asked and answered",
                *self._agent_forms(view, task, answer), importance=(-view.number,),
            )  # fmt: skip
        for view in self.views:
            for link in view.of(Link):
                target = StreamKey(link.target.agent, link.target.session_id, link.target.namespace or "")
                if link.relation == "spawned" and target not in known:
                    self._absent_agent(view, link)

    def _tasks(self) -> dict[StreamKey, tuple[str, tuple[Ref, ...]]]:
        """What the call that started a sub-agent asked of it, with the call, by the sub-agent's key."""
        found: dict[StreamKey, tuple[str, tuple[Ref, ...]]] = {}
        for view in self.views:
            for link in view.of(Link):
                call = view.calls.get(link.call_id or "")
                task = task_of(call) if link.relation == "spawned" else None
                if call is not None and task:
                    key = StreamKey(link.target.agent, link.target.session_id, link.target.namespace or "")
                    found.setdefault(key, (task, view.ref(call)))
        return found

    def _agent_forms(self, view: View, task: str, answer: str) -> list[Callable[[], Form]]:
        def form(asked: int, answered: int) -> Callable[[], Form]:
            def make() -> Form:
                line, left = self.texts.line(task, asked)
                text = f"s{view.number} was asked: “{line}”" if line else f"s{view.number}"
                if not answer:
                    return Form(text + "; no answer of it is recorded", "", left)
                if answered <= 400:
                    said, more = self.texts.line(answer, answered)
                    return Form(f"{text}; answered: “{said}”", "", left + more)
                said, more = self.texts.cut(answer, answered)
                return Form(text + "; answered:", said, left + more)

            return make

        forms = [form(120, 200), form(300, 400)]
        if len(answer) > 400 or len(task) > 300:
            forms += [form(1000, 2000), form(4000, 10_000)]
        return forms

    def _absent_agent(self, view: View, link: Link) -> None:
        result = view.results.get(link.call_id or "")
        said = result_text(result) if result else ""
        refs = view.ref(link, *([result] if result else []))
        name = f"{link.target.agent}:{link.target.session_id}"

        def form(limit: int) -> Callable[[], Form]:
            def make() -> Form:
                line, left = self.texts.line(said, limit)
                text = f"{name} was started; its own record is not in this brief"
                return Form(text + (f"; its call gave: “{line}”" if line else ""), "", left)

            return make

        why = "a sub-agent that the record names"
        self.add("agents", "agents", (1000 + view.number, link.seq), refs, "data", why, form(200), form(1500))

    # errors

    def _errors(self) -> None:
        seen: set[tuple[str, str]] = set()
        for view in self.views:
            for record in view.records:
                if isinstance(record, ToolResult):
                    self._failed_call(view, record, seen)
                elif isinstance(record, Inference) and record.error is not None:
                    said = record.error.message or record.error.code or ""
                    self._fact(
                        "errors", "errors", (view.number, record.seq), view.ref(record), "a request that failed",
                        f"A model request failed: {said}",
                    )  # fmt: skip
                elif isinstance(record, Turn) and record.error is not None and record.error.message:
                    text = f"A turn {record.status or 'ended'}: {record.error.message}"
                    self._fact(
                        "errors", "errors", (view.number, record.seq), view.ref(record), "a turn that failed", text
                    )

    def _failed_call(self, view: View, result: ToolResult, seen: set[tuple[str, str]]) -> None:
        call = view.calls.get(result.call_id)
        if result.status not in ("failed", "denied", "cancelled"):
            return
        if (
            command_of(call, result.exec)
            and result.status == "failed"
            and (result.exec or (call and call.kind == "execute"))
        ):
            return
        name = call.name if call else "a tool"
        about = (command_of(call, result.exec) or path_of(call) or task_of(call) or call.title or "") if call else ""
        said = result_text(result)
        if (name + about, said[:200]) in seen:
            return
        seen.add((name + about, said[:200]))

        def form(limit: int) -> Callable[[], Form]:
            def make() -> Form:
                what, _ = self.texts.line(about, 160)
                quote, left = self.texts.cut(said, limit, 0.5) if limit else ("", 0)
                text = f"{code(name)}{' ' + code(what) if what else ''}: {result.status}"
                if not limit and said:
                    line, left = self.texts.line(said, 140)
                    text += f", {code(line)}"
                return Form(text, quote, left)

            return make

        refs = view.ref(*([call] if call else []), result)
        forms = [form(0)] + ([form(800), form(3000)] if len(said) > 140 else [])
        self.add(
            "errors",
            "errors",
            (view.number, result.seq),
            refs,
            "data",
            "a call that did not succeed",
            *forms,
            importance=(-result.seq,),
        )

    # summaries, gaps, reads

    def _summaries(self) -> None:
        for view in self.mains:
            messages = {m.message_id: m for m in view.of(Message) if m.message_id}
            compactions: list[Compaction] = list(view.of(Compaction))
            for n, compaction in enumerate(reversed(compactions)):
                text, refs = compaction.summary or "", view.ref(compaction)
                if not text and compaction.message_id in messages:
                    text = words(messages[compaction.message_id])
                    refs = view.ref(compaction, messages[compaction.message_id])
                if text:
                    self.add(
                        "summary", "summary", (view.number, compaction.seq), refs, "data", "the summary of a compaction",
                        *self.sizes(text, 300, 1500, 6000, 1_000_000), importance=(n,),
                    )  # fmt: skip

    def _gaps(self) -> None:
        """What is not held; the same sentence of several sessions is one item."""
        found: dict[tuple[str, str], list[tuple[View, tuple[Ref, ...]]]] = {}
        for view in self.views:
            for refs, why, text in missing(view):
                found.setdefault((why, text), []).append((view, refs))
        for n, ((why, text), mine) in enumerate(found.items()):
            names = [f"s{v.number}" for v, _ in mine]
            which = f"{', '.join(names[:6])}{', …' if len(names) > 6 else ''}: " if len(self.views) > 1 else ""
            self._fact("gaps", "gaps", (n,), tuple(r for _, refs in mine for r in refs), why, which + text)

    def _reads(self) -> None:
        """Files that were read, and not changed by a recorded change."""
        paths: dict[str, Ref] = {}
        for view in self.views:
            for call in view.calls.values():
                path = path_of(call)
                if call.kind == "read" and path:
                    absolute = view.absolute(Place(path=path))
                    paths.pop(absolute, None)
                    paths[absolute] = view.ref(call)[0]
        changed = {v.absolute(c.path) for v in self.views for c in v.of(FileChange)}
        only = [(p, r) for p, r in reversed(paths.items()) if p not in changed]
        if not only:
            return

        def form(count: int) -> Callable[[], Form]:
            def make() -> Form:
                names = ", ".join(self.shown(p) for p, _ in only[:count])
                more = f", and {len(only) - count} more" if len(only) > count else ""
                return Form(f"Read and not changed, the latest first: {names}{more}")

            return make

        forms = [form(c) for n, c in enumerate((6, 25, 100)) if n == 0 or len(only) > (6, 25, 100)[n - 1]]
        refs = tuple(r for _, r in only[:3])
        self.add("files", "reads", (9,), refs, "fact", "files that were read", *forms)


SHORT_DIGEST = 12
"""Hexadecimal digits by which a file's content is told where there is no room for all: one in 10^14 is alike by chance."""
_HUNK = re.compile(r"^@@(?: (-[\d,]+) (\+[\d,]+) @@)?", re.MULTILINE)
"""The head of a hunk. It is written without `@`: some targets take a word that begins with it for a file to attach."""

WORDED = {
    "rules": "a sentence worded as a rule",
    "decided": "a sentence worded as a decision",
    "dead-ends": "a sentence worded as something that was tried and did not do",
    "decisions": "a sentence worded as a reason",
}
WHAT = {"create": "created", "modify": "modified", "delete": "deleted", "rename": "renamed"}


_LINE_NUMBERS = re.compile(r"^[ \t]*\d+[→\t:|] ?", re.MULTILINE)
_BRIEF_GOAL = re.compile(r"^## Goal\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BRIEF_ASKED = re.compile(r"^## What the user asked, in order\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def brief_goal(text: str) -> str | None:
    """The goal that a brief in a text gives, with the wishes that came after; None when there is no brief in it."""
    goal = _BRIEF_GOAL.search(text)
    if goal is None:
        return None
    lines = [line[2:] if line.startswith("> ") else "" if line == ">" else line for line in goal[1].strip().split("\n")]
    found = "\n".join(line for line in lines if not line.startswith("- "))
    asked = _BRIEF_ASKED.search(text)
    if asked:
        found += "\nAsked after that:\n" + asked[1].strip().removeprefix(NOTES["asked"]).strip()
    return found.strip()


def missing(view: View) -> Iterator[tuple[tuple[Ref, ...], str, str]]:
    """What a session's record does not hold: records that say so, why they are shown, and a sentence."""
    if view.left:
        yield (
            view.left_at, "a branch that was left",
            f"{view.left} records stand on branches that were left (the user went back); they are not in this brief.",
        )  # fmt: skip
    compactions = [r for r in view.records if isinstance(r, Compaction)]
    if compactions:
        text = f"The harness shortened its history {len(compactions)} time(s): the earlier agent last worked from a summary"
        tokens = compactions[-1].tokens_before
        yield view.ref(*compactions), "a compaction", text + (f" (of {tokens} tokens)." if tokens else ".")
    gaps: dict[str, list[Gap]] = {}
    losses: dict[str, list[Loss]] = {}
    for record in view.all:
        if isinstance(record, Gap):
            gaps.setdefault(record.reason, []).append(record)
        elif isinstance(record, Loss):
            losses.setdefault(record.reason, []).append(record)
    for reason, mine in gaps.items():
        known = [g.bytes for g in mine if g.bytes is not None]
        size = f", {sum(known)} bytes" if len(known) == len(mine) else ""
        yield view.ref(*mine), "a gap", f"{len(mine)} gap(s) ({reason}{size}): what was there was never seen."
    for reason, lost in losses.items():
        yield view.ref(*lost), "a loss", f"{len(lost)} piece(s) of the source could not be converted ({reason})."
    for record in view.all:
        if isinstance(record, Capture) and record.state != "full" and record.profile in ("core", "coding"):
            about = f"{record.profile} {record.facet}" if record.facet else record.profile
            reason = f": {record.reason}" if record.reason else ""
            yield (
                view.ref(record),
                "what the harness does not record",
                f"{about} is {record.state} in this record{reason}.",
            )
    if view.header is not None and view.header.content_level != "full":
        yield view.ref(view.all[0]), "the header", f"The content of this record is {view.header.content_level}."
