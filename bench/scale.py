"""Answers from a large index: 10,000 streams, 2,000,000 records: `python bench/scale.py [FOLDER]`.

The rows are made straight into an index (the streams are headers only, so that `show` has nothing to show); what is
measured is what a user waits for: `asrd usage`, `asrd tree ROOT` of a root with 500 descendants, and one record more.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from asrd import clock, query
from asrd.client import open_reader
from asrd.handoff import session_digest
from asrd.paths import folders
from asrd.recorders.base import StreamKey
from asrd.records import Inference, Usage
from asrd.rollup import CallRow, InferenceRow, SessionRow, TurnRow
from asrd.store import Store
from asrd.store.index import CALL, INFERENCE, SESSION, TURN, Grown
from asrd.store.rows import IndexRows

STREAMS, RECORDS = 10_000, 200
"""Streams, and records of each."""
DESCENDANTS = 500
MODELS = ("claude-sonnet-4-6", "claude-opus-4-5", "gpt-5.5", "gpt-5.1-codex", "kimi-k2.5")


def at(second: int) -> str:
    """A moment so many seconds into the year."""
    day, rest = divmod(second, 86400)
    return (
        f"2026-{day // 28 + 1:02d}-{day % 28 + 1:02d}T{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}.000Z"
    )


def fill(store: Store) -> None:
    """The rows of 10,000 sessions: a root with 500 below it in three levels, the others in small trees."""
    chance = random.Random(7)
    db = store.index._db  # pyright: ignore[reportPrivateUsage]
    parents: dict[int, int] = {}
    for n in range(2, DESCENDANTS + 2):
        parents[n] = 1 if n < 52 else chance.randrange(1, min(n, 252))
    for n in range(DESCENDANTS + 2, STREAMS + 1):
        if n % 3:
            parents[n] = n - n % 3
    for n in range(1, STREAMS + 1):
        agent = "claude-code" if n <= DESCENDANTS + 1 or n % 2 else "codex"
        parent = parents.get(n)
        if parent is not None and parent > DESCENDANTS + 1:
            agent = "claude-code" if parent % 2 else "codex"
        key = StreamKey(agent, f"session-{n:05d}")
        start = chance.randrange(0, 300 * 86400)
        row = SessionRow(
            *(key.agent, key.session_id),
            records=RECORDS,
            started_at=at(start),
            first_at=at(start),
            last_at=at(start + 3600),
            title=f"work {n}",
            cwd=f"/home/dev/project-{n % 40}",
            branch="main",
            root=int(parent is None),
            digest=session_digest(key),
            turns=10,
            calls=50,
        )
        if parent is not None:
            row.parent_agent, row.parent_session = agent, f"session-{parent:05d}"
            row.parent_relation, row.parent_evidence, row.parent_namespace = "spawned_by", "native-field", ""
        stream = store.path(key)
        stream.parent.mkdir(parents=True, exist_ok=True)
        stream.write_bytes(
            b'{"type":"session","seq":0,"id":"h","agent":{"name":"%s"},"sessionId":"%s"}\n'
            % (agent.encode(), key.session_id.encode())
        )
        row.path, row.bytes = str(stream.relative_to(store.folders.streams)), stream.stat().st_size
        _insert(db, "session", ["id", *SESSION], [(n, *_of(row, SESSION))])
        usual = chance.choice(MODELS)
        said = [
            InferenceRow(
                f"{agent}\x1fmsg-{n}-{k}", k * 5, at(start + k * 90), usual if k % 20 else "gpt-5.5", "p", "high", f"t{k // 4}",
                chance.randrange(5000), chance.randrange(2000), 40_000, 900, None, None, 10, None, None, None, 1, "main", 900.0,
            )
            for k in range(40)
        ]  # fmt: skip
        _insert(
            db, "inference", ["session", *INFERENCE, "counted", "owner"], [(n, *_of(r, INFERENCE), 1, n) for r in said]
        )
        calls = [
            CallRow(f"{agent}\x1fcall-{n}-{k}", f"call-{n}-{k}", k * 4, at(start + k * 70), f"t{k // 5}", "Bash", "execute",
                    None, k * 4 + 1, at(start + k * 70 + 9), "completed", 0)
            for k in range(50)
        ]  # fmt: skip
        _insert(db, "call", ["session", *CALL, "counted", "owner"], [(n, *_of(r, CALL), 1, n) for r in calls])
        turns = [
            TurnRow(f"{agent}\x1ft-{n}-{k}", f"t-{n}-{k}", k * 20, at(start + k * 360), at(start + k * 360 + 300),
                    "prompt", "completed", None)
            for k in range(10)
        ]  # fmt: skip
        store.index._sum_up()  # pyright: ignore[reportPrivateUsage]
        _insert(db, "turn", ["session", *TURN, "counted", "owner"], [(n, *_of(r, TURN), 1, n) for r in turns])
    db.commit()


def _of(row: object, columns: list[str]) -> tuple[object, ...]:
    return tuple(getattr(row, c) for c in columns)


def _insert(db: object, table: str, columns: list[str], rows: list[tuple[object, ...]]) -> None:
    names = ", ".join(f'"{c}"' for c in columns)
    db.executemany(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})", rows)  # type: ignore[attr-defined]


def measured(what: str, act: object, times: int = 5) -> None:
    """Prints the best and the worst of some times, in milliseconds."""
    took: list[float] = []
    for _ in range(times):
        start = clock.ticks()
        act()  # type: ignore[operator]
        took.append((clock.ticks() - start) * 1000)
    sys.stdout.write(f"{what:<52}{min(took):8.1f} ms best {max(took):8.1f} ms worst\n")


def main() -> None:
    """Makes the index once, then measures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="asrd-scale-"))
    env = {**os.environ, "HOME": str(folder / "home"), "ASRD_HOME": str(folder / "store")}
    (folder / "home").mkdir(parents=True, exist_ok=True)
    where = folders(env)
    store = Store(where)
    if store.index.rebuilt:
        start = clock.ticks()
        fill(store)
        sys.stdout.write(f"index made in {clock.ticks() - start:.0f} s, {where.index.stat().st_size / 1e6:.0f} MB\n")
    rows = IndexRows(open_reader(where), where.streams)
    measured("usage (in process)", lambda: query.usage(rows))
    measured(
        "usage --since/--until, no whole quarters",
        lambda: query.usage(rows, since="2026-03-01T00:07", until="2026-03-09T11:11"),
    )
    measured("tree ROOT, 500 descendants (in process)", lambda: query.tree(rows, "session-00001"))
    measured("usage ROOT --tree (in process)", lambda: query.usage(rows, ref="session-00001", tree_of=True))
    measured("time ROOT --tree (in process)", lambda: query.time(rows, ref="session-00001", tree_of=True))
    measured("tree of all (in process)", lambda: query.tree(rows, None), 2)
    key = StreamKey("claude-code", "session-00001")
    before = query.usage(rows)["total"]["requests"]
    seq = [RECORDS]

    def one_more() -> None:
        seq[0] += 1
        response = Inference(
            inference_id=f"new-{clock.ticks()}", model="gpt-5.5", at=at(9), usage=Usage(input=1, output=1)
        )
        response.seq, response.id = seq[0], f"r{seq[0]}"
        path = store.path(key)
        store.index.add([Grown(key, path, path.stat().st_size, [response])])

    measured("one record more, into the index", one_more)
    after = query.usage(rows)["total"]["requests"]
    root = query.tree(rows, "session-00001")["roots"][0]
    store.index.catch_up(store.disk)
    sys.stdout.write(
        f"usage saw {after - before} of 5 more; the tree shows {root['own']['requests']} requests of the root\n"
    )
    store.close()
    asrd = [sys.executable, "-m", "asrd"]
    for words in (["usage"], ["usage", "--json"], ["tree", "session-00001"]):
        measured(f"asrd {' '.join(words)} (command)", Asked([*asrd, *words], env), 3)


class Asked:
    """A command in a process of its own."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        self.words, self.env = words, env

    def __call__(self) -> None:
        """Runs it."""
        subprocess.run(self.words, env=self.env, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
