r"""Mistral Vibe 1 and early 2: a document a session (1), or a folder with a file of messages and its metadata (2).

Where, below `~/.vibe/logs/session/` (VIBE_HOME instead of `~/.vibe`): `session_<local time>_<first 8 of the id>.json`, rewritten
in place (seen: 1.3.5); `session_<local time>_<first 8 of the id>/messages.jsonl`, appended to, and `meta.json` beside it (seen:
2.0.2). Later ones (2.26.1, 3) keep a store of generations, which `vibe.py` reads.

    1  {"metadata":{"session_id":"ffe660ef-…","start_time":"2026-11-30T11:09:08.265863","git_commit":"da04…","git_branch":"main",
         "environment":{"working_directory":"/home/dev/app"},"stats":{"steps":6,"session_prompt_tokens":15015,
         "session_completion_tokens":515},"agent_config":{"active_model":"mock-1"},"tools_available":[…]},
        "messages":[{"role":"system","content":"…"},{"role":"user","content":"…"},{"role":"assistant","content":"…",
         "tool_calls":[{"id":"call_1","function":{"name":"bash","arguments":"{…}"}}]},{"role":"tool","name":"bash",
         "tool_call_id":"call_1","content":"stdout: …\nstderr: \nreturncode: 0"}]}
    2  meta.json: the same metadata, with `title`, `config` and `system_prompt`; messages with a `message_id`, but for results

What is particular
    - Messages have no times, and responses no figures: the session's sums (`stats`) are counted by what they grew by.
    - Its own times name no zone.
    - A session that goes on (`-c`) is a new one that begins with the messages of the one before; nothing says of which. Its
      sums are its own, so figures count once; its first messages stand in both, with the same `message_id` in 2.
    - Exit codes are text: `returncode: 0`, or `Return code: 101` in a `<tool_error>`.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any, cast
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from asrd.recorders._observed import Contents, absolute, commits, content_of, replaced
from asrd.recorders.base import Recorder, StreamKey, StreamOut, within
from asrd.records import (
    Block,
    Capture,
    Config,
    Exec,
    FileChange,
    Inference,
    Message,
    Native,
    Other,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    UsageTotal,
    Vcs,
    VcsAction,
    Workspace,
    WorkspaceRoot,
)
from asrd.sources import Line, Located, Place, Root, Row, Source

# ---------------------------------------------------------------- native records


class Environment(Struct):
    working_directory: str | None = None


class Stats(Struct):
    """Sums over the session's own requests. Prompt tokens include cached ones."""

    session_prompt_tokens: int | None = None
    session_completion_tokens: int | None = None


class Settings(Struct):
    active_model: str | None = None


class Said(Struct):
    """A message, as Chat Completions has them."""

    role: str
    content: Any = None
    reasoning_content: str | None = None
    tool_calls: list[Called] | None = None
    name: str | None = None
    tool_call_id: str | None = None
    message_id: str | None = None


class Function(Struct):
    name: str
    arguments: str | None = None


class Called(Struct):
    function: Function
    id: str | None = None


class Meta(Struct):
    """What is known of a session."""

    session_id: str | None = None
    start_time: str | None = None
    git_commit: str | None = None
    git_branch: str | None = None
    environment: Environment | None = None
    title: str | None = None
    stats: Stats | None = None
    config: Settings | None = None
    agent_config: Settings | None = None
    system_prompt: Said | None = None
    tools_available: list[dict[str, Any]] | None = None


class Document(Struct):
    metadata: Meta
    messages: list[Raw] = []


_document = msgspec.json.Decoder(Document)
_meta = msgspec.json.Decoder(Meta)
_said = msgspec.json.Decoder(Said)
_any = msgspec.json.Decoder()

KINDS = {
    "read_file": "read", "bash": "execute", "search_replace": "edit", "write_file": "edit", "grep": "search",
    "todo": "plan", "task": "delegate", "web_search": "search", "web_fetch": "fetch",
}  # fmt: skip

_CODE = re.compile(r"(?:\nReturn code: |(?:\A|\n)returncode: )(-?\d{1,10})(?=\n|</tool_error>|\Z)")
_OUTPUT = re.compile(r"(?:\A|\n)stdout: (.*?)\n\nstderr: ", re.S)
_READ = re.compile(r"\Apath: [^\n]*\ncontent: (.*)\nlines_read: \d+\nwas_truncated: False\Z", re.S)
_BLOCK = re.compile(r"<{5,} SEARCH\r?\n(.*?)\r?\n?={5,}\r?\n(.*?)\r?\n?>{5,} REPLACE", re.S)
_PATH = re.compile(r"logs/session/(session_[^/]+?)(?:\.json|/(messages\.jsonl|meta\.json))")

