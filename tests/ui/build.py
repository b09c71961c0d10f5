"""Stores for the page: a session with one of everything, with words that would do harm, and a very long one."""

import contextlib
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

from asrd.paths import Folders, folders
from asrd.recorders.base import StreamKey
from asrd.records import (
    Error,
    Exec,
    FileChange,
    Gap,
    Inference,
    Lineage,
    LineageParent,
    Loss,
    Message,
    Place,
    Plan,
    PlanItem,
    Span,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
    Workspace,
    WorkspaceRoot,
)
from asrd.store import Store
from asrd.ui.server import Viewer
from asrd.ui.view import Ref
from tests.store.build import Made, child_of

HOSTILE = [
    "<script>window.harmed = 1</script>",
    "<img src=x onerror='window.harmed = 1'>",
    '"><svg onload=window.harmed=1>',
    "javascript:window.harmed=1 [click](javascript:window.harmed=1)",
    "</script><script>window.harmed=1</script>",
    "\u202egnp.exe\u2066 \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x1b[2J\x1b[31mred\x1b[0m",
    "<style>*{display:none}</style><iframe src=//evil.example></iframe>",
    "<!--<script>",
]
"""What a page must show as words."""
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
"""In the shape of a token; it opens nothing."""
CARGO = "\x1b[1m\x1b[32m   Compiling\x1b[0m app\r\n0%\r50%\r100% done\n\x1b[31merror\x1b[0m: no such function\x1b[K\x1b[?25l\n"
DIFF = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"

STORY = Ref("codex", "story")
CHILD = Ref("codex", "child", "story")
EVIL = Ref("codex", "evil")
LONG = Ref("codex", "long")


def at(n: int) -> str:
    """The n-th second of a day."""
    return f"2026-11-02T{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}.000Z"


def story() -> list[Made]:
    """A prompt, a thought, an answer, a call that failed, an edit, a sub-agent, a gap and a loss."""
    here = Workspace(roots=[WorkspaceRoot(id="w", path="/home/dev/app")])
    one = Made("story", started_at=at(0), workspace=here)
    one.add(Turn(turn_id="t1", phase="start", trigger="prompt", at=at(0)))
    one.prompt("Fix **add** so that `./check.sh` passes.\n```py\nassert add(2, 3) == 5\n```", at=at(0))
    one.add(Message(role="system", author="harness", origin="injected", content=[Text(text="Be brief.")], at=at(0)))
    one.add(Inference(inference_id="i1", model="gpt-5", usage=Usage(input=1000, output=20, cache_read=300), at=at(1)))
    one.add(Message(role="assistant", content=[Thinking(text="The sign is wrong.\nI should look.")], at=at(1)))
    one.add(Message(role="assistant", content=[Text(text="I will look at **calc.py**.")], at=at(2)))
    one.add(ToolCall(call_id="c1", name="shell", kind="execute", input={"command": "cargo test"}, at=at(3)))
    one.add(
        ToolResult(
            call_id="c1", linkage="exact", status="failed", content=[Text(text=CARGO)],
            exec=Exec(command="cargo test", exit_code=101, duration_ms=1200), at=at(4),
        )
    )  # fmt: skip
    one.add(ToolCall(call_id="c2", name="edit", kind="edit", input={"path": "calc.py"}, at=at(5)))
    one.add(
        FileChange(path=Place(path="calc.py"), change="modify", call_id="c2", diff=DIFF, evidence="observed", at=at(5))
    )
    one.add(ToolResult(call_id="c2", linkage="exact", status="completed", at=at(5)))
    one.add(
        Plan(items=[PlanItem(text="fix", status="completed"), PlanItem(text="test", status="in_progress")], at=at(6))
    )
    one.add(ToolCall(call_id="c3", name="spawn", kind="delegate", input={"prompt": "Read the notes."}, at=at(7)))
    one.add(ToolResult(call_id="c3", linkage="exact", status="completed", content=[Text(text="read")], at=at(9)))
    one.add(Gap(reason="torn", span=Span(source="s1", start=900, end=999), bytes=99))
    one.add(Loss(reason="not JSON", span=Span(source="s1", start=999, end=1010), preview="{oops", sha256="ab" * 32))
    one.add(Message(role="assistant", content=[Text(text="It passes now. " + f"The token was {SECRET}.")], at=at(10)))
    one.add(Turn(turn_id="t1", phase="end", status="completed", at=at(11)))
    child = Made("child", namespace="story", started_at=at(7), lineage=_below("story", "c3"))
    child.prompt("Read the notes.", at=at(7))
    child.add(Message(role="assistant", content=[Text(text="The notes say 42.")], at=at(8)))
    child.add(Inference(inference_id="i2", model="gpt-5", usage=Usage(input=10, output=5), at=at(8)))
    return [one, child]


