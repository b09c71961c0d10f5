"""The 31 marks of one home: its streams, line by line as they were stored, beside what happened."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from asrd.recorders.base import StreamKey
from asrd.records import (
    FORMAT_VERSION,
    RECORD_TYPES,
    TYPE_NAMES,
    AnyRecord,
    Approval,
    Compaction,
    FileChange,
    Inference,
    Message,
    Plan,
    Session,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
    VcsAction,
    decode,
)
from asrd.store.stream import file_name, folder_name
from asrd.validate import check
from tests.score.facts import Action, Edit, Prompt, Response, Truth, texts
from tests.score.rubric import DENSITY, DUPLICATES, Mark

FORMAT = Path(__file__).parents[2] / "docs" / "format.md"
CALLED = ("toolUse", "tool_use", "tool_calls", "tool-calls", "function_call")
"""Stop reasons that say a response went on with a call, in the words of the harnesses."""


class Stream:
    """One stream. `records` are all of it; `standing` those that no other replaced and that are no copies."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name, self.data = name, data
        self.lines = data.split(b"\n")[:-1]
        self.records: list[AnyRecord] = [decode(line) for line in self.lines]
        replaced = {r.supersedes for r in self.records if r.supersedes}
        self.standing = [r for r in self.records if r.id not in replaced and r.copy_of is None]
        self.places = {id(r): (name, n) for n, r in enumerate(self.records)}

    def earlier(self, inference: Inference) -> list[str]:
        """The ids an inference goes by: its own, and those of the ones it took the place of."""
        by_id = {r.id: r for r in self.records}
        names: list[str] = []
        one: AnyRecord | None = inference
        while isinstance(one, Inference):
            names.append(one.inference_id)
            one = by_id.get(one.supersedes or "")
        return names

    @property
    def header(self) -> Session:
        first = self.records[0]
        assert isinstance(first, Session)
        return first


class Story:
    """All streams of a home, in the order of their times, and what of them states which fact."""

    def __init__(self, streams: Mapping[str, bytes], truth: Truth) -> None:
        self.truth = truth
        self.again: Mapping[str, bytes] = streams
        self.streams = [Stream(name, data) for name, data in sorted(streams.items())]
        self.streams.sort(key=lambda s: s.header.started_at or "")
        self.standing = list(without_copies(self.streams))
        self.places = {i: p for s in self.streams for i, p in s.places.items()}
        self.inferences: dict[tuple[str, str], Inference] = {}
        for s in self.streams:
            for r in s.standing:
                if isinstance(r, Inference):
                    self.inferences.update({(s.name, name): r for name in s.earlier(r)})
        self.calls = {named(r.call_id): r for r in self.standing if isinstance(r, ToolCall)}
        self.results = {named(r.call_id): r for r in self.standing if isinstance(r, ToolResult)}
        self.within: dict[str, list[str]] = {}
        for name, call in self.calls.items():
            within = (call.meta or {}).get("dev.asrd.within")
            if isinstance(within, dict):
                self.within.setdefault(str(within["callId"]), []).append(name)  # type: ignore[reportUnknownArgumentType]
        self.asked = [r for r in self.standing if isinstance(r, Message) and r.role == "user" and r.origin == "prompt"]
        self.prompts: list[Message | None] = [self._prompt(p) for p in truth.prompts]
        self.answers: list[Message | None] = [self._answer(r) for r in truth.responses]
        self.told = [shown(r, m) for r, m in zip(truth.responses, self.answers, strict=True)]
        self.did: list[ToolCall | None] = [self._call(a) for a in truth.actions]
        self.came: list[ToolResult | None] = [
            self.results.get(named(c.call_id)) if c is not None else None for c in self.did
        ]
        self.changed: list[FileChange | None] = self._changes()

    def place(self, record: AnyRecord) -> tuple[str, int]:
        """The stream of a record, and its line."""
        return self.places[id(record)]

    def follows(self, records: Iterable[AnyRecord | None]) -> bool:
        """Whether records stand one behind the other in one stream."""
        found = [self.place(r) for r in records if r is not None]
        return len({name for name, _ in found}) <= 1 and found == sorted(set(found))

    def turn_of(self, record: AnyRecord) -> tuple[str, str | None]:
        """The stream of a record and its turn: ids of turns are a session's own."""
        return self.place(record)[0], record.turn_id

    def turn(self, marker: str) -> tuple[str, str | None] | None:
        """The turn that the prompt with that marker started; None for what sub-agents were asked."""
        at = self.truth.turn_of(marker)
        prompt = self.prompts[at] if at is not None else None
        return self.turn_of(prompt) if prompt is not None and prompt.turn_id is not None else None

    def _prompt(self, wanted: Prompt) -> Message | None:
        if wanted.text is not None:
            return next((m for m in self.asked if words(m) == wanted.text or unquoted(m) == wanted.text), None)
        return next((m for m in self.asked if f"[[{wanted.marker}]]" in words(m)), None)

    def _answer(self, wanted: Response) -> Message | None:
        """The last thing the agent said in the turn."""
        turn = self.turn(wanted.marker)
        said = [
            r
            for r in self.standing
            if isinstance(r, Message) and r.role == "assistant" and self.turn_of(r) == turn and words(r)
        ]
        return said[-1] if said and turn is not None else None

    def _call(self, wanted: Action) -> ToolCall | None:
        if wanted.call_id is not None:
            return self.calls.get(wanted.call_id)
        turn = self.turn(wanted.marker)
        for call in self.calls.values():
            if self.turn_of(call) != turn:
                continue
            if wanted.edits and call.kind == "edit":
                return call
            if wanted.command and wanted.command in segments(call):
                return call
        return None

    def _changes(self) -> list[FileChange | None]:
        """The change of each edit, each used once, in their order."""
        left = [r for r in self.standing if isinstance(r, FileChange)]
        found: list[FileChange | None] = []
        for edit in self.truth.edits:
            one = next((c for c in left if is_of(c, edit)), None)
            if one is not None:
                left.remove(one)
            found.append(one)
        return found


