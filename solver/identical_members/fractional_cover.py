"""Fractional cover of weights by patterns, and prices that bound the patterns needed.

The cutting stock relaxation of Gilmore and Gomory (1961). All patterns are listed. The linear
program contains only some of them; its dual prices select further ones.
"""

import operator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from kassay.solver.identical_members.search_clock import SearchClock
from kassay.solver.limits import call_until_stopped
from kassay.solver.problem import Ints

# The price of a pattern must fit 64 bits.
_MAX_PRICE = 2**40
_MAX_PATTERN_PRICE = 2**62
_TOLERANCE = 1e-7
_FIRST_PER_CLASS = 3  # patterns of the first linear program, per weight class
_NEW_PATTERNS = 400  # per linear program


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
    held: csr_matrix, counts: Ints, active: Ints, members: int, clock: SearchClock
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
    scale = min(_MAX_PRICE, _MAX_PATTERN_PRICE // max(int(held.sum(axis=1).max()), 1))
    active = np.union1d(active, _first_patterns(held, wanted))
    found = None
    while True:
        search = partial(
            linprog,
            np.ones(len(active)),
            A_ub=-held[active][:, wanted].T,
            b_ub=-counts[wanted].astype(np.float64),
            method="highs",
            options={"time_limit": max(clock.seconds, 0.01)},
        )
        result = call_until_stopped(search, clock.stop)
        if result is None or result.status != 0:
            return found
        prices = np.zeros(held.shape[1], dtype=np.int64)
        prices[wanted] = np.rint((-result.ineqlin.marginals).clip(0, 1) * scale)
        value = held @ prices
        total = sum(map(operator.mul, prices.tolist(), counts.tolist()))
        found = FractionalCover(active, result.x, value, total)
        better = np.flatnonzero(value > scale * (1 + _TOLERANCE))
        following = np.union1d(active, better[np.argsort(-value[better])[:_NEW_PATTERNS]])
        if len(following) == len(active) or found.needs_more_than(members) or not clock.has_time:
            return found
        active = following


def _first_patterns(held: csr_matrix, wanted: Ints) -> Ints:
    """Select some patterns of each wanted class."""
    by_class = held[:, wanted].tocsc()
    chosen = [
        np.linspace(start, end - 1, _FIRST_PER_CLASS).astype(np.int64)
        for start, end in zip(by_class.indptr[:-1], by_class.indptr[1:], strict=True)
    ]
    return np.unique(by_class.indices[np.concatenate(chosen)]).astype(np.int64)
