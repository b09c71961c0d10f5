r"""Antigravity (`agy`, and the applications): a SQLite database a conversation, whose columns are protobuf, and a JSONL mirror
of its steps.

Where, below `~/.gemini/antigravity-cli` (`antigravity`, `antigravity-ide` of the applications, in the same form):

    conversations/<id>.db                                            what happened: `steps`, `gen_metadata`, …
    brain/<id>/.system_generated/logs/transcript_full.jsonl          the same steps as JSON, with less in them
    brain/<id>/.system_generated/logs/transcript.jsonl               shorter still: told where there is nothing else
    conversation_summaries.db                                        titles, folders and parents of all conversations

From documents: the public field map of 1.2.17 (`user_version` 1, `step_format` 0), no vendor schema; of a real session only
a transcript was seen. `_wire` reads the columns; fields are named by number, `140.2.1` is field 1 of field 2 of field 140.

    steps         {"idx":4,"step_type":132,"status":3,"step_format":0,"metadata":<1 time (1 s, 2 ns), 4 the call that a tool
                  step answers (1 id, 2 name, 3 JSON arguments), 9 usage (2 input, 3 output, 5 cache read, 7 response id)>,
                  "step_payload":<14 user: 19.2 text; 15 model: 20.1 text, 20.3 thinking, 20.6 response id, 20.7 calls
                  (1 id, 2 name, 3 JSON arguments); 132 tool: 140.2.1 text; 101 system: 114.4.4 text>}
    gen_metadata  {"idx":2,"data":<1.4.7 response id, 1.19 model, 1.1 system prompt, 1.2 every message again>}
    transcript    {"step_index":1,"source":"MODEL","type":"PLANNER_RESPONSE","status":"DONE","created_at":"2026-10-05T18:19:31Z",
                  "input_tokens":5244,"cache_read_tokens":9619,"output_tokens":345,"thinking":"…","tool_calls":[{"name":
                  "run_command","args":{"CommandLine":"ls -la","Cwd":"/…"}}]}
                  {"step_index":2,"source":"MODEL","type":"GENERIC","status":"DONE","created_at":"…","content":"Created At: …\n
                  Completed At: …\n\nThe command exited with code 0.\nOutput:\n…"}

What is particular
    - `input` excludes cached tokens; there is no count of what was written to the cache.
    - The exit code stands in the words of a result. A file that was viewed to its end is known whole, by its stated size.
    - The transcript has no ids of calls and responses and no model; a prompt in it is wrapped. Where the database says a
      step, the transcript's line of it is skipped; a step that only the transcript had told is superseded.
    - `gen_metadata` copies every message into every row: only the model and the system prompt are taken from it.
    - `executor_metadata` and `battle_mode_infos` are not read: nobody has said what they hold. Their rows are counted as
      skips.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import unquote, urlparse

import msgspec
from msgspec import Struct

from asrd.recorders import _wire
from asrd.recorders._observed import Contents, absolute, commits, content_of, patched, replaced
from asrd.recorders.base import Recorder, StreamKey, StreamOut, sha256, within
from asrd.records import (
    Block,
    Capture,
    Config,
    Evidence,
    Exec,
    FileChange,
    Inference,
    Link,
    LinkTarget,
    Message,
    Native,
    Record,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    VcsAction,
)
from asrd.sources import Line, Located, Place, Root, Row, RowQuery, Source, Unread

# ---------------------------------------------------------------- native structs


class Asked(Struct):
    """One of `tool_calls` of a transcript's line."""

    name: str
    args: Any = None


class StepLine(Struct):
    """A line of the transcript."""

    step_index: int
    type: str
    source: str | None = None
    status: str | None = None
    created_at: str | None = None
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Asked] = []
    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    output_tokens: int | None = None


class StepRow(Struct):
    """A row of `steps`."""

    idx: int
    step_type: int
    status: int | None = None
    metadata: bytes | None = None
    step_payload: bytes | None = None


_line = msgspec.json.Decoder(StepLine)
_any = msgspec.json.Decoder()

DONE = 3

# ---------------------------------------------------------------- what a step says, in either form


class Called(Struct):
    """A call: `id` is derived where the step has none."""

    id: str
    name: str
    input: dict[str, Any]
    native: bool


