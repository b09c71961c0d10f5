"""The page's files are there, name each other rightly, and may do nothing but what they are for."""

import re

import pytest

from asrd.ui import page
from tests.ui.build import HOSTILE


@pytest.mark.parametrize("path", page.FILES)
def test_each_file_that_is_served_is_there(path: str) -> None:
    name, _ = page.FILES[path]

    assert page.content(name)


def test_the_page_loads_what_is_served_and_nothing_else() -> None:
    text = page.content("index.html").decode()

    named = re.findall(r'(?:src|href)="([^"]+)"', text)

    assert set(named) == set(page.FILES) - {"/"}
    assert [n for n in named if n.endswith(".js")] == [f"/{name}" for name in page.SCRIPTS]


@pytest.mark.parametrize("name", page.SCRIPTS)
def test_no_script_makes_markup_of_text_or_asks_another_machine(name: str) -> None:
    text = page.content(name).decode()

    forbidden = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|fetch\(|XMLHttp", text
    )
    addresses = [a for a in re.findall(r"\bhttps?://[^\s\"'`]+", text) if "www.w3.org/2000/svg" not in a]

    assert (forbidden, addresses) == ([], [])


def test_what_a_browser_may_do_is_said_with_each_answer() -> None:
    policy = page.headers(8000)["Content-Security-Policy"]

    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy and "*" not in policy
    assert "ws://127.0.0.1:8000" in policy


def test_one_file_runs_its_own_script_alone() -> None:
    text = page.single(
        {"sessions": [{"records": [{"text": w} for w in HOSTILE]}], "removed": {}, "redaction": "off"}
    ).decode()

    scripts = re.findall(r"<script\b[^>]*>", text)

    assert scripts == ['<script type="application/json" id="held">', "<script>"]
    assert re.search(r"(?:src|href)=\"/", text) is None
    assert "script-src 'sha256-" in text and "connect-src" not in text
    assert text.count("</script>") == 2 and "<img src=x" not in text
