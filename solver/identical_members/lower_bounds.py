"""Lower bounds on the maximum load of identical members, without search.

Sources: Dell'Amico and Martello, "Optimal scheduling of tasks on identical parallel
processors", ORSA Journal on Computing 7(2), 1995; Haouari and Jemmali, "Tight bounds for the
identical parallel machine-scheduling problem", ITOR 15(6), 2008.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

_MAX_SUM_BITS = 4_000_000
_MAX_SUM_WORK = 40_000_000
_MAX_SHARED = 100_000
_MAX_DIVISORS = 3
_MAX_RAISES = 100


def makespan_lower_bound(weights: Sequence[int], members: int) -> int:
    """Return a lower bound on the maximum load, from weights in descending order.

    It is the greatest of the mean load, the greatest weight, the sum of the least weights that
    must share a member, the least capacity for which counting finds enough members, and the least
    capacity for which members with multiples of a frequent weight have enough space.
    """
    total = sum(weights)
    if not total:
        return 0
    low = max(-(-total // members), weights[0], shared_weights_bound(weights, members).bound)
    high = max(low, 2 * weights[0])
    ascending = list(reversed(weights))
    sums = list(accumulate(ascending, initial=0))
    if _members_bound(ascending, sums, high) > members:
        return high
    while low < high:
        middle = (low + high) // 2
        if _members_bound(ascending, sums, middle) > members:
            low = middle + 1
        else:
            high = middle
    return next_reachable_load(weights, _common_weight_bound(weights, members, low))


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


class SharedWeights(NamedTuple):
    """Lower bound on the makespan: some members together have many of the heaviest weights."""

    bound: int
    first: int  # number of heaviest weights considered
    held: int  # minimum number of these weights that ``members`` members have together
    members: int


def shared_weights_bound(weights: Sequence[int], members: int) -> SharedWeights:
    """Bound the load of members that share the heaviest weights (Haouari and Jemmali).

    Of the first ``k * members + r`` weights, some ``j`` members have at least
    ``j * k + min(j, r)``.
    """
    sums = list(accumulate(weights, initial=0))
    step = max(1, -(-len(weights) * members // _MAX_SHARED))
    best = SharedWeights(0, 0, 0, 0)
    for count in [*range(members + 1, len(weights), step), len(weights)]:
        each, more = divmod(count, members)
        for some in {1, more, members - 1} if step > 1 else range(1, members):
            held = some * each + min(some, more)
            if some and held <= count:
                bound = -(-(sums[count] - sums[count - held]) // some)
                best = max(best, SharedWeights(bound, count, held, some))
    return best


def _members_bound(ascending: Sequence[int], sums: Sequence[int], capacity: int) -> int:
    """Return a lower bound on the number of members needed (Martello and Toth's bound L2).

    For a threshold, weights above ``capacity - threshold`` need a member of their own. Other
    weights above half of the capacity need one each, too. Weights from the threshold on fill
    what these leave.
    """
    count = len(ascending)
    half = bisect_right(ascending, capacity // 2)
    best = count - half
    thresholds = ascending[:half]
    step = max(1, len(thresholds) // 2000)
    for threshold in thresholds[::step]:
        alone = bisect_right(ascending, capacity - threshold)
        first = bisect_left(ascending, threshold)
        single = count - max(alone, half)
        paired = max(alone, half) - half
        free = paired * capacity - (sums[half + paired] - sums[half])
        rest = sums[half] - sums[first]
        best = max(best, single + paired + max(0, -(-(rest - free) // capacity)))
    return best


def next_reachable_load(weights: Sequence[int], load: int) -> int:
    """Return the minimum subset sum of the weights that is at least ``load``.

    The maximum load is such a sum. Large inputs return ``load`` itself.
    """
    bits = 2 * load + 1
    if bits > _MAX_SUM_BITS or bits // 64 * len(weights) > _MAX_SUM_WORK:
        return load
    mask = (1 << bits) - 1
    sums = 1
    for weight in (weight for weight in weights if weight < bits):
        sums |= (sums << weight) & mask
    above = sums >> load
    return load if not above else load + (above & -above).bit_length() - 1
