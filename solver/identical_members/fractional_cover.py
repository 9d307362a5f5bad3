"""Fractional cover of weights by patterns, and dives that round fractional covers.

The cutting stock relaxation of Gilmore and Gomory (1961). All patterns are listed. The linear
program contains only some of them; its dual prices select further ones. A dive repeatedly solves
the relaxation, and fixes the pattern that is used most (Joncour et al., "Column generation based
primal heuristics", 2010).
"""

import operator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from kassay.solver.identical_members.packing_heuristics import Packing
from kassay.solver.limits import SearchBudget, call_until_stopped
from kassay.solver.number_ranges import UNREACHABLE
from kassay.solver.problem import Ints

_MAX_PRICE = 2**40
_TOLERANCE = 1e-7
_MAX_ITERATIONS = 100_000  # of a linear program
_WORK_PER_PATTERN = 2e-5  # of a linear program
_FIRST_PER_CLASS = 3  # patterns of the first linear program, per weight class
_NEW_PATTERNS = 400  # per linear program
_INTEGRAL = 1 - 1e-6


@dataclass(frozen=True, slots=True)
class FractionalCover:
    """Fractional uses of some patterns that cover all weights, and integer prices of weights.

    A cover needs at least ``total / most`` patterns.
    """

    active: Ints  # patterns of the linear program
    uses: NDArray[np.float64]  # per active pattern
    pattern_prices: Ints  # of all patterns
    total: int  # price of all weights together

    @property
    def most(self) -> int:
        """Return the price of the most expensive pattern."""
        return int(self.pattern_prices.max(initial=0))

    def needs_more_than(self, members: int) -> bool:
        """Return whether the prices prove that a cover needs more than ``members`` patterns."""
        return self.total > members * self.most

    def useful(self, members: int) -> NDArray[np.bool_]:
        """Return, per pattern, whether a cover of ``members`` patterns may contain it.

        If it did, the other patterns would have to cover the rest of the price.
        """
        return self.pattern_prices >= self.total - (members - 1) * self.most


def cover_fractionally(
    held: csr_matrix, counts: Ints, active: Ints, members: int, budget: SearchBudget
) -> FractionalCover | None:
    """Minimise the number of patterns of a fractional cover, by column generation.

    Stop early if the prices prove that ``members`` patterns are too few.

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
        None if the time is up before the first linear program is solved.
    """
    wanted = np.flatnonzero(counts)
    # The price of a pattern must fit 64 bits.
    scale = min(_MAX_PRICE, UNREACHABLE // max(int(held.sum(axis=1).max()), 1))
    active = np.union1d(active, _first_patterns(held, wanted))
    found = None
    while True:
        search = partial(
            linprog,
            np.ones(len(active)),
            A_ub=-held[active][:, wanted].T,
            b_ub=-counts[wanted].astype(np.float64),
            method="highs",
            options=_options(budget),
        )
        result = call_until_stopped(search, budget.limits.stop)
        budget.spend(_WORK_PER_PATTERN * len(active))
        if result is None or result.status != 0:
            return found
        prices = np.zeros(held.shape[1], dtype=np.int64)
        prices[wanted] = np.rint((-result.ineqlin.marginals).clip(0, 1) * scale)
        value = held @ prices
        total = sum(map(operator.mul, prices.tolist(), counts.tolist()))
        found = FractionalCover(active, result.x, value, total)
        better = np.flatnonzero(value > scale * (1 + _TOLERANCE))
        following = np.union1d(active, better[np.argsort(-value[better])[:_NEW_PATTERNS]])
        if len(following) == len(active) or found.needs_more_than(members) or not budget.has_work:
            return found
        active = following


def _options(budget: SearchBudget) -> dict[str, float]:
    """Return the limits of the linear program."""
    return {"time_limit": max(budget.seconds, 0.01), "maxiter": _MAX_ITERATIONS}


def _first_patterns(held: csr_matrix, wanted: Ints) -> Ints:
    """Select some patterns of each wanted class."""
    by_class = held[:, wanted].tocsc()
    chosen = [
        np.linspace(start, end - 1, _FIRST_PER_CLASS).astype(np.int64)
        for start, end in zip(by_class.indptr[:-1], by_class.indptr[1:], strict=True)
    ]
    return np.unique(by_class.indices[np.concatenate(chosen)]).astype(np.int64)


@dataclass
class PatternDive:
    """Search for a cover of all weights, one pattern per member, without backtracking."""

    held: csr_matrix  # number of weights per pattern (row) and weight class (column)
    sizes: Ints  # weight per class
    left: Ints  # number of weights per class that no member has yet
    members: int  # members without a pattern
    capacity: int
    rng: np.random.Generator
    packing: Packing = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.free = self.members * self.capacity - int(self.left @ self.sizes)
        self.active = np.zeros(0, dtype=np.int64)

    def run(self, budget: SearchBudget, noise: float) -> Packing | None:
        """Return the weights per member, or None if the dive fails or the time is up.

        ``free`` is the capacity that may remain free. ``noise`` is the greatest addition to the
        use of a pattern.
        """
        while self.left.any():
            self._remove_useless_patterns()
            if not budget.has_work or not self.held[:, self.left > 0].getnnz(axis=0).all():
                return None
            cover = cover_fractionally(self.held, self.left, self.active, self.members, budget)
            if cover is None or cover.needs_more_than(self.members):
                return None
            self.active = cover.active
            self._fix(cover, noise)
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

    def _fix(self, cover: FractionalCover, noise: float) -> None:
        """Give patterns that are used at least once, or the one used most, to members."""
        whole = np.flatnonzero(cover.uses >= _INTEGRAL)
        if not len(whole):
            chance = self.rng.random(len(cover.uses)) * noise
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
