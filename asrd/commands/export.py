"""Write sessions to a file for elsewhere: for other programs, for people, for another machine.

    asrd export last --format markdown            a session to read
    asrd export last --format html --out one.html the page of `asrd ui` for it, as one file that needs no server
    asrd export last --format atif --out DIR      and the forms below, one file or more, into a folder
    asrd export last --format otel --to http://localhost:4318      spans to a collector (OTLP/HTTP)
    asrd export --archive sessions.tar.zst        all that is recorded, whole
    asrd export --archive one.tar.zst last codex:01a2              these sessions

A form holds the sessions named (none: all) with those that they started (`--alone`: without), and what is secret taken out
(`--redact strict` also e-mail addresses and home folders; `off`: nothing is). What each form has no place for:
docs/exports.md. An archive holds the streams as they stand, words and all: it is as private as the store. `asrd import FILE`
takes it in; nothing counts twice, also where both machines have a session. Any tar with Zstandard reads it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import msgspec

from asrd import blaming, exporting, query
from asrd.archive import export
from asrd.client import open_reader
from asrd.commands._common import asker, here, json_argument, print_json
from asrd.commands._page import page
from asrd.errors import StoreUnusable, UsageError
from asrd.export import File, Format, Given, formats
from asrd.plural import many
from asrd.redact import MODES
from asrd.store.counted import counted
from asrd.store.disk import make_folder, replace_with
from asrd.text import inert, inert_json, size


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("sessions", nargs="*", metavar="SESSION", help="these; without one, all that is recorded")
    parser.add_argument("--archive", metavar="FILE", help="a compressed tar of whole streams, for `asrd import`")
    parser.add_argument("--format", choices=sorted([*formats(), "html"]), help="the form")
    parser.add_argument(
        "-o", "--out", metavar="PATH", help="a folder, or a file name where there is one file; `-`: stdout"
    )
    parser.add_argument("--to", metavar="URL", help="with otel: the collector that the spans are sent to")
    parser.add_argument("--redact", choices=MODES, default="default", help="what is taken out (default: secrets)")
    parser.add_argument("--alone", action="store_true", help="without the sessions that these started")
    parser.add_argument("--content", action="store_true", help="with otel: words too, not only figures")
    parser.add_argument("--licence", metavar="ID", help="with training: the licence that you state (SPDX)")
    parser.add_argument(
        "--repo", metavar="DIR", help="with agent-trace, git-ai: the repository (default: this folder's)"
    )
    parser.add_argument("--was", metavar="DIR", help="where the repository lay when it was recorded, if elsewhere")
    parser.add_argument(
        "--commits", metavar="RANGE", default="HEAD", help="which commits, as git says it (default: HEAD)"
    )
    json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    if args.archive:
        return archive(args)
    if not args.format:
        raise UsageError(what="an export without --archive FILE or --format FORM", command="export")
    if args.format == "html":
        return page(args)
    return form(args, formats()[args.format])


def form(args: argparse.Namespace, chosen: Format) -> int:
    """`--format`."""
    ask = asker()
    rows = ask.rows()
    stored = exporting.chosen(rows, args.sessions, here(), args.alone)
    if args.to and chosen.name != "otel":
        raise UsageError(what=f"--to with --format {chosen.name}", command="export")
    told = exporting.Told()
    db = open_reader(ask.folders)
    try:
        if chosen.repository:
            commits = blaming.commits(rows, args.repo or here(), args.commits, args.was)
            parts: Iterable[Given] = [exporting.headed(rows, stored, args.redact, commits)]
        else:
            content = chosen.name != "otel" or args.content
            parts = exporting.trees(
                rows, stored, lambda some: counted(db, some), args.redact, content=content, licence=args.licence
            )
        files = exporting.files(chosen, parts, told)
        if args.to:
            sent = exporting.send(files, args.to)
            said: dict[str, object] = {"sent": sent, "to": args.to}
            where = str(args.to)
        elif args.out in (None, "-") and not args.json:
            on_stdout(files, chosen.joined)
            return 0
        else:
            wrote = written(files, args.out, chosen.joined)
            said = {"files": [{"path": path, "bytes": length} for path, length in wrote]}
            where = ", ".join(path for path, _ in wrote[:3]) or "nothing to export"
    finally:
        db.close()
    if args.json:
        print_json(
            {
                "schema": "asrd.export/1",
                "format": chosen.name,
                "sessions": told.sessions,
                "redaction": {"mode": args.redact, "removed": dict(sorted(told.removed.items()))},
                **said,
            }
        )
    else:
        removed = sum(told.removed.values())
        sys.stderr.write(inert(f"{many(told.sessions, 'session')}, {many(removed, 'secret')} taken out: {where}\n"))
    return 0


def on_stdout(files: Iterator[File], joined: bool) -> None:
    """Writes what is one file to stdout."""
    first = next(files, None)
    second = None if joined or first is None else next(files, None)
    if second is not None:
        raise UsageError(what="more than one file on stdout (give --out FOLDER)", command="export")
    if first is None:
        sys.stderr.write("nothing to export\n")
        return
    for file in chain((first,), files):
        text = file.data.decode("utf-8", "replace")
        sys.stdout.write(inert_json(text) if "json" in Path(file.name).suffix else inert(text))


def written(files: Iterator[File], out: str | None, joined: bool) -> list[tuple[str, int]]:
    """Writes the files as they come, each whole or not at all, readable by their owner only."""
    if out in (None, "-"):
        raise UsageError(what="files without a place for them (give --out FOLDER)", command="export")
    to = Path(out)
    told: list[tuple[str, int]] = []
    first = next(files, None)
    if first is None:
        return told
    second = None if joined else next(files, None)
    alone = second is None and not to.is_dir() and bool(to.suffix)
    try:
        if not alone:
            make_folder(to)
        if joined:
            told.append(_put(to if alone else to / first.name, chain((first,), files)))
        else:
            some = chain((first,), () if second is None else (second,), files)
            told += [_put(to if alone else to / file.name, (file,)) for file in some]
    except OSError as error:
        raise StoreUnusable(store=to, reason=error.strerror or str(error)) from error
    return told


def _put(path: Path, parts: Iterable[File]) -> tuple[str, int]:
    length = 0

    def data() -> Iterator[bytes]:
        nonlocal length
        for part in parts:
            length += len(part.data)
            yield part.data

    replace_with(path, data())
    return str(path), length


def archive(args: argparse.Namespace) -> int:
    """`--archive`."""
    rows = asker().rows()
    if args.sessions:
        named = {s.number: s for s in (query.resolve(rows, name, here()) for name in args.sessions)}
        chosen = list(named.values())
    else:
        chosen = [*rows.sessions(), *rows.own()]
    manifest = export(rows, chosen, Path(args.archive))
    if args.json:
        print_json(msgspec.to_builtins(manifest))
    else:
        whole = sum(e.bytes for e in manifest.streams)
        packed = Path(args.archive).stat().st_size
        sys.stderr.write(f"{many(len(manifest.streams), 'stream')}, {size(whole)} in {size(packed)}: {args.archive}\n")
    return 0
