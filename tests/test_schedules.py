"""A stream is the same however its source arrives: random cuts, restarts, kills and power cuts between."""

import pytest

from tests.golden import cases
from tests.schedules import difference, one

FEW = 20
MANY = 200


def case_of(seed: int) -> str:
    """The captures in turn, so that a few schedules already touch every harness."""
    by_harness: dict[str, list[str]] = {}
    for case in cases():
        by_harness.setdefault(case.split("/")[0], []).append(case)
    names = sorted(by_harness)
    mine = by_harness[names[seed % len(names)]]
    return mine[(seed // len(names)) % len(mine)]


@pytest.mark.parametrize("seed", range(FEW))
def test_a_stream_does_not_depend_on_how_its_source_arrived(seed: int) -> None:
    found = one(case_of(seed), seed)

    assert found is None, f"{case_of(seed)}: {found}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FEW, FEW + MANY))
def test_no_stream_depends_on_how_its_source_arrived(seed: int) -> None:
    found = one(case_of(seed), seed)

    assert found is None, f"{case_of(seed)}: {found}"


def test_a_difference_is_seen() -> None:
    whole = {"a": b"1\n2\n"}

    assert difference({"a": b"1\n"}, whole) == "a: 1 lines where 2 should be"
    assert "line 1" in (difference({"a": b"1\n3\n"}, whole) or "")
    assert difference({}, whole) == "streams ['a']"
    assert difference(whole, whole) is None


@pytest.mark.parametrize("seed", [7, 32])
def test_reading_again_in_parts_is_no_state_to_go_on_from(seed: int) -> None:
    # Cursors were lost, the sources were read again a part at a time, and the capture was let go of in between.
    assert one("codex/A1-appserver", seed) is None
