"""Gemini CLI (npm `@google/gemini-cli`): a file a session, which states messages again when they grow.

Where: `~/.gemini/tmp/<project>/chats/session-<minute>-<first 8 of the session id>.jsonl`, and the sub-agents' of a session in
`chats/<its id>/<their id>.jsonl`; GEMINI_CLI_HOME moves the home folder. `<project>` was the SHA-256 of the folder before it
was a name. Seen: 0.61.0; before that one JSON document a session, `session-….json`, rewritten at each change.

    {"sessionId":"eb75…","projectHash":"7438…","startTime":"2026-11-30T05:01:08.900Z","lastUpdated":"…","kind":"main"}
    {"$set":{"messages":[{"id":"d049…","timestamp":"…","type":"user","content":[{"text":"<session_context>…"}]}],"lastUpdated":"…"}}
    {"id":"ca86…","timestamp":"…","type":"user","content":[{"text":"…"}]}
    {"id":"2e9f…","timestamp":"…","type":"gemini","content":"…","thoughts":[{"subject":"","description":"…","timestamp":"…"}],
      "tokens":{"input":11001,"output":104,"cached":5503,"thoughts":11,"tool":0,"total":11116},"model":"gemini-2.5-pro"}
    {"id":"2e9f…",… the same again, with "toolCalls":[{"id":"run_shell_command__call_1","name":"run_shell_command","args":{…},
      "result":[{"functionResponse":{"response":{"output":"… Exit Code: 101 …"}}}],"status":"success","resultDisplay":"…"}]}
    {"id":"f89a…","timestamp":"…","type":"user","content":[{"functionResponse":{…}}]}
    {"$set":{"lastUpdated":"…"}}      {"$set":{"summary":"…"}}      {"$rewindTo":"<message id>"}
    {"id":"…","type":"info","content":"…"}      (also "error", "warning")

What is particular
    - A message is stated again under its id when it gets tool calls: what is new in it is recorded, its tokens once.
    - A resume writes another header and sets `messages` to a list without tokens, thoughts and calls; that takes nothing
      back. A list with a `<state_snapshot>` in it is a compaction.
    - Resumed in a later minute, a session has two files: they go by the session id.
    - Over ACP one extra message without tokens collects the calls of all responses.
    - `input` includes cached tokens, `output` excludes thoughts. There are no cache writes, and no ends of turns.
    - Exit codes are text, and only failures have one: a command that succeeded, not in the background, ended with 0.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Union, cast

import msgspec
from msgspec import Raw, Struct

from asrd.recorders._observed import commits, content_of
from asrd.recorders.base import Recorder, StreamKey, StreamOut, fields_of, sha256, within
from asrd.records import (
    Block,
    Capture,
    Compaction,
    Config,
    Content,
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
    VcsAction,
    Workspace,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, Source

# ---------------------------------------------------------------- native records


class Thought(Struct):
    subject: str | None = None
    description: str | None = None


class Tokens(Struct, frozen=True):
    """Figures of one response: `input` includes `cached`; `output` excludes `thoughts`; `tool` are prompt tokens of tools."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    thoughts: int | None = None
    tool: int | None = None
    total: int | None = None


NativeContent = Union[str, list[Any], dict[str, Any], None]


class NativeCall(Struct):
    id: str
    name: str
    args: Any = None
    result: Any = None
    status: str | None = None
    timestamp: str | None = None
    agentId: str | None = None
    resultDisplay: Any = None
    description: str | None = None


class NativeMessage(Struct):
    id: str
    type: str
    timestamp: str | None = None
    content: NativeContent = None
    displayContent: NativeContent = None
    thoughts: list[Thought] | None = None
    tokens: Tokens | None = None
    model: str | None = None
    toolCalls: list[NativeCall] | None = None


class Patch(Struct):
    """`$set`: what the session is from now on."""

    messages: list[NativeMessage] | None = None
    lastUpdated: str | None = None
    sessionId: str | None = None
    summary: str | None = None
    directories: list[str] | None = None
    memoryScratchpad: Any = None


class Conversation(Struct):
    """A header, or in the older form the whole document."""

    sessionId: str
    projectHash: str | None = None
    startTime: str | None = None
    lastUpdated: str | None = None
    kind: str | None = None
    directories: list[str] | None = None
    summary: str | None = None
    messages: list[NativeMessage] | None = None


