"""Reads Git AI authorship notes by the rules of their standard (specs/git_ai_standard_v3.0.0.md), and refuses what breaks one."""

import json
import re
from typing import Any

from msgspec import Struct

KEY = re.compile(r"s_[0-9a-f]{14}::t_[0-9a-f]{14}|h_[0-9a-f]{14}|[0-9a-f]{16}")


class Note(Struct):
    """A note: lines by key by path, and its metadata."""

    attested: dict[str, dict[str, list[int]]]
    metadata: dict[str, Any]


def parse(text: str) -> Note:
    """The note. Raises AssertionError for what is none."""
    head, line, rest = text.partition("---\n")
    assert line, "no divider"
    attested: dict[str, dict[str, list[int]]] = {}
    path = ""
    for one in head.splitlines():
        if not one.startswith(" "):
            path = one[1:-1] if one.startswith('"') else one
            assert path not in attested and (one.startswith('"') or not re.search(r"\s", one))
            attested[path] = {}
            continue
        found = re.fullmatch(r"  (\S+) (\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)", one)
        assert found and KEY.fullmatch(found[1]), one
        numbers: list[int] = []
        for part in found[2].split(","):
            start, _, end = part.partition("-")
            numbers += range(int(start), int(end or start) + 1)
        assert numbers == sorted(set(numbers)) and numbers[0] >= 1
        attested[path][found[1]] = numbers
    metadata = json.loads(rest)
    assert metadata["schema_version"] == "authorship/3.0.0" and re.fullmatch(
        "[0-9a-f]{40}", metadata["base_commit_sha"]
    )
    assert isinstance(metadata["prompts"], dict)
    named = {key.split("::")[0] for some in attested.values() for key in some}
    assert named <= set(metadata["sessions"]) | set(metadata["prompts"]) | set(metadata.get("humans", {}))
    for session in metadata["sessions"].values():
        assert set(session) <= {"agent_id", "human_author", "custom_attributes"}
        assert set(session["agent_id"]) == {"tool", "id", "model"}
        assert all(isinstance(v, str) for v in session.get("custom_attributes", {}).values())
    return Note(attested, metadata)
