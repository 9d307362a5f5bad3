"""Minimise the maximum load of members that may all receive the same partitions (P||Cmax).

Bounds and heuristics: Dell'Amico and Martello, "Optimal scheduling of tasks on identical parallel
processors", ORSA Journal on Computing 7(2), 1995; Haouari and Jemmali, "Tight bounds for the
identical parallel machine-scheduling problem", ITOR 15(6), 2008; Haouari, Gharbi, Jemmali, same
title, ITOR 13(6), 2006.

A capacity is refuted by the cutting stock relaxation of Gilmore and Gomory (1961). A pattern is a
set of weights that one member can receive within the capacity. All patterns are listed. The linear
program contains only some of them; its dual prices select further ones. A dive repeatedly solves
the relaxation, and fixes the pattern that is used most (Joncour et al., "Column generation based
primal heuristics", 2010).
"""

import operator
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from math import inf
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import csr_matrix

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.limits import SearchBudget, call_until_stopped
from kassay.solver.problem import (
    UNREACHABLE,
    Arithmetic,
    Ints,
    Placement,
    Problem,
    connected_components,
    positions_by_value,
)

Packing = list[list[int]]
"""Weights per member."""
Pattern = tuple[int, ...]
"""Indices of weight classes, ascending, with repetition."""

# Of the bounds: cases of members that share the heaviest weights, thresholds of counting, frequent
# weights, and steps by which one of them raises the bound.
_MAX_SHARED, _MAX_THRESHOLDS, _MAX_DIVISORS, _MAX_RAISES = 100_000, 2_000, 3, 100
_MAX_UNITS = 1_000_000
"""Precision of subset sums: a capacity has at most this many units."""
_MAX_BITS = 500_000_000  # of the subset sums of one member
# Work, measured: of a weight and of a bit in a subset sum.
_WORK_PER_WEIGHT, _WORK_PER_BIT = 6e-7, 8e-11
_WORK_PER_REFILL = 5e-5
_NOISE = (0.1, 0.3, 0.5)  # probabilities to skip a weight
_SIZES = (2, 3, 4, 5, 6, 8, 12, 20, 40)  # members that are refilled together
_MAX_WEIGHTS = 200  # of these members, unless two members have more
_SHORT_REFILL, _LONG_REFILL = 1_000, 20_000  # refills without success
_MANY_REFILLED = 8  # members that are filled together, at least, in a long search

_MAX_PATTERNS, _MAX_STEPS = 400_000, 4_000_000  # of the list of patterns
_STEPS_PER_CHECK, _WORK_PER_STEP = 4096, 4e-7
_MAX_PRICE, _TOLERANCE = 2**40, 1e-7
_FIRST_PER_CLASS = 3  # patterns of the first linear program, per weight class
_NEW_PATTERNS = 400  # per linear program
# Work of a linear program, measured: per program, and per iteration and entry of the matrix.
_WORK_PER_PROGRAM, _WORK_PER_ENTRY = 3e-3, 1e-8
_INTEGRAL = 1 - 1e-6
_KEPT_COVERS = 2  # capacities
_DIVES, _MAX_NOISE = 3, 0.1  # per capacity, and of a dive

# Shares of the work left.
_FILL_SHARE, _BOUND_SHARE, _DIVE_SHARE, _REFILL_SHARE = 0.3, 0.4, 0.4, 0.3
_MAX_MATCHED_MEMBERS = 400


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