class Step(Struct):
    """A step."""

    index: int
    kind: str
    """user, model, tool, system, or what the harness calls it."""
    at: str | None = None
    done: bool = True
    failed: bool = False
    text: str | None = None
    thinking: str | None = None
    response: str | None = None
    calls: list[Called] = []
    answers: Called | None = None
    usage: Usage | None = None
    whole: Any = None
    """The step as it stands, where this version has no place for it."""


# ---------------------------------------------------------------- state


class Told(Struct):
    """What was recorded of a step."""

    digest: str
    table: bool
    source: str = ""
    """The transcript that told it."""
    records: dict[str, str] = {}


class State(Struct):
    """All that is kept between items."""

    steps: dict[int, Told] = {}
    cwd: str | None = None
    title: str | None = None
    parent: str | None = None
    turn: str | None = None
    response: str | None = None
    """The inference that the next calls belong to."""
    open: list[Called] = []
    """Calls of the transcript that have no result, in order."""
    calls: dict[str, Called] = {}
    models: dict[str, str] = {}
    unnamed: dict[str, Inference] = {}
    """Responses that were recorded before their model was known."""
    prompts: list[str] = []
    files: Contents = msgspec.field(default_factory=Contents)


# ---------------------------------------------------------------- where it lies

QUERIES = (
    RowQuery("trajectory_meta", "SELECT rowid, * FROM trajectory_meta ORDER BY rowid", ("rowid",)),
    RowQuery("trajectory_metadata_blob", "SELECT rowid, * FROM trajectory_metadata_blob ORDER BY rowid", ("rowid",)),
    RowQuery("parent_references", "SELECT rowid, * FROM parent_references ORDER BY rowid", ("rowid",)),
    RowQuery("gen_metadata", "SELECT idx AS rowid, * FROM gen_metadata ORDER BY idx", ("rowid",), since="rowid"),
    RowQuery(
        "steps",
        "SELECT idx AS rowid, * FROM steps ORDER BY idx",
        ("rowid",),
        columns=("step_type", "metadata", "step_payload"),
    ),
    *(
        RowQuery(
            "unread",
            f"SELECT '{table}' AS kind, count(*) AS rows, max(rowid) AS upto FROM {table} HAVING count(*) > 0",
            ("kind", "upto"),
            needs=(table,),
            mark=f"SELECT max(rowid) FROM {table}",
            changed=f"SELECT '{table}' AS kind, count(*) AS rows, max(rowid) AS upto FROM {table} "
            "WHERE rowid > :since HAVING count(*) > 0",
        )
        for table in ("executor_metadata", "battle_mode_infos")
    ),
)
SUMMARIES = (
    RowQuery(
        "summary",
        "SELECT conversation_id AS owner, * FROM conversation_summaries ORDER BY rowid",
        ("conversation_id",),
        needs=("conversation_summaries",),
        columns=("conversation_id",),
    ),
)

KINDS = {
    "run_command": "execute", "view_file": "read", "list_dir": "read", "replace_file_content": "edit",
    "multi_replace_file_content": "edit", "write_to_file": "edit", "grep_search": "search", "find_by_name": "search",
    "codebase_search": "search", "search_web": "fetch", "read_url_content": "fetch",
}  # fmt: skip

_EXIT = re.compile(r"(?m)^The command exited with code (-?\d+)\.[ \t]*$")
_REQUEST = re.compile(r"\A<USER_REQUEST>\n(.*?)\n</USER_REQUEST>\n?", re.DOTALL)
_MODEL = re.compile(r"changed setting `Model Selection` from .*? to (.+?)\. No need to comment")
_DIFF = re.compile(r"\[diff_block_start\]\n(.*?)\[diff_block_end\]", re.DOTALL)
_SIZE = re.compile(r"(?m)^Total Bytes: (\d+)$")
_NUMBERED = re.compile(r"(?m)^(\d+): (.*)$")
_WHOLE = "The above content shows the entire, complete file contents"


# ---------------------------------------------------------------- the recorder


