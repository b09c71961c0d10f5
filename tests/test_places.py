"""Sources are found by name and kind alone; what cannot be followed is reported, the rest goes on."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from asrd.paths import folders
from asrd.places import Found, find, find_for, found_at, roots_of, watched
from asrd.recorders import load
from asrd.recorders.base import Recorder
from asrd.sources import Located, Place, Root
from tests.golden import CAPTURES, cases
from tests.homes import environment, recorded


class Example(Recorder):
    """Files below two folders, one of which may be named by a variable."""

    harness = "example"
    roots = (Root(".example", env=("EXAMPLE_HOME",), below="sub"),)
    places = (Place("sessions/**/*.jsonl"), Place("one/*/notes-?.json", "document"), Place("trees/*", "tree"))

    @classmethod
    def locate(cls, path: str) -> Located | None:
        return None if "not-ours" in path else Located(path, path.removesuffix(".zst"))


class Seen:
    """What was reported."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def __call__(self, path: str, reason: str) -> None:
        self.told[os.path.basename(path)] = reason


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")


def paths(found: list[Found]) -> list[str]:
    return [f.source.path for f in found]


def test_sources_are_found_at_any_depth_that_the_pattern_says(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "sessions/a.jsonl",
        "sessions/x/y/b.jsonl",
        "sessions/x/not-ours.jsonl",
        "sessions/x/c.txt",
        "one/p/notes-1.json",
        "one/p/notes-10.json",
        "one/p/q/notes-1.json",
        "trees/t/a/b.json",
        "else/a.jsonl",
    )

    found = find_for(Example, [str(tmp_path)], Seen())

    assert sorted(paths(found)) == ["one/p/notes-1.json", "sessions/a.jsonl", "sessions/x/y/b.jsonl", "trees/t"]


@pytest.mark.parametrize("case", cases())
def test_a_hint_finds_the_same_sources_as_a_look_everywhere(case: str) -> None:
    home = CAPTURES / case / "home"
    for recorder in load().values():
        roots = roots_of(recorder, home, {})
        for found in find_for(recorder, roots, Seen()):
            if found.place.kind == "shared":  # of many groups: found by the next look everywhere
                assert found_at(recorder, found.root, found.path, Seen()) is None
                continue
            path = (
                found.path
                if found.place.kind != "tree"
                else str(next(p for p in Path(found.path).rglob("*") if p.is_file()))
            )

            hinted = found_at(recorder, found.root, path, Seen())

            assert hinted is not None
            assert (hinted.source, hinted.path, hinted.place) == (found.source, found.path, found.place)


class Shares(Example):
    """Sessions, and one file about all of them."""

    places = (Place("sessions/*.jsonl"), Place("index.jsonl", "shared", owner=bytes.decode))

    @classmethod
    def locate(cls, path: str) -> Located | None:
        return Located(path.removesuffix(".jsonl"), path, order="~" if path == "index.jsonl" else "")


def test_a_shared_file_is_a_source_of_every_group_and_makes_none(tmp_path: Path) -> None:
    touch(tmp_path / "full", "sessions/a.jsonl", "sessions/b.jsonl", "index.jsonl")
    touch(tmp_path / "empty", "index.jsonl")
    seen = Seen()

    found = find_for(Shares, [str(tmp_path / "full"), str(tmp_path / "empty")], seen)

    assert [(f.source.group, f.source.path) for f in found] == [
        ("sessions/a", "sessions/a.jsonl"),
        ("sessions/a", "index.jsonl"),
        ("sessions/b", "sessions/b.jsonl"),
        ("sessions/b", "index.jsonl"),
    ]
    assert watched(Shares, "/r") == ["/r/sessions"]
    assert seen.told == {}


def test_a_shared_file_that_may_not_be_read_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "sessions/a.jsonl", "index.jsonl")

    def refused(path: str, mode: int) -> bool:
        return False

    monkeypatch.setattr(os, "access", refused)
    seen = Seen()

    assert paths(find_for(Shares, [str(tmp_path)], seen)) == ["sessions/a.jsonl"]
    assert seen.told == {"index.jsonl": "cannot be read"}


def test_links_devices_and_loops_are_reported_and_not_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    touch(root, "sessions/a.jsonl")
    touch(outside, "secret.jsonl", "folder/b.jsonl")
    (root / "sessions/out.jsonl").symlink_to(outside / "secret.jsonl")
    (root / "sessions/away").symlink_to(outside / "folder")
    (root / "sessions/loop").symlink_to(root / "sessions")
    (root / "sessions/broken.jsonl").symlink_to(root / "none")
    (root / "sessions/inside.jsonl").symlink_to(root / "sessions/a.jsonl")
    os.mkfifo(root / "sessions/pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(root / "sessions")
        made.bind("sock.jsonl")
    os.chdir(tmp_path)
    (root / "sessions/folder.jsonl").mkdir()
    seen = Seen()

    found = find_for(Example, [str(root)], seen)

    assert paths(found) == ["sessions/a.jsonl", "sessions/inside.jsonl"]
    assert set(seen.told) == {"out.jsonl", "away", "loop", "pipe.jsonl", "sock.jsonl"}
    assert "leads out" in seen.told["out.jsonl"]
    assert "not a regular file" in seen.told["pipe.jsonl"]


def test_a_folder_that_may_not_be_listed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "sessions/open/a.jsonl", "sessions/closed/b.jsonl")
    scandir = os.scandir

    def refuses(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuses)
    seen = Seen()

    found = find_for(Example, [str(tmp_path)], seen)

    assert paths(found) == ["sessions/open/a.jsonl"]
    assert seen.told == {"closed": "Permission denied"}


