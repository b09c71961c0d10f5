"""One table of methods for the socket and the commands: parameters are checked, answers are plain JSON with a schema."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asrd.answers import METHODS, RecordsParams, ask, params_of, start_of
from asrd.errors import AsrdError, NotUnderstood, UsageError
from asrd.store.rows import IndexRows
from tests.golden import CAPTURES
from tests.homes import recorded


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Generator[IndexRows]:
    with recorded(CAPTURES / "codex/S2-v2/home", Path(tmp_path_factory.mktemp("store"))) as one:
        yield one.rows


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_with_a_schema_or_says_what_it_needs(method: str, rows: IndexRows) -> None:
    try:
        answer = ask(rows, method, {})
    except AsrdError as error:
        assert isinstance(error, UsageError)
        answer = None
        for given in ({"session": "last"}, {"session": "last", "since": "2026-01-01", "until": "2027-01-01"}):
            try:
                answer = ask(rows, method, given)
                break
            except UsageError:
                continue
    if answer is None:
        return  # it needs what only its own tests give
    plain = msgspec.json.decode(msgspec.json.encode(answer))
    name, _, version = plain["schema"].partition("/")
    assert name.startswith("asrd.") and version.isdigit()


@pytest.mark.parametrize("method", METHODS)
def test_parameters_that_are_not_known_are_refused(method: str, rows: IndexRows) -> None:
    with pytest.raises(UsageError, match="unknown field"):
        ask(rows, method, {"session": "last", "noSuchThing": 1})


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("session.get", {}),
        ("session.get", {"session": 5}),
        ("session.records", {"session": "last", "from": "x"}),
        ("session.records", {"session": "last", "after": "x7"}),
        ("session.records", {"session": "last", "after": "r"}),
        ("sessions.list", {"limit": "many"}),
        ("usage", {"tree": "yes"}),
        ("handoff", {"session": "last", "redact": "sometimes"}),
    ],
)
def test_parameters_of_the_wrong_kind_are_refused(method: str, given: dict[str, Any], rows: IndexRows) -> None:
    with pytest.raises(UsageError):
        ask(rows, method, given)


def test_a_method_that_is_none_is_said(rows: IndexRows) -> None:
    with pytest.raises(NotUnderstood, match=r"no\.such"):
        ask(rows, "no.such", {})


@pytest.mark.parametrize(
    ("given", "start"), [({}, 0), ({"from": 5}, 5), ({"from": -5}, 0), ({"after": "h"}, 1), ({"after": "r7"}, 8)]
)
def test_where_records_begin(given: dict[str, Any], start: int) -> None:
    assert start_of(params_of(RecordsParams, {"session": "x", **given})) == start