def _below(parent: str, call: str) -> Lineage:
    found = child_of(parent)
    assert found.parent is not None
    found.parent = LineageParent(agent="codex", session_id=parent, call_id=call)
    return found


def evil() -> Made:
    """Words that would do harm, in each place that a page shows."""
    one = Made("evil", started_at=at(0), title=HOSTILE[0])
    one.add(Turn(turn_id="t", phase="start", trigger=HOSTILE[1], at=at(0)))
    for n, words in enumerate(HOSTILE):
        one.prompt(words, at=at(n))
        one.add(
            Message(role="assistant", content=[Thinking(text=words), Text(text=f"```html\n{words}\n```")], at=at(n))
        )
        one.add(ToolCall(call_id=f"c{n}", name=words, kind="execute", input={"command": words}, at=at(n)))
        one.add(ToolResult(call_id=f"c{n}", linkage="exact", status="completed", content=[Text(text=words)], at=at(n)))
        one.add(FileChange(path=Place(path=words), change="modify", diff=f"+{words}", at=at(n)))
    one.add(
        Inference(
            inference_id="i",
            model=HOSTILE[1],
            usage=Usage(input=1, output=1),
            error=Error(message=HOSTILE[0]),
            at=at(9),
        )
    )
    return one


def long(count: int) -> Made:
    """So many records: prompts, answers of all lengths, calls with output. The last prompt has the word `needle`."""
    one = Made("long", started_at=at(0))
    while len(one.records) < count - 1:
        n = len(one.records)
        if n % 40 == 1:
            one.prompt(f"Step {n}: go on.", at=at(n))
        elif n % 3 == 0:
            one.add(
                Message(role="assistant", content=[Text(text=f"Answer {n}. " + "Words of it. " * (n % 17))], at=at(n))
            )
        elif n % 3 == 1:
            one.add(
                ToolCall(call_id=f"c{n}", name="shell", kind="execute", input={"command": f"make step-{n}"}, at=at(n))
            )
        else:
            text = "\n".join(f"line {k} of {n}" for k in range(n % 19))
            one.add(
                ToolResult(
                    call_id=f"c{n - 1}",
                    linkage="exact" if (n - 1) % 40 != 1 else "none",
                    status="completed",
                    content=[Text(text=text)],
                    exec=Exec(exit_code=0),
                    at=at(n),
                )
            )
    one.prompt("Find the needle here.", at=at(count))
    return one


def lay(where: Folders, *made: Made) -> None:
    """Puts streams into a store."""
    store = Store(where)
    for one in made:
        store.append(one.key, one.records)
    store.sync()
    store.close()


def grow(where: Folders, key: StreamKey, *records: Any) -> None:
    """Adds records to a stream."""
    store = Store(where)
    start = store.next_seq(key)
    for n, record in enumerate(records):
        record.seq, record.id = start + n, f"r{start + n}"
    store.append(key, list(records))
    store.sync()
    store.close()


def where_of(work: Path) -> Folders:
    return folders({"HOME": str(work / "home"), "ASRD_HOME": str(work / "store")})


@contextlib.contextmanager
def viewing(where: Folders) -> Generator[Viewer]:
    """The page, served."""
    viewer = Viewer(where)
    thread = threading.Thread(target=viewer.run)
    thread.start()
    try:
        yield viewer
    finally:
        viewer.stop()
        thread.join(10)
        assert not thread.is_alive()
