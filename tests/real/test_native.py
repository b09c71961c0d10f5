"""Native continuation in the real program: it opens the installed file, and its model sees the history that was imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asrd.handoff_token import find_token
from tests.real.inside import run
from tests.real.model_server import ANSWER
from tests.real.programs import program
from tests.real.test_handoff import Place

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

RESUMES = {
    "claude": ("claude", "--model", "claude-sonnet-4-6", "--resume", "{id}", "-p", "What next?"),
    "codex": ("codex", "exec", "--skip-git-repo-check", "resume", "{id}", "What next?"),
    "opencode": ("opencode", "run", "--model", "mock/mock-1", "-s", "{id}", "What next?"),
    "pi": ("pi", "--provider", "mock", "--model", "mock-1", "--session", "{id}", "-p", "What next?"),
}
"""How each goes on with a session without a terminal."""


@pytest.mark.parametrize("name", RESUMES)
def test_the_program_goes_on_with_the_history_that_was_imported(name: str, tmp_path: Path) -> None:
    place = Place(tmp_path, program(name))
    before = place.asrd_json("usage")["total"]
    made = place.asrd_json(
        "handoff", f"claude-code:{place.source}", "--to", name, "--native", "--install", "--cwd", str(place.ws)
    )

    told = run([place.command([word.replace("{id}", made["sessionId"]) for word in RESUMES[name]])])
    place.asrd("sync")

    assert told.ended[0].code == 0, told.ended[0].stderr
    assert ANSWER in told.ended[0].stdout
    seen = json.dumps([list(a.texts()) for a in told.asked])
    last = "\n".join(told.asked[-1].texts())
    for words in (
        "[[S1T1]] Fix calc.add so that ./check.sh passes, then commit.", "I will read the file.", "exit 101",
        "[[S1T2]] Why did check.sh fail the first time after the edit?", "Because VERSION was not set",
        made["token"], "What next?",
    ):  # fmt: skip
        assert words in last, (words, seen[:3000])
    new = [s for s in place.asrd_json("ls") if s["sessionId"] != place.source]
    assert [s["sessionId"] for s in new] == [made["sessionId"]]
    relations = place.asrd_json("lineage", f"{new[0]['agent']}:{made['sessionId']}")["links"]
    assert {r["relation"] for r in relations} == {"continued_from"}
    assert all(r["state"] == "edge" and r["to"]["sessionId"] == place.source for r in relations)
    token = [r["evidence"]["value"] for r in relations if r["evidence"]["kind"] == "handoff-token"]
    assert token == [made["token"]] and find_token(f"asrd-handoff: {made['token']}")
    after = place.asrd_json("usage")["total"]
    assert after["requests"] - before["requests"] == 1, "only the new response counts"
    assert after["output"] - before["output"] == 10 and after["inputTotal"] - before["inputTotal"] == 100
    assert new[0]["usage"]["requests"] == 1 and new[0]["copies"] >= 4
