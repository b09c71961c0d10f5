"""Which recorded edit a line comes from: what is proved, and nothing else. Pure: what git says is given."""

from __future__ import annotations

from msgspec import Struct


class Origin(Struct, frozen=True):
    """Where a line comes from: the session, its edit's record, the turn and prompt it belongs to, the model; None is unknown.

    `evidence` says how that is known (`EVIDENCE`).
    """

    agent: str
    session_id: str
    namespace: str
    record: str
    turn: str | None
    prompt: str | None
    model: str | None
    evidence: str

    @property
    def session(self) -> tuple[str, str, str]:
        """What names the session."""
        return (self.agent, self.session_id, self.namespace)


class Range(Struct, frozen=True):
    """Lines of a file at a commit, both ends included, counted from 1, and where they come from (None = unknown)."""

    start: int
    end: int
    origin: Origin | None


class Commit(Struct, frozen=True):
    """A commit (when it was made, RFC 3339), and the lines it added, by path."""

    commit: str
    at: str
    files: dict[str, list[Range]]
