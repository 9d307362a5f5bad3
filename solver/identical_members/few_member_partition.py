"""Divide weights among a few identical members within a capacity, by subset sums.

Sequential number partitioning: Korf, "Objective functions for multi-way number partitioning",
SoCS 2010. One member after the other receives a subset with a load in a window.
"""

from collections.abc import Sequence

import numpy as np

from kassay.solver.enumeration.subset_enumeration import (
    EnumerationLimitError,
    enumerate_subsets,
    nearest_subset,
)
from kassay.solver.identical_members.packing_heuristics import Packing
from kassay.solver.identical_members.search_clock import SearchClock
from kassay.solver.problem import Weights, exact_integers

_MAX_TRIES = 1_500


def partition_within(
    weights: Sequence[int],
    members: int,
    capacity: int,
    rng: np.random.Generator,
    clock: SearchClock,
) -> Packing | None:
    """Divide weights among members within a capacity; return None if the search fails."""
    column = exact_integers(sorted(weights, reverse=True))
    return _split(column, members, capacity, rng, clock)


def _split(
    weights: Weights,
    members: int,
    capacity: int,
    rng: np.random.Generator,
    clock: SearchClock,
) -> Packing | None:
    total = sum(weights.tolist())
    if members == 1:
        return [weights.tolist()] if total <= capacity else None
    if members == 2:
        return _halves(weights, total, capacity)
    # The first member receives the heaviest weight.
    heaviest, rest = int(weights[0]), weights[1:]
    low = max(total - (members - 1) * capacity - heaviest, 0)
    try:
        subsets = enumerate_subsets(rest, low, capacity - heaviest)
    except EnumerationLimitError:
        return None
    tries = rng.permutation(len(subsets.mask))[:_MAX_TRIES].tolist()
    for index in tries:
        if not clock.has_time:
            return None
        chosen = ((subsets.mask[index] >> np.arange(len(rest))) & 1) == 1
        others = _split(rest[~chosen], members - 1, capacity, rng, clock)
        if others is not None:
            return [[heaviest, *rest[chosen].tolist()], *others]
    return None


def _halves(weights: Weights, total: int, capacity: int) -> Packing | None:
    mask = nearest_subset(weights, total // 2)
    chosen = ((mask >> np.arange(len(weights))) & 1) == 1
    load = sum(weights[chosen].tolist())
    if max(load, total - load) > capacity:
        return None
    return [weights[chosen].tolist(), weights[~chosen].tolist()]
