"""Generated homes with every counting trap in them: totals, models and prompts are exact."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asrd import query
from tests.homes import recorded

ROOT = Path(__file__).parents[2]
SEEDS = [pytest.param(seed, marks=() if seed < 4 else pytest.mark.slow) for seed in range(1, 21)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_generated_home_is_counted_exactly(seed: int, tmp_path: Path) -> None:
    home, truth = tmp_path / "home", corpus(tmp_path, seed)

    with recorded(home, tmp_path / "store") as one:
        told = query.usage(one.rows)
        sessions = one.db.execute(
            "SELECT agent, count(*), sum(prompts) FROM session WHERE parent_relation IS NOT 'spawned_by' GROUP BY agent"
        ).fetchall()

    harness = {h["harness"]: h for h in told["byHarness"]}
    claude, codex = truth["right_total"]["claude"], truth["right_total"]["codex"]
    assert figures(harness["claude-code"]) == (
        truth["claude"]["inferences"],
        claude["input_tokens"],
        claude["cache_read_input_tokens"],
        claude["cache_creation_input_tokens"],
        claude["output_tokens"],
    )
    assert harness["codex"]["requests"] == truth["codex"]["inferences"]
    assert harness["codex"]["inputTotal"] == codex["input_tokens"]
    assert harness["codex"]["cacheRead"] == codex["cached_input_tokens"]
    assert harness["codex"]["output"] == codex["output_tokens"]
    assert harness["codex"]["reasoning"] == codex["reasoning_output_tokens"]
    models = {m["model"]: m["output"] for m in told["byModel"] if m["model"] in truth["claude"]["by_model"]}
    assert models == {m: u["output_tokens"] for m, u in truth["claude"]["by_model"].items()}
    assert sum(m["requests"] for m in told["byModel"]) == told["total"]["requests"]
    assert {s[0] for s in sessions} == {"claude-code", "codex"}


def corpus(where: Path, seed: int) -> Any:
    """A home with forks, sub-agents, copies, resets and broken files; its truth."""
    words = f"{where / 'home'} --seed {seed} --claude-sessions 24 --claude-mb 1 --codex-sessions 16 --codex-mb 1 --edge"
    script = str(ROOT / "bench" / "gen_corpus.py")
    out = subprocess.DEVNULL
    subprocess.run(
        [sys.executable, script, *words.split(), "--truth", str(where / "truth.json")], stdout=out, check=True
    )
    return json.loads((where / "truth.json").read_text())


def figures(one: dict[str, Any]) -> tuple[int, ...]:
    return tuple(one[k] for k in ("requests", "input", "cacheRead", "cacheWrite", "output"))
