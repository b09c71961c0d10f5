"""Which recorded edit a line of a commit comes from: what contents prove, and nothing else. Pure: what git says is given.

An edit names the content it began with and the content it left, by SHA-256. From the content before a commit to the one in it
there may be a chain of such edits; the lines that an edit of the chain added are its lines.

    - No name, no time and no likeness of text makes an origin. Where two sessions could have led to a content, it is unknown.
    - Contents between are made again from the edits' diffs or texts, and taken only where their SHA-256 is the recorded one.
    - Where the chain has a gap (a person edited between), lines of the edits before it count only where a line stands once on
      both sides of the gap; those after it were left by an edit whose whole content is the commit's.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from msgspec import Struct
from msgspec.structs import replace

EVIDENCE = {
    "content": "the file's content in the commit is the edit's, by SHA-256",
    "edit": "the edit began at the content before the commit, by SHA-256; the line stands in the commit after other changes",
    "patch-content": "as `content`, in another commit with the same patch (a rebase or a squash)",
    "patch-edit": "as `edit`, in another commit with the same patch (a rebase or a squash)",
}
"""How an origin is known."""


class Origin(Struct, frozen=True):
    """Where a line comes from: the session, its edit's record, the turn and prompt it belongs to, the model; None is unknown.

    `evidence` says how that is known (`EVIDENCE`).
    """

    agent: str
    session_id: str
    namespace: str
    record: str
    turn: str | None
    prompt: str | None
    model: str | None
    evidence: str

    @property
    def session(self) -> tuple[str, str, str]:
        """What names the session."""
        return (self.agent, self.session_id, self.namespace)


class Range(Struct, frozen=True):
    """Lines of a file at a commit, both ends included, counted from 1, and where they come from (None = unknown)."""

    start: int
    end: int
    origin: Origin | None


class Commit(Struct, frozen=True):
    """A commit (when it was made, RFC 3339), and the lines it added, by path."""

    commit: str
    at: str
    files: dict[str, list[Range]]


class Edit(Struct, frozen=True):
    """One recorded change of a file. `before` is None where it made the file, `at` is in seconds since 1970 (None = unknown).

    `pairs`: texts that it replaced, old and new, in order; `diff`: unified.
    """

    origin: Origin
    seq: int
    at: float | None
    before: str | None
    after: str
    diff: str | None = None
    pairs: tuple[tuple[str, str], ...] = ()

    @property
    def ident(self) -> tuple[tuple[str, str, str], str]:
        """What names it: its session and its record."""
        return (self.origin.session, self.origin.record)

    @property
    def when(self) -> tuple[float, int]:
        """For the last of several."""
        return (self.at if self.at is not None else -math.inf, self.seq)


def digest(text: str) -> str:
    """SHA-256 of a content."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class Base(Struct, frozen=True):
    """A line that was there before."""


BASE = Base()
Known = Origin | Base | None
"""Where a line comes from: an edit, the content before, or unknown."""


def lines_of(text: str) -> list[str]:
    """The lines of a content, as git counts them."""
    found = text.split("\n")
    return found[:-1] if found and found[-1] == "" else found


class _Hop(Struct):
    """From one content to the next; `edits` are empty where what happened between is not recorded."""

    before: str | None
    after: str
    edits: list[Edit]


def in_time(edit: Edit, latest: float | None) -> bool:
    """Whether an edit may have led to a content that was there at a time (None = now); git's times are whole seconds."""
    return edit.at is None or latest is None or edit.at <= latest + 1


def trace(
    before: str | None, after: str, edits: Iterable[Edit], latest: float | None, known: Iterable[str] = ()
) -> list[Known]:
    """Where each line of a content comes from, given the content before (None = the file was not there).

    `latest`: when the content was there for certain; later edits did not lead to it. `known`: other contents of the file.
    """
    usable = [e for e in edits if e.before != e.after and in_time(e, latest)]
    contents = {digest(t): t for t in (*known, after, *([before] if before is not None else []))}
    back, reached = _backward(before, after, usable, contents)
    hops = back
    if reached != before:
        bound = min((e.at for h in back for e in h.edits if e.at is not None), default=math.inf)
        ahead, stopped = _forward(before, reached, usable, contents, bound)
        gap = [] if stopped == reached or reached is None else [_Hop(stopped, reached, [])]
        hops = [*ahead, *gap, *back]
    origins: list[Known] = [BASE] * len(lines_of(before or ""))
    for hop in hops:
        origins = _carried(hop, origins)
    return origins


