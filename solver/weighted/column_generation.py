"""Column generation for partition prices by weight, stabilised by a box.

Prices of single partitions are many and unstable. Prices that are piecewise linear in the
weight lose little, and a linear program over the patterns found so far computes them: each
pattern is a cut, the knapsacks find the next ones (Dantzig and Wolfe, 1960; Gilmore and
Gomory, 1961). Prices stay in a box around the best ones, which grows after improvements
(Marsten, Hogan and Blankenship, 1975).
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Ints
from kassay.solver.weighted.knapsack_subproblems import (
    INFEASIBLE,
    SCALE,
    Knapsacks,
    MemberExchange,
    Pattern,
)

Floats = NDArray[np.float64]

_KNOTS = 200
_MIN_BOX, _MAX_BOX = 0.001, 4.0
_TOLERANCE = 0.01
# Consecutive rounds without a higher bound after which the search stops.
_MAX_FAILURES = 30


@dataclass(frozen=True, slots=True)
class MovementPrices:
    """Prices of partitions and the bound that they prove. Both are multiplied by `SCALE`."""

    prices: Ints
    bound: int


@dataclass
class ColumnGeneration:
    """Column generation on a weight grid. Patterns remain when the grid becomes finer."""

    exchange: MemberExchange
    knots: Floats = field(init=False)  # weights with price variables
    basis: Floats = field(init=False)  # knots' shares in prices, per partition
    centre: Floats = field(init=False)  # best prices at the knots
    box: float = 0.5
    best: MovementPrices = field(init=False)
    owners: list[int] = field(init=False, default_factory=list)
    collected: list[Pattern] = field(init=False, default_factory=list)
    seen: set[tuple[int, bytes]] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Choose the knots of the price function, and start with the cost of a move as price."""
        problem = self.exchange.problem
        weight = problem.weight.astype(np.float64)
        self.knots = _knots(weight)
        count = len(self.knots)
        at = (np.searchsorted(self.knots, weight, side="right") - 1).clip(0, count - 2)
        share = (weight - self.knots[at]) / (self.knots[at + 1] - self.knots[at])
        unowned = problem.owner == NO_OWNER
        unit = np.where(unowned, max(float(np.mean(self.exchange.costs)), 1.0), self.exchange.costs)
        at = at + np.where(unowned, count, 0)
        partitions = np.arange(problem.partition_count)
        self.basis = np.zeros((problem.partition_count, 2 * count))
        self.basis[partitions, at] = (1 - share) * unit
        self.basis[partitions, at + 1] = share * unit
        self.centre = np.repeat([1.0, 0.0], count)
        self.best = MovementPrices(np.zeros(problem.partition_count, dtype=np.int64), 0)

    def raise_bound(self, enough: int, may_continue: Callable[[], bool]) -> None:
        """Raise the bound until it exceeds ``enough`` (scaled by `SCALE`) or stops rising."""
        self._add_empty_patterns()
        point, failures = self.centre, 0
        while failures < _MAX_FAILURES and may_continue() and self.best.bound <= enough:
            partitions = np.rint((self.basis @ point).clip(0) * SCALE).astype(np.int64)
            knapsacks = self.exchange.solve(partitions)
            improved = knapsacks.bound > self.best.bound
            failures = 0 if improved else failures + 1
            if improved:
                self.best, self.centre = MovementPrices(partitions, knapsacks.bound), point
            self._collect(knapsacks)
            answer = self._program()
            if answer is None:
                return
            model_bound, next_point = answer
            gain = model_bound - self.best.bound / SCALE
            inside = self._is_inside(next_point)
            if improved:
                self.box = min(self.box * 1.5, _MAX_BOX)
            elif knapsacks.bound / SCALE < self.best.bound / SCALE - 0.5 * gain:
                self.box = max(self.box * 0.6, _MIN_BOX)
            if gain < _TOLERANCE:
                if inside or self.box >= _MAX_BOX:
                    return
                self.box = min(self.box * 3, _MAX_BOX)
            point = next_point

    def refine(self, exchange: MemberExchange) -> None:
        """Change to a finer grid: drop infeasible patterns and reset the bound."""
        self.exchange = exchange
        kept = [
            (owner, pattern)
            for owner, pattern in zip(self.owners, self.collected, strict=True)
            if exchange.is_feasible(owner, pattern)
        ]
        self.owners, self.collected = [owner for owner, _ in kept], [pattern for _, pattern in kept]
        self.best = MovementPrices(self.best.prices, 0)
        self.box = 0.1

    def _add_empty_patterns(self) -> None:
        for member in np.flatnonzero(self.exchange.free_capacity >= 0).tolist():
            self._add(member, np.zeros(self.exchange.problem.partition_count, dtype=np.int8))

    def _collect(self, knapsacks: Knapsacks) -> None:
        """Add each member's best pattern, and its best patterns for some ranges of amounts."""
        least = knapsacks.net.argmin(axis=1)
        price = knapsacks.net.min(axis=1)
        wide = max(self.exchange.width // 8, 1)
        for window_index in range(4):
            amount = least
            if window_index:
                window = knapsacks.net[:, (window_index - 1) * wide : window_index * wide]
                if not window.shape[1]:
                    continue
                amount = (window_index - 1) * wide + window.argmin(axis=1)
            patterns = self.exchange.patterns(knapsacks, amount)
            net = np.take_along_axis(knapsacks.net, amount[:, None], axis=1)[:, 0]
            for member in np.flatnonzero((net < price + SCALE // 2) & (net < INFEASIBLE)).tolist():
                self._add(member, patterns[member])

    def _add(self, member: int, pattern: Pattern) -> None:
        key = (member, pattern.tobytes())
        if key not in self.seen:
            self.seen.add(key)
            self.owners.append(member)
            self.collected.append(pattern)

    def _program(self) -> tuple[float, Floats] | None:
        """Solve the linear program: return the best bound of the patterns and its prices."""
        width, knots = self.exchange.problem.member_count, len(self.centre)
        patterns = np.array(self.collected)
        unowned = self.exchange.problem.owner == NO_OWNER
        pattern = sparse.csr_matrix(patterns.astype(np.float64)) @ self.basis
        fees = (patterns > 0) @ self.exchange.move_cost.astype(np.float64)
        # Dual values are the prices; a column bounds them from above, its negative from below.
        rising = np.eye(knots)[:, :-1] - np.eye(knots)[:, 1:]
        rising = np.delete(rising, len(self.knots) - 1, axis=1)
        low, high = np.maximum(self.centre - self.box, 0), self.centre + self.box
        cost = np.concatenate([fees, high, -low, np.zeros(rising.shape[1])])
        linking = np.concatenate([pattern.T, np.eye(knots), -np.eye(knots), rising], axis=1)
        once = sparse.csr_matrix(
            (np.ones(len(patterns)), (self.owners, np.arange(len(patterns)))), (width, len(cost))
        )
        result = linprog(
            cost,
            A_eq=sparse.vstack([sparse.csr_matrix(linking), once], format="csc"),
            b_eq=np.concatenate([self.basis[unowned].sum(axis=0), np.ones(width)]),
            method="highs",
        )
        if result.status != 0:
            return None
        return float(result.fun), np.asarray(result.eqlin.marginals)[:knots].clip(low, high)

    def _is_inside(self, point: Floats) -> bool:
        low, high = self.centre - self.box, self.centre + self.box
        return bool(((point < high - 1e-9) & ((point > low + 1e-9) | (low <= 0))).all())


def _knots(weight: Floats) -> Floats:
    """Return all distinct weights, or a geometric selection if there are many."""
    each = np.unique(np.append(weight, 0.0))
    if len(each) == 1:
        return np.array([0.0, 1.0])
    if len(each) <= _KNOTS:
        return each
    top = float(each[-1])
    return np.concatenate([[0.0], np.geomspace(max(top / 50, 0.5), top, _KNOTS - 1)])
