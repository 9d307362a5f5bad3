"""Prices by weight for handing partitions over, found by column generation within a box.

The best prices of single rows are many and their search swings wildly. Members know a
row they take by its weight, so prices that follow a line through a few weights lose
little, and a linear program over the patterns seen so far finds them: each pattern is a
cut, the knapsacks find the next ones (Dantzig and Wolfe, 1960; Gilmore and Gomory,
1961). Until patterns are plenty the program overshoots, so prices must stay in a box
around the best ones, which grows with success (Marsten, Hogan and Blankenship, 1975).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.weighted.exchange_knapsack import (
    NEVER,
    SCALE,
    Knapsacks,
    MemberExchange,
    Patterns,
)
from kassay.solver.weighted.subset_enumeration import Ints

Floats = NDArray[np.float64]

_KNOTS = 200
_LEAST_BOX, _MOST_BOX = 0.001, 4.0
_TOLERANCE = 0.01
# Steps in a row that raise nothing, after which the search gives up.
_VAIN = 30


@dataclass(frozen=True, slots=True)
class BoxPrices:
    """Integer prices of rows, times `SCALE`, and the bound that they prove, times it too."""

    rows: Ints
    bound: int


@dataclass
class ColumnGeneration:
    """A search for prices by weight, which keeps its patterns between grids.

    Parameters
    ----------
    knots
        Weights at which prices are free, ascending; between them prices are on a line.
    basis
        What the price at each knot adds to the price of each row, shape (rows, knots);
        orphans, which need not be dear to anybody, have knots of their own.
    centre
        Best prices at the knots so far.
    """

    exchange: MemberExchange
    knots: Floats = field(init=False)
    basis: Floats = field(init=False)
    centre: Floats = field(init=False)
    box: float = 0.5
    best: BoxPrices = field(init=False)
    owners: list[int] = field(init=False, default_factory=list)
    found: list[Patterns] = field(init=False, default_factory=list)
    seen: set[tuple[int, bytes]] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Lay out the knots, and start at the prices that counting amounts to."""
        problem = self.exchange.problem
        weight = problem.weight.astype(np.float64)
        self.knots = _knots(weight)
        count = len(self.knots)
        at = (np.searchsorted(self.knots, weight, side="right") - 1).clip(0, count - 2)
        part = (weight - self.knots[at]) / (self.knots[at + 1] - self.knots[at])
        orphan = problem.owner == NO_OWNER
        unit = np.where(orphan, max(float(np.mean(self.exchange.costs)), 1.0), self.exchange.costs)
        at = at + np.where(orphan, count, 0)
        rows = np.arange(problem.size)
        self.basis = np.zeros((problem.size, 2 * count))
        self.basis[rows, at] = (1 - part) * unit
        self.basis[rows, at + 1] = part * unit
        self.centre = np.repeat([1.0, 0.0], count)
        self.best = BoxPrices(np.zeros(problem.size, dtype=np.int64), 0)

    def climb(self, enough: int, go_on: Callable[[], bool]) -> None:
        """Raise the bound until it is enough, times `SCALE`, or prices are as good as they get."""
        self._stay()
        point, vain = self.centre, 0
        while vain < _VAIN and go_on() and self.best.bound <= enough:
            rows = np.rint((self.basis @ point).clip(0) * SCALE).astype(np.int64)
            solved = self.exchange.solve(rows)
            serious = solved.bound > self.best.bound
            vain = 0 if serious else vain + 1
            if serious:
                self.best, self.centre = BoxPrices(rows, solved.bound), point
            self._collect(solved)
            answer = self._program()
            if answer is None:
                return
            hoped, following = answer
            gain = hoped - self.best.bound / SCALE
            inside = self._is_inside(following)
            if serious:
                self.box = min(self.box * 1.5, _MOST_BOX)
            elif solved.bound / SCALE < self.best.bound / SCALE - 0.5 * gain:
                self.box = max(self.box * 0.6, _LEAST_BOX)
            if gain < _TOLERANCE:
                if inside or self.box >= _MOST_BOX:
                    return
                self.box = min(self.box * 3, _MOST_BOX)
            point = following

    def refine(self, exchange: MemberExchange) -> None:
        """Go on with a finer grid: patterns that it forbids are dropped, bounds start anew."""
        self.exchange = exchange
        kept = [
            (owner, pattern)
            for owner, pattern in zip(self.owners, self.found, strict=True)
            if exchange.holds(owner, pattern)
        ]
        self.owners, self.found = [owner for owner, _ in kept], [pattern for _, pattern in kept]
        self.best = BoxPrices(self.best.rows, 0)
        self.box = 0.1

    def _stay(self) -> None:
        for member in np.flatnonzero(self.exchange.room >= 0).tolist():
            self._add(member, np.zeros(self.exchange.problem.size, dtype=np.int8))

    def _collect(self, solved: Knapsacks) -> None:
        """Keep the best pattern of each member, and those of some amounts beside it."""
        least = solved.net.argmin(axis=1)
        price = solved.net.min(axis=1)
        wide = max(self.exchange.width // 8, 1)
        for part in range(4):
            amount = least
            if part:
                window = solved.net[:, (part - 1) * wide : part * wide]
                if not window.shape[1]:
                    continue
                amount = (part - 1) * wide + window.argmin(axis=1)
            patterns = self.exchange.patterns(solved, amount)
            net = np.take_along_axis(solved.net, amount[:, None], axis=1)[:, 0]
            for member in np.flatnonzero((net < price + SCALE // 2) & (net < NEVER)).tolist():
                self._add(member, patterns[member])

    def _add(self, member: int, pattern: Patterns) -> None:
        key = (member, pattern.tobytes())
        if key not in self.seen:
            self.seen.add(key)
            self.owners.append(member)
            self.found.append(pattern)

    def _program(self) -> tuple[float, Floats] | None:
        """Return the best bound that the patterns seen allow within the box, and its prices."""
        width, knots = self.exchange.problem.width, len(self.centre)
        found = np.array(self.found)
        orphans = self.exchange.problem.owner == NO_OWNER
        pattern = sparse.csr_matrix(found.astype(np.float64)) @ self.basis
        fees = (found > 0) @ self.exchange.fee.astype(np.float64)
        # Dual values are the prices; a column bounds them from above, its negative from below.
        rising = np.eye(knots)[:, :-1] - np.eye(knots)[:, 1:]
        rising = np.delete(rising, len(self.knots) - 1, axis=1)
        low, high = np.maximum(self.centre - self.box, 0), self.centre + self.box
        cost = np.concatenate([fees, high, -low, np.zeros(rising.shape[1])])
        linking = np.concatenate([pattern.T, np.eye(knots), -np.eye(knots), rising], axis=1)
        once = sparse.csr_matrix(
            (np.ones(len(found)), (self.owners, np.arange(len(found)))), (width, len(cost))
        )
        result = linprog(
            cost,
            A_eq=sparse.vstack([sparse.csr_matrix(linking), once], format="csc"),
            b_eq=np.concatenate([self.basis[orphans].sum(axis=0), np.ones(width)]),
            method="highs",
        )
        if result.status != 0:
            return None
        return float(result.fun), np.asarray(result.eqlin.marginals)[:knots].clip(low, high)

    def _is_inside(self, point: Floats) -> bool:
        low, high = self.centre - self.box, self.centre + self.box
        return bool(((point < high - 1e-9) & ((point > low + 1e-9) | (low <= 0))).all())


def _knots(weight: Floats) -> Floats:
    """Choose the weights at which prices are free: all, or where they are many, some."""
    each = np.unique(np.append(weight, 0.0))
    if len(each) == 1:
        return np.array([0.0, 1.0])
    if len(each) <= _KNOTS:
        return each
    top = float(each[-1])
    return np.concatenate([[0.0], np.geomspace(max(top / 50, 0.5), top, _KNOTS - 1)])
