"""Time: UTC, as records write it, and a clock that never goes back."""

import re
import time
from datetime import UTC, datetime, timedelta

from asrd import clock


def test_now_is_utc_and_as_records_say_it() -> None:
    text = clock.now_text()

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    assert clock.now().tzinfo is UTC
    assert abs(datetime.fromisoformat(text.replace("Z", "+00:00")) - clock.now()) < timedelta(seconds=5)
    assert abs(clock.seconds() - clock.now().timestamp()) < 5


def test_ticks_never_go_back_and_a_pause_takes_its_time() -> None:
    before = clock.ticks()

    clock.pause(0.02)

    assert 0.019 <= clock.ticks() - before
    assert abs(clock.ticks() - time.monotonic()) < 1