class Probe(Struct):
    """What tells the forms of a line apart."""

    id: str | None = None
    type: str | None = None
    sessionId: str | None = None
    patch: Raw = msgspec.field(name="$set", default=Raw())
    rewind: str | None = msgspec.field(name="$rewindTo", default=None)


class FileDiff(Struct):
    """What an edit shows: whole contents before (null: there was no file) and after."""

    filePath: str | None = None
    fileName: str | None = None
    fileDiff: str | None = None
    originalContent: str | None = None
    newContent: str | None = None
    isNewFile: bool | None = None


_probe = msgspec.json.Decoder(Probe)
_message = msgspec.json.Decoder(NativeMessage)
_patch = msgspec.json.Decoder(Patch)
_conversation = msgspec.json.Decoder(Conversation)
_object = msgspec.json.Decoder(dict[str, Any])

KINDS = {
    "read_file": "read", "read_many_files": "read", "list_directory": "read", "glob": "search", "grep_search": "search",
    "search_file_content": "search", "replace": "edit", "write_file": "edit", "run_shell_command": "execute",
    "google_web_search": "search", "web_fetch": "fetch", "invoke_agent": "delegate", "delegate_to_agent": "delegate",
    "write_todos": "plan", "save_memory": "other",
}  # fmt: skip
_TYPED = re.compile(
    r"I ran the following shell command:\n```sh\n(.*?)\n```\n\nThis produced the following result:\n```\n(.*)\n```",
    re.S,
)
"""How a command that the person ran is told to the model (`shellCommandProcessor.ts`, 0.61.0)."""
_TYPED_EXIT = re.compile(r"Command exited with code (\d+)\.")
_TYPED_SIGNAL = re.compile(r"Command terminated by signal: (\w+)\.")
LOOP = "System: Potential loop detected. Details: "
"""How words begin that Gemini CLI puts to the model when it goes in circles (0.61.0), under the last prompt's display."""
NOTICES = ("info", "error", "warning")
"""Types of messages that are for the person at the terminal."""
DONE = {"success": "completed", "error": "failed", "cancelled": "cancelled"}
"""States of a call that has ended; the others are on the way to one."""

_MAIN = re.compile(r"tmp/([^/]+)/chats/(session-.+-([0-9a-f]{8}))\.(jsonl?)$")
_SUB = re.compile(r"tmp/([^/]+)/chats/([0-9a-f]{8}[0-9a-f-]*)/([^/]+)\.(jsonl?)$")
_LOOSE = re.compile(r"tmp/([^/]+)/chats/([^/]+)\.(jsonl?)$")
_EXIT = re.compile(r"(?m)^Exit Code: (-?\d+)\s*$")
_SIGNAL = re.compile(r"(?m)^Signal: (?!\(none\))(\S+)\s*$")
_OUTPUT = re.compile(r"(?m)^Output: ")
_DENIED = re.compile(r"(?i)user did not allow|denied by policy|user denied|not allowed by")
_FOLDERS = re.compile(r"(?m)^- \*\*Workspace Directories:\*\*\n((?:  - .+\n?)+)")


# ---------------------------------------------------------------- state


class Seen(Struct):
    """What of a message was recorded."""

    text: str | None = None
    """Digest of what it said."""
    tokens: Tokens | None = None
    message: str | None = None
    inference: str | None = None
    last: str | None = None
    """Digest of the last statement of it, to know repeats by."""


class SessionState(Struct):
    """What is kept of one session between its lines."""

    key: StreamKey
    sub: bool = False
    cwd: str | None = None
    root: str | None = None
    turn: str | None = None
    seen: dict[str, Seen] = {}
    calls: dict[str, bool] = {}
    """Calls by id, and whether their result was recorded."""
    response: str | None = None
    summary: str | None = None


class State(Struct):
    """What is kept of a group: its sessions by id, and which one each source is in."""

    sessions: dict[str, SessionState] = {}
    at: dict[str, str] = {}
    spawned: dict[str, tuple[str, str]] = {}
    """Session and call that started a sub-agent."""


# ---------------------------------------------------------------- the recorder


