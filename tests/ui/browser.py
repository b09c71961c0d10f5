"""Headless Chromium on the page. `make test-ui` installs what is needed; without it these tests are skipped, with the reason."""

import contextlib
import os
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from asrd.ui.server import Viewer

ROOT = Path(__file__).parents[2]
AXE = Path(os.environ.get("ASRD_AXE") or ROOT / ".venv" / "ui" / "node_modules" / "axe-core" / "axe.min.js")
WIDTHS = {"desktop": (1280, 800), "phone": (390, 844)}


def chromium() -> str:
    """The browser's program, or a skip."""
    found = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)
    if found is None:
        pytest.skip("there is no Chromium here; `make test-ui` installs it")
    return found


class Browser:
    """A browser with one page at a time; `heard` is what it complains of, `asked` every address it asks for."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self.heard: list[str] = []
        self.asked: list[str] = []

    def page(self, size: tuple[int, int] = WIDTHS["desktop"], scheme: str = "light") -> Any:
        """A page of a fresh profile; the one before is closed."""
        for old in list(self._browser.contexts):
            old.close()
        self.heard.clear()
        self.asked.clear()
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, has_touch=size[0] < 600
        )
        page = context.new_page()
        page.set_default_timeout(15_000)

        def said(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.heard.append(message.text)

        def failed(error: Any) -> None:
            self.heard.append(str(error))

        def asked(one: Any) -> None:
            self.asked.append(one.url)

        page.on("console", said)
        page.on("pageerror", failed)
        page.on("request", asked)
        page.on("websocket", asked)
        return page


@contextlib.contextmanager
def opened() -> Generator[Browser]:
    """A browser, started and ended."""
    sync_api: Any = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed; `make test-ui` does"
    )
    program = chromium()
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield Browser(browser)
        finally:
            browser.close()


def visit(page: Any, viewer: Viewer, place: str = "") -> Any:
    """The page, opened by its link."""
    page.goto(viewer.url + place)
    page.wait_for_selector(".row, figure, [role=treeitem], .empty")
    return page


def settled(page: Any) -> None:
    """Waits until nothing is drawn any more."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60))))"
    )


def complaints(page: Any) -> list[str]:
    """What axe-core finds wrong with what is shown, each with where."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed; `make test-ui` does")
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [
        f"{v['id']}: {v['help']}: {n['target']} {n.get('failureSummary', '')[:300]}" for v in found for n in v["nodes"]
    ]
