"""Mistral Vibe 3: a store of generations a session, with a journal that lives for one turn.

Where: `~/.vibe/logs/session/unified/<session id>/` (VIBE_HOME instead of `~/.vibe`). Seen: 3.0.2, 3.0.3 (store format
`mistral.vibe.unified-session-store/v1`, minor 9).

    meta.json        {"session_id":"d31ab01b-…","parent_session_id":null,"start_time":"2026-11-30T05:08:51.174000+00:00",
                      "environment":{"working_directory":"/home/dev/app"},"title":null,"config":{"active_model":"mock-1"}}
    generations/<n>/ manifest.json: its chunks {"checkpoint":{"chunks":["8690…"]},"projection_state":{"chunks":["f0bb…"]}}
                     runtime-state.json {"identity":{"kind":"root"},"session_metadata":{"active_model":"mock-1","cwd":"…"}}
                     projection-state.json {"snapshot":{"latestTurn":{"id":"turn-…","status":"completed"},
                      "session":{"tokenUsage":{"inputTokens":79128,"outputTokens":952,"cachedInputTokens":38752}}}}
    chunks/<sha256>  a list of entries as they are shown (message, reasoning, effect: with times, without call ids), or
                     of messages as the model gets them (with call ids, without times)
    journal/<first>  {"sequence":95,"type":"action_result","payload":{"action_id":"3dd7…","result":{…}}}

    journal types: command_reserved, core_input, projection_delta, action_intent (completion | tool | hook), action_result,
    receipt_succeeded

What is particular
    - At the end of a turn a new generation is written and all journals but the last two go: followed live, each request
      has its figures; read afterwards, the turns before the last journal have them only as the session's total. What of
      a total no request accounts for becomes one `inference` with a derived id.
    - `inputTokens` includes cached ones. There are no reasoning tokens.
    - Names differ: the model called `edit`, what ran was `file_system.search_replace`. The model's are taken.
    - In a generation an effect has no call id: effects and calls of the history stand in one order, and an effect is a
      call's when what it gave is what the model was told.
    - A response and its result come twice in a journal; the second (`core_input`) has the time and is taken.
    - After a crash the effect that was under way fails with `effect_recovery_failed` and the turn goes on.
    - The model of a request is the session's setting; no record says which one answered.
    - Titles are made by requests that stand nowhere.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, cast

import msgspec
from msgspec import Struct

from asrd.recorders.base import Recorder, StreamKey, StreamOut, Writer, fields_of, from_ms, items_of, sha256, within
from asrd.records import (
    Approval,
    Block,
    Capture,
    Compaction,
    Config,
    Content,
    Error,
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
    Plan,
    PlanItem,
    Record,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
    VcsAction,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, Source

# ---------------------------------------------------------------- native documents

Fields = dict[str, Any]


class Meta(Struct):
    """meta.json."""

    session_id: str | None = None
    parent_session_id: str | None = None
    start_time: str | None = None
    environment: Fields | None = None
    title: str | None = None
    child_sessions: list[Any] = []
    config: Fields | None = None


class Manifest(Struct):
    """manifest.json: which chunks belong to a generation's parts."""

    checkpoint: Fields | None = None
    projection_state: Fields | None = None
    runtime_state: Fields | None = None


class Checkpoint(Struct):
    compaction_count: int = 0


class Runtime(Struct):
    """runtime-state.json, of which most is the runtime's own."""

    identity: Fields | None = None
    session_metadata: Fields | None = None
    core_system_instructions: str | None = None
    subagents: Fields | None = None


