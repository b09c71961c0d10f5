"""Receipts of another campaign: what somebody else measured of their sessions, kept apart from what asrd records.

Two kinds are read, told apart by their `contract`: totals of one Claude Code log (`ClaudeEfficiencyRollup/v1`) and what a
tree of Codex threads did between two cutoffs (`CodexTaskTreeDelta/v1`). Their units are not asrd's (a *turn* is a record
of an answer, not a request; a *model response* is a line of usage, repeats included), so nothing of them is ever added
to our figures. What a receipt says is checked against itself before it is taken: `delta` is `after` less `before` for
every number, and a tree with live threads is a lower bound.

A receipt has the name of its file without what follows an `@`: `x@0e1961e.yaml` is a version of `x`. The version with the
latest snapshot replaces the others (rule K7); one whose file says `superseded` never counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, cast

import msgspec
from msgspec import Struct

CLAUDE = "ClaudeEfficiencyRollup/v1"
CODEX = "CodexTaskTreeDelta/v1"
MAX_PROBLEMS = 64
MAX_BYTES = 4 << 20
"""A receipt is a page or two; more is no receipt."""


class NotAReceipt(ValueError):
    """Why a file is not taken as a receipt: each reason a sentence."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems[:MAX_PROBLEMS]
        super().__init__("; ".join(self.problems))


class Log(Struct, frozen=True):
    """The totals of one Claude Code log. `turns` = answer records; `wall_seconds` = first to last time, idle included."""

    turns: int
    calls: int
    errors: int
    one_off: int | None
    wall_seconds: float
    session: str
    started_at: str
    ended_at: str


class Interval(Struct, frozen=True):
    """What a tree of Codex threads did in `(start, end]`: seconds, and lines of usage (`responses`)."""

    root: str
    start: str
    end: str
    responses: int
    agent_seconds: float
    union_seconds: float
    window_seconds: float
    lower_bound: bool
    live: int
    instrumented_seconds: float = 0.0
    """Of the agent time: timed model streams, tools and compactions; they may overlap, so the share may be too high."""
    before: dict[tuple[str, str], tuple[int, int, int, float]] = {}
    """By model and thinking level, what the tree had done before `start`: responses, input and output tokens, stream seconds."""


class Receipt(Struct, frozen=True):
    """One version of one receipt, with what is needed to choose among versions."""

    name: str
    file: str
    sha256: str
    superseded: bool
    measured: Log | Interval
    taken_at: str
    size: int
    """Records of the log, or tasks of the tree: more = later, where the times are equal."""
    revision: str | None = None

    @property
    def kind(self) -> str:
        """The contract without its owner."""
        return CLAUDE if isinstance(self.measured, Log) else CODEX


class _Softschema(Struct):
    contract: str
    status: str | None = None


class _Head(Struct):
    softschema: _Softschema
    rollup: dict[str, Any]


class _Count(Struct):
    count: int | None = None


class _Turns(Struct):
    assistant: int


class _Calls(Struct):
    total: int
    errors: int
    one_off_code: _Count | None = None


class _Span(Struct):
    started_at: str
    ended_at: str
    wall_seconds: float


class _LogSource(Struct):
    session_id: str
    records: int = 0


class _Claude(Struct):
    source: _LogSource
    span: _Span
    turns: _Turns
    tool_calls: _Calls


class _TreeSource(Struct):
    root_task_id: str
    start_cutoff_at: str
    end_cutoff_at: str
    after_snapshot_at: str | None = None


class _Completeness(Struct):
    snapshot_incomplete: bool
    live_session_count: int


class _Tokens(Struct, frozen=True):
    input: int = 0
    output: int = 0


class _Model(Struct):
    model_response_count: int
    model: str = "unknown"
    thinking_level: str = "unknown"
    timed_model_stream_seconds: float = 0.0
    tokens: _Tokens = _Tokens()


class _Figures(Struct):
    task_count: int
    agent_active_seconds: float
    active_union_seconds: float
    models: list[_Model] = []
    timed_model_stream_seconds: float = 0.0
    compaction_seconds: float = 0.0
    tool_seconds_by_category: dict[str, float] = {}