class AntigravityRecorder(Recorder):
    """Steps of Antigravity as records. One group a conversation: its database, and the transcript."""

    harness = "antigravity"
    roots = (Root(".gemini/antigravity-cli"), Root(".gemini/antigravity"), Root(".gemini/antigravity-ide"))
    places = (
        Place("conversations/*.db", "table", QUERIES),
        Place("brain/*/.system_generated/logs/transcript_full.jsonl"),
        Place("brain/*/.system_generated/logs/transcript.jsonl"),
        Place("conversation_summaries.db", "shared", SUMMARIES, owner="owner"),
    )
    unread = (
        Unread("conversations/*.pb", "conversations of versions before the databases, in a form that nobody described"),
        Unread("implicit/*.pb", "in a form that nobody described"),
        Unread("jetbox_summaries_proto.pb", "in a form that nobody described"),
        Unread("annotations/*.pbtxt", "marks of the list of conversations"),
        Unread("brain/*/.system_generated/steps/*/output.txt", "whole outputs of steps"),
        Unread("brain/*/.system_generated/messages/*.json", "in a form that nobody described"),
        Unread("history.jsonl", "prompts again, for typing them again"),
    )
    versions = ()
    evidence = "documents"
    State = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """All name the conversation in their path; the database is read first. The summaries are of all conversations."""
        parts = path.split("/")
        if path == "conversation_summaries.db":
            return Located(group="", name=path, order="4")
        if path.endswith("/transcript.jsonl"):
            return Located(group=parts[1] if len(parts) > 2 else path, name=path, order="3")
        if path.endswith(".db"):
            return Located(group=parts[-1].removesuffix(".db"), name=path, order="1")
        return Located(group=parts[1] if len(parts) > 2 else path, name=path, order="2")

    @classmethod
    def claims(cls, head: bytes) -> bool:
        if head.startswith(b"SQLite format 3\0"):
            return b"trajectory_meta" in head and b"step_payload" in head
        first = head.split(b"\n", 1)[0]
        return b'"step_index"' in first and b'"source"' in first and b'"created_at"' in first

    def receive(self, source: Source, item: Line | Row) -> None:
        if isinstance(item, Line):
            self._step(_from_line(_line.decode(item.data), item.data), table=False, source=source.name)
            return
        values = item.values
        match item.table:
            case "steps":
                self._step(_from_row(msgspec.convert(values, StepRow), values), table=True)
            case "gen_metadata":
                self._generation(values.get("data"))
            case "summary":
                self._summary(values)
            case "unread":
                rule = f"unread:{values['kind']}"
                self.out.skip(rule)
                self.out.skips[rule] += int(values["rows"]) - 1
            case "trajectory_meta" if values.get("cascade_id") == self.group:
                self.out.skip("conversation-id")
            case _:
                if item.table == "trajectory_metadata_blob" and isinstance(data := values.get("data"), bytes):
                    self.state.cwd = _folder(_wire.text(data, 1, 1)) or self.state.cwd
                self._add(Native(native_type=item.table, native_id=item.key, data=_readable(values)), None)

    def main(self) -> StreamOut:
        """The conversation's stream."""
        return self._open(None)

    def _open(self, at: str | None) -> StreamOut:
        key = StreamKey(self.harness, self.group)
        found = self.out.stream(key)
        if found is not None:
            return found
        stream = self.open(key, started_at=at, cwd=self.state.cwd)
        for profile, facet, state, reason in (
            ("usage", "usage.cacheWrite", "unavailable", "no count of what was written to the cache"),
            ("usage", "usage_total", "unavailable", "no total is declared"),
            ("core", "turn.end", "partial", "an answer without calls, once it is done, ends a turn"),
            ("coding", "exec.exitCode", "partial", "only in the words of a result"),
            ("coding", "file_change.before", "partial", "known only where the file was viewed or written whole before"),
            ("lineage", "parent", "partial", "the parent's id stands in the store of all conversations alone"),
        ):
            stream.add(Capture(profile=profile, facet=facet, state=state, reason=reason))
        return stream

    def _add(self, record: Record, at: str | None, native_id: str | None = None) -> str:
        record.at = at
        record.native_id = native_id
        if not isinstance(record, Turn):
            record.turn_id = self.state.turn
        return self._open(at).add(record)

    def _summary(self, values: dict[str, Any]) -> None:
        """What the store of all conversations says of this one: its title, its folder, and what started it."""
        state = self.state
        title, parent = values.get("title"), values.get("parent_conversation_id")
        folder = next((f for uri in _uris(values.get("workspace_uris")) if (f := _folder(uri))), None)
        if isinstance(title, str) and title and title != state.title:
            state.title = title
            self._add(Config(title=title), None)
        if folder and state.cwd is None:
            state.cwd = folder
            self._add(Config(cwd=folder), None)
        if isinstance(parent, str) and parent and parent != self.group and parent != state.parent:
            state.parent = parent
            evidence = Evidence(
                kind="native-field", field="conversation_summaries.parent_conversation_id", value=parent
            )
            target = LinkTarget(agent=self.harness, session_id=parent)
            self._add(Link(relation="spawned_by", target=target, evidence=evidence), None)
        if not self.out.noted():
            self.out.skip("summary-restated")

    # steps

    def _step(self, step: Step, *, table: bool, source: str = "") -> None:
        """A step, or it again: the database's word holds over the transcript's; of two transcripts the first word holds."""
        digest = sha256(msgspec.json.encode(step))
        before = self.state.steps.get(step.index)
        other = before is not None and not table and (before.table or before.source != source)
        if before is not None and (other or before.digest == digest):
            self.out.skip("step-restated" if before.digest == digest else "transcript-of-a-recorded-step")
            return
        told = self.state.steps[step.index] = Told(digest, table, source, dict(before.records) if before else {})
        match step.kind:
            case "user":
                self._user(step, told)
            case "model":
                self._model(step, told)
            case "tool":
                self._tool(step, told)
            case "system":
                self._message(step, told, "system", "harness", "injected", [Text(text=step.text or "")])
            case _:
                self.out.count(f"unexpected:step {step.kind}")
                self._add(Native(native_type=f"step/{step.kind}", data=step.whole), step.at, str(step.index))

    def _message(
        self,
        step: Step,
        told: Told,
        role: str,
        author: str,
        origin: str | None,
        content: list[Block],
        name: str = "message",
    ) -> None:
        told.records[name] = self._add(
            Message(
                role=role,
                author=author,
                origin=origin,
                audience="model" if origin == "injected" else None,
                content=content,
                inference_id=step.response if role == "assistant" else None,
                supersedes=told.records.get(name),
            ),
            step.at,
            str(step.index),
        )

    def _user(self, step: Step, told: Told) -> None:
        text, rest = step.text or "", ""
        if wrapped := _REQUEST.match(text):
            text, rest = wrapped[1], text[wrapped.end() :]
        self.state.open = []
        self.state.turn = f"step-{step.index}"
        if "turn" not in told.records:
            told.records["turn"] = self._add(Turn(turn_id=self.state.turn, phase="start", trigger="prompt"), step.at)
        self._message(step, told, "user", "human", "prompt", [Text(text=text)])
        if rest:
            self._message(step, told, "user", "harness", "injected", [Text(text=rest)], "context")
        if (model := _MODEL.search(rest)) and "model" not in told.records:
            meta = {"dev.asrd.as": "shown to the user"}
            told.records["model"] = self._add(Config(model=model[1], meta=meta), step.at)

    def _model(self, step: Step, told: Told) -> None:
        state = self.state
        native = step.response is not None
        ident = step.response or f"step-{step.index}"
        step.response = state.response = ident
        if step.usage is not None or step.text or step.thinking or step.calls:
            inference = Inference(
                inference_id=ident,
                id_source=None if native else "derived",
                model=state.models.get(ident),
                usage=step.usage,
                supersedes=told.records.get("inference"),
            )
            told.records["inference"] = self._add(inference, step.at, str(step.index))
            if native and inference.model is None:
                kept = Inference(inference_id=ident, usage=step.usage, supersedes=told.records["inference"], at=step.at)
                kept.turn_id = state.turn
                state.unnamed[ident] = kept
        content: list[Block] = [Thinking(text=step.thinking)] if step.thinking else []
        if step.text:
            content.append(Text(text=step.text))
        if content:
            self._message(step, told, "assistant", "agent", None, content)
        for number, call in enumerate(step.calls):
            name = f"call-{number}"
            if call.native and name not in told.records:
                state.calls[call.id] = call
            if not call.native:
                state.open.append(call)
            told.records[name] = self._add(
                ToolCall(
                    call_id=call.id,
                    call_id_source=None if call.native else "derived",
                    name=call.name,
                    kind=KINDS.get(call.name, "other"),
                    input=call.input,
                    inference_id=ident,
                    title=_title(call.input),
                    supersedes=told.records.get(name),
                ),
                step.at,
                call.id if call.native else None,
            )
        if step.done and step.text and not step.calls and "end" not in told.records and state.turn is not None:
            told.records["end"] = self._add(Turn(turn_id=state.turn, phase="end", status="completed"), step.at)

    def _tool(self, step: Step, told: Told) -> None:
        state = self.state
        call, linkage = step.answers, "exact"
        if call is None:
            call = state.open.pop(0) if state.open else None
            linkage = "order" if call else "none"
        elif call.id not in state.calls:
            linkage = "none"
        text = step.text or ""
        found = _EXIT.findall(text)
        ran: Exec | None = None
        if call is not None and call.name == "run_command":
            command, cwd = call.input.get("CommandLine"), call.input.get("Cwd")
            ran = Exec(
                command=command if isinstance(command, str) else None,
                cwd=within(cwd, None) if isinstance(cwd, str) else None,
                exit_code=int(found[-1]) if found else None,
            )
        failed = step.failed or bool(ran and ran.exit_code)
        status = "unknown" if not step.done else "failed" if failed else "completed"
        told.records["result"] = self._add(
            ToolResult(
                call_id=call.id if call else f"step-{step.index}",
                linkage=linkage,
                status=status,
                content=[Text(text=text)] if text else None,
                exec=ran,
                supersedes=told.records.get("result"),
            ),
            step.at,
            str(step.index),
        )
        if call is not None and step.done and "effects" not in told.records:
            told.records["effects"] = told.records["result"]
            self._effects(step, call, text, failed)

    def _effects(self, step: Step, call: Called, text: str, failed: bool) -> None:
        """Commits a command showed, what is known of a file, what an edit made of it: once a step."""
        files = self.state.files
        if call.name == "run_command":
            files.doubt()
            command = call.input.get("CommandLine")
            for commit in commits(command if isinstance(command, str) else None, text.replace("\r\n", "\n")):
                self._add(VcsAction(action="commit", commit=commit, evidence="observed", call_id=call.id), step.at)
            return
        path = call.input.get("AbsolutePath" if call.name == "view_file" else "TargetFile")
        if not isinstance(path, str) or failed:
            return
        key = absolute(None, path)
        if call.name == "view_file":
            if (whole := _viewed(text)) is not None:
                files.is_(key, whole)
            return
        if KINDS.get(call.name) != "edit":
            return
        known = files.get(key)
        before = known.text if known and not known.doubtful else None
        diff = _DIFF.search(text)
        after = _after(call, before, diff[1] if diff else None)
        self._add(
            FileChange(
                path=within(path, None),
                change="modify",
                call_id=call.id,
                before=content_of(before) if before is not None else None,
                after=content_of(after) if after is not None else None,
                diff=diff[1] if diff else None,
                applied=True,
                evidence="reported",
            ),
            step.at,
        )
        if after is None:
            files.forget(key)
        else:
            files.is_(key, after)

    # generations

    def _generation(self, data: Any) -> None:
        """The model of a response; its inference is said again where it was recorded without."""
        state = self.state
        if not isinstance(data, bytes):
            self._add(Native(native_type="gen_metadata", data=None), None)
            return
        response, model, prompt = _wire.text(data, 1, 4, 7), _wire.text(data, 1, 19), _wire.text(data, 1, 1)
        if prompt and (digest := sha256(prompt)) not in state.prompts:
            state.prompts.append(digest)
            self._add(
                Message(
                    role="system", author="harness", origin="injected", audience="model", content=[Text(text=prompt)]
                ),
                None,
            )
        if response and model:
            state.models[response] = model
            waiting = state.unnamed.pop(response, None)
            if waiting is not None:
                waiting.model = model
                self._open(None).add(waiting)
        if not self.out.noted():
            self.out.skip("generation" if response else "generation-without-an-id")


