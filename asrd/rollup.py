"""Folds the records of one session into the rows that questions are answered from.

A fold is pure and resumable: `SessionRow` is its whole state, and `add` may be called with the next records at any
later time. What counts once over all sessions (a response, a call, a turn) becomes a row with an identity key; the
ledger decides which of equal keys counts.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

from asrd.handoff_token import TOKEN_LINE
from asrd.moments import before, utc
from asrd.oneoff import one_off
from asrd.records import (
    Approval,
    Capture,
    Compaction,
    Config,
    End,
    FileChange,
    Gap,
    Inference,
    Limit,
    Link,
    LinkTarget,
    Loss,
    Message,
    Native,
    Plan,
    Record,
    Session,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
    VcsAction,
)

QUEUED_KEPT = 16
PROMPT_LENGTH = 200
"""Characters of the first prompt that are kept as a name for the session."""


class SessionRow(Struct):
    """One session as lists show it. Every field that is None is unknown."""

    agent: str
    session_id: str
    namespace: str = ""
    path: str = ""
    bytes: int = 0
    records: int = 0
    scope: str = "primary"
    authority: str | None = None
    version: str | None = None
    originator: str | None = None
    started_at: str | None = None
    first_at: str | None = None
    last_at: str | None = None
    title: str | None = None
    prompt: str | None = None
    cwd: str | None = None
    branch: str | None = None
    model: str | None = None
    root: int | None = None
    parent_agent: str | None = None
    parent_session: str | None = None
    parent_namespace: str | None = None
    parent_relation: str | None = None
    parent_call: str | None = None
    parent_evidence: str | None = None
    turns: int = 0
    prompts: int = 0
    messages: int = 0
    calls: int = 0
    failed: int = 0
    edits: int = 0
    commits: int = 0
    compactions: int = 0
    copies: int = 0
    gaps: int = 0
    losses: int = 0
    natives: int = 0
    open_turn: str | None = None
    turn_at: str | None = None
    """When the last record of the open turn was made."""
    open_calls: int = 0
    ended: str | None = None
    lower_bound: str | None = None
    """Why the session's figures are known to be too low (a fact of this session)."""
    not_recorded: str | None = None
    """Which requests the harness writes to no file, whatever the session (a fact of the harness)."""
    digest: str | None = None
    """What handoff tokens name the session by."""
    token: str | None = None
    """The line of the first prompt that looks like a handoff token, whether or not its check digits are right."""
    declared: str | None = None
    """The last cumulative totals that the harness declares, as JSON of `Declared` by scope."""
    content_level: str | None = None
    wordless: int = -1
    """The last `seq` whose words are not kept any longer (`asrd.retention`)."""
    queued: str = ""
    """Ids of its last records without a place of their own: a message may take the place of one (a queue's entry)."""
    alias: str | None = None
    """Another name that the harness gives the session, by which others know it (`ALIAS`)."""
    internal: str | None = None
    """What the harness itself started the session for, where it says so (`INTERNAL`)."""
    observed: int | None = None
    """Of a secondary stream: the number of the recorded session it sees; nothing of it counts then."""


class Declared(Struct, rename="camel", omit_defaults=True):
    """A cumulative total that a harness declares (`usage_total`); `restarts`: how often it began anew before."""

    seq: int
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    restarts: int = 0

    @property
    def input_total(self) -> int | None:
        """Input with cache reads and writes; None where none of them is told."""
        known = [n for n in (self.input, self.cache_read, self.cache_write) if n is not None]
        return sum(known) if known else None


class InferenceRow(Struct):
    """One statement of one model response. `key` is equal for every statement of the same response, anywhere."""

    key: str
    seq: int
    at: str | None
    model: str | None
    provider: str | None
    effort: str | None
    turn: str | None
    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None
    cache_write_5m: int | None
    cache_write_1h: int | None
    reasoning: int | None
    cost: str | None
    currency: str | None
    copy_of: str | None
    measured: int
    branch: str | None = None
    duration_ms: float | None = None
    mark: str | None = None
    """Of a response without an id of its own: what tells it from others wherever it stands (`MARK`)."""
    request: str | None = None
    """What kind of request it is where that decides how it counts: `COMPACTION`, `CARRIER`."""


class CallRow(Struct):
    """One tool call with its outcome, as far as it is known."""

    key: str
    call_id: str
    seq: int
    at: str | None
    turn: str | None
    name: str | None
    kind: str | None
    copy_of: str | None
    result_seq: int | None = None
    result_at: str | None = None
    status: str | None = None
    exit_code: int | None = None
    one_off: int = 0
    """Whether it is code for this once: a Python heredoc or `python -c`."""