def refill(
    packing: Packing, filling: SubsetFilling, max_failures: int, smallest: int = 2
) -> Packing:
    """Fill a few random members again, while the overload does not increase.

    The search ends if no member is overloaded, no work is left, or too many attempts fail. At least
    ``smallest`` members are filled together, unless their weights are too many.
    """
    rng, capacity = filling.rng, filling.capacity
    packing = list(packing)
    loads = list(map(sum, packing))
    each = max(sum(map(len, packing)) // len(packing), 1)
    most = min(max(_MAX_WEIGHTS // each, 2), len(packing))
    sizes = [size for size in _SIZES if smallest <= size <= most] or [most]
    may_continue = filling.budget.counted(_WORK_PER_REFILL + _WORK_PER_WEIGHT * len(packing))
    failures = 0
    while failures < max_failures and may_continue():
        overloaded = [at for at, load in enumerate(loads) if load > capacity]
        if not overloaded:
            break
        chosen = rng.sample(range(len(packing)), rng.choice(sizes))
        first = rng.choice(overloaded)
        if first not in chosen:
            chosen[0] = first
        weights = sorted((weight for at in chosen for weight in packing[at]), reverse=True)
        new = filling.fill(weights, len(chosen), rng.choice(_NOISE))
        if new is None:
            break
        before, after = [loads[at] for at in chosen], list(map(sum, new))
        change = _overload(after, capacity) - _overload(before, capacity)
        failures = 0 if change < 0 else failures + 1
        if change <= 0:
            for at, own, load in zip(chosen, new, after, strict=True):
                packing[at], loads[at] = own, load
    return packing


def _overload(loads: Sequence[int], capacity: int) -> int:
    return sum(max(load - capacity, 0) for load in loads)


def list_patterns(
    classes: Mapping[int, int], least: int, capacity: int, budget: SearchBudget
) -> list[Pattern] | None:
    """List all maximal patterns with a load from ``least`` to ``capacity``, depth first.

    No further weight fits into a maximal pattern. In a cover of all weights by patterns, each
    pattern can be replaced by a maximal one. Return None if there are too many, or no work is left.

    ``classes`` is the number of partitions per weight, heaviest first.
    """
    sizes, left = list(classes), list(classes.values())
    negative = [-size for size in sizes]  # ascending, for bisection
    loads = map(operator.mul, sizes, left)
    after = list(accumulate(reversed([*loads])))[::-1]  # total of this and lighter classes
    found: list[Pattern] = []
    chosen: list[int] = []
    load, at, end = 0, 0, len(sizes)
    for step in range(_MAX_STEPS):
        if step % _STEPS_PER_CHECK == 0:
            if not budget.has_work:
                return None
            budget.spend(_STEPS_PER_CHECK * _WORK_PER_STEP)
        at = bisect_left(negative, load - capacity, at)
        while at < end and not left[at]:
            at += 1
        if at < end and load + after[at] >= least:
            chosen.append(at)
            left[at] -= 1
            load += sizes[at]
            continue
        if at == end and load >= least:
            lightest = next((one for one in reversed(range(end)) if left[one]), None)
            if lightest is None or load + sizes[lightest] > capacity:
                found.append(tuple(chosen))
        if len(found) > _MAX_PATTERNS:
            return None
        if not chosen:
            return found
        at = chosen.pop()
        left[at] += 1
        load -= sizes[at]
        at += 1
    return None


class FractionalCover(NamedTuple):
    """Fractional uses of some patterns that cover all weights."""

    active: Ints  # patterns of the linear program
    uses: NDArray[np.float64]  # per active pattern
    is_refuted: bool  # integer prices prove that a cover needs more patterns than members


def cover_fractionally(
    held: csr_matrix, counts: Ints, active: Ints, members: int, budget: SearchBudget
) -> FractionalCover | None:
    """Minimise the number of patterns of a fractional cover, by column generation.

    Stop early if integer prices, the rounded dual values, prove that ``members`` patterns are too
    few: all weights together cost more than the most expensive pattern per member.

    Return None if the work is done before the first linear program is solved.

    Parameters
    ----------
    held
        Number of weights per pattern (row) and weight class (column).
    counts
        Number of weights to cover per class. A pattern must exist for each of them.
    active
        Patterns of the first linear program; the result may have more.
    """
    wanted = np.flatnonzero(counts)
    # The price of a pattern must fit 64 bits.
    scale = min(_MAX_PRICE, UNREACHABLE // max(int(held.sum(axis=1).max()), 1))
    active = np.union1d(active, _first_patterns(held, wanted))
    found = None
    while budget.has_work:
        matrix = held[active][:, wanted].T
        search = partial(
            linprog,
            np.ones(len(active)),
            A_ub=-matrix,
            b_ub=-counts[wanted].astype(np.float64),
            method="highs",
            options={} if budget.seconds == inf else {"time_limit": budget.seconds},
        )
        result = call_until_stopped(search, budget.limits.stop)
        if result is None or result.status != 0:
            return found
        budget.spend(_WORK_PER_PROGRAM + _WORK_PER_ENTRY * matrix.nnz * result.nit)
        prices = np.zeros(held.shape[1], dtype=np.int64)
        prices[wanted] = np.rint((-result.ineqlin.marginals).clip(0, 1) * scale)
        value = held @ prices
        total = sum(map(operator.mul, prices.tolist(), counts.tolist()))
        is_refuted = total > members * int(value.max(initial=0))
        found = FractionalCover(active, result.x, is_refuted)
        better = np.flatnonzero(value > scale * (1 + _TOLERANCE))
        following = np.union1d(active, better[np.argsort(-value[better])[:_NEW_PATTERNS]])
        if len(following) == len(active) or is_refuted:
            return found
        active = following
    return found


def _first_patterns(held: csr_matrix, wanted: Ints) -> Ints:
    """Select some patterns of each wanted class."""
    by_class = held[:, wanted].tocsc()
    chosen = [
        np.linspace(start, end - 1, _FIRST_PER_CLASS).astype(np.int64)
        for start, end in zip(by_class.indptr[:-1], by_class.indptr[1:], strict=True)
    ]
    return np.unique(by_class.indices[np.concatenate(chosen)]).astype(np.int64)


class PatternCovers:
    """Covers of all weights by patterns within a capacity, one pattern per member.

    A pattern is left out if its free capacity exceeds the free capacity of all members together.
    """

    def __init__(
        self, classes: Mapping[int, int], members: int, capacity: int, patterns: Sequence[Pattern]
    ) -> None:
        self.sizes, self.counts = np.array([*classes]), np.array([*classes.values()])
        self.members, self.capacity = members, capacity
        lengths = [len(pattern) for pattern in patterns]
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        columns = np.fromiter(chain.from_iterable(patterns), np.int64, int(starts[-1]))
        shape = (len(patterns), len(classes))
        self.held = csr_matrix(
            (np.ones(len(columns), dtype=np.int64), columns, starts), shape=shape
        )
        self.held.sum_duplicates()

    @classmethod
    def within(
        cls, classes: Mapping[int, int], members: int, capacity: int, budget: SearchBudget
    ) -> "PatternCovers | None":
        """List the patterns within a capacity. Return None if there are too many."""
        free = members * capacity - sum(map(operator.mul, classes, classes.values()))
        patterns = (
            [] if free < 0 else list_patterns(classes, max(capacity - free, 0), capacity, budget)
        )
        return None if patterns is None else cls(classes, members, capacity, patterns)

    def are_refuted(self, budget: SearchBudget) -> bool:
        """Return whether integer prices prove that no cover exists."""
        if not len(self.counts):
            return False
        if not self.held.getnnz(axis=0).all():
            return True
        none = np.zeros(0, dtype=np.int64)
        cover = cover_fractionally(self.held, self.counts, none, self.members, budget)
        return cover is not None and cover.is_refuted

    def dive(self, budget: SearchBudget, rng: np.random.Generator, noise: float) -> Packing | None:
        """Search for a cover by rounding fractional covers; return the weights per member.

        ``noise`` is the greatest addition to the use of a pattern. The dive does not backtrack:
        return None if it fails, or if the work is done.
        """
        held, left, members = self.held, self.counts.copy(), self.members
        if not held.shape[0] or not Arithmetic.INT64.represents(members * self.capacity):
            return None
        free = members * self.capacity - int(left @ self.sizes)  # capacity that may remain free
        active = np.zeros(0, dtype=np.int64)
        packing: Packing = []
        while left.any():
            held, active = self._useful_patterns(held, active, left, self.capacity - free)
            if not held[:, left > 0].getnnz(axis=0).all():
                return None
            cover = cover_fractionally(held, left, active, self.members - len(packing), budget)
            if cover is None or cover.is_refuted:
                return None
            active = cover.active
            for pattern in _chosen_patterns(cover, rng, noise):
                row = held[pattern]
                taken = np.minimum(row.data, left[row.indices])
                load = int(taken @ self.sizes[row.indices])
                if load and len(packing) < members and self.capacity - load <= free:
                    left[row.indices] -= taken
                    free -= self.capacity - load
                    packing.append(np.repeat(self.sizes[row.indices], taken).tolist())
        return packing

    def _useful_patterns(
        self, held: csr_matrix, active: Ints, left: Ints, least: int
    ) -> tuple[csr_matrix, Ints]:
        """Limit patterns to the weights that are left, and remove those with a load below a limit.

        Return the patterns, and the new numbers of those in the linear program.
        """
        data = np.minimum(held.data, left[held.indices])
        held = csr_matrix((data, held.indices, held.indptr), shape=held.shape)
        load = held @ self.sizes
        useful = (load >= least) & (load > 0)
        number = np.cumsum(useful) - 1
        held = held[useful]
        held.eliminate_zeros()
        return held, number[active[useful[active]]]


def _chosen_patterns(
    cover: FractionalCover, rng: np.random.Generator, noise: float
) -> Iterator[int]:
    """Yield the patterns that are used at least once, as often as used, or the one used most."""
    whole = np.flatnonzero(cover.uses >= _INTEGRAL)
    if not len(whole):
        chance = rng.random(len(cover.uses)) * noise
        whole = np.array([int((cover.uses + chance * (cover.uses > 0)).argmax())])
    for at in whole.tolist():
        yield from [int(cover.active[at])] * max(1, int(cover.uses[at] + 1 - _INTEGRAL))


@dataclass
class MakespanSearch:
    """Search for the minimum makespan; it improves a bound and a packing step by step."""

    packing: Packing
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.weights = sorted(chain.from_iterable(self.packing), reverse=True)
        self.classes = Counter(weight for weight in self.weights if weight)
        self.members = len(self.packing)
        self.bound = makespan_lower_bound(self.weights, self.members)
        self.covers: dict[int, PatternCovers] = {}  # by capacity

    @property
    def makespan(self) -> int:
        """Return the maximum load of the best packing."""
        return makespan_of(self.packing)

    def run(self, budget: SearchBudget) -> None:
        """Improve the bound and the packing until they are equal or no work is left."""
        if self._may_continue(budget):
            self._fill(budget.part(_FILL_SHARE))
        if self._may_continue(budget) and self._raise_bound(budget.part(_BOUND_SHARE)):
            self._dive(budget.part(_DIVE_SHARE))
        self._refill(budget)

    def _may_continue(self, budget: SearchBudget) -> bool:
        return self.makespan > self.bound and budget.has_work

    def offer(self, packing: Packing | None) -> None:
        """Keep a packing if it is better than the current packing."""
        if packing is not None and makespan_of(packing) < self.makespan:
            self.packing = packing

    def _filling(self, capacity: int, budget: SearchBudget) -> SubsetFilling:
        return SubsetFilling(capacity, budget, Random(int(self.rng.integers(2**62))))  # noqa: S311

    def _fill(self, budget: SearchBudget) -> None:
        """Fill all members up to the bound, then some of them repeatedly."""
        filling = self._filling(self.bound, budget)
        if filling.may_fill(self.weights):
            filled = filling.fill(self.weights, self.members) or self.packing
            self.offer(filled)
            self.offer(refill(filled, filling, _SHORT_REFILL))

    def _raise_bound(self, budget: SearchBudget) -> bool:
        """Raise the bound while prices refute a capacity; return whether patterns are listed."""
        step = 1
        infeasible, feasible = self.bound - 1, self.makespan
        while infeasible + 1 < feasible and budget.has_work:
            middle = min(infeasible + step, (infeasible + feasible) // 2)
            covers = self._covers_within(middle, budget)
            if covers is None and middle == self.bound:
                return False
            if covers is not None and covers.are_refuted(budget):
                infeasible, step = middle, 2 * step
            else:
                feasible, step = middle, 1
        self.bound = max(self.bound, infeasible + 1)
        return True

    def _dive(self, budget: SearchBudget) -> None:
        """Search for a lower makespan by dives, with capacities from the lower bound upwards."""
        failed, step = self.bound - 1, 1
        while failed + 1 < self.makespan and budget.has_work:
            capacity = min(failed + step, (failed + self.makespan) // 2)
            covers = self._covers_within(capacity, budget)
            if covers is None:
                return
            noises = (_MAX_NOISE * attempt / _DIVES for attempt in range(_DIVES))
            dives = (covers.dive(budget, self.rng, noise) for noise in noises)
            packed = next((one for one in dives if one is not None), None)
            if packed is None:
                failed, step = capacity, 2 * step
            else:
                # Members without load, and the weights of 0, are in no pattern.
                packed += [[] for _ in range(self.members - len(packed))]
                packed[0].extend(weight for weight in self.weights if not weight)
                self.offer(packed)
                step = 1

    def _refill(self, budget: SearchBudget) -> None:
        """Refill members to reach the bound or, if this fails, loads above it."""
        smallest = min(_MANY_REFILLED, max(2, self.members // 8))
        self._refill_to(self.bound, budget.part(_REFILL_SHARE), _LONG_REFILL, smallest)
        parts, failures = 2, _SHORT_REFILL
        while self._may_continue(budget):
            target = self.makespan - max((self.makespan - self.bound) // parts, 1)
            self._refill_to(target, budget, failures, 2)
            if self.makespan <= target:
                parts = max(parts // 2, 1)
            elif target < self.makespan - 1:
                parts *= 2
            elif failures < _LONG_REFILL:
                failures *= 2
            else:
                return

    def _refill_to(
        self, target: int, budget: SearchBudget, max_failures: int, smallest: int
    ) -> None:
        """Refill at least some members at a time until all loads are within a target."""
        filling = self._filling(target, budget)
        if self._may_continue(budget) and filling.may_fill(self.weights):
            self.offer(refill(self.packing, filling, max_failures, smallest))

    def _covers_within(self, capacity: int, budget: SearchBudget) -> PatternCovers | None:
        """Return the covers within a capacity; the last ones are kept: listing takes long."""
        if capacity not in self.covers:
            found = PatternCovers.within(self.classes, self.members, capacity, budget)
            if found is None:
                return None
            self.covers[capacity] = found
            if len(self.covers) > _KEPT_COVERS:
                del self.covers[next(iter(self.covers))]
        return self.covers[capacity]


def minimise_makespan(
    problem: Problem, start: Placement, budget: SearchBudget
) -> tuple[Placement, int] | None:
    """Minimise the makespan, and return a placement and a lower bound.

    Return None if the members of a component are not identical. Components with a makespan below
    the bound of another one need no search.
    """
    parts = [part for part in connected_components(problem) if len(part[1])]
    for members, partitions in parts:
        sets = np.unique(problem.consumer_set[partitions]).tolist()
        if any(len(problem.consumer_sets[at]) < len(members) for at in sets):
            return None
    rng, searches = np.random.default_rng(budget.seed), []
    at_member = positions_by_value(start, problem.member_count)
    for members, _ in parts:
        packing = [problem.weight[at_member[member]].tolist() for member in members]
        searches.append(MakespanSearch(packing, rng))
    bound = max((search.bound for search in searches), default=0)
    placement = start.copy()
    for index, (search, (members, partitions)) in enumerate(zip(searches, parts, strict=True)):
        search.bound, before = bound, search.packing
        search.run(budget.part(1 / (len(parts) - index)))
        bound = search.bound
        if search.packing is not before:
            placement[partitions] = _place(problem, members, partitions, search.packing)
    return placement, bound


def _place(
    problem: Problem, members: Sequence[int], partitions: NDArray[np.intp], packing: Packing
) -> Placement:
    """Convert a packing of weights to a placement that keeps owned partitions where possible."""
    waiting: dict[tuple[int, int], list[int]] = {}
    for at, (weight, owner) in enumerate(
        zip(problem.weight[partitions].tolist(), problem.owner[partitions].tolist(), strict=True)
    ):
        waiting.setdefault((weight, owner), []).append(at)
    placed = np.full(len(partitions), NO_OWNER, dtype=np.int32)
    missing: dict[int, list[int]] = {}
    for member, weights in zip(_matched(waiting, members, packing), packing, strict=True):
        for weight in weights:
            own = waiting.get((weight, member))
            if own:
                placed[own.pop()] = member
            else:
                missing.setdefault(weight, []).append(member)
    left = np.flatnonzero(placed == NO_OWNER).tolist()
    for at, weight in zip(left, problem.weight[partitions[left]].tolist(), strict=True):
        placed[at] = missing[weight].pop()
    return placed


def _matched(
    waiting: Mapping[tuple[int, int], Sequence[int]], members: Sequence[int], packing: Packing
) -> list[int]:
    """Match each list of weights to a member so that many partitions stay at their owners."""
    if len(members) > _MAX_MATCHED_MEMBERS or all(owner == NO_OWNER for _, owner in waiting):
        return list(members)
    kept = np.zeros((len(packing), len(members)))
    owned = {(weight, owner): len(own) for (weight, owner), own in waiting.items()}
    for row, weights in enumerate(packing):
        for weight, count in Counter(weights).items():
            kept[row] += [min(count, owned.get((weight, member), 0)) for member in members]
    rows, columns = linear_sum_assignment(kept, maximize=True)
    return [members[column] for _, column in sorted(zip(rows, columns, strict=True))]
