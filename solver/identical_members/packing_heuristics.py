"""Greedy heuristics that distribute weights over identical members.

The rule of the multifit method is that of Coffman, Garey and Johnson, "An application of
bin-packing to multiprocessor scheduling", SIAM Journal on Computing 7(1), 1978.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heapify, heapreplace

import numpy as np

from kassay.solver.enumeration.subset_enumeration import nearest_subset
from kassay.solver.identical_members.lower_bounds import shared_weights_bound
from kassay.solver.limits import SearchBudget
from kassay.solver.number_ranges import exact_integers

_WORK_PER_WEIGHT = 2e-6  # of one packing
_MAX_SPLIT = 22  # weights that are split exactly
Packing = list[list[int]]  # weights per member


def makespan_of(packing: Packing) -> int:
    """Return the maximum load of a packing."""
    return max(map(sum, packing), default=0)


def longest_first(weights: Sequence[int], members: int, start: Packing | None = None) -> Packing:
    """Add each weight, in descending order, to the least loaded member (Graham's LPT)."""
    packing: Packing = [[] for _ in range(members)] if start is None else start
    queue = [(sum(own), at) for at, own in enumerate(packing)]
    heapify(queue)
    for weight in weights:
        load, at = queue[0]
        packing[at].append(weight)
        heapreplace(queue, (load + weight, at))
    return packing


def grouped_first(weights: Sequence[int], members: int) -> Packing:
    """Pack the weights that determine `shared_weights_bound` first, then the others, by LPT.

    If that bound is tight, these members have exactly the least of the first weights.
    """
    shared = shared_weights_bound(weights, members)
    start = shared.first - shared.held
    packing = longest_first(weights[start : shared.first], shared.members)
    packing += longest_first(weights[:start], members - shared.members)
    return longest_first(weights[shared.first :], members, packing)


def best_fit(weights: Sequence[int], members: int, capacity: int) -> Packing | None:
    """Give each weight, heaviest first, to the fullest member with space for it.

    Return None if a weight does not fit.
    """
    packing: Packing = [[] for _ in range(members)]
    free: list[tuple[int, int]] = []
    opened = 0
    for weight in weights:
        at = bisect_left(free, (weight, -1))
        if at < len(free):
            space, member = free.pop(at)
        elif opened < members and weight <= capacity:
            space, member = capacity, opened
            opened += 1
        else:
            return None
        packing[member].append(weight)
        insort(free, (space - weight, member))
    return packing


def multifit(
    weights: Sequence[int], members: int, low: int, high: int, budget: SearchBudget
) -> Packing | None:
    """Find a packing with the minimum capacity at which `best_fit` succeeds, by bisection."""
    best = None
    while low < high and budget.has_work:
        middle = (low + high) // 2
        packing = best_fit(weights, members, middle)
        budget.spend(_WORK_PER_WEIGHT * len(weights))
        if packing is None:
            low = middle + 1
        else:
            best, high = packing, makespan_of(packing)
    return best


def split_evenly(
    one: Sequence[int], other: Sequence[int], rng: "np.random.Generator"
) -> tuple[list[int], list[int]]:
    """Exchange weights of two members to make their loads nearly equal."""
    weights = [*one, *other]
    order = rng.permutation(len(weights)).tolist()
    free, fixed = order[:_MAX_SPLIT], order[_MAX_SPLIT:]
    sides: tuple[list[int], list[int]] = ([], [])
    for at in fixed:
        sides[at >= len(one)].append(weights[at])
    column = exact_integers([weights[at] for at in free])
    mask = nearest_subset(column, sum(weights) // 2 - sum(sides[0]))
    for index, at in enumerate(free):
        sides[1 - (mask >> index & 1)].append(weights[at])
    return sides
