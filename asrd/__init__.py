"""asrd records what coding agents do.

Harnesses leave files in their own formats. asrd tails them and writes one append-only Agent Session Record
stream (ASR 0.1, JSON Lines) a session; it links sessions on evidence, counts work once, answers questions
over a local socket, and hands a session's state to any other harness.

    source bytes -> lines -> native records -> ASR records -> streams -> index -> answers
"""

__version__ = "0.1.0"
