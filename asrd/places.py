"""Finds the sources of every harness below its roots.

Only names and file types are looked at: nothing is opened. Links that lead out of a root, and what is no regular file
(FIFO, device, socket), are reported and not followed. Folders that cannot be read are reported; the rest goes on.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from asrd.recorders import load
from asrd.recorders.base import Recorder
from asrd.sources import COMPRESSED, Located, Place, Root, Source, Unread


class Found(Struct, frozen=True):
    """A source and where it lies now. `root`: the folder its `source.path` is relative to."""

    source: Source
    path: str
    root: str
    place: Place
    beside: str = ""


Report = Callable[[str, str], None]
"""`report(path, reason)`: something below a root was not followed."""


def roots_of(recorder: type[Recorder], home: Path, env: Mapping[str, str]) -> list[str]:
    """The folders a harness keeps its sessions below, as its own variables or its defaults say; each once."""
    found: list[str] = []
    for root in recorder.roots:
        for path in _root(root, home, env):
            real = os.path.realpath(path)
            if real not in found:
                found.append(real)
    return found


def _root(root: Root, home: Path, env: Mapping[str, str]) -> list[str]:
    for name in root.env:
        if value := env.get(name):
            base = [os.path.expanduser(part) for part in value.split(",") if part.strip()]
            return [os.path.join(part, root.below) if root.below else part for part in base]
    return [str(home / root.default)]


def find(home: Path, env: Mapping[str, str], report: Report, only: str | None = None) -> Iterator[Found]:
    """Every source of every harness (or of `only` one), ordered by harness, group and order."""
    for harness, recorder in load().items():
        if only is not None and harness != only:
            continue
        yield from find_for(recorder, roots_of(recorder, home, env), report)


def find_for(recorder: type[Recorder], roots: list[str], report: Report) -> list[Found]:
    """The sources of one harness below these folders. Of twins of one name the plain file hides the compressed one.

    A shared file is a source of every group that has another one below the same root.
    """
    found: dict[tuple[str, str], Found] = {}
    for root in roots:
        for place in recorder.places:
            if place.kind == "shared":
                continue
            segments = place.pattern.split("/")
            for path in _match(root, root, segments, place.kind == "tree", report):
                relative = os.path.relpath(path, root).replace(os.sep, "/")
                located = recorder.locate(relative) if is_named(path, report) else None
                if located is None:
                    continue
                key = (located.group, located.name)
                other = found.get(key)
                if other is not None and (not other.path.endswith(COMPRESSED) or path.endswith(COMPRESSED)):
                    if other.path != path and not path.endswith(COMPRESSED):
                        report(path, f"same source as {other.path}")
                    continue
                found[key] = _found(recorder, located, place, root, path, relative)
        for one in _shared(recorder, root, report):
            for group in {f.source.group for f in found.values() if f.root == root}:
                part = msgspec.structs.replace(one, source=msgspec.structs.replace(one.source, group=group))
                found[group, part.source.name] = part
    return sorted(found.values(), key=lambda f: (f.source.group, f.source.sidecar, f.source.order, f.source.name))


def _shared(recorder: type[Recorder], root: str, report: Report) -> Iterator[Found]:
    """The shared files below a root, of no group yet."""
    for place in recorder.places:
        if place.kind != "shared":
            continue
        for path in _match(root, root, place.pattern.split("/"), False, report):
            relative = os.path.relpath(path, root).replace(os.sep, "/")
            located = recorder.locate(relative)
            if located is None:
                continue
            if not os.access(path, os.R_OK):
                report(path, "cannot be read")
                continue
            yield _found(recorder, located, place, root, path, relative)


def _found(recorder: type[Recorder], located: Located, place: Place, root: str, path: str, relative: str) -> Found:
    source = Source(
        harness=recorder.harness,
        group=located.group,
        name=located.name,
        path=relative,
        kind=place.kind,
        order=located.order,
        sidecar=place.sidecar,
    )
    return Found(source, path, root, place, located.beside)


def unread(recorder: type[Recorder], roots: list[str]) -> Iterator[tuple[Unread, int, int]]:
    """The files of each kind that a recorder does not read, where there are any: how many, and their bytes."""
    for one in recorder.unread:
        sizes: list[int] = []
        for root in roots:
            for path in _match(root, root, one.pattern.split("/"), False, lambda path, reason: None):
                with contextlib.suppress(OSError):
                    sizes.append(os.stat(path).st_size)
        if sizes:
            yield one, len(sizes), sum(sizes)


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """A place's glob as an expression over paths below the root."""
    parts = [re.escape(p) if p == "**" else fnmatch.translate(p)[4:-3] for p in pattern.split("/")]
    text = "/".join("**" if p == re.escape("**") else p.replace(".*", "[^/]*") for p in parts)
    return re.compile(text.replace("**/", "(?:[^/]+/)*") + r"\Z", re.DOTALL)