class _Codex(Struct):
    source: _TreeSource
    completeness: _Completeness
    before: _Figures
    after: _Figures
    delta: _Figures


def name_of(path: str) -> tuple[str, str | None, bool]:
    """The receipt that a path names, the version of it, and whether it says that it was superseded.

    `packing/x@0e1961e-superseded.yaml` gives `("x", "0e1961e", True)`.
    """
    file = path.replace("\\", "/").rpartition("/")[2]
    for suffix in (".yaml", ".yml", ".json"):
        file = file.removesuffix(suffix)
    name, _, revision = file.partition("@")
    superseded = revision.endswith("superseded") or name.endswith("-superseded")
    revision = revision.removesuffix("superseded").rstrip("-")
    return name.removesuffix("-superseded"), revision or None, superseded


def read_receipt(file: str, data: bytes) -> Receipt:
    """One receipt, YAML or JSON. Raises NotAReceipt with every reason, ImportError where YAML cannot be read."""
    if len(data) > MAX_BYTES:
        raise NotAReceipt([f"it has {len(data)} bytes; a receipt has at most {MAX_BYTES}"])
    try:
        head = msgspec.convert(plain(data), _Head)
    except (msgspec.MsgspecError, ValueError) as error:
        raise NotAReceipt([f"no receipt: {error}"]) from error
    name, revision, superseded = name_of(file)
    contract = head.softschema.contract.rpartition(":")[2]
    try:
        if contract == CLAUDE:
            measured, taken_at, size = _claude(msgspec.convert(head.rollup, _Claude))
        elif contract == CODEX:
            problems = list(_disagreements(head.rollup))
            if problems:
                raise NotAReceipt(problems)
            measured, taken_at, size = _codex(msgspec.convert(head.rollup, _Codex))
        else:
            raise NotAReceipt([f"its contract {contract} is none that is known ({CLAUDE}, {CODEX})"])
    except msgspec.ValidationError as error:
        raise NotAReceipt([f"not a {contract}: {error}"]) from error
    return Receipt(
        name=name,
        file=file.replace("\\", "/").rpartition("/")[2],
        sha256=hashlib.sha256(data).hexdigest(),
        superseded=superseded,
        measured=measured,
        taken_at=taken_at,
        size=size,
        revision=revision,
    )


