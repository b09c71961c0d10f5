"""What is one-off code and what only looks like it."""

import msgspec
import pytest

from asrd.oneoff import commands, one_off

ONE_OFF = {
    "python -c": 'python -c "print(1)"',
    "python3 -c": "cd /tmp && python3 -c 'print(1)'",
    "a version and a path": "/opt/venv/bin/python3.11 -c 'x'",
    "options first": "python -u -W ignore -X dev -c 'x'",
    "options in one": "python -Ic 'x'",
    "code right behind": "python -cprint",
    "a heredoc": "python3 - <<'PY'\nprint(1)\nPY\n",
    "a heredoc without a dash": "python <<EOF\nprint(1)\nEOF",
    "a heredoc with tabs": "python - <<-EOF\n\tprint(1)\n\tEOF",
    "arguments behind a heredoc's dash": "python - a b <<EOF\nx\nEOF",
    "a heredoc through a pipe": "cat <<EOF | python\nprint(1)\nEOF",
    "after a heredoc": "cat > a.txt <<'EOF'\nhello\nEOF\npython -c 'x'",
    "an assignment before": "A=1 PYTHONPATH=. python -c x",
    "env and timeout": "env A=1 timeout -k 5 60 python -c x",
    "a runner": "uv run --with numpy python -c x",
    "inside a substitution": 'echo "$(python -c x)"',
    "inside backticks": "echo `python -c x`",
    "inside bash -lc": "bash -lc \"cd x; python -c 'y'\"",
    "in a subshell": "(cd x && python -c y)",
    "in a loop": "for i in 1 2; do python -c x; done",
    "with a redirection": "python 2>&1 - <<EOF > out.txt\nx\nEOF",
}
NOT_ONE_OFF = {
    "a script": "python run.py -c config",
    "a module": "python -m pytest -c pytest.ini",
    "a script that reads a heredoc": "python run.py <<EOF\nx\nEOF",
    "a module that reads a heredoc": "python -m json.tool <<EOF\n{}\nEOF",
    "in a heredoc's body": "cat > run.sh <<'EOF'\npython -c 'print(1)'\nEOF\n",
    "in the second heredoc's body": "cat <<A <<B\nx\nA\npython -c x\nB\n",
    "in quotes": "echo 'python -c x'",
    "in double quotes": 'git commit -m "python -c x"',
    "in a comment": "ls # python -c x",
    "counting a word": "grep python -c file.txt",
    "a name with python in it": "python-config -c",
    "by a pipe without a heredoc": "echo 'print(1)' | cat python",
    "reading a file": "python < run.py",
    "a version": "python3 --version",
    "alone": "python",
}


@pytest.mark.parametrize("command", ONE_OFF.values(), ids=ONE_OFF)
def test_one_off_code_is_found(command: str) -> None:
    given = {"command": command}

    found = one_off(given)

    assert found


@pytest.mark.parametrize("command", NOT_ONE_OFF.values(), ids=NOT_ONE_OFF)
def test_what_only_looks_like_one_off_code_is_not(command: str) -> None:
    given = {"command": command}

    found = one_off(given)

    assert not found


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ({"command": ["bash", "-lc", "python - <<'PY'\nx\nPY"]}, True),
        ({"command": ["python", "-c", "x"]}, True),
        ({"command": ["cat", "python -c x"]}, False),
        ({"cmd": "python -c x"}, True),
        ({"content": "python -c x"}, False),
        ({"command": 5}, False),
        ({"raw": "python -c x"}, False),
    ],
)
def test_the_command_is_taken_from_where_harnesses_put_it(given: dict[str, object], right: bool) -> None:
    raw = msgspec.Raw(msgspec.json.encode(given))

    found = one_off(given), one_off(raw)

    assert found == (right, right)


def test_a_command_that_never_ends_is_read_to_its_end() -> None:
    text = "python - <<EOF\nnever closed 'quote \"and $(more"

    found = commands(text)

    assert [(c.words, c.fed) for c in found] == [(["python", "-"], True)]


def test_a_text_that_nests_without_end_is_given_up_on() -> None:
    text = "$(" * 100_000 + "python -c x"

    found = commands(text)

    assert len(found) < 100


def test_a_very_long_command_is_judged_by_its_beginning() -> None:
    text = "python -c 'x'; " + "echo python " * 1_000_000

    found = commands(text)

    assert one_off({"command": text})
    assert sum(len(c.words) for c in found) < 50_000