def _backward(
    goal: str | None, start: str, edits: Sequence[Edit], contents: Mapping[str, str]
) -> tuple[list[_Hop], str | None]:
    """The hops that lead to a content, in order, as far back as recorded edits prove it; and the content they begin with."""
    by_after: dict[str, list[Edit]] = {}
    for edit in edits:
        by_after.setdefault(edit.after, []).append(edit)
    hops: list[_Hop] = []
    current: str | None = start
    bound = (math.inf, 1 << 62)
    spent: set[tuple[tuple[str, str, str], str]] = set()
    """Edits that were gone through: none is twice, so that this ends."""
    while current is not None and current != goal:
        edit = _only([e for e in by_after.get(digest(current), ()) if _not_after(e, bound) and e.ident not in spent])
        if edit is None:
            break
        used: list[Edit] = [edit]
        text = _undone(current, edit, contents)
        while text is False:  # the content between is not known: as far as digests lead
            found = by_after.get(used[-1].before or "", [])
            earlier = _only(
                [e for e in found if _not_after(e, used[-1].when) and e.ident not in spent and e not in used]
            )
            if earlier is None:
                break
            used.append(earlier)
            text = _undone_by_digest(earlier, contents)
        if text is False:
            break
        assert text is None or isinstance(text, str)
        bound = used[-1].when
        spent |= {e.ident for e in used}
        hops.append(_Hop(text, current, used[::-1]))
        current = text
        places = [h.after for h in hops]
        if current in places:  # it came back to a content: what was between left nothing
            del hops[places.index(current) :]
    return hops[::-1], current


def _forward(
    start: str | None, goal: str | None, edits: Sequence[Edit], contents: Mapping[str, str], bound: float
) -> tuple[list[_Hop], str | None]:
    """The hops that begin at a content, as far as they are the only ones recorded; and the content they end with."""
    by_before: dict[str | None, list[Edit]] = {}
    for edit in edits:
        if edit.at is None or edit.at <= bound:
            by_before.setdefault(edit.before, []).append(edit)
    hops: list[_Hop] = []
    current = start
    seen = {start}
    while current != goal:
        found = by_before.get(None if current is None else digest(current), [])
        if len({(e.after, e.origin.session) for e in found}) != 1:
            break
        edit = max(found, key=lambda e: e.when)
        text = _done(current, edit, contents)
        if text is None or text in seen:
            break
        hops.append(_Hop(current, text, [edit]))
        seen.add(text)
        current = text
    return hops, current


def _not_after(edit: Edit, bound: tuple[float, int]) -> bool:
    return edit.at is None or edit.at <= bound[0]


def _only(found: Sequence[Edit]) -> Edit | None:
    """The last of edits that led to one content; None where they are of several sessions."""
    if not found or len({e.origin.session for e in found}) > 1:
        return None
    return max(found, key=lambda e: e.when)


def _undone(current: str, edit: Edit, contents: Mapping[str, str]) -> str | None | bool:
    """The content before an edit (None = no file); False where it cannot be made again."""
    if edit.before is None:
        return None
    if edit.before in contents:
        return contents[edit.before]
    for text in (*patched(current, edit.diff, back=True), *_replaced(current, [(n, o) for o, n in edit.pairs[::-1]])):
        if digest(text) == edit.before:
            return text
    return False


def _undone_by_digest(edit: Edit, contents: Mapping[str, str]) -> str | None | bool:
    if edit.before is None:
        return None
    return contents.get(edit.before, False)


def _done(current: str | None, edit: Edit, contents: Mapping[str, str]) -> str | None:
    """The content after an edit; None where it cannot be made again."""
    if edit.after in contents:
        return contents[edit.after]
    base = current or ""
    made = [new for old, new in edit.pairs if not old] if current is None else []
    for text in (*made, *patched(base, edit.diff), *_replaced(base, edit.pairs)):
        if digest(text) == edit.after:
            return text
    return None


