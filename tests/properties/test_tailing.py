"""Whatever happens to a source while it is followed, nothing is lost, nothing doubled, and what went missing is said.

The model: what was ever seen of a source, line by line. Actions: Write, Tear (a part of a line), Truncate, Replace, Rename,
Delete, Look (a hint or a scan), Restart, PowerCut; hints come late, twice or never, as the file is looked at anyway.

One thing is not promised, and left out here: when the state of a capture is lost (a kill within `tail.SAVE_AFTER` seconds of
the last line, or deleted cursors), a stream knows its lines by their places alone, so a file that was given other content
with the same first line, before the kill or while nothing ran, is taken for the one that was recorded.
"""

import json
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from asrd.paths import folders
from asrd.records import AnyRecord, Gap, Message, Text, decode
from asrd.store import Store
from asrd.store.index import remove, stream_files
from asrd.tail import Quiet, Tail
from tests.disks import FragileDisk
from tests.homes import environment

FOLDER = Path(".codex/sessions/2026/11/30")
ARCHIVE = Path(".codex/archived_sessions")
THREAD = "01a22abf-7916-7f20-b35c-e52e5017a6b6"
NAME = f"rollout-2026-11-30T04-38-41-{THREAD}.jsonl"


def meta() -> bytes:
    told: dict[str, Any] = {"id": THREAD, "timestamp": "2026-11-30T04:38:41.000Z", "cwd": "/home/dev/app"}
    return line("session_meta", told | {"cli_version": "0.141.0", "source": "cli", "originator": "codex_exec"})


