"""One row a home: its marks, its score, and of each metric below full credit whose fault it is."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from asrd.convert import convert_home
from asrd.recorders import load
from asrd.records import Capture, encode_lines
from asrd.store.stream import file_name, folder_name
from tests.golden import CAPTURES
from tests.score import marks, packets
from tests.score.absent import absent
from tests.score.facts import Truth, of_capture, of_packet
from tests.score.rubric import DENSITY, FACTS, NATIVE, POINTS, Mark

SCENARIOS = re.compile(r"S[1-5](-|$)")
OLDER = re.compile(r"-v?\d+\.")
"""Captures of versions that the report does not know."""
PARTIAL = re.compile(r"-(transcript|messages)$")
"""Captures of a harness's lesser source alone, without the one that is scored."""


class Row(Struct):
    """What came of one home.

    `native`: the report's total of that harness, None where it has none. `absent`: metrics that the source holds no facts
    for, each with the reason. `lost`: those that it does. `claimed`: of a packet, facts we have more of than its file.
    """

    case: str
    marks: dict[str, Mark]
    strict: Mark
    native: float | None
    absent: dict[str, str]
    lost: dict[str, str]
    claimed: dict[str, str]
    constructed: bool = False
    """The home was made from documents, not by the harness: what is missing may be missing in it."""

    @property
    def score(self) -> float:
        """Of 100: the points of what the home exercised, put in proportion."""
        return share_of(self.marks, set(POINTS))


def share_of(found: Mapping[str, Mark], metrics: set[str]) -> float:
    """The points had of these metrics, as a part of 100 of those that were to be had."""
    exercised = {m: POINTS[m] for m in metrics if found[m].exercised}
    return 100 * sum(points * found[m].share for m, points in exercised.items()) / sum(exercised.values())


def cases() -> list[str]:
    """The captures that are scored: scenarios 1 to 5 of every harness whose `truth.json` tells of each call or response.

    Those of a session seen by another program than its harness are left out: its own file is what is scored. Those made from
    documents come last.
    """
    found = sorted(p.parent for p in CAPTURES.glob("*/*/truth.json") if SCENARIOS.match(p.parent.name))
    seconds = {name for name, recorder in load().items() if recorder.secondary} | {"acp"}
    names = [f"{p.parent.name}/{p.name}" for p in found if p.parent.name not in seconds and of_capture(p) is not None]
    return sorted((n for n in names if not PARTIAL.search(n)), key=lambda n: (constructed(n), n))


def constructed(case: str) -> bool:
    """Whether a capture was made from documents: no program of the harness wrote it, so it decides nothing."""
    return "texts" in json.loads((CAPTURES / case / "truth.json").read_text())


def streams_of(home: Path) -> dict[str, bytes]:
    """The streams of a home as lines, by the place the store gives them."""
    return {
        f"{folder_name(key.agent)}/{file_name(key)}": encode_lines(records)
        for key, records in convert_home(home).items()
    }


def of_home(case: str, home: Path, truth: Truth, native: Mapping[str, float] | None = None) -> Row:
    """The row of a home. `native`: of a packet, the share of each metric that the report gives its file."""
    streams = streams_of(home)
    with tempfile.TemporaryDirectory(prefix="asrd-score-") as elsewhere:
        again = streams_of(Path(shutil.copytree(home, Path(elsewhere) / "copy")))
    return of_streams(case, streams, truth, again, native)


def of_streams(
    case: str,
    streams: Mapping[str, bytes],
    truth: Truth,
    again: Mapping[str, bytes],
    native: Mapping[str, float] | None = None,
) -> Row:
    """The row of streams. `again`: the same, made from a copy of the home in another place."""
    story = marks.Story(streams, truth)
    found = marks.evaluate(story, again)
    facets = {r.facet for s in story.streams for r in s.records if isinstance(r, Capture) and r.facet}
    reasons: dict[str, str] = {}
    lost: dict[str, str] = {}
    claimed: dict[str, str] = {}
    for metric, mark in found.items():
        there = native.get(metric, 1.0) if native is not None else None
        if metric == DENSITY:
            continue
        if there is not None and metric in FACTS and mark.share > there + 1e-6:
            claimed[metric] = f"{mark.share:.2f} where the file has {there:.2f}"
        if mark.full:
            continue
        if there is not None:
            why = "the report says so" if metric in FACTS and mark.share >= there - 1e-6 else None
        else:
            why = absent(case, metric, facets)
        if why is not None:
            reasons[metric] = why
        else:
            lost[metric] = mark.why or f"{mark.correct:g} of {max(mark.decoded, mark.observed):g}"
    row = NATIVE.get(story.streams[0].header.agent.name) if not OLDER.search(case) else None
    return Row(case, found, marks.once(story, strict=True), row.total if row else None, reasons, lost, claimed)


def rows(chosen: list[str] | None = None) -> Iterator[Row]:
    """The packets, where they are at hand, then the captures."""
    if (where := packets.folder()) is not None and chosen is None:
        yield from packet_rows(where)
    for case in chosen or cases():
        truth = of_capture(CAPTURES / case)
        assert truth is not None
        row = of_home(case, CAPTURES / case / "home", truth)
        row.constructed = constructed(case)
        yield row


def packet_rows(where: Path) -> Iterator[Row]:
    """A row of each run whose facts are known."""
    told: dict[str, Any] = json.loads((where / "ground-truth.json").read_text())
    states: dict[str, Any] = json.loads((where / "expected-states.json").read_text())["runs"]
    for run, facts in told.items():
        harness, name = run.split("/")
        native = {
            metric: s["correct"] / max(s["decoded_eligible"], s["observed_eligible"], 1)
            for metric, s in states[harness][name].items()
        }
        with tempfile.TemporaryDirectory(prefix="asrd-packet-") as work:
            packets.lay_out(where, run, facts["session_id"], Path(work) / "home")
            yield of_home(run, Path(work) / "home", of_packet(facts), native)


def line_of(row: Row) -> str:
    """A row as lines of text."""
    density, once = row.marks[DENSITY].share, row.marks[marks.DUPLICATES].share
    native = f"{row.native:5.1f}" if row.native is not None else "    –"
    name = f"{row.case} (from documents)" if row.constructed else row.case
    lines = [
        f"{name:<36} native {native}  ours {row.score:5.1f}  of it without density {row.score - 3 * density:4.1f} of 97"
        f"  density {density:.2f}  once {once:.0%} (strict {row.strict.share:.0%})"
    ]
    lines += [f"    {metric:<36} natively absent: {why}" for metric, why in row.absent.items()]
    lines += [f"    {metric:<36} LOST BY US: {why}" for metric, why in row.lost.items()]
    lines += [f"    {metric:<36} CLAIMED: {why}" for metric, why in row.claimed.items()]
    return "\n".join(lines)