def plain(data: bytes) -> Any:
    """The values of a JSON or YAML text; times stay text. Raises ValueError, ImportError where PyYAML is missing."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return _texts(msgspec.yaml.decode(data))


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _texts(v) for k, v in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_texts(v) for v in cast("list[Any]", value)]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _claude(found: _Claude) -> tuple[Log, str, int]:
    problems: list[str] = []
    span = found.span
    apart = _seconds(span.started_at, span.ended_at, "span", problems)
    if apart is not None and abs(apart - span.wall_seconds) > 0.0015:
        problems.append(f"span.wall_seconds is {span.wall_seconds}, and the times are {apart:.3f} s apart")
    counts = (found.turns.assistant, found.tool_calls.total, found.tool_calls.errors)
    if min(counts) < 0:
        problems.append("a count is below zero")
    if problems:
        raise NotAReceipt(problems)
    once = found.tool_calls.one_off_code
    log = Log(
        turns=found.turns.assistant,
        calls=found.tool_calls.total,
        errors=found.tool_calls.errors,
        one_off=once.count if once else None,
        wall_seconds=span.wall_seconds,
        session=found.source.session_id,
        started_at=span.started_at,
        ended_at=span.ended_at,
    )
    return log, span.ended_at, found.source.records


def _codex(found: _Codex) -> tuple[Interval, str, int]:
    problems: list[str] = []
    source, state = found.source, found.completeness
    window = _seconds(source.start_cutoff_at, source.end_cutoff_at, "cutoffs", problems)
    if window is not None and window <= 0:
        problems.append("the end cutoff is not after the start cutoff")
    if state.snapshot_incomplete != (state.live_session_count > 0):
        problems.append(
            f"completeness.snapshot_incomplete is {state.snapshot_incomplete} with {state.live_session_count} live"
        )
    if problems:
        raise NotAReceipt(problems)
    assert window is not None
    interval = Interval(
        root=source.root_task_id,
        start=source.start_cutoff_at,
        end=source.end_cutoff_at,
        responses=sum(m.model_response_count for m in found.delta.models),
        agent_seconds=found.delta.agent_active_seconds,
        union_seconds=found.delta.active_union_seconds,
        window_seconds=window,
        lower_bound=state.snapshot_incomplete,
        live=state.live_session_count,
        instrumented_seconds=round(
            found.delta.timed_model_stream_seconds
            + found.delta.compaction_seconds
            + sum(found.delta.tool_seconds_by_category.values()),
            3,
        ),
        before={
            (m.model, m.thinking_level): (
                m.model_response_count,
                m.tokens.input,
                m.tokens.output,
                round(m.timed_model_stream_seconds, 3),
            )
            for m in found.before.models
            if m.model_response_count and m.tokens.input
        },
    )
    return interval, source.end_cutoff_at + "\x1f" + (source.after_snapshot_at or ""), found.after.task_count


def _seconds(start: str, end: str, what: str, problems: list[str]) -> float | None:
    """How far two times are apart; says what is wrong with them."""
    try:
        a, b = moment(start), moment(end)
    except ValueError as error:
        problems.append(f"{what}: {error}")
        return None
    return (b - a).total_seconds()


def moment(text: str) -> datetime:
    """A time with its offset. Raises ValueError."""
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if found.tzinfo is None:
        raise ValueError(f"{text} has no offset")
    return found


def _disagreements(rollup: dict[str, Any]) -> Iterable[str]:
    """Where `delta` is not `after` less `before`, to three decimals; and where `after` is less than `before`."""
    parts = [_numbers(rollup.get(side)) for side in ("before", "after", "delta")]
    before, after, delta = parts
    for key in sorted({*before, *after, *delta}):
        first, last, told = (p.get(key, 0) for p in parts)
        if last - first < -0.0005:
            yield f"{key} goes down between the cutoffs"
        elif abs(last - first - told) > 0.0015:
            yield f"delta.{key} is not after less before"


def _numbers(value: Any, path: str = "") -> dict[str, float]:
    """Every number below a value by its path; rows of `models` by model and thinking level."""
    found: dict[str, float] = {}
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            found.update(_numbers(inner, f"{path}.{key}" if path else key))
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            row = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
            found.update(_numbers(inner, f"{path}[{row.get('model')} {row.get('thinking_level')}]"))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found[path] = value
    return found


# ---------------------------------------------------------------- versions


class Chosen(Struct):
    """What of all versions is in force: by name, and what was left out with its reason."""

    receipts: dict[str, Receipt] = {}
    left_out: list[tuple[Receipt, str]] = []


def in_force(versions: Iterable[Receipt]) -> Chosen:
    """The version of each receipt that counts; independent of the order they were imported in (rule K7)."""
    by_name: dict[str, dict[str, Receipt]] = {}
    for one in versions:
        by_name.setdefault(one.name, {})[one.sha256] = one
    chosen = Chosen(receipts={}, left_out=[])
    for name, found in sorted(by_name.items()):
        ranked = sorted(found.values(), key=_rank, reverse=True)
        for place, one in enumerate(ranked):
            if one.superseded:
                later = any(not o.superseded for o in ranked)
                chosen.left_out.append((one, "superseded" if later else "superseded; the later version is not here"))
            elif place == 0:
                chosen.receipts[name] = one
            else:
                chosen.left_out.append((one, f"replaced by {ranked[0].file}"))
    return chosen


def _rank(one: Receipt) -> tuple[bool, str, int, str]:
    return (not one.superseded, one.taken_at, one.size, one.sha256)


# ---------------------------------------------------------------- who claims them


class Declared(Struct, frozen=True):
    """Figures as somebody published them: hours already rounded to two decimals there. None = not said."""

    turns: int
    calls: int
    errors: int
    one_off: int | None
    hours: Decimal


class Claimant(Struct):
    """A session of the campaign: the receipts it claims, and what was published of it (shared logs included)."""

    name: str
    title: str | None = None
    phases: int | None = None
    receipts: list[str] = []
    declared: Declared | None = None


class Claimed(Struct):
    """Who claims what. `shared`: what was published of logs that several sessions claim; `total`: sessions in all."""

    sessions: dict[str, Claimant] = {}
    shared: dict[str, Declared] = {}
    total: int | None = None

    def add(self, other: Claimed) -> None:
        """Takes in what another file says; a session that both name is as the later one says."""
        self.sessions.update(other.sessions)
        self.shared.update(other.shared)
        self.total = other.total if other.total is not None else self.total


class _Published(Struct):
    turns: int
    tool_calls: int
    tool_errors: int
    wall_hours: msgspec.Raw
    one_off_code: int | None = None
    phases: int | None = None
    own: list[str] = []
    sessions: list[str] = []

    def declared(self) -> Declared:
        """As the rest of the module has it."""
        hours = Decimal(bytes(self.wall_hours).decode())
        return Declared(self.turns, self.tool_calls, self.tool_errors, self.one_off_code, hours)


class _Totals(Struct):
    sessions_measured: int | None = None
    sessions_unmeasured: int | None = None


class _Snapshot(Struct):
    sessions: dict[str, _Published]
    shared_logs: dict[str, _Published] = {}
    codex_claims: dict[str, list[str]] = {}
    totals: _Totals | None = None


class _SessionRecord(Struct):
    id: str
    title: str | None = None
    workflow_phases: list[Any] | None = None
    resource_rollups: list[str] | None = None


class _FrontMatter(Struct):
    session: _SessionRecord


def read_snapshot(data: bytes) -> Claimed:
    """Claims as a campaign's close report has them, in JSON. Raises NotAReceipt."""
    try:
        found = msgspec.json.decode(data, type=_Snapshot)
    except msgspec.MsgspecError as error:
        raise NotAReceipt([f"no claims: {error}"]) from error
    claimed = Claimed()
    for name in sorted({*found.sessions, *found.codex_claims}):
        one = found.sessions.get(name)
        receipts = [*(one.own if one else []), *[s for s, log in found.shared_logs.items() if name in log.sessions]]
        receipts += [f"codex-task-tree-session-{c}" for c in found.codex_claims.get(name, [])]
        claimed.sessions[session_name(name)] = Claimant(
            session_name(name),
            phases=one.phases if one else None,
            receipts=receipts,
            declared=one.declared() if one else None,
        )
    claimed.shared = {name: one.declared() for name, one in found.shared_logs.items()}
    totals = found.totals
    if totals and totals.sessions_measured is not None and totals.sessions_unmeasured is not None:
        claimed.total = totals.sessions_measured + totals.sessions_unmeasured
    return claimed


def read_session_record(data: bytes) -> Claimed:
    """Claims of one session record: Markdown whose front matter has `session` with `resource_rollups`. Raises NotAReceipt."""
    text = data.decode("utf-8", "replace")
    if not text.startswith("---"):
        raise NotAReceipt(["it has no front matter"])
    front = text.split("\n---", 1)[0].removeprefix("---")
    try:
        found = msgspec.convert(plain(front.encode()), _FrontMatter).session
    except (msgspec.MsgspecError, ValueError) as error:
        raise NotAReceipt([f"its front matter is none of a session: {error}"]) from error
    phases = None if found.workflow_phases is None else len(found.workflow_phases)
    receipts = list(dict.fromkeys(name_of(r)[0] for r in found.resource_rollups or []))
    return Claimed({found.id: Claimant(found.id, found.title, phases, receipts)})


def session_name(text: str) -> str:
    """`051` is `session-051`; other names are as they are."""
    return f"session-{text}" if text.isdigit() else text
