r"""Cursor CLI (`agent`), and the transcripts that Cursor Desktop writes too: a graph of blobs in SQLite, and JSONL.

Where: `~/.cursor`, or CURSOR_CONFIG_DIR (chats) and CURSOR_DATA_DIR (projects):

    chats/<MD5 of the folder>/<session id>/store.db                              what happened
    chats/<MD5 of the folder>/<session id>/meta.json                             {"schemaVersion":1,"createdAtMs":…,"cwd":"/…"}
    acp-sessions/<session id>/{store.db,meta.json}                               the same of a session over ACP
    projects/<folder with ->/agent-transcripts/<session id>/<session id>.jsonl   prompts, words and calls again
                                              …/<session id>/subagents/<id>.jsonl    those of a sub-agent; older: …/<id>.jsonl

From documents: the public field map of 2026.10.01-e373342 (`user_version` 1, `schemaVersion` 1), no vendor schema; of real
sessions only a transcript was seen. `_wire` reads the blobs; fields are named by number.

    meta   {"key":"0","value":hex of {"agentId":"8b04…","latestRootBlobId":"<64 hex>","name":"…","createdAt":1791339618300,
            "mode":"default","subagentInfo":{"parentAgentId":"…","toolCallId":"…"}}}
    blobs  {"id":SHA-256 of data,"data":…}, which name each other by their 32 bytes:
           root   1 messages, 8 turns, 9 workspace URI, …          turn  1.1 user message, 1.2 steps, 1.3 request id
           user   1 text, 2 message id, 25 and 26 time (ms)        step  1 text (1), 3 thinking (1), or 2 a call: 57 call id,
           59 and 60 its times, and one of 1 Shell, 4 Glob, 8 Read, 12 Write, …, each 1 arguments and 2 result
           JSON {"role":"assistant","content":[{"type":"tool-call","toolCallId":"…","toolName":"Shell","args":{…}}]}
    transcript  {"role":"user","message":{"content":[{"type":"text","text":"<timestamp>…</timestamp>\n<user_query>\n…"}]}}
                {"role":"assistant","message":{"content":[{"type":"tool_use","name":"Read","input":{"path":"/…"}}]}}
                {"type":"turn_ended","status":"success"}    {"type":"error","error":"…"}

What is particular
    - Nothing counts tokens: root field 5 is an estimate of the context. Every response is an `inference` without usage.
    - The root that `meta` names is the conversation as it stands: its turns are walked, a step is recorded once at its
      place, a call again when its result is there. Blobs wait until a root names them; older roots are checkpoints.
    - The JSON messages say all again. Of them come the model's name, and system and injected words; all of a session
      whose root has no turns (older builds) is told from them.
    - A command that ended with 0 does not write its exit code: protobuf leaves out what is 0.
    - A transcript has no ids, times, models and results; alone it is all there is. Beside a store only `turn_ended` says
      something new: it settles the turn whose prompt has the same words, as soon as the store tells that turn.
"""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec
from msgspec import Struct