class TokenUsage(Struct, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    total_tokens: int | None = None


class ShownSession(Struct):
    tokenUsage: TokenUsage | None = None
    title: str | None = None
    parentSessionId: str | None = None


class ShownTurn(Struct):
    id: str
    status: str | None = None
    stopReason: Any = None
    completedAt: int | None = None


class Snapshot(Struct):
    latestTurn: ShownTurn | None = None
    session: ShownSession | None = None


class Projection(Struct):
    """projection-state.json."""

    snapshot: Snapshot


class Shown(Struct):
    """An entry as it is shown: message, reasoning or effect."""

    id: str
    type: str
    turnId: str | None = None
    createdAt: int | None = None
    updatedAt: int | None = None
    role: str | None = None
    source: str | None = None
    generationStatus: str | None = None
    content: list[Any] | None = None
    text: str | None = None
    summary: Any = None
    detail: Fields | None = None
    state: Fields | None = None
    title: str | None = None


class Told(Struct):
    """A message as the model gets it."""

    message: Fields
    source: str | None = None
    turn_index: int | None = None


# ---------------------------------------------------------------- native journal


class JournalLine(Struct):
    """One line of a journal."""

    type: str
    payload: Fields
    sequence: int | None = None


class CompletionUsage(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    total_tokens: int | None = None


# ---------------------------------------------------------------- state


class Generation(Struct):
    """What the documents beside a generation's projection say."""

    checkpoint: list[str] = []
    projection: list[str] = []
    model: str | None = None
    effort: str | None = None
    mode: str | None = None
    cwd: str | None = None
    compactions: int = 0
    system: str | None = None


class Counted(Struct):
    """Tokens that inferences in the stream account for: input with cached, cached, output."""

    input: int = 0
    cached: int = 0
    output: int = 0


class State(Struct):
    """One session."""

    session: str | None = None
    cwd: str | None = None
    started: str | None = None
    parent: str | None = None
    parent_field: str = "meta.json.parent_session_id"
    kind: str | None = None
    title: str | None = None
    title_said: str | None = None
    model: str | None = None
    configured: str = ""
    generations: dict[str, Generation] = {}
    chunks: dict[str, bytes] = {}
    """Chunks that no generation was read with yet, by digest."""
    used: dict[str, int] = {}
    waiting: dict[str, bytes] = {}
    """Projections whose chunks are not there yet, by generation."""
    system: str = ""
    """Digest of the system prompt last recorded."""
    entries: dict[str, int] = {}
    """Entries and calls that are recorded."""
    turns: dict[str, int] = {}
    """Turns: 1 started, 2 ended."""
    calls: dict[str, Fields] = {}
    """Calls without result: name, arguments."""
    actions: dict[str, str] = {}
    """The call an action carries out, by action id."""
    results: dict[str, int] = {}
    children: dict[str, int] = {}
    requests: dict[str, int] = {}
    """Requests recorded, by action id."""
    counted: Counted = msgspec.field(default_factory=Counted)
    total: str = ""
    compactions: int = 0


KINDS = {
    "read_file": "read", "read": "read", "bash": "execute", "edit": "edit", "search_replace": "edit", "write_file": "edit",
    "write": "edit", "grep": "search", "glob": "search", "list": "search", "web_search": "search", "web_fetch": "fetch",
    "todo": "plan", "task": "delegate", "spawn": "delegate",
}  # fmt: skip

_COMMIT = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_EXCERPT = re.compile(
    r'\A<system>The tool output is large\.[^<]*</system>\n<truncated-output>\n\{\n  "command": "(?:[^"\\]|\\.)*",\n'
    r'  "returncode": (-?\d{1,10}),\n'
)
"""How a result begins that was too large for the context (3.0.2): only its start and end are kept, the code before both."""
_FULL_ID = re.compile(r"(?m)^(?:[0-9a-f]{40}|[0-9a-f]{64})$")
_PATH = re.compile(r"(logs/session/unified/([^/]+))/(.+)")


def text_of(value: Any) -> str | None:
    """Text, or None for what is none."""
    return value if isinstance(value, str) else None


_EXITED = re.compile(r"^Command exited with status (\d+)")
"""How the error of a command says its exit code that the person ran (3.0.3)."""


class VibeRecorder(Recorder):
    """One folder is one session."""

    harness = "vibe"
    roots = (Root(".vibe", env=("VIBE_HOME",)),)
    places = (
        Place("logs/session/unified/*/meta.json", "document", sidecar=True),
        Place("logs/session/unified/*/chunks/*.json", "document", sidecar=True),
        Place("logs/session/unified/*/generations/*/manifest.json", "document", sidecar=True),
        Place("logs/session/unified/*/generations/*/checkpoint.json", "document", sidecar=True),
        Place("logs/session/unified/*/generations/*/runtime-state.json", "document", sidecar=True),
        Place("logs/session/unified/*/generations/*/projection-state.json", "document"),
        Place("logs/session/unified/*/journal/*.jsonl"),
    )
    versions = ("3.0.2", "3.0.3")
    State = State

    def __init__(self, out: Writer, group: str) -> None:
        super().__init__(out, group)
        self._last = ("", "")
        """The request and the words of the response shown last, while a generation is read."""

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """The folder is the group; generations and journals go by their sequence, a generation before its journal."""
        found = _PATH.fullmatch(path)
        if found is None:
            return None
        group, rest = found.group(1), found.group(3)
        parts = rest.split("/")
        if parts[0] == "generations" and len(parts) == 3:
            order = f"{parts[1]}/0"
        elif parts[0] == "journal":
            order = f"{parts[1].removesuffix('.jsonl')}/1"
        else:
            order = ""
        return Located(group=group, name=f"{found.group(2)}/{rest}", order=order)

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether it is a journal of the store."""
        return head.startswith(b'{"payload":') and b'"recovery_journal_record_version"' in head

    def receive(self, source: Source, item: Line | Row) -> None:
        found = _PATH.fullmatch(source.path)
        parts = found.group(3).split("/") if found else []
        if isinstance(item, Line):
            self._journal(parts, msgspec.json.decode(item.data, type=JournalLine))
        elif parts[:1] == ["chunks"]:
            self._chunk(parts[-1].removesuffix(".json"), item.data)
        elif parts[-1:] == ["projection-state.json"]:
            self._projection(parts[-2], item.data)
        elif parts[:1] == ["generations"]:
            self._beside(parts[-1], self._generation(parts[-2]), item.data)
        else:
            self._meta(item.data)

    # the stream

    def _add(self, stream: StreamOut, record: Record) -> None:
        """Adds a record, unless the stream held it from a journal that was followed live and is gone."""
        stream.add(record, once=True)

    def main(self) -> StreamOut:
        state: State = self.state
        session = state.session or self.group.rsplit("/", 1)[-1]
        key = StreamKey(self.harness, session)
        found = self.out.stream(key)
        if found is not None:
            return found
        lineage = Lineage(root=True) if state.session else Lineage()
        if state.parent is not None:
            lineage = Lineage(
                root=False,
                parent=LineageParent(agent=self.harness, session_id=state.parent),
                relation="forked_from" if "fork" in (state.kind or "") else "spawned_by",
                evidence=Evidence(kind="native-field", field=state.parent_field, value=state.parent),
            )
        stream = self.open(key, started_at=state.started, lineage=lineage, cwd=state.cwd, title=state.title)
        state.title_said = state.title
        for profile, facet, how, reason in (
            (
                "usage",
                "inference",
                "partial",
                "requests before the oldest journal are known by the session's total only",
            ),
            ("usage", "usage.cacheWrite", "unavailable", "Vibe does not record it"),
            ("usage", "usage.reasoning", "unavailable", "Vibe does not record it"),
            ("usage", "inference.auxiliary", "unavailable", "requests for titles, and answers cut at their length"),
            ("usage", "inference.model", "partial", "the session's setting; no record names the model that answered"),
            ("coding", "tool_call.callId", "partial", "past turns: matched with the history by order and result"),
        ):
            self._add(stream, Capture(profile=profile, facet=facet, state=how, reason=reason))
        return stream

    # documents beside

    def _meta(self, data: bytes) -> None:
        meta = msgspec.json.decode(data, type=Meta)
        state: State = self.state
        state.session = meta.session_id or state.session
        state.started = state.started or meta.start_time
        state.cwd = state.cwd or text_of(fields_of(meta.environment).get("working_directory"))
        state.parent = state.parent or meta.parent_session_id
        state.title = meta.title
        state.model = text_of(fields_of(meta.config).get("active_model")) or state.model
        stream = self.out.stream(StreamKey(self.harness, state.session or ""))
        if stream is not None:
            if meta.title is not None and meta.title != state.title_said:
                state.title_said = meta.title
                self._add(stream, Config(title=meta.title))
            for child in meta.child_sessions:
                self._child(stream, child, "meta.json.child_sessions")
        if not self.out.noted():
            self.out.skip("kept-for-its-session")

    def _child(self, stream: StreamOut, child: Any, field: str) -> None:
        ident = text_of(child) or text_of(fields_of(child).get("session_id"))
        if ident is None or ident in self.state.children:
            return
        self.state.children[ident] = 1
        target = LinkTarget(agent=self.harness, session_id=ident)
        evidence = Evidence(kind="native-field", field=field, value=ident)
        self._add(stream, Link(relation="spawned", target=target, evidence=evidence))

    def _generation(self, number: str) -> Generation:
        found = self.state.generations.get(number)
        if found is None:
            found = self.state.generations[number] = Generation()
        return found

    def _beside(self, name: str, generation: Generation, data: bytes) -> None:
        state: State = self.state
        if name == "manifest.json":
            manifest = msgspec.json.decode(data, type=Manifest)
            generation.checkpoint = _chunks(manifest.checkpoint)
            generation.projection = _chunks(manifest.projection_state)
        elif name == "checkpoint.json":
            checkpoint = msgspec.json.decode(data, type=Checkpoint)
            generation.compactions = checkpoint.compaction_count
        else:
            runtime = msgspec.json.decode(data, type=Runtime)
            about = fields_of(runtime.session_metadata)
            generation.model = text_of(about.get("active_model"))
            generation.effort = text_of(about.get("reasoning_effort"))
            generation.mode = text_of(about.get("agent_name"))
            generation.cwd = text_of(about.get("cwd"))
            generation.system = runtime.core_system_instructions
            identity = fields_of(runtime.identity)
            state.kind = text_of(identity.get("kind")) or state.kind
            parent = text_of(identity.get("parent_session_id"))
            if parent is not None and state.parent is None:
                state.parent, state.parent_field = parent, "runtime-state.json.identity.parent_session_id"
            state.cwd = state.cwd or generation.cwd
            for child in fields_of(fields_of(runtime.subagents).get("children")):
                if child not in state.children:
                    state.children[child] = 0
        self.out.skip("kept-for-its-generation")

    def _chunk(self, digest: str, data: bytes) -> None:
        state: State = self.state
        if digest in state.used:
            self.out.skip("chunk-read-before")
            return
        msgspec.json.decode(data)
        state.chunks[digest] = data
        for number in sorted(state.waiting):
            if self._whole(self._generation(number)):
                self._read(number, msgspec.json.decode(state.waiting.pop(number), type=Projection))
        if not self.out.noted():
            self.out.skip("kept-for-its-generation")

    def _whole(self, generation: Generation) -> bool:
        state: State = self.state
        wanted = [*generation.projection, *generation.checkpoint]
        return all(digest in state.chunks or digest in state.used for digest in wanted)

    # generations

    def _projection(self, number: str, data: bytes) -> None:
        projection = msgspec.json.decode(data, type=Projection)
        if not self._whole(self._generation(number)):
            self.state.waiting[number] = data
            self.out.skip("waits-for-its-chunks")
            return
        self._read(number, projection)
        if not self.out.noted():
            self.out.skip("generation-holds-nothing-new")

    def _read(self, number: str, projection: Projection) -> None:
        """What a generation shows that no journal told before."""
        state: State = self.state
        generation = self._generation(number)
        shown = [msgspec.convert(e, Shown) for e in self._listed(generation.projection) if "type" in fields_of(e)]
        told = [msgspec.convert(m, Told) for m in self._listed(generation.checkpoint) if "message" in fields_of(m)]
        snapshot = projection.snapshot
        if shown or (snapshot.session is not None and snapshot.session.tokenUsage is not None):
            self._settings(self.main(), generation)
            self._system(self.main(), generation.system, None)
        calls = _Calls(told, state.results)
        self._last = ("", "")
        for entry in shown:
            self._entry(entry, calls)
        self._compacted(generation, told)
        self._envelope(snapshot)
        for digest in (*generation.projection, *generation.checkpoint):
            state.used[digest] = 1
            state.chunks.pop(digest, None)
        for older in [n for n in state.generations if n < number]:
            del state.generations[older]

    def _listed(self, digests: list[str]) -> list[Any]:
        found: list[Any] = []
        for digest in digests:
            data = self.state.chunks.get(digest)
            if data is not None:
                found += items_of(msgspec.json.decode(data))
        return found

    def _settings(self, stream: StreamOut, generation: Generation) -> None:
        state: State = self.state
        state.model = generation.model or state.model
        now = f"{generation.model}\x1f{generation.effort}\x1f{generation.mode}"
        if now != state.configured and generation.model is not None:
            state.configured = now
            self._add(stream, Config(model=generation.model, effort=generation.effort, mode=generation.mode))
        for child in [c for c, said in state.children.items() if not said]:
            del state.children[child]
            self._child(stream, child, "runtime-state.json.subagents.children")

    def _system(self, stream: StreamOut, text: str | None, at: str | None) -> None:
        """The system prompt, once as long as it stays the same."""
        if not text or sha256(text)[:16] == self.state.system:
            return
        self.state.system = sha256(text)[:16]
        words: list[Block] = [Text(text=text)]
        self._add(
            stream, Message(role="system", author="harness", origin="injected", audience="model", content=words, at=at)
        )

    def _entry(self, entry: Shown, calls: _Calls) -> None:
        """One shown entry of a past turn."""
        state: State = self.state
        if entry.id in state.entries:
            return
        if entry.type == "message" and entry.role == "user":
            self._prompt(entry)
        elif entry.type in ("message", "reasoning"):
            self._said(entry)
        elif entry.type == "effect" and entry.generationStatus != "in_progress":
            self._effect(entry, calls.of(_output(entry)))
        elif entry.type != "effect":
            data = msgspec.to_builtins(entry)
            self._add(self.main(), Native(native_type=f"entry/{entry.type}", data=data, native_id=entry.id))
            state.entries[entry.id] = 1

    def _prompt(self, entry: Shown) -> None:
        state: State = self.state
        state.entries[entry.id] = 1
        stream = self.main()
        at = from_ms(entry.createdAt)
        mine = entry.source in (None, "turn_start", "queue", "queued", "steer")
        agent = state.parent is not None and "fork" not in (state.kind or "")
        if entry.turnId is not None and entry.turnId not in state.turns:
            state.turns[entry.turnId] = 1
            trigger = "agent" if agent else "prompt" if entry.source == "turn_start" else None
            if (entry.source or "").startswith("queue"):
                trigger = "queued"
            self._add(stream, Turn(turn_id=entry.turnId, phase="start", trigger=trigger, at=at, native_id=entry.turnId))
        self._add(
            stream,
            Message(
                role="user",
                author="agent" if agent and mine else "human" if mine else "harness",
                origin="agent" if agent and mine else "prompt" if mine else "injected",
                content=_blocks(items_of(entry.content)),
                message_id=entry.id,
                turn_id=entry.turnId,
                native_id=entry.id,
                at=at,
                meta=None if mine else {"dev.mistral.vibe.source": entry.source},
            ),
        )

    def _said(self, entry: Shown) -> None:
        """A response's text or reasoning; its request's figures are part of the session's total only."""
        state: State = self.state
        state.entries[entry.id] = 1
        stream = self.main()
        at = from_ms(entry.createdAt)
        action = _action(entry.id)
        whole = Message(role="assistant", content=[], native_id=f"assistant-{action}")
        if not stream.waits() and stream.held(whole) is not None:
            return  # a journal told the whole response
        if action is not None and action not in state.requests:
            state.requests[action] = 1
            self._add(
                stream, Inference(inference_id=action, model=state.model, turn_id=entry.turnId, at=at, native_id=action)
            )
        if entry.type == "reasoning":
            content: list[Block] = [Thinking(text=entry.text)] if entry.text else [Thinking(redacted=True)]
        else:
            content = _blocks(items_of(entry.content))
            self._last = (action or "", _joined(items_of(entry.content)))
        self._add(
            stream,
            Message(
                role="assistant",
                author="agent" if action is not None else "harness",
                content=content,
                message_id=entry.id,
                inference_id=action,
                turn_id=entry.turnId,
                native_id=entry.id,
                at=at,
            ),
        )

    def _effect(self, entry: Shown, call: Fields | None) -> None:
        """What ran: the call as the model made it where it can be told, and what it came to."""
        state: State = self.state
        state.entries[entry.id] = 1
        detail = fields_of(entry.detail)
        command = text_of(fields_of(detail.get("input")).get("command"))
        if detail.get("kind") == "shell" and command is not None:
            self._typed(entry, command)
            return
        if detail.get("kind") not in (None, "tool"):
            data = msgspec.to_builtins(entry)
            self._add(
                self.main(), Native(native_type="effect", data=data, native_id=entry.id, at=from_ms(entry.createdAt))
            )
            return
        action = entry.id.removeprefix("effect-")
        known = state.actions.get(action)
        if known is not None:
            ident = known
        elif call is not None:
            ident = str(call["id"])
            if ident not in state.entries:
                response = self._last[0] if self._last[0] and call["said"] == self._last[1] else None
                at = from_ms(entry.createdAt)
                self._called(ident, str(call["name"]), call["arguments"], entry.turnId, at, response)
        else:
            ident = entry.id
            name = text_of(detail.get("toolName")) or entry.title or "unknown"
            given = detail.get("input")
            self._called(ident, name, given, entry.turnId, from_ms(entry.createdAt), None, derived=True)
        output = _output(entry)
        told = text_of(call.get("text")) if call is not None else None
        self._result(ident, output, entry.turnId, from_ms(entry.updatedAt), told, fields_of(entry.state))

    def _typed(self, entry: Shown, command: str) -> None:
        """`!command`: the person's own; it asks nothing of the model and starts no turn."""
        stream, told = self.main(), fields_of(entry.state)
        said: list[Block] = [Text(text=f"!{command}")]
        at = from_ms(entry.createdAt)
        self._add(
            stream, Message(role="user", author="human", origin="command", content=said, native_id=entry.id, at=at)
        )
        code = _EXITED.search(text_of(fields_of(told.get("error")).get("message")) or "")
        took = told.get("durationMs")
        output = text_of(told.get("outputText"))
        self._add(
            stream,
            ToolResult(
                call_id=f"command:{entry.id}",
                linkage="none",
                status=text_of(told.get("status")) or "unknown",
                content=[Text(text=output)] if output else None,
                exec=Exec(
                    command=command,
                    exit_code=int(code[1]) if code else None,
                    duration_ms=took if isinstance(took, (int, float)) else None,
                ),
                native_id=entry.id,
                at=from_ms(entry.updatedAt),
            ),
        )

    def _compacted(self, generation: Generation, told: list[Told]) -> None:
        state: State = self.state
        if generation.compactions <= state.compactions:
            return
        state.compactions = generation.compactions
        summary = next((m for m in told if m.source not in (None, "history")), None)
        text = _joined(items_of(summary.message.get("content"))) if summary is not None else None
        self._add(
            self.main(), Compaction(summary=text, meta={"dev.mistral.vibe.compactionCount": generation.compactions})
        )

    def _envelope(self, snapshot: Snapshot) -> None:
        """How the last turn ended, and the session's total: what of it no request accounts for is one more inference."""
        state: State = self.state
        turn, session = snapshot.latestTurn, snapshot.session
        usage = session.tokenUsage if session is not None else None
        over = turn is not None and turn.status not in _UNDER_WAY
        ident = turn.id if turn is not None and over else None  # what came before a turn under way is no part of it
        at = from_ms(turn.completedAt) if turn is not None else None
        if usage is not None:
            self._reconcile(usage, ident, at)
        if session is not None and session.title is not None and session.title != state.title_said:
            stream = self.main()
            if session.title != state.title_said:
                state.title_said = session.title
                self._add(stream, Config(title=session.title, at=at))
        if turn is None or not over or state.turns.get(turn.id) == 2:
            return
        if turn.id not in state.turns:
            return
        state.turns[turn.id] = 2
        status = {"completed": "completed", "failed": "failed", "error": "failed"}.get(turn.status or "", "interrupted")
        stop = {"dev.mistral.vibe.stopReason": turn.stopReason} if turn.stopReason is not None else {}
        if status == "interrupted":
            stop["dev.mistral.vibe.status"] = turn.status
        stream = self.main()
        self._add(
            stream,
            Turn(turn_id=turn.id, phase="end", status=status, at=at, native_id=turn.id, meta=stop or None),
        )
        if usage is not None:
            self._total(stream, usage, at)

    def _reconcile(self, usage: TokenUsage, turn: str | None, at: str | None) -> None:
        counted: Counted = self.state.counted
        more = Counted(
            usage.input_tokens - counted.input,
            usage.cached_input_tokens - counted.cached,
            usage.output_tokens - counted.output,
        )
        stream = self.main()
        if not stream.waits():
            held = stream.tokens()  # by requests of journals that are gone
            more = Counted(more.input - held[0], more.cached - held[1], more.output - held[2])
        if more.input < 0 or more.cached < 0 or more.output < 0 or not (more.input or more.output):
            return
        counted.input += more.input
        counted.cached += more.cached
        counted.output += more.output
        self._add(
            self.main(),
            Inference(
                inference_id=f"total-{usage.input_tokens}-{usage.output_tokens}",
                id_source="derived",
                model=self.state.model,
                usage=Usage(
                    input=more.input - more.cached,
                    output=more.output,
                    cache_read=more.cached,
                    total=more.input + more.output,
                ),
                turn_id=turn,
                at=at,
                meta={
                    "dev.asrd.usage": {"tokenUsage": msgspec.to_builtins(usage), "of": "session", "rule": "difference"},
                    "dev.asrd.requests": "unknown",
                },
            ),
        )

    def _total(self, stream: StreamOut, usage: TokenUsage, at: str | None) -> None:
        said = f"{usage.input_tokens}/{usage.output_tokens}"
        if said == self.state.total:
            return
        self.state.total = said
        total = Usage(
            input=usage.input_tokens - usage.cached_input_tokens,
            output=usage.output_tokens,
            cache_read=usage.cached_input_tokens,
            total=usage.total_tokens,
        )
        meta = {"dev.asrd.usage": msgspec.to_builtins(usage)}
        self._add(stream, UsageTotal(scope="session", cumulative=True, usage=total, at=at, meta=meta))

    # the journal

    def _journal(self, parts: list[str], line: JournalLine) -> None:
        first = parts[-1].removesuffix(".jsonl") if parts else ""
        earlier = [n for n in self.state.generations if n <= first]
        generation = self.state.generations[max(earlier)] if earlier else None
        payload = line.payload
        kind = line.type
        if kind == "projection_delta":
            self._delta(items_of(payload.get("delta")))
        elif kind == "core_input":
            self._input(payload, generation)
        elif kind == "action_intent":
            self._intent(fields_of(payload.get("request")))
        elif kind == "action_result":
            self._failed_action(payload)
        elif kind == "command_reserved":
            if payload.get("method") != "turn/start":
                data = {"method": payload.get("method"), "params": payload.get("params")}
                self._add(self.main(), Native(native_type="command_reserved", data=data))
        if not self.out.noted() and kind in _JOURNAL:
            self.out.skip(_JOURNAL[kind])

    def _delta(self, changes: list[Any]) -> None:
        for one in changes:
            change = fields_of(one)
            if change.get("op") == "set_envelope":
                self._envelope(msgspec.convert(change.get("state"), Snapshot))
            elif change.get("op") in ("append_entry", "replace_entry"):
                entry = msgspec.convert(change.get("entry"), Shown)
                self._entry(entry, _Calls([], self.state.results))
                if entry.type == "effect":
                    self._decided(entry)
            else:
                self._add(self.main(), Native(native_type=f"projection_delta/{change.get('op')}", data=change))

    def _intent(self, request: Fields) -> None:
        action, call = text_of(request.get("action_id")), text_of(request.get("call_id"))
        if action is not None and call is not None:
            self.state.actions[action] = call

    def _failed_action(self, payload: Fields) -> None:
        """The result of an action comes again with its time, unless the action itself was given up."""
        if payload.get("state") in ("succeeded", None):
            return
        if not fields_of(payload.get("result")):
            self._add(self.main(), Native(native_type="action_result", data=payload))

    def _input(self, payload: Fields, generation: Generation | None) -> None:
        given = fields_of(payload.get("input"))
        command = fields_of(given.get("command"))
        kind = text_of(command.get("type")) or ""
        moment = fields_of(given.get("determinism")).get("time_unix_ms")
        at = from_ms(moment) if isinstance(moment, int) else None
        if system := text_of(payload.get("checkpoint_system_instructions")):
            stream = self.main()
            if generation is not None:
                self._settings(stream, generation)
            self._system(stream, system, at)
        action = text_of(command.get("action_id"))
        result = fields_of(command.get("result"))
        if kind.startswith("completion_") and action is not None:
            self._completion(action, kind, command, result, at)
        elif kind.startswith("tool_") and action is not None:
            call = text_of(command.get("call_id")) or self.state.actions.get(action)
            if call is not None and call not in self.state.results:
                failed = result or fields_of(command.get("error"))
                self._result(call, failed, self._turn(), at, None, {})
            self.state.entries[f"effect-{action}"] = 1
        elif not kind.startswith(("user_message", "hook_")):
            self._add(self.main(), Native(native_type=f"core_input/{kind}", data=command, at=at))

    def _turn(self) -> str | None:
        """The turn under way: the last that started and has not ended."""
        return next((t for t in reversed(self.state.turns) if self.state.turns[t] == 1), None)

    def _completion(self, action: str, kind: str, command: Fields, result: Fields, at: str | None) -> None:
        state: State = self.state
        if action in state.requests:
            return
        state.requests[action] = 1
        stream = self.main()
        turn = self._turn()
        usage, raw = None, result.get("usage")
        if isinstance(raw, dict):
            given = msgspec.convert(raw, CompletionUsage)
            state.counted.input += given.input_tokens
            state.counted.cached += given.cached_input_tokens
            state.counted.output += given.output_tokens
            usage = Usage(
                input=given.input_tokens - given.cached_input_tokens,
                output=given.output_tokens,
                cache_read=given.cached_input_tokens,
                total=given.total_tokens,
            )
        error = fields_of(command.get("error"))
        failed = kind != "completion_succeeded"
        words = text_of(error.get("message")) or text_of(command.get("error"))
        self._add(
            stream,
            Inference(
                inference_id=action,
                model=state.model,
                stop_reason=text_of(result.get("finish_reason")),
                usage=usage,
                error=Error(code=text_of(error.get("code")) or kind, message=words) if failed else None,
                turn_id=turn,
                native_id=action,
                at=at,
                meta={"dev.asrd.usage": raw} if usage is not None else None,
            ),
        )
        content: list[Block] = []
        calls: list[Fields] = []
        for part in items_of(result.get("parts")):
            fields = fields_of(part)
            if fields.get("type") == "tool_call":
                calls.append(fields)
            else:
                content += _blocks([part])
        if content:
            self._add(
                stream,
                Message(
                    role="assistant",
                    author="agent",
                    content=content,
                    message_id=f"assistant-{action}",
                    inference_id=action,
                    turn_id=turn,
                    native_id=f"assistant-{action}",
                    at=at,
                ),
            )
        state.entries[f"assistant-{action}"] = 1
        for number in range(len(content) + 1):
            state.entries[f"reasoning-{action}-{number}"] = 1
        for call in calls:
            arguments = call.get("arguments_json", fields_of(call.get("arguments")).get("value"))
            self._called(str(call.get("id")), str(call.get("name")), arguments, turn, at, action)

    # calls

    def _called(
        self,
        ident: str,
        name: str,
        arguments: Any,
        turn: str | None,
        at: str | None,
        inference: str | None,
        derived: bool = False,
    ) -> None:
        state: State = self.state
        given: Any = arguments
        if isinstance(arguments, str):
            try:
                given = msgspec.json.decode(arguments)
            except msgspec.DecodeError:
                given = arguments
        if not isinstance(given, dict):
            given = {"raw": given}
        state.entries[ident] = 1
        state.calls[ident] = {"name": name, "arguments": given}
        short = name.rsplit(".", 1)[-1]
        self._add(
            self.main(),
            ToolCall(
                call_id=ident,
                call_id_source="derived" if derived else None,
                name=name,
                input=cast(Fields, given),
                kind=KINDS.get(short, "other"),
                inference_id=inference,
                turn_id=turn,
                native_id=ident,
                at=at,
            ),
        )

    def _result(
        self, ident: str, output: Fields, turn: str | None, at: str | None, told: str | None, shown: Fields
    ) -> None:
        """What a call came to, who allowed it, and what it did."""
        state: State = self.state
        state.results[ident] = 1
        stream = self.main()
        call = state.calls.pop(ident, None)
        name = str(call["name"]).rsplit(".", 1)[-1] if call is not None else ""
        given = fields_of(call["arguments"]) if call is not None else {}
        meta = fields_of(output.get("_meta"))
        approval = fields_of(meta.get("approval")) or shown
        self._approved(stream, ident, approval, turn, at)
        value = output.get("structured_content")
        fields = fields_of(value)
        error = fields_of(output.get("error")) or fields_of(shown.get("error"))
        text = told if told is not None else _text(output, value, error)
        status = "completed" if output.get("type") == "success" else "failed"
        code = text_of(error.get("code")) or text_of(error.get("name"))
        if approval.get("decision") not in (None, "execute"):
            status = "denied"
        elif code in ("cancelled", "interrupted", "effect_recovery_failed"):
            status = "cancelled"
        extra: Fields = {}
        if error:
            extra["dev.mistral.vibe.error"] = error
        self._add(
            stream,
            ToolResult(
                call_id=ident,
                linkage="exact" if call is not None else "none",
                status=status,
                content=[Text(text=text)] if text else [],
                exec=self._exec(fields, given) or (self._excerpt(text, given) if name == "bash" else None),
                turn_id=turn,
                native_id=ident,
                at=at,
                meta=extra or None,
            ),
        )
        if status != "completed":
            return
        self._changed(stream, name, ident, given, fields, meta, turn, at)
        command = text_of(fields.get("command"))
        if command and _COMMIT.search(command) and not fields.get("returncode"):
            for full in dict.fromkeys(_FULL_ID.findall(text_of(fields.get("stdout")) or "")):
                root = "r1" if state.cwd else None
                self._add(
                    stream,
                    VcsAction(
                        action="commit",
                        root=root,
                        commit=full,
                        evidence="observed",
                        call_id=ident,
                        turn_id=turn,
                        native_id=ident,
                        at=at,
                    ),
                )
        todos = [fields_of(t) for t in items_of(fields.get("todos"))]
        if name == "todo" and todos:
            items = [PlanItem(text=str(t.get("content", "")), status=str(t.get("status", "pending"))) for t in todos]
            self._add(stream, Plan(items=items, call_id=ident, turn_id=turn, native_id=ident, at=at))

    def _decided(self, entry: Shown) -> None:
        """Who allowed an effect that a journal shows after its result."""
        call = self.state.actions.get(entry.id.removeprefix("effect-"))
        if call is not None:
            self._approved(self.main(), call, fields_of(entry.state), entry.turnId, from_ms(entry.updatedAt))

    def _approved(self, stream: StreamOut, ident: str, found: Fields, turn: str | None, at: str | None) -> None:
        decision, source = text_of(found.get("decision")), text_of(found.get("approvalSource"))
        if decision is None or f"approval:{ident}" in self.state.entries:
            return
        self.state.entries[f"approval:{ident}"] = 1
        self._add(
            stream,
            Approval(
                call_id=ident,
                phase="decided",
                decision="allow" if decision == "execute" else "deny",
                by={"user": "human", "config": "policy", "bypass": "policy"}.get(source or "", "harness"),
                policy=source if source in ("config", "bypass") else None,
                native_id=ident,
                turn_id=turn,
                at=at,
                meta={"dev.mistral.vibe.approval": {"type": found.get("approvalType"), "decision": decision}},
            ),
        )

    def _excerpt(self, text: str | None, given: Fields) -> Exec | None:
        """A command of whose large result only an excerpt is left."""
        found = _EXCERPT.match(text or "")
        if found is None:
            return None
        cwd = within(self.state.cwd, _roots(self.state.cwd)) if self.state.cwd else None
        return Exec(command=text_of(given.get("command")), cwd=cwd, exit_code=int(found[1]))

    def _exec(self, fields: Fields, given: Fields) -> Exec | None:
        """A command that ran: its return code is a field."""
        code = fields.get("returncode")
        if "returncode" not in fields:
            return None
        return Exec(
            command=text_of(fields.get("command")) or text_of(given.get("command")),
            cwd=within(self.state.cwd, _roots(self.state.cwd)) if self.state.cwd else None,
            exit_code=code if isinstance(code, int) and not isinstance(code, bool) else None,
            stdout=text_of(fields.get("stdout")),
            stderr=text_of(fields.get("stderr")),
            timed_out=True if fields.get("timed_out") is True else None,
        )

    def _changed(
        self,
        stream: StreamOut,
        name: str,
        ident: str,
        given: Fields,
        fields: Fields,
        meta: Fields,
        turn: str | None,
        at: str | None,
    ) -> None:
        """A file that was edited or written; an edit keeps the whole content it met (`previous_content`)."""
        if KINDS.get(name) != "edit":
            return
        path = text_of(fields.get("file")) or text_of(fields.get("path"))
        path = path or text_of(given.get("file_path")) or text_of(given.get("path"))
        if path is None:
            return
        own: Fields = {}
        for key, value in meta.items():
            if key.startswith("mistralai.vibe.sdk."):
                own = fields_of(value)
        before = text_of(own.get("previous_content"))
        after = text_of(given.get("content"))
        change = "modify"
        if name in ("write_file", "write"):
            if fields.get("file_existed") is False or ("previous_content" in own and before is None):
                change = "create"
        elif before is not None:
            after = replaced(before, items_of(own.get("blocks")))
        else:
            after = None
        self._add(
            stream,
            FileChange(
                path=within(posixpath.normpath(path), _roots(self.state.cwd)),
                change=change,
                call_id=ident,
                before=_content(before),
                after=_content(after),
                applied=True,
                evidence="reported",
                native_id=ident,
                turn_id=turn,
                at=at,
            ),
        )


_UNDER_WAY = (None, "in_progress", "running", "queued")
_JOURNAL = {
    "projection_delta": "shown-before",
    "core_input": "said-by-the-journal-before",
    "action_intent": "intent-of-an-action",
    "action_result": "result-comes-again-with-its-time",
    "command_reserved": "command-shown-as-entry",
    "receipt_succeeded": "receipt",
}


class _Calls:
    """The calls of a history in their order, with what the model was told of each."""

    def __init__(self, told: list[Told], recorded: dict[str, int]) -> None:
        self.left: list[Fields] = []
        by_id: dict[str, Fields] = {}
        for one in told:
            for part in items_of(one.message.get("content")):
                fields = fields_of(part)
                ident = text_of(fields.get("id"))
                if fields.get("type") == "tool_call" and ident is not None:
                    given = fields_of(fields.get("arguments"))
                    call: Fields = {
                        "id": ident,
                        "name": fields.get("name"),
                        "arguments": given.get("value", given.get("raw")),
                        "text": None,
                        "said": _joined(items_of(one.message.get("content"))),
                    }
                    by_id[ident] = call
                    if ident not in recorded:
                        self.left.append(call)
            answered = by_id.get(text_of(one.message.get("tool_call_id")) or "")
            if answered is not None:
                answered["text"] = _joined(items_of(one.message.get("content")))

    def of(self, output: Fields) -> Fields | None:
        """The next call that was told what this effect gave; calls before it that ran nothing are passed."""
        for number, call in enumerate(self.left):
            if _agrees(text_of(call.get("text")), output):
                del self.left[: number + 1]
                return call
        return None


def _agrees(told: str | None, output: Fields) -> bool:
    if told is None:
        return False
    try:
        value = msgspec.json.decode(told)
    except msgspec.DecodeError:
        return told == _joined(items_of(output.get("content")))
    if value == output.get("structured_content"):
        return True
    error = fields_of(fields_of(fields_of(value).get("result")).get("error"))
    ours = fields_of(output.get("error"))
    return bool(error) and error.get("message") == ours.get("message")


def _chunks(part: Fields | None) -> list[str]:
    return [c for c in items_of(fields_of(part).get("chunks")) if isinstance(c, str)]


def _output(entry: Shown) -> Fields:
    return fields_of(fields_of(entry.state).get("output"))


def _action(entry: str) -> str | None:
    """The request an entry came from: `assistant-<action>`, `reasoning-<action>-<n>`."""
    if entry.startswith("assistant-"):
        return entry.removeprefix("assistant-")
    if entry.startswith("reasoning-"):
        return entry.removeprefix("reasoning-").rsplit("-", 1)[0]
    return None


def _joined(parts: list[Any]) -> str:
    return "\n".join(text for part in parts if (text := text_of(fields_of(part).get("text"))) is not None)


def _text(output: Fields, value: Any, error: Fields) -> str:
    """A result as the model is told it: its text, else its value written out."""
    words = _joined(items_of(output.get("content")))
    if words:
        return words
    if value is not None:
        return msgspec.json.encode(value, order="sorted").decode()
    return text_of(error.get("message")) or ""


def _blocks(parts: list[Any]) -> list[Block]:
    found: list[Block] = []
    for part in parts:
        fields = fields_of(part)
        text = text_of(fields.get("text"))
        if fields.get("type") == "text" and text is not None:
            found.append(Text(text=text))
        elif fields.get("type") == "reasoning":
            words = _joined(items_of(fields.get("content")))
            found.append(Thinking(text=words) if words else Thinking(redacted=True))
        else:
            found.append(Other(meta={"dev.mistral.vibe.part": part}))
    return found


def _roots(cwd: str | None) -> list[WorkspaceRoot] | None:
    return [WorkspaceRoot(id="r1", path=cwd)] if cwd else None


def _content(text: str | None) -> Content | None:
    if text is None:
        return None
    data = text.encode("utf-8", "surrogatepass")
    return Content(sha256=sha256(data), bytes=len(data))


def replaced(before: str, blocks: list[Any]) -> str | None:
    """Content after an edit's blocks, each with the lines it met (`old_lines` from `old_start_line`, 1 the first).

    None where a block does not stand where it says.
    """
    lines = before.split("\n")
    places: list[tuple[int, list[str], list[str]]] = []
    for one in blocks:
        block = fields_of(one)
        start = block.get("old_start_line")
        old = [str(x) for x in items_of(block.get("old_lines"))]
        new = [str(x) for x in items_of(block.get("new_lines"))]
        if not isinstance(start, int) or start < 1 or not old:
            return None
        places.append((start - 1, old, new))
    if not places:
        return None
    places.sort(key=lambda p: p[0], reverse=True)
    end = len(lines) + 1
    for start, old, new in places:
        met = lines[start : start + len(old)]
        if start + len(old) > end or len(met) != len(old):
            return None
        made = _spliced(met, old, new)
        if made is None:
            return None
        lines[start : start + len(old)] = made
        end = start
    return "\n".join(lines)


def _spliced(met: list[str], old: list[str], new: list[str]) -> list[str] | None:
    """Lines with the old text in them exchanged: the old text may start and end inside a line."""
    text, before, after = "\n".join(met), "\n".join(old), "\n".join(new)
    if text.count(before) != 1:
        return None
    return text.replace(before, after).split("\n")


RECORDER = VibeRecorder
