"""The optimum: the least imbalanced assignment, then the stickiest, with proof."""

from solver.certificate import Certificate, PriceTable, certify, objections
from solver.chains import Transfer, improving_chain
from solver.claims import Claim, Origin
from solver.constraints import (
    Capacity,
    Colocated,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from solver.explain import Explanation, explain
from solver.frontier import Frontier, Point, frontier
from solver.members import Size, Sizing, members_needed
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
from solver.resilience import Loss, Resilience, resilience
from solver.solution import Bounded, Solution, Status
from solver.solve import Method, solve

__all__ = [
    "Bounded",
    "Capacity",
    "Certificate",
    "Claim",
    "Colocated",
    "Cost",
    "CrossRack",
    "Explanation",
    "Forbidden",
    "Frontier",
    "Imbalance",
    "Loss",
    "MaxMoves",
    "MaxPartitions",
    "Measure",
    "MembersUsed",
    "Method",
    "Movement",
    "Origin",
    "Pinned",
    "Point",
    "PriceTable",
    "Resilience",
    "Separated",
    "Size",
    "Sizing",
    "Solution",
    "Status",
    "Tolerance",
    "TopicSpread",
    "Transfer",
    "certify",
    "explain",
    "frontier",
    "improving_chain",
    "members_needed",
    "objections",
    "resilience",
    "solve",
]