_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def patched(text: str, diff: str | None, back: bool = False) -> list[str]:
    """The content with a unified diff applied (or taken back), with and without a newline at its end; [] where it does not fit."""
    if not diff:
        return []
    lines = text.split("\n")
    hunks: list[tuple[int, list[str], list[str]]] = []
    for line in diff.split("\n"):
        if found := _HUNK.match(line):
            hunks.append((int(found[3] if back else found[1]), [], []))
        elif hunks and line[:1] in (" ", "-", "+"):
            _, old, new = hunks[-1]
            if line[0] != "+":
                (new if back else old).append(line[1:])
            if line[0] != "-":
                (old if back else new).append(line[1:])
    if not hunks:
        return []
    for at, old, new in reversed(hunks):
        place = _place(lines, old, at)
        if place is None:
            return []
        lines[place : place + len(old)] = new
    whole = "\n".join(lines)
    return [whole, whole + "\n", whole[:-1]] if whole.endswith("\n") else [whole, whole + "\n"]


def _place(lines: list[str], old: list[str], at: int) -> int | None:
    """Where the old lines of a hunk stand: where it says (from 1; where there are none, after that line), else the only place."""
    if not old:
        return min(at, len(lines))
    expected = max(0, at - 1)
    if lines[expected : expected + len(old)] == old:
        return expected
    places = [n for n in range(len(lines) - len(old) + 1) if lines[n : n + len(old)] == old]
    return places[0] if len(places) == 1 else None


MOST_PLACES = 64
"""Places of a text in a content that are tried, each against the digest."""


def _replaced(text: str, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Contents that come of replacing texts: the first pair at each of its places or all of them, later ones at their first."""
    if not pairs or not pairs[0][0]:
        return []
    (old, new), *rest = pairs
    found: list[str] = []
    at = text.find(old)
    while at >= 0 and len(found) < MOST_PLACES:
        found.append(text[:at] + new + text[at + len(old) :])
        at = text.find(old, at + 1)
    if len(found) > 1:
        found.append(text.replace(old, new))
    for one, other in rest:
        found = [t.replace(one, other, 1) for t in found if one and one in t]
    return found


def _carried(hop: _Hop, origins: list[Known]) -> list[Known]:
    """The origins of the lines after a hop, from those before it."""
    before, after = lines_of(hop.before or ""), lines_of(hop.after)
    made: Known = _origin(hop.edits)
    counts = (Counter(before), Counter(after))
    found: list[Known] = [made] * len(after)
    for a, b, size in _equal(before, after):
        for n in range(size):
            origin = origins[a + n]
            if not hop.edits and isinstance(origin, Origin):
                line = after[b + n]
                once = counts[0][line] == counts[1][line] == 1 and sum(map(str.isalnum, line)) >= ENOUGH
                origin = replace(origin, evidence="edit") if once else None
            found[b + n] = origin
    return found


ENOUGH = 3
"""Letters and digits that a line must have to be told across a gap."""


def _origin(edits: Sequence[Edit]) -> Origin | None:
    """The origin of lines that these edits made together; None where they are of several sessions, or there are none."""
    if not edits or len({e.origin.session for e in edits}) > 1:
        return None
    last = edits[-1].origin
    alike = {name: len({getattr(e.origin, name) for e in edits}) == 1 for name in ("turn", "prompt", "model")}
    return replace(last, **{name: None for name, same in alike.items() if not same})


def _equal(before: list[str], after: list[str]) -> list[tuple[int, int, int]]:
    """Blocks of lines that stayed: where they stood, where they stand, how many."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    middle = SequenceMatcher(
        None, before[start : len(before) - end], after[start : len(after) - end], autojunk=False
    ).get_matching_blocks()
    blocks = [(m.a + start, m.b + start, m.size) for m in middle if m.size]
    return [(0, 0, start), *blocks, (len(before) - end, len(after) - end, end)]


def ranges(origins: Sequence[tuple[int, Origin | None]]) -> list[Range]:
    """Lines with their origins as ranges of lines that follow each other and come from one."""
    found: list[Range] = []
    for line, origin in origins:
        last = found[-1] if found else None
        if last is not None and last.end == line - 1 and last.origin == origin:
            found[-1] = replace(last, end=line)
        else:
            found.append(Range(line, line, origin))
    return found
