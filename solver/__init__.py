"""The optimum: the least imbalanced assignment, then the stickiest, with proof."""

from solver.certificate import Certificate, certify, objections
from solver.chains import Transfer, improving_chain
from solver.constraints import (
    Capacity,
    Colocated,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from solver.objective import (
    Cost,
    CrossRack,
    Imbalance,
    Measure,
    MembersUsed,
    Movement,
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
