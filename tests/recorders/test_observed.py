"""What the words of tools prove: contents by reads, edits, diffs and digests, and commits."""

import pytest

from asrd.recorders._observed import KEEP_CHARACTERS, KEEP_FILES, Contents, absolute, commits, patched, replaced
from asrd.recorders.base import sha256

ID = "b97df81d4cccf5a1f58f3a7418b6e63495bbbc41"


@pytest.mark.parametrize(
    ("command", "output", "found"),
    [
        ("git commit -qm x && git rev-parse HEAD", f"{ID}\n", [ID]),
        ("git commit -qm x; git log -1", f"commit {ID}\nAuthor: a\n", [ID]),
        ("cd a && git -C b commit -m x", f"Output: {ID}\n{ID}", [ID]),
        ("git log --format=%H", f"{ID}\n", []),
        ("git commit -m x", "[main b97df81] x\n", []),
        ("echo commit", f"{ID}\n", []),
        ("git commit -m x", f"see {ID} for more\n", []),
        (None, ID, []),
    ],
)
def test_a_commit_is_a_full_id_that_a_committing_command_gave_out(
    command: str | None, output: str, found: list[str]
) -> None:
    assert commits(command, output) == found


def test_paths_of_one_file_are_one_key() -> None:
    keys = {
        absolute("/w", "a.txt"),
        absolute("/w", "./a.txt"),
        absolute("/w", "/w/b/../a.txt"),
        absolute(None, "/w/a.txt"),
    }

    assert keys == {"/w/a.txt"}


@pytest.mark.parametrize(
    ("edits", "made"),
    [
        ([("b", "c", False)], "a c a"),
        ([("a", "c", True)], "c b c"),
        ([("a", "c", False)], None),
        ([("x", "c", False)], None),
        ([("", "c", True)], None),
        ([("b", "x", False), ("x a", "y", False)], "a y"),
    ],
)
def test_an_edit_is_made_only_where_it_is_certain(edits: list[tuple[str, str, bool]], made: str | None) -> None:
    assert replaced("a b a", edits) == made


@pytest.mark.parametrize(
    ("diff", "made"),
    [
        ("@@ -1,3 +1,3 @@\n one\n-two\n+three\n ", "one\nthree\n"),
        ("--- a\n+++ b\n@@ -2 +2,2 @@\n-two\n+two\n+three", "one\ntwo\nthree\n"),
        ("@@ -1,1 +0,0 @@\n-one", "two\n"),
        ("@@ -0,0 +1,1 @@\n+zero", "zero\none\ntwo\n"),
        ("@@ -1,1 +1,1 @@\n-other\n+x", None),
        ("@@ -9,1 +9,1 @@\n-one\n+x", None),
        ("no diff at all", None),
    ],
)
def test_a_diff_is_applied_only_where_every_line_of_it_fits(diff: str, made: str | None) -> None:
    assert patched("one\ntwo\n", diff) == made


def test_a_digest_says_which_of_two_contents_was_shown() -> None:
    files = Contents()
    files.shows("/a", "one\n", "one")

    files.hashes("/a", sha256("one"), 3)

    known = files.get("/a")
    assert known is not None
    assert (known.text, known.doubtful) == ("one", False)


def test_a_digest_of_another_content_leaves_only_itself() -> None:
    files = Contents()
    files.is_("/a", "one\n")

    files.hashes("/a", sha256("two"), 3)

    known = files.get("/a")
    assert known is not None
    assert (known.text, known.sha256, known.bytes) == (None, sha256("two"), 3)


def test_after_a_command_every_content_is_doubtful_until_it_is_known_again() -> None:
    files = Contents()
    files.is_("/a", "one")
    files.is_("/b", "two")

    files.doubt()
    files.is_("/b", "two")

    assert [files.files[name].doubtful for name in ("/a", "/b")] == [True, False]


def test_what_is_kept_has_bounds() -> None:
    files = Contents()

    for n in range(KEEP_FILES + 5):
        files.is_(f"/{n}", "x")
    files.is_("/big", "x" * (KEEP_CHARACTERS + 1))

    known = files.get("/big")
    assert len(files.files) == KEEP_FILES
    assert known is not None and known.text is None and known.sha256 == sha256("x" * (KEEP_CHARACTERS + 1))
