"""Find infeasible constraints by network flows, for groups with equal weights."""

from collections.abc import Callable, Sequence

import numpy as np

from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.flow.optimal_loads_by_cuts import is_feasible
from kassay.solver.flow.priced_flow import LoadWindows, fewest_moves_point
from kassay.solver.problem import Problem
from kassay.solver.subscription_network import build_network


def is_infeasible(problem: Problem, constraints: Sequence[Constraint]) -> bool:
    """Return whether flows prove that no assignment meets the constraints."""
    network = build_network(problem, constraints)
    if not is_feasible(network):
        return True
    limits = [rule.limit for rule in constraints if isinstance(rule, MaxMoves)]
    if not limits:
        return False
    kept = np.minimum(network.loads(network.owned), network.max_counts)
    return fewest_moves_point(network, LoadWindows.around(kept)).moves > min(limits)


def find_conflict_by_flow(
    problem: Problem, constraints: Sequence[Constraint], may_continue: Callable[[], bool]
) -> tuple[Constraint, ...]:
    """Reduce infeasible constraints to a small infeasible subset, by network flows.

    Parts of the constraints are left out, and stay out if the others are still infeasible. The
    parts shrink to single constraints. The result is minimal if time allows.
    """
    kept = tuple(constraints)
    size = (len(kept) + 1) // 2
    while size and may_continue():
        start = 0
        while start < len(kept) and may_continue():
            others = kept[:start] + kept[start + size :]
            if is_infeasible(problem, others):
                kept = others
            else:
                start += size
        size = 0 if size == 1 else (size + 1) // 2
    return kept
