"""A hundred secrets of many kinds, planted wherever a session holds text: none reaches a brief or a session file."""

import random

import pytest

from asrd.handoff import brief, render
from asrd.handoff.native import native
from tests.handoff.build import Story, work
from tests.test_redact import KINDS

EACH = 4


def a_session_full_of_secrets(rng: random.Random) -> tuple[Story, list[tuple[str, str]]]:
    """Prompts, answers, commands, outputs, diffs, plans, paths and commit messages, each secret in one of them."""
    story = Story(folder="/home/anna/app")
    secrets = [(kind, *make(rng)) for kind, make in KINDS.items() for _ in range(EACH)]
    story.asks("Make the deploy work again.")
    for n, (_, _, text) in enumerate(secrets):
        line = " ".join(text.split("\n")) if "PRIVATE KEY" not in text else text
        match n % 8:
            case 0:
                story.asks(f"No, instead use this: {text}")
            case 1:
                story.says(f"I decided to use what stands there: {text}")
            case 2:
                story.runs(f"deploy --stage {n}", 1, f"calling\n{text}\nfailed")
            case 3:
                story.runs(f"env {n} && echo '{line}'", 0, "ok")
            case 4:
                story.changes(f"conf/{n}.env", after=f"{n:064x}", diff=f"@@ -1 +1 @@\n-old\n+{text}")
            case 5:
                story.commits(f"{n:040x}", line.replace('"', "'"))
            case 6:
                story.runs(f"printenv | grep {n}", 2, "PATH=/usr/bin\n" * 40 + text + "\n" + "LANG=C\n" * 40)
            case _:
                story.is_told(text)
    story.plans(*[(f"rotate {text}", "pending") for _, _, text in secrets[:6] if "\n" not in text])
    story.asks(f"Last: is {secrets[-1][2]} still valid?")
    story.says(f"I cannot tell whether {secrets[-2][2]} is. Shall I try {secrets[-3][2]}?")
    return story, [(kind, secret) for kind, secret, _ in secrets]


@pytest.mark.parametrize("budget", [2_000, 8_000, 64_000])
def test_no_planted_secret_is_in_a_brief(budget: int) -> None:
    story, secrets = a_session_full_of_secrets(random.Random(budget))

    made = brief(work(story), budget)
    text = render(made)

    assert len(secrets) >= 100 and len({kind for kind, _ in secrets}) >= 20
    assert [kind for kind, secret in secrets if secret in text] == []
    assert sum(made.removed.values()) >= (60 if budget == 64_000 else 1)


@pytest.mark.parametrize("target", ["claude", "codex", "opencode", "pi"])
def test_no_planted_secret_is_in_a_session_file(target: str) -> None:
    story, secrets = a_session_full_of_secrets(random.Random(target))

    made = native(work(story), target, budget=1_000_000)

    assert [kind for kind, secret in secrets if secret in made.text] == []
    assert sum(made.removed.values()) >= len(secrets) // 2