class TurnRow(Struct):
    """One turn: its window, as the source says it."""

    key: str
    turn_id: str
    seq: int
    started_at: str | None
    ended_at: str | None
    trigger: str | None
    status: str | None
    copy_of: str | None
    last_at: str | None = None


class LinkRow(Struct):
    """One relation stated in a stream."""

    seq: int
    relation: str
    agent: str
    session_id: str
    namespace: str
    call_id: str | None
    kind: str
    field: str | None
    value: str | None
    of_agent: str | None = None
    """With `of_session`, `of_namespace`: the session the relation is of, where that is not the stating one."""
    of_session: str | None = None
    of_namespace: str = ""
    started_at: str | None = None
    """When the process started that was observed."""
    chained: int = 0
    """Whether the harness that the evidence names was an ancestor process of it."""


RANDOM = 16
"""Characters from which on the id of a turn or call is taken to be one of its kind anywhere; shorter ones (`0`, `Bash:3`)
number the turns and calls of one session."""
_NUMBER = re.compile(r"[\d.:/_-]+")
"""An id of a response that numbers the responses of one session."""
OBSERVED = "dev.asrd.observed"
"""Under `_meta` of a link in asrd's own stream: `of` (agent, sessionId, namespace), `startedAt`, `chained`."""
CONFLICT = "~conflict-"
"""In the namespace that the index gives a stream which is the same session gone on otherwise elsewhere (`asrd.archive`)."""
RETAINED = "dev.asrd.retained"
"""Under `_meta` of a header: what of the stream has no words any longer (`Retained`)."""
ONE_OFF = "dev.asrd.oneOff"
"""Under `_meta` of a call whose input is kept no longer (`asrd.retention`): it was code for this once."""
MARK = "derived:"
"""How an id begins that a recorder made from what cannot change of a response (`asrd.recorders.pi`)."""
REQUEST, COMPACTION = "dev.asrd.request", "compaction"
"""Under `_meta` of an inference: that it is the request for a compaction's summary, of which only the compaction tells. Its id
is made of that line's, which is one anywhere."""
CARRIER = ".carrier"
"""How a key under `_meta` of an inference ends that says: these figures stand on an entry that is no response; they are of one
request or more (rule U11; `dev.pi.carrier`, `dev.openclaw.carrier`)."""
INTERNAL = "dev.asrd.internal"
"""Under `_meta` of a header: `compact` for a fork that writes the summary of a compaction."""
ALIAS = "dev.openclaw.sessionKey"
"""Under `_meta` of a header: the key of an OpenClaw session, which is what its gateway's clients are told of it."""
TOKEN_LENGTH = 200


class Retained(Struct, rename="camel"):
    """What a header says of words that were taken out: by which rule, through which `seq`, and of how many bytes."""

    rule: str
    through: int
    bytes: int


class _Observed(Struct, rename="camel"):
    of: LinkTarget
    started_at: str | None = None
    chained: bool = False
    call_id: str | None = None


def _small(number: int | None) -> int | None:
    """A number that a table can hold, or None."""
    return number if number is not None and -(1 << 63) <= number < 1 << 63 else None


MOST = 10**12
"""Tokens from which on a figure is none of a response: it is not counted, so that no sum runs over."""


def counted(usage: Usage | None) -> Usage | None:
    """The figures that can be counts of tokens; those that cannot (negative, or without measure) are unknown."""
    if usage is None:
        return None
    u = usage
    figures = (
        u.input or 0, u.output or 0, u.cache_read or 0, u.cache_write or 0, u.cache_write_5m or 0, u.cache_write_1h or 0,
        u.reasoning or 0,
    )  # fmt: skip
    if min(figures) >= 0 and max(figures) < MOST:
        return usage
    names = ("input", "output", "cache_read", "cache_write", "cache_write_5m", "cache_write_1h", "reasoning")
    wrong = {name: None for name in names if not 0 <= (getattr(usage, name) or 0) < MOST}
    return msgspec.structs.replace(usage, **wrong) if wrong else usage


NOTHING = Usage()
_declared = msgspec.json.Decoder(dict[str, Declared])