def said(number: int) -> bytes:
    content = [{"type": "output_text", "text": f"word {number}"}]
    told: dict[str, Any] = {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": content}
    return line("response_item", told)


def line(kind: str, payload: dict[str, Any]) -> bytes:
    return json.dumps({"timestamp": "2026-11-30T04:38:42.000Z", "type": kind, "payload": payload}).encode() + b"\n"


class Following(RuleBasedStateMachine):
    """A rollout that is written, torn, cut, replaced, moved and removed while a store follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.work = Path(tempfile.mkdtemp(prefix="asrd-tailing-"))
        self.home = self.work / "home"
        (self.home / FOLDER).mkdir(parents=True)
        (self.home / ARCHIVE).mkdir()
        self.where = folders(environment(self.home, self.work / "store"))
        self.path = self.home / FOLDER / NAME
        self.path.write_bytes(meta())
        self.number = 0
        self.torn = b""
        self.written: list[int] = []
        """Whole lines that stand in the file now."""
        self.seen: list[int] = []
        """Lines that were whole in the file at a look, in the order in which they were seen first."""
        self.may_miss: set[int] = set()
        """Lines that were gone before any look."""
        self.shrunk = 0
        self.chance = random.Random(0)
        self.there = True
        self.open()

    # the store

    def open(self) -> None:
        self.known = False
        self.disk = FragileDisk()
        self.store = Store(self.where, self.disk)
        self.store.index.catch_up(self.disk)
        self.tail = Tail(self.store, self.home, {}, Quiet())

    def teardown(self) -> None:
        self.tail.close()
        self.store.close()
        shutil.rmtree(self.work)

    def records(self) -> list[AnyRecord]:
        found: list[AnyRecord] = []
        for path in stream_files(self.where.streams):
            found += [decode(x) for x in path.read_bytes().splitlines()]
        return found

    # what happens to the source

    @rule(count=st.integers(1, 4))
    @precondition(lambda self: self.there)
    def write(self, count: int) -> None:
        for _ in range(count):
            rest = self.torn_rest if self.torn else said(self.next())
            with self.path.open("ab") as file:
                file.write(rest)
            self.torn = b""
            self.written.append(self.number)

    @rule(share=st.floats(0.05, 0.95))
    @precondition(lambda self: self.there and not self.torn)
    def tear(self, share: float) -> None:
        data = said(self.next())
        cut = max(1, int(len(data) * share))
        self.torn, self.torn_rest = data[:cut], data[cut:]
        with self.path.open("ab") as file:
            file.write(self.torn)

    @rule(keep=st.integers(0, 3))
    @precondition(lambda self: self.there and len(self.written) > 1 and self.looked)
    def truncate(self, keep: int) -> None:
        kept = self.written[:keep]
        self.rewrite(kept, in_place=True)

    @rule(same=st.integers(0, 2))
    @precondition(lambda self: self.there and bool(self.written) and self.looked)
    def replace(self, same: int) -> None:
        """Another file at its place, of some lines that were there and some that were not."""
        new = [self.next() for _ in range(2)]
        self.rewrite([*new, *self.written[:same]], in_place=False)

    def rewrite(self, numbers: list[int], in_place: bool) -> None:
        if not self.known:
            self.look()
        data = meta() + b"".join(said(n) for n in numbers)
        gone = set(self.written) - set(numbers)
        self.may_miss |= gone - set(self.seen)
        known = gone & set(self.seen)
        if in_place:
            with self.path.open("r+b") as file:
                file.truncate(0)
                file.write(data)
        else:
            other = self.path.with_suffix(".new")
            other.write_bytes(data)
            os.replace(other, self.path)
        self.written, self.torn = list(numbers), b""
        self.shrunk += 1
        self.look()  # a change that is undone before any look cannot be seen
        if known:
            self.check_gap()

    @rule()
    @precondition(lambda self: self.there)
    def rename(self) -> None:
        folder = ARCHIVE if self.path.parent == self.home / FOLDER else FOLDER
        self.path = self.path.rename(self.home / folder / NAME)

    @rule()
    @precondition(lambda self: self.there and self.looked)
    def delete(self) -> None:
        self.may_miss |= set(self.written) - set(self.seen)
        self.path.unlink()
        self.there = False

    # what the daemon does

    looked = False
    torn_rest = b""

    @rule(by_hint=st.booleans(), slices=st.sampled_from([1, 300, 1 << 20]), sync=st.booleans())
    def look(self, by_hint: bool = False, slices: int = 1 << 20, sync: bool = True) -> None:
        if by_hint and self.there:
            group = self.tail.at(str(self.path))
            groups = [group] if group is not None else []
        else:
            groups = self.tail.scan()
        for group in groups:
            while self.tail.observe(group, slices):
                pass
        if self.there:
            self.looked = self.known = True
            self.seen += [n for n in self.written if n not in self.seen]
        if sync:
            self.tail.sync()

    @rule(save=st.booleans())
    def restart(self, save: bool) -> None:
        if save or self.shrunk:
            self.tail.close()
        self.store.close()
        self.open()

    @rule(cursors=st.booleans(), index=st.booleans(), seed=st.integers(0, 99))
    def power_cut(self, cursors: bool, index: bool, seed: int) -> None:
        if self.shrunk:
            self.tail.close()
            cursors = False
        self.store.index.close()
        self.store.cursors.close()
        self.disk.lose(random.Random(seed))
        if cursors:
            remove(self.where.cursors)
        if index:
            remove(self.where.index)
        durable = self.words()
        lost = [n for n in self.seen if n not in durable]
        self.may_miss |= set(lost) - set(self.written)  # it was seen, not yet durable, and is gone
        self.open()
        self.look()

    def next(self) -> int:
        self.number += 1
        return self.number

    # what must hold

    def words(self) -> list[int]:
        found: list[int] = []
        for r in self.records():
            if isinstance(r, Message):
                found += [
                    int(b.text.split()[1]) for b in r.content if isinstance(b, Text) and b.text.startswith("word")
                ]
        return found

    def check_gap(self) -> None:
        gaps = [r.reason for r in self.records() if isinstance(r, Gap)]
        assert gaps, "what the file lost is said nowhere"
        assert set(gaps) <= {"truncated", "replaced", "deleted"}

    @invariant()
    def nothing_is_doubled(self) -> None:
        words = self.words()
        assert len(words) == len(set(words)), words

    @invariant()
    def the_stream_is_whole(self) -> None:
        records = self.records()
        assert [r.seq for r in records] == list(range(len(records)))

    @invariant()
    def nothing_is_lost(self) -> None:
        self.tail.sync()
        words = set(self.words())
        missing = [n for n in self.seen if n not in words and n not in self.may_miss]
        assert not missing, f"{missing} of {self.seen} are not recorded"
        assert words <= set(range(1, self.number + 1))


Following.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


class TestFollowing(Following.TestCase):
    """Sixty lives of a source, each of up to 25 actions."""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_lives_of_a_source() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(Following, settings=settings(Following.TestCase.settings, max_examples=600))
