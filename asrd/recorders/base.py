"""What a recorder is, what it owes, and what it writes to.

A recorder converts one harness's native records to ASR records. It is a fold: its `state` is all it knows, and the same
lines give the same records with the same ids. What every recorder owes (property tests run over all of them):

    total          any bytes give records, never an exception that leaves `convert`
    deterministic  same bytes, same records, same ids; nothing from a clock, a disk or chance
    accounted      each line becomes records, a named skip, or a `loss`; a `native` record where it says nothing of it
    resumable      stop at any line, restart from `save()`: same stream
    local          touches no disk

To add a harness: one module here with a `Recorder` subclass bound to `RECORDER`, and a capture. It is found, not
registered (`asrd.recorders.load`).
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, cast

import msgspec
from msgspec import Struct

from asrd import __version__
from asrd.recorders._printed import printed, programs
from asrd.records import (
    SOURCE,
    SPAN,
    Agent,
    Config,
    CopyOf,
    Evidence,
    Lineage,
    LineageParent,
    Link,
    LinkTarget,
    Loss,
    Message,
    Native,
    Other,
    Producer,
    Record,
    Session,
    SourceRef,
    Span,
    Text,
    ToolCall,
    ToolResult,
    Workspace,
    WorkspaceRoot,
    content_of,
    encode,
)
from asrd.records import (
    Place as FilePlace,
)
from asrd.sources import Line, Located, Oversize, Place, Root, Row, Source, Unread, first_line_digest


class StreamKey(Struct, frozen=True, order=True):
    """What names a session: its harness, the harness's own session id, and a namespace where ids could be equal."""

    agent: str
    session_id: str
    namespace: str = ""


# ---------------------------------------------------------------- what is already in a stream


class Recorded(Struct):
    """What a stream already holds: its next `seq`, and the ids of its records by place in the source.

    With it a recorder can be run again over a source from the start: what is there is recognised by its place and
    keeps its id, what is not is new.
    """

    next_seq: int = 0
    sources: dict[str, str] = {}
    """Source id in the stream by source name."""
    fingerprints: dict[str, str] = {}
    """Digest of each source's first line by source name, where the stream says it."""
    ids: dict[tuple[str, int, str | None, str | None], list[str]] = {}
    natives: dict[str, str] = {}
    """Ids of its records by `type/nativeId/phase`: for sources whose content moves and is gone from its first place."""
    tokens: dict[str, tuple[int, int, int]] = {}
    """By the id of each counting inference: input with cached tokens, of these read from the cache, output."""

    kinds: dict[str, str] | None = None
    """What each record speaks of (`kind_of`) by its id, where records of the stream are missing or its recorder goes by
    kind: then those of one place are told by it, else by their order."""

    # for a recorder of another revision than the one that made the stream
    instance: str = ""
    """What the header says of the recorder: its harness and revision."""
    spoken: dict[str, str] = {}
    """What each record speaks of (`kind_of`) by its id."""
    says: dict[str, int] = {}
    """`content_of` each record by its id."""
    replaces: dict[str, str] = {}
    """By the id of a record, that of the one it supersedes."""
    fixed: bool = False
    """Records are not as they were made (words let go, damage), or their places are those of another content by now: none
    of them is corrected."""
    _rows: dict[tuple[str, int, str | None], list[str]] = {}
    """Ids of the records of each row that stand, of any revision of it."""
    _gone: set[str] = set()
    """Ids of the records that others of the stream supersede."""

    def take(self, place: tuple[str, int, str | None, str | None], record: Record | None = None) -> str | None:
        """The next id recorded for this place, each once."""
        waiting = self.ids.get(place)
        if not waiting:
            return None
        number = 0
        if self.kinds is not None and record is not None:
            wanted = kind_of(record)
            number = next((n for n, ident in enumerate(waiting) if self.kinds.get(ident) == wanted), -1)
            if number < 0:
                return None
        self.tokens.pop(waiting[number], None)
        return waiting.pop(number)

    def meet(self, place: tuple[str, int, str | None, str | None], record: Record) -> tuple[str | None, bool]:
        """The id of what another revision recorded of this (None = nothing), and whether that is left as it is.

        What says the same is; so is what the stream itself corrected later: that comes, and is looked at, in its turn.
        """
        if not self._gone:
            self._gone = set(self.replaces.values())
        kind, content = kind_of(record), content_of(encode(record))
        same = [ident for ident in self.ids.get(place, ()) if self.spoken.get(ident) == kind]
        equal = next((ident for ident in same if self.says.get(ident) == content), None)
        found = equal or next(iter(same), None)
        if found is None and place[3] is not None and not self.fixed:
            found = self._stated(place, kind)  # a row that is known by what is said of it, which is other now
        met = found
        while met is not None:  # with what it corrected
            self.tokens.pop(met, None)
            for waiting in (self.ids.get(place, []), self._rows.get(place[:3], [])):
                if met in waiting:
                    waiting.remove(met)
            met = self.replaces.pop(met, None)
        return found, equal is not None or self.fixed or found in self._gone

    def _stated(self, place: tuple[str, int, str | None, str | None], kind: str) -> str | None:
        """What stands of that kind of a row, whatever its revision."""
        if not self._rows:
            for (source, start, key, rev), idents in self.ids.items():
                if rev is not None:
                    self._rows.setdefault((source, start, key), []).extend(i for i in idents if i not in self._gone)
        same = [ident for ident in self._rows.get(place[:3], ()) if self.spoken.get(ident) == kind]
        return same[-1] if len(same) == 1 else None


