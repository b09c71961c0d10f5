r"""DeepSeek Harness (`dsh`): one JSONL event log a session, compressed, with a projection of it in a JSON cache.

Where, below `~/.dsh` (or DSH_HOME):

    sessions/<project key>/<session id>/session.v4.jsonl.zstd      the log: Zstandard frames one behind the other, or plain
    storages/session_projcache/sessions/<session id>.json          what DSH counts of it, rewritten in place

From documents: the public descriptions of 0.2.0-rc.2 (format 4), and lines of a published session. No file of ours was ever
seen.

    {"type":"session","version":4,"id":"session-b8e2…","createdAt":1790730554677,"cwd":"/…/workspace","isSeeded":false,
      "delegationDepth":0}
    {"type":"agent/inbox/spliced","seq":3,"time":1790730554686,"data":{"inserted":[{…the prompt…}],"target":"next-turn"}}
    {"type":"turn/start","seq":4,"time":…,"data":{"turn":1}}
    {"type":"user/message","seq":8,"time":…,"surfaceOp":"append","data":{"id":"2119…","role":"user","content":[{"type":"text",
      "text":"…"}],"source":{"kind":"user"}}}
    {"type":"assistant/message","seq":63,"time":…,"data":{"message":{"id":"20788a59-…","role":"assistant","content":[
      {"type":"reasoning",…},{"type":"text",…},{"type":"tool-call","id":"call_00_…","name":"edit","arguments":"{…}"}],
      "source":{"kind":"model","model":"deepseek-flash","provider":"deepseek-official"}},"stream":[…],"step":1,"turn":2,
      "usage":{"inputTokens":247,"outputTokens":373,"cacheReadTokens":12288,"cacheWriteTokens":0,"totalTokens":12908}}}
    {"type":"tool/call","seq":64,"time":…,"data":{"callId":"call_00_…","name":"edit","arguments":"{…}","step":1,"turn":2}}
    {"type":"tool/result","seq":65,"time":…,"data":{"message":{"content":[…],"isError":true,"toolCallId":"call_00_…"},
      "error":{"code":"FS_NOT_OBSERVED","name":"FsError"},"step":1,"turn":2}}
    a read's result   "meta":{"lang":"py","lines":[{"number":1,"text":"def …"},…],"offset":1,"path":"/…","totalLines":5}
    an edit's result  "meta":{"diffs":[{"oldText":"…","newText":"…","path":"…"}]}
    {"type":"turn/end","seq":97,"time":…,"data":{"turn":2,"reason":{"kind":"completed"}}}

What is particular
    - A prompt stands in the inbox and again as `user/message`; a call in the response and again as `tool/call`; every word
      of a response again in its `stream`: each is recorded once. `source.kind` other than `user` is no prompt.
    - `inputTokens` excludes cached tokens; reasoning tokens are not told apart.
    - A command that failed ends in a line `[exit code: N]`; a result that is no error and has none ended with 0, unless it
      runs on in the background.
    - A read does not say whether the file's last line ends in a newline (a file that does and one that does not are shown
      alike): an edit settles it where its old text fits only one of the two; else contents before and after stay unknown.
    - A fork (`isSeeded`, `parentSession`) begins with its parent's events, up to `session/end-seed`: copies, which never
      count. A sub-agent says `origin: subagent` and names its parent the same way.
    - A log of format 3 that a newer DSH opened stands beside its format 4: what was read of one is not read of the other.
"""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec
from msgspec import Struct

