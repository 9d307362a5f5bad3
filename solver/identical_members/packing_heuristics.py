"""Lower bounds and heuristics for the maximum load of identical members (P||Cmax).

Sources: Dell'Amico and Martello, "Optimal scheduling of tasks on identical parallel
processors", ORSA Journal on Computing 7(2), 1995; Haouari and Jemmali, "Tight bounds for the
identical parallel machine-scheduling problem", ITOR 15(6), 2008; Coffman, Garey and Johnson, "An
application of bin-packing to multiprocessor scheduling", SIAM Journal on Computing 7(1), 1978;
Haouari, Gharbi, Jemmali, "Tight bounds for the identical parallel machine scheduling problem",
ITOR 13(6), 2006.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from itertools import accumulate
from random import Random

from kassay.solver.limits import SearchBudget

Packing = list[list[int]]
"""Weights per member."""

_MAX_SHARED = 100_000  # cases of the bound on members that share the heaviest weights
_MAX_THRESHOLDS = 2_000
_MAX_DIVISORS, _MAX_RAISES = 3, 100
_MAX_UNITS = 1_000_000
"""Precision of subset sums: a capacity has at most this many units."""
_MAX_BITS = 500_000_000  # of the subset sums of one member
# Work, measured: of a weight and of a bit in a subset sum, and of a weight in best fit.
_WORK_PER_WEIGHT, _WORK_PER_BIT, _WORK_OF_BEST_FIT = 6e-7, 8e-11, 1e-6
_WORK_PER_REFILL = 5e-5
_NOISE = (0.1, 0.3, 0.5)  # probabilities to skip a weight
_SIZES = (2, 3, 4, 5, 6, 8, 12, 20, 40)  # members of a neighbourhood
_MAX_WEIGHTS = 200  # of a neighbourhood, unless two members have more


def makespan_lower_bound(weights: Sequence[int], members: int) -> int:
    """Return a lower bound on the maximum load, from weights in descending order.

    It is the greatest of the mean load, the greatest weight, the sum of the least weights that
    must share a member, and the least capacity for which counting finds enough members.
    """
    total = sum(weights)
    if not total:
        return 0
    low = max(-(-total // members), weights[0], _shared_weights_bound(weights, members))
    high = max(low, 2 * weights[0])
    ascending = list(reversed(weights))
    sums = list(accumulate(ascending, initial=0))
    if _members_needed(ascending, sums, high) > members:
        return high
    while low < high:
        middle = (low + high) // 2
        if _members_needed(ascending, sums, middle) > members:
            low = middle + 1
        else:
            high = middle
    return _common_weight_bound(weights, members, low)


def _common_weight_bound(weights: Sequence[int], members: int, low: int) -> int:
    """Raise a bound if few weights are no multiples of a frequent weight.

    A load above the greatest multiple within the capacity needs a weight with a small remainder,
    or two weights with other remainders.
    """
    total = sum(weights)
    for divisor, _ in Counter(weights).most_common(_MAX_DIVISORS):
        remainders = Counter(weight % divisor for weight in weights) if divisor else Counter()
        others = remainders.total() - remainders[0]
        for _ in range(min(divisor, _MAX_RAISES)):
            above = low % divisor
            small = sum(count for one, count in remainders.items() if 0 < one <= above)
            high = min(members, small + (others - small) // 2)
            if not above or members * (low - above) + high * above >= total:
                break
            low += 1
    return low


def _shared_weights_bound(weights: Sequence[int], members: int) -> int:
    """Bound the load of members that share the heaviest weights (Haouari and Jemmali).

    Of the first ``k * members + r`` weights, some ``j`` members have at least
    ``j * k + min(j, r)``.
    """
    sums = list(accumulate(weights, initial=0))
    step = max(1, -(-len(weights) * members // _MAX_SHARED))
    best = 0
    for count in [*range(members + 1, len(weights), step), len(weights)]:
        each, more = divmod(count, members)
        for some in {1, more, members - 1} if step > 1 else range(1, members):
            shared = some * each + min(some, more)
            if some and shared <= count:
                best = max(best, -(-(sums[count] - sums[count - shared]) // some))
    return best


def _members_needed(ascending: Sequence[int], sums: Sequence[int], capacity: int) -> int:
    """Return a lower bound on the number of members needed (Martello and Toth's bound L2).

    For a threshold, weights above ``capacity - threshold`` need a member of their own. Other
    weights above half of the capacity need one each, too. Weights from the threshold on fill
    what these leave.
    """
    count = len(ascending)
    half = bisect_right(ascending, capacity // 2)
    best = count - half
    thresholds = ascending[:half]
    for threshold in thresholds[:: max(1, half // _MAX_THRESHOLDS)]:
        alone = bisect_right(ascending, capacity - threshold)
        first = bisect_left(ascending, threshold)
        single = count - max(alone, half)
        paired = max(alone, half) - half
        free = paired * capacity - (sums[half + paired] - sums[half])
        rest = sums[half] - sums[first]
        best = max(best, single + paired + max(0, -(-(rest - free) // capacity)))
    return best


def makespan_of(packing: Packing) -> int:
    """Return the maximum load of a packing."""
    return max(map(sum, packing), default=0)


def longest_first(weights: Sequence[int], members: int) -> Packing:
    """Give each weight, in descending order, to the least loaded member (Graham's LPT)."""
    packing: Packing = [[] for _ in range(members)]
    queue = [(0, at) for at in range(members)]
    heapify(queue)
    for weight in weights:
        load, at = queue[0]
        packing[at].append(weight)
        heapreplace(queue, (load + weight, at))
    return packing


def multifit(
    weights: Sequence[int], members: int, low: int, high: int, budget: SearchBudget
) -> Packing | None:
    """Find a packing with the minimum capacity at which best fit succeeds, by bisection."""
    best = None
    may_continue = budget.counted(_WORK_OF_BEST_FIT * len(weights))
    while low < high and may_continue():
        middle = (low + high) // 2
        packing = best_fit(weights, members, middle)
        if packing is None:
            low = middle + 1
        else:
            best, high = packing, makespan_of(packing)
    return best


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


@dataclass(frozen=True, slots=True)
class SubsetFilling:
    """Filling of members, one after the other, by subsets of weights within a capacity.

    A subset with the greatest load prefers heavy weights, so that the last members receive many
    light ones. Sums are rounded up to units, to limit their number.
    """

    capacity: int
    budget: SearchBudget
    rng: Random

    def may_fill(self, weights: Sequence[int]) -> bool:
        """Return whether the subset sums of the weights need little memory."""
        return len(weights) * min(self.capacity, _MAX_UNITS) <= _MAX_BITS

    def fill(self, weights: Sequence[int], members: int, noise: float = 0.0) -> Packing | None:
        """Fill members from weights in descending order; the last member receives the rest.

        Return None if the work is done. A subset skips weights with the probability ``noise``.
        """
        packing: Packing = []
        left = list(weights)
        for _ in range(members - 1):
            if not self.budget.has_work:
                return None
            own, left = self._fullest(left, noise)
            packing.append(own)
        return [*packing, left]

    def _fullest(self, weights: Sequence[int], noise: float) -> tuple[list[int], list[int]]:
        """Split weights: a subset with the greatest load within the capacity, and the rest.

        The subset contains the heaviest weight.
        """
        own, rest = list(weights[:1]), weights[1:]
        unit = max(1, self.capacity // _MAX_UNITS)
        room = (self.capacity - sum(own)) // unit
        if room <= 0 or not rest:
            return own, list(rest)
        self.budget.spend(len(rest) * (_WORK_PER_WEIGHT + _WORK_PER_BIT * room))
        sizes = [-(-weight // unit) for weight in rest]
        mask = (2 << room) - 1
        sums = [1]  # bit s: some of the lightest weights have the sum s
        for size in reversed(sizes):
            sums.append(sums[-1] | (sums[-1] << size & mask) if size <= room else sums[-1])
        room = sums.pop().bit_length() - 1
        left = []
        for weight, size in zip(rest, sizes, strict=True):
            lighter = sums.pop()
            fits = size <= room and lighter >> (room - size) & 1
            if fits and not (noise and lighter >> room & 1 and self.rng.random() < noise):
                own.append(weight)
                room -= size
            else:
                left.append(weight)
        return own, left


@dataclass
class Refilling:
    """Search that fills a few random members again, while the overload does not increase."""

    packing: Packing
    filling: SubsetFilling
    smallest: int = 2  # members of a neighbourhood, or fewer if their weights are too many
    loads: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.packing = list(self.packing)
        self.loads = list(map(sum, self.packing))
        each = max(sum(map(len, self.packing)) // len(self.packing), 1)
        most = min(max(_MAX_WEIGHTS // each, 2), len(self.packing))
        self.sizes = [size for size in _SIZES if self.smallest <= size <= most] or [most]

    def run(self, max_failures: int) -> None:
        """Refill members until none is overloaded, or too many attempts fail."""
        failures = 0
        may_continue = self.filling.budget.counted(
            _WORK_PER_REFILL + _WORK_PER_WEIGHT * len(self.packing)
        )
        while failures < max_failures and may_continue():
            capacity = self.filling.capacity
            overloaded = [at for at, load in enumerate(self.loads) if load > capacity]
            if not overloaded:
                return
            failures = 0 if self._refill(overloaded) else failures + 1

    def _refill(self, overloaded: Sequence[int]) -> bool:
        """Fill an overloaded member and random others; return whether the overload is lower."""
        rng, filling = self.filling.rng, self.filling
        chosen = rng.sample(range(len(self.packing)), rng.choice(self.sizes))
        first = rng.choice(overloaded)
        if first not in chosen:
            chosen[0] = first
        weights = sorted((weight for at in chosen for weight in self.packing[at]), reverse=True)
        new = filling.fill(weights, len(chosen), rng.choice(_NOISE))
        if new is None:
            return False
        loads = list(map(sum, new))
        change = self._overload(loads) - self._overload([self.loads[at] for at in chosen])
        if change <= 0:
            for at, own, load in zip(chosen, new, loads, strict=True):
                self.packing[at], self.loads[at] = own, load
        return change < 0

    def _overload(self, loads: Sequence[int]) -> int:
        return sum(max(load - self.filling.capacity, 0) for load in loads)
