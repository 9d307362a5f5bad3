"""Minimise the maximum load of members that may all receive the same partitions (P||Cmax).

Bounds and heuristics: Dell'Amico and Martello, "Optimal scheduling of tasks on identical parallel
processors", ORSA Journal on Computing 7(2), 1995; Haouari and Jemmali, "Tight bounds for the
identical parallel machine-scheduling problem", ITOR 15(6), 2008; Haouari, Gharbi, Jemmali, same
title, ITOR 13(6), 2006.

A capacity is refuted by the cutting stock relaxation of Gilmore and Gomory (1961). A pattern is a
set of weights that one member can receive within the capacity. All patterns are listed. The linear
program contains only some of them; its dual prices select further ones. An integer program over
these gives packings (restricted master heuristic: Joncour et al., "Column generation based primal
heuristics", 2010).
"""

import operator
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, linprog, milp
from scipy.sparse import csr_matrix

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.limits import SearchBudget, call_until_stopped
from kassay.solver.problem import (
    UNREACHABLE,
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

_MAX_THRESHOLDS = 2_000  # of counting
_MAX_UNITS = 1_000_000  # precision of subset sums: a capacity has at most this many units
_MAX_BITS = 500_000_000  # of the subset sums of one member
# Work, measured: of a weight and of a bit in a subset sum, and of a refill.
_WORK_PER_WEIGHT, _WORK_PER_BIT, _WORK_PER_REFILL = 6e-7, 8e-11, 5e-5
_NOISE = (0.1, 0.3, 0.5)  # probabilities to skip a weight
_SIZES = (2, 3, 4, 5, 6, 8, 12, 20, 40)  # members that are refilled together
_MAX_WEIGHTS = 200  # of these members, unless two members have more
_SHORT_REFILL, _LONG_REFILL = 1_000, 20_000  # refills without success

_MAX_PATTERNS, _MAX_STEPS = 400_000, 4_000_000  # of the list of patterns
_STEPS_PER_CHECK, _WORK_PER_STEP = 4096, 4e-7
_MAX_PRICE, _TOLERANCE = 2**40, 1e-7
_FIRST_PER_CLASS = 3  # patterns of the first linear program, per weight class
_NEW_PATTERNS = 400  # per linear program
# Work of a linear program, measured: per program, and per iteration and entry of the matrix.
_WORK_PER_PROGRAM, _WORK_PER_ENTRY = 3e-3, 1e-8
_NODES, _WORK_PER_PATTERN = 200, 5e-4  # of an integer program, as in movement_bound

# Shares of the work left.
_FILL_SHARE, _BOUND_SHARE = 0.3, 0.4
_MAX_MATCHED_MEMBERS = 400


def makespan_lower_bound(weights: Sequence[int], members: int) -> int:
    """Return a lower bound on the maximum load, from weights in descending order.

    It is the greatest of the mean load, the greatest weight, the sum of the lightest weights
    that must share a member, and the minimum capacity for which counting finds enough members.
    """
    low = max(-(-sum(weights) // members), weights[0], _shared_weights_bound(weights, members))
    ascending = weights[::-1]
    sums = list(accumulate(ascending, initial=0))
    # Counting finds enough members once two of the heaviest weights fit.
    capacities = range(low, max(low, 2 * weights[0]))
    return low + bisect_left(
        capacities, True, key=lambda one: _members_needed(ascending, sums, one) <= members
    )


def _shared_weights_bound(weights: Sequence[int], members: int) -> int:
    """Return a lower bound on the maximum load, from the heaviest weights.

    Of the first ``k * members + r`` weights, some ``j`` members have at least
    ``j * k + min(j, r)``. The bound is greatest for ``r`` or ``members - 1`` members, because
    the minimum sum of their weights is a convex function of the number of members.
    """
    sums = list(accumulate(weights, initial=0))
    best = 0
    for count in range(members + 1, len(weights) + 1):
        each, more = divmod(count, members)
        for some in filter(None, (more, members - 1)):
            shared = some * each + min(some, more)
            best = max(best, -(-(sums[count] - sums[count - shared]) // some))
    return best


def _members_needed(ascending: Sequence[int], sums: Sequence[int], capacity: int) -> int:
    """Return a lower bound on the number of members needed (Martello and Toth's bound L2).

    For a threshold, weights above ``capacity - threshold`` need a member of their own. Other
    weights above half of the capacity need one each, too. Weights from the threshold on fill
    what these leave.
    """
    half = bisect_right(ascending, capacity // 2)
    thresholds = ascending[:half]
    more = 0
    for threshold in thresholds[:: max(1, half // _MAX_THRESHOLDS)]:
        heavy = bisect_right(ascending, capacity - threshold)
        free = (heavy - half) * capacity - (sums[heavy] - sums[half])
        rest = sums[half] - sums[bisect_left(ascending, threshold)]
        more = max(more, -(-(rest - free) // capacity))
    return len(ascending) - half + more


def makespan_of(packing: Packing) -> int:
    """Return the maximum load of a packing."""
    return max(map(sum, packing), default=0)


@dataclass(frozen=True, slots=True)
class SubsetFilling:
    """Assign subsets of weights to members, one after the other, within a capacity.

    A subset with the greatest load prefers heavy weights, so that the last members receive many
    light ones. Sums are rounded up to units, to limit their number.
    """

    capacity: int
    budget: SearchBudget
    rng: Random

    def fill(self, weights: Sequence[int], members: int, noise: float = 0.0) -> Packing | None:
        """Assign weights in descending order; the last member receives all remaining weights.

        Return None if no work is left, or the subset sums need too much memory. A subset skips
        weights with the probability ``noise``.
        """
        if len(weights) * min(self.capacity, _MAX_UNITS) > _MAX_BITS:
            return None
        packing: Packing = []
        left = list(weights)
        for _ in range(members - 1):
            if not self.budget.has_work:
                return None
            own, left = self._fullest(left, noise)
            packing.append(own)
        return [*packing, left]

    def _fullest(self, weights: Sequence[int], noise: float) -> tuple[list[int], list[int]]:
        """Choose a subset with the heaviest weight and the maximum sum within the capacity."""
        own, rest = list(weights[:1]), weights[1:]
        unit = max(1, self.capacity // _MAX_UNITS)
        room = max(self.capacity - sum(own), 0) // unit
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


def refill(packing: Packing, filling: SubsetFilling, max_failures: int) -> Packing:
    """Reassign the weights of random members repeatedly to reduce the overload."""
    rng, capacity = filling.rng, filling.capacity
    packing = list(packing)
    loads = list(map(sum, packing))
    each = max(sum(map(len, packing)) // len(packing), 1)
    most = min(max(_MAX_WEIGHTS // each, 2), len(packing))
    sizes = [size for size in _SIZES if size <= most] or [most]
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
        after = list(map(sum, new))
        # The overload changes like the sum of loads that count as at least the capacity.
        change = sum(max(load, capacity) for load in after)
        change -= sum(max(loads[at], capacity) for at in chosen)
        failures = 0 if change < 0 else failures + 1
        if change <= 0:
            for at, own, load in zip(chosen, new, after, strict=True):
                packing[at], loads[at] = own, load
    return packing


def list_patterns(
    classes: Mapping[int, int], least: int, capacity: int, budget: SearchBudget
) -> list[Pattern] | None:
    """List all maximal patterns with a load from ``least`` to ``capacity``.

    No further weight fits into a maximal pattern. In a cover of all weights by patterns, each
    pattern can be replaced by a maximal one. Return None if there are too many, or no work is left.

    ``classes`` is the number of partitions per weight, heaviest first.
    """
    sizes, left = list(classes), list(classes.values())
    negative = [-size for size in sizes]  # ascending, for bisection
    # Total of this and lighter classes.
    after = list(accumulate(map(operator.mul, sizes[::-1], left[::-1])))[::-1]
    found: list[Pattern] = []
    chosen: list[int] = []
    load, at, end = 0, 0, len(sizes)
    may_continue = budget.counted(_STEPS_PER_CHECK * _WORK_PER_STEP)
    for step in range(_MAX_STEPS):
        is_stopped = step % _STEPS_PER_CHECK == 0 and not may_continue()
        if is_stopped or len(found) > _MAX_PATTERNS:
            return None
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
        if not chosen:
            return found
        at = chosen.pop()
        left[at] += 1
        load -= sizes[at]
        at += 1
    return None


class FractionalCover(NamedTuple):
    """Fractional solution of the cutting stock problem.

    ``patterns`` has the number of weights per pattern (row) and weight class (column).
    ``is_refuted`` states that each cover needs more patterns than members.
    """

    patterns: csr_matrix
    is_refuted: bool


def cover_fractionally(
    classes: Mapping[int, int], members: int, capacity: int, budget: SearchBudget
) -> FractionalCover | None:
    """Solve the fractional cutting stock problem; return None if it has too many patterns."""
    # Of all other members at their capacity, the rest is the least load of a pattern.
    least = sum(map(operator.mul, classes, classes.values())) - (members - 1) * capacity
    patterns = list_patterns(classes, max(least, 0), capacity, budget)
    if patterns is None:
        return None
    starts = np.cumsum([0, *map(len, patterns)])
    columns = np.fromiter(chain.from_iterable(patterns), np.int64)
    shape = len(patterns), len(classes)
    held = csr_matrix((np.ones_like(columns), columns, starts), shape)
    held.sum_duplicates()
    if not held.getnnz(axis=0).all():
        return FractionalCover(held, is_refuted=True)
    return generate_columns(held, [*classes.values()], members, budget)


def generate_columns(
    held: csr_matrix, counts: Sequence[int], members: int, budget: SearchBudget
) -> FractionalCover | None:
    """Solve the fractional cutting stock problem by column generation.

    Stop early if integer prices, the rounded dual values, prove that ``members`` patterns are too
    few: all weights together cost more than the most expensive pattern per member. Return None if
    no work is left. ``counts`` has the number of weights to cover per class; a pattern must exist
    for each of them.
    """
    # The price of a pattern must fit 64 bits.
    scale = min(_MAX_PRICE, UNREACHABLE // max(int(held.sum(axis=1).max()), 1))
    active = _first_patterns(held)
    while budget.has_work:
        matrix = held[active].T
        search = partial(
            linprog,
            np.ones(len(active)),
            A_ub=-matrix,
            b_ub=-np.array(counts, dtype=np.float64),
            method="highs",
            options={"time_limit": budget.seconds},
        )
        result = call_until_stopped(search, budget.limits.stop)
        if result is None or result.status != 0:
            return None
        budget.spend(_WORK_PER_PROGRAM + _WORK_PER_ENTRY * matrix.nnz * result.nit)
        prices = np.rint((-result.ineqlin.marginals).clip(0, 1) * scale).astype(np.int64)
        value = held @ prices
        total = sum(map(operator.mul, prices.tolist(), counts))
        is_refuted = total > members * int(value.max(initial=0))
        better = np.flatnonzero(value > scale * (1 + _TOLERANCE))
        following = np.union1d(active, better[np.argsort(-value[better])[:_NEW_PATTERNS]])
        if is_refuted or len(following) == len(active):
            return FractionalCover(held[active], is_refuted)
        active = following
    return None


def pack_patterns(
    patterns: csr_matrix, classes: Mapping[int, int], members: int, budget: SearchBudget
) -> Packing | None:
    """Find one pattern per member so that the patterns cover all weights."""
    count, left = patterns.shape[0], np.array([*classes.values()])
    sizes = np.array([*classes], dtype=object)
    search = partial(
        milp,
        np.ones(count),
        integrality=np.ones(count),
        bounds=Bounds(0, members),
        constraints=LinearConstraint(patterns.T, left, np.inf),
        options={"node_limit": _NODES, "time_limit": budget.seconds},
    )
    budget.spend(_WORK_PER_PATTERN * count)
    result = call_until_stopped(search, budget.limits.stop)
    if result is None or result.x is None:
        return None
    packing = []
    for row in np.repeat(np.arange(count), np.rint(result.x).astype(np.int64)).tolist():
        taken = np.minimum(patterns[row].toarray()[0], left)
        left -= taken
        packing.append(np.repeat(sizes, taken).tolist())
    is_valid = len(packing) <= members and not left.any()
    return packing + [[]] * (members - len(packing)) if is_valid else None


def _first_patterns(held: csr_matrix) -> Ints:
    by_class = held.tocsc()
    first, last = by_class.indptr[:-1], by_class.indptr[1:] - 1
    chosen = np.linspace(first, last, _FIRST_PER_CLASS).astype(np.int64)
    return np.unique(by_class.indices[chosen]).astype(np.int64)


@dataclass
class MakespanSearch:
    """Search that improves a packing and a lower bound on its makespan step by step."""

    packing: Packing
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.weights = sorted(chain.from_iterable(self.packing), reverse=True)
        self.classes = Counter(weight for weight in self.weights if weight)
        self.members = len(self.packing)
        self.bound = makespan_lower_bound(self.weights, self.members)

    @property
    def makespan(self) -> int:
        """Return the maximum load of the best packing."""
        return makespan_of(self.packing)

    def run(self, budget: SearchBudget) -> None:
        """Improve the packing and the bound until the makespan is proven or no work is left."""
        if self._may_continue(budget):
            self._fill(budget.part(_FILL_SHARE))
        if self._may_continue(budget):
            self._raise_bound(budget.part(_BOUND_SHARE))
        self._refill(budget)

    def _may_continue(self, budget: SearchBudget) -> bool:
        return self.makespan > self.bound and budget.has_work

    def offer(self, packing: Packing) -> None:
        """Keep a packing if it is better than the current packing."""
        self.packing = min(self.packing, packing, key=makespan_of)

    def _filling(self, capacity: int, budget: SearchBudget) -> SubsetFilling:
        return SubsetFilling(capacity, budget, Random(int(self.rng.integers(2**62))))  # noqa: S311

    def _fill(self, budget: SearchBudget) -> None:
        filling = self._filling(self.bound, budget)
        filled = filling.fill(self.weights, self.members) or self.packing
        self.offer(filled)
        self.offer(refill(filled, filling, _SHORT_REFILL))

    def _raise_bound(self, budget: SearchBudget) -> None:

        def not_refuted(capacity: int) -> int | None:
            cover = cover_fractionally(self.classes, self.members, capacity, budget)
            if cover is None:
                return capacity
            if cover.is_refuted:
                return None
            packing = pack_patterns(cover.patterns, self.classes, self.members, budget)
            if packing is not None:
                # The weights of 0 are in no pattern.
                self.offer([packing[0] + [0] * self.weights.count(0), *packing[1:]])
            return capacity

        self.bound = self._lowest_makespan(not_refuted, budget)

    def _lowest_makespan(
        self, makespan_within: Callable[[int], int | None], budget: SearchBudget
    ) -> int:
        """Return the lowest makespan that ``makespan_within`` does not exclude.

        ``makespan_within`` returns a makespan within a capacity, or None. Most solutions are close
        to the bound, so steps are short at first, and double.
        """
        excluded, found, step = self.bound - 1, self.makespan, 1
        while excluded + 1 < found and budget.has_work:
            capacity = min(excluded + step, (excluded + found) // 2)
            makespan = makespan_within(capacity)
            if makespan is None:
                excluded, step = capacity, 2 * step
            else:
                found, step = makespan, 1
        return excluded + 1

    def _refill(self, budget: SearchBudget) -> None:
        failures = _SHORT_REFILL
        while failures <= _LONG_REFILL and self._may_continue(budget):
            before = self.makespan
            self._lowest_makespan(partial(self._refill_within, budget, failures), budget)
            if self.makespan == before:
                failures *= 2

    def _refill_within(self, budget: SearchBudget, failures: int, capacity: int) -> int | None:
        filling = self._filling(capacity, budget)
        self.offer(refill(self.packing, filling, failures))
        return self.makespan if self.makespan <= capacity else None


def minimise_makespan(
    problem: Problem, start: Placement, budget: SearchBudget
) -> tuple[Placement, int]:
    """Minimise the makespan, and return a placement and a lower bound.

    Members of a component must be identical. Components with a makespan below the bound of another
    one need no search.
    """
    parts = [part for part in connected_components(problem) if len(part[1])]
    rng = np.random.default_rng(budget.seed)
    held = [problem.weight[at].tolist() for at in positions_by_value(start, problem.member_count)]
    searches = [MakespanSearch([held[member] for member in members], rng) for members, _ in parts]
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
    weights, owners = problem.weight[partitions].tolist(), problem.owner[partitions].tolist()
    owned = Counter(zip(weights, owners, strict=True))
    matched = zip(_matched(owned, members, packing), packing, strict=True)
    wanted = Counter((weight, member) for member, own in matched for weight in own)
    missing: dict[int, list[int]] = {weight: [] for weight in weights}
    for weight, member in (wanted - owned).elements():
        missing[weight].append(member)
    placed = np.empty(len(partitions), dtype=np.int32)
    for at, (weight, owner) in enumerate(zip(weights, owners, strict=True)):
        is_kept = wanted[weight, owner] > 0
        placed[at] = owner if is_kept else missing[weight].pop()
        wanted[weight, owner] -= is_kept
    return placed


def _matched(
    owned: Counter[tuple[int, int]], members: Sequence[int], packing: Packing
) -> list[int]:
    """Match lists of weights to members so that many partitions keep their owners."""
    if len(members) > _MAX_MATCHED_MEMBERS or all(owner == NO_OWNER for _, owner in owned):
        return list(members)
    kept = np.zeros((len(packing), len(members)))
    for row, weights in enumerate(packing):
        for weight, count in Counter(weights).items():
            kept[row] += [min(count, owned[weight, member]) for member in members]
    # The rows of a square matrix are returned in order.
    return [members[column] for column in linear_sum_assignment(kept, maximize=True)[1]]
