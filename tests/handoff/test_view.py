"""What one session says, record by record."""

from asrd.handoff.view import Run, View, command_of, outcome_of, path_of, sentences, task_of
from asrd.records import Exec, Place, ToolCall
from tests.handoff.build import Story


def run(exit_code: int | None, status: str = "completed") -> Run:
    return Run((), exit_code, bool(exit_code) or status == "failed", status, "", (0, 0))


def call(**given: object) -> ToolCall:
    return ToolCall(call_id="c", name="tool", input=dict(given))


def test_an_outcome_names_the_last_run_and_how_others_ended() -> None:
    assert outcome_of([run(0)]) == "exit 0"
    assert outcome_of([run(101), run(1), run(101), run(0)]) == "exit 0 in the last of 4 runs; before: exit 101, exit 1"
    assert outcome_of([run(2), run(2)]) == "exit 2 in the last of 2 runs"


def test_an_exit_code_that_is_not_recorded_is_not_made_up() -> None:
    assert outcome_of([run(None)]) == "done (exit code not recorded)"
    assert outcome_of([run(None, "failed")]) == "failed (exit code not recorded)"
    assert outcome_of([run(None, "unknown")]) == "how it ended is not recorded"


def test_a_command_is_the_results_or_the_calls_own() -> None:
    assert command_of(call(command="make"), Exec(command=" make all ")) == "make all"
    assert command_of(call(cmd="make"), None) == "make"
    assert command_of(call(command=["bash", "-lc", "make test"]), None) == "make test"
    assert command_of(call(command=["git", "log"]), None) == "git log"
    assert command_of(call(path="a"), None) is None and command_of(None, None) is None


def test_paths_and_tasks_are_read_from_the_calls_input() -> None:
    assert path_of(call(filePath="a.py")) == "a.py" and path_of(call(other=1)) is None
    assert task_of(call(prompt="Look.")) == "Look." and task_of(call(command="make")) is None


def test_sentences_leave_blocks_of_code_out() -> None:
    text = "- One is v1.2.3 of it. Two!\n```\nnot. this.\n```\nIs it three?"

    assert list(sentences(text)) == ["One is v1.2.3 of it.", "Two!", "Is it three?"]


def test_a_place_is_below_its_root_or_below_the_folder() -> None:
    view = View(0, Story().key, Story(folder="/w/app").records)

    assert view.absolute(Place(path="a/../b.py", root="w")) == "/w/app/b.py"
    assert view.absolute(Place(path="b.py")) == "/w/app/b.py"
    assert view.absolute(Place(path="/etc/hosts")) == "/etc/hosts"
