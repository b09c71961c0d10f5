"""The score: the 31 metrics of Session-Bench v1, evaluated on our streams. `python -m tests.score [PACKETS]` (`make score`).

What is compared
    - Streams alone: each home goes through `asrd sync`, the lines it stored are read back, and nothing else of ours is asked.
    - Facts are those of `truth.json` (what the scripted model server sent, what the working tree became) and of a packet's
      observer. The native file is never read here, so our own reading of it can confirm nothing.
    - A metric below full credit is *natively absent* when the public report says so of that harness, or when `absent.py`
      names it with a reason; else it is *lost by us*, and `tests/test_score.py` fails.

The packets of Session-Bench are not part of this project: their repository states no licence. Where a copy of them is at hand
its folder is given as argument (or as ASRD_PACKETS for the tests); without it the captures are scored by the same rules.

Rules that the rubric leaves to the reader of a format, as decided here
    - An event is a prompt, an answer's message, a call or a result. It is stated by its own record; another record that is not
      superseded and holds all of it again restates it. Records that say what a call did name it by `callId` and quote it
      (`exec.command` of its result, the `diff` of its change): the format has them, so the quote is told from a call by a field.
      The count without that allowance is printed too (`strict`).
    - A completed response has a turn that ended `completed`, or an inference whose `stopReason` is not a call.
    - Density is by record, as in the report: a record's role is that of its type. It has no full credit: the header, the
      figures and the capture states of a stream are not useful in that sense.
"""
