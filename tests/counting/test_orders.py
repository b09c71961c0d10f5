"""The order in which streams arrive, and repeated import, change no answer (U1)."""

import random
from pathlib import Path

import pytest

from asrd.convert import Streams, convert_home
from asrd.daemon import sync_once
from asrd.recorders.base import StreamKey
from asrd.store import Store
from tests.counting.stores import answers, copied, filled, parts, streams_of
from tests.golden import CAPTURES
from tests.homes import recorded
from tests.pitfalls import CASES, S1

GROUPS = {
    "forks and copies": ("claude-code/S3", "codex/S3", "pi/S3", "opencode/S3"),
    "sub-agents": ("claude-code/S2", "codex/S2-v2", "kimi/S2", "gemini/S2"),
    "one harness in another": ("claude-code/S6-claude-runs-codex", "codex/S6-claude-runs-codex"),
    "native and ACP": ("claude-code/S7-acp", "acp/claude", "codex/S7-acp", "acp/codex", "hermes/S7-acp", "acp/hermes"),
    "one session in two stores": ("cursor/S1", "cursor-desktop/S1"),
    "one session, and a transcript of it": ("cursor/S1-transcript", "cursor-desktop/S1"),
    "native and ACP, by another name": ("openclaw/S7-acp", "acp/openclaw"),
}


@pytest.mark.parametrize("group", GROUPS)
def test_any_order_of_arrival_gives_the_same_answers(group: str, tmp_path: Path) -> None:
    same_in_any_order(streams_of(*GROUPS[group]), tmp_path, [f"{group} {n}" for n in range(4)])


def same_in_any_order(streams: Streams, folder: Path, seeds: list[str]) -> None:
    """Arriving in parts, in any order, and indexed anew: the same answers."""
    wanted = answers(filled(folder / "whole", list(streams.items())))
    assert wanted["usage"]["total"]["requests"] > 0

    for number, seed in enumerate(seeds):
        chance = random.Random(seed)
        where = filled(folder / str(number), parts(streams, chance), chance)
        assert answers(where) == wanted, f"seed {seed}"

        store = Store(where)
        store.reindex()
        store.close()
        assert answers(where) == wanted, f"seed {seed}, made anew"


def test_importing_again_adds_nothing(tmp_path: Path) -> None:
    with recorded(CAPTURES / "claude-code/S3/home", tmp_path / "store") as one:
        before, kept = answers(one.where), one.streams()
        (one.where.cursors).unlink()

        sync_once(one.where, {"HOME": str(CAPTURES / "claude-code/S3/home"), "ASRD_HOME": str(tmp_path / "store")})

        assert answers(one.where) == before
        assert one.streams() == kept


@pytest.mark.parametrize(
    "ident",
    [
        "C12",
        "claude-trio",
        "codex-tree",
        "pi-fork",
        "B5",
        "X27",
        "fork-of-fork-pi",
        "fork-of-fork-codex",
        "gone-middle-pi",
    ],
)
def test_any_order_of_arrival_gives_the_same_answers_of_a_pitfall(ident: str, tmp_path: Path) -> None:
    write = CASES[ident].write
    assert write is not None
    write(tmp_path / "home")

    same_in_any_order(convert_home(tmp_path / "home"), tmp_path, [f"{ident} {n}" for n in range(6)])


@pytest.mark.parametrize("first", [0, 1])
def test_a_session_that_went_on_otherwise_elsewhere_counts_once_in_any_order(first: int, tmp_path: Path) -> None:
    """Two machines' streams of one session, with two compactions that forks wrote, and one that stands in no line."""
    write = CASES["C12"].write
    assert write is not None
    write(tmp_path / "home")
    streams = convert_home(tmp_path / "home")
    (main,) = [key for key in streams if not key.namespace]
    other = StreamKey(main.agent, main.session_id, "~conflict-0123456789ab")
    both = [[*streams.items(), (other, copied(streams[main]))], [(other, copied(streams[main])), *streams.items()]]

    told = answers(filled(tmp_path / "store", both[first]))["usage"]

    assert (told["total"]["requests"], told["total"]["unmeasuredRequests"]) == (4, 1)
    assert [
        (s["sessionId"], s["requests"], s["unmeasuredRequests"]) for s in told["bySession"] if s["sessionId"] == S1
    ] == [(S1, 2, 1)]
