"""The metrics and their points, and what the public report of Session-Bench v1 (release of 2026-10-08) says of each harness."""

from collections.abc import Mapping

from msgspec import Struct

POINTS: Mapping[str, int] = {
    "work.submitted_turns": 4,
    "work.visible_responses": 4,
    "work.actions": 5,
    "work.results": 5,
    "work.changed_files": 4,
    "revision.r1": 2,
    "revision.r2": 2,
    "revision.r1_r2_order": 2,
    "revision.final_after_r2": 2,
    "causal.action_result": 7,
    "causal.turn_response": 6,
    "broad.readable_rationale": 4,
    "broad.thread_structure": 3,
    "attribution.model_config": 3,
    "attribution.usage": 5,
    "attribution.token_semantics": 4,
    "attribution.reconciliation": 3,
    "portable.complete_root": 3,
    "portable.companions": 2,
    "portable.isolated_decode": 4,
    "portable.canonical_equality": 3,
    "broad.standard_tools_readable": 2,
    "broad.documented_format": 2,
    "broad.self_contained_identity": 2,
    "broad.declared_format_version": 2,
    "broad.event_timestamps": 2,
    "broad.honest_version_signal": 2,
    "broad.observed_schema_stability": 3,
    "broad.stable_root_location": 2,
    "broad.naive_reader_duplicate_safety": 3,
    "broad.classified_content_density": 3,
}
DENSITY = "broad.classified_content_density"
DUPLICATES = "broad.naive_reader_duplicate_safety"
FACTS = frozenset(m for m in POINTS if m.startswith(("work.", "revision.", "causal.", "attribution.")))
"""Metrics of what happened, as against of the form it is written in: a stream cannot have more of these than its source."""


class Mark(Struct, frozen=True):
    """How much of a metric is there: `correct` of the larger of what happened and what the stream says. `why`: what is not."""

    correct: float
    decoded: float
    observed: float
    why: str = ""

    @property
    def share(self) -> float:
        """0 to 1; 1 where nothing was to be said and nothing is."""
        most = max(self.decoded, self.observed)
        return self.correct / most if most else 1.0

    @property
    def exercised(self) -> bool:
        """Whether there was anything to be said."""
        return max(self.decoded, self.observed) > 0

    @property
    def full(self) -> bool:
        return self.share >= 1


class Native(Struct, frozen=True):
    """A harness's row: its total, and the mean share of each metric that is not at full credit in all three runs."""

    total: float
    below: Mapping[str, float]


RECONCILIATION = "attribution.reconciliation"
VERSIONS: Mapping[str, float] = {"broad.declared_format_version": 0, "broad.honest_version_signal": 0}

NATIVE: Mapping[str, Native] = {
    "pi": Native(96.4, {RECONCILIATION: 0, DENSITY: 0.791}),
    "copilot": Native(96.0, {DUPLICATES: 0.242, DENSITY: 0.409}),
    "opencode": Native(94.4, {RECONCILIATION: 0, DUPLICATES: 0, DENSITY: 0.146}),
    "kimi": Native(91.2, {RECONCILIATION: 0, DUPLICATES: 0, DENSITY: 0.078}),
    "claude-code": Native(
        89.3, {RECONCILIATION: 0, **VERSIONS, "broad.event_timestamps": 10 / 13, DUPLICATES: 13 / 19, DENSITY: 0.229}
    ),
    "openclaw": Native(88.1, {"portable.complete_root": 0, RECONCILIATION: 0, DUPLICATES: 0, DENSITY: 0.033}),
    "codex": Native(87.5, {"portable.complete_root": 0, **VERSIONS, DUPLICATES: 0.033, DENSITY: 0.138}),
    "hermes": Native(
        86.4,
        {
            "attribution.usage": 0.5,
            "attribution.token_semantics": 0,
            RECONCILIATION: 0,
            "portable.complete_root": 0,
            DENSITY: 0.636,
        },
    ),
    "deepseek": Native(96.9, {"broad.event_timestamps": 37 / 39, DUPLICATES: 0.443, DENSITY: 0.560}),
    "antigravity": Native(
        82.7,
        {
            "attribution.token_semantics": 0,
            RECONCILIATION: 0,
            "portable.complete_root": 0,
            "broad.standard_tools_readable": 0,
            DUPLICATES: 0,
            DENSITY: 0.229,
        },
    ),
    "cursor": Native(
        78.1,
        {
            "attribution.usage": 0,
            "attribution.token_semantics": 0,
            RECONCILIATION: 0,
            "portable.complete_root": 0,
            "broad.standard_tools_readable": 0,
            DUPLICATES: 0.107,
            DENSITY: 0.263,
        },
    ),
}
"""By our name of the harness. Its newest versions only: the report knows no others."""
