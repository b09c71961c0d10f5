"""What runs now: sessions at work, how fast they use tokens, what today used and cost. Reads the index; the moment is given.

Words
    shown     sessions in which something was recorded in the last ten minutes (`RECENT`), and those with an open turn of the
              last day (`STALE`): one that was killed stays open, and one that waits for a person is quiet
    working   a turn is open, and something was recorded in the last ten minutes
    a minute  tokens of the counted responses of the last five minutes (`WINDOW`), divided by five
    today     from midnight where this machine is; each response once, money as `asrd usage daily` has it
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from asrd.moments import within
from asrd.prices import List
from asrd.query import Selection, Sums, bound, state_of, usage_json
from asrd.report.spending import priced, spending
from asrd.store.rows import IndexRows

WINDOW = timedelta(minutes=5)
RECENT = timedelta(minutes=10)
STALE = timedelta(days=1)


def glance(rows: IndexRows, now: datetime, prices: List | None, daemon: bool) -> dict[str, Any]:
    """asrd.top/1. `now`: aware; its timezone says where today begins. `prices` None: without list estimates."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    lately = rows.sessions(since=bound((now - STALE).isoformat()))
    recent = bound((now - RECENT).isoformat())
    shown = [s for s in lately if state_of(s.row) == "open" or within(s.row.last_at, recent, None)]
    fast = dict(rows.usage(Selection(since=bound((now - WINDOW).isoformat()), until=bound(now.isoformat())), "session"))
    tiers, hourly = (prices.tiers(), prices.hourly()) if prices else ([], [])
    found = spending(rows, by="session", since=midnight.isoformat(), until=now.isoformat(), tiers=tiers, hourly=hourly)
    today = priced(found, prices, now.date())
    spent = {(r["agent"], r["sessionId"], r["namespace"] or ""): r for r in today["rows"]}
    total = Sums()
    for sums in fast.values():
        total.add(sums)
    sessions: list[dict[str, Any]] = []
    for one in shown:
        row = one.row
        used = spent.get((row.agent, row.session_id, row.namespace))
        sessions.append(
            {
                "agent": row.agent,
                "sessionId": row.session_id,
                "namespace": row.namespace or None,
                "title": row.title or row.prompt,
                "cwd": row.cwd,
                "model": row.model,
                "state": state_of(row),
                "working": state_of(row) == "open" and within(row.last_at, recent, None),
                "subagent": row.parent_relation in ("spawned_by", "spawned"),
                "lastAt": row.last_at,
                "records": row.records,
                "openCalls": row.open_calls,
                "perMinute": _rate(fast.get(one.number, Sums())),
                "today": _figures(used) if used else None,
            }
        )
    sessions.sort(key=lambda s: (not s["working"], s["state"] != "open", _reversed(s["lastAt"]), s["sessionId"]))
    return {
        "schema": "asrd.top/1",
        "at": bound(now.isoformat()),
        "daemon": daemon,
        "working": sum(s["working"] for s in sessions),
        "perMinute": _rate(total),
        "today": _figures(today["total"]),
        "sessions": sessions,
    }


def _rate(sums: Sums) -> dict[str, Any]:
    """Tokens a minute over the window; None where responses are known and none of them says it."""
    used = usage_json(sums)
    minutes = WINDOW / timedelta(minutes=1)

    def a_minute(amount: int | None) -> int | None:
        if amount is None:
            return None if sums.requests + sums.unmeasured else 0
        return round(amount / minutes)

    return {"input": a_minute(used["inputTotal"]), "output": a_minute(used["output"]), "requests": sums.requests}


def _figures(row: dict[str, Any]) -> dict[str, Any]:
    kept = ("requests", "inputTotal", "output", "lowerBound", "cost")
    return {k: row[k] for k in kept}


def _reversed(at: str | None) -> tuple[int, ...]:
    """Orders texts from the last to the first."""
    return tuple(-ord(c) for c in at or "")
