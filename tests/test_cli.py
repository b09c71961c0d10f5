"""Every command as a user calls it: text for people, `--json` for programs, one sentence and an exit code for trouble."""

import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from asrd import __version__, cli
from asrd.client import Asker
from asrd.errors import AsrdError
from asrd.paths import folders
from asrd.store.index import stream_files
from asrd.store.lock import locked
from tests.daemons import command
from tests.golden import CAPTURES
from tests.homes import environment

CLAUDE = CAPTURES / "claude-code/S2/home"
CODEX = CAPTURES / "codex/S1/home"
TREE = "59964eac-517f-42da-bfe8-951d7e00f813"
ROLLOUT = "01a22abf-7916-7f20-b35c-e52e5017a6b6"

Said = tuple[int, str, str]


class Shell:
    """Calls commands in this process, as if from a pipe."""

    def __init__(self, env: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        self.env, self.capsys = env, capsys

    def __call__(self, *args: str) -> Said:
        code = cli.main(list(args))
        out, err = self.capsys.readouterr()
        return code, out, err

    def json(self, *args: str) -> Any:
        code, out, err = self(*args, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A machine on which nothing was ever recorded."""
    home = tmp_path / "home"
    home.mkdir()
    env = environment(home, tmp_path / "store")
    for name in list(os.environ):
        if name.endswith("_HOME") or name.startswith(("CLAUDE", "CODEX")):
            monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home)
    return Shell(env, capsys)


@pytest.fixture
def asrd(empty: Shell, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A machine with a Claude Code session with sub-agents and a Codex session, recorded."""
    for home in (CLAUDE, CODEX):
        shutil.copytree(home, empty.env["HOME"], dirs_exist_ok=True)
    assert empty("sync", "--quiet") == (0, "", "")
    return empty


def store(shell: Shell) -> Path:
    return Path(shell.env["ASRD_HOME"])


# ---------------------------------------------------------------- help, names, refusals


def test_help_names_every_command_once_with_what_it_does(empty: Shell) -> None:
    code, out, _ = empty("--help")

    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert code == 0
    assert sorted(listed) == cli.commands()
    assert empty() == (code, out, "") == empty("help")


@pytest.mark.parametrize("name", cli.commands())
def test_every_command_has_help_and_refuses_what_it_does_not_know(name: str, empty: Shell) -> None:
    code, out, _ = empty(name, "--help")
    assert code == 0
    assert (cli.load(name).__doc__ or "").strip().splitlines()[0].split(":")[0][:20] in " ".join(out.split()) or out

    if not hasattr(cli.load(name), "main"):
        code, out, err = empty(name, "--no-such-option")
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1 and f"asrd {name} --help" in err


def test_a_command_that_is_none_is_refused(empty: Shell) -> None:
    assert empty("remember") == (2, "", "asrd: there is no command remember; see `asrd --help`.\n")


def test_the_version_is_the_packages(empty: Shell) -> None:
    assert empty("--version") == (0, f"asrd {__version__}\n", "") == empty("version")


@pytest.mark.parametrize(
    "args",
    [("ls",), ("show", "last"), ("tree",), ("usage",), ("lineage", "last"), ("handoff", "last", "--to", "codex")],
)
def test_before_anything_is_recorded_a_command_says_how_to(args: tuple[str, ...], empty: Shell) -> None:
    code, out, err = empty(*args)

    assert (code, out) == (50, "")
    assert "asrd sync" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("name", ["show", "lineage", "tree", "usage"])
def test_a_session_that_is_not_there_has_its_exit_code(name: str, asrd: Shell) -> None:
    code, out, err = asrd(name, "none")

    assert (code, out) == (50, "")
    assert "No session matches none" in err


def test_a_refusal_is_json_when_json_was_asked_for(asrd: Shell) -> None:
    code, out, err = asrd("show", "none", "--json")

    assert (code, out) == (50, "")
    assert json.loads(err)["error"] == {
        "kind": "NothingFound",
        "message": "No session matches none; `asrd ls` shows what is recorded.",
        "exitCode": 50,
    }


def test_a_name_of_several_sessions_lists_them(asrd: Shell) -> None:
    code, _, err = asrd("show", "a")

    assert code == 51
    assert err.count("claude-code:a") >= 2


# ---------------------------------------------------------------- record


def test_sync_says_what_it_did_and_then_that_there_is_nothing_new(asrd: Shell) -> None:
    assert asrd.json("sync")["sources"] == 0
    code, out, err = asrd("sync")

    assert (code, out) == (0, "")
    assert err.startswith("0 sources had something new")
    assert asrd("run", "--once", "--quiet") == (0, "", "")


def test_the_streams_of_a_store_validate(asrd: Shell) -> None:
    files = [str(p) for p in stream_files(store(asrd) / "streams")]

    code, out, err = asrd("validate", "--no-warnings", *files)

    assert (code, out) == (0, "")
    assert err == f"{len(files)} of {len(files)} valid.\n"


def test_check_and_reindex(asrd: Shell) -> None:
    before = asrd.json("usage")
    assert asrd("reindex") == (0, "", "5 streams indexed anew.\n")
    assert asrd.json("usage") == before

    found = asrd.json("check")
    assert [s["trouble"] for s in found["streams"]] == [None] * 5
    victim = next(iter(stream_files(store(asrd) / "streams")))
    victim.write_bytes(victim.read_bytes().replace(b'"seq":2,', b'"seq":9,'))

    code, out, _ = asrd("check")
    assert code == 1
    assert "damaged" in out and victim.name in out and "its first 2 records are whole" in out


# ---------------------------------------------------------------- ask


def test_ls_lists_sessions_and_leaves_sub_agents_out(asrd: Shell) -> None:
    listed = asrd.json("ls")["sessions"]
    _, out, _ = asrd("ls")
    _, everything, _ = asrd("ls", "--all")

    assert len(listed) == 5
    assert {s["sessionId"] for s in listed if s["parent"] is None} == {TREE, ROLLOUT}
    assert len(out.splitlines()) == 3 and len(everything.splitlines()) == 6
    assert out.splitlines()[0].split()[:2] == ["SESSION", "HARNESS"]
    assert "\x1b" not in out


def test_ls_can_be_narrowed(asrd: Shell) -> None:
    assert [s["agent"] for s in asrd.json("ls", "--harness", "codex")["sessions"]] == ["codex"]
    assert len(asrd.json("ls", "--project", "/home/dev/app")["sessions"]) == 5
    assert asrd.json("ls", "--project", "/home/dev/ap")["sessions"] == []
    assert asrd.json("ls", "--here")["sessions"] == []
    assert asrd.json("ls", "--since", "2999-01-01")["sessions"] == []
    assert len(asrd.json("ls", "-n", "1")["sessions"]) == 1
    assert asrd("ls", "--since", "yesterday-ish")[0] in (0, 2)


def test_show_says_what_was_asked_said_and_done(asrd: Shell) -> None:
    code, out, _ = asrd("show", ROLLOUT)

    assert code == 0
    for part in ("[[S1T1]]", "exit 101", "calc.py", "turn start"):
        assert part in out
    records = [json.loads(line) for line in asrd("show", ROLLOUT, "--json")[1].splitlines()]
    assert [r["seq"] for r in records] == list(range(len(records)))
    assert records[0]["type"] == "session" and records[0]["sessionId"] == ROLLOUT


def test_show_gives_one_record_whole(asrd: Shell) -> None:
    code, out, _ = asrd("show", ROLLOUT, "--record", "r3")
    assert code == 0 and '"r3"' in out

    assert asrd("show", ROLLOUT, "--record", "r99999")[0] == 52
    assert asrd("show", ROLLOUT, "--record", "x")[0] == 52


def test_usage_counts_each_response_once(asrd: Shell) -> None:
    answer = asrd.json("usage")
    _, out, _ = asrd("usage")

    total = answer["total"]
    assert (total["requests"], total["inputTotal"], total["output"]) == (18, 44340 + 11129, 2326 + 412)
    assert sum(s["output"] for s in answer["bySession"]) == total["output"]
    assert {h["harness"]: h["inputTotal"] for h in answer["byHarness"]} == {"claude-code": 44340, "codex": 11129}
    assert "55,469" in out and "2,738" in out


def test_usage_of_a_session_and_of_its_tree(asrd: Shell) -> None:
    alone, tree = asrd.json("usage", TREE)["total"], asrd.json("usage", TREE, "--tree")["total"]

    assert (tree["requests"], tree["inputTotal"], tree["output"]) == (10, 44340, 2326)
    assert alone["requests"] < tree["requests"]
    assert asrd("usage", "--timezone", "Nowhere/Land")[0] == 2
    assert asrd("usage", "--since", "never")[0] == 2


def test_tree_draws_sub_agents_below_their_session(asrd: Shell) -> None:
    _, out, _ = asrd("tree", TREE)
    (root,) = asrd.json("tree", TREE)["roots"]

    assert out.count("sub-agent") == 3
    assert "└─" in out
    assert root["own"]["requests"] + root["descendants"]["requests"] == 10
    assert {c["relation"] for c in root["children"]} == {"spawned_by"} or {c["relation"] for c in root["children"]} == {
        "spawned"
    }


def fields_of(value: Any) -> set[str]:
    """The names of all fields of an answer, at any depth; not those of what is counted by a name (rules, kinds, tools)."""
    if isinstance(value, dict):
        inside = cast("dict[str, Any]", value)
        by_name = ("skips", "unknown", "kept", "toolSeconds", "removed", "callsByApprover", "input", "prices")
        return set(inside).union(*(fields_of(v) for k, v in inside.items() if k not in by_name))
    return set[str]().union(*map(fields_of, cast("list[Any]", value))) if isinstance(value, list) else set()


ANSWERS = (
    "ls", "tree", "usage", "usage daily", "usage session", "usage branch", "usage --explain", f"lineage {TREE}", "time",
    f"interval {TREE} --until 2027-01-01", "report", "audit --since 2026-01-01", "doctor", "status", "search calc", "check",
    f"handoff {TREE} --to prompt", "seal", "claim --list", "top",
)  # fmt: skip


def test_every_field_of_an_answer_stands_in_its_page(asrd: Shell) -> None:
    page = (Path(__file__).parents[1] / "docs" / "json.md").read_text("utf-8")
    named = {part.split("\n")[0]: set(re.findall(r"\w+", part)) for part in re.split(r"(?m)^## ", page)}

    answers = {words: json.loads(asrd(*words.split(), "--json")[1]) for words in ANSWERS}

    for words, answer in answers.items():
        (part,) = [told for head, told in named.items() if answer["schema"] in head]
        assert set(answer) - part <= {"schema"}, words
        assert fields_of(answer) - set[str]().union(*named.values()) == set(), words


def test_what_is_refused_names_the_command_that_was_called(asrd: Shell) -> None:
    for words in (("ls", "--since", "soon"), ("time", "--until", "soon"), ("usage", "--since", "soon")):
        assert asrd(*words) == (
            2,
            "",
            f"asrd: `soon` as a time is not something asrd can do; see `asrd {words[0]} --help`.\n",
        )
    assert asrd("time", "--timezone", "Mars/X")[2].endswith("see `asrd time --help`.\n")


def test_a_record_that_a_session_does_not_have_is_said_to_be_missing_and_not_the_session(asrd: Shell) -> None:
    for record in ("r99999", "what"):
        code, out, err = asrd("show", TREE, "--record", record)

        assert (code, out) == (52, "")
        assert err == f"asrd: {TREE} has no record {record}; `asrd show {TREE}` shows those it has.\n"


def test_a_list_with_nothing_in_it_says_so(asrd: Shell) -> None:
    code, out, err = asrd("ls", "--harness", "nobody")

    assert (code, out) == (0, "") and "no session is like that" in err
    assert asrd.json("ls", "--harness", "nobody")["sessions"] == []


def test_a_home_without_any_session_is_said_to_have_none(empty: Shell) -> None:
    empty("sync", "--quiet")

    assert (
        empty("ls")[2] == "asrd: no session is recorded here; `asrd doctor` shows what is recorded of each harness.\n"
    )


def test_lineage_names_its_evidence(asrd: Shell) -> None:
    answer = asrd.json("lineage", TREE)
    code, out, _ = asrd("lineage", TREE)

    assert code == 0 and answer["links"]
    assert all(link["evidence"]["kind"] for link in answer["links"])
    assert "RELATION" in out


def test_status_says_who_has_the_store_and_answers_nothing(asrd: Shell) -> None:
    with locked(folders().lock):
        code, out, _ = asrd("status")

    assert code == 1
    assert f"process {os.getpid()} has the store and answers nothing" in out and "5 sessions" in out


@pytest.mark.parametrize(
    ("behind", "caught_up", "words"),
    [(0, True, "caught up"), (0, False, "looking for sources"), (1200, False, "1,200 sources behind")],
)
def test_status_says_how_far_the_daemon_is(
    asrd: Shell, monkeypatch: pytest.MonkeyPatch, behind: int, caught_up: bool, words: str
) -> None:
    totals = {"sessions": 3, "records": 20, "bytes": 4096, "gaps": 0, "losses": 1}
    said = {"running": True, "pid": 7, "startedAt": "2026-11-30T10:00:00Z", "behind": behind, "caughtUp": caught_up,
            "watch": "watching 2 folders", "store": "/s", "totals": totals,
            "trouble": [{"path": "/p", "what": "cannot be read"}]}  # fmt: skip
    monkeypatch.setattr(Asker, "ask", lambda *_: said)  # type: ignore[reportUnknownLambdaType]

    code, out, _ = asrd("status")

    assert code == 0
    assert f"(process 7), {words}\n" in out
    assert "! /p: cannot be read" in out and "1 loss stated" in out


def test_status_says_that_nothing_records(asrd: Shell) -> None:
    code, out, _ = asrd("status")

    assert code == 1
    assert "no daemon records" in out and "5 sessions" in out
    code, out, _ = asrd("status", "--json")
    assert code == 1 and json.loads(out)["running"] is False


def test_doctor_says_what_is_recorded_of_each_harness(asrd: Shell) -> None:
    code, out, _ = asrd("doctor")
    found = json.loads(asrd("doctor", "--json")[1])

    by_name = {h["harness"]: h for h in found["harnesses"]}
    assert (by_name["codex"]["sources"], by_name["codex"]["sessions"], by_name["codex"]["losses"]) == (1, 1, 0)
    assert by_name["claude-code"]["sessions"] == 4
    assert found["needsAPerson"] == [] and code == 0
    assert "Nothing needs a person." in out


def test_doctor_counts_what_a_connection_saw_as_the_sessions_of_its_source(empty: Shell) -> None:
    spool = store(empty) / "spool"
    spool.mkdir(parents=True)
    for source in sorted((CAPTURES / "acp/codex/home").rglob("*.acp.jsonl")):
        shutil.copyfile(source, spool / source.name)
    assert empty("sync", "--quiet") == (0, "", "")

    found = json.loads(empty("doctor", "--json")[1])

    by_name = {h["harness"]: h for h in found["harnesses"]}
    seen = by_name["acp"]
    assert seen["sources"] == 2 and seen["sessions"] > 0 and seen["records"] > 0
    assert by_name["codex"]["sessions"] == 0
    assert found["needsAPerson"] == []


def test_doctor_names_the_files_that_are_not_read_and_why(empty: Shell) -> None:
    home = Path(empty.env["HOME"])
    shutil.copytree(CAPTURES / "antigravity/S1/home", home, dirs_exist_ok=True)
    for name in ("a", "b"):
        (home / ".gemini/antigravity-cli/implicit").mkdir(exist_ok=True)
        (home / f".gemini/antigravity-cli/implicit/{name}.pb").write_bytes(b"12345")
    empty("sync", "--quiet")

    _, out, _ = empty("doctor")

    (one,) = [h for h in json.loads(empty("doctor", "--json")[1])["harnesses"] if h["harness"] == "antigravity"]
    assert one["unread"] == [
        {"pattern": "implicit/*.pb", "why": "in a form that nobody described", "files": 2, "bytes": 10}
    ]
    assert "antigravity files not read: implicit/*.pb 2 (in a form that nobody described)" in " ".join(out.split())


def test_doctor_is_content_with_a_database_in_which_nothing_was_said_yet(empty: Shell) -> None:
    home = Path(empty.env["HOME"])
    shutil.copytree(CAPTURES / "cursor-desktop/S1/home", home, dirs_exist_ok=True)
    (database,) = home.rglob("globalStorage/state.vscdb")
    with sqlite3.connect(database) as db:
        db.execute("DELETE FROM cursorDiskKV")
    empty("sync", "--quiet")

    code, out, _ = empty("doctor")

    assert (code, "Nothing needs a person." in out) == (0, True)


def test_doctor_says_what_needs_a_person(asrd: Shell) -> None:
    session = next(Path(asrd.env["HOME"]).rglob("rollout-*.jsonl"))
    with session.open("ab") as file:
        file.write(b'nonsense\n{"timestamp":"2026-11-30T04:00:00Z","type":"quantum-state","payload":{}}\n')
    asrd("sync", "--quiet")

    code, out, _ = asrd("doctor")

    assert code == 1
    assert "1 loss stated" in out and "quantum-state" in out


def test_handoff_writes_a_brief_and_says_how_it_would_start(asrd: Shell, tmp_path: Path) -> None:
    code, out, err = asrd("handoff", ROLLOUT, "--to", "claude")
    assert code == 0 and ROLLOUT in out and "tokens" in err

    planned = asrd("handoff", ROLLOUT, "--to", "claude", "--dry-run")[1]
    assert "claude" in planned
    target = tmp_path / "brief.md"
    assert asrd("handoff", ROLLOUT, "--to", "codex", "--out", str(target))[0] == 0
    assert oct(target.stat().st_mode)[-3:] == "600"
    assert asrd("handoff", ROLLOUT, "--to", "nobody")[0] in (2, 21)


def test_convert_gives_the_stream_of_a_file_without_a_store(empty: Shell) -> None:
    rollout = next(CODEX.rglob("rollout-*.jsonl"))

    done = command(empty.env, "convert", str(rollout))

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.splitlines()[0])["sessionId"] == ROLLOUT
    assert not Path(empty.env["ASRD_HOME"]).exists()


def test_convert_says_what_it_could_not_read(empty: Shell, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nothing known")

    assert empty("convert", str(tmp_path / "none"))[0] == 20
    assert empty("convert", str(tmp_path / "x"))[0] == 21


def test_completion_offers_commands_options_and_sessions(asrd: Shell) -> None:
    def words(*before: str) -> list[str]:
        return asrd("completion", "--words", *before)[1].split()

    assert words() == cli.commands()
    assert "--json" in words("ls")
    assert {"last", TREE, ROLLOUT} <= set(words("show"))
    assert words("usage", "--by")[:2] == ["day", "model"]
    assert words("none") == []
    for shell in ("bash", "zsh", "fish"):
        assert "asrd completion --words" in asrd("completion", shell)[1]


# ---------------------------------------------------------------- pipes and terminals


def test_a_pipe_that_closes_ends_a_command_quietly(asrd: Shell) -> None:
    script = f"{sys.executable} -m asrd show {ROLLOUT} --full --json | head -c 10"

    done = subprocess.run(["sh", "-c", script], env=os.environ, capture_output=True, text=True, check=False)

    assert (len(done.stdout), done.stderr) == (10, "")


def test_each_command_starts_fast_enough_to_be_typed(asrd: Shell) -> None:
    done = command(asrd.env, "ls", "--json")

    assert done.returncode == 0 and json.loads(done.stdout)["schema"].startswith("asrd.sessions/")
    assert done.stderr == ""


def test_an_error_of_ours_is_one_sentence(empty: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(args: Any) -> int:
        raise AsrdError(what="the moon")

    monkeypatch.setattr(cli.load("ls"), "run", fails)
    assert empty("ls") == (1, "", "asrd: Something went wrong: the moon.\n")

    interrupted: Callable[[Any], int] = lambda args: (_ for _ in ()).throw(KeyboardInterrupt)  # noqa: E731
    monkeypatch.setattr(cli.load("ls"), "run", interrupted)
    assert empty("ls")[0] == 130


def test_a_terminal_gets_colours_and_a_line_about_what_is_not_shown(
    asrd: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.delenv("NO_COLOR", raising=False)

    assert cli.main(["ls"]) == 0

    assert "\x1b[36m" in screen.getvalue()
    assert "3 sub-agents" in screen.getvalue()
