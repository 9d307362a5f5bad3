"""Find assignments with minimum imbalance, then fewest moves, and prove them optimal."""

from kassay.reference.model.metrics import Measure
from kassay.solver.certificate.certificate import Certificate, Conflict, LevelClaim, Origin, Proof
from kassay.solver.certificate.check import certificate_errors, conflict_errors
from kassay.solver.certificate.refutation import PartitionPrices
from kassay.solver.certify import certify
from kassay.solver.constraints import (
    Capacity,
    Colocated,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.frontier import Frontier, FrontierPoint, frontier
from kassay.solver.limits import SearchLimits
from kassay.solver.network.improving_chains import Explanation, Transfer, explain, improving_chain
from kassay.solver.objective import (
    Colocation,
    CrossRack,
    HostImbalance,
    IdleMembers,
    Imbalance,
    MembersPerPartition,
    MembersUsed,
    MissingTagValues,
    Movement,
    MovementCost,
    Slots,
    StandbyMoves,
    StatefulImbalance,
    Tolerance,
    TopicSpread,
)
from kassay.solver.sizing import Resizing, Sizing, load_by_member_count, members_needed
from kassay.solver.solution import LevelValue, Method, Solution, Status
from kassay.solver.solve import solve

__all__ = [
    "Capacity",
    "Certificate",
    "Colocated",
    "Colocation",
    "Conflict",
    "CrossRack",
    "Explanation",
    "Forbidden",
    "Frontier",
    "FrontierPoint",
    "HostImbalance",
    "IdleMembers",
    "Imbalance",
    "LevelClaim",
    "LevelValue",
    "MaxMoves",
    "MaxPartitions",
    "Measure",
    "MembersPerPartition",
    "MembersUsed",
    "Method",
    "MissingTagValues",
    "Movement",
    "MovementCost",
    "Origin",
    "PartitionPrices",
    "Pinned",
    "Proof",
    "Resizing",
    "SearchLimits",
    "Separated",
    "Sizing",
    "Slots",
    "Solution",
    "StandbyMoves",
    "StatefulImbalance",
    "Status",
    "Tolerance",
    "TopicSpread",
    "Transfer",
    "certificate_errors",
    "certify",
    "conflict_errors",
    "explain",
    "frontier",
    "improving_chain",
    "load_by_member_count",
    "members_needed",
    "solve",
]
