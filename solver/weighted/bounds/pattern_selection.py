"""Select one exchange pattern per member (partitions given, received) by integer programming."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.evaluation import moves_cost
from kassay.solver.problem import Placement
from kassay.solver.weighted.bounds.knapsack_subproblems import ExchangePattern, MemberExchange

_NODES = 200  # limit of a search without a clock


def select_patterns(
    exchange: MemberExchange,
    patterns: Sequence[ExchangePattern],
    incumbent: Placement,
    seconds: float | None,
) -> Placement | None:
    """Combine exchange patterns to a placement that is cheaper than the incumbent.

    Return None if no such placement is found. The integer program ends after some seconds, or
    after a number of nodes if they are None.
    """
    problem, costs = exchange.problem, exchange.costs
    patterns = [pattern for pattern in patterns if exchange.is_feasible(pattern)]
    if {pattern.member for pattern in patterns} != set(range(problem.member_count)):
        return None
    count = len(patterns)
    unowned = problem.owner == NO_OWNER
    fees = exchange.fees(patterns)
    once = sparse.csr_matrix(
        (np.ones(count), ([one.member for one in patterns], np.arange(count))),
        (problem.member_count, count),
    )
    most = moves_cost(problem, costs, incumbent) - 1
    result = milp(
        fees,
        integrality=np.ones(count),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(exchange.matrix(patterns).T, unowned.astype(np.float64), np.inf),
            LinearConstraint(once, 1, 1),
            LinearConstraint(fees[None, :], 0, most),
        ],
        options={"node_limit": _NODES} if seconds is None else {"time_limit": seconds},
    )
    if result.x is None:
        return None
    return _placement(exchange, [patterns[at] for at in np.flatnonzero(result.x > 0.5).tolist()])


def _placement(exchange: MemberExchange, chosen: Sequence[ExchangePattern]) -> Placement | None:
    """Build the placement of the chosen patterns; return None if a partition gets no member.

    A partition moves if its owner gives it away, to one of the members that receive it.
    """
    owner = exchange.problem.owner
    placement = owner.copy()
    leaves = owner == NO_OWNER
    for pattern in chosen:
        leaves[list(pattern.given)] = True
    for pattern in chosen:
        received = np.array(pattern.received, dtype=np.int64)
        placement[received[leaves[received]]] = pattern.member
    lost = leaves & (placement == owner)
    return None if lost.any() else placement
