"""Sessions that fork each other at random: each response, turn and call counts once, whatever is recorded, in any order."""

import random
from pathlib import Path

import pytest

from asrd.recorders.base import StreamKey
from asrd.records import (
    Agent,
    CopyOf,
    Evidence,
    Inference,
    Lineage,
    LineageParent,
    Producer,
    Record,
    Session,
    ToolCall,
    Turn,
    Usage,
)
from asrd.store import Store
from tests.counting.stores import Parts, answers, filled, parts

Made = tuple[str, int]
"""A response that was made: how its id is made, and its number, which is its output too."""


def records(made: Made, place: int, copied_from: str | None) -> list[Record]:
    """A turn with one call and one response; where its id only numbers, it is that of its place in the file."""
    kind, number = made
    ident = {"native": f"resp-{number:016d}", "derived": f"derived:{number:016x}", "number": str(place)}[kind]
    turn, at = f"turn-{number:020d}", f"2026-11-30T00:{number // 60:02d}:{number % 60:02d}Z"
    copy = CopyOf(session_id=copied_from, native_id="x") if copied_from is not None else None
    return [
        Turn(turn_id=turn, phase="start", at=at, copy_of=copy),
        ToolCall(call_id=f"call-{number:020d}", name="shell", kind="execute", input={}, at=at, copy_of=copy),
        Inference(
            inference_id=ident,
            id_source=None if kind == "native" else "derived",
            model="m",
            turn_id=turn,
            usage=Usage(input=1, output=number),
            at=at,
            copy_of=copy,
        ),
        Turn(turn_id=turn, phase="end", status="completed", at=at, copy_of=copy),
    ]


def world(chance: random.Random, gone: bool) -> tuple[Parts, set[Made]]:
    """Streams of two to five sessions, forks of forks among them; `gone`: one is not recorded. What they hold, each once."""
    history: dict[str, list[Made]] = {}
    streams: Parts = []
    number = 0
    for n in range(chance.randint(2 + gone, 5)):
        parent = chance.choice([*history]) if n and chance.random() < 0.8 else None
        copied = history[parent][: chance.randint(0, len(history[parent]))] if parent is not None else []
        own: list[Made] = []
        for _ in range(chance.randint(0, 4)):
            number += 1
            own.append((chance.choice(("native", "derived", "number")), number))
        history[f"s{n}"] = copied + own
        lineage = Lineage(root=True)
        if parent is not None:
            lineage = Lineage(
                root=False,
                parent=LineageParent(agent="a", session_id=parent),
                relation="forked_from",
                evidence=Evidence(kind="native-field"),
            )
        given: list[Record] = [
            Session(
                format_version="0.1",
                agent=Agent(name="a"),
                session_id=f"s{n}",
                scope="primary",
                profiles=["usage"],
                lineage=lineage,
                producer=Producer(name="asrd", version="0", method="converter"),
                content_level="full",
                started_at=f"2026-11-30T{n:02d}:00:00Z",
            )
        ]
        for place, made in enumerate(history[f"s{n}"]):
            mark = parent if place < len(copied) and (made[0] != "native" or chance.random() < 0.7) else None
            given += records(made, place, mark)
        for seq, record in enumerate(given):
            record.seq, record.id = seq, f"r{seq}" if seq else "h"
        streams.append((StreamKey("a", f"s{n}"), given))
    if gone:
        del streams[chance.randrange(len(streams))]
    return streams, {made for key, _ in streams for made in history[key.session_id]}


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("seed", [pytest.param(s, marks=() if s < 6 else pytest.mark.slow) for s in range(60)])
def test_what_forks_share_counts_once(seed: int, gone: bool, tmp_path: Path) -> None:
    chance = random.Random(f"{seed} {gone}")
    streams, held = world(chance, gone)

    wanted = answers(filled(tmp_path / "whole", streams))

    assert wanted["usage"]["total"]["requests"] == len(held)
    assert (wanted["usage"]["total"]["output"] or 0) == sum(number for _, number in held)
    assert {table: len(rows) for table, rows in wanted["counted"].items()} == dict.fromkeys(
        ("inference", "call", "turn"), len(held)
    )
    for n in range(2):
        where = filled(tmp_path / str(n), parts(dict(streams), chance), chance)
        assert answers(where) == wanted
        store = Store(where)
        store.reindex()
        store.close()
        assert answers(where) == wanted
