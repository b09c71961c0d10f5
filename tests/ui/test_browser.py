"""The page in a real browser: what a person clicks, types, sees, and what harms nobody."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from asrd.client import open_reader
from asrd.records import Message, Text
from asrd.redact import Redactor
from asrd.store.rows import IndexRows
from asrd.ui import page as pages
from asrd.ui import view
from asrd.ui.server import Viewer
from tests.daemons import running
from tests.golden import CAPTURES
from tests.homes import recorded
from tests.store.build import Made, child_of
from tests.ui.browser import WIDTHS, Browser, complaints, opened, settled, visit
from tests.ui.build import EVIL, HOSTILE, SECRET, STORY, at, evil, grow, lay, long, story, viewing, where_of
from tests.ui.speed import METER, jumped, scrolled

pytestmark = pytest.mark.browser

SHOTS = os.environ.get("ASRD_SHOTS")
"""A folder for screenshots, to be looked at."""


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with opened() as one:
        yield one


@pytest.fixture
def viewer(tmp_path: Path) -> Generator[Viewer]:
    where = where_of(tmp_path)
    lay(where, *story(), evil())
    with viewing(where) as one:
        yield one


@pytest.fixture
def far(tmp_path: Path) -> Generator[Viewer]:
    """A session of 50,000 records."""
    where = where_of(tmp_path)
    lay(where, long(50_000))
    with viewing(where) as one:
        yield one


def shoot(page: Any, name: str) -> None:
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png")


def row(page: Any, words: str) -> Any:
    return page.locator(".row", has_text=words).first


# ---------------------------------------------------------------- click paths


def test_from_the_list_into_a_session_and_back_by_keys_alone(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page(), viewer)

    page.keyboard.press("/")
    page.keyboard.type("Fix")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.prompt")
    page.keyboard.press("j")
    page.keyboard.press("j")

    assert page.evaluate("location.hash") == "#/s/codex/story"
    assert page.evaluate("document.activeElement.getAttribute('aria-posinset')") == "2"
    page.keyboard.press("Escape")
    page.wait_for_selector(".sessions")
    assert page.evaluate("location.hash") == "#/"


def test_a_timeline_shows_what_happened(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page(), viewer, "#/s/codex/story")
    page.wait_for_selector("article.tool_call")
    settled(page)

    call = row(page, "cargo test")

    assert call.locator(".outcome").inner_text() == "failed · exit 101 · 1.2 s"
    assert call.locator(".out").inner_text() == "   Compiling app\n100% done\nerror: no such function"
    assert call.locator(".out .f1").inner_text() == "error"
    assert page.locator(".diff .minus").inner_text().strip() == "-    return a - b"
    assert page.locator(".diff .plus").inner_text().strip() == "+    return a + b"
    assert page.locator("article.thinking details").get_attribute("open") is None
    shoot(page, "timeline")


def test_gaps_and_losses_are_seen_and_gone_to(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page(), viewer, "#/s/codex/story")
    page.wait_for_selector(".trouble:not([hidden])")

    assert page.locator(".trouble").inner_text() == "1 gap, 1 loss"
    page.locator(".trouble").click()
    settled(page)

    assert "Something is missing here: torn" in page.locator(".row.active").inner_text()
    page.keyboard.press("!")
    assert "could not be converted: not JSON" in page.locator(".row.active").inner_text()
    shoot(page, "gaps")


def test_a_sub_agent_opens_in_its_place_and_closes_again(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page(), viewer, "#/s/codex/story")
    row(page, "Open sub-agent here").locator("[data-do=child]").click()
    page.wait_for_selector(".deep")
    settled(page)
    shoot(page, "sub-agent")

    texts = page.locator(".row").all_inner_texts()
    at = next(i for i, t in enumerate(texts) if "Close sub-agent" in t)

    assert any("The notes say 42." in t for t in texts[at + 1 : at + 6])
    page.locator("[data-do=child]").click()
    page.wait_for_function("() => !document.querySelector('.deep')")


def test_every_record_is_there_when_it_is_asked_for(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page((1280, 4000)), viewer, "#/s/codex/story")
    page.wait_for_selector("article.prompt")
    assert page.locator("article.injected").count() == 0

    page.keyboard.press("e")
    settled(page)

    assert page.locator("article.injected").count() == 1
    ids = set(page.locator("article .id").all_inner_texts())
    folded = {"r8", "r10", "r11", "r14"}  # results and changes stand in their calls
    ends = {"r1", "r18"}  # turns are rules
    assert ids == {"h", *(f"r{n}" for n in range(1, 19))} - folded - ends
    page.locator("article.inference .id").first.click()
    settled(page)
    assert '"dev.asrd.span"' in page.locator(".raw").inner_text()
    assert '"cacheRead": 300' in page.locator(".raw").inner_text()


def test_a_search_goes_from_place_to_place(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page(), viewer, "#/s/codex/story")
    page.wait_for_selector("article.prompt")

    page.keyboard.press("/")
    page.keyboard.type("calc.py")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.found').textContent.startsWith('1 of')")
    first = page.locator(".row.active").inner_text()
    page.keyboard.press("Enter")

    assert page.locator(".found").inner_text().startswith("2 of")
    assert page.locator(".row.active").inner_text() != first
    assert page.evaluate("CSS.highlights.get('found').size") > 1


def test_a_replay_shows_records_one_after_the_other(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page(), viewer, "#/s/codex/story")
    page.wait_for_selector("article.prompt")
    page.evaluate("app.view.list.items.length")

    page.keyboard.press("p")
    page.keyboard.press(" ")
    page.locator(".replay [aria-label='One on']").click()
    counts = [page.evaluate("app.view.list.items.length")]
    page.locator(".replay [aria-label='One on']").click()
    counts.append(page.evaluate("app.view.list.items.length"))
    shoot(page, "replay")
    page.locator(".replay select").select_option("64")
    page.locator(".replay button").first.click()
    page.wait_for_function("() => !app.view.replay.playing && app.view.replay.at === app.view.items.length - 1")

    assert counts[1] == counts[0] + 1
    page.keyboard.press("Escape")
    assert page.locator(".replay").is_hidden()


def test_tree_and_usage_say_what_the_store_knows(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page(), viewer, "#/tree")
    page.wait_for_selector("[role=treeitem]")

    levels = [n.get_attribute("aria-level") for n in page.locator("[role=treeitem]").all()]
    assert levels == ["1", "2"]
    page.keyboard.press("j")
    page.keyboard.press("h")
    assert page.locator("[role=treeitem]").nth(1).is_hidden()
    shoot(page, "tree")

    page.keyboard.press("u")
    page.wait_for_selector(".usage")
    page.locator("[aria-label='How far back']").select_option("")
    page.wait_for_selector("figure")
    settled(page)
    cells = page.locator("[aria-label='By model'] tbody tr").first.locator("th, td").all_inner_texts()
    assert cells[0] == "gpt-5" and cells[2:6] == ["2", "1,310", "300", "25"]
    shoot(page, "usage")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_figure_stands_below_its_heading_and_the_largest_first(browser: Browser, viewer: Viewer, width: str) -> None:
    page = visit(browser.page(WIDTHS[width]), viewer, "#/usage")
    page.locator("[aria-label='How far back']").select_option("")
    page.wait_for_selector("figure")
    settled(page)

    edges = page.evaluate(
        """() => [...document.querySelectorAll("table")].map((table) => [...table.rows].map((row) =>
        [...row.cells].filter((c) => c.getClientRects().length).map((c) => Math.round(c.getBoundingClientRect().right))))"""
    )
    inputs = page.locator("[aria-label='By model'] tbody tr td:nth-child(4)").all_inner_texts()

    assert edges and all(rows[0] == row for rows in edges for row in rows)
    told = [int(n.replace(",", "")) for n in inputs]
    assert len(told) > 1 and told == sorted(told, reverse=True)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_session_that_is_not_there_is_told_in_its_place(browser: Browser, viewer: Viewer, width: str) -> None:
    page = browser.page(WIDTHS[width])
    page.goto(viewer.url + "#/s/codex/none")
    page.wait_for_selector("[role=alert]")
    settled(page)
    shoot(page, f"not-there-{width}")

    assert "No session matches codex:none" in page.locator(".head [role=alert]").inner_text()
    box = page.locator(".scroll").bounding_box()
    assert box is not None and box["height"] > 400
    assert browser.heard == [] and complaints(page) == []


def test_a_forest_is_shown_tree_by_tree_and_gone_through_by_keys_to_its_end(browser: Browser, tmp_path: Path) -> None:
    where = where_of(tmp_path)
    parents = [Made(f"p{n}").prompt(f"Do {n}", at=at(n)) for n in range(90)]
    children = [Made(f"c{n}", lineage=child_of(f"p{n}")).prompt(f"Read {n}", at=at(n)) for n in range(90)]
    lay(where, *parents, *children)
    with viewing(where) as viewer:
        page = visit(browser.page(), viewer, "#/tree")
        page.wait_for_function("() => document.querySelectorAll('[role=treeitem]').length === 180")
        settled(page)
        page.keyboard.press("G")

        last = page.locator("[role=treeitem]").last
        assert page.evaluate("app.view.nodes.length") == 180
        assert last.evaluate("(node) => node === document.activeElement")
        assert complaints(page) == []


def test_nothing_moves_when_another_view_is_gone_to_or_sessions_are_counted(browser: Browser, tmp_path: Path) -> None:
    where = where_of(tmp_path)
    many = [Made(f"s{n}").prompt(f"Do {n}", at=at(n)) for n in range(230)]
    lay(where, *story(), *many)
    for width in WIDTHS.values():
        with viewing(where) as viewer:
            page = browser.page(width)
            page.add_init_script(METER)
            visit(page, viewer)
            page.wait_for_function("() => app.view.sessions.length > 230")
            for place in ("#/tree", "#/usage", "#/"):
                page.evaluate("(place) => { location.hash = place }", place)
                page.wait_for_timeout(150)
            settled(page)

            assert page.evaluate("[meter.shift, meter.moved]") == [0, []]


def test_a_title_is_without_the_marks_of_a_prompt(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page(), viewer)

    assert row(page, "Fix add so that ./check.sh passes. assert add(2, 3) == 5").count() == 1
    page.evaluate("location.hash = '#/s/codex/story'")
    page.wait_for_selector("article.prompt")
    assert page.locator("h2.title").inner_text().startswith("Fix add so that ./check.sh passes.")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", ["#/", "#/tree", "#/usage"])
def test_an_empty_store_says_so(browser: Browser, tmp_path: Path, place: str, width: str) -> None:
    where = where_of(tmp_path)
    lay(where)
    with viewing(where) as viewer:
        page = visit(browser.page(WIDTHS[width]), viewer, place)
        settled(page)

        assert page.locator(".empty").inner_text().startswith(("No session", "Nothing was used"))
        assert complaints(page) == [] and browser.heard == []


def test_what_is_recorded_while_it_is_looked_at_appears(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page((1280, 4000)), viewer, "#/s/codex/story")
    page.wait_for_selector("article.prompt")
    page.wait_for_timeout(2200)

    grow(viewer.folders, story()[0].key, Message(role="assistant", content=[Text(text="And one thing more.")]))

    page.wait_for_selector("text=And one thing more.")
    ids = page.locator("article .id").all_inner_texts()
    assert len(ids) == len(set(ids))


def test_what_a_daemon_records_appears_once_also_after_a_lost_connection(browser: Browser, tmp_path: Path) -> None:
    home = tmp_path / "home"
    source = next((CAPTURES / "claude-code" / "S1" / "home").rglob("*.jsonl"))
    path = home / source.relative_to(CAPTURES / "claude-code" / "S1" / "home")
    path.parent.mkdir(parents=True)
    lines = source.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:8]))
    with running(home, tmp_path / "store") as daemon:
        daemon.caught_up()
        with viewing(daemon.where) as viewer:
            page = visit(browser.page(), viewer, f"#/s/claude-code/{source.stem}")
            page.wait_for_function("() => app.view.followed")
            before = page.evaluate("app.view.timeline.next")

            for n in range(9, len(lines) - 3):
                path.write_bytes(b"".join(lines[:n]))
            page.wait_for_function("(n) => app.view.timeline.next > n", arg=before)
            page.evaluate("app.wire.socket.close()")
            page.wait_for_function("() => !app.wire.up")
            path.write_bytes(b"".join(lines[:-1]))
            page.wait_for_function("() => app.wire.up && app.view.times === app.wire.times")
            path.write_bytes(b"".join(lines))
            daemon.caught_up()
            known = daemon.ask("session.get", session=source.stem)["session"]["records"]
            page.wait_for_function("(n) => app.view.timeline.next >= n", arg=known)
            live = page.locator("#live").inner_text()
            seqs = page.evaluate("app.view.timeline.items.map((i) => i.rec.seq)")

    assert known > before and live == "live"
    assert seqs == sorted(set(seqs))


@pytest.mark.parametrize("case", ["claude-code/S2", "codex/S4-auto", "codex/S8-fatal", "opencode/S2", "qwen/S1"])
def test_every_record_of_a_capture_is_shown_without_a_complaint(browser: Browser, case: str, tmp_path: Path) -> None:
    with recorded(CAPTURES / case / "home", tmp_path / "store") as one, viewing(one.where) as viewer:
        page = visit(browser.page(WIDTHS["phone"]), viewer)
        places = page.evaluate("app.view.sessions.map(addressOf)")
        shown: list[int] = []
        for place in places:
            page.evaluate("(place) => { location.hash = place }", place)
            page.wait_for_function(
                "(p) => app.view.ref && addressOf(app.view.ref) === p && app.view.followed !== undefined", arg=place
            )
            page.evaluate("app.view.everything()")
            wide = page.evaluate(
                """async () => {
                  const list = app.view.list, wide = [];
                  for (let i = 0; i < list.items.length; i += 4) {
                    list.go(i);
                    await new Promise(requestAnimationFrame);
                    for (const node of list.nodes.values()) if (node.scrollWidth > node.clientWidth + 1) wide.push(node.innerText);
                  }
                  return wide;
                }"""
            )
            shown.append(page.evaluate("app.view.timeline.next"))
            assert wide == []

        assert sorted(shown) == sorted(s.row.records for s in one.rows.sessions())
    assert browser.heard == []


# ---------------------------------------------------------------- for everybody


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", ["#/", "#/s/codex/story", "#/tree", "#/usage"])
def test_axe_finds_nothing_wrong(browser: Browser, viewer: Viewer, place: str, width: str, scheme: str) -> None:
    page = visit(browser.page(WIDTHS[width], scheme), viewer, place)
    if place == "#/usage":
        page.locator("[aria-label='How far back']").select_option("")
        page.wait_for_selector("figure")
    if "story" in place:
        page.keyboard.press("e")
        row(page, "Prompt").locator(".id").click()
    settled(page)
    shoot(page, f"axe-{width}-{scheme}-{place.strip('#/').replace('/', '-') or 'list'}")

    assert complaints(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    wide = (
        "[...document.querySelectorAll('.row, .leaf')].filter((node) => node.scrollWidth > node.clientWidth + 1).length"
    )
    assert page.evaluate(wide) == 0


def test_keys_are_told_in_a_dialog(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page(), viewer)

    page.keyboard.press("?")

    assert page.locator("dialog kbd").count() > 15
    shoot(page, "keys")
    assert complaints(page) == []
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


# ---------------------------------------------------------------- harm


def test_hostile_words_are_shown_and_not_obeyed(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page((1280, 6000)), viewer, "#/s/codex/evil")
    page.wait_for_selector("article.tool_call")
    page.keyboard.press("e")
    for fold in page.locator("details").all():
        fold.evaluate("(node) => { node.open = true }")
    settled(page)
    text = page.locator("#view").inner_text()
    shoot(page, "hostile")
    page.evaluate("app.view.list.items.forEach((i) => app.view.act(i, 'open'))")
    settled(page)

    assert page.evaluate("window.harmed") is None
    for words in (HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[6]):
        assert words in text
    assert page.locator("#view iframe, #view script, #view style, #view [onerror], #view img").count() == 0
    assert page.locator("a:not([href^='#'])").count() == 0
    assert "\u202e" not in text and "\x1b" not in text
    assert {a.split("/")[2] for a in browser.asked} == {f"127.0.0.1:{viewer.port}"}
    assert browser.heard == []


def test_one_file_is_the_same_view_without_a_server(browser: Browser, viewer: Viewer, tmp_path: Path) -> None:
    db = open_reader(viewer.folders)
    rows = IndexRows(db, viewer.folders.streams)
    names = {"story": STORY, "evil": EVIL}
    for name, ref in names.items():
        held = view.whole(rows, view.find(rows, ref), Redactor("default"))
        (tmp_path / f"{name}.html").write_bytes(pages.single(held))
    db.close()
    page = browser.page()

    page.goto((tmp_path / "story.html").as_uri())
    page.wait_for_selector("article.prompt")
    row(page, "Open sub-agent here").locator("[data-do=child]").click()
    page.wait_for_selector("text=The notes say 42.")
    settled(page)
    shoot(page, "one-file")

    assert SECRET not in page.content() and "1 secret removed" in page.locator("#live").inner_text()
    assert complaints(page) == []
    page.goto((tmp_path / "evil.html").as_uri())
    page.wait_for_selector("article.tool_call")
    assert page.evaluate("window.harmed") is None
    assert all(a.startswith("file:") for a in browser.asked)
    assert browser.heard == []


# ---------------------------------------------------------------- speed


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_view_comes_at_once_and_nothing_jumps(browser: Browser, far: Viewer, width: str) -> None:
    page = browser.page(WIDTHS[width])
    page.add_init_script(METER)

    page.goto(far.url + "#/s/codex/long")
    page.wait_for_function("() => meter.first && app.view.timeline.next === 50000", timeout=30_000)
    settled(page)

    assert page.evaluate("meter.first") < 1000
    assert page.evaluate("[meter.shift, meter.moved]") == [0, []]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_task_of_the_page_is_long_while_fingers_and_wheels_scroll(browser: Browser, far: Viewer, width: str) -> None:
    page = browser.page(WIDTHS[width])
    page.add_init_script(METER)
    visit(page, far, "#/s/codex/long")
    page.wait_for_function("() => app.view.timeline.next === 50000", timeout=30_000)

    gestures, jumps = scrolled(page, width, 3), jumped(page, 20)

    assert gestures["frames"] > 100 and page.evaluate("app.view.list.root.scrollTop") > 10_000
    assert max(gestures["longest of its own"], jumps["longest of its own"]) < 50


def test_a_record_that_comes_is_added_at_the_end_however_long_the_session_is(browser: Browser, far: Viewer) -> None:
    page = visit(browser.page(), far, "#/s/codex/long")
    page.wait_for_function("() => app.view.timeline.next === 50000 && app.view.followed !== undefined", timeout=30_000)

    took = page.evaluate(
        """() => {
          const times = [];
          for (let n = 0; n < 60; n++) {
            const seq = app.view.timeline.next, role = n % 3 ? "assistant" : "user";
            const said = { type: "message", role, content: [{ type: "text", text: "more " + n }] };
            const rec = { ...(n % 5 === 4 ? { type: "inference", inferenceId: "x" + n } : said), seq, id: "r" + seq };
            const start = performance.now();
            app.view.take([rec]);
            times.push(performance.now() - start);
          }
          return times.sort((a, b) => a - b)[30];
        }"""
    )
    kept = page.evaluate(
        """() => {
          const { list, timeline } = app.view, wanted = flatten(timeline, false), { heights } = list;
          const sum = heights.values.subarray(0, heights.n).reduce((a, b) => a + b, 0);
          const same = wanted.every((item, i) => item === list.items[i] && heights.values[i] > 0);
          return { same: same && wanted.length === list.items.length, n: heights.n === wanted.length,
                   far: Math.abs(heights.before(heights.n) - sum), high: parseFloat(list.room.style.height) / sum };
        }"""
    )
    hidden = page.evaluate("app.view.timeline.items.filter((i) => i.minor && !i.forced).length")
    page.keyboard.press("G")
    settled(page)

    assert took < 3
    assert kept["same"] and kept["n"] and kept["far"] < 0.01 and abs(kept["high"] - 1) < 1e-4
    assert page.evaluate("app.view.hidden") == hidden
    assert "more 58" in page.locator(".row.active").inner_text()


def test_a_record_that_takes_the_place_of_another_is_shown_alone(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page((1280, 6000)), viewer, "#/s/codex/story")
    page.wait_for_function("() => app.view.timeline.next === 19 && app.view.followed !== undefined")

    page.evaluate(
        """() => [
          { seq: 19, id: "r19", content: [{ type: "text", text: "at first" }] },
          { seq: 20, id: "r20", supersedes: "r19", content: [{ type: "text", text: "in the end" }] },
        ].forEach((r) => app.view.take([{ type: "message", role: "assistant", ...r }]))"""
    )
    settled(page)

    assert page.locator("text=in the end").count() == 1 and page.locator("text=at first").count() == 0


def test_50_000_records_scroll_without_a_stall(browser: Browser, far: Viewer) -> None:
    page = visit(browser.page(), far, "#/s/codex/long")
    page.wait_for_function("() => app.view.timeline.next === 50000", timeout=30_000)

    took = page.evaluate(
        """async () => {
          const list = app.view.list, times = [];
          for (let n = 0; n < 120; n++) {
            await new Promise(requestAnimationFrame);
            const start = performance.now();
            list.root.scrollTop += n % 10 === 9 ? 40000 : 400;
            list.draw();
            list.root.getBoundingClientRect();
            document.body.offsetHeight;
            times.push(performance.now() - start);
          }
          times.sort((a, b) => a - b);
          return { median: times[60], most: times[113], rows: list.nodes.size, items: list.items.length };
        }"""
    )
    print(took)

    assert took["items"] > 30_000 and took["rows"] < 60
    assert took["median"] < 16.7
    assert took["most"] < 50


def test_50_000_records_are_searched_without_a_stall(browser: Browser, far: Viewer) -> None:
    page = visit(browser.page(), far, "#/s/codex/long")
    page.wait_for_function("() => app.view.timeline.next === 50000", timeout=30_000)

    page.keyboard.press("/")
    page.keyboard.type("needle")
    took = page.evaluate(
        "async () => { const start = performance.now(); await app.view.search('needle'); return performance.now() - start }"
    )
    settled(page)

    assert "Find the needle here." in page.locator(".row.active").inner_text()
    box = page.locator(".row.active").bounding_box()
    assert box is not None and 0 < box["y"] < 800
    assert took < 1500
    page.keyboard.press("Escape")
    page.keyboard.press("G")
    settled(page)
    assert "Find the needle here." in page.locator(".row.active").inner_text()
    page.keyboard.press("g")
    settled(page)
    assert page.evaluate("app.view.list.root.scrollTop") < 20


def test_what_is_read_stays_where_it_is_while_heights_become_known(browser: Browser, far: Viewer) -> None:
    page = visit(browser.page(), far, "#/s/codex/long")
    page.wait_for_function("() => app.view.timeline.next === 50000", timeout=30_000)

    moved = page.evaluate(
        """async () => {
          const list = app.view.list, moved = [];
          const still = async () => { for (let n = 0; n < 4; n++) await new Promise(requestAnimationFrame); };
          list.root.scrollTop = list.heights.before(20000);
          await still();
          for (let n = 0; n < 30; n++) {
            const edge = list.root.getBoundingClientRect().top + 100;
            const rows = [...list.nodes.values()].filter((row) => row.getBoundingClientRect().bottom > edge);
            const node = rows.reduce((a, b) => (a.getBoundingClientRect().top < b.getBoundingClientRect().top ? a : b));
            const before = node.getBoundingClientRect().top;
            list.root.scrollTop -= 250;
            await still();
            moved.push(Math.abs(node.getBoundingClientRect().top - before - 250));
          }
          return moved;
        }"""
    )

    assert max(moved) <= 1


def test_records_that_come_twice_are_shown_once(browser: Browser, viewer: Viewer) -> None:
    page = visit(browser.page(), viewer, "#/s/codex/story")
    page.wait_for_function("() => app.view.timeline.next === 19")
    before = page.evaluate("app.view.timeline.items.length")

    page.evaluate("app.view.take(app.view.timeline.items.map((i) => i.rec))")

    assert page.evaluate("app.view.timeline.items.length") == before