class GeminiRecorder(Recorder):
    harness: ClassVar[str] = "gemini"
    roots: ClassVar[tuple[Root, ...]] = (Root(".gemini", env=("GEMINI_CLI_HOME",), below=".gemini"),)
    places: ClassVar[tuple[Place, ...]] = (
        Place("tmp/*/chats/*.jsonl"),
        Place("tmp/*/chats/*.json", "document"),
        Place("tmp/*/chats/*/*.jsonl"),
        Place("tmp/*/chats/*/*.json", "document"),
    )
    versions: ClassVar[tuple[str, ...]] = ("0.61.0",)
    State: ClassVar[type[Struct]] = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        if m := _MAIN.match(path):
            form = "0" if m[4] == "json" else "1"
            return Located(f"chats/{m[3]}", f"{m[1]}/{m[2]}.{m[4]}", f"0{m[2]}{form}")
        if m := _SUB.match(path):
            return Located(f"chats/{m[2][:8]}", f"{m[1]}/{m[2]}/{m[3]}.{m[4]}", f"1{m[3]}")
        if m := _LOOSE.match(path):
            return Located(f"chats/{m[1]}/{m[2]}", f"{m[1]}/{m[2]}.{m[3]}")
        return None

    @classmethod
    def claims(cls, head: bytes) -> bool:
        start = head[:2048]
        return b'"sessionId"' in start and b'"projectHash"' in start and b'"startTime"' in start

    def receive(self, source: Source, item: Line | Row) -> None:
        if isinstance(item, Row):
            self._document(source, _conversation.decode(item.data))
            return
        probe = _probe.decode(item.data)
        if bytes(probe.patch):
            patch = _patch.decode(probe.patch)
            self._set(self._session(source.name), patch, _object.decode(probe.patch))
        elif probe.rewind is not None:
            session = self._session(source.name)
            self.add(session, Native(native_type="$rewindTo", data=_object.decode(item.data)), None)
        elif probe.id is not None and probe.type is not None:
            self._state_message(self._session(source.name), _message.decode(item.data), live=True)
        elif probe.sessionId is not None:
            self._header(source, _conversation.decode(item.data), item)
        if not self.out.noted():
            self.out.skip("message-restated")

    def main(self) -> StreamOut:
        """The stream of the session the source at hand is in."""
        return self._stream(self._session(self.out.source_name))

    # sessions

    def _session(self, name: str) -> SessionState:
        """The session of a source; where its header was not seen, by what its path says of the id."""
        state = self.state
        ident = state.at.get(name)
        if ident is None:
            parts = name.rsplit(".", 1)[0].split("/")
            ident = parts[-1] if len(parts) == 3 else self.group.rsplit("/", 1)[-1]
            if len(parts) != 3:
                ident = next((s for s in state.sessions if s.startswith(ident)), ident)
            state.at[name] = ident
        return self._known(ident, name)

    def _known(self, ident: str, name: str, sub: bool = False) -> SessionState:
        found = self.state.sessions.get(ident)
        if found is None:
            sub = sub or name.count("/") == 2
            found = self.state.sessions[ident] = SessionState(StreamKey("gemini", ident), sub)
        return found

    def _stream(self, session: SessionState, header: Conversation | None = None) -> StreamOut:
        found = self.out.stream(session.key)
        if found is not None:
            return found
        folders = header.directories if header else None
        workspace = None
        if folders:
            workspace = Workspace(roots=[WorkspaceRoot(id=f"r{i}", path=p) for i, p in enumerate(folders, 1)])
            session.root = session.cwd = folders[0]
        stream = self.open(
            session.key,
            started_at=header.startTime if header else None,
            lineage=self._lineage(session),
            workspace=workspace,
            meta={"dev.asrd.project": header.projectHash} if header and header.projectHash else None,
        )
        for profile, facet, how, reason in (
            ("usage", "usage.cacheWrite", "unavailable", "Gemini CLI gives no cache writes"),
            ("usage", "inference.auxiliary", "unavailable", "requests for summaries and compressions are not recorded"),
            ("usage", "usage_total", "unavailable", "Gemini CLI declares no total in its session files"),
            ("coding", "exec.exitCode", "partial", "text of failed commands; 0 where a command succeeded"),
            ("core", "turn.end", "unavailable", "session files do not say when a turn ended"),
            ("core", "session.version", "unavailable", "neither program nor format version is in a session file"),
        ):
            stream.add(Capture(profile=profile, facet=facet, state=how, reason=reason))
        return stream

    def _lineage(self, session: SessionState) -> Lineage:
        if not session.sub:
            return Lineage(root=True)
        ident = session.key.session_id
        if ident in self.state.spawned:
            parent, call = self.state.spawned[ident]
            evidence = Evidence(kind="native-field", field="toolCalls[].agentId", value=ident)
            return Lineage(
                root=False,
                parent=LineageParent(agent="gemini", session_id=parent, call_id=call),
                relation="spawned_by",
                evidence=evidence,
            )
        folder = (*self.out.source_name.split("/"), "")[1]
        return Lineage(
            root=False,
            parent=LineageParent(agent="gemini", session_id=folder),
            relation="spawned_by",
            evidence=Evidence(kind="native-path", field="chats/<parent>/<session>.jsonl", value=folder),
        )

    def add(self, session: SessionState, record: Record, at: str | None, native_id: str | None = None) -> str:
        record.at = at
        record.turn_id = record.turn_id or session.turn
        record.native_id = native_id
        return self._stream(session).add(record)

    def _header(self, source: Source, said: Conversation, item: Line) -> None:
        self.state.at[source.name] = said.sessionId
        session = self._known(said.sessionId, source.name, said.kind == "subagent")
        opened = self.out.stream(session.key) is not None
        self._stream(session, said)
        if opened:
            self.add(session, Native(native_type="header", data=_object.decode(item.data)), said.startTime)

    def _document(self, source: Source, said: Conversation) -> None:
        """The older form: the whole session, each time it changes."""
        self.state.at[source.name] = said.sessionId
        session = self._known(said.sessionId, source.name, said.kind == "subagent")
        self._stream(session, said)
        for message in said.messages or []:
            self._state_message(session, message, live=True)
        self._summary(session, said.summary)
        if not self.out.noted():
            self.out.skip("message-restated")

    def _set(self, session: SessionState, said: Patch, whole: dict[str, Any]) -> None:
        for message in said.messages or []:
            self._state_message(session, message, live=False)
        self._summary(session, said.summary)
        if said.directories:
            self._folders(session, said.directories, said.lastUpdated)
        rest = {
            k: v
            for k, v in whole.items()
            if k not in ("messages", "lastUpdated", "sessionId", "summary", "directories")
        }
        if rest:
            self.add(session, Native(native_type="$set", data=rest), said.lastUpdated)
        elif not self.out.noted():
            self.out.skip("last-updated" if said.messages is None else "message-restated")

    def _summary(self, session: SessionState, summary: str | None) -> None:
        if summary and summary != session.summary:
            session.summary = summary
            self.add(session, Config(title=summary), None)

    def _folders(self, session: SessionState, folders: list[str], at: str | None) -> None:
        if folders[0] != session.cwd:
            session.cwd = folders[0]
            self.add(session, Config(cwd=folders[0]), at)

    def _roots(self, session: SessionState) -> list[WorkspaceRoot] | None:
        return [WorkspaceRoot(id="r1", path=session.root)] if session.root else None

    # messages

    def _state_message(self, session: SessionState, said: NativeMessage, live: bool) -> None:
        """A message, or it again: what is new in it. `live`: stated by itself, not in a list that replaces others."""
        seen = session.seen.setdefault(said.id, Seen())
        digest = sha256(msgspec.json.encode(said))
        if seen.last == digest:
            return
        seen.last = digest
        match said.type:
            case "gemini":
                self._response(session, said, seen, live)
            case "user":
                self._user(session, said, seen, live)
            case _ if said.type in NOTICES:
                self._notice(session, said, seen)
            case _:
                self.out.count(f"unexpected:message of type {said.type}")
                native = Native(native_type=said.type, data=msgspec.to_builtins(said))
                self.add(session, native, said.timestamp, said.id)

    def _user(self, session: SessionState, said: NativeMessage, seen: Seen, live: bool) -> None:
        parts = _parts(said.content)
        for part in parts:
            self._response_part(session, part, said.timestamp)
        if _responds(parts):
            return
        content = _blocks(parts)
        text = "\n".join(b.text for b in content if isinstance(b, Text))
        name = _digest(content)
        if seen.text is not None or not content:
            return
        again = not live and _told_before(session, content)
        seen.text = name
        if again:
            self.out.skip("message-restated")
            return
        if text.startswith("<session_context>"):
            if found := _FOLDERS.search(text):
                self._folders(session, [line[4:] for line in found[1].splitlines()], said.timestamp)
            self._injected(session, said, content)
            return
        if len(content) == 1 and (ran := _TYPED.fullmatch(text)) is not None:
            self._typed(session, said, ran[1], ran[2])
            return
        if text.startswith(LOOP):
            self._injected(session, said, content)
            return
        if "<state_snapshot>" in text:
            self.add(session, Compaction(summary=text), said.timestamp, said.id)
            return
        shown = _blocks(_parts(said.displayContent)) if said.displayContent is not None else content
        session.turn = said.id
        trigger = "agent" if session.sub else "prompt"
        self.add(session, Turn(turn_id=said.id, phase="start", trigger=trigger), said.timestamp)
        author, origin = ("agent", "agent") if session.sub else ("human", "prompt")
        seen.message = self.add(
            session,
            Message(role="user", author=author, origin=origin, message_id=said.id, content=shown),
            said.timestamp,
            said.id,
        )
        if shown is not content and shown != content:
            self._injected(session, said, content)

    def _typed(self, session: SessionState, said: NativeMessage, command: str, output: str) -> None:
        """`!command`: the person's own; it asks nothing of the model and starts no turn."""
        words: list[Block] = [Text(text=f"!{command}")]
        typed = Message(
            role="user", author="human", origin="command", audience="both", message_id=said.id, content=words
        )
        self.add(session, typed, said.timestamp, said.id)
        code, signal = _TYPED_EXIT.match(output), _TYPED_SIGNAL.match(output)
        status = (
            "cancelled" if output.startswith("Command was cancelled.") else "failed" if code or signal else "completed"
        )
        ran = Exec(command=command, exit_code=int(code[1]) if code else None, signal=signal[1] if signal else None)
        self.add(
            session,
            ToolResult(
                call_id=f"command:{said.id}", linkage="none", status=status, content=[Text(text=output)], exec=ran
            ),
            said.timestamp,
            said.id,
        )

    def _injected(self, session: SessionState, said: NativeMessage, content: list[Block]) -> None:
        self.add(
            session,
            Message(role="user", author="harness", origin="injected", audience="model", content=content),
            said.timestamp,
            said.id,
        )

    def _notice(self, session: SessionState, said: NativeMessage, seen: Seen) -> None:
        content = _blocks(_parts(said.content))
        name = _digest(content)
        if seen.text == name:
            return
        seen.text = name
        self.add(
            session,
            Message(
                role="system",
                author="harness",
                audience="user",
                message_id=said.id,
                content=content,
                meta={"dev.asrd.kind": said.type},
            ),
            said.timestamp,
            said.id,
        )

    def _response(self, session: SessionState, said: NativeMessage, seen: Seen, live: bool) -> None:
        parts = _parts(said.content)
        content: list[Block] = []
        for thought in said.thoughts or []:
            words = [w for w in (thought.subject, thought.description) if w]
            content.append(Thinking(text="\n".join(words)) if words else Thinking(redacted=True))
        content += [b for b in _blocks(parts) if not (isinstance(b, Text) and not b.text)]
        stated = any(isinstance(b, Text) for b in content) or bool(said.thoughts)
        # A list may hold an answer that the harness put in itself: without figures it tells of no request.
        # So may a resumed checkpoint: what answered has its model.
        self._figures(session, said, seen, stated and live and said.model is not None)
        name = _digest(content)
        if content and not live and seen.text is None and _told_before(session, content):
            seen.text = name
            self.out.skip("message-restated")
        if content and seen.text != name and (live or seen.text is None):
            message = Message(
                role="assistant",
                author="agent",
                message_id=said.id,
                content=content,
                inference_id=said.id if seen.inference else None,
                supersedes=seen.message,
            )
            seen.message = self.add(session, message, said.timestamp, said.id)
            seen.text = name
        for part in parts:
            self._call_part(session, part, said.timestamp)
        for call in said.toolCalls or []:
            self._call(session, call)

    def _figures(self, session: SessionState, said: NativeMessage, seen: Seen, stated: bool) -> None:
        """The response's inference: once, and again where its figures come later or change."""
        tokens = said.tokens
        if tokens is None and not stated:
            return
        session.response = said.id
        if seen.inference is not None and (tokens is None or tokens == seen.tokens):
            return
        usage, meta = None, None
        if tokens is not None:
            usage, meta = _usage(tokens), {"dev.asrd.usage": msgspec.to_builtins(tokens)}
        seen.tokens = tokens
        seen.inference = self.add(
            session,
            Inference(inference_id=said.id, model=said.model, usage=usage, supersedes=seen.inference, meta=meta),
            said.timestamp,
            said.id,
        )

    # tools

    def _call(self, session: SessionState, said: NativeCall) -> None:
        if said.id not in session.calls:
            self._called(session, said.id, said.name, said.args, said.timestamp)
        if said.agentId and said.agentId not in self.state.spawned:
            self.state.spawned[said.agentId] = (session.key.session_id, said.id)
            self.add(
                session,
                Link(
                    relation="spawned",
                    target=LinkTarget(agent="gemini", session_id=said.agentId),
                    call_id=said.id,
                    evidence=Evidence(kind="native-field", field="toolCalls[].agentId", value=said.agentId),
                ),
                said.timestamp,
            )
        if session.calls.get(said.id) or said.status not in DONE:
            return
        session.calls[said.id] = True
        content, text = _result(said.result)
        args = _arguments(said.args)
        status = DONE[said.status]
        if status != "completed" and _DENIED.search(text[:600]):
            status = "denied"
        ran = _exec(said, args, text, status)
        self.add(
            session,
            ToolResult(call_id=said.id, linkage="exact", status=status, content=content or None, exec=ran),
            said.timestamp,
            said.id,
        )
        if ran is not None:
            for commit in commits(ran.command, text):
                action = VcsAction(action="commit", commit=commit, evidence="observed", call_id=said.id)
                self.add(session, action, said.timestamp)
        if status == "completed" and isinstance(said.resultDisplay, dict):
            self._changed(session, said, args)

    def _called(self, session: SessionState, ident: str, name: str, given: Any, at: str | None) -> None:
        session.calls[ident] = False
        args = _arguments(given)
        kind = KINDS.get(name, "mcp" if name.startswith("mcp_") else "other")
        self.add(
            session,
            ToolCall(call_id=ident, name=name, kind=kind, input=args, inference_id=session.response),
            at,
            ident,
        )
        if name == "write_todos" and (items := _plan(args)):
            self.add(session, Plan(items=items, call_id=ident), at)

    def _call_part(self, session: SessionState, part: Any, at: str | None) -> None:
        """A call that only a list of messages tells of."""
        called = fields_of(fields_of(part).get("functionCall"))
        ident, name = called.get("id"), called.get("name")
        if isinstance(ident, str) and isinstance(name, str) and ident not in session.calls:
            self._called(session, ident, name, called.get("args"), at)

    def _response_part(self, session: SessionState, part: Any, at: str | None) -> None:
        """A result that no call of a message has: after a crash, or of a program that keeps only these."""
        answered = fields_of(fields_of(part).get("functionResponse"))
        ident = answered.get("id")
        if not isinstance(ident, str) or session.calls.get(ident):
            return
        linked = ident in session.calls
        session.calls[ident] = True
        content, text = _result([part])
        status = "failed" if "error" in fields_of(answered.get("response")) else "completed"
        if _DENIED.search(text[:600]):
            status = "denied"
        exits = _EXIT.findall(text)
        ran = Exec(exit_code=int(exits[-1])) if exits else None
        self.add(
            session,
            ToolResult(
                call_id=ident,
                linkage="exact" if linked else "none",
                status=status,
                content=content or None,
                exec=ran,
            ),
            at,
            ident,
        )

    def _changed(self, session: SessionState, said: NativeCall, args: dict[str, Any]) -> None:
        try:
            diff = msgspec.convert(said.resultDisplay, FileDiff)
        except msgspec.ValidationError:
            return
        path = diff.filePath or args.get("file_path") or diff.fileName
        if diff.fileDiff is None or not isinstance(path, str):
            return
        created = diff.isNewFile is True or (diff.isNewFile is None and diff.originalContent is None)
        before: Content | None = None
        if diff.originalContent is not None and not created:
            before = content_of(diff.originalContent)
        self.add(
            session,
            FileChange(
                path=within(path, self._roots(session)),
                change="create" if created else "modify",
                call_id=said.id,
                before=before,
                after=content_of(diff.newContent) if diff.newContent is not None else None,
                diff=diff.fileDiff,
                applied=True,
                evidence="reported",
            ),
            said.timestamp,
        )


