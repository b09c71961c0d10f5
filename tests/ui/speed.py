"""How quick the page is in a real browser, as figures: `python -m tests.ui.speed [--records N]` (`make bench-ui`).

A session of Claude Code with that many records is recorded by a daemon and looked at in headless Chromium, at desktop and phone
width, light and dark: time to the first view, layout shift, intervals between frames and long tasks (over 50 ms) while it is
scrolled by gestures, searched, and while records arrive over the WebSocket. Nothing is asserted here; `test_browser.py` does.
"""

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from tests.daemons import running
from tests.ui.browser import WIDTHS, opened
from tests.ui.build import viewing

SESSION = "5e551011-0000-4000-8000-000000000001"
METER = """
window.meter = { shift: 0, moved: [], longs: [], paint: 0, lcp: 0, frames: [], on: false };
const seen = (type, take) => new PerformanceObserver((l) => l.getEntries().forEach(take)).observe({ type, buffered: true });
seen('layout-shift', (e) => { if (!e.hadRecentInput) { meter.shift += e.value;
  meter.moved.push(e.sources.map((s) => s.node && (s.node.className || s.node.nodeName)).join(' ')); } });
seen('longtask', (e) => meter.longs.push({ at: e.startTime, ms: e.duration }));
seen('paint', (e) => { if (e.name === 'first-contentful-paint') meter.paint = e.startTime; });
seen('largest-contentful-paint', (e) => { meter.lcp = e.startTime; });
new MutationObserver((_, own) => { if (!document.querySelector('article.prompt')) return; own.disconnect();
  requestAnimationFrame(() => setTimeout(() => { meter.first = performance.now(); }));
}).observe(document, { childList: true, subtree: true });
meter.start = () => { Object.assign(meter, { frames: [], from: performance.now(), on: true }); let last;
  const tick = (now) => { if (last !== undefined) meter.frames.push(now - last); last = now;
    if (meter.on) requestAnimationFrame(tick); };
  requestAnimationFrame(tick); };
meter.stop = () => { meter.on = false; return { frames: meter.frames, took: performance.now() - meter.from,
  longs: meter.longs.filter((l) => l.at >= meter.from).map((l) => l.ms) }; };
"""
"""Runs before the page's own scripts."""


def lines(count: int, start: int = 0) -> Iterator[bytes]:
    """Lines of Claude Code's own kind: a prompt, calls with their results, an answer. A line gives a record or more."""
    before: str | None = None
    for n in range(start, start + count):
        here = f"{n:08x}-0000-4000-8000-{n:012d}"
        base: dict[str, Any] = {
            "parentUuid": before, "isSidechain": False, "userType": "external", "cwd": "/home/dev/app", "sessionId": SESSION,
            "version": "2.1.332", "gitBranch": "main", "uuid": here,
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1_796_000_000 + n)),
        }  # fmt: skip
        step = n % 20
        if step == 0:
            body: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": f"Step {n}: go on."}}
        elif step % 2 == 0:
            words = "\n".join(f"line {k} of {n}: {'x' * (k * 7 % 60)}" for k in range(n % 23))
            result = {"tool_use_id": f"toolu_{n - 1}", "type": "tool_result", "content": words}
            body = {"type": "user", "message": {"role": "user", "content": [result]}}
        else:
            said: dict[str, Any] = {
                "type": "tool_use",
                "id": f"toolu_{n}",
                "name": "Bash",
                "input": {"command": f"make step-{n}"},
            }
            if step == 19:
                said = {"type": "text", "text": f"Answer {n}. " + "Words of it, **bold** and `code`. " * (n % 29)}
            usage = {
                "input_tokens": 10,
                "output_tokens": 5,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 0,
            }
            message = {
                "id": f"msg_{n}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "content": [said],
                "stop_reason": "tool_use", "usage": usage,
            }  # fmt: skip
            body = {"type": "assistant", "message": message, "requestId": f"req_{n}"}
        yield json.dumps({**base, **body}).encode() + b"\n"
        before = here


def busy(trace: bytes) -> list[float]:
    """How long each task of the page's main thread ran, in ms of its own processor time: a busy machine does not add to it."""
    events = json.loads(trace)["traceEvents"]
    main = {(e["pid"], e["tid"]) for e in events if e.get("args", {}).get("name") == "CrRendererMain"}
    return [
        e["tdur"] / 1000 for e in events if e.get("name") == "RunTask" and "tdur" in e and (e["pid"], e["tid"]) in main
    ]


def figures(told: dict[str, Any]) -> dict[str, Any]:
    """Frames of a stretch: how many a second, their intervals in ms, and tasks over 50 ms, by the clock and by processor time."""
    frames = sorted(told["frames"])
    if not frames:
        return {"frames": 0}
    return {
        "frames": len(frames),
        "fps": round(1000 * len(frames) / sum(frames), 1),
        "median": round(statistics.median(frames), 1),
        "p95": round(frames[int(len(frames) * 0.95)], 1),
        "most": round(frames[-1], 1),
        "long tasks": len(told["longs"]),
        "longest": round(max(told["longs"], default=0)),
        "longest of its own": round(max(told.get("busy", []), default=0)),
    }


