"""Everything that can go wrong on our side, drawn as a tree.

What a harness got wrong is data (`loss`, `gap`), never one of these. The docstring of a class is the sentence
its user reads, with holes for the facts; `exit_code` is what the command ends with.

    AsrdError
      UsageError
      SettingsError
      SourceError
        SourceUnreadable
        UnknownHarness
      StoreError
        StoreLocked
        StoreFull
        StoreTooNew
        StoreUnusable
        StreamCorrupt
        ArchiveUnusable
      WireError
        DaemonUnreachable
        NotUnderstood
        DaemonRefused
      ServiceError
      CollectorRefused
      RepositoryUnusable
      ShipUnusable
      NothingFound
        Ambiguous
        NoSuchRecord
"""

from __future__ import annotations

from typing import Any, ClassVar


class AsrdError(Exception):
    """Something went wrong: {what}."""

    exit_code: ClassVar[int] = 1

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        super().__init__(self.sentence())

    def sentence(self) -> str:
        """The class's docstring with the facts in its holes."""
        text = " ".join((type(self).__doc__ or "").split())
        return text.format_map(self.facts)


class UsageError(AsrdError):
    """{what} is not something asrd can do; see `asrd {command} --help`."""

    exit_code = 2


class SettingsError(AsrdError):
    """{path}: {key} should be {expected}, not {found}."""

    exit_code = 10


class SourceError(AsrdError):
    """{source} could not be recorded: {reason}."""

    exit_code = 22


class SourceUnreadable(SourceError):
    """{source} cannot be read ({reason}); recording goes on without it."""

    exit_code = 20


class UnknownHarness(SourceError):
    """No recorder is called {harness}; there are {known}."""

    exit_code = 21


class StoreError(AsrdError):
    """The store {store} could not be used: {reason}."""

    exit_code = 34


class StoreLocked(StoreError):
    """Another asrd (process {pid}) is recording into {store}."""

    exit_code = 30


class StoreFull(StoreError):
    """No room left in {store}; nothing recorded was harmed."""

    exit_code = 31


class StoreTooNew(StoreError):
    """{store} was written by asrd store version {version}, which is newer than this one reads; upgrade asrd."""

    exit_code = 32


class StoreUnusable(StoreError):
    """{store} cannot be used ({reason})."""

    exit_code = 35


class StreamCorrupt(StoreError):
    """Stream {stream} is damaged at byte {offset} ({reason}); `asrd check` says what of it is whole."""

    exit_code = 33


class ArchiveUnusable(StoreError):
    """The archive {archive} cannot be imported ({reason}); what was imported of it before stays."""

    exit_code = 36


class WireError(AsrdError):
    """The daemon could not be asked: {reason}."""

    exit_code = 42


class DaemonUnreachable(WireError):
    """No asrd is listening at {socket}; start it with `asrd run`."""

    exit_code = 40


class NotUnderstood(WireError):
    """The other side sent {what}, which this version does not know."""

    exit_code = 41


class DaemonRefused(WireError):
    """The daemon answered: {reason}"""

    exit_code = 43


class ServiceError(AsrdError):
    """The service cannot be {action}: {reason}."""

    exit_code = 60


class CollectorRefused(AsrdError):
    """The collector at {url} did not take the spans ({reason}); what was sent before stays there."""

    exit_code = 61


class RepositoryUnusable(AsrdError):
    """{folder} cannot be blamed: {reason}."""

    exit_code = 62


class ShipUnusable(AsrdError):
    """Nothing could be shipped to {target}: {reason}."""

    exit_code = 63


class NothingFound(AsrdError):
    """No session matches {query}; `asrd ls` shows what is recorded."""

    exit_code = 50


class Ambiguous(NothingFound):
    """{query} names {count} sessions: {candidates}. Give more of the id."""

    exit_code = 51


class NoSuchRecord(NothingFound):
    """{session} has no record {record}; `asrd show {session}` shows those it has."""

    exit_code = 52
