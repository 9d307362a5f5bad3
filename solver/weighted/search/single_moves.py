"""Lower sums of squared loads by one move after the other, without search."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.problem import Ints, Placement, Problem

_STEP, _STEP_PER_CHOICE = 5e-5, 1e-8
"""Estimated work of one move, in general and per partition and member."""

Floats = NDArray[np.float64]


def move_work(problem: Problem) -> float:
    """Return the work of one move."""
    return _STEP + problem.partition_count * problem.member_count * _STEP_PER_CHOICE


class _Loads:
    """Placement that changes by single moves, with its loads relative to the speeds."""

    def __init__(self, problem: Problem, start: Placement) -> None:
        self.problem = problem
        self.placement = start.copy()
        self.weight = problem.weight.astype(np.float64)
        self.scale = 1 / np.array(problem.member_units.speeds, dtype=np.float64)
        self.loads = np.array(problem.loads(start), dtype=np.float64) * self.scale

    def drops(self, partitions: Ints) -> Floats:
        """Return the decrease of the sum of squares for moves: per partition (row) and member.

        The sum is of load times relative load. Moves that are not permitted have no decrease.
        """
        source, own = self.placement[partitions], self.weight[partitions][:, None]
        scale, may_consume = self.scale, self.problem.may_consume[self.problem.consumer_set]
        drop: Floats = 2 * (self.loads[source][:, None] - self.loads)
        drop = own * (drop - own * (scale[source][:, None] + scale))
        drop[~may_consume[partitions]] = -np.inf
        drop[np.arange(len(partitions)), source] = -np.inf
        return drop

    def received(self, partitions: Ints) -> Floats:
        """Return the load of each member after it received a partition (row)."""
        result: Floats = self.loads + self.weight[partitions][:, None] * self.scale
        return result

    def move(self, partition: int, target: int) -> None:
        """Move a partition to a member."""
        source, weight = self.placement[partition], self.weight[partition]
        self.loads[source] -= weight * self.scale[source]
        self.loads[target] += weight * self.scale[target]
        self.placement[partition] = target


def lower_squares(
    problem: Problem, start: Placement, most: int, may_continue: Callable[[], bool]
) -> Iterator[Placement]:
    """Yield the placement after each of at most ``most`` moves; no partition moves twice.

    Each move lowers the sum of load times relative load most. The moves end if none lowers it.
    """
    state = _Loads(problem, start)
    for _ in range(most):
        is_open = (state.placement == problem.owner) | (problem.owner == NO_OWNER)
        partitions = np.flatnonzero(is_open & (problem.weight > 0))
        if not len(partitions) or not may_continue():
            return
        drop = state.drops(partitions)
        row, target = divmod(int(drop.argmax()), problem.member_count)
        if drop[row, target] <= 0:
            return
        state.move(int(partitions[row]), target)
        yield state.placement.copy()


def spread_moved(problem: Problem, start: Placement, may_continue: Callable[[], bool]) -> Placement:
    """Give moved partitions to other members while this lowers the sum of squares.

    No further partition moves, and no load exceeds the maximum load of ``start``.
    """
    state = _Loads(problem, start)
    # Rounding must not exclude loads that are equal to the maximum.
    most = state.loads.max(initial=0) * (1 if problem.group.has_equal_speeds else 1 + 1e-12)
    while may_continue():
        partitions = np.flatnonzero((state.placement != problem.owner) & (problem.weight > 0))
        drop = np.where(state.received(partitions) > most, 0, state.drops(partitions))
        if drop.max(initial=0) <= 0:
            break
        row, target = divmod(int(drop.argmax()), problem.member_count)
        state.move(int(partitions[row]), target)
    return state.placement