from asrd.recorders import _wire
from asrd.recorders._observed import commits, content_of
from asrd.recorders.base import Recorder, StreamKey, StreamOut, fields_of, from_ms, sha256, within
from asrd.records import (
    Block,
    Capture,
    Config,
    Evidence,
    Exec,
    FileChange,
    Inference,
    Lineage,
    LineageParent,
    Link,
    LinkTarget,
    Message,
    Native,
    Other,
    Record,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    VcsAction,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, RowQuery, Source, Unread, first_line_digest

# ---------------------------------------------------------------- native structs


class Sidecar(Struct):
    """`meta.json`."""

    createdAtMs: float | None = None
    cwd: str | None = None
    title: str | None = None


class Subagent(Struct):
    """Which session started this one, and by which call."""

    parentAgentId: str | None = None
    toolCallId: str | None = None


class StoreMeta(Struct):
    """What the row `0` of `meta` holds, hex taken away."""

    agentId: str | None = None
    latestRootBlobId: str | None = None
    name: str | None = None
    createdAt: Any = None
    mode: str | None = None
    lastUsedModel: str | None = None
    subagentInfo: Subagent | None = None


class JsonMessage(Struct):
    """A message as it is sent to the model."""

    role: str
    content: Any = None
    id: str | None = None
    providerOptions: Any = None


class Said(Struct):
    content: Any = None


class TranscriptLine(Struct):
    """A line of a transcript."""

    role: str | None = None
    message: Said | None = None
    type: str | None = None
    status: str | None = None
    error: Any = None


_sidecar = msgspec.json.Decoder(Sidecar)
_meta = msgspec.json.Decoder(StoreMeta)
_message = msgspec.json.Decoder(JsonMessage)
_transcript = msgspec.json.Decoder(TranscriptLine)

# ---------------------------------------------------------------- state


class Blob(Struct):
    """A blob that no root has named yet."""

    row: int
    rev: str
    data: bytes


class Ended(Struct):
    """A `turn_ended` of the transcript whose turn the store has not told yet: its place, its turn, its status.

    The turn is the `number`th (from 0) whose prompt has this digest.
    """

    start: int
    end: int
    prompt: str
    number: int
    status: str | None
    said: str | None = None
    """The record of it, where the transcript came first."""


class Known(Struct):
    """What was recorded of the step at one place of a turn."""

    blob: str
    message: str | None = None
    called: bool = False
    answered: bool = False


class State(Struct):
    """All that is kept between items."""

    opened: bool = False
    cwd: str | None = None
    created: float | None = None
    name: str | None = None
    mode: str | None = None
    parent: str | None = None
    call: str | None = None
    """The session that started this one, and the call that did."""
    evidence: Evidence | None = None
    """What says so."""
    root: str = ""
    store: bool = False
    blobs: dict[str, Blob] = {}
    """Waiting blobs, by id."""
    turns: list[str] = []
    """Ids of the turns, in order."""
    steps: dict[str, Known] = {}
    """By `turn/step`."""
    models: dict[str, list[tuple[str, str]]] = {}
    """Model and JSON message of responses, in order, by the call they asked for or the digest of their words."""
    inferred: dict[str, None] = {}
    waiting: int = 0
    """Bytes of the blobs that wait."""
    said: dict[str, None] = {}
    """Ids of JSON messages that were recorded, or whose words the turns say."""
    turn: str | None = None
    lines: int = 0
    calls: dict[str, str] = {}
    """Tool of each call of the JSON messages."""
    early: dict[str, list[str]] = {}
    """Records that the transcript gave before there was a store, by what they say: the store's supersede them."""
    told: dict[str, list[str]] = {}
    """Turns that the store told, in order, by the digest of their prompt."""
    heard: dict[str, int] = {}
    """How often the transcript gave a prompt, by its digest."""
    prompt: str = ""
    """Digest of the transcript's last prompt."""
    ends: list[Ended] = []
    ended: dict[str, str] = {}
    """The record of each turn's end."""
    transcript: tuple[str, str] = ("", "")
    """Name of the transcript, digest of its first line."""


KEEP = 4096
WAITING = 32 << 20
"""Bytes of blobs that wait for a root. Of more than that the oldest are told by a `native` record and forgotten."""

# ---------------------------------------------------------------- where it lies

QUERIES = (
    RowQuery(
        "blobs",
        "SELECT rowid, id, data FROM blobs ORDER BY rowid",
        ("id",),
        mark="SELECT max(rowid) FROM blobs",
        changed="SELECT rowid, id, data FROM blobs WHERE rowid > :since ORDER BY rowid",
        columns=("id", "data"),
    ),
    RowQuery("meta", "SELECT key, value FROM meta ORDER BY key", ("key",), columns=("value",)),
)

TOOLS = {
    1: ("Shell", "execute"), 3: ("Delete", "edit"), 4: ("Glob", "search"), 5: ("Grep", "search"), 8: ("Read", "read"),
    9: ("TodoWrite", "plan"), 10: ("TodoRead", "plan"), 12: ("Write", "edit"), 13: ("Ls", "read"),
    14: ("ReadLints", "read"), 15: ("Mcp", "mcp"), 16: ("SemSearch", "search"), 17: ("CreatePlan", "plan"),
    18: ("WebSearch", "fetch"), 19: ("Task", "delegate"), 24: ("Fetch", "fetch"),
}  # fmt: skip
"""Tools by their field in a call. 1, 4, 8 and 12 are of the field map; the others of public listings of the program."""

KINDS = {
    "Shell": "execute", "Delete": "edit", "Glob": "search", "Grep": "search", "Read": "read", "Write": "edit",
    "StrReplace": "edit", "Edit": "edit", "Ls": "read", "LS": "read", "TodoWrite": "plan", "WebSearch": "fetch",
    "WebFetch": "fetch", "Task": "delegate", "SemSearch": "search",
}  # fmt: skip

_QUERY = re.compile(r"\A(?:<timestamp>(.*?)</timestamp>\n)?<user_query>\n(.*)\n</user_query>\s*\Z", re.DOTALL)
_ASKED = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
ENDS = {"success": "completed", "error": "failed", "aborted": "interrupted"}


# ---------------------------------------------------------------- the recorder


class CursorRecorder(Recorder):
    """Blobs of Cursor as records. One group a session: its sidecar, its store, its transcript."""

    harness = "cursor"
    roots = (Root(".cursor", env=("CURSOR_CONFIG_DIR",)), Root(".cursor", env=("CURSOR_DATA_DIR",)))
    places = (
        Place("chats/*/*/meta.json", "document", sidecar=True),
        Place("chats/*/*/store.db", "table", QUERIES),
        Place("acp-sessions/*/meta.json", "document", sidecar=True),
        Place("acp-sessions/*/store.db", "table", QUERIES),
        Place("projects/*/agent-transcripts/*/*.jsonl"),
        Place("projects/*/agent-transcripts/*/subagents/*.jsonl"),
        Place("projects/*/agent-transcripts/*.jsonl"),
    )
    unread = (
        Unread("ai-tracking/ai-code-tracking.db", "which lines a model wrote, by digest; nothing of what was said"),
        Unread("projects/*/agent-transcripts/*.txt", "transcripts of versions before JSONL"),
        Unread("projects/*/terminals/*.txt", "how terminals of the application looked"),
    )
    versions = ()
    evidence = "documents"
    State = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """All that carries a session's id in its path is one group; the store is read before the transcript."""
        parts = path.split("/")
        if parts[0] == "projects":
            return Located(group=parts[-1].removesuffix(".jsonl"), name=path, order="2")
        if len(parts) < 3:
            return Located(group=path, name=path, order="1")
        beside = "/".join([*parts[:-1], "meta.json"]) if parts[-1] == "store.db" else ""
        return Located(group=parts[-2], name=path, order="1", beside=beside)

    @classmethod
    def claims(cls, head: bytes) -> bool:
        if head.startswith(b"SQLite format 3\0"):
            return b"TABLE blobs" in head and b"TABLE meta" in head
        first = head.split(b"\n", 1)[0]
        return first.startswith(b'{"role":') and b'"message":{"content":[' in first and b"<user_query>" in first

    def receive(self, source: Source, item: Line | Row) -> None:
        self._source = source
        if isinstance(item, Line):
            parts = source.path.split("/")
            if parts[-2:-1] == ["subagents"]:
                self._comes_from(parts[-3], None, Evidence(kind="native-path", field="subagents", value=parts[-3]))
            self._line(item)
        elif item.table == "meta.json":
            self._beside(item)
        elif item.table == "blobs":
            self._blob(item)
        elif item.table == "meta" and item.values.get("key") == "0":
            self._walk(item)
        else:
            self._unread(item)

    def main(self) -> StreamOut:
        """The session's stream."""
        return self._stream()

    def _stream(self) -> StreamOut:
        key = StreamKey(self.harness, self.group)
        found = self.out.stream(key)
        if found is not None:
            return found
        state = self.state
        stream = self.open(
            key,
            started_at=from_ms(state.created),
            cwd=state.cwd,
            title=state.name,
            lineage=Lineage(
                root=False,
                parent=LineageParent(agent=self.harness, session_id=state.parent, call_id=state.call),
                relation="spawned_by",
                evidence=state.evidence,
            )
            if state.parent
            else Lineage(),
            lossy=("thinking.signature",),
        )
        state.opened = True
        states = [("usage", "usage", "unavailable", "no count of tokens is written")]
        if not state.store:
            states += [
                ("coding", "tool_result", "unavailable", "a transcript has no results"),
                ("core", "at", "unavailable", "a transcript has no times"),
            ]
        for profile, facet, how, reason in states:
            stream.add(Capture(profile=profile, facet=facet, state=how, reason=reason))
        if state.mode:
            stream.add(Config(mode=state.mode))
        return stream

    def _comes_from(self, parent: str, call: str | None, evidence: Evidence) -> None:
        """The session that started this one, said once: in the header, or behind it."""
        state = self.state
        if state.parent or parent == self.group:
            return
        state.parent, state.call, state.evidence = parent, call, evidence
        if state.opened:
            target = LinkTarget(agent=self.harness, session_id=parent)
            self._add(Link(relation="spawned_by", target=target, call_id=call, evidence=evidence))

    def _add(self, record: Record, at: str | None = None, native_id: str | None = None) -> str:
        record.at = at
        record.native_id = native_id
        if not isinstance(record, Turn):
            record.turn_id = self.state.turn
        stream, state = self._stream(), self.state
        if (state.store and not state.early) or record.supersedes or (name := _name(record)) is None:
            return stream.add(record)
        if state.store:
            waiting = state.early.get(name)
            record.supersedes = waiting.pop(0) if waiting else None
            return stream.add(record)
        ident = stream.add(record)
        state.early.setdefault(name, []).append(ident)
        return ident

    def _roots(self) -> list[WorkspaceRoot] | None:
        return [WorkspaceRoot(id="r1", path=self.state.cwd)] if self.state.cwd else None

    def _unread(self, item: Row) -> None:
        """A row that says nothing this version reads. Its value may be a key of Cursor's: only its digest is kept."""
        self.out.count(f"unexpected:{item.table}")
        told = {k: v if k in ("key", "rowid") else _digest(v) for k, v in item.values.items()}
        self._stream().add(Native(native_type=item.table, native_id=item.key, data=told))

    # the sidecar

    def _beside(self, item: Row) -> None:
        told, state = _sidecar.decode(item.data), self.state
        changed = Config(
            cwd=told.cwd if told.cwd != state.cwd else None, title=told.title if told.title != state.name else None
        )
        state.cwd, state.name = told.cwd or state.cwd, told.title or state.name
        state.created = told.createdAtMs if state.created is None else state.created
        if state.opened and (changed.cwd or changed.title):
            self._add(changed)
        else:
            self.out.skip("said-in-the-header" if not state.opened else "unchanged:meta.json")

    # the store

    def _blob(self, item: Row) -> None:
        """A blob waits until a root names it; a JSON message says the model of what the turns say."""
        data, ident, state = item.values.get("data"), item.values.get("id"), self.state
        state.store = True
        if not isinstance(data, bytes) or not isinstance(ident, str):
            self._unread(item)
            return
        if data.startswith(b'{"') and (message := _json(data)) is not None and message.role == "assistant":
            self._models(message, f"message-{ident[:12]}")
        state.blobs[ident] = Blob(item.start, item.rev, data)
        state.waiting += len(data)
        self.out.skip("held-until-a-root-names-it")
        while state.waiting > WAITING and len(state.blobs) > 1:
            oldest, blob = next(iter(state.blobs.items()))
            self._at(self._source, oldest, blob)
            self._add(Native(native_type="blob", native_id=oldest, data=_digest(blob.data)))
            self._drop(oldest)

    def _drop(self, ident: str) -> None:
        self.state.waiting -= len(self.state.blobs.pop(ident).data)

    def _models(self, message: JsonMessage, response: str) -> None:
        """The name of the model that a message's parts carry, kept for the steps that say the same."""
        models = self.state.models
        parts = _parts(message.content)
        for options in [message.providerOptions, *(p.get("providerOptions") for p in parts)]:
            name = fields_of(fields_of(options).get("cursor")).get("modelName")
            if not isinstance(name, str):
                continue
            for part in parts:
                call, text = part.get("toolCallId"), part.get("text")
                for key in (call, sha256(text) if isinstance(text, str) else None):
                    if isinstance(key, str):
                        models.setdefault(key, []).append((name, response))
            while len(models) > KEEP:
                models.pop(next(iter(models)))
            return

    def _walk(self, item: Row) -> None:
        """The row that names the current root: what is new in the conversation as it stands."""
        told, state = _hex(item.values.get("value")), self.state
        if told is None:
            self._unread(item)
            return
        state.store = True
        if state.created is None and isinstance(told.createdAt, int | float):
            state.created = told.createdAt
        info = told.subagentInfo
        if info is not None and info.parentAgentId:
            known = Evidence(kind="native-field", field="subagentInfo.parentAgentId", value=info.parentAgentId)
            self._comes_from(info.parentAgentId, info.toolCallId, known)
        changed = Config(
            title=told.name if told.name and told.name != state.name else None,
            mode=told.mode if told.mode and told.mode != state.mode else None,
        )
        state.name, state.mode = told.name or state.name, told.mode or state.mode
        if not state.opened:
            self._stream()
        elif changed.title or changed.mode:
            self._add(changed)
        named = told.latestRootBlobId or ""
        root = state.blobs.get(named)
        if root is not None and not _names(root.data):
            root = None
        if root is None and named and named != state.root:
            self.out.count("unexpected:root that is not there, or says nothing")
            self._add(Native(native_type="root-not-there", data={"id": named}))
            # The newest of the older roots tells how far the conversation had come.
            older = [b for b in state.blobs.values() if any(i.hex() in state.blobs for i in _names(b.data))]
            root = max(older, key=lambda b: b.row, default=None)
        if root is not None:
            state.root = named
            self._root(item, root)
        elif not self.out.noted():
            self.out.skip("unchanged:meta")

    def _root(self, item: Row, root: Blob) -> None:
        state, source = self.state, self._source
        ids = {n: [v.hex() for v in _wire.every(root.data, n) if isinstance(v, bytes)] for n in (1, 8)}
        reached = set(ids[1]) | {state.root}
        for ident in ids[1]:
            self._json_message(source, ident, told_by_turns=bool(ids[8]))
        for number, ident in enumerate(ids[8]):
            self._one_turn(source, number, ident, reached)
        self.out.begin(source, item, "")
        self._taken_back(len(ids[8]))
        self._settle()
        # What stood before the root and is not in it is an older checkpoint; what came after it is of a later root.
        for ident in [i for i, b in state.blobs.items() if i in reached or b.row < root.row]:
            self._drop(ident)
        self.out.begin(source, item, "")
        self.out.skip("root-walked")

    def _taken_back(self, turns: int) -> None:
        """The conversation as it stands has no more than this many of the turns that were recorded."""
        state = self.state
        if turns >= len(state.turns):
            return
        self._add(Native(native_type="turns-taken-back", data={"turns": state.turns[turns:]}))
        del state.turns[turns:]
        state.steps = {place: k for place, k in state.steps.items() if int(place.split("/")[0]) < turns}

    def _at(self, source: Source, ident: str, blob: Blob) -> None:
        """What follows was made from this blob."""
        self.out.begin(source, Row("blobs", ident, blob.rev, {}, start=blob.row), "")

    def _one_turn(self, source: Source, number: int, ident: str, reached: set[str]) -> None:
        """A turn as it stands now: another blob each time a step is added."""
        state = self.state
        reached.add(ident)
        blob = state.blobs.get(ident)
        if blob is None:  # it was walked before, and stands unchanged
            if number < len(state.turns):
                state.turn = state.turns[number]
            return
        users = [v.hex() for v in _wire.every(blob.data, 1, 1) if isinstance(v, bytes)]
        steps = [v.hex() for v in _wire.every(blob.data, 1, 2) if isinstance(v, bytes)]
        name = _wire.text(blob.data, 1, 3) or f"turn-{number}"
        reached.update(users, steps)
        if number < len(state.turns) and state.turns[number] != name:
            self._at(source, ident, blob)
            self._taken_back(number)
        if number >= len(state.turns):
            state.turns.append(name)
            state.turn = name
            self._prompt(source, name, users)
        state.turn = state.turns[number]
        for index, step in enumerate(steps):
            self._step(source, f"{number}/{index}", step)

    def _prompt(self, source: Source, name: str, users: list[str]) -> None:
        for ident in users:
            blob = self.state.blobs.get(ident)
            if blob is None:
                continue
            self._at(source, ident, blob)
            at = from_ms(_wire.number(blob.data, 25) or _wire.number(blob.data, 26))
            native = _wire.text(blob.data, 2)
            self._add(Turn(turn_id=name, phase="start", trigger="prompt"), at)
            text = _wire.text(blob.data, 1)
            self.state.told.setdefault(_words(text or ""), []).append(name)
            if text is None:
                self._add(Native(native_type="user_message", native_id=ident, data=_wire.plain(blob.data)), at)
                continue
            self._add(
                Message(role="user", author="human", origin="prompt", message_id=native, content=[Text(text=text)]),
                at,
                native,
            )

    def _step(self, source: Source, place: str, ident: str) -> None:
        """A step at its place in a turn: new, or another blob there than before (a call that was answered)."""
        state = self.state
        known = state.steps.get(place)
        blob = state.blobs.get(ident)
        if blob is None or (known is not None and known.blob == ident):
            return
        known = state.steps[place] = known or Known(ident)
        known.blob = ident
        self._at(source, ident, blob)
        if (call := _wire.inside(blob.data, 2)) is not None:
            self._call(place, ident, call, known)
        elif (text := _wire.text(blob.data, 1, 1)) is not None:
            at = from_ms(_wire.number(blob.data, 1, 2))
            self._words(ident, Text(text=text), at, known)
        elif _wire.inside(blob.data, 3) is not None:
            thought = _wire.text(blob.data, 3, 1)
            at = from_ms(_wire.number(blob.data, 3, 3))
            self._words(ident, Thinking(text=thought) if thought else Thinking(redacted=True), at, known)
        else:
            self.out.count("unexpected:step")
            self._add(Native(native_type="step", native_id=ident, data=_wire.plain(blob.data)))

    def _words(self, ident: str, block: Block, at: str | None, known: Known) -> None:
        inference = self._inference(sha256(block.text), at) if isinstance(block, Text) else None
        known.message = self._add(
            Message(
                role="assistant", author="agent", content=[block], inference_id=inference, supersedes=known.message
            ),
            at,
            ident,
        )

    def _inference(self, key: str | None, at: str | None) -> str | None:
        """The response a step belongs to, where a JSON message asked for the same call or said the same words."""
        found = self.state.models.get(key or "")
        if not found:
            return None
        model, ident = found.pop(0) if len(found) > 1 else found[0]
        if ident not in self.state.inferred:
            self.state.inferred[ident] = None
            while len(self.state.inferred) > KEEP:
                self.state.inferred.pop(next(iter(self.state.inferred)))
            self._add(Inference(inference_id=ident, id_source="derived", model=model), at)
        return ident

    def _call(self, place: str, ident: str, call: bytes, known: Known) -> None:
        fields = _wire.fields(call)
        called = _wire.text(call, 57)
        start, end = from_ms(_wire.number(call, 59)), from_ms(_wire.number(call, 60))
        tool = next((n for n in fields if n not in (57, 58, 59, 60) and isinstance(fields[n][-1], bytes)), 0)
        body = _wire.inside(call, tool) if tool else None
        name, kind = TOOLS.get(tool, (f"tool-{tool}", "other"))
        args = _wire.inside(body or b"", 1) or b""
        name_of = called or f"step-{place}"
        if not known.called:
            known.called = True
            inference = self._inference(called, start)
            self._add(
                ToolCall(
                    call_id=name_of,
                    call_id_source=None if called else "derived",
                    name=name,
                    kind=kind,
                    input=_input(tool, args),
                    inference_id=inference,
                ),
                start,
                called,
            )
        result = _wire.inside(body or b"", 2)
        if result is None or known.answered:
            return
        known.answered = True
        self._result(name_of, tool, args, result, end or start, ident)

    def _result(self, called: str, tool: int, args: bytes, result: bytes, at: str | None, ident: str) -> None:
        """What a call came to: field 1 of a result is a success, any other says in which way it was none."""
        good = _wire.inside(result, 1)
        other = next(iter(n for n in _wire.fields(result) if n != 1), None)
        body = good if good is not None else _wire.inside(result, other or 0) or b""
        status = "completed" if good is not None else "failed"
        ran: Exec | None = None
        text = None
        if tool == 1:
            code = _wire.signed(_wire.number(body, 3)) or 0
            stdout, stderr = _wire.text(body, 5), _wire.text(body, 6)
            text = "\n".join(t for t in (stdout, stderr) if t)
            folder = _wire.text(body, 2) or _wire.text(args, 2)
            shown = good is not None or other == 2
            ran = Exec(
                command=_wire.text(args, 1) or _wire.text(body, 1),
                cwd=within(folder, self._roots()) if folder else None,
                exit_code=code if shown else None,
                signal=_wire.text(body, 4) or None,
                stdout=stdout,
                stderr=stderr,
            )
            if other == 4:
                status = "denied"
        elif tool == 8:
            text = _wire.text(body, 2)
        content: list[Block] = [Text(text=text)] if text else []
        if not content and tool != 1:
            content.append(Other(meta={"dev.asrd.block": _wire.plain(body)}))
        self._add(
            ToolResult(
                call_id=called,
                linkage="exact",
                status=status,
                content=content or None,
                exec=ran,
                meta={"dev.asrd.outcome": other} if other is not None and good is None else None,
            ),
            at,
            ident,
        )
        if ran is not None:
            for commit in commits(ran.command, ran.stdout or ""):
                self._add(VcsAction(action="commit", commit=commit, evidence="observed", call_id=called), at)
        if tool == 12 and good is not None:
            self._changed(called, good, at)

    def _changed(self, called: str, good: bytes, at: str | None) -> None:
        """The whole file before (6, not there for a new one) and after (7) an edit."""
        path, before, after = _wire.text(good, 1), _wire.text(good, 6), _wire.text(good, 7)
        if not path:
            return
        self._add(
            FileChange(
                path=within(path, self._roots()),
                change="modify" if before is not None else "create",
                call_id=called,
                before=content_of(before) if before is not None else None,
                after=content_of(after) if after is not None else None,
                diff=_wire.text(good, 5),
                applied=True,
                evidence="reported",
            ),
            at,
        )

    # JSON messages

    def _json_message(self, source: Source, ident: str, *, told_by_turns: bool) -> None:
        """A message as it is sent to the model: system and injected words, and all where there are no turns."""
        state = self.state
        blob = state.blobs.get(ident)
        if blob is None or ident in state.said:
            return
        state.said[ident] = None
        while len(state.said) > KEEP:
            state.said.pop(next(iter(state.said)))
        message = _json(blob.data)
        if message is None:
            self._at(source, ident, blob)
            self._add(Native(native_type="message", native_id=ident, data=_wire.plain(blob.data)))
            return
        parts = _parts(message.content)
        text = "".join(p["text"] for p in parts if isinstance(p.get("text"), str))
        asked = _QUERY.match(text)
        injected = message.role == "system" or (message.role == "user" and asked is None and "<user_query>" not in text)
        if told_by_turns and not injected:
            return
        self._at(source, ident, blob)
        if injected:
            self._add(
                Message(role=message.role, author="harness", origin="injected", audience="model", content=_said(parts)),
                None,
                ident,
            )
        elif message.role == "user":
            self._asked(text, f"message-{ident[:12]}", ident)
        elif message.role == "assistant":
            self._answered(parts, ident)
        else:
            self._tools(parts, ident)

    def _asked(self, text: str, turn: str, ident: str | None) -> None:
        """A prompt, its wrapping taken off."""
        found = _QUERY.match(text)
        self.state.turn = turn
        if self.state.store:
            self.state.told.setdefault(_words(text), []).append(turn)
        self._add(Turn(turn_id=turn, phase="start", trigger="prompt"))
        meta = {"dev.asrd.timestamp": found[1]} if found and found[1] else None
        content: list[Block] = [Text(text=found[2] if found else text)]
        self._add(Message(role="user", author="human", origin="prompt", content=content, meta=meta), None, ident)

    def _answered(self, parts: list[dict[str, Any]], ident: str) -> None:
        state = self.state
        keys = [p.get("toolCallId") or (sha256(p["text"]) if isinstance(p.get("text"), str) else None) for p in parts]
        model = next((state.models[k][0][0] for k in keys if isinstance(k, str) and k in state.models), None)
        name = f"message-{ident[:12]}"
        self._add(Inference(inference_id=name, id_source="derived", model=model), None, ident)
        if content := _said(parts):
            self._add(Message(role="assistant", author="agent", content=content, inference_id=name), None, ident)
        for part in parts:
            call, tool = part.get("toolCallId"), part.get("toolName")
            if part.get("type") == "tool-call" and isinstance(call, str) and isinstance(tool, str):
                state.calls[call] = tool
                self._add(
                    ToolCall(
                        call_id=call,
                        name=tool,
                        kind=KINDS.get(tool, "other"),
                        input=_arguments(part.get("args")),
                        inference_id=name,
                    ),
                    None,
                    call,
                )

    def _tools(self, parts: list[dict[str, Any]], ident: str) -> None:
        for part in parts:
            call, result = part.get("toolCallId"), part.get("result")
            if not isinstance(call, str):
                self._add(Native(native_type="tool", native_id=ident, data=part))
                continue
            content: list[Block] = (
                [Text(text=result)] if isinstance(result, str) else [Other(meta={"dev.asrd.block": result})]
            )
            linkage = "exact" if call in self.state.calls else "none"
            self._add(ToolResult(call_id=call, linkage=linkage, status="unknown", content=content), None, ident)

    # the transcript

    def _line(self, item: Line) -> None:
        """A line of a transcript: nothing new but the end of a turn where the store tells the session."""
        line, state = _transcript.decode(item.data), self.state
        if state.transcript[0] not in ("", self._source.name):
            self.out.skip("another-transcript-of-the-session")
            return
        state.lines += 1
        if item.start == 0:
            state.transcript = (self._source.name, first_line_digest(item.data))
        if line.type == "error" and line.error is not None:
            self._add(Native(native_type="error", data={"error": line.error}))
            return
        if line.type == "turn_ended":
            self._turn_ended(item, line.status)
            return
        parts = _parts(line.message.content if line.message else None)
        if line.role == "user" and line.message is not None and _is_prompt(parts):
            state.prompt = _words(_text(parts))
            state.heard[state.prompt] = state.heard.get(state.prompt, 0) + 1
        if state.store:
            self.out.skip("transcript-of-a-recorded-session")
            return
        if line.message is None or line.role not in ("user", "assistant"):
            return  # the driver keeps it whole
        if line.role == "user":
            if _is_prompt(parts):
                self._asked(_text(parts), f"line-{state.lines}", None)
            else:
                self._add(Message(role="user", author="harness", origin="injected", content=_said(parts)))
            return
        name = f"line-{state.lines}"
        self._add(Inference(inference_id=name, id_source="derived"))
        if content := _said(parts):
            self._add(Message(role="assistant", author="agent", content=content, inference_id=name))
        for number, part in enumerate(p for p in parts if p.get("type") == "tool_use"):
            tool = part.get("name")
            if not isinstance(tool, str):
                self._add(Native(native_type="tool_use", data=part))
                continue
            self._add(
                ToolCall(
                    call_id=f"{name}-{number}",
                    call_id_source="derived",
                    name=tool,
                    kind=KINDS.get(tool, "other"),
                    input=_arguments(part.get("input")),
                    inference_id=name,
                )
            )

    def _turn_ended(self, item: Line, status: str | None) -> None:
        """The end of the turn whose prompt came last: of the store's turn where that is known, else when it is told."""
        state = self.state
        number = state.heard.get(state.prompt, 0) - 1
        if number < 0 and state.store:
            self._add(Native(native_type="turn_ended", data={"status": status}))
            return
        end = Ended(item.start, item.end, state.prompt, number, status)
        if not state.store:
            end.said = self._ends(end, state.turn or f"line-{state.lines}")
        elif (turn := self._turn_of(end)) is not None:
            self._ends(end, turn)
            return
        else:
            self.out.skip("held-until-its-turn-is-told")
        state.ends.append(end)

    def _turn_of(self, end: Ended) -> str | None:
        """The store's turn that an end is of."""
        turns = self.state.told.get(end.prompt, [])
        return turns[end.number] if 0 <= end.number < len(turns) else None

    def _ends(self, end: Ended, turn: str) -> str:
        """Says that a turn ended, once: what was said of its end before is superseded."""
        ended, status = self.state.ended, ENDS.get(end.status or "")
        meta = {"dev.asrd.status": end.status} if status is None else None
        told = Turn(turn_id=turn, phase="end", status=status, meta=meta, supersedes=end.said or ended.get(turn))
        ended[turn] = self._add(told)
        return ended[turn]

    def _settle(self) -> None:
        """Says the ends that the transcript told before the store told their turns, at their own place."""
        state = self.state
        waiting, state.ends = state.ends, []
        name, first = state.transcript
        for end in waiting:
            turn = self._turn_of(end)
            if turn is None:
                state.ends.append(end)
                continue
            self.out.begin(
                Source(self.harness, self.group, name, name, "lines", "2"), Line(end.start, end.end, b""), first
            )
            self._ends(end, turn)


# ---------------------------------------------------------------- how it says things


def _text(parts: list[dict[str, Any]]) -> str:
    return "".join(p["text"] for p in parts if isinstance(p.get("text"), str))


def _is_prompt(parts: list[dict[str, Any]]) -> bool:
    """Whether what a user's line holds was typed by a person, and not put in by the program."""
    return "<user_query>" in _text(parts) or len(parts) == 1


def _words(text: str) -> str:
    """Digest of a prompt's own words, as transcript and store both have them: without its wrapping, blanks made one."""
    found = _ASKED.search(text)
    return sha256(" ".join((found[1] if found else text).split()))[:16]


def _parts(content: Any) -> list[dict[str, Any]]:
    """The parts of a message; text alone is one part."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [fields_of(p) for p in cast("list[Any]", content)] if isinstance(content, list) else []


def _said(parts: list[dict[str, Any]]) -> list[Block]:
    found: list[Block] = []
    for part in parts:
        kind, text = part.get("type"), part.get("text")
        if kind in ("tool-call", "tool_use", "tool-result"):
            continue
        if kind == "reasoning":
            found.append(Thinking(text=text) if isinstance(text, str) and text else Thinking(redacted=True))
        elif isinstance(text, str):
            if text:
                found.append(Text(text=text))
        else:
            found.append(Other(meta={"dev.asrd.block": part}))
    return found


def _arguments(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {"raw": given}


def _input(tool: int, args: bytes) -> dict[str, Any]:
    """A call's arguments: by the names of the field map, and what it does not name by number."""
    names = {1: {1: "command", 2: "working_directory", 3: "timeout"}, 8: {1: "path"}, 12: {1: "path"}, 4: {}}.get(
        tool, {}
    )
    told: Any = _wire.plain(args) if args else {}
    if not isinstance(told, dict):
        return {"raw": told}
    found: dict[str, Any] = {}
    for number, values in cast("dict[str, list[Any]]", told).items():
        found[names.get(int(number), number)] = values[0] if len(values) == 1 else values
    return found


def _json(data: bytes) -> JsonMessage | None:
    try:
        return _message.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _hex(value: Any) -> StoreMeta | None:
    """The object that a row of `meta` holds, as hex or (seen in other builds) as it stands."""
    if not isinstance(value, str | bytes):
        return None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    try:
        return _meta.decode(text.encode() if text.startswith("{") else bytes.fromhex(text))
    except (msgspec.MsgspecError, ValueError):
        return None


def _name(record: Record) -> str | None:
    """What a transcript and a store both say: turns and responses in order, messages by their words, calls by their tool."""
    match record:
        case Turn() if record.phase == "start":
            return "turn"
        case Inference():
            return "inference"
        case Message() if record.origin != "injected":
            words = "".join(b.text for b in record.content if isinstance(b, Text))
            return f"{record.role}:{sha256(words)}" if words else None
        case ToolCall():
            return f"call:{record.name}"
        case _:
            return None


def _names(data: bytes) -> list[bytes]:
    """The blobs that a root names: its messages and turns."""
    return [v for n in (1, 8) for v in _wire.every(data, n) if isinstance(v, bytes) and len(v) == 32]


def _digest(value: Any) -> dict[str, Any]:
    data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    return {"bytes": len(data), "sha256": sha256(data)}


RECORDER = CursorRecorder