# ---------------------------------------------------------------- both forms of a step


def _from_row(row: StepRow, values: dict[str, Any]) -> Step:
    meta, payload = row.metadata or b"", row.step_payload or b""
    seconds, nanos = _wire.number(meta, 1, 1), _wire.number(meta, 1, 2) or 0
    step = Step(row.idx, str(row.step_type), at=_time(seconds, nanos), done=row.status == DONE)
    match row.step_type:
        case 14 if (text := _wire.text(payload, 19, 2)) is not None:
            step.kind, step.text = "user", text
        case 15 if _wire.inside(payload, 20) is not None or not payload:
            step.kind = "model"
            step.text, step.thinking = _wire.text(payload, 20, 1), _wire.text(payload, 20, 3)
            step.response = _wire.text(payload, 20, 6) or _wire.text(meta, 9, 7)
            step.usage = _usage(meta)
            for number, call in enumerate(c for c in _wire.every(payload, 20, 7) if isinstance(c, bytes)):
                step.calls.append(_called(call, f"step-{row.idx}-{number}"))
        case 132 if (call := _wire.inside(meta, 4)) is not None:
            step.kind, step.answers = "tool", _called(call, f"step-{row.idx}")
            step.text = _wire.text(payload, 140, 2, 1)
        case 101 if (text := _wire.text(payload, 114, 4, 4)) is not None:
            step.kind, step.text = "system", text
        case _:
            step.whole = _readable(values)
    return step


