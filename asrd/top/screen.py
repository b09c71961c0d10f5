"""The live view: sessions that run now, and below the last things that the chosen one said and did."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static

from asrd.text import inert, one_line, when
from asrd.top.words import name_of, ordered, price, short_number, summed

EVERY = 2.0
"""Seconds between looks."""
LAST = 8
"""Records of the chosen session that are shown."""
ORDERS = ("changed", "tokens", "cost")


class Top(App[None]):
    """`look` gives asrd.top/1; `last(session, count)` gives its last records."""

    CSS = """
    #sum { height: auto; padding: 0 1; }
    #sessions { height: 1fr; }
    #last { height: auto; max-height: 40%; padding: 0 1; border-top: solid $primary; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "quit", "Quit"),
        Binding("o", "order", "Order"),
        Binding("j", "down", "Next", show=False),
        Binding("k", "up", "Previous", show=False),
        Binding("r", "look", "Look now"),
    ]
    ENABLE_COMMAND_PALETTE = False
    TITLE = "asrd top"

    def __init__(
        self,
        look: Callable[[], dict[str, Any]],
        last: Callable[[dict[str, Any], int], list[dict[str, Any]]],
        every: float = EVERY,
    ) -> None:
        super().__init__()
        self._look, self._last, self._every = look, last, every
        self._sessions: list[dict[str, Any]] = []
        self._order = 0
        self._read_for: tuple[Any, ...] | None = None

    def compose(self) -> ComposeResult:
        """The parts of the screen."""
        yield Static("…", id="sum", markup=False)
        yield DataTable[Text](id="sessions", cursor_type="row", zebra_stripes=True)
        yield Static("", id="last", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Looks at once, then again and again."""
        table = self._table()
        for name in ("STATE", "HARNESS", "CHANGED", "IN/MIN", "OUT/MIN", "TODAY", "COST", "WHAT"):
            table.add_column(name, key=name)
        table.focus()
        self.look()
        self.set_interval(self._every, self.look)

    def _table(self) -> DataTable[Text]:
        found: Any = self.query_one("#sessions")
        return found

    @work(thread=True, exclusive=True, group="look")
    def look(self) -> None:
        """Asks for what runs now, in a thread."""
        try:
            answer = self._look()
        except Exception as error:  # what goes wrong once is tried again at the next look
            self.call_from_thread(self._say, f"could not look: {inert(str(error))}")
            return
        self.call_from_thread(self.show, answer)

    def _say(self, words: str) -> None:
        self.query_one("#sum", Static).update(words)

    def show(self, answer: dict[str, Any]) -> None:
        """What was answered, with the cursor where it was."""
        self._say(summed(answer))
        table = self._table()
        chosen = self._chosen()
        self._sessions = ordered(answer["sessions"], ORDERS[self._order])
        now = datetime.fromisoformat(answer["at"]).replace(tzinfo=UTC)
        table.clear()
        for one in self._sessions:
            table.add_row(*cells(one, now))
        names = [name_of(s) for s in self._sessions]
        if chosen is not None and name_of(chosen) in names:
            table.move_cursor(row=names.index(name_of(chosen)))
        self._tell()

    def _chosen(self) -> dict[str, Any] | None:
        row = self._table().cursor_row
        return self._sessions[row] if 0 <= row < len(self._sessions) else None

    def on_data_table_row_highlighted(self) -> None:
        """Another session was chosen."""
        self._tell()

    def _tell(self) -> None:
        chosen = self._chosen()
        asked = (*name_of(chosen), chosen["records"]) if chosen else None
        if chosen is None:
            self.query_one("#last", Static).update("Nothing runs now.")
        elif asked != self._read_for:
            self._read(chosen)
        self._read_for = asked

    @work(thread=True, exclusive=True, group="last")
    def _read(self, chosen: dict[str, Any]) -> None:
        try:
            records = self._last(chosen, LAST)
        except Exception as error:  # as above
            self.call_from_thread(self.query_one("#last", Static).update, inert(str(error)))
            return
        words = Text("\n").join(told(r, 200) for r in records)
        self.call_from_thread(self.query_one("#last", Static).update, words)

    def action_order(self) -> None:
        """The next order: by change, tokens a minute, cost."""
        self._order = (self._order + 1) % len(ORDERS)
        self.notify(f"ordered by {ORDERS[self._order]}", timeout=1.5)
        self.look()

    def action_look(self) -> None:
        """Looks now."""
        self.look()

    def action_down(self) -> None:
        """The next session."""
        self._table().action_cursor_down()

    def action_up(self) -> None:
        """The session before."""
        self._table().action_cursor_up()


def cells(one: dict[str, Any], now: datetime) -> list[Text]:
    """A session's row."""
    rate, today = one["perMinute"], one["today"]
    title = ("↳ " if one["subagent"] else "") + one_line(one["title"] or one["cwd"] or one["sessionId"], 100)
    return [
        Text("● working" if one["working"] else f"○ {inert(one['state'])}", style="green" if one["working"] else "dim"),
        Text(one_line(one["agent"], 16)),
        Text(when(one["lastAt"], now)),
        Text(short_number(rate["input"]), justify="right"),
        Text(short_number(rate["output"]), justify="right"),
        Text(short_number(today["inputTotal"] if today else None), justify="right"),
        Text(price(today), justify="right"),
        Text(title),
    ]


def told(record: dict[str, Any], width: int) -> Text:
    """A record on one line: what it is, and the first words of it."""
    kind = record["type"]
    words: Any
    if kind == "message":
        kind = record["role"]
        words = " ".join(str(b.get("text") or b.get("summary") or f"[{b['type']}]") for b in record["content"])
    elif kind == "tool_call":
        kind, given = record["name"], record["input"]
        words = given.get("command") or given.get("cmd") or given.get("file_path") or given.get("path") or given
    elif kind == "tool_result":
        ran: dict[str, Any] = record.get("exec") or {}
        code = ran.get("exitCode")
        kind = record["status"] + (f" {code}" if code is not None else "")
        blocks: list[dict[str, Any]] = record.get("content") or []
        words = " ".join(str(b.get("text") or f"[{b['type']}]") for b in blocks)
    else:
        words = {k: v for k, v in record.items() if k not in ("type", "seq", "id", "at", "_meta", "nativeId", "turnId")}
    said = words if isinstance(words, str) else msgspec.json.encode(words).decode()
    name = one_line(kind, 14)
    return Text.assemble((f"{name:<15}", "bold"), one_line(said, width - 16))