def without_copies(streams: list[Stream]) -> Iterator[AnyRecord]:
    """What stands in all streams; what a harness wrote again under the same id into a later session's file, once."""
    seen: set[tuple[str, str, str | None]] = set()
    for stream in streams:
        mine = {
            (type(r).__name__, r.native_id or "", getattr(r, "call_id", None)) for r in stream.standing if r.native_id
        }
        yield from (
            r
            for r in stream.standing
            if r.native_id is None or (type(r).__name__, r.native_id, getattr(r, "call_id", None)) not in seen
        )
        seen |= mine


def shown(told: Response, message: Message | None) -> Response:
    """Of the answers a turn's model gave without a call, the one that is shown; the last where none is."""
    if message is None:
        return told
    return next((r for r in (told, *told.before[::-1]) if r.text.strip() == words(message).strip()), told)


def unquoted(message: Message) -> str:
    """A prompt without the quotes that OpenCode's command line puts around an argument with blanks."""
    return words(message).removesuffix("\n").removeprefix('"').removesuffix('"')


def is_of(change: FileChange, edit: Edit) -> bool:
    return (
        Path(change.path.path).name == Path(edit.path).name
        and (edit.before is None or (change.before is not None and change.before.sha256 == edit.before))
        and (edit.after is None or (change.after is not None and change.after.sha256 == edit.after))
    )


def named(call_id: str) -> str:
    """A call's id as the model server gave it (Gemini CLI puts the tool's name before it)."""
    return call_id.split("__")[-1]