class Fold:
    """The fold over one session's records; `row` is its state, the lists are what came since `drain`."""

    def __init__(self, row: SessionRow) -> None:
        self.row = row
        self.inferences: dict[str, InferenceRow] = {}
        self.calls: dict[str, CallRow] = {}
        self.results: dict[str, CallRow] = {}
        self.turns: dict[str, TurnRow] = {}
        self.links: list[LinkRow] = []
        self.superseded: list[int] = []
        """`seq` of inference records that a later one with another id took the place of."""
        self.amended: list[tuple[str, bool]] = []
        """Calls whose result, of an earlier drain, was said anew: their ids, and whether they failed."""
        self._by_seq: dict[int, str] = {}
        self._said: str | None = None
        self._at: str | None = None
        """When the record at hand was made, as it says, and as the index keeps times."""

    def add(self, record: Record) -> None:
        """One record more."""
        row = self.row
        row.records += 1
        if record.at != self._said:
            self._said, self._at = record.at, utc(record.at)
        at = self._at
        if record.copy_of is not None:
            row.copies += 1
        elif at is not None:
            if row.open_turn is not None and at != row.turn_at and (row.turn_at is None or before(row.turn_at, at)):
                if not (isinstance(record, Turn) and record.phase == "start"):  # that belongs to the next
                    row.turn_at = at
            if row.last_at is None or (at != row.last_at and before(row.last_at, at)):
                row.last_at = at
                row.first_at = row.first_at or at
            elif at != row.last_at and (row.first_at is None or before(at, row.first_at)):
                row.first_at = at
        kind = type(record)
        if kind is Message:
            self._message(record)  # type: ignore[arg-type]
        elif kind is ToolCall:
            self._call(record)  # type: ignore[arg-type]
        elif kind is ToolResult:
            self._result(record)  # type: ignore[arg-type]
        elif kind is Inference:
            self._inference(record)  # type: ignore[arg-type]
        elif kind is Turn:
            self._turn(record)  # type: ignore[arg-type]
        elif kind is Session:
            self._header(record)  # type: ignore[arg-type]
        elif kind is FileChange:
            assert isinstance(record, FileChange)
            if record.copy_of is None and record.supersedes is None and record.applied is not False:
                row.edits += 1
        elif kind is Config:
            self._config(record)  # type: ignore[arg-type]
        elif kind is VcsAction:
            assert isinstance(record, VcsAction)
            if record.copy_of is None and record.action == "commit":
                row.commits += 1
            if record.branch:
                row.branch = record.branch
        elif kind is Link:
            self._link(record)  # type: ignore[arg-type]
        elif kind is Compaction:
            row.compactions += record.copy_of is None
        elif kind is Gap:
            row.gaps += 1
        elif kind is Loss:
            row.losses += 1
        elif kind is Native:
            row.natives += 1
            row.queued = " ".join([*row.queued.split()[1 - QUEUED_KEPT :], record.id])
        elif kind is End:
            assert isinstance(record, End)
            row.ended = record.status
        elif kind is Capture:
            assert isinstance(record, Capture)
            self._capture(record)
        elif kind is UsageTotal:
            assert isinstance(record, UsageTotal)
            self._declared(record)
        else:
            assert kind in (Limit, Plan, Approval) or kind is not Record

    def _declared(self, record: UsageTotal) -> None:
        """The last total of each scope, and how often it went back: it had begun anew then."""
        if not record.cumulative or record.scope not in ("session", "tree") or record.copy_of is not None:
            return
        known = _declared.decode(self.row.declared) if self.row.declared else {}
        usage = record.usage
        restarts = 0
        last = known.get(record.scope)
        now = Declared(record.seq, usage.input, usage.output, usage.cache_read, usage.cache_write)
        if last is not None:
            restarts = last.restarts
            if (now.input_total or 0) < (last.input_total or 0) or (now.output or 0) < (last.output or 0):
                restarts += 1
        now.restarts = restarts
        known[record.scope] = now
        self.row.declared = msgspec.json.encode(known).decode()

    def _capture(self, record: Capture) -> None:
        """What is said of a moment bounds this session; what is said right after the header is so by design."""
        facet = record.facet or ""
        if record.profile != "usage" or record.state not in ("partial", "off", "unavailable"):
            return
        reason = record.reason or f"{facet} {record.state}"
        if record.at is not None or record.turn_id is not None:
            if facet.startswith(("usage", "requests", "inference")) and self.row.scope == "primary":
                self.row.lower_bound = reason
        elif facet in ("requests", "inference") or facet.startswith(("requests.", "inference.failed", "inference.aux")):
            self.row.not_recorded = reason

    def drain(self) -> None:
        """Forgets the rows that were taken."""
        self.inferences, self.calls, self.results, self.turns, self.links, self.superseded = {}, {}, {}, {}, [], []
        self.amended = []
        self._by_seq = {}

    def _header(self, record: Session) -> None:
        row = self.row
        row.scope, row.authority, row.version = record.scope, record.authority, record.agent.version
        row.started_at, row.title, row.content_level = utc(record.started_at), record.title, record.content_level
        if record.meta:
            if RETAINED in record.meta:
                row.wordless = msgspec.convert(record.meta[RETAINED], Retained).through
            originator = record.meta.get("dev.asrd.originator")
            row.originator = originator if isinstance(originator, str) else None
            alias = record.meta.get(ALIAS)
            row.alias = alias if isinstance(alias, str) else None
            internal = record.meta.get(INTERNAL)
            row.internal = internal if isinstance(internal, str) else None
        if record.workspace and record.workspace.roots:
            first = record.workspace.roots[0]
            row.cwd = first.path
            row.branch = first.vcs.branch if first.vcs else None
        lineage = record.lineage
        row.root = None if lineage.root is None else int(lineage.root)
        if lineage.parent is not None:
            row.parent_agent, row.parent_session = lineage.parent.agent, lineage.parent.session_id
            row.parent_namespace, row.parent_call = lineage.parent.namespace or "", lineage.parent.call_id
            row.parent_relation = lineage.relation
            row.parent_evidence = lineage.evidence.kind if lineage.evidence else None

    def _message(self, record: Message) -> None:
        row = self.row
        if record.copy_of is not None:
            return
        again = record.supersedes is not None
        if again and record.supersedes in (queued := row.queued.split()):  # it was no message yet
            queued.remove(record.supersedes)
            row.queued, again = " ".join(queued), False
        row.messages += not again
        if record.origin == "prompt":
            row.prompts += not again
            if row.prompt is None:  # also of a prompt that takes the place of its entry in a queue
                words = " ".join(b.text for b in record.content if isinstance(b, Text))
                row.prompt = " ".join(words.split())[:PROMPT_LENGTH] or None
                if TOKEN_LINE in words:
                    row.token = words[words.index(TOKEN_LINE) :][:TOKEN_LENGTH].splitlines()[0]

    def _call(self, record: ToolCall) -> None:
        if record.supersedes is None and record.copy_of is None:
            self.row.calls += 1
            self.row.open_calls += 1
        native = record.call_id_source in (None, "native") and len(record.call_id) >= RANDOM
        key = f"{self._agent}\x1f{record.call_id}" if native else self._own(record.call_id, record)
        self.calls[key] = CallRow(
            key=key,
            call_id=record.call_id,
            seq=record.seq,
            at=self._at,
            turn=record.turn_id,
            name=record.name,
            kind=record.kind,
            copy_of=record.copy_of.session_id if record.copy_of else None,
            one_off=int(one_off(record.input) or bool(record.meta and record.meta.get(ONE_OFF))),
        )

    def _result(self, record: ToolResult) -> None:
        row = self.row
        known = self.results.get(record.call_id)
        failed = record.status == "failed"
        if record.copy_of is None and record.supersedes is None:
            row.failed += failed
            row.open_calls = max(0, row.open_calls - 1)
        elif record.copy_of is None and known is None:
            self.amended.append((record.call_id, failed))
        elif record.copy_of is None and known is not None:
            row.failed += failed - (known.status == "failed" and known.copy_of is None)
        self.results[record.call_id] = CallRow(
            key="",
            call_id=record.call_id,
            seq=0,
            at=None,
            turn=None,
            name=None,
            kind=None,
            copy_of=record.copy_of.session_id if record.copy_of else None,
            result_seq=record.seq,
            result_at=self._at,
            status=record.status,
            exit_code=_small(record.exec.exit_code) if record.exec else None,
        )

    def _inference(self, record: Inference) -> None:
        row = self.row
        told = counted(record.usage) or NOTHING
        if record.copy_of is None and record.model and not record.model.startswith("<"):
            row.model = record.model
        request = None
        if record.meta:
            if record.meta.get(REQUEST) == COMPACTION:
                request = COMPACTION
            else:
                for name in record.meta:
                    if name.endswith(CARRIER):
                        request = CARRIER
        native = record.id_source in (None, "native") and not _NUMBER.fullmatch(record.inference_id)
        native = native or request == COMPACTION
        key = f"{self._agent}\x1f{record.inference_id}" if native else self._own(record.inference_id, record)
        if record.supersedes is not None and record.supersedes[1:].isdigit():
            seq = int(record.supersedes[1:])
            old = self._by_seq.get(seq)
            if old is None:
                self.superseded.append(seq)
            elif old != key:
                self.inferences.pop(old, None)
        self._by_seq[record.seq] = key
        cost = record.cost
        copy_of = record.copy_of.session_id if record.copy_of else None
        if request == COMPACTION and row.internal is not None:  # its lines before its own are its session's, unmarked
            copy_of = copy_of or row.parent_session
        self.inferences[key] = InferenceRow(
            key=key,
            seq=record.seq,
            at=self._at,
            model=record.model,
            provider=record.provider,
            effort=record.effort,
            turn=record.turn_id,
            input=told.input,
            output=told.output,
            cache_read=told.cache_read,
            cache_write=told.cache_write,
            cache_write_5m=told.cache_write_5m,
            cache_write_1h=told.cache_write_1h,
            reasoning=told.reasoning,
            cost=cost.amount if cost else None,
            currency=cost.currency if cost else None,
            copy_of=copy_of,
            measured=int(told.input is not None or told.output is not None),
            branch=row.branch,
            duration_ms=record.duration_ms,
            mark=record.inference_id if record.inference_id.startswith(MARK) else None,
            request=request,
        )

    def _turn(self, record: Turn) -> None:
        row = self.row
        key = self._turn_key(record.turn_id, record)
        copy = record.copy_of.session_id if record.copy_of else None
        found = self.turns.get(key)
        if record.phase == "start":
            if copy is None and record.supersedes is None:
                row.turns += 1
            if copy is None:
                self._left()
                row.open_turn, row.turn_at = record.turn_id, self._at
            self.turns[key] = TurnRow(key, record.turn_id, record.seq, self._at, None, record.trigger, None, copy)
            return
        if row.open_turn == record.turn_id:
            self._left()
            row.open_turn = row.turn_at = None
            found = self.turns.get(key)
        if found is None:
            found = self.turns[key] = TurnRow(key, record.turn_id, record.seq, None, None, None, None, copy)
        found.ended_at, found.status = self._at, record.status

    def _turn_key(self, ident: str, record: Turn | None = None) -> str:
        return f"{self._agent}\x1f{ident}" if len(ident) >= RANDOM else self._own(ident, record)

    def _left(self) -> None:
        """A turn ends, or another starts while it is open: it ended, at the latest, at its last record (X35)."""
        row = self.row
        if row.open_turn is not None:
            key = self._turn_key(row.open_turn)
            found = self.turns.get(key)
            if found is None:
                found = self.turns[key] = TurnRow(key, row.open_turn, -1, None, None, None, None, None)
            found.last_at = row.turn_at

    def close(self) -> None:
        """What is known now of a turn that is still open: when its last record was made."""
        self._left()

    def _config(self, record: Config) -> None:
        row = self.row
        if record.copy_of is not None:
            return
        row.title = record.title or row.title
        row.version = record.version or row.version
        row.model = record.model or row.model
        row.cwd = row.cwd or record.cwd  # where the header does not know the folder

    def _link(self, record: Link) -> None:
        if record.copy_of is not None:
            return
        target = record.target
        seen: _Observed | None = None
        if record.meta and OBSERVED in record.meta:
            seen = msgspec.convert(record.meta[OBSERVED], _Observed)
        self.links.append(
            LinkRow(
                seq=record.seq,
                relation=record.relation,
                agent=target.agent,
                session_id=target.session_id,
                namespace=target.namespace or "",
                call_id=seen.call_id if seen else record.call_id,
                kind=record.evidence.kind,
                field=record.evidence.field,
                value=record.evidence.value,
                of_agent=seen.of.agent if seen else None,
                of_session=seen.of.session_id if seen else None,
                of_namespace=(seen.of.namespace or "") if seen else "",
                started_at=seen.started_at if seen else None,
                chained=int(seen.chained) if seen else 0,
            )
        )

    @property
    def _agent(self) -> str:
        return self.row.agent

    def _own(self, ident: str, record: Record | None) -> str:
        """An id that means something only in its session: the session it is a copy from, where it is one.

        A copy's namespace is not stated: it is that of the copying session, or none where it names the root of that one.
        """
        owner, namespace = self.row.session_id, self.row.namespace.partition(CONFLICT)[0]
        if record is not None and record.copy_of is not None:
            owner = record.copy_of.session_id
            namespace = "" if owner == namespace else namespace
        return "\x1f".join((self._agent, namespace, owner, ident) if namespace else (self._agent, owner, ident))
