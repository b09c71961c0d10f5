"""Long sessions written without a look at how a brief is selected: what the rules do not know of, they must still keep.

Wishes, corrections, limits, decisions and dead ends are worded as people and models word them, each in another way; the
facts are said among much that does not matter. Only what happened decides what a fact is.
"""

from __future__ import annotations

import hashlib
import random
from typing import NamedTuple

from asrd.handoff import Work
from asrd.records import Exec, Text, ToolResult
from tests.handoff.build import Story, work
from tests.handoff.recall import DIGITS, Fact

THINGS = (
    "invoice",
    "ledger",
    "webhook",
    "cursor",
    "session",
    "tenant",
    "export",
    "retry",
    "quota",
    "digest",
    "badge",
    "feed",
)


class Pool(NamedTuple):
    """Ways to word what matters; `{x}` is what it is about."""

    corrections: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    decisions: tuple[str, ...]
    dead_ends: tuple[str, ...]


SEEN = Pool(
    corrections=(
        ("Let's put the {x} state into Redis.", "Hmm, scrap Redis for the {x} state, a plain table is enough."),
        ("Show the {x} list newest first.", "I changed my mind about the {x} list: oldest first, please."),
        ("Return 404 for a missing {x}.", "That's not what I meant for a missing {x}. It should be an empty 200."),
        ("Make the {x} job run every minute.", "Forget the minute schedule for the {x} job, once an hour will do."),
        ("Use camelCase in the {x} payload.", "Wait, the {x} payload has to be snake_case after all."),
        ("Cache the {x} for a day.", "On second thought don't cache the {x} at all."),
        ("Write the {x} docs in French.", "English rather than French for the {x} docs."),
        ("Log every {x} to stdout.", "Let's go with stderr for the {x} logs, stdout is parsed downstream."),
    ),
    limits=(
        "Under no circumstances touch the {x} migrations, they are frozen.",
        "Keep Python 3.9 working in the {x} package.",
        "The public {x} API has to stay as it is.",
        "Only ever call the {x} service through the proxy.",
        "Please leave the {x} fixtures alone.",
        "No new dependencies for {x}, legal will not approve them.",
        "Whatever you do to {x}, it has to stay under 50 ms.",
        "We can't ship {x} without an audit entry.",
    ),
    decisions=(
        "I'll store {x} amounts as integer cents, since floats lose pennies.",
        "Going with one queue for every {x}, two would need a second lock.",
        "I went for a trigger on {x} instead of polling.",
        "The {x} parser stays hand-written, because a generated one hides the line numbers.",
        "We settled on UUIDs as {x} keys so that shards can be merged.",
        "I picked the older {x} client: the new one drops headers.",
        "My choice for {x} is optimistic locking.",
        "Rather than patching {x} in place, I am writing a new row each time.",
    ),
    dead_ends=(
        "Tried pinning the {x} driver to 4.2, but it segfaults on arm64.",
        "Batching the {x} inserts did not help: the lock is held just as long.",
        "The {x} mock cannot be used here; it swallows timeouts.",
        "Reverting the {x} index made it slower, so I put it back.",
    ),
)
"""Written before anything was measured; the rules were then widened with an eye on what of it they missed."""