def nested(call_id: str) -> bool:
    """Whether a script of Codex made the call, or a person in its shell, and not the model."""
    return call_id.startswith("exec-") or bool(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", call_id))


def words(record: Message | ToolResult) -> str:
    return "\n".join(b.text for b in record.content or () if isinstance(b, Text))


def given(call: ToolCall) -> list[str]:
    return texts(call.input)


def segments(call: ToolCall) -> set[str]:
    """The single commands of a shell call, each with its words set apart by one blank."""
    line = call.input.get("command") or call.input.get("cmd") or call.input.get("raw") or ""
    line = line[-1] if isinstance(line, list) and line else line  # type: ignore[reportUnknownVariableType]
    found: set[str] = set()
    for part in re.split(r"&&|\|\||;|\n", str(line)):  # type: ignore[reportUnknownArgumentType]
        try:
            found.add(" ".join(shlex.split(part)))
        except ValueError:
            continue
    return found


# ---------------------------------------------------------------- what happened


def counted(pairs: Iterable[tuple[str, bool]], decoded: int | None = None) -> Mark:
    """A mark over facts, each with its name and whether it is there as it was."""
    facts = list(pairs)
    missing = [name for name, there in facts if not there]
    good = len(facts) - len(missing)
    return Mark(good, good if decoded is None else decoded, len(facts), ", ".join(missing))


def yes(there: bool, why: str = "") -> Mark:
    return Mark(1 if there else 0, 1, 1, "" if there else why)


def submitted(s: Story) -> Mark:
    return counted(
        ((p.marker, found is not None) for p, found in zip(s.truth.prompts, s.prompts, strict=True)), len(s.asked)
    )


def visible(s: Story) -> Mark:
    return counted(
        (r.marker, found is not None and ends_with(found, r) and s_completed(s, found))
        for r, found in zip(s.told, s.answers, strict=True)
    )


def ends_with(message: Message, told: Response) -> bool:
    return words(message).rstrip().endswith(told.text.rstrip().split("\n")[-1])


def s_completed(s: Story, message: Message) -> bool:
    """Whether the source says that the answer is whole."""
    ended = any(
        isinstance(r, Turn) and r.phase == "end" and s.turn_of(r) == s.turn_of(message) and r.status == "completed"
        for r in s.standing
    )
    inference = s.inferences.get((s.place(message)[0], message.inference_id or ""))
    stopped = inference is not None and inference.stop_reason is not None and inference.stop_reason not in CALLED
    return ended or stopped


def actions(s: Story) -> Mark:
    """Calls, with what they were given and in which turn."""
    surplus = [i for i in s.calls if s.truth.whole and not nested(i) and i not in {a.call_id for a in s.truth.actions}]
    facts = [
        (a.call_id or a.command or "edit", is_action(s, a, c)) for a, c in zip(s.truth.actions, s.did, strict=True)
    ]
    mark = counted(facts)
    why = ", ".join([*([mark.why] if mark.why else []), *(f"one more: {i}" for i in surplus)])
    return Mark(mark.correct, mark.correct + len(surplus), mark.observed, why)


def is_action(s: Story, told: Action, call: ToolCall | None) -> bool:
    if call is None:
        return False
    turn = s.turn(told.marker)
    if turn is not None and s.turn_of(call) != turn:
        return False
    if told.call_id is None or told.command is None:
        there = set(given(call))
        return all(t in there for t in told.texts)
    there = set(given(call))
    return (
        told.command in segments(call) or told.command in there or (bool(told.texts) and there.issuperset(told.texts))
    )


def results(s: Story) -> Mark:
    """Each with its status, its exit code and what was put out."""
    return counted(
        (a.call_id or a.command or "edit", is_result(s, n)) for n, a in enumerate(s.truth.actions) if a.ended
    )


def is_result(s: Story, n: int) -> bool:
    told, result = s.truth.actions[n], s.came[n]
    if (
        result is None
        or (result.status == "unknown" and told.exit_code is not None)
        or not same_output(s.truth, told, result)
    ):
        return False
    code = exit_code(s, result)
    return told.exit_code is None or code == told.exit_code or (told.exit_code == 0 and went_on(s, n, result))


def exit_code(s: Story, result: ToolResult) -> int | None:
    """The code a call ended with: its result's, or that of the one command a script of Codex ran in it."""
    if result.exec is not None and result.exec.exit_code is not None:
        return result.exec.exit_code
    inside = [s.results[i] for i in s.within.get(result.call_id, ()) if i in s.results]
    codes = [r.exec.exit_code for r in inside if r.exec is not None and r.exec.exit_code is not None]
    return codes[-1] if codes else None


def went_on(s: Story, n: int, result: ToolResult) -> bool:
    """Whether an unbroken `&&` led to a command of the same line whose output is there: this one ended with 0."""
    line = (result.exec.command if result.exec else None) or ""
    later = [a for a, r in zip(s.truth.actions[n + 1 :], s.came[n + 1 :], strict=True) if r is result]
    unbroken = "&&" in line and not re.search(r"\|\||;|\n", line)
    return unbroken and bool(later) and all(same_output(s.truth, a, result) for a in later)


def same_output(truth: Truth, told: Action, result: ToolResult) -> bool:
    """Whether the result holds what was put out. What a capture's model was told has words of the harness around it."""
    shown = words(result) + "\n" + ((result.exec.stdout or "") if result.exec else "")
    if not truth.whole:
        return told.output in shown
    true = told.output + "\n" + "\n".join(texts(inner(told.output)))
    lines = [line.strip() for line in shown.splitlines() if len(line.strip()) >= 4]
    return not told.output or not lines or any(line in true for line in lines)


def inner(text: str) -> Any:
    """What a text that is JSON says; None for any other."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def changed_files(s: Story) -> Mark:
    whole = [c for c in s.standing if isinstance(c, FileChange) and c.before and c.after]
    names = {Path(e.path).name for e in s.truth.edits}
    more = [c for c in whole if Path(c.path.path).name in names and c not in s.changed]
    facts = [
        (e.path, c is not None and c.before is not None and c.after is not None and at_path(c, e))
        for e, c in zip(s.truth.edits, s.changed, strict=True)
    ]
    mark = counted(facts)
    return Mark(mark.correct, mark.correct + len(more), mark.observed, mark.why)


def at_path(change: FileChange, edit: Edit) -> bool:
    """Whether the change's path ends as the edit's does, or the other way round: roots differ."""
    ours, theirs = Path(change.path.path).parts, Path(edit.path).parts
    short = min(len(ours), len(theirs))
    return ours[-short:] == theirs[-short:]


def requirement(n: int) -> Callable[[Story], Mark]:
    def mark(s: Story) -> Mark:
        return yes(s.prompts[n] is not None, "the text differs") if n < len(s.prompts) else Mark(0, 0, 0)

    return mark


def in_order(s: Story) -> Mark:
    """Prompts of one stream stand in the order they were given."""
    by_stream: dict[str, list[Message]] = {}
    for prompt in (p for p in s.prompts if p is not None):
        by_stream.setdefault(s.place(prompt)[0], []).append(prompt)
    return yes(all(s.follows(found) for found in by_stream.values()) and None not in s.prompts, "no order")


def final_after(s: Story) -> Mark:
    """Prompt, last edit, its result, the last command that succeeded, its result, answer: in this order, in one turn."""
    wrote = {c.call_id for c in s.changed if c is not None}
    wrote |= {outer for outer, inside in s.within.items() if wrote.intersection(inside)}
    edits = [n for n, c in enumerate(s.did) if c is not None and c.call_id in wrote]
    if not s.truth.edits:
        return Mark(0, 0, 0)
    if not edits:
        return yes(False, "no edit")
    last = edits[-1]
    marker = s.truth.actions[last].marker
    finals = [
        n for n, a in enumerate(s.truth.actions) if n > last and a.marker == marker and a.exit_code == 0 and a.ended
    ]
    turn = s.truth.turn_of(marker)
    if not finals or turn is None:
        return Mark(0, 0, 0)
    answer = next((m for r, m in zip(s.told, s.answers, strict=True) if r.marker == marker), None)
    chain = [
        s.prompts[turn],
        s.did[last],
        s.came[last],
        s.did[finals[0]],
        s.came[finals[0]],
        answer,
    ]
    edited, final = s.came[last], s.came[finals[0]]
    good = (
        None not in chain
        and s.follows(chain)
        and {s.turn_of(r) for r in chain if r is not None} == {s.turn(marker)}
        and edited is not None
        and edited.status == "completed"
        and final is not None
        and exit_code(s, final) == 0
    )
    return yes(good, "not in one order")


def action_result(s: Story) -> Mark:
    return counted(
        (
            a.call_id or a.command or "edit",
            c is not None and r is not None and r.linkage == "exact" and s.follows([c, r]),
        )
        for a, c, r in zip(s.truth.actions, s.did, s.came, strict=True)
        if a.ended
    )


def turn_response(s: Story) -> Mark:
    return counted(
        (r.marker, m is not None and s.turn_of(m) == s.turn(r.marker)) for r, m in zip(s.told, s.answers, strict=True)
    )


def rationale(s: Story) -> Mark:
    return counted(
        (r.marker, m is not None and (words(m) == r.text or words(m).strip() == r.text.strip()))
        for r, m in zip(s.told, s.answers, strict=True)
    )


def thread(s: Story) -> Mark:
    """Session, turn, role and order are said: no record that states an event is without its turn, each is of one session."""
    ids = {stream.header.session_id for stream in s.streams}
    if missing := [i for i in s.truth.sessions if i not in ids]:
        return yes(False, f"session {missing}")
    events: list[AnyRecord | None] = [*s.prompts, *s.answers, *s.did, *s.came]
    loose = [r.id for r in events if r is not None and r.turn_id is None]
    return yes(not loose, f"no turn: {loose}")


# ---------------------------------------------------------------- figures


def response_of(s: Story, message: Message | None) -> Inference | None:
    if message is None or message.inference_id is None:
        return None
    return s.inferences.get((s.place(message)[0], message.inference_id))


def model_config(s: Story) -> Mark:
    def right(told: Response, message: Message | None) -> bool:
        one = response_of(s, message)
        return one is not None and one.model is not None and (told.model is None or bare(one.model) == bare(told.model))

    return counted((r.marker, right(r, m)) for r, m in zip(s.told, s.answers, strict=True))


def bare(model: str) -> str:
    return re.sub(r"\[.*\]$", "", model)


def usage(s: Story) -> Mark:
    """Input and output of the answers, joined by the inference's id; of captures the figures too."""

    def right(told: Response, message: Message | None) -> bool:
        one = response_of(s, message)
        found = one.usage if one is not None else None
        if found is None and message is not None and anchored(s, message):
            return True
        if found is None or found.input is None or found.output is None:
            return False
        total = found.input + (found.cache_read or 0) + (found.cache_write or 0)
        return told.usage is None or told.usage == (total, found.output)

    return counted((r.marker, right(r, m)) for r, m in zip(s.told, s.answers, strict=True))


def anchored(s: Story, message: Message) -> bool:
    """Whether the source has a response's figures in its own count, kept beside the counters they are part of (Hermes)."""
    for one in s.standing:
        raw = (one.meta or {}).get("dev.asrd.usage") if isinstance(one, Inference) else None
        if isinstance(raw, dict) and raw.get("responses", [])[-1:] == [message.inference_id]:  # type: ignore[reportUnknownMemberType]
            anchor = raw.get("usage_anchor")  # type: ignore[reportUnknownMemberType]
            return isinstance(anchor, dict) and {"prompt_tokens", "completion_tokens"} <= anchor.keys()
    return False


def semantics(s: Story) -> Mark:
    def right(message: Message | None) -> bool:
        one = response_of(s, message)
        found = one.usage if one is not None else None
        return found is not None and None not in (found.input, found.output, found.cache_read, found.cache_write)

    return counted((r.marker, right(m)) for r, m in zip(s.told, s.answers, strict=True))


BUCKETS = ("input", "output", "cache_read", "cache_write")


def reconciliation(s: Story) -> Mark:
    """A total that the harness declared, which is the sum of its responses' own figures in every bucket it names."""
    own = [r for r in s.standing if isinstance(r, Inference) and r.usage and is_own(r)]
    for total in (r for r in s.standing if isinstance(r, UsageTotal)):
        here, turn = s.turn_of(total)
        mine = [r for r in own if total.scope == "tree" or s.place(r)[0] == here]
        mine = [r for r in mine if total.scope != "turn" or r.turn_id == turn]
        before = [r for r in mine if s.place(r)[0] == here and r.seq < total.seq]
        for parts in (mine, before, [*before, *(r for r in mine if s.place(r)[0] != here)]):
            if len(parts) > 1 and sums_to(total.usage, [r.usage for r in parts if r.usage is not None]):
                return yes(True)
    return yes(False, "no total that its responses add up to")


def is_own(inference: Inference) -> bool:
    """Whether the figures are the response's own and no difference of a counter (which always adds up to it)."""
    raw = (inference.meta or {}).get("dev.asrd.usage")
    return inference.id_source != "derived" or (isinstance(raw, dict) and "last" in raw)


def sums_to(total: Usage, parts: list[Usage]) -> bool:
    stated = [b for b in BUCKETS if getattr(total, b) is not None]
    return (
        "input" in stated
        and "output" in stated
        and all(getattr(total, b) == sum(getattr(p, b) or 0 for p in parts) for b in stated)
    )


# ---------------------------------------------------------------- form


def complete_root(s: Story) -> Mark:
    """A session is one file, and says the sources it was made from with their fingerprints."""
    said = all(stream.header.sources for stream in s.streams)
    return yes(said and not any(f.severity == "error" for st in s.streams for f in checked(st)), "not valid")


def checked(stream: Stream) -> list[Any]:
    return list(check([line + b"\n" for line in stream.lines]))


def isolated(s: Story) -> Mark:
    """A copy of the home in another place, with nothing around it, gives these sessions too."""
    return yes(set(s.again) == {stream.name for stream in s.streams}, "other sessions from a copy")


def canonical(s: Story) -> Mark:
    """And gives them byte for byte."""
    other = [stream.name for stream in s.streams if s.again.get(stream.name) != stream.data]
    return yes(not other, f"otherwise from a copy: {other}")


def plain_json(s: Story) -> Mark:
    return yes(all(isinstance(json.loads(line), dict) for st in s.streams for line in st.lines))


def documented(s: Story) -> Mark:
    text = FORMAT.read_text()
    used = {TYPE_NAMES[type(r)] for st in s.streams for r in st.records}
    missing = [name for name in sorted(used) if f"### {name}\n" not in text]
    return yes(not missing, f"not in docs/format.md: {missing}")


def identity(s: Story) -> Mark:
    return yes(
        all(h.agent.name and h.session_id and h.producer.name and h.scope for h in (st.header for st in s.streams))
    )


def version(s: Story) -> Mark:
    return yes(all(st.header.format_version == FORMAT_VERSION for st in s.streams))


def honest(s: Story) -> Mark:
    """Another version is not read as if it were this one."""
    line = s.streams[0].lines[0].replace(b'"formatVersion":"' + FORMAT_VERSION.encode(), b'"formatVersion":"9.9', 1)
    return yes(any(f.rule == "format-version" for f in check([line + b"\n"])))


def stable(s: Story) -> Mark:
    """No record of a type the format has not, and no source bytes that could not be converted."""
    bad = [
        r.id
        for st in s.streams
        for r in st.records
        if type(r) not in RECORD_TYPES or TYPE_NAMES[type(r)] in ("loss", "gap")
    ]
    return yes(not bad, f"{bad}")


def location(s: Story) -> Mark:
    """A stream's place is known from its harness and its session's id."""
    lost = [
        st.name for st in s.streams if st.name != f"{folder_name(st.header.agent.name)}/{file_name(key_of(st.header))}"
    ]
    return yes(not lost, f"{lost}")


def key_of(header: Session) -> StreamKey:
    return StreamKey(header.agent.name, header.session_id, header.namespace or "")


def timestamps(s: Story) -> Mark:
    events: list[tuple[str, AnyRecord | None]] = [
        (p.marker, m) for p, m in zip(s.truth.prompts, s.prompts, strict=True)
    ]
    events += [(f"answer {r.marker}", m) for r, m in zip(s.told, s.answers, strict=True)]
    for a, c, r in zip(s.truth.actions, s.did, s.came, strict=True):
        events.append((f"call {a.call_id or a.command or 'edit'}", c))
        events += [(f"result {a.call_id or a.command or 'edit'}", r)] if a.ended else []
    events += [(f"change {e.path}", c) for e, c in zip(s.truth.edits, s.changed, strict=True)]
    return counted((name, record is not None and is_time(record.at)) for name, record in events)


def is_time(at: str | None) -> bool:
    try:
        return at is not None and datetime.fromisoformat(at).tzinfo is not None
    except ValueError:
        return False


# ---------------------------------------------------------------- once


SHORT = 24
"""Characters below which a text is met by chance inside another: it restates only as a text of its own."""


def leaves(line: bytes) -> list[str]:
    """All texts of a record, those inside JSON in a text too, its place in the source left out."""
    fields = json.loads(line)
    fields.get("_meta", {}).pop("dev.asrd.span", None)
    found = texts(fields)
    return [*found, *(t for text in found if text[:1] in "{[" for t in texts(inner(text)))]


def holds(there: list[str], text: str) -> bool:
    """Whether one of a record's texts has all of another in it."""
    return text in there or (len(text) >= SHORT and any(text in one for one in there))


def quotes(record: AnyRecord, call_id: str) -> bool:
    """Whether a record says what that call did, and may quote it."""
    return isinstance(record, ToolResult | FileChange | VcsAction | Approval | Plan) and record.call_id == call_id


def names(record: AnyRecord, message: Message) -> bool:
    """Whether a compaction says by its id that it holds that message."""
    return isinstance(record, Compaction) and record.message_id is not None and record.message_id == message.message_id


def statements(s: Story, strict: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Each event, and the ids of the records that state it."""
    for stream in s.streams:
        standing = {id(r) for r in stream.standing}
        told = [(r, leaves(line)) for r, line in zip(stream.records, stream.lines, strict=True) if id(r) in standing]
        of_calls = Counter(r.call_id for r, _ in told if isinstance(r, ToolCall))
        of_results = Counter(r.call_id for r, _ in told if isinstance(r, ToolResult))
        for r, _ in told:
            if (
                isinstance(r, Message)
                and (text := words(r))
                and r.origin != "injected"
                and r.role in ("user", "assistant")
            ):
                again = [
                    o.id
                    for o, said in told
                    if o is not r and (is_same(o, r) or (not names(o, r) and not is_event(o) and holds(said, text)))
                ]
                yield f"{r.role} {r.id}", [r.id, *again]
            elif isinstance(r, ToolCall) and (parts := given(r)):
                again = [
                    o.id
                    for o, said in told
                    if o is not r
                    and (strict or not quotes(o, r.call_id))
                    and (not is_event(o) or (strict and quotes(o, r.call_id)))
                    and all(holds(said, p) for p in parts)
                    and (any(" " in p for p in parts) or r.name in said)
                ]
                yield f"call {r.call_id}", [r.id, *again] * of_calls[r.call_id]
            elif isinstance(r, ToolResult) and (text := words(r)):
                again = [
                    o.id
                    for o, said in told
                    if o is not r and not is_event(o) and (strict or not quotes(o, r.call_id)) and holds(said, text)
                ]
                yield f"result {r.call_id}", [r.id, *again] * of_results[r.call_id]


def is_event(record: AnyRecord) -> bool:
    return isinstance(record, Message | ToolCall | ToolResult)


def is_same(other: AnyRecord, message: Message) -> bool:
    """Whether another message of the same turn says the same in the same role."""
    return (
        isinstance(other, Message)
        and other.role == message.role
        and other.turn_id == message.turn_id
        and other.origin == message.origin
        and (other.inference_id == message.inference_id or None in (other.inference_id, message.inference_id))
        and words(other) == words(message)
    )


def once(s: Story, strict: bool = False) -> Mark:
    found = list(statements(s, strict))
    again = [f"{event} also in {ids[1:]}" for event, ids in found if len(ids) != 1]
    return Mark(len(found) - len(again), sum(len(ids) for _, ids in found), len(found), "; ".join(again))


def density(s: Story) -> Mark:
    """Bytes of records that say what was asked, answered, called, returned, changed or planned, of all bytes."""
    good = whole = 0
    for stream in s.streams:
        for record, line in zip(stream.records, stream.lines, strict=True):
            size = len(json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())
            whole += size
            good += size if is_useful(record) else 0
    return Mark(good, whole, whole)


def is_useful(record: AnyRecord) -> bool:
    if isinstance(record, Message):
        return record.role in ("user", "assistant") and record.origin not in ("injected", "summary")
    return isinstance(record, ToolCall | ToolResult | FileChange | Plan)


EVALUATE: Mapping[str, Callable[[Story], Mark]] = {
    "work.submitted_turns": submitted,
    "work.visible_responses": visible,
    "work.actions": actions,
    "work.results": results,
    "work.changed_files": changed_files,
    "revision.r1": requirement(0),
    "revision.r2": requirement(1),
    "revision.r1_r2_order": in_order,
    "revision.final_after_r2": final_after,
    "causal.action_result": action_result,
    "causal.turn_response": turn_response,
    "broad.readable_rationale": rationale,
    "broad.thread_structure": thread,
    "attribution.model_config": model_config,
    "attribution.usage": usage,
    "attribution.token_semantics": semantics,
    "attribution.reconciliation": reconciliation,
    "portable.complete_root": complete_root,
    "portable.companions": complete_root,
    "portable.isolated_decode": isolated,
    "portable.canonical_equality": canonical,
    "broad.standard_tools_readable": plain_json,
    "broad.documented_format": documented,
    "broad.self_contained_identity": identity,
    "broad.declared_format_version": version,
    "broad.event_timestamps": timestamps,
    "broad.honest_version_signal": honest,
    "broad.observed_schema_stability": stable,
    "broad.stable_root_location": location,
    DUPLICATES: once,
    DENSITY: density,
}


def evaluate(story: Story, again: Mapping[str, bytes]) -> dict[str, Mark]:
    """All marks of a home. `again`: its streams, made from a copy of it in another place."""
    story.again = again
    return {name: mark(story) for name, mark in EVALUATE.items()}