def kind_of(record: Record) -> str:
    """What tells a record from others of its place: its type, and the call or response it speaks of."""
    more = [str(getattr(record, name, None) or "") for name in ("phase", "call_id", "inference_id")]
    return "/".join([str(record.__struct_config__.tag), *more])


HEADER_PLACE = ("", -1, None, None)
IMPORTED = "asrd:"
"""How the name of another program's session begins in a file that `asrd handoff --native` wrote: `asrd:<harness>:<id>`.
It stands where the program itself names the session that a history comes from; what is said of it is put right here."""
IMPORTED_KEY = "importedFrom"
"""The field that holds it where a program keeps such things as fields."""
RUNS_KEPT = 64
"""Calls without a result that are remembered for what they run."""


class _StreamState(Struct):
    """What a Writer keeps of one stream between runs."""

    key: StreamKey
    next_seq: int
    sources: dict[str, str]
    runs: dict[str, list[str]] = {}


class WriterState(Struct):
    """What a Writer keeps between runs."""

    streams: list[_StreamState] = []
    skips: dict[str, int] = {}
    counts: dict[str, int] = {}
    natives: dict[str, int] = {}


class StreamOut:
    """One stream as a recorder sees it: `add` gives a record its `seq`, `id` and span."""

    __slots__ = ("_recorded", "_revised", "_unmet", "_writer", "key", "next_seq", "runs", "sources")

    def __init__(self, writer: Writer, key: StreamKey, recorded: Recorded | None) -> None:
        self.key = key
        self.next_seq = recorded.next_seq if recorded else 0
        if recorded and writer.is_another(recorded.fingerprints.get(writer.source_name)):
            # Another content at the same places: nothing of it was recorded yet.
            recorded.ids = {HEADER_PLACE: recorded.ids.get(HEADER_PLACE, [])}
        self.sources: dict[str, str] = dict(recorded.sources) if recorded else {}
        self._recorded = recorded
        self._revised = bool(recorded and recorded.instance and recorded.instance != writer.instance)
        """Whether a recorder of another revision made the stream: what it said otherwise is corrected."""
        if recorded and not self._revised:
            if writer.by_kind:
                recorded.kinds = recorded.spoken
            recorded.spoken, recorded.says, recorded.replaces = {}, {}, {}
        self._unmet = {ident for ident in self.sources.values() if ident != "s1"}
        """Sources the stream introduced before: each introduction stands at the place of the source's first record."""
        self._writer = writer
        self.runs: dict[str, list[str]] = {}
        """Calls that run another harness's program and have not shown its session yet: the programs by call."""

    def add(self, record: Record, *, once: bool = False) -> str:
        """Adds a record made from the item at hand; gives its id, to point back to it.

        `once`: what the stream held before this run under the same native id, from whatever place, is not added again.
        The session of another harness that a tool's output announces is said right behind the result (`link`).
        """
        kind = type(record)
        if kind is ToolCall:
            self._ran(record)  # type: ignore[arg-type]
        elif kind is ToolResult and self.runs:
            elsewhere = once and not self.waits() and self.held(record) is not None
            name = self._add(record, once)
            if not elsewhere:
                self._printed(record)  # type: ignore[arg-type]
            return name
        return self._add(record, once)

    def _ran(self, call: ToolCall) -> None:
        """Remembers a call whose command line runs another harness's program."""
        if call.kind != "execute" or call.copy_of is not None:
            return
        found = programs(call.input)
        if found:
            self.runs[call.call_id] = found
            while len(self.runs) > RUNS_KEPT:
                self.runs.pop(next(iter(self.runs)))

    def _printed(self, result: ToolResult) -> None:
        """Links the sessions that the output of such a call announces."""
        ran = self.runs.get(result.call_id)
        if ran is None or result.copy_of is not None:
            return
        output = "\n".join(block.text for block in result.content or () if isinstance(block, Text))
        if not output and result.exec is not None:
            output = result.exec.stdout or ""
        for told in printed(ran, output):
            self.runs.pop(result.call_id, None)
            self._add(
                Link(
                    relation="spawned",
                    target=LinkTarget(agent=told.agent, session_id=told.session_id),
                    call_id=result.call_id,
                    evidence=Evidence(kind="native-id-in-output", field=told.field, value=told.session_id),
                    at=result.at,
                    at_source=result.at_source,
                    turn_id=result.turn_id,
                )
            )

    def _add(self, record: Record, once: bool = False) -> str:
        copy = record.copy_of
        if copy is not None and (origin := imported(copy.session_id)):
            record.copy_of = CopyOf(session_id=origin.session_id, native_id=copy.native_id)
        elif type(record) is Link and (origin := imported(record.target.session_id)):
            record.relation, record.target = "continued_from", origin
        writer = self._writer
        writer.count_natives(record)
        source = self.sources.get(writer.source_name)
        if source is None:
            source = self._introduce()
        elif self._recorded is not None and source in self._unmet:
            self._unmet.discard(source)
            self._recorded.take(writer.place(source))
        if self._revised:
            return self._revise(record, source, once)
        if self._recorded is not None:
            found = self._recorded.take(writer.place(source), record)
            if found is not None:
                return found
            if once and (found := self.held(record)) is not None:
                self._recorded.tokens.pop(found, None)
                return found
        self._place(record, source)
        return self._put(record)

    def _place(self, record: Record, source: str) -> None:
        meta = self._writer.span_meta(source)
        record.meta = meta if record.meta is None else {**meta, **record.meta}  # type: ignore[attr-defined]

    def _revise(self, record: Record, source: str, once: bool) -> str:
        """Adds a record to a stream of another revision: what that said of it stands, or is corrected."""
        assert self._recorded is not None
        self._place(record, source)
        found, stands = self._recorded.meet(self._writer.place(source), record)
        if found is None and once:
            found, stands = self.held(record), True
        if found is not None and stands:
            self._recorded.tokens.pop(found, None)
            return found
        record.supersedes = found or record.supersedes
        return self._put(record)

    def held(self, record: Record) -> str | None:
        """The id of the record of this type with this native id that the stream held before this run."""
        if self._recorded is None or record.native_id is None:
            return None
        phase = getattr(record, "phase", None) or ""
        return self._recorded.natives.get(f"{record.__struct_config__.tag}/{record.native_id}/{phase}")

    def waits(self) -> bool:
        """Whether the stream held records, before this run, of the item at hand that were not met again yet."""
        source = self.sources.get(self._writer.source_name)
        return self._recorded is not None and bool(source and self._recorded.ids.get(self._writer.place(source)))

    def tokens(self) -> tuple[int, int, int]:
        """What inferences counted that the stream held before this run and that were not met again yet.

        Input with cached tokens, of these read from the cache, output.
        """
        counted = self._recorded.tokens.values() if self._recorded is not None else ()
        return sum(c[0] for c in counted), sum(c[1] for c in counted), sum(c[2] for c in counted)

    def knows(self, key: str) -> bool:
        """Whether the stream held a record of the row of that key when the run began."""
        return self._recorded is not None and any(place[2] == key for place in self._recorded.ids)

    def _put(self, record: Record) -> str:
        seq = self.next_seq
        record.seq = seq
        record.id = name = f"r{seq}" if seq else "h"
        self.next_seq = seq + 1
        self._writer.out.append((self, record))
        return name

    def _introduce(self) -> str:
        """A source that the header did not name: said by a `config` record, once. A file that moved keeps its id."""
        writer = self._writer
        before, first = writer.moved.get(writer.source_name, ("", ""))
        if before in self.sources and first and not writer.is_another(first):
            source = self.sources[writer.source_name] = self.sources[before]
            record = Config()
            record.meta = {SOURCE: msgspec.to_builtins(writer.reference(source)), **writer.span_meta(source)}
            self._put(record)
            return source
        source = f"s{len(self.sources) + 1}"
        self.sources[writer.source_name] = source
        reference = writer.reference(source)
        record = Config()
        record.meta = {SOURCE: msgspec.to_builtins(reference), **writer.span_meta(source)}
        if self._recorded is None or self._recorded.take(writer.place(source)) is None:
            self._put(record)
        return source

    def open(self, header: Session) -> None:
        """Writes the header (once); the source at hand is named in it as `s1`."""
        writer = self._writer
        if self._recorded is not None and self._recorded.take(HEADER_PLACE) is not None:
            return
        parent = header.lineage.parent
        if parent is not None and (origin := imported(parent.session_id)):
            header.lineage.parent = LineageParent(agent=origin.agent, session_id=origin.session_id)
            header.lineage.relation = "continued_from"
        self.sources = {writer.source_name: "s1"}
        header.sources = [writer.reference("s1")]
        self._put(header)