class Stretch:
    """Figures of what is done meanwhile: `told` is theirs afterwards."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.told: dict[str, Any] = {}

    def __enter__(self) -> Self:
        browser = self.page.context.browser
        browser.start_tracing(
            page=self.page, categories=["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
        )
        self.page.evaluate("meter.start()")
        return self

    def __exit__(self, *_: object) -> None:
        told = self.page.evaluate("meter.stop()")
        told["busy"] = busy(self.page.context.browser.stop_tracing())
        self.told = figures(told)


def scrolled(page: Any, width: str, times: int = 6) -> dict[str, Any]:
    """Gestures down and up, at 4,000 pixels a second, by wheel or finger."""
    cdp = page.context.new_cdp_session(page)
    box = page.locator(".scroll").bounding_box()
    with Stretch(page) as stretch:
        for n in range(times):
            cdp.send(
                "Input.synthesizeScrollGesture",
                {
                    "x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2,
                    "yDistance": 8000 if n % 3 == 2 else -8000, "speed": 4000,
                    "gestureSourceType": "touch" if width == "phone" else "mouse", "preventFling": True,
                },
            )  # fmt: skip
    return stretch.told


def jumped(page: Any, times: int = 40) -> dict[str, Any]:
    """The bar dragged: a place far away each 50 ms."""
    with Stretch(page) as stretch:
        page.evaluate(
            """async (times) => { const root = document.querySelector('.scroll');
        for (let n = 0; n < times; n++) { root.scrollTop = root.scrollHeight * ((n * 37) % 100) / 100;
        await new Promise((d) => setTimeout(d, 50)); } }""",
            times,
        )
    return stretch.told


def searched(page: Any) -> dict[str, Any]:
    """Typed, found, and gone on to 20 times."""
    with Stretch(page) as stretch:
        page.keyboard.press("/")
        page.keyboard.type("Step 3", delay=30)
        start = time.perf_counter()
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelector('.found').textContent.startsWith('1 of')", timeout=30_000)
        first = time.perf_counter() - start
        for _ in range(20):
            page.keyboard.press("Enter")
            page.wait_for_timeout(30)
    page.keyboard.press("Escape")
    return {"first place after ms": round(first * 1000), **stretch.told}


def live(page: Any, path: Path, count: int, width: str) -> dict[str, Any]:
    """Scrolled while a line is written each 50 ms; records must come."""
    before = page.evaluate("app.view.timeline.next")
    start = sum(1 for _ in path.open("rb"))
    done = threading.Event()

    def write() -> None:
        with path.open("ab", buffering=0) as file:
            for line in lines(count, start):
                file.write(line)
                if done.wait(0.05):
                    return

    page.evaluate("app.view.list.go(Math.floor(app.view.list.items.length / 2))")
    thread = threading.Thread(target=write)
    thread.start()
    found = scrolled(page, width)
    thread.join()
    page.wait_for_function("(n) => app.view.timeline.next > n", arg=before)
    page.wait_for_timeout(500)
    return {"records that came": page.evaluate("app.view.timeline.next") - before, **found}


def measure(page: Any, url: str, path: Path, width: str, records: int) -> dict[str, dict[str, Any]]:
    """All figures of one size and scheme."""
    page.add_init_script(METER)
    page.goto(f"{url}#/s/claude-code/{SESSION}")
    page.wait_for_function("() => meter.first")
    page.evaluate("meter.start()")
    page.wait_for_function("(n) => app.view.timeline.next >= n && app.view.followed", arg=records, timeout=60_000)
    loading = page.evaluate("meter.stop()")
    page.wait_for_timeout(300)
    opening = {
        "first contents ms": round(page.evaluate("meter.paint")),
        "largest contents ms": round(page.evaluate("meter.lcp")),
        "first record ms": round(page.evaluate("meter.first")),
        "all records ms": round(page.evaluate("meter.from") + loading["took"]),
        "long tasks": len(loading["longs"]),
        "longest": round(max(loading["longs"], default=0)),
    }
    told = {
        "opened": opening,
        "scrolled": scrolled(page, width),
        "jumped": jumped(page),
        "searched": searched(page),
        "live": live(page, path, 150, width),
    }
    told["layout shift"] = {
        "sum": round(page.evaluate("meter.shift"), 4),
        "of": page.evaluate("meter.moved.slice(0, 5)"),
    }
    return told


def main(records: int) -> None:
    """Measures, and prints a table."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        path = home / ".claude/projects/-home-dev-app" / f"{SESSION}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(lines(records * 2 // 3)))
        with running(home, Path(folder) / "store") as daemon:
            daemon.caught_up()
            with opened() as browser:
                for width, size in WIDTHS.items():
                    for scheme in ("light", "dark"):
                        there = daemon.records_of(SESSION)
                        with viewing(daemon.where) as viewer:  # its link opens once
                            told = measure(browser.page(size, scheme), viewer.url, path, width, there)
                        sys.stdout.write(f"\n{width}, {scheme}, {there:,} records\n")
                        for name, some in told.items():
                            sys.stdout.write(f"  {name:13}" + "  ".join(f"{k} {v}" for k, v in some.items()) + "\n")
                        sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    main(parser.parse_args().records)