def _from_line(line: StepLine, data: bytes) -> Step:
    step = Step(
        line.step_index, line.type, at=line.created_at, done=line.status == "DONE", failed=line.status == "ERROR"
    )
    step.text, step.thinking = line.content, line.thinking
    match line.source, line.type:
        case _, "USER_INPUT":
            step.kind = "user"
        case "MODEL", "PLANNER_RESPONSE":
            step.kind = "model"
            if line.input_tokens is not None or line.output_tokens is not None:
                step.usage = Usage(
                    input=line.input_tokens, output=line.output_tokens, cache_read=line.cache_read_tokens
                )
            for number, call in enumerate(line.tool_calls):
                ident = f"step-{line.step_index}-{number}"
                step.calls.append(Called(ident, call.name, _arguments(call.args), native=False))
        case "MODEL", "GENERIC":
            step.kind = "tool"
        case "SYSTEM", "SYSTEM_MESSAGE":
            step.kind = "system"
        case _:
            step.whole = _any.decode(data)
    return step


def _called(call: bytes, derived: str) -> Called:
    ident, name = _wire.text(call, 1), _wire.text(call, 2)
    return Called(ident or derived, name or "", _arguments(_wire.text(call, 3)), native=ident is not None)


def _usage(meta: bytes) -> Usage | None:
    """Fields that are 0 are not written: a usage that stands there has them all."""
    usage = _wire.inside(meta, 9)
    if usage is None:
        return None
    counted = [_wire.number(usage, n) or 0 for n in (2, 3, 5)]
    return Usage(input=counted[0], output=counted[1], cache_read=counted[2]) if any(counted) else None