def imported(name: str) -> LinkTarget | None:
    """The session of another program that is named like this (`IMPORTED`); None = it is no such name."""
    if not name.startswith(IMPORTED):
        return None
    agent, _, ident = name[len(IMPORTED) :].partition(":")
    return LinkTarget(agent=agent, session_id=ident) if agent and ident else None


class Writer:
    """Where a recorder's records go. It touches no disk: `drain` gives what was added."""

    def __init__(self, recorded: Mapping[StreamKey, Recorded] | None = None) -> None:
        self.instance = ""
        """The recorder's harness and revision."""
        self.by_kind = False
        """`Recorder.by_kind`."""
        self.streams: dict[StreamKey, StreamOut] = {}
        self.out: list[tuple[StreamOut, Record]] = []
        self.skips: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.natives: dict[str, int] = {}
        """Native records by their type, and parts of messages and results (`part of …`) that are of no known type."""
        self.source_name = ""
        self.moved: dict[str, tuple[str, str]] = {}
        """Sources that were recorded under another name before their files moved: that name, and their first line's digest."""
        self._recorded: Mapping[StreamKey, Recorded] = {} if recorded is None else recorded
        self._source: Source | None = None
        self._first = ""
        self._item: Line | Row | Oversize | None = None
        self._meta: dict[str, dict[str, Any]] = {}
        self._noted = False

    # what the driver says

    def begin(self, source: Source, item: Line | Row | Oversize, first: str) -> None:
        """The item that what follows was made from. `first`: digest of the source's first line."""
        self._source, self._item, self._first = source, item, first
        self.source_name = source.name
        self._meta = {}
        self._noted = False

    def noted(self) -> bool:
        """Whether the item at hand became a record or a named skip."""
        return self._noted

    # what a recorder says

    def stream(self, key: StreamKey) -> StreamOut | None:
        """The stream of that name, if its header was written."""
        return self.streams.get(key)

    def open(self, key: StreamKey, header: Session) -> StreamOut:
        """The stream of that name; its header is written when there is none yet."""
        found = self.streams.get(key)
        if found is None:
            found = self.streams[key] = StreamOut(self, key, self._recorded.get(key))
            found.open(header)
        return found

    def skip(self, rule: str) -> None:
        """The item at hand is left out on purpose, by the rule of that name."""
        self._noted = True
        self.skips[rule] = self.skips.get(rule, 0) + 1

    def count(self, what: str) -> None:
        """Counts something a person may want to see in `asrd doctor`."""
        self.counts[what] = self.counts.get(what, 0) + 1

    def is_another(self, fingerprint: str | None) -> bool:
        """Whether the source at hand starts with another line than the one of that digest (unknown = no)."""
        return bool(fingerprint and self._first and fingerprint != self._first)

    # places

    def place(self, source: str) -> tuple[str, int, str | None, str | None]:
        self._noted = True
        item = self._item
        if isinstance(item, Row):
            return (source, item.start, item.key, item.rev)
        assert item is not None
        return (source, item.start, None, None)

    def span(self, source: str) -> Span:
        item = self._item
        assert item is not None
        if isinstance(item, Row):
            return Span(source=source, start=item.start, end=item.end, key=item.key, rev=item.rev)
        return Span(source=source, start=item.start, end=item.end)

    def span_meta(self, source: str) -> dict[str, Any]:
        self._noted = True
        meta = self._meta.get(source)
        if meta is None:
            meta = self._meta[source] = {SPAN: self.span(source)}
        return meta

    def reference(self, ident: str) -> SourceRef:
        assert self._source is not None
        kind = "table" if self._source.kind in ("table", "tree") else "file"
        return SourceRef(id=ident, kind=kind, name=self._source.name, fingerprint=self._first or None)

    def states(self, record: Record, key: str | None = None) -> None:
        """The record added next is known again by what it says (`rev`), not by how its row stood when it was made.

        For rows that are rewritten while they grow: read again from the start in its last state, a row gives the same
        records as it did state by state, and they are recognised. `key` names what it speaks of, if not the row.
        """
        item = self._item
        if isinstance(item, Row):
            earlier, record.supersedes = record.supersedes, None
            rev = hashlib.sha256(encode(record)).hexdigest()[:16]
            record.supersedes = earlier
            self._item = Row(item.table, key or item.key, rev, item.values, item.data, item.start)
            self._meta = {}

    # what the driver takes

    def drain(self) -> list[tuple[StreamOut, Record]]:
        """What was added since the last drain, in order."""
        out, self.out = self.out, []
        return out

    def count_natives(self, record: Record) -> None:
        """Counts what the record keeps as it is."""
        if type(record) is Native:
            self.natives[record.native_type] = self.natives.get(record.native_type, 0) + 1
        elif type(record) is Message or type(record) is ToolResult:
            for block in record.content or ():
                if type(block) is Other:
                    kind = "part of a message" if type(record) is Message else "part of a result"
                    self.natives[kind] = self.natives.get(kind, 0) + 1

    def save(self) -> WriterState:
        streams = [_StreamState(s.key, s.next_seq, s.sources, s.runs) for s in self.streams.values()]
        return WriterState(streams, self.skips, self.counts, self.natives)

    def restore(self, state: WriterState) -> None:
        for one in state.streams:
            out = StreamOut(self, one.key, None)
            out.next_seq, out.sources, out.runs = one.next_seq, one.sources, one.runs
            self.streams[one.key] = out
        self.skips, self.counts, self.natives = dict(state.skips), dict(state.counts), dict(state.natives)


