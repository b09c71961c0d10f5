"""Requests, input total and output of a home, counted once: `python -m tests.figures HOME`."""

import sys
from pathlib import Path

from asrd.convert import Streams, convert_home
from asrd.records import Inference


def figures(streams: Streams) -> dict[str, int]:
    """Every response once: the last statement of it in its stream, copies left out, one for equal ids over streams."""
    best: dict[tuple[str, str], Inference] = {}
    for key, records in streams.items():
        superseded = {r.supersedes for r in records if r.supersedes}
        for record in records:
            if isinstance(record, Inference) and not record.copy_of and record.id not in superseded and record.usage:
                name = (key.agent, record.inference_id)
                if record.id_source == "derived":
                    name = (f"{key.agent}/{key.session_id}/{key.namespace}", record.inference_id)
                other = best.get(name)
                if other is None or (record.usage.output or 0) > ((other.usage and other.usage.output) or 0):
                    best[name] = record
    usages = [r.usage for r in best.values() if r.usage]
    return {
        "requests": len(usages),
        "input_total": sum((u.input or 0) + (u.cache_read or 0) + (u.cache_write or 0) for u in usages),
        "output": sum(u.output or 0 for u in usages),
    }


if __name__ == "__main__":
    print(figures(convert_home(Path(sys.argv[1]))))
