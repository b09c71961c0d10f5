"""A line is blamed on the session that wrote it, or on none: never on a wrong one."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from asrd.attribution import EVIDENCE
from asrd.blaming import Blamer, blame, commits, pairs, place_of, why
from asrd.errors import RepositoryUnusable
from asrd.export import Exported, Given, formats
from asrd.records import ToolCall
from asrd.redact import Redactor
from asrd.repository import Repository
from tests.golden import CAPTURES
from tests.histories import HUMAN, Clock, Generated, Hard, Repo, Shelf, Told
from tests.homes import recorded


def blamer_of(repo: Repo, *told: Told) -> Blamer:
    return Blamer(Shelf(*told), Repository(str(repo.folder)))  # type: ignore[arg-type]


def told_by_line(blamer: Blamer, path: str) -> list[tuple[str, str | None, str | None]]:
    return [
        (line.text, origin and origin.session_id, origin and origin.evidence) for _, line, origin in blamer.lines(path)
    ]


class Scene:
    """A repository with a first commit, and two sessions that work on it."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.repo = Repo(folder, self.clock)
        self.one, self.two = (Told(n, str(folder), self.clock) for n in ("one", "two"))
        self.repo.write("f.py", "first = 1\nlast = 9\n")
        self.repo.commit("start")
        self.one.asks("make it better")
        self.two.asks("make it faster")

    def owners(self) -> dict[str, str | None]:
        blamer = blamer_of(self.repo, self.one, self.two)
        return {text: owner for text, owner, _ in told_by_line(blamer, "f.py")}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "repo")


# ---------------------------------------------------------------- generated histories


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Generated, list[tuple[str, str | None]]]]:
    """20 histories, each with the lines of its files and who they are blamed on."""
    found: list[tuple[Generated, list[tuple[str, str | None]]]] = []
    for seed in range(20):
        made = Generated(tmp_path_factory.mktemp("history"), seed)
        blamer = blamer_of(made.repo, *made.told)
        found.append((made, [(t, o) for p in ("a.py", "b.py") for t, o, _ in told_by_line(blamer, p)]))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_in_a_generated_history_no_line_is_blamed_on_a_wrong_session(
    seed: int, histories: list[tuple[Generated, list[tuple[str, str | None]]]]
) -> None:
    made, lines = histories[seed]

    wrong = [(text, owner) for text, owner in lines if owner is not None and owner not in made.authors[text]]

    assert lines and wrong == []


def test_of_the_lines_of_sessions_most_are_known_over_all_histories(
    histories: list[tuple[Generated, list[tuple[str, str | None]]]],
) -> None:
    theirs = [owner for made, lines in histories for text, owner in lines if HUMAN not in made.authors[text]]

    known = sum(owner is not None for owner in theirs)

    assert sum(made.rewritten for made, _ in histories) > 20 and len(theirs) > 300
    assert known / len(theirs) > 0.6, (known, len(theirs))


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Hard, list[tuple[str, str | None]]]]:
    """20 histories with all that makes origins hard to tell."""
    found: list[tuple[Hard, list[tuple[str, str | None]]]] = []
    for seed in range(20):
        made = Hard(tmp_path_factory.mktemp("hard"), seed)
        blamer = blamer_of(made.repo, *made.told)
        paths = made.repo.git("ls-files").splitlines()
        found.append((made, [(t, o) for p in paths for t, o, _ in told_by_line(blamer, p)]))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_in_a_hard_history_no_line_is_blamed_on_a_session_that_never_wrote_it(
    seed: int, hard: list[tuple[Hard, list[tuple[str, str | None]]]]
) -> None:
    made, lines = hard[seed]

    wrong = [(text, owner) for text, owner in lines if owner is not None and owner not in made.authors[text]]

    assert lines and wrong == []