HELD_OUT = Pool(
    corrections=(
        ("Send the {x} mail right away.", "Let me take that back: {x} mail goes out in the morning batch."),
        ("Sort {x} by name.", "Sorting {x} by name was a bad idea of mine, sort by amount."),
        ("Put {x} behind a feature flag.", "The flag for {x} isn't needed any more, just ship it."),
        ("Name the {x} table {x}_rows.", "Please call the {x} table {x}_entries, not {x}_rows."),
        ("Use tabs in the {x} file.", "Make that four spaces in the {x} file."),
        ("Drop old {x} after a week.", "Marketing called: keep old {x} for a year."),
        ("Block the user while {x} loads.", "Correction on {x}: it must load in the background."),
        ("Retry {x} three times.", "Undo the retries for {x}; one attempt and an alert."),
    ),
    limits=(
        "The {x} team owns that schema, so hands off.",
        "Nothing in {x} may log personal data.",
        "You are not allowed to upgrade the {x} compiler.",
        "I need {x} to run on Windows too.",
        "It's essential that {x} survives a restart.",
        "Stick to the standard library for {x}.",
        "Don't let the {x} image grow beyond 200 MB.",
        "Every change in {x} needs a test.",
    ),
    decisions=(
        "For {x} I'll use a ring buffer; the list grew without end.",
        "The better way for {x} is a view, as it needs no second copy.",
        "I decided against a cache for {x}.",
        "Let me keep {x} synchronous, otherwise the order is lost.",
        "The plan for {x} is to write first and validate after.",
        "We chose the streaming reader for {x} to keep memory flat.",
        "It is simpler to make {x} immutable, so I did that.",
        "{x} now fails closed: an outage must not give access away.",
    ),
    dead_ends=(
        "My first attempt at {x}, with a recursive query, ran out of memory.",
        "A newer {x} release was no help: same crash.",
        "I gave up on mocking {x}; its client opens a socket on import.",
        "Setting the {x} timeout higher only hides the problem.",
    ),
)
"""Written before the rules were widened, and not looked at for it: how well they do on words they were not made for."""

IDLE_WISHES = (
    "ok, next", "go on", "looks fine, continue", "what does this function do?", "thanks! now the next file",
    "can you show me the diff", "hm, why is this slow?", "rename the helper as well", "yes", "run it again",
)  # fmt: skip
IDLE_ANSWERS = (
    "Done. The helper is used in two places and both are updated; the types check.",
    "Here is what the function does: it reads the rows, groups them by day, and writes one line per group.",
    "I looked at the module and its callers. Nothing else depends on the old name.",
    "The run took a little longer than before, which is within what I would expect on this machine.",
    "Both branches are covered. I also tidied the imports while I was there.",
)
LOOKS = (
    "cat {p}",
    "rg -n {x} src",
    "ls -la src/{x}",
    "git status --short",
    "git diff --stat",
    "wc -l {p}",
    "head -50 {p}",
)
CHECKS = (
    "uv run pytest tests/{x} -x",
    "npm run test:{x}",
    "go test ./{x}/...",
    "./scripts/verify_{x}.sh",
    "cargo nextest run -p {x}",
)
FOLDERS = ("src", "lib/core", "services/api", "web/app", "cmd")
ENDINGS = ("py", "ts", "go", "rs", "sql", "md")


