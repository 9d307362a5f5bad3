"""Lower bound on the imbalance of weighted groups: partitions that may be divided.

If the load of a partition may be divided among its consumers, the problem is a flow, and all its
optimal load vectors are least majorised. Every assignment majorises them, so they have the
minimum value of each measure. See `kassay.solver.flow.load_level_sets`.
"""

from functools import cached_property

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.solver.evaluation import imbalance_of
from kassay.solver.flow.load_level_sets import level_sets
from kassay.solver.limits import FlowClock, SearchBudget
from kassay.solver.problem import EXACT_IN_64_BITS, Ints, Problem
from kassay.solver.subscription_network import SubscriptionNetwork


class _LoadNetwork(SubscriptionNetwork):
    """Network of loads, with a node for all partitions that the same members may receive.

    The weights are multiples of `Problem.weight_unit`.
    """

    @cached_property
    def supply(self) -> Ints:
        """Weight per set of consumers."""
        supply = np.zeros(self.topics, dtype=np.int64)
        np.add.at(supply, self.topic, self.problem.weight // self.problem.weight_unit)
        return supply


def divisible_loads_bound(problem: Problem, measure: Measure, budget: SearchBudget) -> int:
    """Return the minimum imbalance of divisible partitions, a lower bound on the imbalance.

    The bound is 0 if the method does not apply or the time is up. It exceeds the bound by counting
    only if subscriptions differ.
    """
    sets = problem.consumer_sets
    if (
        len(sets) < 2
        or problem.total >= EXACT_IN_64_BITS
        or not problem.member_units.has_equal_speeds
    ):
        return 0
    sizes = [len(consumers) for consumers in sets]
    network = _LoadNetwork(
        problem=problem,
        tail=np.repeat(np.arange(len(sets), dtype=np.int64), sizes),
        head=np.concatenate(sets).astype(np.int64),
        topic=problem.consumer_set.astype(np.int64),
        topic_names=tuple(map(str, range(len(sets)))),
    )
    levels = level_sets(network, FlowClock(budget, 0.0))
    if levels is None:
        return 0
    loads: list[int] = []
    for level in levels:
        low_count = len(level.members) - level.at_high
        loads += [level.high] * level.at_high + [level.high - 1] * low_count
    return imbalance_of(measure, [load * problem.weight_unit for load in loads])
