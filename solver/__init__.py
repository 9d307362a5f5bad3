"""The optimum: the least imbalanced assignment, then the stickiest, with proof."""

from kassay.solver.certificate.check import Certificate, PriceTable, certify, objections
from kassay.solver.certificate.claims import Claim, Origin
from kassay.solver.constraints import (
    Capacity,
    Colocated,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.frontier import Frontier, Point, frontier
from kassay.solver.improvement.explanation import Explanation, explain
from kassay.solver.improvement.transfer_chains import Transfer, improving_chain
from kassay.solver.objective import (
    Cost,
    CrossRack,
    Imbalance,
    Measure,
    MembersUsed,
    Movement,
    Tolerance,
    TopicSpread,
)
from kassay.solver.sizing.member_loss import Loss, Resilience, resilience
from kassay.solver.sizing.members_needed import Size, Sizing, members_needed
from kassay.solver.solution import Bounded, Solution, Status
from kassay.solver.solve import Method, solve

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