# ---------------------------------------------------------------- the recorder


class Recorder:
    """Base of every recorder. A subclass says where its harness writes, and converts one item at a time.

    `State` is a msgspec Struct of everything kept between items; `self.state` is one. `evidence` says what the recorder
    was built from: "captured" with the versions seen, or "documents".
    """

    harness: ClassVar[str]
    """The harness's name; the `agent.name` of its streams and the name of its capture folder."""
    passing: ClassVar[re.Pattern[bytes] | None] = None
    """How a line begins of which group 1 changes when the harness writes its file anew. A line is known again without it."""
    revision: ClassVar[int] = 1
    """Raised when the records made from the same bytes change. Saved states of another revision are not used, and what is
    there of its sources is read again, once: what is new is added, what was said otherwise is superseded."""
    roots: ClassVar[tuple[Root, ...]] = ()
    places: ClassVar[tuple[Place, ...]] = ()
    unread: ClassVar[tuple[Unread, ...]] = ()
    """What else it leaves, and why that is not read."""
    versions: ClassVar[tuple[str, ...]] = ()
    """Versions of the harness it was checked against."""
    evidence: ClassVar[str] = "captured"
    method: ClassVar[str] = "converter"
    """How its records come to be: `producer.method` of its streams."""
    secondary: ClassVar[bool] = False
    namespace: ClassVar[str] = ""
    """Of all its streams, where these are named by other agents (a connection sees their sessions)."""
    by_kind: ClassVar[bool] = False
    """Which records an item gives depends on what was known by then: read again, they are told by what they speak of
    (`kind_of`), not by their order."""
    spooled: ClassVar[bool] = False
    """Its sources are asrd's own and may be deleted once they are over and recorded."""
    State: ClassVar[type[Struct]]

    def __init__(self, out: Writer, group: str) -> None:
        self.out = out
        out.instance, out.by_kind = f"{self.harness}/{self.revision}", self.by_kind
        self.group = group
        self.state: Any = self.State()

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """What a path below a root is: its group, neutral name and order; None = not a source after all."""
        return Located(group=path, name=path)

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether a file that lies elsewhere and starts with these bytes is this harness's (for `asrd convert`)."""
        return False

    def receive(self, source: Source, item: Line | Row) -> None:
        """Converts one item: adds records to streams of `self.out`, or says `self.out.skip(rule)`.

        May raise msgspec.DecodeError (the item is no JSON) and msgspec.ValidationError (not the shape expected), before
        it has changed its state; the driver makes a `loss` or a `native` record of it.
        """
        raise NotImplementedError

    def main(self) -> StreamOut:
        """The stream where what belongs to no session in particular goes (losses, gaps); opened when there is none."""
        raise NotImplementedError

    # helpers for subclasses

    def open(
        self,
        key: StreamKey,
        *,
        version: str | None = None,
        started_at: str | None = None,
        lineage: Lineage | None = None,
        profiles: tuple[str, ...] = ("core", "coding", "lineage", "usage"),
        cwd: str | None = None,
        workspace: Workspace | None = None,
        title: str | None = None,
        lossy: tuple[str, ...] = (),
        scope: str | None = None,
        meta: dict[str, Any] | None = None,
        at: str | None = None,
    ) -> StreamOut:
        """Opens a stream with the header all recorders share. `cwd` alone makes a workspace with root `r1`.

        `at`: when the recorder itself saw the session begin.
        """
        found = self.out.stream(key)
        if found is not None:
            return found
        if workspace is None and cwd:
            workspace = Workspace(roots=[WorkspaceRoot(id="r1", path=cwd)])
        header = Session(
            format_version="0.1",
            agent=Agent(name=key.agent, version=version),
            namespace=key.namespace or None,
            session_id=key.session_id,
            producer=Producer(
                name="asrd",
                version=__version__,
                method=self.method,
                instance=f"{self.harness}/{self.revision}",
                lossy=list(lossy),
            ),
            authority="local",
            started_at=started_at,
            lineage=lineage or Lineage(),
            scope=scope or ("secondary" if self.secondary else "primary"),
            workspace=workspace,
            profiles=list(profiles),
            content_level="full",
            title=title,
            meta=meta,
        )
        if at is not None:
            header.at, header.at_source = at, "recorder"
        return self.out.open(key, header)

    # driven by capture.Capture

    def convert(self, source: Source, item: Line | Row | Oversize, first: str) -> None:
        """`receive`, with every way it can go wrong made into a record. Never raises."""
        out = self.out
        out.begin(source, item, first)
        if isinstance(item, Oversize):
            self._lose("oversize", item.preview, item.sha256)
            return
        if isinstance(item, Line) and not item.data.strip():
            out.skip("blank-line")
            return
        try:
            if not is_text(item.data):  # a decoder does not look into what is only passed on
                raise msgspec.DecodeError("not text that JSON can hold")
            self.receive(source, item)
        except msgspec.ValidationError as error:
            self._keep(item, str(error))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._mend(source, item, first, error)
        except Exception as error:  # a recorder's own mistake must not stop the others
            out.count(f"mistake:{type(error).__name__}")
            self._lose(f"recorder:{type(error).__name__}", _bytes_of(item))
        if not out.noted():
            self._keep(item, None)

    def _mend(self, source: Source, item: Line | Row, first: str, error: Exception) -> None:
        """Bytes that are no JSON as they stand: what was damaged is said, what can be read is recorded."""
        if isinstance(item, Row) and item.data:
            mended, why = mend(item.data)
            if why:
                self._lose(why, item.data)
                try:
                    self.receive(source, Row(item.table, item.key, item.rev, item.values, mended, item.start))
                except msgspec.ValidationError as again:
                    self._keep(item, str(again))
                except Exception as again:
                    self._lose(f"recorder:{type(again).__name__}", item.data)
                return
        if isinstance(item, Line):
            mended, why = mend(item.data)
            pieces = list(split_objects(mended))
            if pieces and (why or len(pieces) > 1):
                if why:
                    self._lose(why, item.data)
                for start, data in pieces:
                    at = item.start if len(pieces) == 1 else item.start + start
                    piece = Line(at, item.end if len(pieces) == 1 else at + len(data), data)
                    self.out.begin(source, piece, first)
                    try:
                        self.receive(source, piece)
                    except msgspec.ValidationError as again:
                        self._keep(piece, str(again))
                    except Exception as again:
                        self._lose(f"recorder:{type(again).__name__}", data)
                    if not self.out.noted():
                        self._keep(piece, None)
                return
        reason = "too-deep" if isinstance(error, RecursionError) else "malformed"
        self._lose(reason, _bytes_of(item))

    def _lose(self, reason: str, data: bytes, sha256: str | None = None) -> None:
        self.out.count(f"loss:{reason}")
        stream = self.main()
        source = stream.sources.get(self.out.source_name, "s1")
        stream.add(
            Loss(
                reason=reason,
                span=self.out.span(source),
                sha256=sha256 or hashlib.sha256(data).hexdigest(),
                preview=preview(data),
            )
        )

    def _keep(self, item: Line | Row, why: str | None) -> None:
        """A native record with no standard place, or not in the shape expected: kept whole."""
        try:
            data: Any = msgspec.json.decode(item.data) if item.data else plain(getattr(item, "values", {}))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            self._lose("malformed", _bytes_of(item))
            return
        fields = fields_of(data)
        kind = fields.get("type")
        name = kind[:80] if isinstance(kind, str) and kind else "unknown"
        self.out.count(f"unexpected:{name}")
        meta = {"dev.asrd.unexpected": why} if why else None
        self.main().add(Native(native_type=name, data=data, meta=meta))

    def save(self) -> bytes:
        """Everything kept between items, to go on later."""
        kept = (self.out.save(), self.state)
        try:
            return msgspec.msgpack.encode(kept)
        except OverflowError:  # a number that only JSON can hold
            return msgspec.json.encode(kept)

    def restore(self, saved: bytes) -> None:
        """Goes on from `save()`. Raises msgspec.MsgspecError when it was saved by something else."""
        decode = msgspec.json.decode if saved.startswith(b"[") else msgspec.msgpack.decode
        writer, state = decode(saved, type=tuple[WriterState, self.State])  # type: ignore[name-defined]
        self.out.restore(writer)
        self.state = state