# ---------------------------------------------------------------- how it says things


def _parts(content: NativeContent) -> list[Any]:
    if content is None:
        return []
    return content if isinstance(content, list) else [content]


def _told_before(session: SessionState, content: list[Block]) -> bool:
    """Whether the session holds messages of these words: a list that replaces others may have them under a new id, and
    what a person said in several messages in one.
    """
    told = {seen.text for seen in session.seen.values()}
    parts = [[block] for block in content]
    return _digest(content) in told or all(_digest(part) in told for part in parts)


def _digest(content: list[Block]) -> str:
    """What a message's words are known again by."""
    return sha256(msgspec.json.encode(content))


def _responds(parts: list[Any]) -> bool:
    """Whether a message is nothing but results."""
    return bool(parts) and all(isinstance(p, dict) and "functionResponse" in p for p in parts)


def _blocks(parts: list[Any]) -> list[Block]:
    """What was said; calls and results stand for themselves."""
    found: list[Block] = []
    for part in parts:
        if isinstance(part, str):
            found.append(Text(text=part))
            continue
        if not isinstance(part, dict):
            found.append(Other(meta={"dev.asrd.block": part}))
            continue
        fields = cast("dict[str, Any]", part)
        text = fields.get("text")
        if isinstance(text, str):
            found.append(Thinking(text=text) if fields.get("thought") is True else Text(text=text))
        elif "functionCall" not in fields and "functionResponse" not in fields:
            found.append(Other(meta={"dev.asrd.block": fields}))
    return found