# ---------------------------------------------------------------- state


class Waiting(Struct):
    """A call without its result yet."""

    name: str
    args: dict[str, Any]


class State(Struct):
    """One session."""

    session: str = ""
    meta: Meta | None = None
    stated: tuple[int, int] = (0, 0)
    """Sums of prompt and completion tokens that were stated."""
    number: int = 0
    """Messages told."""
    turn: str | None = None
    calls: dict[str, Waiting] = {}
    told: list[int] = []
    """Digests of the messages of a document that were told."""
    prompt: int = 0
    """Digest of the system prompt that was said."""
    title: str | None = None
    model: str | None = None
    files: Contents = msgspec.field(default_factory=Contents)


# ---------------------------------------------------------------- the recorder


class Vibe2Recorder(Recorder):
    """One document or folder is one session."""

    harness = "vibe-2"
    roots = (Root(".vibe", env=("VIBE_HOME",)),)
    places = (
        Place("logs/session/session_*.json", "document"),
        Place("logs/session/session_*/meta.json", "document", sidecar=True),
        Place("logs/session/session_*/messages.jsonl"),
    )
    versions = ("1.3.5", "2.0.2")
    by_kind = True  # the first message comes with what `meta.json` said by then
    State = State
    state: State

    def __init__(self, out: Any, group: str) -> None:
        super().__init__(out, group)
        self._row = False

    @classmethod
    def locate(cls, path: str) -> Located | None:
        found = _PATH.fullmatch(path)
        if found is None:
            return None
        group, name = f"logs/session/{found[1]}", path.removeprefix("logs/session/")
        beside = f"{group}/meta.json" if found[2] == "messages.jsonl" else ""
        return Located(group, name, beside=beside)

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """A document of Vibe 1; a file of messages says nothing of whose it is."""
        return all(key in head for key in (b'"metadata"', b'"session_id"', b'"environment"', b'"working_directory"'))

    def receive(self, source: Source, item: Line | Row) -> None:
        self._row = isinstance(item, Row)
        if isinstance(item, Line):
            said, data = _said.decode(item.data), item.data
            self._begin()
            self._message(said, data)
        elif source.sidecar:
            self._beside(_meta.decode(item.data))
        else:
            self._documented(_document.decode(item.data))
        if not self.out.noted():
            self.out.skip("nothing-new")

    def main(self) -> StreamOut:
        """The session's stream; named by its file when nothing told its id."""
        state = self.state
        state.session = state.session or self.group.rsplit("/", 1)[-1]
        key = StreamKey(self.harness, state.session)
        found = self.out.stream(key)
        if found is not None:
            return found
        meta = state.meta or Meta()
        stream = self.open(
            key,
            workspace=_workspace(meta),
            title=meta.title,
            meta={"dev.asrd.startTime": meta.start_time} if meta.start_time else None,
        )
        state.title = meta.title
        for profile, facet, how, reason in (
            ("core", "at", "unavailable", "messages have no times"),
            ("usage", "inference.usage", "partial", "the session's sums only: figures are what they grew by"),
            ("usage", "usage.cacheRead", "unavailable", "Vibe does not record it"),
            (
                "coding",
                "file_change.before",
                "partial",
                "only of a file that was read whole, with no command in between",
            ),
            ("lineage", "copies", "unavailable", "a session that goes on repeats the one before without naming it"),
        ):
            self._add(Capture(profile=profile, facet=facet, state=how, reason=reason), stream)
        self._settings(meta, stream)
        return stream

    def _add(self, record: Any, stream: StreamOut | None = None) -> str:
        """Adds a record; what a document or sidecar gives is known again by what it says."""
        stream = stream or self.main()
        if self._row:
            self.out.states(record, "session")
        return stream.add(record)

    # the session

    def _documented(self, told: Document) -> None:
        state = self.state
        decoded = [_said.decode(raw) for raw in told.messages]
        digests = [crc32(bytes(raw)) for raw in told.messages]
        self._known(told.metadata)
        self._begin()
        known = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(state.told, digests, strict=False)))
        if known < len(state.told):
            data = {"kept": known, "replaced": len(state.told) - known}
            self._add(Native(native_type="document.rewritten", data=data))
        state.told = digests
        self._settings(told.metadata, self.main())
        for said, raw in zip(decoded[known:], told.messages[known:], strict=True):
            self._message(said, bytes(raw))
        self._spent()

    def _beside(self, meta: Meta) -> None:
        """What `meta.json` says: kept for the session's first message, then what is new."""
        self._known(meta)
        stream = self.out.stream(StreamKey(self.harness, self.state.session))
        if stream is not None:
            self._settings(meta, stream)
            self._spent()
        else:
            self.out.skip("kept-for-its-session")

    def _known(self, meta: Meta) -> None:
        self.state.meta = meta
        self.state.session = self.state.session or meta.session_id or ""

    def _begin(self) -> None:
        """Opens the stream, with what is known of the session, where nothing did yet."""
        if self.out.stream(StreamKey(self.harness, self.state.session)) is None:
            self.main()
            if not self.state.told:
                self._spent()

    def _settings(self, meta: Meta, stream: StreamOut) -> None:
        state = self.state
        config = meta.config or meta.agent_config
        model = config.active_model if config else None
        title = meta.title if meta.title != state.title else None
        if (model and model != state.model) or title:
            new = model if model != state.model else None
            state.model, state.title = model or state.model, meta.title or state.title
            tools = _names(meta.tools_available) if new else None
            self._add(Config(model=new, title=title, tools=tools), stream)
        if meta.system_prompt is not None:
            self._system(meta.system_prompt, stream)

    def _system(self, said: Said, stream: StreamOut | None = None) -> None:
        digest = crc32(repr(said.content).encode("utf-8", "replace"))
        if digest == self.state.prompt:
            return
        self.state.prompt = digest
        message = Message(role="system", author="harness", origin="injected", audience="model", content=_blocks(said))
        self._add(message, stream)

    def _spent(self) -> None:
        """What the session's sums grew by since they were stated, as one request of unknown parts."""
        meta, state = self.state.meta, self.state
        stats = meta.stats if meta else None
        if stats is None or stats.session_prompt_tokens is None or stats.session_completion_tokens is None:
            return
        now = (stats.session_prompt_tokens, stats.session_completion_tokens)
        if now == state.stated or not any(now):
            return
        stream = self.main()
        total = Usage(input=now[0], output=now[1])
        figures = {"dev.asrd.usage": msgspec.to_builtins(stats)}
        self._add(UsageTotal(scope="session", cumulative=True, usage=total, meta=dict(figures)), stream)
        # What the stream stated before the state was lost, the first time.
        held = stream.tokens() if state.stated == (0, 0) else (0, 0, 0)
        grown = (now[0] - state.stated[0] - held[0], now[1] - state.stated[1] - held[2])
        state.stated = now
        if min(grown) < 0 or not any(grown):
            return
        self._add(
            Inference(
                inference_id=f"total-{now[0]}-{now[1]}",
                id_source="derived",
                model=state.model,
                usage=Usage(input=grown[0], output=grown[1]),
                meta={**figures, "dev.asrd.requests": "unknown"},
            ),
            stream,
        )

    # messages

    def _message(self, said: Said, data: bytes) -> None:
        state = self.state
        state.number += 1
        name = said.message_id or f"{state.session}/{state.number}"
        match said.role:
            case "system":
                self._system(said)
            case "user":
                state.turn = name
                self._put(said, Turn(turn_id=name, phase="start", trigger="prompt"))
                self._put(
                    said,
                    Message(
                        role="user", author="human", origin="prompt", message_id=said.message_id, content=_blocks(said)
                    ),
                )
            case "assistant":
                self._response(said, name)
            case "tool":
                self._result(said)
            case _:
                self._put(said, Native(native_type=said.role, data=_any.decode(data)))

    def _put(self, said: Said, record: Any) -> str:
        record.native_id = said.message_id
        record.turn_id = record.turn_id or self.state.turn
        return self._add(record)

    def _response(self, said: Said, name: str) -> None:
        state = self.state
        self._put(
            said,
            Inference(inference_id=name, id_source=None if said.message_id else "derived", model=state.model),
        )
        if content := _blocks(said):
            self._put(
                said,
                Message(
                    role="assistant", author="agent", message_id=said.message_id, content=content, inference_id=name
                ),
            )
        for number, call in enumerate(said.tool_calls or ()):
            ident = call.id or f"{name}.{number}"
            args = _arguments(call.function.arguments)
            state.calls[ident] = Waiting(call.function.name, args)
            self._put(
                said,
                ToolCall(
                    call_id=ident,
                    call_id_source=None if call.id else "derived",
                    name=call.function.name,
                    kind=KINDS.get(call.function.name, "other"),
                    input=args,
                    inference_id=name,
                ),
            )
        if not said.tool_calls and state.turn is not None:
            self._put(said, Turn(turn_id=state.turn, phase="end", status="completed"))
            state.turn = None

    def _result(self, said: Said) -> None:
        ident = said.tool_call_id or f"{self.state.session}/{self.state.number}"
        call = self.state.calls.pop(ident, None)
        text = "\n".join(b.text for b in _blocks(said) if isinstance(b, Text))
        failed = text.startswith("<tool_error>")
        ran = None
        if call is not None and call.name == "bash":
            code = _CODE.search(text)
            command = call.args.get("command")
            ran = Exec(
                command=command if isinstance(command, str) else None,
                exit_code=int(code[1]) if code is not None else None,
            )
        self._put(
            said,
            ToolResult(
                call_id=ident,
                linkage="exact" if call else "none",
                status="failed" if failed else "completed",
                content=_blocks(said) or None,
                exec=ran,
            ),
        )
        if call is None:
            return
        if ran is not None:
            self.state.files.doubt()
            printed = _OUTPUT.search(text)
            for commit in commits(ran.command, printed[1] if printed else ""):
                root = "r1" if self._roots() else None
                action = VcsAction(action="commit", root=root, commit=commit, evidence="observed", call_id=ident)
                self._put(said, action)
        elif not failed:
            self._touched(said, ident, call, text)

    def _touched(self, said: Said, ident: str, call: Waiting, text: str) -> None:
        """A file that was read whole, or changed."""
        path = call.args.get("file_path") or call.args.get("path")
        if not isinstance(path, str):
            return
        cwd = self.state.meta.environment.working_directory if self.state.meta and self.state.meta.environment else None
        key, files = absolute(cwd, path), self.state.files
        if call.name == "read_file":
            if (whole := _READ.match(text)) is not None and not call.args.get("offset") and not call.args.get("limit"):
                files.is_(key, whole[1])
            return
        if call.name not in ("search_replace", "write_file"):
            return
        known, given = files.get(key), call.args.get("content")
        before = known.text if known and not known.doubtful else None
        after = None
        if call.name == "write_file":
            after = given if isinstance(given, str) else None
        elif before is not None and isinstance(given, str):
            after = replaced(before, [(old, new, False) for old, new in _BLOCK.findall(given)])
        self._put(
            said,
            FileChange(
                path=within(path, self._roots()),
                change="modify" if call.name == "search_replace" or call.args.get("overwrite") else "create",
                call_id=ident,
                before=content_of(before) if before is not None and after is not None else None,
                after=content_of(after) if after is not None else None,
                applied=True,
                evidence="derived" if call.name == "search_replace" else "reported",
            ),
        )
        if after is None:
            files.forget(key)
        else:
            files.is_(key, after)

    def _roots(self) -> list[WorkspaceRoot] | None:
        workspace = _workspace(self.state.meta or Meta())
        return workspace.roots if workspace else None