def test_hard_histories_have_all_that_is_hard_and_some_lines_are_known_all_the_same(
    hard: list[tuple[Hard, list[tuple[str, str | None]]]],
) -> None:
    done = sum((made.done for made, _ in hard), Counter[str]())
    theirs = [owner for made, lines in hard for text, owner in lines if HUMAN not in made.authors[text]]

    assert min(done[k] for k in ("again", "move", "format", "pick", "rename", "amend", "revert")) >= 10
    assert len(theirs) > 200 and sum(o is not None for o in theirs) / len(theirs) > 0.25


# ---------------------------------------------------------------- captures


@pytest.mark.parametrize("case", ["claude-code/S1", "claude-code/S1-v2.0.65", "codex/S1", "codex/S1-v0.128.0"])
def test_the_commit_of_a_capture_is_blamed_on_its_session_prompt_and_model(case: str, tmp_path: Path) -> None:
    truth = json.loads((CAPTURES / case / "truth.json").read_text())
    clock = Clock()
    clock.now = int(truth["ended"])
    repo = Repo(tmp_path / "repo", clock)
    repo.write("calc.py", truth["edits"][0]["before"])
    first = repo.commit("init")
    repo.write("calc.py", truth["edits"][-1]["after"])
    repo.commit("fix add")

    with recorded(CAPTURES / case / "home", tmp_path / "store") as one:
        blamer = Blamer(one.rows, Repository(str(repo.folder)), was="/home/dev/app")
        answer = blame(blamer, "calc.py", None, None, None, Redactor("off"))
        said = why(blamer, "HEAD", Redactor("off"))

    added = [line for line in answer["lines"] if line["commit"] != first]
    assert {line["text"] for line in added if line["text"]} == {"    return a + b", 'VERSION = "2"'}
    assert all(line["origin"]["sessionId"] in truth["session_ids"] for line in added if line["text"])
    assert all(line["origin"]["prompt"]["text"] == truth["turns"][0]["prompt"] for line in added if line["text"])
    models = {r["model"] for r in truth["responses"]}
    assert all(line["origin"]["model"] in models for line in added if line["text"])
    assert all(line["origin"] is None for line in answer["lines"] if line["commit"] == first)
    assert [s["sessionId"] for s in said["sessions"]] == [truth["session_ids"][0]]


# ---------------------------------------------------------------- what proves, and what does not


def test_lines_of_two_sessions_in_one_commit_are_told_apart(scene: Scene) -> None:
    scene.repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.edit(scene.two, "f.py", "first = 1\nbetter = 2\nfaster = 3\nlast = 9\n")
    scene.repo.commit()

    assert scene.owners() == {"first = 1": None, "better = 2": "one", "faster = 3": "two", "last = 9": None}


def test_a_line_that_a_person_added_between_is_not_the_sessions(scene: Scene) -> None:
    scene.repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.write("f.py", "first = 1\nbetter = 2\nmine = 5\nlast = 9\n")
    scene.repo.commit()

    assert scene.owners() == {"first = 1": None, "better = 2": "one", "mine = 5": None, "last = 9": None}


def test_a_persons_edit_before_the_sessions_is_not_the_sessions(scene: Scene) -> None:
    scene.repo.write("f.py", "mine = 5\nfirst = 1\nlast = 9\n")
    scene.repo.edit(scene.one, "f.py", "mine = 5\nfirst = 1\nbetter = 2\nlast = 9\n")
    scene.repo.commit()

    assert scene.owners() == {"mine = 5": None, "first = 1": None, "better = 2": "one", "last = 9": None}


def test_the_same_edit_by_two_sessions_is_unknown(scene: Scene) -> None:
    text = "first = 1\nbetter = 2\nlast = 9\n"
    scene.repo.edit(scene.one, "f.py", text)
    scene.repo.git("checkout", "-q", "f.py")
    scene.repo.edit(scene.two, "f.py", text)
    scene.repo.commit()

    assert set(scene.owners().values()) == {None}


def test_what_a_session_undid_and_did_again_after_the_commit_does_not_make_it_its_own(scene: Scene) -> None:
    text = "first = 1\nmine = 5\nlast = 9\n"
    scene.repo.write("f.py", text)
    scene.repo.commit()
    scene.repo.edit(scene.one, "f.py", "first = 1\nlast = 9\n")
    scene.repo.edit(scene.one, "f.py", text)

    assert set(scene.owners().values()) == {None}