def _time(seconds: int | None, nanos: int) -> str | None:
    if not seconds or seconds > 253402300799 or nanos >= 1_000_000_000:
        return None
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z"


# ---------------------------------------------------------------- how it says things


def _arguments(given: Any) -> dict[str, Any]:
    value: Any = given
    if isinstance(given, str):
        try:
            value = msgspec.json.decode(given) if given else {}
        except msgspec.DecodeError:
            value = given
    if value is None:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"raw": value}


def _title(args: dict[str, Any]) -> str | None:
    title = args.get("toolSummary")
    return title if isinstance(title, str) else None


def _folder(uri: str | None) -> str | None:
    """The folder that a URI of a file names."""
    return unquote(urlparse(uri).path) if uri is not None and uri.startswith("file://") else None


def _uris(told: Any) -> list[str]:
    """URIs as a list in JSON, or one alone."""
    try:
        value = msgspec.json.decode(told) if isinstance(told, str) else None
    except msgspec.DecodeError:
        value = [told]
    return [v for v in cast("list[Any]", value) if isinstance(v, str)] if isinstance(value, list) else []


def _readable(values: dict[str, Any]) -> dict[str, Any]:
    """A row's values, its protobuf columns by field number."""
    return {k: _wire.plain(v) if isinstance(v, bytes) else v for k, v in values.items()}


def _viewed(text: str) -> str | None:
    """The whole file of a `view_file`: only where its lines make the stated number of bytes."""
    size = _SIZE.search(text)
    if _WHOLE not in text or size is None:
        return None
    lines = [m[2] for m in _NUMBERED.finditer(text[size.end() :])]
    whole = "\n".join(lines)
    return whole if len(whole.encode()) == int(size[1]) else None


def _after(call: Called, before: str | None, diff: str | None) -> str | None:
    """What an edit made of a file: what it wrote, or exactly what its old text and its diff both say."""
    whole = call.input.get("CodeContent")
    if call.name == "write_to_file" and isinstance(whole, str):
        return whole
    old, new = call.input.get("TargetContent"), call.input.get("ReplacementContent")
    if before is None or not isinstance(old, str) or not isinstance(new, str):
        return None
    after = replaced(before, [(old, new, call.input.get("AllowMultiple") is True)])
    if diff is not None and after is not None and patched(before, diff) != after:
        return None
    return after


RECORDER = AntigravityRecorder
