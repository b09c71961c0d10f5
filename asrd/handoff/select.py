"""Which records a brief needs, and how much of each, within a budget.

How the budget is spent (`RANKS`, `SHARES`)
    1. Every item has forms, from a line to the whole. In the order of `RANKS` each is taken in its smallest form, as
       long as its section keeps within its share (the first of a section is taken in any case). The last failing
       command comes with the end of its output at once; a file with the start of its digest.
    2. In the same order each is given its next form, as long as its section keeps within its share.
    3. What had no room comes in, in its smallest form, without shares.
    4. The next forms are given, step by step, in the order of `RANKS`.
    What has no room is counted in its section. So the first thing to go is length, then what stands last in `RANKS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import structs

from asrd.handoff.brief import (
    NOTES,
    SCHEMA,
    TITLES,
    Brief,
    BudgetTooSmall,
    Item,
    Ref,
    Section,
    Source,
    Work,
    estimate,
)
from asrd.handoff.gather import Candidate, Gathering, Texts, prepared
from asrd.handoff.render import head, item_lines, omitted_line, render, section_lines
from asrd.handoff.view import View, roles_of
from asrd.handoff_token import Token, session_digest
from asrd.redact import Mode, Redactor

DEFAULT_BUDGET = 8000
"""Tokens a brief may have when nobody says."""

RANKS = (
    "goal", "last-prompt", "failing", "open", "last-answer", "files", "commits", "plan", "corrections", "rules", "decided",
    "dead-ends", "checks", "agents", "gaps", "errors", "asked", "summary", "commands", "decisions", "reads",
)  # fmt: skip
"""What matters most to a successor, first; what there is no room for goes from the end."""

FILLERS = frozenset({"asked", "summary", "commands", "decisions", "reads"})
"""Ranks before which files get the whole of their digests."""

SHARES = {
    "goal": 0.25, "asked": 0.30, "rules": 0.15, "plan": 0.12, "open": 0.25, "last": 0.30, "files": 0.35,
    "commands": 0.20, "commits": 0.20, "agents": 0.20, "errors": 0.12, "summary": 0.10, "gaps": 0.08,
}  # fmt: skip
"""The part of the budget that a section may have before every other had its turn. They add up to more than one."""


def brief(
    work: Work,
    budget: int = DEFAULT_BUDGET,
    *,
    target: str = "prompt",
    redact: Mode = "default",
    known_secrets: Iterable[str] = (),
) -> Brief:
    """The brief of some work, in at most `budget` tokens (as `estimate` counts them, over its Markdown).

    `known_secrets`: values that are secret wherever they stand (variables of the environment). Raises BudgetTooSmall
    when not even the head of the brief has room.
    """
    redactor = Redactor(redact, known_secrets)
    views = [View(n, s.key, s.records) for n, s in enumerate(work.sessions)]
    roles = roles_of(views)
    last = max((r.seq for r in views[0].all), default=0) if views else 0
    token = str(Token(session_digest(views[0].key), last, target)) if views else ""
    candidates = Gathering(work, views, roles, Texts(redactor)).candidates()
    redactor.removed.clear()
    tidy = Redactor(redact, known_secrets)
    sources = tuple(_clean(v.source(r), tidy) for v, r in zip(views, roles, strict=True))
    room = _Room(budget, redactor)
    room.spend(head(token, sources, {}, redact) + _REDACTION_LINE * (redact != "off"))
    short = False
    if room.left < 0:
        room = _Room(budget, redactor)
        room.spend(head(token, sources, {}, redact, short=True) + _REDACTION_LINE * (redact != "off"))
        short = True
        if room.left < 0:
            raise BudgetTooSmall(budget=budget, needed=budget - room.left, command="handoff", what="")
    room.fill(candidates)
    sections = room.sections(candidates)
    made = Brief(
        schema=SCHEMA,
        token=token,
        target=target,
        made=f"{work.now:%Y-%m-%dT%H:%M:%SZ}",
        sources=sources,
        sections=sections,
        budget=budget,
        tokens=0,
        redaction=redact,
        short=short,
        removed=room.removed(tidy),
    )
    made = structs.replace(made, tokens=estimate(render(made)))
    assert made.tokens <= budget, "the pieces of a brief were counted as less than the whole"
    return made


_REDACTION_LINE = "\n- Redaction `default`: 9999 removed (" + "authorization-header 999, " * 2 + "other kinds 99)."
"""The longest that the line about redaction can be; it is written last, and has its room from the start."""


def _clean(source: Source, redactor: Redactor) -> Source:
    """A source whose texts hold no secrets."""
    fields: dict[str, Any] = {f: getattr(source, f) for f in source.__struct_fields__}
    for name in ("folder", "branch", "title"):
        if fields[name]:
            fields[name] = redactor(prepared(fields[name]))
    return Source(**fields)


SMALLEST_ITEM = 8
"""Tokens below which no item has room."""


class _Room:
    """What is left of a budget, and what was taken into it."""

    def __init__(self, budget: int, redactor: Redactor) -> None:
        self.budget = budget
        self.left = budget
        self._redactor = redactor
        self._taken: dict[int, int] = {}
        """Index of the form by index of the candidate."""
        self._items: dict[int, Item] = {}
        self._cost: dict[int, int] = {}
        self._known: dict[tuple[int, int], int] = {}
        """What a form costs, by candidate and form: those that were too large once are not made again."""
        self._by_section: dict[str, int] = {}
        self._removed: dict[int, dict[str, int]] = {}
        self._counts: Counter[str] = Counter()

    def spend(self, text: str) -> None:
        self.left -= estimate(text) + 1

    def fill(self, candidates: Sequence[Candidate]) -> None:
        """Takes candidates in, in the order the module's docstring says."""
        order = sorted(
            range(len(candidates)), key=lambda i: (RANKS.index(candidates[i].rank), candidates[i].importance, i)
        )
        self._counts = Counter(c.section for c in candidates)
        worst = next((i for i in order if candidates[i].rank == "failing"), None)
        share = {name: part * self.left for name, part in SHARES.items()}
        filling = False
        for i in order:
            if not filling and candidates[i].rank in FILLERS:
                filling = True
                for j in order:
                    if candidates[j].base:
                        self._take(j, candidates[j], candidates[j].base + 1, share)
            if not (candidates[i].base and self._take(i, candidates[i], candidates[i].base, share)):
                self._take(i, candidates[i], 0, share)
            if i == worst:
                self._take(i, candidates[i], 1, share)
        for i in order:
            self._take(i, candidates[i], candidates[i].base + 1, share)
        for i in order:
            if i not in self._taken:
                self._take(i, candidates[i], 0, None)
        for i in order:
            if candidates[i].base:
                self._take(i, candidates[i], candidates[i].base, None)
        for step in range(1, max((len(c.forms) for c in candidates), default=1)):
            for i in order:
                self._take(i, candidates[i], step, None)

    def _take(self, index: int, candidate: Candidate, step: int, share: dict[str, float] | None) -> bool:
        """Gives a candidate a larger form, where there is room. Whether it was given."""
        had = self._taken.get(index, -1)
        if step >= len(candidate.forms) or step <= had or self.left < SMALLEST_ITEM:
            return False
        if had < 0 < step != candidate.base:
            return False
        section = candidate.section
        had_some = self._by_section.get(section, 0)
        room = self.left if share is None or not had_some else min(self.left, share[section] - had_some)
        known = self._known.get((index, step), SMALLEST_ITEM)
        if known - self._cost.get(index, 0) > room:  # it was too large before, and there is no more room now
            return False
        self._redactor.removed.clear()
        form = candidate.forms[step]()
        item = Item(form.text, candidate.refs, candidate.voice, candidate.why, form.quote, form.left_out)
        cost = self._known[index, step] = estimate(item_lines(item)) + 1
        more = cost - self._cost.get(index, 0)
        if section not in self._by_section:
            more += self._overhead(section, self._counts[section])
        if more > self.left or (share is not None and had_some and had_some + more > share[section]):
            return False
        self.left -= more
        self._by_section[section] = self._by_section.get(section, 0) + more
        self._taken[index], self._items[index], self._cost[index] = step, item, cost
        self._removed[index] = dict(self._redactor.removed)
        return True

    @staticmethod
    def _overhead(section: str, candidates: int) -> int:
        """What a section costs besides its items: its heading, its note, and the line for what was left out."""
        cost = estimate(section_lines(Section(section, TITLES[section], (), NOTES.get(section, "")))) + 1
        if candidates > 1:
            refs = tuple(Ref(candidates, "r999999") for _ in range(3))
            cost += estimate(omitted_line(candidates, refs)) + 1
        return cost

    def sections(self, candidates: Sequence[Candidate]) -> tuple[Section, ...]:
        """The sections in the order they are read in, each with its items in theirs."""
        made: list[Section] = []
        for name, title in TITLES.items():
            mine = sorted((c.order, i) for i, c in enumerate(candidates) if c.section == name)
            items = tuple(self._items[i] for _, i in mine if i in self._items)
            omitted = [i for _, i in mine if i not in self._items]
            if not items:
                continue
            refs = tuple(candidates[i].refs[0] for i in omitted[-3:] if candidates[i].refs)
            made.append(Section(name, title, items, NOTES.get(name, ""), len(omitted), refs))
        return tuple(made)

    def removed(self, *others: Redactor) -> dict[str, int]:
        """What was removed from the items that were taken, by kind."""
        total: dict[str, int] = {}
        for counts in [*self._removed.values(), *(dict(o.removed) for o in others)]:
            for kind, n in counts.items():
                total[kind] = total.get(kind, 0) + n
        return dict(sorted(total.items()))
