"""The only reader of time."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


def now_text() -> str:
    """Now as records say it: RFC 3339 UTC with milliseconds."""
    return now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def seconds() -> float:
    """Seconds since 1970."""
    return time.time()


def ticks() -> float:
    """Seconds on a clock that never goes back, for measuring."""
    return time.monotonic()


def pause(seconds: float) -> None:
    """Waits, in a thread of its own."""
    time.sleep(seconds)


def booted() -> int:
    """When the machine started, in microseconds since 1970 (Linux): what starts of processes are counted from."""
    return (time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)) // 1000
