"""All links between sessions: what states them, what they prove, and where each session stands. Pure folds."""

from asrd.lineage.copies import OWNERS, derives, origins
from asrd.lineage.links import ORIGIN, PLACE, SPAWN, Call, Edge, Links, Node, Statement, before, moment, one_of
from asrd.lineage.tree import Tree, leads_to, reach

__all__ = [
    "ORIGIN", "OWNERS", "PLACE", "SPAWN", "Call", "Edge", "Links", "Node", "Statement", "Tree", "before", "derives",
    "leads_to", "moment", "one_of", "origins", "reach",
]  # fmt: skip
