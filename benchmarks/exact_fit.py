"""Estimate how many moves the exact minimum of the maximum load needs.

Run it with ``python -m benchmarks.exact_fit``. At the mean load, no member has free capacity, so
that a placement must meet all loads exactly. The number of placements with k moves that do so is a
coefficient of a product over the partitions: a partition stays, or adds its weight to another
member and one to the moves. The saddle point method estimates this coefficient (Daniels, 1954).
Below the number of moves at which the estimate reaches 1, a placement probably does not exist.

The last columns count exactly in how many ways a member can meet its load, with at most two
partitions given away, and one or two received: fewest and median over the members.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import combinations
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.weighted_groups import dealt_in_turn
from kassay.solver.counting_bounds import makespan_bound
from kassay.solver.problem import Problem, build_problem

_STEPS = 200
_SIZES = ((300, 20), (600, 30), (1_000, 50))
_SEEDS = (1, 2)

Floats = NDArray[np.float64]


@dataclass
class ExactFits:
    """Estimated number of placements per number of moves, in which all loads have a limit."""

    problem: Problem
    max_load: int

    def __post_init__(self) -> None:
        """Scale the weights, so that their mean is 1."""
        self.unit = float(self.problem.weight.mean())
        self.weight = self.problem.weight / self.unit
        self.is_move = np.ones((len(self.weight), self.problem.member_count))
        self.is_move[np.arange(len(self.weight)), self.problem.owner] = 0
        self.point = np.append(np.zeros(self.problem.member_count), -5.0)

    def log_count(self, moves: int) -> float:
        """Return the natural logarithm of the estimated number of placements."""
        members, total = self.problem.member_count, self.problem.total
        targets = np.append(np.full(members, total / members / self.unit), moves)
        for _ in range(_STEPS):
            value, gradient, hessian = self._derivatives(self.point, targets)
            # The loads add up to the total, so that one member has no own variable.
            step = np.append(0.0, np.linalg.solve(hessian[1:, 1:], gradient[1:]))
            size = 1.0
            while size > 1e-9 and self._derivatives(self.point - size * step, targets)[0] > value:
                size /= 2
            self.point -= size * step
            if np.abs(step).max() < 1e-9:
                break
        value, _, hessian = self._derivatives(self.point, targets)
        _, determinant = np.linalg.slogdet(hessian[1:, 1:])
        free = self.max_load * members - total
        return float(
            value
            - members / 2 * math.log(2 * math.pi)
            - determinant / 2
            - (members - 1) * math.log(self.unit)
            + math.log(math.comb(free + members - 1, members - 1))
        )

    def _derivatives(self, point: Floats, targets: Floats) -> tuple[float, Floats, Floats]:
        """Return the logarithm of the product at a point, with its gradient and its Hessian."""
        exponent = self.weight[:, None] * point[:-1] + point[-1] * self.is_move
        top = exponent.max(axis=1, keepdims=True)
        share = np.exp(exponent - top)
        sums = share.sum(axis=1, keepdims=True)
        value = float((np.log(sums) + top).sum() - point @ targets)
        share /= sums
        moved = (share * self.is_move).sum(axis=1)
        loads = share * self.weight[:, None]
        gradient = np.append(loads.sum(axis=0), moved.sum()) - targets
        rows = np.column_stack([loads, moved])
        hessian = -rows.T @ rows
        hessian[:-1, :-1] += np.diag((loads * self.weight[:, None]).sum(axis=0))
        cross = (loads * self.is_move).sum(axis=0)
        hessian[:-1, -1] += cross
        hessian[-1, :-1] += cross
        hessian[-1, -1] += moved.sum()
        return value, gradient, hessian

    def threshold(self) -> int:
        """Return the number of moves from which the estimated number of placements exceeds 1."""
        return bisect_left(range(len(self.weight) // 2), 0, lo=1, key=self.log_count)


def fitting_exchanges(problem: Problem, max_load: int, received: int) -> list[int]:
    """Count, per member, the exchanges after which all members can be within the maximum load.

    A member gives at most two partitions away, and receives a number of partitions. Then its load
    is below the maximum by at most the free capacity of all members together.

    Examples
    --------
    >>> problem = build_problem(dealt_in_turn(1, 60, 4))
    >>> fitting_exchanges(problem, makespan_bound(problem), 2)
    [4, 2, 2, 3]
    """
    weight, free = problem.weight, max_load * problem.member_count - problem.total
    counts = []
    for member in range(problem.member_count):
        own, other = weight[problem.owner == member], weight[problem.owner != member]
        gains = other
        if received > 1:
            gains = np.add.outer(other, other)[np.triu_indices(len(other), 1)]
        gains = np.sort(gains)
        given = [sum(some) for count in range(3) for some in combinations(own.tolist(), count)]
        most = max_load - int(own.sum()) + np.array(given)
        ends = [np.searchsorted(gains, most + 1 - more).sum() for more in (0, free + 1)]
        counts.append(int(ends[0] - ends[1]))
    return counts


def main() -> None:
    """Print the estimates of seeded groups as a Markdown table."""
    print("| partitions x members, seed | estimate | exchanges, 1 received | 2 received |")
    print("|---|--:|--:|--:|")
    for partitions, members in _SIZES:
        for seed in _SEEDS:
            problem = build_problem(dealt_in_turn(seed, partitions, members))
            max_load = makespan_bound(problem)
            counts = [fitting_exchanges(problem, max_load, received) for received in (1, 2)]
            cells = " | ".join(f"{min(each):,}, {median(each):,}" for each in counts)
            threshold = ExactFits(problem, max_load).threshold()
            print(f"| {partitions} x {members}, {seed} | {threshold} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