def test_what_a_session_undid_and_did_again_before_the_commit_is_the_persons_still(scene: Scene) -> None:
    text = "first = 1\nmine = 5\nlast = 9\n"
    scene.repo.write("f.py", text)
    scene.repo.edit(scene.one, "f.py", "first = 1\nother = 5\nlast = 9\n")
    scene.repo.edit(scene.one, "f.py", text)
    scene.repo.commit()

    assert scene.owners()["mine = 5"] is None


def test_words_alone_prove_nothing(scene: Scene) -> None:
    scene.one.edits("f.py", "another content\n", "another content\nbetter = 2\n")
    scene.repo.write("f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.commit()

    assert set(scene.owners().values()) == {None}


def test_a_session_of_another_folder_is_not_looked_at(scene: Scene) -> None:
    stranger = Told("stranger", "/elsewhere", scene.clock)
    stranger.asks("x")
    scene.repo.edit(stranger, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.commit()

    assert {o for _, o, _ in told_by_line(blamer_of(scene.repo, stranger), "f.py")} == {None}


def test_a_session_that_made_a_commit_of_the_repository_is_looked_at_wherever_it_was(scene: Scene) -> None:
    moved = Told("moved", "/elsewhere", scene.clock)
    moved.asks("x")
    scene.repo.edit(moved, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    moved.commits(scene.repo.commit())

    told = {t: o for t, o, _ in told_by_line(blamer_of(scene.repo, moved), "f.py")}

    assert told["better = 2"] == "moved"


def test_lines_that_are_not_committed_yet_are_blamed_too(scene: Scene) -> None:
    scene.repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")

    assert scene.owners()["better = 2"] == "one"


def test_a_file_that_a_session_made_is_its_own(scene: Scene) -> None:
    scene.repo.edit(scene.one, "new.py", "a = 1\nb = 2\n")
    scene.repo.commit()

    assert told_by_line(blamer_of(scene.repo, scene.one), "new.py") == [
        ("a = 1", "one", "content"),
        ("b = 2", "one", "content"),
    ]


def test_a_rebase_keeps_the_blame_by_the_patch(scene: Scene) -> None:
    repo = scene.repo
    body = "".join(f"old {n}\n" for n in range(20))
    repo.write("g.py", body)
    repo.commit()
    repo.git("checkout", "-q", "-b", "work")
    repo.edit(scene.one, "g.py", body + "better = 2\n")
    repo.commit("better")
    repo.git("checkout", "-q", "main")
    repo.write("g.py", "mine = 5\n" + body)
    repo.commit("mine")
    repo.git("checkout", "-q", "work")
    repo.git("rebase", "-q", "main")

    told = {t: (o, e) for t, o, e in told_by_line(blamer_of(repo, scene.one), "g.py")}

    assert told["better = 2"] == ("one", "patch-content")
    assert told["mine = 5"] == (None, None)


def test_a_squash_of_several_commits_keeps_the_blame(scene: Scene) -> None:
    repo = scene.repo
    body = "".join(f"old {n}\n" for n in range(20))
    repo.write("g.py", body)
    repo.commit()
    repo.git("checkout", "-q", "-b", "work")
    repo.edit(scene.one, "g.py", body + "better = 2\n")
    repo.commit("better")
    repo.edit(scene.two, "g.py", body + "better = 2\nfaster = 3\n")
    repo.commit("faster")
    repo.git("checkout", "-q", "main")
    repo.write("g.py", "mine = 5\n" + body)
    repo.commit("mine")
    repo.git("merge", "-q", "--squash", "work")
    repo.commit("all of it")

    told = {t: o for t, o, _ in told_by_line(blamer_of(repo, scene.one, scene.two), "g.py")}

    assert (told["better = 2"], told["faster = 3"], told["mine = 5"]) == ("one", "two", None)


def test_the_same_patch_made_again_by_a_person_is_not_the_sessions(scene: Scene) -> None:
    repo = scene.repo
    body = "".join(f"old {n}\n" for n in range(20))
    repo.write("f.py", body)
    repo.commit()
    repo.edit(scene.one, "f.py", body + "better = 2\n")
    repo.commit()
    repo.write("f.py", "zero\n" + body)
    repo.commit("taken back")
    repo.write("f.py", "zero\n" + body + "better = 2\n")
    repo.commit("by hand")

    assert scene.owners()["better = 2"] is None


def test_a_cherry_pick_keeps_the_blame_and_not_for_what_is_beside_it(scene: Scene) -> None:
    repo = scene.repo
    body = "".join(f"old {n}\n" for n in range(20))
    repo.write("g.py", body)
    repo.commit()
    repo.git("checkout", "-q", "-b", "side")
    repo.edit(scene.one, "g.py", body + "better = 2\n")
    picked = repo.commit("better")
    repo.git("checkout", "-q", "main")
    repo.write("g.py", "mine = 5\n" + body)
    repo.commit("mine")
    repo.git("cherry-pick", picked)

    told = {t: (o, e) for t, o, e in told_by_line(blamer_of(repo, scene.one), "g.py")}

    assert told["better = 2"] == ("one", "patch-content") and told["mine = 5"] == (None, None)


def test_a_line_keeps_its_session_when_its_file_is_renamed_and_edited(scene: Scene) -> None:
    repo = scene.repo
    body = "first = 1\n" + "".join(f"old {n}\n" for n in range(20)) + "last = 9\n"
    repo.write("f.py", body)
    repo.commit()
    repo.edit(scene.one, "f.py", body + "better = 2\n")
    repo.commit()
    repo.git("mv", "f.py", "g.py")
    repo.edit(scene.two, "g.py", body + "better = 2\nfaster = 3\n")
    repo.commit("renamed, and more")
    repo.write("g.py", body + "better = 2\nfaster = 3\nmine = 5\n")
    repo.commit()

    told = {t: o for t, o, _ in told_by_line(blamer_of(repo, scene.one, scene.two), "g.py")}

    assert (told["better = 2"], told["faster = 3"], told["mine = 5"], told["old 3"]) == ("one", "two", None, None)


def test_a_line_that_a_person_moved_to_another_file_is_not_the_sessions_there(scene: Scene) -> None:
    repo = scene.repo
    repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    repo.commit()
    repo.write("f.py", "first = 1\nlast = 9\n")
    repo.write("g.py", "better = 2\n")
    repo.commit()

    told = told_by_line(blamer_of(repo, scene.one), "g.py")

    assert told == [("better = 2", None, None)]


def test_a_line_that_another_session_moved_is_its_own_where_it_put_it(scene: Scene) -> None:
    repo = scene.repo
    repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    repo.commit()
    repo.edit(scene.two, "f.py", "first = 1\nlast = 9\n")
    repo.edit(scene.two, "g.py", "better = 2\n")
    repo.commit()

    told = told_by_line(blamer_of(repo, scene.one, scene.two), "g.py")

    assert told == [("better = 2", "two", "content")]


def test_lines_that_a_formatter_changed_before_the_commit_are_unknown(scene: Scene) -> None:
    scene.repo.edit(scene.one, "f.py", "first = 1\nif x:\n  better=2\nkept = 7\nlast = 9\n")
    scene.repo.write("f.py", "first = 1\nif x:\n    better = 2\nkept = 7\nlast = 9\n")
    scene.repo.commit()

    owners = scene.owners()

    assert (owners["    better = 2"], owners["kept = 7"], owners["first = 1"]) == (None, "one", None)


def test_two_sessions_that_wrote_the_same_text_are_told_apart_where_contents_differ(scene: Scene) -> None:
    scene.repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.git("checkout", "-q", "f.py")
    scene.repo.edit(scene.two, "f.py", "first = 1\nbetter = 2\nfaster = 3\nlast = 9\n")
    scene.repo.commit()

    owners = scene.owners()

    assert (owners["better = 2"], owners["faster = 3"]) == ("two", "two")


def test_a_line_that_one_session_wrote_and_another_wrote_over_with_the_same_text_is_not_the_seconds(
    scene: Scene,
) -> None:
    scene.repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.edit(scene.two, "f.py", "first = 1\nother = 3\nlast = 9\n")
    scene.repo.edit(scene.two, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.commit()

    assert scene.owners()["better = 2"] in (None, "one")


def test_the_same_patch_on_two_branches_by_two_sessions_is_unknown_after_a_squash(scene: Scene) -> None:
    repo = scene.repo
    body = "".join(f"old {n}\n" for n in range(20))
    repo.write("g.py", body)
    repo.commit()
    for branch, told in (("a", scene.one), ("b", scene.two)):
        repo.git("checkout", "-q", "-b", branch, "main")
        repo.edit(told, "g.py", body + "better = 2\n")
        repo.commit("better")
    repo.git("checkout", "-q", "main")
    repo.write("g.py", "mine = 5\n" + body)
    repo.commit("mine")
    repo.git("merge", "-q", "--squash", "b")
    repo.commit("b")

    told = {t: o for t, o, _ in told_by_line(blamer_of(repo, scene.one, scene.two), "g.py")}

    assert told["better = 2"] is None and told["mine = 5"] is None


def test_a_commit_that_a_person_amended_keeps_the_sessions_lines_and_no_others(scene: Scene) -> None:
    repo = scene.repo
    repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.one.commits(repo.commit("by a session"))
    repo.write("f.py", "first = 1\nbetter = 2\nmine = 5\nlast = 9\n")
    repo.git("add", "-A")
    repo.git("commit", "-q", "--amend", "-m", "amended")

    assert scene.owners() == {"first = 1": None, "better = 2": "one", "mine = 5": None, "last = 9": None}


def test_a_conflict_that_a_person_resolved_gives_no_session_the_persons_lines(scene: Scene) -> None:
    repo = scene.repo
    repo.git("checkout", "-q", "-b", "side")
    repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    repo.commit("better")
    repo.git("checkout", "-q", "main")
    repo.edit(scene.two, "f.py", "first = 1\nfaster = 3\nlast = 9\n")
    repo.commit("faster")
    repo.git("merge", "-q", "side", check=False)
    repo.write("f.py", "first = 1\nbetter = 2\nmine = 5\nfaster = 3\nlast = 9\n")
    repo.commit("resolved")

    owners = scene.owners()

    assert (owners["better = 2"], owners["faster = 3"], owners["mine = 5"]) == ("one", "two", None)


# ---------------------------------------------------------------- commits and answers


def test_why_names_who_made_the_commit_and_whose_lines_it_holds(scene: Scene) -> None:
    scene.repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.write("f.py", "first = 1\nbetter = 2\nmine = 5\nlast = 9\n")
    scene.two.commits(scene.repo.commit("both"))

    answer: dict[str, Any] = why(blamer_of(scene.repo, scene.one, scene.two), "HEAD", Redactor("off"))

    assert [(m["sessionId"], m["evidence"]) for m in answer["committedBy"]] == [("two", "observed")]
    assert [(s["sessionId"], s["lines"]) for s in answer["sessions"]] == [("one", 1)]
    assert answer["unknownLines"] == 1
    assert answer["sessions"][0]["turns"][0]["prompt"]["text"] == "make it better"


def test_who_made_a_commit_is_known_after_a_rebase(scene: Scene) -> None:
    repo = scene.repo
    repo.git("checkout", "-q", "-b", "work")
    repo.write("g.py", "x\n")
    scene.one.commits(repo.commit("work"))
    repo.git("checkout", "-q", "main")
    repo.write("h.py", "y\n")
    repo.commit("meanwhile")
    repo.git("checkout", "-q", "work")
    repo.git("rebase", "-q", "main")

    answer = why(blamer_of(repo, scene.one), "HEAD", Redactor("off"))

    assert [(m["sessionId"], m["evidence"]) for m in answer["committedBy"]] == [("one", "patch")]


def test_every_evidence_is_explained_in_the_document() -> None:
    text = (Path(__file__).parents[1] / "docs" / "blame.md").read_text()

    assert all(f"`{name}`" in text for name in EVIDENCE)


def test_a_path_outside_the_repository_is_refused(scene: Scene) -> None:
    with pytest.raises(RepositoryUnusable):
        place_of(Repository(str(scene.repo.folder)), "../elsewhere.py", str(scene.repo.folder))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"old_string": "a", "new_string": "b"}, (("a", "b"),)),
        ({"edits": [{"oldText": "a", "newText": "b"}, {"oldText": "c", "newText": "d"}]}, (("a", "b"), ("c", "d"))),
        ({"path": "f", "edit": {"old": "a", "new": "b"}}, (("a", "b"),)),
        ({"path": "f", "edit": [{"old": "a", "new": "b"}, {"old": "c", "new": "d"}]}, (("a", "b"), ("c", "d"))),
        ({"content": "whole"}, (("", "whole"),)),
        ({"command": "ls"}, ()),
    ],
)
def test_texts_that_a_call_replaces_are_found(given: dict[str, Any], expected: Any) -> None:
    assert pairs(ToolCall(call_id="c", name="Edit", input=given)) == expected


