r"""Claude Desktop, local Code sessions and tasks (Cowork): a JSON document a session, beside what Claude Code writes.

Where, below the application's own folder (`~/Library/Application Support/Claude`, `~/.config/Claude`,
`AppData/Roaming/Claude`):

    claude-code-sessions/<account>/<organization>/local_<uuid>.json                        rewritten in place
    local-agent-mode-sessions/<organization>/<account>/[agent/]local_<uuid>.json           a task, likewise
    local-agent-mode-sessions/<organization>/<account>/[agent/]local_<uuid>/audit.jsonl    what its Claude Code streamed

From documents: a published document of it, its private parts taken out, and public descriptions of the folders. The lines of
`audit.jsonl` are those of `claude -p --output-format stream-json` (2.1.332, run here) with a time and a signature.

    {"sessionId":"local_3573…","cliSessionId":"a964…","cwd":"/…","originCwd":"/…","createdAt":1789439275817,
     "lastActivityAt":1789439309277,"lastFocusedAt":…,"model":"claude-opus-5","effort":"medium","isArchived":false,
     "title":"…","titleSource":"auto","permissionMode":"auto","enabledMcpTools":{…},"remoteMcpServersConfig":[…]}

    {"type":"system","subtype":"init","session_id":"a964…","cwd":"…","model":"…","tools":["Bash",…],"permissionMode":"default",
     "claude_code_version":"2.1.332","_audit_timestamp":"2026-11-30T11:19:00.081Z"}
    {"type":"user","message":{"role":"user","content":"…"},"parent_tool_use_id":null,"uuid":"d8a1…","session_id":"a964…",…}
    {"type":"assistant","message":{"id":"msg_1","model":"…","content":[{"type":"text","text":"…"}],"usage":{…}},"uuid":"9b28…",…}
    {"type":"result","subtype":"success","is_error":false,"total_cost_usd":0.0004,"usage":{…},"modelUsage":{…},"result":"…",…}

What is particular
    - A task's `audit.jsonl` repeats the file that Claude Code keeps in the task's own configuration folder. While that one is
      recorded nothing of this counts; where it is gone, this is what is known. The key of its signatures is not read.
    - What was said and done stands in Claude Code's file (`cliSessionId` is its id; its lines say `entrypoint:
      claude-desktop`): this stream is `secondary`, with a link `observes` to it.
    - Of connected servers only how many there are is kept: their configuration is a person's own, and may hold keys.
    - `lastActivityAt` and `lastFocusedAt` change all the time and tell of nothing that happened in the session.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Struct

from asrd.recorders.base import Recorder, StreamKey, StreamOut, from_ms
from asrd.records import (
    Block,
    Capture,
    Config,
    Evidence,
    Inference,
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
    Usage,
)
from asrd.sources import Line, Located, Place, Root, Row, Source


class Document(Struct):
    """What is read of the document."""

    sessionId: str
    cliSessionId: str | None = None
    cwd: str | None = None
    createdAt: float | None = None
    model: str | None = None
    effort: str | None = None
    title: str | None = None
    permissionMode: str | None = None
    isArchived: bool | None = None


class Told(Struct):
    """`message` of a line of the audit."""

    content: Any = None
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None


class Audited(Struct):
    """A line of `audit.jsonl`."""

    type: str
    subtype: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    parent_tool_use_id: str | None = None
    message: Told | None = None
    timestamp: str | None = None
    at: str | None = msgspec.field(name="_audit_timestamp", default=None)
    isReplay: bool | None = None
    isSynthetic: bool | None = None
    is_error: bool | None = None
    model: str | None = None
    cwd: str | None = None
    tools: list[str] | None = None
    permissionMode: str | None = None
    claude_code_version: str | None = None


class State(Struct):
    """All that is kept between items."""

    turn: str | None = None
    turns: int = 0
    prompts: list[str] = []
    """Ids of the last prompts: a replay repeats one."""
    counted: dict[str, str] = {}
    """Record of each of the last responses, by its id."""
    figures: dict[str, str] = {}
    """... and the figures it was told with."""
    open: list[str] = []
    """Calls without a result."""
    session: str = ""
    said: dict[str, str] = {}
    linked: str = ""


READ = frozenset(
    (
        "sessionId", "cliSessionId", "cwd", "originCwd", "createdAt", "lastActivityAt", "lastFocusedAt", "model", "effort",
        "isArchived", "title", "titleSource", "permissionMode", "enabledMcpTools", "remoteMcpServersConfig",
    )
)  # fmt: skip

_document = msgspec.json.Decoder(Document)
_audited = msgspec.json.Decoder(Audited)
RECENT = 256
"""Prompts, calls and responses that are kept, to know them where they come again."""
_any = msgspec.json.Decoder()


class ClaudeDesktopRecorder(Recorder):
    """What Claude Desktop keeps of a session that Claude Code runs. One group a document."""

    harness = "claude-desktop"
    secondary = True
    roots = (
        Root("Library/Application Support/Claude"),
        Root(".config/Claude"),
        Root("AppData/Roaming/Claude"),
    )
    places = (
        Place("claude-code-sessions/*/*/local_*.json", "document"),
        Place("local-agent-mode-sessions/*/*/local_*.json", "document"),
        Place("local-agent-mode-sessions/*/*/agent/local_*.json", "document"),
        Place("local-agent-mode-sessions/*/*/local_*/audit.jsonl"),
        Place("local-agent-mode-sessions/*/*/agent/local_*/audit.jsonl"),
    )
    versions = ()
    evidence = "documents"
    State = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """The account and organization are no part of a name: a session stays itself when it moves between them."""
        parts = path.split("/")
        if parts[-1] == "audit.jsonl":
            name = f"{parts[-2]}.json"
            beside = "/".join([*parts[:-2], name])
            return Located(group=name, name=f"{parts[0]}/{parts[-2]}/audit.jsonl", order="1", beside=beside)
        return Located(group=parts[-1], name=f"{parts[0]}/{parts[-1]}")

    @classmethod
    def claims(cls, head: bytes) -> bool:
        return (
            head.lstrip()[:1] == b"{"
            and b'"cliSessionId"' in head
            and b'"sessionId":"local_' in head.replace(b" ", b"")
        )

    def receive(self, source: Source, item: Line | Row) -> None:
        if isinstance(item, Line):
            self._audited(_audited.decode(item.data), item.data)
            return
        told = _document.decode(item.data)
        whole = cast("dict[str, Any]", _any.decode(item.data))
        state = self.state
        state.session = state.session or told.sessionId
        stream = self._open(told)
        self._observes(stream, told.cliSessionId, "cliSessionId")
        self._settings(stream, told, whole)
        if not self.out.noted():
            self.out.skip("nothing-new")

    def _observes(self, stream: StreamOut, session: str | None, field: str, at: str | None = None) -> None:
        """The session of Claude Code that this one is seen of, each time it is another."""
        if session and session != self.state.linked:
            self.state.linked = session
            target = LinkTarget(agent="claude-code", session_id=session)
            evidence = Evidence(kind="native-field", field=field, value=session)
            stream.add(Link(relation="observes", target=target, evidence=evidence, at=at))

    # the audit

    def _audited(self, told: Audited, data: bytes) -> None:
        """What Claude Code streamed to the application: the same as its file holds."""
        stream = self._open(None)
        self._observes(stream, told.session_id, "session_id", told.at or told.timestamp)
        match told.type, told.message:
            case "system", _ if told.subtype == "init":
                config = Config(
                    model=told.model,
                    cwd=told.cwd,
                    tools=told.tools,
                    mode=told.permissionMode,
                    version=told.claude_code_version,
                )
                self._add(told, config)
            case "user", Told() as message:
                self._from_user(told, message)
            case "assistant", Told() as message:
                self._response(told, message)
            case kind, _:
                self._add(told, Native(native_type=kind, data=_any.decode(data)))
                if kind == "result" and self.state.turn is not None:
                    failed = told.is_error or (told.subtype or "").startswith("error")
                    self._add(
                        told, Turn(turn_id=self.state.turn, phase="end", status="failed" if failed else "completed")
                    )
                    self.state.turn = None

    def _add(self, told: Audited, record: Record) -> str:
        record.at, record.native_id = told.at or told.timestamp, told.uuid
        record.turn_id = record.turn_id or self.state.turn
        return self._open(None).add(record)

    def _from_user(self, told: Audited, message: Told) -> None:
        state, agent = self.state, told.parent_tool_use_id is not None
        if told.isReplay and told.uuid in state.prompts:
            self.out.skip("prompt-replayed")
            return
        words: list[Block] = []
        for part in _parts(message.content):
            if part.get("type") != "tool_result":
                words.append(_block(part))
                continue
            ident = str(part.get("tool_use_id") or "")
            known = ident in state.open
            state.open = [one for one in state.open if one != ident]
            content = [_block(p) for p in _parts(part.get("content"))]
            self._add(
                told,
                ToolResult(
                    call_id=ident,
                    linkage="exact" if known else "none",
                    status="failed" if part.get("is_error") else "completed",
                    content=content or None,
                ),
            )
        if not words:
            return
        prompt = not agent and not told.isSynthetic
        if prompt:
            state.prompts = [*state.prompts[-RECENT:], told.uuid or ""]
            state.turns += 1
            state.turn = told.uuid or str(state.turns)
            self._add(told, Turn(turn_id=state.turn, phase="start", trigger="prompt"))
        author, origin = ("human", "prompt") if prompt else ("agent", "agent") if agent else ("harness", "injected")
        self._add(told, Message(role="user", author=author, origin=origin, content=words, meta=_below(told)))

    def _response(self, told: Audited, message: Told) -> None:
        """A part of a response: its figures are told with each part, and count once."""
        state, name = self.state, message.id or told.uuid or "0"
        figures = repr(message.usage)
        if state.figures.get(name) != figures:
            inference = Inference(
                inference_id=name,
                id_source=None if message.id else "derived",
                model=message.model,
                stop_reason=message.stop_reason,
                usage=_usage(message.usage),
                supersedes=state.counted.get(name),
                meta=_below(told),
            )
            state.counted[name], state.figures[name] = self._add(told, inference), figures
            for kept in (state.counted, state.figures):
                while len(kept) > RECENT:
                    kept.pop(next(iter(kept)))
        for part in _parts(message.content):
            if part.get("type") == "tool_use":
                ident, given = str(part.get("id") or ""), part.get("input")
                state.open = [*state.open[-RECENT:], ident]
                args = cast("dict[str, Any]", given) if isinstance(given, dict) else {"raw": given}
                call = ToolCall(call_id=ident, name=str(part.get("name") or ""), input=args, inference_id=name)
                call.meta = _below(told)
                self._add(told, call)
            else:
                said = Message(
                    role="assistant", author="agent", content=[_block(part)], inference_id=name, meta=_below(told)
                )
                self._add(told, said)

    def main(self) -> StreamOut:
        """The session's stream; named by its file when nothing was read."""
        return self._open(None)

    def _open(self, told: Document | None) -> StreamOut:
        self.state.session = self.state.session or self.group.removesuffix(".json")
        key = StreamKey(self.harness, self.state.session)
        found = self.out.stream(key)
        if found is not None:
            return found
        if told is not None:
            self.state.said = {"cwd": told.cwd or "", "title": told.title or ""}
        stream = self.open(
            key,
            started_at=from_ms(told.createdAt) if told else None,
            cwd=told.cwd if told else None,
            title=told.title if told else None,
        )
        reason = "what was said and done stands in Claude Code's file"
        state = "partial" if self.out.source_name.startswith("local-agent-mode-sessions/") else "unavailable"
        stream.add(Capture(profile="core", state=state, reason=reason))
        return stream

    def _settings(self, stream: StreamOut, told: Document, whole: dict[str, Any]) -> None:
        """What is other than it was."""
        said = self.state.said
        now = {
            "model": told.model, "effort": told.effort, "title": told.title, "mode": told.permissionMode, "cwd": told.cwd,
        }  # fmt: skip
        changed = {k: v for k, v in now.items() if v and said.get(k) != v}
        extra = {
            "archived": told.isArchived,
            "servers": len(cast("list[Any]", v))
            if isinstance(v := whole.get("remoteMcpServersConfig"), list)
            else None,
            "other": sorted(set(whole) - READ) or None,
        }
        more = {k: v for k, v in extra.items() if v is not None and said.get(k) != str(v)}
        if not changed and not more:
            return
        said.update(changed)
        said.update({k: str(v) for k, v in more.items()})
        stream.add(
            Config(
                model=changed.get("model"),
                effort=changed.get("effort"),
                title=changed.get("title"),
                mode=changed.get("mode"),
                cwd=changed.get("cwd"),
                meta={"dev.asrd.desktop": more} if more else None,
            )
        )


# ---------------------------------------------------------------- how it says things


def _parts(content: Any) -> list[dict[str, Any]]:
    """The parts of a content, which may be text alone."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    found: list[Any] = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("dict[str, Any]", part) for part in found if isinstance(part, dict)]


def _block(part: dict[str, Any]) -> Block:
    text, thought = part.get("text"), part.get("thinking")
    if part.get("type") == "text" and isinstance(text, str):
        return Text(text=text)
    if part.get("type") == "thinking" and isinstance(thought, str):
        return Thinking(text=thought) if thought else Thinking(redacted=True)
    return Other(meta={"dev.asrd.block": part})


def _usage(told: dict[str, Any] | None) -> Usage | None:
    """Figures as the API gives them: `input_tokens` excludes cached ones."""
    if not told:
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    figures = [n if isinstance(n := told.get(name), int) else None for name in names]
    return Usage(input=figures[0], output=figures[1], cache_read=figures[2], cache_write=figures[3])


def _below(told: Audited) -> dict[str, Any] | None:
    """The call whose sub-agent a line is of."""
    return {"dev.asrd.parentToolUse": told.parent_tool_use_id} if told.parent_tool_use_id else None


RECORDER = ClaudeDesktopRecorder
