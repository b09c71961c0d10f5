"""A session of 50 MB: its brief is made from the store in less than a second, in less than 150 MB."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from asrd.records import encode
from tests.handoff.build import Story

MEASURE = """
import json, re, time
from asrd import handing
from asrd.answers import HandoffParams
from asrd.commands._common import asker
from asrd.handoff import render

rows = asker().rows()
start = time.process_time()
made = handing.make(rows, HandoffParams(session="example:big", to="codex"))
text = render(made)
took = time.process_time() - start
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024
print(json.dumps([took, peak, made.tokens, made.sources[0].records]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_the_brief_of_50_mb_takes_less_than_a_second_and_150_mb(tmp_path: Path) -> None:
    story = long_story(50_000_000)
    streams = tmp_path / "store" / "streams" / "example"
    streams.mkdir(parents=True)
    (streams / "big.asr.jsonl").write_bytes(b"".join(encode(r) + b"\n" for r in story.records))
    env = {"HOME": str(tmp_path), "ASRD_HOME": str(tmp_path / "store"), "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-m", "asrd", "reindex"], env=env, check=True, cwd=Path(__file__).parents[2])

    done = subprocess.run(
        [sys.executable, "-c", MEASURE], env=env, check=True, capture_output=True, cwd=Path(__file__).parents[2]
    )

    seconds, megabytes, tokens, records = json.loads(done.stdout)
    assert records == len(story.records) and 7000 < tokens <= 8000
    assert seconds < 1.0, f"{seconds:.2f} s of processor time"
    assert megabytes < 150, f"{megabytes:.0f} MB"


def long_story(size: int) -> Story:
    """A session whose outputs alone are of that many bytes, a third of them of commands that failed."""
    rng = random.Random(1)
    story = Story("big")
    story.asks("Build the big thing.")
    words = ["alpha", "beta", "error", "line", "value = 12", "path/to/file.py:33", "token", "def f(x):"]
    turn = made = 0
    while made < size:
        turn += 1
        story.asks(f"Step {turn}: go on with part {turn % 30}." + ("" if turn % 40 else " No, the other way instead."))
        for _ in range(rng.randrange(1, 5)):
            lines = (" ".join(rng.choice(words) for _ in range(9)) for _ in range(rng.randrange(20, 400)))
            output = "\n".join(lines)
            story.runs(f"make test-{rng.randrange(300)}", rng.choice((0, 0, 1)), output)
            made += len(output)
        story.changes(f"src/f{rng.randrange(120)}.py", after=f"{turn:064x}", diff="@@ -1 +1 @@\n" + "+x = 1\n" * 30)
        story.says(f"Step {turn} done because it was needed. " + "Words of no matter. " * 20)
    return story