# ---------------------------------------------------------------- how it says things


def _workspace(meta: Meta) -> Workspace | None:
    path = meta.environment.working_directory if meta.environment else None
    if not path:
        return None
    vcs = Vcs(type="git", head=meta.git_commit, branch=meta.git_branch) if meta.git_commit else None
    return Workspace(roots=[WorkspaceRoot(id="r1", path=path, vcs=vcs)])


def _blocks(said: Said) -> list[Block]:
    found: list[Block] = [Thinking(text=said.reasoning_content)] if said.reasoning_content else []
    if isinstance(said.content, str):
        return [*found, Text(text=said.content)] if said.content else found
    parts: Any = said.content
    for part in cast("list[Any]", parts) if isinstance(parts, list) else ():
        text: Any = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else None
        found.append(Text(text=text) if isinstance(text, str) else Other(meta={"dev.asrd.block": part}))
    return found


def _arguments(text: str | None) -> dict[str, Any]:
    """A call's arguments, which are JSON in text; what is no object is wrapped as it stands."""
    try:
        value = _any.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return {"raw": text}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"raw": text}


def _names(tools: list[dict[str, Any]] | None) -> list[str] | None:
    functions = [tool.get("function") for tool in tools or ()]
    names = [cast("dict[str, Any]", f).get("name") for f in functions if isinstance(f, dict)]
    return [name for name in names if isinstance(name, str)] or None


RECORDER = Vibe2Recorder