def blind(seed: int, pool: Pool = SEEN, turns: int = 500) -> tuple[Work, list[Fact]]:
    """A session of many turns, and what a successor needs of it. A file's digest is known by its first 12 digits."""
    rng = random.Random(f"blind-{seed}")
    story, facts = Story(f"b{seed}"), list[Fact]()
    goal = (
        f"We have to get the billing rewrite out, part {seed}.\n\nToday the nightly run double-charges tenants whose plan "
        "changed during the day. I want the run to be safe to repeat, with a report of what it would do before it does it."
    )
    story.asks(goal)
    facts += [Fact("goal", ("Today the nightly run double-charges tenants whose plan changed during the day.",))]
    story.says("Understood. I will start with the nightly run and look at how plans are joined.")
    at: dict[int, list[tuple[str, str]]] = {}
    for kind, count in (("correction", 5), ("limit", 5), ("decision", 5), ("dead end", 3)):
        ways = {"limit": pool.limits, "decision": pool.decisions, "dead end": pool.dead_ends}.get(kind)
        chosen = rng.sample(range(len(ways or pool.corrections)), count)
        for which, thing in zip(chosen, rng.sample(THINGS, count), strict=True):
            text = ways[which].format(x=thing) if ways else str(which)
            at.setdefault(rng.randrange(3, turns - 8), []).append((kind, f"{text}|{thing}"))
    files: dict[str, str] = {}
    failing: tuple[str, int] | None = None
    commits: list[str] = []
    for turn in range(1, turns):
        thing = rng.choice(THINGS)
        planned = at.get(turn, [])
        said = [t.split("|") for k, t in planned if k == "limit"]
        wish = " ".join([*(t[0] for t in said), rng.choice(IDLE_WISHES)])
        facts += [Fact("limit", (t[0],)) for t in said]
        for text in (t for k, t in planned if k == "correction"):
            which, about = text.split("|")
            first, instead = (part.format(x=about) for part in pool.corrections[int(which)])
            story.asks(first)
            story.says(rng.choice(IDLE_ANSWERS))
            wish = instead
            facts += [Fact("correction", (instead,))]
        story.asks(wish)
        for _ in range(rng.randrange(4)):
            path = f"{rng.choice(FOLDERS)}/{thing}_{rng.randrange(9)}.{rng.choice(ENDINGS)}"
            story.runs(
                rng.choice(LOOKS).format(p=path, x=thing), rng.choice((0, 0, 0, 1)), "some line\n" * rng.randrange(80)
            )
        if rng.random() < 0.25:
            path = f"{rng.choice(FOLDERS)}/{rng.choice(THINGS)}.{rng.choice(ENDINGS[:3])}"
            sha = hashlib.sha256(f"{seed}/{turn}".encode()).hexdigest()
            story.changes(
                path, "modify" if path in files else "create", sha, f"@@ -1,2 +1,9 @@\n{'+x' * 9}\n" * rng.randrange(12)
            )
            files[path] = sha
        if rng.random() < 0.12:
            command = rng.choice(CHECKS).format(x=rng.choice(THINGS))
            code = rng.choice((0, 0, 1, 2, 101))
            run(story, command, code, f"{'.' * 70}\n1 failed: test_{thing}_{turn}\n" if code else "all passed")
            failing = (command, code) if code else failing
        if turn % 45 == 0:
            commits.append(hashlib.sha1(f"{seed}/{turn}".encode()).hexdigest())
            story.commits(commits[-1], f"{thing}: next part")
        told = [t.split("|")[0] for k, t in planned if k in ("decision", "dead end")]
        facts += [Fact(k, (t.split("|")[0],)) for k, t in planned if k in ("decision", "dead end")]
        story.says(" ".join([rng.choice(IDLE_ANSWERS), *told, rng.choice(IDLE_ANSWERS)]))
    states = ("completed",) * 4 + ("in_progress",) + ("pending",) * 4
    steps = [(f"wire up {t}", state) for t, state in zip(rng.sample(THINGS, 9), states, strict=True)]
    story.plans(*steps)
    facts += [Fact("open step", (text,)) for text, status in steps if status != "completed"]
    command = rng.choice(CHECKS).format(x="ledger")
    run(story, command, 3, "thread 'ledger' panicked at src/ledger.rs:41\nassertion failed: a == b\n")
    failing = (command, 3)
    story.asks("What is left before we can ship? Please look at the ledger failure first.")
    story.says("The ledger check still fails. Do you want the rounding per line or per invoice?")
    facts += [
        Fact("last prompt", ("Please look at the ledger failure first.",)),
        Fact("question", ("Do you want the rounding per line or per invoice?",)),
        Fact("failing command", (failing[0], f"exit {failing[1]}")),
        Fact("failure output", ("panicked at src/ledger.rs:41",)),
    ]
    facts += [Fact("file", (path, sha[:DIGITS])) for path, sha in files.items()]
    facts += [Fact("commit", (commit,)) for commit in commits]
    return work(story), facts


def run(story: Story, command: str, code: int, output: str) -> None:
    """A command whose result says what was run and how it ended."""
    call = story.calls("shell", {"command": ["bash", "-lc", command]}, "execute")
    status = "failed" if code else "completed"
    ran = Exec(command=command, exit_code=code, stdout=output)
    story.add(ToolResult(call_id=call, linkage="exact", status=status, exec=ran, content=[Text(text=output)]))
