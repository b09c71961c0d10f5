"""Makes the captures of `tests/captures/acp` from raw frames ({ts, dir, line} a line): `python -m tests.acp.frames_of`.

python -m tests.acp.frames_of FRAMES… CASE    each FRAMES file is one connection of the case
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from asrd.acp.spool import line_of, moment

CAPTURES = Path(__file__).parents[1] / "captures" / "acp"
DIRECTIONS = {"client->agent": "c2a", "c2a": "c2a", "agent->client": "a2c", "a2c": "a2c"}


def spool_of(frames: Path, number: int) -> tuple[str, bytes]:
    """A connection's name and its spool, as `asrd acp` would have written it."""
    lines = [json.loads(line) for line in frames.read_text().splitlines()]
    first = lines[0]["ts"]
    name = f"{datetime.fromtimestamp(first, UTC):%Y%m%dT%H%M%S.%f}-{number}-000000"
    opening = {"at": moment(first), "dir": "meta", "event": "open", "connection": name, "transport": "stdio"}
    opening |= {"command": None, "pid": number, "asrd": "0.1.0", "keep": True}
    found = [json.dumps(opening, separators=(",", ":")).encode()]
    ending: dict[str, object] = {"at": moment(lines[-1]["ts"]), "dir": "meta", "event": "closed", "by": "client"}
    for line in lines:
        if line["dir"] in DIRECTIONS:
            found.append(line_of(line["ts"], DIRECTIONS[line["dir"]], line["line"].encode()))
        elif line["dir"] == "exit":
            ending["at"] = moment(line["ts"])
            code = int(line["line"])
            ending |= {"code": code} if code >= 0 else {"signal": {-15: "SIGTERM"}[code]}
    found.append(json.dumps(ending, separators=(",", ":")).encode())
    return name, b"".join(line + b"\n" for line in found)


if __name__ == "__main__":
    *frames, case = sys.argv[1:]
    folder = CAPTURES / case / "home" / ".local" / "share" / "asrd" / "spool"
    folder.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(frames, 1):
        name, data = spool_of(Path(one), number)
        (folder / f"{name}.acp.jsonl").write_bytes(data)