# ---------------------------------------------------------------- helpers


def _bytes_of(item: Line | Row) -> bytes:
    if item.data:
        return item.data
    return repr(sorted(getattr(item, "values", {}).items())).encode("utf-8", "replace")


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """Row values as JSON can hold them: bytes as their size and digest."""
    return {
        k: {"bytes": len(v), "sha256": hashlib.sha256(v).hexdigest()} if isinstance(v, bytes) else v
        for k, v in values.items()
    }


_LONE = re.compile(
    rb"(?<!\\)((?:\\\\)*)(?:(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)

_SURROGATE = re.compile(rb"\\u[dD]").search


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8 without lone surrogate escapes: what a stream's line can hold as it stands."""
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return False
    if _SURROGATE(data) is not None:
        return not any(m.group(2) is None for m in _LONE.finditer(data))
    return True


def mend(data: bytes) -> tuple[bytes, str]:
    """The bytes with what JSON cannot hold replaced by U+FFFD, and what was wrong ("" = nothing).

    Byte order mark, NUL padding, bytes that are not UTF-8, lone surrogate escapes, NaN and Infinity as bare words are
    seen in published session files (`docs/harnesses.md`).
    """
    why = ""
    if data.startswith(b"\xef\xbb\xbf"):
        data, why = data[3:], "byte-order-mark"
    if b"\0" in data:
        data, why = data.replace(b"\0", b""), "nul-bytes"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        data, why = data.decode("utf-8", "replace").encode(), "not-utf-8"
    mended = _LONE.sub(lambda m: m.group(0) if m.group(2) else m.group(1) + b"\\ufffd", data)
    if mended != data:
        data, why = mended, "lone-surrogate"
    return data, why


def split_objects(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The JSON values that stand one behind the other on a line, with their offsets; nothing when it is not so."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return
    found: list[tuple[int, bytes]] = []
    scan = json.JSONDecoder()
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            _, end = scan.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        found.append((len(text[:at].encode()), text[at:end].encode()))
        at = end
    yield from found


_SECRETISH = re.compile(r"[A-Za-z0-9_\-+/=.]{24,}")


def preview(data: bytes) -> str:
    """At most 200 characters of bytes, with long runs that could be keys left out."""
    text = data[:400].decode("utf-8", "replace").replace("\0", "")
    return _SECRETISH.sub("[…]", text)[:200]


def sha256(text: str | bytes) -> str:
    """SHA-256 in hex of text as UTF-8 (lone surrogates kept as they are), or of bytes."""
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")).hexdigest()


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a JSON object; none of what is no object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items_of(value: Any) -> list[Any]:
    """The items of a JSON array; none of what is no array."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def from_ms(ms: float | None) -> str | None:
    """RFC 3339 UTC from milliseconds since 1970; None for None and for what is no time."""
    if ms is None or ms <= 0:
        return None
    try:
        moment = datetime.fromtimestamp(int(ms) // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{int(ms) % 1000:03d}Z"


def within(path: str, roots: list[WorkspaceRoot] | None) -> FilePlace:
    """A path as records say it: below a workspace root by its id, else as it stands."""
    if not posixpath.isabs(path):
        clean = posixpath.normpath(path)
        return FilePlace(path=clean, root=roots[0].id) if roots and not clean.startswith("..") else FilePlace(path=path)
    for root in roots or ():
        base = root.path.rstrip("/")
        if path == base:
            return FilePlace(path=".", root=root.id)
        if base and path.startswith(base + "/"):
            return FilePlace(path=path[len(base) + 1 :], root=root.id)
    return FilePlace(path=path)


def first_digest(item: Line | Row | Oversize) -> str:
    """Digest of a source's first line, for its reference and its fingerprint."""
    return first_line_digest(item.data) if isinstance(item, Line) else ""


__all__ = [
    "HEADER_PLACE", "CopyOf", "Recorded", "Recorder", "StreamKey", "StreamOut", "Writer", "WriterState",
    "fields_of", "first_digest", "from_ms", "is_text", "items_of", "mend", "plain", "preview", "sha256", "split_objects", "within",
]  # fmt: skip
