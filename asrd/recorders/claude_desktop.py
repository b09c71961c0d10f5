r"""Claude Desktop, local Code sessions: a JSON document a session, beside the file that Claude Code writes.

Where, below the application's own folder (`~/Library/Application Support/Claude`, `~/.config/Claude`,
`AppData/Roaming/Claude`):

    claude-code-sessions/<account>/<organization>/local_<uuid>.json     rewritten in place

From documents: a published document of it, its private parts taken out, and public descriptions of the folder.

    {"sessionId":"local_3573…","cliSessionId":"a964…","cwd":"/…","originCwd":"/…","createdAt":1789439275817,
     "lastActivityAt":1789439309277,"lastFocusedAt":…,"model":"claude-opus-5","effort":"medium","isArchived":false,
     "title":"…","titleSource":"auto","permissionMode":"auto","enabledMcpTools":{…},"remoteMcpServersConfig":[…]}

What is particular
    - What was said and done stands in Claude Code's file (`cliSessionId` is its id; its lines say `entrypoint:
      claude-desktop`): this stream is `secondary`, with a link `observes` to it. Nothing here counts.
    - Of connected servers only how many there are is kept: their configuration is a person's own, and may hold keys.
    - `lastActivityAt` and `lastFocusedAt` change all the time and tell of nothing that happened in the session.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Struct

from asrd.recorders.base import Recorder, StreamKey, StreamOut, from_ms
from asrd.records import Capture, Config, Evidence, Lineage, Link, LinkTarget
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


class State(Struct):
    """All that is kept between items."""

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
    places = (Place("claude-code-sessions/*/*/local_*.json", "document"),)
    versions = ()
    evidence = "documents"
    State = State
    state: State

    @classmethod
    def locate(cls, path: str) -> Located | None:
        """The account and organization are no part of a name: a session stays itself when it moves between them."""
        name = path.split("/")[-1]
        return Located(group=name, name=f"claude-code-sessions/{name}")

    @classmethod
    def claims(cls, head: bytes) -> bool:
        return (
            head.lstrip()[:1] == b"{"
            and b'"cliSessionId"' in head
            and b'"sessionId":"local_' in head.replace(b" ", b"")
        )

    def receive(self, source: Source, item: Line | Row) -> None:
        told = _document.decode(item.data)
        whole = cast("dict[str, Any]", _any.decode(item.data))
        state = self.state
        state.session = state.session or told.sessionId
        stream = self._open(told)
        if told.cliSessionId and told.cliSessionId != state.linked:
            state.linked = told.cliSessionId
            stream.add(
                Link(
                    relation="observes",
                    target=LinkTarget(agent="claude-code", session_id=told.cliSessionId),
                    evidence=Evidence(kind="native-field", field="cliSessionId", value=told.cliSessionId),
                )
            )
        self._settings(stream, told, whole)
        if not self.out.noted():
            self.out.skip("nothing-new")

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
            lineage=Lineage(),
        )
        stream.add(
            Capture(profile="core", state="unavailable", reason="what was said and done stands in Claude Code's file")
        )
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


RECORDER = ClaudeDesktopRecorder