def test_folders_nested_without_end_are_left(tmp_path: Path) -> None:
    touch(tmp_path, "sessions/" + "d/" * 40 + "a.jsonl", "sessions/b.jsonl")
    seen = Seen()

    assert paths(find_for(Example, [str(tmp_path)], seen)) == ["sessions/b.jsonl"]
    assert list(seen.told.values()) == ["folders nested too deep"]


def test_a_plain_file_hides_its_compressed_twin(tmp_path: Path) -> None:
    touch(tmp_path, "sessions/a.jsonl", "sessions/b.jsonl")

    class Both(Example):
        places = (Place("sessions/*.jsonl.zst"), Place("sessions/*.jsonl"))

        @classmethod
        def locate(cls, path: str) -> Located | None:
            return Located(path.removesuffix(".zst"), path.removesuffix(".zst"))

    touch(tmp_path, "sessions/a.jsonl.zst", "sessions/c.jsonl.zst")

    assert paths(find_for(Both, [str(tmp_path)], Seen())) == [
        "sessions/a.jsonl",
        "sessions/b.jsonl",
        "sessions/c.jsonl.zst",
    ]


def test_two_files_of_one_name_are_one_source_and_the_other_is_reported(tmp_path: Path) -> None:
    class Same(Example):
        @classmethod
        def locate(cls, path: str) -> Located | None:
            return Located("g", os.path.basename(path))

    touch(tmp_path, "sessions/x/a.jsonl", "sessions/y/a.jsonl")
    seen = Seen()

    assert paths(find_for(Same, [str(tmp_path)], seen)) == ["sessions/x/a.jsonl"]
    assert "same source as" in seen.told["a.jsonl"]


def test_roots_are_what_the_harness_itself_would_use(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()

    assert roots_of(Example, home, {}) == [str(home / ".example")]
    assert roots_of(Example, home, {"EXAMPLE_HOME": "/a, /b,,/a"})[0] == "/a/sub"
    assert roots_of(Example, home, {"EXAMPLE_HOME": ""}) == [str(home / ".example")]


def test_equal_roots_are_one_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    class Twice(Example):
        roots = (Root("real"), Root("link"))

    assert roots_of(Twice, tmp_path, {}) == [str(tmp_path / "real")]


def test_watched_folders_hold_all_places_and_none_twice() -> None:
    assert watched(Example, "/r") == ["/r/sessions", "/r/one", "/r/trees"]

    class Nested(Example):
        places = (Place("*.jsonl"), Place("sub/*.jsonl"))

    assert watched(Nested, "/r") == ["/r"] or watched(Nested, "/r") == ["/r/"]


def test_every_source_of_every_capture_lies_below_a_watched_folder() -> None:
    for case in cases():
        home = CAPTURES / case / "home"
        for found in find(home, {}, Seen()):
            if found.place.kind == "shared":  # looked at, not watched
                continue
            folders_ = watched(load()[found.source.harness], found.root)
            assert any(found.path.startswith(f.rstrip("/") + "/") for f in folders_) or found.path in folders_, (
                found.path
            )


# ---------------------------------------------------------------- public reports


def test_a_name_that_is_no_utf8_stops_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = home / ".claude/projects/-home-dev-app"
    folder.mkdir(parents=True)
    session = next((CAPTURES / "claude-code/S1/home").rglob("*.jsonl"))
    (folder / session.name).write_bytes(session.read_bytes())
    with open(os.fsencode(folder) + b"/b\xff\xfe.jsonl", "wb") as file:
        file.write(session.read_bytes())

    with recorded(home, tmp_path / "store") as one:
        assert session.stem in [s.row.session_id for s in one.rows.sessions()]
        assert one.usage()["output"] == 412


def test_a_name_that_is_no_utf8_is_reported(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    with open(os.fsencode(tmp_path) + b"/sessions/b\xff.jsonl", "wb") as file:
        file.write(b"{}")
    seen = Seen()

    assert find_for(Example, [str(tmp_path)], seen) == []
    assert seen.told == {"b\\udcff.jsonl": "its name is not UTF-8"}


def test_a_folder_that_is_not_there_yet_is_no_trouble(tmp_path: Path) -> None:
    seen = Seen()

    assert list(find(tmp_path / "none", {}, seen)) == []
    assert seen.told == {}
    assert folders(environment(tmp_path, tmp_path)).home == tmp_path