# ---------------------------------------------------------------- the forms that are made of it


def given_of(scene: Scene) -> Given:
    rows: Any = Shelf(scene.one, scene.two)
    sessions = [Exported("example", t.name, "", list(t.records), {}) for t in (scene.one, scene.two)]
    return Given(sessions, "default", {}, "0", commits=commits(rows, str(scene.repo.folder), "HEAD", None))


def test_an_agent_trace_holds_the_proved_lines_and_is_valid(scene: Scene) -> None:
    from jsonschema import Draft202012Validator

    scene.repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.write("f.py", "first = 1\nbetter = 2\nmine = 5\nlast = 9\n")
    commit = scene.repo.commit()

    (file,) = formats()["agent-trace"].make(given_of(scene))

    trace = json.loads(file.data)
    schema = json.loads((Path(__file__).parent / "export" / "agent-trace-0.1.0.schema.json").read_text())
    errors: list[Any] = list(Draft202012Validator(schema).iter_errors(trace))  # type: ignore[reportUnknownMemberType]
    assert errors == []
    assert trace["vcs"] == {"type": "git", "revision": commit}
    (talk,) = trace["files"][0]["conversations"]
    assert (talk["ranges"], talk["url"]) == ([{"start_line": 2, "end_line": 2}], "urn:asr:example:one")
    assert talk["contributor"] == {"type": "ai", "model_id": "model-1"}


