"""Searches for a lower makespan of a weighted group.

Each search adds its placement to the pool and returns a lower bound on the level, or 0.
"""

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.level_bounds import makespan_bound
from kassay.solver.certificate.certificate import Origin
from kassay.solver.constraints import MaxMoves
from kassay.solver.evaluation import imbalance_of, level_value
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Imbalance
from kassay.solver.problem import EXACT_IN_64_BITS

# CP-SAT solves smaller groups faster than any other method starts.
MIN_PARTITIONS = 12
_MIN_CHOICES_FOR_LIMITED_MOVES = 2_000

ProvenBound = tuple[int, Origin]  # lower bound on a level, 0 if none is proven, and its origin


def pack_identical(
    pool: IncumbentPool, level: Imbalance, budget: SearchBudget, *, before_enumeration: bool
) -> ProvenBound:
    """Minimise the makespan of identical members.

    Return a lower bound on it, 0 if none is proven, and the origin of the bound.
    """
    problem = pool.problem
    if (
        pool.reached
        or pool.constraints
        or level.measure is not Measure.MAKESPAN
        or budget.seconds <= 0
        or problem.partition_count < MIN_PARTITIONS
        or not problem.group.is_weighted
        or not problem.group.has_equal_speeds
    ):
        return 0, Origin.PACKING
    from kassay.solver.enumeration.subset_enumeration import MAX_ITEMS  # noqa: PLC0415
    from kassay.solver.identical_members.component_packing import (  # noqa: PLC0415
        minimise_makespan,
    )
    from kassay.solver.identical_members.search_clock import SearchClock  # noqa: PLC0415

    rng = np.random.default_rng(budget.seed)
    clock = SearchClock.of(budget)
    if problem.partition_count <= MAX_ITEMS and before_enumeration:
        # The enumeration of subsets may prove the same, and the movement too.
        clock = clock.part(0.5)
    result = minimise_makespan(problem, pool.incumbent(level), clock, rng)
    if result is None:
        return 0, Origin.PACKING
    pool.add(result.placement)
    return result.bound, Origin.HIGHS if result.is_bound_by_highs else Origin.PACKING


def balance_loads(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> int:
    """Improve the best placement on the first level by local search; return the trivial bound 0."""
    problem = pool.problem
    if pool.reached or pool.constraints:
        return 0
    if problem.partition_count < MIN_PARTITIONS or not problem.group.has_equal_speeds:
        return 0
    from kassay.solver.weighted.search.load_local_search import LoadBalancer  # noqa: PLC0415

    rng = np.random.default_rng(budget.seed)
    best = pool.value(level)
    start = min(
        (one for one in pool.placements if level_value(problem, level, one) == best),
        key=lambda one: imbalance_of(Measure.SUM_OF_SQUARES, problem.loads(one)),
    )
    balancer = LoadBalancer(problem, start.copy(), rng)
    may_continue = budget.share(2).continuation(5_000)
    balancer.lower_makespan(makespan_bound(problem), may_continue)
    balancer.even_out(may_continue)
    if level.measure is not Measure.MAKESPAN:
        balancer.balance_random_pairs(may_continue)
    pool.placements.append(balancer.placement)
    return 0


def limit_moves(pool: IncumbentPool, level: Imbalance, budget: SearchBudget) -> int:
    """Minimise the makespan within the maximum number of moves.

    Return a lower bound on it, or 0 if none is proven.
    """
    problem = pool.problem
    limits = [rule.limit for rule in pool.constraints if isinstance(rule, MaxMoves)]
    if (
        not limits
        or pool.reached
        or level.measure is not Measure.MAKESPAN
        or problem.partition_count < MIN_PARTITIONS
        or problem.total >= EXACT_IN_64_BITS
        or not problem.group.is_weighted
        or not problem.group.has_equal_speeds
    ):
        return 0
    from kassay.solver.weighted.search.limited_moves import LimitedMovesSearch  # noqa: PLC0415

    rng = np.random.default_rng(budget.seed)
    search = LimitedMovesSearch(problem, min(limits), pool.incumbent(level), rng)
    # CP-SAT improves this bound little if there are many choices.
    is_large = problem.partition_count * problem.member_count >= _MIN_CHOICES_FOR_LIMITED_MOVES
    search.run(budget.until(budget.seconds * (0.9 if is_large else 0.5)))
    pool.add(search.placement)
    return search.bound
