"""Confirmed miscounts of other tools, as homes with the right figure: `python -m tests.pitfalls` prints the table."""

from tests.pitfalls import listed, ours, rules
from tests.pitfalls.cases import CASES, S1, Case, asked, outcome

__all__ = ["CASES", "S1", "Case", "asked", "listed", "ours", "outcome", "rules"]
