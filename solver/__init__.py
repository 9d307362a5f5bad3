"""The optimum: the least imbalanced assignment, then the stickiest, with proof."""

from solver.certificate import Certificate, certify, objections
from solver.chains import Transfer, improving_chain
from solver.objective import (
    Capacity,
    Colocated,
    Cost,
    CrossRack,
    Forbidden,
    Imbalance,
    MaxMoves,
    MaxPartitions,
    Measure,
    MembersUsed,
    Movement,
    Pinned,
    Separated,
    Tolerance,
    TopicSpread,
)
from solver.solution import Bounded, Solution, Status
from solver.solve import Method, solve

__all__ = [
    "Bounded",
    "Capacity",
    "Certificate",
    "Colocated",
    "Cost",
    "CrossRack",
    "Forbidden",
    "Imbalance",
    "MaxMoves",
    "MaxPartitions",
    "Measure",
    "MembersUsed",
    "Method",
    "Movement",
    "Pinned",
    "Separated",
    "Solution",
    "Status",
    "Tolerance",
    "TopicSpread",
    "Transfer",
    "certify",
    "improving_chain",
    "objections",
    "solve",
]