def found_at(recorder: type[Recorder], root: str, path: str, report: Report) -> Found | None:
    """The source a path below a root is, without looking at the rest of the folder; None when it is none.

    A shared file is a source of many groups: the next look at all of them finds what is new in it.
    """
    relative = os.path.relpath(path, root).replace(os.sep, "/")
    for place in recorder.places:
        if place.kind == "shared":
            continue
        if place.kind == "tree":
            named = _tree_of(place.pattern, relative)
            if named is None:
                continue
        elif _expression(place.pattern).match(relative) and is_file(root, path, report):
            named = relative
        else:
            continue
        located = recorder.locate(named) if is_named(path, report) else None
        if located is None:
            return None
        return _found(recorder, located, place, root, os.path.join(root, named), named)
    return None


def _tree_of(pattern: str, relative: str) -> str | None:
    """The folder that a tree's glob names and the path lies below."""
    parts = relative.split("/")
    depth = pattern.count("/") + 1
    if "**" in pattern or len(parts) <= depth:
        return None
    folder = "/".join(parts[:depth])
    return folder if _expression(pattern).match(folder) else None


def watched(recorder: type[Recorder], root: str) -> list[str]:
    """The folders below a root where its sources can appear: what stands before the first wildcard of each place.

    Shared files are looked at, not watched: the folder they lie in may hold much that changes all the time.
    """
    found: list[str] = []
    for place in recorder.places:
        if place.kind == "shared":
            continue
        parts = place.pattern.split("/")
        literal: list[str] = []
        for part in parts[:-1] if place.kind != "tree" else parts:
            if any(c in part for c in "*?["):
                break
            literal.append(part)
        path = os.path.join(root, *literal)
        if path not in found:
            found.append(path)
    return [p for p in found if not any(p != o and p.startswith(o.rstrip("/") + "/") for o in found)]


def _match(root: str, folder: str, segments: list[str], tree: bool, report: Report, depth: int = 0) -> Iterator[str]:
    head, rest = segments[0], segments[1:]
    if depth > 24:
        report(folder, "folders nested too deep")
        return
    literal = not any(c in head for c in "*?[")
    if literal:
        path = os.path.join(folder, head)
        yield from _one(root, path, rest, tree, report, depth)
        return
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        return
    except OSError as error:
        report(folder, error.strerror or "cannot be listed")
        return
    if head == "**":
        if rest:
            yield from _match(root, folder, rest, tree, report, depth)
        for name in names:
            path = os.path.join(folder, name)
            if _is_folder(root, path, report):
                yield from _match(root, path, segments, tree, report, depth + 1)
        return
    for name in names:
        if fnmatch.fnmatchcase(name, head):
            yield from _one(root, os.path.join(folder, name), rest, tree, report, depth)


def _one(root: str, path: str, rest: list[str], tree: bool, report: Report, depth: int) -> Iterator[str]:
    if rest:
        if _is_folder(root, path, report):
            yield from _match(root, path, rest, tree, report, depth + 1)
    elif tree:
        if _is_folder(root, path, report):
            yield path
    elif is_file(root, path, report):
        yield path


def _is_folder(root: str, path: str, report: Report) -> bool:
    try:
        link = os.path.islink(path)
        if not os.path.isdir(path):
            return False
    except OSError:
        return False
    if link:
        real = os.path.realpath(path)
        base = os.path.realpath(root)
        if not real.startswith(base + os.sep):
            report(path, "a link that leads out of the harness's folder")
            return False
        if os.path.realpath(os.path.dirname(path)).startswith(real):
            report(path, "a link to a folder it lies in")
            return False
    return True


def is_named(path: str, report: Report) -> bool:
    """Whether a path can be written down: names that are not UTF-8 cannot, and are reported."""
    if path.isascii():
        return True
    shown = path.encode("utf-8", "backslashreplace").decode()
    if shown != path:
        report(shown, "its name is not UTF-8")
    return shown == path


def is_file(root: str, path: str, report: Report) -> bool:
    """Whether a path is a regular file that may be read: not a device or FIFO, not a link out of the root."""
    try:
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            real = os.path.realpath(path)
            if not real.startswith(os.path.realpath(root) + os.sep):
                report(path, "a link that leads out of the harness's folder")
                return False
            info = os.stat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        report(path, error.strerror or "cannot be looked at")
        return False
    if not stat.S_ISREG(info.st_mode):
        if not stat.S_ISDIR(info.st_mode):
            report(path, "not a regular file")
        return False
    return True
