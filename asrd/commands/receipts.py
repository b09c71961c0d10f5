"""Take in the receipts of another campaign, and print its tables from them.

`asrd receipts import FILE…` keeps receipts (YAML or JSON) as they are; a later version of a receipt replaces the earlier one,
whatever order they come in. `--claims` takes who claims them: a close report's claims as JSON, session records (Markdown
with front matter), or an asrd claims file. `asrd receipts report` prints the tables. They are somebody else's measurements in
their own units: kept apart from what asrd recorded, and never added to it. `asrd receipts forget` removes them all.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import Any

from asrd.claims import ClaimsUnreadable, read_claims
from asrd.commands._common import print_json
from asrd.commands._sheets import claims_file, claims_of, format_arguments, print_sheet
from asrd.errors import AsrdError, UsageError
from asrd.paths import Folders, folders
from asrd.receipts import (
    Claimant,
    Claimed,
    NotAReceipt,
    Receipt,
    name_of,
    read_receipt,
    read_session_record,
    read_snapshot,
)
from asrd.report.foreign import foreign_sheet
from asrd.store.disk import make_folder, replace
from asrd.text import inert


def arguments(parser: argparse.ArgumentParser) -> None:
    """Says what the command takes."""
    parser.add_argument("what", choices=("import", "report", "forget"), help="take in, print, or remove all")
    parser.add_argument("files", nargs="*", metavar="FILE", help="with import: receipts")
    parser.add_argument("--claims", nargs="+", action="extend", default=[], metavar="FILE", help="who claims them")
    format_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Runs it."""
    where = folders()
    if args.what == "import":
        return take_in(where, args.files, args.claims, args.format == "json")
    if args.files:
        raise UsageError(what=f"`receipts {args.what}` with a file", command="receipts")
    if args.what == "forget":
        return forget(where)
    print_sheet(foreign_sheet(kept(where), who_claims(where, args.claims)), args.format)
    return 0


def folder_of(where: Folders) -> Path:
    """Where receipts are kept."""
    return where.store / "receipts"


def take_in(where: Folders, files: list[str], claims: list[str], as_json: bool) -> int:
    """Keeps receipts and claims byte for byte, named by their digest; 1 when one of them was refused."""
    if not files and not claims:
        raise UsageError(what="`receipts import` without a file", command="receipts")
    taken: list[str] = []
    known: list[str] = []
    bad: list[dict[str, Any]] = []
    for name, is_claims in (*((f, False) for f in files), *((c, True) for c in claims)):
        try:
            data = Path(name).read_bytes()
            (claims_in if is_claims else receipt_in)(name, data)
        except OSError as error:
            bad.append({"file": name, "problems": [error.strerror or "cannot be read"]})
            continue
        except NotAReceipt as error:
            bad.append({"file": name, "problems": error.problems})
            continue
        folder = folder_of(where) / "claims" if is_claims else folder_of(where)
        target = folder / f"{hashlib.sha256(data).hexdigest()[:16]}-{Path(name).name}"
        if target.exists():
            known.append(name)
            continue
        make_folder(folder)
        if is_claims:  # claims of a file are what it says now
            for old in folder.glob("*"):
                if old.name[17:] == Path(name).name:
                    old.unlink()
        replace(target, data)
        taken.append(name)
    if as_json:
        print_json({"schema": "asrd.receipts-import/1", "taken": taken, "known": known, "refused": bad})
    else:
        sys.stdout.write(f"{len(taken)} taken in, {len(known)} known before, {len(bad)} refused.\n")
        for one in bad:
            for problem in one["problems"]:
                sys.stderr.write(inert(f"asrd: {one['file']}: {problem}.\n"))
    return int(bool(bad))


def receipt_in(name: str, data: bytes) -> Receipt:
    """One receipt. Raises NotAReceipt; AsrdError where PyYAML is missing."""
    try:
        return read_receipt(name, data)
    except ImportError as error:
        raise AsrdError(what="YAML needs the package PyYAML (pip install 'asrd[receipts]')") from error


def claims_in(name: str, data: bytes) -> Claimed:
    """Who claims what, of a file in one of the three forms. Raises NotAReceipt."""
    if name.endswith(".toml"):
        try:
            return from_own(data.decode("utf-8", "replace"))
        except ClaimsUnreadable as error:
            raise NotAReceipt([str(error)]) from error
    if name.endswith((".md", ".markdown")):
        try:
            return read_session_record(data)
        except ImportError as error:
            raise AsrdError(what="YAML needs the package PyYAML (pip install 'asrd[receipts]')") from error
    return read_snapshot(data)


def from_own(text: str) -> Claimed:
    """The claims on receipts of an asrd claims file. Raises ClaimsUnreadable."""
    return Claimed(
        {
            name: Claimant(name, one.title, one.phase_count, [name_of(r)[0] for r in one.receipts])
            for name, one in read_claims(text).items()
            if one.receipts
        }
    )


def kept(where: Folders) -> list[Receipt]:
    """Every receipt that was taken in, all versions."""
    folder = folder_of(where)
    paths = sorted(p for p in folder.glob("*") if p.is_file()) if folder.is_dir() else []
    return [receipt_in(p.name[17:], p.read_bytes()) for p in paths]


def who_claims(where: Folders, more: list[str]) -> Claimed:
    """Who claims what: as it was taken in, as the claims file of this place says, as the files given now say."""
    claimed = Claimed()
    folder = folder_of(where) / "claims"
    for path in sorted(folder.glob("*"), key=lambda p: p.name[17:]) if folder.is_dir() else []:
        claimed.add(claims_in(path.name, path.read_bytes()))
    own = claims_file(None, Path.cwd(), where)
    for name, one in claims_of(own).items():
        if one.receipts:
            receipts = [name_of(r)[0] for r in one.receipts]
            claimed.add(Claimed({name: Claimant(name, one.title, one.phase_count, receipts)}))
    for name in more:
        try:
            claimed.add(claims_in(name, Path(name).read_bytes()))
        except OSError as error:
            raise UsageError(what=f"{name} ({error.strerror})", command="receipts") from error
        except NotAReceipt as error:
            raise UsageError(what=f"{name} ({error})", command="receipts") from error
    return claimed


def forget(where: Folders) -> int:
    """Removes what was taken in."""
    folder = folder_of(where)
    found = [p for p in folder.rglob("*") if p.is_file()] if folder.is_dir() else []
    for path in found:
        path.unlink()
    sys.stdout.write(f"{len(found)} removed.\n")
    return 0
