"""Any bytes give one of the outcomes that `fuzz/targets.py` allows: kept inputs again, and new ones by Hypothesis."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.run import CORPUS, mutated, seeds
from fuzz.targets import TARGETS

SETTINGS = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("target", TARGETS)
def test_kept_inputs_find_nothing(target: str) -> None:
    for path in sorted((CORPUS / target).glob("*")):
        TARGETS[target](path.read_bytes())


def test_every_corpus_has_its_target() -> None:
    assert {p.name for p in CORPUS.iterdir()} <= set(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
@given(data=st.binary(max_size=400), chance=st.randoms(use_true_random=False))
@SETTINGS
def test_bytes_and_changed_captures_find_nothing(target: str, data: bytes, chance: object) -> None:
    start = _seeds(target)

    TARGETS[target](data)
    TARGETS[target](mutated(chance.choice(start), start, chance))  # type: ignore[reportAttributeAccessIssue]


_KNOWN: dict[str, list[bytes]] = {}


def _seeds(target: str) -> list[bytes]:
    if target not in _KNOWN:
        _KNOWN[target] = seeds(target)[:60]
    return _KNOWN[target]


def test_a_header_behind_a_broken_line_stays_in_the_stream_after_a_restart() -> None:
    meta = next(data for data in _seeds("recorder.codex") if b'"session_meta"' in data).split(b"\n")[0]
    broken = b'{"timestamp":"x","type":"session_meta","payload":' + b"\n"

    TARGETS["recorder.codex"](broken + b" " * 700 + b"\n" + meta + b"\n" + meta + b"\n")


def test_a_target_tells_a_recorder_that_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    from asrd.recorders import load

    recorder = load()["codex"]
    real = recorder.restore

    def forgets(self: object, saved: bytes) -> None:
        real(self, saved)  # type: ignore[reportArgumentType]
        self.state = recorder.State()  # type: ignore[reportAttributeAccessIssue]

    monkeypatch.setattr(recorder, "restore", forgets)

    with pytest.raises(AssertionError, match="cut and restored"):
        for data in _seeds("recorder.codex"):
            TARGETS["recorder.codex"](data)