def _arguments(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {"raw": given}


def _usage(tokens: Tokens) -> Usage:
    """`tool` tokens are prompt tokens too where the total has them beside `input`."""
    fresh = tokens.input
    if fresh is not None:
        fresh = max(fresh - (tokens.cached or 0), 0)
        parts = (tokens.input or 0) + (tokens.output or 0) + (tokens.thoughts or 0)
        if tokens.tool and tokens.total == parts + tokens.tool:
            fresh += tokens.tool
    output = tokens.output
    if output is not None:
        output += tokens.thoughts or 0
    return Usage(input=fresh, output=output, cache_read=tokens.cached, reasoning=tokens.thoughts, total=tokens.total)


def _result(result: Any) -> tuple[list[Block], str]:
    """A result's blocks, and its text."""
    blocks: list[Block] = []
    for part in _parts(result):
        fields = fields_of(fields_of(fields_of(part).get("functionResponse")).get("response"))
        if fields:
            said = fields.get("output", fields.get("error"))
            if isinstance(said, str):
                if said:
                    blocks.append(Text(text=said))
            else:
                blocks.append(Other(meta={"dev.asrd.block": fields}))
        else:
            blocks += _blocks([part])
    return blocks, "\n".join(b.text for b in blocks if isinstance(b, Text))


def _exec(said: NativeCall, args: dict[str, Any], text: str, status: str) -> Exec | None:
    if said.name != "run_shell_command":
        return None
    command = args.get("command")
    ran = Exec(command=command if isinstance(command, str) else None)
    if status in ("denied", "cancelled"):
        return ran
    if exits := _EXIT.findall(text):
        ran.exit_code = int(exits[-1])
    elif signals := _SIGNAL.findall(text):
        ran.signal = signals[-1]
    elif status == "completed" and not args.get("is_background") and _OUTPUT.search(text):
        ran.exit_code = 0
    return ran


def _plan(args: dict[str, Any]) -> list[PlanItem]:
    words = {"pending", "in_progress", "completed", "cancelled"}
    todos = args.get("todos")
    items: list[PlanItem] = []
    for todo in cast("list[Any]", todos) if isinstance(todos, list) else []:
        fields = fields_of(todo)
        text, status = fields.get("description"), fields.get("status")
        if not isinstance(text, str) or status not in words:
            return []
        items.append(PlanItem(text=text, status=status))
    return items


RECORDER = GeminiRecorder
