"""ASR itself: the streams, record by record, with what may not leave taken out."""

from __future__ import annotations

from msgspec.structs import replace

from asrd.export import File, Format, Given
from asrd.export.view import file_stem
from asrd.records import encode_lines


def make(given: Given) -> list[File]:
    """One file a session; a redacted one says so in its header (`contentLevel`)."""
    found: list[File] = []
    for one in given.sessions:
        records = list(one.records)
        header = one.header
        if header is not None and given.removed and header.content_level == "full":
            records[0] = replace(header, content_level="redacted")
        found.append(File(f"{file_stem(one.agent, one.session_id, one.namespace)}.asr.jsonl", encode_lines(records)))
    return found


FORMAT = Format(name="asr", title="ASR 0.1", make=make, loses={"*": "kept; secrets are taken out"})
