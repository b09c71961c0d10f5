"""What harnesses do not write, by what was looked for in their captures: facts that no reader of their files can have.

An entry holds only where the stream itself says so, by a `capture` record of that facet; so what we do not state is lost by us.
"""

import re

from msgspec import Struct

VISIBLE = "work.visible_responses"
RESULTS = "work.results"
FINAL = "revision.final_after_r2"
CHANGED = "work.changed_files"
TIMES = "broad.event_timestamps"
MODEL = "attribution.model_config"
USAGE = "attribution.usage"
SEMANTICS = "attribution.token_semantics"
RECONCILIATION = "attribution.reconciliation"


class Absent(Struct, frozen=True):
    """`cases`: a pattern of captures. `facet`: the one of the capture state; "" where a kill is the reason, not the harness."""

    cases: str
    metrics: tuple[str, ...]
    facet: str
    reason: str


ABSENT = (
    Absent(r"gemini/", (VISIBLE,), "turn.end", "no word of how a response or a turn ended"),
    Absent(r"gemini/", (SEMANTICS,), "usage.cacheWrite", "no cache writes"),
    Absent(r"gemini/", (RECONCILIATION,), "usage_total", "no total"),
    Absent(r"qwen/", (VISIBLE,), "turn.end", "no word of how a response or a turn ended"),
    Absent(r"qwen/", (SEMANTICS,), "usage.cacheWrite", "no cache writes"),
    Absent(r"qwen/", (RECONCILIATION,), "usage_total", "no total of a session"),
    Absent(
        r"hermes/", (USAGE, SEMANTICS, RECONCILIATION), "inference.usage", "one sum a session, overwritten in place"
    ),
    Absent(r"kimi-py/", (MODEL,), "inference.model", "no model in the session's files"),
    Absent(r"kimi-py/.*-v1\.0$", (VISIBLE,), "turn.end", "no end of a turn before protocol 1.2"),
    Absent(r"(kimi|kimi-py|pi|pi-0\.74|opencode-1\.1)/", (RECONCILIATION,), "usage_total", "no total"),
    Absent(r"antigravity/", (SEMANTICS,), "usage.cacheWrite", "no cache writes"),
    Absent(r"antigravity/", (RECONCILIATION,), "usage_total", "no total"),
    Absent(
        r"deepseek/",
        (CHANGED, FINAL, TIMES),
        "file_change.before",
        "a read does not say whether a newline ends the file, so no digest of the edit's contents is certain",
    ),
    Absent(r"cursor-desktop/", (SEMANTICS,), "usage.cacheWrite", "cached tokens are not told apart"),
    Absent(r"cursor-desktop/", (RECONCILIATION,), "usage_total", "no total"),
    Absent(r"cursor-desktop/", (TIMES,), "tool_result.at", "a call and its result have one time"),
    Absent(r"cursor/", (USAGE, SEMANTICS, RECONCILIATION), "usage", "no usage at all"),
    Absent(r"vibe/", (USAGE, RECONCILIATION), "inference", "the journal of earlier turns is gone"),
    Absent(r"vibe/", (SEMANTICS,), "usage.cacheWrite", "no cache writes"),
    Absent(
        r"codex/.*-v0\.(55|96|128)\.",
        (SEMANTICS,),
        "usage.cacheWrite",
        "the counter of this version has no cache writes",
    ),
    Absent(r"codex/.*-v0\.(55|96)\.", (VISIBLE,), "turn.end", "no end of a turn before 0.128"),
    Absent(r"claude-code/.*-v1\.", (RESULTS, FINAL), "exec.exitCode", "no exit codes before 2.0"),
    Absent(r"claude-code/.*-v(1|2\.0|2\.1\.1)", (RECONCILIATION,), "usage_total", "no total before 2.1.3xx"),
    Absent(
        r"claude-code/S5-kill-in-tool",
        (RECONCILIATION,),
        "",
        "the total of the program that was killed was never written",
    ),
    Absent(
        r"copilot/S2-v1\.0\.92",
        (RECONCILIATION,),
        "usage_total",
        "the total of this version leaves out the requests before a compaction by hand, and that one's",
    ),
    Absent(r"copilot/S5-midstream", (RECONCILIATION,), "", "the total is written at the end, which a kill came before"),
)


def absent(case: str, metric: str, facets: set[str]) -> str | None:
    """Why a capture's harness does not hold a metric's facts; None where it does, or where the stream does not say so."""
    for one in ABSENT:
        if metric in one.metrics and re.match(one.cases, case) and (not one.facet or one.facet in facets):
            return one.reason
    return None
