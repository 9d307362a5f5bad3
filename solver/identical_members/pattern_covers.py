"""Covers of weights by patterns: sets of weights that one member can receive in a capacity.

The cutting stock relaxation of Gilmore and Gomory (1961). All patterns are listed. The linear
program contains only some of them; its dual prices select further ones. A dive repeatedly solves
the relaxation, and fixes the pattern that is used most (Joncour et al., "Column generation based
primal heuristics", 2010).
"""

import operator
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from kassay.solver.identical_members.packing_heuristics import Packing
from kassay.solver.limits import SearchBudget, call_until_stopped
from kassay.solver.problem import UNREACHABLE, Arithmetic, Ints

_MAX_PATTERNS = 400_000
_MAX_STEPS = 4_000_000  # of the list of patterns
_STEPS_PER_CHECK = 4096
_WORK_PER_STEP = 4e-7
_MAX_PRICE = 2**40
_TOLERANCE = 1e-7
_FIRST_PER_CLASS = 3  # patterns of the first linear program, per weight class
_NEW_PATTERNS = 400  # per linear program
# Work of a linear program, measured: per program, and per iteration and entry of the matrix.
_WORK_PER_PROGRAM, _WORK_PER_ENTRY = 3e-3, 1e-8
_INTEGRAL = 1 - 1e-6


@dataclass(frozen=True, slots=True)
class WeightClasses:
    """Distinct weights in descending order, and the number of partitions with each weight."""

    sizes: tuple[int, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, weights: Sequence[int]) -> "WeightClasses":
        """Count equal weights in a list; weights of 0 are ignored."""
        counted = Counter(weight for weight in weights if weight)
        sizes = tuple(sorted(counted, reverse=True))
        return cls(sizes, tuple(counted[size] for size in sizes))


Pattern = tuple[int, ...]
"""Indices of weight classes, ascending, with repetition."""


def list_patterns(
    classes: WeightClasses, least: int, capacity: int, budget: SearchBudget
) -> list[Pattern] | None:
    """List all maximal patterns with a load from ``least`` to ``capacity``, depth first.

    No further weight fits into a maximal pattern. In a cover of all weights by patterns, each
    pattern can be replaced by a maximal one. Return None if there are too many, or no work is left.
    """
    sizes, left = classes.sizes, list(classes.counts)
    negative = [-size for size in sizes]  # ascending, for bisection
    loads = map(operator.mul, sizes, classes.counts)
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


@dataclass(frozen=True, slots=True)
class FractionalCover:
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

    Parameters
    ----------
    held
        Number of weights per pattern (row) and weight class (column).
    counts
        Number of weights to cover per class. A pattern must exist for each of them.
    active
        Patterns of the first linear program; the result may have more.

    Returns
    -------
    FractionalCover or None
        None if the work is done before the first linear program is solved.
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
        self, classes: WeightClasses, members: int, capacity: int, patterns: Sequence[Pattern]
    ) -> None:
        self.classes, self.members, self.capacity = classes, members, capacity
        lengths = [len(pattern) for pattern in patterns]
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        columns = np.fromiter(chain.from_iterable(patterns), np.int64, int(starts[-1]))
        shape = (len(patterns), len(classes.sizes))
        self.held = csr_matrix(
            (np.ones(len(columns), dtype=np.int64), columns, starts), shape=shape
        )
        self.held.sum_duplicates()

    @classmethod
    def within(
        cls, classes: WeightClasses, members: int, capacity: int, budget: SearchBudget
    ) -> "PatternCovers | None":
        """List the patterns within a capacity. Return None if there are too many."""
        free = members * capacity - sum(map(operator.mul, classes.sizes, classes.counts))
        patterns = (
            [] if free < 0 else list_patterns(classes, max(capacity - free, 0), capacity, budget)
        )
        return None if patterns is None else cls(classes, members, capacity, patterns)

    def are_refuted(self, budget: SearchBudget) -> bool:
        """Return whether integer prices prove that no cover exists."""
        if not self.classes.sizes:
            return False
        if not self.held.getnnz(axis=0).all():
            return True
        counts, none = np.array(self.classes.counts), np.zeros(0, dtype=np.int64)
        cover = cover_fractionally(self.held, counts, none, self.members, budget)
        return cover is not None and cover.is_refuted

    def dive(self, budget: SearchBudget, rng: np.random.Generator, noise: float) -> Packing | None:
        """Search for a cover by rounding fractional covers; return the weights per member.

        ``noise`` is the greatest addition to the use of a pattern.
        """
        if not self.held.shape[0] or not Arithmetic.INT64.represents(self.members * self.capacity):
            return None
        return _PatternDive(self, rng, noise).run(budget)


class _PatternDive:
    """Search for a cover of all weights, one pattern per member, without backtracking."""

    def __init__(self, covers: PatternCovers, rng: np.random.Generator, noise: float) -> None:
        self.rng, self.noise = rng, noise
        self.held, self.capacity, self.members = covers.held, covers.capacity, covers.members
        self.sizes, self.left = np.array(covers.classes.sizes), np.array(covers.classes.counts)
        # Capacity that may remain free.
        self.free = self.members * self.capacity - int(self.left @ self.sizes)
        self.active = np.zeros(0, dtype=np.int64)
        self.packing: Packing = []

    def run(self, budget: SearchBudget) -> Packing | None:
        """Return the weights per member, or None if the dive fails or the work is done."""
        while self.left.any():
            self._remove_useless_patterns()
            if not self.held[:, self.left > 0].getnnz(axis=0).all():
                return None
            cover = cover_fractionally(self.held, self.left, self.active, self.members, budget)
            if cover is None or cover.is_refuted:
                return None
            self.active = cover.active
            self._fix(cover)
        return self.packing

    def _remove_useless_patterns(self) -> None:
        """Limit patterns to the weights that are left, and remove those with too much space."""
        held = self.held
        data = np.minimum(held.data, self.left[held.indices])
        held = csr_matrix((data, held.indices, held.indptr), shape=held.shape)
        load = held @ self.sizes
        useful = (load >= self.capacity - self.free) & (load > 0)
        self.held = held[useful]
        self.held.eliminate_zeros()
        number = np.cumsum(useful) - 1
        self.active = number[self.active[useful[self.active]]]

    def _fix(self, cover: FractionalCover) -> None:
        """Give patterns that are used at least once, or the one used most, to members."""
        whole = np.flatnonzero(cover.uses >= _INTEGRAL)
        if not len(whole):
            chance = self.rng.random(len(cover.uses)) * self.noise
            whole = np.array([int((cover.uses + chance * (cover.uses > 0)).argmax())])
        for at in whole.tolist():
            for _ in range(max(1, int(cover.uses[at] + 1 - _INTEGRAL))):
                self._take(int(cover.active[at]))

    def _take(self, pattern: int) -> None:
        """Give the weights of a pattern that are left to a member, if enough capacity remains."""
        row = self.held[pattern]
        taken = np.minimum(row.data, self.left[row.indices])
        load = int(taken @ self.sizes[row.indices])
        if load and self.members and self.capacity - load <= self.free:
            self.left[row.indices] -= taken
            self.free -= self.capacity - load
            self.members -= 1
            self.packing.append(np.repeat(self.sizes[row.indices], taken).tolist())