def test_a_git_ai_note_is_one_by_its_standard(scene: Scene) -> None:
    scene.repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.edit(scene.two, "with space.py", "a\nb\n")
    commit = scene.repo.commit()

    (file,) = formats()["git-ai"].make(given_of(scene))

    from tests.export.notes import parse

    assert file.name == f"{commit}.note"
    note = parse(file.data.decode())
    told = {path: {key.split("::")[0]: lines for key, lines in some.items()} for path, some in note.attested.items()}
    keys = {s["agent_id"]["id"]: key for key, s in note.metadata["sessions"].items()}
    assert told == {"f.py": {keys["one"]: [2]}, "with space.py": {keys["two"]: [1, 2]}}
    assert note.metadata["base_commit_sha"] == commit


def test_a_note_can_be_put_into_git(scene: Scene) -> None:
    scene.repo.edit(scene.one, "f.py", "first = 1\nbetter = 2\nlast = 9\n")
    scene.repo.commit()
    (file,) = formats()["git-ai"].make(given_of(scene))
    (scene.repo.folder / "note").write_bytes(file.data)

    scene.repo.git("notes", "--ref=ai", "add", "-F", "note", "HEAD")

    assert "authorship/3.0.0" in scene.repo.git("notes", "--ref=ai", "show", "HEAD")
