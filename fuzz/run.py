"""`python -m fuzz.run [--seconds N] [TARGET…]`: fuzzes each target for some seconds, from its kept corpus and the captures.

With atheris (Linux, `pip install atheris`) coverage guides it; without, inputs are mutated at random. An input that finds
something is kept in `fuzz/corpus/<target>/`, where the test suite tries it again for good.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
CAPTURES = Path(__file__).parents[1] / "tests/captures"
LONGEST = 8192
KEPT, KEPT_BYTES = 12, 1024
"""How many inputs of a target are kept at most, and how long they may be."""


def seeds(target: str) -> list[bytes]:
    """Where fuzzing starts: the kept corpus, and lines of the harness's captures."""
    found = [p.read_bytes() for p in sorted((CORPUS / target).glob("*"))]
    folder = CAPTURES / target.removeprefix("recorder.") if target.startswith("recorder.") else CAPTURES / "codex"
    for path in sorted(folder.glob("*/home/**/*"))[:200]:
        if path.is_file() and path.suffix in (".jsonl", ".json", ".ndjson"):
            lines = path.read_bytes().splitlines(keepends=True)
            found += [b"".join(lines[:6])[:LONGEST], *[line for line in lines[:40] if len(line) < LONGEST]]
    return list(dict.fromkeys(found)) or [b"{}\n"]


def mutated(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Some random changes: bits, cuts, repeats, numbers, pieces of others."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(out) + 1)
        act = chance.randrange(7)
        if act == 0 and out:
            out[at % len(out)] ^= 1 << chance.randrange(8)
        elif act == 1:
            del out[at : at + chance.randint(1, 40)]
        elif act == 2:
            out[at:at] = out[max(0, at - chance.randint(1, 60)) : at]
        elif act == 3:
            other = chance.choice(others)
            cut = chance.randrange(len(other) + 1)
            out[at:at] = other[cut : cut + 200]
        elif act == 4:
            out[at:at] = chance.choice(
                (b"null", b"[]", b"{}", b"-1", b"1e400", b"99999999999999999999999", b'"\\ud800"', b"\xff\xfe", b"\0", b"\n",
                 b'{"a":' * 60, b"true", b'""', b"\xe2\x80\xae", b"NaN")
            )  # fmt: skip
        elif act == 5:
            out += chance.choice(others)
        else:
            out[at : at + 8] = os.urandom(4)
    return bytes(out[:LONGEST])


def keep(target: str, data: bytes) -> Path:
    """Keeps an input for good."""
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


def at_random(target: str, seconds: float, seed: int) -> int:
    """Tries mutated inputs; gives how many. Raises what a target raises, with the input kept."""
    chance, start, count = random.Random(seed), seeds(target), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutated(chance.choice(start), start, chance)
        count += 1
        try:
            TARGETS[target](data)
        except BaseException:
            sys.stderr.write(f"{target}: kept in {keep(target, data)}\n")
            raise
    return count


GUIDED = """
import sys, atheris
with atheris.instrument_imports(include=["asrd"]):
    from fuzz.targets import TARGETS
atheris.Setup(sys.argv[:1] + sys.argv[2:], TARGETS[sys.argv[1]])
atheris.Fuzz()
"""


def guided(target: str, seconds: float) -> str:
    """Fuzzes with atheris; gives its last word. What it found new is kept, as far as there is room."""
    with tempfile.TemporaryDirectory() as work:
        for data in seeds(target):
            (Path(work) / hashlib.sha256(data).hexdigest()).write_bytes(data)
        crash = Path(work) / "crash-"
        before = set(os.listdir(work))
        done = subprocess.run(
            [sys.executable, "-c", GUIDED, target, work, f"-max_total_time={int(seconds)}", f"-max_len={LONGEST}",
             f"-artifact_prefix={crash}", "-print_final_stats=1", "-rss_limit_mb=2048"],
            capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1],
        )  # fmt: skip
        new = sorted((p for p in Path(work).iterdir() if p.name not in before), key=lambda p: p.stat().st_size)
        for path in new:
            if path.name.startswith("crash-"):
                keep(target, path.read_bytes())
        if done.returncode:
            raise SystemExit(f"{target}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        room = KEPT - len(list((CORPUS / target).glob("*")))
        for path in new[: max(0, room)]:
            if path.stat().st_size <= KEPT_BYTES:
                keep(target, path.read_bytes())
        for line in done.stderr.splitlines():
            if "number_of_executed_units" in line:
                return f"{int(line.split()[-1]):,} inputs, guided"
    return "done, guided"


def main() -> None:
    """Runs them and prints a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=[], metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target (default 10)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--random", action="store_true", help="without atheris")
    args = parser.parse_args()
    use_atheris = find_spec("atheris") is not None and not args.random
    for target in args.targets or TARGETS:
        words = (
            guided(target, args.seconds) if use_atheris else f"{at_random(target, args.seconds, args.seed):,} inputs"
        )
        sys.stdout.write(f"{target:24}{words}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