from asrd.recorders._observed import Contents, absolute, commits, content_of, replaced
from asrd.recorders.base import Recorder, StreamKey, StreamOut, fields_of, from_ms, within
from asrd.records import (
    Block,
    Capture,
    Config,
    CopyOf,
    Error,
    Evidence,
    Exec,
    FileChange,
    Inference,
    Lineage,
    LineageParent,
    Message,
    Native,
    Other,
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
from asrd.records import Place as FilePlace
from asrd.sources import Line, Located, Place, Root, Row, Source

# ---------------------------------------------------------------- native structs


class Header(Struct):
    """The first line."""

    id: str
    version: int | None = None
    createdAt: float | None = None
    cwd: str | None = None
    isSeeded: bool | None = None
    parentSession: str | None = None
    origin: Any = None
    delegationDepth: int | None = None


class Event(Struct):
    """Every other line."""

    type: str
    data: dict[str, Any] = {}
    seq: int | None = None
    time: float | None = None


class Kind(Struct):
    """What a line is."""

    type: str = ""


class Origin(Struct):
    """`source` of a message."""

    kind: str | None = None
    model: str | None = None
    provider: str | None = None


class Said(Struct):
    """A message."""

    content: list[dict[str, Any]] = []
    id: str | None = None
    source: Origin = msgspec.field(default_factory=Origin)
    isError: bool | None = None
    toolCallId: str | None = None


class Tokens(Struct):
    inputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadTokens: int | None = None
    cacheWriteTokens: int | None = None
    reasoningTokens: int | None = None
    totalTokens: int | None = None


class Response(Struct):
    """`data` of `assistant/message` and `assistant/attempt`."""

    message: Said = msgspec.field(default_factory=Said)
    turn: int | None = None
    step: int | None = None
    usage: Tokens | None = None
    stream: Any = None
    error: Any = None


class CallData(Struct):
    callId: str
    name: str
    arguments: Any = None
    turn: int | None = None


class ResultData(Struct):
    message: Said
    error: Any = None
    meta: Any = None
    turn: int | None = None


class Ended(Struct):
    turn: int
    reason: Any = None


class Totals(Struct):
    uncachedInputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadTokens: int | None = None
    cacheWriteTokens: int | None = None


_kind = msgspec.json.Decoder(Kind)
_header = msgspec.json.Decoder(Header)
_event = msgspec.json.Decoder(Event)
_any = msgspec.json.Decoder()

# ---------------------------------------------------------------- state


class Called(Struct):
    """A call without a result yet."""

    name: str
    input: dict[str, Any]


class State(Struct):
    """All that is kept between items."""

    session: str = ""
    cwd: str | None = None
    parent: str | None = None
    copying: bool = False
    turn: str | None = None
    queued: str | None = None
    """Who put the last message into the inbox."""
    calls: dict[str, Called] = {}
    asked: list[str] = []
    """Ids of the last calls that were recorded."""
    model: str | None = None
    effort: str | None = None
    seen: dict[str, int] = {}
    """The largest `seq` read, by source."""
    totals: str = ""
    total_record: str = ""
    files: Contents = msgspec.field(default_factory=Contents)
    unsettled: list[str] = []
    """Files whose content is known but for the newline at its end: the one with it is kept."""


KEEP = 1024
"""Ids of calls that are kept, to know a call that comes again."""

TOOLS = {
    "bash": "execute", "read": "read", "edit": "edit", "write": "edit", "grep": "search", "glob": "search", "ls": "search",
    "web_fetch": "fetch", "web_search": "fetch", "todo": "plan", "create_goal": "plan", "subagent": "delegate",
}  # fmt: skip

ENDS = {
    "completed": "completed", "aborted": "interrupted", "cancelled": "interrupted", "interrupted": "interrupted",
    "error": "failed", "failed": "failed",
}  # fmt: skip

_EXIT = re.compile(r"(?m)^\[exit code: (-?\d+)\][ \t]*$")

SKIPS = {
    "step/start": "step-boundary", "step/end": "step-boundary", "session/end-seed": "end-of-seed",
    "session-log-deepseek/delivery-accepted": "delivery-accepted", "agent/inbox/spliced": "inbox",
}  # fmt: skip

# ---------------------------------------------------------------- the recorder


class DeepSeekRecorder(Recorder):
    """Events of DSH as records. One group a session: its log, and what the cache counts of it."""

    harness = "deepseek"
    roots = (Root(".dsh", env=("DSH_HOME",)),)
    places = (
        Place("sessions/*/*/session.v*.jsonl"),
        Place("sessions/*/*/session.v*.jsonl.zstd"),
        Place("storages/session_projcache/sessions/*.json", "document"),
    )
    versions = ()
    evidence = "documents"
    State = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """The log of a session and its cache are one group; compression is no part of a name."""
        parts = path.split("/")
        if parts[0] == "storages":
            return Located(group=parts[-1].removesuffix(".json"), name=path, order="2")
        name = path.removesuffix(".zstd")
        group = parts[-2] if len(parts) > 1 else path
        return Located(group=group, name=name, order="1" + parts[-1].split(".jsonl")[0].rjust(16))

    @classmethod
    def claims(cls, head: bytes) -> bool:
        first = head.split(b"\n", 1)[0]
        return b'"session"' in first and b'"isSeeded"' in first and b'"createdAt"' in first

    def receive(self, source: Source, item: Line | Row) -> None:
        if isinstance(item, Row):
            self._cache(item)
            return
        kind = _kind.decode(item.data).type
        if kind == "session":
            self._begin(_header.decode(item.data))
            return
        event = _event.decode(item.data)
        if self._restated(source, event):
            self.out.skip("migrated-copy")
            return
        at = from_ms(event.time)
        match event.type:
            case "turn/start":
                self._turn(event, at)
            case "turn/end":
                self._ended(event, at)
            case "user/message" | "developer/message" | "system/message":
                self._said(event, at)
            case "assistant/message" | "assistant/attempt":
                self._response(event, at)
            case "tool/call":
                self._call(event, at)
            case "tool/result":
                self._result(event, at)
            case "request/header":
                self._request(event, at)
            case "permission/preset" | "sandbox/mode" | "approval/policy" | "session/title":
                self._config(event, at)
            case "session/title-llm-request":
                ident = f"title-{event.seq}"
                told = Inference(inference_id=ident, id_source="derived", meta={"dev.asrd.purpose": "title"})
                self.add(told, at)
            case _ if event.type in SKIPS:
                self._passed(event)
            case _:
                native = Native(native_type=event.type, data=event.data)
                self.add(native, at)
        self._read(source, event)

    def main(self) -> StreamOut:
        """The session's stream; opened by its folder's name when no header was read."""
        if not self.state.session:
            self.state.session = self.group
        return self._open(Lineage())

    # the session

    def _open(self, lineage: Lineage, header: Header | None = None) -> StreamOut:
        key = StreamKey(self.harness, self.state.session)
        found = self.out.stream(key)
        if found is not None:
            return found
        stream = self.open(
            key,
            started_at=from_ms(header.createdAt) if header else None,
            cwd=self.state.cwd,
            lineage=lineage,
            meta={"dev.asrd.format": header.version} if header and header.version is not None else None,
        )
        stream.add(
            Capture(
                profile="usage", facet="usage.reasoning", state="unavailable", reason="no figure of its own in the log"
            )
        )
        stream.add(
            Capture(
                profile="coding",
                facet="file_change.before",
                state="partial",
                reason="a read does not say whether a newline ends the file",
            )
        )
        return stream

    def _begin(self, header: Header) -> None:
        state = self.state
        if state.session:
            if header.id == state.session:
                self.out.skip("header-again")
            return
        state.session, state.cwd, state.parent = header.id, header.cwd, header.parentSession
        state.copying = bool(header.isSeeded and header.parentSession)
        lineage = Lineage()
        if header.parentSession:
            spawned = header.origin == "subagent" or bool(header.delegationDepth)
            lineage = Lineage(
                root=False,
                parent=LineageParent(agent=self.harness, session_id=header.parentSession),
                relation="spawned_by" if spawned else "forked_from",
                evidence=Evidence(kind="native-field", field="parentSession", value=header.parentSession),
            )
        elif header.isSeeded is False and not header.delegationDepth:
            lineage = Lineage(root=True)
        self._open(lineage, header)

    def _restated(self, source: Source, event: Event) -> bool:
        """Whether another log of this session, of another format, told this event already."""
        others = [last for name, last in self.state.seen.items() if name != source.name]
        return event.seq is not None and bool(others) and event.seq <= max(others)

    def _read(self, source: Source, event: Event) -> None:
        if event.seq is not None:
            self.state.seen[source.name] = max(event.seq, self.state.seen.get(source.name, -1))

    def add(self, record: Record, at: str | None, native_id: str | None = None, turn: int | None = None) -> str:
        state = self.state
        record.at = at
        record.native_id = native_id
        if not isinstance(record, Turn):
            record.turn_id = str(turn) if turn is not None else state.turn
        if state.copying and state.parent:
            record.copy_of = CopyOf(session_id=state.parent, native_id=native_id)
        return self.main().add(record)

    def _roots(self) -> list[WorkspaceRoot] | None:
        return [WorkspaceRoot(id="r1", path=self.state.cwd)] if self.state.cwd else None

    # turns and messages

    def _passed(self, event: Event) -> None:
        """An event that says nothing, or what another one says."""
        if event.type == "session/end-seed":
            self.state.copying = False
        for one in _objects(event.data.get("inserted")):
            kind = fields_of(one.get("source")).get("kind")
            self.state.queued = kind if isinstance(kind, str) else None
        self.out.skip(SKIPS[event.type])

    def _turn(self, event: Event, at: str | None) -> None:
        number = msgspec.convert(event.data, Ended).turn
        trigger = {"user": "prompt", "subagent-settled": "agent", "team-message": "agent"}.get(self.state.queued or "")
        self.state.turn, self.state.queued = str(number), None
        self.add(Turn(turn_id=str(number), phase="start", trigger=trigger), at)

    def _ended(self, event: Event, at: str | None) -> None:
        ended = msgspec.convert(event.data, Ended)
        reason = fields_of(ended.reason)
        kind = reason.get("kind")
        status = ENDS.get(kind) if isinstance(kind, str) else None
        meta = {"dev.asrd.reason": ended.reason} if status is None and ended.reason is not None else None
        self.add(
            Turn(turn_id=str(ended.turn), phase="end", status=status, error=_error(reason.get("error")), meta=meta), at
        )
        self.state.turn = None

    def _said(self, event: Event, at: str | None) -> None:
        given = event.data.get("message") if event.type == "system/message" else event.data
        said = msgspec.convert(given if given is not None else event.data, Said)
        kind = said.source.kind
        role = event.type.split("/")[0]
        author, origin, audience = "harness", "injected", "model"
        if role == "user" and kind == "user":
            author, origin, audience = "human", "prompt", None
        elif kind in ("subagent-settled", "team-message"):
            author, origin, audience = "agent", "agent", "model"
        meta = {"dev.asrd.saidBy": kind} if kind and origin != "prompt" else None
        message = Message(
            role=role,
            author=author,
            origin=origin,
            audience=audience,
            message_id=said.id,
            content=_blocks(said),
            meta=meta,
        )
        self.add(message, at, said.id)

    def _response(self, event: Event, at: str | None) -> None:
        told = msgspec.convert(event.data, Response)
        said, state = told.message, self.state
        ident = said.id or f"{event.type}-{event.seq}"
        state.model = said.source.model or state.model
        usage = told.usage
        inference = Inference(
            inference_id=ident,
            id_source=None if said.id else "derived",
            model=said.source.model,
            provider=said.source.provider,
            effort=state.effort,
            stop_reason=_finish(told.stream),
            error=_error(told.error),
            usage=None
            if usage is None
            else Usage(
                input=usage.inputTokens,
                output=usage.outputTokens,
                cache_read=usage.cacheReadTokens,
                cache_write=usage.cacheWriteTokens,
                reasoning=usage.reasoningTokens,
                total=usage.totalTokens,
            ),
        )
        self.add(inference, at, said.id, told.turn)
        content = _blocks(said)
        if content:
            message = Message(role="assistant", author="agent", message_id=said.id, inference_id=ident, content=content)
            self.add(message, at, said.id, told.turn)
        for block in said.content:
            called, name = block.get("id"), block.get("name")
            if block.get("type") == "tool-call" and isinstance(called, str) and isinstance(name, str):
                self._called(called, name, block.get("arguments"), ident, at, told.turn)

    def _request(self, event: Event, at: str | None) -> None:
        """What a request asks for: said when it is another than before."""
        config = fields_of(fields_of(event.data.get("header")).get("config"))
        model, effort = config.get("model"), config.get("reasoningEffort")
        state = self.state
        changed = Config(
            model=model if isinstance(model, str) and model != state.model else None,
            effort=effort if isinstance(effort, str) and effort != state.effort else None,
        )
        state.model, state.effort = changed.model or state.model, changed.effort or state.effort
        if changed.model or changed.effort:
            self.add(changed, at)
        else:
            self.out.skip("request-header")

    def _config(self, event: Event, at: str | None) -> None:
        data = event.data
        title, preset = data.get("title"), data.get("preset")
        self.add(
            Config(
                title=title if event.type == "session/title" and isinstance(title, str) else None,
                mode=preset if event.type == "permission/preset" and isinstance(preset, str) else None,
                meta={"dev.asrd.dsh": {event.type: data}},
            ),
            at,
        )

    # tools

    def _called(
        self, ident: str, name: str, given: Any, inference: str | None, at: str | None, turn: int | None
    ) -> None:
        state = self.state
        if ident in state.asked:
            return
        state.asked = [*state.asked[-KEEP + 1 :], ident]
        args = _arguments(given)
        state.calls[ident] = Called(name, args)
        call = ToolCall(call_id=ident, name=name, kind=TOOLS.get(name, "other"), input=args, inference_id=inference)
        self.add(call, at, ident, turn)

    def _call(self, event: Event, at: str | None) -> None:
        told = msgspec.convert(event.data, CallData)
        if told.callId in self.state.asked:
            self.out.skip("call-restated")
            return
        self._called(told.callId, told.name, told.arguments, None, at, told.turn)

    def _result(self, event: Event, at: str | None) -> None:
        told = msgspec.convert(event.data, ResultData)
        said = told.message
        ident = said.toolCallId or ""
        called = self.state.calls.pop(ident, None)
        text = "".join(b.text for b in _blocks(said) if isinstance(b, Text))
        status = "unknown" if said.isError is None else "failed" if said.isError else "completed"
        meta: dict[str, Any] = {}
        if told.error is not None:
            meta["dev.asrd.error"] = told.error
        self.add(
            ToolResult(
                call_id=ident,
                linkage="exact" if ident and ident in self.state.asked else "none",
                status=status,
                content=_blocks(said) or None,
                exec=self._exec(called, text, said.isError),
                meta=meta or None,
            ),
            at,
            said.id,
            told.turn,
        )
        if called is not None:
            self._effects(ident, called, text, said.isError, told, at)

    def _exec(self, called: Called | None, text: str, failed: bool | None) -> Exec | None:
        if called is None or called.name != "bash":
            return None
        command, workdir = called.input.get("command"), called.input.get("workdir")
        ran = Exec(command=command if isinstance(command, str) else None)
        if isinstance(workdir, str):
            ran.cwd = within(workdir, self._roots())
        elif self.state.cwd:
            ran.cwd = FilePlace(path=".", root="r1")
        if found := _EXIT.findall(text):
            ran.exit_code = int(found[-1])
        elif failed is False and not called.input.get("run_in_background"):
            ran.exit_code = 0
        return ran

    def _effects(
        self, ident: str, called: Called, text: str, failed: bool | None, told: ResultData, at: str | None
    ) -> None:
        """Commits a command showed, and what an edit made of a file."""
        state, path = self.state, called.input.get("file_path")
        if called.name == "bash":
            state.files.doubt()
            command = called.input.get("command")
            for commit in commits(command if isinstance(command, str) else None, text):
                self.add(VcsAction(action="commit", commit=commit, evidence="observed", call_id=ident), at)
        if failed is not False or not isinstance(path, str):
            return
        key = absolute(state.cwd, path)
        if called.name == "read":
            self._was_read(key, told.meta)
        if called.name not in ("edit", "write"):
            return
        known = state.files.get(key)
        texts = [known.text] if known is not None and not known.doubtful and known.text is not None else []
        if texts and key in state.unsettled:
            texts.append(texts[0].removesuffix("\n"))
        whole = called.input.get("content")
        made = [(t, whole if called.name == "write" else _edited(t, called.input)) for t in texts]
        fit = [(before, after) for before, after in made if isinstance(after, str)]
        before, after = fit[0] if len(fit) == 1 else (None, None)
        if called.name == "write":
            after = whole if isinstance(whole, str) else None
        meta = {"dev.asrd.diffs": diffs} if (diffs := fields_of(told.meta).get("diffs")) else None
        self.add(
            FileChange(
                path=within(path, self._roots()),
                change="modify",
                call_id=ident,
                before=content_of(before) if before is not None else None,
                after=content_of(after) if after is not None else None,
                applied=True,
                evidence="reported",
                meta=meta,
            ),
            at,
        )
        if after is not None:
            self._is(key, after)
        elif len(fit) == 2 and fit[1][1] == fit[0][1].removesuffix("\n"):
            self._is(key, fit[0][1], settled=False)
        else:
            state.files.forget(key)

    def _is(self, key: str, text: str, *, settled: bool = True) -> None:
        """A file's content is known; `settled`: also whether a newline ends it."""
        state = self.state
        state.files.is_(key, text)
        state.unsettled = [k for k in state.unsettled if k != key and k in state.files.files]
        if not settled:
            state.unsettled.append(key)

    def _was_read(self, key: str, meta: Any) -> None:
        """What a read showed, where it showed the whole file."""
        shown = fields_of(meta)
        lines = [line.get("text") for line in _objects(shown.get("lines"))]
        if shown.get("offset") != 1 or shown.get("totalLines") != len(lines) or not lines:
            return
        if all(isinstance(line, str) for line in lines):
            self._is(key, "".join(f"{line}\n" for line in lines), settled=False)

    # the cache

    def _cache(self, item: Row) -> None:
        """The session's totals as DSH counts them; all else in the cache is derived from the log."""
        record = fields_of(fields_of(_any.decode(item.data)).get("record"))
        found = fields_of(fields_of(fields_of(record.get("rows")).get("tokenUsage")).get("val")).get("totals")
        if found is None:
            self.out.skip("projection-cache")
            return
        totals = msgspec.convert(found, Totals)
        told = msgspec.json.encode(totals).decode()
        if told == self.state.totals:
            self.out.skip("projection-cache")
            return
        total = UsageTotal(
            scope="session",
            cumulative=True,
            supersedes=self.state.total_record or None,
            usage=Usage(
                input=totals.uncachedInputTokens,
                output=totals.outputTokens,
                cache_read=totals.cacheReadTokens,
                cache_write=totals.cacheWriteTokens,
            ),
        )
        self.state.totals = told
        self.state.total_record = self.main().add(total)


# ---------------------------------------------------------------- how it says things


def _objects(value: Any) -> list[dict[str, Any]]:
    return [fields_of(v) for v in cast("list[Any]", value)] if isinstance(value, list) else []


def _blocks(said: Said) -> list[Block]:
    """What was said; calls stand for themselves, and thinking without a word is none."""
    found: list[Block] = []
    for block in said.content:
        kind, text = block.get("type"), block.get("text")
        if kind in ("text", "reasoning") and isinstance(text, str):
            if text:
                found.append(Text(text=text) if kind == "text" else Thinking(text=text))
        elif kind != "tool-call":
            found.append(Other(meta={"dev.asrd.block": block}))
    return found


def _arguments(given: Any) -> dict[str, Any]:
    """Arguments are JSON in text; what is no object is kept as it stands."""
    value: Any = given
    if isinstance(given, str):
        try:
            value = msgspec.json.decode(given) if given else None
        except msgspec.DecodeError:
            value: Any = given
    if value is None:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"raw": value}


def _finish(stream: Any) -> str | None:
    """Why the response ended, as the last of its `finish` chunks says."""
    for one in reversed(_objects(stream)):
        chunk = fields_of(one.get("chunk"))
        if chunk.get("type") == "finish":
            kind = fields_of(chunk.get("reason")).get("kind")
            return kind if isinstance(kind, str) else None
    return None


def _error(value: Any) -> Error | None:
    if isinstance(value, str):
        return Error(message=value)
    fields = fields_of(value)
    code, message = fields.get("code"), fields.get("message")
    if not fields:
        return None
    return Error(code=code if isinstance(code, str) else None, message=message if isinstance(message, str) else None)


def _edited(text: str, args: dict[str, Any]) -> str | None:
    old, new, every = args.get("old_string"), args.get("new_string"), args.get("replace_all")
    if not isinstance(old, str) or not isinstance(new, str):
        return None
    return replaced(text, [(old, new, bool(every))])


RECORDER = DeepSeekRecorder
